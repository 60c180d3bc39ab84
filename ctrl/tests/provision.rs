//! Programs and entries of a topology's switches.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;

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
    provision::desired(&topology.switches[0]).map(Option::unwrap)
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
    assert!(refused.contains("s1: ") && refused.contains("is written for v1model"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_entry_takes_all_others_back() {
    let twice = "routes dst=10.9.0.0/16 --action to next_hop=02:00:00:00:00:09 port=1\n".repeat(2);
    let wanted = desired("", &twice).unwrap();
    assert!(wanted.entities.len() > 2);
    let (_running, target) = common::start(&common::rack(), 0).await;
    let error = provision::install(&wanted, target.clone()).await.unwrap_err().to_string();
    assert!(error.contains("ALREADY_EXISTS"), "{error}");
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
