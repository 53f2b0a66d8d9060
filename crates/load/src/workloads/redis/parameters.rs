//! The parameters of commands to redis.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::command::{Command, array};
use super::{Commands, Redis};
use crate::Error;
use crate::parameters::{Contradiction, Driven, Load, Schedule, Site, Traffic, WrittenTarget};
use crate::stream::texts::Texts;
use crate::stream::transport::{Connections, written};
use crate::stream::{self, Workload};
use crate::values::Rate;

/// Begins a password that is in a file.
const FILE: &str = "file:";
/// Longest name of a command in a report, characters.
const LONGEST_NAME: usize = 60;

/// Commands to redis with one reply each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, clap::Args)]
#[schemars(inline)]
pub struct Parameters {
    /// The server: `HOST:PORT`, or `unix:PATH`; in a scenario an address, or `{server}:6379`.
    pub target: String,
    /// A command as for redis-cli, such as `SET key:${random:1..100000} ${bytes:100B}`, with placeholders as in the bodies of `load http`; may be
    /// repeated.
    #[arg(long = "command", value_name = "COMMAND", default_values_t = commands())]
    #[serde(default = "commands")]
    pub commands: Vec<String>,
    /// How often each of several commands is sent, as in `9,1` [default: all alike].
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<u32>,
    /// Speak RESP3 (redis 6 and later; `HELLO 3`).
    #[arg(long)]
    #[serde(default)]
    pub resp3: bool,
    /// The user of `--password` [default: the server's default user].
    #[arg(long, value_name = "NAME")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The password with which each connection begins (AUTH), or `file:PATH` of a file that contains it.
    #[arg(long, value_name = "PASSWORD")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// The database that each connection selects [default: 0].
    #[arg(long, value_name = "N")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub db: Option<u32>,
    /// A CSV file whose columns `${csv:NAME}` takes; its first line names them. Rows are dealt in order over all connections, again and
    /// again; may be repeated.
    #[arg(long, value_name = "FILE.csv")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<String>,
    /// When commands are sent, by how many threads, and the timeout.
    #[command(flatten)]
    #[serde(flatten)]
    pub schedule: Schedule,
    /// How connections are made.
    #[command(flatten)]
    #[serde(flatten)]
    pub connections: Connections,
}

fn commands() -> Vec<String> {
    vec!["PING".to_owned()]
}

/// Why a command cannot be sent, and the parameter that says so.
type Wrong = (&'static [&'static str], String);

impl Parameters {
    /// The protocol, with the files that it needs from `read`.
    fn protocol(&self, read: &dyn Fn(&str) -> Result<Vec<u8>, String>) -> Result<Redis, Wrong> {
        let texts = Texts::read(&self.data, read).map_err(|why| (&["data"][..], why))?;
        let list = self
            .commands
            .iter()
            .map(|text| Command::parse(text, &texts));
        let list: Vec<Command> = list
            .collect::<Result<_, _>>()
            .map_err(|why| (&["commands"][..], why))?;
        if list.is_empty() {
            return Err((
                &["commands"],
                "there is no command; write one, as in PING".to_owned(),
            ));
        }
        let weights = self.weights(list.len())?;
        let several = list.len() > 1;
        let names = self.commands.iter().filter(|_| several);
        let words = match &self.commands[..] {
            [one] => format!("'{}'", shortened(one)),
            several => format!("{} commands at random", several.len()),
        };
        let all = Arc::new(Commands {
            list,
            weights,
            names: names.map(|name| shortened(name)).collect(),
            words,
            is_resp3: self.resp3,
            hello: self.hello(read)?,
        });
        Ok(Redis { texts, all })
    }

    /// The weight of each command with those before it.
    fn weights(&self, commands: usize) -> Result<Vec<u64>, Wrong> {
        let key: &'static [&'static str] = &["weights"];
        let alike = vec![1; commands];
        let weights = if self.weights.is_empty() {
            &alike
        } else {
            &self.weights
        };
        if weights.len() != commands {
            let why = format!(
                "there are {} weights for {commands} commands; give one for each, in their order",
                weights.len()
            );
            return Err((key, why));
        }
        if let Some(at) = weights.iter().position(|weight| *weight == 0) {
            let why = format!(
                "command {} has weight 0 and is never sent; remove it",
                at + 1
            );
            return Err((key, why));
        }
        let mut sum = 0;
        let summed = weights.iter().map(|weight| {
            sum += u64::from(*weight);
            sum
        });
        Ok(summed.collect())
    }

    /// What a connection begins with, and how many replies that gets.
    fn hello(
        &self,
        read: &dyn Fn(&str) -> Result<Vec<u8>, String>,
    ) -> Result<(Vec<u8>, usize), Wrong> {
        let (mut bytes, mut replies) = (Vec::new(), 0);
        let mut say = |words: &[&str]| {
            array(words, &mut bytes);
            replies += 1;
        };
        let password = self.password(read)?;
        let user = self.user.as_deref();
        match (&password, self.resp3) {
            (Some(password), true) => {
                say(&["HELLO", "3", "AUTH", user.unwrap_or("default"), password]);
            }
            (None, true) => say(&["HELLO", "3"]),
            (Some(password), false) => match user {
                Some(user) => say(&["AUTH", user, password]),
                None => say(&["AUTH", password]),
            },
            (None, false) => {}
        }
        if let Some(db) = self.db {
            say(&["SELECT", &db.to_string()]);
        }
        Ok((bytes, replies))
    }

    fn password(
        &self,
        read: &dyn Fn(&str) -> Result<Vec<u8>, String>,
    ) -> Result<Option<String>, Wrong> {
        let wrong = |why: String| -> Wrong { (&["password"], why) };
        let Some(password) = &self.password else {
            return Ok(None);
        };
        let Some(file) = password.strip_prefix(FILE) else {
            return Ok(Some(password.clone()));
        };
        let text = read(file).map_err(wrong)?;
        let text = String::from_utf8(text)
            .map_err(|_| wrong(format!("the password in {file} is not UTF-8 text")))?;
        Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
    }
}

/// A command as a report names it.
fn shortened(text: &str) -> String {
    if text.chars().count() <= LONGEST_NAME {
        return text.to_owned();
    }
    let begin: String = text.chars().take(LONGEST_NAME - 1).collect();
    format!("{begin}…")
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
        if self.user.is_some() && self.password.is_none() {
            let why = "user has no effect without a password; add password, or remove it";
            found.push(Contradiction::of(&["user"], why));
        }
        // What a file contains is not known yet.
        let is_known = self.data.is_empty();
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
        let password = self.password.as_deref();
        let password = password.and_then(|text| text.strip_prefix(FILE));
        (self.data.iter().map(String::as_str))
            .chain(password)
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
