//! Messages to every connection of a server, on their way from the worker whose client asked for one to all workers.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use crate::stop::{self, eventfd};

/// Messages that wait for a worker; one that does not keep up leaves out the rest. A guess.
pub(super) const MOST_WAITING: usize = 1024;

/// A letterbox for each worker. Made before the workers, and outlives them: its descriptors are the same in each table.
#[derive(Debug)]
pub(super) struct Hub {
    boxes: Vec<Letterbox>,
    /// Held while a message goes into every letterbox: all of them have the same order.
    order: Mutex<()>,
}

#[derive(Debug)]
struct Letterbox {
    mail: Mutex<Mail>,
    /// Readable while there may be messages.
    bell: OwnedFd,
}

/// What came for a worker.
#[derive(Debug, Default)]
pub(super) struct Mail {
    pub(super) messages: VecDeque<Arc<[u8]>>,
    /// Messages for which there was no room.
    pub(super) left_out: u64,
}

impl Hub {
    pub(super) fn new(workers: usize) -> io::Result<Self> {
        let letterbox = |_| {
            Ok(Letterbox {
                mail: Mutex::default(),
                bell: eventfd()?,
            })
        };
        let boxes = (0..workers).map(letterbox).collect::<io::Result<_>>()?;
        let order = Mutex::default();
        Ok(Self { boxes, order })
    }

    /// What wakes `worker`.
    pub(super) fn bell(&self, worker: usize) -> &OwnedFd {
        &self.boxes[worker].bell
    }

    /// Gives `message` to all workers.
    pub(super) fn post(&self, message: &[u8]) {
        let message: Arc<[u8]> = message.into();
        let order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        for letterbox in &self.boxes {
            let mail = letterbox.mail.lock();
            let mut mail = mail.unwrap_or_else(PoisonError::into_inner);
            if mail.messages.len() < MOST_WAITING {
                mail.messages.push_back(message.clone());
            } else {
                mail.left_out += 1;
            }
        }
        drop(order);
        // Only now: who is woken may post another.
        for letterbox in &self.boxes {
            stop::wake(&letterbox.bell);
        }
    }

    /// What came for `worker` since the last call.
    pub(super) fn take(&self, worker: usize) -> Mail {
        let letterbox = &self.boxes[worker];
        // Silenced first: a message that comes now rings again.
        stop::silence(&letterbox.bell);
        let mail = letterbox.mail.lock();
        std::mem::take(&mut *mail.unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letterbox_is_bounded_and_counts_what_it_leaves_out() {
        let hub = Hub::new(2).unwrap();
        for number in 0..MOST_WAITING + 3 {
            hub.post(&number.to_le_bytes());
        }
        let mail = hub.take(1);
        assert_eq!((mail.messages.len(), mail.left_out), (MOST_WAITING, 3));
        assert_eq!(*mail.messages[1], 1_usize.to_le_bytes());
        hub.post(b"later");
        let mail = hub.take(1);
        assert_eq!((mail.messages.len(), mail.left_out), (1, 0));
        assert_eq!(hub.take(0).left_out, 4);
    }
}
