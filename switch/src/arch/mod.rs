//! Architectures: which fields a program and the switch exchange, and what happens to a packet after each
//! block.
//!
//! To add one, implement [`Architecture`] in a module beside [`v1model`] and list it in [`Arch`]. Calls go
//! through the enum and are inlined, so a frame pays no indirect call. What all architectures share is
//! elsewhere: counting arrivals (`arrival.rs`), queues (`tm.rs`), saving variables and ending packets
//! (`packets.rs`).

mod v1model;

use crate::compile::Builder;
use crate::error::CompileError;
use crate::pool::PacketId;
use crate::switch::Switch;
use crate::trace::Origin;
use p4rack_p4::ir::{ExternCall, Intrinsic, Program};
use p4rack_wire::Nanos;
use v1model::V1model;

/// What the switch has to know about an architecture.
trait Architecture {
    /// The name that the front end uses.
    const NAME: &'static str;
    /// The fields that the switch writes and reads.
    const FIELDS: Fields;

    /// Translates the blocks to entries, in the order by which the other functions number them.
    fn compile(builder: &mut Builder<'_>) -> Result<(), CompileError>;
    /// Translates dropping a packet.
    fn drop(builder: &mut Builder<'_>);
    /// How a trace names a call that decides where the packet goes. `None` for other calls.
    fn told(call: &ExternCall) -> Option<&'static str>;
    /// Meaning of a value of [`Intrinsic::Origin`].
    fn origin(number: u32) -> &'static str;

    /// Processes the frame in [`Switch::arrival`], which is already counted. With `THROUGH`, a frame whose
    /// egress port is idle is left in `out` and its port returned; without, every frame goes to a queue. With
    /// `GIVEN`, the frame may be sent from the buffer in which it came.
    fn arrive<const THROUGH: bool, const GIVEN: bool>(
        switch: &mut Switch,
        port: u16,
        now: Nanos,
        out: &mut Vec<u8>,
    ) -> Option<u16>;
    /// Runs ingress for a packet of the pool.
    fn ingress(switch: &mut Switch, id: PacketId, now: Nanos);
    /// Runs egress for a packet that has left the queue of the port at position `at`; `left` packets remain
    /// in it. Returns true if `out` holds the frame to send, in which case the caller still owns the packet,
    /// and false if the packet went elsewhere.
    fn egress(switch: &mut Switch, id: PacketId, at: usize, left: u64, now: Nanos, out: &mut Vec<u8>)
    -> bool;
}

/// Intrinsic fields by how the switch uses them.
pub(crate) struct Fields {
    /// Fields that the switch reads, whatever the program does.
    pub read: &'static [Intrinsic],
    /// Fields that the switch writes before a packet's first block.
    pub written: &'static [Intrinsic],
    /// Fields that describe the queue that a packet has passed.
    pub queue: &'static [Intrinsic],
    /// Other fields that hold times.
    pub times: &'static [Intrinsic],
}

/// All architectures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arch {
    V1model,
}

/// Evaluates an expression with `$a` as the type that implements the architecture.
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
