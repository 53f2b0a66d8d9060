//! Test plans of JMeter, against a small server that keeps each request: who sends what, how often, when, and on which connection.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rungwise_load::Error;
use rungwise_load::engine::{Completed, Stop};

use crate::requests::{Seen, Server, load, run};

const SHOP: &str = include_str!("shop.jmx");
const USERS: (&str, &str) = ("users.csv", "name,key\nann,k 1\nbob,k&2\ncy,k3\n");

const UNTIL_THE_END: Stop = Stop::Finished { at_most: None };

fn ok(_: &Seen) -> String {
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_owned()
}

/// Runs the plan `text` with these words; to its end unless `stop` says otherwise.
fn planned(server: &Server, text: &str, words: &[&str], stop: Stop) -> Result<Completed, Error> {
    let words = [&["--jmx", "p.jmx", "--threads", "2"], words].concat();
    let load = load(server, ("/", &words), &[("p.jmx", text), USERS])?;
    assert!(load.has_own_pace());
    run(&*load, stop, 1)
}

/// The shop's plan for the server's own port.
fn shop(server: &Server, words: &[&str]) -> Completed {
    let port = format!("port={}", server.address.port());
    let words = [words, &["-J", &port]].concat();
    planned(server, SHOP, &words, UNTIL_THE_END).unwrap()
}

/// How often each path was asked for, without its query.
fn by_path(seen: &[Seen]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for one in seen {
        let path = one.path().split('?').next().unwrap();
        *counts.entry(path.to_owned()).or_default() += 1;
    }
    counts
}

#[test]
fn a_plan_sends_as_often_as_it_says_and_ends() {
    let server = Server::start(ok);
    let completed = shop(&server, &["-Jloops=4", "-Jversion=v2"]);
    let m = &completed.measurement;
    let seen = server.seen();
    // Three buyers: one login each, four passes with two items; two watchers with five.
    assert_eq!((m.sent, m.received), (3 + 24 + 10, 37), "{:?}", m.errors);
    let counts = by_path(&seen);
    assert_eq!(counts["/api/v2/login"], 3);
    assert_eq!(counts["/api/v2/items"], 24);
    let status = |number| counts[&format!("/status/{number}")];
    assert!((1..=10).all(|number| status(number) == 1), "{counts:?}");
    let requests = &m.http.as_ref().unwrap().requests;
    let named: Vec<(&str, u64)> = (requests.iter())
        .map(|one| (one.name.as_str(), one.sent))
        .collect();
    assert_eq!(named, [("login", 3), ("item", 24), ("status", 10)]);
}

#[test]
fn each_user_has_its_connection_its_counters_and_its_rows() {
    let server = Server::start(ok);
    shop(&server, &[]);
    let seen = server.seen();
    let logins: Vec<&Seen> = seen
        .iter()
        .filter(|one| one.path().ends_with("login"))
        .collect();
    let mut numbers = BTreeSet::new();
    for login in &logins {
        assert_eq!(login.header("Content-Type"), Some("application/json"));
        assert!(numbers.insert(login.header("X-Client").unwrap()));
        let own: Vec<&Seen> = (seen.iter())
            .filter(|one| one.connection == login.connection)
            .collect();
        assert_eq!(own.len(), 9, "one connection for all of a buyer");
        assert_eq!(own[0].path(), login.path());
        for (at, one) in own[1..].iter().enumerate() {
            assert!(
                one.path().ends_with(&format!("&n={}", at + 1)),
                "{}",
                one.path()
            );
        }
        // A row for each pass; the first one is that of the login.
        let key = |one: &Seen| one.path().split(['=', '&']).nth(1).unwrap().to_owned();
        let keys: Vec<String> = own[1..].iter().map(|one| key(one)).collect();
        assert!(keys.chunks(2).all(|pass| pass[0] == pass[1]), "{keys:?}");
        let name = [("ann", "k+1"), ("bob", "k%262"), ("cy", "k3")];
        let name = name.iter().find(|(_, key)| *key == keys[0]).unwrap().0;
        assert_eq!(login.body, format!("{{\"user\": \"{name}\"}}"));
    }
    let expected = ["shop 1", "shop 2", "shop 3"];
    assert_eq!(numbers, expected.into_iter().collect());
    // Twelve passes took each of three rows four times.
    let keys = seen
        .iter()
        .filter_map(|one| one.path().split("key=").nth(1));
    let mut counts = BTreeMap::new();
    for key in keys {
        *counts.entry(key.split('&').next().unwrap()).or_insert(0) += 1;
    }
    assert_eq!(
        counts.into_iter().collect::<Vec<_>>(),
        [("k%262", 8), ("k+1", 8), ("k3", 8)]
    );
    // Without keep-alive each request has a connection of its own.
    let watchers = seen.iter().filter(|one| one.path().starts_with("/status"));
    let connections: BTreeSet<usize> = watchers.clone().map(|one| one.connection).collect();
    assert_eq!(connections.len(), 10);
    assert!(
        watchers
            .into_iter()
            .all(|one| one.header("Connection") == Some("close"))
    );
}

