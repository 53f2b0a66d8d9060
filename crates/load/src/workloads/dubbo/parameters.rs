//! The parameters of calls of a Dubbo service.

use std::sync::Arc;

use rungwise_dubbo::{Call, HEADER_LEN, JavaType, Template, arguments, descriptor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::values::{Arguments, Attachment, Types};
use super::{Calls, Shape};
use crate::Error;
use crate::parameters::{Contradiction, Driven, Load, Schedule, Site, Traffic, WrittenTarget};
use crate::stream::transport::{Connections, written};
use crate::stream::{self, Workload};
use crate::template::letters;
use crate::values::{Rate, Size};

/// The body limit of a provider and a consumer that set no `payload`.
const PAYLOAD: Size = Size(rungwise_dubbo::DEFAULT_BODY_LIMIT as usize);
/// Largest body: the engine keeps no longer reply until it is whole.
const LARGEST: usize = 64 << 20;
/// The version of a service that has none.
const NO_VERSION: &str = "0.0.0";

/// Calls of one method of a Dubbo service, with one reply each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, clap::Args)]
#[schemars(inline)]
pub struct Parameters {
    /// The provider: `HOST:PORT`; in a scenario an address, or `{server}:20880`.
    pub target: String,
    /// The service, by the name of its interface or its path: `demo.HelloService`.
    #[arg(long, value_name = "NAME")]
    pub service: String,
    /// The method that is called.
    #[arg(long, value_name = "NAME")]
    pub method: String,
    /// Its arguments, a JSON array such as `["a", 1]`; strings need no --types.
    #[arg(long, value_name = "JSON")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Arguments>,
    /// The Java types of its parameters, such as `java.lang.String,int` [default: as many `java.lang.String` as there are arguments].
    #[arg(long, value_name = "TYPE,...")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub types: Option<Types>,
    /// Call it with one string of so many letters, in place of --args.
    #[arg(long, value_name = "SIZE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arg_string_size: Option<Size>,
    /// Version of the service [default: a service without one].
    #[arg(long, value_name = "VERSION")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Group of the service [default: a service without one].
    #[arg(long, value_name = "NAME")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// An attachment of each call, beside those that a Java consumer sends; may be repeated.
    #[arg(long = "attachment", value_name = "NAME=VALUE")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Version of Dubbo that is announced: with 2.0.2 and later, replies may have attachments.
    #[arg(long, value_name = "VERSION", default_value_t = dubbo_version())]
    #[serde(default = "dubbo_version")]
    pub dubbo_version: String,
    /// Longest body of a request and of a reply, as `payload` of a Java consumer. The provider has a limit of its own.
    #[arg(long, value_name = "SIZE", default_value_t = PAYLOAD)]
    #[serde(default = "payload")]
    pub payload: Size,
    /// When calls are sent, by how many threads, and the timeout.
    #[command(flatten)]
    #[serde(flatten)]
    pub schedule: Schedule,
    /// How connections are made.
    #[command(flatten)]
    #[serde(flatten)]
    pub connections: Connections,
}

fn dubbo_version() -> String {
    "2.0.2".to_owned()
}

fn payload() -> Size {
    PAYLOAD
}

/// Why a call cannot be made, and the parameter that says so.
type Wrong = (&'static [&'static str], String);

impl Parameters {
    fn calls(&self) -> Result<Calls, Wrong> {
        for (key, text, what) in [
            (&["service"], &self.service, "service"),
            (&["method"], &self.method, "method"),
        ] {
            if text.is_empty() {
                return Err((key, format!("the name of the {what} is empty")));
            }
        }
        if !is_version(&self.dubbo_version) {
            let why = format!(
                "'{}' is no version of Dubbo; write it as 2.0.2",
                self.dubbo_version.escape_debug()
            );
            return Err((&["dubbo_version"], why));
        }
        let Size(payload) = self.payload;
        if !(1..=LARGEST).contains(&payload) {
            let why = format!("payload is {payload} bytes; it must be 1 byte to 64 MiB");
            return Err((&["payload"], why));
        }
        let (types, json) = self.arguments()?;
        let words = format!("{}.{}({})", self.service, self.method, Types(types.clone()));
        let call = self.call(&types, &json)?;
        let body = call.encode();
        if body.len() > payload {
            let why = format!(
                "the body of a request has {} bytes, more than the {payload} of payload, as which a provider's limit is set too; raise both, or send less",
                body.len()
            );
            return Err((&["payload", "arg_string_size", "args"], why));
        }
        let request = Template::of_body(&body, true);
        let request = request.map_err(|error| (&["args"][..], error.to_string()))?;
        let bytes = HEADER_LEN + body.len();
        let shape = Arc::new(Shape {
            request,
            payload: u32::try_from(payload).unwrap_or(u32::MAX),
            words: format!("{bytes}-byte calls of {words}"),
        });
        Ok(Calls { shape })
    }

