//! Programs on a graph whose vertices have few neighbours or very many.

use super::popularity::{Popularity, shuffled};
use super::{Heap, Ran, Sink, within};
use crate::Access;
use p4rack_wire::SplitMix;
use serde::Deserialize;

/// Rounds of PageRank.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pagerank {
    #[serde(default)]
    pub(super) seed: u64,
    vertices: u64,
    edges_per_vertex: u64,
    rounds: u64,
}

/// Greedy colouring.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Colouring {
    #[serde(default)]
    pub(super) seed: u64,
    vertices: u64,
    edges_per_vertex: u64,
    rounds: u64,
}

fn check(vertices: u64, edges_per_vertex: u64, rounds: u64) -> Result<(), String> {
    within("vertices", vertices, 2, 1 << 26)?;
    within("edges_per_vertex", edges_per_vertex, 1, 1 << 10)?;
    within("vertices × edges_per_vertex", vertices * edges_per_vertex, 1, 1 << 28)?;
    within("rounds", rounds, 1, 1 << 20)
}

/// For each vertex the same number of neighbours; how often a vertex is a neighbour falls as a power of its rank.
struct Graph {
    vertices: u64,
    edges_per_vertex: u64,
    neighbours: Vec<u32>,
    /// Addresses: where each vertex's list starts, the lists, and two values of each vertex.
    offsets: u64,
    lists: u64,
    values: [u64; 2],
}

const OFFSET_BYTES: u64 = 8;
const NEIGHBOUR_BYTES: u64 = 4;
const EXPONENT: f64 = 0.8;

impl Graph {
    fn new(seed: u64, vertices: u64, edges_per_vertex: u64, value_bytes: u64) -> Graph {
        let mut random = SplitMix(seed);
        let popularity = Popularity::new(vertices, EXPONENT);
        let names = shuffled(vertices, &mut random);
        let edges = vertices * edges_per_vertex;
        let neighbours = (0..edges).map(|_| names[popularity.sample(&mut random)]).collect();
        let mut heap = Heap::new();
        Graph {
            vertices,
            edges_per_vertex,
            neighbours,
            offsets: heap.array(vertices + 1, OFFSET_BYTES),
            lists: heap.array(edges, NEIGHBOUR_BYTES),
            values: [heap.array(vertices, value_bytes), heap.array(vertices, value_bytes)],
        }
    }

    /// One pass over all vertices: reads each one's neighbours and their values in `from`, writes its own in `to`.
    fn pass(&self, from: u64, to: u64, value_bytes: u64, sink: Sink<'_>) -> Ran {
        let access = |address, bytes: u64, write| Access { address, bytes: bytes as u32, write, thread: 0 };
        for vertex in 0..self.vertices {
            sink(access(self.offsets + vertex * OFFSET_BYTES, 2 * OFFSET_BYTES, false))?;
            let first = vertex * self.edges_per_vertex;
            for edge in first..first + self.edges_per_vertex {
                sink(access(self.lists + edge * NEIGHBOUR_BYTES, NEIGHBOUR_BYTES, false))?;
                let neighbour = u64::from(self.neighbours[edge as usize]);
                sink(access(from + neighbour * value_bytes, value_bytes, false))?;
            }
            sink(access(to + vertex * value_bytes, value_bytes, true))?;
        }
        Ran::Continue(())
    }
}

impl Pagerank {
    pub(super) fn check(&self) -> Result<(), String> {
        check(self.vertices, self.edges_per_vertex, self.rounds)
    }

    pub(super) fn run(&self, sink: Sink<'_>) -> Ran {
        // A rank, and the share of it that each neighbour gets.
        const VALUE_BYTES: u64 = 16;
        let graph = Graph::new(self.seed, self.vertices, self.edges_per_vertex, VALUE_BYTES);
        for round in 0..self.rounds as usize {
            let (from, to) = (graph.values[round % 2], graph.values[(round + 1) % 2]);
            graph.pass(from, to, VALUE_BYTES, sink)?;
        }
        Ran::Continue(())
    }
}

impl Colouring {
    pub(super) fn check(&self) -> Result<(), String> {
        check(self.vertices, self.edges_per_vertex, self.rounds)
    }

    pub(super) fn run(&self, sink: Sink<'_>) -> Ran {
        const COLOUR_BYTES: u64 = 4;
        let graph = Graph::new(self.seed, self.vertices, self.edges_per_vertex, COLOUR_BYTES);
        for _ in 0..self.rounds {
            graph.pass(graph.values[0], graph.values[0], COLOUR_BYTES, sink)?;
        }
        Ran::Continue(())
    }
}
