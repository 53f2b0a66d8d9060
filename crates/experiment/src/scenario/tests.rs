//! The file, read as people write it: right, wrong, and mutilated.

use proptest::prelude::*;
use rungwise_host::recorded::Recorded;

use super::*;
use crate::design::{Control, Guard, Objective, Part};
use crate::stage::Side;
use rungwise_load::udp;
use rungwise_load::udp::XdpMode;
use rungwise_load::values::XdpPlace;

mod command;
mod files;
mod grid;
mod java;
mod service;

const MINIMAL: &str = r#"schema = 1
name = "mine"
title = "my server"
service = { command = ["./server"] }
workload = { kind = "udp", target = "{server}:9000" }
[[rungs]]
id = "net.gro"
set = { "net.gro" = "off" }
"#;

fn udp_echo() -> Scenario {
    parse(builtin("udp-echo").unwrap()).unwrap()
}

fn parse(text: &str) -> Result<Scenario, Problems> {
    Scenario::parse(text, "test.toml")
}

/// The one problem of `text`, as it is printed.
#[track_caller]
fn problem(text: &str) -> String {
    let problems = parse(text).unwrap_err();
    assert_eq!(problems.list.len(), 1, "{problems}");
    problems.to_string()
}

/// The minimal file with the first occurrence of `from` replaced.
#[track_caller]
fn with(from: &str, to: &str) -> String {
    assert!(MINIMAL.contains(from), "{from}");
    MINIMAL.replacen(from, to, 1)
}

/// A machine with two CPUs and nothing to set.
fn machine() -> Recorded {
    Recorded::new("this host", 0).file("/sys/devices/system/cpu/online", "0-1\n")
}

fn places() -> Places {
    Places {
        server: "10.1.0.1".to_owned(),
        client: "10.1.0.2".to_owned(),
        device: Some("rw-server".to_owned()),
        cpus: 2,
        rungwise: "/usr/bin/rungwise".to_owned(),
        scratch: "/tmp/scratch".to_owned(),
        built: Some("/tmp/built".to_owned()),
    }
}

fn udp(scenario: &Scenario) -> &udp::Parameters {
    match &scenario.workload {
        Parameters::Udp(udp) => udp,
        _ => panic!("not datagrams"),
    }
}

#[test]
fn every_builtin_parses() {
    for name in builtins() {
        let scenario =
            parse(builtin(name).unwrap()).unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(scenario.name, name);
    }
    assert_eq!(builtin("no-such"), None);
}

#[test]
fn every_builtin_turns_knobs_that_exist() {
    for name in builtins() {
        let scenario = parse(builtin(name).unwrap()).unwrap();
        assert_eq!(scenario.validate(&machine()), Ok(()), "{name}");
    }
}

#[test]
fn the_udp_ladder_is_makitas_in_his_order() {
    let scenario = udp_echo();
    let ids: Vec<&str> = scenario.rungs.iter().map(|rung| rung.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "net.affinity_hint",
            "net.irq_affinity",
            "net.rps_cpus",
            "sock.reuseport",
            "sock.reuseport_bpf",
            "cpu.pin_threads",
            "net.xps_cpus",
            "net.gro",
            "net.iptables_unload",
            "net.rp_filter",
            "sec.auditd",
            "sock.pmtudisc",
            "bios.smt",
            "sock.recvmmsg",
            "sock.io_uring",
            "sock.af_xdp",
            "sock.udp_segment",
            "net.xdp_echo",
        ]
    );
    let observed: Vec<&str> = scenario
        .rungs
        .iter()
        .filter(|rung| matches!(rung.part, Part::Observe { .. }))
        .map(|rung| rung.id.as_str())
        .collect();
    assert_eq!(
        observed,
        [
            "net.affinity_hint",
            "net.irq_affinity",
            "sec.auditd",
            "bios.smt"
        ]
    );
    let first = scenario.start.reference.unwrap();
    assert!((first.rate_per_s - 270_000.0).abs() < 1e-9);
    // The report says that fewer CPUs cannot show the factors of so many.
    let theirs = scenario
        .rungs
        .iter()
        .filter_map(|rung| rung.reference.as_ref());
    for reference in theirs.chain([&first]) {
        assert!(reference.source.contains("20 cores"), "{reference:?}");
    }
    // 9 rungs judged alone, 3 bundles followed by a check of their one member or by the rung alone, 1 branch, and the ladder as
    // a whole.
    assert_eq!(scenario.judging.comparisons, 9 + 3 * 2 + 1 + 1);
}

