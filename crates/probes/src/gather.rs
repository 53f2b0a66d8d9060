//! Samples a machine: reads the sources of all probes, each once, and stores their contents unchanged.
//!
//! Nothing is opened for writing, no rule table is listed by a tool that would create it, only sources of probes are read. What
//! cannot be read is kept with the reason.

mod chosen;
mod sample;
mod service;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rungwise_formats::{postgres, task};
use rungwise_host::{Host, files, machine};
use rungwise_model::kernel::{Answer, Question};
use rungwise_model::service::ServicePort;

use self::chosen::{Chosen, MOST_WAITING};
use self::sample::{Depth, EveryNth, places};
use crate::capture::{Capture, Moment, Process, Raw, Reply};
use crate::groups::Groups;
use crate::probe::{Source, What, When};
use crate::{PROBES, Window, net, process};

/// Full samples per window, both ends included: three parts, which distinguish a lasting condition from a single event.
pub const FULL_SAMPLES: u32 = 4;

/// Suffix of a pattern whose files are not text; they are kept as lower-case hex.
const HEX: &str = "#hex";

/// Suffix of a pattern of folders: the number of names in each is kept, as the text of the folder.
const COUNT: &str = "#count";

/// Suffix of a pattern of command lines: only what a `PostgreSQL` backend shows of its activity is kept. Nothing else of a
/// command line is ever stored.
const ACTIVITY: &str = "#activity";

/// Placeholder for each process that has a listed socket open.
const OWNER: &str = "{owner}";

/// No file that a probe reads is this long on a healthy machine; a longer one is cut here.
const LONGEST: usize = 16 << 20;

/// Position of a full sample in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// The first of several.
    First,
    /// Neither first nor last.
    Between,
    /// The last of several.
    Last,
    /// The only one.
    Only,
}

impl Position {
    fn takes(self, when: When) -> bool {
        match when {
            When::Each => true,
            When::Ends => self != Self::Between,
            When::Begin => matches!(self, Self::First | Self::Only),
            When::Once => matches!(self, Self::Last | Self::Only),
            When::Often => false,
        }
    }
}

/// Samples a machine several times over `window`; with a window of zero once. `wait` sleeps until the next sample and returns
/// whether to continue; if not, the current sample is the last.
pub fn gather(
    host: &dyn Host,
    process: Option<Process>,
    window: Duration,
    wait: impl FnMut(Duration) -> bool,
    now: impl Fn() -> Instant,
) -> Capture {
    gather_service(host, process, Vec::new(), window, wait, now)
}

/// The same, and the connections of the service at these ports, if any are given.
pub fn gather_service(
    host: &dyn Host,
    process: Option<Process>,
    ports: Vec<ServicePort>,
    window: Duration,
    mut wait: impl FnMut(Duration) -> bool,
    now: impl Fn() -> Instant,
) -> Capture {
    let mut service = service::Sampler::new(host, ports);
    let mut reader = Reader::new(host, process.as_ref().map(|process| process.pid));
    let began = now();
    let since = || now().saturating_duration_since(began);
    let (mut moments, mut samples) = (Vec::new(), Vec::new());
    if window.is_zero() {
        moments.push(reader.full_sample(Position::Only, &moments, 0.0));
        service.begin(&moments[0], window);
    } else {
        moments.push(reader.full_sample(Position::First, &moments, 0.0));
        reader.choose_services(&moments[0]);
        service.begin(&moments[0], window);
        let part = window / (FULL_SAMPLES - 1);
        for number in 1..FULL_SAMPLES {
            let mut goes_on = true;
            let glances = moments
                .last()
                .map_or(1, |moment| reader.glances(moment, window));
            let of_machine = places(number, glances).map(|(place, depth)| (place, Some(depth)));
            let of_service = service.places(number).map(|place| (place, None));
            let mut due: Vec<(f64, Option<Depth>)> = of_machine.chain(of_service).collect();
            due.sort_by(|(one, _), (other, _)| one.total_cmp(other));
            for (place, depth) in due {
                let due = part * (number - 1) + part.mul_f64(place);
                goes_on = wait(due.saturating_sub(since()));
                if !goes_on {
                    break;
                }
                let at_s = since().as_secs_f64();
                match depth {
                    Some(depth) => samples.push(reader.sample(at_s, depth)),
                    None => service.sample(at_s, false),
                }
            }
            let due = window * number / (FULL_SAMPLES - 1);
            let goes_on = goes_on && wait(due.saturating_sub(since()));
            let at_s = since().as_secs_f64();
            let last = number == FULL_SAMPLES - 1 || !goes_on;
            let which = if last {
                Position::Last
            } else {
                Position::Between
            };
            moments.push(reader.full_sample(which, &moments, at_s));
            if last {
                service.sample(at_s, true);
                break;
            }
            reader.choose_working(&moments);
        }
    }
    let mut capture = Capture {
        process,
        sampler: Some(std::process::id()),
        service: service.end(),
        moments,
        samples,
        ..Capture::default()
    };
    // First, since sockets of the last sample close within milliseconds.
    reader.owners(&mut capture);
    capture.machine = machine::fingerprint(host);
    capture
}

