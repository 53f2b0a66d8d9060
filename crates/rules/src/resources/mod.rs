//! The USE table: utilisation, saturation and errors of every resource, each low, high or not seen.
//!
//! A check may report that nothing was found only if it covered everything that can run out (Brendan Gregg, "The USE
//! Method"). Rules look for causes; this table looks for effects, whatever caused them. Each row is data: the readings of a
//! cell, the threshold of each, and the rules that explain a reading beyond it. A reading that no rule explains becomes a
//! finding of the residual rules.

mod explain;
mod table;

use rungwise_model::check::{Cell, Level, Resource};
use rungwise_model::evidence::{Evidence, Key, Missing, Quantity, Reading, Subject};

pub use explain::owned_counters;
pub(crate) use explain::{Owner, explained_by, owner};
pub(crate) use table::ROWS;

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// How much is in use; empty if that makes no sense.
    pub(crate) utilisation: &'static [Gauge],
    pub(crate) saturation: &'static [Gauge],
    pub(crate) errors: &'static [Gauge],
}

/// A reading with its threshold.
#[derive(Debug)]
pub(crate) struct Gauge {
    pub(crate) key: &'static Key,
    /// From here on it is high.
    pub(crate) line: f64,
    /// Where the threshold comes from.
    pub(crate) origin: &'static str,
    /// A small number counts as high.
    pub(crate) falls: bool,
    /// What it means to be high.
    pub(crate) means: Means,
    /// Rules that find causes of it, most likely first.
    pub(crate) rules: &'static [&'static str],
    /// Every subject must be read for the cell to be low: one that is missing may be the one that is full.
    pub(crate) all: bool,
    /// It stands in for this reading, and counts only where that one is missing.
    pub(crate) instead_of: Option<&'static Key>,
    /// If this holds, a missing reading does not matter.
    pub(crate) moot: Option<fn(&Evidence) -> bool>,
    /// Why its readings do not answer for the resource, if they do not.
    pub(crate) unseen: Option<fn(&Evidence) -> Option<Missing>>,
    /// Only subjects for which this holds.
    pub(crate) only: Option<fn(&Subject) -> bool>,
    /// Decides instead of the threshold, where one number is not enough; the threshold still shows how near a low reading is.
    pub(crate) decides: Option<fn(&Evidence, &Subject) -> bool>,
}

/// What a high gauge means for the service that uses the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Means {
    /// The resource is saturated: a finding of `resource-saturated` if no rule explains it.
    Full,
    /// Something waits for it: `unexplained-wait`.
    Waited,
    /// Something was lost or refused: `unexplained-loss`.
    Lost,
    /// In use, and harmless in itself: high in the table, but no finding.
    Used,
}

/// A subject at or beyond its threshold.
#[derive(Debug)]
pub(crate) struct High<'a> {
    pub(crate) row: &'static Row,
    pub(crate) gauge: &'static Gauge,
    pub(crate) subject: &'a Subject,
    pub(crate) value: f64,
    pub(crate) reading: &'a Reading,
    /// The rule that explains it, if one does.
    pub(crate) explained_by: Option<&'static str>,
}

/// All that is high, in the order of the table.
pub(crate) fn high(evidence: &Evidence) -> Vec<High<'_>> {
    let mut all = Vec::new();
    for row in ROWS {
        for gauge in row.gauges() {
            all.extend(gauge.high(row, evidence));
        }
    }
    all
}

/// The table of a machine. A GC log or a thread dump has none.
pub fn resources(evidence: &Evidence) -> Vec<Resource> {
    let rows = ROWS.iter().map(|row| Resource {
        id: row.id.to_owned(),
        title: row.title.to_owned(),
        utilisation: cell(row, row.utilisation, evidence),
        saturation: cell(row, row.saturation, evidence),
        errors: cell(row, row.errors, evidence),
    });
    rows.collect()
}

impl Row {
    pub(crate) fn gauges(&self) -> impl Iterator<Item = &'static Gauge> {
        [self.utilisation, self.saturation, self.errors]
            .into_iter()
            .flatten()
    }
}

