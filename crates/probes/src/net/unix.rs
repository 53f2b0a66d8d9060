//! Listening Unix sockets: connections that wait to be accepted, and how often the queue is full.
//!
//! PHP-FPM, uWSGI, Gunicorn and local databases use Unix sockets. The kernel does not count connections that find the
//! queue full, so the queue is sampled. Source: `unix_stream_connect` of `net/unix/af_unix.c`, Linux 6.18.

use std::collections::{BTreeMap, BTreeSet};

use rungwise_model::evidence::{Absence, Evidence, Kind, Origin, Subject};
use rungwise_model::kernel::{Answer, Question, UnixListener};
use rungwise_model::keys;

use super::port;
use crate::capture::Reply;
use crate::{Cost, Need, Probe, Source, When, Window, enter};

const SOURCE: &str = "sock_diag (ss -xl)";

/// Listeners kept: those that were full most often, then those with the longest queues.
const MOST: usize = 20;

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "unix-sockets",
    summary: "listening Unix sockets, and how full their queues are",
    cost: Cost::Cheap,
    needs: &[Need::Root],
    sources: &[
        Source::ask(Question::Unix, When::Each),
        Source::ask(Question::Unix, When::Often),
        Source::ask(Question::Owners, When::Once),
    ],
    yields: &[
        &keys::UNIX_ACCEPTS,
        &keys::UNIX_BACKLOG,
        &keys::UNIX_FULL,
        &keys::UNIX_PROCESS,
        &keys::UNIX_WAITING,
    ],
    derive,
    doc: "\
Listening Unix sockets of this network namespace at which a connection waited in any sample. A queue is full if more \
connections wait than its backlog. The next caller then sleeps until there is room, or gets EAGAIN at once if it does \
not block, like nginx. Up to 210 samples are taken between the full ones if there are at most 300 UDP and 1000 TCP sockets. \
Callers in the queue are distinguished by their inodes, up to 512 waiting. Processes of other users are visible to \
root only. Sources: net/unix/af_unix.c and net/unix/diag.c of Linux 6.18; ss(8).",
};

/// Marks a caller that gave up and is still in the queue.
const GONE: u32 = 0;

/// One listener over the window.
struct Course<'a> {
    /// Waiting connections in each sample, in order.
    waiting: Vec<u32>,
    callers: Vec<&'a [u32]>,
    full: usize,
    last: &'a UnixListener,
}

impl Course<'_> {
    /// Times that a connection was accepted: the queue is shorter than before, or begins with other callers.
    fn accepts(&self) -> usize {
        let lengths = self.waiting.windows(2);
        let callers = self.callers.windows(2);
        let accepted = |(lengths, callers): (&[u32], &[&[u32]])| {
            let [before, now] = callers else { return false };
            let same = |(before, now): (&u32, &u32)| before == now || *now == GONE;
            // Up to so many callers are known.
            let is_known = |at: usize| callers[at].len() as u32 == lengths[at];
            lengths[1] < lengths[0]
                || is_known(0) && is_known(1) && !before.iter().zip(*now).all(same)
        };
        lengths.zip(callers).filter(|two| accepted(*two)).count()
    }

    fn most(&self) -> u32 {
        self.waiting.iter().copied().max().unwrap_or(0)
    }
}

/// Listeners with waiting connections, the worst first.
fn busy<'a>(window: &Window<'a>) -> Vec<Course<'a>> {
    let samples: Vec<&'a [UnixListener]> = window
        .often()
        .into_iter()
        .filter_map(|moment| match moment.answers.get("unix") {
            Some(Reply::Answer(Answer::Unix(listeners))) => Some(listeners.as_slice()),
            _ => None,
        })
        .collect();
    let listeners = samples.iter().copied().flatten();
    let waited = listeners.filter(|listener| listener.waiting > 0);
    let last: BTreeMap<u64, &'a UnixListener> =
        waited.map(|listener| (listener.inode, listener)).collect();
    let course = |last: &'a UnixListener| {
        let mut course = Course {
            waiting: Vec::new(),
            callers: Vec::new(),
            full: 0,
            last,
        };
        for sample in &samples {
            let listed = sample.iter().find(|other| other.inode == last.inode);
            // A sample between the full ones lists only listeners with waiting connections.
            course
                .waiting
                .push(listed.map_or(0, |listed| listed.waiting));
            course
                .callers
                .push(listed.map_or(&[], |listed| &listed.callers));
            course.full += usize::from(listed.is_some_and(|it| it.waiting > it.backlog));
        }
        course
    };
    let mut busy: Vec<_> = last.into_values().map(course).collect();
    busy.sort_by(|a, b| b.full.cmp(&a.full).then(b.most().cmp(&a.most())));
    busy.truncate(MOST);
    busy
}

