//! What a scenario says about knobs against the knobs that exist.

use rungwise_host::Host;
use rungwise_knobs::{Context, Error, KNOBS, Knob, Scope, Settable};

use super::Topology;
use super::problem::{Problem, any_of, did_you_mean};

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

/// Every disagreement with the knobs there are, and with what they can do on `machine`.
pub(super) fn check(named: &[Named], topology: &Topology, machine: &dyn Host) -> Vec<Problem> {
    let switches: Vec<&str> = named
        .iter()
        .filter(|name| name.switch)
        .map(|name| name.knob.as_str())
        .collect();
    let disagreement = |name| disagreement(name, &switches, topology, machine);
    named.iter().filter_map(disagreement).collect()
}

fn disagreement(
    name: &Named,
    switches: &[&str],
    topology: &Topology,
    machine: &dyn Host,
) -> Option<Problem> {
    let id = name.knob.as_str();
    let at = |place: &Problem, message: String| {
        Some(Problem {
            message,
            ..place.clone()
        })
    };
    let Some(knob) = KNOBS.iter().find(|knob| knob.id == id) else {
        // A service may have switches that rungwise has never heard of; but not by a slip.
        if name.switch {
            let near = slipped(id)?;
            return at(
                &name.id_at,
                format!(
                    "there is no knob '{id}'; did you mean '{near}'? If it is your own switch, give it a less similar name"
                ),
            );
        }
        let known = KNOBS.iter().map(|knob| knob.id);
        let near = did_you_mean(id, known.chain(switches.iter().copied()));
        return at(
            &name.id_at,
            format!(
                "there is no knob '{id}'{near}; declare switches of your service in [service.switches]"
            ),
        );
    };
    match (knob.scope == Scope::Service, name.switch) {
        (true, false) if knob.is_of_java() => {
            let value = name.value.as_deref()?;
            if knob.java_change(value).is_some() {
                return None;
            }
            let message = format!("'{value}' is no value of '{id}'; write {}", knob.values);
            at(&name.value_at, message)
        }
        (true, false) => at(
            &name.id_at,
            format!("'{id}' is a service switch; declare its arguments in [service.switches]"),
        ),
        (false, true) => at(
            &name.id_at,
            format!(
                "'{id}' is a machine knob, which rungwise sets itself; remove it from [service.switches]"
            ),
        ),
        (true, true) => None,
        (false, false) => {
            if let Some(why) = not_in_a_run(knob) {
                return at(
                    &name.id_at,
                    format!("'{id}' is never changed in a run: {why}; use 'observe' instead"),
                );
            }
            let words = words(knob.values);
            let value = name.value.as_deref()?;
            if !words.is_empty() && !words.contains(&value) {
                let near = did_you_mean(value, words.iter().copied());
                return at(
                    &name.value_at,
                    format!("'{value}' is not {}{near}", any_of(words)),
                );
            }
            if let Err(wrong) = knob.judge(machine, value) {
                return at(&name.value_at, wrong.to_string());
            }
            let why = impossible(knob, value, topology, machine)?;
            at(&name.id_at, format!("{why}; remove it, or use 'observe'"))
        }
    }
}

/// Why `knob` cannot be turned to `value` where the run takes place, as far as that is known before there is a lab.
/// Only what is certain: what needs a right is skipped when its turn comes, and the report says so.
fn impossible(knob: &Knob, value: &str, topology: &Topology, machine: &dyn Host) -> Option<String> {
    let device = match topology {
        Topology::Host { device } => device.as_deref(),
        Topology::Namespaces { .. } => None,
    };
    let known = knob.scope == Scope::Host || device.is_some();
    if !known {
        return knob.needs_hardware().then(|| {
            format!(
                "'{}' is a hardware setting, and veth devices have no hardware; name a physical device: topology = {{ kind = \"host\", \
                 device = \"eth0\" }}",
                knob.id
            )
        });
    }
    // Nothing of a plan depends on how many CPUs `all` stands for, but what it would write.
    let context = Context::of_host(machine, device, &[0]);
    match knob.plan(&context, value) {
        Err(error @ (Error::Absent { .. } | Error::BadWish { .. } | Error::NoDevice { .. })) => {
            Some(error.to_string())
        }
        Ok(_) | Err(_) => None,
    }
}

/// The knob whose id differs from `id` by a slip: one letter in ten at most (a guess).
fn slipped(id: &str) -> Option<&'static str> {
    let likeness = |knob: &str| strsim::normalized_damerau_levenshtein(id, knob);
    let near = KNOBS.iter().map(|knob| knob.id);
    near.max_by(|a, b| likeness(a).total_cmp(&likeness(b)))
        .filter(|near| likeness(near) >= 0.9)
}

/// Why a run never turns this knob, if it does not.
pub(crate) fn not_in_a_run(knob: &Knob) -> Option<&'static str> {
    match knob.settable {
        Settable::No(why) => Some(why),
        Settable::Yes if knob.id == "bios.smt" => Some(
            "it changes which CPUs exist, and a run assigns CPUs before it starts; set it with rungwise knob apply and measure again",
        ),
        Settable::Yes => None,
    }
}

/// The values of a knob that takes nothing but words (`off, list or forwarding`); empty for any other, whose values
/// the knob itself reads when its turn comes.
fn words(values: &str) -> Vec<&str> {
    let list: Vec<&str> = values
        .split(", ")
        .flat_map(|part| part.split(" or "))
        .collect();
    let plain = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase());
    if list.iter().all(plain) {
        list
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn only_plain_words_are_a_complete_list() {
        assert_eq!(words("on or off"), ["on", "off"]);
        assert_eq!(
            words("off, list or forwarding"),
            ["off", "list", "forwarding"]
        );
        assert!(words("off, all, or a CPU list such as 0-3,8").is_empty());
        assert!(words("0 (off), 1 (strict) or 2 (loose)").is_empty());
    }
}
