//! A capture as probes see it: texts by path, and counters as rates between samples.

use std::collections::BTreeMap;

use rungwise_model::evidence::{Absence, Origin};
use rungwise_model::kernel::Answer;

use crate::capture::{Capture, Moment, Raw, Reply};

/// A capture to derive evidence from.
#[derive(Clone, Debug)]
pub struct Window<'a> {
    capture: &'a Capture,
}

/// A counter over the full samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// First and last value.
    pub ends: (f64, f64),
    /// Growth from the first to the last full sample, with what the counter does not show yet.
    pub delta: f64,
    /// Of it, what the counter does not show yet: a wait that is not over at the end.
    pub unfinished: f64,
    /// Growth per second over the whole window.
    pub per_s: f64,
    /// Growth per second between consecutive full samples.
    pub series: Vec<f64>,
}

impl Rate {
    /// Both ends as a raw line.
    pub fn line(&self) -> String {
        let (begin, end) = self.ends;
        if self.unfinished > 0.0 {
            return format!(
                "begin {begin}, end {end}, and {} more not over at the end",
                self.unfinished
            );
        }
        format!("begin {begin}, end {end}")
    }

    /// Both ends as an origin.
    pub fn origin(&self, source: &str) -> Origin {
        Origin::new(source, self.line())
    }
}

impl<'a> Window<'a> {
    /// The window of this capture.
    pub fn of(capture: &'a Capture) -> Self {
        Self { capture }
    }

