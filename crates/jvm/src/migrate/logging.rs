//! GC logging: the flags of JDK 8 as one `-Xlog` of JDK 9 and newer.

use rungwise_model::check::Grade;

use super::OptionChange;
use crate::command_line::{CommandLine, Given, Origin};
use crate::release::Release;

/// Flags that print, and the selection of `-Xlog` that prints the same. An empty one needs nothing: unified logs hold it anyway.
const SELECTIONS: &[(&str, &str)] = &[
    ("PrintGC", "gc"),
    ("PrintGCDetails", "gc*"),
    ("PrintGCCause", ""),
    ("PrintGCID", ""),
    ("PrintGCDateStamps", ""),
    ("PrintGCTimeStamps", ""),
    ("PrintHeapAtGC", "gc+heap=trace"),
    ("PrintHeapAtGCExtended", "gc+heap=trace"),
    ("PrintHeapAtSIGBREAK", ""),
    ("PrintTenuringDistribution", "gc+age=trace"),
    ("PrintGCApplicationStoppedTime", "safepoint"),
    ("PrintGCApplicationConcurrentTime", "safepoint"),
    ("PrintSafepointStatistics", "safepoint=debug"),
    ("PrintSafepointStatisticsCount", "safepoint=debug"),
    ("PrintSafepointStatisticsTimeout", "safepoint=debug"),
    ("PrintReferenceGC", "gc+ref*=debug"),
    ("PrintAdaptiveSizePolicy", "gc+ergo*=trace"),
    ("PrintPromotionFailure", "gc+promotion=debug"),
    ("PrintPLAB", "gc+plab=trace"),
    ("PrintOldPLAB", "gc+plab=trace"),
    ("PrintTLAB", "gc+tlab=trace"),
    ("PrintParallelOldGCPhaseTimes", "gc+phases=trace"),
    ("PrintGCTaskTimeStamps", "gc+task*=debug"),
    ("PrintTaskqueue", "gc+task+stats=trace"),
    ("PrintTerminationStats", "gc+task+stats=debug"),
    (
        "PrintStringDeduplicationStatistics",
        "gc+stringdedup*=debug",
    ),
    ("PrintJNIGCStalls", "gc+jni=debug"),
    ("PrintStringTableStatistics", ""),
    ("PrintFLSStatistics", ""),
    ("PrintFLSCensus", ""),
    ("PrintCMSStatistics", ""),
    ("PrintCMSInitiationStatistics", ""),
    ("PrintClassHistogramBeforeFullGC", "gc+classhisto*=trace"),
    ("PrintClassHistogramAfterFullGC", "gc+classhisto*=trace"),
    ("TraceMetadataHumongousAllocation", "gc+metaspace*=debug"),
    ("G1PrintHeapRegions", "gc+region=trace"),
    ("G1PrintRegionLivenessInfo", "gc+liveness=trace"),
    ("G1SummarizeConcMark", "gc+marking=trace"),
    ("G1SummarizeRSetStats", "gc+remset*=trace"),
    ("G1TraceConcRefinement", "gc+refine=debug"),
    ("G1TraceEagerReclaimHumongousObjects", "gc+humongous=debug"),
    ("G1TraceStringSymbolTableScrubbing", "gc+stringtable=trace"),
    ("TraceGen0Time", "gc+heap+exit=info"),
    ("TraceGen1Time", "gc+heap+exit=info"),
];

/// Flags that steer the file of `-Xloggc`.
const ROTATION: [&str; 3] = [
    "UseGCLogFileRotation",
    "NumberOfGCLogFiles",
    "GCLogFileSize",
];

const SOURCE: &str = "JEP 271 (unified GC logging, JDK 9); Oracle, The java Command, \"Convert GC Logging Flags to Xlog\"";

/// It is part of the GC logging of JDK 8.
pub(super) fn is_logging(given: &Given) -> bool {
    let name = given
        .sets
        .first()
        .map_or("", |setting| setting.name.as_str());
    SELECTIONS.iter().any(|(flag, _)| *flag == name)
        || ROTATION.contains(&name)
        || given.written.starts_with("-Xloggc:")
        || given.written == "-verbosegc"
}

/// All of them as one step.
pub(super) fn step(line: &CommandLine, from: Release) -> OptionChange {
    let out = line.options.iter().filter(|given| is_logging(given));
    let out = out.map(|given| given.written.clone()).collect();
    let mut selections: Vec<&str> = Vec::new();
    for (flag, selection) in SELECTIONS {
        // A count or a timeout is no switch; given at all, it was wanted.
        let wanted = line
            .setting(flag)
            .is_some_and(|setting| setting.switch() != Some(false));
        if wanted && !selection.is_empty() && !selections.contains(selection) {
            selections.push(selection);
        }
    }
    let named = line
        .option("-Xloggc:")
        .and_then(|given| given.written.strip_prefix("-Xloggc:"));
    let unnamed = named.is_none() && is_of_a_file(line, from);
    let file = named.or(unnamed.then_some(UNNAMED));
    let asked = selections
        .iter()
        .any(|selection| selection.starts_with("gc"));
    if !asked && (file.is_some() || line.option("-verbosegc").is_some()) {
        selections.insert(0, "gc");
    }
    // `gc*` at info holds `gc` too.
    if selections.contains(&"gc*") {
        selections.retain(|selection| *selection != "gc");
    }
    if selections.contains(&"safepoint=debug") {
        selections.retain(|selection| *selection != "safepoint");
    }
    let into = if selections.is_empty() {
        Vec::new()
    } else {
        vec![unified(line, &selections, file, from)]
    };
    let mut why = "GC logging is unified since JDK 9: one -Xlog selects what is logged, where, and with which timestamps".to_owned();
    if unnamed && !into.is_empty() {
        why += "; the log header does not name its own file: write the name of yours instead of ";
        why += UNNAMED;
    }
    OptionChange {
        out,
        into,
        why,
        source: SOURCE,
        sure: Grade::High,
    }
}

