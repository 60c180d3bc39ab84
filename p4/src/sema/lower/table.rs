//! Lowers tables: keys, actions, entries and properties.

use super::instance::match_kind;
use super::storage::Val;
use super::{Binding, Lower, type_name};
use crate::ast::Span;
use crate::diag::Diagnostic;
use crate::ir::{
    ActionCall, Annotation, Entry, InstanceId, InstanceKind, Key, MatchKind, Matcher, Named, Table,
    TableAction, TableId, Ty,
};
use crate::sema::tree::{Annos, EKind, InstDecl, TActionCall, TActionRef, TExpr, TKey, TableDef};
use crate::sema::types::Type;
use crate::sema::value::Value;
use num_bigint::BigUint;
use num_traits::{One, ToPrimitive, Zero};
use std::rc::Rc;

/// Size of a table that does not give one.
const DEFAULT_SIZE: u64 = 1024;

impl Lower<'_> {
    pub(super) fn table(&mut self, def: &TableDef) {
        let mut keys = Vec::new();
        let prelude = self.collect(|l| {
            for key in &def.keys {
                if let Some(key) = l.key(key) {
                    keys.push(key);
                }
            }
        });
        let mut actions: Vec<TableAction> = def
            .actions
            .iter()
            .map(|listed| TableAction {
                action: self.listed_action(listed),
                table_only: listed.annos.table_only,
                default_only: listed.annos.default_only,
                annotations: listed.annos.rest.clone(),
            })
            .collect();
        let default_action = match &def.default {
            Some((call, _)) => self.action_args(def, call),
            None => self.no_action(def, &mut actions),
        };
        let size = match def.size.as_ref().map(|e| (self.value(e), e.span)) {
            Some((Some(Value::Int(n)), _)) => n.to_u64().filter(|n| *n > 0).unwrap_or(DEFAULT_SIZE),
            Some((_, span)) => {
                self.error(span, "the size of a table must be known at compile time");
                DEFAULT_SIZE
            }
            None => DEFAULT_SIZE,
        };
        let entries = self.entries(def, &keys);
        let id = TableId(self.prog.tables.len() as u32);
        let implementation = self.attached(def.implementation.as_ref(), |k| {
            matches!(k, InstanceKind::ActionProfile { .. } | InstanceKind::ActionSelector { .. })
        });
        let counter =
            self.attached(def.counters.as_ref(), |k| matches!(k, InstanceKind::DirectCounter { .. }));
        let meter = self.attached(def.meters.as_ref(), |k| matches!(k, InstanceKind::DirectMeter { .. }));
        let register =
            self.attached(self.arch.registers(def), |k| matches!(k, InstanceKind::DirectRegister { .. }));
        // One with cells of its own may be named, too, without effect.
        let smoother = self.attached(self.arch.smoother(def), |k| {
            matches!(k, InstanceKind::DirectSmoother { .. } | InstanceKind::Smoother { .. })
        });
        for instance in [counter, meter, register, smoother].into_iter().flatten() {
            self.own(instance, id, def.span);
        }
        let named = self.named(self.frame, &def.name, &def.annos);
        self.shown.push(("table", named.name.clone(), def.span));
        let table = Table {
            named,
            keys,
            actions,
            default_action,
            default_is_const: def.default.as_ref().is_some_and(|d| d.1),
            entries,
            entries_const: def.entries_const,
            size,
            implementation,
            counter,
            meter,
            register,
            idle_timeout: def.idle_timeout || self.arch.has_idle_timeout(def),
            has_key_mask: self.arch.has_key_mask(def),
            storage: self.arch.storage(def),
            span: def.span,
        };
        self.prog.tables.push(table);
        if !prelude.is_empty() {
            self.table_prelude.insert(id, prelude);
        }
        self.tables.insert((self.frame, def.id), id);
    }

    fn key(&mut self, key: &TKey) -> Option<Key> {
        let Some(kind) = match_kind(&key.kind).or_else(|| self.arch.match_kind(&key.kind)) else {
            self.unsupported(key.kind_span, format!("match kind `{}`", key.kind));
            return None;
        };
        let ty = self.ty(&key.expr.ty);
        let value = self.expr(&key.expr);
        let value = if key.expr.has_effects() { self.save(value, key.expr.span) } else { value };
        let Val::Leaf(expr, scalar) = value else { return None };
        if matches!(scalar, Ty::Varbit(_)) {
            self.unsupported(key.expr.span, "a key of type varbit");
            return None;
        }
        let named = Named {
            name: key.name.strip_prefix('.').unwrap_or(&key.name).to_owned(),
            id: key.annos.id,
            hidden: key.annos.hidden,
            annotations: key.annos.rest.clone(),
        };
        Some(Key { named, expr, ty: scalar, kind, type_name: type_name(&ty) })
    }

    /// The default action of a table without `default_action`: nothing. The control plane sees it.
    fn no_action(&mut self, def: &TableDef, actions: &mut Vec<TableAction>) -> Option<ActionCall> {
        let no_action = self.checked.global_actions.iter().find(|a| a.name == "NoAction").cloned()?;
        if let Some(at) = def.actions.iter().position(|a| a.action.id == no_action.id) {
            return Some(ActionCall { action: at as u32, args: vec![] });
        }
        let listed =
            TActionRef { action: no_action, bound: vec![], order: vec![], annos: Default::default() };
        let action = self.listed_action(&listed);
        actions.push(TableAction {
            action,
            table_only: false,
            default_only: true,
            annotations: vec![Annotation {
                name: "defaultonly".to_owned(),
                body: String::new(),
                structured: None,
                tokens: Vec::new(),
                span: def.span,
            }],
        });
        Some(ActionCall { action: actions.len() as u32 - 1, args: vec![] })
    }

    /// Values for the parameters of an action in a table's list.
    fn action_args(&mut self, def: &TableDef, call: &TActionCall) -> Option<ActionCall> {
        let listed = def.actions.get(call.index)?;
        let params = listed.action.params.iter().filter(|p| p.dir == crate::ast::Direction::None);
        let mut args = Vec::new();
        for (param, arg) in params.zip(&call.args) {
            let ty = self.ty(&param.ty);
            match self.bits(arg, &ty) {
                Some(bits) => args.push(bits),
                None => {
                    self.error(arg.span, "this argument must be a number known at compile time");
                    return None;
                }
            }
        }
        Some(ActionCall { action: call.index as u32, args })
    }

    fn attached(&mut self, e: Option<&TExpr>, fits: impl Fn(&InstanceKind) -> bool) -> Option<InstanceId> {
        let e = e?;
        let id = match &e.kind {
            EKind::Local(id) => *id,
            EKind::New(inst) => {
                let inst = if inst.annos.name.is_none() { self.given_name(inst) } else { inst.clone() };
                // Tables may share an object by its name.
                let name = self.full_name(self.frame, &inst.name, &inst.annos);
                let same = self.prog.instances.iter().position(|i| i.named.name == name && fits(&i.kind));
                if let Some(same) = same {
                    return Some(InstanceId(same as u32));
                }
                self.instance(&inst, &[]);
                inst.id
            }
            _ => return None,
        };
        match self.find(id) {
            Some(Binding::Extern(object)) => {
                let instance = object.instance();
                if let Some(id) = instance.filter(|id| fits(&self.prog.instances[id.0 as usize].kind)) {
                    return Some(id);
                }
                // Other objects only say how the table is stored.
                instance?;
                self.error(e.span, format!("`{}` is not allowed here", e.ty));
                None
            }
            _ => None,
        }
    }

    /// An object created in place, with the first free name for its type. Entries refer to it, so it needs one.
    fn given_name(&mut self, inst: &InstDecl) -> Rc<InstDecl> {
        let is_taken = |name: &String| self.prog.instances.iter().any(|other| other.named.name == *name);
        let of = match &inst.ty {
            Type::Extern(ext) => ext.def.name.clone(),
            other => other.to_string(),
        };
        let free = (0..).map(|number| format!("{of}_{number}")).find(|name| !is_taken(name));
        let name = free.unwrap_or_default();
        let why =
            format!("an object created in place has no name for the control plane; it is called `{name}`");
        let help = "put `@name(\"…\")` before the property";
        self.diags.push(Diagnostic::warning(inst.span, why).help(help));
        let annos = Annos { name: Some(format!(".{name}")), ..Annos::clone(&inst.annos) };
        Rc::new(InstDecl { annos: Rc::new(annos), ..inst.with_type(inst.ty.clone()) })
    }

    fn own(&mut self, instance: InstanceId, id: TableId, span: Span) {
        let instance = &mut self.prog.instances[instance.0 as usize];
        let name = instance.named.name.clone();
        let (InstanceKind::DirectCounter { table, .. }
        | InstanceKind::DirectMeter { table, .. }
        | InstanceKind::DirectSmoother { table, .. }
        | InstanceKind::DirectRegister { table, .. }) = &mut instance.kind
        else {
            return;
        };
        if table.is_some() {
            self.error(span, format!("`{name}` already belongs to another table"));
            return;
        }
        *table = Some(id);
    }

    fn entries(&mut self, def: &TableDef, keys: &[Key]) -> Vec<Entry> {
        if keys.len() != def.keys.len() {
            return Vec::new();
        }
        let ordered = keys
            .iter()
            .any(|k| matches!(k.kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional));
        let mut entries = Vec::new();
        let mut last: Option<i64> = None;
        let ranked = def.entries.iter().any(|entry| entry.rank.is_some());
        for (index, entry) in def.entries.iter().enumerate() {
            let mut flat = Vec::new();
            for (set, key) in entry.keys.iter().zip(&def.keys) {
                let ty = self.ty(&key.expr.ty);
                self.matchers(set, &ty, &mut flat);
            }
            let Some(call) = self.action_args(def, &entry.call) else { continue };
            let mut matchers = Vec::new();
            for (matcher, key) in flat.into_iter().zip(keys) {
                match shape(matcher, key) {
                    Ok(m) => matchers.push(m),
                    Err(why) => self.error(entry.span, format!("key `{}`: {why}", key.named.name)),
                }
            }
            if matchers.len() != keys.len() {
                continue;
            }
            let given = entry.priority.as_ref().and_then(|e| match self.value(e) {
                Some(Value::Int(i)) => i.to_i64(),
                _ => None,
            });
            if let (Some(p), false) = (&entry.priority, ordered) {
                self.error(p.span, "entries of this table have no priority: all its keys are exact or lpm");
            }
            let count = def.entries.len() as i64;
            let priority = match (given, last) {
                _ if ranked => entry.rank.unwrap_or(index as i64 + 1),
                (Some(p), _) => p,
                (None, None) if def.largest_priority_wins => (count - 1) * def.priority_delta + 1,
                (None, None) => 1,
                (None, Some(p)) if def.largest_priority_wins => p - def.priority_delta,
                (None, Some(p)) => p + def.priority_delta,
            };
            last = Some(priority);
            // In P4Runtime the larger priority wins.
            let priority = match (ordered, def.largest_priority_wins && !ranked) {
                (false, _) => 0,
                (true, true) => i32::try_from(priority).unwrap_or(-1),
                (true, false) => i32::try_from(i64::from(i32::MAX) - priority).unwrap_or(-1),
            };
            if priority < 0 || (ordered && priority == 0) {
                let (at, number) = (entry.priority.as_ref().map_or(entry.span, |p| p.span), index + 1);
                self.error(at, format!("the priority of entry {number} is out of range"));
                continue;
            }
            entries.push(Entry { keys: matchers, call, priority, is_const: entry.is_const });
        }
        entries
    }
}

