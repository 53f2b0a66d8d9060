//! Control groups: which group a process is in, and the CPU quota of a group.
//!
//! Version 1 has one tree per controller, version 2 one for all; a machine may have both, each controller in
//! one of them (Documentation/admin-guide/cgroup-v1, cgroup-v2.rst; kernel/sched/core.c, Linux 6.18).

/// A group of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership<'a> {
    /// Whether this is the version 2 tree.
    pub unified: bool,
    /// Path within the tree, from the root of the reader's cgroup namespace; `/` is the root group.
    pub path: &'a str,
}

/// The group in the tree of `controller`, from a text of `/proc/PID/cgroup`: its own version 1 tree if there is
/// one, else the version 2 tree.
pub fn membership<'a>(text: &'a str, controller: &str) -> Option<Membership<'a>> {
    let lines = || {
        text.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':');
            Some((parts.next()?, parts.next()?, parts.next()?))
        })
    };
    let own = lines().find_map(|(_, controllers, path)| {
        let has = controllers.split(',').any(|name| name == controller);
        let unified = false;
        has.then_some(Membership { unified, path })
    });
    own.or_else(|| {
        lines().find_map(|(id, controllers, path)| {
            let unified = true;
            (id == "0" && controllers.is_empty()).then_some(Membership { unified, path })
        })
    })
}

/// A mounted tree of groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The tree is that of version 2.
    pub unified: bool,
    /// Mount options; in version 1 they include the names of its controllers.
    pub options: String,
    /// The group that the mount shows at its top, from the root of the reader's cgroup namespace.
    pub root: String,
    /// Where it is mounted.
    pub point: String,
}

impl Tree {
    /// Whether the tree has this controller, as far as the mount shows: a version 2 tree may have any.
    pub fn may_have(&self, controller: &str) -> bool {
        self.unified || self.options.split(',').any(|option| option == controller)
    }

    /// The directory of the group that `/proc/PID/cgroup` calls `path`; `None` if this mount does not show it.
    pub fn folder(&self, path: &str) -> Option<String> {
        let below = match self.root.trim_end_matches('/') {
            "" => path,
            root => path
                .strip_prefix(root)
                .filter(|rest| rest.is_empty() || rest.starts_with('/'))?,
        };
        let below = below.trim_end_matches('/');
        // Outside of the reader's cgroup namespace.
        (!below.split('/').any(|name| name == "..")).then(|| format!("{}{below}", self.point))
    }
}

/// The line of `mountinfo` is that of a tree of control groups.
pub fn is_tree(line: &str) -> bool {
    line.split_once(" - ")
        .and_then(|(_, of_what)| of_what.split(' ').next())
        .is_some_and(|kind| kind == "cgroup" || kind == "cgroup2")
}

/// The trees that a text of `/proc/PID/mountinfo` lists, in its order (`show_mountinfo` of `fs/proc_namespace.c`).
pub fn trees(mountinfo: &str) -> Vec<Tree> {
    let lines = mountinfo.lines().filter(|line| is_tree(line));
    lines
        .filter_map(|line| {
            let (mount, of_what) = line.split_once(" - ")?;
            let mut mount = mount.split(' ').skip(3);
            let mut of_what = of_what.split(' ');
            Some(Tree {
                root: unescaped(mount.next()?),
                point: unescaped(mount.next()?),
                unified: of_what.next()? == "cgroup2",
                options: of_what.nth(1)?.to_owned(),
            })
        })
        .collect()
}

/// White space and backslashes are written as three octal digits.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part
            .get(..3)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        if let Some(code) = code {
            whole.push(char::from(code));
            whole.push_str(&part[3..]);
        } else {
            whole.push('\\');
            whole.push_str(part);
        }
    }
    whole
}

/// A limit in bytes or a number; `max`, or in version 1 the largest multiple of a page, means no limit.
pub fn limit(text: &str) -> Option<u64> {
    /// `PAGE_COUNTER_MAX` is near to the largest signed number; no machine has a part of it.
    const NONE: u64 = 1 << 60;
    let limit = text.trim().parse::<u64>().ok()?;
    (limit < NONE).then_some(limit)
}

