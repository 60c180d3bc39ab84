//! Checks PL2's parameters and their requirements on the rack.

use super::{Clocks, HORIZON_UNITS, Mode, Pl2};
use crate::rack::units::{show_rate, show_size};
use crate::rack::{Host, Rack, Sink, Target};
use p4rack_wire::ethernet::overhead::PREAMBLE_GAP;
use p4rack_wire::pl2::LANES_MAX;

/// Maximum VLAN id of frames.
const VID_MAX: u64 = 4094;
/// Maximum cells in total: a switch with this many needs some 100 MB.
const CELLS_MAX: u64 = 1 << 22;
/// Range of the headroom of a slot over a full frame, in percent.
pub(super) const HEADROOM_PERCENT: (f64, f64) = (0.0, 100.0);

/// Range of the integers in PL2's table, inclusive.
pub(super) fn range(key: &str) -> (u64, u64) {
    match key {
        "t" => (0, 1 << 16),
        "drop_threshold" => (1, 1 << 20),
        "ether_type" => (0x0600, 0xffff),
        "vid" => (1, VID_MAX),
        "reservations_in_flight" | "lanes" => (1, LANES_MAX.into()),
        "fresh_us" => (0, 10_000_000),
        "control_per_slot" => (0, 1000),
        "best_effort_percent" => (1, 100),
        // k, k_max, slot_parts
        _ => (1, 255),
    }
}

/// Checks everything. If a value is out of range, reports only that.
pub(super) fn check(pl2: &Pl2, rack: &Rack, sink: &mut Sink<'_>) {
    if !check_ranges(pl2, sink) {
        return;
    }
    check_parts(pl2, sink);
    check_threshold(pl2, sink);
    check_frames(pl2, sink);
    check_lanes(pl2, rack, sink);
    if pl2.mode == Mode::Counter {
        check_rates(rack, sink);
    }
    check_breakouts(rack, sink);
    check_slots(pl2, rack, sink);
}

fn check_ranges(pl2: &Pl2, sink: &mut Sink<'_>) -> bool {
    let mut fits = true;
    for (key, value) in [
        (if pl2.backlog { "k_max" } else { "k" }, pl2.k.into()),
        ("slot_parts", pl2.slot_parts.into()),
        ("t", pl2.t_slots.into()),
        ("drop_threshold", pl2.drop_threshold_slots.into()),
        ("ether_type", pl2.ether_type.0.into()),
        ("vid", pl2.vid.into()),
        ("reservations_in_flight", pl2.reservations_in_flight.into()),
        ("lanes", pl2.lanes.into()),
        ("fresh_us", pl2.fresh.map_or(0, |fresh| fresh.0 / 1_000)),
        ("control_per_slot", pl2.control_per_slot.into()),
        ("best_effort_percent", pl2.best_effort_percent.into()),
    ] {
        let (least, most): (u64, u64) = range(key);
        if !(least..=most).contains(&value) {
            fits = false;
            let help = format!("write an integer from {least} to {most}");
            sink.refuse(&[&format!("pl2.{key}")], format!("{value} is out of range"), help);
        }
    }
    let (least, most) = HEADROOM_PERCENT;
    if !(least..=most).contains(&pl2.slot_headroom_percent) {
        fits = false;
        let message = format!("{} is out of range", pl2.slot_headroom_percent);
        sink.refuse(
            &["pl2.slot_headroom_percent"],
            message,
            format!("write a number from {least} to {most}"),
        );
    }
    fits
}

/// Checks `slot_parts`: an RSV has one byte for the number of parts, and counters count frames.
fn check_parts(pl2: &Pl2, sink: &mut Sink<'_>) {
    let (parts, k) = (u64::from(pl2.slot_parts), u64::from(pl2.k));
    if parts <= 1 {
        return;
    }
    if pl2.mode == Mode::Counter {
        let message = "counter mode counts frames, not parts of a slot".to_owned();
        sink.refuse(&["pl2.slot_parts"], message, "remove it, or use mode = \"clock\"");
    } else if parts * k > 255 {
        let message = format!("{k} slots of {parts} parts are more than the 255 that an RSV can ask for");
        sink.refuse(&["pl2.slot_parts"], message, format!("write {} or less, or a smaller k", 255 / k));
    }
}

fn check_threshold(pl2: &Pl2, sink: &mut Sink<'_>) {
    if pl2.drop_threshold_slots < pl2.t_slots {
        let message = format!("{} slots are less than t = {}", pl2.drop_threshold_slots, pl2.t_slots);
        let help = "the switch would drop what hosts may send: write several times t, or leave it out";
        sink.refuse(&["pl2.drop_threshold"], message, help);
    }
}

