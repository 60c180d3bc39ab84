//! The paper's hash-index probe (§7): most records are in remote memory, some in local memory, and a thread looks up keys at
//! random. One table, one loop; only the way to a remote record differs.
//!
//! Each scheme waits without spinning, so processor time is that of work alone. RDMA's requests are made by the thread itself,
//! whose adapter is software: its time includes what a network adapter would do. Cowbird's includes loads and stores alone,
//! as the adapter that answers the engine is another thread, whose time is told beside it.

use super::node::{Node, NodeConfig, NodeError, ThreadClient};
use super::rack::{Rack, RackError};
use crate::commands::{Gone, Handle};
use crate::roce::setup::{Connected, Offer, Reserved, Station, numbers};
use crate::roce::star::FRAMES;
use crate::roce::{Loss, Port, PortError, SetupError};
use p4rack_cowbird::{Layout, PollError, PollId, Refused};
use p4rack_fabric::common::SplitMix;
use p4rack_fabric::cowbird;
use p4rack_fabric::roce::{Adapter, Completion, Config, Outcome, PairError, Regions, Request};
use p4rack_netdev::clock;
use p4rack_wire::Nanos;
use serde::Serialize;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::runtime::Runtime;

/// One record of so many is in local memory: 5 %.
const LOCAL: u64 = 20;
/// Look-ups under way: the paper's batch of asynchronous requests.
const BATCH: usize = 100;
/// Longest wait for a response.
const PATIENCE: Nanos = Nanos::from_secs(10);
/// How long a thread sleeps when Cowbird has brought nothing.
const NAP: Duration = Duration::from_micros(200);
/// Bytes of a record at most.
pub const RECORD_BYTES_MAX: u32 = 4_096;

/// A way to remote records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheme {
    /// All records are in local memory.
    Local,
    /// Cowbird with an engine on a spare host, up to 100 look-ups under way.
    CowbirdSpot,
    /// One-sided READs, up to 100 under way.
    RdmaAsync,
    /// One-sided READs, one at a time.
    RdmaSync,
}

impl Scheme {
    /// All.
    pub const ALL: [Scheme; 4] = [Scheme::Local, Scheme::CowbirdSpot, Scheme::RdmaAsync, Scheme::RdmaSync];

    /// Its name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Scheme::Local => "local memory",
            Scheme::CowbirdSpot => "Cowbird-Spot",
            Scheme::RdmaAsync => "RDMA, 100 at once",
            Scheme::RdmaSync => "RDMA, one by one",
        }
    }
}

/// What was measured.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Probes {
    /// How records were reached.
    pub scheme: Scheme,
    /// Bytes of a record.
    pub record_bytes: u32,
    /// Keys that were looked up; each record was the right one.
    pub probes: u64,
    /// A second.
    pub probes_per_s: f64,
    /// Processor time of the thread for each, kernel included.
    pub thread_cpu_ns: f64,
    /// Processor time of the compute node's adapter for each, where that is another thread.
    pub adapter_cpu_ns: Option<f64>,
    /// Processor time of the engine for each.
    pub engine_cpu_ns: Option<f64>,
    /// Processor time of the pool for each.
    pub pool_cpu_ns: Option<f64>,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum HashError {
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
    /// A record was not the one that was looked for.
    #[error("the record of key {0:#x} is another one")]
    Wrong(u64),
    /// Nothing came.
    #[error("no response for {0:?}")]
    Silence(Duration),
}

/// What is looked up, and where it is.
#[derive(Debug)]
struct Table {
    /// Keys and numbers of records: open addressing, the key 0 marks a free place.
    places: Vec<(u64, u64)>,
    records: u64,
    record_bytes: u32,
}

fn key(number: u64) -> u64 {
    // A bijection; only one number has the key 0, far beyond those in use.
    SplitMix(number).next()
}

impl Table {
    fn new(records: u64, record_bytes: u32) -> Table {
        let size = (2 * records).next_power_of_two();
        let mut table = Table { places: vec![(0, 0); size as usize], records, record_bytes };
        for number in 0..records {
            let at = table.find(key(number));
            table.places[at] = (key(number), number);
        }
        table
    }

