//! Options of a JVM's command line. A scenario sets them in the `java` command of the service that it starts; the options of any other
//! JVM are changed by hand, where it is started.

use crate::by_hand::{Manual, Way};
use crate::knob::{COMMON, Doc, Knob, Risk, Scope, Settable};
use crate::turn::Turn;

pub(super) const OPTION: &str = "only in a scenario, for a service that `rungwise tune` starts. By hand it is an option of the java command: put it \
     before -jar or the main class, in place of any that sets the same, and restart the service; `rungwise jvm flags` says whether \
     the JDK takes it";
const PROGRAM: &str = "only in a scenario, for a service that `rungwise tune` starts, once the JDK or the file that it needs is there; by \
     hand elsewhere";
const REMOVED: &str =
    "The option is removed, what it replaced is put back, and the service restarted.";

const JVM: Knob = Knob {
    scope: Scope::Service,
    risk: Risk::Restart,
    settable: Settable::No(OPTION),
    turn: Turn::Unseen,
    ..COMMON
};

const fn given(wish: &'static str, text: &'static str) -> Manual {
    Manual {
        wish,
        way: Way::Java,
        text,
    }
}

/// A step that is no option.
const fn prepared(wish: &'static str, text: &'static str) -> Manual {
    Manual {
        wish,
        way: Way::Service,
        text,
    }
}

/// `jvm.appcds`
pub(crate) static APPCDS: Knob = Knob {
    id: "jvm.appcds",
    settable: Settable::No(PROGRAM),
    summary: "classes of the application loaded from an archive",
    values: "PATH of the archive",
    doc: Doc {
        does: "A run of the service writes its loaded classes to an archive; later starts map it instead of reading \
               and verifying each class.",
        helps: "When the time until the service is ready matters. Throughput afterwards is the same.",
        costs: "The archive belongs to one class path and one JDK build: it is written again after each change of \
                either, or the JVM ignores it.",
        undone: "The service is restarted without the option, and the archive deleted.",
        sources: "JEP 310, JEP 350; the java command, -XX:ArchiveClassesAtExit and -XX:SharedArchiveFile.",
    },
    by_hand: &[
        prepared(
            "PATH",
            "-XX:ArchiveClassesAtExit=PATH   # JDK 13 on, once, to write the archive when the JVM ends",
        ),
        given("PATH", "-XX:SharedArchiveFile=PATH"),
    ],
    ..JVM
};

/// `jvm.cms_misc`
pub(crate) static CMS_MISC: Knob = Knob {
    id: "jvm.cms_misc",
    summary: "parallel pauses and class unloading of the CMS collector",
    values: "on",
    doc: Doc {
        does: "CMS marks in parallel in both of its pauses and unloads classes in its cycles.",
        helps: "On JDK 8 with CMS, where one of them was switched off: all are on by default there. On JDK 7, where \
                parallel initial marking and class unloading are off.",
        costs: "JDK 14 and later have no CMS: the options have no effect there, or stop the start.",
        undone: REMOVED,
        sources: "src/share/vm/runtime/globals.hpp of JDK 7 and 8; JEP 363; the reference case of the proxy.",
    },
    by_hand: &[given(
        "on",
        "-XX:+CMSParallelRemarkEnabled -XX:+CMSParallelInitialMarkEnabled -XX:+CMSClassUnloadingEnabled",
    )],
    ..JVM
};

/// `jvm.cms_occupancy`
pub(crate) static CMS_OCCUPANCY: Knob = Knob {
    id: "jvm.cms_occupancy",
    summary: "the occupancy of the old generation at which CMS starts a cycle",
    values: "a number of percent, such as 70",
    doc: Doc {
        does: "Every cycle starts at this occupancy, instead of at one that CMS predicts.",
        helps: "When a GC log shows concurrent mode failures or failed promotions: cycles started too late.",
        costs: "More cycles, and memory that is never used. Below the size of the live objects, CMS runs without end.",
        undone: REMOVED,
        sources: "The java command of JDK 8; the reference case of the proxy.",
    },
    by_hand: &[given(
        "NUMBER",
        "-XX:CMSInitiatingOccupancyFraction=NUMBER -XX:+UseCMSInitiatingOccupancyOnly",
    )],
    ..JVM
};

