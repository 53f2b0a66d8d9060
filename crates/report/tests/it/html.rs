//! The page by its structure: what it holds, what it must not, how large it is.

use rungwise_model::tune::TuneReport;
use rungwise_report::{html, load, tune};

use crate::fixtures;

fn page(report: &TuneReport) -> String {
    html::page("udp-echo", &tune::blocks(report))
}

/// Every start tag has its end tag, in order.
pub(crate) fn assert_well_formed(page: &str) {
    const VOID: [&str; 3] = ["meta", "!DOCTYPE", "br"];
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        let end = rest[start..].find('>').expect("a tag ends") + start;
        let tag = &rest[start + 1..end];
        let name = tag
            .trim_start_matches('/')
            .split([' ', '/'])
            .next()
            .unwrap_or("");
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(
                open.pop(),
                Some(closed),
                "near {}",
                &rest[start..rest.len().min(start + 80)]
            );
        } else if !VOID.contains(&name) {
            open.push(name);
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "left open: {open:?}");
}

#[test]
fn headings_and_landmarks_of_the_page() {
    let page = page(&fixtures::ladder());
    let mut outline = Vec::new();
    for part in page.split('<') {
        for tag in [
            "h1",
            "h2 ",
            "h3",
            "figure ",
            "main ",
            "nav ",
            "p class=\"caption\"",
        ] {
            if part.starts_with(tag) {
                outline.push(part.trim().to_owned());
            }
        }
    }
    insta::assert_snapshot!(outline.join("\n"));
}

#[test]
fn the_page_stands_alone() {
    for report in [
        fixtures::ladder(),
        fixtures::nothing_measured(),
        fixtures::ladder_of(40),
    ] {
        let page = page(&report);
        assert_well_formed(&page);
        for outside in [
            "<script", "http://", "https://", "<link", "@import", "url(", "<img", "<iframe",
        ] {
            assert!(!page.contains(outside), "the page holds {outside}");
        }
        assert!(page.contains("prefers-color-scheme:dark") && page.contains("@media print"));
    }
}

#[test]
fn a_real_ladder_stays_below_a_megabyte() {
    let size = page(&fixtures::ladder()).len();
    assert!(size < 1_000_000, "{size} bytes");
}

#[test]
fn every_chart_has_a_result_as_title_a_table_and_a_csv() {
    let page = page(&fixtures::ladder());
    let figures: Vec<&str> = page.split("<figure ").skip(1).collect();
    assert_eq!(figures.len(), 6);
    for figure in figures {
        let figure = figure.split("</figure>").next().unwrap_or("");
        assert!(figure.contains("<h3>") && figure.contains("<details>"));
        assert!(figure.contains("href=\"data:text/csv;charset=utf-8,"));
        assert!(figure.contains("<title") && figure.contains("role=\"img\""));
        let title = figure
            .split("<h3>")
            .nth(1)
            .and_then(|t| t.split("</h3>").next())
            .unwrap_or("");
        assert!(
            title.contains(|c: char| c.is_ascii_digit()),
            "no result in '{title}'"
        );
    }
}

#[test]
fn ids_are_unique_and_links_lead_somewhere() {
    let page = page(&fixtures::ladder());
    let ids: Vec<&str> = page
        .split(" id=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    for (index, id) in ids.iter().enumerate() {
        assert!(!ids[..index].contains(id), "{id} twice");
    }
    for target in page
        .split("href=\"#")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
    {
        assert!(ids.contains(&target), "#{target} leads nowhere");
    }
}

#[test]
fn outcomes_are_reported_by_symbol_and_word_and_not_by_colour() {
    let page = page(&fixtures::ladder());
    for (symbol, word) in [
        ("✓", "kept"),
        ("✗", "reverted"),
        ("=", "same"),
        ("?", "inconclusive"),
        ("○", "observed"),
        ("–", "skipped"),
    ] {
        assert!(
            page.contains(&format!(
                "aria-hidden=\"true\">{symbol}</span> {word}</span>"
            )),
            "{word}"
        );
    }
    assert!(page.contains("≠ sign differs"));
    assert!(page.contains("judged by CPU cost only"));
    assert!(page.contains("2 CPUs cannot show a 20-core factor"));
}

#[test]
fn what_was_measured_is_text_and_never_markup() {
    let mut report = fixtures::ladder();
    let hostile = "</title><script>alert(1)</script><b a='\"'>";
    report.title = hostile.to_owned();
    report.sentence = hostile.to_owned();
    report.machine.hostname = hostile.to_owned();
    report.could_not.push(hostile.to_owned());
    report.method.push(hostile.to_owned());
    for rung in &mut report.rungs {
        rung.title = hostile.to_owned();
        rung.reason = hostile.to_owned();
        rung.label = Some(hostile.to_owned());
        for pair in &mut rung.pairs {
            pair.discarded = Some(hostile.to_owned());
        }
    }
    let page = html::page(hostile, &tune::blocks(&report));
    assert!(!page.contains("<script"));
    assert_well_formed(&page);
}

#[test]
fn no_number_is_infinite_or_not_a_number() {
    let mut report = fixtures::ladder();
    for rung in &mut report.rungs {
        for pair in &mut rung.pairs {
            pair.a.rate_per_s = 0.0;
            pair.b.p99_us = Some(f64::INFINITY);
            pair.b.cpu.foreign = f64::NAN;
        }
        if let Some(delta) = &mut rung.delta {
            delta.point = -1.0;
            delta.low = f64::NEG_INFINITY;
            delta.high = f64::NAN;
        }
    }
    let page = page(&report);
    assert!(
        !page.contains("NaN") && !page.contains(">inf"),
        "a raw float shows"
    );
}

#[test]
fn one_rung_forty_rungs_and_none_all_make_a_page() {
    for count in [0, 1, 2, 40] {
        let page = page(&fixtures::ladder_of(count));
        assert_well_formed(&page);
        assert!(page.contains("Could not measure"));
    }
    assert_well_formed(&page(&fixtures::nothing_measured()));
}

#[test]
fn a_load_has_both_latencies_side_by_side() {
    let page = html::page("load", &load::blocks(&fixtures::load()));
    assert_well_formed(&page);
    assert!(page.contains("From intended start") && page.contains("From send time"));
    assert!(page.contains("472\u{202f}µs") && page.contains("449\u{202f}µs"));
}
