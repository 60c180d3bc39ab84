//! PL2's table in a description.

use super::check::{HEADROOM_PERCENT, range};
use super::{Clocks, FLOW_LANES, Mode, Pl2};
use crate::rack::{At, Section, Sink};
use p4rack_wire::{EtherType, Nanos};

pub(super) fn read(mut section: Section<'_, '_>, sink: &mut Sink<'_>) -> Option<Pl2> {
    let mode = section.parsed(sink, "mode", "write \"clock\" or \"counter\"", |text| match text {
        "counter" => Ok(Mode::Counter),
        "clock" => Ok(Mode::Clock),
        _ => Err(format!("`{text}` is no mode")),
    });
    if mode.is_none() && !section.has("mode") {
        section.missing(sink, "mode", "\"clock\"");
    }
    let clocks = section.parsed(
        sink,
        "clocks",
        "write \"pair\", \"chain\", \"dst\" or \"calendar\"",
        |text| match text {
            "pair" => Ok(Clocks::Pair),
            "chain" => Ok(Clocks::Chain),
            "dst" => Ok(Clocks::Dst),
            "calendar" => Ok(Clocks::Calendar),
            _ => Err(format!("`{text}` is no way to keep clocks")),
        },
    );
    section.refuse(sink, "T", "is unknown", "the switch's threshold is called drop_threshold, the hosts' t");
    section.refuse(
        sink,
        "placement",
        "an agent's placement is where it runs",
        "remove it; an experiment sets nic.place (docs/rack.md says why a rack doesn't)",
    );
    let backlog = section.is_text("k");
    let k = match backlog {
        true => {
            section.parsed(sink, "k", "write \"backlog\", or an integer from 1 to 255", |text| match text {
                "backlog" => Ok(()),
                _ => Err(format!("`{text}` is no K")),
            });
            section.integer(sink, "k_max", range("k_max"))
        }
        false => {
            section.refuse(sink, "k_max", "bounds what waits", "write k = \"backlog\", or take it out");
            section.integer(sink, "k", range("k"))
        }
    };
    let by_flow = section.boolean(sink, "by_flow");
    let pace_unsolicited = section.boolean(sink, "pace_unsolicited");
    let mut number = |key| section.integer(sink, key, range(key));
    let parts = number("slot_parts");
    let (t, threshold) = (number("t"), number("drop_threshold"));
    let (ether_type, vid) = (number("ether_type"), number("vid"));
    let (in_flight, given_lanes) = (number("reservations_in_flight"), number("lanes"));
    let (fresh, control) = (number("fresh_us"), number("control_per_slot"));
    let best_effort = number("best_effort_percent");
    let shim = section.boolean(sink, "shim");
    let notify = section.boolean(sink, "notify_receiver");
    let headroom = section.number(sink, "slot_headroom_percent", HEADROOM_PERCENT);
    section.finish(sink);
    let default = if backlog { Pl2::with_backlog(mode?.value) } else { Pl2::new(mode?.value) };
    let value = |at: Option<At<u64>>, default: u64| at.map_or(default, |at| at.value);
    let t_slots = value(t, default.t_slots.into()) as u32;
    let reservations_in_flight = value(in_flight, default.reservations_in_flight.into());
    let k = value(k, default.k.into()) as u8;
    let by_flow = by_flow.map_or(default.by_flow, |by_flow| by_flow.value);
    let lanes = if by_flow { reservations_in_flight.max(FLOW_LANES.into()) } else { reservations_in_flight };
    let threshold_of = if backlog { t_slots.max(k.into()) } else { t_slots };
    Some(Pl2 {
        clocks: clocks.map_or(default.clocks, |clocks| clocks.value),
        k,
        backlog,
        by_flow,
        pace_unsolicited: pace_unsolicited.map_or(default.pace_unsolicited, |pace| pace.value),
        slot_parts: value(parts, default.slot_parts.into()) as u8,
        t_slots,
        drop_threshold_slots: value(threshold, Pl2::drop_threshold_slots(threshold_of).into()) as u32,
        ether_type: EtherType(value(ether_type, default.ether_type.0.into()) as u16),
        vid: value(vid, default.vid.into()) as u16,
        shim: shim.map_or(default.shim, |shim| shim.value),
        reservations_in_flight: reservations_in_flight as u32,
        lanes: value(given_lanes, lanes) as u8,
        slot_headroom_percent: headroom.map_or(default.slot_headroom_percent, |headroom| headroom.value),
        fresh: fresh.map(|fresh| Nanos::from_micros(fresh.value)),
        notify_receiver: notify.map_or(default.notify_receiver, |notify| notify.value),
        control_per_slot: value(control, default.control_per_slot.into()) as u32,
        best_effort_percent: value(best_effort, default.best_effort_percent.into()) as u32,
        ..default
    })
}
