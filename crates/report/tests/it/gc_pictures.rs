//! The pictures of a GC log, of a small invented run: every kind of them, in every renderer.

use rungwise_model::gc::{
    AgeTable, Breakdown, Concurrent, Course, CpuUse, GcReport, LiveSet, LiveSource, Moment,
    Operation, Part, Point, Portion, Rate, Run, Safepoints, Spread, Statistic, Throughput,
};
use rungwise_report::block::Block;
use rungwise_report::{gc, html, markdown, terminal};

use crate::fixtures;

const MIB: u64 = 1024 * 1024;

fn spread(count: u64, total_ms: f64, min_ms: f64, longest_ms: f64) -> Spread {
    let mean_ms = total_ms / count as f64;
    Spread {
        count,
        total_ms,
        min_ms,
        mean_ms,
        p50_ms: mean_ms,
        p90_ms: longest_ms,
        p95_ms: longest_ms,
        p99_ms: longest_ms,
        p999_ms: longest_ms,
        longest_ms,
    }
}

fn course(values: &[(f64, f64)]) -> Course {
    let point = |(at_s, value): &(f64, f64)| Point {
        at_s: *at_s,
        min: *value,
        mean: *value,
        max: *value,
        count: 1,
    };
    Course {
        step_s: 1.0,
        points: values.iter().map(point).collect(),
    }
}

fn sizes(values: &[(f64, u64)]) -> Course {
    let bytes = |(at_s, mib): &(f64, u64)| (*at_s, (mib * MIB) as f64);
    course(&values.iter().map(bytes).collect::<Vec<_>>())
}

fn part(before: &[(f64, u64)], after: &[(f64, u64)], capacity: u64) -> Part {
    Part {
        before: sizes(before),
        after: sizes(after),
        peak_bytes: before.iter().map(|(_, mib)| mib * MIB).max().unwrap_or(0),
        largest_capacity_bytes: Some(capacity * MIB),
        ..Part::default()
    }
}

