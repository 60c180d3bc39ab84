//! `p4rack queue`.

use super::connect;
use p4rack_ctrl::bfrt::{Link, Queue, QueueChange, Rate};
use p4rack_ctrl::{ConnectOptions, CtrlError, Protocol};
use p4rack_lab::rows::Rows;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Arguments of `p4rack queue`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

/// Address of a switch over BFRuntime, and a port of it.
#[derive(clap::Args, Debug)]
struct Target {
    /// Address of the BFRuntime server, HOST:PORT
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:50052", help_heading = "Switch")]
    bfrt_addr: String,
    #[command(flatten)]
    identity: connect::Identity,
    /// Number of the port
    #[arg(long, value_parser = crate::numbers::number::<u32>)]
    port: u32,
}

/// Maximum rate of a queue or port.
#[derive(clap::Args, Debug)]
#[group(id = "queue-rate")]
struct RateArgs {
    /// Maximum kilobits per second, preamble and gap not counted
    #[arg(long, value_name = "N", conflicts_with = "max_frames", value_parser = crate::numbers::number::<u32>)]
    max_kbps: Option<u32>,
    /// Maximum frames per second
    #[arg(long, value_name = "N", value_parser = crate::numbers::number::<u32>)]
    max_frames: Option<u32>,
    /// Bytes (with --max-frames: frames) that may leave back to back after a pause [default: 0]
    #[arg(long, value_name = "N", value_parser = crate::numbers::number::<u32>)]
    burst: Option<u32>,
}

impl RateArgs {
    fn rate(&self) -> Option<Rate> {
        let burst = self.burst.unwrap_or(0);
        let frames = self.max_frames.map(|rate| Rate::Frames(rate, burst));
        frames.or(self.max_kbps.map(|rate| Rate::Kilobits(rate, burst)))
    }
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// List a port's queues: service, waiting frames, drops
    List {
        #[command(flatten)]
        target: Target,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Change a queue's service; settings that are not given stay
    Set {
        #[command(flatten)]
        target: Target,
        /// Number of the queue; without it, the rate is the whole port's
        #[arg(long, value_parser = crate::numbers::number::<u32>)]
        queue: Option<u32>,
        /// Priority, 0 to 7; the highest is served first
        #[arg(long, value_name = "N", requires = "queue", value_parser = crate::numbers::within::<u8>(..8))]
        priority: Option<u8>,
        /// Share among queues of the same priority, 1 to 1023
        #[arg(long, value_name = "N", requires = "queue", value_parser = crate::numbers::within::<u16>(1..1024))]
        weight: Option<u16>,
        /// Maximum cells that it may hold
        #[arg(long, value_name = "CELLS", requires = "queue", value_parser = crate::numbers::number::<u32>)]
        limit: Option<u32>,
        /// Whether it is served at all
        #[arg(long, value_name = "BOOL", requires = "queue")]
        served: Option<bool>,
        #[command(flatten)]
        rate: RateArgs,
        /// Print the resulting port as JSON
        #[arg(long)]
        json: bool,
    },
    /// Undo all changes of a port and its queues
    Reset {
        #[command(flatten)]
        target: Target,
        /// Print the resulting port as JSON
        #[arg(long)]
        json: bool,
    },
}

impl Target {
    fn options(&self) -> ConnectOptions {
        self.identity.refuse_p4runtimes();
        let protocol = Protocol::BfRuntime;
        ConnectOptions { protocol, ..self.identity.at(self.bfrt_addr.clone(), None) }
    }

    /// A client that is bound to the program.
    async fn link(&self) -> Result<Link, CtrlError> {
        let mut link = Link::connect(self.options()).await?;
        link.schema().await?;
        Ok(link)
    }
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    let (done, as_json) = match args.command {
        Command::List { target, json } => (connect::block_on(list(&target, json)), json),
        Command::Reset { target, json } => (connect::block_on(reset(&target, json)), json),
        Command::Set { target, queue, priority, weight, limit, served, rate, json } => {
            if rate.burst.is_some() && rate.rate().is_none() {
                eprintln!("error: --burst needs --max-kbps or --max-frames beside it");
                return ExitCode::from(2);
            }
            let rate = rate.rate();
            let change = QueueChange { serves: served, priority, weight, rate, limit_cells: limit };
            if change == QueueChange::default() {
                eprintln!("error: nothing to change is given; see p4rack queue set --help");
                return ExitCode::from(2);
            }
            (connect::block_on(set(&target, queue, &change, json)), json)
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => connect::fail(&error, as_json),
    }
}

async fn reset(target: &Target, as_json: bool) -> Result<(), CtrlError> {
    let mut link = target.link().await?;
    link.reset_queues(target.port).await?;
    show(&mut link, target.port, as_json).await
}

/// Changes a queue or a port, and shows what holds now.
async fn set(
    target: &Target,
    queue: Option<u32>,
    change: &QueueChange,
    as_json: bool,
) -> Result<(), CtrlError> {
    let mut link = target.link().await?;
    match (queue, change.rate) {
        (Some(queue), _) => link.set_queue(target.port, queue, change).await?,
        (None, Some(rate)) => link.set_port_rate(target.port, rate).await?,
        // The arguments' parser asks for a queue otherwise.
        (None, None) => {}
    }
    show(&mut link, target.port, as_json).await
}

async fn list(target: &Target, as_json: bool) -> Result<(), CtrlError> {
    let mut link = Link::to_read(target.options()).await?;
    link.schema().await?;
    show(&mut link, target.port, as_json).await
}

async fn show(link: &mut Link, port: u32, as_json: bool) -> Result<(), CtrlError> {
    let (queues, rate) = (link.queues(port).await?, link.port_rate(port).await?);
    if as_json {
        let one = |queue: &Queue| {
            json!({
                "queue": queue.number, "served": queue.serves, "priority": queue.priority,
                "weight": queue.weight, "rate": rate_json(queue.rate), "limit_cells": queue.limit_cells,
                "cells": queue.cells, "most_cells": queue.most_cells, "drops": queue.drops,
            })
        };
        let queues: Vec<Value> = queues.iter().map(one).collect();
        println!("{:#}", json!({ "port": port, "rate": rate_json(rate), "queues": queues }));
        return Ok(());
    }
    println!("port {port}: {}", rate_text(rate));
    let head = ["queue", ">priority", ">weight", ">cells", ">most", ">limit", ">dropped", "served"];
    let mut rows = Rows::new(&head);
    for queue in &queues {
        let held = if queue.serves { "" } else { "not at all; " };
        rows.push(vec![
            queue.number.to_string(),
            queue.priority.to_string(),
            queue.weight.to_string(),
            queue.cells.to_string(),
            queue.most_cells.to_string(),
            queue.limit_cells.to_string(),
            queue.drops.to_string(),
            format!("{held}{}", rate_text(queue.rate)),
        ]);
    }
    print!("{}", rows.text());
    Ok(())
}

fn rate_text(rate: Option<Rate>) -> String {
    match rate {
        None => "no limit of its rate".into(),
        Some(Rate::Kilobits(rate, burst)) => format!("at most {rate} kb/s, {burst} bytes at once"),
        Some(Rate::Frames(rate, burst)) => format!("at most {rate} frames/s, {burst} at once"),
    }
}

fn rate_json(rate: Option<Rate>) -> Value {
    match rate {
        None => Value::Null,
        Some(Rate::Kilobits(rate, burst)) => json!({ "kbps": rate, "burst_bytes": burst }),
        Some(Rate::Frames(rate, burst)) => json!({ "frames": rate, "burst_frames": burst }),
    }
}
