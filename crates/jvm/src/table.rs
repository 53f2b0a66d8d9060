//! The flags of one JDK, read from the text that `cargo xtask jvm-flags` made of a real JVM; of JDK 7 of its source.
//!
//! One line per name, sorted by bytes:
//!
//! ```text
//! MaxTenuringThreshold uintx 15 product 0..16
//! UseBiasedLocking bool false product - | Option UseBiasedLocking was deprecated in version 15.0 and will likely be ...
//! MaxPermSize - - gone - | Ignoring option MaxPermSize; support was removed in 8.0
//! -Xprof - - refused - | Unrecognized option: -Xprof
//! ```

use std::sync::LazyLock;

use crate::release::{KNOWN, Release};
use crate::size;

/// What a flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `-XX:+Name` or `-XX:-Name`.
    Switch,
    /// An integer that may be negative, of so many bits.
    Signed(u8),
    /// An integer, of so many bits; sizes are such.
    Unsigned(u8),
    /// A number with a fraction.
    Double,
    /// Text.
    Text,
    /// Texts that add up when the flag is given again.
    List,
    /// Not a flag.
    None,
}

/// The value without the flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Default {
    /// Always this.
    Constant(&'static str),
    /// Decided when the JVM starts, from the machine, the collector or other flags: `MaxHeapSize` is a quarter of the
    /// memory.
    Decided,
    /// Not a flag.
    None,
}

/// The status of a name in a JDK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Supported for general use.
    Product,
    /// Product, and can be changed while the JVM runs (`jcmd PID VM.set_flag`).
    Manageable,
    /// Needs `-XX:+UnlockDiagnosticVMOptions` before it.
    Diagnostic,
    /// Needs `-XX:+UnlockExperimentalVMOptions` before it.
    Experimental,
    /// Another name of a flag; the JVM's message names the flag.
    Alias,
    /// Accepted with a warning, without effect.
    Gone,
    /// An option that is not a flag (`-Xint`), taken.
    Option,
    /// An option that is not a flag and that stops the JVM.
    Refused,
}

/// Least and largest value; `None` where there is no such bound or it is unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Least.
    pub low: Option<f64>,
    /// Largest.
    pub high: Option<f64>,
}

/// One name in the table of a JDK.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flag {
    /// As in `-XX:+Name`; options that are not flags begin with a dash.
    pub name: &'static str,
    /// What it takes.
    pub value: Type,
    /// What holds without it.
    pub default: Default,
    /// Its status.
    pub kind: Kind,
    /// Where it belongs: `C2`, `JVMCI`, `ARCH`, `pd` (its default depends on the kind of CPU); comma between them.
    pub parts: &'static str,
    /// Bounds of its value.
    pub bounds: Option<Bounds>,
    /// What the JVM prints when it is given; empty if nothing.
    pub words: &'static str,
}

impl Flag {
    /// It can be set: with or without a warning, it has an effect.
    pub fn is_alive(&self) -> bool {
        !matches!(self.kind, Kind::Gone | Kind::Refused)
    }

    /// The JVM calls it deprecated.
    pub fn is_deprecated(&self) -> bool {
        self.is_alive() && self.words.contains("deprecated")
    }

    /// The release since which it is deprecated or gone, by the JVM's own words.
    pub fn since(&self) -> Option<Release> {
        let (_, rest) = ["deprecated in version ", "support was removed in "]
            .iter()
            .find_map(|words| self.words.split_once(words))?;
        Release::parse(rest)
    }

    /// It is taken without effect by this release, which may be older than the one of the table.
    pub fn is_gone_in(&self, release: Release) -> bool {
        self.kind == Kind::Gone && self.since().is_none_or(|since| since <= release)
    }

    /// The bytes of its default, if it is a constant and an integer.
    pub fn default_number(&self) -> Option<u64> {
        match self.default {
            Default::Constant(text) => text.parse().ok(),
            _ => None,
        }
    }
}

/// All names that a JDK knows.
#[derive(Debug)]
pub struct Table {
    /// Whose.
    pub release: Release,
    /// The JVM that was asked, or whose source was read: `OpenJDK 64-Bit Server VM Temurin-25.0.3+9 (...) on linux x86_64`.
    pub source: &'static str,
    flags: Vec<Flag>,
}

