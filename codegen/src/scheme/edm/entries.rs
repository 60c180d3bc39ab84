//! Entries that EDM adds to a program.

use super::alu::LATER_PASS_BITS;
use super::times::{CROSSING_BYTES, HEAD_BYTES, HEADERS, UNIT_BYTES};
use super::{CLASS_CONTROL, CONTROL_METER, CROSSING_METER, Edm, Mode};
use crate::rack::loops::{self, carried_bits};
use crate::rack::{Host, Protocol, Rack, crossings, pipes};
use crate::scheme::parts::{copies_of_heads, meter};
use p4rack_p4rt::entity::{EntityError, Entry};
use p4rack_p4rt::p4::v1::Update;
use p4rack_p4rt::schema::Schema;
use p4rack_wire::ethernet::overhead;

/// First clone session of copies that become grants; those of ports follow.
pub(super) const SESSIONS: u16 = 512;
/// First clone session of copies that look for waiting demands.
const LOOKS: u16 = 1_024;
/// Minimum burst of a port's control meter, in frames.
const CONTROL_BURST_FRAMES: u64 = 256;

/// Table of the time that bytes take on the wire, and its action.
const TIMES: &str = "RackIngress.edm.times";
const TAKE_TIMES: &str = "RackIngress.edm.take_times";

/// Tables of hosts by number, and their actions: the receiver of a demand's grant, and the peer of its message.
const GRANTEES: &str = "RackIngress.edm.grantees";
const TO_GRANTEE: &str = "RackIngress.edm.to_grantee";
const PARTNERS: &str = "RackIngress.edm.partners";
const ABOUT_PARTNER: &str = "RackIngress.edm.about_partner";

/// Tables of the ways to registers of other pipes, and their action.
const OWNERS: &str = "RackIngress.edm_pipes.owners";
const LANE_OWNERS: &str = "RackIngress.edm_pipes.lane_owners";
const GO_TO: &str = "RackIngress.edm_pipes.go_to";

/// Bytes before a copied head on Tofino: those of `head_t` in the P4 text.
const HEAD_HEADER_BYTES: u16 = 9;
/// The same of `matched`.
const MATCHED_HEADER_BYTES: u16 = 27;

/// A host's number as a source. On Tofino it also names the session by which heads of its chunks return to its port.
pub(super) fn source(edm: &Edm, rack: &Rack, position: usize, entry: Entry) -> Entry {
    let entry = host(edm, rack, position, entry);
    // Under `matched` the tables of grantees name it.
    let entry = match rack.switch.arch.is_tofino() && edm.mode != Mode::Matched {
        true => entry.param("edm_session", session(rack, rack.hosts[position].port)),
        false => entry,
    };
    match pipes::are_several(rack) {
        true => entry.param("edm_home", way_to(rack, &rack.hosts[position])),
        false => entry,
    }
}

/// A host's numbers as a destination. If hosts are in several pipes, with the ways to its one.
pub(super) fn destination(edm: &Edm, rack: &Rack, position: usize, entry: Entry) -> Entry {
    let entry = host(edm, rack, position, entry);
    let of = &rack.hosts[position];
    match pipes::are_several(rack) {
        true => entry
            .param("edm_away", way_to(rack, of))
            .param("edm_head_way", head_session(rack, pipes::pipe_of(of.port))),
        false => entry,
    }
}

/// The port by which frames come to a host's pipe.
fn way_to(rack: &Rack, host: &Host) -> u16 {
    loops::way_to(rack, pipes::pipe_of(host.port))
}

/// The clone session of heads that go to a pipe.
fn head_session(rack: &Rack, pipe: u16) -> u16 {
    let place = pipes::used(rack).iter().position(|used| *used == pipe).unwrap_or(0);
    (rack.ports().count() + 1 + place) as u16
}

/// The clone session of copies that become grants and leave by this port. Tofino has too few to number them by ports.
fn session(rack: &Rack, port: u16) -> u16 {
    match rack.switch.arch.is_tofino() {
        true => rack.ports().position(|host| host.port == port).map_or(0, |place| place as u16 + 1),
        false => SESSIONS + port,
    }
}

/// A host's numbers as a source and as a destination.
fn host(edm: &Edm, rack: &Rack, position: usize, entry: Entry) -> Entry {
    let host = &rack.hosts[position];
    let asked = edm.asked_cells(host);
    let rate = edm.rates(rack).iter().position(|rate| *rate == host.rate_bps);
    let entry = entry
        .param("edm_link", host.link)
        .param("edm_asks", edm.asks_cells(position))
        .param("edm_asked", asked.unwrap_or(0))
        .param("edm_memory", u8::from(asked.is_some()))
        .param("edm_rate", rate.unwrap_or(0) as u64);
    let entry = match edm.claims(rack) {
        true => entry.param("edm_chunk_time", edm.grant_units(rack, edm.chunk_bytes.into(), host.rate_bps)),
        false => entry,
    };
    if edm.mode != Mode::Matched {
        return entry;
    }
    let entry = entry.param("edm_host", number(position));
    if !rack.switch.arch.is_tofino() {
        return entry;
    }
    let rings = edm.host_links(rack).iter().position(|link| *link == host.link);
    entry.param("edm_rings", rings.unwrap_or(0) as u64)
}

