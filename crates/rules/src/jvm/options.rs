//! Which options serve a goal on which JDK and collector.
//!
//! A JVM does not start with an unknown option, and an option that it ignores is worse than none, because it looks as if
//! something had been done. So an option is recommended only if collector and release are known to accept it; facts from the
//! JVMs themselves (`-XX:+PrintFlagsFinal` of JDK 8, 11, 17, 21 and 25). CMS ended with JDK 13 (JEP 363).

use super::run::Collector;

/// What a log shows about the JDK that wrote it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Jdk {
    /// Its feature number.
    pub(super) release: Option<u32>,
    /// It writes unified logs, as JDK 9 and later do. A log of `-Xlog:gc` alone names no version, and still shows that.
    pub(super) unified: Option<bool>,
}

impl Jdk {
    /// It is this release or a later one, for sure.
    pub(super) fn from(self, first: u32) -> bool {
        match self.release {
            Some(release) => release >= first,
            None => first <= 9 && self.unified == Some(true),
        }
    }

    /// It is this release or an older one, for sure.
    pub(super) fn until(self, last: u32) -> bool {
        match self.release {
            Some(release) => release <= last,
            None => last >= 8 && self.unified == Some(false),
        }
    }
}

/// What a finding recommends for the JVM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// A young collection just before the remark.
    ScavengeBeforeRemark,
    /// Concurrent cycles start at this percentage of the old generation in use.
    StartCyclesAt(u32),
    /// More regions are kept free for survivors, in percent of the heap.
    Reserve(u32),
    /// `System.gc()` runs concurrently.
    ExplicitConcurrent,
    /// The first metaspace collection runs at this size in MiB.
    MetaspaceMib(u64),
    /// A log with the sizes of humongous objects.
    HumongousLog,
    /// A log with the data that the rules need.
    RichLog,
    /// A young generation whose survivor spaces hold all survivors, in a heap whose old generation keeps its size.
    Survivors {
        /// The heap at most, MiB.
        heap: u64,
        /// The young generation, MiB.
        young: u64,
        /// Eden as a multiple of a survivor space.
        ratio: u32,
    },
    /// The heap has this size in MiB from the start.
    HeapMib(u64),
    /// The maximum heap has this size in MiB, and the initial one if that is larger.
    HeapMaxMib {
        /// At most.
        most: u64,
        /// At first, where that changes.
        first: Option<u64>,
    },
    /// Number of concurrent GC threads.
    ConcurrentThreads(u32),
    /// An `OutOfMemoryError` leaves a heap dump.
    HeapDump,
    /// Concurrent cycles unload classes.
    UnloadClasses,
    /// The young generation has this size in MiB.
    YoungMib(u64),
    /// Objects are promoted at this age.
    PromoteAt(u32),
    /// Locks have no bias that has to be revoked in a safepoint.
    NoBiasedLocks,
}

