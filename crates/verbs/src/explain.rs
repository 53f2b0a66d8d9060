//! Explains a rule, a knob, a probe or a workload, from the registries that the program itself uses.

use rungwise_host::clock;
use rungwise_jvm::OPTION_RULES;
use rungwise_knobs::KNOBS;
use rungwise_load::WORKLOADS;
use rungwise_model::Exit;
use rungwise_probes::PROBES;
use rungwise_rules::change::CHANGES;
use rungwise_rules::{RULES, measured};
use serde::Serialize;

use crate::Invocation;
use crate::printed::Printed;

/// Explain a rule, a knob, a probe or a workload by its id.
#[derive(Debug, clap::Args)]
pub struct Request {
    /// Its id: a rule such as `udp-socket-lock`, a knob such as `net.rps_cpus`, a probe such as `softnet-stat`, a workload
    /// such as `udp`.
    pub id: String,
}

/// The explanation of an id.
#[derive(Serialize)]
struct Explained {
    id: String,
    kind: &'static str,
    /// Markdown.
    page: String,
    /// For a rule: the parameters at which planted faults hurt, and those from which the rule names them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    measured: Vec<Curve>,
}

/// One kind of fault in one service. Parameters are `name=value`, separated by spaces.
#[derive(Serialize)]
struct Curve {
    fault: String,
    about: String,
    r#in: String,
    harmless_up_to: Option<String>,
    weak_from: Option<String>,
    hurts_from: Option<String>,
    watch_from: Option<String>,
    act_from: Option<String>,
    trials: usize,
    source: String,
}

impl From<measured::Measured> for Curve {
    fn from(row: measured::Measured) -> Self {
        let params = |point: Option<measured::Point>| point.map(|point| point.params);
        Self {
            source: row.source(),
            fault: row.kind,
            about: row.about,
            r#in: row.place,
            harmless_up_to: params(row.harmless),
            weak_from: params(row.weak),
            hurts_from: params(row.hurts),
            watch_from: params(row.watch),
            act_from: params(row.act),
            trials: row.trials,
        }
    }
}

/// Least likeness of an id that is offered for a slip; the same as for knobs alone.
const LIKE: f64 = 0.8;

/// The explanation of an id.
pub fn run(request: &Request, invocation: &Invocation<'_>) -> anyhow::Result<Printed> {
    let started = clock::utc_now();
    let id = request.id.as_str();
    let Some((kind, page)) = page(id) else {
        let near = ids()
            .map(|known| (strsim::jaro_winkler(known, id), known))
            .filter(|(likeness, _)| *likeness > LIKE)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map_or_else(
                || {
                    "; `rungwise check` names rules, `rungwise knob list` shows the knobs"
                        .to_owned()
                },
                |(_, known)| format!("; did you mean {known}?"),
            );
        anyhow::bail!("cannot explain '{id}': no rule, knob, probe or workload has this id{near}");
    };
    let body = Explained {
        id: id.to_owned(),
        kind,
        page: page.clone(),
        measured: measured::measurements(id)
            .into_iter()
            .map(Curve::from)
            .collect(),
    };
    let envelope = invocation.envelope("explain", started, Exit::Done);
    Printed::new("explain", envelope, page, body)
}

fn page(id: &str) -> Option<(&'static str, String)> {
    let rule = RULES.iter().find(|rule| rule.id == id);
    let change = CHANGES.iter().find(|change| change.id == id);
    let knob = KNOBS.iter().find(|knob| knob.id == id);
    let probe = PROBES.iter().find(|probe| probe.id == id);
    let option_rule = OPTION_RULES.iter().find(|rule| rule.id == id);
    let workload = WORKLOADS.iter().find(|workload| workload.id == id);
    rule.map(|rule| ("rule", rule.page()))
        .or_else(|| change.map(|change| ("rule", change.page())))
        .or_else(|| knob.map(|knob| ("knob", knob.page())))
        .or_else(|| probe.map(|probe| ("probe", probe.page())))
        .or_else(|| option_rule.map(|rule| ("rule", rule.page())))
        .or_else(|| workload.map(|workload| ("workload", workload.page())))
}

fn ids() -> impl Iterator<Item = &'static str> {
    let rules = RULES.iter().map(|rule| rule.id);
    let changes = CHANGES.iter().map(|change| change.id);
    let knobs = KNOBS.iter().map(|knob| knob.id);
    let probes = PROBES.iter().map(|probe| probe.id);
    let option_rules = OPTION_RULES.iter().map(|rule| rule.id);
    let workloads = WORKLOADS.iter().map(|workload| workload.id);
    rules
        .chain(changes)
        .chain(knobs)
        .chain(probes)
        .chain(option_rules)
        .chain(workloads)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn what_was_measured_of_a_rule_is_on_its_page_and_in_its_document() {
        let rows = RULES
            .iter()
            .flat_map(|rule| measured::measurements(rule.id));
        let mut count = 0;
        for row in rows {
            count += 1;
            let (_, page) = page(&row.rule).unwrap();
            let sentence = row.sentence();
            assert!(page.contains(&sentence), "{}: {sentence}", row.rule);
            let hurts = row.hurts.clone().map(|point| point.params);
            let curve = serde_json::to_value(Curve::from(row.clone())).unwrap();
            assert_eq!(curve["fault"], row.kind.as_str());
            assert_eq!(curve["hurts_from"], serde_json::json!(hurts));
            assert!(page.contains(curve["source"].as_str().unwrap()));
        }
        assert!(count > 0, "no curve is embedded");
    }

    #[test]
    fn one_id_means_one_thing() {
        let mut seen = BTreeSet::new();
        for id in ids() {
            assert!(seen.insert(id), "{id} twice");
            assert!(page(id).is_some(), "{id}");
        }
    }
}
