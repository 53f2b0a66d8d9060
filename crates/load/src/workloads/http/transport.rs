//! How connections are made, as users write it: to which address, through which socket, with which TLS.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use rustls::pki_types::ServerName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use socket2::SockAddr;

use super::identity::Identity;
use super::tls::{self, Tls, Trust};
use super::values::{Url, texts};
use crate::Error;
use crate::parameters::{Contradiction, Site, Target, WrittenTarget};

/// Longest path of a Unix socket, bytes: `sun_path` of unix(7) without the zero at its end.
const LONGEST_PATH: usize = 107;

/// How connections are made. Flattened into the parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema, clap::Args)]
#[command(next_help_heading = "Connections")]
pub struct Transport {
    /// Connect to this address for the URL's host and port, `HOST:PORT:ADDRESS`; the `Host` header and the name that TLS verifies stay. May be
    /// repeated.
    #[arg(long, value_name = "HOST:PORT:ADDRESS")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resolve: Vec<Resolve>,
    /// Connect to the Unix socket with this path; the `Host` header is that of the URL.
    #[arg(long, value_name = "PATH")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unix_socket: Option<String>,
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
    /// Only this version of TLS: `1.2` or `1.3` [default: what the server prefers of both].
    #[arg(long, value_name = "VERSION")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Version>,
}

/// How all connections of a load are made.
#[derive(Clone, Debug)]
pub(super) struct Route {
    /// Where they go.
    pub(super) address: SockAddr,
    /// How they are encrypted, where they are.
    pub(super) tls: Option<Tls>,
}

impl Route {
    /// Some route, where it does not matter.
    pub(super) fn any() -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 9)).into(),
            tls: None,
        }
    }
}

/// The address of a host and port: `shop.example:443:192.0.2.1`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", inline, extend("format" = "http-resolve"))]
pub struct Resolve {
    /// Host and port as a URL has them, the port always: `shop.example:443`.
    pub from: String,
    /// The address with the port: `192.0.2.1:443`.
    pub to: String,
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

impl Transport {
    /// Where connections for `url` go.
    pub(super) fn target<'a>(&'a self, url: &'a Url) -> WrittenTarget<'a> {
        if let Some(path) = &self.unix_socket {
            return WrittenTarget::Unix(path);
        }
        let given = self.resolve.iter().find(|one| one.is_for(url));
        WrittenTarget::Address(given.map_or(&url.target, |one| &one.to))
    }

    pub(super) fn contradictions(&self, url: &Url) -> Vec<Contradiction> {
        let mut found = Vec::new();
        if !url.tls {
            for (key, is_given) in [
                (&["cacert"], self.cacert.is_some()),
                (&["cert"], self.cert.is_some()),
                (&["insecure"], self.insecure),
                (&["tls"], self.tls.is_some()),
            ] {
                if is_given {
                    let why = format!(
                        "{} has no effect for {url}, which does not use TLS; write https://, or remove it",
                        key[0]
                    );
                    found.push(Contradiction::of(key, why));
                }
            }
        }
        if self.insecure && self.cacert.is_some() {
            let why = "insecure accepts any certificate, so that cacert has no effect; remove one";
            found.push(Contradiction::of(&["insecure", "cacert"], why));
        }
        if self.key.is_some() && self.cert.is_none() {
            let why = "key is that of a client certificate, and there is none; name it with cert, or remove key";
            found.push(Contradiction::of(&["key"], why));
        }
        if let Some(other) = self.resolve.iter().find(|one| !one.is_for(url)) {
            let why = format!(
                "resolve gives an address for {}, and requests go to {}; correct it, or remove it",
                other.from, url.target
            );
            found.push(Contradiction::of(&["resolve"], why));
        }
        if let Some(path) = &self.unix_socket {
            if !self.resolve.is_empty() {
                let why =
                    "requests go through unix_socket, so that resolve has no effect; remove one";
                found.push(Contradiction::of(&["resolve", "unix_socket"], why));
            }
            if url.host().contains('{') {
                let why = format!(
                    "requests go through unix_socket, and '{}' has no address; write http://localhost{}",
                    url.authority, url.path
                );
                found.push(Contradiction::of(&["url"], why));
            }
            if path.is_empty() || path.len() > LONGEST_PATH || path.contains('\0') {
                let why = format!(
                    "'{}' is no path of a Unix socket, which has 1 to 107 bytes; use a shorter one, or a symbolic link",
                    path.escape_debug()
                );
                found.push(Contradiction::of(&["unix_socket"], why));
            }
        }
        let placeholder = url.host().contains('{');
        if url.tls && !placeholder && ServerName::try_from(url.host()).is_err() {
            let why = format!(
                "no certificate can be for '{}'; use a host name or an address in the URL",
                url.host()
            );
            found.push(Contradiction::of(&["url"], why));
        }
        found
    }

