//! The parameters of HTTP traffic.

use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Workload;
use super::data::Tables;
use super::lists::{Entry, Listed, Target, har, jsonl};
use super::requests::{Common, Requests, Wrong};
use super::transport::{Route, Transport};
use super::values::{Expect, Header, Method, Url};
use crate::Error;
use crate::parameters::{
    Contradiction, Driven, Length, Load, Schedule, Site, Traffic, WrittenTarget,
};
use crate::values::Rate;

/// HTTP/1.1 requests with one response each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, clap::Args)]
#[schemars(inline)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub struct Parameters {
    /// Where requests go: `http://HOST:PORT/PATH`, or `https://` for TLS; in a scenario an address, also `http://{server}:8080/PATH`.
    pub url: Url,
    /// Method of the requests [default: GET, or POST with a body].
    #[arg(long, value_name = "METHOD")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<Method>,
    /// A header line, `Name: value`; may be repeated.
    #[arg(long = "header", value_name = "NAME: VALUE")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<Header>,
    /// The body of each request: a file, or `text:TEXT`. Like URL path and header values it may contain placeholders: `${counter}`,
    /// `${random:1..100}`, `${uuid}`, `${choice:a|b}`, `${csv:NAME}`.
    #[arg(long, value_name = "FILE|text:TEXT")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// A CSV file whose columns `${csv:NAME}` takes; its first line names them. Rows are dealt in order over all connections, again and
    /// again; may be repeated.
    #[arg(long, value_name = "FILE.csv")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<String>,
    /// A list of requests, one JSON object a line, which each connection sends in order, from the first to the last and again: `path` (or `url`), and
    /// optionally `name`, `method`, `headers`, `body`, `expect`, `pause`.
    #[arg(long, value_name = "FILE.jsonl")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<String>,
    /// A list as a browser or proxy recorded it, HTTP Archive 1.2: its requests to the target, or to the host of `--header 'Host: NAME'`. What is not
    /// sent is listed before the run.
    #[arg(long, value_name = "FILE.har")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub har: Option<String>,
    /// Keep the recorded pauses between the requests of `--har`; otherwise each follows at once.
    #[arg(long)]
    #[serde(default)]
    pub har_timing: bool,
    /// Refuse a list of which something cannot be sent.
    #[arg(long)]
    #[serde(default)]
    pub strict: bool,
    /// Each connection keeps the cookies of its responses and sends them with its next requests, as one user does.
    #[arg(long)]
    #[serde(default)]
    pub cookies: bool,
    /// Connections over all threads, each with one request at a time.
    #[arg(long, value_name = "N", default_value_t = connections())]
    #[serde(default = "connections")]
    pub connections: u32,
    /// Open a new connection for each request.
    #[arg(long)]
    #[serde(default)]
    pub no_keepalive: bool,
    /// What makes a response an answer, `status=2xx,body~TEXT`; any other response is an error [default: status=200-399].
    #[arg(long, value_name = "CONDITIONS")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
    /// When requests are sent, by how many threads, and the timeout.
    #[command(flatten)]
    #[serde(flatten)]
    pub schedule: Schedule,
    /// How connections are made.
    #[command(flatten)]
    #[serde(flatten)]
    pub transport: Transport,
}

fn connections() -> u32 {
    64
}

/// Begins a body that is not in a file.
const TEXT: &str = "text:";

impl Parameters {
    /// The traffic of these requests on this route at `site`.
    fn traffic(
        &self,
        requests: Requests,
        notes: Vec<String>,
        route: Route,
        site: &Site<'_>,
    ) -> Workload {
        let plan = self.schedule.plan(site, &Length::ANY);
        let connections = self.connections as usize;
        Workload {
            words: format!("{}{}", self.words(&requests, &notes), self.transport),
            notes,
            requests: Arc::new(requests),
            seed: 0,
            connections,
            keepalive: !self.no_keepalive,
            expect: match (&self.expect, &self.requests) {
                (None, Some(_)) => "what the list says".to_owned(),
                (expect, _) => expect.clone().unwrap_or_default().to_string(),
            },
            target: plan.target,
            route,
            // A thread without a connection has nothing to do.
            threads: plan.threads.min(connections.max(1)),
            pins: plan.pins,
            arrival: plan.arrival,
            timeout: plan.timeout,
            warmup: plan.warmup,
            stop: plan.stop,
        }
    }

