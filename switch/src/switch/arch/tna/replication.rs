//! The replication engine: groups of nodes. A packet's own metadata chooses among the members of a group, and excludes
//! some.
//!
//! ```text
//!  group ─┬─ node ──────────────────────┬─ ports              all, but those that are pruned
//!         └─ set of nodes ─ one of them ┘  └─ link groups     one port of each
//! ```

mod control;

use crate::objects::ReplicationSpread;
use std::collections::{BTreeMap, BTreeSet};

/// Nodes of a set, of which a packet gets one.
pub const REPLICATION_SET: usize = 32;
/// Maximum copies of a packet by one group.
const COPIES: usize = 4096;
/// Port numbers.
const PORTS: usize = 512;
/// Bits of a hash.
const HASH_BITS: u32 = 13;

/// A set of ports.
type PortSet = [u64; PORTS / 64];

/// Copies with one replication id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicationNode {
    /// The copy's id in egress.
    pub rid: u16,
    /// A copy for each of these ports.
    pub ports: Vec<u16>,
    /// A copy for one port of each of these link groups.
    pub lags: Vec<u8>,
}

/// A node, or a set of nodes, in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicationMember {
    /// Its number.
    pub id: u32,
    /// Packets whose program names this number get no copies from it.
    pub exclusion: Option<u16>,
}

/// Members of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicationGroup {
    /// Nodes.
    pub nodes: Vec<ReplicationMember>,
    /// Sets, a node of each.
    pub sets: Vec<ReplicationMember>,
}

/// Ports of which a packet gets one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicationLag {
    /// The ports here.
    pub ports: Vec<u16>,
    /// Places above theirs that belong to other devices; packets for these get no copy here.
    pub remote_above: u32,
    /// The same below theirs.
    pub remote_below: u32,
}

/// Replication's configuration of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicationPort {
    /// The port that gets its copies while it is down, if ports are protected.
    pub backup: Option<u16>,
    /// Whether it counts as up as far as its link is.
    pub forwards: bool,
}

impl Default for ReplicationPort {
    fn default() -> ReplicationPort {
        ReplicationPort { backup: None, forwards: true }
    }
}

/// Settings of the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplicationConfig {
    /// Packets with this replication id are pruned in all nodes.
    pub global_rid: u16,
    /// Whether backups replace ports that are down.
    pub protects_ports: bool,
    /// The port that gets the controller's copies, if it is not the controller's own.
    pub copy_port: Option<u16>,
}

/// Referrer of a node or a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum User {
    Set(u32),
    Group(u16),
}

/// A value, and its referrers.
#[derive(Clone, Debug, Default)]
struct Used<T> {
    value: T,
    users: BTreeSet<User>,
}

/// Nodes, sets and groups.
#[derive(Clone, Debug, Default)]
struct Members {
    nodes: BTreeMap<u32, Used<ReplicationNode>>,
    sets: BTreeMap<u32, Used<[Option<u32>; REPLICATION_SET]>>,
    groups: BTreeMap<u16, ReplicationGroup>,
    /// Ports and link groups of all nodes, and members of all groups.
    port_count: usize,
    member_count: usize,
}

/// Nodes, sets, groups, and other configuration of copies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Engine {
    members: Members,
    lags: BTreeMap<u8, ReplicationLag>,
    /// Ports that get no copies, by the number that a packet names.
    pruned: BTreeMap<u16, PortSet>,
    ports: BTreeMap<u16, ReplicationPort>,
    pub config: ReplicationConfig,
}

fn has(set: &PortSet, port: u16) -> bool {
    set.get(usize::from(port) / 64).is_some_and(|word| word >> (port % 64) & 1 != 0)
}

impl Members {
    /// Removes a node or a set from its referrers.
    fn forget(
        &mut self,
        user: User,
        members: impl Fn(&mut ReplicationGroup) -> &mut Vec<ReplicationMember>,
        id: u32,
    ) {
        match user {
            User::Set(set) => {
                let places = self.sets.get_mut(&set).into_iter().flat_map(|set| &mut set.value);
                places.filter(|place| **place == Some(id)).for_each(|place| *place = None);
            }
            User::Group(group) => {
                if let Some(group) = self.groups.get_mut(&group) {
                    let members = members(group);
                    let before = members.len();
                    members.retain(|member| member.id != id);
                    self.member_count -= before - members.len();
                }
            }
        }
    }
}

impl Engine {
    /// Whether there is such a group.
    pub fn has_group(&self, group: u64) -> bool {
        u16::try_from(group).is_ok_and(|group| self.members.groups.contains_key(&group))
    }

    fn is_up(&self, down: &BTreeSet<u16>, port: u16) -> bool {
        !down.contains(&port) && self.ports.get(&port).is_none_or(|port| port.forwards)
    }

    fn backup_of(&self, port: u16) -> u16 {
        let backup = self.ports.get(&port).and_then(|port| port.backup);
        backup.filter(|_| self.config.protects_ports).unwrap_or(port)
    }

