//! UDP sockets, from `sock_diag` (`ss -uanm`): drops, queues and readers by local address.
//!
//! With `SO_REUSEPORT` an address has several sockets, each with a queue of its own. Sources:
//! `net/ipv4/udp_diag.c`, net/ipv4/udp.c (Linux 6.18).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use rungwise_formats::task;
use rungwise_model::evidence::{Absence, Evidence, Origin, Subject};
use rungwise_model::kernel::{Answer, Endpoint, Owner, Question, UdpSocket};
use rungwise_model::keys;

use super::port::{self, MOST};
use crate::window::misplaced;
use crate::{Cost, Need, Probe, Source, When, Window, enter};

const SOURCE: &str = "sock_diag (ss -uanm)";
const THREADS: &str = "/proc/{pid}/task/*/schedstat";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "udp-sockets",
    summary: "drops, queues and readers of UDP sockets by local address",
    cost: Cost::Cheap,
    needs: &[Need::Root],
    sources: &[
        Source::ask(Question::Udp, When::Each),
        Source::ask(Question::Owners, When::Once),
        Source::once("/proc/*/stat"),
        Source::ends("/proc/*/schedstat"),
        Source::ends(THREADS),
    ],
    yields: &[
        &keys::UDP_DROPPING_SOCKETS,
        &keys::UDP_PROCESS,
        &keys::UDP_RCVBUF,
        &keys::UDP_READ_DELAY,
        &keys::UDP_READERS,
        &keys::UDP_SOCKET_DROPS,
        &keys::UDP_SOCKET_QUEUE,
        &keys::UDP_SOCKETS,
    ],
    derive,
    doc: "\
At most 50 addresses are reported: those with most drops, then the fullest queues, then most sockets. Connected \
sockets count at an address only if it has no unconnected one. Drops are those of sockets that are open at the end of \
the window; kernel sockets, such as those of tunnels, are excluded. The queue is compared with the receive buffer by \
memory used, not by payload: a datagram of 100 bytes takes 768 or more. Readers are the threads of the processes that \
have the sockets open, one process per socket; not all threads need read. Their run delay is known for single-threaded \
processes, and for all threads of the judged process (--pid). Sources: net/ipv4/udp.c of Linux 6.18; ss(8).",
};

/// One local address over the window.
#[derive(Default)]
struct Address<'a> {
    /// Sockets in the last full sample.
    sockets: Vec<&'a UdpSocket>,
    /// Datagrams dropped since the first full sample; `None` with a single sample, or if no socket reports it.
    dropped: Option<u64>,
    /// Sockets that dropped some of them.
    dropping: usize,
    /// Fullest queue in each full sample, as a share of its buffer.
    fill: Vec<f64>,
}

impl Address<'_> {
    fn fullest(&self) -> f64 {
        self.fill.iter().copied().fold(0.0, f64::max)
    }
}

/// Sockets of one full sample.
type Sample<'a> = (f64, &'a [UdpSocket]);

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let samples = match samples(window) {
        Ok(samples) => samples,
        Err(why) => return evidence.absent(PROBE.yields, &why, SOURCE),
    };
    let seconds = match (samples.first(), samples.last()) {
        (Some((began, _)), Some((ended, _))) => ended - began,
        _ => 0.0,
    };
    let owners = port::owners(window);
    for (local, address) in chosen(&samples) {
        let subject = port::port("udp", local);
        sockets(&subject, &address, seconds, evidence);
        if let Some(socket) = address.sockets.first() {
            port::owner(
                evidence,
                &keys::UDP_PROCESS,
                &subject,
                &owners,
                socket.inode,
            );
        }
        readers(window, &subject, &address, &owners, evidence);
    }
    let none = match window.answer("udp") {
        Ok(other) if samples.is_empty() => misplaced("udp", other),
        _ => Absence::none("no UDP socket is open"),
    };
    enter::absent_if_unset(evidence, PROBE.yields, &none, SOURCE);
}

/// All full samples with sockets.
fn samples<'a>(window: &Window<'a>) -> Result<Vec<Sample<'a>>, Absence> {
    let answers = window.answers("udp")?.into_iter();
    let sockets = |(at, answer): (f64, &'a Answer)| match answer {
        Answer::Udp(sockets) => Some((at, &sockets[..])),
        _ => None,
    };
    Ok(answers.filter_map(sockets).collect())
}

