//! A list of requests as a browser or a proxy recorded it: HTTP Archive 1.2 (Odvarko, 2012; the format of browsers' network panels).
//!
//! Requests are replayed one after the other. What a client adds for its own connection or cache is left out, because ours is another.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Deserialize;

use super::{Entry, Listed, MOST, Skipped, Target, shortened};
use crate::clock::days_since_1970;
use crate::workloads::http::values::{Header, Method};

#[derive(Deserialize)]
struct Archive {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    entries: Vec<Recorded>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Recorded {
    #[serde(default)]
    started_date_time: String,
    /// Of the whole exchange, milliseconds; -1 where it is unknown.
    #[serde(default)]
    time: Option<f64>,
    request: Request,
    #[serde(default, rename = "_resourceType")]
    resource_type: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<Pair>,
    #[serde(default)]
    post_data: Option<PostData>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PostData {
    #[serde(default)]
    mime_type: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    params: Option<Vec<Parameter>>,
    /// Not of the standard; some tools encode binary bodies.
    #[serde(default, alias = "_encoding")]
    encoding: Option<String>,
}

#[derive(Deserialize)]
struct Pair {
    name: String,
    value: String,
}

#[derive(Deserialize)]
struct Parameter {
    name: String,
    #[serde(default)]
    value: String,
}

/// Headers that belong to the connection (RFC 9110, section 7.6.1), to the framing, to the cache of the recorded client (section 13.1), or to
/// the target.
const LEFT_OUT: [&str; 18] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

/// Reads the archive in `bytes`, the content of `file`: its requests to `target`, with the recorded pauses between them where `timing` asks for
/// them. Recorded cookies are sent unless the load keeps its own, `cookies`.
pub fn parse(
    file: &str,
    bytes: &[u8],
    target: &Target<'_>,
    timing: bool,
    cookies: bool,
) -> Result<Listed, String> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let archive: Archive = serde_json::from_slice(bytes).map_err(|error| {
        format!(
            "{file} is no HTTP Archive (HAR 1.2): {error}; export it from a browser's network panel"
        )
    })?;
    if archive.log.entries.len() > MOST {
        return Err(format!("{file} has more than {MOST} requests; split it"));
    }
    let mut listed = Listed::default();
    let mut pauses = Pauses::default();
    for (at, recorded) in archive.log.entries.iter().enumerate() {
        match recorded.entry(target, cookies) {
            Err(why) => {
                // A WebSocket is open while its user does something else.
                if why != WEBSOCKET {
                    pauses.skip(recorded);
                }
                let Request { method, url, .. } = &recorded.request;
                let what = format!("{} {}", shortened(method), shortened(url));
                listed.skipped.push(Skipped { what, why });
            }
            Ok(mut entry) => {
                if timing {
                    entry.pause = pauses.before(recorded).ok_or_else(|| {
                        format!(
                            "{file}, entry {}: cannot read startedDateTime '{}'; remove --har-timing",
                            at + 1,
                            shortened(&recorded.started_date_time)
                        )
                    })?;
                }
                listed.entries.push(entry);
            }
        }
    }
    Ok(listed)
}

/// A day, milliseconds: longer than any pause of a user. A clock may have been set meanwhile.
const DAY_MS: f64 = 86_400e3;

/// What is skipped for this reason.
const WEBSOCKET: &str = "WebSocket";

/// The time between a response and the next request, without what skipped requests took of it.
#[derive(Debug, Default)]
struct Pauses {
    /// When the exchanges so far were over, milliseconds; absent before the first that is sent.
    over: Option<f64>,
    /// Time without an exchange since the last that is sent, milliseconds.
    idle: f64,
}

impl Pauses {
    /// The pause before a request that is sent, where the time at which it began can be read.
    fn before(&mut self, recorded: &Recorded) -> Option<Duration> {
        let (began, ended) = recorded.span_ms()?;
        let gap = self.over.map_or(0.0, |over| (began - over).max(0.0));
        let pause = (self.idle + gap).min(DAY_MS);
        (self.over, self.idle) = (Some(ended), 0.0);
        Some(Duration::from_secs_f64(pause / 1e3))
    }

