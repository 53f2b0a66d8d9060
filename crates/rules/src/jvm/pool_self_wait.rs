//! `pool-self-wait`: tasks of a pool wait for tasks that only the same pool would run.
//!
//! No dump shows in which queue a task waits. It follows from the rest: all threads of the pool wait for results, and no thread of any
//! other pool is at work that could compute them.

use rungwise_model::check::{Finding, Grade};
use rungwise_model::evidence::{Evidence, Missing, Subject};
use rungwise_model::keys;

use super::dumps;
use crate::{Doc, Judgement, Measure, Rule, Threshold, say};

const ALL: Threshold = Threshold {
    name: "share of the pool's threads that did not move in any dump, if something else may complete their results",
    value: 1.0,
    origin: "a pool with one running thread still runs its tasks",
};

pub(crate) static RULE: Rule = Rule {
    id: "pool-self-wait",
    topic: "jvm",
    summary: "all threads of a pool wait for tasks that the same pool has to run",
    needs: &[
        &keys::THREADS_DUMPS,
        &keys::THREADS_POOLS,
        &keys::THREADS_SELF_POOL,
        &keys::THREADS_SELF_POOL_NEEDS,
        &keys::THREADS_SELF_POOL_OTHERS,
        &keys::THREADS_SELF_POOL_STILL,
        &keys::THREADS_SELF_POOL_THREADS,
    ],
    thresholds: &[ALL],
    knobs: &[],
    measure: Some(Measure::more(&keys::THREADS_SELF_POOL_STILL)),
    doc: Doc {
        looks_for: "A pool without an idle thread, all of whose threads wait for the result of another task: FutureTask.get, invokeAll, \
            CompletableFuture.join, ForkJoinTask.join, a CountDownLatch. If no thread of another pool is at work, nothing computes the \
            results: their tasks wait in the queue of the same pool.",
        hurts: "The pool never finishes any task again, and every request that needs it hangs. The JVM does not report this deadlock: no \
            lock is involved, and all threads look as if they only waited.",
        todo: "Restart the service to recover. Then run the inner tasks in a separate pool, or compose them (thenCompose, thenCombine) \
            instead of waiting, or run them in the thread that needs them. A larger pool only delays it.",
        wrong: "A CompletableFuture may be completed from outside of any pool: by a selector, a timer, another JVM. So for such futures the \
            rule acts only if no thread of the pool moved over at least two dumps. If threads of other pools are at work, they may compute \
            the results: then it only watches. A task that runs in a virtual thread does not appear in a printed dump.",
        sources: "java.util.concurrent.ThreadPoolExecutor; Goetz, Java Concurrency in Practice, 8.1.1, thread starvation deadlock; the \
            programs pool-self, pool-invoke-all, pool-async and common-pool in crates/testkit/java on JDK 8 to 25.",
    },
    judge,
};

fn judge(evidence: &Evidence) -> Judgement {
    dumps::each(evidence, |evidence, jvm| Ok(vec![of_jvm(evidence, jvm)?]))
}

fn of_jvm(evidence: &Evidence, jvm: &Subject) -> Result<Finding, Missing> {
    let pools = evidence.quantity(&keys::THREADS_POOLS, jvm)?;
    let Ok(pool) = evidence.words(&keys::THREADS_SELF_POOL, jvm) else {
        let sentence = "every pool has a thread that does not wait for the result of another task";
        return Ok(Finding::clear(sentence).cite(pools.reading));
    };
    let number = |key| evidence.quantity(key, jvm);
    let threads = number(&keys::THREADS_SELF_POOL_THREADS)?;
    let still = number(&keys::THREADS_SELF_POOL_STILL)?;
    let others = number(&keys::THREADS_SELF_POOL_OTHERS)?;
    let needs = number(&keys::THREADS_SELF_POOL_NEEDS)?;
    let dumps = number(&keys::THREADS_DUMPS)?;
    let share = still.value / threads.value.max(1.0);
    let stands = share >= ALL.value;
    let all = if threads.value > 1.5 {
        format!("all {}", say::count(threads.value, "thread"))
    } else {
        "the only thread".to_owned()
    };
    let during = if stands && dumps.value > 1.0 {
        format!(", unmoved in {}", say::count(dumps.value, "dump"))
    } else {
        String::new()
    };
    if others.value > 0.0 {
        let at_work = format!(
            "{} of other pools at work",
            say::count(others.value, "thread")
        );
        let sentence = format!("{all} of {}{during}; {at_work}", pool.value);
        if !stands {
            return Ok(Finding::clear(sentence)
                .below(share, ALL.value)
                .cite(pool.reading)
                .cite(others.reading));
        }
        return Ok(Finding::watch(jvm, sentence)
            .severity(Grade::Medium)
            .confidence(Grade::Low)
            .cite(pool.reading)
            .cite(others.reading)
            .refuted_by("the results come from those threads: inspect what they do"));
    }
    if !stands && needs.value < 1.0 {
        let sentence = format!(
            "{all} of {}: {} of them did not move; something outside of the pools may complete the results",
            pool.value,
            say::whole(still.value)
        );
        return Ok(Finding::clear(sentence)
            .below(share, ALL.value)
            .cite(pool.reading)
            .cite(still.reading));
    }
    let sentence = format!(
        "pool waits for itself: {all} of {}{during}, and no thread is left to run the tasks",
        pool.value
    );
    Ok(Finding::act(jvm, sentence)
        .severity(Grade::High)
        .confidence(if stands { Grade::High } else { Grade::Medium })
        .cite(pool.reading)
        .cite(threads.reading)
        .cite(still.reading)
        .cite(others.reading)
        .expect(
            "a restart frees the pool; a separate pool for the inner tasks prevents a recurrence",
        )
        .refuted_by("a later dump shows one of these threads elsewhere"))
}