/// Inodes of the sockets whose processes are looked up.
pub(super) fn sought(window: &Window<'_>) -> BTreeSet<u64> {
    let busy = busy(window);
    busy.iter().map(|course| course.last.inode).collect()
}

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    if let Err(why) = window.answers("unix") {
        return evidence.absent(PROBE.yields, &why, SOURCE);
    }
    let owners = port::owners(window);
    for course in busy(window) {
        let listener = course.last;
        let named = if listener.name.is_empty() {
            format!("inode {}", listener.inode)
        } else {
            listener.name.clone()
        };
        let subject = || Subject::new(Kind::Port, format!("unix:{named}"));
        let count = course.waiting.len();
        let line = format!(
            "{named}: Recv-Q above 0 in {} of {count} samples, {} at most, Send-Q {}",
            course
                .waiting
                .iter()
                .filter(|waiting| **waiting > 0)
                .count(),
            course.most(),
            listener.backlog
        );
        let origin = || Origin::new(SOURCE, line.clone());
        let mean = course.waiting.iter().map(|n| f64::from(*n)).sum::<f64>() / count as f64;
        let full = course.full as f64 / count as f64;
        let backlog = f64::from(listener.backlog);
        evidence.number(&keys::UNIX_BACKLOG, subject(), backlog, origin());
        let accepts = course.accepts() as f64;
        evidence.number(&keys::UNIX_ACCEPTS, subject(), accepts, origin());
        evidence.number(&keys::UNIX_FULL, subject(), full, origin());
        evidence.number(&keys::UNIX_WAITING, subject(), mean, origin());
        let owner = owners.as_ref().ok();
        if let Some(owner) = owner.and_then(|owners| owners.get(&listener.inode)) {
            let name = format!("{} {}", owner.name, owner.pid);
            evidence.text(&keys::UNIX_PROCESS, subject(), name, origin());
        }
    }
    let none = Absence::none("no connection waits at a Unix socket");
    enter::absent_if_unset(evidence, PROBE.yields, &none, SOURCE);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{Capture, Moment};

    fn moment(at_s: f64, waiting: u32) -> Moment {
        let listener = |inode, waiting| UnixListener {
            name: if waiting > 0 {
                format!("/run/{inode}.sock")
            } else {
                String::new()
            },
            inode,
            waiting,
            backlog: 4,
            callers: (0..waiting)
                .map(|caller| 1 + caller + at_s as u32)
                .collect(),
        };
        let answer = Answer::Unix(vec![listener(7, waiting), listener(8, 0)]);
        Moment {
            at_s,
            answers: [("unix".to_owned(), Reply::Answer(answer))].into(),
            ..Moment::default()
        }
    }

    #[test]
    fn a_queue_is_full_where_more_wait_than_its_backlog() {
        let capture = Capture {
            moments: vec![moment(0.0, 4), moment(4.0, 0)],
            samples: vec![moment(1.0, 5), moment(2.0, 5)],
            ..Capture::default()
        };
        let mut evidence = Evidence::over(4.0);
        derive(&Window::of(&capture), &mut evidence);
        let subject = Subject::new(Kind::Port, "unix:/run/7.sock");
        let tenths = |key| (10.0 * evidence.quantity(key, &subject).unwrap().value) as i64;
        assert_eq!(tenths(&keys::UNIX_FULL), 5);
        assert_eq!(tenths(&keys::UNIX_WAITING), 35);
        // Each queue begins with other callers than the one before; at the end it is empty.
        assert_eq!(tenths(&keys::UNIX_ACCEPTS), 30);
        assert_eq!(evidence.each(&keys::UNIX_FULL).unwrap().len(), 1);
    }

    #[test]
    fn callers_that_come_and_give_up_are_not_accepted() {
        let sample = |at_s: f64, callers: &[u32]| {
            let listener = UnixListener {
                name: "/run/hung.sock".to_owned(),
                inode: 7,
                waiting: callers.len() as u32,
                backlog: 4,
                callers: callers.to_vec(),
            };
            Moment {
                at_s,
                answers: [(
                    "unix".to_owned(),
                    Reply::Answer(Answer::Unix(vec![listener])),
                )]
                .into(),
                ..Moment::default()
            }
        };
        let accepts = |moments: Vec<Moment>| {
            let capture = Capture {
                moments,
                ..Capture::default()
            };
            let mut evidence = Evidence::over(4.0);
            derive(&Window::of(&capture), &mut evidence);
            let subject = Subject::new(Kind::Port, "unix:/run/hung.sock");
            evidence
                .quantity(&keys::UNIX_ACCEPTS, &subject)
                .unwrap()
                .value as u64
        };
        assert_eq!(
            accepts(vec![
                sample(0.0, &[3]),
                sample(2.0, &[3, 4]),
                sample(4.0, &[0, 4, 5])
            ]),
            0
        );
        assert_eq!(
            accepts(vec![
                sample(0.0, &[3, 4]),
                sample(2.0, &[4, 5]),
                sample(4.0, &[5])
            ]),
            2
        );
    }
}
