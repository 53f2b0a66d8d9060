//! Java types as people write them, and as the JVM does.
//!
//! Source: JVM specification, section 4.3.2 (field descriptors).

use std::fmt;

use crate::Error;

/// Dimensions of an array, and type arguments within one another: the JVM allows 255 dimensions.
const DEEPEST: usize = 32;

/// A type of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JavaType {
    /// `int`, `long` and so on.
    Primitive(Primitive),
    /// A class or an interface.
    Class {
        /// Its binary name: `java.lang.String`, `com.acme.Order$Line`.
        name: String,
        /// What stands between `<` and `>`; no part of the descriptor, but arguments are converted by it.
        of: Vec<Self>,
    },
    /// An array of this type.
    Array(Box<Self>),
}

/// A primitive type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Primitive {
    /// `boolean`
    Boolean,
    /// `byte`
    Byte,
    /// `char`
    Char,
    /// `double`
    Double,
    /// `float`
    Float,
    /// `int`
    Int,
    /// `long`
    Long,
    /// `short`
    Short,
}

impl Primitive {
    const ALL: [(Self, &'static str, char, &'static str); 8] = [
        (Self::Boolean, "boolean", 'Z', "java.lang.Boolean"),
        (Self::Byte, "byte", 'B', "java.lang.Byte"),
        (Self::Char, "char", 'C', "java.lang.Character"),
        (Self::Double, "double", 'D', "java.lang.Double"),
        (Self::Float, "float", 'F', "java.lang.Float"),
        (Self::Int, "int", 'I', "java.lang.Integer"),
        (Self::Long, "long", 'J', "java.lang.Long"),
        (Self::Short, "short", 'S', "java.lang.Short"),
    ];

    /// As in Java's source.
    pub fn name(self) -> &'static str {
        let row = Self::ALL.iter().find(|(each, ..)| *each == self);
        row.map_or("", |(_, name, ..)| name)
    }

    fn code(self) -> char {
        let row = Self::ALL.iter().find(|(each, ..)| *each == self);
        row.map_or('V', |(_, _, code, _)| *code)
    }

    /// The primitive type that a class boxes.
    pub(crate) fn boxed_by(class: &str) -> Option<Self> {
        let row = Self::ALL.iter().find(|(.., boxed)| *boxed == class);
        row.map(|(primitive, ..)| *primitive)
    }
}

/// Classes that may be written without their package.
const SHORT: [(&str, &str); 22] = [
    ("BigDecimal", "java.math.BigDecimal"),
    ("Boolean", "java.lang.Boolean"),
    ("Byte", "java.lang.Byte"),
    ("CharSequence", "java.lang.CharSequence"),
    ("Character", "java.lang.Character"),
    ("Collection", "java.util.Collection"),
    ("Date", "java.util.Date"),
    ("Double", "java.lang.Double"),
    ("Float", "java.lang.Float"),
    ("HashMap", "java.util.HashMap"),
    ("HashSet", "java.util.HashSet"),
    ("Integer", "java.lang.Integer"),
    ("ArrayList", "java.util.ArrayList"),
    ("LinkedHashMap", "java.util.LinkedHashMap"),
    ("List", "java.util.List"),
    ("Long", "java.lang.Long"),
    ("Map", "java.util.Map"),
    ("Number", "java.lang.Number"),
    ("Object", "java.lang.Object"),
    ("Set", "java.util.Set"),
    ("Short", "java.lang.Short"),
    ("String", "java.lang.String"),
];

