//! Commands on tables.

use super::handles::named;
use super::refusals::{Of, refused};
use super::words::{
    at_least, call, exactly, find, has_priority, key_kind, keys, kind_of, meant, number, priority,
};
use super::{Call, Done, Failure, mistake};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::p4::config::v1::table::IdleTimeoutBehavior;
use p4rack_p4rt::p4::config::v1::{Action, Table};
use p4rack_p4rt::p4::v1::update::Type;
use p4rack_p4rt::p4::v1::{self, TableAction, TableEntry, table_action};
use p4rack_p4rt::schema::{id_of, name_of};

/// Entry and action of a command that adds one.
pub(super) fn with_action(kind: table_action::Type) -> Option<TableAction> {
    Some(TableAction { r#type: Some(kind) })
}

/// A word that names an entry.
fn entry_handle(word: &str) -> Done<u32> {
    number(word, "entry handle")
}

/// Refuses a table whose entries have members of an action profile, for which there are other commands.
pub(super) fn direct(table: &Table, instead: &str) -> Done {
    if table.implementation_id == 0 {
        return Ok(());
    }
    let name = name_of(table.preamble.as_ref());
    let why = format!("entries of {name} have members of an action profile; take {instead}");
    Err(Of::Entry.refusal("WRONG_TABLE_TYPE", why))
}

/// Takes the priority off the end, where a table's entries have one.
pub(super) fn with_priority<'w, 'l>(table: &Table, words: &'w [&'l str]) -> Done<(&'w [&'l str], i32)> {
    if !has_priority(table) {
        return Ok((words, 0));
    }
    let wrong =
        || Failure("Error: Table is ternary, but could not extract a valid priority from args".to_owned());
    let (last, rest) = words.split_last().ok_or_else(wrong)?;
    let given: i32 = last.parse().ok().filter(|given| (0..i32::MAX).contains(given)).ok_or_else(wrong)?;
    Ok((rest, priority(given)))
}

