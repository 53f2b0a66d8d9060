//! Shares of sampled kernel stacks.
//!
//! A share is of the busy samples, or of those within softirqs, and its origin cites the count and the heaviest stack.
//! With too few samples no share is reported, since it would be random.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rungwise_model::evidence::{Absence, Evidence, Key, Origin, Subject};
use rungwise_model::kernel::{Answer, Stacks};
use rungwise_model::keys;

use super::functions::{Functions, Set, Stack};
use super::total;
use crate::probe::{Cost, Need, Probe};
use crate::window::Window;

/// The answer's name in a capture.
const NAME: &str = "stacks";

/// Shares of fewer busy samples are not reported: a true share of 5 % would show as 3 to 7 % in most windows.
const FEWEST: u64 = 500;
/// The same for shares of soft interrupts, which are judged at 10 % and more.
const FEWEST_SOFTIRQ: u64 = 100;
/// The same for locks, which are judged at 20 %: a true share of 20 % would show as 12 to 28 %.
const FEWEST_LOCKS: u64 = 100;

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "perf-stacks",
    summary: "where the kernel spends CPU time, by stacks sampled on every CPU",
    cost: Cost::Sampled,
    needs: &[Need::Perf],
    sources: &[],
    yields: &[
        &keys::STACK_AUDIT,
        &keys::STACK_FIB_LOOKUPS,
        &keys::STACK_FIB_VALIDATE,
        &keys::STACK_GRO,
        &keys::STACK_IOMMU,
        &keys::STACK_IP_ID,
        &keys::STACK_LOCK,
        &keys::STACK_NETFILTER,
        &keys::STACK_NFT_RULES,
        &keys::STACK_RPS,
        &keys::STACK_SAMPLES,
        &keys::STACK_SELINUX,
        &keys::STACK_SLAB,
        &keys::STACK_SOFTIRQ_SAMPLES,
        &keys::STACK_SYSCALL_ENTRY,
        &keys::STACK_THREADS,
        &keys::STACK_TOP,
        &keys::STACK_UDP_LOCK,
        &keys::STACK_XMIT_LOCK,
        &keys::STACK_XMIT_SPIN,
    ],
    derive,
    doc: "\
Each CPU is interrupted 99 times a second, by its cycle counter or, in most guests, by a timer, and the kernel \
functions on the stack are recorded by name. Idle samples are counted separately: a share of 30 % does not show how \
busy the machine is.

The stack of an interrupt lies on top of the interrupted code, and softirqs on top of the function that released a \
lock; only the innermost part of a stack is classified. On loopback a datagram is received within the call that sent \
it, and would otherwise count as sending.

Traps. A timer cannot sample code that runs with interrupts off: its time appears where they are enabled again \
(`_raw_spin_unlock_irqrestore`, `do_syscall_64`), so in a guest the share of locks taken with interrupts off is too \
small. An inlined function has no name of its own. On a bridge with br_netfilter, forwarding runs inside the hook and \
counts as netfilter. Loopback and veth use the backlog queue without RPS. Shares of fewer than 500 busy samples, or of \
fewer than 100 samples within softirqs or for locks, are not reported; zero softirq samples under the UDP lock give a \
share of zero however few samples there are.

Sources: perf_event_open(2); kernel/events/core.c, kernel/softirq.c, net/core/dev.c, net/ipv4/udp.c of Linux 6.18.",
};

/// Thread names reported: a line or two of a terminal.
const MOST_THREADS: usize = 8;

/// The whole of a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whole {
    Busy,
    /// Busy samples; fewer are enough, since the share matters only if it is large.
    Large,
    Softirq,
}

/// One share.
struct Share {
    key: &'static Key,
    of: Whole,
    counts: fn(&Stack<'_>) -> bool,
}

impl Share {
    const fn busy(key: &'static Key, counts: fn(&Stack<'_>) -> bool) -> Self {
        Self {
            key,
            of: Whole::Busy,
            counts,
        }
    }
}

