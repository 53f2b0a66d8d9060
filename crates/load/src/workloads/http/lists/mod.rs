//! Lists of requests: what one user sends, request by request. One module per format, each a pure function of the file's bytes.

pub mod har;
pub mod jmx;
pub mod jsonl;

use std::collections::BTreeMap;
use std::time::Duration;

use super::values::{Expect, Header};

/// Most requests of a list.
const MOST: usize = 1_000_000;

/// How many things that are skipped for the same reason are named.
const SHOWN: usize = 5;

/// A request as it was written. Path, values of headers and body may contain placeholders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// What the result calls it; method and path where it is absent.
    pub name: Option<String>,
    /// `GET`.
    pub method: String,
    /// Path and query, beginning with a slash.
    pub path: String,
    /// Header lines.
    pub headers: Vec<Header>,
    /// The body, and its media type where no header gives it.
    pub body: Option<(Vec<u8>, &'static str)>,
    /// What makes its response an answer; as the load says where it is absent.
    pub expect: Option<Expect>,
    /// Texts that its body must contain beside, or (`false`) must not; none is empty.
    pub texts: Vec<(String, bool)>,
    /// It neither sends nor keeps cookies, though the load keeps some.
    pub no_cookies: bool,
    /// Its connection ends with its response.
    pub closes: bool,
    /// Time between the response before and this request, in a list.
    pub pause: Duration,
}

/// What was read of a list that others recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// What is sent.
    pub entries: Vec<Entry>,
    /// What is not.
    pub skipped: Vec<Skipped>,
}

/// A request that is not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The request.
    pub what: String,
    /// Why not; the same words for all of its sort.
    pub why: String,
}

impl Listed {
    /// What is skipped, by reason: `3 (WebSocket): GET wss://a/b, ...`.
    pub fn reasons(&self) -> Vec<String> {
        let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for Skipped { what, why } in &self.skipped {
            by_reason.entry(why).or_default().push(what);
        }
        let line = |(why, requests): (&str, Vec<&str>)| {
            // More would hide the other reasons.
            let more = requests.len().saturating_sub(SHOWN);
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            let shown = requests[..requests.len().min(SHOWN)].join(", ");
            format!("{} skipped, {why}: {shown}{more}", requests.len())
        };
        by_reason.into_iter().map(line).collect()
    }
}

impl Entry {
    /// What the result calls it.
    pub fn name(&self) -> String {
        let own = || format!("{} {}", self.method, self.path);
        self.name.clone().unwrap_or_else(own)
    }
}

/// Where the requests of a load go.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The URL of the load up to its path: `http://192.0.2.1:8080`.
    pub origin: &'a str,
    /// The value of its header `Host`, where one is given: a list for that host is for the target too.
    pub host: Option<&'a str>,
}

impl Target<'_> {
    /// Path and query of a URL, where it is one of the target; else why not.
    pub fn path_of(&self, url: &str) -> Result<String, String> {
        let (origin, path) =
            split(url).ok_or_else(|| format!("'{}' is not a URL with a host", shortened(url)))?;
        let named = self.host.is_some_and(|host| {
            let authority = origin.split_once("://").unwrap_or_default().1;
            same(authority, host) || same(host_of(authority), host)
        });
        let here = same(&with_port(origin), &with_port(self.origin));
        if !named && !here {
            return Err(format!(
                "{} is another host than the target, {}",
                shortened(origin),
                self.origin
            ));
        }
        as_path(path)
    }
}

/// A path that can stand in a request line; else why not. A fragment stays with the client.
fn as_path(path: &str) -> Result<String, String> {
    let path = path.split('#').next().unwrap_or_default();
    if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!(
            "path '{}' contains a character that a URL cannot hold; escape it, as in %20 for a space",
            shortened(&path.escape_debug().to_string())
        ));
    }
    let slash = if path.starts_with('/') { "" } else { "/" };
    Ok(format!("{slash}{path}"))
}

/// Scheme and host of a URL, and the rest.
fn split(url: &str) -> Option<(&str, &str)> {
    let begin = url.find("://")? + 3;
    let length = url[begin..].find(['/', '?', '#']);
    let end = length.map_or(url.len(), |length| begin + length);
    (end > begin).then(|| url.split_at(end))
}

fn host_of(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        // The colons of an IPv6 address stand within brackets.
        Some((host, port)) if !port.contains(']') => host,
        _ => authority,
    }
}

/// An origin with the port of its scheme, where it names none.
fn with_port(origin: &str) -> String {
    let (scheme, authority) = origin.split_once("://").unwrap_or(("", origin));
    if host_of(authority) != authority {
        return origin.to_owned();
    }
    let port = match scheme.to_ascii_lowercase().as_str() {
        "https" => 443,
        _ => 80,
    };
    format!("{origin}:{port}")
}

fn same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// The beginning of a text, for a message.
fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(80).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_of_the_target_by_its_host_and_port() {
        let target = Target {
            origin: "http://shop.example:80",
            host: None,
        };
        for (url, path) in [
            ("http://shop.example/a?b#c", "/a?b"),
            ("HTTP://Shop.Example:80", "/"),
            ("http://shop.example?q", "/?q"),
        ] {
            assert_eq!(target.path_of(url).as_deref(), Ok(path), "{url}");
        }
        for (url, word) in [
            ("https://shop.example/", "another host"),
            ("http://shop.example:8080/", "another host"),
            ("http://cdn.example/", "another host"),
            ("/a", "not a URL"),
            ("data:text/plain,x", "not a URL"),
            ("http:///a", "not a URL"),
            ("http://shop.example/a b", "%20"),
        ] {
            let why = target.path_of(url).unwrap_err();
            assert!(why.contains(word), "{url}: {why}");
        }
        let named = Target {
            origin: "http://127.0.0.1:8080",
            host: Some("shop.example"),
        };
        assert_eq!(
            named.path_of("https://shop.example:8443/a").as_deref(),
            Ok("/a")
        );
        assert_eq!(
            named.path_of("http://127.0.0.1:8080/a").as_deref(),
            Ok("/a")
        );
        assert!(named.path_of("http://127.0.0.1/a").is_err());
    }
}
