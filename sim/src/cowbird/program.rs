//! A program that asks from outside, on a compute node.

use super::thread::RecordPath;
use std::collections::VecDeque;

/// A request to the pool.
#[derive(Debug)]
pub(super) struct Posted {
    pub tag: u64,
    pub address: u64,
    /// Bytes of a read, or none and those that are written.
    pub read: u32,
    pub written: Vec<u8>,
}

/// A program of a compute node.
#[derive(Debug)]
pub(super) struct Program {
    pub path: RecordPath,
    /// When its core is free to post.
    pub free_ps: u64,
    /// Requests that the core is about to post.
    pub posting: VecDeque<Posted>,
    /// Numbers of requests under way, in order: those of a queue pair, or Cowbird's reads and its writes.
    pub reads: VecDeque<u64>,
    pub writes: VecDeque<u64>,
    /// Ends that the core is about to see.
    pub seen: VecDeque<(u64, Option<Vec<u8>>)>,
}

impl Program {
    pub fn new(path: RecordPath) -> Program {
        Program {
            path,
            free_ps: 0,
            posting: VecDeque::new(),
            reads: VecDeque::new(),
            writes: VecDeque::new(),
            seen: VecDeque::new(),
        }
    }
}
