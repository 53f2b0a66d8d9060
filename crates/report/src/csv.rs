//! A table as CSV (RFC 4180) with raw numbers, and as the payload of a `data:` link.

use std::fmt::Write as _;

use crate::block::{Cell, Table};
use crate::numbers::{ABSENT, THIN};

/// Keys in the first line, then one line a row; numbers unrounded, absent values empty.
pub fn render(table: &Table) -> String {
    let mut text = String::new();
    let keys: Vec<String> = table
        .columns
        .iter()
        .map(|column| quoted(column.key))
        .collect();
    text += &keys.join(",");
    text += "\r\n";
    for row in &table.rows {
        let fields: Vec<String> = row.iter().map(field).collect();
        text += &fields.join(",");
        text += "\r\n";
    }
    text
}

/// The CSV as it may stand in a link.
pub(crate) fn percent_encoded(table: &Table) -> String {
    let csv = render(table);
    let mut text = String::with_capacity(csv.len() * 5 / 4);
    for byte in csv.bytes() {
        // RFC 3986 section 3.3: what a path may hold unescaped, less what HTML or a shell would mind.
        if byte.is_ascii_alphanumeric() || b"-._~,:;/()*@=+".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

fn field(cell: &Cell) -> String {
    match cell.raw {
        // Six decimals: a nanosecond of a microsecond figure is below every noise here.
        Some(raw) => {
            let text = format!("{raw:.6}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        None if cell.text == ABSENT => String::new(),
        None => quoted(&cell.text.replace(THIN, " ")),
    }
}

fn quoted(text: &str) -> String {
    // A field that starts like a formula is run by spreadsheets; the quote mark in front stops that.
    let guarded = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        format!("'{text}")
    } else {
        text.to_owned()
    };
    if guarded.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", guarded.replace('"', "\"\""))
    } else {
        guarded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Column;

    #[test]
    fn fields_with_commas_quotes_and_formulas_survive() {
        let table = Table {
            caption: String::new(),
            columns: vec![
                Column::words("Rung", "title"),
                Column::number("Rate", "rate_per_s"),
            ],
            rows: vec![
                vec![
                    Cell::text("a, \"b\""),
                    Cell::number(Some(0.1 + 0.2), |_| String::new()),
                ],
                vec![Cell::text("=1+1"), Cell::number(None, |_| String::new())],
            ],
        };
        assert_eq!(
            render(&table),
            "title,rate_per_s\r\n\"a, \"\"b\"\"\",0.3\r\n'=1+1,\r\n"
        );
        assert!(
            percent_encoded(&table)
                .bytes()
                .all(|b| b.is_ascii_graphic() && b != b'"')
        );
    }
}
