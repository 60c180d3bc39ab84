//! Tables of the traffic manager, as frames see them.

use crate::rig::*;
use p4rack_bfrt::{Entry, Schema, Value};
use p4rack_p4rt::bfrt_proto::update::Type;
use p4rack_p4rt::bfrt_proto::write_request::Atomicity;
use p4rack_p4rt::bfrt_proto::{TableEntry, entity};
use p4rack_p4rt::google::rpc::Code;
use p4rack_switch::{Config, PortConfig, Switch};
use p4rack_wire::Nanos;

/// A frame's bytes, with FCS, and cells of 80 bytes of ten of them.
const LEN: usize = 1_000;
const CELLS_OF_TEN: u64 = 126;

fn wires() -> Config {
    let ports = [1, 2, 130].map(|port| PortConfig::new(port, 1_000_000_000)).to_vec();
    Config { ports, pipes: 2, buffer_bytes: 1 << 20, ..Config::default() }
}

/// A rig whose frames to MAC address `n` leave by queue `n` of port 2.
async fn rig() -> (Rig, Client, Schema) {
    let rig = Rig::with(wires()).await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    for queue in 0..8 {
        let entry = to(queue, 2).data("queue", queue);
        client.one(Type::Insert, entry.build(&schema).unwrap()).await.unwrap();
    }
    (rig, client, schema)
}

/// Injects frames at the same time, each for a queue. Returns queue and time in nanoseconds of all that
/// leave within a second.
async fn leave(rig: &Rig, queues: Vec<u8>) -> Vec<(u8, u64)> {
    let run = move |switch: &mut Switch, now: Nanos| {
        let (mut sent, mut out) = (Vec::new(), Vec::new());
        for queue in queues {
            let mut frame = vec![0; LEN];
            frame[5] = queue;
            switch.handle_frame(1, &frame, now);
        }
        let mut at = now;
        while at.0 <= now.0 + 1_000_000_000 {
            while switch.poll_transmit(at, &mut out).is_some() {
                sent.push((out[5], at.0 - now.0));
            }
            let Some(next) = switch.next_timeout() else { break };
            at = next.max(at);
        }
        sent
    };
    rig.handle.call(run).await.unwrap()
}

fn queue(table: &str, queue: u128) -> Entry {
    // Port 2 is the third of the first group.
    Entry::of(&format!("tf1.tm.{table}")).exact("pg_id", 0).exact("pg_queue", 16 + queue)
}

fn port(table: &str) -> Entry {
    Entry::of(&format!("tf1.tm.{table}")).exact("dev_port", 2)
}

fn count(entry: &Entry, field: &str) -> u64 {
    entry.get(field).and_then(Value::number).unwrap()
}

/// Changes a row in the pipe of port 2.
async fn change(client: &mut Client, schema: &Schema, entry: Entry) -> Result<(), (i32, String)> {
    client.one(Type::Modify, in_pipe(0, entry.build(schema).unwrap())).await
}

async fn set(client: &mut Client, schema: &Schema, entry: Entry) {
    change(client, schema, entry).await.unwrap();
}

/// Entry of a table for one of the queues of port 2.
async fn of_queue(client: &mut Client, schema: &Schema, table: &str, number: u64) -> Entry {
    let all = client.entries(schema, &format!("tf1.tm.{table}")).await;
    all.into_iter().find(|entry| entry.exact_number("pg_queue") == Some(16 + number)).unwrap()
}