/// `jvm.codecache`
pub(crate) static CODE_CACHE: Knob = Knob {
    id: "jvm.codecache",
    summary: "memory for compiled code",
    values: "a size, such as 256m",
    doc: Doc {
        does: "It limits the code that the JIT compiler may keep. When the cache is full, compiling stops or old code \
               is discarded.",
        helps: "When the log says `CodeCache is full`, or throughput falls after hours while compilation starts again.",
        costs: "Address space at once, memory only as code is compiled.",
        undone: REMOVED,
        sources: "The java command, -XX:ReservedCodeCacheSize.",
    },
    by_hand: &[given("SIZE", "-XX:ReservedCodeCacheSize=SIZE")],
    ..JVM
};

/// `jvm.direct_memory`
pub(crate) static DIRECT_MEMORY: Knob = Knob {
    id: "jvm.direct_memory",
    summary: "the limit of direct byte buffers",
    values: "a size, such as 2g",
    doc: Doc {
        does: "It limits the memory outside the heap that direct byte buffers take together. Without it, the limit is the \
               maximum size of the heap.",
        helps: "When direct buffers and heap together exceed the memory of the machine or container.",
        costs: "Too low, allocations of buffers fail with OutOfMemoryError.",
        undone: REMOVED,
        sources: "The java command, -XX:MaxDirectMemorySize; the reference case of the proxy.",
    },
    by_hand: &[given("SIZE", "-XX:MaxDirectMemorySize=SIZE")],
    ..JVM
};

/// `jvm.explicit_gc`
pub(crate) static EXPLICIT_GC: Knob = Knob {
    id: "jvm.explicit_gc",
    summary: "what System.gc() does",
    values: "concurrent or off",
    doc: Doc {
        does: "`concurrent` makes System.gc() start a concurrent cycle instead of a full collection (G1, CMS). `off` \
               makes it do nothing.",
        helps: "When a GC log shows full collections with the cause System.gc().",
        costs: "`off` also disables the collection that frees direct buffers when their limit is reached. Of the two \
                options, `off` wins.",
        undone: REMOVED,
        sources: "The java command, -XX:+ExplicitGCInvokesConcurrent and -XX:+DisableExplicitGC; java.nio.Bits; the \
                  reference case of the proxy.",
    },
    by_hand: &[
        given("concurrent", "-XX:+ExplicitGCInvokesConcurrent"),
        given("off", "-XX:+DisableExplicitGC"),
    ],
    ..JVM
};

/// `jvm.fast_serializer`
pub(crate) static FAST_SERIALIZER: Knob = Knob {
    id: "jvm.fast_serializer",
    settable: Settable::No(PROGRAM),
    summary: "a faster format of Java serialization, in BiSheng JDK only",
    values: "on",
    doc: Doc {
        does: "ObjectOutputStream and ObjectInputStream use a shorter format.",
        helps: "When a profile shows more than 5 % in readObject and writeObject, and both ends run BiSheng JDK.",
        costs: "The bytes are no longer those of other JDKs: another end, or stored objects, cannot be read.",
        undone: "The option is removed at both ends, and both are restarted.",
        sources: "The reference case of the bank, which names 10 % to 30 % and did not use it.",
    },
    by_hand: &[given("on", "-XX:+UseFastSerializer")],
    ..JVM
};

