//! What is counted beside sent, received and lost: connections, handshakes, bytes, kinds of answers, errors by class, requests by name.

use std::collections::BTreeMap;

use rungwise_model::load::{NamedRequests, Quote, Stream, Tls as TlsReport};
use rungwise_stats::histogram::Histogram;

use super::Protocol;
use super::link::Established;
use super::tls::{Agreed, Tls};

/// Most classes of errors; others are counted together, so that memory is bounded.
const MOST_CLASSES: usize = 64;
/// Most bytes of a class, and of the text that is quoted for it.
const LONGEST_CLASS: usize = 64;
const LONGEST_QUOTE: usize = 200;
/// The class of errors that have none of their own.
const OTHERS: &str = "others";

/// What a thread counts of its streams.
#[derive(Debug)]
pub(crate) struct Counts {
    /// Bytes of requests begun, and of replies received, in the window.
    pub(super) sent: u64,
    pub(super) received: u64,
    /// Connections established before and during the window, and those of them that replaced another.
    pub(super) opened: u64,
    pub(super) reopened: u64,
    /// Times to establish them, ns.
    pub(super) connect: Histogram,
    pub(super) handshakes: Handshakes,
    /// Answers to requests of the window, by kind.
    pub(super) answers: Vec<u64>,
    /// Errors in reply to them, by class.
    pub(crate) classes: Classes,
    /// What the server said without being asked, in the window or not.
    pub(super) events: Vec<u64>,
    /// Connections on which the server broke the protocol in the window, by what it did.
    pub(super) broken: BTreeMap<&'static str, u64>,
    /// Requests of the window by name, where there are several.
    named: Vec<Named>,
}

/// Errors in reply, by class.
#[derive(Debug, Default)]
pub(crate) struct Classes {
    all: Vec<Class>,
}

#[derive(Debug)]
struct Class {
    name: String,
    /// How the first one was worded.
    text: String,
    count: u64,
}

/// What was agreed in the handshakes of TLS, and how long they took.
#[derive(Debug)]
pub(crate) struct Handshakes {
    /// How often each was; a handful.
    agreed: Vec<(Agreed, u64)>,
    /// Times, ns.
    times: Histogram,
}

/// Requests of one name.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) name: String,
    sent: u64,
    errors: u64,
    /// From the intended start, ns.
    latency: Histogram,
}

impl Counts {
    pub(super) fn new(protocol: &impl Protocol) -> Self {
        Self {
            sent: 0,
            received: 0,
            opened: 0,
            reopened: 0,
            connect: Histogram::new(),
            handshakes: Handshakes::new(),
            answers: vec![0; protocol.answers().len()],
            classes: Classes::default(),
            events: vec![0; protocol.events().len()],
            broken: BTreeMap::new(),
            named: protocol
                .requests()
                .iter()
                .map(|name| Named::new(name))
                .collect(),
        }
    }

    /// Counts a request of this name, with its latency where it was answered.
    #[inline]
    pub(super) fn note(&mut self, name: usize, latency: Option<u64>) {
        if let Some(named) = self.named.get_mut(name) {
            named.note(latency);
        }
    }

    /// Counts a connection that was established.
    pub(super) fn opened(&mut self, established: &Established, again: bool) {
        self.opened += 1;
        self.reopened += u64::from(again);
        if let Some((_, agreed)) = established.tls {
            self.handshakes.agree(agreed, 1);
        }
    }

    /// Records how long that took.
    pub(super) fn time(&mut self, established: &Established) {
        self.connect.record(established.connect);
        if let Some((handshake, _)) = established.tls {
            self.handshakes.time(handshake);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.opened += other.opened;
        self.reopened += other.reopened;
        self.connect.merge(&other.connect);
        self.handshakes.merge(&other.handshakes);
        for (sum, count) in self.answers.iter_mut().zip(&other.answers) {
            *sum += count;
        }
        self.classes.merge(&other.classes);
        for (sum, count) in self.events.iter_mut().zip(&other.events) {
            *sum += count;
        }
        for (why, times) in &other.broken {
            *self.broken.entry(why).or_default() += times;
        }
        for (sum, one) in self.named.iter_mut().zip(&other.named) {
            sum.merge(one);
        }
    }

    pub(super) fn report(&self, protocol: &impl Protocol, tls: Option<&Tls>) -> Stream {
        let answers = protocol.answers().iter().zip(&self.answers);
        let events = protocol.events().iter().zip(&self.events);
        let events = events.filter(|(_, count)| **count > 0);
        let broken = self.broken.iter();
        Stream {
            protocol: protocol.name(),
            sent_bytes: self.sent,
            received_bytes: self.received,
            connections: self.opened,
            reconnects: self.reopened,
            connect_us: self.connect.quantiles(),
            answers: answers
                .map(|(kind, count)| ((*kind).to_owned(), *count))
                .collect(),
            quotes: self.classes.quotes(),
            events: events
                .map(|(event, count)| ((*event).to_owned(), *count))
                .collect(),
            broken: broken
                .map(|(why, count)| ((*why).to_owned(), *count))
                .collect(),
            tls: tls.map(|tls| self.handshakes.report(tls)),
            requests: self.named.iter().map(Named::report).collect(),
        }
    }
}

impl Classes {
    /// The class of an error with this text: its `name`, or another where there are too many.
    pub(crate) fn of(&mut self, name: &[u8], text: &[u8]) -> usize {
        let known = |name: &[u8]| self.all.iter().position(|one| one.name.as_bytes() == name);
        if let Some(at) = known(name) {
            return at;
        }
        let name = printable(name, LONGEST_CLASS);
        let name = if self.all.len() < MOST_CLASSES {
            name
        } else {
            OTHERS.to_owned()
        };
        let at = known(name.as_bytes());
        at.unwrap_or_else(|| {
            self.all.push(Class {
                name,
                text: printable(text, LONGEST_QUOTE),
                count: 0,
            });
            self.all.len() - 1
        })
    }