    /// The files that it needs.
    pub(super) fn files(&self) -> impl Iterator<Item = &str> {
        let files = [&self.cacert, &self.cert, &self.key];
        files.into_iter().flatten().map(String::as_str)
    }

    /// The route of connections for `url`; reads the certificates that it needs.
    pub(super) fn route(&self, url: &Url, site: &Site<'_>, http2: bool) -> Result<Route, Error> {
        let address = match &site.target {
            Target::Address(address) => (*address).into(),
            Target::Unix(path) => SockAddr::unix(path)
                .map_err(|error| site.wrong(format!("no path of a Unix socket: {error}")))?,
        };
        let tls = self.tls(url, site, http2)?;
        Ok(Route { address, tls })
    }

    /// TLS with the server of `url`; nothing where it does not use TLS.
    fn tls(&self, url: &Url, site: &Site<'_>, http2: bool) -> Result<Option<Tls>, Error> {
        if !url.tls {
            return Ok(None);
        }
        let trust = match &self.cacert {
            _ if self.insecure => Trust::Any,
            Some(file) => {
                let text = (site.read)(file).map_err(|why| site.wrong(why))?;
                Trust::from_pem(file, &text).map_err(|why| site.wrong(why))?
            }
            None => Trust::system(site.read).map_err(|why| site.wrong(why))?,
        };
        let name = match (url.host(), &site.target) {
            // `{server}` in a scenario: the service's resolved address.
            (host, Target::Address(address)) if host.contains('{') => address.ip().into(),
            (host, _) => tls::name(host).ok_or_else(|| {
                site.wrong(format!(
                    "no certificate can be for '{host}'; use a host name or an address"
                ))
            })?,
        };
        let identity = self.identity(site)?;
        let tls =
            Tls::new(name, trust, identity, self.tls, http2).map_err(|why| site.wrong(why))?;
        Ok(Some(tls))
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

impl fmt::Display for Transport {
    /// What follows the URL in a sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.unix_socket {
            write!(f, " through {path}")?;
        }
        if let Some(version) = self.tls {
            write!(f, " with TLS {version}")?;
        }
        if let Some(cert) = &self.cert {
            write!(f, " with client certificate {cert}")?;
        }
        if self.insecure {
            f.write_str(", certificate not verified")?;
        }
        Ok(())
    }
}

impl Resolve {
    fn is_for(&self, url: &Url) -> bool {
        self.from.eq_ignore_ascii_case(&url.target)
    }
}

impl FromStr for Resolve {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = || {
            // The colons of an IPv6 address stand within brackets.
            let end = text
                .find(']')
                .filter(|_| text.starts_with('['))
                .unwrap_or(0);
            let host = end + text[end..].find(':')?;
            let (port, address) = text[host + 1..].split_once(':')?;
            let address = address
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'))
                .unwrap_or(address);
            let is_placeholder = address.contains('{');
            let ip = address.parse::<IpAddr>();
            let fits = host > 0 && matches!(port.parse::<u16>(), Ok(port) if port > 0);
            let address = match ip {
                Ok(IpAddr::V6(ip)) => format!("[{ip}]"),
                Ok(IpAddr::V4(ip)) => ip.to_string(),
                Err(_) if is_placeholder => address.to_owned(),
                Err(_) => return None,
            };
            fits.then(|| Self {
                from: text[..=host + port.len()].to_owned(),
                to: format!("{address}:{port}"),
            })
        };
        parts().ok_or_else(|| {
            format!("cannot read '{text}' as an address of a host; write it as shop.example:443:192.0.2.1")
        })
    }
}

