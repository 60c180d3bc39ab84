//! A program for TNA over P4Runtime: installed, its table written, its counters and registers read.

use crate::rig::*;
use p4rack_p4::Options;
use p4rack_p4rt::entity::Entry;
use p4rack_p4rt::p4::v1::set_forwarding_pipeline_config_request::Action;
use p4rack_p4rt::p4::v1::update::Type;
use p4rack_p4rt::p4::v1::*;
use p4rack_p4rt::schema::{Schema, id_of};

const PROGRAM: &str = include_str!("../../../examples/tna-forward.p4");

#[tokio::test]
async fn a_tna_program_is_installed_written_and_read() {
    let rig = Rig::start().await;
    let mut client = Client::connect(&rig).await;
    client.become_primary(1).await;
    let compiled = p4rack_p4::compile(PROGRAM, "tna-forward.p4", &Options::default())
        .unwrap_or_else(|diagnostics| panic!("{}", diagnostics.render(false)));
    let schema = Schema::new(compiled.p4info.clone()).unwrap();
    let config = ForwardingPipelineConfig {
        p4info: Some(compiled.p4info),
        p4_device_config: PROGRAM.into(),
        cookie: None,
    };
    client.set(Action::VerifyAndCommit, Some(config)).await.unwrap();
    let entry = Entry::of("hosts").exact("hdr.eth.dst", [2, 0, 0, 0, 0, 3]).action("to").param("port", 4u16);
    let entry = entry.build(&schema).unwrap();
    client.entry(Type::Insert, entry.clone()).await.unwrap();
    rig.inject(1, &frame(3, 0x0800)).await;
    rig.inject(1, &frame(3, 0x0800)).await;
    rig.inject(3, &frame(9, 0x0800)).await;
    let mut ports: Vec<u16> = rig.sent(3).await.into_iter().map(|(port, _)| port).collect();
    ports.sort_unstable();
    assert_eq!(ports, [2, 4, 4]);
    let counted = client
        .read(entity::Entity::DirectCounterEntry(DirectCounterEntry {
            table_entry: Some(TableEntry { action: None, ..entry }),
            data: Some(CounterData::default()),
        }))
        .await
        .unwrap();
    let [entity::Entity::DirectCounterEntry(counted)] = &counted[..] else { panic!("{counted:?}") };
    let data = counted.data.unwrap();
    // 64 bytes and the FCS, twice.
    assert_eq!((data.packet_count, data.byte_count), (2, 136));
    let counter_id = id_of(schema.counter("sent").unwrap().preamble.as_ref());
    let index = Some(Index { index: 4 });
    let sent =
        client.read(entity::Entity::CounterEntry(CounterEntry { counter_id, index, data: None })).await;
    let [entity::Entity::CounterEntry(sent)] = &sent.unwrap()[..] else { panic!() };
    assert_eq!(sent.data.unwrap().packet_count, 2);
    let register_id = id_of(schema.register("frames").unwrap().preamble.as_ref());
    let index = Some(Index { index: 1 });
    let cell = entity::Entity::RegisterEntry(RegisterEntry { register_id, index, data: None });
    let [entity::Entity::RegisterEntry(cell)] = &client.read(cell).await.unwrap()[..] else { panic!() };
    assert_eq!(
        cell.data.as_ref().and_then(|data| data.data.clone()),
        Some(p4_data::Data::Bitstring(vec![2]))
    );
}

#[tokio::test]
async fn what_is_not_executed_is_refused_with_its_place() {
    let rig = Rig::start().await;
    let mut client = Client::connect(&rig).await;
    client.become_primary(1).await;
    let down = "
    ActionProfile(8) members;
    Hash<bit<8>>(HashAlgorithm_t.IDENTITY) hash;
    ActionSelector(members, hash, SelectorMode_t.FAIR, 4, 2) groups;
    SelectorAction(groups) down = {
        void apply(inout bit<1> value) { value = 0; }
    };
    apply {
        down.execute(0);
        count.execute";
    let text = PROGRAM.replace("\n    apply {\n        count.execute", down);
    assert_ne!(text, PROGRAM);
    let compiled = p4rack_p4::compile(&text, "t.p4", &Options::default()).ok().unwrap();
    let line = text.lines().position(|line| line.contains("down.execute")).unwrap() + 1;
    let config = ForwardingPipelineConfig {
        p4info: Some(compiled.p4info),
        p4_device_config: text.into(),
        cookie: None,
    };
    let refused = client.set(Action::VerifyAndCommit, Some(config)).await.unwrap_err();
    for part in ["`Ingress.down`", &format!("p4_device_config:{line}:")] {
        assert!(refused.message().contains(part), "{part}: {}", refused.message());
    }
}
