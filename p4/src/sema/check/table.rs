//! Checks tables.

use super::scope::Symbol;
use super::{Checker, Context};
use crate::ast::AnnotationBody;
use crate::ast::{
    ActionListEntry, Decl, Direction, Expr, ExprKind, Ident, KeyElement, Name, TableEntry, TableProperty,
    TablePropertyKind, UnaryOp,
};
use crate::diag::Diagnostic;
use crate::sema::tree::{
    Callee, EKind, InstDecl, TActionCall, TActionRef, TCall, TEntry, TExpr, TKey, TableDef,
};
use crate::sema::types::{Subst, Type};
use crate::sema::value::Value;
use num_traits::ToPrimitive;
use std::rc::Rc;

impl Checker {
    pub(super) fn table(&mut self, decl: &Decl, name: &Ident, properties: &[TableProperty]) -> TableDef {
        let mut table = TableDef {
            id: self.new_type_id(),
            name: name.name.clone(),
            annos: self.annos(&decl.annotations),
            largest_priority_wins: true,
            priority_delta: 1,
            span: name.span,
            ..TableDef::default()
        };
        let mut seen: Vec<String> = Vec::new();
        let mut has_actions = false;
        // Keys and actions first: entries and the default action refer to them, wherever they are written.
        for property in properties {
            let what = match &property.kind {
                TablePropertyKind::Key(_) => "key",
                TablePropertyKind::Actions(_) => "actions",
                TablePropertyKind::Entries(_) => "entries",
                TablePropertyKind::Other { name, .. } => &name.name,
            };
            if seen.iter().any(|s| s == what) {
                self.error(property.span, format!("property `{what}` is given twice"));
                continue;
            }
            seen.push(what.to_owned());
            match &property.kind {
                TablePropertyKind::Key(keys) => table.keys = self.keys(keys, name),
                TablePropertyKind::Actions(actions) => {
                    has_actions = true;
                    if let Some(early) = seen.iter().position(|s| s == "default_action") {
                        let early = properties.get(early).map_or(property.span, |p| p.span);
                        self.report(
                            Diagnostic::error(name.span, "the default action is given before the actions")
                                .label(early, "this comes after `actions`"),
                        );
                    }
                    let place = std::mem::replace(&mut self.place, Context::Action);
                    table.actions = self.action_list(actions);
                    self.place = place;
                }
                _ => {}
            }
        }
        if !has_actions {
            self.error(name.span, format!("table `{}` has no property `actions`", name.name));
        }
        if table.default.is_none() && !seen.iter().any(|s| s == "default_action") {
            let ident = Ident { name: "NoAction".to_owned(), span: name.span };
            if !matches!(self.find(&Name { global: true, ident }), Some(Symbol::Action(_))) {
                self.report(
                    Diagnostic::error(name.span, format!("table `{}` has no default action", name.name))
                        .help("include <core.p4>, whose `NoAction` is the default action of such tables"),
                );
            }
        }
        let mut done: Vec<&str> = Vec::new();
        for property in properties {
            if let TablePropertyKind::Other { name, value } = &property.kind {
                if done.contains(&name.name.as_str()) {
                    continue;
                }
                done.push(&name.name);
                self.property(&mut table, property, name, value);
            }
        }
        for property in properties {
            if let TablePropertyKind::Entries(entries) = &property.kind
                && table.entries.is_empty()
            {
                table.entries_const = property.is_const;
                let key = properties.iter().find(|p| matches!(p.kind, TablePropertyKind::Key(_)));
                if let Some(key) = key.filter(|k| k.span.lo > property.span.lo) {
                    self.report(
                        Diagnostic::error(property.span, "the entries come after the key")
                            .label(key.span, "the key"),
                    );
                }
                if !property.is_const
                    && let [first, rest @ ..] = &entries[..]
                    && first.priority.is_none()
                    && rest.iter().any(|e| e.priority.is_some())
                {
                    self.error(first.span, "the first entry needs a priority, since a later one has one");
                }
                if property.is_const
                    && let Some(given) = entries.iter().find_map(|e| e.priority.as_ref())
                {
                    self.report(
                        Diagnostic::error(
                            given.span,
                            "entries of a table with `const entries` have no priorities",
                        )
                        .note("they match in the order of the text")
                        .help("order them, or write `entries` without `const`"),
                    );
                }
                if table.keys.is_empty() && !entries.is_empty() {
                    self.report(
                        Diagnostic::error(name.span, "a table without keys has no entries")
                            .label(property.span, "the entries"),
                    );
                    continue;
                }
                table.entries =
                    entries.iter().filter_map(|e| self.entry(&table, e, property.is_const)).collect();
            }
        }
        table
    }

