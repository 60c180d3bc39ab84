//! Follows the references of entries: names of translated values, and relations by `@refers_to` and `@referenced_by`.
//!
//! Only tables and profiles that have such values are followed; all others cost nothing here. Everything is counted, so a
//! check is a look-up however many entries there are.

use super::ledger::{Counts, Ledger, Uses};
use super::program::Program;
use super::{Checked, refuse};
use num_bigint::BigUint;
use p4rack_p4::ir::{
    self, ActionCall, ActionId, MatchKind, Matcher, REPLICA_INSTANCE, Reference, Referent, Referrer, TableId,
};
use p4rack_p4::shown;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::{MulticastGroupEntry, replica};
use p4rack_switch::{Indirect, TableEntry};

impl Program {
    fn references(&self) -> impl Iterator<Item = (usize, &Reference)> {
        self.ir.rules.references.iter().enumerate()
    }

    /// Whether the references of a table's entries are followed.
    fn finds_followed(&self, table: TableId) -> bool {
        let of_table = |reference: &Reference| {
            reference.from == Referrer::Table(table) || reference.to == Referent::Table(table)
        };
        let Some(ir) = self.ir.tables.get(table.0 as usize) else { return false };
        ir.keys.iter().any(|key| self.names.of(key.type_name.as_deref()).is_some())
            || self.ir.rules.references.iter().any(of_table)
            || ir.actions.iter().any(|listed| self.follows_action(listed.action))
    }

    fn follows_action(&self, action: ActionId) -> bool {
        let refers = |reference: &Reference| reference.from == Referrer::Action(action);
        let ir = &self.ir.actions[action.0 as usize];
        ir.params.iter().any(|param| self.names.of(param.type_name.as_deref()).is_some())
            || self.ir.rules.references.iter().any(refers)
    }

    /// Whether the references of multicast groups are followed.
    pub(crate) fn follows_groups(&self) -> bool {
        let of_groups =
            |reference: &Reference| reference.from == Referrer::Replicas || reference.to == Referent::Groups;
        self.ir.rules.references.iter().any(of_groups)
    }

    /// References of a table's entry.
    pub(crate) fn uses_of_entry(&self, table: TableId, entry: &TableEntry) -> Uses {
        let mut uses = Uses::default();
        self.add_keys(table, &entry.keys, &mut uses);
        match &entry.indirect {
            None => self.add_call(table, &entry.call, &mut uses),
            Some(Indirect::Set(set)) => {
                set.actions.iter().for_each(|(call, _)| self.add_call(table, call, &mut uses));
            }
            // Members have uses of their own.
            Some(Indirect::Member(_) | Indirect::Group(_)) => {}
        }
        uses
    }

    /// References of a default action or a member. `table` is one that lists the action.
    pub(crate) fn uses_of_call(&self, table: TableId, call: Option<&ActionCall>) -> Uses {
        let mut uses = Uses::default();
        if let Some(call) = call {
            self.add_call(table, call, &mut uses);
        }
        uses
    }

    /// References of a multicast group.
    pub(crate) fn uses_of_group(&self, entry: Option<&MulticastGroupEntry>) -> Uses {
        let mut uses = Uses::default();
        let Some(entry) = entry else { return uses };
        for (number, reference) in self.references() {
            if reference.to == Referent::Groups {
                uses.offered.push((number, vec![entry.multicast_group_id.into()]));
            }
            if reference.from == Referrer::Replicas {
                let replicas = entry.replicas.iter().flat_map(|replica| {
                    #[allow(deprecated)]
                    let port = match &replica.port_kind {
                        Some(replica::PortKind::Port(port)) => self.names.port("", port).unwrap_or(0),
                        Some(replica::PortKind::EgressPort(port)) => u16::try_from(*port).unwrap_or(0),
                        None => 0,
                    };
                    let backups = replica.backup_replicas.iter();
                    let backups = backups
                        .map(|backup| (self.names.port("", &backup.port).unwrap_or(0), backup.instance));
                    [(port, replica.instance)].into_iter().chain(backups).collect::<Vec<_>>()
                });
                uses.wanted.extend(replicas.map(|(port, instance)| {
                    let value = |(from, _): &(usize, usize)| match *from {
                        REPLICA_INSTANCE => instance.into(),
                        _ => port.into(),
                    };
                    (number, reference.fields.iter().map(value).collect())
                }));
            }
        }
        uses
    }

    fn add_keys(&self, table: TableId, matchers: &[Matcher], uses: &mut Uses) {
        let Some(ir) = self.ir.tables.get(table.0 as usize) else { return };
        let keys = ir.keys.iter().filter(|key| key.kind != MatchKind::Selector);
        for (key, matcher) in keys.zip(matchers) {
            if let (Some(kind), Matcher::Exact(value)) = (self.names.of(key.type_name.as_deref()), matcher) {
                uses.named.push((kind.clone(), value.clone()));
            }
        }
        // A key that is not matched exactly neither wants nor offers a value.
        let value = |at: usize| match matchers.get(at) {
            Some(Matcher::Exact(value)) => Some(value.clone()),
            _ => None,
        };
        for (number, reference) in self.references() {
            if reference.from == Referrer::Table(table) {
                let values: Option<Vec<_>> = reference.fields.iter().map(|(from, _)| value(*from)).collect();
                uses.wanted.extend(values.map(|values| (number, values)));
            }
            if reference.to == Referent::Table(table) {
                let values: Option<Vec<_>> = reference.fields.iter().map(|(_, to)| value(*to)).collect();
                uses.offered.extend(values.map(|values| (number, values)));
            }
        }
    }

