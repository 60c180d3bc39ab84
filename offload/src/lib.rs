//! Offloads of a board of Clio: functions next to the memory, so that a compute node needs one exchange where it would need several
//! (paper §4.6 and §6).
//!
//! ```text
//!   CALL ─▶ Board ── poll_call ─▶ Offloads ─▶ PointerChase, Kv
//!             ▲                                  │ reads and writes virtual addresses,
//!             └────────── finish_call ◀──────────┘ of its own process and of the caller's
//! ```
//!
//! An offload has a process of its own, with an address space like any other. It sees memory through a [`View`], which checks rights and
//! counts what a call reads; a call that reads too much is stopped.
//!
//! A function either changes memory and returns nothing, or returns something and changes nothing. So the board's memory of executed
//! requests serves calls as it serves writes: a retry of the former gets the first result, a retry of the latter is executed again.

mod chase;
mod kv;

pub use chase::{Chase, PointerChase};
pub use kv::{Kv, KvArguments, KvFunction, VALUE_BYTES_MAX};

use p4rack_fabric::clio::board::{Board, Memory, Space, View};
use p4rack_wire::Nanos;
use p4rack_wire::clio::Status;

/// A call, as an offload sees it.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The caller's process.
    pub caller: Space,
    /// The offload's function.
    pub function: u8,
    /// Arguments: the data of the request.
    pub arguments: &'a [u8],
}

/// Functions next to the memory.
pub trait Offload: Send {
    /// Executes a call, and appends its results to `results`. Errors: the status of the answer; then nothing has changed.
    fn call(&mut self, call: &Call<'_>, view: &mut dyn View, results: &mut Vec<u8>) -> Result<(), Status>;
}

/// The offloads of a board, by number.
#[derive(Default)]
pub struct Offloads {
    list: Vec<(Space, Box<dyn Offload>)>,
    results: Vec<u8>,
}

impl Offloads {
    /// Adds an offload, with its own process. Returns its number, for `Header.address` of calls.
    pub fn add(&mut self, own: Space, offload: Box<dyn Offload>) -> u64 {
        self.list.push((own, offload));
        self.list.len() as u64 - 1
    }

    /// Executes all calls that wait at a board.
    pub fn serve<M: Memory, P: Copy + Send>(&mut self, board: &mut Board<M, P>, now: Nanos) {
        while let Some(call) = board.poll_call() {
            self.results.clear();
            let ended = match usize::try_from(call.offload()).ok().and_then(|nth| self.list.get_mut(nth)) {
                None => Err(Status::NoSuchOffload),
                Some((own, offload)) => {
                    let mut view = board.view(*own, &call);
                    let called =
                        Call { caller: call.caller, function: call.function(), arguments: call.arguments() };
                    offload.call(&called, &mut view, &mut self.results)
                }
            };
            board.finish_call(call, ended, &self.results, now);
        }
    }
}
