//! How connections are made, as users write it: how many, over which socket, by which TLS, and whose certificates are accepted.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use rustls::pki_types::ServerName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use socket2::SockAddr;

use super::identity::Identity;
use super::tls::{self, Carried, Tls, Trust};
use crate::Error;
use crate::parameters::{Contradiction, Site, Target, WrittenTarget};
use crate::values::as_text;

/// Longest path of a Unix socket, bytes: `sun_path` of unix(7) without the zero at its end.
const LONGEST_PATH: usize = 107;
/// Begins a target that is a Unix socket.
const UNIX: &str = "unix:";

/// Whose certificates are accepted, and the client's own. Flattened into other parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Certificates {
    /// Trust the CA certificates of this file (PEM) instead of those of the system.
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cacert: Option<String>,
    /// Send the certificate of this file (PEM) to a server that asks for one; certificates of CAs between it and the server's CA follow it.
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert: Option<String>,
    /// The private key of `--cert` (PEM, not encrypted) [default: in the file of the certificate].
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Accept any certificate of the server.
    #[arg(long)]
    #[serde(default)]
    pub insecure: bool,
}

/// The connections of a load of requests and replies on streams. Flattened into the parameters of a kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, clap::Args)]
#[command(next_help_heading = "Connections")]
pub struct Connections {
    /// Connections over all threads.
    #[arg(long, value_name = "N", default_value_t = connections(), value_parser = number_of_connections)]
    #[serde(default = "connections")]
    pub connections: u32,
    /// Requests under way on each connection at most, sent without waiting for the replies to those before (pipelining); in a closed loop,
    /// always as many.
    #[arg(long, visible_alias = "pipeline", value_name = "N", default_value_t = depth())]
    #[serde(default = "depth", alias = "pipeline")]
    pub depth: u32,
    /// Let the kernel hold back small requests until earlier bytes are acknowledged (Nagle's algorithm); `TCP_NODELAY` is set otherwise.
    #[arg(long)]
    #[serde(default)]
    pub nagle: bool,
    /// Speak TLS from the first byte on.
    #[arg(long)]
    #[serde(default)]
    pub tls: bool,
    /// The name that the certificate must be for, sent to the server too (SNI) [default: the host of the target].
    #[arg(long, value_name = "NAME")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// Only this version of TLS: `1.2` or `1.3` [default: what the server prefers of both].
    #[arg(long, value_name = "VERSION")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_version: Option<Version>,
    /// Whose certificates are accepted.
    #[command(flatten)]
    #[serde(flatten)]
    pub certificates: Certificates,
}

fn connections() -> u32 {
    64
}

/// One number; a list, which sweeps take, is refused with what to do.
fn number_of_connections(text: &str) -> Result<u32, String> {
    if text.contains(',') {
        return Err(format!(
            "a measurement has one number of connections; run once for each (for n in {}; do ... --connections $n; done), or make them the rungs of a scenario for rungwise tune",
            text.replace(',', " ")
        ));
    }
    text.parse()
        .map_err(|_| "not a number of connections; write it as 4".to_owned())
}

fn depth() -> u32 {
    1
}

/// A version of TLS: `1.2`, `1.3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", inline, extend("format" = "tls-version"))]
pub enum Version {
    /// RFC 5246.
    Tls12,
    /// RFC 8446.
    Tls13,
}

/// How all connections of a load are made.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    /// Where they go.
    pub(crate) address: SockAddr,
    /// How they are encrypted, where they are.
    pub(crate) tls: Option<Tls>,
}

impl Route {
    /// Some route, where it does not matter.
    pub(crate) fn any() -> Self {
        Self {
            address: SocketAddr::from(([127, 0, 0, 1], 9)).into(),
            tls: None,
        }
    }

    /// To the target of `site`.
    pub(crate) fn to(site: &Site<'_>, tls: Option<Tls>) -> Result<Self, Error> {
        let address = match &site.target {
            Target::Address(address) => (*address).into(),
            Target::Unix(path) => SockAddr::unix(path)
                .map_err(|error| site.wrong(format!("no path of a Unix socket: {error}")))?,
        };
        Ok(Self { address, tls })
    }
}

