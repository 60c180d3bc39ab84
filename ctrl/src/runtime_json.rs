//! Entries of the P4 tutorials' `sN-runtime.json`, as updates for the program they belong to.
//!
//! ```text
//! {"table_entries": [{"table": "MyIngress.ipv4_lpm", "match": {"hdr.ipv4.dstAddr": ["10.0.1.1", 32]},
//!                     "action_name": "MyIngress.ipv4_forward", "action_params": {"port": 1}}],
//!  "multicast_group_entries": [{"multicast_group_id": 1, "replicas": [{"egress_port": 1, "instance": 1}]}],
//!  "clone_session_entries": [{"clone_session_id": 5, "replicas": […], "packet_length_bytes": 64}]}
//! ```

use crate::error::CtrlError;
use crate::items::{ActionItem, CloneItem, Item, MulticastItem, PlaceItem, ReplicaItem, TableItem};
use p4rack_p4rt::p4::config::v1::match_field::MatchType;
use p4rack_p4rt::p4::v1::{Update, update};
use p4rack_p4rt::schema::{self, Schema};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Keys of which every file has at least one.
const KEYS: [&str; 6] =
    ["table_entries", "multicast_group_entries", "clone_session_entries", "target", "p4info", "bmv2_json"];

/// The only target that the tutorials' files name.
const TARGET: &str = "bmv2";

/// The updates that a file describes, in order; none for a program that needs no entries. The error names the
/// entry and its problem.
pub fn updates(text: &str, schema: &Schema) -> Result<Vec<Update>, CtrlError> {
    Ok(placed(text, schema)?.into_iter().map(|(_, update)| update).collect())
}

/// The same updates, each with its place: `table_entries[3]`.
pub(crate) fn placed(text: &str, schema: &Schema) -> Result<Vec<(String, Update)>, CtrlError> {
    let file: Value = serde_json::from_str(text).map_err(|error| input(format!("not JSON: {error}")))?;
    if !KEYS.iter().any(|key| file.get(key).is_some()) {
        return Err(input(format!("this is not an sN-runtime.json: expected one of {}", KEYS.join(", "))));
    }
    match file.get("target") {
        None | Some(Value::Null) => {}
        Some(Value::String(target)) if target == TARGET => {}
        Some(other) => {
            let what =
                format!("target: is {other}, and such entries are read for \"{TARGET}\" alone; leave it out");
            return Err(input(what));
        }
    }
    let mut updates = Vec::new();
    for (list, read) in [
        ("table_entries", table_entry as fn(&Value, &Schema) -> Result<Item, CtrlError>),
        ("multicast_group_entries", multicast),
        ("clone_session_entries", clone_session),
    ] {
        let Some(entries) = file.get(list).filter(|entries| !entries.is_null()) else { continue };
        let entries = entries.as_array().ok_or_else(|| input(format!("{list}: expected a list")))?;
        for (index, entry) in entries.iter().enumerate() {
            let place = format!("{list}[{index}]");
            let at = |error: CtrlError| input(format!("{place}: {error}"));
            let item = read(entry, schema).map_err(at)?;
            // A default entry always exists.
            let is_default = matches!(&item, Item::TableEntry(entry) if entry.is_default);
            let kind = if is_default { update::Type::Modify } else { update::Type::Insert };
            let entity = Some(item.entity(schema).map_err(at)?);
            updates.push((place, Update { r#type: kind.into(), entity }));
        }
    }
    Ok(updates)
}

fn input(what: String) -> CtrlError {
    CtrlError::Input(what)
}

fn table_entry(entry: &Value, schema: &Schema) -> Result<Item, CtrlError> {
    let name =
        entry.get("table").and_then(Value::as_str).ok_or_else(|| input("`table` is missing".into()))?;
    let table = schema.table(name)?;
    let mut keys = BTreeMap::new();
    for (key, value) in fields(entry, "match")? {
        let kind = schema::match_type(schema::key(table, key)?);
        keys.insert(key.clone(), self::key(value, kind).map_err(|why| input(format!("match {key}: {why}")))?);
    }
    let action = entry.get("action_name").and_then(Value::as_str);
    let action = action.ok_or_else(|| input("`action_name` is missing".into()))?.to_owned();
    let mut params = BTreeMap::new();
    for (param, value) in fields(entry, "action_params")? {
        params.insert(
            param.clone(),
            scalar(value).map_err(|why| input(format!("action_params {param}: {why}")))?,
        );
    }
    Ok(Item::TableEntry(TableItem {
        table: name.to_owned(),
        keys,
        priority: entry.get("priority").map_or(Ok(0), |value| number(value, "priority"))?,
        action: Some(ActionItem::Call { action, params }),
        is_default: entry.get("default_action").and_then(Value::as_bool).unwrap_or(false),
        ..TableItem::default()
    }))
}

/// An object of an entry; empty if absent.
fn fields<'a>(
    entry: &'a Value,
    name: &str,
) -> Result<impl Iterator<Item = (&'a String, &'a Value)>, CtrlError> {
    let found = match entry.get(name) {
        None | Some(Value::Null) => None,
        Some(Value::Object(fields)) => Some(fields),
        Some(other) => return Err(input(format!("{name}: expected an object, found {other}"))),
    };
    Ok(found.into_iter().flat_map(Map::iter))
}

/// A key in the syntax of the command line. The meaning of pairs depends on the field's match kind.
fn key(value: &Value, kind: MatchType) -> Result<String, String> {
    match (value, kind) {
        (Value::Null, _) => Ok("*".to_owned()),
        (Value::Array(pair), _) => {
            let (left, right) = match (pair.as_slice(), kind) {
                ([left, right], _) => (left, right),
                ([_], MatchType::Exact | MatchType::Optional) => return scalar(value),
                _ => return Err(format!("expected a pair, found {value}")),
            };
            let between = match kind {
                MatchType::Lpm => "/",
                MatchType::Ternary => "&",
                MatchType::Range => "..",
                _ => return Err(format!("is matched by one value, found {value}")),
            };
            Ok(format!("{}{between}{}", scalar(left)?, scalar(right)?))
        }
        _ => scalar(value),
    }
}

/// A value. A list of one element is that element, as for the tutorials' own controller.
fn scalar(value: &Value) -> Result<String, String> {
    let alone = value.as_array().filter(|list| list.len() == 1).map(|list| &list[0]);
    match alone.unwrap_or(value) {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) if number.is_u64() => Ok(number.to_string()),
        Value::Bool(flag) => Ok(flag.to_string()),
        _ => Err(format!("expected text or a number from 0, found {value}")),
    }
}

fn number<T: TryFrom<u64>>(value: &Value, name: &str) -> Result<T, CtrlError> {
    let number = value.as_u64().and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| input(format!("{name}: expected a number, found {value}")))
}

