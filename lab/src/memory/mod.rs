//! How fast remote memory is on this machine, beside bare UDP ping-pongs.

mod ping_pong;

pub use ping_pong::{Way, ping_pong};

use crate::edm::{self, REGION_KEY};
use crate::error::LabError;
use crate::network::{Access, HOST_INTERFACE};
use crate::process::Process;
use crate::progress::Progress;
use crate::running::Running;
use crate::stats::histogram;
use crate::sys;
use crate::up::{create_network, rack_under};
use hdrhistogram::Histogram;
use p4rack_codegen::{Rack, Scheme};
use p4rack_hosts::memory::{Client, Error, Operation, Remote};
use p4rack_wire::edm::Opcode;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;

/// Operations at the same time, to measure rates.
const BATCH: usize = 16;
/// Region that the benchmark uses, if it starts the memory node.
const REGION_BYTES: u64 = 1 << 20;
/// How long processes may take beyond the measurement.
const FINISH: Duration = Duration::from_secs(20);

/// Latencies of one kind of operation, one at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyFigures {
    /// What was done.
    pub what: String,
    /// Operations that ended well.
    pub operations: u64,
    /// Operations whose result is unknown. They are not among the latencies.
    pub unknown: u64,
    /// Minimum.
    pub min_us: f64,
    /// 50th percentile.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
}

/// Operations per second of one kind, several at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RateFigures {
    /// What was done.
    pub what: String,
    /// Operations at the same time.
    pub at_once: usize,
    /// Operations that ended well, per second.
    pub per_s: f64,
    /// Operations whose result is unknown.
    pub unknown: u64,
}

/// Figures of remote memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryFigures {
    /// Bytes per read and write.
    pub bytes: u32,
    /// One operation at a time.
    pub latencies: Vec<LatencyFigures>,
    /// Several at a time.
    pub rates: Vec<RateFigures>,
}

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Whose memory.
    pub remote: Remote,
    /// Address of bytes that may be overwritten, a multiple of eight.
    pub address: u64,
    /// Bytes per read and write.
    pub bytes: u32,
    /// Time for each figure.
    pub each: Duration,
}

type Run = fn(Load) -> Operation;

/// Reads, writes and adds through a client: one at a time, then several.
pub fn measure(client: &mut Client, load: Load) -> Result<MemoryFigures, Error> {
    let add: Run = |load| Operation::modify(load.remote, load.address, Opcode::FetchAdd, 1);
    let kinds: [(&str, Run); 3] = [
        ("read", |load| Operation::read(load.remote, load.address, load.bytes)),
        ("write", |load| Operation::write(load.remote, load.address, vec![0x5a; load.bytes as usize])),
        ("fetch-add", add),
    ];
    let mut figures = MemoryFigures { bytes: load.bytes, ..MemoryFigures::default() };
    for (what, operation) in kinds {
        let (mut latencies, mut unknown) = (histogram(), 0);
        let end_ns = sys::monotonic_ns() + load.each.as_nanos() as u64;
        loop {
            let start_ns = sys::monotonic_ns();
            if start_ns >= end_ns {
                break;
            }
            match client.run(operation(load)) {
                Ok(_) => latencies.saturating_record(sys::monotonic_ns() - start_ns),
                Err(Error::Unknown) => unknown += 1,
                Err(error) => return Err(error),
            }
        }
        if latencies.is_empty() {
            return Err(Error::Unknown);
        }
        figures.latencies.push(figures_of(what, &latencies, unknown));
    }
    for (what, operation) in kinds {
        let (mut done, mut unknown) = (0u64, 0);
        let start_ns = sys::monotonic_ns();
        let end_ns = start_ns + load.each.as_nanos() as u64;
        while sys::monotonic_ns() < end_ns {
            for result in client.batch((0..BATCH).map(|_| operation(load))) {
                match result {
                    Ok(_) => done += 1,
                    Err(Error::Unknown) => unknown += 1,
                    Err(error) => return Err(error),
                }
            }
        }
        let took_s = (sys::monotonic_ns() - start_ns) as f64 / 1e9;
        figures.rates.push(RateFigures {
            what: what.to_owned(),
            at_once: BATCH,
            per_s: done as f64 / took_s,
            unknown,
        });
    }
    Ok(figures)
}