/// What is wrong with the path of a Unix socket that parameter `keys` gives.
pub(crate) fn wrong_path(keys: &'static [&'static str], path: &str) -> Option<Contradiction> {
    (path.is_empty() || path.len() > LONGEST_PATH || path.contains('\0')).then(|| {
        let why = format!(
            "'{}' is no path of a Unix socket, which has 1 to 107 bytes; use a shorter one, or a symbolic link",
            path.escape_debug()
        );
        Contradiction::of(keys, why)
    })
}

/// A target as users write it: `HOST:PORT`, or `unix:PATH`.
pub(crate) fn written(target: &str) -> WrittenTarget<'_> {
    match target.strip_prefix(UNIX) {
        Some(path) => WrittenTarget::Unix(path),
        None => WrittenTarget::Address(target),
    }
}

impl Certificates {
    /// The keys that are given, though there is no TLS.
    pub(crate) fn given(&self) -> impl Iterator<Item = &'static [&'static str]> {
        let all: [(&'static [&'static str], bool); 3] = [
            (&["cacert"], self.cacert.is_some()),
            (&["cert"], self.cert.is_some()),
            (&["insecure"], self.insecure),
        ];
        all.into_iter()
            .filter_map(|(key, is_given)| is_given.then_some(key))
    }

    pub(crate) fn contradictions(&self) -> Vec<Contradiction> {
        let mut found = Vec::new();
        if self.insecure && self.cacert.is_some() {
            let why = "insecure accepts any certificate, so that cacert has no effect; remove one";
            found.push(Contradiction::of(&["insecure", "cacert"], why));
        }
        if self.key.is_some() && self.cert.is_none() {
            let why = "key is that of a client certificate, and there is none; name it with cert, or remove key";
            found.push(Contradiction::of(&["key"], why));
        }
        found
    }

    /// The files that they need.
    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        let files = [&self.cacert, &self.cert, &self.key];
        files.into_iter().flatten().map(String::as_str)
    }

    /// TLS with the server `name`; reads the certificates that it needs.
    pub(crate) fn tls(
        &self,
        name: ServerName<'static>,
        version: Option<Version>,
        carried: Carried,
        site: &Site<'_>,
    ) -> Result<Tls, Error> {
        let trust = match &self.cacert {
            _ if self.insecure => Trust::Any,
            Some(file) => {
                let text = (site.read)(file).map_err(|why| site.wrong(why))?;
                Trust::from_pem(file, &text).map_err(|why| site.wrong(why))?
            }
            None => Trust::system(site.read).map_err(|why| site.wrong(why))?,
        };
        let identity = self.identity(site)?;
        Tls::new(name, trust, identity, version, carried).map_err(|why| site.wrong(why))
    }

    /// The client certificate with its key.
    fn identity(&self, site: &Site<'_>) -> Result<Option<Identity>, Error> {
        let Some(cert) = &self.cert else {
            return Ok(None);
        };
        let read = |file: &str| (site.read)(file).map_err(|why| site.wrong(why));
        let text = read(cert)?;
        let (key, key_text) = match &self.key {
            Some(key) => (key, read(key)?),
            None => (cert, text.clone()),
        };
        let identity = Identity::from_pem((cert, &text), (key, &key_text), &tls::provider());
        identity.map(Some).map_err(|why| site.wrong(why))
    }
}

impl fmt::Display for Certificates {
    /// What follows the target in a sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(cert) = &self.cert {
            write!(f, " with client certificate {cert}")?;
        }
        if self.insecure {
            f.write_str(", certificate not verified")?;
        }
        Ok(())
    }
}

impl Default for Connections {
    fn default() -> Self {
        Self {
            connections: connections(),
            depth: depth(),
            nagle: false,
            tls: false,
            server_name: None,
            tls_version: None,
            certificates: Certificates::default(),
        }
    }
}