    /// The text of a class.
    pub(super) fn text(&self, class: usize) -> &str {
        self.all.get(class).map_or("", |class| &class.text)
    }

    #[inline]
    pub(super) fn count(&mut self, class: usize) {
        if let Some(class) = self.all.get_mut(class) {
            class.count += 1;
        }
    }

    fn merge(&mut self, other: &Self) {
        for class in &other.all {
            let at = self.of(class.name.as_bytes(), class.text.as_bytes());
            self.all[at].count += class.count;
        }
    }

    /// Those that occurred in the window, as other kinds of errors are named.
    pub(super) fn counted(&self) -> impl Iterator<Item = (String, u64)> {
        let counted = self.all.iter().filter(|class| class.count > 0);
        counted.map(|class| (class.key(), class.count))
    }

    /// The text of the first error of each.
    fn quotes(&self) -> BTreeMap<String, Quote> {
        let quote = |class: &Class| Quote {
            class: class.name.clone(),
            text: class.text.clone(),
        };
        let counted = self.all.iter().filter(|class| class.count > 0);
        counted.map(|class| (class.key(), quote(class))).collect()
    }
}

impl Class {
    fn key(&self) -> String {
        let word = |c: char| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '_'
            }
        };
        format!("reply_{}", self.name.chars().map(word).collect::<String>())
    }
}

/// As much of a server's text as is shown, without what would command a terminal.
fn printable(text: &[u8], longest: usize) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(longest)]);
    let shown = |c: char| if c.is_control() { '·' } else { c };
    text.chars().map(shown).collect()
}

impl Handshakes {
    pub(crate) fn new() -> Self {
        Self {
            agreed: Vec::new(),
            times: Histogram::new(),
        }
    }

    pub(crate) fn agree(&mut self, agreed: Agreed, times: u64) {
        match self.agreed.iter_mut().find(|(known, _)| *known == agreed) {
            Some((_, sum)) => *sum += times,
            None => self.agreed.push((agreed, times)),
        }
    }

    pub(crate) fn time(&mut self, ns: u64) {
        self.times.record(ns);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (agreed, times) in &other.agreed {
            self.agree(*agreed, *times);
        }
        self.times.merge(&other.times);
    }

    pub(crate) fn report(&self, tls: &Tls) -> TlsReport {
        let mut negotiated = BTreeMap::new();
        let (mut full, mut resumed) = (0, 0);
        for (agreed, times) in &self.agreed {
            // rustls has names of its own for the suites of TLS 1.3.
            let suite = agreed.suite.replacen("TLS13_", "TLS_", 1);
            *negotiated
                .entry(format!("{} {suite}", agreed.version))
                .or_default() += times;
            if agreed.resumed {
                resumed += times;
            } else {
                full += times;
            }
        }
        TlsReport {
            verified: tls.verifies(),
            negotiated,
            full,
            resumed,
            handshake_us: self.times.quantiles(),
        }
    }
}

impl Named {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            sent: 0,
            errors: 0,
            latency: Histogram::new(),
        }
    }

    /// Counts a request, with its latency where it was answered.
    #[inline]
    pub(crate) fn note(&mut self, latency: Option<u64>) {
        self.sent += 1;
        match latency {
            Some(ns) => self.latency.record(ns),
            None => self.errors += 1,
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.errors += other.errors;
        self.latency.merge(&other.latency);
    }

    pub(crate) fn report(&self) -> NamedRequests {
        let latency = self.latency.quantiles();
        NamedRequests {
            name: self.name.clone(),
            sent: self.sent,
            errors: self.errors,
            p50_us: latency.p50,
            p99_us: latency.p99,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_counted_quoted_and_bounded() {
        let mut classes = Classes::default();
        let moved = classes.of(b"MOVED", b"MOVED 1 a:1\x1b[31m");
        assert_eq!(classes.of(b"MOVED", b"MOVED 2 b:2"), moved);
        classes.count(moved);
        classes.of(b"ERR", b"ERR never counted");
        assert_eq!(
            classes.counted().collect::<Vec<_>>(),
            [("reply_moved".to_owned(), 1)]
        );
        let quote = &classes.quotes()["reply_moved"];
        assert_eq!((&*quote.class, &*quote.text), ("MOVED", "MOVED 1 a:1·[31m"));
        for number in 0..1000 {
            let name = format!("CLASS{number}");
            let at = classes.of(name.as_bytes(), b"x");
            classes.count(at);
        }
        assert_eq!(classes.all.len(), MOST_CLASSES + 1);
        let sum: u64 = classes.counted().map(|(_, count)| count).sum();
        assert_eq!(sum, 1001);
        let long = classes.of(&[b'A'; 1000], b"x");
        assert!(classes.all[long].name.len() <= LONGEST_CLASS);
    }
}
