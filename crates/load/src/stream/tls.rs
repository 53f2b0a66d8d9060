//! TLS below a protocol, by `rustls`: what is trusted, the handshake, and why one failed in words that lead on.
//!
//! Bytes are taken from the socket in large pieces and handed to `rustls` at once, and what it has decrypted is taken out again before more
//! comes: it never holds more than one incomplete record of 16 KiB. A request larger than 64 KiB is encrypted piece by piece, as the kernel takes it.
//! Each connection of the load has its own memory of sessions, as each user has: opened anew it resumes what it had, and never another's.

use std::io::{self, ErrorKind, IoSlice, Read as _, Write};
use std::sync::Arc;

use rungwise_model::units;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientConfig, ClientConnection, Resumption};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version::{TLS12, TLS13};
use rustls::{
    AlertDescription, CertificateError, DigitallySignedStruct, HandshakeKind, PeerIncompatible,
    RootCertStore, SignatureScheme,
};
use socket2::Socket;

use super::identity::{Client, Identity, REMEDY, WANTED};
use super::link::{Came, receive, send};
use super::transport::Version;

/// Where systems keep the CA certificates that they trust: Debian, Fedora, SUSE, Alpine.
const SYSTEM: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// Bytes of requests that a connection encrypts ahead of the kernel.
const AHEAD: usize = 64 * 1024;
/// The protocol HTTP/2 as TLS negotiates it (RFC 9113, section 3.2).
const HTTP2: &[u8] = b"h2";

/// What TLS carries, and how a user is told about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Carried {
    /// Its name, as TLS negotiates it (ALPN); absent where nothing is negotiated.
    pub(crate) alpn: Option<&'static [u8]>,
    /// Its name in sentences.
    pub(crate) name: &'static str,
    /// How to speak to a server that does not use TLS.
    pub(crate) plain: &'static str,
    /// How to speak it to a server that does not negotiate it.
    pub(crate) other: &'static str,
    /// How to be given a certificate that fits.
    pub(crate) host: &'static str,
    /// How to allow another version of TLS.
    pub(crate) version: &'static str,
}

impl Carried {
    pub(crate) const HTTP1: Self = Self {
        alpn: Some(b"http/1.1"),
        name: "HTTP/1.1",
        plain: "write http:// in the URL, or use the port that serves TLS",
        other: "use a port that serves HTTP/1.1, or --http2",
        host: "use a host of the certificate in the URL, and --resolve HOST:PORT:ADDRESS for its address",
        version: "remove --tls, or name the other version",
    };
    pub(crate) const HTTP2: Self = Self {
        alpn: Some(HTTP2),
        name: "HTTP/2",
        other: "enable HTTP/2 on the server, or remove --http2 for HTTP/1.1",
        ..Self::HTTP1
    };
    /// Any other protocol, which the port alone decides.
    pub(crate) const STREAM: Self = Self {
        alpn: None,
        name: "this protocol",
        plain: "remove --tls, or use the port that serves TLS",
        other: "use a port that negotiates nothing (ALPN)",
        host: "name a host of the certificate with --server-name",
        version: "remove --tls-version, or name the other version",
    };
}

/// Whose certificates are accepted.
#[derive(Debug)]
pub(crate) enum Trust {
    /// Everybody's.
    Any,
    /// Those that CAs of a file have issued.
    Cas { file: String, roots: RootCertStore },
}

