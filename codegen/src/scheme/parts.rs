//! Building blocks of programs and entries, shared by all protocols.

use crate::arch::Arch;
use crate::rack::DropReason;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::entity::EntityError;
use p4rack_p4rt::p4::v1::{
    CloneSessionEntry, Entity, Index, MeterConfig, MeterEntry, PacketReplicationEngineEntry, Replica, Update,
    packet_replication_engine_entry, replica, update,
};
use p4rack_p4rt::schema::{Schema, id_of};

/// Templates of `p4src/`, by path.
macro_rules! templates {
    ($($name:literal),* $(,)?) => {
        &[ $( ($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../p4src/", $name, ".p4.hbs"))) ),* ]
    };
}

/// Declarations of registers of `p4src/`, by path.
macro_rules! declarations {
    ($($name:literal),* $(,)?) => {
        &[ $( ($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../p4src/", $name, ".toml"))) ),* ]
    };
}

pub(crate) use {declarations, templates};

/// A constant for each reason, its index in a counter as wide as the architecture has it, and one for the number of
/// reasons.
pub(crate) fn index_constants(prefix: &str, reasons: &[DropReason], arch: Arch) -> String {
    let mut rows: Vec<(String, usize, &str)> = Vec::new();
    for (index, reason) in reasons.iter().enumerate() {
        rows.push((format!("{prefix}_{}", reason.name.to_uppercase()), index, reason.doc));
    }
    rows.push((format!("{prefix}_REASONS"), reasons.len(), "how many there are"));
    let lines = rows.iter().map(|(name, index, doc)| {
        let kind = if arch.is_tofino() && *index < reasons.len() { "bit<8>" } else { "bit<32>" };
        format!("const {kind} {name} = {index}; // {doc}")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A clone session with the number of a port, which sends copies to that port in this class of service.
pub(crate) fn clone_session(port: u16, class: u8) -> Update {
    let session = CloneSessionEntry {
        session_id: port.into(),
        replicas: vec![replica(port)],
        class_of_service: class.into(),
        ..Default::default()
    };
    insert(packet_replication_engine_entry::Type::CloneSessionEntry(session))
}

/// A clone session which sends the first bytes of copies to a port in this class of service. Its copies have no instance: those
/// that have are a group's, which never go back.
pub(crate) fn copies_of_heads(session: u16, port: u16, class: u8, bytes: u16) -> Update {
    let session = CloneSessionEntry {
        session_id: session.into(),
        replicas: vec![Replica { instance: 0, ..replica(port) }],
        class_of_service: class.into(),
        packet_length_bytes: bytes.into(),
    };
    insert(packet_replication_engine_entry::Type::CloneSessionEntry(session))
}

/// A replica for a port.
pub(crate) fn replica(port: u16) -> Replica {
    // The older of the two ways to name a port, which every server supports.
    #[allow(deprecated)]
    let port_kind = Some(replica::PortKind::EgressPort(port.into()));
    Replica { port_kind, instance: 1, ..Default::default() }
}

/// The meter cell of a port, with a single rate and burst; frames that exceed them are red.
pub(crate) fn meter(
    schema: &Schema,
    name: &str,
    port: u16,
    rate_per_s: i64,
    burst: i64,
) -> Result<Update, EntityError> {
    let entry = MeterEntry {
        meter_id: id_of(schema.meter(name)?.preamble.as_ref()),
        index: Some(Index { index: port.into() }),
        config: Some(MeterConfig {
            cir: rate_per_s,
            cburst: burst,
            pir: rate_per_s,
            pburst: burst,
            ..Default::default()
        }),
        ..Default::default()
    };
    // A meter's cell always exists, so it is modified, not inserted.
    Ok(update(update::Type::Modify, EntityKind::MeterEntry(entry)))
}

/// Inserts a group or a session.
pub(crate) fn insert(entry: packet_replication_engine_entry::Type) -> Update {
    let entry = PacketReplicationEngineEntry { r#type: Some(entry) };
    update(update::Type::Insert, EntityKind::PacketReplicationEngineEntry(entry))
}

fn update(kind: update::Type, entity: EntityKind) -> Update {
    Update { r#type: kind.into(), entity: Some(Entity { entity: Some(entity) }) }
}