/// How much CPU a group may use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quota {
    /// Unlimited.
    Unlimited,
    /// CPU time of this many CPUs.
    Cpus(f64),
}

/// `cpu.max` of version 2: `max 100000` or `50000 100000`, microseconds.
pub fn cpu_max(text: &str) -> Option<Quota> {
    let mut words = text.split_ascii_whitespace();
    let (quota, period) = (words.next()?, words.next()?);
    match quota {
        "max" => Some(Quota::Unlimited),
        quota => cpus(quota, period),
    }
}

/// `cpu.cfs_quota_us` and `cpu.cfs_period_us` of version 1; a quota of -1 is none.
pub fn cfs_quota(quota: &str, period: &str) -> Option<Quota> {
    match quota.trim() {
        "-1" => Some(Quota::Unlimited),
        quota => cpus(quota, period.trim()),
    }
}

fn cpus(quota: &str, period: &str) -> Option<Quota> {
    let (quota, period) = (quota.parse::<u64>().ok()?, period.parse::<u64>().ok()?);
    (period > 0).then(|| Quota::Cpus(quota as f64 / period as f64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_controller_of_version_1_goes_before_the_unified_tree() {
        let v1 =
            "8:pids:/\n4:memory:/docker/ab\n2:cpu,cpuacct:/docker/ab:c\n1:name=systemd:/x\n0::/\n";
        let found = membership(v1, "cpu").unwrap();
        assert_eq!((found.unified, found.path), (false, "/docker/ab:c"));
        let v2 = "0::/system.slice/nginx.service\n";
        let found = membership(v2, "cpu").unwrap();
        assert_eq!(
            (found.unified, found.path),
            (true, "/system.slice/nginx.service")
        );
        assert_eq!(membership("", "cpu"), None);
        assert_eq!(membership("4:memory:/\n", "cpu"), None);
    }

    #[test]
    fn quotas_are_cpus_and_none_is_not_zero() {
        assert_eq!(cpu_max("max 100000\n"), Some(Quota::Unlimited));
        assert_eq!(cpu_max("50000 100000\n"), Some(Quota::Cpus(0.5)));
        assert_eq!(cfs_quota("-1\n", "100000\n"), Some(Quota::Unlimited));
        assert_eq!(cfs_quota("400000\n", "100000\n"), Some(Quota::Cpus(4.0)));
        assert_eq!(cfs_quota("1", "0"), None);
        assert_eq!(cpu_max("50000"), None);
    }

    #[test]
    fn trees_are_found_wherever_they_are_mounted() {
        let text = "25 1 0:23 / /proc rw - proc proc rw\n\
            31 30 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
            32 30 0:27 /docker/ab /my\\040groups rw - cgroup2 cgroup2 rw,nsdelegate\n";
        let trees = trees(text);
        assert_eq!(trees.len(), 2);
        assert!(trees[0].may_have("cpu") && !trees[0].may_have("memory") && !trees[0].unified);
        assert_eq!(trees[0].point, "/sys/fs/cgroup/cpu,cpuacct");
        assert!(trees[1].unified && trees[1].may_have("memory"));
        let folder = |path| trees[1].folder(path);
        assert_eq!(folder("/docker/ab").as_deref(), Some("/my groups"));
        assert_eq!(folder("/docker/ab/c/").as_deref(), Some("/my groups/c"));
        assert_eq!(folder("/docker/abc"), None);
        assert_eq!(trees[0].folder("/../b"), None);
        assert_eq!(
            trees[0].folder("/").as_deref(),
            Some("/sys/fs/cgroup/cpu,cpuacct")
        );
    }

    #[test]
    fn what_cannot_be_reached_is_no_limit() {
        assert_eq!(limit("max\n"), None);
        assert_eq!(limit("9223372036854771712\n"), None);
        assert_eq!(limit("1048576\n"), Some(1 << 20));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "([0-9]{1,21}|:|cpu|,|max |/| |\n|.){0,30}", other in any::<String>()) {
            membership(&text, "cpu");
            cpu_max(&text);
            limit(&text);
            trees(&format!("1 2 3 {text} /\\{other} rw - cgroup {text} {other}"));
            cfs_quota(&text, &other);
            cfs_quota(&other, &text);
        }
    }
}
