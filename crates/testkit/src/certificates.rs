//! Certificates of a CA that exists for one test.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd,
};

/// A CA that nobody trusts unless told to.
#[derive(Debug)]
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate with its key, both as PEM.
#[derive(Debug)]
pub struct Issued {
    /// The certificate alone.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

impl Authority {
    /// A new one.
    #[expect(
        clippy::new_without_default,
        reason = "each is another one, which a default would hide"
    )]
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("ring makes keys");
        let issuer = CertifiedIssuer::self_signed(params, key);
        Self(issuer.expect("the parameters fit each other"))
    }

    /// Its certificate as PEM.
    pub fn certificate(&self) -> String {
        self.0.pem()
    }

    /// Its key as PEM, for a server that shows the CA's own certificate.
    pub fn key(&self) -> String {
        self.0.key().serialize_pem()
    }

    /// A server's certificate for these names and addresses.
    pub fn issue(&self, hosts: &[&str]) -> Issued {
        self.signed(hosts, |_| {})
    }

    /// One that expired at the beginning of 2021.
    pub fn issue_expired(&self, hosts: &[&str]) -> Issued {
        self.signed(hosts, |params| {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2021, 1, 1);
        })
    }

    /// A client's certificate, for a key of its own or this one (PKCS #8, PEM).
    pub fn issue_client(&self, key: Option<&str>) -> Issued {
        let key = match key {
            Some(pem) => KeyPair::from_pem(pem).expect("a key of a test is one"),
            None => KeyPair::generate().expect("ring makes keys"),
        };
        self.signed_for(&key, &[], |params| {
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            // With the name of its issuer it would look as if it had issued itself.
            params.distinguished_name = DistinguishedName::new();
            params
                .distinguished_name
                .push(DnType::CommonName, "a client");
        })
    }

    fn signed(&self, hosts: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Issued {
        let key = KeyPair::generate().expect("ring makes keys");
        self.signed_for(&key, hosts, change)
    }

    fn signed_for(
        &self,
        key: &KeyPair,
        hosts: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> Issued {
        let hosts: Vec<String> = hosts.iter().copied().map(str::to_owned).collect();
        let mut params = CertificateParams::new(hosts).expect("hosts of a test are valid");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        change(&mut params);
        let certificate = params.signed_by(key, &self.0);
        Issued {
            certificate: certificate.expect("the parameters fit each other").pem(),
            key: key.serialize_pem(),
        }
    }
}
