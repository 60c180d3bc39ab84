//! The typed tree: a checked program with all names resolved and all expressions typed, before anything is
//! instantiated.

pub(crate) mod types;
pub(crate) mod value;

use crate::ast::{Direction, Ident, Span};
use crate::ir::Annotation;
use std::rc::Rc;
use types::{EnumTy, Subst, Type};
use value::Value;

/// A variable, parameter or instance, wherever it is declared. Unique within a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LocalId(pub u32);

/// Annotations; those with a meaning for the compiler are taken apart.
#[derive(Clone, Debug, Default)]
pub(crate) struct Annos {
    pub name: Option<String>,
    pub id: Option<u32>,
    pub hidden: bool,
    pub optional: bool,
    pub table_only: bool,
    pub default_only: bool,
    pub deprecated: Option<String>,
    pub field_lists: Vec<u32>,
    /// All others, and those that P4Info shows.
    pub rest: Vec<Annotation>,
}

/// A parameter.
#[derive(Debug)]
pub(crate) struct Param {
    pub id: LocalId,
    pub name: String,
    pub ty: Type,
    pub dir: Direction,
    pub default: Option<TExpr>,
    pub annos: Rc<Annos>,
    pub span: Span,
}

impl Param {
    /// Replaces type parameters.
    pub fn subst(&self, map: &Subst) -> Param {
        Param {
            id: self.id,
            name: self.name.clone(),
            ty: self.ty.subst(map),
            dir: self.dir,
            default: self.default.clone(),
            annos: self.annos.clone(),
            span: self.span,
        }
    }

    /// Whether a call may omit it.
    pub fn may_be_absent(&self) -> bool {
        self.default.is_some() || self.annos.optional
    }
}

/// A function, extern function, method or constructor.
#[derive(Debug)]
pub(crate) struct FnDef {
    pub name: String,
    pub type_params: Vec<Rc<types::TypeVar>>,
    pub ret: Type,
    pub params: Vec<Rc<Param>>,
    /// `None` for an extern.
    pub body: Option<Vec<TStmt>>,
    pub annos: Rc<Annos>,
    pub is_abstract: bool,
}

/// An action.
#[derive(Debug)]
pub(crate) struct ActionDef {
    pub id: LocalId,
    pub name: String,
    pub params: Vec<Rc<Param>>,
    pub body: Vec<TStmt>,
    pub annos: Rc<Annos>,
    /// Whether it is declared outside of all controls.
    pub global: bool,
    pub span: Span,
}

/// An instantiation of an extern, parser, control or package.
#[derive(Debug)]
pub(crate) struct InstDecl {
    pub id: LocalId,
    pub name: String,
    pub ty: Type,
    /// One per constructor parameter.
    pub args: Vec<Option<TExpr>>,
    pub implemented: Implemented,
    pub annos: Rc<Annos>,
    pub span: Span,
}

impl InstDecl {
    /// The same instance of a more specific type.
    pub fn with_type(&self, ty: Type) -> InstDecl {
        InstDecl {
            id: self.id,
            name: self.name.clone(),
            ty,
            args: self.args.clone(),
            implemented: self.implemented.clone(),
            annos: self.annos.clone(),
            span: self.span,
        }
    }
}

/// The `{ … }` after an instance of an extern.
#[derive(Clone, Debug, Default)]
pub(crate) struct Implemented {
    /// Bodies of its abstract methods.
    pub methods: Vec<Rc<FnDef>>,
    /// Instances beside them.
    pub instances: Vec<Rc<InstDecl>>,
}

/// A declaration in a parser or control, in order.
#[derive(Debug)]
pub(crate) enum Item {
    Var(LocalId, Option<TExpr>, Span),
    Inst(Rc<InstDecl>),
    Action(Rc<ActionDef>),
    Table(Rc<TableDef>),
    ValueSet(Rc<ValueSetDef>),
}

/// The body of a parser or control.
#[derive(Debug, Default)]
pub(crate) struct BlockDef {
    pub items: Vec<Item>,
    /// Statements of a control.
    pub apply: Vec<TStmt>,
    /// States of a parser, `start` included.
    pub states: Vec<StateDef>,
    pub span: Span,
}

/// A parser state.
#[derive(Debug)]
pub(crate) struct StateDef {
    pub name: String,
    pub annos: Rc<Annos>,
    pub body: Vec<TStmt>,
    pub next: TNext,
}

/// Target of a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StateRef {
    Accept,
    Reject,
    State(usize),
}

/// The transition of a state.
#[derive(Debug)]
pub(crate) enum TNext {
    Goto(StateRef),
    Select { keys: Vec<TExpr>, cases: Vec<(Vec<Keyset>, StateRef)> },
}

