//! Requested settings beside the values that the kernel reports.

use crate::error::Error;
use crate::error::Feature;

/// One switch: wanted, and read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadBack {
    /// Name of the switch.
    pub switch: &'static str,
    /// The requested value.
    pub wanted: String,
    /// The value that the kernel reports, and how it was read where that is not obvious; after a fallback, why.
    pub actual: String,
    /// The kernel does what was requested.
    pub holds: bool,
}

impl std::fmt::Display for ReadBack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let relation = if self.holds { "holds" } else { "DIFFERS" };
        write!(
            f,
            "{}: {}; {relation}: {}",
            self.switch, self.wanted, self.actual
        )
    }
}

/// The read-backs of a server that is being set up, and whether it may fall back.
#[derive(Debug)]
pub(crate) struct Ledger {
    fallback: bool,
    entries: Vec<ReadBack>,
}

impl Ledger {
    pub(crate) fn new(fallback: bool) -> Self {
        Self {
            fallback,
            entries: Vec::new(),
        }
    }

    /// Enters what holds.
    pub(crate) fn holds(
        &mut self,
        switch: &'static str,
        wanted: impl Into<String>,
        actual: impl Into<String>,
    ) {
        self.enter(switch, wanted.into(), actual.into(), true);
    }

    /// Enters a switch that was not to be had, or fails where falling back is not allowed.
    pub(crate) fn fall_back(
        &mut self,
        switch: &'static str,
        wanted: impl Into<String>,
        instead: &str,
        error: Error,
    ) -> Result<(), Error> {
        if !self.fallback {
            return Err(error);
        }
        let reason = match &error {
            Error::Unsupported {
                feature,
                since,
                answer,
                ..
            } => {
                format!("no {feature}, which Linux has since {since} ({answer})")
            }
            Error::Refused { answer, .. } => answer.to_string(),
            Error::NotTaken { actual, .. } => format!("reads back as {actual}"),
            other => other.to_string(),
        };
        self.enter(switch, wanted.into(), format!("{instead}: {reason}"), false);
        Ok(())
    }

    /// Enters a value that the kernel may have bent, and fails if it did and may not.
    pub(crate) fn compare(
        &mut self,
        feature: Feature,
        wanted: impl Into<String>,
        actual: impl Into<String>,
        holds: bool,
    ) -> Result<(), Error> {
        let (wanted, actual) = (wanted.into(), actual.into());
        if !holds && !self.fallback {
            return Err(Error::NotTaken {
                switch: feature.switch,
                wanted,
                actual,
                remedy: feature.remedy,
            });
        }
        self.enter(feature.switch, wanted, actual, holds);
        Ok(())
    }

    pub(crate) fn finish(self) -> Vec<ReadBack> {
        self.entries
    }

    /// One entry per distinct fact: the sockets of a group say the same thing once.
    fn enter(&mut self, switch: &'static str, wanted: String, actual: String, holds: bool) {
        let entry = ReadBack {
            switch,
            wanted,
            actual,
            holds,
        };
        if !self.entries.contains(&entry) {
            self.entries.push(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    const RCVBUF: Feature = Feature {
        switch: "rcvbuf",
        name: "SO_RCVBUF",
        since: "1.0",
        remedy: "raise net.core.rmem_max",
    };

    #[test]
    fn without_fallback_a_bent_value_is_an_error() {
        let error = Ledger::new(false)
            .compare(RCVBUF, "8", "4", false)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("reads back as 4; raise net.core.rmem_max"),
            "{error}"
        );
    }

    #[test]
    fn with_fallback_it_is_an_entry_that_differs() {
        let mut ledger = Ledger::new(true);
        ledger.compare(RCVBUF, "8", "4", false).unwrap();
        let missing = RCVBUF.missing(io::Error::from_raw_os_error(libc::ENOSYS));
        ledger
            .fall_back("io", "io_uring", "batch of 32", missing)
            .unwrap();
        let lines: Vec<_> = ledger.finish().iter().map(ToString::to_string).collect();
        assert_eq!(lines[0], "rcvbuf: 8; DIFFERS: 4");
        assert!(
            lines[1].starts_with("io: io_uring; DIFFERS: batch of 32: no SO_RCVBUF"),
            "{}",
            lines[1]
        );
    }

    #[test]
    fn equal_sockets_speak_once() {
        let mut ledger = Ledger::new(false);
        ledger.holds("pmtudisc", "do", "IP_PMTUDISC_DO");
        ledger.holds("pmtudisc", "do", "IP_PMTUDISC_DO");
        assert_eq!(ledger.finish().len(), 1);
    }
}
