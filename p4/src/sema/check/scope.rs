//! Scopes: names and their meaning.

use super::Checker;
use crate::ast::{Ident, Name, Span};
use crate::diag::Diagnostic;
use crate::sema::tree::{ActionDef, FnDef, InstDecl, LocalId, Param, TExpr, TableDef, ValueSetDef};
use crate::sema::types::{BlockTy, ExternDef, StructTy, Type, TypeVar};
pub(super) use p4rack_p4rt::nearest::nearest;
use std::collections::HashMap;
use std::rc::Rc;

/// The meaning of a name.
#[derive(Clone, Debug)]
pub(super) enum Symbol {
    /// A declaration that is in error.
    Poison,
    Type(TypeSym),
    Const(TExpr),
    Local {
        id: LocalId,
        ty: Type,
    },
    Instance(Rc<InstDecl>),
    Functions(Vec<Rc<FnDef>>),
    Action(Rc<ActionDef>),
    Table(Rc<TableDef>),
    ValueSet(Rc<ValueSetDef>),
}

/// Whether a local may be assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writable {
    Yes,
    /// An `in` parameter.
    InParam,
    /// A parameter without direction.
    NoDirection,
    /// A constructor's parameter.
    CtorParam,
}

/// A type name; generic types need arguments.
#[derive(Clone, Debug)]
pub(super) enum TypeSym {
    Plain(Type),
    Struct(Rc<StructTy>, Vec<Rc<TypeVar>>),
    Extern(Rc<ExternDef>),
    Block(Rc<BlockTy>),
}

#[derive(Clone, Debug)]
struct Entry {
    symbol: Symbol,
    span: Span,
}

/// The names of one scope.
#[derive(Default, Debug)]
pub(super) struct Scope {
    names: HashMap<String, Entry>,
}

impl Symbol {
    fn what(&self) -> &'static str {
        match self {
            Symbol::Poison => "name",
            Symbol::Type(_) => "type",
            Symbol::Const(_) => "constant",
            Symbol::Local { .. } => "variable",
            Symbol::Instance(_) => "instance",
            Symbol::Functions(_) => "function",
            Symbol::Action(_) => "action",
            Symbol::Table(_) => "table",
            Symbol::ValueSet(_) => "value set",
        }
    }

    /// The kind of symbol, with its article.
    pub fn a_what(&self) -> String {
        let what = self.what();
        let article = if what.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
        format!("{article} {what}")
    }
}

impl Checker {
    /// Declares a name in the innermost scope. Reports a second declaration of the same kind.
    pub(super) fn declare(&mut self, ident: &Ident, symbol: Symbol) {
        if ident.name == "_" {
            return;
        }
        let Some(scope) = self.scopes.last_mut() else { return };
        if let Some(old) = scope.names.get_mut(&ident.name) {
            // Its own value named it before: that is reported already.
            if matches!(old.symbol, Symbol::Poison) {
                *old = Entry { symbol, span: ident.span };
                return;
            }
            if let (Symbol::Type(TypeSym::Block(first)), Symbol::Type(TypeSym::Block(new))) =
                (&old.symbol, &symbol)
            {
                let others = self.overloads.entry(first.id).or_default();
                let known = std::iter::once(first).chain(others.iter()).map(|block| block.constructor());
                if known.into_iter().all(|params| !same_parameters(params, new.constructor())) {
                    others.push(new.clone());
                    return;
                }
            }
            if let (Symbol::Functions(overloads), Symbol::Functions(new)) = (&mut old.symbol, &symbol) {
                let twice =
                    new.iter().any(|n| overloads.iter().any(|o| same_parameters(&o.params, &n.params)));
                overloads.extend(new.iter().cloned());
                if twice {
                    // A call of it is an error: nothing decides between them.
                    self.warn(
                        ident.span,
                        format!("`{}` is declared again with these parameters", ident.name),
                    );
                }
                return;
            }
            let first = old.span;
            self.report(
                Diagnostic::error(ident.span, format!("`{}` is declared twice", ident.name))
                    .label(ident.span, "again here")
                    .label(first, "first declared here"),
            );
            return;
        }
        scope.names.insert(ident.name.clone(), Entry { symbol, span: ident.span });
    }

    /// Looks up a name. Does not report a missing one.
    pub(super) fn find(&self, name: &Name) -> Option<&Symbol> {
        let levels = if name.global { 1 } else { self.scopes.len() };
        let visible = self.scopes.get(..levels).unwrap_or_default();
        visible.iter().rev().find_map(|s| s.names.get(&name.ident.name)).map(|e| &e.symbol)
    }

    /// Looks up a name in the innermost scope only.
    pub(super) fn find_here(&self, name: &str) -> Option<&Symbol> {
        self.scopes.last().and_then(|s| s.names.get(name)).map(|e| &e.symbol)
    }

    /// Looks up a name. Reports a missing one.
    pub(super) fn lookup(&mut self, name: &Name) -> Symbol {
        if let Some(symbol) = self.find(name) {
            return symbol.clone();
        }
        let wanted = &name.ident.name;
        let names = self.scopes.iter().flat_map(|s| s.names.keys());
        let mut diagnostic = Diagnostic::error(name.ident.span, format!("unknown name `{wanted}`"));
        if let Some(near) = nearest(wanted, names.map(String::as_str)) {
            diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
        } else if matches!(wanted.as_str(), "packet_in" | "packet_out" | "NoAction" | "verify") {
            diagnostic = diagnostic.help("it is declared in <core.p4>, which the program does not include");
        }
        self.report(diagnostic);
        // Reported once: later uses in this scope stay silent.
        if let Some(scope) = self.scopes.last_mut() {
            let entry = Entry { symbol: Symbol::Poison, span: name.ident.span };
            scope.names.entry(wanted.clone()).or_insert(entry);
        }
        Symbol::Poison
    }
}

/// Overloads differ in the number and names of their parameters.
fn same_parameters(a: &[Rc<Param>], b: &[Rc<Param>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.name == y.name)
}
