//! Listeners: a group with one per worker, or one; and what they hand to the connections that they accept.
//!
//! On Linux an accepted socket is a copy of its listener: `TCP_NODELAY` and the sizes of buffers are set once, there.
#![expect(unsafe_code, reason = "listen and accept4 take raw descriptors")]

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

use crate::error::{Error, Feature};
use crate::read_back::Ledger;
use crate::socket::{self, ANY_KERNEL, get, read_words, set, switch_on};

use super::Config;

/// The backlog where none is asked for: the default of `net.core.somaxconn` since Linux 5.4.
const BACKLOG: u32 = 4096;

/// Listeners that accept, in the order of the workers.
pub(super) fn open(
    config: &Config,
    cpus: &[usize],
    ledger: &mut Ledger,
) -> Result<Vec<OwnedFd>, Error> {
    let options = |socket: &OwnedFd, ledger: &mut Ledger| apply(config, socket, ledger);
    let listeners = socket::open(&config.shared(), cpus, &options, ledger)?;
    for listener in &listeners {
        listen(config, listener, ledger)?;
    }
    Ok(listeners)
}

fn apply(config: &Config, socket: &OwnedFd, ledger: &mut Ledger) -> Result<(), Error> {
    if config.nodelay {
        const NODELAY: Feature = Feature {
            switch: "nodelay",
            name: "TCP_NODELAY",
            since: ANY_KERNEL,
            remedy: "upgrade",
        };
        let (level, name) = (libc::IPPROTO_TCP, libc::TCP_NODELAY);
        switch_on(socket, level, name, 1, NODELAY, ledger)?;
    }
    if let Some(time) = config.defer_accept {
        const DEFER: Feature = Feature {
            switch: "defer-accept",
            name: "TCP_DEFER_ACCEPT",
            since: ANY_KERNEL,
            remedy: "choose a shorter time",
        };
        let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
        let seconds = i32::try_from(seconds).unwrap_or(i32::MAX);
        let wanted = format!("{seconds} s");
        let (level, name) = (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT);
        match set(socket, level, name, seconds).and_then(|()| get(socket, level, name)) {
            // The kernel counts retransmissions of its SYN-ACK, and rounds up to the next.
            Ok(actual) => {
                let text = format!("{} {actual} s", DEFER.name);
                ledger.compare(DEFER, wanted, text, actual >= seconds)?;
            }
            Err(error) => {
                let refused = DEFER.refused(&wanted, error);
                ledger.fall_back(DEFER.switch, &wanted, "off", refused)?;
            }
        }
    }
    Ok(())
}

fn listen(config: &Config, listener: &OwnedFd, ledger: &mut Ledger) -> Result<(), Error> {
    const SIZE: Feature = Feature {
        switch: "backlog",
        name: "listen",
        since: ANY_KERNEL,
        remedy: "raise net.core.somaxconn",
    };
    /// `tcpi_sacked` of `struct tcp_info`, in words: of a listener it is the backlog (net/ipv4/tcp.c, `tcp_get_info`).
    const MAXIMUM: usize = 7;
    let backlog = config.backlog.unwrap_or(BACKLOG);
    // SAFETY: takes numbers.
    if unsafe { libc::listen(listener.as_raw_fd(), backlog.cast_signed()) } != 0 {
        return Err(config
            .shared()
            .refused(config.listen, io::Error::last_os_error()));
    }
    let mut words = [0_u32; MAXIMUM + 1];
    let wanted = config
        .backlog
        .map_or("default".to_owned(), |backlog| backlog.to_string());
    match read_words(listener, libc::IPPROTO_TCP, libc::TCP_INFO, &mut words) {
        Ok(known) if known > MAXIMUM => {
            let actual = words[MAXIMUM];
            let holds = config.backlog.is_none_or(|backlog| actual == backlog);
            ledger.compare(SIZE, wanted, format!("{actual} by TCP_INFO"), holds)
        }
        _ => {
            let text = "accepted; this kernel does not report it";
            ledger.holds(SIZE.switch, wanted, text);
            Ok(())
        }
    }
}

