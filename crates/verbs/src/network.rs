//! The network namespace of a capture: that of the judged process, or of this program.
//!
//! Most readings depend on the namespace of the reading thread: sockets, counters, network settings. So a process in a
//! container is captured by a thread that joined its namespace. `/sys` is different: it shows the devices of the namespace
//! that mounted it, so that thread has a mount of its own (`network_namespaces(7)`, sysfs(5)).

use std::fmt::Display;
use std::path::PathBuf;

use rungwise_host::Host;
use rungwise_host::live::Live;
use rungwise_host::namespace::{self, Namespace};
use rungwise_probes::Capture;
use rungwise_probes::unseen::{self, Unseen};

/// Where the network is looked at.
#[derive(Debug, Default)]
pub(crate) struct Network {
    /// The namespace in question, where it had to be joined or lacked a `/sys` of its own.
    joined: Option<Namespace>,
    /// What cannot be seen of it, and why: a reason and what helps, with `; ` between.
    unseen: Option<(Unseen, String)>,
    /// It is that of a process, and not that of this program.
    pub(crate) is_elsewhere: bool,
}

impl Network {
    /// Of the process with this pid; without one, of this program.
    pub(crate) fn for_pid(pid: Option<u32>) -> Self {
        let link = |who: String| PathBuf::from(format!("/proc/{who}/ns/net"));
        let theirs = pid.map(|pid| (pid, namespace::of_process(pid), Live.netns()));
        match theirs {
            Some((pid, Ok(theirs), Ok(own))) if theirs != own => {
                let joined = Namespace::join("of the process", &link(pid.to_string()));
                Self {
                    is_elsewhere: true,
                    ..Self::joined(joined, Unseen::All, |why| {
                        format!(
                            "pid {pid} is in another network namespace that cannot be joined ({why}); run as root: nsenter -n -t {pid} \
                             rungwise check --pid {pid}"
                        )
                    })
                }
            }
            Some((pid, Err(why), _)) => Self {
                unseen: Some((
                    Unseen::All,
                    format!(
                        "the network namespace of pid {pid} is unknown ({why}); run as root; in a container, add CAP_SYS_PTRACE"
                    ),
                )),
                ..Self::default()
            },
            _ if namespace::sys_is_foreign() => {
                let joined = Namespace::join("of this program", &link("thread-self".to_owned()));
                Self::joined(joined, Unseen::Sys, |why| {
                    format!(
                        "/sys shows the devices of another network namespace, and the right one cannot be mounted ({why}); run as root, or \
                         enter with `ip netns exec`, which mounts it"
                    )
                })
            }
            _ => Self::default(),
        }
    }

    fn joined(
        joined: Result<Namespace, impl Display>,
        unseen: Unseen,
        say: impl Fn(String) -> String,
    ) -> Self {
        match joined {
            Ok(joined) => Self {
                joined: Some(joined),
                ..Self::default()
            },
            Err(error) => Self {
                // What helps stands behind the last semicolon of the whole, not in the middle.
                unseen: Some((unseen, say(error.to_string().replace("; ", ", ")))),
                ..Self::default()
            },
        }
    }

    /// The machine with that network.
    pub(crate) fn host(&self) -> &dyn Host {
        match &self.joined {
            Some(joined) => joined,
            None => &Live,
        }
    }

    /// Takes out of a capture made there what is not of that network.
    pub(crate) fn hide(&self, capture: &mut Capture) {
        if let Some((unseen, why)) = &self.unseen {
            unseen::hide(capture, *unseen, why);
        }
    }
}
