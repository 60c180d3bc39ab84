//! Types with resolved names.

use super::{Annos, BlockDef, Param, TableDef};
use crate::ir::Ty;
use num_bigint::BigInt;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

/// A type. Named types are compared by declaration and arguments.
#[derive(Clone, Debug)]
pub(crate) enum Type {
    /// The type of something in error. It fits everywhere, so that one mistake is reported once.
    Poison,
    Void,
    Bool,
    Error,
    MatchKind,
    Str,
    /// `int`: integers of any size, known at compile time.
    InfInt,
    /// `_` as a type argument.
    DontCare,
    Bit(u32),
    Int(u32),
    Varbit(u32),
    Enum(Rc<EnumTy>),
    Struct(Rc<StructTy>),
    Stack(Rc<Type>, u32),
    Tuple(Rc<[Type]>),
    List(Rc<Type>),
    /// The type of `{a, b}` and `{k = v}` until the target type is known.
    Literal(Rc<LiteralTy>),
    /// The type of `{#}`.
    InvalidHeader,
    /// The type of `...`.
    Dots,
    New(Rc<NewTy>),
    Var(Rc<TypeVar>),
    Extern(Rc<ExternTy>),
    Block(Rc<BlockTy>),
    Table(Rc<TableDef>),
    /// The type of `t.apply()`.
    Applied(Rc<TableDef>),
    /// The type of `t.apply().action_run`.
    ActionRun(Rc<TableDef>),
    /// The type of a value set, of `a &&& b` and of `a .. b`.
    Set(Rc<Type>),
}

/// The type of a list or key-value expression.
#[derive(Debug)]
pub(crate) struct LiteralTy {
    pub names: Option<Vec<String>>,
    pub items: Vec<Type>,
    pub dots: bool,
}

/// A type parameter.
#[derive(Debug)]
pub(crate) struct TypeVar {
    pub id: u32,
    pub name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StructKind {
    Struct,
    Header,
    Union,
}

/// A struct, header or header union, with its type parameters replaced.
#[derive(Debug)]
pub(crate) struct StructTy {
    pub id: u32,
    pub name: String,
    pub kind: StructKind,
    pub args: Vec<Type>,
    pub fields: Vec<FieldTy>,
    pub extent: Extent,
    pub annos: Rc<Annos>,
}

/// The size of a type. Limits on both numbers keep every walk through a type short.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Scalars, including those of parts; at least 1.
    pub parts: u64,
    /// Depth of nesting.
    pub levels: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct FieldTy {
    pub name: String,
    pub ty: Type,
    pub annos: Rc<Annos>,
}

/// An enum; `repr` is the underlying type of a serializable one.
#[derive(Debug)]
pub(crate) struct EnumTy {
    pub id: u32,
    pub name: String,
    pub repr: Option<Type>,
    pub members: Vec<EnumMemberTy>,
}

#[derive(Debug)]
pub(crate) struct EnumMemberTy {
    pub name: String,
    pub value: BigInt,
}

/// `type T N`
#[derive(Debug)]
pub(crate) struct NewTy {
    pub id: u32,
    pub name: String,
    pub inner: Type,
    pub annos: Rc<Annos>,
}

/// An extern's declaration.
#[derive(Debug)]
pub(crate) struct ExternDef {
    pub id: u32,
    pub name: String,
    pub type_params: Vec<Rc<TypeVar>>,
    pub ctors: Vec<Rc<super::FnDef>>,
    pub methods: Vec<Rc<super::FnDef>>,
}

/// An extern with type arguments. Missing ones are to be inferred.
#[derive(Debug)]
pub(crate) struct ExternTy {
    pub def: Rc<ExternDef>,
    pub args: Vec<Type>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Parser,
    Control,
    Package,
}

impl BlockKind {
    pub fn name(self) -> &'static str {
        match self {
            BlockKind::Parser => "parser",
            BlockKind::Control => "control",
            BlockKind::Package => "package",
        }
    }
}

