//! Memory of this process, as a baseline for other ways.

use super::{Abilities, Attachment, Held, Opened, Operation, Order, Outcome, Remote, RemoteError, Shape};
use super::{Opcode, Status, WordOrder, Written};
use p4rack_netdev::clock;
use p4rack_wire::Nanos;
use std::collections::VecDeque;
use std::time::Duration;

/// Maximum bytes of an operation.
const BYTES_MAX: u32 = 1 << 24;
/// Maximum pieces of an operation.
const PIECES_MAX: usize = 4_096;
/// Maximum operations that have ended and were not delivered.
const ENDED_MAX: usize = 65_536;

/// An ended operation, until it is delivered.
#[derive(Debug)]
enum Ended {
    Read(Vec<u8>),
    Written,
    Word(u64),
}

/// A region in this process: operations take effect when they are submitted.
#[derive(Debug)]
pub struct Local {
    abilities: Abilities,
    bytes: Vec<u8>,
    ended: VecDeque<(u64, Ended)>,
}

impl Local {
    /// A region of zeros.
    pub fn new(region_bytes: u64) -> Local {
        let abilities = Abilities {
            region_bytes,
            read_bytes_max: BYTES_MAX,
            write_bytes_max: BYTES_MAX,
            whole_bytes: BYTES_MAX,
            edge_bytes: u64::MAX,
            pieces_max: PIECES_MAX,
            under_way_max: ENDED_MAX,
            atomics: &Opcode::ALL,
            words: WordOrder::BigEndian,
            writes: Written::There,
            order: Order::Program,
        };
        Local { abilities, bytes: vec![0; region_bytes as usize], ended: VecDeque::new() }
    }

    /// Its bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Remote for Local {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
        self.abilities.check(&operation)?;
        if self.ended.len() >= ENDED_MAX {
            return Err(Status::Full);
        }
        let ended = match operation {
            Operation::Read { at, bytes } => {
                Ended::Read(self.bytes[at as usize..][..bytes as usize].to_vec())
            }
            Operation::Write { at, bytes } => {
                self.bytes[at as usize..][..bytes.len()].copy_from_slice(bytes);
                Ended::Written
            }
            Operation::Gather { pieces } => {
                let mut all = Vec::new();
                for piece in pieces {
                    all.extend_from_slice(&self.bytes[piece.at as usize..][..piece.bytes as usize]);
                }
                Ended::Read(all)
            }
            Operation::Scatter { pieces, mut bytes } => {
                for piece in pieces {
                    let (one, rest) = bytes.split_at(piece.bytes as usize);
                    self.bytes[piece.at as usize..][..one.len()].copy_from_slice(one);
                    bytes = rest;
                }
                Ended::Written
            }
            Operation::Modify { at, opcode, operands } => {
                let word = &mut self.bytes[at as usize..][..8];
                let mut old = [0; 8];
                old.copy_from_slice(word);
                let old = u64::from_be_bytes(old);
                word.copy_from_slice(&opcode.apply(old, operands).to_be_bytes());
                Ended::Word(old)
            }
        };
        self.ended.push_back((tag, ended));
        Ok(())
    }

    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        if self.ended.is_empty() {
            std::thread::sleep(Duration::from_nanos(until.saturating_sub(clock::now()).0));
        }
        for (tag, end) in self.ended.drain(..) {
            ended(
                tag,
                match &end {
                    Ended::Read(bytes) => Outcome::Read(bytes),
                    Ended::Written => Outcome::Written,
                    Ended::Word(word) => Outcome::Word(*word),
                },
            );
        }
        Ok(())
    }
}

/// Opens fresh memory.
pub(super) fn open(_attachment: Attachment, shape: Shape) -> Result<Opened, RemoteError> {
    Ok((Box::new(Local::new(shape.region_bytes)), Held(None)))
}
