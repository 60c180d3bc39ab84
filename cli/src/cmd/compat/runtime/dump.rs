//! `table_dump` and its relatives.

use super::words::{dumped, hex, key_kind};
use super::{Call, Done};
use p4rack_p4rt::p4::config::v1::Table;
use p4rack_p4rt::p4::v1::{self, TableAction, TableEntry, table_action};
use p4rack_p4rt::schema::{id_of, name_of};

impl Call<'_> {
    /// All entries, members and groups of a table's action profile, and the default entry.
    pub(super) async fn dump_table(&mut self, table: &Table) -> Done {
        self.refresh(table).await?;
        self.say("==========\nTABLE ENTRIES");
        let handles = self.runtime.entries.get(&id_of(table.preamble.as_ref()));
        let all: Vec<(u32, TableEntry)> = handles
            .into_iter()
            .flat_map(|handles| handles.all())
            .map(|(handle, entry)| (handle, entry.clone()))
            .collect();
        for (handle, entry) in &all {
            self.say("**********");
            self.dump_entry(table, *handle, entry);
        }
        let profile = self.schema.profile_by_id(table.implementation_id).ok().cloned();
        if let Some(profile) = profile {
            self.dump_profile(&profile).await?;
        }
        let default = self.default_entry(table).await?;
        self.say("==========\nDumping default entry");
        self.dump_action(default.and_then(|entry| entry.action).as_ref());
        self.say("==========");
        Ok(())
    }

    /// An entry.
    pub(super) fn dump_entry(&mut self, table: &Table, handle: u32, entry: &TableEntry) {
        let width = table.match_fields.iter().map(|field| field.name.len()).max().unwrap_or(0).max(20);
        self.say(format!("Dumping entry {handle:#x}\nMatch key:"));
        for field in &table.match_fields {
            let kind = key_kind(field).to_uppercase();
            self.say(format!("* {:width$}: {kind:10}{}", field.name, dumped(field, &entry.r#match)));
        }
        if super::words::has_priority(table) {
            self.say(format!("Priority: {}", super::words::priority(entry.priority)));
        }
        self.dump_action(entry.action.as_ref());
        if entry.idle_timeout_ns > 0 {
            let since_ms = entry.time_since_last_hit.map_or(0, |hit| hit.elapsed_ns / 1_000_000);
            let timeout_ms = entry.idle_timeout_ns / 1_000_000;
            self.say(format!("Life: {since_ms}ms since hit, timeout is {timeout_ms}ms"));
        }
    }

    fn dump_action(&mut self, action: Option<&TableAction>) {
        match action.and_then(|action| action.r#type.as_ref()) {
            None => self.say("EMPTY"),
            Some(table_action::Type::Action(action)) => self.dump_call(action),
            Some(table_action::Type::ActionProfileMemberId(id)) => {
                self.say(format!("Index: member({})", super::members::handle_of_id(*id)));
            }
            Some(table_action::Type::ActionProfileGroupId(id)) => {
                self.say(format!("Index: group({})", super::members::handle_of_id(*id)));
            }
            Some(table_action::Type::ActionProfileActionSet(set)) => {
                self.say(format!(
                    "Index: {} actions that a controller has given",
                    set.action_profile_actions.len()
                ));
            }
        }
    }

    /// An action with its arguments.
    pub(super) fn dump_call(&mut self, called: &v1::Action) {
        let schema = self.schema.clone();
        let action = schema.action_by_id(called.action_id).ok();
        let width = |id: u32| {
            let params = action.map(|action| &action.params[..]).unwrap_or_default();
            params.iter().find(|param| param.id == id).map_or(0, |param| param.bitwidth)
        };
        let data: Vec<String> =
            called.params.iter().map(|param| hex(&param.value, width(param.param_id))).collect();
        let name = action.map_or("?", |action| name_of(action.preamble.as_ref()));
        self.say(format!("Action entry: {name} - {}", data.join(", ")));
    }
}
