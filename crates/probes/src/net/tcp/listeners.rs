//! Accept queues: waiting connections at each listening address, and the limit.

use std::collections::BTreeMap;

use rungwise_model::evidence::{Absence, Evidence, Origin, Subject};
use rungwise_model::kernel::{Endpoint, TcpSocket};
use rungwise_model::keys;

use super::{SOURCE, Sample, state};
use crate::net::port::{self, MOST};
use crate::net::rates;
use crate::{Rate, enter};

/// One address. With `SO_REUSEPORT` it has several sockets, each with its own queue: the fullest counts.
struct Listener<'a> {
    /// The socket with the fullest queue over all samples, and its time.
    fullest: &'a TcpSocket,
    /// Connections in the fullest queue in each sample.
    course: Vec<f64>,
    /// The same as a share of what that queue can hold.
    shares: Vec<f64>,
    /// Drops at each socket, by inode, with the times of the samples.
    dropped: BTreeMap<u64, Vec<(f64, u32)>>,
}

impl Listener<'_> {
    /// Drops per second at all sockets that exist in at least two samples.
    fn rates(&self) -> Vec<Rate> {
        let courses = self.dropped.values();
        courses
            .filter_map(|course| rates::of_course(&rates::unwrapped(course)))
            .collect()
    }

    fn dropped(&self) -> f64 {
        self.rates().iter().map(|rate| rate.per_s).sum()
    }

    fn tell_drops(&self, subject: &Subject, evidence: &mut Evidence) {
        let key = &keys::TCP_LISTEN_SOCKET_DROPS;
        let rates = self.rates();
        if rates.is_empty() {
            let why = "it was in one sample only, or the kernel reports no drops for it";
            let origin = Origin::new(SOURCE, "");
            let why = Absence::because(why);
            return enter::absent(evidence, key, subject.clone(), why, origin);
        }
        let grown: f64 = rates.iter().map(|rate| rate.delta).sum();
        let line = format!("drops of its listening sockets (d of skmem) grew by {grown}");
        let origin = Origin::new(SOURCE, line);
        evidence.number(key, subject.clone(), self.dropped(), origin);
    }
}

pub(super) fn add(samples: &[Sample<'_>], evidence: &mut Evidence) {
    let mut listeners: BTreeMap<Endpoint, Listener<'_>> = BTreeMap::new();
    for (number, (at, sockets)) in samples.iter().enumerate() {
        let listening = sockets
            .iter()
            .filter(|socket| socket.state == state::LISTEN);
        for socket in listening {
            let listener = listeners.entry(socket.local).or_insert_with(|| Listener {
                fullest: socket,
                course: Vec::new(),
                shares: Vec::new(),
                dropped: BTreeMap::new(),
            });
            if filled(socket) > filled(listener.fullest) {
                listener.fullest = socket;
            }
            if let Some(memory) = socket.memory {
                let course = listener.dropped.entry(socket.inode).or_default();
                course.push((*at, memory.drops));
            }
            listener.course.resize(number + 1, 0.0);
            let waiting = &mut listener.course[number];
            *waiting = waiting.max(f64::from(socket.rqueue));
            listener.shares.resize(number + 1, 0.0);
            let share = &mut listener.shares[number];
            *share = share.max(filled(socket));
        }
    }
    if listeners.is_empty() {
        let all = [
            &keys::TCP_ACCEPT_QUEUE,
            &keys::TCP_ACCEPT_BACKLOG,
            &keys::TCP_ACCEPT_USED,
            &keys::TCP_LISTEN_SOCKET_DROPS,
        ];
        evidence.absent(&all, &Absence::none("no TCP socket listens"), SOURCE);
    }
    let mut listeners: Vec<_> = listeners.into_iter().collect();
    listeners.sort_by(|(_, a), (_, b)| {
        let by_drops = b.dropped().total_cmp(&a.dropped());
        by_drops.then_with(|| filled(b.fullest).total_cmp(&filled(a.fullest)))
    });
    for (local, listener) in listeners.into_iter().take(MOST) {
        let subject = port::port("tcp", local);
        listener.tell_drops(&subject, evidence);
        let Listener {
            fullest,
            course,
            shares,
            ..
        } = listener;
        let line = format!(
            "LISTEN Recv-Q {} Send-Q {} {local}",
            fullest.rqueue, fullest.wqueue
        );
        let origin = Origin::new(SOURCE, line);
        let longest = course.iter().copied().fold(0.0, f64::max);
        evidence.series(
            &keys::TCP_ACCEPT_QUEUE,
            subject.clone(),
            longest,
            course,
            origin.clone(),
        );
        let most = f64::from(fullest.wqueue);
        let (used, key) = (filled(fullest), &keys::TCP_ACCEPT_USED);
        evidence.series(key, subject.clone(), used, shares, origin.clone());
        evidence.number(&keys::TCP_ACCEPT_BACKLOG, subject, most, origin);
    }
}

/// How full the queue is; the kernel admits one more than its length (`sk_acceptq_is_full`).
fn filled(socket: &TcpSocket) -> f64 {
    f64::from(socket.rqueue) / (f64::from(socket.wqueue) + 1.0)
}
