//! SIGINT, SIGTERM and SIGHUP as a flag and a descriptor: undo first, then leave with 130.
//!
//! A second signal changes nothing: an undo that is under way is never cut short. SIGHUP stays
//! ignored where it was ignored at the start, which is how nohup(1) works.
#![expect(
    unsafe_code,
    reason = "the present action of a signal has no safe wrapper in std"
)]

use std::io::Write as _;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::error::{Error, Result};
use crate::wait;

/// Whether the user or the system asked us to stop. Clones share the answer.
#[derive(Clone, Debug)]
pub struct Interrupt {
    raised: Arc<AtomicBool>,
    bell: Arc<UnixStream>,
    ringer: Arc<UnixStream>,
}

impl Interrupt {
    /// A flag that only [`Self::raise`] raises: for callers who share the process with others.
    pub fn without_signals() -> Result<Self> {
        let (bell, ringer) = UnixStream::pair().map_err(Error::system("make a pair of sockets"))?;
        Ok(Self {
            raised: Arc::new(AtomicBool::new(false)),
            bell: Arc::new(bell),
            ringer: Arc::new(ringer),
        })
    }

    /// Asks for the end, as a signal does.
    pub fn raise(&self) {
        // In this order: a thread woken by the bell finds the flag raised. The bell rings once, for its buffer is finite.
        if !self.raised.swap(true, Ordering::Relaxed) {
            let _ = (&*self.ringer).write(&[1]);
        }
    }

    /// Installs the handlers; they stay for the life of the process.
    pub fn install() -> Result<Self> {
        let tried = || Error::system("install the signal handlers");
        let interrupt = Self::without_signals()?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            if signal == SIGHUP && ignored(signal) {
                continue;
            }
            // In this order, as above.
            let raised = Arc::clone(&interrupt.raised);
            signal_hook::flag::register(signal, raised).map_err(tried())?;
            let ringer = interrupt.ringer.try_clone().map_err(tried())?;
            signal_hook::low_level::pipe::register(signal, ringer).map_err(tried())?;
        }
        Ok(interrupt)
    }

    /// Whether a signal came.
    pub fn raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }

    /// The flag itself, for loops that poll it.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.raised)
    }

    /// Waits for a signal, at most `within`; whether one came. Several threads may wait.
    pub fn wait(&self, within: Duration) -> Result<bool> {
        let rung = wait::readable(self.fd(), within).map_err(Error::system("wait for a signal"))?;
        Ok(rung || self.raised())
    }

    /// Becomes readable with the first signal and stays so; for poll(2). Do not read from it.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

fn ignored(signal: i32) -> bool {
    // SAFETY: sigaction is plain data and outlives the call; a null new action changes nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}