#[test]
fn users_keep_cookies_where_a_manager_applies_to_them() {
    let server = Server::start(|seen| {
        format!(
            "HTTP/1.1 200 OK\r\nSet-Cookie: id={}; Path=/\r\nContent-Length: 2\r\n\r\nok",
            seen.connection
        )
    });
    shop(&server, &[]);
    for one in server.seen() {
        let cookie = format!("id={}", one.connection);
        let expected = one.path().contains("/items").then_some(&*cookie);
        assert_eq!(one.header("Cookie"), expected, "{one:?}");
    }
}

/// A plan of one thread group: its properties, and what lies below.
fn small(group: &str, below: &str) -> String {
    format!(
        r#"<jmeterTestPlan version="1.2"><hashTree><TestPlan testname="t"/><hashTree>
        <ConfigTestElement guiclass="HttpDefaultsGui"><stringProp name="HTTPSampler.domain">h.example</stringProp></ConfigTestElement><hashTree/>
        <ThreadGroup testname="g">{group}</ThreadGroup><hashTree>{below}</hashTree></hashTree></hashTree></jmeterTestPlan>"#
    )
}

fn group(users: u32, ramp: &str, loops: i32, more: &str) -> String {
    format!(
        r#"<intProp name="ThreadGroup.num_threads">{users}</intProp><stringProp name="ThreadGroup.ramp_time">{ramp}</stringProp>
        <elementProp name="ThreadGroup.main_controller"><intProp name="LoopController.loops">{loops}</intProp></elementProp>{more}"#
    )
}

fn get(path: &str) -> String {
    format!(
        r#"<HTTPSamplerProxy testname="{path}"><stringProp name="HTTPSampler.path">{path}</stringProp></HTTPSamplerProxy><hashTree/>"#
    )
}

const HOST: [&str; 2] = ["--header", "Host: h.example"];

#[test]
fn users_begin_over_the_ramp_and_connect_only_then() {
    let server = Server::start(ok);
    let plan = small(&group(4, "0.4", 1, ""), &get("/${__threadNum}"));
    let began = Instant::now();
    let completed = planned(&server, &plan, &HOST, UNTIL_THE_END).unwrap();
    assert_eq!(completed.measurement.received, 4);
    let seen = server.seen();
    let paths: Vec<&str> = seen.iter().map(Seen::path).collect();
    // Each begins a tenth of a second after the one before.
    assert_eq!(paths, ["/1", "/2", "/3", "/4"]);
    assert!(began.elapsed() >= Duration::from_millis(300));
    for pair in seen.windows(2) {
        assert!(
            pair[1].at - pair[0].at >= Duration::from_millis(50),
            "{seen:?}"
        );
        assert!(pair[1].accepted >= pair[0].at, "{seen:?}");
    }
}

