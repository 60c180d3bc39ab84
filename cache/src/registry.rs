//! The list of policies.

use crate::{Block, Opened, Parts, Shape};
use crate::{arc, belady, filter, kona, lru, page_cache, runs, s3_fifo, sieve, tiny_lfu, two_q, unimem};

/// A policy as commands and files name it.
#[derive(Debug)]
pub struct Definition {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    /// Bytes of a block in its paper.
    pub block_bytes: u32,
    /// Whether its system translates addresses on the way to local memory, which each access pays for.
    pub translates: bool,
    /// How to make it.
    pub build: Build,
}

/// What a policy is made from.
#[derive(Debug)]
pub enum Build {
    /// Its shape.
    Online(fn(&Shape) -> Opened),
    /// Its shape and all accesses, which only a simulation knows.
    Offline(fn(&Shape, &[Block]) -> Opened),
}

impl Definition {
    /// Makes the policy. `accesses` are all blocks that will be accessed, in order; only a policy that knows the future reads
    /// them.
    pub fn open(&self, shape: &Shape, accesses: &[Block]) -> Opened {
        match self.build {
            Build::Online(build) => build(shape),
            Build::Offline(build) => build(shape, accesses),
        }
    }
}

/// The policy of that name, or the part of ours.
pub fn find(name: &str) -> Option<&'static Definition> {
    POLICIES.iter().chain(PARTS).find(|policy| policy.name == name)
}

const fn policy(
    name: &'static str,
    block_bytes: u32,
    about: &'static str,
    build: fn(&Shape) -> Opened,
) -> Definition {
    Definition { name, about, block_bytes, translates: false, build: Build::Online(build) }
}

/// All policies.
pub const POLICIES: &[Definition] = &[
    Definition { translates: true, ..policy("kona", 4096, "Kona: 4 ways a set, LRU", kona::lru) },
    Definition {
        translates: true,
        ..policy("kona-fifo", 4096, "Kona as UniMem's authors simulate it: 4 ways a set, FIFO", kona::fifo)
    },
    policy("kona-pc", 4096, "Linux's page cache: two lists of pages", page_cache::open),
    policy("sr-rb-4sc", 4096, "Kona's cache without translation", kona::lru),
    policy("unimem-nopromote", 512, "UniMem's filter cache alone", filter::open),
    policy("unimem", 512, "UniMem: filter cache, pages in use promoted to the host", unimem::open),
    policy("lru", 512, "least recently used", lru::lru),
    policy("fifo", 512, "first in, first out", lru::fifo),
    policy("s3-fifo", 512, "three FIFO queues", s3_fifo::open),
    policy("sieve", 512, "a hand passes over blocks in their order of entry", sieve::open),
    policy("w-tinylfu", 512, "window, and admission by frequency", tiny_lfu::open),
    policy("2q", 512, "two queues", two_q::open),
    policy("arc", 512, "two LRU lists that adapt to each other", arc::open),
    Definition {
        name: "belady",
        about: "fewest fetches of single blocks possible, knows the future: simulations only",
        block_bytes: 512,
        translates: false,
        build: Build::Offline(belady::open),
    },
    policy("runs", 512, "ours: fetches runs of blocks, keeps blocks and pages by frequency", runs::open),
];

/// `runs` without one of its parts each: the difference is what the part gives.
pub const PARTS: &[Definition] = &[
    policy("runs-single", 512, "each miss fetches one block", |shape| {
        Parts { runs: false, ..ALL }.open(shape)
    }),
    policy("runs-no-ahead", 512, "no fetches ahead", |shape| Parts { ahead: false, ..ALL }.open(shape)),
    policy("runs-no-regions", 512, "nothing learned by region", |shape| {
        Parts { regions: false, ..ALL }.open(shape)
    }),
    policy("runs-oldest", 512, "the device drops the oldest block", |shape| {
        Parts { frequency: false, ..ALL }.open(shape)
    }),
    policy("runs-no-host", 512, "one tier: no pages in the host", |shape| {
        Parts { host: false, ..ALL }.open(shape)
    }),
    policy("runs-any-page", 512, "each page of which half is here moves to the host", |shape| {
        Parts { choosy: false, ..ALL }.open(shape)
    }),
];

const ALL: Parts = Parts::ALL;
