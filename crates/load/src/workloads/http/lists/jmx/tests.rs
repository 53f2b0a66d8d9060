//! Test plans as JMeter writes them, and what is read from each.

use std::time::Duration;

use super::*;
use crate::workloads::http::lists::Entry;
use crate::workloads::http::script::{Dealing, Pace, Pause, Row, Step};

/// An element with properties, and what lies below it.
fn element(class: &str, name: &str, properties: &str, below: &str) -> String {
    format!(
        "<{class} testclass=\"{class}\" testname=\"{name}\">{properties}</{class}><hashTree>{below}</hashTree>"
    )
}

fn property(name: &str, value: &str) -> String {
    format!("<stringProp name=\"{name}\">{value}</stringProp>")
}

fn properties(pairs: &[(&str, &str)]) -> String {
    pairs
        .iter()
        .map(|(name, value)| property(name, value))
        .collect()
}

/// A GET of a path.
fn get(path: &str) -> String {
    get_with(path, "", "")
}

fn get_with(path: &str, more: &str, below: &str) -> String {
    let own = properties(&[("HTTPSampler.path", path), ("HTTPSampler.method", "GET")]);
    element("HTTPSamplerProxy", path, &format!("{own}{more}"), below)
}

fn looping(class: &str, loops: &str, below: &str) -> String {
    element(
        class,
        class,
        &property("LoopController.loops", loops),
        below,
    )
}

fn group(users: &str, loops: &str, more: &str, below: &str) -> String {
    let own = properties(&[("ThreadGroup.num_threads", users)]);
    let main = format!(
        "<elementProp name=\"ThreadGroup.main_controller\">{}</elementProp>",
        property("LoopController.loops", loops)
    );
    element("ThreadGroup", "g", &format!("{own}{main}{more}"), below)
}

fn defaults(pairs: &[(&str, &str)]) -> String {
    format!(
        "<ConfigTestElement guiclass=\"HttpDefaultsGui\" testclass=\"ConfigTestElement\" testname=\"d\">{}</ConfigTestElement><hashTree/>",
        properties(pairs)
    )
}

fn arguments(class: &str, list: &[(&str, &str)], encode: bool) -> String {
    let each = |(name, value): &(&str, &str)| {
        format!(
            "<elementProp name=\"{name}\" elementType=\"HTTPArgument\"><boolProp name=\"HTTPArgument.always_encode\">{encode}</boolProp>{}</elementProp>",
            properties(&[("Argument.name", name), ("Argument.value", value)])
        )
    };
    let items: String = list.iter().map(each).collect();
    let list = format!("<collectionProp name=\"Arguments.arguments\">{items}</collectionProp>");
    if class.is_empty() {
        list
    } else {
        format!("<elementProp name=\"{class}\">{list}</elementProp>")
    }
}

fn headers(list: &[(&str, &str)]) -> String {
    let each = |(name, value): &(&str, &str)| {
        let pair = properties(&[("Header.name", name), ("Header.value", value)]);
        format!("<elementProp name=\"\">{pair}</elementProp>")
    };
    let items: String = list.iter().map(each).collect();
    let list = format!("<collectionProp name=\"HeaderManager.headers\">{items}</collectionProp>");
    element("HeaderManager", "h", &list, "")
}

fn text(of_plan: &str, below: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?><jmeterTestPlan version=\"1.2\"><hashTree>{}</hashTree></jmeterTestPlan>",
        element("TestPlan", "p", of_plan, below)
    )
}

const SERVER: [(&str, &str); 2] = [
    ("HTTPSampler.domain", "shop.example"),
    ("HTTPSampler.port", "8080"),
];

fn read(of_plan: &str, below: &str, given: &[(&str, &str)]) -> Plan {
    let own: Vec<(String, String)> = (given.iter())
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let content = text(of_plan, &format!("{}{below}", defaults(&SERVER)));
    parse(&Source {
        file: "plans/p.jmx",
        bytes: content.as_bytes(),
        properties: &own,
        target: None,
        expects: false,
        read: &|file| match file {
            "plans/users.csv" => Ok(b"name;n\nann;1\nbob;2\n".to_vec()),
            "/abs.csv" => Ok(b"x,y\n".to_vec()),
            _ => Err(format!("there is no {file}")),
        },
    })
    .unwrap()
}

