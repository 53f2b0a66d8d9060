//! The one number of each rule that a change is judged by, and which way is worse.
//!
//! A rule may read twenty keys; its problem shows in one. That number in two captures shows whether changing a
//! knob had the intended effect. Rules about text or about a setting have none: for them only the outcome
//! counts.

use rungwise_model::evidence::{Evidence, Key, Quantity, Subject};

/// A number and its bad direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    pub(crate) key: &'static Key,
    pub(crate) worse: Worse,
}

/// The bad direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Worse {
    More,
    Less,
}

impl Measure {
    pub(crate) const fn more(key: &'static Key) -> Self {
        let worse = Worse::More;
        Self { key, worse }
    }

    pub(crate) const fn less(key: &'static Key) -> Self {
        let worse = Worse::Less;
        Self { key, worse }
    }

    /// The number for this subject; for a subject of another kind, or one that is gone (a connection after a
    /// restart), the worst of all.
    pub(crate) fn read<'e>(&self, evidence: &'e Evidence, subject: &str) -> Option<Quantity<'e>> {
        let same = subject
            .parse::<Subject>()
            .ok()
            .and_then(|subject| evidence.quantity(self.key, &subject).ok());
        same.or_else(|| {
            let all = evidence.each(self.key).ok()?.into_iter();
            let worst = all.max_by(|(_, a), (_, b)| match self.worse {
                Worse::More => a.value.total_cmp(&b.value),
                Worse::Less => b.value.total_cmp(&a.value),
            });
            Some(worst?.1)
        })
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_rule_reads_the_number_that_a_change_of_it_is_judged_by() {
        for rule in crate::RULES {
            if let Some(measure) = rule.measure {
                assert!(rule.needs.contains(&measure.key), "{}", rule.id);
            }
        }
    }
}
