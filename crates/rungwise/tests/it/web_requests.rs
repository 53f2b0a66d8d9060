//! `load http` with requests that differ: the access log of a real nginx is what was sent.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use crate::run::Bench;
use crate::traffic::measured;
use crate::web::nginx;

/// The lines of an access log that will have so many: a worker writes a line when the response has left.
fn logged(log: &Path, lines: usize) -> Vec<Vec<String>> {
    for _ in 0..250 {
        let text = std::fs::read_to_string(log).unwrap();
        if text.lines().count() >= lines {
            let fields = |line: &str| line.split('|').map(str::to_owned).collect();
            return text.lines().map(fields).collect();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("fewer than {lines} lines in {}", log.display());
}

#[test]
fn placeholders_are_sent_as_the_access_log_shows_each_number_and_row_once() {
    let bench = Bench::new();
    let (_nginx, address, log) = nginx(&bench);
    let rows: Vec<String> = (0..400).map(|row| format!("row {row}")).collect();
    bench.write(
        "rows.csv",
        &format!("id,row\n{}\n", {
            let lines = rows
                .iter()
                .enumerate()
                .map(|(id, row)| format!("{id},{row}"));
            lines.collect::<Vec<_>>().join("\n")
        }),
    );
    let url = format!("http://{address}/o/${{counter}}?row=${{csv:row}}&u=${{uuid}}");
    let fixed = [
        "load",
        "http",
        &url,
        "--warmup",
        "0s",
        "--count",
        "800",
        "--format",
        "json",
        "--data",
        "rows.csv",
        "--header",
        "X-Row: ${csv:id}",
        "--connections",
        "4",
        "--seed",
        "7",
    ];
    let mut expected = 0;
    for how in [&[][..], &["--rate", "4k/s"]] {
        let report = measured(&bench.run(&[&fixed, how].concat()));
        assert_eq!(report["received"], 800, "{}", report["errors"]);
        let lines = logged(&log, expected + 800).split_off(expected);
        let (mut numbers, mut uuids, mut dealt) = (Vec::new(), BTreeSet::new(), Vec::new());
        for fields in &lines {
            let path = fields[1].split(' ').nth(1).unwrap();
            let (number, query) = path.strip_prefix("/o/").unwrap().split_once('?').unwrap();
            let (row, uuid) = query
                .strip_prefix("row=")
                .unwrap()
                .split_once("&u=")
                .unwrap();
            numbers.push(number.parse::<u32>().unwrap());
            assert!(uuids.insert(uuid.to_owned()), "{uuid} came twice");
            // Both columns are of one row; a space cannot be in a URL.
            assert_eq!(
                row,
                rows[fields[2].parse::<usize>().unwrap()].replace(' ', "%20")
            );
            dealt.push(fields[2].parse::<u32>().unwrap());
        }
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=800).collect::<Vec<_>>());
        dealt.sort_unstable();
        assert_eq!(dealt, (0..800).map(|at| at / 2).collect::<Vec<_>>());
        expected += 800;
    }
    // On one connection the order can be seen.
    let one = ["--connections", "1", "--count", "500"];
    let words: Vec<&str> = fixed
        .iter()
        .copied()
        .filter(|word| !["--count", "800", "--connections", "4"].contains(word))
        .collect();
    measured(&bench.run(&[&words[..], &one].concat()));
    let lines = logged(&log, expected + 500).split_off(expected);
    let order: Vec<usize> = lines
        .iter()
        .map(|fields| fields[2].parse().unwrap())
        .collect();
    assert_eq!(order, (0..500).map(|at| at % 400).collect::<Vec<_>>());
}

