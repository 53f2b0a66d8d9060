//! What went in the releases between those that have a table: flags of the older table that are ignored or unknown by then.
//!
//! `HotSpot` keeps a list of them, `special_jvm_flags` (`share/runtime/arguments.cpp`): from `obsolete_in` on a flag is taken with a
//! warning and does nothing, from `expired_in` on the JVM does not start with it. The dates here are those that the sources of
//! JDK 14, 17 and 20 have there; flags of GC logging went with JEP 271. What a newer table says of `support was removed in`
//! needs no entry.

use std::sync::LazyLock;

use crate::release::Release;
use crate::table::{Flag, Kind};

/// Where the dates are from.
pub(crate) const SOURCE: &str = "HotSpot share/runtime/arguments.cpp, special_jvm_flags of JDK 14, 17 and 20; JEP 271 for GC logging";

/// Flags that went together.
struct Gone {
    /// By name; one that ends with `*` stands for all that begin so. Of two entries the first counts.
    names: &'static [&'static str],
    ignored_in: Release,
    unknown_in: Release,
    /// What the JVM says while it ignores them.
    words: &'static str,
}

const IN_14: &str = "Ignoring option; support was removed in 14.0";
const IN_15: &str = "Ignoring option; support was removed in 15.0";
const IN_18: &str = "Ignoring option; support was removed in 18.0";
const IN_20: &str = "Ignoring option; support was removed in 20.0";

static GONE: &[Gone] = &[
    Gone {
        names: &[
            "GCLogFileSize",
            "NumberOfGCLogFiles",
            "PrintAdaptiveSizePolicy",
            "PrintClassHistogramAfterFullGC",
            "PrintClassHistogramBeforeFullGC",
            "PrintGCApplicationConcurrentTime",
            "PrintGCApplicationStoppedTime",
            "PrintGCCause",
            "PrintGCDateStamps",
            "PrintGCID",
            "PrintGCTimeStamps",
            "PrintPromotionFailure",
            "PrintReferenceGC",
            "PrintTenuringDistribution",
            "UseGCLogFileRotation",
        ],
        ignored_in: Release(9),
        unknown_in: Release(9),
        words: "",
    },
    Gone {
        // Manageable flags are in no such list.
        names: &[
            "CMSAbortablePrecleanWaitMillis",
            "CMSTriggerInterval",
            "CMSWaitDuration",
        ],
        ignored_in: Release(14),
        unknown_in: Release(14),
        words: "",
    },
    Gone {
        names: &[
            "AllowJNIEnvProxy",
            "CMS*",
            "CompilationPolicyChoice",
            "FLS*",
            "FailOverToOldVerifier",
            "GCLockerInvokesConcurrent",
            "OldPLABWeight",
            "ParGCDesiredObjsFromOverflowList",
            "ParGCTrimOverflow",
            "ParGCUseLocalOverflow",
            "ResizeOldPLAB",
            "UseCMSBestFit",
            "UseCMSInitiatingOccupancyOnly",
            "UseConcMarkSweepGC",
        ],
        ignored_in: Release(14),
        unknown_in: Release(15),
        words: IN_14,
    },
    Gone {
        names: &[
            "BindGCTaskThreadsToCPUs",
            "GCTaskTimeStampEntries",
            "UseGCTaskAffinity",
        ],
        ignored_in: Release(14),
        unknown_in: Release(16),
        words: IN_14,
    },
    Gone {
        names: &[
            "CompactFields",
            "FieldsAllocationStyle",
            "G1RSetScanBlockSize",
            "MonitorBound",
            "UseParallelOldGC",
        ],
        ignored_in: Release(15),
        unknown_in: Release(16),
        words: IN_15,
    },
    Gone {
        names: &[
            "AlwaysLockClassLoader",
            "BiasedLocking*",
            "CriticalJNINatives",
            "UseBiasedLocking",
        ],
        ignored_in: Release(18),
        unknown_in: Release(19),
        words: IN_18,
    },
    Gone {
        names: &[
            "ExtendedDTraceProbes",
            "PreferContainerQuotaForCPUCount",
            "PrintSharedDictionary",
            "UseCodeAging",
            "UseContainerCpuShares",
        ],
        ignored_in: Release(20),
        unknown_in: Release(21),
        words: IN_20,
    },
];

fn gone(name: &str) -> Option<&'static Gone> {
    GONE.iter().find(|gone| {
        gone.names
            .iter()
            .any(|known| match known.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => name == *known,
            })
    })
}

/// The flags of [`GONE`] as a JVM has them that ignores them.
static IGNORED: LazyLock<Vec<Flag>> = LazyLock::new(|| {
    let mut ignored: Vec<Flag> = Vec::new();
    for flag in Release::known().flat_map(|release| release.table().flags()) {
        if let Some(gone) = gone(flag.name)
            && ignored.iter().all(|other| other.name != flag.name)
        {
            ignored.push(Flag {
                kind: Kind::Gone,
                words: gone.words,
                ..*flag
            });
        }
    }
    ignored
});

/// The release with which a flag became unknown, where the dates tell it.
pub(crate) fn unknown_in(name: &str) -> Option<Release> {
    Some(gone(name)?.unknown_in)
}

/// How a release without a table of its own takes a flag that an older table has.
pub(crate) fn taken(release: Release, flag: &'static Flag) -> Option<&'static Flag> {
    if release.is_known() || !flag.is_alive() {
        return Some(flag);
    }
    if let Some(gone) = gone(flag.name) {
        if release >= gone.unknown_in {
            return None;
        }
        if release >= gone.ignored_in {
            return IGNORED.iter().find(|other| other.name == flag.name);
        }
        return Some(flag);
    }
    let newer = Release::known().find(|known| *known > release);
    let newer = newer.and_then(|newer| newer.table().find(flag.name));
    let dated = newer.filter(|newer| {
        newer.kind == Kind::Gone && newer.since().is_some_and(|since| since <= release)
    });
    Some(dated.unwrap_or(flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_date_lies_between_two_tables_that_agree_with_it() {
        for gone in GONE {
            assert!(gone.ignored_in <= gone.unknown_in);
            assert_eq!(gone.words.is_empty(), gone.ignored_in == gone.unknown_in);
            let older = Release::known()
                .filter(|known| *known < gone.ignored_in)
                .last()
                .unwrap();
            for name in gone.names.iter().filter(|name| !name.ends_with('*')) {
                assert!(older.table().find(name).is_some(), "{name} in {older}");
                for newer in Release::known().filter(|known| *known >= gone.unknown_in) {
                    let found = newer.table().find(name).filter(|flag| flag.is_alive());
                    assert!(found.is_none(), "{name} in {newer}");
                }
            }
        }
    }

    #[test]
    fn cms_is_ignored_by_14_and_unknown_to_15() {
        let state = |release: u8, name: &str| Release(release).find(name).map(|flag| flag.kind);
        assert_eq!(state(13, "UseConcMarkSweepGC"), Some(Kind::Product));
        assert_eq!(state(14, "UseConcMarkSweepGC"), Some(Kind::Gone));
        assert_eq!(state(15, "UseConcMarkSweepGC"), None);
        assert_eq!(state(16, "CMSInitiatingOccupancyFraction"), None);
        assert_eq!(state(14, "CMSWaitDuration"), None);
        assert_eq!(state(18, "UseBiasedLocking"), Some(Kind::Gone));
        assert_eq!(state(10, "PrintGCDateStamps"), None);
        // The table of 25 has the date.
        assert_eq!(state(23, "ZGenerational"), Some(Kind::Product));
        assert_eq!(state(24, "ZGenerational"), Some(Kind::Gone));
    }
}
