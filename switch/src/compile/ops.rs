//! The executable form: flat operations over one frame of 64-bit words.
//!
//! A variable is a run of words in the frame (low word first); a varbit has its length in bits
//! in the word before. Temporaries and constants are words of the same frame, so an operand is always a
//! [`Slot`]. What an operation needs beyond three operands stands in a plan beside the code.

/// Words of a frame: every `u16` is a valid index, which saves the bounds check.
pub(crate) const FRAME_WORDS: usize = 1 << 16;

/// Index of a word in the frame.
pub(crate) type Slot = u16;

/// All storage of one packet's trip.
pub(crate) type Frame = [u64; FRAME_WORDS];

/// One operation. `w` is a width in bits, 1 to 64, to which the result is cut; `to` is a position in the code.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Mov {
        dst: Slot,
        a: Slot,
    },
    MovN {
        dst: Slot,
        a: Slot,
        n: u16,
    },
    Zero {
        dst: Slot,
        n: u16,
    },
    Add {
        dst: Slot,
        a: Slot,
        b: Slot,
        w: u8,
    },
    Sub {
        dst: Slot,
        a: Slot,
        b: Slot,
        w: u8,
    },
    Mul {
        dst: Slot,
        a: Slot,
        b: Slot,
        w: u8,
    },
    And {
        dst: Slot,
        a: Slot,
        b: Slot,
    },
    Or {
        dst: Slot,
        a: Slot,
        b: Slot,
    },
    Xor {
        dst: Slot,
        a: Slot,
        b: Slot,
    },
    Shl {
        dst: Slot,
        a: Slot,
        b: Slot,
        w: u8,
    },
    Shr {
        dst: Slot,
        a: Slot,
        b: Slot,
    },
    Eq {
        dst: Slot,
        a: Slot,
        b: Slot,
    },
    Ne {
        dst: Slot,
        a: Slot,
        b: Slot,
    },
    Lt {
        dst: Slot,
        a: Slot,
        b: Slot,
    },
    Le {
        dst: Slot,
        a: Slot,
        b: Slot,
    },
    /// Signed, of width `w`.
    Slt {
        dst: Slot,
        a: Slot,
        b: Slot,
        w: u8,
    },
    /// Signed, of width `w`.
    Sle {
        dst: Slot,
        a: Slot,
        b: Slot,
        w: u8,
    },
    Not {
        dst: Slot,
        a: Slot,
    },
    BitNot {
        dst: Slot,
        a: Slot,
        w: u8,
    },
    Neg {
        dst: Slot,
        a: Slot,
        w: u8,
    },
    Cut {
        dst: Slot,
        a: Slot,
        w: u8,
    },
    SignExtend {
        dst: Slot,
        a: Slot,
        from: u8,
        w: u8,
    },
    Slice {
        dst: Slot,
        a: Slot,
        lo: u8,
        w: u8,
    },
    /// `a ++ b` with `b` of `lo` bits.
    Concat {
        dst: Slot,
        a: Slot,
        b: Slot,
        lo: u8,
    },
    /// Puts the `w` low bits of `a` at bit `lo` of `dst`.
    Insert {
        dst: Slot,
        a: Slot,
        lo: u8,
        w: u8,
    },
    /// Anything wider than 64 bits, and rare operators: [`super::plans::WidePlan`].
    Wide {
        plan: u32,
    },
    Jump {
        to: u32,
    },
    JumpIf {
        a: Slot,
        to: u32,
    },
    JumpIfNot {
        a: Slot,
        to: u32,
    },
    JumpEq {
        a: Slot,
        b: Slot,
        to: u32,
    },
    JumpNe {
        a: Slot,
        b: Slot,
        to: u32,
    },
    JumpLt {
        a: Slot,
        b: Slot,
        to: u32,
    },
    JumpLe {
        a: Slot,
        b: Slot,
        to: u32,
    },
    /// Jumps where the key words match no member: [`super::plans::ValueSetPlan`].
    JumpUnlessMember {
        plan: u32,
        to: u32,
    },
    /// Head of a loop: counts passes.
    Fuel,
    /// End of the parser: the code of ingress follows, unless parsing was all that was asked for.
    Parsed,
    /// End of the block.
    End,
    /// End of an action.
    Ret,
    /// Out of the block in which the action's table was applied.
    Exit,
    /// Raises the parser error whose number is in `a`.
    Raise {
        a: Slot,
    },
    RaiseIfZero {
        a: Slot,
        error: Slot,
    },
    Extract {
        header: u16,
    },
    ExtractNext {
        stack: u16,
    },
    ExtractVarbit {
        header: u16,
        bits: Slot,
    },
    ExtractNextVarbit {
        stack: u16,
        bits: Slot,
    },
    ExtractAt {
        stack: u16,
        index: Slot,
    },
    Advance {
        bits: Slot,
    },
    Lookahead {
        dst: Slot,
        plan: u32,
    },
    PacketLength {
        dst: Slot,
    },
    Emit {
        header: u16,
    },
    EmitAt {
        stack: u16,
        index: Slot,
    },
    SetValid {
        header: u16,
    },
    SetValidAt {
        stack: u16,
        index: Slot,
        valid: bool,
    },
    CopyHeader {
        dst: u16,
        src: u16,
    },
    /// Indices of `u16::MAX` stacks mean a fixed header: [`super::plans::CopyPlan`].
    CopyHeaderAt {
        plan: u32,
    },
    LoadAt {
        dst: Slot,
        index: Slot,
        plan: u32,
    },
    StoreAt {
        a: Slot,
        index: Slot,
        plan: u32,
    },
    StackShift {
        stack: u16,
        count: i32,
    },
    Apply {
        plan: u32,
    },
    /// Likewise, of a table with an action profile: [`super::plans::IndirectPlan`].
    ApplyIndirect {
        plan: u32,
    },
    Count {
        instance: u16,
        index: Slot,
    },
    DirectColor {
        dst: Slot,
    },
    Meter {
        instance: u16,
        index: Slot,
        dst: Slot,
    },
    RegisterRead {
        instance: u16,
        index: Slot,
        dst: Slot,
    },
    RegisterWrite {
        instance: u16,
        index: Slot,
        a: Slot,
    },
    Hash {
        plan: u32,
    },
    Random {
        dst: Slot,
        lo: Slot,
        hi: Slot,
    },
    Digest {
        plan: u32,
    },
    MarkToDrop,
    Clone {
        egress: bool,
        session: Slot,
        list: u16,
    },
    Resubmit {
        list: u16,
    },
    Recirculate {
        list: u16,
    },
    Truncate {
        bytes: Slot,
    },
    VerifyChecksum {
        plan: u32,
    },
    UpdateChecksum {
        plan: u32,
    },
    Log {
        plan: u32,
    },
    AssertFailed,
    /// Tells of what happens; in traced programs only.
    Trace {
        mark: u32,
    },
}

impl Op {
    /// Whether it gives the same before the queue and behind it, and leaves nothing behind.
    pub fn is_early(&self) -> bool {
        !matches!(
            self,
            Op::Apply { .. }
                | Op::ApplyIndirect { .. }
                | Op::Count { .. }
                | Op::DirectColor { .. }
                | Op::Meter { .. }
                | Op::RegisterRead { .. }
                | Op::RegisterWrite { .. }
                | Op::JumpUnlessMember { .. }
                // Its algorithm may be a random number.
                | Op::Hash { .. }
                | Op::Random { .. }
                | Op::Digest { .. }
                | Op::Clone { .. }
                | Op::Resubmit { .. }
                | Op::Recirculate { .. }
                | Op::Truncate { .. }
                | Op::Log { .. }
                | Op::Trace { .. }
        )
    }
}
