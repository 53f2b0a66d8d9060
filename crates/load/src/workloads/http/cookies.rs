//! The cookies of one user: what servers set, and what goes with the next requests (RFC 6265).
//!
//! There is one host, so a cookie is for it or refused. Memory is bounded as RFC 6265, section 6.1, asks of clients at least:
//! 50 cookies of 4096 bytes.

use std::sync::Arc;

use crate::clock::days_since_1970;

/// Most cookies of a user; the oldest makes room.
const MOST: usize = 50;
/// Longest name and value together, bytes; a longer cookie is ignored.
const LONGEST: usize = 4096;

/// What all users of a load have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    /// The host, in lower case, without its port.
    pub(super) host: String,
    /// Cookies with `Secure` are stored and sent.
    pub(super) secure: bool,
}

/// The cookies of a user.
#[derive(Debug)]
pub(super) struct Jar {
    rules: Arc<Rules>,
    /// Longer paths first; those of the same length in the order in which they were set.
    cookies: Vec<Cookie>,
    /// Cookies set so far.
    set: u64,
}

#[derive(Debug, PartialEq, Eq)]
struct Cookie {
    name: Vec<u8>,
    value: Vec<u8>,
    path: Vec<u8>,
    /// On the generator's clock, ns; absent where it lasts as long as the run.
    expires: Option<u64>,
    number: u64,
}

impl Jar {
    pub(super) fn new(rules: Arc<Rules>) -> Self {
        Self {
            rules,
            cookies: Vec::new(),
            set: 0,
        }
    }

    /// Takes the value of a `Set-Cookie` in a response to a request for `target`, a path with its query; section 5.2 and 5.3. `date` is the
    /// response's own, which `Expires` is compared with: the clocks of both machines may differ.
    pub(super) fn take(&mut self, line: &[u8], target: &[u8], date: &[u8], now: u64) {
        let mut parts = line.split(|byte| *byte == b';');
        let pair = parts.next().unwrap_or_default();
        let Some(at) = pair.iter().position(|byte| *byte == b'=') else {
            return;
        };
        let (name, value) = (pair[..at].trim_ascii(), pair[at + 1..].trim_ascii());
        if name.is_empty() || name.len() + value.len() > LONGEST {
            return;
        }
        let mut path = default_path(target);
        let (mut max_age, mut expires) = (None, None);
        for part in parts {
            let (key, value) = match part.iter().position(|byte| *byte == b'=') {
                Some(at) => (part[..at].trim_ascii(), part[at + 1..].trim_ascii()),
                None => (part.trim_ascii(), &[][..]),
            };
            if key.eq_ignore_ascii_case(b"path") {
                path = if value.starts_with(b"/") && value.len() <= LONGEST {
                    value
                } else {
                    default_path(target)
                };
            } else if key.eq_ignore_ascii_case(b"max-age") {
                let text = std::str::from_utf8(value).unwrap_or_default();
                // Too long a number is for ever.
                let digits = text.strip_prefix('-').unwrap_or(text);
                if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    max_age = Some(if text.starts_with('-') {
                        0
                    } else {
                        digits.parse().unwrap_or(u64::MAX)
                    });
                }
            } else if key.eq_ignore_ascii_case(b"expires") {
                expires = date_s(value).or(expires);
            } else if key.eq_ignore_ascii_case(b"domain") && !self.is_ours(value)
                || key.eq_ignore_ascii_case(b"secure") && !self.rules.secure
            {
                return;
            }
        }
        let lasts_s = max_age.or_else(|| {
            // Without a date only one in 1970 is known to be over.
            expires.map(|expires: u64| expires.saturating_sub(date_s(date).unwrap_or(0)))
        });
        let expires = lasts_s.map(|s| now.saturating_add(s.saturating_mul(crate::clock::SECOND)));
        self.put(name, value, path, expires, lasts_s == Some(0));
    }

    /// Forgets all of them.
    pub(super) fn forget(&mut self) {
        self.cookies.clear();
    }

    fn put(&mut self, name: &[u8], value: &[u8], path: &[u8], expires: Option<u64>, is_gone: bool) {
        let mut cookies = self.cookies.iter();
        let known = cookies.position(|cookie| cookie.name == name && cookie.path == path);
        match known {
            Some(at) if is_gone => {
                self.cookies.remove(at);
            }
            // In place: a cookie that is set with each response takes no new memory.
            Some(at) => {
                let cookie = &mut self.cookies[at];
                cookie.value.clear();
                cookie.value.extend_from_slice(value);
                cookie.expires = expires;
            }
            None if is_gone => {}
            None => {
                if self.cookies.len() == MOST {
                    let numbers = self.cookies.iter().enumerate();
                    let oldest = numbers.min_by_key(|(_, cookie)| cookie.number);
                    if let Some((at, _)) = oldest {
                        self.cookies.remove(at);
                    }
                }
                let at = (self.cookies).partition_point(|other| other.path.len() >= path.len());
                let cookie = Cookie {
                    name: name.to_vec(),
                    value: value.to_vec(),
                    path: path.to_vec(),
                    expires,
                    number: self.set,
                };
                self.set += 1;
                self.cookies.insert(at, cookie);
            }
        }
    }

    /// Appends what a request for `target` sends, if there are cookies for it; section 5.4.
    pub(super) fn render(&self, target: &[u8], now: u64, to: &mut Vec<u8>) {
        let path = path_of(target);
        let mut lead: &[u8] = b"";
        for cookie in &self.cookies {
            let lasts = cookie.expires.is_none_or(|expires| now < expires);
            if lasts && matches(path, &cookie.path) {
                for piece in [lead, &cookie.name, b"=", &cookie.value] {
                    to.extend_from_slice(piece);
                }
                lead = b"; ";
            }
        }
    }

    /// A cookie for this domain is for the host; section 5.1.3.
    fn is_ours(&self, domain: &[u8]) -> bool {
        let domain = domain.strip_prefix(b".").unwrap_or(domain);
        let host = self.rules.host.as_bytes();
        let ends = host.len() >= domain.len() && {
            let end = &host[host.len() - domain.len()..];
            end.eq_ignore_ascii_case(domain)
        };
        let is_address =
            self.rules.host.starts_with('[') || self.rules.host.parse::<std::net::IpAddr>().is_ok();
        // An empty domain is as none.
        domain.is_empty()
            || ends
                && (host.len() == domain.len()
                    || !is_address && host[host.len() - domain.len() - 1] == b'.')
    }
}

