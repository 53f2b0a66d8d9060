//! Evidence from dumps for the rules: one subject per JVM, one per deadlock.

use std::collections::BTreeSet;

use rungwise_model::evidence::{Absence, Evidence, Key, Kind, Origin, Subject};
use rungwise_model::gc::Sample;
use rungwise_model::keys;
use rungwise_model::threads::{Carriers, Deadlock, Dump, FullPool, Hot, Lock, SharedWait, Stuck};

use crate::frame;
use crate::summary::{Summary, Unseen, business};

/// Deadlocks that are listed; further ones are left out.
const MOST: usize = 20;
/// Hot threads that are named in one sentence.
const NAMED: usize = 3;

/// Evidence of these dumps.
pub fn evidence(summary: &Summary) -> Evidence {
    let mut evidence = Evidence::over(0.0);
    let jvms: BTreeSet<u64> = summary.dumps.iter().map(|dump| dump.jvm).collect();
    for jvm in jvms {
        let dumps: Vec<&Dump> = summary
            .dumps
            .iter()
            .filter(|dump| dump.jvm == jvm)
            .collect();
        // What HotSpot prints has owners and CPU times; a file beside it adds virtual threads.
        let print = dumps.iter().rev().find(|dump| !dump.form.is_file());
        let Some(last) = print.or(dumps.last()) else {
            continue;
        };
        let mut of_jvm = OfJvm {
            evidence: &mut evidence,
            subject: Subject::new(Kind::Dumps, jvm),
            dumps: &dumps,
            last,
            stuck: summary.stuck.iter().filter(|one| one.jvm == jvm).collect(),
        };
        let unseen = usize::try_from(jvm)
            .ok()
            .and_then(|jvm| summary.unseen.get(jvm - 1));
        of_jvm.counts(unseen.map_or(0, |unseen| unseen.ownerless));
        of_jvm.unseen(unseen);
        let numbers = dumps
            .iter()
            .filter_map(|dump| usize::try_from(dump.number).ok());
        of_jvm.serializing(numbers.map(|number| summary.serializing[number - 1]).sum());
        of_jvm.top_lock();
        of_jvm.starved();
        of_jvm.deadlocks(jvm);
        of_jvm.itself();
        let full = summary.full_pools.iter().filter(|one| one.jvm == jvm);
        of_jvm.full(full);
        let waits = summary.waits.iter().filter(|one| one.jvm == jvm);
        of_jvm.shared(jvm, &waits.collect::<Vec<_>>());
        let hot = summary.hot.iter().filter(|one| one.jvm == jvm);
        of_jvm.hot(&hot.collect::<Vec<_>>());
        of_jvm.carriers(summary.carriers.iter().find(|one| one.jvm == jvm));
    }
    evidence
}

struct OfJvm<'a> {
    evidence: &'a mut Evidence,
    subject: Subject,
    dumps: &'a [&'a Dump],
    last: &'a Dump,
    stuck: Vec<&'a Stuck>,
}

