//! Ways to remote memory that Cowbird's paper compares (§7).

use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// How a thread reaches remote memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// Not at all: everything is in local memory.
    Local,
    /// By one-sided RDMA, one request at a time.
    RdmaSync,
    /// By one-sided RDMA, many requests under way.
    RdmaAsync,
    /// By Cowbird with the engine on a spare host, many requests under way.
    CowbirdSpot,
    /// By Cowbird with the engine in a switch, the same.
    CowbirdP4,
}

impl Way {
    /// All.
    pub const ALL: [Way; 5] = [Way::Local, Way::RdmaSync, Way::RdmaAsync, Way::CowbirdSpot, Way::CowbirdP4];

    /// Those that need no engine in a switch.
    pub const WITHOUT_SWITCH: [Way; 4] = [Way::Local, Way::RdmaSync, Way::RdmaAsync, Way::CowbirdSpot];

    /// Its name in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Way::Local => "local",
            Way::RdmaSync => "rdma-sync",
            Way::RdmaAsync => "rdma-async",
            Way::CowbirdSpot => "cowbird-spot",
            Way::CowbirdP4 => "cowbird-p4",
        }
    }

    /// Its name for people.
    pub const fn title(self) -> &'static str {
        match self {
            Way::Local => "local memory",
            Way::RdmaSync => "RDMA, one by one",
            Way::RdmaAsync => "RDMA, many at once",
            Way::CowbirdSpot => "Cowbird-Spot",
            Way::CowbirdP4 => "Cowbird-P4",
        }
    }

    /// Requests under way at most, where as many as `most` may be.
    pub const fn depth(self, most: usize) -> usize {
        match self {
            Way::RdmaSync => 1,
            _ => most,
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Way {
    type Err = String;
    fn from_str(text: &str) -> Result<Way, String> {
        Way::ALL.into_iter().find(|way| way.name() == text).ok_or_else(|| {
            let names = Way::ALL.map(Way::name).join(", ");
            format!("`{text}` is no way to remote memory; there are {names}")
        })
    }
}

impl Serialize for Way {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for way in Way::ALL {
            assert_eq!(way.name().parse(), Ok(way));
        }
        assert!("cowbird".parse::<Way>().unwrap_err().contains("cowbird-spot"));
        assert_eq!((Way::RdmaSync.depth(100), Way::CowbirdP4.depth(100)), (1, 100));
    }
}