#[test]
fn a_plan_without_end_ends_with_its_duration() {
    let server = Server::start(ok);
    let scheduler = r#"<boolProp name="ThreadGroup.scheduler">true</boolProp><stringProp name="ThreadGroup.duration">1</stringProp>"#;
    let timer = r#"<ConstantTimer><stringProp name="ConstantTimer.delay">200</stringProp></ConstantTimer><hashTree/>"#;
    let plan = small(
        &group(2, "0", -1, scheduler),
        &format!("{timer}{}", get("/a")),
    );
    let completed = planned(&server, &plan, &HOST, UNTIL_THE_END).unwrap();
    let m = &completed.measurement;
    // Before each request a pause: at 0.2, 0.4, 0.6 and 0.8 s, and none at 1 s.
    assert_eq!((m.sent, m.received), (8, 8), "{:?}", m.errors);
    assert!(m.window_s < 1.0, "{}", m.window_s);
}

#[test]
fn a_time_or_a_count_cuts_a_plan() {
    let plan = small(&group(2, "0", 1_000_000, ""), &get("/a"));
    let server = Server::start(ok);
    let completed = planned(&server, &plan, &HOST, Stop::Count(50)).unwrap();
    assert_eq!((completed.measurement.sent, server.seen().len()), (50, 50));
    let at_most = Some(Duration::from_millis(300));
    let completed = planned(&server, &plan, &HOST, Stop::Finished { at_most }).unwrap();
    assert!((completed.measurement.window_s - 0.3).abs() < 1e-6);
    assert!(completed.measurement.sent > 0);
}

#[test]
fn a_shared_pace_is_one_for_all_users() {
    let server = Server::start(ok);
    // 3000 a minute are one each 20 ms.
    let timer = r#"<ConstantThroughputTimer><intProp name="calcMode">4</intProp>
        <doubleProp><name>throughput</name><value>3000.0</value></doubleProp></ConstantThroughputTimer><hashTree/>"#;
    let plan = small(&group(5, "0", 4, ""), &format!("{timer}{}", get("/a")));
    planned(&server, &plan, &HOST, UNTIL_THE_END).unwrap();
    let seen = server.seen();
    assert_eq!(seen.len(), 20);
    let all = seen[19].at - seen[0].at;
    // Nineteen distances; none is made up for by a shorter one.
    assert!(all >= Duration::from_millis(19 * 20 - 15), "{all:?}");
}

#[test]
fn data_without_recycling_ends_its_users() {
    let server = Server::start(ok);
    let data = r#"<CSVDataSet testname="c"><stringProp name="filename">users.csv</stringProp><stringProp name="delimiter">,</stringProp>
        <boolProp name="recycle">false</boolProp><boolProp name="stopThread">true</boolProp></CSVDataSet><hashTree/>"#;
    let plan = small(
        &group(2, "0", -1, ""),
        &format!("{data}{}", get("/${name}")),
    );
    let load_words = [&HOST[..], &["--jmx", "p.jmx"]].concat();
    let prepared = load(&server, ("/", &load_words), &[("p.jmx", &plan), USERS]).unwrap();
    assert!(prepared.ends());
    let completed = run(&*prepared, UNTIL_THE_END, 1).unwrap();
    assert_eq!(completed.measurement.sent, 3);
    let mut paths: Vec<String> = server
        .seen()
        .iter()
        .map(|one| one.path().to_owned())
        .collect();
    paths.sort();
    assert_eq!(paths, ["/ann", "/bob", "/cy"]);
}

