//! A synthetic or recorded machine in memory: files, features and tables, with the kernel's behaviour.
//!
//! A test needs a machine that answers like the real one where that matters: a CPU mask comes back
//! in another format than it was written, a table size comes back rounded, a CPU that does not exist
//! is EOVERFLOW, some files are root's alone. It also needs what no real machine does on request: a
//! write that fails the third time, a third party that changes a value in between, a crash at step n.
//! The formats were read off Linux 6.18 (`net/core/net-sysfs.c`, `lib/bitmap-str.c`).

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rungwise_model::kernel::{Answer, Question};

use crate::mount::MOUNTS;
use crate::{AuditRule, BaseChain, DeviceSetting, Feature, Host, MountOption};

/// How the kernel keeps what is written to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// As written, without surrounding white space.
    Plain,
    /// A CPU mask of a machine with this many CPUs: printed as hex groups of 32 bits with commas.
    Mask(u32),
    /// A table size, rounded up to a power of two.
    PowerOfTwo,
    /// A triple and the like: words come back separated by tabs.
    Tabs,
    /// One word of these, all of them printed, the chosen one in brackets.
    Choice(&'static [&'static str]),
    /// One of two files that count the same in different units: a write makes the other one read 0, and 0
    /// itself is refused (`vm.dirty_bytes`).
    Twin(&'static str),
    /// The scheduler of a disk, one of these; a choice makes `nr_requests` beside it twice the default of 128, or
    /// 128 with none.
    Scheduler(&'static [&'static str]),
}

/// Ends a run at a given step, as SIGKILL would: from then on nothing succeeds any more.
///
/// Several machines and a journal share one fuse, so that a crash can fall between any two steps.
#[derive(Debug)]
pub struct Fuse {
    steps: AtomicU64,
}

impl Fuse {
    /// Lets `steps` changes happen and no more.
    pub fn after(steps: u64) -> Arc<Self> {
        Arc::new(Self {
            steps: AtomicU64::new(steps),
        })
    }

    /// Takes one step; fails when there are none left.
    pub fn step(&self) -> io::Result<()> {
        self.steps
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                left.checked_sub(1)
            })
            .map(drop)
            .map_err(|_| crashed())
    }

    /// The run has ended.
    pub fn blown(&self) -> bool {
        self.steps.load(Ordering::SeqCst) == 0
    }
}

/// A machine in memory. Build it with [`Recorded::file`] and the like, then use it as a [`Host`].
#[derive(Debug)]
pub struct Recorded {
    name: String,
    netns: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<PathBuf, Entry>,
    features: BTreeMap<(String, String), Feature>,
    settings: BTreeMap<(String, DeviceSetting), String>,
    chains: Vec<BaseChain>,
    units: BTreeMap<String, bool>,
    audit: Option<Vec<AuditRule>>,
    answers: BTreeMap<Question, Answer>,
    refused: BTreeMap<PathBuf, i32>,
    /// Errors by the number of the change that meets them, counted from 1.
    faults: BTreeMap<u64, i32>,
    /// What a third party writes right after that change.
    meddling: BTreeMap<u64, Vec<(PathBuf, String)>>,
    changes: u64,
    fuse: Option<Arc<Fuse>>,
}

