//! Sockets: every option set, read back, and entered in the ledger.
#![expect(unsafe_code, reason = "std sets none of these options")]

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd as _, OwnedFd};

use super::{BusyPoll, Config, PathMtu};
use crate::error::{Error, Feature};
use crate::read_back::Ledger;
use crate::socket::{self, ANY_KERNEL, get, set, set_value, switch_on};

const NEEDS_ADMIN: &str = "run as root or grant CAP_NET_ADMIN";

/// The bound sockets: a group with one per worker, or one.
pub(super) fn open(
    config: &Config,
    cpus: &[usize],
    ledger: &mut Ledger,
) -> Result<Vec<OwnedFd>, Error> {
    let options = |socket: &OwnedFd, ledger: &mut Ledger| apply(config, socket, ledger);
    socket::open(&config.shared(), cpus, &options, ledger)
}

/// From now on the kernel drops what arrives; what is queued stays.
pub(super) fn refuse_more(socket: &OwnedFd) -> io::Result<()> {
    // Classic BPF: return 0 bytes of the packet.
    let mut nothing = [libc::sock_filter {
        code: (libc::BPF_RET | libc::BPF_K) as u16,
        jt: 0,
        jf: 0,
        k: 0,
    }];
    let filter = libc::sock_fprog {
        len: 1,
        filter: nothing.as_mut_ptr(),
    };
    set_value(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter)
}

/// Wakes every thread that waits to receive; what is queued is still delivered.
pub(super) fn shut_down(socket: &OwnedFd) {
    // An unconnected socket answers ENOTCONN and wakes its waiters all the same (net/ipv4/af_inet.c, inet_shutdown).
    // SAFETY: takes numbers.
    unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_RD) };
}

fn apply(config: &Config, socket: &OwnedFd, ledger: &mut Ledger) -> Result<(), Error> {
    if config.listen.ip().is_unspecified() {
        source_address(config.listen.ip(), socket, ledger)?;
    }
    path_mtu(config, socket, ledger)?;
    if config.gro {
        const GRO: Feature = Feature {
            switch: "gro",
            name: "UDP_GRO",
            since: "5.0",
            remedy: "upgrade",
        };
        switch_on(socket, libc::SOL_UDP, libc::UDP_GRO, 1, GRO, ledger)?;
    }
    if config.gso {
        const GSO: Feature = Feature {
            switch: "gso",
            name: "UDP_SEGMENT",
            since: "4.18",
            remedy: "upgrade",
        };
        // Setting the socket-wide size to its default, 0, changes nothing and fails where the option is unknown.
        match set(socket, libc::SOL_UDP, libc::UDP_SEGMENT, 0) {
            Ok(()) => ledger.holds(
                "gso",
                "on",
                "UDP_SEGMENT supported by the kernel, set per message",
            ),
            Err(error) => ledger.fall_back(
                "gso",
                "on",
                "replies are sent one by one",
                GSO.refused("on", error),
            )?,
        }
    }
    if let Some(poll) = config.busy_poll {
        busy_poll(poll, socket, ledger)?;
    }
    Ok(())
}

/// On a wildcard address: learn where each request came to. Not a switch, since without it replies of a host
/// with several addresses leave from the wrong one.
fn source_address(ip: IpAddr, socket: &OwnedFd, ledger: &mut Ledger) -> Result<(), Error> {
    const SOURCE: Feature = Feature {
        switch: "source address",
        name: "IP_PKTINFO",
        since: ANY_KERNEL,
        remedy: "bind to one address",
    };
    let (level, name) = match ip {
        IpAddr::V4(_) => (libc::SOL_IP, libc::IP_PKTINFO),
        IpAddr::V6(_) => (libc::SOL_IPV6, libc::IPV6_RECVPKTINFO),
    };
    switch_on(socket, level, name, 1, SOURCE, ledger)
}

