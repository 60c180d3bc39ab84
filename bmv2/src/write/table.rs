//! Tables: keys, actions, entries, and the action profiles behind them.

use super::expr::{hex, mask};
use super::{Result, Writer};
use crate::names::ALGORITHMS;
use num_bigint::BigUint;
use num_traits::{ToPrimitive, Zero};
use p4rack_p4::ir::{
    ActionCall, Entry, Expr, InstanceKind, Key, LValue, MatchKind, Matcher, Stmt, Table, TableId,
};
use serde_json::{Map, Value, json};

impl Writer {
    /// Whether a key is a field.
    pub(super) fn is_plain_key(&self, expr: &Expr) -> bool {
        matches!(expr, Expr::Var(var) if !self.program.stacks.iter().any(|stack| stack.next == *var))
    }

    /// Appends the computation of a table's keys that are no fields.
    pub(super) fn keys(&mut self, id: TableId, ops: &mut Vec<Stmt>) {
        let keys = self.program.tables[id.0 as usize].keys.clone();
        for (at, key) in keys.iter().enumerate() {
            if self.is_plain_key(&key.expr) {
                continue;
            }
            let temp = match self.keys.get(&(id, at)) {
                Some(temp) => *temp,
                None => {
                    let temp = self.temp("key_", key.ty);
                    self.keys.insert((id, at), temp);
                    temp
                }
            };
            let span = self.program.tables[id.0 as usize].span;
            ops.push(Stmt::Assign { target: LValue::Var(temp), value: key.expr.clone(), span });
        }
    }

    /// The field that a key matches.
    fn key_field(&mut self, id: TableId, at: usize) -> Result<Value> {
        let expr = match self.keys.get(&(id, at)) {
            Some(temp) => Expr::Var(*temp),
            None => self.program.tables[id.0 as usize].keys[at].expr.clone(),
        };
        self.param(&expr)
    }

    /// A table with what follows it.
    pub(super) fn table(&mut self, id: TableId, next: Map<String, Value>, base: Value) -> Result<Value> {
        let table: Table = self.program.tables[id.0 as usize].clone();
        self.at = table.span;
        let mut keys = Vec::new();
        for (at, key) in table.keys.iter().enumerate().filter(|(_, key)| key.kind != MatchKind::Selector) {
            let target = self.key_field(id, at)?;
            keys.push(json!({
                "match_type": match_type(key.kind),
                "name": key.named.name,
                "target": target["value"],
                "mask": null,
            }));
        }
        let action = |writer: &Writer, position: usize| {
            let action = table.actions[position].action.0 as usize;
            (writer.program.actions[action].named.name.clone(), writer.action_ids[action])
        };
        let (names, ids): (Vec<String>, Vec<usize>) =
            (0..table.actions.len()).map(|position| action(self, position)).unzip();
        let implementation = table.implementation.map(|instance| {
            let instance = &self.program.instances[instance.0 as usize];
            let selects = matches!(instance.kind, InstanceKind::ActionSelector { .. });
            (instance.named.name.clone(), if selects { "indirect_ws" } else { "indirect" })
        });
        let meter = table.meter.map(|meter| self.program.instances[meter.0 as usize].named.name.clone());
        let mut out = json!({
            "name": table.named.name,
            "id": self.id("tables"),
            "key": keys,
            "match_type": table_match_type(&table.keys),
            "type": implementation.as_ref().map_or("simple", |(_, ty)| ty),
            "max_size": table.size,
            "with_counters": table.counter.is_some(),
            "support_timeout": table.idle_timeout,
            "direct_meters": meter,
            "action_ids": ids,
            "actions": names,
            "base_default_next": base,
            "next_tables": next,
        });
        if let Some((name, _)) = &implementation {
            out["action_profile"] = json!(name);
        } else if let Some(call) = &table.default_action {
            let mut entry = action_entry(&ids, call);
            entry["action_const"] = json!(table.default_is_const);
            entry["action_entry_const"] = json!(table.default_is_const);
            out["default_entry"] = entry;
        }
        if !table.entries.is_empty() {
            if !table.entries_const {
                return self
                    .refuse(format!("entries that the control plane may change, of `{}`", table.named.name));
            }
            let entries: Vec<Value> =
                table.entries.iter().map(|entry| entry_json(&table, &ids, entry)).collect();
            out["entries"] = json!(entries);
        }
        Ok(out)
    }

