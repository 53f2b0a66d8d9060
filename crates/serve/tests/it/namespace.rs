//! Network namespaces that live on a thread each and vanish with it: no names, nothing to clean up.
#![allow(unsafe_code, reason = "unshare has no safe door in std")]

use rungwise_testkit::skipped;
use std::process::Command;
use std::sync::mpsc::{self, Sender};

type Job = Box<dyn FnOnce() + Send>;

/// A namespace with a thread inside.
pub(crate) struct Namespace {
    jobs: Sender<Job>,
    /// Names the namespace to others of this process.
    path: String,
}

impl Namespace {
    /// Nothing, loudly, where namespaces may not be made.
    pub(crate) fn new() -> Option<Self> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let (ready, inside) = mpsc::channel();
        std::thread::spawn(move || {
            // SAFETY: takes a number; concerns this thread alone.
            let made = unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0;
            // SAFETY: take nothing, return numbers.
            let (process, thread) = unsafe { (libc::getpid(), libc::gettid()) };
            let path = format!("/proc/{process}/task/{thread}/ns/net");
            ready.send(made.then_some(path)).unwrap();
            for job in queue {
                job();
            }
        });
        let path = inside.recv().unwrap();
        if path.is_none() {
            skipped("making a network namespace needs root (CAP_SYS_ADMIN)");
        }
        path.map(|path| Self { jobs, path })
    }

    /// Two namespaces joined by a veth pair: `veth0` with 10.9.0.1, `fd09::1` and `fe80::9:1` in the first, `veth1`
    /// with 10.9.0.2, `fd09::2` and `fe80::9:2` in the second.
    pub(crate) fn pair() -> Option<(Self, Self)> {
        let (first, second) = (Self::new()?, Self::new()?);
        let peer = second.path.clone();
        first.run(move || {
            ip(&[
                "link", "add", "veth0", "type", "veth", "peer", "name", "veth1",
            ]);
            ip(&["link", "set", "veth1", "netns", &peer]);
        });
        for (namespace, device, host) in [(&first, "veth0", "1"), (&second, "veth1", "2")] {
            namespace.run(move || {
                ip(&["link", "set", "lo", "up"]);
                ip(&["addr", "add", &format!("10.9.0.{host}/24"), "dev", device]);
                for six in [format!("fd09::{host}/64"), format!("fe80::9:{host}/64")] {
                    ip(&["addr", "add", &six, "dev", device, "nodad"]);
                }
                ip(&["link", "set", device, "up"]);
            });
        }
        Some((first, second))
    }

    /// A file that stands for the namespace, for ip(8).
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Runs `job` inside and returns what it returns.
    pub(crate) fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (send, result) = mpsc::channel();
        self.jobs
            .send(Box::new(move || drop(send.send(job()))))
            .expect("the thread runs as long as its namespace is held");
        result.recv().expect("a job that panicked has printed why")
    }
}

/// Runs ip(8), which must succeed.
pub(crate) fn ip(arguments: &[&str]) {
    let mut child = crate::client::spawn("iproute2", Command::new("ip").args(arguments));
    let status = child.wait().unwrap();
    assert!(status.success(), "ip {}", arguments.join(" "));
}
