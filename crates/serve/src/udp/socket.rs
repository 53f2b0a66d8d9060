//! Sockets: every option set, read back, and entered in the ledger.
#![expect(unsafe_code, reason = "std sets none of these options")]

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use super::error::{Error, Feature};
use super::message::Name;
use super::read_back::Ledger;
use super::{BusyPoll, Config, PathMtu};

const ANY_KERNEL: &str = "2.6";
const NEEDS_ADMIN: &str = "run as root or grant CAP_NET_ADMIN";

/// An integer option of a socket.
pub(super) fn set(socket: &OwnedFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    set_value(socket, level, name, &value)
}

/// Any option of a socket; `T` must be what the option takes.
pub(super) fn set_value<T>(socket: &OwnedFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is valid for its size, and the kernel only reads it.
    match unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size,
        )
    } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Reads an integer option.
pub(super) fn get(socket: &OwnedFd, level: i32, name: i32) -> io::Result<i32> {
    let mut value = [0_i32];
    read(socket, level, name, &mut value)?;
    Ok(value[0])
}

/// Reads an option of several words; returns how many the kernel has.
fn read<T>(socket: &OwnedFd, level: i32, name: i32, words: &mut [T]) -> io::Result<usize> {
    let mut size = size_of_val(words) as libc::socklen_t;
    // SAFETY: `words` is valid for the size given.
    let done = unsafe {
        let value = words.as_mut_ptr().cast();
        libc::getsockopt(socket.as_raw_fd(), level, name, value, &raw mut size)
    };
    match done {
        0 => Ok(size as usize / size_of::<T>()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Datagrams that the kernel dropped at this socket; 0 where it does not say (before Linux 4.12).
pub(super) fn drops(socket: &OwnedFd) -> u64 {
    /// `SK_MEMINFO_DROPS`, `include/uapi/linux/sock_diag.h`.
    const DROPS: usize = 8;
    let mut words = [0_u32; 9];
    match read(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut words) {
        Ok(known) if known > DROPS => words[DROPS].into(),
        _ => 0,
    }
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

/// The address a socket is bound to.
pub(super) fn local_addr(socket: &OwnedFd) -> io::Result<SocketAddr> {
    let mut name = Name::empty();
    // SAFETY: name has room for the length given.
    let done =
        unsafe { libc::getsockname(socket.as_raw_fd(), name.as_mut_ptr(), &raw mut name.length) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    // Straight from the name: `[::]` must not turn into anything else.
    name.address()
        .ok_or_else(|| io::Error::from_raw_os_error(libc::EAFNOSUPPORT))
}

/// The bound sockets: a group with one per worker, or one.
pub(super) fn open(
    config: &Config,
    cpus: &[usize],
    ledger: &mut Ledger,
) -> Result<Vec<OwnedFd>, Error> {
    let mut address = config.listen;
    if !config.reuseport {
        return Ok(vec![bound(config, address, false, cpus[0], ledger)?]);
    }
    // A reuseport socket joins any group of the same user, also when it asks for port 0, and steering would count
    // the strangers. So the first is bound without the option, which succeeds only where nobody is, and
    // opens its port to the others afterwards.
    let mut sockets = Vec::with_capacity(config.workers);
    for &cpu in cpus {
        let first = sockets.is_empty();
        let socket = bound(config, address, !first, cpu, ledger)?;
        if first {
            share(config, &socket, ledger)?;
            let actual = local_addr(&socket).map_err(|answer| Error::Bind { address, answer })?;
            address.set_port(actual.port());
        }
        sockets.push(socket);
    }
    if let [only] = cpus {
        // A group comes into being with its second member and outlives it.
        drop(bound(config, address, true, *only, ledger)?);
    }
    Ok(sockets)
}

fn bound(
    config: &Config,
    address: SocketAddr,
    reuseport: bool,
    cpu: usize,
    ledger: &mut Ledger,
) -> Result<OwnedFd, Error> {
    let bind_error = |answer: io::Error| match answer.raw_os_error() {
        Some(libc::EADDRINUSE) => Error::PortInUse(address),
        _ => Error::Bind { address, answer },
    };
    let family = if address.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    };
    // SAFETY: takes numbers.
    let raw = unsafe { libc::socket(family, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if raw < 0 {
        return Err(bind_error(io::Error::last_os_error()));
    }
    // SAFETY: a new descriptor, nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(raw) };
    if address.is_ipv6() && address.ip().is_unspecified() {
        // `[::]` serves IPv4 too, whatever net.ipv6.bindv6only says.
        set(&socket, libc::SOL_IPV6, libc::IPV6_V6ONLY, 0).map_err(bind_error)?;
    }
    if reuseport {
        share(config, &socket, ledger)?;
    }
    // Before binding: from then on datagrams arrive and should find the options set.
    apply(config, &socket, cpu, ledger)?;
    let name = Name::of(address);
    // SAFETY: name is valid for its length.
    match unsafe { libc::bind(socket.as_raw_fd(), name.as_ptr(), name.length) } {
        0 => Ok(socket),
        _ => Err(bind_error(io::Error::last_os_error())),
    }
}

/// Lets other sockets of the same user have the port too. There is no fallback: without it the second could not be
/// bound at all.
fn share(config: &Config, socket: &OwnedFd, ledger: &mut Ledger) -> Result<(), Error> {
    const REUSEPORT: Feature = Feature {
        switch: "reuseport",
        name: "SO_REUSEPORT",
        since: "3.9",
        remedy: "upgrade",
    };
    let actual = set(socket, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)
        .and_then(|()| get(socket, libc::SOL_SOCKET, libc::SO_REUSEPORT))
        .map_err(|error| REUSEPORT.refused("on", error))?;
    let text = format!("SO_REUSEPORT {actual} on {} sockets", config.workers);
    ledger.compare(REUSEPORT, "on", text, actual == 1)
}

fn apply(config: &Config, socket: &OwnedFd, cpu: usize, ledger: &mut Ledger) -> Result<(), Error> {
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
    if let Some(bytes) = config.rcvbuf {
        const RCVBUF: Feature = Feature {
            switch: "rcvbuf",
            name: "SO_RCVBUF",
            since: ANY_KERNEL,
            remedy: "raise net.core.rmem_max or grant CAP_NET_ADMIN",
        };
        buffer(
            socket,
            bytes,
            libc::SO_RCVBUFFORCE,
            libc::SO_RCVBUF,
            RCVBUF,
            ledger,
        )?;
    }
    if let Some(bytes) = config.sndbuf {
        const SNDBUF: Feature = Feature {
            switch: "sndbuf",
            name: "SO_SNDBUF",
            since: ANY_KERNEL,
            remedy: "raise net.core.wmem_max or grant CAP_NET_ADMIN",
        };
        buffer(
            socket,
            bytes,
            libc::SO_SNDBUFFORCE,
            libc::SO_SNDBUF,
            SNDBUF,
            ledger,
        )?;
    }
    if config.incoming_cpu {
        const INCOMING: Feature = Feature {
            switch: "incoming-cpu",
            name: "SO_INCOMING_CPU",
            since: "4.4",
            remedy: "upgrade",
        };
        switch_on(
            socket,
            libc::SOL_SOCKET,
            libc::SO_INCOMING_CPU,
            i32::try_from(cpu).unwrap_or(i32::MAX),
            INCOMING,
            ledger,
        )?;
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

/// Sets an integer option and compares what reads back.
fn switch_on(
    socket: &OwnedFd,
    level: i32,
    name: i32,
    value: i32,
    feature: Feature,
    ledger: &mut Ledger,
) -> Result<(), Error> {
    let wanted = value.to_string();
    if let Err(error) = set(socket, level, name, value) {
        return ledger.fall_back(
            feature.switch,
            &wanted,
            "off",
            feature.refused(&wanted, error),
        );
    }
    match get(socket, level, name) {
        Ok(actual) => {
            let text = format!(
                "{} {actual}",
                feature.name.split(' ').next().unwrap_or_default()
            );
            ledger.compare(feature, wanted, text, actual == value)
        }
        Err(error) => ledger.fall_back(
            feature.switch,
            &wanted,
            "unknown",
            feature.refused(&wanted, error),
        ),
    }
}

/// Sets a buffer size, beyond the host's maximum where we may. The kernel doubles the number for its own
/// bookkeeping (socket(7)); the read-back is halved again.
fn buffer(
    socket: &OwnedFd,
    bytes: usize,
    forced: i32,
    plain: i32,
    feature: Feature,
    ledger: &mut Ledger,
) -> Result<(), Error> {
    let value = i32::try_from(bytes).unwrap_or(i32::MAX / 2);
    let wanted = format!("{bytes} B");
    if let Err(error) = set(socket, libc::SOL_SOCKET, forced, value)
        .or_else(|_| set(socket, libc::SOL_SOCKET, plain, value))
    {
        return ledger.fall_back(
            feature.switch,
            &wanted,
            "the kernel's default",
            feature.refused(&wanted, error),
        );
    }
    let actual = get(socket, libc::SOL_SOCKET, plain).unwrap_or(0) / 2;
    // The kernel has a minimum of some kilobytes: more than asked for is no loss.
    let holds = usize::try_from(actual).is_ok_and(|actual| actual >= bytes);
    ledger.compare(feature, wanted, format!("{actual} B"), holds)
}

#[cfg(test)]
mod tests {
    use super::*;

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