    /// A request that is not sent: the user waited for it too.
    fn skip(&mut self, recorded: &Recorded) {
        if let (Some(over), Some((began, ended))) = (self.over, recorded.span_ms()) {
            self.idle += (began - over).max(0.0);
            self.over = Some(over.max(ended));
        }
    }
}

impl Recorded {
    /// From its beginning to its end, milliseconds since 1970.
    fn span_ms(&self) -> Option<(f64, f64)> {
        let began = time_ms(&self.started_date_time)?;
        Some((began, began + self.time.unwrap_or(0.0).clamp(0.0, DAY_MS)))
    }

    /// As a request of the load; else why not, in words that are the same for others of its sort.
    fn entry(&self, target: &Target<'_>, cookies: bool) -> Result<Entry, String> {
        let Request {
            method,
            url,
            headers,
            post_data,
        } = &self.request;
        let scheme = url.split(':').next().unwrap_or_default();
        match scheme.to_ascii_lowercase().as_str() {
            "http" | "https" => {}
            "ws" | "wss" => return Err(WEBSOCKET.to_owned()),
            other => return Err(format!("{}: URL", shortened(other))),
        }
        let upgrades = headers.iter().any(|header| {
            header.name.eq_ignore_ascii_case("upgrade")
                && header.value.eq_ignore_ascii_case("websocket")
        });
        if upgrades || self.resource_type.as_deref() == Some("websocket") {
            return Err(WEBSOCKET.to_owned());
        }
        let path = target.path_of(url)?;
        let Method(method) = method.parse()?;
        let mut kept = Vec::new();
        for Pair { name, value } in headers {
            let left_out = name.starts_with(':')
                || LEFT_OUT.iter().any(|one| name.eq_ignore_ascii_case(one))
                || cookies && name.eq_ignore_ascii_case("cookie");
            if !left_out {
                let header: Header = format!("{name}: {value}").parse()?;
                kept.push(Header {
                    value: literal(&header.value),
                    ..header
                });
            }
        }
        let body = post_data
            .as_ref()
            .map(PostData::body)
            .transpose()?
            .flatten();
        if let (Some(_), Some(PostData { mime_type, .. })) = (&body, post_data)
            && !mime_type.is_empty()
            && !kept.iter().any(|header| header.is("content-type"))
        {
            kept.push(format!("Content-Type: {mime_type}").parse()?);
        }
        let name = path.split('?').next().unwrap_or_default();
        Ok(Entry {
            name: Some(format!("{method} {name}")),
            path: literal(&path),
            headers: kept,
            body: body.map(|body| (literal(&body).into_bytes(), "application/octet-stream")),
            method,
            ..Entry::default()
        })
    }
}

impl PostData {
    fn body(&self) -> Result<Option<String>, String> {
        if self.encoding.is_some() {
            return Err("an encoded body".to_owned());
        }
        let is_form = self
            .mime_type
            .starts_with("application/x-www-form-urlencoded");
        match (&self.text, &self.params) {
            (Some(text), _) if !text.is_empty() => Ok(Some(text.clone())),
            (_, Some(params)) if is_form && !params.is_empty() => {
                let pairs = params.iter();
                let pairs = pairs.map(|one| format!("{}={}", form(&one.name), form(&one.value)));
                Ok(Some(pairs.collect::<Vec<_>>().join("&")))
            }
            (_, Some(params)) if !params.is_empty() => {
                Err("form data whose bytes were not recorded".to_owned())
            }
            _ => Ok(None),
        }
    }
}

/// As a form is sent (`application/x-www-form-urlencoded`, WHATWG URL, section 5). What a browser has encoded already stays.
fn form(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'*' | b'-' | b'.' | b'_' | b'%' | b'+' => {
                encoded.push(char::from(byte));
            }
            b' ' => encoded.push('+'),
            _ => _ = write!(encoded, "%{byte:02X}"),
        }
    }
    encoded
}

/// A recorded text contains no placeholders.
fn literal(text: &str) -> String {
    text.replace("${", "$${")
}