#[test]
fn a_command_grows_by_the_arguments_of_its_switches() {
    let Service::Started(started) = udp_echo().service else {
        panic!("it has a command");
    };
    let setting = |knob: &str| Setting {
        knob: knob.to_owned(),
        side: Side::Server,
    };
    let settings = BTreeMap::from([
        (setting("net.gro"), "off".to_owned()),
        (setting("sock.io_uring"), OFF.to_owned()),
        (setting("sock.recvmmsg"), "32".to_owned()),
        (setting("net.xdp_echo"), "generic".to_owned()),
    ]);
    let command = started.command_for(&settings, &places()).unwrap();
    assert_eq!(
        command.join(" "),
        "/usr/bin/rungwise serve udp --listen 10.1.0.1:9000 --workers 2 --xdp-echo rw-server --io batch --batch 32"
    );
}

#[test]
fn a_minimal_file_has_sensible_defaults() {
    let scenario = parse(MINIMAL).unwrap();
    assert_eq!(
        scenario.topology,
        Topology::Namespaces {
            queues: Count::Cpus
        }
    );
    assert_eq!(scenario.judging.looks, [8, 16, 24]);
    assert_eq!(scenario.judging.objective, Objective::rate());
    assert_eq!(scenario.measure, Duration::from_millis(300));
    assert_eq!(udp(&scenario).schedule.threads.on(4), 4);
    assert_eq!(scenario.rungs[0].title, "net.gro");
    assert_eq!(scenario.rungs[0].set[0].0.side, Side::Server);
}

#[test]
fn a_design_says_whether_its_rungs_restart_the_service() {
    let restarts = |text: &str| {
        let scenario = parse(text).unwrap();
        scenario.design("here".to_owned(), None).restarts
    };
    assert!(restarts(builtin("udp-echo").unwrap()));
    assert!(restarts(builtin("udp-echo-auto").unwrap()));
    assert!(!restarts(MINIMAL));
}

#[test]
fn a_running_service_lives_on_the_host() {
    let scenario =
        parse(&with("command = [\"./server\"]", "pid = 812").replace("{server}", "127.0.0.1"))
            .unwrap();
    assert_eq!(scenario.service, Service::Running(Existing::Process(812)));
    assert_eq!(scenario.topology, Topology::Host { device: None });
}

#[test]
fn guards_and_objectives_are_read() {
    let text = format!(
        "{MINIMAL}[objective]\nminimise = \"p99\"\nguards = [\"loss <= 1%\", \"p99<50ms\", \"errors == 0\"]\n"
    );
    let judging = parse(&text).unwrap().judging;
    assert_eq!(judging.objective, Objective::minimise("p99"));
    assert_eq!(
        judging.guards,
        [
            Guard::Loss { at_most: 0.01 },
            Guard::P99 {
                at_most_us: 50_000.0
            },
            Guard::Errors { at_most: 0.0 },
        ]
    );
}

#[test]
fn a_misspelt_key_is_named_at_its_place_with_the_nearest_one() {
    let text = format!("{MINIMAL}[experiment]\nwarmpu = \"1s\"\n");
    assert_eq!(
        problem(&text),
        "test.toml:10:1: experiment.warmpu: unknown key; did you mean 'warmup'?"
    );
    let far = problem(&with("title = \"my server\"", "title = \"x\"\nzzz = 1"));
    assert!(
        far.starts_with("test.toml:4:1: zzz: unknown key; the file accepts auto, baseline, "),
        "{far}"
    );
}