#[tokio::test]
async fn ports_say_where_their_queues_are() {
    let (_rig, mut client, schema) = rig().await;
    let ports = client.entries(&schema, "tf1.tm.port.cfg").await;
    let places: Vec<_> =
        ports.iter().map(|port| ["pg_id", "pg_port_nr"].map(|field| count(port, field))).collect();
    assert_eq!(places, [[0, 1], [0, 2], [0, 2]]);
    let own = Value::Numbers((16..24).collect());
    assert_eq!(ports[1].get("egress_qid_queues"), Some(&own));
    // Those of the first pipe; its two ports have eight each.
    let map = client.entries(&schema, "tf1.tm.queue.map").await;
    assert_eq!(map.len(), 16);
    assert_eq!((count(&map[8], "dev_port"), count(&map[8], "queue_nr")), (2, 0));
    let refused = change(&mut client, &schema, queue("queue.map", 0).data("queue_nr", 1u16)).await;
    assert!(refused.unwrap_err().1.contains("can only be read"));
}

#[tokio::test]
async fn a_queue_is_delayed_to_its_rate_and_a_port_to_its_own() {
    let (rig, mut client, schema) = rig().await;
    let rate = |entry: Entry, rate: u32| {
        entry.data("unit", "BPS").data("max_rate", rate).data("max_burst_size", 0u32)
    };
    // 8.032 Mb/s: a millisecond for a frame with FCS.
    set(&mut client, &schema, rate(queue("queue.sched_shaping", 7), 8_032)).await;
    let before = leave(&rig, vec![7; 3]).await;
    assert!(before[2].1 < 30_000, "not enabled: {before:?}");
    set(&mut client, &schema, queue("queue.sched_cfg", 7).data("max_rate_enable", true)).await;
    let sent = leave(&rig, vec![7, 7, 7, 0]).await;
    assert_eq!(sent.iter().map(|(queue, _)| *queue).collect::<Vec<_>>(), [7, 0, 7, 7]);
    let (second, third) = (sent[2].1, sent[3].1);
    assert!((1_000_000..1_010_000).contains(&(third - second)), "{sent:?}");
    // The port as a whole: 100 frames a second, all queues together.
    let frames = port("port.sched_shaping").data("unit", "PPS").data("max_rate", 100u32);
    set(&mut client, &schema, frames).await;
    set(&mut client, &schema, port("port.sched_cfg").data("max_rate_enable", true)).await;
    let sent = leave(&rig, vec![1, 2, 3]).await;
    assert_eq!(sent.iter().map(|(queue, _)| *queue).collect::<Vec<_>>(), [3, 2, 1]);
    assert_eq!(sent[2].1 - sent[1].1, 10_000_000);
    // As before after a reset.
    for table in ["tf1.tm.port.sched_cfg", "tf1.tm.queue.sched_cfg"] {
        client.one(Type::Delete, all_of(&schema, table)).await.unwrap();
    }
    let sent = leave(&rig, vec![7, 7, 7]).await;
    assert!(sent[2].1 - sent[0].1 < 30_000, "{sent:?}");
}

#[tokio::test]
async fn priorities_weights_and_a_queue_that_is_held() {
    let (rig, mut client, schema) = rig().await;
    let first = queue("queue.sched_cfg", 0).data("max_priority", "HIGH");
    set(&mut client, &schema, first).await;
    for (number, weight) in [(1, 300u32), (2, 100)] {
        let equal = queue("queue.sched_cfg", number).data("max_priority", "3").data("dwrr_weight", weight);
        set(&mut client, &schema, equal).await;
    }
    set(&mut client, &schema, queue("queue.sched_cfg", 6).data("scheduling_enable", false)).await;
    let frames = [vec![6; 5], [2, 1].repeat(20), vec![0; 4]].concat();
    let sent: Vec<u8> = leave(&rig, frames).await.into_iter().map(|(queue, _)| queue).collect();
    assert_eq!((sent.len(), &sent[..4]), (44, &[0; 4][..]));
    let heavy = sent[4..24].iter().filter(|queue| **queue == 1).count();
    assert!(heavy.abs_diff(15) <= 1, "{sent:?}");
    let waiting = of_queue(&mut client, &schema, "counter.queue", 6).await;
    assert_eq!(count(&waiting, "usage_cells"), (5 * (LEN as u64 + 4)).div_ceil(80));
    let held = of_queue(&mut client, &schema, "queue.sched_cfg", 6).await;
    assert_eq!(held.get("scheduling_enable"), Some(&Value::Bool(false)));
    // The queue drains without further frames.
    set(&mut client, &schema, queue("queue.sched_cfg", 6).data("scheduling_enable", true)).await;
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let waiting = of_queue(&mut client, &schema, "counter.queue", 6).await;
    assert_eq!(count(&waiting, "usage_cells"), 0);
    assert_eq!(count(&waiting, "watermark_cells"), (5 * (LEN as u64 + 4)).div_ceil(80));
}

