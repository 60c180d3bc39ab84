//! Checks Clio's parameters and their requirements on the rack.

use super::{Clio, STORE_BYTES_MAX, board};
use crate::rack::units::show_size;
use crate::rack::{Rack, Sink};
use std::collections::BTreeSet;

/// The page sizes that addresses can name.
pub(super) const PAGE_SIZES: &str = "4 KiB, 64 KiB, 2 MiB, 4 MiB, 16 MiB, 64 MiB or 1 GiB";
/// Expected full buckets from which on an allocation of all pages of a size finds hardly any addresses in all its tries.
const FULL_MAX: f64 = 6.0;
/// All UDP ports: the set-up services on a board's host use TCP.
const UDP_PORTS: (u64, u64) = (1, 65_535);

/// Range of the integers in Clio's table, inclusive.
pub(super) fn range(key: &str) -> (u64, u64) {
    match key {
        "slots" => (4, 16),
        "spare_percent" => (0, 100),
        "tlb_entries" => (0, 1 << 20),
        "free_pages" => (1, 1 << 16),
        "processes_max" => (1, 1 << 16),
        "udp_port" => UDP_PORTS,
        // A process that shares a processor wakes later than after some of them.
        "timeout_us" => (100, 1_000_000),
        "retries" => (0, 16),
        "target_delay_us" => (1, 1_000_000),
        other => unreachable!("{other} is no integer of this table"),
    }
}

/// Checks everything. If a value is out of range, reports only that.
pub(super) fn check(clio: &Clio, rack: &Rack, sink: &mut Sink<'_>) {
    if !check_ranges(clio, sink) {
        return;
    }
    check_boards(clio, rack, sink);
    if clio.store_bytes > STORE_BYTES_MAX {
        let message = format!("{} are more than a board has", show_size(clio.store_bytes));
        sink.refuse(&["clio.store"], message, "write at most \"1024 GiB\"");
    } else if check_memory(clio, sink) {
        check_table(clio, sink);
    }
}

fn check_ranges(clio: &Clio, sink: &mut Sink<'_>) -> bool {
    let mut fits = true;
    for (key, value) in [
        ("slots", clio.slots.into()),
        ("spare_percent", clio.spare_percent.into()),
        ("tlb_entries", clio.tlb_entries.into()),
        ("free_pages", clio.free_pages.into()),
        ("processes_max", clio.processes_max.into()),
        ("udp_port", clio.udp_port.into()),
        ("timeout_us", clio.timeout.0 / 1_000),
        ("retries", clio.retries.into()),
        ("target_delay_us", clio.target_delay.0 / 1_000),
    ] {
        let (least, most): (u64, u64) = range(key);
        if !(least..=most).contains(&value) {
            fits = false;
            let help = format!("write an integer from {least} to {most}");
            sink.refuse(&[&format!("clio.{key}")], format!("{value} is out of range"), help);
        }
    }
    if fits && !clio.slots.is_power_of_two() {
        fits = false;
        let message = format!("{} is no power of two", clio.slots);
        sink.refuse(&["clio.slots"], message, "write 4, 8 or 16");
    }
    fits
}

fn check_boards(clio: &Clio, rack: &Rack, sink: &mut Sink<'_>) {
    if clio.boards.is_empty() {
        sink.refuse(&["clio.boards"], "is empty".to_owned(), "name at least one host that has a board");
    }
    let mut seen = BTreeSet::new();
    for (n, name) in clio.boards.iter().enumerate() {
        let fields = [&*format!("clio.boards[{n}]"), "clio.boards"];
        if !rack.hosts.iter().any(|host| host.name == *name) {
            let known: Vec<&str> = rack.hosts.iter().map(|host| host.name.as_str()).collect();
            sink.refuse(&fields, format!("`{name}` is no host"), format!("there are {}", known.join(", ")));
        } else if !seen.insert(name) {
            sink.refuse(&fields, format!("`{name}` is named twice"), "name each host once");
        }
    }
}

/// Checks that page sizes have equal shares of the memory in whole pages. Returns whether they do.
fn check_memory(clio: &Clio, sink: &mut Sink<'_>) -> bool {
    let count = clio.page_sizes.len() as u64;
    let mut seen = BTreeSet::new();
    for (n, size) in clio.page_sizes.iter().enumerate() {
        if !seen.insert(*size) {
            let fields = [&*format!("clio.page_sizes[{n}]"), "clio.page_sizes"];
            let message = format!("{} is there twice", show_size(size.bytes()));
            sink.refuse(&fields, message, "write each page size once");
            return false;
        }
    }
    let Some(largest) = seen.last().map(|size| size.bytes()) else {
        let help = format!("write at least one of {PAGE_SIZES}");
        sink.refuse(&["clio.page_sizes"], "is empty".to_owned(), help);
        return false;
    };
    let unit = largest * count;
    if clio.memory_bytes == 0 || !clio.memory_bytes.is_multiple_of(unit) {
        let shares = if count == 1 {
            String::new()
        } else {
            format!(", of which {count} page sizes have equal shares")
        };
        let message = format!(
            "{} is no number of whole pages of {}{shares}",
            show_size(clio.memory_bytes),
            show_size(largest)
        );
        let fits = show_size(clio.memory_bytes.div_ceil(unit).max(1).saturating_mul(unit));
        sink.refuse(&["clio.memory"], message, format!("write \"{fits}\", or smaller page_sizes"));
        return false;
    }
    true
}

/// Checks that a board starts with this page table, and that the table holds all of the memory as one range.
fn check_table(clio: &Clio, sink: &mut Sink<'_>) {
    let config = clio.board(clio.memory_bytes);
    if let Err(error) = config.clone().with_store(clio.store_bytes).check() {
        // All other parameters are in their ranges.
        let help = "write larger page_sizes, or less memory, or a smaller store".to_owned();
        sink.refuse(&["clio.memory", "clio.store"], error.problem.to_owned(), help);
        return;
    }
    for pool in &config.pools {
        let full = board::full_buckets(&config, pool);
        if full > FULL_MAX {
            let message = format!(
                "buckets of {} slots with {} % spare ones can't hold the memory's {} pages of {} as one range under index = \"mixed\": \
                 about {full:.0} of {} buckets would need more",
                clio.slots,
                clio.spare_percent,
                pool.frames,
                show_size(pool.size.bytes()),
                config.slots() / u64::from(clio.slots)
            );
            let help = "write index = \"salted\", more slots or spare_percent, or larger page_sizes";
            let fields = ["clio.slots", "clio.spare_percent", "clio.index", "clio.memory"];
            sink.refuse(&fields, message, help);
            return;
        }
    }
}
