//! How fast remote memory is on this machine, beside bare UDP ping-pongs.

mod ping_pong;

pub use ping_pong::{Between, ping_pong};

use crate::edm::REGION_KEY;
use crate::error::LabError;
use crate::network::{Access, host_interfaces};
use crate::process::Process;
use crate::progress::Progress;
use crate::running::Running;
use crate::sys;
use crate::up::{self, create_network, rack_under};
use crate::ways::{self, Reach};
use p4rack_codegen::rack::Run;
use p4rack_codegen::scheme::clio::Clio;
use p4rack_codegen::scheme::cowbird::Cowbird;
use p4rack_codegen::{Rack, Scheme};
use p4rack_fabric::remote::{Link, Service, Way};
use p4rack_hosts::remote::{Operation, Outcome, Region, Remote, RemoteError, Status};
use p4rack_netdev::process;
use p4rack_wire::Histogram;
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
    /// The measured operation.
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
    /// The measured operation.
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

/// A measurement.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Address of bytes that may be overwritten, a multiple of eight.
    pub address: u64,
    /// Bytes per read and write.
    pub bytes: u32,
    /// Time for each figure.
    pub each: Duration,
    /// Reads alone, one at a time.
    pub reads_only: bool,
}

/// Reads, writes and adds, if the way can: one at a time, then several. Errors: nothing is known of any of a kind, or one is refused.
pub fn measure<R: Remote>(region: &mut Region<R>, load: Load) -> Result<MemoryFigures, RemoteError> {
    let (at, content) = (load.address, vec![0x5a; load.bytes as usize]);
    let mut kinds = vec![("read", Operation::Read { at, bytes: load.bytes })];
    if !load.reads_only {
        kinds.push(("write", Operation::Write { at, bytes: &content }));
    }
    if !load.reads_only && region.remote().abilities().atomics.contains(&Opcode::FetchAdd) {
        kinds.push(("fetch-add", Operation::Modify { at, opcode: Opcode::FetchAdd, operands: [1, 0] }));
    }
    let mut figures = MemoryFigures { bytes: load.bytes, ..MemoryFigures::default() };
    for (what, operation) in &kinds {
        let (mut latencies, mut unknown) = (Histogram::new(), 0);
        let end_ns = sys::monotonic_ns() + load.each.as_nanos() as u64;
        loop {
            let start_ns = sys::monotonic_ns();
            if start_ns >= end_ns {
                break;
            }
            let (done, silent) = run(region, [*operation])?;
            unknown += silent;
            if done > 0 {
                latencies.record(sys::monotonic_ns() - start_ns);
            }
        }
        if latencies.is_empty() {
            return Err(Status::Unknown.into());
        }
        figures.latencies.push(figures_of(what, &latencies, unknown));
    }
    for (what, operation) in kinds.iter().filter(|_| !load.reads_only) {
        let (mut done, mut unknown) = (0, 0);
        let start_ns = sys::monotonic_ns();
        let end_ns = start_ns + load.each.as_nanos() as u64;
        while sys::monotonic_ns() < end_ns {
            let (ended, silent) = run(region, [*operation; BATCH])?;
            (done, unknown) = (done + ended, unknown + silent);
        }
        let took_s = (sys::monotonic_ns() - start_ns) as f64 / 1e9;
        figures.rates.push(RateFigures {
            what: (*what).to_owned(),
            at_once: BATCH,
            per_s: done as f64 / took_s,
            unknown,
        });
    }
    Ok(figures)
}

/// Does operations at the same time. Returns how many ended well, and of how many nothing is known.
fn run<R: Remote, const N: usize>(
    region: &mut Region<R>,
    operations: [Operation<'_>; N],
) -> Result<(u64, u64), RemoteError> {
    let (mut done, mut unknown, mut refused) = (0, 0, None);
    region.batch(operations, |_, outcome| match outcome {
        Outcome::Failed(Status::Unknown) => unknown += 1,
        Outcome::Failed(status) => refused = Some(status),
        Outcome::Read(_) | Outcome::Written | Outcome::Word(_) => done += 1,
    })?;
    refused.map_or(Ok((done, unknown)), |status| Err(status.into()))
}

fn figures_of(what: &str, latencies: &Histogram, unknown: u64) -> LatencyFigures {
    let us = |ns: u64| ns as f64 / 1e3;
    LatencyFigures {
        what: what.to_owned(),
        operations: latencies.len(),
        unknown,
        min_us: us(latencies.min()),
        p50_us: us(latencies.at(0.5)),
        p99_us: us(latencies.at(0.99)),
        p999_us: us(latencies.at(0.999)),
    }
}

/// Figures of a whole benchmark.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Benchmark {
    /// Name of the rack.
    pub rack: String,
    /// Scheme that ran.
    pub scheme: String,
    /// How the memory was reached.
    pub way: String,
    /// Host that asked.
    pub client: String,
    /// Host that answered.
    pub server: String,
    /// Rate of the client's link.
    pub rate_bps: u64,
    /// Remote memory, through the embedded switch.
    pub memory: MemoryFigures,
    /// Processor time of the server's process, and of an engine's, while that was measured.
    pub server_cpu_us: f64,
    /// UDP ping-pongs beside it, with as many bytes: over one link, and through a process that only forwards.
    pub ping_pongs: Vec<LatencyFigures>,
}

