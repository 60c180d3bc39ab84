//! Clients, boards and a network between them, in virtual time.

use crate::clio_lib::board::{Board, Moods};
use p4rack_fabric::Machine as _;
use p4rack_fabric::clio::lib::{Client, Config, Credentials, Operation, Outcome, Refused};
use p4rack_fabric::common::SplitMix;
use p4rack_wire::Nanos;
use std::collections::BTreeMap;

/// The network's faults, in thousandths of packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub lost: u64,
    pub copied: u64,
    pub damaged: u64,
    /// Beyond TIMEOUT.
    pub delayed: u64,
}

/// Delay of a way, and how much it varies: packets pass each other.
const DELAY: Nanos = Nanos(800);
const JITTER_NS: u64 = 700;
/// Delay of packets that are late.
const LATE: Nanos = Nanos(7_000);

/// Changes a packet on its way, to plant a mistake.
pub type Tamper = fn(bytes: &mut Vec<u8>, to_board: bool);

/// A board: the model, or the real one.
pub trait Node {
    fn credentials(&self) -> Credentials;
    /// A packet of a client has come.
    fn handle(&mut self, client: usize, bytes: &[u8], now: Nanos);
    /// The next answer, with its client.
    fn poll(&mut self, now: Nanos) -> Option<(usize, Vec<u8>)>;
    fn next_call(&self) -> Option<Nanos>;
    fn handle_timeout(&mut self, now: Nanos);
    /// Allocates pages of 4 KB. Its time may pass.
    fn allocate(&mut self, pages: u32, now: &mut Nanos) -> u64;
    /// A word of memory.
    fn look(&mut self, address: u64, now: &mut Nanos) -> u64;
    /// Answers that repeated earlier executions, and NACKs.
    fn counts(&self) -> [u64; 2];
}

#[derive(Clone, Copy, Debug)]
struct Route {
    client: usize,
    board: usize,
    to_board: bool,
}

/// How a test's operation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    Done,
    Read(Vec<u8>),
    Word(u64),
    Address(u64),
    Held(u64),
    Refused(p4rack_wire::clio::Status),
    Unknown,
}

pub struct World<B = Board> {
    pub clients: Vec<Client>,
    pub boards: Vec<B>,
    pub now: Nanos,
    pub faults: Faults,
    pub random: SplitMix,
    /// Rate of each board's link, on which packets to it queue; 0: no queue.
    pub board_bps: u64,
    board_free: Vec<Nanos>,
    /// Longest queue before a board.
    pub queue_max: Nanos,
    pub tamper: Option<Tamper>,
    /// The board that is dead: no packet to it or of it arrives.
    pub dead: Option<usize>,
    mail: BTreeMap<(Nanos, u64), (Route, Vec<u8>)>,
    posted: u64,
}

/// The parameters of these tests: TIMEOUT is 8 µs, boards remember for 24.
pub fn config() -> Config {
    let us = Nanos::from_micros;
    Config {
        threads: 4,
        timeout: us(8),
        timeout_max: us(8),
        memory: us(24),
        slow_timeout: us(8),
        mtu_bytes: 512,
        read_packets_max: 4,
        ..Config::default()
    }
}

impl World {
    /// A world of models.
    pub fn new(config: &Config, clients: usize, boards: usize, moods: Moods, seed: u64) -> World {
        let mut random = SplitMix(seed);
        let board = |nth| Board::new(nth, config.mtu_bytes, config.memory, moods, random.next());
        World::of(config, clients, (0..boards).map(board).collect(), seed)
    }
}

impl<B: Node> World<B> {
    /// A world of these boards.
    pub fn of(config: &Config, clients: usize, boards: Vec<B>, seed: u64) -> World<B> {
        let all: Vec<_> = boards.iter().map(Node::credentials).collect();
        let client = |nth: usize| {
            let config = Config { first_thread: 100 * nth as u16, ..config.clone() };
            Client::new(config, &all, nth as u32)
        };
        World {
            clients: (0..clients).map(client).collect(),
            now: Nanos::ZERO,
            faults: Faults::default(),
            random: SplitMix(seed),
            board_bps: 0,
            board_free: vec![Nanos::ZERO; boards.len()],
            boards,
            queue_max: Nanos::ZERO,
            tamper: None,
            dead: None,
            mail: BTreeMap::new(),
            posted: 0,
        }
    }

