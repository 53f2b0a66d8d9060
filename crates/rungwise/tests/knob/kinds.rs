//! Every kind of edit, killed at every call that changes something: the kernel, the journal, what the guard is told.
//!
//! Between two such calls nothing changes, so a kill anywhere is like a kill on entry to one of them. What this
//! machine has no device for is named on standard error and not tried.

use std::os::unix::fs::FileExt as _;
use std::process::Child;

use rungwise_host::live::Live;
use rungwise_host::veth::{self, End, Spec};
use rungwise_host::{AuditRule, Host as _};

use rungwise_testkit::{RecordedUser, a_user_of_nobody, skipped};

use super::*;

const DEVICE: &str = "kk-server";
const TAP: &str = "kk-tap";

/// The calls by which rungwise changes anything: files and pipes, the journal, features, netlink, threads, mounts, and
/// the programs that it starts.
const CHANGES: [&str; 9] = [
    "write",
    "fdatasync",
    "unlink",
    "ioctl",
    "sendto",
    "sched_setaffinity",
    "mount_setattr",
    "fsconfig",
    "clone",
];

/// What all devices of this rig stand for, with what must be as before.
struct Rig {
    bench: Bench,
    _far: Namespace,
    process: Child,
    disk: Option<LoopDisk>,
    /// Where something is mounted in the namespace.
    mount: Option<String>,
    /// What the invented service manager knows of its one unit.
    unit: Option<PathBuf>,
    /// A user whom audit may leave out.
    user: Option<u32>,
}

/// A turn of some knobs at once.
struct Turn<'a> {
    wishes: &'a [&'a str],
    device: &'a str,
    /// The first edit is one write(2), which stands between its intent and the record that it was made.
    first_is_a_file: bool,
}

/// How often a kill came while something was in force.
#[derive(Debug, Default)]
struct Tally {
    by_guard: u32,
    by_undo: u32,
}

impl Rig {
    fn new() -> Self {
        let bench = Bench::new();
        let far = Namespace::create("knob-far").unwrap();
        let end = |device: &str, address: &str| End {
            device: device.to_owned(),
            addresses: vec![(address.parse().unwrap(), 24)],
        };
        let spec = Spec {
            queues: 2,
            ends: [end(DEVICE, "10.79.0.1"), end("kk-far", "10.79.0.2")],
        };
        veth::connect(&bench.namespace, &far, &spec).unwrap();
        let process = Command::new("sleep").arg("600").spawn().unwrap();
        let mut rig = Self {
            bench,
            _far: far,
            process,
            disk: None,
            mount: None,
            unit: None,
            user: None,
        };
        rig.settle();
        rig
    }

    /// What is there now is what has to be there again.
    fn settle(&mut self) {
        self.bench.before = self.now();
    }

