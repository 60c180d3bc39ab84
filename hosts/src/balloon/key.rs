//! The key that the service of a pool shares with its memory nodes.
//!
//! A memory node's answers have the tokens of all extents, and its commands destroy them. The set-up service of a board is open to each
//! client of the board, so commands need a proof of their own: the key, in the metadata of each call. TLS keeps it secret on its way.

use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use subtle::ConstantTimeEq as _;
use tonic::Status;
use tonic::metadata::{MetadataMap, MetadataValue};

/// Name of the metadata that has the key.
const NAME: &str = "p4rack-pool-key-bin";
/// Bytes of a key at least: 128 bits can't be guessed.
const BYTES_MIN: usize = 16;
/// Bytes of a key at most.
const BYTES_MAX: usize = 1_024;

/// Why a file is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// It can't be read.
    #[error("{path}: {error}{}", help(.path, .error))]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// It is too short or too long.
    #[error("{path}: {bytes} bytes were read; a key has {BYTES_MIN} to {BYTES_MAX} random ones")]
    Length {
        /// The file.
        path: PathBuf,
        /// Its bytes, of which one more than a key has are read.
        bytes: usize,
    },
}

/// Advice for a file that can't be read.
fn help(path: &Path, error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => {
            format!(
                "; `head -c 32 /dev/urandom > {}` makes a key, or copy that of the boards",
                path.display()
            )
        }
        _ => String::new(),
    }
}

/// The key.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(Arc<[u8]>);

impl Key {
    /// A key with these bytes. `None`: there are too few or too many.
    pub fn new(bytes: &[u8]) -> Option<Key> {
        (BYTES_MIN..=BYTES_MAX).contains(&bytes.len()).then(|| Key(bytes.into()))
    }

    /// Reads a key from a file; all bytes of the file count.
    pub fn read(path: &Path) -> Result<Key, KeyError> {
        let read = || {
            let mut bytes = Vec::new();
            File::open(path)?.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read().map_err(|error| KeyError::File { path: path.to_owned(), error })?;
        Key::new(&bytes).ok_or_else(|| KeyError::Length { path: path.to_owned(), bytes: bytes.len() })
    }

    /// Adds the key to a call.
    pub(super) fn prove(&self, metadata: &mut MetadataMap) {
        metadata.insert_bin(NAME, MetadataValue::from_bytes(&self.0));
    }

    /// Whether a call has the key. Errors: it has none, or another one. The time says nothing about how much of it is right.
    pub(super) fn check(&self, metadata: &MetadataMap) -> Result<(), Status> {
        let refused = |problem: &str| {
            Err(Status::unauthenticated(format!(
                "{problem}: commands to a memory node need the key file that the node was started with"
            )))
        };
        match metadata.get_bin(NAME).map(MetadataValue::to_bytes) {
            Some(Ok(shown)) if bool::from(self.0.ct_eq(&shown)) => Ok(()),
            Some(_) => refused("the key is another one"),
            None => refused("there is no key"),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // It is a secret.
        f.write_str("Key")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_key_is_a_proof() {
        let key = |byte: u8| Key::new(&[byte; 32]).expect("it is long enough");
        let mut metadata = MetadataMap::new();
        assert!(key(1).check(&metadata).is_err_and(|status| status.message().contains("no key")));
        key(1).prove(&mut metadata);
        assert!(key(1).check(&metadata).is_ok());
        assert!(key(2).check(&metadata).is_err_and(|status| status.message().contains("another")));
    }

    #[test]
    fn what_can_be_guessed_is_no_key() {
        assert!(Key::new(&[1; BYTES_MIN - 1]).is_none() && Key::new(&[1; BYTES_MAX + 1]).is_none());
        let missing = Key::read(Path::new("/no/such/file")).expect_err("there is none").to_string();
        assert!(missing.contains("makes a key"), "{missing}");
        let endless = Key::read(Path::new("/dev/zero")).expect_err("it is too long").to_string();
        assert!(endless.contains("1025 bytes were read"), "{endless}");
        let folder = Key::read(Path::new("/dev")).expect_err("it is a folder").to_string();
        assert!(!folder.contains("makes a key"), "{folder}");
    }
}
