//! Faults planted in real control groups of version 2, in a guest that is booted for it: the right rule comes first, names the
//! right group, and its advice cures.
//!
//! Most machines have version 2, and the one on which the rules were written has not. Whether a fault is gone is read from
//! the group's own counters and not from another check.

use std::path::Path;

use rungwise_testkit::{Guest, skipped};
use serde_json::Value;

use crate::run::{Bench, binary};

/// Functions for the scripts of faults. The group under test is three levels deep and has names that no container runtime gives.
const PRELUDE: &str = r#"
C=/sys/fs/cgroup; G="$C/grp-k7x/tier two/unit3"; TOP=$C/grp-k7x
field() { while read -r name value; do [ "$name" = "$2" ] && echo "$value"; done < "$1"; }
# Whether a field of a file stays as it is for two seconds, or grows.
stays() { a=$(field "$1" "$2"); sleep 2; b=$(field "$1" "$2"); echo "$2 $a $b"; [ "$a" = "$b" ]; }
# Microseconds in which some task of the group waited for a CPU, and in which one ran.
waited() { read -r line < "$TOP/cpu.pressure"; echo "${line##*total=}"; }
ran() { field "$TOP/cpu.stat" usage_usec; }
in_group() { ( echo $BASHPID > "$1/cgroup.procs"; shift; exec "$@" ) > /tmp/service 2>&1 & P=$!; echo $P > /tmp/pid; }
service() { in_group "$G" perl -e "$1"; }
"#;

struct Fault {
    rule: &'static str,
    group: &'static str,
    /// Starts a service in the group and limits it.
    plant: &'static str,
    /// What is turned: the advice of the finding, or with a value where the finding gives none.
    knob: &'static str,
    wish: &'static str,
    /// Succeeds when the group's own counters show that the fault is gone; fails before.
    gone: &'static str,
}

/// Works for some milliseconds and pauses.
const WORKS: &str =
    "service 'while (1) { for (my $i = 0; $i < 20000; $i++) {} select undef, undef, undef, 0.03 }'";

const FAULTS: &[Fault] = &[
    Fault {
        rule: "cpu-weight-low",
        group: "/grp-k7x",
        // Two programs that always run, in a group beside it.
        plant: r#"mkdir -p $C/beside; for i in 1 2; do in_group $C/beside perl -e '1 while 1'; done
            echo 2 > "$TOP/cpu.weight"; works"#,
        knob: "cpu.cgroup_weight",
        wish: "1",
        // A task that pauses waits a tenth as long as it runs with equal weights, and four times as long with a fiftieth.
        // How much of the time that is depends on how fast the guest is.
        gone: r#"a=$(waited); r=$(ran); sleep 2; w=$(($(waited) - a)); r=$(($(ran) - r)); echo "waited $w, ran $r"; [ $w -lt $r ]"#,
    },
    Fault {
        rule: "cfs-throttled",
        group: "/grp-k7x/tier two/unit3",
        plant: r#"works; echo "5000 100000" > "$G/cpu.max""#,
        knob: "cpu.cfs_quota",
        wish: "none",
        gone: r#"stays "$G/cpu.stat" nr_throttled"#,
    },
    Fault {
        rule: "cgroup-frozen",
        group: "/grp-k7x",
        plant: r#"works; echo 1 > "$TOP/cgroup.freeze""#,
        knob: "cpu.cgroup_freezer",
        wish: "thawed",
        gone: r#"[ "$(field "$TOP/cgroup.events" frozen)" = 0 ]"#,
    },
    Fault {
        rule: "cgroup-memory-limit",
        group: "/grp-k7x",
        plant: r#"echo 24M > "$TOP/memory.high"
            service 'while (1) { my $x = "a" x (40 << 20); undef $x; select undef, undef, undef, 0.05 }'"#,
        knob: "mem.cgroup_limit",
        wish: "200MiB",
        gone: r#"stays "$TOP/memory.events" high && [ "$(cat "$TOP/memory.max")" = max ]"#,
    },
    Fault {
        rule: "cgroup-io-limit",
        group: "/grp-k7x",
        plant: r#"echo "$(cat /sys/block/vda/dev) wiops=20" > "$TOP/io.max"
            [ -e /disk ] || { mkfs.ext4 -q -F /dev/vda && mkdir /disk && mount /dev/vda /disk; }
            in_group "$G" dd if=/dev/zero of=/disk/log bs=4k count=100000 oflag=dsync"#,
        knob: "disk.cgroup_io",
        wish: "vda:wiops=none",
        gone: r#"[ -z "$(cat "$TOP/io.max")" ]"#,
    },
    Fault {
        rule: "cgroup-pids-limit",
        group: "/grp-k7x",
        plant: r#"echo 6 > "$TOP/pids.max"
            service 'while (1) { my $p = fork; if (defined $p && !$p) { sleep 60; exit } select undef, undef, undef, 0.3 }'"#,
        knob: "proc.cgroup_pids",
        wish: "none",
        // Linux counts in the group with the limit since 6.11, and before in the one that asked.
        gone: r#"stays "$TOP/pids.events" max && stays "$G/pids.events" max"#,
    },
];

