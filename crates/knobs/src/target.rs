//! What the knobs of the registry may write, and how the values of each target compare.
//!
//! Every knob declares its targets. Together they are the allow-list of the engine and, more
//! important, of recovery: a journal is a file that others might have written, and an undo must not
//! be a way to write `/etc/passwd`. A path that no knob could have written is refused.

use crate::edit::{Edit, OUR_TABLES, Place};
use crate::mask;

/// How a file's value is written and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A CPU mask in hex.
    Mask,
    /// A table size that the kernel rounds up to a power of two.
    PowerOfTwo,
    /// Words between white space; the kernel prints tabs where people write spaces.
    Words,
}

impl Form {
    /// Two spellings of one value.
    pub fn same(self, one: &str, other: &str) -> bool {
        match self {
            Self::Mask => match (mask::parse(one), mask::parse(other)) {
                (Some(one), Some(other)) => one == other,
                _ => one.trim() == other.trim(),
            },
            Self::PowerOfTwo => match (rounded(one), rounded(other)) {
                (Some(one), Some(other)) => one == other,
                _ => one.trim() == other.trim(),
            },
            Self::Words => one.split_whitespace().eq(other.split_whitespace()),
        }
    }

    /// `value` is of this form. All our sysctls are whole numbers or rows of them.
    pub fn holds(self, value: &str) -> bool {
        match self {
            Self::Mask => mask::parse(value).is_some(),
            Self::PowerOfTwo => rounded(value).is_some(),
            Self::Words => {
                value.len() <= 128
                    && !value.trim().is_empty()
                    && value
                        .split_whitespace()
                        .all(|word| word.parse::<i64>().is_ok())
            }
        }
    }
}

fn rounded(text: &str) -> Option<u64> {
    match text.trim().parse::<u64>().ok()? {
        0 => Some(0),
        size => size.checked_next_power_of_two(),
    }
}

/// Something a knob may write.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// A file. A `*` in the pattern stands for one name, or within a name for a part of it.
    File(&'static str, Form),
    /// A feature of any device.
    Feature(&'static str),
    /// Our own table, in a lab namespace only.
    OurTable,
    /// A switch of the service.
    Switch(&'static str),
}

impl Target {
    /// This target covers `edit` at `place`.
    pub fn covers(&self, place: &Place, edit: &Edit) -> bool {
        match (self, edit) {
            (Self::File(pattern, _), Edit::WriteFile { path, .. }) => matches(pattern, path),
            (
                Self::Feature(known),
                Edit::Feature {
                    device, feature, ..
                },
            ) => known == feature && is_name(device),
            (Self::OurTable, Edit::NftTable { name, .. }) => {
                *place != Place::Host && name.starts_with(OUR_TABLES) && is_name(name)
            }
            (Self::Switch(known), Edit::Service { switch, .. }) => known == switch,
            _ => false,
        }
    }
}

/// The form of a file that a knob of the registry writes.
pub fn form_of(path: &str) -> Option<Form> {
    crate::KNOBS
        .iter()
        .flat_map(|knob| knob.writes)
        .find_map(|target| match target {
            Target::File(pattern, form) if matches(pattern, path) => Some(*form),
            _ => None,
        })
}

/// Some knob of the registry could have made this edit, with this value before it.
pub(crate) fn could_be_ours(knob: &str, place: &Place, edit: &Edit, before: &str) -> bool {
    crate::find(knob).is_ok_and(|knob| knob.may_write(place, edit))
        && edit.can_hold(&edit.value())
        && edit.can_hold(before)
}

fn matches(pattern: &str, path: &str) -> bool {
    let mut wanted = pattern.split('/');
    let mut given = path.split('/');
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return true,
            (Some(wanted), Some(given)) if matches_name(wanted, given) => {}
            _ => return false,
        }
    }
}

fn matches_name(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, tail)) => name
            .strip_prefix(head)
            .and_then(|rest| rest.strip_suffix(tail))
            .is_some_and(is_name),
    }
}

/// A name of a device, queue or table: never a way out of its directory.
pub(crate) fn is_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._-:@+".contains(&b);
    !name.is_empty() && name.len() <= 64 && name != "." && name != ".." && name.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_covers_its_files_and_never_a_way_out() {
        let pattern = "/sys/class/net/*/queues/rx-*/rps_cpus";
        assert!(matches(
            pattern,
            "/sys/class/net/eth0.5/queues/rx-12/rps_cpus"
        ));
        for path in [
            "/etc/passwd",
            "/sys/class/net/../queues/rx-0/rps_cpus",
            "/sys/class/net/eth0/queues/rx-/rps_cpus",
            "/sys/class/net/eth0/queues/rx-../rps_cpus",
            "/sys/class/net/eth0/queues/rx-0/rps_cpus/",
            "/sys/class/net/eth0/../eth1/queues/rx-0/rps_cpus",
            "sys/class/net/eth0/queues/rx-0/rps_cpus",
            "/sys/class/net/e th/queues/rx-0/rps_cpus",
            "/sys/class/net/eth0\0/queues/rx-0/rps_cpus",
            "",
        ] {
            assert!(!matches(pattern, path), "{path}");
        }
    }

    #[test]
    fn values_compare_by_what_they_mean() {
        assert!(Form::Mask.same("00000000,00000003", "3"));
        assert!(!Form::Mask.same("1", "3"));
        assert!(Form::PowerOfTwo.same("5000", "8192"));
        assert!(!Form::PowerOfTwo.same("0", "1"));
        assert!(Form::Words.same("4096 87380 6291456", "4096\t87380\t6291456\n"));
        assert!(!Form::Words.same("4096", "4096 1"));
    }

    #[test]
    fn a_value_of_another_form_is_refused() {
        assert!(!Form::Words.holds("root::0:0"));
        assert!(!Form::Words.holds(""));
        assert!(!Form::Mask.holds("3\n4"));
        assert!(Form::Words.holds("4096 87380 6291456"));
    }

    #[test]
    fn a_table_of_somebody_else_or_on_the_host_is_not_ours() {
        let table = |name: &str| Edit::NftTable {
            name: name.to_owned(),
            present: true,
        };
        let lab = Place::Namespace("server".to_owned());
        assert!(Target::OurTable.covers(&lab, &table("rungwise_obstacle")));
        assert!(!Target::OurTable.covers(&lab, &table("firewall")));
        assert!(!Target::OurTable.covers(&Place::Host, &table("rungwise_obstacle")));
    }
}
