//! Why something is not told, and what to add so that the next log tells it.

#[derive(Clone, Copy, Debug)]
pub(super) enum Why {
    Ages,
    Alone,
    Capacity,
    Cause,
    Clock,
    Cpu,
    Cycle,
    FewRemarks,
    FreeLists,
    Goal,
    Header,
    HiddenPauses,
    Humongous,
    HumongousSizes,
    Live,
    LiveSlope,
    LiveYet,
    Metaspace,
    MetaspaceSlope,
    NoCpu,
    NoPause,
    NoRemark,
    NoYoung,
    Nothing,
    OldIntervals,
    OldSizes,
    OldUntold,
    OldYet,
    Phases,
    Promotion,
    RemarkYoung,
    Reaching,
    Requests,
    Resizes,
    Safepoints,
    Sizes,
    Span,
    Survivors,
    UntimedPauses,
    YoungCost,
    YoungSizes,
}

impl Why {
    /// The reason and what a person can do.
    pub(super) fn words(self) -> (&'static str, &'static str) {
        (self.reason(), self.remedy())
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Ages => "the log holds no age tables",
            Self::Alone => "the log holds one pause and nothing before or after it",
            Self::Capacity => "the log does not tell this capacity",
            Self::Cause => "the log does not tell why collections came",
            Self::Clock => "the lines of the log have no time, or all the same",
            Self::Cpu => "no pause of 50 ms and more with a CPU line",
            Self::Cycle => "no concurrent cycle in the log",
            Self::FewRemarks => {
                "fewer than five remarks that tell what lay in the young generation, or it was always the same"
            }
            Self::FreeLists => "the log does not tell of free lists",
            Self::Goal => "nobody told how long a pause may be",
            Self::Header => "the log does not tell it",
            Self::HiddenPauses => "the log tells of collections, and of none of their pauses",
            Self::Humongous => "the log does not tell of humongous objects",
            Self::HumongousSizes => "the log does not tell how large humongous objects are",
            Self::Live => "no collection of the old generation that tells what is left",
            Self::LiveYet => {
                "the log ends before a collection or cycle of the old generation has told what it leaves"
            }
            Self::LiveSlope => "too few old collections at different times to tell a growth",
            Self::Metaspace => "the log does not tell of metaspace",
            Self::MetaspaceSlope => {
                "too few collections in the second half of the run that tell of metaspace"
            }
            Self::NoCpu => {
                "ZGC and Shenandoah print no CPU time of their pauses, whatever is logged"
            }
            Self::NoPause => "the log holds no pause with a duration",
            Self::NoRemark => "the log holds no remark of CMS or G1",
            Self::NoYoung => "too few young collections in the log",
            Self::Nothing => "the log holds no collection",
            Self::OldIntervals => {
                "fewer than two old collections in the log of which it tells when they began"
            }
            Self::OldSizes | Self::OldYet => {
                "no old collection tells what lay in the old generation before and after it"
            }
            Self::OldUntold => "G1 before JDK 9 does not tell what lies in old regions",
            Self::Phases => "the log does not tell the parts of this pause",
            Self::Promotion => "no young collection tells what it promoted",
            Self::RemarkYoung => "the remark does not tell what lay in the young generation",
            Self::Reaching => "the log does not tell how long it took to stop the threads",
            Self::Requests => "nobody told how many requests the service answered",
            Self::Resizes => {
                "no collection tells the capacity of the heap, or of the old generation with Parallel"
            }
            Self::Safepoints => "the log holds no safepoints",
            Self::Sizes => "too few collections that tell the heap before and after",
            Self::Span => "no span of ten seconds between collections of which it is known",
            Self::YoungCost => {
                "fewer than five young collections that tell the size of the young generation, or it was always the same"
            }
            Self::Survivors => {
                "fewer than three young collections tell how full a survivor space is, or the collector has none of a fixed size"
            }
            Self::UntimedPauses => "pauses begin in the log, and of none it tells how long it took",
            Self::YoungSizes => "no collection tells what lay in the young generation",
        }
    }

    /// What the JVM before JDK 9 takes stands in brackets: see [`for_log`].
    fn remedy(self) -> &'static str {
        match self {
            Self::Ages => "add -Xlog:gc+age=trace (JDK 8: -XX:+PrintTenuringDistribution)",
            Self::Capacity => "add -Xlog:gc* (JDK 8: -XX:+PrintGCDetails -XX:+PrintHeapAtGC)",
            Self::Cause => {
                "add -Xlog:gc (JDK 8: -XX:+PrintGCCause, which JDK 8 has on and JDK 7u40 brought)"
            }
            Self::Clock => "add the decoration uptime (JDK 8: -XX:+PrintGCTimeStamps)",
            Self::Cpu => "add -Xlog:gc+cpu (JDK 8: -XX:+PrintGCDetails)",
            Self::Alone
            | Self::Cycle
            | Self::FewRemarks
            | Self::LiveSlope
            | Self::LiveYet
            | Self::NoPause
            | Self::NoRemark
            | Self::NoYoung
            | Self::OldIntervals
            | Self::OldYet
            | Self::Span
            | Self::YoungCost => "read a longer log",
            Self::FreeLists => "with CMS, add -XX:PrintFLSStatistics=1",
            Self::Goal => "give --slo, such as --slo 200ms",
            Self::Header => {
                "read the log from its beginning, where JDK 8 and later tell it; add -Xlog:gc*,gc+init,arguments (JDK 8: no option)"
            }
            Self::HiddenPauses => "add -Xlog:gc*, or gc+phases (JDK 8: -XX:+PrintGCDetails)",
            Self::Humongous => "with G1, add -Xlog:gc+heap",
            Self::HumongousSizes => {
                "with G1, add -Xlog:gc+humongous=debug,gc+ergo+ihop=debug (JDK 8: -XX:+PrintAdaptiveSizePolicy)"
            }
            Self::Live | Self::Sizes => {
                "read a longer log; add -Xlog:gc* (JDK 8: -XX:+PrintGCDetails)"
            }
            Self::Metaspace => "add -Xlog:gc+metaspace (JDK 8: -XX:+PrintHeapAtGC)",
            Self::MetaspaceSlope => {
                "read a longer log; add -Xlog:gc+metaspace (JDK 8: -XX:+PrintHeapAtGC)"
            }
            Self::Nothing => {
                "see that it is a GC log; add -Xlog:gc* (JDK 8: -XX:+PrintGCDetails), and read a longer log"
            }
            Self::NoCpu => {
                "look at the CPUs of the machine at the times of long pauses: rungwise check"
            }
            Self::Phases => "add -Xlog:gc+phases=debug (JDK 8: -XX:+PrintGCDetails)",
            Self::Promotion | Self::Resizes => "add -Xlog:gc* (JDK 8: -XX:+PrintGCDetails)",
            Self::RemarkYoung => "with CMS, add -XX:+PrintGCDetails",
            Self::Reaching | Self::Safepoints => {
                "add -Xlog:safepoint (JDK 8: -XX:+PrintGCApplicationStoppedTime)"
            }
            Self::Requests => "give --rate, such as --rate 500/s",
            Self::OldUntold => "no option of it does; a newer JDK tells it with -Xlog:gc+heap",
            Self::OldSizes | Self::Survivors => {
                "add -Xlog:gc+heap=debug (JDK 8: -XX:+PrintHeapAtGC)"
            }
            Self::UntimedPauses => {
                "add -Xlog:gc*, and see that the lines are whole (JDK 8: -XX:+PrintGCDetails)"
            }
            Self::YoungSizes => "add -Xlog:gc+heap=debug (JDK 8: -XX:+PrintGCDetails)",
        }
    }
}

