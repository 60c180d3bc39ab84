//! Files with entries of a program: a text-format WriteRequest, a `sN-runtime.json` of the P4 tutorials, or one line for each
//! entry, in the words of `p4rack table insert` and `p4rack group insert`:
//!
//! ```text
//! # comment
//! routes dst=10.0.1.0/24 --action to next_hop=02:00:00:00:00:01 port=1
//! acl kind=0x800&0xff00 --priority 5 --action drop
//! routes --default --action drop
//! --multicast 1 1 2 3:7
//! --clone 5 4
//! ```

use crate::error::CtrlError;
use crate::items::{ActionItem, CloneItem, Item, MulticastItem, ReplicaItem, TableItem};
use crate::reconcile::key_of;
use crate::runtime_json;
use p4rack_p4rt::p4::config::v1::MatchField;
use p4rack_p4rt::p4::config::v1::match_field::MatchType;
use p4rack_p4rt::p4::v1::entity::Entity as Kind;
use p4rack_p4rt::p4::v1::packet_replication_engine_entry::Type as Replication;
use p4rack_p4rt::p4::v1::{Entity, TableEntry, WriteRequest, update};
use p4rack_p4rt::schema::{Schema, match_type};
use p4rack_p4rt::text;
use prost::Message as _;
use std::collections::{BTreeMap, HashMap};

/// The entities of a file, in its order. Errors name the line or the entry, the table and the field.
pub fn read(text: &str, schema: &Schema) -> Result<Vec<Entity>, CtrlError> {
    // A table may be called `updates`: a field's value follows.
    let is_request = |line: &str| {
        let rest = |field| line.trim_start().strip_prefix(field).map(str::trim_start);
        ["updates", "device_id", "election_id"]
            .into_iter()
            .filter_map(rest)
            .any(|rest| rest.starts_with(['{', ':']))
    };
    if text.trim_start().starts_with('{') {
        let (mut entities, mut seen) = (Vec::new(), Seen::default());
        for (place, update) in runtime_json::placed(text, schema)? {
            let Some(entity) = update.entity else { continue };
            seen.add(schema, &entity, &place).map_err(|error| input(format!("{place}: {error}")))?;
            entities.push(entity);
        }
        return Ok(entities);
    }
    match text.lines().any(is_request) {
        true => of_request(text, schema),
        false => of_lines(text, schema),
    }
}

fn of_request(text: &str, schema: &Schema) -> Result<Vec<Entity>, CtrlError> {
    let request: WriteRequest = text::parse(text).map_err(|error| CtrlError::Input(error.to_string()))?;
    let (mut entities, mut seen) = (Vec::new(), Seen::default());
    for (n, update) in request.updates.into_iter().enumerate() {
        let at = |error: CtrlError| CtrlError::Input(format!("updates[{n}]: {error}"));
        // A switch that has just got its program holds nothing to delete.
        if !matches!(update.r#type(), update::Type::Insert | update::Type::Modify) {
            let found = update.r#type().as_str_name();
            return Err(CtrlError::Input(format!(
                "updates[{n}].type: is {found}, and a file says what a switch should hold: write INSERT or MODIFY"
            )));
        }
        let entity = update.entity.ok_or_else(|| at(CtrlError::Input("has no entity".into())))?;
        // A name for each id, and a value for each name: what fits the program.
        Item::of(schema, &entity).and_then(|item| item.entity(schema)).map_err(at)?;
        seen.add(schema, &entity, &format!("updates[{n}]")).map_err(|error| at(input(error)))?;
        entities.push(entity);
    }
    Ok(entities)
}

/// Errors name all lines that have one.
fn of_lines(text: &str, schema: &Schema) -> Result<Vec<Entity>, CtrlError> {
    let (mut entities, mut errors, mut seen) = (Vec::new(), Vec::new(), Seen::default());
    for (n, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        if words.is_empty() {
            continue;
        }
        let place = format!("line {}", n + 1);
        let entity = item(&words).and_then(|item| item.entity(schema)).and_then(|entity| {
            seen.add(schema, &entity, &place).map_err(input)?;
            Ok(entity)
        });
        match entity {
            Ok(entity) => entities.push(entity),
            Err(error) => errors.push(format!("{place}: {error}")),
        }
    }
    if errors.is_empty() { Ok(entities) } else { Err(input(errors.join("\n"))) }
}

/// The entities of a file so far.
#[derive(Default)]
struct Seen {
    /// Where each stands, by its key.
    places: HashMap<Vec<u8>, String>,
    /// Number of entries, by table.
    entries: HashMap<u32, i64>,
}

