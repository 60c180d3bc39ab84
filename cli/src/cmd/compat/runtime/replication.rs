//! Multicast groups with nodes, clone sessions, parser value sets.
//!
//! A node stands for copies with one instance (rid) at some ports. P4Runtime's groups have such copies alone: associating a
//! node adds its copies to the group's.

use super::refusals::{Of, refused};
use super::words::{at_least, exactly, find, hex, number};
use super::{Call, Done, Failure, mistake};
use p4rack_ctrl::values::parse_match;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::bytes;
use p4rack_p4rt::p4::config::v1::ValueSet;
use p4rack_p4rt::p4::v1::field_match::FieldMatchType;
use p4rack_p4rt::p4::v1::packet_replication_engine_entry::Type as Engine;
use p4rack_p4rt::p4::v1::update::Type;
use p4rack_p4rt::p4::v1::{
    CloneSessionEntry, FieldMatch, MulticastGroupEntry, PacketReplicationEngineEntry, Replica, ValueSetEntry,
    ValueSetMember, replica,
};
use p4rack_p4rt::schema::id_of;
use std::collections::{BTreeMap, BTreeSet};

/// A multicast node.
#[derive(Clone, Debug, Default)]
struct MulticastNode {
    rid: u32,
    ports: BTreeSet<u32>,
    /// Groups that it is in.
    groups: BTreeSet<u32>,
}

/// Nodes by handle.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    next: u32,
    all: BTreeMap<u32, MulticastNode>,
}

/// Port and instance of a copy.
type Place = (u32, u32);

impl MulticastNode {
    fn copies(&self) -> impl Iterator<Item = Place> {
        self.ports.iter().map(|port| (*port, self.rid))
    }
}

fn copy_of(replica: &Replica) -> Place {
    #[allow(deprecated)]
    let port = match &replica.port_kind {
        Some(replica::PortKind::EgressPort(port)) => *port,
        Some(replica::PortKind::Port(port)) => {
            bytes::to_u128(port).and_then(|port| port.try_into().ok()).unwrap_or(u32::MAX)
        }
        None => u32::MAX,
    };
    (port, replica.instance)
}

fn replica((port, instance): Place) -> Replica {
    let port_kind = Some(replica::PortKind::Port(bytes::from_u128(port.into())));
    Replica { port_kind, instance, backup_replicas: Vec::new() }
}

