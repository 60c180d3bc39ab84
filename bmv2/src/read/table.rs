//! Tables: keys, actions, entries.

use super::objects::named;
use super::pipeline::is_hidden;
use super::{Cursor, NOWHERE, Reader, Result};
use num_bigint::BigUint;
use num_traits::Zero;
use p4rack_p4::ir::{
    ActionCall, Entry, Expr, InstanceId, InstanceKind, Key, MatchKind, Matcher, Storage, Table, TableAction,
    TableId, Ty,
};

/// Entries of a table.
const ENTRIES_MAX: u64 = 1 << 24;

impl<'j> Reader<'j> {
    /// Reads all tables that the control plane sees.
    pub(super) fn declare_tables(&mut self) -> Result<()> {
        for pipeline in self.root.get("pipelines")?.list()? {
            for node in pipeline.list_of("tables")? {
                if is_hidden(&node)? {
                    continue;
                }
                let name = node.text_of("name")?.to_owned();
                let id = TableId(self.program.tables.len() as u32);
                let table = self.table(&node, id)?;
                self.program.tables.push(table);
                if self.tables.insert(name.clone(), id).is_some() {
                    return node.wrong(format!("a second table with the name `{name}`"));
                }
            }
        }
        Ok(())
    }

    fn table(&mut self, node: &Cursor<'j>, id: TableId) -> Result<Table> {
        let meter = node.find("direct_meters");
        let mut keys = Vec::new();
        for key in node.list_of("key")? {
            keys.push(self.key(&key)?);
        }
        let (mut actions, mut ids) = (Vec::new(), Vec::new());
        for action in self.listed(node)? {
            ids.push(action.number()?);
            let action = self.action(&action, meter.as_ref())?;
            actions.push(TableAction {
                action,
                table_only: false,
                default_only: false,
                annotations: Vec::new(),
            });
        }
        let profile = node.find("action_profile").or_else(|| node.find("act_prof_name"));
        let implementation = match profile {
            Some(profile) => match self.instances.get(profile.text()?) {
                Some(instance) => Some(*instance),
                None => return profile.wrong("there is no such action profile"),
            },
            None => None,
        };
        match node.text_of("type")? {
            "simple" => {}
            "indirect" if implementation.is_some() => {}
            "indirect_ws" if implementation.is_some() => self.selector(node, &mut keys)?,
            "indirect" | "indirect_ws" => return node.wrong("`action_profile` is missing"),
            other => return node.get("type")?.wrong(format!("there is no type of tables `{other}`")),
        }
        let own = |reader: &mut Self, direct: InstanceId| {
            if let InstanceKind::DirectCounter { table, .. } | InstanceKind::DirectMeter { table, .. } =
                &mut reader.program.instances[direct.0 as usize].kind
            {
                *table = Some(id);
            }
        };
        let counter = self.direct_counter(node)?;
        if let Some(counter) = counter {
            own(self, counter);
        }
        let meter = match &meter {
            Some(meter) => self.instances.get(meter.text()?).copied(),
            None => None,
        };
        if let Some(meter) = meter {
            own(self, meter);
        }
        let (mut default_action, mut default_is_const) = (None, false);
        if let Some(entry) = node.find("default_entry") {
            default_action = Some(self.call(&entry, &ids)?);
            default_is_const = entry.flag_of("action_entry_const")? || entry.flag_of("action_const")?;
        }
        let mut entries = Vec::new();
        for entry in node.list_of("entries")? {
            entries.push(self.entry(&entry, &keys, &ids)?);
        }
        Ok(Table {
            named: named(node.text_of("name")?),
            keys,
            actions,
            default_action,
            default_is_const,
            entries_const: node.find("entries").is_some(),
            entries,
            size: node.find("max_size").map_or(Ok(1024), |size| size.within(0, ENTRIES_MAX))?,
            implementation,
            counter,
            meter,
            register: None,
            idle_timeout: node.flag_of("support_timeout")?,
            has_key_mask: false,
            storage: Storage::Any,
            span: NOWHERE,
        })
    }

