//! EDM's table in a description.

use super::check::range;
use super::{Edm, Mode};
use crate::rack::reader::as_string;
use crate::rack::{At, Section, Sink};
use p4rack_wire::{EtherType, Nanos};

const MODES: &str = "write \"timed-dst\", \"timed\", \"calendar\" or \"matched\"";
const MEMORY: &str = "a list of names of hosts, such as [\"h3\"]";

pub(super) fn read(mut section: Section<'_, '_>, sink: &mut Sink<'_>) -> Option<Edm> {
    let mode = section.parsed(sink, "mode", MODES, |text| match text {
        "timed-dst" => Ok(Mode::TimedDst),
        "timed" => Ok(Mode::Timed),
        "calendar" => Ok(Mode::Calendar),
        "matched" => Ok(Mode::Matched),
        _ => Err(format!("`{text}` is no mode")),
    });
    if mode.is_none() && !section.has("mode") {
        section.missing(sink, "mode", "\"timed-dst\"");
    }
    let memory = section.list(sink, "memory", MEMORY, as_string);
    if memory.is_none() && !section.has("memory") {
        section.missing(sink, "memory", "[\"h3\"], names of hosts");
    }
    let mut number = |key| section.integer(sink, key, range(key));
    let (chunk, window, demands) = (number("chunk_bytes"), number("window"), number("demands"));
    let (message, ether_type) = (number("message_bytes_max"), number("ether_type"));
    let (headroom, control) = (number("headroom_percent"), number("control_percent"));
    let expiry = number("expiry_us");
    let (classes, ahead) = (number("classes"), number("ahead"));
    let shares = section.boolean(sink, "shares");
    section.finish(sink);
    let names = memory?.value.into_iter().map(|name| name.value).collect();
    let default = Edm::new(mode?.value, names);
    let value = |at: Option<At<u64>>, default: u64| at.map_or(default, |at| at.value);
    Some(Edm {
        chunk_bytes: value(chunk, default.chunk_bytes.into()) as u32,
        window: value(window, default.window.into()) as u32,
        demands: value(demands, default.demands.into()) as u32,
        message_bytes_max: value(message, default.message_bytes_max.into()) as u32,
        ether_type: EtherType(value(ether_type, default.ether_type.0.into()) as u16),
        headroom_percent: value(headroom, default.headroom_percent.into()) as u32,
        control_percent: value(control, default.control_percent.into()) as u32,
        classes: value(classes, default.classes.into()) as u32,
        ahead: value(ahead, default.ahead.into()) as u32,
        shares: shares.map_or(default.shares, |shares| shares.value),
        expiry: expiry.map(|expiry| Nanos::from_micros(expiry.value)),
        ..default
    })
}
