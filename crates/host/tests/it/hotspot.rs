//! The attach client against real JVMs, and against what is none.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rungwise_host::hotspot::{Error, Jvm};
use rungwise_host::signals::Interrupt;
use rungwise_testkit::{How, PlantedJvm, own_tmp, program, skipped};

use crate::root_or_skip;

const WITHIN: Duration = Duration::from_mins(1);

fn start(options: &[&str]) -> PlantedJvm {
    let java = program("java").expect("java is in PATH");
    PlantedJvm::start(&java, options, How::Stay, None)
}

fn signal(pid: u32, signal: &str) {
    let status = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
    assert!(status.unwrap().success());
}

#[track_caller]
fn leaves_nothing(jvm: &PlantedJvm) {
    let left = |folder: &Path| folder.join(format!(".attach_pid{}", jvm.pid())).exists();
    assert!(!left(jvm.folder()) && !left(Path::new("/tmp")));
}

#[test]
fn every_jdk_answers_commands_and_refuses_unknown_ones() {
    for release in [8, 11, 17, 21, 25] {
        let Some(java) = program(&format!("java-{release}"))
            .or_else(|| program("java").filter(|_| release == 17))
        else {
            skipped(format_args!(
                "no java-{release} in PATH; cargo xtask test provides one"
            ));
            continue;
        };
        let mut planted = PlantedJvm::start(&java, &["-Xmx64m"], How::Stay, None);
        let jvm = Jvm::open(planted.pid()).unwrap();
        let version = jvm.command("VM.version", WITHIN).unwrap();
        assert!(version.contains("VM version"), "{release}: {version}");
        leaves_nothing(&planted);
        // The listener is open now: no signal is needed any more.
        let threads = jvm.command("Thread.print", WITHIN).unwrap();
        assert!(threads.contains("\"main\""), "{release}: {threads}");
        let error = jvm.command("No.such", WITHIN).unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{error}");
        assert!(planted.is_running());
        drop(planted);
        let error = jvm.command("VM.version", WITHIN).unwrap_err();
        assert!(!jvm.is_running());
        assert!(
            matches!(error, Error::Ended { .. } | Error::NoProcess { .. }),
            "{error}"
        );
    }
}

#[test]
fn a_jvm_of_another_user_is_asked_as_that_user() {
    if !root_or_skip() {
        return;
    }
    let java = program("java").expect("java is in PATH");
    let planted = PlantedJvm::start(&java, &[], How::Stay, Some(65_534));
    let jvm = Jvm::open(planted.pid()).unwrap();
    jvm.command("VM.version", WITHIN).unwrap();
    leaves_nothing(&planted);
    // The threads of this process are who they were.
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    assert!(status.contains("Uid:\t0\t0\t0\t0"), "{status}");
}

#[test]
fn a_jvm_in_namespaces_of_its_own_is_found_by_its_own_number() {
    if !root_or_skip() {
        return;
    }
    let java = program("java").expect("java is in PATH");
    let folder = tempfile::tempdir().unwrap();
    let wrapper = folder.path().join("java");
    let text = format!(
        "#!/bin/sh\nexec unshare --pid --mount --fork --kill-child sh -c \"{} && mount -t proc none /proc && cd / && exec \\\"\\$@\\\"\" sh {} \"$@\"\n",
        own_tmp(),
        java.display()
    );
    std::fs::write(&wrapper, text).unwrap();
    Command::new("chmod")
        .arg("755")
        .arg(&wrapper)
        .status()
        .unwrap();
    // Classes that are there inside too.
    let planted = PlantedJvm::start_in(
        Path::new(env!("CARGO_TARGET_TMPDIR")),
        &wrapper,
        &[],
        How::Stay,
        None,
    );
    let children = format!("/proc/{0}/task/{0}/children", planted.pid());
    let child = std::fs::read_to_string(children).unwrap();
    let child: u32 = child.trim().parse().unwrap();
    let jvm = Jvm::open(child).unwrap();
    let version = jvm.command("VM.version", WITHIN).unwrap();
    assert!(version.contains("VM version"), "{version}");
    assert!(!Path::new(&format!("/tmp/.java_pid{child}")).exists());
}

#[test]
fn what_sigquit_would_kill_is_never_signalled() {
    let mut sleeper = Command::new("sleep").arg("600").spawn().unwrap();
    let error = Jvm::open(sleeper.id()).unwrap_err();
    assert!(matches!(error, Error::NotJvm { .. }), "{error}");
    assert!(sleeper.try_wait().unwrap().is_none());
    sleeper.kill().unwrap();
    let status = sleeper.wait().unwrap();
    assert_eq!(status.signal(), Some(9));
    for (option, word) in [
        ("-XX:+DisableAttachMechanism", "DisableAttachMechanism"),
        ("-Xrs", "-Xrs"),
        ("-XX:+ReduceSignalUsage", "ReduceSignalUsage"),
    ] {
        let mut planted = start(&[option]);
        let error = Jvm::open(planted.pid()).unwrap_err();
        assert!(matches!(error, Error::Disabled { .. }), "{error}");
        assert!(error.to_string().contains(word), "{error}");
        assert!(planted.is_running());
    }
}

