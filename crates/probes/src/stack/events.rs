//! Kernel events of the window: dropped packets, and for a part of it contended locks and system calls.
//!
//! Counts are divided by the time that they were counted for, which may differ from the window. An event that was
//! refused makes only its own keys absent.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rungwise_formats::snmp;
use rungwise_model::evidence::{Absence, Evidence, Key, Kind, Origin, Subject};
use rungwise_model::kernel::{Answer, Events, LongRun};
use rungwise_model::keys;

use super::functions::{Functions, Set, Stack};
use super::total;
use crate::enter;
use crate::probe::{Cost, Need, Probe, Source};
use crate::window::Window;

/// The answer's name in a capture.
const NAME: &str = "events";

const CONTENTION: &str = "lock:contention_begin";
const DROP: &str = "skb:kfree_skb";
const SYSCALL: &str = "raw_syscalls:sys_enter";
const MIGRATION: &str = "cpu-migrations";
const SWITCH: &str = "context-switches";
const CONNECT: &str = "syscalls:sys_exit_connect";
const SYNC: &str = "fsync";

const SNMP: &str = "/proc/net/snmp";
const SNMP6: &str = "/proc/net/snmp6";

/// Fewer long runs of a thread may be chance: a busy machine is watched for a tenth of a second.
const FEWEST_RUNS: u64 = 5;

/// Fewer slow calls of fsync may be chance, as after a snapshot of the disk.
const FEWEST_SYNCS: u64 = 3;

/// The reason of packets that a rule or the policy of a chain dropped.
const NETFILTER: &str = "NETFILTER_DROP";

/// Errors of an address without a route.
const UNREACHABLE: &[&str] = &["EHOSTUNREACH", "ENETUNREACH"];

/// Reasons cited; the rest is a number.
const MOST_REASONS: usize = 8;

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "perf-events",
    summary: "dropped packets by reason; contended locks, system calls and migrations for part of the window",
    cost: Cost::Sampled,
    needs: &[Need::Perf, Need::Tracefs],
    sources: &[Source::each(SNMP), Source::each(SNMP6)],
    yields: &[
        &keys::CPU_MIGRATIONS,
        &keys::DROP_NETFILTER,
        &keys::DROP_RATE,
        &keys::DROP_REASONS,
        &keys::LOCK_CONTENTIONS,
        &keys::LOCK_UDP_CONTENTIONS,
        &keys::LOCK_XMIT_CONTENTIONS,
        &keys::PROCESS_CONNECT_ERROR,
        &keys::PROCESS_CONNECT_FAILED,
        &keys::PROCESS_CONNECT_FAILED_SHARE,
        &keys::PROCESS_LONG_RUNS,
        &keys::PROCESS_LONG_RUN_SHARE,
        &keys::PROCESS_SHORT_RUNS,
        &keys::PROCESS_SHORT_RUN_MEAN,
        &keys::PROCESS_SYNCS,
        &keys::PROCESS_SYNC_LONGEST,
        &keys::PROCESS_SYNC_MEDIAN,
        &keys::PROCESS_SYNC_SLOW,
        &keys::SYSCALL_DATAGRAMS_PER_CALL,
        &keys::SYSCALL_RATE,
        &keys::UNIX_TURNED_AWAY,
    ],
    derive,
    doc: "\
Tracepoints of the kernel, counted on every CPU: dropped packets in the whole window, unless there are more than \
100,000; contended locks for at most two seconds (likewise task migrations, a software event without a tracepoint), \
and system calls until their rate is known, because counting slows each of them by some 170 ns. Calls of connect(2) and \
their errors are sampled in the same part (all of them up to 997 calls per second and CPU), and runs of 5 ms and more: how long a thread was on CPUs, or preempted, before it waited. Calls of fsync(2) are timed \
in the whole window on ext4 and f2fs, which have tracepoints for it, and on other file systems in that part. Counts are exact; \
stacks of contended locks and drop reasons are sampled, at most 997 per second and CPU, and their shares are applied \
to the count.

Traps. `skb:kfree_skb` also counts packets that are freed normally: NOT_SPECIFIED means that the caller gives no \
reason, AF_UNIX and AF_PACKET sockets are included, and a rate of a few per second is harmless. Kernels before 5.17 \
report no reasons. `lock:contention_begin` (5.19) counts sleeping locks as well as spin locks, but not the first \
waiter of a spin lock, which spins without queueing: the true number of UDP and transmit contentions is higher. \
Datagrams per system call divides the datagrams of the whole window in this network namespace by the calls of the \
counted part on the whole machine: it is low if other programs make many calls.

