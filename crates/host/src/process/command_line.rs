//! Command lines in messages.

/// A command line as a message shows it: words with white space in quotes, and cut where a class path makes it too
/// long to read.
pub(super) fn shown(argv: &[String]) -> String {
    /// A guess: some twenty lines of a terminal.
    const MOST: usize = 1600;
    let word = |word: &String| {
        if word.is_empty() || word.contains(char::is_whitespace) {
            format!("'{word}'")
        } else {
            word.clone()
        }
    };
    let line = argv.iter().map(word).collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{} ...", &line[..end]),
        None => line,
    }
}
