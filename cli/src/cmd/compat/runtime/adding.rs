//! `table_add` and its relatives.

use super::members::id_of_handle;
use super::refusals::{Of, refused};
use super::tables::{direct, with_action, with_priority};
use super::words::{at_least, call, keys, kind_of, number, shown};
use super::{Call, Done, Failure, mistake};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::p4::config::v1::Table;
use p4rack_p4rt::p4::v1::update::Type;
use p4rack_p4rt::p4::v1::{TableEntry, table_action};
use p4rack_p4rt::schema::{id_of, name_of};

/// Splits `KEY… => REST…`.
fn split<'w, 'l>(words: &'w [&'l str]) -> Done<(&'w [&'l str], &'w [&'l str])> {
    match words.iter().position(|word| *word == "=>") {
        Some(at) => Ok((&words[..at], &words[at + 1..])),
        None => mistake("expected `=>` between keys and what follows"),
    }
}

impl Call<'_> {
    pub(super) async fn add(&mut self, args: &[&str]) -> Done {
        let ([table_name, action_name], rest) = at_least::<2>(args)?;
        let table = self.table(table_name)?;
        let action = self.action(&table, action_name)?;
        let (rest, priority) = with_priority(&table, rest)?;
        let (key_words, params) = split(rest)?;
        let r#match = keys(&table, key_words)?;
        let called = call(&action, params)?;
        self.say(format!("Adding entry to {} match table {table_name}", kind_of(&table)));
        let shown: Vec<String> = table.match_fields.iter().map(|field| shown(field, &r#match)).collect();
        self.say(format!("{:20} {}", "match key:", shown.join("\t")));
        self.say_call(&action, &called);
        direct(&table, "table_indirect_add")?;
        if table.match_fields.is_empty() {
            let why = format!("{table_name} has only a default entry; take table_set_default");
            return Err(Of::Entry.refusal("NO_TABLE_KEY", why));
        }
        let table_id = id_of(table.preamble.as_ref());
        let action = with_action(table_action::Type::Action(called));
        self.insert(&table, TableEntry { table_id, r#match, action, priority, ..Default::default() }).await
    }

    async fn insert(&mut self, table: &Table, entry: TableEntry) -> Done {
        let id = entry.table_id;
        if !self.runtime.entries.contains_key(&id) {
            // A controller's entries keep the numbers below.
            self.refresh(table).await?;
        }
        self.write(Type::Insert, EntityKind::TableEntry(entry.clone())).await.map_err(refused(Of::Entry))?;
        let handle = self.runtime.entries.entry(id).or_default().add(&entry);
        self.say(format!("Entry has been added with handle {handle}"));
        Ok(())
    }

    pub(super) async fn add_indirect(&mut self, args: &[&str], to_group: bool) -> Done {
        let ([table_name], rest) = at_least::<1>(args)?;
        self.profile_of(args)?;
        let table = self.table(table_name)?;
        let profile = self.schema.profile_by_id(table.implementation_id).cloned();
        let profile = profile.map_err(|error| Failure(format!("Error: {error}")))?;
        if to_group && !profile.with_selector {
            return mistake(
                "Cannot run this command on non-indirect table, or on indirect table with no selector",
            );
        }
        let (rest, priority) = with_priority(&table, rest)?;
        let (key_words, handle) = match rest.iter().position(|word| *word == "=>") {
            Some(at) if at + 2 == rest.len() => (&rest[..at], rest[at + 1]),
            _ => {
                return mistake(
                    "Invalid arguments, could not find handle: it follows the keys as `=> HANDLE`",
                );
            }
        };
        let id = id_of_handle(number(handle, "handle")?)?;
        let r#match = keys(&table, key_words)?;
        self.say(format!("Adding entry to indirect match table {}", name_of(table.preamble.as_ref())));
        let kind = match to_group {
            true => {
                if self.group(&profile, handle).await?.members.is_empty() {
                    let why = format!("group {handle} has no members; add one first");
                    return Err(Of::Group.refusal("EMPTY_GRP", why));
                }
                table_action::Type::ActionProfileGroupId(id)
            }
            false => {
                self.member(&profile, handle).await?;
                table_action::Type::ActionProfileMemberId(id)
            }
        };
        let (table_id, action) = (id_of(table.preamble.as_ref()), with_action(kind));
        self.insert(&table, TableEntry { table_id, r#match, action, priority, ..Default::default() }).await
    }
}
