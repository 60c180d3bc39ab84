//! Plans: operands of operations that need more than three, and the complete compiled program.

use super::ops::{Op, Slot};
use crate::hash::Hasher;
use p4rack_p4::ir::{BinOp, Curve, Intrinsic, UnOp};
use p4rack_p4::shown::Format;

/// `list` of a clone, resubmit or recirculate that preserves nothing.
pub(crate) const NO_LIST: u16 = u16::MAX;
/// `stack` of a [`HeaderAt`] that is a fixed header.
pub(crate) const NO_STACK: u16 = u16::MAX;

/// The half before the queue. A variable that both halves mention travels through the queue.
pub(crate) const INGRESS: u8 = 1;
/// The half behind the queue.
pub(crate) const EGRESS: u8 = 2;

/// The type of a value in the variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ValueType {
    /// Width in bits.
    pub width: u32,
    /// Whether it is in two's complement.
    pub signed: bool,
    /// Whether it is a varbit: its length stands in the first word.
    pub varbit: bool,
}

impl ValueType {
    /// Words that hold the bits.
    pub fn limbs(self) -> usize {
        (self.width as usize).div_ceil(64).max(1)
    }

    /// Words in all, with a varbit's length.
    pub fn words(self) -> usize {
        self.limbs() + usize::from(self.varbit)
    }

    /// Whether the one-word operations apply.
    pub fn narrow(self) -> bool {
        self.width <= 64 && !self.varbit
    }
}

/// An operation at any width up to 2048 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WidePlan {
    Unary { op: UnOp, dst: Slot, a: Slot, kind: ValueType },
    Binary { op: BinOp, dst: Slot, a: Slot, b: Slot, kind: ValueType, right: ValueType },
    Cast { dst: Slot, a: Slot, from: ValueType, to: ValueType },
    Slice { dst: Slot, a: Slot, from: ValueType, hi: u32, lo: u32 },
    Concat { dst: Slot, a: Slot, left: ValueType, b: Slot, right: ValueType },
    Insert { dst: Slot, whole: ValueType, a: Slot, hi: u32, lo: u32 },
}

/// Position of a header in the variables and its format on the wire.
#[derive(Clone, Debug)]
pub(crate) struct HeaderPlan {
    /// Slot of the validity bit. The fields' words follow in order.
    pub valid: Slot,
    /// Words including the validity bit.
    pub words: u16,
    /// Validity bits of the other members of the union.
    pub siblings: Vec<Slot>,
    /// Fields, in wire order.
    pub fields: Vec<FieldPlan>,
    /// Bits without the varbit field; a multiple of 8.
    pub fixed_bits: u32,
    /// Whether a field is a varbit.
    pub has_varbit: bool,
    /// Whether all fields have 1 to 64 bits.
    pub narrow: bool,
}

/// A field of a header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldPlan {
    /// First word of the field.
    pub slot: Slot,
    /// Type of the field.
    pub kind: ValueType,
    /// Bit offset, in a header without varbit.
    pub offset: u32,
}

/// A stack. Its elements are adjacent in the variables.
#[derive(Clone, Debug)]
pub(crate) struct StackPlan {
    /// Headers of the elements, in order.
    pub elements: Vec<u16>,
    /// `nextIndex`
    pub next: Slot,
}

/// A field of any element of a stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexedPlan {
    /// Slot of the field in element 0.
    pub base: Slot,
    /// Words between consecutive elements.
    pub stride: u16,
    /// Number of elements.
    pub count: u16,
    /// Words of the field.
    pub words: u16,
}

/// A header that may be chosen at run time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeaderAt {
    /// The stack. With [`NO_STACK`], `index` is the header itself.
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

/// Reads bits ahead of the cursor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LookaheadPlan {
    pub total: u32,
    pub offset: u32,
    pub kind: ValueType,
    /// Slot with the number of `PacketTooShort`.
    pub error: Slot,
}

/// A select case that matches a value set.
#[derive(Clone, Debug)]
pub(crate) struct ValueSetPlan {
    pub set: u32,
    /// One key per field of the set.
    pub keys: Vec<(Slot, ValueType)>,
}

/// Applies a table.
#[derive(Clone, Debug)]
pub(crate) struct ApplyPlan {
    pub table: u32,
    /// First word of the key. All fields are adjacent.
    pub key: Slot,
    /// Words of the key.
    pub words: u16,
    /// Slot for the hit bit; 0 if not wanted.
    pub hit: Slot,
    /// Slot for the action's position; 0 if not wanted.
    pub action_run: Slot,
    /// End of the enclosing block.
    pub exit: u32,
}

/// How a table with an action profile is applied, in addition to its [`ApplyPlan`].
#[derive(Clone, Debug)]
pub(crate) struct IndirectPlan {
    pub apply: u32,
    /// The action profile or selector.
    pub instance: u32,
    pub hasher: Hasher,
    /// Inputs of the selector's hash.
    pub selector: DataList,
}

/// Values in order: input of hashes, checksums, digests and log messages.
pub(crate) type DataList = Vec<(Slot, ValueType)>;

/// `dst = base + hash(data) % max` with `bounds`, the hash itself without.
#[derive(Clone, Debug)]
pub(crate) struct HashPlan {
    /// The object in which the control plane may say to compute something else.
    pub object: Option<u16>,
    pub hasher: Hasher,
    pub data: DataList,
    pub dst: Slot,
    pub kind: ValueType,
    pub bounds: Option<(Slot, Slot)>,
}

/// A clone or resubmit with a header in front.
#[derive(Clone, Debug)]
pub(crate) struct PrefixPlan {
    /// The clone session; unused by a resubmit.
    pub session: Slot,
    pub header: DataList,
}

