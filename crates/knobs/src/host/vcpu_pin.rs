//! Pins each virtual CPU to its own CPU, on the host of the virtual machines.
//!
//! A vCPU is a thread of the guest's process and is identified by its name: `CPU 3/KVM` and `CPU 3/TCG` of QEMU with
//! named threads, `vcpu3` of Cloud Hypervisor, `fc_vcpu 3` of Firecracker. Sources: accel/kvm/kvm-accel-ops.c and
//! accel/tcg/tcg-accel-ops-mttcg.c (QEMU 10.1), vmm/src/cpu.rs (Cloud Hypervisor), src/vmm/src/vstate/vcpu.rs
//! (Firecracker).

use std::collections::BTreeSet;

use super::threads_named;
use crate::by_hand::{Manual, Way};
use crate::edit::{Edit, Place, Thread};
use crate::error::Result;
use crate::knob::{COMMON, Context, Current, Doc, Draft, Knob, Reading, Risk};
use crate::mask::{self, Cpus};
use crate::target::Target;
use crate::turn::Turn;

/// `virt.vcpu_pin`
pub(crate) static KNOB: Knob = Knob {
    id: "virt.vcpu_pin",
    risk: Risk::Disruptive,
    summary: "pins each virtual CPU to its own CPU",
    values: "the host's CPUs for the vCPUs of all guests, as a list such as 8-15, PID:LIST for those of one guest, off \
             (all CPUs that rungwise may use), or keep:LIST (prints the permanent libvirt settings, to be applied by \
             hand)",
    doc: Doc {
        does: "Every vCPU's thread stays on one CPU of the host: the first vCPU of the first guest on the first CPU of \
               the list, and so on, never two on one. Set it on the host of the guests; inside a guest, and where no \
               thread has the name of a vCPU, rungwise prints the text for the host.",
        helps: "When the guest sees steal above 2 %, or its vCPUs wander between nodes. It was the only host setting \
                with a gain in the reference case of the bank: 11 %.",
        costs: "Two guests on one CPU slow each other down, so the CPUs of all guests of the host must be planned: a \
                guest that starts later, or gets another vCPU, is not pinned. The emulator's other threads stay where \
                they are. No effect where CPU is idle.",
        undone: "Each vCPU gets its previous CPUs back, unless it was pinned again or has ended.",
        sources: "sched_setaffinity(2), as by virsh vcpupin --live; libvirt, domain XML, cputune; the \
                  reference case of the bank (161.6 tps on 8 vCPUs, then 11 % more).",
    },
    by_hand: &[
        Manual {
            wish: "CPUS",
            way: Way::Libvirt,
            text: "<vcpu placement='static' cpuset='CPUS'>COUNT</vcpu>\n<cputune>\n  \
                   <vcpupin vcpu='INDEX' cpuset='EACH'/>\n</cputune>",
        },
        Manual {
            wish: "CPUS",
            way: Way::Command,
            text: "# CPUS, live and for the next start\nvirsh vcpupin DOMAIN INDEX EACH --live --config",
        },
    ],
    writes: &[Target::Affinity],
    turn: Turn::Own { read, draft },
    ..COMMON
};

const NONE: &str = "no thread here has the name of a vCPU: set it on the guest's host, and start QEMU there with -name \
                    NAME,debug-threads=on, as libvirt does";

