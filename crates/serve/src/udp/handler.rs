//! The service itself.

use std::net::SocketAddr;

use crate::guard::{Called, Guarded};

/// Room for a reply, bytes: the largest UDP payload, which is that of IPv6 without jumbograms.
pub const MAX_REPLY: usize = 65_527;

/// What a service does with a request. Each worker has its own, so state needs no lock.
///
/// A handler that panics is dropped and made anew by the factory given to [`Server::start`]; the request
/// stays unanswered and [`WorkerCounters::panics`] grows. (With `panic = "abort"` the process ends, as always.)
/// If the factory panics too, the worker continues without a handler and refuses every request.
///
/// [`Server::start`]: super::Server::start
/// [`WorkerCounters::panics`]: super::WorkerCounters::panics
pub trait Handler: Send {
    /// Answers `request` from `peer`: writes the reply to the start of `reply`, which has [`MAX_REPLY`] bytes of
    /// unspecified content, and returns its length, or nothing to stay silent. A length beyond the buffer
    /// counts as a send error. IPv4 peers of a dual-stack socket arrive as IPv4 addresses.
    fn handle(&mut self, request: &[u8], peer: SocketAddr, reply: &mut [u8]) -> Option<usize>;
}

impl<F> Handler for F
where
    F: FnMut(&[u8], SocketAddr, &mut [u8]) -> Option<usize> + Send,
{
    fn handle(&mut self, request: &[u8], peer: SocketAddr, reply: &mut [u8]) -> Option<usize> {
        self(request, peer, reply)
    }
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Reply(usize),
    /// The handler stayed silent.
    Refused,
    /// It claimed more bytes than there was room for.
    TooLong,
    Panicked,
}

/// Has `guarded` answer `request`.
pub(super) fn answer<H: Handler>(
    guarded: &mut Guarded<H>,
    request: &[u8],
    peer: SocketAddr,
    reply: &mut [u8],
) -> Outcome {
    let room = reply.len();
    match guarded.call(|handler| handler.handle(request, peer, reply)) {
        Called::Returned(Some(length)) if length <= room => Outcome::Reply(length),
        Called::Returned(Some(_)) => Outcome::TooLong,
        Called::Returned(None) | Called::Absent => Outcome::Refused,
        Called::Panicked => Outcome::Panicked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::Factory;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn peer() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 1))
    }

    #[test]
    fn a_panicking_handler_is_replaced_by_a_fresh_one() {
        let made = Arc::new(AtomicUsize::new(0));
        let count = made.clone();
        let factory = move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            let mut calls = 0;
            move |request: &[u8], _: SocketAddr, _: &mut [u8]| {
                calls += 1;
                assert_ne!(request, b"panic");
                Some(calls)
            }
        };
        let mut guarded = Guarded::new(Arc::new(factory), 0);
        let mut reply = [0; 8];
        assert_eq!(
            answer(&mut guarded, b"a", peer(), &mut reply),
            Outcome::Reply(1)
        );
        assert_eq!(
            answer(&mut guarded, b"panic", peer(), &mut reply),
            Outcome::Panicked
        );
        assert_eq!(
            answer(&mut guarded, b"b", peer(), &mut reply),
            Outcome::Reply(1)
        );
        assert_eq!(made.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn without_a_handler_every_request_is_refused() {
        type Silent = fn(&[u8], SocketAddr, &mut [u8]) -> Option<usize>;
        let factory: Factory<Silent> = Arc::new(|_| panic!("no handler today"));
        let mut guarded = Guarded::new(factory, 3);
        assert_eq!(
            answer(&mut guarded, b"a", peer(), &mut [0; 8]),
            Outcome::Refused
        );
    }

    #[test]
    fn a_reply_beyond_the_room_is_not_sent() {
        let factory = |_| |_: &[u8], _: SocketAddr, reply: &mut [u8]| Some(reply.len() + 1);
        let mut guarded = Guarded::new(Arc::new(factory), 0);
        assert_eq!(
            answer(&mut guarded, b"a", peer(), &mut [0; 8]),
            Outcome::TooLong
        );
    }
}