fn plan(below: &str) -> Plan {
    read("", below, &[])
}

fn paths(plan: &Plan) -> Vec<&str> {
    let entries = plan.listed.entries.iter();
    entries.map(|entry| entry.path.as_str()).collect()
}

/// Nanoseconds.
const MS: u64 = 1_000_000;

/// The paths that the first user of a group sends, `most` at most.
fn sent(plan: &Plan, group: usize, most: usize) -> Vec<&str> {
    let steps = &plan.groups[group].steps;
    let mut passes = vec![0_u64; steps.len() + 1];
    let (mut at, mut sent) = (0, Vec::new());
    while let Some(step) = steps.get(at) {
        at += 1;
        match step {
            Step::Send(message) => sent.push(plan.listed.entries[*message].path.as_str()),
            Step::Again { to, times, number } => {
                passes[*number] += 1;
                if times.is_none_or(|times| passes[*number] < times) {
                    at = *to;
                } else {
                    passes[*number] = 0;
                }
            }
            Step::Once { to, number } if passes[*number] > 0 => at = *to,
            _ => {}
        }
        if sent.len() == most {
            break;
        }
    }
    sent
}

fn skipped(plan: &Plan) -> Vec<String> {
    let skipped = plan.listed.skipped.iter();
    skipped
        .map(|one| format!("{}: {}", one.what, one.why))
        .collect()
}

#[test]
fn loops_within_loops_send_in_the_order_of_jmeter() {
    let once = element("OnceOnlyController", "o", "", &get("/once"));
    let inner = looping("LoopController", "2", &format!("{once}{}", get("/in")));
    let simple = element("GenericController", "s", "", &get("/simple"));
    let none = looping("LoopController", "0", &get("/never"));
    let below = format!("{once}{}{inner}{none}{simple}", get("/a"));
    let plan = plan(&group("3", "2", "", &below));
    let pass = ["/a", "/once", "/in", "/in", "/simple"];
    let expected = [&["/once"][..], &pass, &pass].concat();
    assert_eq!(sent(&plan, 0, 100), expected);
    assert_eq!(plan.groups[0].users, 3);
    assert!(plan.groups[0].ends());
    assert_eq!(skipped(&plan), [""; 0]);
}

#[test]
fn a_loop_without_end_whose_requests_are_sent_once_ends() {
    let once = element("OnceOnlyController", "o", "", &get("/once"));
    let plan_once = plan(&group("1", "-1", "", &once));
    assert_eq!(sent(&plan_once, 0, 100), ["/once"]);
    let forever = plan(&group("1", "-1", "", &format!("{once}{}", get("/a"))));
    assert_eq!(sent(&forever, 0, 4), ["/once", "/a", "/a", "/a"]);
    assert!(!forever.groups[0].ends());
    let timed = properties(&[
        ("ThreadGroup.scheduler", "true"),
        ("ThreadGroup.duration", "60"),
        ("ThreadGroup.delay", "5"),
        ("ThreadGroup.ramp_time", "10"),
    ]);
    let timed = plan(&group("1", "-1", &timed, &get("/a")));
    let found = &timed.groups[0];
    let seconds = Duration::from_secs;
    assert_eq!((found.delay, found.ramp), (seconds(5), seconds(10)));
    assert_eq!(found.length, Some(seconds(60)));
    assert!(found.ends());
    // Without the scheduler, delay and duration mean nothing.
    let untimed = properties(&[("ThreadGroup.duration", "60"), ("ThreadGroup.delay", "5")]);
    let untimed = plan(&group("1", "1", &untimed, &get("/a")));
    assert_eq!(
        (untimed.groups[0].delay, untimed.groups[0].length),
        (Duration::ZERO, None)
    );
}

