//! Texts with placeholders, and what they are rendered from: `/orders/${counter}?user=${csv:name}`.
//!
//! A text is taken apart once, before the load. Rendering appends to a buffer that is used again, so it allocates nothing once the
//! buffer is as long as the longest request. `${` cannot be confused with the placeholders of a scenario, `{server}`, nor with JSON.

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock::wall_ms;
use crate::data::Tables;
use crate::engine::spread;
use crate::values::{Size, nearest};
use crate::workloads::http::http2::hpack::close_string;

/// Every placeholder as it is written, and its meaning.
pub const PLACEHOLDERS: [(&str, &str); 9] = [
    (
        "counter",
        "the number of the request, from 1, or from N: ${counter:N}",
    ),
    ("random", "a whole number between two: ${random:1..100}"),
    ("uuid", "a random UUID (version 4)"),
    ("choice", "one of some texts at random: ${choice:a|b|c}"),
    ("bytes", "so many letters: ${bytes:1KiB}"),
    ("csv", "the value of a column of --data: ${csv:NAME}"),
    (
        "form",
        "the same, encoded as in a form or a query: ${form:NAME}",
    ),
    ("user", "the number of the connection, from 1"),
    ("time", "milliseconds since 1970"),
];

/// Placeholders that test plans are translated to, for counters of their own: of all users, and of each.
pub(super) const COUNTERS: [&str; 2] = ["counter-of-all", "counter-of-user"];

/// Most letters of one placeholder.
const MOST_LETTERS: usize = 16 << 20;

/// Finds the table and the column of a name.
pub(super) type Find<'a> = dyn Fn(&str) -> Result<(usize, usize), String> + 'a;

/// What a template is part of: a value must not end it early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Path and query of a URL: what a URL cannot contain is percent-encoded.
    Url,
    /// The value of a header line.
    Header,
    /// A body: anything.
    Body,
}

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// These bytes.
    Text(Vec<u8>),
    /// The number of the request, counted from this one.
    Counter(u64),
    /// A number of this span.
    Random {
        from: i64,
        to: i64,
    },
    Uuid,
    Choice(Vec<Vec<u8>>),
    /// A column of a table.
    Column {
        table: usize,
        column: usize,
        coding: Coding,
    },
    /// The next number of this counter.
    Counted {
        counter: usize,
        of_user: bool,
    },
    /// The number of the user.
    User,
    /// Milliseconds since 1970.
    Time,
    /// The length of the body.
    Length,
    /// A string of HPACK begins, and ends.
    Open,
    Close,
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// As it is.
    Plain,
    /// For a URL; see [`encode`].
    Url,
    /// For a form; see [`form`].
    Form,
}

/// A text that is taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Template {
    parts: Vec<Part>,
}

/// Random numbers that a seed determines (`SplitMix64`, Steele et al., OOPSLA 2014).
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    /// The numbers of one connection of a run.
    pub(super) fn new(seed: u64, connection: u64) -> Self {
        Self(spread(seed ^ spread(connection)))
    }

    fn next(&mut self) -> u64 {
        let next = spread(self.0);
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        next
    }

    /// A number below `limit`, which is above 0. The bias is below `limit` / 2^64 (Lemire, 2019).
    pub(super) fn below(&mut self, limit: u128) -> u64 {
        ((u128::from(self.next()) * limit) >> 64) as u64
    }

    /// A number above 0 and at most 1.
    pub(super) fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// A number of the standard normal law (Box and Muller, 1958).
    pub(super) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.unit().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// What the placeholders of one request stand for.
#[derive(Debug)]
pub(super) struct Values<'a> {
    /// Requests rendered before it, over all threads.
    pub(super) before: u64,
    /// The number of its user, from 1.
    pub(super) user: u64,
    /// Numbers given out by counters of all users.
    pub(super) counters: &'a [AtomicU64],
    /// Numbers given out by counters of the user.
    pub(super) own: &'a mut [u64],
    /// The row of each table.
    pub(super) rows: &'a [usize],
    pub(super) tables: &'a Tables,
    pub(super) random: &'a mut Random,
    /// The length of its body.
    pub(super) length: usize,
}

