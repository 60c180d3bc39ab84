//! A P4Info that comes with a file must be that of its program.

use p4rack_p4::{Compiled, Options};
use p4rack_p4rt::p4::config::v1::action::Param;
use p4rack_p4rt::p4::config::v1::controller_packet_metadata::Metadata;
use p4rack_p4rt::p4::config::v1::{Action, ControllerPacketMetadata, P4Info, Preamble};
use std::path::Path;

fn compiled(name: &str) -> Compiled {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/stf").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    p4rack_p4::compile(&text, name, &Options::default()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_p4info_of_another_program_is_refused() {
    let compiled = compiled("register.p4");
    let json = p4rack_bmv2::write(&compiled).unwrap_or_else(|error| panic!("{error}")).to_string();
    let info = &compiled.p4info;
    let read = |info: &P4Info| p4rack_bmv2::read(&json, "t.json", Some(info));
    assert_eq!(read(info).unwrap().p4info, *info);
    type Change = fn(&mut P4Info);
    let changes: [(Change, &str); 8] = [
        (
            |info| info.registers[0].preamble.as_mut().unwrap().name = "I.none".to_owned(),
            "registers[I.none]: given",
        ),
        (|info| info.registers[0].size += 1, "size"),
        (
            |info| {
                let mut again = info.registers[0].clone();
                again.preamble.as_mut().unwrap().name = "I.again".to_owned();
                info.registers.push(again);
            },
            "twice in `registers`",
        ),
        (|info| info.registers[0].preamble.as_mut().unwrap().id &= 0xff_ffff, "registers["),
        (|info| info.actions.push(action("I.none")), "actions[I.none]: given"),
        (|info| info.controller_packet_metadata.push(header(i32::MAX)), "has 2147483647 bits"),
        (|info| info.controller_packet_metadata.push(header(-8)), "has -8 bits"),
        (|info| info.tables.push(Default::default()), "tables["),
    ];
    for (change, said) in changes {
        let mut other = info.clone();
        change(&mut other);
        let error = read(&other).unwrap_err();
        assert!(error.starts_with("t.json: the P4Info") && error.contains(said), "{said}: {error}");
    }
}

/// p4c writes the number of constant entries into its file, and the table's own size into its P4Info.
#[test]
fn the_size_of_a_table_with_constant_entries_is_the_p4infos() {
    let compiled = compiled("table_const_entries.p4");
    let json = p4rack_bmv2::write(&compiled).unwrap_or_else(|error| panic!("{error}")).to_string();
    let mut info = compiled.p4info.clone();
    info.tables[0].size += 1_000;
    let again = p4rack_bmv2::read(&json, "t.json", Some(&info)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.p4info, info);
}

/// The header of packets to the controller, with one field of this width.
fn header(bitwidth: i32) -> ControllerPacketMetadata {
    let preamble = Preamble { id: 0x0400_0001, name: "packet_in".to_owned(), ..Preamble::default() };
    let field = Metadata { id: 1, name: "port".to_owned(), bitwidth, ..Metadata::default() };
    ControllerPacketMetadata { preamble: Some(preamble), metadata: vec![field] }
}

fn action(name: &str) -> Action {
    let preamble = Preamble { id: 0x0100_0055, name: name.to_owned(), ..Preamble::default() };
    Action { preamble: Some(preamble), params: vec![Param { id: 1, bitwidth: 9, ..Param::default() }] }
}

/// As p4c writes them: BMv2 has no other word for the keys.
#[test]
fn optional_keys_are_ternary_in_the_file_and_optional_with_the_p4info() {
    let compiled = compiled("table_optional.p4");
    let json = p4rack_bmv2::write(&compiled).unwrap_or_else(|error| panic!("{error}")).to_string();
    assert!(json.contains("\"ternary\"") && !json.contains("\"optional\""), "{json}");
    let again = p4rack_bmv2::read(&json, "t.json", Some(&compiled.p4info)).unwrap();
    assert_eq!(again.p4info, compiled.p4info);
    let without = p4rack_bmv2::read(&json, "t.json", None).unwrap();
    assert_ne!(without.p4info, compiled.p4info, "the file alone does not say so");
}

/// BMv2 ends when it loads an assertion of a truth value.
#[test]
fn assertions_are_of_numbers() {
    let compiled = compiled("assert_log.p4");
    let json = p4rack_bmv2::write(&compiled).unwrap_or_else(|error| panic!("{error}"));
    let found = asserted(&json);
    assert!(!found.is_empty());
    for cond in found {
        let is_number = cond["type"] == "field" || cond.pointer("/value/op").is_some_and(|op| op == "b2d");
        assert!(is_number, "{cond}");
    }
}

/// What each `assert` of a file is given.
fn asserted(json: &serde_json::Value) -> Vec<&serde_json::Value> {
    match json {
        serde_json::Value::Array(items) => items.iter().flat_map(asserted).collect(),
        serde_json::Value::Object(fields) if fields.get("op").is_some_and(|op| op == "assert") => {
            json.pointer("/parameters/0/value").into_iter().collect()
        }
        serde_json::Value::Object(fields) => fields.values().flat_map(asserted).collect(),
        _ => Vec::new(),
    }
}
