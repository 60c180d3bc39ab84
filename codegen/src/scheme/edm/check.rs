//! Checks EDM's parameters and their requirements on the rack.

use super::times::{HEADERS, HORIZON_UNITS_MAX, WINDOW_BYTES_MAX};
use super::{Edm, Mode};
use crate::arch::Arch;
use crate::rack::units::show_rate;
use crate::rack::{Protocol, Rack, Sink, crossings};
use p4rack_wire::edm::SESSION_BYTES;
use p4rack_wire::ethernet::overhead;
use std::collections::BTreeSet;

/// Bytes of a short message.
const SHORT_BYTES: u64 = 64;
/// Minimum bytes of a chunk: its frame is longer than the grant that its head becomes.
const CHUNK_BYTES_MIN: u64 = 32;
/// Maximum bytes of a chunk: its frame is no longer than a full one with a tag.
pub(super) const CHUNK_BYTES_MAX: u64 = overhead::MTU + 18 - HEADERS;
/// Maximum hosts if waiting demands name them by a byte.
const HOSTS_MAX: usize = 255;
/// Maximum cells in total.
const CELLS_MAX: u64 = 1 << 22;

/// Range of the integers in EDM's table, inclusive.
pub(super) fn range(key: &str) -> (u64, u64) {
    match key {
        "chunk_bytes" => (CHUNK_BYTES_MIN, CHUNK_BYTES_MAX),
        // The answer that opens a session has to fit into a chunk.
        "message_bytes_max" => (SESSION_BYTES as u64, 1 << 24),
        "ether_type" => (0x0600, 0xffff),
        "headroom_percent" => (0, 100),
        "control_percent" => (1, 100),
        "expiry_us" => (1, 1_000_000),
        "classes" => (1, 8),
        "ahead" => (1, 16),
        // window, demands
        _ => (1, 64),
    }
}

/// Checks everything. If a value is out of range, reports only that.
pub(super) fn check(edm: &Edm, rack: &Rack, sink: &mut Sink<'_>) {
    if !check_ranges(edm, sink) {
        return;
    }
    check_memory(edm, rack, sink);
    check_frames(edm, sink);
    check_cells(edm, rack, sink);
    check_times(edm, rack, sink);
    if let Some((field, problem, help)) = of_mode(edm, rack) {
        sink.refuse(&[field, "edm.mode"], problem, help);
    }
}

/// Parameters that this mode's program does not support: field, problem, remedy.
fn of_mode(edm: &Edm, rack: &Rack) -> Option<(&'static str, String, &'static str)> {
    let window = edm.window_bytes();
    if edm.mode.asks_by_window() && !window.is_power_of_two() {
        let (chunks, bytes) = (edm.window, edm.chunk_bytes);
        let problem = format!("{chunks} chunks of {bytes} bytes are {window} bytes, no power of two");
        return Some(("edm.window", problem, "write powers of two, or another mode"));
    }
    let cells = edm.ring_cells(rack);
    (edm.mode == Mode::Matched && cells > CELLS_MAX).then(|| {
        let links = edm.ring_links(rack);
        let problem = format!("the rings of {links} links have {cells} places, more than {CELLS_MAX}");
        ("edm.demands", problem, "write fewer demands or classes, lower ports, or another mode")
    })
}

fn check_ranges(edm: &Edm, sink: &mut Sink<'_>) -> bool {
    let mut fits = true;
    for (key, value) in [
        ("chunk_bytes", edm.chunk_bytes.into()),
        ("window", edm.window.into()),
        ("demands", edm.demands.into()),
        ("message_bytes_max", edm.message_bytes_max.into()),
        ("ether_type", edm.ether_type.0.into()),
        ("headroom_percent", edm.headroom_percent.into()),
        ("control_percent", edm.control_percent.into()),
        ("classes", edm.classes.into()),
        ("ahead", edm.ahead.into()),
        ("expiry_us", edm.expiry.map_or(1, |expiry| expiry.0 / 1_000)),
    ] {
        let (least, most): (u64, u64) = range(key);
        if !(least..=most).contains(&value) {
            fits = false;
            let help = format!("write an integer from {least} to {most}");
            sink.refuse(&[&format!("edm.{key}")], format!("{value} is out of range"), help);
        }
    }
    fits
}