static SHARES: &[Share] = &[
    Share::busy(&keys::STACK_AUDIT, |stack| stack.under(Set::Audit)),
    Share::busy(&keys::STACK_FIB_VALIDATE, |stack| {
        stack.under(Set::FibValidate)
    }),
    // What GRO gives to the protocols when a batch is full is theirs.
    Share::busy(&keys::STACK_GRO, |stack| {
        stack.under(Set::Gro) && !stack.within(Set::Gro, Set::Delivery)
    }),
    Share::busy(&keys::STACK_IOMMU, |stack| stack.under(Set::Iommu)),
    Share::busy(&keys::STACK_IP_ID, |stack| stack.itself(Set::IpId)),
    Share {
        key: &keys::STACK_LOCK,
        of: Whole::Large,
        counts: |stack| stack.under(Set::SlowPath) || stack.under(Set::Optimistic),
    },
    Share::busy(&keys::STACK_NETFILTER, |stack| stack.under(Set::Netfilter)),
    Share::busy(&keys::STACK_NFT_RULES, |stack| stack.under(Set::Rules)),
    Share::busy(&keys::STACK_RPS, |stack| stack.under(Set::Rps)),
    Share::busy(&keys::STACK_SELINUX, |stack| stack.under(Set::Selinux)),
    Share::busy(&keys::STACK_SLAB, |stack| stack.itself(Set::Slab)),
    Share::busy(&keys::STACK_SYSCALL_ENTRY, |stack| {
        stack.itself(Set::SyscallEntry)
    }),
    Share {
        key: &keys::STACK_UDP_LOCK,
        of: Whole::Softirq,
        counts: |stack| {
            stack.is_softirq()
                && (stack.within(Set::UdpEnqueue, Set::SlowPath)
                    || stack.within(Set::UdpEnqueue, Set::SpinLock))
        },
    },
    // The backlog of another CPU has a lock of its own, which is not that of a transmit queue.
    Share::busy(&keys::STACK_XMIT_LOCK, |stack| {
        stack.within(Set::Xmit, Set::SlowPath) && !stack.within(Set::Xmit, Set::Backlog)
    }),
    Share::busy(&keys::STACK_XMIT_SPIN, |stack| {
        stack.itself(Set::SpinLock)
            && stack.within(Set::Xmit, Set::SpinLock)
            && !stack.within(Set::Xmit, Set::Backlog)
    }),
];

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    if let Ok(Answer::Stacks(stacks)) = window.answer(NAME) {
        tell(stacks, evidence);
    } else {
        let why = super::absence(window, NAME, "kernel stacks were not sampled");
        evidence.absent(PROBE.yields, &why, "perf_event_open");
    }
}

/// A stack with its samples, as text and as read.
struct Sampled<'a> {
    folded: &'a str,
    samples: u64,
    stack: Stack<'a>,
}

fn tell(stacks: &Stacks, evidence: &mut Evidence) {
    let source = format!("perf_event_open: {} at {} Hz", stacks.event, stacks.hz);
    let mut functions = Functions::default();
    let all: Vec<Sampled<'_>> = stacks
        .folded
        .iter()
        .map(|(folded, samples)| Sampled {
            folded,
            samples: *samples,
            stack: functions.stack(folded),
        })
        .collect();
    let busy = total(all.iter().map(|one| one.samples));
    let in_softirq = all.iter().filter(|one| one.stack.is_softirq());
    let softirq = total(in_softirq.map(|one| one.samples));
    let host = Subject::host;
    let line = format!(
        "{busy} busy, {} idle, {} lost; sampling took {:.3} s of CPU time",
        stacks.idle, stacks.lost, stacks.cost_s
    );
    let origin = |line: String| Origin::new(source.as_str(), line);
    evidence.number(&keys::STACK_SAMPLES, host(), busy as f64, origin(line));
    evidence.number(
        &keys::STACK_SOFTIRQ_SAMPLES,
        host(),
        softirq as f64,
        origin(format!("{softirq} of {busy} busy samples")),
    );
    if busy < FEWEST {
        let why = Absence::because(format!(
            "{busy} busy samples of kernel stacks, and a share needs at least {FEWEST}"
        ))
        .remedy("observe for longer, and while the load runs");
        let large = |key: &Key| {
            let share = SHARES.iter().find(|share| share.key == key);
            busy >= FEWEST_LOCKS && share.is_some_and(|share| share.of == Whole::Large)
        };
        let undecided: Vec<&'static Key> = (PROBE.yields.iter().copied())
            .filter(|key| !large(key))
            .collect();
        evidence.absent(&undecided, &why, &source);
    }
    for share in SHARES {
        let (whole, name, fewest) = match share.of {
            Whole::Busy | Whole::Softirq if busy < FEWEST => continue,
            Whole::Large if busy < FEWEST_LOCKS => continue,
            Whole::Busy => (busy, "busy samples", FEWEST),
            Whole::Large => (busy, "busy samples", FEWEST_LOCKS),
            Whole::Softirq => (softirq, "samples within softirqs", FEWEST_SOFTIRQ),
        };
        let mut counted = 0_u64;
        let mut heaviest: Option<&Sampled<'_>> = None;
        for one in all.iter().filter(|one| (share.counts)(&one.stack)) {
            counted = counted.saturating_add(one.samples);
            if heaviest.is_none_or(|known| one.samples > known.samples) {
                heaviest = Some(one);
            }
        }
        if counted > 0 && whole < fewest {
            let why = Absence::because(format!("{whole} {name}, and {fewest} are needed"))
                .remedy("observe for longer, and while the load runs");
            evidence.absent(&[share.key], &why, &source);
            continue;
        }
        let mut line = format!("{counted} of {whole} {name}");
        if let Some(heaviest) = heaviest {
            // Writing to a string never fails.
            let _ = write!(
                line,
                "; heaviest, {}: {}",
                heaviest.samples, heaviest.folded
            );
        }
        let value = counted as f64 / whole.max(1) as f64;
        evidence.number(share.key, host(), value, origin(line));
    }
    if busy < FEWEST {
        return;
    }
    tell_callers(&all, evidence, &origin);
    tell_top(&all, busy, evidence, &origin);
    tell_threads(&all, busy, evidence, &origin);
}

