//! What this host allows, computed before the first connect: which limit binds, and what moves it.
//!
//! The figures per connection are measured (Linux 6.18, x86-64): two sockets of one machine cost 7.4 to 8 KB of kernel memory, idle buffers
//! nothing. Files are read by the one who asks, so that the arithmetic needs no machine.

use rungwise_model::connections::HostLimit;

/// Kernel memory of one socket with its file, inode and epoll entry, bytes; rounded up.
const KERNEL: u64 = 4 << 10;
/// User-space memory of one end, bytes: rungwise needs less, the service under load may need more.
const USER: u64 = 512;
/// Files that a thread has open beside its connections. A guess.
pub(super) const OTHER_FILES: u64 = 64;
/// Most threads of a load.
pub(super) const MOST_THREADS: u64 = 1024;
/// Connections from one source address: beyond, connect searches longer for a free port (325 us of CPU near 20,000 instead of 26 us).
pub(super) const PER_SOURCE: u64 = 8_000;
/// Addresses of 127.0.0.0/8 that are used without being asked for.
const LOOPBACK_SOURCES: u64 = 1 << 16;

/// The limits of a host, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Host {
    /// Files in one table of descriptors (`RLIMIT_NOFILE`).
    pub(super) files: u64,
    /// Files of the whole machine: open ones, and the most (`fs.file-max`).
    pub(super) open_files: Option<(u64, u64)>,
    /// `net.ipv4.ip_local_port_range`.
    pub(super) ports: Option<(u64, u64)>,
    /// Tracked connections, and the most; absent where the kernel tracks none.
    pub(super) conntrack: Option<(u64, u64)>,
    /// `fs.epoll.max_user_watches`.
    pub(super) watches: Option<u64>,
    /// `MemAvailable`, bytes.
    pub(super) available: Option<u64>,
    /// `net.ipv4.tcp_max_tw_buckets`.
    pub(super) buckets: Option<u64>,
    /// The most pages for the buffers of TCP, the third number of `net.ipv4.tcp_mem`.
    pub(super) pages: Option<u64>,
}

/// What is to be opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Demand {
    pub(super) count: u64,
    /// The number of threads that was asked for.
    pub(super) threads: Option<u64>,
    /// Source addresses that were asked for; 0 where none were.
    pub(super) sources: u64,
    /// The target is of 127.0.0.0/8, so that any of its addresses may be a source.
    pub(super) loopback: bool,
    /// Both ends are on this machine.
    pub(super) local: bool,
    /// Messages may wait on every connection at once.
    pub(super) broadcast: bool,
}

