//! Multicast groups: P4Runtime's replicas as nodes, one for each replication id.

use super::device::Unwritten;
use super::{EVERYWHERE, Link};
use crate::error::CtrlError;
use p4rack_bfrt::{Entry, Value};
use p4rack_p4rt::bfrt_proto::update::Type as Update;
use p4rack_p4rt::bfrt_proto::{self as bfrt, TableFlags};
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::packet_replication_engine_entry::Type;
use p4rack_p4rt::p4::v1::{
    self, Entity, MulticastGroupEntry, PacketReplicationEngineEntry, Replica, entity, replica,
};
use std::collections::{BTreeMap, BTreeSet};

/// Table of groups.
const MGID: &str = "$pre.mgid";
/// Table of nodes.
const NODE: &str = "$pre.node";
/// Number of a node; in a group, the list of its nodes'.
const NUMBER: &str = "$MULTICAST_NODE_ID";
const RID: &str = "$MULTICAST_RID";
const PORTS: &str = "$DEV_PORT";
/// Nodes that a group may have; their numbers begin with the group's times this.
const NODES: u32 = 256;

/// A node: a replication id, and the ports that get a copy with it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MulticastNode {
    number: u32,
    rid: u32,
    ports: Vec<u32>,
}

/// A group and its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    id: u32,
    nodes: Vec<MulticastNode>,
}

/// The ports of each replication id that a group should have.
type Copies = BTreeMap<u32, Vec<u32>>;

/// The way from a group to another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Plan {
    /// Nodes that come.
    adds: Vec<MulticastNode>,
    /// Nodes that stay, with other ports.
    changes: Vec<MulticastNode>,
    /// Nodes that go.
    gone: Vec<MulticastNode>,
}

fn numbers(entry: &Entry, field: &str) -> Vec<u32> {
    match entry.get(field) {
        Some(Value::Numbers(numbers)) => numbers.clone(),
        _ => Vec::new(),
    }
}

/// An exact key of at most 32 bits.
pub fn number(entry: &Entry, key: &str) -> Option<u32> {
    entry.exact_number(key).and_then(|number| u32::try_from(number).ok())
}

fn node_of(entry: &Entry) -> Option<MulticastNode> {
    let rid = entry.get(RID).and_then(Value::number).unwrap_or(0) as u32;
    Some(MulticastNode { number: number(entry, NUMBER)?, rid, ports: numbers(entry, PORTS) })
}

/// The groups that entries make with nodes.
fn read(nodes: &[MulticastNode], groups: &[Entry]) -> Vec<Group> {
    let nodes: BTreeMap<u32, &MulticastNode> = nodes.iter().map(|node| (node.number, node)).collect();
    let group = |entry: &Entry| {
        let own = numbers(entry, NUMBER).into_iter();
        let nodes = own.filter_map(|number| nodes.get(&number).map(|node| (*node).clone())).collect();
        Some(Group { id: number(entry, "$MGID")?, nodes })
    };
    groups.iter().filter_map(group).collect()
}