#[test]
fn a_placeholder_or_a_table_that_is_wrong_is_refused_before_any_request() {
    let bench = Bench::new();
    bench.write("users.csv", "name\nann\n");
    bench.write("short.csv", "name,key\nann\n");
    for (words, said) in [
        (
            &["http://127.0.0.1:9/${conter}"][..],
            "did you mean 'counter'?",
        ),
        (&["http://127.0.0.1:9/${csv:name}"], "--data FILE.csv"),
        (
            &["http://127.0.0.1:9/${csv:nam}", "--data", "users.csv"],
            "did you mean 'name'?",
        ),
        (&["http://127.0.0.1:9/", "--data", "no.csv"], "no.csv"),
        (
            &["http://127.0.0.1:9/", "--data", "short.csv"],
            "line 2 of short.csv has 1 values",
        ),
        (
            &["http://127.0.0.1:9/", "--body", "text:${random:9..1}"],
            "smaller number first",
        ),
    ] {
        let ended = bench.run(&[&["load", "http"], words].concat());
        assert_eq!(ended.code, Some(2), "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(said), "{words:?}: {}", ended.stderr);
    }
}

#[test]
fn a_list_is_sent_in_order_and_its_breakdown_is_that_of_the_access_log() {
    let bench = Bench::new();
    let (_nginx, address, log) = nginx(&bench);
    bench.write("users.csv", "name\nann\nbob\n");
    bench.write(
        "shop.jsonl",
        "{\"path\": \"/login\", \"body\": {\"user\": \"${csv:name}\"}, \"headers\": {\"X-Row\": \"${csv:name}\"}}\n\
         {\"path\": \"/items?q=1\", \"name\": \"items\", \"expect\": \"body~hello\"}\n\
         {\"path\": \"/gone\", \"pause\": \"1ms\"}\n",
    );
    let url = format!("http://{address}/");
    let fixed = [
        "load",
        "http",
        &url,
        "--requests",
        "shop.jsonl",
        "--data",
        "users.csv",
        "--warmup",
        "0s",
        "--count",
        "90",
        "--connections",
        "2",
    ];
    let mut expected = 0;
    for how in [&[][..], &["--rate", "1k/s"]] {
        let report = measured(&bench.run(&[&fixed, how, &["--format", "json"]].concat()));
        let lines = logged(&log, expected + 90).split_off(expected);
        let count = |path: &str| {
            let lines = lines.iter();
            lines.filter(|fields| fields[1].contains(path)).count()
        };
        let [login, items, gone] = ["POST /login ", "GET /items?q=1 ", "GET /gone "].map(count);
        assert_eq!(login + items + gone, 90);
        assert_eq!(report["lost"], gone, "{}", report["errors"]);
        let rows = report["http"]["requests"].as_array().unwrap();
        let rows: Vec<(&str, u64, u64)> = (rows.iter())
            .map(|row| {
                let number = |key: &str| row[key].as_u64().unwrap();
                (
                    row["name"].as_str().unwrap(),
                    number("sent"),
                    number("errors"),
                )
            })
            .collect();
        let expected_rows = [
            ("POST /login", login as u64, 0),
            ("items", items as u64, 0),
            ("GET /gone", gone as u64, gone as u64),
        ];
        assert_eq!(rows, expected_rows);
        // nginx ends a connection after 100 requests, more than these. Each walks through the list.
        for connection in lines
            .iter()
            .map(|fields| &fields[0])
            .collect::<BTreeSet<_>>()
        {
            let own = lines.iter().filter(|fields| &fields[0] == connection);
            for (at, fields) in own.enumerate() {
                let path = ["/login", "/items", "/gone"][at % 3];
                assert!(fields[1].contains(path), "{connection} {at}: {fields:?}");
            }
        }
        expected += 90;
    }
    let page = bench.run(&fixed);
    assert!(
        page.stdout.contains("GET /gone") && page.stdout.contains("by name"),
        "{}",
        page.stdout
    );
    bench.write(
        "bad.jsonl",
        "{\"path\": \"/\"}\n{\"path\": \"/\", \"mehtod\": \"GET\"}\n",
    );
    let bad = bench.run(&["load", "http", &url, "--requests", "bad.jsonl"]);
    assert_eq!(bad.code, Some(2));
    for said in ["bad.jsonl, line 2, column 22", "did you mean 'method'?"] {
        assert!(bad.stderr.contains(said), "{}", bad.stderr);
    }
}

#[test]
fn a_recording_is_replayed_and_what_is_left_out_is_said_before() {
    let bench = Bench::new();
    let (_nginx, address, log) = nginx(&bench);
    let entry = |at: &str, url: &str| {
        format!(
            "{{\"startedDateTime\": \"2026-11-26T10:00:{at}Z\", \"time\": 10, \"request\": {{\"method\": \"GET\", \"url\": \"{url}\", \
             \"headers\": [{{\"name\": \":path\", \"value\": \"/\"}}, {{\"name\": \"If-None-Match\", \"value\": \"x\"}}, \
             {{\"name\": \"X-Row\", \"value\": \"{at}\"}}, {{\"name\": \"Cookie\", \"value\": \"s=1\"}}]}}}}"
        )
    };
    let entries = [
        entry("00.000", "https://shop.example/a?x=${y}"),
        entry("00.001", "https://cdn.example/x.js"),
        entry("00.002", "https://cdn.example/y.js"),
        entry("00.003", "data:text/plain,x"),
        entry("00.004", "wss://shop.example/live"),
        entry("00.060", "https://shop.example/b"),
    ];
    bench.write(
        "s.har",
        &format!("{{\"log\": {{\"entries\": [{}]}}}}", entries.join(",")),
    );
    let url = format!("http://{address}/");
    let fixed = [
        "load",
        "http",
        &url,
        "--har",
        "s.har",
        "--connections",
        "1",
        "--warmup",
        "0s",
        "--format",
        "json",
    ];
    let host = ["--header", "Host: shop.example"];
    let ended = bench.run(&[&fixed[..], &host, &["--count", "6", "--har-timing"]].concat());
    let report = measured(&ended);
    assert_eq!(report["received"], 6, "{}", report["errors"]);
    // Three passes; in each the browser had nothing under way for 46 ms, from the end of the last skipped request on.
    assert!(
        report["window_s"].as_f64().unwrap() >= 0.138,
        "{}",
        report["window_s"]
    );
    for said in [
        "2 skipped, https://cdn.example is another host",
        "1 skipped, data: URL",
        "1 skipped, WebSocket: GET wss://shop.example/live",
    ] {
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
    }
    let lines = logged(&log, 6);
    for (at, fields) in lines.iter().enumerate() {
        let (path, row) = [("/a?x=${y}", "00.000"), ("/b", "00.060")][at % 2];
        assert_eq!(
            fields[1..4],
            [
                format!("GET {path} HTTP/1.1"),
                row.to_owned(),
                "s=1".to_owned()
            ]
        );
    }
    for (words, said) in [(&host[..], &["--strict"][..]), (&[], &[])].map(|(host, more)| {
        (
            [host, more].concat(),
            if more.is_empty() {
                "--header 'Host: shop.example'"
            } else {
                "not all of s.har"
            },
        )
    }) {
        let ended = bench.run(&[&fixed[..], &words].concat());
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(
            ended.stderr.contains(said) && ended.stderr.contains("WebSocket"),
            "{}",
            ended.stderr
        );
    }
    assert_eq!(logged(&log, 6).len(), 6);
}
