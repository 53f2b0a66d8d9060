//! What the rules find in every GC log of the corpus, as one table that a person can read against the logs; and that each
//! option they ask for is one that the JDK of that log takes.
//!
//! The table is a golden text: a rule that begins or ceases to speak shows there.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use rungwise_jvm::{Given, Origin, Release};
use serde_json::Value;

use crate::run::Bench;

fn logs() -> Vec<PathBuf> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gclog/corpus");
    let mut logs: Vec<_> = std::fs::read_dir(corpus)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            let others = ["README.md", "truth.json", "goldens"];
            !name.starts_with('.') && !others.contains(&name)
        })
        .collect();
    logs.sort();
    logs
}

#[test]
fn findings_in_the_corpus_are_those_of_the_table_and_ask_for_what_the_jdk_takes() {
    let bench = Bench::new();
    let mut table = String::new();
    let mut offenders = Vec::new();
    let mut asked = 0;
    for log in logs() {
        let name = log.file_name().unwrap().to_str().unwrap();
        let ended = bench.run(&["jvm", "gc", log.to_str().unwrap(), "--format", "json"]);
        let Ok(document) = serde_json::from_str::<Value>(&ended.stdout) else {
            continue;
        };
        let runs = document["runs"].as_array().unwrap();
        let mut lines = Vec::new();
        for finding in document["findings"].as_array().unwrap() {
            let word = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
            // These two speak of nearly every log, and say nothing of the service.
            let common = ["gc-alloc-failure", "gc-log-poor"].contains(&&*word("rule"));
            if ["act", "watch"].contains(&&*word("outcome")) && !common {
                lines.push(format!(
                    "  {} {} {}/{}",
                    word("outcome"),
                    word("rule"),
                    word("severity"),
                    word("confidence")
                ));
            }
            let run = word("subject");
            let number: u64 = run.rsplit('/').next().unwrap().parse().unwrap();
            let run = runs.iter().find(|run| run["number"] == number);
            let version = run.and_then(|run| run["jvm"]["version"].as_str());
            let Some(release) = version.and_then(Release::parse) else {
                continue;
            };
            for turn in finding["knobs"].as_array().unwrap() {
                if turn["id"] != "jvm.flags" {
                    continue;
                }
                let options = turn["to"].as_str().unwrap();
                // The JVM had taken what is to be taken out.
                if options.starts_with("without ") {
                    continue;
                }
                for option in options.split_whitespace() {
                    asked += 1;
                    if let Some(why) = refused(release, option) {
                        offenders.push(format!(
                            "{name}: {} asks {release} for {option}: {why}",
                            word("rule")
                        ));
                    }
                }
            }
        }
        if !lines.is_empty() {
            let _ = writeln!(table, "{name}\n{}", lines.join("\n"));
        }
    }
    assert_eq!(offenders, Vec::<String>::new());
    assert!(
        asked > 20,
        "{asked}: the rules ask for too little to be a test"
    );
    insta::assert_snapshot!("findings_of_the_corpus", table);
}

/// Why this release would not take the option as it is; `None` where it would.
fn refused(release: Release, option: &str) -> Option<String> {
    let given = Given::new(option, Origin::Line);
    let Some(setting) = given.sets.first() else {
        let known = option.starts_with("-Xlog:") && release >= Release(9);
        return (!known).then(|| "no such option".to_owned());
    };
    let Some(flag) = release.table().find(&setting.name) else {
        return Some("no such flag".to_owned());
    };
    if flag.is_gone_in(release) || flag.is_deprecated() {
        return Some(flag.words.to_owned());
    }
    flag.refuses(setting).filter(|_| given.is_flag())
}
