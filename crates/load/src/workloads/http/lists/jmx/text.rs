//! Texts of a plan: references to variables, `${name}`, and calls of functions, `${__P(name,default)}`, as JMeter 5.6 reads them
//! (`FunctionParser`).
//!
//! What is known before the run becomes text, and what differs from request to request a placeholder of this program.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};

use crate::template::{self as placeholders, COUNTERS};

/// Calls within calls.
const DEEPEST: usize = 16;

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// The same in each request.
    Text(String),
    /// A column of a data set, by the name that the load's tables have for it.
    Column(String),
    /// Another placeholder.
    Other(String),
}

/// How a text is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// As it is.
    Plain,
    /// As path or query, of which JMeter encodes nothing.
    Url,
    /// As name or value of a form or a query, encoded.
    Form,
    /// The same of what is encoded already, perhaps in another way: decoded before.
    Decoded,
}

/// What names stand for.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    /// Properties of the command line.
    properties: &'a [(String, String)],
    /// Properties that the plan has asked for.
    pub(super) asked: RefCell<BTreeSet<String>>,
    /// Variables with one value, or why they have none.
    pub(super) variables: HashMap<String, Result<String, String>>,
    /// The number of each counter, by the element that contains it and its place there.
    counters: RefCell<HashMap<(usize, usize), usize>>,
}

impl<'a> Names<'a> {
    /// Properties alone.
    pub(super) fn with(properties: &'a [(String, String)]) -> Self {
        Self {
            properties,
            ..Self::default()
        }
    }
}

/// A text is read within an element: what that can refer to.
#[derive(Debug)]
pub(super) struct Reading<'a> {
    pub(super) names: &'a Names<'a>,
    /// Columns of data sets by the names of their variables; the last one counts.
    pub(super) columns: &'a [(String, String)],
    /// The element.
    pub(super) element: usize,
    /// Calls of counters in it so far.
    pub(super) calls: Cell<usize>,
}

