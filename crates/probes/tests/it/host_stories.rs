//! Memory, disks, pressure, control groups, processes, firmware: golden evidence of recorded machines and of machines in texts.
//!
//! `microvm` was recorded on a guest with two CPUs, Linux 6.18; lines that no probe reads were cut. The others are
//! written by hand in the formats of the kernels they name.

use crate::story;

const ALL: &[&str] = &[
    "proc-diskstats",
    "proc-meminfo",
    "proc-pid",
    "proc-pid-numa-maps",
    "proc-pid-task",
    "proc-pressure",
    "proc-sys-vm",
    "proc-vmstat",
    "smbios-memory",
    "sys-block-queue",
    "sys-dmi-id",
    "sys-fs-cgroup",
    "sys-iommu-groups",
    "sys-transparent-hugepage",
];

fn golden(name: &str, text: &str, pid: Option<u32>, probes: &[&str]) {
    let evidence = story::derive(&story::capture(text, pid), probes);
    insta::assert_snapshot!(name, story::list(&evidence));
}

#[test]
fn a_guest_with_a_busy_process() {
    golden("microvm", include_str!("hosts/microvm.txt"), Some(700), ALL);
}

#[test]
fn a_container_that_its_quota_stops() {
    let probes = [
        "proc-pid",
        "proc-pid-task",
        "proc-pressure",
        "sys-fs-cgroup",
    ];
    let text = include_str!("hosts/throttled-v2.txt");
    golden("throttled-v2", text, Some(4242), &probes);
}

#[test]
fn the_same_on_cgroup_version_1_and_an_old_kernel() {
    let probes = [
        "proc-pid",
        "proc-pid-task",
        "proc-pressure",
        "sys-fs-cgroup",
    ];
    let text = include_str!("hosts/throttled-v1.txt");
    golden("throttled-v1", text, Some(8001), &probes);
}

#[test]
fn a_box_that_swaps_with_huge_pages_for_all_and_a_slow_disk() {
    let probes = [
        "proc-diskstats",
        "proc-meminfo",
        "proc-pid",
        "proc-pressure",
        "proc-sys-vm",
        "proc-vmstat",
        "sys-block-queue",
        "sys-transparent-hugepage",
    ];
    golden(
        "swapping",
        include_str!("hosts/swapping.txt"),
        None,
        &probes,
    );
}

#[test]
fn a_server_with_two_sockets_and_a_process_far_from_its_memory() {
    let probes = [
        "proc-meminfo",
        "proc-pid-numa-maps",
        "proc-vmstat",
        "smbios-memory",
        "sys-dmi-id",
        "sys-iommu-groups",
    ];
    golden(
        "two-node",
        include_str!("hosts/two-node.txt"),
        Some(900),
        &probes,
    );
}

#[test]
fn one_sample_gives_settings_and_says_that_rates_need_two() {
    let text = include_str!("hosts/swapping.txt").replace("@ 0.000", "@ 10.000");
    let last: Vec<&str> = text
        .split_inclusive("\n@ ")
        .filter(|part| part.starts_with("10.000"))
        .collect();
    let text = format!("@ {}", last.concat());
    let evidence = story::derive(
        &story::capture(text.trim_end_matches("\n@ "), None),
        &[
            "proc-diskstats",
            "proc-pid",
            "proc-pressure",
            "proc-vmstat",
            "proc-meminfo",
        ],
    );
    let listed = story::list(&evidence);
    assert!(
        listed.contains("memory.swap_in host = unknown: the window has only one sample"),
        "{listed}"
    );
    assert!(
        listed.contains("sched.process_cpu host = unknown: the window has only one sample"),
        "{listed}"
    );
    assert!(listed.contains("psi.memory_some host = 31 %"), "{listed}");
    assert!(
        listed.contains("memory.process_swap process/910 = 793 MiB"),
        "{listed}"
    );
}

#[test]
fn a_later_process_with_the_same_id_is_another_one() {
    let original = include_str!("hosts/throttled-v1.txt");
    // The one at the end started later.
    let (head, tail) = original.split_at(original.rfind("/proc/8001/stat").unwrap());
    let text = format!("{head}{}", tail.replacen(" 1 0 99 ", " 1 0 70000 ", 1));
    let evidence = story::derive(&story::capture(&text, None), &["proc-pid"]);
    let listed = story::list(&evidence);
    assert!(
        !listed.contains("sched.process_cpu process/8001"),
        "{listed}"
    );
    assert!(
        listed.contains("sched.process_cpu host = unknown"),
        "{listed}"
    );
}

const UNIFIED: &str = "41 40 0:20 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";

#[test]
fn a_tree_of_version_2_without_groups_is_mounted_and_limits_nothing() {
    let moment = format!(
        "/proc/self/mountinfo\n{UNIFIED}@ T /sys/fs/cgroup/cgroup.controllers\ncpu io memory\n"
    );
    let text = format!(
        "@ 0.000 {}@ 10.000 {}",
        moment.replace('T', "0.000"),
        moment.replace('T', "10.000")
    );
    let evidence = story::derive(&story::capture(&text, None), &["sys-fs-cgroup"]);
    let listed = story::list(&evidence);
    assert!(
        listed.contains("cgroup.throttled cgroup// = 0 %"),
        "{listed}"
    );
    assert!(!listed.contains("are mounted"), "{listed}");
}

#[test]
fn a_group_of_version_2_has_its_own_cpu_time_and_its_own_file_of_swap() {
    let group = "/sys/fs/cgroup/tier/x";
    let moment = |at: &str, ran: u32, waited: u32| {
        format!(
            "@ {at} /proc/self/mountinfo\n{UNIFIED}@ {at} {group}/cpu.weight\n2\n@ {at} {group}/cpu.stat\nusage_usec {ran}\n\
             @ {at} {group}/cpu.pressure\nsome avg10=0.00 avg60=0.00 avg300=0.00 total={waited}\n\
             @ {at} {group}/memory.max\n41943040\n@ {at} {group}/memory.swap.current\n1048576\n"
        )
    };
    let text = moment("0.000", 0, 0) + &moment("10.000", 300_000, 400_000);
    let evidence = story::derive(&story::capture(&text, None), &["sys-fs-cgroup"]);
    let listed = story::list(&evidence);
    for line in [
        "cgroup.cpu_ran cgroup//tier/x = 3",
        "cgroup.cpu_wait cgroup//tier/x = 4",
        "cgroup.memory_swap cgroup//tier/x = 1",
    ] {
        assert!(listed.contains(line), "{line}\n{listed}");
    }
}

#[test]
fn a_full_group_has_the_forks_that_the_groups_below_it_were_refused() {
    let (top, below) = ("/sys/fs/cgroup/top", "/sys/fs/cgroup/top/a");
    let moment = |at: &str, refused: u32, used: u32| {
        format!(
            "@ {at} /proc/self/mountinfo\n{UNIFIED}@ {at} {top}/pids.max\n6\n@ {at} {top}/pids.current\n{used}\n@ {at} {top}/pids.events\nmax 0\n\
             @ {at} {below}/pids.events\nmax {refused}\n"
        )
    };
    for (used, expected) in [
        (6, "cgroup.pids_refused cgroup//top = 91"),
        (5, "cgroup.pids_refused cgroup//top = 0"),
    ] {
        let text = moment("0.000", 9, used) + &moment("10.000", 100, used);
        let evidence = story::derive(&story::capture(&text, None), &["sys-fs-cgroup"]);
        let listed = story::list(&evidence);
        assert!(listed.contains(expected), "{expected}\n{listed}");
    }
}