impl Template {
    /// Takes `text` apart. `column` finds a column by its name.
    pub(super) fn parse(text: &str, place: Place, column: &Find<'_>) -> Result<Self, String> {
        let mut template = Self::default();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            let (before, after) = (&rest[..at], &rest[at + 2..]);
            if let Some(before) = before.strip_suffix('$') {
                template.text(before.as_bytes());
                template.text(b"${");
                rest = after;
                continue;
            }
            template.text(before.as_bytes());
            let (inside, beyond) = after.split_once('}').ok_or_else(|| {
                let shown: String = after.chars().take(20).collect();
                format!("'${{{shown}' has no closing brace; write $${{ for a literal ${{")
            })?;
            match Part::parse(inside, place, column)? {
                Part::Text(bytes) => template.text(&bytes),
                part => template.parts.push(part),
            }
            rest = beyond;
        }
        template.text(rest.as_bytes());
        Ok(template)
    }

    /// A text without placeholders.
    pub(super) fn plain(text: &str) -> Self {
        let mut template = Self::default();
        template.text(text.as_bytes());
        template
    }

    /// Appends bytes as they are.
    pub(super) fn text(&mut self, bytes: &[u8]) {
        match self.parts.last_mut() {
            _ if bytes.is_empty() => {}
            Some(Part::Text(last)) => last.extend_from_slice(bytes),
            _ => self.parts.push(Part::Text(bytes.to_vec())),
        }
    }

    pub(super) fn part(&mut self, part: Part) {
        self.parts.push(part);
    }

    /// Appends another template.
    pub(super) fn append(&mut self, other: Self) {
        for part in other.parts {
            match part {
                Part::Text(bytes) => self.text(&bytes),
                part => self.parts.push(part),
            }
        }
    }

    /// Its bytes, where they are always the same.
    pub(super) fn constant(&self) -> Option<&[u8]> {
        match &self.parts[..] {
            [] => Some(&[]),
            [Part::Text(bytes)] => Some(bytes),
            _ => None,
        }
    }

    /// The tables that it takes values from.
    pub(super) fn tables(&self) -> impl Iterator<Item = usize> {
        self.parts.iter().filter_map(|part| match part {
            Part::Column { table, .. } => Some(*table),
            _ => None,
        })
    }

    /// The columns that it takes values from, of a text in a header.
    pub(super) fn columns(&self) -> impl Iterator<Item = (usize, usize)> {
        self.parts.iter().filter_map(|part| match part {
            Part::Column {
                table,
                column,
                coding: Coding::Plain,
            } => Some((*table, *column)),
            _ => None,
        })
    }

    /// It contains the number of the request.
    pub(super) fn counts(&self) -> bool {
        let mut parts = self.parts.iter();
        parts.any(|part| matches!(part, Part::Counter(_)))
    }

    /// How many counters it needs, where they are numbered from 0.
    pub(super) fn counters(&self) -> usize {
        let counters = self.parts.iter().map(|part| match part {
            Part::Counted { counter, .. } => counter + 1,
            _ => 0,
        });
        counters.max().unwrap_or(0)
    }

    /// Appends it to `to`.
    pub(super) fn render(&self, values: &mut Values<'_>, to: &mut Vec<u8>) {
        let mut opened = 0;
        for part in &self.parts {
            match part {
                Part::Text(bytes) => to.extend_from_slice(bytes),
                Part::Counter(first) => number(to, first.wrapping_add(values.before)),
                Part::Random { from, to: last } => {
                    let span = last.abs_diff(*from);
                    let offset = values.random.below(u128::from(span) + 1);
                    number(to, from.wrapping_add_unsigned(offset));
                }
                Part::Uuid => uuid(to, [values.random.next(), values.random.next()]),
                Part::Choice(texts) => {
                    let one = values.random.below(texts.len() as u128);
                    to.extend_from_slice(&texts[one as usize]);
                }
                Part::Column {
                    table,
                    column,
                    coding,
                } => {
                    let value = values.tables.cell(*table, values.rows[*table], *column);
                    match coding {
                        Coding::Plain => to.extend_from_slice(value),
                        Coding::Url => encode(value, to),
                        Coding::Form => form(value, to),
                    }
                }
                Part::Counted {
                    counter,
                    of_user: true,
                } => {
                    let own = &mut values.own[*counter];
                    *own += 1;
                    number(to, *own);
                }
                Part::Counted { counter, .. } => {
                    let before = values.counters[*counter].fetch_add(1, Ordering::Relaxed);
                    number(to, before + 1);
                }
                Part::User => number(to, values.user),
                Part::Time => number(to, wall_ms()),
                Part::Length => number(to, values.length),
                Part::Open => opened = to.len(),
                Part::Close => close_string(to, opened),
            }
        }
    }
}

