//! Folded stacks: `task;callee;...;leaf 42`, the common format of flame graphs, and how kernel stacks are read.
//!
//! A kernel stack is often two stacks on top of each other: an interrupt, or the soft interrupts that run when a
//! lock of the network stack is released, sit on top of the interrupted work. A packet that is received on
//! loopback is received *within* the call that sent it. The cost of a function is therefore computed from the
//! innermost part only ([`innermost`]); otherwise receiving would count as sending.
//! Sources: Brendan Gregg's stackcollapse; kernel/softirq.c, arch/x86/include/asm/idtentry.h and
//! arch/arm64/kernel/entry-common.c of Linux 6.18; names of 4.6 as that kernel had them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Functions in which soft interrupts run; the last two run the receive side in a thread of its own.
const SOFTIRQ: &[&str] = &[
    "handle_softirqs",
    "__do_softirq",
    "napi_threaded_poll",
    "napi_threaded_poll_loop",
];

/// Functions in which an interrupt begins; `*` stands for any end.
const INTERRUPT: &[&str] = &[
    "asm_common_interrupt",
    "asm_sysvec_*",
    "common_interrupt",
    "sysvec_*",
    "asm_exc_nmi",
    "el1_irq",
    "el1h_64_irq*",
    "el1_interrupt",
    "el0_irq_naked",
    "el0t_64_irq*",
    // Before Linux 5.8.
    "ret_from_intr",
    "do_IRQ",
    "apic_timer_interrupt",
    "call_function_single_interrupt",
    "reschedule_interrupt",
];

/// The loop of a CPU that has nothing to do.
const IDLE: &[&str] = &["do_idle", "cpu_startup_entry", "cpu_idle_loop"];

/// Frames of a stack, root first. The first is the name of the task.
pub fn frames(stack: &str) -> impl DoubleEndedIterator<Item = &str> {
    stack.split(';')
}

/// A function without what the compiler added to its name: `.isra.0`, `.constprop.0`, `.part.0`, `.cold`.
pub fn plain(function: &str) -> &str {
    match function.find('.') {
        // Names such as `.text` begin so and are left as they are.
        None | Some(0) => function,
        Some(end) => &function[..end],
    }
}

/// Whether a function is meant by a pattern: its plain name, or a name that ends in `*` for any end.
pub fn is_meant(function: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(begin) => plain(function).starts_with(begin),
        None => plain(function) == pattern,
    }
}

/// Whether soft interrupts run in this function.
pub fn is_softirq(function: &str) -> bool {
    SOFTIRQ.iter().any(|name| is_meant(function, name))
}

/// Whether what is above this function on a stack has nothing to do with what is below.
pub fn is_entry(function: &str) -> bool {
    is_softirq(function) || INTERRUPT.iter().any(|name| is_meant(function, name))
}

/// The part of a stack above its last entry, that entry included; the whole stack where there is none.
pub fn innermost<T>(frames: &[T], is_entry: impl Fn(&T) -> bool) -> &[T] {
    let begin = frames.iter().rposition(is_entry).unwrap_or(0);
    &frames[begin..]
}

/// Whether these functions, root first, show a CPU with nothing to do: in its idle loop, and not called
/// away from it by an interrupt.
pub fn is_idle<'a>(functions: impl IntoIterator<Item = &'a str>) -> bool {
    let mut idle = false;
    for function in functions {
        if is_entry(function) {
            return false;
        }
        idle |= IDLE.contains(&plain(function));
    }
    idle
}

/// Reads folded text. Also gives the number of lines that were not understood.
pub fn parse(text: &str) -> (BTreeMap<String, u64>, usize) {
    let mut stacks = BTreeMap::<String, u64>::new();
    let mut unknown = 0;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        // Names of tasks have spaces, so the count is what follows the last one.
        match line
            .rsplit_once(' ')
            .map(|(stack, count)| (stack, count.parse::<u64>()))
        {
            Some((stack, Ok(count))) => {
                let sum = stacks.entry(stack.trim_end().to_owned()).or_default();
                *sum = sum.saturating_add(count);
            }
            _ => unknown += 1,
        }
    }
    (stacks, unknown)
}

/// Writes folded text, which [`parse`] reads back.
pub fn write(stacks: &BTreeMap<String, u64>) -> String {
    stacks
        .iter()
        .fold(String::new(), |mut text, (stack, count)| {
            // Writing to a string never fails.
            let _ = writeln!(text, "{stack} {count}");
            text
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn innermost_of(stack: &str) -> Vec<&str> {
        let frames: Vec<&str> = frames(stack).collect();
        innermost(&frames, |frame| is_entry(frame)).to_vec()
    }

    #[test]
    fn what_the_compiler_added_to_a_name_is_left_out() {
        assert_eq!(plain("nf_hook_slow.part.0"), "nf_hook_slow");
        assert_eq!(plain("foo.isra.0.cold"), "foo");
        assert_eq!(plain(".text"), ".text");
        assert!(is_meant("_raw_spin_lock_bh", "_raw_spin_lock*"));
        assert!(!is_meant("_raw_spin_unlock", "_raw_spin_lock*"));
    }

    #[test]
    fn receiving_on_loopback_is_not_a_part_of_sending() {
        let stack = "echo;do_syscall_64;udp_sendmsg;__dev_queue_xmit;__local_bh_enable_ip;do_softirq;\
                     handle_softirqs;net_rx_action;udp_queue_rcv_skb;_raw_spin_lock";
        let inner = innermost_of(stack);
        assert_eq!(inner[0], "handle_softirqs");
        assert!(!inner.contains(&"__dev_queue_xmit"));
        assert_eq!(innermost_of("a;b;c"), ["a", "b", "c"]);
    }

    #[test]
    fn an_interrupt_of_the_idle_loop_is_work() {
        let idle = "swapper/0;cpu_startup_entry;do_idle;default_idle;pv_native_safe_halt";
        assert!(is_idle(frames(idle)));
        let called = format!("{idle};asm_sysvec_call_function_single;irq_exit_rcu;handle_softirqs");
        assert!(!is_idle(frames(&called)));
        let polled =
            "swapper/1;cpu_startup_entry;do_idle;flush_smp_call_function_queue;handle_softirqs";
        assert!(!is_idle(frames(polled)));
        assert!(!is_idle(frames("echo;do_syscall_64")));
    }

    #[test]
    fn folded_text_reads_back_as_written() {
        let text = "my task;a;b 3\nmy task;a;b 4\n\nno count\nx 9\n";
        let (stacks, unknown) = parse(text);
        assert_eq!(unknown, 1);
        assert_eq!(stacks["my task;a;b"], 7);
        assert_eq!(parse(&write(&stacks)), (stacks, 0));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[ -~é\n]{0,80}") {
            let (stacks, _) = parse(&text);
            for stack in stacks.keys() {
                let frames: Vec<&str> = frames(stack).map(plain).collect();
                let _ = (innermost(&frames, |frame| is_entry(frame)), is_idle(frames.iter().copied()));
            }
        }
    }
}
