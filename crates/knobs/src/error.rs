//! Errors of knobs: what was tried, on what, why it failed, what to do.

use std::io;
use std::path::PathBuf;

use rungwise_model::Exit;

use crate::undo::Undo;

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A variant per case that a caller treats differently.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No knob has this id.
    #[error("no knob is called '{id}'; {}`rungwise knob list` shows all", nearest(*near))]
    UnknownKnob {
        /// What was asked for.
        id: String,
        /// The most similar id, if one is similar at all.
        near: Option<&'static str>,
    },
    /// The wish is not one of the knob's values.
    #[error("cannot set {knob} to '{wish}': {why}; allowed: {allowed}")]
    BadWish {
        /// Id of the knob.
        knob: &'static str,
        /// What was wished for.
        wish: String,
        /// What is wrong with it.
        why: String,
        /// The allowed values.
        allowed: &'static str,
    },
    /// The knob needs a device, and none or an unknown one was named.
    #[error("cannot read {knob}: {why}{}", named(known))]
    NoDevice {
        /// Id of the knob.
        knob: &'static str,
        /// Why there is no device.
        why: String,
        /// Devices that exist there.
        known: Vec<String>,
    },
    /// This knob is shown, never set.
    #[error("cannot set {knob}: {why}")]
    NotSettable {
        /// Id of the knob.
        knob: &'static str,
        /// Why, and what to do instead.
        why: String,
    },
    /// The file or feature does not exist here.
    #[error("cannot {tried} for {knob} on {host}: {}", absence(tried))]
    Absent {
        /// Id of the knob.
        knob: String,
        /// Verb and object.
        tried: String,
        /// Which machine or namespace.
        host: String,
    },
    /// Not allowed to.
    #[error(
        "cannot {tried} for {knob} on {host}: {answer}; run as root on the host itself (root of a \
         user namespace may not set queue masks; limits of a process of another user need CAP_SYS_RESOURCE)"
    )]
    Permission {
        /// Id of the knob.
        knob: String,
        /// Verb and object.
        tried: String,
        /// Which machine or namespace.
        host: String,
        /// The kernel's answer.
        answer: io::Error,
    },
    /// The kernel refused for another reason.
    #[error(
        "cannot {tried} for {knob} on {host}: {answer}{}",
        hint(knob, tried, answer)
    )]
    Kernel {
        /// Id of the knob.
        knob: String,
        /// Verb and object.
        tried: String,
        /// Which machine or namespace.
        host: String,
        /// The kernel's answer.
        answer: io::Error,
    },
    /// The kernel accepted the value and holds another one.
    #[error(
        "{knob} did not take effect: {target} was set to '{wanted}' and reads '{found}'; the change was undone"
    )]
    Mismatch {
        /// Id of the knob.
        knob: String,
        /// File, feature or table.
        target: String,
        /// What was written.
        wanted: String,
        /// What was read back.
        found: String,
    },
    /// The plan names something that its knob never writes.
    #[error("refused to apply the plan of {knob}: {why}; recreate it with `rungwise knob plan`")]
    BadPlan {
        /// Id of the knob.
        knob: String,
        /// What is wrong.
        why: String,
    },
    /// The plan names a place that is not open.
    #[error(
        "cannot apply {knob} in {place}: it is not open here; a lab's plans apply only in that lab's run"
    )]
    NoPlace {
        /// Id of the knob.
        knob: String,
        /// Where.
        place: String,
    },
    /// The journal cannot be kept, so the machine is not touched.
    #[error("cannot {tried} the journal {}: {answer}; nothing is changed without it{}", path.display(), room(answer))]
    Journal {
        /// Verb.
        tried: &'static str,
        /// The journal.
        path: PathBuf,
        /// The system's answer.
        answer: io::Error,
    },
    /// Another process is working on this journal.
    #[error("journal {} is in use by {by}; wait for it to end, or end it and try again", path.display())]
    Busy {
        /// The journal.
        path: PathBuf,
        /// `process 812`, or what is known of it.
        by: String,
    },
    /// The journal cannot be used at all.
    #[error(
        "cannot trust journal {}: {why}; nothing was written. Compare the machine by hand, then set the journal aside: \
         rungwise knob undo --abandon",
        path.display()
    )]
    Distrusted {
        /// The journal.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A change failed, and not all earlier changes could be undone.
    #[error("{cause}; some changes could not be undone: {}; see journal {}", undo.left_in_words(), journal.display())]
    Rollback {
        /// What failed first.
        cause: Box<Error>,
        /// What became of the undo.
        undo: Undo,
        /// Where the record is.
        journal: PathBuf,
    },
    /// There is no guard process.
    #[error("cannot work without a guard process: {why}; no change was kept")]
    Guard {
        /// What went wrong.
        why: String,
    },
}