impl Part {
    /// What is between `${` and `}`.
    fn parse(inside: &str, place: Place, column: &Find<'_>) -> Result<Self, String> {
        let (name, argument) = match inside.split_once(':') {
            Some((name, argument)) => (name, Some(argument)),
            None => (inside, None),
        };
        let wrong = |write: &str| Err(format!("cannot read '${{{inside}}}'; write {write}"));
        match (name, argument) {
            ("counter", None) => Ok(Self::Counter(1)),
            ("counter", Some(first)) => match first.parse() {
                Ok(first) => Ok(Self::Counter(first)),
                Err(_) => wrong("${counter}, or ${counter:1000} to begin at 1000"),
            },
            ("random", argument) => {
                let ends = argument.and_then(|text| text.split_once(".."));
                let ends = ends.map(|(from, to)| (from.parse::<i64>(), to.parse::<i64>()));
                match ends {
                    Some((Ok(from), Ok(to))) if from <= to => Ok(Self::Random { from, to }),
                    _ => wrong("${random:1..100}, the smaller number first"),
                }
            }
            ("uuid", None) => Ok(Self::Uuid),
            ("uuid", Some(_)) => wrong("${uuid}"),
            ("choice", argument) => {
                let texts: Vec<&str> = argument.unwrap_or_default().split('|').collect();
                if argument.is_none() || texts.len() < 2 {
                    return wrong("${choice:a|b|c}, two texts or more");
                }
                if place == Place::Header && texts.iter().any(|text| !fits_header(text.as_bytes()))
                {
                    return wrong("texts without line breaks in a header");
                }
                let in_place = |text: &str| {
                    let mut bytes = Vec::new();
                    match place {
                        Place::Url => encode(text.as_bytes(), &mut bytes),
                        Place::Header | Place::Body => bytes.extend_from_slice(text.as_bytes()),
                    }
                    bytes
                };
                Ok(Self::Choice(texts.into_iter().map(in_place).collect()))
            }
            ("bytes", size) => {
                let size = size.map(|size| size.parse().ok().map(|Size(size)| size));
                match size.flatten() {
                    Some(size) if size <= MOST_LETTERS => Ok(Self::Text(letters(size))),
                    _ => wrong("${bytes:100B} or ${bytes:1KiB}, 16 MiB at most"),
                }
            }
            ("csv" | "form", Some(wanted)) if !wanted.is_empty() => {
                let (table, column) = column(wanted)?;
                let coding = match place {
                    _ if name == "form" => Coding::Form,
                    Place::Url => Coding::Url,
                    Place::Header | Place::Body => Coding::Plain,
                };
                Ok(Self::Column {
                    table,
                    column,
                    coding,
                })
            }
            ("csv" | "form", _) => wrong("${csv:NAME} or ${form:NAME} with the name of a column"),
            ("user", None) => Ok(Self::User),
            ("time", None) => Ok(Self::Time),
            ("user" | "time", Some(_)) => wrong("${user} or ${time}"),
            (name, Some(counter)) if COUNTERS.contains(&name) => match counter.parse::<u16>() {
                Ok(counter) => Ok(Self::Counted {
                    counter: usize::from(counter),
                    of_user: name == COUNTERS[1],
                }),
                Err(_) => wrong("${counter}"),
            },
            _ => {
                let near = nearest(name, PLACEHOLDERS.map(|(known, _)| known));
                Err(format!(
                    "unknown placeholder '${{{inside}}}'{near}; placeholders: ${{counter}}, ${{random:1..100}}, ${{uuid}}, ${{user}}, ${{time}}, \
                     ${{choice:a|b}}, ${{bytes:1KiB}}, ${{csv:NAME}} and ${{form:NAME}}; write $${{ for a literal ${{"
                ))
            }
        }
    }
}

