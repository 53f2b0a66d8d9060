//! Whose CPU time it was, on a machine where others may be at work.
//!
//! The number of others' work is unknown here, so nothing asserts on foreign itself: two meters over
//! one window, one of which knows the spinner, may differ by the spinner and by nothing else.

use std::io::{BufRead as _, BufReader, Write as _};
use std::time::Duration;

use rungwise_host::cpu::{self, CpuMeter, CpuSource, Owner};
use rungwise_host::process::{self, Launch, Ready, Service};
use rungwise_testkit::UnitGroup;

const WINDOW: Duration = Duration::from_millis(300);

/// A service of a shell, once it has said that it is up.
fn running(script: &str) -> Service {
    let service = Service::start(&Launch {
        argv: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
        ..Launch::default()
    })
    .unwrap();
    service
        .wait_ready(&Ready::Line("up".to_owned()), Duration::from_secs(20))
        .unwrap();
    service
}

#[test]
fn a_known_spinner_is_ours_and_an_unknown_one_is_foreign() {
    let service = running("echo up; while :; do :; done");
    let known = [CpuSource::process(Owner::Service, service.pid())];
    let outer = CpuMeter::begin(&[]).unwrap();
    let inner = CpuMeter::begin(&known).unwrap();
    // The window itself, not a wait for something.
    std::thread::sleep(WINDOW);
    let inner = inner.end().unwrap();
    let outer = outer.end().unwrap();

    assert!(inner.seconds >= WINDOW.as_secs_f64());
    let cpus = inner.per_cpu.len() as f64;
    let share = inner.service_cpu_s / (inner.seconds * cpus);
    assert!(
        share > 0.0 && inner.service_cpu_s <= inner.seconds * 1.01,
        "{inner:?}"
    );
    assert!(inner.client_cpu_s.abs() < 1e-12);
    let error = cpu::resolution(WINDOW);
    assert!(
        outer.foreign >= share - error,
        "{} of {share}: {outer:?}",
        outer.foreign
    );
    assert!(
        outer.foreign - inner.foreign <= share + error,
        "{} and {} for {share}",
        outer.foreign,
        inner.foreign
    );
    if inner.foreign > 0.0 {
        // Not cut off at zero: the spinner is the whole difference.
        assert!(
            (outer.foreign - inner.foreign - share).abs() <= error,
            "{outer:?} {inner:?}"
        );
    }
    for split in &inner.per_cpu {
        let sum = split.user + split.system + split.softirq + split.irq + split.steal + split.idle;
        assert!((sum - 1.0).abs() < 1e-9, "{split:?}");
    }
}

#[test]
fn children_that_do_the_work_are_booked_to_the_service() {
    // The leader waits, its child spins.
    let service = running("(while :; do :; done) & echo up; wait");
    let pid = service.pid();
    let family =
        || CpuSource::processes(Owner::Service, "the service", move || process::family(pid));
    let spun = |source| {
        let meter = CpuMeter::begin(&[source]).unwrap();
        std::thread::sleep(WINDOW);
        meter.end().unwrap().service_cpu_s
    };
    assert!(spun(family()) > 0.0);
    assert!(spun(CpuSource::process(Owner::Service, pid)) < 0.01);
}

#[test]
fn a_daemon_that_left_its_parent_is_booked_to_the_unit() {
    let unit = UnitGroup::new("rungwise-daemon").expect("a control group can be made");
    // The daemon leads a session of its own and its parent ends; the leader only waits for the word to start it.
    let script = "echo up; read go; setsid sh -c 'timeout 20 sh -c \"while :; do :; done\" & echo $! >&3' 3>&1; exec sleep 60";
    let mut leader = std::process::Command::new("/bin/sh")
        .args(["-c", script])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    unit.take(leader.id()).unwrap();
    let mut said = BufReader::new(leader.stdout.take().unwrap()).lines();
    assert_eq!(said.next().unwrap().unwrap(), "up");
    leader.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let daemon: u32 = said.next().unwrap().unwrap().parse().unwrap();
    let name = unit.name().to_owned();
    let members = process::members_of_unit(&name).unwrap();
    assert!(
        members.contains(&leader.id()) && members.contains(&daemon),
        "{members:?}"
    );
    assert_eq!(process::main_of_unit(&name).unwrap(), leader.id());
    let source = CpuSource::processes(Owner::Service, "the unit", move || {
        process::members_of_unit(&name)
    });
    let meter = CpuMeter::begin(&[source]).unwrap();
    std::thread::sleep(WINDOW);
    let spun = meter.end().unwrap().service_cpu_s;
    let ended = std::process::Command::new("kill")
        .args([daemon.to_string(), leader.id().to_string()])
        .status();
    assert!(ended.unwrap().success());
    leader.wait().unwrap();
    assert!(spun > 0.0);
}

#[test]
fn our_own_threads_are_booked_to_the_client() {
    let meter = CpuMeter::begin(&[CpuSource::own(Owner::Client)]).unwrap();
    let end = rungwise_host::clock::own_cpu().unwrap() + Duration::from_millis(50);
    let mut sum = 0_u64;
    while rungwise_host::clock::own_cpu().unwrap() < end {
        sum = std::hint::black_box(sum.wrapping_add(1));
    }
    let window = meter.end().unwrap();
    assert!(window.client_cpu_s >= 0.05, "{window:?}");
    assert!(window.service_cpu_s.abs() < 1e-12);
}

#[test]
fn the_quiet_gate_gives_a_fraction() {
    let foreign = cpu::foreign_now(Duration::from_millis(50), &[]).unwrap();
    assert!((0.0..=1.0).contains(&foreign), "{foreign}");
}