#[tokio::test]
async fn limits_of_queues_drop_and_drops_are_counted() {
    let (rig, mut client, schema) = rig().await;
    let hold = |number| queue("queue.sched_cfg", number).data("scheduling_enable", false);
    for number in [4, 5] {
        set(&mut client, &schema, hold(number)).await;
    }
    let shared = |number: u128, cells: u64, share: &str| {
        let entry = queue("queue.buffer", number).action("shared_pool").data("pool_id", "EG_APP_POOL_0");
        entry.data("pool_max_cells", cells).data("dynamic_baf", share)
    };
    set(&mut client, &schema, shared(4, CELLS_OF_TEN, "DISABLE")).await;
    leave(&rig, vec![4; 25]).await;
    let found = of_queue(&mut client, &schema, "counter.queue", 4).await;
    assert_eq!(["drop_count_packets", "usage_cells"].map(|field| count(&found, field)), [15, CELLS_OF_TEN]);
    // Half of the free cells, until it holds a third of the buffer without those ten.
    set(&mut client, &schema, shared(5, 0, "33%")).await;
    leave(&rig, vec![5; 1000]).await;
    let held = count(&of_queue(&mut client, &schema, "counter.queue", 5).await, "usage_cells");
    let third = ((1u64 << 20) - 10 * 1004) / 3 / 80;
    assert!(held.abs_diff(third) <= CELLS_OF_TEN / 10, "{held} of {third}");
    let port = client.entries(&schema, "tf1.tm.counter.eg_port").await.remove(1);
    let dropped = 15 + 1000 - (held * 80).div_ceil(1004);
    assert!(count(&port, "drop_count_packets").abs_diff(dropped) <= 1, "{port:?}");
    let pool = client.entries(&schema, "tf1.tm.counter.pool").await.remove(0);
    assert_eq!(count(&pool, "usage_cells"), count(&port, "usage_cells"));
    // Cleared by the client, and nothing else is.
    let clear = queue("counter.queue", 4).data("drop_count_packets", 0u64);
    set(&mut client, &schema, clear).await;
    let found = of_queue(&mut client, &schema, "counter.queue", 4).await;
    assert_eq!(
        ["drop_count_packets", "watermark_cells"].map(|field| count(&found, field)),
        [0, CELLS_OF_TEN]
    );
    let buffer = of_queue(&mut client, &schema, "queue.buffer", 4).await;
    assert_eq!((buffer.action_name(), count(&buffer, "pool_max_cells")), (Some("shared_pool"), CELLS_OF_TEN));
}

