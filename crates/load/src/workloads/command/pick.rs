//! One number from a program's output, at a place that the scenario names.

use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::read::text;

/// Memory that a compiled regular expression may take: scenarios may come from others.
const LARGEST: usize = 1 << 20;

/// The place of a number in a program's output.
#[derive(Clone, Debug)]
pub enum Pick {
    /// At this JSON pointer (RFC 6901) of the output, which is one JSON document.
    Pointer(String),
    /// What the group `value` of this regular expression holds, or its first group; the last match counts.
    Pattern(Regex),
}

/// Why a place cannot be looked up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PickError {
    /// Not a JSON pointer.
    #[error("'{0}' is not a JSON pointer; begin with a slash: /summary/rate")]
    NotAPointer(String),
    /// Not a regular expression.
    #[error("not a regular expression: {0}")]
    NotAPattern(String),
    /// It has no group.
    #[error("'{0}' has no group; put the number in parentheses: 'done in ([0-9.]+) s'")]
    NoGroup(String),
}

impl Pick {
    /// By a JSON pointer.
    pub fn pointer(pointer: &str) -> Result<Self, PickError> {
        if !pointer.starts_with('/') {
            return Err(PickError::NotAPointer(pointer.to_owned()));
        }
        Ok(Self::Pointer(pointer.to_owned()))
    }

    /// By a regular expression.
    pub fn pattern(pattern: &str) -> Result<Self, PickError> {
        let built = RegexBuilder::new(pattern).size_limit(LARGEST).build();
        let regex = built.map_err(|error| PickError::NotAPattern(error.to_string()))?;
        if regex.captures_len() < 2 {
            return Err(PickError::NoGroup(pattern.to_owned()));
        }
        Ok(Self::Pattern(regex))
    }

    /// The number in this output; why not, if there is none.
    pub fn number(&self, output: &str) -> Result<f64, String> {
        match self {
            Self::Pointer(pointer) => {
                let document: Value = serde_json::from_str(output)
                    .map_err(|error| format!("the output is not one JSON document: {error}"))?;
                let value = document
                    .pointer(pointer)
                    .ok_or_else(|| format!("the document has nothing at {pointer}"))?;
                let number = value.as_f64().or_else(|| text::number(value.as_str()?));
                number.ok_or_else(|| format!("not a number at {pointer}: {value}"))
            }
            Self::Pattern(regex) => {
                let last = regex.captures_iter(output).last();
                let found = last.ok_or_else(|| format!("nothing matches '{regex}'"))?;
                let group = found.name("value").or_else(|| found.get(1));
                let found = group.map_or("", |group| group.as_str());
                text::number(found).ok_or_else(|| format!("'{found}' is not a number"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_by_a_pointer() {
        let pick = Pick::pointer("/summary/rate").unwrap();
        let number = |text: &str| pick.number(text);
        assert_eq!(number(r#"{"summary":{"rate":12.5}}"#), Ok(12.5));
        assert_eq!(number(r#"{"summary":{"rate":"12.5/s"}}"#), Ok(12.5));
        for (text, why) in [
            ("rate 12", "not one JSON document"),
            ("{}", "nothing at /summary/rate"),
            (r#"{"summary":{"rate":true}}"#, "not a number"),
        ] {
            let error = number(text).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        assert!(Pick::pointer("summary").is_err());
    }

    #[test]
    fn a_number_is_found_by_a_pattern_and_the_last_match_counts() {
        let pick = Pick::pattern(r"done ([0-9.]+)/s").unwrap();
        assert_eq!(pick.number("done 3/s\ndone 4.5/s"), Ok(4.5));
        assert!(pick.number("nothing").unwrap_err().contains("matches"));
        let named = Pick::pattern(r"(a|b) (?<value>\S+)").unwrap();
        assert_eq!(named.number("b 7"), Ok(7.0));
        assert!(named.number("b x").unwrap_err().contains("not a number"));
        assert_eq!(
            Pick::pattern("a+").unwrap_err(),
            PickError::NoGroup("a+".to_owned())
        );
        assert!(Pick::pattern("(a").is_err());
    }
}
