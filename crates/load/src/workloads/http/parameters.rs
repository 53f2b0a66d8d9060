//! The parameters of HTTP traffic.

use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Workload;
use super::lists::{Entry, Listed, Target, har, jmx, jsonl};
use super::requests::{Common, Requests, Wrong};
use super::transport::Transport;
use super::values::{Expect, Header, Method, Property, Url};
use crate::Error;
use crate::data::Tables;
use crate::parameters::{
    Contradiction, Driven, Length, Load, Schedule, Site, Traffic, WrittenTarget,
};
use crate::stream::transport::Route;
use crate::values::{Rate, nearest};

/// HTTP/1.1 or HTTP/2 requests with one response each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, clap::Args)]
#[schemars(inline)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub struct Parameters {
    /// Where requests go: `http://HOST:PORT/PATH`, or `https://` for TLS; in a scenario an address, also `http://{server}:8080/PATH`. With
    /// --jmx it may be absent: then the server of the plan's first request.
    #[arg(default_value_t = Url::of_plan(), hide_default_value = true)]
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
    /// A test plan of JMeter: its thread groups are the users, and it decides when they begin, what they send, when, and when they end. What is not
    /// supported is listed before the run. Without --for or --count the run ends with the plan.
    #[arg(
        long,
        value_name = "FILE.jmx",
        conflicts_with_all = ["connections", "method", "body", "data", "requests", "har", "cookies", "no_keepalive", "rate", "ramp"]
    )]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jmx: Option<String>,
    /// A property of the plan, which it reads by `${__P(NAME)}`, `NAME=VALUE`; may be repeated.
    #[arg(
        short = 'J',
        long = "jmx-property",
        value_name = "NAME=VALUE",
        requires = "jmx"
    )]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jmx_properties: Vec<Property>,
    /// Keep the recorded pauses between the requests of `--har`; otherwise each follows at once.
    #[arg(long)]
    #[serde(default)]
    pub har_timing: bool,
    /// Refuse a list or plan of which something cannot be sent or done.
    #[arg(long)]
    #[serde(default)]
    pub strict: bool,
    /// Each connection keeps the cookies of its responses and sends them with its next requests, as one user does.
    #[arg(long)]
    #[serde(default)]
    pub cookies: bool,
    /// Connections over all threads, each with one request at a time, or with --http2 with one on each stream.
    #[arg(long, value_name = "N", default_value_t = connections())]
    #[serde(default = "connections")]
    pub connections: u32,
    /// Open a new connection for each request.
    #[arg(long)]
    #[serde(default)]
    pub no_keepalive: bool,
    /// Speak HTTP/2: with https:// as TLS negotiates it (ALPN), with http:// at once (h2c with prior knowledge). A server that does not speak it is an
    /// error.
    #[arg(long)]
    #[serde(default)]
    pub http2: bool,
    /// Requests at the same time on each connection of --http2 [default: 1].
    #[arg(long, value_name = "N")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<u32>,
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
        let users = requests.groups().iter().map(|group| group.users);
        let connections = match self.jmx {
            // None yet, where only the parameters are looked at.
            Some(_) => users.fold(0, usize::saturating_add).max(1),
            None => self.connections as usize,
        };
        Workload {
            words: format!("{}{}", self.words(&requests, &notes), self.transport),
            notes,
            requests: Arc::new(requests),
            seed: 0,
            connections,
            keepalive: !self.no_keepalive,
            is_plan: self.jmx.is_some(),
            http2: self.http2.then(|| self.streams.unwrap_or(1) as usize),
            expect: match (&self.expect, &self.requests, &self.jmx) {
                (None, Some(_), _) => "what the list says".to_owned(),
                (None, _, Some(_)) => "what the plan says".to_owned(),
                (expect, ..) => expect.clone().unwrap_or_default().to_string(),
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
                if self.jmx.is_some() {
                    let groups = requests.groups().len();
                    return format!(
                        "{number} requests in {groups} thread groups of {file}{part} to {}",
                        self.origin()
                    );
                }
                format!("{number} requests of {file}{part} to {}", self.origin())
            }
            None => format!("{} {}", self.method(), self.url),
        }
    }

    /// The file of the list.
    fn list(&self) -> Option<&String> {
        let list = self.requests.as_ref().or(self.har.as_ref());
        list.or(self.jmx.as_ref())
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

    /// A cookie for TLS alone is not sent without it (RFC 6265, section 5.4).
    fn is_secure(&self) -> bool {
        self.url.to_string().starts_with("https://")
    }

    /// Where a list or a plan may send to.
    fn target<'a>(&'a self, origin: &'a str) -> Target<'a> {
        let mut headers = self.headers.iter();
        let host = headers.find(|header| header.is("host"));
        Target {
            origin,
            host: host.map(|header| header.value.as_str()),
        }
    }

    fn common<'a>(&'a self, host: &'a str, expect: &'a Expect) -> Common<'a> {
        let scheme = if self.url.tls { "https" } else { "http" };
        Common {
            host,
            http2: self.http2.then_some(scheme),
            closes: self.no_keepalive,
            headers: &self.headers,
            expect,
            cookies: self.cookies.then(|| self.is_secure()),
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
        let origin = self.origin();
        let target = self.target(&origin);
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

    /// A test plan.
    fn read_plan(
        &self,
        file: &str,
        target: Option<Target<'_>>,
        read: &dyn Fn(&str) -> Result<Vec<u8>, String>,
    ) -> Result<jmx::Plan, String> {
        let properties: Vec<(String, String)> = (self.jmx_properties.iter())
            .map(|Property { name, value }| (name.clone(), value.clone()))
            .collect();
        let plan = jmx::parse(&jmx::Source {
            file,
            bytes: &read(file)?,
            properties: &properties,
            target,
            expects: self.expect.is_some(),
            read,
        })?;
        let asks_for = |name: &String| plan.asks_for.contains(name);
        if let Some((name, _)) = properties.iter().find(|(name, _)| !asks_for(name)) {
            let near = nearest(name, plan.asks_for.iter().map(String::as_str));
            return Err(format!(
                "{file} asks for no property '{name}'{near}; remove it, or write ${{__P({name})}} in the plan"
            ));
        }
        let reasons = plan.listed.reasons().join("; ");
        if plan.listed.entries.is_empty() {
            let why = if reasons.is_empty() {
                "it has no thread group with an HTTP request"
            } else {
                &reasons
            };
            let remedy = if target.is_some() {
                "; requests to another host than the target are sent with --header 'Host: NAME'"
            } else {
                ""
            };
            return Err(format!(
                "{file} contains no request that can be sent: {why}{remedy}"
            ));
        }
        if self.strict && !plan.listed.skipped.is_empty() {
            return Err(format!(
                "not all of {file} can be done: {reasons}; remove --strict to do the rest"
            ));
        }
        Ok(plan)
    }

    /// The same with the server of the plan's first request, where no URL was given; `read` reads a file.
    pub fn with_url_of_plan(
        &self,
        read: &dyn Fn(&str) -> Result<Vec<u8>, String>,
    ) -> Result<Self, String> {
        let Some(file) = self.jmx.as_ref().filter(|_| self.url.is_of_plan()) else {
            return Ok(self.clone());
        };
        let plan = self.read_plan(file, None, read)?;
        let origin = plan.origin.unwrap_or_default();
        let url = origin.parse().map_err(|why| {
            format!("the first request of {file} has no server that can be asked: {why}")
        })?;
        Ok(Self {
            url,
            ..self.clone()
        })
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
                (
                    self.jmx.is_some() && (self.requests.is_some() || self.har.is_some()),
                    "file of --jmx",
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
        if self.strict && self.har.is_none() && self.jmx.is_none() {
            let why = "only a HAR file or a test plan may contain what cannot be sent; remove strict, or name a file with --har or --jmx";
            found.push(Contradiction::of(&["strict"], why));
        }
        if self.url.is_of_plan() && self.jmx.is_none() {
            let why = "there is no URL; write where requests go, as in http://192.0.2.1:8080/path";
            found.push(Contradiction::of(&["url"], why));
        }
        if self.jmx.is_some() {
            let own = [
                (&["rate"], "rate", self.schedule.rate.is_some()),
                (&["ramp"], "ramp", self.schedule.ramp.is_some()),
                (&["data"], "data", !self.data.is_empty()),
                (&["cookies"], "cookies", self.cookies),
                (&["no_keepalive"], "no_keepalive", self.no_keepalive),
                (
                    &["connections"],
                    "connections",
                    self.connections != connections(),
                ),
            ];
            for (key, what, _) in own.iter().filter(|(.., is_given)| *is_given) {
                let why = format!(
                    "a test plan decides on this itself; remove {what}, or change the plan"
                );
                found.push(Contradiction::of(*key, why));
            }
        }
        if self.jmx.is_some() && self.http2 {
            let why = "each user of a test plan has a connection of its own, which HTTP/1.1 carries; remove http2, or jmx";
            found.push(Contradiction::of(&["jmx", "http2"], why));
        }
        if self.streams.is_some() && !self.http2 {
            let why = "HTTP/1.1 carries one request at a time on a connection; add http2, or use more connections instead of streams";
            found.push(Contradiction::of(&["streams"], why));
        }
        if self.http2 && self.no_keepalive {
            let why = "a connection of HTTP/2 carries many requests; remove no_keepalive, or http2";
            found.push(Contradiction::of(&["no_keepalive", "http2"], why));
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
            .chain(self.transport.files())
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
        let route = self.transport.route(&self.url, site, self.http2)?;
        let host = self.host(site);
        let expect = self.expect.clone().unwrap_or_default();
        let mut common = self.common(&host, &expect);
        let tables = self.tables(site)?;
        let mut notes = Vec::new();
        let requests = match (self.list(), &self.jmx) {
            (None, _) => Requests::one(&self.entry(self.body(site)?), &common, tables),
            (_, Some(file)) => {
                let origin = self.origin();
                let plan = self
                    .read_plan(file, Some(self.target(&origin)), site.read)
                    .map_err(|why| site.wrong(why))?;
                notes = plan.listed.reasons();
                notes.extend(plan.notes);
                common.cookies = plan.cookies.then(|| self.is_secure());
                let tables = Tables::of_plan(&plan.data).map_err(|why| site.wrong(why))?;
                Requests::plan(&plan.listed.entries, plan.groups, file, &common, tables)
            }
            (Some(file), None) => {
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
