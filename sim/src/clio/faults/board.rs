//! A board with its store, and the process whose pages all others share.

use super::plant::ClioPlant;
use p4rack_fabric::Machine as _;
use p4rack_fabric::clio::board::{
    self, Board, Grant, PhysicalMemory, Pool, Quota, Quotas, Refused, Space, View,
};
use p4rack_fabric::clio::lib::{Client, Config, Credentials, Operation, Outcome};
use p4rack_fabric::clio::token::Secret;
use p4rack_offload::{Call, Kv, KvFunction, Offload, Offloads, Step};
use p4rack_wire::Nanos;
use p4rack_wire::clio::{PAGE_SIZES, PageSize, Rights, Status};
use std::ops::Range;

/// Pages that all processes share: two with words, one with locks.
pub(super) const SHARED_PAGES: u64 = 3;
pub(super) const PAGE_BYTES: u64 = 4_096;
/// Data bytes of a packet.
pub(super) const PACKET_BYTES: u32 = 256;
/// How long boards remember, and how long a lock lasts.
pub(super) const KEEP: Nanos = Nanos::from_micros(1_200);
pub(super) const LEASE: Nanos = Nanos::from_micros(300);
/// Processes at most: of the board two, and one of each node, whose next one may have to wait until the last has ended.
const PROCESSES: u32 = 5;
/// Pages that a session's process may allocate: fewer than it asks for now and then.
const LIMIT: u64 = 3;
/// Little more than all processes can have, so that freed ones are soon used again.
const FRAMES: u32 = 26;
const STORE_PAGES: u64 = 8;
const STORE_BYTES: u64 = STORE_PAGES * PAGE_BYTES;
/// Where answers to the board's own clients go. Sessions have smaller numbers.
const OWN: usize = usize::MAX;
/// Number of the store among offloads.
pub(super) const STORE: u64 = 0;
/// Steps of a microsecond that a call of the board's own takes at most.
const STEPS_MAX: u32 = 100_000;

/// The board's memory, whose frames are zeroed unless a mistake is planted.
#[derive(Clone, Debug)]
pub(super) struct Dram {
    bytes: Vec<u8>,
    zeroes: bool,
}

impl PhysicalMemory for Dram {
    fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn at(&self, range: Range<u64>) -> &[u8] {
        self.bytes.at(range)
    }

    fn at_mut(&mut self, range: Range<u64>) -> &mut [u8] {
        self.bytes.at_mut(range)
    }

    fn zero(&mut self, range: Range<u64>) {
        if self.zeroes {
            self.bytes.zero(range);
        }
    }
}

/// A store that confirms every eighth change without making it.
struct Forgetful {
    store: Kv,
    changes: u64,
}

impl Offload for Forgetful {
    fn call(&mut self, call: &Call<'_>, view: &mut dyn View, results: &mut Vec<u8>) -> Result<Step, Status> {
        if call.function != KvFunction::Read as u8 {
            self.changes += 1;
            if self.changes.is_multiple_of(8) {
                return Ok(Step::Ended);
            }
        }
        self.store.call(call, view, results)
    }
}

/// How an operation of the board's own clients ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Done,
    Bytes(Vec<u8>),
    Address(u64),
    Held,
    Failed(Status),
}

/// Answers that have left, with the sessions that they go to.
pub(super) type Mail = Vec<(usize, Vec<u8>)>;

/// A board.
pub(super) struct BoardNode {
    pub board: Board<Dram, usize>,
    pub offloads: Offloads,
    /// How often it has started before.
    pub life: u64,
    /// Number of the last session's client.
    pub clients: u32,
    keeper: Client,
    pub keeper_space: Space,
    store_space: Space,
    /// A planted mistake: it takes no notice of ends.
    ignores_ends: bool,
    /// The shared pages' address in the keeper's space.
    pub shared: u64,
}

fn credentials(grant: Grant) -> Credentials {
    Credentials { pid: grant.space.pid, epoch: grant.space.epoch, token: grant.token }
}

fn quotas(limit: u64, shared: u64) -> Quotas {
    let mut quotas = [Quota::default(); PAGE_SIZES];
    quotas[PageSize::K4 as usize] = Quota { reserved: 0, limit: limit as u32, shared: shared as u32 };
    quotas
}

/// Parameters of all clients.
pub(super) fn client_config() -> Config {
    Config {
        mtu_bytes: PACKET_BYTES,
        read_packets_max: 4,
        memory: KEEP,
        // The slow path answers within a few steps.
        slow_timeout: Nanos::from_micros(60),
        ..Config::default()
    }
}

