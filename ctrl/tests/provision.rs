//! Programs and entries of a topology's switches.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::common;

use p4rack_codegen::topology::Topology;
use p4rack_ctrl::items::{Item, TableItem};
use p4rack_ctrl::provision::{self, Desired};
use p4rack_ctrl::{ConnectOptions, CtrlError, Session};
use serde_json::Value;
use std::path::Path;

/// What a switch of `examples/pod` should hold, with more keys and these entries besides its own.
fn desired(keys: &str, more_entries: &str) -> Result<Desired, CtrlError> {
    let folder = tempfile::tempdir().unwrap();
    let pod = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/pod");
    for file in ["route.p4", "s1.entries", "s2.entries", "s3.entries", "s4.entries", "pod.toml"] {
        std::fs::copy(pod.join(file), folder.path().join(file)).unwrap();
    }
    let at = |file: &str| folder.path().join(file);
    let text = std::fs::read_to_string(at("pod.toml")).unwrap();
    let entries = "entries = \"s1.entries\"\n";
    assert!(text.contains(entries));
    std::fs::write(at("pod.toml"), text.replacen(entries, &format!("{entries}{keys}"), 1)).unwrap();
    let own = std::fs::read_to_string(at("s1.entries")).unwrap();
    std::fs::write(at("s1.entries"), own + more_entries).unwrap();
    let topology = Topology::load(&at("pod.toml")).unwrap();
    provision::desired_of_all(&topology).swap_remove(0).map(Option::unwrap)
}

#[test]
fn bmv2_gets_json_and_tofino_no_program_for_another_architecture() {
    let embedded = desired("", "").unwrap();
    let bmv2 = desired("target = \"bmv2\"\n", "").unwrap();
    let json: Value = serde_json::from_slice(&bmv2.config.p4_device_config).unwrap();
    assert_eq!(json["pipelines"][0]["name"], "ingress");
    assert!(embedded.config.p4_device_config.starts_with(b"//"), "text");
    assert_eq!(embedded.config.p4info, bmv2.config.p4info);
    assert_eq!(embedded.entities, bmv2.entities);
    let refused = desired("target = \"tofino\"\n", "").unwrap_err().to_string();
    assert!(
        refused.contains("s1's target is tofino") && refused.contains("is written for v1model"),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_entry_takes_all_others_back() {
    let route = |n: usize| {
        format!("routes dst=10.9.{}.{}/32 --action to next_hop=02:00:00:00:00:09 port=1\n", n / 256, n % 256)
    };
    // The table has room for 1024. A file with more is refused before a switch hears of it.
    let refused = desired("", &(0..1024).map(route).collect::<String>()).unwrap_err().to_string();
    let said = "table PodIngress.routes has room for 1024 entries: leave some out";
    assert!(
        refused.contains(said) && refused.contains("s1.entries: line ") && refused.lines().count() == 1,
        "{refused}"
    );
    let mut wanted = desired("", &(0..1000).map(route).collect::<String>()).unwrap();
    let others = desired("", &(1000..1030).map(route).collect::<String>()).unwrap();
    wanted.entities.extend(
        others.entities.into_iter().filter(|entity| !wanted.entities.contains(entity)).collect::<Vec<_>>(),
    );
    assert!(wanted.entities.len() > 1024);
    let (_running, target) = common::start(&common::rack(), 0).await;
    let error = provision::install(&wanted, target.clone()).await.unwrap_err().to_string();
    assert!(error.contains("is full"), "{error}");
    let mut session = Session::connect(target.clone()).await.unwrap();
    let schema = session.schema().await.unwrap();
    let routes = Item::TableEntry(TableItem { table: "routes".into(), ..Default::default() });
    let mut entries = async || session.read(vec![routes.entity(&schema).unwrap()]).await.unwrap().len();
    assert_eq!(entries().await, 0);
    // The same without the second one stays.
    let good = desired("", "").unwrap();
    let later = ConnectOptions { election_id: 2, ..target };
    assert_eq!(provision::install(&good, later).await.unwrap(), good.entities.len());
    assert_eq!(entries().await, good.entities.len());
}

/// Members and groups of an action profile, in a file with a WriteRequest.
#[test]
fn members_and_groups_of_a_topologys_switches_are_read_like_entries() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let ways = "#include <core.p4>\n#include <v1model.p4>\n
        header e_t { bit<48> dst; bit<48> src; bit<16> kind; }
        struct h_t { e_t e; } struct m_t { }
        parser P(packet_in p, out h_t h, inout m_t m, inout standard_metadata_t s) {
            state start { p.extract(h.e); transition accept; } }
        control V(inout h_t h, inout m_t m) { apply { } }
        control I(inout h_t h, inout m_t m, inout standard_metadata_t s) {
            action to(bit<9> port) { s.egress_spec = port; }
            action_selector(HashAlgorithm.crc32, 8, 16) ways;
            table spread { key = { h.e.src: exact; h.e.dst: selector; } actions = { to; }
                implementation = ways; }
            apply { spread.apply(); } }
        control E(inout h_t h, inout m_t m, inout standard_metadata_t s) { apply { } }
        control C(inout h_t h, inout m_t m) { apply { } }
        control D(packet_out p, in h_t h) { apply { p.emit(h); } }
        V1Switch(P(), V(), I(), E(), C(), D()) main;";
    write("ways.p4", ways);
    let member = |profile: u32, action: u32| {
        format!(
            "updates {{ type: INSERT entity {{ action_profile_member {{ action_profile_id: {profile} member_id: 7
               action {{ action_id: {action} params {{ param_id: 1 value: \"\\001\" }} }} }} }} }}
             updates {{ type: INSERT entity {{ action_profile_group {{ action_profile_id: {profile} group_id: 3
               max_size: 4 members {{ member_id: 7 weight: 1 }} }} }} }}"
        )
    };
    let compiled = p4rack_p4::compile(ways, "ways.p4", &p4rack_p4::Options::default());
    let info = compiled.unwrap_or_else(|why| panic!("{}", why.render(false))).p4info;
    let id = |preamble: &Option<p4rack_p4rt::p4::config::v1::Preamble>| preamble.as_ref().unwrap().id;
    let to = info.actions.iter().find(|action| !action.params.is_empty()).unwrap();
    let (profile, action) = (id(&info.action_profiles[0].preamble), id(&to.preamble));
    write("s1.entries", &member(profile, action));
    write("s2.entries", &member(profile + 1, action));
    let switch = |n: u8| {
        format!(
            "[[switch]]\nname = \"s{n}\"\nprogram = \"ways.p4\"\nentries = \"s{n}.entries\"\n[[host]]\nname = \"h{n}\"\n\
             ip = \"10.0.{n}.1/24\"\n[[link]]\nends = [\"h{n}\", \"s{n}:1\"]\n"
        )
    };
    let text = format!("name = \"pair\"\n{}{}[[link]]\nends = [\"s1:2\", \"s2:2\"]\n", switch(1), switch(2));
    write("pair.toml", &text);
    let topology = Topology::load(&folder.path().join("pair.toml")).unwrap();
    let mut all = provision::desired_of_all(&topology).into_iter();
    let first = all.next().unwrap().unwrap().unwrap();
    let read: Vec<String> =
        first.entities.iter().map(|entity| Item::of(&first.schema, entity).unwrap().to_string()).collect();
    assert!(read[0].contains("member 7") && read[1].contains("group 3"), "{read:?}");
    let refused = all.next().unwrap().unwrap_err().to_string();
    assert!(refused.contains("s2: ") && refused.contains("s2.entries: updates[0]"), "{refused}");
}
