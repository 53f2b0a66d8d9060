//! How complete the stacks are: innermost functions without a name, and stacks that end before the beginning of their thread.

use std::collections::BTreeMap;

use rungwise_model::profile::FrameKind;

use super::names::{Frame, UNKNOWN};
use super::unwind::{self, End};

/// Weights of incomplete stacks.
#[derive(Debug, Default)]
pub(super) struct Sums {
    all: u64,
    /// Weight of stacks whose innermost function is unknown, by what stands for it.
    unknown: BTreeMap<String, u64>,
    /// Weight of stacks with user frames.
    user: u64,
    /// Of those, longer than what was copied of them.
    short: u64,
    /// Of those, ending in a function whose caller is not found, by that function.
    lost: BTreeMap<String, u64>,
    /// Of those, ending early because the thread was blocked before the profile began.
    unread: u64,
    /// Of those, ending in a Java method: what helps is said where the methods are asked for.
    java: u64,
}

/// Shares below this are not worth a note.
const WORTH: f64 = 0.01;

impl Sums {
    /// `stack` is leaf first.
    pub(super) fn add(&mut self, stack: &[&Frame], end: End, weight: u64) {
        self.all += weight;
        if let Some(leaf) = stack.first().filter(|leaf| !leaf.is_known) {
            *self.unknown.entry(leaf.name.clone()).or_default() += weight;
        }
        let root = stack.last().filter(|root| root.kind != FrameKind::Kernel);
        let Some(root) = root else {
            return;
        };
        self.user += weight;
        let is_whole = match end {
            End::Whole => true,
            End::ByPointers => is_beginning(&root.name) || is_in_c_library(&root.name),
            End::Short | End::Lost | End::Unread => is_beginning(&root.name),
        };
        if is_whole {
        } else if end == End::Short {
            self.short += weight;
        } else if end == End::Unread {
            self.unread += weight;
        } else if root.kind == FrameKind::Java {
            self.java += weight;
        } else {
            *self.lost.entry(root.name.clone()).or_default() += weight;
        }
    }

    /// How the stacks were followed, and how many are whole.
    pub(super) fn followed(&self) -> String {
        let how = if unwind::SAMPLED == 0 {
            "frame pointers"
        } else {
            "unwind tables and frame pointers"
        };
        if self.user == 0 {
            return format!("stacks by {how}");
        }
        let part = |weight: u64| 100.0 * weight as f64 / self.user as f64;
        let lost = self.lost.values().sum::<u64>() + self.java + self.unread;
        let whole = format!(
            "stacks by {how}: {:.1} % whole",
            part(self.user - self.short - lost)
        );
        let parts = [(self.short, "longer than the copy"), (lost, "lack callers")];
        let parts = parts
            .iter()
            .filter(|(weight, _)| *weight > 0)
            .map(|(weight, what)| format!(", {:.1} % {what}", part(*weight)));
        std::iter::once(whole).chain(parts).collect()
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let share = |weight: u64| weight as f64 / self.all.max(1) as f64;
        let most = |weights: &BTreeMap<String, u64>| {
            let most = weights.iter().max_by_key(|(_, weight)| **weight);
            most.map_or(String::new(), |(name, _)| name.clone())
        };
        let unknown = self.unknown.values().sum();
        if share(unknown) >= WORTH {
            let most = most(&self.unknown);
            let remedy = if most == UNKNOWN {
                "memory of no file: code that was compiled at run time, or an address that is none"
            } else {
                "install its debug symbols"
            };
            notes.push(format!(
                "{:.0} % of the stacks end in a function without a name, most of them in {most}: {remedy}",
                100.0 * share(unknown)
            ));
        }
        if share(self.short) >= WORTH {
            notes.push(format!(
                "{:.0} % of the stacks lack callers: they are longer than the {} KiB that are copied with each sample. Build with \
                 -fno-omit-frame-pointer (Rust: -C force-frame-pointers=yes): frame pointers go on where the copy ends",
                100.0 * share(self.short),
                unwind::COPIED >> 10
            ));
        }
        if share(self.unread) >= WORTH {
            notes.push(format!(
                "{:.0} % of the time is of stacks that lack callers because their threads were blocked before the profile began: without their registers \
                 frame pointers cannot be followed; use a longer --for, so that they run once",
                100.0 * share(self.unread)
            ));
        }
        let lost = self.lost.values().sum();
        if share(lost) >= WORTH {
            notes.push(format!(
                "{:.0} % of the stacks lack callers: they end before the beginning of their thread, most of them in {}, whose code has neither \
                 unwind tables nor frame pointers; build it with -fno-omit-frame-pointer (Rust: -C force-frame-pointers=yes) or \
                 -fasynchronous-unwind-tables",
                100.0 * share(lost),
                most(&self.lost)
            ));
        }
        notes
    }
}

/// Whether a thread begins in a function of this name.
fn is_beginning(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "_start",
        "_dl_start",
        "_dl_start_user",
        "start_thread",
        "clone",
        "__clone",
        "clone3",
        "__clone3",
        "thread_start",
        "__libc_start_main",
        "__libc_start_call_main",
        "__libc_start_main_impl",
        "main",
    ];
    const PREFIXES: &[&str] = &[
        "__libc_start_main",
        "runtime.goexit",
        "runtime.mcall",
        "runtime.clone",
        "runtime.mstart",
        "runtime.rt0_go",
    ];
    NAMES.contains(&name) || PREFIXES.iter().any(|begin| name.starts_with(begin))
}

/// Whether it is a function without a name of the C library, which starts threads. Only where frame pointers led there: tables know better.
fn is_in_c_library(name: &str) -> bool {
    ["[libc.so", "[libc-", "[libpthread", "[ld-"]
        .iter()
        .any(|begin| name.starts_with(begin))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::live) fn frame(name: &str, is_known: bool) -> Frame {
        Frame {
            name: name.to_owned(),
            kind: FrameKind::Native,
            is_known,
        }
    }

    #[test]
    fn stacks_that_lack_callers_or_names_are_said() {
        let mut sums = Sums::default();
        let (main, lib, add) = (
            frame("main", true),
            frame("[libx.so]", false),
            frame("add", true),
        );
        let kernel = Frame {
            kind: FrameKind::Kernel,
            ..frame("do_exit", true)
        };
        sums.add(&[&add, &main], End::ByPointers, 50);
        sums.add(&[&add, &lib], End::Whole, 10);
        sums.add(&[&lib, &main], End::Whole, 20);
        sums.add(&[&add], End::Lost, 10);
        sums.add(&[&add], End::Short, 5);
        sums.add(&[&kernel], End::ByPointers, 5);
        let notes = sums.notes().join("\n");
        for part in [
            "20 % of the stacks end in a function without a name, most of them in [libx.so]",
            "10 % of the stacks lack callers: they end before the beginning of their thread, most of them in add",
            "5 % of the stacks lack callers: they are longer than the 32 KiB",
        ] {
            assert!(notes.contains(part), "{notes}");
        }
        assert_eq!(
            sums.followed(),
            "stacks by unwind tables and frame pointers: 84.2 % whole, 5.3 % longer than the copy, 10.5 % lack callers"
        );
    }

    #[test]
    fn the_c_library_is_a_beginning_only_for_frame_pointers() {
        let mut sums = Sums::default();
        let libc = frame("[libc.so.6]", false);
        sums.add(&[&libc], End::ByPointers, 3);
        assert!(sums.followed().ends_with("100.0 % whole"));
        sums.add(&[&libc], End::Lost, 1);
        assert!(
            sums.followed()
                .ends_with("75.0 % whole, 25.0 % lack callers")
        );
    }
}
