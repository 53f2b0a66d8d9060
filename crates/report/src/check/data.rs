//! The page's tables and pictures as data: what people see and what scripts read is made of the same cells.

use rungwise_model::check::{self, Scalar};
use rungwise_model::evidence::{Evidence, Key, Subject, Unit};

use super::readings;
use crate::block::{Cell, Chart, Column, Table};
use crate::numbers::{ABSENT, THIN};

/// A table of the page, or the data of a picture, under a lasting name; the caption says what it shows.
pub(super) struct Named {
    id: &'static str,
    table: Table,
}

impl Named {
    pub(super) fn new(id: &'static str, table: Table) -> Self {
        Self { id, table }
    }

    /// Several, each under its name; those that are not there are left out.
    pub(super) fn all<const N: usize>(tables: [(&'static str, Option<Table>); N]) -> Vec<Self> {
        let named = |(id, table): (_, Option<_>)| Some(Self::new(id, table?));
        tables.into_iter().filter_map(named).collect()
    }

    /// What a picture draws, under what the picture says.
    pub(super) fn picture(chart: Chart) -> Self {
        Self::new(
            chart.id,
            Table {
                caption: chart.title,
                ..chart.data
            },
        )
    }

    pub(super) fn into_table(self) -> Table {
        self.table
    }

    /// As the document holds it.
    pub(super) fn document(&self) -> check::Table {
        let columns = &self.table.columns;
        let row = |cells: &Vec<Cell>| {
            let keys = columns.iter().map(|column| column.key.to_owned());
            keys.zip(cells.iter().map(scalar)).collect()
        };
        check::Table {
            id: self.id.to_owned(),
            title: plain(&self.table.caption),
            columns: columns.iter().map(column).collect(),
            rows: self.table.rows.iter().map(row).collect(),
        }
    }
}

fn column(column: &Column) -> check::Column {
    check::Column {
        key: column.key.to_owned(),
        name: column.name.clone(),
        unit: column.unit,
    }
}

fn scalar(cell: &Cell) -> Option<Scalar> {
    match cell.raw {
        Some(raw) => Some(Scalar::Number(raw)),
        None if cell.text == ABSENT => None,
        None => Some(Scalar::Text(plain(&cell.text))),
    }
}

fn plain(text: &str) -> String {
    text.replace(THIN, " ")
}

/// One fact about the host: its name, its value in words, and the number behind it where it is one number.
pub(super) struct Fact {
    pub(super) name: String,
    pub(super) shown: String,
    pub(super) raw: Option<f64>,
    pub(super) unit: Unit,
    pub(super) detail: String,
}

impl Fact {
    pub(super) fn words(name: impl Into<String>, shown: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            shown: shown.into(),
            raw: None,
            unit: Unit::Text,
            detail: String::new(),
        }
    }

    /// The number or the words of this key of the host; nothing where it is unknown.
    pub(super) fn reading(evidence: &Evidence, name: &str, key: &'static Key) -> Option<Self> {
        let host = Subject::host();
        Some(Self {
            raw: readings::number(evidence, key, &host),
            unit: key.unit,
            ..Self::words(name, readings::shown(evidence, key, &host)?)
        })
    }

    /// The same in words of one's own.
    pub(super) fn shown(self, show: impl Fn(f64) -> String) -> Self {
        Self {
            shown: self.raw.map(show).unwrap_or(self.shown),
            ..self
        }
    }

    /// Adds what stands below it.
    pub(super) fn detail<const N: usize>(mut self, parts: [Option<String>; N]) -> Self {
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        self.detail = parts.join(", ");
        self
    }

    /// As the page lists it.
    pub(super) fn pair(self) -> (String, String) {
        (self.name, self.shown)
    }

    /// Several as a table.
    pub(super) fn table(caption: &str, facts: Vec<Self>) -> Option<Table> {
        let columns = vec![
            Column::words("What", "title").unit(Unit::Text),
            Column::number("Value", "value"),
            Column::words("Unit", "unit").unit(Unit::Text),
            Column::words("Shown", "shown").unit(Unit::Text),
            Column::words("Detail", "detail").unit(Unit::Text),
        ];
        let row = |fact: Self| {
            vec![
                Cell::text(fact.name),
                Cell::number(fact.raw, |raw| raw.to_string()),
                Cell::text(word(fact.unit)),
                Cell::text(fact.shown),
                Cell::text(fact.detail),
            ]
        };
        let rows: Vec<Vec<Cell>> = facts.into_iter().map(row).collect();
        (!rows.is_empty()).then(|| Table {
            caption: caption.to_owned(),
            columns,
            rows,
        })
    }
}

/// A unit as documents name it.
fn word(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "count",
        Unit::Fraction => "fraction",
        Unit::PerSecond => "per_second",
        Unit::Bytes => "bytes",
        Unit::BytesPerSecond => "bytes_per_second",
        Unit::Seconds => "seconds",
        Unit::Ratio => "ratio",
        Unit::Text => "text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_named_as_the_schema_names_them() {
        for unit in [
            Unit::Count,
            Unit::Fraction,
            Unit::PerSecond,
            Unit::Bytes,
            Unit::BytesPerSecond,
            Unit::Seconds,
            Unit::Ratio,
            Unit::Text,
        ] {
            assert_eq!(serde_json::to_value(unit).unwrap(), word(unit));
        }
    }

    #[test]
    fn what_is_not_known_is_null_and_a_number_is_not_rounded() {
        let table = Table {
            caption: "caption".to_owned(),
            columns: vec![
                Column::words("CPU", "title").unit(Unit::Text),
                Column::number("Busy", "busy").unit(Unit::Fraction),
            ],
            rows: vec![
                vec![
                    Cell::text("0"),
                    Cell::number(Some(1.0 / 3.0), |_| "33 %".to_owned()),
                ],
                vec![Cell::text("1"), Cell::number(None, |_| String::new())],
            ],
        };
        let document = serde_json::to_value(Named::new("cpus", table).document()).unwrap();
        assert_eq!(document["id"], "cpus");
        assert_eq!(document["columns"][1]["unit"], "fraction");
        assert_eq!(document["rows"][0]["busy"], 1.0 / 3.0);
        assert_eq!(document["rows"][1]["title"], "1");
        assert!(document["rows"][1]["busy"].is_null());
    }
}
