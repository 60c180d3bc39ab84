//! Multicast nodes, groups of nodes and mirror sessions, and their translation to P4Runtime's multicast groups and clone
//! sessions.

use super::not_offered;
use p4rack_bfrt::{Entry, Value};
use p4rack_entities::{Checked, Program, change, refuse};
use p4rack_p4rt::bfrt_proto::update;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::packet_replication_engine_entry::Type;
use p4rack_p4rt::p4::v1::{
    self, CloneSessionEntry, MulticastGroupEntry, PacketReplicationEngineEntry, Replica, entity, replica,
};
use p4rack_switch::Switch;
use p4rack_wire::Nanos;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Maximum nodes, and maximum groups.
const MOST: usize = 1 << 16;
/// Maximum copies of one packet.
const COPIES: usize = 1 << 12;
/// Groups that have a node: a change of the node changes all of them, between two frames.
const GROUPS_A_NODE: usize = 64;
/// Ports of all nodes together, and nodes of all groups.
const ALL: usize = 1 << 20;
/// Entries that are read at once.
const PAGE: usize = 64;

/// A node: copies with one replication id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub rid: u16,
    pub ports: Vec<u32>,
}

/// A mirror session, as written and as needed by the switch; without a port it is disabled.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    pub port: Option<u32>,
    pub rid: u32,
    pub class: u32,
    pub most_bytes: i32,
    pub entry: Entry,
}

/// The new value of the object with this id; `None` deletes it.
#[derive(Clone, Debug)]
pub enum Edit {
    Node(u32, Option<Node>),
    Group(u32, Option<Vec<u32>>),
    Session(u32, Option<Session>),
}

/// All nodes, groups and sessions.
#[derive(Debug, Default)]
pub struct Replication {
    nodes: BTreeMap<u32, Node>,
    groups: BTreeMap<u32, Vec<u32>>,
    /// Groups that contain a node.
    users: BTreeMap<u32, BTreeSet<u32>>,
    sessions: BTreeMap<u32, Session>,
    /// Ports of all nodes, and nodes of all groups.
    port_count: usize,
    node_count: usize,
}

fn put<T>(all: &mut BTreeMap<u32, T>, id: u32, value: Option<T>) -> Option<T> {
    match value {
        Some(value) => all.insert(id, value),
        None => all.remove(&id),
    }
}

/// Refuses what names something twice.
fn each_once(what: &str, all: &[u32]) -> Checked<()> {
    let mut seen = HashSet::with_capacity(all.len().min(COPIES));
    match all.iter().find(|one| !seen.insert(**one)) {
        Some(one) => refuse(Code::InvalidArgument, format!("the entry names {what} {one} twice")),
        None => Ok(()),
    }
}

/// Refuses what would be too many of all entries together.
fn room(what: &str, count: usize) -> Checked<()> {
    if count <= ALL {
        return Ok(());
    }
    refuse(Code::ResourceExhausted, format!("there would be {count} {what}, and {ALL} are the limit"))
}

impl Session {
    /// The session that an entry says.
    pub fn of(entry: Entry) -> Checked<Session> {
        let number = |field: &str| entry.get(field).and_then(Value::number);
        let is = |field: &str| entry.get(field) == Some(&Value::Bool(true));
        if entry.action_name() != Some("$normal") {
            return not_offered(&entry, "an action other than $normal");
        }
        if let Some(group) = ["$mcast_grp_a_valid", "$mcast_grp_b_valid"].into_iter().find(|field| is(field))
        {
            return not_offered(&entry, group);
        }
        let to =
            number("$ucast_egress_port").filter(|_| is("$session_enable") && is("$ucast_egress_port_valid"));
        let port = to.map(|port| u32::try_from(port).unwrap_or(u32::MAX));
        let class = number("$ingress_cos").unwrap_or(0) as u32;
        let (rid, most) = (number("$mcast_rid").unwrap_or(0) as u32, number("$max_pkt_len").unwrap_or(0));
        Ok(Session { port, rid, class, most_bytes: i32::try_from(most).unwrap_or(i32::MAX), entry })
    }
}

impl Replication {
    /// The current object with the id of an edit.
    pub fn there(&self, edit: &Edit) -> Edit {
        match edit {
            Edit::Node(id, _) => Edit::Node(*id, self.nodes.get(id).cloned()),
            Edit::Group(id, _) => Edit::Group(*id, self.groups.get(id).cloned()),
            Edit::Session(id, _) => Edit::Session(*id, self.sessions.get(id).cloned()),
        }
    }

    /// What an update makes of what is there.
    pub fn merged(&self, kind: update::Type, edit: Edit) -> Checked<Edit> {
        let keeps = matches!(kind, update::Type::Modify | update::Type::InsertOrModify);
        match edit {
            Edit::Session(id, Some(given)) if keeps && let Some(there) = self.sessions.get(&id) => {
                let entry = there.entry.clone().updated(&given.entry);
                Ok(Edit::Session(id, Some(Session::of(entry)?)))
            }
            edit => Ok(edit),
        }
    }