/// Inodes of the sockets whose processes are looked up: all of each reported address.
pub(super) fn sought(window: &Window<'_>) -> Vec<u64> {
    let samples = samples(window).unwrap_or_default();
    let addresses = chosen(&samples).into_iter();
    addresses
        .flat_map(|(_, address)| address.sockets)
        .map(|socket| socket.inode)
        .filter(|inode| *inode != 0)
        .collect()
}

/// The reported addresses, at most [`MOST`]: those with most drops, then the fullest, then most sockets.
fn chosen<'a>(samples: &[Sample<'a>]) -> Vec<(Endpoint, Address<'a>)> {
    let mut addresses: Vec<_> = addresses(samples).into_iter().collect();
    addresses.sort_by(|(_, a), (_, b)| {
        let dropped = b.dropped.unwrap_or(0).cmp(&a.dropped.unwrap_or(0));
        dropped
            .then_with(|| b.fullest().total_cmp(&a.fullest()))
            .then_with(|| b.sockets.len().cmp(&a.sockets.len()))
    });
    addresses.truncate(MOST);
    addresses
}

fn addresses<'a>(samples: &[Sample<'a>]) -> BTreeMap<Endpoint, Address<'a>> {
    let mut addresses: BTreeMap<Endpoint, Address<'a>> = BTreeMap::new();
    let Some((_, last)) = samples.last() else {
        return addresses;
    };
    let open: HashSet<Endpoint> = last
        .iter()
        .filter(|socket| socket.remote.port == 0)
        .map(|socket| socket.local)
        .collect();
    // A port of 0 is a socket that was made and not yet bound.
    let counts = |socket: &UdpSocket| {
        socket.local.port != 0 && (socket.remote.port == 0 || !open.contains(&socket.local))
    };
    for socket in last.iter().filter(|socket| counts(socket)) {
        addresses
            .entry(socket.local)
            .or_default()
            .sockets
            .push(socket);
    }
    for (number, (_, sockets)) in samples.iter().enumerate() {
        for socket in sockets.iter().filter(|socket| counts(socket)) {
            let (Some(address), Some(memory)) = (addresses.get_mut(&socket.local), socket.memory)
            else {
                continue;
            };
            address.fill.resize(number + 1, 0.0);
            if memory.rcvbuf > 0 {
                let fill = f64::from(memory.rmem) / f64::from(memory.rcvbuf);
                address.fill[number] = address.fill[number].max(fill);
            }
        }
    }
    let [(_, first), _, ..] = samples else {
        return addresses;
    };
    let before: HashMap<u64, u32> = first
        .iter()
        .filter_map(|socket| Some((socket.inode, socket.memory?.drops)))
        .collect();
    for address in addresses.values_mut() {
        // Sockets of the kernel itself, as those of tunnels, have no inode and cannot be distinguished.
        let known = address.sockets.iter().filter(|socket| socket.inode != 0);
        let dropped: Vec<u64> = known
            .filter_map(|socket| {
                // One that was made since began with none.
                let begin = before.get(&socket.inode).copied().unwrap_or(0);
                // 32 bits in the kernel as well (sk_drops), so it may have gone round.
                Some(u64::from(socket.memory?.drops.wrapping_sub(begin)))
            })
            .collect();
        address.dropping = dropped.iter().filter(|drops| **drops > 0).count();
        address.dropped = dropped.into_iter().reduce(|a, b| a + b);
    }
    addresses
}

