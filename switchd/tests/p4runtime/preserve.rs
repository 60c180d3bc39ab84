//! RECONCILE_AND_COMMIT.

use crate::idle::source;
use crate::profiles::{group_of, hop, member, tunnels};
use crate::resources::{backed_group, counter, group, meter, register};
use crate::rig::*;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::entity::Entry;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::set_forwarding_pipeline_config_request::Action;
use p4rack_p4rt::p4::v1::update::Type::{Delete, Insert, Modify};
use p4rack_p4rt::p4::v1::*;

/// Another text of the same program with this replaced.
pub fn changed(from: &str, to: &str) -> ForwardingPipelineConfig {
    assert!(PROGRAM.contains(from), "{from}");
    let text = PROGRAM.replace(from, to);
    let compiled = p4rack_p4::compile(&text, "changed.p4", &p4rack_p4::Options::default());
    let compiled = compiled.unwrap_or_else(|diagnostics| panic!("{}", diagnostics.render(false)));
    ForwardingPipelineConfig { p4info: Some(compiled.p4info), p4_device_config: text.into(), cookie: None }
}

async fn furnish(rig: &Rig, client: &mut Client) {
    client.insert(dmac(1, 3)).await.unwrap();
    client
        .insert(Entry::of("acl").ternary("hdr.ethernet.type", 0x86u8, 0xffu8).priority(7).action("drop"))
        .await
        .unwrap();
    client.entry(Insert, TableEntry { metadata: b"m".to_vec(), ..source(9, 1 << 40) }).await.unwrap();
    let info = schema().table("dmac").unwrap();
    let to_cpu = schema().action("to_controller").unwrap();
    let action_id = p4rack_p4rt::schema::id_of(to_cpu.preamble.as_ref());
    let call = table_action::Type::Action(p4rack_p4rt::p4::v1::Action { action_id, params: Vec::new() });
    let default = TableEntry {
        table_id: p4rack_p4rt::schema::id_of(info.preamble.as_ref()),
        is_default_action: true,
        action: Some(TableAction { r#type: Some(call) }),
        ..Default::default()
    };
    client.entry(Modify, default).await.unwrap();
    client.write(Insert, member(1, 1)).await.unwrap();
    client.write(Insert, group_of(&[(1, 2)], 8)).await.unwrap();
    client.entry(Insert, hop(table_action::Type::ActionProfileGroupId(5))).await.unwrap();
    client.write(Modify, tunnels(&[[0x65, 0x58]])).await.unwrap();
    client.write(Insert, group(3, &[1, 2])).await.unwrap();
    client.write(Insert, backed_group(4, 1, &[3, 2])).await.unwrap();
    let config = MeterConfig { cir: 1000, cburst: 100, pir: 2000, pburst: 200, eburst: 0 };
    client.write(Modify, meter(Some(2), Some(config))).await.unwrap();
    client.write(Modify, register(Some(2), Some(&[7]))).await.unwrap();
    rig.inject(2, &frame(1, 0x0800)).await;
}

/// All that was written to the switch, and its counters.
async fn everything(client: &mut Client) -> Vec<EntityKind> {
    let mut found = Vec::new();
    let all = TableEntry { counter_data: Some(Default::default()), ..wildcard("") };
    let defaults = TableEntry { is_default_action: true, ..wildcard("") };
    let pre = packet_replication_engine_entry::Type::MulticastGroupEntry(Default::default());
    let pre = PacketReplicationEngineEntry { r#type: Some(pre) };
    for wanted in [
        EntityKind::TableEntry(all),
        EntityKind::TableEntry(defaults),
        EntityKind::ActionProfileMember(Default::default()),
        EntityKind::ActionProfileGroup(Default::default()),
        EntityKind::ValueSetEntry(Default::default()),
        EntityKind::PacketReplicationEngineEntry(pre),
        meter(None, None),
        register(None, None),
        counter(None, None),
    ] {
        found.extend(client.read(wanted).await.unwrap());
    }
    found
}

#[tokio::test]
async fn reconcile_and_commit_keeps_what_still_fits() {
    let (rig, mut client) = Rig::ready().await;
    furnish(&rig, &mut client).await;
    let before = everything(&mut client).await;
    // Does something else with frames, and has room for more.
    let config = changed("size = 4;", "size = 400;");
    client.set(Action::ReconcileAndCommit, Some(config.clone())).await.unwrap();
    let running = client.get(get_forwarding_pipeline_config_request::ResponseType::All).await.unwrap();
    assert_eq!(running.p4_device_config, config.p4_device_config);
    assert_eq!(everything(&mut client).await, before);
    rig.inject(2, &frame(1, 0x0800)).await;
    assert_eq!(rig.sent(2).await.len(), 2, "forwarded before and after");
    for last in 10..20 {
        client.insert(dmac(last, 1)).await.unwrap();
    }
}

#[tokio::test]
async fn reconcile_and_commit_is_refused_when_something_does_not_fit_and_nothing_changes() {
    let (rig, mut client) = Rig::ready().await;
    furnish(&rig, &mut client).await;
    let before = everything(&mut client).await;
    // The action of an entry takes something else.
    let config = changed(
        "action forward(bit<9> port) { sm.egress_spec = port;",
        "action forward(bit<1> port) { sm.egress_spec = (bit<9>) port;",
    );
    let refused = client.set(Action::ReconcileAndCommit, Some(config)).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument, "{refused:?}");
    assert!(refused.message().contains("forward"), "{refused:?}");
    assert_eq!(everything(&mut client).await, before);
    rig.inject(2, &frame(1, 0x0800)).await;
    assert_eq!(rig.sent(2).await.len(), 2);
}

#[tokio::test]
async fn entries_may_refer_to_others_that_are_kept_after_them() {
    let (_rig, mut client) = Rig::ready().await;
    client.insert(dmac(9, 3)).await.unwrap();
    client.entry(Insert, source(9, 1 << 40)).await.unwrap();
    let before = everything(&mut client).await;
    let with = "hdr.ethernet.dst: exact @refers_to(sources, hdr.ethernet.src);";
    let config = changed("hdr.ethernet.dst: exact;", with);
    client.set(Action::ReconcileAndCommit, Some(config.clone())).await.unwrap();
    assert_eq!(everything(&mut client).await, before);
    let in_use = client.entry(Delete, source(9, 0)).await.unwrap_err();
    assert_eq!(in_use.code, Code::FailedPrecondition);
    let to_nothing = client.insert(dmac(8, 3)).await.unwrap_err();
    assert_eq!(to_nothing.code, Code::InvalidArgument);
    // A program that would leave a kept entry's reference without a target is refused.
    client.set(Action::VerifyAndCommit, Some(self::config())).await.unwrap();
    client.insert(dmac(8, 3)).await.unwrap();
    let refused = client.set(Action::ReconcileAndCommit, Some(config)).await.unwrap_err();
    assert!(refused.message().contains("refers to something that does not exist"), "{refused:?}");
}

#[tokio::test]
async fn reconcile_and_commit_needs_a_config_and_no_earlier_program() {
    let rig = Rig::start().await;
    let mut client = Client::connect(&rig).await;
    client.become_primary(1).await;
    let refused = client.set(Action::ReconcileAndCommit, None).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    client.set(Action::ReconcileAndCommit, Some(config())).await.unwrap();
    client.insert(dmac(1, 3)).await.unwrap();
}

/// The text's own entries go with the old program and come with the new one; what a controller has made of them stays.
#[tokio::test]
async fn entries_of_the_text_belong_to_the_program_until_they_are_changed() {
    let (_rig, mut client) = Rig::ready().await;
    let own = |text: &str, size: &str| {
        let entries = format!("{size} entries = {{ {text} }}");
        changed("size = 4;", &entries)
    };
    let entries = async |client: &mut Client| {
        let mut found = Vec::new();
        for entry in client.table(wildcard("dmac")).await {
            let Some(field_match::FieldMatchType::Exact(key)) = &entry.r#match[0].field_match_type else {
                panic!("{entry:?}")
            };
            let Some(table_action::Type::Action(call)) = entry.action.unwrap().r#type else {
                panic!("a call")
            };
            found.push((key.value.clone(), call.params[0].value.clone()));
        }
        found.sort();
        found
    };
    let pairs = |pairs: &[(u8, u8)]| -> Vec<(Vec<u8>, Vec<u8>)> {
        pairs.iter().map(|(key, port)| (vec![*key], vec![*port])).collect()
    };
    let first = own("48w1: forward(1); 48w2: forward(2); 48w3: forward(3);", "size = 8;");
    client.set(Action::VerifyAndCommit, Some(first)).await.unwrap();
    let port = |last: u8, port: u16| {
        let entry = Entry::of("dmac").exact("hdr.ethernet.dst", [0, 0, 0, 0, 0, last]);
        entry.action("forward").param("port", port)
    };
    let update = |entry: Entry| entry.update(schema()).unwrap().entity.unwrap().entity.unwrap();
    client.write(Modify, update(port(2, 4))).await.unwrap();
    client.write(Insert, update(port(9, 3))).await.unwrap();
    assert_eq!(entries(&mut client).await, pairs(&[(1, 1), (2, 4), (3, 3), (9, 3)]));
    // 1 is another one, 2 was changed, 3 is gone, 4 is new, and 9 is a controller's.
    let second = own("48w1: forward(2); 48w2: forward(1); 48w4: forward(4); 48w9: forward(1);", "size = 8;");
    client.set(Action::ReconcileAndCommit, Some(second)).await.unwrap();
    assert_eq!(entries(&mut client).await, pairs(&[(1, 2), (2, 4), (4, 4), (9, 3)]));
    // 4, of both texts, and 9, which a controller has written, are constant now.
    let third = own("48w1: forward(2); const 48w4: forward(4); const 48w9: forward(3);", "size = 8;");
    client.set(Action::ReconcileAndCommit, Some(third)).await.unwrap();
    assert_eq!(entries(&mut client).await, pairs(&[(1, 2), (2, 4), (4, 4), (9, 3)]));
    // A constant that is another one than a controller has written does not take its place.
    let fourth = own("const 48w2: forward(1);", "size = 8;");
    let refused = client.set(Action::ReconcileAndCommit, Some(fourth)).await.unwrap_err();
    let kept = "hdr.ethernet.dst=00:00:00:00:00:02 can't be kept";
    assert!(refused.message().contains(kept), "{refused:?}");
    assert_eq!(entries(&mut client).await, pairs(&[(1, 2), (2, 4), (4, 4), (9, 3)]));
}
