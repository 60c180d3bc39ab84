//! `p4rack clio verify`.

use super::Board;
use crate::cmd::adapter::text;
use crate::output::{Events, event_line};
use p4rack_codegen::rack::units::parse_bytes;
use p4rack_hosts::clio::verify::{self, Plan, Verified, VerifyError};
use p4rack_netdev::signal::{Signal, Signals};
use p4rack_report::text::count;
use p4rack_wire::Nanos;
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

/// How often signals are looked at.
const LOOK: Duration = Duration::from_millis(10);

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    board: Board,
    /// Processes, each with a thread here and memory of its own
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = crate::numbers::within::<u16>(1..=64))]
    processes: u16,
    /// Operations on memory of each process, or fewer on SIGTERM or SIGINT; then it reads all of its memory once more
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = crate::numbers::number::<u64>)]
    operations: u64,
    /// Requests of each process to the store; 0 if the board has none
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = crate::numbers::number::<u64>)]
    requests: u64,
    /// Memory of each process
    #[arg(long, value_name = "SIZE", default_value = "256 KiB", value_parser = parse_bytes)]
    memory: u64,
    /// Operations of a process under way
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = crate::numbers::within::<u16>(1..=1_024))]
    under_way: u16,
    /// Seed of the operations
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = crate::numbers::number::<u64>)]
    seed: u64,
    /// Seconds that a process waits without any end of an operation
    #[arg(long, value_name = "S", default_value_t = 30.0, value_parser = crate::cmd::finite)]
    patience: f64,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), String> {
    let server = args.board.server();
    let signals = Signals::take().map_err(text)?;
    Events::new(args.board.json).report(
        "ready",
        json!({ "board": args.board.board, "processes": args.processes }),
        format_args!("verifying {} with {} processes", args.board.board, args.processes),
    );
    let plan = |nth: u16| Plan {
        bytes: args.memory,
        operations: args.operations,
        under_way: args.under_way.into(),
        requests: args.requests,
        seed: args.seed.wrapping_add(nth.into()),
        patience: Nanos((args.patience.min(86_400.0) * 1e9) as u64),
    };
    let is_over = AtomicBool::new(false);
    let verified: Result<Vec<Verified>, VerifyError> = std::thread::scope(|scope| {
        let (server, is_over) = (&server, &is_over);
        let run = |nth| {
            scope.spawn(move || {
                let verified = verify::run(server, plan(nth), is_over);
                // The others need not go on.
                if verified.is_err() {
                    is_over.store(true, Ordering::Relaxed);
                }
                verified
            })
        };
        let running: Vec<_> = (0..args.processes).map(run).collect();
        while !running.iter().all(ScopedJoinHandle::is_finished) {
            std::thread::sleep(LOOK);
            if matches!(signals.next(), Some(Signal::End)) {
                is_over.store(true, Ordering::Relaxed);
            }
        }
        let joined =
            running.into_iter().map(|thread| thread.join().expect("a thread that verifies does not panic"));
        joined.collect()
    });
    let verified = verified.map_err(|error| args.board.said(error))?;
    if args.board.json {
        println!("{}", event_line("end", json!({ "processes": verified })));
        return Ok(());
    }
    for (nth, one) in verified.iter().enumerate() {
        let counts = [one.reads, one.writes, one.atomics, one.requests];
        let per_s = count((counts.iter().sum::<u64>() as f64 / one.seconds) as u64);
        let [reads, writes, atomics, requests] = counts.map(count);
        println!(
            "process {nth}: {reads} reads, {writes} writes, {atomics} atomic operations, {requests} requests to the store, \
             all right, {per_s}/s"
        );
    }
    Ok(())
}