    fn add_call(&self, table: TableId, call: &ActionCall, uses: &mut Uses) {
        let listed = self.ir.tables.get(table.0 as usize).and_then(|ir| ir.actions.get(call.action as usize));
        let Some(action) = listed.map(|listed| listed.action) else { return };
        let params = &self.ir.actions[action.0 as usize].params;
        for (param, value) in params.iter().zip(&call.args) {
            if let Some(kind) = self.names.of(param.type_name.as_deref()) {
                uses.named.push((kind.clone(), value.clone()));
            }
        }
        for (number, reference) in
            self.references().filter(|(_, found)| found.from == Referrer::Action(action))
        {
            let value = |(from, _): &(usize, usize)| call.args.get(*from).cloned();
            let values: Option<Vec<_>> = reference.fields.iter().map(value).collect();
            uses.wanted.extend(values.map(|values| (number, values)));
        }
    }

    /// Replaces an object's references, if `apply` succeeds. Refused if it wants a value that doesn't exist, or no
    /// longer offers one that is wanted.
    pub(crate) fn exchange(
        &self,
        before: &Uses,
        after: &Uses,
        apply: impl FnOnce() -> Checked<()>,
    ) -> Checked<()> {
        if before.is_empty() && after.is_empty() {
            return apply();
        }
        {
            let ledger = self.ledger();
            self.check_wanted(&ledger, after)?;
            self.check_offered(&ledger, before, after)?;
        }
        apply()?;
        self.replace(before, after);
        Ok(())
    }

    /// Replaces an object's references.
    pub(crate) fn replace(&self, before: &Uses, after: &Uses) {
        after.named.iter().for_each(|(kind, number)| {
            kind.keep(number);
        });
        before.named.iter().for_each(|(kind, number)| kind.release(number));
        let mut ledger = self.ledger();
        after.wanted.iter().for_each(|key| ledger.change(key, |counts| counts.wanted += 1));
        after.offered.iter().for_each(|key| ledger.change(key, |counts| counts.offered += 1));
        let less = |count: &mut u64| *count = count.saturating_sub(1);
        before.wanted.iter().for_each(|key| ledger.change(key, |counts| less(&mut counts.wanted)));
        before.offered.iter().for_each(|key| ledger.change(key, |counts| less(&mut counts.offered)));
    }

    /// Begins to follow references of entries, first those of the program's own entries.
    pub(crate) fn follow(&mut self) {
        let tables = 0..self.ir.tables.len() as u32;
        self.followed = tables.map(|table| self.finds_followed(TableId(table))).collect();
        for (number, table) in self.ir.tables.iter().enumerate() {
            let id = TableId(number as u32);
            for entry in &table.entries {
                let entry = TableEntry::new(entry.keys.clone(), entry.call.clone());
                self.replace(&Uses::default(), &self.uses_of_entry(id, &entry));
            }
            let default = self.uses_of_call(id, table.default_action.as_ref());
            self.replace(&Uses::default(), &default);
        }
    }

    /// The target of a reference, with its values.
    fn described(&self, reference: &Reference, values: &[BigUint]) -> String {
        match reference.to {
            Referent::Groups => {
                format!("multicast group {}", values.first().unwrap_or(&BigUint::ZERO))
            }
            Referent::Table(table) => {
                let table = &self.ir.tables[table.0 as usize];
                let keys: Vec<&ir::Key> =
                    table.keys.iter().filter(|key| key.kind != MatchKind::Selector).collect();
                let pair = |((_, to), value): (&(usize, usize), &BigUint)| {
                    let key = keys.get(*to)?;
                    let shown = match self.names.of(key.type_name.as_deref()) {
                        Some(kind) if kind.is_text() => {
                            format!("\"{}\"", String::from_utf8_lossy(&kind.shown(value)).escape_debug())
                        }
                        _ => shown::number(shown::key(&self.ir, key), value),
                    };
                    Some(format!("{} = {shown}", key.named.name))
                };
                let pairs: Vec<String> = reference.fields.iter().zip(values).filter_map(pair).collect();
                format!("entry of {} with {}", table.named.name, pairs.join(", "))
            }
        }
    }
}

impl Program {
    fn check_wanted(&self, ledger: &Ledger, after: &Uses) -> Checked<()> {
        for key in &after.wanted {
            if ledger.counts(key).offered == 0 {
                let reference = &self.ir.rules.references[key.0];
                let message = format!(
                    "{} refers to something that does not exist: there is no {}",
                    self.referrer(reference.from),
                    self.described(reference, &key.1)
                );
                return refuse(Code::InvalidArgument, message);
            }
        }
        Ok(())
    }

    fn check_offered(&self, ledger: &Ledger, before: &Uses, after: &Uses) -> Checked<()> {
        for key in before.offered.iter().filter(|key| !after.offered.contains(key)) {
            let Counts { wanted, offered } = ledger.counts(key);
            let own = before.wanted.iter().filter(|wanted| *wanted == key).count() as u64;
            let others = wanted.saturating_sub(own);
            if offered <= 1 && others > 0 {
                let reference = &self.ir.rules.references[key.0];
                let message = format!(
                    "the {} is in use: {} refers to it ({others} in all); delete what refers to it first",
                    self.described(reference, &key.1),
                    self.referrer(reference.from)
                );
                return refuse(Code::FailedPrecondition, message);
            }
        }
        Ok(())
    }

    /// The owner of a reference, for messages.
    fn referrer(&self, from: Referrer) -> String {
        match from {
            Referrer::Table(table) => format!("an entry of {}", self.ir.tables[table.0 as usize].named.name),
            Referrer::Action(action) => format!("action {}", self.ir.actions[action.0 as usize].named.name),
            Referrer::Replicas => "a replica of a multicast group".to_owned(),
        }
    }
}