    pub fn chance(&mut self, of: u64) -> bool {
        self.random.next() % 1_000 < of
    }

    pub fn submit(
        &mut self,
        client: usize,
        thread: u16,
        tag: u64,
        operation: Operation<'_>,
    ) -> Result<(), Refused> {
        self.clients[client].submit(thread, 0, tag, operation, self.now)
    }

    fn post(&mut self, route: Route, mut bytes: Vec<u8>) {
        if let Some(tamper) = self.tamper {
            tamper(&mut bytes, route.to_board);
        }
        if self.chance(self.faults.lost) || self.dead == Some(route.board) {
            return;
        }
        let copies = 1 + u64::from(self.chance(self.faults.copied));
        for _ in 0..copies {
            let mut bytes = bytes.clone();
            if self.chance(self.faults.damaged) {
                let bit = self.random.next() as usize % (8 * bytes.len());
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            let late = if self.chance(self.faults.delayed) { LATE } else { Nanos::ZERO };
            let mut at = self.now + DELAY + Nanos(self.random.next() % JITTER_NS) + late;
            if route.to_board && self.board_bps > 0 {
                let start = at.max(self.board_free[route.board]);
                self.queue_max = self.queue_max.max(start - at);
                at = start + Nanos::on_wire(bytes.len() as u64 + 66, self.board_bps);
                self.board_free[route.board] = at;
            }
            self.posted += 1;
            self.mail.insert((at, self.posted), (route, bytes));
        }
    }

    /// Sends the packets of boards and clients, and delivers results: client, tag and end.
    fn turn(&mut self, ended: &mut dyn FnMut(usize, u64, Ended)) {
        for board in 0..self.boards.len() {
            if self.boards[board].next_call().is_some_and(|at| at <= self.now) {
                self.boards[board].handle_timeout(self.now);
            }
            while let Some((client, answer)) = self.boards[board].poll(self.now) {
                self.post(Route { client, board, to_board: false }, answer);
            }
        }
        let mut out = Vec::new();
        for client in 0..self.clients.len() {
            self.clients[client].handle_timeout(self.now);
            while let Some(board) = self.clients[client].poll_link(self.now, &mut out) {
                let board = usize::from(board);
                self.post(Route { client, board, to_board: true }, out.clone());
            }
            while let Some((tag, outcome)) = self.clients[client].poll_completion() {
                ended(client, tag, own(outcome));
            }
        }
    }

    /// Goes on to the next event. Returns whether there was one.
    pub fn step(&mut self, ended: &mut dyn FnMut(usize, u64, Ended)) -> bool {
        self.turn(ended);
        let mail = self.mail.keys().next().map(|key| key.0);
        let calls = self.clients.iter().filter_map(|client| client.next_call(Nanos::ZERO));
        let steps = self.boards.iter().filter_map(Node::next_call);
        let Some(next) = calls.chain(steps).chain(mail).min() else { return false };
        self.now = self.now.max(next);
        while let Some(entry) = self.mail.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (Route { client, board, to_board }, bytes) = entry.remove();
            if to_board {
                self.boards[board].handle(client, &bytes, self.now);
            } else {
                self.clients[client].handle_link((board as u16, &bytes), self.now, self.now);
            }
        }
        self.turn(ended);
        true
    }

    /// Runs until nothing is left to do.
    pub fn finish(&mut self) -> Vec<(usize, u64, Ended)> {
        let mut all = Vec::new();
        let limit = self.now + Nanos::from_secs(1);
        while self.step(&mut |client, tag, end| all.push((client, tag, end))) {
            assert!(self.now < limit, "it does not come to rest");
        }
        for client in &self.clients {
            for board in 0..self.boards.len() as u16 {
                assert_eq!(client.under_way(board), (0, 0), "the windows are empty at rest");
            }
        }
        all
    }
}

fn own(outcome: Outcome<'_>) -> Ended {
    match outcome {
        Outcome::Done => Ended::Done,
        Outcome::Read(bytes) => Ended::Read(bytes.to_vec()),
        Outcome::Word(word) => Ended::Word(word),
        Outcome::Address(address) => Ended::Address(address),
        Outcome::Results(bytes) => Ended::Read(bytes.to_vec()),
        Outcome::Held(owner) => Ended::Held(owner),
        Outcome::Refused(status) => Ended::Refused(status),
        Outcome::Unknown => Ended::Unknown,
    }
}
