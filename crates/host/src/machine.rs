//! The fingerprint of a machine, and the CPUs that we may use on it.
//!
//! Read through [`Host`], so that a recorded machine has one too. What cannot be read stays empty or zero: a
//! fingerprint distinguishes machines, nothing else depends on it.
#![expect(unsafe_code, reason = "sched_getaffinity has no safe wrapper in std")]

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use rungwise_model::machine::Machine;

use crate::Host;
use crate::files;

/// Fingerprint of the machine behind `host`.
pub fn fingerprint(host: &dyn Host) -> Machine {
    let text = |path: &str| host.text(Path::new(path)).unwrap_or_default();
    let cpuinfo = text("/proc/cpuinfo");
    Machine {
        hostname: text("/proc/sys/kernel/hostname"),
        kernel: text("/proc/sys/kernel/osrelease"),
        cpu_model: cpu_model(&cpuinfo),
        cpus: cpu_list(&text("/sys/devices/system/cpu/online")).len() as u32,
        memory_bytes: memory_bytes(&text("/proc/meminfo")),
        virtualisation: virtualisation(host, &cpuinfo),
        boot_id: text("/proc/sys/kernel/random/boot_id"),
    }
}

/// CPUs that the calling thread may run on, in order (`sched_getaffinity`). Up to 1024 CPUs.
pub fn allowed_cpus() -> io::Result<Vec<u32>> {
    // SAFETY: cpu_set_t is plain data and outlives the call, which gets its size; CPU_ISSET is asked for bits inside it
    // only.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) != 0 {
            return Err(io::Error::last_os_error());
        }
        let all = 0..libc::CPU_SETSIZE as usize;
        Ok(all
            .filter(|cpu| libc::CPU_ISSET(*cpu, &set))
            .map(|cpu| cpu as u32)
            .collect())
    }
}

/// CPUs that some thread of a process may run on; none where it cannot be seen.
pub(crate) fn cpus_of(pid: u32) -> Vec<u32> {
    let all: BTreeSet<u32> = (threads_of(pid).into_iter())
        .flat_map(|thread| thread.cpus)
        .collect();
    all.into_iter().collect()
}

/// Where a thread may run, and how long it has run.
pub(crate) struct Thread {
    pub(crate) id: u32,
    /// CPUs that it may run on; none where that cannot be seen.
    pub(crate) cpus: Vec<u32>,
    /// CPU time since its start, ns; 0 where that cannot be seen.
    pub(crate) ran_ns: u64,
}

/// The threads of a process; none where it cannot be seen.
pub(crate) fn threads_of(pid: u32) -> Vec<Thread> {
    let tasks = format!("/proc/{pid}/task");
    let threads = files::folders(tasks.as_ref()).unwrap_or_default();
    let of_thread = |thread: &String| -> Option<Thread> {
        // One that has ended since it was listed may run nowhere.
        let read = |file: &str| {
            let bytes = files::read(format!("{tasks}/{thread}/{file}").as_ref());
            String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
        };
        let status = read("status");
        let field = "Cpus_allowed_list:";
        let list = status.lines().find_map(|line| line.strip_prefix(field));
        // Time on CPU, time waiting, slices (Documentation/scheduler/sched-stats).
        let ran = read("schedstat");
        let ran = ran.split_ascii_whitespace().next();
        Some(Thread {
            id: thread.parse().ok()?,
            cpus: list.map(cpu_list).unwrap_or_default(),
            ran_ns: ran.and_then(|ran| ran.parse().ok()).unwrap_or(0),
        })
    };
    threads.iter().filter_map(of_thread).collect()
}

/// Reads a list as the kernel prints it: `0-3,8,10-11`. What is not a number is left out.
pub fn cpu_list(text: &str) -> Vec<u32> {
    /// No Linux has more (`CONFIG_NR_CPUS` is at most 8192); a wild range must not fill memory.
    const MOST: u32 = 8192;
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) {
            cpus.extend(first..=last.min(MOST));
        }
        cpus.truncate(MOST as usize);
    }
    cpus
}

