//! Recommendations of a check: each wanted value with the finding behind it.
//!
//! A plan from a check contains the values that findings recommend, and nothing else: what needs your choice, what
//! belongs to the service and what cannot be planned here is listed with the reason.

use std::cmp::{Ordering, Reverse};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use rungwise_formats::task;
use rungwise_host::live::Live;
use rungwise_host::signals::Interrupt;
use rungwise_host::{Host as _, clock, machine};
use rungwise_knobs::{Context, Plan, Scope};
use rungwise_model::Exit;
use rungwise_model::check::{CheckReport, Finding, Outcome, Place, Recommendation};
use rungwise_model::evidence::Evidence;
use rungwise_rules::RULES;
use rungwise_rules::change::{self, Course};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::stored::Kind;
use crate::Invocation;
use crate::capture::Sampling;
use crate::network::Network;
use crate::problem::Problem;

/// A finding that a plan addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Asked {
    /// The rule.
    pub(super) rule: String,
    /// Its subject.
    pub(super) subject: String,
    /// Its sentence.
    pub(super) sentence: String,
    /// The recommended knob.
    pub(super) knob: String,
}

/// A recommendation that is in no plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(super) struct LeftOut {
    knob: String,
    rule: String,
    why: String,
}

/// Plans for what findings ask for.
#[derive(Debug, Default)]
pub(super) struct FromFindings {
    pub(super) plans: Vec<Plan>,
    pub(super) asked: Vec<Asked>,
    pub(super) left_out: Vec<LeftOut>,
}

/// A stored check of this host (`rungwise check --format json`).
pub(super) fn stored(path: &Path) -> anyhow::Result<CheckReport> {
    let report: CheckReport = Kind::Check.read(path)?;
    let here = machine::fingerprint(&Live).hostname;
    anyhow::ensure!(
        report.host.is_empty() || report.host == here,
        "cannot plan from {}: it judged the host '{}', and this is '{here}'; plan on the host that was checked",
        path.display(),
        report.host
    );
    let why = match report.place {
        Some(Place::Host) => return Ok(report),
        Some(Place::OtherNamespace) => format!(
            "it judged {}, and a plan made here would change the network of this namespace; check again in that one: \
             nsenter -n -t PID rungwise check --pid PID --format json -o check.json",
            report.target
        ),
        Some(Place::Capture) => format!(
            "it judged the capture {}, and the host may have changed since; run `rungwise check --format json -o check.json` here",
            report.target
        ),
        None => format!(
            "rungwise {} wrote it, before checks recorded where they were made; run `rungwise check --format json -o check.json` here",
            report.envelope.tool.version
        ),
    };
    anyhow::bail!("cannot plan from {}: {why}", path.display())
}

/// What this host shows in `window`; an error where a signal cut it short.
pub(super) fn observe(
    window: Duration,
    interrupt: &Interrupt,
    invocation: &Invocation<'_>,
) -> anyhow::Result<Evidence> {
    let capture = Sampling::over(window).capture(&Network::for_pid(None), interrupt, invocation)?;
    heed(interrupt)?;
    Ok(rungwise_probes::evidence(&capture))
}

/// An error if a signal came.
pub(super) fn heed(interrupt: &Interrupt) -> anyhow::Result<()> {
    if interrupt.raised() {
        let why = anyhow::anyhow!("interrupted");
        return Err(Problem::with(Exit::Interrupted, why));
    }
    Ok(())
}