impl State {
    /// What the harshest driver does to the steering of a device whose queues change.
    fn reset_steering(&mut self, device: &str) {
        let queues = PathBuf::from(format!("/sys/class/net/{device}/queues"));
        let masks = ["rps_cpus", "rps_flow_cnt", "xps_cpus"];
        for (path, entry) in &mut self.files {
            if path.starts_with(&queues) && masks.iter().any(|name| path.ends_with(name)) {
                "0".clone_into(&mut entry.value);
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Entry {
    value: String,
    stored: Stored,
}

impl Recorded {
    /// A machine without files, in the network namespace with that inode.
    pub fn new(name: &str, netns: u64) -> Self {
        Self {
            name: name.to_owned(),
            netns,
            state: Mutex::default(),
        }
    }

    /// Adds a file that keeps what is written.
    #[must_use]
    pub fn file(self, path: &str, value: &str) -> Self {
        self.stored(path, value, Stored::Plain)
    }

    /// Adds a file that keeps what is written in its own way.
    #[must_use]
    pub fn stored(self, path: &str, value: &str, stored: Stored) -> Self {
        let value = value.to_owned();
        self.state()
            .files
            .insert(path.into(), Entry { value, stored });
        self
    }

    /// Adds a device feature.
    #[must_use]
    pub fn with_feature(self, device: &str, feature: &str, state: Feature) -> Self {
        self.state()
            .features
            .insert((device.to_owned(), feature.to_owned()), state);
        self
    }

    /// Adds a setting of a device that has no file.
    #[must_use]
    pub fn with_setting(self, device: &str, setting: DeviceSetting, value: &str) -> Self {
        let key = (device.to_owned(), setting);
        self.state().settings.insert(key, value.to_owned());
        self
    }

    /// Adds a unit of the service manager.
    #[must_use]
    pub fn with_unit(self, unit: &str, active: bool) -> Self {
        self.state().units.insert(unit.to_owned(), active);
        self
    }

    /// Adds audit of system calls, with these rules.
    #[must_use]
    pub fn with_audit(self, rules: &[AuditRule]) -> Self {
        self.state().audit = Some(rules.to_vec());
        self
    }

    /// Adds what the kernel answers to the question; without one, asking is `Unsupported`.
    #[must_use]
    pub fn with_answer(self, question: Question, answer: Answer) -> Self {
        self.state().answers.insert(question, answer);
        self
    }

    /// Adds a base chain that someone else made.
    #[must_use]
    pub fn with_chain(self, chain: BaseChain) -> Self {
        self.state().chains.push(chain);
        self
    }

    /// Writes to `path` fail with this error number.
    pub fn refuse(&self, path: &str, errno: i32) {
        self.state().refused.insert(path.into(), errno);
    }

    /// The `nth` change from now fails with this error number; 1 is the next one.
    pub fn fail(&self, nth: u64, errno: i32) {
        let mut state = self.state();
        let at = state.changes + nth;
        state.faults.insert(at, errno);
    }

    /// A third party writes `value` right after the `nth` change from now.
    pub fn meddle(&self, nth: u64, path: &str, value: &str) {
        let mut state = self.state();
        let at = state.changes + nth;
        state
            .meddling
            .entry(at)
            .or_default()
            .push((path.into(), value.to_owned()));
    }

    /// Sets a value as a third party would, past all faults.
    pub fn set(&self, path: &str, value: &str) {
        if let Some(entry) = self.state().files.get_mut(Path::new(path)) {
            value.clone_into(&mut entry.value);
        }
    }

    /// Takes a file away, as when its device is removed.
    pub fn remove(&self, path: &str) {
        self.state().files.remove(Path::new(path));
    }

    /// Every change from now on is a step of `fuse`; `None` is a machine after the restart of the tool.
    pub fn arm(&self, fuse: Option<Arc<Fuse>>) {
        self.state().fuse = fuse;
    }

    /// Changes that were asked for so far, refused ones included.
    pub fn changes(&self) -> u64 {
        self.state().changes
    }

    /// Everything that can be changed, as text: two machines are alike if this is.
    pub fn snapshot(&self) -> BTreeMap<String, String> {
        let state = self.state();
        let files = state
            .files
            .iter()
            .map(|(path, entry)| (path.display().to_string(), entry.value.clone()));
        let features = state.features.iter().map(|((device, feature), state)| {
            (format!("{device} {feature}"), state.on.to_string())
        });
        let settings = state
            .settings
            .iter()
            .map(|((device, setting), value)| (format!("{device} {setting}"), value.clone()));
        let chains = state.chains.iter().map(|chain| {
            (
                format!("{} {} {}", chain.family, chain.table, chain.chain),
                format!("{} {}", chain.hook, chain.rules),
            )
        });
        let units = state
            .units
            .iter()
            .map(|(unit, active)| (unit.clone(), active.to_string()));
        let audit = state
            .audit
            .iter()
            .map(|rules| ("audit".to_owned(), format!("{rules:?}")));
        files
            .chain(units)
            .chain(audit)
            .chain(features)
            .chain(settings)
            .chain(chains)
            .collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A test that panicked elsewhere still wants to see the state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One change: fuse, faults, the change itself, then the third party.
    fn change<R>(&self, change: impl FnOnce(&mut State) -> io::Result<R>) -> io::Result<R> {
        let mut state = self.state();
        if let Some(fuse) = &state.fuse {
            fuse.step()?;
        }
        state.changes += 1;
        let number = state.changes;
        let result = match state.faults.remove(&number) {
            Some(errno) => Err(io::Error::from_raw_os_error(errno)),
            None => change(&mut state),
        };
        for (path, value) in state.meddling.remove(&number).unwrap_or_default() {
            if let Some(entry) = state.files.get_mut(&path) {
                entry.value = value;
            }
        }
        result
    }
}

impl Host for Recorded {
    fn name(&self) -> &str {
        &self.name
    }

    fn netns(&self) -> io::Result<u64> {
        Ok(self.netns)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let state = self.state();
        alive(&state)?;
        let entry = state.files.get(path).ok_or_else(absent)?;
        Ok(format!("{}\n", entry.value).into_bytes())
    }

    fn write(&self, path: &Path, value: &[u8]) -> io::Result<()> {
        self.change(|state| {
            if let Some(errno) = state.refused.get(path) {
                return Err(io::Error::from_raw_os_error(*errno));
            }
            let entry = state.files.get_mut(path).ok_or_else(absent)?;
            let text = std::str::from_utf8(value).map_err(|_| invalid())?.trim();
            let kept = keep(entry.stored, text)?;
            let changed = std::mem::replace(&mut entry.value, kept) != entry.value;
            let (other, reset) = match entry.stored {
                Stored::Twin(other) => (PathBuf::from(other), "0"),
                Stored::Scheduler(_) if changed => {
                    let started = if text == "none" { "128" } else { "256" };
                    (path.with_file_name("nr_requests"), started)
                }
                _ => return Ok(()),
            };
            if let Some(other) = state.files.get_mut(&other) {
                reset.clone_into(&mut other.value);
            }
            Ok(())
        })
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let state = self.state();
        alive(&state)?;
        let names: BTreeSet<String> = state
            .files
            .keys()
            .filter_map(|path| path.strip_prefix(dir).ok()?.components().next())
            .map(|name| name.as_os_str().to_string_lossy().into_owned())
            .collect();
        if names.is_empty() {
            return Err(absent());
        }
        Ok(names.into_iter().collect())
    }

    fn folders(&self, dir: &Path) -> io::Result<Vec<String>> {
        let state = self.state();
        alive(&state)?;
        let below = |path: &'_ PathBuf| {
            let mut rest = path.strip_prefix(dir).ok()?.components();
            let name = rest.next()?.as_os_str().to_string_lossy().into_owned();
            rest.next().map(|_| name)
        };
        let names: BTreeSet<String> = state.files.keys().filter_map(below).collect();
        Ok(names.into_iter().collect())
    }

    fn feature(&self, device: &str, feature: &str) -> io::Result<Feature> {
        let state = self.state();
        alive(&state)?;
        let key = (device.to_owned(), feature.to_owned());
        state.features.get(&key).copied().ok_or_else(absent)
    }

    fn set_feature(&self, device: &str, feature: &str, on: bool) -> io::Result<()> {
        self.change(|state| {
            let key = (device.to_owned(), feature.to_owned());
            let feature = state.features.get_mut(&key).ok_or_else(absent)?;
            if feature.fixed && feature.on != on {
                return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
            }
            feature.on = on;
            Ok(())
        })
    }

    fn device_setting(&self, device: &str, setting: DeviceSetting) -> io::Result<String> {
        let state = self.state();
        alive(&state)?;
        let value = state.settings.get(&(device.to_owned(), setting));
        // A setting that a driver does not have.
        value
            .cloned()
            .ok_or_else(|| io::Error::from_raw_os_error(libc::EOPNOTSUPP))
    }

    fn set_device(&self, device: &str, setting: DeviceSetting, value: &str) -> io::Result<()> {
        self.change(|state| {
            let current = state
                .settings
                .get_mut(&(device.to_owned(), setting))
                .ok_or_else(|| io::Error::from_raw_os_error(libc::EOPNOTSUPP))?;
            let value = setting.with(current, value).ok_or_else(invalid)?;
            let changed = std::mem::replace(current, value.clone()) != value;
            if changed && setting == DeviceSetting::Channels {
                state.reset_steering(device);
            }
            Ok(())
        })
    }

    fn ask(&self, question: Question) -> io::Result<Answer> {
        let state = self.state();
        alive(&state)?;
        let answer = state.answers.get(&question);
        answer.cloned().ok_or(io::ErrorKind::Unsupported.into())
    }

    /// The thread's `status` file contains it, as on a live machine.
    fn pin_thread(&self, pid: u32, tid: u32, cpus: &[usize]) -> io::Result<()> {
        let path = PathBuf::from(format!("/proc/{pid}/task/{tid}/status"));
        self.change(|state| {
            let entry = state.files.get_mut(&path).ok_or_else(absent)?;
            let list = ranges(cpus);
            let lines = entry.value.lines().map(|line| {
                if line.starts_with("Cpus_allowed_list:") {
                    format!("Cpus_allowed_list:\t{list}")
                } else {
                    line.to_owned()
                }
            });
            entry.value = lines.collect::<Vec<_>>().join("\n");
            Ok(())
        })
    }

    /// The process's `limits` file contains it, as on a live machine.
    fn set_open_files(&self, pid: u32, soft: u64, hard: u64) -> io::Result<()> {
        let path = PathBuf::from(format!("/proc/{pid}/limits"));
        self.change(|state| {
            let entry = state.files.get_mut(&path).ok_or_else(absent)?;
            let lines = entry.value.lines().map(|line| {
                if line.starts_with("Max open files ") {
                    format!("Max open files            {soft:<20} {hard:<20} files     ")
                } else {
                    line.to_owned()
                }
            });
            entry.value = lines.collect::<Vec<_>>().join("\n");
            Ok(())
        })
    }

    fn mount_namespace(&self) -> io::Result<u64> {
        Ok(1)
    }

    /// The list of mounts contains it, as on a live machine: the word for the option is removed from the last line for
    /// that point, and the new one stands last.
    fn remount(&self, point: &Path, option: MountOption, value: &str) -> io::Result<()> {
        self.change(|state| {
            let entry = state.files.get_mut(Path::new(MOUNTS)).ok_or_else(absent)?;
            let mut lines: Vec<String> = entry.value.lines().map(str::to_owned).collect();
            let of_point = |line: &String| line.split(' ').nth(4).map(Path::new) == Some(point);
            let line = lines
                .iter_mut()
                .rfind(|line| of_point(line))
                .ok_or_else(invalid)?;
            let mut fields: Vec<&str> = line.split(' ').collect();
            let field = match option {
                MountOption::Atime => 5,
                MountOption::Discard => fields.len() - 1,
            };
            let kept = fields[field]
                .split(',')
                .filter(|word| !option.values().contains(word));
            // A value that the kernel does not print is not listed.
            let shown = (!["strictatime", "nodiscard"].contains(&value)).then_some(value);
            let options = kept.chain(shown).collect::<Vec<_>>().join(",");
            fields[field] = &options;
            *line = fields.join(" ");
            entry.value = lines.join("\n");
            Ok(())
        })
    }

    fn audit_rules(&self) -> io::Result<Vec<AuditRule>> {
        let state = self.state();
        alive(&state)?;
        state.audit.clone().ok_or(io::ErrorKind::Unsupported.into())
    }

    /// Adds one also where it is there already, as the kernel does.
    fn set_left_out(&self, user: u32, present: bool) -> io::Result<()> {
        self.change(|state| {
            let rules = state.audit.as_mut().ok_or_else(absent)?;
            let ours = AuditRule::LeavesOut(user);
            if present {
                rules.insert(0, ours);
                return Ok(());
            }
            let first = rules.iter().position(|rule| *rule == ours);
            rules.remove(first.ok_or_else(absent)?);
            Ok(())
        })
    }

    fn unit_active(&self, unit: &str) -> io::Result<bool> {
        let state = self.state();
        alive(&state)?;
        state.units.get(unit).copied().ok_or_else(absent)
    }

    fn set_unit(&self, unit: &str, active: bool) -> io::Result<()> {
        self.change(|state| {
            *state.units.get_mut(unit).ok_or_else(absent)? = active;
            Ok(())
        })
    }

    fn base_chains(&self) -> io::Result<Vec<BaseChain>> {
        let state = self.state();
        alive(&state)?;
        Ok(state.chains.clone())
    }

    fn plant_chains(&self, name: &str) -> io::Result<()> {
        self.change(|state| {
            for hook in ["input", "output"] {
                state.chains.push(BaseChain {
                    family: "inet".to_owned(),
                    table: name.to_owned(),
                    chain: hook.to_owned(),
                    hook: hook.to_owned(),
                    rules: 1,
                });
            }
            Ok(())
        })
    }

    fn remove_table(&self, name: &str) -> io::Result<()> {
        self.change(|state| {
            let before = state.chains.len();
            state
                .chains
                .retain(|chain| chain.family != "inet" || chain.table != name);
            if state.chains.len() == before {
                return Err(absent());
            }
            Ok(())
        })
    }
}

fn keep(stored: Stored, text: &str) -> io::Result<String> {
    match stored {
        Stored::Twin(_) if text == "0" => Err(invalid()),
        Stored::Plain | Stored::Twin(_) => Ok(text.to_owned()),
        Stored::Choice(words) | Stored::Scheduler(words) => {
            if !words.contains(&text) {
                return Err(invalid());
            }
            Ok(choice(words, text))
        }
        Stored::Tabs => Ok(text.split_whitespace().collect::<Vec<_>>().join("\t")),
        Stored::PowerOfTwo => {
            let wanted: u32 = text.parse().map_err(|_| invalid())?;
            let rounded = if wanted == 0 {
                Some(0)
            } else {
                wanted.checked_next_power_of_two()
            };
            rounded.map(|size| size.to_string()).ok_or_else(invalid)
        }
        Stored::Mask(cpus) => mask(text, cpus),
    }
}

/// CPUs in order, as `%*pbl` prints them: `0-3,8`.
fn ranges(cpus: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *cpu => *last = *cpu,
            _ => ranges.push((*cpu, *cpu)),
        }
    }
    let words: Vec<String> = ranges
        .into_iter()
        .map(|(first, last)| {
            if first == last {
                first.to_string()
            } else {
                format!("{first}-{last}")
            }
        })
        .collect();
    words.join(",")
}

fn choice(words: &[&str], chosen: &str) -> String {
    let words: Vec<String> = words
        .iter()
        .map(|word| {
            if *word == chosen {
                format!("[{word}]")
            } else {
                (*word).to_owned()
            }
        })
        .collect();
    words.join(" ")
}

/// `bitmap_parse` and `%*pb` for a machine with `cpus` CPUs.
fn mask(text: &str, cpus: u32) -> io::Result<String> {
    // An empty write is an empty mask, as measured.
    let mut groups = Vec::new();
    for group in text.split(',').filter(|_| !text.is_empty()) {
        if group.is_empty() || group.len() > 8 {
            return Err(invalid());
        }
        groups.push(u32::from_str_radix(group, 16).map_err(|_| invalid())?);
    }
    groups.reverse();
    for (index, group) in (0_u32..).zip(&groups) {
        let highest = index * 32 + (32 - group.leading_zeros());
        if *group != 0 && highest > cpus {
            return Err(io::Error::from_raw_os_error(libc::EOVERFLOW));
        }
    }
    let width = cpus.div_ceil(32).max(1) as usize;
    groups.resize(width, 0);
    let top_digits = (cpus - 1) % 32 / 4 + 1;
    let mut printed = String::new();
    for (index, group) in groups.iter().enumerate().rev() {
        use std::fmt::Write as _;
        let _ = if index + 1 == width {
            write!(printed, "{group:0digits$x}", digits = top_digits as usize)
        } else {
            write!(printed, ",{group:08x}")
        };
    }
    Ok(printed)
}

/// After a crash there is no reader left.
fn alive(state: &State) -> io::Result<()> {
    match &state.fuse {
        Some(fuse) if fuse.blown() => Err(crashed()),
        _ => Ok(()),
    }
}

fn crashed() -> io::Error {
    io::Error::other("the tool crashed here")
}

fn absent() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOENT)
}