/// The number by which waiting demands name a host.
fn number(position: usize) -> u64 {
    position as u64 + 1
}

pub(super) fn updates(edm: &Edm, rack: &Rack, schema: &Schema) -> Result<Vec<(String, Update)>, EntityError> {
    let mut updates = times(edm, rack, schema)?;
    for host in rack.ports() {
        if edm.control_percent < 100 {
            updates.push(control_meter(edm, rack, host, schema)?);
        }
        if pipes::are_several(rack) {
            updates.extend(crossing_meter(edm, rack, host, schema)?);
        }
        let matched = edm.mode == Mode::Matched;
        let bytes = match rack.switch.arch.is_tofino() {
            false => HEAD_BYTES,
            true if matched => {
                MATCHED_HEADER_BYTES
                    + (carried_bits(loops::left_bits(rack) + LATER_PASS_BITS) / 8) as u16
                    + HEADERS as u16
            }
            // What it was remains behind the grant.
            true if pipes::are_several(rack) => {
                HEAD_HEADER_BYTES + (carried_bits(8) / 8) as u16 + CROSSING_BYTES
            }
            true => HEAD_HEADER_BYTES + HEAD_BYTES,
        };
        let session = copies_of_heads(session(rack, host.port), host.port, CLASS_CONTROL, bytes);
        updates.push((format!("{}: heads of its chunks, which come back as grants", host.name), session));
        if matched && !rack.switch.arch.is_tofino() {
            let session = copies_of_heads(LOOKS + host.port, host.port, CLASS_CONTROL, HEADERS as u16);
            updates.push((format!("{}: headers of its frames, which look for demands", host.name), session));
        }
    }
    if pipes::are_several(rack) {
        updates.extend(crossings(edm, rack, schema)?);
    }
    if edm.mode == Mode::Matched {
        for (position, host) in rack.hosts.iter().enumerate() {
            let of = |table, action| {
                Entry::of(table).exact("host", number(position)).action(action).param("mac", host.mac.0)
            };
            let grantee = match rack.switch.arch.is_tofino() {
                true => of(GRANTEES, TO_GRANTEE).param("edm_session", session(rack, host.port)),
                false => of(GRANTEES, TO_GRANTEE).param("port", host.port),
            };
            updates.push((format!("{}: grants of demands that waited", host.name), grantee.update(schema)?));
            let partner = of(PARTNERS, ABOUT_PARTNER);
            updates.push((format!("{}: grants of data to or from it", host.name), partner.update(schema)?));
        }
    }
    Ok(updates)
}

/// Sessions of heads that go to another pipe, and where management frames have to go, of links and lanes in another pipe than that
/// of the controller's port.
fn crossings(edm: &Edm, rack: &Rack, schema: &Schema) -> Result<Vec<(String, Update)>, EntityError> {
    let mut updates = Vec::new();
    for pipe in pipes::used(rack) {
        let bytes = (carried_bits(8) / 8) as u16 + CROSSING_BYTES;
        let session =
            copies_of_heads(head_session(rack, pipe), loops::way_to(rack, pipe), CLASS_CONTROL, bytes);
        updates.push((format!("heads that go to pipe {pipe}"), session));
    }
    let controllers = pipes::pipe_of(rack.switch.cpu_port);
    let mut owned = |table, key, index: u64, pipe: u16, what: String| -> Result<(), EntityError> {
        if pipe != controllers {
            let entry =
                Entry::of(table).exact(key, index).action(GO_TO).param("owner", loops::way_to(rack, pipe));
            updates.push((what, entry.update(schema)?));
        }
        Ok(())
    };
    let mut links: Vec<(u16, u16)> =
        rack.hosts.iter().map(|host| (host.link, pipes::pipe_of(host.port))).collect();
    links.sort_unstable();
    links.dedup();
    for (link, pipe) in links {
        owned(OWNERS, "hdr.edm_management.index", link.into(), pipe, format!("the clock of link {link}"))?;
    }
    for (asks, host) in rack.hosts.iter().enumerate() {
        for (asked, memory) in rack.hosts.iter().enumerate() {
            for (answer, from) in [(false, host), (true, memory)] {
                let Some(cell) = edm.cell(rack, asks, asked, answer, 0) else { continue };
                let what = format!("lanes of {} and {}", host.name, memory.name);
                owned(LANE_OWNERS, "lanes", (cell / edm.lanes()).into(), pipes::pipe_of(from.port), what)?;
            }
        }
    }
    for memory in &rack.hosts {
        // Of the controller's own demands.
        let Some(asked) = edm.asked_cells(memory) else { continue };
        let answers = u64::from(asked / edm.lanes() + 1);
        let what = format!("lanes of the controller and {}", memory.name);
        owned(LANE_OWNERS, "lanes", answers, pipes::pipe_of(memory.port), what)?;
    }
    Ok(updates)
}