fn figures_of(what: &str, latencies: &Histogram<u64>, unknown: u64) -> LatencyFigures {
    let us = |ns: u64| ns as f64 / 1e3;
    LatencyFigures {
        what: what.to_owned(),
        operations: latencies.len(),
        unknown,
        min_us: us(latencies.min()),
        p50_us: us(latencies.value_at_quantile(0.5)),
        p99_us: us(latencies.value_at_quantile(0.99)),
        p999_us: us(latencies.value_at_quantile(0.999)),
    }
}

/// Figures of a whole benchmark.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Benchmark {
    /// Name of the rack.
    pub rack: String,
    /// Scheme that ran.
    pub scheme: String,
    /// Host that asked.
    pub client: String,
    /// Host that answered.
    pub server: String,
    /// Rate of the client's link.
    pub rate_bps: u64,
    /// Remote memory, through the embedded switch.
    pub memory: MemoryFigures,
    /// UDP ping-pongs beside it, with as many bytes: over one link, and through a process that only forwards.
    pub ping_pongs: Vec<LatencyFigures>,
}

/// Builds the rack on this machine, measures the memory of its first memory node from its first other host, and UDP ping-pongs
/// beside it.
pub fn bench(
    rack: &Rack,
    path: &Path,
    scheme: Scheme,
    bytes: u32,
    each: Duration,
    quiet: bool,
) -> Result<Benchmark, LabError> {
    sys::catch_interrupts();
    let progress = Progress::new(quiet);
    let rack = rack_under(rack, scheme)?;
    let with_memory = p4rack_memory::edm(&rack)?.memory.as_slice();
    let server = with_memory.first().cloned().unwrap_or_default();
    let other = rack.hosts.iter().find(|host| !with_memory.contains(&host.name));
    let client = other.ok_or_else(|| LabError::Unfit(format!("all hosts of {} have memory", rack.name)))?;
    let network = create_network(&rack, Access::Agent, &progress)?;
    let mut running = Running::start(&rack, path, &network, scheme, None, &progress)?;
    let args = edm::serve_args(&running, &server, REGION_BYTES);
    let mut serving =
        Process::start(&format!("the memory node on {server}"), running.namespace(&server)?, args)?;
    serving.wait_for_line("ready", FINISH)?;
    running.serving.push(serving);
    let mut args = ["memory", "bench", &path.display().to_string()].map(str::to_owned).to_vec();
    for (option, value) in [
        ("--name", client.name.clone()),
        ("--interface", HOST_INTERFACE.to_owned()),
        ("--at", server.clone()),
        ("--scheme", scheme.name()),
        ("--arch", rack.switch.arch.name().to_owned()),
        ("--key", REGION_KEY.to_string()),
        ("--bytes", bytes.to_string()),
        ("--each", each.as_secs_f64().to_string()),
    ] {
        args.extend([option.to_owned(), value]);
    }
    args.push("--json".to_owned());
    let memory = progress.step(
        &format!("measuring the memory of {server} from {}", client.name),
        || {
            let name = format!("the benchmark on {}", client.name);
            let mut asking = Process::start(&name, running.namespace(&client.name)?, args)?;
            let output = asking.finish_beside(each * 8 + FINISH, &mut || running.check())?;
            let figures: Result<MemoryFigures, _> = serde_json::from_str(output.trim());
            figures.map_err(|error| asking.failure(&format!("wrote no result: {error}")))
        },
        |_| format!("measured the memory of {server} from {}", client.name),
    )?;
    running.check()?;
    running.stop()?;
    let ping_pongs = progress.step(
        "measuring UDP ping-pongs",
        || Way::ALL.iter().map(|way| ping_pong(*way, bytes as usize, each)).collect::<Result<Vec<_>, _>>(),
        |_| "measured UDP ping-pongs".to_owned(),
    )?;
    Ok(Benchmark {
        rack: rack.name.clone(),
        scheme: scheme.name(),
        client: client.name.clone(),
        server,
        rate_bps: client.rate_bps,
        memory,
        ping_pongs,
    })
}