    /// Calls `copy` with port and replication id of each copy. Returns whether all were made.
    pub(super) fn copies(
        &self,
        group: u64,
        spread: &ReplicationSpread,
        second: bool,
        down: &BTreeSet<u16>,
        mut copy: impl FnMut(u16, u16),
    ) -> bool {
        let Some(group) = u16::try_from(group).ok().and_then(|group| self.members.groups.get(&group)) else {
            return true;
        };
        let mut left = COPIES;
        let mut limited = |port, rid| {
            if left > 0 {
                left -= 1;
                copy(port, rid);
                return true;
            }
            false
        };
        let is_in = |member: &&ReplicationMember| member.exclusion != Some(spread.exclusion);
        for member in group.nodes.iter().filter(is_in) {
            let Some(node) = self.members.nodes.get(&member.id) else { continue };
            if !self.of_node(&node.value, spread, second, down, &mut limited) {
                return false;
            }
        }
        for member in group.sets.iter().filter(is_in) {
            let chosen =
                self.members.sets.get(&member.id).and_then(|set| chosen(&set.value, spread.set_hash));
            let Some(node) = chosen.and_then(|node| self.members.nodes.get(&node)) else { continue };
            if !self.of_node(&node.value, spread, second, down, &mut limited) {
                return false;
            }
        }
        true
    }

    fn of_node(
        &self,
        node: &ReplicationNode,
        spread: &ReplicationSpread,
        second: bool,
        down: &BTreeSet<u16>,
        copy: &mut impl FnMut(u16, u16) -> bool,
    ) -> bool {
        let prunes = node.rid == spread.rid || spread.rid == self.config.global_rid;
        let pruned = self.pruned.get(&spread.prune).filter(|_| prunes);
        let is_pruned = |port: u16| pruned.is_some_and(|set| has(set, port));
        for &port in node.ports.iter().filter(|port| !is_pruned(**port)) {
            let port = if self.is_up(down, port) { port } else { self.backup_of(port) };
            if !copy(port, node.rid) {
                return false;
            }
        }
        // The second generation mixes the node into the hash.
        let mixed = if second { node.rid & ((1 << HASH_BITS) - 1) } else { 0 };
        for lag in &node.lags {
            let Some(lag) = self.lags.get(lag) else { continue };
            let Some((port, is_live)) = self.of_lag(lag, spread.lag_hash ^ mixed, down) else { continue };
            if is_pruned(port) {
                continue;
            }
            if !copy(if is_live { port } else { self.backup_of(port) }, node.rid) {
                return false;
            }
        }
        true
    }

    /// The port of a link group that a hash selects, and whether it is up. A port that is down is replaced by one of those
    /// that are up, if any is.
    fn of_lag(&self, lag: &ReplicationLag, hash: u16, down: &BTreeSet<u16>) -> Option<(u16, bool)> {
        let own = lag.ports.len() as u64;
        let below = u64::from(lag.remote_below);
        let all = (own + below + u64::from(lag.remote_above)) & ((1 << HASH_BITS) - 1);
        let at = u64::from(hash).checked_rem(all).unwrap_or(0).checked_sub(below)?;
        let port = *lag.ports.get(at as usize)?;
        if self.is_up(down, port) {
            return Some((port, true));
        }
        let mut live = lag.ports.iter().filter(|port| self.is_up(down, **port));
        let count = live.clone().count() as u64;
        match u64::from(hash).checked_rem(count).and_then(|at| live.nth(at as usize)) {
            Some(port) => Some((*port, true)),
            None => Some((port, false)),
        }
    }
}

/// The node of a set that a hash selects: the one in its place, or if that is free one of all.
fn chosen(set: &[Option<u32>; REPLICATION_SET], hash: u16) -> Option<u32> {
    let hash = usize::from(hash);
    set[hash % REPLICATION_SET].or_else(|| {
        let live = set.iter().flatten().count();
        set.iter().flatten().nth(hash.checked_rem(live)?).copied()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_place_of_a_set_goes_to_another_node() {
        let mut set = [None; REPLICATION_SET];
        assert_eq!(chosen(&set, 5), None);
        (set[2], set[7]) = (Some(20), Some(70));
        assert_eq!(chosen(&set, 32 + 7), Some(70), "its own place");
        assert_eq!((chosen(&set, 4), chosen(&set, 5)), (Some(20), Some(70)), "the hash modulo two nodes");
    }

    #[test]
    fn a_link_group_has_places_elsewhere_and_ports_that_are_down() {
        let engine = Engine::default();
        let lag = ReplicationLag { ports: vec![3, 4, 5], remote_above: 2, remote_below: 1 };
        let of = |hash, down: &[u16]| engine.of_lag(&lag, hash, &down.iter().copied().collect());
        assert_eq!((of(0, &[]), of(1, &[]), of(3, &[])), (None, Some((3, true)), Some((5, true))));
        assert_eq!((of(4, &[]), of(5, &[]), of(6, &[])), (None, None, None));
        assert_eq!(of(1, &[3]), Some((5, true)), "1 modulo the two that are up");
        assert_eq!(of(1, &[3, 4, 5]), Some((3, false)));
        assert_eq!(engine.of_lag(&ReplicationLag::default(), 9, &BTreeSet::new()), None);
    }
}