impl Trust {
    /// The CAs in the PEM `text` of a file.
    pub(crate) fn from_pem(file: &str, text: &[u8]) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        let mut found = 0;
        for certificate in CertificateDer::pem_slice_iter(text) {
            let certificate = certificate.map_err(|error| {
                format!("cannot trust the CAs of {file}: it is not in PEM form ({error:?}); name the file with the CA's certificate")
            })?;
            found += 1;
            // What a system has collected may contain single ones that are too old to be read.
            let _ = roots.add(certificate);
        }
        if roots.is_empty() {
            let why = if found == 0 {
                "it contains no certificate in PEM form (-----BEGIN CERTIFICATE-----)"
            } else {
                "none of its certificates can be read"
            };
            return Err(format!(
                "cannot trust the CAs of {file}: {why}; name the file with the CA's certificate"
            ));
        }
        Ok(Self::Cas {
            file: file.to_owned(),
            roots,
        })
    }

    /// The CAs of this system.
    pub(crate) fn system(read: &dyn Fn(&str) -> Result<Vec<u8>, String>) -> Result<Self, String> {
        let found = SYSTEM
            .iter()
            .find_map(|file| Some((file, read(file).ok()?)));
        let (file, text) = found.ok_or_else(|| {
            format!(
                "found no CA certificates of this system: {} cannot be read; install them (Debian: ca-certificates), name the server's CA with \
                 --cacert FILE, or accept any certificate with --insecure",
                SYSTEM.join(", ")
            )
        })?;
        Self::from_pem(file, &text)
    }
}

/// The name that a certificate must be for.
pub(crate) fn name(host: &str) -> Option<ServerName<'static>> {
    // The zone of a link-local address is this host's own (RFC 6874, section 1).
    let host = host.split('%').next().unwrap_or(host);
    ServerName::try_from(host.to_owned()).ok()
}

/// The ciphers, key exchanges and signatures of all loads.
pub(crate) fn provider() -> CryptoProvider {
    ring::default_provider()
}

/// How all connections of a load speak TLS.
#[derive(Clone, Debug)]
pub(crate) struct Tls {
    config: ClientConfig,
    name: ServerName<'static>,
    /// The only version that is offered.
    version: Option<Version>,
    carried: Carried,
    /// The file with the CAs; none where any certificate is accepted.
    cas: Option<String>,
    /// What the load is to a server that asks.
    client: Arc<Client>,
}

/// Statuses with which nginx refuses a client without a certificate: 400, of which its log says 496, or 495.
const REFUSED: [&str; 3] = ["400", "495", "496"];

