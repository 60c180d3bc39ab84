//! Tables of the device: entries read back as written, and updates are undone whole.

use crate::rig::*;
use p4rack_bfrt::{Entry, Value};
use p4rack_p4rt::bfrt_proto::update::Type;
use p4rack_p4rt::bfrt_proto::write_request::Atomicity;
use p4rack_p4rt::bfrt_proto::*;
use p4rack_switch::Config;

fn numbers(numbers: &[u32]) -> Value {
    Value::Numbers(numbers.to_vec())
}

fn node(id: u128, ports: &[u32]) -> Entry {
    let node = Entry::of("$pre.node").exact("$MULTICAST_NODE_ID", id).data("$MULTICAST_RID", 1u16);
    node.data("$MULTICAST_LAG_ID", numbers(&[])).data("$DEV_PORT", numbers(ports))
}

fn set(id: u128, nodes: &[u32]) -> Entry {
    Entry::of("$pre.ecmp").exact("$MULTICAST_ECMP_ID", id).data("$MULTICAST_NODE_ID", numbers(nodes))
}

fn group(nodes: &[u32], sets: &[u32]) -> Entry {
    let group = Entry::of("$pre.mgid").exact("$MGID", 1);
    group.data("$MULTICAST_NODE_ID", numbers(nodes)).data("$MULTICAST_ECMP_ID", numbers(sets))
}

fn lag(ports: &[u32]) -> Entry {
    Entry::of("$pre.lag").exact("$MULTICAST_LAG_ID", 7).data("$DEV_PORT", numbers(ports))
}

fn pruned(id: u128, ports: &[u32]) -> Entry {
    Entry::of("$pre.prune").exact("$MULTICAST_L2_XID", id).data("$DEV_PORT", numbers(ports))
}

fn port(port: u128) -> Entry {
    Entry::of("$pre.port").exact("$DEV_PORT", port)
}

#[tokio::test]
async fn tables_of_the_replication_engine_are_cleared_and_no_transaction_brings_them_back() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let build = |entry: Entry| entry.build(&schema).unwrap();
    for entry in [node(9, &[1]), node(5, &[2, 3]), node(7, &[]), set(2, &[9, 5]), set(1, &[7])] {
        client.one(Type::Insert, build(entry)).await.unwrap();
    }
    client.one(Type::Insert, build(group(&[7, 9, 5], &[2, 1]))).await.unwrap();
    client.one(Type::Modify, build(lag(&[2, 3]))).await.unwrap();
    client.one(Type::Modify, build(pruned(3, &[1, 4]))).await.unwrap();
    let backup = port(1).data("$MULTICAST_BACKUP_PORT", 3u32).data("$COPY_TO_CPU_PORT_ENABLE", true);
    client.one(Type::Modify, build(backup)).await.unwrap();
    assert_eq!(
        client.entries(&schema, "$pre.mgid").await[0].get("$MULTICAST_ECMP_ID"),
        Some(&numbers(&[2, 1]))
    );
    // As with the driver: what an update before the refused one did to the device stays, what it did to the program does not.
    let insert = update(Type::Insert, to(1, 1).build(&schema).unwrap());
    let fails = update(Type::Delete, build(node(77, &[])));
    let tables = ["$pre.mgid", "$pre.ecmp", "$pre.node", "$pre.lag", "$pre.prune", "$pre.port"];
    for (table, left) in tables.into_iter().zip([0, 0, 0, 256, 288, 5]) {
        let clear = update(Type::Delete, all_of(&schema, table));
        let three = vec![insert.clone(), clear, fails.clone()];
        client.write(Atomicity::RollbackOnError, three).await.unwrap_err();
        assert_eq!(client.entries(&schema, table).await.len(), left, "{table}");
        assert!(client.entries(&schema, "exact_dst").await.is_empty());
    }
    let port = &client.entries(&schema, "$pre.port").await[0];
    assert_eq!(port.get("$MULTICAST_BACKUP_PORT").and_then(Value::number), Some(1), "its own");
    assert_eq!(port.get("$COPY_TO_CPU_PORT_ENABLE"), Some(&Value::Bool(false)));
}