#[test]
fn a_bad_unit_is_named_at_its_value() {
    let text = format!("{MINIMAL}[experiment]\nmeasure = \"300\"\n");
    assert_eq!(
        problem(&text),
        "test.toml:10:11: experiment.measure: cannot read '300' as a duration: the unit is missing; write it as 250ms, 2s or 10m"
    );
}

#[test]
fn a_missing_key_says_what_it_is_for() {
    let message = problem(&with("title = \"my server\"\n", ""));
    assert_eq!(
        message,
        "test.toml:1:1: the key 'title' is missing (one line about what is measured)"
    );
}

#[test]
fn each_workload_is_a_kind_of_a_scenario() {
    let message = problem(&with("kind = \"udp\"", "kind = \"carrier-pigeon\""));
    assert_eq!(
        message,
        "test.toml:5:21: workload.kind: 'carrier-pigeon' is not command, connections, dubbo, http, memcached, redis, tcp or udp"
    );
    // Each of them has a table of its own: a key of none is noticed.
    for kind in WORKLOADS {
        let text = format!("kind = \"{}\", pigeons = 1", kind.id);
        let message = parse(&with("kind = \"udp\"", &text))
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("workload.pigeons: unknown key"),
            "{message}"
        );
    }
}

#[test]
fn a_wrong_type_or_word_says_what_was_expected() {
    let message = problem(&with("kind = \"udp\"", "kind = \"upd\""));
    assert!(
        message.ends_with(
            "workload.kind: 'upd' is not command, connections, dubbo, http, memcached, redis, tcp or udp; did you mean 'udp'?"
        ),
        "{message}"
    );
    let message = problem(&with("name = \"mine\"", "name = 5"));
    assert_eq!(
        message,
        "test.toml:2:8: name: expected a string, found an integer"
    );
    let message = problem(&with(
        "set = { \"net.gro\" = \"off\" }",
        "set = { net.gro = \"off\" }",
    ));
    assert!(
        message.contains("quote an id that contains dots"),
        "{message}"
    );
    let message = problem(&with("target = ", "sockets = -1, target = "));
    assert_eq!(
        message,
        "test.toml:5:38: workload.sockets: expected a number from 0 to 4294967295"
    );
}

#[test]
fn what_somebody_may_expect_is_refused_with_what_to_write_instead() {
    let message = problem(&with("id = \"net.gro\"", "id = \"net.gro\"\ngrid = [1, 2]"));
    assert!(message.contains("one or two [[rungs.axes]]"), "{message}");
}

/// The test scenario, whose rungs are chosen by the rules.
fn auto(rest: &str) -> String {
    let listed = "[[rungs]]\nid = \"net.gro\"\nset = { \"net.gro\" = \"off\" }\n";
    with(listed, rest).replace("schema = 1", "schema = 1\nrungs = \"auto\"")
}

#[test]
fn rungs_may_be_left_to_the_rules() {
    let scenario = parse(&auto("")).unwrap();
    let found = scenario.auto.as_ref().unwrap();
    assert!(scenario.rungs.is_empty());
    assert_eq!((found.max_rungs, found.disruptive), (8, false));
    // Three bundles of three, each with the check of its two partners, and the overall comparison.
    assert_eq!(scenario.judging.comparisons, 8 + 9 + 1);
    let scenario = parse(&auto("[auto]\nmax_rungs = 2\nlook = \"1s\"\n")).unwrap();
    let found = scenario.auto.unwrap();
    assert_eq!((found.max_rungs, found.capture_s), (2, 1.0));
}

#[test]
fn a_list_that_is_no_list_is_named() {
    let message = problem(&auto("").replace("\"auto\"", "\"aoto\""));
    assert!(message.contains("did you mean 'auto'"), "{message}");
    let message = problem(&with("[[rungs]]", "[auto]\nmax_rungs = 3\n\n[[rungs]]"));
    assert!(message.contains("rungs = \"auto\""), "{message}");
    let message = problem(&auto("[auto]\nmax_rungs = 0\n"));
    assert!(message.contains("auto.max_rungs"), "{message}");
}