/// Reads a machine, sample by sample.
struct Reader<'h> {
    host: &'h dyn Host,
    /// The process that is judged.
    pid: Option<u32>,
    /// Processes that the other placeholders match, from the latest list of all processes.
    chosen: Chosen,
    /// Names in folders already listed in this sample: many patterns share them.
    folders: Folders,
    /// Files that are read in each sample, possibly thousands: reading one again costs a seventh of opening it again as
    /// well (1 us against 7, `schedstat` of a thread, Linux 6.18).
    kept: BTreeMap<String, File>,
    /// Control groups that are limited.
    groups: Groups,
    /// How often TCP sockets are listed between the full samples.
    sockets: EveryNth,
    /// There are few enough sockets to list those of UDP and Unix often.
    samples_datagrams: bool,
    /// DNS queries that wait.
    queries: process::dns::Running,
}

/// Names in a folder by its path.
type Folders = BTreeMap<String, Vec<String>>;

impl<'h> Reader<'h> {
    fn new(host: &'h dyn Host, pid: Option<u32>) -> Self {
        Self {
            host,
            pid,
            chosen: Chosen {
                family: pid.into_iter().collect(),
                ..Chosen::default()
            },
            folders: Folders::new(),
            kept: BTreeMap::new(),
            groups: Groups::default(),
            sockets: EveryNth::default(),
            samples_datagrams: false,
            queries: process::dns::Running::default(),
        }
    }

    /// One full sample, `at_s` seconds after the first of those `before` it.
    fn full_sample(&mut self, which: Position, before: &[Moment], at_s: f64) -> Moment {
        let sources: BTreeSet<Source> = PROBES
            .iter()
            .flat_map(|probe| probe.sources)
            .filter(|source| which.takes(source.when))
            .copied()
            .collect();
        let mut sources = Vec::from_iter(sources);
        // Sockets come last: whose they are is looked up right after the last sample, and some live for milliseconds only.
        let of_sockets = |what| matches!(what, What::Ask(Question::Tcp | Question::Udp));
        sources.sort_by_key(|source| of_sockets(source.what));
        let mut moment = Moment {
            at_s,
            ..Moment::default()
        };
        self.folders.clear();
        for source in sources {
            match source.what {
                // Those of the owners are asked for when all samples are taken.
                What::Ask(Question::Owners) => {}
                What::Files(pattern) if Chosen::at_the_end(pattern) => {}
                What::Files(pattern) => {
                    let again = source.when == When::Each && which != Position::Only;
                    self.read_all(pattern, again, &mut moment);
                    // The list of processes comes first: `*` sorts before every placeholder.
                    if pattern == process::STATS {
                        self.chosen.update(self.pid, before.last(), &moment);
                    }
                }
                What::Running(pattern) => {
                    let earlier = match source.when {
                        When::Once | When::Begin => before.first(),
                        When::Ends | When::Each | When::Often => before.last(),
                    };
                    // In the first sample it is unknown which threads run; settings are read then if it is the only one.
                    if earlier.is_some() || source.when == When::Once {
                        self.read_running(pattern, earlier, &mut moment);
                    }
                }
                What::Groups => {
                    let mut groups = std::mem::take(&mut self.groups);
                    groups.read(self.host, which, &mut moment, |path| self.read_again(path));
                    self.groups = groups;
                }
                What::Ask(Question::Mounts) => {
                    let reply = match self.host.mounts_of(&self.chosen.working()) {
                        Ok(answer) => Reply::Answer(answer),
                        Err(error) => Reply::Failed(reason(&error)),
                    };
                    let mounts = name(Question::Mounts).to_owned();
                    moment.answers.insert(mounts, reply);
                }
                What::Ask(question) => {
                    let reply = match ask(self.host, question, which, before) {
                        Ok(answer) => Reply::Answer(answer),
                        Err(error) => Reply::Failed(reason(&error)),
                    };
                    moment.answers.insert(name(question).to_owned(), reply);
                }
            }
        }
        moment
    }

