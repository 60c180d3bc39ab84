//! Entries from files: lines, requests, and runtime files of the tutorials.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_ctrl::entries::read;
use p4rack_ctrl::items::Item;
use p4rack_p4rt::p4::v1::{Entity, Update, WriteRequest, update};
use p4rack_p4rt::schema::Schema;
use p4rack_p4rt::text;

fn schema() -> Schema {
    let info = r#"
        tables { preamble { id: 33 name: "I.routes" alias: "routes" } match_fields { id: 1 name: "dst" bitwidth: 32 match_type: LPM }
            action_refs { id: 17 } size: 64 }
        tables { preamble { id: 34 name: "I.acl" alias: "acl" } match_fields { id: 1 name: "kind" bitwidth: 16 match_type: TERNARY }
            action_refs { id: 17 } size: 64 }
        actions { preamble { id: 17 name: "I.send" alias: "send" } params { id: 1 name: "port" bitwidth: 9 } }
    "#;
    Schema::new(text::parse(info).unwrap()).unwrap()
}

const LINES: &str = "# s1\nroutes dst=10.0.1.0/24 --action send port=1 # to h1\n\n\
    acl kind=0x800&0xff00 --priority 5 --action send port=2\nroutes --default --action send port=3\n\
    --multicast 1 1 2:7\n--clone 5 4\n";

#[test]
fn lines_become_entities() {
    let schema = schema();
    let entities = read(LINES, &schema).unwrap();
    let said: Vec<String> =
        entities.iter().map(|entity| Item::of(&schema, entity).unwrap().to_string()).collect();
    assert_eq!(said.len(), 5);
    assert!(said[0].contains("10.0.1.0/24") && said[1].contains('5') && said[3].contains("2:7"), "{said:?}");
    assert_eq!(read("# none\n", &schema).unwrap(), []);
}

#[test]
fn a_request_and_a_runtime_json_give_the_same() {
    let schema = schema();
    let json = r#"{"table_entries": [{"table": "I.routes", "match": {"dst": ["10.0.1.0", 24]},
        "action_name": "I.send", "action_params": {"port": 1}}]}"#;
    let of_json = read(json, &schema).unwrap();
    assert_eq!(of_json, read("routes dst=10.0.1.0/24 --action send port=1", &schema).unwrap());
    let request = |kind: update::Type| {
        let update = |entity: &Entity| Update { r#type: kind.into(), entity: Some(entity.clone()) };
        text::print(&WriteRequest { updates: of_json.iter().map(update).collect(), ..Default::default() })
    };
    for kind in [update::Type::Insert, update::Type::Modify] {
        assert_eq!(of_json, read(&request(kind), &schema).unwrap());
    }
    for kind in [update::Type::Delete, update::Type::Unspecified] {
        let said = read(&request(kind), &schema).unwrap_err().to_string();
        assert!(said.contains("updates[0].type: is ") && said.contains(kind.as_str_name()), "{said}");
    }
}

#[test]
fn mistakes_are_named_by_line_table_and_field() {
    let of = |text: &str| read(text, &schema()).unwrap_err().to_string();
    let said = of("\nroutes dts=10.0.1.0/24 --action send port=1");
    assert!(
        said.contains("line 2") && said.contains("routes") && said.contains("did you mean `dst`"),
        "{said}"
    );
    let said = of("routs dst=1/24 --action send port=1");
    assert!(said.contains("routs"), "{said}");
    let said = of("routes dst=10.0.1.0/24 --action send port=700");
    assert!(said.contains("line 1") && said.contains("port"), "{said}");
    let said = of("routes dst=10.0.1.0/24 send port=1");
    assert!(said.contains("`send` is not KEY=VALUE"), "{said}");
    assert!(of("routes --prio 1").contains("--prio is unknown"));
    assert!(of("--multicast x 1").contains("--multicast takes a number"));
    assert!(of("--action send --action send").contains("twice"));
    for start in ["updates {", "updates{", "  updates : {", "device_id: 1 updates {"] {
        let said = of(&format!("{start} type: INSERT entity {{ table_entry {{ table_id: 99 }} }} }}"));
        assert!(said.contains("updates[0]"), "{start}: {said}");
    }
    // Names of tables.
    for line in ["updates dst=1/24 --action send port=1", "device_ids --default --action send port=1"] {
        let said = of(line);
        assert!(said.contains("line 1"), "{line}: {said}");
    }
}

/// What each line alone does not show, and what only a switch would refuse.
#[test]
fn what_a_switch_would_refuse_is_named_before_it_is_asked() {
    let of = |text: &str| read(text, &schema()).unwrap_err().to_string();
    let twice = "routes dst=10.0.1.0/24 --action send port=1\nacl kind=1&1 --priority 5 --action send port=1\n\
        routes dst=10.0.1.0/24 --action send port=2\nroutes --default --action send port=1";
    assert_eq!(of(twice), "line 3: line 1 has the same key: leave one of them out");
    let said =
        of("routes dst=10.0.1.0/24 --priority 5 --action send port=1\nacl kind=1&1 --action send port=1");
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("line 1: table I.routes has no ternary"), "{said}");
    assert!(lines[1].starts_with("line 2: entries of table I.acl may overlap"), "{said}");
    assert!(of("--multicast 0 1").starts_with("line 1: multicast group 0"));
    assert!(of("--clone 0 1").starts_with("line 1: clone session 0"));
    let entry = r#"{"table": "I.routes", "match": {"dst": ["10.0.1.0", 24]}, "action_name": "I.send", "action_params": {"port": 1}}"#;
    let said = of(&format!("{{\"table_entries\": [{entry}, {entry}]}}"));
    assert_eq!(said, "table_entries[1]: table_entries[0] has the same key: leave one of them out");
    assert_ne!(read(&twice.replacen("10.0.1.0", "10.0.2.0", 1), &schema()).unwrap(), []);
}