fn path_mtu(config: &Config, socket: &OwnedFd, ledger: &mut Ledger) -> Result<(), Error> {
    const DISCOVER: Feature = Feature {
        switch: "pmtudisc",
        name: "IP_MTU_DISCOVER",
        since: ANY_KERNEL,
        remedy: "leave it at want",
    };
    let want = config.path_mtu == PathMtu::Do;
    // An IPv6 socket that serves IPv4 too has both settings.
    let both = config.listen.is_ipv6() && config.listen.ip().is_unspecified();
    let four = (libc::SOL_IP, libc::IP_MTU_DISCOVER, "IP_MTU_DISCOVER");
    let six = (libc::SOL_IPV6, libc::IPV6_MTU_DISCOVER, "IPV6_MTU_DISCOVER");
    let options: &[_] = match (config.listen, both) {
        (SocketAddr::V4(_), _) => &[four],
        (SocketAddr::V6(_), false) => &[six],
        (SocketAddr::V6(_), true) => &[four, six],
    };
    for &(level, name, text) in options {
        let wanted = if want { "do" } else { "want" };
        if want && let Err(error) = set(socket, level, name, libc::IP_PMTUDISC_DO) {
            ledger.fall_back(
                "pmtudisc",
                wanted,
                "the kernel's default",
                DISCOVER.refused(wanted, error),
            )?;
            continue;
        }
        let actual = match get(socket, level, name) {
            Ok(libc::IP_PMTUDISC_DONT) => "dont".to_owned(),
            Ok(libc::IP_PMTUDISC_WANT) => "want".to_owned(),
            Ok(libc::IP_PMTUDISC_DO) => "do".to_owned(),
            Ok(other) => other.to_string(),
            Err(error) => error.to_string(),
        };
        // `want` leaves the host's default alone, which ip_no_pmtu_disc may have changed.
        let holds = !want || actual == wanted;
        ledger.compare(DISCOVER, wanted, format!("{text} {actual}"), holds)?;
    }
    Ok(())
}

fn busy_poll(poll: BusyPoll, socket: &OwnedFd, ledger: &mut Ledger) -> Result<(), Error> {
    let option = |switch, name, since| Feature {
        switch,
        name,
        since,
        remedy: NEEDS_ADMIN,
    };
    let time = i32::try_from(poll.time.as_micros()).unwrap_or(i32::MAX);
    let feature = option(
        "busy-poll",
        "SO_BUSY_POLL (CONFIG_NET_RX_BUSY_POLL)",
        "3.11",
    );
    switch_on(
        socket,
        libc::SOL_SOCKET,
        libc::SO_BUSY_POLL,
        time,
        feature,
        ledger,
    )?;
    if poll.prefer {
        let feature = option("busy-poll-prefer", "SO_PREFER_BUSY_POLL", "5.11");
        switch_on(
            socket,
            libc::SOL_SOCKET,
            SO_PREFER_BUSY_POLL,
            1,
            feature,
            ledger,
        )?;
    }
    if poll.budget > 0 {
        let feature = option("busy-poll-budget", "SO_BUSY_POLL_BUDGET", "5.11");
        let wanted = poll.budget.to_string();
        match set(
            socket,
            libc::SOL_SOCKET,
            SO_BUSY_POLL_BUDGET,
            poll.budget.into(),
        ) {
            // getsockopt does not know the option (net/core/sock.c, Linux 6.18).
            Ok(()) => ledger.holds(feature.switch, wanted, "accepted; it cannot be read back"),
            Err(error) => {
                let refused = feature.refused(&wanted, error);
                ledger.fall_back(feature.switch, &wanted, "the kernel's default", refused)?;
            }
        }
    }
    Ok(())
}

