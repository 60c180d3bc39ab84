//! What operations need beyond three operands, and the whole of a compiled program.

use super::ops::{Op, Slot};
use crate::trace::Mark;
use p4rack_p4::ir::{BinOp, HashAlgorithm, Intrinsic, UnOp};

/// `list` of a clone, resubmit or recirculate that keeps nothing.
pub(crate) const NO_LIST: u16 = u16::MAX;
/// `stack` of a [`HeaderAt`] that is fixed.
pub(crate) const NO_STACK: u16 = u16::MAX;

/// Type of a value in the variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ValueType {
    /// Bits.
    pub width: u32,
    /// Two's complement.
    pub signed: bool,
    /// Length word first.
    pub varbit: bool,
}

impl ValueType {
    /// Words that hold the bits.
    pub fn limbs(self) -> usize {
        (self.width as usize).div_ceil(64).max(1)
    }

    /// Words in all.
    pub fn words(self) -> usize {
        self.limbs() + usize::from(self.varbit)
    }

    /// Whether the fast operations apply.
    pub fn narrow(self) -> bool {
        self.width <= 64 && !self.varbit
    }
}

/// Any operator at any width up to 2048 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WidePlan {
    Unary { op: UnOp, dst: Slot, a: Slot, kind: ValueType },
    Binary { op: BinOp, dst: Slot, a: Slot, b: Slot, kind: ValueType, right: ValueType },
    Cast { dst: Slot, a: Slot, from: ValueType, to: ValueType },
    Slice { dst: Slot, a: Slot, from: ValueType, hi: u32, lo: u32 },
    Concat { dst: Slot, a: Slot, left: ValueType, b: Slot, right: ValueType },
    Insert { dst: Slot, whole: ValueType, a: Slot, hi: u32, lo: u32 },
}

/// A header's place in the variables and on the wire.
#[derive(Clone, Debug)]
pub(crate) struct HeaderPlan {
    /// The validity bit; the fields' words follow in order.
    pub valid: Slot,
    /// Words with the validity bit.
    pub words: u16,
    /// Validity bits of other members of the union.
    pub siblings: Vec<Slot>,
    /// In wire order.
    pub fields: Vec<FieldPlan>,
    /// Bits, the varbit field left out; a multiple of 8.
    pub fixed_bits: u32,
    /// Whether a field is a varbit.
    pub has_varbit: bool,
    /// Whether all fields have 1 to 64 bits.
    pub narrow: bool,
}

/// A field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldPlan {
    /// First word.
    pub slot: Slot,
    /// Type.
    pub kind: ValueType,
    /// Bit offset in a header without varbit.
    pub offset: u32,
}

/// A stack: its elements stand one after the other in the variables.
#[derive(Clone, Debug)]
pub(crate) struct StackPlan {
    /// Headers in order.
    pub elements: Vec<u16>,
    /// `nextIndex`
    pub next: Slot,
}

/// A field of any element of a stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexedPlan {
    /// Its place in element 0.
    pub base: Slot,
    /// Words from element to element.
    pub stride: u16,
    /// Elements.
    pub count: u16,
    /// Words of the field.
    pub words: u16,
}

/// A header that may be chosen at run time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeaderAt {
    /// Which stack; [`NO_STACK`]: `index` is the header itself.
    pub stack: u16,
    /// Slot of the index, or the header.
    pub index: u16,
}

/// Copies a header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyPlan {
    pub dst: HeaderAt,
    pub src: HeaderAt,
}

/// Bits ahead of the cursor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LookaheadPlan {
    pub total: u32,
    pub offset: u32,
    pub kind: ValueType,
    /// Where the number of `PacketTooShort` is.
    pub error: Slot,
}

/// Select against a value set.
#[derive(Clone, Debug)]
pub(crate) struct ValueSetPlan {
    pub set: u32,
    /// One key a field.
    pub keys: Vec<(Slot, ValueType)>,
}

/// Applies a table.
#[derive(Clone, Debug)]
pub(crate) struct ApplyPlan {
    pub table: u32,
    /// First word of the key; all fields stand one after the other.
    pub key: Slot,
    /// Words of the key.
    pub words: u16,
    /// 0: not wanted.
    pub hit: Slot,
    /// 0: not wanted.
    pub action_run: Slot,
    /// End of the block around.
    pub exit: u32,
}

/// How a table with an action profile is applied, beside its [`ApplyPlan`].
#[derive(Clone, Debug)]
pub(crate) struct IndirectPlan {
    pub apply: u32,
    /// The profile or selector.
    pub instance: u32,
    pub algorithm: HashAlgorithm,
    /// What the selector hashes.
    pub selector: DataList,
}

/// Values in order, as a data list of hashes, checksums, digests and logs.
pub(crate) type DataList = Vec<(Slot, ValueType)>;

/// `dst = base + hash(data) % max`
#[derive(Clone, Debug)]
pub(crate) struct HashPlan {
    pub algorithm: HashAlgorithm,
    pub data: DataList,
    pub dst: Slot,
    pub kind: ValueType,
    pub base: Slot,
    pub max: Slot,
}