/// Stands for the file of a log whose header does not name it.
const UNNAMED: &str = "gc.log";

/// JDK 8 writes its options at the head of the file of `-Xloggc`, which is no flag and so not among them.
fn is_of_a_file(line: &CommandLine, from: Release) -> bool {
    from <= Release(8) && line.options.iter().any(|given| given.origin == Origin::Log)
}

fn unified(line: &CommandLine, selections: &[&str], file: Option<&str>, from: Release) -> String {
    let what = selections.join(",");
    let dated = line.is_on("PrintGCDateStamps");
    // JDK 8 stamps with the uptime where nothing else is said.
    let stamps = if dated {
        "time,uptime,level,tags"
    } else {
        "uptime,level,tags"
    };
    let Some(file) = file else {
        // To standard output, where the stamps without a date are those that `-Xlog` prints by itself.
        let stamps = if dated {
            format!("::{stamps}")
        } else {
            String::new()
        };
        return format!("-Xlog:{what}{stamps}");
    };
    let rotation = if line.is_on("UseGCLogFileRotation") {
        let files = line.number("NumberOfGCLogFiles").unwrap_or(5);
        let size = line
            .setting("GCLogFileSize")
            .map_or("20m", |setting| setting.text());
        format!(":filecount={files},filesize={size}")
    } else if from <= Release(8) {
        // As before: one file that grows. JDK 9 and newer would rotate.
        ":filecount=0".to_owned()
    } else {
        String::new()
    };
    // A colon would end the name; unified logging lets it be quoted.
    let file = if file.contains(':') {
        format!("\"{file}\"")
    } else {
        file.to_owned()
    };
    format!("-Xlog:{what}:file={file}:{stamps}{rotation}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn into(line: &str) -> Vec<String> {
        step(&CommandLine::parse(line), Release(8)).into
    }

    #[test]
    fn the_flags_of_jdk_8_become_one_option() {
        let line = "-XX:+PrintGCDetails -XX:+PrintGCDateStamps -XX:+PrintTenuringDistribution \
            -XX:+PrintGCApplicationStoppedTime -Xloggc:gc.log -XX:+UseGCLogFileRotation -XX:NumberOfGCLogFiles=9 \
            -XX:GCLogFileSize=64m";
        let option = "-Xlog:gc*,gc+age=trace,safepoint:file=gc.log:time,uptime,level,tags:filecount=9,filesize=64m";
        assert_eq!(into(line), [option]);
    }

    #[test]
    fn without_a_file_it_goes_to_the_same_place() {
        assert_eq!(into("-XX:+PrintGC"), ["-Xlog:gc"]);
        assert_eq!(into("-XX:+PrintGC -XX:+PrintGCDetails"), ["-Xlog:gc*"]);
        assert_eq!(into("-verbosegc"), ["-Xlog:gc"]);
        assert_eq!(
            into("-XX:+PrintGCDetails -XX:+PrintGCDateStamps"),
            ["-Xlog:gc*::time,uptime,level,tags"]
        );
    }

    #[test]
    fn the_header_of_a_log_keeps_its_rotation_and_dates_and_leaves_the_file_to_be_named() {
        let header = "-XX:GCLogFileSize=4194304 -XX:NumberOfGCLogFiles=50 -XX:+PrintGC -XX:+PrintGCDateStamps \
            -XX:+PrintGCDetails -XX:+PrintGCTimeStamps -XX:+UseGCLogFileRotation -XX:+UseParallelGC";
        let step = step(&CommandLine::parse_printed(header, Origin::Log), Release(8));
        assert_eq!(
            step.into,
            ["-Xlog:gc*:file=gc.log:time,uptime,level,tags:filecount=50,filesize=4194304"]
        );
        assert!(step.why.contains("does not name"), "{}", step.why);
        let plain = CommandLine::parse_printed("-XX:+PrintGC -XX:+PrintGCTimeStamps", Origin::Log);
        assert_eq!(
            super::step(&plain, Release(8)).into,
            ["-Xlog:gc:file=gc.log:uptime,level,tags:filecount=0"]
        );
    }

    #[test]
    fn a_file_alone_means_the_short_log_that_does_not_rotate() {
        assert_eq!(
            into("-Xloggc:gc.log"),
            ["-Xlog:gc:file=gc.log:uptime,level,tags:filecount=0"]
        );
        let quoted = into("-Xloggc:a:b.log");
        assert!(quoted[0].contains("file=\"a:b.log\":"), "{}", quoted[0]);
    }

    #[test]
    fn what_is_switched_off_or_always_there_needs_nothing() {
        assert_eq!(into("-XX:-PrintGCDetails -XX:+PrintGCCause"), [""; 0]);
    }
}
