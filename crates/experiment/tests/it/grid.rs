//! Grids on the simulated stage: the best cell of a known surface, and what lies around it.

use std::collections::BTreeMap;

use rungwise_experiment::Error;
use rungwise_experiment::design::{Axis, Design, Grid, Part, Point, Step};
use rungwise_experiment::ladder::{Climbed, climb};
use rungwise_experiment::record::RunFolder;
use rungwise_experiment::stage::{Changes, StageError};
use rungwise_model::tune::{self, GridNeighbour, Outcome};

use crate::simulated::Simulated;
use crate::{Silent, design, outcome, run, setting, step};

fn axis(title: &str, knob: &str, values: &[&str]) -> Axis {
    let point = |value: &&str| Point {
        label: (*value).to_owned(),
        set: vec![(setting(knob), (*value).to_owned())],
        workload: Changes::NONE,
    };
    Axis {
        title: title.to_owned(),
        points: values.iter().map(point).collect(),
    }
}

/// Buffers and connections, from the smallest of each.
fn transport() -> Design {
    let grid = Grid {
        axes: vec![
            axis("buffers", "tcp", &["16k", "256k", "4m"]),
            axis("connections", "rpc", &["1", "2", "4", "8"]),
        ],
    };
    let mut design = design(vec![Step {
        set: Vec::new(),
        grid: Some(grid),
        ..step("transport")
    }]);
    let start = [("tcp", "16k"), ("rpc", "1")];
    design.baseline = start
        .map(|(knob, value)| (setting(knob), value.to_owned()))
        .to_vec();
    design
}

/// More of both helps up to 256k and 4, and costs beyond.
fn peak(seed: u64) -> Simulated {
    Simulated::new(seed)
        .effect("tcp=256k", 1.3)
        .effect("tcp=4m", 1.1)
        .effect("rpc=2", 1.2)
        .effect("rpc=4", 1.6)
        .effect("rpc=8", 1.4)
}

fn grid(climbed: &Climbed) -> &tune::Grid {
    climbed.rungs[1].grid.as_deref().unwrap()
}

fn neighbour<'g>(grid: &'g tune::Grid, at: &[usize]) -> &'g GridNeighbour {
    let mut neighbours = grid.neighbours.iter();
    neighbours.find(|neighbour| neighbour.at == at).unwrap()
}

#[test]
fn the_best_cell_is_kept_and_its_neighbours_are_worse() {
    let design = transport();
    // The rung itself, four neighbours, and the whole at the end.
    assert_eq!(design.judging.comparisons, 6);
    let climbed = run(&design, &mut peak(40));
    assert_eq!(climbed.kept, ["transport"]);
    let values: Vec<_> = climbed.final_variant.settings.values().collect();
    assert_eq!(values, ["4", "256k"]);
    let rung = &climbed.rungs[1];
    assert_eq!(rung.title, "turn transport on: 256k, 4");
    let delta = rung.delta.unwrap();
    assert!(delta.low < 1.08 && 1.08 < delta.high, "{delta:?}");

    let grid = grid(&climbed);
    assert_eq!(grid.best.as_deref(), Some(&[1, 2][..]));
    assert_eq!(grid.cells.len(), 12);
    // The start is not measured, and four pairs of each other cell are.
    assert!(grid.cells[0].is_before && grid.cells[0].pairs == 0);
    assert!((grid.cells[0].value.unwrap() / 500_000.0 - 1.0).abs() < 0.1);
    assert!(grid.cells[1..].iter().all(|cell| cell.pairs == 4));
    let best = &grid.cells[6];
    assert!((best.change.unwrap().point - 1.08).abs() < 0.1, "{best:?}");
    assert!((best.value.unwrap() / 1_040_000.0 - 1.0).abs() < 0.1);

    let worse = grid.neighbours.iter();
    let worse = worse.filter(|neighbour| neighbour.outcome == Outcome::Reverted);
    assert_eq!((worse.count(), grid.neighbours.len()), (4, 4));
    for words in [
        "Best of 12 cells: buffers 256k, connections 4, transaction rate +10",
        "; buffers 16k is worse (-2",
        "; connections 8 is worse (-1",
    ] {
        assert!(grid.sentence.contains(words), "{}", grid.sentence);
    }
}

