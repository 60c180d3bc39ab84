//! `p4rack switch trace`.

use super::connect;
use p4rack_ctrl::CtrlError;
use p4rack_ctrl::trace::Watch;
use p4rack_p4rt::p4rack::trace::v1::{Event, Filter};
use p4rack_wire::MacAddr;
use serde_json::json;
use std::collections::BTreeSet;
use std::process::ExitCode;

/// Arguments of `p4rack switch trace`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Only frames that arrive on this port
    #[arg(long, value_parser = crate::numbers::number::<u16>)]
    port: Option<u16>,
    /// Only frames with this EtherType, e.g. 0x0800, possibly behind 802.1Q tags
    #[arg(long, value_name = "TYPE", value_parser = ether_type)]
    ether_type: Option<u16>,
    /// Only frames from this MAC address
    #[arg(long, value_name = "MAC")]
    src: Option<MacAddr>,
    /// Only frames to this MAC address
    #[arg(long, value_name = "MAC")]
    dst: Option<MacAddr>,
    /// End after this many frames, 1 to 1000
    #[arg(long, default_value_t = 1, value_parser = crate::numbers::within::<u32>(1..=1000))]
    frames: u32,
    /// Print one JSON object per event, on one line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    switch: connect::Args,
}

fn ether_type(text: &str) -> Result<u16, String> {
    crate::numbers::number(text).map_err(|_| format!("`{text}` is not an EtherType such as 0x0800"))
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    let address = |mac: MacAddr| mac.0.to_vec();
    let filter = Filter {
        ingress_port: args.port.map(u32::from),
        ether_type: args.ether_type.map(u32::from),
        source: args.src.map(address),
        destination: args.dst.map(address),
    };
    match connect::block_on(watch(&args, filter)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => connect::fail(&error, args.json),
    }
}

async fn watch(args: &Args, filter: Filter) -> Result<(), CtrlError> {
    let mut watch = Watch::start(&args.switch.for_switch(None), filter, args.frames).await?;
    eprintln!("tracing; press Ctrl-C to stop");
    let (mut last, mut packets, mut lost) = (0, BTreeSet::new(), 0);
    while let Some(events) = watch.next().await? {
        for event in events {
            let Event { packet, time_ns, ref text, lost: gone } = event;
            lost += gone;
            if gone > 0 {
                continue;
            }
            packets.insert(packet);
            if args.json {
                println!("{}", json!({ "packet": packet, "time_ns": time_ns, "event": text }));
                continue;
            }
            // Frames may overtake each other in queues.
            if packet != last {
                println!("packet {packet}, at {time_ns} ns");
                last = packet;
            }
            println!("  {text}");
        }
    }
    eprintln!("{} frames traced", packets.len());
    if lost > 0 {
        eprintln!("{lost} events are missing: they came faster than they were fetched; trace fewer frames");
    }
    Ok(())
}