/// The time of granted bytes, in units, at each rate or pair of rates.
fn times(edm: &Edm, rack: &Rack, schema: &Schema) -> Result<Vec<(String, Update)>, EntityError> {
    let (rates, both) = (edm.rates(rack), edm.mode.looks_at_sources());
    // Zero bytes have an entry only in tables that also give the time of a window.
    let matched = edm.mode == Mode::Matched;
    let takes = |bytes, rate_bps| edm.grant_units(rack, bytes, rate_bps);
    let froms: &[u64] = if both { &rates } else { &rates[..1] };
    let mut updates = Vec::new();
    for (from, from_bps) in froms.iter().enumerate() {
        for (to, to_bps) in rates.iter().enumerate() {
            for units in u64::from(!matched)..=u64::from(edm.window_bytes()).div_ceil(UNIT_BYTES) {
                let bytes = (units * UNIT_BYTES).min(edm.window_bytes().into());
                let mut entry = Entry::of(TIMES).exact("units", units).exact("meta.edm.to_rate", to as u64);
                if both {
                    entry = entry.exact("meta.edm.from_rate", from as u64);
                }
                entry = entry.action(TAKE_TIMES);
                if edm.mode == Mode::Calendar {
                    let more = |rate_bps| edm.grant_cells(rack, bytes, rate_bps) - 1;
                    let [from, to] = [*from_bps, *to_bps].map(more);
                    entry = entry.param("from_more", from).param("to_more", to).param("more", from.max(to));
                    updates.push((format!("Cells that {bytes} bytes take"), entry.update(schema)?));
                    continue;
                }
                entry = entry.param("to_time", takes(bytes, *to_bps));
                if both {
                    entry = entry.param("from_time", takes(bytes, *from_bps));
                }
                if matched {
                    let window = edm.grant_units(rack, edm.window_bytes().into(), *to_bps);
                    entry = match rack.switch.arch.is_tofino() {
                        true => entry.param("excess", window - takes(bytes, *to_bps)),
                        false => entry.param("window_time", window),
                    };
                    entry = entry.param("limit", window * u64::from(edm.ahead));
                }
                updates.push((format!("What {bytes} bytes take"), entry.update(schema)?));
            }
        }
    }
    Ok(updates)
}

/// Bounds the bytes of control frames. The shortest ones take more time on the wire than their bytes.
fn control_meter(
    edm: &Edm,
    rack: &Rack,
    host: &Host,
    schema: &Schema,
) -> Result<(String, Update), EntityError> {
    let bytes_s = control_bytes_s(edm, host);
    let meter =
        meter(schema, CONTROL_METER, host.port, (bytes_s as i64).max(1), control_burst(edm, rack) as i64)?;
    Ok((format!("{}: {} % for notifications and requests", host.name, edm.control_percent), meter))
}

/// Bytes of control frames that a port may send in a second.
fn control_bytes_s(edm: &Edm, host: &Host) -> u128 {
    let bits_s = u128::from(host.port_rate_bps) * u128::from(edm.control_percent) / 100;
    bits_s / 8 * u128::from(overhead::MIN_FRAME) / u128::from(overhead::wire_bytes(overhead::MIN_FRAME))
}

/// Bytes of control frames that a port may send without a gap.
fn control_burst(edm: &Edm, rack: &Rack) -> u64 {
    CONTROL_BURST_FRAMES.max(4 * rack.hosts.len() as u64 * u64::from(edm.demands)) * overhead::MIN_FRAME
}

/// Bounds the bytes of requests to other pipes: a request crosses before its lane is looked up, so lanes don't bound them. `None` if
/// the other meter does, because the port between the pipes carries what all hosts may send.
fn crossing_meter(
    edm: &Edm,
    rack: &Rack,
    host: &Host,
    schema: &Schema,
) -> Result<Option<(String, Update)>, EntityError> {
    let Some(crossing) = edm.crossing() else { return Ok(None) };
    let bytes_s = u128::from(crossings::share_s(rack, &crossing, host)) * u128::from(overhead::MIN_FRAME);
    if bytes_s >= control_bytes_s(edm, host) {
        return Ok(None);
    }
    let meter =
        meter(schema, CROSSING_METER, host.port, (bytes_s as i64).max(1), control_burst(edm, rack) as i64)?;
    Ok(Some((format!("{}: its share of the ports to other pipes, for requests", host.name), meter)))
}
