//! Errors of bundles.

use std::path::PathBuf;

/// A bundle could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system reported an error.
    #[error(transparent)]
    File(#[from] rungwise_host::Error),
    /// It is not a bundle.
    #[error(
        "cannot read {path} as a capture: {why}; write one with `rungwise capture -o host.rungwise`"
    )]
    NotABundle {
        /// The file or folder.
        path: PathBuf,
        /// What was found instead.
        why: String,
    },
    /// A folder without a capture in it.
    #[error(
        "cannot read {path} as a capture: it is a folder without host.rungwise or capture.json; name the file"
    )]
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// The data exceed the size limit of a capture.
    #[error(
        "cannot write a capture of {} MiB: the limit is {} MiB; judge the host here with `rungwise check`",
        .bytes >> 20, .limit >> 20
    )]
    TooMuch {
        /// Size of the data.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The data exceed the limit of entries of a capture.
    #[error(
        "cannot write the capture: it has {what}, more than rungwise reads; judge the host here with `rungwise check`"
    )]
    TooManySeen {
        /// The excess: `more than 4000000 entries`.
        what: String,
    },
    /// It has more entries than a capture of any machine, and would exhaust memory.
    #[error(
        "cannot read {path} as a capture: it has {what}, more than any real capture; it is damaged or made to exhaust memory"
    )]
    TooMany {
        /// The file.
        path: PathBuf,
        /// The excess: `more than 4000000 entries`.
        what: String,
    },
    /// It claims or contains more than a capture of any machine.
    #[error(
        "cannot read {path} as a capture: it unpacks to more than {} MiB, more than any real capture; it is damaged or made to exhaust memory",
        .limit >> 20
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
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
        /// The format of this version.
        known: u32,
    },
}

/// The crate's results.
pub type Result<T> = std::result::Result<T, Error>;
