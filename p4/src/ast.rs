//! Syntax tree of P4_16 (spec 1.2.5, appendix "P4 grammar"), the whole language: a program's text,
//! before any name is looked up. Every node that a diagnostic can point at has a [`Span`].

use num_bigint::BigInt;

/// A range of bytes in the preprocessed text; `source::SourceMap` turns it into file, line and column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Offset of the first byte.
    pub lo: u32,
    /// Offset one past the last byte.
    pub hi: u32,
}

impl Span {
    /// The smallest span that holds both.
    pub fn to(self, other: Span) -> Span {
        Span { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }
}

/// A name and its source location.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ident {
    /// The name as written.
    pub name: String,
    /// Source location.
    pub span: Span,
}

/// A reference to a name; `.name` starts the lookup at top level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Whether it is written with a leading dot.
    pub global: bool,
    /// The name without the dot.
    pub ident: Ident,
}

/// A whole program.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Top-level declarations in order.
    pub decls: Vec<Decl>,
}

/// `@name(...)` or `@name[...]`.
#[derive(Clone, Debug)]
pub struct Annotation {
    /// Name without the `@`.
    pub name: Ident,
    /// Arguments between the brackets.
    pub body: AnnotationBody,
    /// Source location.
    pub span: Span,
}

/// The three forms of an annotation.
#[derive(Clone, Debug)]
pub enum AnnotationBody {
    /// `@hidden`
    Empty,
    /// `@name("x")`: the tokens' text between the round brackets, unparsed.
    Tokens(Vec<AnnotationToken>),
    /// `@x[1, 2]`
    List(Vec<Expr>),
    /// `@x[k = 1]`
    KeyValues(Vec<(Ident, Expr)>),
}

/// A token inside an unstructured annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnotationToken {
    /// The text as written; for a string its value without quotes.
    pub text: String,
    /// Whether it was a string literal.
    pub is_string: bool,
    /// Source location.
    pub span: Span,
}

impl AnnotationToken {
    /// The text, a string in quotes.
    pub fn quoted(&self) -> String {
        if self.is_string { format!("\"{}\"", self.text) } else { self.text.clone() }
    }
}

/// A declaration, at top level or in a parser, control or block.
#[derive(Clone, Debug)]
pub struct Decl {
    /// Annotations in source order.
    pub annotations: Vec<Annotation>,
    /// The declared thing.
    pub kind: DeclKind,
    /// The whole declaration.
    pub span: Span,
}

/// Kind and content of a declaration.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each variant shows its syntax")]
pub enum DeclKind {
    /// `const T X = e;`
    Const { ty: TypeRef, name: Ident, value: Expr },
    /// `T x;` or `T x = e;` (local)
    Variable { ty: TypeRef, name: Ident, init: Option<Expr> },
    /// `T(args) name;` or with an initialiser block for abstract methods.
    Instance { ty: TypeRef, args: Vec<Arg>, name: Ident, init: Option<Vec<Decl>> },
    /// `header H<T> { ... }`
    Header(StructDecl),
    /// `header_union U { ... }`
    HeaderUnion(StructDecl),
    /// `struct S<T> { ... }`
    Struct(StructDecl),
    /// `enum E { A, B }`, `enum bit<8> E { A = 1 }`
    Enum { repr: Option<TypeRef>, name: Ident, members: Vec<EnumMember> },
    /// `error { A, B }`
    Error { members: Vec<Ident> },
    /// `match_kind { exact }`
    MatchKind { members: Vec<Ident> },
    /// `typedef T N;`
    Typedef { ty: TypeRef, name: Ident },
    /// `type T N;`
    NewType { ty: TypeRef, name: Ident },
    /// `extern E<T> { ... }`
    ExternObject { name: Ident, type_params: Vec<Ident>, methods: Vec<Decl> },
    /// A prototype: extern function, method or constructor (return type absent), abstract or not.
    FunctionProto { proto: FunctionProto, is_abstract: bool },
    /// A function with a body (also an implementation of an abstract method).
    Function { proto: FunctionProto, body: Block },
    /// `action a(...) { ... }`
    Action { name: Ident, params: Vec<Param>, body: Block },
    /// `parser P<T>(...);`
    ParserType { name: Ident, type_params: Vec<Ident>, params: Vec<Param> },
    /// `parser P(...)(ctor) { locals states }`
    Parser {
        name: Ident,
        type_params: Vec<Ident>,
        params: Vec<Param>,
        ctor_params: Vec<Param>,
        locals: Vec<Decl>,
        states: Vec<ParserState>,
    },
    /// `control C<T>(...);`
    ControlType { name: Ident, type_params: Vec<Ident>, params: Vec<Param> },
    /// `control C(...)(ctor) { locals apply {...} }`
    Control {
        name: Ident,
        type_params: Vec<Ident>,
        params: Vec<Param>,
        ctor_params: Vec<Param>,
        locals: Vec<Decl>,
        apply: Block,
    },
    /// `package P<T>(...);`
    PackageType { name: Ident, type_params: Vec<Ident>, params: Vec<Param> },
    /// `table t { ... }`
    Table { name: Ident, properties: Vec<TableProperty> },
    /// `value_set<T>(n) v;`
    ValueSet { ty: TypeRef, size: Expr, name: Ident },
}

