//! Surroundings that refuse: `check` ends well in all of them and says what it could not see, why, and what helps.
//!
//! System calls are refused by a seccomp filter, which is how container runtimes do it (seccomp(2)).
#![expect(unsafe_code, reason = "a filter is installed between fork and exec")]

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::{SHORT, document, lacks};
use crate::run::{Bench, Ended, binary};

const NOBODY: u32 = 65534;

/// A system call, of a given first argument or of any, and what it is answered with.
#[derive(Clone, Copy)]
struct Refused {
    call: libc::c_long,
    first: Option<libc::c_int>,
    errno: libc::c_int,
}

impl Refused {
    const fn any(call: libc::c_long, errno: libc::c_int) -> Self {
        Self {
            call,
            first: None,
            errno,
        }
    }
}

/// The filter that refuses these calls and lets all others pass.
fn filter(refused: &[Refused]) -> Vec<libc::sock_filter> {
    // Offsets in struct seccomp_data; the low half of an argument comes first where bytes do.
    const CALL: u32 = 0;
    const FIRST: u32 = 16;
    let step = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let load = |offset| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, 0, 0);
    let unless = |value, skip| step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, value, 0, skip);
    let answer = |value| step(libc::BPF_RET | libc::BPF_K, value, 0, 0);
    let mut program = Vec::new();
    for refused in refused {
        let errno = answer(libc::SECCOMP_RET_ERRNO | refused.errno as u32);
        program.push(load(CALL));
        match refused.first {
            None => program.extend([unless(refused.call as u32, 1), errno]),
            Some(first) => program.extend([
                unless(refused.call as u32, 3),
                load(FIRST),
                unless(first as u32, 1),
                errno,
            ]),
        }
    }
    program.push(answer(libc::SECCOMP_RET_ALLOW));
    program
}

/// Lets `command` run without these calls.
fn without<'c>(command: &'c mut Command, refused: &[Refused]) -> &'c mut Command {
    let program = filter(refused);
    let install = move || {
        let filter = libc::sock_fprog {
            len: program.len() as u16,
            filter: program.as_ptr().cast_mut(),
        };
        // SAFETY: prctl(2) is async-signal-safe; the program lives in the closure and is copied by the kernel.
        let failed = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                || libc::prctl(
                    libc::PR_SET_SECCOMP,
                    libc::SECCOMP_MODE_FILTER,
                    &raw const filter,
                ) != 0
        };
        if failed {
            return Err(std::io::Error::last_os_error());
        }
        Ok(())
    };
    // SAFETY: the closure makes two system calls and allocates nothing.
    unsafe { command.pre_exec(install) }
}

/// A copy of the program where everybody may run it, and a folder where everybody may write.
fn in_public(bench: &Bench) -> PathBuf {
    let open = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let program = bench.path("rungwise");
    std::fs::copy(binary(), &program).unwrap();
    open(&program, 0o755);
    open(bench.dir.path(), 0o777);
    program
}

/// `check` in JSON, begun by `wrapped`: words of programs that run it in other surroundings.
fn check(bench: &Bench, wrapped: &[&str]) -> Command {
    let program = in_public(bench);
    let mut words: Vec<String> = wrapped.iter().map(|word| (*word).to_owned()).collect();
    words.push(program.display().to_string());
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .args(["check", "--quiet", "--format", "json"])
        .args(SHORT)
        .current_dir(bench.dir.path())
        .env("RUNGWISE_STATE", bench.state())
        .stdin(Stdio::null());
    command
}

/// Runs it, which ends well, or with status 3 where a resource was not seen; what is lacked, a line each for searches:
/// `rule: reason; remedy`.
#[track_caller]
fn lacks_text(command: &mut Command) -> String {
    let ended = Ended::from(command.output().unwrap());
    assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    let report = document(&ended);
    assert_eq!(
        report["exit"],
        ended.code.unwrap(),
        "the document has another end"
    );
    let unseen = report["standing"] == "unseen";
    assert_eq!(ended.code == Some(3), unseen, "{}", report["standing"]);
    let lacks = lacks(&report);
    assert!(!lacks.is_empty(), "nothing is lacked here?");
    let lines: Vec<String> = lacks
        .into_iter()
        .map(|(rule, reason, remedy)| format!("{rule}: {reason}; {remedy}"))
        .collect();
    lines.join("\n")
}

/// The rule lacks something for this reason, and this helps; nothing where nothing does.
#[track_caller]
fn expect_lack(text: &str, rule: &str, reason: &str, remedy: &str) {
    let found = text.lines().any(|line| {
        let (what, help) = line.rsplit_once("; ").unwrap();
        let named = what.starts_with(&format!("{rule}: ")) && what.contains(reason);
        named
            && if remedy.is_empty() {
                help.is_empty()
            } else {
                help.contains(remedy)
            }
    });
    assert!(found, "no '{rule}: {reason}; {remedy}' in\n{text}");
}