impl OfJvm<'_> {
    fn number(&mut self, key: &'static Key, value: f64, origin: Origin) {
        self.evidence
            .number(key, self.subject.clone(), value, origin);
    }

    fn text(&mut self, key: &'static Key, value: String, origin: Origin) {
        self.evidence.text(key, self.subject.clone(), value, origin);
    }

    /// A number of every dump; its mean is the value.
    fn course(&mut self, key: &'static Key, values: &[f64], line: String) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let origin = Origin::new(whole(self.dumps), line);
        self.evidence
            .series(key, self.subject.clone(), mean, values.to_vec(), origin);
    }

    fn counts(&mut self, ownerless: usize) {
        let origin = || Origin::new(place(self.last), "");
        let count = Origin::new(whole(self.dumps), "");
        let dumps = self.dumps.len() as f64;
        let ownerless_at = origin();
        self.number(&keys::THREADS_DUMPS, dumps, count);
        self.number(&keys::THREADS_OWNERLESS, ownerless as f64, ownerless_at);
        let with_states: Vec<&&Dump> = self.dumps.iter().filter(|dump| has_states(dump)).collect();
        if with_states.is_empty() {
            let why = Absence::because("the dump has no states and no locks")
                .remedy("run jcmd PID Thread.print -l three times, a few seconds apart");
            for key in [
                &keys::THREADS_BUSINESS,
                &keys::THREADS_LOCK_WAITING,
                &keys::THREADS_DEADLOCKS,
            ] {
                self.absent(key, why.clone());
            }
            return;
        }
        let busy: Vec<f64> = with_states
            .iter()
            .map(|dump| business(&dump.doing) as f64)
            .collect();
        let waiting: Vec<String> = with_states
            .iter()
            .map(|dump| format!("{} of {}", dump.doing.lock_waiting, business(&dump.doing)))
            .collect();
        let shares: Vec<f64> = with_states
            .iter()
            .map(|dump| dump.waiting_share.unwrap_or(0.0))
            .collect();
        self.course(&keys::THREADS_BUSINESS, &busy, String::new());
        self.course(&keys::THREADS_LOCK_WAITING, &shares, waiting.join(", "));
        let deadlocks = distinct(self.dumps).len() as f64;
        let origin = Origin::new(whole(self.dumps), "");
        self.number(&keys::THREADS_DEADLOCKS, deadlocks, origin);
    }

    fn unseen(&mut self, unseen: Option<&Unseen>) {
        let none = Unseen::default();
        let unseen = unseen.unwrap_or(&none);
        let origin = || Origin::new(place(self.last), "");
        let (of_waiters, of_locks) = (origin(), origin());
        let of_dumps = Origin::new(whole(self.dumps), unseen.held.join("; "));
        let of_threads = Origin::new(whole(self.dumps), unseen.stuck.join("; "));
        let counts = [
            (&keys::THREADS_UNRECORDED, unseen.unrecorded, of_waiters),
            (&keys::THREADS_UNRECORDED_LOCKS, unseen.locks, of_locks),
            (&keys::THREADS_UNRECORDED_HELD, unseen.held.len(), of_dumps),
            (
                &keys::THREADS_UNRECORDED_STUCK,
                unseen.stuck.len(),
                of_threads,
            ),
        ];
        for (key, count, origin) in counts {
            self.number(key, count as f64, origin);
        }
        if let Some(why) = unseen.virtual_threads {
            let origin = Origin::new(whole(self.dumps), "");
            self.text(&keys::THREADS_UNSEEN, why.to_owned(), origin);
        }
    }

    /// The pool that waits for itself; the largest where several do.
    fn itself(&mut self) {
        let origin = Origin::new(place(self.last), "");
        let pools = self.last.pools.len() as f64;
        self.number(&keys::THREADS_POOLS, pools, origin.clone());
        let found = self.last.pools.iter().find_map(|pool| {
            let itself = pool.waits_for_itself.as_ref()?;
            Some((pool, itself))
        });
        let Some((pool, itself)) = found else { return };
        let at = itself.at.as_ref();
        let at = at.map_or_else(String::new, |at| format!(" in {at}"));
        let words = format!("{}, waiting for {}{at}", pool.name, itself.what);
        self.text(&keys::THREADS_SELF_POOL, words, origin.clone());
        let needs = u64::from(itself.needs_thread);
        for (key, count) in [
            (&keys::THREADS_SELF_POOL_THREADS, pool.threads),
            (&keys::THREADS_SELF_POOL_STILL, itself.still),
            (&keys::THREADS_SELF_POOL_OTHERS, itself.others),
            (&keys::THREADS_SELF_POOL_NEEDS, needs),
        ] {
            self.number(key, count as f64, origin.clone());
        }
    }

    /// The pool most of whose threads wait for another process; one without a free thread first.
    fn full<'f>(&mut self, pools: impl Iterator<Item = &'f FullPool>) {
        let origin = Origin::new(whole(self.dumps), "");
        let worst = pools.max_by(|a, b| {
            let rank = |pool: &FullPool| pool.busy_share * pool.behind as f64;
            rank(a).total_cmp(&rank(b))
        });
        let behind = worst.map_or(0, |pool| pool.behind);
        self.number(
            &keys::THREADS_FULL_POOL_BEHIND,
            behind as f64,
            origin.clone(),
        );
        let Some(pool) = worst else { return };
        let at = pool.at.as_ref();
        let at = at.map_or_else(String::new, |at| format!(" in {at}"));
        let through = pool.through.as_ref();
        let through = through.map_or_else(String::new, |way| format!(", {way}"));
        // Of several threads.
        let cause = pool.cause.replacen("waits", "wait", 1);
        let words = format!(
            "{}: {} of {} {cause}{at}{through}",
            pool.name, pool.behind, pool.threads
        );
        self.text(&keys::THREADS_FULL_POOL, words, origin.clone());
        let threads = pool.threads as f64;
        self.number(&keys::THREADS_FULL_POOL_THREADS, threads, origin.clone());
        self.number(&keys::THREADS_FULL_POOL_BUSY, pool.busy_share, origin);
    }

    fn shared(&mut self, jvm: u64, waits: &[&SharedWait]) {
        let origin = Origin::new(place(self.last), "");
        self.number(&keys::THREADS_SHARED_WAITS, waits.len() as f64, origin);
        for (at, wait) in waits.iter().enumerate().take(MOST) {
            let subject = Subject::new(Kind::Wait, format_args!("{jvm}:{}", at + 1));
            let line = wait.lines.first().map_or_else(String::new, quoted);
            let origin = Origin::new(whole(self.dumps), line);
            let count = wait.waiters.len() as f64;
            let series = wait.counts.iter().map(|count| *count as f64).collect();
            let at = wait.at.as_ref();
            let at = at.map_or_else(String::new, |at| format!(" in {at}"));
            let words = format!("{}{at}", wait.what);
            let evidence = &mut *self.evidence;
            evidence.series(
                &keys::THREADS_WAIT_WAITERS,
                subject.clone(),
                count,
                series,
                origin.clone(),
            );
            let still = wait.still as f64;
            evidence.number(
                &keys::THREADS_WAIT_STILL,
                subject.clone(),
                still,
                origin.clone(),
            );
            evidence.number(
                &keys::THREADS_WAIT_REQUESTS,
                subject.clone(),
                wait.requests as f64,
                origin.clone(),
            );
            let texts = [
                (&keys::THREADS_WAIT, Some(words)),
                (&keys::THREADS_WAIT_KIND, Some(wait.kind.clone())),
                (&keys::THREADS_WAIT_HOLDERS, holders(wait)),
                (
                    &keys::THREADS_WAIT_BEHIND,
                    (!wait.behind.is_empty()).then(|| wait.behind.join("; ")),
                ),
            ];
            for (key, text) in texts {
                if let Some(text) = text {
                    evidence.text(key, subject.clone(), text, origin.clone());
                }
            }
        }
    }

    fn hot(&mut self, hot: &[&Hot]) {
        let printed = self.dumps.iter().filter(|dump| !dump.form.is_file());
        if printed.count() < 2 {
            let why = Absence::because("one dump shows no growth of CPU time")
                .remedy("run jcmd PID Thread.print -l three times, a few seconds apart");
            self.absent(&keys::THREADS_HOT_SHARE, why);
            return;
        }
        let origin = Origin::new(whole(self.dumps), "cpu= of the first and the last dump");
        let loops: Vec<&&Hot> = hot.iter().filter(|one| one.looks_like.is_some()).collect();
        if let Some(first) = loops.first() {
            let kind = first.looks_like.clone().unwrap_or_default();
            let same: Vec<&&&Hot> = loops
                .iter()
                .filter(|one| one.looks_like == first.looks_like)
                .collect();
            let mut words: Vec<String> = same.iter().take(NAMED).map(|one| used(one)).collect();
            if same.len() > NAMED {
                words.push(format!("{} more", same.len() - NAMED));
            }
            let count = same.len() as f64;
            self.text(&keys::THREADS_HOT_LOOP, words.join(", "), origin.clone());
            self.text(&keys::THREADS_HOT_LOOP_KIND, kind, origin.clone());
            self.number(&keys::THREADS_HOT_LOOP_THREADS, count, origin.clone());
        }
        let mut others = hot
            .iter()
            .filter(|one| one.looks_like.is_none() && !one.is_of_jvm);
        let hottest = others.next();
        let share = hottest.map_or(0.0, |one| one.cpu_share.unwrap_or(1.0));
        self.number(&keys::THREADS_HOT_SHARE, share, origin.clone());
        if let Some(hottest) = hottest {
            let stands = if hottest.moves || hottest.dumps < 2 {
                String::new()
            } else {
                format!(", with the same stack in all {} dumps", hottest.dumps)
            };
            let words = format!("{}{stands}", used(hottest));
            self.text(&keys::THREADS_HOT, words, origin.clone());
        }
        if let Some(of_jvm) = hot.iter().find(|one| one.is_of_jvm) {
            let share = of_jvm.cpu_share.unwrap_or(0.0);
            self.number(&keys::THREADS_HOT_JVM, share, origin.clone());
            self.text(&keys::THREADS_HOT_JVM_NAME, of_jvm.thread.clone(), origin);
        }
    }

    fn carriers(&mut self, carriers: Option<&Carriers>) {
        let origin = Origin::new(whole(self.dumps), "");
        let none = Carriers::default();
        let of = carriers.unwrap_or(&none);
        for (key, count) in [
            (&keys::THREADS_CARRIERS, of.carriers),
            (&keys::THREADS_CARRIERS_HELD, of.held),
            (&keys::THREADS_CARRIER_DUMPS, of.dumps),
            (&keys::THREADS_PINNED, of.pinned),
            (&keys::THREADS_UNSTARTED, of.unstarted),
        ] {
            self.number(key, count as f64, origin.clone());
        }
        if let Some(at) = &of.at {
            self.text(&keys::THREADS_PINNED_AT, at.clone(), origin);
        }
    }

    fn serializing(&mut self, serializing: usize) {
        if !self.dumps.iter().any(|dump| has_states(dump)) {
            let why = Absence::because("the dump has no states")
                .remedy("run jcmd PID Thread.print -l three times, a few seconds apart");
            self.absent(&keys::THREADS_RUNNING, why.clone());
            self.absent(&keys::THREADS_SERIALIZING, why);
            return;
        }
        let running: u64 = self.dumps.iter().map(|dump| dump.doing.running).sum();
        let share = serializing as f64 / running.max(1) as f64;
        let words = format!("{serializing} of {running}");
        let whole = whole(self.dumps);
        let origin = Origin::new(&*whole, &*words);
        self.number(&keys::THREADS_RUNNING, running as f64, origin.clone());
        self.number(&keys::THREADS_SERIALIZING, share, origin);
    }

    fn absent(&mut self, key: &'static Key, why: Absence) {
        self.evidence.add(rungwise_model::evidence::Reading {
            key,
            subject: self.subject.clone(),
            value: rungwise_model::evidence::Value::Absent(why),
            series: Vec::new(),
            origin: Origin::new(whole(self.dumps), ""),
        });
    }

    fn top_lock(&mut self) {
        let first = |dump: &&Dump| dump.locks.first().map_or(0, |lock| lock.waiters.len());
        let most: Vec<f64> = self.dumps.iter().map(|dump| first(dump) as f64).collect();
        let largest = most.iter().copied().fold(0.0, f64::max);
        let dump = self.dumps.iter().copied().max_by_key(first);
        let Some((dump, lock)) = dump.and_then(|dump| Some((dump, dump.locks.first()?))) else {
            let origin = Origin::new(whole(self.dumps), "");
            self.number(&keys::THREADS_TOP_WAITERS, 0.0, origin);
            return;
        };
        let at =
            |line: Option<&Sample>| Origin::new(place(dump), line.map_or_else(String::new, quoted));
        let waits = at(lock.lines.first());
        self.evidence.series(
            &keys::THREADS_TOP_WAITERS,
            self.subject.clone(),
            largest,
            most,
            waits.clone(),
        );
        self.text(&keys::THREADS_TOP_LOCK, lock.class.clone(), waits);
        // Who stands still does so up to the last dump.
        let stuck = if dump.number == self.last.number {
            &*self.stuck
        } else {
            &[]
        };
        match (owner(dump, lock, stuck), &lock.owner_unknown) {
            (Some(owner), _) => self.text(&keys::THREADS_TOP_OWNER, owner, at(lock.lines.get(1))),
            (None, Some(why)) => self.absent(&keys::THREADS_TOP_OWNER, Absence::because(why)),
            (None, None) => {}
        }
    }

    fn starved(&mut self) {
        let starved = self.last.pools.iter().filter_map(|pool| {
            pool.starved.as_ref()?;
            Some(format!("{} ({} threads)", pool.name, pool.threads))
        });
        let starved: Vec<String> = starved.collect();
        if !starved.is_empty() {
            let origin = Origin::new(place(self.last), "");
            self.text(&keys::THREADS_STARVED, starved.join(", "), origin);
        }
    }

    fn deadlocks(&mut self, jvm: u64) {
        for (at, (deadlock, dump, count)) in distinct(self.dumps).into_iter().enumerate().take(MOST)
        {
            let subject = Subject::new(Kind::Deadlock, format_args!("{jvm}:{}", at + 1));
            let lines: Vec<String> = deadlock.lines.iter().map(quoted).collect();
            let origin = Origin::new(&*dump.file, lines.join("; "));
            let whole = Origin::new(whole(self.dumps), "");
            let reported = f64::from(u8::from(deadlock.reported));
            let evidence = &mut *self.evidence;
            evidence.text(
                &keys::THREADS_DEADLOCK,
                subject.clone(),
                cycle_text(deadlock),
                origin.clone(),
            );
            evidence.number(
                &keys::THREADS_DEADLOCK_DUMPS,
                subject.clone(),
                count as f64,
                whole,
            );
            evidence.number(&keys::THREADS_DEADLOCK_REPORTED, subject, reported, origin);
        }
    }
}

