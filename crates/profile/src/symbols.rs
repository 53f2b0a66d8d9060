//! The names of the kernel's functions.
//!
//! The kernel formats its 100,000 symbols for each reader, which costs more than a window of samples. The list is
//! therefore read once, after the window, when the addresses are known; its beginning is read before the window to
//! check that it contains names.

use std::io::{self, BufReader};

use rungwise_formats::kallsyms::{self, Names, Unreadable};
use rungwise_host::live::Live;
use rungwise_host::{Host, files};

use crate::error::{Error, Result, sysctl};

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

/// The functions at these addresses; nothing is read where there are none.
pub(crate) fn names(addresses: impl IntoIterator<Item = u64>) -> Result<Names> {
    let mut addresses = addresses.into_iter().peekable();
    if addresses.peek().is_none() {
        return Ok(Names::default());
    }
    let mut names = Names::of(addresses);
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
    fn hidden_addresses_are_told_with_the_switch_that_hides_them() {
        let host = Recorded::new("this host", 1).file("/proc/sys/kernel/kptr_restrict", "2");
        let text = judge(&host, b"0000000000000000 T _text\n")
            .unwrap_err()
            .to_string();
        assert!(text.contains("kptr_restrict is 2"), "{text}");
        assert!(text.contains("; run as root"), "{text}");
    }

    #[test]
    fn a_kernel_without_symbols_and_a_missing_file_are_told_apart() {
        let host = Recorded::new("this host", 1);
        assert!(matches!(judge(&host, b""), Err(Error::Missing { .. })));
        let missing = files::open("/proc/none".as_ref()).map_err(unreadable);
        let text = missing.unwrap_err().to_string();
        assert!(text.contains("this kernel has no such file"), "{text}");
    }
}