    fn keys(&mut self, keys: &[KeyElement], table: &Ident) -> Vec<TKey> {
        let mut done = Vec::new();
        for key in keys {
            if let ExprKind::Name(name) = &key.expr.kind
                && !name.global
                && name.ident.name == table.name
            {
                self.error(key.expr.span, format!("`{}` means the table itself here", table.name));
                continue;
            }
            let expr = self.expr(&key.expr);
            let annos = self.annos(&key.annotations);
            if !self.match_kinds.contains(&key.match_kind.name) {
                let names = self.match_kinds.iter().map(String::as_str);
                let near = super::scope::nearest(&key.match_kind.name, names);
                let mut d = Diagnostic::error(
                    key.match_kind.span,
                    format!("unknown match kind `{}`", key.match_kind.name),
                );
                if let Some(near) = near {
                    d = d.help(format!("did you mean `{near}`?"));
                }
                self.report(d);
            }
            let expr = if matches!(expr.ty, Type::InfInt) {
                self.error(expr.span, "a key needs a width");
                TExpr::bad(expr.span)
            } else if !expr.is_bad() && expr.ty.scalar().is_none() {
                self.error(expr.span, format!("a key cannot be of type `{}`", expr.ty));
                TExpr::bad(expr.span)
            } else {
                expr
            };
            let name = match (&annos.name, self.key_name(&expr, &key.expr)) {
                (Some(name), _) => name.clone(),
                (None, Some(name)) => name,
                (None, None) => {
                    if !expr.is_bad() {
                        self.report(
                            Diagnostic::error(key.expr.span, "this key has no name for the control plane")
                                .help("add one: `@name(\"…\")` after the match kind"),
                        );
                    }
                    String::new()
                }
            };
            done.push(TKey {
                expr,
                kind: key.match_kind.name.clone(),
                kind_span: key.match_kind.span,
                name,
                annos,
            });
        }
        done
    }

    fn action_list(&mut self, list: &[ActionListEntry]) -> Vec<TActionRef> {
        let mut done: Vec<TActionRef> = Vec::new();
        for entry in list {
            let annos = self.annos(&entry.annotations);
            let action = match self.lookup(&entry.name) {
                Symbol::Action(action) => action,
                Symbol::Poison => continue,
                other => {
                    self.error(
                        entry.span,
                        format!("`{}` is {}, not an action", entry.name.ident.name, other.a_what()),
                    );
                    continue;
                }
            };
            if done.iter().any(|d| d.action.id == action.id) {
                self.error(entry.span, format!("action `{}` is listed twice", action.name));
                continue;
            }
            let bound: Vec<_> = action.params.iter().filter(|p| p.dir != Direction::None).cloned().collect();
            let what = format!("action `{}`", action.name);
            let args = entry.args.as_deref().unwrap_or_default();
            if args.len() > bound.len() && args.len() <= action.params.len() {
                self.report(
                    Diagnostic::error(
                        entry.span,
                        format!(
                            "parameter `{}` of {what} is for the control plane",
                            action.params[args.len() - 1].name
                        ),
                    )
                    .help("only parameters with a direction are bound in the list"),
                );
                continue;
            }
            let Some(typed) = self.args(&what, &bound, args, entry.span) else { continue };
            let order = super::args::written_order(&bound, args);
            let Some(args) = self.fit_args(&bound, typed, &Subst::new()) else { continue };
            let bound = args.into_iter().flatten().collect();
            done.push(TActionRef { action, bound, order, annos });
        }
        done
    }

