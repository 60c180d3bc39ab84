//! A compute node: the rings of its threads behind an adapter, its reservation at the pool, and an engine that serves it.

use crate::commands::{Gone, Handle};
use crate::roce::setup::{
    Call, End, PAIRS_MAX, Reserved, Server, Station, Token, add_pairs, numbers, pairs_of, remove_pairs,
};
use crate::roce::{Loss, RocePort, RocePortError, SetupError};
use p4rack_cowbird::{Area, BadSet, Client, Layout, words};
use p4rack_fabric::common::SplitMix;
use p4rack_fabric::roce::{Adapter, Config, PairError};
use p4rack_netdev::clock;
use p4rack_p4rt::p4rack::cowbird::v1::cowbird_client::CowbirdClient;
use p4rack_p4rt::p4rack::cowbird::v1::{self, ServeRequest, ServeResponse};
use p4rack_wire::Nanos;
use p4rack_wire::cowbird::{RED_AT, Red};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// Protection domain of all sets: the engine reaches each of them.
const DOMAIN: u32 = 0;
/// Sets begin at multiples of it.
const ALIGNMENT: u64 = 4_096;
/// Wait after an engine was lost or refused; it doubles each time.
const RETRY_MIN: Duration = Duration::from_millis(10);
/// Longest wait.
const RETRY_MAX: Duration = Duration::from_secs(1);
/// Interval at which the adapter's thread checks whether to stop.
const LOOK: Nanos = Nanos::from_millis(50);

/// A thread's client, with memory of this process.
pub type ThreadClient = Client<Arc<[AtomicU64]>>;

/// Configuration of a compute node.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Interface of its adapter.
    pub interface: String,
    /// Address of its adapter.
    pub ip: Ipv4Addr,
    /// Parameters of its adapter.
    pub adapter: Config,
    /// Frames lost on purpose.
    pub loss: Loss,
    /// Where memory is reserved.
    pub pool: Server,
    /// Engines that know the pool: the first that serves, then the next when it is lost.
    pub engines: Vec<Server>,
    /// Sizes of each thread's rings.
    pub layout: Layout,
    /// Threads.
    pub threads: usize,
    /// Bytes of each remote region; all threads reach all regions.
    pub region_bytes: Vec<u64>,
}

/// Why a compute node did not start.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The adapter did not start, or ended.
    #[error(transparent)]
    Port(#[from] RocePortError),
    /// Pool or engine can't be had.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The rings make no sense.
    #[error("rings: {0}")]
    Rings(BadSet),
    /// The adapter refuses the engine's connection.
    #[error(transparent)]
    Pair(#[from] PairError),
    /// The adapter's thread has ended.
    #[error(transparent)]
    Gone(#[from] Gone),
    /// No engine is named.
    #[error("no engine is named, and none serves")]
    NoEngine,
    /// A thread can't be started.
    #[error("starting a thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// State of a compute node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// The engine with this address serves its threads.
    Served(String),
    /// No engine serves it, for this reason. Requests wait until one does again.
    Unserved(String),
    /// The remote memory is gone, for this reason.
    Lost(String),
}

/// A compute node. Its remote memory is freed when this is dropped.
#[derive(Debug)]
pub struct CowbirdNode {
    runtime: Option<Runtime>,
    state: watch::Receiver<NodeState>,
    served: Arc<AtomicU64>,
    adapter: Handle<Adapter<Area>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), RocePortError>>>,
}

impl CowbirdNode {
    /// Opens the interface, reserves memory and finds an engine. Returns a client for each thread.
    pub fn start(config: NodeConfig) -> Result<(CowbirdNode, Vec<ThreadClient>), NodeError> {
        config.layout.check().map_err(|why| NodeError::Rings(BadSet::Layout(why)))?;
        let (mut random, mut area) = (numbers(), Area::default());
        let (mut sets, mut clients): (Vec<ThreadSet>, _) = (Vec::new(), Vec::new());
        let mut address = ALIGNMENT;
        while sets.len() < config.threads {
            let words: Arc<[AtomicU64]> = (0..config.layout.bytes() / 8).map(|_| AtomicU64::new(0)).collect();
            let key = random.next() as u32;
            // Otherwise the key is taken: the next one will do.
            if area.offer(DOMAIN, key, address, words.clone()) {
                sets.push(ThreadSet { key, address, layout: config.layout, words: words.clone() });
                let client = Client::new(words, config.layout, config.region_bytes.clone());
                clients.push(client.map_err(NodeError::Rings)?);
                address += config.layout.bytes().next_multiple_of(ALIGNMENT);
            }
        }
        let port = RocePort::open(&config.interface, config.ip, config.adapter.clone(), area, config.loss)?;
        let station = Station { mac: port.mac(), ip: config.ip };
        let adapter = port.handle();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let (over, served) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let ending = over.clone();
        let thread =
            std::thread::Builder::new().name("compute-node".into()).spawn(move || respond(port, &ending))?;
        let (told, state) = watch::channel(NodeState::Unserved("no engine was asked yet".into()));
        // From here on, an error ends the thread.
        let mut node = CowbirdNode {
            runtime: None,
            state,
            served: served.clone(),
            adapter: adapter.clone(),
            over,
            thread: Some(thread),
        };
        let reserved = runtime.block_on(config.pool.reserve(config.region_bytes.clone()))?;
        let NodeConfig { adapter: config, engines, .. } = config;
        let mut keeper =
            Keeper { adapter, station, config, engines, sets, reserved, random, told, served, turn: 0 };
        let lease = runtime.block_on(keeper.first())?;
        runtime.spawn(keeper.keep(lease));
        node.runtime = Some(runtime);
        Ok((node, clients))
    }

    /// Its current state.
    pub fn state(&self) -> NodeState {
        self.state.borrow().clone()
    }

    /// Processor time of its adapter's thread.
    pub fn adapter_cpu(&self) -> Result<Nanos, Gone> {
        let runtime = self.runtime.as_ref().ok_or(Gone)?;
        runtime.block_on(self.adapter.call(|_| clock::thread_cpu()))
    }

    /// Number of times an engine began to serve it.
    pub fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }
}