/// Milliseconds since 1970 of a time such as `2026-11-26T10:00:00.250+01:00` (ISO 8601, as HAR 1.2 asks for).
fn time_ms(text: &str) -> Option<f64> {
    let (date, clock) = text.split_once('T')?;
    let mut date = date.split('-').map(str::parse::<i64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let valid =
        (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let zone = clock.find(['Z', '+', '-'])?;
    let (clock, zone) = clock.split_at(zone);
    let mut clock = clock.split(':');
    let hour: u8 = clock.next()?.parse().ok()?;
    let minute: u8 = clock.next()?.parse().ok()?;
    let second: f64 = clock.next()?.parse().ok()?;
    let valid = valid && hour < 24 && minute < 60 && (0.0..61.0).contains(&second);
    let offset_min = match zone.strip_prefix(['+', '-']) {
        None => 0.0,
        Some(offset) => {
            let (hours, minutes) = match offset.split_once(':') {
                Some(parts) => parts,
                None => offset.split_at_checked(2)?,
            };
            let minutes = f64::from(hours.parse::<u8>().ok()?) * 60.0
                + f64::from(minutes.parse::<u8>().ok()?);
            if zone.starts_with('-') {
                -minutes
            } else {
                minutes
            }
        }
    };
    let minutes = f64::from(hour) * 60.0 + f64::from(minute) - offset_min;
    let days = days_since_1970(year, month, day) as f64;
    valid.then_some((days * 86_400.0 + minutes * 60.0 + second) * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOP: Target<'_> = Target {
        origin: "http://127.0.0.1:8080",
        host: Some("shop.example"),
    };

    const ARCHIVE: &str = r#"{"log": {"version": "1.2", "creator": {"name": "t", "version": "1"}, "entries": [
        {"startedDateTime": "2026-11-26T10:00:00.000Z", "time": 50.5, "request": {"method": "GET", "url": "https://shop.example/a?b=${x}",
            "httpVersion": "h2", "headers": [{"name": ":authority", "value": "shop.example"}, {"name": "Accept", "value": "text/html"},
            {"name": "Cookie", "value": "s=1"}, {"name": "If-None-Match", "value": "x"}, {"name": "Connection", "value": "keep-alive"},
            {"name": "Host", "value": "shop.example"}]}, "response": {"status": 304, "content": {"text": "big"}}},
        {"startedDateTime": "2026-11-26T10:00:00.010Z", "time": 5, "request": {"method": "GET", "url": "https://cdn.example/x.js", "headers": []}},
        {"startedDateTime": "2026-11-26T10:00:00.020Z", "time": 5, "request": {"method": "GET", "url": "data:image/png;base64,AAAA"}},
        {"startedDateTime": "2026-11-26T10:00:00.020Z", "time": 5, "request": {"method": "GET", "url": "wss://shop.example/live"}},
        {"startedDateTime": "2026-11-26T11:00:01.0505+01:00", "time": 10, "request": {"method": "POST", "url": "https://shop.example/order",
            "headers": [{"name": "Content-Length", "value": "7"}], "postData": {"mimeType": "application/json", "text": "{\"a\":1}"}}},
        {"startedDateTime": "2026-11-26T10:00:01.0505Z", "time": -1, "request": {"method": "POST", "url": "https://shop.example/form",
            "postData": {"mimeType": "application/x-www-form-urlencoded", "params": [{"name": "a", "value": "1"}, {"name": "b", "value": "%20"}]}}},
        {"startedDateTime": "x", "time": 1, "request": {"method": "POST", "url": "https://shop.example/up",
            "postData": {"mimeType": "multipart/form-data", "params": [{"name": "f"}]}}}
    ]}}"#;

    fn parsed(timing: bool, cookies: bool) -> Listed {
        parse("s.har", ARCHIVE.as_bytes(), &SHOP, timing, cookies).unwrap()
    }

    #[test]
    fn requests_to_the_target_stay_without_what_belongs_to_the_recorded_client() {
        let Listed { entries, skipped } = parsed(false, false);
        let lines = |entry: &Entry| {
            let headers = entry.headers.iter();
            headers.map(Header::to_string).collect::<Vec<_>>()
        };
        assert_eq!(entries.len(), 3);
        assert_eq!(entries[0].path, "/a?b=$${x}");
        assert_eq!(entries[0].name(), "GET /a");
        assert_eq!(lines(&entries[0]), ["Accept: text/html", "Cookie: s=1"]);
        assert_eq!(lines(&entries[1]), ["Content-Type: application/json"]);
        assert_eq!(entries[1].body.as_ref().unwrap().0, b"{\"a\":1}");
        assert_eq!(entries[2].body.as_ref().unwrap().0, b"a=1&b=%20");
        assert!(entries.iter().all(|entry| entry.pause.is_zero()));
        let reasons: Vec<&str> = skipped.iter().map(|one| &*one.why).collect();
        assert_eq!(reasons.len(), 4);
        for (reason, word) in
            reasons
                .iter()
                .zip(["https://cdn.example", "data: URL", "WebSocket", "form data"])
        {
            assert!(reason.contains(word), "{reason}");
        }
        assert_eq!(
            lines(&parsed(false, true).entries[0]),
            ["Accept: text/html"]
        );
    }

    #[test]
    fn recorded_pauses_are_from_a_response_to_the_next_request() {
        let pauses: Vec<Duration> = parsed(true, false)
            .entries
            .iter()
            .map(|one| one.pause)
            .collect();
        assert_eq!(
            pauses,
            [Duration::ZERO, Duration::from_secs(1), Duration::ZERO]
        );
    }

    #[test]
    fn the_time_of_a_skipped_request_is_no_pause() {
        let entry = |ms: u32, time: u32, url: &str| {
            format!(
                "{{\"startedDateTime\": \"2026-11-26T10:00:00.{ms:03}Z\", \"time\": {time}, \"request\": {{\"method\": \"GET\", \"url\": \"{url}\"}}}}"
            )
        };
        let entries = [
            entry(50, 10, "https://cdn.example/before"),
            entry(100, 100, "https://shop.example/"),
            entry(150, 10, "https://cdn.example/within"),
            entry(250, 300, "https://cdn.example/after"),
            entry(300, 60_000, "wss://shop.example/live"),
            entry(600, 10, "https://shop.example/next"),
        ];
        let archive = format!("{{\"log\": {{\"entries\": [{}]}}}}", entries.join(", "));
        let listed = parse("s.har", archive.as_bytes(), &SHOP, true, false).unwrap();
        let pauses: Vec<Duration> = listed.entries.iter().map(|one| one.pause).collect();
        // From 200 to 250 and from 550 to 600.
        assert_eq!(pauses, [Duration::ZERO, Duration::from_millis(100)]);
    }

    #[test]
    fn what_is_no_archive_is_refused() {
        for (text, word) in [
            ("{}", "missing field `log`"),
            ("{\"log\": {\"entries\": 5}}", "line 1 column"),
            ("<har/>", "no HTTP Archive"),
        ] {
            let why = parse("s.har", text.as_bytes(), &SHOP, false, false).unwrap_err();
            assert!(why.contains(word), "{why}");
        }
        let odd = "{\"log\": {\"entries\": [{\"request\": {\"method\": \"GET\", \"url\": \"http://shop.example/\"}}]}}";
        let why = parse("s.har", odd.as_bytes(), &SHOP, true, false).unwrap_err();
        assert!(
            why.contains("entry 1") && why.contains("--har-timing"),
            "{why}"
        );
    }

    #[test]
    fn times_have_a_zone() {
        for (text, ms) in [
            ("1970-01-02T00:00:00Z", Some(86_400e3)),
            ("1970-01-02T01:30:00.5+01:30", Some(86_400.5e3)),
            ("1970-01-01T23:00:00-0100", Some(86_400e3)),
            ("1970-01-01T23:00:00", None),
            ("1970-13-01T23:00:00Z", None),
            ("1970-01-01T23:00Z", None),
            ("", None),
        ] {
            assert_eq!(time_ms(text), ms, "{text}");
        }
    }
}