    /// Adds the processes that have the reported sockets open, and the files read of them.
    ///
    /// It comes last, because the reported sockets are known only then: reading all descriptors of all processes costs
    /// more than everything else.
    fn owners(&mut self, capture: &mut Capture) {
        /// Number of times that the sockets are sampled again if most connections closed before their processes were
        /// looked up: connections with a single request live for milliseconds.
        const TRIES: u32 = 4;
        let mut pids = BTreeSet::new();
        for attempt in 1..=TRIES {
            let window = Window::of(capture);
            let (sought, waiting) = (net::sought(&window), process::sought(&window));
            let sought = &sought | &waiting;
            self.chosen.full = process::near_their_limit(&window);
            self.chosen.waiting = process::blocked(&window);
            let [before @ .., last] = &mut capture.moments[..] else {
                return;
            };
            let mut found = 0;
            let reply = match self.host.owners_of(&sought) {
                Ok(owners) => {
                    pids = owners.values().map(|owner| owner.pid).collect();
                    let of_waiting = owners.iter().filter(|(inode, _)| waiting.contains(inode));
                    found = of_waiting.clone().count();
                    self.chosen
                        .waiting
                        .extend(of_waiting.map(|(_, owner)| owner.pid).take(MOST_WAITING));
                    Reply::Answer(Answer::Owners(owners))
                }
                Err(error) => Reply::Failed(reason(&error)),
            };
            let failed = matches!(reply, Reply::Failed(_));
            let owners = name(Question::Owners).to_owned();
            last.answers.insert(owners, reply);
            // Connections of clients last, and are half of those that are looked for.
            if failed || 4 * found >= 3 * waiting.len() || attempt == TRIES {
                break;
            }
            if let Ok(answer) = ask(self.host, Question::Tcp, Position::Last, before) {
                let tcp = name(Question::Tcp).to_owned();
                last.answers.insert(tcp, Reply::Answer(answer));
            }
        }
        let Some(last) = capture.moments.last_mut() else {
            return;
        };
        let patterns = PROBES
            .iter()
            .flat_map(|probe| probe.sources)
            .filter_map(|source| match source.what {
                What::Files(pattern) if Chosen::at_the_end(pattern) => Some(pattern),
                _ => None,
            });
        for pattern in patterns {
            if !pattern.contains(OWNER) {
                self.read_all(pattern, false, last);
                continue;
            }
            for pid in &pids {
                self.read_all(&pattern.replace(OWNER, &pid.to_string()), false, last);
            }
        }
    }

    /// Reads all files that match `pattern`; `again`: they will be read in the next sample too.
    fn read_all(&mut self, pattern: &str, again: bool, moment: &mut Moment) {
        let (pattern, form) = Form::of(pattern);
        for pattern in self.of_processes(pattern) {
            self.read_pattern(&pattern, form, again, moment);
        }
    }

