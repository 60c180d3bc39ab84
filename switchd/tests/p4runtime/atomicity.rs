//! Batches that are applied whole or not at all.

use crate::profiles::{group_of, hop, member, tunnels};
use crate::resources::{counter, group, meter, register};
use crate::rig::*;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::errors::unpack;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::update::Type::{self, Delete, Insert, Modify};
use p4rack_p4rt::p4::v1::write_request::Atomicity;
use p4rack_p4rt::p4::v1::*;

const BOTH: [Atomicity; 2] = [Atomicity::RollbackOnError, Atomicity::DataplaneAtomic];

fn update(kind: Type, entity: EntityKind) -> Update {
    Update { r#type: kind as i32, entity: Some(Entity { entity: Some(entity) }) }
}

fn entry(kind: Type, entry: TableEntry) -> Update {
    update(kind, EntityKind::TableEntry(entry))
}

fn built(last: u8, port: u16) -> TableEntry {
    dmac(last, port).build(schema()).unwrap()
}

/// Codes of the updates; `Ok` if all were applied.
async fn write(client: &mut Client, atomicity: Atomicity, updates: Vec<Update>) -> Result<(), Vec<Code>> {
    let request = WriteRequest {
        device_id: DEVICE,
        election_id: election(1),
        updates,
        atomicity: atomicity as i32,
        ..Default::default()
    };
    let code =
        |outcome: Result<(), p4rack_p4rt::errors::UpdateError>| outcome.err().map_or(Code::Ok, |e| e.code);
    let status = match client.rpc.write(request).await {
        Ok(_) => return Ok(()),
        Err(status) => status,
    };
    Err(unpack(status.details()).unwrap().into_iter().map(code).collect())
}

/// All that a controller can read.
async fn everything(client: &mut Client) -> Vec<EntityKind> {
    let table = TableEntry {
        counter_data: Some(CounterData::default()),
        meter_config: Some(MeterConfig::default()),
        ..Default::default()
    };
    let default = TableEntry { is_default_action: true, ..table.clone() };
    let mut all = Vec::new();
    for request in [
        EntityKind::TableEntry(table),
        EntityKind::TableEntry(default),
        counter(None, None),
        meter(None, None),
        register(None, None),
        group(0, &[]),
        EntityKind::ActionProfileMember(Default::default()),
        EntityKind::ActionProfileGroup(Default::default()),
        EntityKind::ValueSetEntry(Default::default()),
    ] {
        all.extend(client.read(request).await.unwrap());
    }
    all
}

/// One update of every kind, on top of [`furnish`].
fn upheaval() -> Vec<Update> {
    let rates = MeterConfig { cir: 1, cburst: 2, pir: 3, pburst: 4, eburst: 0 };
    let default = TableEntry { is_default_action: true, r#match: Vec::new(), priority: 0, ..built(1, 4) };
    vec![
        entry(Insert, built(2, 2)),
        entry(Modify, built(1, 4)),
        entry(Delete, built(1, 4)),
        entry(Insert, built(1, 2)),
        entry(Modify, default),
        update(Modify, counter(Some(1), Some(CounterData { byte_count: 9, packet_count: 9 }))),
        update(Modify, meter(None, Some(rates))),
        update(Modify, register(None, Some(&[5]))),
        update(Insert, group(2, &[1, 2])),
        update(Modify, group(1, &[4])),
        update(Modify, member(1, 4)),
        update(Insert, member(2, 2)),
        update(Modify, group_of(&[(2, 3)], 8)),
        update(Delete, hop_entry()),
        update(Delete, group_of(&[], 0)),
        update(Modify, tunnels(&[[8, 0]])),
    ]
}

fn hop_entry() -> EntityKind {
    EntityKind::TableEntry(hop(table_action::Type::ActionProfileGroupId(5)))
}

async fn furnish(rig: &Rig, client: &mut Client) {
    let furniture = vec![
        entry(Insert, built(1, 1)),
        update(Modify, register(Some(3), Some(&[9]))),
        update(Insert, group(1, &[1, 3])),
        update(Insert, member(1, 1)),
        update(Insert, group_of(&[(1, 1)], 8)),
        update(Insert, hop_entry()),
        update(Modify, tunnels(&[[0x65, 0x58]])),
    ];
    assert_eq!(write(client, Atomicity::DataplaneAtomic, furniture).await, Ok(()));
    // So that the entry's counter has something to lose.
    rig.inject(2, &frame(1, 0x0800)).await;
}

#[tokio::test]
async fn when_one_update_is_refused_all_are_taken_back() {
    for atomicity in BOTH {
        let (rig, mut client) = Rig::ready().await;
        furnish(&rig, &mut client).await;
        let before = everything(&mut client).await;
        let mut updates = upheaval();
        let good = updates.len();
        updates.push(entry(Insert, built(2, 2)));
        updates.push(entry(Insert, built(3, 2)));
        let codes = write(&mut client, atomicity, updates).await.unwrap_err();
        let mut expected = vec![Code::Aborted; good];
        expected.extend([Code::AlreadyExists, Code::Aborted]);
        assert_eq!(codes, expected);
        let after = everything(&mut client).await;
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(before, after, "{atomicity:?}");
        }
        assert_eq!(before.len(), after.len());
    }
}

#[tokio::test]
async fn a_good_batch_is_applied_whole() {
    for atomicity in BOTH {
        let (rig, mut client) = Rig::ready().await;
        furnish(&rig, &mut client).await;
        assert_eq!(write(&mut client, atomicity, upheaval()).await, Ok(()));
        let after = everything(&mut client).await;
        let ports: Vec<_> = client.table(wildcard("dmac")).await;
        assert!(ports.len() == 2 && ports.contains(&built(1, 2)) && ports.contains(&built(2, 2)));
        assert!(after.contains(&member(2, 2)) && after.contains(&tunnels(&[[8, 0]])));
        assert!(after.contains(&group(2, &[1, 2])) && !after.contains(&hop_entry()));
    }
}

#[tokio::test]
async fn a_batch_longer_than_a_turn_is_taken_back_too() {
    for atomicity in BOTH {
        let (_rig, mut client) = Rig::ready().await;
        let route = |n: u8| {
            let entry = p4rack_p4rt::entity::Entry::of("routes");
            let prefix = ([2, 0, 0, 0, n, 0], 40);
            entry.lpm("hdr.ethernet.src", prefix.0, prefix.1).action("pass").build(schema()).unwrap()
        };
        let mut updates: Vec<Update> = (0..200).map(|n| entry(Insert, route(n))).collect();
        updates.push(Update::default());
        let codes = write(&mut client, atomicity, updates).await.unwrap_err();
        assert_eq!((codes.len(), codes[199], codes[200]), (201, Code::Aborted, Code::InvalidArgument));
        assert_eq!(client.table(wildcard("routes")).await, []);
    }
}

/// Two entries always forward to one port, which each write changes for both: how many pairs of frames, one for each
/// entry, were sent to different ports.
async fn torn(atomicity: Atomicity) -> usize {
    let (rig, mut client) = Rig::ready().await;
    for last in [1, 2] {
        client.insert(dmac(last, 1)).await.unwrap();
    }
    let writes = async {
        for turn in 0..12u16 {
            let port = 1 + turn % 2;
            let mut updates = vec![entry(Modify, built(1, port))];
            updates.extend((0..3000).map(|_| update(Modify, register(Some(5), Some(&[1])))));
            updates.push(entry(Modify, built(2, port)));
            write(&mut client, atomicity, updates).await.unwrap();
        }
    };
    let (mut pairs, mut torn) = (0, 0);
    let frames = async {
        loop {
            let pair = |switch: &mut p4rack_switch::Switch, now| {
                [frame(1, 0x0800), frame(2, 0x0800)]
                    .iter()
                    .for_each(|frame| switch.handle_frame(3, frame, now));
                let mut sent = Vec::new();
                std::iter::from_fn(|| switch.poll_transmit(now, &mut sent)).collect::<Vec<u16>>()
            };
            let ports = rig.handle.call(pair).await.unwrap();
            assert_eq!(ports.len(), 2);
            pairs += 1;
            torn += usize::from(ports[0] != ports[1]);
        }
    };
    tokio::select! {
        () = writes => {}
        () = frames => {}
    }
    assert!(pairs > 10, "{pairs}");
    torn
}

#[tokio::test]
async fn no_packet_sees_half_of_a_data_plane_atomic_write() {
    assert_eq!(torn(Atomicity::DataplaneAtomic).await, 0);
    // The other kinds let packets pass between updates: the check can fail. On a busy machine none may come by.
    for _ in 0..20 {
        if torn(Atomicity::RollbackOnError).await > 0 {
            return;
        }
    }
    panic!("no packet was seen between updates");
}