/// Header, union or struct.
#[derive(Clone, Debug)]
pub struct StructDecl {
    /// Name of the type.
    pub name: Ident,
    /// Type parameters.
    pub type_params: Vec<Ident>,
    /// Fields in source order.
    pub fields: Vec<Field>,
}

/// One field of a struct-like type.
#[derive(Clone, Debug)]
pub struct Field {
    /// Annotations in source order.
    pub annotations: Vec<Annotation>,
    /// Type of the field.
    pub ty: TypeRef,
    /// Name of the field.
    pub name: Ident,
}

/// One member of an enum; serializable enums give a value.
#[derive(Clone, Debug)]
pub struct EnumMember {
    /// Annotations in source order.
    pub annotations: Vec<Annotation>,
    /// Name of the member.
    pub name: Ident,
    /// Value, in a serializable enum.
    pub value: Option<Expr>,
}

/// Signature of a function, method or constructor.
#[derive(Clone, Debug)]
pub struct FunctionProto {
    /// Return type; `None` for a constructor.
    pub ret: Option<TypeRef>,
    /// Name of the function; of a constructor, the extern's.
    pub name: Ident,
    /// Names of the type parameters.
    pub type_params: Vec<Ident>,
    /// Value parameters.
    pub params: Vec<Param>,
}

/// Direction of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// No direction written.
    None,
    /// `in`
    In,
    /// `out`
    Out,
    /// `inout`
    InOut,
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct Param {
    /// Annotations in source order.
    pub annotations: Vec<Annotation>,
    /// Direction as written.
    pub direction: Direction,
    /// Type as written.
    pub ty: TypeRef,
    /// Name of the parameter.
    pub name: Ident,
    /// Default value, for optional parameters.
    pub default: Option<Expr>,
}

/// A type as written.
#[derive(Clone, Debug)]
pub struct TypeRef {
    /// Which form it has.
    pub kind: TypeRefKind,
    /// Source location.
    pub span: Span,
}

/// The forms of a type.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each variant shows its syntax")]
pub enum TypeRefKind {
    /// `bool`
    Bool,
    /// `error`
    Error,
    /// `match_kind`
    MatchKind,
    /// `string`
    String,
    /// `void`
    Void,
    /// `int`
    InfInt,
    /// `_`
    DontCare,
    /// `bit` (1 bit), `bit<8>`, `bit<(N)>`
    Bit(Option<Box<Expr>>),
    /// `int<8>`
    Int(Box<Expr>),
    /// `varbit<32>`
    Varbit(Box<Expr>),
    /// `list<T>`
    List(Box<TypeRef>),
    /// `tuple<A, B>`
    Tuple(Vec<TypeRef>),
    /// `H[4]`
    Stack { element: Box<TypeRef>, size: Box<Expr> },
    /// `N` or `N<A, B>`
    Named { name: Name, args: Vec<TypeRef> },
}

/// A parser state.
#[derive(Clone, Debug)]
pub struct ParserState {
    /// Annotations in source order.
    pub annotations: Vec<Annotation>,
    /// Name of the state.
    pub name: Ident,
    /// Statements before the transition.
    pub body: Vec<Stmt>,
    /// Absent means `reject`.
    pub transition: Option<Transition>,
    /// Source location.
    pub span: Span,
}

