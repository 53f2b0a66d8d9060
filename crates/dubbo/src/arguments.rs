//! Arguments from JSON, converted by the parameter types of the method.
//!
//! The forms are those that the serializers of dubbo-hessian-lite write for the same Java values: `BasicSerializer`,
//! `CollectionSerializer`, `MapSerializer`, `ArraySerializer`, `StringValueSerializer`, `EnumSerializer`, `JavaSerializer`.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use serde_json::Value as Json;

use crate::Error;
use crate::hessian::{List, Map, Object, Value};
use crate::java::{JavaType, Primitive};

/// JSON values within one another: as many as `serde_json` reads.
const DEEPEST: usize = 128;
/// The key of a JSON object that names its Java class.
const CLASS: &str = "class";

/// Collections that a provider accepts as an untyped list.
const LISTS: [&str; 4] = [
    "java.util.List",
    "java.util.ArrayList",
    "java.util.Collection",
    "java.lang.Iterable",
];

/// Other collections, each with the class that is sent for it.
const COLLECTIONS: [(&str, &str); 10] = [
    ("java.util.Set", "java.util.HashSet"),
    ("java.util.HashSet", "java.util.HashSet"),
    ("java.util.LinkedHashSet", "java.util.LinkedHashSet"),
    ("java.util.SortedSet", "java.util.TreeSet"),
    ("java.util.TreeSet", "java.util.TreeSet"),
    ("java.util.LinkedList", "java.util.LinkedList"),
    ("java.util.Queue", "java.util.LinkedList"),
    ("java.util.Deque", "java.util.LinkedList"),
    ("java.util.ArrayDeque", "java.util.ArrayDeque"),
    ("java.util.Vector", "java.util.Vector"),
];

/// Maps, each with the class that is sent for it; `None` for an untyped map.
const MAPS: [(&str, Option<&str>); 8] = [
    ("java.util.Map", None),
    ("java.util.HashMap", None),
    ("java.util.LinkedHashMap", Some("java.util.LinkedHashMap")),
    ("java.util.SortedMap", Some("java.util.TreeMap")),
    ("java.util.TreeMap", Some("java.util.TreeMap")),
    ("java.util.Hashtable", Some("java.util.Hashtable")),
    (
        "java.util.concurrent.ConcurrentMap",
        Some("java.util.concurrent.ConcurrentHashMap"),
    ),
    (
        "java.util.concurrent.ConcurrentHashMap",
        Some("java.util.concurrent.ConcurrentHashMap"),
    ),
];

/// Types that anything is sent for.
const ANYTHING: [&str; 3] = [
    "java.lang.Object",
    "java.io.Serializable",
    "java.lang.Comparable",
];

/// Arguments of a method as hessian2 values, one for each of its parameter types.
///
/// | Java | JSON |
/// |---|---|
/// | `boolean`, numbers, and their boxes | `true`, a number in range; `null` for boxes only |
/// | `char`, `String`, `CharSequence` | a string; of one UTF-16 unit for `char` |
/// | `java.util.Date` | milliseconds since 1970-01-01 UTC |
/// | `java.math.BigDecimal` | a number, or a string of its digits |
/// | arrays, collections | an array; `char[]` is a string |
/// | maps | an object; its keys are converted to the key type of `Map<K, V>` |
/// | an enum | the name of a constant, as a string |
/// | another class | an object of its fields; `"class"` names a subclass |
/// | `Object` and fields | by the JSON value: `int` or `long`, `double`, `String`, `ArrayList`, `HashMap`, and by `"class"` an object |
///
/// Fields have no declared type here. Where Java needs more than the JSON value says, name the type:
/// `{"class": "java.util.Date", "value": 0}`, `{"class": "long", "value": 5}`, `{"class": "String[]", "value": ["a"]}`. The constant of an enum is
/// an object of the one field `name`: `{"class": "com.acme.Colour", "name": "RED"}`. A `BigInteger` is an object of sign and magnitude,
/// `{"class": "java.math.BigInteger", "signum": 1, "mag": {"class": "int[]", "value": [1, 5]}}` for 2^32 + 5, and a date of `java.time` one of
/// the handles of hessian-lite, `{"class": "com.alibaba.com.caucho.hessian.io.java8.LocalDateHandle", "year": 2026, "month": 1, "day": 2}`.
///
/// ```
/// use rungwise_dubbo::{JavaType, arguments, hessian::Value};
///
/// let types = JavaType::parse_list("String, long, com.acme.Order")?;
/// let json = serde_json::json!(["a", 5, {"id": 7, "lines": [{"class": "com.acme.Line", "sku": "x"}]}]);
/// let values = arguments(&types, json.as_array().expect("an array"))?;
/// assert_eq!(values[..2], [Value::string("a"), Value::Long(5)]);
///
/// let error = arguments(&types[1..2], &[serde_json::json!("5")]).expect_err("no number");
/// assert_eq!(error.to_string(), "argument 1: long needs an integer, found the string \"5\"");
/// # Ok::<(), rungwise_dubbo::Error>(())
/// ```
pub fn arguments(types: &[JavaType], json: &[Json]) -> Result<Vec<Value>, Error> {
    if types.len() != json.len() {
        return Err(Error::ArgumentCount {
            given: json.len(),
            expected: types.len(),
        });
    }
    let pairs = types.iter().zip(json).enumerate();
    pairs
        .map(|(at, (java, json))| {
            let path = Path {
                parent: None,
                step: Step::Argument(at + 1),
                depth: 0,
            };
            convert(java, json, &path)
        })
        .collect()
}