#[test]
fn from_where_on_nothing_more_is_gained_is_named() {
    let design = transport();
    // Hardly better, so that the estimates find the same cell each time; less than the minimum effect.
    let mut stage = Simulated::new(41)
        .effect("tcp=256k", 1.3)
        .effect("tcp=4m", 1.2)
        .effect("rpc=2", 1.505)
        .effect("rpc=4", 1.5)
        .effect("rpc=8", 1.495)
        .steady();
    let climbed = run(&design, &mut stage);
    let grid = grid(&climbed);
    assert_eq!(grid.best.as_deref(), Some(&[1, 1][..]), "{}", grid.sentence);
    assert_eq!(neighbour(grid, &[1, 2]).outcome, Outcome::Same);
    let words = "; connections 4 gains nothing more (-0.";
    assert!(grid.sentence.contains(words), "{}", grid.sentence);
    assert_eq!(climbed.kept, ["transport"]);
}

#[test]
fn a_cheaper_point_that_is_as_good_is_named_and_the_end_of_an_axis_too() {
    let design = transport();
    let mut stage = Simulated::new(42)
        .effect("tcp=256k", 1.3)
        .effect("tcp=4m", 1.306)
        .effect("rpc=4", 1.2)
        .effect("rpc=8", 1.5)
        .steady();
    let climbed = run(&design, &mut stage);
    let grid = grid(&climbed);
    assert_eq!(grid.best.as_deref(), Some(&[2, 3][..]), "{}", grid.sentence);
    for words in [
        "; buffers 256k costs less and is as good within 2.0 % (-0.",
        "; no point beyond buffers 4m was tried; no point beyond connections 8 was tried.",
    ] {
        assert!(grid.sentence.contains(words), "{}", grid.sentence);
    }
}

#[test]
fn where_no_cell_helps_the_start_stays() {
    let climbed = run(&transport(), &mut Simulated::new(43));
    assert!(climbed.kept.is_empty());
    assert!(matches!(
        outcome(&climbed, "transport"),
        Outcome::Same | Outcome::Inconclusive
    ));
    let grid = grid(&climbed);
    assert!(grid.neighbours.is_empty());
    assert!(
        grid.sentence.starts_with("No cell was shown to help."),
        "{}",
        grid.sentence
    );
    // All cells are worse: the least bad one is judged, and so the start stays for a reason.
    let mut stage = Simulated::new(44)
        .effect("tcp=256k", 0.9)
        .effect("tcp=4m", 0.8)
        .effect("rpc=2", 0.9)
        .effect("rpc=4", 0.7)
        .effect("rpc=8", 0.6);
    let climbed = run(&transport(), &mut stage);
    assert_eq!(outcome(&climbed, "transport"), Outcome::Reverted);
    assert!(climbed.kept.is_empty());
}

#[test]
fn a_cell_that_cannot_be_measured_has_its_reason_and_is_never_the_best() {
    let design = transport();
    let mut stage = peak(45)
        .effect("tcp=4m", 9.0)
        .effect("rpc=8", 9.0)
        .unavailable("tcp=4m", "not that much memory")
        .deadly("rpc=8");
    let climbed = run(&design, &mut stage);
    let found = grid(&climbed);
    assert_eq!(found.best.as_deref(), Some(&[1, 2][..]));
    for cell in &found.cells {
        let why = cell.why_not.as_deref();
        match cell.at[..] {
            [2, _] => assert_eq!(why, Some("not that much memory")),
            [_, 3] => assert!(why.unwrap().contains("killed by rpc=8"), "{why:?}"),
            _ => assert_eq!(why, None),
        }
        assert_eq!(cell.change.is_some(), why.is_none() && !cell.is_before);
    }
    assert_eq!(neighbour(found, &[1, 3]).outcome, Outcome::Skipped);
    assert_eq!(neighbour(found, &[1, 1]).outcome, Outcome::Reverted);
    let lost = climbed.could_not.join("\n");
    assert!(
        lost.contains("transport, buffers 4m, connections 1: not that much memory"),
        "{lost}"
    );

    // Without the start, which has both knobs.
    let design = Design {
        baseline: Vec::new(),
        ..design
    };
    let climbed = run(&design, &mut peak(46).unavailable("tcp", "no such knob"));
    assert_eq!(outcome(&climbed, "transport"), Outcome::Skipped);
    let found = grid(&climbed);
    assert!(found.best.is_none() && found.sentence.contains("no such knob"));
}

