//! An HTTP request of a plan, with what applies to it: defaults, headers, cookies, assertions.

use std::cell::Cell;

use super::assertion::Expected;
use super::text::{Names, Piece, Reading, Use, template};
use super::tree::{Element, Node};
use super::{Source, as_path};
use crate::workloads::http::lists::{Entry, Target};
use crate::workloads::http::values::{Expect, Header, Method};

/// What lies beside requests at one level of the plan and applies to all of them and to those below.
#[derive(Debug, Default)]
pub(super) struct Level<'p> {
    pub(super) defaults: Vec<&'p Element>,
    pub(super) headers: Vec<&'p Element>,
    pub(super) cookies: Option<&'p Element>,
    pub(super) timers: Vec<&'p Element>,
    pub(super) assertions: Vec<&'p Element>,
    /// Variables of data sets, and how placeholders name them.
    pub(super) columns: Vec<(String, String)>,
}

/// What decides how requests are read.
pub(super) struct Around<'r, 'p> {
    pub(super) source: &'r Source<'r>,
    pub(super) names: &'r Names<'r>,
    /// From the top of the plan to the request itself.
    pub(super) levels: &'r [Level<'p>],
    /// Scheme, host and port of the first request.
    pub(super) origin: Option<&'r str>,
}

/// A request that was read.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) entry: Entry,
    /// Scheme, host and port.
    pub(super) origin: String,
    /// It keeps cookies.
    pub(super) cookies: bool,
    /// JMeter would follow a redirect.
    pub(super) follows: bool,
    /// Header lines that are not sent.
    pub(super) dropped: Vec<String>,
    /// Assertions that are not checked, and why.
    pub(super) unchecked: Vec<(String, String)>,
}

/// Methods whose parameters belong to the query (`HTTPSamplerBase.getUrl`).
const QUERIES: [&str; 3] = ["GET", "DELETE", "OPTIONS"];

