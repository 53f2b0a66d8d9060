//! Stacks as numbers while the window runs, as names when it is over.
//!
//! A stack that was seen before costs a hash and an addition, and no allocation. Addresses become names at
//! the end. Two samples of one function at different addresses then become one stack.

use std::collections::{BTreeMap, HashMap};

use rungwise_formats::folded;
use rungwise_formats::kallsyms::Names;

/// Different stacks kept; a bound of memory (64 CPUs at 99 Hz take at least 10 s to fill it), further ones
/// are counted as lost.
const MOST: usize = 1 << 16;

/// From here on an entry of a call chain is no address but a mark of what follows (`PERF_CONTEXT_MAX`).
const FIRST_MARK: u64 = -4095_i64 as u64;

/// Where the CPU was, if not in a kernel function; from the record (`PERF_RECORD_MISC_CPUMODE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Kernel,
    User,
    Guest,
}

impl Mode {
    /// Of the `misc` field of a record.
    pub(crate) fn from_misc(misc: u16) -> Self {
        match misc & 7 {
            2 => Self::User,
            4 | 5 => Self::Guest,
            _ => Self::Kernel,
        }
    }

    /// The frame that stands for a stack without kernel functions.
    fn frame(self) -> &'static str {
        match self {
            Self::Kernel => "[unknown]",
            Self::User => "[user]",
            Self::Guest => "[guest]",
        }
    }
}

/// Stacks with their weights.
#[derive(Debug, Default)]
pub(crate) struct Fold {
    /// Number of the task's name, number of the mode, addresses from the leaf to the root.
    weights: HashMap<Box<[u64]>, u64>,
    names: Vec<String>,
    numbers: HashMap<String, u64>,
    scratch: Vec<u64>,
    /// Weight of stacks that found no place.
    pub(crate) left_out: u64,
}

/// Stacks by name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Folded {
    /// `task;root;...;leaf`, idle ones left out.
    pub(crate) stacks: BTreeMap<String, u64>,
    /// Weight of the idle ones.
    pub(crate) idle: u64,
}

impl Fold {
    /// Adds a stack of the named task; `chain` is as the kernel gives it, leaf first.
    pub(crate) fn add(&mut self, task: &str, mode: Mode, chain: &[u64], weight: u64) {
        let number = if let Some(number) = self.numbers.get(task) {
            *number
        } else {
            let number = self.names.len() as u64;
            self.names.push(task.to_owned());
            self.numbers.insert(task.to_owned(), number);
            number
        };
        self.scratch.clear();
        self.scratch.extend([number, mode as u64]);
        let addresses = chain.iter().filter(|entry| **entry < FIRST_MARK);
        self.scratch.extend(addresses);
        if let Some(known) = self.weights.get_mut(self.scratch.as_slice()) {
            *known += weight;
        } else if self.weights.len() < MOST {
            self.weights.insert(self.scratch.as_slice().into(), weight);
        } else {
            self.left_out += weight;
        }
    }

    /// Where the functions of the stacks were called or interrupted.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = u64> {
        // Behind the numbers of task and mode.
        self.weights.keys().flat_map(|key| places(&key[2..]))
    }

    /// Names the functions.
    pub(crate) fn named(self, names: &Names) -> Folded {
        let mut folded = Folded::default();
        let mut functions = Vec::new();
        let weights: BTreeMap<Box<[u64]>, u64> = self.weights.into_iter().collect();
        for (key, weight) in weights {
            let [task, mode, chain @ ..] = &*key else {
                continue;
            };
            functions.clear();
            functions.extend(
                places(chain)
                    .rev()
                    .map(|place| names.function(place).unwrap_or("[unknown]")),
            );
            if functions.is_empty() {
                let mode = [Mode::Kernel, Mode::User, Mode::Guest]
                    .into_iter()
                    .find(|known| *known as u64 == *mode);
                functions.push(mode.unwrap_or(Mode::Kernel).frame());
            }
            if folded::is_idle(functions.iter().copied()) {
                folded.idle += weight;
                continue;
            }
            let task = self.names.get(*task as usize).map_or("", String::as_str);
            let stack = format!("{task};{}", functions.join(";"));
            *folded.stacks.entry(stack).or_default() += weight;
        }
        folded
    }
}

/// The places in the functions of a chain, leaf first. All but the leaf are return addresses; the call is before them,
/// and may end its function.
fn places(chain: &[u64]) -> impl DoubleEndedIterator<Item = u64> + ExactSizeIterator {
    chain
        .iter()
        .enumerate()
        .map(|(place, address)| address - u64::from(place > 0 && *address > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KALLSYMS: &str = "\
ffffffff81000100 T do_syscall_64
ffffffff81000200 T udp_sendmsg
ffffffff81000300 T do_idle
ffffffff81000400 T default_idle
ffffffff81000500 T handle_softirqs
";
    /// `PERF_CONTEXT_KERNEL`.
    const KERNEL: u64 = -128_i64 as u64;

    fn at(offset: u64) -> u64 {
        0xffff_ffff_8100_0000 + offset
    }

    fn named(fold: Fold) -> Folded {
        let mut names = Names::for_addresses(fold.addresses());
        names.read(KALLSYMS.as_bytes()).unwrap();
        fold.named(&names)
    }

    #[test]
    fn stacks_are_joined_by_name_whatever_the_instruction() {
        let mut fold = Fold::default();
        fold.add("echo", Mode::Kernel, &[KERNEL, at(0x210), at(0x120)], 1);
        fold.add("echo", Mode::Kernel, &[KERNEL, at(0x218), at(0x120)], 2);
        let folded = named(fold);
        assert_eq!(
            folded.stacks,
            [("echo;do_syscall_64;udp_sendmsg".to_owned(), 3)].into()
        );
    }

    #[test]
    fn a_return_address_behind_a_function_belongs_to_the_call_before_it() {
        let mut fold = Fold::default();
        fold.add("echo", Mode::Kernel, &[at(0x210), at(0x200)], 1);
        let folded = named(fold);
        assert!(folded.stacks.contains_key("echo;do_syscall_64;udp_sendmsg"));
    }

    #[test]
    fn idle_is_counted_apart_and_its_interrupts_are_work() {
        let mut fold = Fold::default();
        let idle = [at(0x410), at(0x310)];
        fold.add("swapper", Mode::Kernel, &idle, 5);
        fold.add("swapper", Mode::Kernel, &[at(0x510), idle[0], idle[1]], 2);
        let folded = named(fold);
        assert_eq!(folded.idle, 5);
        assert_eq!(
            folded.stacks,
            [("swapper;do_idle;default_idle;handle_softirqs".to_owned(), 2)].into()
        );
    }

    #[test]
    fn a_sample_without_kernel_functions_says_where_it_was() {
        let mut fold = Fold::default();
        fold.add("java", Mode::from_misc(2), &[], 1);
        fold.add("qemu", Mode::from_misc(0x8000 | 5), &[], 1);
        fold.add("echo", Mode::from_misc(1), &[KERNEL], 1);
        fold.add("echo", Mode::from_misc(1), &[0x10], 1);
        let folded = named(fold);
        let stacks: Vec<&str> = folded.stacks.keys().map(String::as_str).collect();
        assert_eq!(stacks, ["echo;[unknown]", "java;[user]", "qemu;[guest]"]);
    }
}
