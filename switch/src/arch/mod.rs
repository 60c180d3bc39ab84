//! Architectures: the facts that translation and execution share.
//!
//! An architecture has three modules, each a leaf of what uses it: one here, one in `compile/arch` that
//! translates its blocks, and one in `switch/arch` that takes packets through them. To add one, write these
//! modules, list it in [`Arch`] and [`each!`], and add its arms to `compile/arch/mod.rs` and
//! `switch/arch/mod.rs`. What all architectures share is elsewhere: counting arrivals
//! (`switch/arrival.rs`), queues (`tm.rs`), saving variables and ending packets (`switch/packets.rs`).

pub(crate) mod v1model;

use crate::error::CompileError;
use p4rack_p4::ir::{ExternCall, Intrinsic, Program};
use v1model::V1model;

/// Facts about an architecture.
trait Architecture {
    /// The name that the front end uses.
    const NAME: &'static str;
    /// The fields that the switch writes and reads.
    const FIELDS: Fields;

    /// How a trace names a call that decides where the packet goes. `None` for other calls.
    fn told(call: &ExternCall) -> Option<&'static str>;
    /// Meaning of a value of [`Intrinsic::Origin`].
    fn origin(number: u32) -> &'static str;
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

    pub fn told(self, call: &ExternCall) -> Option<&'static str> {
        each!(self, A => A::told(call))
    }

    pub fn origin(self, number: u32) -> &'static str {
        each!(self, A => A::origin(number))
    }
}
