//! Hypervisor and container.
//!
//! x86 processors carry a flag that every hypervisor sets, so there its absence means bare metal. Elsewhere the names
//! in the firmware decide. Source: arch/x86/kernel/cpu/hypervisor.c, drivers/hypervisor,
//! Documentation/ABI/stable/sysfs-hypervisor-xen, Linux 6.18; names as systemd's src/basic/virt.c knows them.

use rungwise_formats::cpuinfo::{self, CpuInfo};
use rungwise_model::evidence::{Absence, Evidence, Origin, Subject};
use rungwise_model::keys;

use super::unreadable;
use crate::{Cost, Probe, Source, Window};

const CPUINFO: &str = "/proc/cpuinfo";
const XEN: &str = "/sys/hypervisor/type";
const VENDOR: &str = "/sys/class/dmi/id/sys_vendor";
const PRODUCT: &str = "/sys/class/dmi/id/product_name";
const DEVICE_TREE: &str = "/proc/device-tree/hypervisor/compatible";
const INIT_CGROUP: &str = "/proc/1/cgroup";

/// Files that container engines leave, and the engine.
static MARKS: &[(&str, &str)] = &[("/.dockerenv", "docker"), ("/run/.containerenv", "podman")];

/// Parts of the first process's control group, and the engine.
static GROUPS: &[(&str, &str)] = &[
    ("kubepods", "kubernetes"),
    ("docker", "docker"),
    ("libpod", "podman"),
    ("lxc", "lxc"),
];

/// Firmware names that identify a guest. Providers that also rent out bare metal are excluded.
static GUESTS: &[&str] = &[
    "QEMU",
    "KVM",
    "OpenStack",
    "VMware",
    "VirtualBox",
    "Xen",
    "Bochs",
    "Parallels",
    "BHYVE",
    "Virtual Machine",
    "Apple Virtualization",
    "Google Compute Engine",
    "Alibaba Cloud ECS",
    "HVM domU",
];

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "virtualisation",
    summary: "CPU model, hypervisor and container",
    cost: Cost::Free,
    needs: &[],
    sources: &[
        Source::once(CPUINFO),
        Source::once(XEN),
        Source::once(VENDOR),
        Source::once(PRODUCT),
        Source::once(DEVICE_TREE),
        Source::once(INIT_CGROUP),
        Source::once("/.dockerenv"),
        Source::once("/run/.containerenv"),
    ],
    yields: &[
        &keys::CPU_MODEL,
        &keys::VIRT_CONTAINER,
        &keys::VIRT_HYPERVISOR,
    ],
    derive,
    doc: "\
On x86 the `hypervisor` flag of the CPU decides. On other platforms only the firmware or the device tree identifies a \
guest, and if neither can be read the answer is unknown. A container is detected by the files of its engine or by the \
control group of process 1; with its own cgroup namespace and neither Docker nor Podman it may go undetected. The \
environment of process 1 would show more, but it is not read because it may contain secrets. Sources: \
arch/x86/kernel/cpu/hypervisor.c of Linux 6.18; systemd src/basic/virt.c.",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let info = window
        .text(CPUINFO)
        .and_then(|text| cpuinfo::parse(text).ok_or_else(|| unreadable(CPUINFO)));
    match &info {
        Ok(info) if !info.model.is_empty() => {
            let origin = Origin::new(CPUINFO, info.model.clone());
            let model = info.model.clone();
            evidence.text(&keys::CPU_MODEL, Subject::host(), model, origin);
        }
        Ok(_) => evidence.absent(&[&keys::CPU_MODEL], &unreadable(CPUINFO), CPUINFO),
        Err(why) => evidence.absent(&[&keys::CPU_MODEL], why, CPUINFO),
    }
    match hypervisor(window, info.as_ref().ok()) {
        Ok((name, origin)) => {
            evidence.text(&keys::VIRT_HYPERVISOR, Subject::host(), name, origin);
        }
        Err(why) => evidence.absent(&[&keys::VIRT_HYPERVISOR], &why, CPUINFO),
    }
    match container(window) {
        Ok((name, origin)) => {
            evidence.text(&keys::VIRT_CONTAINER, Subject::host(), name, origin);
        }
        Err(why) => evidence.absent(&[&keys::VIRT_CONTAINER], &why, INIT_CGROUP),
    }
}

fn hypervisor(window: &Window<'_>, info: Option<&CpuInfo>) -> Result<(String, Origin), Absence> {
    let said = |path: &str| {
        let text = window.text(path).ok()?.trim_matches(['\0', '\n', ' ']);
        (!text.is_empty()).then(|| text.replace('\0', " "))
    };
    let firmware: Vec<String> = [VENDOR, PRODUCT].into_iter().filter_map(said).collect();
    let known = !firmware.is_empty();
    let firmware = firmware.join(" ");
    let guest_by_name = GUESTS.iter().any(|name| firmware.contains(name));
    if let Some(name) = said(XEN) {
        return Ok((name.clone(), Origin::new(XEN, name)));
    }
    if let Some(name) = said(DEVICE_TREE) {
        return Ok((name.clone(), Origin::new(DEVICE_TREE, name)));
    }
    match info.and_then(|info| info.hypervisor) {
        Some(true) => {
            let origin = Origin::new(CPUINFO, "flags: hypervisor");
            let name = if known {
                firmware
            } else {
                "unnamed".to_owned()
            };
            Ok((name, origin))
        }
        Some(false) => Ok((
            String::new(),
            Origin::new(CPUINFO, "flags without hypervisor"),
        )),
        None if guest_by_name => Ok((firmware.clone(), Origin::new(PRODUCT, firmware))),
        None if known => Ok((String::new(), Origin::new(PRODUCT, firmware))),
        None => Err(Absence::because(
            "neither the CPU nor the firmware reports whether this is a guest",
        )),
    }
}

fn container(window: &Window<'_>) -> Result<(String, Origin), Absence> {
    if let Some((path, engine)) = MARKS.iter().find(|(path, _)| window.text(path).is_ok()) {
        return Ok(((*engine).to_owned(), Origin::new(*path, "is there")));
    }
    let groups = window.text(INIT_CGROUP)?.trim();
    let engine = GROUPS.iter().find(|(part, _)| groups.contains(part));
    let name = engine.map_or("", |(_, engine)| engine);
    Ok((name.to_owned(), Origin::new(INIT_CGROUP, groups)))
}
