use crate::rig::*;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::packet_replication_engine_entry::Type as PreType;
use p4rack_p4rt::p4::v1::update::Type::{Delete, Insert, Modify};
use p4rack_p4rt::p4::v1::*;
use p4rack_p4rt::schema::id_of;

pub fn register(index: Option<i64>, value: Option<&[u8]>) -> EntityKind {
    let data = value.map(|v| P4Data { data: Some(p4_data::Data::Bitstring(v.to_vec())) });
    let register_id = id_of(schema().register("cells").unwrap().preamble.as_ref());
    EntityKind::RegisterEntry(RegisterEntry { register_id, index: index.map(|index| Index { index }), data })
}

pub fn counter(index: Option<i64>, data: Option<CounterData>) -> EntityKind {
    let counter_id = id_of(schema().counter("kinds").unwrap().preamble.as_ref());
    EntityKind::CounterEntry(CounterEntry { counter_id, index: index.map(|index| Index { index }), data })
}

pub fn meter(index: Option<i64>, config: Option<MeterConfig>) -> EntityKind {
    let meter_id = id_of(schema().meter("rates").unwrap().preamble.as_ref());
    EntityKind::MeterEntry(MeterEntry {
        meter_id,
        index: index.map(|index| Index { index }),
        config,
        ..Default::default()
    })
}

pub fn group(id: u32, ports: &[u8]) -> EntityKind {
    let replica = |port: &u8| replica(*port, &[]);
    pre(PreType::MulticastGroupEntry(MulticastGroupEntry {
        multicast_group_id: id,
        replicas: ports.iter().map(replica).collect(),
        metadata: b"m".to_vec(),
    }))
}

/// A copy of number 1, with backups of number 2.
fn replica(port: u8, backups: &[u8]) -> Replica {
    let backup = |port: &u8| BackupReplica { port: vec![*port], instance: 2 };
    Replica {
        port_kind: Some(replica::PortKind::Port(vec![port])),
        instance: 1,
        backup_replicas: backups.iter().map(backup).collect(),
    }
}

/// A group of one copy with backups.
pub fn backed_group(id: u32, port: u8, backups: &[u8]) -> EntityKind {
    pre(PreType::MulticastGroupEntry(MulticastGroupEntry {
        multicast_group_id: id,
        replicas: vec![replica(port, backups)],
        metadata: Vec::new(),
    }))
}

