//! A user whose system calls audit does not record.
//!
//! Between the full audit trail and none (`sec.auditd`): one rule before all others. It leaves a gap in the owner's
//! audit trail, so no finding recommends a value; you name the user explicitly.

use std::collections::BTreeSet;

use rungwise_host::AuditRule;
use rungwise_model::kernel::{Answer, Question};

use crate::by_hand::{Manual, Way};
use crate::edit::{Edit, Place};
use crate::error::{Error, Result};
use crate::knob::{COMMON, Context, Current, Doc, Draft, Knob, Reading, Risk};
use crate::target::Target;
use crate::turn::Turn;

/// `sec.audit_rules`
pub(crate) static KNOB: Knob = Knob {
    id: "sec.audit_rules",
    risk: Risk::Disruptive,
    summary: "which system calls audit records",
    values: "uid=NUMBER for a user whose calls are not recorded, as `id -u NAME` prints it, or several as uid=33,998; \
             or keep:NUMBER (prints the permanent rule, to be installed by hand)",
    doc: Doc {
        does: "At the end of every system call, the kernel tries every rule until one matches. A rule before all \
               others exempts the calls of one user: never,exit -F uid=NUMBER.",
        helps: "When audit is required and its functions take above 1.5 % of CPU, mostly for the calls of a service \
                that runs as its own user.",
        costs: "The trail has a gap, which its owner must accept: no rule records what a process with that real user \
                id does, including watches of files (-w) and programs with the set-user-ID bit. Records of other \
                users, of logins, and of refusals by SELinux stay. Where audit is on, adding and deleting the rule is \
                recorded.",
        undone: "The rule is deleted. An identical rule that someone else loaded meanwhile cannot be distinguished \
                 from it. If audit was locked since (auditctl -e 2), the rule stays until the next boot. Reloading the \
                 rules (augenrules --load) also removes it.",
        sources: "kernel/auditfilter.c and kernel/auditsc.c (Linux 6.18); auditctl(8), augenrules(8).",
    },
    by_hand: &[Manual {
        wish: "NUMBER",
        way: Way::Command,
        text: "auditctl -l; auditctl -s   # enabled 2 is locked until the next boot\n\
               echo '-A never,exit -F uid=NUMBER' > /etc/audit/rules.d/00-uid-NUMBER.rules\n\
               augenrules --load",
    }],
    writes: &[Target::AuditNever],
    turn: Turn::Own { read, draft },
    ..COMMON
};

fn read(context: &Context<'_>) -> Result<Current> {
    let rules = rules(context)?;
    let left_out: BTreeSet<u32> = rules
        .iter()
        .filter_map(|rule| match rule {
            AuditRule::LeavesOut(user) => Some(*user),
            AuditRule::Never | AuditRule::Records => None,
        })
        .collect();
    if left_out.is_empty() {
        let why = format!(
            "no user is exempted by the {} rules of system calls",
            rules.len()
        );
        return Ok(Current::unknown(why));
    }
    let mut readings = Vec::new();
    for user in &left_out {
        let edit = Edit::AuditNever { user: *user };
        let (source, value) = (edit.target(), edit.value().into_owned());
        readings.push(Reading { source, value });
    }
    let users: Vec<String> = left_out.iter().map(u32::to_string).collect();
    Ok(Current::known(format!("uid={}", users.join(",")), readings))
}

fn draft(context: &Context<'_>, wish: &str) -> Result<Draft> {
    if let Some(user) = wish.strip_prefix("keep:") {
        return KNOB.by_hand(
            user,
            "the rule files belong to the owner of the audit trail",
        );
    }
    let bad = |why: String| KNOB.bad_wish(wish, why);
    let users = wish
        .strip_prefix("uid=")
        .ok_or_else(|| bad("it names no user".to_owned()))?;
    let mut wished = BTreeSet::new();
    for user in users.split(',') {
        let number: u32 = user
            .parse()
            .map_err(|_| bad(format!("'{user}' is not a user id")))?;
        if !may_be_left_out(number) {
            return Err(bad(format!(
                "without the calls of user {number} the trail is of no use; run the service as its own user"
            )));
        }
        wished.insert(number);
    }
    let rules = rules(context)?;
    let refused = |why: String| Error::NotSettable { knob: KNOB.id, why };
    let Some(records) = rules.iter().position(|rule| *rule == AuditRule::Records) else {
        let why = "no audit rule records system calls, so there is nothing to exempt a user from (auditctl -l)";
        return Err(refused(why.to_owned()));
    };
    let asked = context.machine.ask(Question::Audit);
    let enabled =
        match asked.map_err(|answer| failed(context, "read the state of audit", answer))? {
            Answer::Audit(audit) => audit.enabled,
            _ => 0,
        };
    if enabled == LOCKED {
        let why = "audit is locked until the next boot (enabled 2), as compliance rules require; it accepts no rule \
                   until then";
        return Err(refused(why.to_owned()));
    }
    let mut draft = Draft::default();
    for user in wished {
        let there = rules
            .iter()
            .position(|rule| *rule == AuditRule::LeavesOut(user));
        if there.is_some_and(|there| there > records) {
            return Err(refused(format!(
                "a rule already exempts user {user}, but an earlier rule that records decides first; delete the \
                 exemption and try again: auditctl -d never,exit -F uid={user}"
            )));
        }
        draft = draft.edit(&Place::Host, Edit::AuditNever { user }).note(format!(
            "while it is in force, nothing that user {user} does is recorded, watches of files (-w) included; ask the \
             owner of the trail"
        ));
    }
    if enabled == 0 {
        draft = draft.note("audit is off, and rules have no effect until audit is switched on");
    }
    Ok(draft)
}

/// Audit that cannot be changed before the next boot (`AUDIT_LOCKED` of linux/audit.h).
const LOCKED: u32 = 2;

/// A user whose calls may go unrecorded: not root, at whose calls most rules aim, nor the number that the kernel
/// reserves for no user.
pub(crate) fn may_be_left_out(user: u32) -> bool {
    user != 0 && user != u32::MAX
}

fn rules(context: &Context<'_>) -> Result<Vec<AuditRule>> {
    let rules = context.machine.audit_rules();
    rules.map_err(|answer| failed(context, "list the audit rules", answer))
}

fn failed(context: &Context<'_>, tried: &str, answer: std::io::Error) -> Error {
    Error::kernel(KNOB.id, tried.to_owned(), context.machine.name(), answer)
}