/// Texts in the order of [`KNOWN`].
const TEXTS: [&str; KNOWN.len()] = [
    include_str!("../data/jdk-7.txt"),
    include_str!("../data/jdk-8.txt"),
    include_str!("../data/jdk-11.txt"),
    include_str!("../data/jdk-17.txt"),
    include_str!("../data/jdk-21.txt"),
    include_str!("../data/jdk-25.txt"),
];

static TABLES: [LazyLock<Table>; KNOWN.len()] = [
    LazyLock::new(|| Table::parse(KNOWN[0], TEXTS[0])),
    LazyLock::new(|| Table::parse(KNOWN[1], TEXTS[1])),
    LazyLock::new(|| Table::parse(KNOWN[2], TEXTS[2])),
    LazyLock::new(|| Table::parse(KNOWN[3], TEXTS[3])),
    LazyLock::new(|| Table::parse(KNOWN[4], TEXTS[4])),
    LazyLock::new(|| Table::parse(KNOWN[5], TEXTS[5])),
];

impl Table {
    /// The table of a known release; that of the newest for any other.
    pub(crate) fn for_release(release: Release) -> &'static Self {
        let index = KNOWN.iter().position(|known| *known == release);
        &TABLES[index.unwrap_or(KNOWN.len() - 1)]
    }

    fn parse(release: Release, text: &'static str) -> Self {
        let source = text
            .lines()
            .next()
            .and_then(|line| line.split_once("asked of ").or(line.split_once("read of ")))
            .map_or("", |(_, source)| source.trim_end_matches('.'));
        let flags = text.lines().filter_map(Flag::parse).collect();
        Self {
            release,
            source,
            flags,
        }
    }

    /// The update of the JVM that was asked, up to JDK 8: 504 of `build 25.504-b01`.
    pub fn update(&self) -> Option<u32> {
        let (_, build) = self.source.split_once("build 25.")?;
        let (update, _) = build.split_once('-')?;
        update.parse().ok()
    }

    /// What this JDK knows of a name.
    pub fn find(&self, name: &str) -> Option<&Flag> {
        let index = self
            .flags
            .binary_search_by(|flag| flag.name.cmp(name))
            .ok()?;
        self.flags.get(index)
    }

    /// What this JDK knows of an option that is not a flag: `-Xloggc:/var/log/gc.log` is found as `-Xloggc:...`.
    pub fn find_option(&self, written: &str) -> Option<&Flag> {
        let head = |option: &str| option.find([':', '=']).map_or(option.len(), |at| at + 1);
        let wanted = &written[..head(written)];
        // What is written like a flag is the same only if it is all the same.
        let open = wanted.ends_with([':', '=']) && wanted != "-XX:";
        let options = || {
            let flags = self.flags.iter();
            flags.take_while(|flag| flag.name.starts_with('-'))
        };
        options()
            .find(|flag| flag.name == written)
            .or_else(|| options().find(|flag| open && flag.name[..head(flag.name)] == *wanted))
    }

    /// All names, options first, then flags, each sorted.
    pub fn flags(&self) -> impl Iterator<Item = &Flag> {
        self.flags.iter()
    }

    /// The flag whose name is most like this one, if any is.
    pub fn nearest(&self, name: &str) -> Option<&'static str> {
        /// Least likeness of a name that is offered for a slip; the same as for knobs.
        const LIKE: f64 = 0.8;
        let flags = self.flags.iter();
        flags
            .filter(|flag| flag.is_alive() && !flag.name.starts_with('-'))
            .map(|flag| (likeness(flag.name, name), flag.name))
            .filter(|(likeness, _)| *likeness > LIKE)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, name)| name)
    }
}

/// How alike two names are, 0 to 1. Jaro-Winkler favours common beginnings, of which flags have many (`Print`, `Use`);
/// the share of letters that need no edit sets that right.
fn likeness(known: &str, name: &str) -> f64 {
    let (known, name) = (known.to_ascii_lowercase(), name.to_ascii_lowercase());
    strsim::jaro_winkler(&known, &name)
        .midpoint(strsim::normalized_damerau_levenshtein(&known, &name))
}