    fn read_pattern(&mut self, pattern: &str, form: Form, again: bool, moment: &mut Moment) {
        let paths = match expand(self.host, pattern, &mut self.folders) {
            Ok(paths) => paths,
            Err(error) => {
                let failed = reason(&error);
                moment
                    .files
                    .insert(pattern.to_owned(), Raw::Failed { failed });
                return;
            }
        };
        let one_of_many = pattern.contains('*') || form == Form::Count || form == Form::Activity;
        for path in paths {
            if moment.files.contains_key(&path) {
                continue;
            }
            let read = if form == Form::Count {
                let names = self.host.list(Path::new(&path));
                names.map(|names| names.len().to_string().into_bytes())
            } else if pattern.contains('*') && again {
                self.read_again(&path)
            } else {
                self.host.read(Path::new(&path))
            };
            if let Some(raw) = raw(read, form, one_of_many) {
                moment.files.insert(path, raw);
            }
        }
    }

    /// Reads the files of those threads of the process that ran since the sample `earlier`, or were runnable in it; without
    /// one, of all threads.
    fn read_running(&mut self, pattern: &str, earlier: Option<&Moment>, moment: &mut Moment) {
        // A process that has ended has no threads; the other sources tell.
        let paths: Vec<String> = self
            .of_processes(pattern)
            .iter()
            .flat_map(|pattern| expand(self.host, pattern, &mut self.folders).unwrap_or_default())
            .collect();
        for path in paths {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let time = format!("{folder}/schedstat");
            if moment.files.contains_key(&path)
                || earlier.is_some_and(|earlier| {
                    stood_still(&time, earlier, moment) && !ready(folder, earlier)
                })
            {
                continue;
            }
            if let Some(raw) = raw(self.host.read(Path::new(&path)), Form::Text, true) {
                moment.files.insert(path, raw);
            }
        }
    }

    /// Reads a file that stays open for the next time, unless too many are already.
    fn read_again(&mut self, path: &str) -> io::Result<Vec<u8>> {
        if let Some(file) = self.kept.get(path) {
            return files::read_again(file);
        }
        if self.kept.len() < files::most_open()
            && let Some(file) = self.host.open(Path::new(path))?
        {
            let bytes = files::read_again(&file);
            self.kept.insert(path.to_owned(), file);
            return bytes;
        }
        self.host.read(Path::new(path))
    }

    /// The pattern for each process that its placeholder matches; the pattern itself if it has none.
    fn of_processes(&self, pattern: &str) -> Vec<String> {
        let of = |placeholder: &str, pids: &BTreeSet<u32>| {
            let each = pids.iter().map(u32::to_string);
            each.map(|pid| pattern.replace(placeholder, &pid)).collect()
        };
        if pattern.contains("{pid}") {
            return of("{pid}", &self.pid.into_iter().collect());
        }
        match self.chosen.of(pattern) {
            Some((placeholder, pids)) => of(placeholder, pids),
            None => vec![pattern.to_owned()],
        }
    }
}

/// What is kept of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Its text.
    Text,
    /// Its bytes in hex.
    Hex,
    /// Of a folder, the number of names.
    Count,
    /// Of a command line, what a backend of a database shows of its activity.
    Activity,
}

impl Form {
    /// The form that the suffix of a pattern asks for, and the pattern without it.
    fn of(pattern: &str) -> (&str, Self) {
        [
            (HEX, Self::Hex),
            (COUNT, Self::Count),
            (ACTIVITY, Self::Activity),
        ]
        .into_iter()
        .find_map(|(suffix, form)| Some((pattern.strip_suffix(suffix)?, form)))
        .unwrap_or((pattern, Self::Text))
    }
}

/// The answer to a question; between the ends of the window, of a host with many sockets, a part of it.
fn ask(
    host: &dyn Host,
    question: Question,
    which: Position,
    before: &[Moment],
) -> io::Result<Answer> {
    if (question, which) != (Question::Tcp, Position::Between) {
        return host.ask(question);
    }
    if let Some(Reply::Answer(Answer::Tcp(first))) = before
        .first()
        .and_then(|first| first.answers.get(name(question)))
        && let Some(some) = net::tcp::between(first)
    {
        return host.tcp_among(&some).map(Answer::Tcp);
    }
    host.tcp_in_use().map(Answer::Tcp)
}

/// The thread with this `schedstat` did not get a CPU between the samples. If the kernel does not count, any thread may have.
fn stood_still(time: &str, earlier: &Moment, now: &Moment) -> bool {
    match (earlier.files.get(time), now.files.get(time)) {
        (Some(Raw::Text(before)), Some(Raw::Text(after))) => {
            before == after && task::schedstat(after).is_some()
        }
        _ => false,
    }
}