/// Stops a process, and waits until it has stopped: a signal takes as long as its threads need to see it.
fn stop(pid: u32) {
    signal(pid, "-STOP");
    let stat = format!("/proc/{pid}/stat");
    let deadline = Instant::now() + WITHIN;
    while !std::fs::read_to_string(&stat).unwrap().contains(") T ") {
        assert!(Instant::now() < deadline, "it does not stop");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_stopped_jvm_is_refused_before_it_has_a_listener_and_after() {
    let planted = start(&[]);
    stop(planted.pid());
    let error = Jvm::open(planted.pid()).unwrap_err();
    assert!(matches!(error, Error::Stopped { .. }), "{error}");
    signal(planted.pid(), "-CONT");
    let jvm = Jvm::open(planted.pid()).unwrap();
    jvm.command("VM.version", WITHIN).unwrap();
    stop(planted.pid());
    let error = jvm.command("VM.version", WITHIN).unwrap_err();
    assert!(matches!(error, Error::Stopped { .. }), "{error}");
    signal(planted.pid(), "-CONT");
    jvm.command("VM.version", WITHIN).unwrap();
    leaves_nothing(&planted);
}

/// Commands one after the other, from another thread, until one of them fails.
fn failure_of(jvm: Jvm, within: Duration) -> std::thread::JoinHandle<Error> {
    std::thread::spawn(move || {
        loop {
            if let Err(error) = jvm.command("Thread.print", within) {
                return error;
            }
        }
    })
}

#[test]
fn a_jvm_that_stalls_or_dies_in_the_middle_ends_the_wait() {
    let planted = start(&[]);
    let asked = failure_of(Jvm::open(planted.pid()).unwrap(), Duration::from_secs(2));
    let began = Instant::now();
    stop(planted.pid());
    let error = asked.join().unwrap();
    assert!(
        matches!(
            error,
            Error::Stopped { .. } | Error::Stalled { .. } | Error::NoListener { .. }
        ),
        "{error}"
    );
    assert!(began.elapsed() < Duration::from_secs(40));
    leaves_nothing(&planted);
    signal(planted.pid(), "-CONT");
    let asked = failure_of(Jvm::open(planted.pid()).unwrap(), WITHIN);
    signal(planted.pid(), "-KILL");
    let error = asked.join().unwrap();
    assert!(matches!(error, Error::Ended { .. }), "{error}");
    leaves_nothing(&planted);
}

#[test]
fn a_wait_for_an_answer_ends_with_an_interrupt_and_when_the_jvm_is_stopped() {
    // Takes commands and never answers, as a JVM in a collection that hangs.
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libjvm.so");
    std::fs::write(&library, vec![0; 4096]).unwrap();
    let script = "import mmap, os, signal, socket, time\n\
                  f = open('libjvm.so', 'rb')\n\
                  m = mmap.mmap(f.fileno(), 4096, prot=mmap.PROT_READ)\n\
                  signal.signal(signal.SIGQUIT, lambda *_: None)\n\
                  os.umask(0o077)\n\
                  s = socket.socket(socket.AF_UNIX)\n\
                  s.bind('/tmp/.java_pid%d' % os.getpid())\n\
                  s.listen()\n\
                  print('ready', flush=True)\n\
                  held = []\n\
                  while True:\n    \
                      held.append(s.accept()[0])\n    \
                      held[-1].recv(1000)\n    \
                      print('asked', flush=True)\n";
    let mut child = Command::new("python3")
        .args(["-c", script])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = move || {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut output, &mut line).unwrap();
        line.trim().to_owned()
    };
    assert_eq!(line(), "ready");
    let mut failures = Vec::new();
    for stopped in [false, true] {
        let interrupt = Interrupt::without_signals().unwrap();
        let jvm = Jvm::open(child.id()).unwrap();
        let jvm = jvm.with_interrupt(interrupt.clone());
        let asked = std::thread::spawn(move || jvm.command("GC.run", Duration::from_mins(10)));
        assert_eq!(line(), "asked");
        if stopped {
            signal(child.id(), "-STOP");
        } else {
            interrupt.raise();
        }
        failures.push(asked.join().unwrap().unwrap_err());
    }
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::remove_file(format!("/tmp/.java_pid{}", child.id())).unwrap();
    assert!(
        matches!(
            failures[..],
            [Error::Interrupted { .. }, Error::Stopped { .. }]
        ),
        "{failures:?}"
    );
}

#[test]
fn a_jvm_that_cannot_reach_its_listener_times_out_and_the_trigger_is_gone() {
    // Catches SIGQUIT and has a library of that name mapped, and opens nothing.
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libjvm.so");
    std::fs::write(&library, vec![0; 4096]).unwrap();
    let script = "import mmap, signal, sys, time\n\
                  f = open('libjvm.so', 'rb')\n\
                  m = mmap.mmap(f.fileno(), 4096, prot=mmap.PROT_READ)\n\
                  signal.signal(signal.SIGQUIT, lambda *_: None)\n\
                  print('ready', flush=True)\n\
                  time.sleep(600)\n";
    let mut child = Command::new("python3")
        .args(["-c", script])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    let error = Jvm::open(child.id()).unwrap().command("VM.version", WITHIN);
    let error = error.unwrap_err();
    assert!(matches!(error, Error::NoListener { .. }), "{error}");
    let trigger = folder.path().join(format!(".attach_pid{}", child.id()));
    assert!(!trigger.exists());
    child.kill().unwrap();
    child.wait().unwrap();
}
