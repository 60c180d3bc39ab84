//! What a block does: expressions, statements, calls of externs, parser states.

use super::*;
use crate::ast::Span;
use num_bigint::BigUint;

/// Which header an operation means.
#[derive(Clone, Debug)]
pub enum HeaderRef {
    /// A fixed one.
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
        /// Value.
        value: BigUint,
        /// Type.
        ty: Ty,
    },
    /// A scalar.
    Var(VarId),
    /// A field of a header that is chosen at run time. `field` counts in wire order.
    Field {
        /// Which header (`Last` or `Index`).
        header: HeaderRef,
        /// Which field.
        field: u32,
        /// Its type.
        ty: Ty,
    },
    /// Validity of a header that is chosen at run time (a fixed one's is a variable).
    Valid(HeaderRef),
    /// Operand and result have the same type.
    Unary {
        /// Operator.
        op: UnOp,
        /// Operand.
        expr: Box<Expr>,
        /// Type of operand and result.
        ty: Ty,
    },
    /// Two operands. `ty` is the type of the *left operand* (shifts: right is any `Bit`); comparisons and logic give `Bool`.
    Binary {
        /// Operator.
        op: BinOp,
        /// Left.
        left: Box<Expr>,
        /// Right.
        right: Box<Expr>,
        /// Type of the left operand.
        ty: Ty,
    },
    /// `c ? a : b`; only the chosen side is evaluated.
    Ternary {
        /// Condition.
        cond: Box<Expr>,
        /// Both sides have this type.
        ty: Ty,
        /// If true.
        then: Box<Expr>,
        /// If false.
        otherwise: Box<Expr>,
    },
    /// Width change: truncates, zero-extends a `Bit`/`Bool`, sign-extends an `Int`.
    Cast {
        /// Operand.
        expr: Box<Expr>,
        /// Operand's type.
        from: Ty,
        /// Result's type.
        to: Ty,
    },
    /// `e[hi:lo]`, gives `Bit(hi - lo + 1)`.
    Slice {
        /// Operand.
        expr: Box<Expr>,
        /// Operand's type.
        from: Ty,
        /// High bit.
        hi: u32,
        /// Low bit.
        lo: u32,
    },
    /// Left is the high part; gives the left's signedness.
    Concat {
        /// High part.
        left: Box<Expr>,
        /// Its type.
        left_ty: Ty,
        /// Low part.
        right: Box<Expr>,
        /// Its type.
        right_ty: Ty,
    },
    /// Bits `offset .. offset+width` after the parser's cursor; raises `PacketTooShort` if fewer than `total` bits are left.
    Lookahead {
        /// Bits that must be left.
        total: u32,
        /// First bit.
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
    /// Boolean.
    Not,
    /// Bitwise.
    BitNot,
    /// Two's complement.
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
    /// Short-circuit.
    And,
    /// Short-circuit.
    Or,
}

