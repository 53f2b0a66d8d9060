//! What the header of a log names though nobody wrote it: JDK 8 prints there what it decided by itself as well.
//!
//! Source: JDK 8 `share/vm/runtime/arguments.cpp` (`set_parnew_gc_flags`, `set_cms_and_parnew_gc_flags`,
//! `set_ergonomics_flags`), `memory/metaspace.cpp`, `runtime/compilationPolicy.cpp`; seen in the headers of the corpus of logs.

use rungwise_model::check::Grade;

use super::OptionChange;
use crate::command_line::{CommandLine, Given, Origin, Setting};
use crate::judge::Collector;

/// The JVM decided it, as far as a header can tell.
pub(super) fn by_the_jvm(given: &Given, line: &CommandLine, collector: Collector) -> bool {
    let header = given.origin == Origin::Log && given.is_flag();
    let setting = given.sets.first().filter(|_| header);
    setting.is_some_and(|setting| is_its_choice(setting, line, collector))
}

fn is_its_choice(setting: &Setting, line: &CommandLine, collector: Collector) -> bool {
    // Of metaspace that has a limit, so much is kept from the class space (`2 * InitialBootClassLoaderMetaspaceSize`).
    const NOT_OF_CLASSES: u64 = 8 << 20;
    let number = setting.number();
    match &*setting.name {
        "OldPLABSize" => collector == Collector::Cms && number == Some(16),
        "MaxTenuringThreshold" => collector == Collector::Cms && number == Some(6),
        "CompressedClassSpaceSize" => line
            .number("MaxMetaspaceSize")
            .zip(number)
            .is_some_and(|(whole, classes)| whole.checked_sub(classes) == Some(NOT_OF_CLASSES)),
        // The rest of the heap beside the young generation; by the CPUs; by the page.
        "OldSize" | "CICompilerCount" | "MinHeapDeltaBytes" => true,
        "UseCompressedOops" | "UseCompressedClassPointers" => setting.switch() == Some(true),
        _ => false,
    }
}

/// They go, as one step.
pub(super) fn step(out: Vec<String>) -> OptionChange {
    OptionChange {
        out,
        into: Vec::new(),
        why: "a log header also lists values that the JVM chose itself; these are such values, and the new JVM chooses its own \
            (put back any that you set)"
            .to_owned(),
        source: "JDK 8, -XX:+PrintCommandLineFlags",
        sure: Grade::Medium,
    }
}
