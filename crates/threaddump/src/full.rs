//! Thread pools without a free thread, and what their threads wait for in the end.
//!
//! A thread that waits for a lock waits for what its owner does; one that waits for a connection, for what those do that have one. So
//! a pool whose threads queue at a lock or at a connection pool may be full because of a database.

use std::collections::BTreeMap;

use rungwise_model::threads::FullPool;

use crate::activity::Activity;
use crate::frame;
use crate::graph::Graph;
use crate::pools::pattern;
use crate::shared;
use crate::waits::{self, Kind};

/// Fewer threads are not called a pool that is full: two busy threads are a chance.
const FEWEST: usize = 3;

/// What a thread waits for in the end, and what lies between.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cause {
    what: &'static str,
    at: Option<String>,
}

/// The pools of one JVM with threads that wait for what another process does; the largest first.
///
/// A lock has no owner while it is handed over, so one dump may lack what the others show: the median dump counts.
pub(crate) fn pools(jvm: u64, graphs: &[&Graph<'_>]) -> Vec<FullPool> {
    let mut found: BTreeMap<String, Vec<FullPool>> = BTreeMap::new();
    let mut least: BTreeMap<String, f64> = BTreeMap::new();
    for graph in graphs {
        let pools = members(graph);
        for (name, members) in pools.iter().filter(|(_, all)| all.len() >= FEWEST) {
            let busy = busy(graph, members);
            let busy_share = least.entry(name.clone()).or_insert(busy);
            *busy_share = busy_share.min(busy);
            let mut pool = FullPool {
                jvm,
                name: name.clone(),
                threads: members.len() as u64,
                ..FullPool::default()
            };
            if let Some((cause, behind, through)) = cause(graph, members) {
                cause.what.clone_into(&mut pool.cause);
                pool.behind = behind;
                pool.through = through;
                pool.at = cause.at;
            }
            found.entry(name.clone()).or_default().push(pool);
        }
    }
    let mut full: Vec<FullPool> = found
        .into_values()
        .filter_map(|mut dumps| {
            dumps.sort_by_key(|pool| pool.behind);
            let mut pool = dumps.swap_remove(dumps.len() / 2);
            pool.busy_share = least.get(&pool.name).copied()?;
            (pool.behind > 0).then_some(pool)
        })
        .collect();
    full.sort_by_key(|pool| std::cmp::Reverse(pool.behind));
    full
}

fn members(graph: &Graph<'_>) -> BTreeMap<String, Vec<usize>> {
    let mut pools: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, thread) in graph.dump.threads.iter().enumerate() {
        if graph.doing[at] != Activity::Jvm
            && let Some(name) = pattern(&thread.name, 1)
        {
            pools.entry(name).or_default().push(at);
        }
    }
    pools
}

fn busy(graph: &Graph<'_>, members: &[usize]) -> f64 {
    let idle = members
        .iter()
        .filter(|at| graph.doing[**at] == Activity::Idle);
    1.0 - idle.count() as f64 / members.len().max(1) as f64
}

/// What most members wait for in the end, how many do, and what most of those that do not wait directly pass through.
fn cause(graph: &Graph<'_>, members: &[usize]) -> Option<(Cause, u64, Option<String>)> {
    let mut causes: BTreeMap<&'static str, (u64, Option<String>)> = BTreeMap::new();
    let mut through: BTreeMap<&'static str, BTreeMap<String, u64>> = BTreeMap::new();
    let mut lent = BTreeMap::new();
    for at in members {
        let Some((cause, way)) = ultimate(graph, *at, &mut lent) else {
            continue;
        };
        let (count, place) = causes.entry(cause.what).or_default();
        *count += 1;
        *place = place.take().or(cause.at);
        if let Some(way) = way {
            *through
                .entry(cause.what)
                .or_default()
                .entry(way)
                .or_default() += 1;
        }
    }
    let (what, (count, at)) = causes.into_iter().max_by_key(|(_, (count, _))| *count)?;
    let ways = through.remove(what).unwrap_or_default();
    let way = ways.into_iter().max_by_key(|(_, count)| *count);
    let way = way.map(|(way, count)| format!("{count} of them {way}"));
    Some((Cause { what, at }, count, way))
}

