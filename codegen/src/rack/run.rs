//! What `p4rack up` runs at a time.

use super::Scheme;
use p4rack_fabric::remote::Way;
use serde::{Serialize, Serializer};
use std::fmt;

/// A column of `up`'s table: a scheme of the switch, and the way to a store's remote memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// What runs on the switch.
    pub scheme: Scheme,
    /// How a store's remote memory is reached.
    pub way: Option<Way>,
}

impl Run {
    /// Its name in files and on the command line: the way's, or the scheme's if the way is a protocol of it.
    pub fn name(&self) -> String {
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
        Run { scheme, way: None }
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
