//! Why the kernel cannot be observed. Each message ends with a remedy after a semicolon: reports show the remedy
//! for missing evidence separately.

use std::io;

use rungwise_host::Host;

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A variant per case that a caller treats differently.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel does not permit this user to observe the machine.
    #[error(
        "cannot {tried}: not permitted (sysctl kernel.perf_event_paranoid is {paranoid}); \
         run as root, or give the container CAP_PERFMON and CAP_SYSLOG"
    )]
    NotPermitted {
        /// Verb and object.
        tried: String,
        /// Value of the sysctl, or why it is unknown.
        paranoid: String,
    },
    /// Samples are possible, but the functions cannot be named.
    #[error(
        "cannot name kernel functions: /proc/kallsyms shows no addresses (sysctl kernel.kptr_restrict is {restrict}); run as \
         root, and if it is 2, set it to 1"
    )]
    Nameless {
        /// Value of the sysctl, or why it is unknown.
        restrict: String,
    },
    /// The kernel was built without the feature.
    #[error("cannot {tried}: {why}; use a kernel that has it")]
    Missing {
        /// Verb and object.
        tried: String,
        /// What it lacks.
        why: String,
    },
    /// The kernel has perf, but not this event.
    #[error(
        "cannot {tried}: {source}; this kernel, or a sandbox or hypervisor around it, does not provide the event: run outside of \
         it, or on another kernel"
    )]
    NotOffered {
        /// Verb and object.
        tried: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The kernel refused, and there is a remedy.
    #[error("cannot {tried}: {source}; {remedy}")]
    Refused {
        /// Verb and object.
        tried: String,
        /// The kernel's answer.
        source: io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// The kernel refused for a reason of its own.
    #[error("cannot {tried}: {source}")]
    System {
        /// Verb and object.
        tried: String,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`: names what was tried.
    pub(crate) fn system(tried: &str) -> impl FnOnce(io::Error) -> Self {
        let tried = tried.to_owned();
        |source| Self::System { tried, source }
    }

    /// What a refusal of `perf_event_open` means on this host.
    pub(crate) fn of_perf(host: &dyn Host, tried: &str, source: io::Error) -> Self {
        let tried = tried.to_owned();
        match source.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => Self::NotPermitted {
                tried,
                paranoid: sysctl(host, "perf_event_paranoid"),
            },
            Some(libc::ENOSYS) => Self::Missing {
                tried,
                why: "this kernel has no perf_event_open (CONFIG_PERF_EVENTS)".to_owned(),
            },
            // No such event or PMU, no interrupt to sample with, or flags that are unknown.
            Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::ENXIO | libc::EINVAL) => {
                Self::NotOffered { tried, source }
            }
            errno => match errno.and_then(remedy) {
                Some(remedy) => Self::Refused {
                    tried,
                    source,
                    remedy,
                },
                None => Self::System { tried, source },
            },
        }
    }
}

/// What helps against an answer of `perf_event_open(2)`.
fn remedy(errno: i32) -> Option<&'static str> {
    Some(match errno {
        libc::EMFILE | libc::ENFILE => {
            "raise the limit of open files (ulimit -n): each CPU needs seven"
        }
        libc::EBUSY => "stop the program that reserves the performance counters",
        _ => return None,
    })
}

/// Value of a sysctl below `kernel`, for messages.
pub(crate) fn sysctl(host: &dyn Host, name: &str) -> String {
    host.text(format!("/proc/sys/kernel/{name}").as_ref())
        .unwrap_or_else(|error| format!("not readable: {error}"))
}

#[cfg(test)]
mod tests {
    use rungwise_host::recorded::Recorded;

    use super::*;

    fn message(errno: i32) -> String {
        let host = Recorded::new("this host", 1).file("/proc/sys/kernel/perf_event_paranoid", "4");
        let source = io::Error::from_raw_os_error(errno);
        Error::of_perf(&host, "sample kernel stacks", source).to_string()
    }

    #[test]
    fn a_refusal_names_the_sysctl_its_value_and_the_remedy() {
        for errno in [libc::EACCES, libc::EPERM] {
            let text = message(errno);
            assert!(
                text.starts_with("cannot sample kernel stacks: not permitted"),
                "{text}"
            );
            assert!(text.contains("perf_event_paranoid is 4"), "{text}");
            assert!(text.contains("; run as root"), "{text}");
        }
    }

    #[test]
    fn a_kernel_without_perf_is_not_a_matter_of_permission() {
        assert!(message(libc::ENOSYS).contains("CONFIG_PERF_EVENTS"));
        assert!(message(libc::EIO).ends_with("(os error 5)"));
    }

    #[test]
    fn an_event_that_is_not_offered_here_has_a_remedy() {
        for errno in [libc::ENOENT, libc::EOPNOTSUPP] {
            let text = message(errno);
            // The remedy is what stands behind the last semicolon.
            let (_, remedy) = text.rsplit_once("; ").unwrap();
            assert!(remedy.starts_with("this kernel, or a sandbox"), "{text}");
        }
        assert!(
            message(libc::EMFILE).contains("Too many open files (os error 24); raise the limit")
        );
    }

    #[test]
    fn an_unknown_sysctl_is_not_a_number() {
        let text = sysctl(&Recorded::new("this host", 1), "perf_event_paranoid");
        assert!(text.starts_with("not readable"), "{text}");
    }
}
