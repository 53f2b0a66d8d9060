//! Limits of control groups: a quota two levels up, memory, disks, processes, weight, freezer.
#![expect(
    clippy::disallowed_methods,
    reason = "tests make and remove the files that they need"
)]

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rungwise_host::{Host as _, clock, files, live::Live};

use super::lab::{
    Group, Lab, Planted, cpu_time, growth, serve_udp, service_address, shell_in, spinner,
    unanswered,
};
use super::traffic::{Pace, datagrams};
use super::{Fault, How, Result, Says, acts};

pub(super) const QUOTA_ABOVE: Fault = Fault {
    id: "quota two groups above",
    planted: "An echo service in group `a/b c` below a control group that may use 5 % of a CPU, under 32 datagrams every millisecond.",
    speaks: &[Says {
        less_in_noise: true,
        ..acts("cfs-throttled", "cgroup//rungwise-fault-*")
    }],
    may: &[
        ("udp-rcvbuf-drop", "a service that is stopped does not read"),
        ("runq-delay", "a service that is stopped waits for a CPU"),
    ],
    how: How::Here(quota_above),
};

fn quota_above(program: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let group = Group::with_quota(0.05, "a/b c")?;
    let service = serve_udp(program, &server, &[])?;
    group.take(service.pid())?;
    let traffic = datagrams(&client, service_address(), 8, Pace::Bursts(32), None)?;
    Ok(Planted::in_namespace(server)
        .suffered_by(service.pid())
        .keep(traffic)
        .keep(service)
        .keep(group)
        .keep(client))
}

pub(super) const FROZEN: Fault = Fault {
    id: "frozen control group",
    planted: "An echo service in a control group that is frozen, under one datagram every millisecond from each of 8 flows.",
    speaks: &[acts("cgroup-frozen", "cgroup//rungwise-fault-*")],
    may: &[("udp-rcvbuf-drop", "a service that is stopped does not read")],
    how: How::Here(frozen),
};

fn frozen(program: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let outer = Group::new("freezer", "x")?;
    let service = serve_udp(program, &server, &[])?;
    outer.take(service.pid())?;
    outer.set("freezer.state", "FROZEN")?;
    let traffic = datagrams(&client, service_address(), 8, Pace::Bursts(1), None)?;
    let pid = service.pid();
    let thaw = Thaw(
        format!(
            "/sys/fs/cgroup/freezer/rungwise-fault-{}/x/freezer.state",
            std::process::id()
        )
        .into(),
    );
    Ok(Planted::in_namespace(server)
        .suffered_by(pid)
        .costing(unanswered)
        .keep(traffic)
        .keep(thaw)
        .keep(service)
        .keep(outer)
        .keep(client))
}

/// Thaws a group when dropped: a frozen process does not die.
#[derive(Debug)]
struct Thaw(PathBuf);

impl Drop for Thaw {
    fn drop(&mut self) {
        let _ = Live.write(&self.0, b"THAWED");
    }
}

pub(super) const PIDS: Fault = Fault {
    id: "no more processes",
    planted: "A program in a control group of at most five processes that wants more, 20 times a second.",
    speaks: &[acts("cgroup-pids-limit", "cgroup//rungwise-fault-*")],
    may: &[],
    how: How::Here(pids),
};

fn pids(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let group = Group::new("pids", "x")?;
    group.set("pids.max", "5")?;
    let script = "exec perl -e 'while (1) { my $p = fork; if (defined $p && !$p) { sleep 60; exit } select undef, undef, undef, 0.05 }'";
    let service = shell_in(&[&group], script)?;
    Ok(Planted::in_namespace(server)
        .suffered_by(service.pid())
        .keep(service)
        .keep(group)
        .keep(client))
}

pub(super) const WEIGHT: Fault = Fault {
    id: "starved by its weight",
    planted: "A process that always has work, with cpu.shares of 32, beside one that spins on the same CPU with 1024.",
    speaks: &[acts("cpu-weight-low", "cgroup//rungwise-fault-*")],
    may: &[("runq-delay", "it waits for a CPU")],
    how: How::Here(weight),
};

fn weight(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let group = Group::new("cpu", "x")?;
    // Weights count among siblings: below a group of its own, it would not compete with the neighbour.
    // With less it hardly runs within a window, and the kernel counts how long a thread waited only when it runs.
    group.set_top("cpu.shares", "32")?;
    let starved = spinner(Some(&[0]))?;
    group.take(starved.pid())?;
    let neighbour = spinner(Some(&[0]))?;
    let pid = starved.pid();
    Ok(Planted::in_namespace(server)
        .suffered_by(pid)
        .costing(move |_| {
            let [got] = growth(|| Ok([cpu_time(pid)?]))?;
            // Its fair share beside the neighbour is half of the CPU.
            Ok(0.5 - got)
        })
        .keep((starved, neighbour))
        .keep(group)
        .keep(client))
}