impl Connections {
    /// What contradicts itself, for connections to `target`.
    pub(crate) fn contradictions(&self, target: &str) -> Vec<Contradiction> {
        let mut found = self.certificates.contradictions();
        if !self.tls {
            let own: [(&'static [&'static str], bool); 2] = [
                (&["server_name"], self.server_name.is_some()),
                (&["tls_version"], self.tls_version.is_some()),
            ];
            let own = own
                .into_iter()
                .filter_map(|(key, given)| given.then_some(key));
            found.extend(own.chain(self.certificates.given()).map(|key| {
                let why = format!(
                    "{} has no effect without TLS; add tls, or remove it",
                    key[0]
                );
                Contradiction::of(key, why)
            }));
        }
        if let WrittenTarget::Unix(path) = written(target) {
            found.extend(wrong_path(&["target"], path));
            if self.tls && self.server_name.is_none() {
                let why =
                    "a Unix socket has no host that a certificate could be for; add server_name";
                found.push(Contradiction::of(&["server_name"], why));
            }
        }
        if let Some(name) = &self.server_name
            && tls::name(name).is_none()
        {
            let why = format!("no certificate can be for '{name}'; use a host name or an address");
            found.push(Contradiction::of(&["server_name"], why));
        }
        found
    }

    /// The route to the target of `site`, which was written as `target`.
    pub(crate) fn route(&self, target: &str, site: &Site<'_>) -> Result<Route, Error> {
        let tls = if self.tls {
            let name = self.name(target, site)?;
            let certificates = &self.certificates;
            Some(certificates.tls(name, self.tls_version, Carried::STREAM, site)?)
        } else {
            None
        };
        Route::to(site, tls)
    }

    /// The name that the server's certificate must be for.
    fn name(&self, target: &str, site: &Site<'_>) -> Result<ServerName<'static>, Error> {
        let host = match (&self.server_name, &site.target) {
            (Some(name), _) => name.clone(),
            // `{server}` in a scenario: the service's resolved address.
            (None, Target::Address(address)) if target.contains('{') => address.ip().to_string(),
            (None, _) => host(target).to_owned(),
        };
        tls::name(&host).ok_or_else(|| {
            site.wrong(format!(
                "no certificate can be for '{host}'; name the server with --server-name"
            ))
        })
    }
}

/// The host of `HOST:PORT`, without brackets.
fn host(target: &str) -> &str {
    let host = target.rsplit_once(':').map_or(target, |(host, _)| host);
    let inner = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    inner.unwrap_or(host)
}

impl fmt::Display for Connections {
    /// What follows the target in a sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.tls, self.tls_version) {
            (true, Some(version)) => write!(f, " by TLS {version}")?,
            (true, None) => f.write_str(" by TLS")?,
            (false, _) => {}
        }
        write!(f, "{}", self.certificates)
    }
}

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "1.2" => Ok(Self::Tls12),
            "1.3" => Ok(Self::Tls13),
            _ => Err(format!(
                "'{text}' is no version of TLS that can be used; write 1.2 or 1.3"
            )),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tls12 => "1.2",
            Self::Tls13 => "1.3",
        })
    }
}

as_text!(Version);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_an_address_or_a_unix_socket() {
        assert_eq!(written("[::1]:80"), WrittenTarget::Address("[::1]:80"));
        assert_eq!(written("unix:/run/a"), WrittenTarget::Unix("/run/a"));
        for (target, expected) in [("a:1", "a"), ("[::1]:1", "::1"), ("1.2.3.4:5", "1.2.3.4")] {
            assert_eq!(host(target), expected);
        }
    }

    #[test]
    fn what_has_no_effect_is_refused() {
        let plain = Connections::default;
        let with = |change: fn(&mut Connections)| {
            let mut connections = plain();
            change(&mut connections);
            connections
        };
        for (target, connections, key) in [
            ("a:1", with(|c| c.certificates.insecure = true), "insecure"),
            (
                "a:1",
                with(|c| c.server_name = Some("b".to_owned())),
                "server_name",
            ),
            (
                "a:1",
                with(|c| c.tls_version = Some(Version::Tls12)),
                "tls_version",
            ),
            ("unix:/a", with(|c| c.tls = true), "server_name"),
            ("unix:", plain(), "target"),
        ] {
            let found = connections.contradictions(target);
            assert!(
                found.iter().any(|one| one.keys.contains(&key)),
                "{target} {key}: {found:?}"
            );
        }
        assert_eq!(plain().contradictions("unix:/run/a.sock"), []);
        let all = with(|c| {
            c.tls = true;
            c.certificates.insecure = true;
        });
        assert_eq!(all.contradictions("[::1]:6379"), []);
    }
}