    fn property(&mut self, table: &mut TableDef, property: &TableProperty, name: &Ident, value: &Expr) {
        match name.name.as_str() {
            "default_action" => {
                if let Some(call) = self.action_call(table, value, true) {
                    table.default = Some((call, property.is_const));
                }
            }
            "size" => {
                let e = self.expr(value);
                let e = self.coerce_int(e);
                if let Some(Value::Int(i)) = e.value()
                    && i.to_u32().is_none()
                {
                    self.error(value.span, format!("a table cannot have {i} entries"));
                } else if !e.is_bad() {
                    table.size = Some(e);
                }
            }
            "implementation" => table.implementation = self.attached(property, value),
            "counters" => table.counters = self.attached(property, value),
            "meters" => table.meters = self.attached(property, value),
            "support_timeout" | "idle_timeout_with_auto_delete" => {
                let e = self.expr(value);
                match e.value() {
                    Some(Value::Bool(b)) if name.name == "support_timeout" => table.idle_timeout = *b,
                    Some(Value::Bool(_)) => {}
                    _ if e.is_bad() => {}
                    _ => self.error(value.span, format!("`{}` is true or false", name.name)),
                }
            }
            "largest_priority_wins" => {
                let e = self.expr(value);
                match e.value() {
                    Some(Value::Bool(b)) => table.largest_priority_wins = *b,
                    _ if e.is_bad() => {}
                    _ => self.error(value.span, "`largest_priority_wins` is true or false"),
                }
            }
            "priority_delta" => {
                let e = self.expr(value);
                match e.value().and_then(Value::as_int).and_then(ToPrimitive::to_i64) {
                    Some(delta) if delta > 0 => table.priority_delta = delta,
                    _ if e.is_bad() => {}
                    _ => self.error(value.span, "`priority_delta` is a positive number"),
                }
            }
            other if crate::arch::is_property(other) => {
                let place = std::mem::replace(&mut self.place, Context::Control);
                let e = self.expr(value);
                self.place = place;
                if !e.is_bad() {
                    table.others.push((name.clone(), e));
                }
            }
            other => {
                let known = [
                    "key",
                    "actions",
                    "entries",
                    "default_action",
                    "size",
                    "implementation",
                    "counters",
                    "meters",
                    "support_timeout",
                ];
                let mut d = Diagnostic::warning(name.span, format!("unknown property `{other}` is ignored"));
                if let Some(near) = super::scope::nearest(other, known.into_iter()) {
                    d = d.help(format!("did you mean `{near}`?"));
                }
                self.report(d);
                // The types are checked all the same.
                if !matches!(value.kind, ExprKind::Name(_) | ExprKind::Call { .. }) {
                    self.expr(value);
                }
            }
        }
    }

    /// An extern object attached to a table.
    fn attached(&mut self, property: &TableProperty, value: &Expr) -> Option<TExpr> {
        let place = std::mem::replace(&mut self.place, Context::Control);
        let e = self.expr(value);
        self.place = place;
        if e.is_bad() {
            return None;
        }
        if !matches!(e.ty, Type::Extern(_)) {
            self.error(value.span, format!("expected an extern object, found `{}`", e.ty));
            return None;
        }
        // An object created in place takes the property's name.
        if let EKind::New(inst) = &e.kind {
            let mut annos = (*self.annos(&property.annotations)).clone();
            annos.name = annos.name.map(|name| if name.starts_with('.') { name } else { format!(".{name}") });
            let inst = InstDecl {
                id: inst.id,
                name: inst.name.clone(),
                ty: inst.ty.clone(),
                args: inst.args.clone(),
                implemented: inst.implemented.clone(),
                annos: Rc::new(annos),
                span: inst.span,
            };
            return Some(TExpr { kind: EKind::New(Rc::new(inst)), ..e });
        }
        Some(e)
    }

    /// The control-plane name of a key without `@name`: its text, with the control-plane names of fields.
    fn key_name(&self, typed: &TExpr, written: &Expr) -> Option<String> {
        match (&typed.kind, &written.kind) {
            (EKind::Field(base, index), ExprKind::Member { base: owner, member }) => {
                let field = base.ty.as_struct().and_then(|s| s.fields.get(*index));
                let own = field.and_then(|f| f.annos.name.as_deref()).unwrap_or(&member.name);
                match own.strip_prefix('.') {
                    Some(absolute) => Some(absolute.to_owned()),
                    None => Some(format!("{}.{own}", self.key_name(base, owner)?)),
                }
            }
            (EKind::Index(base, _), ExprKind::Index { base: owner, index }) => {
                Some(format!("{}[{}]", self.key_name(base, owner)?, key_text(index)?))
            }
            (
                EKind::Slice(base, hi, lo),
                ExprKind::Slice { base: owner, .. } | ExprKind::PlusSlice { base: owner, .. },
            ) => Some(format!("{}[{hi}:{lo}]", self.key_name(base, owner)?)),
            (EKind::Call(call), ExprKind::Call { callee, .. }) => match (&call.target, &callee.kind) {
                (Callee::IsValid(header), ExprKind::Member { base, .. }) => {
                    Some(format!("{}.$valid$", self.key_name(header, base)?))
                }
                _ => None,
            },
            (EKind::Binary(crate::ast::BinaryOp::BitAnd, a, b), ExprKind::Binary { left, right, .. }) => {
                Some(format!("{} & {}", self.key_name(a, left)?, self.key_name(b, right)?))
            }
            _ => key_text(written),
        }
    }

