//! What takes the place of an option that a newer JDK no longer has, one entry per family of options.

use rungwise_model::check::Grade;

use super::Context;
use crate::command_line::Given;
use crate::judge::Collector;
use crate::release::Release;

/// What to write instead.
pub(super) struct Rule {
    /// Flags, by name; one that ends with `*` stands for all that begin so. Options that are no flags begin with `-`.
    names: &'static [&'static str],
    /// The new options; `None` if the rule does not apply here.
    pub(super) into: fn(&Context, &Given) -> Option<Vec<String>>,
    pub(super) why: &'static str,
    pub(super) source: &'static str,
    pub(super) sure: Grade,
}

/// The rules for an option; the first that applies is the one.
pub(super) fn matching(given: &Given) -> impl Iterator<Item = &'static Rule> {
    let flag = given
        .sets
        .first()
        .filter(|_| given.is_flag() || given.written.starts_with("-Xmn"));
    let name = flag.map_or(given.written.as_str(), |setting| setting.name.as_str());
    RULES.iter().filter(move |rule| {
        rule.names
            .iter()
            .any(|known| match known.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => name == *known,
            })
    })
}

/// A size, chosen for CMS, that keeps G1 from resizing its young generation, or from starting at all.
pub(super) fn is_wrong_for_g1(given: &Given) -> bool {
    let sizes = ["NewSize", "MaxNewSize", "NewRatio", "OldPLABSize"];
    given
        .sets
        .iter()
        .any(|setting| sizes.contains(&setting.name.as_str()))
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "one of the shapes that a rule may have"
)]
fn nothing(_: &Context, _: &Given) -> Option<Vec<String>> {
    Some(Vec::new())
}

/// Nothing, unless the flag was switched off: its opposite is what the new JDK does always.
fn renamed(given: &Given, to: &str) -> Option<Vec<String>> {
    let setting = given.sets.first()?;
    Some(vec![match setting.switch() {
        Some(true) => format!("-XX:+{to}"),
        Some(false) => format!("-XX:-{to}"),
        None => format!("-XX:{to}={}", setting.text()),
    }])
}

/// `1/3` of the memory is 33.3 percent: one decimal is as much as anybody means.
fn percentage(context: &Context, given: &Given, to: &str) -> Option<Vec<String>> {
    let fraction = given
        .sets
        .first()?
        .number()
        .filter(|fraction| *fraction > 0)?;
    let percent = format!("{:.1}", 100.0 / fraction as f64);
    // JDK 8 reads no fraction without its point.
    let percent = match context.to {
        Release(..=8) => &percent,
        _ => percent.trim_end_matches('0').trim_end_matches('.'),
    };
    Some(vec![format!("-XX:{to}={percent}")])
}

fn log(given: &Given, selection: &str) -> Option<Vec<String>> {
    let off = given.sets.first()?.switch() == Some(false);
    Some(if off {
        Vec::new()
    } else {
        vec![format!("-Xlog:{selection}")]
    })
}

/// G1 in the place of a collector that is gone; nothing if it was switched off anyway.
fn g1(context: &Context, given: &Given) -> Option<Vec<String>> {
    let off = given.sets.first().and_then(crate::Setting::switch) == Some(false);
    let gone = context.to_g1 || context.to >= Release(14);
    gone.then(|| {
        if off {
            Vec::new()
        } else {
            vec!["-XX:+UseG1GC".to_owned()]
        }
    })
}

const JEP_363: &str = "JEP 363 (CMS removed, JDK 14); HotSpot Garbage Collection Tuning Guide, G1";
const JEP_214: &str = "JEP 214 (GC combinations removed, JDK 9)";
const JEP_158: &str = "JEP 158 (unified JVM logging, JDK 9)";
const JEP_374: &str = "JEP 374 (biased locking off and deprecated, JDK 15; removed in 18)";