    fn now(&self) -> Record {
        let mut now = record(&self.bench.namespace);
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()));
        let status = status.unwrap();
        let cpus = status
            .lines()
            .find(|line| line.starts_with("Cpus_allowed_list"));
        now.insert("process".to_owned(), cpus.unwrap().to_owned());
        if let Some(disk) = &self.disk {
            now.insert("disk".to_owned(), disk.queue());
        }
        if let Some(point) = self.mount.clone() {
            let mounts = self
                .bench
                .namespace
                .run(|| std::fs::read_to_string("/proc/thread-self/mountinfo").unwrap());
            let of_point = |line: &&str| line.split(' ').nth(4) == Some(&point);
            let line = mounts.lines().rfind(of_point).unwrap().to_owned();
            now.insert("mount".to_owned(), line);
        }
        if let Some(unit) = &self.unit {
            now.insert("unit".to_owned(), std::fs::read_to_string(unit).unwrap());
        }
        if let Some(user) = self.user {
            let mut rules = Live.audit_rules().unwrap();
            rules.retain(|rule| *rule == AuditRule::LeavesOut(user));
            now.insert("audit".to_owned(), format!("{rules:?}"));
        }
        now
    }

    fn changed(&self) -> Vec<String> {
        differences(&self.bench.before, &self.now())
    }

    fn write(&self, path: &str, value: &str) {
        self.bench
            .namespace
            .write(Path::new(path), value.as_bytes())
            .unwrap();
    }

    /// The knobs can be turned here; reported loudly where they cannot.
    fn has(&self, turn: &Turn<'_>) -> bool {
        let ended = self.bench.run(&turn.words("plan"));
        let here = ended.code == Some(0);
        if !here {
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED {}: {}",
                turn.wishes.join(" "),
                ended.words.trim()
            );
        }
        here
    }

    /// Kills the apply, then the undo, at each call of every kind; all is as before each time.
    fn survives(&self, turn: &Turn<'_>) {
        assert!(self.has(turn), "{}", turn.wishes.join(" "));
        let tally = self.apply_is_killed(turn);
        let undone = self.undo_is_killed(turn);
        let what = turn.wishes.join(" ");
        let _ = writeln!(
            std::io::stderr(),
            "{what}: {tally:?}, {undone} kills of the undo"
        );
        assert!(tally.by_guard > 0 && tally.by_undo > 0, "{tally:?}");
        assert!(undone > 2, "{undone}");
    }

    fn apply_is_killed(&self, turn: &Turn<'_>) -> Tally {
        let order = self.order_of_calls(turn);
        let mut tally = Tally::default();
        for syscall in CHANGES {
            for nth in 1..1000 {
                let at = format!("{} killed at {syscall} {nth}", turn.wishes.join(" "));
                let (killed, _) = self.killed(syscall, nth, &turn.words("apply"));
                self.bench.guard_is_gone();
                let changed = self.changed();
                match (changed.is_empty(), self.bench.journals().is_empty()) {
                    (false, false) => tally.by_undo += 1,
                    (true, true) => {
                        tally.by_guard += u32::from(turn.had_begun(&order, syscall, nth));
                    }
                    // Before the guard was on watch: a journal of nothing.
                    (true, false) => {}
                    (false, true) => panic!("{at}: {changed:?} and no journal"),
                }
                self.bench.run(&["knob", "undo"]).with(0, &[]);
                assert_eq!(self.changed(), [""; 0], "{at}");
                assert!(self.bench.journals().is_empty(), "{at}");
                if killed != Killed::AtCall {
                    assert_eq!(killed, Killed::EndedBefore(0), "{at}");
                    break;
                }
            }
        }
        tally
    }

    fn undo_is_killed(&self, turn: &Turn<'_>) -> u32 {
        let mut kills = 0;
        for syscall in CHANGES {
            for nth in 1..1000 {
                self.bench.run(&turn.words("apply")).with(0, &[]);
                assert_ne!(self.changed(), [""; 0]);
                let (killed, _) = self.killed(syscall, nth, &["knob", "undo"]);
                self.bench.run(&["knob", "undo"]).with(0, &[]);
                let at = format!("{}: undo killed at {syscall} {nth}", turn.wishes.join(" "));
                assert_eq!(self.changed(), [""; 0], "{at}");
                assert!(self.bench.journals().is_empty(), "{at}");
                if killed != Killed::AtCall {
                    break;
                }
                kills += 1;
            }
        }
        self.bench.guard_is_gone();
        kills
    }

    /// Runs the program until the nth such call; with what strace saw of them.
    fn killed(&self, syscall: &str, nth: u32, words: &[&str]) -> (Killed, String) {
        let mut traced = Traced::kill_at(binary(), syscall, nth)
            .args(words)
            .env("RUNGWISE_STATE", self.bench.state())
            .env("PATH", self.bench.path());
        self.bench
            .namespace
            .run(move || (traced.run(), traced.calls()))
    }

    /// The names of all calls of an apply that nobody kills, in order; it is undone.
    fn order_of_calls(&self, turn: &Turn<'_>) -> Vec<String> {
        let (ended, calls) = self.killed(&CHANGES.join(","), 10_000, &turn.words("apply"));
        assert_eq!(ended, Killed::EndedBefore(0), "{}", turn.wishes.join(" "));
        assert_ne!(self.changed(), [""; 0]);
        self.bench.run(&["knob", "undo"]).with(0, &[]);
        assert_eq!(self.changed(), [""; 0]);
        let names = calls.lines().filter_map(|line| line.split('(').next());
        names.map(|name| name.trim().to_owned()).collect()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // Ours, and not reaped before, so its number is still its own.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl<'a> Turn<'a> {
    fn words(&self, verb: &'a str) -> Vec<&'a str> {
        [
            &["knob", verb][..],
            self.wishes,
            &["--device", self.device][..],
        ]
        .concat()
    }

    /// A kill on entry to the nth such call came when the first edit had been made: its intent is on the disk
    /// (the first fdatasync), and the write that follows the edit records it.
    fn had_begun(&self, order: &[String], syscall: &str, nth: u32) -> bool {
        let position = |name: &str, nth: u32| {
            let mut of_name = order.iter().enumerate().filter(|(_, call)| *call == name);
            of_name.nth(nth as usize - 1).map(|(index, _)| index)
        };
        let (Some(intent), Some(kill)) = (position("fdatasync", 1), position(syscall, nth)) else {
            return false;
        };
        let since = order.iter().take(kill + 1).skip(intent);
        let writes = since.filter(|call| *call == "write").count();
        writes > usize::from(self.first_is_a_file)
    }
}

/// A block device of the test's own: a loop device over a file, the last one that is free.
struct LoopDisk {
    name: String,
    _file: tempfile::NamedTempFile,
}

impl LoopDisk {
    /// None where the machine has none, or no scheduler for it.
    fn attach() -> Option<Self> {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().write_all_at(&[0], (1 << 20) - 1).unwrap();
        let mut names: Vec<String> = std::fs::read_dir("/sys/block")
            .ok()?
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with("loop"))
            .collect();
        // Whoever asks for a free one gets the first.
        names.sort();
        let name = names.into_iter().rev().find(|name| {
            let mut losetup = Command::new("losetup");
            losetup.arg(format!("/dev/{name}")).arg(file.path());
            losetup.output().is_ok_and(|output| output.status.success())
        })?;
        let disk = Self { name, _file: file };
        let offered = std::fs::read_to_string(disk.path("scheduler")).ok()?;
        offered.contains("mq-deadline").then_some(disk)
    }

    fn path(&self, file: &str) -> String {
        format!("/sys/block/{}/queue/{file}", self.name)
    }

    fn queue(&self) -> String {
        ["scheduler", "nr_requests"]
            .map(|file| std::fs::read_to_string(self.path(file)).unwrap())
            .concat()
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        for (file, value) in [("scheduler", "none"), ("nr_requests", "128")] {
            let _ = std::fs::write(self.path(file), value);
        }
        let mut losetup = Command::new("losetup");
        let _ = losetup
            .args(["-d", &format!("/dev/{}", self.name)])
            .status();
    }
}

