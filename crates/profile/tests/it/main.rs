//! Watching this machine: what its kernel does under a load of our own, and what watching leaves behind.
//!
//! Needs root; without it, or in a container that forbids perf, the tests say so and prove the refusal only.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "helpers of tests: they look at mounts, make traffic on loopback and say what was left out"
)]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rungwise_profile::{Counter, Error, Options, Sampler};
use rungwise_testkit::skipped;
use rustix::thread::{CpuSet, Uid, sched_getaffinity, sched_setaffinity, set_thread_res_uid};

/// Longest time that a load runs; all of them end as soon as enough was seen.
const MOST: Duration = Duration::from_secs(20);

/// Nothing, loudly, where this user may not watch the kernel.
fn sampler(options: &Options) -> Option<Sampler> {
    match Sampler::start(options) {
        Ok(sampler) => Some(sampler),
        // Where there is no cycle counter there is a clock: every kernel with perf has one.
        Err(error @ Error::NotOffered { .. }) => panic!("{error}"),
        Err(error) => {
            skipped(error);
            None
        }
    }
}

/// Sends datagrams to itself on loopback until `enough`: returns how many.
fn talk(enough: &AtomicBool) -> u64 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(socket.local_addr().unwrap()).unwrap();
    let until = Instant::now() + MOST;
    let mut sent = 0;
    let mut buffer = [0; 64];
    while !enough.load(Ordering::Relaxed) && Instant::now() < until {
        for _ in 0..64 {
            socket.send(&[1; 32]).unwrap();
            socket.recv(&mut buffer).unwrap();
            sent += 1;
        }
    }
    sent
}

/// Runs `talk` in a thread of the name `talker` for `time`, which is the load and not a wait for something.
fn talk_for(time: Duration) -> u64 {
    let enough = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let talker = std::thread::Builder::new()
            .name("talker".to_owned())
            .spawn_scoped(scope, || talk(&enough))
            .unwrap();
        std::thread::sleep(time);
        enough.store(true, Ordering::Relaxed);
        talker.join().unwrap()
    })
}

fn under(folded: &BTreeMap<String, u64>, task: &str, function: &str) -> u64 {
    folded
        .iter()
        .filter(|(stack, _)| {
            stack.starts_with(task) && stack.split(';').any(|frame| frame == function)
        })
        .map(|(_, samples)| samples)
        .sum()
}

#[test]
fn stacks_show_what_the_kernel_does_for_a_task() {
    let Some(sampler) = sampler(&Options { hz: 499, pid: None }) else {
        return;
    };
    talk_for(Duration::from_secs(1));
    let stacks = sampler.stop().unwrap();
    let sent = under(&stacks.folded, "talker", "udp_sendmsg");
    assert!(under(&stacks.folded, "", "[user]") > 0, "{stacks:#?}");
    // About half of 499 samples are in there; a machine that is busy with others gives us fewer.
    assert!(sent >= 10, "{sent} samples in udp_sendmsg: {stacks:#?}");
    assert_eq!(stacks.hz, 499);
    assert!(
        stacks.cost_s > 0.0 && stacks.cost_s < 2.0,
        "{}",
        stacks.cost_s
    );
    let unknown: u64 = stacks
        .folded
        .iter()
        .filter(|(stack, _)| stack.contains("[unknown]"))
        .map(|(_, samples)| samples)
        .sum();
    assert_eq!(stacks.lost, 0);
    let busy: u64 = stacks.folded.values().sum();
    assert!(unknown * 20 <= busy, "{unknown} of {busy} samples unnamed");
}

#[test]
fn of_one_process_only_its_own_stacks_are_kept() {
    let options = Options {
        hz: 499,
        pid: Some(std::process::id()),
    };
    let Some(sampler) = sampler(&options) else {
        return;
    };
    talk_for(Duration::from_millis(500));
    let stacks = sampler.stop().unwrap();
    assert!(under(&stacks.folded, "talker", "udp_sendmsg") > 0);
    // Nobody else's, the idle task's least of all.
    assert_eq!(stacks.idle, 0);
    assert_eq!(under(&stacks.folded, "swapper", "do_idle"), 0);
}

#[test]
fn a_sampler_that_is_dropped_ends_by_itself() {
    drop(sampler(&Options::default()));
}

#[test]
fn system_calls_and_drops_of_our_own_are_counted() {
    let counter = Counter::start(Duration::from_secs(5)).unwrap();
    let sent = talk_for(Duration::from_millis(500));
    // To a port where nobody listens: dropped for want of a socket.
    let closed = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..200 {
        sender.send_to(&[1; 32], closed).unwrap();
    }
    let events = counter.stop();
    if !events.refused.is_empty() {
        skipped(format_args!("{:?}", events.refused));
        return;
    }
    let calls: u64 = events.syscalls.values().sum();
    // Where there are many their counting ends early.
    let enough = (2 * sent).min(100_000);
    assert!(calls >= enough, "{calls} calls for {sent} datagrams");
    assert!(
        events
            .syscall_seconds
            .is_none_or(|seconds| seconds <= events.seconds)
    );
    let closed = events.drops.get("NO_SOCKET").copied().unwrap_or_default();
    assert!(closed >= 200, "{:?}", events.drops);
    assert!(events.seconds >= 0.5, "{}", events.seconds);
}

