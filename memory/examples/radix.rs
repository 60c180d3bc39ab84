//! A radix tree in a board's memory, the index of Clio's paper (§6, Figure 16): a node is a list of its children, and the client
//! follows the digits of a key from list to list. One pointer chase per level finds the child at the board. For
//! comparison, the same search reads entry by entry, as one-sided RDMA has to.
//!
//! ```text
//!   root ─▶ digit 7 ─next─▶ digit 2 ─next─▶ digit 11 ─▶ 0        level 1: one chase
//!                              │ child
//!                              ▼
//!                           digit 5 ─next─▶ digit 0 ─▶ 0         level 2: one chase
//!                                              │ child           …
//!                                              ▼                 level 8: the child is the value
//!
//!   an entry:  0 digit │ 8 next │ 16 child │ 24 zeros            words of 8 bytes, the lowest byte first
//! ```
//!
//! `p4rack clio serve`, then `cargo run --release -p p4rack-memory --example radix`.

use clap::Parser;
use p4rack_hosts::roce::setup::Server;
use p4rack_memory::clio::{AskError, CHASE, Chase, Patience, Session, Status};
use p4rack_netdev::clock;
use p4rack_report::text;
use p4rack_wire::{Histogram, SplitMix};
use std::error::Error;

/// Digits of a key, which are the levels of the tree.
pub const LEVELS: u32 = 8;
/// Bits of a digit.
const DIGIT_BITS: u32 = u32::BITS / LEVELS;
/// Entries of a list, at most.
const LIST_MAX: u16 = 1 << DIGIT_BITS;
/// Bytes of an entry: a power of two, so that none crosses a page.
const ENTRY_BYTES: usize = 32;
/// Where in an entry its words are.
const NEXT: u16 = 8;
const CHILD: u16 = 16;
/// Bytes of a write while a tree is stored.
const PIECE_BYTES: usize = 256 << 10;

/// Compares searches by pointer chases with searches by reads in radix trees on a board.
#[derive(Parser, Debug)]
pub struct Args {
    /// Address of the board's set-up service, HOST:PORT
    #[arg(long, default_value = "127.0.0.1:9563")]
    pub board: String,
    /// Numbers of entries: a tree of each size is searched
    #[arg(long, value_delimiter = ',', default_value = "100,1000,10000,100000")]
    pub entries: Vec<u32>,
    /// Searches in each tree, of each kind
    #[arg(long, default_value_t = 1000)]
    pub searches: u32,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    println!("{:>9}  {:<14}  {:>9}  {:>9}  {:>9}", "entries", "search by", "exchanges", "p50", "p99");
    for entries in &args.entries {
        let mut tree = Tree::store(&args.board, *entries)?;
        for by in [By::Chases, By::Reads] {
            let report = tree.measure(by, args.searches)?;
            let micros = |share| text::micros(report.latencies.at(share) as f64 / 1e3);
            let (name, exchanges) = (by.name(), report.exchanges.mean());
            println!("{entries:>9}  {name:<14}  {exchanges:>9.1}  {:>9}  {:>9}", micros(0.5), micros(0.99));
        }
    }
    Ok(())
}

/// How a list is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The board follows its pointers: one exchange.
    Chases,
    /// The client reads one entry after the other: an exchange for each.
    Reads,
}

impl By {
    fn name(self) -> &'static str {
        match self {
            By::Chases => "pointer chases",
            By::Reads => "reads",
        }
    }
}

/// Searches of one kind in a tree.
#[derive(Debug)]
pub struct Report {
    /// Requests of each search, each with its answer.
    pub exchanges: Histogram,
    /// Time of each search in nanoseconds.
    pub latencies: Histogram,
}

/// Key of the nth entry: all are different, and spread over the tree.
pub fn key(nth: u32) -> u32 {
    nth.wrapping_mul(0x9E37_79B1)
}

/// Value of a key.
pub fn value(key: u32) -> u64 {
    SplitMix(key.into()).next()
}

/// Digits of a key, the highest first.
fn digits(key: u32) -> impl Iterator<Item = u64> {
    let mask = u32::from(LIST_MAX - 1);
    (1..=LEVELS).map(move |level| u64::from(key >> (u32::BITS - level * DIGIT_BITS) & mask))
}

/// A tree in the memory of a process of its own.
pub struct Tree {
    session: Session,
    entries: u32,
    /// Address of the list of the first level.
    root: u64,
    /// Requests so far.
    exchanges: u64,
}

impl Tree {
    /// Stores a tree of that many entries on a board. Errors: the board can't be reached, or has too little memory.
    pub fn store(board: &str, entries: u32) -> Result<Tree, Box<dyn Error>> {
        let mut image = Image::default();
        (0..entries).for_each(|nth| image.insert(key(nth), value(key(nth))));
        let server = Server { addr: board.to_owned(), tls: None };
        let mut session = Session::open(&server, image.bytes().max(1), Patience::default())?;
        let start = session.range().0;
        let bytes = image.at(start);
        for (address, piece) in (start..).step_by(PIECE_BYTES).zip(bytes.chunks(PIECE_BYTES)) {
            session.write(address, piece)?;
        }
        Ok(Tree { session, entries, root: address(start, image.root), exchanges: 0 })
    }

