//! User stacks of threads that sleep, such as those that wait for a lock. Nothing is stopped: see [`super::blocked`].

use std::path::Path;

use rungwise_host::live::Live;
use rungwise_host::{Host as _, files};

use super::View;
use super::blocked;
use super::names::Names;
use super::table::Task;

/// A thread that sleeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sleeper {
    /// Its id.
    pub thread: u32,
    /// Names of its functions, the innermost first. One without a name has that of its file, in brackets.
    pub functions: Vec<String>,
}

/// Stacks of at most `most` threads of a process that sleep in a system call that is wanted, which is shown as `/proc/PID/task/TID/syscall` has
/// it. None if the kernel does not show them to this user. Costs some 0.1 ms a thread, and the reading of the symbols of the files on their stacks.
pub fn sleepers(pid: u32, most: usize, is_wanted: impl Fn(&str) -> bool) -> Vec<Sleeper> {
    let proc = Path::new("/proc").join(pid.to_string());
    let (Ok(maps), Ok(memory)) = (
        Live.text(&proc.join("maps")),
        files::open(&proc.join("mem")),
    ) else {
        return Vec::new();
    };
    let mut view = View {
        root: files::open_folder(&proc.join("root")).ok(),
        ..View::default()
    };
    view.memory.read(pid, &maps);
    let threads = files::list(&proc.join("task")).unwrap_or_default();
    let users = threads.iter().filter_map(|thread| {
        let thread = thread.parse().ok()?;
        let user = blocked::user(pid, thread, &memory, &is_wanted)?;
        Some((thread, user))
    });
    for (thread, user) in users.take(most) {
        let (chain, end) = view.followed(pid, &[], Some(&user));
        let task = Task {
            process: pid,
            thread,
        };
        view.table.add(task, &chain, end, 1, &view.memory);
    }
    let places = view.table.places();
    let names = Names::of_files(places, &view.memory, view.root.as_ref());
    let frame = |place: &u32| {
        let place = places.get(*place as usize)?;
        Some(names.frame(*place, &view.memory, &view.table).name)
    };
    let stacks = view.table.stacks().into_iter();
    stacks
        .map(|stack| Sleeper {
            thread: stack.task.thread,
            functions: stack.places.iter().filter_map(frame).collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};

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
        let until = Instant::now() + Duration::from_secs(10);
        let found = loop {
            let found = sleepers(std::process::id(), 8, |call| call.contains(&address));
            if !found.is_empty() || Instant::now() > until {
                break found;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        drop(held);
        assert_eq!(thread.join().unwrap(), 1);
        let [sleeper] = &found[..] else {
            panic!("{found:?}");
        };
        let is_it = |name: &String| name.contains("waits_for_its_turn");
        assert!(sleeper.functions.iter().any(is_it), "{sleeper:?}");
        assert!(sleepers(std::process::id(), 8, |_| false).is_empty());
    }
}
