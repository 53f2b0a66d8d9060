//! Settings of the service's own configuration or source that findings about this host may recommend.
//!
//! They are changed by hand; the texts name the frameworks that the reference cases used.

use crate::by_hand::{Manual, Way};
use crate::knob::{COMMON, Doc, Knob, Risk, Scope, Settable};
use crate::turn::Turn;

const OWN: &str = "it is the service's own setting; change it there and restart the service";
const AGAIN: &str = "The previous setting is restored and the service restarted.";

const APPLICATION: Knob = Knob {
    scope: Scope::Service,
    risk: Risk::Restart,
    settable: Settable::No(OWN),
    turn: Turn::Unseen,
    ..COMMON
};

/// `app.lock_split`
pub(crate) static LOCK_SPLIT: Knob = Knob {
    id: "app.lock_split",
    settable: Settable::No("it is a source change"),
    summary: "a contended lock of the service, split or held for less time",
    values: "split",
    doc: Doc {
        does: "Threads that need different things no longer wait for one another.",
        helps: "When CPU is idle, requests are slow and many threads wait for the same lock.",
        costs: "A source change, with all its risks.",
        undone: "The previous version is deployed.",
        sources: "The reference case of the bank: 43 % and 74 % of threads waiting, 1.7 transactions/s at 30 % CPU.",
    },
    by_hand: &[Manual {
        wish: "split",
        way: Way::Service,
        text: "for i in 1 2 3; do jcmd PID Thread.print > dump.$i; sleep 5; done   # who owns the lock, and what it does",
    }],
    ..APPLICATION
};

/// `jvm.active_cpus`
pub(crate) static ACTIVE_CPUS: Knob = Knob {
    id: "jvm.active_cpus",
    settable: Settable::No(super::jvm::OPTION),
    summary: "how many CPUs a JVM assumes",
    values: "a number, such as 4",
    doc: Doc {
        does: "It sizes the JVM's pools: collector, compiler, common fork-join pool.",
        helps: "When a JVM in a container sees more CPUs than its quota and is throttled for it.",
        costs: "Nothing worth mentioning.",
        undone: AGAIN,
        sources: "The java command, -XX:ActiveProcessorCount.",
    },
    by_hand: &[Manual {
        wish: "NUMBER",
        way: Way::Java,
        text: "-XX:ActiveProcessorCount=NUMBER",
    }],
    ..APPLICATION
};

/// `jvm.flags`
pub(crate) static FLAGS: Knob = Knob {
    id: "jvm.flags",
    settable: Settable::No(super::jvm::OPTION),
    summary: "options of a JVM's command line",
    values: "options separated by spaces, such as -XX:+CMSScavengeBeforeRemark; without -Xmn1g to remove some",
    doc: Doc {
        does: "The JVM starts with these options in addition, or without those that it has. A finding about a GC log \
               recommends only those that the JDK and the collector of that log accept.",
        helps: "When a finding recommends it: see the finding.",
        costs: "See the finding; the service is restarted.",
        undone: AGAIN,
        sources: "The java command; -XX:+PrintFlagsFinal of JDK 8, 11, 17, 21 and 25.",
    },
    by_hand: &[
        Manual {
            wish: "FLAGS",
            way: Way::Java,
            text: "FLAGS",
        },
        Manual {
            wish: "without FLAGS",
            way: Way::Java,
            text: "without FLAGS",
        },
    ],
    ..APPLICATION
};