/// Where in the arguments a value is.
struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
    depth: usize,
}

enum Step<'a> {
    Argument(usize),
    Index(usize),
    Field(&'a str),
}

impl<'a> Path<'a> {
    fn to(&'a self, step: Step<'a>) -> Result<Path<'a>, Error> {
        if self.depth == DEEPEST {
            return self.fail(format!("nested deeper than {DEEPEST}"));
        }
        Ok(Path {
            parent: Some(self),
            step,
            depth: self.depth + 1,
        })
    }

    fn fail<T>(&self, why: impl Into<String>) -> Result<T, Error> {
        Err(Error::Argument {
            path: self.to_string(),
            why: why.into(),
        })
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        let comma = matches!(self.parent, Some(parent) if parent.parent.is_none());
        f.write_str(if comma { ", " } else { "" })?;
        match self.step {
            Step::Argument(number) => write!(f, "argument {number}"),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Field(name) => write!(f, ".{name}"),
        }
    }
}

/// A JSON value in an error: its kind, and its text if it is short.
struct Found<'a>(&'a Json);

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Json::Null => f.write_str("null"),
            Json::Bool(is) => write!(f, "{is}"),
            Json::Number(number) => write!(f, "{number}"),
            Json::String(text) if text.chars().nth(40).is_none() => {
                write!(f, "the string {text:?}")
            }
            Json::String(_) => f.write_str("a long string"),
            Json::Array(_) => f.write_str("an array"),
            Json::Object(_) => f.write_str("an object"),
        }
    }
}

fn needs<T>(java: &dyn fmt::Display, what: &str, json: &Json, path: &Path<'_>) -> Result<T, Error> {
    path.fail(format!("{java} needs {what}, found {}", Found(json)))
}

fn convert(java: &JavaType, json: &Json, path: &Path<'_>) -> Result<Value, Error> {
    match java {
        JavaType::Primitive(kind) => primitive(*kind, java, json, path),
        JavaType::Array(_) | JavaType::Class { .. } if json.is_null() => Ok(Value::Null),
        JavaType::Array(of) => array(of, java, json, path),
        JavaType::Class { name, of } => class(name, of, java, json, path),
    }
}

fn primitive(
    kind: Primitive,
    java: &JavaType,
    json: &Json,
    path: &Path<'_>,
) -> Result<Value, Error> {
    let (least, most) = match kind {
        Primitive::Boolean => {
            return match json.as_bool() {
                Some(is) => Ok(Value::Bool(is)),
                None => needs(java, "true or false", json, path),
            };
        }
        Primitive::Char => {
            return match json.as_str() {
                Some(text) if text.chars().map(char::len_utf16).sum::<usize>() == 1 => {
                    Ok(Value::string(text))
                }
                _ => needs(java, "a string of one character", json, path),
            };
        }
        Primitive::Double | Primitive::Float => {
            let Some(number) = json.as_f64() else {
                return needs(java, "a number", json, path);
            };
            if kind == Primitive::Double {
                return Ok(Value::Double(number));
            }
            let float = number as f32;
            if float.is_infinite() {
                return needs(java, "a number up to 3.4e38", json, path);
            }
            // As Java writes it: the shortest decimal that is this float, not its exact value.
            let shortest = float.to_string().parse();
            return Ok(Value::Double(shortest.unwrap_or(number)));
        }
        Primitive::Byte => (i64::from(i8::MIN), i64::from(i8::MAX)),
        Primitive::Short => (i64::from(i16::MIN), i64::from(i16::MAX)),
        Primitive::Int => (i64::from(i32::MIN), i64::from(i32::MAX)),
        Primitive::Long => (i64::MIN, i64::MAX),
    };
    if !json.is_i64() && !json.is_u64() {
        return needs(java, "an integer", json, path);
    }
    let number = json
        .as_i64()
        .filter(|number| (least..=most).contains(number));
    let Some(number) = number else {
        return path.fail(format!(
            "{} does not fit {java} ({least} to {most})",
            Found(json)
        ));
    };
    Ok(match kind {
        Primitive::Long => Value::Long(number),
        _ => Value::Int(number as i32),
    })
}

