//! What a run sees of a packet, what it may ask for, how it ends.

use crate::compile::ops::{Op, Vars};
use p4rack_wire::Nanos;

/// Passes of parser loops and `for` statements in one block.
pub(crate) const FUEL: u32 = 10_000;

/// How a block ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Exit {
    /// As it should; a parser also after an error.
    Done,
    /// Too many passes of a loop.
    LoopLimit,
    /// An `assert` or `assume` did not hold.
    AssertFailed,
}

/// What a program asked the switch to do with the packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Requests {
    /// Whether anything: few packets do, and the rest need not look at all of it.
    pub any: bool,
    /// Session and field list.
    pub clone: Option<(u64, u16)>,
    /// Field list.
    pub resubmit: Option<u16>,
    /// Field list.
    pub recirculate: Option<u16>,
    /// Length.
    pub truncate: Option<u64>,
}

impl Requests {
    /// Notes what an operation asks for.
    pub(super) fn add(&mut self, vars: &Vars, op: Op) {
        self.any = true;
        match op {
            Op::Clone { session, list, .. } => self.clone = Some((vars[session as usize], list)),
            Op::Resubmit { list } => self.resubmit = Some(list),
            Op::Recirculate { list } => self.recirculate = Some(list),
            Op::Truncate { bytes } => self.truncate = Some(vars[bytes as usize]),
            _ => {}
        }
    }
}

/// A part of the pipeline's view of the packet.
pub(crate) struct Cx<'a> {
    /// The packet and [`super::bits::PADDING`] bytes.
    pub bytes: &'a [u8],
    /// Length of the packet.
    pub len: usize,
    /// First byte that is not parsed.
    pub cursor: usize,
    /// Where the deparser writes.
    pub out: &'a mut Vec<u8>,
    /// The time.
    pub now: Nanos,
    /// The port that means "drop".
    pub drop_port: u16,
    /// Whether to end where the parser ends.
    pub parse_only: bool,
    /// Whether variables have been cleared, and set where the packet takes some along. Only machine code clears them itself.
    #[cfg_attr(not(feature = "native"), allow(dead_code))]
    pub cleared: bool,
    /// What was asked for.
    pub requests: &'a mut Requests,
    /// Colour that the direct meter of the last applied table gave.
    pub color: u64,
}

impl<'a> Cx<'a> {
    /// A packet of `len` bytes, whose variables are as they are to be.
    #[inline(always)]
    pub fn new(
        (bytes, len, cursor): (&'a [u8], usize, usize),
        out: &'a mut Vec<u8>,
        requests: &'a mut Requests,
        drop_port: u16,
        now: Nanos,
    ) -> Cx<'a> {
        Cx { bytes, len, cursor, out, now, drop_port, parse_only: false, cleared: true, requests, color: 0 }
    }
}

/// An operation came where it is not done: a fault of this crate, which tests are to find.
#[cold]
pub(super) fn misplaced(op: Op) {
    debug_assert!(false, "{op:?} is not done here");
}
