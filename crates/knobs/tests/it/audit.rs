//! Leaving a user out of what audit records: on an invented machine, and on this one, with a user whom nobody is.

use std::sync::Arc;

use rungwise_host::live::Live;
use rungwise_host::recorded::Recorded;
use rungwise_host::{AuditRule, Host as _};
use rungwise_knobs::edit::Places;
use rungwise_knobs::journal::{self, Entry, Intent, Line};
use rungwise_knobs::{Context, Edit, Place, Session, Why, recovery};
use rungwise_model::kernel::{Answer, Audit, Question};
use rungwise_testkit::{RecordedUser, a_user_of_nobody, skipped};

use crate::memory::{Machines, header, keeper};
use crate::plans::said;

#[test]
fn a_user_is_left_out_of_rules_that_record_and_never_root() {
    let audited = |rules: &[AuditRule], enabled| {
        let audit = Audit {
            enabled,
            ..Audit::default()
        };
        Recorded::new("x", 1)
            .with_audit(rules)
            .with_answer(Question::Audit, Answer::Audit(audit))
    };
    let rules = [
        AuditRule::Never,
        AuditRule::LeavesOut(33),
        AuditRule::Records,
    ];
    let host = audited(&rules, 1);
    for (wish, words) in [
        (
            "uid=998",
            "- absent\n    + present\n  note: while it is in force, nothing that user 998 does is recorded",
        ),
        ("uid=998,33", "uid=33\n      present (already)"),
        (
            "keep:998",
            "echo '-A never,exit -F uid=998' > /etc/audit/rules.d/00-uid-998.rules",
        ),
        ("uid=0", "the trail is of no use"),
        ("uid=4294967295", "the trail is of no use"),
        ("uid=nginx", "'nginx' is not a user id"),
        ("998", "it names no user"),
        ("exclude", "allowed: uid=NUMBER"),
    ] {
        let said = said(&host, "sec.audit_rules", "", wish);
        assert!(said.contains(words), "{wish}: {said}");
    }
    let behind = [AuditRule::Records, AuditRule::LeavesOut(998)];
    for (rules, enabled, words) in [
        (&[][..], 1, "no audit rule records"),
        (
            &[AuditRule::Never, AuditRule::LeavesOut(33)],
            1,
            "no audit rule records",
        ),
        (&behind, 1, "an earlier rule that records"),
        (&rules, 2, "locked until the next boot"),
        (&rules, 0, "audit is off, and rules have no effect"),
    ] {
        let said = said(&audited(rules, enabled), "sec.audit_rules", "", "uid=998");
        assert!(said.contains(words), "{rules:?}, {enabled}: {said}");
    }
}

#[test]
fn a_rule_of_somebody_else_with_the_same_words_is_not_deleted_with_ours() {
    let machines = Machines::new();
    let start = machines.snapshot();
    let mut keeper = keeper(&Arc::default());
    let (plan, places) = (
        machines.plan_host("sec.audit_rules", "uid=998"),
        machines.places(),
    );
    let _ = keeper.apply(&places, &plan).unwrap();
    machines.host.set_left_out(998, true).unwrap();
    let undo = keeper.undo(&places, None);
    assert!(
        undo.left_in_words().contains("holds 'present 2 times'"),
        "{undo:?}"
    );
    machines.host.set_left_out(998, false).unwrap();
    let undo = keeper.undo(&places, None);
    assert!(undo.complete(), "{}", undo.left_in_words());
    assert_eq!(machines.snapshot(), start);
}

#[test]
fn a_forged_journal_cannot_make_an_undo_leave_somebody_out() {
    let machines = Machines::new();
    let intent = Intent {
        knob: "sec.audit_rules".to_owned(),
        place: Place::Host,
        netns: 1,
        ifindex: None,
        edit: Edit::AuditNever { user: 998 },
        before: "present".to_owned(),
    };
    let done = Entry::Done {
        intent: 1,
        readback: "absent".to_owned(),
    };
    let lines = [Entry::Header(header()), Entry::Intent(intent), done];
    let bytes: Vec<u8> = (0..)
        .zip(lines)
        .flat_map(|(seq, entry)| Line { seq, entry }.encode())
        .collect();
    let recovered = journal::read(&bytes);
    assert_eq!(recovered.pending[0].readback.as_deref(), Some("absent"));
    let recovery = recovery::undo_recovered(recovered, &machines.places(), |_| {}).unwrap();
    assert_eq!(recovery.undo.left[0].why, Why::Refused);
    assert_eq!(machines.host.changes(), 0);
}

#[test]
fn a_user_is_left_out_by_this_kernel_and_recorded_again() {
    let _recorded = match RecordedUser::plant() {
        Ok(rule) => rule,
        Err(why) => {
            return skipped(format_args!(
                "sec.audit_rules: cannot add a rule of audit: {why}"
            ));
        }
    };
    let user = a_user_of_nobody();
    let ours = AuditRule::LeavesOut(user);
    let at = |wanted| {
        let rules = Live.audit_rules().unwrap();
        rules.iter().position(|rule| *rule == wanted)
    };
    let enabled = || match Live.ask(Question::Audit) {
        Ok(Answer::Audit(audit)) => audit.enabled,
        other => panic!("{other:?}"),
    };
    let was = enabled();
    let state = tempfile::tempdir().unwrap();
    let places = Places::host(Arc::new(Live));
    let context = Context::of_host(&Live, None, &[0]);
    let knob = rungwise_knobs::find("sec.audit_rules").unwrap();
    let plan = knob.plan(&context, &format!("uid={user}")).unwrap();
    assert_eq!(at(ours), None);

    let mut session = Session::begin(state.path(), places.clone(), "test").unwrap();
    let applied = session.apply(&plan).unwrap();
    let (here, records) = (at(ours), at(AuditRule::Records));
    let read = knob.current(&context).unwrap().value;
    let drift = plan.verify(&places).unwrap();
    let undo = session.undo(&applied);
    let after = at(ours);
    // Somebody deletes all rules, as augenrules does before it loads them.
    let _ = session.apply(&plan).unwrap();
    Live.set_left_out(user, false).unwrap();
    let late = session.close().unwrap();

    assert!(here.is_some() && here < records, "{here:?} {records:?}");
    assert_eq!(drift, []);
    assert!(
        read.as_ref()
            .is_ok_and(|read| read.contains(&user.to_string())),
        "{read:?}"
    );
    assert!(undo.complete(), "{}", undo.left_in_words());
    assert_eq!(after, None);
    assert!(late.settled[0].contains("held its old value"), "{late:?}");
    assert_eq!(
        Live.set_left_out(user, false).unwrap_err().kind(),
        std::io::ErrorKind::NotFound
    );
    assert_eq!(enabled(), was);
}
