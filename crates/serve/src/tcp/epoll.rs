//! The descriptors of one worker, waited for together. Level-triggered: a connection is reported for as long as there is
//! something to read, so a worker reads once per report and never asks a socket that has nothing.
#![expect(unsafe_code, reason = "epoll, which std does not reach")]

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::time::Duration;

use crate::config::BusyPoll;

/// Most descriptors that one wait reports. A guess; 3 KiB of events.
const MOST_EVENTS: u16 = 256;

/// What a descriptor is watched for; errors always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interest {
    Nothing,
    Read,
    Write,
    /// Something to read, of which one of the epolls that watch it is told (`EPOLLEXCLUSIVE`, Linux 4.5).
    ReadExclusively,
}

impl Interest {
    fn bits(self) -> i32 {
        match self {
            Self::Nothing => 0,
            Self::Read => libc::EPOLLIN,
            Self::Write => libc::EPOLLOUT,
            Self::ReadExclusively => libc::EPOLLIN | libc::EPOLLEXCLUSIVE,
        }
    }
}

/// What was reported of a descriptor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    /// The number under which it is watched.
    pub(super) number: u64,
    /// It has failed, or both sides have ended it.
    pub(super) failed: bool,
}

/// `struct epoll_params`, include/uapi/linux/eventpoll.h of Linux 6.9.
#[repr(C)]
struct Parameters {
    busy_poll_us: u32,
    budget: u16,
    prefer: u8,
    padding: u8,
}

#[derive(Debug)]
pub(super) struct Epoll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
    ready: usize,
}

impl Epoll {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: takes a number.
        let raw = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            // SAFETY: a new descriptor without another owner.
            fd: unsafe { OwnedFd::from_raw_fd(raw) },
            events: vec![libc::epoll_event { events: 0, u64: 0 }; MOST_EVENTS.into()],
            ready: 0,
        })
    }

    /// Reports `fd` as `number` from now on, until it is closed or removed.
    pub(super) fn add(&self, fd: RawFd, number: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, number, interest)
    }

    /// Changes what `fd` is watched for.
    pub(super) fn change(&self, fd: RawFd, number: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, number, interest)
    }

    /// Watches `fd` no more.
    pub(super) fn remove(&self, fd: RawFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd, 0, Interest::Nothing)
    }

    fn control(
        &self,
        operation: i32,
        fd: RawFd,
        number: u64,
        interest: Interest,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: interest.bits() as u32,
            u64: number,
        };
        // SAFETY: `event` is valid for the call.
        match unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), operation, fd, &raw mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Waits, no longer than `limit` where there is one, and returns how many events there are. An interrupted wait has none.
    pub(super) fn wait(&mut self, limit: Option<Duration>) -> usize {
        let fd = self.fd.as_raw_fd();
        let events = self.events.as_mut_ptr();
        let room = i32::from(MOST_EVENTS);
        let time = limit.map(|limit| libc::timespec {
            tv_sec: libc::time_t::try_from(limit.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: libc::c_long::from(limit.subsec_nanos().cast_signed()),
        });
        let ready = match &time {
            // SAFETY: `events` has room for `room` entries.
            None => i64::from(unsafe { libc::epoll_wait(fd, events, room, -1) }),
            Some(time) => {
                // SAFETY: as above; `time` is valid, and no signal mask is passed.
                let ready = unsafe {
                    libc::syscall(
                        libc::SYS_epoll_pwait2,
                        fd,
                        events,
                        room,
                        std::ptr::from_ref(time),
                        std::ptr::null::<libc::c_void>(),
                        0,
                    )
                };
                if ready < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS) {
                    // Before Linux 5.11: whole milliseconds.
                    let limit = limit.unwrap_or_default().as_nanos().div_ceil(1_000_000);
                    let limit = i32::try_from(limit).unwrap_or(i32::MAX);
                    // SAFETY: as above.
                    i64::from(unsafe { libc::epoll_wait(fd, events, room, limit) })
                } else {
                    ready
                }
            }
        };
        self.ready = usize::try_from(ready).unwrap_or(0);
        self.ready
    }

    /// The `n`th event of the last wait.
    pub(super) fn event(&self, n: usize) -> Event {
        debug_assert!(n < self.ready);
        let event = self.events[n];
        Event {
            number: event.u64,
            failed: event.events & (libc::EPOLLERR | libc::EPOLLHUP) as u32 != 0,
        }
    }

    /// Makes waits poll the devices' queues first (Linux 6.9); what the kernel then has.
    pub(super) fn busy_poll(&self, poll: BusyPoll) -> io::Result<BusyPoll> {
        /// `_IOW(0x8A, 0x01, struct epoll_params)`.
        const SET: libc::c_ulong = 0x4008_8a01;
        /// `_IOR(0x8A, 0x02, struct epoll_params)`.
        const GET: libc::c_ulong = 0x8008_8a02;
        let mut parameters = Parameters {
            // More than 2^31 is refused.
            busy_poll_us: i32::try_from(poll.time.as_micros())
                .unwrap_or(i32::MAX)
                .cast_unsigned(),
            budget: poll.budget,
            prefer: poll.prefer.into(),
            padding: 0,
        };
        for request in [SET, GET] {
            // SAFETY: `parameters` is what both requests take, and valid for reading and writing.
            let done =
                unsafe { libc::ioctl(self.fd.as_raw_fd(), request as _, &raw mut parameters) };
            if done != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(BusyPoll {
            time: Duration::from_micros(parameters.busy_poll_us.into()),
            prefer: parameters.prefer != 0,
            budget: parameters.budget,
        })
    }
}