    /// The capture itself.
    pub fn capture(&self) -> &'a Capture {
        self.capture
    }

    /// Length in seconds; 0 with a single sample.
    pub fn seconds(&self) -> f64 {
        match (self.capture.moments.first(), self.capture.moments.last()) {
            (Some(first), Some(last)) => (last.at_s - first.at_s).max(0.0),
            _ => 0.0,
        }
    }

    /// The full samples, oldest first.
    pub fn moments(&self) -> &'a [Moment] {
        &self.capture.moments
    }

    /// The full samples and those between them, oldest first.
    pub fn often(&self) -> Vec<&'a Moment> {
        let mut all: Vec<_> = self.capture.moments.iter().collect();
        all.extend(&self.capture.samples);
        all.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        all
    }

    /// The text of a file in the last full sample.
    pub fn text(&self, path: &str) -> Result<&'a str, Absence> {
        let last = self.moments().last().ok_or_else(nothing_read)?;
        text_of(last, path)
    }

    /// The text of a file in every full sample that has it, with the time of the sample; the reason, if none has.
    pub fn texts(&self, path: &str) -> Result<Vec<(f64, &'a str)>, Absence> {
        let texts: Vec<_> = self
            .moments()
            .iter()
            .filter_map(|moment| Some((moment.at_s, text_of(moment, path).ok()?)))
            .collect();
        if texts.is_empty() {
            self.text(path)?;
            return Err(nothing_read());
        }
        Ok(texts)
    }

    /// Paths of the last full sample that match `pattern`, each with the matches of its stars.
    pub fn matching(&self, pattern: &str) -> Vec<(&'a str, Vec<&'a str>)> {
        // Everything before the first star is common to all matches, so only that part of the map is walked.
        let fixed = pattern.split('*').next().unwrap_or_default();
        let Some(last) = self.moments().last() else {
            return Vec::new();
        };
        let mut found = Vec::new();
        // The last folder in which nothing matches: that of the threads of a process may hold thousands of files.
        let mut elsewhere = None;
        let paths = last.files.range(fixed.to_owned()..).map(|(path, _)| path);
        for path in paths.take_while(|path| path.starts_with(fixed)) {
            // A pattern stands for itself where its folder could not be listed.
            if elsewhere.is_some_and(|folder| path.starts_with(folder)) || path.contains('*') {
                continue;
            }
            match stars(pattern, path) {
                Some(stars) => found.push((path.as_str(), stars)),
                None => elsewhere = unlike(pattern, path).or(elsewhere),
            }
        }
        found
    }

    /// Why nothing matches `pattern`, if its folder could not be listed, was not read or is not mounted.
    pub fn unlisted(&self, pattern: &str) -> Option<Absence> {
        let last = self.moments().last()?;
        match last.files.get(pattern) {
            Some(Raw::Failed { .. }) => text_of(last, pattern).err(),
            Some(Raw::Text(_)) => None,
            None => unmounted(last, pattern, "ENOENT"),
        }
    }

    /// The answer to a question in the last full sample.
    pub fn answer(&self, name: &str) -> Result<&'a Answer, Absence> {
        let last = self.moments().last().ok_or_else(nothing_read)?;
        answer_of(last, name)
    }

    /// The answer in every full sample that has it, with the time of the sample.
    pub fn answers(&self, name: &str) -> Result<Vec<(f64, &'a Answer)>, Absence> {
        let answers: Vec<_> = self
            .moments()
            .iter()
            .filter_map(|moment| Some((moment.at_s, answer_of(moment, name).ok()?)))
            .collect();
        if answers.is_empty() {
            self.answer(name)?;
            return Err(nothing_read());
        }
        Ok(answers)
    }

    /// Counters of one file as rates. `parse` makes a map of counters of one text.
    ///
    /// A counter missing at either end is omitted; so is one that went backwards (a reset, a device created anew),
    /// since its growth is unknown.
    pub fn rates<K: Ord>(
        &self,
        path: &str,
        parse: impl Fn(&'a str) -> BTreeMap<K, f64>,
    ) -> Result<BTreeMap<K, Rate>, Absence> {
        let samples = self
            .texts(path)?
            .into_iter()
            .map(|(at, text)| (at, parse(text)))
            .collect();
        rates(samples).map_err(|why| self.no_rates(why))
    }

    /// Counters of answers as rates.
    pub fn answer_rates<K: Ord>(
        &self,
        name: &str,
        parse: impl Fn(&'a Answer) -> BTreeMap<K, f64>,
    ) -> Result<BTreeMap<K, Rate>, Absence> {
        let samples = self
            .answers(name)?
            .into_iter()
            .map(|(at, answer)| (at, parse(answer)))
            .collect();
        rates(samples).map_err(|why| self.no_rates(why))
    }

    fn no_rates(&self, why: Absence) -> Absence {
        if self.moments().len() < 2 {
            return Absence::because("the window has only one sample, and a rate needs two")
                .remedy("observe for some seconds: --for 10s");
        }
        why
    }
}

/// Maps of counters, oldest first, as rates.
fn rates<K: Ord>(mut samples: Vec<(f64, BTreeMap<K, f64>)>) -> Result<BTreeMap<K, Rate>, Absence> {
    let (ended, last) = samples.pop().ok_or_else(nothing_read)?;
    let seconds = samples.first().map_or(0.0, |(began, _)| ended - began);
    if seconds <= 0.0 {
        return Err(Absence::because(
            "it was read once, and a rate needs two samples",
        ));
    }
    let rate = |key: &K, end: f64| -> Option<Rate> {
        let mut course: Vec<(f64, f64)> = samples
            .iter()
            .map(|(at, map)| Some((*at, *map.get(key)?)))
            .collect::<Option<_>>()?;
        course.push((ended, end));
        let series: Option<Vec<f64>> = course
            .windows(2)
            .map(|two| {
                let (grown, took) = (two[1].1 - two[0].1, two[1].0 - two[0].0);
                (grown >= 0.0 && took > 0.0).then_some(grown / took)
            })
            .collect();
        let begin = course[0].1;
        Some(Rate {
            ends: (begin, end),
            delta: end - begin,
            unfinished: 0.0,
            per_s: (end - begin) / seconds,
            series: series?,
        })
    };
    Ok(last
        .into_iter()
        .filter_map(|(key, end)| rate(&key, end).map(|rate| (key, rate)))
        .collect())
}

/// The text of a file in one sample.
pub(crate) fn text_of<'a>(moment: &'a Moment, path: &str) -> Result<&'a str, Absence> {
    match moment.files.get(path) {
        Some(Raw::Text(text)) => Ok(text),
        Some(Raw::Failed { failed }) => {
            Err(unmounted(moment, path, failed).unwrap_or_else(|| refusal(path, failed)))
        }
        None => Err(Absence::because(format!("{path} was not read"))),
    }
}