impl BoardNode {
    /// A board that starts with empty memory. Advances its time, and adds its messages to `mail`. Errors: it does not
    /// start.
    pub fn start(
        seed: u64,
        life: u64,
        plant: Option<ClioPlant>,
        now: &mut Nanos,
        mail: &mut Mail,
    ) -> Result<BoardNode, String> {
        let is = |other| plant == Some(other);
        let config = board::Config {
            bucket_slots: 4,
            tlb_entries: 8,
            processes_max: PROCESSES,
            data_bytes_max: PACKET_BYTES,
            calls_max: [64, 64],
            // Short now and then, as are ready frames.
            retry_entries: 192,
            retry_keep: if is(ClioPlant::ForgetsEarly) { Nanos(1) } else { KEEP },
            lock_lease: if is(ClioPlant::LongLease) { Nanos::from_millis(50) } else { LEASE },
            ..board::Config::new(vec![Pool { size: PageSize::K4, frames: FRAMES, ready: 1 }])
        };
        let start = if is(ClioPlant::SameSecret) { 0 } else { life };
        let mut secret = [0; 16];
        secret[..8].copy_from_slice(&seed.to_le_bytes());
        secret[8..].copy_from_slice(&start.to_le_bytes());
        let memory = Dram { bytes: vec![0; config.bytes() as usize], zeroes: !is(ClioPlant::NotZeroed) };
        let mut board = Board::new(config, Secret::new(secret), memory).map_err(|error| error.to_string())?;
        let begin = |refused: Refused| format!("the board's own process: {refused}");
        let [keeper, store] =
            [SHARED_PAGES, STORE_PAGES].map(|pages| board.begin(quotas(pages, 0)).map_err(begin));
        let (keeper, store) = (keeper?, store?);
        let client = |grant| Client::new(client_config(), &[credentials(grant)], 0);
        let mut node = BoardNode {
            board,
            offloads: Offloads::default(),
            life,
            clients: 0,
            keeper: client(keeper),
            keeper_space: keeper.space,
            store_space: store.space,
            ignores_ends: is(ClioPlant::DeadOwner),
            shared: 0,
        };
        let alloc = |bytes| Operation::Alloc { bytes, page_size: PageSize::K4, rights: Rights::ALL };
        node.shared = address(&node.call(alloc(SHARED_PAGES * PAGE_BYTES), now, mail)?)?;
        let keeper = std::mem::replace(&mut node.keeper, client(store));
        let at = address(&node.call(alloc(STORE_BYTES), now, mail)?)?;
        node.keeper = keeper;
        // Few buckets: chains are long.
        let kv = Kv::new(store.space, at, STORE_BYTES, 2, seed);
        let offload: Box<dyn Offload> = match is(ClioPlant::StoreForgets) {
            true => Box::new(Forgetful { store: kv, changes: 0 }),
            false => Box::new(kv),
        };
        node.offloads.add(store.space, offload);
        Ok(node)
    }

    /// Begins a process for a node, with the shared pages. Returns `None` if its place is not free yet.
    pub fn begin(&mut self, now: &mut Nanos, mail: &mut Mail) -> Result<Option<(Credentials, u64)>, String> {
        let grant = match self.board.begin(quotas(LIMIT, SHARED_PAGES)) {
            Ok(grant) => grant,
            Err(Refused::Full) => return Ok(None),
            Err(refused) => return Err(format!("a node's process: {refused}")),
        };
        let with = (grant.space.pid, grant.space.epoch);
        let bytes = SHARED_PAGES * PAGE_BYTES;
        let share = Operation::Share { address: self.shared, bytes, with, rights: Rights::ALL };
        let at = address(&self.call(share, now, mail)?)?;
        Ok(Some((credentials(grant), at)))
    }

    /// Executes an operation of the keeper. Its time passes for the board. Errors: there is no answer.
    pub fn call(
        &mut self,
        operation: Operation<'_>,
        now: &mut Nanos,
        mail: &mut Mail,
    ) -> Result<Reply, String> {
        let said = format!("{operation:?} of the board's own");
        self.keeper.submit(0, 0, 0, operation, *now).map_err(|refused| format!("{said}: {refused}"))?;
        let mut out = Vec::new();
        for _ in 0..STEPS_MAX {
            self.keeper.handle_timeout(*now);
            while self.keeper.poll_link(*now, &mut out).is_some() {
                self.board.handle_link((OWN, &out), *now, *now);
            }
            self.turn(*now, mail);
            if let Some((_, outcome)) = self.keeper.poll_completion() {
                return match outcome {
                    Outcome::Done => Ok(Reply::Done),
                    Outcome::Read(bytes) | Outcome::Results(bytes) => Ok(Reply::Bytes(bytes.to_vec())),
                    Outcome::Address(address) => Ok(Reply::Address(address)),
                    Outcome::Held(_) => Ok(Reply::Held),
                    Outcome::Refused(status) => Ok(Reply::Failed(status)),
                    Outcome::Word(_) | Outcome::Unknown => Err(format!("{said}: no answer")),
                };
            }
            *now += Nanos(1_000);
        }
        Err(format!("{said}: it never ends"))
    }

    /// Does due work, and sends waiting packets.
    pub fn turn(&mut self, now: Nanos, mail: &mut Mail) {
        self.board.handle_timeout(now);
        self.offloads.serve(&mut self.board, now);
        let mut out = Vec::new();
        while let Some(sent) = self.board.poll_link(now, &mut out) {
            match sent.to {
                OWN => self.keeper.handle_link((0, &out), now, now),
                session => mail.push((session, out.clone())),
            }
        }
    }

    /// Lets time pass until the board has nothing left to do, at most until `until`.
    pub fn rest(&mut self, now: &mut Nanos, until: Nanos, mail: &mut Mail) {
        while let Some(at) = self.board.next_call(Nanos::ZERO).filter(|at| *at <= until) {
            *now = (*now).max(at);
            self.turn(*now, mail);
        }
        *now = (*now).max(until);
    }

    /// A process has ended.
    pub fn end(&mut self, space: Space, now: Nanos) {
        if self.ignores_ends {
            return;
        }
        self.board.end(space, now);
        self.offloads.forget(space);
    }

    /// Ends the board's own processes.
    pub fn end_own(&mut self, now: Nanos) {
        self.end(self.store_space, now);
        self.end(self.keeper_space, now);
    }
}

/// The address of memory that was allocated or shared.
fn address(reply: &Reply) -> Result<u64, String> {
    match reply {
        Reply::Address(address) => Ok(*address),
        other => Err(format!("no memory of the board's own: {other:?}")),
    }
}
