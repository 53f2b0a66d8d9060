//! What is sent: requests as they were written, and their bytes as far as they are known before the load.
//!
//! A request without placeholders is bytes that never change. Any other one is rendered for each send, into the buffer of its
//! connection, which is kept.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use super::cookies::Rules;
use super::http2::hpack;
use super::lists::Entry;
use super::script::{Dealing, Group, Pause, Row, Step};
use super::values::{Expect, Header};
use crate::data::Tables;
use crate::template::{Find, Part, Place, Template, fits_header};

/// Names of a result that stand by themselves; requests of others are counted together, so that memory is bounded.
const MOST_NAMES: usize = 200;
/// Headers that belong to a connection of HTTP/1.1, and that no request of HTTP/2 may have (RFC 9113, section 8.2.2).
const OF_HTTP1: [&str; 5] = [
    "keep-alive",
    "proxy-connection",
    "upgrade",
    "http2-settings",
    "te",
];

/// What the requests of a load have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Common<'a> {
    /// Value of `Host`, unless a header gives it.
    pub(super) host: &'a str,
    /// The scheme of the requests, if they are those of HTTP/2.
    pub(super) http2: Option<&'a str>,
    /// Each request has a connection of its own.
    pub(super) closes: bool,
    /// Header lines of each request that has none of the same name.
    pub(super) headers: &'a [Header],
    /// What makes a response an answer, where the request says nothing else.
    pub(super) expect: &'a Expect,
    /// Where cookies are kept: whether those with `Secure` are too.
    pub(super) cookies: Option<bool>,
}

/// What is wrong with a request, and the parameter that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) key: &'static [&'static str],
    pub(super) why: String,
}

/// The requests of a load.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// One at least, once there is a load.
    list: Vec<Message>,
    /// Who sends them, and in which order.
    groups: Vec<Group>,
    /// Under which they are counted; empty where there is no list.
    names: Vec<String>,
    tables: Tables,
    /// Counters that rows are dealt by, beside those of users.
    dealers: usize,
    /// Counters that placeholders of a plan have, of all users and of each.
    counters: usize,
    /// Whose cookies are kept, and whether those with `Secure` are too.
    cookies: Option<(String, bool)>,
    /// They are those of HTTP/2.
    http2: bool,
}

/// A request, ready to be sent.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) bytes: Bytes,
    /// The method is HEAD, so that the response has no body.
    pub(super) to_head: bool,
    /// The least and the greatest status of an answer.
    pub(super) status: (u16, u16),
    /// Texts that its body contains, or must not.
    pub(super) texts: Vec<(String, bool)>,
    /// It sends the cookies of its user and keeps those that it gets.
    pub(super) cookies: bool,
    /// Its connection ends with its response.
    pub(super) closes: bool,
    /// The name under which it is counted.
    pub(super) name: usize,
}

#[derive(Debug)]
pub(super) enum Bytes {
    /// The same each time; the body follows the head, of so many bytes.
    Fixed(Vec<u8>, usize),
    /// Head and body; in HTTP/1.1 without the empty line between them.
    Rendered {
        head: Template,
        body: Template,
        /// Either contains the number of the request.
        counts: bool,
    },
}

/// Numbers and rows that all threads of a run take in turn.
#[derive(Debug)]
pub(crate) struct Dealt {
    pub(super) requests: AtomicU64,
    /// Rows dealt, by counter.
    pub(super) rows: Vec<AtomicU64>,
    /// Numbers given out by the counters of a plan.
    pub(super) counters: Vec<AtomicU64>,
    /// Users of each group who have begun and not ended.
    pub(super) active: Vec<AtomicU64>,
    /// The last turn that was given to one of all users, and of each group; absolute ns.
    pub(super) paced: Vec<AtomicU64>,
    pub(super) cookies: Option<Arc<Rules>>,
}

impl Requests {
    /// The same request each time.
    pub(super) fn one(entry: &Entry, common: &Common<'_>, tables: Tables) -> Result<Self, Wrong> {
        let message = Message::new(entry, common, &|name| tables.find(name))?;
        let all = Self {
            list: vec![message],
            ..Self::default()
        };
        all.in_order([Duration::ZERO].into_iter())
            .with(common, tables)
    }