/// The options to add; none if this JVM has none for the goal, or too little is known about it.
pub(super) fn options(goal: Goal, jdk: Jdk, collector: Collector) -> Vec<String> {
    let from = |first: u32| jdk.from(first);
    let until = |last: u32| jdk.until(last);
    let one = |option: &str| vec![option.to_owned()];
    match (goal, collector) {
        (Goal::ScavengeBeforeRemark, Collector::Cms) => one("-XX:+CMSScavengeBeforeRemark"),
        (Goal::StartCyclesAt(percent), Collector::Cms) => vec![
            format!("-XX:CMSInitiatingOccupancyFraction={percent}"),
            "-XX:+UseCMSInitiatingOccupancyOnly".to_owned(),
        ],
        (Goal::StartCyclesAt(percent), Collector::G1) if until(8) => {
            vec![format!("-XX:InitiatingHeapOccupancyPercent={percent}")]
        }
        // From 9 on the percentage is only where the adaptive start begins.
        (Goal::StartCyclesAt(percent), Collector::G1) if from(9) => vec![
            format!("-XX:InitiatingHeapOccupancyPercent={percent}"),
            "-XX:-G1UseAdaptiveIHOP".to_owned(),
        ],
        (Goal::Reserve(percent), Collector::G1) => vec![format!("-XX:G1ReservePercent={percent}")],
        (Goal::ExplicitConcurrent, Collector::Cms | Collector::G1) => {
            one("-XX:+ExplicitGCInvokesConcurrent")
        }
        // The cause that asks for it is not printed before JDK 8.
        (Goal::MetaspaceMib(mib), _) if !until(7) => vec![format!("-XX:MetaspaceSize={mib}m")],
        (
            Goal::Survivors { heap, young, ratio },
            Collector::Serial | Collector::Parallel | Collector::Cms,
        ) => {
            let mut all = vec![
                format!("-Xms{heap}m"),
                format!("-Xmx{heap}m"),
                format!("-Xmn{young}m"),
                format!("-XX:SurvivorRatio={ratio}"),
            ];
            // Parallel moves its spaces by itself otherwise.
            if collector == Collector::Parallel {
                all.push("-XX:-UseAdaptiveSizePolicy".to_owned());
            }
            all
        }
        (
            Goal::PromoteAt(age),
            Collector::Serial | Collector::Parallel | Collector::Cms | Collector::G1,
        ) => vec![format!("-XX:MaxTenuringThreshold={age}")],
        // Off from JDK 15 on (JEP 374). Only a JDK that takes the option has such locks to take back, also one that is unknown.
        (Goal::NoBiasedLocks, _) if !from(15) => one("-XX:-UseBiasedLocking"),
        // From JDK 8 on it is the default.
        (Goal::UnloadClasses, Collector::Cms) if until(7) => one("-XX:+CMSClassUnloadingEnabled"),
        (Goal::HeapMaxMib { most, first }, _) => {
            let first = first.map(|mib| format!("-Xms{mib}m"));
            first.into_iter().chain([format!("-Xmx{most}m")]).collect()
        }
        (Goal::ConcurrentThreads(count), Collector::Z | Collector::Shenandoah) => {
            vec![format!("-XX:ConcGCThreads={count}")]
        }
        (Goal::HeapDump, _) => one("-XX:+HeapDumpOnOutOfMemoryError"),
        (Goal::HeapMib(mib), _) => vec![format!("-Xms{mib}m")],
        (Goal::YoungMib(mib), Collector::Serial | Collector::Parallel | Collector::Cms) => {
            vec![format!("-Xmn{mib}m")]
        }
        (Goal::HumongousLog, Collector::G1) if from(9) => one(
            "-Xlog:gc*,gc+humongous=debug,gc+ergo+ihop=debug,gc+age=trace,safepoint:file=gc.log:time,uptime,level,tags:filecount=5,filesize=20m",
        ),
        (Goal::HumongousLog, Collector::G1) if until(8) => one("-XX:+PrintAdaptiveSizePolicy"),
        (Goal::RichLog, _) if from(9) => one(
            "-Xlog:gc*,gc+age=trace,safepoint:file=gc.log:time,uptime,level,tags:filecount=5,filesize=20m",
        ),
        (Goal::RichLog, _) if until(8) => [
            "-XX:+PrintGCDetails",
            "-XX:+PrintGCDateStamps",
            "-XX:+PrintGCTimeStamps",
            "-XX:+PrintTenuringDistribution",
            "-XX:+PrintGCApplicationStoppedTime",
        ]
        .map(str::to_owned)
        .into(),
        _ => Vec::new(),
    }
}

