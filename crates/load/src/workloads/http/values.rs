//! Values of HTTP traffic as users write them: where requests go, header lines, and what a good answer is.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where requests go: `http://192.0.2.1:8080/create?x=1`, `https://shop.example/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", inline, extend("format" = "http-url"))]
pub struct Url {
    /// Requests travel by TLS (`https`).
    pub tls: bool,
    /// Host and port as they were written, for the `Host` header.
    pub authority: String,
    /// The same with its port; where none was written 80, or 443 with TLS.
    pub target: String,
    /// Path and query.
    pub path: String,
}

/// A property of a test plan: `users=100`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", inline)]
pub struct Property {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A header line: `Accept: text/html`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", inline, extend("format" = "http-header"))]
pub struct Header {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// The method of a request: `GET`, `POST`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", inline, extend("format" = "http-method"))]
pub struct Method(pub String);

/// What makes a response an answer: `status=200`, `status=200-299,body~ok`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", inline, extend("format" = "http-expect"))]
pub struct Expect {
    /// The least and the greatest status.
    pub status: (u16, u16),
    /// Text that its body contains.
    pub body: Option<String>,
}

impl Default for Expect {
    fn default() -> Self {
        Self {
            status: (200, 399),
            body: None,
        }
    }
}

/// How a URL is written.
const WRITE: &str =
    "write it as http://192.0.2.1:8080/path, http://[2001:db8::1]/ or https://name/";

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (tls, rest) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => {
                return Err(format!(
                    "'{text}' does not begin with http:// or https://; {WRITE}"
                ));
            }
        };
        let split = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(split);
        if authority.contains('@') {
            return Err(format!(
                "'{text}' contains credentials; send them as a header: Authorization: Basic ..."
            ));
        }
        let (host, port) = match authority.rsplit_once(':') {
            // The colons of an IPv6 address stand within brackets.
            Some((host, port)) if !port.contains(']') => (host, Some(port)),
            _ => (authority, None),
        };
        let named = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic());
        let numbered = port.is_none_or(|port| matches!(port.parse::<u16>(), Ok(port) if port > 0));
        if !named || !numbered || host.contains(':') && !host.starts_with('[') {
            return Err(format!(
                "'{authority}' in '{text}' is not a host with a port; {WRITE}"
            ));
        }
        // A line break would begin another header.
        if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!(
                "the path of '{text}' contains a character that a URL cannot hold; escape it, as in %20 for a space"
            ));
        }
        // A fragment stays with the client.
        let path = path.split('#').next().unwrap_or_default();
        let slash = if path.starts_with('/') { "" } else { "/" };
        let default = if tls { "443" } else { "80" };
        Ok(Self {
            tls,
            target: format!("{host}:{}", port.unwrap_or(default)),
            authority: authority.to_owned(),
            path: format!("{slash}{path}"),
        })
    }
}

impl Url {
    /// The host without brackets.
    pub fn host(&self) -> &str {
        let host = self.target.rsplit_once(':').map_or("", |(host, _)| host);
        let inner = host
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        inner.unwrap_or(host)
    }
}

impl Url {
    /// Stands for the server that a test plan names, until the plan has been read.
    pub(super) fn of_plan() -> Self {
        Self {
            tls: false,
            authority: OF_PLAN.to_owned(),
            target: format!("{OF_PLAN}:80"),
            path: "/".to_owned(),
        }
    }

    /// No URL was given.
    pub fn is_of_plan(&self) -> bool {
        self.authority == OF_PLAN
    }
}

/// No host has such a name.
const OF_PLAN: &str = "{plan}";

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.path)
    }
}

/// A token of RFC 9110, section 5.6.2.
fn is_token(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(fits)
}

impl Header {
    /// It has this name.
    pub(super) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

impl FromStr for Header {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let line = text.split_once(':').filter(|(name, value)| {
            is_token(name)
                && !value
                    .bytes()
                    .any(|byte| byte.is_ascii_control() && byte != b'\t')
        });
        let (name, value) = line.ok_or_else(|| {
            format!(
                "'{}' is not a header; write it as Name: value",
                text.escape_debug()
            )
        })?;
        // Two lengths, or a coding that is not there, would make it another request.
        for framing in ["content-length", "transfer-encoding", "connection"] {
            if name.eq_ignore_ascii_case(framing) {
                return Err(format!(
                    "'{name}' follows from body and connections; remove it"
                ));
            }
        }
        Ok(Self {
            name: name.to_owned(),
            value: value.trim().to_owned(),
        })
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.value)
    }
}

