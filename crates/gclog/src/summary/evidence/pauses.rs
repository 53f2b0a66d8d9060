//! Evidence of pauses, remarks, CPU time, safepoints and stalls.

use rungwise_model::evidence::Key;
use rungwise_model::{gc, keys};

use super::super::course::{PARTS, parts};
use super::why::Why;
use super::{From, Teller, counted, hides_pauses};

/// Operations that are listed by name.
const OPERATIONS: usize = 3;

/// Causes that mean that Eden was full.
const ORDINARY: [&str; 2] = ["Allocation Failure", "G1 Evacuation Pause"];
/// As JDK 8 and later print it, and as JDK 6 did.
const EXPLICIT: [&str; 2] = ["System.gc()", "System"];
const METADATA: &str = "Metadata GC Threshold";
/// The last attempt before the error, as JDK 9 and later print it and as JDK 8 does.
const LAST_DITCH: [&str; 2] = ["Metadata GC Clear Soft References", "Last ditch collection"];
const HUMONGOUS: &str = "G1 Humongous Allocation";
const ERGONOMICS: &str = "Ergonomics";
/// Of full collections, beside the above: metaspace and the permanent generation, tools.
const METASPACE: [&str; 5] = [
    METADATA,
    "Metadata GC Clear Soft References",
    "Last ditch collection",
    "Permanent Generation Full",
    "Metaspace",
];
const INSPECTION: [&str; 4] = [
    "Heap Dump Initiated GC",
    "Heap Inspection Initiated GC",
    "Diagnostic Command",
    "JvmtiEnv ForceGarbageCollection",
];