    /// Where a key is, or would be.
    fn find(&self, key: u64) -> usize {
        let mask = self.places.len() - 1;
        let mut at = key as usize & mask;
        while self.places[at].0 != key && self.places[at].0 != 0 {
            at = (at + 1) & mask;
        }
        at
    }

    /// The records whose number `which` accepts, one behind the other.
    fn content(&self, which: impl Fn(u64) -> bool) -> Vec<u8> {
        let mut content = Vec::new();
        for number in (0..self.records).filter(|number| which(*number)) {
            let mut random = SplitMix(key(number));
            content.extend_from_slice(&key(number).to_le_bytes());
            for _ in 1..self.record_bytes / 8 {
                content.extend_from_slice(&random.next().to_le_bytes());
            }
        }
        content
    }
}

/// Whether a record is local under every scheme.
fn is_local(number: u64) -> bool {
    number.is_multiple_of(LOCAL)
}

/// Where a remote record is among these.
fn remote(number: u64) -> u64 {
    number - number / LOCAL - 1
}

/// A way to remote records: answers come in the order of requests.
trait Remote {
    /// Asks for a record by its number among the remote ones.
    fn ask(&mut self, number: u64, bytes: u32) -> Result<(), HashError>;
    /// Waits a while; hands on what has come.
    fn wait(&mut self, came: &mut dyn FnMut(&[u8])) -> Result<(), HashError>;
}

/// Looks keys up for `span`. Returns how many, in what time, and the thread's processor time.
fn look_up(
    table: &Table,
    local: &[u8],
    (remote_records, depth): (Option<&mut dyn Remote>, usize),
    span: Nanos,
) -> Result<(u64, Nanos, Nanos), HashError> {
    let (mut random, mut asked, mut probes, mut wrong) = (SplitMix(3), VecDeque::new(), 0u64, None);
    let bytes = table.record_bytes as usize;
    let mut record = [0; RECORD_BYTES_MAX as usize];
    let check = |key: u64, record: &[u8]| record.first_chunk() == Some(&key.to_le_bytes());
    let (start, before) = (clock::now(), clock::thread_cpu());
    let mut remote_records = remote_records;
    let mut last = start;
    while clock::now() < start + span || !asked.is_empty() {
        let more = if clock::now() < start + span { depth } else { 0 };
        let mut here = 0;
        while asked.len() + here < more {
            let wanted = key(random.next() % table.records);
            let (_, number) = table.places[table.find(wanted)];
            match remote_records.as_deref_mut().filter(|_| !is_local(number)) {
                Some(far) => {
                    far.ask(remote(number), table.record_bytes)?;
                    asked.push_back(wanted);
                }
                None => {
                    let place = if local.len() as u64 / u64::from(table.record_bytes) == table.records {
                        number
                    } else {
                        number / LOCAL
                    };
                    let at = place as usize * bytes;
                    record[..bytes].copy_from_slice(&local[at..at + bytes]);
                    if !check(wanted, &record) {
                        return Err(HashError::Wrong(wanted));
                    }
                    (probes, here) = (probes + 1, here + 1);
                }
            }
        }
        let Some(far) = remote_records.as_deref_mut().filter(|_| !asked.is_empty()) else { continue };
        let waiting = asked.len();
        far.wait(&mut |record| {
            let wanted = asked.pop_front();
            if !wanted.is_some_and(|wanted| check(wanted, record)) {
                wrong = wanted.or(Some(0));
            }
            probes += 1;
        })?;
        if let Some(key) = wrong {
            return Err(HashError::Wrong(key));
        }
        if asked.len() < waiting {
            last = clock::now();
        } else if clock::now() > last + PATIENCE {
            return Err(HashError::Silence(Duration::from_nanos(PATIENCE.0)));
        }
    }
    Ok((probes, clock::now() - start, clock::thread_cpu() - before))
}

/// Through rings.
struct Rings {
    client: ThreadClient,
    poll: PollId,
    record: Vec<u8>,
}

impl Remote for Rings {
    fn ask(&mut self, number: u64, bytes: u32) -> Result<(), HashError> {
        let asked = self.client.async_read(0, number * u64::from(bytes), bytes);
        let id = asked.map_err(|refused: Refused| HashError::Refused(refused.to_string()))?;
        self.client.poll_add(self.poll, id).map_err(refused_poll)
    }