impl Call<'_> {
    /// A table by its name.
    pub(super) fn table(&self, name: &str) -> Done<Table> {
        find(Of::Entry.kind(), name, &self.schema.info().tables, |table| table.preamble.as_ref()).cloned()
    }

    /// The action profile of the table that the first word names.
    pub(super) fn profile_of(&self, args: &[&str]) -> Done<String> {
        let ([name], _) = at_least::<1>(args)?;
        let table = self.table(name)?;
        match self.schema.profile_by_id(table.implementation_id) {
            Ok(profile) => Ok(name_of(profile.preamble.as_ref()).to_owned()),
            Err(_) => mistake("Cannot run this command on non-indirect table"),
        }
    }

    /// An action of a table.
    pub(super) fn action(&self, table: &Table, name: &str) -> Done<Action> {
        let actions = &self.schema.info().actions;
        let found = find("action", name, actions, |action| action.preamble.as_ref());
        let is_of = |action: &&Action| {
            table.action_refs.iter().any(|other| other.id == id_of(action.preamble.as_ref()))
        };
        // A short name may be unique among the table's actions alone.
        let own: Vec<Action> = actions.iter().filter(is_of).cloned().collect();
        match found.ok().filter(is_of) {
            Some(action) => Ok(action.clone()),
            None => find("action", name, &own, |action| action.preamble.as_ref()).cloned().or_else(|_| {
                let help = meant(name, &own, |action| action.preamble.as_ref());
                mistake(format!("Table {} has no action {name}{help}", name_of(table.preamble.as_ref())))
            }),
        }
    }

    /// The entries of a table as they are now, with handles.
    pub(super) async fn refresh(&mut self, table: &Table) -> Done {
        let id = id_of(table.preamble.as_ref());
        let asked = TableEntry { table_id: id, ..Default::default() };
        let found = self.read(EntityKind::TableEntry(asked)).await?;
        let entries = found.into_iter().filter_map(|kind| match kind {
            EntityKind::TableEntry(entry) => Some(entry),
            _ => None,
        });
        let entries: Vec<TableEntry> = entries.collect();
        self.runtime.entries.entry(id).or_default().are(entries);
        Ok(())
    }

    /// The same, without handles.
    pub(super) async fn all_entries(&mut self, table: &Table) -> Done<Vec<TableEntry>> {
        self.refresh(table).await?;
        let handles = self.runtime.entries.get(&id_of(table.preamble.as_ref()));
        let all = handles.into_iter().flat_map(|handles| handles.all());
        Ok(all.map(|(_, entry)| entry.clone()).collect())
    }

    /// The entry with a handle, as it is now.
    pub(super) async fn entry(&mut self, table: &Table, handle: u32) -> Done<TableEntry> {
        self.refresh(table).await?;
        let handles = self.runtime.entries.get(&id_of(table.preamble.as_ref()));
        match handles.and_then(|handles| handles.get(handle)) {
            Some(entry) => Ok(entry.clone()),
            None => {
                let name = name_of(table.preamble.as_ref());
                let why = format!("{name} has no entry {handle}; table_dump lists them");
                Err(Of::Entry.refusal("INVALID_HANDLE", why))
            }
        }
    }

    /// Reads the default entry.
    pub(super) async fn default_entry(&mut self, table: &Table) -> Done<Option<TableEntry>> {
        let table_id = id_of(table.preamble.as_ref());
        let asked = TableEntry { table_id, is_default_action: true, ..Default::default() };
        let found = self.read(EntityKind::TableEntry(asked)).await?;
        Ok(found.into_iter().find_map(|kind| match kind {
            EntityKind::TableEntry(entry) => Some(entry),
            _ => None,
        }))
    }

    pub(super) async fn table_command(&mut self, name: &str, args: &[&str]) -> Done {
        match name {
            "show_tables" => {
                exactly::<0>(args)?;
                let schema = self.schema.clone();
                let mut lines: Vec<String> =
                    schema.info().tables.iter().map(|table| self.table_line(table)).collect();
                lines.sort_unstable();
                lines.iter().for_each(|line| self.say(line));
                Ok(())
            }
            "show_actions" => {
                exactly::<0>(args)?;
                let schema = self.schema.clone();
                self.actions(schema.info().actions.iter())
            }
            "table_add" => self.add(args).await,
            "table_indirect_add" | "table_indirect_add_with_group" => {
                self.add_indirect(args, name.ends_with("group")).await
            }
            "table_set_default" => self.set_default(args).await,
            "table_modify" => self.modify(args).await,
            "table_set_timeout" => self.set_timeout(args).await,
            "table_dump_entry_from_key" => self.dump_by_key(args).await,
            _ => self.on_a_table(name, args).await,
        }
    }

    /// Commands whose arguments are a table, and maybe an entry.
    async fn on_a_table(&mut self, name: &str, args: &[&str]) -> Done {
        let known = [
            "table_show_actions",
            "table_info",
            "table_reset_default",
            "table_indirect_reset_default",
            "table_num_entries",
            "table_clear",
            "table_delete",
            "table_indirect_delete",
            "table_dump",
            "table_dump_entry",
        ];
        if !known.contains(&name) {
            return self.unknown(name);
        }
        let ([table_name], rest) = at_least::<1>(args)?;
        let table = self.table(table_name)?;
        match name {
            "table_delete" | "table_indirect_delete" => {
                let handle = entry_handle(exactly::<1>(rest)?[0])?;
                if name == "table_indirect_delete" {
                    self.profile_of(args)?;
                }
                self.say(format!("Deleting entry {handle} from {table_name}"));
                if name == "table_delete" {
                    direct(&table, "table_indirect_delete")?;
                }
                let entry = self.entry(&table, handle).await?;
                let done = self.write(Type::Delete, EntityKind::TableEntry(named(&entry))).await;
                done.map_err(refused(Of::Entry))
            }
            "table_dump_entry" => {
                let handle = entry_handle(exactly::<1>(rest)?[0])?;
                let entry = self.entry(&table, handle).await?;
                self.dump_entry(&table, handle, &entry);
                Ok(())
            }
            _ => {
                exactly::<0>(rest)?;
                if name == "table_indirect_reset_default" && table.implementation_id == 0 {
                    let why = format!("{table_name} has no action profile; take table_reset_default");
                    return Err(Of::Default.refusal("WRONG_TABLE_TYPE", why));
                }
                self.of_a_table(name, table).await
            }
        }
    }

    async fn of_a_table(&mut self, name: &str, table: Table) -> Done {
        let table_id = id_of(table.preamble.as_ref());
        match name {
            "table_dump" => self.dump_table(&table).await,
            "table_num_entries" => {
                let count = self.all_entries(&table).await?.len();
                self.say(count);
                Ok(())
            }
            "table_clear" => {
                let entries = self.all_entries(&table).await?;
                // Entries of the program stay.
                let own = entries.iter().filter(|entry| !entry.is_const);
                let deletions = own.map(|entry| (Type::Delete, EntityKind::TableEntry(named(entry))));
                self.write_all(deletions.collect()).await.map_err(refused(Of::Entry))?;
                self.refresh(&table).await
            }
            "table_reset_default" | "table_indirect_reset_default" => {
                let reset = TableEntry { table_id, is_default_action: true, ..Default::default() };
                self.write(Type::Modify, EntityKind::TableEntry(reset)).await.map_err(refused(Of::Default))
            }
            _ => {
                if name == "table_info" {
                    let line = self.table_line(&table);
                    self.say(line);
                    self.say("*".repeat(80));
                }
                let schema = self.schema.clone();
                let is_of = |action: &&Action| {
                    table.action_refs.iter().any(|other| other.id == id_of(action.preamble.as_ref()))
                };
                self.actions(schema.info().actions.iter().filter(is_of))
            }
        }
    }

    /// `MyIngress.ipv4_lpm   [implementation=None, mk=hdr.ipv4.dstAddr(lpm, 32)]`
    fn table_line(&self, table: &Table) -> String {
        let profile = self.schema.profile_by_id(table.implementation_id).ok();
        let implementation = profile.map_or("None", |profile| name_of(profile.preamble.as_ref()));
        let fields: Vec<String> = table
            .match_fields
            .iter()
            .map(|field| format!("{}({}, {})", field.name, key_kind(field), field.bitwidth))
            .collect();
        let name = name_of(table.preamble.as_ref());
        format!("{name:30} [implementation={implementation}, mk={}]", fields.join(",\t"))
    }

    fn actions<'a>(&mut self, actions: impl Iterator<Item = &'a Action>) -> Done {
        let line = |action: &Action| {
            let params: Vec<String> =
                action.params.iter().map(|param| format!("{}({})", param.name, param.bitwidth)).collect();
            format!("{:30} [{}]", name_of(action.preamble.as_ref()), params.join(",\t"))
        };
        let mut lines: Vec<String> = actions.map(line).collect();
        lines.sort_unstable();
        lines.iter().for_each(|line| self.say(line));
        Ok(())
    }

    /// Shows an action with the bytes of its arguments.
    pub(super) fn say_call(&mut self, action: &Action, called: &v1::Action) {
        let data: Vec<String> = called
            .params
            .iter()
            .zip(&action.params)
            .map(|(given, param)| super::words::colons(&given.value, param.bitwidth))
            .collect();
        self.say(format!("{:20} {}", "action:", name_of(action.preamble.as_ref())));
        self.say(format!("{:20} {}", "runtime data:", data.join("\t")));
    }

    async fn set_default(&mut self, args: &[&str]) -> Done {
        let ([table_name, action_name], params) = at_least::<2>(args)?;
        let table = self.table(table_name)?;
        let action = self.action(&table, action_name)?;
        let called = call(&action, params)?;
        self.say(format!("Setting default action of {table_name}"));
        self.say_call(&action, &called);
        let entry = TableEntry {
            table_id: id_of(table.preamble.as_ref()),
            action: with_action(table_action::Type::Action(called)),
            is_default_action: true,
            ..Default::default()
        };
        self.write(Type::Modify, EntityKind::TableEntry(entry)).await.map_err(refused(Of::Default))
    }

    async fn modify(&mut self, args: &[&str]) -> Done {
        let ([table_name, action_name, handle], params) = at_least::<3>(args)?;
        let params = params.strip_prefix(&["=>"]).unwrap_or(params);
        let table = self.table(table_name)?;
        let action = self.action(&table, action_name)?;
        let handle = entry_handle(handle)?;
        let called = call(&action, params)?;
        self.say(format!("Modifying entry {handle} for {} match table {table_name}", kind_of(&table)));
        direct(&table, "table_indirect_delete and table_indirect_add")?;
        let entry = self.entry(&table, handle).await?;
        let action = with_action(table_action::Type::Action(called));
        self.change(&table, TableEntry { action, ..entry }).await
    }

    async fn set_timeout(&mut self, args: &[&str]) -> Done {
        let [table_name, handle, timeout_ms] = exactly::<3>(args)?;
        let table = self.table(table_name)?;
        if table.idle_timeout_behavior() != IdleTimeoutBehavior::NotifyControl {
            return mistake(format!(
                "Table {table_name} does not support entry timeouts: the program gives it no support_timeout"
            ));
        }
        let (handle, timeout_ms): (u32, u32) = (entry_handle(handle)?, number(timeout_ms, "timeout")?);
        self.say(format!("Setting a {timeout_ms} ms timeout for entry {handle}"));
        let entry = self.entry(&table, handle).await?;
        let idle_timeout_ns = i64::from(timeout_ms) * 1_000_000;
        self.change(&table, TableEntry { idle_timeout_ns, ..entry }).await
    }

    /// Writes an entry with another action or timeout, and with the rates of its meter, which would otherwise be lost.
    async fn change(&mut self, table: &Table, entry: TableEntry) -> Done {
        let id = id_of(table.preamble.as_ref());
        let has_meter = self.schema.info().direct_meters.iter().any(|meter| meter.direct_table_id == id);
        let meter_config = if has_meter { self.direct_rates(&entry).await? } else { None };
        let changed = TableEntry {
            action: entry.action.clone(),
            metadata: entry.metadata.clone(),
            idle_timeout_ns: entry.idle_timeout_ns,
            meter_config,
            ..named(&entry)
        };
        self.write(Type::Modify, EntityKind::TableEntry(changed)).await.map_err(refused(Of::Entry))
    }

    async fn dump_by_key(&mut self, args: &[&str]) -> Done {
        let ([table_name], rest) = at_least::<1>(args)?;
        let table = self.table(table_name)?;
        let (key_words, priority) = with_priority(&table, rest)?;
        let table_id = id_of(table.preamble.as_ref());
        let wanted =
            TableEntry { table_id, r#match: keys(&table, key_words)?, priority, ..Default::default() };
        self.refresh(&table).await?;
        let handles = self.runtime.entries.get(&table_id);
        let found = handles.and_then(|handles| {
            let handle = handles.of(&wanted)?;
            Some((handle, handles.get(handle)?.clone()))
        });
        match found {
            Some((handle, entry)) => {
                self.dump_entry(&table, handle, &entry);
                Ok(())
            }
            None => Err(Of::Entry.refusal("BAD_MATCH_KEY", "there is no entry with these keys")),
        }
    }
}