fn answer_of<'a>(moment: &'a Moment, name: &str) -> Result<&'a Answer, Absence> {
    match moment.answers.get(name) {
        Some(Reply::Answer(answer)) => Ok(answer),
        Some(Reply::Failed(failed)) => Err(refusal(name, failed)),
        None => Err(Absence::because(format!("{name}: not recorded"))),
    }
}

/// Where the kernel shows nothing at all of `/proc` or `/sys`, that is why, and not the kernel.
fn unmounted(moment: &Moment, path: &str, failed: &str) -> Option<Absence> {
    let top = path.split('/').nth(1)?;
    (failed == "ENOENT" && !shows(moment, &format!("/{top}/"))).then(|| {
        Absence::because(format!("/{top} is not mounted here"))
            .remedy(format!("mount it, or run rungwise where /{top} is mounted"))
    })
}

/// Some file below `folder` was read.
pub(crate) fn shows(moment: &Moment, folder: &str) -> bool {
    moment
        .files
        .range(folder.to_owned()..)
        .take_while(|(path, _)| path.starts_with(folder))
        .any(|(_, raw)| matches!(raw, Raw::Text(_)))
}

/// The reason and the remedy for an error of the kernel.
fn refusal(what: &str, failed: &str) -> Absence {
    match failed {
        "ENOENT" => Absence::because(format!("this kernel has no {what}")),
        "EACCES" | "EPERM" => {
            Absence::because(format!("{what}: not permitted")).remedy("run as root")
        }
        // Netlink is what is asked; a kernel has it, and a sandbox may not.
        "EAFNOSUPPORT" => Absence::because(format!("{what}: netlink sockets are refused here"))
            .remedy("run outside the sandbox that blocks them"),
        "EOPNOTSUPP" | "EINVAL" => Absence::because(format!(
            "{what}: not reported by the device or kernel ({failed})"
        )),
        // A reason may end in what helps, after a semicolon. It is a sentence of its own then, the same for many files.
        other => match other.rsplit_once("; ") {
            Some((why, remedy)) => Absence::because(why).remedy(remedy),
            None => Absence::because(format!("{what}: {other}")),
        },
    }
}

/// Why an answer of another kind than its question is ignored.
///
/// Captures of this host never contain this: the capture was edited by hand, or written by another version.
pub(crate) fn misplaced(asked: &str, found: &Answer) -> Absence {
    let kind = match found {
        Answer::Tcp(_) => "TCP sockets",
        Answer::Udp(_) => "UDP sockets",
        Answer::Unix(_) => "Unix sockets",
        Answer::Devices(_) => "network devices",
        Answer::Qdiscs(_) => "queueing disciplines",
        Answer::Neighbours(_) => "neighbour tables",
        Answer::Namespaces(_) => "network namespaces",
        Answer::Netfilter(_) => "chains of nf_tables",
        Answer::Audit(_) => "the state of the audit subsystem",
        Answer::Mounts(_) => "room on file systems",
        Answer::Owners(_) => "owners of sockets",
        Answer::Stacks(_) => "kernel stacks",
        Answer::Events(_) => "kernel events",
        Answer::Tlb(_) => "misses of the TLB",
        Answer::Settings(_) => "values that knobs set",
        Answer::Load(_) => "a load generator's own health",
    };
    Absence::because(format!(
        "under \"{asked}\" the capture holds {kind} instead"
    ))
    .remedy("record it again with `rungwise capture`")
}

fn nothing_read() -> Absence {
    Absence::because("nothing was read")
}

/// The matches of the stars of `pattern` in `path`; a star never spans a slash.
pub(crate) fn stars<'p>(pattern: &str, path: &'p str) -> Option<Vec<&'p str>> {
    let mut found = Vec::new();
    let mut wanted = pattern.split('/');
    let mut given = path.split('/');
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return Some(found),
            (Some(wanted), Some(given)) => {
                found.extend(Some(star(wanted, given)?).filter(|star| !star.is_empty()));
            }
            _ => return None,
        }
    }
}