/// A checksum to verify or to update; the condition is a jump around it.
#[derive(Clone, Debug)]
pub(crate) struct ChecksumPlan {
    pub algorithm: HashAlgorithm,
    pub data: DataList,
    pub payload: bool,
    /// Compared with, or written to.
    pub value: Slot,
    pub kind: ValueType,
    /// Set to 1 where the comparison fails.
    pub wrong: Slot,
}

/// A digest.
#[derive(Clone, Debug)]
pub(crate) struct DigestPlan {
    pub digest: u32,
    pub data: DataList,
}

/// A message to log.
#[derive(Clone, Debug)]
pub(crate) struct LogPlan {
    pub format: String,
    pub args: DataList,
}

/// Where an action's code is and where its arguments go.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActionPlan {
    pub pc: u32,
    /// Slot of each word of the arguments, in order.
    pub args: Vec<Slot>,
    /// Words of each argument.
    pub words: Vec<u16>,
}

/// A part of the pipeline that runs without a break: blocks, one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    /// [`super::builder::INGRESS`] or [`super::builder::EGRESS`].
    pub half: u8,
    /// Where it starts.
    pub start: u32,
    /// End of its parser, where errors lead.
    pub parsed: u32,
    /// Where the number of a parser error goes.
    pub error: Slot,
    /// Whether packets begin with it: its machine code clears what they may read before it is written.
    pub begins: bool,
}

/// Number of one of [`Code::entries`].
pub(crate) type EntryId = usize;

/// Most entries of a program that machine code is made for.
#[cfg_attr(not(feature = "native"), allow(dead_code))]
pub(crate) const MAX_ENTRIES: usize = 16;

/// Slots of intrinsic fields. One that the program lacks has a slot of its own that nobody reads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Intrinsics(pub [Slot; Intrinsic::COUNT]);

impl std::ops::Index<Intrinsic> for Intrinsics {
    type Output = Slot;

    #[inline(always)]
    fn index(&self, role: Intrinsic) -> &Slot {
        &self.0[role as usize]
    }
}

/// What the half behind the queue needs of what the switch knows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Late {
    /// Whether its first entry has nothing to do.
    pub is_empty: bool,
    /// Whether it, or a field list, may read any intrinsic field.
    pub looks: bool,
    /// Whether it may read times or what the packet's queue held.
    pub looks_at_times: bool,
    /// Whether it gives the same whenever it runs: it touches nothing that others change, asks for nothing, and does
    /// not look at the queue that the packet passed.
    pub is_early: bool,
}

/// Words that are cleared at once. A run has no constants.
pub(crate) const RUN: usize = 8;

/// Words of the variables: first and count.
pub(crate) type Span = (Slot, u16);

/// All that a run reads and never writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    pub ops: Vec<Op>,
    /// In the order of the architecture.
    pub entries: Vec<Entry>,
    pub intrinsics: Intrinsics,
    pub late: Late,
    /// Words of variables, from 0.
    pub variables: u16,
    /// Words to clear for each packet: what the program or the switch may read before it is written.
    /// Runs of [`RUN`] of them, by their first.
    pub to_clear: Vec<Slot>,
    /// Just these words, without those that the switch writes for each packet.
    pub words_to_clear: Vec<Slot>,
    /// Constants and where they stand.
    pub constants: Vec<(Slot, u64)>,
    /// Words that egress needs of what ingress left.
    pub saved: Vec<Span>,
    /// How many they are.
    pub saved_words: usize,
    /// Which of these words belong to headers, in the order of `saved`.
    pub saved_is_header: Vec<bool>,
    /// Words of each field list.
    pub lists: Vec<Vec<Span>>,
    pub headers: Vec<HeaderPlan>,
    pub stacks: Vec<StackPlan>,
    pub indexed: Vec<IndexedPlan>,
    pub copies: Vec<CopyPlan>,
    pub wide: Vec<WidePlan>,
    pub lookaheads: Vec<LookaheadPlan>,
    pub value_sets: Vec<ValueSetPlan>,
    pub applies: Vec<ApplyPlan>,
    pub indirects: Vec<IndirectPlan>,
    pub hashes: Vec<HashPlan>,
    pub checksums: Vec<ChecksumPlan>,
    pub digests: Vec<DigestPlan>,
    pub logs: Vec<LogPlan>,
    /// What a traced program tells of.
    pub marks: Vec<Mark>,
    /// What a traced program tells the changes of: first word, type, name.
    pub watched: Vec<(Slot, ValueType, String)>,
    /// By table and position in its list.
    pub actions: Vec<Vec<ActionPlan>>,
    /// Numbers of core.p4's errors.
    pub errors: ErrorNumbers,
}

/// Numbers of core.p4's errors in this program.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ErrorNumbers {
    pub packet_too_short: u64,
    pub no_match: u64,
    pub stack_out_of_bounds: u64,
    pub header_too_short: u64,
    pub parser_invalid_argument: u64,
}
