//! Response assertions of a plan: what makes a response an answer.

use regex::Regex;

use super::text::Reading;
use super::tree::Element;

/// Bits of `Assertion.test_type` (`ResponseAssertion`).
const MATCH: u32 = 1;
const CONTAINS: u32 = 2;
const NOT: u32 = 4;
const EQUALS: u32 = 8;
const SUBSTRING: u32 = 16;
const OR: u32 = 32;

/// Whether a status passes.
type Test = Box<dyn Fn(&str) -> bool>;

/// What is expected of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expected {
    /// The least and the greatest status.
    pub(super) status: (u16, u16),
    /// An assertion decided on the status.
    pub(super) is_status_given: bool,
    /// Texts in the body, or (`false`) not in it.
    pub(super) texts: Vec<(String, bool)>,
}

impl Expected {
    /// Adds an assertion; or why it cannot be checked here.
    pub(super) fn add(&mut self, assertion: &Element, reading: &Reading<'_>) -> Result<(), String> {
        if assertion.text("Assertion.scope") == "variable" {
            return Err("it checks a variable".to_owned());
        }
        let bits = assertion.text("Assertion.test_type").trim();
        let bits: u32 = bits.parse().unwrap_or(CONTAINS);
        let mut patterns = Vec::new();
        for item in assertion.items("", "Asserion.test_strings") {
            patterns.push(reading.fixed(item.value())?);
        }
        match assertion.text("Assertion.test_field") {
            "Assertion.response_code" => {
                self.add_status(&patterns, bits, assertion.is("Assertion.assume_success"))
            }
            "Assertion.response_data" => {
                let texts = texts(&patterns, bits)?;
                if assertion.is("Assertion.assume_success") {
                    (self.status, self.is_status_given) = ((200, 599), true);
                }
                self.texts.extend(texts);
                Ok(())
            }
            field => {
                let field = field.rsplit('.').next().unwrap_or(field);
                Err(format!("it checks '{}'", super::shortened(field)))
            }
        }
    }

    fn add_status(&mut self, patterns: &[String], bits: u32, any: bool) -> Result<(), String> {
        let mut tests: Vec<Test> = Vec::new();
        for pattern in patterns {
            let literal = pattern.clone();
            tests.push(if bits & EQUALS != 0 {
                Box::new(move |status| status == literal)
            } else if bits & SUBSTRING != 0 {
                Box::new(move |status| status.contains(&literal))
            } else {
                let pattern = if bits & MATCH != 0 {
                    format!("^(?:{pattern})$")
                } else {
                    literal
                };
                let regex = Regex::new(&pattern).map_err(|_| {
                    format!("cannot read its pattern '{}'", super::shortened(&pattern))
                })?;
                Box::new(move |status| regex.is_match(status))
            });
        }
        let passes = |status: u16| {
            let status = status.to_string();
            let mut each = tests.iter().map(|test| test(&status) != (bits & NOT != 0));
            if bits & OR != 0 {
                each.any(|passes| passes)
            } else {
                each.all(|passes| passes)
            }
        };
        let (least, most) = if any { (200, 599) } else { self.status };
        let good: Vec<u16> = (least..=most).filter(|status| passes(*status)).collect();
        let (Some(first), Some(last)) = (good.first(), good.last()) else {
            return Err("no status that is otherwise an answer passes it".to_owned());
        };
        if usize::from(last - first) + 1 != good.len() {
            return Err("the statuses that pass it are not one after the other".to_owned());
        }
        (self.status, self.is_status_given) = ((*first, *last), true);
        Ok(())
    }
}