impl JavaType {
    /// A type as people write it.
    ///
    /// `int`, `java.lang.String`, `byte[]`, `String...`, `java.util.List<com.acme.Item>`, `com.acme.Order$Line`; a few classes of
    /// `java.lang` and `java.util` also without their package: `String`, `Integer`, `List`, `Map`. Wildcards are read as their bound.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let fail = |why| Error::JavaType {
            text: text.to_owned(),
            why,
        };
        let mut rest = text;
        let parsed = parse(&mut rest, 0).map_err(fail)?;
        match rest.trim() {
            "" => Ok(parsed),
            _ => Err(fail("something follows the type")),
        }
    }

    /// Types from a list with commas, as in a method's declaration: `String, Map<String, Integer>, int`.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, Error> {
        let mut depth = 0_i32;
        let split = |c: char| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            c == ',' && depth == 0
        };
        if text.trim().is_empty() {
            return Ok(Vec::new());
        }
        text.split(split).map(Self::parse).collect()
    }

    /// Types from the descriptor of a request, or `None` if it is malformed.
    pub fn parse_descriptor(text: &str) -> Option<Vec<Self>> {
        let mut rest = text;
        let mut types = Vec::new();
        while !rest.is_empty() {
            let element = rest.trim_start_matches('[');
            let dimensions = rest.len() - element.len();
            let code = element.chars().next()?;
            let mut parsed = if code == 'L' {
                let (name, after) = element[1..].split_once(';')?;
                rest = after;
                class(name.replace('/', "."))
            } else {
                rest = &element[code.len_utf8()..];
                let row = Primitive::ALL.iter().find(|(_, _, each, _)| *each == code);
                Self::Primitive(row?.0)
            };
            if dimensions > DEEPEST {
                return None;
            }
            for _ in 0..dimensions {
                parsed = Self::Array(Box::new(parsed));
            }
            types.push(parsed);
        }
        Some(types)
    }

    fn describe(&self, out: &mut String) {
        match self {
            Self::Primitive(primitive) => out.push(primitive.code()),
            Self::Class { name, .. } => {
                out.push('L');
                out.push_str(&name.replace('.', "/"));
                out.push(';');
            }
            Self::Array(of) => {
                out.push('[');
                of.describe(out);
            }
        }
    }
}

/// The descriptor of parameter types, as a request has it: `Ljava/lang/String;I` for `String, int`.
pub fn descriptor(types: &[JavaType]) -> String {
    let mut text = String::new();
    for each in types {
        each.describe(&mut text);
    }
    text
}

/// As in Java's source, with packages.
impl fmt::Display for JavaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Primitive(primitive) => f.write_str(primitive.name()),
            Self::Array(of) => write!(f, "{of}[]"),
            Self::Class { name, of } => {
                f.write_str(name)?;
                for (at, each) in of.iter().enumerate() {
                    f.write_str(if at == 0 { "<" } else { ", " })?;
                    each.fmt(f)?;
                }
                f.write_str(if of.is_empty() { "" } else { ">" })
            }
        }
    }
}

fn class(name: String) -> JavaType {
    JavaType::Class {
        name,
        of: Vec::new(),
    }
}

fn parse(rest: &mut &str, depth: usize) -> Result<JavaType, &'static str> {
    if depth > DEEPEST {
        return Err("it is nested too deeply");
    }
    *rest = rest.trim_start();
    if let Some(after) = rest.strip_prefix('?') {
        *rest = after.trim_start();
        let bounded = ["extends ", "super "]
            .iter()
            .find_map(|word| rest.strip_prefix(word));
        let Some(bound) = bounded else {
            return Ok(class("java.lang.Object".to_owned()));
        };
        *rest = bound;
        return parse(rest, depth + 1);
    }
    let end = rest
        .find(|c: char| !(c.is_alphanumeric() || matches!(c, '.' | '_' | '$')))
        .unwrap_or(rest.len());
    // The dots of varargs belong to no name.
    let name = rest[..end].trim_end_matches("...");
    *rest = &rest[name.len()..];
    let mut parsed = named(name)?;
    *rest = rest.trim_start();
    if let Some(after) = rest.strip_prefix('<') {
        let JavaType::Class { of, .. } = &mut parsed else {
            return Err("a primitive type has no type arguments");
        };
        *rest = after;
        loop {
            let argument = parse(rest, depth + 1)?;
            if let JavaType::Primitive(_) = argument {
                return Err("a type argument is a class, such as Integer for int");
            }
            of.push(argument);
            *rest = rest.trim_start();
            if let Some(after) = rest.strip_prefix(',') {
                *rest = after;
            } else if let Some(after) = rest.strip_prefix('>') {
                *rest = after.trim_start();
                break;
            } else {
                return Err("`>` is missing");
            }
        }
    }
    let mut dimensions = 0;
    while let Some(after) = rest.strip_prefix("[]").or_else(|| rest.strip_prefix("...")) {
        *rest = after.trim_start();
        parsed = JavaType::Array(Box::new(parsed));
        dimensions += 1;
        if dimensions > DEEPEST {
            return Err("it has too many dimensions");
        }
    }
    Ok(parsed)
}