#[test]
fn broken_toml_is_named_at_its_place() {
    let message = parse("schema = 1\nname = ").unwrap_err().to_string();
    assert!(message.starts_with("test.toml:2:"), "{message}");
}

#[test]
fn all_problems_are_reported_at_once_in_the_order_of_the_file() {
    let problems = parse(
        r#"schema = 2
name = "my server"
title = "t"
servce = 1
[service]
command = ["{sever}"]
switches = { "sock.reuseport" = { off = ["--no"] } }
[workload]
kind = "udp"
target = "server"
size = "8B"
depth = 0
[experiment]
looks = [8, 8, 2]
alpha = "0%"
min_effect = 2
[[rungs]]
id = "a"
set = { "sock.reuseport" = "yes" }
bundle_with = ["b"]
[[rungs]]
id = "a"
observe = "x"
limit = true
[[rungs]]
id = "b"
bundle_with = ["c", "b"]
"#,
    )
    .unwrap_err();
    let lines: Vec<usize> = problems.list.iter().map(|problem| problem.line).collect();
    assert_eq!(
        lines,
        [
            1, 2, 4, 6, 7, 10, 11, 12, 14, 14, 15, 16, 19, 20, 22, 23, 25, 27, 27
        ],
        "{problems}"
    );
}

#[test]
fn impossible_services_and_topologies_are_refused() {
    for (from, to, words) in [
        (
            "command = [\"./server\"]",
            "command = []",
            "the program is missing",
        ),
        (
            "command = [\"./server\"]",
            "",
            "set 'command' to start the service",
        ),
        (
            "command = [\"./server\"]",
            "command = [\"s\"], pid = 812",
            "not both",
        ),
        (
            "command = [\"./server\"]",
            "pid = 812, switches = { x = { on = [] } }",
            "cannot be restarted",
        ),
        (
            "[[rungs]]",
            "[topology]\nkind = \"host\"\nqueues = 2\n[[rungs]]",
            "queues need kind",
        ),
        (
            "[[rungs]]",
            "[topology]\nkind = \"namespaces\"\nqueues = 5000\n[[rungs]]",
            "from 1 to 4096",
        ),
        (
            "target = \"{server}:9000\"",
            "target = \"{server}\"",
            "not an address and port",
        ),
        (
            "target = ",
            "dns = \"q\", size = \"20B\", target = ",
            "remove 'size'",
        ),
        ("target = ", "rate = \"0/s\", target = ", "above 0"),
        (
            "set = { \"net.gro\" = \"off\" }",
            "",
            "the rung changes nothing",
        ),
    ] {
        let message = problem(&with(from, to));
        assert!(message.contains(words), "{words}: {message}");
    }
    let moved =
        with("command = [\"./server\"]", "pid = 812") + "[topology]\nkind = \"namespaces\"\n";
    assert!(problem(&moved).contains("cannot be moved into a namespace"));
    let switched = with("command = [\"./server\"]", "pid = 812")
        .replace("\"net.gro\" =", "\"sock.reuseport\" =");
    assert!(problem(&switched).contains("cannot be restarted"));
}

#[test]
fn a_generator_without_sockets_sends_no_bursts() {
    let place = |word: &str| with("target = ", &format!("af_xdp = \"{word}\", target = "));
    let of = |text: &str| udp(&parse(text).unwrap()).af_xdp.clone();
    assert_eq!(of(MINIMAL), None);
    let own = |mode| Some(XdpPlace::Own(mode));
    assert_eq!(of(&place("native")), own(XdpMode::Native));
    assert_eq!(of(&place("generic")), own(XdpMode::Generic));
    assert!(problem(&place("eth0:fast")).contains("native"));
    let bursts = place("native") + "workload = { burst = 2, depth = 4 }\n";
    assert!(problem(&bursts).contains("single frames"));
    let bursts = with("target = ", "af_xdp = \"native\", burst = 2, target = ");
    assert!(problem(&bursts).contains("single frames"));
}

