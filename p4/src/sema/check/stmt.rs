//! Checks statements.

use super::scope::Symbol;
use super::{Checker, Context};
use crate::ast::{Block, Decl, DeclKind, Expr, ExprKind, Span, Stmt, StmtKind, SwitchCase};
use crate::diag::Diagnostic;
use crate::sema::tree::{EKind, SKind, TExpr, TStmt};
use crate::sema::types::{StructKind, Type};
use crate::sema::value::Value;

/// Labels with the statements that they lead to.
type Cases<L> = Vec<(Vec<L>, Vec<TStmt>)>;

impl Checker {
    /// A block, in a scope of its own.
    pub(super) fn block_scope(&mut self, block: &Block) -> Vec<TStmt> {
        self.scoped(|c| c.stmts(&block.stmts))
    }

    pub(super) fn stmts(&mut self, stmts: &[Stmt]) -> Vec<TStmt> {
        stmts.iter().filter_map(|s| self.stmt(s)).collect()
    }

    fn one(&mut self, stmt: &Stmt) -> Vec<TStmt> {
        self.scoped(|c| c.stmt(stmt).into_iter().collect())
    }

    /// A statement. `None` if it does nothing or is in error.
    pub(super) fn stmt(&mut self, stmt: &Stmt) -> Option<TStmt> {
        let span = stmt.span;
        let kind = match &stmt.kind {
            StmtKind::Empty => return None,
            StmtKind::Assign { op, target, value } => {
                let target = self.expr(target);
                let value = self.expr(value);
                let value = match op {
                    Some(op) => self.binary(*op, target.clone(), value, span),
                    None => value,
                };
                if !self.lvalue(&target, "the left side of an assignment") || value.is_bad() {
                    return None;
                }
                let value = self.coerce(value, &target.ty.clone());
                if value.is_bad() {
                    return None;
                }
                SKind::Assign(target, value)
            }
            StmtKind::Call(e) => {
                let call = self.expr(e);
                if call.is_bad() {
                    return None;
                }
                if !matches!(call.kind, EKind::Call(_) | EKind::Const(_)) {
                    self.error(span, "only a call can be a statement");
                    return None;
                }
                SKind::Call(call)
            }
            StmtKind::DirectApply { ty, args } => {
                let ty = self.type_ref(ty);
                let call = self.direct_apply(&ty, args, span);
                if call.is_bad() {
                    return None;
                }
                SKind::Call(call)
            }
            StmtKind::If { cond, then, otherwise } => {
                let cond = self.condition(cond);
                let then = self.one(then);
                let otherwise = otherwise.as_ref().map(|s| self.one(s)).unwrap_or_default();
                SKind::If(cond?, then, otherwise)
            }
            StmtKind::Block(block) => SKind::Block(self.block_scope(block)),
            StmtKind::Exit => {
                if matches!(self.place, Context::Parser | Context::Function) {
                    self.error(span, format!("`exit` is not allowed in {}", self.place.name()));
                    return None;
                }
                SKind::Exit
            }
            StmtKind::Return(value) => self.return_stmt(value.as_ref(), span)?,
            StmtKind::Switch { expr, cases } => self.switch(expr, cases)?,
            StmtKind::For { init, cond, update, body, .. } => {
                return self.scoped(|c| {
                    let init = c.stmts(init);
                    let cond = c.condition(cond);
                    let update = c.stmts(update);
                    c.loops += 1;
                    let body = c.one(body);
                    c.loops -= 1;
                    Some(TStmt { kind: SKind::For(init, cond?, update, body), span })
                });
            }
            StmtKind::ForIn { ty, name, over, body, .. } => {
                return self.for_in(ty.as_ref(), name, over, body, span);
            }
            StmtKind::Break | StmtKind::Continue => {
                let is_break = matches!(stmt.kind, StmtKind::Break);
                if self.loops == 0 {
                    self.error(
                        span,
                        format!("`{}` outside of a loop", if is_break { "break" } else { "continue" }),
                    );
                    return None;
                }
                if is_break { SKind::Break } else { SKind::Continue }
            }
            StmtKind::Decl(decl) => {
                if let (Context::Control, DeclKind::Instance { name, .. }) = (self.place, &decl.kind) {
                    self.report(
                        Diagnostic::error(
                            decl.span,
                            format!("instance `{}` is declared among statements", name.name),
                        )
                        .help("declare it before `apply`"),
                    );
                    return None;
                }
                return self.local_decl(decl);
            }
        };
        Some(TStmt { kind, span })
    }

