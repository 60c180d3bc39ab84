//! A run of `p4rack up`.

use super::Scheme;
use p4rack_fabric::remote::Way;
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A server of keys and values of another project, which holds the records of a store in place of p4rack's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvServer {
    /// Redis.
    Redis,
    /// Memcached.
    Memcached,
}

impl KvServer {
    /// All.
    pub const ALL: [KvServer; 2] = [KvServer::Redis, KvServer::Memcached];

    /// Its name in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            KvServer::Redis => "redis",
            KvServer::Memcached => "memcached",
        }
    }

    /// Names of all, for help texts and errors.
    pub fn names() -> String {
        KvServer::ALL.map(KvServer::name).join(", ")
    }
}

impl fmt::Display for KvServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for KvServer {
    type Err = String;
    fn from_str(text: &str) -> Result<KvServer, String> {
        let found = KvServer::ALL.into_iter().find(|server| server.name() == text);
        found.ok_or_else(|| {
            format!("`{text}` is no server of keys and values; there are {}", KvServer::names())
        })
    }
}

/// A column of `up`'s table: a scheme of the switch, and the way to a store's remote memory, or its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Scheme of the switch.
    pub scheme: Scheme,
    /// How a store's remote memory is reached.
    pub way: Option<Way>,
    /// The server of the records, if it is not p4rack's; then there is no way.
    pub server: Option<KvServer>,
}

impl Run {
    /// Its name in files and on the command line: the server's, the way's, or the scheme's if the way is a protocol of it.
    pub fn name(&self) -> String {
        if let Some(server) = self.server {
            return server.name().to_owned();
        }
        match self.way {
            Some(way) if !self.scheme.variants().any(|variant| variant == way.name()) => {
                way.name().to_owned()
            }
            _ => self.scheme.name(),
        }
    }
}

impl From<Scheme> for Run {
    fn from(scheme: Scheme) -> Run {
        Run { scheme, way: None, server: None }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name())
    }
}

impl Serialize for Run {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
