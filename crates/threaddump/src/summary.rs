//! What dumps say together.

use std::collections::BTreeMap;

use rungwise_model::gc::Sample;
use rungwise_model::threads::{self, Deadlock, Doing, Form, Lock, Stuck};

use crate::activity::{self, Activity};
use crate::dump::{Dump, Reported};
use crate::graph::{Graph, Node, ids};
use crate::{course, frame, pools};

/// Dumps, and what is to be known of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// In the order of their time.
    pub dumps: Vec<threads::Dump>,
    /// Threads that stand still from dump to dump.
    pub stuck: Vec<Stuck>,
    /// What the reader should know.
    pub notes: Vec<String>,
    /// Of each dump: threads that wait for a lock whose owner it does not tell, and another form would.
    pub(crate) ownerless: Vec<usize>,
    /// Of each dump: threads that run with Java serialization on their stack.
    pub(crate) serializing: Vec<usize>,
}

/// What these dumps say.
pub fn summary(dumps: Vec<Dump>) -> Summary {
    let dumps = course::ordered(dumps);
    let jvms = course::jvms(&dumps);
    let graphs: Vec<Graph<'_>> = dumps.iter().map(Graph::of).collect();
    let told: Vec<threads::Dump> = graphs
        .iter()
        .zip(&jvms)
        .enumerate()
        .map(|(at, (graph, jvm))| dump(graph, at as u64 + 1, *jvm))
        .collect();
    let count = jvms.iter().copied().max().unwrap_or(0);
    let stuck = (1..=count).flat_map(|jvm| {
        let of_jvm = graphs.iter().zip(&jvms).filter(|(_, of)| **of == jvm);
        let of_jvm: Vec<&Graph<'_>> = of_jvm.map(|(graph, _)| graph).collect();
        course::stuck(jvm, &of_jvm)
    });
    let ownerless: Vec<usize> = graphs.iter().map(Graph::ownerless).collect();
    Summary {
        stuck: stuck.collect(),
        notes: notes(&dumps, count, ownerless.iter().copied().max().unwrap_or(0)),
        ownerless,
        serializing: graphs.iter().map(serializing).collect(),
        dumps: told,
    }
}

fn notes(dumps: &[Dump], jvms: u64, ownerless: usize) -> Vec<String> {
    let mut notes = Vec::new();
    if ownerless > 0 {
        let threads = if ownerless == 1 {
            "thread waits"
        } else {
            "threads wait"
        };
        notes.push(format!(
            "{ownerless} {threads} for a lock whose owner the dump does not tell, so deadlocks through it stay unseen; jcmd PID \
             Thread.print -l tells it"
        ));
    }
    if jvms > 1 {
        notes.push(format!(
            "the dumps are of {jvms} JVMs; only dumps of the same one are compared"
        ));
    }
    if dumps.iter().any(|dump| !activity::is_told(dump)) {
        notes.push(
            "a dump tells no states and no locks (Thread.dump_to_file before JDK 25), so nothing is said of deadlocks and lock \
             waiting in it; jcmd PID Thread.print -l tells them"
                .to_owned(),
        );
    }
    let carried = |dump: &Dump| {
        let virtually = |thread: &crate::dump::Thread| {
            thread.carries.is_some() || thread.name.starts_with("VirtualThread-un")
        };
        dump.form == Form::Print && dump.threads.iter().any(virtually)
    };
    if dumps.iter().any(carried) {
        notes.push(
            "the JVM runs virtual threads, and this form of dump shows only those that are mounted; jcmd PID \
             Thread.dump_to_file -format=json FILE shows all"
                .to_owned(),
        );
    }
    notes
}

fn dump(graph: &Graph<'_>, number: u64, jvm: u64) -> threads::Dump {
    let dump = graph.dump;
    let mut by_state = BTreeMap::new();
    for state in dump.threads.iter().filter_map(|thread| thread.state) {
        *by_state.entry(state.name().to_owned()).or_insert(0) += 1;
    }
    let count = |activity| {
        let all = graph.doing.iter();
        all.filter(|doing| **doing == activity).count() as u64
    };
    let doing = Doing {
        jvm: count(Activity::Jvm),
        idle: count(Activity::Idle),
        running: count(Activity::Running),
        lock_waiting: count(Activity::LockWaiting),
        waiting: count(Activity::Waiting),
    };
    let business = business(&doing);
    let share = doing.lock_waiting as f64 / business as f64;
    let mut nodes: Vec<&Node<'_>> = graph.nodes.iter().collect();
    nodes.sort_by_key(|node| std::cmp::Reverse((node.waiters.len(), node.behind)));
    threads::Dump {
        number,
        jvm,
        file: dump.file.to_string(),
        line: dump.line,
        taken: dump.taken.clone(),
        version: dump.version.clone(),
        form: dump.form,
        synchronizers_told: dump.synchronizers_told,
        threads: dump.threads.len() as u64,
        by_state,
        doing,
        waiting_share: (activity::is_told(dump) && business > 0).then_some(share),
        deadlocks: deadlocks(graph),
        locks: nodes.into_iter().map(|node| lock(graph, node)).collect(),
        pools: pools::of(graph),
    }
}

