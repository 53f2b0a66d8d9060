//! Values that rungwise itself set and that should still be in force, from its open journals.
//!
//! The caller reads the journals, since they belong to the knob engine; their contents become an answer like any other
//! and are stored in the capture.

use rungwise_model::evidence::{Evidence, Kind, Origin, Subject};
use rungwise_model::kernel::Answer;
use rungwise_model::keys;

use crate::probe::{Cost, Probe};
use crate::window::Window;

/// Source shown to the user.
const SOURCE: &str = "open journals of rungwise";

/// `kept-settings`
pub(crate) static PROBE: Probe = Probe {
    id: "kept-settings",
    summary: "values set by `knob apply`, and whether they are still in force",
    cost: Cost::Free,
    needs: &[],
    sources: &[],
    yields: &[
        &keys::SETTING_FOUND,
        &keys::SETTING_OPEN,
        &keys::SETTING_WANTED,
    ],
    derive,
    doc: "The state directory is read by the user of `check`, and each target of an open journal is read again. \
          Journals of another user's state directory are not seen.",
};

fn derive(window: &Window<'_>, evidence: &mut Evidence) {
    let settings = match window.answer("settings") {
        Ok(Answer::Settings(settings)) => settings,
        Ok(_) => return,
        Err(why) => return evidence.absent(PROBE.yields, &why, SOURCE),
    };
    let origin = |line: String| Origin::new(SOURCE, line);
    evidence.number(
        &keys::SETTING_OPEN,
        Subject::host(),
        settings.len() as f64,
        origin(format!("{} values", settings.len())),
    );
    for kept in settings {
        let subject = Subject::new(
            Kind::Setting,
            format!("{}:{}", kept.knob, place(&kept.target)),
        );
        let line = |value: &str| origin(format!("{}: {value}", kept.target));
        evidence.text(
            &keys::SETTING_WANTED,
            subject.clone(),
            kept.wanted.as_str(),
            line(&kept.wanted),
        );
        if let Some(found) = &kept.found {
            evidence.text(&keys::SETTING_FOUND, subject, found.as_str(), line(found));
        }
    }
}

/// A short name of a target: `irq/41` of `/proc/irq/41/smp_affinity_list`.
fn place(target: &str) -> &str {
    target
        .strip_prefix("/proc/")
        .and_then(|rest| rest.strip_suffix("/smp_affinity_list"))
        .unwrap_or(target)
}

#[cfg(test)]
mod tests {
    use rungwise_model::evidence::Value;
    use rungwise_model::kernel::KeptSetting;

    use super::*;
    use crate::capture::{Capture, Moment, Reply};

    fn evidence(settings: Vec<KeptSetting>) -> Evidence {
        let mut moment = Moment::default();
        let reply = Reply::Answer(Answer::Settings(settings));
        moment.answers.insert("settings".to_owned(), reply);
        let capture = Capture {
            moments: vec![moment],
            ..Capture::default()
        };
        let mut evidence = Evidence::over(0.0);
        derive(&Window::of(&capture), &mut evidence);
        evidence
    }

    #[test]
    fn an_interrupt_that_moved_back_shows_both_values() {
        let kept = KeptSetting {
            knob: "net.irq_affinity".to_owned(),
            target: "/proc/irq/41/smp_affinity_list".to_owned(),
            wanted: "3".to_owned(),
            found: Some("0".to_owned()),
        };
        let evidence = evidence(vec![kept]);
        let subject = "setting/net.irq_affinity:irq/41".parse().unwrap();
        let value = |key| &evidence.reading(key, &subject).unwrap().value;
        assert_eq!(value(&keys::SETTING_WANTED), &Value::Text("3".to_owned()));
        assert_eq!(value(&keys::SETTING_FOUND), &Value::Text("0".to_owned()));
    }

    #[test]
    fn no_journal_is_a_zero_and_not_an_absence() {
        let open = evidence(Vec::new());
        assert!(open.host(&keys::SETTING_OPEN).unwrap().value.abs() < 1e-9);
    }
}