impl Reading<'_> {
    /// The parts of a text; or why it cannot be sent.
    pub(super) fn pieces(&self, text: &str) -> Result<Vec<Piece>, String> {
        // JMeter reads no escapes where there is no reference.
        if !text.contains("${") {
            return Ok(vec![Piece::Text(text.to_owned())]);
        }
        let mut rest = text;
        self.compiled(&mut rest, false, 0)
    }

    /// A text that is the same in each request.
    pub(super) fn fixed(&self, text: &str) -> Result<String, String> {
        let mut all = String::new();
        for piece in self.pieces(text)? {
            let Piece::Text(piece) = piece else {
                let text = super::shortened(text);
                return Err(format!(
                    "'{text}' changes during the run, which is not supported here"
                ));
            };
            all.push_str(&piece);
        }
        Ok(all)
    }

    /// A text with placeholders.
    pub(super) fn template(&self, text: &str, used: Use) -> Result<String, String> {
        Ok(template(&self.pieces(text)?, used))
    }

    /// Reads to the end, or an argument up to a comma or the parenthesis that closes the call, which stay.
    fn compiled(
        &self,
        rest: &mut &str,
        is_argument: bool,
        depth: usize,
    ) -> Result<Vec<Piece>, String> {
        if depth > DEEPEST {
            return Err("it has too many calls within calls".to_owned());
        }
        let mut pieces = Vec::new();
        let mut text = String::new();
        let mut open = 0_usize;
        while let Some(letter) = rest.chars().next() {
            if is_argument && (letter == ',' || letter == ')' && open == 0) {
                break;
            }
            let after = &rest[letter.len_utf8()..];
            if letter == '\\' {
                // A backslash stays unless it is before one of these.
                match after.chars().next() {
                    Some(next @ ('$' | ',' | '\\')) => text.push(next),
                    Some(next) => text.extend(['\\', next]),
                    None => text.push('\\'),
                }
                *rest = after
                    .get(after.chars().next().map_or(0, char::len_utf8)..)
                    .unwrap_or("");
                continue;
            }
            if let Some(after) = rest.strip_prefix("${") {
                *rest = after;
                push(&mut pieces, &mut text);
                pieces.extend(self.reference(rest, depth)?);
                continue;
            }
            match letter {
                '(' => open += 1,
                ')' if open > 0 => open -= 1,
                _ => {}
            }
            text.push(letter);
            *rest = after;
        }
        push(&mut pieces, &mut text);
        Ok(joined(pieces))
    }

    /// What is after `${`.
    fn reference(&self, rest: &mut &str, depth: usize) -> Result<Vec<Piece>, String> {
        let whole = *rest;
        let end = rest.find(['}', '(']);
        let Some(end) = end else {
            let shown = super::shortened(whole);
            return Err(format!("'${{{shown}' has no closing brace"));
        };
        let name = whole[..end].replace('\\', "");
        let is_call = whole[end..].starts_with('(') && name.starts_with("__");
        if !is_call {
            let end = whole
                .find('}')
                .ok_or_else(|| format!("'${{{}' has no closing brace", super::shortened(whole)))?;
            *rest = &whole[end + 1..];
            let name = &whole[..end];
            if name.starts_with("__") {
                return self.call(name, &[]).map(|piece| vec![piece]);
            }
            return self.variable(name);
        }
        *rest = &whole[end + 1..];
        let mut arguments = Vec::new();
        loop {
            let argument = self.compiled(rest, true, depth + 1)?;
            arguments.push(argument);
            let next = rest.chars().next();
            *rest = rest.get(1..).unwrap_or("");
            match next {
                Some(',') => {}
                Some(_) => break,
                None => return Err(format!("'${{{}' does not end", super::shortened(whole))),
            }
        }
        *rest = rest.strip_prefix('}').ok_or_else(|| {
            format!(
                "'${{{}' has no closing brace after its arguments",
                super::shortened(whole)
            )
        })?;
        let mut texts = Vec::new();
        for argument in &arguments {
            texts.push(match &argument[..] {
                [] => "",
                [Piece::Text(text)] => text,
                _ => {
                    return Err(format!(
                        "{name} has an argument that changes during the run"
                    ));
                }
            });
        }
        self.call(&name, &texts).map(|piece| vec![piece])
    }

    fn variable(&self, name: &str) -> Result<Vec<Piece>, String> {
        if let Some((_, column)) = self.columns.iter().rev().find(|(known, _)| known == name) {
            return Ok(vec![Piece::Column(column.clone())]);
        }
        match self.names.variables.get(name) {
            Some(Ok(value)) => Ok(vec![Piece::Text(value.clone())]),
            Some(Err(why)) => Err(format!("variable {}: {why}", super::shortened(name))),
            None => Err(format!(
                "variable {} is set by nothing that is supported",
                super::shortened(name)
            )),
        }
    }

    fn call(&self, name: &str, arguments: &[&str]) -> Result<Piece, String> {
        let argument = |at: usize| arguments.get(at).map_or("", |text| text.trim());
        let text = |text: String| Ok(Piece::Text(text));
        let other = |placeholder: String| Ok(Piece::Other(placeholder));
        match name {
            "__P" | "__property" => {
                let key = argument(0);
                // __property(name,variable,default), __P(name,default), whose default is 1.
                let (at, otherwise) = if name == "__P" { (1, "1") } else { (2, key) };
                self.names.asked.borrow_mut().insert(key.to_owned());
                let mut properties = self.names.properties.iter().rev();
                let given = properties.find(|(given, _)| given == key);
                let default = arguments.get(at).map_or(otherwise, |text| text.trim());
                text(given.map_or(default, |(_, value)| value).to_owned())
            }
            "__V" => match &self.variable(argument(0))?[..] {
                [piece] => Ok(piece.clone()),
                _ => text(String::new()),
            },
            "__counter" => {
                let place = (self.element, self.calls.get());
                self.calls.set(place.1 + 1);
                let mut counters = self.names.counters.borrow_mut();
                let next = counters.len();
                let counter = *counters.entry(place).or_insert(next);
                // Each call of an element has a counter, which all users share unless it is TRUE.
                let of_user = argument(0).eq_ignore_ascii_case("true");
                other(format!("${{{}:{counter}}}", COUNTERS[usize::from(of_user)]))
            }
            "__Random" => match (argument(0).parse::<i64>(), argument(1).parse::<i64>()) {
                (Ok(from), Ok(to)) if from <= to => other(format!("${{random:{from}..{to}}}")),
                _ => Err(format!(
                    "__Random({}) is not two numbers, the smaller one first",
                    super::shortened(&arguments.join(","))
                )),
            },
            "__UUID" => other("${uuid}".to_owned()),
            "__threadNum" => other("${user}".to_owned()),
            "__time" if argument(0).is_empty() => other("${time}".to_owned()),
            _ => Err(format!(
                "function {} is not supported",
                super::shortened(name)
            )),
        }
    }
}

/// The parts of a text as a text with placeholders of this program.
pub(super) fn template(pieces: &[Piece], used: Use) -> String {
    let mut all = String::new();
    for (at, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Text(text) => {
                let mut bytes = Vec::new();
                match used {
                    Use::Plain => bytes.extend_from_slice(text.as_bytes()),
                    // A URL that is written may be encoded already; what is added to it here is what it cannot contain.
                    Use::Url => placeholders::encode(text.as_bytes(), &mut bytes),
                    Use::Form => placeholders::form(text.as_bytes(), &mut bytes),
                    Use::Decoded => placeholders::form(&decoded(text), &mut bytes),
                }
                let text = String::from_utf8_lossy(&bytes);
                all.push_str(&literal(&text, at + 1 == pieces.len()));
            }
            Piece::Column(name) => {
                let sort = match used {
                    Use::Form | Use::Decoded => "form",
                    Use::Plain | Use::Url => "csv",
                };
                all.extend(["${", sort, ":", name, "}"]);
            }
            Piece::Other(placeholder) => all.push_str(placeholder),
        }
    }
    all
}