impl Tls {
    pub(crate) fn new(
        name: ServerName<'static>,
        trust: Trust,
        client: Option<Identity>,
        version: Option<Version>,
        carried: Carried,
    ) -> Result<Self, String> {
        let provider = Arc::new(provider());
        let versions: &[_] = match version {
            Some(Version::Tls12) => &[&TLS12],
            Some(Version::Tls13) => &[&TLS13],
            None => &[&TLS13, &TLS12],
        };
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions)
            .map_err(|error| format!("cannot use TLS: {error}"))?;
        let (builder, cas) = match trust {
            Trust::Any => (
                builder
                    .dangerous()
                    .with_custom_certificate_verifier(Arc::new(AcceptAny(provider))),
                None,
            ),
            Trust::Cas { file, roots } => (builder.with_root_certificates(roots), Some(file)),
        };
        let client = Arc::new(Client::new(client));
        let mut config = builder.with_client_cert_resolver(client.clone());
        config.alpn_protocols = carried.alpn.into_iter().map(<[u8]>::to_vec).collect();
        Ok(Self {
            config,
            name,
            version,
            carried,
            cas,
            client,
        })
    }

    /// The certificate is verified.
    pub(crate) fn verifies(&self) -> bool {
        self.cas.is_some()
    }

    /// For one of the connections, which has its own memory of sessions.
    pub(crate) fn of_connection(&self) -> (Arc<ClientConfig>, ServerName<'static>) {
        let mut config = self.config.clone();
        config.resumption = Resumption::in_memory_sessions(1);
        (Arc::new(config), self.name.clone())
    }

    /// Notes why a connection that was established broke: in TLS 1.3 a server refuses a client after the client's side of the handshake
    /// is complete (RFC 8446, section 4.4.2.4).
    pub(crate) fn note(&self, failed: &Failed) {
        if let Failed::Tls(rustls::Error::AlertReceived(alert)) = failed {
            self.client.alerted(*alert);
        }
    }

    /// Why a server gave no answer at all, where that is because of who the client is; and what to do. `statuses` are those of its responses.
    pub(crate) fn refusal<'a>(
        &self,
        mut statuses: impl Iterator<Item = &'a String>,
    ) -> Option<(String, String)> {
        let Some(first) = statuses.next() else {
            return self.client.explain(self.client.alert()?);
        };
        let refused = |status: &String| REFUSED.contains(&status.as_str());
        let is_why = self.client.lacks() && refused(first) && statuses.all(refused);
        is_why.then(|| {
            let why = format!("{WANTED}: it answers every request with status {first}");
            (why, REMEDY.to_owned())
        })
    }

    /// Why a handshake failed, and what to do.
    pub(crate) fn explain(&self, failed: &Failed) -> (String, String) {
        let name = self.name.to_str();
        let Carried {
            name: protocol,
            plain,
            other,
            host,
            version,
            ..
        } = self.carried;
        let cas = self.cas.as_deref().unwrap_or_default();
        let speaks = "check that this port serves TLS, and see the server's log";
        let offered = match self.version {
            Some(version) => format!("TLS {version}"),
            None => "TLS 1.2 and 1.3".to_owned(),
        };
        if let Failed::Tls(rustls::Error::AlertReceived(alert)) = failed
            && let Some(explained) = self.client.explain(*alert)
        {
            return explained;
        }
        let (why, what): (String, String) = match failed {
            Failed::Plain => (
                "the server answers without TLS".to_owned(),
                plain.to_owned(),
            ),
            Failed::Closed => (
                "the server closed the connection in the handshake".to_owned(),
                speaks.to_owned(),
            ),
            Failed::Reset => (
                "the connection was reset in the handshake".to_owned(),
                speaks.to_owned(),
            ),
            Failed::Silent => (
                "the server accepts the connection and does not answer".to_owned(),
                speaks.to_owned(),
            ),
            Failed::Early => (
                "the server sent data before it was asked".to_owned(),
                format!("check that this port serves {protocol}"),
            ),
            Failed::Tls(rustls::Error::InvalidCertificate(error)) => {
                untrusted(error, &name, cas, host)
            }
            Failed::Tls(
                rustls::Error::AlertReceived(AlertDescription::ProtocolVersion)
                | rustls::Error::PeerIncompatible(
                    PeerIncompatible::ServerDoesNotSupportTls12Or13
                    | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
                ),
            ) => (
                format!("the server does not speak {offered}"),
                if self.version.is_some() {
                    version
                } else {
                    "enable TLS 1.2 or 1.3 on the server"
                }
                .to_owned(),
            ),
            Failed::Tls(
                rustls::Error::AlertReceived(AlertDescription::HandshakeFailure)
                | rustls::Error::PeerIncompatible(_),
            ) => (
                format!(
                    "the server accepts none of the cipher suites and key exchanges offered ({offered})"
                ),
                "enable ECDHE with AES-GCM or ChaCha20-Poly1305 on the server".to_owned(),
            ),
            Failed::Tls(rustls::Error::AlertReceived(AlertDescription::UnrecognisedName)) => {
                (format!("the server knows no host {name}"), host.to_owned())
            }
            Failed::Tls(rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol)) => (
                format!("the server does not speak {protocol} on this port (ALPN)"),
                other.to_owned(),
            ),
            Failed::Tls(error) => (error.to_string(), speaks.to_owned()),
        };
        (why, what)
    }
}

/// Why a certificate is not accepted, and what to do.
fn untrusted(error: &CertificateError, name: &str, cas: &str, host: &str) -> (String, String) {
    let skip = "accept any certificate with --insecure";
    match error {
        // Another CA may have the name of the right one.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => (
            format!("its certificate was issued by none of the CAs in {cas}"),
            format!("name the CA's certificate with --cacert FILE, or {skip}"),
        ),
        CertificateError::NotValidForName => (
            format!("its certificate is not for {name}"),
            format!("{host}; or {skip}"),
        ),
        CertificateError::NotValidForNameContext { presented, .. } if presented.is_empty() => (
            format!(
                "its certificate is for no host (it has no subjectAltName), and {name} is asked"
            ),
            format!("issue one with a subjectAltName, or {skip}"),
        ),
        CertificateError::NotValidForNameContext { presented, .. } => (
            format!(
                "its certificate is for {}, not for {name}",
                plain(presented).join(", ")
            ),
            format!("{host}; or {skip}"),
        ),
        CertificateError::ExpiredContext { time, not_after } => (
            format!("its certificate expired {} ago", span(*not_after, *time)),
            format!("renew it, or {skip}"),
        ),
        CertificateError::NotValidYetContext { time, not_before } => (
            format!(
                "its certificate is valid only in {}",
                span(*time, *not_before)
            ),
            format!("correct the clock of this machine, or {skip}"),
        ),
        // rustls keeps the error of its verifier in a type of that crate.
        CertificateError::Other(error) if format!("{error:?}").contains("CaUsedAsEndEntity") => (
            "its certificate is that of a CA, which must not be a server's".to_owned(),
            format!("issue one for the server by that CA (basicConstraints CA:FALSE), or {skip}"),
        ),
        error => (
            format!("its certificate is not accepted: {error}"),
            format!("correct the certificate, or {skip}"),
        ),
    }
}

