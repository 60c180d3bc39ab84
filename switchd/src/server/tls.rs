//! Encrypted connections: identity of the server and, if requested, of its controllers.

use super::ServeError;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};

/// Files for an encrypted server, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTls {
    /// Certificate of the server, with intermediate certificates.
    pub certificate: PathBuf,
    /// Key of the certificate.
    pub key: PathBuf,
    /// Authority of the controllers' certificates; without it anybody may connect.
    pub client_ca: Option<PathBuf>,
}

impl ServerTls {
    /// Reads the files.
    pub(super) fn config(&self) -> Result<Arc<ServerConfig>, ServeError> {
        let unusable = |error: &dyn std::fmt::Display| ServeError::Identity(error.to_string());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&error))?;
        let chain = certificates(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&read(&self.key)?).map_err(|error| unusable(&error))?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                roots.add_parsable_certificates(certificates(path)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider).build();
                builder.with_client_cert_verifier(verifier.map_err(|error| ServeError::Certificate {
                    path: path.clone(),
                    reason: error.to_string(),
                })?)
            }
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|error| unusable(&error))?;
        config.alpn_protocols.push(b"h2".to_vec());
        Ok(Arc::new(config))
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ServeError> {
    let refused = |reason: String| ServeError::Certificate { path: path.to_owned(), reason };
    let text = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(found) if found.is_empty() => Err(refused("it holds no certificate in PEM".into())),
        Ok(found) => Ok(found),
        Err(error) => Err(refused(error.to_string())),
    }
}

/// Contents of a PEM file.
fn read(path: &Path) -> Result<Vec<u8>, ServeError> {
    let refused = |reason: String| ServeError::Certificate { path: path.to_owned(), reason };
    let text = std::fs::read(path).map_err(|error| refused(error.to_string()))?;
    match text.windows(11).any(|window| window == b"-----BEGIN ") {
        true => Ok(text),
        false => Err(refused("it holds nothing in PEM (-----BEGIN …)".into())),
    }
}
