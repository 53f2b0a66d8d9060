//! `SELinux`: whether it is active, and misses of its decision cache.
//!
//! A kernel registers `selinuxfs` only if `SELinux` was enabled at boot, not if it is merely compiled in. Source:
//! security/selinux/selinuxfs.c (Linux 6.18).

use std::collections::BTreeMap;

use rungwise_formats::per_cpu;
use rungwise_model::evidence::{Absence, Evidence, Origin, Subject};
use rungwise_model::keys;

use super::rates::{Named, Sum};
use crate::{Cost, Probe, Source, Window};

const ENFORCE: &str = "/sys/fs/selinux/enforce";
const CACHE: &str = "/sys/fs/selinux/avc/cache_stats";
const FILESYSTEMS: &str = "/proc/filesystems";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "selinux",
    summary: "whether SELinux is active, and misses of its decision cache",
    cost: Cost::Free,
    needs: &[],
    sources: &[
        Source::once(ENFORCE),
        Source::ends(CACHE),
        Source::once(FILESYSTEMS),
    ],
    yields: &[&keys::SELINUX_ACTIVE, &keys::SELINUX_AVC_MISSES],
    derive,
    doc: "\
Permissive mode costs as much as enforcing mode: every decision is made, none is enforced. Containers usually hide \
/sys/fs/selinux; /proc/filesystems still shows that SELinux is active, but then the mode is unknown. On a miss of the \
access vector cache the kernel computes the decision from the policy; a steady rate of misses means that the cache \
(/sys/fs/selinux/avc/cache_threshold) is too small. Source: security/selinux/selinuxfs.c of Linux 6.18.",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let key = &keys::SELINUX_ACTIVE;
    let active = match mode(window) {
        Ok((mode, origin)) => {
            evidence.text(key, Subject::host(), mode, origin);
            mode != "inactive"
        }
        Err(why) => {
            evidence.absent(&[key], &why, ENFORCE);
            true
        }
    };
    let key = &keys::SELINUX_AVC_MISSES;
    if !active {
        let origin = Origin::new(FILESYSTEMS, "SELinux is not active");
        return evidence.number(key, Subject::host(), 0.0, origin);
    }
    let misses = window.rates(CACHE, |text| -> BTreeMap<_, _> {
        let sums = per_cpu::sums(text, 10).into_iter();
        sums.map(|(name, sum)| (name, sum as f64)).collect()
    });
    match misses.map(|rates| {
        let name = "misses";
        Sum::of(rates.get(name).map(|rate| Named { name, rate }))
    }) {
        Ok(Some(sum)) => sum.add(evidence, key, Subject::host(), CACHE),
        Ok(None) => {
            let why = Absence::because(format!("{CACHE} has no column of misses"));
            evidence.absent(&[key], &why, CACHE);
        }
        Err(why) => evidence.absent(&[key], &why, CACHE),
    }
}

fn mode(window: &Window<'_>) -> Result<(&'static str, Origin), Absence> {
    let unread = match window.text(ENFORCE).map(str::trim) {
        Ok("1") => return Ok(("enforcing", Origin::new(ENFORCE, "1"))),
        Ok("0") => return Ok(("permissive", Origin::new(ENFORCE, "0"))),
        Ok(other) => Absence::because(format!("{ENFORCE} contains '{other}'")),
        Err(why) => why,
    };
    let known = window.text(FILESYSTEMS)?;
    let registered = known
        .lines()
        .any(|line| line.split_whitespace().last() == Some("selinuxfs"));
    if registered {
        return Err(unread);
    }
    let origin = Origin::new(FILESYSTEMS, "no selinuxfs");
    Ok(("inactive", origin))
}
