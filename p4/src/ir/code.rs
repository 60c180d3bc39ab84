//! Code of blocks: expressions, statements, calls of externs, parser states.

use super::*;
use crate::ast::Span;
use num_bigint::BigUint;

/// The header that an operation refers to.
#[derive(Clone, Debug)]
pub enum HeaderRef {
    /// A header known at compile time.
    Fixed(HeaderId),
    /// `stack.next`; past the end raises `StackOutOfBounds`.
    Next(StackId),
    /// `stack.last`; on an empty stack raises `StackOutOfBounds`.
    Last(StackId),
    /// `stack[i]`, index computed at run time; out of range reads 0 and writes nothing.
    Index(StackId, Box<Expr>),
}

/// A pure expression.
#[derive(Clone, Debug)]
pub enum Expr {
    /// A constant; an `Int` is given in two's complement, masked to its width.
    Const {
        /// Its value.
        value: BigUint,
        /// Its type.
        ty: Ty,
    },
    /// The value of a scalar variable.
    Var(VarId),
    /// A field of a header that is chosen at run time. `field` counts in wire order.
    Field {
        /// Which header (`Last` or `Index`).
        header: HeaderRef,
        /// Position of the field in wire order.
        field: u32,
        /// Type of the field.
        ty: Ty,
    },
    /// Validity of a header that is chosen at run time. (The validity of a fixed header is a variable.)
    Valid(HeaderRef),
    /// A unary operation. Operand and result have the same type.
    Unary {
        /// The operator.
        op: UnOp,
        /// The operand.
        expr: Box<Expr>,
        /// Type of operand and result.
        ty: Ty,
    },
    /// A binary operation. `ty` is the type of the *left operand* (the right operand of a shift is any
    /// `Bit`); comparisons and logic give `Bool`.
    Binary {
        /// The operator.
        op: BinOp,
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
        /// Type of the left operand.
        ty: Ty,
    },
    /// `c ? a : b`; only the chosen side is evaluated.
    Ternary {
        /// The condition, a `Bool`.
        cond: Box<Expr>,
        /// Type of both sides.
        ty: Ty,
        /// Value if the condition holds.
        then: Box<Expr>,
        /// Value if it does not.
        otherwise: Box<Expr>,
    },
    /// Changes the width: truncates, zero-extends a `Bit` or `Bool`, sign-extends an `Int`.
    Cast {
        /// The operand.
        expr: Box<Expr>,
        /// Type of the operand.
        from: Ty,
        /// Type of the result.
        to: Ty,
    },
    /// `e[hi:lo]`, gives `Bit(hi - lo + 1)`.
    Slice {
        /// The operand.
        expr: Box<Expr>,
        /// Type of the operand.
        from: Ty,
        /// Highest bit taken.
        hi: u32,
        /// Lowest bit taken.
        lo: u32,
    },
    /// Concatenation. The left operand is the high part and determines the signedness.
    Concat {
        /// High part of the result.
        left: Box<Expr>,
        /// Type of the high part.
        left_ty: Ty,
        /// Low part of the result.
        right: Box<Expr>,
        /// Type of the low part.
        right_ty: Ty,
    },
    /// Bits `offset .. offset+width` after the parser's cursor; raises `PacketTooShort` if fewer than `total` bits are left.
    Lookahead {
        /// Bits that must be left in the packet.
        total: u32,
        /// First bit read, counted from the cursor.
        offset: u32,
        /// Type of the result.
        ty: Ty,
    },
    /// `packet.length()` in bytes (`bit<32>`).
    PacketLength,
    /// The port that means "drop" on the switch that runs the program (`bit<9>`).
    DropPort,
}

/// Unary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnOp {
    /// Logical not.
    Not,
    /// Bitwise not.
    BitNot,
    /// Two's-complement negation.
    Neg,
}

/// Binary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BinOp {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    AddSat,
    SubSat,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    Shr,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// Logical and; evaluates the right side only if the left one is true.
    And,
    /// Logical or; evaluates the right side only if the left one is false.
    Or,
}

