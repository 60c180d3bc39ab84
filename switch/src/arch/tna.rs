//! TNA, the native architecture of Tofino; `SECOND`: as the second generation has it.

use super::{Architecture, Fields};
use crate::code::plans::ErrorNumbers;
use crate::config::Config;
use p4rack_p4::ir::{ExternCall, Intrinsic, Program, Ty};
use std::collections::BTreeSet;

pub(super) struct Tna<const SECOND: bool>;

/// Entries of each pipeline.
pub(crate) const ENTRIES: usize = 2;
/// Parser, control and deparser before the queue.
pub(crate) const INGRESS: usize = 0;
/// Parser, control and deparser behind it.
pub(crate) const EGRESS: usize = 1;

/// Pipes of the largest device.
const MAX_PIPES: usize = 4;
/// Bits of a port's number within its pipe.
pub(crate) const LOCAL_BITS: u32 = 7;
/// Ports of each pipe that come back, of the first generation.
const LOOPS: [u16; 4] = [68, 69, 70, 71];
/// The same of the second generation; the first pipe has fewer, because the controller's ports are there.
const SECOND_LOOPS: [u16; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
const SECOND_FIRST_LOOPS: [u16; 3] = [1, 6, 7];

/// Values of [`crate::pool::Meta::origin`].
pub(crate) mod origin {
    pub const INGRESS_CLONE: u32 = 1;
    pub const EGRESS_CLONE: u32 = 2;
    pub const CAME_BACK: u32 = 3;
    pub const RESUBMITTED: u32 = 4;
    pub const REPLICATED: u32 = 5;
    pub const GENERATED: u32 = 6;
}

/// Bits of the parser's error: no transition, header longer than the packet, stack full.
const ERROR_NUMBERS: ErrorNumbers = ErrorNumbers {
    no_match: 1,
    packet_too_short: 2,
    header_too_short: 2,
    stack_out_of_bounds: 4,
    parser_invalid_argument: 0x20,
};

impl<const SECOND: bool> Architecture for Tna<SECOND> {
    const NAME: &'static str = if SECOND { "t2na" } else { "tna" };
    /// A header, then metadata of the port.
    const PREFIX_BYTES: usize = if SECOND { 32 } else { 16 };
    const ERRORS: Option<ErrorNumbers> = Some(ERROR_NUMBERS);
    /// Validity is a bit of its own on the chip, beside the fields' containers.
    const KEEPS_FIELDS: bool = true;
    const FIELDS: Fields = Fields {
        implied: &[Intrinsic::ParserError, Intrinsic::EgressParserError],
        read: [
            &[
                Intrinsic::Destination,
                Intrinsic::BypassEgress,
                Intrinsic::DropControl,
                Intrinsic::MulticastGroup,
                Intrinsic::SecondGroup,
                Intrinsic::CopyId,
                Intrinsic::MemberExclusion,
                Intrinsic::PortExclusion,
                Intrinsic::MemberHash,
                Intrinsic::PortHash,
                Intrinsic::CopyToController,
                Intrinsic::Priority,
            ],
            &[Intrinsic::EgressDropControl],
        ],
        written: &[Intrinsic::ParserTime, Intrinsic::EgressTime],
        queue: &[],
        times: &[],
        travel: false,
    };

    /// Both generations may be programmed through either include file: the width of a queue's number
    /// decides.
    fn runs(program: &Program) -> bool {
        let queue = program.intrinsic(Intrinsic::Priority).map(|var| program.vars[var.0 as usize].ty);
        match (program.arch.as_str(), queue) {
            ("tna" | "t2na", Some(ty)) => SECOND == (ty == Ty::Bit(7)),
            (name, _) => name == Self::NAME,
        }
    }

    fn loops(ports: &mut dyn Iterator<Item = u16>) -> Vec<u16> {
        let pipes: BTreeSet<u16> = ports
            .map(|port| port >> LOCAL_BITS)
            .chain([0])
            .filter(|pipe| usize::from(*pipe) < MAX_PIPES)
            .collect();
        let local = |pipe: u16| match (SECOND, pipe) {
            (false, _) => &LOOPS[..],
            (true, 0) => &SECOND_FIRST_LOOPS,
            (true, _) => &SECOND_LOOPS,
        };
        pipes
            .into_iter()
            .flat_map(|pipe| local(pipe).iter().map(move |port| pipe << LOCAL_BITS | port))
            .collect()
    }

    fn pipes(config: &Config) -> usize {
        let needed = config.ports.iter().map(|port| usize::from(port.port >> LOCAL_BITS) + 1);
        let needed = needed.chain(config.internal_pipes.iter().map(|pipe| pipe + 1)).max();
        needed.unwrap_or(1).max(config.pipes).clamp(1, MAX_PIPES)
    }

    fn trace_name(call: &ExternCall) -> Option<&'static str> {
        Some(match call {
            ExternCall::CloneWith { .. } => "mirror",
            ExternCall::ResubmitWith { .. } => "resubmit",
            ExternCall::Digest { .. } => "digest",
            _ => return None,
        })
    }

    fn origin(number: u32) -> &'static str {
        match number {
            0 => "normal",
            origin::INGRESS_CLONE => "mirror of ingress",
            origin::EGRESS_CLONE => "mirror of egress",
            origin::CAME_BACK => "recirculated",
            origin::RESUBMITTED => "resubmitted",
            origin::REPLICATED => "replica",
            origin::GENERATED => "generated",
            _ => "other",
        }
    }
}