/// The set that a key is compared with.
#[derive(Clone, Debug)]
pub(crate) enum Keyset {
    Any,
    Value(TExpr),
    Mask(TExpr, TExpr),
    Range(TExpr, TExpr),
    /// Parts of a key with several parts.
    Parts(Vec<Keyset>),
    /// All keys from here on.
    ValueSet(Rc<ValueSetDef>, Span),
}

/// A value set.
#[derive(Debug)]
pub(crate) struct ValueSetDef {
    pub id: LocalId,
    pub name: String,
    pub ty: Type,
    pub size: TExpr,
    pub annos: Rc<Annos>,
    pub span: Span,
}

/// A table.
#[derive(Debug, Default)]
pub(crate) struct TableDef {
    pub id: u32,
    pub name: String,
    pub annos: Rc<Annos>,
    pub keys: Vec<TKey>,
    pub actions: Vec<TActionRef>,
    /// `default_action`, and whether it is const.
    pub default: Option<(TActionCall, bool)>,
    pub entries: Vec<TEntry>,
    pub entries_const: bool,
    pub size: Option<TExpr>,
    pub implementation: Option<TExpr>,
    pub counters: Option<TExpr>,
    pub meters: Option<TExpr>,
    pub idle_timeout: bool,
    /// Properties that only some architectures have.
    pub others: Vec<(Ident, TExpr)>,
    pub largest_priority_wins: bool,
    pub priority_delta: i64,
    pub span: Span,
}

/// A key of a table.
#[derive(Debug)]
pub(crate) struct TKey {
    pub expr: TExpr,
    /// Match kind as spelt: `exact`, ….
    pub kind: String,
    pub kind_span: Span,
    /// `@name`, or the expression as text.
    pub name: String,
    pub annos: Rc<Annos>,
}

/// An action in a table's list.
#[derive(Debug)]
pub(crate) struct TActionRef {
    pub action: Rc<ActionDef>,
    /// Arguments for the parameters with a direction, which come first.
    pub bound: Vec<TExpr>,
    /// Positions in `bound` in the order in which they are evaluated and copied back.
    pub order: Vec<usize>,
    pub annos: Rc<Annos>,
}

/// An action with arguments for its directionless parameters.
#[derive(Debug)]
pub(crate) struct TActionCall {
    /// Position in the table's list.
    pub index: usize,
    pub args: Vec<TExpr>,
}

/// An entry written in the program.
#[derive(Debug)]
pub(crate) struct TEntry {
    pub keys: Vec<Keyset>,
    pub call: TActionCall,
    pub priority: Option<TExpr>,
    /// `@priority(N)`. As in BMv2's compiler, the smallest one wins, and N replaces the entry's position.
    pub rank: Option<i64>,
    pub is_const: bool,
    pub span: Span,
}

/// An expression with its type.
#[derive(Clone, Debug)]
pub(crate) struct TExpr {
    pub kind: EKind,
    pub ty: Type,
    pub span: Span,
}

/// A built-in member of a header stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StackPart {
    Next,
    Last,
    LastIndex,
}

/// The forms of an expression.
#[derive(Clone, Debug)]
pub(crate) enum EKind {
    /// An expression in error, which was reported.
    Bad,
    Const(Value),
    Local(LocalId),
    /// A value set used as a keyset.
    ValueSet,
    /// An instance created in place, as an argument.
    New(Rc<InstDecl>),
    Field(Box<TExpr>, usize),
    StackPart(Box<TExpr>, StackPart),
    Index(Box<TExpr>, Box<TExpr>),
    Slice(Box<TExpr>, u32, u32),
    Unary(crate::ast::UnaryOp, Box<TExpr>),
    Binary(crate::ast::BinaryOp, Box<TExpr>, Box<TExpr>),
    Ternary(Box<TExpr>, Box<TExpr>, Box<TExpr>),
    /// A cast to the expression's type.
    Cast(Box<TExpr>),
    /// Parts in the order of the type.
    List(Vec<TExpr>),
    /// `{#}`
    Invalid,
    /// The default value of the type (`...`).
    Default,
    /// The range of a loop.
    Range(Box<TExpr>, Box<TExpr>),
    Call(Box<TCall>),
    /// `t.apply().hit`, `.miss`
    Hit(Box<TExpr>, bool),
    /// `t.apply().action_run`
    ActionRun(Box<TExpr>),
}

/// A call, with its arguments in the parameters' order.
#[derive(Clone, Debug)]
pub(crate) struct TCall {
    pub target: Callee,
    pub type_args: Vec<Type>,
    /// One per parameter. `None` if an optional one is absent, or an out one is `_`.
    pub args: Vec<Option<TExpr>>,
    /// Positions in `args` in the order in which the arguments are evaluated and copied back: as they are written,
    /// which for named ones may be any order.
    pub order: Vec<usize>,
}