/// Tests that make namespaces or change users need root; without it they cannot pass.
fn must_be_root() {
    // SAFETY: only reads an id of the process.
    let root = unsafe { libc::geteuid() } == 0;
    assert!(root, "run the tests as root: they take rights away");
}

#[test]
fn an_ordinary_user_learns_what_root_would_see() {
    must_be_root();
    let bench = Bench::new();
    let mut command = check(&bench, &[]);
    // std clears the supplementary groups where root changes the user.
    command.uid(NOBODY).gid(NOBODY);
    let text = lacks_text(&mut command);
    expect_lack(&text, "udp-socket-lock", "not permitted", "run as root");
}

#[test]
fn root_of_a_user_namespace_is_root_of_nothing_here() {
    must_be_root();
    let bench = Bench::new();
    let mut command = check(&bench, &["unshare", "--user", "--map-root-user", "--net"]);
    command.uid(NOBODY).gid(NOBODY);
    let text = lacks_text(&mut command);
    expect_lack(&text, "udp-socket-lock", "not permitted", "run as root");
}

#[test]
fn without_perf_rules_of_stacks_are_undecided_and_say_why() {
    let bench = Bench::new();
    for errno in [libc::EACCES, libc::EPERM, libc::ENOSYS, libc::EOPNOTSUPP] {
        let refused = [Refused::any(libc::SYS_perf_event_open, errno)];
        let text = lacks_text(without(&mut check(&bench, &[]), &refused));
        let (reason, remedy) = match errno {
            libc::EACCES | libc::EPERM => ("not permitted", "run as root"),
            libc::ENOSYS => (
                "this kernel has no perf_event_open",
                "use a kernel that has it",
            ),
            _ => (
                "cannot sample kernel stacks: Operation not supported (os error 95)",
                "this kernel, or a sandbox or hypervisor around it, does not provide the event",
            ),
        };
        expect_lack(&text, "udp-socket-lock", reason, remedy);
    }
}

#[test]
fn without_netlink_rules_of_sockets_and_devices_are_undecided_and_say_why() {
    let bench = Bench::new();
    for errno in [libc::EACCES, libc::EPERM, libc::EAFNOSUPPORT] {
        let refused = [Refused {
            call: libc::SYS_socket,
            first: Some(libc::AF_NETLINK),
            errno,
        }];
        let text = lacks_text(without(&mut check(&bench, &[]), &refused));
        let (reason, remedy) = match errno {
            libc::EAFNOSUPPORT => ("netlink sockets are refused", "run outside the sandbox"),
            _ => ("not permitted", "run as root"),
        };
        for rule in ["tcp-rwnd-limited", "tcp-recvq-pile"] {
            expect_lack(&text, rule, reason, remedy);
        }
    }
}

#[test]
fn without_mounts_and_namespaces_kernel_events_are_missed_with_a_reason() {
    let bench = Bench::new();
    let refused = [libc::SYS_mount, libc::SYS_unshare, libc::SYS_setns]
        .map(|call| Refused::any(call, libc::EPERM));
    lacks_text(without(&mut check(&bench, &[]), &refused));
}

#[test]
fn without_signals_for_others_links_of_descriptors_and_affinity_it_still_judges() {
    let bench = Bench::new();
    let refused = [
        libc::SYS_readlinkat,
        libc::SYS_sched_getaffinity,
        libc::SYS_kill,
        libc::SYS_ioctl,
    ]
    .map(|call| Refused::any(call, libc::EPERM));
    lacks_text(without(&mut check(&bench, &[]), &refused));
}

#[test]
fn a_network_namespace_is_judged_as_what_it_is() {
    must_be_root();
    let bench = Bench::new();
    let text = lacks_text(check(&bench, &["unshare", "--net"]).arg("--no-stacks"));
    expect_lack(
        &text,
        "irq-rate-high",
        "matched",
        "on the host of its devices",
    );
    expect_lack(&text, "fib-double", "--no-stacks", "remove it");
}

/// Runs the rest of its words after `prepare`, in namespaces of their own.
fn contained(prepare: &str) -> [String; 9] {
    let script = format!("{prepare}; exec \"$0\" \"$@\"");
    let words = [
        "unshare", "--mount", "--pid", "--fork", "--net", "--ipc", "sh", "-ec", &script,
    ];
    words.map(str::to_owned)
}

#[test]
fn in_a_container_what_is_hidden_is_named() {
    must_be_root();
    let bench = Bench::new();
    let texts = [
        // As runtimes do it: processes of its own, nothing writable.
        "mount -t proc -o ro proc /proc; mount -t sysfs -o ro sysfs /sys",
        // Masked paths are empty files and folders.
        "mount -t proc proc /proc; mount --bind /dev/null /proc/interrupts; \
         mount --bind /dev/null /proc/kallsyms; mount -t tmpfs none /sys/class; \
         mount --bind /dev/null /proc/stat",
        // chroots without either.
        "umount -l /sys; mount -t proc proc /proc",
        "mount -t proc proc /proc; mount -t tmpfs none /sys; mount -t tmpfs none /proc",
    ]
    .map(|prepare| {
        let words = contained(prepare);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        lacks_text(&mut check(&bench, &words))
    });
    expect_lack(
        &texts[0],
        "cfs-throttled",
        "no control groups are mounted",
        "mount -t cgroup2",
    );
}