    fn wait(&mut self, came: &mut dyn FnMut(&[u8])) -> Result<(), HashError> {
        let record = &mut self.record;
        let fetched = self.client.poll(self.poll, usize::MAX, |response| {
            if let Some(data) = response.data {
                data.copy_to(record);
                came(&record[..data.len()]);
            }
        });
        if fetched.map_err(refused_poll)? == 0 {
            std::thread::sleep(NAP);
        }
        Ok(())
    }
}

fn refused_poll(error: PollError) -> HashError {
    HashError::Refused(error.to_string())
}

/// Through a queue pair of the thread's own.
struct Pair {
    port: Port<Regions>,
    qpn: u32,
    offer: Offer,
}

impl Remote for Pair {
    fn ask(&mut self, number: u64, bytes: u32) -> Result<(), HashError> {
        let address = self.offer.address + number * u64::from(bytes);
        let request = Request::Read { key: self.offer.key, address, bytes };
        let asked = self.port.adapter().handle_request(self.qpn, request);
        asked.map(drop).map_err(|refused| HashError::Refused(format!("{refused:?}")))
    }

    fn wait(&mut self, came: &mut dyn FnMut(&[u8])) -> Result<(), HashError> {
        self.port.turn(Some(clock::now() + Nanos::from_millis(5)))?;
        while let Some((_, completion)) = self.port.adapter().poll_completion() {
            match completion {
                Completion::Request(_, Outcome::Read(bytes)) => came(&bytes),
                other => return Err(HashError::Refused(format!("{other:?}"))),
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

/// Measures a scheme for `seconds`, with so many records.
pub fn run(scheme: Scheme, records: u64, record_bytes: u32, seconds: f64) -> Result<Probes, HashError> {
    let span = Nanos((seconds.clamp(0.01, 60.0) * 1e9) as u64);
    let record_bytes = record_bytes.clamp(8, RECORD_BYTES_MAX).next_multiple_of(8);
    let table = Table::new(records.max(2), record_bytes);
    if scheme == Scheme::Local {
        let measured = look_up(&table, &table.content(|_| true), (None, BATCH), span)?;
        return Ok(probes(scheme, record_bytes, measured, [None; 3]));
    }
    let (local, far) = (table.content(is_local), table.content(|number| !is_local(number)));
    let rack = Rack::start(1, &config(), cowbird::Config::default(), far.len() as u64)?;
    let runtime = runtime()?;
    if scheme == Scheme::CowbirdSpot {
        let (node, mut rings) = rings(&rack, &table, far.len() as u64)?;
        fill(&runtime, &rack, far)?;
        let used = || -> Result<[Option<Nanos>; 3], HashError> {
            Ok([
                Some(node.adapter_cpu()?),
                Some(runtime.block_on(rack.spot.call(|_| clock::thread_cpu()))?),
                Some(cpu(&runtime, &rack.pool)?),
            ])
        };
        let before = used()?;
        let measured = look_up(&table, &local, (Some(&mut rings), BATCH), span)?;
        Ok(probes(scheme, record_bytes, measured, since(before, used()?)))
    } else {
        let (mut pair, _held) = pair(&rack, far.len() as u64)?;
        fill(&runtime, &rack, far)?;
        let before = cpu(&runtime, &rack.pool)?;
        let depth = if scheme == Scheme::RdmaSync { 1 } else { BATCH };
        let measured = look_up(&table, &local, (Some(&mut pair), depth), span)?;
        let after = cpu(&runtime, &rack.pool)?;
        Ok(probes(scheme, record_bytes, measured, [None, None, Some(after - before)]))
    }
}

/// Processor time of the pool's thread.
fn cpu(runtime: &Runtime, pool: &Handle<Adapter<Regions>>) -> Result<Nanos, HashError> {
    Ok(runtime.block_on(pool.call(|_| clock::thread_cpu()))?)
}

fn since(before: [Option<Nanos>; 3], after: [Option<Nanos>; 3]) -> [Option<Nanos>; 3] {
    let mut both = before.into_iter().zip(after).map(|(before, after)| Some(after? - before?));
    [(); 3].map(|()| both.next().flatten())
}

fn probes(
    scheme: Scheme,
    record_bytes: u32,
    (probes, elapsed, thread): (u64, Nanos, Nanos),
    others: [Option<Nanos>; 3],
) -> Probes {
    let each = |time: Nanos| time.0 as f64 / probes.max(1) as f64;
    let [adapter_cpu_ns, engine_cpu_ns, pool_cpu_ns] = others.map(|time| time.map(each));
    let (probes_per_s, thread_cpu_ns) = (probes as f64 / elapsed.as_secs_f64(), each(thread));
    Probes {
        scheme,
        record_bytes,
        probes,
        probes_per_s,
        thread_cpu_ns,
        adapter_cpu_ns,
        engine_cpu_ns,
        pool_cpu_ns,
    }
}

/// A compute node whose thread has rings.
fn rings(rack: &Rack, table: &Table, region_bytes: u64) -> Result<(Node, Rings), HashError> {
    let (ns, ip) = rack.compute_node(0);
    let ring = (u64::from(table.record_bytes) * 2 * BATCH as u64).next_power_of_two();
    let node = NodeConfig {
        interface: FRAMES.to_owned(),
        ip,
        adapter: config(),
        loss: Loss::default(),
        pool: Rack::pool_server(),
        engines: vec![Rack::engine_server()],
        layout: Layout { entries: 256, request_bytes: 1_024, response_bytes: ring },
        threads: 1,
        region_bytes: vec![region_bytes],
    };
    let (node, mut clients) = ns.run(|| Node::start(node))??;
    let mut client = clients.pop().ok_or_else(|| HashError::Refused("the node has no thread".into()))?;
    let poll = client.poll_create();
    Ok((node, Rings { client, poll, record: vec![0; table.record_bytes as usize] }))
}

/// What keeps a queue pair connected.
struct Held {
    _reserved: Reserved,
    _connected: Connected,
    _runtime: Runtime,
}

/// A queue pair to memory of the pool.
fn pair(rack: &Rack, region_bytes: u64) -> Result<(Pair, Held), HashError> {
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
        let offer = offer.ok_or_else(|| HashError::Refused("the pool gave no region".into()))?;
        let pair = Pair { port, qpn: connected.qpn, offer };
        Ok((pair, Held { _reserved: reserved, _connected: connected, _runtime: runtime }))
    })?
}

fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()
}

/// Puts the records into the pool's memory, whose only region is theirs.
fn fill(runtime: &Runtime, rack: &Rack, content: Vec<u8>) -> Result<(), HashError> {
    let filled = rack.pool.call(move |adapter| {
        let memory = adapter.memory_mut();
        let key = memory.keys().next();
        key.and_then(|key| memory.bytes_mut(key)).map(|bytes| bytes.copy_from_slice(&content))
    });
    runtime.block_on(filled)?.ok_or_else(|| HashError::Refused("the pool has no region".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_found_and_its_record_is_where_it_belongs() {
        let table = Table::new(101, 24);
        let (local, far) = (table.content(is_local), table.content(|number| !is_local(number)));
        assert_eq!((local.len(), far.len()), (6 * 24, 95 * 24));
        for number in 0..101 {
            let (found, place) = table.places[table.find(key(number))];
            assert_eq!((found, place), (key(number), number));
            let (content, at) =
                if is_local(number) { (&local, number / LOCAL) } else { (&far, remote(number)) };
            let record = &content[at as usize * 24..][..24];
            assert_eq!(record.first_chunk(), Some(&key(number).to_le_bytes()));
        }
        assert_eq!(table.places[table.find(key(101))].0, 0, "nobody put it there");
    }

    #[test]
    fn a_record_of_another_key_is_seen() {
        let table = Table::new(40, 8);
        let mut content = table.content(|_| true);
        let span = Nanos::from_millis(1);
        assert!(look_up(&table, &content, (None, BATCH), span).is_ok());
        content.rotate_left(8);
        assert!(matches!(look_up(&table, &content, (None, BATCH), span), Err(HashError::Wrong(_))));
    }
}
