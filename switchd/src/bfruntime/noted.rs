//! When [`Shadows`](super::shadows::Shadows) follow the switch: with an update, and with a Sync.

use super::fixed::Step;
use super::loaded::Loaded;
use super::prepared::Prepared;
use super::settings::ALL_PIPES;
use p4rack_entities::{Change, Checked, Query, ReadResults, Snapshot, change, query, query_keyed, snapshot};
use p4rack_p4rt::bfrt_proto::{TableEntry, update::Type};
use p4rack_p4rt::p4::v1;
use p4rack_switch::{Pipes, Switch};
use p4rack_wire::Nanos;
use std::sync::Arc;

/// Effect of an update on the notes of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// Its values are those that the switch has now.
    Noted,
    /// Nothing was counted.
    Forgotten,
}

/// Results of queries, in one turn of the data plane.
pub fn found(queries: Vec<Query>, switch: &Switch, now: Nanos) -> Checked<Vec<v1::Entity>> {
    let mut all = Vec::new();
    for query in queries {
        let mut next = Some(query);
        while let Some(query) = next {
            let answer = query(switch, now)?;
            all.extend(ReadResults::messages(answer.found));
            next = answer.next;
        }
    }
    Ok(all)
}

impl Loaded {
    /// The named entries, in the addressed pipes and in all together.
    fn in_each_pipe(
        &self,
        queries: impl Fn() -> Checked<Vec<Query>>,
        switch: &mut Switch,
        now: Nanos,
    ) -> Checked<Vec<(u32, TableEntry)>> {
        let single = (0..self.pipes).filter(|pipe| switch.means(*pipe as usize));
        let single = single.map(|pipe| (pipe, Pipes::of([pipe as usize]))).collect::<Vec<_>>();
        let mut all = Vec::new();
        for (pipe, pipes) in single.into_iter().chain([(ALL_PIPES, Pipes::ALL)]) {
            let queries = queries()?;
            // An entry may be in other pipes.
            let Ok(Ok(entities)) = switch.within(pipes, |switch| found(queries, switch, now)) else {
                continue;
            };
            for entity in &entities {
                all.push((pipe, self.translation.entry(entity)?));
            }
        }
        Ok(all)
    }

    /// Notes the switch's values of all of a table.
    pub fn sync(&self, table_id: u32, switch: &mut Switch, now: Nanos) -> Checked<()> {
        let wanted = self.translation.request(&TableEntry { table_id, ..Default::default() })?;
        self.forget_all(table_id, switch);
        for (pipe, entry) in self.in_each_pipe(|| query(&self.program, &wanted), switch, now)? {
            self.shadows.put(pipe, &entry);
        }
        Ok(())
    }

    /// Forgets the notes of a table in the addressed pipes.
    fn forget_all(&self, table_id: u32, switch: &Switch) {
        let mut held = self.shadows.held();
        let Some(table) = held.get_mut(&table_id) else { return };
        table.retain(|(_, pipe, _), _| *pipe != ALL_PIPES && !switch.means(*pipe as usize));
        if table.is_empty() {
            held.remove(&table_id);
        }
    }

    /// The entries with a key.
    fn keyed(
        self: &Arc<Loaded>,
        wanted: &v1::Entity,
        switch: &mut Switch,
        now: Nanos,
    ) -> Checked<Vec<(u32, TableEntry)>> {
        self.in_each_pipe(|| query_keyed(&self.program, wanted), switch, now)
    }

    /// Applies an update's effect to the notes of these entries.
    fn affect(&self, effect: Effect, entries: &[(u32, TableEntry)]) {
        for (pipe, entry) in entries {
            match effect {
                Effect::Noted => self.shadows.put(*pipe, entry),
                Effect::Forgotten => self.shadows.remove(*pipe, entry),
            }
        }
    }
}

/// Adds the update's effect on what reads show of counters and registers.
pub fn noted(loaded: &Arc<Loaded>, kind: Type, entry: &TableEntry, prepared: Prepared) -> Checked<Prepared> {
    let id = entry.table_id;
    if !loaded.shadows.has(id) {
        return Ok(prepared);
    }
    let mut fields = entry.data.iter().flat_map(|data| &data.fields);
    let counts = fields.any(|field| loaded.shadows.owns(id, field.field_id));
    let effect = match kind {
        _ if loaded.translation.has_cells(id) || counts => Effect::Noted,
        Type::Modify => return Ok(prepared),
        _ if loaded.shadows.is_initial(id) => return Ok(prepared),
        _ => Effect::Forgotten,
    };
    let wanted = loaded.translation.request(&TableEntry { data: None, ..entry.clone() })?;
    let rest = match prepared {
        Prepared::Plain(update) => Step {
            snapshot: Some(snapshot(&loaded.program, &update)?),
            change: change(&loaded.program, &update)?,
        },
        Prepared::Step(step) => step,
    };
    let is_all = entry.value.is_none() && !entry.is_default_entry;
    let (undone, saved) = (loaded.clone(), wanted.clone());
    let snapshot: Snapshot = Box::new(move |switch| {
        let (undo, now) = (rest.snapshot.map(|saved| saved(switch)), switch.now());
        Box::new(move |switch| {
            undo.into_iter().for_each(|undo| undo(switch));
            match undone.keyed(&saved, switch, now) {
                Ok(entries) if !is_all => undone.affect(effect, &entries),
                _ => undone.forget_all(id, switch),
            }
        })
    });
    let loaded = loaded.clone();
    let change: Change = Box::new(move |switch, now| {
        if is_all {
            (rest.change)(switch, now)?;
            loaded.forget_all(id, switch);
            return Ok(());
        }
        let before = loaded.keyed(&wanted, switch, now)?;
        (rest.change)(switch, now)?;
        loaded.affect(Effect::Forgotten, &before);
        let after = loaded.keyed(&wanted, switch, now)?;
        loaded.affect(effect, &after);
        Ok(())
    });
    Ok(Prepared::Step(Step { snapshot: Some(snapshot), change }))
}
