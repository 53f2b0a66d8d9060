//! `check` changes nothing: proved twice, by what it asks the kernel for and by the machine before and after.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use rungwise_host::live::Live;
use rungwise_host::namespace::Namespace;
use rungwise_testkit::{Record, differences, record};

use super::below;
use crate::run::{Bench, Ended, binary};

/// Calls that change something, or may. Opening is judged by its flags.
const CHANGING: &str = "open,openat,openat2,creat,truncate,ftruncate,rename,renameat,renameat2,link,linkat,symlink,\
symlinkat,unlink,unlinkat,mkdir,mkdirat,rmdir,mknod,mknodat,chmod,fchmod,fchmodat,chown,fchown,lchown,fchownat,\
utimensat,setxattr,fsetxattr,lsetxattr,mount,umount2,move_mount,fsmount,mount_setattr,pivot_root,chroot,swapon,\
swapoff,init_module,finit_module,delete_module,sethostname,setdomainname,settimeofday,clock_settime,adjtimex,syslog,\
sched_setaffinity,sched_setscheduler,sched_setattr,setpriority,ioprio_set,setrlimit,kill,tkill,ptrace,\
process_vm_writev,bpf,setns,unshare,reboot,quotactl,kexec_load,migrate_pages,move_pages";

/// Runs `check` under strace; the calls above as strace prints them, with the thread before each.
fn traced(bench: &Bench, arguments: &[&str]) -> Vec<String> {
    let trace = bench.path("trace");
    let output = Command::new("strace")
        .args(["-f", "--quiet=all", "--signal=none", "-e"])
        .arg(format!("trace={CHANGING}"))
        .arg("-o")
        .arg(&trace)
        .arg(binary())
        .args(arguments)
        .current_dir(bench.dir.path())
        .env("RUNGWISE_STATE", bench.state())
        .output()
        .expect("strace starts; install the package strace");
    let ended = Ended::from(output);
    assert!(matches!(ended.code, Some(0 | 1 | 3)), "{}", ended.stderr);
    let text = std::fs::read_to_string(&trace).unwrap();
    std::fs::remove_file(trace).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Calls that could change something which others see.
fn offences(calls: &[String]) -> Vec<&String> {
    // Threads with a mount namespace of their own: a mount there is seen by nobody and ends with the thread.
    let mut apart = BTreeSet::new();
    let mut offences = Vec::new();
    for line in calls {
        let Some((thread, call)) = line.split_once(' ') else {
            continue;
        };
        let call = call.trim_start();
        let (name, arguments) = call.split_once('(').unwrap_or((call, ""));
        let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"];
        let harmless = match name {
            // A read-only open, and the terminal or null device of the standard library.
            "open" | "openat" | "openat2" => {
                !writes.iter().any(|flag| arguments.contains(flag))
                    || arguments.contains("\"/dev/null\"")
            }
            "unshare" => {
                if arguments.contains("CLONE_NEWNS") {
                    apart.insert(thread);
                }
                true
            }
            "mount" => apart.contains(thread),
            // Maps and a program of its own that nothing is attached to and nothing refers to: they end with it.
            "bpf" => {
                let own = [
                    "BPF_MAP_CREATE",
                    "BPF_MAP_UPDATE_ELEM",
                    "BPF_MAP_LOOKUP_ELEM",
                    "BPF_MAP_FREEZE",
                    "BPF_PROG_LOAD, {prog_type=BPF_PROG_TYPE_SYSCALL,",
                    "BPF_PROG_TEST_RUN",
                ];
                own.iter().any(|command| arguments.starts_with(command))
            }
            // Resuming lines of strace, and ends of threads.
            _ if call.starts_with("<...") || call.starts_with("+++") => true,
            // Changes nobody but the caller.
            "setrlimit" => true,
            _ => false,
        };
        if !harmless {
            offences.push(line);
        }
    }
    offences
}

#[test]
fn it_opens_nothing_for_writing_and_mounts_only_where_nobody_sees_it() {
    let bench = Bench::new();
    let own = std::process::id().to_string();
    for arguments in [
        &["check", "-q", "--for", "500ms"][..],
        &[
            "check",
            "-q",
            "--for",
            "0s",
            "--no-stacks",
            "--format",
            "json",
        ],
        &[
            "check", "-q", "--for", "300ms", "--pid", &own, "--format", "html",
        ],
    ] {
        let calls = traced(&bench, arguments);
        assert!(calls.len() > 100, "strace saw little: {calls:?}");
        let offences = offences(&calls);
        assert!(offences.is_empty(), "{offences:#?}");
        assert!(below(bench.dir.path()).is_empty(), "files appeared");
    }
}

#[test]
fn the_proof_would_see_a_write_and_a_mount() {
    let offences_in = |line: &str| offences(&[line.to_owned()]).len();
    assert_eq!(
        offences_in(
            r#"7 openat(AT_FDCWD, "/proc/sys/net/core/somaxconn", O_WRONLY|O_CLOEXEC) = 3"#
        ),
        1
    );
    assert_eq!(
        offences_in(r#"7 openat(AT_FDCWD, "/proc/stat", O_RDONLY|O_CLOEXEC) = 3"#),
        0
    );
    assert_eq!(
        offences_in(r#"7 mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL) = 0"#),
        1
    );
    assert_eq!(
        offences_in(
            "7 bpf(BPF_PROG_LOAD, {prog_type=BPF_PROG_TYPE_SYSCALL, insn_cnt=20}, 48) = 10"
        ),
        0
    );
    assert_eq!(
        offences_in(
            "7 bpf(BPF_PROG_LOAD, {prog_type=BPF_PROG_TYPE_TRACING, insn_cnt=20}, 48) = 10"
        ),
        1
    );
    assert_eq!(
        offences_in("7 bpf(BPF_LINK_CREATE, {link_create={prog_fd=10}}, 48) = 11"),
        1
    );
    let apart = [
        "7 unshare(CLONE_FS|CLONE_NEWNS) = 0",
        r#"7 mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL) = 0"#,
    ];
    assert!(offences(&apart.map(str::to_owned)).is_empty());
}

/// Settings of the whole machine that `check` might be tempted to change, and what listing could leave behind.
fn listing() -> Record {
    let mut listing = record(&Live);
    let mut keep = |name: &str, text: String| listing.insert(name.to_owned(), text);
    for file in [
        "/proc/modules",
        "/proc/swaps",
        "/proc/self/mountinfo",
        "/proc/sys/kernel/perf_event_paranoid",
        "/proc/sys/kernel/perf_event_max_sample_rate",
        "/proc/sys/kernel/kptr_restrict",
        "/proc/sys/kernel/nmi_watchdog",
        "/proc/thread-self/net/ip_tables_names",
        "/proc/thread-self/net/ip6_tables_names",
        "/proc/thread-self/net/ip_mr_cache",
    ] {
        keep(
            file,
            std::fs::read_to_string(file).unwrap_or_else(|error| error.to_string()),
        );
    }
    for (folder, file) in [
        ("/proc/irq", "smp_affinity_list"),
        ("/sys/block", "queue/scheduler"),
        ("/sys/block", "queue/read_ahead_kb"),
        ("/sys/kernel/mm/transparent_hugepage", ""),
    ] {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path().join(file);
            if let Ok(text) = std::fs::read_to_string(&path) {
                keep(&path.display().to_string(), text);
            }
        }
    }
    let nft = Command::new("nft").args(["-a", "list", "ruleset"]).output();
    keep("nft", format!("{:?}", nft.map(|output| output.stdout).ok()));
    let mount = Path::new("/sys/kernel/tracing/events").exists();
    keep("tracefs", mount.to_string());
    listing
}

#[test]
fn the_machine_is_as_before() {
    let bench = Bench::new();
    // A namespace of our own: others set up rules and devices in theirs, and none in ours.
    let namespace = Namespace::create("untouched").expect("run the tests as root");
    let mut changed = Vec::new();
    // Somebody else may have turned something in between. What check does, it does each time, but for what a
    // first look loads or creates for good: that would be in the first namespace, and every one here is new.
    for _ in 0..3 {
        let mut check = bench.command(&["check", "-q", "--for", "300ms", "--fail-on", "never"]);
        let (before, ended, after) = namespace.run(move || {
            let before = listing();
            (before, check.output().unwrap(), listing())
        });
        let ended = Ended::from(ended);
        assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
        assert!(below(bench.dir.path()).is_empty());
        changed = differences(&before, &after);
        if changed.is_empty() {
            return;
        }
    }
    panic!("{changed:#?}");
}