#[test]
fn the_nearest_default_and_header_counts() {
    let inner = format!(
        "{}{}{}",
        defaults(&[("HTTPSampler.path", "/default"), ("HTTPSampler.port", "81")]),
        headers(&[("X-A", "inner"), ("X-B", "b"), ("Connection", "close")]),
        get_with("", "", &headers(&[("x-b", "own"), ("Content-Length", "5")])),
    );
    let inner = element("GenericController", "s", "", &inner);
    let below = format!(
        "{}{}{inner}",
        headers(&[("X-A", "outer"), ("X-C", "c")]),
        get("/a")
    );
    let below = format!(
        "{}{}",
        group("1", "1", "", &below),
        group("1", "1", "", &get("b?x=1#f"))
    );
    let plan = plan(&below);
    assert_eq!(plan.origin.as_deref(), Some("http://shop.example:8080"));
    // The port of the inner defaults makes it another server.
    assert_eq!(paths(&plan), ["/a", "/b?x=1"]);
    let [skipped] = &skipped(&plan)[..] else {
        panic!()
    };
    assert!(
        skipped.contains("http://shop.example:81 is another host"),
        "{skipped}"
    );

    let inner = inner_headers(&plan.listed.entries[0]);
    assert_eq!(inner, ["X-A: outer", "X-C: c"]);
    let below = format!(
        "{}{}",
        headers(&[("X-A", "outer"), ("X-C", "c")]),
        get_with(
            "/a",
            "",
            &headers(&[
                ("x-a", "own"),
                ("Content-Length", "5"),
                ("Connection", "close")
            ])
        ),
    );
    let plan = read("", &group("1", "1", "", &below), &[]);
    assert_eq!(
        inner_headers(&plan.listed.entries[0]),
        ["x-a: own", "X-C: c"]
    );
    assert!(plan.listed.entries[0].closes);
    assert!(
        plan.notes
            .iter()
            .any(|note| note.contains("Content-Length")),
        "{:?}",
        plan.notes
    );
}

fn inner_headers(entry: &Entry) -> Vec<String> {
    entry.headers.iter().map(ToString::to_string).collect()
}

#[test]
fn parameters_belong_to_the_query_or_the_body() {
    let list = [("a b", "1&amp;2"), ("c", "${__Random(1,9)}")];
    let with = |method: &str, list: &[(&str, &str)], encode, more: &[(&str, &str)]| {
        let own = properties(&[("HTTPSampler.path", "/p"), ("HTTPSampler.method", method)]);
        let all = format!(
            "{own}{}{}",
            properties(more),
            arguments("HTTPsampler.Arguments", list, encode)
        );
        let plan = plan(&group(
            "1",
            "1",
            "",
            &element("HTTPSamplerProxy", "s", &all, ""),
        ));
        assert_eq!(skipped(&plan), [""; 0]);
        plan.listed.entries.into_iter().next().unwrap()
    };
    let path = |entry: &Entry| entry.path.clone();
    let body = |entry: &Entry| {
        let body = entry
            .body
            .clone()
            .map(|(body, _)| String::from_utf8(body).unwrap());
        body.unwrap_or_default()
    };
    assert_eq!(
        path(&with("GET", &list, true, &[])),
        "/p?a+b=1%262&c=${random:1..9}"
    );
    assert_eq!(
        path(&with("DELETE", &list[1..], false, &[])),
        "/p?c=${random:1..9}"
    );
    assert_eq!(
        path(&with("GET", &[("q", "a b&amp;c")], false, &[])),
        "/p?q=a%20b&c"
    );
    let posted = with("POST", &list, true, &[]);
    assert_eq!(
        (path(&posted), body(&posted)),
        ("/p".to_owned(), "a+b=1%262&c=${random:1..9}".to_owned())
    );
    assert_eq!(
        posted.body.unwrap().1,
        "application/x-www-form-urlencoded; charset=UTF-8"
    );
    let raw = with(
        "PUT",
        &[("", "{&quot;a&quot;: &quot;${__P(x,y)}&quot;}")],
        false,
        &[("HTTPSampler.postBodyRaw", "true")],
    );
    assert_eq!(body(&raw), "{\"a\": \"y\"}");
}