/// The next connection that waits at `listener`.
pub(super) fn accept(listener: RawFd) -> io::Result<OwnedFd> {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no address is asked for.
    let raw = unsafe { libc::accept4(listener, std::ptr::null_mut(), std::ptr::null_mut(), flags) };
    if raw < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor without another owner.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Refuses connections from now on, though the listener is still open somewhere.
pub(super) fn shut(listener: RawFd) {
    // SAFETY: takes numbers.
    unsafe { libc::shutdown(listener, libc::SHUT_RDWR) };
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpStream;
    use std::time::Duration;

    use super::*;
    use crate::socket::local_addr;

    fn open_one(change: impl FnOnce(&mut Config)) -> (Result<Vec<OwnedFd>, Error>, Vec<String>) {
        let mut config = Config::new("127.0.0.1:0".parse().unwrap());
        change(&mut config);
        let mut ledger = Ledger::new(config.fallback);
        let listeners = open(&config, &vec![0; config.workers], &mut ledger);
        let lines = ledger.finish().iter().map(ToString::to_string).collect();
        (listeners, lines)
    }

    #[test]
    fn every_switch_reads_back_and_connections_inherit_it() {
        let (listeners, lines) = open_one(|config| {
            config.nodelay = true;
            config.backlog = Some(7);
            config.defer_accept = Some(Duration::from_millis(2500));
            config.rcvbuf = Some(100_000);
            config.sndbuf = Some(100_000);
            config.incoming_cpu = true;
        });
        for expected in [
            "nodelay: 1; holds: TCP_NODELAY 1",
            "backlog: 7; holds: 7 by TCP_INFO",
            "defer-accept: 3 s; holds: TCP_DEFER_ACCEPT 3 s",
            "rcvbuf: 100000 B; holds: 100000 B",
            "sndbuf: 100000 B; holds: 100000 B",
            "incoming-cpu: 0; holds: SO_INCOMING_CPU 0",
        ] {
            assert!(
                lines.iter().any(|line| line == expected),
                "{expected}: {lines:?}"
            );
        }
        let listeners = listeners.unwrap();
        let mut client = TcpStream::connect(local_addr(&listeners[0]).unwrap()).unwrap();
        client.write_all(b"x").unwrap();
        let accepted = loop {
            match accept(listeners[0].as_raw_fd()) {
                Ok(accepted) => break accepted,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        };
        assert_eq!(
            get(&accepted, libc::IPPROTO_TCP, libc::TCP_NODELAY).unwrap(),
            1
        );
        for name in [libc::SO_RCVBUF, libc::SO_SNDBUF] {
            assert_eq!(get(&accepted, libc::SOL_SOCKET, name).unwrap(), 200_000);
        }
    }

    #[test]
    fn a_group_has_one_port_and_a_listener_per_worker() {
        let (listeners, lines) = open_one(|config| {
            config.workers = 3;
            config.reuseport = true;
        });
        let listeners = listeners.unwrap();
        let ports: Vec<_> = listeners
            .iter()
            .map(|listener| local_addr(listener).unwrap().port())
            .collect();
        assert_eq!(ports.len(), 3);
        assert!(ports.iter().all(|port| *port == ports[0] && *port != 0));
        assert!(lines.contains(&"reuseport: on; holds: SO_REUSEPORT 1 on 3 sockets".to_owned()));
        assert!(
            lines
                .iter()
                .any(|line| line.starts_with("backlog: default; holds: "))
        );
        // A second group of the same user is not joined.
        let taken = local_addr(&listeners[0]).unwrap();
        let (second, _) = open_one(|config| {
            config.listen = taken;
            config.reuseport = true;
        });
        let error = second.unwrap_err();
        assert!(matches!(error, Error::PortInUse(_)), "{error}");
        assert!(error.to_string().contains("ss -ltnp"), "{error}");
    }

    #[test]
    fn a_backlog_beyond_the_maximum_is_refused_with_the_sysctl_to_raise() {
        let (listeners, _) = open_one(|config| config.backlog = Some(1 << 30));
        let error = listeners.unwrap_err().to_string();
        assert!(error.contains("net.core.somaxconn"), "{error}");
        let (listeners, lines) = open_one(|config| {
            config.backlog = Some(1 << 30);
            config.fallback = true;
        });
        listeners.unwrap();
        assert!(
            lines
                .iter()
                .any(|line| line.starts_with("backlog: 1073741824; DIFFERS: ")),
            "{lines:?}"
        );
    }
}