/// Names of a certificate as they are written in it: `DnsName("a")` is `a`.
fn plain(presented: &[String]) -> Vec<&str> {
    let inner = |name: &'_ str| -> Option<(usize, usize)> {
        let (begin, end) = (name.find('(')? + 1, name.rfind(')')?);
        (begin <= end).then_some((begin, end))
    };
    let bare = presented
        .iter()
        .map(|name| inner(name).map_or(&**name, |(begin, end)| &name[begin..end]));
    bare.map(|name| name.trim_matches('"')).collect()
}

/// How long it is from one time to the other.
fn span(from: UnixTime, to: UnixTime) -> String {
    const DAY: u64 = 24 * 60 * 60;
    let seconds = to.as_secs().saturating_sub(from.as_secs());
    if seconds >= 2 * DAY {
        format!("{} days", seconds / DAY)
    } else {
        units::written(std::time::Duration::from_secs(seconds))
    }
}

/// Accepts every certificate, and still checks that the server has its key.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signed,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signed,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Why TLS failed; the source of an [`io::Error`].
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Failed {
    #[error("{0}")]
    Tls(rustls::Error),
    #[error("the server answers without TLS")]
    Plain,
    #[error("the server closed the connection in the handshake")]
    Closed,
    #[error("the connection was reset in the handshake")]
    Reset,
    #[error("the server does not answer in the handshake")]
    Silent,
    #[error("the server sent data before it was asked")]
    Early,
}

impl From<Failed> for io::Error {
    fn from(failed: Failed) -> Self {
        Self::other(failed)
    }
}

impl Failed {
    /// The failure of TLS that an error comes from; none where it comes from the connection below.
    pub(crate) fn behind(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

/// What a handshake has agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreed {
    /// Version and cipher suite as IANA registers them.
    pub(crate) version: &'static str,
    pub(crate) suite: &'static str,
    /// An earlier session was resumed.
    pub(crate) resumed: bool,
}

/// TLS on one open connection.
#[derive(Debug)]
pub(crate) struct Session {
    tls: ClientConnection,
    /// The server has said that it sends nothing more.
    closed: bool,
    /// It has sent something.
    begun: bool,
    /// What broke it, where decrypted bytes came before.
    failed: Option<rustls::Error>,
}

impl Session {
    pub(crate) fn new(
        (config, name): &(Arc<ClientConfig>, ServerName<'static>),
    ) -> io::Result<Self> {
        let mut tls = ClientConnection::new(config.clone(), name.clone()).map_err(Failed::Tls)?;
        tls.set_buffer_limit(Some(AHEAD));
        Ok(Self {
            tls,
            closed: false,
            begun: false,
            failed: None,
        })
    }

    /// Goes on with the handshake; what was agreed, once it is complete, and how many bytes in `plain` came with its end already.
    pub(crate) fn handshake(
        &mut self,
        socket: &Socket,
        wire: &mut [u8],
        plain: &mut [u8],
    ) -> io::Result<Option<(Agreed, usize)>> {
        let mut early = 0;
        let lost = |error: io::Error| match error.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Failed::Reset.into(),
            ErrorKind::UnexpectedEof => Failed::Closed.into(),
            _ => error,
        };
        self.flush(socket).map_err(lost)?;
        while self.tls.is_handshaking() {
            match self.read(socket, wire, plain) {
                Ok(came) if came.length > 0 && self.tls.is_handshaking() => {
                    return Err(Failed::Early.into());
                }
                Ok(came) if came.length > 0 => early = came.length,
                Ok(came) if came.ended => return Err(Failed::Closed.into()),
                Ok(_) => self.flush(socket).map_err(lost)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(lost(error)),
            }
        }
        Ok(Some((self.agreed(), early)))
    }

