//! Encrypted connections: who the server is and, where asked for, who its controllers are.

use super::service::ServeError;
use std::path::{Path, PathBuf};
use tonic::transport::{Certificate, Identity, ServerTlsConfig};

/// Files for an encrypted server, PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTls {
    /// The server's certificate, and those between it and its authority.
    pub certificate: PathBuf,
    /// The certificate's key.
    pub key: PathBuf,
    /// Authority that must have signed a controller's certificate; without it anybody may connect.
    pub client_ca: Option<PathBuf>,
}

impl ServerTls {
    /// Reads the files.
    pub(super) fn config(&self) -> Result<ServerTlsConfig, ServeError> {
        let identity = Identity::from_pem(read(&self.certificate)?, read(&self.key)?);
        let config = ServerTlsConfig::new().identity(identity);
        Ok(match &self.client_ca {
            Some(path) => config.client_ca_root(Certificate::from_pem(read(path)?)),
            None => config,
        })
    }
}

/// What stands in a file that should hold PEM.
fn read(path: &Path) -> Result<Vec<u8>, ServeError> {
    let refused = |reason: String| ServeError::Certificate { path: path.to_owned(), reason };
    let text = std::fs::read(path).map_err(|error| refused(error.to_string()))?;
    match text.windows(11).any(|window| window == b"-----BEGIN ") {
        true => Ok(text),
        false => Err(refused("it holds nothing in PEM (-----BEGIN …)".into())),
    }
}