/// A checksum to verify or update. The condition is a jump around it.
#[derive(Clone, Debug)]
pub(crate) struct ChecksumPlan {
    pub hasher: Hasher,
    pub data: DataList,
    pub payload: bool,
    /// The value compared with, or the destination.
    pub value: Slot,
    pub kind: ValueType,
    /// Set to 1 if the comparison fails.
    pub wrong: Slot,
    /// Whether it is the Internet checksum of values of a word each, which is added up without writing their bytes.
    pub is_sum: bool,
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

/// Position of an action's code, and where its arguments go.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActionPlan {
    pub pc: u32,
    /// Slot of each word of the arguments, in order.
    pub args: Vec<Slot>,
    /// Number of words of each argument.
    pub words: Vec<u16>,
}

/// A part of the pipeline that runs without a break: consecutive blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    /// [`INGRESS`] or [`EGRESS`].
    pub half: u8,
    /// Position of its first operation.
    pub start: u32,
    /// End of its parser, where parser errors jump to.
    pub parsed: u32,
    /// Slot for the number of a parser error.
    pub error: Slot,
    /// Whether packets begin with it. Its machine code then clears the words that they may read before
    /// writing.
    #[cfg_attr(not(feature = "native"), allow(dead_code))]
    pub begins: bool,
}

/// Index into [`Code::entries`].
pub(crate) type EntryId = usize;

/// Maximum entries of a program for which machine code is generated.
#[cfg_attr(not(feature = "native"), allow(dead_code))]
pub(crate) const MAX_ENTRIES: usize = 16;

/// Slots of intrinsic fields. A field that the program lacks has an unused slot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Intrinsics(pub [Slot; Intrinsic::COUNT]);

impl std::ops::Index<Intrinsic> for Intrinsics {
    type Output = Slot;

    #[inline(always)]
    fn index(&self, role: Intrinsic) -> &Slot {
        &self.0[role as usize]
    }
}

/// Needs of the half behind the queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Late {
    /// Whether its first entry does nothing.
    pub is_empty: bool,
    /// Whether it, or a field list, may read intrinsic fields.
    pub looks: bool,
    /// Whether it may read times or the state of the packet's queue.
    pub looks_at_times: bool,
    /// Whether it gives the same result at any time: it touches no shared state, makes no requests, and does
    /// not read the state of the queue that the packet passed.
    pub is_early: bool,
}

/// Words that are cleared together. A run contains no constants.
pub(crate) const RUN: usize = 8;

/// A range of words: first word and count.
pub(crate) type Span = (Slot, u16);

/// The code, constants and plans of a program: everything that a run reads but never writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    pub ops: Vec<Op>,
    /// Entries, numbered by the architecture.
    pub entries: Vec<Entry>,
    pub intrinsics: Intrinsics,
    /// The same of each pipeline, the first included.
    pub pipelines: Vec<Intrinsics>,
    pub late: Late,
    /// Number of words of variables, which start at 0.
    pub variables: u16,
    /// Words that the program or the switch may read before writing them, as runs of [`RUN`] words to clear
    /// for each packet. Each run is given by its first word.
    pub to_clear: Vec<Slot>,
    /// The same as single words, without those that the switch writes for each packet.
    pub words_to_clear: Vec<Slot>,
    /// Whether a packet may begin with variables that another pass has set; otherwise with zeros alone.
    pub carries: bool,
    /// Fields that the switch reads behind each half.
    pub results: [Vec<Slot>; 2],
    /// Constants with their slots.
    pub constants: Vec<(Slot, u64)>,
    /// Words that ingress sets and egress needs; saved with a packet in a queue.
    pub saved: Vec<Span>,
    /// Number of these words.
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
    /// Approximations, with the bits of their results.
    pub curves: Vec<(Curve, u32)>,
    pub prefixes: Vec<PrefixPlan>,
    pub checksums: Vec<ChecksumPlan>,
    pub digests: Vec<DigestPlan>,
    pub logs: Vec<LogPlan>,
    /// Trace marks.
    pub marks: Vec<Mark>,
    /// Variables whose changes a trace shows.
    pub watched: Vec<Watched>,
    /// Action plans, by table and by position in its list.
    pub actions: Vec<Vec<ActionPlan>>,
    /// Numbers of core.p4's errors.
    pub errors: ErrorNumbers,
}

/// A variable whose changes a trace shows.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    /// Its first word.
    pub slot: Slot,
    pub kind: ValueType,
    pub name: String,
    /// How the trace shows its values.
    pub format: Format,
}

/// A mark in the code that records an event.
#[derive(Clone, Debug)]
pub(crate) enum Mark {
    /// Start of the parser.
    Ingress,
    /// Start of a parser state.
    State(String),
    /// End of the parser, with the slot of the error's number.
    Parsed { error: Slot },
    /// A table is applied; the index of its plan.
    Apply(u32),
    /// An extern is called.
    Extern(&'static str),
    /// A cell of a register was read, or is about to be written.
    Register { instance: u16, index: Slot, value: Slot, words: u16, write: bool },
    /// A meter coloured the packet. `None` for the direct meter of the table applied.
    Meter { at: Option<(u16, Slot)>, color: Slot },
    /// A counter counts the packet.
    Count { instance: u16, index: Slot },
    /// A hash or random number was computed.
    Number { what: &'static str, value: Slot, words: u16 },
    /// Start of egress.
    Egress,
    /// End of ingress or egress.
    Fields,
    /// The packet is about to be put together.
    Headers,
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