/// Ten seconds in the second hour of a JVM: three young collections and a full one.
fn run() -> Run {
    let mut run = Run {
        number: 1,
        began_s: Some(4000.0),
        seconds: Some(10.0),
        ..Run::default()
    };
    let pauses = &mut run.pauses;
    pauses.all = spread(4, 260.0, 10.0, 200.0);
    pauses
        .by_kind
        .insert("young".to_owned(), spread(3, 60.0, 10.0, 30.0));
    pauses
        .by_kind
        .insert("full".to_owned(), spread(1, 200.0, 200.0, 200.0));
    let young = course(&[(4001.0, 10.0), (4004.0, 20.0), (4007.0, 30.0)]);
    pauses.courses.insert("young".to_owned(), young);
    pauses
        .courses
        .insert("full".to_owned(), course(&[(4009.0, 200.0)]));
    pauses.made_of = Breakdown {
        from_s: 4001.0,
        step_s: 1.0,
        parts: vec![
            portion(
                "Pause Full (System.gc())",
                &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 200.0],
            ),
            portion(
                "Evacuate Collection Set",
                &[8.0, 0.0, 0.0, 15.0, 0.0, 0.0, 24.0],
            ),
            portion("Pause Young", &[2.0, 0.0, 0.0, 5.0, 0.0, 0.0, 6.0]),
        ],
    };
    for name in ["Pause Full (System.gc())", "Pause Young"] {
        pauses.by_type.insert(name.to_owned(), Spread::default());
    }
    pauses
        .by_cause
        .insert("System.gc()".to_owned(), spread(1, 200.0, 200.0, 200.0));
    pauses.longest = vec![Moment {
        line: Some(9),
        at_s: Some(4009.0),
        name: "Pause Full (System.gc())".to_owned(),
        duration_ms: Some(200.0),
        ..Moment::default()
    }];
    // Upper ends of quarters of powers of two, less one nanosecond.
    pauses.histogram = vec![
        (10.485_759, 1),
        (20.971_519, 1),
        (33.554_431, 1),
        (201.326_591, 1),
    ];
    run.heap.parts.insert(
        "heap".to_owned(),
        part(
            &[(4001.0, 400), (4004.0, 600), (4007.0, 800), (4009.0, 900)],
            &[(4001.0, 100), (4004.0, 300), (4007.0, 500), (4009.0, 90)],
            1024,
        ),
    );
    run.heap.parts.insert(
        "young".to_owned(),
        part(
            &[(4001.0, 320), (4004.0, 320), (4007.0, 320)],
            &[(4001.0, 20), (4004.0, 20), (4007.0, 20)],
            320,
        ),
    );
    run.heap.parts.insert(
        "old".to_owned(),
        part(
            &[(4009.0, 500)],
            &[(4001.0, 80), (4004.0, 280), (4007.0, 480), (4009.0, 90)],
            704,
        ),
    );
    run.live = Some(LiveSet {
        source: LiveSource::Full,
        samples: 1,
        course: sizes(&[(4009.0, 90)]),
        ..LiveSet::default()
    });
    run.ages = Some(AgeTable {
        count: 3,
        mean_bytes: vec![(12 * MIB) as f64, (6 * MIB) as f64, (2 * MIB) as f64],
        survival: vec![Some(0.5), Some(0.33), None],
        desired_bytes: Some((16 * MIB) as f64),
        threshold: Some(3.0),
        threshold_max: Some(15),
        overflows: 2,
        with_desired: 3,
        with_threshold: 3,
        ..AgeTable::default()
    });
    let mut safepoints = Safepoints {
        stopped: spread(30, 290.0, 0.1, 201.0),
        share: Some(0.029),
        ..Safepoints::default()
    };
    for (name, collection, total, reaching) in [
        ("ParallelGCFailedAllocation", true, 61.0, 0.9),
        ("ParallelGCSystemGC", true, 201.0, 0.2),
        ("RevokeBias", false, 28.0, 27.0),
    ] {
        safepoints.operations.insert(
            name.to_owned(),
            Operation {
                collection,
                stopped: spread(10, total, 0.1, total / 2.0),
                reaching: Some(spread(10, reaching, 0.01, reaching / 2.0)),
            },
        );
    }
    safepoints.course = course(&[(4001.0, 11.0), (4009.0, 201.0)]);
    safepoints.reaching_course = course(&[(4001.0, 0.4), (4009.0, 13.5)]);
    run.safepoints = Some(safepoints);
    run.throughput = Some(Throughput {
        whole: 0.974,
        worst: 0.9,
        worst_window_s: 2.0,
        worst_until_s: 4009.2,
    });
    run.allocation = Some(Rate {
        bytes_per_s: (120 * MIB) as f64,
        course: sizes(&[(4004.0, 140), (4007.0, 100)]),
        ..Rate::default()
    });
    let mark = Concurrent {
        time: spread(1, 2500.0, 2500.0, 2500.0),
        cycle: true,
        ..Concurrent::default()
    };
    run.concurrent
        .insert("Concurrent Mark Cycle".to_owned(), mark);
    run.concurrent_course = Breakdown {
        from_s: 4004.0,
        step_s: 1.0,
        parts: vec![portion("Concurrent Mark Cycle", &[500.0, 1000.0, 1000.0])],
    };
    run.cpu = Some(CpuUse {
        pauses: 1,
        user_ms: 390.0,
        sys_ms: 10.0,
        real_ms: 200.0,
        user_course: course(&[(4009.0, 390.0)]),
        sys_course: course(&[(4009.0, 10.0)]),
        real_course: course(&[(4009.0, 200.0)]),
        ..CpuUse::default()
    });
    run
}

fn portion(name: &str, steps_ms: &[f64]) -> Portion {
    Portion {
        name: name.to_owned(),
        total_ms: steps_ms.iter().sum(),
        steps_ms: steps_ms.to_vec(),
    }
}

/// The blocks of the section of pictures.
fn pictures(run: Run) -> Vec<Block> {
    section(run, "pictures")
}

