//! Questions that the kernel answers where no file does: one module per question, in the namespace of the calling
//! thread.
//!
//! Nothing here changes a machine. A question may load the kernel module that answers it (`tcp_diag`), as
//! `ss` does; rule tables are never created, see [`crate::nft`].

mod audit;
mod devices;
mod mounts;
mod namespaces;
mod neighbours;
mod owners;
mod port_filter;
mod sockets;
mod unix;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use rungwise_model::kernel::{Answer, Mount, Owner, Question, TcpSocket};
use rungwise_model::service::ServicePort;

use crate::{nft, qdisc};

/// Puts the question to the kernel.
pub(crate) fn answer(question: Question) -> io::Result<Answer> {
    Ok(match question {
        Question::Tcp => Answer::Tcp(sockets::tcp()?),
        Question::Udp => Answer::Udp(sockets::udp()?),
        Question::Unix => Answer::Unix(unix::listeners()?),
        Question::Devices => Answer::Devices(devices::devices()?),
        Question::Qdiscs => Answer::Qdiscs(qdisc::list()?),
        Question::Neighbours => Answer::Neighbours(neighbours::tables()?),
        Question::Namespaces => Answer::Namespaces(namespaces::all()?),
        Question::Netfilter => Answer::Netfilter(nft::chains()?),
        Question::Audit => Answer::Audit(audit::status()?),
        Question::Mounts => Answer::Mounts(mounts::all(&[])?),
        Question::Owners => Answer::Owners(owners::all()?),
    })
}

/// Who has these sockets open, by inode.
pub(crate) fn owners_of(sockets: &BTreeSet<u64>) -> io::Result<BTreeMap<u64, Owner>> {
    owners::by_inode(sockets)
}

/// The sockets that this process has open, by inode.
pub(crate) fn sockets_of(pid: u32) -> io::Result<BTreeSet<u64>> {
    owners::of_process(pid)
}

/// The mounted file systems, with those that only these processes see.
pub(crate) fn mounts_of(processes: &[u32]) -> io::Result<Vec<Mount>> {
    mounts::all(processes)
}

/// Inodes of the sockets that listen on a path.
pub(crate) fn unix_listeners(path: &Path) -> io::Result<BTreeSet<u64>> {
    unix::listeners_on(path)
}

/// The TCP sockets that are not in `TIME_WAIT`.
pub(crate) fn tcp_in_use() -> io::Result<Vec<TcpSocket>> {
    sockets::tcp_in_use()
}

/// The TCP sockets of services that are not in `TIME_WAIT`.
pub(crate) fn tcp_of(services: &[ServicePort]) -> io::Result<Vec<TcpSocket>> {
    sockets::tcp_of(services)
}

/// The other network namespaces of this machine: what leads to each, by inode.
pub(crate) fn other_networks() -> io::Result<BTreeMap<u64, PathBuf>> {
    namespaces::others()
}

/// The TCP sockets that listen, and of the others these.
pub(crate) fn tcp_among(wanted: &[TcpSocket]) -> io::Result<Vec<TcpSocket>> {
    sockets::tcp_among(wanted)
}