    /// Checks the type of an update against what is there, and what it says against the rest.
    pub fn expect(&self, kind: update::Type, edit: &Edit, switch: &Switch) -> Checked<()> {
        let (what, id, exists, full) = match edit {
            Edit::Node(id, _) => {
                ("multicast node", id, self.nodes.contains_key(id), self.nodes.len() >= MOST)
            }
            Edit::Group(id, _) => {
                ("multicast group", id, self.groups.contains_key(id), self.groups.len() >= MOST)
            }
            Edit::Session(id, _) => ("mirror session", id, self.sessions.contains_key(id), false),
        };
        let is_foreign = !exists
            && match edit {
                Edit::Node(..) => false,
                Edit::Group(id, _) => switch.multicast_group_get(*id).is_some(),
                Edit::Session(id, _) => switch.clone_session_get(*id).is_some(),
            };
        match (kind, exists) {
            (update::Type::Insert | update::Type::InsertOrModify, _) if is_foreign => {
                let message = format!("{what} {id} was made over P4Runtime; delete it there first");
                refuse(Code::AlreadyExists, message)?
            }
            (update::Type::Insert, true) => {
                refuse(Code::AlreadyExists, format!("{what} {id} already exists"))?
            }
            (update::Type::Modify | update::Type::Delete, false) => {
                refuse(Code::NotFound, format!("there is no {what} {id}"))?;
            }
            (update::Type::Insert | update::Type::InsertOrModify, false) if full => {
                refuse(Code::ResourceExhausted, format!("{MOST} of them are the limit"))?;
            }
            (
                update::Type::Insert
                | update::Type::Modify
                | update::Type::InsertOrModify
                | update::Type::Delete,
                _,
            ) => {}
            _ => {
                let message = format!("{} of a {what} is not offered by this switch", kind.as_str_name());
                refuse(Code::Unimplemented, message)?;
            }
        }
        match edit {
            Edit::Node(id, None) if self.users.contains_key(id) => {
                let group = self.users.get(id).and_then(|users| users.first()).copied().unwrap_or(0);
                let message =
                    format!("multicast group {group} has node {id}; take it out of the group first");
                refuse(Code::FailedPrecondition, message)
            }
            Edit::Node(id, Some(node)) => {
                each_once("port", &node.ports)?;
                let config = switch.config();
                let has = |port: &u32| {
                    config
                        .ports
                        .iter()
                        .map(|own| own.port)
                        .chain(config.cpu_port)
                        .any(|own| u32::from(own) == *port)
                };
                if let Some(port) = node.ports.iter().find(|port| !has(port)) {
                    return refuse(Code::InvalidArgument, format!("the switch has no port {port}"));
                }
                let before = self.nodes.get(id).map_or(0, |node| node.ports.len());
                room("ports of multicast nodes", self.port_count - before + node.ports.len())
            }
            Edit::Group(id, Some(nodes)) => {
                each_once("multicast node", nodes)?;
                for node in nodes {
                    if !self.nodes.contains_key(node) {
                        let message = format!("there is no multicast node {node}; add it first");
                        return refuse(Code::NotFound, message);
                    }
                    let users = self.users.get(node);
                    if users.is_some_and(|users| users.len() >= GROUPS_A_NODE && !users.contains(id)) {
                        let message =
                            format!("multicast node {node} is in {GROUPS_A_NODE} groups, which is the limit");
                        return refuse(Code::ResourceExhausted, message);
                    }
                }
                let before = self.groups.get(id).map_or(0, Vec::len);
                room("nodes of multicast groups", self.node_count - before + nodes.len())
            }
            _ => Ok(()),
        }
    }

    /// Applies an edit, also to the switch. Errors: the switch refuses it; then nothing has changed.
    pub fn apply(
        &mut self,
        program: &Arc<Program>,
        switch: &mut Switch,
        now: Nanos,
        edit: Edit,
    ) -> Checked<()> {
        let before = self.there(&edit);
        let touched = self.set(edit);
        let done = self.push(program, switch, now, &touched);
        if done.is_err() {
            let touched = self.set(before);
            let _ = self.push(program, switch, now, &touched);
        }
        done
    }

    /// Applies an edit. Returns which of the switch's objects it affects.
    fn set(&mut self, edit: Edit) -> Vec<(bool, u32)> {
        match edit {
            Edit::Node(id, node) => {
                let ports = |node: Option<&Node>| node.map_or(0, |node| node.ports.len());
                self.port_count += ports(node.as_ref());
                self.port_count -= ports(put(&mut self.nodes, id, node).as_ref());
                self.users.get(&id).into_iter().flatten().map(|group| (true, *group)).collect()
            }
            Edit::Group(id, nodes) => {
                let added = nodes.clone().unwrap_or_default();
                let removed = put(&mut self.groups, id, nodes).unwrap_or_default();
                self.node_count = self.node_count + added.len() - removed.len();
                for node in removed {
                    if let Some(users) = self.users.get_mut(&node) {
                        users.remove(&id);
                        if users.is_empty() {
                            self.users.remove(&node);
                        }
                    }
                }
                for node in added {
                    self.users.entry(node).or_default().insert(id);
                }
                vec![(true, id)]
            }
            Edit::Session(id, session) => {
                put(&mut self.sessions, id, session);
                vec![(false, id)]
            }
        }
    }

