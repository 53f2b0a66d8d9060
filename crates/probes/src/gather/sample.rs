//! Samples between the full ones: what changes within milliseconds.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use rungwise_formats::task;
use rungwise_model::kernel::{Answer, Question, UdpSocket};

use super::{FULL_SAMPLES, Form, Reader, name, raw};
use crate::capture::{Moment, Raw, Reply};
use crate::probe::{What, When};
use crate::{PROBES, net, process};

/// Placeholder for the processes that serve clients or use CPU.
const SERVICE: &str = "{service}";

/// Samples between two full ones: nine in ten windows catch what lasts for a tenth of the time. Threads are read up to
/// ten times as often: nineteen in twenty windows catch a stop of 14 ms per second.
const SAMPLES: u32 = 7;

/// Times that threads are read in a second, at some 25 us each with their system call: half a percent of a CPU.
const THREAD_READS_PER_S: f64 = 200.0;

/// Maximum of thread readings per sample: 210 in a window.
const MOST_GLANCES: u32 = 10;

/// Sockets up to which each sample lists them, at 1 us each. With 301 to 1000 TCP sockets every second to fourth sample lists these; with
/// more, none does.
const SAMPLED_SOCKETS: usize = 300;

/// When samples are taken, as shares of the time from one full sample to the next.
///
/// Not evenly: a periodic event, such as a stop in each second, would coincide with all of them or none. Multiples of
/// the golden ratio cover every phase.
///
/// One in `glances` of them reads everything; the others read threads, freezers, queues of Unix sockets and DNS queries only.
pub(super) fn places(part: u32, glances: u32) -> impl Iterator<Item = (f64, Depth)> {
    let glances = glances.max(1);
    let count = SAMPLES * glances;
    (0..count).map(move |number| {
        // Which of its glances is the sample: the first of each would come evenly.
        let group = f64::from(part * SAMPLES + number / glances);
        let chosen = ((group * GOLDEN).fract() * f64::from(glances)) as u32;
        let depth = if number % glances == chosen {
            Depth::All
        } else {
            Depth::Threads
        };
        (spread(part, number, count), depth)
    })
}

const GOLDEN: f64 = 0.618_033_988_749_895;

/// The place of one of `count` samples in a part of the window, in a part of its own and not at the same place in each.
pub(super) fn spread(part: u32, number: u32, count: u32) -> f64 {
    let shift = (f64::from(part * count + number) * GOLDEN).fract();
    (f64::from(number) + 0.1 + 0.8 * shift) / f64::from(count)
}

/// Is due in each `every`th sample; never if that is zero.
#[derive(Clone, Copy, Default)]
pub(super) struct EveryNth {
    every: usize,
    passed: usize,
}

impl EveryNth {
    fn is_due(&mut self) -> bool {
        self.passed += 1;
        self.every > 0 && self.passed.is_multiple_of(self.every)
    }
}

/// How much is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// All that is sampled.
    All,
    /// Threads of services, freezers above them, queues of Unix sockets, and DNS queries.
    Threads,
}