fn invalid() -> io::Error {
    io::Error::from_raw_os_error(libc::EINVAL)
}

#[cfg(test)]
mod tests {
    use rungwise_model::kernel::Audit;

    use super::*;

    const MASK: &str = "/sys/class/net/veth0/queues/rx-0/rps_cpus";

    #[test]
    fn a_mask_comes_back_in_groups_and_refuses_a_cpu_that_does_not_exist() {
        assert_eq!(mask("3", 2).unwrap(), "3");
        assert_eq!(mask("00000003", 8).unwrap(), "03");
        assert_eq!(mask("1,00000000", 40).unwrap(), "01,00000000");
        assert_eq!(mask("", 2).unwrap(), "0");
        assert_eq!(
            mask("4", 2).unwrap_err().raw_os_error(),
            Some(libc::EOVERFLOW)
        );
        assert_eq!(
            mask("1,0", 2).unwrap_err().raw_os_error(),
            Some(libc::EOVERFLOW)
        );
        assert_eq!(
            mask("xyz", 2).unwrap_err().raw_os_error(),
            Some(libc::EINVAL)
        );
    }

    #[test]
    fn a_table_size_is_rounded_and_a_triple_gets_tabs() {
        assert_eq!(keep(Stored::PowerOfTwo, "5000").unwrap(), "8192");
        assert_eq!(keep(Stored::PowerOfTwo, "0").unwrap(), "0");
        assert_eq!(
            keep(Stored::Tabs, "4096 87380  6291456").unwrap(),
            "4096\t87380\t6291456"
        );
    }

