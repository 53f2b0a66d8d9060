//! The summary of several dumps.

use std::collections::{BTreeMap, HashMap};

use rungwise_model::gc::Sample;
use rungwise_model::threads::{
    self, Carriers, Deadlock, Doing, FullPool, Hot, Lock, SharedWait, Stage, Stuck, ThreadTime,
};

use crate::activity::{self, Activity};
use crate::dump::{Dump, Reported};
use crate::graph::{Graph, Node, ids};
use crate::stages::Stages;
use crate::{classes, course, frame, full, heat, pools, shared, times};

/// Dumps and their analysis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// In the order of their time.
    pub dumps: Vec<threads::Dump>,
    /// Stuck threads from dump to dump.
    pub stuck: Vec<Stuck>,
    /// What threads wait for that no thread owns, in the last dump of each JVM.
    pub waits: Vec<SharedWait>,
    /// Threads that used a CPU between the dumps.
    pub hot: Vec<Hot>,
    /// Carriers of virtual threads, of each JVM that has some.
    pub carriers: Vec<Carriers>,
    /// CPU use and waits of the threads of each JVM.
    pub times: Vec<ThreadTime>,
    /// Where threads were, by stages of the code.
    pub stages: Vec<Stage>,
    /// Pools without a free thread.
    pub full_pools: Vec<FullPool>,
    /// What the reader should know.
    pub notes: Vec<String>,
    /// Of each JVM, in order: what its dumps leave unseen.
    pub(crate) unseen: Vec<Unseen>,
    /// Of each dump: threads that run with Java serialization on their stack.
    pub(crate) serializing: Vec<usize>,
}

/// What the dumps of one JVM cannot show; it must not be reported as absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Unseen {
    /// Threads that wait for a lock whose owner these dumps lack, and another form has.
    pub(crate) ownerless: usize,
    /// Threads that wait for a lock whose owner no form of dump has: readers, a `StampedLock`, locks of virtual threads.
    pub(crate) unrecorded: usize,
    /// Different locks among those.
    pub(crate) locks: usize,
    /// Locks of virtual threads among those that none of their waiters got in any of the files, each with a waiter.
    pub(crate) held: Vec<String>,
    /// Virtual threads that wait to get a lock in all of the files, which do not name it, each with where it waits.
    pub(crate) stuck: Vec<String>,
    /// Virtual threads exist, and no dump shows what those that are not mounted wait for.
    pub(crate) virtual_threads: Option<&'static str>,
}

/// What these dumps say, with stages as [`Stages::default`] names them.
pub fn summary(dumps: Vec<Dump>) -> Summary {
    summary_by(dumps, &Stages::default())
}

