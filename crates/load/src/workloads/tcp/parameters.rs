//! The parameters of requests over TCP.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::frames::{Expected, Framing, Prefix};
use super::values::{Content, Delimiter, Frames};
use super::{Framed, Shape};
use crate::Error;
use crate::parameters::{Contradiction, Driven, Load, Schedule, Site, Traffic, WrittenTarget};
use crate::stream::texts::{Needs, Texts};
use crate::stream::transport::{Connections, written};
use crate::stream::{self, Workload};
use crate::template::{Template, letters};
use crate::values::{Rate, Size};

/// Largest request, bytes.
const LARGEST: usize = 1 << 30;

/// Requests over TCP with one reply each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, clap::Args)]
#[schemars(inline)]
pub struct Parameters {
    /// The server: `HOST:PORT`, or `unix:PATH`; in a scenario an address, or `{server}:9000`.
    pub target: String,
    /// What is sent, without prefix and delimiter: a size (letters), `text:TEXT` with placeholders such as `${counter}` or `${random:1..100}`,
    /// `hex:DIGITS`, or `file:PATH`.
    #[arg(long, value_name = "CONTENT", default_value_t = request())]
    #[serde(default = "request")]
    pub request: Content,
    /// What must come back: a size, or the very bytes as `text:TEXT`, `hex:DIGITS` or `file:PATH`; any other reply is an error [default: with fixed
    /// frames the size of the request, otherwise anything].
    #[arg(long, value_name = "CONTENT")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<Content>,
    /// Where a message ends: `fixed` (after the bytes of --reply), `length-prefixed`, or `delimited`.
    #[arg(long, value_name = "KIND", default_value_t)]
    #[serde(default)]
    pub frames: Frames,
    /// Bytes of a length prefix: 1, 2, 4 or 8 [default: 4].
    #[arg(long, value_name = "N")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix_bytes: Option<u32>,
    /// The least significant byte of a length prefix comes first.
    #[arg(long)]
    #[serde(default)]
    pub prefix_little_endian: bool,
    /// A length prefix counts its own bytes too.
    #[arg(long)]
    #[serde(default)]
    pub prefix_counts_itself: bool,
    /// What ends delimited messages, such as `\r\n`, `\0` or `\x1e` [default: \n].
    #[arg(long, value_name = "BYTES")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<Delimiter>,
    /// A CSV file whose columns `${csv:NAME}` takes; its first line names them. Rows are dealt in order over all connections, again and
    /// again; may be repeated.
    #[arg(long, value_name = "FILE.csv")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<String>,
    /// When requests are sent, by how many threads, and the timeout.
    #[command(flatten)]
    #[serde(flatten)]
    pub schedule: Schedule,
    /// How connections are made.
    #[command(flatten)]
    #[serde(flatten)]
    pub connections: Connections,
}

fn request() -> Content {
    Content::Size(Size(100))
}

/// Why a message cannot be sent or expected, and the parameter that says so.
type Wrong = (&'static [&'static str], String);

impl Parameters {
    /// The protocol, with the files that it needs from `read`.
    fn protocol(&self, read: &dyn Fn(&str) -> Result<Vec<u8>, String>) -> Result<Framed, Wrong> {
        let texts = Texts::read(&self.data, read).map_err(|why| (&["data"][..], why))?;
        let request = self.template(&texts, read)?;
        let reply = match &self.reply {
            Some(reply) => Some(content(reply, read).map_err(|why| (&["reply"][..], why))?),
            None => None,
        };
        let constant = request.constant();
        let framing = self.framing(reply.as_ref(), constant)?;
        if let Some(why) = constant.and_then(|bytes| framing.misfit(bytes)) {
            return Err((&["request", "prefix_bytes", "delimiter"], why));
        }
        let words = match (&self.request, constant) {
            (_, Some(bytes)) => format!("{}-byte requests", bytes.len()),
            _ => "requests from a text with placeholders".to_owned(),
        };
        let shape = Arc::new(Shape {
            framing,
            needs: Needs::of([&request]),
            request,
            expected: reply.unwrap_or_default(),
            words,
        });
        Ok(Framed { texts, shape })
    }

