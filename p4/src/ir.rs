//! Typed intermediate representation: a program after every name, type, generic and instantiation
//! is resolved. Structs are flattened into scalar variables, sub-parsers, sub-controls, functions
//! and direct action calls are inlined, so an executor needs neither a symbol table nor a stack.
//!
//! ```text
//!  Program ── vars[]     scalars, each with a type; all storage of one packet's trip
//!          ├─ headers[]  a valid bit and fields, both variables
//!          ├─ stacks[]   headers[] and the variable nextIndex
//!          ├─ blocks     parser, verify, ingress, egress, compute, deparser
//!          └─ tables[], actions[], instances[], value_sets[]
//! ```
//!
//! Copy-in/copy-out has been made explicit with temporaries; every expression in it is pure except
//! [`Expr::Lookahead`], which can raise `PacketTooShort`. Uninitialised variables are zero.

use crate::ast::Span;
use num_bigint::BigUint;

/// Index into [`Program::vars`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VarId(pub u32);
/// Index into [`Program::headers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeaderId(pub u32);
/// Index into [`Program::stacks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(pub u32);
/// Index into [`Program::tables`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);
/// Index into [`Program::actions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionId(pub u32);
/// Index into [`Program::instances`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(pub u32);
/// Index into [`Parser::states`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateId(pub u32);
/// Index into [`Program::value_sets`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueSetId(pub u32);

/// Type of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ty {
    /// 0 or 1.
    Bool,
    /// Unsigned, width in bits (0 to 2048). Enums and errors are `Bit` too.
    Bit(u32),
    /// Two's complement, width in bits.
    Int(u32),
    /// At most this many bits; the current length travels with the value.
    Varbit(u32),
}

impl Ty {
    /// Width in bits (a varbit's largest).
    pub fn width(self) -> u32 {
        match self {
            Ty::Bool => 1,
            Ty::Bit(w) | Ty::Int(w) | Ty::Varbit(w) => w,
        }
    }
}

/// A program for one architecture.
#[derive(Clone, Debug)]
pub struct Program {
    /// Name of the main file without folder and ending, or `@pkginfo(name=...)`.
    pub name: String,
    /// Annotations of `main` (pkg_info).
    pub pkginfo: Vec<Annotation>,
    /// Architecture, `v1model`.
    pub arch: String,
    /// All scalar storage.
    pub vars: Vec<Var>,
    /// All header instances.
    pub headers: Vec<Header>,
    /// All header stacks.
    pub stacks: Vec<Stack>,
    /// All tables.
    pub tables: Vec<Table>,
    /// All actions that a table lists (directly called ones are inlined, but kept for P4Info).
    pub actions: Vec<Action>,
    /// Counters, meters, registers, action profiles …
    pub instances: Vec<Instance>,
    /// Parser value sets.
    pub value_sets: Vec<ValueSet>,
    /// Types of digests and their fields, by first use.
    pub digests: Vec<Digest>,
    /// Headers annotated `@controller_header("packet_in"|"packet_out")`, as declared.
    pub controller_headers: Vec<ControllerHeader>,
    /// Errors by number: `NoError` is 0, core.p4's come first.
    pub errors: Vec<String>,
    /// `type T N` with `@p4runtime_translation`, by name.
    pub new_types: Vec<NewType>,
    /// Serializable enums that P4Info lists: name, width, members.
    pub ser_enums: Vec<SerEnum>,
    /// Other enums: name and members.
    pub enums: Vec<(String, Vec<String>)>,
    /// Structs and headers that digests send.
    pub data_structs: Vec<DataStruct>,
    /// Variables of `standard_metadata`, by field name (`ingress_port`, `egress_spec`, …).
    pub standard_metadata: Vec<(String, VarId)>,
    /// Field lists: variables to keep for clone/resubmit/recirculate with this index (`@field_list`).
    pub field_lists: Vec<(u32, Vec<VarId>)>,
    /// `parser`
    pub parser: Parser,
    /// `verify_checksum`
    pub verify: Vec<Stmt>,
    /// `ingress`
    pub ingress: Vec<Stmt>,
    /// `egress`
    pub egress: Vec<Stmt>,
    /// `compute_checksum`
    pub compute: Vec<Stmt>,
    /// `deparser`: only [`Stmt::Emit`] and control flow.
    pub deparser: Vec<Stmt>,
}

/// A scalar variable.
#[derive(Clone, Debug)]
pub struct Var {
    /// Full name, for traces: `hdr.ethernet.dstAddr`, `MyIngress.tmp`.
    pub name: String,
    /// Type.
    pub ty: Ty,
}

