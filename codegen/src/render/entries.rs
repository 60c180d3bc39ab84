//! What fills the program's tables, meters and groups.

use super::{MULTICAST_GROUP, PRIORITY_CONTROL};
use crate::rack::units::show_rate;
use crate::rack::{Host, Pl2, Rack, Scheme};
use p4rack_p4rt::entity::{EntityError, Entry};
use p4rack_p4rt::p4::v1::{
    CloneSessionEntry, Entity, Index, MeterConfig, MeterEntry, MulticastGroupEntry,
    PacketReplicationEngineEntry, Replica, Uint128, Update, WriteRequest, entity,
    packet_replication_engine_entry, replica, update,
};
use p4rack_p4rt::schema::{Schema, id_of};
use p4rack_p4rt::text;

/// Frames that a port may send at once before its control meter looks at the rate.
const CONTROL_BURST_FRAMES: i64 = 256;
/// Bytes that a port may send at once before its best effort meter looks at the rate.
const BEST_EFFORT_BURST_BYTES: i64 = 32 << 10;

/// The text-format `WriteRequest`, each update with a comment on what it is for.
pub(super) fn text(rack: &Rack, entries: Vec<(String, Update)>) -> String {
    let mut text = text::print(&WriteRequest {
        device_id: rack.switch.device_id,
        election_id: Some(Uint128 { high: 0, low: 1 }),
        ..Default::default()
    });
    for (comment, update) in entries {
        let update = text::print(&WriteRequest { updates: vec![update], ..Default::default() });
        text.push_str(&format!("\n# {comment}\n{update}"));
    }
    text
}

/// What the program's tables, meters and groups hold, each with what it is for. `port_field` is the architecture's name
/// for the port that a frame came in by.
pub(super) fn updates(
    rack: &Rack,
    scheme: Scheme,
    port_field: &str,
    schema: &Schema,
) -> Result<Vec<(String, Update)>, EntityError> {
    let mut updates = Vec::new();
    for (position, host) in rack.hosts.iter().enumerate() {
        let (name, port) = (&host.name, host.port);
        let guard = source_guard(rack, position, host, scheme, port_field).update(schema)?;
        updates.push((format!("{name}: port {port} accepts {} as source", host.mac), guard));
        let forward = l2_forward(rack, position, host, scheme).update(schema)?;
        updates.push((format!("{name}: {} is at port {port}", host.mac), forward));
    }
    let group = insert(entity::Entity::PacketReplicationEngineEntry(all_hosts(rack)));
    updates.push(("Broadcast and multicast: all hosts".to_owned(), group));
    if let Some(pl2) = rack.pl2.as_ref().filter(|_| scheme != Scheme::L2) {
        for host in rack.ports() {
            updates.extend(meters(rack, host, pl2, schema)?);
            if pl2.notify_receiver {
                let session = insert(entity::Entity::PacketReplicationEngineEntry(notify_session(host)));
                updates.push((format!("{}: copies of grants to send to it", host.name), session));
            }
        }
    }
    Ok(updates)
}

fn source_guard(rack: &Rack, position: usize, host: &Host, scheme: Scheme, port_field: &str) -> Entry {
    let entry = Entry::of("RackIngress.source_guard")
        .exact(port_field, host.port)
        .exact("hdr.ethernet.srcAddr", host.mac.0)
        .action("RackIngress.accept_source");
    match scheme {
        Scheme::L2 => entry,
        Scheme::Pl2Clock | Scheme::Pl2Counter => link(rack, host, entry.param("slot", rack.part_units(host)))
            .param("cells", rack.source_cells(position)),
    }
}

/// Where links are slower than their port, reservations are kept by link.
fn link(rack: &Rack, host: &Host, entry: Entry) -> Entry {
    if rack.breakout_links() > 0 { entry.param("link", host.link) } else { entry }
}

fn l2_forward(rack: &Rack, position: usize, host: &Host, scheme: Scheme) -> Entry {
    let entry = Entry::of("RackIngress.l2_forward")
        .exact("hdr.ethernet.dstAddr", host.mac.0)
        .action("RackIngress.forward")
        .param("port", host.port);
    let entry = match (scheme, &rack.pl2) {
        (Scheme::Pl2Clock, Some(pl2)) => entry
            .param("slot", rack.part_units(host))
            .param("drop_threshold", rack.slot_units(host) * u64::from(pl2.drop_threshold_slots)),
        _ => entry,
    };
    match scheme {
        Scheme::L2 => entry,
        _ => link(rack, host, entry).param("cells", rack.destination_cells(position)),
    }
}

