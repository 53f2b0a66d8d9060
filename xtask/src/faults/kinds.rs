//! Kinds of faults and the services they hit, as data: `xtask/faults/*.toml`.
//!
//! A kind is a small generator. Its parameters lie between a harmless value and a ruinous one, and a severity from 0 to 1 picks the point
//! between them; what a trial uses follows from the seed alone. Scripts see parameters as variables of the shell.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

/// Where a kind is planted and which reader is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Layer {
    /// In a network namespace of this machine; `rungwise check` is asked.
    Host,
    /// In a JVM; `rungwise jvm threads` or `rungwise jvm gc` is asked.
    Jvm,
}

impl Layer {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Jvm => "jvm",
        }
    }
}

/// A kind of host fault.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostKind {
    /// Its name, as `--kind` takes it.
    pub id: String,
    /// What is planted, in one sentence.
    pub about: String,
    /// What runs short: `cpu`, `disk`.
    pub resource: String,
    /// How: utilisation, saturation, error, wait, config, or none for a healthy load.
    pub aspect: String,
    /// The services it can hit.
    pub services: Vec<String>,
    /// Rules that name the cause.
    #[serde(default)]
    pub expects: Vec<String>,
    /// What the severity chooses.
    #[serde(default)]
    pub params: BTreeMap<String, Range>,
    /// Variables of the service that it has without the fault as well.
    #[serde(default)]
    pub base: BTreeMap<String, String>,
    /// Variables of the service with the fault, beside those of `base`; where there are any, it is started again with them.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Plants it.
    #[serde(default)]
    pub plant: String,
    /// Undoes it.
    #[serde(default)]
    pub undo: String,
    /// Succeeds, and prints why, where the fault is in force.
    #[serde(default)]
    pub confirm: String,
    /// What differs in the load, with and without the fault.
    #[serde(default)]
    pub load: Load,
    /// What differs in the load while the fault is planted: where the load is the fault.
    #[serde(default)]
    pub pressed: Load,
    /// Part of the fixed set.
    #[serde(default)]
    pub quick: bool,
}

impl HostKind {
    /// Variables of the service while the fault is planted.
    pub fn env_with_fault(&self) -> BTreeMap<String, String> {
        let mut env = self.base.clone();
        env.extend(self.env.clone());
        env
    }

    /// A load of ordinary size on a service that lacks nothing.
    pub fn is_healthy(&self) -> bool {
        self.aspect == "none"
    }
}

/// Requests at a fixed rate.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Requests per second: what is lightest and what is heaviest for an ordinary load.
    pub rate: Option<[f64; 2]>,
    /// Connections, one thread each.
    pub connections: Option<u32>,
    /// What is sent.
    pub request: Option<String>,
    /// A connection per request.
    pub fresh: Option<bool>,
    /// All connections send at the same time.
    pub burst: Option<bool>,
    /// Waits so long before it reads a reply.
    pub read_after_ms: Option<String>,
    /// Arguments for `pgbench` or `rungwise load udp`.
    pub args: Option<String>,
}

impl Load {
    /// Nothing differs.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// `self`, with what `other` says in its place.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        Self {
            rate: other.rate.or(self.rate),
            connections: other.connections.or(self.connections),
            request: other.request.clone().or_else(|| self.request.clone()),
            fresh: other.fresh.or(self.fresh),
            burst: other.burst.or(self.burst),
            read_after_ms: other
                .read_after_ms
                .clone()
                .or_else(|| self.read_after_ms.clone()),
            args: other.args.clone().or_else(|| self.args.clone()),
        }
    }
}

/// A parameter: its harmless and its ruinous value.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// At severity 0.
    pub from: f64,
    /// At severity 1.
    pub to: f64,
    /// By ratio instead of by difference; both ends are above zero then.
    #[serde(default)]
    pub log: bool,
    /// Digits behind the point.
    #[serde(default)]
    pub digits: usize,
}