/// A parser, control or package: a type or a declaration with body.
#[derive(Debug)]
pub(crate) struct BlockTy {
    pub id: u32,
    pub name: String,
    pub kind: BlockKind,
    pub type_params: Vec<Rc<TypeVar>>,
    pub args: Vec<Type>,
    /// Parameters of `apply`; of a package, those of its constructor.
    pub params: Vec<Rc<Param>>,
    pub ctor_params: Vec<Rc<Param>>,
    pub body: Option<Rc<BlockDef>>,
}

/// Types of type parameters, by id.
pub(crate) type Subst = HashMap<u32, Type>;

impl Type {
    pub fn is_poison(&self) -> bool {
        matches!(self, Type::Poison)
    }

    /// `bit<n>` or `int<n>`.
    pub fn is_bits(&self) -> bool {
        matches!(self, Type::Bit(_) | Type::Int(_))
    }

    pub fn is_header(&self) -> bool {
        matches!(self, Type::Struct(s) if s.kind == StructKind::Header)
    }

    /// Whether it is a stack of headers or header unions rather than an array.
    pub fn is_header_stack(&self) -> bool {
        let Type::Stack(element, _) = self else { return false };
        match &**element {
            Type::Struct(s) => s.kind != StructKind::Struct,
            other => matches!(other, Type::Var(_)),
        }
    }

    /// The struct, header or union behind the type.
    pub fn as_struct(&self) -> Option<&Rc<StructTy>> {
        match self {
            Type::Struct(s) => Some(s),
            _ => None,
        }
    }

    /// The underlying type of a serializable enum or new type; otherwise the type itself.
    pub fn underlying(&self) -> &Type {
        match self {
            Type::Enum(e) => e.repr.as_ref().unwrap_or(self),
            Type::New(n) => n.inner.underlying(),
            _ => self,
        }
    }

    /// The scalar that stores it, if one suffices.
    pub fn scalar(&self) -> Option<Ty> {
        match self {
            Type::Bool => Some(Ty::Bool),
            Type::Bit(w) => Some(Ty::Bit(*w)),
            Type::Int(w) => Some(Ty::Int(*w)),
            Type::Varbit(w) => Some(Ty::Varbit(*w)),
            Type::Error => Some(Ty::Bit(32)),
            Type::Enum(e) => match &e.repr {
                Some(repr) => repr.scalar(),
                None => Some(Ty::Bit(32)),
            },
            Type::New(n) => n.inner.scalar(),
            _ => None,
        }
    }

    /// The size of the type.
    pub fn extent(&self) -> Extent {
        match self {
            Type::Struct(s) => s.extent,
            Type::Stack(element, n) => {
                let inner = element.extent();
                Extent {
                    parts: inner.parts.saturating_mul(u64::from(*n)),
                    levels: inner.levels.saturating_add(1),
                }
            }
            Type::Tuple(items) => Extent::of(items.iter()),
            Type::List(item) | Type::Set(item) => Extent::of(std::iter::once(&**item)),
            Type::New(n) => Extent::of(std::iter::once(&n.inner)),
            Type::Extern(e) => Extent::of(e.args.iter()),
            Type::Block(b) => Extent::of(b.args.iter()),
            _ => Extent { parts: 1, levels: 0 },
        }
    }

    /// Replaces type parameters.
    pub fn subst(&self, map: &Subst) -> Type {
        if map.is_empty() {
            return self.clone();
        }
        match self {
            Type::Var(v) => map.get(&v.id).cloned().unwrap_or_else(|| self.clone()),
            Type::Struct(s) if !s.args.is_empty() => Type::Struct(Rc::new(s.subst(map))),
            Type::Stack(e, n) => Type::Stack(Rc::new(e.subst(map)), *n),
            Type::Tuple(items) => Type::Tuple(items.iter().map(|t| t.subst(map)).collect()),
            Type::List(item) => Type::List(Rc::new(item.subst(map))),
            Type::Set(item) => Type::Set(Rc::new(item.subst(map))),
            Type::Extern(e) if !e.args.is_empty() => Type::Extern(Rc::new(ExternTy {
                def: e.def.clone(),
                args: e.args.iter().map(|t| t.subst(map)).collect(),
            })),
            Type::Block(b) if !b.args.is_empty() => Type::Block(Rc::new(b.subst(map))),
            _ => self.clone(),
        }
    }