/// x86 says `model name`; ARM gives numbers of vendor and part only.
fn cpu_model(cpuinfo: &str) -> String {
    let value = |name| field(cpuinfo, name);
    if let Some(model) = value("model name").or_else(|| value("Model")) {
        return model.to_owned();
    }
    match (value("CPU implementer"), value("CPU part")) {
        (Some(vendor), Some(part)) => format!("implementer {vendor} part {part}"),
        _ => String::new(),
    }
}

fn memory_bytes(meminfo: &str) -> u64 {
    field(meminfo, "MemTotal")
        .and_then(|value| value.strip_suffix("kB")?.trim().parse::<u64>().ok())
        .map_or(0, |kib| kib.saturating_mul(1024))
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then(|| value.trim())
    })
}

/// `virtual machine (Amazon EC2 m7i.large), docker container`, each part only where it shows itself.
fn virtualisation(host: &dyn Host, cpuinfo: &str) -> Option<String> {
    let text = |path: &str| {
        host.text(Path::new(path))
            .ok()
            .filter(|text| !text.is_empty())
    };
    let flag = field(cpuinfo, "flags")
        .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let vendor = text("/sys/class/dmi/id/sys_vendor");
    let product = text("/sys/class/dmi/id/product_name");
    let dmi = [vendor, product]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ");
    let mut parts = Vec::new();
    // ARM has no such flag; there the vendor's name has to do.
    let known = [
        "QEMU",
        "KVM",
        "VMware",
        "VirtualBox",
        "Xen",
        "Amazon EC2",
        "Google",
        "Virtual Machine",
    ];
    if flag || known.iter().any(|name| dmi.contains(name)) {
        parts.push(if dmi.is_empty() {
            "virtual machine".to_owned()
        } else {
            format!("virtual machine ({dmi})")
        });
    }
    parts.extend(container(host).map(|kind| format!("{kind} container")));
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// By the traces that the engines leave: their files, then the path of the first process's cgroup.
fn container(host: &dyn Host) -> Option<&'static str> {
    let there = |path: &str| host.read(Path::new(path)).is_ok();
    if there("/.dockerenv") {
        return Some("docker");
    }
    if there("/run/.containerenv") {
        return Some("podman");
    }
    let cgroup = host.text(Path::new("/proc/1/cgroup")).unwrap_or_default();
    [
        ("kubepods", "kubernetes"),
        ("docker", "docker"),
        ("libpod", "podman"),
        ("lxc", "lxc"),
    ]
    .into_iter()
    .find(|(mark, _)| cgroup.contains(mark))
    .map(|(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::Live;

    #[test]
    fn cpu_lists_are_read_as_the_kernel_prints_them() {
        assert_eq!(cpu_list("0-3,8,10-11\n"), [0, 1, 2, 3, 8, 10, 11]);
        assert!(cpu_list("").is_empty());
        assert_eq!(cpu_list("3-1,x,-,5"), [5]);
        assert!(cpu_list("0-4294967295").len() <= 8193);
    }

    #[test]
    fn this_machine_has_a_fingerprint() {
        let machine = fingerprint(&Live);
        assert!(
            !machine.kernel.is_empty() && !machine.boot_id.is_empty(),
            "{machine:?}"
        );
        assert!(
            machine.cpus > 0 && machine.memory_bytes > 1 << 20,
            "{machine:?}"
        );
        assert!(allowed_cpus().unwrap().len() <= machine.cpus as usize);
    }

    #[test]
    fn processors_without_a_name_are_reported_by_vendor_and_part() {
        assert_eq!(
            cpu_model("processor\t: 0\nmodel name\t: Foo 9000\n"),
            "Foo 9000"
        );
        let arm = "processor : 0\nCPU implementer\t: 0x48\nCPU part\t: 0xd01\n";
        assert_eq!(cpu_model(arm), "implementer 0x48 part 0xd01");
        assert_eq!(cpu_model("garbage"), "");
        assert_eq!(
            memory_bytes("MemTotal:       24684084 kB\n"),
            24_684_084 * 1024
        );
        assert_eq!(memory_bytes("MemTotal: many kB"), 0);
    }
}