impl fmt::Display for Resolve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self
            .to
            .rsplit_once(':')
            .map_or(&*self.to, |(address, _)| address);
        write!(f, "{}:{address}", self.from)
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

texts!(Resolve, Version);

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_for_a_host_is_written_as_for_curl() {
        for (text, from, to) in [
            (
                "shop.example:443:192.0.2.1",
                "shop.example:443",
                "192.0.2.1:443",
            ),
            ("a:80:[2001:db8::1]", "a:80", "[2001:db8::1]:80"),
            ("a:80:2001:db8::1", "a:80", "[2001:db8::1]:80"),
            ("[::1]:80:127.0.0.1", "[::1]:80", "127.0.0.1:80"),
            ("a:80:{server}", "a:80", "{server}:80"),
        ] {
            let resolve: Resolve = text.parse().unwrap();
            assert_eq!((&*resolve.from, &*resolve.to), (from, to));
            assert_eq!(resolve.to_string().parse(), Ok(resolve));
        }
        for bad in [
            "",
            "a",
            "a:80",
            "a:80:",
            "a:80:b",
            "a:0:::1",
            ":80:::1",
            "a:x:::1",
            "[::1:80:::1",
            "]:80:::1:",
        ] {
            assert!(bad.parse::<Resolve>().is_err(), "{bad}");
        }
    }

    #[test]
    fn connections_go_where_they_are_sent_and_else_to_the_host() {
        let shop = url("https://Shop.example/x");
        let mut transport = Transport::default();
        assert_eq!(
            transport.target(&shop),
            WrittenTarget::Address("Shop.example:443")
        );
        transport.resolve = vec!["shop.example:443:192.0.2.1".parse().unwrap()];
        assert_eq!(
            transport.target(&shop),
            WrittenTarget::Address("192.0.2.1:443")
        );
        assert_eq!(transport.contradictions(&shop), []);
        transport.unix_socket = Some("/run/shop.sock".to_owned());
        assert_eq!(
            transport.target(&shop),
            WrittenTarget::Unix("/run/shop.sock")
        );
    }

    #[test]
    fn what_has_no_effect_is_refused() {
        let default = Transport::default;
        let resolve = || vec!["a:443:192.0.2.1".parse().unwrap()];
        for (at, transport, key) in [
            (
                "http://a/",
                Transport {
                    insecure: true,
                    ..default()
                },
                "insecure",
            ),
            (
                "http://a/",
                Transport {
                    tls: Some(Version::Tls12),
                    ..default()
                },
                "tls",
            ),
            (
                "http://a/",
                Transport {
                    cacert: Some("x".to_owned()),
                    ..default()
                },
                "cacert",
            ),
            (
                "http://a/",
                Transport {
                    cert: Some("x".to_owned()),
                    ..default()
                },
                "cert",
            ),
            (
                "https://a/",
                Transport {
                    key: Some("x".to_owned()),
                    ..default()
                },
                "key",
            ),
            (
                "https://b/",
                Transport {
                    resolve: resolve(),
                    ..default()
                },
                "resolve",
            ),
            (
                "https://a:444/",
                Transport {
                    resolve: resolve(),
                    ..default()
                },
                "resolve",
            ),
            (
                "https://a/",
                Transport {
                    resolve: resolve(),
                    unix_socket: Some("x".to_owned()),
                    ..default()
                },
                "resolve",
            ),
            (
                "https://a/",
                Transport {
                    insecure: true,
                    cacert: Some("x".to_owned()),
                    ..default()
                },
                "cacert",
            ),
            (
                "http://a/",
                Transport {
                    unix_socket: Some("x".repeat(108)),
                    ..default()
                },
                "unix_socket",
            ),
            (
                "http://a/",
                Transport {
                    unix_socket: Some("a\0b".to_owned()),
                    ..default()
                },
                "unix_socket",
            ),
            ("https://a..b/", default(), "url"),
        ] {
            let found = transport.contradictions(&url(at));
            assert!(
                found.iter().any(|one| one.keys.contains(&key)),
                "{at} {key}: {found:?}"
            );
        }
        let all = Transport {
            insecure: true,
            tls: Some(Version::Tls13),
            ..default()
        };
        assert_eq!(all.contradictions(&url("https://[2001:db8::1]:8443/")), []);
    }
}