#[tokio::test]
async fn numbers_that_no_port_and_no_hash_has_are_refused() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let build = |entry: Entry| entry.build(&schema).unwrap();
    let far = client.one(Type::Modify, build(port(2).data("$MULTICAST_BACKUP_PORT", 65_537u32))).await;
    assert!(far.unwrap_err().1.contains("65537 is not 0 to 65535"));
    let session = Entry::of("$mirror.cfg").exact("$sid", 7).action("$normal").data("$session_enable", true);
    let far = session.data("$level2_mcast_hash", 65_536u32);
    assert!(client.one(Type::Insert, build(far)).await.unwrap_err().1.contains("$level2_mcast_hash 65536"));
    // The CPU port has an entry like others.
    client.one(Type::Modify, build(port(510).data("$MULTICAST_FORWARD_STATE", false))).await.unwrap();
    let ports = client.entries(&schema, "$pre.port").await;
    let states: Vec<_> = ports.iter().map(|port| port.get("$MULTICAST_FORWARD_STATE")).collect();
    let (yes, no) = (Some(&Value::Bool(true)), Some(&Value::Bool(false)));
    assert_eq!(states, [yes, yes, yes, yes, no]);
    assert_eq!(ports[4].exact_number("$DEV_PORT"), Some(510));
}

#[tokio::test]
async fn internal_ports_are_those_that_come_back_in_their_pipes() {
    let rig = Rig::with(Config { ports: ports_of(&[1, 2]), internal_pipes: vec![1], ..Config::default() });
    let rig = rig.await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let asked = TableEntry { is_default_entry: true, ..all_of(&schema, "tf1.dev.device_configuration") };
    let found = client.read(vec![entity::Entity::TableEntry(asked)]).await.unwrap();
    let Some(entity::Entity::TableEntry(found)) = &found[0].entity else { panic!("{found:?}") };
    let device = Entry::read(&schema, found).unwrap();
    let list = |field: &str| match device.get(field) {
        Some(Value::Numbers(numbers)) => numbers.clone(),
        other => panic!("{other:?}"),
    };
    let internal = list("internal_port_list");
    assert_eq!(internal, (128..128 + 72).collect::<Vec<u32>>());
    assert_eq!(list("external_port_list"), [1, 2]);
    assert!(list("recirc_port_list").iter().all(|port| *port < 128));
    let came_back =
        rig.handle.call(move |switch, _| internal.iter().all(|port| switch.comes_back(*port as u16)));
    assert!(came_back.await.unwrap());
}

#[tokio::test]
async fn members_keep_their_order_if_the_device_says_so_and_a_hash_selects_one() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let build = |entry: Entry| entry.build(&schema).unwrap();
    for member in 1..=3u16 {
        let entry = Entry::of("profile").exact("$ACTION_MEMBER_ID", member.into()).action("send");
        client.one(Type::Insert, build(entry.data("port", member).data("queue", 0u16))).await.unwrap();
    }
    let group = |id: u128| {
        let status = Value::Bools(vec![true; 3]);
        let group = Entry::of("selector").exact("$SELECTOR_GROUP_ID", id).data("$MAX_GROUP_SIZE", 8u32);
        group.data("$ACTION_MEMBER_ID", numbers(&[3, 1, 2])).data("$ACTION_MEMBER_STATUS", status)
    };
    client.one(Type::Insert, build(group(1))).await.unwrap();
    let keeps = Entry::default_of("tf1.dev.device_configuration").data("selector_member_order", true);
    client.one(Type::Modify, build(keeps)).await.unwrap();
    client.one(Type::Insert, build(group(2))).await.unwrap();
    let groups = client.entries(&schema, "selector").await;
    let members: Vec<_> = groups.iter().map(|group| group.get("$ACTION_MEMBER_ID")).collect();
    assert_eq!(members, [Some(&numbers(&[1, 2, 3])), Some(&numbers(&[3, 1, 2]))]);
    let mut selected = Vec::new();
    for hash in 0..6 {
        let asked = Entry::of("selector_get_member").exact("$SELECTOR_GROUP_ID", 2).exact("hash_value", hash);
        let asked = TableEntry { data: None, ..build(asked) };
        let found = client.read(vec![entity::Entity::TableEntry(asked)]).await.unwrap();
        let Some(entity::Entity::TableEntry(found)) = &found[0].entity else { panic!("{found:?}") };
        let found = Entry::read(&schema, found).unwrap();
        selected.push(found.get("$ACTION_MEMBER_ID").and_then(Value::number).unwrap());
    }
    assert_eq!(selected[..3], selected[3..], "the hash modulo three");
    selected.truncate(3);
    selected.sort_unstable();
    assert_eq!(selected, [1, 2, 3]);
}

