//! Messages to every connection of a server, on their way from the worker whose client asked for one to all workers.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use crate::stop::{self, eventfd};

/// A letterbox for each worker. Made before the workers, and outlives them: its descriptors are the same in each table.
#[derive(Debug)]
pub(super) struct Hub {
    boxes: Vec<Letterbox>,
}

#[derive(Debug)]
struct Letterbox {
    messages: Mutex<VecDeque<Arc<[u8]>>>,
    /// Readable while there may be messages.
    bell: OwnedFd,
}

impl Hub {
    pub(super) fn new(workers: usize) -> io::Result<Self> {
        let letterbox = |_| {
            Ok(Letterbox {
                messages: Mutex::default(),
                bell: eventfd()?,
            })
        };
        let boxes = (0..workers).map(letterbox).collect::<io::Result<_>>()?;
        Ok(Self { boxes })
    }

    /// What wakes `worker`.
    pub(super) fn bell(&self, worker: usize) -> &OwnedFd {
        &self.boxes[worker].bell
    }

    /// Gives `message` to all workers.
    pub(super) fn post(&self, message: &[u8]) {
        let message: Arc<[u8]> = message.into();
        for letterbox in &self.boxes {
            let messages = letterbox.messages.lock();
            let mut messages = messages.unwrap_or_else(PoisonError::into_inner);
            messages.push_back(message.clone());
            drop(messages);
            stop::wake(&letterbox.bell);
        }
    }

    /// What came for `worker` since the last call.
    pub(super) fn take(&self, worker: usize) -> VecDeque<Arc<[u8]>> {
        let letterbox = &self.boxes[worker];
        // Silenced first: a message that comes now rings again.
        stop::silence(&letterbox.bell);
        let messages = letterbox.messages.lock();
        std::mem::take(&mut *messages.unwrap_or_else(PoisonError::into_inner))
    }
}
