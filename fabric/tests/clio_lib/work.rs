//! Threads that read, write and modify words in random order, and a check that one order explains their results.

use crate::clio_lib::board::Moods;
use crate::clio_lib::real::Real;
use crate::clio_lib::world::{Ended, Faults, Node, Tamper, World, config};
use p4rack_fabric::clio::lib::{Change, Config, Operation};
use p4rack_history::{Entry, History, Order, Outcome, Word};
use p4rack_wire::Nanos;
use p4rack_wire::edm::Opcode;
use std::collections::BTreeMap;

/// Clients, threads of each, operations of a thread, and how many it has under way.
const CLIENTS: usize = 2;
const THREADS: u16 = 2;
const OPERATIONS: usize = 40;
const DEPTH: usize = 5;
const PAGES: u32 = 4;
/// Where the words are, in bytes from the first page on: some pages have several, and long ranges cross their edges.
const WORDS: [u64; 8] = [0, 8, 2_048, 4_088, 4_096, 8_192, 9_000, 12_288];

/// Parameters of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setting {
    pub faults: Faults,
    pub moods: Moods,
    pub tamper: Option<Tamper>,
    /// The board is the real one, not the model.
    pub is_real: bool,
    /// Each operation is of a thread of its own for the client, to plant a missed dependency.
    pub forgets_threads: bool,
}

/// Events of a run.
#[derive(Debug, Default)]
pub struct Seen {
    /// Results that no order explains, in words.
    pub problems: Vec<String>,
    pub unknown: u64,
    pub timeouts: u64,
    pub retries: u64,
    pub corrupt: u64,
    pub busy: u64,
    pub stale: u64,
    pub unasked: u64,
    pub repeated: u64,
    pub nacks: u64,
}

impl Seen {
    pub fn add(&mut self, other: Seen) {
        self.problems.extend(other.problems);
        self.unknown += other.unknown;
        self.timeouts += other.timeouts;
        self.retries += other.retries;
        self.corrupt += other.corrupt;
        self.busy += other.busy;
        self.stale += other.stale;
        self.unasked += other.unasked;
        self.repeated += other.repeated;
        self.nacks += other.nacks;
    }