/// The thread was runnable in this sample, if its state was read.
fn ready(folder: &str, earlier: &Moment) -> bool {
    match earlier.files.get(&format!("{folder}/stat")) {
        Some(Raw::Text(text)) => task::stat(text).is_some_and(|stat| stat.state == 'R'),
        _ => false,
    }
}

/// The name of a question in a capture.
pub fn name(question: Question) -> &'static str {
    match question {
        Question::Tcp => "tcp",
        Question::Udp => "udp",
        Question::Unix => "unix",
        Question::Devices => "devices",
        Question::Qdiscs => "qdiscs",
        Question::Neighbours => "neighbours",
        Question::Namespaces => "namespaces",
        Question::Netfilter => "netfilter",
        Question::Audit => "audit",
        Question::Mounts => "mounts",
        Question::Owners => "owners",
    }
}

/// A file as it is to be kept; nothing if it is one of many and gone.
pub(crate) fn raw(read: io::Result<Vec<u8>>, form: Form, one_of_many: bool) -> Option<Raw> {
    match read {
        Ok(bytes) => Some(Raw::Text(text(bytes, form))),
        // Processes, devices and the like come and go between the listing and the reading.
        Err(error) if one_of_many && error.raw_os_error().is_some_and(is_gone) => None,
        Err(error) => Some(Raw::Failed {
            failed: reason(&error),
        }),
    }
}

fn text(mut bytes: Vec<u8>, form: Form) -> String {
    bytes.truncate(LONGEST);
    if form == Form::Activity {
        return postgres::activity(&String::from_utf8_lossy(&bytes)).to_owned();
    }
    if form == Form::Hex {
        use std::fmt::Write as _;
        return bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
    }
    String::from_utf8(bytes)
        .unwrap_or_else(|odd| String::from_utf8_lossy(odd.as_bytes()).into_owned())
}

fn is_gone(errno: i32) -> bool {
    [libc::ENOENT, libc::ENOTDIR, libc::ESRCH, libc::ENODEV].contains(&errno)
}

/// All paths that match `pattern`; without a star, the pattern itself.
fn expand(host: &dyn Host, pattern: &str, folders: &mut Folders) -> io::Result<Vec<String>> {
    let mut found = vec![String::new()];
    for part in pattern.split('/').skip(1) {
        if !part.contains('*') {
            for path in &mut found {
                path.push('/');
                path.push_str(part);
            }
            continue;
        }
        let (head, tail) = part.split_once('*').unwrap_or((part, ""));
        let mut next = Vec::new();
        for folder in found {
            let names = match folders.get(&folder) {
                Some(names) => names,
                None => match host.list(Path::new(&folder)) {
                    Ok(names) => folders.entry(folder.clone()).or_insert(names),
                    // The first folder tells whether there is anything at all; below, not every one has all.
                    Err(error) if next.is_empty() && folder.matches('/').count() < 3 => {
                        return Err(error);
                    }
                    Err(_) => continue,
                },
            };
            // In /proc a star stands for processes: everything else there has a name of its own.
            let processes_only = folder == "/proc";
            for name in names {
                let fits = name.len() > head.len() + tail.len()
                    && name.starts_with(head)
                    && name.ends_with(tail)
                    && (!processes_only || name.bytes().all(|byte| byte.is_ascii_digit()));
                if fits {
                    next.push(format!("{folder}/{name}"));
                }
            }
        }
        found = next;
    }
    Ok(found)
}

