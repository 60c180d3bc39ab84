//! Where the copies of a group or clone session go, while ports come and go.
//!
//! Which of a copy's replicas is used is decided when the group is set and when a port changes, not for each packet.

use crate::error::ControlError;
use std::collections::BTreeSet;

/// A copy that the replication engine makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Replica {
    /// Egress port.
    pub port: u16,
    /// Number by which the program tells the copy from others.
    pub instance: u16,
}

/// Most replicas of a group or session, those that stand in included.
const MAX_REPLICAS: usize = 1024;

/// The copies of a multicast group or clone session. Each has a replica and others that stand in, in order, while
/// its port is down; with all of their ports down it goes to the first, and is lost there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replicas {
    /// The first of each is the preferred one; none is empty.
    choices: Vec<Vec<Replica>>,
    live: Vec<Replica>,
}

impl Replicas {
    /// A copy each; of its replicas the first whose port is up is used. A copy without replicas is none.
    pub fn new(mut choices: Vec<Vec<Replica>>) -> Replicas {
        choices.retain(|choice| !choice.is_empty());
        let mut replicas = Replicas { choices, live: Vec::new() };
        replicas.route(&BTreeSet::new());
        replicas
    }

    /// Where the copies go now.
    pub fn live(&self) -> &[Replica] {
        &self.live
    }

    /// Chooses anew.
    pub(crate) fn route(&mut self, down: &BTreeSet<u16>) {
        self.live.clear();
        let choose = |choice: &Vec<Replica>| {
            choice.iter().find(|replica| !down.contains(&replica.port)).or(choice.first()).copied()
        };
        self.live.extend(self.choices.iter().filter_map(choose));
    }

    /// Refuses too many replicas, and two with the same port and instance: nothing would tell them apart.
    pub(crate) fn check(&self, name: &str) -> Result<(), ControlError> {
        let mut all: Vec<(u16, u16)> =
            self.choices.iter().flatten().map(|replica| (replica.port, replica.instance)).collect();
        if all.len() > MAX_REPLICAS {
            return Err(ControlError::ResourceExhausted { object: name.into(), limit: MAX_REPLICAS as u64 });
        }
        all.sort_unstable();
        match all.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(ControlError::Invalid(format!(
                "{name}: port {} with instance {} is there twice",
                pair[0].0, pair[0].1
            ))),
            None => Ok(()),
        }
    }
}

impl From<Vec<Replica>> for Replicas {
    /// Copies that nothing stands in for.
    fn from(replicas: Vec<Replica>) -> Replicas {
        Replicas::new(replicas.into_iter().map(|replica| vec![replica]).collect())
    }
}