impl Flag {
    fn parse(line: &'static str) -> Option<Self> {
        if line.starts_with('#') {
            return None;
        }
        let (columns, words) = line.split_once(" | ").unwrap_or((line, ""));
        let mut columns = columns.split(' ');
        let name = columns.next()?;
        let value = match columns.next()? {
            "bool" => Type::Switch,
            "int" => Type::Signed(32),
            "intx" => Type::Signed(64),
            "uint" => Type::Unsigned(32),
            "uintx" | "size_t" | "uint64_t" => Type::Unsigned(64),
            "double" => Type::Double,
            "ccstr" => Type::Text,
            "ccstrlist" => Type::List,
            _ => Type::None,
        };
        let default = match columns.next()? {
            "-" => Default::None,
            "~" => Default::Decided,
            "\"\"" => Default::Constant(""),
            text => Default::Constant(text),
        };
        let kind = columns.next()?;
        let (kind, parts) = kind.split_once(',').unwrap_or((kind, ""));
        let kind = match kind {
            "product" => Kind::Product,
            "manageable" => Kind::Manageable,
            "diagnostic" => Kind::Diagnostic,
            "experimental" => Kind::Experimental,
            "alias" => Kind::Alias,
            "gone" => Kind::Gone,
            "option" => Kind::Option,
            "refused" => Kind::Refused,
            _ => return None,
        };
        let bounds = columns.next()?.split_once("..").map(|(low, high)| Bounds {
            low: low.parse().ok(),
            high: high.parse().ok(),
        });
        Some(Self {
            name,
            value,
            default,
            kind,
            parts,
            bounds,
            words,
        })
    }

