//! CPU use and waits of all threads in one list: who is hot, who waits, for what, and who holds it.
//!
//! Sixty threads of a pool that wait for one lock are one row; the one of them that holds it is another.

use std::collections::{BTreeMap, HashMap};

use rungwise_model::threads::{Doing, ThreadTime};

use crate::activity::Activity;
use crate::course::key;
use crate::dump::{Task, Thread};
use crate::frame;
use crate::graph::Graph;
use crate::pools::pattern;
use crate::waits;

/// Rows of one JVM; further ones are left out.
const MOST: usize = 200;
/// Share of one CPU from which on threads that the dumps lack are listed.
const LISTED: f64 = 0.01;

/// A thread over the dumps.
struct One<'d> {
    thread: &'d Thread,
    doing: Activity,
    what: String,
    samples: Doing,
    cpu: Option<f64>,
    system: Option<f64>,
    queued: Option<f64>,
}

/// The rows of one JVM over its dumps in the form that HotSpot prints.
pub(crate) fn times(jvm: u64, graphs: &[&Graph<'_>]) -> Vec<ThreadTime> {
    let Some((last, before)) = graphs.split_last() else {
        return Vec::new();
    };
    let earlier: Vec<HashMap<String, usize>> = before.iter().map(|graph| by_key(graph)).collect();
    let mut rows: BTreeMap<(String, u8, String), Vec<One<'_>>> = BTreeMap::new();
    for (at, thread) in last.dump.threads.iter().enumerate() {
        let id = key(thread);
        let mut samples = Doing::default();
        let mut first = None;
        for (graph, places) in before.iter().zip(&earlier) {
            if let Some(at) = places.get(&id) {
                add(&mut samples, graph.doing[*at]);
                first = first.or(Some(&graph.dump.threads[*at]));
            }
        }
        add(&mut samples, last.doing[at]);
        let passed = first.and_then(|first| positive(thread.elapsed_s? - first.elapsed_s?));
        let grown = |of: fn(&Thread) -> Option<f64>| {
            let used = of(thread)? - of(first?)?;
            (used >= 0.0).then(|| Some(used / passed?)).flatten()
        };
        let one = One {
            thread,
            doing: last.doing[at],
            what: what(last, at),
            samples,
            cpu: grown(|thread| thread.cpu_s),
            system: grown(|thread| thread.system_s),
            queued: grown(|thread| thread.queued_s),
        };
        let name = pattern(&thread.name, 1).unwrap_or_else(|| thread.label());
        let row = (name, one.doing as u8, one.what.clone());
        rows.entry(row).or_default().push(one);
    }
    let mut times: Vec<ThreadTime> = rows
        .into_iter()
        .map(|((name, _, what), all)| row(jvm, name, what, &all))
        .collect();
    times.extend(unlisted(jvm, graphs));
    times.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    times.truncate(MOST);
    times
}

/// Threads that run on a CPU or wait for a lock come first, then those that wait for something else.
fn weight(row: &ThreadTime) -> f64 {
    let samples = &row.samples;
    let all = samples.jvm + samples.idle + samples.running + samples.lock_waiting + samples.waiting;
    let of = |count: u64| row.threads as f64 * count as f64 / all.max(1) as f64;
    row.cpu_share.unwrap_or_else(|| of(samples.running))
        + of(samples.lock_waiting)
        + 0.1 * of(samples.waiting)
}

fn row(jvm: u64, name: String, what: String, all: &[One<'_>]) -> ThreadTime {
    let sum = |of: fn(&One<'_>) -> Option<f64>| {
        let known: Vec<f64> = all.iter().filter_map(of).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>())
    };
    let mut samples = Doing::default();
    for one in all {
        samples.jvm += one.samples.jvm;
        samples.idle += one.samples.idle;
        samples.running += one.samples.running;
        samples.lock_waiting += one.samples.lock_waiting;
        samples.waiting += one.samples.waiting;
    }
    let place = |one: &One<'_>| {
        let mut frames = one.thread.frames.iter();
        let frame = frames.find(|frame| !frame::is_of_jdk(frame));
        frame.map(|frame| frame::short(frame).to_owned())
    };
    let first = &all[0];
    let at = place(first).filter(|at| {
        let is_work = !matches!(first.doing, Activity::Jvm | Activity::Idle);
        is_work && all.iter().all(|one| place(one).as_ref() == Some(at))
    });
    ThreadTime {
        jvm,
        name: if all.len() == 1 {
            first.thread.label()
        } else {
            name
        },
        threads: all.len() as u64,
        doing: word(first.doing).to_owned(),
        what,
        at,
        cpu_share: sum(|one| one.cpu),
        system_share: sum(|one| one.system),
        queued_share: sum(|one| one.queued).map(|sum| sum / all.len() as f64),
        samples,
    }
}