impl Gauge {
    /// How near `value` is to the threshold; from 1 on it is high.
    fn nearness(&self, value: f64) -> f64 {
        if self.falls {
            // A threshold of zero cannot be approached from above.
            (1.0 - value) / (1.0 - self.line)
        } else {
            value / self.line
        }
    }

    fn beyond(&self, value: f64) -> bool {
        if self.falls {
            value <= self.line
        } else {
            value >= self.line
        }
    }

    /// Its readings, one per subject.
    fn each<'a>(
        &self,
        evidence: &'a Evidence,
    ) -> Result<Vec<(&'a Subject, Quantity<'a>)>, Missing> {
        if self
            .instead_of
            .is_some_and(|key| evidence.each(key).is_ok())
        {
            return Ok(Vec::new());
        }
        let mut all = evidence.each(self.key)?;
        all.retain(|(subject, _)| self.only.is_none_or(|only| only(subject)));
        Ok(all)
    }

    /// Subjects at the threshold in most parts of the window, the furthest beyond it first.
    fn high<'a>(&'static self, row: &'static Row, evidence: &'a Evidence) -> Vec<High<'a>> {
        let mut high = self.each(evidence).unwrap_or_default();
        high.retain(|(subject, quantity)| match self.decides {
            Some(decides) => decides(evidence, subject),
            None if self.means == Means::Lost => self.beyond(quantity.value),
            None => quantity.lasts(|value| self.beyond(value)),
        });
        let mut high: Vec<_> = high
            .into_iter()
            .map(|(subject, quantity)| (subject, quantity.value, quantity.reading))
            .collect();
        high.sort_by(|a, b| self.nearness(b.1).total_cmp(&self.nearness(a.1)));
        high.into_iter()
            .map(|(subject, value, reading)| High {
                row,
                gauge: self,
                subject,
                value,
                reading,
                explained_by: explain::explanation(self, subject, evidence),
            })
            .collect()
    }
}

/// One cell: high if one gauge is, else not seen if one gauge was not, else low.
fn cell(row: &'static Row, gauges: &'static [Gauge], evidence: &Evidence) -> Option<Cell> {
    if gauges.is_empty() {
        return None;
    }
    let mut high: Vec<High<'_>> = gauges
        .iter()
        .flat_map(|gauge| gauge.high(row, evidence))
        .collect();
    // Unexplained readings are shown before explained ones.
    high.sort_by_key(|high| high.explained_by.is_some());
    if let Some(high) = high.first() {
        return Some(Cell {
            explained_by: high.explained_by.unwrap_or_default().to_owned(),
            ..shown(
                Level::High,
                high.gauge,
                high.subject,
                high.value,
                high.reading,
            )
        });
    }
    let mut unseen = None;
    let mut nothing = None;
    let mut idle = None;
    let mut nearest: Option<(f64, Cell)> = None;
    for gauge in gauges {
        if let Some(missing) = gauge.unseen.and_then(|unseen| unseen(evidence)) {
            unseen = unseen.or(Some((gauge, missing)));
            continue;
        }
        let readings = match gauge.each(evidence) {
            Ok(readings) => readings,
            Err(missing) if gauge.moot.is_some_and(|moot| moot(evidence)) => {
                idle = Some(missing.why.reason);
                continue;
            }
            Err(missing) if missing.why.is_none => {
                nothing = nothing.or(Some(missing));
                continue;
            }
            Err(missing) => {
                let of_one = evidence.unread(gauge.key).filter(|_| gauge.all);
                unseen = unseen.or(Some((gauge, of_one.unwrap_or(missing))));
                continue;
            }
        };
        if gauge.all
            && let Some(missing) = evidence.unread(gauge.key)
        {
            unseen = unseen.or(Some((gauge, missing)));
        }
        for (subject, Quantity { value, reading }) in readings {
            let nearness = gauge.nearness(value);
            if nearest.as_ref().is_none_or(|(most, _)| nearness > *most) {
                nearest = Some((nearness, shown(Level::Low, gauge, subject, value, reading)));
            }
        }
    }
    let empty = |level, note| Cell {
        level,
        value: None,
        line: None,
        unit: None,
        subject: String::new(),
        note,
        explained_by: String::new(),
    };
    if let Some((gauge, missing)) = unseen {
        let note = match missing.why.remedy.as_str() {
            "" => format!("{}: {}", gauge.key.id, missing.why.reason),
            remedy => format!("{}: {}; {remedy}", gauge.key.id, missing.why.reason),
        };
        return Some(empty(Level::Unseen, note));
    }
    Some(match (nearest, nothing) {
        (Some((_, cell)), _) => cell,
        (None, Some(missing)) => empty(Level::None, missing.why.reason),
        (None, None) => empty(Level::Low, idle.unwrap_or_default()),
    })
}