#[test]
fn a_cell_that_breaks_a_guard_rail_is_not_the_best() {
    let mut stage = peak(47).effect("rpc=8", 3.0).loss("rpc=8", 0.05);
    let climbed = run(&transport(), &mut stage);
    let grid = grid(&climbed);
    assert_eq!(grid.best.as_deref(), Some(&[1, 2][..]));
    let cell = &grid.cells[7];
    assert!(cell.change.unwrap().point > 2.0);
    assert!(cell.why_not.as_deref().unwrap().contains("guard rail"));
    assert_eq!(neighbour(grid, &[1, 3]).outcome, Outcome::Reverted);
    let words = "connections 8 cannot be kept (guard rail violated: loss";
    assert!(grid.sentence.contains(words), "{}", grid.sentence);
}

#[test]
fn a_curve_of_loads_is_reported_and_not_kept() {
    let point = |label: &str, burst: Option<u32>| Point {
        label: label.to_owned(),
        set: Vec::new(),
        workload: burst.map_or(Changes::NONE, |burst| {
            Changes::from(BTreeMap::from([("burst".to_owned(), burst.into())]))
        }),
    };
    let grid_of_loads = Grid {
        axes: vec![Axis {
            title: "burst".to_owned(),
            points: vec![point("1", None), point("8", Some(8))],
        }],
    };
    assert!(grid_of_loads.changes_workload());
    let design = design(vec![Step {
        set: Vec::new(),
        part: Part::Branch,
        grid: Some(grid_of_loads),
        ..step("load")
    }]);
    let mut stage = Simulated::new(48).effect("workload.burst", 1.5);
    let climbed = run(&design, &mut stage);
    assert!(climbed.kept.is_empty() && climbed.final_variant.workload.is_none());
    let rung = &climbed.rungs[1];
    assert_eq!(rung.outcome, Outcome::Observed);
    assert!(
        rung.reason.contains("not carried forward"),
        "{}",
        rung.reason
    );
    // Its only neighbour is the state before, against which it was judged.
    let delta = rung.delta.unwrap();
    let neighbour = &grid(&climbed).neighbours[0];
    let back = 1.0 / (1.0 + delta.point) - 1.0;
    assert!((neighbour.delta.unwrap().point - back).abs() < 1e-12);
    assert!(climbed.rungs[1].pairs.len() >= 8);
}

#[test]
fn a_resumed_grid_ends_as_the_uninterrupted_one() {
    let design = transport();
    let stage = || peak(49).by_call();
    let whole = run(&design, &mut stage());
    // In the check of the machine, in the cells, in the best one, and in its neighbours.
    for stop_after in [5, 60, 130, 170] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        let mut climbed = Climbed::default();
        let mut interrupted = stage().interrupt_after(stop_after);
        let mut folder = RunFolder::create(&path, &design).unwrap();
        let end = climb(
            &design,
            &mut interrupted,
            &mut folder,
            &mut Silent,
            &mut climbed,
        );
        assert!(
            matches!(end, Err(Error::Stage(StageError::Interrupted))),
            "{stop_after}: {end:?}"
        );
        drop(folder);
        let (mut folder, read) = RunFolder::resume(&path).unwrap();
        assert!(read == design, "a grid is stored whole");
        let mut climbed = Climbed::default();
        climb(&read, &mut stage(), &mut folder, &mut Silent, &mut climbed).unwrap();
        assert!(
            climbed.rungs == whole.rungs,
            "interrupted after {stop_after} runs"
        );
        assert_eq!(climbed.sentence, whole.sentence);
    }
}