/// Threads of the process that no dump has: native code that the JVM does not know.
fn unlisted(jvm: u64, graphs: &[&Graph<'_>]) -> Option<ThreadTime> {
    let (first, last) = (graphs.first()?, graphs.last()?);
    let then: HashMap<u64, &Task> = first
        .dump
        .others
        .iter()
        .map(|task| (task.native, task))
        .collect();
    // Both dumps have the age of some thread, if they have the kernel's numbers.
    let then_keys = by_key(first);
    let passed = last.dump.threads.iter().find_map(|now| {
        let then = &first.dump.threads[*then_keys.get(&key(now))?];
        positive(now.elapsed_s? - then.elapsed_s?)
    })?;
    let (mut cpu, mut system, mut threads) = (0.0, 0.0, 0);
    let mut busiest: Option<(f64, &str)> = None;
    for now in &last.dump.others {
        let Some(then) = then.get(&now.native) else {
            continue;
        };
        let used = now.cpu_s - then.cpu_s;
        if used > 0.0 {
            threads += 1;
            cpu += used / passed;
            system += (now.system_s - then.system_s).max(0.0) / passed;
            if busiest.is_none_or(|(most, _)| used > most) {
                busiest = Some((used, &now.name));
            }
        }
    }
    let (_, name) = busiest.filter(|_| cpu >= LISTED)?;
    Some(ThreadTime {
        jvm,
        name: if threads == 1 {
            name.to_owned()
        } else {
            format!("{name} and other native threads")
        },
        threads,
        doing: "unlisted".to_owned(),
        what: "native code; the dumps lack it".to_owned(),
        cpu_share: Some(cpu),
        system_share: Some(system),
        ..ThreadTime::default()
    })
}

fn by_key(graph: &Graph<'_>) -> HashMap<String, usize> {
    let threads = graph.dump.threads.iter().enumerate();
    threads.map(|(at, one)| (key(one), at)).collect()
}

fn positive(seconds: f64) -> Option<f64> {
    (seconds > 0.0).then_some(seconds)
}

/// What a thread does or waits for, and who holds it.
fn what(graph: &Graph<'_>, at: usize) -> String {
    let thread = &graph.dump.threads[at];
    match graph.doing[at] {
        Activity::Jvm | Activity::Idle => String::new(),
        Activity::Running => frame::meaning(&thread.frames).unwrap_or("runs").to_owned(),
        Activity::LockWaiting => {
            let Some(node) = graph.wanted(at).map(|node| &graph.nodes[node]) else {
                return "waits for a lock".to_owned();
            };
            let lock = &node.lock.class;
            match graph.chain(node).as_slice() {
                [] => format!("waits for the lock {lock}"),
                [.., last] => {
                    let owner = &graph.dump.threads[*last];
                    let doing = frame::meaning(&owner.frames);
                    let doing = doing.map_or_else(String::new, |doing| format!(", which {doing}"));
                    format!(
                        "waits for the lock {lock}, held by {}{doing}",
                        owner.label()
                    )
                }
            }
        }
        Activity::Waiting => match waits::kind(thread) {
            Some(kind) => format!("waits for {}", kind.what()),
            None => frame::meaning(&thread.frames).unwrap_or("waits").to_owned(),
        },
    }
}

pub(crate) fn add(samples: &mut Doing, doing: Activity) {
    let count = match doing {
        Activity::Jvm => &mut samples.jvm,
        Activity::Idle => &mut samples.idle,
        Activity::Running => &mut samples.running,
        Activity::LockWaiting => &mut samples.lock_waiting,
        Activity::Waiting => &mut samples.waiting,
    };
    *count += 1;
}

fn word(doing: Activity) -> &'static str {
    match doing {
        Activity::Jvm => "jvm",
        Activity::Idle => "idle",
        Activity::Running => "running",
        Activity::LockWaiting => "lock_waiting",
        Activity::Waiting => "waiting",
    }
}

