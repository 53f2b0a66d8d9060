//! The page of thread dumps, kept word for word.

use rungwise_model::threads::ThreadsReport;
use rungwise_report::{html, markdown, terminal, threads};

fn report() -> ThreadsReport {
    serde_json::from_str(include_str!("../fixtures/threads.json"))
        .expect("the fixture is a ThreadsReport")
}

#[test]
fn thread_dumps_of_two_jvms_on_a_wide_terminal() {
    let blocks = threads::blocks(&report(), "own.txt, formation");
    insta::assert_snapshot!(terminal::render(&blocks, 140, false));
}

#[test]
fn thread_dumps_of_two_jvms_as_markdown() {
    let blocks = threads::blocks(&report(), "own.txt, formation");
    insta::assert_snapshot!(markdown::render(&blocks));
}

#[test]
fn every_section_of_the_page_has_an_anchor_of_its_own() {
    let blocks = threads::blocks(&report(), "own.txt, formation");
    let page = html::page("Thread dumps", &blocks);
    let mut anchors: Vec<&str> = page
        .split(" id=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    let count = anchors.len();
    anchors.sort_unstable();
    anchors.dedup();
    assert_eq!(anchors.len(), count, "{anchors:?}");
    for anchor in ["act", "dumps", "locks", "pools", "stuck", "account"] {
        assert!(anchors.contains(&anchor), "{anchor}: {anchors:?}");
    }
}

#[test]
fn dumps_that_tell_nothing_are_not_called_good() {
    let mut report = report();
    report.findings.clear();
    for dump in &mut report.dumps {
        dump.waiting_share = None;
        dump.locks.clear();
        dump.deadlocks.clear();
    }
    let text = markdown::render(&threads::blocks(&report, "x"));
    assert!(text.contains("unknown"), "{text}");
}