fn required<T: TryFrom<u64>>(entry: &Value, name: &str) -> Result<T, CtrlError> {
    number(entry.get(name).unwrap_or(&Value::Null), name)
}

fn replicas(entry: &Value) -> Result<Vec<ReplicaItem>, CtrlError> {
    let list = entry.get("replicas").and_then(Value::as_array);
    let list = list.ok_or_else(|| input("`replicas`: expected a list".into()))?;
    let replica = |replica: &Value| {
        let instance = replica.get("instance").map_or(Ok(0), |value| number(value, "instance"))?;
        let at = PlaceItem { port: required(replica, "egress_port")?, instance };
        Ok(ReplicaItem { at, backups: Vec::new() })
    };
    list.iter().map(replica).collect()
}

fn multicast(entry: &Value, _: &Schema) -> Result<Item, CtrlError> {
    let group = required(entry, "multicast_group_id")?;
    Ok(Item::Multicast(MulticastItem { group, replicas: replicas(entry)? }))
}

fn clone_session(entry: &Value, _: &Schema) -> Result<Item, CtrlError> {
    let length =
        entry.get("packet_length_bytes").map_or(Ok(0), |value| number(value, "packet_length_bytes"))?;
    Ok(Item::Clone(CloneItem {
        session: required(entry, "clone_session_id")?,
        replicas: replicas(entry)?,
        class_of_service: 0,
        packet_length_bytes: length,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_p4rt::text;

    fn schema() -> Schema {
        let info = r#"
            tables { preamble { id: 33 name: "I.routes" alias: "routes" } match_fields { id: 1 name: "dst" bitwidth: 32 match_type: LPM }
                match_fields { id: 2 name: "port" bitwidth: 9 match_type: EXACT } action_refs { id: 17 } size: 64 }
            tables { preamble { id: 34 name: "I.acl" alias: "acl" } match_fields { id: 1 name: "type" bitwidth: 16 match_type: TERNARY }
                match_fields { id: 2 name: "len" bitwidth: 16 match_type: RANGE } action_refs { id: 17 } size: 64 }
            actions { preamble { id: 17 name: "I.send" alias: "send" } params { id: 1 name: "mac" bitwidth: 48 } params { id: 2 name: "port" bitwidth: 9 } }
        "#;
        Schema::new(text::parse(info).unwrap()).unwrap()
    }

    const FILE: &str = r#"{"target": "bmv2", "table_entries": [
        {"table": "I.routes", "match": {"dst": ["10.0.1.0", 24], "port": 3},
         "action_name": "I.send", "action_params": {"mac": "08:00:00:00:01:11", "port": 1}},
        {"table": "I.acl", "match": {"type": ["0x0800", "0xff00"], "len": [1, 100]}, "priority": 5,
         "action_name": "I.send", "action_params": {"mac": 1, "port": 2}},
        {"table": "I.routes", "default_action": true, "action_name": "I.send", "action_params": {"mac": 0, "port": 0}}],
        "multicast_group_entries": [{"multicast_group_id": 7, "replicas": [{"egress_port": 2, "instance": 1}]}],
        "clone_session_entries": [{"clone_session_id": 5, "packet_length_bytes": 64, "replicas": [{"egress_port": 1}]}]}"#;

    #[test]
    fn every_kind_of_entry_becomes_an_update() {
        let schema = schema();
        let updates = updates(FILE, &schema).unwrap();
        let said: Vec<String> = updates
            .iter()
            .map(|update| {
                let item = Item::of(&schema, update.entity.as_ref().unwrap()).unwrap();
                format!("{} {item}", update.r#type().as_str_name())
            })
            .collect();
        assert_eq!(said.len(), 5);
        assert!(said[0].starts_with("INSERT ") && said[0].contains("10.0.1.0/24"), "{said:?}");
        assert!(said[1].contains("0x800&0xff00") || said[1].contains('&'), "{said:?}");
        assert!(said[2].starts_with("MODIFY "), "{said:?}");
        assert!(said[3].starts_with("INSERT ") && said[4].starts_with("INSERT "), "{said:?}");
    }

    #[test]
    fn a_list_of_one_is_a_value_and_a_file_may_have_no_entries() {
        let schema = schema();
        let plain = updates(FILE, &schema).unwrap();
        let listed =
            FILE.replacen("\"port\": 3", "\"port\": [3]", 1).replacen("\"port\": 1}", "\"port\": [1]}", 1);
        assert_ne!(listed, FILE);
        assert_eq!(updates(&listed, &schema).unwrap(), plain);
        for none in
            [r#"{"target": "bmv2", "table_entries": []}"#, r#"{"p4info": "x"}"#, r#"{"table_entries": null}"#]
        {
            assert_eq!(updates(none, &schema).unwrap(), [], "{none}");
        }
    }

    #[test]
    fn mistakes_are_named_by_entry_and_field() {
        let broken =
            |from: &str, to: &str| updates(&FILE.replacen(from, to, 1), &schema()).unwrap_err().to_string();
        assert!(broken("I.routes", "I.nothing").contains("table_entries[0]"));
        assert!(
            broken("\"bmv2\"", "\"tofino\"")
                .contains("target: is \"tofino\", and such entries are read for \"bmv2\"")
        );
        assert!(broken("\"port\": 3", "\"port\": [3, 4]").contains("match port: is matched by one value"));
        assert!(broken("[\"10.0.1.0\", 24]", "[1]").contains("match dst: expected a pair"));
        assert!(broken("\"action_name\"", "\"acton\"").contains("`action_name` is missing"));
        assert!(
            broken("\"port\": 1", "\"port\": -1").contains("action_params port: expected text or a number")
        );
        assert!(broken("\"port\": 1", "\"port\": 1000").contains("table_entries[0]"));
        assert!(broken("\"egress_port\": 2", "\"p\": 2").contains("multicast_group_entries[0]: egress_port"));
        assert!(broken("\"port\": 3", "\"port\": [[3]]").contains("match port: expected text or a number"));
        assert!(broken("\"port\": 3", "\"port\": []").contains("match port: expected a pair"));
        assert!(updates("{}", &schema()).unwrap_err().to_string().contains("not an sN-runtime.json"));
        assert!(updates("[", &schema()).unwrap_err().to_string().contains("not JSON"));
    }
}
