//! PL2's part of a program's entries.

use super::{CONTROL_METER, Clocks, EARLY_SLOTS, Mode, OWNERS, PRIORITY_CONTROL, Pl2};
use crate::rack::units::show_rate;
use crate::rack::{Host, Rack, loops, pipes};
use crate::scheme::l2::BEST_EFFORT_METER;
use crate::scheme::parts::{clone_session, meter};
use p4rack_p4rt::entity::{EntityError, Entry};
use p4rack_p4rt::p4::v1::Update;
use p4rack_p4rt::schema::Schema;

/// Minimum burst of a port's control meter, in frames.
const CONTROL_BURST_FRAMES: i64 = 256;
/// Minimum burst of a port's best-effort meter, in bytes.
const BEST_EFFORT_BURST_BYTES: i64 = 32 << 10;

/// Tables of Tofino's programs, and their actions: the time of slots, t and T, how early and late bursts may come.
const SLOTS: [(&str, &str, &str); 2] = [
    ("RackIngress.pl2.slots_in", "meta.pl2.rate_in", "RackIngress.pl2.take_time_in"),
    ("RackIngress.pl2.slots_out", "meta.pl2.rate_out", "RackIngress.pl2.take_time_out"),
];
/// The first one's, where a source's time is known by its address.
const SOURCE_SLOTS: &str = "RackIngress.pl2_source.slots_in";
const TAKE_SOURCE_TIME: &str = "RackIngress.pl2_source.take_time_in";
const GO_TO: &str = "RackIngress.pl2_pipes.go_to";
const WAITS: &str = "RackIngress.pl2.waits";
const TAKE_WAIT: &str = "RackIngress.pl2.take_wait";
const LIMITS: &str = "RackIngress.pl2.limits";
const TAKE_LIMITS: &str = "RackIngress.pl2.take_limits";
const THRESHOLDS: &str = "RackIngress.pl2.thresholds";
const TAKE_THRESHOLD: &str = "RackIngress.pl2.take_threshold";
const GRACES: &str = "RackIngress.pl2.graces";
const WEIGH_START: &str = "RackIngress.pl2.weigh_start";

pub(super) fn source(pl2: &Pl2, rack: &Rack, position: usize, entry: Entry) -> Entry {
    let host = &rack.hosts[position];
    if rack.switch.arch.is_tofino() {
        let entry = numbers(pl2, rack, host, "home", entry).param("source", position as u64);
        return limited(pl2, rack, host, entry);
    }
    let entry = entry.param("slot", pl2.part_units(rack, host));
    let entry = if pl2.reserves_at_source() { link(rack, host, entry) } else { entry };
    entry.param("cells", pl2.source_cells(rack, position))
}

pub(super) fn destination(pl2: &Pl2, rack: &Rack, position: usize, entry: Entry) -> Entry {
    let host = &rack.hosts[position];
    if rack.switch.arch.is_tofino() {
        let entry = numbers(pl2, rack, host, "away", entry).param("destination", position as u64);
        return limited(pl2, rack, host, entry);
    }
    let entry = match pl2.mode {
        Mode::Clock => {
            let threshold = pl2.slot_units(rack, host) * u64::from(pl2.drop_threshold_slots);
            entry.param("slot", pl2.part_units(rack, host)).param("drop_threshold", threshold)
        }
        Mode::Counter => entry,
    };
    link(rack, host, entry).param("cells", pl2.destination_cells(rack, position))
}

/// Where a host's reservations are kept, the number of its rate and, as `way`, the port by which frames come to its pipe if hosts
/// are in several.
fn numbers(pl2: &Pl2, rack: &Rack, host: &Host, way: &str, entry: Entry) -> Entry {
    let slot = pl2.slot_units(rack, host);
    let rate = pl2.rates(rack).iter().position(|known| *known == slot).map_or(0, |at| at + 1);
    let entry = entry.param("link", host.link).param("rate", rate as u64);
    match pipes::are_several(rack) {
        true => entry.param(way, loops::way_to(rack, pipes::pipe_of(host.port))),
        false => entry,
    }
}

/// With the first wait beyond t at a host's link, where nothing else says it in time.
fn limited(pl2: &Pl2, rack: &Rack, host: &Host, entry: Entry) -> Entry {
    let beyond = u64::from(pl2.t_slots) * pl2.slot_units(rack, host) + 1;
    if pl2.takes_source_first(rack) { entry.param("limit", beyond) } else { entry }
}

