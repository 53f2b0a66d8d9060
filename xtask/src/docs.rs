//! `cargo xtask docs`: the pages that are generated from the types, the registry and the command line.
//!
//! Checked in and kept fresh by `--check`: JSON schemas, a page per knob, rule and probe, the
//! vocabulary of evidence, the command-line reference, the page of stored trials and the curves that
//! rules take from them. Not checked in, because the binary prints them anywhere: man pages and
//! completions, which go to `target/dist` for packagers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::faults::kept;
use crate::faults::kinds::Kinds;
use crate::tree::Tree;

mod evidence;

/// Folders in which every file is generated; one that we no longer write is stale.
const OWNED: &[&str] = &[
    "docs/knobs/",
    "docs/probes/",
    "docs/rules/",
    "docs/schemas/",
];

/// Shells for which completions are written.
const SHELLS: &[&str] = &["bash", "fish", "zsh"];

/// Columns of the reference; wide enough for tables, narrow enough for a diff.
const COLUMNS: &str = "100";

/// Writes the pages, or with `check` compares them and names those that differ.
pub fn run(tree: &Tree, check: bool) -> Result<ExitCode> {
    let binary = Binary::build(tree)?;
    let mut pages = BTreeMap::new();
    schemas(&binary, &mut pages)?;
    knobs(&mut pages);
    evidence::rules(tree, &mut pages)?;
    evidence::probes(&mut pages);
    pages.insert("docs/cli.md".to_owned(), reference(&binary)?);
    let trials = kept::read(&tree.join(kept::TRIALS))?;
    for (file, text) in kept::generated(&trials, &Kinds::built_in()?) {
        pages.insert(file.to_owned(), text);
    }

    let stale = stale(tree, &pages)?;
    if check {
        if stale.is_empty() {
            eprintln!("xtask: {} generated files are fresh", pages.len());
            return Ok(ExitCode::SUCCESS);
        }
        for file in &stale {
            eprintln!("xtask: stale: {file}");
        }
        eprintln!("xtask: run `cargo xtask docs` and commit the result");
        return Ok(ExitCode::FAILURE);
    }
    for file in &stale {
        if let Some(text) = pages.get(file) {
            tree.write(file, text)?;
            eprintln!("xtask: wrote {file}");
        } else {
            std::fs::remove_file(tree.join(file))
                .with_context(|| format!("cannot remove {file}"))?;
            eprintln!("xtask: removed {file}, which is no longer generated");
        }
    }
    for_packagers(tree, &binary)?;
    eprintln!(
        "xtask: {} generated files, {} of them changed",
        pages.len(),
        stale.len()
    );
    Ok(ExitCode::SUCCESS)
}

/// Files that differ from what would be written, are absent, or should not be there.
fn stale(tree: &Tree, pages: &BTreeMap<String, String>) -> Result<Vec<String>> {
    let mut stale: Vec<String> = pages
        .iter()
        .filter(|(file, text)| tree.read(file).ok().as_ref() != Some(*text))
        .map(|(file, _)| file.clone())
        .collect();
    let orphans = tree.files()?.into_iter().filter(|file| {
        OWNED.iter().any(|folder| file.starts_with(folder)) && !pages.contains_key(file)
    });
    stale.extend(orphans);
    stale.sort();
    Ok(stale)
}

/// The schema of a document as it is written: a field that is always there is required, also where it may be null.
fn required<T: schemars::JsonSchema>() -> serde_json::Value {
    let settings = schemars::generate::SchemaSettings::default().for_serialize();
    let generator = settings.into_generator();
    generator.into_root_schema_for::<T>().to_value()
}

fn schemas(binary: &Binary, pages: &mut BTreeMap<String, String>) -> Result<()> {
    // The documents that the program alone knows.
    let own: BTreeMap<String, serde_json::Value> = serde_json::from_str(&binary.run(&["schemas"])?)
        .context("cannot read `rungwise schemas`")?;
    let all = [
        (
            "load",
            schemars::schema_for!(rungwise_model::load::LoadReport).to_value(),
        ),
        ("scenario", rungwise_experiment::scenario::schema()),
        (
            "check",
            schemars::schema_for!(rungwise_model::check::CheckReport).to_value(),
        ),
        (
            "capacity-gc",
            schemars::schema_for!(rungwise_model::capacity::CapacityGcReport).to_value(),
        ),
        (
            "capacity-rpc",
            schemars::schema_for!(rungwise_model::capacity_rpc::CapacityRpcReport).to_value(),
        ),
        (
            "compare",
            schemars::schema_for!(rungwise_model::compare::CompareReport).to_value(),
        ),
        (
            "jvm-gc",
            schemars::schema_for!(rungwise_model::gc::GcReport).to_value(),
        ),
        (
            "jvm-gc-follow",
            schemars::schema_for!(rungwise_model::gc_follow::FollowLine).to_value(),
        ),
        (
            "jvm-heap-per-request",
            schemars::schema_for!(rungwise_model::heap_per_request::HeapPerRequestReport)
                .to_value(),
        ),
        (
            "jvm-jfr",
            schemars::schema_for!(rungwise_model::jfr::JfrReport).to_value(),
        ),
        (
            "jvm-threads",
            schemars::schema_for!(rungwise_model::threads::ThreadsReport).to_value(),
        ),
        (
            "jvm-flags",
            schemars::schema_for!(rungwise_model::jvm_flags::JvmFlagsReport).to_value(),
        ),
        (
            "profile",
            schemars::schema_for!(rungwise_model::profile::ProfileReport).to_value(),
        ),
        ("tune", required::<rungwise_model::tune::TuneReport>()),
    ];
    let all = all.map(|(name, schema)| (name.to_owned(), schema));
    for (name, schema) in all.into_iter().chain(own) {
        let text = serde_json::to_string_pretty(&schema).context("cannot print a schema")?;
        pages.insert(format!("docs/schemas/{name}.json"), text + "\n");
    }
    Ok(())
}