    /// HTTP/2 was negotiated.
    pub(crate) fn is_http2(&self) -> bool {
        self.tls.alpn_protocol() == Some(HTTP2)
    }

    fn agreed(&self) -> Agreed {
        let version = match self.tls.protocol_version() {
            Some(rustls::ProtocolVersion::TLSv1_3) => "TLS 1.3",
            Some(rustls::ProtocolVersion::TLSv1_2) => "TLS 1.2",
            _ => "TLS",
        };
        let suite = self
            .tls
            .negotiated_cipher_suite()
            .and_then(|suite| suite.suite().as_str());
        Agreed {
            version,
            suite: suite.unwrap_or("unknown"),
            resumed: self.tls.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    }

    /// Reads and decrypts what has come. An end that the server has not announced is an error: the connection may have been cut.
    #[inline]
    pub(crate) fn read(
        &mut self,
        socket: &Socket,
        wire: &mut [u8],
        plain: &mut [u8],
    ) -> io::Result<Came> {
        if let Some(error) = self.failed.take() {
            return Err(Failed::Tls(error).into());
        }
        if self.closed {
            return Ok(Came::END);
        }
        let came = receive(socket, wire)?;
        if came == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        // A record of a handshake, or of an alert (RFC 8446, section 5.1).
        if !self.begun && !matches!(wire[0], 21 | 22) {
            return Err(Failed::Plain.into());
        }
        self.begun = true;
        let (mut rest, mut length) = (&wire[..came], 0);
        while !rest.is_empty() && !self.closed {
            self.tls.read_tls(&mut rest)?;
            match self.tls.process_new_packets() {
                Ok(state) => {
                    self.closed = state.peer_has_closed();
                    if state.plaintext_bytes_to_read() > 0 {
                        length += self.tls.reader().read(&mut plain[length..])?;
                    }
                }
                Err(error) => {
                    // The alert that says why.
                    let _ = self.flush(socket);
                    if length == 0 {
                        return Err(Failed::Tls(error).into());
                    }
                    self.failed = Some(error);
                    break;
                }
            }
        }
        if self.tls.wants_write() && !self.tls.is_handshaking() {
            self.flush(socket)?;
        }
        Ok(Came {
            length,
            more: came == wire.len() || self.failed.is_some(),
            ended: self.closed || self.failed.is_some(),
        })
    }

    /// Encrypts as much of `bytes` as there is room for and hands it to the kernel, as far as it takes it; how much was encrypted.
    #[inline]
    pub(crate) fn write(&mut self, socket: &Socket, bytes: &[u8]) -> io::Result<usize> {
        let mut taken = 0;
        loop {
            taken += self.tls.writer().write(&bytes[taken..])?;
            self.flush(socket)?;
            if taken == bytes.len() || self.tls.wants_write() {
                return Ok(taken);
            }
        }
    }

    /// Hands what is encrypted to the kernel, as far as it takes it.
    #[inline]
    fn flush(&mut self, socket: &Socket) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Wire(socket)) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(_) => {}
            }
        }
        Ok(())
    }

    /// The kernel has taken all that was encrypted.
    #[inline]
    pub(crate) fn is_flushed(&self) -> bool {
        !self.tls.wants_write()
    }

    /// Says that nothing more will be sent.
    pub(crate) fn close(&mut self, socket: &Socket) {
        if !self.tls.is_handshaking() {
            self.tls.send_close_notify();
            let _ = self.flush(socket);
        }
    }
}

/// Where `rustls` writes.
struct Wire<'a>(&'a Socket);

impl Write for Wire<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        send(self.0, &[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        send(self.0, pieces)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
