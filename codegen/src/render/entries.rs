//! Contents of the program's tables, meters and groups.

use super::MULTICAST_GROUP;
use crate::rack::{Host, Rack};
use crate::scheme::l2;
use crate::scheme::parts::{insert, replica};
use p4rack_p4rt::entity::{EntityError, Entry};
use p4rack_p4rt::p4::v1::packet_replication_engine_entry::Type;
use p4rack_p4rt::p4::v1::{MulticastGroupEntry, Uint128, Update, WriteRequest};
use p4rack_p4rt::schema::Schema;
use p4rack_p4rt::text;

/// The text-format `WriteRequest`, with a comment on the purpose of each update.
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

/// Contents of the program's tables, meters and groups, each with its purpose. `port_field` is the
/// architecture's name for the ingress port.
pub(super) fn updates(
    rack: &Rack,
    port_field: &str,
    schema: &Schema,
) -> Result<Vec<(String, Update)>, EntityError> {
    let mut updates = Vec::new();
    for (position, host) in rack.hosts.iter().enumerate() {
        let (name, port) = (&host.name, host.port);
        let (mut guard, mut forward) = (source_guard(host, port_field), l2_forward(host));
        for protocol in &rack.protocols {
            guard = protocol.source(rack, position, guard);
            forward = protocol.destination(rack, position, forward);
        }
        let accepts = format!("{name}: port {port} accepts {} as source", host.mac);
        updates.push((accepts, guard.update(schema)?));
        updates.push((format!("{name}: {} is at port {port}", host.mac), forward.update(schema)?));
    }
    let ports: Vec<u16> = rack.ports().map(|host| host.port).collect();
    updates.push(("Broadcast and multicast: all hosts".to_owned(), multicast_group(&ports)));
    for protocol in &rack.protocols {
        updates.extend(protocol.updates(rack, schema)?);
    }
    Ok(updates)
}

fn source_guard(host: &Host, port_field: &str) -> Entry {
    Entry::of(l2::SOURCE_GUARD)
        .exact(port_field, host.port)
        .exact("hdr.ethernet.srcAddr", host.mac.0)
        .action(l2::ACCEPT_SOURCE)
}

fn l2_forward(host: &Host) -> Entry {
    Entry::of(l2::L2_FORWARD)
        .exact("hdr.ethernet.dstAddr", host.mac.0)
        .action(l2::FORWARD)
        .param("port", host.port)
}

fn multicast_group(ports: &[u16]) -> Update {
    let group = MulticastGroupEntry {
        multicast_group_id: MULTICAST_GROUP.into(),
        replicas: ports.iter().map(|port| replica(*port)).collect(),
        ..Default::default()
    };
    insert(Type::MulticastGroupEntry(group))
}