#[test]
fn texts_of_a_raw_body_stay_as_they_are() {
    let body = arguments(
        "HTTPsampler.Arguments",
        &[(
            "",
            "{&quot;a&quot;: {}, &quot;n&quot;: ${__counter(FALSE,)}}",
        )],
        false,
    );
    let own = properties(&[
        ("HTTPSampler.path", "/"),
        ("HTTPSampler.method", "POST"),
        ("HTTPSampler.postBodyRaw", "true"),
    ]);
    let plan = plan(&group(
        "1",
        "1",
        "",
        &element("HTTPSamplerProxy", "s", &format!("{own}{body}"), ""),
    ));
    let (body, media_type) = plan.listed.entries[0].body.clone().unwrap();
    assert_eq!(
        String::from_utf8(body).unwrap(),
        "{\"a\": {}, \"n\": ${counter-of-all:0}}"
    );
    assert_eq!(media_type, "text/plain; charset=UTF-8");
}

#[test]
fn variables_and_properties_are_known_before_the_run() {
    let own = arguments(
        "TestPlan.user_defined_variables",
        &[("users", "${__P(users,4)}"), ("base", "/v1")],
        false,
    );
    let later = element(
        "Arguments",
        "u",
        &arguments("", &[("base", "${base}/x"), ("id", "${__UUID}")], false),
        "",
    );
    let below = format!(
        "{}{}",
        group(
            "${users}",
            "${__P(loops,2)}",
            "",
            &format!("{}{}{}", get("${base}/a"), get("/${id}"), get("/${none}"))
        ),
        later
    );
    let given = read(&own, &below, &[("users", "9")]);
    assert_eq!(given.groups[0].users, 9);
    assert_eq!(sent(&given, 0, 10), ["/v1/x/a", "/v1/x/a"]);
    assert_eq!(given.asks_for, ["loops", "users"]);
    assert_eq!(read(&own, &below, &[]).groups[0].users, 4);
    let skipped = skipped(&given);
    assert!(
        skipped[0].contains("variable id: '${__UUID}' changes during the run"),
        "{skipped:?}"
    );
    assert!(
        skipped[1].contains("variable none is set by nothing"),
        "{skipped:?}"
    );
}

#[test]
fn requests_that_need_what_is_not_supported_are_not_sent() {
    let extractor = element(
        "JSONPostProcessor",
        "token",
        &property("JSONPostProcessor.referenceNames", "tok;ids"),
        "",
    );
    let script = element(
        "JSR223PostProcessor",
        "js",
        &property("script", "vars.put(&quot;made&quot;, 1)"),
        "",
    );
    let controller = element(
        "IfController",
        "if",
        "",
        &format!("{}{}", get("/x"), get("/y")),
    );
    let below = format!(
        "{}{controller}{}{}",
        get_with("/login", "", &format!("{extractor}{script}")),
        get("/items?t=${tok}"),
        get("/${made}"),
    );
    let own = arguments("TestPlan.user_defined_variables", &[("tok", "")], false);
    let other = element("SetupThreadGroup", "setup", "", &get("/s"));
    let listener = element("ResultCollector", "tree", "", "");
    let plan = read(
        &own,
        &format!("{other}{}{listener}", group("1", "1", "", &below)),
        &[],
    );
    assert_eq!(paths(&plan), ["/login"]);
    let mut found = skipped(&plan);
    found.sort();
    let expected = [
        "HTTP Request '/items?t=${tok}': variable tok: JSON Post Processor 'token' sets it during the run",
        "HTTP Request '/${made}': variable made: JSR223 Post Processor 'js' sets it during the run",
        "If Controller 'if' with 2 requests: not supported",
        "JSON Post Processor 'token': not supported",
        "JSR223 Post Processor 'js': not supported",
        "Setup Thread Group 'setup' with 1 request: not supported",
    ];
    let mut expected = expected;
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert!(
        plan.notes
            .iter()
            .any(|note| note.contains("1 listener not run"))
    );
}

#[test]
fn what_is_disabled_is_not_there() {
    let off = get("/off").replacen("testname", "enabled=\"false\" testname", 1);
    let plan = plan(&group("1", "1", "", &format!("{off}{}", get("/on"))));
    assert_eq!(paths(&plan), ["/on"]);
    assert!(plan.listed.skipped.is_empty());
}