/// `jvm.gc_log`
pub(crate) static GC_LOG: Knob = Knob {
    id: "jvm.gc_log",
    settable: Settable::No("it is set in the JVM itself, with jcmd"),
    risk: Risk::Live,
    summary: "a GC log, needed to diagnose the collector",
    values: "PATH of the file",
    doc: Doc {
        does: "With JDK 9 and later, jcmd starts a log in a running JVM. JDK 8 needs options at its start.",
        helps: "When the collector is suspected and there is no log: `rungwise jvm gc PATH` reads it.",
        costs: "A few megabytes a day. It ends with the JVM; the options make it permanent.",
        undone: "`jcmd PID VM.log disable` ends every log of that JVM, including those of its options; `output=PATH \
                 what=all=off` ends only this one.",
        sources: "The jcmd command, VM.log; JEP 158; JEP 271.",
    },
    by_hand: &[Manual {
        wish: "PATH",
        way: Way::Service,
        text: "jcmd PID VM.log output=PATH what=gc*,safepoint decorators=time,uptime,level,tags   # JDK 9 on, at once\n\
               -Xlog:gc*,safepoint:file=PATH:time,uptime,level,tags:filecount=5,filesize=20M   # to keep it\n\
               -Xloggc:PATH -XX:+PrintGCDetails -XX:+PrintGCDateStamps   # JDK 8",
    }],
    ..APPLICATION
};

/// `jvm.heapdump`
pub(crate) static HEAP_DUMP: Knob = Knob {
    id: "jvm.heapdump",
    settable: Settable::No("it is set in the JVM itself, with jcmd"),
    risk: Risk::Live,
    summary: "a dump of the heap when it is exhausted",
    values: "PATH of the directory for it, or off",
    doc: Doc {
        does: "HeapDumpOnOutOfMemoryError and HeapDumpPath are manageable: jcmd sets both in a running JVM.",
        helps: "On, when a heap grows without end and the cause is unknown. Off, where a dump as large as the heap \
                fills the disk or delays the restart.",
        costs: "A dump takes as much disk as the heap, and the JVM is stopped while it writes.",
        undone: "The previous values are set in the same way.",
        sources: "The jcmd command, VM.set_flag; src/hotspot/share/runtime/globals.hpp (manageable); the reference case of the proxy.",
    },
    by_hand: &[
        Manual {
            wish: "PATH",
            way: Way::Service,
            text: "jcmd PID VM.set_flag HeapDumpPath PATH && jcmd PID VM.set_flag HeapDumpOnOutOfMemoryError true",
        },
        Manual {
            wish: "off",
            way: Way::Service,
            text: "jcmd PID VM.set_flag HeapDumpOnOutOfMemoryError false",
        },
    ],
    ..APPLICATION
};

/// `jvm.large_pages`
pub(crate) static LARGE_PAGES: Knob = Knob {
    id: "jvm.large_pages",
    settable: Settable::No(super::jvm::OPTION),
    summary: "a JVM's heap in huge pages",
    values: "transparent, or reserved",
    doc: Doc {
        does: "The heap asks for huge pages: transparent ones (mem.thp at madvise or always) or reserved ones \
               (mem.hugetlb).",
        helps: "Large heaps with many TLB misses.",
        costs: "See mem.thp and mem.hugetlb.",
        undone: AGAIN,
        sources: "The java command, -XX:+UseTransparentHugePages and -XX:+UseLargePages.",
    },
    by_hand: &[
        Manual {
            wish: "transparent",
            way: Way::Java,
            text: "-XX:+UseTransparentHugePages",
        },
        Manual {
            wish: "reserved",
            way: Way::Java,
            text: "-XX:+UseLargePages",
        },
    ],
    ..APPLICATION
};

/// `log.guard`
pub(crate) static LOG_GUARD: Knob = Knob {
    id: "log.guard",
    summary: "skips building suppressed log lines, or gives each level its own lock",
    values: "guard, or split",
    doc: Doc {
        does: "A guard skips the work for a line that its level suppresses; one appender per level gives each level \
               its own lock.",
        helps: "When many threads wait for one appender, or logging takes much CPU.",
        costs: "A more complex configuration.",
        undone: AGAIN,
        sources: "The reference case of the bank (advice without a figure).",
    },
    by_hand: &[
        Manual {
            wish: "guard",
            way: Way::Service,
            text: "if (log.isDebugEnabled()) log.debug(...)   # or parameters: log.debug(\"order {}\", id)",
        },
        Manual {
            wish: "split",
            way: Way::Service,
            text: "log4j: one appender for each level, each with a LevelRangeFilter",
        },
    ],
    ..APPLICATION
};

