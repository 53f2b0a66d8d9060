//! The names of the kernel's functions.
//!
//! They are looked up once, after the window, when the addresses are known. The kernel is asked for the function at each address
//! ([`crate::namer`]); if it cannot be asked, all its functions are read from `/proc/kallsyms`. The kernel formats its 100,000
//! symbols for each reader, which costs more than a window of samples. The beginning of that list is read before the
//! window to check that it contains names.

use std::collections::BTreeSet;
use std::io::{self, BufReader};

use rungwise_formats::kallsyms::{self, Names, Unreadable};
use rungwise_host::live::Live;
use rungwise_host::{Host, files};

use crate::error::{Error, Result, sysctl};
use crate::namer;

const PATH: &str = "/proc/kallsyms";

const TRIED: &str = "name kernel functions";

/// Bytes in which a symbol of code is met: 1,500 symbols.
const BEGINNING: u64 = 64 << 10;

/// What the kernel gives at once, whatever the room (`seq_read`).
const PAGE: usize = 4096;

/// Whether functions can be named here.
pub(crate) fn check() -> Result<()> {
    let beginning = files::read_at_most(PATH.as_ref(), BEGINNING).map_err(unreadable)?;
    judge(&Live, &beginning)
}

/// The functions at these addresses; nothing is asked or read where there are none.
pub(crate) fn names(addresses: impl IntoIterator<Item = u64>) -> Result<Names> {
    let addresses: BTreeSet<u64> = addresses.into_iter().collect();
    if addresses.is_empty() {
        return Ok(Names::default());
    }
    // Before Linux 5.14, or where bpf(2) is forbidden, the list has them as well.
    if addresses.len() <= namer::MOST
        && let Ok(names) = namer::functions(&addresses)
    {
        return Ok(names);
    }
    listed(addresses)
}

fn listed(addresses: BTreeSet<u64>) -> Result<Names> {
    let mut names = Names::for_addresses(addresses);
    let file = files::open(PATH.as_ref()).map_err(unreadable)?;
    names
        .read(BufReader::with_capacity(PAGE, file))
        .map_err(Error::system(&tried()))?;
    Ok(names)
}

fn tried() -> String {
    format!("{TRIED} from {PATH}")
}

fn unreadable(error: rungwise_host::Error) -> Error {
    let source = match error {
        rungwise_host::Error::System { source, .. } => source,
        other => io::Error::other(other),
    };
    if source.kind() == io::ErrorKind::NotFound {
        return Error::Missing {
            tried: tried(),
            why: "this kernel has no such file (CONFIG_KALLSYMS)".to_owned(),
        };
    }
    Error::System {
        tried: tried(),
        source,
    }
}

/// What the beginning of the list means.
fn judge(host: &dyn Host, beginning: &[u8]) -> Result<()> {
    kallsyms::judge(beginning).map_err(|why| match why {
        Unreadable::Hidden => Error::Nameless {
            restrict: sysctl(host, "kptr_restrict"),
        },
        Unreadable::Foreign => Error::Missing {
            tried: TRIED.to_owned(),
            why: format!("{PATH} contains no kernel functions (CONFIG_KALLSYMS)"),
        },
    })
}

#[cfg(test)]
mod tests {
    use rungwise_host::recorded::Recorded;

    use super::*;

    #[test]
    fn the_kernel_gives_the_names_that_its_list_gives() {
        if let Err(why) = namer::functions(&BTreeSet::from([1])) {
            rungwise_testkit::skipped(format_args!(
                "the kernel names no function by bpf(2): {why}"
            ));
            return;
        }
        let list =
            String::from_utf8(files::read_at_most(PATH.as_ref(), 64 << 20).unwrap()).unwrap();
        let code: Vec<(u64, &str)> = list
            .lines()
            .filter_map(
                |line| match *line.split_ascii_whitespace().collect::<Vec<_>>() {
                    [address, "t" | "T", name] => {
                        Some((u64::from_str_radix(address, 16).ok()?, name))
                    }
                    _ => None,
                },
            )
            .collect();
        let some: BTreeSet<u64> = code
            .iter()
            .step_by(97)
            .map(|(address, _)| *address)
            .collect();
        let asked = namer::functions(&some).unwrap();
        let read = listed(some.clone()).unwrap();
        let mut other_names = 0;
        for address in &some {
            let name = asked.function(*address).unwrap();
            let all: Vec<&str> = code
                .iter()
                .filter(|(at, _)| at == address)
                .map(|(_, name)| *name)
                .collect();
            assert!(all.contains(&name), "{address:x}: {name}, not {all:?}");
            other_names += usize::from(read.function(*address) != Some(name));
        }
        // Of several names for one address the two may take different ones.
        assert!(
            some.len() > 500 && other_names * 50 < some.len(),
            "{other_names} of {}",
            some.len()
        );
        let none = namer::functions(&BTreeSet::from([1])).unwrap();
        assert_eq!(none.function(1), None);
    }

    #[test]
    fn hidden_addresses_are_reported_with_the_switch_that_hides_them() {
        let host = Recorded::new("this host", 1).file("/proc/sys/kernel/kptr_restrict", "2");
        let text = judge(&host, b"0000000000000000 T _text\n")
            .unwrap_err()
            .to_string();
        assert!(text.contains("kptr_restrict is 2"), "{text}");
        assert!(text.contains("; run as root"), "{text}");
    }

    #[test]
    fn a_kernel_without_symbols_and_a_missing_file_are_distinguished() {
        let host = Recorded::new("this host", 1);
        assert!(matches!(judge(&host, b""), Err(Error::Missing { .. })));
        let missing = files::open("/proc/none".as_ref()).map_err(unreadable);
        let text = missing.unwrap_err().to_string();
        assert!(text.contains("this kernel has no such file"), "{text}");
    }
}
