//! Virtual machines: settings of the guest, and settings of its host.

use crate::by_hand::{Manual, Way};
use crate::knob::{COMMON, Doc, Knob, Risk, Settable};
use crate::target::{Form, Target};
use crate::turn::Turn;

const ON_THE_HOST: &str = "it is set on the hypervisor, by its administrator";

/// Longest polling that is accepted, ns: a guess, fifty times what guests start with.
const LONGEST_POLL: u64 = 10_000_000;

/// `virt.halt_poll`
pub(crate) static HALT_POLL: Knob = Knob {
    id: "virt.halt_poll",
    summary: "how long an idle virtual CPU spins before it sleeps, ns",
    values: "guest=200000 inside a guest, host=200000 on its host",
    doc: Doc {
        does: "guest: an idle CPU of the guest polls this long before it yields the CPU (haltpoll). host: KVM polls \
               this long for a wake-up before it lets the vCPU's thread sleep.",
        helps: "When a service is woken often and each wake-up exits and re-enters the guest.",
        costs: "Host CPU, which others may need; on a shared host it shows up as steal.",
        undone: "The previous value is written back.",
        sources: "Documentation/virt/guest-halt-polling.rst and Documentation/virt/kvm/halt-polling.rst (Linux).",
    },
    by_hand: &[Manual {
        wish: "NUMBER",
        way: Way::Module,
        text: "options kvm halt_poll_ns=NUMBER",
    }],
    writes: &[
        Target::File(
            "/sys/module/haltpoll/parameters/guest_halt_poll_ns",
            Form::Number {
                least: 0,
                most: LONGEST_POLL,
            },
        ),
        Target::File(
            "/sys/module/kvm/parameters/halt_poll_ns",
            Form::Number {
                least: 0,
                most: LONGEST_POLL,
            },
        ),
    ],
    turn: Turn::Parts {
        names: &["guest", "host"],
        bare: 0,
    },
    ..COMMON
};

/// `virt.multiqueue`
pub(crate) static MULTIQUEUE: Knob = Knob {
    id: "virt.multiqueue",
    risk: Risk::Restart,
    settable: Settable::No(ON_THE_HOST),
    summary: "queues of the virtual network card",
    values: "a number of queues: the vCPUs, at most 8",
    doc: Doc {
        does: "Each queue pair has its own interrupt in the guest and a vhost thread on the host.",
        helps: "When the guest's card has one queue and one vCPU does all receive work.",
        costs: "Host CPU for each vhost thread. Clouds may not offer it; the alternative is receive steering \
                (net.rps_cpus), which gained nothing in the reference case of the bank.",
        undone: "The domain is defined as before and restarted.",
        sources: "libvirt, domain XML, driver queues; the reference case of the bank.",
    },
    by_hand: &[
        Manual {
            wish: "NUMBER",
            way: Way::Libvirt,
            text: "<interface type='bridge'>\n  <model type='virtio'/>\n  <driver name='vhost' queues='NUMBER'/>\n</interface>",
        },
        Manual {
            wish: "NUMBER",
            way: Way::Command,
            text: "ethtool -L DEVICE combined NUMBER   # in the guest, once it has started again",
        },
    ],
    turn: Turn::Unseen,
    ..COMMON
};
