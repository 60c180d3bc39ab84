//! Misbehaving clients, which the others must not notice.

use crate::rig::*;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::update::Type::{Insert, Modify};
use p4rack_p4rt::p4::v1::*;
use p4rack_p4rt::raw;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tonic::Status;
use tonic::transport::Endpoint;

/// Sends bytes where a `WriteRequest` is expected.
async fn write_bytes(rig: &Rig, bytes: Vec<u8>) -> Status {
    let channel = Endpoint::from_shared(format!("http://{}", rig.addr)).unwrap().connect().await.unwrap();
    raw::write(&channel, bytes.into()).await.unwrap_err()
}

#[tokio::test]
async fn malformed_protobuf_is_refused_and_nothing_else_happens() {
    let (rig, mut client) = Rig::ready().await;
    let status = write_bytes(&rig, vec![0xff; 100]).await;
    assert_eq!(status.code(), tonic::Code::Internal, "{status:?}");
    assert!(status.message().contains("Protobuf"), "{status:?}");
    client.insert(dmac(1, 3)).await.unwrap();
}

#[tokio::test]
async fn a_message_over_the_limit_is_refused_and_nothing_else_happens() {
    let (rig, mut client) = Rig::ready().await;
    let status = write_bytes(&rig, vec![0; (128 << 20) + 1]).await;
    assert_eq!(status.code(), tonic::Code::OutOfRange, "{status:?}");
    assert!(status.message().contains("too large"), "{status:?}");
    client.insert(dmac(1, 3)).await.unwrap();
}

#[tokio::test]
async fn a_controller_that_does_not_read_loses_packets_and_nobody_else_waits() {
    let (rig, mut sleeper) = Rig::ready().await;
    sleeper.insert(dmac(1, CPU)).await.unwrap();
    let mut other = Client::connect(&rig).await;
    other.arbitrate(DEVICE, "", election(0)).await;
    assert_eq!(other.next_arbitration().await.0, Code::AlreadyExists);
    // More than the stream's window and queue hold together.
    let large: Vec<u8> = frame(1, 0x0800).into_iter().chain(std::iter::repeat_n(0, 8000)).collect();
    let started = Instant::now();
    while rig.handle.events_lost() == 0 {
        assert!(started.elapsed() < Duration::from_secs(20), "nothing is lost");
        for _ in 0..200 {
            rig.inject(1, &large).await;
        }
    }
    // Messages other than packets still find room.
    let began = Instant::now();
    assert_eq!(other.table(wildcard("dmac")).await.len(), 1);
    sleeper.insert(dmac(2, 1)).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    sleeper.arbitrate(DEVICE, "", election(9)).await;
    let found = async {
        loop {
            if let stream_message_response::Update::Arbitration(update) = sleeper.next().await.unwrap() {
                return update.election_id;
            }
        }
    };
    assert_eq!(tokio::time::timeout(Duration::from_secs(10), found).await.unwrap(), election(9));
}