/// What this thread waits for in the end, and the way there. `lent` holds what those wait for that have the connections of a pool.
fn ultimate(
    graph: &Graph<'_>,
    at: usize,
    lent: &mut BTreeMap<Kind, Option<Cause>>,
) -> Option<(Cause, Option<String>)> {
    let thread = &graph.dump.threads[at];
    match graph.doing[at] {
        Activity::LockWaiting => {
            let node = &graph.nodes[graph.wanted(at)?];
            let owner = *graph.chain(node).last()?;
            let way = format!("through the lock {}", node.lock.class);
            Some((direct(graph, owner)?, Some(way)))
        }
        Activity::Waiting => match waits::kind(thread) {
            Some(kind @ Kind::Lent(_)) => {
                let cause = lent.entry(kind).or_insert_with(|| {
                    let holders = shared::past(graph, &[at], kind);
                    holders.into_iter().find_map(|holder| direct(graph, holder))
                });
                Some((cause.clone()?, Some(format!("through {}", kind.what()))))
            }
            _ => Some((direct(graph, at)?, None)),
        },
        Activity::Running => Some((direct(graph, at)?, None)),
        Activity::Jvm | Activity::Idle => None,
    }
}

/// The thread itself waits for another process, by its frames.
fn direct(graph: &Graph<'_>, at: usize) -> Option<Cause> {
    let frames = &graph.dump.threads[at].frames;
    // A driver that computes does not wait for the database.
    let asleep = graph.doing[at] == Activity::Waiting
        || frames.first().is_some_and(|top| {
            let name = frame::method(top);
            top.contains("Native Method") || READS.iter().any(|read| name.starts_with(read))
        });
    let what = frame::meaning(frames).filter(|what| asleep && frame::is_downstream(what))?;
    let caller = frames.iter().find(|frame| {
        !frame::is_of_jdk(frame) && frame::meaning(std::slice::from_ref(frame)).is_none()
    });
    Some(Cause {
        what,
        at: caller.map(|frame| frame::short(frame).to_owned()),
    })
}

/// Frames on top of a thread that reads from a socket.
const READS: [&str; 4] = [
    "java.net.SocketInputStream.",
    "sun.nio.ch.Net.poll",
    "sun.nio.ch.SocketDispatcher.read",
    "sun.nio.ch.NioSocketImpl.",
];

#[cfg(test)]
mod tests {
    use crate::{Parser, summary};

    const READ: &str = "\tat java.net.SocketInputStream.socketRead0(Native Method)\n\tat org.postgresql.core.PGStream.receive(P.java:1)\n\
        \tat shop.Dao.find(Dao.java:1)\n";

    fn pools(threads: &[(&str, String)]) -> Vec<rungwise_model::threads::FullPool> {
        let mut text = "Full thread dump OpenJDK 64-Bit Server VM (17 mixed mode):\n\n".to_owned();
        for (at, (state, frames)) in threads.iter().enumerate() {
            let head = format!("\"http-{at}\" #{at} tid=0x{at} nid=0x{at} x\n");
            text += &[
                &head,
                "   java.lang.Thread.State: ",
                state,
                "\n",
                frames,
                "\n",
            ]
            .concat();
        }
        let mut parser = Parser::new();
        parser.begin("dump");
        parser.push(text.as_bytes());
        summary(parser.finish().0).full_pools
    }

    #[test]
    fn who_waits_for_the_lock_of_a_thread_that_waits_for_the_database_waits_for_the_database() {
        let holder = format!("{READ}\t- locked <0x1> (a shop.Dao)\n");
        let waiter = "\tat shop.Dao.find(Dao.java:1)\n\t- waiting to lock <0x1> (a shop.Dao)\n";
        let blocked = ("BLOCKED", waiter.to_owned());
        let found = pools(&[("RUNNABLE", holder), blocked.clone(), blocked]);
        assert_eq!(found.len(), 1);
        let pool = &found[0];
        assert_eq!((&*pool.name, pool.threads, pool.behind), ("http-*", 3, 3));
        assert_eq!(pool.cause, "waits for the database");
        assert_eq!(pool.at.as_deref(), Some("Dao.find"));
        assert_eq!(
            pool.through.as_deref(),
            Some("2 of them through the lock shop.Dao")
        );
        assert!((pool.busy_share - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_pool_that_computes_or_rests_waits_for_nobody() {
        let computes = ("RUNNABLE", "\tat shop.Dao.sum(Dao.java:1)\n".to_owned());
        assert!(pools(&[computes.clone(), computes.clone(), computes]).is_empty());
        let idle = (
            "WAITING",
            "\tat java.util.concurrent.LinkedBlockingQueue.take(L.java:1)\n".to_owned(),
        );
        let reads = ("RUNNABLE", READ.to_owned());
        let found = pools(&[reads, idle.clone(), idle]);
        assert!((found[0].busy_share - 1.0 / 3.0).abs() < 1e-9);
        assert_eq!(found[0].behind, 1);
    }
}
