//! Clio-KV: a key-value store at the board (paper §6).
//!
//! ```text
//!   region of the offload's process
//!   ├─ top: next unused byte ─┬─ free blocks: first of each class ─┬─ buckets ──────────┬─ blocks … ─┤
//!                                                                    │ first of chain
//!                                                                    ▼
//!   block:  next 64 │ version 64 │ value bytes 32 │ key bytes 16 │ class 16 │ key │ value ──▶ next block ──▶ 0
//! ```
//!
//! A chained hash table. Whole keys are compared. An update writes a new block and then changes one pointer, so a
//! reader sees the old value or the new one; the old block is free for others afterwards. Accesses that may fail (the
//! first ones to a page) come before the first change, so a call that fails has changed nothing.
//!
//! The version of a key is 1 when it is created, and one more after each update. With it, several clients change a
//! value based on what they have read, without locks: [`UpdateVersion`](KvFunction::UpdateVersion) finds nothing if
//! another client was faster.
//!
//! Blocks have powers of two of bytes, from 32 B to 128 KB, and may cross pages.

use crate::{Call, Offload, Step};
use p4rack_fabric::clio::board::{Space, View};
use p4rack_wire::SplitMix;
use p4rack_wire::clio::Status;

/// Functions of the store. Arguments are a `KvArguments` header, the key, and for [`Create`](KvFunction::Create),
/// [`Update`](KvFunction::Update), [`Put`](KvFunction::Put) and [`UpdateVersion`](KvFunction::UpdateVersion) the value, or nothing if
/// the value is at an address of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum KvFunction {
    /// Adds a key. Errors: the key exists already ([`Exists`](Status::Exists)).
    Create = 1,
    /// Returns the value of a key.
    Read = 2,
    /// Changes the value of a key.
    Update = 3,
    /// Removes a key.
    Delete = 4,
    /// Creates a key, or changes its value.
    Put = 5,
    /// Returns the version of a key, 8 bytes, the lowest first, and its value.
    ReadVersion = 6,
    /// Changes the value of a key that has a version, which follows the key as in [`ReadVersion`](Self::ReadVersion).
    /// Errors: there is no such key, or it has another version ([`NotFound`](Status::NotFound)).
    UpdateVersion = 7,
}

p4rack_wire::header! {
    /// Arguments of the store's functions, before the key.
    KvArguments = "clio_kv_t" {
        /// where the value is in the caller's memory; 0: behind the key
        value_address / "valueAddress": u64 = 64;
        /// bytes of the value
        value_bytes / "valueBytes": u32 = 32;
        /// bytes of the key, 1 to 255
        key_bytes / "keyBytes": u8 = 8;
        /// zero on sending, ignored on receipt
        reserved / "reserved": u32 = 24;
    }
}

const CREATE: u8 = KvFunction::Create as u8;
const READ: u8 = KvFunction::Read as u8;
const UPDATE: u8 = KvFunction::Update as u8;
const DELETE: u8 = KvFunction::Delete as u8;
const PUT: u8 = KvFunction::Put as u8;
const READ_VERSION: u8 = KvFunction::ReadVersion as u8;
const UPDATE_VERSION: u8 = KvFunction::UpdateVersion as u8;

/// Maximum bytes of a value.
pub const VALUE_BYTES_MAX: u32 = 64 << 10;
/// Maximum bytes of a key.
pub const KEY_BYTES_MAX: usize = 255;
/// Classes of blocks: 32 B to 128 KB.
const CLASSES: u64 = 13;
const SMALLEST: u64 = 32;
/// Bytes before a block's key.
const HEAD_BYTES: u64 = 24;
/// Bytes of a version.
pub const VERSION_BYTES: usize = 8;
/// Bytes of `top` and of the first free blocks.
const FIXED: u64 = 8 + 8 * CLASSES;

/// Bytes of the block for a key and a value of these bytes: a power of two.
pub fn block_bytes(key: u64, value: u64) -> u64 {
    (HEAD_BYTES + key + value).next_power_of_two().max(SMALLEST)
}

/// A store in a region of its own process.
#[derive(Clone, Debug)]
pub struct Kv {
    space: Space,
    start: u64,
    bytes: u64,
    buckets: u64,
    seed: u64,
    /// A block that is being written.
    scratch: Vec<u8>,
}

/// Result of a search.
enum Search {
    /// The key's block.
    Block(Found),
    /// The key has none; a new block's address belongs in this word.
    Absent(u64),
}

/// A block of a key.
struct Found {
    /// Where the block's address is stored: in a bucket, or in the block before.
    link: u64,
    at: u64,
    block: Block,
}

