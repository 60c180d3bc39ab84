//! Differences between two P4Infos, as far as a controller's reads and writes depend on them.
//!
//! Order never matters. Package names, documentation, annotations, type declarations and initial values are
//! for readers of the P4Info and are not compared.

use crate::p4::config::v1::P4Info;
use crate::text::pool;
use prost_reflect::{DynamicMessage, Kind, ReflectMessage, Value};
use std::collections::BTreeMap;

const INFORMATIVE: [&str; 11] = [
    "pkg_info",
    "type_info",
    "alias",
    "doc",
    "annotations",
    "annotation_locations",
    "structured_annotations",
    "initial_default_action",
    "has_initial_entries",
    "other_properties",
    "index_type_name",
];

/// One sentence per difference; empty if a controller can use one in place of the other.
pub fn differences(given: &P4Info, program: &P4Info) -> Vec<String> {
    let mut found = Vec::new();
    compare("", &dynamic(given), &dynamic(program), &mut found);
    found
}

fn dynamic(info: &P4Info) -> DynamicMessage {
    let descriptor =
        pool().get_message_by_name("p4.config.v1.P4Info").expect("a message of this crate's files");
    let mut message = DynamicMessage::new(descriptor);
    message.transcode_from(info).expect("same message, same encoding");
    message
}

fn compare(path: &str, given: &DynamicMessage, program: &DynamicMessage, found: &mut Vec<String>) {
    for field in given.descriptor().fields() {
        if INFORMATIVE.contains(&field.name()) {
            continue;
        }
        let path = match (path, field.name()) {
            ("", name) => name.to_owned(),
            (path, "preamble") => path.to_owned(),
            (path, name) => format!("{path}.{name}"),
        };
        match (given.get_field(&field).as_ref(), program.get_field(&field).as_ref()) {
            (Value::List(given), Value::List(program)) if matches!(field.kind(), Kind::Message(_)) => {
                compare_lists(&path, given, program, found);
            }
            (Value::List(given), Value::List(program)) => {
                let (given, program) = (sorted(given, &field.kind()), sorted(program, &field.kind()));
                if given != program {
                    found.push(format!("{path}: {given:?} given, {program:?} in the program"));
                }
            }
            (Value::Message(given), Value::Message(program)) => compare(&path, given, program, found),
            (given, program) if given != program => {
                let kind = field.kind();
                let (given, program) = (show(given, &kind), show(program, &kind));
                found.push(format!("{path}: {given} given, {program} in the program"));
            }
            _ => {}
        }
    }
}

fn compare_lists(path: &str, given: &[Value], program: &[Value], found: &mut Vec<String>) {
    let (mut given, program) = (by_id(given), by_id(program));
    for (id, ours) in program {
        let path = format!("{path}[{}]", label(id, ours));
        match given.remove(&id) {
            Some(theirs) => compare(&path, theirs, ours, found),
            None => found.push(format!("{path}: missing, but the program has it")),
        }
    }
    for (id, theirs) in given {
        found.push(format!("{path}[{}]: given, but the program has no such", label(id, theirs)));
    }
}

fn by_id(list: &[Value]) -> BTreeMap<u32, &DynamicMessage> {
    let messages = list.iter().filter_map(Value::as_message).enumerate();
    messages.map(|(position, message)| (id(message).unwrap_or(position as u32), message)).collect()
}

fn id(message: &DynamicMessage) -> Option<u32> {
    if let Some(preamble) = message.get_field_by_name("preamble") {
        return preamble.as_message()?.get_field_by_name("id")?.as_u32();
    }
    message.get_field_by_name("id")?.as_u32()
}

fn label(id: u32, message: &DynamicMessage) -> String {
    let preamble = message.get_field_by_name("preamble");
    let owner = preamble.as_ref().and_then(|preamble| preamble.as_message()).unwrap_or(message);
    let name = owner.get_field_by_name("name");
    name.and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_else(|| id.to_string())
}

fn sorted(list: &[Value], kind: &Kind) -> Vec<String> {
    let mut list: Vec<String> = list.iter().map(|value| show(value, kind)).collect();
    list.sort();
    list
}

fn show(value: &Value, kind: &Kind) -> String {
    match (value, kind) {
        (Value::EnumNumber(number), Kind::Enum(names)) => {
            names.get_value(*number).map_or_else(|| number.to_string(), |value| value.name().to_owned())
        }
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text;

    const PROGRAM: &str = r#"
        pkg_info { arch: "v1model" }
        tables {
          preamble { id: 33554433 name: "ingress.a" alias: "a" }
          match_fields { id: 1 name: "x" bitwidth: 9 match_type: EXACT }
          match_fields { id: 2 name: "y" bitwidth: 8 match_type: LPM }
          action_refs { id: 16777217 }
          direct_resource_ids: 318767105 direct_resource_ids: 352321537
          size: 64
        }
        actions { preamble { id: 16777217 name: "ingress.f" } }
        actions { preamble { id: 16777218 name: "ingress.g" } }"#;

    fn found(given: &str) -> Vec<String> {
        differences(&text::parse(given).unwrap(), &text::parse(PROGRAM).unwrap())
    }

    #[test]
    fn order_and_prose_do_not_matter() {
        let given = r#"
            actions { preamble { id: 16777218 name: "ingress.g" alias: "gee" annotations: "@x" } }
            actions { preamble { id: 16777217 name: "ingress.f" } }
            tables {
              preamble { id: 33554433 name: "ingress.a" doc { brief: "hello" } }
              size: 64
              direct_resource_ids: 352321537 direct_resource_ids: 318767105
              action_refs { id: 16777217 }
              match_fields { id: 2 name: "y" bitwidth: 8 match_type: LPM }
              match_fields { id: 1 name: "x" bitwidth: 9 match_type: EXACT }
            }"#;
        assert_eq!(found(given), Vec::<String>::new());
    }

    #[test]
    fn each_difference_is_named() {
        let given = PROGRAM
            .replace("bitwidth: 9", "bitwidth: 16")
            .replace("LPM", "TERNARY")
            .replace("size: 64", "size: 65")
            .replace(r#"id: 16777218 name: "ingress.g""#, r#"id: 16777219 name: "ingress.h""#)
            .replace("direct_resource_ids: 318767105", "");
        assert_eq!(
            found(&given),
            [
                "tables[ingress.a].match_fields[x].bitwidth: 16 given, 9 in the program",
                "tables[ingress.a].match_fields[y].match_type: TERNARY given, LPM in the program",
                "tables[ingress.a].direct_resource_ids: [\"352321537\"] given, [\"318767105\", \"352321537\"] in the program",
                "tables[ingress.a].size: 65 given, 64 in the program",
                "actions[ingress.g]: missing, but the program has it",
                "actions[ingress.h]: given, but the program has no such",
            ]
        );
    }
}
