//! Compares a parsed file with the JSON schema: unknown keys, missing keys, wrong types, unknown words.
//!
//! Serde stops at the first mistake and does not know the nearest key. The schema that serde's types derive
//! knows all keys, so walking the tree beside it finds every mistake in one pass and cannot
//! drift from the types. What is wrong and can be spared is taken out, so that the rest is still read.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use rungwise_load::values;
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{Collector, any_of, did_you_mean};

/// Keys that somebody may expect; the answer says what to write instead.
const INSTEAD: [(&str, &str); 1] = [(
    "grid",
    "unknown key; write a grid as one or two [[rungs.axes]], each with a title and points",
)];

/// Walks `table` beside `schema`; answers whether what is left can be read.
pub(super) fn check(
    schema: &Value,
    table: &mut Spanned<DeTable<'_>>,
    problems: &mut Collector<'_>,
) -> bool {
    let mut walk = Walk {
        root: schema,
        problems,
        readable: true,
    };
    let span = table.span();
    walk.table(schema, table.get_mut(), span, "");
    walk.readable
}

/// The place of each value, by its path: `workload.depth`, `rungs[2].workload`.
pub(super) fn spans(table: &Spanned<DeTable<'_>>) -> BTreeMap<String, Range<usize>> {
    fn of_table(table: &DeTable<'_>, path: &str, spans: &mut BTreeMap<String, Range<usize>>) {
        for (key, value) in table {
            of_value(value, join(path, key.get_ref()), spans);
        }
    }
    fn of_value(
        value: &Spanned<DeValue<'_>>,
        path: String,
        spans: &mut BTreeMap<String, Range<usize>>,
    ) {
        match value.get_ref() {
            DeValue::Table(table) => of_table(table, &path, spans),
            DeValue::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    of_value(item, format!("{path}[{index}]"), spans);
                }
            }
            _ => {}
        }
        spans.insert(path, value.span());
    }
    let mut spans = BTreeMap::new();
    of_table(table.get_ref(), "", &mut spans);
    spans
}

struct Walk<'a, 'p, 't> {
    root: &'a Value,
    problems: &'p mut Collector<'t>,
    readable: bool,
}

impl Walk<'_, '_, '_> {
    fn table(&mut self, schema: &Value, table: &mut DeTable<'_>, span: Range<usize>, path: &str) {
        let schema = self.resolve(schema).clone();
        let known = schema.get("properties").and_then(Value::as_object);
        let rest = schema
            .get("additionalProperties")
            .filter(|rest| rest.is_object());
        let required: Vec<&str> = strings(schema.get("required"));

        let mut spare = Vec::new();
        for (key, value) in table.iter_mut() {
            let name = key.get_ref().as_ref();
            let place = join(path, name);
            let Some(expected) = known.and_then(|known| known.get(name)).or(rest) else {
                let message = match INSTEAD.iter().find(|(word, _)| *word == name) {
                    Some((_, message)) => (*message).to_owned(),
                    None => unknown_key(name, path, known),
                };
                self.problems.add(key.span(), place, message);
                spare.push(name.to_owned());
                continue;
            };
            if !self.value(expected, value, &place) {
                if required.contains(&name) {
                    self.readable = false;
                } else {
                    spare.push(name.to_owned());
                }
            }
        }
        for name in &spare {
            table.remove(name.as_str());
        }

        for name in required {
            if !table.iter().any(|(key, _)| key.get_ref().as_ref() == name) {
                self.readable = false;
                let message = format!("the key '{name}' is missing{}", self.purpose(&schema, name));
                self.problems.add(span.clone(), path, message);
            }
        }
    }

    /// Answers whether the value may stay.
    fn value(&mut self, schema: &Value, value: &mut Spanned<DeValue<'_>>, path: &str) -> bool {
        let span = value.span();
        let format = self.resolve(schema).get("format").and_then(Value::as_str);
        let format = format.map(str::to_owned);
        let options = self.options(schema);
        let words: Vec<String> = options.iter().flat_map(words).collect();
        if !words.is_empty() {
            return self.word(&words, value, path);
        }
        let found = type_name(value.get_ref());
        let Some(schema) = options.iter().find(|option| accepts(option, found)) else {
            let wanted: Vec<&str> = options.iter().flat_map(type_names).collect();
            let mut message = format!(
                "expected {}, found {}",
                any_of(wanted.iter().copied().map(article)),
                article(found)
            );
            if let (true, Some(example)) =
                (wanted == ["string"], options.first().and_then(quantity))
            {
                let _ = write!(message, "; include the unit: \"{example}\"");
            } else if found == "table" && wanted.contains(&"string") {
                message += "; quote an id that contains dots: \"net.rps_cpus\" = \"all\"";
            }
            self.problems.add(span, path, message);
            return false;
        };
        let fits = match value.get_mut() {
            DeValue::Table(table) => {
                self.table(schema, table, span.clone(), path);
                true
            }
            DeValue::Array(items) => {
                let item = schema.get("items").cloned().unwrap_or(Value::Bool(true));
                let mut fine = true;
                for (index, value) in items.iter_mut().enumerate() {
                    fine &= self.value(&item, value, &format!("{path}[{index}]"));
                }
                fine
            }
            DeValue::Integer(number) => {
                let fits = i64::from_str_radix(number.as_str(), number.radix())
                    .is_ok_and(|number| number >= 0 && number <= largest(schema));
                if !fits {
                    let message = format!("expected a number from 0 to {}", largest(schema));
                    self.problems.add(span.clone(), path, message);
                }
                fits
            }
            _ => true,
        };
        // Values with a text of their own, such as `20k/s`.
        let text = match value.get_ref() {
            DeValue::String(text) => text.as_ref(),
            DeValue::Integer(number) => number.as_str(),
            _ => return fits,
        };
        match format.and_then(|format| values::check(&format, text)) {
            Some(why) if fits => {
                self.problems.add(span, path, why);
                false
            }
            _ => fits,
        }
    }

    fn word(&mut self, words: &[String], value: &Spanned<DeValue<'_>>, path: &str) -> bool {
        let listed = any_of(words.iter().map(String::as_str));
        let message = match value.get_ref() {
            DeValue::String(text) if words.iter().any(|word| word == text) => return true,
            DeValue::String(text) => {
                let near = did_you_mean(text, words.iter().map(String::as_str));
                format!("'{text}' is not {listed}{near}")
            }
            other => format!("expected {listed}, found {}", article(type_name(other))),
        };
        self.problems.add(value.span(), path, message);
        false
    }

    /// What a schema allows: its alternatives without null, references followed.
    fn options(&self, schema: &Value) -> Vec<Value> {
        let schema = self.resolve(schema);
        let alternatives = schema
            .get("anyOf")
            .or_else(|| schema.get("oneOf"))
            .and_then(Value::as_array);
        match alternatives {
            Some(alternatives) => alternatives
                .iter()
                .filter(|option| option.get("type").and_then(Value::as_str) != Some("null"))
                .flat_map(|option| self.options(option))
                .collect(),
            None => vec![schema.clone()],
        }
    }

    fn resolve<'s>(&'s self, schema: &'s Value) -> &'s Value {
        let target = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| reference.strip_prefix('#'))
            .and_then(|pointer| self.root.pointer(pointer));
        target.unwrap_or(schema)
    }

    /// ` (what it is)`, from the schema.
    fn purpose(&self, schema: &Value, name: &str) -> String {
        let property = schema.get("properties").and_then(|known| known.get(name));
        let described = property.and_then(|property| {
            let own = property.get("description");
            own.or_else(|| self.resolve(property).get("description"))
                .and_then(Value::as_str)
        });
        let first = described
            .and_then(|text| text.split(['.', '\n', ':']).next())
            .unwrap_or_default();
        if first.is_empty() {
            String::new()
        } else {
            format!(" ({})", decapitalised(first))
        }
    }
}

