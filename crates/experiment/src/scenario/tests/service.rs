//! The service of a scenario: how it shows that it is ready.

use super::*;
use crate::lab::{Blueprint, Means};
use rungwise_host::process::{Ready, Url};

fn means() -> Means {
    Means {
        built: None,
        rungwise: "rungwise".to_owned(),
        cpus: vec![0, 1],
        no_namespaces: None,
    }
}

fn ready(keys: &str) -> Result<Scenario, Problems> {
    parse(&with(
        "command = [\"./server\"]",
        &format!("command = [\"./server\"], {keys}"),
    ))
}

#[test]
fn each_sign_of_readiness_is_asked_for_where_the_lab_has_its_server() {
    let sign = |keys: &str| {
        let scenario = ready(keys).unwrap();
        Blueprint::resolve(&scenario, &means()).unwrap().ready
    };
    assert_eq!(sign("ready_line = \"up\""), Ready::Line("up".to_owned()));
    assert_eq!(
        sign("ready_tcp = \"{server}:81\""),
        Ready::Tcp(([10, 77, 0, 1], 81).into())
    );
    assert_eq!(
        sign("ready_http = \"http://{server}:81/health\""),
        Ready::Http(Url::parse("http://10.77.0.1:81/health").unwrap())
    );
    assert!(matches!(sign("ready_within = \"1s\""), Ready::Udp { .. }));
}

#[test]
fn two_signs_of_readiness_are_refused_by_name() {
    let message = ready("ready_line = \"up\", ready_http = \"http://{server}/\"").unwrap_err();
    let message = message.to_string();
    assert!(
        message.contains("'ready_line' and 'ready_http'") && message.contains("keep the one"),
        "{message}"
    );
}

#[test]
fn a_sign_that_cannot_be_asked_for_is_named_at_its_place() {
    for (keys, words) in [
        ("ready_tcp = \"{server}\"", "is not an address and port"),
        ("ready_tcp = \"{sever}:1\"", "did you mean"),
        ("ready_http = \"{server}:80\"", "begin with http://"),
        ("ready_http = \"https://{server}/\"", "ready_tcp"),
        ("ready_http = \"http://shop/\"", "not an IP address"),
    ] {
        let message = ready(keys).unwrap_err().to_string();
        let key = keys.split(' ').next().unwrap();
        // The value begins behind what comes before the key, the key, and ` = `.
        let column = MINIMAL.lines().nth(3).unwrap().find('}').unwrap() + 2 + key.len() + 3;
        let place = format!("test.toml:4:{column}: service.{key}: ");
        assert!(
            message.starts_with(&place) && message.contains(words),
            "{message}"
        );
    }
    for keys in [
        "ready_tcp = \"127.0.0.1:1\"",
        "ready_http = \"http://127.0.0.1/\"",
    ] {
        let running = with("command = [\"./server\"]", &format!("pid = 812, {keys}"));
        let message = problem(&running.replace("{server}", "127.0.0.1"));
        assert!(
            message.contains("for a service that is already running"),
            "{message}"
        );
    }
}

#[test]
fn a_unit_is_named_with_its_kind_and_alone() {
    for (service, words) in [
        ("unit = \"nginx\"", "for example nginx.service"),
        ("pid = 7, unit = \"nginx.service\"", "not both"),
        (
            "command = [\"./server\"], unit = \"nginx.service\"",
            "not both",
        ),
    ] {
        let text = with("command = [\"./server\"]", service);
        let problems = parse(&text).unwrap_err().to_string();
        assert!(problems.contains(words), "{problems}");
    }
    let text = with("command = [\"./server\"]", "unit = \"nginx.service\"");
    let scenario = parse(&text.replace("{server}", "127.0.0.1")).unwrap();
    let unit = Existing::Unit("nginx.service".to_owned());
    assert_eq!(scenario.service, Service::Running(unit));
}

