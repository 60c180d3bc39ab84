//! Rights to memory that were handed on, such as those to an extent of a balloon.

use super::{Attachment, Opened, Pieces, RemoteError, clio, pair};
use crate::roce::setup::Token;
use p4rack_fabric::clio::lib::Credentials;
use p4rack_fabric::remote::Way;

/// Rights to a range of memory. It stays its owner's, which may take it back at any time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Granted {
    /// To a process on a board of Clio.
    Process {
        /// The process.
        credentials: Credentials,
        /// Address of the range's first byte.
        address: u64,
        /// Its bytes.
        bytes: u64,
    },
    /// To a region of an RDMA pool.
    Region {
        /// To attach to its protection domain.
        token: Token,
        /// Its key.
        key: u32,
        /// Address of its first byte.
        address: u64,
        /// Its bytes.
        bytes: u64,
    },
}

impl Granted {
    /// The way to it.
    pub fn way(&self) -> Way {
        match self {
            Granted::Process { .. } => Way::CLIO,
            Granted::Region { .. } => Way::RDMA,
        }
    }

    /// Its bytes.
    pub fn bytes(&self) -> u64 {
        let (Granted::Process { bytes, .. } | Granted::Region { bytes, .. }) = self;
        *bytes
    }

    /// Opens the way to it, from the calling thread's network namespace. The memory of `attachment` is the set-up service of the board or the
    /// pool; an adapter is needed by RDMA alone. Errors: the place lacks a field, the service does not answer, or the rights have ended.
    pub fn open(&self, attachment: Attachment) -> Result<Opened, RemoteError> {
        let (remote, held) = match self {
            Granted::Process { credentials, address, bytes } => {
                clio::open_granted(&attachment, *credentials, (*address, *bytes))?
            }
            Granted::Region { token, key, address, bytes } => {
                pair::open_granted(attachment, token, (*key, *address, *bytes))?
            }
        };
        Ok((Box::new(Pieces::new(remote)), held))
    }
}