/// The kernel's name of an error, if probes distinguish it.
pub(crate) fn reason(error: &io::Error) -> String {
    let name = match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR) => "ENOENT",
        Some(libc::EACCES) => "EACCES",
        Some(libc::EPERM) => "EPERM",
        Some(libc::EINVAL) => "EINVAL",
        Some(libc::EOPNOTSUPP) => "EOPNOTSUPP",
        Some(libc::EAFNOSUPPORT) => "EAFNOSUPPORT",
        Some(libc::ENODEV) => "ENODEV",
        Some(libc::EIO) => "EIO",
        _ => return error.to_string(),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use rungwise_host::recorded::Recorded;
    use rungwise_model::kernel::{Endpoint, Owner, TcpSocket};

    use super::*;

    fn invented() -> Recorded {
        Recorded::new("this host", 1)
            .file("/proc/stat", "cpu 1 2 3")
            .file("/proc/self/stat", "self")
            .file("/proc/17/stat", "17 (a)")
            .file("/proc/4/stat", "4 (b)")
            .file("/sys/class/net/eth0/queues/rx-0/rps_cpus", "3")
            .file("/sys/class/net/eth0/queues/tx-0/xps_cpus", "1")
            .file("/sys/class/net/lo/mtu", "65536")
    }

    fn paths(pattern: &str) -> Vec<String> {
        expand(&invented(), pattern, &mut Folders::new()).unwrap()
    }

    #[test]
    fn a_star_finds_what_is_there_and_in_proc_only_processes() {
        assert_eq!(paths("/proc/stat"), ["/proc/stat"]);
        assert_eq!(paths("/proc/*/stat"), ["/proc/17/stat", "/proc/4/stat"]);
        assert_eq!(
            paths("/sys/class/net/*/queues/rx-*/rps_cpus"),
            ["/sys/class/net/eth0/queues/rx-0/rps_cpus"]
        );
    }

    #[test]
    fn what_is_not_there_is_kept_with_its_reason() {
        let host = invented();
        let mut moment = Moment::default();
        for pattern in [
            "/proc/none",
            "/sys/none/*/x",
            "/proc/{pid}/stat",
            "/proc/*/gone",
        ] {
            Reader::new(&host, None).read_all(pattern, false, &mut moment);
        }
        let failed = Raw::Failed {
            failed: "ENOENT".to_owned(),
        };
        assert_eq!(moment.files.get("/proc/none"), Some(&failed));
        assert_eq!(moment.files.get("/sys/none/*/x"), Some(&failed));
        assert_eq!(moment.files.len(), 2);
    }

    #[test]
    fn bytes_that_are_no_text_are_kept_as_hex() {
        let mut moment = Moment::default();
        let pattern = "/proc/{pid}/stat#hex";
        Reader::new(&invented(), Some(4)).read_all(pattern, false, &mut moment);
        assert_eq!(
            moment.files.get("/proc/4/stat"),
            Some(&Raw::Text("34202862290a".to_owned()))
        );
    }

    /// All full samples of a window of an invented host.
    fn gathered(host: &Recorded, pid: Option<u32>) -> Capture {
        let clock = std::cell::Cell::new(rungwise_host::clock::now());
        let wait = |by: Duration| {
            clock.set(clock.get() + by);
            true
        };
        let process = pid.map(|pid| Process {
            pid,
            name: "judged".to_owned(),
        });
        gather(host, process, Duration::from_secs(9), wait, || clock.get())
    }

    fn socket(port: u16, state: u8, rqueue: u32) -> TcpSocket {
        TcpSocket {
            local: Endpoint::new([10, 0, 0, 1].into(), 80),
            remote: Endpoint::new([10, 0, 0, 2].into(), port),
            state,
            inode: u64::from(port),
            rqueue,
            ..TcpSocket::default()
        }
    }

    fn tcp(moment: &Moment) -> Vec<u64> {
        match &moment.answers["tcp"] {
            Reply::Answer(Answer::Tcp(sockets)) => sockets.iter().map(|one| one.inode).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn of_many_sockets_those_that_may_pile_up_are_listed_between_the_ends() {
        let mut sockets: Vec<_> = (1..=1_200).map(|port| socket(port, 1, 0)).collect();
        sockets[6].rqueue = 5;
        sockets.push(socket(2_000, 10, 0));
        let host = invented().with_answer(Question::Tcp, Answer::Tcp(sockets));
        let moments = gathered(&host, None).moments;
        let seen: Vec<usize> = moments.iter().map(|moment| tcp(moment).len()).collect();
        assert_eq!(seen, [1_201, 2, 2, 1_201]);
        assert_eq!(tcp(&moments[1]), [7, 2_000]);
        let sampled = |count: u16| {
            let few = Answer::Tcp((1..=count).map(|port| socket(port, 1, 0)).collect());
            let capture = gathered(&invented().with_answer(Question::Tcp, few), None);
            let listed = |moment: &Moment| tcp(moment).len() == usize::from(count);
            assert_eq!(capture.moments.iter().all(listed), count <= 1_000);
            let samples = capture.samples.iter();
            samples
                .filter(|one| one.answers.contains_key("tcp"))
                .count()
        };
        assert_eq!([300, 301, 1_000, 1_001].map(sampled), [21, 10, 5, 0]);
    }

    #[test]
    fn owners_are_sought_of_sockets_that_carry_something_and_their_files_are_read() {
        let owner = |pid| Owner {
            pid,
            name: "a".to_owned(),
        };
        let host = invented()
            .file("/proc/17/cgroup", "0::/a")
            .file("/proc/4/cgroup", "0::/b")
            .with_answer(
                Question::Tcp,
                Answer::Tcp(vec![socket(1, 1, 0), socket(2, 1, 9)]),
            )
            .with_answer(
                Question::Owners,
                Answer::Owners([(1, owner(4)), (2, owner(17))].into()),
            );
        let capture = gathered(&host, None);
        let [first, .., last] = &capture.moments[..] else {
            panic!("several looks");
        };
        let found = Reply::Answer(Answer::Owners([(2, owner(17))].into()));
        assert_eq!(last.answers["owners"], found);
        assert!(!first.answers.contains_key("owners"));
        assert!(last.files.contains_key("/proc/17/cgroup"));
        assert!(!last.files.contains_key("/proc/4/cgroup"));
    }

    #[test]
    fn of_a_single_sample_owners_are_sought_of_connections_in_which_something_waits() {
        let owner = Owner {
            pid: 4,
            name: "a".to_owned(),
        };
        let host = invented()
            .with_answer(
                Question::Tcp,
                Answer::Tcp(vec![socket(1, 1, 0), socket(2, 1, 9)]),
            )
            .with_answer(
                Question::Owners,
                Answer::Owners([(1, owner.clone()), (2, owner.clone())].into()),
            );
        let now = rungwise_host::clock::now;
        let capture = gather(&host, None, Duration::ZERO, |_| true, now);
        let found = Reply::Answer(Answer::Owners([(2, owner)].into()));
        assert_eq!(capture.moments[0].answers["owners"], found);
    }

    #[test]
    fn files_of_threads_that_stood_still_are_not_read_again() {
        let host = invented()
            .file("/proc/17/task/17/stat", "17 (a)")
            .file("/proc/17/task/17/schedstat", "5 0 1")
            .file("/proc/17/task/18/stat", "18 (b)")
            // A kernel that does not count: this one may have run.
            .file("/proc/17/task/18/schedstat", "0 0 0");
        let moments = gathered(&host, Some(17)).moments;
        let read = |tid: u32| {
            let path = format!("/proc/17/task/{tid}/stat");
            moments
                .iter()
                .map(|moment| moment.files.contains_key(&path))
                .collect::<Vec<_>>()
        };
        assert_eq!(read(17), [true, false, false, false]);
        assert_eq!(read(18), [true; 4]);
    }

    #[test]
    fn a_window_has_both_ends_and_a_signal_ends_it_early() {
        let began = rungwise_host::clock::now();
        let clock = std::cell::Cell::new(began);
        let wait = |by: Duration| {
            clock.set(clock.get() + by);
            true
        };
        let window = Duration::from_secs(9);
        let capture = gather(&invented(), None, window, wait, || clock.get());
        let at: Vec<f64> = capture.moments.iter().map(|moment| moment.at_s).collect();
        assert_eq!(at, [0.0, 3.0, 6.0, 9.0]);
        let capture = gather(&invented(), None, window, |_| false, || clock.get());
        assert_eq!(capture.moments.len(), 2);
        let capture = gather(&invented(), None, Duration::ZERO, |_| true, || clock.get());
        assert_eq!(capture.moments.len(), 1);
    }
}
