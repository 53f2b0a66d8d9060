//! Phrases of a dialect that strangers stumble over: `docs/writing.md` lists them, and no text of the project has one.

use xtask::tree::Tree;

use crate::{none_of, texts};

const PAGE: &str = "docs/writing.md";
/// Texts that quote what was once written.
const QUOTES: &[&str] = &[PAGE, "docs/journal/", "CHANGELOG.md"];

/// The first cells of the page's table.
fn phrases(page: &str) -> Vec<String> {
    let (_, list) = page.split_once("## Phrases that are refused").unwrap();
    let rows = list.lines().filter(|line| line.starts_with("| "));
    // The first row is the head of the table.
    rows.skip(1)
        .map(|row| row.split('|').nth(1).unwrap().trim().to_lowercase())
        .collect()
}

/// The text in lower case, a space wherever it breaks its lines: help and comments wrap.
fn unwrapped(text: &str) -> String {
    let words = text.split_whitespace();
    let words = words.filter(|word| !["//", "///", "//!", "\\"].contains(word));
    words.collect::<Vec<_>>().join(" ").to_lowercase()
}

#[test]
fn no_text_has_a_phrase_that_the_page_on_writing_refuses() {
    let tree = Tree::ours();
    let refused = phrases(&tree.read(PAGE).unwrap());
    assert!(refused.len() > 10, "{refused:?}");
    let mut offenders = Vec::new();
    for ending in [".rs", ".md", ".toml", ".snap", ".html"] {
        for (file, text) in texts(&tree, ending) {
            if QUOTES.iter().any(|quote| file.starts_with(quote)) {
                continue;
            }
            let text = unwrapped(&text);
            let found = refused.iter().filter(|phrase| text.contains(*phrase));
            offenders.extend(found.map(|phrase| format!("{file}: {phrase}")));
        }
    }
    none_of(&offenders, "phrases that docs/writing.md refuses");
}

#[test]
fn a_phrase_is_found_where_a_comment_or_a_terminal_breaks_it() {
    assert!(unwrapped("/// the type\n    /// Is\n//! detected").contains("is detected"));
}
