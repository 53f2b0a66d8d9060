//! The tools whose answers ours are compared with, run inside a namespace.

use std::process::Command;

use rungwise_host::namespace::Namespace;
use rungwise_testkit::skipped;

/// What `argv` prints inside the namespace; `None`, loudly, where the tool is not installed.
pub(crate) fn said_in(namespace: &Namespace, argv: &str) -> Option<String> {
    let owned = argv.to_owned();
    let output = namespace.run(move || {
        let mut words = owned.split_whitespace();
        Command::new(words.next().unwrap()).args(words).output()
    });
    match output {
        Ok(output) if output.status.success() => Some(String::from_utf8(output.stdout).unwrap()),
        Ok(output) => panic!("{argv}: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => {
            skipped(format_args!("no comparison with '{argv}': {error}"));
            None
        }
    }
}
