//! Encrypted connections: identity of the server and, if requested, of its clients.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

/// Why files for TLS can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// A file can't be used.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// The mistake in it.
        reason: String,
    },
    /// Certificate and key do not match, or their kind is not supported.
    #[error("certificate and key can't be used: {0}; the key must be the certificate's, both in PEM")]
    Identity(String),
}

/// Files for an encrypted server, PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTls {
    /// Certificate of the server, with intermediate certificates.
    pub certificate: PathBuf,
    /// Key of the certificate.
    pub key: PathBuf,
    /// Authority of the clients' certificates; without it anybody may connect.
    pub client_ca: Option<PathBuf>,
}

/// Files for an encrypted connection to a server, PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientTls {
    /// Authority of the server's certificate.
    pub cacert: Option<PathBuf>,
    /// The client's certificate and key, if the server asks for one.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Name in the server's certificate, if it differs from the address.
    pub server_name: Option<String>,
}

impl ServerTls {
    /// Reads the files.
    pub fn config(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let unusable = |error: &dyn std::fmt::Display| TlsError::Identity(error.to_string());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&error))?;
        let chain = identity(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&read(&self.key)?).map_err(|error| unusable(&error))?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                roots.add_parsable_certificates(certificates(path)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider).build();
                builder.with_client_cert_verifier(verifier.map_err(|error| refused(path, error.to_string()))?)
            }
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|error| unusable(&error))?;
        config.alpn_protocols.push(b"h2".to_vec());
        Ok(Arc::new(config))
    }
}

impl ClientTls {
    /// Reads the files.
    pub fn config(&self) -> Result<ClientTlsConfig, TlsError> {
        let mut config = ClientTlsConfig::new();
        if let Some(path) = &self.cacert {
            config = config.ca_certificate(Certificate::from_pem(read(path)?));
        }
        if let Some((certificate, key)) = &self.identity {
            identity(certificate)?;
            config = config.identity(Identity::from_pem(read(certificate)?, read(key)?));
        }
        if let Some(name) = &self.server_name {
            config = config.domain_name(name);
        }
        Ok(config)
    }
}

/// TLS's objection to a connection, and a remedy; `None` if the error is another one. `error` is a gRPC status or an
/// error of its transport.
pub fn objection(error: &(dyn Error + 'static)) -> Option<&'static str> {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.map(|cause| cause.to_string()).find_map(|cause| {
        // As rustls names alerts and errors of certificates.
        let known = [
            (
                "CertificateRequired",
                "the server wants a client certificate: give one of its authority with --cert and --private-key",
            ),
            (
                "UnsupportedCertVersion",
                "the server's certificate is X.509 version 1: it needs one of version 3, with its name as subjectAltName",
            ),
            (
                "UnknownCA",
                "the server does not know the authority of the client certificate: give another with --cert and --private-key",
            ),
        ];
        known.into_iter().find(|(name, _)| cause.contains(name)).map(|(_, objection)| objection)
    })
}

/// A chain of certificates, the own one first.
fn identity(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain = certificates(path)?;
    match chain.first().and_then(|own| version(own)) {
        Some(3) | None => Ok(chain),
        Some(version) => Err(refused(
            path,
            format!(
                "the certificate is X.509 version {version}, and TLS needs version 3, with the name as subjectAltName \
                 (openssl req -x509 … -addext subjectAltName=DNS:NAME)"
            ),
        )),
    }
}

/// Version of an X.509 certificate: 1 if it is not written (RFC 5280, section 4.1). `None` if this is no certificate.
fn version(der: &[u8]) -> Option<u8> {
    const SEQUENCE: u8 = 0x30;
    /// `[0] EXPLICIT`.
    const VERSION: u8 = 0xa0;
    let certificate = content(der, SEQUENCE)?;
    let signed = content(certificate, SEQUENCE)?;
    match signed.first()? {
        &VERSION => content(content(signed, VERSION)?, 2)?.first()?.checked_add(1),
        _ => Some(1),
    }
}

/// Content of the DER element with this tag at the beginning of some bytes.
fn content(der: &[u8], tag: u8) -> Option<&[u8]> {
    let (first, rest) = der.split_first()?;
    let (&length, rest) = rest.split_first()?;
    let (length, rest) = match length {
        0..0x80 => (usize::from(length), rest),
        _ => {
            let (bytes, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
            let number = bytes
                .iter()
                .try_fold(0usize, |sum, byte| sum.checked_mul(256).map(|sum| sum | usize::from(*byte)));
            (number?, rest)
        }
    };
    (*first == tag).then(|| rest.get(..length))?
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(found) if found.is_empty() => Err(refused(path, "it holds no certificate in PEM".into())),
        Ok(found) => Ok(found),
        Err(error) => Err(refused(path, error.to_string())),
    }
}

/// Contents of a PEM file.
fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let text = std::fs::read(path).map_err(|error| refused(path, error.to_string()))?;
    match text.windows(11).any(|window| window == b"-----BEGIN ") {
        true => Ok(text),
        false => Err(refused(path, "it holds nothing in PEM (-----BEGIN …)".into())),
    }
}

fn refused(path: &Path, reason: String) -> TlsError {
    TlsError::File { path: path.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_nonsense_has_none() {
        let second = [0x30, 7, 0x30, 5, 0xa0, 3, 2, 1, 2];
        assert_eq!(version(&second), Some(3));
        assert_eq!(version(&[0x30, 0x81, 5, 0x30, 3, 2, 1, 9]), Some(1), "its serial number comes first");
        for wrong in [&[][..], &[0x30], &[0x30, 5, 0x30, 3], &[0x31, 0], &[0x30, 0x89, 1], &second[..8]] {
            assert_eq!(version(wrong), None, "{wrong:?}");
        }
    }
}