    fn condition(&mut self, cond: &Expr) -> Option<TExpr> {
        let cond = self.expr(cond);
        if cond.is_bad() {
            return None;
        }
        if !matches!(cond.ty, Type::Bool) {
            let mut d = Diagnostic::error(cond.span, format!("a condition is `bool`, not `{}`", cond.ty));
            if cond.ty.is_bits() || matches!(cond.ty, Type::InfInt) {
                d = d.help("compare it: `… != 0`");
            }
            self.report(d);
            return None;
        }
        Some(cond)
    }

    fn return_stmt(&mut self, value: Option<&Expr>, span: Span) -> Option<SKind> {
        let value = value.map(|v| self.expr(v));
        if self.place == Context::Parser {
            self.error(span, "`return` is not allowed in a parser");
            return None;
        }
        let wanted = match self.place {
            Context::Function => self.returns.clone().unwrap_or(Type::Void),
            _ => Type::Void,
        };
        // A `return` in error still ends the function.
        Some(match (value, wanted) {
            (None, Type::Void | Type::Poison) => SKind::Return(None),
            (None, ty) => {
                self.error(span, format!("`return` needs a value of type `{ty}`"));
                SKind::Return(None)
            }
            (Some(v), Type::Void) => {
                if !v.is_bad() {
                    self.error(span, "`return` has a value, but none is expected");
                }
                SKind::Return(None)
            }
            (Some(v), ty) => SKind::Return(Some(self.coerce(v, &ty))),
        })
    }

    /// A constant, variable or instance, among statements or the declarations of a block.
    pub(super) fn local_decl(&mut self, decl: &Decl) -> Option<TStmt> {
        if let DeclKind::Variable { ty, name, init } = &decl.kind {
            let ty = self.type_ref(ty);
            self.storable(&ty, name.span, "a variable");
            let init = match init {
                Some(e) => {
                    let e = self.expr(e);
                    let e = self.coerce(e, &ty);
                    (!e.is_bad()).then_some(e)
                }
                None => None,
            };
            self.check_shadowing(name, init.as_ref());
            let id = self.new_local(&name.name, &ty);
            self.declare(name, Symbol::Local { id, ty: ty.clone() });
            return Some(TStmt { kind: SKind::Var(id, ty, init), span: decl.span });
        }
        if let DeclKind::Instance { name, .. } = &decl.kind {
            if !self.common_decl(decl) {
                return None;
            }
            return match self.find_here(&name.name) {
                Some(Symbol::Instance(inst)) => {
                    Some(TStmt { kind: SKind::Inst(inst.clone()), span: decl.span })
                }
                _ => None,
            };
        }
        if !self.common_decl(decl) {
            self.error(decl.span, format!("this declaration is not allowed in {}", self.place.name()));
        }
        None
    }

    /// Reports a variable that hides a parameter; as an error if its own value names that, as both are then easily mixed up.
    fn check_shadowing(&mut self, name: &crate::ast::Ident, init: Option<&TExpr>) {
        let global = crate::ast::Name { global: false, ident: name.clone() };
        let hidden = match self.find(&global) {
            Some(Symbol::Local { id, .. }) if self.writable.contains_key(id) => *id,
            _ => return,
        };
        if self.find_here(&name.name).is_some() {
            return;
        }
        let message = format!("variable `{}` hides a parameter of that name", name.name);
        if init.is_some_and(|init| matches!(init.kind, EKind::Local(id) if id == hidden)) {
            self.error(name.span, message);
        } else {
            self.warn(name.span, message);
        }
    }