impl Range {
    /// The value at a severity from 0 to 1, as a script reads it.
    pub fn at(&self, severity: f64) -> String {
        let value = if self.log {
            self.from * (self.to / self.from).powf(severity)
        } else {
            self.from + (self.to - self.from) * severity
        };
        format!("{value:.*}", self.digits)
    }
}

/// A service that faults hit.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Its name.
    pub id: String,
    /// Programs that it takes.
    pub programs: Vec<String>,
    /// Where it listens.
    pub port: u16,
    /// Prints nothing and becomes the service.
    pub start: String,
    /// Ends when it answers; without it, when it listens.
    #[serde(default)]
    pub ready: String,
    /// Run once it answers.
    #[serde(default)]
    pub prepare: String,
    /// Who drives it.
    pub driver: Driver,
    /// The end of a reply; without it, replies are HTTP with a Content-Length.
    #[serde(default)]
    pub until: Option<String>,
    /// Its ordinary load.
    pub load: Load,
}

/// What makes the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Driver {
    /// [`super::client`].
    Tcp,
    /// `pgbench --rate`.
    Pgbench,
    /// `rungwise load udp --rate`.
    Udp,
}

/// A kind of JVM problem.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JvmKind {
    /// Its name, as `--kind` takes it.
    pub id: String,
    /// What is planted, in one sentence.
    pub about: String,
    /// What runs short.
    pub resource: String,
    /// As of a host kind.
    pub aspect: String,
    /// The class that plants it.
    pub program: String,
    /// The problem's name there.
    pub name: String,
    /// Its parameters by severity.
    #[serde(default)]
    pub params: BTreeMap<String, Range>,
    /// Options of the JVM; `${name}` is a parameter.
    #[serde(default)]
    pub flags: String,
    /// Major versions.
    pub jdks: Vec<u32>,
    /// Options that choose a collector; one is drawn.
    #[serde(default)]
    pub collectors: Vec<String>,
    /// What proves it.
    pub confirm: Proof,
    /// Rules that name the cause.
    #[serde(default)]
    pub expects: Vec<String>,
    /// Jars of the class, as Maven Central names them: `group:artifact:version`.
    #[serde(default)]
    pub jars: Vec<String>,
    /// MiB of its control group, beyond which the kernel kills it.
    #[serde(default)]
    pub memory: Option<u64>,
    /// It grows: a finding that names it before it hurts is right.
    #[serde(default)]
    pub forewarns: bool,
    /// Part of the fixed set.
    #[serde(default)]
    pub quick: bool,
}

impl JvmKind {
    /// Nothing is wrong there.
    pub fn is_healthy(&self) -> bool {
        self.aspect == "none"
    }

    /// The JVM writes a GC log, which `jvm gc` reads; otherwise dumps are taken.
    pub fn reads_gc_log(&self) -> bool {
        self.confirm == Proof::Report
    }
}

/// How a JVM problem shows without a dump or a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Proof {
    /// The program's count of finished work stays.
    Stays,
    /// It grows, less than at severity 0 where the problem hurts.
    Slows,
    /// It grows: a healthy program.
    Grows,
    /// The program's own report of latency, failures and memory errors; and the kernel's count of kills, where its memory is limited.
    Report,
}