#[cfg(test)]
mod tests {
    use crate::{Dump, Parser, Task, summary};

    fn dumps(cpu_ms: [f64; 2]) -> Vec<Dump> {
        let mut parser = Parser::new();
        for (number, cpu) in cpu_ms.into_iter().enumerate() {
            parser.begin(&format!("dump.{number}"));
            let mut text =
                "Full thread dump OpenJDK 64-Bit Server VM (1.8.0_1 mixed mode):\n\n\"owner\" #1 tid=0x1 nid=0x64 runnable\n   \
                 java.lang.Thread.State: RUNNABLE\n\tat org.apache.log4j.Category.callAppenders(C.java:1)\n\t- locked <0x1> (a Root)\n\n"
                .to_owned();
            for thread in 1..=3 {
                let thread = format!(
                    "\"http-{thread}\" #{} cpu={cpu}ms elapsed={number}s tid=0x{thread}0 nid=0x{thread} waiting for monitor entry\n   \
                     java.lang.Thread.State: BLOCKED (on object monitor)\n\tat A.b(A.java:1)\n\t- waiting to lock <0x1> (a Root)\n\n",
                    thread + 1
                );
                text += &thread;
            }
            parser.push(text.as_bytes());
        }
        parser.finish().0
    }

    #[test]
    fn what_waits_for_one_lock_is_one_row_and_its_owner_another() {
        let mut dumps = dumps([0.0, 100.0]);
        for (number, dump) in dumps.iter_mut().enumerate() {
            let at_s = number as f64;
            let task = |native, name: &str, cpu_s| Task {
                native,
                name: name.to_owned(),
                cpu_s,
                system_s: cpu_s / 2.0,
                queued_s: Some(0.1 * at_s),
            };
            let tasks = vec![task(0x64, "owner", at_s), task(7, "netty", 0.5 * at_s)];
            dump.join(at_s, tasks);
        }
        let rows = summary(dumps).times;
        let names: Vec<&str> = rows.iter().map(|row| &*row.name).collect();
        assert_eq!(names, ["http-*", "owner", "netty"]);
        let waiting = &rows[0];
        assert_eq!((waiting.threads, &*waiting.doing), (3, "lock_waiting"));
        assert_eq!(
            waiting.what,
            "waits for the lock Root, held by owner, which writes a log"
        );
        assert!(
            (waiting.cpu_share.unwrap() - 0.3).abs() < 1e-9,
            "{waiting:?}"
        );
        assert_eq!(waiting.samples.lock_waiting, 6);
        // The owner prints no CPU time, as on JDK 8: it is the kernel's.
        let owner = &rows[1];
        assert!((owner.cpu_share.unwrap() - 1.0).abs() < 1e-9, "{owner:?}");
        assert!((owner.system_share.unwrap() - 0.5).abs() < 1e-9);
        assert!((owner.queued_share.unwrap() - 0.1).abs() < 1e-9);
        assert_eq!(rows[2].doing, "unlisted");
        assert!((rows[2].cpu_share.unwrap() - 0.5).abs() < 1e-9);
    }

    #[test]
    fn without_cpu_times_shares_are_unknown_and_not_zero() {
        let rows = summary(dumps([0.0, 0.0])[..1].to_vec()).times;
        assert!(rows.iter().all(|row| row.cpu_share.is_none()), "{rows:?}");
    }
}
