//! `p4rack cowbird switch`.

use crate::cmd::adapter::{GrpcServer, Telling, Tls, members, runtime, text};
use crate::cmd::settings::Settings;
use crate::output::Events;
use p4rack_codegen::rack::{Host, Target};
use p4rack_codegen::scheme::cowbird::{Connection, Cowbird, Instance, Pool, Start};
use p4rack_codegen::{Arch, Rack, Scheme};
use p4rack_ctrl::bmv2::Compiler;
use p4rack_ctrl::connect::parse_election_id;
use p4rack_ctrl::cowbird::{Engine, Turns};
use p4rack_ctrl::deploy::Desired;
use p4rack_ctrl::{ConnectOptions, CtrlError, Session};
use p4rack_fabric::roce::{self, Config};
use p4rack_hosts::cowbird::tenant::{self, Pairs, Status, Tenant};
use p4rack_hosts::cowbird::{Service, SpotConfig, serve};
use p4rack_hosts::outlet::Counts;
use p4rack_hosts::roce::pool;
use p4rack_hosts::roce::setup::{End, Server, Station, numbers};
use p4rack_hosts::roce::{Desk, Members};
use p4rack_netdev::clock;
use p4rack_netdev::signal::{Signal, Signals};
use p4rack_p4rt::transport::{Share, Shares};
use p4rack_wire::cowbird::{Phase, Red};
use serde_json::json;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

/// Where compute nodes connect unless another address is given.
const SETUP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9562);
/// Requests that wait at most; further ones wait outside.
const WAITING_MAX: usize = 64;
/// How often the rings' signs of life are looked at.
const LOOK_AT_RINGS: Duration = Duration::from_secs(1);
/// How often signals are looked at.
const LOOK: Duration = Duration::from_millis(50);

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The rack description, TOML, with a [cowbird] table
    rack: PathBuf,
    #[command(flatten)]
    settings: Settings,
    #[arg(long, help = crate::cmd::schemes::help("as described; it needs Cowbird"))]
    scheme: Option<Scheme>,
    /// Architecture of the switch's program: v1model, tna or t2na [default: as described]
    #[arg(long)]
    arch: Option<Arch>,
    /// Address of the switch's P4Runtime server, HOST:PORT [default: as described]
    #[arg(long, value_name = "ADDR")]
    grpc_addr: Option<String>,
    /// P4Runtime election id; the highest one is primary
    #[arg(long, value_name = "HI,LO", default_value = "0,1", value_parser = parse_election_id)]
    election_id: u128,
    /// Give turns by packet-outs, at most one each millisecond, instead of the switch's packet generator [default: on target bmv2,
    /// which has none]
    #[arg(long)]
    packet_outs: bool,
    /// Address of the pool's set-up service, HOST:PORT
    #[arg(long, value_name = "ADDR")]
    pool: String,
    #[command(flatten)]
    tls: Tls,
    #[command(flatten)]
    setup: GrpcServer,
    #[command(flatten)]
    telling: Telling,
    /// Print events as JSON, one object per line
    #[arg(long)]
    json: bool,
}

/// Counters so far. The switch counts frames, drops among them, itself.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// Compute nodes served, and those that were refused.
    served: u64,
    refused: u64,
    /// Compute nodes and sets that are served now.
    nodes: u64,
    sets: u64,
    /// Queue pairs that a NAK has ended, and compute nodes that fell silent.
    lost: u64,
    silent: u64,
    /// Completed requests of sets that have ended.
    reads: u64,
    writes: u64,
}

impl Tally {
    fn counts(self, desk: &Desk) -> Counts {
        let Tally { served, refused, nodes, sets, lost, silent, reads, writes } = self;
        let setups = [("served", served), ("refused", refused), ("nodes_now", nodes), ("sets_now", sets)];
        let engine = [("lost_pairs", lost), ("silent_nodes", silent), ("reads", reads), ("writes", writes)];
        Counts::default().of("setup", setups).of("entrance", desk.counts()).of("engine", engine)
    }
}

