//! How connections are made, as users write it: to which address, through which socket, with which TLS.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use rustls::pki_types::ServerName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::{Url, texts};
use crate::Error;
use crate::parameters::{Contradiction, Site, Target, WrittenTarget};
use crate::stream::tls::{self, Carried, Tls};
use crate::stream::transport::{Certificates, Route, Version, wrong_path};

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
    /// Whose certificates are accepted.
    #[command(flatten)]
    #[serde(flatten)]
    pub certificates: Certificates,
    /// Only this version of TLS: `1.2` or `1.3` [default: what the server prefers of both].
    #[arg(long, value_name = "VERSION")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Version>,
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
            let version: Option<&'static [&'static str]> = self.tls.map(|_| &["tls"] as _);
            found.extend(self.certificates.given().chain(version).map(|key| {
                let why = format!(
                    "{} has no effect for {url}, which does not use TLS; write https://, or remove it",
                    key[0]
                );
                Contradiction::of(key, why)
            }));
        }
        found.extend(self.certificates.contradictions());
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
            found.extend(wrong_path(&["unix_socket"], path));
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
        self.certificates.files()
    }

    /// The route of connections for `url`; reads the certificates that it needs.
    pub(super) fn route(&self, url: &Url, site: &Site<'_>, http2: bool) -> Result<Route, Error> {
        Route::to(site, self.tls(url, site, http2)?)
    }

    /// TLS with the server of `url`; nothing where it does not use TLS.
    fn tls(&self, url: &Url, site: &Site<'_>, http2: bool) -> Result<Option<Tls>, Error> {
        if !url.tls {
            return Ok(None);
        }
        let name = match (url.host(), &site.target) {
            // `{server}` in a scenario: the service's resolved address.
            (host, Target::Address(address)) if host.contains('{') => address.ip().into(),
            (host, _) => tls::name(host).ok_or_else(|| {
                site.wrong(format!(
                    "no certificate can be for '{host}'; use a host name or an address"
                ))
            })?,
        };
        let carried = if http2 {
            Carried::HTTP2
        } else {
            Carried::HTTP1
        };
        let tls = self.certificates.tls(name, self.tls, carried, site)?;
        Ok(Some(tls))
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
        write!(f, "{}", self.certificates)
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

texts!(Resolve);

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
        let trusting = |change: fn(&mut Certificates)| {
            let mut transport = default();
            change(&mut transport.certificates);
            transport
        };
        let resolve = || vec!["a:443:192.0.2.1".parse().unwrap()];
        for (at, transport, key) in [
            ("http://a/", trusting(|it| it.insecure = true), "insecure"),
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
                trusting(|it| it.cacert = Some("x".to_owned())),
                "cacert",
            ),
            (
                "http://a/",
                trusting(|it| it.cert = Some("x".to_owned())),
                "cert",
            ),
            (
                "https://a/",
                trusting(|it| it.key = Some("x".to_owned())),
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
                trusting(|it| {
                    it.insecure = true;
                    it.cacert = Some("x".to_owned());
                }),
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
            tls: Some(Version::Tls13),
            ..trusting(|it| it.insecure = true)
        };
        assert_eq!(all.contradictions(&url("https://[2001:db8::1]:8443/")), []);
    }
}