    /// Why the flag cannot take this value; `None` where it can. A switch is asked with `+` or `-`.
    pub fn refuses(&self, value: &crate::Setting) -> Option<String> {
        let text = match (self.value, value.switch()) {
            (Type::Switch, Some(_)) | (Type::None, _) => return None,
            (Type::Switch, None) => {
                return Some("it is a switch and takes + or - before its name".to_owned());
            }
            (_, Some(_)) => return Some("it takes a value after = and no + or -".to_owned()),
            (_, None) => value.text(),
        };
        let number = match self.value {
            Type::Signed(bits) => {
                let (minus, digits) = text
                    .strip_prefix('-')
                    .map_or((false, text), |digits| (true, digits));
                let Some(number) = size::bytes(digits) else {
                    return Some(format!("'{text}' is not an integer"));
                };
                let most = 1u64 << (bits - 1);
                if number > most || (!minus && number == most) {
                    return Some(format!("'{text}' does not fit {bits} bits"));
                }
                if minus {
                    -(number as f64)
                } else {
                    number as f64
                }
            }
            Type::Unsigned(bits) => {
                let Some(number) = size::bytes(text) else {
                    return Some(format!("'{text}' is not an integer of 0 or more"));
                };
                if bits == 32 && u32::try_from(number).is_err() {
                    return Some(format!("'{text}' does not fit 32 bits"));
                }
                number as f64
            }
            Type::Double => match text.parse::<f64>().ok().or_else(|| {
                let whole = size::bytes(text).filter(|_| text.starts_with("0x"))?;
                Some(whole as f64)
            }) {
                // Rust reads `inf` and `nan` too.
                Some(number) if number.is_finite() => number,
                _ => return Some(format!("'{text}' is not a number")),
            },
            Type::Switch | Type::Text | Type::List | Type::None => return None,
        };
        let bounds = self.bounds?;
        let below = bounds.low.is_some_and(|low| number < low);
        let above = bounds.high.is_some_and(|high| number > high);
        // Bounds at the end of 64 bits are none, and a fraction does not hold them.
        if let (true, Some(low)) = (below, bounds.low.filter(|_| bounds.high > Some(2e18))) {
            return Some(format!("'{text}' is less than {low}"));
        }
        (below || above).then(|| {
            let bound = |bound: Option<f64>| {
                bound.map_or_else(|| "any".to_owned(), |bound| format!("{bound}"))
            };
            format!(
                "'{text}' is outside {} to {}",
                bound(bounds.low),
                bound(bounds.high)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read_and_every_table_is_sorted_without_twins() {
        for (release, text) in KNOWN.iter().zip(TEXTS) {
            let table = Table::for_release(*release);
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            assert_eq!(table.flags.len(), lines.count(), "{release}");
            let sorted = table.flags.is_sorted_by(|a, b| a.name < b.name);
            assert!(sorted, "{release}");
            assert!(table.source.starts_with("OpenJDK"), "{}", table.source);
        }
    }

    #[test]
    fn every_table_is_of_a_whole_jvm() {
        for release in Release::known() {
            let table = release.table();
            let count = |kind| table.flags().filter(|flag| flag.kind == kind).count();
            // The smallest of them has these; a table that was cut off has not.
            assert!(
                count(Kind::Product) > 450,
                "{release}: {}",
                count(Kind::Product)
            );
            assert!(
                count(Kind::Diagnostic) > 90,
                "{release}: {}",
                count(Kind::Diagnostic)
            );
            assert!(
                count(Kind::Experimental) > 25,
                "{release}: {}",
                count(Kind::Experimental)
            );
            assert!(
                count(Kind::Manageable) > 10,
                "{release}: {}",
                count(Kind::Manageable)
            );
            assert!(count(Kind::Gone) > 5, "{release}: {}", count(Kind::Gone));
            assert!(
                table.find("AdaptiveSizePolicyWeight").is_some(),
                "{release}: no beginning"
            );
            assert!(table.find("hashCode").is_some(), "{release}: no end");
            for flag in table.flags().filter(|flag| flag.value != Type::None) {
                assert!(flag.default != Default::None, "{release} {}", flag.name);
            }
        }
    }

    #[test]
    fn facts_that_are_known_from_elsewhere_stand_in_the_tables() {
        let flag = |release, name: &str| *Release(release).table().find(name).unwrap();
        assert_eq!(flag(8, "UseG1GC").default, Default::Constant("false"));
        // A quarter of the memory, and the young size is reckoned from it.
        for release in Release::known() {
            for name in [
                "MaxHeapSize",
                "ParallelGCThreads",
                "MaxNewSize",
                "ConcGCThreads",
            ] {
                assert_eq!(
                    flag(release.0, name).default,
                    Default::Decided,
                    "{release} {name}"
                );
            }
            assert_eq!(
                flag(release.0, "NewSizeThreadIncrease").value,
                flag(8, "NewSizeThreadIncrease").value
            );
            assert_eq!(
                flag(release.0, "HeapDumpOnOutOfMemoryError").kind,
                Kind::Manageable
            );
        }
        assert_eq!(
            flag(8, "MaxTenuringThreshold").bounds.unwrap().high,
            Some(15.0)
        );
        assert_eq!(
            flag(11, "MaxTenuringThreshold").bounds.unwrap().high,
            Some(16.0)
        );
        // JDK 7 takes any value.
        assert_eq!(flag(7, "MaxTenuringThreshold").bounds, None);
        assert_eq!(flag(7, "MaxPermSize").kind, Kind::Product);
        assert_eq!(
            flag(7, "CMSClassUnloadingEnabled").default,
            Default::Constant("false")
        );
        assert_eq!(
            flag(8, "CMSClassUnloadingEnabled").default,
            Default::Constant("true")
        );
        assert_eq!(flag(7, "MaxLiveObjectEvacuationRatio").kind, Kind::Gone);
        assert_eq!(flag(8, "MaxPermSize").kind, Kind::Gone);
        assert_eq!(flag(11, "MaxPermSize").since(), Some(Release(8)));
        assert_eq!(flag(17, "UseBiasedLocking").since(), Some(Release(15)));
        assert_eq!(flag(25, "ZGenerational").since(), Some(Release(24)));
        assert_eq!(flag(11, "UseZGC").kind, Kind::Experimental);
        assert_eq!(flag(17, "UseZGC").kind, Kind::Product);
        assert!(Release(17).table().find("UseConcMarkSweepGC").is_none());
        assert!(Release(25).table().find("MaxRAMFraction").is_none());
    }

    #[test]
    fn options_with_a_value_are_found_by_their_beginning() {
        let table = Release(17).table();
        assert!(
            table
                .find_option("-Xloggc:/var/log/gc.log")
                .unwrap()
                .is_deprecated()
        );
        assert_eq!(table.find_option("-d64").unwrap().kind, Kind::Refused);
        assert!(table.find_option("-Xverify:none").unwrap().is_deprecated());
        assert!(!table.find_option("-Xverify:all").unwrap().is_deprecated());
        assert!(table.find_option("-Xmx1g").is_none());
        assert!(table.find_option("-XX:NoSuch=1").is_none());
        assert!(table.find_option("-Djava.home=x").is_none());
    }

    #[test]
    fn the_nearest_name_is_found_across_case_and_slips() {
        let table = Release(17).table();
        assert_eq!(table.nearest("MaxGCPauseMilis"), Some("MaxGCPauseMillis"));
        assert_eq!(table.nearest("useg1gc"), Some("UseG1GC"));
        assert_eq!(
            table.nearest("HeapDumpOnOutOfMemory"),
            Some("HeapDumpOnOutOfMemoryError")
        );
        assert_eq!(table.nearest("Qwertyuiop"), None);
        assert_eq!(table.nearest(""), None);
    }
}
