//! Encryption of the set-up's connections.

use super::error::SetupError;
use std::path::{Path, PathBuf};
use tonic::transport::{Certificate, ClientTlsConfig, Identity, ServerTlsConfig};

/// Files for an encrypted server, PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTls {
    /// Certificate of the server.
    pub certificate: PathBuf,
    /// Key of the certificate.
    pub key: PathBuf,
    /// Authority of the clients' certificates; without it anybody may connect.
    pub client_ca: Option<PathBuf>,
}

/// Files for an encrypted connection to a server, PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTls {
    /// Authority of the server's certificate.
    pub ca: PathBuf,
    /// The client's certificate and key, if the server asks for one.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Name in the server's certificate, if it differs from the address.
    pub server_name: Option<String>,
}

impl ServerTls {
    pub(super) fn config(&self) -> Result<ServerTlsConfig, SetupError> {
        let identity = Identity::from_pem(read(&self.certificate)?, read(&self.key)?);
        let config = ServerTlsConfig::new().identity(identity);
        Ok(match &self.client_ca {
            Some(path) => config.client_ca_root(Certificate::from_pem(read(path)?)),
            None => config,
        })
    }
}

impl ClientTls {
    pub(super) fn config(&self) -> Result<ClientTlsConfig, SetupError> {
        let mut config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(&self.ca)?));
        if let Some((certificate, key)) = &self.identity {
            config = config.identity(Identity::from_pem(read(certificate)?, read(key)?));
        }
        if let Some(name) = &self.server_name {
            config = config.domain_name(name);
        }
        Ok(config)
    }
}

/// Contents of a PEM file.
fn read(path: &Path) -> Result<Vec<u8>, SetupError> {
    let refused = |reason: String| SetupError::File { path: path.to_owned(), reason };
    let text = std::fs::read(path).map_err(|error| refused(error.to_string()))?;
    match text.windows(11).any(|window| window == b"-----BEGIN ") {
        true => Ok(text),
        false => Err(refused("it holds nothing in PEM (-----BEGIN …)".into())),
    }
}