impl Host {
    /// Reads what the kernel says; `files` is the limit that holds.
    pub(super) fn read(files: u64, read: &dyn Fn(&str) -> Result<Vec<u8>, String>) -> Self {
        let text = |path: &str| {
            let bytes = read(path).ok()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        };
        let numbers = |path: &str| -> Vec<u64> {
            let text = text(path).unwrap_or_default();
            let words = text.split_ascii_whitespace();
            words.filter_map(|word| word.parse().ok()).collect()
        };
        let first = |path: &str| numbers(path).first().copied();
        let pair = |path: &str, a: usize, b: usize| {
            let all = numbers(path);
            Some((*all.get(a)?, *all.get(b)?))
        };
        let available = text("/proc/meminfo").and_then(|text| {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix("MemAvailable:"))?;
            let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
            Some(kib << 10)
        });
        let tracked = first("/proc/sys/net/netfilter/nf_conntrack_count");
        let most = first("/proc/sys/net/netfilter/nf_conntrack_max");
        Self {
            files,
            open_files: pair("/proc/sys/fs/file-nr", 0, 2),
            ports: pair("/proc/sys/net/ipv4/ip_local_port_range", 0, 1),
            // The module may be loaded, and no rule of this network namespace use it.
            conntrack: tracked.filter(|count| *count > 0).zip(most),
            watches: first("/proc/sys/fs/epoll/max_user_watches"),
            available,
            buckets: first("/proc/sys/net/ipv4/tcp_max_tw_buckets"),
            pages: numbers("/proc/sys/net/ipv4/tcp_mem").get(2).copied(),
        }
    }

    /// Connections that one thread has descriptors for.
    fn of_a_thread(&self) -> u64 {
        self.files.saturating_sub(OTHER_FILES)
    }

    /// Threads for `demand`: one for each CPU, or as many as descriptors ask for.
    pub(super) fn threads(&self, demand: &Demand, cpus: usize) -> u64 {
        let needed = demand.count.div_ceil(self.of_a_thread().max(1));
        let threads = needed.max(cpus as u64).min(demand.count.max(1));
        demand.threads.unwrap_or(threads).clamp(1, MOST_THREADS)
    }

    /// Every limit for `demand`, in the order in which they are usually met.
    pub(super) fn limits(&self, demand: &Demand) -> Vec<HostLimit> {
        let ends = if demand.local { 2 } else { 1 };
        let both = if demand.local { ", both ends here" } else { "" };
        let limit = |id: &str, allows: Option<u64>, basis: String, knob: &str| HostLimit {
            id: id.to_owned(),
            allows,
            suffices: allows.is_none_or(|most| most >= demand.count),
            basis,
            knob: knob.to_owned(),
        };
        let unknown = || "unknown: the kernel's file cannot be read".to_owned();
        let threads = demand.threads.unwrap_or(MOST_THREADS);
        let of_a_thread = self.of_a_thread();
        let descriptors = limit(
            "descriptors",
            Some(threads * of_a_thread),
            match demand.threads {
                Some(threads) => format!(
                    "{} files in the table of each thread, {threads} threads",
                    self.files
                ),
                None => format!(
                    "{} files in the table of each thread, as many threads as are needed up to {MOST_THREADS}",
                    self.files
                ),
            },
            "ulimit -n (RLIMIT_NOFILE, up to fs.nr_open), or more --threads",
        );
        let open_files = limit(
            "open_files",
            (self.open_files).map(|(open, most)| most.saturating_sub(open) / ends),
            self.open_files.map_or_else(unknown, |(open, most)| {
                format!("{open} files open of {most} on the machine{both}")
            }),
            "fs.file-max",
        );
        let ports = match (self.ports, demand.sources) {
            (_, 0) if demand.loopback => limit(
                "ports",
                Some(LOOPBACK_SOURCES * PER_SOURCE),
                format!("a source address of 127.0.0.0/8 for every {PER_SOURCE} connections"),
                "--source",
            ),
            (Some((first, last)), sources) => {
                let range = (last + 1).saturating_sub(first);
                let sources = sources.max(1);
                limit(
                    "ports",
                    Some(range * sources),
                    format!(
                        "{range} ports ({first} to {last}) for each source address, {sources} of these"
                    ),
                    "more addresses by --source, or net.ipv4.ip_local_port_range",
                )
            }
            (None, _) => limit("ports", None, unknown(), "net.ipv4.ip_local_port_range"),
        };
        let conntrack = limit(
            "conntrack",
            (self.conntrack).map(|(tracked, most)| most.saturating_sub(tracked)),
            self.conntrack.map_or_else(
                || "connections are not tracked in this network namespace".to_owned(),
                |(tracked, most)| format!("{tracked} connections tracked of {most}"),
            ),
            "net.netfilter.nf_conntrack_max, or a rule with notrack",
        );
        let watches = limit(
            "epoll_watches",
            self.watches.map(|most| most / ends),
            self.watches
                .map_or_else(unknown, |most| format!("{most} for each user{both}")),
            "fs.epoll.max_user_watches",
        );
        let each = (KERNEL + USER) * ends;
        let memory = limit(
            "memory",
            self.available.map(|available| available / each),
            self.available.map_or_else(unknown, |available| {
                format!(
                    "{} MiB available, {each} bytes for each connection: {} of the kernel, {} of the processes{both}",
                    available >> 20,
                    KERNEL * ends,
                    USER * ends
                )
            }),
            "more memory, or the service on another machine",
        );
        let buffers = limit(
            "tcp_memory",
            self.pages.filter(|_| demand.broadcast),
            match self.pages {
                None => unknown(),
                Some(pages) if demand.broadcast => {
                    format!("{pages} pages, one for each message that is not read yet")
                }
                Some(pages) => format!("{pages} pages; idle connections hold none"),
            },
            "net.ipv4.tcp_mem",
        );
        let time_wait = limit(
            "time_wait",
            None,
            self.buckets.map_or_else(unknown, |most| {
                format!(
                    "{most} closed connections are kept for 60 s, further ones are dropped at once: no limit for opening"
                )
            }),
            "net.ipv4.tcp_max_tw_buckets",
        );
        vec![
            descriptors,
            open_files,
            ports,
            conntrack,
            watches,
            memory,
            buffers,
            time_wait,
        ]
    }
}