#[test]
fn a_request_from_a_file_is_outstanding_alone() {
    let opaque = with("target = ", "payload = \"request.bin\", target = ");
    let workload = udp(&parse(&opaque).unwrap()).clone();
    assert_eq!(workload.payload.as_deref(), Some("request.bin"));
    let deep = opaque + "workload = { depth = 4 }\n";
    assert!(problem(&deep).contains("rungs[0].workload.depth: the depth is 4"));
    let deep = with("target = ", "payload = \"f\", depth = 2, target = ");
    assert!(problem(&deep).contains("use depth 1 and more sockets"));
}

#[test]
fn traffic_that_the_generator_refuses_is_named_before_anything_starts() {
    let shallow = with("target = ", "depth = 8, target = ") + "workload = { burst = 64 }\n";
    let message = problem(&shallow);
    assert!(
        message.starts_with(
            "test.toml:9:22: rungs[0].workload.burst: the depth 8 is below the burst 64"
        ),
        "{message}"
    );
    // A rung may bring its own depth, and one without bursts.
    for fine in ["{ burst = 64, depth = 64 }", "{ burst = 1 }"] {
        parse(&format!("{MINIMAL}workload = {fine}\n")).unwrap();
    }
    let dns = with("target = ", "dns = \"q\", depth = 8192, target = ");
    assert!(problem(&dns).contains("the 16-bit id of DNS allows 4096"));
    let big = with(
        "target = ",
        "size = \"2KiB\", depth = 64, burst = 64, target = ",
    );
    assert!(problem(&big).contains("does not fit"));
    let many = with("target = ", "burst = 65, target = ");
    assert!(problem(&many).contains("workload.burst: the burst is 65; it must be 2 to 64"));
}

#[test]
fn a_missing_program_is_named_at_its_place() {
    let found = |text: &str| parse(text).unwrap().find_program(&places());
    let message = found(MINIMAL).unwrap_err().to_string();
    assert!(
        message.starts_with(
            "test.toml:4:24: service.command: cannot start ./server: there is no such program"
        ),
        "{message}"
    );
    assert_eq!(found(&with("./server", "sh")), Ok(()));
    assert_eq!(found(&with("./server", "/bin/sh")), Ok(()));
    // A folder is no program, and a file that may not be executed neither.
    assert!(found(&with("./server", "/bin")).is_err());
    assert!(found(&with("./server", "/etc/passwd")).is_err());
    let running = with("command = [\"./server\"]", "pid = 1");
    assert_eq!(found(&running.replace("{server}", "127.0.0.1")), Ok(()));
}

#[test]
fn a_bundle_names_earlier_rungs_that_can_be_kept() {
    let two = |extra: &str| {
        format!(
            "{MINIMAL}{extra}[[rungs]]\nid = \"b\"\nset = {{ b = \"1\" }}\nbundle_with = [\"net.gor\"]\n"
        )
    };
    assert!(
        problem(&two("")).contains("no rung 'net.gor' before this one; did you mean 'net.gro'?")
    );
    let limit = two("limit = true\n").replace("net.gor", "net.gro");
    assert!(problem(&limit).contains("is never kept"));
}

#[test]
fn knobs_are_checked_against_those_that_exist() {
    assert_eq!(parse(MINIMAL).unwrap().validate(&machine()), Ok(()));
    let check = |text: String| {
        parse(&text)
            .unwrap()
            .validate(&machine())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        check(with("\"net.gro\" = \"off\"", "\"net.gor\" = \"off\"")),
        "test.toml:8:9: rungs[0].set.\"net.gor\": there is no knob 'net.gor'; did you mean 'net.gro'?; declare switches of your service in [service.switches]"
    );
    let value = check(with("= \"off\"", "= \"of\""));
    assert!(
        value.starts_with("test.toml:8:21: ")
            && value.ends_with("'of' is not on or off; did you mean 'off'?"),
        "{value}"
    );
    assert!(check(with("\"net.gro\" =", "\"sock.reuseport\" =")).contains("declare its arguments"));
    let declared = with(
        "command = [\"./server\"]",
        "command = [\"s\"], switches = { \"net.gro\" = { off = [], on = [] } }",
    );
    assert!(check(declared).contains("remove it from [service.switches]"));
    for (knob, why) in [
        ("sec.auditd", "owner's audit trail"),
        ("bios.smt", "assigns CPUs"),
    ] {
        let never = check(with("\"net.gro\" =", &format!("\"{knob}\" =")));
        for word in ["never changed in a run", why, "'observe'"] {
            assert!(never.contains(word), "{never}");
        }
    }
}

