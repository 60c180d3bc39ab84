//! Files that are wrong give an error with a path, never a panic.

use p4rack_p4::Options;
use p4rack_switch::Pipeline;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::LazyLock;

/// The JSON of some programs of `tests/stf`, which have most of what there is between them.
static FILES: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let names =
        ["header_stack", "table_selector", "direct_resources", "unions", "value_sets", "checksum", "digest"];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/stf");
    let mut programs: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder of cases")
        .filter_map(|file| Some(file.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "p4"))
        .collect();
    programs.sort();
    programs.retain(|path| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        names.iter().any(|name| stem.contains(name)) || stem.len() % 3 == 0
    });
    let json = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).ok()?;
        let compiled = p4rack_p4::compile(&text, "t.p4", &Options::default()).ok()?;
        p4rack_bmv2::write(&compiled).ok()
    };
    programs.iter().filter_map(json).collect()
});

/// Paths of all values of a file.
fn pointers(value: &Value, at: &str, out: &mut Vec<String>) {
    out.push(at.to_owned());
    match value {
        Value::Array(values) => {
            values.iter().enumerate().for_each(|(i, value)| pointers(value, &format!("{at}/{i}"), out));
        }
        Value::Object(values) => {
            values.iter().for_each(|(key, value)| pointers(value, &format!("{at}/{key}"), out));
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_changed_file_is_read_or_refused(
        file in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0usize..10), 1..4),
    ) {
        let mut json = FILES[file.index(FILES.len())].clone();
        let mut all = Vec::new();
        pointers(&json, "", &mut all);
        for (at, from, kind) in changes {
            let other = json.pointer(&all[from.index(all.len())]).cloned().unwrap_or_default();
            let new = match kind {
                0 => Value::Null,
                1 => json!(0),
                2 => json!(u64::MAX),
                3 => json!("0xffffffffffffffffffffffffffffffffff"),
                4 => json!("-0x1"),
                5 => json!([]),
                6 => json!({}),
                _ => other,
            };
            if let Some(value) = json.pointer_mut(&all[at.index(all.len())]) {
                *value = new;
            }
        }
        match p4rack_bmv2::read(&json.to_string(), "t.json", None) {
            Ok(compiled) => drop(Pipeline::compile(&compiled.program)),
            Err(error) => prop_assert!(error.starts_with("t.json: at `"), "{}", error),
        }
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let read = |text: &str| p4rack_bmv2::read(text, "t.json", None).unwrap_err();
    assert!(read("{\n x").starts_with("t.json: "), "{}", read("{\n x"));
    let json = FILES[0].to_string();
    let with = |key: &str, value: Value| {
        let mut json: Value = serde_json::from_str(&json).unwrap();
        *json.pointer_mut(key).unwrap_or_else(|| panic!("{key}")) = value;
        json.to_string()
    };
    for (text, said) in [
        ("{}".to_owned(), "`header_types` and `pipelines` are missing"),
        (
            with("/__meta__/version/0", json!(1)),
            "at `__meta__.version`: version 1 of the format; expected 2: compile the program for v1model",
        ),
        (
            with("/pipelines/0/name", json!("main_control")),
            "at `pipelines[0].name`: a pipeline `main_control`",
        ),
        (
            with("/extern_instances", json!([{"type": "Hash"}])),
            "at `extern_instances[0]`: an extern of type `Hash`",
        ),
        (
            with("/parsers/0/init_state", json!("none")),
            "at `parsers[0].init_state`: there is no state `none`",
        ),
        (with("/headers", json!([{"name": "h", "id": 0}])), "at `headers[0]`: `header_type` is missing"),
    ] {
        let error = read(&text);
        assert!(error.starts_with("t.json: at `") && error.contains(said), "{said}: {error}");
    }
}

/// A file whose first action sets `to` to this value.
fn assigning(to: &Value, value: &Value) -> Value {
    let mut json = FILES[0].clone();
    let assign = json!({"op": "assign", "parameters": [to, value]});
    json["actions"][0]["primitives"] = json!([assign]);
    json
}

#[test]
fn nested_saturating_casts_are_read_in_their_size() {
    let field = json!({"type": "field", "value": ["standard_metadata", "egress_spec"]});
    let hex = |value: &str| json!({"type": "hexstr", "value": value});
    for sum in [false, true] {
        let mut value = field.clone();
        for _ in 0..if sum { 25 } else { 50 } {
            if sum {
                let sum = json!({"op": "+", "left": value, "right": hex("0x1ffff")});
                value = json!({"type": "expression", "value": sum});
            }
            let cast = json!({"op": "usat_cast", "left": value, "right": hex("0x9")});
            value = json!({"type": "expression", "value": cast});
        }
        let json = assigning(&field, &json!({"type": "expression", "value": value}));
        let compiled = p4rack_bmv2::read(&json.to_string(), "t.json", None).unwrap();
        assert!(format!("{:?}", compiled.program.actions).len() < 1 << 20);
    }
}

#[test]
fn copies_of_actions_are_counted_before_they_are_made() {
    let mut json = FILES[0].clone();
    let drops = vec![json!({"op": "drop", "parameters": []}); 20_000];
    json["actions"] = json!([{"name": "drops", "id": 0, "runtime_data": [], "primitives": drops}]);
    let call = |at: usize| json!({"name": format!("c{at}"), "action_id": 0, "next_node": null});
    let calls: Vec<Value> = (0..14_000).map(call).collect();
    json["pipelines"][0] = json!({
        "name": "ingress", "init_table": "c0", "tables": [], "conditionals": [], "action_calls": calls,
    });
    let error = p4rack_bmv2::read(&json.to_string(), "t.json", None).unwrap_err();
    assert!(error.contains("statements"), "{error}");
}

/// A file with one type of headers, of this many fields, and these instances of it.
fn with_headers(fields: usize, headers: usize) -> Value {
    let mut json = FILES[0].clone();
    let fields: Vec<Value> = (0..fields).map(|at| json!([format!("f{at}"), 8, false])).collect();
    json["header_types"]
        .as_array_mut()
        .expect("header types")
        .push(json!({"name": "many_t", "id": 900, "fields": fields}));
    let instance = |at: usize| json!({"name": format!("many{at}"), "id": 1_000 + at, "header_type": "many_t", "metadata": false, "pi_omit": true});
    json["headers"].as_array_mut().expect("headers").extend((0..headers).map(instance));
    json
}

/// On a thread with the stack that servers have: what goes through expressions must not go too deep.
#[test]
fn headers_with_many_fields_are_compared() {
    let mut json = with_headers(20_000, 2);
    let header = |at: usize| json!({"type": "header", "value": format!("many{at}")});
    let equal = json!({"type": "expression", "value": {"op": "==", "left": header(0), "right": header(1)}});
    json["pipelines"][0] = json!({
        "name": "ingress", "init_table": "node", "tables": [], "action_calls": [],
        "conditionals": [{"name": "node", "id": 0, "expression": equal, "true_next": null, "false_next": null}],
    });
    let read = move || {
        let compiled = p4rack_bmv2::read(&json.to_string(), "t.json", None)?;
        Pipeline::compile(&compiled.program).map(drop).map_err(|error| error.to_string())
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(read).unwrap();
    // Read, or refused for its size: both without an abort.
    if let Err(error) = thread.join().unwrap() {
        assert!(error.contains("parts") || error.contains("many0"), "{error}");
    }
}

#[test]
fn what_grows_by_products_is_counted_before_it_is_made() {
    let refused = |json: &Value| {
        let error = p4rack_bmv2::read(&json.to_string(), "t.json", None).unwrap_err();
        assert!(error.contains("parts"), "{error}");
    };
    // Each member of a union knows the others.
    let mut json = with_headers(0, 20_000);
    let ids: Vec<usize> = (0..20_000).map(|at| 1_000 + at).collect();
    json["header_unions"] = json!([{"name": "u", "id": 0, "union_type": "u_t", "header_ids": ids}]);
    refused(&json);
    // A header among a calculation's inputs is all of its fields.
    let mut json = with_headers(10_000, 1);
    let inputs = vec![json!({"type": "header", "value": "many0"}); 10_000];
    json["calculations"] = json!([{"name": "c", "id": 0, "algo": "csum16", "input": inputs}]);
    refused(&json);
    // A transition has a value for each key.
    let mut json = FILES[0].clone();
    let keys: Vec<Value> = vec![json!({"type": "lookahead", "value": [0, 8]}); 10_000];
    let hex = json!({"type": "hexstr", "value": "0x00", "mask": null, "next_state": null});
    json["parsers"][0]["parse_states"] = json!([{
        "name": "start", "id": 0, "parser_ops": [], "transition_key": keys, "transitions": vec![hex; 10_000],
    }]);
    json["parsers"][0]["init_state"] = json!("start");
    refused(&json);
}

#[test]
fn a_value_set_with_other_keys_is_refused() {
    let mut json = FILES[0].clone();
    json["parse_vsets"] = json!([{"name": "set", "id": 0, "compressed_bitwidth": 16}]);
    let state = |name: &str, next: Value, widths: &[u32]| {
        let keys: Vec<Value> =
            widths.iter().map(|width| json!({"type": "lookahead", "value": [0, width]})).collect();
        let vset = json!({"type": "parse_vset", "value": "set", "mask": null, "next_state": null});
        let default = json!({"type": "default", "value": null, "mask": null, "next_state": next});
        json!({"name": name, "id": 0, "parser_ops": [], "transition_key": keys, "transitions": [vset, default]})
    };
    for (second, is_read) in [(&[16][..], true), (&[8, 8][..], false)] {
        json["parsers"][0]["parse_states"] =
            json!([state("start", json!("more"), &[16]), state("more", Value::Null, second)]);
        json["parsers"][0]["init_state"] = json!("start");
        let read = p4rack_bmv2::read(&json.to_string(), "t.json", None);
        let error = read.as_ref().err().cloned().unwrap_or_default();
        assert_eq!(read.is_ok(), is_read, "{error}");
        let path = "at `parsers[0].parse_states[1].transitions[0].value`: an earlier `select`";
        assert!(is_read || error.contains(path), "{error}");
    }
}

/// A program whose control does this.
fn program(body: &str) -> p4rack_p4::Compiled {
    let text = format!(
        "#include <v1model.p4>
        header h_t {{ bit<8> a; bit<8> b; }}
        struct H {{ h_t h; }}
        struct M {{}}
        parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {{
            state start {{ p.extract(h.h); transition accept; }}
        }}
        control V(inout H h, inout M m) {{ apply {{}} }}
        control I(inout H h, inout M m, inout standard_metadata_t s) {{ apply {{ s.egress_spec = 1; {body} }} }}
        control E(inout H h, inout M m, inout standard_metadata_t s) {{ apply {{}} }}
        control D(packet_out p, in H h) {{ apply {{ p.emit(h.h); }} }}
        V1Switch(P(), V(), I(), E(), V(), D()) main;"
    );
    p4rack_p4::compile(&text, "t.p4", &Options::default()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn long_chains_are_read_again() {
    for (body, packet, result) in [
        (
            format!(
                "if ({}) h.h.b = 7;",
                (0..90).map(|n| format!("h.h.a == {n}")).collect::<Vec<_>>().join(" || ")
            ),
            "59 00",
            "59 07",
        ),
        (format!("h.h.b = h.h.b{};", " + h.h.a".repeat(90)), "03 05", "03 13"),
        (format!("h.h.b = h.h.b{};", " ^ h.h.a".repeat(91)), "03 05", "03 06"),
    ] {
        let json = p4rack_bmv2::write(&program(&body)).unwrap_or_else(|error| panic!("{error}"));
        let compiled = p4rack_bmv2::read(&json.to_string(), "t.json", None).unwrap();
        let pipeline = Pipeline::compile(&compiled.program).unwrap();
        let packets = p4rack_stf::parse(&format!("packet 0 {packet}\nexpect 1 {result}\n")).unwrap();
        let outcome = p4rack_stf::run(&compiled.program, pipeline, &packets).unwrap();
        assert!(outcome.passed(), "{body}: {outcome}");
    }
    let deep = program(&format!("h.h.b = {}h.h.b{};", "h.h.a - (".repeat(60), ")".repeat(60)));
    let error = p4rack_bmv2::write(&deep).unwrap_err();
    assert!(error.to_string().contains("nested this deep"), "{error}");
}

#[test]
fn saturating_casts_end_at_the_type() {
    let op = |op: &str, left: Value, right: Value| json!({"type": "expression", "value": {"op": op, "left": left, "right": right}});
    let written = p4rack_bmv2::write(&program("h.h.b = h.h.a;")).unwrap_or_else(|error| panic!("{error}"));
    let headers = written["headers"].as_array().unwrap();
    let header = headers.iter().find(|header| header["header_type"] == "h_t").unwrap()["name"].clone();
    let field = |name: &str| json!({"type": "field", "value": [header, name]});
    let hex = |value: &str| json!({"type": "hexstr", "value": value});
    let difference = op("-", op("*", field("a"), hex("0x3")), field("b"));
    let unsigned = op("usat_cast", difference.clone(), hex("0x8"));
    let signed = op("sat_cast", difference, hex("0x8"));
    let json = p4rack_bmv2::write(&program("h.h.b = h.h.a;")).unwrap_or_else(|error| panic!("{error}"));
    for (value, packets) in [
        (
            unsigned,
            "packet 0 01 02\nexpect 1 01 01\npacket 0 01 04\nexpect 1 01 00\npacket 0 60 01\nexpect 1 60 ff\n",
        ),
        (
            signed,
            "packet 0 01 02\nexpect 1 01 01\npacket 0 01 ff\nexpect 1 01 80\npacket 0 60 01\nexpect 1 60 7f\n",
        ),
    ] {
        let mut json = json.clone();
        let mut done = 0;
        for action in json["actions"].as_array_mut().unwrap() {
            for primitive in action["primitives"].as_array_mut().unwrap() {
                if primitive["parameters"][0] == field("b") {
                    primitive["parameters"][1] = json!({"type": "expression", "value": value.clone()});
                    done += 1;
                }
            }
        }
        assert_eq!(done, 1, "{json:#}");
        let compiled = p4rack_bmv2::read(&json.to_string(), "t.json", None).unwrap();
        let pipeline = Pipeline::compile(&compiled.program).unwrap();
        let outcome =
            p4rack_stf::run(&compiled.program, pipeline, &p4rack_stf::parse(packets).unwrap()).unwrap();
        assert!(outcome.passed(), "{outcome}");
    }
}
