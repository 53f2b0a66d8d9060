//! Rungs that are grids, as a person sees them.

use rungwise_report::block::Block;
use rungwise_report::{html, markdown, terminal, tune};

use crate::fixtures;
use crate::html::assert_well_formed;

/// The section of the grids alone.
fn section() -> Vec<Block> {
    let blocks = tune::blocks(&fixtures::grids());
    let of = |id: &str| {
        let is_it = |block: &Block| matches!(block, Block::Section { id: own, .. } if *own == id);
        blocks.iter().position(is_it).expect("the section is there")
    };
    blocks[of("grids")..of("time")].to_vec()
}

#[test]
fn grids_on_a_terminal() {
    insta::assert_snapshot!(terminal::render(&section(), 100, false));
}

#[test]
fn grids_as_markdown() {
    insta::assert_snapshot!(markdown::render(&section()));
}

#[test]
fn a_wide_grid_is_broken_into_parts_that_fit() {
    let mut report = fixtures::grids();
    let grid = report.rungs[3].grid.as_mut().unwrap();
    // 2 rows of 32.
    grid.axes[0].points.truncate(2);
    grid.axes[1].points = (0..32).map(|n| format!("{n} connections")).collect();
    for line in terminal::render(&tune::blocks(&report), 80, false).lines() {
        assert!(
            line.chars().count() <= 80 || line.starts_with("    "),
            "{line}"
        );
    }
    let text = terminal::render(&tune::blocks(&report), 80, false);
    assert!(text.contains("31 connections"), "{text}");
}

#[test]
fn a_page_with_grids_has_a_map_and_curves_and_stays_well_formed() {
    let page = html::page("udp-echo", &tune::blocks(&fixtures::grids()));
    assert_well_formed(&page);
    for (id, marks) in [("grid-1", 4), ("grid-2", 2)] {
        let figure = |id: &str| {
            let (_, rest) = page.split_once(&format!("<figure id=\"{id}\">")).unwrap();
            rest.split("</figure>").next().unwrap()
        };
        let map = figure(id);
        assert!(map.contains("<table class=\"map heat\">"));
        // The best cell is marked by a word and a symbol, and no cell has a colour alone.
        assert_eq!(map.matches("◆</span> best").count(), 1);
        let kinds = ["◆</span>", "○</span>", "✗</span>", "!</span>"];
        let seen = kinds.iter().filter(|kind| map.contains(**kind));
        assert_eq!(seen.count(), marks);
        let curves = figure(&format!("{id}-curves"));
        assert!(curves.contains("state before") && curves.contains("role=\"img\""));
    }
    // The names of the points are on the axis, and a line for each size of the buffers.
    let curves = page.split("<figure id=\"grid-1-curves\">").nth(1).unwrap();
    for words in ["TCP buffers 4 MB", "TCP buffers 256 KB", ">8</text>"] {
        assert!(curves.contains(words), "{words}");
    }
}

#[test]
fn a_document_of_before_there_were_grids_is_read() {
    let report = fixtures::ladder();
    assert!(report.rungs.iter().all(|rung| rung.grid.is_none()));
    let text = rungwise_report::json(&report).unwrap();
    assert!(!text.contains("\"grid\""));
    let with: rungwise_model::tune::TuneReport =
        serde_json::from_str(&rungwise_report::json(&fixtures::grids()).unwrap()).unwrap();
    assert_eq!(with, fixtures::grids());
}
