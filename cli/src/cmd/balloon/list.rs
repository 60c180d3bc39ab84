//! `p4rack balloon show` and `list`.

use super::Service;
use crate::cmd::adapter::{runtime, text};
use crate::output::plain;
use p4rack_codegen::rack::units::show_size;
use p4rack_fabric::balloon::{ExtentFacts, HolderFacts, MemoryFacts, State};
use p4rack_hosts::balloon::{self, Listed, ListedNode, Phase};
use p4rack_lab::rows::Rows;
use serde_json::{Value, json};

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    service: Service,
}

fn listed(args: &Args) -> Result<Listed, String> {
    runtime()?.block_on(balloon::list(&args.service.server())).map_err(Service::said)
}

/// Share of the free bytes outside of the longest free range, in percent; `None` if no byte is free.
fn fragmentation_percent(memory: &MemoryFacts) -> Option<f64> {
    let outside = memory.free_bytes.saturating_sub(memory.longest_bytes) as f64;
    (memory.free_bytes > 0).then(|| 100.0 * outside / memory.free_bytes as f64)
}

/// A memory node's problem, if there is one.
fn problem(node: &ListedNode) -> Option<String> {
    let same = node.facts.same_as.map(|other| format!("it is memory node {other}, too: name each once"));
    same.or_else(|| node.failure.clone())
}

/// Prints the pool.
pub(super) fn show(args: &Args) -> Result<(), String> {
    let listed = listed(args)?;
    if args.service.json {
        println!("{}", serde_json::to_string_pretty(&pool(&listed)).map_err(text)?);
        return Ok(());
    }
    match &listed.phase {
        Phase::Starting => println!("the service has just started, and waits for its memory nodes"),
        Phase::Serving => {}
        Phase::Ended(why) => println!("the service has ended: {}", plain(why)),
    }
    let head =
        ["node", "board", "answers", "bytes", "free", "longest", "ranges", "lent", "fenced", "zeroing"];
    let mut rows = Rows::new(&head);
    for ListedNode { facts, addr, .. } in &listed.nodes {
        let mut row = vec![facts.number.to_string(), plain(addr)];
        row.push(if facts.is_there { "yes" } else { "no" }.to_owned());
        match &facts.memory {
            Some(of) => {
                row.extend([of.bytes, of.free_bytes, of.longest_bytes].map(show_size));
                row.push(of.ranges.to_string());
                row.extend([of.lent_bytes, of.fencing_bytes, of.zeroing_bytes].map(show_size));
            }
            None => row.resize(head.len(), "–".to_owned()),
        }
        rows.push(row);
    }
    print!("{}", rows.text());
    for node in &listed.nodes {
        if let Some(problem) = problem(node) {
            println!("memory node {}: {}", node.facts.number, plain(&problem));
        }
        if node.facts.leaves {
            println!("memory node {} goes offline: it lends nothing more", node.facts.number);
        }
    }
    let mut rows = Rows::new(&["holder", "extents", "held", "kept", "limit", "lease ends in"]);
    for facts in &listed.holders {
        let limit = facts.quota.limit_bytes;
        rows.push(vec![
            facts.session.holder.to_string(),
            facts.extents.to_string(),
            show_size(facts.held_bytes),
            show_size(facts.quota.reserved_bytes),
            if limit == u64::MAX { "–".to_owned() } else { show_size(limit) },
            facts.left.to_string(),
        ]);
    }
    if !rows.is_empty() {
        print!("\n{}", rows.text());
    }
    Ok(())
}

fn pool(listed: &Listed) -> Value {
    let node = |node: &ListedNode| {
        let facts = &node.facts;
        let of = |value: fn(&MemoryFacts) -> u64| facts.memory.as_ref().map(value);
        json!({
            "node": facts.number,
            "board": node.addr,
            "answers": facts.is_there,
            "problem": problem(node),
            "leaves": facts.leaves,
            "bytes": of(|memory| memory.bytes),
            "free_bytes": of(|memory| memory.free_bytes),
            "longest_free_bytes": of(|memory| memory.longest_bytes),
            "free_ranges": of(|memory| memory.ranges as u64),
            "fragmentation_percent": facts.memory.as_ref().and_then(fragmentation_percent),
            "lent_bytes": of(|memory| memory.lent_bytes),
            "fenced_bytes": of(|memory| memory.fencing_bytes),
            "zeroing_bytes": of(|memory| memory.zeroing_bytes),
        })
    };
    let holder = |facts: &HolderFacts| {
        let limit = facts.quota.limit_bytes;
        json!({
            "holder": facts.session.holder,
            "instance": facts.session.instance,
            "extents": facts.extents,
            "held_bytes": facts.held_bytes,
            "reserved_bytes": facts.quota.reserved_bytes,
            "limit_bytes": (limit < u64::MAX).then_some(limit),
            "lease_left_ns": facts.left.0,
        })
    };
    let counters: serde_json::Map<String, Value> =
        listed.counters.iter().map(|(name, value)| (name.clone(), (*value).into())).collect();
    let end = match &listed.phase {
        Phase::Ended(why) => Some(why),
        Phase::Starting | Phase::Serving => None,
    };
    json!({
        "serving": listed.phase == Phase::Serving,
        "ended": end,
        "nodes": listed.nodes.iter().map(node).collect::<Vec<_>>(),
        "holders": listed.holders.iter().map(holder).collect::<Vec<_>>(),
        "counters": counters,
    })
}

fn name(state: State) -> &'static str {
    match state {
        State::Found => "found",
        State::Granting => "granting",
        State::Lent => "lent",
        State::Fencing => "fencing",
        State::Zeroing => "zeroing",
    }
}

/// Prints the extents.
pub(super) fn list(args: &Args) -> Result<(), String> {
    let listed = listed(args)?;
    if args.service.json {
        let extent = |facts: &ExtentFacts| {
            json!({
                "node": facts.extent.place.node,
                "start": facts.extent.place.start,
                "bytes": facts.extent.bytes,
                "epoch": facts.extent.epoch.to_string(),
                "state": name(facts.state),
                "holder": facts.session.map(|of| of.holder),
                "online": facts.is_online,
                "sent": facts.sent,
            })
        };
        let extents: Vec<Value> = listed.extents.iter().map(extent).collect();
        println!("{}", serde_json::to_string_pretty(&json!({ "extents": extents })).map_err(text)?);
        return Ok(());
    }
    let mut rows = Rows::new(&["node", "start", "bytes", "state", "holder", "online"]);
    for facts in &listed.extents {
        let holder = facts.session.map_or_else(|| "–".to_owned(), |of| of.holder.to_string());
        let place = facts.extent.place;
        rows.push(vec![
            place.node.to_string(),
            format!("{:#x}", place.start),
            show_size(facts.extent.bytes),
            name(facts.state).to_owned(),
            holder,
            if facts.is_online { "yes" } else { "no" }.to_owned(),
        ]);
    }
    print!("{}", rows.text());
    Ok(())
}