/// The blocks of the section of this name.
fn section(run: Run, name: &str) -> Vec<Block> {
    let report = GcReport {
        envelope: fixtures::load().envelope,
        target: "gc.log".to_owned(),
        window_s: run.seconds,
        jvm: run.jvm.clone(),
        files: Vec::new(),
        notes: Vec::new(),
        account: rungwise_model::gc::Account::default(),
        pauses: rungwise_model::gc::AllPauses::default(),
        slo: None,
        throughput: None,
        allocation_bytes_per_s: None,
        promotion_bytes_per_s: None,
        runs: vec![run],
        runs_left_out: 0,
        left_out: None,
        findings: Vec::new(),
    };
    let section = |block: &Block| matches!(block, Block::Section { .. });
    let first = |block: &Block| matches!(block, Block::Section { id, .. } if *id == name);
    let mut blocks = gc::blocks(&report, "gc.log");
    let Some(from) = blocks.iter().position(first) else {
        return Vec::new();
    };
    let blocks = blocks.split_off(from);
    let count = blocks.iter().skip(1).take_while(|b| !section(b)).count() + 1;
    blocks.into_iter().take(count).collect()
}

#[test]
fn pictures_of_a_collector_on_a_wide_terminal() {
    insta::assert_snapshot!(terminal::render(&pictures(run()), 120, false));
}

#[test]
fn pictures_of_a_collector_on_a_narrow_terminal() {
    insta::assert_snapshot!(terminal::render(&pictures(run()), 60, false));
}

#[test]
fn pictures_of_a_collector_as_markdown() {
    insta::assert_snapshot!(markdown::render(&pictures(run())));
}

/// The figures of a page, by id.
fn figures(page: &str) -> Vec<(&str, &str)> {
    let figures = page.split("<figure id=\"").skip(1);
    figures
        .filter_map(|rest| rest.split_once("</figure>")?.0.split_once('"'))
        .collect()
}

/// Text between two others.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let rest = text.split_once(before).map_or("", |(_, rest)| rest);
    rest.split_once(after).map_or("", |(found, _)| found)
}

#[test]
fn every_figure_has_a_name_for_who_cannot_see_it_a_table_and_its_data() {
    let page = html::page("gc.log", &pictures(run()));
    let figures = figures(&page);
    let ids: Vec<&str> = figures.iter().map(|(id, _)| *id).collect();
    assert_eq!(
        ids,
        [
            "gc-pauses-over-time",
            "gc-pauses-made-of",
            "gc-heap-over-time",
            "gc-generations-over-time",
            "gc-allocation-over-time",
            "gc-concurrent-over-time",
            "gc-stops-over-time",
            "gc-cpu-over-time",
            "gc-pause-histogram",
            "gc-causes",
            "gc-ages",
            "gc-safepoints",
        ]
    );
    for (id, figure) in figures {
        let title = between(figure, "<h3>", "</h3>");
        assert!(!title.is_empty(), "{id}");
        let rows = between(figure, "<tbody>", "</tbody>")
            .matches("<tr")
            .count();
        assert!(rows > 0, "{id} has no table");
        let data = between(figure, &format!("download=\"{id}.csv\" href=\""), "\"");
        // A line for each row, and one of names.
        assert_eq!(data.matches("%0D%0A").count(), rows + 1, "{id}");
        // Bars are a group, and each has its own name.
        if figure.contains("role=\"group\"") {
            let label = between(figure, "role=\"group\" aria-label=\"", "\"");
            assert_eq!(label, title, "{id}");
            let bars = figure.split("role=\"img\">").skip(1);
            assert!(bars.clone().count() > 0 && bars.clone().all(|bar| bar.starts_with("<title>")));
            continue;
        }
        let named = between(figure, &format!("<title id=\"{id}-t\">"), "</title>");
        assert_eq!(named, title, "{id}");
        let described = between(figure, &format!("<desc id=\"{id}-d\">"), "</desc>");
        assert!(!described.is_empty(), "{id}");
        let label = format!("role=\"img\" aria-labelledby=\"{id}-t {id}-d\"");
        assert!(figure.contains(&label), "{id}");
    }
}