fn check_frames(pl2: &Pl2, sink: &mut Sink<'_>) {
    if [0x0800, 0x0806, 0x8100, 0x86dd, 0x88a8].contains(&pl2.ether_type.0) {
        let message = format!("0x{:04x} belongs to another protocol", pl2.ether_type.0);
        sink.refuse(&["pl2.ether_type"], message, "write 0x88B5, or another that nothing here uses");
    }
    let (first, lanes) = (u64::from(pl2.vid), u64::from(pl2.lanes));
    let last = first + 2 * lanes - 1;
    if last > VID_MAX {
        let message = format!("{lanes} lanes need the VLANs {first} to {last}, but {VID_MAX} is the last");
        let help = format!("write a vid of {} or less, or fewer lanes", VID_MAX + 1 - 2 * lanes);
        sink.refuse(&["pl2.vid"], message, help);
    }
}

/// Checks the number of lanes: at least what hosts use, and at most what the switch has room for in all pairs.
fn check_lanes(pl2: &Pl2, rack: &Rack, sink: &mut Sink<'_>) {
    // Lanes are as many as reservations in flight, where they are not given.
    let fields = ["pl2.lanes", "pl2.reservations_in_flight"];
    let (lanes, used) = (pl2.lanes, pl2.reservations_in_flight);
    if u32::from(lanes) < used {
        let message = format!("{lanes} are fewer than the {used} reservations_in_flight of the hosts");
        sink.refuse(&fields, message, format!("write {used} or more, or leave it out"));
    }
    let (hosts, cells) = (rack.hosts.len(), pl2.cell_count(rack));
    if cells > CELLS_MAX {
        let message =
            format!("{lanes} lanes between {hosts} hosts need {cells} cells, more than {CELLS_MAX}");
        let help = "write fewer lanes (reservations_in_flight, unless lanes is given)";
        sink.refuse(&fields, message, help);
    }
}

/// Checks that all rates are equal in counter mode, which has one slot for all ports.
fn check_rates(rack: &Rack, sink: &mut Sink<'_>) {
    let first = rack.hosts[0].rate_bps;
    let Some(other) = rack.hosts.iter().position(|host| host.rate_bps != first) else { return };
    let message = format!(
        "counter mode counts one slot for all ports, but {} and {} differ",
        show_rate(first),
        show_rate(rack.hosts[other].rate_bps)
    );
    let help = "use mode = \"clock\", which gives each port its own slot";
    refuse_rate(sink, other, message, help);
}

/// Refuses the rate of a host's link, which may be the default rate of the switch's ports.
fn refuse_rate(sink: &mut Sink<'_>, host: usize, message: String, help: &str) {
    sink.refuse(&[&format!("host[{host}].rate"), "switch.port_rate"], message, help);
}

/// Checks ports with slower links. Reservations are then made per link, not per port, so the links' rates together must
/// not exceed the port's.
fn check_breakouts(rack: &Rack, sink: &mut Sink<'_>) {
    for (n, host) in rack.hosts.iter().enumerate() {
        let shares = |other: &&Host| other.port == host.port;
        let slower = |other: &Host| other.rate_bps < host.port_rate_bps;
        if rack.hosts[..n].iter().any(|other| shares(&other)) || !rack.hosts.iter().filter(shares).any(slower)
        {
            continue;
        }
        let add = |sum: u64, other: &Host| sum.saturating_add(other.rate_bps);
        let together = rack.hosts.iter().filter(shares).fold(0, add);
        if together > host.port_rate_bps {
            let message = format!(
                "{} is less than the {} of its links together",
                show_rate(host.port_rate_bps),
                show_rate(together)
            );
            let help = "slower links have reservations of their own: let their rates add up to the port's, or give each host \
                        the port's rate, and they share its reservations";
            sink.refuse(&[&format!("host[{n}].port_rate")], message, help);
        }
    }
}

/// Checks that a slot, or each of its parts, takes at least two time units, and that everything that hosts can reserve
/// begins within the horizon.
fn check_slots(pl2: &Pl2, rack: &Rack, sink: &mut Sink<'_>) {
    let (switch, parts) = (&rack.switch, pl2.slot_parts());
    // Exact, before rounding up to whole units.
    let bits = pl2.frame_wire_bytes() as f64 * 8.0 * (1.0 + pl2.slot_headroom_percent / 100.0) / parts as f64;
    let mut said: Vec<u64> = Vec::new();
    for (n, host) in rack.hosts.iter().enumerate() {
        if said.contains(&host.rate_bps) {
            continue;
        }
        let slot_ns = bits * 1e9 / host.rate_bps as f64;
        let shortest_ns = 2.0 * switch.time_unit_ns as f64;
        let slot = pl2.slot(rack, host);
        if slot_ns < shortest_ns {
            let fits = show_rate((bits * 1e9 / shortest_ns) as u64);
            let what = if parts > 1 { "a part of a slot" } else { "a slot" };
            let message = format!(
                "{what} at {} is {slot_ns:.1} ns, under two of the switch's {} ns time units",
                show_rate(host.rate_bps),
                switch.time_unit_ns
            );
            let fewer = if parts > 1 { "fewer slot_parts, " } else { "" };
            let help = format!("write {fewer}a rate of {fits} or less, or a finer time_unit_ns");
            refuse_rate(sink, n, message, &help);
            said.push(host.rate_bps);
        } else if !pl2.fits_horizon(rack, slot.0 / switch.time_unit_ns) {
            let message = format!(
                "{} can't tell that many reserved slots of {slot} from the past",
                crate::scheme::Protocol::variant(pl2)
            );
            let help = "write a higher rate, or a smaller k, drop_threshold, lanes or reservations_in_flight";
            refuse_rate(sink, n, message, help);
            said.push(host.rate_bps);
        }
    }
}