/// The minimal file with a build of its server.
fn built(build: &str, program: &str) -> String {
    with(
        "command = [\"./server\"]",
        &format!("command = [\"{program}\"], build = {{ {build} }}"),
    )
}

#[test]
fn a_build_has_a_command_sources_and_a_time() {
    let text = built(
        r#"command = ["make", "-s"], sources = ["Makefile", "src"], within = "2m", install = "apt-get install make""#,
        "{built}/server",
    );
    let scenario = parse(&text).unwrap_or_else(|problems| panic!("{problems}"));
    let build = scenario.build().unwrap();
    assert_eq!(build.command, ["make", "-s"]);
    assert_eq!(build.sources, ["Makefile", "src"]);
    assert_eq!(build.within, Duration::from_mins(2));
    assert!(scenario.builds_program());
    let short = built(r#"command = ["make"], sources = ["Makefile"]"#, "java");
    let short = short.replace("\"java\"", "\"java\", \"-jar\", \"{built}/a.jar\"");
    let scenario = parse(&short).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(scenario.build().unwrap().within, Duration::from_mins(10));
    assert!(!scenario.builds_program());
}

#[test]
fn a_build_that_cannot_be_meant_is_refused_at_its_place() {
    let fine = r#"command = ["make"], sources = ["Makefile"]"#;
    for (build, program, words) in [
        (
            fine,
            "./server",
            "which no command or file of the scenario contains; for example command = [",
        ),
        (
            r#"command = [], sources = ["Makefile"]"#,
            "{built}/server",
            "service.build.command: the program is missing",
        ),
        (
            r#"command = ["make"], sources = []"#,
            "{built}/server",
            "service.build.sources: nothing would be built",
        ),
        (
            r#"command = ["make"], sources = ["../Makefile"]"#,
            "{built}/server",
            "not below the folder of the scenario",
        ),
        (
            r#"command = ["make"], sources = ["Makefile"], within = "2""#,
            "{built}/server",
            "the unit is missing",
        ),
    ] {
        let message = problem(&built(build, program));
        assert!(message.contains(words), "{message}");
    }
    let none = problem(&with("./server", "{built}/server"));
    assert!(
        none.contains("[service.build]") && none.contains("add it"),
        "{none}"
    );
    let running = built(fine, "./server").replace("command = [\"./server\"]", "pid = 812");
    let running = problem(&running.replace("{server}", "127.0.0.1"));
    assert!(
        running.contains("service.build: a service that already runs is not built"),
        "{running}"
    );
}

#[test]
fn other_requests_are_measured_and_never_kept() {
    let text = with(
        "kind = \"udp\", target = \"{server}:9000\"",
        "kind = \"http\", url = \"http://{server}/\", body = \"text:small\"",
    );
    let rung = |keys: &str| {
        format!(
            "{text}[[rungs]]\nid = \"large\"\n{keys}\nworkload_after = {{ body = \"text:large\" }}\n"
        )
    };
    let scenario = parse(&rung("branch = true")).unwrap_or_else(|problems| panic!("{problems}"));
    let step = &scenario.rungs[1];
    assert!(step.set.is_empty() && step.workload.is_none());
    let Ok(Parameters::Http(changed)) = step.workload_after.applied(&scenario.workload) else {
        panic!("it is still HTTP");
    };
    assert_eq!(changed.body.as_deref(), Some("text:large"));
    let kept = problem(&rung(""));
    assert!(
        kept.contains("rungs[1].workload_after: requests are no setting that could be kept"),
        "{kept}"
    );
    let unknown =
        problem(&rung("branch = true").replace("body = \"text:large", "url = \"text:large"));
    assert!(
        unknown.contains("rungs[1].workload_after.url: unknown key"),
        "{unknown}"
    );
    let whole = problem(&rung("branch = true").replace("text:large", "text:${csv:none}"));
    assert!(whole.contains("rungs[1].workload_after"), "{whole}");
}
