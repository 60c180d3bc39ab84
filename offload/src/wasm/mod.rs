//! Offloads as WebAssembly modules: a user's own code at the board.
//!
//! ```text
//!   module ── Program::new: checked and translated, once ─▶ Program
//!                                                             │ a fresh instance for each call
//!   call ─▶ arguments ─▶ call(function, bytes) ─▶ status ─────┘
//!             host functions: read and write virtual memory, results
//! ```
//!
//! A module exports `memory` and `call: (function: i32, argument_bytes: i32) -> i32`, and imports from module `clio` what it needs:
//!
//! | import | type | does |
//! |---|---|---|
//! | `arguments` | (into: i32) | copies the call's arguments into the module's memory |
//! | `read` | (space: i32, address: i64, into: i32, bytes: i32) -> i32 | reads virtual memory of space 0 (own) or 1 (the caller's) |
//! | `write` | (space: i32, address: i64, from: i32, bytes: i32) -> i32 | writes it |
//! | `result` | (from: i32, bytes: i32) | appends to the call's results |
//! | `own_start`, `own_bytes` | () -> i64 | the offload's own range |
//!
//! `call` returns 0, or the number of a [`Status`]; `read` and `write` return the same. An instance lives for one call,
//! so lasting state has to be in virtual memory. A call that traps, uses up its fuel, or returns something else ends as
//! [`OffloadFailed`](Status::OffloadFailed). It either writes or has results: after the one, the other traps.
//!
//! A long call runs in slices, between which the board does other work. Calls of one offload don't overlap.

mod host;
mod program;

pub use program::{LoadError, Program};

use crate::{Call, Offload, Step};
use host::{Access, Ask, Host};
use p4rack_fabric::clio::board::{Space, View};
use p4rack_wire::clio::Status;
use wasmi::{Func, Memory, ResumableCall, ResumableCallOutOfFuel, Store, Val};

/// Limits of a module and its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the module.
    pub module_bytes: usize,
    /// Bytes of an instance's memory.
    pub memory_bytes: usize,
    /// Bytes of a call's results.
    pub result_bytes: usize,
    /// Fuel of a call: about an instruction each, and one for 8 bytes that are read or written.
    pub fuel: u64,
    /// Fuel after which other work of the board has its turn.
    pub slice_fuel: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            module_bytes: 256 << 10,
            memory_bytes: 1 << 20,
            result_bytes: 1 << 16,
            fuel: 2_000_000,
            slice_fuel: 10_000,
        }
    }
}

/// Exports that a module needs.
const MEMORY: &str = "memory";
const CALL: &str = "call";
/// Fuel of an access of virtual memory.
const ACCESS_FUEL: u64 = 100;

/// A call under way.
struct Run {
    caller: Space,
    id: u64,
    store: Store<Host>,
    memory: Memory,
    /// Fuel of the call beside the fuel in the store.
    fuel: u64,
    output: [Val; 1],
}

/// Where a call goes on.
enum At {
    Begin(Func),
    Next(ResumableCallOutOfFuel),
}

/// How a slice ended.
enum Slice {
    Paused(ResumableCallOutOfFuel),
    /// `call` has returned this.
    Ended(i32),
}

/// A module as an offload.
pub struct Wasm {
    program: Program,
    own: Space,
    /// Address and bytes of its own range.
    range: (u64, u64),
    run: Option<(Run, At)>,
    failure: Option<String>,
}

impl Wasm {
    /// A program as an offload with a process and a range of its own.
    pub fn new(program: Program, own: Space, range: (u64, u64)) -> Wasm {
        Wasm { program, own, range, run: None, failure: None }
    }

    fn begin(&self, call: &Call<'_>) -> Result<(Run, At), String> {
        let limits = *self.program.limits();
        let mut store = self.program.store(Host::new(call.arguments, self.range, &limits));
        let first = limits.slice_fuel.min(limits.fuel);
        store.set_fuel(first).map_err(in_words)?;
        let instance = self.program.instance(&mut store)?;
        let memory = instance.get_memory(&store, MEMORY).ok_or("it has no memory")?;
        let entry = instance.get_func(&store, CALL).ok_or("it has no function `call`")?;
        let (fuel, output) = (limits.fuel - first, [Val::I32(0)]);
        Ok((Run { caller: call.caller, id: call.id, store, memory, fuel, output }, At::Begin(entry)))
    }

