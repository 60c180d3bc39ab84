//! With any faults of the network, requests complete in order, each is executed once, and written data is in
//! memory.

use crate::roce::network::{BYTES, Faults, KEY, Network, QPN, READ_ONLY, READ_ONLY_START, START, pattern};
use p4rack_fabric::roce::{Adapter, Completion, Config, Outcome, Received, Regions, Request};
use p4rack_wire::Nanos;
use p4rack_wire::roce::Mtu;
use std::collections::VecDeque;

/// The words for atomic operations are at the start of the region, what is written behind them.
const WORDS: u64 = 4;
const SEEDS: u64 = 300;
const REQUESTS: usize = 60;

/// The memory that node 1 should hold and the outcomes that node 0 should get, if requests are done one after the
/// other.
#[derive(Default)]
struct Model {
    memory: Vec<u8>,
    outcomes: VecDeque<(u64, Outcome)>,
    received: VecDeque<(Vec<u8>, Option<u32>)>,
}

impl Model {
    fn word(&mut self, address: u64, new: impl Fn(u64) -> u64) -> Outcome {
        let at = (address - START) as usize;
        let bytes = &mut self.memory[at..at + 8];
        let old = u64::from_le_bytes(bytes.try_into().unwrap());
        bytes.copy_from_slice(&new(old).to_le_bytes());
        Outcome::Word(old)
    }

    /// Executes a request on the model.
    fn execute(&mut self, request: &Request) -> Outcome {
        match request {
            Request::Send { bytes, immediate } => {
                self.received.push_back((bytes.clone(), *immediate));
                Outcome::Done
            }
            Request::Write { address, bytes, immediate, .. } => {
                let at = (address - START) as usize;
                self.memory[at..at + bytes.len()].copy_from_slice(bytes);
                if immediate.is_some() {
                    self.received.push_back((Vec::new(), *immediate));
                }
                Outcome::Done
            }
            Request::Read { address, bytes, .. } => {
                let at = (address - READ_ONLY_START) as usize;
                Outcome::Read((at..at + *bytes as usize).map(pattern).collect())
            }
            Request::CompareSwap { address, compare, swap, .. } => {
                self.word(*address, |old| if old == *compare { *swap } else { old })
            }
            Request::FetchAdd { address, add, .. } => self.word(*address, |old| old.wrapping_add(*add)),
        }
    }
}

fn request(network: &mut Network) -> Request {
    let bytes = match network.random(3) {
        0 => network.random(9),
        1 => network.random(600),
        _ => network.random(4_000),
    };
    let data = |network: &mut Network| (0..bytes).map(|_| network.random(256) as u8).collect::<Vec<u8>>();
    let immediate = |network: &mut Network| (network.random(4) == 0).then(|| network.random(1 << 32) as u32);
    let word = START + 8 * network.random(WORDS);
    match network.random(6) {
        0 => Request::Send { bytes: data(network), immediate: immediate(network) },
        1 => {
            let address = START + 8 * WORDS + network.random(BYTES as u64 - 8 * WORDS - bytes + 1);
            Request::Write { key: KEY, address, bytes: data(network), immediate: immediate(network) }
        }
        2 | 3 => {
            let address = READ_ONLY_START + network.random(BYTES as u64 - bytes + 1);
            Request::Read { key: READ_ONLY, address, bytes: bytes as u32 }
        }
        4 => {
            let (compare, swap) = (network.random(4), network.random(4));
            Request::CompareSwap { key: KEY, address: word, compare, swap }
        }
        _ => Request::FetchAdd { key: KEY, address: word, add: network.random(3) },
    }
}

fn config(network: &mut Network) -> Config {
    let reads_max = 1 + network.random(6) as usize;
    Config {
        mtu: Mtu::ALL[network.random(4) as usize],
        message_bytes_max: 4_096,
        in_flight_max: 1 + network.random(12) as usize,
        window_packets: 1 + network.random(40) as u32,
        reads_max,
        receives_max: 4,
        timeout: Nanos::from_micros(60),
        // At these rates of loss, seven losses in a row do happen.
        retries_max: u8::MAX,
        rnr_timer: 1,
        ..Config::default()
    }
}

/// Both ends' counters over all seeds: a fault that never happened would test nothing.
#[derive(Debug, Default)]
struct Seen {
    repeated: u64,
    timeouts: u64,
    naks: u64,
    not_ready: u64,
    gaps: u64,
    stale: u64,
    copies: u64,
    bad_icrc: u64,
}

impl Seen {
    fn add(&mut self, adapters: &[Adapter<Regions>; 2]) {
        for adapter in adapters {
            let (requester, responder) =
                (adapter.requester(QPN).unwrap().counters(), adapter.responder(QPN).unwrap().counters());
            self.repeated += requester.repeated_out;
            self.timeouts += requester.timeouts;
            self.naks += requester.naks_sequence;
            self.not_ready += requester.naks_rnr;
            self.gaps += requester.gaps;
            self.stale += requester.stale;
            self.copies += responder.copies;
            self.bad_icrc += adapter.counters().bad_icrc;
        }
    }
}

