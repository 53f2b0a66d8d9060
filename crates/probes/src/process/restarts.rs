//! Services that restart repeatedly: ports whose listening socket is replaced, or temporarily missing.
//!
//! A process that crashes and is restarted, by systemd, Kubernetes or a shell loop, refuses its clients in between and
//! loses the work in progress. It looks healthy in every sample: only its listening socket shows that it is not the
//! same process as before. Source: `inet_csk_listen_start` of `net/ipv4/inet_connection_sock.c`, Linux 6.18.

use std::collections::{BTreeMap, BTreeSet};

use rungwise_model::evidence::{Absence, Evidence, Kind, Origin, Subject};
use rungwise_model::kernel::{Answer, Endpoint, Question};
use rungwise_model::keys;

use crate::capture::Reply;
use crate::net::port;
use crate::{Cost, Need, Probe, Source, When, Window, enter};

const SOURCE: &str = "sock_diag (ss -tlne)";

/// `TCP_LISTEN` of `include/net/tcp_states.h`.
const LISTEN: u8 = 10;

/// Ports reported: those whose socket changed most often.
const MOST: usize = 20;

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "tcp-listener-changes",
    summary: "ports whose listening socket is replaced, for example by a service restart",
    cost: Cost::Cheap,
    needs: &[Need::Root],
    sources: &[
        Source::ask(Question::Tcp, When::Each),
        Source::ask(Question::Tcp, When::Often),
        Source::ask(Question::Owners, When::Once),
    ],
    yields: &[
        &keys::LISTEN_CHANGES,
        &keys::LISTEN_GAP,
        &keys::LISTEN_PROCESS,
    ],
    derive,
    doc: "\
A change is a sample in which none of the previous listening sockets of a port is left and another one listens. The \
gap is the share of the samples without a listening socket, between the first and the last sample that have one. A \
reload that keeps its sockets, or that hands over with SO_REUSEPORT while both are open, is not a change. Samples \
between the full ones are taken if there are at most 1000 TCP sockets; a restart between two samples shows as a change \
without a gap, and so does a handover whose overlap lies between two samples. Sources: net/ipv4/inet_connection_sock.c \
of Linux 6.18; ss(8).",
};

/// The sockets that listen on a port, sample by sample, by inode.
fn listeners(window: &Window<'_>) -> BTreeMap<Endpoint, Vec<BTreeSet<u64>>> {
    let mut ports: BTreeMap<Endpoint, Vec<BTreeSet<u64>>> = BTreeMap::new();
    let mut number = 0;
    for moment in window.often() {
        let Some(Reply::Answer(Answer::Tcp(sockets))) = moment.answers.get("tcp") else {
            continue;
        };
        for socket in sockets.iter().filter(|socket| socket.state == LISTEN) {
            let samples = ports.entry(socket.local).or_default();
            samples.resize_with(number + 1, BTreeSet::new);
            samples[number].insert(socket.inode);
        }
        number += 1;
    }
    ports
}

/// Ports whose listening socket was replaced: changes, samples without one, samples, inodes at the end.
fn changed(window: &Window<'_>) -> Vec<(usize, usize, usize, Endpoint, BTreeSet<u64>)> {
    let ports = listeners(window).into_iter();
    let mut changed: Vec<_> = ports
        .filter_map(|(port, samples)| {
            let first = samples.iter().position(|sockets| !sockets.is_empty())?;
            let mut known = &samples[first];
            let (mut changes, mut without) = (0, 0);
            for sockets in &samples[first + 1..] {
                if sockets.is_empty() {
                    without += 1;
                    continue;
                }
                changes += usize::from(known.is_disjoint(sockets));
                known = sockets;
            }
            let count = samples.len() - first;
            (changes > 0).then(|| (changes, without, count, port, known.clone()))
        })
        .collect();
    changed.sort_by_key(|(changes, _, _, port, _)| (std::cmp::Reverse(*changes), *port));
    changed.truncate(MOST);
    changed
}

/// Inodes of the sockets whose processes are looked up.
pub(super) fn sought(window: &Window<'_>) -> BTreeSet<u64> {
    let changed = changed(window).into_iter();
    changed.flat_map(|(.., inodes)| inodes).collect()
}

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    if let Err(why) = window.answers("tcp") {
        return evidence.absent(PROBE.yields, &why, SOURCE);
    }
    let owners = port::owners(window).ok();
    for (changes, without, count, address, inodes) in changed(window) {
        let subject = || Subject::new(Kind::Port, format!("tcp/{address}"));
        let line = format!(
            "{address}: another listening socket {changes} times, none in {without} of {count} samples"
        );
        let origin = || Origin::new(SOURCE, line.clone());
        evidence.number(&keys::LISTEN_CHANGES, subject(), changes as f64, origin());
        let gap = without as f64 / count as f64;
        evidence.number(&keys::LISTEN_GAP, subject(), gap, origin());
        let owner = inodes.iter().find_map(|inode| owners?.get(inode));
        if let Some(owner) = owner {
            let name = format!("{} {}", owner.name, owner.pid);
            evidence.text(&keys::LISTEN_PROCESS, subject(), name, origin());
        }
    }
    let why = match window.moments().len() {
        0 | 1 => Absence::because("the window has only one sample")
            .remedy("observe for some seconds: --for 10s"),
        _ => Absence::none("every port kept its listening socket"),
    };
    enter::absent_if_unset(evidence, PROBE.yields, &why, SOURCE);
}

#[cfg(test)]
mod tests {
    use rungwise_model::kernel::TcpSocket;

    use super::*;
    use crate::capture::{Capture, Moment};

    fn changes(samples: &[&[u64]]) -> Option<(f64, f64)> {
        let listener = |inode: &u64| TcpSocket {
            local: Endpoint::new([0, 0, 0, 0].into(), 80),
            state: LISTEN,
            inode: *inode,
            ..TcpSocket::default()
        };
        let moments = samples.iter().enumerate().map(|(at, inodes)| {
            let answer = Answer::Tcp(inodes.iter().map(listener).collect());
            Moment {
                at_s: at as f64,
                answers: [("tcp".to_owned(), Reply::Answer(answer))].into(),
                ..Moment::default()
            }
        });
        let capture = Capture {
            moments: moments.collect(),
            ..Capture::default()
        };
        let mut evidence = Evidence::over(4.0);
        derive(&Window::of(&capture), &mut evidence);
        let port = Subject::new(Kind::Port, "tcp/0.0.0.0:80");
        let number = |key| evidence.quantity(key, &port).ok().map(|found| found.value);
        Some((number(&keys::LISTEN_CHANGES)?, number(&keys::LISTEN_GAP)?))
    }

    #[test]
    fn a_port_with_another_socket_than_before_has_changed_hands() {
        assert_eq!(changes(&[&[1], &[], &[2], &[3]]), Some((2.0, 0.25)));
        // It stays, is handed over, or ends.
        assert_eq!(changes(&[&[1], &[1], &[1]]), None);
        assert_eq!(changes(&[&[1], &[1, 2], &[2]]), None);
        assert_eq!(changes(&[&[1], &[1], &[]]), None);
    }
}