/// The limit that allows the fewest connections.
pub(super) fn tightest(limits: &[HostLimit]) -> Option<(&HostLimit, u64)> {
    let known = limits
        .iter()
        .filter_map(|limit| Some((limit, limit.allows?)));
    known.min_by_key(|(_, allows)| *allows)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut Host, &mut Demand);

    /// The machine on which the figures were measured.
    fn host() -> Host {
        Host {
            files: 20_000,
            open_files: Some((1_170, 2_466_170)),
            ports: Some((32_768, 60_999)),
            conntrack: None,
            watches: Some(5_491_511),
            available: Some(22 << 30),
            buckets: Some(131_072),
            pages: Some(575_796),
        }
    }

    const HALF_A_MILLION: Demand = Demand {
        count: 500_000,
        threads: None,
        sources: 0,
        loopback: true,
        local: true,
        broadcast: false,
    };

    fn binds(host: &Host, demand: &Demand) -> (String, u64) {
        let limits = host.limits(demand);
        let (limit, allows) = tightest(&limits).unwrap();
        assert_eq!(limit.suffices, allows >= demand.count, "{limit:?}");
        (limit.id.clone(), allows)
    }

    #[test]
    fn half_a_million_fit_on_the_machine_of_the_prototype_and_a_million_do() {
        let (id, allows) = binds(&host(), &HALF_A_MILLION);
        assert_eq!((&*id, allows), ("open_files", 1_232_500));
        let million = Demand {
            count: 1_000_000,
            ..HALF_A_MILLION
        };
        assert!(host().limits(&million).iter().all(|limit| limit.suffices));
        assert_eq!(host().threads(&million, 2), 51);
        assert_eq!(host().threads(&HALF_A_MILLION, 2), 26);
    }

    #[test]
    fn each_limit_binds_where_it_is_the_tightest_and_names_its_knob() {
        let remote = Demand {
            loopback: false,
            local: false,
            ..HALF_A_MILLION
        };
        let cases: [(Change, &str, u64, &str); 8] = [
            (|_, _| {}, "ports", 28_232, "--source"),
            (
                |_, demand| demand.sources = 20,
                "ports",
                564_640,
                "--source",
            ),
            (
                |host, demand| (host.files, demand.threads) = (1_024, Some(4)),
                "descriptors",
                3_840,
                "ulimit -n",
            ),
            (
                |host, _| host.open_files = Some((90, 100)),
                "open_files",
                10,
                "fs.file-max",
            ),
            (
                |host, _| host.conntrack = Some((100, 26_200)),
                "conntrack",
                26_100,
                "nf_conntrack_max",
            ),
            (
                |host, _| host.watches = Some(20_000),
                "epoll_watches",
                20_000,
                "max_user_watches",
            ),
            (
                |host, _| host.available = Some(46_080_000),
                "memory",
                10_000,
                "more memory",
            ),
            (
                |host, demand| (host.pages, demand.broadcast) = (Some(9_000), true),
                "tcp_memory",
                9_000,
                "tcp_mem",
            ),
        ];
        for (change, id, most, knob) in cases {
            let (mut host, mut demand) = (host(), remote);
            change(&mut host, &mut demand);
            let limits = host.limits(&demand);
            let (limit, allows) = tightest(&limits).unwrap();
            assert_eq!((&*limit.id, allows), (id, most), "{limit:?}");
            assert!(limit.knob.contains(knob), "{limit:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_bounds_nothing() {
        let unknown = Host {
            files: 1 << 20,
            ..Host::default()
        };
        let limits = unknown.limits(&Demand {
            loopback: false,
            ..HALF_A_MILLION
        });
        let (limit, allows) = tightest(&limits).unwrap();
        assert_eq!(
            (&*limit.id, allows),
            ("descriptors", 1024 * ((1 << 20) - 64))
        );
        assert!(limits.iter().all(|limit| limit.suffices));
    }

    #[test]
    fn the_kernels_files_are_read() {
        let read = |path: &str| {
            let text = match path {
                "/proc/sys/fs/file-nr" => "1170\t0\t2466170\n",
                "/proc/sys/net/ipv4/ip_local_port_range" => "32768\t60999\n",
                "/proc/sys/net/netfilter/nf_conntrack_count" => "0\n",
                "/proc/sys/net/netfilter/nf_conntrack_max" => "262144\n",
                "/proc/sys/fs/epoll/max_user_watches" => "5491511\n",
                "/proc/sys/net/ipv4/tcp_max_tw_buckets" => "131072\n",
                "/proc/sys/net/ipv4/tcp_mem" => "287898\t383867\t575796\n",
                "/proc/meminfo" => "MemTotal: 1 kB\nMemAvailable:   23068672 kB\n",
                _ => return Err("no such file".to_owned()),
            };
            Ok(text.as_bytes().to_vec())
        };
        assert_eq!(Host::read(20_000, &read), host());
        let tracked = |path: &str| match path {
            "/proc/sys/net/netfilter/nf_conntrack_count" => Ok(b"7\n".to_vec()),
            _ => read(path),
        };
        assert_eq!(Host::read(1, &tracked).conntrack, Some((7, 262_144)));
    }
}
