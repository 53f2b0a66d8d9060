//! System call auditing: whether it is on, and its rules.
//!
//! The state is queried from the kernel; the rules are read from the files that they are loaded from. Sources:
//! kernel/audit.c (Linux 6.18), auditctl(8).

use rungwise_model::evidence::{Evidence, Origin, Subject};
use rungwise_model::kernel::{Answer, Question};
use rungwise_model::keys;

use crate::window::misplaced;
use crate::{Cost, Need, Probe, Source, When, Window};

const STATE: &str = "AUDIT_GET (auditctl -s)";
const FILES: &str = "/etc/audit/rules.d/*.rules";
const LOADED: &str = "/etc/audit/audit.rules";

/// The probe.
pub(crate) static PROBE: Probe = Probe {
    id: "audit",
    summary: "whether system calls are audited, and the rules",
    cost: Cost::Free,
    needs: &[Need::Root],
    sources: &[
        Source::ask(Question::Audit, When::Once),
        Source::once(LOADED),
        Source::once(FILES),
    ],
    yields: &[&keys::AUDIT_ENABLED, &keys::AUDIT_RULES],
    derive,
    doc: "\
With auditing off (enabled 0) system calls are not checked at all; enabled 2 is on and cannot be switched off before \
a reboot. The kernel answers in the initial user namespace only. The rules are those of /etc/audit/audit.rules, which \
augenrules generates from rules.d, or those of rules.d if that file is missing; rules loaded by hand since are not \
included. Sources: kernel/audit.c of Linux 6.18; auditctl(8), augenrules(8).",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    match window.answer("audit") {
        Ok(Answer::Audit(audit)) => {
            let line = format!(
                "enabled {}, pid {}, lost {}, backlog {}",
                audit.enabled, audit.pid, audit.lost, audit.backlog
            );
            let on = f64::from(u8::from(audit.enabled > 0));
            evidence.number(
                &keys::AUDIT_ENABLED,
                Subject::host(),
                on,
                Origin::new(STATE, line),
            );
        }
        Ok(other) => {
            evidence.absent(&[&keys::AUDIT_ENABLED], &misplaced("audit", other), STATE);
        }
        Err(why) => evidence.absent(&[&keys::AUDIT_ENABLED], &why, STATE),
    }
    rules(window, evidence);
}

fn rules(window: &Window<'_>, evidence: &mut Evidence) {
    let mut read = Vec::new();
    if let Ok(text) = window.text(LOADED) {
        read.push((LOADED, text));
    } else {
        let parts = window.matching(FILES).into_iter();
        read.extend(parts.filter_map(|(path, _)| Some((path, window.text(path).ok()?))));
    }
    let found: Vec<&str> = read
        .iter()
        .flat_map(|(_, text)| text.lines())
        .filter(|line| is_rule(line))
        .collect();
    let said = match found.first() {
        None => String::new(),
        Some(first) => format!("{} rules, the first: {}", found.len(), first.trim()),
    };
    let source = read.first().map_or(LOADED, |(path, _)| path);
    let line = if read.is_empty() {
        "no file of rules can be read".to_owned()
    } else {
        said.clone()
    };
    evidence.text(
        &keys::AUDIT_RULES,
        Subject::host(),
        said,
        Origin::new(source, line),
    );
}

/// A line that adds a rule: for a system call (`-a`, `-A`) or a file (`-w`).
fn is_rule(line: &str) -> bool {
    let first = line.split_ascii_whitespace().next();
    matches!(first, Some("-a" | "-A" | "-w"))
}
