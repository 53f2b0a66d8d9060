//! Values that lie within the bounds that a JVM prints, and at which it ends all the same when it starts: what its collector
//! and its code cache check for themselves. Each was given to the JVMs of the tables (8u504, 11.0.13, 17.0.15, 21.0.8, 25.0.3).

use super::spelled::Taken;
use super::{Case, Collector, recording};
use crate::command_line::{Given, Setting};
use crate::release::Release;
use crate::table::Type;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// Why the JVM ends at this value of the flag, which is of its type and within its bounds.
pub(super) fn why(case: &Case, name: &str, text: &str) -> Option<String> {
    let number = case.line.number(name);
    let (collector, _) = case.collector();
    let (old, is) = (case.release <= Release(8), |wanted: u64| {
        number == Some(wanted)
    });
    let below = |bound: u64| number.is_some_and(|number| number < bound);
    let above = |bound: u64| number.is_some_and(|number| number > bound);
    let given = |name: &str| case.line.given(name).is_some();
    let why = match name {
        "ShenandoahGCMode" if collector == Collector::Shenandoah => {
            let (modes, diagnostic) = modes(case.release);
            return named(case, text, modes, diagnostic);
        }
        "ShenandoahGCHeuristics" if collector == Collector::Shenandoah => {
            return named(
                case,
                text,
                &["adaptive", "static", "compact"],
                &["aggressive"],
            );
        }
        "ObjectAlignmentInBytes" if number.is_some_and(|bytes| !bytes.is_power_of_two()) => {
            return Some(format!("'{text}' is not a power of two"));
        }
        "LargePageSizeInBytes"
            if case.release >= Release(25)
                && number.is_some_and(|bytes| bytes != 0 && !bytes.is_power_of_two()) =>
        {
            return Some(format!("'{text}' is not a power of two"));
        }
        "ReservedCodeCacheSize" if above(2 * GIB) => "the maximum code cache is 2048 MiB",
        "ReservedCodeCacheSize" if below(LEAST_CODE) && !given("InitialCodeCacheSize") => {
            "it is less than InitialCodeCacheSize, 2496 KiB"
        }
        "InitialCodeCacheSize"
            if above(
                case.line
                    .number("ReservedCodeCacheSize")
                    .unwrap_or(48 * MIB),
            ) =>
        {
            "it is more than ReservedCodeCacheSize, 48 MiB by default"
        }
        "NonNMethodCodeHeapSize" => return segments(case),
        "ParallelGCThreads"
            if is(0) && !matches!(collector, Collector::Serial | Collector::Epsilon) =>
        {
            return Some(format!("{collector} needs at least one thread"));
        }
        "CICompilerCount" if old && text.starts_with('-') => "it is negative",
        "CICompilerCount" => return compilers(case, number?),
        "ConcGCThreads" if is(0) && collector == Collector::Z => "ZGC needs at least one thread",
        "OnStackReplacePercentage"
            if !old
                && !above(
                    case.line
                        .number("InterpreterProfilePercentage")
                        .unwrap_or(33),
                ) =>
        {
            "it is not more than InterpreterProfilePercentage, 33 by default"
        }
        "CompileThreshold" if !old && text.starts_with('-') => "it is negative",
        "GCPauseIntervalMillis" if collector == Collector::G1 && !given("MaxGCPauseMillis") => {
            "it cannot be set without MaxGCPauseMillis"
        }
        // Later releases have the bound in their lists.
        "MaxGCPauseMillis" if is(0) && collector == Collector::G1 && old => {
            "the minimum pause goal is 1 ms"
        }
        "SurvivorRatio" if is(0) && old => "the minimum ratio is 1",
        "StringTableSize" if old && below(1009) => "it is less than 1009",
        "StringDeduplicationAgeThreshold" if old && (is(0) || above(15)) => "it is outside 1 to 15",
        "InitialTenuringThreshold" if old && above(15) => "it is more than 15",
        "InitialTenuringThreshold"
            if !old
                && collector == Collector::Parallel
                && above(case.line.number("MaxTenuringThreshold").unwrap_or(15)) =>
        {
            "it is more than MaxTenuringThreshold"
        }
        "CompressedClassSpaceSize" if old && above(3 * GIB) => "it is more than 3 GiB",
        "MetaspaceSize" if old && is(0) => "it is 0",
        "MaxMetaspaceSize" if below(LEAST_METASPACE + 1) => "the JVM's own classes do not fit",
        "NewRatio"
            if is(0)
                && !matches!(
                    collector,
                    Collector::G1 | Collector::Z | Collector::Shenandoah | Collector::Epsilon
                ) =>
        {
            "the minimum ratio is 1"
        }
        "ThreadStackSize" if !is(0) && below(least_stack(case.release)) => {
            return Some(too_small(case.release));
        }
        "CompilerThreadStackSize" if !old && !is(0) && below(LEAST_OTHER_STACK) => {
            return Some(format!(
                "the minimum stack size of such threads is {LEAST_OTHER_STACK}k"
            ));
        }
        "TLABSize" if !old && !is(0) && below(case.line.number("MinTLABSize").unwrap_or(2048)) => {
            "it is less than MinTLABSize, 2 KiB by default"
        }
        // The reserved end of a thread's buffer on x86-64.
        "MinTLABSize" if !old && below(576) => {
            "it is less than the reserved end of the buffer, 576 bytes"
        }
        "NativeMemoryTracking" => return among(text, &["off", "summary", "detail"]),
        "CompilationMode" => {
            return among(
                text,
                &[
                    "default",
                    "quick-only",
                    "high-only",
                    "high-only-quick-internal",
                ],
            );
        }
        "AOTMode" if text == "record" && !given("AOTConfiguration") && !given("AOTCacheOutput") => {
            "it needs AOTConfiguration"
        }
        "AOTMode" if text == "create" && !given("AOTConfiguration") => "it needs AOTConfiguration",
        "AOTMode" => return among(text, &["off", "record", "create", "auto", "on"]),
        "RecordDynamicDumpInfo" if case.line.is_on(name) && given("ArchiveClassesAtExit") => {
            "it cannot be combined with ArchiveClassesAtExit"
        }
        "ExtendedDTraceProbes" if old && case.line.is_on(name) => {
            "JDK 8 supports it on Solaris only"
        }
        "AutoCreateSharedArchive" if case.line.is_on(name) && !given("SharedArchiveFile") => {
            "it needs SharedArchiveFile"
        }
        "CompileOnly"
            if case.release >= Release(25)
                && !text.contains("::")
                && text
                    .split(',')
                    .any(|pattern| pattern.matches('.').count() > 1) =>
        {
            "a pattern has one '.', between class and method: java/lang/String.indexOf"
        }
        "InitialHeapSize" if !is(0) && below(MIB) => "the minimum initial heap is 1 MiB",
        "MaxHeapSize" if collector == Collector::Z && above(16 << 40) => {
            "the maximum heap of ZGC is 16 TiB"
        }
        "MaxHeapSize" => return of_heap(case.release, number?).map(str::to_owned),
        _ => {
            return match recording::taken(case, name, text)? {
                Taken::No(why) => Some(why),
                _ => None,
            };
        }
    };
    Some(why.to_owned())
}

