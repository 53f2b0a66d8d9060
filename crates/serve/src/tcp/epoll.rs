//! The descriptors of one worker, waited for together. Level-triggered: a connection is reported for as long as there is
//! something to read, so a worker reads once per report and never asks a socket that has nothing.
#![expect(unsafe_code, reason = "epoll, which std does not reach")]

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::time::Duration;

use super::connection::{self, Connection, State, receive};
use super::desk::{Desk, Fate, RECEIVE, waits};
use super::engine::{Engine, HUB, Interest, LISTENER, STOP};
use super::handler::{Handler, MOST_KEPT};
use super::slab::Key;
use super::worker::{BURST, Worker};
use crate::config::BusyPoll;

/// Most descriptors that one wait reports. A guess; 3 KiB of events.
const MOST_EVENTS: u16 = 256;

/// The bits of an interest.
fn bits(interest: Interest) -> i32 {
    match interest {
        Interest::Nothing => 0,
        Interest::Read => libc::EPOLLIN,
        Interest::Write => libc::EPOLLOUT,
        Interest::ReadExclusively => libc::EPOLLIN | libc::EPOLLEXCLUSIVE,
    }
}

/// What was reported of a descriptor.
#[derive(Clone, Copy, Debug)]
struct Event {
    /// The number under which it is watched.
    number: u64,
    /// It has failed, or both sides have ended it.
    failed: bool,
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
    /// How the listener is watched.
    listening: Interest,
    /// Room for one receive, and before it for what a connection has kept.
    input: Box<[u8]>,
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
            listening: Interest::Read,
            input: vec![0; MOST_KEPT + RECEIVE].into(),
        })
    }

    /// Watches what wakes a worker, and its listener: exclusively, where others wait for it too and the kernel can.
    pub(super) fn attend(
        &mut self,
        wake: &OwnedFd,
        listener: &OwnedFd,
        shared: bool,
    ) -> io::Result<Interest> {
        self.add(wake.as_raw_fd(), STOP, Interest::Read)?;
        let listener = listener.as_raw_fd();
        if shared {
            let exclusively = Interest::ReadExclusively;
            match self.add(listener, LISTENER, exclusively) {
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
                done => {
                    self.listening = exclusively;
                    return done.map(|()| exclusively);
                }
            }
        }
        self.add(listener, LISTENER, Interest::Read)?;
        Ok(Interest::Read)
    }

    /// Watches what wakes a worker for messages to every connection.
    pub(super) fn attend_hub(&self, bell: &OwnedFd) -> io::Result<()> {
        self.add(bell.as_raw_fd(), HUB, Interest::Read)
    }

    /// Reports `fd` as `number` from now on, until it is closed or removed.
    fn add(&self, fd: RawFd, number: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, number, interest)
    }

    /// Changes what `fd` is watched for.
    fn change(&self, fd: RawFd, number: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, number, interest)
    }

    /// Watches `fd` no more.
    fn remove(&self, fd: RawFd) -> io::Result<()> {
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
            events: bits(interest) as u32,
            u64: number,
        };
        // SAFETY: `event` is valid for the call.
        match unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), operation, fd, &raw mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Waits, no longer than `limit` where there is one, and returns how many events there are. An interrupted wait has none.
    fn wait(&mut self, limit: Option<Duration>) -> usize {
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
    fn event(&self, n: usize) -> Event {
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

impl Epoll {
    fn watch<S>(
        &self,
        key: Key,
        connection: &mut Connection<S>,
        interest: Interest,
    ) -> io::Result<()> {
        if connection.interest != interest {
            self.change(connection.fd(), key.number(), interest)?;
            connection.interest = interest;
        }
        Ok(())
    }
}

impl Engine for Epoll {
    fn listen(&mut self, listener: RawFd, on: bool) -> io::Result<()> {
        if on {
            self.add(listener, LISTENER, self.listening)
        } else {
            self.remove(listener)
        }
    }

    fn heard(&mut self, wake: RawFd) {
        // It stays readable, and would be reported all the time.
        let _ = self.remove(wake);
    }

    fn begin<S>(&mut self, key: Key, connection: &mut Connection<S>) -> io::Result<()> {
        self.add(connection.fd(), key.number(), Interest::Read)?;
        connection.interest = Interest::Read;
        Ok(())
    }

    fn expect_input<S>(&mut self, key: Key, connection: &mut Connection<S>) -> io::Result<()> {
        self.watch(key, connection, Interest::Read)
    }

    fn expect_nothing<S>(&mut self, key: Key, connection: &mut Connection<S>) -> io::Result<()> {
        self.watch(key, connection, Interest::Nothing)
    }

    fn send(
        &mut self,
        socket: RawFd,
        first: &[u8],
        second: &[u8],
        skipped: usize,
    ) -> io::Result<usize> {
        connection::send(socket, first, second, skipped)
    }

    fn send_later<S>(&mut self, key: Key, connection: &mut Connection<S>) -> io::Result<()> {
        self.watch(key, connection, Interest::Write)
    }

    fn forget<S>(&mut self, _key: Key, _connection: &mut Connection<S>) {
        // A closed descriptor is not watched.
    }

    fn round<H: Handler>(worker: &mut Worker<H, Self>, limit: Option<Duration>) -> bool {
        let ready = worker.desk.engine.wait(limit);
        let mut stops = false;
        for n in 0..ready {
            let event = worker.desk.engine.event(n);
            match event.number {
                // One connection at a time from a shared listener, so that the other workers get theirs.
                LISTENER => match worker.desk.engine.listening {
                    Interest::ReadExclusively => worker.accept(1),
                    _ => worker.accept(BURST),
                },
                STOP => stops = true,
                HUB => worker.fetch(),
                number => {
                    let key = Key::from_number(number);
                    worker.with(key, |desk, connection| {
                        desk.reported(key, connection, event.failed)
                    });
                }
            }
        }
        stops
    }

    fn settle<H: Handler>(worker: &mut Worker<H, Self>) {
        for key in worker.keys() {
            worker.with(key, |desk, connection| {
                desk.reported(key, connection, false)
            });
        }
    }
}

impl<H: Handler> Desk<H, Epoll> {
    /// Something is reported of a connection.
    fn reported(
        &mut self,
        key: Key,
        connection: &mut Connection<H::Session>,
        failed: bool,
    ) -> Fate {
        match connection.state {
            State::Reading => self.read(key, connection),
            State::Sending => self.flush(key, connection),
            State::Delayed if failed => self.lost(),
            State::Delayed => Fate::Stays,
            State::Lingering => match receive(connection.fd(), &mut self.engine.input) {
                Ok(0) => Fate::Ends,
                Ok(_) => Fate::Stays,
                Err(error) if waits(&error) => Fate::Stays,
                Err(_) => Fate::Ends,
            },
        }
    }

    /// Receives once, and has what is there handled.
    fn read(&mut self, key: Key, connection: &mut Connection<H::Session>) -> Fate {
        let kept = connection.kept.len();
        let mut input = std::mem::take(&mut self.engine.input);
        let fate = match receive(connection.fd(), &mut input[kept..]) {
            Ok(0) => self.left(connection),
            Ok(length) => {
                self.tally.received_bytes += length as u64;
                input[..kept].copy_from_slice(&connection.kept);
                self.handle(key, connection, &input[..kept + length])
            }
            Err(error) if waits(&error) => Fate::Stays,
            Err(_) => self.lost(),
        };
        self.engine.input = input;
        fate
    }
}
