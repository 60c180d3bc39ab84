//! Architectures: the facts that translation and execution share.
//!
//! An architecture has three modules, each a leaf of its user: one here, one in `compile/arch` that translates its
//! blocks, and one in `switch/arch` that takes packets through them. To add one, write these modules, list it in
//! [`Arch`] and [`each!`], and add its arms to `compile/arch/mod.rs` and `switch/arch/mod.rs`. Code that all
//! architectures share is elsewhere: counting arrivals (`switch/arrival.rs`), queues (`tm.rs`), saving variables and
//! ending packets (`switch/packets.rs`).

pub(crate) mod tna;
pub(crate) mod v1model;

use crate::code::plans::ErrorNumbers;
use crate::config::Config;
use crate::error::CompileError;
use p4rack_p4::ir::{ExternCall, Intrinsic, Program};
use tna::Tna;
use v1model::V1model;

/// Facts about an architecture.
trait Architecture {
    /// The name that the front end uses.
    const NAME: &'static str;
    /// The fields that the switch writes and reads.
    const FIELDS: Fields;

    /// Whether the program is written for it.
    fn runs(program: &Program) -> bool {
        program.arch == Self::NAME
    }
    /// Bytes that the device puts in front of a frame that has come in.
    const PREFIX_BYTES: usize = 0;
    /// Numbers of the parser's errors, if they are not the program's.
    const ERRORS: Option<ErrorNumbers> = None;
    /// Whether a header that becomes valid has the fields that were written before; if not, they are 0.
    const KEEPS_FIELDS: bool = false;
    /// Ports that the architecture adds to those of the configuration; frames sent there come back.
    fn loops(_ports: &mut dyn Iterator<Item = u16>) -> Vec<u16> {
        Vec::new()
    }
    /// Number of pipes that have entries and cells of their own.
    fn pipes(_config: &Config) -> usize {
        1
    }
    /// Name in a trace of a call that decides where the packet goes. `None` for other calls.
    fn trace_name(call: &ExternCall) -> Option<&'static str>;
    /// Meaning of a value of [`Intrinsic::Origin`].
    fn origin(number: u32) -> &'static str;
}

/// Intrinsic fields by how the switch uses them.
pub(crate) struct Fields {
    /// Fields that code writes without a statement of the program: cleared for each packet, like those that the program
    /// mentions. Others stay 0.
    pub implied: &'static [Intrinsic],
    /// Fields that the switch reads behind ingress, and behind egress.
    pub read: [&'static [Intrinsic]; 2],
    /// Fields that the switch writes before a packet's first block.
    pub written: &'static [Intrinsic],
    /// Fields that describe the queue that a packet has passed.
    pub queue: &'static [Intrinsic],
    /// Other fields that hold times.
    pub times: &'static [Intrinsic],
    /// Whether variables travel through the queue; if not, the half behind it parses the output of the deparser before.
    pub travel: bool,
}

/// All architectures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arch {
    V1model,
    Tna,
    SecondTna,
}

/// Evaluates an expression with `$a` as the type that implements the architecture.
macro_rules! each {
    ($arch:expr, $a:ident => $does:expr) => {
        match $arch {
            Arch::V1model => {
                type $a = V1model;
                $does
            }
            Arch::Tna => {
                type $a = Tna<false>;
                $does
            }
            Arch::SecondTna => {
                type $a = Tna<true>;
                $does
            }
        }
    };
}

impl Arch {
    const ALL: [Arch; 3] = [Arch::V1model, Arch::Tna, Arch::SecondTna];

    /// The architecture of a program.
    pub fn of(program: &Program) -> Result<Arch, CompileError> {
        let runs = |arch: &Arch| each!(arch, A => A::runs(program));
        Arch::ALL.into_iter().find(runs).ok_or_else(|| CompileError::Unsupported {
            object: program.name.clone(),
            what: format!("architecture {}", program.arch),
            help: format!("write it for {}", Arch::ALL.map(|arch| each!(arch, A => A::NAME)).join(" or ")),
        })
    }

    /// Numbers of the parser's errors, if they are not the program's.
    pub fn errors(self) -> Option<ErrorNumbers> {
        each!(self, A => A::ERRORS)
    }

    /// Bytes that the device puts in front of a frame that has come in.
    pub fn prefix_bytes(self) -> usize {
        each!(self, A => A::PREFIX_BYTES)
    }

    /// Whether a header that becomes valid has the fields that were written before; if not, they are 0.
    pub fn keeps_fields(self) -> bool {
        each!(self, A => A::KEEPS_FIELDS)
    }

    /// Ports that come back, beside these.
    pub fn loops(self, ports: &mut dyn Iterator<Item = u16>) -> Vec<u16> {
        each!(self, A => A::loops(ports))
    }

    /// Number of pipes that have entries and cells of their own.
    pub fn pipes(self, config: &Config) -> usize {
        each!(self, A => A::pipes(config))
    }

    pub fn fields(self) -> &'static Fields {
        each!(self, A => &A::FIELDS)
    }

    pub fn trace_name(self, call: &ExternCall) -> Option<&'static str> {
        each!(self, A => A::trace_name(call))
    }

    pub fn origin(self, number: u32) -> &'static str {
        each!(self, A => A::origin(number))
    }
}
