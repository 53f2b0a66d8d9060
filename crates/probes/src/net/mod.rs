//! Protocols, sockets, packet filters and other parts of the packet path.
//!
//! Each file is one probe, named after its source; `rates` contains the arithmetic shared with the device probes,
//! `port` the names of sockets and their owners.

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

/// Inodes of the sockets whose processes the probes report: the others are not worth the search.
pub(crate) fn sought(window: &Window<'_>) -> BTreeSet<u64> {
    let (tcp, udp) = (tcp::sought(window), udp::sought(window));
    tcp.into_iter()
        .chain(udp)
        .chain(unix::sought(window))
        .collect()
}

/// The last full sample found that the file does not exist: for a file of a module, that the module is not loaded.
/// Other failures, a file that was not read, and a missing file in an invisible folder do not count.
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
