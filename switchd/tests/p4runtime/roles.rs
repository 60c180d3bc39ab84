//! Role configs: permissions of a role to write, read, receive and install.

use crate::rig::*;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::errors::unpack;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::set_forwarding_pipeline_config_request::Action;
use p4rack_p4rt::p4::v1::update::Type::Insert;
use p4rack_p4rt::p4::v1::write_request::Atomicity;
use p4rack_p4rt::p4::v1::*;
use p4rack_p4rt::stratum::{P4RoleConfig, p4_role_config::PacketFilter};
use prost::Message;
use prost_types::Any;

fn any(config: &P4RoleConfig) -> Any {
    Any { type_url: "type.googleapis.com/stratum.P4RoleConfig".into(), value: config.encode_to_vec() }
}

/// Only the table `dmac`.
fn for_dmac() -> P4RoleConfig {
    P4RoleConfig { exclusive_p4_ids: vec![table_id("dmac")], ..Default::default() }
}

async fn ask(client: &Client, name: &str, config: Any) {
    let role = Role { name: name.into(), config: Some(config), ..Default::default() };
    let update = MasterArbitrationUpdate {
        device_id: DEVICE,
        role: Some(role),
        election_id: election(1),
        status: None,
    };
    client.send(stream_message_request::Update::Arbitration(update)).await;
}

/// A primary of the role.
async fn member(rig: &Rig, name: &str, config: &P4RoleConfig) -> Client {
    let mut client = Client::connect(rig).await;
    ask(&client, name, any(config)).await;
    let stream_message_response::Update::Arbitration(update) = client.next().await.unwrap() else { panic!() };
    assert_eq!(update.status.unwrap().code, Code::Ok as i32);
    assert_eq!(update.role.unwrap().config, Some(any(config)), "the role's controllers are told its config");
    client
}

fn insert(entry: p4rack_p4rt::entity::Entry) -> Update {
    p4rack_p4rt::entity::table_update(Insert, entry.build(schema()).unwrap())
}

fn route(last: u8) -> p4rack_p4rt::entity::Entry {
    p4rack_p4rt::entity::Entry::of("routes").lpm("hdr.ethernet.src", [2, 0, 0, 0, 0, last], 48).action("pass")
}

async fn write(client: &mut Client, role: &str, atomicity: Atomicity, updates: Vec<Update>) -> Vec<Code> {
    let count = updates.len();
    let request = WriteRequest {
        device_id: DEVICE,
        role: role.into(),
        election_id: election(1),
        atomicity: atomicity as i32,
        updates,
        ..Default::default()
    };
    match client.rpc.write(request).await {
        Ok(_) => vec![Code::Ok; count],
        Err(status) => {
            let outcomes = unpack(status.details()).unwrap_or_else(|| panic!("{status:?}"));
            outcomes
                .into_iter()
                .map(|outcome| outcome.map_or_else(|error| error.code, |()| Code::Ok))
                .collect()
        }
    }
}

