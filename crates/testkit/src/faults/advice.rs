//! Advice of the planted faults' rules: what the test applies, and what it cannot apply and why.
//!
//! A rule that asks for a knob with a value says that this value ends the sickness. So the value is applied while the
//! fault is still there, and the rule must no longer fire, or half of the harm must be gone. Advice in neither list fails
//! the test.

use std::fmt::Write as _;

/// Advice that is applied to a planted fault and must cure it.
#[derive(Clone, Copy, Debug)]
pub struct Cure {
    /// The fault.
    pub fault: &'static str,
    /// The rule that gives the advice. It speaks before, and no longer afterwards.
    pub rule: &'static str,
    /// The knobs, which are set together to the values that the finding asks for.
    pub knobs: &'static [&'static str],
    /// How they are applied, one after the other.
    pub by: &'static [By],
    /// A reading that the finding cites, a rate or a share, where the advice leaves something of the harm: half of it at most.
    pub harm: Option<&'static str>,
    /// What the fault costs, as the test measures it without rungwise, before the advice and after it: half at most must be left. A rule may
    /// fall silent because its own advice changes what it reads, so silence alone is a weak proof.
    pub measured: Option<&'static str>,
}

/// How advice is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// `rungwise knob apply` in the fault's network namespace.
    Namespace,
    /// `rungwise knob apply` in the machine's own namespace: a setting of the machine, of a control group or of a process.
    Machine,
    /// The fault's `rungwise serve udp` starts again with these options beside its own: what the service sets itself, or what
    /// the kernel gives to new sockets only.
    Restart(&'static [&'static str]),
}

/// Advice that the test does not apply.
#[derive(Clone, Copy, Debug)]
pub struct Unapplied {
    /// The fault.
    pub fault: &'static str,
    /// The rule that gives the advice.
    pub rule: &'static str,
    /// The knob.
    pub knob: &'static str,
    /// Why.
    pub why: &'static str,
}

/// What the test applies.
pub const CURES: &[Cure] = &[
    Cure {
        fault: "burst beyond the receive buffer",
        rule: "udp-rcvbuf-drop",
        knobs: &["net.rmem_max"],
        by: &[By::Machine, By::Restart(&[])],
        harm: Some("udp.rcvbuf_share"),
        measured: Some("datagrams per second that the receive buffer drops"),
    },
    Cure {
        fault: "one shared UDP socket",
        rule: "udp-shared-socket",
        knobs: &["sock.reuseport"],
        by: &[By::Restart(&["--reuseport"])],
        harm: None,
        measured: None,
    },
    Cure {
        fault: "steering to one CPU, two sockets",
        rule: "irq-one-cpu",
        knobs: &["net.rps_cpus"],
        by: &[By::Namespace],
        harm: None,
        measured: Some("packets per second that backlogs drop"),
    },
    Cure {
        fault: "backlog drops",
        rule: "softnet-drop",
        knobs: &["net.rps_cpus"],
        by: &[By::Namespace],
        harm: Some("softnet.dropped"),
        measured: Some("packets per second that backlogs drop"),
    },
    Cure {
        fault: "rp_filter",
        rule: "fib-double",
        knobs: &["net.rp_filter", "net.accept_local"],
        by: &[By::Namespace],
        harm: None,
        measured: Some("the share of the packets that the CPU no longer takes"),
    },
    Cure {
        fault: "narrow CPU affinity",
        rule: "affinity-narrow",
        knobs: &["cpu.pin_threads"],
        by: &[By::Machine],
        harm: None,
        measured: Some("the CPU time that the two processes do not get"),
    },
    Cure {
        fault: "full neighbour table",
        rule: "neigh-full",
        knobs: &["net.neigh_gc"],
        by: &[By::Machine],
        harm: None,
        measured: Some("overflows of the table per second"),
    },
    Cure {
        fault: "asymmetric route",
        rule: "rp-filter-drop",
        knobs: &["net.rp_filter"],
        by: &[By::Namespace],
        harm: None,
        measured: Some("packets per second that source validation drops"),
    },
    Cure {
        fault: "frozen control group",
        rule: "cgroup-frozen",
        knobs: &["cpu.cgroup_freezer"],
        by: &[By::Machine],
        harm: None,
        measured: Some("the share of datagrams without a reply"),
    },
    Cure {
        fault: "starved by its weight",
        rule: "cpu-weight-low",
        knobs: &["cpu.cgroup_weight"],
        by: &[By::Machine],
        harm: None,
        measured: Some("the CPU time that it lacks of its fair half"),
    },
    Cure {
        fault: "limited writes",
        rule: "cgroup-io-limit",
        knobs: &["disk.cgroup_io"],
        by: &[By::Machine],
        harm: None,
        measured: Some("the seconds that each synced write takes"),
    },
    Cure {
        fault: "service: descriptors used up",
        rule: "descriptors-full",
        knobs: &["rpc.nofile"],
        by: &[By::Machine],
        harm: None,
        measured: Some("the share of new clients without a reply"),
    },
];

/// What it does not apply.
pub const UNAPPLIED: &[Unapplied] = &[Unapplied {
    fault: "steering to one CPU",
    rule: "irq-one-cpu",
    knob: "sock.reuseport",
    why: "it is the first of two steps. With a socket per thread the rule asks for net.rps_cpus, which is applied to \
          the next fault",
}];

/// Adds the advice for this fault to the page of `docs/`.
pub(super) fn describe(page: &mut String, fault: &str) {
    for cure in CURES.iter().filter(|cure| cure.fault == fault) {
        let mut steps = Vec::new();
        for by in cure.by {
            steps.push(match by {
                By::Namespace | By::Machine => "runs `rungwise knob apply`".to_owned(),
                By::Restart([]) => "starts the service again".to_owned(),
                By::Restart(options) => {
                    format!("starts the service again with `{}`", options.join(" "))
                }
            });
        }
        let _ = writeln!(
            page,
            "\nThe test takes the advice of {} ({}): it {}. Then {}{}.",
            cure.rule,
            cure.knobs.join(", "),
            steps.join(" and "),
            match cure.harm {
                None => "the rule must no longer fire".to_owned(),
                Some(key) => format!("`{key}` must be at most half of what it was"),
            },
            cure.measured.map_or_else(String::new, |what| format!(
                ", and what the fault costs, measured without rungwise ({what}), must be at most half of what it was"
            ))
        );
    }
    for advice in UNAPPLIED.iter().filter(|advice| advice.fault == fault) {
        let Unapplied {
            rule, knob, why, ..
        } = advice;
        let _ = writeln!(
            page,
            "\nThe test does not apply the advice of {rule} ({knob}): {why}."
        );
    }
}
