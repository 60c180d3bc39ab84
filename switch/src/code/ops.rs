//! The executable form: flat operations over one array of 64-bit words, the variables.
//!
//! A variable is a run of words, low word first; a varbit has its length in bits in the word before.
//! Temporaries and constants are words of the same array, so every operand is a [`Slot`]. An operation that
//! needs more than three operands refers to a plan beside the code.

/// Words of the array. Every `u16` is a valid index, which saves the bounds check.
pub(crate) const VARS_WORDS: usize = 1 << 16;

/// Index of a word in the variables.
pub(crate) type Slot = u16;

/// All variables of one packet.
pub(crate) type Vars = [u64; VARS_WORDS];

/// An operation. `w` is a width in bits, 1 to 64, to which the result is truncated; `to` is a position in the
/// code.
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
    /// Signed comparison at width `w`.
    Slt {
        dst: Slot,
        a: Slot,
        b: Slot,
        w: u8,
    },
    /// Signed comparison at width `w`.
    Sle {
        dst: Slot,
        a: Slot,
        b: Slot,
        w: u8,
    },
    /// `a` if `c` is not zero, else `b`.
    Select {
        dst: Slot,
        c: Slot,
        a: Slot,
        b: Slot,
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
    /// `a ++ b`; `b` has `lo` bits.
    Concat {
        dst: Slot,
        a: Slot,
        b: Slot,
        lo: u8,
    },
    /// Writes the `w` low bits of `a` to bit `lo` of `dst`.
    Insert {
        dst: Slot,
        a: Slot,
        lo: u8,
        w: u8,
    },
    /// Any operation wider than 64 bits, and rare operators: [`super::plans::WidePlan`].
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
    /// Jumps if the key words match no member: [`super::plans::ValueSetPlan`].
    JumpUnlessMember {
        plan: u32,
        to: u32,
    },
    /// Head of a loop: counts passes.
    Fuel,
    /// End of the parser. Ingress follows, unless only parsing was requested.
    Parsed,
    /// End of the block.
    End,
    /// End of an action.
    Ret,
    /// Leaves the block in which the action's table was applied.
    Exit,
    /// Raises the parser error with the number in `a`.
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
    /// The port that means "drop" on this switch.
    DropPort {
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
    /// A stack index of `u16::MAX` means a fixed header: [`super::plans::CopyPlan`].
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
    /// Applies a table with an action profile: [`super::plans::IndirectPlan`].
    ApplyIndirect {
        plan: u32,
    },
    Count {
        instance: u16,
        index: Slot,
    },
    /// Counts `less` bytes less.
    CountLess {
        instance: u16,
        index: Slot,
        less: Slot,
    },
    /// Counts for the entry of this table that was found last.
    DirectCount {
        table: u16,
    },
    /// Counts `less` bytes less.
    DirectCountLess {
        table: u16,
        less: Slot,
    },
    /// Meters for the entry of this table that was found last.
    DirectMeter {
        table: u16,
        dst: Slot,
    },
    /// Meters `less` bytes less of a packet that comes with a colour.
    DirectMeterGiven {
        table: u16,
        given: Slot,
        less: Slot,
        dst: Slot,
    },
    /// Smooths a value in a cell of an extern object.
    Smooth {
        instance: u16,
        index: Slot,
        a: Slot,
        dst: Slot,
    },
    /// Smooths a value for the entry of this table that was found last.
    DirectSmooth {
        table: u16,
        a: Slot,
        dst: Slot,
    },
    /// An approximation of a function of a value.
    Approximate {
        plan: u32,
        a: Slot,
        dst: Slot,
    },
    /// Reads the direct register of the entry of this table that was found last.
    DirectRegisterRead {
        table: u16,
        dst: Slot,
        words: u16,
    },
    DirectRegisterWrite {
        table: u16,
        a: Slot,
        words: u16,
    },
    DirectColor {
        dst: Slot,
    },
    Meter {
        instance: u16,
        index: Slot,
        dst: Slot,
    },
    /// Meters `less` bytes less of a packet that comes with a colour.
    MeterGiven {
        instance: u16,
        index: Slot,
        given: Slot,
        less: Slot,
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
    Clone {
        egress: bool,
        session: Slot,
        list: u16,
    },
    Resubmit {
        list: u16,
    },
    /// A clone with a header in front: [`super::plans::PrefixPlan`].
    CloneWith {
        plan: u32,
    },
    /// A resubmit with a header in front: [`super::plans::PrefixPlan`].
    ResubmitWith {
        plan: u32,
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
    /// Ends the packet, which the parser rejects.
    Reject,
    /// Records an event; only in traced programs.
    Trace {
        mark: u32,
    },
}

/// Effect of an operation besides computing. All code that needs this uses this list of every operation: a
/// new operation does not compile until its nature is decided.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Nature<'a> {
    /// Same result before and behind the queue, no side effects; the next operation follows.
    Pure,
    /// Like `Pure`, but may raise a parser error, which jumps to the parser's end.
    Parses,
    /// Depends on the packet alone and jumps to a position in the code.
    Jumps {
        to: &'a mut u32,
        /// If false, the next operation may follow too.
        always: bool,
    },
    /// Like `Jumps`, but depends on state that the control plane can change.
    JumpsByState { to: &'a mut u32 },
    /// Ends a block, an action or the packet.
    Ends,
    /// Ends the parser's states with an error.
    Fails,
    /// Applies a table. An action follows, which returns to the next operation or leaves the block.
    Applies,
    /// Reads or changes state that outlives the packet, makes a request to the switch, or is visible outside.
    Lasting,
}

impl Op {
    /// Effect of the operation besides computing.
    pub fn nature(&mut self) -> Nature<'_> {
        match self {
            Op::Mov { .. }
            | Op::MovN { .. }
            | Op::Zero { .. }
            | Op::Add { .. }
            | Op::Sub { .. }
            | Op::Mul { .. }
            | Op::And { .. }
            | Op::Or { .. }
            | Op::Xor { .. }
            | Op::Shl { .. }
            | Op::Shr { .. }
            | Op::Eq { .. }
            | Op::Ne { .. }
            | Op::Lt { .. }
            | Op::Le { .. }
            | Op::Slt { .. }
            | Op::Sle { .. }
            | Op::Select { .. }
            | Op::Not { .. }
            | Op::BitNot { .. }
            | Op::Neg { .. }
            | Op::Cut { .. }
            | Op::SignExtend { .. }
            | Op::Slice { .. }
            | Op::Concat { .. }
            | Op::Insert { .. }
            | Op::Wide { .. }
            | Op::Fuel
            | Op::Parsed
            | Op::PacketLength { .. }
            | Op::DropPort { .. }
            | Op::Emit { .. }
            | Op::EmitAt { .. }
            | Op::SetValid { .. }
            | Op::SetValidAt { .. }
            | Op::CopyHeader { .. }
            | Op::CopyHeaderAt { .. }
            | Op::LoadAt { .. }
            | Op::StoreAt { .. }
            | Op::StackShift { .. }
            | Op::VerifyChecksum { .. }
            | Op::UpdateChecksum { .. } => Nature::Pure,
            Op::RaiseIfZero { .. }
            | Op::Extract { .. }
            | Op::ExtractNext { .. }
            | Op::ExtractVarbit { .. }
            | Op::ExtractNextVarbit { .. }
            | Op::ExtractAt { .. }
            | Op::Advance { .. }
            | Op::Lookahead { .. } => Nature::Parses,
            Op::Jump { to } => Nature::Jumps { to, always: true },
            Op::JumpIf { to, .. }
            | Op::JumpIfNot { to, .. }
            | Op::JumpEq { to, .. }
            | Op::JumpNe { to, .. }
            | Op::JumpLt { to, .. }
            | Op::JumpLe { to, .. } => Nature::Jumps { to, always: false },
            Op::JumpUnlessMember { to, .. } => Nature::JumpsByState { to },
            Op::End | Op::Ret | Op::Exit | Op::AssertFailed | Op::Reject => Nature::Ends,
            Op::Raise { .. } => Nature::Fails,
            Op::Apply { .. } | Op::ApplyIndirect { .. } => Nature::Applies,
            Op::Count { .. }
            | Op::CountLess { .. }
            | Op::DirectCount { .. }
            | Op::DirectCountLess { .. }
            | Op::DirectMeter { .. }
            | Op::DirectMeterGiven { .. }
            | Op::Smooth { .. }
            | Op::DirectSmooth { .. }
            | Op::Approximate { .. }
            | Op::DirectRegisterRead { .. }
            | Op::DirectRegisterWrite { .. }
            | Op::CloneWith { .. }
            | Op::ResubmitWith { .. }
            | Op::DirectColor { .. }
            | Op::Meter { .. }
            | Op::MeterGiven { .. }
            | Op::RegisterRead { .. }
            | Op::RegisterWrite { .. }
            // The algorithm may be the random one.
            | Op::Hash { .. }
            | Op::Random { .. }
            | Op::Digest { .. }
            | Op::Clone { .. }
            | Op::Resubmit { .. }
            | Op::Recirculate { .. }
            | Op::Truncate { .. }
            | Op::Log { .. }
            | Op::Trace { .. } => Nature::Lasting,
        }
    }

    /// Whether it gives the same result before and behind the queue, without side effects.
    pub fn is_early(mut self) -> bool {
        match self.nature() {
            Nature::Pure | Nature::Parses | Nature::Jumps { .. } | Nature::Ends | Nature::Fails => true,
            Nature::JumpsByState { .. } | Nature::Applies | Nature::Lasting => false,
        }
    }

    /// The jump target.
    pub fn target_mut(&mut self) -> Option<&mut u32> {
        match self.nature() {
            Nature::Jumps { to, .. } | Nature::JumpsByState { to } => Some(to),
            Nature::Pure
            | Nature::Parses
            | Nature::Ends
            | Nature::Fails
            | Nature::Applies
            | Nature::Lasting => None,
        }
    }
}