/// `rpc.backlog`
pub(crate) static BACKLOG: Knob = Knob {
    id: "rpc.backlog",
    summary: "connections that may wait to be accepted, as requested by the service",
    values: "a number, such as 4096",
    doc: Doc {
        does: "The service passes it to listen(2); the smaller of it and net.somaxconn applies.",
        helps: "When ListenOverflows grows and the socket's backlog is below net.somaxconn.",
        costs: "A slow acceptor is noticed later.",
        undone: AGAIN,
        sources: "listen(2); the sysctl alone cannot raise the backlog of listen() (measured).",
    },
    by_hand: &[Manual {
        wish: "NUMBER",
        way: Way::Service,
        text: "Tomcat: acceptCount=NUMBER; netty: option(ChannelOption.SO_BACKLOG, NUMBER); nginx: listen ... backlog=NUMBER",
    }],
    ..APPLICATION
};

/// `rpc.connections`
pub(crate) static CONNECTIONS: Knob = Knob {
    id: "rpc.connections",
    summary: "connections between each client and each server",
    values: "a number, such as 4",
    doc: Doc {
        does: "Replies share the windows and the threads of all of them instead of queueing in one.",
        helps: "Few clients and large replies: one connection per pair, with queues piling up at either end or one \
                I/O thread busy.",
        costs: "More sockets, and more I/O threads in use.",
        undone: AGAIN,
        sources: "The reference case of congestion: 4 connections gave nearly the least response time; Dubbo pull request \
                  2457: 1 to 3 connections, 17.8 % more calls per second.",
    },
    by_hand: &[Manual {
        wish: "NUMBER",
        way: Way::Service,
        text: "Dubbo: connections=\"NUMBER\" at the reference, or shareconnections=\"NUMBER\" (2.7 and later)",
    }],
    ..APPLICATION
};

/// `rpc.iothreads`
pub(crate) static IO_THREADS: Knob = Knob {
    id: "rpc.iothreads",
    summary: "threads that read and write the connections",
    values: "a number, such as 8",
    doc: Doc {
        does: "Each connection is served by one of them.",
        helps: "When one I/O thread is above 80 % of a CPU, others idle, and there are several connections.",
        costs: "Useless with one connection (rpc.connections).",
        undone: AGAIN,
        sources: "The reference case of congestion.",
    },
    by_hand: &[Manual {
        wish: "NUMBER",
        way: Way::Service,
        text: "Dubbo: iothreads=\"NUMBER\"; netty: new NioEventLoopGroup(NUMBER)",
    }],
    ..APPLICATION
};

/// `rpc.payload`
pub(crate) static PAYLOAD: Knob = Knob {
    id: "rpc.payload",
    summary: "largest message, and paging instead of large replies",
    values: "a number of bytes, such as 1048576",
    doc: Doc {
        does: "A large reply occupies its connection until it is sent; everything behind it waits.",
        helps: "Messages above 500 KB.",
        costs: "The interface changes for its callers.",
        undone: AGAIN,
        sources: "The reference case of congestion: replies of 500 KB end at 262 a second on 1 Gbit/s.",
    },
    by_hand: &[Manual {
        wish: "NUMBER",
        way: Way::Service,
        text: "Dubbo: payload=\"NUMBER\" at the protocol; and replies in pages below it",
    }],
    ..APPLICATION
};

/// `rpc.threads`
pub(crate) static THREADS: Knob = Knob {
    id: "rpc.threads",
    summary: "worker threads for requests",
    values: "a number: requests per second times seconds of service time, plus a third",
    doc: Doc {
        does: "This many requests are served at once; the rest are refused or wait.",
        helps: "When the pool is exhausted with CPU to spare.",
        costs: "Context switches, and more load on whatever the requests wait for.",
        undone: AGAIN,
        sources: "Little's law; the reference case of congestion ran 500, of which 300 were used.",
    },
    by_hand: &[Manual {
        wish: "NUMBER",
        way: Way::Service,
        text: "Dubbo: threads=\"NUMBER\"; Tomcat: maxThreads=\"NUMBER\"",
    }],
    ..APPLICATION
};