fn texts(patterns: &[String], bits: u32) -> Result<Vec<(String, bool)>, String> {
    if bits & (EQUALS | MATCH) != 0 {
        return Err("it compares the whole body; only parts of it are looked for here".to_owned());
    }
    if bits & OR != 0 && patterns.len() > 1 {
        return Err("one of several texts would be enough for it".to_owned());
    }
    let mut texts = Vec::new();
    for pattern in patterns {
        let text = if bits & SUBSTRING != 0 {
            Some(pattern.clone())
        } else {
            plain(pattern)
        };
        let text = text.ok_or("its pattern is a regular expression")?;
        let is_wanted = bits & NOT == 0;
        match (text.is_empty(), is_wanted) {
            // Every body contains it.
            (true, true) => {}
            (true, false) => return Err("it excludes the empty text".to_owned()),
            (false, _) => texts.push((text, is_wanted)),
        }
    }
    Ok(texts)
}

/// The text that a pattern stands for, where that is only one.
fn plain(pattern: &str) -> Option<String> {
    let mut text = String::new();
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => text.push(letters.next().filter(char::is_ascii_punctuation)?),
            '^' | '$' | '.' | '|' | '?' | '*' | '+' | '(' | ')' | '[' | ']' | '{' | '}' => {
                return None;
            }
            letter => text.push(letter),
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statuses(patterns: &[&str], bits: u32, any: bool) -> Result<(u16, u16), String> {
        let mut expected = Expected {
            status: (200, 399),
            is_status_given: false,
            texts: Vec::new(),
        };
        let patterns: Vec<String> = patterns.iter().map(|one| (*one).to_owned()).collect();
        expected.add_status(&patterns, bits, any)?;
        Ok(expected.status)
    }

    #[test]
    fn patterns_of_a_status_become_a_range() {
        for (patterns, bits, any, range) in [
            (&["200"][..], EQUALS, false, (200, 200)),
            (&["200"], SUBSTRING, false, (200, 200)),
            (&["2.."], MATCH, false, (200, 299)),
            (&["20[01]"], CONTAINS, false, (200, 201)),
            (&["200", "201"], EQUALS | OR, false, (200, 201)),
            (&["200", "2"], CONTAINS, false, (200, 200)),
            (&["404"], EQUALS, true, (404, 404)),
            (&["3.."], MATCH | NOT, false, (200, 299)),
            (&[], EQUALS, true, (200, 599)),
        ] {
            assert_eq!(statuses(patterns, bits, any), Ok(range), "{patterns:?}");
        }
        for (patterns, bits, word) in [
            (&["404"][..], EQUALS, "no status"),
            (&["200|302"], MATCH, "one after the other"),
            (&["("], MATCH, "cannot read its pattern"),
            (&["200", "201"], EQUALS, "no status"),
        ] {
            let why = statuses(patterns, bits, false).unwrap_err();
            assert!(why.contains(word), "{patterns:?}: {why}");
        }
    }

    #[test]
    fn patterns_of_a_body_are_texts_where_they_have_one_meaning() {
        let read = |pattern: &str, bits| texts(&[pattern.to_owned()], bits);
        let text = |text: &str, is_wanted| Ok(vec![(text.to_owned(), is_wanted)]);
        assert_eq!(read("a.b", SUBSTRING), text("a.b", true));
        assert_eq!(read("a\\.b", CONTAINS), text("a.b", true));
        assert_eq!(read("<h1>", CONTAINS | NOT), text("<h1>", false));
        assert_eq!(read("", SUBSTRING), Ok(Vec::new()));
        for (pattern, bits, word) in [
            ("a.b", CONTAINS, "regular expression"),
            ("\\d", CONTAINS, "regular expression"),
            ("a\\", CONTAINS, "regular expression"),
            ("a", EQUALS, "whole body"),
            ("", SUBSTRING | NOT, "empty"),
        ] {
            assert!(read(pattern, bits).unwrap_err().contains(word), "{pattern}");
        }
        let both = ["a".to_owned(), "b".to_owned()];
        assert!(texts(&both, SUBSTRING | OR).is_err());
        assert_eq!(texts(&both, SUBSTRING).unwrap().len(), 2);
    }
}
