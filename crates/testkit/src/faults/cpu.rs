//! CPUs: a quota, a neighbour that spins, a machine that is not quiet, stolen time.

use std::path::Path;

use super::lab::{Group, Lab, Planted, cpu_time, growth, serve_udp, service_address, spinner};
use super::traffic::{Pace, datagrams};
use super::{Fault, How, Result, Says, acts, watches};

pub(super) const QUOTA: Fault = Fault {
    id: "throttled control group",
    planted: "An echo service in a control group that may use 5 % of a CPU, under 32 datagrams every millisecond.",
    // On a host that is full itself a larger quota gives nothing.
    speaks: &[Says {
        less_in_noise: true,
        ..acts("cfs-throttled", "cgroup//rungwise-fault-*")
    }],
    may: &[
        ("udp-rcvbuf-drop", "a service that is stopped does not read"),
        ("runq-delay", "a service that is stopped waits for a CPU"),
    ],
    how: How::Here(quota),
};

fn quota(program: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let group = Group::with_quota(0.05, "")?;
    let service = serve_udp(program, &server, &[])?;
    group.take(service.pid())?;
    // More than its quota can answer, and far less than keeps the machine busy.
    let traffic = datagrams(&client, service_address(), 8, Pace::Bursts(32), None)?;
    Ok(Planted::in_namespace(server)
        .suffered_by(service.pid())
        .keep(traffic)
        .keep(service)
        .keep(group)
        .keep(client))
}

pub(super) const NEIGHBOUR: Fault = Fault {
    id: "spinning neighbour",
    planted: "An echo service that has work all the time, pinned to CPU 0 beside a process that spins there.",
    speaks: &[watches("runq-delay", "thread/PID:*")],
    may: &[
        (
            "slab-hot",
            "each datagram that is dropped was made and is freed",
        ),
        (
            "syscall-bound",
            "both sides take and send one datagram per system call, as fast as the machine lets them",
        ),
        (
            "udp-rcvbuf-drop",
            "a service that waits for a CPU does not read",
        ),
    ],
    how: How::Here(neighbour),
};

fn neighbour(program: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let service = serve_udp(program, &server, &["--pin=0"])?;
    let spinning = spinner(Some(&[0]))?;
    let traffic = datagrams(&client, service_address(), 8, Pace::Flood, Some(1))?;
    Ok(Planted::in_namespace(server)
        .suffered_by(service.pid())
        .keep(traffic)
        .keep((service, spinning))
        .keep(client))
}

pub(super) const AFFINITY: Fault = Fault {
    id: "narrow CPU affinity",
    planted: "Two processes that always have work and may run on CPU 0 alone; the other CPUs are idle.",
    speaks: &[acts("affinity-narrow", "process/PID")],
    may: &[("runq-delay", "the two wait for a CPU")],
    how: How::Here(affinity),
};

fn affinity(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let pinned = [spinner(Some(&[0]))?, spinner(Some(&[0]))?];
    let pids = [pinned[0].pid(), pinned[1].pid()];
    Ok(Planted::in_namespace(server)
        .suffered_by(pids[0])
        .costing(move |_| {
            let [first, second] = growth(|| Ok([cpu_time(pids[0])?, cpu_time(pids[1])?]))?;
            Ok(2.0 - first - second)
        })
        .keep(pinned)
        .keep(client))
}

pub(super) const NOISE: Fault = Fault {
    id: "noisy machine",
    planted: "Twice as many spinning processes as CPUs.",
    speaks: &[watches("noise-gate", "host"), watches("runq-delay", "host")],
    may: &[],
    how: How::Here(noise),
};

fn noise(_: &Path) -> Result<Planted> {
    let Lab { server, client } = Lab::new()?;
    let cpus = std::thread::available_parallelism()?.get();
    let spinning = (0..2 * cpus)
        .map(|_| spinner(None))
        .collect::<Result<Vec<_>>>()?;
    Ok(Planted::in_namespace(server).keep(spinning).keep(client))
}

pub(super) const STEAL: Fault = Fault {
    id: "stolen time",
    planted: "The hypervisor takes time from the CPUs of this guest.",
    speaks: &[acts("steal", "host")],
    may: &[],
    how: How::Elsewhere {
        why: "only a hypervisor can steal.",
        judged: "crates/rules/cases/steal.md",
    },
};
