//! The vocabulary of evidence: every key that a probe yields and a rule reads.
//!
//! One list for both sides, so that a rule cannot ask for what no probe reads and a probe cannot rename what
//! a rule needs. A key is `subject matter.quantity`; its unit and the kind of thing it describes are fixed.

#![allow(
    clippy::doc_markdown,
    reason = "the meanings are printed to people, who need no backticks"
)]

use crate::evidence::{Key, Kind, Unit};

/// One static per key, and a list of all of them.
macro_rules! keys {
    ($list:ident; $($name:ident = $id:literal, $unit:ident, $kind:ident, $meaning:literal;)*) => {
        $(
            #[doc = $meaning]
            pub static $name: super::Key = super::Key {
                id: $id,
                unit: super::Unit::$unit,
                of: super::Kind::$kind,
                meaning: $meaning,
            };
        )*
        pub(super) static $list: &[&super::Key] = &[$(&$name),*];
    };
}
mod cpu;
mod device;
mod gc;
mod group;
mod load;
mod loss;
mod memory;
mod net;
mod outside;
mod process;
mod recording;
mod stack;
mod threads;

pub use cpu::*;
pub use device::*;
pub use gc::*;
pub use group::*;
pub use load::*;
pub use loss::*;
pub use memory::*;
pub use net::*;
pub use outside::*;
pub use process::*;
pub use recording::*;
pub use stack::*;
pub use threads::*;

/// All keys.
pub fn all() -> impl Iterator<Item = &'static Key> {
    [
        CPU, DEVICE, GC, GROUP, LOAD, LOSS, MEMORY, NET, OUTSIDE, PROCESS, RECORDING, STACK,
        THREADS,
    ]
    .into_iter()
    .flatten()
    .copied()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn ids_are_unique_and_named_by_subject_matter() {
        let mut seen = BTreeSet::new();
        for key in super::all() {
            assert!(seen.insert(key.id), "{} twice", key.id);
            assert!(key.id.split('.').count() == 2, "{}", key.id);
            assert!(!key.meaning.ends_with('.'), "{}", key.id);
        }
    }
}
