//! Multicast groups: P4Runtime's replicas as nodes, one for each replication id.

use super::device::Updates;
use super::{Link, program_error};
use crate::error::CtrlError;
use p4rack_bfrt::{Entry, Value};
use p4rack_p4rt::bfrt_proto::{self as bfrt, TableEntry};
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::packet_replication_engine_entry::Type;
use p4rack_p4rt::p4::v1::{
    self, Entity, MulticastGroupEntry, PacketReplicationEngineEntry, Replica, entity, replica,
};
use std::collections::BTreeMap;

/// Table of groups.
const MGID: &str = "$pre.mgid";
/// Table of nodes.
const NODE: &str = "$pre.node";
/// Nodes that a group may have; their numbers are the group's times this and one more each.
const NODES: u32 = 256;

/// A group: for each of its nodes a replication id and ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its number.
    pub id: u32,
    /// By number of the node.
    nodes: BTreeMap<u32, (u32, Vec<u32>)>,
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

/// The groups that entries of both tables make.
fn read(nodes: &[Entry], groups: &[Entry]) -> Vec<Group> {
    let node = |entry: &Entry| {
        let rid = entry.get("$MULTICAST_RID").and_then(Value::number).unwrap_or(0) as u32;
        Some((number(entry, "$MULTICAST_NODE_ID")?, (rid, numbers(entry, "$DEV_PORT"))))
    };
    let nodes: BTreeMap<u32, (u32, Vec<u32>)> = nodes.iter().filter_map(node).collect();
    let group = |entry: &Entry| {
        let own = numbers(entry, "$MULTICAST_NODE_ID").into_iter();
        let nodes = own.filter_map(|id| Some((id, nodes.get(&id)?.clone()))).collect();
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

impl Group {
    /// The group of P4Runtime's entry.
    pub fn of(given: &MulticastGroupEntry) -> Result<Group, UpdateError> {
        let id = given.multicast_group_id;
        let invalid = |message: String| UpdateError::new(Code::InvalidArgument, message);
        let mut ports: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for replica in &given.replicas {
            let none = || invalid(format!("multicast group {id}: a replica without a port"));
            let port = port_of(replica).ok_or_else(none)?;
            if !replica.backup_replicas.is_empty() {
                let message = format!("multicast group {id}: BFRuntime has no backups of replicas");
                return Err(UpdateError::new(Code::Unimplemented, message));
            }
            ports.entry(replica.instance).or_default().push(port);
        }
        if ports.len() > NODES as usize {
            return Err(invalid(format!("multicast group {id} has more than {NODES} replication ids")));
        }
        let first = id.wrapping_mul(NODES);
        let nodes = ports.into_iter().zip(first..).map(|(node, number)| (number, node)).collect();
        Ok(Group { id, nodes })
    }

    /// P4Runtime's entity.
    pub fn entity(&self) -> Entity {
        let copies = self.nodes.values().flat_map(|(rid, ports)| ports.iter().map(|port| (*port, *rid)));
        let replicas = copies.map(|(port, instance)| replica(port, instance));
        let group = MulticastGroupEntry {
            multicast_group_id: self.id,
            replicas: replicas.collect(),
            ..Default::default()
        };
        let entry = PacketReplicationEngineEntry { r#type: Some(Type::MulticastGroupEntry(group)) };
        Entity { entity: Some(entity::Entity::PacketReplicationEngineEntry(entry)) }
    }

    /// Its key.
    pub fn key(&self) -> Entry {
        Entry::of(MGID).exact("$MGID", self.id.into())
    }

    /// Itself, after its nodes.
    pub fn entry(&self) -> Entry {
        let nodes: Vec<u32> = self.nodes.keys().copied().collect();
        let count = nodes.len();
        self.key()
            .data("$MULTICAST_NODE_ID", Value::Numbers(nodes))
            .data("$MULTICAST_NODE_L1_XID_VALID", Value::Bools(vec![false; count]))
            .data("$MULTICAST_NODE_L1_XID", Value::Numbers(vec![0; count]))
    }

    /// The keys of its nodes.
    pub fn node_keys(&self) -> impl Iterator<Item = Entry> {
        self.nodes.keys().map(|id| Entry::of(NODE).exact("$MULTICAST_NODE_ID", (*id).into()))
    }

    /// Its nodes.
    pub fn nodes(&self) -> impl Iterator<Item = Entry> {
        self.nodes.iter().map(|(id, (rid, ports))| {
            Entry::of(NODE)
                .exact("$MULTICAST_NODE_ID", (*id).into())
                .data("$MULTICAST_RID", *rid)
                .data("$MULTICAST_LAG_ID", Value::Numbers(Vec::new()))
                .data("$DEV_PORT", Value::Numbers(ports.clone()))
        })
    }
}

impl Link {
    pub(super) async fn groups(&mut self, wanted: Option<u32>) -> Result<Vec<Group>, CtrlError> {
        let schema = &self.bound()?.schema;
        let all = |table: &str| {
            schema.table(table).map(|table| TableEntry { table_id: table.id, ..Default::default() })
        };
        let (nodes, groups) = (all(NODE).map_err(program_error)?, all(MGID).map_err(program_error)?);
        let (nodes, groups) = (self.ask(vec![nodes]).await?, self.ask(vec![groups]).await?);
        let schema = &self.bound()?.schema;
        let decode = |entries: Vec<TableEntry>| {
            entries.iter().map(|entry| Entry::read(schema, entry)).collect::<Result<Vec<Entry>, _>>()
        };
        let (nodes, groups) = (decode(nodes).map_err(program_error)?, decode(groups).map_err(program_error)?);
        let mut found = read(&nodes, &groups);
        found.retain(|group| wanted.is_none_or(|wanted| wanted == group.id));
        Ok(found)
    }

    /// Replaces a multicast group in one Write: removes the old nodes and group, then adds the new ones. The group
    /// stays unchanged if the Write fails.
    pub(super) async fn group_updates(&mut self, kind: v1::update::Type, wanted: &Group) -> Updates {
        let (removes, adds) = match kind {
            v1::update::Type::Insert => (false, true),
            v1::update::Type::Delete => (true, false),
            _ => (true, true),
        };
        let there = if removes { self.groups(Some(wanted.id)).await?.pop() } else { None };
        if removes && there.is_none() {
            let message = format!("there is no multicast group {}", wanted.id);
            return Err(UpdateError::new(Code::NotFound, message).into());
        }
        let mut updates = Vec::new();
        if let Some(there) = there {
            updates.push(self.fixed(bfrt::update::Type::Delete, there.key())?);
            for node in there.node_keys() {
                updates.push(self.fixed(bfrt::update::Type::Delete, node)?);
            }
        }
        if adds {
            for node in wanted.nodes() {
                updates.push(self.fixed(bfrt::update::Type::Insert, node)?);
            }
            updates.push(self.fixed(bfrt::update::Type::Insert, wanted.entry())?);
        }
        Ok(updates)
    }
}