impl Reader<'_> {
    /// What changes within milliseconds, of the few processes that serve clients.
    pub(super) fn sample(&mut self, at_s: f64, depth: Depth) -> Moment {
        let mut moment = Moment {
            at_s,
            ..Moment::default()
        };
        let sources: BTreeSet<What> = PROBES
            .iter()
            .flat_map(|probe| probe.sources)
            .filter(|source| source.when == When::Often)
            .map(|source| source.what)
            .collect();
        self.folders.clear();
        for what in sources {
            match what {
                What::Files(pattern) if depth == Depth::All || pattern.contains(SERVICE) => {
                    self.read_all(pattern, true, &mut moment);
                }
                What::Ask(question) => {
                    let is_due = match question {
                        Question::Tcp => depth == Depth::All && self.sockets.is_due(),
                        _ => self.samples_datagrams,
                    };
                    if !is_due {
                        continue;
                    }
                    // One that fails fails in the full samples as well, which say why.
                    let answer = match question {
                        Question::Tcp => self.host.tcp_in_use().map(Answer::Tcp),
                        other => self.host.ask(other),
                    };
                    if let Ok(mut answer) = answer {
                        if let Answer::Udp(sockets) = &mut answer {
                            self.queries_in(sockets, &mut moment);
                        }
                        // Those in which nothing waits are known from the full samples.
                        if let Answer::Unix(listeners) = &mut answer {
                            listeners.retain(|listener| listener.waiting > 0);
                        }
                        let name = name(question).to_owned();
                        moment.answers.insert(name, Reply::Answer(answer));
                    }
                }
                What::Groups => self.groups.sample(self.host, &mut moment),
                What::Files(_) | What::Running(_) => {}
            }
        }
        self.blocked_in(&mut moment);
        moment
    }

    /// Adds where threads wait that are in an uninterruptible wait: it is over soon.
    fn blocked_in(&self, moment: &mut Moment) {
        let is_blocked = |raw: &Raw| match raw {
            Raw::Text(text) => task::stat(text).is_some_and(|stat| stat.state == 'D'),
            Raw::Failed { .. } => false,
        };
        let stats = moment.files.iter();
        let folders = stats.filter_map(|(path, raw)| Some((path.strip_suffix("/stat")?, raw)));
        let blocked = folders.filter(|(_, raw)| is_blocked(raw));
        let paths: Vec<String> = blocked
            .map(|(folder, _)| format!("{folder}/wchan"))
            .collect();
        for path in paths {
            if let Some(raw) = raw(self.host.read(Path::new(&path)), Form::Text, true) {
                moment.files.insert(path, raw);
            }
        }
    }

    /// Glances for each sample of a window that lasts so long, so that many threads cost no more than few, and a short
    /// window no more than a long one.
    pub(super) fn glances(&self, moment: &Moment, window: Duration) -> u32 {
        let threads = process::threads_of(moment, &self.chosen.services.often).max(1);
        let samples = f64::from(SAMPLES * (FULL_SAMPLES - 1));
        let glances = THREAD_READS_PER_S * window.as_secs_f64() / (samples * threads as f64);
        (glances as u32).clamp(1, MOST_GLANCES)
    }

    /// Keeps the sockets that wait for DNS and adds their processes: most are gone when the window ends.
    fn queries_in(&mut self, sockets: &mut Vec<UdpSocket>, moment: &mut Moment) {
        let sought = self.queries.sample(moment.at_s, sockets);
        if sought.is_empty() {
            return;
        }
        // One that fails fails at the end as well, which says why.
        if let Ok(owners) = self.host.owners_of(&sought) {
            let reply = Reply::Answer(Answer::Owners(owners));
            moment
                .answers
                .insert(name(Question::Owners).to_owned(), reply);
        }
    }

    /// Adds the processes that used CPU in the first part of the window, once that is over.
    pub(super) fn choose_working(&mut self, moments: &[Moment]) {
        if let [first, second] = moments {
            let services = std::mem::take(&mut self.chosen.services);
            self.chosen.services = process::services_between(first, second, services);
        }
    }

    /// Finds the processes that serve clients, by the connections of the first full sample.
    pub(super) fn choose_services(&mut self, first: &Moment) {
        let Some(Reply::Answer(Answer::Tcp(sockets))) = first.answers.get(name(Question::Tcp))
        else {
            return;
        };
        let datagram = match first.answers.get(name(Question::Udp)) {
            Some(Reply::Answer(Answer::Udp(sockets))) => sockets.len(),
            _ => 0,
        };
        let in_use = sockets.iter().filter(|socket| !socket.is_in_time_wait());
        let are_few = net::tcp::between(sockets).is_none();
        let every = in_use.count().div_ceil(SAMPLED_SOCKETS).max(1);
        self.sockets.every = if are_few { every } else { 0 };
        self.samples_datagrams = are_few && datagram <= SAMPLED_SOCKETS;
        let sought = process::of_services(sockets);
        // Without owners nothing is sampled of processes; the full samples say what may not be seen.
        let owners = self.host.owners_of(&sought).unwrap_or_default();
        let pids = owners.values().map(|owner| owner.pid).collect();
        self.chosen.services = process::services_at(first, &pids);
        for pid in self.chosen.services.all() {
            let path = format!("/proc/{pid}/cgroup");
            if let Some(Raw::Text(text)) = raw(self.host.read(Path::new(&path)), Form::Text, true) {
                self.groups.choose(&text, first);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest part of a cycle in which no sample lies, of samples in a window of so many cycles.
    fn gap(glances: u32, cycles: f64) -> f64 {
        let parts = f64::from(FULL_SAMPLES - 1);
        let mut phases: Vec<f64> = (1..FULL_SAMPLES)
            .flat_map(|part| places(part, glances).map(move |place| (part, place)))
            .filter(|(_, (_, depth))| *depth == Depth::All)
            .map(|(part, (place, _))| (f64::from(part - 1) + place) / parts * cycles)
            .map(f64::fract)
            .collect();
        assert_eq!(phases.len() as u32, SAMPLES * (FULL_SAMPLES - 1));
        phases.sort_by(f64::total_cmp);
        let ends = phases[0] + 1.0 - phases[phases.len() - 1];
        let between = phases.windows(2).map(|two| two[1] - two[0]);
        between.fold(ends, f64::max)
    }

    #[test]
    fn what_recurs_meets_some_samples_however_many_glances_lie_between() {
        for glances in [1, 2, 5, 10] {
            for cycles in [5.0, 10.0, 20.0, 21.0, 42.0] {
                let gap = gap(glances, cycles);
                assert!(gap < 0.4, "{glances} glances, {cycles} cycles: {gap}");
            }
        }
    }
}