    /// Writes groups and sessions to the switch.
    fn push(
        &self,
        program: &Arc<Program>,
        switch: &mut Switch,
        now: Nanos,
        touched: &[(bool, u32)],
    ) -> Checked<()> {
        for (is_group, id) in touched {
            let (exists, wanted) = match is_group {
                true => (switch.multicast_group_get(*id).is_some(), self.group(*id)?),
                false => (switch.clone_session_get(*id).is_some(), self.session(*id)),
            };
            let kind = match (&wanted, exists) {
                (Some(_), true) => v1::update::Type::Modify,
                (Some(_), false) => v1::update::Type::Insert,
                (None, true) => v1::update::Type::Delete,
                (None, false) => continue,
            };
            let keyed = || match is_group {
                true => Type::MulticastGroupEntry(MulticastGroupEntry {
                    multicast_group_id: *id,
                    ..Default::default()
                }),
                false => Type::CloneSessionEntry(CloneSessionEntry { session_id: *id, ..Default::default() }),
            };
            let entry = PacketReplicationEngineEntry { r#type: Some(wanted.unwrap_or_else(keyed)) };
            let entity = v1::Entity { entity: Some(entity::Entity::PacketReplicationEngineEntry(entry)) };
            let update = v1::Update { r#type: kind as i32, entity: Some(entity) };
            change(program, &update)?(switch, now)?;
        }
        Ok(())
    }

    fn group(&self, id: u32) -> Checked<Option<Type>> {
        let Some(nodes) = self.groups.get(&id) else { return Ok(None) };
        let many = nodes.len();
        let nodes = || nodes.iter().filter_map(|node| self.nodes.get(node));
        let count = nodes().map(|node| node.ports.len()).sum::<usize>().max(many);
        if count > COPIES {
            let message =
                format!("multicast group {id} would make {count} copies, and {COPIES} are the limit");
            return refuse(Code::ResourceExhausted, message);
        }
        let copies =
            nodes().flat_map(|node| node.ports.iter().map(|port| replica_of(*port, node.rid.into())));
        let replicas = copies.collect();
        let group = MulticastGroupEntry { multicast_group_id: id, replicas, ..Default::default() };
        Ok(Some(Type::MulticastGroupEntry(group)))
    }

    fn session(&self, id: u32) -> Option<Type> {
        let session = self.sessions.get(&id)?;
        Some(Type::CloneSessionEntry(CloneSessionEntry {
            session_id: id,
            replicas: vec![replica_of(session.port?, session.rid)],
            class_of_service: session.class,
            packet_length_bytes: session.most_bytes,
        }))
    }

    /// The next nodes as entries.
    pub fn nodes(&self, wanted: RangeInclusive<u32>) -> Vec<(u32, Entry)> {
        let one = |(id, node): (&u32, &Node)| {
            let entry = Entry::of("$pre.node")
                .exact("$MULTICAST_NODE_ID", (*id).into())
                .data("$MULTICAST_RID", node.rid)
                .data("$MULTICAST_LAG_ID", Value::Numbers(Vec::new()))
                .data("$DEV_PORT", Value::Numbers(node.ports.clone()));
            (*id, entry)
        };
        self.nodes.range(wanted).take(PAGE).map(one).collect()
    }

    /// The next groups as entries.
    pub fn groups(&self, wanted: RangeInclusive<u32>) -> Vec<(u32, Entry)> {
        let one = |(id, nodes): (&u32, &Vec<u32>)| {
            let empty = || Value::Numbers(Vec::new());
            let entry = Entry::of("$pre.mgid")
                .exact("$MGID", (*id).into())
                .data("$MULTICAST_NODE_ID", Value::Numbers(nodes.clone()))
                .data("$MULTICAST_NODE_L1_XID_VALID", Value::Bools(vec![false; nodes.len()]))
                .data("$MULTICAST_NODE_L1_XID", Value::Numbers(vec![0; nodes.len()]))
                .data("$MULTICAST_ECMP_ID", empty())
                .data("$MULTICAST_ECMP_L1_XID_VALID", Value::Bools(Vec::new()))
                .data("$MULTICAST_ECMP_L1_XID", empty());
            (*id, entry)
        };
        self.groups.range(wanted).take(PAGE).map(one).collect()
    }

    /// The next sessions as entries.
    pub fn sessions(&self, wanted: RangeInclusive<u32>) -> Vec<(u32, Entry)> {
        let next = self.sessions.range(wanted).take(PAGE);
        next.map(|(id, session)| (*id, session.entry.clone())).collect()
    }
}

#[allow(deprecated)]
fn replica_of(port: u32, instance: u32) -> Replica {
    let port_kind = Some(replica::PortKind::EgressPort(port));
    Replica { port_kind, instance, ..Default::default() }
}
