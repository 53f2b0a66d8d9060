//! The kernel's functions, read once for all that watch at the same time.
//!
//! The kernel prints its 100,000 symbols anew for each reader, which costs it more than a window of samples
//! does. Nothing is kept for longer than somebody uses it: modules come and go.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use rungwise_formats::kallsyms::{Symbols, Unreadable};
use rungwise_host::Host;

use crate::error::{Error, Result, sysctl};

const PATH: &str = "/proc/kallsyms";

static IN_USE: Mutex<Weak<Symbols>> = Mutex::new(Weak::new());

/// The symbols of the running kernel.
pub(crate) fn load(host: &dyn Host) -> Result<Arc<Symbols>> {
    let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(symbols) = in_use.upgrade() {
        return Ok(symbols);
    }
    let symbols = Arc::new(read(host)?);
    *in_use = Arc::downgrade(&symbols);
    Ok(symbols)
}

fn read(host: &dyn Host) -> Result<Symbols> {
    let tried = "name the functions of the kernel";
    let text = host
        .text(PATH.as_ref())
        .map_err(Error::system(&format!("{tried} by {PATH}")))?;
    Symbols::parse(text).map_err(|why| match why {
        Unreadable::Hidden => Error::Nameless {
            restrict: sysctl(host, "kptr_restrict"),
        },
        Unreadable::Foreign => Error::Missing {
            tried: tried.to_owned(),
            why: format!("{PATH} lists none (CONFIG_KALLSYMS)"),
        },
    })
}

#[cfg(test)]
mod tests {
    use rungwise_host::recorded::Recorded;

    use super::*;

    #[test]
    fn hidden_addresses_are_told_with_the_switch_that_hides_them() {
        let host = Recorded::new("this host", 1)
            .file(PATH, "0000000000000000 T _text")
            .file("/proc/sys/kernel/kptr_restrict", "2");
        let text = read(&host).unwrap_err().to_string();
        assert!(text.contains("kptr_restrict is 2"), "{text}");
        assert!(text.contains("; run as root"), "{text}");
    }

    #[test]
    fn a_kernel_without_symbols_and_a_missing_file_are_told_apart() {
        let host = Recorded::new("this host", 1).file(PATH, "");
        assert!(matches!(read(&host), Err(Error::Missing { .. })));
        let host = Recorded::new("this host", 1);
        assert!(matches!(read(&host), Err(Error::System { .. })));
    }
}