    #[test]
    fn faults_come_at_their_step_and_a_third_party_after_it() {
        let host = Recorded::new("this host", 1).stored(MASK, "0", Stored::Mask(2));
        host.fail(1, libc::EIO);
        host.meddle(2, MASK, "1");
        let path = Path::new(MASK);
        assert_eq!(
            host.write(path, b"3").unwrap_err().raw_os_error(),
            Some(libc::EIO)
        );
        assert_eq!(host.text(path).unwrap(), "0");
        host.write(path, b"3").unwrap();
        assert_eq!(host.text(path).unwrap(), "1");
    }

    #[test]
    fn a_blown_fuse_ends_everything_until_the_tool_starts_again() {
        let host = Recorded::new("this host", 1).stored(MASK, "0", Stored::Mask(2));
        host.arm(Some(Fuse::after(1)));
        let path = Path::new(MASK);
        host.write(path, b"3").unwrap();
        assert!(host.write(path, b"0").is_err());
        assert!(host.read(path).is_err());
        host.arm(None);
        assert_eq!(host.text(path).unwrap(), "3");
    }

    #[test]
    fn only_the_named_table_is_removed() {
        let theirs = BaseChain {
            family: "inet".to_owned(),
            table: "firewall".to_owned(),
            chain: "input".to_owned(),
            hook: "input".to_owned(),
            rules: 7,
        };
        let host = Recorded::new("this host", 1).with_chain(theirs.clone());
        host.plant_chains("ours").unwrap();
        assert_eq!(host.base_chains().unwrap().len(), 3);
        host.remove_table("ours").unwrap();
        assert_eq!(host.base_chains().unwrap(), [theirs]);
        assert!(host.remove_table("ours").is_err());
    }

    #[test]
    fn a_question_has_the_answer_it_was_given_and_no_other() {
        let audit = Answer::Audit(Audit::default());
        let host = Recorded::new("this host", 1).with_answer(Question::Audit, audit.clone());
        assert_eq!(host.ask(Question::Audit).unwrap(), audit);
        let error = host.ask(Question::Tcp).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    }

    #[test]
    fn directories_are_made_of_the_files_below_them() {
        let host = Recorded::new("this host", 1)
            .file(MASK, "0")
            .file("/sys/class/net/veth0/mtu", "1500");
        assert_eq!(host.list(Path::new("/sys/class/net")).unwrap(), ["veth0"]);
        assert_eq!(
            host.list(Path::new("/sys/class/net/veth0")).unwrap(),
            ["mtu", "queues"]
        );
        assert!(host.list(Path::new("/sys/class/block")).is_err());
    }
}
