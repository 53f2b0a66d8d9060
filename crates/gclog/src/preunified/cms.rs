//! CMS beside the application: `[CMS-concurrent-mark: 0.753/0.754 secs] [Times: ...]`.

use super::Preunified;
use super::cursor::{Cursor, cpu};
use super::flow::Step;
use crate::context::Context;
use crate::event::{Areas, Collector, Concurrent, Stamp};

impl Preunified {
    /// Behind `[CMS-concurrent-`: `mark-start]`, or the phase with its CPU time of one thread and its time on the wall.
    pub(super) fn cms_phase(&mut self, context: &mut Context<'_>, cursor: &mut Cursor<'_>) -> Step {
        let from = cursor.at() - b"CMS-concurrent-".len();
        let text = cursor.text();
        let length = cursor
            .rest()
            .iter()
            .take_while(|byte| byte.is_ascii_lowercase() || **byte == b'-')
            .count();
        let name = &text[from..cursor.at() + length];
        cursor.skip(length);
        if let Some(name) = name.strip_suffix(b"-start") {
            cursor.eat(b"]");
            self.collector(context, Collector::Cms);
            let began = self.stamps.take();
            let name = context.names.number(name);
            self.phase_begins(name, began);
            return Step::Gave;
        }
        if !cursor.eat(b": ") {
            return Step::Strange;
        }
        let Some(cpu_ns) = cursor.seconds() else {
            return Step::Strange;
        };
        let Some(duration_ns) = cursor.eat(b"/").then(|| cursor.seconds()).flatten() else {
            return Step::Strange;
        };
        if !cursor.eat(b" secs") {
            return Step::Strange;
        }
        cursor.eat(b"]");
        // The CPU times of the whole process during the phase: not the collector's alone.
        if cursor.eat(b" [Times: ") {
            cpu(cursor);
        }
        self.collector(context, Collector::Cms);
        // A collection with threads stopped took over in the midst of it.
        let interrupted =
            self.open.last().is_some_and(|open| open.is_in_old()) || self.is_torn_in_old();
        let aborted = interrupted || std::mem::take(&mut self.abort_due_to_time);
        let now = self.stamps.take();
        let mut phase = Concurrent {
            line: context.line,
            began: Stamp::default(),
            ended: Stamp::default(),
            id: None,
            name: context.names.number(name),
            cycle: false,
            cause: None,
            duration_ns: Some(duration_ns),
            cpu_ns: Some(cpu_ns),
            aborted,
            areas: Areas::default(),
            promoted: None,
            allocated: None,
            live: None,
        };
        self.phase_ends(context, now, &mut phase);
        Step::Gave
    }
}

#[cfg(test)]
mod tests {
    use super::super::event_lines::event_lines;

    #[test]
    fn a_phase_began_when_it_said_so() {
        let log = "2.000: [CMS-concurrent-mark-start]\n\
            2.760: [CMS-concurrent-mark: 0.753/0.754 secs] [Times: user=1.27 sys=0.12, real=0.76 secs]\n\
            3.000: [CMS-concurrent-sweep: 0.500/0.900 secs]\n";
        assert_eq!(
            event_lines(log)[1..],
            [
                "CMS-concurrent-mark at 2000 ms, Some(754000000) ns",
                "CMS-concurrent-sweep at 2100 ms, Some(900000000) ns",
            ]
        );
    }

    #[test]
    fn a_preclean_that_was_given_up_says_so_in_front_of_its_stamp() {
        let log = " CMS: abort preclean due to time 8.500: [CMS-concurrent-abortable-preclean: 5.197/5.210 secs]\n";
        assert_eq!(
            event_lines(log)[1],
            "CMS-concurrent-abortable-preclean at 3290 ms, Some(5210000000) ns, aborted"
        );
    }

    #[test]
    fn what_print_cms_statistics_and_references_add_is_known_and_changes_nothing() {
        let plain = "0.756: [CMS-concurrent-abortable-preclean-start]\n\
            0.787: [CMS-concurrent-abortable-preclean: 0.004/0.030 secs]\n";
        let with = "0.756: [CMS-concurrent-abortable-preclean-start]\n \
            (cardTable: 3 cards, re-scanned 3 cards, 1 iterations)\n\
            Finished remaining root rescan work in 0th thread: 0.000 sec\n\
            0.756: [Preclean SoftReferences, 0.0000113 secs]0.756: [Preclean WeakReferences, 0.0000812 secs] (cardTable: 1 cards, re-scanned 100 cards, 1 iterations)\n \
            [4 iterations, 2 waits, 1227 cards)] 0.787: [CMS-concurrent-abortable-preclean: 0.004/0.030 secs] (CMS-concurrent-abortable-preclean yielded 0 times)\n";
        assert_eq!(event_lines(with), event_lines(plain));
    }

