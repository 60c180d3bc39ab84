//! A thread's way to remote memory: Cowbird's rings, or a queue pair of the thread's own. Many requests may be under way.

use super::node::{Node, NodeConfig, NodeError, ThreadClient};
use super::rack::RackError;
use crate::commands::Gone;
use crate::roce::setup::{Connected, Offer, Reserved, Server, Station, numbers};
use crate::roce::{Loss, Port, PortError, SetupError};
use p4rack_cowbird::{Layout, PollError, PollId, Refused, RequestId};
use p4rack_fabric::roce::{Completion, Config, Outcome, PairError, Regions, Request};
use p4rack_netdev::clock;
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

/// What a thread's end of the way is.
#[derive(Clone, Debug)]
pub enum End {
    /// Cowbird's rings, which one of these engines serves.
    Rings(Vec<Server>),
    /// A queue pair of its own.
    Pair,
}

/// Where a thread's adapter is, and where its memory.
#[derive(Clone, Debug)]
pub struct Place {
    /// Interface of the adapter.
    pub interface: String,
    /// Address of the adapter.
    pub ip: Ipv4Addr,
    /// Parameters of the adapter.
    pub adapter: Config,
    /// The pool's set-up service.
    pub pool: Server,
}

/// What a thread asks for at most.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Bytes of the region.
    pub region_bytes: u64,
    /// Reads under way.
    pub reads: UnderWay,
    /// Writes under way.
    pub writes: UnderWay,
}

/// Requests of a kind that are under way at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnderWay {
    /// How many.
    pub count: u64,
    /// Bytes of all.
    pub bytes: u64,
    /// Bytes of the longest.
    pub longest_bytes: u32,
}

impl UnderWay {
    /// So many of the same length.
    pub const fn of(count: u64, bytes: u32) -> UnderWay {
        UnderWay { count, bytes: count * bytes as u64, longest_bytes: bytes }
    }

    /// Bytes of a ring that has room for all: what does not fit before its end begins anew, and a request has at most half.
    pub fn ring_bytes(&self) -> u64 {
        let longest = u64::from(self.longest_bytes);
        (self.bytes + longest).max(2 * longest).max(1_024).next_power_of_two()
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
        asked.map(drop).map_err(|refused| RemoteError::Refused(refused.to_string()))
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

/// What keeps a thread's end connected: its memory is freed when this is dropped.
#[derive(Debug)]
pub struct Held(Lease);

#[derive(Debug)]
enum Lease {
    /// The compute node whose thread has rings.
    Node(Node),
    /// A queue pair's.
    Pair { _lease: Box<PairLease> },
}

/// What keeps a queue pair connected. The runtime keeps both calls open.
#[derive(Debug)]
struct PairLease {
    _reserved: Reserved,
    _connected: Connected,
    _runtime: Runtime,
}

impl Held {
    /// Processor time of the adapter's thread, where that is another than the one that asks.
    pub fn adapter_cpu(&self) -> Result<Option<Nanos>, Gone> {
        match &self.0 {
            Lease::Node(node) => node.adapter_cpu().map(Some),
            Lease::Pair { .. } => Ok(None),
        }
    }
}

/// Reserves memory of a pool for a thread, from the calling thread's network namespace.
pub fn open(end: End, place: Place, shape: Shape) -> Result<(Box<dyn Remote + Send>, Held), RemoteError> {
    match end {
        End::Rings(engines) => rings(engines, place, shape),
        End::Pair => pair(place, shape.region_bytes),
    }
}

/// A compute node whose thread has rings.
fn rings(
    engines: Vec<Server>,
    place: Place,
    shape: Shape,
) -> Result<(Box<dyn Remote + Send>, Held), RemoteError> {
    let layout = Layout {
        entries: (shape.reads.count + shape.writes.count + 1).next_power_of_two().max(256),
        request_bytes: shape.writes.ring_bytes(),
        response_bytes: shape.reads.ring_bytes(),
    };
    let node = NodeConfig {
        interface: place.interface,
        ip: place.ip,
        adapter: place.adapter,
        loss: Loss::default(),
        pool: place.pool,
        engines,
        layout,
        threads: 1,
        region_bytes: vec![shape.region_bytes],
    };
    let (node, mut clients) = Node::start(node)?;
    let client = clients.pop().ok_or_else(|| RemoteError::Refused("the node has no thread".into()));
    let rings = Rings::new(client?, shape.reads.longest_bytes);
    Ok((Box::new(rings), Held(Lease::Node(node))))
}

/// A queue pair to memory of the pool.
fn pair(place: Place, region_bytes: u64) -> Result<(Box<dyn Remote + Send>, Held), RemoteError> {
    let Place { interface, ip, adapter: config, pool } = place;
    let mut port = Port::open(&interface, ip, config.clone(), Regions::default(), Loss::default())?;
    let station = Station { mac: port.mac(), ip };
    // Its threads have to be in the namespace, as its connections are.
    let runtime = runtime()?;
    let (reserved, connected) = runtime.block_on(async {
        let reserved = pool.reserve(vec![region_bytes]).await?;
        let connected = pool.connect(station, &config, Some(&reserved.token), &mut numbers()).await?;
        Ok::<_, SetupError>((reserved, connected))
    })?;
    port.adapter().add_pair(connected.qpn, connected.connection)?;
    let offer = reserved.offers.first().copied();
    let offer = offer.ok_or_else(|| RemoteError::Refused("the pool gave no region".into()))?;
    let pair = Pair { port, qpn: connected.qpn, offer };
    let lease = PairLease { _reserved: reserved, _connected: connected, _runtime: runtime };
    Ok((Box::new(pair), Held(Lease::Pair { _lease: Box::new(lease) })))
}

pub(super) fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_has_room_for_all_that_is_under_way() {
        for (under_way, bytes) in [
            (UnderWay::default(), 1_024),
            (UnderWay::of(100, 8), 1_024),
            (UnderWay::of(1, 4_096), 8_192),
            (UnderWay::of(100, 512), 65_536),
            (UnderWay { count: 101, bytes: 100 * 256 + 8_192, longest_bytes: 8_192 }, 65_536),
        ] {
            assert_eq!(under_way.ring_bytes(), bytes, "{under_way:?}");
        }
    }
}