impl<'p> Around<'_, 'p> {
    /// Reads texts of an element.
    fn reading<'a>(&'a self, columns: &'a [(String, String)], element: &Element) -> Reading<'a> {
        Reading {
            names: self.names,
            columns,
            element: element.id,
            calls: Cell::new(0),
        }
    }

    fn columns(&self) -> Vec<(String, String)> {
        let levels = self.levels.iter();
        levels
            .flat_map(|level| level.columns.iter().cloned())
            .collect()
    }

    /// Defaults for requests, the nearest first.
    fn defaults(&self) -> impl Iterator<Item = &'p Element> {
        let levels = self.levels.iter().rev();
        levels.flat_map(|level| level.defaults.iter().copied())
    }

    /// Where a property of a request is written: there, or in the nearest defaults that have it.
    fn written(&self, sampler: &'p Element, key: &str) -> &'p Element {
        let mut places = std::iter::once(sampler).chain(self.defaults());
        places
            .find(|place| !place.text(key).is_empty())
            .unwrap_or(sampler)
    }

    /// Reads a request; or why it is not sent.
    pub(super) fn request(&self, sampler: &'p Element) -> Result<Request, String> {
        let columns = self.columns();
        let fixed = |key: &str| {
            let place = self.written(sampler, key);
            let text = self.reading(&columns, place).fixed(place.text(key))?;
            Ok::<String, String>(text.trim().to_owned())
        };
        let method = match fixed("HTTPSampler.method")? {
            empty if empty.is_empty() => "GET".to_owned(),
            method => method.parse::<Method>()?.0,
        };
        let encoding = fixed("HTTPSampler.contentEncoding")?;
        if !["", "utf-8", "utf8"].contains(&&*encoding.to_ascii_lowercase()) {
            return Err(format!(
                "its content encoding is {}, and not UTF-8",
                super::shortened(&encoding)
            ));
        }
        let own = self.reading(&columns, sampler);
        let (origin, mut path) = self.address(sampler, &columns, &own, &fixed)?;
        let target = match self.source.target {
            Some(target) => target,
            None => Target {
                origin: self.origin.unwrap_or(&origin),
                host: None,
            },
        };
        target.path_of(&origin)?;

        let is_raw = sampler.is("HTTPSampler.postBodyRaw");
        let arguments = self.arguments(sampler);
        // Without a name each, they are the body.
        let mut names = arguments.iter().map(|node| node.text("Argument.name"));
        let is_raw = is_raw || names.all(str::is_empty);
        let is_query = QUERIES.contains(&&*method);
        let mut body = None;
        if is_raw {
            let mut text = String::new();
            for argument in &arguments {
                text.push_str(&own.template(argument.text("Argument.value"), coding(argument))?);
            }
            // A query leaves out what has no name, and HEAD sends nothing.
            if !text.is_empty() && (!is_query || sampler.is("HTTPSampler.postBodyRaw")) {
                body = Some((text.into_bytes(), "text/plain; charset=UTF-8"));
            }
        } else if method != "HEAD" {
            let pairs = |in_body| pairs(&arguments, &own, in_body);
            if is_query {
                path.push(if path.contains('?') { '&' } else { '?' });
                path.push_str(&pairs(false)?);
            }
            // JMeter sends the parameters of DELETE twice (`HTTPHC4Impl`).
            if !is_query || method == "DELETE" {
                let media_type = "application/x-www-form-urlencoded; charset=UTF-8";
                body = Some((pairs(true)?.into_bytes(), media_type));
            }
        }
        refuse_files(sampler, is_query)?;
        // What is left is what no URL can hold, such as a line break in a parameter's separator.
        as_path(&path)?;

        let has_cookies = self.levels.iter().any(|level| level.cookies.is_some());
        let (mut expected, unchecked) = self.expected(&columns);
        let (headers, dropped, closes) =
            self.headers(&columns, has_cookies, !expected.texts.is_empty())?;
        let follows = ["follow", "auto"]
            .iter()
            .any(|how| sampler.is(&format!("HTTPSampler.{how}_redirects")));
        // A status where JMeter goes on to another request is no answer, unless the command line says so.
        let follows_unseen = follows && !self.source.expects;
        if follows_unseen && !expected.is_status_given {
            (expected.status, expected.is_status_given) = ((200, 299), true);
        }
        let entry = Entry {
            name: Some(
                own.fixed(&sampler.name)
                    .unwrap_or_else(|_| sampler.name.clone()),
            ),
            method,
            path,
            headers,
            body,
            expect: expected.is_status_given.then_some(Expect {
                status: expected.status,
                body: None,
            }),
            texts: expected.texts,
            no_cookies: !has_cookies,
            closes: closes || sampler.text("HTTPSampler.use_keepalive") == "false",
            ..Entry::default()
        };
        Ok(Request {
            entry,
            origin,
            cookies: has_cookies,
            follows: follows_unseen,
            dropped,
            unchecked,
        })
    }

    /// Scheme, host and port of a request, and its path with placeholders.
    fn address(
        &self,
        sampler: &'p Element,
        columns: &[(String, String)],
        own: &Reading<'_>,
        fixed: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<(String, String), String> {
        let place = self.written(sampler, "HTTPSampler.path");
        let path = place.text("HTTPSampler.path").trim();
        let mut pieces = if place.id == sampler.id {
            own.pieces(path)
        } else {
            self.reading(columns, place).pieces(path)
        }?;
        // What follows a `#` stays with the client.
        let is_cut = |piece: &Piece| matches!(piece, Piece::Text(text) if text.contains('#'));
        if let Some(at) = pieces.iter().position(is_cut) {
            pieces.truncate(at + 1);
            if let Some(Piece::Text(text)) = pieces.last_mut() {
                text.truncate(text.find('#').unwrap_or(text.len()));
            }
        }
        let mut origin = None;
        let is_alone = pieces.len() == 1;
        if let Some(Piece::Text(first)) = pieces.first_mut()
            && (first.starts_with("http://") || first.starts_with("https://"))
        {
            let host = first.find("://").map_or(0, |at| at + 3);
            let end = first[host..].find(['/', '?']).map(|at| host + at);
            if end.is_none() && !is_alone {
                return Err("its host changes during the run".to_owned());
            }
            let rest = first.split_off(end.unwrap_or(first.len()));
            origin = Some(std::mem::replace(first, rest));
        }
        let origin = origin.map_or_else(|| server(fixed), Ok)?;
        let path = template(&pieces, Use::Url);
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok((origin, format!("{slash}{path}")))
    }

    /// Parameters of a request and of the defaults that apply to it.
    fn arguments(&self, sampler: &'p Element) -> Vec<&'p Node> {
        let places = std::iter::once(sampler).chain(self.defaults());
        let all =
            places.flat_map(|place| place.items("HTTPsampler.Arguments", "Arguments.arguments"));
        all.filter(|node| node.text("Argument.enabled") != "false")
            .collect()
    }

    /// Header lines, the names of those that are left out, and whether the connection is to end.
    fn headers(
        &self,
        columns: &[(String, String)],
        has_cookies: bool,
        has_texts: bool,
    ) -> Result<(Vec<Header>, Vec<String>, bool), String> {
        let (mut headers, mut dropped, mut closes) = (Vec::<Header>::new(), Vec::new(), false);
        let levels = self.levels.iter().rev();
        let mut seen: Vec<String> = Vec::new();
        for manager in levels.flat_map(|level| level.headers.iter().copied()) {
            let reading = self.reading(columns, manager);
            let mut of_manager = Vec::new();
            for header in manager.items("", "HeaderManager.headers") {
                let name = reading.fixed(header.text("Header.name"))?.trim().to_owned();
                let value = reading.template(header.text("Header.value"), Use::Plain)?;
                let lower = name.to_ascii_lowercase();
                // The nearest manager decides on a name.
                if name.is_empty() || seen.contains(&lower) {
                    continue;
                }
                of_manager.push(lower.clone());
                match &*lower {
                    "connection" => closes |= value.trim().eq_ignore_ascii_case("close"),
                    "content-length" | "transfer-encoding" | "expect" => {}
                    "cookie" if has_cookies => {}
                    // Texts are looked for in bodies as they come.
                    "accept-encoding" if has_texts => {}
                    _ => {
                        headers.push(format!("{name}: {value}").parse()?);
                        continue;
                    }
                }
                dropped.push(name);
            }
            seen.extend(of_manager);
        }
        Ok((headers, dropped, closes))
    }

    /// What assertions expect, and those that are not checked.
    fn expected(&self, columns: &[(String, String)]) -> (Expected, Vec<(String, String)>) {
        let mut expected = Expected {
            status: (200, 399),
            is_status_given: false,
            texts: Vec::new(),
        };
        let mut unchecked = Vec::new();
        let levels = self.levels.iter();
        for assertion in levels.flat_map(|level| level.assertions.iter().copied()) {
            let reading = self.reading(columns, assertion);
            if let Err(why) = expected.add(assertion, &reading) {
                unchecked.push((assertion.title(), why));
            }
        }
        (expected, unchecked)
    }
}

/// Scheme, host and port as the request or its defaults have them.
fn server(fixed: &dyn Fn(&str) -> Result<String, String>) -> Result<String, String> {
    let domain = fixed("HTTPSampler.domain")?;
    let protocol = match fixed("HTTPSampler.protocol")?.to_ascii_lowercase() {
        empty if empty.is_empty() => "http".to_owned(),
        protocol => protocol,
    };
    if protocol != "http" && protocol != "https" {
        return Err(format!("its protocol is {}", super::shortened(&protocol)));
    }
    if domain.is_empty() {
        return Err("no server name; a property (-J) may be missing".to_owned());
    }
    let domain = if domain.contains(':') && !domain.starts_with('[') {
        format!("[{domain}]")
    } else {
        domain
    };
    Ok(match fixed("HTTPSampler.port")? {
        port if port.is_empty() || port == "0" => format!("{protocol}://{domain}"),
        port => format!("{protocol}://{domain}:{port}"),
    })
}

/// Files and bodies in parts are not sent.
fn refuse_files(sampler: &Element, is_query: bool) -> Result<(), String> {
    let files = sampler.items("HTTPsampler.Files", "HTTPFileArgs.files");
    let mut paths = files.iter().map(|file| file.text("File.path"));
    let has_file =
        paths.any(|path| !path.is_empty()) || !sampler.text("HTTPSampler.FILE_NAME").is_empty();
    if has_file {
        return Err("it sends a file".to_owned());
    }
    if sampler.is("HTTPSampler.DO_MULTIPART_POST") && !is_query {
        return Err("its body is multipart/form-data".to_owned());
    }
    Ok(())
}

/// Parameters as a query or a body.
fn pairs(arguments: &[&Node], own: &Reading<'_>, in_body: bool) -> Result<String, String> {
    let mut all = String::new();
    for argument in arguments {
        let name = argument.text("Argument.name");
        if name.is_empty() {
            continue;
        }
        let used = match coding(argument) {
            Use::Plain if in_body => Use::Decoded,
            Use::Plain => Use::Url,
            used => used,
        };
        if !all.is_empty() {
            all.push('&');
        }
        all.push_str(&own.template(name, used)?);
        // A body has always a sign of equality.
        all.push_str(match argument.text("Argument.metadata") {
            between if argument.has("Argument.metadata") && !in_body => between,
            _ => "=",
        });
        all.push_str(&own.template(argument.text("Argument.value"), used)?);
    }
    Ok(all)
}

/// How a parameter is written: encoded, or as it is, because it is already.
fn coding(argument: &Node) -> Use {
    if argument.text("HTTPArgument.always_encode") == "true" {
        Use::Form
    } else {
        Use::Plain
    }
}