/// Transition at a state's end.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each variant shows its syntax")]
pub enum Transition {
    /// `transition s;`
    Direct(Ident),
    /// `transition select(e, ...) { k : s; ... }`
    Select { keys: Vec<Expr>, cases: Vec<SelectCase>, span: Span },
}

/// One case of a `select`.
#[derive(Clone, Debug)]
pub struct SelectCase {
    /// One keyset per key, or a single `default`/`_` for all keys.
    pub keysets: Vec<Expr>,
    /// Name of the state it leads to.
    pub state: Ident,
    /// Source location.
    pub span: Span,
}

/// One property of a table.
#[derive(Clone, Debug)]
pub struct TableProperty {
    /// Annotations in source order.
    pub annotations: Vec<Annotation>,
    /// `const` before it.
    pub is_const: bool,
    /// Kind and content of the property.
    pub kind: TablePropertyKind,
    /// Source location.
    pub span: Span,
}

/// The forms of a table property.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each variant shows its syntax")]
pub enum TablePropertyKind {
    /// `key = { ... }`
    Key(Vec<KeyElement>),
    /// `actions = { ... }`
    Actions(Vec<ActionListEntry>),
    /// `entries = { ... }`
    Entries(Vec<TableEntry>),
    /// Any other, `default_action` included.
    Other { name: Ident, value: Expr },
}

/// `expr : kind @annotations;`
#[derive(Clone, Debug)]
pub struct KeyElement {
    /// Expression that is matched.
    pub expr: Expr,
    /// Match kind: `exact`, `lpm`, ….
    pub match_kind: Ident,
    /// Annotations in source order.
    pub annotations: Vec<Annotation>,
}

/// One action in a table's list.
#[derive(Clone, Debug)]
pub struct ActionListEntry {
    /// Annotations in source order.
    pub annotations: Vec<Annotation>,
    /// Name of the action.
    pub name: Name,
    /// Arguments bound in the list; `None` if no parentheses are written.
    pub args: Option<Vec<Arg>>,
    /// Source location.
    pub span: Span,
}

/// One constant or initial entry.
#[derive(Clone, Debug)]
pub struct TableEntry {
    /// Annotations in source order.
    pub annotations: Vec<Annotation>,
    /// `const` before it.
    pub is_const: bool,
    /// `priority = e :` before it.
    pub priority: Option<Expr>,
    /// One keyset per key.
    pub keysets: Vec<Expr>,
    /// A call or a name.
    pub action: Expr,
    /// Source location.
    pub span: Span,
}

/// `{ ... }`
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// Annotations in source order.
    pub annotations: Vec<Annotation>,
    /// Statements in source order.
    pub stmts: Vec<Stmt>,
    /// Source location.
    pub span: Span,
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// Which form it has.
    pub kind: StmtKind,
    /// Source location.
    pub span: Span,
}

/// The forms of a statement.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each variant shows its syntax")]
pub enum StmtKind {
    /// `;`
    Empty,
    /// `a = e;` or with an operator, `a += e;`
    Assign { op: Option<BinaryOp>, target: Expr, value: Expr },
    /// A call for its effect.
    Call(Expr),
    /// `C.apply(...);` where `C` is a type.
    DirectApply { ty: TypeRef, args: Vec<Arg> },
    /// `if (c) a else b`
    If { cond: Expr, then: Box<Stmt>, otherwise: Option<Box<Stmt>> },
    /// `{ ... }`
    Block(Block),
    /// `exit;`
    Exit,
    /// `return e;`
    Return(Option<Expr>),
    /// `switch (e) { ... }`
    Switch { expr: Expr, cases: Vec<SwitchCase> },
    /// `for (init; cond; update) body`
    For { annotations: Vec<Annotation>, init: Vec<Stmt>, cond: Expr, update: Vec<Stmt>, body: Box<Stmt> },
    /// `for (T x in e) body`; `range` holds `lo .. hi` as [`ExprKind::Range`].
    ForIn { annotations: Vec<Annotation>, ty: Option<TypeRef>, name: Ident, over: Expr, body: Box<Stmt> },
    /// `break;`
    Break,
    /// `continue;`
    Continue,
    /// A constant, variable or instance.
    Decl(Box<Decl>),
}