    fn template(
        &self,
        texts: &Texts,
        read: &dyn Fn(&str) -> Result<Vec<u8>, String>,
    ) -> Result<Template, Wrong> {
        let key: &'static [&'static str] = &["request"];
        let template = match &self.request {
            Content::Text(text) => texts.parse(text).map_err(|why| (key, why))?,
            other => {
                let mut template = Template::default();
                template.text(&bytes(other, read).map_err(|why| (key, why))?);
                template
            }
        };
        if template.constant().is_some_and(<[u8]>::is_empty) {
            return Err((
                key,
                "the request is empty; it must have 1 byte at least".to_owned(),
            ));
        }
        Ok(template)
    }

    fn framing(&self, reply: Option<&Expected>, request: Option<&[u8]>) -> Result<Framing, Wrong> {
        match self.frames {
            Frames::Fixed => {
                let length = match (reply, request) {
                    (Some(Expected::Length(length)), _) => *length,
                    (Some(Expected::Bytes(bytes)), _) => bytes.len() as u64,
                    (_, Some(request)) => request.len() as u64,
                    _ => {
                        let why = "the length of a reply is unknown: requests differ; give its size with reply, or another kind of frames";
                        return Err((&["reply"], why.to_owned()));
                    }
                };
                if length == 0 {
                    let why = "a fixed reply has no bytes; it must have 1 at least";
                    return Err((&["reply"], why.to_owned()));
                }
                Ok(Framing::Fixed(length))
            }
            Frames::LengthPrefixed => Ok(Framing::Prefixed(Prefix {
                bytes: match self.prefix_bytes.unwrap_or(4) {
                    bytes @ (1 | 2 | 4 | 8) => bytes as usize,
                    bytes => {
                        let why =
                            format!("a length prefix has {bytes} bytes; it must have 1, 2, 4 or 8");
                        return Err((&["prefix_bytes"], why));
                    }
                },
                is_little_endian: self.prefix_little_endian,
                counts_itself: self.prefix_counts_itself,
            })),
            Frames::Delimited => {
                let delimiter = self.delimiter.as_ref();
                let newline = || b"\n".to_vec();
                Ok(Framing::Delimited(
                    delimiter.map_or_else(newline, |Delimiter(bytes)| bytes.clone()),
                ))
            }
        }
    }
}

/// The bytes of a message.
fn bytes(
    content: &Content,
    read: &dyn Fn(&str) -> Result<Vec<u8>, String>,
) -> Result<Vec<u8>, String> {
    match content {
        Content::Size(Size(size)) if *size > LARGEST => Err(format!(
            "{size} bytes are too many; a message has 1 GiB at most"
        )),
        Content::Size(Size(size)) => Ok(letters(*size)),
        Content::Text(text) => Ok(text.as_bytes().to_vec()),
        Content::Hex(bytes) => Ok(bytes.clone()),
        Content::File(file) => read(file),
    }
}

/// What a reply must be.
fn content(
    reply: &Content,
    read: &dyn Fn(&str) -> Result<Vec<u8>, String>,
) -> Result<Expected, String> {
    match reply {
        Content::Size(Size(size)) => Ok(Expected::Length(*size as u64)),
        other => bytes(other, read).map(Expected::Bytes),
    }
}

impl Traffic for Parameters {
    fn kind(&self) -> &'static crate::Workload {
        &super::WORKLOAD
    }

    fn target(&self) -> WrittenTarget<'_> {
        written(&self.target)
    }

    fn contradictions(&self) -> Vec<Contradiction> {
        let mut found = stream::contradictions(&self.schedule, &self.connections, &self.target);
        let is = |frames| self.frames == frames;
        for (key, is_given, fits) in [
            (
                &["prefix_bytes"],
                self.prefix_bytes.is_some(),
                is(Frames::LengthPrefixed),
            ),
            (
                &["prefix_little_endian"],
                self.prefix_little_endian,
                is(Frames::LengthPrefixed),
            ),
            (
                &["prefix_counts_itself"],
                self.prefix_counts_itself,
                is(Frames::LengthPrefixed),
            ),
            (
                &["delimiter"],
                self.delimiter.is_some(),
                is(Frames::Delimited),
            ),
        ] {
            if is_given && !fits {
                let why = format!(
                    "{} has no effect with {} frames; choose the frames that have it, or remove it",
                    key[0], self.frames
                );
                found.push(Contradiction::of(key, why));
            }
        }
        // What a file contains is not known yet.
        let is_known = self.files().is_empty();
        if is_known && let Err((keys, why)) = self.protocol(&|_| Ok(Vec::new())) {
            found.push(Contradiction::of(keys, why));
        }
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
        let contents = [Some(&self.request), self.reply.as_ref()];
        let contents = contents.into_iter().flatten();
        let own = contents.filter_map(|content| match content {
            Content::File(file) => Some(file),
            _ => None,
        });
        own.chain(&self.data)
            .map(String::as_str)
            .chain(self.connections.certificates.files())
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
        let protocol = self.protocol(site.read);
        let protocol = protocol.map_err(|(_, why)| site.wrong(why))?;
        let made = (&self.schedule, &self.connections);
        let workload = Workload::new(protocol, &self.target, made, site)?;
        Ok(Box::new(workload))
    }
}
