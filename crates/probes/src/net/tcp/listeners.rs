//! Accept queues: how many connections wait at each listening address, and how many may.

use std::collections::BTreeMap;

use rungwise_model::evidence::{Absence, Evidence, Origin};
use rungwise_model::kernel::{Endpoint, TcpSocket};
use rungwise_model::keys;

use super::{Look, SOURCE, state};
use crate::net::port::{self, MOST};

/// One address. With `SO_REUSEPORT` it has several sockets, each with a queue of its own: the fullest counts.
struct Listener<'a> {
    /// The socket with the fullest queue, and its time, over all looks.
    fullest: &'a TcpSocket,
    /// Waiting in the fullest queue at each look.
    course: Vec<f64>,
}

pub(super) fn add(looks: &[Look<'_>], evidence: &mut Evidence) {
    let mut listeners: BTreeMap<Endpoint, Listener<'_>> = BTreeMap::new();
    for (look, (_, sockets)) in looks.iter().enumerate() {
        let listening = sockets
            .iter()
            .filter(|socket| socket.state == state::LISTEN);
        for socket in listening {
            let listener = listeners.entry(socket.local).or_insert_with(|| Listener {
                fullest: socket,
                course: Vec::new(),
            });
            if filled(socket) > filled(listener.fullest) {
                listener.fullest = socket;
            }
            listener.course.resize(look + 1, 0.0);
            let waiting = &mut listener.course[look];
            *waiting = waiting.max(f64::from(socket.rqueue));
        }
    }
    if listeners.is_empty() {
        let both = [&keys::TCP_ACCEPT_QUEUE, &keys::TCP_ACCEPT_BACKLOG];
        evidence.absent(&both, &Absence::none("no TCP socket listens"), SOURCE);
    }
    let mut listeners: Vec<_> = listeners.into_iter().collect();
    listeners.sort_by(|(_, a), (_, b)| filled(b.fullest).total_cmp(&filled(a.fullest)));
    for (local, listener) in listeners.into_iter().take(MOST) {
        let Listener { fullest, course } = listener;
        let subject = port::port("tcp", local);
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
        evidence.number(&keys::TCP_ACCEPT_BACKLOG, subject, most, origin);
    }
}

/// How full the queue is; the kernel lets in one more than the length says (`sk_acceptq_is_full`).
fn filled(socket: &TcpSocket) -> f64 {
    f64::from(socket.rqueue) / (f64::from(socket.wqueue) + 1.0)
}
