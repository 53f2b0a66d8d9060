//! A `/tmp` of its own for a program in a mount namespace.

/// Shell commands, to be joined by `&&`, that mount an empty `/tmp` in a mount namespace of their own. Where the checkout is below `/tmp`, it
/// is still there: what tests execute and compile is in it.
pub fn own_tmp() -> String {
    let top = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let checkout = std::path::absolute(top).unwrap_or_else(|_| top.into());
    let checkout = std::fs::canonicalize(&checkout).unwrap_or(checkout);
    let mut script = "mount --rbind /tmp /mnt && mount -t tmpfs none /tmp".to_owned();
    if let Ok(below) = checkout.strip_prefix("/tmp") {
        let below = below.display();
        script +=
            &format!(" && mkdir -p '/tmp/{below}' && mount --rbind '/mnt/{below}' '/tmp/{below}'");
    }
    script
}