impl Drop for CowbirdNode {
    fn drop(&mut self) {
        // The leases first, so that no peer sends requests to a removed adapter.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_millis(100));
        }
        self.over.store(true, Ordering::Relaxed);
        if let Some(Ok(Err(error))) = self.thread.take().map(JoinHandle::join) {
            tracing::warn!(%error, "the compute node's adapter had ended");
        }
    }
}

/// Answers the engine until the node is dropped.
fn respond(mut port: RocePort<Area>, over: &AtomicBool) -> Result<(), RocePortError> {
    while !over.load(Ordering::Relaxed) {
        port.turn(Some(clock::now() + LOOK))?;
        while port.adapter().poll_completion().is_some() {}
    }
    Ok(())
}

/// The rings of a thread.
struct ThreadSet {
    key: u32,
    address: u64,
    layout: Layout,
    words: Arc<[AtomicU64]>,
}

impl ThreadSet {
    /// The set as an engine needs it; no other engine may write its red block at that time.
    fn message(&self) -> v1::Set {
        let mut block = [0; Red::BYTES];
        let read = words::read(&self.words, RED_AT as usize, &mut block);
        let red = read.and_then(|()| Red::parse(&block).ok());
        let Layout { entries, request_bytes, response_bytes } = self.layout;
        let set = v1::Set {
            key: self.key,
            address: self.address,
            entries,
            request_bytes,
            response_bytes,
            ..v1::Set::default()
        };
        match red {
            Some(red) => v1::Set {
                request_head: red.request_head,
                request_data_head: red.request_data_head,
                response_data_tail: red.response_data_tail,
                write_progress: red.write_progress,
                read_progress: red.read_progress,
                refusal: red.refusal,
                ..set
            },
            None => set,
        }
    }
}

/// Sees to it that an engine serves the node.
struct Keeper {
    adapter: Handle<Adapter<Area>>,
    station: Station,
    config: Config,
    engines: Vec<Server>,
    sets: Vec<ThreadSet>,
    reserved: Reserved,
    random: SplitMix,
    told: watch::Sender<NodeState>,
    served: Arc<AtomicU64>,
    /// The engine to ask next.
    turn: usize,
}

/// An engine serves a node as long as the call is open.
pub(super) struct Lease {
    pub(super) call: Call<ServeResponse>,
    pub(super) ends: [End; 2],
    pub(super) pairs: u32,
}

