//! Clio's table in a description.

use super::Clio;
use super::check::{PAGE_SIZES, range};
use crate::rack::reader::as_string;
use crate::rack::units::parse_size;
use crate::rack::{At, Section, Sink};
use p4rack_fabric::clio::board::Index;
use p4rack_wire::Nanos;
use p4rack_wire::clio::PageSize;

const BOARDS: &str = "a list of names of hosts, such as [\"h1\"]";
const MEMORY: &str = "write a size such as \"64 MiB\"";
const SIZES: &str = "a list of page sizes, such as [\"64 KiB\", \"2 MiB\"]";
const INDEX: &str = "write \"salted\" or \"mixed\"";

pub(super) fn read(mut section: Section<'_, '_>, sink: &mut Sink<'_>) -> Option<Clio> {
    let boards = section.list(sink, "boards", BOARDS, as_string);
    if boards.is_none() && !section.has("boards") {
        section.missing(sink, "boards", "[\"h1\"], names of hosts");
    }
    let memory = section.parsed(sink, "memory", MEMORY, parse_size);
    if memory.is_none() && !section.has("memory") {
        section.missing(sink, "memory", "\"64 MiB\", the memory of each board");
    }
    let store = section.parsed(sink, "store", MEMORY, parse_size);
    let listed = section.list(sink, "page_sizes", SIZES, as_string);
    let mut sizes = Vec::new();
    let mut all_known = listed.is_some() || !section.has("page_sizes");
    for at in listed.iter().flat_map(|list| &list.value) {
        match page_size(&at.value) {
            Ok(size) => sizes.push(size),
            Err(message) => {
                all_known = false;
                sink.error(&at.span, &at.field, message, format!("write {PAGE_SIZES}"));
            }
        }
    }
    let index = section.parsed(sink, "index", INDEX, |text| {
        let found = Index::ALL.iter().find(|(_, name)| *name == text);
        found.map(|(index, _)| *index).ok_or_else(|| format!("`{text}` is no index"))
    });
    let mut number = |key| section.integer(sink, key, range(key));
    let (slots, spare) = (number("slots"), number("spare_percent"));
    let (tlb, free_pages) = (number("tlb_entries"), number("free_pages"));
    let (processes, udp_port) = (number("processes_max"), number("udp_port"));
    let (timeout, retries) = (number("timeout_us"), number("retries"));
    let target_delay = number("target_delay_us");
    section.finish(sink);
    let names = boards?.value.into_iter().map(|name| name.value).collect();
    let default = Clio::new(names, memory?.value);
    let value = |at: Option<At<u64>>, default: u32| at.map_or(default, |at| at.value as u32);
    let time = |at: Option<At<u64>>, default: Nanos| at.map_or(default, |at| Nanos::from_micros(at.value));
    all_known.then(|| Clio {
        page_sizes: if listed.is_some() { sizes } else { default.page_sizes.clone() },
        store_bytes: store.map_or(default.store_bytes, |at| at.value),
        index: index.map_or(default.index, |at| at.value),
        slots: value(slots, default.slots),
        spare_percent: value(spare, default.spare_percent),
        tlb_entries: value(tlb, default.tlb_entries),
        free_pages: value(free_pages, default.free_pages),
        processes_max: value(processes, default.processes_max),
        udp_port: value(udp_port, default.udp_port.into()) as u16,
        timeout: time(timeout, default.timeout),
        retries: value(retries, default.retries),
        target_delay: time(target_delay, default.target_delay),
        ..default
    })
}

/// The page size with this text, e.g. "64 KiB". Errors: there is none.
pub fn page_size(text: &str) -> Result<PageSize, String> {
    let bytes = parse_size(text)?;
    let found = PageSize::ALL.into_iter().find(|(size, _)| size.bytes() == bytes);
    match found {
        Some((size, _)) => Ok(size),
        None if !bytes.is_power_of_two() => Err(format!("{text} is no power of two, and so no page size")),
        None => Err(format!("{text} is no page size")),
    }
}
