//! Synthetic traces: programs' accesses without the programs. A seed and a few parameters in TOML give the same trace everywhere.
//!
//! | `kind` | what runs |
//! |---|---|
//! | `ycsb` | YCSB A, B or C on a store: a bucket of the index, an entry, the record's fields |
//! | `uniform` | objects of equal size, each equally likely: Redis under `memtier` |
//! | `etc` | a store with Facebook's ETC keys, as `mutilate` makes them |
//! | `pagerank` | rounds of PageRank on a power-law graph |
//! | `colouring` | greedy colouring of such a graph |
//! | `regression` | passes over rows, by several threads |
//! | `mix` | several of these in turn, each with memory of its own |

mod graph;
mod popularity;
mod regression;
mod store;

use crate::{Access, TraceError};
use serde::Deserialize;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

/// Description of a synthetic trace.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Recipe {
    /// YCSB.
    Ycsb(store::Ycsb),
    /// Objects of equal size.
    Uniform(store::Uniform),
    /// Facebook's ETC.
    Etc(store::Etc),
    /// PageRank.
    Pagerank(graph::Pagerank),
    /// Greedy colouring.
    Colouring(graph::Colouring),
    /// Linear regression.
    Regression(regression::Regression),
    /// Several at the same time.
    Mix(Mix),
}

/// Several programs on one machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    /// Accesses of one before the next one's turn.
    #[serde(default = "turn")]
    turn: u32,
    parts: Vec<Recipe>,
}

fn turn() -> u32 {
    64
}

/// Where the accesses go, until it wants no more.
type Sink<'a> = &'a mut dyn FnMut(Access) -> ControlFlow<()>;
/// Result of a program that ran: to its end, or until its accesses were no longer wanted.
type Ran = ControlFlow<()>;

/// Memory of one program: addresses are given from the beginning on.
#[derive(Clone, Debug)]
struct Heap {
    end: u64,
}

impl Heap {
    fn new() -> Heap {
        // The first pages stay free, as in a process.
        Heap { end: 1 << 20 }
    }

    /// An array of `count` elements that starts a page.
    fn array(&mut self, count: u64, bytes: u64) -> u64 {
        let first = self.end.next_multiple_of(crate::PAGE_BYTES);
        self.end = first + count * bytes;
        first
    }
}

/// Largest count in a recipe.
const COUNT_MAX: u64 = 1 << 32;

/// Refuses a field that is not in a range.
fn within(field: &str, value: u64, from: u64, to: u64) -> Result<(), String> {
    if (from..=to).contains(&value) {
        return Ok(());
    }
    Err(format!("{field}: {value}; expected {from} to {to}: change it in the description"))
}

impl Recipe {
    /// Reads a description. `file` names it in errors.
    pub fn read(text: &str, file: &str) -> Result<Recipe, TraceError> {
        let wrong = |message: String| TraceError::Description { file: file.to_owned(), message };
        let recipe: Recipe = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        recipe.check(0).map_err(wrong)?;
        Ok(recipe)
    }

    fn check(&self, depth: u32) -> Result<(), String> {
        match self {
            Recipe::Ycsb(one) => one.check(),
            Recipe::Uniform(one) => one.check(),
            Recipe::Etc(one) => one.check(),
            Recipe::Pagerank(one) => one.check(),
            Recipe::Colouring(one) => one.check(),
            Recipe::Regression(one) => one.check(),
            Recipe::Mix(mix) => {
                within("turn", u64::from(mix.turn), 1, 1 << 20)?;
                within("parts", mix.parts.len() as u64, 1, 64)?;
                if depth > 0 {
                    return Err("parts: a mix in a mix; expected other kinds: list its parts here".into());
                }
                mix.parts.iter().try_for_each(|part| part.check(depth + 1))
            }
        }
    }

    /// Replaces the seed, of all parts if there are several. Nothing in `regression` is random.
    pub fn set_seed(&mut self, seed: u64) {
        match self {
            Recipe::Ycsb(one) => one.seed = seed,
            Recipe::Uniform(one) => one.seed = seed,
            Recipe::Etc(one) => one.seed = seed,
            Recipe::Pagerank(one) => one.seed = seed,
            Recipe::Colouring(one) => one.seed = seed,
            Recipe::Regression(_) => {}
            Recipe::Mix(mix) => mix.parts.iter_mut().for_each(|part| part.set_seed(seed)),
        }
    }

