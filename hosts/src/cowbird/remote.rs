//! A thread's way to remote memory on this machine: Cowbird's rings, or a queue pair of the thread's own. Many requests may be
//! under way. Pool, engine and thread are in namespaces of their own.

use super::node::{Node, NodeConfig, NodeError, ThreadClient};
use super::rack::{Pool, Rack, RackError};
use crate::commands::{Gone, Handle};
use crate::roce::setup::{Connected, Offer, Reserved, Server, Station, numbers};
use crate::roce::star::{FRAMES, Star};
use crate::roce::{Loss, Port, PortError, SetupError};
use p4rack_cowbird::{Layout, PollError, PollId, Refused, RequestId};
use p4rack_fabric::cowbird;
use p4rack_fabric::roce::{Adapter, Completion, Config, Outcome, PairError, Regions, Request};
use p4rack_netdev::{NetNs, clock};
use p4rack_wire::Nanos;
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::runtime::Runtime;

/// How long a thread sleeps when Cowbird has brought nothing.
const NAP: Duration = Duration::from_micros(200);
/// How long a thread waits for a frame.
const WAIT: Nanos = Nanos::from_millis(5);

/// Why remote memory can't be used.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The rack did not start.
    #[error(transparent)]
    Rack(#[from] RackError),
    /// The compute node did not start.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// An adapter failed.
    #[error(transparent)]
    Port(#[from] PortError),
    /// A set-up failed.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A queue pair was refused.
    #[error(transparent)]
    Pair(#[from] PairError),
    /// A thread has ended.
    #[error(transparent)]
    Gone(#[from] Gone),
    /// A namespace can't be entered.
    #[error(transparent)]
    Device(#[from] p4rack_netdev::Error),
    /// The system refused something.
    #[error(transparent)]
    System(#[from] std::io::Error),
    /// A request was refused.
    #[error("a request was refused: {0}")]
    Refused(String),
}

/// What came of a request: reads in the order of reads, writes in the order of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done<'a> {
    /// What was read.
    Read(&'a [u8]),
    /// A write is in remote memory.
    Written,
}

/// Remote memory: one region, whose bytes count from 0.
pub trait Remote {
    /// Asks for bytes.
    fn read(&mut self, at: u64, bytes: u32) -> Result<(), RemoteError>;
    /// Writes bytes; they are copied.
    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), RemoteError>;
    /// Hands on what has come. If nothing has, waits a while.
    fn wait(&mut self, came: &mut dyn FnMut(Done<'_>)) -> Result<(), RemoteError>;
}

/// How a thread reaches remote memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By Cowbird, with an engine on a spare host.
    CowbirdSpot,
    /// By a queue pair of its own.
    Rdma,
}

/// What a thread asks for at most.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Bytes of the region.
    pub region_bytes: u64,
    /// Reads under way, and bytes of each.
    pub reads: (u64, u32),
    /// Writes under way, and bytes of each.
    pub writes: (u64, u32),
}

/// Processor time of the threads that serve a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Of the compute node's adapter, where that is another thread.
    pub adapter: Option<Nanos>,
    /// Of the engine.
    pub engine: Option<Nanos>,
    /// Of the pool.
    pub pool: Option<Nanos>,
}

impl Used {
    /// Since an earlier reading.
    pub fn since(self, before: Used) -> Used {
        let since = |after: Option<Nanos>, before: Option<Nanos>| Some(after? - before?);
        Used {
            adapter: since(self.adapter, before.adapter),
            engine: since(self.engine, before.engine),
            pool: since(self.pool, before.pool),
        }
    }
}

/// Remote memory and everything that serves it.
pub struct Setting {
    end: Box<dyn Remote + Send>,
    meter: Meter,
}

/// An engine in a switch, which somebody else runs.
pub struct Switch {
    /// Hosts on it: the first is the pool, the second the compute node.
    pub star: Star,
    /// The engine's set-up service.
    pub engine: Server,
    /// Processor time that the switch has used. The switch ends when this is dropped.
    pub cpu: Box<dyn Fn() -> std::io::Result<Nanos>>,
}

/// Where the pool is, and the engine.
enum Base {
    Rack(Rack),
    /// The switch ends before its links.
    Switch(Box<dyn Fn() -> std::io::Result<Nanos>>, Pool),
}

impl Base {
    fn pool(&self) -> &Handle<Adapter<Regions>> {
        match self {
            Base::Rack(rack) => &rack.pool,
            Base::Switch(_, pool) => &pool.pool,
        }
    }
}

/// What serves a thread's end: it ends when this is dropped.
pub struct Meter {
    /// The compute node, with Cowbird.
    node: Option<Node>,
    _held: Option<Held>,
    runtime: Runtime,
    // Last: who uses it ends first.
    base: Base,
}

impl Setting {
    /// Starts pool, engine and the thread's end.
    pub fn start(way: Way, shape: Shape) -> Result<Setting, RemoteError> {
        let rack = Rack::start(1, &config(), cowbird::Config::default(), shape.region_bytes)?;
        let runtime = runtime()?;
        let (end, node, held): (Box<dyn Remote + Send>, _, _) = match way {
            Way::CowbirdSpot => {
                let (node, rings) = rings(rack.compute_node(0), config(), Rack::engine_server(), shape)?;
                (Box::new(rings), Some(node), None)
            }
            Way::Rdma => {
                let (pair, held) = pair(&rack, shape.region_bytes)?;
                (Box::new(pair), None, Some(held))
            }
        };
        Ok(Setting { end, meter: Meter { node, _held: held, runtime, base: Base::Rack(rack) } })
    }

    /// Starts a pool and the thread's end beside an engine in a switch.
    pub fn in_switch(switch: Switch, shape: Shape) -> Result<Setting, RemoteError> {
        // As far as a switch goes that has its defaults.
        let config = Config { reads_max: Config::default().reads_max, icrc_verified: false, ..config() };
        let Switch { star, engine, cpu } = switch;
        let pool = Pool::start(star, &config, shape.region_bytes)?;
        let (node, rings) = rings((pool.star.host(1), Star::ip(1)), config, engine, shape)?;
        let (node, base) = (Some(node), Base::Switch(cpu, pool));
        Ok(Setting { end: Box::new(rings), meter: Meter { node, _held: None, runtime: runtime()?, base } })
    }

    /// Fills the region's first bytes directly.
    pub fn fill(&self, content: Vec<u8>) -> Result<(), RemoteError> {
        let filled = self.meter.base.pool().call(move |adapter| {
            let memory = adapter.memory_mut();
            let key = memory.keys().next();
            let bytes = key.and_then(|key| memory.bytes_mut(key));
            let bytes = bytes.and_then(|all| all.get_mut(..content.len()));
            bytes.map(|bytes| bytes.copy_from_slice(&content))
        });
        let filled = self.meter.runtime.block_on(filled)?;
        filled.ok_or_else(|| RemoteError::Refused("the pool has no region, or a smaller one".into()))
    }

    /// The thread's end, and what serves it.
    pub fn split(self) -> (Box<dyn Remote + Send>, Meter) {
        (self.end, self.meter)
    }
}

impl Meter {
    /// Processor time used so far.
    pub fn used(&self) -> Result<Used, RemoteError> {
        let pool = Some(self.runtime.block_on(self.base.pool().call(|_| clock::thread_cpu()))?);
        let Some(node) = &self.node else { return Ok(Used { pool, ..Used::default() }) };
        let engine = match &self.base {
            Base::Rack(rack) => self.runtime.block_on(rack.spot.call(|_| clock::thread_cpu()))?,
            Base::Switch(cpu, _) => cpu()?,
        };
        Ok(Used { adapter: Some(node.adapter_cpu()?), engine: Some(engine), pool })
    }
}

/// Cowbird's rings as a way to the first region of a compute node.
pub struct Rings {
    client: ThreadClient,
    poll: PollId,
    buffer: Vec<u8>,
}

impl Rings {
    /// For reads of that many bytes at most.
    pub fn new(mut client: ThreadClient, read_bytes_max: u32) -> Rings {
        let poll = client.poll_create();
        Rings { client, poll, buffer: vec![0; read_bytes_max as usize] }
    }

    fn asked(&mut self, id: Result<RequestId, Refused>) -> Result<(), RemoteError> {
        let id = id.map_err(|refused| RemoteError::Refused(refused.to_string()))?;
        self.client.poll_add(self.poll, id).map_err(refused_poll)
    }
}

impl Remote for Rings {
    fn read(&mut self, at: u64, bytes: u32) -> Result<(), RemoteError> {
        let id = self.client.async_read(0, at, bytes);
        self.asked(id)
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), RemoteError> {
        let id = self.client.async_write(0, bytes, at);
        self.asked(id)
    }

    fn wait(&mut self, came: &mut dyn FnMut(Done<'_>)) -> Result<(), RemoteError> {
        let buffer = &mut self.buffer;
        let fetched = self.client.poll(self.poll, usize::MAX, |response| match response.data {
            Some(data) => {
                data.copy_to(buffer);
                came(Done::Read(&buffer[..data.len()]));
            }
            None => came(Done::Written),
        });
        if fetched.map_err(refused_poll)? == 0 {
            std::thread::sleep(NAP);
        }
        Ok(())
    }
}

fn refused_poll(error: PollError) -> RemoteError {
    RemoteError::Refused(error.to_string())
}

/// A queue pair of the thread's own.
struct Pair {
    port: Port<Regions>,
    qpn: u32,
    offer: Offer,
}

impl Pair {
    fn ask(&mut self, request: Request) -> Result<(), RemoteError> {
        let asked = self.port.adapter().handle_request(self.qpn, request);
        asked.map(drop).map_err(|refused| RemoteError::Refused(format!("{refused:?}")))
    }
}

impl Remote for Pair {
    fn read(&mut self, at: u64, bytes: u32) -> Result<(), RemoteError> {
        self.ask(Request::Read { key: self.offer.key, address: self.offer.address + at, bytes })
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), RemoteError> {
        let (key, address, bytes) = (self.offer.key, self.offer.address + at, bytes.to_vec());
        self.ask(Request::Write { key, address, bytes, immediate: None })
    }

    fn wait(&mut self, came: &mut dyn FnMut(Done<'_>)) -> Result<(), RemoteError> {
        self.port.turn(Some(clock::now() + WAIT))?;
        while let Some((_, completion)) = self.port.adapter().poll_completion() {
            match completion {
                Completion::Request(_, Outcome::Read(bytes)) => came(Done::Read(&bytes)),
                Completion::Request(_, Outcome::Done) => came(Done::Written),
                other => return Err(RemoteError::Refused(format!("{other:?}"))),
            }
        }
        Ok(())
    }
}

fn config() -> Config {
    Config {
        requests_max: 512,
        in_flight_max: 256,
        reads_max: 128,
        timeout: Nanos::from_millis(50),
        ..Config::default()
    }
}

/// A compute node whose thread has rings.
fn rings(
    (ns, ip): (&NetNs, Ipv4Addr),
    adapter: Config,
    engine: Server,
    shape: Shape,
) -> Result<(Node, Rings), RemoteError> {
    // A request has at most half of a ring, and what does not fit before its end begins anew.
    let ring =
        |(count, bytes): (u64, u32)| (u64::from(bytes) * 2 * count.max(2)).next_power_of_two().max(1_024);
    let entries = (shape.reads.0 + shape.writes.0 + 1).next_power_of_two().max(256);
    let layout = Layout { entries, request_bytes: ring(shape.writes), response_bytes: ring(shape.reads) };
    let node = NodeConfig {
        interface: FRAMES.to_owned(),
        ip,
        adapter,
        loss: Loss::default(),
        pool: Pool::server(),
        engines: vec![engine],
        layout,
        threads: 1,
        region_bytes: vec![shape.region_bytes],
    };
    let (node, mut clients) = ns.run(|| Node::start(node))??;
    let client = clients.pop().ok_or_else(|| RemoteError::Refused("the node has no thread".into()));
    Ok((node, Rings::new(client?, shape.reads.1)))
}

/// What keeps a queue pair connected.
#[derive(Debug)]
struct Held {
    _reserved: Reserved,
    _connected: Connected,
    _runtime: Runtime,
}

/// A queue pair to memory of the pool.
fn pair(rack: &Rack, region_bytes: u64) -> Result<(Pair, Held), RemoteError> {
    let (ns, ip) = rack.compute_node(0);
    // The runtime's threads have to be in the namespace, as its connections are.
    ns.run(|| {
        let mut port = Port::open(FRAMES, config(), Regions::default(), Loss::default())?;
        let station = Station { mac: port.mac(), ip };
        let runtime = runtime()?;
        let (reserved, connected) = runtime.block_on(async {
            let server = Rack::pool_server();
            let reserved = server.reserve(vec![region_bytes]).await?;
            let (config, token) = (config(), Some(&reserved.token));
            let connected = server.connect(station, &config, token, &mut numbers()).await?;
            Ok::<_, SetupError>((reserved, connected))
        })?;
        port.adapter().add_pair(connected.qpn, connected.connection)?;
        let offer = reserved.offers.first().copied();
        let offer = offer.ok_or_else(|| RemoteError::Refused("the pool gave no region".into()))?;
        let pair = Pair { port, qpn: connected.qpn, offer };
        Ok((pair, Held { _reserved: reserved, _connected: connected, _runtime: runtime }))
    })?
}

fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()
}