/// A request to the task with the session.
enum SessionCommand {
    Add(Box<Tenant>, oneshot::Sender<Result<u32, Status>>),
    Remove(u32),
    End(oneshot::Sender<()>),
}

/// The engine in the switch, for the set-up service.
struct Switch(mpsc::Sender<SessionCommand>);

impl tenant::Engine for Switch {
    fn pairs(&self, sets: usize) -> Pairs {
        let sets = sets as u32;
        Pairs { compute: sets * Phase::COMPUTE.len() as u32, pool: sets * Phase::POOL.len() as u32 }
    }

    async fn add(&self, tenant: Tenant) -> Result<u32, Status> {
        let gone = || Status::unavailable("the connection with the switch has ended");
        let (told, answer) = oneshot::channel();
        self.0.send(SessionCommand::Add(Box::new(tenant), told)).await.map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }

    async fn remove(&self, number: u32) {
        // Without a session there is nothing to remove.
        let _ = self.0.send(SessionCommand::Remove(number)).await;
    }
}

/// A compute node that is served.
struct Served {
    instances: Vec<Instance>,
    failed: Option<oneshot::Sender<String>>,
    _shares: [Share<String>; 2],
}

/// The session's end.
struct Keeper {
    engine: Engine,
    rack: Rack,
    members: Members,
    cowbird: Cowbird,
    tenants: BTreeMap<u32, Served>,
    next: u32,
    /// Sets and regions that each compute node of the rack may have.
    sets: Arc<Shares<String>>,
    regions: Arc<Shares<String>>,
    tally: watch::Sender<Tally>,
}

/// Runs the command.
pub(super) fn run(args: Args) -> Result<(), String> {
    let (addr, tls) = args.setup.check(SETUP, "can have rings served")?;
    let rack = Rack::load_set(&args.rack, &args.settings.set).map_err(text)?;
    let scheme = args.scheme.unwrap_or_else(|| rack.scheme());
    let rack = rack.on(args.arch.unwrap_or(rack.switch.arch)).under(scheme).map_err(text)?;
    let Some(cowbird) = rack.protocol::<Cowbird>().cloned() else {
        return Err(format!("{}: has no Cowbird under {scheme}; add a [cowbird] table", args.rack.display()));
    };
    let desired = Desired::of_rack(&rack, scheme, rack.switch.target, None, Compiler::Own).map_err(text)?;
    let target = args.grpc_addr.unwrap_or_else(|| rack.switch.grpc_addr.to_string());
    let target = ConnectOptions {
        election_id: args.election_id,
        ..ConnectOptions::new(target, rack.switch.device_id)
    };
    let host = rack.hosts.iter().find(|host| cowbird.is_compute(host));
    let port = host.map(|host| host.port).ok_or("[cowbird] names no compute node")?;
    let turns = match args.packet_outs || rack.switch.target == Target::Bmv2 {
        true => Turns::PacketOuts(rack.switch.cpu_port),
        false => Turns::Generator(port),
    };
    let mut outlet = args.telling.open()?;
    let signals = Signals::take().map_err(text)?;
    let station = Station { mac: cowbird.mac, ip: cowbird.ip };
    // Adapters have to take as many READs as the switch may have under way.
    let default = Config::default();
    let adapter =
        Config { mtu: cowbird.mtu, reads_max: default.reads_max.max(cowbird.in_flight as usize), ..default };
    // The keeper checks the caller together with the roles that the description gives its hosts.
    let pool = Server { addr: args.pool, tls: args.tls.files() };
    let config = SpotConfig { station, adapter, pool, members: None };
    let runtime = runtime()?;
    let (asks, asked) = mpsc::channel(WAITING_MAX);
    let (tally, told) = watch::channel(Tally::default());
    let (keeping, serving, bound, desk) = runtime.block_on(async {
        let session = Session::connect(target).await.map_err(text)?;
        let tick = End::draw(station, &mut numbers()).qpn;
        let engine = Engine::start(session, &desired, cowbird.clone(), turns, tick).await.map_err(text)?;
        let keeper = Keeper::new(engine, rack, cowbird, tally);
        let listener = pool::bind(addr).await.map_err(text)?;
        let bound = listener.local_addr().map_err(text)?;
        let service = Service::new(Switch(asks.clone()), config);
        let desk = service.desk();
        let serving = tokio::spawn(async move { serve(listener, service, tls.as_ref()).await });
        Ok::<_, String>((tokio::spawn(keeper.keep(asked)), serving, bound, desk))
    })?;
    let counts = || told.borrow().counts(&desk);
    let events = Events::new(args.json);
    events.report(
        "ready",
        json!({ "ip": station.ip, "setup": bound }),
        format_args!("ready {} in the switch set-up {bound}", station.ip),
    );
    while !keeping.is_finished() && !serving.is_finished() {
        std::thread::sleep(LOOK);
        outlet.update(clock::now(), || counts().exposition("cowbird_switch"));
        match signals.next() {
            Some(Signal::Report) => outlet.write(counts).map_err(text)?,
            Some(Signal::End) => {
                let (told, ended) = oneshot::channel();
                runtime.block_on(async {
                    let _ = asks.send(SessionCommand::End(told)).await;
                    let _ = ended.await;
                });
            }
            None => {}
        }
    }
    let ended = match serving.is_finished() {
        true => runtime.block_on(serving).map_err(text).and_then(|served| served.map_err(text)),
        false => runtime.block_on(keeping).map_err(text).and_then(|kept| kept.map_err(text)),
    };
    let Tally { served, reads, writes, .. } = *told.borrow();
    events.report("end", counts(), format_args!("{served} compute nodes, {reads} reads, {writes} writes"));
    let written = outlet.write(counts).map_err(text);
    ended.and(written)
}