    /// Parameter types and arguments.
    fn arguments(&self) -> Result<(Vec<JavaType>, Vec<Json>), Wrong> {
        let json = match (&self.args, self.arg_string_size) {
            (Some(_), Some(_)) => {
                let why = "args and arg_string_size exclude each other; remove one";
                return Err((&["arg_string_size", "args"], why.to_owned()));
            }
            (Some(Arguments(json)), None) => json.clone(),
            (None, Some(Size(size))) if size > LARGEST => {
                let why =
                    format!("a string of {size} bytes is too long; a body has 64 MiB at most");
                return Err((&["arg_string_size"], why));
            }
            (None, Some(Size(size))) => {
                let text = String::from_utf8_lossy(&letters(size)).into_owned();
                vec![Json::String(text)]
            }
            (None, None) => Vec::new(),
        };
        if let Some(Types(types)) = &self.types {
            return Ok((types.clone(), json));
        }
        let mut types = Vec::with_capacity(json.len());
        for (at, value) in json.iter().enumerate() {
            if !value.is_string() {
                let why = format!(
                    "the Java type of argument {} is unknown, since only strings have one of their own; give those of all parameters with types, such as java.lang.String,int",
                    at + 1
                );
                return Err((&["types", "args"], why));
            }
            types.push(JavaType::Class {
                name: "java.lang.String".to_owned(),
                of: Vec::new(),
            });
        }
        Ok((types, json))
    }

    fn call(&self, types: &[JavaType], json: &[Json]) -> Result<Call, Wrong> {
        let mut call = Call::new(&self.service, &self.method);
        call.dubbo_version.clone_from(&self.dubbo_version);
        call.descriptor = descriptor(types);
        let keys: &'static [&'static str] = &["args", "types"];
        call.arguments = arguments(types, json).map_err(|error| (keys, error.to_string()))?;
        let version = self.version.as_deref().unwrap_or(NO_VERSION);
        version.clone_into(&mut call.service_version);
        // Those that a Java consumer sends, in its order.
        let timeout = self.schedule.timeout.0.as_millis().to_string();
        for (name, value) in [
            ("path", Some(self.service.as_str())),
            ("interface", Some(&self.service)),
            ("version", Some(version)),
            ("group", self.group.as_deref()),
            ("timeout", Some(&timeout)),
        ] {
            let is_given = |one: &Attachment| one.name == name;
            if let Some(value) = value
                && !self.attachments.iter().any(is_given)
            {
                call.attach(name, value);
            }
        }
        for Attachment { name, value } in &self.attachments {
            call.attach(name, value);
        }
        Ok(call)
    }
}

/// Numbers with dots between them.
fn is_version(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.len() <= 32 && text.split('.').all(is_number)
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
        if let Err((keys, why)) = self.calls() {
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
        self.connections.certificates.files().collect()
    }

    fn paced(&self, rate: Option<Rate>) -> Box<dyn Driven> {
        let schedule = self.schedule.paced(rate);
        Box::new(Self {
            schedule,
            ..self.clone()
        })
    }

    fn prepare(&self, site: &Site<'_>) -> Result<Box<dyn Load>, Error> {
        let calls = self.calls().map_err(|(_, why)| site.wrong(why))?;
        let made = (&self.schedule, &self.connections);
        let workload = Workload::new(calls, &self.target, made, site)?;
        Ok(Box::new(workload))
    }
}