/// Asks an engine to serve sets of a node whose adapter is at `end`.
pub(super) async fn ask(
    server: &Server,
    end: End,
    config: &Config,
    token: &Token,
    sets: Vec<v1::Set>,
) -> Result<Lease, SetupError> {
    let request = ServeRequest {
        end: Some(end.message()),
        mtu_bytes: config.mtu.bytes(),
        reads_max: config.reads_max as u32,
        token: token.bytes().to_vec(),
        sets,
        pairs_max: PAIRS_MAX,
    };
    let mut client = CowbirdClient::new(server.channel().await?);
    let (answer, call) = server.answer(client.serve(request).await).await?;
    let peer = End::of(answer.end.as_ref()).map_err(|reason| server.nonsense(reason))?;
    let pairs = pairs_of("pairs", answer.pairs).map_err(|reason| server.nonsense(reason))?;
    Ok(Lease { call, ends: [end, peer], pairs })
}

impl Keeper {
    /// Asks each engine once. Errors: the last one's answer.
    async fn first(&mut self) -> Result<Lease, NodeError> {
        let mut last = NodeError::NoEngine;
        for _ in 0..self.engines.len() {
            match self.serve().await {
                Ok(lease) => return Ok(lease),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Asks the next engine.
    async fn serve(&mut self) -> Result<Lease, NodeError> {
        let server = &self.engines[self.turn % self.engines.len()];
        self.turn += 1;
        let end = End::draw(self.station, &mut self.random);
        let sets = self.sets.iter().map(ThreadSet::message).collect();
        let lease = ask(server, end, &self.config, &self.reserved.token, sets).await?;
        let Lease { ends, pairs, .. } = lease;
        self.adapter.call(move |adapter| add_pairs(adapter, &ends, pairs, DOMAIN)).await??;
        self.served.fetch_add(1, Ordering::Relaxed);
        self.told.send_replace(NodeState::Served(server.addr.clone()));
        Ok(lease)
    }

    /// Goes to the next engine when one is lost, until the memory is.
    async fn keep(mut self, lease: Lease) {
        let (mut lease, mut wait) = (Some(lease), RETRY_MIN);
        let lost = loop {
            if let Some(Lease { mut call, ends, pairs }) = lease.take() {
                let why = tokio::select! {
                    why = call.ended() => why,
                    why = self.reserved.ended() => break format!("the pool is gone: {why}"),
                };
                // Nothing of this engine is to arrive while the next one serves.
                let removed =
                    self.adapter.call(move |adapter| remove_pairs(adapter, &ends, pairs, DOMAIN)).await;
                if let Err(gone) = removed {
                    break gone.to_string();
                }
                tracing::info!(why, "the engine is lost");
                self.told.send_replace(NodeState::Unserved(why));
                wait = RETRY_MIN;
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                why = self.reserved.ended() => break format!("the pool is gone: {why}"),
            }
            match self.serve().await {
                Ok(new) => lease = Some(new),
                Err(NodeError::Gone(gone)) => break gone.to_string(),
                Err(error) => {
                    self.told.send_replace(NodeState::Unserved(error.to_string()));
                    wait = (2 * wait).min(RETRY_MAX);
                }
            }
        };
        self.told.send_replace(NodeState::Lost(lost));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_handed_on_with_all_that_its_red_block_says() {
        let layout = Layout { entries: 64, request_bytes: 4_096, response_bytes: 4_096 };
        let words: Arc<[AtomicU64]> = (0..layout.bytes() / 8).map(|_| AtomicU64::new(0)).collect();
        let red = Red {
            request_head: 9,
            request_data_head: 64,
            response_data_tail: 128,
            write_progress: 4,
            read_progress: 5,
            refusal: 3,
        };
        let mut block = [0; Red::BYTES];
        red.emit(&mut block);
        words::write(&words, RED_AT as usize, &block).unwrap();
        let message = ThreadSet { key: 7, address: 4_096, layout, words }.message();
        let said = (message.request_head, message.request_data_head, message.response_data_tail);
        assert_eq!(said, (9, 64, 128));
        assert_eq!((message.write_progress, message.read_progress, message.refusal), (4, 5, 3));
    }
}
