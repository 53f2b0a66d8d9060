//! Releases of the JDK by their feature number, and which of them have a table.

use std::fmt;

use crate::between;
use crate::table::{Flag, Table};

/// A JDK by its feature number: 8, 17, 25.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release(pub u8);

/// Releases whose flags are known: from a JVM, those of JDK 7 from its source.
pub(crate) const KNOWN: [Release; 6] = [
    Release(7),
    Release(8),
    Release(11),
    Release(17),
    Release(21),
    Release(25),
];

impl Release {
    /// Reads `17`, `17.0.15+6`, `1.8.0_504-b01`, `8u504`, `25.0.3+9-LTS`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix("1.").unwrap_or(text);
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let number: u8 = text.get(..digits)?.parse().ok()?;
        // JDK 5 was the first to be numbered so; nobody knows of a hundredth.
        (5..100).contains(&number).then_some(Self(number))
    }

    /// The update of a JDK up to 8: 504 of `1.8.0_504-b01` and of `8u504`. Later ones have the release in its place.
    pub fn update(text: &str) -> Option<u32> {
        Self::parse(text).filter(|release| *release <= Self(8))?;
        let (_, update) = text.split_once(['u', '_'])?;
        let digits = update.bytes().take_while(u8::is_ascii_digit).count();
        update.get(..digits)?.parse().ok()
    }

    /// The table that this release is judged by: its own, or that of the nearest older release that has one.
    pub fn table(self) -> &'static Table {
        let nearest = KNOWN.iter().rev().find(|known| **known <= self);
        Table::for_release(*nearest.unwrap_or(&KNOWN[0]))
    }

    /// The flag as this release takes it; between two tables by the dates that are known.
    pub(crate) fn find(self, name: &str) -> Option<&'static Flag> {
        between::taken(self, self.table().find(name)?)
    }

    /// Whether the table is its own.
    pub fn is_known(self) -> bool {
        KNOWN.contains(&self)
    }

    /// The releases that have a table.
    pub fn known() -> impl Iterator<Item = Self> {
        KNOWN.into_iter()
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JDK {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_both_schemes_are_read() {
        for (text, number) in [
            ("17", 17),
            ("17.0.15+6-Debian-1deb12u1", 17),
            ("1.8.0_504-8u504-ga-1-b01", 8),
            ("8u504", 8),
            ("25.0.3+9-LTS", 25),
            ("1.7.0_80", 7),
        ] {
            assert_eq!(Release::parse(text), Some(Release(number)), "{text}");
        }
        for (text, update) in [
            ("1.8.0_504-8u504-ga-1-b01", Some(504)),
            ("8u181", Some(181)),
            ("8", None),
            ("1.8.0", None),
            ("17.0.15+6-Debian-1deb12u1", None),
            ("8u", None),
        ] {
            assert_eq!(Release::update(text), update, "{text}");
        }
        for text in ["", "x", "1.", "4", "300", "1.x"] {
            assert_eq!(Release::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_release_without_a_table_is_judged_by_an_older_one_if_there_is_one() {
        assert_eq!(Release(20).table().release, Release(17));
        assert_eq!(Release(26).table().release, Release(25));
        assert_eq!(Release(6).table().release, Release(7));
        assert!(Release(17).is_known() && !Release(6).is_known());
    }
}