/// Who is past the place where others wait, and what that does.
fn holders(wait: &SharedWait) -> Option<String> {
    if wait.holders.is_empty() {
        return None;
    }
    let names: Vec<&str> = wait.holders.iter().take(2).map(String::as_str).collect();
    let mut names = names.join(", ");
    if wait.past > 2 {
        names = format!("{names} and {} more", wait.past - 2);
    }
    let doing = wait.holders_doing.as_ref();
    let doing = doing.map_or_else(String::new, |doing| {
        if wait.past > 1 {
            format!("; most of them: {doing}")
        } else {
            format!(", which {doing}")
        }
    });
    Some(format!("{names}{doing}"))
}

/// A thread and the CPU that it used.
fn used(hot: &Hot) -> String {
    let at = hot.at.as_ref();
    let at = at.map_or_else(String::new, |at| format!(" in {at}"));
    match hot.cpu_share {
        Some(share) => format!("{} ({:.0} % of a CPU{at})", hot.thread, 100.0 * share),
        None => format!("{} (running in all {} dumps{at})", hot.thread, hot.dumps),
    }
}

fn has_states(dump: &Dump) -> bool {
    !dump.by_state.is_empty()
}

/// Each deadlock as the last dump with it shows it, and how many dumps do. Objects move, so threads tell them apart.
fn distinct<'d>(dumps: &[&'d Dump]) -> Vec<(&'d Deadlock, &'d Dump, usize)> {
    let mut found: Vec<(BTreeSet<&str>, &Deadlock, &Dump, usize)> = Vec::new();
    for dump in dumps.iter().rev() {
        for deadlock in &dump.deadlocks {
            let threads: BTreeSet<&str> = deadlock.threads.iter().map(String::as_str).collect();
            match found
                .iter_mut()
                .find(|(known, _, last, _)| *known == threads && last.number != dump.number)
            {
                Some((.., count)) => *count += 1,
                None => found.push((threads, deadlock, dump, 1)),
            }
        }
    }
    found
        .into_iter()
        .map(|(_, deadlock, dump, count)| (deadlock, dump, count))
        .collect()
}

