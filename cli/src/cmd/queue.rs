//! `p4rack queue`.

use super::connect;
use p4rack_ctrl::bfrt::{Link, Queue, QueueChange, Rate};
use p4rack_ctrl::{ConnectOptions, CtrlError, Protocol};
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
    #[arg(long)]
    port: u32,
}

/// The most that a queue or port sends.
#[derive(clap::Args, Debug)]
#[group(id = "queue-rate")]
struct RateArgs {
    /// Thousands of bits per second that it sends at most, preamble and gap not counted
    #[arg(long, value_name = "N", conflicts_with = "max_frames")]
    max_kbps: Option<u32>,
    /// Frames per second that it sends at most
    #[arg(long, value_name = "N")]
    max_frames: Option<u32>,
    /// Bytes (with --max-frames: frames) that may leave at once after a pause [default: 0]
    #[arg(long, value_name = "N")]
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
    /// List a port's queues: how they are served, what waits, what was dropped
    List {
        #[command(flatten)]
        target: Target,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Change how a queue is served; what is not given stays
    Set {
        #[command(flatten)]
        target: Target,
        /// Number of the queue; without it, the rate is the whole port's
        #[arg(long)]
        queue: Option<u32>,
        /// Priority, 0 to 7; the highest is served first
        #[arg(long, value_name = "N", requires = "queue", value_parser = clap::value_parser!(u8).range(..8))]
        priority: Option<u8>,
        /// Share among queues of the same priority, 1 to 1023
        #[arg(long, value_name = "N", requires = "queue", value_parser = clap::value_parser!(u16).range(1..1024))]
        weight: Option<u16>,
        /// Cells that it may hold
        #[arg(long, value_name = "CELLS", requires = "queue")]
        limit: Option<u32>,
        /// Whether it is served at all
        #[arg(long, value_name = "BOOL", requires = "queue")]
        served: Option<bool>,
        #[command(flatten)]
        rate: RateArgs,
    },
    /// Let a port and its queues be as if nobody had changed them
    Reset {
        #[command(flatten)]
        target: Target,
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
        Command::Reset { target } => (connect::block_on(reset(&target)), false),
        Command::Set { target, queue, priority, weight, limit, served, rate } => {
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
            (connect::block_on(set(&target, queue, &change)), false)
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => connect::fail(&error, as_json),
    }
}

async fn reset(target: &Target) -> Result<(), CtrlError> {
    target.link().await?.reset_queues(target.port).await
}

async fn set(target: &Target, queue: Option<u32>, change: &QueueChange) -> Result<(), CtrlError> {
    let mut link = target.link().await?;
    match (queue, change.rate) {
        (Some(queue), _) => link.set_queue(target.port, queue, change).await,
        (None, Some(rate)) => link.set_port_rate(target.port, rate).await,
        // The arguments' parser asks for a queue otherwise.
        (None, None) => Ok(()),
    }
}

async fn list(target: &Target, as_json: bool) -> Result<(), CtrlError> {
    let mut link = Link::to_read(target.options()).await?;
    link.schema().await?;
    let (queues, rate) = (link.queues(target.port).await?, link.port_rate(target.port).await?);
    if as_json {
        let one = |queue: &Queue| {
            json!({
                "queue": queue.number, "served": queue.serves, "priority": queue.priority,
                "weight": queue.weight, "rate": rate_json(queue.rate), "limit_cells": queue.limit_cells,
                "cells": queue.cells, "most_cells": queue.most_cells, "drops": queue.drops,
            })
        };
        let queues: Vec<Value> = queues.iter().map(one).collect();
        println!("{:#}", json!({ "port": target.port, "rate": rate_json(rate), "queues": queues }));
        return Ok(());
    }
    println!("port {}: {}", target.port, rate_text(rate));
    println!("queue  priority  weight  cells  most  limit  dropped");
    for queue in &queues {
        let held = if queue.serves { "" } else { ", not served" };
        println!(
            "{:>5}  {:>8}  {:>6}  {:>5}  {:>4}  {:>5}  {:>7}  {}{held}",
            queue.number,
            queue.priority,
            queue.weight,
            queue.cells,
            queue.most_cells,
            queue.limit_cells,
            queue.drops,
            rate_text(queue.rate),
        );
    }
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
