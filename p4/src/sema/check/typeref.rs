//! Checks types as written.

use super::Checker;
use super::scope::{Symbol, TypeSym};
use crate::ast::{Expr, Name, Span, TypeRef, TypeRefKind};
use crate::diag::Diagnostic;
use crate::sema::types::{Extent, ExternTy, StructKind, Subst, Type, TypeVar};
use crate::sema::value::Value;
use num_bigint::BigInt;
use num_traits::ToPrimitive;
use std::rc::Rc;

/// Maximum width of a number, in bits.
pub(super) const MAX_WIDTH: u32 = 2048;
/// Maximum width of a varbit, in bits.
const MAX_VARBIT: u32 = 16384;
/// Maximum scalars in a type, including those of its parts.
const MAX_PARTS: u64 = 1 << 14;
/// Maximum nesting of types.
const MAX_LEVELS: u32 = 100;
/// Maximum elements of a header stack.
const MAX_STACK: u32 = 4096;

impl Checker {
    /// Resolves a type as written.
    pub(super) fn type_ref(&mut self, ty: &TypeRef) -> Type {
        match &ty.kind {
            TypeRefKind::Bool => Type::Bool,
            TypeRefKind::Error => {
                if self.out.errors.is_empty() {
                    self.report(
                        Diagnostic::error(ty.span, "no errors are declared")
                            .help("include <core.p4>, or declare some: `error { … }`"),
                    );
                    return Type::Poison;
                }
                Type::Error
            }
            TypeRefKind::MatchKind => Type::MatchKind,
            TypeRefKind::String => Type::Str,
            TypeRefKind::Void => Type::Void,
            TypeRefKind::InfInt => Type::InfInt,
            TypeRefKind::DontCare => Type::DontCare,
            TypeRefKind::Bit(None) => Type::Bit(1),
            TypeRefKind::Bit(Some(width)) => self.width(width, 0, MAX_WIDTH).map_or(Type::Poison, Type::Bit),
            TypeRefKind::Int(width) => self.width(width, 1, MAX_WIDTH).map_or(Type::Poison, Type::Int),
            TypeRefKind::Varbit(width) => self.width(width, 0, MAX_VARBIT).map_or(Type::Poison, Type::Varbit),
            TypeRefKind::List(item) => {
                let item = self.type_ref(item);
                if item.is_poison() { Type::Poison } else { self.limited(Type::List(Rc::new(item)), ty.span) }
            }
            TypeRefKind::Tuple(items) => {
                let types: Vec<Type> = items.iter().map(|t| self.type_ref(t)).collect();
                // Match kinds and `int` are legal for constants, which constructors of externs may take.
                let constant = |t: &Type| matches!(t, Type::MatchKind | Type::InfInt);
                for (item, ty) in items.iter().zip(&types).filter(|(_, t)| !constant(t)) {
                    self.storable(ty, item.span, "a tuple");
                }
                if types.iter().any(Type::is_poison) {
                    return Type::Poison;
                }
                self.limited(Type::Tuple(types.into()), ty.span)
            }
            TypeRefKind::Stack { element, size } => {
                let element_ty = self.type_ref(element);
                let length = self.const_int(size, "the size of a header stack");
                if element_ty.is_poison() {
                    return Type::Poison;
                }
                // Of externs it is a declaration of several instances.
                let extern_array = matches!(element_ty, Type::Extern(_));
                if !extern_array && !self.storable(&element_ty, element.span, "an array") {
                    return Type::Poison;
                }
                match length {
                    None => Type::Poison,
                    Some(n) => match n.to_u32() {
                        Some(n) if n <= MAX_STACK => {
                            self.limited(Type::Stack(Rc::new(element_ty), n), ty.span)
                        }
                        _ => {
                            self.error(size.span, format!("a stack has 0 to {MAX_STACK} elements, not {n}"));
                            Type::Poison
                        }
                    },
                }
            }
            TypeRefKind::Named { name, args } => self.named_type(name, args, ty.span),
        }
    }

    fn named_type(&mut self, name: &Name, args: &[TypeRef], span: Span) -> Type {
        let symbol = self.lookup(name);
        let sym = match symbol {
            Symbol::Type(sym) => sym,
            Symbol::Poison => return Type::Poison,
            other => {
                self.error(span, format!("`{}` is {}, not a type", name.ident.name, other.a_what()));
                return Type::Poison;
            }
        };
        let types: Vec<Type> = args.iter().map(|a| self.type_ref(a)).collect();
        if types.iter().any(Type::is_poison) {
            return Type::Poison;
        }
        self.specialise(&sym, types, &name.ident.name, span)
    }

