//! What a JVM says of itself when it starts: `gc+init`, `gc+heap+coops`, `arguments`, and `Using G1`.
//! Source: `gc/shared/gcInitLogger.cpp` and what came before it in each collector.

use memchr::memmem;

use super::pause::fact;
use super::{Message, Unified, areas};
use crate::account::Read;
use crate::context::Context;
use crate::event::{Collector, Event, Fact};
use crate::number::{size, whole};

/// Reads a line of the header.
pub(super) fn line(unified: &mut Unified, context: &mut Context<'_>, message: Message<'_>) -> Read {
    let text = message.text.trim_ascii();
    let Some((name, rest)) = split(text) else {
        return using(unified, context, message, text);
    };
    let number = || whole(rest).map(|(value, _)| value);
    let bytes = || size(rest).map(|(value, _)| value);
    let found = match name {
        b"Version" => {
            let end = memmem::find(rest, b" (").unwrap_or(rest.len());
            unified.at(context, &message);
            return text_fact(context, &rest[..end], Fact::Version);
        }
        b"CommandLine flags" | b"jvm_args" => return text_fact(context, rest, Fact::Flags),
        b"CPUs" => cpus(rest).map(Fact::Cpus),
        b"Memory" => bytes().map(Fact::Memory),
        b"Heap Region Size" | b"Heap region size" => {
            return found_region(unified, context, bytes());
        }
        b"Region size in bytes" => return found_region(unified, context, number()),
        b"Regions" => {
            // `800 x 512K`
            let each = whole(rest).and_then(|(_, rest)| size(rest.strip_prefix(b" x ")?));
            return found_region(unified, context, each.map(|(value, _)| value));
        }
        b"Heap Max Capacity" | b"Max Capacity" => bytes().map(Fact::MaxHeap),
        b"Initialize Shenandoah heap" => {
            // `8M initial, 4M min, 256M max`
            let last = memmem::rfind(rest, b", ").and_then(|at| size(&rest[at + 2..]));
            last.map(|(value, _)| Fact::MaxHeap(value))
        }
        b"Heap address" => {
            let at = memmem::find(rest, b"size: ").and_then(|at| size(&rest[at + 6..]));
            at.map(|(value, _)| Fact::MaxHeap(value))
        }
        b"Parallel Workers"
        | b"Parallel GC threads"
        | b"ParallelGCThreads"
        | b"Runtime Workers" => number().map(Fact::ParallelWorkers),
        b"Concurrent Workers"
        | b"Concurrent GC threads"
        | b"ConcGCThreads"
        | b"GC Workers"
        | b"GC Workers Max" => number().map(Fact::ConcurrentWorkers),
        b"Workers" | b"GC threads" => {
            // `2 parallel, 1 concurrent`
            let Some((parallel, after)) = whole(rest) else {
                return Read::Unknown;
            };
            let concurrent = after.strip_prefix(b" parallel, ").and_then(whole);
            context.tell(Event::Fact(Fact::ParallelWorkers(parallel)));
            concurrent.map(|(value, _)| Fact::ConcurrentWorkers(value))
        }
        b"Mode" if rest == b"Generational" => {
            unified.found(context, Collector::GenerationalShenandoah);
            return Read::Understood;
        }
        b"GC Workers for Young Generation" => {
            unified.found(context, Collector::GenerationalZ);
            return Read::Understood;
        }
        _ => None,
    };
    found.map_or(Read::Unknown, |found| fact(context, found))
}

fn split(text: &[u8]) -> Option<(&[u8], &[u8])> {
    /// The longest name is `GC Workers for Young Generation`.
    const LONGEST: usize = 32;
    let at = memchr::memchr(b':', &text[..text.len().min(LONGEST)])?;
    Some((&text[..at], text[at + 1..].trim_ascii_start()))
}

