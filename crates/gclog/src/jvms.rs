//! Whose a line is, where several JVMs write into one log by turns.
//!
//! Lines tell it in two ways: by what others have put around them (`wrapper/`: a container, a pod, a process of syslog), and by
//! host and process among the decorations of unified logging. The lines of each writer are read as a log of their own, with
//! a clock of its own. A line that tells less than those before it goes on with the last writer that it fits.
//!
//! Other programs write into such logs too, and each process of them is a writer. Memory is bounded by letting writers go: first
//! those without an event, then those that never came back after another's turn, then those that wrote longest ago. What
//! they have left open is reported then; if such a JVM comes back, its lines are left out and counted.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::clock::Clock;
use crate::preunified::Preunified;
use crate::unified::{Decorations, Unified, is_first, pause_of};

/// Writers that are read at a time. A JVM takes 1 to 2 MiB in the summary of a log with all details.
const MOST: usize = 16;
/// Characters of a name that are shown. A pod and a container of Kubernetes have 317 at most.
const SHOWN: usize = 400;
/// Most JVMs that are known to have gone; beyond them, all of these may come back.
const MOST_GONE: usize = 1 << 16;

/// All writers that are read at a time.
#[derive(Debug)]
pub(crate) struct Jvms {
    /// At least one.
    all: Vec<Jvm>,
    /// Who wrote the last line.
    now: usize,
    /// How often another one began to write.
    turns: u64,
    /// Hashes of the names of JVMs that were let go.
    gone: BTreeSet<u64>,
    numbers: Numbers,
}

impl Default for Jvms {
    fn default() -> Self {
        Self {
            all: vec![Jvm::default()],
            now: 0,
            turns: 0,
            gone: BTreeSet::new(),
            numbers: Numbers::default(),
        }
    }
}

/// What the lines of one writer have left open.
#[derive(Debug, Default)]
pub(crate) struct Jvm {
    pub(crate) writer: Writer,
    pub(crate) clock: Clock,
    pub(crate) unified: Unified,
    pub(crate) preunified: Preunified,
}

/// Who writes, as far as lines show.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    /// Its place among all.
    pub(crate) place: usize,
    /// It has events.
    pub(crate) has_events: bool,
    /// As it is shown.
    pub(crate) name: String,
    around: Vec<u8>,
    host: Vec<u8>,
    process: Vec<u8>,
    /// The turn in which it wrote last.
    heard: u64,
    /// It came back after another's turn.
    came_back: bool,
}

/// What a line tells of its writer; what it does not tell is empty.
#[derive(Clone, Copy, Debug)]
struct Identity<'a> {
    /// What others have put around the line.
    around: &'a [u8],
    host: &'a [u8],
    process: &'a [u8],
}

impl Jvms {
    /// The writer of the last line.
    pub(crate) fn now(&mut self) -> &mut Jvm {
        &mut self.all[self.now]
    }

    /// The same, to look at.
    pub(crate) fn last(&self) -> &Jvm {
        &self.all[self.now]
    }

    /// All of them, to look at.
    pub(crate) fn all(&self) -> &[Jvm] {
        &self.all
    }

    /// Every writer, and whether it is the last one.
    pub(crate) fn each(&mut self, mut each: impl FnMut(&mut Jvm, bool)) {
        for (place, jvm) in self.all.iter_mut().enumerate() {
            each(jvm, place == self.now);
        }
    }

