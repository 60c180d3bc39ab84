//! Report of `p4rack far run` at its end.

use crate::output::plain;
use p4rack_lab::rows::Rows;
use p4rack_memory::far::{About, Figures};
use p4rack_report::text::{bytes, count};
use serde_json::json;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// Bytes of a changed line.
const LINE_BYTES: u64 = 64;
/// Bytes of a page.
const PAGE_BYTES: u64 = p4rack_memory::far::PAGE_BYTES;

/// Bytes that moved for each byte that was needed; `None` if none was.
pub(super) fn ratio(moved: u64, needed: u64) -> Option<f64> {
    (needed > 0).then(|| moved as f64 / needed as f64)
}

/// Fetched for each byte of pages filled from the region, and written for each byte of changed lines.
pub(super) fn amplification(figures: &Figures) -> [Option<f64>; 2] {
    [
        ratio(figures.fetched_bytes, figures.filled * PAGE_BYTES),
        ratio(figures.written_bytes, figures.changed_lines * LINE_BYTES),
    ]
}

pub(super) fn times(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
}

/// Prints it to standard error: standard output is the program's.
pub fn show(about: &About, figures: &Figures, min_bytes: u64) {
    let program = plain(&about.program);
    if figures.at_ns == 0 {
        eprintln!(
            "warning: {program} ran without far memory: the library did not start in it, or could not open the memory"
        );
        return;
    }
    eprint!("\n{program}: far memory by {}\n{}", about.way, rows(figures).text());
    if figures.objects + figures.mappings == 0 {
        eprintln!(
            "Nothing went far: no allocation had {min_bytes} bytes or more, or {program} only executed another program."
        );
    }
}

fn rows(figures: &Figures) -> Rows {
    let mut rows = Rows::new(&["", ">"]);
    let mut row = |what: &str, value: String| rows.push(vec![what.to_owned(), value]);
    row("far memory", bytes(figures.bytes));
    row("in use, at most", bytes(figures.in_use_max_bytes));
    row("heap objects that went far", count(figures.objects));
    row("mappings that went far", count(figures.mappings));
    row("refused, because it was full", count(figures.refused));
    row("near, because it was full", count(figures.near));
    row("local memory, at most", bytes(figures.local_max_bytes));
    row("its limit", bytes(figures.local_limit_bytes));
    row("faults that read", count(figures.read_faults));
    row("faults that wrote", count(figures.write_faults));
    row("pages filled with zeros", count(figures.zeroed));
    row("pages that came back from copies", count(figures.restored));
    row("pages filled from the region", count(figures.filled));
    row("blocks for them that were here", count(figures.blocks_here));
    row("blocks fetched", count(figures.blocks_fetched));
    row("pages that left", count(figures.evicted));
    row("fetched", bytes(figures.fetched_bytes));
    row("written back", bytes(figures.written_bytes));
    let [fetched, written] = amplification(figures);
    row("fetched ÷ filled", times(fetched));
    row("written ÷ changed", times(written));
    rows
}

/// The same as JSON.
pub fn json(about: &About, figures: &Figures, status: ExitStatus) -> String {
    let [fetched, written] = amplification(figures);
    let all = json!({
        "about": about,
        "started": figures.at_ns > 0,
        "exit_code": status.code(),
        "signal": status.signal(),
        "figures": figures,
        "fetched_per_filled": fetched,
        "written_per_changed": written,
    });
    format!("{all:#}\n")
}