fn array(of: &JavaType, java: &JavaType, json: &Json, path: &Path<'_>) -> Result<Value, Error> {
    if *of == JavaType::Primitive(Primitive::Char) {
        return match json.as_str() {
            Some(text) => Ok(Value::string(text)),
            None => needs(java, "a string", json, path),
        };
    }
    let Some(items) = json.as_array() else {
        return needs(java, "an array", json, path);
    };
    let items = elements(of, items, path)?;
    if *of == JavaType::Primitive(Primitive::Byte) {
        let byte = |item: &Value| match item {
            Value::Int(int) => *int as u8,
            _ => 0,
        };
        return Ok(Value::Binary(items.iter().map(byte).collect()));
    }
    let type_name = Some(array_type(java).into());
    Ok(Value::List(List { type_name, items }))
}

/// The name of an array type in hessian: `[int`, `[string`, `[[com.acme.Item`.
fn array_type(java: &JavaType) -> String {
    match java {
        JavaType::Array(of) => format!("[{}", array_type(of)),
        JavaType::Primitive(kind) => kind.name().to_owned(),
        JavaType::Class { name, .. } => match name.as_str() {
            "java.lang.String" => "string".to_owned(),
            "java.lang.Object" => "object".to_owned(),
            "java.util.Date" => "date".to_owned(),
            other => other.to_owned(),
        },
    }
}

fn elements(of: &JavaType, items: &[Json], path: &Path<'_>) -> Result<Vec<Value>, Error> {
    let numbered = items.iter().enumerate();
    numbered
        .map(|(at, item)| convert(of, item, &path.to(Step::Index(at))?))
        .collect()
}

fn class(
    name: &str,
    of: &[JavaType],
    java: &JavaType,
    json: &Json,
    path: &Path<'_>,
) -> Result<Value, Error> {
    if let Some(kind) = Primitive::boxed_by(name) {
        return primitive(kind, java, json, path);
    }
    if ANYTHING.contains(&name) {
        return untyped(json, path);
    }
    let anything = JavaType::Class {
        name: ANYTHING[0].to_owned(),
        of: Vec::new(),
    };
    let other = COLLECTIONS.iter().find(|(each, _)| *each == name);
    if LISTS.contains(&name) || other.is_some() {
        let Some(items) = json.as_array() else {
            return needs(java, "an array", json, path);
        };
        let items = elements(of.first().unwrap_or(&anything), items, path)?;
        let type_name = other.map(|(_, sent)| Arc::from(*sent));
        return Ok(Value::List(List { type_name, items }));
    }
    if let Some((_, sent)) = MAPS.iter().find(|(each, _)| *each == name) {
        let Some(entries) = json.as_object() else {
            return needs(java, "an object", json, path);
        };
        let value_type = of.get(1).unwrap_or(&anything);
        let mut converted = Vec::with_capacity(entries.len());
        for (name, value) in entries {
            let path = path.to(Step::Field(name))?;
            let key = key(of.first(), name, &path)?;
            converted.push((key, convert(value_type, value, &path)?));
        }
        return Ok(Value::Map(Map {
            type_name: sent.map(Arc::from),
            entries: converted,
        }));
    }
    match (name, json) {
        ("java.lang.String" | "java.lang.CharSequence", Json::String(text)) => {
            Ok(Value::string(text))
        }
        ("java.lang.String" | "java.lang.CharSequence", _) => needs(java, "a string", json, path),
        ("java.lang.Number", Json::Number(_)) => untyped(json, path),
        ("java.lang.Number", _) => needs(java, "a number", json, path),
        ("java.util.Date", _) => match json.as_i64() {
            Some(millis) => Ok(Value::Date(millis)),
            None => needs(java, "milliseconds since 1970-01-01 UTC", json, path),
        },
        ("java.math.BigDecimal", _) => {
            let digits = match json {
                Json::Number(number) => number.to_string(),
                Json::String(text) if is_decimal(text) => text.clone(),
                _ => return needs(java, "a number, or a string of its digits", json, path),
            };
            let field = ("value".to_owned(), Value::String(digits));
            Ok(Value::Object(Object::new(name, [field])))
        }
        (_, Json::Object(fields)) => object(name, fields, path),
        (_, Json::String(_))
            if name.starts_with("java.time.")
                && !matches!(name, "java.time.DayOfWeek" | "java.time.Month") =>
        {
            path.fail(format!(
                r#"{java} is not converted from a string; give the object that hessian-lite sends for it, such as {{"class": "com.alibaba.com.caucho.hessian.io.java8.LocalDateHandle", "year": 2026, "month": 1, "day": 2}}"#
            ))
        }
        // The constant of an enum, which is sent as an object of one field.
        (_, Json::String(constant)) if is_identifier(constant) => {
            let field = ("name".to_owned(), Value::string(constant));
            Ok(Value::Object(Object::new(name, [field])))
        }
        _ => needs(
            java,
            "an object of its fields, or the name of an enum's constant",
            json,
            path,
        ),
    }
}