/// The remedy in the words of the JVM that wrote the log: unified logging takes what stands first, older JVMs what stands
/// in brackets behind it.
pub(super) fn for_log(remedy: &str, unified: Option<bool>) -> String {
    const OLD: &str = " (JDK 8: ";
    let parts = remedy.split_once(OLD).and_then(|(head, rest)| {
        let (old, tail) = rest.split_once(')')?;
        Some((head, old, tail))
    });
    match (parts, unified) {
        (Some((head, _, tail)), Some(true)) => format!("{head}{tail}"),
        (Some((head, "no option", tail)), Some(false)) => {
            let kept = head.rfind("; add ").unwrap_or(head.len());
            format!("{}{tail}", &head[..kept])
        }
        (Some((head, old, tail)), Some(false)) => {
            let kept = head
                .rfind("add ")
                .map_or(head.len(), |at| at + "add ".len());
            format!("{}{old}{tail}", &head[..kept])
        }
        _ => remedy.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_is_told_in_the_words_of_the_jvm_that_wrote_the_log() {
        let (_, remedy) = Why::Sizes.words();
        assert_eq!(
            for_log(remedy, Some(true)),
            "read a longer log; add -Xlog:gc*"
        );
        assert_eq!(
            for_log(remedy, Some(false)),
            "read a longer log; add -XX:+PrintGCDetails"
        );
        assert_eq!(for_log(remedy, None), remedy);
        let (_, header) = Why::Header.words();
        assert_eq!(
            for_log(header, Some(false)),
            "read the log from its beginning, where JDK 8 and later tell it"
        );
        let (_, cause) = Why::Cause.words();
        assert_eq!(for_log(cause, Some(true)), "add -Xlog:gc");
        let (_, plain) = Why::Goal.words();
        assert_eq!(for_log(plain, Some(false)), plain);
    }
}