    /// Whether a type parameter occurs in it.
    pub fn has_vars(&self) -> bool {
        match self {
            Type::Var(_) | Type::DontCare => true,
            Type::Struct(s) => s.args.iter().any(Type::has_vars),
            Type::Stack(e, _) | Type::List(e) | Type::Set(e) => e.has_vars(),
            Type::Tuple(items) => items.iter().any(Type::has_vars),
            Type::Extern(e) => e.args.iter().any(Type::has_vars),
            Type::Block(b) => b.args.iter().any(Type::has_vars),
            _ => false,
        }
    }

    /// Whether it leaves something to be inferred: `_`, or one of these type parameters.
    pub fn is_open(&self, vars: &[Rc<TypeVar>]) -> bool {
        let any = |types: &[Type]| types.iter().any(|t| t.is_open(vars));
        match self {
            Type::DontCare => true,
            Type::Var(v) => vars.iter().any(|own| own.id == v.id),
            Type::Struct(s) => any(&s.args),
            Type::Stack(e, _) | Type::List(e) | Type::Set(e) => e.is_open(vars),
            Type::Tuple(items) => any(items),
            Type::Extern(e) => any(&e.args),
            Type::Block(b) => any(&b.args),
            _ => false,
        }
    }

    /// Bits of a header, struct or scalar: minimum and maximum, which differ with a varbit.
    pub fn bit_size(&self) -> Option<(u64, u64)> {
        match self {
            Type::Varbit(w) => Some((0, u64::from(*w))),
            Type::Struct(s) if s.kind == StructKind::Union => {
                let sizes: Option<Vec<_>> = s.fields.iter().map(|f| f.ty.bit_size()).collect();
                let sizes = sizes?;
                Some((sizes.iter().map(|s| s.0).min()?, sizes.iter().map(|s| s.1).max()?))
            }
            Type::Struct(s) => {
                let mut total = (0, 0);
                for field in &s.fields {
                    let size = field.ty.bit_size()?;
                    total = (total.0 + size.0, total.1 + size.1);
                }
                Some(total)
            }
            Type::Stack(e, n) => e.bit_size().map(|(lo, hi)| (lo * u64::from(*n), hi * u64::from(*n))),
            Type::Tuple(items) => {
                let mut total = (0, 0);
                for item in items.iter() {
                    let size = item.bit_size()?;
                    total = (total.0 + size.0, total.1 + size.1);
                }
                Some(total)
            }
            Type::Enum(e) if e.repr.is_none() => None,
            Type::Error => None,
            other => other.scalar().map(|t| (u64::from(t.width()), u64::from(t.width()))),
        }
    }
}

impl Extent {
    /// The extent of something that consists of these.
    pub fn of<'t>(parts: impl Iterator<Item = &'t Type>) -> Extent {
        parts.map(Type::extent).fold(Extent { parts: 1, levels: 1 }, |whole, part| Extent {
            parts: whole.parts.saturating_add(part.parts),
            levels: whole.levels.max(part.levels.saturating_add(1)),
        })
    }
}

impl StructTy {
    /// Replaces type parameters in arguments and fields.
    pub fn subst(&self, map: &Subst) -> StructTy {
        let fields: Vec<FieldTy> =
            self.fields.iter().map(|f| FieldTy { ty: f.ty.subst(map), ..f.clone() }).collect();
        StructTy {
            id: self.id,
            name: self.name.clone(),
            kind: self.kind,
            args: self.args.iter().map(|t| t.subst(map)).collect(),
            extent: Extent::of(fields.iter().map(|f| &f.ty)),
            fields,
            annos: self.annos.clone(),
        }
    }

    pub fn field(&self, name: &str) -> Option<(usize, &FieldTy)> {
        self.fields.iter().enumerate().find(|(_, f)| f.name == name)
    }
}

impl BlockTy {
    /// Parameters of its constructor.
    pub fn constructor(&self) -> &[Rc<Param>] {
        if self.kind == BlockKind::Package { &self.params } else { &self.ctor_params }
    }

    /// Whether some of its own type arguments are still to be inferred.
    pub fn is_open(&self) -> bool {
        self.args.iter().any(|ty| ty.is_open(&self.type_params))
    }

