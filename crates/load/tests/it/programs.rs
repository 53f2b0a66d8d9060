//! What load programs print: `wrk*.txt` and `redis-benchmark.csv` as the programs of Debian 12 printed them, the others as their sources
//! and manuals have them.

use std::path::Path;

use proptest::prelude::*;
use rungwise_load::command::{Figures, READERS, Reader};

fn output(file: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/programs");
    std::fs::read_to_string(folder.join(file)).unwrap()
}

fn read(reader: &str, file: &str) -> Figures {
    let text = output(file);
    let found = Reader::recognise(&text).map(|reader| reader.id);
    assert_eq!(found, Some(reader), "{file}");
    let reader = Reader::by_id(reader).unwrap();
    let figures = (reader.read)(&text).unwrap();
    for name in figures.latency_us.keys() {
        // wrk2 prints more quantiles than wrk, and what people ask of k6 and memtier is theirs to choose.
        let may = reader.gives.contains(&name.as_str()) || name.starts_with('p');
        assert!(may, "{}: {name}", reader.id);
    }
    figures
}

#[track_caller]
fn near(found: Option<f64>, expected: f64) {
    let found = found.unwrap();
    assert!(
        (found - expected).abs() <= 1e-6 * expected.abs().max(1e-9),
        "{found} is not {expected}"
    );
}

#[track_caller]
fn latencies(figures: &Figures, expected: &[(&str, f64)]) {
    for (name, us) in expected {
        near(figures.latency_us.get(*name).copied(), *us);
    }
}

#[test]
fn wrk_gives_rate_errors_and_quantiles() {
    let figures = read("wrk", "wrk.txt");
    near(figures.rate_per_s, 1671.08);
    near(figures.errors, 0.0);
    latencies(
        &figures,
        &[
            ("p50", 815.0),
            ("p99", 6130.0),
            ("mean", 1350.0),
            ("max", 8960.0),
        ],
    );
    // What is answered with an error is no answer.
    let figures = read("wrk", "wrk-errors.txt");
    near(figures.errors, 1.0);
    assert!(figures.rate_per_s.unwrap() < 1.0);
    let figures = read("wrk", "wrk2.txt");
    near(figures.rate_per_s, 995.0);
    near(figures.errors, 10.0 / 2000.0);
    latencies(
        &figures,
        &[
            ("p50", 980.0),
            ("p99.9", 3770.0),
            ("mean", 1020.0),
            ("max", 5010.0),
        ],
    );
}

#[test]
fn of_several_tests_of_redis_benchmark_the_rate_is_that_of_all_and_the_latency_the_worst() {
    let figures = read("redis-benchmark", "redis-benchmark.csv");
    near(figures.rate_per_s, 2.0 / (1.0 / 47169.81 + 1.0 / 54945.05));
    latencies(
        &figures,
        &[
            ("p50", 71.0),
            ("p99", 167.0),
            ("max", 3359.0),
            ("mean", 71.0),
        ],
    );
}

#[test]
fn programs_of_http_are_read() {
    let figures = read("hey", "hey.txt");
    near(figures.errors, 1650.0 / 16478.0);
    near(figures.rate_per_s, 8231.5921 * (1.0 - 1650.0 / 16478.0));
    near(figures.seconds, 2.0018);
    latencies(
        &figures,
        &[
            ("p50", 1000.0),
            ("p99", 4200.0),
            ("mean", 1200.0),
            ("max", 13200.0),
        ],
    );
    let figures = read("ab", "ab.txt");
    near(figures.errors, 0.01);
    near(figures.rate_per_s, 19960.08 * 0.99);
    latencies(
        &figures,
        &[("mean", 501.0), ("p99", 3000.0), ("max", 6000.0)],
    );
    let figures = read("oha", "oha.json");
    near(figures.errors, 0.1);
    near(figures.rate_per_s, 900.0);
    latencies(
        &figures,
        &[("p50", 900.0), ("p99.9", 8000.0), ("max", 12300.0)],
    );
    for file in ["k6-summary.json", "k6-handle.json"] {
        let figures = read("k6", file);
        near(figures.errors, 0.025);
        near(figures.rate_per_s, 487.5);
        near(figures.seconds, 2.0);
        latencies(
            &figures,
            &[("p50", 10250.0), ("p95", 30750.0), ("max", 98500.0)],
        );
    }
    let figures = read("k6", "k6-points.ndjson");
    near(figures.errors, 1.0 / 3.0);
    near(figures.rate_per_s, 1.0);
    latencies(
        &figures,
        &[("p50", 20_000.0), ("p99", 60_000.0), ("mean", 30_000.0)],
    );
}

#[test]
fn results_of_jmeter_are_read_in_both_formats() {
    for file in ["jmeter.csv", "jmeter.xml"] {
        let figures = read("jtl", file);
        near(figures.errors, 1.0 / 3.0);
        // From the start of the first to the end of the last.
        near(figures.seconds, 2.0);
        near(figures.rate_per_s, 1.0);
        latencies(&figures, &[("p50", 300_000.0), ("max", 400_000.0)]);
    }
}

#[test]
fn programs_of_databases_and_resolvers_are_read() {
    let figures = read("pgbench", "pgbench.txt");
    near(figures.rate_per_s, 950.118_765);
    near(figures.errors, 0.05);
    latencies(&figures, &[("mean", 4210.0)]);
    let figures = read("memtier", "memtier.json");
    near(figures.rate_per_s, 5500.12);
    near(figures.seconds, 2.0);
    latencies(
        &figures,
        &[
            ("p50", 735.0),
            ("p99.9", 4015.0),
            ("mean", 812.0),
            ("max", 7100.0),
        ],
    );
    let figures = read("dnsperf", "dnsperf.txt");
    near(figures.errors, 0.1);
    near(figures.rate_per_s, 1800.0);
    latencies(&figures, &[("mean", 512.0), ("max", 12345.0)]);
    let figures = read("hdr", "hdr.txt");
    assert_eq!(figures.rate_per_s, None);
    latencies(
        &figures,
        &[
            ("p50", 500.0),
            ("p99", 1400.0),
            ("p99.9", 3000.0),
            ("max", 5000.0),
        ],
    );
}

#[test]
fn what_is_another_programs_output_says_what_is_missing() {
    for reader in READERS {
        let why = (reader.read)("Segmentation fault\n").unwrap_err();
        assert!(
            !why.is_empty() && !why.ends_with('.'),
            "{}: {why}",
            reader.id
        );
    }
    assert!(Reader::recognise("Segmentation fault\n").is_none());
}

proptest! {
    #[test]
    fn no_output_makes_a_reader_panic(text in "\\PC{0,200}", cut in 0_usize..2000, file in 0_usize..13) {
        let files = [
            "wrk.txt", "wrk2.txt", "hey.txt", "ab.txt", "dnsperf.txt", "pgbench.txt", "hdr.txt", "memtier.json", "oha.json",
            "k6-summary.json", "k6-points.ndjson", "jmeter.csv", "jmeter.xml",
        ];
        let whole = output(files[file]);
        let cut = (0..=cut.min(whole.len())).rev().find(|at| whole.is_char_boundary(*at)).unwrap_or(0);
        for reader in READERS {
            for text in [text.clone(), whole[..cut].to_owned(), format!("{}{text}", &whole[..cut])] {
                if let Ok(figures) = (reader.read)(&text) {
                    let values = figures.latency_us.values().chain(&figures.errors);
                    for value in values {
                        prop_assert!(value.is_finite() && *value >= 0.0, "{}: {value}", reader.id);
                    }
                }
            }
        }
    }
}