/// An example of the quantity that a key holds, from its description: its default, or the first text in backticks.
fn quantity(schema: &Value) -> Option<&str> {
    let described = schema.get("description")?.as_str()?;
    let default = described.split("Default ").nth(1);
    let written = described.split('`').nth(1);
    default
        .map(|rest| rest.trim_end_matches('.'))
        .into_iter()
        .chain(written)
        .find(|text| text.starts_with(|c: char| c.is_ascii_digit()) && !text.contains(' '))
}

fn decapitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| {
        first.to_lowercase().chain(chars).collect()
    })
}

fn unknown_key(name: &str, path: &str, known: Option<&serde_json::Map<String, Value>>) -> String {
    let keys: Vec<&str> = known
        .into_iter()
        .flat_map(|known| known.keys().map(String::as_str))
        .collect();
    let near = did_you_mean(name, keys.iter().copied());
    let place = if path.is_empty() {
        "the file".to_owned()
    } else {
        format!("'{path}'")
    };
    if near.is_empty() {
        format!("unknown key; {place} accepts {}", any_of(keys))
    } else {
        format!("unknown key{near}")
    }
}

fn join(path: &str, name: &str) -> String {
    let name = if name.contains('.') {
        format!("\"{name}\"")
    } else {
        name.to_owned()
    };
    if path.is_empty() {
        name
    } else {
        format!("{path}.{name}")
    }
}

fn strings(list: Option<&Value>) -> Vec<&str> {
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// The words of an enumeration.
fn words(schema: &Value) -> Vec<String> {
    let constant = schema.get("const").and_then(Value::as_str);
    constant
        .into_iter()
        .chain(strings(schema.get("enum")))
        .map(str::to_owned)
        .collect()
}

/// The TOML names of a schema's types.
fn type_names(schema: &Value) -> Vec<&str> {
    let types = match schema.get("type") {
        Some(Value::String(one)) => vec![one.as_str()],
        list => strings(list),
    };
    types
        .into_iter()
        .filter(|name| *name != "null")
        .map(|name| if name == "object" { "table" } else { name })
        .collect()
}

fn accepts(schema: &Value, found: &str) -> bool {
    let names = type_names(schema);
    names.is_empty() || names.contains(&found) || (found == "integer" && names.contains(&"number"))
}

/// The largest integer of a schema; every integer of a scenario counts something, so the smallest is 0.
fn largest(schema: &Value) -> i64 {
    match schema.get("format").and_then(Value::as_str) {
        Some("uint32") => i64::from(u32::MAX),
        _ => i64::MAX,
    }
}

fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "string",
        DeValue::Integer(_) => "integer",
        DeValue::Float(_) => "number",
        DeValue::Boolean(_) => "boolean",
        DeValue::Datetime(_) => "date",
        DeValue::Array(_) => "array",
        DeValue::Table(_) => "table",
    }
}

fn article(name: &str) -> &'static str {
    match name {
        "string" => "a string",
        "integer" => "an integer",
        "number" => "a number",
        "boolean" => "true or false",
        "date" => "a date",
        "array" => "an array",
        "table" => "a table",
        _ => "something else",
    }
}