/// So many letters, always the same.
pub(crate) fn letters(number: usize) -> Vec<u8> {
    (b'a'..=b'z').cycle().take(number).collect()
}

/// Bytes of a header value (RFC 9110, section 5.5): none that ends the line.
pub(super) fn fits_header(bytes: &[u8]) -> bool {
    let ends = |byte: &u8| byte.is_ascii_control() && *byte != b'\t';
    !bytes.iter().any(ends)
}

fn number(to: &mut Vec<u8>, number: impl std::fmt::Display) {
    // A vector takes everything.
    let _ = write!(to, "{number}");
}

/// A UUID of version 4 of these random bits (RFC 9562, section 5.4).
fn uuid(to: &mut Vec<u8>, [high, low]: [u64; 2]) {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&high.to_be_bytes());
    bytes[8..].copy_from_slice(&low.to_be_bytes());
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            to.push(b'-');
        }
        to.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends a value to a URL: what a URL cannot contain (RFC 3986, section 2) and `#`, where it would end, is percent-encoded.
/// Delimiters stay as they are, so that a value may be a path with a query.
pub(super) fn encode(value: &[u8], to: &mut Vec<u8>) {
    for byte in value {
        if byte.is_ascii_graphic() && !b"\"#<>\\^`{|}".contains(byte) {
            to.push(*byte);
        } else {
            percent(*byte, to);
        }
    }
}

/// Appends a value as forms are sent (`application/x-www-form-urlencoded`, WHATWG URL, section 5).
pub(super) fn form(value: &[u8], to: &mut Vec<u8>) {
    for byte in value {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'*' | b'-' | b'.' | b'_' => to.push(*byte),
            b' ' => to.push(b'+'),
            _ => percent(*byte, to),
        }
    }
}

