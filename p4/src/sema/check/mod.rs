//! Type checking: from the syntax tree to the typed tree.

mod annos;
mod args;
mod block;
mod call;
mod construct;
mod convert;
mod data_types;
mod decl;
mod expr;
mod implement;
mod ops;
mod parser;
mod scope;
mod stmt;
mod table;
mod typeref;

use super::tree::{Checked, LocalId, LocalInfo};
use super::types::{BlockTy, Type, TypeVar};
use crate::ast::{self, Ident, Span};
use crate::diag::Diagnostic;
use scope::{Scope, Symbol, Writable};
use std::collections::HashMap;
use std::rc::Rc;

/// Checks a program. Reports each untypable part once, and leaves it out.
pub(super) fn check(program: &ast::Program) -> (Checked, Vec<Diagnostic>) {
    let mut checker = Checker::default();
    checker.scopes.push(Scope::default());
    for decl in &program.decls {
        checker.top_level(decl);
    }
    (checker.out, checker.diags)
}

/// The surroundings of a statement or parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Context {
    #[default]
    TopLevel,
    Parser,
    Control,
    Action,
    Function,
    /// For parameters only.
    Package,
    /// For parameters only.
    Constructor,
}

impl Context {
    fn name(self) -> &'static str {
        match self {
            Context::TopLevel => "the top level",
            Context::Parser => "a parser",
            Context::Control => "a control",
            Context::Action => "an action",
            Context::Function => "a function",
            Context::Package => "a package",
            Context::Constructor => "a constructor",
        }
    }
}

/// State of the check.
#[derive(Default)]
struct Checker {
    diags: Vec<Diagnostic>,
    scopes: Vec<Scope>,
    out: Checked,
    match_kinds: Vec<String>,
    /// For parameters and loop variables. Every other local is writable.
    writable: HashMap<LocalId, Writable>,
    next_type: u32,
    place: Context,
    /// Return type of the function being checked.
    returns: Option<Type>,
    loops: u32,
    /// Parts of constants expanded so far.
    copied: u64,
    /// Further parsers, controls and packages with a name, by the first one's type.
    overloads: HashMap<u32, Vec<Rc<BlockTy>>>,
    /// Headers with two varbit fields, by type: they cannot be extracted.
    two_varbits: HashMap<u32, (Span, Span)>,
    /// The instance whose abstract methods are being implemented.
    this: Option<(LocalId, Type)>,
}

impl Checker {
    fn error(&mut self, span: Span, message: impl Into<String>) {
        self.diags.push(Diagnostic::error(span, message));
    }

    fn warn(&mut self, span: Span, message: impl Into<String>) {
        self.diags.push(Diagnostic::warning(span, message));
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.diags.push(diagnostic);
    }

    fn new_type_id(&mut self) -> u32 {
        self.next_type += 1;
        self.next_type
    }

    fn new_local(&mut self, name: &str, ty: &Type) -> LocalId {
        self.out.locals.push(LocalInfo { name: name.to_owned(), ty: ty.clone() });
        LocalId(self.out.locals.len() as u32 - 1)
    }

    /// Declares type parameters in the innermost scope.
    fn type_params(&mut self, names: &[Ident]) -> Vec<Rc<TypeVar>> {
        let mut vars = Vec::new();
        for ident in names {
            let var = Rc::new(TypeVar { id: self.new_type_id(), name: ident.name.clone() });
            self.declare(ident, Symbol::Type(scope::TypeSym::Plain(Type::Var(var.clone()))));
            vars.push(var);
        }
        vars
    }

    /// Runs in a new scope.
    fn scoped<T>(&mut self, run: impl FnOnce(&mut Checker) -> T) -> T {
        self.scopes.push(Scope::default());
        let result = run(self);
        self.scopes.pop();
        result
    }
}