/// Plans for the findings at or above `least`, the severest first, of a check of this time.
pub(super) fn plans(
    findings: &[Finding],
    taken: Option<&str>,
    least: Outcome,
    cpus: &[usize],
) -> FromFindings {
    let mut all = FromFindings::default();
    let mut wanted: Vec<(&str, Option<&str>, &str)> = Vec::new();
    for finding in findings.iter().filter(|finding| finding.outcome <= least) {
        let mut switch: Option<&str> = None;
        for turn in &finding.knobs {
            let leave = |why: String| LeftOut {
                knob: turn.id.clone(),
                rule: finding.rule.clone(),
                why,
            };
            let Some(to) = turn.to.as_deref() else {
                all.left_out
                    .push(leave("its value is your choice".to_owned()));
                continue;
            };
            if let Some(why) = other_process(to, taken) {
                all.left_out.push(leave(why));
                continue;
            }
            // What a finding asks for after a switch of the service may ruin the service without it.
            let is_switch = is_switch(turn, to);
            if let Some(switch) = switch.filter(|_| !is_switch) {
                let why = format!(
                    "{} recommends it only together with {switch}, a switch of the service; alone it may do harm; start the service \
                     with {switch} and check again",
                    finding.rule
                );
                all.left_out.push(leave(why));
                continue;
            }
            if is_switch {
                switch = Some(&turn.id);
            }
            let device = turn.device.as_deref();
            let before = wanted
                .iter()
                .find(|(knob, on, _)| *knob == turn.id && *on == device);
            match before {
                Some((_, _, same)) if *same == to => {}
                Some((_, _, other)) => {
                    let why = format!("a more severe finding recommends {other} instead of {to}");
                    all.left_out.push(leave(why));
                    continue;
                }
                None => match plan(turn, to, cpus).and_then(|plan| {
                    // Two knobs may turn one file.
                    super::conflict(&all.plans, &plan).map_or(Ok(plan), Err)
                }) {
                    Ok(plan) => {
                        wanted.push((&turn.id, device, to));
                        all.plans.push(plan);
                    }
                    Err(why) => {
                        all.left_out.push(leave(why));
                        continue;
                    }
                },
            }
            all.asked.push(Asked {
                rule: finding.rule.clone(),
                subject: finding.subject.clone(),
                sentence: finding.sentence.clone(),
                knob: turn.id.clone(),
            });
        }
    }
    all
}

/// Why a value for running processes, `PID,...:VALUE`, is not for those that have these ids now.
fn other_process(to: &str, taken: Option<&str>) -> Option<String> {
    /// Date and time to the second.
    const SECONDS: usize = "2026-11-28T15:19:24".len();
    let (pids, _) = to.split_once(':')?;
    let pids: Vec<u32> = pids
        .split(',')
        .map(|pid| pid.parse().ok())
        .collect::<Option<_>>()?;
    let taken = taken.and_then(|taken| taken.get(..SECONDS));
    pids.into_iter().find_map(|pid| match started(pid) {
        None => Some(format!("process {pid} has ended; check again")),
        Some(started) if taken.is_some() && started.get(..SECONDS) > taken => Some(format!(
            "process {pid} started after the check; check again"
        )),
        Some(_) => None,
    })
}

/// When a process started, as RFC 3339 in UTC, by the start of the machine (`btime`) and its ticks since; may be a second off. Nothing where
/// it cannot be seen.
fn started(pid: u32) -> Option<String> {
    let text = |path: &str| String::from_utf8(Live.read(path.as_ref()).ok()?).ok();
    let stat = text(&format!("/proc/{pid}/stat"))?;
    let ticks = i64::try_from(task::stat(&stat)?.started).ok()?;
    let booted = text("/proc/stat")?;
    let booted = booted.lines().find_map(|line| line.strip_prefix("btime "));
    let booted: i64 = booted?.trim().parse().ok()?;
    // Ticks are hundredths of a second to programs (USER_HZ).
    clock::utc(
        booted
            .checked_mul(1_000_000_000)?
            .checked_add(ticks.checked_mul(10_000_000)?)?,
    )
}

/// Whether it is set where the service is started; a value such as `PID:LIST` changes the running processes themselves.
fn is_switch(turn: &Recommendation, to: &str) -> bool {
    let context = Context::of_host(&Live, turn.device.as_deref(), &[]);
    rungwise_knobs::find(&turn.id).is_ok_and(|knob| {
        knob.scope == Scope::Service
            && (knob.plan(&context, to)).map_or(true, |plan| plan.service().next().is_some())
    })
}

