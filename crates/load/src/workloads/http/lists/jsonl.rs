//! A list of requests as JSON, one object a line; see `docs/load.md`.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Entry, MOST, Target, as_path, shortened};
use crate::values::{Time, nearest};
use crate::workloads::http::values::{Expect, Header, Method};

/// The keys of a line.
const KEYS: [&str; 8] = [
    "name", "method", "path", "url", "headers", "body", "expect", "pause",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    name: Option<String>,
    method: Option<Method>,
    path: Option<String>,
    url: Option<String>,
    #[serde(default)]
    headers: Headers,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
    expect: Option<Expect>,
    pause: Option<Time>,
}

/// Header lines, as an object or as a list of `Name: value`.
#[derive(Default)]
struct Headers(Vec<Header>);

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Headers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of names and values, or a list of \"Name: value\"")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Headers, A::Error> {
        let mut headers = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = map.next_value::<String>()?;
            let header = format!("{name}: {value}").parse();
            headers.push(header.map_err(de::Error::custom)?);
        }
        Ok(Headers(headers))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Headers, A::Error> {
        let mut headers = Vec::new();
        while let Some(header) = list.next_element()? {
            headers.push(header);
        }
        Ok(Headers(headers))
    }
}

/// Reads the list in `bytes`, the content of `file`, of requests to `target`.
pub fn parse(file: &str, bytes: &[u8], target: &Target<'_>) -> Result<Vec<Entry>, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].split(|byte| *byte == b'\n');
        format!("{file}, line {}: not UTF-8 text", line.count())
    })?;
    let mut entries = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let at = at + 1;
        if entries.len() == MOST {
            return Err(format!(
                "{file} has more than {MOST} requests; use --data with a template for so many"
            ));
        }
        let parsed: Line<'_> = serde_json::from_str(line)
            .map_err(|error| format!("{file}, line {at}, {}", reason(&error)))?;
        let entry = parsed.entry(target);
        entries.push(entry.map_err(|why| format!("{file}, line {at}: {why}"))?);
    }
    if entries.is_empty() {
        return Err(format!(
            "{file} contains no request; write one object a line, such as {{\"path\": \"/\"}}"
        ));
    }
    Ok(entries)
}

/// Column and reason of an error, with the nearest key to an unknown one.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&place).unwrap_or(&text);
    let unknown = text.strip_prefix("unknown field `");
    let near = unknown.and_then(|rest| rest.split_once('`'));
    let near = near.map_or(String::new(), |(key, _)| nearest(key, KEYS));
    format!("column {}: {text}{near}", error.column())
}

impl Line<'_> {
    fn entry(self, target: &Target<'_>) -> Result<Entry, String> {
        let path = match (&self.path, &self.url) {
            (Some(path), None) if path.starts_with('/') => as_path(path)?,
            (Some(path), None) => {
                return Err(format!("path '{}' does not begin with /", shortened(path)));
            }
            (None, Some(url)) => target.path_of(url)?,
            (None, None) => return Err("no path; write \"path\": \"/...\"".to_owned()),
            (Some(_), Some(_)) => return Err("path and url; keep one of the two".to_owned()),
        };
        let body = match self.body.map(RawValue::get) {
            None => None,
            Some(text) if text.starts_with('"') => {
                let text: String = serde_json::from_str(text).map_err(|error| error.to_string())?;
                Some((text.into_bytes(), "text/plain"))
            }
            // As it was written: numbers and order stay.
            Some(json) => Some((json.as_bytes().to_vec(), "application/json")),
        };
        let method = match (self.method, &body) {
            (Some(Method(method)), _) => method,
            (None, Some(_)) => "POST".to_owned(),
            (None, None) => "GET".to_owned(),
        };
        Ok(Entry {
            name: self.name,
            method,
            path,
            headers: self.headers.0,
            body,
            expect: self.expect,
            pause: self.pause.map_or(Duration::ZERO, |pause| pause.0),
            ..Entry::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Target<'_> = Target {
        origin: "http://h:80",
        host: None,
    };

    fn parsed(text: &str) -> Result<Vec<Entry>, String> {
        parse("r.jsonl", text.as_bytes(), &TARGET)
    }

    #[test]
    fn a_line_is_a_request_with_defaults() {
        let text = concat!(
            "{\"path\": \"/a?b\"}\n\n",
            "{\"url\": \"http://h/c\", \"name\": \"create\", \"headers\": {\"X-B\": \"1\", \"X-A\": \"2\"}, ",
            "\"body\": {\"z\": 1.50, \"a\": \"${counter}\"}, \"expect\": \"status=201\", \"pause\": \"20ms\"}\n",
            "{\"path\": \"/t\", \"method\": \"PUT\", \"headers\": [\"Content-Type: a/b\"], \"body\": \"tex\\nt\"}",
        );
        let entries = parsed(text).unwrap();
        let plain = Entry {
            method: "GET".to_owned(),
            path: "/a?b".to_owned(),
            ..Entry::default()
        };
        let create = Entry {
            name: Some("create".to_owned()),
            method: "POST".to_owned(),
            path: "/c".to_owned(),
            headers: vec!["X-B: 1".parse().unwrap(), "X-A: 2".parse().unwrap()],
            body: Some((
                b"{\"z\": 1.50, \"a\": \"${counter}\"}".to_vec(),
                "application/json",
            )),
            expect: Some("status=201".parse().unwrap()),
            pause: Duration::from_millis(20),
            ..Entry::default()
        };
        assert_eq!(entries[..2], [plain, create]);
        assert_eq!(entries[2].method, "PUT");
        assert_eq!(entries[2].body, Some((b"tex\nt".to_vec(), "text/plain")));
    }

    #[test]
    fn an_error_names_line_and_column() {
        for (text, words) in [
            (
                "{\"path\": \"/\"}\n{\"pth\": \"/\"}",
                &[
                    "line 2, column 6",
                    "unknown field `pth`",
                    "did you mean 'path'?",
                ][..],
            ),
            ("{\"path\": \"/\"", &["line 1, column 12", "EOF"]),
            ("{\"path\": 5}", &["line 1, column 10", "a string"]),
            (
                "{\"path\": \"/\", \"method\": \"get\"}",
                &["line 1, column", "write it as GET"],
            ),
            (
                "{\"path\": \"/\", \"headers\": {\"a b\": \"c\"}}",
                &["line 1, column", "Name: value"],
            ),
            (
                "{\"path\": \"/\", \"headers\": {\"Content-Length\": \"5\"}}",
                &["column", "remove it"],
            ),
            (
                "{\"path\": \"/\", \"expect\": \"200\"}",
                &["column", "status=200"],
            ),
            ("{\"path\": \"/\", \"pause\": \"5\"}", &["column"]),
            ("\n{}", &["line 2", "no path"]),
            ("{\"path\": \"a\"}", &["does not begin with /"]),
            ("{\"path\": \"/a b\"}", &["%20"]),
            ("{\"path\": \"/\", \"url\": \"http://h/\"}", &["keep one"]),
            ("{\"url\": \"http://other/\"}", &["another host"]),
            ("", &["no request"]),
            ("[1]", &["line 1, column"]),
        ] {
            let why = parsed(text).unwrap_err();
            for word in words {
                assert!(why.contains(word), "{text}: {why}");
            }
        }
        let why = parse("r.jsonl", b"{\"path\": \"/\"}\n\xff", &TARGET).unwrap_err();
        assert!(why.contains("line 2: not UTF-8"), "{why}");
    }
}