    /// Replaces type parameters in arguments and parameters.
    pub fn subst(&self, map: &Subst) -> BlockTy {
        let params = |list: &[Rc<Param>]| list.iter().map(|p| Rc::new(p.subst(map))).collect();
        BlockTy {
            id: self.id,
            name: self.name.clone(),
            kind: self.kind,
            type_params: self.type_params.clone(),
            args: self.args.iter().map(|t| t.subst(map)).collect(),
            params: params(&self.params),
            ctor_params: params(&self.ctor_params),
            body: self.body.clone(),
        }
    }
}

impl PartialEq for Type {
    fn eq(&self, other: &Type) -> bool {
        use Type::*;
        match (self, other) {
            (Poison, Poison) | (Void, Void) | (Bool, Bool) | (Error, Error) | (MatchKind, MatchKind) => true,
            (Str, Str) | (InfInt, InfInt) | (DontCare, DontCare) => true,
            (InvalidHeader, InvalidHeader) | (Dots, Dots) => true,
            (Bit(a), Bit(b)) | (Int(a), Int(b)) | (Varbit(a), Varbit(b)) => a == b,
            (Enum(a), Enum(b)) => a.id == b.id,
            (Struct(a), Struct(b)) => a.id == b.id && a.args == b.args,
            (Stack(a, n), Stack(b, m)) => n == m && a == b,
            (Tuple(a), Tuple(b)) => a == b,
            (List(a), List(b)) | (Set(a), Set(b)) => a == b,
            (Literal(a), Literal(b)) => a.names == b.names && a.items == b.items && a.dots == b.dots,
            (New(a), New(b)) => a.id == b.id,
            (Var(a), Var(b)) => a.id == b.id,
            (Extern(a), Extern(b)) => a.def.id == b.def.id && a.args == b.args,
            (Block(a), Block(b)) => a.id == b.id && a.args == b.args,
            (Table(a), Table(b)) | (Applied(a), Applied(b)) | (ActionRun(a), ActionRun(b)) => a.id == b.id,
            _ => false,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Poison => f.write_str("?"),
            Type::Void => f.write_str("void"),
            Type::Bool => f.write_str("bool"),
            Type::Error => f.write_str("error"),
            Type::MatchKind => f.write_str("match_kind"),
            Type::Str => f.write_str("string"),
            Type::InfInt => f.write_str("int"),
            Type::DontCare => f.write_str("_"),
            Type::Bit(w) => write!(f, "bit<{w}>"),
            Type::Int(w) => write!(f, "int<{w}>"),
            Type::Varbit(w) => write!(f, "varbit<{w}>"),
            Type::Enum(e) => f.write_str(&e.name),
            Type::Struct(s) => named(f, &s.name, &s.args),
            Type::Stack(e, n) => write!(f, "{e}[{n}]"),
            Type::Tuple(items) => named(f, "tuple", items),
            Type::List(item) => write!(f, "list<{item}>"),
            Type::Literal(l) => {
                f.write_str("{")?;
                for (i, item) in l.items.iter().enumerate() {
                    f.write_str(if i == 0 { "" } else { ", " })?;
                    if let Some(name) = l.names.as_ref().and_then(|n| n.get(i)) {
                        write!(f, "{name} = ")?;
                    }
                    write!(f, "{item}")?;
                }
                f.write_str("}")
            }
            Type::InvalidHeader => f.write_str("{#}"),
            Type::Dots => f.write_str("..."),
            Type::New(n) => f.write_str(&n.name),
            Type::Var(v) => f.write_str(&v.name),
            Type::Extern(e) => named(f, &e.def.name, &e.args),
            Type::Block(b) => named(f, &b.name, &b.args),
            Type::Table(t) => write!(f, "table {}", t.name),
            Type::Applied(t) => write!(f, "result of table {}", t.name),
            Type::ActionRun(t) => write!(f, "action_run of table {}", t.name),
            Type::Set(item) => write!(f, "set<{item}>"),
        }
    }
}

fn named(f: &mut fmt::Formatter<'_>, name: &str, args: &[Type]) -> fmt::Result {
    f.write_str(name)?;
    if !args.is_empty() {
        let args: Vec<_> = args.iter().map(Type::to_string).collect();
        write!(f, "<{}>", args.join(", "))?;
    }
    Ok(())
}