/// A location that can be assigned.
#[derive(Clone, Debug)]
pub enum LValue {
    /// A scalar variable.
    Var(VarId),
    /// A field of a header that is chosen at run time.
    Field {
        /// The header.
        header: HeaderRef,
        /// Position of the field in wire order.
        field: u32,
    },
    /// Bits `hi..=lo` of another location.
    Slice {
        /// The location as a whole.
        base: Box<LValue>,
        /// Highest bit.
        hi: u32,
        /// Lowest bit.
        lo: u32,
    },
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Stmt {
    /// Evaluates, then stores.
    Assign {
        /// Where the value is stored.
        target: LValue,
        /// The value, of the target's type.
        value: Expr,
        /// Source location, for traces.
        span: Span,
    },
    /// Copies validity and all fields between headers of one type.
    CopyHeader {
        /// Destination header.
        dst: HeaderRef,
        /// Source header.
        src: HeaderRef,
    },
    /// Sets the validity bit. Making a member of a union valid makes its siblings invalid.
    SetValid {
        /// The header.
        header: HeaderRef,
        /// Its new validity.
        valid: bool,
    },
    /// `push_front` (positive count) or `pop_front` (negative count).
    StackShift {
        /// The stack.
        stack: StackId,
        /// Number of elements to shift by.
        count: i32,
    },
    /// A conditional; both branches may be empty.
    If {
        /// The condition, a `Bool`.
        cond: Expr,
        /// Statements if it holds.
        then: Vec<Stmt>,
        /// Statements if it does not.
        otherwise: Vec<Stmt>,
        /// Source location of the condition.
        span: Span,
    },
    /// Runs the first case that lists the value. Fall-through is already resolved.
    Switch {
        /// The value that selects a case.
        expr: Expr,
        /// Type of that value.
        ty: Ty,
        /// Values and body of each case.
        cases: Vec<(Vec<BigUint>, Vec<Stmt>)>,
        /// Statements if no case matches.
        default: Vec<Stmt>,
    },
    /// An inlined callee: `Return` inside jumps to its end. An action that a control calls is always one.
    Scope(Vec<Stmt>),
    /// Repeats while `cond` holds. `Break` and `Continue` inside refer to this loop; `update` also runs after
    /// `Continue`.
    Loop {
        /// The condition, tested before each pass.
        cond: Expr,
        /// Statements of one pass.
        body: Vec<Stmt>,
        /// Statements after each pass.
        update: Vec<Stmt>,
    },
    /// Leaves the innermost loop.
    Break,
    /// Continues with the next pass of the innermost loop.
    Continue,
    /// Leaves the innermost scope, or the block.
    Return,
    /// Leaves the whole block (ingress, egress, …).
    Exit,
    /// Looks the key up and runs the action found, or the default action.
    Apply {
        /// The table.
        table: TableId,
        /// Set to 1 on a hit, 0 on a miss.
        hit: Option<VarId>,
        /// Set to the position in [`Table::actions`] of the action that ran (`Bit(32)`).
        action_run: Option<VarId>,
        /// Source location.
        span: Span,
    },
    /// Parser: reads a header (and makes it valid); `varbit_bits` is the varbit field's length in bits.
    Extract {
        /// The header that is filled.
        header: HeaderRef,
        /// Length of the varbit field, in bits.
        varbit_bits: Option<Expr>,
    },
    /// Parser: skips this many bits.
    Advance(Expr),
    /// Parser: unless the condition holds, raises the error (an index into [`Program::errors`]).
    Verify {
        /// The condition that must hold.
        cond: Expr,
        /// Number of the error.
        error: Expr,
    },
    /// Deparser: appends a header if it is valid.
    Emit(HeaderRef),
    /// A call of an extern.
    Extern {
        /// The called extern.
        call: ExternCall,
        /// Source location of the statement.
        span: Span,
    },
}

/// Hash and checksum algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum HashAlgorithm {
    Crc32,
    Crc32Custom,
    Crc16,
    Crc16Custom,
    Random,
    Identity,
    Csum16,
    Xor16,
    Xor8,
    Xor32,
    Crc(Crc),
}

/// A cyclic redundancy check of up to 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crc {
    /// Width in bits, 1 to 64.
    pub width: u32,
    /// The polynomial without its highest term, the term of x⁰ lowest.
    pub polynomial: u64,
    /// Whether the bits of each byte, and of the result, are in reverse order.
    pub reflected: bool,
    /// Where the shift register starts.
    pub initial: u64,
    /// Combined with the result by exclusive or.
    pub final_xor: u64,
}

