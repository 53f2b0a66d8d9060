//! Memory: reclaim, huge pages, limits. Plain files of the whole machine.

use crate::by_hand::{Manual, Way};
use crate::knob::{COMMON, Doc, Knob, PUT_BACK, Risk, Settable};
use crate::target::{Form, Target};
use crate::turn::Turn;

/// `mem.drop_caches`
pub(crate) static DROP_CACHES: Knob = Knob {
    id: "mem.drop_caches",
    risk: Risk::Disruptive,
    settable: Settable::No(
        "it is an action, not a setting, and cannot be undone: the caches are lost, and measurements before and after \
         it are not comparable",
    ),
    summary: "drops the page cache; not a tuning measure",
    values: "1 (pages), 2 (dentries and inodes) or 3 (both)",
    doc: Doc {
        does: "Writing to it frees clean page cache, dentries and inodes at once.",
        helps: "Only to start an experiment with cold caches, on purpose and in both halves of a pair.",
        costs: "Everything is read from disk again. Two tuning tools ship it in profiles; their before and after \
                are not comparable.",
        undone: "It cannot be undone: the cache fills again by use.",
        sources: "Documentation/admin-guide/sysctl/vm.rst (Linux); profiles of A-Tune and KeenTune as a warning.",
    },
    by_hand: &[Manual {
        wish: "3",
        way: Way::Command,
        text: "sync; echo 3 > /proc/sys/vm/drop_caches",
    }],
    turn: Turn::Unseen,
    ..COMMON
};

/// `mem.hugetlb`
pub(crate) static HUGETLB: Knob = Knob {
    id: "mem.hugetlb",
    risk: Risk::Disruptive,
    summary: "huge pages reserved for programs that request them",
    values: "a number of pages of the default huge page size, such as 1024",
    doc: Doc {
        does: "The kernel reserves this many huge pages from free memory for mmap(MAP_HUGETLB), shared memory and JVMs \
               with -XX:+UseLargePages.",
        helps: "When such a program requested them and got none, and TLB misses of a large heap cost CPU.",
        costs: "The memory is unavailable to everything else, used or not. On a machine with a long uptime the kernel \
                may find fewer than requested, which is reported as a value that did not take effect.",
        undone: "The previous number is written back; pages in use stay until they are released.",
        sources: "Documentation/admin-guide/mm/hugetlbpage.rst (Linux).",
    },
    by_hand: &[Manual {
        wish: "NUMBER",
        way: Way::CommandLine,
        text: "hugepages=NUMBER",
    }],
    writes: &[Target::File(
        "/proc/sys/vm/nr_hugepages",
        Form::Number {
            least: 0,
            most: 1 << 30,
        },
    )],
    ..COMMON
};

/// `mem.max_map_count`
pub(crate) static MAX_MAP_COUNT: Knob = Knob {
    id: "mem.max_map_count",
    summary: "memory mappings that one process may have",
    values: "a number, such as 262144",
    doc: Doc {
        does: "A process with more mappings than this gets ENOMEM from mmap, mprotect and munmap.",
        helps: "When /proc/PID/maps has more than 80 % of that many lines: JVMs, databases, search engines.",
        costs: "Nothing worth mentioning.",
        undone: PUT_BACK,
        sources: "Documentation/admin-guide/sysctl/vm.rst (Linux).",
    },
    writes: &[Target::File(
        "/proc/sys/vm/max_map_count",
        Form::Number {
            least: 1,
            most: i32::MAX as u64,
        },
    )],
    ..COMMON
};

/// `mem.min_free_kbytes`
pub(crate) static MIN_FREE: Knob = Knob {
    id: "mem.min_free_kbytes",
    risk: Risk::Disruptive,
    summary: "memory that the kernel keeps free for bursts and for itself",
    values: "a number of KiB, such as 112640",
    doc: Doc {
        does: "The thresholds for background and direct reclaim lie above this reserve.",
        helps: "When allocations wait for direct reclaim (allocstall, pgscan_direct) in bursts although page cache \
                could be dropped. mem.watermark_scale does the same more gently.",
        costs: "The memory is unavailable to programs. Above a few percent of RAM it causes out-of-memory kills; 5 % \
                is the kernel's own limit for its default.",
        undone: PUT_BACK,
        sources: "Documentation/admin-guide/sysctl/vm.rst (Linux); the reference case sets 112640 on a 32 GiB guest.",
    },
    writes: &[Target::File(
        "/proc/sys/vm/min_free_kbytes",
        // 64 GiB: a guess above any sensible value.
        Form::Number {
            least: 1024,
            most: 64 << 20,
        },
    )],
    ..COMMON
};

