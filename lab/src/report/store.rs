//! Pages of stores.

use super::parts::{each_scheme, head, repeat, scheme_legend, section};
use super::plots;
use super::tables::{figures, promises};
use crate::results::Results;
use p4rack_report::{escape, figure, text};
use std::collections::BTreeSet;

/// The part of a rack with a store.
pub fn page(results: &Results) -> String {
    let queue = format!(
        "Full frames of {} waiting in the switch for {}, the maximum of each few milliseconds. The same logarithmic axis for \
         all; the measured window is shaded.",
        text::bytes(results.setting.mtu_frame_bytes),
        escape(&results.setting.one)
    );
    [
        head(results, &work(results)),
        section("Figures", "", &figures(results)),
        local_section(results),
        mixes_section(results),
        each_scheme(results, "Depth of the server’s queue", &queue, "", plots::queue),
        section("Promises", "", &promises(results)),
        section("Repeat it", "", &repeat(results)),
    ]
    .concat()
}

/// The clients' work, in sentences.
fn work(results: &Results) -> String {
    let setting = &results.setting;
    let (one, many) = (escape(&setting.one), escape(&setting.many.join(", ")));
    let rate = text::rate(setting.port_rate_bps as f64);
    let beside = setting.bulk.as_ref().map_or_else(String::new, |bulk| {
        format!("Beside {} writing to {one} as fast as it can, ", escape(&bulk.host))
    });
    let under_way = match setting.depth {
        None | Some(1) => "one operation at a time".to_owned(),
        Some(depth) => format!("up to {depth} operations under way"),
    };
    let what = match (&setting.log, &setting.cache) {
        (None, Some(cache)) => format!(
            "{many} have a key-value store each, whose index and records are bytes of a region with a cache in local memory. The \
             regions lie in the memory of {}, over links of {rate}, by RDMA and Clio in extents that a service lends. Each has {under_way}.",
            cache.pool.memory.iter().map(|host| escape(host)).collect::<Vec<_>>().join(" and ")
        ),
        (None, None) => format!(
            "{beside}{many} use a key-value store on {one}, each with {under_way}, over links of {rate}. Under schemes of \
             remote memory the values live in {one}’s memory, where the clients read and write them, or call an offload beside it; \
             under the others a server on {one} answers over TCP."
        ),
        (Some(log), _) => format!(
            "A thread on {many} owns a key-value store whose newest part, {} % of the records’ room, is in local memory, and the \
             older part in {one}’s, over links of {rate}. It has {under_way}, one under rdma-sync. It sleeps until a frame of RDMA's \
             comes, and looks for Cowbird's answers every 200 µs.",
            log.memory_percent
        ),
    };
    format!("{what} Measured for {} s under each scheme, all mixes together.", results.duration_s)
}

/// Throughput and moved bytes by local memory, one line for each way.
fn local_section(results: &Results) -> String {
    let Some(cache) = &results.setting.cache else { return String::new() };
    let figures = results.schemes.iter().filter_map(|scheme| scheme.store.as_ref());
    let mixes: BTreeSet<&str> = figures.flat_map(|store| &store.mixes).map(|mix| mix.mix.as_str()).collect();
    let mut out = format!("{}<div class='plots two'>", scheme_legend(results));
    for mix in mixes {
        let throughput = plots::by_local(results, mix, "operations a second", |mix, _| mix.ops_per_s);
        out += &figure(&format!("Mix {mix}: operations a second"), &throughput.svg());
        let moved =
            plots::by_local(results, mix, "bytes moved for each operation", |_, cache| cache.moved_bytes);
        out += &figure(&format!("Mix {mix}: bytes moved for each operation"), &moved.svg());
    }
    out.push_str("</div>");
    let lead = format!(
        "Of all clients together, by local memory in percent of a region, tables included; policy {}. Moved bytes are those \
         that were fetched and written back.",
        escape(&cache.policy)
    );
    section("By local memory", &lead, &out)
}

/// Latency of the store's operations by mix.
fn mixes_section(results: &Results) -> String {
    let Some(store) = results.schemes.iter().find_map(|scheme| scheme.store.as_ref()) else {
        return String::new();
    };
    let mut out = format!("{}<div class='plots two'>", scheme_legend(results));
    for mix in &store.mixes {
        let label = mix.label();
        let plot = plots::latency(results, &format!("operations of mix {label}"), |scheme| {
            scheme.mix_of(&label).map(|figures| figures.cdf.as_slice())
        });
        out += &figure(&format!("Mix {label}"), &plot.svg());
    }
    out.push_str("</div>");
    let lead = "From the start of an operation until its client knows the result: a value that was checked, or that its write is \
                there. YCSB’s mixes: A half reads, half writes; B 95 % reads; C reads; F half reads, half reads \
                followed by a write of the same record.";
    section("Latency of operations", lead, &out)
}