/// `jvm.g1_pause`
pub(crate) static G1_PAUSE: Knob = Knob {
    id: "jvm.g1_pause",
    summary: "the pause that G1 aims at",
    values: "a number of milliseconds, such as 200",
    doc: Doc {
        does: "G1 sizes the young generation so that pauses stay about this long. The default is 200.",
        helps: "Lower, when pauses exceed the goal and CPU is left. Higher, when GC takes too much CPU and the pauses do \
                not matter.",
        costs: "A lower goal means more collections and less throughput. It is a goal, not a limit. A fixed -Xmn \
                defeats it.",
        undone: REMOVED,
        sources: "The java command, -XX:MaxGCPauseMillis; HotSpot Virtual Machine Garbage Collection Tuning Guide.",
    },
    by_hand: &[given("NUMBER", "-XX:MaxGCPauseMillis=NUMBER")],
    ..JVM
};

/// `jvm.g1uncommit`
pub(crate) static G1_UNCOMMIT: Knob = Knob {
    id: "jvm.g1uncommit",
    settable: Settable::No(PROGRAM),
    summary: "G1 returns unused heap to the system, in BiSheng JDK 8 only",
    values: "on",
    doc: Doc {
        does: "Regions of the heap that stay unused are given back while the service runs.",
        helps: "When memory is scarce and the heap is idle for long. JDK 12 and later have \
                -XX:G1PeriodicGCInterval for it.",
        costs: "Memory that is needed again is first requested from the kernel, within a pause.",
        undone: REMOVED,
        sources: "JEP 346; the reference case of the bank.",
    },
    by_hand: &[given("on", "-XX:+G1Uncommit")],
    ..JVM
};

/// `jvm.gc_choice`
pub(crate) static GC_CHOICE: Knob = Knob {
    id: "jvm.gc_choice",
    summary: "the garbage collector",
    values: "serial, parallel, g1, cms, z or shenandoah",
    doc: Doc {
        does: "The JVM uses this collector. A JVM takes only one: an option for another is removed.",
        helps: "Parallel, when only throughput counts. G1, for pauses of some 100 ms. Z or Shenandoah, for shorter ones \
                on any heap. Serial, on one CPU or with a very small heap.",
        costs: "Shorter pauses cost throughput and memory. The other options of the old collector lose their effect or \
                stop the start. Not every JDK has each: CMS ended with JDK 13, Z and Shenandoah are supported from JDK 15.",
        undone: REMOVED,
        sources: "The java command; JEP 363, 377 and 379; the reference case of the bank, in which CMS to G1 changed nothing.",
    },
    by_hand: &[
        given("serial", "-XX:+UseSerialGC"),
        given("parallel", "-XX:+UseParallelGC"),
        given("g1", "-XX:+UseG1GC"),
        given("cms", "-XX:+UseConcMarkSweepGC"),
        given("z", "-XX:+UseZGC"),
        given("shenandoah", "-XX:+UseShenandoahGC"),
    ],
    ..JVM
};

/// `jvm.jdk_upgrade`
pub(crate) static JDK_UPGRADE: Knob = Knob {
    id: "jvm.jdk_upgrade",
    settable: Settable::No(PROGRAM),
    summary: "a newer build of the JDK",
    values: "newer, or JAVA: the path of its java program, or its name in PATH, such as java-25",
    doc: Doc {
        does: "The service runs on a newer update of the same JDK, or on a later JDK.",
        helps: "When the update is old. Between releases, collectors and compiler differ most.",
        costs: "A regression test. Between releases, options end: `rungwise jvm flags` lists what changes.",
        undone: "The service is started with the previous JDK.",
        sources: "The reference case of the bank: less memory, and no figure for throughput.",
    },
    by_hand: &[
        prepared(
            "newer",
            "java -version   # compare it with the newest update of the vendor, and start the service with that",
        ),
        given("JAVA", "JAVA"),
    ],
    ..JVM
};

