//! Settings that the command passes to the library.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Far memory of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Where the memory comes from.
    pub source: Source,
    /// Bytes of local memory: pages, blocks and their tables.
    pub local_bytes: u64,
    /// Name of the policy of the region behind the pages.
    pub policy: String,
    /// Bytes of a block; `None`: the policy's.
    pub block_bytes: Option<u32>,
    /// Allocations of this many bytes or more go far.
    pub min_bytes: u64,
    /// Behaviour when far memory is full.
    pub full: Full,
    /// File of the figures.
    pub page: PathBuf,
}

/// Treatment of a large allocation when far memory is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Full {
    /// It fails with ENOMEM.
    #[default]
    Refuse,
    /// It gets near memory, beyond the limit of local memory.
    Near,
}

/// Where far memory comes from: the fields of [`Access`](crate::Access), by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Description of the rack; `None`: memory of the program's own, of `reserve_bytes`, by a way that needs no rack.
    pub rack: Option<PathBuf>,
    /// Keys that override the description's, as KEY=VALUE.
    pub set: Vec<String>,
    /// Scheme under which the rack runs; empty without a rack.
    pub scheme: String,
    /// Architecture of its switch's program; empty without a rack.
    pub arch: String,
    /// The program's host.
    pub host: String,
    /// Its interface; `None`: the one with the host's address.
    pub interface: Option<String>,
    /// Host with the memory.
    pub at: String,
    /// The way.
    pub way: String,
    /// EDM: key of the region.
    pub key: u32,
    /// Address of the memory's service, `HOST:PORT`.
    pub memory: Option<String>,
    /// Address of an engine of Cowbird, `HOST:PORT`.
    pub engine: Option<String>,
    /// How set-ups are encrypted; `None`: not at all.
    pub tls: Option<Files>,
    /// Bytes to reserve in a pool; 0: use the memory that it offers to all.
    pub reserve_bytes: u64,
}

/// Files of an encrypted set-up, PEM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    /// Certificate authority of the servers.
    pub cacert: Option<PathBuf>,
    /// Our certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Name in the servers' certificates.
    pub server_name: Option<String>,
}

impl Settings {
    /// The settings as the value of [`VARIABLE`](super::VARIABLE). Errors: a path is not UTF-8.
    pub fn text(&self) -> Result<String, String> {
        serde_json::to_string(self).map_err(|error| error.to_string())
    }

    /// The settings of the library. Fails if the variable is not one that this version's command writes.
    pub fn parse(text: &str) -> Result<Settings, String> {
        serde_json::from_str(text).map_err(|error| {
            format!("{}: {error}; command and library have to be of the same version", super::VARIABLE)
        })
    }
}