/// The port of a replica, if it has one of 32 bits.
pub fn port_of(replica: &Replica) -> Option<u32> {
    #[allow(deprecated)]
    match &replica.port_kind {
        Some(replica::PortKind::EgressPort(port)) => Some(*port),
        Some(replica::PortKind::Port(port)) if port.len() <= 4 => {
            Some(port.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
        }
        _ => None,
    }
}

/// A copy to a port.
pub fn replica(port: u32, instance: u32) -> Replica {
    #[allow(deprecated)]
    Replica { port_kind: Some(replica::PortKind::EgressPort(port)), instance, ..Default::default() }
}

/// The ports of each replication id in P4Runtime's entry.
fn copies(given: &MulticastGroupEntry) -> Result<Copies, UpdateError> {
    let id = given.multicast_group_id;
    let invalid = |message: String| UpdateError::new(Code::InvalidArgument, message);
    let mut copies = Copies::new();
    for replica in &given.replicas {
        let none = || invalid(format!("multicast group {id}: a replica without a port"));
        let port = port_of(replica).ok_or_else(none)?;
        if !replica.backup_replicas.is_empty() {
            let message = format!("multicast group {id}: BFRuntime has no backups of replicas");
            return Err(UpdateError::new(Code::Unimplemented, message));
        }
        copies.entry(replica.instance).or_default().push(port);
    }
    if copies.len() > NODES as usize {
        return Err(invalid(format!("multicast group {id} has more than {NODES} replication ids")));
    }
    Ok(copies)
}

impl Plan {
    /// Keeps the nodes whose replication ids stay. New ones get numbers that no node has.
    fn new(there: &Group, wanted: Copies, all: &[MulticastNode]) -> Result<Plan, UpdateError> {
        let (mut plan, mut wanted) = (Plan::default(), wanted);
        for node in &there.nodes {
            match wanted.remove(&node.rid) {
                None => plan.gone.push(node.clone()),
                Some(ports) if ports == node.ports => {}
                Some(ports) => plan.changes.push(MulticastNode { ports, ..node.clone() }),
            }
        }
        let taken: BTreeSet<u32> = all.iter().map(|node| node.number).collect();
        let first = there.id.wrapping_mul(NODES);
        let mut free = (first..=first.saturating_add(NODES - 1)).filter(|number| !taken.contains(number));
        for (rid, ports) in wanted {
            let Some(number) = free.next() else {
                let message = format!(
                    "multicast group {}: all of its {NODES} nodes are in use; change it in two steps",
                    there.id
                );
                return Err(UpdateError::new(Code::ResourceExhausted, message));
            };
            plan.adds.push(MulticastNode { number, rid, ports });
        }
        Ok(plan)
    }
}

impl MulticastNode {
    fn key(&self) -> Entry {
        Entry::of(NODE).exact(NUMBER, self.number.into())
    }

    /// Its key and ports; a node keeps its replication id.
    fn changed(&self) -> Entry {
        let key = self.key().data("$MULTICAST_LAG_ID", Value::Numbers(Vec::new()));
        key.data(PORTS, Value::Numbers(self.ports.clone()))
    }
}

impl Group {
    /// P4Runtime's entity.
    pub fn entity(&self) -> Entity {
        let mut nodes: Vec<&MulticastNode> = self.nodes.iter().collect();
        nodes.sort_by_key(|node| (node.rid, node.number));
        let replicas =
            nodes.into_iter().flat_map(|node| node.ports.iter().map(|port| replica(*port, node.rid)));
        let group = MulticastGroupEntry {
            multicast_group_id: self.id,
            replicas: replicas.collect(),
            ..Default::default()
        };
        let entry = PacketReplicationEngineEntry { r#type: Some(Type::MulticastGroupEntry(group)) };
        Entity { entity: Some(entity::Entity::PacketReplicationEngineEntry(entry)) }
    }

    fn key(id: u32) -> Entry {
        Entry::of(MGID).exact("$MGID", id.into())
    }

    /// Its key, and these nodes.
    fn entry(id: u32, nodes: &[MulticastNode]) -> Entry {
        Group::key(id)
            .data(NUMBER, Value::Numbers(nodes.iter().map(|node| node.number).collect()))
            .data("$MULTICAST_NODE_L1_XID_VALID", Value::Bools(vec![false; nodes.len()]))
            .data("$MULTICAST_NODE_L1_XID", Value::Numbers(vec![0; nodes.len()]))
    }
}

impl Link {
    /// All nodes, and the entries of groups.
    async fn replication(&mut self) -> Result<(Vec<MulticastNode>, Vec<Entry>), CtrlError> {
        let nodes = self.entries(EVERYWHERE, NODE).await?;
        let groups = self.entries(EVERYWHERE, MGID).await?;
        Ok((nodes.iter().filter_map(node_of).collect(), groups))
    }

    pub(super) async fn groups(&mut self, wanted: Option<u32>) -> Result<Vec<Group>, CtrlError> {
        let (nodes, groups) = self.replication().await?;
        let mut found = read(&nodes, &groups);
        found.retain(|group| wanted.is_none_or(|wanted| wanted == group.id));
        Ok(found)
    }

    /// Writes a multicast group. A driver undoes none of it, so nodes are added before the group gets them and deleted once
    /// it has lost them, those that stay keep their copies, and an error ends the change.
    pub(super) async fn write_group(
        &mut self,
        kind: v1::update::Type,
        given: &MulticastGroupEntry,
    ) -> Result<(), Unwritten> {
        let (id, copies) = (given.multicast_group_id, copies(given)?);
        let (nodes, groups) = self.replication().await?;
        let there = read(&nodes, &groups).into_iter().find(|group| group.id == id);
        match (kind, there) {
            (v1::update::Type::Insert, Some(_)) => {
                let message = format!("there is a multicast group {id} already");
                Err(UpdateError::new(Code::AlreadyExists, message).into())
            }
            (v1::update::Type::Insert, None) => {
                let plan = Plan::new(&Group { id, nodes: Vec::new() }, copies, &nodes)?;
                let entry = Group::entry(id, &plan.adds);
                self.add_nodes(&plan.adds, Some((Update::Insert, entry, false))).await
            }
            (_, None) => {
                let message = format!("there is no multicast group {id}");
                Err(UpdateError::new(Code::NotFound, message).into())
            }
            (v1::update::Type::Delete, Some(there)) => {
                self.write_entry(Update::Delete, Group::key(id), false).await?;
                self.delete_nodes(&there.nodes).await
            }
            (_, Some(there)) => {
                let Plan { adds, changes, gone } = Plan::new(&there, copies, &nodes)?;
                let longer = (Update::ModifyInc, Group::entry(id, &adds), false);
                self.add_nodes(&adds, Some(longer).filter(|_| !adds.is_empty())).await?;
                for node in &changes {
                    self.write_entry(Update::Modify, node.changed(), false).await?;
                }
                if !gone.is_empty() {
                    self.write_entry(Update::ModifyInc, Group::entry(id, &gone), true).await?;
                }
                self.delete_nodes(&gone).await
            }
        }
    }

    /// Adds nodes, then puts them into a group. If either is refused, the added nodes are deleted.
    async fn add_nodes(
        &mut self,
        nodes: &[MulticastNode],
        group: Option<(Update, Entry, bool)>,
    ) -> Result<(), Unwritten> {
        let adds = nodes.iter().map(|node| (Update::Insert, node.changed().data(RID, node.rid), false));
        for (at, (kind, entry, takes)) in adds.chain(group).enumerate() {
            if let Err(error) = self.write_entry(kind, entry, takes).await {
                self.delete_nodes(&nodes[..at]).await?;
                return Err(error);
            }
        }
        Ok(())
    }

    async fn delete_nodes(&mut self, nodes: &[MulticastNode]) -> Result<(), Unwritten> {
        for node in nodes {
            self.write_entry(Update::Delete, node.key(), false).await?;
        }
        Ok(())
    }

    /// Writes an entry. `takes`: a MODIFY_INC removes from its lists.
    async fn write_entry(&mut self, kind: Update, entry: Entry, takes: bool) -> Result<(), Unwritten> {
        let mut update = self.fixed(kind, entry)?;
        if let Some(bfrt::entity::Entity::TableEntry(entry)) =
            update.entity.as_mut().and_then(|entity| entity.entity.as_mut())
        {
            entry.table_flags = Some(TableFlags { mod_del: takes, ..Default::default() });
        }
        self.write_one(EVERYWHERE, update).await
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test that cannot go on should panic
mod tests {
    use super::*;

    fn node(number: u32, rid: u32, ports: &[u32]) -> MulticastNode {
        MulticastNode { number, rid, ports: ports.to_vec() }
    }

    #[test]
    fn nodes_whose_replication_id_stays_are_kept() {
        let there = Group { id: 2, nodes: vec![node(512, 1, &[1]), node(513, 2, &[2]), node(514, 3, &[3])] };
        let stale = node(515, 9, &[]);
        let all = [&there.nodes[..], &[stale]].concat();
        let wanted = Copies::from([(1, vec![1]), (2, vec![2, 4]), (7, vec![5])]);
        let plan = Plan::new(&there, wanted, &all).unwrap();
        let expected = Plan {
            adds: vec![node(516, 7, &[5])],
            changes: vec![node(513, 2, &[2, 4])],
            gone: vec![node(514, 3, &[3])],
        };
        assert_eq!(plan, expected);
        let full: Vec<MulticastNode> = (0..NODES).map(|at| node(512 + at, at, &[])).collect();
        let refused = Plan::new(&Group { id: 2, nodes: full.clone() }, Copies::from([(999, vec![1])]), &full);
        assert_eq!(refused.unwrap_err().code, Code::ResourceExhausted);
    }
}
