//! The replication engine: groups of nodes. What a packet says of itself chooses among the members of a group, and
//! excludes some.
//!
//! ```text
//!  group ─┬─ node ──────────────────────┬─ ports              all, but those that are pruned
//!         └─ set of nodes ─ one of them ┘  └─ link groups     one port of each
//! ```

use crate::error::ControlError;
use crate::objects::ReplicationSpread;
use crate::switch::Switch;
use std::collections::{BTreeMap, BTreeSet};

/// Nodes of a set, of which a packet gets one.
pub const REPLICATION_SET: usize = 32;
/// Maximum copies of a packet by one group.
const COPIES: usize = 4096;
/// Maximum nodes of a group, and maximum sets.
const MEMBERS: usize = 1024;
/// Maximum nodes, and maximum sets.
const MOST: usize = 1 << 16;
/// Maximum groups and sets that have a node, and groups that have a set: its end changes all of them.
const USERS: usize = 64;
/// Maximum ports and link groups of all nodes, and members of all groups.
const ALL: usize = 1 << 20;
/// Port numbers.
const PORTS: usize = 512;
/// Bits of a hash.
const HASH_BITS: u32 = 13;

/// A set of ports.
type PortSet = [u64; PORTS / 64];

/// Copies with one replication id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicationNode {
    /// What egress reads as the copy's id.
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

/// What a packet to a group is copied to.
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

/// What replication has to know of a port.
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

/// What refers to a node or a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum User {
    Set(u32),
    Group(u16),
}

/// Where a node or a set stands in what refers to it.
#[derive(Clone, Debug, Default)]
pub struct ReplicationPlaces(Vec<(User, usize, Option<u16>)>);

/// All that the engine knows, to be restored.
#[derive(Clone, Debug)]
pub struct ReplicationState(Box<Engine>);

/// A value, and what refers to it.
#[derive(Clone, Debug, Default)]
struct Used<T> {
    value: T,
    users: BTreeSet<User>,
}

/// Nodes, sets, groups, and what else decides on copies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Engine {
    nodes: BTreeMap<u32, Used<ReplicationNode>>,
    sets: BTreeMap<u32, Used<[Option<u32>; REPLICATION_SET]>>,
    groups: BTreeMap<u16, ReplicationGroup>,
    lags: BTreeMap<u8, ReplicationLag>,
    /// Ports that get no copies, by the number that a packet names.
    pruned: BTreeMap<u16, PortSet>,
    ports: BTreeMap<u16, ReplicationPort>,
    pub config: ReplicationConfig,
    /// Ports and link groups of all nodes, and members of all groups.
    port_count: usize,
    member_count: usize,
}

fn has(set: &PortSet, port: u16) -> bool {
    set.get(usize::from(port) / 64).is_some_and(|word| word >> (port % 64) & 1 != 0)
}

impl Engine {
    /// Whether there is such a group.
    pub fn has_group(&self, group: u64) -> bool {
        u16::try_from(group).is_ok_and(|group| self.groups.contains_key(&group))
    }

    /// Where a node or a set stands.
    fn places(
        &self,
        users: Option<&BTreeSet<User>>,
        members: impl Fn(&ReplicationGroup) -> &Vec<ReplicationMember>,
        id: u32,
    ) -> ReplicationPlaces {
        let one = |user: &User| match user {
            User::Set(set) => {
                let at = self.sets.get(set)?.value.iter().position(|place| *place == Some(id))?;
                Some((*user, at, None))
            }
            User::Group(group) => {
                let members = members(self.groups.get(group)?);
                let at = members.iter().position(|member| member.id == id)?;
                Some((*user, at, members[at].exclusion))
            }
        };
        ReplicationPlaces(users.into_iter().flatten().filter_map(one).collect())
    }

