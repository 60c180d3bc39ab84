//! The replication engine from the control plane.

use super::{
    PORTS, PortSet, REPLICATION_SET, ReplicationConfig, ReplicationGroup, ReplicationLag, ReplicationMember,
    ReplicationNode, ReplicationPort, Used, User, has,
};
use crate::error::ControlError;
use crate::switch::Switch;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum nodes of a group, and maximum sets.
const MEMBERS: usize = 1024;
/// Maximum nodes, and maximum sets.
const MOST: usize = 1 << 16;
/// Maximum groups and sets that have a node, and groups that have a set: its end changes all of them.
const USERS: usize = 64;
/// Maximum ports and link groups of all nodes, and members of all groups.
const ALL: usize = 1 << 20;
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

/// Changes the referrers of a map's values.
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

/// Refuses objects that do not exist, or have too many users.
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
        Some(&self.engine.members.nodes.get(&id)?.value)
    }

    /// Adds, replaces or removes a node; groups and sets lose one that is removed. Fails if a port or link group occurs
    /// twice, or a port does not exist.
    pub fn replication_node_set(
        &mut self,
        id: u32,
        node: Option<ReplicationNode>,
    ) -> Result<(), ControlError> {
        let before = self.engine.members.nodes.get(&id);
        let old = before.map_or(0, |used| used.value.ports.len() + used.value.lags.len());
        let Some(node) = node else {
            let gone = self.engine.members.nodes.remove(&id).ok_or_else(|| missing("multicast node", id))?;
            self.engine.members.port_count -= old;
            for user in gone.users {
                self.engine.members.forget(user, |group| &mut group.nodes, id);
            }
            return Ok(());
        };
        each_once("port", node.ports.iter())?;
        each_once("link group", node.lags.iter())?;
        if let Some(port) = node.ports.iter().find(|port| self.manager.find((**port).into()).is_none()) {
            return Err(ControlError::Invalid(format!("the switch has no port {port}")));
        }
        let total = self.engine.members.port_count - old + node.ports.len() + node.lags.len();
        if before.is_none() && self.engine.members.nodes.len() >= MOST {
            return Err(full("the set of multicast nodes", MOST));
        }
        if total > ALL {
            return Err(full("the list of ports of multicast nodes", ALL));
        }
        self.engine.members.port_count = total;
        self.engine.members.nodes.entry(id).or_default().value = node;
        Ok(())
    }

    /// A set of nodes, of which a packet gets one; places may be free.
    pub fn replication_set(&self, id: u32) -> Option<&[Option<u32>; REPLICATION_SET]> {
        Some(&self.engine.members.sets.get(&id)?.value)
    }

    /// Adds, replaces or removes a set of nodes.
    pub fn replication_set_set(
        &mut self,
        id: u32,
        set: Option<[Option<u32>; REPLICATION_SET]>,
    ) -> Result<(), ControlError> {
        let engine = &mut self.engine.members;
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
        self.engine.members.groups.get(&id)
    }

    /// Adds, replaces or removes a group. A group of the engine takes precedence over a multicast group with the same
    /// number.
    pub fn replication_group_set(
        &mut self,
        id: u16,
        group: Option<ReplicationGroup>,
    ) -> Result<(), ControlError> {
        let engine = &mut self.engine.members;
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
        self.engine.members.nodes.range(from..).map(|(id, used)| (*id, &used.value))
    }

    /// The next sets from a number on.
    pub fn replication_sets(
        &self,
        from: u32,
    ) -> impl Iterator<Item = (u32, &[Option<u32>; REPLICATION_SET])> {
        self.engine.members.sets.range(from..).map(|(id, used)| (*id, &used.value))
    }

    /// The next groups from a number on.
    pub fn replication_groups(&self, from: u16) -> impl Iterator<Item = (u16, &ReplicationGroup)> {
        self.engine.members.groups.range(from..).map(|(id, group)| (*id, group))
    }

    /// A link group; one without ports if it was never set.
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

    /// The engine's configuration of a port.
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

    /// Clears the engine's configuration of ports, and the port of the controller's copies.
    pub fn replication_ports_clear(&mut self) {
        self.engine.ports.clear();
        self.engine.config.copy_port = None;
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