impl Keeper {
    fn new(engine: Engine, rack: Rack, cowbird: Cowbird, tally: watch::Sender<Tally>) -> Keeper {
        let hosts = cowbird.compute.len() as u64;
        let sets = Shares::new("sets", cowbird.instances.into(), hosts);
        let regions = Shares::new("regions", cowbird.regions.into(), hosts);
        let members = members(&rack, None);
        Keeper { engine, rack, members, cowbird, tenants: BTreeMap::new(), next: 0, sets, regions, tally }
    }

    /// Executes requests until it has to end. Errors: the session is lost.
    async fn keep(mut self, mut asked: mpsc::Receiver<SessionCommand>) -> Result<(), CtrlError> {
        let mut looks_at = Instant::now() + LOOK_AT_RINGS;
        loop {
            if Instant::now() >= looks_at {
                for number in self.engine.silent().await? {
                    self.end_silent(number);
                }
                looks_at = Instant::now() + LOOK_AT_RINGS;
            }
            match asked.try_recv() {
                Ok(SessionCommand::Add(tenant, told)) => {
                    let added = self.add(*tenant).await;
                    self.tally.send_modify(|tally| tally.refused += u64::from(added.is_err()));
                    if let Err(Ok(number)) = told.send(added) {
                        self.remove(number).await?;
                    }
                }
                Ok(SessionCommand::Remove(number)) => self.remove(number).await?,
                Ok(SessionCommand::End(told)) => {
                    while let Some(number) = self.tenants.keys().next().copied() {
                        self.remove(number).await?;
                    }
                    let _ = told.send(());
                    return Ok(());
                }
                Err(_) => {
                    if let Some(lost) = self.engine.lost(Instant::now() + Duration::from_millis(5)).await? {
                        self.fail(lost.qpn, lost.syndrome);
                    }
                }
            }
        }
    }

    /// Reports a lost queue pair to its compute node.
    fn fail(&mut self, qpn: u32, syndrome: u8) {
        let has = |first: u32, count: usize| (first..first + count as u32).contains(&qpn);
        for tenant in self.tenants.values_mut() {
            let peer = tenant.instances.iter().find_map(|one| {
                if has(one.compute.own_qpn, Phase::COMPUTE.len()) {
                    return Some("compute node");
                }
                has(one.pool.own_qpn, Phase::POOL.len()).then_some("pool")
            });
            // Only this one's: the others' leases go on.
            let Some(peer) = peer else { continue };
            if let Some(failed) = tenant.failed.take() {
                self.tally.send_modify(|tally| tally.lost += 1);
                // The caller may be gone.
                let _ = failed.send(format!("the {peer} refused a request of the switch (0x{syndrome:02x})"));
            }
        }
    }