/// `InitialCodeCacheSize` is 2496 KiB where nothing says otherwise.
const LEAST_CODE: u64 = 2496 << 10;
/// At 64 KiB no JVM starts; at 16 MiB each does.
const LEAST_METASPACE: u64 = 64 << 10;
const ENOUGH_METASPACE: u64 = 16 * MIB;
/// In KiB, on x86-64.
const LEAST_OTHER_STACK: u64 = 144;

/// Least stack of a Java thread in KiB, on x86-64 with pages of 4 KiB.
fn least_stack(release: Release) -> u64 {
    if release <= Release(8) { 228 } else { 136 }
}

fn too_small(release: Release) -> String {
    format!("the minimum stack size is {}k", least_stack(release))
}

fn among(text: &str, names: &[&str]) -> Option<String> {
    (!names.contains(&text)).then(|| format!("'{text}' is not one of {}", names.join(", ")))
}

/// The three parts of a code cache make up the whole.
fn segments(case: &Case) -> Option<String> {
    let number = |name: &str| case.line.number(name);
    let parts = number("NonNMethodCodeHeapSize")?
        .checked_add(number("ProfiledCodeHeapSize")?)?
        .checked_add(number("NonProfiledCodeHeapSize")?)?;
    let whole = number("ReservedCodeCacheSize")?;
    (case.line.is_on("SegmentedCodeCache") && parts != whole).then(|| {
        format!(
            "the three code heaps add up to {}, but ReservedCodeCacheSize is {}",
            crate::size::shown(parts),
            crate::size::shown(whole)
        )
    })
}

/// One for each of the two compilers, unless a mode leaves one of them out. JDK 8 looks at no mode but that, JDK 11 wants one
/// thread without any compiler.
fn compilers(case: &Case, count: u64) -> Option<String> {
    let line = &case.line;
    let interpreted = line.option("-Xint").is_some() && case.release > Release(8);
    if interpreted {
        let wanted = count == 0 && case.release < Release(17);
        return wanted.then(|| format!("{} needs at least one compiler thread", case.release));
    }
    let one = line.given("TieredStopAtLevel").is_some()
        || line.given("CompilationMode").is_some()
        || line.switch("TieredCompilation") == Some(false);
    (count < 2 && !one).then(|| "tiered compilation needs at least two threads".to_owned())
}

