//! What PL2 adds to a program's entries.

use super::{CONTROL_METER, EARLY_SLOTS, Mode, PRIORITY_CONTROL, Pl2};
use crate::rack::units::show_rate;
use crate::rack::{Host, Rack};
use crate::scheme::l2::BEST_EFFORT_METER;
use crate::scheme::parts::{clone_session, meter};
use p4rack_p4rt::entity::{EntityError, Entry};
use p4rack_p4rt::p4::v1::Update;
use p4rack_p4rt::schema::Schema;

/// Minimum burst of a port's control meter, in frames.
const CONTROL_BURST_FRAMES: i64 = 256;
/// Minimum burst of a port's best-effort meter, in bytes.
const BEST_EFFORT_BURST_BYTES: i64 = 32 << 10;

/// Tables that tell the time of slots, and their actions.
const SLOTS_IN: &str = "RackIngress.slots_in";
const TAKE_IN: &str = "RackIngress.take_time_in";
const SLOTS_OUT: &str = "RackIngress.slots_out";
const TAKE_OUT: &str = "RackIngress.take_time_out";
const WAITS: &str = "RackIngress.waits";
const TAKE_WAIT: &str = "RackIngress.take_wait";

pub(super) fn source(pl2: &Pl2, rack: &Rack, position: usize, entry: Entry) -> Entry {
    let host = &rack.hosts[position];
    let entry = match (rack.switch.arch.is_tofino(), pl2.mode) {
        (false, _) => entry.param("slot", pl2.part_units(rack, host)),
        (true, Mode::Clock) => grace(pl2, rack, host, entry.param("t", unsolicited(pl2, rack, host))),
        (true, Mode::Counter) => grace(pl2, rack, host, entry),
    };
    link(rack, host, entry).param("cells", pl2.source_cells(rack, position))
}

pub(super) fn destination(pl2: &Pl2, rack: &Rack, position: usize, entry: Entry) -> Entry {
    let host = &rack.hosts[position];
    let threshold = pl2.slot_units(rack, host) * u64::from(pl2.drop_threshold_slots);
    let entry = match (pl2.mode, rack.switch.arch.is_tofino()) {
        (Mode::Clock, false) => {
            entry.param("slot", pl2.part_units(rack, host)).param("drop_threshold", threshold)
        }
        (Mode::Clock, true) => {
            let entry = entry.param("t", unsolicited(pl2, rack, host)).param("threshold", threshold);
            grace(pl2, rack, host, entry)
        }
        (Mode::Counter, _) => entry,
    };
    link(rack, host, entry).param("cells", pl2.destination_cells(position))
}

/// t at the host's rate.
fn unsolicited(pl2: &Pl2, rack: &Rack, host: &Host) -> u64 {
    pl2.slot_units(rack, host) * u64::from(pl2.t_slots)
}

/// How much before and after its start a burst may come, at the host's rate. One more before, since a start has bit 0 for
/// something else.
fn grace(pl2: &Pl2, rack: &Rack, host: &Host, entry: Entry) -> Entry {
    let slot = pl2.slot_units(rack, host);
    entry.param("early", slot * EARLY_SLOTS + 1).param("late", slot * pl2.late_slots())
}

/// The time of slots, where the switch does not multiply: of what hosts may ask for, or of what they may wait for.
fn times(pl2: &Pl2, rack: &Rack, schema: &Schema) -> Result<Vec<(String, Update)>, EntityError> {
    let mut updates = Vec::new();
    if pl2.mode == Mode::Counter {
        for wait in 0..pl2.time_entries(rack) {
            let time = wait * pl2.slot_units(rack, &rack.hosts[0]);
            let entry = Entry::of(WAITS).exact("meta.wait", wait).action(TAKE_WAIT).param("time", time);
            updates.push((format!("{wait} slots to wait for"), entry.update(schema)?));
        }
        return Ok(updates);
    }
    for host in &rack.hosts {
        for demand in 1..=u64::from(pl2.k) {
            let time = demand * pl2.slot_units(rack, host);
            for (table, address, action) in
                [(SLOTS_IN, "hdr.ethernet.srcAddr", TAKE_IN), (SLOTS_OUT, "hdr.ethernet.dstAddr", TAKE_OUT)]
            {
                let entry = Entry::of(table)
                    .exact(address, host.mac.0)
                    .exact("hdr.pl2_control.demand", demand)
                    .action(action)
                    .param("time", time);
                updates.push((format!("{}: {demand} slots", host.name), entry.update(schema)?));
            }
        }
    }
    Ok(updates)
}

/// Links that are slower than their port have reservations of their own.
fn link(rack: &Rack, host: &Host, entry: Entry) -> Entry {
    if rack.breakout_links() > 0 { entry.param("link", host.link) } else { entry }
}

pub(super) fn updates(pl2: &Pl2, rack: &Rack, schema: &Schema) -> Result<Vec<(String, Update)>, EntityError> {
    let mut updates = match rack.switch.arch.is_tofino() {
        true => times(pl2, rack, schema)?,
        false => Vec::new(),
    };
    for host in rack.ports() {
        updates.extend(meters(pl2, rack, host, schema)?);
        if pl2.notify_receiver {
            // Copies for a host travel as its grants do.
            let session = clone_session(host.port, PRIORITY_CONTROL);
            updates.push((format!("{}: copies of grants to send to it", host.name), session));
        }
    }
    Ok(updates)
}

fn meters(
    pl2: &Pl2,
    rack: &Rack,
    host: &Host,
    schema: &Schema,
) -> Result<Vec<(String, Update)>, EntityError> {
    let mut updates = Vec::new();
    if pl2.control_per_slot > 0 {
        // With slower links, the port's rate still limits how many slots pass.
        let links = host.port_rate_bps / host.rate_bps.max(1);
        let slot_ns = pl2.slot(rack, host).0.max(1);
        let per_s = u64::from(pl2.control_per_slot) * links * 1_000_000_000 / slot_ns;
        let burst =
            CONTROL_BURST_FRAMES.max(4 * rack.hosts.len() as i64 * i64::from(pl2.reservations_in_flight));
        let meter = meter(schema, CONTROL_METER, host.port, per_s.max(1) as i64, burst)?;
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
        let meter = meter(schema, BEST_EFFORT_METER, host.port, rate, burst)?;
        updates.push((format!("{}: {} of best effort", host.name, show_rate(rate_bps)), meter));
    }
    Ok(updates)
}