    /// Reports to a compute node that its rings don't answer, which ends all that is served for it.
    fn end_silent(&mut self, number: u32) {
        let has = |tenant: &&mut Served| tenant.instances.iter().any(|one| one.number == number);
        if let Some(failed) = self.tenants.values_mut().find(has).and_then(|tenant| tenant.failed.take()) {
            self.tally.send_modify(|tally| tally.silent += 1);
            // The call may have ended before.
            let _ = failed.send("the compute node's adapter has given no answer for seconds".to_owned());
        }
    }

    async fn add(&mut self, tenant: Tenant) -> Result<u32, Status> {
        let (instances, shares) = self.instances(&tenant)?;
        let mut served = Served { instances: Vec::new(), failed: Some(tenant.failed), _shares: shares };
        for instance in instances {
            let done = self.engine.serve(&instance).await;
            served.instances.push(instance);
            if let Err(error) = done {
                for instance in served.instances {
                    let _ = self.engine.end(instance.number).await;
                }
                return Err(Status::unavailable(format!("the switch: {error}")));
            }
        }
        let number = self.next;
        self.next += 1;
        self.tally.send_modify(|tally| {
            tally.served += 1;
            tally.nodes += 1;
            tally.sets += served.instances.len() as u64;
        });
        self.tenants.insert(number, served);
        Ok(number)
    }

    async fn remove(&mut self, number: u32) -> Result<(), CtrlError> {
        let Some(served) = self.tenants.remove(&number) else { return Ok(()) };
        self.tally.send_modify(|tally| tally.nodes -= 1);
        for instance in &served.instances {
            let done = self.engine.end(instance.number).await?;
            self.tally.send_modify(|tally| {
                tally.sets -= 1;
                tally.reads += done.reads.saturating_sub(instance.start.reads);
                tally.writes += done.writes.saturating_sub(instance.start.writes);
            });
        }
        Ok(())
    }

    /// Instances in the switch for a compute node's sets. Errors: why they can't be served.
    fn instances(&self, tenant: &Tenant) -> Result<(Vec<Instance>, [Share<String>; 2]), Status> {
        let (host, compute) = self.connection(tenant.compute, "compute", Cowbird::is_compute)?;
        self.members.check_caller(&tenant.caller, &host.name)?;
        let (_, pool) = self.connection(tenant.pool, "pool", Cowbird::is_pool)?;
        let regions = tenant.sets.iter().map(|set| set.regions.len() as u64).sum();
        let take = |shares: &Arc<Shares<String>>, count| {
            let taken = shares.take(&host.name, count);
            taken.map_err(|full| Status::resource_exhausted(full.to_string()))
        };
        let taken = [take(&self.sets, tenant.sets.len() as u64)?, take(&self.regions, regions)?];
        let numbers = self.engine.free(tenant.sets.len()).ok_or_else(|| {
            let most = self.cowbird.instances;
            Status::resource_exhausted(format!("the switch serves {most} sets at most"))
        })?;
        let mut instances: Vec<Instance> = Vec::new();
        for (nth, ((set, red), number)) in tenant.sets.iter().zip(&tenant.reds).zip(numbers).enumerate() {
            let invalid = |why: String| Status::invalid_argument(format!("set {nth}: {why}"));
            let (ring, most) =
                (set.layout.request_bytes.max(set.layout.response_bytes), self.cowbird.message_bytes_max);
            if ring / 2 > most.into() {
                return Err(invalid(format!("rings have at most twice the longest message, {most} bytes")));
            }
            if set.address.checked_add(set.layout.bytes()).is_none() {
                return Err(invalid("it reaches beyond the last address".to_owned()));
            }
            let others = self.tenants.values().flat_map(|one| &one.instances);
            let same_node = others.filter(|one| one.compute.mac == compute.mac);
            if same_node.chain(&instances).any(|one| shares(one, set.key, set.address, set.layout.bytes())) {
                let why = "has bytes of another one that is served: each thread needs its own";
                return Err(Status::already_exists(format!("set {nth} {why}")));
            }
            let nth = nth as u32;
            let number_of = |connection: &Connection, pairs: usize| Connection {
                own_qpn: connection.own_qpn + nth * pairs as u32,
                peer_qpn: connection.peer_qpn + nth * pairs as u32,
                ..*connection
            };
            instances.push(Instance {
                number,
                compute: number_of(&compute, Phase::COMPUTE.len()),
                pool: number_of(&pool, Phase::POOL.len()),
                key: set.key,
                address: set.address,
                layout: set.layout,
                regions: set
                    .regions
                    .iter()
                    .map(|region| Pool { key: region.key, address: region.address, bytes: region.bytes })
                    .collect(),
                start: start(red).map_err(invalid)?,
            });
        }
        Ok((instances, taken))
    }