fn plan(turn: &Recommendation, to: &str, cpus: &[usize]) -> Result<Plan, String> {
    let knob = rungwise_knobs::find(&turn.id).map_err(|error| error.to_string())?;
    let context = Context::of_host(&Live, turn.device.as_deref(), cpus);
    let plan = knob.plan(&context, to).map_err(|error| error.to_string())?;
    if plan.service().next().is_some() {
        return Err(format!(
            "it is a switch of the service: start the service with {to}, or name it in a scenario and let `rungwise tune` measure it"
        ));
    }
    // One thing that only a person can do would make the engine refuse all of them.
    if let Some(text) = plan.by_hand().next() {
        return Err(format!("done by hand: {text}"));
    }
    Ok(plan)
}

/// What is not planned, for people.
pub(super) fn tell_left_out(left_out: &[LeftOut], text: &mut String) {
    for LeftOut { knob, rule, why } in left_out {
        let _ = writeln!(text, "not planned: {knob}, recommended by {rule}: {why}");
    }
}

/// The state of a finding after its knob was changed.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Aftermath {
    rule: String,
    subject: String,
    /// gone, weaker, unchanged, worse, or not decidable.
    symptom: &'static str,
    /// The rule's own number before and after, where it has one.
    numbers: Option<(String, String)>,
    /// What to do about it; from `knob-no-effect` and `bottleneck-moved`.
    notes: Vec<String>,
}

/// Compares the evidence before the turn with that after it, for every finding that asked.
pub(super) fn aftermath(asked: &[Asked], before: &Evidence, after: &Evidence) -> Vec<Aftermath> {
    let steps = change::changed(before, after);
    let mut all: Vec<Aftermath> = Vec::new();
    for one in asked {
        let is_same = |known: &Aftermath| known.rule == one.rule && known.subject == one.subject;
        if all.iter().any(is_same) {
            continue;
        }
        let rule = RULES.iter().find(|rule| rule.id == one.rule);
        let step = steps.iter().find(|step| step.rule == one.rule);
        // The rule as a whole is judged by its severest row, which may be about another device.
        let own = |evidence: &Evidence| {
            let found = rule.map_or_else(Vec::new, |rule| rule.findings(evidence));
            found
                .into_iter()
                .find(|finding| finding.subject == one.subject && finding.outcome <= Outcome::Watch)
        };
        let about_it = step.is_some_and(|step| {
            let rows = [&step.before, &step.after];
            let found = rows.iter().filter(|row| row.outcome <= Outcome::Watch);
            found.clone().count() > 0 && found.clone().all(|row| row.subject == one.subject)
        });
        let course = match step.map(|step| step.course) {
            course if about_it => course,
            None | Some(Course::Unknown) => None,
            Some(_) => match (own(before), own(after)) {
                (Some(_), None) => Some(Course::Gone),
                (None, Some(_)) => Some(Course::Come),
                (Some(was), Some(is)) => Some(by_weight(&was, &is)),
                (None, None) => None,
            },
        };
        let symptom = match course {
            Some(Course::Gone) => "gone",
            Some(Course::Eased) => "weaker",
            Some(Course::Same) => "unchanged",
            Some(Course::Worse | Course::Come) => "worse",
            Some(Course::Unknown) | None => "not decidable",
        };
        let first = all.iter().all(|known| known.rule != one.rule);
        let notes = rule
            .filter(|_| first && about_it)
            .map_or_else(Vec::new, |rule| {
                change::judge(rule, before, after)
                    .into_iter()
                    .filter(|finding| finding.outcome <= Outcome::Watch)
                    .map(|finding| finding.sentence)
                    .collect()
            });
        all.push(Aftermath {
            rule: one.rule.clone(),
            subject: one.subject.clone(),
            symptom,
            numbers: step
                .filter(|_| about_it)
                .and_then(|step| step.numbers.clone()),
            notes,
        });
    }
    all
}

