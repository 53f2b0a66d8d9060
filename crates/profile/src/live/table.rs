//! Stacks as numbers while the window runs: places in code are numbered, and a stack is a row of numbers.

use std::collections::HashMap;

use super::memory::{Memory, Place};
use super::unwind::End;

/// Different stacks kept; the weight of further ones is counted. 64 CPUs at 99 Hz take at least 10 s to fill it.
const MOST_STACKS: usize = 1 << 16;
/// Different places kept.
const MOST_PLACES: usize = 1 << 20;

/// From here on an entry of a call chain is no address but a mark of what follows (`PERF_CONTEXT_MAX`).
const FIRST_MARK: u64 = -4095_i64 as u64;
/// `PERF_CONTEXT_KERNEL`, `PERF_CONTEXT_USER`.
pub(super) const KERNEL: u64 = -128_i64 as u64;
pub(super) const USER: u64 = -512_i64 as u64;

/// A thread that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Task {
    pub(super) process: u32,
    pub(super) thread: u32,
}

/// Stacks with their weights.
#[derive(Debug, Default)]
pub(super) struct Table {
    places: Vec<Place>,
    numbers: HashMap<Place, u32>,
    /// Number of the thread, how the stack ended, then places from the leaf to the root.
    weights: HashMap<Box<[u32]>, u64>,
    tasks: Vec<Task>,
    task_numbers: HashMap<Task, u32>,
    scratch: Vec<u32>,
    /// Functions of the kernel that have no address but a name.
    texts: Vec<String>,
    text_numbers: HashMap<String, u32>,
    /// Stacks that were added, those that found no room included.
    pub(super) added: u64,
    /// Weight of stacks that found no room.
    pub(super) left_out: u64,
}

impl Table {
    /// Adds a stack of a thread, as the kernel gives it: leaf first, parts of kernel and user marked.
    pub(super) fn add(
        &mut self,
        task: Task,
        chain: &[u64],
        end: End,
        weight: u64,
        memory: &Memory,
    ) {
        self.added += 1;
        let mut stack = self.begin(task, end);
        let fits = self.push(&mut stack, task, chain, memory);
        self.put(stack, fits, weight);
    }

    /// Appends the places of a chain. Returns whether they found room.
    fn push(&mut self, stack: &mut Vec<u32>, task: Task, chain: &[u64], memory: &Memory) -> bool {
        let mut is_kernel = false;
        let mut is_first = true;
        let mut fits = true;
        for entry in chain {
            if *entry >= FIRST_MARK {
                is_kernel = *entry == KERNEL;
                is_first = true;
                // Guests and hypervisors have addresses of their own.
                if !is_kernel && *entry != USER {
                    break;
                }
                continue;
            }
            // All but the first are return addresses; the call is before them, and may end its function.
            let address = entry - u64::from(!is_first && *entry > 0);
            is_first = false;
            let place = if is_kernel {
                Place::Kernel(address)
            } else {
                memory.place(task.process, address)
            };
            match self.place(place) {
                Some(number) => stack.push(number),
                None => fits = false,
            }
        }
        fits
    }

    /// Adds a stack of functions of the kernel that are known by name, leaf first, on a chain.
    pub(super) fn add_named(
        &mut self,
        task: Task,
        names: &[String],
        chain: &[u64],
        end: End,
        weight: u64,
        memory: &Memory,
    ) {
        self.added += 1;
        let mut stack = self.begin(task, end);
        let mut fits = true;
        for name in names {
            let text = *self.text_numbers.entry(name.clone()).or_insert_with(|| {
                self.texts.push(name.clone());
                self.texts.len() as u32 - 1
            });
            match self.place(Place::Named(text)) {
                Some(number) => stack.push(number),
                None => fits = false,
            }
        }
        fits &= self.push(&mut stack, task, chain, memory);
        self.put(stack, fits, weight);
    }

