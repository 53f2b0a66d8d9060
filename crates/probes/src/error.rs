//! What can go wrong with a bundle.

use std::path::PathBuf;

/// A bundle could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system said no.
    #[error(transparent)]
    File(#[from] rungwise_host::Error),
    /// It is no bundle at all.
    #[error(
        "cannot read {path} as a capture: {why}; `rungwise capture -o host.rungwise` writes one"
    )]
    NotABundle {
        /// The file or folder.
        path: PathBuf,
        /// What was found instead.
        why: String,
    },
    /// A folder without a capture in it.
    #[error(
        "cannot read {path} as a capture: it is a folder, and neither host.rungwise nor capture.json is a file in it; name the file"
    )]
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// What was seen is more than is read of a capture.
    #[error(
        "cannot keep {} MiB as a capture: of one no more than {} MiB are read; judge it here: rungwise check",
        .bytes >> 20, .limit >> 20
    )]
    TooMuch {
        /// What was seen.
        bytes: u64,
        /// The most that is read.
        limit: u64,
    },
    /// What was seen has more entries than are read of a capture.
    #[error(
        "cannot keep what was seen as a capture: it has {what}, and so many are not read again; judge it here: rungwise check"
    )]
    TooManySeen {
        /// Which: `more than 4000000 entries`.
        what: String,
    },
    /// It has more entries than a capture of any machine, and would fill memory.
    #[error(
        "cannot read {path} as a capture: it has {what}, more than any capture has; it is damaged or made to fill memory"
    )]
    TooMany {
        /// The file.
        path: PathBuf,
        /// Which: `more than 4000000 entries`.
        what: String,
    },
    /// It claims or has more than a capture of any machine.
    #[error(
        "cannot read {path} as a capture: it unpacks to more than {} MiB, more than any capture has; \
         it is damaged or made to fill memory",
        .limit >> 20
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The most that is read.
        limit: u64,
    },
    /// A later version wrote it.
    #[error(
        "cannot read {path}: it is a capture of format {found}, this program reads format {known}; use a newer rungwise"
    )]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// Ours.
        known: u32,
    },
}

/// The crate's results.
pub type Result<T> = std::result::Result<T, Error>;