fn serializing(graph: &Graph<'_>) -> usize {
    let threads = graph.dump.threads.iter().zip(&graph.doing);
    let running = threads.filter(|(_, doing)| **doing == Activity::Running);
    running
        .filter(|(thread, _)| frame::serializes(&thread.frames))
        .count()
}

/// Threads with something to do.
pub(crate) fn business(doing: &Doing) -> u64 {
    doing.running + doing.lock_waiting + doing.waiting
}

fn lock(graph: &Graph<'_>, node: &Node<'_>) -> Lock {
    let threads = &graph.dump.threads;
    let owner = node.owner.map(|(at, hold)| (&threads[at], hold));
    let first = node
        .waiters
        .first()
        .and_then(|at| threads[*at].wait.as_ref());
    let held = owner.and_then(|(_, hold)| hold);
    let lines = [
        first.map(|wait| (wait.line, &wait.text)),
        held.map(|hold| (hold.line, &hold.text)),
    ];
    let kind = if node.is_synchronizer {
        "synchronizer"
    } else {
        "monitor"
    };
    Lock {
        id: node.lock.id.to_string(),
        class: node.lock.class.to_string(),
        kind: kind.to_owned(),
        owner: owner.map(|(thread, _)| thread.label()),
        chain: graph
            .chain(node)
            .into_iter()
            .map(|at| threads[at].label())
            .collect(),
        owner_unknown: graph.why_ownerless(node).map(str::to_owned),
        owner_state: owner.and_then(|(thread, _)| Some(thread.state?.name().to_owned())),
        owner_frames: owner.map_or_else(Vec::new, |(thread, _)| {
            frame::top(&thread.frames)
                .iter()
                .map(ToString::to_string)
                .collect()
        }),
        owner_doing: owner
            .and_then(|(thread, _)| frame::meaning(&thread.frames))
            .map(str::to_owned),
        waiters: node.waiters.iter().map(|at| threads[*at].label()).collect(),
        behind: node.behind,
        lines: lines
            .into_iter()
            .flatten()
            .map(|(line, text)| sample(line, text))
            .collect(),
    }
}

fn sample(line: u64, text: &str) -> Sample {
    Sample {
        line,
        text: text.to_owned(),
    }
}

/// The circles, and what the JVM reports and the stacks do not show.
fn deadlocks(graph: &Graph<'_>) -> Vec<Deadlock> {
    let mut reports: BTreeMap<_, &Reported> = graph
        .dump
        .reported
        .iter()
        .filter(|report| !report.members.is_empty())
        .map(|report| {
            let locks = report.members.iter().filter_map(|one| one.lock.as_ref());
            (ids(locks), report)
        })
        .collect();
    let threads = &graph.dump.threads;
    let mut deadlocks = Vec::new();
    for circle in graph.circles() {
        let reported = reports.remove(&ids(circle.iter().map(|(_, node)| node.lock)));
        let waits = circle
            .iter()
            .filter_map(|(at, _)| threads[*at].wait.as_ref());
        deadlocks.push(Deadlock {
            threads: circle.iter().map(|(at, _)| threads[*at].label()).collect(),
            locks: circle
                .iter()
                .map(|(_, node)| node.lock.id.to_string())
                .collect(),
            classes: circle
                .iter()
                .map(|(_, node)| node.lock.class.to_string())
                .collect(),
            reported: reported.is_some(),
            lines: waits.map(|wait| sample(wait.line, &wait.text)).collect(),
        });
    }
    let mut rest: Vec<&Reported> = reports.into_values().collect();
    rest.sort_by_key(|report| report.line);
    deadlocks.extend(rest.into_iter().map(of_report));
    deadlocks
}

fn of_report(report: &Reported) -> Deadlock {
    let locks = || {
        report
            .members
            .iter()
            .filter_map(|member| member.lock.as_ref())
    };
    Deadlock {
        threads: report
            .members
            .iter()
            .map(|member| member.thread.to_string())
            .collect(),
        locks: locks().map(|lock| lock.id.to_string()).collect(),
        classes: locks().map(|lock| lock.class.to_string()).collect(),
        reported: true,
        lines: report
            .members
            .iter()
            .map(|member| sample(member.line, &member.text))
            .collect(),
    }
}
