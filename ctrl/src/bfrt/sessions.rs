//! Mirror sessions: P4Runtime's clone sessions to one port.

use super::device::Unwritten;
use super::groups::{number, port_of, replica};
use super::{EVERYWHERE, Link, program_error};
use crate::error::CtrlError;
use p4rack_bfrt::{Entry, Value};
use p4rack_p4rt::bfrt_proto::{self as bfrt, TableEntry};
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::packet_replication_engine_entry::Type;
use p4rack_p4rt::p4::v1::{self, CloneSessionEntry, Entity, PacketReplicationEngineEntry, entity};

/// Table of mirror sessions.
const SESSIONS: &str = "$mirror.cfg";
const ID: &str = "$sid";
const NORMAL: &str = "$normal";

/// A session that sends copies to a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its number.
    pub id: u32,
    port: u32,
    rid: u32,
    class: u32,
    /// Longest copy in bytes; 0: all.
    bytes: u32,
}

impl Session {
    /// The session of P4Runtime's entry.
    pub fn of(given: &CloneSessionEntry) -> Result<Session, UpdateError> {
        let id = given.session_id;
        let [copy] = &given.replicas[..] else {
            let message = format!(
                "clone session {id} has {} replicas: over BFRuntime a session has one port",
                given.replicas.len()
            );
            return Err(UpdateError::new(Code::Unimplemented, message));
        };
        let port = port_of(copy).ok_or_else(|| {
            UpdateError::new(Code::InvalidArgument, format!("clone session {id}: a replica without a port"))
        })?;
        let bytes = u32::try_from(given.packet_length_bytes).unwrap_or(0);
        Ok(Session { id, port, rid: copy.instance, class: given.class_of_service, bytes })
    }

    /// The session that an entry of the table says. `None` if P4Runtime can't say it: it is disabled, or sends copies
    /// to a multicast group.
    pub fn read(entry: &Entry) -> Option<Session> {
        let value = |field: &str| entry.get(field).and_then(Value::number).unwrap_or(0) as u32;
        let is = |field: &str| entry.get(field) == Some(&Value::Bool(true));
        let plain = is("$session_enable") && is("$ucast_egress_port_valid");
        (plain && !is("$mcast_grp_a_valid") && !is("$mcast_grp_b_valid")).then_some(Session {
            id: number(entry, ID)?,
            port: value("$ucast_egress_port"),
            rid: value("$mcast_rid"),
            class: value("$ingress_cos"),
            bytes: value("$max_pkt_len"),
        })
    }

    /// P4Runtime's entity.
    pub fn entity(&self) -> Entity {
        let session = CloneSessionEntry {
            session_id: self.id,
            replicas: vec![replica(self.port, self.rid)],
            class_of_service: self.class,
            packet_length_bytes: i32::try_from(self.bytes).unwrap_or(i32::MAX),
        };
        let entry = PacketReplicationEngineEntry { r#type: Some(Type::CloneSessionEntry(session)) };
        Entity { entity: Some(entity::Entity::PacketReplicationEngineEntry(entry)) }
    }

    /// Its key.
    pub fn key(id: u32) -> Entry {
        Entry::of(SESSIONS).exact(ID, id.into())
    }

    /// Its entry. An unlimited length is left to the device.
    pub fn entry(&self) -> Entry {
        let entry = Session::key(self.id)
            .action(NORMAL)
            .data("$session_enable", Value::Bool(true))
            .data("$direction", Value::Text("BOTH".into()))
            .data("$ucast_egress_port", self.port)
            .data("$ucast_egress_port_valid", Value::Bool(true))
            .data("$mcast_rid", self.rid)
            .data("$ingress_cos", self.class);
        if self.bytes == 0 { entry } else { entry.data("$max_pkt_len", self.bytes) }
    }
}

impl Link {
    pub(super) async fn sessions(&mut self, wanted: Option<u32>) -> Result<Vec<Session>, CtrlError> {
        let table = self.bound()?.schema.table(SESSIONS).map_err(program_error)?;
        // For the key of an absent session, a driver answers INVALID_ARGUMENT.
        let answers = self.ask(vec![TableEntry { table_id: table.id, ..Default::default() }]).await?;
        let schema = &self.bound()?.schema;
        let read = answers.iter().map(|entry| Entry::read(schema, entry)).collect::<Result<Vec<Entry>, _>>();
        let mut found: Vec<Session> = read.map_err(program_error)?.iter().filter_map(Session::read).collect();
        found.retain(|session| wanted.is_none_or(|wanted| wanted == session.id));
        Ok(found)
    }

    /// Writes a clone session. A driver has no transactions for these.
    pub(super) async fn write_session(
        &mut self,
        kind: v1::update::Type,
        given: &v1::CloneSessionEntry,
    ) -> Result<(), Unwritten> {
        let (kind, entry) = match kind {
            v1::update::Type::Delete => (bfrt::update::Type::Delete, Session::key(given.session_id)),
            v1::update::Type::Insert => (bfrt::update::Type::Insert, Session::of(given)?.entry()),
            _ => (bfrt::update::Type::Modify, Session::of(given)?.entry()),
        };
        let update = self.fixed(kind, entry)?;
        self.write_one(EVERYWHERE, update).await
    }
}