#[test]
fn no_part_of_a_figure_lies_outside_of_it() {
    let page = html::page("gc.log", &pictures(run()));
    for (id, figure) in figures(&page) {
        for wrong in ["NaN", "inf\"", "inf%"] {
            assert!(!figure.contains(wrong), "{id} contains {wrong}");
        }
        let mut seen = 0;
        for name in ["x", "x1", "x2", "width"] {
            for rest in figure.split(&format!(" {name}=\"")).skip(1) {
                let value = rest.split('"').next().unwrap_or_default();
                let Some(percent) = value.strip_suffix('%') else {
                    continue;
                };
                let percent: f64 = percent.parse().expect("a number");
                assert!((0.0..=100.0).contains(&percent), "{id}: {name}={value}");
                seen += 1;
            }
        }
        assert!(seen > 0, "{id} has no axis");
    }
}

#[test]
fn a_mark_stands_where_its_time_and_its_value_are() {
    let page = html::page("gc.log", &pictures(run()));
    let figures = figures(&page);
    let figure = |wanted: &str| figures.iter().find(|(id, _)| *id == wanted).unwrap().1;
    // From 10 to 200 ms, logarithmic, in thousandths from the top; ten seconds in hundred thousandths.
    let at = |second: f64, ms: f64| {
        let height = (ms / 10.0_f64).ln() / 20.0_f64.ln();
        format!(
            "M{:.0} {:.0}h.1",
            (second - 4000.0) * 10_000.0,
            1000.0 * (1.0 - height)
        )
    };
    let young = [(4001.0, 10.0), (4004.0, 20.0), (4007.0, 30.0)];
    let young: String = young.map(|(second, ms)| at(second, ms)).concat();
    let pauses = figure("gc-pauses-over-time");
    assert!(pauses.contains(&format!("d=\"{young}\"")), "{young}");
    let full = at(4009.0, 200.0);
    assert!(pauses.contains(&format!("d=\"{full}\"")), "{full}");
    // The live set after the full collection: 90 MiB of 1024, from zero.
    let live = format!("M90000 {:.0}h.1", 1000.0 * (1.0 - 90.0 / 1024.0));
    assert!(figure("gc-heap-over-time").contains(&live), "{live}");
}

#[test]
fn the_page_of_a_log_has_one_script_of_its_own_and_reaches_for_nothing() {
    let page = html::page("gc.log", &pictures(run()));
    assert_eq!(page.matches("<script").count(), 1);
    let (_, script) = page.split_once("<script>").expect("the script");
    let (script, _) = script.split_once("</script>").expect("its end");
    assert!(script.len() < 10_000, "{} bytes", script.len());
    for outside in [
        "https://", "<link", "@import", "url(", "<img", "<iframe", "src=", "fetch(", "import(",
        "eval(",
    ] {
        assert!(!page.contains(outside), "the page holds {outside}");
    }
    // The name of a language is no address that is asked.
    let addresses = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!addresses.contains("http://"));
}