#[test]
fn timers_apply_to_all_requests_beside_and_below_them() {
    let timer = |class: &str, pairs: &[(&str, &str)], below| {
        element(class, class, &properties(pairs), below)
    };
    let outer = timer("ConstantTimer", &[("ConstantTimer.delay", "300")], "");
    let random = timer(
        "ConstantTimer",
        &[("ConstantTimer.delay", "${__Random(100,400)}")],
        "",
    );
    let uniform = timer(
        "UniformRandomTimer",
        &[
            ("ConstantTimer.delay", "50"),
            ("RandomTimer.range", "100.0"),
        ],
        "",
    );
    let normal = timer(
        "GaussianRandomTimer",
        &[("ConstantTimer.delay", "300"), ("RandomTimer.range", "20")],
        "",
    );
    let pause = timer(
        "TestAction",
        &[
            ("ActionProcessor.action", "1"),
            ("ActionProcessor.duration", "1000"),
        ],
        "",
    );
    let below = format!(
        "{}{pause}{}{outer}",
        get_with("/a", "", &format!("{uniform}{random}")),
        element(
            "GenericController",
            "s",
            "",
            &format!("{}{normal}", get("/b"))
        ),
    );
    let plan = plan(&group("1", "1", "", &below));
    assert_eq!(
        plan.groups[0].steps,
        [
            Step::Wait(vec![
                Pause::Fixed(300 * MS),
                Pause::Uniform(50 * MS, 100 * MS),
                Pause::Uniform(100 * MS, 300 * MS)
            ]),
            Step::Send(0),
            Step::Wait(vec![Pause::Fixed(300 * MS)]),
            Step::Wait(vec![Pause::Fixed(1000 * MS)]),
            Step::Wait(vec![Pause::Fixed(300 * MS), Pause::Normal(300e6, 20e6)]),
            Step::Send(1),
        ]
    );
}

#[test]
fn a_throughput_timer_keeps_a_pace_by_its_mode() {
    let timer = |mode: &str| {
        let mode = property("calcMode", mode);
        let per_minute = "<doubleProp><name>throughput</name><value>120.0</value></doubleProp>";
        element(
            "ConstantThroughputTimer",
            "t",
            &format!("{mode}{per_minute}"),
            "",
        )
    };
    for (mode, by) in [
        ("0", Pace::User),
        ("1", Pace::AllUsers),
        ("2", Pace::Group),
        ("3", Pace::Shared),
        ("4", Pace::SharedGroup),
        ("all active threads (shared)", Pace::Shared),
    ] {
        let below = format!("{}{}{}", timer(mode), get("/a"), get("/b"));
        let plan = plan(&group("1", "1", "", &below));
        let pause = Pause::Paced {
            every: 5e8,
            by,
            number: 0,
        };
        let wait = Step::Wait(vec![pause]);
        // One timer for both.
        let steps = [wait.clone(), Step::Send(0), wait, Step::Send(1)];
        assert_eq!(plan.groups[0].steps, steps, "{mode}");
    }
}

#[test]
fn rows_are_taken_with_each_pass_of_the_loop_around_the_data_set() {
    let set = |pairs: &[(&str, &str)]| element("CSVDataSet", "csv", &properties(pairs), "");
    let users = set(&[
        ("filename", "users.csv"),
        ("delimiter", ";"),
        ("shareMode", "shareMode.thread"),
    ]);
    let once = set(&[
        ("filename", "/abs.csv"),
        ("variableNames", "x,y"),
        ("recycle", "false"),
        ("stopThread", "true"),
    ]);
    let missing = set(&[("filename", "none.csv"), ("variableNames", "z")]);
    let endless = set(&[
        ("filename", "/abs.csv"),
        ("variableNames", "x"),
        ("recycle", "false"),
    ]);
    let inner = looping(
        "LoopController",
        "2",
        &format!("{once}{}", get("/${name}?x=${x}")),
    );
    let below = format!("{users}{inner}{}{missing}{endless}", get("/${n}"));
    let plan = plan(&group("1", "1", "", &below));
    assert_eq!(
        paths(&plan),
        ["/${csv:name#0.0}?x=${csv:x#1.0}", "/${csv:n#0.1}"]
    );
    let row = |table, dealt, ends| Step::Row(Row { table, dealt, ends });
    assert_eq!(
        plan.groups[0].steps,
        [
            row(0, Dealing::Own(0), false),
            row(1, Dealing::Shared(0), true),
            Step::Send(0),
            Step::Again {
                to: 1,
                times: Some(2),
                number: 1
            },
            Step::Send(1),
        ]
    );
    assert_eq!(plan.data[0].columns, ["name#0.0", "n#0.1"]);
    assert!(plan.data[0].has_header && !plan.data[1].has_header);
    let skipped = skipped(&plan);
    assert!(
        skipped[0].contains("there is no plans/none.csv"),
        "{skipped:?}"
    );
    assert!(skipped[1].contains("<EOF>"), "{skipped:?}");
}