    fn for_in(
        &mut self,
        ty: Option<&crate::ast::TypeRef>,
        name: &crate::ast::Ident,
        over: &Expr,
        body: &Stmt,
        span: Span,
    ) -> Option<TStmt> {
        let declared = ty.map(|t| self.type_ref(t));
        // Without a type, the loop uses an existing variable.
        let existing = match (&declared, self.find(&crate::ast::Name { global: false, ident: name.clone() }))
        {
            (None, Some(Symbol::Local { id, ty, .. })) => Some((*id, ty.clone())),
            _ => None,
        };
        let var_ty = match (&declared, &existing) {
            (Some(ty), _) => ty.clone(),
            (None, Some((_, ty))) => ty.clone(),
            (None, None) => {
                self.error(name.span, format!("unknown variable `{}`", name.name));
                return None;
            }
        };
        let over = match &over.kind {
            ExprKind::Range { lo, hi } => {
                let (lo, hi) = (self.expr(lo), self.expr(hi));
                let (lo, hi) = (self.coerce(lo, &var_ty), self.coerce(hi, &var_ty));
                if lo.is_bad() || hi.is_bad() {
                    return None;
                }
                if !var_ty.underlying().is_bits() {
                    self.error(over.span, format!("a range of `{var_ty}` cannot be iterated over"));
                    return None;
                }
                TExpr::new(
                    EKind::Range(Box::new(lo), Box::new(hi)),
                    Type::Set(var_ty.clone().into()),
                    over.span,
                )
            }
            _ => {
                let e = self.expr(over);
                match e.ty.clone() {
                    Type::Poison => return None,
                    Type::Literal(_) => {
                        let want = Type::List(var_ty.clone().into());
                        self.coerce(e, &want)
                    }
                    Type::Stack(element, _) | Type::List(element) if *element == var_ty => e,
                    other => {
                        self.error(
                            over.span,
                            format!("cannot iterate over `{other}` with a variable of type `{var_ty}`"),
                        );
                        return None;
                    }
                }
            }
        };
        self.scoped(|c| {
            let id = match existing {
                Some((id, _)) => id,
                None => {
                    let id = c.new_local(&name.name, &var_ty);
                    c.declare(name, Symbol::Local { id, ty: var_ty.clone() });
                    id
                }
            };
            c.loops += 1;
            let body = c.one(body);
            c.loops -= 1;
            if over.is_bad() {
                return None;
            }
            Some(TStmt { kind: SKind::ForIn(id, var_ty, over, body), span })
        })
    }

    fn switch(&mut self, expr: &Expr, cases: &[SwitchCase]) -> Option<SKind> {
        let expr = self.expr(expr);
        if expr.is_bad() {
            for case in cases {
                if let Some(body) = &case.body {
                    self.block_scope(body);
                }
            }
            return None;
        }
        if self.place == Context::Parser {
            self.error(expr.span, "`switch` is not allowed in a parser: use `transition select`");
            return None;
        }
        if let Type::ActionRun(table) = &expr.ty {
            let table = table.clone();
            let mut label = |c: &mut Checker, e: &Expr| {
                let ExprKind::Name(name) = &e.kind else {
                    c.error(e.span, "a case of a switch on `action_run` is the name of an action");
                    return None;
                };
                let found = table.actions.iter().position(|a| a.action.name == name.ident.name);
                if found.is_none() {
                    let near = super::scope::nearest(
                        &name.ident.name,
                        table.actions.iter().map(|a| a.action.name.as_str()),
                    );
                    let mut d = Diagnostic::error(
                        e.span,
                        format!("table `{}` has no action `{}`", table.name, name.ident.name),
                    );
                    if let Some(near) = near {
                        d = d.help(format!("did you mean `{near}`?"));
                    }
                    c.report(d);
                }
                found
            };
            let (cases, default) = self.cases(expr.span, cases, &mut label, |a, b| a == b);
            return Some(SKind::SwitchAction(expr, cases, default));
        }
        let expr = match &expr.ty {
            Type::InfInt => {
                self.error(expr.span, "a switch needs a value with a width");
                return None;
            }
            Type::Struct(s) if s.kind == StructKind::Struct => {
                self.error(expr.span, format!("a switch cannot be on `{}`", expr.ty));
                return None;
            }
            ty if ty.scalar().is_some() && !matches!(ty, Type::Varbit(_)) => expr,
            ty => {
                self.error(expr.span, format!("a switch cannot be on `{ty}`"));
                return None;
            }
        };
        let ty = expr.ty.clone();
        let mut label = |c: &mut Checker, e: &Expr| {
            let typed = c.expr(e);
            let typed = c.coerce(typed, &ty);
            if typed.is_bad() {
                return None;
            }
            if typed.value().is_none() {
                c.error(e.span, "a case of a switch must be known at compile time");
                return None;
            }
            Some(typed)
        };
        let same = |a: &TExpr, b: &TExpr| a.value() == b.value();
        let (cases, default) = self.cases(expr.span, cases, &mut label, same);
        Some(SKind::Switch(expr, cases, default))
    }

