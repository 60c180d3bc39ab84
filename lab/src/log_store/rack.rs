//! The store as `up`'s workload: pool, engine and client are processes of a rack, each with an adapter of its own.

use super::client::{Outcome, READY, setup};
use super::log::{Config, MEMORY_PAGES_MIN};
use crate::control;
use crate::edm;
use crate::error::LabError;
use crate::measure::Plan;
use crate::network::{HOST_INTERFACE, setup_ip, switch_setup_ip};
use crate::process::Process;
use crate::progress::Progress;
use crate::results::SchemeResult;
use crate::running::Running;
use crate::store::figures::{self, Measured};
use crate::text;
use crate::workload::Span;
use p4rack_codegen::Rack;
use p4rack_codegen::scheme::cowbird::Cowbird;
use p4rack_fabric::remote::{Engine, Service, Way};
use p4rack_wire::Nanos;
use p4rack_wire::roce::Mtu;
use std::net::Ipv4Addr;
use std::time::Duration;

/// Ports of the set-up services.
const POOL_PORT: u16 = 9_561;
const ENGINE_PORT: u16 = 9_562;
/// How long pool and engine may take to start.
const START: Duration = Duration::from_secs(20);
/// How long writing all records may take.
const ALL_RECORDS: Duration = Duration::from_secs(60);

/// Checks that the log store of a rack, as it is during a run, needs remote memory, and that an engine in the switch takes its
/// rings.
pub(crate) fn check(rack: &Rack, way: Way) -> Result<(), LabError> {
    let setup = setup(rack, Nanos::ZERO, 0)?;
    let config = setup.config(way);
    if !way.is_remote() {
        return Ok(());
    }
    if !config.has_share(setup.records as usize, setup.memory_percent) {
        let pages = (100 * MEMORY_PAGES_MIN).div_ceil(setup.memory_percent.max(1));
        return Err(LabError::Unfit(format!(
            "local memory has {MEMORY_PAGES_MIN} pages at least, which is more than {} % of {} records: set workload.records to \
             {} or more, or raise workload.log.memory_percent",
            setup.memory_percent,
            setup.records,
            pages * config.page_records
        )));
    }
    if way.definition().service == Service::Node {
        let server = rack.workload.as_ref().map_or("", |workload| workload.ends().0);
        p4rack_memory::memory_node(rack, server)?;
        let most = p4rack_memory::edm(rack)?.message_bytes_max as usize;
        if config.page_bytes() > most {
            return Err(LabError::Unfit(format!(
                "{way}: a page of the log has {} bytes, and edm.message_bytes_max is {most}: raise that, or lower \
                 workload.value_bytes",
                config.page_bytes()
            )));
        }
    }
    let Some(cowbird) = rack.protocol::<Cowbird>() else { return Ok(()) };
    let shape = config.shape();
    let needed = shape.reads.ring_bytes().max(shape.writes.ring_bytes()) / 2;
    if needed > cowbird.message_bytes_max.into() {
        return Err(LabError::Unfit(format!(
            "{way}: rings of {} bytes are needed, and the switch takes twice cowbird.message_bytes_max, which is {}: set that \
             to {needed}, or lower workload.log.depth or workload.value_bytes",
            2 * needed,
            cowbird.message_bytes_max
        )));
    }
    Ok(())
}

/// Runs the workload.
pub(crate) fn run(
    running: &mut Running<'_>,
    way: Way,
    plan: Plan<'_>,
    progress: &Progress,
) -> Result<SchemeResult, LabError> {
    let store = plan.workload.store.as_ref();
    let store = store.ok_or_else(|| LabError::Unfit("the workload is no store".to_owned()))?;
    let config = setup(running.rack, Nanos(plan.window_ns), plan.seed)?.config(way);
    let early = control::start_stats_anew(running)?;
    let parties = Parties { running, way };
    // The engine in the switch is its controller from here on.
    let serving = parties.serve(&config, plan)?;
    let mut client = parties.client(plan)?;
    running.serving = serving;
    let (name, records) = (running.name.clone(), text::count(store.records.into()));
    let start_ns = progress.step(
        &format!("{name}: writing {records} records"),
        || {
            client.wait_for_line_beside(READY, ALL_RECORDS, &mut || running.check())?;
            let output = client.output();
            let start = output.lines().find_map(|line| line.strip_prefix(READY)?.trim().parse().ok());
            start.ok_or_else(|| client.failure("does not say when it begins"))
        },
        |_| format!("{name}: {records} records written"),
    )?;
    let window = Span { start_ns, duration_ns: plan.window_ns };
    let mut clients = [client];
    figures::watch(progress, running, store, window, &mut clients)?;
    let windowed = control::stats(running)?;
    let [mut client] = clients;
    let outcome: Outcome = progress.step(
        &format!("{name}: reading {records} records"),
        || figures::report(&mut client, running),
        |_| format!("{name}: {records} records read again"),
    )?;
    running.check()?;
    // What an engine still has under way counts too; it goes before its pool.
    running.end_serving();
    let switch = [early, windowed, control::stats(running)?];
    let Outcome { report, contents, spans_ns } = outcome;
    let measured = Measured { reports: &[report], contents, spans_ns: &spans_ns, window, switch, bulk: None };
    figures::result(running, store, plan, measured, progress)
}

/// Who takes part in a run.
struct Parties<'a> {
    running: &'a Running<'a>,
    way: Way,
}