/// `Using G1`, and lines without a colon.
fn using(
    unified: &mut Unified,
    context: &mut Context<'_>,
    message: Message<'_>,
    text: &[u8],
) -> Read {
    let collector = match text {
        b"Using Serial" => Collector::Serial,
        b"Using Parallel" => Collector::Parallel,
        b"Using Concurrent Mark Sweep" => Collector::Cms,
        b"Using G1" => Collector::G1,
        b"Using The Z Garbage Collector" => Collector::Z,
        b"Using Shenandoah" => Collector::Shenandoah,
        b"Using Epsilon" => Collector::Epsilon,
        b"Initializing The Z Garbage Collector" => return Read::Ignored,
        _ if text.starts_with(b"Minimum heap ") => {
            // `Minimum heap 8388608  Initial heap 134217728  Maximum heap 134217728`
            const LABEL: &[u8] = b"Maximum heap ";
            let most = memmem::find(text, LABEL).and_then(|at| whole(&text[at + LABEL.len()..]));
            return most.map_or(Read::Unknown, |(value, _)| {
                fact(context, Fact::MaxHeap(value))
            });
        }
        _ => return Read::Unknown,
    };
    let mut message = message;
    unified.starts(context, &mut message);
    let stamp = unified.at(context, &message);
    if unified.has_begun {
        // Whatever the clock says: a JVM prints this once, before anything else happens.
        unified.restart(context);
        context.clock.restart(stamp.uptime_ns);
    }
    unified.has_begun = true;
    // ZGC tells of its generations before its name.
    unified.found(context, collector);
    Read::Understood
}

fn found_region(unified: &mut Unified, context: &mut Context<'_>, bytes: Option<u64>) -> Read {
    bytes.map_or(Read::Unknown, |bytes| {
        areas::region(unified, context, bytes)
    })
}

/// `2 total, 2 available`: those that the JVM may use.
fn cpus(text: &[u8]) -> Option<u64> {
    let (total, rest) = whole(text)?;
    let available = rest.strip_prefix(b" total, ").and_then(whole);
    Some(available.map_or(total, |(value, _)| value))
}

fn text_fact<'a>(context: &mut Context<'_>, text: &'a [u8], make: fn(&'a str) -> Fact<'a>) -> Read {
    match std::str::from_utf8(text) {
        Ok(text) => fact(context, make(text)),
        Err(_) => Read::Ignored,
    }
}

#[cfg(test)]
mod tests {
    use super::super::parsed::parsed;

    #[test]
    fn a_header_tells_the_jvm_and_its_machine() {
        let parsed = parsed(
            "[0.2s][info][gc     ] Using G1\n\
             [0.4s][info][gc,init] Version: 25.0.3+9-LTS (release)\n\
             [0.4s][info][gc,init] CPUs: 4 total, 2 available\n\
             [0.4s][info][gc,init] Memory: 24105M\n\
             [0.4s][info][gc,init] NUMA Support: Disabled\n\
             [0.4s][info][gc,init] Heap Region Size: 1M\n\
             [0.4s][info][gc,init] Heap Max Capacity: 256M\n\
             [0.4s][info][gc,init] Parallel Workers: 2\n\
             [0.4s][info][gc,init] Concurrent Workers: 1\n\
             [0.4s][info][arguments] jvm_args: -Xmx256m -XX:+UseG1GC\n",
        );
        assert_eq!(
            parsed.others,
            [
                "Collector(G1)",
                "Version(\"25.0.3+9-LTS\")",
                "Cpus(2)",
                "Memory(25275924480)",
                "RegionSize(1048576)",
                "MaxHeap(268435456)",
                "ParallelWorkers(2)",
                "ConcurrentWorkers(1)",
                "Flags(\"-Xmx256m -XX:+UseG1GC\")",
            ]
        );
    }

    #[test]
    fn headers_of_older_jvms_say_it_in_other_words() {
        let parsed = parsed(
            "[0.1s][gc,init] Regions: 1200 x 256K\n\
             [0.1s][gc,init] Initialize Shenandoah heap: 300M initial, 4M min, 301M max\n\
             [0.1s][gc,init] GC threads: 2 parallel, 1 concurrent\n\
             [0.1s][gc,heap,coops] Heap address: 0x00000007fc000000, size: 64 MB, Compressed Oops mode: Zero based, Oop shift amount: 3\n\
             [0.1s][gc,heap] Minimum heap 8388608  Initial heap 134217728  Maximum heap 134217729\n",
        );
        assert_eq!(
            parsed.others,
            [
                "RegionSize(262144)",
                "MaxHeap(315621376)",
                "ParallelWorkers(2)",
                "ConcurrentWorkers(1)",
                "MaxHeap(67108864)",
                "MaxHeap(134217729)",
            ]
        );
    }

    #[test]
    fn a_mode_of_generations_is_reported_after_the_name() {
        let parsed = parsed(
            "[0.1s][gc] Using Shenandoah\n\
             [0.1s][gc,init] Mode: Generational\n",
        );
        assert_eq!(
            parsed.others,
            ["Collector(Shenandoah)", "Collector(GenerationalShenandoah)"]
        );
    }
}