impl Teller<'_> {
    pub(super) fn pauses(&mut self) {
        self.all();
        self.causes();
        self.youngs();
        self.fulls();
        self.troubles();
        self.remarks();
        self.cpu();
        self.safepoints();
        self.stalls();
    }

    fn all(&mut self) {
        let pauses = &self.run.pauses;
        let all = pauses.all;
        let some = (all.count > 0).then_some(());
        let longest = pauses.longest.first();
        let words = format!("{}, the longest", counted(all.count, "pause", "pauses"));
        let from = From::maybe(&words, longest);
        let why = self.no_pause();
        // That there is no pause is known where they are printed; how long it was is not.
        let count = self.count_of_pauses(all.count);
        self.number(&keys::GC_PAUSES, count, from, why);
        for (key, ms) in [
            (&keys::GC_PAUSE_P50, all.p50_ms),
            (&keys::GC_PAUSE_P99, all.p99_ms),
            (&keys::GC_PAUSE_LONGEST, all.longest_ms),
        ] {
            self.number(key, some.map(|()| ms / 1e3), from, why);
        }
        let from = From::maybe("the longest", longest);
        let name = longest.map(|moment| moment.name.clone());
        self.text(&keys::GC_PAUSE_LONGEST_NAME, name, from, why);
        let most = pauses
            .longest_phases
            .iter()
            .filter(|phase| phase.depth == 0)
            .max_by(|a, b| a.duration_ms.total_cmp(&b.duration_ms));
        let name = most.map(|phase| phase.name.clone());
        self.text(&keys::GC_PAUSE_LONGEST_PHASE, name, from, Why::Phases);
        let share = most.and_then(|phase| share(phase.duration_ms, all.longest_ms));
        self.number(
            &keys::GC_PAUSE_LONGEST_PHASE_SHARE,
            share,
            from,
            Why::Phases,
        );
        let throughput = self.run.throughput.as_ref();
        let worst = throughput.map_or_else(String::new, |t| {
            format!(
                "the {:.0} s that end at {:.1} s",
                t.worst_window_s, t.worst_until_s
            )
        });
        let whole = throughput.map(|t| t.whole);
        let why = match all.count {
            0 => why,
            1 if self.run.seconds.is_some_and(|seconds| seconds > 0.0) => Why::Alone,
            _ => Why::Clock,
        };
        self.number(&keys::GC_THROUGHPUT, whole, from, why);
        let least = throughput.map(|t| t.worst);
        let from = From::words(&worst);
        self.number(&keys::GC_THROUGHPUT_WORST, least, from, why);
    }

    /// Why something of pauses is unknown.
    fn no_pause(&self) -> Why {
        match self.run.pauses.unfinished {
            _ if !hides_pauses(self.run) => Why::NoPause,
            0 => Why::HiddenPauses,
            _ => Why::UntimedPauses,
        }
    }

    /// Whether a failure or a full collection would be in the log. ZGC has neither, printed or not.
    fn knows_failures(&self) -> Option<()> {
        let collector = self.run.jvm.collector.as_deref();
        let z = collector.is_some_and(|name| name.contains("ZGC"));
        (z || !hides_pauses(self.run)).then_some(())
    }

    /// A count of pauses, where the log prints pauses.
    fn count_of_pauses(&self, count: u64) -> Option<f64> {
        (!hides_pauses(self.run)).then_some(count as f64)
    }

    fn causes(&mut self) {
        let pauses = &self.run.pauses;
        // ZGC tells the cause of a cycle, and none of its pauses.
        let cycles = &self.run.cycle_causes;
        let hidden = hides_pauses(self.run) && cycles.is_empty();
        let has_causes = !pauses.by_cause.is_empty() || !cycles.is_empty();
        let known = !hidden && (has_causes || pauses.by_type.is_empty());
        let why = if hidden { self.no_pause() } else { Why::Cause };
        let count = |causes: &[&str]| -> u64 {
            let of = |cause: &str| {
                let stopped = pauses.by_cause.get(cause).map(|spread| spread.count);
                stopped.into_iter().chain(cycles.get(cause).copied())
            };
            causes.iter().flat_map(|cause| of(cause)).sum()
        };
        for (key, causes) in [
            (&keys::GC_ALLOCATION_FAILURES, &ORDINARY[..]),
            (&keys::GC_EXPLICIT, &EXPLICIT),
            (&keys::GC_METADATA, &[METADATA]),
            (&keys::GC_METADATA_LAST, &LAST_DITCH),
            (&keys::GC_HUMONGOUS, &[HUMONGOUS]),
        ] {
            let count = count(causes);
            let words = format!(
                "{} with the cause {}",
                collections(count),
                causes.join(", ")
            );
            let moment = pauses.longest.iter().find(|moment| {
                let cause = moment.cause.as_deref();
                cause.is_some_and(|cause| causes.contains(&cause))
            });
            let from = From::maybe(&words, moment);
            self.number(key, known.then_some(count as f64), from, why);
        }
        let locker = &self.run.troubles.gc_locker;
        let words = match locker.count {
            0 => "none found".to_owned(),
            count => format!("{}, the longest", collections(count)),
        };
        let from = From::maybe(&words, locker.longest.as_ref());
        for (key, value) in [
            (&keys::GC_LOCKER, locker.count as f64),
            (&keys::GC_LOCKER_TIME, locker.total_ms / 1e3),
        ] {
            self.number(key, known.then_some(value), from, why);
        }
        let late = pauses.metadata_late;
        let words = format!("{} later than five minutes", collections(late));
        let known = known && self.run.seconds.is_some();
        let late = known.then_some(late as f64);
        self.number(&keys::GC_METADATA_LATE, late, From::words(&words), why);
    }

    fn youngs(&mut self) {
        let pauses = &self.run.pauses;
        let of = |kind: &str| pauses.by_kind.get(kind).copied().unwrap_or_default();
        let (young, mixed) = (of("young"), of("mixed"));
        let count = young.count + mixed.count;
        let words = format!(
            "{} and {} mixed",
            counted(young.count, "young collection", "young collections"),
            mixed.count
        );
        let longest = pauses
            .longest
            .iter()
            .find(|moment| moment.duration_ms == Some(young.longest_ms.max(mixed.longest_ms)));
        let from = From::maybe(&words, longest);
        let known = self.count_of_pauses(count);
        self.number(&keys::GC_YOUNGS, known, from, self.no_pause());
        let some = (count > 0).then_some(());
        // Where there are both, young ones are what users meet; mixed ones count for the longest.
        let most = if young.count > 0 { young } else { mixed };
        let course = parts(&pauses.young_course, PARTS);
        let course = course.into_iter().map(|ms| ms / 1e3).collect();
        let median = some.map(|()| most.p50_ms / 1e3);
        self.series(&keys::GC_YOUNG_P50, median, course, from, Why::NoYoung);
        let p99 = some.map(|()| young.p99_ms.max(mixed.p99_ms) / 1e3);
        self.number(&keys::GC_YOUNG_P99, p99, from, Why::NoYoung);
        let most = some.map(|()| young.longest_ms.max(mixed.longest_ms) / 1e3);
        self.number(&keys::GC_YOUNG_LONGEST, most, from, Why::NoYoung);
        let interval = pauses.young_interval.map(|spread| spread.mean_ms / 1e3);
        let lacks = match self.run.seconds {
            None if count > 1 => Why::Clock,
            _ => Why::NoYoung,
        };
        self.number(&keys::GC_YOUNG_INTERVAL, interval, from, lacks);
        // Of the same time as all pauses are, so that a part is never more than the whole.
        let share = self.run.seconds.filter(|seconds| *seconds > 0.0);
        let share = share.map(|seconds| (young.total_ms + mixed.total_ms) / 1e3 / seconds);
        let whole = self
            .run
            .throughput
            .as_ref()
            .map_or(1.0, |all| 1.0 - all.whole);
        let share = share.zip(some).map(|(share, ())| share.min(whole));
        self.number(&keys::GC_YOUNG_SHARE, share, from, lacks);
        let cost = pauses.young_cost;
        self.cost(
            [&keys::GC_YOUNG_COST, &keys::GC_YOUNG_COST_LOW],
            cost,
            from,
            Why::YoungCost,
        );
    }

    fn cost(
        &mut self,
        [point, low]: [&'static Key; 2],
        cost: Option<gc::Cost>,
        from: From<'_>,
        why: Why,
    ) {
        let slope = cost.map(|cost| cost.s_per_gib);
        self.number(point, slope.map(|slope| slope.point), from, why);
        self.number(low, slope.map(|slope| slope.low), from, why);
    }

    fn fulls(&mut self) {
        let pauses = &self.run.pauses;
        let full = pauses.by_kind.get("full").copied().unwrap_or_default();
        let causes = &pauses.full_causes;
        let is = |word: &str, list: &[&str]| list.iter().any(|cause| word.starts_with(cause));
        let sum = |test: &dyn Fn(&str) -> bool| -> u64 {
            let fitting = causes.iter().filter(|(cause, _)| test(cause));
            fitting.map(|(_, total)| total.count).sum()
        };
        // Where no cause is printed, the name stands in its place.
        let is_cause = |cause: &str| pauses.by_cause.contains_key(cause);
        let unknown = sum(&|cause| !is_cause(cause));
        let explicit = sum(&|cause| is_cause(cause) && is(cause, &EXPLICIT));
        let metadata = sum(&|cause| is(cause, &METASPACE));
        let inspection = sum(&|cause| is(cause, &INSPECTION));
        let ergonomics = sum(&|cause| is(cause, &[ERGONOMICS]));
        let others = explicit + metadata + inspection + ergonomics + unknown;
        let rest = full.count - others.min(full.count);
        let longest = pauses
            .longest
            .iter()
            .find(|moment| moment.duration_ms == Some(full.longest_ms));
        let words = format!(
            "{}, the longest",
            counted(full.count, "full collection", "full collections")
        );
        let from = if full.count > 0 {
            From::maybe(&words, longest)
        } else {
            From::words("no full collection")
        };
        let (known, why) = (self.knows_failures(), self.no_pause());
        for (key, count) in [
            (&keys::GC_FULLS, full.count),
            (&keys::GC_FULLS_ALLOCATION, rest),
            (&keys::GC_FULLS_ERGONOMICS, ergonomics),
            (&keys::GC_FULLS_EXPLICIT, explicit),
            (&keys::GC_FULLS_INSPECTION, inspection),
            (&keys::GC_FULLS_METADATA, metadata),
            (&keys::GC_FULLS_UNKNOWN, unknown),
        ] {
            self.number(key, known.map(|()| count as f64), from, why);
        }
        let time = full.total_ms / 1e3;
        self.number(&keys::GC_FULL_TIME, known.map(|()| time), from, why);
        let most = full.longest_ms / 1e3;
        self.number(&keys::GC_FULL_LONGEST, known.map(|()| most), from, why);
        let mut causes: Vec<_> = causes.iter().collect();
        causes.sort_by_key(|(_, total)| std::cmp::Reverse(total.count));
        let causes = causes
            .iter()
            .map(|(cause, t)| format!("{cause} {}", t.count));
        let causes = causes.collect::<Vec<_>>().join(", ");
        self.text(&keys::GC_FULL_CAUSES, known.map(|()| causes), from, why);

        let degenerated = pauses.by_kind.get("degenerated").copied();
        let degenerated = degenerated.unwrap_or_default();
        let words = counted(
            degenerated.count,
            "degenerated collection",
            "degenerated collections",
        );
        let from = From::words(&words);
        let count = degenerated.count as f64;
        self.number(&keys::GC_DEGENERATED, known.map(|()| count), from, why);
        let most = degenerated.longest_ms / 1e3;
        self.number(
            &keys::GC_DEGENERATED_LONGEST,
            known.map(|()| most),
            from,
            why,
        );
    }

    /// Of one sort of trouble.
    pub(super) fn trouble(&mut self, key: &'static Key, trouble: &gc::Trouble) {
        let words = match trouble.count {
            0 => "none found".to_owned(),
            count => format!("{count} of them, the longest"),
        };
        let from = From::maybe(&words, trouble.longest.as_ref());
        let seen = (trouble.count > 0 || *key == keys::GC_OUT_OF_MEMORY).then_some(());
        let known = seen.or(self.knows_failures());
        let count = known.map(|()| trouble.count as f64);
        self.number(key, count, from, self.no_pause());
    }

    fn troubles(&mut self) {
        let troubles = &self.run.troubles;
        for (key, trouble) in [
            (
                &keys::GC_CONCURRENT_MODE_FAILURES,
                &troubles.concurrent_mode_failure,
            ),
            (
                &keys::GC_CONCURRENT_MODE_INTERRUPTED,
                &troubles.concurrent_mode_interrupted,
            ),
            (&keys::GC_EVACUATION_FAILURES, &troubles.evacuation_failed),
            (&keys::GC_OUT_OF_MEMORY, &troubles.out_of_memory),
            (&keys::GC_PROMOTION_FAILURES, &troubles.promotion_failed),
        ] {
            self.trouble(key, trouble);
        }
        let first = troubles.promotion_failed.first.as_ref();
        let from = From::maybe("the lowest; the first of them", first);
        let at = troubles.promotion_failed_at;
        self.number(&keys::GC_PROMOTION_FAILED_AT, at, from, Why::Capacity);
        // Abortable preclean is made to be aborted.
        let aborted = self.run.concurrent.iter();
        let aborted: Vec<_> = aborted
            .filter(|(name, _)| !name.to_ascii_lowercase().contains("preclean"))
            .map(|(_, phase)| phase)
            .collect();
        let count: u64 = aborted.iter().map(|phase| phase.aborted).sum();
        let last = aborted
            .iter()
            .filter_map(|phase| phase.last_aborted.as_ref());
        let last = last.max_by_key(|moment| moment.line);
        let words = format!("{} aborted", counted(count, "phase", "phases"));
        let from = From::maybe(&words, last);
        let count = Some(count as f64);
        self.number(&keys::GC_CONCURRENT_ABORTED, count, from, Why::Cycle);
    }

    fn remarks(&mut self) {
        let remark = self.run.remark.as_ref();
        let count = remark.map_or(0, |remark| remark.time.count);
        let words = format!("{}, the longest", counted(count, "remark", "remarks"));
        let from = remark.map_or(From::words("no remark"), |remark| {
            From::moment(&words, &remark.longest)
        });
        let only_begun = hides_pauses(self.run) && self.run.pauses.unfinished > 0;
        let known = (!only_begun).then_some(count as f64);
        self.number(&keys::GC_REMARKS, known, from, Why::UntimedPauses);
        let why = Why::NoRemark;
        let longest = remark.map(|remark| remark.longest_own_ms / 1e3);
        self.number(&keys::GC_REMARK_LONGEST, longest, from, why);
        let median = remark.map(|remark| remark.time.p50_ms / 1e3);
        self.number(&keys::GC_REMARK_MEDIAN, median, from, why);
        let scavenged = remark.and_then(|r| share(r.scavenged as f64, r.time.count as f64));
        self.number(&keys::GC_REMARK_SCAVENGED, scavenged, from, why);
        for (key, words) in [
            (&keys::GC_REMARK_RESCAN, &["rescan"][..]),
            (
                &keys::GC_REMARK_REFERENCES,
                &[
                    "weak refs",
                    "reference",
                    "ref proc",
                    "ref-proc",
                    "weak processing",
                ],
            ),
            (
                &keys::GC_REMARK_UNLOADING,
                &["class unloading", "unloading"],
            ),
            (
                &keys::GC_REMARK_TABLES,
                &["scrub", "symbol table", "string table", "stringtable"],
            ),
        ] {
            let part = remark.and_then(|remark| part_of(remark, words));
            let why = if remark.is_some() { Why::Phases } else { why };
            self.number(key, part, from, why);
        }
        let young = remark.and_then(|remark| remark.longest_young_bytes);
        let capacity = remark.and_then(|remark| remark.longest_young_capacity_bytes);
        let why = if remark.is_some() {
            Why::RemarkYoung
        } else {
            why
        };
        let bytes = young.map(|bytes| bytes as f64);
        self.number(&keys::GC_REMARK_YOUNG, bytes, from, why);
        let full = young.zip(capacity);
        let full = full.and_then(|(used, all)| share(used as f64, all as f64));
        self.number(&keys::GC_REMARK_YOUNG_SHARE, full, from, why);
        self.cost(
            [&keys::GC_REMARK_YOUNG_COST, &keys::GC_REMARK_YOUNG_COST_LOW],
            remark.and_then(|remark| remark.young_cost),
            from,
            Why::FewRemarks,
        );
    }

    fn cpu(&mut self) {
        let cpu = self.run.cpu.as_ref();
        let judged = cpu.map_or(0, |cpu| cpu.judged);
        let words = format!("{}, the longest", counted(judged, "pause", "pauses"));
        let cpu = cpu.filter(|cpu| cpu.judged > 0);
        let longest = cpu.and_then(|cpu| cpu.judged_longest.as_ref());
        let from = From::maybe(&words, longest);
        let collector = self.run.jvm.collector.as_deref().unwrap_or_default();
        let silent = collector.ends_with("ZGC") || collector.ends_with("Shenandoah");
        let why = if silent && self.unified == Some(true) {
            Why::NoCpu
        } else {
            Why::Cpu
        };
        self.number(&keys::GC_CPU_PAUSES, cpu.map(|_| judged as f64), from, why);
        let busy = cpu.map(|cpu| cpu.judged_user_ms + cpu.judged_sys_ms);
        let parallelism = cpu.zip(busy);
        let parallelism = parallelism.and_then(|(cpu, busy)| share(busy, cpu.judged_real_ms));
        self.number(&keys::GC_CPU_PARALLELISM, parallelism, from, why);
        let sys = cpu.zip(busy);
        let sys = sys.and_then(|(cpu, busy)| share(cpu.judged_sys_ms, busy));
        self.number(&keys::GC_CPU_SYS_SHARE, sys, from, why);
        let inverted = cpu.and_then(|cpu| cpu.inverted_longest.as_ref());
        let words = format!("{} of {judged}, the longest", cpu.map_or(0, |c| c.inverted));
        let from = From::maybe(&words, inverted.or(longest));
        let part = cpu.and_then(|cpu| share(cpu.inverted as f64, judged as f64));
        self.number(&keys::GC_CPU_INVERTED, part, from, why);
        let heavy = cpu.and_then(|cpu| cpu.sys_longest.as_ref());
        let words = format!(
            "{} of {judged}, the longest",
            cpu.map_or(0, |c| c.sys_heavy)
        );
        let from = From::maybe(&words, heavy.or(longest));
        let part = cpu.and_then(|cpu| share(cpu.sys_heavy as f64, judged as f64));
        self.number(&keys::GC_CPU_SYS, part, from, why);
    }

    pub(super) fn safepoints(&mut self) {
        let points = self.run.safepoints.as_ref();
        let why = Why::Safepoints;
        let count = points.map_or(0, |points| points.stopped.count);
        let words = format!("{}, the longest", counted(count, "safepoint", "safepoints"));
        let longest = points.and_then(|points| points.longest.as_ref());
        let from = From::maybe(&words, longest);
        let known = points.map(|_| count as f64);
        self.number(&keys::GC_SAFEPOINTS, known, from, why);
        let most = longest.and_then(|moment| moment.duration_ms);
        // All were collections: the longest of none.
        let most = points.map(|_| most.unwrap_or(0.0) / 1e3);
        self.number(&keys::GC_SAFEPOINT_LONGEST, most, from, why);
        let outside = points.and_then(|p| share(p.outside_ms, p.stopped.total_ms));
        self.number(&keys::GC_SAFEPOINT_OUTSIDE, outside, from, why);
        let stopped = points.and_then(|points| points.share);
        self.number(&keys::GC_STOPPED_SHARE, stopped, from, why);
        let mut operations: Vec<_> = points
            .iter()
            .flat_map(|points| &points.operations)
            .filter(|(_, operation)| !operation.collection)
            .collect();
        operations.sort_by(|(_, a), (_, b)| b.stopped.total_ms.total_cmp(&a.stopped.total_ms));
        let listed = operations.iter().take(OPERATIONS).map(|(name, operation)| {
            let stopped = operation.stopped;
            format!("{name} {:.1} ms in {}", stopped.total_ms, stopped.count)
        });
        let listed = listed.collect::<Vec<_>>().join(", ");
        let named = points.filter(|points| !points.operations.is_empty());
        let listed = named.map(|_| listed);
        self.text(&keys::GC_SAFEPOINT_OPERATIONS, listed, from, why);
        let time = |of: fn(&str) -> bool| -> f64 {
            let of = operations.iter().filter(|(name, _)| of(name));
            of.map(|(_, operation)| operation.stopped.total_ms).sum()
        };
        // `RevokeBias`, `BulkRevokeBias`, of JDK 6 to 17.
        let biased = share(time(|name| name.contains("RevokeBias")), time(|_| true));
        self.number(&keys::GC_SAFEPOINT_BIASED, biased, from, why);

        let why = Why::Reaching;
        let reaching = points.and_then(|points| points.reaching);
        let longest = points.and_then(|points| points.reaching_longest.as_ref());
        let from = From::maybe("the longest time to stop the threads", longest);
        let most = reaching.map(|reaching| reaching.longest_ms / 1e3);
        self.number(&keys::GC_SAFEPOINT_REACHING_LONGEST, most, from, why);
        let part = reaching.zip(points);
        let part = part.and_then(|(r, points)| share(r.total_ms, points.stopped.total_ms));
        self.number(&keys::GC_SAFEPOINT_REACHING, part, from, why);
    }

    pub(super) fn stalls(&mut self) {
        let stalls = self.run.stalls.as_ref();
        let time = stalls.map(|stalls| stalls.time).unwrap_or_default();
        let words = match time.count {
            0 => "none found".to_owned(),
            count => format!("{}, the longest", counted(count, "wait", "waits")),
        };
        let from = From::maybe(&words, stalls.map(|stalls| &stalls.longest));
        let seconds = self.run.seconds.filter(|seconds| *seconds > 0.0);
        let count = time.count as f64;
        self.number(&keys::GC_STALLS, Some(count), from, Why::NoPause);
        let most = Some(time.longest_ms / 1e3);
        self.number(&keys::GC_STALL_LONGEST, most, from, Why::NoPause);
        let sum = Some(time.total_ms / 1e3);
        self.number(&keys::GC_STALL_TIME, sum, from, Why::NoPause);
        let rate = seconds.map(|seconds| count / seconds);
        self.number(&keys::GC_STALL_RATE, rate, from, Why::Clock);
    }
}

/// `part` of `whole`, where there is a whole.
fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// Share of the longest remark that the phases took whose names hold one of the words. A phase within one that fits is
/// in it already.
fn part_of(remark: &gc::Remarks, words: &[&str]) -> Option<f64> {
    if remark.longest_phases.is_empty() {
        return None;
    }
    let mut sum = 0.0;
    let mut within: Option<u8> = None;
    for phase in &remark.longest_phases {
        within = within.filter(|depth| phase.depth > *depth);
        let name = phase.name.to_ascii_lowercase();
        if within.is_none() && words.iter().any(|word| name.contains(word)) {
            sum += phase.duration_ms;
            within = Some(phase.depth);
        }
    }
    share(sum, remark.longest_own_ms).map(|share| share.min(1.0))
}

fn collections(count: u64) -> String {
    counted(count, "collection", "collections")
}