    /// Resolves fall-through and reports duplicate labels.
    fn cases<L>(
        &mut self,
        switch: Span,
        cases: &[SwitchCase],
        label: &mut dyn FnMut(&mut Checker, &Expr) -> Option<L>,
        same: impl Fn(&L, &L) -> bool,
    ) -> (Cases<L>, Vec<TStmt>) {
        let mut done: Cases<L> = Vec::new();
        let mut default = None;
        let mut pending: Vec<L> = Vec::new();
        let mut pending_default = false;
        for case in cases {
            if matches!(case.label.kind, ExprKind::Default) {
                if default.is_some() || pending_default {
                    self.report(
                        Diagnostic::error(switch, "`default` appears twice")
                            .label(case.label.span, "again here"),
                    );
                }
                pending_default = true;
            } else if default.is_some() || pending_default {
                self.report(
                    Diagnostic::error(switch, "`default` is the last case of a switch")
                        .label(case.label.span, "this one comes after it"),
                );
            } else if let Some(l) = label(self, &case.label) {
                let seen = done.iter().flat_map(|(labels, _)| labels).chain(&pending);
                if seen.into_iter().any(|old| same(old, &l)) {
                    self.error(case.label.span, "this case appears twice");
                } else {
                    pending.push(l);
                }
            }
            if let Some(body) = &case.body {
                let body = self.block_scope(body);
                let labels = std::mem::take(&mut pending);
                if std::mem::take(&mut pending_default) {
                    default = Some(body.clone());
                }
                if !labels.is_empty() {
                    done.push((labels, body));
                }
            }
        }
        // Trailing labels without a body do nothing.
        if !pending.is_empty() {
            done.push((pending, Vec::new()));
        }
        (done, default.unwrap_or_default())
    }
}

/// Whether every path through the statements ends in `return` or `exit`.
pub(super) fn always_returns(stmts: &[TStmt]) -> bool {
    stmts.iter().any(|s| match &s.kind {
        SKind::Return(_) | SKind::Exit => true,
        SKind::If(_, then, otherwise) => always_returns(then) && always_returns(otherwise),
        SKind::Block(stmts) => always_returns(stmts),
        SKind::Switch(expr, cases, default) => {
            let all = cases.iter().all(|(_, body)| always_returns(body));
            all && (always_returns(default) || covers_enum(expr, cases))
        }
        _ => false,
    })
}

/// Whether the cases name every member of an enum.
fn covers_enum(expr: &TExpr, cases: &[(Vec<TExpr>, Vec<TStmt>)]) -> bool {
    let Type::Enum(e) = &expr.ty else { return false };
    let named: Vec<&Value> = cases.iter().flat_map(|(labels, _)| labels).filter_map(TExpr::value).collect();
    e.repr.is_none() && named.len() == e.members.len()
}
