//! Secrets in a text, found like in other secret scanners: by the name before them.
//!
//! `name=value`, `name: value`, `--name value`, in JSON or in a URL; the user and password before the `@` of a URL, and
//! all that follows its `?`, where signatures and keys have names of their own. A value in quotes ends with its quote,
//! any other with the word, so it masks too much rather than too little.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

/// Replacement for a secret.
pub const MASKED: &str = "(masked)";

/// Names that announce a secret; a name that contains one of them counts.
const NAMES: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "credential",
    "private_key",
    "private-key",
    "access_key",
    "access-key",
    "cryptkey",
    "authkey",
    "auth_key",
    "auth-key",
    "luks.key",
];

/// Names too short to be searched inside others: `bypass` precedes no secret.
const WORDS: &[&str] = &["pass", "pwd", "psk"];

/// Announces two words, the scheme and the secret: `Authorization: Bearer ...`.
const HEADER: &str = "authorization";

/// Begins a URL's authority, which may name a user and a password.
const URL: &str = "://";

static SIGNS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let signs = NAMES.iter().chain(WORDS).chain([&HEADER, &URL]);
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostLongest)
        .build(signs)
        .expect("the signs are few and short")
});

/// `text` with its secrets replaced; `None` if there are none.
pub(super) fn hidden(text: &str) -> Option<String> {
    let mut masked = String::new();
    let mut kept = 0;
    for sign in SIGNS.find_iter(text) {
        if sign.start() < kept {
            continue;
        }
        let is_url = sign.pattern().as_usize() > NAMES.len() + WORDS.len();
        let found = match sign.pattern().as_usize() {
            at if at < NAMES.len() => value(text, sign.start(), sign.end()),
            at if at < NAMES.len() + WORDS.len() => {
                let inside = text[..sign.start()].ends_with(|c: char| c.is_ascii_alphanumeric());
                let more = text[sign.end()..].starts_with(|c: char| c.is_ascii_alphanumeric());
                (!inside && !more)
                    .then(|| value(text, sign.start(), sign.end()))
                    .flatten()
            }
            at if at == NAMES.len() + WORDS.len() => header(text, sign.end()),
            _ => user(text, sign.end()),
        };
        let query = is_url.then(|| query(text, sign.end())).flatten();
        for (start, end) in found.into_iter().chain(query) {
            masked.push_str(&text[kept..start]);
            masked.push_str(MASKED);
            kept = end;
        }
    }
    (kept > 0).then(|| masked + &text[kept..])
}

fn ends_word(c: char) -> bool {
    c.is_whitespace() || c == '\0'
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'')
}

/// Where the word that begins at `start` ends.
fn end_of_word(text: &str, start: usize) -> usize {
    text[start..]
        .find(ends_word)
        .map_or(text.len(), |at| start + at)
}

/// Where what follows blanks begins.
fn after_blanks(text: &str, start: usize) -> usize {
    let rest = &text[start..];
    text.len() - rest.trim_start_matches([' ', '\t']).len()
}

/// The value that the name around these places announces.
fn value(text: &str, start: usize, end: usize) -> Option<(usize, usize)> {
    let of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let name_ends = text[end..]
        .find(|c| !of_name(c))
        .map_or(text.len(), |at| end + at);
    let rest = &text[name_ends..];
    let quoted = rest.strip_prefix(is_quote).unwrap_or(rest);
    let after = text.len() - quoted.len();
    let assigned = after_blanks(text, after);
    let begins = if text[assigned..].starts_with(['=', ':']) {
        after_blanks(text, assigned + 1)
    } else {
        // `--password hunter2`; a word that stands for itself announces nothing.
        let word = text[..start].rfind(ends_word).map_or(0, |at| at + 1);
        let flag = text[word..].starts_with('-') && rest.starts_with([' ', '\t', '\0']);
        if !flag {
            return None;
        }
        let begins = after_blanks(text, name_ends + 1);
        if text[begins..].starts_with('-') {
            return None;
        }
        begins
    };
    let ends = match text[begins..].chars().next().filter(|c| is_quote(*c)) {
        Some(quote) => {
            let inside = begins + 1;
            let line = text[inside..]
                .find(['\n', '\0'])
                .map_or(text.len(), |at| inside + at);
            text[inside..line]
                .find(quote)
                .map_or(line, |at| inside + at + 1)
        }
        None => end_of_word(text, begins),
    };
    (ends > begins).then_some((begins, ends))
}

