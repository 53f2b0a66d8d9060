//! The parameters of HTTP traffic.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Workload;
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
    /// The body of each request: a file, or `text:TEXT`.
    #[arg(long, value_name = "FILE|text:TEXT")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
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
    /// The traffic with this body on this route at `site`.
    fn traffic(&self, body: Option<&[u8]>, route: Route, site: &Site<'_>) -> Workload {
        let plan = self.schedule.plan(site, &Length::ANY);
        let method = match (&self.method, body) {
            (Some(method), _) => &method.0,
            (None, Some(_)) => "POST",
            (None, None) => "GET",
        };
        let connections = self.connections as usize;
        Workload {
            request: self.request(method, body, site),
            words: format!("{method} {}{}", self.url, self.transport),
            to_head: method == "HEAD",
            connections,
            keepalive: !self.no_keepalive,
            expect: self.expect.clone().unwrap_or_default(),
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

    /// The bytes of a request.
    fn request(&self, method: &str, body: Option<&[u8]>, site: &Site<'_>) -> Vec<u8> {
        let is_given = |name: &str| {
            let mut names = self.headers.iter().map(|header| &header.name);
            names.any(|given| given.eq_ignore_ascii_case(name))
        };
        let mut lines = vec![format!("{method} {} HTTP/1.1", self.url.path)];
        if !is_given("host") {
            // `{server}` in a scenario: the service's resolved address.
            let host = if self.url.authority.contains('{') {
                site.target.to_string()
            } else {
                self.url.authority.clone()
            };
            lines.push(format!("Host: {host}"));
        }
        if !is_given("user-agent") {
            lines.push(format!(
                "User-Agent: rungwise/{}",
                env!("CARGO_PKG_VERSION")
            ));
        }
        if !is_given("accept") {
            lines.push("Accept: */*".to_owned());
        }
        lines.extend(self.headers.iter().map(Header::to_string));
        if let Some(body) = body {
            if !is_given("content-type") {
                lines.push(format!("Content-Type: {}", self.media_type()));
            }
            lines.push(format!("Content-Length: {}", body.len()));
        } else if matches!(method, "POST" | "PUT" | "PATCH") {
            // Some servers refuse these without one (RFC 9110, section 8.6).
            lines.push("Content-Length: 0".to_owned());
        }
        if self.no_keepalive {
            lines.push("Connection: close".to_owned());
        }
        let mut request = lines.join("\r\n").into_bytes();
        request.extend(b"\r\n\r\n");
        request.extend(body.unwrap_or_default());
        request
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
        let is_head = self
            .method
            .as_ref()
            .is_some_and(|method| method.0 == "HEAD");
        let wants_body = self
            .expect
            .as_ref()
            .is_some_and(|expect| expect.body.is_some());
        if is_head && wants_body {
            let why = "a response to HEAD has no body to expect a text in; use GET, or expect a status alone";
            found.push(Contradiction::of(&["expect"], why));
        }
        found.extend(self.transport.contradictions(&self.url));
        found.extend(
            self.traffic(None, Route::any(), &Site::ANY)
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
        let body = self.body.as_deref();
        body.filter(|body| !body.starts_with(TEXT))
            .into_iter()
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
        let workload = self.traffic(self.body(site)?.as_deref(), route, site);
        workload.check()?;
        Ok(Box::new(workload))
    }
}