/// What these dumps say.
pub fn summary_by(dumps: Vec<Dump>, names: &Stages) -> Summary {
    let mut dumps = course::ordered(dumps);
    for dump in &mut dumps {
        classes::resolve(dump);
    }
    let jvms = course::jvms(&dumps);
    let graphs: Vec<Graph<'_>> = dumps.iter().map(Graph::of).collect();
    let count = jvms.iter().copied().max().unwrap_or(0);
    let of_jvm = |jvm: u64| -> Vec<&Graph<'_>> {
        let graphs = graphs.iter().zip(&jvms);
        let of_jvm = graphs.filter(|(_, of)| **of == jvm);
        of_jvm.map(|(graph, _)| graph).collect()
    };
    // Earlier dumps of the same JVM and form, oldest first.
    let mut earlier: HashMap<(u64, bool), Vec<&Graph<'_>>> = HashMap::new();
    let summaries: Vec<threads::Dump> = graphs
        .iter()
        .zip(&jvms)
        .enumerate()
        .map(|(at, (graph, jvm))| {
            let before = earlier.entry((*jvm, is_print(graph))).or_default();
            let summary = dump(graph, before, at as u64 + 1, *jvm);
            before.push(graph);
            summary
        })
        .collect();
    let (mut stuck, mut waits, mut hot) = (Vec::new(), Vec::new(), Vec::new());
    let (mut carriers, mut unseen) = (Vec::new(), Vec::new());
    let (mut times, mut stages, mut full_pools) = (Vec::new(), Vec::new(), Vec::new());
    for jvm in 1..=count {
        let all = of_jvm(jvm);
        for form in [true, false] {
            // Threads are compared between dumps of one form: others print other frames.
            let of_form: Vec<&Graph<'_>> = all
                .iter()
                .copied()
                .filter(|graph| is_print(graph) == form)
                .collect();
            stuck.extend(course::stuck(jvm, &of_form));
            if form {
                hot.extend(heat::hot(jvm, &of_form));
                times.extend(times::times(jvm, &of_form));
            }
            // A file beside printed dumps has the same platform threads once more.
            if form || of_form.len() == all.len() {
                stages.extend(names.shares(jvm, &of_form));
                full_pools.extend(full::pools(jvm, &of_form));
            }
            let found = shared::waits(jvm, &of_form);
            // Both forms show platform threads; those of a file count where it alone has them.
            let is_new = |one: &SharedWait| {
                !waits.iter().any(|other: &SharedWait| {
                    other.jvm == jvm && other.kind == one.kind && other.at == one.at
                })
            };
            let found: Vec<SharedWait> = found.into_iter().filter(is_new).collect();
            waits.extend(found);
        }
        carriers.extend(heat::carriers(jvm, &all));
        unseen.push(self::unseen(&all));
    }
    waits.sort_by_key(|one| (one.jvm, std::cmp::Reverse(one.waiters.len())));
    Summary {
        notes: notes(&dumps, count, &unseen),
        stuck,
        waits,
        hot,
        carriers,
        times,
        stages,
        full_pools,
        unseen,
        serializing: graphs.iter().map(serializing).collect(),
        dumps: summaries,
    }
}

impl Summary {
    /// Whether threads wait for a lock whose owner the dumps lack, and dumps with `-l` have.
    pub fn lacks_owners(&self) -> bool {
        self.unseen.iter().any(|of| of.ownerless > 0)
    }
}

fn is_print(graph: &Graph<'_>) -> bool {
    !graph.dump.form.is_file()
}

/// The JVM runs virtual threads.
fn has_virtual(dump: &Dump) -> bool {
    dump.threads.iter().any(|thread| {
        thread.is_virtual
            || thread.carries.is_some()
            || thread.name.starts_with("VirtualThread-un")
            || has_release(dump) && is_carrier(thread)
    })
}

/// The JVM has virtual threads, or does not say its version.
fn has_release(dump: &Dump) -> bool {
    let version = dump.version.as_deref().unwrap_or("21");
    let major = version.split(['.', '+', '-']).next();
    major
        .and_then(|major| major.parse().ok())
        .is_some_and(|major: u32| major >= 21)
}

/// A carrier at rest, or a worker of some other pool: their names do not differ.
fn is_carrier(thread: &crate::dump::Thread) -> bool {
    let pattern = pools::pattern(&thread.name, 2);
    pattern.as_deref() == Some("ForkJoinPool-*-worker-*")
}

