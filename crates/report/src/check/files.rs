//! The files that were judged together, and the time that each covers.

use rungwise_model::check::JudgedFile;

use crate::block::{Block, Cell, Column, Table, Tone};
use crate::tune::moment;

pub(super) fn blocks(files: &[JudgedFile]) -> Vec<Block> {
    if files.is_empty() {
        return Vec::new();
    }
    let time = |time: &Option<String>| {
        let words = time.as_deref().map(moment);
        Cell::text(words.unwrap_or_else(|| "not recorded".to_owned()))
    };
    let rows = files.iter().map(|file| {
        vec![
            Cell::text(&file.file),
            Cell::text(&file.what),
            time(&file.from),
            time(&file.to),
        ]
    });
    let mut blocks = vec![Block::section("files", "Files")];
    blocks.extend(apart(files).into_iter().map(|text| Block::Notice {
        tone: Tone::Doubt,
        text,
    }));
    blocks.push(Block::Table(Table {
        caption: "Judged together. Thread dumps print local time.".to_owned(),
        columns: vec![
            Column::words("File", "file"),
            Column::words("Type", "what"),
            Column::words("From", "from"),
            Column::words("To", "to"),
        ],
        rows: rows.collect(),
    }));
    blocks
}

/// Files whose times have nothing in common with that of the first file with a time in UTC.
pub(super) fn apart(files: &[JudgedFile]) -> Vec<String> {
    // Moments in RFC 3339 of one zone are in the order of their texts.
    let utc = |time: &Option<String>| time.clone().filter(|time| time.ends_with('Z'));
    let mut known = files.iter().filter_map(|file| {
        let from = utc(&file.from)?;
        let to = utc(&file.to).unwrap_or_else(|| from.clone());
        Some((&file.file, from, to))
    });
    let Some((first, from, to)) = known.next() else {
        return Vec::new();
    };
    let others = known.filter(|(_, began, ended)| *began > to || *ended < from);
    let words = |name: &str| {
        format!(
            "{name} and {first} cover different times: what one shows need not be the cause of what the other shows"
        )
    };
    others.map(|(name, ..)| words(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_apart_if_their_times_do_not_overlap() {
        let file = |name: &str, from: &str, to: &str| JudgedFile {
            file: name.to_owned(),
            what: "a GC log".to_owned(),
            from: Some(from.to_owned()),
            to: Some(to.to_owned()),
        };
        let first = file("a", "2026-11-27T10:00:00.000Z", "2026-11-27T11:00:00.000Z");
        for (from, to, is_apart) in [
            (
                "2026-11-27T10:59:59.000Z",
                "2026-11-27T12:00:00.000Z",
                false,
            ),
            ("2026-11-27T11:00:00.001Z", "2026-11-27T12:00:00.000Z", true),
            ("2026-11-26T10:00:00.000Z", "2026-11-27T09:59:00.000Z", true),
            // Local time of an unknown zone is not compared.
            ("2026-11-26 10:00:00", "2026-11-26 10:00:10", false),
        ] {
            let files = [first.clone(), file("b", from, to)];
            assert_eq!(!apart(&files).is_empty(), is_apart, "{from}");
        }
    }
}