    /// Finds whose a line is; false if it is of one that was let go. Where it needs the place of another writer, this one is let go
    /// first.
    #[inline(never)]
    pub(crate) fn hear(
        &mut self,
        around: &[u8],
        line: &[u8],
        found: Option<&(Decorations, &[u8])>,
        let_go: impl FnOnce(&mut Jvm),
    ) -> bool {
        let mut identity = Identity {
            around,
            host: b"",
            process: b"",
        };
        if let Some((decorations, message)) = found {
            identity.host = decorations.host(line);
            let number = decorations.number(line);
            if decorations.numbers > 1 || self.is_process(identity, number, decorations, message) {
                identity.process = number;
            }
        }
        if self.all[self.now].writer.fits(identity) {
            return true;
        }
        let last = self.all[self.now].writer.around.clone();
        if around.is_empty() {
            identity.around = &last;
        }
        self.turns += 1;
        self.all[self.now].writer.heard = self.turns;
        let Some(place) = self.place(identity, let_go) else {
            return false;
        };
        let is_another = self.now != place;
        self.now = place;
        let writer = &mut self.all[self.now].writer;
        writer.came_back |= is_another && writer.heard > 0;
        writer.heard = self.turns;
        writer.learn(identity);
        true
    }

    /// The place of a writer: its own, that of one who may be the same, or a new one. None for one that was let go.
    fn place(&mut self, identity: Identity<'_>, let_go: impl FnOnce(&mut Jvm)) -> Option<usize> {
        let latest = |is_it: &dyn Fn(&Writer) -> bool| {
            let writers = self.all.iter().map(|jvm| &jvm.writer);
            let writers = writers.filter(|writer| is_it(writer));
            writers.max_by_key(|writer| writer.heard).map(|it| it.place)
        };
        let known = latest(&|writer| writer.fits(identity))
            .or_else(|| latest(&|writer| writer.may_be(identity)));
        if known.is_some() {
            return known;
        }
        if self.gone.contains(&identity.hash()) {
            return None;
        }
        let place = if self.all.len() < MOST {
            self.all.push(Jvm::default());
            self.all.len() - 1
        } else {
            let writers = self.all.iter().map(|jvm| &jvm.writer);
            let others = writers.filter(|writer| writer.place != self.now);
            let gone =
                others.min_by_key(|writer| (writer.has_events, writer.came_back, writer.heard))?;
            let place = gone.place;
            if gone.has_events {
                if self.gone.len() >= MOST_GONE {
                    self.gone.clear();
                }
                self.gone.insert(gone.identity().hash());
            }
            let_go(&mut self.all[place]);
            self.all[place] = Jvm::default();
            place
        };
        self.all[place].writer.place = place;
        Some(place)
    }

    /// Whether a number that stands alone is the one of a process. A container and a host hold JVMs whose numbers are alike, so
    /// there it tells nothing.
    fn is_process(
        &mut self,
        identity: Identity<'_>,
        number: &[u8],
        decorations: &Decorations,
        message: &[u8],
    ) -> bool {
        /// A JVM that starts prints its first lines long before.
        const STARTED_NS: u64 = 10_000_000_000;
        let Jvm { writer, clock, .. } = &mut self.all[self.now];
        let names = [identity.around, identity.host, &writer.around, &writer.host];
        if number.is_empty() || names.iter().any(|name| !name.is_empty()) {
            return false;
        }
        let goes_back = decorations.stamp.uptime_ns.is_some_and(|uptime| {
            uptime > STARTED_NS && uptime.saturating_add(Clock::DISORDER_NS) < clock.last_ns()
        });
        let is_one = self.numbers.are_processes(number, message, goes_back);
        if is_one && writer.process.is_empty() {
            writer.learn(Identity {
                around: b"",
                host: b"",
                process: &self.numbers.last,
            });
        }
        is_one
    }
}

impl Writer {
    fn identity(&self) -> Identity<'_> {
        let [around, host, process] = self.parts();
        Identity {
            around,
            host,
            process,
        }
    }

    fn parts(&self) -> [&[u8]; 3] {
        [&self.around, &self.host, &self.process]
    }

    /// All that the line tells is known of it.
    fn fits(&self, identity: Identity<'_>) -> bool {
        let mut parts = self.parts().into_iter().zip(identity.parts());
        parts.all(|(known, seen)| seen.is_empty() || known == seen)
    }

    /// Nothing that the line tells is known otherwise.
    fn may_be(&self, identity: Identity<'_>) -> bool {
        let mut parts = self.parts().into_iter().zip(identity.parts());
        parts.all(|(known, seen)| known.is_empty() || seen.is_empty() || known == seen)
    }

    fn learn(&mut self, identity: Identity<'_>) {
        let parts = [&mut self.around, &mut self.host, &mut self.process];
        for (known, seen) in parts.into_iter().zip(identity.parts()) {
            if known.is_empty() {
                known.extend_from_slice(seen);
            }
        }
        let [around, host, process] = self.parts().map(String::from_utf8_lossy);
        let mut names = vec![around.into_owned(), host.into_owned()];
        if !process.is_empty() {
            names.push(format!("pid {process}"));
        }
        names.retain(|name| !name.is_empty());
        self.name = names.join(", ").chars().take(SHOWN).collect();
    }
}