    /// The requests of a list, which each user sends in order; `of` is its file.
    pub(super) fn list(
        entries: &[Entry],
        of: &str,
        common: &Common<'_>,
        tables: Tables,
    ) -> Result<Self, Wrong> {
        let pauses = entries.iter().map(|entry| entry.pause);
        Self::named(entries, of, common, &tables)?
            .in_order(pauses)
            .with(common, tables)
    }

    /// The requests of a plan, and its users.
    pub(super) fn plan(
        entries: &[Entry],
        groups: Vec<Group>,
        of: &str,
        common: &Common<'_>,
        tables: Tables,
    ) -> Result<Self, Wrong> {
        let mut all = Self::named(entries, of, common, &tables)?;
        for step in groups.iter().flat_map(|group| &group.steps) {
            if let Step::Row(Row {
                dealt: Dealing::Shared(number),
                ..
            }) = step
            {
                all.dealers = all.dealers.max(number + 1);
            }
        }
        all.groups = groups;
        all.with(common, tables)
    }

    fn named(
        entries: &[Entry],
        of: &str,
        common: &Common<'_>,
        tables: &Tables,
    ) -> Result<Self, Wrong> {
        let mut all = Self::default();
        let mut numbers = HashMap::new();
        for (at, entry) in entries.iter().enumerate() {
            let name = entry.name();
            let number = numbers.len();
            let number = *numbers.entry(name.clone()).or_insert(number);
            if number == all.names.len() && number < MOST_NAMES {
                all.names.push(name.clone());
            }
            let message = Message::new(entry, common, &|name| tables.find(name));
            let mut message = message.map_err(|Wrong { why, .. }| Wrong {
                key: &["requests"],
                why: format!("request {} of {of}, {name}: {why}", at + 1),
            })?;
            message.name = number.min(MOST_NAMES);
            all.list.push(message);
        }
        if numbers.len() > MOST_NAMES {
            all.names.push("(others)".to_owned());
        }
        Ok(all)
    }