    fn words(&self, requests: &Requests, notes: &[String]) -> String {
        match self.list() {
            Some(file) => {
                let part = if notes.is_empty() { "" } else { ", not all," };
                let number = requests.messages().len();
                format!("{number} requests of {file}{part} to {}", self.origin())
            }
            None => format!("{} {}", self.method(), self.url),
        }
    }

    /// The file of the list.
    fn list(&self) -> Option<&String> {
        self.requests.as_ref().or(self.har.as_ref())
    }

    /// The URL without its path.
    fn origin(&self) -> String {
        let url = self.url.to_string();
        url.strip_suffix(&self.url.path).unwrap_or(&url).to_owned()
    }

    fn method(&self) -> &str {
        match (&self.method, &self.body) {
            (Some(method), _) => &method.0,
            (None, Some(_)) => "POST",
            (None, None) => "GET",
        }
    }

    /// The request with this body.
    fn entry(&self, body: Option<Vec<u8>>) -> Entry {
        Entry {
            method: self.method().to_owned(),
            path: self.url.path.clone(),
            body: body.map(|body| (body, self.media_type())),
            ..Entry::default()
        }
    }

    fn common<'a>(&'a self, host: &'a str, expect: &'a Expect) -> Common<'a> {
        // A cookie for TLS alone is not sent without it (RFC 6265, section 5.4).
        let secure = self.url.to_string().starts_with("https://");
        Common {
            host,
            closes: self.no_keepalive,
            headers: &self.headers,
            expect,
            cookies: self.cookies.then_some(secure),
        }
    }

    /// Value of `Host`.
    fn host(&self, site: &Site<'_>) -> String {
        // `{server}` in a scenario: the service's resolved address.
        if self.url.authority.contains('{') {
            site.target.to_string()
        } else {
            self.url.authority.clone()
        }
    }

    fn media_type(&self) -> &'static str {
        match self.body.as_deref() {
            Some(body) if body.starts_with(TEXT) => "text/plain",
            Some(file) if Path::new(file).extension().is_some_and(|end| end == "json") => {
                "application/json"
            }
            _ => "application/octet-stream",
        }
    }

    fn body(&self, site: &Site<'_>) -> Result<Option<Vec<u8>>, Error> {
        let read = |body: &String| match body.strip_prefix(TEXT) {
            Some(text) => Ok(text.as_bytes().to_vec()),
            None => (site.read)(body).map_err(|why| site.wrong(why)),
        };
        self.body.as_ref().map(read).transpose()
    }

    /// The requests of a list.
    fn listed(&self, file: &str, site: &Site<'_>) -> Result<Listed, Error> {
        let content = (site.read)(file).map_err(|why| site.wrong(why))?;
        let mut headers = self.headers.iter();
        let host = headers.find(|header| header.is("host"));
        let target = Target {
            origin: &self.origin(),
            host: host.map(|header| header.value.as_str()),
        };
        let listed = if self.har.is_some() {
            har::parse(file, &content, &target, self.har_timing, self.cookies)
        } else {
            jsonl::parse(file, &content, &target).map(|entries| Listed {
                entries,
                skipped: Vec::new(),
            })
        };
        let listed = listed.map_err(|why| site.wrong(why))?;
        let reasons = listed.reasons().join("; ");
        if listed.entries.is_empty() {
            return Err(site.wrong(format!(
                "{file} contains no request to {}; {reasons}; name the host that was recorded, as in --header 'Host: shop.example'",
                target.origin
            )));
        }
        if self.strict && !listed.skipped.is_empty() {
            return Err(site.wrong(format!(
                "not all of {file} can be sent: {reasons}; remove --strict to send the rest"
            )));
        }
        let mut headers = listed.entries.iter().flat_map(|entry| &entry.headers);
        if self.cookies && headers.any(|header| header.is("cookie")) {
            return Err(site.wrong(format!(
                "a request of {file} has a header Cookie, and --cookies sends one too; remove one of the two"
            )));
        }
        Ok(listed)
    }

    fn tables(&self, site: &Site<'_>) -> Result<Tables, Error> {
        let mut files = Vec::new();
        for file in &self.data {
            let content = (site.read)(file).map_err(|why| site.wrong(why))?;
            files.push((file.as_str(), content));
        }
        Tables::parse(&files).map_err(|why| site.wrong(why))
    }
}