/// The equivalent on newer releases, if this JVM's option ended: CMS with JDK 14, the printing flags with JDK 9, the
/// permanent generation with JDK 8. Empty if the same option still works.
pub(super) fn newer(goal: Goal, jdk: Jdk, collector: Collector) -> &'static str {
    match (goal, collector) {
        (Goal::ScavengeBeforeRemark, Collector::Cms) => {
            "JDK 14 removed CMS. On 17, 21 and 25 G1 scans no young generation in its remark, and generational ZGC \
             (21: -XX:+UseZGC -XX:+ZGenerational, 25: -XX:+UseZGC) marks concurrently; none needs the option"
        }
        (Goal::StartCyclesAt(_), Collector::Cms) => {
            "JDK 14 removed CMS. G1 of 17, 21 and 25 adapts its start (-XX:InitiatingHeapOccupancyPercent is the \
             initial value), and ZGC and Shenandoah start by the allocation rate"
        }
        (Goal::ExplicitConcurrent, Collector::Cms) => {
            "JDK 14 removed CMS. G1 of 17, 21 and 25 accepts the same option; ZGC and Shenandoah need none"
        }
        (Goal::PromoteAt(_) | Goal::Survivors { .. }, Collector::Cms) => {
            "JDK 14 removed CMS. G1 of 17, 21 and 25 sizes its survivors by itself and accepts the same threshold; \
             generational ZGC (21: -XX:+UseZGC -XX:+ZGenerational, 25: -XX:+UseZGC) needs neither"
        }
        (Goal::NoBiasedLocks, _) => {
            "biased locking is off by default from JDK 15 on, removed in 18: 17, 21 and 25 need no option"
        }
        (Goal::YoungMib(_), Collector::Cms) => {
            "JDK 14 removed CMS. G1 of 17, 21 and 25 sizes the young generation by -XX:MaxGCPauseMillis: omit -Xmn"
        }
        (Goal::UnloadClasses, Collector::Cms) if jdk.until(7) => {
            "every collector of 8, 11, 17, 21 and 25 unloads classes by itself"
        }
        (Goal::RichLog, _) if jdk.until(8) => {
            "JDK 9 removed the printing flags. On 11, 17, 21 and 25 use one option: -Xlog:gc*,gc+age=trace,safepoint:\
             file=gc.log:time,uptime,level,tags:filecount=5,filesize=20m"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jdk(release: u32) -> Jdk {
        Jdk {
            release: Some(release),
            unified: None,
        }
    }

    #[test]
    fn the_way_of_logging_tells_the_release_as_far_as_it_goes() {
        let of = |unified| Jdk {
            release: None,
            unified: Some(unified),
        };
        let log = |jdk| options(Goal::RichLog, jdk, Collector::G1).join(" ");
        assert!(log(of(true)).starts_with("-Xlog:gc*"));
        assert!(log(of(false)).starts_with("-XX:+PrintGCDetails"));
        assert_eq!(log(Jdk::default()), "");
        assert!(of(true).from(9) && !of(true).from(10) && !of(true).until(25));
        assert!(of(false).until(8) && !of(false).until(7) && !of(false).from(5));
        // A recorded version takes precedence.
        let odd = Jdk {
            release: Some(8),
            unified: Some(true),
        };
        assert!(log(odd).starts_with("-XX:+PrintGCDetails"));
    }

    #[test]
    fn every_option_of_cms_names_what_newer_releases_have() {
        for goal in [
            Goal::ScavengeBeforeRemark,
            Goal::StartCyclesAt(60),
            Goal::ExplicitConcurrent,
            Goal::PromoteAt(6),
            Goal::Survivors {
                heap: 1024,
                young: 512,
                ratio: 6,
            },
            Goal::YoungMib(512),
        ] {
            let text = newer(goal, jdk(8), Collector::Cms);
            for word in ["JDK 14", "17", "21", "25"] {
                assert!(text.contains(word), "{goal:?}: {text}");
            }
            assert_eq!(newer(goal, jdk(17), Collector::G1), "", "{goal:?}");
        }
        assert!(newer(Goal::RichLog, jdk(8), Collector::G1).contains("-Xlog:gc*"));
        assert_eq!(newer(Goal::RichLog, jdk(21), Collector::G1), "");
    }

    #[test]
    fn no_option_of_cms_is_given_to_another_collector() {
        for collector in [
            Collector::G1,
            Collector::Z,
            Collector::Parallel,
            Collector::Other,
        ] {
            for goal in [
                Goal::ScavengeBeforeRemark,
                Goal::StartCyclesAt(60),
                Goal::Reserve(20),
                Goal::ExplicitConcurrent,
                Goal::MetaspaceMib(256),
                Goal::RichLog,
                Goal::Survivors {
                    heap: 1024,
                    young: 512,
                    ratio: 6,
                },
                Goal::HeapMib(1024),
                Goal::HeapMaxMib {
                    most: 1024,
                    first: Some(1024),
                },
                Goal::ConcurrentThreads(4),
                Goal::HeapDump,
                Goal::UnloadClasses,
                Goal::YoungMib(512),
                Goal::PromoteAt(6),
                Goal::NoBiasedLocks,
            ] {
                for jdk in [Jdk::default(), jdk(8), jdk(17), jdk(25)] {
                    let wanted = options(goal, jdk, collector).join(" ");
                    assert!(!wanted.contains("CMS"), "{goal:?} {jdk:?} {collector:?}");
                }
            }
        }
    }

    #[test]
    fn the_start_of_cycles_has_another_spelling_on_each_jvm() {
        let start = |jdk, collector| options(Goal::StartCyclesAt(60), jdk, collector);
        assert_eq!(
            start(Jdk::default(), Collector::Cms),
            [
                "-XX:CMSInitiatingOccupancyFraction=60",
                "-XX:+UseCMSInitiatingOccupancyOnly"
            ]
        );
        assert_eq!(
            start(jdk(8), Collector::G1),
            ["-XX:InitiatingHeapOccupancyPercent=60"]
        );
        assert_eq!(
            start(jdk(17), Collector::G1),
            [
                "-XX:InitiatingHeapOccupancyPercent=60",
                "-XX:-G1UseAdaptiveIHOP"
            ]
        );
        // The release decides, and it is unknown.
        assert!(start(Jdk::default(), Collector::G1).is_empty());
        assert!(start(jdk(21), Collector::Z).is_empty());
    }
}
