//! `p4rack balloon reserve`.

use super::{Service, ended};
use crate::cmd::adapter::runtime;
use crate::cmd::values::in_hex;
use crate::output::{Events, plain};
use p4rack_codegen::rack::units::{parse_bytes, show_size};
use p4rack_fabric::balloon::{Lent, Place};
use p4rack_hosts::balloon::{Tenancy, granted};
use p4rack_hosts::remote::Granted;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Bytes of the extent, a power of two from "2 MiB" to "1 GiB"
    #[arg(value_name = "SIZE", value_parser = parse_bytes)]
    bytes: u64,
    /// Number of the compute node; its earlier session ends
    #[arg(long, value_name = "N", value_parser = crate::numbers::number::<u32>)]
    holder: u32,
    /// Number of extents
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = crate::numbers::within::<u32>(1..=1_024))]
    count: u32,
    #[command(flatten)]
    service: Service,
}

/// Runs the command.
pub(super) fn run(args: Args) -> Result<(), String> {
    let events = Events::new(args.service.json);
    runtime()?.block_on(async {
        let open = Tenancy::open(args.service.server(), args.holder, Duration::from_secs(30));
        let mut tenancy = open.await.map_err(Service::said)?;
        let held = tokio::select! {
            lost = hold(&mut tenancy, &args, events) => lost,
            ended = ended() => ended,
        };
        // Nothing stays lent until the lease ends, whatever has ended this.
        let closed = tenancy.close().await.map_err(Service::said);
        held.and(closed)
    })
}

/// Reserves the extents, and renews their lease until the future is dropped. Errors: they could not be had, or are lost.
async fn hold(tenancy: &mut Tenancy, args: &Args, events: Events) -> Result<(), String> {
    for _ in 0..args.count {
        let (lent, addr) = tenancy.reserve(args.bytes).await.map_err(Service::said)?;
        tell(events, &lent, &addr)?;
    }
    let third = Duration::from_nanos(tenancy.lease().0 / 3);
    let (mut held, mut leaving) = (args.count as usize, BTreeSet::new());
    loop {
        tokio::time::sleep(third).await;
        let all = tenancy.renew().await.map_err(Service::said)?;
        let left = all.len();
        for (lent, _) in all.iter().filter(|(lent, _)| lent.leaves) {
            if leaving.insert(lent.extent) {
                tell_of_leaving(events, lent.extent.place);
            }
        }
        if left < held {
            let lost = held - left;
            events.report(
                "lost",
                json!({ "extents": lost }),
                format_args!("lost {lost} extents with their memory node"),
            );
            held = left;
        }
    }
}

/// The bytes are the programs' that have the rights: only they can move them.
fn tell_of_leaving(events: Events, place: Place) {
    let Place { node, start } = place;
    events.report(
        "leaves",
        json!({ "node": node, "start": start }),
        format_args!("memory node {node} goes offline: move the extent at {start:#x} away and return it"),
    );
}

/// Prints the reserved extent, and how to reach it. The rights are for programs alone: a terminal keeps what it shows.
fn tell(events: Events, lent: &Lent, addr: &str) -> Result<(), String> {
    let extent = lent.extent;
    let granted = granted(lent.access.bytes(), extent.bytes)?;
    let (key, address) = match granted {
        Granted::Process { address, .. } => (None, address),
        Granted::Region { key, address, .. } => (Some(key), address),
    };
    let shown_key = key.map(|key| format!(", key {key:#x}")).unwrap_or_default();
    events.report(
        "reserved",
        json!({
            "node": extent.place.node,
            "start": extent.place.start,
            "bytes": extent.bytes,
            "epoch": extent.epoch.to_string(),
            "board": addr,
            "way": granted.way(),
            "key": key,
            "address": address,
            "access": in_hex(lent.access.bytes()),
        }),
        format_args!(
            "reserved {} at {:#x} of memory node {}, board {}: by {}, address {address:#x}{shown_key}",
            show_size(extent.bytes),
            extent.place.start,
            extent.place.node,
            plain(addr),
            granted.way(),
        ),
    );
    Ok(())
}