#[test]
fn files_and_features_of_a_device_survive_a_kill_at_any_call() {
    let rig = Rig::new();
    rig.survives(&Turn {
        wishes: &[
            "net.mtu=1400",
            "net.txqueuelen=500",
            "net.rps_cpus=0",
            "net.xps_cpus=0",
            "net.gro=on",
            "net.threaded_napi=on",
            "net.tso_gso=off",
        ],
        device: DEVICE,
        first_is_a_file: true,
    });
    rig.survives(&Turn {
        wishes: &["net.tso_gso=off"],
        device: DEVICE,
        first_is_a_file: false,
    });
}

#[test]
fn queues_with_the_masks_they_take_along_survive_a_kill_at_any_call() {
    let mut rig = Rig::new();
    for queue in 0..2 {
        let queues = format!("/sys/class/net/{DEVICE}/queues");
        rig.write(&format!("{queues}/rx-{queue}/rps_cpus"), "1");
        rig.write(&format!("{queues}/rx-{queue}/rps_flow_cnt"), "64");
        rig.write(&format!("{queues}/tx-{queue}/xps_cpus"), "1");
    }
    rig.settle();
    rig.survives(&Turn {
        wishes: &["net.queues=1"],
        device: DEVICE,
        first_is_a_file: true,
    });
}

#[test]
fn a_root_qdisc_survives_a_kill_at_any_call_also_over_one_of_ours() {
    let mut rig = Rig::new();
    rig.survives(&Turn {
        wishes: &["net.default_qdisc=pfifo"],
        device: DEVICE,
        first_is_a_file: false,
    });
    let other = rig.bench.scratch.path().join("other");
    let other = ["--device", DEVICE, "--state", other.to_str().unwrap()];
    let before = rig.now();
    let kept = [&["knob", "apply", "net.default_qdisc=pfifo"], &other[..]].concat();
    rig.bench.run(&kept).with(0, &[]);
    rig.settle();
    rig.survives(&Turn {
        wishes: &["net.default_qdisc=bfifo"],
        device: DEVICE,
        first_is_a_file: false,
    });
    rig.bench
        .run(&[&["knob", "undo"], &other[2..]].concat())
        .with(
            0,
            &["root qdisc of kk-server on this host is 'default' again"],
        );
    assert_eq!(differences(&before, &rig.now()), [""; 0]);
}

#[test]
fn coalescing_rings_and_receive_hashing_survive_a_kill_at_any_call_where_a_device_has_them() {
    let mut rig = Rig::new();
    let mut tap = Command::new("ip");
    tap.args(["tuntap", "add", "dev", TAP, "mode", "tap"]);
    rig.bench.run_command(tap);
    rig.settle();
    // A tap coalesces by frames; no virtual device of this kernel has to have the others.
    for (wish, devices) in [
        ("net.coalesce=rx-frames=8", [TAP, DEVICE]),
        ("net.ring=rx=128", [TAP, DEVICE]),
        ("net.rss_table=equal 1", [TAP, DEVICE]),
        ("net.rss_hash_fields=udp4=sdfn", [TAP, DEVICE]),
    ] {
        for device in devices {
            let turn = Turn {
                wishes: &[wish],
                device,
                first_is_a_file: false,
            };
            if rig.has(&turn) {
                rig.survives(&turn);
            }
        }
    }
}

