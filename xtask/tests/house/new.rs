//! `cargo xtask new`, in a copy of the checkout: what it writes compiles, is entered in order, and is
//! refused by the house until it is filled in.

use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;
use xtask::new::STUB;
use xtask::tree::Tree;

/// A copy of what belongs to the project.
struct Copy {
    folder: TempDir,
}

impl Copy {
    fn of_ours() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ours = Tree::ours();
        for file in ours.files().unwrap() {
            let to = folder.path().join(&file);
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::copy(ours.join(&file), to).unwrap();
        }
        Self { folder }
    }

    fn tree(&self) -> Tree {
        Tree::at(self.folder.path())
    }

    fn new_part(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_xtask"))
            .arg("--root")
            .arg(self.folder.path())
            .arg("new")
            .args(args)
            .output()
            .unwrap()
    }

    /// What cargo prints; the dependencies are built once, in a target folder beside ours.
    #[track_caller]
    fn cargo(&self, args: &[&str]) -> String {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("new");
        let mut cargo = self.tree().cargo();
        cargo.args(args).args(["--quiet", "--offline"]);
        let out = cargo.arg("--target-dir").arg(target).output().unwrap();
        let printed = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(out.status.success(), "{printed}{}", said(&out));
        printed
    }
}

#[track_caller]
fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

/// Adds `ids` of `kind` and sees that each stub carries the mark.
#[track_caller]
fn adds(kind: &str, ids: &[&str], stubs: &[&str]) -> Copy {
    let copy = Copy::of_ours();
    for id in ids {
        let out = copy.new_part(&[kind, id]);
        assert!(out.status.success(), "{}", said(&out));
    }
    for stub in stubs {
        assert!(
            copy.tree().read(stub).unwrap().contains(STUB),
            "{stub} does not say that it is a stub"
        );
    }
    let again = copy.new_part(&[kind, ids[0]]);
    assert!(!again.status.success(), "a second {} was accepted", ids[0]);
    copy
}

#[test]
fn a_new_knob_stands_in_order_of_its_id() {
    let stub = "crates/knobs/src/netns/foo.rs";
    let copy = adds("knob", &["net.foo"], &[stub]);
    let registry = copy.tree().read("crates/knobs/src/lib.rs").unwrap();
    let at = |entry: &str| registry.find(entry).unwrap_or_else(|| panic!("no {entry}"));
    assert!(
        at("&netns::accept_local::KNOB") < at("&netns::foo::KNOB"),
        "net.accept_local before net.foo"
    );
    assert!(
        at("&netns::foo::KNOB") < at("&device::gro::KNOB"),
        "net.foo before net.gro"
    );
}

#[test]
fn a_new_rule_stands_in_order_of_its_id_and_brings_its_casebook() {
    let copy = adds(
        "rule",
        &[
            "tcp/accept-queue-overflow",
            "tcp/zero-window",
            "weather/buffer-errors",
        ],
        &[
            "crates/rules/src/tcp/accept_queue_overflow.rs",
            "crates/rules/src/weather/buffer_errors.rs",
            "crates/rules/cases/accept-queue-overflow.md",
        ],
    );
    let registry = copy.tree().read("crates/rules/src/lib.rs").unwrap();
    let at = |entry: &str| registry.find(entry).unwrap_or_else(|| panic!("no {entry}"));
    assert!(at("&tcp::accept_queue_overflow::RULE") < at("&weather::buffer_errors::RULE"));
    assert!(at("&weather::buffer_errors::RULE") < at("&cpu::cfs_throttled::RULE"));
    assert!(at("&cpu::udp_thread_remote::RULE") < at("&tcp::zero_window::RULE"));
    let book = copy
        .tree()
        .read("crates/rules/cases/zero-window.md")
        .unwrap();
    let headings = |words: &str| {
        book.lines()
            .filter(|line| line.starts_with("## ") && line.contains(words))
            .count()
    };
    assert_eq!(
        (headings("near miss"), headings("false alarm")),
        (2, 1),
        "{book}"
    );
    for outcome in ["\nact ", "\nclear\n", "\nundecided "] {
        assert!(book.contains(outcome), "no case is {outcome}: {book}");
    }
}

#[test]
fn a_new_probe_stands_in_order_of_its_id() {
    let copy = adds(
        "probe",
        &["net/proc-net-raw", "weather/proc-rain"],
        &[
            "crates/probes/src/net/proc_net_raw.rs",
            "crates/probes/src/weather/proc_rain.rs",
        ],
    );
    let registry = copy.tree().read("crates/probes/src/lib.rs").unwrap();
    let at = |entry: &str| registry.find(entry).unwrap_or_else(|| panic!("no {entry}"));
    assert!(at("&net::proc_net_raw::PROBE") < at("&weather::proc_rain::PROBE"));
}

#[test]
fn a_new_workload_touches_two_files() {
    let copy = adds(
        "workload",
        &["rpc-echo", "idle-connections"],
        &["crates/load/src/workloads/rpc_echo.rs"],
    );
    let ours = Tree::ours();
    let theirs = copy.tree().files().unwrap();
    let mut touched: Vec<&str> = theirs
        .iter()
        .filter(|file| ours.read(file).ok() != copy.tree().read(file).ok())
        .map(String::as_str)
        .collect();
    touched.retain(|file| !file.contains("idle_connections"));
    assert_eq!(
        touched,
        [
            "crates/load/src/workloads/mod.rs",
            "crates/load/src/workloads/rpc_echo.rs"
        ]
    );
}

/// One copy for all parts: cargo builds every further copy from scratch.
#[test]
fn what_is_new_compiles_and_a_new_workload_drives_a_server_on_loopback() {
    let copy = Copy::of_ours();
    for (kind, id) in [
        ("knob", "net.foo"),
        ("rule", "tcp/zero-window"),
        ("rule", "weather/buffer-errors"),
        ("probe", "weather/proc-rain"),
        ("workload", "rpc-echo"),
    ] {
        let out = copy.new_part(&[kind, id]);
        assert!(out.status.success(), "{}", said(&out));
    }
    // Optimising these crates takes longer than a single test gains by it.
    let manifest = copy.tree().read("Cargo.toml").unwrap();
    let mut manifest: toml::Table = manifest.parse().unwrap();
    manifest.remove("profile").expect("profiles");
    let text = toml::to_string(&manifest).unwrap();
    copy.tree().write("Cargo.toml", &text).unwrap();
    let packages = ["rungwise-knobs", "rungwise-rules", "rungwise-probes"];
    let packages = packages.map(|name| ["--package", name]).concat();
    copy.cargo(&[&["check"], packages.as_slice()].concat());
    let said = copy.cargo(&["test", "--package=rungwise-load", "--lib", "rpc_echo"]);
    assert!(said.contains("1 passed"), "{said}");
}

#[test]
fn an_id_that_is_no_id_writes_nothing() {
    let copy = Copy::of_ours();
    let before = copy.tree().files().unwrap();
    for args in [
        ["knob", "Foo"],
        ["rule", "tcp"],
        ["probe", "../x"],
        ["workload", "a b"],
    ] {
        let out = copy.new_part(&args);
        assert!(!out.status.success());
        assert!(
            said(&out).contains("write it like") || said(&out).contains("words, for example"),
            "{}",
            said(&out)
        );
    }
    assert_eq!(copy.tree().files().unwrap(), before);
}
