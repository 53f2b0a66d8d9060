//! Twin files: one quantity in two units, of which the kernel keeps one in force.
//!
//! Setting `vm.dirty_bytes` makes `vm.dirty_ratio` read 0 and the other way round; a 0 is refused by both, so writing
//! back the value of each file would fail. The value of the pair is the one in force. Source: mm/page-writeback.c
//! (Linux 6.18).

use std::io;
use std::path::Path;

use rungwise_host::Host;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The files of an [`Edit::Twin`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Twins {
    /// Counts bytes; 0 while the other is in force.
    pub bytes: String,
    /// Counts percent.
    pub percent: String,
}

impl Twins {
    /// The one in force.
    pub(crate) fn current(&self, host: &dyn Host) -> io::Result<String> {
        let bytes = host.text(Path::new(&self.bytes))?;
        if bytes == "0" {
            Ok(format!("percent={}", host.text(Path::new(&self.percent))?))
        } else {
            Ok(format!("bytes={bytes}"))
        }
    }

    /// Puts the one that `value` names in force.
    pub(crate) fn write(&self, host: &dyn Host, value: &str) -> io::Result<()> {
        let (bytes, number) = Self::parse(value).ok_or(io::ErrorKind::InvalidInput)?;
        let path = if bytes { &self.bytes } else { &self.percent };
        host.write(Path::new(path), number.to_string().as_bytes())
    }

    /// Whether bytes are in force, and how many of either.
    pub(crate) fn parse(value: &str) -> Option<(bool, u64)> {
        let (which, number) = value.split_once('=')?;
        let bytes = match which {
            "bytes" => true,
            "percent" => false,
            _ => return None,
        };
        Some((bytes, number.parse().ok()?))
    }

    /// The file that `value` is for, and what to write there.
    pub(crate) fn file(&self, value: &str) -> Option<(&str, u64)> {
        let (bytes, number) = Self::parse(value)?;
        Some((if bytes { &self.bytes } else { &self.percent }, number))
    }
}
