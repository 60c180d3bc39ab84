//! The list of policies.

use crate::artifact::{NoPromote, PageCache, UniMem};
use crate::{Block, Opened, Parts, Policy, Refused, Shape};
use crate::{arc, belady, filter, kona, lru, page_cache, runs, s3_fifo, sieve, tiny_lfu, two_q, unimem};

/// A policy as commands and files name it.
#[derive(Debug)]
pub struct Definition {
    /// Its name.
    pub name: &'static str,
    /// Description in a few words.
    pub about: &'static str,
    /// Bytes of a block in its paper.
    pub block_bytes: u32,
    /// Whether its system translates addresses on the way to local memory, which each access pays for.
    pub translates: bool,
    /// How its memory and its time are counted.
    pub counting: Counting,
    /// How to make it.
    pub build: Build,
}

/// How a simulation counts a policy's memory and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// Like all others: equal bytes, tables included, and time passes ([`simulate`](crate::simulate)).
    Equal,
    /// As the programs of UniMem's authors do ([`artifact`](crate::artifact)).
    Artifact {
        /// Its memory is N times the stated one.
        times: u32,
    },
}

/// Parameters of a policy.
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

/// Policies that simulations run: all with equal bytes, ours without its parts, and the variants of UniMem's authors.
pub fn simulated() -> impl Iterator<Item = &'static Definition> + Clone {
    POLICIES.iter().chain(PARTS).chain(ARTIFACT)
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
    let counting = Counting::Equal;
    Definition { name, about, block_bytes, translates: false, counting, build: Build::Online(build) }
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
        counting: Counting::Equal,
        build: Build::Offline(belady::open),
    },
    policy("runs", 512, "ours: fetches runs of blocks, keeps blocks and pages by frequency", runs::open),
];

/// `runs` without one of its parts each: the difference is the part's contribution.
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
    policy(
        "runs-no-fill",
        512,
        "only pages in frequent use move to the host, even while it has room",
        |shape| Parts { filled: false, ..ALL }.open(shape),
    ),
    policy("runs-fixed-split", 512, "with one memory, the host's share stays as given", |shape| {
        Parts { split: false, ..ALL }.open(shape)
    }),
];

const ALL: Parts = Parts::ALL;

/// The policies in the programs of UniMem's authors. They have more memory than they state, so don't compare them with
/// others at equal bytes.
pub const ARTIFACT: &[Definition] = &[
    Definition {
        translates: true,
        ..artifact("kona-artifact", 4096, 1, "Kona: 4 ways a set, FIFO", kona::fifo)
    },
    Definition {
        translates: true,
        ..artifact("kona-pc-artifact", 4096, 1, "Linux's page cache, with translation", |shape| {
            boxed(PageCache::open(shape))
        })
    },
    artifact("sr-rb-4sc-artifact", 4096, 1, "Kona's cache without translation", kona::fifo),
    artifact("unimem-nopromote-artifact", 512, 1, "UniMem's filter cache, 10 % inactive at most", |shape| {
        boxed(NoPromote::open(shape))
    }),
    artifact(
        "unimem-artifact",
        512,
        8,
        "UniMem with eight times the memory, pages move in 3.88 ns",
        |shape| boxed(UniMem::open(shape)),
    ),
];

const fn artifact(
    name: &'static str,
    block_bytes: u32,
    times: u32,
    about: &'static str,
    build: fn(&Shape) -> Opened,
) -> Definition {
    Definition { counting: Counting::Artifact { times }, ..policy(name, block_bytes, about, build) }
}

fn boxed(policy: Result<impl Policy + 'static, Refused>) -> Opened {
    Ok(Box::new(policy?))
}