    /// Each user sends all of them again and again, each after its pause, with a row of each table for each pass.
    fn in_order(mut self, pauses: impl Iterator<Item = Duration>) -> Self {
        // A table and its counter have the same number.
        let row = |table| {
            Step::Row(Row {
                table,
                dealt: Dealing::Shared(table),
                ends: false,
            })
        };
        let used = self.used();
        self.dealers = used.last().map_or(0, |last| last + 1);
        let mut steps: Vec<Step> = used.into_iter().map(row).collect();
        for (at, pause) in pauses.enumerate() {
            let ns = u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX);
            if ns > 0 {
                steps.push(Step::Wait(vec![Pause::Fixed(ns)]));
            }
            steps.push(Step::Send(at));
        }
        steps.push(Step::Again {
            to: 0,
            times: None,
            number: 0,
        });
        self.groups = vec![Group {
            users: usize::MAX,
            steps,
            ..Group::default()
        }];
        self
    }

    /// The tables that they take values from, in order.
    fn used(&self) -> BTreeSet<usize> {
        let mut used = BTreeSet::new();
        for message in &self.list {
            if let Bytes::Rendered { head, body, .. } = &message.bytes {
                used.extend(head.tables().chain(body.tables()));
            }
        }
        used
    }

    /// These requests with their tables.
    fn with(self, common: &Common<'_>, tables: Tables) -> Result<Self, Wrong> {
        let (mut in_heads, mut counters) = (BTreeSet::new(), 0);
        for message in &self.list {
            if let Bytes::Rendered { head, body, .. } = &message.bytes {
                in_heads.extend(head.columns());
                counters = counters.max(head.counters()).max(body.counters());
            }
        }
        for column in in_heads {
            if let Some(place) = tables.misfit(column, fits_header) {
                return Err(Wrong {
                    key: &["data"],
                    why: format!(
                        "{place} is used in a header and contains a line break or another control character; remove it"
                    ),
                });
            }
        }
        let mut headers = common.headers.iter();
        let host = headers.find(|header| header.is("host"));
        let host = host.map_or(common.host, |header| &header.value);
        Ok(Self {
            tables,
            counters,
            cookies: common.cookies.map(|secure| (without_port(host), secure)),
            http2: common.http2.is_some(),
            ..self
        })
    }

    /// What is wrong with a request, whatever its tables contain; `has_tables`: it has some.
    pub(super) fn check(entry: &Entry, common: &Common<'_>, has_tables: bool) -> Option<Wrong> {
        let column = |name: &str| {
            if has_tables {
                Ok((0, 0))
            } else {
                Tables::default().find(name)
            }
        };
        Message::new(entry, common, &column).err()
    }

    /// For a run.
    pub(super) fn dealt(&self) -> Dealt {
        let zeros = |number: usize| (0..number).map(|_| AtomicU64::new(0)).collect();
        Dealt {
            requests: AtomicU64::new(0),
            rows: zeros(self.dealers),
            counters: zeros(self.counters),
            active: zeros(self.groups.len()),
            paced: zeros(self.groups.len() + 1),
            cookies: self
                .cookies
                .clone()
                .map(|(host, secure)| Arc::new(Rules { host, secure })),
        }
    }

    /// Cookies are kept.
    pub(super) fn keep_cookies(&self) -> bool {
        self.cookies.is_some()
    }

    /// Counters that placeholders have.
    pub(super) fn counters(&self) -> usize {
        self.counters
    }

    pub(super) fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Who sends them.
    pub(super) fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Every user comes to an end.
    pub(super) fn ends(&self) -> bool {
        self.groups.iter().all(Group::ends)
    }

    /// The group of a user, who has this number over all groups, and its number within it.
    pub(super) fn place_of(&self, user: usize) -> (usize, usize) {
        let mut number = user;
        for (at, group) in self.groups.iter().enumerate() {
            if number < group.users {
                return (at, number);
            }
            number -= group.users;
        }
        (0, user)
    }

    pub(super) fn is_http2(&self) -> bool {
        self.http2
    }

    pub(super) fn messages(&self) -> &[Message] {
        &self.list
    }

    /// Under which they are counted; empty where there is no list.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }
}

