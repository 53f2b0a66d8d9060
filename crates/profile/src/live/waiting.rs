//! User stacks of threads that wait, such as for a lock, read without stopping them: see [`super::blocked`].

use std::collections::BTreeMap;
use std::fs::File;

use rungwise_host::live::Live;
use rungwise_host::{Host as _, files};

use super::View;
use super::blocked;
use super::names::Names;
use super::table::Task;
use super::unwind::User;

/// Innermost functions that are named.
const MOST_FUNCTIONS: usize = 32;
/// The longest name, in characters.
const LONGEST_NAME: usize = 200;

/// A waiting thread and its functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its process.
    pub process: u32,
    /// Its id.
    pub thread: u32,
    /// Its 32 innermost functions at most, the innermost first, each cut after 200 characters. One without a name has that of its file, in
    /// brackets; callers that cannot be followed are missing.
    pub functions: Vec<String>,
}

/// Copies of the stacks of waiting threads, at most 32 KiB each.
#[derive(Debug, Default)]
pub struct Waiting {
    view: View,
    /// Of processes that let this user read their memory.
    memory: BTreeMap<u32, Option<File>>,
    copies: Vec<(Task, User)>,
}

impl Waiting {
    /// Copies the stack of a thread if it waits in a system call that matches, which is shown as `/proc/PID/task/TID/syscall` has it. Returns
    /// whether it was copied. Takes some 20 us.
    pub fn add(&mut self, process: u32, thread: u32, matches: &dyn Fn(&str) -> bool) -> bool {
        let memory = self.memory.entry(process).or_insert_with(|| {
            let maps = Live.text(format!("/proc/{process}/maps").as_ref()).ok()?;
            self.view.memory.read(process, &maps);
            files::open(format!("/proc/{process}/mem").as_ref()).ok()
        });
        let user = memory
            .as_ref()
            .and_then(|memory| blocked::user(process, thread, memory, matches));
        let was_read = user.is_some();
        self.copies
            .extend(user.map(|user| (Task { process, thread }, user)));
        was_read
    }

    /// Follows the stacks and looks up the names. Reads the unwind tables and the symbols of the files on them, which takes a second for the
    /// largest programs, and may never end where a file is on a network file system whose server is gone.
    pub fn named(mut self) -> Vec<Named> {
        for (task, user) in &self.copies {
            let code = self.memory.get(&task.process).and_then(Option::as_ref);
            let (chain, end) = self.view.followed(task.process, &[], Some(user), code);
            self.view
                .table
                .add(*task, &chain, end, 1, &self.view.memory);
        }
        let (table, memory) = (&self.view.table, &self.view.memory);
        let places = table.places();
        let names = Names::of_files(places, memory, None);
        let function = |place: &u32| {
            let name = names
                .frame(*places.get(*place as usize)?, memory, table)
                .name;
            Some(name.chars().take(LONGEST_NAME).collect())
        };
        let stacks = table.stacks().into_iter();
        stacks
            .map(|stack| Named {
                process: stack.task.process,
                thread: stack.task.thread,
                functions: stack
                    .places
                    .iter()
                    .take(MOST_FUNCTIONS)
                    .filter_map(function)
                    .collect(),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use super::*;

    #[inline(never)]
    fn waits_for_its_turn(lock: &Mutex<u32>) -> u32 {
        let mut held = lock.lock().unwrap();
        *held += 1;
        *held
    }

    #[test]
    fn the_function_that_waits_for_a_lock_is_on_its_stack() {
        let lock = Arc::new(Mutex::new(0));
        let held = lock.lock().unwrap();
        let of_thread = Arc::clone(&lock);
        let thread = std::thread::spawn(move || waits_for_its_turn(&of_thread));
        let address = format!("{:#x} ", std::ptr::from_ref(&*lock) as usize);
        let process = std::process::id();
        let mut waiting = Waiting::default();
        let mut found = false;
        // The thread comes to its lock in microseconds, or when it gets a CPU.
        for _ in 0..1000 {
            if found {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
            let threads = files::list("/proc/self/task".as_ref()).unwrap();
            for thread in threads.iter().map(|thread| thread.parse().unwrap()) {
                assert!(!waiting.add(process, thread, &|_| false));
                found |= waiting.add(process, thread, &|call| call.contains(&address));
            }
        }
        drop(held);
        assert_eq!(thread.join().unwrap(), 1);
        let named = waiting.named();
        let [one] = &named[..] else {
            panic!("{named:?}");
        };
        let is_it = |name: &String| name.contains("waits_for_its_turn");
        assert!(one.functions.iter().any(is_it), "{one:?}");
    }
}