/// A header instance.
#[derive(Clone, Debug)]
pub struct Header {
    /// Full name: `hdr.ethernet`, `hdr.vlan[1]`.
    pub name: String,
    /// Name of its type.
    pub type_name: String,
    /// The validity bit.
    pub valid: VarId,
    /// Fields in wire order.
    pub fields: Vec<HeaderField>,
    /// Other members of the same header union: extracting or validating one invalidates these.
    pub union_siblings: Vec<HeaderId>,
}

/// A field of a header instance.
#[derive(Clone, Debug)]
pub struct HeaderField {
    /// Short name.
    pub name: String,
    /// Its storage.
    pub var: VarId,
}

/// A header stack.
#[derive(Clone, Debug)]
pub struct Stack {
    /// Full name.
    pub name: String,
    /// Elements, in order; all of one type.
    pub elements: Vec<HeaderId>,
    /// `nextIndex`, `bit<32>`.
    pub next: VarId,
}

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
    /// A v1model extern.
    Extern(ExternCall),
}

/// Hash and checksum algorithms (v1model `HashAlgorithm`).
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

/// Calls of v1model's externs. Data lists are flattened to scalars in order.
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
    MarkToDrop,
    /// `kind`: true = E2E, false = I2E.
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
    /// Raises `checksum_error` unless equal.
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
    /// The packet is refused (v1model: goes on with `parser_error` set).
    Reject,
    /// Always the same state.
    Goto(StateId),
    /// First case that matches all keys; none: error `NoMatch`.
    Select {
        /// Keys with types.
        keys: Vec<(Expr, Ty)>,
        /// One matcher a key, and where to go.
        cases: Vec<(Vec<Matcher>, Target)>,
    },
}

/// Where a select case leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
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

/// How a key matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum MatchKind {
    Exact,
    Lpm,
    Ternary,
    Range,
    Optional,
    Selector,
}

/// An annotation that P4Info shows or that fixes a name or id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// Without `@`.
    pub name: String,
    /// As written between the brackets, tokens joined as p4c does.
    pub body: String,
    /// Structured (`@x[...]`): expression list or key-value list.
    pub structured: Option<Structured>,
}

/// Body of a structured annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Structured {
    /// `@x[1, "a", true]`
    List(Vec<AnnotationValue>),
    /// `@x[k = 1]`
    KeyValues(Vec<(String, AnnotationValue)>),
}

/// A compile-time value in a structured annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum AnnotationValue {
    Str(String),
    Int(i64),
    Bool(bool),
}

/// What P4Info says of every object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Control-plane name, `MyIngress.table` or what `@name` says.
    pub name: String,
    /// `@id`, the 24 low bits or whole, when given.
    pub id: Option<u32>,
    /// `@hidden`: not in P4Info.
    pub hidden: bool,
    /// Others, in order, those that p4c leaves out of P4Info (`name`, `id`, `hidden`, …) left out.
    pub annotations: Vec<Annotation>,
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Name and id.
    pub named: Named,
    /// Keys in order.
    pub keys: Vec<Key>,
    /// Actions in order; entries refer to the position.
    pub actions: Vec<TableAction>,
    /// Position in `actions` and arguments; `None` is `NoAction` of a table without the property.
    pub default_action: Option<ActionCall>,
    /// `const default_action`
    pub default_is_const: bool,
    /// `const entries` (immutable) or `entries` (initial).
    pub entries: Vec<Entry>,
    /// Whether the entries are `const`.
    pub entries_const: bool,
    /// `size`; 1024 when absent.
    pub size: u64,
    /// Action profile or selector.
    pub implementation: Option<InstanceId>,
    /// Direct counter.
    pub counter: Option<InstanceId>,
    /// Direct meter.
    pub meter: Option<InstanceId>,
    /// `support_timeout = true`
    pub idle_timeout: bool,
}

/// A table key.
#[derive(Clone, Debug)]
pub struct Key {
    /// Control-plane name (`@name` or the expression's text).
    pub named: Named,
    /// What is matched.
    pub expr: Expr,
    /// Its type.
    pub ty: Ty,
    /// How.
    pub kind: MatchKind,
    /// Name of a `type` (P4Runtime translation) or serializable enum.
    pub type_name: Option<String>,
}

/// An action in a table's list.
#[derive(Clone, Debug)]
pub struct TableAction {
    /// Which (already specialised when the list binds arguments).
    pub action: ActionId,
    /// `@tableonly`
    pub table_only: bool,
    /// `@defaultonly`
    pub default_only: bool,
    /// Annotations of the reference.
    pub annotations: Vec<Annotation>,
}