/// Addresses of a process on x86-64 end at 128 TiB.
const ADDRESSES: u64 = 128 << 40;

fn of_heap(release: Release, bytes: u64) -> Option<&'static str> {
    match bytes {
        0 => Some("it must be greater than 0"),
        _ if bytes >= ADDRESSES => Some("the address space of a process is 128 TiB"),
        _ if bytes < MIB => Some("the minimum heap is 1 MiB"),
        _ if bytes < 2 * MIB && release > Release(8) => Some("the minimum heap is 2 MiB"),
        _ => None,
    }
}

/// Why the JVM ends at this size of `-Xmn` or `-Xss`; the others are flags that have their own bounds.
pub(super) fn why_of_size(case: &Case, option: &str, bytes: u64) -> Option<String> {
    match (option, bytes) {
        ("-Xmn", 0) => Some("it must be greater than 0".to_owned()),
        // The flag has it for "as the system has it", and the option only from JDK 17 on.
        ("-Xss", 0) if case.release < Release(17) => Some(too_small(case.release)),
        ("-Xss", 1..1024) => Some(too_small(case.release)),
        ("-Xss", _) if bytes > GIB && case.release > Release(8) => {
            Some("the maximum stack size is 1 GiB".to_owned())
        }
        _ => None,
    }
}

/// Why a number cannot be written so.
pub(super) fn of_number(release: Release, text: &str) -> Option<String> {
    let is_hex = text.starts_with("0x") || text.starts_with("0X");
    (is_hex && release <= Release(8)).then(|| "JDK 8 reads decimal numbers only".to_owned())
}

/// Why the JVM ends at the value of an option that is no flag.
pub(super) fn of_option(_case: &Case, option: &str) -> Option<String> {
    let share = |text: &str| match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => None,
        _ => Some(format!("'{text}' is not between 0 and 1")),
    };
    if let Some(text) = option
        .strip_prefix("-Xmaxf")
        .or_else(|| option.strip_prefix("-Xminf"))
    {
        return share(text);
    }
    let sized = ["-Xmaxjitcodesize", "-Xoss", "-oss"];
    let text = sized.iter().find_map(|name| option.strip_prefix(name))?;
    let wrong = crate::size::bytes(text).is_none();
    wrong.then(|| format!("'{text}' is not a size"))
}

/// Why nothing is said of a value.
pub(super) fn unknown(case: &Case, given: &Given) -> Option<String> {
    given.sets.iter().find_map(|setting| {
        let counts = case.line.setting(&setting.name) == Some(setting);
        if !counts {
            return None;
        }
        let number = setting.number();
        let between =
            |low: u64, high: u64| number.is_some_and(|number| (low..high).contains(&number));
        let old = case.release <= Release(8);
        let why = match setting.name.as_str() {
            _ if overflows(case, setting) => "JDK 8 wraps a number of more than 64 bits",
            "MaxHeapSize" if between(MIB, 4 * MIB) => {
                "whether so small a heap holds the JVM's own objects depends on the build"
            }
            // A part of the space is for bitmaps and cards.
            "MaxHeapSize" if between(16 << 40, ADDRESSES) => {
                "whether the machine can reserve so much depends on its kernel"
            }
            "ParallelGCThreads" | "ConcGCThreads" if number > Some(MANY_THREADS) => {
                "whether there is room for so many threads depends on the machine"
            }
            "MinRAMPercentage" if setting.text().parse() == Ok(0.0) => {
                "the heap that is left depends on the machine"
            }
            name if CHECKED.contains(&name) && !is_default(case, setting) => {
                "the JVM checks it against other flags or the processor"
            }
            name if is_odd_text(case, name) => "its accepted values are unknown",
            "SurvivorRatio" if !old && number > Some(most_ratio(case)) => {
                "its limit depends on the heap and the collector"
            }
            "G1HeapRegionSize"
                if case.collector().0 == Collector::G1
                    && case.line.number("MaxHeapSize")
                        < number.map(|bytes| bytes.saturating_mul(4))
                    && case.line.given("MaxHeapSize").is_some() =>
            {
                "whether so few regions are enough depends on the build"
            }
            "MaxMetaspaceSize" if between(LEAST_METASPACE + 1, ENOUGH_METASPACE) => {
                "whether the JVM's own classes fit depends on the build"
            }
            "ThreadStackSize" if old && between((1 << 20) + 1, u64::MAX) => {
                "whether there is room for such stacks depends on the machine"
            }
            "TLABSize" if !old && between(512 << 10, u64::MAX) => {
                "its limit depends on the collector and the heap"
            }
            "CompileCommand" if case.release >= Release(22) && !is_command(setting.text()) => {
                "the JVM refuses to start with unknown commands"
            }
            name => match recording::taken(case, name, setting.text())? {
                Taken::Unknown(why) => return Some(why),
                _ => return None,
            },
        };
        Some(why.to_owned())
    })
}