    /// `a` or `a(args)` of a default action or entry. It may repeat arguments that the list binds.
    fn action_call(&mut self, table: &TableDef, value: &Expr, default: bool) -> Option<TActionCall> {
        let no_args = Vec::new();
        let (name, args): (&Name, &Vec<crate::ast::Arg>) = match &value.kind {
            ExprKind::Name(name) => (name, &no_args),
            ExprKind::Call { callee, args, .. } => match &callee.kind {
                ExprKind::Name(name) => (name, args),
                _ => {
                    self.error(value.span, "expected an action");
                    return None;
                }
            },
            _ => {
                self.error(value.span, "expected an action");
                return None;
            }
        };
        let action = match self.lookup(name) {
            Symbol::Action(action) => action,
            Symbol::Poison => return None,
            other => {
                self.error(value.span, format!("`{}` is {}, not an action", name.ident.name, other.a_what()));
                return None;
            }
        };
        let Some(index) = table.actions.iter().position(|a| a.action.id == action.id) else {
            self.report(
                Diagnostic::error(
                    value.span,
                    format!("action `{}` is not among the actions of table `{}`", action.name, table.name),
                )
                .help("add it to `actions`"),
            );
            return None;
        };
        let annos = &table.actions[index].annos;
        if default && annos.table_only {
            self.error(value.span, format!("action `{}` is `@tableonly`", action.name));
        } else if !default && annos.default_only {
            self.error(value.span, format!("action `{}` is `@defaultonly`", action.name));
        }
        let data: Vec<_> = action.params.iter().filter(|p| p.dir == Direction::None).cloned().collect();
        let bound = action.params.len() - data.len();
        let what = format!("action `{}`", action.name);
        // Either the control plane's parameters alone, or all of them with the bound ones as in the list.
        let given = if args.len() > data.len() && args.len() == action.params.len() {
            let (first, rest) = args.split_at(bound);
            for (arg, listed) in first.iter().zip(&table.actions[index].bound) {
                let Some(e) = &arg.value else { continue };
                let typed = self.expr(e);
                let typed =
                    if matches!(typed.ty, Type::Literal(_)) { self.coerce(typed, &listed.ty) } else { typed };
                if !typed.is_bad() && !same_place(&typed, listed) {
                    self.error(
                        arg.span,
                        format!("this differs from the argument bound in the list of `{}`", table.name),
                    );
                }
            }
            rest
        } else if bound > 0
            && args.len() < action.params.len()
            && !args.is_empty()
            && args.len() != data.len()
        {
            self.error(
                value.span,
                format!("{what} takes {} arguments, {} given", action.params.len(), args.len()),
            );
            return None;
        } else {
            &args[..]
        };
        let typed = self.args(&what, &data, given, value.span)?;
        let args = self.fit_args(&data, typed, &Subst::new())?;
        for arg in args.iter().flatten() {
            if !self.known_at_instantiation(arg) {
                self.error(arg.span, "an argument of an entry must be known at compile time");
                return None;
            }
        }
        Some(TActionCall { index, args: args.into_iter().flatten().collect() })
    }

