//! What could not be tested here, said where people see it.
#![expect(
    clippy::disallowed_methods,
    reason = "the list of `cargo xtask test` is named by the environment"
)]

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

/// Names the file in which `cargo xtask test` gathers what was skipped, to sum it up when all tests are done.
const LIST: &str = "RUNGWISE_SKIPPED";

/// Says that the test of this thread, or a part of it, cannot run, and why. libtest keeps to itself what the macros print
/// in a test that passes; a write to standard error itself goes out.
pub fn skipped(why: impl Display) {
    let thread = std::thread::current();
    // A test without harness, and a helper's thread, name themselves.
    let what = match thread.name() {
        Some(test) if test != "main" => format!("{test}: {why}"),
        _ => why.to_string(),
    };
    let list = std::env::var_os(LIST).map(PathBuf::from);
    let list = list.and_then(|list| OpenOptions::new().append(true).open(list).ok());
    let mut places: Vec<Box<dyn Write>> = vec![Box::new(std::io::stderr())];
    places.extend(list.map(|list| Box::new(list) as Box<dyn Write>));
    say(&what, &mut places);
}

/// One line in each place, in one write: other tests write there too.
fn say(what: &str, places: &mut [Box<dyn Write + '_>]) {
    let line = format!("SKIPPED {what}\n");
    for place in places {
        // There is nobody left to tell of a descriptor that is closed.
        let _ = place.write_all(line.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_is_described_in_one_line() {
        let (mut shown, mut listed) = (Vec::new(), b"SKIPPED the first\n".to_vec());
        say(
            "the second: no java-8",
            &mut [Box::new(&mut shown), Box::new(&mut listed)],
        );
        assert_eq!(shown, b"SKIPPED the second: no java-8\n");
        assert_eq!(
            listed,
            b"SKIPPED the first\nSKIPPED the second: no java-8\n"
        );
    }
}