/// `mem.swappiness`
pub(crate) static SWAPPINESS: Knob = Knob {
    id: "mem.swappiness",
    summary: "preference for swapping program memory over dropping page cache",
    values: "0 to 200, such as 10",
    doc: Doc {
        does: "It weighs the cost of swapping against that of rereading files; 100 treats both as equal.",
        helps: "Lower, when a service's pages are swapped in again (pswpin) while the page cache is large.",
        costs: "Files are reread sooner. 0 swaps only to avoid running out of memory.",
        undone: PUT_BACK,
        sources: "Documentation/admin-guide/sysctl/vm.rst (Linux); TuneD sets 10 for throughput, 30 for guests.",
    },
    writes: &[Target::File(
        "/proc/sys/vm/swappiness",
        Form::Number {
            least: 0,
            most: 200,
        },
    )],
    ..COMMON
};

/// `mem.thp`
pub(crate) static THP: Knob = Knob {
    id: "mem.thp",
    risk: Risk::Disruptive,
    summary: "transparent huge pages: for all memory, on request, or never",
    values: "always, madvise or never",
    doc: Doc {
        does: "Memory of programs is backed by 2 MiB pages where possible, at the first touch and later by \
               khugepaged.",
        helps: "always or madvise with a large heap and many TLB misses. never, when compaction stalls affect latency.",
        costs: "always increases resident memory and makes page faults wait for compaction. Memory that is already \
                mapped is not changed.",
        undone: "The previous choice is written back. Huge pages created meanwhile stay.",
        sources: "Documentation/admin-guide/mm/transhuge.rst (Linux); TuneD: never for latency, always for mssql.",
    },
    writes: &[Target::File(
        "/sys/kernel/mm/transparent_hugepage/enabled",
        Form::Choice,
    )],
    ..COMMON
};

/// `mem.thp_defrag`
pub(crate) static THP_DEFRAG: Knob = Knob {
    id: "mem.thp_defrag",
    summary: "how hard a page fault tries to get a huge page",
    values: "always, defer, defer+madvise, madvise or never",
    doc: Doc {
        does: "always and madvise compact memory within the fault; defer leaves that to a kernel thread; never uses \
               only free huge pages.",
        helps: "defer or never, when compact_stall grows and page faults take long.",
        costs: "Page faults get fewer huge pages.",
        undone: "The previous choice is written back.",
        sources: "Documentation/admin-guide/mm/transhuge.rst (Linux); A-Tune's network-intensive profile sets never.",
    },
    writes: &[Target::File(
        "/sys/kernel/mm/transparent_hugepage/defrag",
        Form::Choice,
    )],
    ..COMMON
};

/// `mem.watermark_scale`
pub(crate) static WATERMARK_SCALE: Knob = Knob {
    id: "mem.watermark_scale",
    summary: "how early background reclaim starts, in 1/10000 of memory",
    values: "1 to 3000, such as 100",
    doc: Doc {
        does: "The distance between the watermarks at which kswapd wakes and sleeps, in ten thousandths of memory.",
        helps: "When kswapd wakes too late and allocations fall into direct reclaim: larger lets it start earlier \
                and run longer.",
        costs: "More memory is kept free.",
        undone: PUT_BACK,
        sources: "Documentation/admin-guide/sysctl/vm.rst (Linux), which also bounds it at 3000.",
    },
    writes: &[Target::File(
        "/proc/sys/vm/watermark_scale_factor",
        Form::Number {
            least: 1,
            most: 3000,
        },
    )],
    ..COMMON
};