#[tokio::test]
async fn a_role_writes_what_its_config_names_and_each_other_update_is_refused() {
    let (rig, _default) = Rig::ready().await;
    let mut client = member(&rig, "l2", &for_dmac()).await;
    let group = Entity {
        entity: Some(EntityKind::PacketReplicationEngineEntry(PacketReplicationEngineEntry {
            r#type: Some(packet_replication_engine_entry::Type::MulticastGroupEntry(MulticastGroupEntry {
                multicast_group_id: 1,
                ..Default::default()
            })),
        })),
    };
    let counter = EntityKind::CounterEntry(CounterEntry {
        counter_id: schema().info().counters[0].preamble.as_ref().unwrap().id,
        ..Default::default()
    });
    let updates = || {
        vec![
            insert(dmac(1, 3)),
            insert(route(1)),
            Update { r#type: Insert as i32, entity: Some(group.clone()) },
            Update { r#type: 2, entity: Some(Entity { entity: Some(counter.clone()) }) },
        ]
    };
    let denied = Code::PermissionDenied;
    let all = write(&mut client, "l2", Atomicity::RollbackOnError, updates()).await;
    assert_eq!(all, [Code::Aborted, denied, Code::Aborted, Code::Aborted]);
    let each = write(&mut client, "l2", Atomicity::ContinueOnError, updates()).await;
    assert_eq!(each, [Code::Ok, denied, Code::Ok, denied]);
}

#[tokio::test]
async fn a_role_reads_what_its_config_names() {
    let (rig, mut default) = Rig::ready().await;
    default.insert(dmac(1, 3)).await.unwrap();
    default.insert(route(1)).await.unwrap();
    let mut client = member(&rig, "l2", &for_dmac()).await;
    let mut read = async |table: &str| {
        let entities = vec![Entity { entity: Some(EntityKind::TableEntry(wildcard(table))) }];
        let request = ReadRequest { device_id: DEVICE, role: "l2".into(), entities };
        let mut answers = client.rpc.read(request).await?.into_inner();
        let mut found = 0;
        while let Some(answer) = answers.message().await? {
            found += answer.entities.len();
        }
        Ok::<usize, tonic::Status>(found)
    };
    assert_eq!(read("").await.unwrap(), 1, "of all tables, those of the role");
    assert_eq!(read("dmac").await.unwrap(), 1);
    let refused = unpack(read("routes").await.unwrap_err().details()).unwrap();
    assert_eq!(refused[0].as_ref().unwrap_err().code, Code::PermissionDenied);
    assert_eq!(default.table(wildcard("routes")).await.len(), 1);
}

#[tokio::test]
async fn a_role_gets_the_packet_ins_that_its_config_asks_for() {
    let (rig, mut default) = Rig::ready().await;
    default.insert(dmac(1, CPU)).await.unwrap();
    let port = schema().header_fields("packet_in")[0].id;
    let filter = |value| Some(PacketFilter { metadata_id: port, value });
    let wants =
        |packet_in_filter| P4RoleConfig { receives_packet_ins: true, packet_in_filter, ..Default::default() };
    let mut every = member(&rig, "every", &wants(None)).await;
    let mut second = member(&rig, "second", &wants(filter(vec![0, 2]))).await;
    let mut none = member(&rig, "none", &P4RoleConfig::default()).await;
    rig.inject(1, &frame(1, 0x0800)).await;
    rig.inject(2, &frame(1, 0x0800)).await;
    let from = async |client: &mut Client| match client.next().await.unwrap() {
        stream_message_response::Update::Packet(packet) => packet.metadata[0].value.clone(),
        other => panic!("{other:?}"),
    };
    for client in [&mut default, &mut every] {
        assert_eq!([from(client).await, from(client).await], [[0x01], [0x02]].map(Vec::from));
    }
    assert_eq!(from(&mut second).await, [2]);
    // Anything else would have come before.
    none.arbitrate(DEVICE, "none", election(3)).await;
    assert!(matches!(none.next().await.unwrap(), stream_message_response::Update::Arbitration(_)));
}

#[tokio::test]
async fn a_role_installs_a_pipeline_only_if_its_config_lets_it() {
    let rig = Rig::start().await;
    for (name, can_push_pipeline) in [("may", true), ("may not", false)] {
        let mut client = member(&rig, name, &P4RoleConfig { can_push_pipeline, ..Default::default() }).await;
        let request = SetForwardingPipelineConfigRequest {
            device_id: DEVICE,
            role: name.into(),
            election_id: election(1),
            action: Action::VerifyAndCommit as i32,
            config: Some(config()),
            ..Default::default()
        };
        let set = client.rpc.set_forwarding_pipeline_config(request).await;
        match can_push_pipeline {
            true => drop(set.unwrap()),
            false => assert_eq!(set.unwrap_err().code(), tonic::Code::PermissionDenied),
        }
    }
}

#[tokio::test]
async fn a_role_config_that_means_nothing_ends_the_stream_with_invalid_argument() {
    let rig = Rig::start().await;
    let filter = Some(PacketFilter { metadata_id: 1, value: vec![1] });
    let empty = Some(PacketFilter { metadata_id: 1, value: vec![] });
    let bad = [
        ("", any(&for_dmac()), "default role"),
        ("a", Any { type_url: "type.googleapis.com/p4.v1.Update".into(), ..any(&for_dmac()) }, "is of type"),
        ("a", Any { value: vec![0xff], ..any(&for_dmac()) }, "is no stratum.P4RoleConfig"),
        ("a", any(&P4RoleConfig { packet_in_filter: filter, ..Default::default() }), "receives_packet_ins"),
        (
            "a",
            any(&P4RoleConfig { packet_in_filter: empty, receives_packet_ins: true, ..Default::default() }),
            "no value",
        ),
    ];
    for (name, config, says) in bad {
        let mut client = Client::connect(&rig).await;
        ask(&client, name, config).await;
        let end = client.next().await.unwrap_err();
        assert_eq!(end.code(), tonic::Code::InvalidArgument, "{says}: {end:?}");
        assert!(end.message().contains(says), "{says}: {end:?}");
    }
}

#[tokio::test]
async fn what_a_role_has_for_itself_no_other_role_can_name() {
    let rig = Rig::start().await;
    let first = member(&rig, "first", &for_dmac()).await;
    let shared = P4RoleConfig { shared_p4_ids: vec![table_id("dmac")], ..Default::default() };
    let mut second = Client::connect(&rig).await;
    ask(&second, "second", any(&shared)).await;
    assert_eq!(second.next().await.unwrap_err().code(), tonic::Code::InvalidArgument);
    // Its controllers have gone, and with them the claim.
    drop(first);
    for _ in 0..100 {
        let mut second = Client::connect(&rig).await;
        ask(&second, "second", any(&shared)).await;
        if second.next().await.is_ok() {
            return;
        }
    }
    panic!("the claim stays");
}