    fn entry(&mut self, table: &TableDef, entry: &TableEntry, all_const: bool) -> Option<TEntry> {
        let types: Vec<Type> = table.keys.iter().map(|k| k.expr.ty.clone()).collect();
        // Unlike in a select, an entry has exactly one keyset per key (§14.2.1.5).
        if types.len() > 1
            && let [only] = &entry.keysets[..]
            && matches!(only.kind, ExprKind::Default | ExprKind::DontCare)
        {
            let all = vec!["_"; types.len()].join(", ");
            self.error(only.span, format!("expected {} keys, 1 given; write `({all})` for any", types.len()));
            return None;
        }
        let keys = self.keysets(&types, &entry.keysets, entry.span);
        let call = self.action_call(table, &entry.action, false);
        let priority = match &entry.priority {
            Some(e) => {
                let typed = self.expr(e);
                let typed = self.coerce_int(typed);
                if typed.is_bad() {
                    return None;
                }
                Some(typed)
            }
            None => None,
        };
        let annotation = entry.annotations.iter().find(|a| a.name.name == "priority");
        let rank = annotation.and_then(|annotation| match &annotation.body {
            AnnotationBody::Tokens(tokens) => match &tokens[..] {
                [number] => number.text.parse().ok(),
                _ => None,
            },
            _ => None,
        });
        if let (Some(annotation), None) = (annotation, rank) {
            self.error(annotation.span, "`@priority` takes one decimal number, as in `@priority(3)`");
        }
        Some(TEntry {
            keys: keys?,
            call: call?,
            priority,
            rank,
            is_const: all_const || entry.is_const,
            span: entry.span,
        })
    }
}

/// Whether two expressions have the same text, as far as arguments of actions go.
fn same_call(a: &TCall, b: &TCall) -> bool {
    let function = match (&a.target, &b.target) {
        (Callee::Function(x), Callee::Function(y)) | (Callee::Extern(x), Callee::Extern(y)) => {
            std::rc::Rc::ptr_eq(x, y)
        }
        _ => false,
    };
    let pairs = || a.args.iter().flatten().zip(b.args.iter().flatten());
    function && a.args.len() == b.args.len() && pairs().all(|(x, y)| same_place(x, y))
}

fn same_place(a: &TExpr, b: &TExpr) -> bool {
    use crate::sema::tree::EKind::*;
    match (&a.kind, &b.kind) {
        (Local(x), Local(y)) => x == y,
        (Field(x, i), Field(y, j)) => i == j && same_place(x, y),
        (Index(x, i), Index(y, j)) => same_place(x, y) && same_place(i, j),
        (Slice(x, a, b), Slice(y, c, d)) => a == c && b == d && same_place(x, y),
        (Const(x), Const(y)) => x == y,
        (Const(_), Cast(y)) => same_place(a, y),
        (Cast(x), Cast(y)) => same_place(x, y),
        (Unary(o, x), Unary(p, y)) => o == p && same_place(x, y),
        (Binary(o, x, u), Binary(p, y, v)) => o == p && same_place(x, y) && same_place(u, v),
        (Call(x), Call(y)) => same_call(x, y),
        (List(x), List(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same_place(x, y)),
        _ => false,
    }
}

/// The text of a simple expression.
fn key_text(e: &Expr) -> Option<String> {
    match &e.kind {
        ExprKind::Name(name) => {
            Some(if name.global { format!(".{}", name.ident.name) } else { name.ident.name.clone() })
        }
        ExprKind::Member { base, member } => Some(format!("{}.{}", key_text(base)?, member.name)),
        ExprKind::Int { value, radix, .. } => Some(match radix {
            2 => format!("{value:#b}"),
            8 => format!("{value:#o}"),
            16 => format!("{value:#x}"),
            _ => value.to_string(),
        }),
        ExprKind::Bool(b) => Some(b.to_string()),
        ExprKind::Index { base, index } => Some(format!("{}[{}]", key_text(base)?, key_text(index)?)),
        ExprKind::Slice { base, hi, lo } => {
            Some(format!("{}[{}:{}]", key_text(base)?, key_text(hi)?, key_text(lo)?))
        }
        ExprKind::Call { callee, args, .. } if args.is_empty() => match &callee.kind {
            ExprKind::Member { base, member } if member.name == "isValid" => {
                Some(format!("{}.$valid$", key_text(base)?))
            }
            _ => None,
        },
        ExprKind::Binary { op: crate::ast::BinaryOp::BitAnd, left, right } => {
            Some(format!("{} & {}", key_text(left)?, key_text(right)?))
        }
        ExprKind::Unary { op: UnaryOp::Plus, expr } => key_text(expr),
        _ => None,
    }
}
