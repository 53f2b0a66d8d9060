//! `SELinux`: whether it decides anything here, and how its cache of decisions does.
//!
//! A kernel registers `selinuxfs` only when `SELinux` was switched on at boot; a kernel that merely has it
//! compiled in does not. Source: security/selinux/selinuxfs.c (Linux 6.18).

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
Permissive costs as much as enforcing: every decision is made, none is obeyed. Containers usually hide \
/sys/fs/selinux; /proc/filesystems still tells that SELinux is active, and then the mode is unknown. A miss \
of the access vector cache computes a decision from the policy; a steady rate of them means that the cache \
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
        Ok(other) => Absence::because(format!("{ENFORCE} says '{other}'")),
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