/// What the star of one name stands for, which is never empty, or `""` where it has none; nothing if the other name is
/// unlike it.
fn star<'p>(wanted: &str, given: &'p str) -> Option<&'p str> {
    match wanted.split_once('*') {
        None => (wanted == given).then_some(""),
        Some((head, tail)) => {
            let middle = given.strip_prefix(head)?.strip_suffix(tail)?;
            (!middle.is_empty()).then_some(middle)
        }
    }
}

/// The folder of `path`, its slash included, that is unlike `pattern`, so that nothing in it matches.
fn unlike<'p>(pattern: &str, path: &'p str) -> Option<&'p str> {
    let mut end = 0;
    for (wanted, given) in pattern.split('/').zip(path.split_inclusive('/')) {
        end += given.len();
        let name = given.strip_suffix('/')?;
        if star(wanted, name).is_none() {
            return Some(&path[..end]);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[&[(&'static str, f64)]]) -> Vec<(f64, BTreeMap<&'static str, f64>)> {
        values
            .iter()
            .enumerate()
            .map(|(at, map)| (at as f64 * 2.0, map.iter().copied().collect()))
            .collect()
    }

    #[test]
    fn a_rate_needs_both_ends_of_its_window() {
        assert!(rates(samples(&[&[("a", 1.0)]])).is_err());
        let found = rates(samples(&[
            &[("a", 1.0)],
            &[("a", 3.0)],
            &[("a", 9.0), ("b", 4.0)],
        ]))
        .unwrap();
        assert_eq!(found.len(), 1);
        let rate = &found["a"];
        assert_eq!(rate.series, [1.0, 3.0]);
        assert!((rate.per_s - 2.0).abs() < 1e-9);
        assert_eq!(rate.line(), "begin 1, end 9");
    }

    #[test]
    fn a_counter_that_went_backwards_tells_nothing() {
        let found = rates(samples(&[
            &[("a", 5.0), ("b", 1.0), ("c", 0.0)],
            &[("a", 2.0), ("b", 2.0), ("c", 7.0)],
        ]))
        .unwrap();
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), ["b", "c"]);
        assert!((found["c"].delta - 7.0).abs() < 1e-9);
    }

    #[test]
    fn a_star_stands_for_a_part_of_one_name() {
        let pattern = "/sys/class/net/*/queues/rx-*/rps_cpus";
        assert_eq!(
            stars(pattern, "/sys/class/net/eth0/queues/rx-12/rps_cpus"),
            Some(vec!["eth0", "12"])
        );
        assert_eq!(
            stars(pattern, "/sys/class/net/eth0/queues/tx-1/rps_cpus"),
            None
        );
        assert_eq!(stars(pattern, "/sys/class/net/eth0/queues/rx-1"), None);
        let folder = |path| unlike("/proc/*/stat", path);
        assert_eq!(folder("/proc/7/task/8/stat"), Some("/proc/7/task/"));
        assert_eq!(folder("/proc/7/status"), None);
        assert_eq!(folder("/sys/7/stat"), Some("/sys/"));
    }

    #[test]
    fn a_file_that_could_not_be_read_says_why() {
        let mut moment = Moment::default();
        let failed = |name: &str| Raw::Failed {
            failed: name.to_owned(),
        };
        moment.files.insert("/proc/a".to_owned(), failed("EACCES"));
        moment.files.insert("/proc/b".to_owned(), failed("ENOENT"));
        moment.files.insert("/sys/d".to_owned(), failed("ENOENT"));
        let text = Raw::Text("cpu 1".to_owned());
        moment.files.insert("/proc/stat".to_owned(), text);
        let capture = Capture {
            moments: vec![moment],
            ..Capture::default()
        };
        let window = Window::of(&capture);
        let unmounted = window.text("/sys/d").unwrap_err();
        assert!(unmounted.reason.contains("/sys is not mounted"));
        assert!(!unmounted.remedy.is_empty());
        assert_eq!(window.text("/proc/a").unwrap_err().remedy, "run as root");
        assert!(
            window
                .text("/proc/b")
                .unwrap_err()
                .reason
                .contains("no /proc/b")
        );
        assert!(window.text("/proc/c").is_err());
    }
}