fn knobs(pages: &mut BTreeMap<String, String>) {
    let mut index = String::from(
        "# Knobs\n\nWritten by `cargo xtask docs` from the registry; change `crates/knobs/src/<scope>/<name>.rs`. \
         `rungwise knob show ID` prints\nthe same page with the value on this host.\n\n\
         | knob | scope | risk | what it is |\n|---|---|---|---|\n",
    );
    for knob in rungwise_knobs::KNOBS {
        let row = [
            "| [",
            knob.id,
            "](",
            knob.id,
            ".md) | ",
            knob.scope.name(),
            " | ",
            knob.risk.name(),
            " | ",
            knob.summary,
            " |\n",
        ];
        index.extend(row);
    }
    pages.insert("docs/knobs/README.md".to_owned(), index);
    for (name, page) in rungwise_knobs::pages() {
        pages.insert(format!("docs/knobs/{name}"), page);
    }
}

/// The command-line reference: `--help` of every verb, as the binary prints it.
fn reference(binary: &Binary) -> Result<String> {
    let mut text = String::from(
        "# Command line\n\nWritten by `cargo xtask docs` from the binary's own `--help`; change the \
         doc comments of the requests in `crates/verbs/src`.\nExit codes: 0 done, 1 measured failure, 2 usage \
         or tool error, 3 inconclusive, 4 precondition missing,\n5 rollback incomplete, 130 interrupted \
         after rollback.\n",
    );
    for verb in verbs(binary)? {
        let title = [&["rungwise".to_owned()], verb.as_slice()]
            .concat()
            .join(" ");
        let mut args: Vec<&str> = verb.iter().map(String::as_str).collect();
        args.push("--help");
        let help = binary.run(&args)?;
        text.extend([
            "\n## `",
            &title,
            "`\n\n```text\n",
            help.trim_end(),
            "\n```\n",
        ]);
    }
    Ok(text)
}

/// Every verb and verb of a verb, top first, in the order of the help.
fn verbs(binary: &Binary) -> Result<Vec<Vec<String>>> {
    let mut found = vec![Vec::new()];
    let mut next = 0;
    while let Some(verb) = found.get(next).cloned() {
        let mut args: Vec<&str> = verb.iter().map(String::as_str).collect();
        args.push("--help");
        let below = commands(&binary.run(&args)?);
        next += 1;
        let deeper = below
            .into_iter()
            .map(|name| [verb.as_slice(), &[name]].concat());
        found.splice(next..next, deeper);
    }
    Ok(found)
}

/// The names under `Commands:` in a help text of clap, without `help` itself.
fn commands(help: &str) -> Vec<String> {
    help.lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        // A wrapped description is indented further.
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

fn for_packagers(tree: &Tree, binary: &Binary) -> Result<()> {
    let verbs = verbs(binary)?;
    let offered = |name: &str| verbs.iter().any(|verb| verb.len() == 1 && verb[0] == name);
    if !offered("man") || !offered("completions") {
        eprintln!("xtask: no man pages and completions: the binary does not print them");
        return Ok(());
    }
    for verb in &verbs {
        let name = [&["rungwise".to_owned()], verb.as_slice()]
            .concat()
            .join("-");
        let mut args = vec!["man"];
        args.extend(verb.iter().map(String::as_str));
        tree.write(format!("target/dist/man/{name}.1"), &binary.run(&args)?)?;
    }
    for shell in SHELLS {
        let text = binary.run(&["completions", shell])?;
        tree.write(format!("target/dist/completions/rungwise.{shell}"), &text)?;
    }
    eprintln!("xtask: wrote target/dist/man and target/dist/completions");
    Ok(())
}

/// The built program.
struct Binary(PathBuf);

impl Binary {
    fn build(tree: &Tree) -> Result<Self> {
        let out = tree
            .cargo()
            .args([
                "build",
                "--quiet",
                "--package",
                "rungwise",
                // With both packages, cargo chooses the same features as for the tests, so nothing is built twice.
                "--package",
                "xtask",
                "--message-format",
                "json-render-diagnostics",
            ])
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run cargo build")?;
        if !out.status.success() {
            bail!("cannot build rungwise: see the messages above");
        }
        String::from_utf8_lossy(&out.stdout)
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .filter(|message| message["target"]["name"] == "rungwise")
            .find_map(|message| message["executable"].as_str().map(PathBuf::from))
            .map(Self)
            .context("cannot find the built rungwise: cargo named no executable")
    }

    fn run(&self, args: &[&str]) -> Result<String> {
        let out = Command::new(&self.0)
            .args(args)
            .env("COLUMNS", COLUMNS)
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot run {}", self.0.display()))?;
        if !out.status.success() {
            bail!(
                "`rungwise {}` ended with {}: {}",
                args.join(" "),
                out.status,
                String::from_utf8_lossy(&out.stderr)
            );
        }
        // clap pads some lines; trailing blanks would only make diffs noisy.
        let text = String::from_utf8_lossy(&out.stdout);
        Ok(text
            .lines()
            .map(|line| line.trim_end().to_owned() + "\n")
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_are_read_from_a_help_text() {
        let help = "Top\n\nUsage: x\n\nCommands:\n  tune  Climb a ladder\n          on a service\n  load  Drive\n  help  Print\n\nOptions:\n  -q  Quiet\n";
        assert_eq!(commands(help), ["tune", "load"]);
        assert!(commands("no commands here").is_empty());
    }
}