#[test]
fn assertions_and_redirects_make_errors() {
    let server = Server::start(|seen| match seen.path() {
        "/moved" => "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "/bad" => "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nERROR".to_owned(),
        _ => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_owned(),
    });
    let assertion = |bits, text| {
        format!(
            r#"<ResponseAssertion testname="a"><collectionProp name="Asserion.test_strings"><stringProp name="1">{text}</stringProp></collectionProp>
            <stringProp name="Assertion.test_field">Assertion.response_data</stringProp><intProp name="Assertion.test_type">{bits}</intProp></ResponseAssertion><hashTree/>"#
        )
    };
    let follows = r#"<HTTPSamplerProxy testname="m"><stringProp name="HTTPSampler.path">/moved</stringProp>
        <boolProp name="HTTPSampler.follow_redirects">true</boolProp></HTTPSamplerProxy><hashTree/>"#;
    let below = format!(
        "{}{}{}{follows}",
        assertion(20, "ERR"),
        get("/good"),
        get("/bad")
    );
    let plan = small(&group(1, "0", 2, ""), &below);
    let completed = planned(&server, &plan, &HOST, UNTIL_THE_END).unwrap();
    let m = &completed.measurement;
    assert_eq!((m.sent, m.received), (6, 2));
    let count = |kind: &str| m.errors.get(kind).copied();
    assert_eq!(
        (count("body"), count("status_3xx")),
        (Some(2), Some(2)),
        "{:?}",
        m.errors
    );
    // As the command line has it, a redirect is an answer.
    let words = [&HOST[..], &["--expect", "status=200-399"]].concat();
    let completed = planned(&server, &plan, &words, UNTIL_THE_END).unwrap();
    assert_eq!(completed.measurement.received, 4);
}

#[test]
fn a_plan_goes_on_with_its_next_request_after_a_failure() {
    let server = Server::start(|seen| match seen.path() {
        "/b" => "garbage\r\n\r\n".to_owned(),
        _ => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_owned(),
    });
    let below = [get("/a"), get("/b"), get("/c")].concat();
    let plan = small(&group(1, "0", 3, ""), &below);
    let completed = planned(&server, &plan, &HOST, UNTIL_THE_END).unwrap();
    let m = &completed.measurement;
    assert_eq!((m.sent, m.received, m.lost), (9, 6, 3), "{:?}", m.errors);
    let seen = server.seen();
    let paths: Vec<&str> = seen.iter().map(Seen::path).collect();
    assert_eq!(paths.concat(), "/a/b/c".repeat(3));
}

#[test]
fn what_a_plan_contains_and_is_not_done_is_said_before_and_refused_when_strict() {
    let server = Server::start(ok);
    let script = r#"<JSR223Sampler testname="js"/><hashTree/>"#;
    let plan = small(&group(1, "0", 1, ""), &format!("{script}{}", get("/a")));
    let words = [&HOST[..], &["--jmx", "p.jmx"]].concat();
    let prepared = load(&server, ("/", &words), &[("p.jmx", &plan)]).unwrap();
    assert_eq!(
        prepared.notes(),
        ["1 skipped, not supported: JSR223 Sampler 'js'"]
    );
    let refused = |plan: &str, more: &[&str]| {
        let words = [&words[..], more].concat();
        let files = [("p.jmx", plan)];
        load(&server, ("/", &words), &files)
            .unwrap_err()
            .to_string()
    };
    for (plan, more, said) in [
        (
            &*plan,
            &["--strict"][..],
            "not all of p.jmx can be done: 1 skipped, not supported: JSR223",
        ),
        (&plan, &["-Jusres=5"], "p.jmx asks for no property 'usres'"),
        ("<a/>", &[], "p.jmx is no test plan of JMeter"),
        (
            &small(&group(1, "0", 1, ""), script),
            &[],
            "contains no request that can be sent",
        ),
        (
            &small(&group(70_000, "0", 1, ""), &get("/a")),
            &[],
            "the number of connections is 70000",
        ),
    ] {
        let why = refused(plan, more);
        assert!(why.contains(said), "{why}");
    }
    let files = [("p.jmx", &*plan)];
    let elsewhere = load(&server, ("/", &["--jmx", "p.jmx"]), &files).unwrap_err();
    let why = elsewhere.to_string();
    assert!(
        why.contains("http://h.example is another host") && why.contains("--header 'Host: NAME'"),
        "{why}"
    );
    assert_eq!(server.seen().len(), 0);
}
