//! Rules by which the kernel's audit records system calls, and the one that exempts a user.
//!
//! Of the lists of rules only that of finished calls matters (`exit`, where watches of files are as well). A rule is known by
//! all its words, without a number or a name of its own: `audit_compare_rule` deletes the first that is the same. One that is
//! put before all others also goes before watches of files (`prio_high`), and is added a second time where it is there already.
//! While audit is off, rules are kept and do nothing. Sources: linux/audit.h, kernel/auditfilter.c and kernel/auditsc.c of
//! Linux 6.18, and each of these tried on it.

use std::io;

use crate::netlink::{ACK, Request, number32};

pub(crate) const PROTOCOL: isize = libc::NETLINK_AUDIT as isize;

const ADD_RULE: u16 = 1011;
const DEL_RULE: u16 = 1012;
const LIST_RULES: u16 = 1013;

// struct audit_rule_data, in words of 32 bits: list, action, number of fields; then 64 each of the mask of system calls, the
// fields, their values and their operators; last the length of strings.
const WORDS: usize = 3 + 4 * 64 + 1;
const MASK: usize = 3;
const FIELDS: usize = MASK + 64;
const VALUES: usize = FIELDS + 64;
const OPERATORS: usize = VALUES + 64;

const EXIT: u32 = 4;
const FIRST: u32 = 0x10;
const NEVER: u32 = 0;
const REAL_USER: u32 = 1;
const EQUAL: u32 = 0x4000_0000;

/// A rule that is tried when a system call ends. The first that matches decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditRule {
    /// No call of this real user is recorded: `never,exit -F uid=N` and nothing else.
    LeavesOut(u32),
    /// Any other that exempts calls.
    Never,
    /// Calls, or accesses to a file, are recorded.
    Records,
}

/// Those rules, in the order in which they are tried.
pub(crate) fn rules() -> io::Result<Vec<AuditRule>> {
    let mut request = Request::default();
    request.message(LIST_RULES, 0, &[]);
    let mut found = Vec::new();
    request.patient(PROTOCOL, |message| {
        if message.kind == LIST_RULES {
            found.extend(rule_in(message.rest(0)));
        }
    })?;
    Ok(found)
}

/// Adds the rule that exempts `user`, before all others, or deletes it.
pub(crate) fn leave_out(user: u32, present: bool) -> io::Result<()> {
    let mut request = Request::default();
    if present {
        request.message(ADD_RULE, ACK, &leaving_out(user, EXIT | FIRST));
    } else {
        request.message(DEL_RULE, ACK, &leaving_out(user, EXIT));
    }
    request.send(PROTOCOL)
}

/// The rule in the kernel's format; nothing for one of another list.
fn rule_in(body: &[u8]) -> Option<AuditRule> {
    let word = |index: usize| number32(body, 4 * index);
    let user = word(VALUES)?;
    match (word(0)?, word(1)?) {
        (EXIT, NEVER) if body == leaving_out(user, EXIT) => Some(AuditRule::LeavesOut(user)),
        (EXIT, NEVER) => Some(AuditRule::Never),
        (EXIT, _) => Some(AuditRule::Records),
        _ => None,
    }
}

fn leaving_out(user: u32, list: u32) -> Vec<u8> {
    let mut words = [0; WORDS];
    words[0] = list;
    words[1] = NEVER;
    words[2] = 1;
    // The last word of the mask is for classes of calls, and auditctl leaves it out too.
    words[MASK..FIELDS - 1].fill(u32::MAX);
    words[FIELDS] = REAL_USER;
    words[VALUES] = user;
    words[OPERATORS] = EQUAL;
    words.into_iter().flat_map(u32::to_ne_bytes).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn changed(user: u32, at: usize, word: u32) -> Vec<u8> {
        let mut body = leaving_out(user, EXIT);
        body[4 * at..4 * at + 4].copy_from_slice(&word.to_ne_bytes());
        body
    }

    #[test]
    fn a_rule_that_leaves_out_a_user_is_that_to_the_last_word() {
        let read = |at, word| rule_in(&changed(998, at, word));
        assert_eq!(
            rule_in(&leaving_out(998, EXIT)),
            Some(AuditRule::LeavesOut(998))
        );
        // A second field, a call less, the login user, any other user.
        for (at, word) in [(2, 2), (MASK, 1), (FIELDS, 9), (OPERATORS, 0x3000_0000)] {
            assert_eq!(read(at, word), Some(AuditRule::Never), "{at}");
        }
        assert_eq!(read(1, 2), Some(AuditRule::Records));
        // Of the lists of tasks and of messages.
        assert_eq!((read(0, 1), read(0, 5)), (None, None));
    }

    proptest! {
        #[test]
        fn any_answer_is_read_without_a_panic(body: Vec<u8>) {
            let _ = rule_in(&body);
        }
    }
}