    /// A host of the rack, and queue pairs to it. Errors: MAC and IP address are not those of one host that may be this.
    fn connection(
        &self,
        (own_qpn, connection): (u32, roce::Connection),
        field: &str,
        may: impl Fn(&Cowbird, &Host) -> bool,
    ) -> Result<(&Host, Connection), Status> {
        let (mac, ip) = (connection.path.dst_mac, connection.path.dst_ip);
        let host = self.rack.hosts.iter().find(|host| host.mac == mac);
        let host = host.filter(|host| may(&self.cowbird, host)).ok_or_else(|| {
            Status::permission_denied(format!("{mac} is no host of the rack's cowbird.{field}"))
        })?;
        if host.ip != ip {
            return Err(Status::permission_denied(format!(
                "{mac} is {}, whose address is {}, not {ip}",
                host.name, host.ip
            )));
        }
        let connection = Connection {
            port: host.port,
            mac,
            ip,
            own_qpn,
            peer_qpn: connection.peer_qpn,
            psn: connection.send_psn,
            udp_port: connection.path.src_port,
        };
        Ok((host, connection))
    }
}

/// Where a set begins. Errors: an engine before has left it so that a switch can't go on.
fn start(red: &Red) -> Result<Start, String> {
    if red.read_progress.checked_add(red.write_progress) != Some(red.request_head) {
        return Err("requests were done out of order by another engine: let it end what it began".to_owned());
    }
    Ok(Start {
        reads: red.read_progress,
        writes: red.write_progress,
        response_data_tail: red.response_data_tail,
        request_data_head: red.request_data_head,
    })
}

/// Whether a set shares bytes with one that is served.
fn shares(one: &Instance, key: u32, address: u64, bytes: u64) -> bool {
    one.key == key && one.address < address + bytes && address < one.address + one.layout.bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_wire::MacAddr;
    use p4rack_wire::cowbird::Layout;

    #[test]
    fn sets_share_bytes_under_the_same_key_alone() {
        let layout = Layout { entries: 8, request_bytes: 1 << 10, response_bytes: 1 << 10 };
        let connection = Connection {
            port: 1,
            mac: MacAddr([2, 0, 0, 0, 0, 1]),
            ip: Ipv4Addr::LOCALHOST,
            own_qpn: 0x10,
            peer_qpn: 0x20,
            psn: 0,
            udp_port: 50_000,
        };
        let (address, bytes) = (1 << 20, layout.bytes());
        let one = Instance {
            number: 0,
            compute: connection,
            pool: connection,
            key: 7,
            address,
            layout,
            regions: Vec::new(),
            start: Start::default(),
        };
        for (key, at, of, expected) in [
            (7, address, bytes, true),
            (8, address, bytes, false),
            (7, address + bytes - 1, 1, true),
            (7, address + bytes, bytes, false),
            (7, address - bytes, bytes, false),
            (7, address - bytes, bytes + 1, true),
            (7, address + 8, 8, true),
            (7, address - 8, bytes + 16, true),
        ] {
            assert_eq!(shares(&one, key, at, of), expected, "{key} {at:#x} {of}");
        }
    }
}