/// The path without its query.
fn path_of(target: &[u8]) -> &[u8] {
    let end = target.iter().position(|byte| *byte == b'?');
    &target[..end.unwrap_or(target.len())]
}

/// The path of a cookie that names none; section 5.1.4.
fn default_path(target: &[u8]) -> &[u8] {
    let path = path_of(target);
    match path.iter().rposition(|byte| *byte == b'/') {
        None | Some(0) => b"/",
        Some(at) => &path[..at],
    }
}

/// A cookie of `of` goes with a request for `path`; section 5.1.4.
fn matches(path: &[u8], of: &[u8]) -> bool {
    path.strip_prefix(of)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/") || of.ends_with(b"/"))
}

/// Seconds since 1970 of a date such as `Thu, 01 Jan 1970 00:00:00 GMT` or with `-` between day, month and year; absent where it
/// cannot be read. 0 for what lies before.
fn date_s(text: &[u8]) -> Option<u64> {
    const MONTHS: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let text = std::str::from_utf8(text).ok()?;
    let mut words = text.split([' ', ',', '-']).filter(|word| !word.is_empty());
    let first = words.next()?;
    // The day of the week may be missing.
    let day = if first.starts_with(|letter: char| letter.is_ascii_digit()) {
        first
    } else {
        words.next()?
    };
    let day: i64 = day.parse().ok().filter(|day| (1..=31).contains(day))?;
    let month = words.next()?;
    let month = month.get(..3)?;
    let mut months = (1..).zip(MONTHS);
    let (month, _) = months.find(|(_, known)| known.eq_ignore_ascii_case(month))?;
    let year: i64 = words.next()?.parse().ok()?;
    let year = match year {
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        1601..=9999 => year,
        _ => return None,
    };
    let mut clock = words.next()?.split(':').map(str::parse::<i64>);
    let (hour, minute, second) = (
        clock.next()?.ok()?,
        clock.next()?.ok()?,
        clock.next()?.ok()?,
    );
    if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..61).contains(&second) {
        return None;
    }
    let days = days_since_1970(year, month, day);
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second;
    Some(seconds.max(0).cast_unsigned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::clock::SECOND;

    const DATE: &[u8] = b"Thu, 26 Nov 2026 00:00:00 GMT";

    fn jar(host: &str) -> Jar {
        Jar::new(Arc::new(Rules {
            host: host.to_owned(),
            secure: false,
        }))
    }

    fn sent(jar: &Jar, target: &str, now: u64) -> String {
        let mut to = Vec::new();
        jar.render(target.as_bytes(), now, &mut to);
        String::from_utf8(to).unwrap()
    }

    #[test]
    fn a_cookie_goes_with_the_requests_of_its_path_and_the_longest_first() {
        let mut jar = jar("127.0.0.1");
        assert_eq!(sent(&jar, "/", 0), "");
        for line in [
            "a=1; Path=/",
            "b=2",
            "c=3; Path=/shop",
            " d = 4 ; path=/shop/cart/ ; HttpOnly",
        ] {
            jar.take(line.as_bytes(), b"/shop/login?to=/x/y", DATE, 0);
        }
        assert_eq!(sent(&jar, "/", 0), "a=1");
        assert_eq!(sent(&jar, "/shopping", 0), "a=1");
        assert_eq!(sent(&jar, "/shop?x", 0), "b=2; c=3; a=1");
        assert_eq!(sent(&jar, "/shop/cart/1", 0), "d=4; b=2; c=3; a=1");
        jar.take(b"a=5=6; Path=/", b"/", DATE, 0);
        assert_eq!(sent(&jar, "/", 0), "a=5=6");
    }

    #[test]
    fn a_cookie_ends_as_the_server_says() {
        let mut jar = jar("h");
        jar.take(b"a=1; Max-Age=10", b"/", DATE, 0);
        jar.take(b"b=1; Expires=Fri, 27 Nov 2026 00:00:00 GMT", b"/", DATE, 0);
        jar.take(b"c=1; Max-Age=99999999999999999999999", b"/", DATE, 0);
        jar.take(b"d=1; Max-Age=x; Expires=never", b"/", DATE, 0);
        assert_eq!(sent(&jar, "/", 10 * SECOND - 1), "a=1; b=1; c=1; d=1");
        assert_eq!(sent(&jar, "/", 10 * SECOND), "b=1; c=1; d=1");
        assert_eq!(sent(&jar, "/", 86_400 * SECOND), "c=1; d=1");
        jar.take(b"c=; Max-Age=0", b"/", DATE, 0);
        jar.take(b"d=; Expires=Thu, 01-Jan-1970 00:00:00 GMT", b"/", DATE, 0);
        assert_eq!(sent(&jar, "/", 86_400 * SECOND), "");
        // Max-Age goes before Expires.
        jar.take(
            b"e=1; Max-Age=5; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            b"/",
            DATE,
            0,
        );
        assert_eq!(sent(&jar, "/", 0), "a=1; b=1; e=1");
    }

    #[test]
    fn a_cookie_for_another_host_or_for_tls_is_refused() {
        let mut jar = jar("www.shop.example");
        for line in [
            "a=1; Domain=other.example",
            "b=1; Domain=hop.example",
            "c=1; Domain=x.www.shop.example",
            "d=1; Secure",
            "=1",
            "novalue",
        ] {
            jar.take(line.as_bytes(), b"/", DATE, 0);
        }
        assert_eq!(sent(&jar, "/", 0), "");
        jar.take(b"e=1; Domain=.Shop.Example", b"/", DATE, 0);
        jar.take(b"f=1; Domain=", b"/", DATE, 0);
        assert_eq!(sent(&jar, "/", 0), "e=1; f=1");
        let mut by_address = self::jar("127.0.0.1");
        by_address.take(b"a=1; Domain=0.0.1", b"/", DATE, 0);
        by_address.take(b"b=1; Domain=127.0.0.1", b"/", DATE, 0);
        assert_eq!(sent(&by_address, "/", 0), "b=1");
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_makes_room() {
        let mut jar = jar("h");
        jar.take(
            &[b"long=".to_vec(), vec![b'x'; LONGEST]].concat(),
            b"/",
            DATE,
            0,
        );
        for number in 0..1000 {
            jar.take(format!("n{number}={number}").as_bytes(), b"/", DATE, 0);
        }
        assert_eq!(jar.cookies.len(), MOST);
        let line = sent(&jar, "/", 0);
        assert!(line.contains("n999=999") && line.contains("n950=950") && !line.contains("n949="));
    }

    #[test]
    fn dates_are_read_as_servers_write_them() {
        for (text, seconds) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777)),
            ("29 Feb 2024 12:00:00 GMT", Some(1_709_208_000)),
            ("Mon, 01 Jan 1601 00:00:00 GMT", Some(0)),
            ("now", None),
            ("Thu, 41 Jan 1970 00:00:00 GMT", None),
            ("Thu, 01 Jan 1970 99:00:00 GMT", None),
        ] {
            assert_eq!(date_s(text.as_bytes()), seconds, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_line_of_a_server_panics_or_begins_another_header(
            lines in proptest::collection::vec("[ -~]{0,60}", 0..20),
            target in "/[a-z/?]{0,20}",
        ) {
            let mut jar = jar("h");
            for line in &lines {
                jar.take(line.as_bytes(), target.as_bytes(), DATE, 1);
            }
            let line = sent(&jar, &target, 2);
            prop_assert!(!line.contains(['\r', '\n']));
        }
    }
}