#[test]
fn every_picture_over_time_has_the_same_axis() {
    let page = html::page("gc.log", &pictures(run()));
    let axes: Vec<&str> = page
        .split("<svg class=\"time\" ")
        .skip(1)
        .map(|svg| svg.split(" width").next().unwrap_or_default())
        .collect();
    // Pauses, what made them, heap, generations, allocation, concurrent work, stops, CPU time.
    assert_eq!(axes, [r#"data-from="4000" data-until="4010""#; 8]);
}

#[test]
fn a_log_without_a_clock_says_why_nothing_is_over_time() {
    let mut run = run();
    (run.began_s, run.seconds) = (None, None);
    let text = terminal::render(&pictures(run), 100, false);
    assert!(text.contains("has no clock"), "{text}");
    assert!(text.contains("Median of 4 pauses"), "{text}");
    assert!(!text.contains("highest before"), "{text}");
}

#[test]
fn what_a_collector_says_of_itself_is_drawn_and_shown_where_there_is_nothing_else() {
    let sum = |count, mean_ms, longest_ms| Statistic {
        line: 7,
        count,
        mean_ms,
        longest_ms,
    };
    let mut sums = Run::default();
    for (name, row) in [
        ("Concurrent Marking", sum(Some(94), 52.0, 210.0)),
        ("Pause Init Mark (G)", sum(None, 0.271, 2.5)),
    ] {
        sums.statistics.insert(name.to_owned(), row);
    }
    let text = terminal::render(&pictures(sums.clone()), 100, false);
    let title = "Concurrent Marking took at most 210 ms, 52.0 ms on average";
    assert!(text.replace('\u{202f}', " ").contains(title), "{text}");
    let page = html::page("gc.log", &pictures(sums.clone()));
    assert!(page.contains("gc-own-sums") && page.contains("Pause Init Mark (G)"));

    // Beside pauses a terminal has other things to show.
    let mut both = run();
    both.statistics = sums.statistics;
    assert!(
        !terminal::render(&pictures(both.clone()), 100, false).contains("Collector statistics")
    );
    assert!(html::page("gc.log", &pictures(both)).contains("gc-own-sums"));
}

#[test]
fn a_run_of_which_nothing_is_known_has_no_pictures() {
    assert!(pictures(Run::default()).is_empty());
}

#[test]
fn the_pictures_of_the_fullest_run_stay_small() {
    let mut run = run();
    let full: Vec<(f64, f64)> = (0..512)
        .map(|step| (4000.0 + f64::from(step) * 10.0, f64::from(step) * 1.234e7))
        .collect();
    run.seconds = Some(5120.0);
    let marks: Vec<(f64, f64)> = (0..2048)
        .map(|step| {
            (
                4000.0 + f64::from(step) * 2.5,
                f64::from(step % 97) + 0.123_4,
            )
        })
        .collect();
    let steps: Vec<f64> = full.iter().map(|(_, value)| value / 1e7).collect();
    for kind in ["young", "mixed", "full", "start", "remark", "cleanup"] {
        run.pauses.courses.insert(kind.to_owned(), course(&marks));
    }
    for breakdown in [&mut run.pauses.made_of, &mut run.concurrent_course] {
        breakdown.step_s = 10.0;
        breakdown.parts = (0..13)
            .map(|number| portion(&format!("phase {number} of a long name"), &steps))
            .collect();
    }
    if let Some(rate) = &mut run.allocation {
        rate.course = course(&full);
    }
    if let (Some(cpu), Some(safepoints)) = (&mut run.cpu, &mut run.safepoints) {
        for lines in [
            &mut cpu.user_course,
            &mut cpu.sys_course,
            &mut cpu.real_course,
            &mut safepoints.course,
            &mut safepoints.reaching_course,
        ] {
            *lines = course(&full);
        }
    }
    run.heap
        .parts
        .insert("metaspace".to_owned(), Part::default());
    for part in run.heap.parts.values_mut() {
        (part.before, part.after) = (course(&full), course(&full));
    }
    let page = html::page("gc.log", &pictures(run));
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
}

#[test]
fn pauses_are_labelled_from_the_shortest_to_the_longest_where_there_is_room() {
    let mut run = run();
    let full = Spread {
        count: 7000,
        total_ms: 91_000.0,
        min_ms: 1.25,
        mean_ms: 13.0,
        p50_ms: 2.25,
        p90_ms: 3.25,
        p95_ms: 4.25,
        p99_ms: 5.25,
        p999_ms: 6.25,
        longest_ms: 7.25,
    };
    run.pauses.by_type.insert("Pause Odd".to_owned(), full);
    let blocks = section(run, "pauses");
    let page = markdown::render(&blocks);
    let row = page
        .lines()
        .find(|line| line.starts_with("| Pause Odd |"))
        .unwrap();
    let mut rest = row;
    for label in [
        "000", "91.0", "1.25", "13.0", "2.25", "3.25", "5.25", "6.25", "7.25",
    ] {
        let at = rest.find(label);
        rest = &rest[at.unwrap_or_else(|| panic!("{label} is not in {row}")) + label.len()..];
    }
    // A narrow terminal keeps what matters most.
    let narrow = terminal::render(&blocks, 80, false);
    assert!(
        narrow.contains("not shown at this width: p99.9, p90, Shortest"),
        "{narrow}"
    );
}