/// Converts a matcher to the form of the key's match kind.
fn shape(matcher: Matcher, key: &Key) -> Result<Matcher, &'static str> {
    let width = key.ty.width();
    let full = (BigUint::one() << width) - 1u8;
    match (key.kind, matcher) {
        (MatchKind::Exact, Matcher::Exact(v)) => Ok(Matcher::Exact(v)),
        (MatchKind::Exact, _) => Err("an exact key is matched by one value"),
        (MatchKind::Optional, m @ (Matcher::Exact(_) | Matcher::Any)) => Ok(m),
        (MatchKind::Optional, _) => Err("an optional key is matched by one value or `_`"),
        (MatchKind::Lpm, Matcher::Exact(value)) => Ok(Matcher::Mask { value, mask: full }),
        (MatchKind::Lpm, Matcher::Any) => Ok(Matcher::Mask { value: BigUint::zero(), mask: BigUint::zero() }),
        (MatchKind::Lpm, Matcher::Mask { value, mask }) => {
            // A prefix mask: ones, then zeros.
            let inverse = &full - &mask;
            if (&inverse & (&inverse + 1u8)).is_zero() {
                Ok(Matcher::Mask { value, mask })
            } else {
                Err("the mask of an lpm key is a prefix")
            }
        }
        (MatchKind::Lpm, _) => Err("an lpm key is matched by a value and a prefix mask"),
        (MatchKind::Ternary, Matcher::Mask { mask, .. }) if mask.is_zero() => Ok(Matcher::Any),
        (MatchKind::Ternary, m @ (Matcher::Exact(_) | Matcher::Mask { .. } | Matcher::Any)) => Ok(m),
        (MatchKind::Ternary, _) => Err("a ternary key is matched by a value and a mask"),
        (MatchKind::Range, Matcher::Exact(v)) => Ok(Matcher::Range { lo: v.clone(), hi: v }),
        (MatchKind::Range, m @ (Matcher::Range { .. } | Matcher::Any)) => Ok(m),
        (MatchKind::Range, _) => Err("a range key is matched by a range"),
        (MatchKind::Selector, m) => Ok(m),
    }
}