const RULES: &[Rule] = &[
    Rule {
        names: &["UseConcMarkSweepGC", "-Xconcgc"],
        into: g1,
        why: "CMS was removed in JDK 14. G1 has the same goal, short pauses with a mostly concurrent old generation, and \
            compacts; its pause goal is MaxGCPauseMillis (200 ms). For pauses below a few milliseconds, choose ZGC and give it \
            more heap",
        source: JEP_363,
        sure: Grade::Medium,
    },
    Rule {
        names: &["UseParNewGC"],
        into: |context, given| {
            let alone = context.collector == Collector::ParNew
                && given.sets.first()?.switch() == Some(true);
            // Alone it was a parallel young collection; the parallel collector is that.
            Some(if alone {
                vec!["-XX:+UseParallelGC".to_owned()]
            } else {
                Vec::new()
            })
        },
        why: "ParNew was the young collector of CMS and was removed with it; without CMS, the Parallel collector replaces it",
        source: JEP_214,
        sure: Grade::Medium,
    },
    Rule {
        names: &["-Xincgc", "-Xnoincgc", "CMSIncremental*", "-Xnoconcgc"],
        into: |context, given| {
            let incremental = given.written == "-Xincgc";
            Some(if incremental && context.to_g1 {
                vec!["-XX:+UseG1GC".to_owned()]
            } else {
                Vec::new()
            })
        },
        why: "incremental CMS was removed in JDK 9; G1 always works in increments",
        source: JEP_214,
        sure: Grade::Medium,
    },
    Rule {
        names: &["-Xmn*", "NewSize", "MaxNewSize", "NewRatio"],
        into: |context, _| context.to_g1.then(Vec::new),
        why: "a fixed young generation keeps G1 from meeting its pause goal; the size was tuned for CMS",
        source: "HotSpot Garbage Collection Tuning Guide, \"Garbage-First Garbage Collector Tuning\"",
        sure: Grade::Medium,
    },
    Rule {
        names: &["OldPLABSize"],
        into: |context, _| context.to_g1.then(Vec::new),
        why: "CMS counts this value in objects, G1 in words; G1 refuses to start below 256",
        source: "HotSpot share/gc/shared/jvmFlagConstraintsGC.cpp (MinPLABSizeBounds), share/gc/shared/plab.cpp",
        sure: Grade::High,
    },
    Rule {
        names: &[
            "CMSInitiatingOccupancyFraction",
            "UseCMSInitiatingOccupancyOnly",
            "CMSTriggerRatio",
            "CMSBootstrapOccupancy",
        ],
        into: nothing,
        why: "G1 decides when to start marking (adaptive IHOP, initially 45 %); a fraction of the CMS old generation does not \
            apply to the G1 heap",
        source: JEP_363,
        sure: Grade::Medium,
    },
    Rule {
        names: &[
            "CMSScavengeBeforeRemark",
            "CMSScheduleRemark*",
            "CMSMaxAbortablePrecleanTime",
            "CMSWaitDuration",
        ],
        into: nothing,
        why: "the remark of G1 does not scan the young generation, so emptying it first is unnecessary",
        source: JEP_363,
        sure: Grade::High,
    },
    Rule {
        names: &[
            "CMSClassUnloadingEnabled",
            "CMSPermGen*",
            "CMSParallelRemarkEnabled",
            "CMSParallelInitialMarkEnabled",
            "CMSConcurrentMTEnabled",
        ],
        into: nothing,
        why: "G1 unloads classes and marks in parallel by default",
        source: JEP_363,
        sure: Grade::High,
    },
    Rule {
        names: &["ParallelCMSThreads"],
        into: |_, given| renamed(given, "ConcGCThreads"),
        why: "ConcGCThreads sets the concurrent threads of every collector",
        source: "JDK 9 release notes; HotSpot special_jvm_flags",
        sure: Grade::High,
    },
    Rule {
        names: &[
            "CMS*",
            "UseCMS*",
            "ParGC*",
            "UseCMSBestFit",
            "BlockOffsetArrayUseUnallocatedBlock",
            "FLS*",
        ],
        into: nothing,
        why: "it controlled CMS, which was removed in JDK 14",
        source: JEP_363,
        sure: Grade::High,
    },
    Rule {
        names: &["PermSize", "MaxPermSize"],
        into: |context, _| (context.from >= Release(8)).then(Vec::new),
        why: "JDK 8 removed the permanent generation, so the flag already has no effect; a metaspace limit would be a new limit",
        source: "JEP 122 (remove the permanent generation, JDK 8)",
        sure: Grade::High,
    },
    Rule {
        names: &["PermSize"],
        into: |_, given| renamed(given, "MetaspaceSize"),
        why: "metaspace replaced the permanent generation in JDK 8; MetaspaceSize is the size at which its first collection starts",
        source: "JEP 122 (remove the permanent generation, JDK 8)",
        sure: Grade::Medium,
    },
    Rule {
        names: &["MaxPermSize"],
        into: |_, given| renamed(given, "MaxMetaspaceSize"),
        why: "metaspace replaced the permanent generation in JDK 8; it is outside the heap and unlimited by default. Classes take \
            about as much space there: check with jcmd PID VM.metaspace",
        source: "JEP 122 (remove the permanent generation, JDK 8)",
        sure: Grade::Medium,
    },
    Rule {
        names: &["UseParallelOldGC"],
        into: |_, given| {
            let on = given.sets.first()?.switch() == Some(true);
            Some(if on {
                vec!["-XX:+UseParallelGC".to_owned()]
            } else {
                Vec::new()
            })
        },
        why: "since JDK 15, UseParallelGC always collects the old generation in parallel",
        source: "JEP 366 (ParallelScavenge + SerialOld deprecated, JDK 14)",
        sure: Grade::High,
    },
    Rule {
        names: &["ZGenerational"],
        into: nothing,
        why: "since JDK 24, ZGC is always generational",
        source: "JEP 490",
        sure: Grade::High,
    },
    Rule {
        names: &["MaxRAMFraction", "DefaultMaxRAMFraction"],
        into: |context, given| percentage(context, given, "MaxRAMPercentage"),
        why: "percentages replaced fractions",
        source: "JDK-8186248 (JDK 10, 8u191)",
        sure: Grade::High,
    },
    Rule {
        names: &["MinRAMFraction"],
        into: |context, given| percentage(context, given, "MinRAMPercentage"),
        why: "percentages replaced fractions",
        source: "JDK-8186248 (JDK 10, 8u191)",
        sure: Grade::High,
    },
    Rule {
        names: &["InitialRAMFraction"],
        into: |context, given| percentage(context, given, "InitialRAMPercentage"),
        why: "percentages replaced fractions",
        source: "JDK-8186248 (JDK 10, 8u191)",
        sure: Grade::High,
    },
    Rule {
        names: &["UseCGroupMemoryLimitForHeap"],
        into: nothing,
        why: "the JVM detects the limits of its control group (UseContainerSupport)",
        source: "JDK-8146115 (JDK 10, 8u191)",
        sure: Grade::High,
    },
    Rule {
        names: &["ExplicitGCInvokesConcurrentAndUnloadsClasses"],
        into: |_, given| renamed(given, "ExplicitGCInvokesConcurrent"),
        why: "a concurrent collection always unloads classes",
        source: "JDK-8170388 (JDK 9)",
        sure: Grade::High,
    },
    Rule {
        names: &["CreateMinidumpOnCrash"],
        into: |_, given| renamed(given, "CreateCoredumpOnCrash"),
        why: "the flag was renamed",
        source: "JDK 9 release notes; HotSpot special_jvm_flags",
        sure: Grade::High,
    },
    Rule {
        names: &[
            "UseBiasedLocking",
            "BiasedLocking*",
            "UseOptoBiasInlining",
            "PrintBiasedLockingStatistics",
            "PrintPreciseBiasedLockingStatistics",
        ],
        into: nothing,
        why: "biased locking is off since JDK 15 and was removed in 18; measure services that lock a lot from one thread at a time",
        source: JEP_374,
        sure: Grade::Medium,
    },
    Rule {
        names: &[
            "AggressiveOpts",
            "UseFastAccessorMethods",
            "UseFastEmptyMethods",
            "UseStringCache",
            "UseSplitVerifier",
        ],
        into: nothing,
        why: "what it enabled is now the default, or was removed because it no longer helped",
        source: "JDK 8 to 12 release notes",
        sure: Grade::Medium,
    },
    Rule {
        names: &["UseCompressedStrings"],
        into: nothing,
        why: "strings are compact by default since JDK 9 (CompactStrings)",
        source: "JEP 254 (JDK 9)",
        sure: Grade::High,
    },
    Rule {
        names: &["UnlockCommercialFeatures", "FlightRecorder"],
        into: nothing,
        why: "the Flight Recorder is free and needs no switch since JDK 11; start it with -XX:StartFlightRecording or jcmd",
        source: "JEP 328 (JDK 11)",
        sure: Grade::High,
    },
    Rule {
        names: &["UseSharedSpaces"],
        into: |_, given| {
            let off = given.sets.first()?.switch() == Some(false);
            Some(vec![
                if off { "-Xshare:off" } else { "-Xshare:auto" }.to_owned(),
            ])
        },
        why: "-Xshare controls class data sharing",
        source: "JDK 18 and 19 release notes",
        sure: Grade::High,
    },
    Rule {
        names: &["RequireSharedSpaces"],
        into: |_, given| {
            let on = given.sets.first()?.switch() == Some(true);
            Some(if on {
                vec!["-Xshare:on".to_owned()]
            } else {
                Vec::new()
            })
        },
        why: "-Xshare controls class data sharing",
        source: "JDK 18 and 19 release notes",
        sure: Grade::High,
    },
    Rule {
        names: &["UseAppCDS"],
        into: nothing,
        why: "application classes are shared without a switch since JDK 11",
        source: "JDK 11 release notes",
        sure: Grade::High,
    },
    Rule {
        names: &["TraceClassLoading"],
        into: |_, given| log(given, "class+load"),
        why: "tracing moved to unified logging",
        source: JEP_158,
        sure: Grade::High,
    },
    Rule {
        names: &["TraceClassUnloading"],
        into: |_, given| log(given, "class+unload"),
        why: "tracing moved to unified logging",
        source: JEP_158,
        sure: Grade::High,
    },
    Rule {
        names: &["TraceClassResolution"],
        into: |_, given| log(given, "class+resolve=debug"),
        why: "tracing moved to unified logging",
        source: JEP_158,
        sure: Grade::High,
    },
    Rule {
        names: &["TraceExceptions"],
        into: |_, given| log(given, "exceptions"),
        why: "tracing moved to unified logging",
        source: JEP_158,
        sure: Grade::High,
    },
    Rule {
        names: &["TraceBiasedLocking"],
        into: |context, given| {
            if context.to >= Release(18) {
                Some(Vec::new())
            } else {
                log(given, "biasedlocking")
            }
        },
        why: "tracing moved to unified logging; biased locking was removed in JDK 18",
        source: JEP_158,
        sure: Grade::High,
    },
    Rule {
        names: &["PrintCompressedOopsMode"],
        into: |_, given| log(given, "gc+heap+coops"),
        why: "printing moved to unified logging",
        source: JEP_158,
        sure: Grade::High,
    },
    Rule {
        names: &["MaxTenuringThreshold"],
        into: |_, given| {
            (given.sets.first()?.number()? > 15)
                .then(|| vec!["-XX:MaxTenuringThreshold=15".to_owned()])
        },
        why: "an object's age has four bits",
        source: "HotSpot markWord.hpp",
        sure: Grade::High,
    },
    Rule {
        names: &["-Xverify:none", "-noverify"],
        into: nothing,
        why: "classes should be verified; for a faster start use class data sharing (-XX:SharedArchiveFile)",
        source: "JDK-8214719 (deprecated, JDK 13)",
        sure: Grade::High,
    },
    Rule {
        names: &[
            "-d64",
            "-Xoss*",
            "-Xsqnopause",
            "-Xdebug",
            "-Xfuture",
            "-Xprof",
        ],
        into: nothing,
        why: "it no longer has any effect",
        source: "JDK 9 to 25 release notes",
        sure: Grade::High,
    },
    Rule {
        names: &["--illegal-access=*"],
        into: nothing,
        why: "JDK internals are closed since JDK 17; open what the service needs with --add-opens MODULE/PACKAGE=ALL-UNNAMED",
        source: "JEP 403 (JDK 17)",
        sure: Grade::Medium,
    },
    Rule {
        names: &["-Djava.endorsed.dirs=*", "-Djava.ext.dirs=*"],
        into: nothing,
        why: "JDK 9 removed the endorsed and extension directories; put the libraries on the class path",
        source: "JEP 220 (JDK 9)",
        sure: Grade::Medium,
    },
];
