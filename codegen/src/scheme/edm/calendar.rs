//! Context of the templates of EDM's mode `calendar`: links' calendars, and the cells of their pages.

use super::Edm;
use super::times::Pages;
use crate::rack::Rack;
use serde_json::{Value, json};

/// Context for all architectures, beside that of all modes.
pub(super) fn context(edm: &Edm, rack: &Rack, common: &Value) -> Value {
    let Pages { bits, low, cell, cells } = edm.pages(rack);
    let page = |side: &str, of: &str, half: &str| {
        json!({
            "side": side,
            "links": common["links"],
            "link_type": common["link_type"],
            "half": half,
            "odd": u8::from(half == "odd"),
            "look": format!("look_at_{side}_{half}"),
            "take": format!("take_{side}_{half}"),
            "clear": format!("clear_{side}_{half}"),
            "at": half,
            "mask": format!("{of}_{half}"),
            "saw": format!("saw_{of}_{half}"),
            "seen": format!("meta.edm.saw_{of}_{half}"),
        })
    };
    let side = |side: &str, of: &str| {
        json!({
            "side": side,
            "links": common["links"],
            "link_type": common["link_type"],
            "of": of,
            "look": format!("look_at_{side}"),
            "move": format!("move_{side}"),
            "write": format!("write_{side}"),
            "link": format!("meta.edm.{of}"),
            "ahead": format!("meta.edm.{of}_ahead"),
            "pages": [page(side, of, "even"), page(side, of, "odd")],
        })
    };
    let place_units = cell >> low;
    let begun = |n: u64| {
        let (first, next) = (n * place_units, (n + 1) * place_units);
        json!({ "first": first, "last": next - 1, "cells": places(n + 1) })
    };
    let most = edm.runs(rack).last().copied().unwrap_or(1);
    json!({
        "calendars": [side("source", "from"), side("destination", "to")],
        "cell": cell,
        "cells": cells,
        "page": 1u64 << bits,
        "page_bit": bits,
        "page_high": bits - 1,
        "page_low": low,
        "page_mask": format!("0x{:08X}", u32::MAX << bits),
        "page_full": places(cells),
        "begun": (0..cells).map(begun).collect::<Vec<Value>>(),
        "halvings": [32, 16, 8, 4, 2, 1],
        "runs": (1..most).collect::<Vec<u64>>(),
    })
}

/// Adds the context of the templates for stateful ALUs. There, tables replace the computation of places in pages.
pub(super) fn add_tables(edm: &Edm, rack: &Rack, context: &mut Value) {
    for calendar in context["calendars"].as_array_mut().into_iter().flatten() {
        let of_source = calendar["side"] == "source";
        let (side, of) = if of_source { ("source", "from") } else { ("destination", "to") };
        calendar["link"] = json!(format!("meta.edm.{of}[15:0]"));
        calendar["last"] = json!(format!("meta.edm.{of}_last"));
        calendar["clash"] = json!(format!("meta.edm.{of}_clash"));
        calendar["claim"] = json!(format!("claim_{side}"));
        for way in ["read", "write"] {
            let op = format!("EDM_OP_{}_{}", way.to_uppercase(), side.to_uppercase());
            calendar[format!("{way}_op")] = json!(op);
        }
    }
    let Pages { bits, cell, cells, .. } = edm.pages(rack);
    let place = |n: u64| json!({ "n": n, "before": places(n), "offset": n * cell });
    let end = |n: u64| {
        let (head, tail) = ((n + 1).min(cells), (n + 1).saturating_sub(cells));
        json!({ "n": n, "head": places(head), "tail": places(tail) })
    };
    context["places"] = (0..cells).map(place).collect();
    context["ends"] = (0..2 * cells - 1).map(end).collect();
    // A key that matches if no cell of a page from `first` up to `end` is taken.
    let free = |first: u64, end: u64| match first < end {
        true => format!("0 &&& 0x{:08X}", (1u64 << end) - (1 << first)),
        false => "_".to_owned(),
    };
    let run = |wanted: u64, from: u64| {
        let end = from + wanted;
        json!({
            "more": wanted - 1,
            "taken": free(from, end.min(cells)),
            "next_taken": free(from.saturating_sub(cells), end.saturating_sub(cells).min(cells)),
            "page": (from / cells) << bits,
            "place": from % cells,
        })
    };
    let runs = edm.runs(rack);
    let runs = runs.iter().flat_map(|wanted| (0..2 * cells).map(|from| run(*wanted, from)));
    let runs: Vec<Value> = runs.collect();
    context["run_count"] = json!(runs.len());
    context["runs"] = json!(runs);
}

/// Mask of the first N cells of a page.
fn places(cells: u64) -> String {
    format!("0x{:08X}", (1u64 << cells) - 1)
}
