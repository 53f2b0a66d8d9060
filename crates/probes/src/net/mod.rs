//! Protocols, sockets, packet filters and what else a packet meets in the kernel.
//!
//! Each file is one probe, named after its source; `rates` holds the arithmetic that they and the probes of
//! devices share, `port` the names of sockets and their owners.

pub(crate) mod audit;
pub(crate) mod conntrack;
pub(crate) mod losses;
pub(crate) mod namespaces;
pub(crate) mod neighbours;
pub(crate) mod netfilter;
pub(crate) mod port;
pub(crate) mod protocols;
pub(crate) mod rates;
pub(crate) mod selinux;
pub(crate) mod sockstat;
pub(crate) mod sysctl;
pub(crate) mod tcp;
pub(crate) mod udp;
pub(crate) mod unix;

use std::collections::BTreeSet;

use crate::Window;
use crate::capture::Raw;
use crate::window::shows;

/// Inodes of the sockets whose processes the probes tell: the others are not worth the search.
pub(crate) fn sought(window: &Window<'_>) -> BTreeSet<u64> {
    let (tcp, udp) = (tcp::sought(window), udp::sought(window));
    tcp.into_iter()
        .chain(udp)
        .chain(unix::sought(window))
        .collect()
}

/// The last look found that there is no such file: for a file that a module brings, that the module is not
/// there. Other failures, a file that nobody tried to read, and a missing one where nothing of its folder can be
/// seen say nothing of the kind.
fn is_not_there(window: &Window<'_>, path: &str) -> bool {
    let Some(last) = window.moments().last() else {
        return false;
    };
    let gone = matches!(last.files.get(path), Some(Raw::Failed { failed }) if failed == "ENOENT");
    let folder = if path.starts_with("/proc/sys/") {
        "/proc/sys/net/"
    } else {
        "/proc/net/"
    };
    gone && shows(last, folder)
}