impl Seen {
    /// Checks what a single entity does not show, or what only a switch would refuse; continues a sentence about it.
    fn add(&mut self, schema: &Schema, entity: &Entity, place: &str) -> Result<(), String> {
        match &entity.entity {
            Some(Kind::TableEntry(entry)) => {
                priority(schema, entry)?;
                self.room(schema, entry)?;
            }
            Some(Kind::PacketReplicationEngineEntry(engine)) => match &engine.r#type {
                Some(Replication::MulticastGroupEntry(group)) if group.multicast_group_id == 0 => {
                    return Err("multicast group 0 is no group: number it from 1 on".into());
                }
                Some(Replication::CloneSessionEntry(session)) if session.session_id == 0 => {
                    return Err("clone session 0 is no session: number it from 1 on".into());
                }
                _ => {}
            },
            _ => {}
        }
        match self.places.insert(key_of(entity).encode_to_vec(), place.to_owned()) {
            Some(first) => Err(format!("{first} has the same key: leave one of them out")),
            None => Ok(()),
        }
    }

    /// Whether its table has room for an entry besides those before it.
    fn room(&mut self, schema: &Schema, entry: &TableEntry) -> Result<(), String> {
        let Ok(table) = schema.table_by_id(entry.table_id) else { return Ok(()) };
        if entry.is_default_action {
            return Ok(());
        }
        let entries = self.entries.entry(entry.table_id).or_default();
        *entries += 1;
        // The first that is too many is named.
        if *entries != table.size.saturating_add(1) {
            return Ok(());
        }
        let name = table.preamble.as_ref().map_or("", |preamble| preamble.name.as_str());
        Err(format!(
            "table {name} has room for {} entries: leave some out, or give it a larger size",
            table.size
        ))
    }
}

/// Whether an entry has a priority where its table's keys need one, and only there (P4Runtime 1.5, section 9.1).
fn priority(schema: &Schema, entry: &TableEntry) -> Result<(), String> {
    let Ok(table) = schema.table_by_id(entry.table_id) else { return Ok(()) };
    if entry.is_default_action {
        return Ok(());
    }
    let overlaps = |field: &MatchField| {
        matches!(match_type(field), MatchType::Ternary | MatchType::Range | MatchType::Optional)
    };
    let name = table.preamble.as_ref().map_or("", |preamble| preamble.name.as_str());
    match (table.match_fields.iter().any(overlaps), entry.priority) {
        (true, ..1) => Err(format!(
            "entries of table {name} may overlap: give each a priority from 1 on; the highest that matches is taken"
        )),
        (false, ..=-1 | 1..) => Err(format!(
            "table {name} has no ternary, range or optional key, so its entries have no priority: leave it out"
        )),
        _ => Ok(()),
    }
}

fn input(what: impl Into<String>) -> CtrlError {
    CtrlError::Input(what.into())
}

/// A line's item. An option takes the words up to the next one.
fn item(words: &[String]) -> Result<Item, CtrlError> {
    let mut options: BTreeMap<&str, &[String]> = BTreeMap::new();
    let (first, mut rest) = split(words);
    while let Some((option, more)) = rest.split_first() {
        let (values, others) = split(more);
        if options.insert(option, values).is_some() {
            return Err(input(format!("{option} is given twice")));
        }
        rest = others;
    }
    let mut take = |option: &str| options.remove(option);
    let parsed = match (take("--multicast"), take("--clone")) {
        (Some(values), None) => {
            let (group, replicas) = copies("--multicast", values)?;
            Item::Multicast(MulticastItem { group, replicas })
        }
        (None, Some(values)) => {
            let (session, replicas) = copies("--clone", values)?;
            Item::Clone(CloneItem { session, replicas, class_of_service: 0, packet_length_bytes: 0 })
        }
        (Some(_), Some(_)) => return Err(input("a line has one of --multicast and --clone")),
        (None, None) => {
            let (table, keys) =
                first.split_first().ok_or_else(|| input("a line begins with a table's name"))?;
            let pair = |word: &String| {
                let (key, value) = word.split_once('=').ok_or_else(|| {
                    input(format!("table {table}: `{word}` is not KEY=VALUE; an action follows --action"))
                })?;
                Ok((key.to_owned(), value.to_owned()))
            };
            let keys = keys.iter().map(pair).collect::<Result<_, CtrlError>>()?;
            let priority = take("--priority").map_or(Ok(0), |values| number("--priority", values))?;
            let is_default = match take("--default") {
                Some([]) => true,
                Some(_) => return Err(input("--default takes no value")),
                None => false,
            };
            let action = take("--action").map(ActionItem::call).transpose()?;
            let table = table.clone();
            Item::TableEntry(TableItem { table, keys, priority, action, is_default, ..TableItem::default() })
        }
    };
    match options.keys().next() {
        Some(option) => {
            let known = "--action, --priority, --default, --multicast, --clone";
            Err(input(format!("{option} is unknown or can't be here; there are {known}")))
        }
        None => Ok(parsed),
    }
}

/// The words before the next option, and the rest.
fn split(words: &[String]) -> (&[String], &[String]) {
    words.split_at(words.iter().position(|word| word.starts_with("--")).unwrap_or(words.len()))
}

fn number<T: std::str::FromStr>(option: &str, values: &[String]) -> Result<T, CtrlError> {
    let number = match values {
        [one] => one.parse().ok(),
        _ => None,
    };
    number.ok_or_else(|| input(format!("{option} takes a number, found `{}`", values.join(" "))))
}

fn copies(option: &str, values: &[String]) -> Result<(u32, Vec<ReplicaItem>), CtrlError> {
    let (id, members) = values.split_at(values.len().min(1));
    let replicas = members.iter().map(|member| member.parse().map_err(input)).collect::<Result<_, _>>()?;
    Ok((number(option, id)?, replicas))
}