#[test]
fn drops_are_counted_when_the_time_of_the_others_is_over() {
    let counter = Counter::start(Duration::from_millis(50)).unwrap();
    let closed = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    talk_for(Duration::from_millis(300));
    for _ in 0..200 {
        sender.send_to(&[1; 32], closed).unwrap();
    }
    let events = counter.stop();
    if !events.refused.is_empty() {
        skipped(format_args!("{:?}", events.refused));
        return;
    }
    let seconds = events.drop_seconds.unwrap();
    assert!(events.seconds < seconds, "{events:?}");
    assert!(seconds >= 0.3, "{events:?}");
    let closed = events.drops.get("NO_SOCKET").copied().unwrap_or_default();
    assert!(closed >= 200, "{:?}", events.drops);
}

#[test]
fn calls_of_fsync_are_timed_by_process() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("synced");
    let mut file = File::create(&path).unwrap();
    let counter = Counter::start(Duration::from_secs(5)).unwrap();
    let began = Instant::now();
    for _ in 0..20 {
        file.write_all(b"line\n").unwrap();
        file.sync_all().unwrap();
    }
    let longest = began.elapsed().as_secs_f64();
    let events = counter.stop();
    std::fs::remove_file(&path).unwrap();
    let Some(syncs) = events.syncs else {
        skipped(format_args!("{:?}", events.refused));
        return;
    };
    let own = syncs
        .0
        .iter()
        .find(|times| times.process == std::process::id());
    let own = own.unwrap_or_else(|| panic!("{syncs:?}"));
    assert_eq!(own.number, 20, "{own:?}");
    assert!(own.median > 0.0 && own.median <= own.longest, "{own:?}");
    assert!(own.longest <= longest && own.slow <= 20, "{own:?}");
}

#[test]
fn counting_ends_when_its_time_is_over() {
    let counter = Counter::start(Duration::from_millis(200)).unwrap();
    talk_for(Duration::from_secs(2));
    let seconds = counter.stop().seconds;
    assert!(seconds >= 0.2, "{seconds}");
    // Late by a scheduling delay at most; the load ran ten times as long.
    assert!(seconds < 2.0, "{seconds}");
}

#[test]
fn tasks_that_change_their_cpu_are_counted_where_they_come_to() {
    let allowed = sched_getaffinity(None).unwrap();
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU)
        .filter(|cpu| allowed.is_set(*cpu))
        .collect();
    let [one, other, ..] = cpus[..] else {
        skipped("a thread can move between two CPUs only");
        return;
    };
    let counter = Counter::start(Duration::from_secs(5)).unwrap();
    let until = Instant::now() + Duration::from_secs(1);
    let mover = std::thread::spawn(move || {
        let mut moves = 0_u64;
        while Instant::now() < until {
            for cpu in [one, other] {
                let mut alone = CpuSet::new();
                alone.set(cpu);
                sched_setaffinity(None, &alone).unwrap();
                moves += 1;
            }
        }
        moves
    });
    let moves = mover.join().unwrap();
    let events = counter.stop();
    let Some(came) = events.migrations else {
        skipped(format_args!("{:?}", events.refused));
        return;
    };
    for cpu in [one, other] {
        let came = came.get(&(cpu as u32)).copied().unwrap_or_default();
        assert!(came * 10 > moves, "{came} of {moves} came to CPU {cpu}");
    }
}

#[test]
fn contended_locks_are_counted_with_their_stacks() {
    let counter = Counter::start(Duration::from_secs(5)).unwrap();
    // Three threads that write to one file, each write long enough to be met by another: they contend for
    // the lock of its inode.
    let file = rustix::fs::memfd_create("contended", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let until = Instant::now() + Duration::from_secs(1);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let data = vec![1; 1 << 20];
                while Instant::now() < until {
                    rustix::io::pwrite(&file, &data, 0).unwrap();
                }
            });
        }
    });
    let events = counter.stop();
    if events.refused.contains_key("lock:contention_begin") {
        skipped(format_args!("{:?}", events.refused));
        return;
    }
    let writing: u64 = events
        .contentions
        .iter()
        .filter(|(stack, _)| stack.contains("write_iter"))
        .map(|(_, count)| count)
        .sum();
    assert!(writing > 0, "{:#?}", events.contentions);
}

#[test]
fn no_mount_is_left_behind() {
    let mounts = || std::fs::read_to_string("/proc/self/mounts").unwrap();
    let before = mounts();
    let counter = Counter::start(Duration::from_millis(50)).unwrap();
    assert_eq!(mounts(), before);
    counter.stop();
    assert_eq!(mounts(), before);
}

#[test]
fn a_user_without_rights_learns_which_switch_forbids_it() {
    let switch = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    if switch.trim().parse::<i32>().unwrap() < 1 {
        skipped("perf_event_paranoid lets everybody watch");
        return;
    }
    // A thread of its own gives up its rights; the others keep theirs.
    let (sampled, counted) = std::thread::spawn(|| {
        let nobody = Uid::from_raw(65534);
        if rustix::process::geteuid().is_root() {
            set_thread_res_uid(nobody, nobody, nobody).unwrap();
        }
        let counter = Counter::start(Duration::from_millis(10)).unwrap();
        (Sampler::start(&Options::default()).err(), counter.stop())
    })
    .join()
    .unwrap();
    let error = sampled.expect("an ordinary user may not sample the machine");
    assert!(matches!(error, Error::NotPermitted { .. }), "{error}");
    let text = error.to_string();
    let value = format!("perf_event_paranoid is {}", switch.trim());
    assert!(
        text.contains(&value) && text.contains("; run as root"),
        "{text}"
    );
    assert_eq!(counted.refused.len(), 7, "{counted:?}");
    for (event, why) in &counted.refused {
        assert!(why.contains("; run as root"), "{event}: {why}");
    }
    assert!(counted.syscalls.is_empty() && counted.drops.is_empty());
    assert_eq!(counted.migrations, None);
}
