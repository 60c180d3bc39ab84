use super::*;
use p4rack_p4rt::text;

fn schema() -> Schema {
    let info = text::parse(
        r#"
        tables {
          preamble { id: 33554433 name: "ingress.acl" alias: "acl" }
          match_fields { id: 1 name: "meta.port" bitwidth: 9 match_type: EXACT }
          match_fields { id: 2 name: "hdr.ipv4.dst" bitwidth: 32 match_type: LPM }
          match_fields { id: 3 name: "hdr.ethernet.src" bitwidth: 48 match_type: TERNARY }
          action_refs { id: 16777217 } implementation_id: 285212673 direct_resource_ids: 352321537
        }
        actions {
          preamble { id: 16777217 name: "ingress.set" alias: "set" }
          params { id: 1 name: "port" bitwidth: 9 }
          params { id: 2 name: "mac" bitwidth: 48 annotations: "@format(MAC_ADDRESS)" }
        }
        action_profiles { preamble { id: 285212673 name: "ingress.ecmp" alias: "ecmp" } with_selector: true size: 64 }
        counters { preamble { id: 301989889 name: "ingress.drops" alias: "drops" } size: 8 }
        meters { preamble { id: 335544321 name: "ingress.police" alias: "police" } size: 8 spec { unit: BYTES } }
        direct_meters { preamble { id: 352321537 name: "ingress.pace" alias: "pace" } spec { unit: PACKETS }
          direct_table_id: 33554433 }
        registers { preamble { id: 369098753 name: "ingress.free" alias: "free" }
          type_spec { bitstring { bit { bitwidth: 48 } } } size: 8 }
        digests { preamble { id: 385875969 name: "learn" alias: "learn" } }
        value_sets { preamble { id: 50331649 name: "types" alias: "types" }
          match { id: 1 name: "type" bitwidth: 16 match_type: EXACT } size: 4 }"#,
    )
    .unwrap();
    Schema::new(info).unwrap()
}

fn item(json: &str) -> Item {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

#[test]
fn every_kind_goes_to_the_wire_and_comes_back_the_same() {
    let call = r#""action": "ingress.set", "params": {"port": "3", "mac": "02:00:00:00:00:01"}"#;
    for json in [
        format!(
            r#"{{"kind": "table-entry", "table": "ingress.acl", "priority": 7, "action": {{{call}}}, "keys":
              {{"meta.port": "5", "hdr.ipv4.dst": "10.0.0.0/8", "hdr.ethernet.src": "*"}}}}"#
        ),
        r#"{"kind": "table-entry", "table": "ingress.acl", "is_default": true, "action": {"group": 3}}"#.into(),
        format!(
            r#"{{"kind": "table-entry", "table": "ingress.acl", "is_default": true,
              "action": {{"set": [[2, 7, {{{call}}}], [1, null, {{{call}}}]]}}}}"#
        ),
        format!(
            r#"{{"kind": "table-entry", "table": "ingress.acl", "is_default": true,
              "action": {{"set": [[1, null, {{{call}}}]], "mode": "random", "size": "members"}}}}"#
        ),
        format!(r#"{{"kind": "member", "profile": "ingress.ecmp", "member": 4, {call}}}"#),
        r#"{"kind": "group", "profile": "ingress.ecmp", "group": 2, "max_size": 8, "members":
           [{"member": 4, "weight": 1}, {"member": 5, "weight": 2, "watch_port": 9}]}"#
            .into(),
        r#"{"kind": "counter", "counter": "ingress.drops", "index": 3, "counts": {"packets": 1, "bytes": 2}}"#.into(),
        r#"{"kind": "meter", "meter": "ingress.police", "index": 3, "rates":
           {"cir": 1, "cburst": 2, "pir": 3, "pburst": 4, "unit": "bytes"}}"#
            .into(),
        r#"{"kind": "meter", "meter": "ingress.acl", "index": null, "entry": {"table": "ingress.acl",
           "keys": {"meta.port": "5", "hdr.ipv4.dst": "*", "hdr.ethernet.src": "*"}}, "rates":
           {"cir": 1, "cburst": 2, "pir": 3, "pburst": 4, "unit": "packets"}}"#
            .into(),
        format!(
            r#"{{"kind": "table-entry", "table": "ingress.acl", "is_default": true, "action": {{{call}}},
              "meter": {{"cir": 1, "cburst": 2, "pir": 3, "pburst": 4, "unit": "packets"}}}}"#
        ),
        r#"{"kind": "register", "register": "ingress.free", "index": 1, "value": "281474976710655"}"#.into(),
        r#"{"kind": "multicast", "group": 1, "replicas": [{"port": 1, "instance": 1}]}"#.into(),
        r#"{"kind": "multicast", "group": 2, "replicas": [{"port": 1, "instance": 1, "backups":
           [{"port": 3, "instance": 5}, {"port": 2, "instance": 1}]}]}"#
            .into(),
        r#"{"kind": "clone", "session": 1, "replicas": [{"port": 1, "instance": 2}], "class_of_service": 3}"#.into(),
        r#"{"kind": "digest", "digest": "learn", "max_timeout_ns": 1, "max_list_size": 2, "ack_timeout_ns": 3}"#.into(),
        r#"{"kind": "value-set", "value_set": "types", "members": [["0x88b5"], ["0x0800"]]}"#.into(),
    ] {
        let item = item(&json);
        let entity = item.entity(&schema()).unwrap();
        assert_eq!(Item::of(&schema(), &entity).unwrap(), item, "{json}");
    }
}

