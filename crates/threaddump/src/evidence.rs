//! What dumps say, as the rules read it: one subject per JVM, one per deadlock.

use std::collections::BTreeSet;

use rungwise_model::evidence::{Absence, Evidence, Key, Kind, Origin, Subject};
use rungwise_model::gc::Sample;
use rungwise_model::keys;
use rungwise_model::threads::{Deadlock, Dump, Lock, Stuck};

use crate::frame;
use crate::summary::{Summary, business};

/// Deadlocks that are told one by one; nobody mends more at once.
const MOST: usize = 20;

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
        let Some(last) = dumps.last() else { continue };
        let mut of_jvm = OfJvm {
            evidence: &mut evidence,
            subject: Subject::new(Kind::Dumps, jvm),
            dumps: &dumps,
            last,
            stuck: summary.stuck.iter().filter(|one| one.jvm == jvm).collect(),
        };
        let ownerless =
            usize::try_from(last.number).map_or(0, |number| summary.ownerless[number - 1]);
        of_jvm.counts(ownerless);
        let numbers = dumps
            .iter()
            .filter_map(|dump| usize::try_from(dump.number).ok());
        of_jvm.serializing(numbers.map(|number| summary.serializing[number - 1]).sum());
        of_jvm.top_lock();
        of_jvm.starved();
        of_jvm.deadlocks(jvm);
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
        let told: Vec<&&Dump> = self.dumps.iter().filter(|dump| is_told(dump)).collect();
        if told.is_empty() {
            let why = Absence::because("the dump tells no states and no locks")
                .remedy("jcmd PID Thread.print -l, three times, some seconds apart");
            for key in [
                &keys::THREADS_BUSINESS,
                &keys::THREADS_LOCK_WAITING,
                &keys::THREADS_DEADLOCKS,
            ] {
                self.absent(key, why.clone());
            }
            return;
        }
        let busy: Vec<f64> = told
            .iter()
            .map(|dump| business(&dump.doing) as f64)
            .collect();
        let waiting: Vec<String> = told
            .iter()
            .map(|dump| format!("{} of {}", dump.doing.lock_waiting, business(&dump.doing)))
            .collect();
        let shares: Vec<f64> = told
            .iter()
            .map(|dump| dump.waiting_share.unwrap_or(0.0))
            .collect();
        self.course(&keys::THREADS_BUSINESS, &busy, String::new());
        self.course(&keys::THREADS_LOCK_WAITING, &shares, waiting.join(", "));
        let deadlocks = distinct(self.dumps).len() as f64;
        let origin = Origin::new(whole(self.dumps), "");
        self.number(&keys::THREADS_DEADLOCKS, deadlocks, origin);
    }

    fn serializing(&mut self, serializing: usize) {
        if !self.dumps.iter().any(|dump| is_told(dump)) {
            let why = Absence::because("the dump tells no states")
                .remedy("jcmd PID Thread.print -l, three times, some seconds apart");
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
                told(deadlock),
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

fn is_told(dump: &Dump) -> bool {
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

/// Around the circle.
fn told(deadlock: &Deadlock) -> String {
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
        3 => format!("{owner}, which waits for {last} by way of another thread"),
        more => format!(
            "{owner}, which waits for {last} by way of {} others",
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