/// All kinds and services.
#[derive(Clone, Debug)]
pub struct Kinds {
    /// Of `host.toml`.
    pub host: Vec<HostKind>,
    /// Of `jvm.toml`.
    pub jvm: Vec<JvmKind>,
    /// Of `services.toml`.
    pub services: Vec<Service>,
    /// Of `ungenerated.toml`: kinds of the design that no trial plants, with the reason.
    pub ungenerated: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct File<T> {
    kind: Vec<T>,
}

#[derive(Deserialize)]
struct Ungenerated {
    host: BTreeMap<String, String>,
    jvm: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Services {
    service: Vec<Service>,
}

impl Kinds {
    /// What is built in.
    pub fn built_in() -> Result<Self> {
        let host: File<HostKind> = toml::from_str(include_str!("../../faults/host.toml"))
            .context("xtask/faults/host.toml")?;
        let jvm: File<JvmKind> = toml::from_str(include_str!("../../faults/jvm.toml"))
            .context("xtask/faults/jvm.toml")?;
        let services: Services = toml::from_str(include_str!("../../faults/services.toml"))
            .context("xtask/faults/services.toml")?;
        let ungenerated: Ungenerated =
            toml::from_str(include_str!("../../faults/ungenerated.toml"))
                .context("xtask/faults/ungenerated.toml")?;
        let kinds = Self {
            host: host.kind,
            jvm: jvm.kind,
            services: services.service,
            ungenerated: ungenerated
                .host
                .into_iter()
                .chain(ungenerated.jvm)
                .collect(),
        };
        for kind in &kinds.host {
            for service in &kind.services {
                kinds
                    .service(service)
                    .with_context(|| format!("kind {}", kind.id))?;
            }
        }
        Ok(kinds)
    }

    /// A service by name.
    pub fn service(&self, id: &str) -> Result<&Service> {
        let found = self.services.iter().find(|service| service.id == id);
        found.with_context(|| format!("no service {id} in xtask/faults/services.toml"))
    }

    /// Rules that name a kind; none for a healthy load or a kind that is no more.
    pub fn expects(&self, id: &str) -> &[String] {
        let host = self.host.iter().map(|kind| (&kind.id, &kind.expects));
        let jvm = self.jvm.iter().map(|kind| (&kind.id, &kind.expects));
        let mut all = host.chain(jvm);
        all.find(|(known, _)| *known == id)
            .map_or(&[], |(_, expects)| expects)
    }

    /// A healthy load or program.
    pub fn is_healthy(&self, id: &str) -> bool {
        let host = self
            .host
            .iter()
            .any(|kind| kind.id == id && kind.is_healthy());
        host || self
            .jvm
            .iter()
            .any(|kind| kind.id == id && kind.is_healthy())
    }

    /// Names of all kinds.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        let host = self.host.iter().map(|kind| kind.id.as_str());
        host.chain(self.jvm.iter().map(|kind| kind.id.as_str()))
    }

    /// `jvm gc` is asked about this kind.
    pub fn reads_gc_log(&self, id: &str) -> bool {
        let kind = self.jvm.iter().find(|kind| kind.id == id);
        kind.is_some_and(JvmKind::reads_gc_log)
    }

    /// Fails where no kind has this name.
    pub fn must_know(&self, id: &str) -> Result<()> {
        if self.host.iter().any(|kind| kind.id == id) || self.jvm.iter().any(|kind| kind.id == id) {
            return Ok(());
        }
        bail!("no kind {id}; `cargo xtask faults --list` prints them all")
    }
}

/// `text` with `${name}` replaced by what `variables` hold; a name that is not there stays.
pub fn filled(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut filled = text.to_owned();
    for (name, value) in variables {
        filled = filled.replace(&format!("${{{name}}}"), value);
    }
    filled
}

/// A generator of 64-bit numbers: `SplitMix64` (Steele, Lea and Flood, OOPSLA 2014), enough to choose trials.
#[derive(Clone, Debug)]
pub struct Draw(u64);

impl Draw {
    /// Begins at a seed.
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to 1, without 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True in this share of draws.
    pub fn chance(&mut self, share: f64) -> bool {
        self.unit() < share
    }