/// Around the cycle.
fn cycle_text(deadlock: &Deadlock) -> String {
    let threads = &deadlock.threads;
    let links: Vec<String> = threads
        .iter()
        .enumerate()
        .map(|(at, thread)| {
            let class = deadlock.classes.get(at).map_or("a lock", String::as_str);
            let next = &threads[(at + 1) % threads.len()];
            format!("{thread} waits for {class}, held by {next}")
        })
        .collect();
    links.join("; ")
}

/// Who holds a lock, who is at the end of the chain, and what that thread does.
fn owner(dump: &Dump, lock: &Lock, stuck: &[&Stuck]) -> Option<String> {
    let (owner, last) = (lock.owner.as_ref()?, lock.chain.last()?);
    let held_by_last = |other: &&Lock| other.owner.as_ref() == Some(last);
    let of_last = dump.locks.iter().find(held_by_last).unwrap_or(lock);
    let chain = match lock.chain.len() {
        1 => owner.clone(),
        2 => format!("{owner}, which waits for {last}"),
        3 => format!("{owner}, which waits for {last} through another thread"),
        more => format!(
            "{owner}, which waits for {last} through {} others",
            more - 2
        ),
    };
    if dump
        .deadlocks
        .iter()
        .any(|deadlock| deadlock.threads.contains(last))
    {
        return Some(format!("{chain}, in a deadlock"));
    }
    let frame = of_last
        .owner_frames
        .first()
        .map(|frame| format!("in {}", frame::short(frame)));
    let words = match (of_last.owner_doing.as_deref(), frame) {
        (Some(doing), Some(frame)) => format!(", which {doing} {frame}"),
        (None, Some(frame)) => format!(" {frame}"),
        (Some(doing), None) => format!(", which {doing}"),
        (None, None) => String::new(),
    };
    let still = stuck.iter().find(|one| one.thread == *last);
    let still = still.map_or_else(String::new, |one| {
        format!(", at the same place in {} dumps", one.dumps)
    });
    Some(format!("{chain}{words}{still}"))
}

fn quoted(line: &Sample) -> String {
    format!("line {}: {}", line.line, line.text)
}

fn place(dump: &Dump) -> String {
    format!("{}, dump of line {}", dump.file, dump.line)
}

fn whole(dumps: &[&Dump]) -> String {
    match dumps {
        [one] => place(one),
        [first, .., last] if first.file == last.file => {
            format!("{} dumps in {}", dumps.len(), first.file)
        }
        [first, .., last] => format!("{} dumps, {} to {}", dumps.len(), first.file, last.file),
        [] => String::new(),
    }
}