/// Builds the rack on this machine, measures the memory of one host from another by a way, and UDP ping-pongs beside it. The host
/// with the memory is the first that may have it, the other one the first that may not.
pub fn bench(
    rack: &Rack,
    path: &Path,
    run: (Scheme, Way),
    load: Load,
    quiet: bool,
) -> Result<Benchmark, LabError> {
    let mut done = bench_alone(rack, path, run, load, quiet)?;
    done.ping_pongs = Progress::new(quiet).step(
        "measuring UDP ping-pongs",
        || {
            let measure = |between: &Between| ping_pong(*between, load.bytes as usize, load.each);
            Between::ALL.iter().map(measure).collect::<Result<Vec<_>, _>>()
        },
        |_| "measured UDP ping-pongs".to_owned(),
    )?;
    Ok(done)
}

/// The same without ping-pongs.
pub fn bench_alone(
    rack: &Rack,
    path: &Path,
    (scheme, way): (Scheme, Way),
    load: Load,
    quiet: bool,
) -> Result<Benchmark, LabError> {
    sys::catch_interrupts();
    let (progress, each) = (Progress::new(quiet), load.each);
    let rack = rack_under(rack, scheme)?;
    let with_memory: &[String] = match (way.definition().service, rack.protocol::<Cowbird>()) {
        (Service::Node, _) => &p4rack_memory::edm(&rack)?.memory,
        (Service::None, _) => {
            return Err(LabError::Unfit(format!("{way}: that memory is each program's own")));
        }
        (Service::Board, _) => rack.protocol::<Clio>().map_or(&[][..], |clio| &clio.boards),
        (_, Some(cowbird)) => &cowbird.pool,
        (_, None) => &[],
    };
    let server = with_memory.first().or_else(|| rack.hosts.first().map(|host| &host.name)).cloned();
    let server = server.unwrap_or_default();
    let other = rack.hosts.iter().find(|host| host.name != server && !with_memory.contains(&host.name));
    let client = other.ok_or_else(|| LabError::Unfit(format!("all hosts of {} have memory", rack.name)))?;
    let run = Run { way: Some(way), ..scheme.into() };
    let access = up::access(&rack, run, ways::mtu(&rack));
    let network = create_network(&rack, access, &progress)?;
    let mut running = match access {
        Access::Agent => Running::start(&rack, path, &network, scheme, None, &progress)?,
        _ => Running::without_agents(&rack, path, &network, run, None, &progress)?,
    };
    let reserves = way.definition().engine.is_some();
    let reach = Reach { running: &running, way, server: &server };
    let (serving, mut services) = (reach.serve(REGION_BYTES, !reserves)?, reach.services()?);
    if reserves {
        services.extend(["--reserve".to_owned(), format!("{REGION_BYTES} B")]);
    }
    let servers: Vec<u32> = serving.iter().map(Process::pid).collect();
    running.serving.extend(serving);
    let through_kernel = way.definition().link == Link::Kernel;
    let interface = match through_kernel {
        true => network.application_interface().to_owned(),
        false => host_interfaces(&rack).join(","),
    };
    let mut args = ["memory", "bench", &path.display().to_string()].map(str::to_owned).to_vec();
    for (option, value) in [
        ("--name", client.name.clone()),
        ("--interface", interface),
        ("--at", server.clone()),
        ("--way", way.name().to_owned()),
        ("--scheme", scheme.name()),
        ("--arch", rack.switch.arch.name().to_owned()),
        ("--key", REGION_KEY.to_string()),
        ("--bytes", load.bytes.to_string()),
        ("--each", each.as_secs_f64().to_string()),
    ] {
        args.extend([option.to_owned(), value]);
    }
    args.extend(services);
    args.push("--json".to_owned());
    if load.reads_only {
        args.push("--reads".to_owned());
    }
    let cpu_us = || {
        let cpu = |pid: &u32| process::cpu(*pid).map_err(LabError::system("processor time of a server"));
        let cpu: Result<Vec<_>, _> = servers.iter().map(cpu).collect();
        Ok::<f64, LabError>(cpu?.iter().map(|cpu| cpu.0 as f64 / 1e3).sum())
    };
    let cpu_before_us = cpu_us()?;
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
    let server_cpu_us = cpu_us()? - cpu_before_us;
    running.stop()?;
    Ok(Benchmark {
        rack: rack.name.clone(),
        scheme: scheme.name(),
        way: way.name().to_owned(),
        client: client.name.clone(),
        server,
        rate_bps: client.rate_bps,
        memory,
        server_cpu_us,
        ping_pongs: Vec::new(),
    })
}
