//! Formats of kernel events, from tracefs, without leaving a mount on the machine.
//!
//! If tracefs is not mounted, a thread mounts it in its own mount namespace, reads, and exits; the kernel unmounts
//! it with the namespace. `/sys/kernel/debug/tracing` is never accessed: the access alone mounts it for every
//! process (kernel/trace/trace.c, `trace_automount`).
#![expect(
    unsafe_code,
    reason = "rustix calls unshare unsafe for the sake of a flag that is not used here"
)]

use std::collections::BTreeMap;
use std::io;

use rungwise_formats::tracepoint::Format;
use rungwise_host::Host;
use rungwise_host::live::Live;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

const ROOT: &str = "/sys/kernel/tracing";

/// The format of an event, or why there is none and, after a semicolon, the remedy.
pub(crate) type FormatOrReason = Result<Format, String>;

/// Formats of these events (`skb:kfree_skb`).
pub(crate) fn formats(events: &'static [&'static str]) -> BTreeMap<&'static str, FormatOrReason> {
    if !matches!(Live.list(format!("{ROOT}/events").as_ref()), Err(error) if error.kind() == io::ErrorKind::NotFound)
    {
        return read_all(&Live, events);
    }
    let read = std::thread::Builder::new()
        .name("tracefs".to_owned())
        .spawn(|| {
            mount_for_this_thread()?;
            Ok(read_all(&Live, events))
        })
        .and_then(|thread| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
    read.unwrap_or_else(|error: io::Error| {
        let why = match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "tracefs is not mounted, and mounting it was not permitted; run as root".to_owned()
            }
            _ => format!("tracefs cannot be mounted: {error}"),
        };
        events
            .iter()
            .map(|event| (*event, Err(why.clone())))
            .collect()
    })
}

fn mount_for_this_thread() -> io::Result<()> {
    // SAFETY: descriptors stay shared with the other threads, which is all that the call asks to vouch for.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::FS) }?;
    // Private first: what is mounted below must not travel back to the host.
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    Ok(mount("rungwise", ROOT, "tracefs", flags, None)?)
}

fn read_all(host: &dyn Host, events: &[&'static str]) -> BTreeMap<&'static str, FormatOrReason> {
    events
        .iter()
        .map(|event| (*event, read(host, event)))
        .collect()
}

fn read(host: &dyn Host, event: &str) -> FormatOrReason {
    let path = format!("{ROOT}/events/{}/format", event.replace(':', "/"));
    match host.text(path.as_ref()) {
        Ok(text) => Format::parse(&text).ok_or_else(|| format!("{path} contains no event format")),
        Err(error) => Err(match error.kind() {
            io::ErrorKind::NotFound => format!("this kernel has no event {event}"),
            io::ErrorKind::PermissionDenied => format!("{path}: not permitted; run as root"),
            _ => format!("{path}: {error}"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use rungwise_host::recorded::Recorded;

    use super::*;

    #[test]
    fn an_event_that_this_kernel_lacks_is_distinguished_from_one_that_cannot_be_read() {
        let host = Recorded::new("this host", 1)
            .file(
                "/sys/kernel/tracing/events/a/good/format",
                "name: good\nID: 7\n",
            )
            .file("/sys/kernel/tracing/events/a/odd/format", "name: odd");
        let found = read_all(&host, &["a:good", "a:odd", "a:none"]);
        assert_eq!(found["a:good"].as_ref().unwrap().id, 7);
        assert!(
            found["a:odd"]
                .as_ref()
                .unwrap_err()
                .contains("no event format")
        );
        assert_eq!(
            found["a:none"].as_ref().unwrap_err(),
            "this kernel has no event a:none"
        );
    }
}