impl Message {
    fn new(entry: &Entry, common: &Common<'_>, column: &Find<'_>) -> Result<Self, Wrong> {
        let Entry {
            method,
            path,
            headers,
            body,
            expect,
            texts,
            no_cookies,
            closes,
            pause: _,
            name: _,
        } = entry;
        let expect = expect.as_ref().unwrap_or(common.expect);
        if method == "HEAD" && expect.body.is_some() {
            return Err(Wrong {
                key: &["expect"],
                why: "a response to HEAD has no body to expect a text in; use GET, or expect a status alone"
                    .to_owned(),
            });
        }
        let own = |header: &&Header| !headers.iter().any(|given| given.is(&header.name));
        let headers: Vec<&Header> = headers
            .iter()
            .chain(common.headers.iter().filter(own))
            .collect();
        let template = |text: &str, place, key: &'static [&'static str]| {
            Template::parse(text, place, column).map_err(|why| Wrong { key, why })
        };
        let is_given = |name: &str| {
            let mut headers = headers.iter();
            headers.any(|given| given.is(name))
        };
        let host = headers.iter().find(|given| given.is("host"));
        let host = match host {
            Some(given) => template(&given.value, Place::Header, &["headers"])?,
            None => Template::plain(common.host),
        };
        let path = template(path, Place::Url, &["url"])?;
        let mut head = Head::begin(method, path, host, common.http2);
        if !is_given("user-agent") {
            let agent = concat!("rungwise/", env!("CARGO_PKG_VERSION"));
            head.line("User-Agent", Template::plain(agent));
        }
        if !is_given("accept") {
            head.line("Accept", Template::plain("*/*"));
        }
        for Header { name, value } in headers.iter().filter(|given| !given.is("host")) {
            let is_of_http1 = OF_HTTP1
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known));
            let te_trailers = name.eq_ignore_ascii_case("te") && value == "trailers";
            if common.http2.is_some() && is_of_http1 && !te_trailers {
                return Err(Wrong {
                    key: &["headers"],
                    why: format!(
                        "the header '{name}' belongs to a connection of HTTP/1.1, and HTTP/2 forbids it; remove the header, or http2"
                    ),
                });
            }
            head.line(name, template(value, Place::Header, &["headers"])?);
        }
        let mut content = Template::default();
        if let Some((body, media_type)) = body {
            if !is_given("content-type") {
                head.line("Content-Type", Template::plain(media_type));
            }
            // Bytes that are no text may contain `${` by chance.
            if let Ok(text) = std::str::from_utf8(body) {
                content = template(text, Place::Body, &["body"])?;
            } else {
                content.text(body);
            }
            let mut length = Template::default();
            match content.constant() {
                Some(bytes) => length.text(bytes.len().to_string().as_bytes()),
                None => length.part(Part::Length),
            }
            head.line("Content-Length", length);
        } else if matches!(&**method, "POST" | "PUT" | "PATCH") {
            // Some servers refuse these without one (RFC 9110, section 8.6).
            head.line("Content-Length", Template::plain("0"));
        }
        let closes = common.closes || *closes;
        if closes {
            head.line("Connection", Template::plain("close"));
        }
        let end: &[u8] = if head.http2 { b"" } else { b"\r\n" };
        let head = head.template;
        let fixed = head.constant().zip(content.constant());
        let cookies = common.cookies.is_some() && !no_cookies;
        let bytes = if let Some((head, body)) = fixed.filter(|_| !cookies) {
            Bytes::Fixed([head, end, body].concat(), head.len() + end.len())
        } else {
            Bytes::Rendered {
                counts: head.counts() || content.counts(),
                head,
                body: content,
            }
        };
        Ok(Self {
            bytes,
            to_head: method == "HEAD",
            status: expect.status,
            texts: (expect.body.iter().map(|text| (text.clone(), true)))
                .chain(texts.iter().cloned())
                .collect(),
            cookies,
            closes,
            name: 0,
        })
    }
}

/// A head that is being put together: lines of HTTP/1.1, or fields of HTTP/2.
struct Head {
    template: Template,
    http2: bool,
}

impl Head {
    fn begin(method: &str, path: Template, host: Template, http2: Option<&str>) -> Self {
        let mut head = Self {
            template: Template::default(),
            http2: http2.is_some(),
        };
        if let Some(scheme) = http2 {
            // The path is first, where [`target_of`] finds it.
            head.line(":path", path);
            head.line(":method", Template::plain(method));
            head.line(":scheme", Template::plain(scheme));
            head.line(":authority", host);
        } else {
            head.template.text(format!("{method} ").as_bytes());
            head.template.append(path);
            head.template.text(b" HTTP/1.1\r\n");
            head.line("Host", host);
        }
        head
    }

    /// Appends a header.
    fn line(&mut self, name: &str, value: Template) {
        let mut bytes = Vec::new();
        if !self.http2 {
            self.template.text(format!("{name}: ").as_bytes());
            self.template.append(value);
            self.template.text(b"\r\n");
            return;
        }
        hpack::put_name(name, &mut bytes);
        if let Some(value) = value.constant() {
            let before = bytes.len();
            bytes.extend_from_slice(value);
            hpack::close_string(&mut bytes, before);
            self.template.text(&bytes);
        } else {
            self.template.text(&bytes);
            self.template.part(Part::Open);
            self.template.append(value);
            self.template.part(Part::Close);
        }
    }
}

/// A host without its port, in lower case.
fn without_port(authority: &str) -> String {
    let host = match authority.rsplit_once(':') {
        // The colons of an IPv6 address stand within brackets.
        Some((host, port)) if !port.contains(']') => host,
        _ => authority,
    };
    host.to_ascii_lowercase()
}