#[derive(Clone, Copy)]
struct Block {
    next: u64,
    version: u64,
    value_bytes: u32,
    key_bytes: u16,
    class: u16,
}

impl Block {
    fn of(bytes: [u8; HEAD_BYTES as usize]) -> Block {
        let number = |range: std::ops::Range<usize>| {
            bytes[range].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        };
        Block {
            next: number(0..8),
            version: number(8..16),
            value_bytes: number(16..20) as u32,
            key_bytes: number(20..22) as u16,
            class: number(22..24) as u16,
        }
    }

    fn bytes(&self) -> [u8; HEAD_BYTES as usize] {
        let mut bytes = [0; HEAD_BYTES as usize];
        bytes[..8].copy_from_slice(&self.next.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.version.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.value_bytes.to_le_bytes());
        bytes[20..22].copy_from_slice(&self.key_bytes.to_le_bytes());
        bytes[22..].copy_from_slice(&self.class.to_le_bytes());
        bytes
    }
}

/// A block for new contents.
struct Room {
    at: u64,
    class: u64,
    /// The word to change when the contents are written, and its new value: takes the block off its free list, or the top up.
    taken: (u64, u64),
}

impl Kv {
    /// A store in `bytes` bytes from `start` on, which `space` has allocated and is unused: it reads as zeros.
    pub fn new(space: Space, start: u64, bytes: u64, buckets: u64, seed: u64) -> Kv {
        Kv { space, start, bytes, buckets: buckets.max(1), seed, scratch: Vec::new() }
    }

    fn word(&self, view: &mut dyn View, at: u64) -> Result<u64, Status> {
        let mut bytes = [0; 8];
        view.read(self.space, at, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn set(&self, view: &mut dyn View, at: u64, word: u64) -> Result<(), Status> {
        view.write(self.space, at, &word.to_le_bytes())
    }

    fn bucket(&self, key: &[u8]) -> u64 {
        let hash = key.chunks(8).fold(self.seed ^ key.len() as u64, |hash, part| {
            let word = part.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
            SplitMix(hash ^ word).next()
        });
        self.start + FIXED + 8 * (hash % self.buckets)
    }

    /// Looks for a key.
    fn find(&self, view: &mut dyn View, key: &[u8]) -> Result<Search, Status> {
        let first = self.bucket(key);
        let (mut link, mut known) = (first, [0; 255]);
        loop {
            let at = self.word(view, link)?;
            if at == 0 {
                return Ok(Search::Absent(first));
            }
            let mut head = [0; HEAD_BYTES as usize];
            view.read(self.space, at, &mut head)?;
            let block = Block::of(head);
            if usize::from(block.key_bytes) == key.len() {
                let known = &mut known[..key.len()];
                view.read(self.space, at + HEAD_BYTES, known)?;
                if known == key {
                    return Ok(Search::Block(Found { link, at, block }));
                }
            }
            link = at;
        }
    }

    /// A block for as many bytes, which is not taken yet.
    fn room(&self, view: &mut dyn View, bytes: u64) -> Result<Room, Status> {
        let class = u64::from((bytes.next_power_of_two() / SMALLEST).max(1).trailing_zeros());
        let (free, at) = self.free_list(view, class)?;
        if at != 0 {
            let next = self.word(view, at)?;
            return Ok(Room { at, class, taken: (free, next) });
        }
        let lowest = (FIXED + 8 * self.buckets).next_multiple_of(SMALLEST);
        let top = self.word(view, self.start)?.max(lowest);
        let end = top + (SMALLEST << class);
        if end > self.bytes {
            return Err(Status::NoMemory);
        }
        Ok(Room { at: self.start + top, class, taken: (self.start, end) })
    }

    /// Writes a block with this key and value, and then makes `link` point to it. Returns the word that was changed to take the block.
    fn put(
        &mut self,
        view: &mut dyn View,
        call: &Call<'_>,
        parsed: &Parsed<'_>,
        Place { link, next, version }: Place,
    ) -> Result<(u64, u64), Status> {
        let length = HEAD_BYTES + parsed.key.len() as u64 + u64::from(parsed.value_bytes);
        let room = self.room(view, length)?;
        let block = Block {
            next,
            version,
            value_bytes: parsed.value_bytes,
            key_bytes: parsed.key.len() as u16,
            class: room.class as u16,
        };
        let bytes = &mut self.scratch;
        bytes.clear();
        bytes.extend_from_slice(&block.bytes());
        bytes.extend_from_slice(parsed.key);
        match parsed.value {
            Some(value) => bytes.extend_from_slice(value),
            None => {
                let start = bytes.len();
                bytes.resize(length as usize, 0);
                view.read(call.caller, parsed.value_address, &mut bytes[start..])?;
            }
        }
        let bytes = &self.scratch;
        // The first word of a free block is the link of its list. It is written last, because a part of the write may fail.
        view.write(self.space, room.at + 8, &bytes[8..])?;
        view.write(self.space, room.at, &bytes[..8])?;
        self.set(view, room.taken.0, room.taken.1)?;
        self.set(view, link, room.at)?;
        Ok(room.taken)
    }

    /// Address and contents of the word that begins the list of free blocks of a class.
    fn free_list(&self, view: &mut dyn View, class: u64) -> Result<(u64, u64), Status> {
        let list = self.start + 8 + 8 * class;
        Ok((list, self.word(view, list)?))
    }

    /// Puts a block on its free list. The pages were accessed before.
    fn free(&self, view: &mut dyn View, at: u64, (list, first): (u64, u64)) -> Result<(), Status> {
        self.set(view, at, first)?;
        self.set(view, list, at)
    }
}

/// Where a new block belongs.
struct Place {
    /// Where its address will be stored.
    link: u64,
    /// The block behind it.
    next: u64,
    version: u64,
}

/// Arguments taken apart.
struct Parsed<'a> {
    key: &'a [u8],
    /// The expected version of the key, if the function has one.
    version: Option<u64>,
    /// The value, if it is among the arguments.
    value: Option<&'a [u8]>,
    value_address: u64,
    value_bytes: u32,
}

fn parse(function: u8, arguments: &[u8]) -> Result<Parsed<'_>, Status> {
    let header = KvArguments::parse(arguments).map_err(|_| Status::BadLength)?;
    let rest = &arguments[KvArguments::BYTES..];
    let (key, rest) = rest.split_at_checked(header.key_bytes.into()).ok_or(Status::BadLength)?;
    let (version, value) = match function {
        UPDATE_VERSION => {
            let (version, value) = rest.split_first_chunk::<VERSION_BYTES>().ok_or(Status::BadLength)?;
            (Some(u64::from_le_bytes(*version)), value)
        }
        _ => (None, rest),
    };
    if key.is_empty() || header.value_bytes > VALUE_BYTES_MAX {
        return Err(Status::BadLength);
    }
    let is_inline = header.value_address == 0;
    if value.len() != if is_inline { header.value_bytes as usize } else { 0 } {
        return Err(Status::BadLength);
    }
    let (value_address, value_bytes) = (header.value_address, header.value_bytes);
    Ok(Parsed { key, version, value: is_inline.then_some(value), value_address, value_bytes })
}