    /// Searches for keys of the tree at random. Errors: a value is missing or wrong.
    pub fn measure(&mut self, by: By, searches: u32) -> Result<Report, Box<dyn Error>> {
        let mut report = Report { exchanges: Histogram::new(), latencies: Histogram::new() };
        let mut random = SplitMix(u64::from(self.entries));
        for _ in 0..searches {
            let key = key((random.next() % u64::from(self.entries.max(1))) as u32);
            let (start, before) = (clock::now(), self.exchanges);
            let found = self.search(by, key)?;
            report.latencies.record((clock::now() - start).0);
            report.exchanges.record(self.exchanges - before);
            if found != Some(value(key)) {
                return Err(format!("key {key:#x}: {found:x?} instead of {:x}", value(key)).into());
            }
        }
        Ok(report)
    }

    /// The value of a key.
    pub fn search(&mut self, by: By, key: u32) -> Result<Option<u64>, AskError> {
        let mut list = self.root;
        for digit in digits(key) {
            let child = match by {
                By::Chases => self.chase(list, digit)?,
                By::Reads => self.read(list, digit)?,
            };
            let Some(child) = child else { return Ok(None) };
            list = child;
        }
        Ok(Some(list))
    }

    /// Requests so far.
    pub fn exchanges(&self) -> u64 {
        self.exchanges
    }

    /// The child of a list with a digit, as the board finds it.
    fn chase(&mut self, list: u64, digit: u64) -> Result<Option<u64>, AskError> {
        let chase = Chase {
            address: list,
            key: digit,
            key_offset: 0,
            next_offset: NEXT,
            value_offset: CHILD,
            value_bytes: size_of::<u64>() as u16,
            depth: LIST_MAX,
            value_is_pointer: 0,
            reserved: 0,
        };
        let mut arguments = [0; Chase::BYTES];
        chase.emit(&mut arguments);
        self.exchanges += 1;
        match self.session.call(CHASE, 0, &arguments) {
            // The entry's address is in front of its child.
            Ok(found) => Ok(Some(word(&found, 8)?)),
            Err(AskError::Failed(Status::NotFound)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The same, as the client finds it.
    fn read(&mut self, mut list: u64, digit: u64) -> Result<Option<u64>, AskError> {
        while list != 0 {
            self.exchanges += 1;
            let entry = self.session.read(list, ENTRY_BYTES as u32)?;
            if word(&entry, 0)? == digit {
                return Ok(Some(word(&entry, CHILD.into())?));
            }
            list = word(&entry, NEXT.into())?;
        }
        Ok(None)
    }
}

/// A word of an answer.
fn word(bytes: &[u8], offset: usize) -> Result<u64, AskError> {
    let word = bytes.get(offset..).and_then(|rest| rest.first_chunk());
    word.map(|word| u64::from_le_bytes(*word)).ok_or(AskError::Failed(Status::BadLength))
}

/// A tree before it is stored. Lists are known by the number of their first entry plus one; 0 is none.
#[derive(Debug, Default)]
struct Image {
    root: usize,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    digit: u64,
    next: usize,
    child: Child,
}

#[derive(Clone, Copy, Debug)]
enum Child {
    List(usize),
    Value(u64),
}

/// Address of a list in memory that begins at `start`.
fn address(start: u64, list: usize) -> u64 {
    list.checked_sub(1).map_or(0, |nth| start + (nth * ENTRY_BYTES) as u64)
}

impl Image {
    fn bytes(&self) -> u64 {
        (self.entries.len() * ENTRY_BYTES) as u64
    }

    /// Adds a key that is not there yet.
    fn insert(&mut self, key: u32, value: u64) {
        let mut parent = None;
        for digit in digits(key) {
            let head = match parent.map(|parent: usize| self.entries[parent].child) {
                Some(Child::List(list)) => list,
                _ => self.root,
            };
            let found = self.find(head, digit);
            parent = found.or_else(|| {
                self.entries.push(Entry { digit, next: head, child: Child::List(0) });
                let list = self.entries.len();
                match parent {
                    Some(parent) => self.entries[parent].child = Child::List(list),
                    None => self.root = list,
                }
                Some(list - 1)
            });
        }
        if let Some(leaf) = parent {
            self.entries[leaf].child = Child::Value(value);
        }
    }

    /// Number of the entry of a list with a digit.
    fn find(&self, mut list: usize, digit: u64) -> Option<usize> {
        while let Some(nth) = list.checked_sub(1) {
            if self.entries[nth].digit == digit {
                return Some(nth);
            }
            list = self.entries[nth].next;
        }
        None
    }

    /// Its bytes in memory that begins at `start`.
    fn at(&self, start: u64) -> Vec<u8> {
        let words = self.entries.iter().flat_map(|entry| {
            let child = match entry.child {
                Child::List(list) => address(start, list),
                Child::Value(value) => value,
            };
            [entry.digit, address(start, entry.next), child, 0]
        });
        words.flat_map(u64::to_le_bytes).collect()
    }
}
