//! Architectures: what the switch tells a program and reads from it, and what becomes of a packet after each block.
//!
//! To add one, implement [`Architecture`] in a module beside [`v1model`] and name it in [`Arch`]. Calls go through the
//! enum and are inlined: a frame pays no indirect call. What all share is elsewhere: counting arrivals
//! (`arrival.rs`), queues (`tm.rs`), keeping variables and ending packets (`packets.rs`).

mod v1model;

use crate::compile::Builder;
use crate::error::CompileError;
use crate::pool::PacketId;
use crate::switch::Switch;
use crate::trace::Origin;
use p4rack_p4::ir::{ExternCall, Intrinsic, Program};
use p4rack_wire::Nanos;
use v1model::V1model;

/// What an architecture means to the switch.
trait Architecture {
    /// As the front end names it.
    const NAME: &'static str;
    /// What the switch writes and reads.
    const FIELDS: Fields;

    /// Lays the blocks out as entries, in the order in which the other functions count them.
    fn compile(builder: &mut Builder<'_>) -> Result<(), CompileError>;
    /// What drops a packet.
    fn drop(builder: &mut Builder<'_>);
    /// The name by which a trace tells of a call, if it is one that decides on the packet's way.
    fn told(call: &ExternCall) -> Option<&'static str>;
    /// What a number in [`Intrinsic::Origin`] means.
    fn origin(number: u32) -> &'static str;

    /// The frame in [`Switch::arrival`] has come in and is counted. `THROUGH`: what is to be sent at once is in `out`, on
    /// its way from the port given; else all of it waits. `GIVEN`: the frame may be sent in the buffer in which it came.
    fn arrive<const THROUGH: bool, const GIVEN: bool>(
        switch: &mut Switch,
        port: u16,
        now: Nanos,
        out: &mut Vec<u8>,
    ) -> Option<u16>;
    /// A packet of the pool begins its way.
    fn ingress(switch: &mut Switch, id: PacketId, now: Nanos);
    /// A packet has left the queue of the port at this position, in which `left` wait on. True: `out` is the frame to
    /// send and the packet is still the caller's. False: it went elsewhere.
    fn egress(switch: &mut Switch, id: PacketId, at: usize, left: u64, now: Nanos, out: &mut Vec<u8>)
    -> bool;
}

/// Intrinsic fields by what the switch does with them.
pub(crate) struct Fields {
    /// It reads them whatever the program does.
    pub read: &'static [Intrinsic],
    /// It writes them before a packet's first block.
    pub written: &'static [Intrinsic],
    /// They tell of the queue that a packet has passed.
    pub queue: &'static [Intrinsic],
    /// Other times.
    pub times: &'static [Intrinsic],
}

/// All architectures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arch {
    V1model,
}

/// Does something with the architecture's own implementation.
macro_rules! each {
    ($arch:expr, $a:ident => $does:expr) => {
        match $arch {
            Arch::V1model => {
                type $a = V1model;
                $does
            }
        }
    };
}

impl Arch {
    const ALL: [Arch; 1] = [Arch::V1model];

    /// The architecture of a program.
    pub fn of(program: &Program) -> Result<Arch, CompileError> {
        let named = |arch: &Arch| each!(arch, A => A::NAME) == program.arch;
        Arch::ALL.into_iter().find(named).ok_or_else(|| CompileError::Unsupported {
            object: program.name.clone(),
            what: format!("architecture {}", program.arch),
            help: format!("write it for {}", Arch::ALL.map(|arch| each!(arch, A => A::NAME)).join(" or ")),
        })
    }

    pub fn fields(self) -> &'static Fields {
        each!(self, A => &A::FIELDS)
    }

    pub fn compile(self, builder: &mut Builder<'_>) -> Result<(), CompileError> {
        each!(self, A => A::compile(builder))
    }

    pub fn drop(self, builder: &mut Builder<'_>) {
        each!(self, A => A::drop(builder));
    }

    pub fn told(self, call: &ExternCall) -> Option<&'static str> {
        each!(self, A => A::told(call))
    }

    pub fn origin(self, number: u32) -> Origin {
        Origin { number, name: each!(self, A => A::origin(number)) }
    }

    #[inline(always)]
    pub fn arrive<const THROUGH: bool, const GIVEN: bool>(
        self,
        switch: &mut Switch,
        port: u16,
        now: Nanos,
        out: &mut Vec<u8>,
    ) -> Option<u16> {
        each!(self, A => A::arrive::<THROUGH, GIVEN>(switch, port, now, out))
    }

    pub fn ingress(self, switch: &mut Switch, id: PacketId, now: Nanos) {
        each!(self, A => A::ingress(switch, id, now));
    }

    #[inline(always)]
    pub fn egress(
        self,
        switch: &mut Switch,
        id: PacketId,
        at: usize,
        left: u64,
        now: Nanos,
        out: &mut Vec<u8>,
    ) -> bool {
        each!(self, A => A::egress(switch, id, at, left, now, out))
    }
}