    /// Takes a node or a set out of what refers to it.
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
        let Some(group) = u16::try_from(group).ok().and_then(|group| self.groups.get(&group)) else {
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
            let Some(node) = self.nodes.get(&member.id) else { continue };
            if !self.of_node(&node.value, spread, second, down, &mut limited) {
                return false;
            }
        }
        for member in group.sets.iter().filter(is_in) {
            let chosen = self.sets.get(&member.id).and_then(|set| chosen(&set.value, spread.set_hash));
            let Some(node) = chosen.and_then(|node| self.nodes.get(&node)) else { continue };
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

fn full(what: &str, limit: usize) -> ControlError {
    ControlError::ResourceExhausted { object: what.into(), limit: limit as u64 }
}

fn missing(what: &str, id: u32) -> ControlError {
    ControlError::NotFound(format!("{what} {id}"))
}

fn each_once<T: Ord + Copy + std::fmt::Display>(
    what: &str,
    all: impl Iterator<Item = T>,
) -> Result<(), ControlError> {
    let mut seen = BTreeSet::new();
    for one in all {
        if !seen.insert(one) {
            return Err(ControlError::Invalid(format!("{what} {one} is named twice")));
        }
    }
    Ok(())
}

/// Changes who refers to what is in a map.
fn refer<T>(
    all: &mut BTreeMap<u32, Used<T>>,
    user: User,
    before: impl Iterator<Item = u32>,
    now: impl Iterator<Item = u32>,
) {
    for id in before {
        if let Some(used) = all.get_mut(&id) {
            used.users.remove(&user);
        }
    }
    for id in now {
        if let Some(used) = all.get_mut(&id) {
            used.users.insert(user);
        }
    }
}

/// Refuses what does not exist, or has too many users.
fn check_used<T>(
    what: &str,
    all: &BTreeMap<u32, Used<T>>,
    user: User,
    ids: impl Iterator<Item = u32>,
) -> Result<(), ControlError> {
    for id in ids {
        let used = all.get(&id).ok_or_else(|| missing(what, id))?;
        if used.users.len() >= USERS && !used.users.contains(&user) {
            return Err(full(&format!("the set of groups with {what} {id}"), USERS));
        }
    }
    Ok(())
}

impl Switch {
    /// A node of the replication engine.
    pub fn replication_node(&self, id: u32) -> Option<&ReplicationNode> {
        Some(&self.engine.nodes.get(&id)?.value)
    }

    /// Adds, replaces or removes a node; groups and sets lose one that is removed. Fails if a port or link group occurs
    /// twice, or a port does not exist.
    pub fn replication_node_set(
        &mut self,
        id: u32,
        node: Option<ReplicationNode>,
    ) -> Result<(), ControlError> {
        let before = self.engine.nodes.get(&id);
        let old = before.map_or(0, |used| used.value.ports.len() + used.value.lags.len());
        let Some(node) = node else {
            let gone = self.engine.nodes.remove(&id).ok_or_else(|| missing("multicast node", id))?;
            self.engine.port_count -= old;
            for user in gone.users {
                self.engine.forget(user, |group| &mut group.nodes, id);
            }
            return Ok(());
        };
        each_once("port", node.ports.iter())?;
        each_once("link group", node.lags.iter())?;
        if let Some(port) = node.ports.iter().find(|port| self.manager.find((**port).into()).is_none()) {
            return Err(ControlError::Invalid(format!("the switch has no port {port}")));
        }
        let total = self.engine.port_count - old + node.ports.len() + node.lags.len();
        if before.is_none() && self.engine.nodes.len() >= MOST {
            return Err(full("the set of multicast nodes", MOST));
        }
        if total > ALL {
            return Err(full("the list of ports of multicast nodes", ALL));
        }
        self.engine.port_count = total;
        self.engine.nodes.entry(id).or_default().value = node;
        Ok(())
    }

    /// Where a node stands, to be restored after it was removed and added again.
    pub fn replication_node_places(&self, id: u32) -> ReplicationPlaces {
        let users = self.engine.nodes.get(&id).map(|used| &used.users);
        self.engine.places(users, |group| &group.nodes, id)
    }

    /// Where a set stands, likewise.
    pub fn replication_set_places(&self, id: u32) -> ReplicationPlaces {
        let users = self.engine.sets.get(&id).map(|used| &used.users);
        self.engine.places(users, |group| &group.sets, id)
    }

    /// Puts a node back where it stood.
    pub fn replication_node_restore(&mut self, id: u32, places: ReplicationPlaces) {
        let engine = &mut self.engine;
        for (user, at, exclusion) in places.0 {
            match user {
                User::Set(set) => {
                    if let Some(place) = engine.sets.get_mut(&set).and_then(|set| set.value.get_mut(at)) {
                        *place = Some(id);
                    }
                }
                User::Group(group) => {
                    let Some(group) = engine.groups.get_mut(&group) else { continue };
                    let at = at.min(group.nodes.len());
                    group.nodes.insert(at, ReplicationMember { id, exclusion });
                    engine.member_count += 1;
                }
            }
            if let Some(node) = engine.nodes.get_mut(&id) {
                node.users.insert(user);
            }
        }
    }

    /// Puts a set back where it stood.
    pub fn replication_set_restore(&mut self, id: u32, places: ReplicationPlaces) {
        let engine = &mut self.engine;
        for (user, at, exclusion) in places.0 {
            let User::Group(number) = user else { continue };
            let Some(group) = engine.groups.get_mut(&number) else { continue };
            group.sets.insert(at.min(group.sets.len()), ReplicationMember { id, exclusion });
            engine.member_count += 1;
            if let Some(set) = engine.sets.get_mut(&id) {
                set.users.insert(user);
            }
        }
    }

    /// A set of nodes, of which a packet gets one; places may be free.
    pub fn replication_set(&self, id: u32) -> Option<&[Option<u32>; REPLICATION_SET]> {
        Some(&self.engine.sets.get(&id)?.value)
    }

    /// Adds, replaces or removes a set of nodes.
    pub fn replication_set_set(
        &mut self,
        id: u32,
        set: Option<[Option<u32>; REPLICATION_SET]>,
    ) -> Result<(), ControlError> {
        let engine = &mut self.engine;
        let before = engine.sets.get(&id).map(|used| used.value);
        let nodes = || set.into_iter().flatten().flatten();
        each_once("multicast node", nodes())?;
        check_used("multicast node", &engine.nodes, User::Set(id), nodes())?;
        match (set, before) {
            (None, None) => return Err(missing("ECMP group", id)),
            (Some(_), None) if engine.sets.len() >= MOST => return Err(full("the set of ECMP groups", MOST)),
            _ => {}
        }
        refer(&mut engine.nodes, User::Set(id), before.into_iter().flatten().flatten(), nodes());
        match set {
            Some(value) => engine.sets.entry(id).or_default().value = value,
            None => {
                let gone = engine.sets.remove(&id).map(|gone| gone.users);
                for user in gone.into_iter().flatten() {
                    engine.forget(user, |group| &mut group.sets, id);
                }
            }
        }
        Ok(())
    }

    /// A group of the replication engine.
    pub fn replication_group(&self, id: u16) -> Option<&ReplicationGroup> {
        self.engine.groups.get(&id)
    }

    /// Adds, replaces or removes a group. Where a multicast group has its number, the engine's counts.
    pub fn replication_group_set(
        &mut self,
        id: u16,
        group: Option<ReplicationGroup>,
    ) -> Result<(), ControlError> {
        let engine = &mut self.engine;
        let before = engine.groups.get(&id).cloned();
        let old = before.as_ref().map_or(0, |group| group.nodes.len() + group.sets.len());
        if group.is_none() && before.is_none() {
            return Err(missing("multicast group", id.into()));
        }
        let new = group.clone().unwrap_or_default();
        let ids =
            |members: &[ReplicationMember]| members.iter().map(|member| member.id).collect::<Vec<u32>>();
        let (nodes, sets, user) = (ids(&new.nodes), ids(&new.sets), User::Group(id));
        if nodes.len().max(sets.len()) > MEMBERS {
            return Err(full("the list of members of a multicast group", MEMBERS));
        }
        each_once("multicast node", nodes.iter())?;
        each_once("ECMP group", sets.iter())?;
        check_used("multicast node", &engine.nodes, user, nodes.iter().copied())?;
        check_used("ECMP group", &engine.sets, user, sets.iter().copied())?;
        let total = engine.member_count - old + new.nodes.len() + new.sets.len();
        if total > ALL {
            return Err(full("the list of members of multicast groups", ALL));
        }
        engine.member_count = total;
        let before = before.unwrap_or_default();
        refer(&mut engine.nodes, user, ids(&before.nodes).into_iter(), nodes.into_iter());
        refer(&mut engine.sets, user, ids(&before.sets).into_iter(), sets.into_iter());
        match group {
            Some(group) => drop(engine.groups.insert(id, group)),
            None => drop(engine.groups.remove(&id)),
        }
        Ok(())
    }

    /// The next nodes, sets and groups from a number on.
    pub fn replication_nodes(&self, from: u32) -> impl Iterator<Item = (u32, &ReplicationNode)> {
        self.engine.nodes.range(from..).map(|(id, used)| (*id, &used.value))
    }

    /// The next sets from a number on.
    pub fn replication_sets(
        &self,
        from: u32,
    ) -> impl Iterator<Item = (u32, &[Option<u32>; REPLICATION_SET])> {
        self.engine.sets.range(from..).map(|(id, used)| (*id, &used.value))
    }

    /// The next groups from a number on.
    pub fn replication_groups(&self, from: u16) -> impl Iterator<Item = (u16, &ReplicationGroup)> {
        self.engine.groups.range(from..).map(|(id, group)| (*id, group))
    }

    /// A link group; one without ports if nobody has set it.
    pub fn replication_lag(&self, id: u8) -> ReplicationLag {
        self.engine.lags.get(&id).cloned().unwrap_or_default()
    }

    /// Sets a link group. Its ports stay in the order of their numbers.
    pub fn replication_lag_set(&mut self, id: u8, mut lag: ReplicationLag) -> Result<(), ControlError> {
        each_once("port", lag.ports.iter())?;
        check_ports(&lag.ports)?;
        lag.ports.sort_unstable();
        if lag == ReplicationLag::default() {
            self.engine.lags.remove(&id);
        } else {
            self.engine.lags.insert(id, lag);
        }
        Ok(())
    }

    /// Ports that get no copies of packets that name this number.
    pub fn replication_pruned(&self, id: u16) -> Vec<u16> {
        let set = self.engine.pruned.get(&id);
        (0..PORTS as u16).filter(|port| set.is_some_and(|set| has(set, *port))).collect()
    }

    /// Sets them.
    pub fn replication_prune(&mut self, id: u16, ports: &[u16]) -> Result<(), ControlError> {
        check_ports(ports)?;
        let mut set = PortSet::default();
        for port in ports {
            set[usize::from(*port) / 64] |= 1 << (port % 64);
        }
        if ports.is_empty() {
            self.engine.pruned.remove(&id);
        } else {
            self.engine.pruned.insert(id, set);
        }
        Ok(())
    }

    /// What the engine knows of a port.
    pub fn replication_port(&self, port: u16) -> ReplicationPort {
        self.engine.ports.get(&port).copied().unwrap_or_default()
    }

    /// Sets it.
    pub fn replication_port_set(&mut self, port: u16, config: ReplicationPort) -> Result<(), ControlError> {
        check_ports(&[port])?;
        check_ports(config.backup.as_slice())?;
        self.engine.ports.insert(port, config);
        Ok(())
    }

    /// All that the engine knows.
    pub fn replication_saved(&self) -> ReplicationState {
        ReplicationState(Box::new(self.engine.clone()))
    }

    /// Restores it.
    pub fn replication_restore(&mut self, state: ReplicationState) {
        self.engine = *state.0;
    }

    /// Settings of the engine.
    pub fn replication_config(&self) -> ReplicationConfig {
        self.engine.config
    }

    /// Changes them.
    pub fn replication_config_set(&mut self, config: ReplicationConfig) -> Result<(), ControlError> {
        check_ports(config.copy_port.as_slice())?;
        self.engine.config = config;
        Ok(())
    }
}

fn check_ports(ports: &[u16]) -> Result<(), ControlError> {
    match ports.iter().find(|port| usize::from(**port) >= PORTS) {
        Some(port) => {
            Err(ControlError::Invalid(format!("there is no port {port}; there are 0 to {}", PORTS - 1)))
        }
        None => Ok(()),
    }
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