#[test]
fn a_number_for_a_quantity_names_the_unit() {
    for (line, wanted) in [
        ("measure = 50", "; include the unit: \"300ms\""),
        ("alpha = 0.01", "; include the unit: \"1%\""),
    ] {
        let said = problem(&format!("{MINIMAL}[experiment]\n{line}\n"));
        assert!(said.ends_with(wanted), "{said}");
    }
    let rate = with("kind = \"udp\"", "kind = \"udp\", rate = 500");
    assert!(problem(&rate).ends_with("\"20k/s\""), "{}", problem(&rate));
}

#[test]
fn a_certain_error_is_no_level() {
    let said = problem(&format!("{MINIMAL}[experiment]\nalpha = \"100%\"\n"));
    assert!(
        said.starts_with("test.toml:10:9: experiment.alpha: ") && said.contains("choose less"),
        "{said}"
    );
}

#[test]
fn a_guard_is_refused_at_its_own_place() {
    for (guard, why) in [
        ("p98 < 1ms", "did you mean 'p99'?"),
        ("p99 < 50", "the unit is missing"),
        ("p99 < 0ms", "can never hold"),
        ("loss <= 100%", "has no effect"),
    ] {
        let two = format!("guards = [\n  \"loss <= 1%\",\n  \"{guard}\",\n]\n");
        let said = problem(&format!("{MINIMAL}[objective]\n{two}"));
        assert!(
            said.starts_with("test.toml:12:3: objective.guards[1]: ") && said.contains(why),
            "{said}"
        );
    }
}

#[test]
fn a_latency_guard_that_the_timeout_hides_is_refused_in_a_closed_loop() {
    let text = |guard: &str, rate: &str| {
        with("9000\"", &format!("9000\", timeout = \"50ms\"{rate}"))
            + &format!("[objective]\nguards = [\"p99 < {guard}\"]\n")
    };
    let said = problem(&text("50ms", ""));
    assert!(
        said.contains("objective.guards[0]: ") && said.contains("timeout of 50 ms"),
        "{said}"
    );
    assert!(parse(&text("49ms", "")).is_ok());
    // A request that waits for its turn counts from the time it was due.
    assert!(parse(&text("50ms", ", rate = \"1k/s\"")).is_ok());
}

#[test]
fn a_misspelt_switch_names_the_nearest() {
    let check = |text: String| {
        let scenario = parse(&text).unwrap_or_else(|problems| panic!("{problems}"));
        scenario
            .validate(&machine())
            .map_err(|problems| problems.to_string())
    };
    let switches = |id: &str| {
        let switch = format!("command = [\"s\"], switches = {{ \"{id}\" = {{ on = [\"-r\"] }} }}");
        with("command = [\"./server\"]", &switch)
    };
    let said = check(switches("sock.reuesport")).unwrap_err();
    assert!(
        said.starts_with("test.toml:4:43: ") && said.contains("did you mean 'sock.reuseport'?"),
        "{said}"
    );
    assert_eq!(check(switches("my.cache")), Ok(()));
    let set = switches("my.cache").replace("\"net.gro\" =", "\"my.cahce\" =");
    let said = check(set).unwrap_err();
    assert!(said.contains("did you mean 'my.cache'?"), "{said}");
}