    #[test]
    fn a_phase_that_a_full_collection_ends_is_printed_within_it() {
        let log = "9.000: [Full GC 9.000: [CMS9.010: [CMS-concurrent-sweep: 0.033/0.300 secs] [Times: user=0.02 sys=0.00, real=0.03 secs]\n \
            (concurrent mode failure): 96131K->48565K(98304K), 0.0623217 secs] 108343K->48565K(127808K), [CMS Perm : 2978K->2977K(21248K)], 0.0906253 secs]\n";
        assert_eq!(
            event_lines(log)[1..],
            [
                "CMS-concurrent-sweep at 8710 ms, Some(300000000) ns, aborted",
                "Full GC Full at 9000 ms, 90625300 ns, Heap 108343->48565K, Old 96131->48565K, Metaspace 2978->2977K, CMS 62321700",
            ]
        );
    }

    #[test]
    fn without_details_initial_mark_and_remark_take_turns() {
        let log = "1.000: [GC 3K(9K), 0.1000000 secs]\n2.000: [GC 4K(9K), 0.1000000 secs]\n\
            3.000: [GC 5K(9K), 0.1000000 secs]\n4.000: [Full GC 6K->3K(9K), 0.1000000 secs]\n\
            5.000: [GC 7K(9K), 0.1000000 secs]\n6.000: [GC (CMS Initial Mark) 7K(9K), 0.1000000 secs]\n";
        let names: Vec<String> = event_lines(log)
            .iter()
            .filter_map(|line| Some(line.split_once(' ')?.0.to_owned()))
            .collect();
        assert_eq!(
            names,
            [
                "CMS-initial-mark",
                "CMS-remark",
                "CMS-initial-mark",
                "Full",
                "CMS-initial-mark",
                "CMS-initial-mark"
            ]
        );
    }

    #[test]
    fn parts_of_parts_stand_below_them() {
        let log = "5.000: [GC[YG occupancy: 18497 K (29504 K)]5.000: [Rescan (non-parallel) 5.000: [grey object rescan, 0.0000010 secs]5.000: [root rescan, 0.0600000 secs], 0.0700000 secs]5.070: [weak refs processing, 0.0000030 secs] [1 CMS-remark: 2202K(3145K)] 20699K(9751K), 0.0800000 secs]\n";
        assert_eq!(
            event_lines(log)[1],
            "CMS-remark Remark at 5000 ms, 80000000 ns, Heap 20699->20699K, Old 2202->2202K, \
             Rescan (non-parallel) 70000000, >grey object rescan 1000, >root rescan 60000000, weak refs processing 3000"
        );
    }

    #[test]
    fn a_young_collection_within_a_remark_is_nested() {
        let log = "12.356: [GC (CMS Final Remark) [YG occupancy: 830K (1310K)]12.357: [GC (CMS Final Remark) 12.357: [ParNew: 830K->25K(1310K), 0.1302057 secs] 830K->36K(4980K), 0.1306264 secs]\n\
            12.487: [Rescan (parallel) , 0.0173509 secs][1 CMS-remark: 10K(3670K)] 36K(4980K), 0.1787717 secs]\n";
        assert_eq!(
            event_lines(log)[..3],
            [
                "ParNew Young at 12357 ms, 130626400 ns, CMS Final Remark, Heap 830->36K, Young 830->25K, nested, ParNew 130205700",
                "Fact(Collector(Cms))",
                "CMS-remark Remark at 12356 ms, 178771700 ns, CMS Final Remark, Heap 36->36K, Old 10->10K, Rescan (parallel) 17350900",
            ]
        );
    }

    #[test]
    fn a_remark_that_lost_its_end_holds_nothing_of_what_follows() {
        let log = "12.000: [GC (CMS Final Remark) [YG occupancy: 830K (1310K)]\n\
            20.000: [GC 830K->36K(4980K), 0.1000000 secs]\n21.000: [GC 830K->36K(4980K), 0.1000000 secs]\n";
        assert_eq!(
            event_lines(log),
            [
                "CMS-remark Remark at 12000 ms, cut, CMS Final Remark",
                "GC Young at 20000 ms, 100000000 ns, Heap 830->36K",
                "GC Young at 21000 ms, 100000000 ns, Heap 830->36K",
            ]
        );
    }
}