#[test]
fn assertions_and_redirects_decide_what_an_answer_is() {
    let assertion = |field: &str, bits: &str, pattern: &str| {
        let list = format!(
            "<collectionProp name=\"Asserion.test_strings\">{}</collectionProp>",
            property("1", pattern)
        );
        let own = properties(&[
            ("Assertion.test_field", field),
            ("Assertion.test_type", bits),
        ]);
        element("ResponseAssertion", field, &format!("{own}{list}"), "")
    };
    let follows = "<boolProp name=\"HTTPSampler.follow_redirects\">true</boolProp>";
    let below = format!(
        "{}{}{}{}",
        get_with("/a", follows, ""),
        get_with("/b", "", &assertion("Assertion.response_code", "8", "201")),
        get_with(
            "/c",
            "",
            &format!(
                "{}{}{}",
                assertion("Assertion.response_data", "16", "ok"),
                assertion("Assertion.response_data", "20", "error"),
                headers(&[("Accept-Encoding", "gzip")]),
            )
        ),
        get_with(
            "/d",
            "",
            &assertion("Assertion.response_headers", "16", "x")
        ),
    );
    let plan = plan(&group("1", "1", "", &below));
    let [a, b, c, d] = &plan.listed.entries[..] else {
        panic!()
    };
    let status = |entry: &Entry| entry.expect.as_ref().map(|expect| expect.status);
    assert_eq!(
        [a, b, c, d].map(status),
        [Some((200, 299)), Some((201, 201)), None, None]
    );
    assert_eq!(
        c.texts,
        [("ok".to_owned(), true), ("error".to_owned(), false)]
    );
    assert!(c.headers.is_empty());
    let skipped = skipped(&plan);
    assert_eq!(
        skipped,
        [
            "Response Assertion 'Assertion.response_headers': not checked, because it checks 'response_headers'"
        ]
    );
    for word in [
        "redirects are not followed: in 1 request ",
        "Accept-Encoding",
    ] {
        assert!(
            plan.notes.iter().any(|note| note.contains(word)),
            "{:?}",
            plan.notes
        );
    }
}

#[test]
fn cookies_belong_to_the_requests_that_a_manager_applies_to() {
    let manager = element(
        "CookieManager",
        "c",
        "<collectionProp name=\"CookieManager.cookies\"/><boolProp name=\"CookieManager.clearEachIteration\">true</boolProp>",
        "",
    );
    let with = group("1", "2", "", &format!("{manager}{}", get("/with")));
    let plan = plan(&format!("{with}{}", group("1", "1", "", &get("/without"))));
    assert!(plan.cookies);
    let kept: Vec<bool> = plan
        .listed
        .entries
        .iter()
        .map(|entry| !entry.no_cookies)
        .collect();
    assert_eq!(kept, [true, false]);
    assert_eq!(plan.groups[0].steps[0], Step::Forget);
}

#[test]
fn requests_to_other_servers_and_with_files_are_skipped() {
    let below = format!(
        "{}{}{}{}",
        get("/here"),
        get("http://cdn.example/x"),
        get("http://shop.example:8080/full?a"),
        get_with(
            "/f",
            "<boolProp name=\"HTTPSampler.DO_MULTIPART_POST\">true</boolProp>",
            ""
        )
        .replace(">GET<", ">POST<"),
    );
    let plan = plan(&group("1", "1", "", &below));
    assert_eq!(paths(&plan), ["/here", "/full?a"]);
    let skipped = skipped(&plan);
    assert!(
        skipped[0].contains("http://cdn.example is another host"),
        "{skipped:?}"
    );
    assert!(skipped[1].contains("multipart"), "{skipped:?}");
}