fn engine(kind: Engine) -> EntityKind {
    EntityKind::PacketReplicationEngineEntry(PacketReplicationEngineEntry { r#type: Some(kind) })
}

/// Highest number of a port: programs have nine bits for it.
const PORT_MAX: u16 = 511;

fn port(word: &str) -> Done<u32> {
    match word.parse::<u16>() {
        Ok(port @ 0..=PORT_MAX) => Ok(port.into()),
        _ => mistake(format!("'{word}' is not a valid port number: ports have numbers from 0 to {PORT_MAX}")),
    }
}

/// Port numbers, without lags.
fn ports(words: &[&str]) -> Done<BTreeSet<u32>> {
    if words.contains(&"|") {
        return mistake("lags are not supported: give ports alone");
    }
    let mut ports = BTreeSet::new();
    for word in words {
        let port = port(word)?;
        if !ports.insert(port) {
            return mistake(format!("Found duplicate port number '{port}'"));
        }
    }
    Ok(ports)
}

/// BMv2's map of ports: a digit for each, the highest first.
fn map(ports: &BTreeSet<u32>) -> String {
    let digits = ports.last().map_or(0, |last| last + 1);
    (0..digits).rev().map(|port| if ports.contains(&port) { '1' } else { '0' }).collect()
}

impl Call<'_> {
    pub(super) async fn replication_command(&mut self, name: &str, args: &[&str]) -> Done {
        match name {
            "mc_mgrp_create" => {
                let group: u32 = number(exactly::<1>(args)?[0], "multicast group id")?;
                self.say(format!("Creating multicast group {group}"));
                self.put_group(Type::Insert, group, Vec::new()).await
            }
            "mc_mgrp_destroy" => {
                let group: u32 = number(exactly::<1>(args)?[0], "multicast group id")?;
                self.say(format!("Destroying multicast group {group}"));
                self.put_group(Type::Delete, group, Vec::new()).await?;
                self.runtime.nodes.all.values_mut().for_each(|node| {
                    node.groups.remove(&group);
                });
                Ok(())
            }
            "mc_node_create" => {
                let ([rid], words) = at_least::<1>(args)?;
                let (rid, ports) = (number::<u16>(rid, "rid")?.into(), ports(words)?);
                self.say(format!("Creating node with rid {rid} , port map {} and lag map ", map(&ports)));
                let nodes = &mut self.runtime.nodes;
                let handle = nodes.next;
                nodes.next += 1;
                nodes.all.insert(handle, MulticastNode { rid, ports, groups: BTreeSet::new() });
                self.say(format!("node was created with handle {handle}"));
                Ok(())
            }
            "mc_node_update" => self.update_node(args).await,
            "mc_node_associate" | "mc_node_dissociate" => {
                let [group, handle] = exactly::<2>(args)?;
                let group: u32 = number(group, "multicast group id")?;
                let (handle, node) = self.node(handle)?;
                match name == "mc_node_associate" {
                    true => {
                        self.say(format!("Associating node {handle} to multicast group {group}"));
                        self.change_group(group, None, Some(&node)).await?;
                        self.groups_of(handle, |groups| {
                            groups.insert(group);
                        });
                    }
                    false => {
                        self.say(format!("Dissociating node {handle} from multicast group {group}"));
                        if !node.groups.contains(&group) {
                            let why = format!("node {handle} is not in group {group}");
                            return Err(Of::Multicast.refusal("INVALID_L1_HANDLE", why));
                        }
                        self.change_group(group, Some(&node), None).await?;
                        self.groups_of(handle, |groups| {
                            groups.remove(&group);
                        });
                    }
                }
                Ok(())
            }
            "mc_node_destroy" => {
                let [handle] = exactly::<1>(args)?;
                let (handle, node) = self.node(handle)?;
                self.say(format!("Destroying node {handle}"));
                for group in &node.groups {
                    self.change_group(*group, Some(&node), None).await?;
                }
                self.runtime.nodes.all.remove(&handle);
                Ok(())
            }
            "mc_dump" => self.dump_groups().await,
            "mirroring_add" => self.mirroring_add(args).await,
            "mirroring_delete" => {
                let session_id: u32 = number(exactly::<1>(args)?[0], "mirror_id")?;
                let session = CloneSessionEntry { session_id, ..Default::default() };
                self.write(Type::Delete, engine(Engine::CloneSessionEntry(session)))
                    .await
                    .map_err(refused(Of::Mirroring))
            }
            "mirroring_get" => {
                let id: u32 = number(exactly::<1>(args)?[0], "mirror_id")?;
                match self.session(id).await? {
                    Some(session) => {
                        let ports: Vec<String> =
                            session.replicas.iter().map(|replica| copy_of(replica).0.to_string()).collect();
                        self.say(format!("MirroringSessionConfig(port={}, mgid=None)", ports.join(", ")));
                        Ok(())
                    }
                    None => {
                        Err(Of::Mirroring.refusal("SESSION_NOT_FOUND", format!("there is no session {id}")))
                    }
                }
            }
            _ => self.value_set_command(name, args).await,
        }
    }

    fn node(&self, handle: &str) -> Done<(u32, MulticastNode)> {
        let handle: u32 = number(handle, "node handle")?;
        match self.runtime.nodes.all.get(&handle) {
            Some(node) => Ok((handle, node.clone())),
            None => Err(Of::Multicast.refusal("INVALID_L1_HANDLE", format!("there is no node {handle}"))),
        }
    }

    fn groups_of(&mut self, handle: u32, change: impl FnOnce(&mut BTreeSet<u32>)) {
        if let Some(node) = self.runtime.nodes.all.get_mut(&handle) {
            change(&mut node.groups);
        }
    }

    /// The groups with an id, or with 0 all.
    async fn multicast(&mut self, multicast_group_id: u32) -> Done<Vec<MulticastGroupEntry>> {
        let asked = MulticastGroupEntry { multicast_group_id, ..Default::default() };
        let found = self.read(engine(Engine::MulticastGroupEntry(asked))).await?;
        let groups = found.into_iter().filter_map(|kind| match kind {
            EntityKind::PacketReplicationEngineEntry(PacketReplicationEngineEntry {
                r#type: Some(Engine::MulticastGroupEntry(group)),
            }) => Some(group),
            _ => None,
        });
        Ok(groups.collect())
    }

    async fn put_group(&mut self, kind: Type, multicast_group_id: u32, replicas: Vec<Replica>) -> Done {
        let group = MulticastGroupEntry { multicast_group_id, replicas, ..Default::default() };
        self.write(kind, engine(Engine::MulticastGroupEntry(group))).await.map_err(refused(Of::Multicast))
    }

    /// Takes a node's copies out of a group, and adds another's.
    async fn change_group(
        &mut self,
        id: u32,
        out: Option<&MulticastNode>,
        into: Option<&MulticastNode>,
    ) -> Done {
        let Some(group) = self.multicast(id).await?.into_iter().next() else {
            let why = format!("there is no multicast group {id}");
            return Err(Of::Multicast.refusal("INVALID_MGRP_HANDLE", why));
        };
        let leaving: BTreeSet<Place> = out.into_iter().flat_map(MulticastNode::copies).collect();
        let mut replicas = group.replicas;
        replicas.retain(|replica| !leaving.contains(&copy_of(replica)));
        replicas.extend(into.into_iter().flat_map(MulticastNode::copies).map(replica));
        self.put_group(Type::Modify, id, replicas).await
    }

    async fn update_node(&mut self, args: &[&str]) -> Done {
        let ([handle], words) = at_least::<1>(args)?;
        let (handle, before) = self.node(handle)?;
        let after = MulticastNode { ports: ports(words)?, ..before.clone() };
        self.say(format!("Updating node {handle} with port map {} and lag map ", map(&after.ports)));
        for group in &before.groups {
            self.change_group(*group, Some(&before), Some(&after)).await?;
        }
        self.runtime.nodes.all.insert(handle, after);
        Ok(())
    }

    async fn dump_groups(&mut self) -> Done {
        let groups = self.multicast(0).await?;
        self.say("==========\nMC ENTRIES");
        for group in &groups {
            let id = group.multicast_group_id;
            self.say(format!("**********\nmgrp({id})"));
            let mut left: BTreeSet<Place> = group.replicas.iter().map(copy_of).collect();
            let nodes: Vec<(u32, MulticastNode)> =
                self.runtime.nodes.all.iter().map(|(at, node)| (*at, node.clone())).collect();
            for (handle, node) in nodes.iter().filter(|(_, node)| node.groups.contains(&id)) {
                self.say(node_line(&handle.to_string(), node.rid, node.ports.iter()));
                node.copies().for_each(|copy| {
                    left.remove(&copy);
                });
            }
            // A controller's, which has no nodes.
            let mut by_rid: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            left.iter().for_each(|(port, rid)| by_rid.entry(*rid).or_default().push(*port));
            for (rid, ports) in by_rid {
                self.say(node_line("none", rid, ports.iter()));
            }
        }
        self.say("==========\nLAGS\nNone for this PRE type\n==========");
        Ok(())
    }

    async fn session(&mut self, session_id: u32) -> Done<Option<CloneSessionEntry>> {
        let asked = CloneSessionEntry { session_id, ..Default::default() };
        let found = self.read(engine(Engine::CloneSessionEntry(asked))).await?;
        Ok(found.into_iter().find_map(|kind| match kind {
            EntityKind::PacketReplicationEngineEntry(PacketReplicationEngineEntry {
                r#type: Some(Engine::CloneSessionEntry(session)),
            }) => Some(session),
            _ => None,
        }))
    }

    async fn mirroring_add(&mut self, args: &[&str]) -> Done {
        let [id, port] = exactly::<2>(args)?;
        let (session_id, port): (u32, u32) = (number(id, "mirror_id")?, self::port(port)?);
        if session_id == 0 {
            return mistake("sessions are numbered from 1: P4Runtime's session 0 means all");
        }
        let kind = if self.session(session_id).await?.is_some() { Type::Modify } else { Type::Insert };
        let session =
            CloneSessionEntry { session_id, replicas: vec![replica((port, 1))], ..Default::default() };
        self.write(kind, engine(Engine::CloneSessionEntry(session))).await.map_err(refused(Of::Mirroring))
    }

    async fn value_set_command(&mut self, name: &str, args: &[&str]) -> Done {
        let sets = self.schema.info().value_sets.clone();
        if name == "show_pvs" {
            exactly::<0>(args)?;
            let mut lines: Vec<String> = sets.iter().map(set_line).collect();
            lines.sort_unstable();
            lines.iter().for_each(|line| self.say(line));
            return Ok(());
        }
        if !["pvs_add", "pvs_remove", "pvs_get", "pvs_clear"].contains(&name) {
            return self.unknown(name);
        }
        let ([set_name], rest) = at_least::<1>(args)?;
        let set = find(Of::ValueSet.kind(), set_name, &sets, |set| set.preamble.as_ref())?;
        let value_set_id = id_of(set.preamble.as_ref());
        let [field] = &set.r#match[..] else {
            return mistake(format!(
                "{set_name} has values of {} fields; take `p4rack group`",
                set.r#match.len()
            ));
        };
        let asked = ValueSetEntry { value_set_id, members: Vec::new() };
        let found = self.read(EntityKind::ValueSetEntry(asked)).await?;
        let mut members = found
            .into_iter()
            .find_map(|kind| match kind {
                EntityKind::ValueSetEntry(set) => Some(set.members),
                _ => None,
            })
            .unwrap_or_default();
        match name {
            "pvs_get" => {
                exactly::<0>(rest)?;
                for member in &members {
                    let value = member.r#match.first().and_then(|key| key.field_match_type.as_ref());
                    if let Some(FieldMatchType::Exact(exact)) = value {
                        self.say(hex(&exact.value, field.bitwidth));
                    }
                }
                return Ok(());
            }
            "pvs_clear" => {
                exactly::<0>(rest)?;
                members.clear();
            }
            _ => {
                let [text] = exactly::<1>(rest)?;
                let value = parse_match(text, field).map_err(|why| Failure(format!("Error: {why}")))?;
                let key = FieldMatch { field_id: field.id, field_match_type: value };
                let member = ValueSetMember { r#match: vec![key] };
                members.retain(|other| *other != member);
                if name == "pvs_add" {
                    members.push(member);
                }
            }
        }
        let changed = EntityKind::ValueSetEntry(ValueSetEntry { value_set_id, members });
        self.write(Type::Modify, changed).await.map_err(refused(Of::ValueSet))
    }
}

fn set_line(set: &ValueSet) -> String {
    let width: i32 = set.r#match.iter().map(|field| field.bitwidth).sum();
    format!("{:30} [compressed bitwidth:{width}]", p4rack_p4rt::schema::name_of(set.preamble.as_ref()))
}

fn node_line<'a>(handle: &str, rid: u32, ports: impl Iterator<Item = &'a u32>) -> String {
    let ports: Vec<String> = ports.map(u32::to_string).collect();
    format!("  -> (L1h={handle}, rid={rid}) -> (ports=[{}], lags=[])", ports.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_become_a_map_of_digits() {
        assert_eq!(map(&ports(&["1", "3", "0"]).unwrap()), "1011");
        assert_eq!(map(&BTreeSet::new()), "");
        assert!(ports(&["1", "1"]).unwrap_err().0.contains("duplicate"));
        assert!(ports(&["1", "|", "2"]).unwrap_err().0.contains("lags"));
        assert!(ports(&["x"]).is_err());
        assert_eq!(map(&ports(&["0", "511"]).unwrap()).len(), 512);
        for beyond in ["512", "65535", "65536", "4294967294", "4294967295", "-1"] {
            assert!(ports(&[beyond]).is_err(), "{beyond}");
        }
    }
}