    /// Runs a call until it ends or its slice does. Errors: why it has failed.
    fn slice(&self, run: &mut Run, at: At, call: &Call<'_>, view: &mut dyn View) -> Result<Slice, String> {
        let mut state = match at {
            At::Begin(entry) => {
                let inputs = [Val::I32(call.function.into()), Val::I32(call.arguments.len() as i32)];
                entry.call_resumable(&mut run.store, &inputs, &mut run.output)
            }
            At::Next(at) => {
                run.refuel(at.required_fuel(), self.program.limits().slice_fuel)?;
                at.resume(&mut run.store, &mut run.output)
            }
        };
        loop {
            state = match state.map_err(in_words)? {
                ResumableCall::Finished => {
                    let status = run.output[0].i32();
                    return status.map(Slice::Ended).ok_or("`call` returned no i32".to_owned());
                }
                ResumableCall::OutOfFuel(at) => return Ok(Slice::Paused(at)),
                ResumableCall::HostTrap(at) => {
                    let Some(ask) = at.host_error().downcast_ref::<Ask>().copied() else {
                        return Err(at.host_error().to_string());
                    };
                    let status = run.access(self.own, ask, view)?;
                    at.resume(&mut run.store, &[Val::I32(status as i32)], &mut run.output)
                }
            };
        }
    }
}

impl Run {
    /// Puts the fuel of a slice into the store, and at least `required`.
    fn refuel(&mut self, required: u64, slice: u64) -> Result<(), String> {
        let more = required.max(slice).min(self.fuel);
        if more == 0 || more < required {
            return Err("it has used up its fuel".to_owned());
        }
        self.fuel -= more;
        let left = self.store.get_fuel().map_err(in_words)?;
        self.store.set_fuel(left.saturating_add(more)).map_err(in_words)
    }

    /// Takes fuel, of which a call may have a little less than none: then it ends when the rest is due.
    fn charge(&mut self, cost: u64) -> Result<(), String> {
        let left = self.store.get_fuel().map_err(in_words)?;
        let rest = cost.saturating_sub(left);
        self.fuel = self.fuel.checked_sub(rest).ok_or("it has used up its fuel")?;
        self.store.set_fuel(left.saturating_sub(cost)).map_err(in_words)
    }

    /// Accesses virtual memory for the module.
    fn access(&mut self, own: Space, ask: Ask, view: &mut dyn View) -> Result<Status, String> {
        let (is_write, Access { space, address, at, bytes }) = match ask {
            Ask::Read(access) => (false, access),
            Ask::Write(access) => (true, access),
        };
        self.charge(ACCESS_FUEL + u64::from(bytes) / 8)?;
        let space = match space {
            0 => own,
            1 => self.caller,
            _ => return Err(format!("it names space {space}: there are 0, its own, and 1, the caller's")),
        };
        let memory = self.memory.data_mut(&mut self.store);
        let place =
            (at as usize).checked_add(bytes as usize).and_then(|end| memory.get_mut(at as usize..end));
        let place = place.ok_or_else(|| format!("{bytes} bytes at {at:#x} are outside of its memory"))?;
        let done =
            if is_write { view.write(space, address, place) } else { view.read(space, address, place) };
        Ok(done.err().unwrap_or(Status::Done))
    }
}

impl Offload for Wasm {
    fn call(&mut self, call: &Call<'_>, view: &mut dyn View, results: &mut Vec<u8>) -> Result<Step, Status> {
        let begun = match self.run.take() {
            Some((run, at)) if (run.caller, run.id) == (call.caller, call.id) => Ok((run, at)),
            Some(other) => {
                self.run = Some(other);
                return Ok(Step::Blocked);
            }
            None => self.begin(call),
        };
        let ended = begun.and_then(|(mut run, at)| Ok((self.slice(&mut run, at, call, view)?, run)));
        match ended {
            Ok((Slice::Paused(at), run)) => {
                self.run = Some((run, At::Next(at)));
                Ok(Step::Later)
            }
            Ok((Slice::Ended(0), run)) => {
                results.extend_from_slice(&run.store.into_data().results);
                Ok(Step::Ended)
            }
            Ok((Slice::Ended(status), run)) => match u8::try_from(status).ok().and_then(Status::of) {
                // A client repeats a call that failed for a time.
                Some(status) if status.is_temporary() && run.store.data().has_written => {
                    let why = status.name().replace('_', " ");
                    self.failure = Some(format!("`call` returned {why}, after it had written"));
                    Err(Status::OffloadFailed)
                }
                Some(status) => Err(status),
                None => {
                    self.failure = Some(format!("`call` returned {status}, which is no status"));
                    Err(Status::OffloadFailed)
                }
            },
            Err(why) => {
                self.failure = Some(why);
                Err(Status::OffloadFailed)
            }
        }
    }

    fn forget(&mut self, caller: Space) {
        self.run = self.run.take().filter(|(run, _)| run.caller != caller);
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}

fn in_words(error: wasmi::Error) -> String {
    error.to_string()
}