    /// The action profile or selector of a table.
    pub(super) fn table_profile(&mut self, id: TableId) -> Result<Option<(String, Value)>> {
        let table = self.program.tables[id.0 as usize].clone();
        let Some(instance) = table.implementation else { return Ok(None) };
        let instance = self.program.instances[instance.0 as usize].clone();
        let name = instance.named.name;
        let mut profile = json!({ "name": name, "id": self.id("action_profiles") });
        match instance.kind {
            InstanceKind::ActionProfile { size } => profile["max_size"] = json!(size),
            InstanceKind::ActionSelector { size, algorithm, .. } => {
                profile["max_size"] = json!(size);
                let Some((_, algo)) = ALGORITHMS.iter().find(|(known, _)| *known == algorithm) else {
                    return self.refuse("such hash algorithm");
                };
                let mut input = Vec::new();
                for (at, _) in
                    table.keys.iter().enumerate().filter(|(_, key)| key.kind == MatchKind::Selector)
                {
                    input.push(self.key_field(id, at)?);
                }
                profile["selector"] = json!({ "algo": algo, "input": input });
            }
            _ => return self.refuse(format!("such implementation of a table, `{name}`")),
        }
        Ok(Some((name, profile)))
    }
}

fn match_type(kind: MatchKind) -> &'static str {
    match kind {
        MatchKind::Exact | MatchKind::Selector => "exact",
        MatchKind::Lpm => "lpm",
        // BMv2 has no other word for an optional key: the P4Info says that masks are all or nothing.
        MatchKind::Ternary | MatchKind::Optional => "ternary",
        MatchKind::Range => "range",
    }
}

/// The match type of a whole table, from those of its keys.
fn table_match_type(keys: &[Key]) -> &'static str {
    let has = |kind: MatchKind| keys.iter().any(|key| key.kind == kind);
    if has(MatchKind::Range) {
        "range"
    } else if has(MatchKind::Ternary) || has(MatchKind::Optional) {
        "ternary"
    } else if has(MatchKind::Lpm) {
        "lpm"
    } else {
        "exact"
    }
}

fn action_entry(ids: &[usize], call: &ActionCall) -> Value {
    let data: Vec<Value> = call.args.iter().map(|arg| json!(format!("0x{arg:x}"))).collect();
    json!({ "action_id": ids.get(call.action as usize), "action_data": data })
}

/// A constant entry. In BMv2 the smallest priority wins.
fn entry_json(table: &Table, ids: &[usize], entry: &Entry) -> Value {
    let keys = table.keys.iter().zip(&entry.keys).filter(|(key, _)| key.kind != MatchKind::Selector);
    let keys: Vec<Value> = keys.map(|(key, matcher)| match_key(key, matcher)).collect();
    json!({
        "match_key": keys,
        "action_entry": action_entry(ids, &entry.call),
        "priority": i64::from(i32::MAX) - i64::from(entry.priority),
    })
}

fn match_key(key: &Key, matcher: &Matcher) -> Value {
    let width = key.ty.width();
    let digits = |value: &BigUint| hex(value, width)["value"].clone();
    let full = mask(width);
    let zero = BigUint::zero();
    let (value, value_mask) = match matcher {
        Matcher::Exact(value) => (value, &full),
        Matcher::Mask { value, mask } => (value, mask),
        _ => (&zero, &zero),
    };
    match key.kind {
        MatchKind::Exact | MatchKind::Selector => json!({ "match_type": "exact", "key": digits(value) }),
        MatchKind::Lpm => {
            let length = value_mask.count_ones().to_u32().unwrap_or(width);
            json!({ "match_type": "lpm", "key": digits(value), "prefix_length": length })
        }
        MatchKind::Ternary | MatchKind::Optional => {
            json!({ "match_type": "ternary", "key": digits(value), "mask": digits(value_mask) })
        }
        MatchKind::Range => {
            let (lo, hi) = match matcher {
                Matcher::Range { lo, hi } => (lo, hi),
                _ => (&zero, &full),
            };
            json!({ "match_type": "range", "start": digits(lo), "end": digits(hi) })
        }
    }
}