#[test]
fn the_cpus_of_a_thread_survive_a_kill_at_any_call() {
    let rig = Rig::new();
    let wish = format!("cpu.pin_threads={}:0", rig.process.id());
    let turn = Turn {
        wishes: &[&wish],
        device: DEVICE,
        first_is_a_file: false,
    };
    assert!(
        rig.now()["process"].contains(['-', ',']),
        "this test needs two CPUs"
    );
    rig.survives(&turn);
}

#[test]
fn a_thread_that_ended_with_a_change_in_force_leaves_nothing_to_undo() {
    let mut rig = Rig::new();
    let wish = format!("cpu.pin_threads={}:0", rig.process.id());
    rig.bench.run(&["knob", "apply", &wish]).with(0, &[]);
    rig.process.kill().unwrap();
    rig.process.wait().unwrap();
    rig.bench
        .run(&["knob", "undo"])
        .with(0, &["gone with its thread"]);
    assert!(rig.bench.journals().is_empty());
}

#[test]
fn the_scheduler_of_a_disk_survives_a_kill_at_any_call_with_the_length_of_its_queue() {
    let mut rig = Rig::new();
    let Some(disk) = LoopDisk::attach() else {
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED disk.scheduler: no loop device with a scheduler could be attached (root, losetup, mq-deadline)"
        );
        return;
    };
    // Not what the kernel starts with.
    std::fs::write(disk.path("nr_requests"), "64").unwrap();
    let name = disk.name.clone();
    rig.disk = Some(disk);
    rig.settle();
    rig.survives(&Turn {
        wishes: &["disk.scheduler=mq-deadline"],
        device: &name,
        first_is_a_file: true,
    });
    // Both at once: the number that is wished for belongs to the new scheduler.
    rig.survives(&Turn {
        wishes: &["disk.scheduler=bfq", "disk.nr_requests=300"],
        device: &name,
        first_is_a_file: true,
    });
}

#[test]
fn access_times_and_discard_of_a_mount_survive_a_kill_at_any_call() {
    let mut rig = Rig::new();
    let point = rig.bench.scratch.path().join("at");
    let image = rig.bench.scratch.path().join("image");
    std::fs::create_dir(&point).unwrap();
    let (image, point) = (image.to_str().unwrap(), point.to_str().unwrap());
    let mut mount = Command::new("sh");
    let script = "truncate -s 16M $0 && mkfs.ext4 -q $0 && mount -o loop,discard,nosuid,strictatime $0 $1 && echo mounted";
    mount.args(["-c", script, image, point]);
    rig.bench.run_command(mount).with(0, &["mounted"]);
    rig.mount = Some(point.to_owned());
    rig.settle();
    rig.survives(&Turn {
        wishes: &["disk.mount_noatime=noatime", "disk.discard=periodic"],
        device: point,
        first_is_a_file: false,
    });
}

#[test]
fn a_user_whom_audit_leaves_out_survives_a_kill_at_any_call() {
    let _recorded = match RecordedUser::plant() {
        Ok(rule) => rule,
        Err(why) => {
            return skipped(format_args!(
                "sec.audit_rules: cannot add a rule of audit: {why}"
            ));
        }
    };
    let mut rig = Rig::new();
    let user = a_user_of_nobody();
    rig.user = Some(user);
    rig.settle();
    rig.survives(&Turn {
        wishes: &[&format!("sec.audit_rules=uid={user}")],
        device: DEVICE,
        first_is_a_file: false,
    });
}

/// A service manager of one unit: it runs while the file beside the program is not empty. Each change is one system call
/// of the shell itself, as the real one's is one message.
const SYSTEMCTL: &str = r#"#!/bin/sh
state="${0%/*}/../unit"
case "$1" in
show) read -r word < "$state"; printf 'LoadState=loaded\nActiveState=%s\n' "${word:-inactive}" ;;
stop) : > "$state" ;;
start) echo active 1<> "$state" ;;
esac
"#;

#[test]
fn a_service_that_is_stopped_survives_a_kill_at_any_call() {
    use std::os::unix::fs::PermissionsExt;
    let mut rig = Rig::new();
    let programs = rig.bench.scratch.path().join("bin");
    let unit = rig.bench.scratch.path().join("unit");
    std::fs::create_dir(&programs).unwrap();
    std::fs::write(&unit, "active\n").unwrap();
    let systemctl = programs.join("systemctl");
    std::fs::write(&systemctl, SYSTEMCTL).unwrap();
    std::fs::set_permissions(&systemctl, PermissionsExt::from_mode(0o755)).unwrap();
    rig.bench.programs = Some(programs);
    rig.unit = Some(unit);
    rig.settle();
    rig.survives(&Turn {
        wishes: &["net.irqbalance_stop=stop"],
        device: DEVICE,
        first_is_a_file: false,
    });
}