fn all_hosts(rack: &Rack) -> PacketReplicationEngineEntry {
    // The older of the two ways to name a port: every server knows it.
    #[allow(deprecated)]
    let replica = |host: &Host| Replica {
        port_kind: Some(replica::PortKind::EgressPort(host.port.into())),
        instance: 1,
        ..Default::default()
    };
    let group = MulticastGroupEntry {
        multicast_group_id: MULTICAST_GROUP.into(),
        replicas: rack.ports().map(replica).collect(),
        ..Default::default()
    };
    let r#type = Some(packet_replication_engine_entry::Type::MulticastGroupEntry(group));
    PacketReplicationEngineEntry { r#type }
}

/// Copies for a host travel as its grants do.
fn notify_session(host: &Host) -> PacketReplicationEngineEntry {
    #[allow(deprecated)]
    let replica = Replica {
        port_kind: Some(replica::PortKind::EgressPort(host.port.into())),
        instance: 1,
        ..Default::default()
    };
    let session = CloneSessionEntry {
        session_id: host.port.into(),
        replicas: vec![replica],
        class_of_service: PRIORITY_CONTROL.into(),
        ..Default::default()
    };
    let r#type = Some(packet_replication_engine_entry::Type::CloneSessionEntry(session));
    PacketReplicationEngineEntry { r#type }
}

fn meters(
    rack: &Rack,
    host: &Host,
    pl2: &Pl2,
    schema: &Schema,
) -> Result<Vec<(String, Update)>, EntityError> {
    let mut updates = Vec::new();
    if pl2.control_per_slot > 0 {
        // Of slower links as many slots pass as the port has room for.
        let links = host.port_rate_bps / host.rate_bps.max(1);
        let per_s = u64::from(pl2.control_per_slot) * links * 1_000_000_000 / host.slot.0.max(1);
        let burst =
            CONTROL_BURST_FRAMES.max(4 * rack.hosts.len() as i64 * i64::from(pl2.reservations_in_flight));
        let meter = meter(schema, "RackIngress.control_meter", host, per_s.max(1) as i64, burst)?;
        updates.push((format!("{}: {per_s} control frames a second", host.name), meter));
    }
    let percent = host.foreign_percent.unwrap_or(pl2.best_effort_percent);
    if percent < 100 {
        let rate_bps = host.port_rate_bps / 100 * u64::from(percent);
        let rate = (rate_bps / 8).max(1) as i64;
        let burst = match host.foreign_percent {
            // Whoever sends there does not know the meter: what one buffer takes at once, so that chance alone drops nothing.
            Some(_) => BEST_EFFORT_BURST_BYTES.max(rack.switch.buffer_bytes as i64 / 8),
            None => BEST_EFFORT_BURST_BYTES,
        };
        let meter = meter(schema, "RackIngress.best_effort_meter", host, rate, burst)?;
        updates.push((format!("{}: {} of best effort", host.name, show_rate(rate_bps)), meter));
    }
    Ok(updates)
}

/// One rate, one burst: what exceeds them is red.
fn meter(
    schema: &Schema,
    name: &str,
    host: &Host,
    rate_per_s: i64,
    burst: i64,
) -> Result<Update, EntityError> {
    let entry = MeterEntry {
        meter_id: id_of(schema.meter(name)?.preamble.as_ref()),
        index: Some(Index { index: host.port.into() }),
        config: Some(MeterConfig {
            cir: rate_per_s,
            cburst: burst,
            pir: rate_per_s,
            pburst: burst,
            ..Default::default()
        }),
        ..Default::default()
    };
    // A meter's cell exists from the start: it can be modified, not inserted.
    Ok(update(update::Type::Modify, entity::Entity::MeterEntry(entry)))
}

fn insert(entity: entity::Entity) -> Update {
    update(update::Type::Insert, entity)
}

fn update(kind: update::Type, entity: entity::Entity) -> Update {
    Update { r#type: kind.into(), entity: Some(Entity { entity: Some(entity) }) }
}