fn pre(entry: PreType) -> EntityKind {
    EntityKind::PacketReplicationEngineEntry(PacketReplicationEngineEntry { r#type: Some(entry) })
}

fn code(result: Result<(), p4rack_p4rt::errors::UpdateError>) -> Code {
    result.expect_err("refused").code
}

#[tokio::test]
async fn registers_are_read_and_written_whole_and_by_index() {
    let (rig, mut client) = Rig::ready().await;
    client.write(Modify, register(Some(2), Some(&[0, 0x0a, 0xbc]))).await.unwrap();
    assert_eq!(client.read(register(Some(2), None)).await.unwrap(), [register(Some(2), Some(&[0x0a, 0xbc]))]);
    let all = client.read(register(None, None)).await.unwrap();
    assert_eq!(all.len(), 16);
    assert_eq!(all[2], register(Some(2), Some(&[0x0a, 0xbc])));
    assert_eq!(all[3], register(Some(3), Some(&[0])));
    client.write(Modify, register(None, Some(&[7]))).await.unwrap();
    let all = client.read(register(None, None)).await.unwrap();
    assert!(all.iter().enumerate().all(|(i, cell)| *cell == register(Some(i as i64), Some(&[7]))));
    rig.inject(1, &frame(1, 0x0800)).await;
    assert_eq!(client.read(register(Some(3), None)).await.unwrap(), [register(Some(3), Some(&[8]))]);
    let wildcard = EntityKind::RegisterEntry(RegisterEntry::default());
    assert_eq!(client.read(wildcard).await.unwrap().len(), 16);
}

#[tokio::test]
async fn an_index_is_checked() {
    let (_rig, mut client) = Rig::ready().await;
    let data = Some(CounterData::default());
    assert_eq!(code(client.write(Modify, register(Some(16), Some(&[1]))).await), Code::OutOfRange);
    assert_eq!(code(client.write(Modify, register(Some(-1), Some(&[1]))).await), Code::InvalidArgument);
    assert_eq!(code(client.write(Modify, counter(Some(8), data)).await), Code::OutOfRange);
    assert_eq!(code(client.write(Modify, counter(Some(-8), data)).await), Code::InvalidArgument);
    assert_eq!(code(client.write(Modify, meter(Some(8), None)).await), Code::OutOfRange);
    assert_eq!(code(client.write(Modify, register(Some(1), None)).await), Code::InvalidArgument);
    assert_eq!(code(client.write(Modify, register(Some(1), Some(&[0x10, 0]))).await), Code::OutOfRange);
}

#[tokio::test]
async fn arrays_can_only_be_modified() {
    let (_rig, mut client) = Rig::ready().await;
    for kind in [Insert, Delete] {
        for entity in [register(Some(1), Some(&[1])), counter(Some(1), None), meter(Some(1), None)] {
            assert_eq!(code(client.write(kind, entity).await), Code::InvalidArgument);
        }
    }
}

#[tokio::test]
async fn counters_count_and_can_be_set() {
    let (rig, mut client) = Rig::ready().await;
    for _ in 0..3 {
        rig.inject(1, &frame(1, 0x0800)).await;
    }
    let counted = client.read(counter(Some(1), None)).await.unwrap();
    let data = CounterData { packet_count: 3, byte_count: 3 * 64 };
    assert_eq!(counted, [counter(Some(1), Some(data))]);
    client.write(Modify, counter(Some(1), None)).await.expect("without data nothing changes");
    assert_eq!(client.read(counter(Some(1), None)).await.unwrap(), counted);
    client.write(Modify, counter(None, Some(CounterData::default()))).await.unwrap();
    let all = client.read(counter(None, None)).await.unwrap();
    assert_eq!(all.len(), 8);
    assert!(all.iter().enumerate().all(|(i, c)| *c == counter(Some(i as i64), Some(CounterData::default()))));
}

#[tokio::test]
async fn direct_counters_live_with_their_entry() {
    let (rig, mut client) = Rig::ready().await;
    client.insert(dmac(1, 2)).await.unwrap();
    rig.inject(1, &frame(1, 0x0800)).await;
    let key = TableEntry { action: None, ..dmac(1, 2).build(schema()).unwrap() };
    let asked = TableEntry { counter_data: Some(CounterData::default()), ..key.clone() };
    let read = client.table(asked).await;
    assert_eq!(
        read[0].counter_data,
        Some(CounterData { packet_count: 1, byte_count: 0 }),
        "it counts packets"
    );
    assert_eq!(client.table(key.clone()).await[0].counter_data, None, "only when asked for");
    let direct = |data| {
        let table_entry = Some(key.clone());
        EntityKind::DirectCounterEntry(DirectCounterEntry { table_entry, data })
    };
    let set = CounterData { packet_count: 41, byte_count: 0 };
    client.write(Modify, direct(Some(set))).await.unwrap();
    rig.inject(1, &frame(1, 0x0800)).await;
    let expected = direct(Some(CounterData { packet_count: 42, byte_count: 0 }));
    assert_eq!(client.read(direct(None)).await.unwrap(), [expected.clone()]);
    let all = EntityKind::DirectCounterEntry(DirectCounterEntry {
        table_entry: Some(TableEntry::default()),
        data: None,
    });
    assert_eq!(client.read(all).await.unwrap(), [expected]);
    assert_eq!(code(client.write(Insert, direct(Some(set))).await), Code::InvalidArgument);
    client.entry(Delete, key.clone()).await.unwrap();
    assert_eq!(code(client.write(Modify, direct(Some(set))).await), Code::NotFound);
}

#[tokio::test]
async fn meters_are_configured_and_reset() {
    let (_rig, mut client) = Rig::ready().await;
    let config = MeterConfig { cir: 1000, cburst: 100, pir: 2000, pburst: 200, eburst: 0 };
    client.write(Modify, meter(Some(2), Some(config))).await.unwrap();
    assert_eq!(client.read(meter(Some(2), None)).await.unwrap(), [meter(Some(2), Some(config))]);
    assert_eq!(client.read(meter(Some(3), None)).await.unwrap(), [meter(Some(3), None)]);
    client.write(Modify, meter(Some(2), None)).await.unwrap();
    assert_eq!(client.read(meter(Some(2), None)).await.unwrap(), [meter(Some(2), None)]);
    for wrong in [
        MeterConfig { eburst: 1, ..config },
        MeterConfig { cir: -1, ..config },
        MeterConfig { pir: 999, ..config },
    ] {
        assert_eq!(code(client.write(Modify, meter(Some(2), Some(wrong))).await), Code::InvalidArgument);
    }
}

#[tokio::test]
async fn a_meters_counts_by_colour_are_told_if_asked_for() {
    let (rig, mut client) = Rig::ready().await;
    // One frame of 64 bytes is green, the next yellow, all others red.
    let config = MeterConfig { cir: 0, cburst: 100, pir: 0, pburst: 150, eburst: 0 };
    client.write(Modify, meter(Some(2), Some(config))).await.unwrap();
    for _ in 0..4 {
        rig.inject(3, &frame(1, 0x0800)).await;
    }
    let asked = |counts| match meter(Some(2), Some(config)) {
        EntityKind::MeterEntry(entry) => {
            EntityKind::MeterEntry(MeterEntry { counter_data: Some(counts), ..entry })
        }
        other => other,
    };
    let count = |packet_count: i64| Some(CounterData { packet_count, byte_count: 64 * packet_count });
    let counts = MeterCounterData { green: count(1), yellow: count(1), red: count(2) };
    assert_eq!(client.read(asked(MeterCounterData::default())).await.unwrap(), [asked(counts)]);
    assert_eq!(client.read(meter(Some(2), None)).await.unwrap(), [meter(Some(2), Some(config))]);
    let set = MeterCounterData { green: count(7), yellow: count(0), red: count(1) };
    client.write(Modify, asked(set)).await.unwrap();
    assert_eq!(client.read(asked(MeterCounterData::default())).await.unwrap(), [asked(set)]);

    // The same of an entry's own meter.
    let entry = crate::idle::source(99, 0);
    client.entry(Insert, entry.clone()).await.unwrap();
    rig.inject(3, &frame(1, 0x0800)).await;
    let asked = TableEntry { meter_counter_data: Some(Default::default()), ..wildcard("sources") };
    let found = client.table(asked).await;
    let one = MeterCounterData { green: count(1), yellow: count(0), red: count(0) };
    assert_eq!(found[0].meter_counter_data, Some(one));
    let key = TableEntry { action: None, metadata: Vec::new(), ..entry };
    let direct = |counts| {
        let table_entry = Some(key.clone());
        EntityKind::DirectMeterEntry(DirectMeterEntry {
            table_entry,
            config: None,
            counter_data: Some(counts),
        })
    };
    assert_eq!(client.read(direct(MeterCounterData::default())).await.unwrap(), [direct(one)]);
    client.write(Modify, direct(set)).await.unwrap();
    assert_eq!(client.read(direct(MeterCounterData::default())).await.unwrap(), [direct(set)]);
}

#[tokio::test]
async fn multicast_groups_copy_packets_and_read_back() {
    let (rig, mut client) = Rig::ready().await;
    client.write(Insert, group(3, &[1, 2, 4])).await.unwrap();
    assert_eq!(code(client.write(Insert, group(3, &[1])).await), Code::AlreadyExists);
    assert_eq!(code(client.write(Modify, group(4, &[1])).await), Code::NotFound);
    assert_eq!(code(client.write(Insert, group(0, &[1])).await), Code::InvalidArgument);
    assert_eq!(code(client.write(Insert, group(5, &[1, 1])).await), Code::InvalidArgument);
    assert_eq!(client.read(group(3, &[])).await.unwrap(), [group(3, &[1, 2, 4])]);
    assert_eq!(client.read(group(0, &[])).await.unwrap(), [group(3, &[1, 2, 4])]);
    let entry = p4rack_p4rt::entity::Entry::of("dmac").exact("hdr.ethernet.dst", [2, 0, 0, 0, 0, 1]);
    client.insert(entry.action("to_group").param("group", 3)).await.unwrap();
    rig.inject(3, &frame(1, 0x0800)).await;
    let mut ports: Vec<u16> = rig.sent(3).await.into_iter().map(|(port, _)| port).collect();
    ports.sort();
    assert_eq!(ports, [1, 2, 4]);
    client.write(Delete, group(3, &[])).await.unwrap();
    assert_eq!(client.read(group(0, &[])).await.unwrap(), []);
    assert_eq!(code(client.write(Delete, group(3, &[])).await), Code::NotFound);
}

#[tokio::test]
async fn the_older_way_to_name_a_replicas_port_reads_back_as_written() {
    let (_rig, mut client) = Rig::ready().await;
    #[allow(deprecated)]
    let port_kind = Some(replica::PortKind::EgressPort(2));
    let replicas = vec![Replica { port_kind, instance: 0, ..Default::default() }];
    let session = pre(PreType::CloneSessionEntry(CloneSessionEntry {
        session_id: 9,
        replicas,
        class_of_service: 3,
        packet_length_bytes: 128,
    }));
    client.write(Insert, session.clone()).await.unwrap();
    let all = pre(PreType::CloneSessionEntry(CloneSessionEntry::default()));
    assert_eq!(client.read(all).await.unwrap(), [session]);
}

#[tokio::test]
async fn a_backup_stands_in_while_the_replicas_port_is_down() {
    let (rig, mut client) = Rig::ready().await;
    let group = backed_group(3, 1, &[4, 2]);
    client.write(Insert, group.clone()).await.unwrap();
    let all = packet_replication_engine_entry::Type::MulticastGroupEntry(Default::default());
    assert_eq!(client.read(pre(all)).await.unwrap(), [group], "the order is kept");
    let entry = p4rack_p4rt::entity::Entry::of("dmac").exact("hdr.ethernet.dst", [2, 0, 0, 0, 0, 1]);
    client.insert(entry.action("to_group").param("group", 3)).await.unwrap();
    for (count, (changes, port)) in
        [(&[][..], 1), (&[(1, false)], 4), (&[(4, false)], 2), (&[(1, true)], 1), (&[(1, false)], 2)]
            .into_iter()
            .enumerate()
    {
        let changes = changes.to_vec();
        let change = move |switch: &mut p4rack_switch::Switch, _| {
            changes.iter().for_each(|&(port, up)| switch.set_port_up(port, up))
        };
        rig.handle.call(change).await.unwrap();
        rig.inject(3, &frame(1, 0x0800)).await;
        let sent = rig.sent(count + 1).await;
        assert_eq!((sent.len(), sent[count].0), (count + 1, port), "step {count}");
    }
    // All of it holds for clone sessions too.
    let session = pre(PreType::CloneSessionEntry(CloneSessionEntry {
        session_id: 9,
        replicas: vec![replica(1, &[4])],
        ..Default::default()
    }));
    client.write(Insert, session.clone()).await.unwrap();
    let all = pre(PreType::CloneSessionEntry(CloneSessionEntry::default()));
    assert_eq!(client.read(all).await.unwrap(), [session]);
}

#[tokio::test]
async fn replicas_and_backups_are_unique_and_a_backup_has_another_port() {
    let (_rig, mut client) = Rig::ready().await;
    let of = |replicas| {
        pre(PreType::MulticastGroupEntry(MulticastGroupEntry {
            multicast_group_id: 4,
            replicas,
            metadata: Vec::new(),
        }))
    };
    let large = BackupReplica { port: vec![3], instance: 1 << 16 };
    let wide = BackupReplica { port: vec![2, 0], instance: 0 };
    let (mut too_large, mut too_wide) = (replica(1, &[2]), replica(1, &[2]));
    too_large.backup_replicas.push(large);
    too_wide.backup_replicas.push(wide);
    for (replicas, expected) in [
        (vec![replica(1, &[1])], Code::InvalidArgument),
        (vec![replica(1, &[3]), replica(2, &[3])], Code::InvalidArgument),
        (vec![replica(1, &[3, 3])], Code::InvalidArgument),
        (vec![replica(1, &[]), replica(1, &[])], Code::InvalidArgument),
        (vec![too_large], Code::InvalidArgument),
        (vec![too_wide], Code::OutOfRange),
    ] {
        assert_eq!(code(client.write(Insert, of(replicas.clone())).await), expected, "{replicas:?}");
    }
    assert_eq!(client.read(group(0, &[])).await.unwrap(), []);
    client.write(Insert, of(vec![replica(1, &[3]), replica(2, &[4])])).await.unwrap();
}

#[tokio::test]
async fn what_is_not_offered_says_so() {
    let (_rig, mut client) = Rig::ready().await;
    let refused = client.write(Insert, EntityKind::ExternEntry(ExternEntry::default())).await.unwrap_err();
    assert_eq!(refused.code, Code::Unimplemented);
    assert_eq!(refused.message, "externs beyond v1model's are not offered by this switch");
}