fn unseen(graphs: &[&Graph<'_>]) -> Unseen {
    let last = |print: bool| {
        let mut found = graphs.iter().rev();
        found.find(|graph| is_print(graph) == print)
    };
    let (print, file) = (last(true), last(false));
    let mut unseen = Unseen::default();
    match (print, file) {
        // The printed dump has the owners of platform threads; a file adds the virtual ones, whose owners nothing has.
        (Some(print), file) => {
            unseen.ownerless = print.ownerless();
            unseen.unrecorded = print.unrecorded();
            unseen.locks = print.ownerless_locks(false);
            if let Some(file) = file {
                unseen.unrecorded += file.ownerless_virtual() + file.unrecorded();
                unseen.locks += file.ownerless_locks(true);
            }
        }
        (None, Some(file)) => {
            let of_virtual = file.ownerless_virtual();
            unseen.ownerless = file.ownerless().saturating_sub(of_virtual);
            unseen.unrecorded = of_virtual + file.unrecorded();
            unseen.locks = file.ownerless_locks(true);
        }
        (None, None) => {}
    }
    let files: Vec<&Graph<'_>> = graphs
        .iter()
        .filter(|graph| !is_print(graph))
        .copied()
        .collect();
    unseen.held = Graph::never_passed_on(&files);
    unseen.stuck = Graph::never_got_it(&files);
    let any = graphs.iter().any(|graph| has_virtual(graph.dump));
    unseen.virtual_threads = match file {
        _ if !any => None,
        None => Some(
            "the JVM runs virtual threads, and a printed dump shows only mounted ones; jcmd PID Thread.dump_to_file -format=json \
             FILE shows all: pass both files",
        ),
        Some(file) if !activity::has_states(file.dump) && may_wait(graphs, file) => Some(
            "the JVM runs virtual threads, and before JDK 25, files of Thread.dump_to_file lack states and locks",
        ),
        Some(_) => None,
    };
    unseen
}

/// Whether virtual threads may wait for locks, by a file without states and by the printed dumps beside it: before JDK 24 one that waits for
/// a monitor keeps its carrier, and one that waits for another lock shows so by its frames.
fn may_wait(graphs: &[&Graph<'_>], file: &Graph<'_>) -> bool {
    let printed: Vec<&&Graph<'_>> = graphs.iter().filter(|graph| is_print(graph)).collect();
    let carries = |graph: &Graph<'_>| {
        let mut threads = graph.dump.threads.iter();
        threads.any(|thread| thread.carries.is_some())
    };
    let kept = match &printed[..] {
        [] => true,
        [one] => carries(one),
        _ => heat::carriers(0, graphs).is_some_and(|carriers| carriers.held > 0),
    };
    kept || file.ownerless_virtual() > 0
}

fn notes(dumps: &[Dump], jvms: u64, unseen: &[Unseen]) -> Vec<String> {
    let mut notes = Vec::new();
    let ownerless: usize = unseen.iter().map(|of| of.ownerless).sum();
    if ownerless > 0 {
        notes.push(format!(
            "{} for a lock whose owner these dumps lack, so they cannot exclude a deadlock; use jcmd PID Thread.print -l",
            threads_wait(ownerless)
        ));
    }
    let unrecorded: usize = unseen.iter().map(|of| of.unrecorded).sum();
    if unrecorded > 0 {
        notes.push(format!(
            "{} for a lock whose owner no dump records (readers of a read-write lock, a StampedLock, a ReentrantLock of virtual \
             threads): a deadlock through it is possible",
            threads_wait(unrecorded)
        ));
    }
    if jvms > 1 {
        notes.push(format!(
            "the dumps come from {jvms} JVMs; only dumps of the same JVM are compared"
        ));
    }
    let has_print = dumps.iter().any(|dump| !dump.form.is_file());
    if !has_print && dumps.iter().any(|dump| !activity::has_states(dump)) {
        notes.push(
            "a dump has no states and no locks (Thread.dump_to_file before JDK 25), so it shows neither deadlocks nor lock \
             waiting of platform threads; add a dump of jcmd PID Thread.print -l"
                .to_owned(),
        );
    }
    let mut of_virtual: Vec<&str> = unseen.iter().filter_map(|of| of.virtual_threads).collect();
    of_virtual.dedup();
    notes.extend(of_virtual.into_iter().map(str::to_owned));
    notes
}

fn threads_wait(count: usize) -> String {
    if count == 1 {
        "1 thread waits".to_owned()
    } else {
        format!("{count} threads wait")
    }
}

fn dump(graph: &Graph<'_>, before: &[&Graph<'_>], number: u64, jvm: u64) -> threads::Dump {
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
        has_synchronizers: dump.has_synchronizers,
        threads: dump.threads.len() as u64,
        by_state,
        doing,
        waiting_share: (activity::has_states(dump) && business > 0).then_some(share),
        deadlocks: deadlocks(graph),
        locks: nodes.into_iter().map(|node| lock(graph, node)).collect(),
        pools: pools::find(graph, before),
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

/// The cycles, and what the JVM reports and the stacks do not show.
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
    for cycle in graph.cycles() {
        let reported = reports.remove(&ids(cycle.iter().map(|(_, node)| node.lock)));
        let waits = cycle
            .iter()
            .filter_map(|(at, _)| threads[*at].wait.as_ref());
        deadlocks.push(Deadlock {
            threads: cycle.iter().map(|(at, _)| threads[*at].label()).collect(),
            locks: cycle
                .iter()
                .map(|(_, node)| node.lock.id.to_string())
                .collect(),
            classes: cycle
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