impl<'a> Identity<'a> {
    fn parts(self) -> [&'a [u8]; 3] {
        [self.around, self.host, self.process]
    }

    /// Of its name. What stands around lines stands around all of them, decorations do not.
    fn hash(self) -> u64 {
        let mut hasher = DefaultHasher::new();
        if self.around.is_empty() {
            (self.host, self.process).hash(&mut hasher);
        } else {
            self.around.hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// Whether numbers that stand alone among the decorations are those of processes or of threads, which look alike.
///
/// The first messages of a JVM come from its main thread and the pauses from its VM thread (`Threads::create_vm`,
/// `VMThread::run`). So a number with both is a process's, and two numbers with the same are two processes', unless the one JVM
/// has ended before the other began.
#[derive(Debug, Default)]
struct Numbers {
    /// It is known.
    sure: Option<bool>,
    /// A number with first messages or pauses, and which.
    one: Vec<u8>,
    begins: bool,
    pauses: bool,
    /// Another number with first messages, where those of `one` are not in the log: of another JVM, which may have come after it.
    later: Vec<u8>,
    /// The number of the line before.
    last: Vec<u8>,
}

impl Numbers {
    /// The uptime of a line that goes back is that of a JVM which started long before, and is earlier than that of the line before.
    fn are_processes(&mut self, number: &[u8], message: &[u8], goes_back: bool) -> bool {
        if let Some(sure) = self.sure {
            return sure;
        }
        let begins = is_first(message);
        let pause = pause_of(message);
        let is_other = !self.last.is_empty() && self.last != number;
        if self.one == number {
            self.sure = (!self.later.is_empty()).then_some(true);
            self.begins |= begins;
            self.pauses |= pause.is_some();
        } else if self.begins && self.pauses || is_other && goes_back {
            self.sure = Some(true);
        } else if !self.begins && !self.pauses {
            if begins || pause.is_some() {
                self.one = number.to_vec();
                (self.begins, self.pauses) = (begins, pause.is_some());
            }
        } else if begins && self.begins {
            self.sure = Some(true);
        } else if begins {
            self.later = number.to_vec();
        } else if let Some(id) = pause {
            // The first pause behind a beginning is that of its own VM thread.
            self.sure = Some(if self.later.is_empty() {
                self.pauses || id > 0
            } else {
                self.later == number
            });
        }
        if self.sure != Some(true) && is_other || self.last.is_empty() {
            self.last = number.to_vec();
        }
        self.sure == Some(true)
    }
}

/// State per JVM that interleaves in one log. It dereferences to the state of the current JVM.
#[derive(Clone, Debug)]
pub struct Turns<T> {
    /// At least one.
    all: Vec<T>,
    now: usize,
}

impl<T: Default> Default for Turns<T> {
    fn default() -> Self {
        Self {
            all: vec![T::default()],
            now: 0,
        }
    }
}

impl<T: Default> Turns<T> {
    /// It is the turn of this JVM, as [`Event::Turn`](crate::Event::Turn) tells it.
    pub fn turn(&mut self, jvm: usize) {
        if self.all.len() <= jvm {
            self.all.resize_with(jvm + 1, T::default);
        }
        self.now = jvm;
    }

    /// All of them.
    pub fn all(&self) -> &[T] {
        &self.all
    }

    /// All of them.
    pub fn into_all(self) -> Vec<T> {
        self.all
    }
}

impl<T> std::ops::Deref for Turns<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.all[self.now]
    }
}

impl<T> std::ops::DerefMut for Turns<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.all[self.now]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_processes_where_threads_cannot_be_so() {
        let sure = |lines: &str| {
            let mut numbers = Numbers::default();
            for line in lines.split(' ') {
                let (number, kind) = line.split_at(1);
                let message = match kind {
                    "h" => "Using G1",
                    "0" => "GC(0) Pause Young (Normal) (G1 Evacuation Pause)",
                    "p" => "GC(3) Pause Young (Normal) (G1 Evacuation Pause)",
                    _ => "GC(3) Concurrent Mark Cycle",
                };
                numbers.are_processes(number.as_bytes(), message.as_bytes(), kind == "<");
            }
            numbers.sure
        };
        for (lines, expected) in [
            // One process, by its number or by those of its threads; with its beginning and without.
            ("1h 10 1p 1c", None),
            ("1h 20 2p 3c", Some(false)),
            ("1c 2p 1c 3c 2p", None),
            // Another one starts after it.
            ("1h 20 3c 4h 5p 6c", Some(false)),
            ("1p 2c 3h 40 5c 4p", Some(false)),
            // Two processes, from their beginnings on, from that of one on, in their midst.
            ("1h 2h", Some(true)),
            ("1c 2h 1h", Some(true)),
            ("1h 10 2c", Some(true)),
            ("1h 2p", Some(true)),
            ("1p 2h 1p", Some(true)),
            ("1p 2h 20", Some(true)),
            ("1p 2c 2p", Some(true)),
            ("1c 2<", Some(true)),
        ] {
            assert_eq!(sure(lines), expected, "{lines}");
        }
    }