    /// The ids of a table's actions.
    fn listed(&self, node: &Cursor<'j>) -> Result<Vec<Cursor<'j>>> {
        if let Some(ids) = node.find("action_ids") {
            return ids.list();
        }
        let mut ids = Vec::new();
        for name in node.list_of("actions")? {
            match self.action_ids.get(name.text()?) {
                Some(id) => ids.push(id.clone()),
                None => return name.wrong(format!("there is no action `{}`", name.text()?)),
            }
        }
        Ok(ids)
    }

    fn key(&mut self, node: &Cursor<'j>) -> Result<Key> {
        let (target, match_node) = (node.get("target")?, node.get("match_type")?);
        let match_type = match_node.text()?;
        let kind = match match_type {
            "exact" | "valid" => MatchKind::Exact,
            "lpm" => MatchKind::Lpm,
            "ternary" => MatchKind::Ternary,
            "range" => MatchKind::Range,
            "optional" => MatchKind::Optional,
            other => return match_node.wrong(format!("there is no match type `{other}`")),
        };
        let (mut expr, ty, full_name) = if target.is_text() {
            let header = self.header_named(&target)?;
            let valid = self.program.headers[header.0 as usize].valid;
            (Expr::Var(valid), Ty::Bool, target.text()?.to_owned())
        } else {
            let var = self.field_var(&target)?;
            let name = format!("{}.{}", target.at(0)?.text()?, target.at(1)?.text()?);
            (Expr::Var(var), self.program.vars[var.0 as usize].ty, name)
        };
        if let Some(mask) = node.find("mask") {
            let mask = mask.natural()? & super::expr::ones(ty.width());
            let mask = Box::new(Expr::Const { value: mask, ty });
            expr = Expr::Binary { op: p4rack_p4::ir::BinOp::BitAnd, left: Box::new(expr), right: mask, ty };
        }
        let name = match node.find("name") {
            Some(name) => name.text()?.to_owned(),
            None => full_name,
        };
        Ok(Key { named: named(&name), expr, ty, kind, type_name: None })
    }

    /// What a selector hashes is among the keys of its tables.
    fn selector(&mut self, node: &Cursor<'j>, keys: &mut Vec<Key>) -> Result<()> {
        if let Some(selector) = node.find("selector") {
            return self.selector_keys(&selector, keys);
        }
        let profile = node.get("action_profile")?;
        match self.profiles.get(profile.text()?).cloned() {
            Some(found) => self.selector_keys(&found.get("selector")?, keys),
            None => profile.wrong("there is no such action profile"),
        }
    }

    fn selector_keys(&mut self, selector: &Cursor<'j>, keys: &mut Vec<Key>) -> Result<()> {
        for input in selector.get("input")?.list()? {
            let (expr, ty) = self.exact(&input)?;
            let name = format!("selector_{}", keys.len());
            keys.push(Key { named: named(&name), expr, ty, kind: MatchKind::Selector, type_name: None });
        }
        Ok(())
    }

    fn direct_counter(&self, node: &Cursor<'j>) -> Result<Option<InstanceId>> {
        if !node.flag_of("with_counters")? {
            return Ok(None);
        }
        let counter = self.direct_counters.get(node.text_of("name")?);
        Ok(counter.and_then(|counter| self.instances.get(*counter)).copied())
    }

    fn call(&self, node: &Cursor<'j>, ids: &[u64]) -> Result<ActionCall> {
        let id = node.get("action_id")?;
        let number = id.number()?;
        let Some(position) = ids.iter().position(|known| *known == number) else {
            return id.wrong(format!("the table has no action with the id {number}"));
        };
        let widths = self.action_node(&id)?.list_of("runtime_data")?;
        let data = node.list_of("action_data")?;
        if data.len() != widths.len() {
            return node.wrong(format!(
                "{} arguments; the action has {} parameters",
                data.len(),
                widths.len()
            ));
        }
        let mut args = Vec::new();
        for (value, param) in data.iter().zip(&widths) {
            let width = param.get("bitwidth")?.within(1, 2048)? as u32;
            args.push(self.fitting(value, width)?);
        }
        Ok(ActionCall { action: position as u32, args })
    }

    /// A number that fits a width.
    fn fitting(&self, node: &Cursor<'j>, width: u32) -> Result<BigUint> {
        let number = node.natural()?;
        if number.bits() > u64::from(width) {
            return node.wrong(format!("the number has more than {width} bits"));
        }
        Ok(number)
    }

    fn entry(&self, node: &Cursor<'j>, keys: &[Key], ids: &[u64]) -> Result<Entry> {
        let given = node.get("match_key")?.list()?;
        let matched: Vec<&Key> = keys.iter().filter(|key| key.kind != MatchKind::Selector).collect();
        if given.len() != matched.len() {
            return node.wrong(format!("{} keys; the table has {}", given.len(), matched.len()));
        }
        let mut matchers = Vec::new();
        for (given, key) in given.iter().zip(&matched) {
            matchers.push(self.matcher(given, key)?);
        }
        let is_ordered = matched
            .iter()
            .any(|key| matches!(key.kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional));
        // In P4Runtime the larger priority wins.
        let priority = match node.find("priority") {
            Some(priority) if is_ordered => {
                let number = priority.within(0, i32::MAX as u64 - 1)?;
                i32::MAX - number as i32
            }
            _ => 0,
        };
        let call = self.call(&node.get("action_entry")?, ids)?;
        Ok(Entry { keys: matchers, call, priority, is_const: true })
    }

    fn matcher(&self, node: &Cursor<'j>, key: &Key) -> Result<Matcher> {
        let width = key.ty.width();
        let full = super::expr::ones(width);
        let number = |name: &str| self.fitting(&node.get(name)?, width);
        Ok(match key.kind {
            MatchKind::Exact | MatchKind::Selector => match node.get("key")? {
                flag if !flag.is_text() => Matcher::Exact(u8::from(flag.flag()?).into()),
                _ => Matcher::Exact(number("key")?),
            },
            MatchKind::Lpm => {
                let length = node.get("prefix_length")?.within(0, u64::from(width))? as u32;
                let rest = super::expr::ones(width - length);
                let mask = full - rest;
                Matcher::Mask { value: number("key")? & &mask, mask }
            }
            MatchKind::Ternary | MatchKind::Optional => {
                let (value, mask) = (number("key")?, number("mask")?);
                if mask.is_zero() {
                    Matcher::Any
                } else if key.kind == MatchKind::Optional || mask == full {
                    Matcher::Exact(value)
                } else {
                    Matcher::Mask { value: value & &mask, mask }
                }
            }
            MatchKind::Range => {
                let (lo, hi) = (number("start")?, number("end")?);
                if lo > hi {
                    return node.wrong("the range ends before it begins");
                }
                Matcher::Range { lo, hi }
            }
        })
    }
}