#[test]
fn rates_are_in_the_unit_of_their_meter() {
    let rates = |meter: &str, unit: &str| {
        let rates = r#""cir": 1, "cburst": 2, "pir": 3, "pburst": 4"#;
        item(&format!(r#"{{"kind": "meter", {meter}, "rates": {{{rates}{unit}}}}}"#))
    };
    let array = r#""meter": "police", "index": 3"#;
    let direct = r#""meter": "acl", "index": null, "entry": {"table": "acl", "is_default": true}"#;
    for (meter, own, other) in [(array, "bytes", "packets"), (direct, "packets", "bytes")] {
        let found = Item::of(&schema(), &rates(meter, "").entity(&schema()).unwrap()).unwrap();
        assert!(found.to_string().ends_with(&format!("pburst=4 {own}")), "{found}");
        let unit = format!(r#", "unit": "{other}""#);
        let refused = rates(meter, &unit).entity(&schema()).unwrap_err().to_string();
        assert!(refused.contains(&format!("counts {own}, and the rates are in {other}")), "{refused}");
    }
}

#[test]
fn names_may_be_short_where_they_are_unique() {
    let entry = item(
        r#"{"kind": "table-entry", "table": "acl", "keys": {"port": "0x5", "dst": "10.1.1.1/8"}, "priority": 1,
           "action": {"action": "set", "params": {"port": "3", "mac": "2:0:0:0:0:1"}}}"#,
    );
    let found = Item::of(&schema(), &entry.entity(&schema()).unwrap()).unwrap();
    assert_eq!(
        found.to_string(),
        "table ingress.acl hdr.ethernet.src=* hdr.ipv4.dst=10.0.0.0/8 meta.port=5 priority 1 -> \
         ingress.set mac=02:00:00:00:00:01 port=3"
    );
}

#[test]
fn replicas_are_written_with_their_backups_behind() {
    let written = |text: &str| text.parse::<ReplicaItem>().map(|item| item.to_string());
    assert_eq!(written("2"), Ok("2:1".into()));
    assert_eq!(written("2:5/3/4:7"), Ok("2:5/3:1/4:7".into()));
    for wrong in ["", "2/", "/2", "2:5/x", "2:", "1-2"] {
        assert!(written(wrong).is_err_and(|why| why.contains("is not PORT or PORT:INSTANCE")), "{wrong}");
    }
    let replicas = ["2:5/3", "4"].map(|text| text.parse().unwrap()).to_vec();
    let group = Item::Multicast(MulticastItem { group: 7, replicas });
    assert_eq!(group.to_string(), "multicast group 7 ports 2:5/3:1 4");
}

#[test]
fn faults_name_place_and_remedy() {
    let fault = |json: &str| item(json).entity(&schema()).unwrap_err().to_string();
    let table = |rest: &str| fault(&format!(r#"{{"kind": "table-entry", "table": "acl", {rest}}}"#));
    assert_eq!(
        table(r#""keys": {"prot": "1"}"#),
        "table ingress.acl has no `prot`; did you mean `meta.port`?"
    );
    assert_eq!(
        table(r#""keys": {"port": "512"}"#),
        "table ingress.acl key meta.port: `512` needs 10 bits, but the field has 9"
    );
    assert_eq!(
        table(r#""action": {"action": "set", "params": {"port": "1"}}"#),
        "action ingress.set needs a value for `mac`, of 48 bits"
    );
    assert_eq!(
        fault(
            r#"{"kind": "digest", "digest": "lern", "max_timeout_ns": 1, "max_list_size": 2, "ack_timeout_ns": 3}"#
        ),
        "there is no digest `lern`; did you mean learn?"
    );
}
