//! Values of the parameters as users write them.

use std::fmt;
use std::str::FromStr;

use rungwise_dubbo::JavaType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::values::as_text;

/// Arguments of a call, a JSON array: `["a", 1]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", inline, extend("format" = "dubbo-arguments"))]
pub struct Arguments(pub Vec<serde_json::Value>);

/// Java types of the parameters of a method: `java.lang.String, int`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", inline, extend("format" = "dubbo-types"))]
pub struct Types(pub Vec<JavaType>);

/// An attachment of a call: `trace=on`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", inline, extend("format" = "dubbo-attachment"))]
pub struct Attachment {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl FromStr for Arguments {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map(Self).map_err(|error| {
            format!(
                "cannot read '{text}' as arguments: {error}; write a JSON array, as in [\"a\", 1]"
            )
        })
    }
}

impl fmt::Display for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (at, value) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{value}")?;
        }
        f.write_str("]")
    }
}

impl FromStr for Types {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        JavaType::parse_list(text).map(Self).map_err(|error| {
            format!(
                "{error}; write Java types with commas between them, as in java.lang.String,int"
            )
        })
    }
}

impl fmt::Display for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, java) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{java}")?;
        }
        Ok(())
    }
}

impl FromStr for Attachment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok(Self {
                name: name.to_owned(),
                value: value.to_owned(),
            }),
            _ => Err(format!("'{text}' is no attachment; write it as NAME=VALUE")),
        }
    }
}

impl fmt::Display for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

as_text!(Arguments, Types, Attachment);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_as_the_same_value() {
        for text in ["[]", "[\"a\", 1, {\"b\":[null,1.5]}]"] {
            assert_eq!(text.parse::<Arguments>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "int, java.lang.String[]",
            "java.util.Map<java.lang.String, java.lang.Long>, int",
        ] {
            assert_eq!(text.parse::<Types>().unwrap().to_string(), text);
        }
        for text in ["a=b", "a=", "a=b=c"] {
            assert_eq!(text.parse::<Attachment>().unwrap().to_string(), text);
        }
        for bad in ["", "a", "{}", "\"a\"", "[1", "[1] 2"] {
            assert!(bad.parse::<Arguments>().is_err(), "{bad}");
        }
        for bad in ["int,", "java..Lang", "9"] {
            assert!(bad.parse::<Types>().is_err(), "{bad}");
        }
        for bad in ["", "a", "=b"] {
            assert!(bad.parse::<Attachment>().is_err(), "{bad}");
        }
    }
}