fn percent(byte: u8, to: &mut Vec<u8>) {
    let upper = |digit: u8| HEX[usize::from(digit)].to_ascii_uppercase();
    to.extend_from_slice(&[b'%', upper(byte >> 4), upper(byte & 15)]);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn tables() -> Tables {
        Tables::parse(&[(
            "u.csv",
            b"name,path\nann,/a b?x=1#f\n\"b\"\"o\",/\xc3\xa9\n".to_vec(),
        )])
        .unwrap()
    }

    fn parsed(text: &str, place: Place) -> Result<Template, String> {
        let tables = tables();
        Template::parse(text, place, &|name| tables.find(name))
    }

    fn rendered(text: &str, place: Place, before: u64, seed: u64) -> String {
        let tables = tables();
        let template = parsed(text, place).unwrap();
        let mut bytes = Vec::new();
        let mut values = Values {
            before,
            user: 3,
            counters: &[AtomicU64::new(0), AtomicU64::new(before)],
            own: &mut [before, 0],
            rows: &[(before % 2) as usize],
            tables: &tables,
            random: &mut Random::new(seed, 0),
            length: 7,
        };
        template.render(&mut values, &mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn placeholders_become_values_and_all_else_stays() {
        let body = |text: &str| rendered(text, Place::Body, 0, 1);
        assert_eq!(
            body("{\"id\": ${counter}, \"a\": {}}"),
            "{\"id\": 1, \"a\": {}}"
        );
        assert_eq!(body("${counter:1000}"), "1000");
        assert_eq!(rendered("${counter}${counter}", Place::Body, 41, 1), "4242");
        assert_eq!(
            body("$${counter} $5 {x} ${random:7..7}"),
            "${counter} $5 {x} 7"
        );
        assert_eq!(body("é${random:-3..-3}"), "é-3");
        assert_eq!(body("<${bytes:28B}>"), "<abcdefghijklmnopqrstuvwxyzab>");
        assert_eq!(body("${csv:name}"), "ann");
        assert_eq!(rendered("${csv:name}", Place::Body, 1, 1), "b\"o");
        assert!(["a b", "c"].contains(&&*body("${choice:a b|c}")));
        assert_eq!(body("${user}"), "3");
        assert!(body("${time}").parse::<u64>().unwrap() > 1_700_000_000_000);
        assert_eq!(
            rendered(
                "${counter-of-all:1}${counter-of-all:1} ${counter-of-user:0}",
                Place::Body,
                41,
                1
            ),
            "4243 42"
        );
    }

    #[test]
    fn values_in_a_url_are_encoded_where_a_url_must_be() {
        let url = |before| rendered("/x${csv:path}", Place::Url, before, 1);
        assert_eq!(url(0), "/x/a%20b?x=1%23f");
        assert_eq!(url(1), "/x/%C3%A9");
        let form = |place| rendered("${form:path}", place, 0, 1);
        assert_eq!(form(Place::Body), "%2Fa+b%3Fx%3D1%23f");
        assert_eq!(form(Place::Url), "%2Fa+b%3Fx%3D1%23f");
    }

    #[test]
    fn the_seed_determines_random_values_and_each_is_in_its_span() {
        let text = "${random:1..6} ${uuid} ${choice:a|b|c}";
        assert_eq!(
            rendered(text, Place::Body, 0, 5),
            rendered(text, Place::Body, 0, 5)
        );
        assert_ne!(
            rendered(text, Place::Body, 0, 5),
            rendered(text, Place::Body, 0, 6)
        );
        let mut seen = BTreeSet::new();
        for seed in 0..200 {
            let number: i64 = rendered("${random:-1..4}", Place::Body, 0, seed)
                .parse()
                .unwrap();
            seen.insert(number);
        }
        assert_eq!(seen, (-1..=4).collect());
        let whole = format!("${{random:{}..{}}}", i64::MIN, i64::MAX);
        assert!(rendered(&whole, Place::Body, 0, 3).parse::<i64>().is_ok());
    }

    #[test]
    fn a_uuid_has_the_form_of_version_4_and_comes_once() {
        let mut seen = BTreeSet::new();
        for seed in 0..1000 {
            let uuid = rendered("${uuid}", Place::Header, 0, seed);
            let groups: Vec<usize> = uuid.split('-').map(str::len).collect();
            assert_eq!(groups, [8, 4, 4, 4, 12], "{uuid}");
            assert_eq!(&uuid[14..15], "4");
            assert!(["8", "9", "a", "b"].contains(&&uuid[19..20]), "{uuid}");
            assert!(seen.insert(uuid));
        }
    }

    #[test]
    fn a_placeholder_that_cannot_be_read_says_how_to_write_it() {
        for (text, word) in [
            ("${conter}", "did you mean 'counter'?"),
            ("${name}", "write $${ for a literal ${"),
            ("${user:1}", "write ${user}"),
            ("${counter", "closing brace"),
            ("${counter:x}", "${counter:1000}"),
            ("${random}", "${random:1..100}"),
            ("${random:9..1}", "smaller number first"),
            ("${random:1}", "${random:1..100}"),
            ("${uuid:4}", "write ${uuid}"),
            ("${choice:a}", "two texts"),
            ("${bytes}", "${bytes:100B}"),
            ("${bytes:1GiB}", "16 MiB"),
            ("${choice:a|b\n}", "line breaks"),
            ("${csv}", "name of a column"),
            ("${csv:nme}", "did you mean 'name'?"),
        ] {
            let why = parsed(text, Place::Header).unwrap_err();
            assert!(why.contains(word), "{text}: {why}");
        }
    }

    #[test]
    fn a_text_without_placeholders_is_constant() {
        for text in ["", "a", "{\"a\": {}} $${x}", "a${bytes:9B}b"] {
            assert!(parsed(text, Place::Body).unwrap().constant().is_some());
        }
        assert!(parsed("${uuid}", Place::Body).unwrap().constant().is_none());
    }
}
