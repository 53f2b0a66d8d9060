//! Why a server did not start.
//!
//! The kernel's answer is part of the sentence, before the remedy, and so is no `source` that a reporter
//! would print a second time.

use std::fmt;
use std::io;
use std::net::SocketAddr;

/// Why a server did not start, in variants that a caller would treat differently.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration contradicts itself; no kernel could do it.
    #[error("cannot serve this configuration: {0}")]
    Config(String),
    /// The port is in use. A group that other processes joined is not joined: steering counts members.
    #[error(
        "cannot listen on {0}: the port is in use; stop the process that holds it (see `{listing}`) or choose another port",
        listing = .0.transport.listing()
    )]
    PortInUse(Endpoint),
    /// Binding failed for another reason.
    #[error("cannot listen on {at}: {answer}; {}", bind_remedy(answer))]
    Bind {
        /// What was to be bound.
        at: Endpoint,
        /// The kernel's answer.
        answer: io::Error,
    },
    /// The kernel is too old or was built without this.
    #[error(
        "cannot enable {switch}: this kernel lacks {feature}, which Linux has since {since} ({answer}); omit the switch or allow the fallback"
    )]
    Unsupported {
        /// The switch.
        switch: &'static str,
        /// What the kernel lacks.
        feature: &'static str,
        /// First release that has it.
        since: &'static str,
        /// The kernel's answer.
        answer: io::Error,
    },
    /// The kernel has the feature but refuses it for this process or this value.
    #[error("cannot set {switch} to {wanted}: {answer}; {remedy}, or allow the fallback")]
    Refused {
        /// The switch.
        switch: &'static str,
        /// The requested value.
        wanted: String,
        /// The kernel's answer.
        answer: io::Error,
        /// How to get it accepted.
        remedy: &'static str,
    },
    /// The kernel accepted the switch and did something else.
    #[error(
        "cannot set {switch} to {wanted}: it reads back as {actual}; {remedy}, or allow the fallback"
    )]
    NotTaken {
        /// The switch.
        switch: &'static str,
        /// The requested value.
        wanted: String,
        /// The value that reads back.
        actual: String,
        /// How to get it accepted.
        remedy: &'static str,
    },
    /// A worker thread could not be started.
    #[error(
        "cannot start worker {worker}: {answer}; lower the number of workers or raise the limits on threads and memory"
    )]
    Worker {
        /// Index of the worker.
        worker: usize,
        /// The kernel's answer.
        answer: io::Error,
    },
}

/// Where a server listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The transport.
    pub transport: Transport,
    /// Address and port.
    pub address: SocketAddr,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = match self.transport {
            Transport::Udp => "udp",
            Transport::Tcp => "tcp",
        };
        write!(f, "{transport} {}", self.address)
    }
}

/// What carries requests and replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Datagrams.
    Udp,
    /// Connections.
    Tcp,
}

impl Transport {
    /// The command that lists who listens.
    fn listing(self) -> &'static str {
        match self {
            Self::Udp => "ss -lunp",
            Self::Tcp => "ss -ltnp",
        }
    }
}

fn bind_remedy(answer: &io::Error) -> &'static str {
    match answer.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => {
            "raise the limit on open files (`ulimit -n`), or use fewer workers"
        }
        Some(libc::EACCES) => "ports below 1024 need root or CAP_NET_BIND_SERVICE",
        Some(libc::EADDRNOTAVAIL) => "check that the address belongs to this host (`ip addr`)",
        Some(libc::EAFNOSUPPORT) => {
            "this kernel has no such address family; listen on another address"
        }
        _ => "check the address and the port",
    }
}

/// A kernel feature: what to call it, and since when it exists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Feature {
    pub(crate) switch: &'static str,
    pub(crate) name: &'static str,
    pub(crate) since: &'static str,
    /// What to do when the kernel has it and refuses.
    pub(crate) remedy: &'static str,
}

impl Feature {
    /// The error for a refusal: which of "too old" and "not allowed" it was follows from the number.
    pub(crate) fn refused(self, wanted: impl Into<String>, answer: io::Error) -> Error {
        match answer.raw_os_error() {
            Some(libc::ENOPROTOOPT | libc::ENOSYS | libc::EOPNOTSUPP) => self.missing(answer),
            _ => self.forbidden(wanted, answer),
        }
    }

    /// The error for a kernel that has it, whatever the number says.
    pub(crate) fn forbidden(self, wanted: impl Into<String>, answer: io::Error) -> Error {
        Error::Refused {
            switch: self.switch,
            wanted: wanted.into(),
            remedy: match answer.raw_os_error() {
                Some(libc::ENODEV) => "name a device of this network namespace (`ip link`)",
                _ => self.remedy,
            },
            answer,
        }
    }

    /// The error for a kernel without it, where the number alone does not say so.
    pub(crate) fn missing(self, answer: io::Error) -> Error {
        Error::Unsupported {
            switch: self.switch,
            feature: self.name,
            since: self.since,
            answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEATURE: Feature = Feature {
        switch: "gro",
        name: "UDP_GRO",
        since: "5.0",
        remedy: "run as root",
    };

    #[test]
    fn the_remedy_goes_with_what_the_kernel_answered() {
        let text = |number| {
            let at = Endpoint {
                transport: Transport::Udp,
                address: SocketAddr::from(([127, 0, 0, 1], 53)),
            };
            let answer = io::Error::from_raw_os_error(number);
            Error::Bind { at, answer }.to_string()
        };
        assert!(
            text(libc::EMFILE).contains("ulimit -n"),
            "{}",
            text(libc::EMFILE)
        );
        assert!(
            text(libc::EACCES).contains("below 1024"),
            "{}",
            text(libc::EACCES)
        );
        let away = FEATURE.refused("nosuch", io::Error::from_raw_os_error(libc::ENODEV));
        assert!(away.to_string().contains("ip link"), "{away}");
    }

    #[test]
    fn a_missing_feature_is_named_with_its_release() {
        let error = FEATURE.refused("on", io::Error::from_raw_os_error(libc::ENOPROTOOPT));
        let text = error.to_string();
        assert!(
            text.contains("lacks UDP_GRO, which Linux has since 5.0"),
            "{text}"
        );
    }

    #[test]
    fn a_refusal_says_what_would_let_it_through() {
        let error = FEATURE.refused("on", io::Error::from_raw_os_error(libc::EPERM));
        assert!(error.to_string().contains("run as root"), "{error}");
    }
}