#[test]
fn where_nothing_is_mounted_nothing_is_passed_and_the_mount_is_the_remedy() {
    must_be_root();
    let bench = Bench::new();
    let words = contained("mount -t tmpfs none /sys; mount -t tmpfs none /proc");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let text = lacks_text(&mut check(&bench, &words));
    expect_lack(
        &text,
        "conntrack-full",
        "/proc is not mounted here",
        "mount it",
    );
    // What cannot be seen is not what is not there.
    let words = contained("umount -l /sys; mount -t proc proc /proc");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let text = lacks_text(&mut check(&bench, &words));
    for rule in ["cstate-latency", "disk-queue", "freq-low", "tlb-bound"] {
        expect_lack(&text, rule, "/sys is not mounted here", "mount it");
    }
}

/// Kills and reaps it, whatever happens meanwhile.
struct Sleeper(std::process::Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A process that sleeps in a network namespace of its own, in which one setting is unlike that of this host.
fn sleeper_elsewhere() -> Sleeper {
    let words = "echo 0 > /proc/sys/net/ipv4/tcp_sack && echo there && exec sleep 600";
    let mut sleeper = Command::new("unshare")
        .args(["--net", "sh", "-ec", words])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let stdout = sleeper.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut said).unwrap();
    assert_eq!(said, "there\n");
    Sleeper(sleeper)
}

#[test]
fn a_process_in_another_network_namespace_is_judged_by_its_own_network() {
    must_be_root();
    let bench = Bench::new();
    let sleeper = sleeper_elsewhere();
    let pid = sleeper.0.id().to_string();
    let ended = bench.run(
        &[
            &[
                "capture",
                "-o",
                "elsewhere.rungwise",
                "--quiet",
                "--no-stacks",
                "--pid",
                &pid,
            ][..],
            &SHORT[..2],
        ]
        .concat(),
    );
    ended.expect(0);
    let capture = rungwise_probes::bundle::read(&bench.path("elsewhere.rungwise")).unwrap();
    let files = &capture.moments.last().unwrap().files;
    let text = |path: &str| match &files[path] {
        rungwise_probes::capture::Raw::Text(text) => text.trim().to_owned(),
        rungwise_probes::capture::Raw::Failed { failed } => panic!("{path}: {failed}"),
    };
    assert_eq!(text("/proc/sys/net/ipv4/tcp_sack"), "0");
    let devices: Vec<&str> = files
        .keys()
        .filter_map(|path| path.strip_prefix("/sys/class/net/")?.strip_suffix("/mtu"))
        .collect();
    assert_eq!(devices, ["lo"], "a new namespace has no other device");
    assert_eq!(text("/proc/net/dev").lines().count(), 3);
    let report = document(&Ended::from(
        check(&bench, &[]).args(["--pid", &pid]).output().unwrap(),
    ));
    let target = report["target"].as_str().unwrap();
    assert!(
        target.ends_with("in a network namespace of its own"),
        "{target}"
    );
    // Its wishes are not for the namespace of this test.
    std::fs::write(bench.path("check.json"), report.to_string()).unwrap();
    let refused = bench.run(&["knob", "plan", "--from", "check.json"]);
    assert!(refused.stderr.contains("nsenter"), "{}", refused.stderr);
    assert_ne!(refused.code, Some(0));
}

#[test]
fn where_its_namespace_cannot_be_joined_no_rule_of_the_network_passes() {
    must_be_root();
    let bench = Bench::new();
    let sleeper = sleeper_elsewhere();
    let pid = sleeper.0.id().to_string();
    let refused = [libc::SYS_mount, libc::SYS_unshare, libc::SYS_setns]
        .map(|call| Refused::any(call, libc::EPERM));
    let text = lacks_text(without(check(&bench, &[]).args(["--pid", &pid]), &refused));
    for rule in ["tcp-rwnd-limited", "udp-rcvbuf-drop", "conntrack-full"] {
        expect_lack(&text, rule, "in another network namespace", "nsenter -n -t");
    }
}

#[test]
fn below_the_sys_of_another_namespace_devices_are_reported_by_a_mount_of_its_own_or_not_at_all() {
    must_be_root();
    let bench = Bench::new();
    let devices = ["irq-names-unknown", "rps-new-device", "nic-ring-drop"];
    let elsewhere = "/sys shows the devices of another network namespace";
    let text = lacks_text(&mut check(&bench, &["unshare", "--net"]));
    assert!(!text.contains(elsewhere), "{text}");
    let refused = [Refused::any(libc::SYS_mount, libc::EPERM)];
    let mut command = check(&bench, &["unshare", "--net"]);
    let text = lacks_text(without(&mut command, &refused));
    for rule in devices {
        expect_lack(&text, rule, elsewhere, "ip netns exec");
    }
}
