//! The interface of a run: its view of the packet, its requests, and how it ends.

use crate::code::ops::{Op, Vars};
use p4rack_wire::Nanos;

/// Maximum passes of parser loops and `for` statements in one block.
pub(crate) const FUEL: u32 = 10_000;

/// How a block ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Exit {
    /// It finished. A parser error counts as finishing.
    Done,
    /// Too many passes of a loop.
    LoopLimit,
    /// An `assert` or `assume` did not hold.
    AssertFailed,
    /// The parser rejected the packet, and the architecture drops such packets.
    Rejected,
}

/// The program's requests for the packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Requests {
    /// Whether there is any request. Few packets make one, so the others skip the rest.
    pub any: bool,
    /// Clone: session and field list.
    pub clone: Option<(u64, u16)>,
    /// Resubmit: field list.
    pub resubmit: Option<u16>,
    /// Recirculate: field list.
    pub recirculate: Option<u16>,
    /// Truncate: length in bytes.
    pub truncate: Option<u64>,
}

impl Requests {
    /// Records the request of an operation.
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

/// The view of a packet that a part of the pipeline has.
pub(crate) struct Cx<'a> {
    /// The packet, followed by [`super::bits::PADDING`] bytes.
    pub bytes: &'a [u8],
    /// Length of the packet.
    pub len: usize,
    /// Bytes that counters and meters count.
    pub counted: u64,
    /// Position of the first byte that is not parsed.
    pub cursor: usize,
    /// Output of the deparser.
    pub out: &'a mut Vec<u8>,
    /// Current time.
    pub now: Nanos,
    /// The port that means "drop".
    pub drop_port: u16,
    /// Whether to stop at the end of the parser.
    pub parse_only: bool,
    /// Whether the variables are cleared, or set for a packet that carries metadata. If not, machine code
    /// clears them itself.
    #[cfg_attr(not(feature = "native"), allow(dead_code))]
    pub cleared: bool,
    /// Requests of the program.
    pub requests: &'a mut Requests,
    /// Colour from the direct meter of the table applied last.
    pub color: u64,
    /// The row that the last look-up found in a table with direct objects or idle timeouts.
    pub row: Option<u32>,
}

impl<'a> Cx<'a> {
    /// The view of a packet of `len` bytes, whose variables are prepared.
    #[inline(always)]
    pub fn new(
        (bytes, len, cursor): (&'a [u8], usize, usize),
        out: &'a mut Vec<u8>,
        requests: &'a mut Requests,
        drop_port: u16,
        now: Nanos,
    ) -> Cx<'a> {
        Cx {
            bytes,
            len,
            counted: len as u64,
            cursor,
            out,
            now,
            drop_port,
            parse_only: false,
            cleared: true,
            requests,
            color: 0,
            row: None,
        }
    }
}

/// An operation occurred where it cannot: a bug in this crate, for tests to find.
#[cold]
pub(super) fn misplaced(op: Op) {
    debug_assert!(false, "{op:?} is not done here");
}
