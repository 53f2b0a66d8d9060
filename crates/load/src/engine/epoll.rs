//! The sockets of one thread, waited for together.
#![expect(unsafe_code, reason = "epoll, which std does not reach")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd as _, OwnedFd, RawFd};

use libc::{c_int, c_void};

use super::check;

/// Most sockets that one wait reports.
const MOST_EVENTS: usize = 256;

/// Edge-triggered, so a socket is reported once per arrival.
#[derive(Debug)]
pub(crate) struct Epoll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
    ready: usize,
}

/// What a socket is watched for; errors always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    /// Something to read.
    Read,
    /// Something to read, the end of what the other side sends, and room to write, which includes an established connection.
    Stream,
}

impl AsRawFd for Epoll {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl Epoll {
    /// With room for events of this many sockets.
    pub(crate) fn new(sockets: usize) -> io::Result<Self> {
        // SAFETY: no pointers are passed.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        check(fd)?;
        Ok(Self {
            // SAFETY: the call above returned a new descriptor that nobody else owns.
            fd: unsafe { OwnedFd::from_raw_fd(fd) },
            events: vec![libc::epoll_event { events: 0, u64: 0 }; sockets.clamp(1, MOST_EVENTS)],
            ready: 0,
        })
    }

    /// Reports `socket` as `index` from now on, until it is closed.
    pub(crate) fn watch(&self, socket: RawFd, index: usize, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, socket, index, interest)
    }

    /// Reports `socket` again if it is ready now.
    pub(crate) fn rearm(&self, socket: RawFd, index: usize, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, socket, index, interest)
    }

    fn control(
        &self,
        operation: c_int,
        socket: RawFd,
        index: usize,
        interest: Interest,
    ) -> io::Result<()> {
        let wanted = match interest {
            Interest::Read => libc::EPOLLIN,
            Interest::Stream => libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP,
        };
        let mut event = libc::epoll_event {
            events: (wanted | libc::EPOLLET) as u32,
            u64: index as u64,
        };
        // SAFETY: `event` is valid; both descriptors are open.
        check(unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), operation, socket, &raw mut event) })
    }

    /// Waits at most `ns` and returns how many sockets are ready; see [`Epoll::ready`].
    #[inline]
    pub(crate) fn wait(&mut self, ns: u64) -> usize {
        let events = self.events.as_mut_ptr();
        let room = c_int::try_from(self.events.len()).unwrap_or(1);
        let fd = self.fd.as_raw_fd();
        let timeout = crate::clock::timespec_of(ns);
        // SAFETY: `events` has room for `room` entries; `timeout` is valid; no signal mask is passed.
        let mut ready = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                fd,
                events,
                room,
                &raw const timeout,
                std::ptr::null::<c_void>(),
                0,
            )
        };
        if ready < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS) {
            // Before Linux 5.11: whole milliseconds, and the rest of a schedule's gap is late.
            let ms = c_int::try_from(ns.div_ceil(1_000_000)).unwrap_or(c_int::MAX);
            // SAFETY: as above.
            ready = libc::c_long::from(unsafe { libc::epoll_wait(fd, events, room, ms) });
        }
        // An interrupted wait is an empty one: the caller looks at the clock and comes back.
        self.ready = usize::try_from(ready).unwrap_or(0);
        self.ready
    }

    /// Index of the `n`th ready socket.
    #[inline]
    pub(crate) fn ready(&self, n: usize) -> usize {
        debug_assert!(n < self.ready);
        self.events[n].u64 as usize
    }

    /// The `n`th ready socket has something to read.
    #[inline]
    pub(crate) fn has_input(&self, n: usize) -> bool {
        self.events[n].events & libc::EPOLLIN as u32 != 0
    }

    /// The other side of the `n`th ready socket sends nothing more, or the connection has failed.
    #[inline]
    pub(crate) fn has_ended(&self, n: usize) -> bool {
        let ends = (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32;
        self.events[n].events & ends != 0
    }
}