    /// One of a list that is not empty.
    pub fn one_of<'list, T>(&mut self, list: &'list [T]) -> &'list T {
        let at = (self.unit() * list.len() as f64) as usize;
        &list[at.min(list.len() - 1)]
    }

    /// Between two values.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// A word of lower-case letters, as an unpredictable name.
    pub fn word(&mut self) -> String {
        let letters: Vec<char> = ('a'..='z').collect();
        (0..7).map(|_| *self.one_of(&letters)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_runs_from_the_harmless_value_to_the_ruinous_one() {
        let linear = Range {
            from: 100.0,
            to: 10.0,
            log: false,
            digits: 0,
        };
        assert_eq!(
            [linear.at(0.0), linear.at(0.5), linear.at(1.0)],
            ["100", "55", "10"]
        );
        let log = Range {
            from: 0.1,
            to: 10.0,
            log: true,
            digits: 1,
        };
        assert_eq!(
            [log.at(0.0), log.at(0.5), log.at(1.0)],
            ["0.1", "1.0", "10.0"]
        );
    }

    #[test]
    fn a_seed_draws_the_same_again_and_another_seed_does_not() {
        let three = |seed| {
            let mut draw = Draw::seeded(seed);
            [draw.unit(), draw.unit(), draw.unit()]
        };
        assert_eq!(three(7).map(f64::to_bits), three(7).map(f64::to_bits));
        assert_ne!(three(7).map(f64::to_bits), three(8).map(f64::to_bits));
        assert!(three(7).iter().all(|unit| (0.0..1.0).contains(unit)));
    }

    #[test]
    fn every_item_of_a_list_is_drawn_about_as_often() {
        let mut draw = Draw::seeded(1);
        let mut seen = [0; 4];
        for _ in 0..4000 {
            seen[*draw.one_of(&[0_usize, 1, 2, 3])] += 1;
        }
        assert!(seen.iter().all(|&count| count > 850), "{seen:?}");
    }

    #[test]
    fn built_in_kinds_can_be_read_and_each_has_its_own_name() {
        let kinds = Kinds::built_in().unwrap();
        let mut ids: Vec<&str> = kinds.host.iter().map(|kind| kind.id.as_str()).collect();
        ids.extend(kinds.jvm.iter().map(|kind| kind.id.as_str()));
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count);
        for kind in &kinds.host {
            assert_eq!(kind.is_healthy(), kind.expects.is_empty(), "{}", kind.id);
            assert!(kind.is_healthy() || !kind.confirm.is_empty(), "{}", kind.id);
            for range in kind.params.values() {
                assert!(!range.log || range.from.min(range.to) > 0.0, "{}", kind.id);
            }
        }
        for kind in &kinds.jvm {
            assert_eq!(kind.is_healthy(), kind.expects.is_empty(), "{}", kind.id);
        }
    }

    #[test]
    fn each_kind_of_the_design_has_a_generator_or_a_reason() {
        let kinds = Kinds::built_in().unwrap();
        let design = include_str!("../../faults/design.csv").lines().skip(1);
        let design: Vec<&str> = design.filter_map(|line| line.split(',').next()).collect();
        let without: Vec<&str> = design
            .iter()
            .filter(|id| !kinds.ids().any(|known| known == **id))
            .copied()
            .collect();
        let mut listed: Vec<&str> = kinds.ungenerated.keys().map(String::as_str).collect();
        listed.sort_by_key(|id| design.iter().position(|known| known == id));
        assert_eq!(without, listed);
    }

    #[test]
    fn a_slow_upstream_is_there_before_its_pool_is_narrowed() {
        let kinds = Kinds::built_in().unwrap();
        let is_pool = |kind: &&HostKind| kind.id == "dep-upstream-pool";
        let pool = kinds.host.iter().find(is_pool).unwrap();
        assert_eq!(pool.base["APP_DELAY"], "20000");
        assert_eq!(pool.env.keys().collect::<Vec<_>>(), ["SERVER"]);
        let both = pool.env_with_fault();
        assert_eq!(both["APP_DELAY"], "20000");
        assert_eq!(both["SERVER"], "maxconn ${connections}");
    }

    #[test]
    fn names_in_braces_are_filled_in_and_others_stay() {
        let variables = BTreeMap::from([("size".to_owned(), "4".to_owned())]);
        assert_eq!(
            filled("a ${size} ${other} $size", &variables),
            "a 4 ${other} $size"
        );
    }
}