/// The findings of a check of the service, those that need action first.
fn findings(guest: &mut Guest) -> Vec<Value> {
    let (status, output) =
        guest.run("rungwise check --pid $(cat /tmp/pid) --for 3s --format json -q 2>/tmp/said");
    let document: Value = serde_json::from_str(&output)
        .unwrap_or_else(|error| panic!("{error}: exit status {status}: {output}"));
    document["findings"].as_array().unwrap().clone()
}

fn succeeds(guest: &mut Guest, script: &str) {
    let (status, output) = guest.run(&format!("{PRELUDE}\nworks() {{ {WORKS}; }}\n{script}"));
    assert_eq!(status, 0, "{script}\n{output}");
}

fn fails(guest: &mut Guest, script: &str) {
    let (status, output) = guest.run(&format!("{PRELUDE}\n{script}"));
    assert_ne!(status, 0, "{script}\n{output}");
}

const MAKE: &str = r#"mkdir -p "$G"
    for folder in "$TOP" "$TOP/tier two"; do
        for controller in $(cat "$folder/cgroup.controllers"); do echo "+$controller" > "$folder/cgroup.subtree_control"; done
    done"#;

const REMOVE: &str = r#"for folder in "$TOP" $C/beside; do [ -d "$folder" ] && echo 1 > "$folder/cgroup.kill"; done
    until rmdir $C/beside 2>/dev/null || [ ! -d $C/beside ]; do sleep 0.05; done
    until rmdir "$G" 2>/dev/null; do sleep 0.05; done
    rmdir "$TOP/tier two" "$TOP""#;

#[test]
fn faults_in_control_groups_of_version_2_are_found_first_and_the_advice_cures() {
    let bench = Bench::new();
    let program = binary();
    let booted = Guest::boot(Path::new(&program), &["dd", "mkfs.ext4", "rmdir", "tc"]);
    let mut guest = match booted {
        Ok(guest) => guest,
        Err(why) => {
            skipped(format_args!(
                "control groups of version 2 in a guest: {why}"
            ));
            return;
        }
    };
    mounted_without_groups(&mut guest);
    healthy(&mut guest);
    for fault in FAULTS {
        found_and_cured(&mut guest, fault);
    }
    datagrams_beyond_the_limit_of_fq(&mut guest);
    drop(bench);
}