fn check_memory(edm: &Edm, rack: &Rack, sink: &mut Sink<'_>) {
    if edm.memory.is_empty() {
        sink.refuse(&["edm.memory"], "is empty".to_owned(), "name at least one host that has memory");
    }
    let mut seen = BTreeSet::new();
    for (n, name) in edm.memory.iter().enumerate() {
        let fields = [&*format!("edm.memory[{n}]"), "edm.memory"];
        if !rack.hosts.iter().any(|host| host.name == *name) {
            let known: Vec<&str> = rack.hosts.iter().map(|host| host.name.as_str()).collect();
            sink.refuse(&fields, format!("`{name}` is no host"), format!("there are {}", known.join(", ")));
        } else if !seen.insert(name) {
            sink.refuse(&fields, format!("`{name}` is named twice"), "name each host once");
        }
    }
}

fn check_frames(edm: &Edm, sink: &mut Sink<'_>) {
    if [0x0800, 0x0806, 0x8100, 0x86dd, 0x88a8].contains(&edm.ether_type.0) {
        let message = format!("0x{:04x} belongs to another protocol", edm.ether_type.0);
        sink.refuse(&["edm.ether_type"], message, "write 0x88B6, or another that nothing here uses");
    }
    let window = u64::from(edm.window_bytes());
    if window > WINDOW_BYTES_MAX {
        let message = format!(
            "{} chunks of {} bytes are {window} bytes, more than {WINDOW_BYTES_MAX}",
            edm.window, edm.chunk_bytes
        );
        let help =
            format!("write {} or less, or a smaller chunk", WINDOW_BYTES_MAX / u64::from(edm.chunk_bytes));
        sink.refuse(&["edm.window", "edm.chunk_bytes"], message, help);
    }
}

/// Checks that the switch has room for the lanes of all pairs.
fn check_cells(edm: &Edm, rack: &Rack, sink: &mut Sink<'_>) {
    let cells = edm.cell_count(rack);
    if cells > CELLS_MAX {
        let message = format!(
            "{} demands between {} hosts and {} with memory need {cells} cells, more than {CELLS_MAX}",
            edm.demands,
            rack.hosts.len(),
            edm.memory.len()
        );
        sink.refuse(
            &["edm.demands", "edm.memory"],
            message,
            "write fewer demands, or fewer hosts with memory",
        );
    }
}

/// Checks that the shortest frame takes at least two time units, that all grants begin before the horizon, where a clock would
/// read as past, and that rights last until then.
fn check_times(edm: &Edm, rack: &Rack, sink: &mut Sink<'_>) {
    let unit_ns = rack.switch.time_unit_ns;
    let fastest = rack.hosts.iter().enumerate().max_by_key(|(_, host)| host.rate_bps);
    let bits = overhead::wire_bytes(overhead::MIN_FRAME) * 8;
    if let Some((n, host)) = fastest
        && (host.rate_bps as f64) > bits as f64 * 1e9 / (2 * unit_ns) as f64
    {
        let message = format!(
            "a frame of {} bytes at {} takes less than two of the switch's {unit_ns} ns time units",
            overhead::MIN_FRAME,
            show_rate(host.rate_bps)
        );
        let fits = show_rate(bits * 1_000_000_000 / (2 * unit_ns));
        let help = format!("write a rate of {fits} or less, or a finer time_unit_ns");
        sink.refuse(&[&format!("host[{n}].rate"), "switch.port_rate"], message, help);
    }
    if let Some(problem) = beyond_horizon(edm, rack) {
        let help = "write a higher rate, or a smaller window, chunk_bytes or demands";
        sink.refuse(&["edm.window", "edm.demands", "edm.chunk_bytes"], problem, help);
        return;
    }
    let (expiry, reach) = (edm.expiry_units(rack), edm.stale_units(rack));
    if !(reach + 1..1 << 31).contains(&expiry) {
        let message = format!(
            "{} is not between the {} for which grants may wait and the range of the switch's clocks",
            edm.expiry(rack),
            p4rack_wire::Nanos(reach.saturating_mul(unit_ns))
        );
        sink.refuse(&["edm.expiry_us"], message, "leave it out, or write a time between");
    }
}