#[tokio::test]
async fn what_the_switch_cannot_do_is_refused() {
    let (_rig, mut client, schema) = rig().await;
    let buffer = || queue("queue.buffer", 1).action("shared_pool");
    let sched = || queue("queue.sched_cfg", 1);
    for (entry, code, message) in [
        (queue("queue.buffer", 1).action("buffer_only"), Code::Unimplemented, "buffer_only"),
        (buffer().data("guaranteed_cells", 5u32), Code::Unimplemented, "guaranteed_cells"),
        (buffer().data("hysteresis_cells", 5u32), Code::Unimplemented, "hysteresis_cells"),
        (buffer().data("tail_drop_enable", false), Code::Unimplemented, "never drops"),
        (buffer().data("pool_id", "EG_APP_POOL_2"), Code::Unimplemented, "another pool"),
        (buffer().data("pool_max_cells", 0u32), Code::InvalidArgument, "hold nothing"),
        (sched().data("dwrr_weight", 0u16), Code::InvalidArgument, "weight 0"),
        (sched().data("dwrr_weight", 1024u16), Code::InvalidArgument, "weight 1024"),
        (queue("queue.sched_cfg", 9).data("dwrr_weight", 1u16), Code::NotFound, "no such port or queue"),
        (queue("counter.queue", 1).data("drop_count_packets", 3u64), Code::InvalidArgument, "to 0"),
        (port("counter.eg_port").data("drop_count_packets", 0u64), Code::InvalidArgument, "only be read"),
    ] {
        let refused = change(&mut client, &schema, entry).await.unwrap_err();
        assert!(refused.0 == code as i32 && refused.1.contains(message), "{message}: {refused:?}");
    }
    // A rate of 0 can't act.
    let none = in_pipe(0, queue("queue.sched_shaping", 1).data("max_rate", 0u32).build(&schema).unwrap());
    let enable = in_pipe(0, sched().data("max_rate_enable", true).build(&schema).unwrap());
    let both = vec![update(Type::Modify, none), update(Type::Modify, enable)];
    let refused = client.write(Atomicity::RollbackOnError, both).await.unwrap_err();
    assert!(errors(&refused).iter().any(|(_, message)| message.contains("rate of 0")), "{refused:?}");
    let found = of_queue(&mut client, &schema, "queue.sched_shaping", 1).await;
    assert_eq!(count(&found, "max_rate"), 0, "a transaction does not cover it");
    // A row has a pipe, a reset is of all rows, and one table has defaults.
    let everywhere =
        client.one(Type::Modify, sched().data("dwrr_weight", 1u16).build(&schema).unwrap()).await;
    assert!(everywhere.unwrap_err().1.contains("is in one pipe"));
    let asked = TableEntry { data: None, ..queue("queue.buffer", 1).build(&schema).unwrap() };
    let defaults = TableEntry { is_default_entry: true, ..all_of(&schema, "tf1.tm.queue.buffer") };
    for asked in [asked.clone(), defaults.clone()] {
        let refused = client.read(vec![entity::Entity::TableEntry(asked)]).await.unwrap_err();
        assert!(errors(&refused)[0].1.contains("is in one pipe"), "{refused:?}");
    }
    for kind in [Type::Delete, Type::Insert, Type::Reset] {
        let refused = client.one(kind, in_pipe(0, asked.clone())).await.unwrap_err();
        assert_eq!(refused.0, Code::Unimplemented as i32, "{kind:?}: {refused:?}");
    }
    let found = client.read(vec![entity::Entity::TableEntry(in_pipe(0, defaults))]).await.unwrap();
    let Some(entity::Entity::TableEntry(found)) = &found[0].entity else { panic!("{found:?}") };
    let found = Entry::read(&schema, found).unwrap();
    assert!(found.is_default() && found.action_name() == Some("shared_pool"), "{found:?}");
    assert_eq!(count(&found, "pool_max_cells"), (1u64 << 20).div_ceil(80));
}

#[tokio::test]
async fn queues_stay_as_they_are_when_programs_change() {
    let (_rig, mut client, schema) = rig().await;
    set(&mut client, &schema, queue("queue.sched_cfg", 3).data("max_priority", "1")).await;
    use p4rack_p4rt::bfrt_proto::set_forwarding_pipeline_config_request::Action;
    client.set(Action::VerifyAndWarmInitBeginAndEnd, config(PROGRAM)).await.unwrap();
    let found = of_queue(&mut client, &schema, "queue.sched_cfg", 3).await;
    assert_eq!(found.get("max_priority"), Some(&Value::from("1")));
}