/// Callers of route lookups.
fn tell_callers(all: &[Sampled<'_>], evidence: &mut Evidence, origin: &dyn Fn(String) -> Origin) {
    let callers = weights(all, Stack::fib_caller);
    let line = if callers.is_empty() {
        "no sample in fib_table_lookup".to_owned()
    } else {
        let counts: Vec<String> = callers
            .iter()
            .map(|(caller, samples)| format!("{caller} {samples}"))
            .collect();
        format!(
            "samples of fib_table_lookup by caller: {}",
            counts.join(", ")
        )
    };
    let key = &keys::STACK_FIB_LOOKUPS;
    evidence.number(key, Subject::host(), callers.len() as f64, origin(line));
}

/// Where most of the time is spent.
fn tell_top(
    all: &[Sampled<'_>],
    busy: u64,
    evidence: &mut Evidence,
    origin: &dyn Fn(String) -> Origin,
) {
    let leaves = weights(all, Stack::leaf);
    // Of equals the first by name, so that the result is deterministic.
    let Some((function, samples)) = leaves.iter().rev().max_by_key(|(_, samples)| **samples) else {
        let why = Absence::because("no sample was in a function of the kernel");
        evidence.absent(&[&keys::STACK_TOP], &why, "perf_event_open");
        return;
    };
    let share = *samples as f64 / busy as f64 * 100.0;
    evidence.text(
        &keys::STACK_TOP,
        Subject::host(),
        format!("{function} {share:.1} %"),
        origin(format!("{samples} of {busy} busy samples")),
    );
}

/// CPU time by thread name: all threads of the machine, including those that end within the window. Per-CPU kernel
/// threads (`ksoftirqd/3`) are combined.
fn tell_threads(
    all: &[Sampled<'_>],
    busy: u64,
    evidence: &mut Evidence,
    origin: &dyn Fn(String) -> Origin,
) {
    let mut threads: BTreeMap<&str, u64> = BTreeMap::new();
    for one in all {
        let name = one.folded.split([';', '/']).next().unwrap_or_default();
        let sum = threads.entry(name).or_default();
        *sum = sum.saturating_add(one.samples);
    }
    let mut threads: Vec<(&str, u64)> = threads.into_iter().collect();
    threads.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
    let shares: Vec<String> = threads
        .iter()
        .take(MOST_THREADS)
        .map(|(name, samples)| format!("{name} {:.1} %", *samples as f64 / busy as f64 * 100.0))
        .collect();
    let line = format!("{busy} busy samples of {} names", threads.len());
    let key = &keys::STACK_THREADS;
    evidence.text(key, Subject::host(), shares.join(", "), origin(line));
}

/// Samples by what `of` finds in a stack.
fn weights<'a>(
    all: &[Sampled<'a>],
    of: impl Fn(&Stack<'a>) -> Option<&'a str>,
) -> BTreeMap<&'a str, u64> {
    let mut weights = BTreeMap::new();
    for one in all {
        if let Some(name) = of(&one.stack) {
            let sum: &mut u64 = weights.entry(name).or_default();
            *sum = sum.saturating_add(one.samples);
        }
    }
    weights
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rungwise_formats::folded;
    use rungwise_model::evidence::Missing;

    use super::*;
    use crate::capture::{Capture, Moment, Reply};

    /// The reference case with RPS on and one socket: 20 cores push into one queue (Linux 4.6, bare metal).
    const ONE_SOCKET: &str = "\
swapper;cpu_startup_entry;ret_from_intr;do_IRQ;irq_exit;__do_softirq;net_rx_action;ixgbe_poll;napi_gro_receive;netif_receive_skb_internal;get_rps_cpu 90
swapper;cpu_startup_entry;ret_from_intr;do_IRQ;irq_exit;__do_softirq;net_rx_action;ixgbe_poll;napi_gro_receive;dev_gro_receive;inet_gro_receive;udp_gro_receive 110
swapper;cpu_startup_entry;call_function_single_interrupt;irq_exit;__do_softirq;net_rx_action;process_backlog;__netif_receive_skb_core;ip_rcv;ip_local_deliver;udp_rcv;__udp4_lib_rcv;udp_queue_rcv_skb;_raw_spin_lock;queued_spin_lock_slowpath 480
ksoftirqd/3;smpboot_thread_fn;run_ksoftirqd;__do_softirq;net_rx_action;process_backlog;__netif_receive_skb_core;ip_rcv;ip_local_deliver;udp_rcv;__udp4_lib_rcv;udp_queue_rcv_skb;_raw_spin_lock 120
ksoftirqd/3;smpboot_thread_fn;run_ksoftirqd;__do_softirq;net_rx_action;process_backlog;__netif_receive_skb_core;ip_rcv;ip_local_deliver;udp_rcv;__udp4_lib_rcv 1200
udp_echo;entry_SYSCALL_64_fastpath;sys_recvfrom;udp_recvmsg 900
udp_echo;entry_SYSCALL_64_fastpath;sys_sendto;udp_sendmsg;ip_make_skb;__ip_select_ident 100
udp_echo;[user] 1000
";

    /// The same path in a guest of Linux 6.18 on loopback, with names as its compiler left them.
    const GUEST: &str = "\
echo;entry_SYSCALL_64_after_hwframe;do_syscall_64;__sys_sendto;udp_sendmsg;ip_output;__dev_queue_xmit;__local_bh_enable_ip;do_softirq.part.0;handle_softirqs;net_rx_action;process_backlog;__netif_receive_skb_one_core;ip_rcv;__udp4_lib_rcv;udp_queue_rcv_one_skb;__udp_enqueue_schedule_skb;_raw_spin_lock;__pv_queued_spin_lock_slowpath 200
echo;entry_SYSCALL_64_after_hwframe;do_syscall_64;__sys_sendto;udp_sendmsg;ip_output;__dev_queue_xmit;__local_bh_enable_ip;do_softirq.part.0;handle_softirqs;net_rx_action;process_backlog;__netif_receive_skb_one_core;ip_rcv;nf_hook_slow.constprop.0;nft_do_chain_inet;nft_do_chain 50
echo;entry_SYSCALL_64_after_hwframe;do_syscall_64;__sys_sendto;udp_sendmsg;ip_output;__dev_queue_xmit;__dev_xmit_skb;_raw_spin_lock 30
echo;entry_SYSCALL_64_after_hwframe;do_syscall_64;__sys_sendto;udp_sendmsg;ip_output;__dev_queue_xmit;dev_hard_start_xmit;veth_xmit;netif_rx;enqueue_to_backlog;_raw_spin_lock;__pv_queued_spin_lock_slowpath 40
echo;entry_SYSCALL_64_after_hwframe;do_syscall_64;__sys_recvfrom;udp_recvmsg;skb_release_data 80
echo;entry_SYSCALL_64_after_hwframe;do_syscall_64 300
echo;entry_SYSCALL_64_after_hwframe;do_syscall_64;syscall_trace_enter;__audit_syscall_entry;audit_filter_rules.isra.0 20
echo;entry_SYSCALL_64_after_hwframe;do_syscall_64;__sys_sendto;ip_route_output_key;fib_table_lookup 10
swapper/0;cpu_startup_entry;do_idle;pv_native_safe_halt;asm_common_interrupt;__irq_exit_rcu;handle_softirqs;napi_poll;dev_gro_receive;napi_gro_complete;netif_receive_skb_list_internal;ip_list_rcv;ip_route_input_slow;fib_table_lookup 15
swapper/0;cpu_startup_entry;do_idle;pv_native_safe_halt;asm_common_interrupt;__irq_exit_rcu;handle_softirqs;napi_poll;ip_rcv;fib_validate_source;__fib_validate_source;fib_table_lookup 25
echo;[user] 230
";

    fn evidence_of(text: &str, change: impl FnOnce(&mut Stacks)) -> Evidence {
        let (folded, unknown) = folded::parse(text);
        assert_eq!(unknown, 0);
        let mut stacks = Stacks {
            event: "cpu-clock".to_owned(),
            hz: 99,
            folded,
            idle: 40,
            lost: 3,
            cost_s: 0.125,
        };
        change(&mut stacks);
        replied(Reply::Answer(Answer::Stacks(stacks)))
    }

    fn replied(reply: Reply) -> Evidence {
        let mut moment = Moment::default();
        moment.answers.insert(NAME.to_owned(), reply);
        let capture = Capture {
            moments: vec![moment],
            ..Capture::default()
        };
        let mut evidence = Evidence::over(10.0);
        derive(&Window::of(&capture), &mut evidence);
        evidence
    }

    /// In per mille, which numbers of samples give exactly.
    fn per_mille(evidence: &Evidence, key: &'static Key) -> u64 {
        (evidence.host(key).unwrap().value * 1000.0).round() as u64
    }

    #[test]
    fn one_socket_under_many_soft_interrupts_shows_as_its_lock() {
        let evidence = evidence_of(ONE_SOCKET, |_| {});
        assert_eq!(per_mille(&evidence, &keys::STACK_SAMPLES), 4_000_000);
        assert_eq!(
            per_mille(&evidence, &keys::STACK_SOFTIRQ_SAMPLES),
            2_000_000
        );
        // 600 of 2000 within soft interrupts; of all busy samples only the slow path counts as spinning.
        assert_eq!(per_mille(&evidence, &keys::STACK_UDP_LOCK), 300);
        assert_eq!(per_mille(&evidence, &keys::STACK_LOCK), 120);
        assert_eq!(per_mille(&evidence, &keys::STACK_GRO), 28);
        assert_eq!(per_mille(&evidence, &keys::STACK_IP_ID), 25);
        assert_eq!(per_mille(&evidence, &keys::STACK_XMIT_LOCK), 0);
        let lock = evidence.host(&keys::STACK_UDP_LOCK).unwrap().reading;
        let line = &lock.origin.line;
        assert!(
            line.starts_with("600 of 2000 samples within softirqs; heaviest, 480: swapper;"),
            "{line}"
        );
        assert_eq!(lock.origin.source, "perf_event_open: cpu-clock at 99 Hz");
        let top = evidence.words(&keys::STACK_TOP, &Subject::host()).unwrap();
        assert_eq!(top.value, "__udp4_lib_rcv 30.0 %");
        let threads = evidence.words(&keys::STACK_THREADS, &Subject::host());
        let expected = "udp_echo 50.0 %, ksoftirqd 33.0 %, swapper 17.0 %";
        assert_eq!(threads.unwrap().value, expected);
    }

    #[test]
    fn in_a_guest_the_same_lock_is_found_by_its_other_names() {
        let evidence = evidence_of(GUEST, |_| {});
        let share = |key| per_mille(&evidence, key);
        assert_eq!(share(&keys::STACK_SAMPLES), 1_000_000);
        // 200 of the 290 within soft interrupts.
        assert_eq!(share(&keys::STACK_UDP_LOCK), 690);
        assert_eq!(share(&keys::STACK_LOCK), 240);
        // The lock of the receiving side, and that of a backlog, are not the transmit queue's.
        assert_eq!(share(&keys::STACK_XMIT_LOCK), 0);
        assert_eq!(share(&keys::STACK_XMIT_SPIN), 30);
        assert_eq!(share(&keys::STACK_NETFILTER), 50);
        assert_eq!(share(&keys::STACK_NFT_RULES), 50);
        assert_eq!(share(&keys::STACK_RPS), 40);
        assert_eq!(share(&keys::STACK_SLAB), 80);
        assert_eq!(share(&keys::STACK_SYSCALL_ENTRY), 300);
        assert_eq!(share(&keys::STACK_AUDIT), 20);
        assert_eq!(share(&keys::STACK_FIB_VALIDATE), 25);
        // What GRO delivers is not its own work.
        assert_eq!(share(&keys::STACK_GRO), 0);
        let callers = evidence.host(&keys::STACK_FIB_LOOKUPS).unwrap();
        assert_eq!(
            callers.reading.origin.line,
            "samples of fib_table_lookup by caller: __fib_validate_source 25, ip_route_input_slow 15, \
             ip_route_output_key 10"
        );
        assert_eq!(callers.value.to_string(), "3");
    }

    #[test]
    fn every_key_has_a_value_or_says_why_not() {
        let enough = evidence_of(GUEST, |_| {});
        let idle = evidence_of("", |stacks| stacks.idle = 1980);
        let refused = replied(Reply::Failed("EPERM".to_owned()));
        for evidence in [enough, idle, refused] {
            for key in PROBE.yields {
                assert!(
                    evidence.reading(key, &Subject::host()).is_some(),
                    "{}",
                    key.id
                );
            }
        }
    }

    #[test]
    fn an_idle_machine_has_samples_and_no_shares() {
        let evidence = evidence_of("echo;[user] 12\n", |stacks| stacks.idle = 1968);
        assert_eq!(per_mille(&evidence, &keys::STACK_SAMPLES), 12_000);
        let Missing { why, .. } = evidence.host(&keys::STACK_LOCK).unwrap_err();
        assert!(why.reason.starts_with("12 busy samples"), "{why:?}");
        assert!(why.remedy.contains("while the load runs"));
    }

    #[test]
    fn few_soft_interrupts_prove_a_lock_neither_way_unless_it_never_shows() {
        let few = "echo;[user] 600\nswapper;handle_softirqs;udp_queue_rcv_skb;_raw_spin_lock 9\n";
        let evidence = evidence_of(few, |_| {});
        let why = evidence.host(&keys::STACK_UDP_LOCK).unwrap_err().why;
        assert!(why.reason.contains("100 are needed"), "{why:?}");
        let none = "echo;[user] 600\nswapper;handle_softirqs;net_rx_action 9\n";
        assert_eq!(
            per_mille(&evidence_of(none, |_| {}), &keys::STACK_UDP_LOCK),
            0
        );
    }

    #[test]
    fn a_refusal_is_reported_with_its_remedy_and_silence_as_such() {
        let message = "cannot sample kernel stacks: not permitted (sysctl kernel.perf_event_paranoid is 2); run as root";
        let refused = replied(Reply::Failed(message.to_owned()));
        let why = refused.host(&keys::STACK_LOCK).unwrap_err().why;
        assert!(why.reason.ends_with("is 2)"), "{why:?}");
        assert!(why.reason.starts_with("cannot sample"), "{why:?}");
        assert_eq!(why.remedy, "run as root");
        let mut evidence = Evidence::over(10.0);
        let capture = Capture {
            moments: vec![Moment::default()],
            ..Capture::default()
        };
        derive(&Window::of(&capture), &mut evidence);
        let why = evidence.host(&keys::STACK_LOCK).unwrap_err().why;
        assert!(why.reason.contains("were not sampled"), "{why:?}");
    }

    proptest! {
        #[test]
        fn no_stack_makes_it_panic(text in "((a;|udp_queue_rcv_skb;|_raw_spin_lock;|handle_softirqs;|fib_table_lookup;|\\[user\\];|;|é){0,6} [0-9]{0,20}\n){0,8}") {
            let (folded, _) = folded::parse(&text);
            let stacks = Stacks { folded, ..Stacks::default() };
            let evidence = replied(Reply::Answer(Answer::Stacks(stacks)));
            for reading in evidence.readings() {
                if let rungwise_model::evidence::Value::Number(value) = reading.value {
                    prop_assert!(value >= 0.0);
                }
            }
        }
    }
}