impl Parties<'_> {
    /// Starts what offers the memory, and an engine, as far as the way has them.
    fn serve(&self, config: &Config, plan: Plan<'_>) -> Result<Vec<Process>, LabError> {
        let server = plan.workload.ends().0;
        match self.way.definition().service {
            Service::None => return Ok(Vec::new()),
            Service::Pool => {}
            Service::Node => {
                let args = edm::serve_args(self.running, server, config.region_bytes());
                return Ok(vec![self.start("the memory node", server, args)?]);
            }
            Service::Bytes => {
                let path = self.running.path.display().to_string();
                let mut args = words(&["memory", "serve", &path, "--name", server, "--way", self.way.name()]);
                args.extend(["--bytes".to_owned(), format!("{} B", config.region_bytes())]);
                return Ok(vec![self.start("the server of bytes", server, args)?]);
            }
        }
        let mut args = words(&["roce", "serve", "--memory", "4 KiB"]);
        args.extend(["--reserve".to_owned(), format!("{} B", config.region_bytes())]);
        args.extend(self.adapter(server)?);
        args.extend(listen(setup_ip(self.running.index(server)?), POOL_PORT));
        let mut serving = vec![self.start("the pool", server, args)?];
        let pool = self.pool(server)?;
        match (self.way.definition().engine, self.running.rack.log().and_then(|log| log.engine.as_deref())) {
            (Some(Engine::Host), Some(host)) => {
                let mut args = words(&["cowbird", "engine", "--pool", &pool]);
                args.extend(self.adapter(host)?);
                args.extend(listen(setup_ip(self.running.index(host)?), ENGINE_PORT));
                serving.push(self.start("the engine", host, args)?);
            }
            (Some(Engine::Switch), _) => {
                let path = self.running.path.display().to_string();
                let mut args = words(&["cowbird", "switch", &path, "--pool", &pool]);
                args.extend(["--scheme".to_owned(), self.running.scheme.name()]);
                args.extend(["--arch".to_owned(), self.running.rack.switch.arch.name().to_owned()]);
                args.extend(listen(switch_setup_ip(), ENGINE_PORT));
                let name = "the controller of the engine in the switch";
                serving.push(ready(Process::start(name, &self.running.network.switch, args)?)?);
            }
            _ => {}
        }
        Ok(serving)
    }

    /// Starts the client.
    fn client(&self, plan: Plan<'_>) -> Result<Process, LabError> {
        let (server, clients) = plan.workload.ends();
        let host = clients.first().map_or("", String::as_str);
        let mut args = words(&["log-client", &self.running.path.display().to_string()]);
        let mut push = |option: &str, value: String| args.extend([option.to_owned(), value]);
        push("--name", host.to_owned());
        push("--arch", self.running.rack.switch.arch.name().to_owned());
        push("--way", self.way.name().to_owned());
        push("--duration-ns", plan.window_ns.to_string());
        push("--seed", plan.seed.to_string());
        match self.way.definition().service {
            Service::Pool => push("--memory", self.pool(server)?),
            Service::Bytes => {
                let ip = self.running.rack.hosts[self.running.index(server)?].ip;
                push("--memory", at(ip, p4rack_memory::BYTES_PORT));
            }
            Service::None | Service::Node => {}
        }
        match (self.way.definition().engine, self.running.rack.log().and_then(|log| log.engine.as_deref())) {
            (Some(Engine::Host), Some(engine)) => {
                push("--engine", at(setup_ip(self.running.index(engine)?), ENGINE_PORT));
            }
            (Some(Engine::Switch), _) => push("--engine", at(switch_setup_ip(), ENGINE_PORT)),
            _ => {}
        }
        args.extend(self.adapter(host)?);
        self.running.program(host, args)
    }

    fn pool(&self, server: &str) -> Result<String, LabError> {
        Ok(at(setup_ip(self.running.index(server)?), POOL_PORT))
    }

    /// Options of a host's adapter.
    fn adapter(&self, host: &str) -> Result<Vec<String>, LabError> {
        let rack = self.running.rack;
        let ip = rack.hosts[self.running.index(host)?].ip;
        let mtu = rack.protocol::<Cowbird>().map_or(Mtu::B1024, |cowbird| cowbird.mtu);
        let mut options = words(&["--interface", HOST_INTERFACE, "--ip", &ip.to_string()]);
        // A switch that rewrites packets can't compute iCRCs. So that ways can be compared, none checks them.
        options.extend(["--mtu".to_owned(), mtu.bytes().to_string(), "--ignore-icrc".to_owned()]);
        Ok(options)
    }

    /// Starts a process on a host, and waits until it is ready.
    fn start(&self, what: &str, host: &str, args: Vec<String>) -> Result<Process, LabError> {
        ready(Process::start(&format!("{what} on {host}"), self.running.namespace(host)?, args)?)
    }
}

fn ready(mut process: Process) -> Result<Process, LabError> {
    process.wait_for_line("ready", START)?;
    Ok(process)
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn at(ip: Ipv4Addr, port: u16) -> String {
    format!("{ip}:{port}")
}

/// Where a set-up service listens. Only the rack's processes reach it.
fn listen(ip: Ipv4Addr, port: u16) -> Vec<String> {
    words(&["--insecure", "--grpc-server-addr", &at(ip, port)])
}