/// Two rows about one subject, by what they weigh.
fn by_weight(was: &Finding, is: &Finding) -> Course {
    let weight = |row: &Finding| (Reverse(row.outcome), row.severity);
    match weight(is).cmp(&weight(was)) {
        Ordering::Less => Course::Eased,
        Ordering::Equal => Course::Same,
        Ordering::Greater => Course::Worse,
    }
}

impl Aftermath {
    /// One line, and what follows from it.
    pub(super) fn tell(&self, text: &mut String) {
        let numbers = self
            .numbers
            .as_ref()
            .map_or_else(String::new, |(before, after)| {
                format!(": {before} before, {after} after")
            });
        let _ = writeln!(
            text,
            "{} on {}: the symptom is {}{numbers}",
            self.rule, self.subject, self.symptom
        );
        for note in &self.notes {
            let _ = writeln!(text, "  {note}");
        }
    }
}

#[cfg(test)]
mod tests {
    use rungwise_model::evidence::{Absence, Origin, Subject};
    use rungwise_model::keys;

    use super::*;

    fn asking(rule: &str, knob: &str, to: &str) -> Finding {
        let mut finding = Finding::act(&Subject::host(), "too small").turn(knob, to);
        rule.clone_into(&mut finding.rule);
        finding
    }

    fn planned(findings: &[Finding], least: Outcome, cpus: &[usize]) -> FromFindings {
        plans(findings, None, least, cpus)
    }

    #[test]
    fn one_knob_is_planned_once_and_a_second_value_is_left_out_with_the_reason() {
        let findings = [
            asking("a", "net.netdev_max_backlog", "600"),
            asking("b", "net.netdev_max_backlog", "600"),
            asking("c", "net.netdev_max_backlog", "900"),
        ];
        let all = planned(&findings, Outcome::Act, &[0]);
        assert_eq!(all.plans.len(), 1, "{:?}", all.left_out);
        assert_eq!(all.asked.len(), 2);
        assert_eq!(all.left_out.len(), 1);
        assert!(all.left_out[0].why.contains("recommends 600"));
    }

    #[test]
    fn a_switch_of_the_service_and_a_choice_are_not_planned() {
        let findings = [
            asking("a", "sock.reuseport", "on"),
            Finding::act(&Subject::host(), "full").consider("net.conntrack"),
            asking("b", "net.irqbalance_stop", "ban"),
        ];
        let all = planned(&findings, Outcome::Act, &[0]);
        assert!(all.plans.is_empty());
        let whys: Vec<&str> = all.left_out.iter().map(|left| left.why.as_str()).collect();
        assert!(whys[0].contains("switch of the service"), "{whys:?}");
        assert!(whys[1].contains("your choice"), "{whys:?}");
        assert!(!whys[2].is_empty(), "{whys:?}");
    }

    #[test]
    fn what_belongs_to_a_switch_of_the_service_is_not_planned_without_it() {
        let mut finding =
            asking("rps-needed", "sock.reuseport", "on").turn_device("net.rps_cpus", "lo", "all");
        let all = planned(std::slice::from_ref(&finding), Outcome::Act, &[0]);
        assert!(all.plans.is_empty() && all.asked.is_empty());
        let left: Vec<&str> = all.left_out.iter().map(|left| left.knob.as_str()).collect();
        assert_eq!(left, ["sock.reuseport", "net.rps_cpus"]);
        let why = &all.left_out[1].why;
        assert!(why.contains("only together with sock.reuseport"), "{why}");
        // Before it, or beside one that a person has to choose, a knob of the host stands for itself.
        finding.knobs.reverse();
        let one = |finding: &Finding| planned(std::slice::from_ref(finding), Outcome::Act, &[0]);
        assert_eq!(one(&finding).plans.len(), 1);
        finding.knobs.reverse();
        finding.knobs[0].to = None;
        assert_eq!(one(&finding).plans.len(), 1);
    }

    #[test]
    fn what_is_only_worth_watching_is_planned_on_request() {
        let mut finding = asking("a", "net.netdev_max_backlog", "600");
        finding.outcome = Outcome::Watch;
        let findings = [finding];
        assert!(planned(&findings, Outcome::Act, &[0]).plans.is_empty());
        assert_eq!(planned(&findings, Outcome::Watch, &[0]).plans.len(), 1);
    }