/// include/uapi/asm-generic/socket.h; libc does not export them for glibc.
const SO_PREFER_BUSY_POLL: i32 = 69;
const SO_BUSY_POLL_BUDGET: i32 = 70;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::{drops, local_addr};

    fn open_one(change: impl FnOnce(&mut Config)) -> (Result<Vec<OwnedFd>, Error>, Vec<String>) {
        let mut config = Config::new("127.0.0.1:0".parse().unwrap());
        change(&mut config);
        let mut ledger = Ledger::new(config.fallback);
        let sockets = open(&config, &vec![0; config.workers], &mut ledger);
        (
            sockets,
            ledger.finish().iter().map(ToString::to_string).collect(),
        )
    }

    #[test]
    fn the_path_mtu_switch_reads_back_on_each_family() {
        let read_backs = |address: &str| {
            open_one(|config| {
                config.listen = address.parse().unwrap();
                config.path_mtu = PathMtu::Do;
            })
            .1
        };
        assert_eq!(
            read_backs("127.0.0.1:0"),
            ["pmtudisc: do; holds: IP_MTU_DISCOVER do"]
        );
        assert_eq!(
            read_backs("[::1]:0"),
            ["pmtudisc: do; holds: IPV6_MTU_DISCOVER do"]
        );
        assert_eq!(
            read_backs("[::]:0").len(),
            3,
            "source address and both families"
        );
    }

    #[test]
    fn a_group_has_one_port_and_a_socket_per_worker() {
        let (sockets, read_backs) = open_one(|config| {
            config.workers = 3;
            config.reuseport = true;
        });
        let ports: Vec<_> = sockets
            .unwrap()
            .iter()
            .map(|socket| local_addr(socket).unwrap().port())
            .collect();
        assert_eq!(ports.len(), 3);
        assert!(ports.iter().all(|port| *port == ports[0] && *port != 0));
        assert!(
            read_backs.contains(&"reuseport: on; holds: SO_REUSEPORT 1 on 3 sockets".to_owned())
        );
    }

    #[test]
    fn a_port_that_anybody_holds_is_in_use_even_for_a_group() {
        let holder = open_one(|config| config.reuseport = true).0.unwrap();
        let taken = local_addr(&holder[0]).unwrap();
        let (second, _) = open_one(|config| {
            config.listen = taken;
            config.reuseport = true;
        });
        let error = second.unwrap_err();
        assert!(matches!(error, Error::PortInUse(_)), "{error}");
    }

    #[test]
    fn a_foreign_address_cannot_be_bound_and_the_message_says_so() {
        let (result, _) = open_one(|config| config.listen = "192.0.2.1:0".parse().unwrap());
        let error = result.unwrap_err().to_string();
        assert!(
            error.contains("192.0.2.1:0") && error.contains("belongs to this host"),
            "{error}"
        );
    }

    #[test]
    fn socket_options_read_back() {
        let (sockets, read_backs) = open_one(|config| {
            config.gro = true;
            config.gso = true;
            config.rcvbuf = Some(100_000);
            config.sndbuf = Some(100_000);
            config.incoming_cpu = true;
        });
        sockets.unwrap();
        for expected in [
            "gro: 1; holds: UDP_GRO 1",
            "gso: on; holds: UDP_SEGMENT supported by the kernel, set per message",
            "rcvbuf: 100000 B; holds: 100000 B",
            "sndbuf: 100000 B; holds: 100000 B",
            "incoming-cpu: 0; holds: SO_INCOMING_CPU 0",
        ] {
            assert!(
                read_backs.iter().any(|line| line == expected),
                "{expected} in {read_backs:?}"
            );
        }
    }

    #[test]
    fn a_refused_socket_drops_what_arrives_and_keeps_what_is_queued() {
        let (sockets, _) = open_one(|_| {});
        let socket = &sockets.unwrap()[0];
        let client = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        client.connect(local_addr(socket).unwrap()).unwrap();
        client.send(b"queued").unwrap();
        refuse_more(socket).unwrap();
        client.send(b"late").unwrap();
        assert_eq!(drops(socket), 1);
        let server = std::net::UdpSocket::from(socket.try_clone().unwrap());
        assert_eq!(server.recv(&mut [0; 16]).unwrap(), 6);
    }
}