    fn begin(&mut self, task: Task, end: End) -> Vec<u32> {
        let mut stack = std::mem::take(&mut self.scratch);
        stack.clear();
        stack.extend([self.task(task), end as u32]);
        stack
    }

    fn put(&mut self, stack: Vec<u32>, fits: bool, weight: u64) {
        if let Some(known) = self.weights.get_mut(stack.as_slice()) {
            *known += weight;
        } else if fits && self.weights.len() < MOST_STACKS {
            self.weights.insert(stack.as_slice().into(), weight);
        } else {
            self.left_out += weight;
        }
        self.scratch = stack;
    }

    /// The names of places that have no address.
    pub(super) fn text(&self, number: u32) -> &str {
        self.texts.get(number as usize).map_or("", String::as_str)
    }

    fn task(&mut self, task: Task) -> u32 {
        *self.task_numbers.entry(task).or_insert_with(|| {
            self.tasks.push(task);
            self.tasks.len() as u32 - 1
        })
    }

    fn place(&mut self, place: Place) -> Option<u32> {
        if let Some(number) = self.numbers.get(&place) {
            return Some(*number);
        }
        if self.places.len() >= MOST_PLACES {
            return None;
        }
        let number = self.places.len() as u32;
        self.places.push(place);
        self.numbers.insert(place, number);
        Some(number)
    }

    /// All places, by their numbers.
    pub(super) fn places(&self) -> &[Place] {
        &self.places
    }

    /// Threads that have stacks.
    pub(super) fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Stacks in a fixed order.
    pub(super) fn stacks(&self) -> Vec<Stack<'_>> {
        let stacks = self.weights.iter().filter_map(|(stack, weight)| {
            let [task, end, places @ ..] = &**stack else {
                return None;
            };
            Some(Stack {
                task: *self.tasks.get(*task as usize)?,
                places,
                end: *ENDS.get(*end as usize)?,
                weight: *weight,
            })
        });
        let mut stacks: Vec<_> = stacks.collect();
        stacks.sort_unstable();
        stacks
    }
}

/// In the order of their numbers.
const ENDS: [End; 5] = [
    End::Whole,
    End::ByPointers,
    End::Short,
    End::Lost,
    End::Unread,
];

/// A stack with its weight.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stack<'a> {
    pub(super) task: Task,
    /// Numbers of places from the leaf to the root.
    pub(super) places: &'a [u32],
    pub(super) end: End,
    pub(super) weight: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: Task = Task {
        process: 7,
        thread: 8,
    };

    #[test]
    fn callers_are_where_they_called_and_kernel_and_user_are_apart() {
        let mut table = Table::default();
        let memory = Memory::default();
        let chain = [KERNEL, 0x900, 0x800, USER, 0x700, 0x600];
        table.add(TASK, &chain, End::Lost, 2, &memory);
        table.add(TASK, &chain, End::Lost, 3, &memory);
        let stacks = table.stacks();
        let [stack] = &stacks[..] else {
            panic!("{table:?}");
        };
        assert_eq!((stack.task, stack.end, stack.weight), (TASK, End::Lost, 5));
        assert_eq!(table.added, 2);
        let places: Vec<Place> = stack
            .places
            .iter()
            .map(|at| table.places()[*at as usize])
            .collect();
        let user = |address| Place::Memory {
            process: 7,
            address,
        };
        let expected = [
            Place::Kernel(0x900),
            Place::Kernel(0x7ff),
            user(0x700),
            user(0x5ff),
        ];
        assert_eq!(places, expected);
    }

    #[test]
    fn stacks_beyond_the_limit_are_counted() {
        let mut table = Table::default();
        for stack in 0..MOST_STACKS as u64 + 5 {
            table.add(TASK, &[USER, stack], End::Whole, 1, &Memory::default());
        }
        assert_eq!((table.stacks().len(), table.left_out), (MOST_STACKS, 5));
    }
}