/// Datagrams that are dropped at the limit of `fq` for one flow (`flow_limit`). Not every kernel that tests run on has it.
fn datagrams_beyond_the_limit_of_fq(guest: &mut Guest) {
    const SENDS: &str = r"( exec 3<>/dev/udp/127.0.0.1/9
        while :; do for i in {1..20}; do printf '%01000d' 0 >&3; done; sleep 0.02; done ) > /tmp/service 2>&1 &
        echo $! > /tmp/pid";
    let dropped = r#"s=$(tc -s qdisc show dev lo); echo "$s"; [[ $s == *"flows_plimit "[1-9]* ]]"#;
    succeeds(
        guest,
        &format!(
            "ip link set lo up; tc qdisc add dev lo root fq maxrate 200kbit flow_limit 10 quantum 3028 initial_quantum 3028; {SENDS}\nsleep 1; {dropped}"
        ),
    );
    let all = findings(guest);
    // Nothing listens at the port, which is found as well.
    let first = all
        .iter()
        .find(|finding| finding["outcome"] == "act")
        .unwrap();
    let named = [&first["rule"], &first["subject"]];
    assert_eq!(named, ["qdisc-limit", "device/lo"], "{all:#?}");
    succeeds(guest, "tc qdisc del dev lo root; sleep 1");
    let all = findings(guest);
    let again = all.iter().find(|finding| finding["rule"] == "qdisc-limit");
    assert_ne!(again.unwrap()["outcome"], "act", "{all:#?}");
    succeeds(guest, "kill $(cat /tmp/pid)");
}

fn mounted_without_groups(guest: &mut Guest) {
    let (_, output) = guest.run("rungwise check --for 1s -q 2>&1");
    assert!(output.contains("Control group limits"), "{output}");
    assert!(!output.contains("control groups are mounted"), "{output}");
}

fn healthy(guest: &mut Guest) {
    let limits = r#"echo "80000 100000" > "$TOP/cpu.max"; echo 300M > "$G/memory.max"; echo 200 > "$G/pids.max"
        echo "$(cat /sys/block/vda/dev) wiops=5000" > "$G/io.max"; works; sleep 1"#;
    succeeds(guest, &format!("{MAKE}; {limits}"));
    let acts: Vec<Value> = findings(guest)
        .into_iter()
        .filter(|finding| finding["outcome"] == "act")
        .filter(|finding| finding["subject"].as_str().unwrap().starts_with("cgroup/"))
        .collect();
    assert!(acts.is_empty(), "{acts:#?}");
    succeeds(guest, REMOVE);
}

fn found_and_cured(guest: &mut Guest, fault: &Fault) {
    let Fault { rule, group, .. } = fault;
    succeeds(guest, &format!("{MAKE}; {}; sleep 1", fault.plant));
    fails(guest, fault.gone);
    let is_act = |finding: &&Value| finding["outcome"] == "act";
    let mut all = findings(guest);
    // Beside other tests an interpreted guest is slow enough to have faults of its own.
    if all
        .iter()
        .find(is_act)
        .is_none_or(|first| first["rule"] != *rule)
    {
        all = findings(guest);
    }
    let acts: Vec<&Value> = all.iter().filter(is_act).collect();
    let first = acts
        .first()
        .unwrap_or_else(|| panic!("{rule}: nothing to act on: {all:#?}"));
    assert_eq!(first["rule"], *rule, "{acts:#?}");
    assert_eq!(first["subject"], format!("cgroup/{group}"), "{acts:#?}");
    let advice = first["knobs"].as_array().unwrap().iter();
    let advised = advice.clone().find(|knob| knob["id"] == fault.knob);
    let advised = advised.unwrap_or_else(|| panic!("{rule}: no advice {}: {first:#?}", fault.knob));
    assert_eq!(advised["device"], *group, "{first:#?}");
    if let Some(wish) = advised["to"].as_str() {
        assert_eq!(wish, fault.wish, "{first:#?}");
    }
    let cited = first["evidence"].to_string();
    for old in ["cfs_quota_us", "limit_in_bytes", "blkio.", "freezer.state"] {
        assert!(!cited.contains(old), "{cited}");
    }
    let apply = format!(
        "rungwise knob apply '{}={}' --device '{group}' --evidence-for 0s",
        fault.knob, fault.wish
    );
    succeeds(guest, &apply);
    succeeds(guest, &format!("sleep 1; {}", fault.gone));
    succeeds(guest, "rungwise knob undo");
    succeeds(guest, REMOVE);
}