#[tokio::test]
async fn groups_of_pipes_have_sizes_of_their_own() {
    let rig = Rig::with_ports(&[1, 129]).await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let pipe = |pipe_id| Some(TargetDevice { pipe_id, ..ALL });
    let group = |pipe_id, size: u32| {
        let group = Entry::of("selector").exact("$SELECTOR_GROUP_ID", 1).data("$MAX_GROUP_SIZE", size);
        TableEntry { entry_tgt: pipe(pipe_id), ..group.build(&schema).unwrap() }
    };
    client.one(Type::Insert, group(0, 5)).await.unwrap();
    client.one(Type::Insert, group(1, 7)).await.unwrap();
    let size = async |client: &mut Client, pipe_id| {
        let asked = TableEntry { data: None, ..group(pipe_id, 1) };
        let found = client.read(vec![entity::Entity::TableEntry(asked)]).await.unwrap();
        let Some(entity::Entity::TableEntry(found)) = &found[0].entity else { panic!("{found:?}") };
        Entry::read(&schema, found).unwrap().get("$MAX_GROUP_SIZE").and_then(Value::number)
    };
    assert_eq!((size(&mut client, 0).await, size(&mut client, 1).await), (Some(5), Some(7)));
    client.one(Type::Delete, group(0, 5)).await.unwrap();
    assert_eq!(size(&mut client, 1).await, Some(7));
}

/// The program for the second generation.
fn second() -> String {
    PROGRAM.replace("<tna.p4>", "<t2na.p4>").replace("bit<5> queue", "bit<7> queue")
}

#[tokio::test]
async fn generators_wait_for_the_ports_of_their_mask_in_each_pipe() {
    use p4rack_switch::{PacketTrigger, Pipes};
    let rig = Rig::with_ports(&[1, 129]).await;
    let mut client = rig.bound_to(&second()).await;
    let schema = schema(&mut client).await;
    let build = |entry: Entry| entry.build(&schema).unwrap();
    let pipe = |pipe_id, entry: Entry| TableEntry {
        entry_tgt: Some(TargetDevice { pipe_id, ..ALL }),
        ..build(entry)
    };
    let mask = |at: u128, ports: u64| {
        Entry::of("tf2.pktgen.port_mask").exact("port_mask_sel", at).data("mask", ports)
    };
    let app = |at: u64| {
        let app = Entry::of("tf2.pktgen.app_cfg").exact("app_id", 3).action("trigger_port_down");
        app.data("port_mask_sel", at).data("app_enable", true)
    };
    // Event that the application in a pipe waits for.
    let waits = async |pipe: usize| {
        let read = move |switch: &mut p4rack_switch::Switch, _| {
            let app = switch.within(Pipes::of([pipe]), |switch| switch.packet_app(3)).unwrap().unwrap().0;
            app.map(|app| app.trigger)
        };
        rig.handle.call(read).await.unwrap()
    };
    let down = |ports| Some(PacketTrigger::PortDown { ports });
    client.one(Type::Modify, build(mask(0, 0b10))).await.unwrap();
    client.one(Type::Modify, build(mask(1, 0b100))).await.unwrap();
    client.one(Type::Modify, pipe(0, app(0))).await.unwrap();
    client.one(Type::Modify, pipe(1, app(1))).await.unwrap();
    assert_eq!((waits(0).await, waits(1).await), (down(0b10), down(0b100)));
    client.one(Type::Modify, build(mask(1, 0b1000))).await.unwrap();
    assert_eq!((waits(0).await, waits(1).await), (down(0b10), down(0b1000)));
    for (at, ports) in [(0, 0b10), (1, 0b1000)] {
        let asked = TableEntry { data: None, ..build(mask(at, 0)) };
        let found = client.read(vec![entity::Entity::TableEntry(asked)]).await.unwrap();
        let Some(entity::Entity::TableEntry(found)) = &found[0].entity else { panic!("{found:?}") };
        assert_eq!(Entry::read(&schema, found).unwrap().get("mask").and_then(Value::number), Some(ports));
    }
    // All applications of one pipe go, and all masks are reset.
    let all = |table| all_of(&schema, table);
    client.one(Type::Modify, pipe(1, app(1).data("app_enable", false))).await.unwrap();
    client.one(Type::Delete, in_pipe(1, all("tf2.pktgen.app_cfg"))).await.unwrap();
    assert_eq!((waits(0).await, waits(1).await), (down(0b10), None));
    client.one(Type::Delete, all("tf2.pktgen.port_mask")).await.unwrap();
    assert_eq!(waits(0).await, down(0));
}