fn beyond_horizon(edm: &Edm, rack: &Rack) -> Option<String> {
    (edm.horizon_units(rack) > HORIZON_UNITS_MAX).then(|| {
        format!(
            "so much may be granted ahead ({}) that the switch can't tell it from the past",
            p4rack_wire::Nanos(edm.reach_units(rack).saturating_mul(rack.switch.time_unit_ns))
        )
    })
}

/// Why the mode has no program for Tofino; continues a sentence that starts with the scheme's name.
pub(super) fn refuses_arch(edm: &Edm, rack: &Rack) -> Option<String> {
    if !rack.switch.arch.is_tofino() {
        return None;
    }
    if edm.mode == Mode::Matched && rack.hosts.len() > HOSTS_MAX {
        return Some(format!(
            "names hosts that wait by a byte there, and there are {}: use mode \"timed\" or \"timed-dst\"",
            rack.hosts.len()
        ));
    }
    (rack.switch.time_unit_ns != 1)
        .then(|| "has times in nanoseconds there: remove switch.time_unit_ns".to_owned())
}

/// Why this mode can't run on the rack; continues a sentence that starts with the scheme's name.
pub(super) fn refuses(edm: &Edm, rack: &Rack) -> Option<String> {
    beyond_horizon(edm, rack)
        .map(|problem| format!("can't run: {problem}: raise the rate or lower edm.window"))
        .or_else(|| of_mode(edm, rack).map(|(field, problem, _)| format!("can't run: {field}: {problem}")))
}

/// Why the requested shares of links are not possible on Tofino.
pub(super) fn without_shares(edm: &Edm, rack: &Rack) -> Option<String> {
    if !edm.shares || !rack.switch.arch.is_tofino() || edm.claims(rack) || edm.grants_chunks(rack) {
        return None;
    }
    let (why, help) = match edm.mode.asks_by_window() {
        true => (
            format!("under `{}` a stateful ALU grants windows, whatever others ask for", edm.mode.variant()),
            "write window = 1, use mode \"timed\" or \"timed-dst\", or write shares = false",
        ),
        false => (
            format!("a window of {} bytes is no power of two", edm.window_bytes()),
            "write powers of two for edm.chunk_bytes and edm.window, or shares = false",
        ),
    };
    Some(format!("edm.shares: on {} links have no equal shares: {why}; {help}", rack.switch.arch))
}

/// The problem of a program that the estimate takes and the SDE's compiler does not.
pub(super) fn crowded(edm: &Edm, rack: &Rack) -> Option<String> {
    let is_beside = rack.protocols.len() > 1;
    (is_beside && edm.mode == Mode::Timed && edm.claims(rack) && rack.switch.arch == Arch::Tna).then(|| {
        format!(
            "edm.shares: on {} p4c's allocation of the PHV failed for `timed` with shares beside another protocol; write \
             shares = false, or use mode \"timed-dst\"",
            rack.switch.arch
        )
    })
}

/// The load at which short reads fill the ports between pipes of a chip: the bound on chunks is for full ones.
pub(super) fn short_reads(edm: &Edm, rack: &Rack) -> Option<String> {
    let wire_bytes = edm.wire_bytes(SHORT_BYTES);
    let (percent, port) = crossings::filled_at(rack, &edm.crossing()?, wire_bytes)?;
    Some(format!(
        "edm.chunk_bytes: reads of {SHORT_BYTES} bytes between pipes fill port {port} when they take {percent} % of the links; what it then \
         loses is asked for again: keep short reads within a pipe, or spread fewer and slower ports over the pipes"
    ))
}

/// The problem of a headroom too small for requests and grants on links full of reads and writes.
pub(super) fn short_headroom(edm: &Edm) -> Option<String> {
    let enough = edm.headroom_enough();
    (edm.headroom_percent < enough).then(|| {
        format!(
            "edm.headroom_percent: {} % leave requests and grants less than they take of a link beside full chunks of {} bytes; \
             write {enough} where links are full in both directions",
            edm.headroom_percent, edm.chunk_bytes
        )
    })
}