    #[test]
    fn a_name_without_end_is_shown_cut_and_still_distinguished_from_others() {
        let mut jvms = Jvms::default();
        for (last, place) in [("a", 0), ("b", 1), ("a", 0)] {
            let name = "x".repeat(20_000) + last;
            assert!(jvms.hear(name.as_bytes(), b"", None, |_| {}));
            let writer = &jvms.last().writer;
            assert_eq!((writer.place, writer.name.len()), (place, SHOWN));
        }
    }

    #[test]
    fn writers_are_known_again_and_let_go_when_there_are_too_many() {
        let mut jvms = Jvms::default();
        let gone = std::cell::RefCell::default();
        let hear = |jvms: &mut Jvms, name: &str, tells: bool| {
            let is_read = jvms.hear(name.as_bytes(), b"", None, |jvm| {
                gone.replace(jvm.writer.name.clone());
            });
            jvms.now().writer.has_events |= tells;
            is_read.then_some(jvms.last().writer.place)
        };
        // What is not named yet is the first that is.
        assert_eq!(hear(&mut jvms, "", true), Some(0));
        assert_eq!(hear(&mut jvms, "a", true), Some(0));
        assert_eq!(hear(&mut jvms, "b", true), Some(1));
        assert_eq!(hear(&mut jvms, "", false), Some(1));
        assert_eq!(hear(&mut jvms, "a", false), Some(0));
        assert_eq!(hear(&mut jvms, "b", false), Some(1));
        // Those of other programs come and go, and JVMs that end.
        for number in 0..100 {
            hear(&mut jvms, &format!("other {number}"), false);
        }
        for number in 0..100 {
            hear(&mut jvms, &format!("jvm {number}"), true);
        }
        assert_eq!(*gone.borrow(), format!("jvm {}", 100 - (MOST - 2) - 1));
        // Those that came back stay.
        assert_eq!(hear(&mut jvms, "a", true), Some(0));
        assert_eq!(hear(&mut jvms, "b", true), Some(1));
        assert!(hear(&mut jvms, "jvm 99", true).is_some());
        assert_eq!(hear(&mut jvms, "jvm 0", true), None);
        assert!(hear(&mut jvms, "other 1", true).is_some());
    }
}
