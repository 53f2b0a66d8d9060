//! What is sent: requests as they were written, and their bytes as far as they are known before the load.
//!
//! A request without placeholders is bytes that never change. Any other one is rendered for each send, into the buffer of its
//! connection, which is kept.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::cookies::{Jar, Rules};
use super::data::Tables;
use super::lists::Entry;
use super::response::Response;
use super::template::{Find, Part, Place, Random, Template, Values, fits_header};
use super::values::{Expect, Header};

/// Names of a result that stand by themselves; requests of others are counted together, so that memory is bounded.
const MOST_NAMES: usize = 200;

/// What the requests of a load have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Common<'a> {
    /// Value of `Host`, unless a header gives it.
    pub(super) host: &'a str,
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
    /// In the order in which each user sends them; one at least, once there is a load.
    list: Vec<Message>,
    /// Under which they are counted; empty where there is no list.
    names: Vec<String>,
    tables: Tables,
    /// The tables that they take values from.
    used: Vec<usize>,
    /// Whose cookies are kept, and whether those with `Secure` are too.
    cookies: Option<(String, bool)>,
}

/// A request, ready to be sent.
#[derive(Debug)]
pub(super) struct Message {
    bytes: Bytes,
    /// The method is HEAD, so that the response has no body.
    pub(super) to_head: bool,
    pub(super) expect: Expect,
    /// The name under which it is counted.
    pub(super) name: usize,
    /// Time between the response before and this request, ns.
    pub(super) pause: u64,
}

#[derive(Debug)]
enum Bytes {
    /// The same each time.
    Fixed(Vec<u8>),
    /// Head without the empty line that ends it, and body.
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
    requests: AtomicU64,
    rows: Vec<AtomicU64>,
    cookies: Option<Arc<Rules>>,
}

/// What differs from connection to connection: each is a user of its own.
#[derive(Debug)]
pub(super) struct User {
    /// The place of its request in the list, and that of the next.
    at: usize,
    next: usize,
    /// It pauses before its next request.
    pub(super) pauses: bool,
    /// The bytes of its request, where they are rendered.
    rendered: Vec<u8>,
    /// Room for its cookies.
    cookies: Vec<u8>,
    /// Its row of each table.
    rows: Vec<usize>,
    random: Random,
    jar: Option<Jar>,
}

impl Requests {
    /// The same request each time.
    pub(super) fn one(entry: &Entry, common: &Common<'_>, tables: Tables) -> Result<Self, Wrong> {
        let message = Message::new(entry, common, &|name| tables.find(name))?;
        Self {
            list: vec![message],
            ..Self::default()
        }
        .with(common, tables)
    }

    /// The requests of a list; `of` is its file.
    pub(super) fn list(
        entries: &[Entry],
        of: &str,
        common: &Common<'_>,
        tables: Tables,
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
        all.with(common, tables)
    }