/// Calls of externs. Data lists are flattened to scalars, in order.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum ExternCall {
    /// Counts a packet, `less` this many bytes.
    CounterCount {
        instance: InstanceId,
        index: Expr,
        less: Option<Expr>,
    },
    /// Counts or meters with the direct object of the table whose action runs, `less` this many bytes. A meter writes
    /// its colour to `dst`; a packet that comes with one (`given`: 0 green, 1 yellow, 2 red) gets no better one.
    DirectCount {
        instance: InstanceId,
        less: Option<Expr>,
    },
    DirectMeterRead {
        instance: InstanceId,
        given: Option<Expr>,
        less: Option<Expr>,
        dst: LValue,
    },
    MeterExecute {
        instance: InstanceId,
        index: Expr,
        given: Option<Expr>,
        less: Option<Expr>,
        dst: LValue,
    },
    RegisterRead {
        instance: InstanceId,
        index: Expr,
        dst: LValue,
    },
    RegisterWrite {
        instance: InstanceId,
        index: Expr,
        value: Expr,
    },
    /// Reads the element of the entry whose action runs.
    DirectRegisterRead {
        instance: InstanceId,
        dst: LValue,
    },
    DirectRegisterWrite {
        instance: InstanceId,
        value: Expr,
    },
    /// Smooths a value, in the cell with this index or that of the entry whose action runs.
    Smooth {
        instance: InstanceId,
        index: Option<Expr>,
        value: Expr,
        dst: LValue,
    },
    /// An approximation of a function of a value, in the lowest `width` bits.
    Approximate {
        curve: Box<Curve>,
        value: Expr,
        width: u32,
        dst: LValue,
    },
    /// `dst = base + hash(data) % max` with the bounds `(base, max)`; `base` if max is 0. Without bounds, the
    /// low bits of the hash itself. The control plane may change what an `object` computes.
    Hash {
        object: Option<InstanceId>,
        algorithm: HashAlgorithm,
        dst: LValue,
        dst_ty: Ty,
        data: Vec<(Expr, Ty)>,
        bounds: Option<(Expr, Expr)>,
    },
    Random {
        dst: LValue,
        dst_ty: Ty,
        lo: Expr,
        hi: Expr,
    },
    Digest {
        receiver: Expr,
        digest: u32,
        data: Vec<(Expr, Ty)>,
    },
    /// Drops the packet, as the architecture defines it.
    Drop,
    /// Clones the packet as it came in, or as egress left it (`egress`).
    Clone {
        egress: bool,
        session: Expr,
        field_list: Option<u32>,
    },
    Resubmit {
        field_list: u32,
    },
    /// Clones the packet, with a header of these scalars in front.
    CloneWith {
        egress: bool,
        session: Expr,
        header: Vec<(Expr, Ty)>,
    },
    /// Resubmits the packet, with a header of these scalars in front.
    ResubmitWith {
        header: Vec<(Expr, Ty)>,
    },
    Recirculate {
        field_list: u32,
    },
    Truncate {
        bytes: Expr,
    },
    /// Sets [`Intrinsic::ChecksumError`] unless the checksums are equal.
    VerifyChecksum {
        cond: Expr,
        data: Vec<(Expr, Ty)>,
        checksum: Expr,
        checksum_ty: Ty,
        algorithm: HashAlgorithm,
        payload: bool,
    },
    UpdateChecksum {
        cond: Expr,
        data: Vec<(Expr, Ty)>,
        dst: LValue,
        dst_ty: Ty,
        algorithm: HashAlgorithm,
        payload: bool,
    },
    LogMsg {
        format: String,
        args: Vec<(Expr, Ty)>,
    },
    /// `assert` or `assume`.
    Assert {
        cond: Expr,
        assume: bool,
        span: Span,
    },
    /// A call of an extern that the program declares itself: a function, or an object's method.
    Foreign {
        /// `function`, `Extern.method`.
        name: String,
        /// Full name of the object; `None` for a function.
        object: Option<String>,
        /// Input arguments.
        args: Vec<(Expr, Ty)>,
        /// Output: `out` and `inout` arguments, then the result.
        results: Vec<(LValue, Ty)>,
        span: Span,
    },
}

/// A parser: its states.
#[derive(Clone, Debug, Default)]
pub struct Parser {
    /// States; `start` is `StateId(0)`. `accept` and `reject` are not among them.
    pub states: Vec<State>,
}

/// A parser state.
#[derive(Clone, Debug)]
pub struct State {
    /// Full name.
    pub name: String,
    /// Statements of the state.
    pub stmts: Vec<Stmt>,
    /// The parser's next state.
    pub next: Next,
}

/// The transition that ends a state.
#[derive(Clone, Debug)]
pub enum Next {
    /// Ends parsing successfully.
    Accept,
    /// Ends parsing with an error. The architecture defines the consequence.
    Reject,
    /// Continues in a fixed state.
    Goto(StateId),
    /// Continues with the first case that matches all keys. If none matches, raises `NoMatch`.
    Select {
        /// Keys with their types.
        keys: Vec<(Expr, Ty)>,
        /// One matcher per key, and the next state.
        cases: Vec<(Vec<Matcher>, NextState)>,
    },
}

/// Target of a select case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextState {
    /// `accept`
    Accept,
    /// `reject`
    Reject,
    /// A state of the parser.
    State(StateId),
}

/// One keyset of a select case or table entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matcher {
    /// Matches anything.
    Any,
    /// Matches this value.
    Exact(BigUint),
    /// Matches under a mask.
    Mask {
        /// Value to compare with.
        value: BigUint,
        /// Bits to compare.
        mask: BigUint,
    },
    /// Matches values from `lo` to `hi`, both included.
    Range {
        /// Lowest value.
        lo: BigUint,
        /// Highest value.
        hi: BigUint,
    },
    /// Matches members of a value set. It consumes all of the set's keys, from this one on.
    ValueSet(ValueSetId),
}
