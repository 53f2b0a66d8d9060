//! The guard: a second process that undoes when the tool can no longer do it itself.
//!
//! It is our own program with a hidden command, in its own session, and inherits only the read end of a pipe. While the
//! tool lives, the pipe stays open. When the tool is killed, the kernel closes it and the guard takes the journal over.
//! The journal's lock decides who may undo: after a clean end the journal is gone and the guard ends silently. Signals
//! that a terminal or a service manager sends to all are ignored; only SIGKILL to both leaves the journal to `rungwise
//! knob undo`.
//!
//! While it may still have something to put back, a guard holds a shared flock(2) on `STATE/guards`. The next tool that
//! changes the machine waits for it ([`wait_for_all`]): before that it would read the killed tool's values.
//!
//! Messages begin with one byte: [`READY`] from the guard; from the tool [`KEEP`], and [`SERVICE`], which the process id
//! of a service follows.

#![expect(
    clippy::disallowed_methods,
    reason = "services of `host` die with us; the guard is the one process that must not"
)]

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use rungwise_host::namespace::Pinned;
use rungwise_host::process::Group;
use rungwise_host::{clock, environment, signals};

use crate::edit::Places;
use crate::error::{Error, Result};
use crate::journal::Watched;
use crate::recovery::{self, Leftovers, Recovery};

/// From the guard: signals are set up, the pipe is watched. Before this the tool changes nothing.
const READY: u8 = b'r';

/// From the tool: keep the changes in force, until the deadline if there is one.
const KEEP: u8 = b'k';

/// From the tool: a service was started, the leader of its group has this id. It replaces the one sent before.
const SERVICE: u8 = b's';

/// The file that guards lock in the state folder; never written, never removed.
const GUARDS: &str = "guards";

/// How often a waiting guard checks whether its journal was undone by another process.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// How long a killed process may take to disappear; a guess far above what was measured.
const GONE_WITHIN: Duration = Duration::from_secs(10);

/// The tool's side of a guard. Dropping it shows the guard that the tool is ending.
#[derive(Debug)]
pub struct Guard {
    pipe: Option<ChildStdin>,
    child: Child,
}