fn shown(level: Level, gauge: &Gauge, subject: &Subject, value: f64, reading: &Reading) -> Cell {
    // What is left becomes what is used, so that a larger number is always nearer to the threshold.
    let used = |value: f64| if gauge.falls { 1.0 - value } else { value };
    Cell {
        level,
        value: Some(used(value)),
        line: Some(used(gauge.line)),
        unit: Some(gauge.key.unit),
        subject: subject.to_string(),
        note: format!("{}: {}", reading.key.id, reading.origin.line),
        explained_by: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RULES, residual};

    #[test]
    fn residual_rules_name_every_reading_of_their_gauges_and_ask_rules_that_exist() {
        for gauge in ROWS.iter().flat_map(Row::gauges) {
            for id in gauge.rules {
                assert!(RULES.iter().any(|rule| rule.id == *id), "no rule {id}");
                assert!(residual::means_of(id).is_none(), "{id} would ask itself");
            }
            let of = |rule: &&&crate::Rule| residual::means_of(rule.id) == Some(gauge.means);
            let Some(rule) = RULES.iter().find(of) else {
                continue;
            };
            assert!(
                rule.needs.contains(&gauge.key),
                "{}: {}",
                rule.id,
                gauge.key.id
            );
        }
    }

    #[test]
    fn a_cell_is_unseen_where_a_reading_is_missing_and_none_where_there_is_no_such_thing() {
        let row = ROWS.iter().find(|row| row.id == "udp-sockets").unwrap();
        let level = |evidence: &Evidence| cell(row, row.utilisation, evidence).unwrap().level;
        let mut evidence = Evidence::over(10.0);
        assert_eq!(level(&evidence), Level::Unseen);
        let key = row.utilisation[0].key;
        let none = rungwise_model::evidence::Absence::none("no UDP socket is open");
        evidence.absent(&[key], &none, "sock_diag");
        assert_eq!(level(&evidence), Level::None);
        let port = Subject::new(rungwise_model::evidence::Kind::Port, "udp/0.0.0.0:53");
        let origin = || rungwise_model::evidence::Origin::new("sock_diag", "");
        evidence.number(key, port.clone(), 0.1, origin());
        assert_eq!(level(&evidence), Level::Low);
        evidence.number(key, port, 0.95, origin());
        assert_eq!(level(&evidence), Level::High);
    }

    #[test]
    fn a_process_near_its_limit_whose_count_is_refused_is_not_measured() {
        use rungwise_model::evidence::{Absence, Kind, Origin, Value};
        use rungwise_model::keys;

        let row = ROWS.iter().find(|row| row.id == "descriptors").unwrap();
        let process = |pid: u32| Subject::new(Kind::Process, pid);
        let cell_of = |share: f64| {
            let mut evidence = Evidence::over(10.0);
            evidence.number(&keys::FILES_OPEN, Subject::host(), 0.1, Origin::default());
            let key = &keys::PROCESS_DESCRIPTORS;
            evidence.number(key, process(1), share, Origin::default());
            evidence.add(Reading {
                key,
                subject: process(51),
                value: Value::Absent(Absence::because("not permitted")),
                series: Vec::new(),
                origin: Origin::default(),
            });
            cell(row, row.utilisation, &evidence).unwrap()
        };
        let unseen = cell_of(0.1);
        assert_eq!(unseen.level, Level::Unseen);
        assert!(unseen.note.contains("not permitted"), "{}", unseen.note);
        assert_eq!(cell_of(1.0).level, Level::High);
    }
}