/// Passes bytes between a client and the server until the returned flag is set.
async fn proxy(server: String) -> (String, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let silent = Arc::new(AtomicBool::new(false));
    let hold = silent.clone();
    tokio::spawn(async move {
        let (client, _) = listener.accept().await.unwrap();
        let server = TcpStream::connect(server).await.unwrap();
        let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
        for (mut from, mut to) in [(from_client, to_server), (from_server, to_client)] {
            let hold = hold.clone();
            tokio::spawn(async move {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = from.read(&mut bytes).await {
                    while hold.load(Ordering::Relaxed) {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                    if to.write_all(&bytes[..count]).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    (addr, silent)
}

#[tokio::test]
async fn a_primary_that_is_heard_of_no_more_is_gone_for_the_others() {
    let mut rig = Rig::start_with(|config| config.keepalive = Duration::from_millis(300)).await;
    let mut standby = Client::connect(&rig).await;
    let (addr, silent) = proxy(rig.addr.clone()).await;
    let direct = std::mem::replace(&mut rig.addr, addr);
    let mut primary = Client::connect(&rig).await;
    rig.addr = direct;
    primary.become_primary(5).await;
    standby.arbitrate(DEVICE, "", election(4)).await;
    assert_eq!(standby.next_arbitration().await, (Code::AlreadyExists, election(5)));
    silent.store(true, Ordering::Relaxed);
    let began = Instant::now();
    assert_eq!(standby.next_arbitration().await, (Code::NotFound, election(5)));
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    silent.store(false, Ordering::Relaxed);
}

#[tokio::test]
async fn many_connections_that_say_nothing_keep_nobody_out() {
    let (rig, mut client) = Rig::ready().await;
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(TcpStream::connect(&rig.addr).await.unwrap());
    }
    for stream in silent.iter_mut().take(100) {
        stream.write_all(b"PRI * HTTP/2.0").await.unwrap();
    }
    client.insert(dmac(1, 3)).await.unwrap();
    let mut another = Client::connect(&rig).await;
    assert_eq!(another.table(wildcard("dmac")).await.len(), 1);
}

#[tokio::test]
async fn more_silent_connections_than_handshakes_may_be_end_each_other_and_nobody_else() {
    let (rig, _client) = Rig::ready().await;
    let mut silent = Vec::new();
    for _ in 0..1_300 {
        silent.push(TcpStream::connect(&rig.addr).await.unwrap());
    }
    let mut another = Client::connect(&rig).await;
    assert_eq!(another.table(wildcard("dmac")).await.len(), 0);
    // No more than 1024 may be under way, and fewer where a process has few sockets.
    let until = Instant::now() + Duration::from_secs(20);
    while rig.handle.turned_away().load(Ordering::Relaxed) < 1_300 - 1_024 {
        assert!(Instant::now() < until, "{:?}", rig.handle.turned_away());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_connection_that_is_silent_is_closed_in_a_handshake_too() {
    let rig = Rig::start_with(|config| config.keepalive = Duration::from_millis(100)).await;
    let mut living = Client::connect(&rig).await;
    for first in [&b""[..], b"PRI * HTTP/2.0\r\n"] {
        let began = Instant::now();
        let mut stream = TcpStream::connect(&rig.addr).await.unwrap();
        stream.write_all(first).await.unwrap();
        let closed = async { while let Ok(1..) = stream.read(&mut [0; 100]).await {} };
        tokio::time::timeout(Duration::from_secs(5), closed).await.unwrap();
        assert!(began.elapsed() >= Duration::from_millis(400), "{:?}", began.elapsed());
    }
    // One that answers the keep-alive stays.
    living.become_primary(1).await;
}

/// Sends bytes one by one; how long it took until the connection was closed.
pub async fn trickle(mut stream: impl AsyncRead + AsyncWrite + Unpin, bytes: &[u8]) -> Duration {
    let began = Instant::now();
    for byte in bytes {
        let written = stream.write_all(&[*byte]).await.and(stream.flush().await);
        let heard = tokio::time::timeout(Duration::from_millis(40), stream.read(&mut [0; 100])).await;
        if written.is_err() || matches!(heard, Ok(Ok(0) | Err(_))) {
            return began.elapsed();
        }
    }
    panic!("it was let in, or is still open");
}

/// Whether a limit of 400 ms was kept.
pub fn is_in_time(took: Duration) -> bool {
    (Duration::from_millis(380)..Duration::from_secs(3)).contains(&took)
}

#[tokio::test]
async fn a_handshake_that_trickles_is_cut_off_and_nobody_else_waits() {
    let rig = Rig::start_with(|config| config.keepalive = Duration::from_millis(100)).await;
    let mut client = Client::connect(&rig).await;
    client.become_primary(1).await;
    client.install().await.unwrap();
    let stream = TcpStream::connect(&rig.addr).await.unwrap();
    // Never silent for long, and never done.
    let slow = tokio::spawn(async move { trickle(stream, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r").await });
    for port in 1..=4 {
        client.insert(dmac(port as u8, port)).await.unwrap();
        let mut another = Client::connect(&rig).await;
        assert_eq!(another.table(wildcard("dmac")).await.len(), usize::from(port));
    }
    let took = slow.await.unwrap();
    assert!(is_in_time(took), "{took:?}");
    assert_eq!(rig.handle.turned_away().load(Ordering::Relaxed), 1);
    // Another protocol is not waited for at all.
    let mut stream = TcpStream::connect(&rig.addr).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(matches!(stream.read(&mut [0; 100]).await, Ok(0) | Err(_)));
    assert_eq!(rig.handle.turned_away().load(Ordering::Relaxed), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_bad_writes_are_refused_and_good_ones_beside_them_are_made_in_turn() {
    const BAD: u64 = 10_000;
    let (rig, mut client) = Rig::ready().await;
    let begun = Arc::new(AtomicU64::new(0));
    let stranger = Client::connect(&rig).await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..32 {
        let (mut rpc, begun) = (stranger.rpc.clone(), begun.clone());
        tasks.spawn(async move {
            let mut refused = 0;
            while begun.fetch_add(1, Ordering::Relaxed) < BAD {
                // From a client that is not primary.
                let request =
                    WriteRequest { device_id: DEVICE, election_id: election(77), ..Default::default() };
                let status = rpc.write(request).await.unwrap_err();
                assert_eq!(status.code(), tonic::Code::PermissionDenied, "{status:?}");
                refused += 1;
            }
            refused
        });
    }
    let (began, mut worst) = (Instant::now(), 0);
    client.insert(dmac(1, 3)).await.unwrap();
    while begun.load(Ordering::Relaxed) < BAD {
        let before = begun.load(Ordering::Relaxed);
        client.entry(Modify, dmac(1, 2).build(schema()).unwrap()).await.unwrap();
        assert_eq!(
            client.entry(Insert, dmac(1, 2).build(schema()).unwrap()).await.unwrap_err().code,
            Code::AlreadyExists
        );
        worst = worst.max(begun.load(Ordering::Relaxed) - before);
    }
    let refused: u64 = tasks.join_all().await.into_iter().sum();
    println!("{refused} bad writes in {:?}, {worst} at most beside two good ones", began.elapsed());
    assert_eq!(refused, BAD);
    // How long that takes is the machine's; that not all of them come before is the server's.
    assert!(worst < BAD / 5, "{worst}");
}

/// Routes, and a read that asks for them `times` times.
async fn many_routes(client: &mut Client, times: usize) -> ReadRequest {
    let updates = (0..1000).map(|n| crate::entries::route(n).update(schema()).unwrap()).collect();
    client.write_all(updates).await.unwrap();
    let entity = Entity { entity: Some(EntityKind::TableEntry(wildcard("routes"))) };
    ReadRequest { device_id: DEVICE, entities: vec![entity; times], ..Default::default() }
}

#[tokio::test]
async fn a_read_is_made_as_its_client_takes_it_and_ends_when_another_program_comes() {
    let (rig, mut client) = Rig::ready().await;
    let request = many_routes(&mut client, 1000).await;
    let mut reader = Client::connect(&rig).await;
    let mut whole = 0;
    let part = ReadRequest { entities: request.entities[..100].to_vec(), ..request.clone() };
    let mut answers = reader.rpc.read(part).await.unwrap().into_inner();
    while let Some(answer) = answers.message().await.unwrap() {
        whole += answer.entities.len();
    }
    assert_eq!(whole, 100 * 1000);
    // The client doesn't read this answer, which holds up this Read alone.
    let mut answers = reader.rpc.read(request).await.unwrap().into_inner();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let install = client.install();
    tokio::time::timeout(Duration::from_secs(5), install).await.expect("a program can come").unwrap();
    let end = loop {
        match answers.message().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("all of it was made while nobody took it"),
            Err(status) => break status,
        }
    };
    assert_eq!(end.code(), tonic::Code::Aborted, "{end:?}");
    assert!(end.message().contains("another program"), "{end:?}");
}

#[tokio::test]
async fn a_connection_has_so_many_reads_at_once_and_others_are_told() {
    let (rig, mut client) = Rig::ready().await;
    let request = many_routes(&mut client, 1000).await;
    let mut greedy = Client::connect(&rig).await;
    let mut open = Vec::new();
    for _ in 0..16 {
        open.push(greedy.rpc.read(request.clone()).await.unwrap());
    }
    let refused = greedy.rpc.read(request).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::ResourceExhausted, "{refused:?}");
    assert!(refused.message().contains("16 reads of this connection"), "{refused:?}");
    assert_eq!(rig.handle.calls_refused().load(Ordering::Relaxed), 1);
    assert_eq!(client.table(wildcard("routes")).await.len(), 1000, "others read");
    drop(open);
    let again = async {
        while greedy.read(EntityKind::TableEntry(wildcard("routes"))).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), again).await.expect("there is room again");
}

#[tokio::test]
async fn a_write_of_too_many_updates_is_refused_before_it_takes_memory() {
    let (rig, mut client) = Rig::ready().await;
    // Each is two bytes, and would take hundreds.
    let status = write_bytes(&rig, [0x22, 0].repeat(8 << 20)).await;
    assert_eq!(status.code(), tonic::Code::ResourceExhausted, "{status:?}");
    assert!(status.message().contains("8388608 updates; the limit is 65536"), "{status:?}");
    client.insert(dmac(1, 3)).await.unwrap();
}

#[tokio::test]
async fn large_requests_at_once_take_a_bounded_amount_of_memory() {
    let (rig, mut client) = Rig::ready().await;
    // One connection has room for two of them.
    let channel = Endpoint::from_shared(format!("http://{}", rig.addr)).unwrap().connect().await.unwrap();
    let large: prost::bytes::Bytes = vec![0x0a; 100 << 20].into();
    let all = (0..4).map(|_| {
        let (channel, large) = (channel.clone(), large.clone());
        tokio::spawn(async move { raw::write(&channel, large).await.unwrap_err() })
    });
    let mut codes = Vec::new();
    for one in all.collect::<Vec<_>>() {
        codes.push(one.await.unwrap().code());
    }
    assert!(codes.contains(&tonic::Code::ResourceExhausted), "{codes:?}");
    assert!(codes.contains(&tonic::Code::Internal), "some came through, and were malformed: {codes:?}");
    client.insert(dmac(1, 3)).await.unwrap();
}

#[tokio::test]
async fn a_read_of_very_many_wildcards_is_charged_and_made_little_by_little() {
    let (_rig, mut client) = Rig::ready().await;
    client.insert(dmac(1, 3)).await.unwrap();
    let all = Entity { entity: Some(EntityKind::TableEntry(wildcard("dmac"))) };
    let (found, count) = client.read_all(vec![all.clone(); 60_000]).await;
    assert_eq!(found.map(|found| found.len()).unwrap(), 60_000);
    assert_eq!(count, 60_000);
    // One connection has room for three of them while the answers aren't read.
    let request = ReadRequest { device_id: DEVICE, entities: vec![all; 65_000], ..Default::default() };
    let mut open = Vec::new();
    let refused = loop {
        match client.rpc.read(request.clone()).await {
            Ok(answers) => open.push(answers),
            Err(refused) => break refused,
        }
        assert!(open.len() < 16, "the reads take too much memory");
    };
    assert_eq!(refused.code(), tonic::Code::ResourceExhausted, "{refused:?}");
    assert!(refused.message().contains("224 MB") && open.len() == 3, "{refused:?} {}", open.len());
}

#[tokio::test]
async fn a_connection_has_so_many_streams() {
    let (rig, mut client) = Rig::ready().await;
    let mut greedy = Client::connect(&rig).await;
    // Its end is dropped with the sender.
    let requests = || {
        let (out, requests) = tokio::sync::mpsc::channel(1);
        (out, tokio_stream::wrappers::ReceiverStream::<StreamMessageRequest>::new(requests))
    };
    let mut open = Vec::new();
    for _ in 1..16 {
        let (out, requests) = requests();
        open.push((out, greedy.rpc.stream_channel(requests).await.unwrap()));
    }
    let refused = greedy.rpc.stream_channel(requests().1).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::ResourceExhausted, "{refused:?}");
    assert!(refused.message().contains("16 streams of this connection"), "{refused:?}");
    client.insert(dmac(1, 3)).await.unwrap();
    open.pop();
    let again = async {
        while greedy.rpc.stream_channel(requests().1).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), again).await.expect("there is room again");
}

#[tokio::test]
async fn a_large_write_of_a_stranger_is_refused_before_it_is_read() {
    let (rig, mut client) = Rig::ready().await;
    // Each update is malformed, which shows only if it is parsed.
    let head = WriteRequest { device_id: DEVICE, election_id: election(77), ..Default::default() };
    let mut bytes = prost::Message::encode_to_vec(&head);
    bytes.extend([0x22, 2, 0x12, 9].repeat(20_000));
    let status = write_bytes(&rig, bytes).await;
    assert_eq!(status.code(), tonic::Code::PermissionDenied, "{status:?}");
    client.insert(dmac(1, 3)).await.unwrap();
}
