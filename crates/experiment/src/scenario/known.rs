//! What a scenario says about knobs against the knobs that exist.
//!
//! The list comes from the caller: the scenario crate reads files, it does not know the machine.

use super::problem::{Problem, any_of, did_you_mean};

/// A knob that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnobInfo<'a> {
    /// Its id.
    pub id: &'a str,
    /// It is a switch of the service, not of the machine.
    pub of_service: bool,
    /// The values it takes; empty where it takes more than a list can hold.
    pub values: &'a [&'a str],
}

/// A place in the file that names a knob.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub knob: String,
    /// What it is set to there; absent where a switch is declared.
    pub value: Option<String>,
    /// It is declared in `[service.switches]`.
    pub switch: bool,
    /// Key, line and column of the id.
    pub id_at: Problem,
    /// The same of the value.
    pub value_at: Problem,
}

/// Every disagreement with `knobs`.
pub(super) fn check(named: &[Named], knobs: &[KnobInfo<'_>]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for name in named {
        let id = name.knob.as_str();
        let at = |place: &Problem, message: String| Problem {
            message,
            ..place.clone()
        };
        match knobs.iter().find(|knob| knob.id == id) {
            // A service may have switches that rungwise has never heard of.
            None if name.switch => {}
            None => {
                let near = did_you_mean(id, knobs.iter().map(|knob| knob.id));
                problems.push(at(
                    &name.id_at,
                    format!("there is no knob '{id}'{near}; a switch of your service is declared in [service.switches]"),
                ));
            }
            Some(knob) if knob.of_service && !name.switch => problems.push(at(
                &name.id_at,
                format!("'{id}' is a switch of the service; declare its arguments in [service.switches]"),
            )),
            Some(knob) if !knob.of_service && name.switch => problems.push(at(
                &name.id_at,
                format!("'{id}' is a knob of the machine, which rungwise turns itself; take it out of [service.switches]"),
            )),
            Some(knob) if !name.switch && !knob.values.is_empty() => {
                if let Some(value) = name.value.as_deref().filter(|value| !knob.values.contains(value)) {
                    let near = did_you_mean(value, knob.values.iter().copied());
                    let listed = any_of(knob.values.iter().copied());
                    problems.push(at(&name.value_at, format!("'{value}' is not {listed}{near}")));
                }
            }
            Some(_) => {}
        }
    }
    problems
}