/// `jvm.kae_crypto`
pub(crate) static KAE_CRYPTO: Knob = Knob {
    id: "jvm.kae_crypto",
    settable: Settable::No(PROGRAM),
    summary: "encryption by the accelerator of Kunpeng processors",
    values: "on, or PATH of a java.security file that names its provider first",
    doc: Doc {
        does: "A provider of Java's cryptography passes AES, RSA and digests to OpenSSL's engine for the accelerator.",
        helps: "When a profile shows more than 5 % in encryption, on a Kunpeng processor with its driver and BiSheng JDK.",
        costs: "It needs that hardware, driver and JDK; small blocks may be slower.",
        undone: "The provider is removed from java.security, and the service restarted.",
        sources: "The reference case of the bank, which did not use it.",
    },
    by_hand: &[
        prepared(
            "on",
            "install the driver of the accelerator and BiSheng JDK, and put its KAE provider first in conf/security/java.security",
        ),
        given("PATH", "-Djava.security.properties=PATH"),
    ],
    ..JVM
};

/// `jvm.metaspace`
pub(crate) static METASPACE: Knob = Knob {
    id: "jvm.metaspace",
    summary: "the metadata of classes at which the JVM first collects",
    values: "a size, such as 256m",
    doc: Doc {
        does: "Below this size, loading classes causes no collection. The default is about 21 MB, and the JVM raises it \
               with each collection.",
        helps: "When a GC log shows collections with the cause Metadata GC Threshold while the service starts.",
        costs: "Nothing at once: it is no limit (-XX:MaxMetaspaceSize is), and unused classes are unloaded later.",
        undone: REMOVED,
        sources: "The java command, -XX:MetaspaceSize; the reference cases of the bank and of the proxy.",
    },
    by_hand: &[given("SIZE", "-XX:MetaspaceSize=SIZE")],
    ..JVM
};

/// `jvm.numa`
pub(crate) static NUMA: Knob = Knob {
    id: "jvm.numa",
    summary: "a heap that is placed by NUMA node",
    values: "on or off",
    doc: Doc {
        does: "A thread allocates from memory of the node on which it runs (Parallel; G1 from JDK 14).",
        helps: "When the heap spans several NUMA nodes.",
        costs: "Nothing worth mentioning; with one node the JVM switches it off again.",
        undone: REMOVED,
        sources: "The java command, -XX:+UseNUMA; JEP 345.",
    },
    by_hand: &[given("on", "-XX:+UseNUMA"), given("off", "-XX:-UseNUMA")],
    ..JVM
};

/// `jvm.pretouch`
pub(crate) static PRETOUCH: Knob = Knob {
    id: "jvm.pretouch",
    summary: "the whole heap is touched at the start",
    values: "on or off",
    doc: Doc {
        does: "The kernel provides every page of the initial heap before the service begins.",
        helps: "When page faults show in the latency of the first hours. It needs -Xms equal to -Xmx to cover the heap.",
        costs: "A slower start, and memory that is held from the beginning.",
        undone: REMOVED,
        sources: "The java command, -XX:+AlwaysPreTouch.",
    },
    by_hand: &[
        given("on", "-XX:+AlwaysPreTouch"),
        given("off", "-XX:-AlwaysPreTouch"),
    ],
    ..JVM
};

/// `jvm.refproc`
pub(crate) static REFPROC: Knob = Knob {
    id: "jvm.refproc",
    summary: "references processed by several threads",
    values: "on or off",
    doc: Doc {
        does: "Soft, weak, final and phantom references are processed in parallel within a pause.",
        helps: "When a GC log shows more than 10 % of the pause in Ref Proc, where it is off: \
                on JDK 8, and with Serial. JDK 17 has it on with Parallel and G1.",
        costs: "Nothing worth mentioning; with few references, starting the threads may take longer than the work. On two CPUs the \
                remarks of G1 (JDK 8) with a million weak references became a tenth shorter at best.",
        undone: REMOVED,
        sources: "The java command, -XX:+ParallelRefProcEnabled.",
    },
    by_hand: &[
        given("on", "-XX:+ParallelRefProcEnabled"),
        given("off", "-XX:-ParallelRefProcEnabled"),
    ],
    ..JVM
};

