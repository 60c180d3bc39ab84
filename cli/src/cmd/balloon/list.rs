//! `p4rack balloon show` and `list`.

use super::Service;
use crate::cmd::adapter::{runtime, text};
use p4rack_codegen::rack::units::show_size;
use p4rack_hosts::balloon;
use p4rack_lab::rows::Rows;
use p4rack_p4rt::p4rack::balloon::v1::{Epoch, Extent, ExtentFacts, ListResponse, NodeFacts};
use p4rack_wire::Nanos;
use serde_json::{Value, json};

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    service: Service,
}

fn listed(args: &Args) -> Result<ListResponse, String> {
    runtime()?.block_on(balloon::list(&args.service.server())).map_err(Service::said)
}

/// Share of the free bytes that lies outside of the longest free range, in percent.
fn fragmentation_percent(node: &NodeFacts) -> f64 {
    match node.free_bytes {
        0 => 0.0,
        free => 100.0 * (free - node.longest_bytes.min(free)) as f64 / free as f64,
    }
}

/// Prints the pool.
pub(super) fn show(args: &Args) -> Result<(), String> {
    let listed = listed(args)?;
    if args.service.json {
        println!("{}", serde_json::to_string_pretty(&pool(&listed)).map_err(text)?);
        return Ok(());
    }
    if !listed.is_serving {
        println!("the service has just started, and waits for its memory nodes");
    }
    let head =
        ["node", "board", "answers", "bytes", "free", "longest", "ranges", "lent", "fenced", "zeroing"];
    let mut rows = Rows::new(&head);
    for node in &listed.nodes {
        let mut row = vec![node.number.to_string(), node.addr.clone()];
        row.push(if node.is_there { "yes" } else { "no" }.to_owned());
        row.extend([node.bytes, node.free_bytes, node.longest_bytes].map(show_size));
        row.push(node.ranges.to_string());
        row.extend([node.lent_bytes, node.fencing_bytes, node.zeroing_bytes].map(show_size));
        rows.push(row);
    }
    print!("{}", rows.text());
    let mut rows = Rows::new(&["holder", "extents", "held", "kept", "limit", "lease ends in"]);
    for holder in &listed.holders {
        let limit =
            if holder.limit_bytes == u64::MAX { "–".to_owned() } else { show_size(holder.limit_bytes) };
        rows.push(vec![
            holder.session.map(|of| of.holder).unwrap_or_default().to_string(),
            holder.extents.to_string(),
            show_size(holder.held_bytes),
            show_size(holder.reserved_bytes),
            limit,
            Nanos(holder.left_ns).to_string(),
        ]);
    }
    if !rows.is_empty() {
        print!("\n{}", rows.text());
    }
    Ok(())
}

fn pool(listed: &ListResponse) -> Value {
    let node = |node: &NodeFacts| {
        json!({
            "node": node.number,
            "board": node.addr,
            "answers": node.is_there,
            "bytes": node.bytes,
            "free_bytes": node.free_bytes,
            "longest_free_bytes": node.longest_bytes,
            "free_ranges": node.ranges,
            "fragmentation_percent": fragmentation_percent(node),
            "lent_bytes": node.lent_bytes,
            "fenced_bytes": node.fencing_bytes,
            "zeroing_bytes": node.zeroing_bytes,
        })
    };
    let holders: Vec<Value> = listed
        .holders
        .iter()
        .map(|holder| {
            json!({
                "holder": holder.session.map(|of| of.holder),
                "instance": holder.session.map(|of| of.instance),
                "extents": holder.extents,
                "held_bytes": holder.held_bytes,
                "reserved_bytes": holder.reserved_bytes,
                "limit_bytes": (holder.limit_bytes < u64::MAX).then_some(holder.limit_bytes),
                "lease_left_ns": holder.left_ns,
            })
        })
        .collect();
    let counters: serde_json::Map<String, Value> =
        listed.counters.iter().map(|count| (count.name.clone(), count.value.into())).collect();
    json!({
        "serving": listed.is_serving,
        "nodes": listed.nodes.iter().map(node).collect::<Vec<_>>(),
        "holders": holders,
        "counters": counters,
    })
}

/// Prints the extents.
pub(super) fn list(args: &Args) -> Result<(), String> {
    let listed = listed(args)?;
    let facts = |of: &ExtentFacts| {
        let Extent { node, start, bytes, epoch } = of.extent.unwrap_or_default();
        let Epoch { term, number } = epoch.unwrap_or_default();
        (node, start, bytes, format!("{term}.{number}"))
    };
    if args.service.json {
        let extent = |of: &ExtentFacts| {
            let (node, start, bytes, epoch) = facts(of);
            json!({
                "node": node,
                "start": start,
                "bytes": bytes,
                "epoch": epoch,
                "state": of.state,
                "holder": of.session.map(|of| of.holder),
                "online": of.is_online,
                "sent": of.sent,
            })
        };
        let extents: Vec<Value> = listed.extents.iter().map(extent).collect();
        println!("{}", serde_json::to_string_pretty(&json!({ "extents": extents })).map_err(text)?);
        return Ok(());
    }
    let mut rows = Rows::new(&["node", "start", "bytes", "state", "holder", "online"]);
    for of in &listed.extents {
        let (node, start, bytes, _) = facts(of);
        let holder = of.session.map_or_else(|| "–".to_owned(), |of| of.holder.to_string());
        let online = if of.is_online { "yes" } else { "no" }.to_owned();
        let (node, start) = (node.to_string(), format!("{start:#x}"));
        rows.push(vec![node, start, show_size(bytes), of.state.clone(), holder, online]);
    }
    print!("{}", rows.text());
    Ok(())
}