/// Times of slots at each rate, which Tofino looks up and others compute by multiplication. Rate 0 is the controller's,
/// which has no link.
fn times(pl2: &Pl2, rack: &Rack, schema: &Schema) -> Result<Vec<(String, Update)>, EntityError> {
    let mut updates = Vec::new();
    let mut add = |what: String, entry: Entry| -> Result<(), EntityError> {
        updates.push((what, entry.update(schema)?));
        Ok(())
    };
    let rates: Vec<(u64, u64)> = (1..).zip(pl2.rates(rack)).collect();
    let source_first = pl2.takes_source_first(rack);
    if pl2.mode == Mode::Counter {
        for wait in 0..pl2.time_entries(rack) {
            let time = wait * pl2.slot_units(rack, &rack.hosts[0]);
            for (_, suffix, field) in pl2.waits(rack) {
                let entry = Entry::of(&format!("{WAITS}{suffix}"))
                    .exact(&format!("meta.pl2.{field}"), wait)
                    .action(&format!("{TAKE_WAIT}{suffix}"))
                    .param("time", time);
                add(format!("{wait} slots to wait for"), entry)?;
            }
        }
    } else {
        for (number, slot) in &rates {
            for demand in 1..=u64::from(pl2.k) {
                for (table, rate, action) in &SLOTS[usize::from(source_first)..] {
                    let entry = Entry::of(table)
                        .exact(rate, *number)
                        .exact("hdr.pl2_control.demand", demand)
                        .action(action)
                        .param("time", demand * slot);
                    add(format!("{demand} slots at rate {number}"), entry)?;
                }
            }
            // The first one beyond, here and of t: waits are compared by the sign of a difference, which is below 0 up to the limit.
            let threshold = slot * u64::from(pl2.drop_threshold_slots);
            let entry = Entry::of(THRESHOLDS)
                .exact("meta.pl2.rate_out", *number)
                .action(TAKE_THRESHOLD)
                .param("threshold", threshold + 1);
            add(format!("T at rate {number}"), entry)?;
        }
    }
    for host in rack.hosts.iter().filter(|_| source_first) {
        for demand in 1..=u64::from(pl2.k) {
            let entry = Entry::of(SOURCE_SLOTS)
                .exact("hdr.ethernet.srcAddr", host.mac.0)
                .exact("hdr.pl2_control.demand", demand)
                .action(TAKE_SOURCE_TIME)
                .param("time", demand * pl2.slot_units(rack, host));
            add(format!("{demand} slots of {}", host.name), entry)?;
        }
    }
    let t = u64::from(pl2.t_slots);
    for (from, slot_in) in std::iter::once((0, 0)).chain(rates.iter().copied()) {
        for (to, slot_out) in &rates {
            let pair = |table: &str, action: &str| {
                Entry::of(table)
                    .exact("meta.pl2.rate_in", from)
                    .exact("meta.pl2.rate_out", *to)
                    .action(action)
            };
            if pl2.mode == Mode::Clock && !source_first {
                let (t_in, t_out) = (t * slot_in, t * slot_out);
                let mut limits = pair(LIMITS, TAKE_LIMITS).param("t_out", t_out + 1);
                if pl2.clocks != Clocks::Dst {
                    limits = limits.param("t_in", t_in + 1);
                }
                add(format!("t from rate {from} to rate {to}"), limits)?;
            }
            // Counters know the source's slot alone.
            let slot = if pl2.mode == Mode::Clock { slot_in.max(*slot_out) } else { slot_in };
            let grace = pair(GRACES, WEIGH_START)
                .param("early", slot * EARLY_SLOTS)
                .param("minus_late", negative(slot * pl2.late_slots()));
            add(format!("early and late from rate {from} to rate {to}"), grace)?;
        }
    }
    Ok(updates)
}

/// Where management frames have to go, of links whose registers are in another pipe than that of the controller's port.
fn owners(rack: &Rack, schema: &Schema) -> Result<Vec<(String, Update)>, EntityError> {
    if !pipes::are_several(rack) {
        return Ok(Vec::new());
    }
    let links = rack.hosts.iter().map(|host| (host.link, pipes::pipe_of(host.port)));
    let mut away: Vec<(u16, u16)> =
        links.filter(|(_, pipe)| *pipe != pipes::pipe_of(rack.switch.cpu_port)).collect();
    away.sort_unstable();
    away.dedup();
    let owner = |(link, pipe): (u16, u16)| {
        let entry = Entry::of(OWNERS).exact("hdr.pl2_management.index", link).action(GO_TO);
        Ok((
            format!("registers of link {link}"),
            entry.param("owner", loops::way_to(rack, pipe)).update(schema)?,
        ))
    };
    away.into_iter().map(owner).collect()
}

/// The two's complement of a time: adding it to 32 bits subtracts the time.
fn negative(time: u64) -> u64 {
    time.wrapping_neg() & u64::from(u32::MAX)
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
    updates.extend(owners(rack, schema)?);
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
            // Senders there do not know the meter. It admits what one buffer takes, so that chance alone drops nothing.
            Some(_) => BEST_EFFORT_BURST_BYTES.max(rack.switch.buffer_bytes as i64 / 8),
            None => BEST_EFFORT_BURST_BYTES,
        };
        let meter = meter(schema, BEST_EFFORT_METER, host.port, rate, burst)?;
        updates.push((format!("{}: {} of best effort", host.name, show_rate(rate_bps)), meter));
    }
    Ok(updates)
}
