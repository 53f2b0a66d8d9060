//! State of the audit subsystem (`AUDIT_GET`), for root of the initial namespaces.
//!
//! The kernel answers from its own thread (`audit_send_reply`), so this is the only question with a wait. A container
//! gets EPERM or ECONNREFUSED, kept as they are. Source: linux/audit.h, kernel/audit.c of Linux 6.18.

use std::io;

use rungwise_model::kernel::Audit;

use crate::audit::PROTOCOL;
use crate::netlink::{Message, Request, number32};

const AUDIT_GET: u16 = 1000;

/// Reads the audit status.
pub(super) fn status() -> io::Result<Audit> {
    let mut request = Request::default();
    request.message(AUDIT_GET, 0, &[]);
    let mut found = None;
    let asked = request.patient(PROTOCOL, |message| {
        found = found.or_else(|| status_in(message));
    });
    asked.map_err(|error| match error.raw_os_error() {
        Some(libc::EPROTONOSUPPORT) => io::Error::new(
            io::ErrorKind::Unsupported,
            "this kernel has no audit (CONFIG_AUDIT)",
        ),
        _ => error,
    })?;
    found.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "the kernel's answer is not an audit status",
        )
    })
}

/// struct `audit_status`: mask, enabled, failure, pid, rate limit, backlog limit, lost, backlog.
fn status_in(message: &Message<'_>) -> Option<Audit> {
    if message.kind != AUDIT_GET {
        return None;
    }
    let word = |index: usize| number32(message.rest(0), index * 4);
    Some(Audit {
        enabled: word(1)?,
        pid: word(3)?,
        lost: word(6)?,
        backlog: word(7)?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::netlink::testing;

    #[test]
    fn the_status_is_read_by_its_words() {
        let words: Vec<u8> = (0_u32..10).flat_map(u32::to_ne_bytes).collect();
        let expected = Audit {
            enabled: 1,
            pid: 3,
            lost: 6,
            backlog: 7,
        };
        let message = testing::message(AUDIT_GET, &words);
        assert_eq!(status_in(&message), Some(expected));
        assert_eq!(status_in(&testing::message(AUDIT_GET, &words[..28])), None);
    }

    proptest! {
        #[test]
        fn any_answer_is_read_without_a_panic(body: Vec<u8>) {
            let _ = status_in(&testing::message(AUDIT_GET, &body));
        }
    }
}