fn named(name: &str) -> Result<JavaType, &'static str> {
    if name.is_empty() {
        return Err("a name is missing");
    }
    if name == "void" {
        return Err("a parameter cannot be void");
    }
    let starts_well = |part: &str| part.chars().next().is_some_and(|c| !c.is_numeric());
    if !name.split('.').all(starts_well) {
        return Err("a part of the name is empty or begins with a digit");
    }
    let primitive = Primitive::ALL.iter().find(|(_, each, ..)| *each == name);
    if let Some((primitive, ..)) = primitive {
        return Ok(JavaType::Primitive(*primitive));
    }
    let full = SHORT.iter().find(|(short, _)| *short == name);
    Ok(class(full.map_or(name, |(_, full)| full).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_descriptors_of_the_jvm() {
        for (text, wanted) in [
            ("int", "I"),
            ("java.lang.String", "Ljava/lang/String;"),
            ("String", "Ljava/lang/String;"),
            ("long[][]", "[[J"),
            ("String...", "[Ljava/lang/String;"),
            ("List<com.acme.Item>", "Ljava/util/List;"),
            ("Map<String, List<? extends Number>>[]", "[Ljava/util/Map;"),
            (" com.acme.Order$Line ", "Lcom/acme/Order$Line;"),
            ("boolean", "Z"),
            ("Bestellung", "LBestellung;"),
        ] {
            let parsed = JavaType::parse(text).expect(text);
            let desc = descriptor(std::slice::from_ref(&parsed));
            assert_eq!(desc, wanted, "{text}");
            let again = JavaType::parse(&parsed.to_string()).expect("its own text");
            assert_eq!(again, parsed, "{text}");
            let from_desc = JavaType::parse_descriptor(&desc).expect("its own descriptor");
            assert_eq!(descriptor(&from_desc), wanted, "{text}");
        }
    }

    #[test]
    fn lists_are_split_at_commas_outside_of_brackets() {
        let types = JavaType::parse_list("String, Map<String, Integer>, int").expect("three types");
        assert_eq!(descriptor(&types), "Ljava/lang/String;Ljava/util/Map;I");
        assert_eq!(JavaType::parse_list(" "), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_type_is_refused_with_the_reason() {
        for (text, why) in [
            ("", "a name is missing"),
            ("void", "void"),
            ("int<String>", "no type arguments"),
            ("List<int>", "such as Integer"),
            ("List<String", "`>` is missing"),
            ("List<>", "a name is missing"),
            ("a..b", "empty"),
            ("com.4", "digit"),
            ("String x", "follows"),
            ("int[", "follows"),
        ] {
            let error = JavaType::parse(text).expect_err(text).to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        let deep = "List<".repeat(100_000);
        JavaType::parse(&deep).expect_err("too deep");
        JavaType::parse(&format!("int{}", "[]".repeat(300))).expect_err("too many dimensions");
        for text in ["V", "L", "Ljava/lang/String", "[", "X", "ä", "I;"] {
            assert_eq!(JavaType::parse_descriptor(text), None, "{text}");
        }
    }
}