#[test]
fn a_value_that_its_knob_cannot_have_is_refused_at_its_place() {
    let check = |set: &str, on: &str| {
        let text = with("\"net.gro\" = \"off\"", set);
        let text = text.replace("workload =", &format!("{on}workload ="));
        let problems = parse(&text).unwrap().validate(&machine()).unwrap_err();
        assert_eq!(problems.list.len(), 1, "{problems}");
        problems.to_string()
    };
    for (set, place, words) in [
        (
            "\"net.rps_cpus\" = \"banana\"",
            "8:26",
            [
                "'banana' is neither a CPU number",
                "off, all, or a CPU list",
            ],
        ),
        (
            "\"net.rps_cpus\" = \"0-99\"",
            "8:26",
            [
                "CPU 2 is not online here, only 0-1",
                "off, all, or a CPU list",
            ],
        ),
        (
            "\"net.rp_filter\" = \"9\"",
            "8:27",
            ["not between 0 and 2", "0 (off), 1 (strict) or 2 (loose)"],
        ),
        (
            "\"cpu.governor\" = \"performance\"",
            "8:9",
            ["it does not exist there", "use 'observe'"],
        ),
        (
            "\"net.ring\" = \"max\"",
            "8:9",
            ["veth devices have no hardware", "kind = \"host\""],
        ),
    ] {
        let said = check(set, "");
        let start = format!("test.toml:{place}: rungs[0].set.");
        assert!(said.starts_with(&start), "{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
    let host = "topology = { kind = \"host\", device = \"eth7\" }\n";
    let said = check("\"net.gro\" = \"off\"", host);
    assert!(said.contains("no device eth7"), "{said}");
}

#[test]
fn ids_of_the_report_itself_are_refused() {
    for id in ["aa", "overall", "start", "a+b", "a@0"] {
        let message = problem(&with("id = \"net.gro\"", &format!("id = \"{id}\"")));
        assert!(message.contains("is reserved"), "{message}");
    }
}

#[test]
fn the_schema_accepts_what_the_parser_accepts() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    for name in builtins() {
        let value: toml::Table = builtin(name).unwrap().parse().unwrap();
        let json = serde_json::to_value(value).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&json)
            .map(|error| error.to_string())
            .collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
}

#[test]
fn every_example_of_the_reference_page_parses() {
    let page = include_str!("../../../../docs/scenario.md");
    let blocks: Vec<&str> = page
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert!(blocks.len() >= 2);
    for block in blocks {
        let scenario = Scenario::parse(block, "docs/scenario.md")
            .unwrap_or_else(|problems| panic!("{problems}\n{block}"));
        let budget = machine()
            .file("/proc/sys/net/core/netdev_budget", "300")
            .file("/proc/sys/net/core/netdev_budget_usecs", "8000");
        assert_eq!(scenario.validate(&budget), Ok(()), "{block}");
    }
}

#[test]
fn the_reference_page_names_every_key() {
    fn keys(schema: &serde_json::Value, found: &mut Vec<String>) {
        if let Some(map) = schema.as_object() {
            if let Some(properties) = map.get("properties").and_then(|value| value.as_object()) {
                found.extend(properties.keys().cloned());
            }
            map.values().for_each(|value| keys(value, found));
        }
    }
    let page = include_str!("../../../../docs/scenario.md");
    let mut found = Vec::new();
    keys(&schema(), &mut found);
    assert!(found.len() > 40);
    let missing: Vec<&String> = found
        .iter()
        .filter(|key| !page.contains(&format!("`{key}`")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*") {
        let _ = parse(&text);
    }

    #[test]
    fn any_toml_like_text_is_read_or_refused(text in "[a-z\\[\\]{}=\", .\n0-9\\\\é]{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn a_mutilated_scenario_is_read_or_refused_at_a_place_inside(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0..40_usize, "\\PC{0,6}"), 1..4),
    ) {
        let mut chars: Vec<char> = builtin("udp-echo").unwrap().chars().collect();
        for (at, length, put) in cuts {
            let start = at.index(chars.len());
            let end = (start + length).min(chars.len());
            chars.splice(start..end, put.chars());
        }
        let text: String = chars.into_iter().collect();
        if let Err(problems) = parse(&text) {
            prop_assert!(!problems.list.is_empty());
            for problem in &problems.list {
                prop_assert!(problem.line >= 1 && problem.line <= text.matches('\n').count() + 1);
                prop_assert!(problem.column >= 1);
            }
        }
    }
}