    /// The seed; none if nothing is random, or if the parts of a mix have different ones.
    pub fn seed(&self) -> Option<u64> {
        match self {
            Recipe::Ycsb(one) => Some(one.seed),
            Recipe::Uniform(one) => Some(one.seed),
            Recipe::Etc(one) => Some(one.seed),
            Recipe::Pagerank(one) => Some(one.seed),
            Recipe::Colouring(one) => Some(one.seed),
            Recipe::Regression(_) => None,
            Recipe::Mix(mix) => {
                let mut seeds = mix.parts.iter().filter_map(Recipe::seed);
                let first = seeds.next()?;
                seeds.all(|seed| seed == first).then_some(first)
            }
        }
    }

    /// Gives the accesses to `take`, until it returns false.
    pub fn make(&self, take: &mut dyn FnMut(Access) -> bool) {
        let mut sink = |access| if take(access) { Ran::Continue(()) } else { Ran::Break(()) };
        // Either way nothing more is wanted.
        let (ControlFlow::Continue(()) | ControlFlow::Break(())) = self.run(&mut sink);
    }

    fn run(&self, sink: Sink<'_>) -> Ran {
        match self {
            Recipe::Ycsb(one) => one.run(sink),
            Recipe::Uniform(one) => one.run(sink),
            Recipe::Etc(one) => one.run(sink),
            Recipe::Pagerank(one) => one.run(sink),
            Recipe::Colouring(one) => one.run(sink),
            Recipe::Regression(one) => one.run(sink),
            Recipe::Mix(mix) => mix.run(sink),
        }
    }
}

/// Accesses that a part of a mix makes at a time.
const CHUNK: usize = 4096;
/// Such chunks that wait for their turn.
const CHUNKS_MAX: usize = 2;

/// A part of a mix, which runs in a thread of its own, as far ahead as its chunks have room.
struct Part {
    chunks: Receiver<Vec<Access>>,
    chunk: std::vec::IntoIter<Access>,
}

impl Part {
    /// Starts a part. It ends when its accesses do, or when the part is dropped.
    fn start<'scope>(scope: &'scope thread::Scope<'scope, '_>, recipe: &'scope Recipe) -> Part {
        let (sender, chunks) = sync_channel(CHUNKS_MAX);
        scope.spawn(move || {
            let mut chunk = Vec::with_capacity(CHUNK);
            let ran = recipe.run(&mut |access| {
                chunk.push(access);
                let full = chunk.len() == CHUNK;
                if full && sender.send(std::mem::replace(&mut chunk, Vec::with_capacity(CHUNK))).is_err() {
                    return Ran::Break(());
                }
                Ran::Continue(())
            });
            // The receiver may be gone: then the rest is not wanted.
            if ran.is_continue() {
                let _ = sender.send(chunk);
            }
        });
        Part { chunks, chunk: Vec::new().into_iter() }
    }
}

impl Iterator for Part {
    type Item = Access;

    fn next(&mut self) -> Option<Access> {
        if self.chunk.len() == 0 {
            self.chunk = self.chunks.recv().ok()?.into_iter();
        }
        self.chunk.next()
    }
}

impl Mix {
    /// The parts take turns. None is held in memory as a whole: they may be of any length.
    fn run(&self, sink: Sink<'_>) -> Ran {
        thread::scope(|scope| {
            let mut parts: Vec<Part> = self.parts.iter().map(|part| Part::start(scope, part)).collect();
            let mut any = true;
            while std::mem::take(&mut any) {
                for (index, part) in parts.iter_mut().enumerate() {
                    for access in part.take(self.turn as usize) {
                        any = true;
                        // Each part in a terabyte of its own.
                        let address = access.address + ((index as u64) << 40);
                        sink(Access { address, thread: index as u16, ..access })?;
                    }
                }
            }
            Ran::Continue(())
        })
    }
}
