//! Blocks as Markdown, in GitHub's dialect: for an issue, a pull request or a CI summary.

use std::fmt::Write as _;

use crate::block::{Block, Card, Cell, Table};
use crate::numbers::THIN;
use crate::terminal::plot;
use crate::terminal::text::Paint;

/// Columns of a picture in characters: what GitHub shows without scrolling.
const PICTURE: usize = 96;

/// The whole report.
pub fn render(blocks: &[Block]) -> String {
    let mut text = String::new();
    for block in blocks {
        if !text.is_empty() {
            text.push('\n');
        }
        write_block(block, &mut text);
    }
    text
}

fn write_block(block: &Block, text: &mut String) {
    // Writing to a String cannot fail.
    let _ = match block {
        Block::Section { title, .. } => writeln!(text, "## {}", escaped(title)),
        Block::Prose(prose) => writeln!(text, "{}", escaped(prose)),
        Block::Notice { text: notice, .. } => writeln!(text, "> {}", escaped(notice)),
        Block::Verdict(verdict) => {
            let _ = writeln!(
                text,
                "**{} {}: {}**\n\n{}",
                verdict.mark.symbol,
                verdict.mark.word,
                escaped(&verdict.sentence),
                escaped(&verdict.context.join(" · "))
            );
            for (caveat, _) in &verdict.caveats {
                let _ = writeln!(text, "\n> {}", escaped(caveat));
            }
            Ok(())
        }
        Block::Tiles(tiles) => {
            let compared = tiles.iter().any(|tile| tile.before.is_some());
            let head = if compared {
                "| | Before | After | |\n|---|---:|---:|---|"
            } else {
                "| | | |\n|---|---:|---|"
            };
            let _ = writeln!(text, "{head}");
            for tile in tiles {
                let _ = write!(text, "| {} | ", escaped(&tile.label));
                if compared {
                    let before = tile.before.as_deref().unwrap_or("");
                    let _ = write!(text, "{} | ", escaped(before));
                }
                let (value, detail) = (escaped(&tile.value), escaped(&tile.detail));
                let _ = writeln!(text, "**{value}** | {detail} |");
            }
            Ok(())
        }
        Block::List(items) => {
            for item in items {
                let _ = writeln!(text, "- {}", escaped(item));
            }
            Ok(())
        }
        Block::Facts(facts) => {
            let _ = writeln!(text, "| | |\n|---|---|");
            for (name, value) in facts {
                let _ = writeln!(text, "| {} | {} |", escaped(name), escaped(value));
            }
            Ok(())
        }
        Block::Code(lines) => fenced(lines, text),
        Block::Table(table) => write_table(table, text),
        Block::Chart(chart) => {
            let _ = writeln!(text, "**{}**", escaped(&chart.title));
            if !chart.note.is_empty() {
                let _ = writeln!(text, "\n{}", escaped(&chart.note));
            }
            text.push('\n');
            let lines = plot::draw(&chart.plot, PICTURE, Paint { color: false });
            fenced(&lines, text)
        }
        Block::Fold { summary, blocks } => {
            let _ = writeln!(text, "<details>\n<summary>{}</summary>\n", escaped(summary));
            for block in blocks {
                write_block(block, text);
                text.push('\n');
            }
            writeln!(text, "</details>")
        }
        Block::Cards(cards) => {
            for card in cards {
                let _ = write_card(card, text);
            }
            Ok(())
        }
        Block::Long {
            summary, blocks, ..
        } if summary.is_empty() => {
            for block in blocks {
                write_block(block, text);
                text.push('\n');
            }
            Ok(())
        }
        Block::Long {
            summary, blocks, ..
        } => {
            let fold = Block::Fold {
                summary: summary.clone(),
                blocks: blocks.clone(),
            };
            write_block(&fold, text);
            Ok(())
        }
    };
}

fn write_card(card: &Card, text: &mut String) -> std::fmt::Result {
    writeln!(
        text,
        "**{} {}**\n\n`{}` · {}\n",
        card.mark.symbol,
        escaped(&card.sentence),
        card.rule,
        escaped(&card.tags.join(" · "))
    )?;
    for turn in &card.turns {
        let (knob, from, to) = (escaped(&turn.knob), escaped(&turn.from), escaped(&turn.to));
        writeln!(text, "- {knob}: {from} → {to}")?;
    }
    for line in std::iter::once(&card.estimate).chain(&card.notes) {
        if !line.is_empty() {
            writeln!(text, "- {}", escaped(line))?;
        }
    }
    let commands: Vec<String> = card
        .turns
        .iter()
        .map(|turn| turn.command.clone())
        .filter(|command| !command.is_empty())
        .chain([card.explain.clone()])
        .collect();
    text.push('\n');
    fenced(&commands, text)?;
    writeln!(text, "\n<details>\n<summary>raw lines</summary>\n")?;
    fenced(&card.evidence, text)?;
    if !card.refuted_by.is_empty() {
        writeln!(text, "\nWrong if: {}", escaped(&card.refuted_by))?;
    }
    for other in &card.also {
        text.push('\n');
        write_card(other, text)?;
    }
    writeln!(text, "\n</details>\n")
}

/// A fence longer than any run of backticks inside.
fn fenced(lines: &[String], text: &mut String) -> std::fmt::Result {
    let longest = lines
        .iter()
        .flat_map(|line| line.split(|c| c != '`').map(str::len))
        .max()
        .unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    writeln!(text, "{fence}text")?;
    for line in lines {
        writeln!(
            text,
            "{}",
            line.replace(THIN, " ")
                .replace(['\n', '\r', '\t'], " ")
                .replace(char::is_control, "\u{fffd}")
                .trim_end()
        )?;
    }
    writeln!(text, "{fence}")
}

fn write_table(table: &Table, text: &mut String) -> std::fmt::Result {
    for about in table.columns.iter().filter_map(|c| c.about.as_ref()) {
        writeln!(text, "> {}\n", escaped(about))?;
    }
    if !table.caption.is_empty() {
        writeln!(text, "{}\n", escaped(&table.caption))?;
    }
    let heads: Vec<String> = table
        .columns
        .iter()
        .map(|column| escaped(&column.name))
        .collect();
    let rules: Vec<&str> = table
        .columns
        .iter()
        .map(|c| if c.numeric { "---:" } else { "---" })
        .collect();
    writeln!(text, "| {} |\n|{}|", heads.join(" | "), rules.join("|"))?;
    for row in &table.rows {
        let cells: Vec<String> = row.iter().map(cell).collect();
        writeln!(text, "| {} |", cells.join(" | "))?;
    }
    Ok(())
}

fn cell(cell: &Cell) -> String {
    match &cell.note {
        Some(note) => format!("{}<br>{}", escaped(&cell.text), escaped(note)),
        None => escaped(&cell.text),
    }
}

/// What was measured or configured is text and never markup.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            THIN => safe.push('\u{a0}'),
            '\n' | '\r' | '\t' => safe.push(' '),
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '~' => {
                safe.push('\\');
                safe.push(c);
            }
            c if c.is_control() => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_values_stays_text() {
        assert_eq!(escaped("a|b <script> _x_"), r"a\|b &lt;script&gt; \_x\_");
        let mut text = String::new();
        write_block(&Block::Code(vec!["a ``` b".to_owned()]), &mut text);
        assert!(text.starts_with("````text\n"), "{text}");
        let mut text = String::new();
        write_block(&Block::Code(vec!["a\u{1b}[2J".to_owned()]), &mut text);
        assert!(text.contains("a\u{fffd}[2J"), "{text}");
    }
}
