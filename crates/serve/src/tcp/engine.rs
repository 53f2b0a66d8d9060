//! What a worker waits with, and how replies leave: a seam between the life of a connection, which is in [`super::desk`], and the kernel.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use super::connection::Connection;
use super::handler::Handler;
use super::slab::Key;
use super::worker::Worker;

/// The number of the listener among what is reported and due; no key of a connection is as high.
pub(super) const LISTENER: u64 = u64::MAX;
/// The number of what wakes a worker for the stop.
pub(super) const STOP: u64 = u64::MAX - 1;

/// The number of what wakes a worker for messages to every connection.
pub(super) const HUB: u64 = u64::MAX - 2;

/// What a connection is watched for; errors always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interest {
    Nothing,
    Read,
    Write,
    /// Something to read, of which one of the epolls that watch it is told (`EPOLLEXCLUSIVE`, Linux 4.5).
    ReadExclusively,
}

/// A way to wait for connections.
pub(super) trait Engine: Sized {
    /// Reports connections that wait at the listener, or no longer.
    fn listen(&mut self, listener: RawFd, on: bool) -> io::Result<()>;

    /// Stops to report what wakes the worker for the stop.
    fn heard(&mut self, wake: RawFd);

    /// Reports what a connection brings from now on.
    fn begin<S>(&mut self, key: Key, connection: &mut Connection<S>) -> io::Result<()>;

    /// A connection waits for its client.
    fn expect_input<S>(&mut self, key: Key, connection: &mut Connection<S>) -> io::Result<()>;

    /// A connection waits for nothing but its time; that it failed is still reported.
    fn expect_nothing<S>(&mut self, key: Key, connection: &mut Connection<S>) -> io::Result<()>;

    /// Sends what the kernel takes at once of the bytes of `first` and `second` together, without the first `skipped` of them.
    fn send(
        &mut self,
        socket: RawFd,
        first: &[u8],
        second: &[u8],
        skipped: usize,
    ) -> io::Result<usize>;

    /// Sends what waits on a connection; that there is room for it, or that it was sent, is reported.
    fn send_later<S>(&mut self, key: Key, connection: &mut Connection<S>) -> io::Result<()>;

    /// A connection is closed next.
    fn forget<S>(&mut self, key: Key, connection: &mut Connection<S>);

    /// Waits until something happens, no longer than `limit` where there is one, and has it handled; whether the stop has come.
    fn round<H: Handler>(worker: &mut Worker<H, Self>, limit: Option<Duration>) -> bool;

    /// Has handled what connections have brought until now.
    fn settle<H: Handler>(worker: &mut Worker<H, Self>);
}
