//! The service of a scenario: how it shows that it is ready.

use super::*;
use crate::lab::{Blueprint, Means};
use rungwise_host::process::{Ready, Url};

fn means() -> Means {
    Means {
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
        Blueprint::of(&scenario, &means()).unwrap().ready
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
