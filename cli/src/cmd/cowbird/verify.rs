//! `p4rack cowbird verify`.

use crate::cmd::adapter::{Adapter, Tls, text};
use crate::output::{Events, event_line};
use p4rack_codegen::rack::units::parse_bytes;
use p4rack_cowbird::Layout;
use p4rack_hosts::cowbird::verify::{self, News, Plan, Verified, VerifyError};
use p4rack_hosts::cowbird::{CowbirdNode, NodeConfig, NodeState};
use p4rack_hosts::roce::setup::Server;
use p4rack_netdev::signal::{Signal, Signals};
use p4rack_report::text::count;
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::thread::ScopedJoinHandle;
use std::time::Duration;

/// How often signals and the engine's state are looked at.
const LOOK: Duration = Duration::from_millis(10);

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    adapter: Adapter,
    /// Address of the pool's set-up service, HOST:PORT
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9561")]
    pool: String,
    /// Address of an engine's set-up service, HOST:PORT; may be repeated: when one is lost, the next continues
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9562")]
    engine: Vec<String>,
    #[command(flatten)]
    tls: Tls,
    /// Threads, each with rings of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = crate::numbers::within::<u16>(1..=64))]
    threads: u16,
    /// Reads and writes of each thread, or fewer on SIGTERM or SIGINT; then it reads all of its memory once more
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = crate::numbers::number::<u64>)]
    operations: u64,
    /// Bytes of a record: a multiple of 8
    #[arg(long, default_value_t = 64, value_parser = crate::numbers::within::<u32>(8..=65_536))]
    bytes: u32,
    /// Remote memory of each thread
    #[arg(long, value_name = "SIZE", default_value = "64 KiB", value_parser = parse_bytes)]
    memory: u64,
    /// Entries of each request ring: a power of two
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = crate::numbers::number::<u64>)]
    entries: u64,
    /// Request data and response data of each thread: a power of two
    #[arg(long, value_name = "SIZE", default_value = "64 KiB", value_parser = parse_bytes)]
    ring: u64,
    /// Seed of the records that are read and written
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = crate::numbers::number::<u64>)]
    seed: u64,
    /// Seconds that a thread waits without any response
    #[arg(long, value_name = "S", default_value_t = 30.0, value_parser = crate::cmd::finite)]
    patience: f64,
    /// Print events and results as JSON, one object per line
    #[arg(long)]
    json: bool,
}

/// Work of all threads.
#[derive(Debug, Serialize)]
struct Report {
    threads: Vec<Verified>,
    /// How often an engine began to serve.
    engines: u64,
}

/// Runs the command.
pub(super) fn run(args: Args) -> Result<(), String> {
    let server = |addr: &String| Server { addr: addr.clone(), tls: args.tls.files() };
    let threads = usize::from(args.threads);
    let config = NodeConfig {
        interface: args.adapter.interface.clone(),
        ip: args.adapter.ip,
        adapter: args.adapter.config(),
        loss: args.adapter.loss(),
        pool: server(&args.pool),
        engines: args.engine.iter().map(server).collect(),
        layout: Layout { entries: args.entries, request_bytes: args.ring, response_bytes: args.ring },
        threads,
        region_bytes: vec![args.memory; threads],
    };
    let signals = Signals::take().map_err(text)?;
    let (node, clients) = CowbirdNode::start(config).map_err(text)?;
    let mut state = node.state();
    let events = Events::new(args.json);
    events.report("ready", fields(&state), format_args!("ready {}", told(&state)));
    let news = News::default();
    let patience = Duration::from_secs_f64(args.patience.min(86_400.0));
    let plan = |region: u16| Plan {
        region,
        start: 0,
        bytes: args.memory,
        record_bytes: args.bytes,
        operations: args.operations,
        seed: args.seed.wrapping_add(region.into()),
        patience,
    };
    let verified: Result<Vec<Verified>, VerifyError> = std::thread::scope(|scope| {
        let news = &news;
        let run = |(region, mut client)| scope.spawn(move || verify::run(&mut client, plan(region), news));
        let running: Vec<_> = (0..).zip(clients).map(run).collect();
        while !running.iter().all(ScopedJoinHandle::is_finished) {
            std::thread::sleep(LOOK);
            if matches!(signals.next(), Some(Signal::End)) {
                news.over.store(true, Ordering::Relaxed);
            }
            if node.state() != state {
                state = node.state();
                events.report("state", fields(&state), told(&state));
                news.lost.store(matches!(state, NodeState::Lost(_)), Ordering::Relaxed);
            }
        }
        running
            .into_iter()
            .map(|thread| thread.join().expect("a thread that verifies does not panic"))
            .collect()
    });
    let report = Report {
        threads: verified.map_err(|error| format!("{error}; {}", told(&node.state())))?,
        engines: node.served(),
    };
    if args.json {
        println!("{}", event_line("end", &report));
        return Ok(());
    }
    for (nth, one) in report.threads.iter().enumerate() {
        println!(
            "thread {nth}: {} reads and {} writes of {} B, all right, {}/s",
            count(one.reads),
            count(one.writes),
            args.bytes,
            count(((one.reads + one.writes) as f64 / one.seconds) as u64)
        );
    }
    println!("engines: {}", report.engines);
    Ok(())
}

fn fields(state: &NodeState) -> Value {
    match state {
        NodeState::Served(engine) => json!({ "state": "served", "engine": engine }),
        NodeState::Unserved(why) => json!({ "state": "unserved", "why": why }),
        NodeState::Lost(why) => json!({ "state": "lost", "why": why }),
    }
}

fn told(state: &NodeState) -> String {
    match state {
        NodeState::Served(engine) => format!("served by the engine at {engine}"),
        NodeState::Unserved(why) => format!("no engine serves: {why}"),
        NodeState::Lost(why) => format!("the remote memory is lost: {why}"),
    }
}
