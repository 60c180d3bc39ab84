//! Destinations of the copies of a group or clone session, as ports go up and down.
//!
//! Which replica of a copy is used is decided when the group is set and when a port changes, not per packet.

use crate::error::ControlError;
use std::collections::BTreeSet;

/// A replica: one destination of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Replica {
    /// Egress port.
    pub port: u16,
    /// Number by which the program distinguishes copies.
    pub instance: u16,
}

/// Maximum replicas of a group or session, backups included.
const MAX_REPLICAS: usize = 1024;

/// The copies of a multicast group or clone session. Each copy has a preferred replica and backups for when
/// its port is down, in order. If all ports are down, the copy goes to the first replica and is lost there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replicas {
    /// Replicas of each copy, the preferred one first; none is empty.
    choices: Vec<Vec<Replica>>,
    live: Vec<Replica>,
}

impl Replicas {
    /// One list of replicas per copy; the first one whose port is up is used. Empty lists are dropped.
    pub fn new(mut choices: Vec<Vec<Replica>>) -> Replicas {
        choices.retain(|choice| !choice.is_empty());
        let mut replicas = Replicas { choices, live: Vec::new() };
        replicas.route(&BTreeSet::new());
        replicas
    }

    /// The replicas in use now.
    pub fn live(&self) -> &[Replica] {
        &self.live
    }

    /// Chooses replicas again.
    pub(crate) fn route(&mut self, down: &BTreeSet<u16>) {
        self.live.clear();
        let choose = |choice: &Vec<Replica>| {
            choice.iter().find(|replica| !down.contains(&replica.port)).or(choice.first()).copied()
        };
        self.live.extend(self.choices.iter().filter_map(choose));
    }

    /// Rejects too many replicas, and two replicas with the same port and instance, which nothing could
    /// distinguish.
    pub(crate) fn check(&self, name: &str) -> Result<(), ControlError> {
        let mut all: Vec<(u16, u16)> =
            self.choices.iter().flatten().map(|replica| (replica.port, replica.instance)).collect();
        if all.len() > MAX_REPLICAS {
            return Err(ControlError::ResourceExhausted { object: name.into(), limit: MAX_REPLICAS as u64 });
        }
        all.sort_unstable();
        match all.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(ControlError::Invalid(format!(
                "{name}: port {} with instance {} occurs twice",
                pair[0].0, pair[0].1
            ))),
            None => Ok(()),
        }
    }
}

impl From<Vec<Replica>> for Replicas {
    /// Copies without backups.
    fn from(replicas: Vec<Replica>) -> Replicas {
        Replicas::new(replicas.into_iter().map(|replica| vec![replica]).collect())
    }
}
