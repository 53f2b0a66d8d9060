//! Control groups: in which one a process is, and what CPU quota a group has.
//!
//! Version 1 has one tree per controller, version 2 one for all; a machine may have both, each controller in
//! one of them (Documentation/admin-guide/cgroup-v1, cgroup-v2.rst; kernel/sched/core.c, Linux 6.18).

/// A group of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership<'a> {
    /// The tree is that of version 2.
    pub unified: bool,
    /// Path within the tree, from the root of the reader's cgroup namespace; `/` is the root group.
    pub path: &'a str,
}

/// The group in the tree that has `controller`, of a text of `/proc/PID/cgroup`: its own tree of version 1 if
/// there is one, else that of version 2.
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

/// How much CPU a group may use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quota {
    /// As much as there is.
    Unlimited,
    /// So many CPUs' worth of time.
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

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "([0-9]{1,21}|:|cpu|,|max |/| |\n|.){0,30}", other in any::<String>()) {
            membership(&text, "cpu");
            cpu_max(&text);
            cfs_quota(&text, &other);
            cfs_quota(&other, &text);
        }
    }
}