    fn count<B: Node>(&mut self, world: &World<B>) {
        for client in &world.clients {
            let counters = client.counters();
            self.unknown += counters.unknown;
            self.timeouts += counters.timeouts;
            self.retries += counters.retries;
            self.corrupt += counters.corrupt;
            self.busy += counters.busy;
            self.stale += counters.stale;
            self.unasked += counters.unasked;
        }
        for board in &world.boards {
            let [repeated, nacks] = board.counts();
            self.repeated += repeated;
            self.nacks += nacks;
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Read,
    /// Each word becomes this.
    Write(u64),
    Change(Opcode, [u64; 2]),
}

#[derive(Clone, Debug)]
struct Asked {
    client: usize,
    thread: u16,
    act: Act,
    /// Bytes from the first page on.
    at: u64,
    bytes: u64,
    asked: Nanos,
    end: Option<(Nanos, Ended)>,
}

impl Asked {
    fn depends_on(&self, earlier: &Asked) -> bool {
        let pages = |asked: &Asked| (asked.at / 4_096, (asked.at + asked.bytes - 1) / 4_096);
        let ((first, last), (from, to)) = (pages(self), pages(earlier));
        (self.client, self.thread) == (earlier.client, earlier.thread)
            && (self.act != Act::Read || earlier.act != Act::Read)
            && first <= to
            && from <= last
    }

    fn words(&self) -> impl Iterator<Item = u64> {
        let range = self.at..self.at + self.bytes;
        WORDS.into_iter().filter(move |word| range.contains(word))
    }
}

/// Runs a seed.
pub fn run(seed: u64, setting: &Setting) -> Seen {
    let threads = if setting.forgets_threads { (OPERATIONS * usize::from(THREADS)) as u16 } else { THREADS };
    let config = Config { threads, ..config() };
    match setting.is_real {
        true => run_in(World::of(&config, CLIENTS, vec![Real::new(&config)], seed), seed, setting),
        false => run_in(World::new(&config, CLIENTS, 1, setting.moods, seed), seed, setting),
    }
}

fn run_in<B: Node>(mut world: World<B>, seed: u64, setting: &Setting) -> Seen {
    (world.faults, world.tamper) = (setting.faults, setting.tamper);
    let start = world.boards[0].allocate(PAGES, &mut world.now);
    let (mut all, mut value, mut seen) = (Vec::<Asked>::new(), 0, Seen::default());
    loop {
        for client in 0..CLIENTS {
            for thread in 0..THREADS {
                let own = |asked: &&Asked| (asked.client, asked.thread) == (client, thread);
                let under_way = all.iter().filter(own).filter(|asked| asked.end.is_none()).count();
                if all.iter().filter(own).count() < OPERATIONS
                    && under_way < DEPTH
                    && !world.random.next().is_multiple_of(4)
                {
                    value += 1;
                    let asked = ask(&mut world, (client, thread), value);
                    let by = if setting.forgets_threads {
                        thread * OPERATIONS as u16 + all.iter().filter(own).count() as u16
                    } else {
                        thread
                    };
                    submit(&mut world, by, all.len() as u64, start, &asked);
                    all.push(asked);
                }
            }
        }
        let mut ended = Vec::new();
        let is_over = !world.step(&mut |_, tag, end| ended.push((tag, end)));
        for (tag, end) in ended {
            let asked = &mut all[tag as usize];
            assert_eq!(asked.end, None, "operations end once");
            asked.end = Some((world.now, end));
            let asked = &all[tag as usize];
            let overtaken =
                all[..tag as usize].iter().find(|earlier| asked.depends_on(earlier) && earlier.end.is_none());
            seen.problems
                .extend(overtaken.map(|earlier| format!("seed {seed}: {asked:?} has overtaken {earlier:?}")));
        }
        if is_over && all.len() == CLIENTS * usize::from(THREADS) * OPERATIONS {
            break;
        }
        assert!(world.now < Nanos::from_secs(1), "seed {seed}: it does not come to rest");
    }
    world.finish();
    let left = all.iter().filter(|asked| asked.end.is_none()).count();
    seen.problems.extend((left > 0).then(|| format!("seed {seed}: {left} operations do not end")));
    seen.count(&world);
    // At last, the memory's content.
    let mut history = histories(&all);
    for word in WORDS {
        let act = Word::Read(world.boards[0].look(start + word, &mut world.now));
        let asked = world.now.0 + 1_000;
        history.add(word, Entry { asked, outcome: Outcome::Known(asked + 1), act });
    }
    seen.problems.extend(
        history.problems(&0, Order::Any).into_iter().map(|problem| format!("seed {seed}: {problem}")),
    );
    seen
}

/// An operation on one word, or on a range with several.
fn ask<B: Node>(world: &mut World<B>, (client, thread): (usize, u16), value: u64) -> Asked {
    let mut random = |below: u64| world.random.next() % below;
    let at = WORDS[random(WORDS.len() as u64) as usize];
    let long = 8 * (1 + random(400));
    let bytes = if random(3) == 0 { long.min(u64::from(PAGES) * 4_096 - at) } else { 8 };
    let (act, bytes) = match random(10) {
        0..4 => (Act::Read, bytes),
        4..7 => (Act::Write(value), bytes),
        7 => (Act::Change(Opcode::FetchAdd, [1 << 32, 0]), 8),
        8 => (Act::Change(Opcode::Swap, [value, 0]), 8),
        _ => (Act::Change(Opcode::Cas, [random(value), value]), 8),
    };
    Asked { client, thread, act, at, bytes, asked: world.now, end: None }
}

fn submit<B: Node>(world: &mut World<B>, thread: u16, tag: u64, start: u64, asked: &Asked) {
    let address = start + asked.at;
    let data: Vec<u8>;
    let operation = match asked.act {
        Act::Read => Operation::Read { address, bytes: asked.bytes as u32 },
        Act::Write(value) => {
            data = value.to_le_bytes().repeat(asked.bytes as usize / 8);
            Operation::Write { address, bytes: &data }
        }
        Act::Change(Opcode::Cas, [compare, swap]) => {
            Operation::Modify { address, change: Change::CompareSwap(compare, swap) }
        }
        Act::Change(Opcode::Swap, [word, _]) => Operation::Modify { address, change: Change::Swap(word) },
        Act::Change(_, [add, _]) => Operation::Modify { address, change: Change::FetchAdd(add) },
    };
    world.submit(asked.client, thread, tag, operation).unwrap();
}

/// The operations on each word. One begins when those before it that it depends on have ended.
fn histories(all: &[Asked]) -> History<u64, Word> {
    let mut history = History::default();
    let mut begins = BTreeMap::new();
    for (nth, asked) in all.iter().enumerate() {
        let before = all[..nth].iter().filter(|earlier| asked.depends_on(earlier));
        let ends = before.filter_map(|earlier| earlier.end.as_ref().map(|end| end.0));
        begins.insert(nth, ends.chain([asked.asked]).max().unwrap_or_default());
    }
    for (nth, asked) in all.iter().enumerate() {
        let Some((at, end)) = &asked.end else { continue };
        let outcome = match end {
            Ended::Unknown => Outcome::Unknown,
            Ended::Refused(_) => Outcome::Refused,
            _ => Outcome::Known(at.0),
        };
        for word in asked.words() {
            let act = match (asked.act, end) {
                (Act::Read, Ended::Read(bytes)) => {
                    let found = &bytes[(word - asked.at) as usize..][..8];
                    Word::Read(u64::from_le_bytes(found.try_into().unwrap()))
                }
                // It found nothing.
                (Act::Read, _) => continue,
                (Act::Write(value), _) => Word::Write(value),
                (Act::Change(opcode, operands), Ended::Word(old)) => {
                    Word::Modify(opcode, operands, Some(*old))
                }
                (Act::Change(opcode, operands), _) => Word::Modify(opcode, operands, None),
            };
            history.add(word, Entry { asked: begins[&nth].0, outcome, act });
        }
    }
    history
}