    /// Applies a generic type to its arguments.
    pub(super) fn specialise(&mut self, sym: &TypeSym, args: Vec<Type>, name: &str, span: Span) -> Type {
        let wanted = match sym {
            TypeSym::Plain(_) => 0,
            TypeSym::Struct(_, params) => params.len(),
            TypeSym::Extern(def) => def.type_params.len(),
            TypeSym::Block(block) => block.type_params.len(),
        };
        // Arguments of externs, parsers, controls and packages may be inferred.
        let inferable = matches!(sym, TypeSym::Extern(_) | TypeSym::Block(_)) && args.is_empty();
        if args.len() != wanted && !inferable {
            let plural = if wanted == 1 { "" } else { "s" };
            self.error(span, format!("`{name}` takes {wanted} type argument{plural}, {} given", args.len()));
            return Type::Poison;
        }
        // A method of an extern may return it.
        if args.iter().any(|a| matches!(a, Type::Void)) && !matches!(sym, TypeSym::Extern(_)) {
            self.error(span, "`void` cannot be a type argument");
            return Type::Poison;
        }
        if let Some(block) = args.iter().find(|a| matches!(a, Type::Block(_) | Type::Table(_))) {
            self.error(span, format!("`{block}` cannot be a type argument"));
            return Type::Poison;
        }
        if let TypeSym::Extern(def) = sym
            && args.iter().any(|a| matches!(a, Type::Extern(e) if e.def.id == def.id))
        {
            self.error(span, format!("`{name}` cannot have itself as type argument"));
            return Type::Poison;
        }
        match sym {
            TypeSym::Plain(ty) => ty.clone(),
            TypeSym::Struct(def, params) => {
                if params.is_empty() {
                    return Type::Struct(def.clone());
                }
                let own = args.iter().any(|a| matches!(a, Type::Struct(s) if s.id == def.id));
                if own || args.iter().any(|a| matches!(a, Type::DontCare)) {
                    let what = if own { "itself" } else { "`_`" };
                    self.error(span, format!("`{name}` cannot have {what} as type argument"));
                    return Type::Poison;
                }
                let ty = def.subst(&bind(params, &args));
                if !self.type_fits(ty.extent, span, name) {
                    return Type::Poison;
                }
                for field in &ty.fields {
                    let fits = match ty.kind {
                        StructKind::Struct => {
                            self.storable(&field.ty, span, &format!("field `{}`", field.name))
                        }
                        StructKind::Header => super::data_types::header_field(&field.ty),
                        StructKind::Union => {
                            field.ty.is_header() || matches!(field.ty, Type::Var(_) | Type::Poison)
                        }
                    };
                    if !fits {
                        if ty.kind != StructKind::Struct {
                            let message =
                                format!("field `{}` of `{name}` cannot be `{}`", field.name, field.ty);
                            self.error(span, message);
                        }
                        return Type::Poison;
                    }
                }
                Type::Struct(Rc::new(ty))
            }
            TypeSym::Extern(def) => {
                self.limited(Type::Extern(Rc::new(ExternTy { def: def.clone(), args })), span)
            }
            TypeSym::Block(block) if args.is_empty() => Type::Block(block.clone()),
            TypeSym::Block(block) => {
                // `_` is inferred like missing arguments.
                let mut subst = bind(&block.type_params, &args);
                subst.retain(|_, ty| *ty != Type::DontCare);
                self.limited(Type::Block(Rc::new(block.subst(&subst))), span)
            }
        }
    }

    /// The type, unless it is too big.
    pub(super) fn limited(&mut self, ty: Type, span: Span) -> Type {
        if self.type_fits(ty.extent(), span, "this type") { ty } else { Type::Poison }
    }

    /// Reports a type with too many parts or levels.
    pub(super) fn type_fits(&mut self, extent: Extent, span: Span, what: &str) -> bool {
        let why = if extent.parts > MAX_PARTS {
            format!("has {} parts with those of its parts, at most {MAX_PARTS} fit", extent.parts)
        } else if extent.levels > MAX_LEVELS {
            format!("has more than {MAX_LEVELS} levels of nested types")
        } else {
            return true;
        };
        self.error(span, format!("`{what}` {why}"));
        false
    }

    fn width(&mut self, expr: &Expr, least: u32, most: u32) -> Option<u32> {
        let value = self.const_int(expr, "a width")?;
        match value.to_u32() {
            Some(width) if (least..=most).contains(&width) => Some(width),
            _ => {
                self.error(expr.span, format!("a width is between {least} and {most}, not {value}"));
                None
            }
        }
    }

    /// A number known at compile time; reports anything else.
    pub(super) fn const_int(&mut self, expr: &Expr, what: &str) -> Option<BigInt> {
        let typed = self.expr(expr);
        match typed.value() {
            Some(Value::Int(i)) => Some(i.clone()),
            _ if typed.is_bad() => None,
            _ => {
                self.error(expr.span, format!("{what} must be a number known at compile time"));
                None
            }
        }
    }

    /// Reports a type whose values cannot be stored in a variable or field.
    pub(super) fn storable(&mut self, ty: &Type, span: Span, place: &str) -> bool {
        let compile_time = match ty {
            Type::Tuple(items) => items.contains(&Type::MatchKind),
            Type::Stack(element, _) => matches!(**element, Type::Extern(_)),
            _ => false,
        };
        let ok = !compile_time
            && !matches!(
                ty,
                Type::Void
                    | Type::InfInt
                    | Type::Str
                    | Type::MatchKind
                    | Type::DontCare
                    | Type::Extern(_)
                    | Type::Block(_)
                    | Type::Table(_)
                    | Type::Applied(_)
                    | Type::Set(_)
                    | Type::Literal(_)
                    | Type::Dots
                    | Type::InvalidHeader
            );
        if !ok {
            self.error(span, format!("{place} cannot hold `{ty}`"));
        }
        ok
    }
}

/// Substitution of arguments for type parameters.
pub(super) fn bind(params: &[Rc<TypeVar>], args: &[Type]) -> Subst {
    params.iter().map(|p| p.id).zip(args.iter().cloned()).collect()
}