/// An object by its fields; `class` among them names a subclass.
fn object(
    name: &str,
    fields: &serde_json::Map<String, Json>,
    path: &Path<'_>,
) -> Result<Value, Error> {
    let name = match fields.get(CLASS) {
        None => name,
        Some(Json::String(name)) => name,
        Some(other) => return needs(&CLASS, "the name of a Java class", other, path),
    };
    let mut converted = Vec::with_capacity(fields.len());
    for (field, value) in fields.iter().filter(|(field, _)| *field != CLASS) {
        let value = untyped(value, &path.to(Step::Field(field))?)?;
        converted.push((field.clone(), value));
    }
    Ok(Value::Object(Object::new(name, converted)))
}

/// A key of a map, from the text that it is in JSON.
fn key(java: Option<&JavaType>, text: &str, path: &Path<'_>) -> Result<Value, Error> {
    let Some(java @ JavaType::Class { name, .. }) = java else {
        return Ok(Value::string(text));
    };
    let string = Json::String(text.to_owned());
    match Primitive::boxed_by(name) {
        None | Some(Primitive::Char) => convert(java, &string, path),
        Some(kind) => {
            let json = serde_json::from_str(text).unwrap_or(string);
            primitive(kind, java, &json, path)
        }
    }
}

/// A value by what it is in JSON.
fn untyped(json: &Json, path: &Path<'_>) -> Result<Value, Error> {
    Ok(match json {
        Json::Null => Value::Null,
        Json::Bool(is) => Value::Bool(*is),
        Json::String(text) => Value::string(text),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(long), _) => i32::try_from(long).map_or(Value::Long(long), Value::Int),
            (None, Some(double)) if !number.is_u64() => Value::Double(double),
            _ => {
                let mut why = String::new();
                let _ = write!(why, "{number} does not fit a long; ");
                why.push_str(
                    r#"for a BigDecimal: {"class": "java.math.BigDecimal", "value": "..."}"#,
                );
                return path.fail(why);
            }
        },
        Json::Array(items) => {
            let mut converted = Vec::with_capacity(items.len());
            for (at, item) in items.iter().enumerate() {
                converted.push(untyped(item, &path.to(Step::Index(at))?)?);
            }
            Value::list(converted)
        }
        Json::Object(fields) => match (fields.get(CLASS), fields.get("value")) {
            (Some(Json::String(name)), Some(value)) if fields.len() == 2 => {
                let java = JavaType::parse(name);
                let java = java.or_else(|error| path.fail(error.to_string()))?;
                let is_pojo = matches!(&java, JavaType::Class { name, .. } if !is_known(name));
                if is_pojo {
                    return object(name, fields, path);
                }
                convert(&java, value, &path.to(Step::Field("value"))?)?
            }
            (Some(_), _) => object(ANYTHING[0], fields, path)?,
            (None, _) => {
                let mut entries = Vec::with_capacity(fields.len());
                for (name, value) in fields {
                    let value = untyped(value, &path.to(Step::Field(name))?)?;
                    entries.push((Value::string(name), value));
                }
                Value::map(entries)
            }
        },
    })
}

/// Whether a class has a form of its own, so that it is not written as an object of fields.
fn is_known(name: &str) -> bool {
    const OTHERS: [&str; 5] = [
        "java.lang.String",
        "java.lang.CharSequence",
        "java.lang.Number",
        "java.util.Date",
        "java.math.BigDecimal",
    ];
    let lists = LISTS.iter().chain(&ANYTHING).chain(&OTHERS);
    lists.copied().any(|each| each == name)
        || COLLECTIONS.iter().any(|(each, _)| *each == name)
        || MAPS.iter().any(|(each, _)| *each == name)
        || Primitive::boxed_by(name).is_some()
}

fn is_decimal(text: &str) -> bool {
    // Digits with at most a sign, a point and an exponent; `inf` and `nan` parse as a float too.
    text.parse::<f64>().is_ok() && text.bytes().any(|byte| byte.is_ascii_digit())
}

fn is_identifier(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_alphanumeric() || matches!(c, '_' | '$'))
        && text.chars().next().is_some_and(|c| !c.is_numeric())
}
