//! Errors of access to a machine: what was tried, why it failed, what to do next.

use std::io;
use std::path::Path;

use crate::lock::Held;

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A variant per case that a caller treats differently.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refused a step for a reason of its own.
    #[error("cannot {tried}: {source}")]
    System {
        /// Verb and object: `read /proc/stat`.
        tried: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A precondition is missing (permission, kernel feature, program); a retry changes nothing.
    #[error("cannot {tried}: {why}; {remedy}")]
    Missing {
        /// Verb and object.
        tried: String,
        /// What is missing, or what forbids it.
        why: String,
        /// What the user can do.
        remedy: String,
    },
    /// The disk is full: what was being written is not durable.
    #[error(
        "cannot {tried}: no space left on the device; free some space or choose another place with --runs"
    )]
    NoSpace {
        /// Verb and object.
        tried: String,
    },
    /// The service ended although it was needed.
    #[error("{program} ended {how}{}; run it by hand to see why", quoted(stderr))]
    Died {
        /// First word of its command line and its pid.
        program: String,
        /// `with exit status 1`, `by signal 9`.
        how: String,
        /// The end of its standard error (or output, if that is empty).
        stderr: String,
    },
    /// The service runs but did not become ready in time.
    #[error(transparent)]
    NotReady(Box<NotReady>),
    /// Another instance uses the same state.
    #[error(transparent)]
    Held(#[from] Held),
}

/// Details of a service that did not become ready.
#[derive(Debug, thiserror::Error)]
#[error(
    "{program} was not ready within {within_s} s: {awaited}; it was started as: {command}; {listens}{}; {remedy}",
    quoted(stderr)
)]
pub struct NotReady {
    /// First word of its command line and its pid.
    pub program: String,
    /// The time waited, seconds.
    pub within_s: f64,
    /// The sign that did not come.
    pub awaited: String,
    /// Its command line.
    pub command: String,
    /// The ports that it listens on instead, in words.
    pub listens: String,
    /// The end of its standard error (or output, if that is empty).
    pub stderr: String,
    /// What the user can do.
    pub remedy: String,
}

impl Error {
    /// For `map_err`: names what was tried.
    pub(crate) fn system(tried: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let tried = tried.into();
        move |source| match source.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) => Self::NoSpace { tried },
            _ => Self::System { tried, source },
        }
    }

    /// The same for a file.
    pub(crate) fn file(verb: &str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        Self::system(format!("{verb} {}", path.display()))
    }

    /// Permission, kernel feature or program missing: exit code 4 of the command line.
    pub fn is_precondition(&self) -> bool {
        match self {
            Self::Missing { .. } | Self::Held(_) => true,
            Self::System { source, .. } => source.kind() == io::ErrorKind::PermissionDenied,
            _ => false,
        }
    }
}

fn quoted(tail: &str) -> String {
    let tail = tail.trim();
    if tail.is_empty() {
        ", it printed nothing".to_owned()
    } else {
        format!(", its last output:\n{tail}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_distinguished_from_other_failures() {
        let full =
            Error::file("append to", Path::new("/x"))(io::Error::from_raw_os_error(libc::ENOSPC));
        assert!(matches!(full, Error::NoSpace { .. }), "{full}");
        let other =
            Error::file("append to", Path::new("/x"))(io::Error::from_raw_os_error(libc::EIO));
        assert!(
            other.to_string().starts_with("cannot append to /x: "),
            "{other}"
        );
    }
}