/// One case of a `switch`. A case without body falls through.
#[derive(Clone, Debug)]
pub struct SwitchCase {
    /// `default` is [`ExprKind::Default`].
    pub label: Expr,
    /// Body; `None` falls through.
    pub body: Option<Block>,
    /// Source location.
    pub span: Span,
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Which form it has.
    pub kind: ExprKind,
    /// Source location.
    pub span: Span,
}

/// An argument of a call or instantiation.
#[derive(Clone, Debug)]
pub struct Arg {
    /// `name =` before it.
    pub name: Option<Ident>,
    /// `None` is `_`.
    pub value: Option<Expr>,
    /// Source location.
    pub span: Span,
}

/// The forms of an expression.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each variant shows its syntax")]
pub enum ExprKind {
    /// `true`, `false`
    Bool(bool),
    /// `10`, `8w10`, `8s-1`: value, width and signedness when given, and the base it is written in.
    Int { value: BigInt, width: Option<IntWidth>, radix: u8 },
    /// `"text"`
    String(String),
    /// `x`, `.x`
    Name(Name),
    /// `...`
    Dots,
    /// `_` in a keyset
    DontCare,
    /// `default`
    Default,
    /// `this`
    This,
    /// `error.X` (and `match_kind.X` is not in the language)
    ErrorMember(Ident),
    /// `e.f`
    Member { base: Box<Expr>, member: Ident },
    /// `T.f` where `T` is a type that is not a plain name (specialised)
    TypeMember { ty: Box<TypeRef>, member: Ident },
    /// `e[i]`
    Index { base: Box<Expr>, index: Box<Expr> },
    /// `e[hi:lo]`
    Slice { base: Box<Expr>, hi: Box<Expr>, lo: Box<Expr> },
    /// `e[base+:width]`
    PlusSlice { base: Box<Expr>, start: Box<Expr>, width: Box<Expr> },
    /// `{a, b}`; `dots` when `...` ends it
    List { items: Vec<Expr>, dots: bool },
    /// `{k = v}`; `dots` when `...` ends it
    KeyValues { items: Vec<(Ident, Expr)>, dots: bool },
    /// `{#}`
    Invalid,
    /// `-e`
    Unary { op: UnaryOp, expr: Box<Expr> },
    /// `a + b`
    Binary { op: BinaryOp, left: Box<Expr>, right: Box<Expr> },
    /// `c ? a : b`
    Ternary { cond: Box<Expr>, then: Box<Expr>, otherwise: Box<Expr> },
    /// `(T) e`
    Cast { ty: Box<TypeRef>, expr: Box<Expr> },
    /// `f<T>(args)`
    Call { callee: Box<Expr>, type_args: Vec<TypeRef>, args: Vec<Arg> },
    /// `T<A>(args)`: a constructor whose type is specialised
    Construct { ty: Box<TypeRef>, args: Vec<Arg> },
    /// `a &&& b`
    Mask { value: Box<Expr>, mask: Box<Expr> },
    /// `a .. b`
    Range { lo: Box<Expr>, hi: Box<Expr> },
}

/// Width prefix of an integer literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntWidth {
    /// Width in bits.
    pub bits: u32,
    /// Whether the prefix is `s` (signed) rather than `w`.
    pub signed: bool,
}

/// Unary operators, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `!`
    Not,
    /// `~`
    BitNot,
    /// `-`
    Neg,
    /// `+`
    Plus,
}

/// Binary operators, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Mod,
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `|+|`
    AddSat,
    /// `|-|`
    SubSat,
    /// `<<`
    Shl,
    /// `>>`
    Shr,
    /// `<=`
    Le,
    /// `>=`
    Ge,
    /// `<`
    Lt,
    /// `>`
    Gt,
    /// `!=`
    Ne,
    /// `==`
    Eq,
    /// `&`
    BitAnd,
    /// `^`
    BitXor,
    /// `|`
    BitOr,
    /// `++`
    Concat,
    /// `&&`
    And,
    /// `||`
    Or,
}
