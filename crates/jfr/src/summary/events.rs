//! The events that the summary reads, and the fields of each.
//!
//! Source: `metadata.xml` of OpenJDK 11 to 25, and `src/jfrMetadata.cpp` of async-profiler 4.

use crate::recording::Wanted;

/// What an event is to the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Execution,
    Native,
    CpuTime,
    Wall,
    InTlab,
    OutsideTlab,
    AllocationSample,
    MonitorEnter,
    Park,
    MonitorWait,
    Sleep,
    FileRead,
    FileWrite,
    FileForce,
    SocketRead,
    SocketWrite,
    Exception,
    Error,
    ExceptionCount,
    Collection,
    SafepointBegin,
    Operation,
    CpuLoad,
    ThreadAllocation,
    ThreadStart,
    ThreadCount,
    Jvm,
    CpuInformation,
    Memory,
    Collector,
    Flag,
    OldObject,
    Container,
    Throttling,
    Setting,
}

const fn of(
    kind: Kind,
    event: &'static str,
    fields: &'static [&'static str],
) -> (Kind, Wanted<'static>) {
    (kind, Wanted { event, fields })
}

const FLAG: &[&str] = &["name", "value", "origin"];

/// Every event that is read, with its fields.
pub(super) const EVENTS: &[(Kind, Wanted<'static>)] = &[
    of(
        Kind::Execution,
        "jdk.ExecutionSample",
        &["stackTrace", "sampledThread", "state"],
    ),
    of(Kind::Native, "jdk.NativeMethodSample", &[]),
    of(
        Kind::CpuTime,
        "jdk.CPUTimeSample",
        &["stackTrace", "eventThread", "failed"],
    ),
    of(
        Kind::Wall,
        "profiler.WallClockSample",
        &["stackTrace", "sampledThread", "state", "samples"],
    ),
    of(
        Kind::InTlab,
        "jdk.ObjectAllocationInNewTLAB",
        &["stackTrace", "eventThread", "objectClass", "tlabSize"],
    ),
    of(
        Kind::OutsideTlab,
        "jdk.ObjectAllocationOutsideTLAB",
        &["stackTrace", "eventThread", "objectClass", "allocationSize"],
    ),
    of(
        Kind::AllocationSample,
        "jdk.ObjectAllocationSample",
        &["stackTrace", "eventThread", "objectClass", "weight"],
    ),
    of(
        Kind::MonitorEnter,
        "jdk.JavaMonitorEnter",
        &[
            "duration",
            "stackTrace",
            "eventThread",
            "monitorClass",
            "address",
            "previousOwner",
        ],
    ),
    of(
        Kind::Park,
        "jdk.ThreadPark",
        &[
            "duration",
            "stackTrace",
            "eventThread",
            "parkedClass",
            "address",
        ],
    ),
    of(
        Kind::MonitorWait,
        "jdk.JavaMonitorWait",
        &["duration", "stackTrace", "eventThread", "monitorClass"],
    ),
    of(Kind::Sleep, "jdk.ThreadSleep", &["duration", "stackTrace"]),
    of(
        Kind::FileRead,
        "jdk.FileRead",
        &["duration", "stackTrace", "path", "bytesRead"],
    ),
    of(
        Kind::FileWrite,
        "jdk.FileWrite",
        &["duration", "stackTrace", "path", "bytesWritten"],
    ),
    of(
        Kind::FileForce,
        "jdk.FileForce",
        &["duration", "stackTrace", "path"],
    ),
    of(
        Kind::SocketRead,
        "jdk.SocketRead",
        &[
            "duration",
            "stackTrace",
            "host",
            "bytesRead",
            "address",
            "port",
        ],
    ),
    of(
        Kind::SocketWrite,
        "jdk.SocketWrite",
        &[
            "duration",
            "stackTrace",
            "host",
            "bytesWritten",
            "address",
            "port",
        ],
    ),
    of(
        Kind::Exception,
        "jdk.JavaExceptionThrow",
        &["stackTrace", "thrownClass", "message"],
    ),
    of(
        Kind::Error,
        "jdk.JavaErrorThrow",
        &["stackTrace", "thrownClass", "message"],
    ),
    of(
        Kind::ExceptionCount,
        "jdk.ExceptionStatistics",
        &["startTime", "throwables"],
    ),
    of(
        Kind::Collection,
        "jdk.GarbageCollection",
        &["name", "cause", "sumOfPauses", "longestPause"],
    ),
    of(Kind::SafepointBegin, "jdk.SafepointBegin", &["duration"]),
    of(
        Kind::Operation,
        "jdk.ExecuteVMOperation",
        &["duration", "operation", "safepoint"],
    ),
    of(
        Kind::CpuLoad,
        "jdk.CPULoad",
        &["jvmUser", "jvmSystem", "machineTotal"],
    ),
    of(
        Kind::ThreadAllocation,
        "jdk.ThreadAllocationStatistics",
        &["thread", "allocated"],
    ),
    of(Kind::ThreadStart, "jdk.ThreadStart", &["thread"]),
    of(
        Kind::ThreadCount,
        "jdk.JavaThreadStatistics",
        &["activeCount"],
    ),
    of(
        Kind::Jvm,
        "jdk.JVMInformation",
        &[
            "jvmName",
            "jvmVersion",
            "javaArguments",
            "jvmStartTime",
            "pid",
        ],
    ),
    of(
        Kind::CpuInformation,
        "jdk.CPUInformation",
        &["cpu", "hwThreads"],
    ),
    of(Kind::Memory, "jdk.PhysicalMemory", &["totalSize"]),
    of(
        Kind::Collector,
        "jdk.GCConfiguration",
        &["youngCollector", "oldCollector"],
    ),
    of(Kind::Flag, "jdk.BooleanFlag", FLAG),
    of(Kind::Flag, "jdk.IntFlag", FLAG),
    of(Kind::Flag, "jdk.UnsignedIntFlag", FLAG),
    of(Kind::Flag, "jdk.LongFlag", FLAG),
    of(Kind::Flag, "jdk.UnsignedLongFlag", FLAG),
    of(Kind::Flag, "jdk.DoubleFlag", FLAG),
    of(Kind::Flag, "jdk.StringFlag", FLAG),
    of(
        Kind::OldObject,
        "jdk.OldObjectSample",
        &[
            "startTime",
            "stackTrace",
            "object",
            "root",
            "allocationTime",
        ],
    ),
    of(
        Kind::Container,
        "jdk.ContainerConfiguration",
        &[
            "containerType",
            "effectiveCpuCount",
            "cpuQuota",
            "cpuSlicePeriod",
            "memoryLimit",
        ],
    ),
    of(
        Kind::Throttling,
        "jdk.ContainerCPUThrottling",
        &["cpuElapsedSlices", "cpuThrottledSlices", "cpuThrottledTime"],
    ),
    of(Kind::Setting, "jdk.ActiveSetting", &["id", "name", "value"]),
];