/// What an encoded text of a form stands for; what is no code stays.
fn decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut all = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let code = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                all.push(byte);
                at += 2;
            }
            None if bytes[at] == b'+' => all.push(b' '),
            None => all.push(bytes[at]),
        }
        at += 1;
    }
    all
}

fn push(pieces: &mut Vec<Piece>, text: &mut String) {
    if !text.is_empty() {
        pieces.push(Piece::Text(std::mem::take(text)));
    }
}

/// The same with texts side by side made one: their edges could form a placeholder.
fn joined(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut all: Vec<Piece> = Vec::new();
    for piece in pieces {
        match (all.last_mut(), piece) {
            (Some(Piece::Text(before)), Piece::Text(text)) => before.push_str(&text),
            (_, piece) => all.push(piece),
        }
    }
    all
}

/// A text that contains no placeholders of this program.
fn literal(text: &str, is_last: bool) -> String {
    let escaped = text.replace("${", "$${");
    match escaped.strip_suffix('$') {
        // Before a placeholder it would make that a text.
        Some(before) if !is_last => format!("{before}${{choice:$|$}}"),
        _ => escaped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with<T>(read: impl FnOnce(&Reading<'_>) -> T) -> T {
        let properties = [("users".to_owned(), "5".to_owned())];
        let mut names = Names::with(&properties);
        names
            .variables
            .insert("host".to_owned(), Ok("h".to_owned()));
        let why = "it is set by X".to_owned();
        names.variables.insert("token".to_owned(), Err(why));
        let columns = [("user".to_owned(), "user#1".to_owned())];
        read(&Reading {
            names: &names,
            columns: &columns,
            element: 7,
            calls: Cell::new(0),
        })
    }

    #[test]
    fn references_become_text_or_placeholders() {
        with(|reading| {
            let plain = |text: &str| reading.template(text, Use::Plain).unwrap();
            for (text, expected) in [
                ("a", "a"),
                ("\\, $ {x} $5", "\\, $ {x} $5"),
                ("${host}/${user}", "h/${csv:user#1}"),
                ("${__P(users)}-${__P(none, 7 )}-${__P(none)}", "5-7-1"),
                (
                    "${__property(users)} ${__property(a,,d)} ${__property(a)}",
                    "5 d a",
                ),
                ("${__P(none,${__P(users,(1),2)})}", "5"),
                ("${__P(none,a\\,b)}", "a,b"),
                ("${__Random(1,${__P(users)},x)}", "${random:1..5}"),
                (
                    "${__UUID}${__UUID()} ${__threadNum} ${__time()}",
                    "${uuid}${uuid} ${user} ${time}",
                ),
                ("cost $${user} $", "cost ${choice:$|$}${csv:user#1} $"),
                ("${host}\\${user} \\\\ \\n", "h$${user} \\ \\n"),
                ("${__V(host)}", "h"),
            ] {
                assert_eq!(plain(text), expected, "{text}");
            }
        });
        with(|reading| {
            let again = reading
                .template("a+b%26%zz%2${user}", Use::Decoded)
                .unwrap();
            assert_eq!(again, "a+b%26%25zz%252${form:user#1}");
            let form = reading.template("a b&${user}", Use::Form).unwrap();
            assert_eq!(form, "a+b%26${form:user#1}");
            let url = reading.template("/a b?x=${user}&y=%20", Use::Url).unwrap();
            assert_eq!(url, "/a%20b?x=${csv:user#1}&y=%20");
        });
    }

    #[test]
    fn each_call_of_a_counter_has_its_own_wherever_it_is_read() {
        with(|reading| {
            let read = |element| {
                let reading = Reading {
                    names: reading.names,
                    columns: &[],
                    element,
                    calls: Cell::new(0),
                };
                let text = "${__counter(FALSE,)} ${__counter(TRUE)}";
                reading.template(text, Use::Plain).unwrap()
            };
            let first = read(1);
            assert_eq!(first, "${counter-of-all:0} ${counter-of-user:1}");
            assert_eq!(read(1), first);
            assert_eq!(read(2), "${counter-of-all:2} ${counter-of-user:3}");
        });
    }

    #[test]
    fn what_cannot_be_known_says_why() {
        with(|reading| {
            for (text, word) in [
                ("${token}", "variable token: it is set by X"),
                ("${nothing}", "variable nothing is set by nothing"),
                ("${__groovy(1+1)}", "function __groovy is not supported"),
                ("${__time(yyyy)}", "function __time is not supported"),
                ("${__Random(5,1)}", "the smaller one first"),
                ("${__P(${user})}", "an argument that changes"),
                ("${host", "no closing brace"),
                ("${__P(a", "does not end"),
                ("${__P(a)", "no closing brace after"),
            ] {
                let why = reading.pieces(text).unwrap_err();
                assert!(why.contains(word), "{text}: {why}");
            }
            let why = reading.fixed("${user}").unwrap_err();
            assert!(why.contains("changes during the run"), "{why}");
            let deep = "${__P(".repeat(100);
            assert!(reading.pieces(&deep).is_err());
        });
    }
}