impl Offload for Kv {
    fn call(&mut self, call: &Call<'_>, view: &mut dyn View, results: &mut Vec<u8>) -> Result<Step, Status> {
        self.execute(call, view, results).map(|()| Step::Ended)
    }
}

impl Kv {
    fn execute(&mut self, call: &Call<'_>, view: &mut dyn View, results: &mut Vec<u8>) -> Result<(), Status> {
        let parsed = parse(call.function, call.arguments)?;
        let found = self.find(view, parsed.key)?;
        match (call.function, found) {
            (CREATE, Search::Block(_)) => Err(Status::Exists),
            (CREATE | PUT, Search::Absent(first)) => {
                let place = Place { link: first, next: self.word(view, first)?, version: 1 };
                self.put(view, call, &parsed, place).map(|_| ())
            }
            (READ | UPDATE | DELETE | READ_VERSION | UPDATE_VERSION, Search::Absent(_)) => {
                Err(Status::NotFound)
            }
            (READ | READ_VERSION, Search::Block(found)) => {
                if call.function == READ_VERSION {
                    results.extend_from_slice(&found.block.version.to_le_bytes());
                }
                let start = results.len();
                results.resize(start + found.block.value_bytes as usize, 0);
                let value = found.at + HEAD_BYTES + u64::from(found.block.key_bytes);
                view.read(self.space, value, &mut results[start..])
            }
            (UPDATE | PUT | UPDATE_VERSION, Search::Block(found)) => {
                let Block { next, version, class, .. } = found.block;
                if parsed.version.is_some_and(|wanted| wanted != version) {
                    return Err(Status::NotFound);
                }
                let list = self.free_list(view, class.into())?;
                let place = Place { link: found.link, next, version: version.wrapping_add(1) };
                let taken = self.put(view, call, &parsed, place)?;
                // The new block may be from the same list.
                self.free(view, found.at, if taken.0 == list.0 { taken } else { list })
            }
            (DELETE, Search::Block(found)) => {
                let list = self.free_list(view, found.block.class.into())?;
                self.set(view, found.link, found.block.next)?;
                self.free(view, found.at, list)
            }
            _ => Err(Status::NoSuchOffload),
        }
    }
}
