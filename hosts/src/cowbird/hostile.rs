//! A hostile compute node on a real link: pool and engine set it up as they do any other, then its machine has the link.

use super::node::{NodeError, ask};
use crate::roce::SetupError;
use crate::roce::setup::{Call, Connected, End, Reserved, Server, Station, numbers};
use p4rack_cowbird::Layout;
use p4rack_fabric::hostile::cowbird::{Aim, Attack, BadMachine, Config, EndlessSet, Machine, Rings};
use p4rack_fabric::roce::{self, Connection};
use p4rack_netdev::clock;
use p4rack_p4rt::p4rack::cowbird::v1::{self, ServeResponse};
use p4rack_wire::Nanos;
use p4rack_wire::roce::frame::Path;
use p4rack_wire::roce::{QPN_MAX, UDP_PORT};
use tokio::runtime::Runtime;

/// Bytes that it reserves at the pool.
pub const RESERVED_BYTES: u64 = 16 << 20;
/// Its queue pairs with the pool.
const PAIRS: u32 = 64;
/// Its sets.
const SETS: u32 = 16;
/// Queue pairs of others whose numbers it guesses, for each two hosts.
const GUESSES: usize = 64;
/// Seed of its random choices.
const SEED: u64 = 1;

/// The attacker and its target.
#[derive(Clone, Debug)]
pub struct HostileConfig {
    /// The attack.
    pub attack: Attack,
    /// Its addresses.
    pub station: Station,
    /// Those of all other hosts.
    pub others: Vec<Station>,
    /// Parameters of its adapter.
    pub adapter: roce::Config,
    /// The pool.
    pub pool: Server,
    /// The engine, if it attacks one.
    pub engine: Option<Server>,
    /// Bytes of the longest request that the engine takes, a power of two.
    pub message_bytes: u32,
    /// Rate of its link.
    pub rate_bps: u64,
    /// How far it catches up when it wakes late.
    pub catch_up: Nanos,
}

/// Why it can't begin.
#[derive(Debug, thiserror::Error)]
pub enum HostileError {
    /// Pool or engine refuse it.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The engine refuses it.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// Its machine can't be made.
    #[error(transparent)]
    Machine(#[from] BadMachine),
    /// A thread can't be started.
    #[error("starting a thread: {0}")]
    Thread(#[from] std::io::Error),
    /// The attack is on an engine, and none is named.
    #[error("{0} is an attack on an engine: name one")]
    NoEngine(Attack),
}

/// A hostile compute node. Its leases last as long as this.
#[derive(Debug)]
pub struct HostileNode {
    /// Generates its frames.
    pub machine: Machine,
    _connected: Option<Connected>,
    _served: Option<Call<ServeResponse>>,
    _reserved: Reserved,
    // The calls end before it.
    _runtime: Runtime,
}

impl HostileNode {
    /// Reserves memory and has queue pairs, or rings, as any compute node may.
    pub fn start(config: HostileConfig) -> Result<HostileNode, HostileError> {
        let HostileConfig { attack, station, adapter, pool, .. } = &config;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let mut random = numbers();
        let reserved = runtime.block_on(pool.reserve(vec![RESERVED_BYTES]))?;
        let offer = reserved.offers.first().copied();
        let (key, address) = offer.map_or((0, 0), |offer| (offer.key, offer.address));
        let mut machine = Config {
            attack: *attack,
            mac: station.mac,
            adapter: adapter.clone(),
            pool: Vec::new(),
            key,
            address,
            bytes: RESERVED_BYTES,
            engine: Vec::new(),
            rings: Rings::default(),
            others: config.guesses(&mut random),
            rate_bps: config.rate_bps,
            catch_up: config.catch_up,
        };
        let (mut connected, mut served) = (None, None);
        if attack.needs_engine() {
            let engine = config.engine.as_ref().ok_or(HostileError::NoEngine(*attack))?;
            let sets = config.sets();
            let end = End::draw(*station, &mut random);
            let asked = ask(engine, end, adapter, &reserved.token, sets.iter().map(message).collect());
            let lease = runtime.block_on(asked)?;
            let pair = |nth: u32| {
                let [own, peer] = lease.ends.map(|end| end.nth(nth));
                (own.qpn, own.connection(&peer, 0))
            };
            machine.engine = (0..lease.pairs).map(pair).collect();
            machine.rings = Rings(sets);
            served = Some(lease.call);
        } else {
            let token = Some(&reserved.token);
            let one = runtime.block_on(pool.connect_pairs(*station, adapter, token, PAIRS, &mut random))?;
            let (qpn, connection) = (one.qpn, one.connection);
            let pair =
                |nth: u32| (qpn + nth, Connection { peer_qpn: connection.peer_qpn + nth, ..connection });
            machine.pool = (0..PAIRS).map(pair).collect();
            connected = Some(one);
        }
        let machine = Machine::new(machine, SEED, clock::now())?;
        Ok(HostileNode {
            machine,
            _connected: connected,
            _served: served,
            _reserved: reserved,
            _runtime: runtime,
        })
    }
}

impl HostileConfig {
    /// Its sets, full whenever the engine looks.
    fn sets(&self) -> Vec<EndlessSet> {
        let ring = 2 * u64::from(self.message_bytes);
        let layout = Layout { entries: 1_024, request_bytes: ring, response_bytes: ring };
        let set = |nth: u32| {
            let place = (1 + nth, u64::from(1 + nth) << 32);
            EndlessSet::new(place, layout, self.attack.rings(), RESERVED_BYTES, self.message_bytes)
        };
        (0..SETS).map(set).collect()
    }

    /// Queue pairs that others may have among each other.
    fn guesses(&self, random: &mut p4rack_fabric::common::SplitMix) -> Vec<Aim> {
        let mut aims = Vec::new();
        for from in &self.others {
            for to in self.others.iter().filter(|to| *to != from) {
                for _ in 0..GUESSES {
                    let path = Path {
                        src_mac: from.mac,
                        dst_mac: to.mac,
                        src_ip: from.ip,
                        dst_ip: to.ip,
                        src_port: UDP_PORT,
                        dscp: 0,
                    };
                    let (qpn, psn) = (random.next() as u32 & QPN_MAX, random.next() as u32 & QPN_MAX);
                    aims.push(Aim { path, qpn, psn });
                }
            }
        }
        aims
    }
}

fn message(set: &EndlessSet) -> v1::Set {
    let Layout { entries, request_bytes, response_bytes } = set.layout;
    v1::Set {
        key: set.key,
        address: set.address,
        entries,
        request_bytes,
        response_bytes,
        ..v1::Set::default()
    }
}