pub(super) const MEMORY: Fault = Fault {
    id: "memory limit below the working set",
    planted: "A program reads a file of 96 MiB again and again, in a control group with 48 MiB of memory.",
    speaks: &[acts("cgroup-memory-limit", "cgroup//rungwise-fault-*")],
    may: &[],
    how: How::Here(memory),
};

/// A file that is removed when dropped.
#[derive(Debug)]
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// On a disk: what lies in memory needs no page cache.
fn scratch() -> Scratch {
    Scratch(Path::new("/var/tmp").join(format!("rungwise-fault-{}", std::process::id())))
}

fn memory(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let group = Group::new("memory", "x")?;
    group.set("memory.limit_in_bytes", &(48 << 20).to_string())?;
    let file = scratch();
    let path = file.0.display();
    // Written past the page cache, so that the pages are the group's own.
    let script = format!(
        "dd if=/dev/urandom of={path} bs=1M count=96 oflag=direct 2>/dev/null; touch {path}.ready; \
         while :; do cat {path} > /dev/null; done"
    );
    let service = shell_in(&[&group], &script)?;
    let ready = Scratch(format!("{path}.ready").into());
    until(&ready.0)?;
    Ok(Planted::in_namespace(server)
        .suffered_by(service.pid())
        .keep(service)
        .keep((file, ready))
        .keep(group)
        .keep(client))
}

fn until(path: &Path) -> Result<()> {
    let since = clock::now();
    while !files::exists(path) {
        if since.elapsed() > Duration::from_mins(1) {
            return Err(format!("{} was not made within a minute", path.display()).into());
        }
        std::thread::yield_now();
    }
    Ok(())
}

pub(super) const KILLED: Fault = Fault {
    id: "killed at the memory limit",
    planted: "A worker that wants 100 MiB in a control group with 32 MiB, started again each time it is killed.",
    speaks: &[acts("cgroup-memory-limit", "cgroup//rungwise-fault-*")],
    may: &[],
    how: How::Here(killed),
};

fn killed(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let group = Group::new("memory", "x")?;
    group.set("memory.limit_in_bytes", &(32 << 20).to_string())?;
    let script = "while :; do perl -e '$x = \"a\" x (100 << 20)' 2>/dev/null; sleep 0.1; done";
    let service = shell_in(&[&group], script)?;
    Ok(Planted::in_namespace(server)
        .suffered_by(service.pid())
        .keep(service)
        .keep(group)
        .keep(client))
}

pub(super) const IO: Fault = Fault {
    id: "limited writes",
    planted: "A program that syncs each of its writes, in a control group with 60 writes per second to the disk of /var/tmp.",
    speaks: &[acts("cgroup-io-limit", "cgroup//rungwise-fault-*")],
    may: &[],
    how: How::Here(io),
};

fn io(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let group = Group::new("blkio", "x")?;
    let device = std::fs::metadata("/var/tmp")?.dev();
    let (major, minor) = (libc_major(device), libc_minor(device));
    group.set(
        "blkio.throttle.write_iops_device",
        &format!("{major}:{minor} 60"),
    )?;
    let file = scratch();
    let script = format!(
        "exec dd if=/dev/zero of={} bs=4k count=100000 oflag=direct,dsync 2>/dev/null",
        file.0.display()
    );
    let service = shell_in(&[&group], &script)?;
    let pid = service.pid();
    Ok(Planted::in_namespace(server)
        .suffered_by(pid)
        .costing(move |_| time_of_a_write(pid))
        .keep(service)
        .keep(file)
        .keep(group)
        .keep(client))
}

/// Seconds that each write of a program takes that does nothing else.
fn time_of_a_write(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/io");
    let [writes] = growth(|| {
        let text = Live.text(Path::new(&path))?;
        let calls = text.lines().find_map(|line| line.strip_prefix("syscw: "));
        Ok([calls.ok_or("no syscw")?.trim().parse()?])
    })?;
    Ok(1.0 / writes.max(1.0))
}

/// Major number in `st_dev`, as glibc has it (sys/sysmacros.h).
fn libc_major(device: u64) -> u64 {
    (device >> 8) & 0xfff | (device >> 32) & !0xfff
}

fn libc_minor(device: u64) -> u64 {
    device & 0xff | (device >> 12) & !0xff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_number_is_taken_apart() {
        assert_eq!((libc_major(0x801), libc_minor(0x801)), (8, 1));
        assert_eq!(
            (libc_major(0x0010_fd02), libc_minor(0x0010_fd02)),
            (253, 258)
        );
    }
}