    /// These requests with their tables.
    fn with(self, common: &Common<'_>, tables: Tables) -> Result<Self, Wrong> {
        let (mut used, mut in_heads) = (BTreeSet::new(), BTreeSet::new());
        for message in &self.list {
            if let Bytes::Rendered { head, body, .. } = &message.bytes {
                used.extend(head.tables().chain(body.tables()));
                in_heads.extend(head.columns());
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
            used: used.into_iter().collect(),
            cookies: common.cookies.map(|secure| (without_port(host), secure)),
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
        Dealt {
            requests: AtomicU64::new(0),
            rows: (0..self.tables.number())
                .map(|_| AtomicU64::new(0))
                .collect(),
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

    /// In the order in which each user sends them.
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
            pause,
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
        let mut head = Template::default();
        head.text(format!("{method} ").as_bytes());
        head.append(template(path, Place::Url, &["url"])?);
        head.text(b" HTTP/1.1\r\n");
        let mut line = |name: &str, value: &str| {
            head.text(format!("{name}: {value}\r\n").as_bytes());
        };
        if !is_given("host") {
            line("Host", common.host);
        }
        if !is_given("user-agent") {
            line(
                "User-Agent",
                concat!("rungwise/", env!("CARGO_PKG_VERSION")),
            );
        }
        if !is_given("accept") {
            line("Accept", "*/*");
        }
        for Header { name, value } in &headers {
            head.text(format!("{name}: ").as_bytes());
            head.append(template(value, Place::Header, &["headers"])?);
            head.text(b"\r\n");
        }
        let mut content = Template::default();
        if let Some((body, media_type)) = body {
            if !is_given("content-type") {
                head.text(format!("Content-Type: {media_type}\r\n").as_bytes());
            }
            // Bytes that are no text may contain `${` by chance.
            if let Ok(text) = std::str::from_utf8(body) {
                content = template(text, Place::Body, &["body"])?;
            } else {
                content.text(body);
            }
            head.text(b"Content-Length: ");
            match content.constant() {
                Some(bytes) => head.text(bytes.len().to_string().as_bytes()),
                None => head.part(Part::Length),
            }
            head.text(b"\r\n");
        } else if matches!(&**method, "POST" | "PUT" | "PATCH") {
            // Some servers refuse these without one (RFC 9110, section 8.6).
            head.text(b"Content-Length: 0\r\n");
        }
        if common.closes {
            head.text(b"Connection: close\r\n");
        }
        let fixed = head.constant().zip(content.constant());
        let bytes = if let Some((head, body)) = fixed.filter(|_| common.cookies.is_none()) {
            Bytes::Fixed([head, b"\r\n", body].concat())
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
            expect: expect.clone(),
            name: 0,
            pause: u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX),
        })
    }
}

impl User {
    /// The user of a connection, numbered over all threads.
    pub(super) fn new(requests: &Requests, dealt: &Dealt, seed: u64, connection: usize) -> Self {
        Self {
            at: 0,
            next: 0,
            pauses: false,
            rendered: Vec::new(),
            cookies: Vec::new(),
            rows: vec![0; requests.tables.number()],
            random: Random::new(seed, connection as u64),
            jar: dealt.cookies.clone().map(Jar::new),
        }
    }

    /// Makes its next request at `now`; `body` is room for one.
    #[inline]
    pub(super) fn next(
        &mut self,
        requests: &Requests,
        dealt: &Dealt,
        body: &mut Vec<u8>,
        now: u64,
    ) {
        self.at = self.next;
        let message = &requests.list[self.at];
        self.next = (self.at + 1) % requests.list.len();
        if self.at == 0 {
            // One row for all requests of a pass through the list: they are those of one user.
            for table in requests.used.iter().copied() {
                let next = dealt.rows[table].fetch_add(1, Ordering::Relaxed);
                self.rows[table] = (next % requests.tables.rows(table) as u64) as usize;
            }
        }
        if let Bytes::Rendered {
            head,
            body: content,
            counts,
        } = &message.bytes
        {
            let before = if *counts {
                dealt.requests.fetch_add(1, Ordering::Relaxed)
            } else {
                0
            };
            let mut values = Values {
                before,
                rows: &self.rows,
                tables: &requests.tables,
                random: &mut self.random,
                length: 0,
            };
            body.clear();
            content.render(&mut values, body);
            values.length = body.len();
            self.rendered.clear();
            head.render(&mut values, &mut self.rendered);
            if let Some(jar) = &self.jar {
                let target = target_of(&self.rendered);
                jar.render(target, now, &mut self.cookies);
                self.rendered.append(&mut self.cookies);
            }
            self.rendered.extend_from_slice(b"\r\n");
            self.rendered.extend_from_slice(body);
        }
    }

    /// Keeps the cookies of a response to its request.
    #[inline]
    pub(super) fn keep(&mut self, response: &Response, now: u64) {
        if let Some(jar) = &mut self.jar {
            for cookie in response.cookies() {
                jar.take(cookie, target_of(&self.rendered), response.date(), now);
            }
        }
    }

    /// Its request.
    #[inline]
    pub(super) fn message<'a>(&self, requests: &'a Requests) -> &'a Message {
        &requests.list[self.at]
    }

    /// The place of its request in the list.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// How long it pauses before its next request, ns.
    #[inline]
    pub(super) fn pause(&self, requests: &Requests) -> u64 {
        requests.list[self.next].pause
    }

    /// The bytes of its request.
    #[inline]
    pub(super) fn bytes<'a>(&'a self, requests: &'a Requests) -> &'a [u8] {
        match &requests.list[self.at].bytes {
            Bytes::Fixed(bytes) => bytes,
            Bytes::Rendered { .. } => &self.rendered,
        }
    }
}

/// Path and query in the first line of a request.
fn target_of(request: &[u8]) -> &[u8] {
    let mut words = request.split(|byte| *byte == b' ');
    words.nth(1).unwrap_or_default()
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
