//! A `/tmp` of its own for a program in a mount namespace.

use std::path::Path;

/// Shell commands, to be joined by `&&`, that mount an empty `/tmp` in a mount namespace of their own. Where the checkout is below `/tmp`, it
/// is still there: what tests execute and compile is in it.
pub fn own_tmp() -> String {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let top = std::fs::canonicalize(&top).unwrap_or(top);
    let empty = "mount --rbind /tmp /mnt && mount -t tmpfs none /tmp";
    match top.strip_prefix("/tmp") {
        Ok(below) => {
            let below = below.display();
            format!(
                "{empty} && mkdir -p '/tmp/{below}' && mount --rbind '/mnt/{below}' '/tmp/{below}'"
            )
        }
        Err(_) => empty.to_owned(),
    }
}
