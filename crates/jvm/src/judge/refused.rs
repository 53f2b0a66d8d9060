//! Values that lie within the bounds that a JVM prints, and at which it ends all the same when it starts: what its collector
//! and its code cache check for themselves. Each was given to the JVMs of the tables (8u504, 11.0.13, 17.0.15, 21.0.8, 25.0.3).

use super::{Case, Collector};
use crate::release::Release;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// Why the JVM ends at this value of the flag, which is of its type and within its bounds.
pub(super) fn why(case: &Case, name: &str, text: &str) -> Option<String> {
    let number = case.line.number(name);
    let (collector, _) = case.collector();
    let is = |wanted: u64| number == Some(wanted);
    match name {
        "ShenandoahGCMode" if collector == Collector::Shenandoah => {
            let (modes, diagnostic) = modes(case.release);
            named(case, text, modes, diagnostic)
        }
        "ShenandoahGCHeuristics" if collector == Collector::Shenandoah => named(
            case,
            text,
            &["adaptive", "static", "compact"],
            &["aggressive"],
        ),
        "ObjectAlignmentInBytes" if number.is_some_and(|bytes| !bytes.is_power_of_two()) => {
            Some(format!("'{text}' is no power of two"))
        }
        // `InitialCodeCacheSize` is 2496 KiB where nothing says otherwise.
        "ReservedCodeCacheSize" if number.is_some_and(|bytes| bytes > 2 * GIB) => {
            Some("a code cache has 2048 MiB at most".to_owned())
        }
        "ReservedCodeCacheSize"
            if number.is_some_and(|bytes| bytes < 2496 << 10)
                && case.line.given("InitialCodeCacheSize").is_none() =>
        {
            Some("it is less than InitialCodeCacheSize, 2496 KiB".to_owned())
        }
        "ParallelGCThreads"
            if is(0) && !matches!(collector, Collector::Serial | Collector::Epsilon) =>
        {
            Some(format!("{collector} has one thread at least"))
        }
        // One for each of the two compilers, unless a mode leaves one of them out (JDK 17 and later).
        "CICompilerCount"
            if number.is_some_and(|count| count < 2)
                && case.line.given("TieredStopAtLevel").is_none()
                && case.line.given("CompilationMode").is_none()
                && case.line.switch("TieredCompilation") != Some(false)
                && case.line.option("-Xint").is_none() =>
        {
            Some("tiered compilation has two threads at least".to_owned())
        }
        "GCPauseIntervalMillis"
            if collector == Collector::G1 && case.line.given("MaxGCPauseMillis").is_none() =>
        {
            Some("it cannot be set without MaxGCPauseMillis".to_owned())
        }
        // Later releases have the bound in their lists.
        "MaxGCPauseMillis" if is(0) && collector == Collector::G1 && case.release <= Release(8) => {
            Some("a goal has 1 ms at least".to_owned())
        }
        "SurvivorRatio" if is(0) && case.release <= Release(8) => {
            Some("a ratio is 1 at least".to_owned())
        }
        "NewRatio"
            if is(0)
                && !matches!(
                    collector,
                    Collector::G1 | Collector::Z | Collector::Shenandoah | Collector::Epsilon
                ) =>
        {
            Some("a ratio is 1 at least".to_owned())
        }
        _ => None,
    }
}

/// Why the JVM ends at this size of `-Xmx` or `-Xmn`.
pub(super) fn why_of_size(case: &Case, option: &str, bytes: u64) -> Option<&'static str> {
    match (option, bytes) {
        ("-Xmx" | "-Xmn", 0) => Some("it has to be more than nothing"),
        ("-Xmx", ..) if bytes < 2 * MIB && case.release > Release(8) => {
            Some("a heap has 2 MiB at least")
        }
        _ => None,
    }
}

/// Modes of Shenandoah, and those that are for its developers. `iu` went with JDK 24, with which `generational` came
/// (JEP 404, experimental up to 24).
fn modes(release: Release) -> (&'static [&'static str], &'static [&'static str]) {
    let modes: &[&str] = if release >= Release(24) {
        &["satb", "generational"]
    } else {
        &["satb", "iu"]
    };
    (modes, &["passive"])
}

fn named(case: &Case, text: &str, names: &[&str], diagnostic: &[&str]) -> Option<String> {
    if names.contains(&text) {
        return None;
    }
    if diagnostic.contains(&text) {
        let locked = !case.line.is_on("UnlockDiagnosticVMOptions");
        return locked.then(|| format!("{text} needs -XX:+UnlockDiagnosticVMOptions"));
    }
    Some(format!("'{text}' is none of {}", names.join(", ")))
}