Sources: include/trace/events/{lock,skb,syscalls}.h, kernel/locking/qspinlock.c of Linux 6.18.",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    match window.answer(NAME) {
        Ok(Answer::Events(events)) if events.seconds > 0.0 => {
            tell_contentions(events, evidence);
            tell_drops(events, evidence);
            tell_calls(window, events, evidence);
            tell_migrations(events, evidence);
            record_turned_away(events, evidence);
            record_failed_connects(events, evidence);
            record_long_runs(events, evidence);
            record_syncs(events, evidence);
        }
        Ok(Answer::Events(_)) => {
            let why = Absence::because("kernel events were counted for zero seconds");
            evidence.absent(PROBE.yields, &why, "perf_event_open");
        }
        _ => {
            let why = super::absence(window, NAME, "kernel events were not counted");
            evidence.absent(PROBE.yields, &why, "perf_event_open");
        }
    }
}

/// Whether an event was counted; if not, `keys` say why.
fn counted(events: &Events, event: &str, keys: &[&'static Key], evidence: &mut Evidence) -> bool {
    let Some(why) = events.refused.get(event) else {
        return true;
    };
    evidence.absent(keys, &super::remedied(why), event);
    false
}

fn tell_contentions(events: &Events, evidence: &mut Evidence) {
    /// Which stacks a key counts.
    type Counts = fn(&Stack<'_>) -> bool;
    static KEYS: &[(&Key, Counts)] = &[
        (&keys::LOCK_CONTENTIONS, |_| true),
        (&keys::LOCK_UDP_CONTENTIONS, |stack| {
            stack.under(Set::UdpEnqueue)
        }),
        (&keys::LOCK_XMIT_CONTENTIONS, |stack| {
            stack.under(Set::Xmit) && !stack.within(Set::Xmit, Set::Backlog)
        }),
    ];
    let all: Vec<&'static Key> = KEYS.iter().map(|(key, _)| *key).collect();
    if !counted(events, CONTENTION, &all, evidence) {
        return;
    }
    let mut functions = Functions::default();
    let stacks: Vec<(&str, u64, Stack<'_>)> = events
        .contentions
        .iter()
        .map(|(folded, count)| (folded.as_str(), *count, functions.stack(folded)))
        .collect();
    for (key, counts) in KEYS {
        let found: Vec<_> = stacks.iter().filter(|(.., stack)| counts(stack)).collect();
        let sum = total(found.iter().map(|(_, count, _)| *count));
        let mut line = format!("{sum} in {:.2} s", events.seconds);
        if let Some((folded, count, _)) = found.iter().max_by_key(|(_, count, _)| count) {
            // Writing to a string never fails.
            let _ = write!(line, "; most, {count}: {folded}");
        }
        let rate = sum as f64 / events.seconds;
        evidence.number(key, Subject::host(), rate, Origin::new(CONTENTION, line));
    }
}

fn tell_drops(events: &Events, evidence: &mut Evidence) {
    let keys: [&'static Key; 3] = [&keys::DROP_NETFILTER, &keys::DROP_RATE, &keys::DROP_REASONS];
    if !counted(events, DROP, &keys, evidence) {
        return;
    }
    let mut reasons: Vec<(&str, u64)> = events
        .drops
        .iter()
        .map(|(reason, count)| (reason.as_str(), *count))
        .collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let sum = total(reasons.iter().map(|(_, count)| *count));
    let mut parts: Vec<String> = reasons
        .iter()
        .take(MOST_REASONS)
        .map(|(reason, count)| format!("{reason} {count}"))
        .collect();
    let rest = total(reasons.iter().skip(MOST_REASONS).map(|(_, count)| *count));
    if rest > 0 {
        parts.push(format!("others {rest}"));
    }
    let words = if parts.is_empty() {
        "none".to_owned()
    } else {
        parts.join(", ")
    };
    let seconds = events.drop_seconds.unwrap_or(events.seconds);
    let origin = Origin::new(DROP, format!("{sum} in {seconds:.2} s: {words}"));
    let rate = sum as f64 / seconds;
    evidence.number(&keys::DROP_RATE, Subject::host(), rate, origin.clone());
    let by_rules = events.drops.get(NETFILTER).copied().unwrap_or_default();
    let by_rules = by_rules as f64 / seconds;
    let host = Subject::host();
    evidence.number(&keys::DROP_NETFILTER, host, by_rules, origin.clone());
    evidence.text(&keys::DROP_REASONS, Subject::host(), words, origin);
}

fn tell_calls(window: &Window<'_>, events: &Events, evidence: &mut Evidence) {
    let keys: [&'static Key; 2] = [&keys::SYSCALL_RATE, &keys::SYSCALL_DATAGRAMS_PER_CALL];
    if !counted(events, SYSCALL, &keys, evidence) {
        return;
    }
    let seconds = events.syscall_seconds.unwrap_or(events.seconds);
    for (cpu, calls) in &events.syscalls {
        let line = format!("{calls} in {seconds:.2} s");
        evidence.number(
            &keys::SYSCALL_RATE,
            Subject::cpu(*cpu as usize),
            *calls as f64 / seconds,
            Origin::new(SYSCALL, line),
        );
    }
    let calls = total(events.syscalls.values().copied()) as f64 / seconds;
    let key = &keys::SYSCALL_DATAGRAMS_PER_CALL;
    match datagrams(window) {
        Ok(_) if calls <= 0.0 => {
            let why = Absence::because("no system call was counted");
            evidence.absent(&[key], &why, SYSCALL);
        }
        Ok(datagrams) => {
            let line = format!("{datagrams:.0} datagrams/s, {calls:.0} system calls/s");
            let origin = Origin::new(format!("{SNMP}, {SYSCALL}"), line);
            evidence.number(key, Subject::host(), datagrams / calls, origin);
        }
        Err(why) => evidence.absent(&[key], &why, SNMP),
    }
}

fn tell_migrations(events: &Events, evidence: &mut Evidence) {
    let key = &keys::CPU_MIGRATIONS;
    if !counted(events, MIGRATION, &[key], evidence) {
        return;
    }
    let Some(migrations) = &events.migrations else {
        let why = Absence::because("the capture contains no count of task migrations");
        return evidence.absent(&[key], &why, MIGRATION);
    };
    for (cpu, came) in migrations {
        let rate = *came as f64 / events.seconds;
        let origin = Origin::new(MIGRATION, format!("{came} in {:.2} s", events.seconds));
        evidence.number(key, Subject::cpu(*cpu as usize), rate, origin);
    }
    let none = Absence::because("no CPU was counted");
    enter::absent_if_unset(evidence, &[key], &none, MIGRATION);
}

fn record_turned_away(events: &Events, evidence: &mut Evidence) {
    let key = &keys::UNIX_TURNED_AWAY;
    if !counted(events, CONNECT, &[key], evidence) {
        return;
    }
    let Some(turned_away) = &events.turned_away else {
        let why = Absence::because("the capture contains no failed connections");
        return evidence.absent(&[key], &why, CONNECT);
    };
    for (pid, times) in turned_away {
        let line = format!("EAGAIN {times} times in {:.2} s", events.seconds);
        let rate = *times as f64 / events.seconds;
        let subject = Subject::new(Kind::Process, pid);
        evidence.number(key, subject, rate, Origin::new(CONNECT, line));
    }
    let none = Absence::none("no connection was turned away by a full queue");
    enter::absent_if_unset(evidence, &[key], &none, CONNECT);
}

fn record_failed_connects(events: &Events, evidence: &mut Evidence) {
    let keys: [&'static Key; 3] = [
        &keys::PROCESS_CONNECT_ERROR,
        &keys::PROCESS_CONNECT_FAILED,
        &keys::PROCESS_CONNECT_FAILED_SHARE,
    ];
    if !counted(events, CONNECT, &keys, evidence) {
        return;
    }
    let Some(connects) = &events.connects else {
        let why = Absence::because("the capture contains no failed connections");
        return evidence.absent(&keys, &why, CONNECT);
    };
    for (pid, connects) in &connects.0 {
        // A missing route is normal for some addresses of a name, and hides no other error.
        let counts = |unreachable| {
            let kind = move |error: &str| UNREACHABLE.contains(&error) == unreachable;
            (connects.failed.iter()).filter(move |(error, _)| kind(error))
        };
        let most = |unreachable| counts(unreachable).max_by_key(|(_, times)| **times);
        let (is_unreachable, most) = match (most(false), most(true)) {
            (Some((error, _)), _) => (false, error),
            (None, Some((error, _))) => (true, error),
            (None, None) => continue,
        };
        let failed = total(counts(is_unreachable).map(|(_, times)| *times));
        let each: Vec<String> = (connects.failed.iter())
            .map(|(error, times)| format!("{error} {times}"))
            .collect();
        let line = format!(
            "{} of {} calls in {:.2} s",
            each.join(", "),
            connects.calls,
            events.seconds
        );
        let subject = || Subject::new(Kind::Process, pid);
        let origin = || Origin::new(CONNECT, line.clone());
        evidence.text(keys[0], subject(), most.as_str(), origin());
        let rate = failed as f64 / events.seconds;
        evidence.number(keys[1], subject(), rate, origin());
        let share = failed as f64 / connects.calls.max(1) as f64;
        evidence.number(keys[2], subject(), share.min(1.0), origin());
    }
    let none = Absence::none("no connection failed at once");
    enter::absent_if_unset(evidence, &keys, &none, CONNECT);
}

fn record_long_runs(events: &Events, evidence: &mut Evidence) {
    let keys: [&'static Key; 4] = [
        &keys::PROCESS_LONG_RUNS,
        &keys::PROCESS_LONG_RUN_SHARE,
        &keys::PROCESS_SHORT_RUNS,
        &keys::PROCESS_SHORT_RUN_MEAN,
    ];
    if !counted(events, SWITCH, &keys, evidence) {
        return;
    }
    let Some(runs) = events.long_runs.as_ref().filter(|runs| runs.seconds > 0.0) else {
        let why = Absence::because("the capture contains no runs of threads");
        return evidence.absent(&keys, &why, SWITCH);
    };
    let mut most: BTreeMap<u32, &LongRun> = BTreeMap::new();
    for run in runs.threads.iter().filter(|run| run.number >= FEWEST_RUNS) {
        let longest = most.entry(run.process).or_insert(run);
        if run.seconds > longest.seconds {
            *longest = run;
        }
    }
    for (pid, run) in most {
        let line = format!(
            "thread {}: {} runs of 5 ms and more, together {:.3} s of {:.2} s",
            run.thread, run.number, run.seconds, runs.seconds
        );
        let origin = || Origin::new(SWITCH, line.clone());
        let subject = || Subject::new(Kind::Process, pid);
        let rate = run.number as f64 / runs.seconds;
        evidence.number(&keys::PROCESS_LONG_RUNS, subject(), rate, origin());
        let share = (run.seconds / runs.seconds).min(1.0);
        evidence.number(&keys::PROCESS_LONG_RUN_SHARE, subject(), share, origin());
        if let Some(short) = run.short {
            let line = format!(
                "thread {}: {} shorter runs, together {:.3} s",
                run.thread, short.number, short.seconds
            );
            let origin = || Origin::new(SWITCH, line.clone());
            let rate = short.number as f64 / runs.seconds;
            evidence.number(&keys::PROCESS_SHORT_RUNS, subject(), rate, origin());
            if short.number > 0 {
                let mean = short.seconds / short.number as f64;
                evidence.number(&keys::PROCESS_SHORT_RUN_MEAN, subject(), mean, origin());
            }
        }
    }
    let none = Absence::none("no thread ran several times for 5 ms without a wait");
    enter::absent_if_unset(evidence, &keys, &none, SWITCH);
}

fn record_syncs(events: &Events, evidence: &mut Evidence) {
    let keys: [&'static Key; 4] = [
        &keys::PROCESS_SYNCS,
        &keys::PROCESS_SYNC_LONGEST,
        &keys::PROCESS_SYNC_MEDIAN,
        &keys::PROCESS_SYNC_SLOW,
    ];
    if !counted(events, SYNC, &keys, evidence) {
        return;
    }
    let Some(syncs) = &events.syncs else {
        let why = Absence::because("the capture contains no times of fsync");
        return evidence.absent(&keys, &why, SYNC);
    };
    for times in &syncs.0 {
        if times.slow < FEWEST_SYNCS || times.watched <= 0.0 {
            continue;
        }
        let line = format!(
            "{} of {} calls in {:.2} s took 10 ms or longer; median {:.2} ms, longest {:.1} ms",
            times.slow,
            times.number,
            times.watched,
            times.median * 1e3,
            times.longest * 1e3
        );
        let values = [
            times.number as f64 / times.watched,
            times.longest,
            times.median,
            times.slow as f64 / times.number as f64,
        ];
        for (key, value) in keys.into_iter().zip(values) {
            let subject = Subject::new(Kind::Process, times.process);
            evidence.number(key, subject, value, Origin::new(SYNC, line.clone()));
        }
    }
    let none =
        Absence::none("no process called fsync that took 10 ms or longer at least three times");
    enter::absent_if_unset(evidence, &keys, &none, SYNC);
}

/// UDP datagrams that programs received and sent per second.
fn datagrams(window: &Window<'_>) -> Result<f64, Absence> {
    let counted = |counters: snmp::Counters<'_>, protocol: &'static str| -> BTreeMap<(), f64> {
        let counter = |name| Some(*counters.get(&(protocol, name))? as f64);
        let both = || Some(counter("InDatagrams")? + counter("OutDatagrams")?);
        both().map(|sum| ((), sum)).into_iter().collect()
    };
    let four = window.rates(SNMP, |text| counted(snmp::parse(text), "Udp"))?;
    // A kernel without IPv6 has no such file.
    let six = window
        .rates(SNMP6, |text| counted(snmp::parse6(text), "Udp6"))
        .unwrap_or_default();
    let four = four.get(&()).ok_or_else(|| {
        Absence::because(format!(
            "{SNMP} lacks UDP datagrams at one end of the window"
        ))
    })?;
    Ok(four.per_s + six.get(&()).map_or(0.0, |rate| rate.per_s))
}

#[cfg(test)]
mod tests {
    use rungwise_model::kernel::{Connects, FailedConnects, LongRuns, ShortRuns, SyncTimes, Syncs};

    use super::*;
    use crate::capture::{Capture, Moment, Raw, Reply};

    fn evidence_of(events: Events) -> Evidence {
        let sample = |at_s: f64, datagrams: u64| {
            let text =
                format!("Udp: InDatagrams NoPorts OutDatagrams\nUdp: {datagrams} 5 {datagrams}\n");
            let files = [(SNMP.to_owned(), Raw::Text(text))].into();
            Moment {
                at_s,
                files,
                ..Moment::default()
            }
        };
        let mut last = sample(10.0, 51_000);
        last.answers
            .insert(NAME.to_owned(), Reply::Answer(Answer::Events(events)));
        let capture = Capture {
            moments: vec![sample(0.0, 1000), last],
            ..Capture::default()
        };
        let mut evidence = Evidence::over(10.0);
        derive(&Window::of(&capture), &mut evidence);
        evidence
    }

    fn map(pairs: &[(&str, u64)]) -> BTreeMap<String, u64> {
        pairs
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count))
            .collect()
    }

    fn connects(calls: u64, failed: &[(&str, u64)]) -> Connects {
        Connects {
            calls,
            failed: map(failed),
        }
    }

    fn events() -> Events {
        Events {
            seconds: 2.0,
            contentions: map(&[
                (
                    "echo;handle_softirqs;udp_queue_rcv_one_skb;_raw_spin_lock;native_queued_spin_lock_slowpath",
                    3000,
                ),
                (
                    "echo;udp_sendmsg;__dev_queue_xmit;__dev_xmit_skb;_raw_spin_lock;native_queued_spin_lock_slowpath",
                    400,
                ),
                (
                    "echo;ip_output;__dev_queue_xmit;__local_bh_enable_ip;handle_softirqs;net_rx_action;_raw_spin_lock",
                    20,
                ),
                ("java;do_futex;_raw_spin_lock", 80),
                ("[others]", 100),
            ]),
            drops: map(&[("NO_SOCKET", 10), ("SOCKET_RCVBUFF", 190)]),
            drop_seconds: Some(10.0),
            syscalls: [(0, 7500), (1, 2500)].into(),
            syscall_seconds: Some(0.5),
            migrations: Some([(0, 300), (1, 20)].into()),
            turned_away: Some([(812, 10)].into()),
            connects: Some(Box::new(FailedConnects(
                [
                    (
                        812,
                        connects(20, &[("ECONNREFUSED", 8), ("ENETUNREACH", 10)]),
                    ),
                    (813, connects(2, &[("ENETUNREACH", 2)])),
                ]
                .into(),
            ))),
            long_runs: Some(Box::new(LongRuns {
                seconds: 2.0,
                threads: [(41, 41, 26, 0.26), (41, 42, 1, 0.01)]
                    .map(|(process, thread, number, seconds)| LongRun {
                        process,
                        thread,
                        number,
                        seconds,
                        short: Some(ShortRuns {
                            number: 50 * number,
                            seconds: 0.065,
                        }),
                    })
                    .into(),
            })),
            syncs: Some(Box::new(Syncs(vec![
                SyncTimes {
                    process: 51,
                    watched: 10.0,
                    number: 720,
                    slow: 9,
                    median: 0.0014,
                    longest: 0.021,
                },
                SyncTimes {
                    process: 52,
                    watched: 2.0,
                    number: 8,
                    slow: 2,
                    median: 0.001,
                    longest: 0.04,
                },
            ]))),
            refused: BTreeMap::new(),
        }
    }

    #[test]
    fn contentions_are_rates_by_what_is_on_the_stack() {
        let evidence = evidence_of(events());
        let rate = |key| evidence.host(key).unwrap().value.round() as u64;
        assert_eq!(rate(&keys::LOCK_CONTENTIONS), 1800);
        assert_eq!(rate(&keys::LOCK_UDP_CONTENTIONS), 1500);
        assert_eq!(rate(&keys::LOCK_XMIT_CONTENTIONS), 200);
        let udp = evidence.host(&keys::LOCK_UDP_CONTENTIONS).unwrap().reading;
        assert!(
            udp.origin
                .line
                .starts_with("3000 in 2.00 s; most, 3000: echo;")
        );
    }

    #[test]
    fn connections_turned_away_are_a_rate_by_process() {
        let rate = |events| {
            evidence_of(events)
                .quantity(&keys::UNIX_TURNED_AWAY, &Subject::new(Kind::Process, 812))
                .map(|rate| rate.value)
        };
        assert!((rate(events()).unwrap() - 5.0).abs() < 1e-9);
        let none = Events {
            turned_away: Some(BTreeMap::new()),
            ..events()
        };
        assert!(rate(none).unwrap_err().why.is_none);
        let unknown = Events {
            turned_away: None,
            ..events()
        };
        assert!(!rate(unknown).unwrap_err().why.is_none);
    }

    #[test]
    fn failed_connections_are_a_rate_and_a_share_by_process() {
        let evidence = evidence_of(events());
        let of = |pid: u32| {
            let process = Subject::new(Kind::Process, pid);
            let number = |key| {
                let value = evidence.quantity(key, &process).unwrap().value;
                (10.0 * value).round() as u64
            };
            let error = evidence.words(&keys::PROCESS_CONNECT_ERROR, &process);
            let numbers = [
                &keys::PROCESS_CONNECT_FAILED,
                &keys::PROCESS_CONNECT_FAILED_SHARE,
            ];
            (error.unwrap().value.to_owned(), numbers.map(number))
        };
        assert_eq!(of(812), ("ECONNREFUSED".to_owned(), [40, 4]));
        assert_eq!(of(813), ("ENETUNREACH".to_owned(), [10, 10]));
        let none = Events {
            connects: Some(Box::default()),
            ..events()
        };
        let none = evidence_of(none);
        let missing = none.host(&keys::PROCESS_CONNECT_FAILED).unwrap_err();
        assert!(missing.why.is_none);
    }

    #[test]
    fn long_runs_are_those_of_the_thread_with_most_of_them() {
        let evidence = evidence_of(events());
        let of = |key| {
            evidence
                .quantity(key, &Subject::new(Kind::Process, 41))
                .unwrap()
                .value
        };
        assert!((of(&keys::PROCESS_LONG_RUNS) - 13.0).abs() < 1e-9);
        assert!((of(&keys::PROCESS_LONG_RUN_SHARE) - 0.13).abs() < 1e-9);
        assert!((of(&keys::PROCESS_SHORT_RUNS) - 650.0).abs() < 1e-9);
        assert!((of(&keys::PROCESS_SHORT_RUN_MEAN) - 50e-6).abs() < 1e-9);
    }

    #[test]
    fn slow_calls_of_fsync_are_a_share_once_there_are_three() {
        let evidence = evidence_of(events());
        let of = |key, pid: u32| evidence.quantity(key, &Subject::new(Kind::Process, pid));
        assert!((of(&keys::PROCESS_SYNCS, 51).unwrap().value - 72.0).abs() < 1e-9);
        let slow = of(&keys::PROCESS_SYNC_SLOW, 51).unwrap();
        assert!((slow.value - 0.0125).abs() < 1e-9);
        assert_eq!(
            slow.reading.origin.line,
            "9 of 720 calls in 10.00 s took 10 ms or longer; median 1.40 ms, longest 21.0 ms"
        );
        assert!(of(&keys::PROCESS_SYNC_SLOW, 52).is_err());
        let before = evidence_of(Events {
            syncs: None,
            ..events()
        });
        assert!(before.each(&keys::PROCESS_SYNC_SLOW).is_err());
    }

    #[test]
    fn drops_are_reported_by_reason_largest_first() {
        let evidence = evidence_of(events());
        assert_eq!(
            evidence.host(&keys::DROP_RATE).unwrap().value.round() as u64,
            20
        );
        let as_long_as_the_rest = evidence_of(Events {
            drop_seconds: None,
            ..events()
        });
        let rate = as_long_as_the_rest.host(&keys::DROP_RATE).unwrap().value;
        assert_eq!(rate.round() as u64, 100);
        let reasons = evidence
            .words(&keys::DROP_REASONS, &Subject::host())
            .unwrap();
        assert_eq!(reasons.value, "SOCKET_RCVBUFF 190, NO_SOCKET 10");
        let quiet = evidence_of(Events {
            seconds: 2.0,
            ..Events::default()
        });
        let reasons = quiet.words(&keys::DROP_REASONS, &Subject::host()).unwrap();
        assert_eq!(reasons.value, "none");
    }

    #[test]
    fn calls_are_reported_by_cpu_and_compared_with_datagrams() {
        let evidence = evidence_of(events());
        let by_cpu = evidence.each(&keys::SYSCALL_RATE).unwrap();
        let rates: Vec<u64> = by_cpu
            .iter()
            .map(|(_, rate)| rate.value.round() as u64)
            .collect();
        assert_eq!(rates, [15_000, 5_000]);
        // 5000 in and 5000 out a second, by 20,000 calls.
        let each = evidence.host(&keys::SYSCALL_DATAGRAMS_PER_CALL).unwrap();
        assert_eq!(each.value.to_string(), "0.5");
    }

    #[test]
    fn migrations_are_reported_of_the_cpu_that_tasks_came_to() {
        let evidence = evidence_of(events());
        let rate = |cpu| evidence.quantity(&keys::CPU_MIGRATIONS, &Subject::cpu(cpu));
        let rates = [0, 1].map(|cpu| rate(cpu).unwrap().value.round() as u64);
        assert_eq!(rates, [150, 10]);
        let old = evidence_of(Events {
            migrations: None,
            ..events()
        });
        let missing = old.missing(&keys::CPU_MIGRATIONS, &Subject::host());
        assert!(missing.why.reason.contains("no count"));
    }

    #[test]
    fn an_event_that_was_refused_leaves_the_others_as_they_are() {
        let mut some = events();
        some.contentions.clear();
        let why = "this kernel has no event lock:contention_begin";
        some.refused = [(CONTENTION.to_owned(), why.to_owned())].into();
        let evidence = evidence_of(some);
        let missing = evidence.host(&keys::LOCK_UDP_CONTENTIONS).unwrap_err();
        assert_eq!(missing.why.reason, why);
        assert!(evidence.host(&keys::DROP_RATE).is_ok());
    }

    #[test]
    fn every_key_has_a_value_or_says_why_not() {
        let refused = |event: &str| {
            let why = "tracefs is not mounted, and mounting it was not permitted; run as root";
            (event.to_owned(), why.to_owned())
        };
        let all = [CONTENTION, DROP, MIGRATION, SYSCALL].map(refused).into();
        let nothing = Events {
            seconds: 1.0,
            refused: all,
            ..Events::default()
        };
        for events in [nothing, Events::default()] {
            let evidence = evidence_of(events);
            for key in PROBE.yields {
                assert!(evidence.each(key).is_err() && evidence.each_words(key).is_err());
                assert!(
                    evidence.reading(key, &Subject::host()).is_some(),
                    "{}",
                    key.id
                );
            }
        }
    }
}
