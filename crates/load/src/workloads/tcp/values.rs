//! Values of the parameters as users write them.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::values::{Size, as_text};

/// How messages are delimited: `fixed`, `length-prefixed`, `delimited`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", inline, extend("format" = "tcp-frames"))]
pub enum Frames {
    /// By a fixed number of bytes.
    #[default]
    Fixed,
    /// By their length before them.
    LengthPrefixed,
    /// By a delimiter after them.
    Delimited,
}

/// A message: `100B`, `text:ping`, `hex:00ff`, `file:request.bin`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", inline, extend("format" = "tcp-content"))]
pub enum Content {
    /// So many bytes.
    Size(Size),
    /// This text.
    Text(String),
    /// These bytes.
    Hex(Vec<u8>),
    /// The bytes of this file.
    File(String),
}

/// Bytes that end a message, with `\n`, `\r`, `\t`, `\0`, `\\` and `\xff` for those that are no letters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", inline, extend("format" = "tcp-delimiter"))]
pub struct Delimiter(pub Vec<u8>);

impl FromStr for Frames {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "fixed" => Ok(Self::Fixed),
            "length-prefixed" => Ok(Self::LengthPrefixed),
            "delimited" => Ok(Self::Delimited),
            _ => Err(format!(
                "'{text}' is no kind of frames; write fixed, length-prefixed or delimited"
            )),
        }
    }
}

impl fmt::Display for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fixed => "fixed",
            Self::LengthPrefixed => "length-prefixed",
            Self::Delimited => "delimited",
        })
    }
}

impl FromStr for Content {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(text) = text.strip_prefix("text:") {
            return Ok(Self::Text(text.to_owned()));
        }
        if let Some(digits) = text.strip_prefix("hex:") {
            return unhex(digits).map(Self::Hex).ok_or_else(|| {
                format!("cannot read '{text}' as bytes; write two hexadecimal digits per byte, as in hex:00ff")
            });
        }
        if let Some(file) = text.strip_prefix("file:") {
            return Ok(Self::File(file.to_owned()));
        }
        text.parse().map(Self::Size).map_err(|_| {
            format!("cannot read '{text}' as a message; write a size as in 100B, text:TEXT, hex:00ff or file:PATH")
        })
    }
}

/// Bytes of which each is written as two digits.
pub(crate) fn unhex(digits: &str) -> Option<Vec<u8>> {
    let fits =
        digits.len().is_multiple_of(2) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).ok();
    fits.then(|| (0..digits.len()).step_by(2).map(byte).collect())?
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(size) => write!(f, "{size}"),
            Self::Text(text) => write!(f, "text:{text}"),
            Self::Hex(bytes) => {
                f.write_str("hex:")?;
                bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            Self::File(file) => write!(f, "file:{file}"),
        }
    }
}

impl FromStr for Delimiter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "cannot read '{text}' as a delimiter; write it as \\n, \\r\\n, \\0, \\x1e or other characters"
            )
        };
        let mut bytes = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find('\\') {
            bytes.extend_from_slice(&rest.as_bytes()[..at]);
            rest = &rest[at + 1..];
            let escape = rest.chars().next().ok_or_else(wrong)?;
            let mut length = 1;
            bytes.push(match escape {
                'n' => b'\n',
                'r' => b'\r',
                't' => b'\t',
                '0' => 0,
                '\\' => b'\\',
                'x' => {
                    length = 3;
                    let digits = rest.get(1..3).and_then(unhex);
                    digits.ok_or_else(wrong)?[0]
                }
                _ => return Err(wrong()),
            });
            rest = &rest[length..];
        }
        bytes.extend_from_slice(rest.as_bytes());
        if bytes.is_empty() {
            return Err(wrong());
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Delimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in &self.0 {
            match byte {
                b'\n' => f.write_str("\\n")?,
                b'\r' => f.write_str("\\r")?,
                b'\t' => f.write_str("\\t")?,
                0 => f.write_str("\\0")?,
                b'\\' => f.write_str("\\\\")?,
                b' '..=b'~' => write!(f, "{}", char::from(*byte))?,
                byte => write!(f, "\\x{byte:02x}")?,
            }
        }
        Ok(())
    }
}

as_text!(Frames, Content, Delimiter);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_as_the_same_value() {
        for text in ["100B", "text:a b", "text:", "hex:00ff", "file:/tmp/a"] {
            let content: Content = text.parse().unwrap();
            assert_eq!(content.to_string(), text);
        }
        for (text, bytes) in [
            ("\\n", &b"\n"[..]),
            ("\\r\\n", b"\r\n"),
            ("\\x1e\\0\\\\|", b"\x1e\0\\|"),
            ("end", b"end"),
        ] {
            let delimiter: Delimiter = text.parse().unwrap();
            assert_eq!(delimiter.0, bytes);
            assert_eq!(delimiter.to_string(), text);
        }
        for text in ["fixed", "length-prefixed", "delimited"] {
            assert_eq!(text.parse::<Frames>().unwrap().to_string(), text);
        }
        for bad in ["", "\\", "\\q", "\\x1", "\\xg0", "\\xé"] {
            assert!(bad.parse::<Delimiter>().is_err(), "{bad}");
        }
        for bad in ["", "100", "ping", "hex:0", "hex:0g", "hex:+1"] {
            assert!(bad.parse::<Content>().is_err(), "{bad}");
        }
    }
}