fn read(context: &Context<'_>) -> Result<Current> {
    let mut readings = Vec::new();
    let mut found = Vec::new();
    for vcpu in vcpus(context)? {
        // A thread that has ended since does not hide the others.
        if let Ok(value) = vcpu.cpus(context.machine) {
            found.push(mask::parse_list(&value).unwrap_or_default());
            let source = vcpu.to_string();
            readings.push(Reading { source, value });
        }
    }
    if found.is_empty() {
        return Ok(Current::unknown(NONE));
    }
    let all: Cpus = context.cpus.iter().copied().collect();
    let dealt: Option<Vec<usize>> = found.iter().map(only).collect();
    let value = match dealt {
        Some(dealt) if dealt.is_sorted_by(|one, next| one < next) => {
            mask::format_list(&dealt.into_iter().collect())
        }
        _ if found.iter().all(|cpus| *cpus == all) => "off".to_owned(),
        _ => "mixed".to_owned(),
    };
    Ok(Current::known(value, readings))
}

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    if let Some(list) = wish.strip_prefix("keep:") {
        return KNOB.by_hand(list, "it is the guest's configuration; ask its owner");
    }
    let bad = |why: String| KNOB.bad_wish(wish, why);
    let (guest, list) = match wish.split_once(':') {
        None => (None, wish),
        Some((pid, list)) => {
            let pid: u32 = pid
                .parse()
                .map_err(|_| bad(format!("'{pid}' is not a process id")))?;
            (Some(pid), list)
        }
    };
    let cpus = match list {
        "off" => None,
        list => Some(mask::parse_list(list).map_err(bad)?),
    };
    let all = vcpus(context)?;
    let named: BTreeSet<u32> = all.iter().map(|vcpu| vcpu.pid).collect();
    let nameless = &qemus(context)? - &named;
    let (ours, others): (Vec<Thread>, Vec<Thread>) = all
        .into_iter()
        .partition(|vcpu| guest.is_none_or(|guest| guest == vcpu.pid));
    match guest {
        Some(pid) if ours.is_empty() => {
            return Err(bad(format!(
                "process {pid} has no thread with the name of a vCPU (QEMU: -name NAME,debug-threads=on)"
            )));
        }
        None if ours.is_empty() => return KNOB.by_hand(wish, NONE),
        _ => {}
    }
    let pin =
        |draft: Draft, thread, value| draft.edit(&Place::Host, Edit::Affinity { thread, value });
    let Some(cpus) = cpus else {
        let all = mask::format_list(&context.cpus.iter().copied().collect());
        let unpin = |draft, thread| pin(draft, thread, all.clone());
        return Ok(ours.into_iter().fold(Draft::default(), unpin));
    };
    if cpus.len() < ours.len() {
        return Err(bad(format!(
            "{} vCPUs would share {} CPUs; name one for each",
            ours.len(),
            cpus.len()
        )));
    }
    let dealt: Vec<(Thread, usize)> = ours.into_iter().zip(cpus).collect();
    let taken: Cpus = dealt.iter().map(|(_, cpu)| *cpu).collect();
    let mut beside = BTreeSet::new();
    for other in others {
        let Ok(value) = other.cpus(context.machine) else {
            continue;
        };
        let may = mask::parse_list(&value).unwrap_or_default();
        if let Some(cpu) = only(&may).filter(|cpu| taken.contains(cpu)) {
            let pid = other.pid;
            return Err(bad(format!(
                "a vCPU of process {pid} is pinned to CPU {cpu}"
            )));
        }
        if !may.is_disjoint(&taken) {
            beside.insert(other.pid);
        }
    }
    let mut draft = dealt
        .into_iter()
        .fold(Draft::default(), |draft, (vcpu, cpu)| {
            pin(draft, vcpu, cpu.to_string())
        });
    for pid in beside {
        draft = draft.note(format!(
            "the vCPUs of process {pid}, another guest, may still run on these CPUs; pin them to others"
        ));
    }
    for pid in nameless {
        draft = draft.note(format!(
            "process {pid} is QEMU and names no vCPU; if it is a guest, it may still run on these CPUs (start it with \
             -name NAME,debug-threads=on to have it pinned)"
        ));
    }
    Ok(draft.note(
        "it ends with the guest; virt.vcpu_pin=keep:LIST prints the permanent libvirt settings",
    ))
}

/// The only CPU of a set of one.
fn only(cpus: &Cpus) -> Option<usize> {
    cpus.first().copied().filter(|_| cpus.len() == 1)
}

/// Every vCPU of the guests of this host, in order of guest and vCPU.
fn vcpus(context: &Context<'_>) -> Result<Vec<Thread>> {
    let mut found = threads_named(&KNOB, context, vcpu)?;
    found.sort_by_key(|(number, thread)| (thread.pid, *number));
    Ok(found.into_iter().map(|(_, thread)| thread).collect())
}

/// The processes that are QEMU by the names under which distributions install it.
fn qemus(context: &Context<'_>) -> Result<BTreeSet<u32>> {
    let is_qemu = |name: &str| {
        (name.starts_with("qemu-system-") || ["qemu-kvm", "kvm"].contains(&name)).then_some(0)
    };
    let found = threads_named(&KNOB, context, is_qemu)?;
    Ok(found.into_iter().map(|(_, thread)| thread.pid).collect())
}

/// The vCPU number in a thread's name.
fn vcpu(name: &str) -> Option<u32> {
    let number = match name.strip_prefix("CPU ") {
        Some(qemu) => qemu.strip_suffix("/KVM").or(qemu.strip_suffix("/TCG"))?,
        None => name
            .strip_prefix("fc_vcpu ")
            .or(name.strip_prefix("vcpu"))?,
    };
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::vcpu;

    #[test]
    fn a_vcpu_is_known_by_the_name_that_its_hypervisor_gives_it() {
        for name in ["CPU 10/KVM", "CPU 10/TCG", "vcpu10", "fc_vcpu 10"] {
            assert_eq!(vcpu(name), Some(10), "{name}");
        }
        for name in [
            "ALL CPUs/TCG",
            "CPU 1/KVM 2",
            "vcpu",
            "vcpus",
            "fc_vcpu",
            "vhost-10",
            "qemu-system-x86",
            "cpuhp/1",
        ] {
            assert_eq!(vcpu(name), None, "{name}");
        }
    }
}
