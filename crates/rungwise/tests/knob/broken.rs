//! Plans and checks that are broken, of another host, of another time, or no plans at all: each is refused with what
//! was tried, on what, why and what to do, and nothing is changed.

use serde_json::{Value, json};

use super::*;

struct Desk {
    bench: Bench,
}

impl Desk {
    fn new() -> Self {
        let bench = Bench::new();
        Self { bench }
    }

    fn path(&self, name: &str) -> String {
        self.bench.scratch.path().join(name).display().to_string()
    }

    fn file(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// A plan of this host as `knob plan -o` wrote it, changed by `edit`.
    fn plan(&self, name: &str, edit: impl FnOnce(&mut Value)) -> String {
        let path = self.path(name);
        self.bench
            .run(&["knob", "plan", WISHES[0], "--device", "lo", "-o", &path])
            .with(0, &[]);
        let mut plan: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        edit(&mut plan);
        self.file(name, plan.to_string())
    }

    /// A check of this host, changed by `edit`.
    fn check(&self, name: &str, edit: impl FnOnce(&mut Value)) -> String {
        let path = self.path(name);
        check(Path::new(&path));
        let mut check: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        edit(&mut check);
        self.file(name, check.to_string())
    }

    /// Every one of these commands is refused so, and changes nothing.
    #[track_caller]
    fn refused(&self, commands: &[&[&str]], words: &[&str]) {
        for command in commands {
            self.bench.run(command).with(2, words);
            assert_eq!(self.bench.changed(), [""; 0], "{command:?}");
            assert!(self.bench.journals().is_empty(), "{command:?}");
        }
        self.bench.guard_is_gone();
    }
}

#[test]
fn what_is_no_plan_is_refused_with_what_it_is() {
    let desk = Desk::new();
    let folder = desk.path("folder");
    std::fs::create_dir(&folder).unwrap();
    let check = desk.check("check.json", |_| {});
    for (path, why) in [
        (desk.file("empty", ""), "it is empty"),
        (desk.file("text", "net.rp_filter"), "not a JSON document"),
        (desk.file("bytes", b"\xff\xfe\0"), "not a JSON document"),
        (
            desk.file("cut", "{\"schema\":1,\"pl"),
            "not a JSON document",
        ),
        (desk.file("bare", "{}"), "no schema version"),
        (folder, "it is a folder"),
        (desk.path("missing"), "No such file"),
        (check, "it is a check; name it with --from"),
        ("/dev/zero".to_owned(), "larger than 64 MiB"),
    ] {
        desk.refused(
            &[
                &["knob", "plan", &path],
                &["knob", "apply", &path],
                &["knob", "apply", "--dry-run", &path],
                &["knob", "plan", &path],
                &["knob", "verify", &path],
                &["knob", "export", "--as", "sysctl.d", &path],
            ],
            &[
                &format!("cannot read {path} as a plan: "),
                why,
                "; make one with `rungwise knob plan",
            ],
        );
    }
}

#[test]
fn what_is_no_check_is_refused_with_what_it_is() {
    let desk = Desk::new();
    let plan = desk.plan("plan.json", |_| {});
    let old = desk.check("old.json", |check| check["schema"] = json!(0));
    let damaged = desk.check("damaged.json", |check| check["findings"] = json!({}));
    for (path, why) in [
        (desk.file("empty", ""), "it is empty"),
        (desk.file("text", "all is well"), "not a JSON document"),
        (
            desk.bench.scratch.path().display().to_string(),
            "it is a folder",
        ),
        (desk.path("missing"), "No such file"),
        (plan, "it is a plan; name it without --from"),
        (old, "an older rungwise wrote it, with schema 0"),
        (damaged, "it is damaged"),
    ] {
        desk.refused(
            &[
                &["knob", "plan", "--from", &path],
                &["knob", "apply", "--from", &path],
                &["knob", "list", "--why", "--from", &path],
            ],
            &[
                &format!("cannot read {path} as a check: "),
                why,
                "; make one with `rungwise check --format json",
            ],
        );
    }
}

#[test]
fn a_check_without_findings_asks_for_nothing() {
    let desk = Desk::new();
    let empty = desk.check("empty.json", |check| check["findings"] = json!([]));
    desk.bench
        .run(&["knob", "plan", "--from", &empty])
        .with(0, &["no finding recommends a knob"]);
    desk.bench
        .run(&["knob", "apply", "--from", &empty])
        .with(0, &["nothing to change"]);
    assert!(desk.bench.journals().is_empty());
    desk.bench.guard_is_gone();
}

#[test]
fn findings_that_ask_for_what_is_not_there_are_left_out_with_the_reason() {
    let desk = Desk::new();
    let check = desk.check("check.json", |check| {
        let turns = [
            json!({ "id": "net.no_such_knob", "from": null, "to": "1" }),
            json!({ "id": "net.rp_filter", "device": "nosuchdev0", "from": null, "to": "2" }),
            json!({ "id": "net.rp_filter", "device": "lo", "from": null, "to": "much" }),
        ];
        let first = check["findings"][0].clone();
        for turn in turns {
            let mut finding = first.clone();
            finding["knobs"] = json!([turn]);
            finding["rule"] = json!("another-rule");
            check["findings"].as_array_mut().unwrap().push(finding);
        }
    });
    for command in [
        &["knob", "plan", "--from", &check][..],
        &["knob", "apply", "--from", &check, "--evidence-for", "0s"],
    ] {
        desk.bench.run(command).with(
            0,
            &[
                "- 0\n    + 2",
                "not planned: sock.reuseport, recommended by udp-socket-lock",
                "not planned: net.no_such_knob, recommended by another-rule: no knob is called",
                "nosuchdev0",
                "a more severe finding recommends 2 instead of much",
            ],
        );
    }
    assert_eq!(desk.bench.changed().len(), 1, "{:?}", desk.bench.changed());
    desk.bench.run(&["knob", "undo"]).with(0, &[]);
    assert_eq!(desk.bench.changed(), [""; 0]);
}

#[test]
fn steering_that_is_asked_for_together_with_a_switch_of_the_service_is_not_planned_alone() {
    let desk = Desk::new();
    let check = desk.check("check.json", |check| {
        let mut finding = check["findings"][0].clone();
        finding["rule"] = json!("rps-needed");
        finding["knobs"] = json!([
            { "id": "sock.reuseport", "from": null, "to": "on" },
            { "id": "net.rps_cpus", "device": "lo", "from": "none", "to": "all" },
        ]);
        check["findings"] = json!([finding]);
    });
    for command in ["plan", "apply"] {
        desk.bench.run(&["knob", command, "--from", &check]).with(
            0,
            &[
                "not planned: sock.reuseport, recommended by rps-needed",
                "not planned: net.rps_cpus, recommended by rps-needed: rps-needed recommends it only together with sock.reuseport",
            ],
        );
    }
    assert_eq!(desk.bench.changed(), [""; 0]);
}

#[test]
fn a_check_or_a_plan_of_another_host_is_for_that_host() {
    let desk = Desk::new();
    let check = desk.check("check.json", |check| check["host"] = json!("elsewhere"));
    desk.refused(
        &[
            &["knob", "plan", "--from", &check],
            &["knob", "apply", "--from", &check],
        ],
        &[
            "cannot plan from",
            "host 'elsewhere'",
            "plan on the host that was checked",
        ],
    );
    let plan = desk.plan("plan.json", |plan| plan["host"] = json!("elsewhere"));
    desk.refused(
        &[&["knob", "plan", &plan], &["knob", "apply", &plan]],
        &[
            "cannot apply",
            "it was planned on host 'elsewhere'",
            "plan it here, or apply it there",
        ],
    );
    // What it wishes for can be compared with any host, and kept on it.
    desk.bench
        .run(&["knob", "verify", &plan])
        .with(1, &["is '0', not '2'"]);
    desk.bench
        .run(&["knob", "export", "--as", "sysctl.d", &plan])
        .with(0, &["net.ipv4.conf.lo.rp_filter = 2"]);
}

#[test]
fn a_plan_of_another_schema_is_made_again() {
    let desk = Desk::new();
    for (schema, age) in [(0, "an older rungwise"), (2, "a newer rungwise")] {
        let plan = desk.plan("plan.json", |plan| plan["schema"] = json!(schema));
        desk.refused(
            &[
                &["knob", "apply", &plan],
                &["knob", "verify", &plan],
                &["knob", "export", "--as", "udev", &plan],
            ],
            &[age, "this one reads schema 1", "make one with"],
        );
    }
}

#[test]
fn a_plan_that_was_tampered_with_is_refused() {
    let desk = Desk::new();
    let unknown = desk.plan("unknown.json", |plan| {
        plan["plans"][0]["knob"] = json!("net.rp_filtre");
    });
    desk.refused(
        &[
            &["knob", "apply", &unknown],
            &["knob", "apply", "--dry-run", &unknown],
            &["knob", "plan", &unknown],
            &["knob", "verify", &unknown],
        ],
        &["no knob is called 'net.rp_filtre'; did you mean net.rp_filter?"],
    );
    let foreign = desk.plan("foreign.json", |plan| {
        plan["plans"][0]["edits"][0]["edit"]["path"] = json!("/proc/sys/kernel/core_pattern");
    });
    let twice = desk.plan("twice.json", |plan| {
        let edit = plan["plans"][0]["edits"][0].clone();
        plan["plans"][0]["edits"].as_array_mut().unwrap().push(edit);
    });
    for (path, why) in [
        (foreign, "this knob does not write"),
        (twice, "is named twice"),
    ] {
        desk.refused(
            &[
                &["knob", "apply", &path],
                &["knob", "apply", "--dry-run", &path],
                &["knob", "plan", &path],
                &["knob", "verify", &path],
                &["knob", "export", "--as", "sysctl.d", &path],
            ],
            &[why, "recreate it with `rungwise knob plan`"],
        );
    }
    let field = desk.plan("field.json", |plan| {
        plan["plans"][0]["edits"][0]["edit"]["mode"] = json!("fast");
    });
    desk.refused(&[&["knob", "apply", &field]], &["it is damaged", "mode"]);
}

#[test]
fn a_wish_that_contradicts_another_one_is_refused() {
    let desk = Desk::new();
    let plan = desk.plan("plan.json", |_| {});
    for wishes in [
        ["net.rp_filter=2", "net.rp_filter=1"],
        ["net.rp_filter=1", plan.as_str()],
        ["tcp.rmem=max=16MiB", "tcp.rmem=default=1MiB"],
    ] {
        desk.refused(
            &[
                &[&["knob", "plan"], &wishes[..], &["--device", "lo"]].concat(),
                &[&["knob", "apply"], &wishes[..], &["--device", "lo"]].concat(),
                &[
                    &["knob", "export", "--as", "sysctl.d"],
                    &wishes[..],
                    &["--device", "lo"],
                ]
                .concat(),
            ],
            &[
                "cannot plan ",
                "it sets /proc/sys/",
                "name each once, with all its parts",
            ],
        );
    }
    // The same again is no contradiction.
    let twice = ["knob", "apply", WISHES[0], WISHES[0], "--device", "lo"];
    desk.bench.run(&twice).with(0, &[]);
    assert_eq!(desk.bench.changed().len(), 1);
    desk.bench.run(&["knob", "undo"]).with(0, &[]);
}

#[test]
fn what_is_neither_a_wish_nor_a_plan_is_refused_with_how_to_become_one() {
    let desk = Desk::new();
    desk.refused(
        &[&["knob", "plan", "net.rp_filter", "--device", "lo"]],
        &["it has no value; write net.rp_filter=VALUE"],
    );
    desk.refused(
        &[&["knob", "apply", "net.rp_filtre=2", "--device", "lo"]],
        &["did you mean net.rp_filter?", "rungwise knob list"],
    );
    desk.refused(
        &[&["knob", "plan", "net.rp_filter=much", "--device", "lo"]],
        &["cannot set net.rp_filter to 'much'", "allowed: "],
    );
    desk.refused(
        &[&["knob", "export", "--as", "registry"]],
        &["invalid value 'registry'", "sysctl.d"],
    );
}

#[test]
fn an_output_that_cannot_be_written_is_reported_and_what_is_in_force_too() {
    let desk = Desk::new();
    let folder = desk.path("folder");
    std::fs::create_dir(&folder).unwrap();
    let nowhere = desk.path("missing/plan.json");
    for output in [folder.as_str(), &nowhere, "/dev/full"] {
        desk.refused(
            &[
                &["knob", "plan", WISHES[0], "--device", "lo", "-o", output],
                &[
                    "knob", "export", "--as", "sysctl.d", WISHES[0], "--device", "lo", "-o", output,
                ],
            ],
            &["cannot write", output, "name another file with -o"],
        );
    }
    let file = desk.file("file", "");
    for below in [file.as_str(), "/dev/null/etc"] {
        desk.refused(
            &[&[
                "knob", "export", "--as", "sysctl.d", WISHES[0], "--device", "lo", "--below", below,
            ]],
            &[
                "cannot create directory",
                "; name another folder with --below",
            ],
        );
    }
    let apply = |output: &str| {
        desk.bench
            .run(&["knob", "apply", WISHES[0], "--device", "lo", "-o", output])
    };
    // What can be known beforehand keeps the change from being made.
    apply(&nowhere).with(2, &["is not a folder", "name another file with -o"]);
    assert_eq!(desk.bench.changed(), [""; 0]);
    apply("/dev/full").with(
        2,
        &[
            "the changes are in force; undo them with `rungwise knob undo`",
            "name another file with -o",
        ],
    );
    assert_eq!(desk.bench.changed().len(), 1);
    desk.bench.run(&["knob", "undo"]).with(0, &[]);
    assert_eq!(desk.bench.changed(), [""; 0]);
}

#[test]
fn a_switch_of_a_service_is_refused_by_plan_with_the_words_of_apply() {
    let bench = Bench::new();
    for (wish, words) in [
        ("cpu.pin_threads=on", "cpu.pin_threads=PID:each:LIST"),
        ("sock.reuseport=on", "start `rungwise serve udp` with it"),
    ] {
        let refused = |command: &[&str]| bench.run(command).with(4, &[words]).words;
        let planned = refused(&["knob", "plan", wish]);
        for command in [
            &["knob", "apply", wish][..],
            &["knob", "apply", "--dry-run", wish],
        ] {
            assert_eq!(refused(command), planned, "{command:?}");
        }
    }
    assert!(bench.journals().is_empty());
}