/// `jvm.scavenge_before_remark`
pub(crate) static SCAVENGE_BEFORE_REMARK: Knob = Knob {
    id: "jvm.scavenge_before_remark",
    summary: "a young collection before the remark pause of CMS",
    values: "on or off",
    doc: Doc {
        does: "CMS empties the young generation before remark, which otherwise scans all of it.",
        helps: "When a GC log shows remark pauses that grow with the occupancy of the young generation.",
        costs: "One more young collection per cycle. JDK 14 and later have no CMS.",
        undone: REMOVED,
        sources: "The reference case of the proxy: remark 18.18 s before and 0.126 s after.",
    },
    by_hand: &[
        given("on", "-XX:+CMSScavengeBeforeRemark"),
        given("off", "-XX:-CMSScavengeBeforeRemark"),
    ],
    ..JVM
};

/// `jvm.softref`
pub(crate) static SOFTREF: Knob = Knob {
    id: "jvm.softref",
    summary: "how long unused soft references are kept",
    values: "a number of milliseconds per free megabyte, such as 0",
    doc: Doc {
        does: "A soft reference is cleared when it was not used for this time, for each free megabyte of heap. The \
               default is 1000: with 4 GB free, over an hour.",
        helps: "When caches of soft references fill the old generation.",
        costs: "Lower values empty these caches, and what they held is computed again.",
        undone: REMOVED,
        sources: "The java command, -XX:SoftRefLRUPolicyMSPerMB; the reference case of the proxy.",
    },
    by_hand: &[given("NUMBER", "-XX:SoftRefLRUPolicyMSPerMB=NUMBER")],
    ..JVM
};

/// `jvm.xmn`
pub(crate) static XMN: Knob = Knob {
    id: "jvm.xmn",
    summary: "the size of the young generation",
    values: "a size, such as 2g",
    doc: Doc {
        does: "It fixes the young generation; the rest of the heap is the old one.",
        helps: "Larger, when objects reach the old generation and die soon afterwards (Serial, Parallel, CMS).",
        costs: "Less room for long-lived objects, and longer young collections if many survive. With G1 it defeats the \
                goal for the pause.",
        undone: REMOVED,
        sources: "The java command, -Xmn; the reference case of the proxy, with 12 GB of 14.",
    },
    by_hand: &[given("SIZE", "-XmnSIZE")],
    ..JVM
};

/// `jvm.xms_xmx`
pub(crate) static XMS_XMX: Knob = Knob {
    id: "jvm.xms_xmx",
    summary: "a heap of fixed size",
    values: "a size, such as 4g",
    doc: Doc {
        does: "The heap has its full size from the start and never changes it.",
        helps: "When a GC log shows that the heap grows and shrinks, or collections are frequent because it is small.",
        costs: "The memory is held for good. Heap, metaspace, stacks and direct buffers together must fit into the \
                machine or container.",
        undone: REMOVED,
        sources: "The java command, -Xms and -Xmx; the reference cases of the bank and of the proxy.",
    },
    by_hand: &[given("SIZE", "-XmsSIZE -XmxSIZE")],
    ..JVM
};

/// `jvm.xss`
pub(crate) static XSS: Knob = Knob {
    id: "jvm.xss",
    summary: "the size of a thread's stack",
    values: "a size, such as 512k",
    doc: Doc {
        does: "It limits the stack of each new thread. The default is 1 MB on 64-bit Linux.",
        helps: "When thousands of threads meet a limit of address space. Memory is used only as far as a stack has grown.",
        costs: "Deep recursion fails with StackOverflowError.",
        undone: REMOVED,
        sources: "The java command, -Xss; the reference cases of the bank and of the proxy.",
    },
    by_hand: &[given("SIZE", "-XssSIZE")],
    ..JVM
};