impl FromStr for Property {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
        let (name, value) =
            pair.ok_or_else(|| format!("'{text}' is no property; write it as NAME=VALUE"))?;
        Ok(Self {
            name: name.to_owned(),
            value: value.to_owned(),
        })
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("connect") {
            return Err(
                "CONNECT makes a tunnel and has no response to measure; use another method"
                    .to_owned(),
            );
        }
        if is_token(text)
            && text
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte == b'-')
        {
            return Ok(Self(text.to_owned()));
        }
        Err(format!(
            "'{text}' is not a method; write it as GET, POST, PUT or HEAD"
        ))
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Expect {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut expect = Self::default();
        let conditions = text.split("body~").next().unwrap_or_default();
        if text.is_empty() || conditions.matches("status=").count() > 1 {
            let write = "write one status, as in status=2xx, and body~TEXT last";
            return Err(format!("cannot read '{text}' as an expectation; {write}"));
        }
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(body) = rest.strip_prefix("body~") {
                // Last, because it may contain anything.
                if body.is_empty() {
                    return Err(format!("'{text}' expects an empty text; write body~TEXT"));
                }
                expect.body = Some(body.to_owned());
                return Ok(expect);
            }
            let (part, after) = rest.split_once(',').unwrap_or((rest, ""));
            expect.status = part.strip_prefix("status=").and_then(statuses).ok_or_else(|| {
                format!("cannot read '{part}' of '{text}'; write status=200, status=2xx or status=200-299, and body~TEXT last")
            })?;
            rest = after;
        }
        Ok(expect)
    }
}

/// `200`, `2xx`, `200-299`.
fn statuses(text: &str) -> Option<(u16, u16)> {
    let (first, last) = if let Some(class) = text.strip_suffix("xx") {
        let class = class.parse::<u16>().ok()?.checked_mul(100)?;
        (class, class.checked_add(99)?)
    } else {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        (first.parse().ok()?, last.parse().ok()?)
    };
    (200 <= first && first <= last && last <= 599).then_some((first, last))
}

impl fmt::Display for Expect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = self.status;
        if first == last {
            write!(f, "status={first}")?;
        } else {
            write!(f, "status={first}-{last}")?;
        }
        match &self.body {
            Some(body) => write!(f, ",body~{body}"),
            None => Ok(()),
        }
    }
}

/// Text is read and written by [`FromStr`] and [`Display`](fmt::Display).
macro_rules! texts {
    ($($type:ty),+) => {
        $(
            impl TryFrom<String> for $type {
                type Error = String;

                fn try_from(text: String) -> Result<Self, String> {
                    text.parse()
                }
            }

            impl From<$type> for String {
                fn from(value: $type) -> Self {
                    value.to_string()
                }
            }
        )+
    };
}

texts!(Url, Header, Method, Expect, Property);
pub(super) use texts;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_a_host_a_port_and_a_path() {
        for (text, authority, target, path) in [
            (
                "http://10.77.0.1:8080/a?b=1",
                "10.77.0.1:8080",
                "10.77.0.1:8080",
                "/a?b=1",
            ),
            (
                "http://shop.example",
                "shop.example",
                "shop.example:80",
                "/",
            ),
            (
                "https://shop.example/a",
                "shop.example",
                "shop.example:443",
                "/a",
            ),
            ("https://[::1]:8443", "[::1]:8443", "[::1]:8443", "/"),
            ("http://[::1]/", "[::1]", "[::1]:80", "/"),
            ("http://[::1]:81?q", "[::1]:81", "[::1]:81", "/?q"),
            (
                "http://{server}:8080/x#part",
                "{server}:8080",
                "{server}:8080",
                "/x",
            ),
        ] {
            let url: Url = text.parse().unwrap();
            assert_eq!(
                (&*url.authority, &*url.target, &*url.path),
                (authority, target, path)
            );
            assert_eq!(url.to_string().parse::<Url>(), Ok(url));
        }
        for (text, words) in [
            ("ftp://a/", "https://"),
            ("https:///", "not a host"),
            ("127.0.0.1:80", "http://"),
            ("http://", "not a host"),
            ("http://:80/", "not a host"),
            ("http://a:0/", "not a host"),
            ("http://a:99999/", "not a host"),
            ("http://::1/", "not a host"),
            ("http://a b/", "not a host"),
            ("http://user:secret@a/", "Authorization"),
            ("http://a/b c", "%20"),
            ("http://a/\r\nX: y", "%20"),
        ] {
            let error = text.parse::<Url>().unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn a_header_cannot_begin_another_line_or_another_request() {
        let header: Header = "X-Trace:  a b ".parse().unwrap();
        assert_eq!(header.to_string(), "X-Trace: a b");
        for bad in [
            "X",
            "a b: c",
            ": c",
            "X: a\r\nY: b",
            "Content-Length: 5",
            "transfer-encoding: chunked",
        ] {
            assert!(bad.parse::<Header>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_method_is_a_word_in_capitals() {
        assert_eq!("PATCH".parse(), Ok(Method("PATCH".to_owned())));
        for bad in ["", "get", "GET /", "CONNECT"] {
            assert!(bad.parse::<Method>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_expectation_is_a_range_of_statuses_and_a_text() {
        let read = |text: &str| {
            text.parse::<Expect>()
                .map(|expect| (expect.status, expect.body))
        };
        assert_eq!(read("status=200"), Ok(((200, 200), None)));
        assert_eq!(
            read("status=2xx,body~a,b"),
            Ok(((200, 299), Some("a,b".to_owned())))
        );
        assert_eq!(read("body~ok"), Ok(((200, 399), Some("ok".to_owned()))));
        for bad in [
            "status=20",
            "status=300-200",
            "status=9xx",
            "code=200",
            "body~",
            "status=655xx",
            "",
            "status=200,status=500",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
        let expect: Expect = "status=200-204,body~ok".parse().unwrap();
        assert_eq!(expect.to_string().parse(), Ok(expect));
    }
}