/// An action with its control-plane arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionCall {
    /// Position in [`Table::actions`].
    pub action: u32,
    /// One value a parameter.
    pub args: Vec<BigUint>,
}

/// A constant or initial entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// One matcher a key; LPM as `Mask`.
    pub keys: Vec<Matcher>,
    /// What to do.
    pub call: ActionCall,
    /// Larger wins (already in P4Runtime's order).
    pub priority: i32,
    /// `const`
    pub is_const: bool,
}

/// An action.
#[derive(Clone, Debug)]
pub struct Action {
    /// Name and id.
    pub named: Named,
    /// Control-plane parameters.
    pub params: Vec<ActionParam>,
    /// What it does.
    pub body: Vec<Stmt>,
    /// Whether any table lists it (others are kept for P4Info).
    pub in_table: bool,
}

/// A control-plane parameter of an action.
#[derive(Clone, Debug)]
pub struct ActionParam {
    /// Name and annotations.
    pub named: Named,
    /// Where the executor puts the value.
    pub var: VarId,
    /// Its type.
    pub ty: Ty,
    /// Name of a `type` or serializable enum.
    pub type_name: Option<String>,
}

/// What counters and meters count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Unit {
    Packets,
    Bytes,
    Both,
}

/// An extern object.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Name and id.
    pub named: Named,
    /// What it is.
    pub kind: InstanceKind,
}

/// Kinds of extern objects of v1model.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum InstanceKind {
    Counter {
        size: u64,
        unit: Unit,
        index_type: Option<String>,
    },
    DirectCounter {
        table: Option<TableId>,
        unit: Unit,
    },
    Meter {
        size: u64,
        unit: Unit,
        index_type: Option<String>,
    },
    DirectMeter {
        table: Option<TableId>,
        unit: Unit,
    },
    /// A struct is kept as the concatenation of its fields, the first one highest.
    Register {
        size: u64,
        /// How an element is stored.
        ty: Ty,
        /// As the control plane sees an element.
        data: DataTy,
        index_type: Option<String>,
    },
    ActionProfile {
        size: u64,
    },
    ActionSelector {
        size: u64,
        algorithm: HashAlgorithm,
        output_width: u32,
        max_group_size: u64,
    },
}

/// A parser value set.
#[derive(Clone, Debug)]
pub struct ValueSet {
    /// Name and id.
    pub named: Named,
    /// Capacity.
    pub size: u64,
    /// Fields of an element: name, type, match kind.
    pub fields: Vec<(Named, Ty, MatchKind)>,
}

/// A digest.
#[derive(Clone, Debug)]
pub struct Digest {
    /// Name and id.
    pub named: Named,
    /// Name of the struct type.
    pub type_name: String,
    /// Fields in order.
    pub fields: Vec<(String, Ty)>,
    /// The type with its names.
    pub data: DataTy,
}

/// A type as the control plane sees it, names kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataTy {
    /// Without a name.
    Scalar(Ty),
    /// `error`
    Error,
    /// One of [`Program::enums`].
    Enum(String),
    /// One of [`Program::ser_enums`].
    SerEnum(String),
    /// One of [`Program::new_types`].
    NewType(String),
    /// One of [`Program::data_structs`].
    Struct(String),
    /// One of [`Program::data_structs`].
    Header(String),
    /// `tuple<...>`
    Tuple(Vec<DataTy>),
}

/// A struct or header that a digest sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataStruct {
    /// Name.
    pub name: String,
    /// Fields in order.
    pub fields: Vec<(String, DataTy)>,
}

/// `@controller_header`
#[derive(Clone, Debug)]
pub struct ControllerHeader {
    /// `packet_in` or `packet_out`, and annotations.
    pub named: Named,
    /// Fields in wire order: name and annotations, type, name of its `type`.
    pub fields: Vec<(Named, Ty, Option<String>)>,
    /// Name of the header type.
    pub type_name: String,
}

/// `type T N`
#[derive(Clone, Debug)]
pub struct NewType {
    /// Name.
    pub name: String,
    /// How it is stored.
    pub ty: Ty,
    /// The type it stands for, through other `type`s.
    pub inner: DataTy,
    /// In order.
    pub annotations: Vec<Annotation>,
    /// URI and width of `@p4runtime_translation` (`None` width: string).
    pub translation: Option<(String, Option<u32>)>,
}

/// `enum bit<W> E`
#[derive(Clone, Debug)]
pub struct SerEnum {
    /// Name.
    pub name: String,
    /// Width in bits.
    pub width: u32,
    /// Names and values.
    pub members: Vec<(String, BigUint)>,
}
