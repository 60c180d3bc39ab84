//! Misbehaving clients, which the bound one must not notice.

use crate::rig::*;
use p4rack_bfrt::Schema;
use p4rack_p4rt::bfrt_proto::set_forwarding_pipeline_config_request::Action;
use p4rack_p4rt::bfrt_proto::update::Type;
use p4rack_p4rt::bfrt_proto::write_request::Atomicity;
use p4rack_p4rt::bfrt_proto::*;
use p4rack_p4rt::google::rpc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tonic::Code;

/// Entries of the bound client, one by one; the longest time that one took.
async fn worst(client: &mut Client, schema: &Schema, from: u64, count: u64) -> Duration {
    let mut worst = Duration::ZERO;
    for mac in from..from + count {
        let began = Instant::now();
        client.one(Type::Insert, to(mac, 1).build(schema).unwrap()).await.unwrap();
        worst = worst.max(began.elapsed());
    }
    worst
}

/// The most memory that this process has had, in MB.
fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() >> 10
}

/// Far more than a busy machine needs for one entry.
const PATIENCE: Duration = Duration::from_secs(5);

#[tokio::test]
async fn silent_connections_and_half_handshakes_keep_nobody_out() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let mut silent = Vec::new();
    for at in 0..200 {
        let mut stream = TcpStream::connect(&rig.addr).await.unwrap();
        if at % 2 == 0 {
            stream.write_all(b"PRI * HTTP/2.0").await.unwrap();
        }
        silent.push(stream);
    }
    let took = worst(&mut client, &schema, 1, 20).await;
    assert!(took < PATIENCE, "{took:?}");
    let mut another = Client::subscribe(&rig, 7).await.unwrap();
    assert!(another.set(Action::Bind, named(NAME)).await.is_err(), "one is bound");
}

#[tokio::test]
async fn there_are_so_many_clients_and_who_leaves_makes_room() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let mut others = Vec::new();
    for id in 1..64 {
        others.push(Client::subscribe(&rig, id).await.unwrap());
    }
    let refused = Client::subscribe(&rig, 64).await.err().unwrap();
    assert!(refused.contains("64 clients are connected"), "{refused}");
    assert!(worst(&mut client, &schema, 1, 20).await < PATIENCE);
    others.pop();
    let began = Instant::now();
    while Client::subscribe(&rig, 64).await.is_err() {
        assert!(began.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_writes_reads_and_programs_beside_good_writes_are_refused() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let (stop, refused) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let before = peak_mb();
    let mut tasks = tokio::task::JoinSet::new();
    for id in 1..9 {
        let mut hostile = Client::subscribe(&rig, id).await.unwrap();
        let (stop, refused) = (stop.clone(), refused.clone());
        let entry = to(9, 1).build(&schema).unwrap();
        tasks.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                // Not bound; no such pipe, device or direction; a schema of another program; an empty one.
                let batch = vec![update(Type::Insert, entry.clone()); 500];
                assert!(hostile.write(Atomicity::ContinueOnError, Vec::new()).await.is_err());
                let wrong = TargetDevice { device_id: 7, pipe_id: 3, direction: 9, prsr_id: 77 };
                assert!(hostile.write_to(wrong, Atomicity::RollbackOnError, batch).await.is_err());
                assert!(hostile.set(Action::Bind, named(NAME)).await.is_err());
                assert!(hostile.set(Action::Bind, named("nobody")).await.is_err());
                let mut other = config(PROGRAM);
                other.bfruntime_info = br#"{"tables":[]}"#.to_vec();
                assert!(hostile.set(Action::VerifyAndWarmInitBeginAndEnd, other).await.is_err());
                refused.fetch_add(5, Ordering::Relaxed);
            }
        });
    }
    let took = worst(&mut client, &schema, 100, 100).await;
    stop.store(true, Ordering::Relaxed);
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    println!("{} refused; a good write took {took:?} at most", refused.load(Ordering::Relaxed));
    assert!(took < PATIENCE && refused.load(Ordering::Relaxed) > 0, "{took:?}");
    let grown = peak_mb() - before;
    assert!(grown < 256, "{grown} MB more");
    assert_eq!(client.entries(&schema, "exact_dst").await.len(), 100, "and nothing else");
}

#[tokio::test]
async fn who_takes_no_answers_keeps_nobody_waiting_and_takes_bounded_memory() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let before = peak_mb();
    for from in (0..4u64).map(|part| part * 1000) {
        let updates = (from..from + 1000).map(|mac| update(Type::Insert, to(mac, 1).build(&schema).unwrap()));
        if client.write(Atomicity::ContinueOnError, updates.collect()).await.is_err() {
            break;
        }
    }
    let there = client.entries(&schema, "exact_dst").await.len();
    // A thousand times all of the table, of a client that names the program and has no stream.
    let all = entity::Entity::TableEntry(all_of(&schema, "exact_dst"));
    let request = ReadRequest {
        target: Some(ALL),
        client_id: 99,
        entities: vec![Entity { entity: Some(all) }; 1000],
        p4_name: NAME.into(),
    };
    let channel = format!("http://{}", rig.addr);
    let mut sleeper = bf_runtime_client::BfRuntimeClient::connect(channel).await.unwrap();
    let mut slow = Vec::new();
    let refused = loop {
        match sleeper.read(request.clone()).await {
            Ok(answers) => slow.push(answers),
            Err(refused) => break refused,
        }
        assert!(slow.len() < 64, "reads without end");
    };
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert!(worst(&mut client, &schema, 1 << 40, 20).await < PATIENCE);
    let grown = peak_mb() - before;
    assert!(grown < 512, "{grown} MB more for {} reads of {there} entries", slow.len());
}

#[tokio::test]
async fn pipes_and_directions_that_do_not_exist_are_refused_by_name() {
    let rig = Rig::start().await;
    let mut client = rig.bound().await;
    let schema = schema(&mut client).await;
    let entry = || update(Type::Insert, to(1, 1).build(&schema).unwrap());
    for wrong in [
        TargetDevice { pipe_id: 1, ..ALL },
        TargetDevice { pipe_id: 0xfffe, ..ALL },
        TargetDevice { device_id: 1, ..ALL },
    ] {
        let status = client.write_to(wrong, Atomicity::ContinueOnError, vec![entry()]).await.unwrap_err();
        let said = match status.code() {
            Code::Unknown => errors(&status).pop().unwrap().1,
            _ => status.message().to_owned(),
        };
        assert!(said.contains("pipe") || said.contains("device"), "{wrong:?}: {said}");
    }
    // A scope with a pipe in two sets; and one with pipes that the switch does not have.
    let table_id = schema.table("exact_dst").unwrap().id;
    let twice = scope(table_id, mode::Scope::UserDefined(0x101));
    let refused = client.write(Atomicity::ContinueOnError, vec![twice]).await.unwrap_err();
    assert_eq!(errors(&refused).pop().unwrap().0, rpc::Code::InvalidArgument as i32, "{refused}");
    let far = scope(table_id, mode::Scope::UserDefined(0xf00f));
    client.write(Atomicity::ContinueOnError, vec![far]).await.unwrap();
    let absent = TargetDevice { pipe_id: 4, ..ALL };
    assert!(client.write_to(absent, Atomicity::ContinueOnError, vec![entry()]).await.is_err());
    assert!(client.entries(&schema, "exact_dst").await.is_empty());
    // An entry of a table that is not the program's.
    let stray = TableEntry { table_id: 0xdead_beef, ..to(1, 1).build(&schema).unwrap() };
    assert!(client.one(Type::Insert, stray).await.is_err());
}
