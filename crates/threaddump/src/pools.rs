//! Pools: threads whose names differ by a number only, and whether one of them is starved.

use std::collections::BTreeMap;

use rungwise_model::threads::Pool;

use crate::activity::Activity;
use crate::frame;
use crate::graph::Graph;

/// Fewer are no pool.
const FEWEST: usize = 2;
/// Fewer are not called starved: two threads at one lock are a chance.
const FEWEST_STARVED: usize = 3;
/// What all threads of a pool may wait for besides a lock; other waits may be how a pool of a home-made kind is idle.
const SHORT_OF: &str = "gets a database connection";

/// The pools, largest first.
pub(crate) fn of(graph: &Graph<'_>) -> Vec<Pool> {
    let mut pools: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut rest: Vec<usize> = (0..graph.doing.len())
        .filter(|at| graph.doing[*at] != Activity::Jvm)
        .collect();
    // A name may have a number of the pool and one of the thread, and sometimes two of the thread: the last number first.
    for numbers in [1, 2] {
        let mut found: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for at in std::mem::take(&mut rest) {
            match pattern(&graph.dump.threads[at].name, numbers) {
                Some(name) => found.entry(name).or_default().push(at),
                None => rest.push(at),
            }
        }
        for (name, members) in found {
            if members.len() >= FEWEST {
                pools.entry(name).or_default().extend(members);
            } else {
                rest.extend(members);
            }
        }
    }
    let mut pools: Vec<Pool> = pools
        .into_iter()
        .map(|(name, members)| pool(graph, name, &members))
        .collect();
    pools.sort_by_key(|pool| std::cmp::Reverse(pool.threads));
    pools
}

fn pool(graph: &Graph<'_>, name: String, members: &[usize]) -> Pool {
    let count = |activity| {
        let members = members.iter();
        members.filter(|at| graph.doing[**at] == activity).count() as u64
    };
    Pool {
        name,
        threads: members.len() as u64,
        idle: count(Activity::Idle),
        running: count(Activity::Running),
        lock_waiting: count(Activity::LockWaiting),
        waiting: count(Activity::Waiting),
        starved: starved(graph, members),
    }
}

/// The name with its last `numbers` numbers replaced.
fn pattern(name: &str, numbers: usize) -> Option<String> {
    let mut pattern = name.to_owned();
    let mut end = name.len();
    for _ in 0..numbers {
        let last = pattern[..end].rfind(|c: char| c.is_ascii_digit())?;
        let before = pattern[..last].rfind(|c: char| !c.is_ascii_digit());
        let first = before.map_or(0, |at| {
            at + pattern[at..].chars().next().map_or(1, char::len_utf8)
        });
        pattern.replace_range(first..=last, "*");
        end = first;
    }
    Some(pattern)
}

/// What all members wait for. The owner of the lock may be one of them.
fn starved(graph: &Graph<'_>, members: &[usize]) -> Option<String> {
    if members.len() < FEWEST_STARVED {
        return None;
    }
    if let Some(wanted) = members.iter().find_map(|at| graph.wanted(*at)) {
        let node = &graph.nodes[wanted];
        let owner = node.owner.map(|(owner, _)| owner);
        let waits = |at: &usize| graph.wanted(*at) == Some(wanted) || owner == Some(*at);
        let holder = owner.map_or_else(String::new, |owner| {
            format!(", held by {}", graph.dump.threads[owner].label())
        });
        return members
            .iter()
            .all(waits)
            .then(|| format!("the lock {}{holder}", node.lock.class));
    }
    let all = members.iter().all(|at| {
        graph.doing[*at] == Activity::Waiting
            && frame::meaning(&graph.dump.threads[*at].frames) == Some(SHORT_OF)
    });
    all.then(|| "a database connection".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_replaced_from_the_end() {
        for (name, one, two) in [
            (
                "http-nio-8080-exec-17",
                Some("http-nio-8080-exec-*"),
                Some("http-nio-*-exec-*"),
            ),
            (
                "w13 [container1-361]",
                Some("w13 [container1-*]"),
                Some("w13 [container*-*]"),
            ),
            ("1", Some("*"), None),
            ("main", None, None),
            ("日1日", Some("日*日"), None),
        ] {
            assert_eq!(pattern(name, 1).as_deref(), one);
            assert_eq!(pattern(name, 2).as_deref(), two);
        }
    }
}