const MANY_THREADS: u64 = 1 << 16;

/// Flags that `jvmFlagConstraintsCompiler.cpp`, `...GC.cpp` and `...Runtime.cpp` check by functions, and that are not judged above.
const CHECKED: &[&str] = &[
    "AVX3Threshold",
    "AliasLevel",
    "AllocatePrefetchDistance",
    "AllocatePrefetchInstr",
    "AllocatePrefetchStepSize",
    "ArraycopyDstPrefetchDistance",
    "ArraycopySrcPrefetchDistance",
    "BiasedLockingBulkRebiasThreshold",
    "BiasedLockingBulkRevokeThreshold",
    "BiasedLockingDecayTime",
    "CodeCacheSegmentSize",
    "CodeEntryAlignment",
    "CompilerThreadPriority",
    "ContendedPaddingWidth",
    "G1RSetRegionEntries",
    "G1RSetSparseRegionEntries",
    "G1UpdateBufferSize",
    "HeapBaseMinAddress",
    "InitArrayShortSize",
    "InteriorEntryAlignment",
    "LoopStripMiningIter",
    "MarkStackSize",
    "MarkStackSizeMax",
    "NUMAInterleaveGranularity",
    "NodeLimitFudgeFactor",
    "OldPLABSize",
    "OptoLoopAlignment",
    "ParGCCardsPerStrideChunk",
    "ParGCStridesPerThread",
    "PerfDataSamplingInterval",
    "RTMTotalCountIncrRate",
    "ShenandoahRegionSize",
    "TLABWasteIncrement",
    "TypeProfileLevel",
    "VerifyIterativeGVN",
    "YoungPLABSize",
];

fn is_default(case: &Case, setting: &Setting) -> bool {
    let flag = case.table().find(&setting.name);
    flag.is_some_and(|flag| setting.number().is_some() && setting.number() == flag.default_number())
}

/// Flags with a text that any text is good for, or whose texts are judged above.
const TEXTS: &[&str] = &[
    "AOTCache",
    "AOTCacheOutput",
    "AOTConfiguration",
    "AOTMode",
    "ArchiveClassesAtExit",
    "CompilationMode",
    "CompileCommand",
    "CompileCommandFile",
    "CompileOnly",
    "DumpLoadedClassList",
    "ErrorFile",
    "FlightRecorderOptions",
    "HeapDumpPath",
    "LogFile",
    "NativeMemoryTracking",
    "OnError",
    "OnOutOfMemoryError",
    "PerfDataSaveFile",
    "ReplayDataFile",
    "SharedArchiveFile",
    "SharedClassListFile",
    "ShenandoahGCHeuristics",
    "ShenandoahGCMode",
    "StartFlightRecording",
];

/// A flag of this JDK with a text that is unknown here.
fn is_odd_text(case: &Case, name: &str) -> bool {
    let flag = case.table().find(name).filter(|flag| flag.is_alive());
    let is_text = flag.is_some_and(|flag| matches!(flag.value, Type::Text | Type::List));
    is_text && !TEXTS.contains(&name)
}

/// A survivor space has one region or page at least: below this ratio the heap has room for it, whatever its collector.
fn most_ratio(case: &Case) -> u64 {
    case.line
        .number("MaxHeapSize")
        .map_or(512, |bytes| (bytes / (32 * MIB)).max(8))
}

/// It is written in figures alone and does not fit 64 bits, which JDK 8 does not see (`sscanf`).
pub(super) fn overflows(case: &Case, setting: &Setting) -> bool {
    let text = setting.text();
    let digits = text.trim_end_matches(['k', 'K', 'm', 'M', 'g', 'G', 't', 'T']);
    let figures =
        digits.bytes().all(|byte| byte.is_ascii_digit()) && text.len() - digits.len() <= 1;
    case.release <= Release(8) && figures && !digits.is_empty() && setting.number().is_none()
}

/// A command for the compiler that every release has, with a pattern where it takes one.
fn is_command(text: &str) -> bool {
    const WITH_PATTERN: [&str; 8] = [
        "inline",
        "dontinline",
        "compileonly",
        "log",
        "print",
        "exclude",
        "break",
        "blackhole",
    ];
    match text.split_once([',', ' ']) {
        None => ["quiet", "help"].contains(&text),
        Some((command, pattern)) => WITH_PATTERN.contains(&command) && !pattern.trim().is_empty(),
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
    Some(format!("'{text}' is not one of {}", names.join(", ")))
}