impl Traffic for Parameters {
    fn kind(&self) -> &'static crate::Workload {
        &super::WORKLOAD
    }

    fn target(&self) -> WrittenTarget<'_> {
        self.transport.target(&self.url)
    }

    fn contradictions(&self) -> Vec<Contradiction> {
        let mut found = self.schedule.contradictions();
        if self.list().is_some() {
            let own = [
                (
                    self.requests.is_some() && self.har.is_some(),
                    "file of --har",
                ),
                (self.method.is_some(), "method"),
                (self.body.is_some(), "body"),
                (self.url.path != "/", "path of the URL"),
            ];
            for (_, what) in own.iter().filter(|(is_given, _)| *is_given) {
                let why = format!(
                    "the {what} and a list of requests exclude each other: each request of the list has its own; remove one"
                );
                found.push(Contradiction::of(&["requests"], why));
            }
        }
        if self.har_timing && self.har.is_none() {
            let why = "recorded pauses are those of a HAR file; name it with --har, or write \"pause\" in the lines of --requests";
            found.push(Contradiction::of(&["har_timing"], why));
        }
        if self.strict && self.har.is_none() {
            let why = "only a HAR file may contain what cannot be sent; remove strict, or name a file with --har";
            found.push(Contradiction::of(&["strict"], why));
        }
        if self.cookies && self.headers.iter().any(|header| header.is("cookie")) {
            let why = "cookies are kept per connection, and a header sends one too; remove one of the two";
            found.push(Contradiction::of(&["headers", "cookies"], why));
        }
        let expect = self.expect.clone().unwrap_or_default();
        let common = self.common("", &expect);
        // A body in a file is read later.
        let text = self
            .body
            .as_deref()
            .and_then(|body| body.strip_prefix(TEXT));
        let entry = self.entry(text.map(|text| text.as_bytes().to_vec()));
        let wrong = Requests::check(&entry, &common, !self.data.is_empty());
        found.extend(wrong.map(|Wrong { key, why }| Contradiction::of(key, why)));
        found.extend(self.transport.contradictions(&self.url));
        found.extend(
            self.traffic(Requests::default(), Vec::new(), Route::any(), &Site::ANY)
                .contradictions(),
        );
        found
    }

    fn driven(&self) -> Option<&dyn Driven> {
        Some(self)
    }
}

impl Driven for Parameters {
    fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    fn files(&self) -> Vec<&str> {
        let body = self.body.iter().filter(|body| !body.starts_with(TEXT));
        body.chain(&self.data)
            .chain(self.list())
            .map(String::as_str)
            .chain(self.transport.file())
            .collect()
    }

    fn paced(&self, rate: Option<Rate>) -> Box<dyn Driven> {
        let schedule = self.schedule.paced(rate);
        Box::new(Self {
            schedule,
            ..self.clone()
        })
    }

    fn prepare(&self, site: &Site<'_>) -> Result<Box<dyn Load>, Error> {
        let route = self.transport.route(&self.url, site)?;
        let host = self.host(site);
        let expect = self.expect.clone().unwrap_or_default();
        let common = self.common(&host, &expect);
        let tables = self.tables(site)?;
        let mut notes = Vec::new();
        let requests = match self.list() {
            None => Requests::one(&self.entry(self.body(site)?), &common, tables),
            Some(file) => {
                let listed = self.listed(file, site)?;
                notes = listed.reasons();
                Requests::list(&listed.entries, file, &common, tables)
            }
        };
        let requests = requests.map_err(|Wrong { why, .. }| site.wrong(why))?;
        let workload = self.traffic(requests, notes, route, site);
        workload.check()?;
        Ok(Box::new(workload))
    }
}
