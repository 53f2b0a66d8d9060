//! Option lines, good, odd and broken, held against what real JVMs did with them: `option-lines.txt`.
//!
//! One test compares our answer with the recorded marks and needs no JVM; another asks the JVMs that are here for a sample, so that
//! the marks stay true. `RUNGWISE_OPTION_LINES=all` asks for every line, `=write` writes the marks anew.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rungwise_jvm::{Case, CommandLine, Machine, Release, Start, start};

const LINES: &str = include_str!("option-lines.txt");

/// The releases of the marks, in their order.
const RELEASES: [Release; 5] = [
    Release(8),
    Release(11),
    Release(17),
    Release(21),
    Release(25),
];

/// Of all marks, this share may be left unjudged.
const UNJUDGED: f64 = 0.05;

/// Files that lines name, and what is in them.
const FILES: [(&str, &str); 3] = [
    ("good.args", "-Xmx96m\n"),
    ("bad.args", "-Xfoo\n"),
    ("good.flags", "+UseSerialGC\n"),
];

/// `class Up { public static void main(String[] a) { System.out.println("up"); } }`, compiled by javac 17 with `--release 8 -g:none`.
const UP: &[u8] = include_bytes!("Up.class");

/// Each line with its marks.
fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    LINES
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| line.split_once(' ').unwrap())
}

fn ours(release: Release, line: &str) -> Start {
    let mut read = |name: &str| {
        let file = FILES.iter().find(|(file, _)| *file == name);
        // As `jvm flags` does: JDK 8 reads no such files.
        let file = file.filter(|_| release > Release(8));
        file.map(|(_, text)| (*text).to_owned())
    };
    start(&Case {
        release,
        update: None,
        line: CommandLine::parse_with(line, &mut read),
        machine: Machine {
            memory: Some(24 << 30),
            cpus: Some(2.0),
            ..Machine::default()
        },
    })
}

#[test]
fn option_lines_are_judged_as_jvms_did() {
    let (mut all, mut unjudged) = (0, Vec::new());
    let mut wrong = String::new();
    for (marks, line) in lines() {
        assert_eq!(marks.len(), RELEASES.len(), "{line}");
        for (mark, release) in marks.chars().zip(RELEASES) {
            let ours = ours(release, line);
            match (mark, &ours) {
                ('.', _) => continue,
                ('+', Start::Yes) | ('-', Start::No(_)) => {}
                ('+' | '-', Start::Unknown(_)) => unjudged.push(format!("{release} {line}")),
                _ => writeln!(wrong, "{mark} {release} {line}: we say {ours:?}").unwrap(),
            }
            all += 1;
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{wrong}",
        wrong.lines().count()
    );
    let share = unjudged.len() as f64 / f64::from(all);
    assert!(
        share <= UNJUDGED,
        "{} of {all} not judged:\n{}",
        unjudged.len(),
        unjudged.join("\n")
    );
}

/// Whether the JVM runs a class with this line.
fn theirs(java: &Path, line: &str, folder: &Path) -> bool {
    // A variable stands before the program, which is named `java` in the list.
    let (variable, options) = match line.split_once(" java") {
        Some((variable, options)) if !line.starts_with('-') => {
            (format!("export {variable};"), options)
        }
        _ => (String::new(), line),
    };
    let command = format!(
        "{variable} exec timeout 30 {} {options} -cp . Up",
        java.display()
    );
    let status = Command::new("sh")
        .args(["-fc", &command])
        .env_remove("JAVA_TOOL_OPTIONS")
        .env_remove("_JAVA_OPTIONS")
        .env_remove("JDK_JAVA_OPTIONS")
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    status.success()
}

/// Every so many lines are asked of one JVM each, the next line of the next JVM.
const EVERY: usize = 24;

#[test]
fn option_lines_have_the_marks_that_jvms_give() {
    let asked = std::env::var("RUNGWISE_OPTION_LINES").unwrap_or_default();
    let whole = ["all", "write"].contains(&asked.as_str());
    let javas: BTreeMap<Release, PathBuf> = super::jvms();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("Up.class"), UP).unwrap();
    let mut wrong = Vec::new();
    let mut text: Vec<String> = LINES.lines().map(str::to_owned).collect();
    for (index, (marks, line)) in lines().enumerate() {
        let mut now = marks.to_owned();
        for (at, release) in RELEASES.iter().enumerate() {
            let sampled = index % EVERY == 0 && (index / EVERY) % RELEASES.len() == at;
            let Some(java) = javas.get(release).filter(|_| whole || sampled) else {
                continue;
            };
            if &marks[at..=at] == "." {
                continue;
            }
            // Lines write logs and archives: none finds those of another.
            for (name, text) in FILES {
                std::fs::write(folder.path().join(name), text).unwrap();
            }
            let mark = if theirs(java, line, folder.path()) {
                "+"
            } else {
                "-"
            };
            for entry in std::fs::read_dir(folder.path()).unwrap() {
                let path = entry.unwrap().path();
                if !path.ends_with("Up.class") && path.is_file() {
                    std::fs::remove_file(path).unwrap();
                }
            }
            if mark != &marks[at..=at] {
                wrong.push(format!(
                    "{release} {line}: {mark}, and the list has {marks}"
                ));
                now.replace_range(at..=at, mark);
            }
        }
        if now != marks {
            let old = format!("{marks} {line}");
            let place = text.iter().position(|line| *line == old).unwrap();
            text[place] = format!("{now} {line}");
        }
    }
    if asked == "write" {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/option-lines.txt");
        std::fs::write(path, text.join("\n") + "\n").unwrap();
        return;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
