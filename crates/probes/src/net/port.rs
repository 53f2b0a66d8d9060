//! Names of sockets in evidence, and their owners.

use std::collections::BTreeMap;

use rungwise_model::evidence::{Absence, Evidence, Key, Kind, Origin, Subject};
use rungwise_model::kernel::{Answer, Endpoint, Owner};

use crate::window::misplaced;
use crate::{Window, enter};

/// Sockets of which keys are yielded, of each kind of subject; there may be 100,000.
pub(super) const MOST: usize = 50;

/// `port/tcp/0.0.0.0:80`
pub(super) fn port(protocol: &str, local: Endpoint) -> Subject {
    Subject::new(Kind::Port, format_args!("{protocol}/{local}"))
}

/// `connection/10.0.0.1:20880>10.0.0.2:40112`
pub(super) fn connection(local: Endpoint, remote: Endpoint) -> Subject {
    Subject::new(Kind::Connection, format_args!("{local}>{remote}"))
}

/// Owners by inode of the socket, or why they are unknown.
pub(crate) fn owners<'a>(window: &Window<'a>) -> Result<&'a BTreeMap<u64, Owner>, Absence> {
    match window.answer("owners")? {
        Answer::Owners(owners) => Ok(owners),
        other => Err(misplaced("owners", other)),
    }
}

/// Yields `name pid` as the owner of the socket, or why it is unknown.
pub(super) fn owner(
    evidence: &mut Evidence,
    key: &'static Key,
    subject: &Subject,
    owners: &Result<&BTreeMap<u64, Owner>, Absence>,
    inode: u64,
) {
    let found = owners.as_ref().map_err(Clone::clone).and_then(|owners| {
        owners.get(&inode).ok_or_else(|| match inode {
            0 => Absence::because(
                "no process has it open: it is not accepted yet, or already closed",
            ),
            _ => Absence::because("no process with readable descriptors has it open")
                .remedy("run as root"),
        })
    });
    let text = found.map(|owner| format!("{} {}", owner.name, owner.pid));
    let origin = Origin::new("/proc/PID/fd", format!("socket:[{inode}]"));
    enter::text(
        evidence,
        key,
        subject.clone(),
        text.as_deref().map_err(Clone::clone),
        origin,
    );
}