    /// A host whose table of connections is so full, over the whole window.
    fn tracking(share: f64) -> Evidence {
        let mut evidence = Evidence::over(10.0);
        let origin = || Origin::new("x", "y");
        let parts = vec![share; 3];
        evidence.series(
            &keys::CONNTRACK_USE,
            Subject::host(),
            share,
            parts,
            origin(),
        );
        evidence.number(&keys::CONNTRACK_DROPPED, Subject::host(), 0.0, origin());
        evidence
    }

    fn asked(rule: &str, subject: &str) -> Asked {
        Asked {
            rule: rule.to_owned(),
            subject: subject.to_owned(),
            sentence: String::new(),
            knob: String::new(),
        }
    }

    fn aftermath_text(asked: &[Asked], before: &Evidence, after: &Evidence) -> String {
        let mut text = String::new();
        for symptom in aftermath(asked, before, after) {
            symptom.tell(&mut text);
        }
        text
    }

    #[test]
    fn a_symptom_is_gone_weaker_unchanged_worse_or_not_decidable() {
        let full = [asked("conntrack-full", "host")];
        let mut silent = Evidence::over(10.0);
        silent.absent(
            &[&keys::CONNTRACK_USE, &keys::CONNTRACK_DROPPED],
            &Absence::because("it was not read"),
            "x",
        );
        for (after, symptom) in [
            (tracking(0.4), "gone"),
            (tracking(0.88), "weaker: 97 % before, 88 % after"),
            (tracking(0.97), "unchanged: 97 % before, 97 % after"),
            (tracking(0.99), "worse: 97 % before, 99 % after"),
            (silent, "not decidable"),
        ] {
            let said = aftermath_text(&full, &tracking(0.97), &after);
            let wanted = format!("conntrack-full on host: the symptom is {symptom}");
            assert!(said.starts_with(&wanted), "{wanted}\n{said}");
        }
    }

    #[test]
    fn a_symptom_that_did_not_move_says_to_take_the_change_back() {
        let full = [asked("conntrack-full", "host")];
        let said = aftermath_text(&full, &tracking(0.97), &tracking(0.97));
        assert!(said.contains("revert the change"), "{said}");
    }

    #[test]
    fn a_rule_that_does_not_exist_is_not_decidable() {
        let unknown = [asked("no-such-rule", "host")];
        let said = aftermath_text(&unknown, &tracking(0.97), &tracking(0.4));
        assert!(said.contains("not decidable"), "{said}");
    }

    /// A host whose devices lose this share of their packets for lack of a buffer.
    fn losing(devices: &[(&str, f64)]) -> Evidence {
        let mut evidence = Evidence::over(10.0);
        for (device, share) in devices {
            for (key, value) in [
                (&keys::DEVICE_MISSED_SHARE, *share),
                (&keys::DEVICE_MISSED, share * 1e6),
                (&keys::RING_RX, 512.0),
                (&keys::RING_RX_MAXIMUM, 4096.0),
            ] {
                let origin = Origin::new("x", "y");
                evidence.series(key, Subject::device(device), value, vec![value; 3], origin);
            }
        }
        evidence
    }

    #[test]
    fn each_device_that_asked_is_judged_by_itself() {
        let both = ["device/eth0", "device/eth1"].map(|device| asked("nic-ring-drop", device));
        let before = losing(&[("eth0", 0.004), ("eth1", 0.003)]);
        let after = losing(&[("eth0", 0.0), ("eth1", 0.003)]);
        let said = aftermath_text(&both, &before, &after);
        let wanted = [
            "nic-ring-drop on device/eth0: the symptom is gone\n",
            "nic-ring-drop on device/eth1: the symptom is unchanged\n",
        ];
        for wanted in wanted {
            assert!(said.contains(wanted), "{wanted}\n{said}");
        }
    }
}