impl TCall {
    /// Parameters with their arguments, in the order in which these are evaluated and copied back.
    pub fn in_order<'c>(
        &'c self,
        params: &'c [Rc<Param>],
    ) -> impl Iterator<Item = (&'c Rc<Param>, Option<&'c TExpr>)> {
        self.order.iter().filter_map(|at| Some((params.get(*at)?, self.args.get(*at)?.as_ref())))
    }
}

/// The called function.
#[derive(Clone, Debug)]
pub(crate) enum Callee {
    Function(Rc<FnDef>),
    /// An extern function.
    Extern(Rc<FnDef>),
    Method(TExpr, Rc<FnDef>),
    Action(Rc<ActionDef>),
    /// A parser or control.
    Apply(TExpr),
    /// A parser or control that is instantiated by the call itself.
    DirectApply(Rc<InstDecl>),
    Table(Rc<TableDef>),
    IsValid(TExpr),
    SetValid(TExpr, bool),
    /// `push_front` if positive, `pop_front` if negative.
    Shift(TExpr, i32),
}

/// A statement.
#[derive(Clone, Debug)]
pub(crate) struct TStmt {
    pub kind: SKind,
    pub span: Span,
}

/// The forms of a statement.
#[derive(Clone, Debug)]
pub(crate) enum SKind {
    Assign(TExpr, TExpr),
    Call(TExpr),
    If(TExpr, Vec<TStmt>, Vec<TStmt>),
    Block(Vec<TStmt>),
    Exit,
    Return(Option<TExpr>),
    /// Labels with fall-through resolved. The body without labels is the default's.
    Switch(TExpr, Vec<(Vec<TExpr>, Vec<TStmt>)>, Vec<TStmt>),
    /// On `t.apply().action_run`: positions in the table's list.
    SwitchAction(TExpr, Vec<(Vec<usize>, Vec<TStmt>)>, Vec<TStmt>),
    For(Vec<TStmt>, TExpr, Vec<TStmt>, Vec<TStmt>),
    /// Variable, then `lo .. hi`, a list or a stack, then the body.
    ForIn(LocalId, Type, TExpr, Vec<TStmt>),
    Break,
    Continue,
    Var(LocalId, Type, Option<TExpr>),
    Inst(Rc<InstDecl>),
}

impl TExpr {
    pub fn new(kind: EKind, ty: Type, span: Span) -> TExpr {
        TExpr { kind, ty, span }
    }

    pub fn bad(span: Span) -> TExpr {
        TExpr { kind: EKind::Bad, ty: Type::Poison, span }
    }

    pub fn constant(value: Value, ty: Type, span: Span) -> TExpr {
        TExpr { kind: EKind::Const(value), ty, span }
    }

    /// The same parser, control or package as one of a more specific type.
    pub fn of_block(self, ty: Type) -> TExpr {
        let kind = match self.kind {
            EKind::New(inst) => EKind::New(Rc::new(inst.with_type(ty.clone()))),
            other => other,
        };
        TExpr { kind, ty, span: self.span }
    }

    pub fn is_bad(&self) -> bool {
        self.ty.is_poison()
    }

    /// Its value, if it is constant.
    pub fn value(&self) -> Option<&Value> {
        match &self.kind {
            EKind::Const(v) => Some(v),
            _ => None,
        }
    }

    /// Whether evaluating it has side effects.
    pub fn has_effects(&self) -> bool {
        match &self.kind {
            EKind::Call(call) => !matches!(call.target, Callee::IsValid(_)),
            EKind::Hit(..) | EKind::ActionRun(_) => true,
            EKind::Field(e, _) | EKind::StackPart(e, _) | EKind::Slice(e, ..) => e.has_effects(),
            EKind::Unary(_, e) | EKind::Cast(e) => e.has_effects(),
            EKind::Index(a, b) | EKind::Binary(_, a, b) | EKind::Range(a, b) => {
                a.has_effects() || b.has_effects()
            }
            EKind::Ternary(a, b, c) => a.has_effects() || b.has_effects() || c.has_effects(),
            EKind::List(items) => items.iter().any(TExpr::has_effects),
            _ => false,
        }
    }
}

/// Properties of a local that hold wherever it is used.
#[derive(Clone, Debug)]
pub(crate) struct LocalInfo {
    pub name: String,
    pub ty: Type,
}

/// A program that passed the checks.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    pub locals: Vec<LocalInfo>,
    pub errors: Vec<String>,
    /// Instances at top level, `main` included.
    pub instances: Vec<Rc<InstDecl>>,
    pub main: Option<Rc<InstDecl>>,
    /// Header types annotated `@controller_header`.
    pub structs: Vec<Type>,
    pub new_types: Vec<Rc<types::NewTy>>,
    pub enums: Vec<Rc<EnumTy>>,
    pub global_actions: Vec<Rc<ActionDef>>,
}
