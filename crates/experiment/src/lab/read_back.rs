//! Whether a running JVM has the options that it was started with: it rounds sizes, switches off what its machine lacks, and ignores
//! options of other JDKs without a word.

use std::path::Path;

use rungwise_host::hotspot::Jvm;
use rungwise_host::{files, process};
use rungwise_jvm::{CommandLine, Given, Origin, Setting};
use rungwise_probes::jvm::READS_WITHIN;

use crate::scenario::JavaCommand;

/// Sizes of the heap are multiples of a region or a page; Parallel, ZGC and transparent huge pages need 2 MiB.
const HEAP_STEP: u64 = 2 << 20;
/// Other sizes are multiples of the largest page of a CPU that runs `HotSpot`: 64 KiB (arm64).
const PAGE: u64 = 64 << 10;
const HEAP_SIZES: [&str; 4] = ["MaxHeapSize", "InitialHeapSize", "NewSize", "MaxNewSize"];
const ARCHIVE: &str = "-XX:SharedArchiveFile=";
/// In KiB.
const STACK_SIZE: &str = "ThreadStackSize";

/// Compares the JVM with what the settings of its command asked for.
///
/// # Errors
///
/// A value that differs, with both; an option that the JVM does not list; a JVM that does not answer.
pub(super) fn check(jvm: &Jvm, java: &JavaCommand) -> Result<(), String> {
    if let Some(program) = &java.program {
        let wanted = process::locate(program);
        let runs = process::executable(jvm.pid()).map_err(|error| error.to_string())?;
        if wanted.as_ref() != Some(&runs) {
            return Err(format!(
                "the service runs {} and not {program}; name the java program itself, not a script around it",
                runs.display()
            ));
        }
    }
    if java.added.is_empty() {
        return Ok(());
    }
    let ask = |command| {
        let answer = jvm.command(command, READS_WITHIN);
        answer.map_err(|error| error.to_string())
    };
    let flags = CommandLine::parse_printed(&ask("VM.flags")?, Origin::PerfData);
    let line = ask("VM.command_line")?;
    if let Some(archive) = java
        .added
        .iter()
        .find_map(|option| option.strip_prefix(ARCHIVE))
    {
        maps(jvm.pid(), archive)?;
    }
    java.added
        .iter()
        .try_for_each(|option| compare(option, &flags, &line))
}

/// A JVM starts without an archive that it cannot use, and says nothing.
fn maps(pid: u32, archive: &str) -> Result<(), String> {
    let read = files::read(Path::new(&format!("/proc/{pid}/maps")));
    let maps = read.map_err(|error| error.to_string())?;
    let is_mapped = process::locate(archive).is_some_and(|file| {
        let file = file.to_string_lossy().into_owned();
        String::from_utf8_lossy(&maps)
            .lines()
            .any(|line| line.ends_with(&file))
    });
    if is_mapped {
        return Ok(());
    }
    Err(format!(
        "the JVM did not map the archive {archive}: it belongs to another JDK or class path, or cannot be read; write it again"
    ))
}

/// One option against the flags of the JVM and its own command line.
fn compare(option: &str, flags: &CommandLine, line: &str) -> Result<(), String> {
    let given = Given::new(option, Origin::Line);
    if given.sets.is_empty() && !line.split_whitespace().any(|word| word == option) {
        return Err(format!("the command line of the JVM lacks {option}"));
    }
    for wanted in &given.sets {
        let name = &wanted.name;
        let found = flags.setting(name).ok_or_else(|| {
            format!(
                "the JVM does not list {name} among its flags, so this JDK ignores {option}; see `rungwise jvm flags`"
            )
        })?;
        if !is_same(wanted, found, step(name, flags)) {
            return Err(format!(
                "the JVM does not do what {option} asks for: {name} is {} there, and {} was asked for",
                shown(found),
                shown(wanted)
            ));
        }
    }
    Ok(())
}

/// What a flag is rounded to.
fn step(name: &str, flags: &CommandLine) -> u64 {
    if HEAP_SIZES.contains(&name) {
        let regions = ["G1HeapRegionSize", "ShenandoahRegionSize"];
        let region = regions
            .iter()
            .filter_map(|region| flags.number(region))
            .max();
        region.unwrap_or(0).max(HEAP_STEP)
    } else if name == STACK_SIZE {
        PAGE / 1024
    } else if name.ends_with("Size") {
        PAGE
    } else {
        1
    }
}

fn is_same(wanted: &Setting, found: &Setting, step: u64) -> bool {
    match (wanted.number(), found.number()) {
        (Some(wanted), Some(found)) => wanted.abs_diff(found) < step,
        _ => wanted.switch() == found.switch() && wanted.text() == found.text(),
    }
}

fn shown(setting: &Setting) -> String {
    match setting.switch() {
        Some(true) => "on".to_owned(),
        Some(false) => "off".to_owned(),
        None => setting.text().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As JDK 17 prints it, under G1.
    const FLAGS: &str = "-XX:CICompilerCount=2 -XX:ConcGCThreads=1 -XX:G1HeapRegionSize=4194304 -XX:InitialHeapSize=104857600 \
        -XX:MaxHeapSize=104857600 -XX:MaxNewSize=62914560 -XX:MetaspaceSize=67108864 -XX:ThreadStackSize=512 -XX:+UseG1GC -XX:-UseNUMA ";

    fn why(option: &str) -> Option<String> {
        let flags = CommandLine::parse_printed(FLAGS, Origin::PerfData);
        compare(
            option,
            &flags,
            "jvm_args: -Xms100m -Dx=1\njava_command: Main\n",
        )
        .err()
    }

    #[test]
    fn values_are_compared_as_the_jvm_rounds_them() {
        for option in [
            "-Xms100m",
            "-Xmx99m",
            "-XX:MetaspaceSize=64m",
            "-Xss512k",
            "-XX:+UseG1GC",
            "-Dx=1",
        ] {
            assert_eq!(why(option), None, "{option}");
        }
        for (option, words) in [
            ("-Xmx96m", "MaxHeapSize is 104857600 there, and 96m"),
            ("-XX:+UseNUMA", "UseNUMA is off there, and on"),
            (
                "-XX:+UseConcMarkSweepGC",
                "does not list UseConcMarkSweepGC",
            ),
            ("-XX:MetaspaceSize=63m", "MetaspaceSize"),
            ("-Xss1m", "ThreadStackSize is 512 there, and 1024"),
            ("-Dx=2", "lacks -Dx=2"),
        ] {
            let why = why(option).unwrap_or_default();
            assert!(why.contains(words), "{option}: {why}");
        }
    }
}