fn run(seed: u64, faults: Faults, seen: &mut Seen) {
    let config = config(&mut Network::new(Config::default(), Faults::default(), seed ^ 0x5eed));
    let mut network = Network::new(config, faults, seed);
    // Both nodes ask, so that requests and answers of a queue pair mix.
    let mut models = [0, 1].map(|_| Model { memory: vec![0; BYTES], ..Model::default() });
    let mut left = [REQUESTS; 2];
    let mut completed = [0; 2];
    for _ in 0..1_000_000 {
        for node in 0..2 {
            if left[node] > 0 && network.random(3) == 0 {
                let request = request(&mut network);
                let outcome = models[node].execute(&request);
                let id = network.adapters[node].handle_request(QPN, request).unwrap();
                models[node].outcomes.push_back((id, outcome));
                left[node] -= 1;
            }
            // Not always in time: then the receiver is not ready.
            if network.random(8) == 0 {
                let _ = network.adapters[node].handle_receive(QPN, 4_096);
            }
        }
        let moved = network.step();
        for node in 0..2 {
            for completion in network.completions[node].drain(..) {
                match completion {
                    Completion::Request(id, outcome) => {
                        assert_eq!(Some((id, outcome)), models[node].outcomes.pop_front(), "seed {seed}");
                        completed[node] += 1;
                    }
                    Completion::Receive(Received { bytes, immediate, .. }) => {
                        assert_eq!(
                            Some((bytes, immediate)),
                            models[1 - node].received.pop_front(),
                            "seed {seed}"
                        );
                    }
                }
            }
        }
        if !moved && left == [0; 2] {
            break;
        }
    }
    assert_eq!(completed, [REQUESTS; 2], "seed {seed}: requests are still open");
    for (node, model) in models.iter().enumerate() {
        assert!(model.received.is_empty(), "seed {seed}: messages that nobody received");
        let memory = network.adapters[1 - node].memory().get(KEY).unwrap();
        assert_eq!(memory.bytes, model.memory, "seed {seed}");
    }
    seen.add(&network.adapters);
}

#[test]
fn a_clean_network_needs_no_repetition_when_receivers_are_ready() {
    let mut network = Network::new(Config::default(), Faults::default(), 1);
    for _ in 0..256 {
        network.adapters[1].handle_receive(QPN, 4_096).unwrap();
    }
    for _ in 0..200 {
        let request = request(&mut network);
        network.ask(request);
    }
    network.settle();
    let (outcomes, requester) = (network.outcomes(), network.adapters[0].requester(QPN).unwrap().counters());
    assert!(outcomes.iter().map(|(id, _)| *id).eq(0..200), "in order");
    assert_eq!(
        (requester.completed, requester.repeated_out, requester.timeouts, requester.stale),
        (200, 0, 0, 0)
    );
}

#[test]
fn every_fault_alone() {
    let none = Faults::default();
    for (faults, happened) in [
        (
            Faults { lost: 100, ..none },
            (|seen| seen.timeouts.min(seen.naks).min(seen.gaps)) as fn(&Seen) -> u64,
        ),
        (Faults { copied: 200, ..none }, |seen| seen.copies.min(seen.stale)),
        (Faults { delayed: 200, ..none }, |seen| seen.naks.min(seen.copies)),
        (Faults { corrupted: 100, ..none }, |seen| seen.bad_icrc.min(seen.timeouts)),
    ] {
        let mut seen = Seen::default();
        (0..SEEDS / 4).for_each(|seed| run(seed, faults, &mut seen));
        assert!(happened(&seen) > 100, "{faults:?}: {seen:?}");
    }
}

#[test]
fn all_faults_together() {
    let mut seen = Seen::default();
    let faults = Faults { lost: 50, copied: 50, delayed: 100, corrupted: 50 };
    (0..SEEDS).for_each(|seed| run(1_000 + seed, faults, &mut seen));
    let least = [seen.repeated, seen.timeouts, seen.naks, seen.not_ready, seen.gaps, seen.stale, seen.copies];
    assert!(least.iter().all(|count| *count > 100), "{seen:?}");
}

#[test]
fn without_icrc_the_protocol_is_the_same() {
    for seed in 0..20 {
        let config = Config { icrc_sent: false, icrc_verified: false, ..Config::default() };
        let faults = Faults { lost: 50, copied: 50, delayed: 50, corrupted: 0 };
        let mut network = Network::new(config, faults, seed);
        let bytes: Vec<u8> = (0..10_000).map(|at| pattern(at + seed as usize)).collect();
        network.ask(Request::Write { key: KEY, address: START, bytes: bytes.clone(), immediate: None });
        network.settle();
        let read = network.outcome(Request::Read { key: KEY, address: START, bytes: 10_000 });
        assert_eq!(read, Outcome::Read(bytes));
    }
}