/// Where a value is stored.
#[derive(Clone, Debug)]
pub enum LValue {
    /// A scalar.
    Var(VarId),
    /// A field of a header that is chosen at run time.
    Field {
        /// Which header.
        header: HeaderRef,
        /// Which field.
        field: u32,
    },
    /// Bits `hi..=lo` of another one.
    Slice {
        /// The whole.
        base: Box<LValue>,
        /// High bit.
        hi: u32,
        /// Low bit.
        lo: u32,
    },
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Stmt {
    /// Evaluate, then store.
    Assign {
        /// Where.
        target: LValue,
        /// What, of the target's type.
        value: Expr,
        /// For traces.
        span: Span,
    },
    /// Copies validity and all fields between headers of one type.
    CopyHeader {
        /// To.
        dst: HeaderRef,
        /// From.
        src: HeaderRef,
    },
    /// Sets the validity bit (union siblings become invalid when `valid`).
    SetValid {
        /// Which.
        header: HeaderRef,
        /// To what.
        valid: bool,
    },
    /// `push_front` (positive count) or `pop_front` (negative).
    StackShift {
        /// Which.
        stack: StackId,
        /// By how much.
        count: i32,
    },
    /// Both sides may be empty.
    If {
        /// Condition, `Bool`.
        cond: Expr,
        /// If true.
        then: Vec<Stmt>,
        /// If false.
        otherwise: Vec<Stmt>,
    },
    /// First case whose values hold the expression's; fall-through is already resolved.
    Switch {
        /// Scrutinee.
        expr: Expr,
        /// Its type.
        ty: Ty,
        /// Values and body.
        cases: Vec<(Vec<BigUint>, Vec<Stmt>)>,
        /// Else.
        default: Vec<Stmt>,
    },
    /// Inlined callee: `Return` inside goes to its end.
    Scope(Vec<Stmt>),
    /// Repeats while `cond` holds; `Break`/`Continue` inside mean this loop. `update` runs after each pass and `continue`.
    Loop {
        /// Condition.
        cond: Expr,
        /// What is repeated.
        body: Vec<Stmt>,
        /// After each pass.
        update: Vec<Stmt>,
    },
    /// Leaves the innermost loop.
    Break,
    /// Next pass of the innermost loop.
    Continue,
    /// Leaves the innermost scope, or the block.
    Return,
    /// Leaves the block (ingress, egress …) altogether.
    Exit,
    /// Looks the key up and runs the action found, or the default action.
    Apply {
        /// Which table.
        table: TableId,
        /// Set to 1 on a hit, 0 on a miss.
        hit: Option<VarId>,
        /// Set to the position in [`Table::actions`] of the action that ran (`Bit(32)`).
        action_run: Option<VarId>,
    },
    /// Parser: reads a header (and makes it valid); `varbit_bits` is the varbit field's length in bits.
    Extract {
        /// Into which.
        header: HeaderRef,
        /// Length of the varbit field.
        varbit_bits: Option<Expr>,
    },
    /// Parser: skips bits.
    Advance(Expr),
    /// Parser: unless the condition holds, raises the error (an index into [`Program::errors`]).
    Verify {
        /// Condition.
        cond: Expr,
        /// Error number.
        error: Expr,
    },
    /// Deparser: appends a header if it is valid.
    Emit(HeaderRef),
    /// A call of an extern.
    Extern(ExternCall),
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
}

/// Calls of externs. Data lists are flattened to scalars in order.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum ExternCall {
    CounterCount {
        instance: InstanceId,
        index: Expr,
    },
    /// Direct counter or meter bound to the table whose action runs; for meters `dst` gets the colour.
    DirectCount {
        instance: InstanceId,
    },
    DirectMeterRead {
        instance: InstanceId,
        dst: LValue,
    },
    MeterExecute {
        instance: InstanceId,
        index: Expr,
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
    /// `dst = base + hash(data) % max`; with max 0, `base`. `None` bounds: the bare hash.
    Hash {
        algorithm: HashAlgorithm,
        dst: LValue,
        dst_ty: Ty,
        base: Expr,
        data: Vec<(Expr, Ty)>,
        max: Expr,
        max_ty: Ty,
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
    /// The packet is to be dropped, in the way of the architecture.
    Drop,
    /// Of what came in, or of what egress made (`egress`).
    Clone {
        egress: bool,
        session: Expr,
        field_list: Option<u32>,
    },
    Resubmit {
        field_list: u32,
    },
    Recirculate {
        field_list: u32,
    },
    Truncate {
        bytes: Expr,
    },
    /// Sets [`Intrinsic::ChecksumError`] unless equal.
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
    /// An extern that the program declares itself: a function, or a method of an object.
    Foreign {
        /// `function`, `Extern.method`.
        name: String,
        /// Full name of the object.
        object: Option<String>,
        /// What goes in.
        args: Vec<(Expr, Ty)>,
        /// What comes out: `out` and `inout` arguments, then the result.
        results: Vec<(LValue, Ty)>,
        span: Span,
    },
}

/// A parser.
#[derive(Clone, Debug, Default)]
pub struct Parser {
    /// States; `start` is `StateId(0)`. `accept` and `reject` are not among them.
    pub states: Vec<State>,
}

/// One state.
#[derive(Clone, Debug)]
pub struct State {
    /// Full name.
    pub name: String,
    /// What it does.
    pub stmts: Vec<Stmt>,
    /// What follows.
    pub next: Next,
}

/// Transition.
#[derive(Clone, Debug)]
pub enum Next {
    /// The packet is parsed.
    Accept,
    /// The packet is refused; what that means is the architecture's.
    Reject,
    /// Always the same state.
    Goto(StateId),
    /// First case that matches all keys; none: error `NoMatch`.
    Select {
        /// Keys with types.
        keys: Vec<(Expr, Ty)>,
        /// One matcher a key, and where to go.
        cases: Vec<(Vec<Matcher>, NextState)>,
    },
}

/// Where a select case leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextState {
    /// `accept`
    Accept,
    /// `reject`
    Reject,
    /// A state.
    State(StateId),
}

/// One keyset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matcher {
    /// Anything.
    Any,
    /// Equal.
    Exact(BigUint),
    /// Equal under a mask.
    Mask {
        /// Value.
        value: BigUint,
        /// Mask.
        mask: BigUint,
    },
    /// Between, both included.
    Range {
        /// Low.
        lo: BigUint,
        /// High.
        hi: BigUint,
    },
    /// Member of a value set (matches all its keys from this one on at once).
    ValueSet(ValueSetId),
}
