//! Who the load is to a server that asks: a certificate of the client, its key, and whether the server asked for it and accepted it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use rustls::client::ResolvesClientCert;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{AlertDescription, InconsistentKeys, SignatureScheme};

/// A certificate that is sent where the server asks for one.
#[derive(Debug)]
pub(crate) struct Identity {
    file: String,
    key: Arc<CertifiedKey>,
}

/// What a load sends to a server that asks for a certificate, and what came of it. Shared by all connections.
#[derive(Debug)]
pub(crate) struct Client {
    identity: Option<Identity>,
    /// A server asked for a certificate.
    asked: AtomicBool,
    /// The alert with which a server first ended a connection.
    alert: OnceLock<AlertDescription>,
}

impl Identity {
    /// The certificates in the PEM text of `file`, the client's own first, and the key in that of `key_file`.
    pub(crate) fn from_pem(
        (file, text): (&str, &[u8]),
        (key_file, key_text): (&str, &[u8]),
        provider: &CryptoProvider,
    ) -> Result<Self, String> {
        let refuse = |why: String| {
            Err(format!(
                "cannot use the client certificate of {file}: {why}"
            ))
        };
        let mut chain = Vec::new();
        for certificate in CertificateDer::pem_slice_iter(text) {
            match certificate {
                Ok(certificate) => chain.push(certificate),
                Err(error) => {
                    return refuse(format!("it is not in PEM form ({error:?}); {CONVERT}"));
                }
            }
        }
        if chain.is_empty() {
            return refuse(format!(
                "it contains no certificate in PEM form (-----BEGIN CERTIFICATE-----); {CONVERT}"
            ));
        }
        let refuse_key = |why: String| Err(format!("cannot use the key of {key_file}: {why}"));
        if is_encrypted(key_text) {
            return refuse_key(format!(
                "it is encrypted; write it without a passphrase: openssl pkey -in {key_file} -out key.pem"
            ));
        }
        let key = match PrivateKeyDer::from_pem_slice(key_text) {
            Ok(key) => key,
            Err(PemError::NoItemsFound) => return refuse_key(no_key(key_text, key_file)),
            Err(error) => {
                return refuse_key(format!("it is not in PEM form ({error:?}); {CONVERT}"));
            }
        };
        let key = match provider.key_provider.load_private_key(key) {
            Ok(key) => key,
            Err(error) => {
                return refuse_key(format!(
                    "{error}; use an RSA key of 2048 to 8192 bits, ECDSA with P-256 or P-384, or Ed25519"
                ));
            }
        };
        let fits = |certificate: &CertificateDer<'static>| {
            CertifiedKey::new(vec![certificate.clone()], key.clone()).keys_match()
        };
        match fits(&chain[0]) {
            Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(rustls::Error::InconsistentKeys(_)) => {
                return refuse(match chain.iter().position(|one| fits(one).is_ok()) {
                    Some(at) => format!(
                        "the key of {key_file} belongs to certificate {} of the file; put that first",
                        at + 1
                    ),
                    None => format!(
                        "the key of {key_file} does not belong to it; name its own with --key FILE"
                    ),
                });
            }
            Err(error) => return refuse(format!("it cannot be read: {error}; issue it anew")),
        }
        Ok(Self {
            file: file.to_owned(),
            key: Arc::new(CertifiedKey::new(chain, key)),
        })
    }
}

/// How other forms are brought into PEM form.
const CONVERT: &str = "convert it: openssl x509 or openssl pkey with -inform DER, or openssl pkcs12 -noenc for a .p12 file";

/// A key with a passphrase: PKCS #8 names it so, older forms have a header (RFC 1421, section 4.6.1.1).
fn is_encrypted(text: &[u8]) -> bool {
    let contains = |words: &[u8]| memchr::memmem::find(text, words).is_some();
    contains(b"-----BEGIN ENCRYPTED PRIVATE KEY-----") || contains(b"Proc-Type: 4,ENCRYPTED")
}

/// Why there is no key in a text.
fn no_key(text: &[u8], file: &str) -> String {
    if memchr::memmem::find(text, b"-----BEGIN OPENSSH PRIVATE KEY-----").is_some() {
        return format!(
            "it is in the form of OpenSSH; convert a copy: ssh-keygen -p -m PEM -f {file}"
        );
    }
    format!(
        "it contains no private key in PEM form (-----BEGIN PRIVATE KEY-----, or RSA or EC PRIVATE KEY); name the file with the key with --key \
         FILE, or {CONVERT}"
    )
}

impl Client {
    pub(crate) fn new(identity: Option<Identity>) -> Self {
        Self {
            identity,
            asked: AtomicBool::new(false),
            alert: OnceLock::new(),
        }
    }

    /// Notes the alert with which a server ended a connection.
    pub(crate) fn alerted(&self, alert: AlertDescription) {
        let _ = self.alert.set(alert);
    }

    /// The alert that was noted.
    pub(crate) fn alert(&self) -> Option<AlertDescription> {
        self.alert.get().copied()
    }

    /// A server asked for a certificate, and there is none.
    pub(crate) fn lacks(&self) -> bool {
        self.asked.load(Ordering::Relaxed) && self.identity.is_none()
    }

    /// Why a server that asked for a certificate ended the handshake with this alert, and what to do.
    pub(crate) fn explain(&self, alert: AlertDescription) -> Option<(String, String)> {
        let about_certificates = matches!(
            alert,
            AlertDescription::CertificateRequired
                | AlertDescription::NoCertificate
                | AlertDescription::BadCertificate
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateUnknown
                | AlertDescription::UnknownCA
                | AlertDescription::AccessDenied
                | AlertDescription::DecryptError
                | AlertDescription::HandshakeFailure
        );
        let asked = self.asked.load(Ordering::Relaxed);
        match &self.identity {
            _ if !asked || !about_certificates => None,
            None => Some((WANTED.to_owned(), REMEDY.to_owned())),
            Some(Identity { file, .. }) => Some((
                format!("the server does not accept the client certificate of {file} ({alert:?})"),
                "use one that a CA of the server has issued for clients and that is valid now; the server's log says more"
                    .to_owned(),
            )),
        }
    }
}

/// What a server wants that none was given to.
pub(crate) const WANTED: &str = "the server wants a certificate of the client, and none is sent";
/// How it is given.
pub(crate) const REMEDY: &str = "name one with --cert FILE, and its key with --key FILE";

impl ResolvesClientCert for Client {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.asked.store(true, Ordering::Relaxed);
        let identity = self.identity.as_ref()?;
        Some(identity.key.clone())
    }

    fn has_certs(&self) -> bool {
        self.identity.is_some()
    }
}