/// The rest of the line after `Authorization:`.
fn header(text: &str, end: usize) -> Option<(usize, usize)> {
    let rest = &text[end..];
    let value = rest.strip_prefix(is_quote).unwrap_or(rest);
    let begins = after_blanks(text, text.len() - value.strip_prefix([':', '='])?.len());
    let ends = text[begins..]
        .find(['\n', '\0'])
        .map_or(text.len(), |at| begins + at);
    (ends > begins).then_some((begins, ends))
}

/// The user, and the password after it, of a URL whose authority begins here.
fn user(text: &str, begins: usize) -> Option<(usize, usize)> {
    let authority = &text[begins..end_of_word(text, begins)];
    let authority = authority.split(['/', '?', '#', '"', '\'']).next()?;
    let ends = authority.rfind('@')?;
    (ends > 0).then_some((begins, begins + ends))
}

/// What follows the `?` of a URL whose authority begins here; the fragment as well.
fn query(text: &str, begins: usize) -> Option<(usize, usize)> {
    let rest = &text[begins..end_of_word(text, begins)];
    let rest = rest.split(is_quote).next()?;
    let asks = rest.find('?')? + 1;
    (asks < rest.len()).then_some((begins + asks, begins + rest.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_secret_is_found_by_the_name_before_it() {
        for (text, masked) in [
            (
                "quiet db.password=hunter2 ro",
                "quiet db.password=(masked) ro",
            ),
            ("--api-token abc --size 5", "--api-token (masked) --size 5"),
            ("password: hunter2\n", "password: (masked)\n"),
            ("AWS_SECRET_ACCESS_KEY=x", "AWS_SECRET_ACCESS_KEY=(masked)"),
            ("x,token='a b' ro", "x,token=(masked) ro"),
            (
                "https://u:p@ss@host/x?y z",
                "https://(masked)@host/x?(masked) z",
            ),
            (
                "ro coreos.inst.ignition_url=https://h/a.ign?sig=hunter2&x=1#f quiet",
                "ro coreos.inst.ignition_url=https://h/a.ign?(masked) quiet",
            ),
            ("'http://h/?k=a' b", "'http://h/?(masked)' b"),
            (
                r#"{"password": "a", "n": 1}"#,
                r#"{"password": (masked), "n": 1}"#,
            ),
            ("Authorization: Bearer abc\nx", "Authorization: (masked)\nx"),
            ("pass=a bypass=1", "pass=(masked) bypass=1"),
            ("token=ü\0next", "token=(masked)\0next"),
        ] {
            assert_eq!(hidden(text).as_deref(), Some(masked), "{text}");
        }
    }

    #[test]
    fn what_announces_nothing_is_left_alone() {
        for text in [
            "root=/dev/vda1 quiet",
            "--password --verbose",
            "17 (token-server) S 1",
            "bypass=1 iommu.passthrough=1",
            "https://host/user@x",
            "https://host/x? y?z",
            "password=\nro",
            "token",
            "",
        ] {
            assert_eq!(hidden(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_and_none_is_masked_twice(
            text in "(password|pass|token|authorization|://|[=:@\"' \\n\0-]|[a-zü]){0,24}"
        ) {
            if let Some(masked) = hidden(&text) {
                prop_assert!(masked.contains(MASKED));
            }
        }
    }
}