impl Error {
    /// An error of the kernel on `tried`, sorted by what the caller can do about it.
    pub(crate) fn kernel(knob: &str, tried: String, host: &str, answer: io::Error) -> Self {
        let (knob, host) = (knob.to_owned(), host.to_owned());
        match answer.kind() {
            io::ErrorKind::NotFound => Self::Absent { knob, tried, host },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::Permission {
                    knob,
                    tried,
                    host,
                    answer,
                }
            }
            _ => Self::Kernel {
                knob,
                tried,
                host,
                answer,
            },
        }
    }

    /// The exit code for scripts.
    pub fn exit(&self) -> Exit {
        match self {
            Self::UnknownKnob { .. }
            | Self::BadWish { .. }
            | Self::NoDevice { .. }
            | Self::BadPlan { .. }
            | Self::Kernel { .. }
            | Self::Mismatch { .. }
            | Self::Journal { .. }
            | Self::Guard { .. } => Exit::Usage,
            Self::NotSettable { .. }
            | Self::Absent { .. }
            | Self::Permission { .. }
            | Self::NoPlace { .. }
            | Self::Busy { .. } => Exit::Precondition,
            Self::Distrusted { .. } | Self::Rollback { .. } => Exit::Rollback,
        }
    }
}

fn nearest(near: Option<&'static str>) -> String {
    near.map(|id| format!("did you mean {id}? "))
        .unwrap_or_default()
}

fn named(known: &[String]) -> String {
    if known.is_empty() {
        return String::new();
    }
    format!("; name one with --device ({})", known.join(", "))
}

fn room(answer: &io::Error) -> &'static str {
    match answer.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space there (or choose another place: `knob` commands accept --state)"
        }
        _ => "",
    }
}

/// What is missing. A file is read before it is written, so at the write it is the value.
fn absence(tried: &str) -> &'static str {
    if tried.starts_with("write") {
        "the kernel does not know that name, or the file is gone"
    } else {
        "it does not exist there; the kernel or device lacks it, \
         or it belongs to the whole host and is not visible in this network namespace"
    }
}

/// Hints for kernel errors that are not self-explanatory.
fn hint(knob: &str, tried: &str, answer: &io::Error) -> &'static str {
    // Numbers of asm-generic/errno.h; std has no kinds for these.
    const EIO: i32 = 5;
    const EOVERFLOW: i32 = 75;
    const EOPNOTSUPP: i32 = 95;
    const ECONNREFUSED: i32 = 111;
    match answer.raw_os_error() {
        Some(EIO) => "; the kernel does not let it be changed, as for managed interrupts",
        Some(EOVERFLOW) => {
            "; the mask names a CPU that does not exist, see /sys/devices/system/cpu/possible"
        }
        Some(EOPNOTSUPP) if tried.starts_with("read") => "; the driver does not report it",
        Some(EOPNOTSUPP) if knob == "net.threaded_napi" => {
            "; the driver cannot do this, or not in the device's current state: threaded NAPI needs GRO (net.gro)"
        }
        Some(EOPNOTSUPP) => "; the driver cannot do this, or not in the device's current state",
        Some(ECONNREFUSED) => {
            "; audit is available only on the host itself, not in a container, and not after a boot with audit=0"
        }
        _ => "",
    }
}