/// Why this mode can't run on the rack; continues a sentence that starts with the scheme's name.
pub(super) fn refuses(pl2: &Pl2, rack: &Rack) -> Option<&'static str> {
    let counter = pl2.mode == Mode::Counter;
    if counter && rack.has_mixed_rates() {
        return Some("counts one slot for all ports, but their rates differ: use pl2-clock");
    }
    if counter && pl2.slot_parts > 1 {
        return Some("counts frames, not parts of a slot: remove slot_parts, or use pl2-clock");
    }
    if !rack.hosts.iter().all(|host| pl2.fits_horizon(rack, pl2.slot_units(rack, host))) {
        return Some(
            "can't tell that many reserved slots from the past: raise the rate or lower k, lanes or drop_threshold",
        );
    }
    if counter || pl2.clocks != Clocks::Calendar {
        return None;
    }
    let (shift, cells) = pl2.calendar_cells(rack);
    if 64 << shift >= HORIZON_UNITS {
        return Some("can't tell so long a calendar from the past: raise the rate or lower k");
    }
    (cells > 32).then_some(
        "can't hold K slots of the slowest port in half a calendar: lower k, or use clocks = \"pair\"",
    )
}

/// Maximum slots of `counter` mode's waits if a table converts them to time.
pub(super) const WAITS_MAX: u64 = 16_384;

/// Most hosts, and cells of a pair of them, that bytes number on Tofino; a lane's lock has a cell and two bits.
const HOSTS_MAX: usize = 255;
const CELLS_A_PAIR_MAX: u8 = 64;

/// Why there is no program for the architecture of the rack's switch; continues a sentence that starts with the scheme's
/// name.
pub(super) fn refuses_arch(pl2: &Pl2, rack: &Rack) -> Option<String> {
    if !rack.switch.arch.is_tofino() {
        return None;
    }
    if pl2.mode == Mode::Clock && pl2.clocks == Clocks::Calendar {
        return Some(
            "shifts calendars of 64 bits, which no stateful ALU does: use clocks = \"pair\"".to_owned(),
        );
    }
    if pl2.slot_parts > 1 {
        return Some(
            "counts frames there, not parts of a slot, since ingress does not know how long they are: remove slot_parts"
                .to_owned(),
        );
    }
    if rack.hosts.len() > HOSTS_MAX || pl2.cells_a_pair() > CELLS_A_PAIR_MAX {
        return Some(format!(
            "numbers up to {HOSTS_MAX} hosts and {} lanes there, in a byte each: describe fewer",
            CELLS_A_PAIR_MAX / 2
        ));
    }
    if pl2.notify_receiver {
        return Some("does not copy grants to receivers there: remove notify_receiver".to_owned());
    }
    if rack.switch.time_unit_ns != 1 {
        return Some("has times in nanoseconds there: remove switch.time_unit_ns".to_owned());
    }
    let waits = pl2.time_entries(rack);
    (pl2.mode == Mode::Counter && waits > WAITS_MAX).then(|| {
        format!("needs a table of {waits} waits, more than {WAITS_MAX}: lower k or lanes, or use pl2-clock")
    })
}

/// A warning if the reserved part of the buffer can't hold what all cells towards one port may send together.
pub(super) fn burst_beyond_buffer(pl2: &Pl2, rack: &Rack) -> Option<String> {
    // BMv2's buffer has no part for scheduled frames.
    if rack.switch.target != Target::Embedded {
        return None;
    }
    let (buffer, reserved) = (rack.switch.buffer_bytes, rack.switch.reserved_bytes);
    let sources = rack.hosts.len().saturating_sub(1) as u64;
    // As they are kept in the buffer: with FCS.
    let frame = pl2.frame_wire_bytes() - PREAMBLE_GAP;
    let lane = 2 * u64::from(pl2.k) * sources * frame;
    let needed = u64::from(pl2.lanes) * lane;
    if needed <= reserved {
        return None;
    }
    let fits = match reserved / lane.max(1) {
        0 => String::new(),
        lanes => format!("lanes = {lanes} (or fewer reservations_in_flight) would fit, or "),
    };
    let instead = match reserved {
        0 => "write a reserved_percent".to_owned(),
        _ => format!(
            "write a buffer of {}",
            show_size((needed * buffer).div_ceil(reserved).next_multiple_of(1 << 10))
        ),
    };
    Some(format!(
        "switch.buffer: {sources} hosts of {} lanes, each with 2 bursts of {} frames, may send {} to one port together, but \
         {} are reserved for scheduled frames: {fits}{instead}",
        pl2.lanes,
        pl2.k,
        show_size(needed),
        show_size(reserved)
    ))
}
