//! Real JVMs dump a program that knows what its threads do, and what we read is held against that.
//!
//! JDK 8 to 25 as `java-8` to `java-25` in PATH, which `cargo xtask test` provides; one that is not there is said aloud. Every JVM
//! dumps by SIGQUIT, which needs no tool; with `jcmd` beside it also by `Thread.print -l` and, from JDK 21 on, to a file.

#![expect(
    clippy::disallowed_methods,
    reason = "runs JVMs and reads what they print, and says what was skipped"
)]

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use rungwise_model::threads::{Doing, Dump};
use rungwise_testkit::{TimeLimit, skipped};
use rungwise_threaddump::summary;

use crate::read;

fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Of a program from its start to its end, tens of seconds on a busy machine; one that hangs must fail.
const LIMIT: Duration = Duration::from_mins(5);

/// The program, once it stands.
struct Running {
    limit: Option<TimeLimit>,
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Running {
    fn start(java: &Path, classes: &Path) -> Self {
        let mut child = Command::new(java)
            // For SIGQUIT, what -l is for jcmd.
            .args(["-XX:+PrintConcurrentLocks", "-Xmx64m", "-cp"])
            .args([classes.to_str().expect("UTF-8"), "Locks"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", java.display()));
        let limit = Some(TimeLimit::start(&child, LIMIT));
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let mut running = Self {
            limit,
            child,
            output,
        };
        running.until(|line| line == "ready");
        running
    }

    /// What it prints up to this line.
    fn until(&mut self, last: impl Fn(&str) -> bool) -> String {
        let mut text = String::new();
        loop {
            let from = text.len();
            let read = self.output.read_line(&mut text).expect("it prints text");
            assert!(read > 0, "it ended: {text}");
            if last(text[from..].trim_end()) {
                return text;
            }
        }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    fn quit(&mut self) -> String {
        let status = Command::new("kill").args(["-QUIT", &self.pid()]).status();
        assert!(status.expect("kill runs").success());
        self.until(|line| line.starts_with("Found ") && line.ends_with(" deadlocks."))
    }

    fn jcmd(&self, jcmd: &Path, arguments: &[&str]) -> Vec<u8> {
        let output = Command::new(jcmd).arg(self.pid()).args(arguments).output();
        let output = output.expect("jcmd runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "{text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        output.stdout
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The end of its input ends it.
        drop(self.child.stdin.take());
        self.limit = None;
        let _ = self.child.wait();
    }
}

/// What differs from what the program built.
fn differs(how: &str, text: &[u8], is_print: bool) -> Vec<String> {
    let (dumps, account) = read("dump", text);
    let report = summary(dumps);
    let [dump] = &report.dumps[..] else {
        return vec![format!("{how}: {} dumps", report.dumps.len())];
    };
    let mut wrong = Vec::new();
    let mut check = |holds: bool, what: String| {
        if !holds {
            wrong.push(format!("{how}: {what}"));
        }
    };
    check(account.unknown_lines == 0, format!("{:?}", account.samples));
    // JDK 8 prints the youngest thread first.
    let members = |threads: &[String]| {
        let mut threads = threads.to_vec();
        threads.sort();
        threads.join(" ")
    };
    let deadlocks: BTreeSet<String> = dump
        .deadlocks
        .iter()
        .map(|one| members(&one.threads))
        .collect();
    let expected = if is_print {
        &["dl-A dl-B", "dl-P dl-Q"][..]
    } else {
        &["dl-A dl-B"]
    };
    check(
        deadlocks.iter().eq(expected),
        format!("deadlocks {deadlocks:?}"),
    );
    let reported = dump.deadlocks.iter().all(|one| one.reported == is_print);
    check(
        reported,
        "what it reports and what we find differ".to_owned(),
    );
    let queues = [
        ("hot", 12, "hot-holder"),
        ("fair", 7, if is_print { "fair-holder" } else { "" }),
    ];
    for (name, waiters, owner) in queues {
        let found = queue(dump, name);
        check(
            found == (waiters, owner.to_owned()),
            format!("{name}: {found:?}"),
        );
    }
    // Two holders sleep, main reads its input.
    let expected = Doing {
        jvm: dump.doing.jvm,
        idle: 5,
        running: 1,
        lock_waiting: 23,
        waiting: 2,
    };
    check(dump.doing == expected, format!("{:?}", dump.doing));
    wrong
}

fn queue(dump: &Dump, name: &str) -> (usize, String) {
    let of = |waiter: &String| waiter.starts_with(&format!("{name}-client-"));
    let lock = dump.locks.iter().find(|lock| lock.waiters.iter().any(of));
    lock.map_or((0, String::new()), |lock| {
        (lock.waiters.len(), lock.owner.clone().unwrap_or_default())
    })
}

fn dumps_of(release: u32, java: &Path, classes: &Path) -> Vec<String> {
    let mut running = Running::start(java, classes);
    let mut wrong = differs(
        &format!("JDK {release}, SIGQUIT"),
        running.quit().as_bytes(),
        true,
    );
    let home = java.canonicalize().expect("a program");
    let jcmd = [
        home.with_file_name("jcmd"),
        home.with_file_name("../../bin/jcmd"),
    ];
    let Some(jcmd) = jcmd.iter().find(|file| file.is_file()) else {
        skipped(format_args!(
            "no jcmd of JDK {release} beside {}",
            home.display()
        ));
        return wrong;
    };
    let printed = running.jcmd(jcmd, &["Thread.print", "-l"]);
    wrong.extend(differs(
        &format!("JDK {release}, Thread.print -l"),
        &printed,
        true,
    ));
    if release < 21 {
        return wrong;
    }
    for format in ["plain", "json"] {
        let file = classes.join(format!("{release}.{format}"));
        let option = format!("-format={format}");
        running.jcmd(
            jcmd,
            &[
                "Thread.dump_to_file",
                "-overwrite",
                &option,
                file.to_str().expect("UTF-8"),
            ],
        );
        let text = std::fs::read(&file).expect("it wrote a file");
        let how = format!("JDK {release}, dump_to_file {format}");
        if release >= 25 {
            wrong.extend(differs(&how, &text, false));
        } else {
            let report = summary(read("dump", &text).0);
            if report.dumps.len() != 1 || report.dumps[0].waiting_share.is_some() {
                wrong.push(format!("{how}: it tells no states, and we do"));
            }
        }
    }
    wrong
}

#[test]
fn dumps_of_real_jvms_tell_what_their_program_knows() {
    let Some(javac) = program("javac") else {
        skipped("no javac in PATH; cargo xtask test installs one");
        return;
    };
    let classes =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("locks-{}", std::process::id()));
    std::fs::create_dir_all(&classes).expect("a folder for the classes");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jvm/Locks.java");
    let compiled = Command::new(javac)
        .args(["--release", "8", "-nowarn", "-d"])
        .args([&classes, &source])
        .output()
        .expect("javac runs");
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    let mut wrong = Vec::new();
    for release in [8, 11, 17, 21, 25] {
        match program(&format!("java-{release}")) {
            Some(java) => wrong.extend(dumps_of(release, &java, &classes)),
            None => skipped(format_args!(
                "no java-{release} in PATH; cargo xtask test provides one"
            )),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    std::fs::remove_dir_all(&classes).expect("the files are removed");
}
