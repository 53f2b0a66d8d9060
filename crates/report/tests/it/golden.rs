//! What a person sees, kept word for word.

use rungwise_model::tune::{Served, ServiceFile};
use rungwise_report::{json, load, markdown, terminal, tune};

use crate::fixtures;

#[test]
fn a_ladder_on_a_wide_terminal() {
    insta::assert_snapshot!(terminal::render(
        &tune::blocks(&fixtures::ladder()),
        140,
        false
    ));
}

#[test]
fn a_ladder_on_a_narrow_terminal() {
    insta::assert_snapshot!(terminal::render(
        &tune::blocks(&fixtures::ladder()),
        72,
        false
    ));
}

#[test]
fn a_ladder_as_markdown() {
    insta::assert_snapshot!(markdown::render(&tune::blocks(&fixtures::ladder())));
}

#[test]
fn a_ladder_of_which_nothing_was_measured() {
    insta::assert_snapshot!(terminal::render(
        &tune::blocks(&fixtures::nothing_measured()),
        100,
        false
    ));
}

#[test]
fn a_load_on_a_terminal() {
    insta::assert_snapshot!(terminal::render(
        &load::blocks(&fixtures::load()),
        100,
        false
    ));
}

#[test]
fn held_connections_on_a_terminal() {
    insta::assert_snapshot!(terminal::render(
        &load::blocks(&fixtures::held()),
        100,
        false
    ));
}

#[test]
fn a_load_that_is_not_certified_says_so_first() {
    let mut report = fixtures::load();
    report.measurement.client.certified = false;
    report.measurement.client.reasons = vec!["the generator never waited".to_owned()];
    let text = markdown::render(&load::blocks(&report));
    let (refusal, latency) = (
        text.find("No verdict uses this measurement"),
        text.find("## Latency"),
    );
    assert!(refusal.is_some() && refusal < latency, "{text}");
    assert!(text.contains("- the generator never waited"));
}

#[test]
fn without_colour_there_is_no_escape_and_with_it_the_words_are_the_same() {
    let blocks = tune::blocks(&fixtures::ladder());
    let plain = terminal::render(&blocks, 120, false);
    let coloured = terminal::render(&blocks, 120, true);
    assert!(!plain.contains('\x1b'));
    assert!(coloured.contains('\x1b'));
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once('\x1b') {
        stripped += before;
        rest = after.split_once('m').map_or("", |(_, text)| text);
    }
    stripped += rest;
    let trimmed: Vec<&str> = stripped.lines().map(str::trim_end).collect();
    assert_eq!(trimmed, plain.lines().collect::<Vec<_>>());
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for report in [
        fixtures::ladder(),
        fixtures::ladder_of(40),
        fixtures::ladder_of(1),
    ] {
        for width in [80, 100, 120, 200] {
            for line in terminal::render(&tune::blocks(&report), width, false).lines() {
                let columns = line.chars().count();
                // Command lines are pasted and are never cut.
                assert!(
                    columns <= width || line.starts_with("    "),
                    "{columns} > {width}: {line}"
                );
            }
        }
    }
}

#[test]
fn json_is_the_document_itself() {
    let report = fixtures::ladder();
    let text = json(&report).expect("a report is JSON");
    let back: rungwise_model::tune::TuneReport =
        serde_json::from_str(&text).expect("it reads back");
    assert_eq!(back, report);
}

#[test]
fn processes_and_files_of_a_service_are_a_part_of_the_page() {
    let mut report = fixtures::ladder();
    let rung = report.rungs.iter_mut().find(|rung| !rung.pairs.is_empty());
    for (index, pair) in rung.unwrap().pairs.iter_mut().enumerate() {
        pair.discarded = (index == 1).then(|| "half A: 9 % foreign CPU".to_owned());
        pair.b.served = Some(Served {
            processes: 3,
            listeners: 2,
            backlog: 511,
            connections: if index == 1 { vec![64] } else { vec![48, 16] },
        });
    }
    report.files = vec![ServiceFile {
        name: "server.conf".to_owned(),
        start: "workers 1;\n".to_owned(),
        kept: "workers 2;\n".to_owned(),
    }];
    let page = markdown::render(&tune::blocks(&report));
    let (_, page) = page.split_once("## The service").unwrap();
    // A pair that was discarded says nothing where others count.
    for words in [
        "| 3 | 2 | 511 | 48 + 16 | 75",
        "server.conf with all kept changes, and at the start",
        "workers 1;",
        "workers 2;",
    ] {
        assert!(page.contains(words), "{words}\n{page}");
    }
    let without = markdown::render(&tune::blocks(&fixtures::ladder()));
    assert!(!without.contains("## The service"), "no service was seen");
}
