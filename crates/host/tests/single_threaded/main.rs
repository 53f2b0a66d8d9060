//! What a test harness with threads cannot try: entering a user namespace, and being killed.
//!
//! Run without arguments it starts itself once per case, as the user the case needs, and judges the
//! outcome. `userns` and `hold` are the cases' other halves.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test without harness"
)]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::UdpSocket;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rungwise_host::live::Live;
use rungwise_host::namespace::Namespace;
use rungwise_host::privilege::{self, Privilege};
use rungwise_host::process::{Attached, Launch, Ready, Service};
use rungwise_host::signals::Interrupt;
use rungwise_host::veth::{self, End, Spec};
use rungwise_host::{Host, environment};
use rungwise_model::kernel::Question;
use rungwise_testkit::skipped;

/// An ordinary user on every Linux: nobody.
const NOBODY: u32 = 65534;

fn main() {
    // A listing by `cargo test -- --list` has nothing to list here.
    match std::env::args().nth(1).as_deref() {
        Some("userns") => userns(),
        Some("hold") => hold(),
        Some("interrupt") => interrupt(),
        Some("--list") => {}
        _ => {
            an_ordinary_user_gets_a_lab_in_a_user_namespace();
            being_killed_leaves_nothing();
            a_signal_wakes_the_wait_and_a_second_one_cuts_nothing_short();
        }
    }
}

fn an_ordinary_user_gets_a_lab_in_a_user_namespace() {
    let test = "an_ordinary_user_gets_a_lab_in_a_user_namespace";
    let exe = environment::current_exe().unwrap();
    let mut command = Command::new(&exe);
    command.arg("userns");
    if privilege::detect() == Privilege::Root {
        let readable = exe
            .ancestors()
            .all(|part| fs::metadata(part).is_ok_and(|metadata| metadata.mode() & 0o001 != 0));
        if !readable {
            skipped(format_args!(
                "{test}: {} cannot be run by user nobody",
                exe.display()
            ));
            return;
        }
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().unwrap();
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{test}: {stdout}{stderr}");
    print!("{stdout}");
    println!("{test} ... ok");
}

fn userns() {
    if let Privilege::None { why } = privilege::detect() {
        skipped(format_args!("the lab of an ordinary user: {why}"));
        return;
    }
    let outside = Live.base_chains().unwrap_err();
    assert_eq!(
        outside.raw_os_error(),
        Some(libc::EPERM),
        "the host's rules are root's: {outside}"
    );
    for question in [
        Question::Tcp,
        Question::Udp,
        Question::Unix,
        Question::Devices,
        Question::Qdiscs,
        Question::Owners,
    ] {
        let answer = Live.ask(question);
        assert!(answer.is_ok(), "anybody may ask {question:?}: {answer:?}");
    }
    for question in [Question::Netfilter, Question::Audit] {
        let refused = Live.ask(question).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EPERM), "{question:?}");
    }
    privilege::enter_user_namespace().unwrap();
    assert_eq!(privilege::detect(), Privilege::UserNamespace);
    let (near, far) = pair();
    let server = near.run(|| UdpSocket::bind("10.78.0.1:0")).unwrap();
    let client = far.run(|| UdpSocket::bind("10.78.0.2:0")).unwrap();
    client
        .send_to(b"ping", server.local_addr().unwrap())
        .unwrap();
    server
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    assert_eq!(server.recv(&mut [0; 8]).unwrap(), 4);
    let gro = near.feature("srv1", "rx-gro").unwrap();
    near.set_feature("srv1", "rx-gro", !gro.on).unwrap();
    near.plant_chains("rungwise").unwrap();
    assert_eq!(near.base_chains().unwrap().len(), 2);
    near.remove_table("rungwise").unwrap();
    near.write(Path::new("/proc/sys/net/ipv4/conf/all/rp_filter"), b"2")
        .unwrap();
    for file in ["rx-0/rps_cpus", "rx-0/rps_flow_cnt", "tx-0/xps_cpus"] {
        let path = format!("/sys/class/net/srv1/queues/{file}");
        let error = near.write(Path::new(&path), b"0").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM), "{file}: {error}");
    }
    let service = sleeper(&near);
    assert!(service.alive());
}

