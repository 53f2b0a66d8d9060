//! Why a value is absent, and the option that adds it to the next log.

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
    LiveFailed,
    LiveYet,
    Machine,
    Metaspace,
    MetaspaceSlope,
    NoCpu,
    NoPause,
    NoRemark,
    NoYoung,
    Nothing,
    OldIntervals,
    OldSizes,
    OldNotLogged,
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
    /// The reason and the remedy.
    pub(super) fn words(self) -> (&'static str, &'static str) {
        (self.reason(), self.remedy())
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Ages => "the log contains no age tables",
            Self::Alone => "the log contains a single pause",
            Self::Capacity => "the log does not contain this capacity",
            Self::Cause => "the log does not contain the causes of collections",
            Self::Clock => "the log lacks timestamps, or all are equal",
            Self::Cpu => "no pause of 50 ms and more with a CPU line",
            Self::Cycle => "no concurrent cycle in the log",
            Self::FewRemarks => {
                "fewer than five remarks with the size of the young generation, or its size never changed"
            }
            Self::FreeLists => "the log does not contain free lists",
            Self::Goal => "no pause limit is set",
            Self::Header | Self::Machine => "not in the log",
            Self::HiddenPauses => "the log contains collections but not their pauses",
            Self::Humongous => "the log does not contain humongous objects",
            Self::HumongousSizes => "the log does not contain the sizes of humongous objects",
            Self::Live => "no old collection with the size after it",
            Self::LiveFailed => {
                "evacuations failed, after which garbage stays with what is alive, and no old collection lies far enough from them"
            }
            Self::LiveYet => "the log ends before the first old collection or cycle finishes",
            Self::LiveSlope => "too few old collections at different times to measure growth",
            Self::Metaspace => "the log does not contain metaspace sizes",
            Self::MetaspaceSlope => {
                "too few collections with metaspace sizes in the second half of the run"
            }
            Self::NoCpu => "ZGC and Shenandoah log no CPU time for their pauses at any level",
            Self::NoPause => "the log contains no pause with a duration",
            Self::NoRemark => "the log contains no remark of CMS or G1",
            Self::NoYoung => "too few young collections in the log",
            Self::Nothing => "the log contains no collection",
            Self::OldIntervals => "fewer than two old collections with a start time in the log",
            Self::OldSizes | Self::OldYet => {
                "no old collection shows the size of the old generation before and after it"
            }
            Self::OldNotLogged => "G1 before JDK 9 does not log the size of old regions",
            Self::Phases => "the log does not contain the phases of this pause",
            Self::Promotion => "no young collection shows how much it promoted",
            Self::RemarkYoung => "the remark does not show the size of the young generation",
            Self::Reaching => "the log does not contain the time to safepoint",
            Self::Requests => "the request rate is unknown",
            Self::Resizes => {
                "no collection shows the capacity of the heap (with Parallel: of the old generation)"
            }
            Self::Safepoints => "the log contains no safepoints",
            Self::Sizes => "too few collections with the heap size before and after",
            Self::Span => "no span of ten seconds between collections where it is known",
            Self::YoungCost => {
                "fewer than five young collections with the size of the young generation, or its size never changed"
            }
            Self::Survivors => {
                "fewer than three young collections with the occupancy of a survivor space, or the collector has no survivor space of fixed size"
            }
            Self::UntimedPauses => "the log contains starts of pauses but no durations",
            Self::YoungSizes => "no collection shows the size of the young generation",
        }
    }

    /// Options of JVMs before JDK 9 are in brackets: see [`for_log`].
    fn remedy(self) -> &'static str {
        match self {
            Self::Ages => "add -Xlog:gc+age=trace (JDK 8: -XX:+PrintTenuringDistribution)",
            Self::Capacity => "add -Xlog:gc* (JDK 8: -XX:+PrintGCDetails -XX:+PrintHeapAtGC)",
            Self::Cause => {
                "add -Xlog:gc (JDK 8: -XX:+PrintGCCause, on by default in JDK 8, added in 7u40)"
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
            | Self::YoungCost => "use a longer log",
            Self::LiveFailed => {
                "see gc-evacuation-failed; a full collection shows what is alive (jcmd PID GC.run)"
            }
            Self::FreeLists => "with CMS, add -XX:PrintFLSStatistics=1",
            Self::Goal => "pass --slo, for example --slo 200ms",
            Self::Header => {
                "include the start of the log, where JDK 8 and later write it; add -Xlog:gc*,gc+init,arguments (JDK 8: no option)"
            }
            Self::Machine => {
                "include the start of the log, where JDK 8, and 17 and later, write it, with -Xlog:gc*,gc+init; for a running JVM, \
                 `rungwise jvm flags --for PID` compares heap and machine"
            }
            Self::HiddenPauses => "add -Xlog:gc*, or gc+phases (JDK 8: -XX:+PrintGCDetails)",
            Self::Humongous => "with G1, add -Xlog:gc+heap",
            Self::HumongousSizes => {
                "with G1, add -Xlog:gc+humongous=debug,gc+ergo+ihop=debug (JDK 8: -XX:+PrintAdaptiveSizePolicy)"
            }
            Self::Live | Self::Sizes => {
                "use a longer log; add -Xlog:gc* (JDK 8: -XX:+PrintGCDetails)"
            }
            Self::Metaspace => "add -Xlog:gc+metaspace (JDK 8: -XX:+PrintHeapAtGC)",
            Self::MetaspaceSlope => {
                "use a longer log; add -Xlog:gc+metaspace (JDK 8: -XX:+PrintHeapAtGC)"
            }
            Self::Nothing => {
                "check that it is a GC log; add -Xlog:gc* (JDK 8: -XX:+PrintGCDetails), and use a longer log"
            }
            Self::NoCpu => "run `rungwise check` on the machine while pauses are long",
            Self::Phases => "add -Xlog:gc+phases=debug (JDK 8: -XX:+PrintGCDetails)",
            Self::Promotion | Self::Resizes => "add -Xlog:gc* (JDK 8: -XX:+PrintGCDetails)",
            Self::RemarkYoung => "with CMS, add -XX:+PrintGCDetails",
            Self::Reaching | Self::Safepoints => {
                "add -Xlog:safepoint (JDK 8: -XX:+PrintGCApplicationStoppedTime)"
            }
            Self::Requests => "pass --rate, for example --rate 500/s",
            Self::OldNotLogged => {
                "use JDK 9 or later with -Xlog:gc+heap; no option of JDK 8 logs it"
            }
            Self::OldSizes | Self::Survivors => {
                "add -Xlog:gc+heap=debug (JDK 8: -XX:+PrintHeapAtGC)"
            }
            Self::UntimedPauses => {
                "add -Xlog:gc*, and check that no line is cut (JDK 8: -XX:+PrintGCDetails)"
            }
            Self::YoungSizes => "add -Xlog:gc+heap=debug (JDK 8: -XX:+PrintGCDetails)",
        }
    }
}

/// The remedy for the JVM that wrote the log: unified logging takes the first option, older JVMs the one in brackets
/// after it.
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
    fn a_remedy_is_reported_in_the_words_of_the_jvm_that_wrote_the_log() {
        let (_, remedy) = Why::Sizes.words();
        assert_eq!(
            for_log(remedy, Some(true)),
            "use a longer log; add -Xlog:gc*"
        );
        assert_eq!(
            for_log(remedy, Some(false)),
            "use a longer log; add -XX:+PrintGCDetails"
        );
        assert_eq!(for_log(remedy, None), remedy);
        let (_, header) = Why::Header.words();
        assert_eq!(
            for_log(header, Some(false)),
            "include the start of the log, where JDK 8 and later write it"
        );
        let (_, cause) = Why::Cause.words();
        assert_eq!(for_log(cause, Some(true)), "add -Xlog:gc");
        let (_, plain) = Why::Goal.words();
        assert_eq!(for_log(plain, Some(false)), plain);
    }
}
