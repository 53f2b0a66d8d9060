//! User stacks of threads that are blocked when the profile begins: no switch gives theirs.
//!
//! `/proc/PID/task/TID/syscall` has the stack pointer and the place in code of a blocked thread, and `/proc/PID/mem` its stack. Other registers are unavailable unless
//! the thread is stopped. In a function that keeps a frame pointer, that is found by how the function begins; see `unwind/prologue.rs`.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use rungwise_host::Host as _;
use rungwise_host::live::Live;

use super::unwind::{COPIED, User};

/// Registers and stack of a thread that is blocked in a system call that matches; nothing if it goes on meanwhile, or is one of the kernel.
/// `memory` is that of its process.
pub(super) fn user(
    process: u32,
    thread: u32,
    memory: &File,
    matches: &dyn Fn(&str) -> bool,
) -> Option<User> {
    let path = format!("/proc/{process}/task/{thread}/syscall");
    let before = Live.text(path.as_ref()).ok()?;
    let (sp, pc) = place(&before).filter(|_| matches(&before))?;
    let mut stack = vec![0; COPIED as usize];
    let length = memory.read_at(&mut stack, sp).ok()?;
    stack.truncate(length);
    let after = Live.text(path.as_ref()).ok()?;
    (after == before).then(|| User::blocked(pc, sp, stack))
}

/// Stack pointer and place in code: the last two of `NUMBER ARGUMENTS... SP PC`, or of `-1 SP PC` outside of a system call.
fn place(text: &str) -> Option<(u64, u64)> {
    let mut words = text.split_whitespace().rev();
    let mut number = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let (pc, sp) = (number()?, number()?);
    (pc > 0 && sp > 0).then_some((sp, pc))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_thread_has_a_place_and_a_running_one_none() {
        let read = "0 0x0 0x7ffd10 0x1 0x0 0x0 0x0 0x7ffd08 0x7f0012\n";
        assert_eq!(place(read), Some((0x7f_fd08, 0x7f_0012)));
        assert_eq!(place("-1 0x7ffd08 0x7f0012"), Some((0x7f_fd08, 0x7f_0012)));
        for none in ["running\n", "", "-1 0x0 0x0", "0 zz 0x1"] {
            assert_eq!(place(none), None, "{none}");
        }
    }
}