fn sockets(subject: &Subject, address: &Address<'_>, seconds: f64, evidence: &mut Evidence) {
    let count = address.sockets.len();
    let memories: Vec<_> = address
        .sockets
        .iter()
        .filter_map(|socket| socket.memory)
        .collect();
    let fullest = memories.iter().max_by_key(|memory| memory.rmem);
    let line = match fullest {
        Some(memory) => format!(
            "sockets: {count}; the fullest: skmem:(r{},rb{},d{})",
            memory.rmem, memory.rcvbuf, memory.drops
        ),
        None => format!("sockets: {count}"),
    };
    let origin = Origin::new(SOURCE, line);
    evidence.number(
        &keys::UDP_SOCKETS,
        subject.clone(),
        count as f64,
        origin.clone(),
    );
    let Some(smallest) = memories.iter().map(|memory| memory.rcvbuf).min() else {
        let why = Absence::because("the kernel reports no memory use of these sockets");
        for key in [
            &keys::UDP_DROPPING_SOCKETS,
            &keys::UDP_RCVBUF,
            &keys::UDP_SOCKET_QUEUE,
            &keys::UDP_SOCKET_DROPS,
        ] {
            enter::absent(
                evidence,
                key,
                subject.clone(),
                why.clone(),
                Origin::new(SOURCE, ""),
            );
        }
        return;
    };
    evidence.number(
        &keys::UDP_RCVBUF,
        subject.clone(),
        f64::from(smallest),
        origin.clone(),
    );
    evidence.series(
        &keys::UDP_SOCKET_QUEUE,
        subject.clone(),
        address.fullest(),
        address.fill.clone(),
        origin,
    );
    match address.dropped {
        Some(dropped) if seconds > 0.0 => {
            let line = format!("drops: {dropped} more in {seconds:.1} s; sockets: {count}");
            let per_s = dropped as f64 / seconds;
            let origin = Origin::new(SOURCE, line);
            evidence.number(
                &keys::UDP_DROPPING_SOCKETS,
                subject.clone(),
                address.dropping as f64,
                origin.clone(),
            );
            evidence.number(&keys::UDP_SOCKET_DROPS, subject.clone(), per_s, origin);
        }
        _ => {
            let why =
                Absence::because("drops need two samples of a socket that a process has open");
            for key in [&keys::UDP_DROPPING_SOCKETS, &keys::UDP_SOCKET_DROPS] {
                enter::absent(
                    evidence,
                    key,
                    subject.clone(),
                    why.clone(),
                    Origin::new(SOURCE, ""),
                );
            }
        }
    }
}

/// Threads that may read the address, and how long the slowest of them waited for a CPU.
fn readers(
    window: &Window<'_>,
    subject: &Subject,
    address: &Address<'_>,
    owners: &Result<&BTreeMap<u64, Owner>, Absence>,
    evidence: &mut Evidence,
) {
    let pids: BTreeSet<u32> = match owners {
        Ok(owners) => address
            .sockets
            .iter()
            .filter_map(|socket| Some(owners.get(&socket.inode)?.pid))
            .collect(),
        Err(_) => BTreeSet::new(),
    };
    let threads_of = |pid: u32| {
        let text = window.text(&format!("/proc/{pid}/stat")).ok()?;
        Some(task::stat(text)?.threads)
    };
    let counts: Option<Vec<u64>> = pids.iter().map(|pid| threads_of(*pid)).collect();
    let counts = counts.unwrap_or_default();
    let threads: u64 = counts.iter().sum();
    let line = format!("num_threads of {pids:?}: {threads}");
    let origin = Origin::new("/proc/PID/stat", line);
    evidence.number(&keys::UDP_READERS, subject.clone(), threads as f64, origin);

    let delays: Vec<f64> = pids
        .iter()
        .zip(&counts)
        .filter_map(|(pid, threads)| largest_delay(window, *pid, *threads))
        .collect();
    if pids.is_empty() || delays.len() < pids.len() {
        let why = Absence::because("the run delay of its reader threads is unknown")
            .remedy("pass the process: --pid PID");
        return enter::absent(
            evidence,
            &keys::UDP_READ_DELAY,
            subject.clone(),
            why,
            Origin::new(SOURCE, ""),
        );
    }
    let largest = delays.into_iter().fold(0.0, f64::max);
    let line = format!("{largest:.4} s per second runnable without a CPU; threads of {pids:?}");
    let origin = Origin::new("/proc/PID/task/TID/schedstat", line);
    evidence.number(&keys::UDP_READ_DELAY, subject.clone(), largest, origin);
}

/// Seconds per second that a thread of the process waited for a CPU, the largest; `None` if not all are known.
fn largest_delay(window: &Window<'_>, pid: u32, threads: u64) -> Option<f64> {
    let delay = |path: &str| {
        let rates = window.rates(path, |text| {
            let time = task::schedstat(text).map(|time| ((), time.waited_ns as f64));
            time.into_iter().collect()
        });
        Some(rates.ok()?.get(&())?.per_s / 1e9)
    };
    // That of a process is its first thread's alone.
    if threads == 1 {
        return delay(&format!("/proc/{pid}/schedstat"));
    }
    let judged = window.capture().process.as_ref()?;
    if judged.pid != pid {
        return None;
    }
    window
        .matching(&format!("/proc/{pid}/task/*/schedstat"))
        .into_iter()
        .filter_map(|(path, _)| delay(path))
        .reduce(f64::max)
}