impl Guard {
    /// Starts this program again as the guard of `journal`, and waits until it is watching. With a deadline, kept
    /// changes are undone after that time. When the tool ends, the processes in the network namespaces `labs` are ended
    /// first.
    pub fn spawn(
        journal: &Path,
        deadline: Option<Duration>,
        labs: &[BorrowedFd<'_>],
    ) -> Result<Self> {
        let program = environment::current_exe().map_err(|error| Error::Guard {
            why: error.to_string(),
        })?;
        let mut words = vec![
            "knob".into(),
            "guard".into(),
            journal.as_os_str().to_owned(),
        ];
        if let Some(deadline) = deadline {
            words.push("--deadline-ms".into());
            words.push(deadline.as_millis().to_string().into());
        }
        for lab in labs {
            // Opened by the guard before it answers, so the number stays ours until then.
            let link = format!("/proc/{}/fd/{}", std::process::id(), lab.as_raw_fd());
            words.extend(["--lab".into(), link.into()]);
        }
        Self::start(Command::new(program).args(words))
    }

    /// Starts `command` as a guard.
    #[expect(clippy::missing_panics_doc, reason = "both pipes are asked for")]
    pub fn start(command: &mut Command) -> Result<Self> {
        let failed = |error: io::Error| Error::Guard {
            why: error.to_string(),
        };
        let mut child = command
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let pipe = child.stdin.take().expect("the pipe was asked for");
        let mut answer = child.stdout.take().expect("the pipe was asked for");
        let mut ready = [0];
        match answer.read_exact(&mut ready) {
            Ok(()) if ready[0] == READY => Ok(Self {
                pipe: Some(pipe),
                child,
            }),
            _ => {
                drop(pipe);
                let ended = child
                    .wait()
                    .map_or_else(|error| error.to_string(), |status| status.to_string());
                Err(Error::Guard {
                    why: format!("it ended before it was watching ({ended})"),
                })
            }
        }
    }

    /// Makes the guard keep the changes in force: until its deadline, if it has one, else for good.
    pub fn keep(&mut self) -> Result<()> {
        let sent = self
            .pipe
            .as_mut()
            .map_or(Ok(()), |pipe| pipe.write_all(&[KEEP]));
        sent.map_err(|error| Error::Guard {
            why: format!("it has ended ({error})"),
        })
    }

    /// Makes the guard also end the group of this service when the tool is killed.
    pub fn answer_for(&mut self, service: u32) {
        let [a, b, c, d] = service.to_ne_bytes();
        if let Some(pipe) = &mut self.pipe {
            // A guard that has ended kills no process; the service is not affected.
            let _ = pipe.write_all(&[SERVICE, a, b, c, d]);
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the guard has found that there is nothing to do. For a tool that ended cleanly.
    pub fn dismiss(mut self) {
        drop(self.pipe.take());
        // It ends by itself; that it is reaped matters only to a tool that lives on.
        let _ = self.child.wait();
    }
}

/// Reads the tool's last messages: whether to keep the changes in force, and the service that it left.
fn listen(input: &mut File) -> (bool, Option<Group>) {
    let mut service = None;
    let (mut word, mut leader) = ([0], [0; 4]);
    while let Ok(()) = input.read_exact(&mut word) {
        match word[0] {
            KEEP => return (true, None),
            SERVICE if input.read_exact(&mut leader).is_ok() => {
                // None if it has ended already, and its group with it.
                service = Group::led_by(u32::from_ne_bytes(leader)).ok();
            }
            _ => break,
        }
    }
    (false, service)
}

/// Waits until no guard below `state` has anything left to put back. For the holder of the instance lock: no other tool
/// is alive, so the guards belong to killed ones. `tell` is called if it takes time.
pub fn wait_for_all(state: &Path, tell: impl FnOnce()) -> Result<()> {
    let path = state.join(GUARDS);
    let waited = roll(&path).and_then(|roll| match roll.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            tell();
            roll.lock()
        }
        Err(TryLockError::Error(error)) => Err(error),
    });
    waited.map_err(|answer| Error::Journal {
        tried: "wait for the guards of",
        path,
        answer,
    })
}

/// Registers a guard that has something to do, until dropped.
fn on_watch(journal: &Path) -> io::Result<File> {
    let state = journal.ancestors().nth(2);
    let state = state.ok_or_else(|| io::Error::other("its journal is in no state folder"))?;
    let roll = roll(&state.join(GUARDS))?;
    roll.lock_shared()?;
    Ok(roll)
}

fn roll(path: &Path) -> io::Result<File> {
    let mut how = OpenOptions::new();
    how.read(true).write(true).create(true).truncate(false);
    how.mode(0o600).open(path)
}

/// The guard's main function: the hidden command. `input` is the pipe, `output` takes the answer.
///
/// `None` if there was nothing to undo.
pub fn watch(
    journal: &Path,
    places: &Places,
    deadline: Option<Duration>,
    labs: &[PathBuf],
    mut input: File,
    mut output: File,
) -> Result<Option<Recovery>> {
    let why = |error: &dyn std::fmt::Display| Error::Guard {
        why: error.to_string(),
    };
    let mut duty = Some(on_watch(journal).map_err(|error| why(&error))?);
    // Out of reach of the terminal. A signal that comes before this ends the guard and with it, for
    // want of an answer, the tool: nothing has been changed yet.
    rustix::process::setsid().map_err(|error| why(&error))?;
    let watched = Watched::open(journal)?.ok_or_else(|| why(&"its journal is not there"))?;
    let labs: Result<Vec<Pinned>, _> = labs.iter().map(|lab| Pinned::open(lab)).collect();
    let labs = labs.map_err(|error| why(&error))?;
    // Installed and not looked at: the guard ends when its work does.
    let _signals = signals::Interrupt::install().map_err(|error| why(&error))?;
    output.write_all(&[READY]).map_err(|error| why(&error))?;
    drop(output);
    let (kept, service) = listen(&mut input);
    if kept {
        let Some(deadline) = deadline else {
            return Ok(None);
        };
        // What is kept until then is there to be built on.
        drop(duty.take());
        let end = clock::now() + deadline;
        loop {
            let left = end.saturating_duration_since(clock::now());
            if left.is_zero() {
                break;
            }
            if !watched.still_there() {
                return Ok(None);
            }
            std::thread::sleep(left.min(POLL_INTERVAL));
        }
        duty = on_watch(journal).ok();
    }
    // What will not die is no reason to leave the machine changed.
    let _ = service.map(|service| service.end(GONE_WITHIN));
    for lab in labs {
        let _ = lab.end(GONE_WITHIN);
    }
    let recovery = recovery::recover_watched(watched, journal, places, Leftovers::Report, true);
    drop(duty);
    recovery
}