fn being_killed_leaves_nothing() {
    let test = "being_killed_leaves_nothing";
    if privilege::detect() != Privilege::Root {
        skipped(format_args!("{test}: needs root, run the tests as root"));
        return;
    }
    let before = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mut child = Command::new(environment::current_exe().unwrap())
        .arg("hold")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let words: Vec<u64> = line
        .split_whitespace()
        .map(|word| word.parse().unwrap())
        .collect();
    let [near, far, service] = words[..] else {
        panic!("{test}: unexpected line '{line}'");
    };
    let service = Attached::attach(u32::try_from(service).unwrap()).unwrap();
    assert!(service.alive() && !tasks_in(near).is_empty() && !tasks_in(far).is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    let began = Instant::now();
    while service.alive() || !tasks_in(near).is_empty() || !tasks_in(far).is_empty() {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "{test}: something lives on"
        );
        std::thread::yield_now();
    }
    assert_eq!(
        fs::read_to_string("/proc/self/mountinfo").unwrap(),
        before,
        "{test}"
    );
    println!("{test} ... ok");
}

fn a_signal_wakes_the_wait_and_a_second_one_cuts_nothing_short() {
    let test = "a_signal_wakes_the_wait_and_a_second_one_cuts_nothing_short";
    let exe = environment::current_exe().unwrap();
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let mut service = Service::start(&Launch {
            argv: vec![exe.display().to_string(), "interrupt".to_owned()],
            ..Launch::default()
        })
        .unwrap();
        let within = Duration::from_secs(20);
        service
            .wait_ready(&Ready::Line("waiting".to_owned()), within)
            .unwrap();
        service.signal(signal).unwrap();
        service
            .wait_ready(&Ready::Line("undoing".to_owned()), within)
            .unwrap();
        service.signal(libc::SIGINT).unwrap();
        // Ends after the second signal too, by its own status; stop sends a third.
        assert_eq!(
            service.stop(within).unwrap().code(),
            Some(130),
            "{test}: signal {signal}"
        );
    }
    println!("{test} ... ok");
}

#[expect(unsafe_code, reason = "signal(2) has no safe wrapper in std")]
/// Waits for a signal, then "undoes" for a while in which more signals come.
fn interrupt() {
    // Under nohup(1) SIGHUP would stay ignored, as it should.
    // SAFETY: there is no other thread yet, and no handler.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_DFL) };
    let interrupt = Interrupt::install().unwrap();
    assert!(!interrupt.raised() && !interrupt.wait(Duration::ZERO).unwrap());
    println!("waiting");
    assert!(interrupt.wait(Duration::from_secs(20)).unwrap() && interrupt.raised());
    assert!(
        interrupt.wait(Duration::from_secs(20)).unwrap(),
        "it stays raised"
    );
    println!("undoing");
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(100) {
        std::thread::yield_now();
    }
    std::process::exit(130);
}

/// Makes a lab with a service, says where, and waits to be killed.
fn hold() {
    let (near, far) = pair();
    let service = sleeper(&near);
    let line = format!(
        "{} {} {}\n",
        near.netns().unwrap(),
        far.netns().unwrap(),
        service.pid()
    );
    std::io::stdout().write_all(line.as_bytes()).unwrap();
    loop {
        std::thread::park();
    }
}

fn sleeper(namespace: &Namespace) -> Service {
    Service::start(&Launch {
        argv: vec!["sleep".to_owned(), "60".to_owned()],
        namespace: Some(namespace),
        ..Launch::default()
    })
    .unwrap()
}

fn pair() -> (Namespace, Namespace) {
    let near = Namespace::create("server").unwrap();
    let far = Namespace::create("client").unwrap();
    let end = |device: &str, last: u8| End {
        device: device.to_owned(),
        addresses: vec![([10, 78, 0, last].into(), 24)],
    };
    let spec = Spec {
        queues: 2,
        ends: [end("srv1", 1), end("cli1", 2)],
    };
    veth::connect(&near, &far, &spec).unwrap();
    (near, far)
}

/// Tasks in a network namespace, as paths in /proc.
fn tasks_in(inode: u64) -> Vec<String> {
    let entries = |dir: &Path| -> Vec<_> {
        fs::read_dir(dir)
            .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
            .unwrap_or_default()
    };
    entries(Path::new("/proc"))
        .iter()
        .flat_map(|process| entries(&process.join("task")))
        .filter(|task| fs::metadata(task.join("ns/net")).is_ok_and(|ns| ns.ino() == inode))
        .map(|task| task.display().to_string())
        .collect()
}
