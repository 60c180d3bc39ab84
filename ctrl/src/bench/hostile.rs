//! Hostile clients beside a well-behaved one: how much memory the server takes, and how long the good client
//! waits.
//!
//! The hostile clients speak HTTP/2 by hand, because a client library would read its input and observe flow
//! control.

use super::load::Load;
use crate::connect::ConnectOptions;
use crate::error::{CtrlError, refused};
use crate::session::Session;
use p4rack_netdev::process;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::p4::v1::{
    Entity, ForwardingPipelineConfig, PacketMetadata, PacketOut, ReadRequest, StreamMessageRequest,
    TableEntry, Update, WriteRequest, stream_message_request, update,
};
use p4rack_p4rt::schema::Schema;
use p4rack_wire::quantiles;
use prost::Message;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Entries in the table that slow readers request.
const ENTRIES: usize = 50_000;
/// Updates in a hostile batch, all of which fail.
const UPDATES: usize = 1000;
/// Requests that a connection sends without reading a response.
const REQUESTS: u32 = 24;
/// Bytes of a packet that is rejected and returned in the error.
const PACKET: usize = 8 << 10;
/// How long a hostile connection stays if it is not closed. Then it reconnects.
const STAY: Duration = Duration::from_secs(15);
/// How long to keep writing to a server that reads no more.
const PUSH: Duration = Duration::from_secs(2);
/// Pause between two writes of the good client.
const PAUSE: Duration = Duration::from_millis(2);
/// Interval between measurements of memory.
const LOOK: Duration = Duration::from_millis(50);

/// Parameters of the benchmark.
#[derive(Clone, Debug)]
pub struct Hostile {
    /// The switch, in plain text. Its state is cleared.
    pub target: ConnectOptions,
    /// The program to install.
    pub config: ForwardingPipelineConfig,
    /// Process id of the server on this machine.
    pub pid: u32,
    /// Number of concurrent hostile connections.
    pub connections: usize,
    /// Their behaviours, in equal parts.
    pub kinds: Vec<Behaviour>,
    /// Duration.
    pub span: Duration,
}

/// Results of the benchmark.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Seen {
    /// Hostile connections accepted by the server's system, reconnections included.
    pub connections: u64,
    /// Bytes that they sent.
    pub sent_bytes: u64,
    /// Resident memory of the server before, in MB.
    pub before_mb: f64,
    /// Maximum resident memory during the attack, in MB.
    pub most_mb: f64,
    /// Writes of the good client; none was rejected.
    pub writes: usize,
    /// Median duration of a write, in ms.
    pub p50_ms: f64,
    /// 99th percentile, in ms.
    pub p99_ms: f64,
    /// Maximum, in ms.
    pub max_ms: f64,
    /// 99th percentile before the hostile clients connected, in ms.
    pub alone_p99_ms: f64,
}

/// Behaviour of a hostile connection.
#[derive(Clone, Copy, Debug)]
pub enum Behaviour {
    /// Requests the table again and again, and reads a few bytes of it now and then.
    SlowReader,
    /// Sends packets that it may not send, and reads none of the errors.
    DeafStream,
    /// Sends batches that fail, and reads none of the errors.
    FailingBatches,
    /// Sends half of the HTTP/2 preface, byte by byte.
    HalfOpen,
}

impl Behaviour {
    /// All behaviours.
    pub const ALL: [Behaviour; 4] =
        [Behaviour::SlowReader, Behaviour::DeafStream, Behaviour::FailingBatches, Behaviour::HalfOpen];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Behaviour::SlowReader => "slow-reader",
            Behaviour::DeafStream => "deaf-stream",
            Behaviour::FailingBatches => "failing-batches",
            Behaviour::HalfOpen => "half-open",
        }
    }
}

/// The preface of HTTP/2 clients, with empty settings.
const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

/// Appends a call with its messages, as frames of stream `number`.
fn call(out: &mut Vec<u8>, number: u32, path: &str, messages: &[Vec<u8>], ends: bool) {
    let mut block = Vec::new();
    let head = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    for (name, value) in head {
        // Literal, not indexed, not compressed; both are shorter than 127 bytes.
        block.extend_from_slice(&[0, name.len() as u8]);
        block.extend_from_slice(name.as_bytes());
        block.push(value.len() as u8);
        block.extend_from_slice(value.as_bytes());
    }
    frame(out, 1, 4, number, &block);
    let mut data = Vec::new();
    for message in messages {
        data.push(0);
        data.extend_from_slice(&(message.len() as u32).to_be_bytes());
        data.extend_from_slice(message);
    }
    let parts = data.chunks(16 << 10);
    let last = parts.len();
    for (at, part) in parts.enumerate() {
        frame(out, 0, u8::from(ends && at + 1 == last), number, part);
    }
}

/// Requests of each behaviour.
struct Words {
    read: Vec<u8>,
    stream: Vec<u8>,
    batches: Vec<u8>,
}

impl Words {
    fn new(load: &Load, target: &ConnectOptions, role: &ConnectOptions, header: u32) -> Words {
        let calls = |path: &str, message: Vec<u8>| {
            let mut out = GREETING.to_vec();
            for at in 0..REQUESTS {
                call(&mut out, 2 * at + 1, path, std::slice::from_ref(&message), true);
            }
            out
        };
        let wildcard = TableEntry { table_id: load.table_id(), ..Default::default() };
        let all = Entity { entity: Some(EntityKind::TableEntry(wildcard)) };
        let read = ReadRequest { device_id: target.device_id, role: String::new(), entities: vec![all; 4] };
        let absent = |number| Update { r#type: update::Type::Delete as i32, ..load.update(number) };
        let batch = WriteRequest {
            device_id: role.device_id,
            role: role.role.clone(),
            election_id: Some(role.election()),
            updates: (ENTRIES..ENTRIES + UPDATES).map(absent).collect(),
            ..Default::default()
        };
        let metadata = vec![PacketMetadata { metadata_id: header, value: vec![1] }];
        let packet = PacketOut { payload: vec![0; PACKET], metadata };
        let packet = StreamMessageRequest { update: Some(stream_message_request::Update::Packet(packet)) };
        let mut stream = GREETING.to_vec();
        let packets = vec![packet.encode_to_vec(); 400];
        call(&mut stream, 1, "/p4.v1.P4Runtime/StreamChannel", &packets, false);
        Words {
            read: calls("/p4.v1.P4Runtime/Read", read.encode_to_vec()),
            stream,
            batches: calls("/p4.v1.P4Runtime/Write", batch.encode_to_vec()),
        }
    }
}

/// Counters of the hostile connections.
#[derive(Debug, Default)]
struct Counts {
    made: AtomicU64,
    sent_bytes: AtomicU64,
}

/// Runs a hostile connection until it is closed or has stayed long enough.
async fn attack(kind: Behaviour, addr: &str, words: &Words, counts: &Counts) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(addr).await?;
    counts.made.fetch_add(1, Ordering::Relaxed);
    let until = Instant::now() + STAY;
    let all = match kind {
        Behaviour::SlowReader => &words.read,
        Behaviour::DeafStream => &words.stream,
        Behaviour::FailingBatches => &words.batches,
        Behaviour::HalfOpen => {
            for byte in &GREETING[..20] {
                stream.write_all(&[*byte]).await?;
                counts.sent_bytes.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(STAY / 20).await;
            }
            return Ok(());
        }
    };
    // The rest is not sent if the server reads no more.
    let mut rest = &all[..];
    while !rest.is_empty() {
        let Ok(count) = tokio::time::timeout(PUSH, stream.write(rest)).await else { break };
        let count = count?;
        counts.sent_bytes.fetch_add(count as u64, Ordering::Relaxed);
        rest = &rest[count..];
    }
    let mut few = [0; 64];
    while Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(200)).await;
        if matches!(kind, Behaviour::SlowReader) && stream.read(&mut few).await? == 0 {
            return Ok(());
        }
    }
    Ok(())
}

/// Runs the benchmark. Errors: the server cannot be reached, or rejects a request of the good client.
pub fn run(plan: &Hostile) -> Result<Seen, CtrlError> {
    let ended = |error: std::io::Error| CtrlError::Ended(error.to_string());
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ended);
    let good = runtime()?;
    let fault =
        |error: &dyn std::fmt::Display| CtrlError::Program(format!("the benchmark's P4Info: {error}"));
    let schema =
        Schema::new(plan.config.p4info.clone().unwrap_or_default()).map_err(|error| fault(&error))?;
    let header = schema.header_fields("packet_out").first().map_or(1, |field| field.id);
    let load = Load::new(&schema, &plan.target).map_err(|error| fault(&error))?;
    let role = ConnectOptions { role: "hostile".into(), ..plan.target.clone() };
    let words = Arc::new(Words::new(&load, &plan.target, &role, header));
    let (mut session, _role) = good.block_on(async {
        let mut session = Session::connect(plan.target.clone()).await?;
        session.set_pipeline(plan.config.clone()).await?;
        load.built(&session, ENTRIES).await?;
        Ok::<_, CtrlError>((session, Session::connect(role).await?))
    })?;
    let resident = || {
        let bytes = process::resident_bytes(plan.pid)
            .map_err(|error| CtrlError::Ended(format!("the memory of its process can't be read: {error}")))?;
        Ok::<f64, CtrlError>(bytes as f64 / 1e6)
    };
    let before_mb = resident()?;
    let mut alone = good.block_on(writes(&mut session, &load, Duration::from_secs(1), || {}))?;
    let counts = Arc::new(Counts::default());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let hostile = std::thread::spawn({
        let (addr, connections, kinds) = (plan.target.addr.clone(), plan.connections, plan.kinds.clone());
        let (counts, runtime) = (counts.clone(), runtime()?);
        move || {
            runtime.block_on(async {
                let mut tasks = tokio::task::JoinSet::new();
                for kind in kinds.into_iter().cycle().take(connections) {
                    let (addr, words, counts) = (addr.clone(), words.clone(), counts.clone());
                    tasks.spawn(async move {
                        loop {
                            // Being closed is the expected result.
                            let _ = attack(kind, &addr, &words, &counts).await;
                            tokio::time::sleep(Duration::from_millis(100)).await;
                        }
                    });
                }
                let _ = stopped.await;
            });
        }
    });
    let (mut most_mb, mut looked) = (Ok(before_mb), Instant::now());
    let meanwhile = good.block_on(writes(&mut session, &load, plan.span, || {
        if looked.elapsed() >= LOOK {
            if let Ok(most) = most_mb {
                most_mb = resident().map(|now| f64::max(most, now));
            }
            looked = Instant::now();
        }
    }));
    // It may have panicked, which is reported here.
    let _ = stop.send(());
    hostile.join().map_err(|_| CtrlError::Ended("the hostile clients' thread".into()))?;
    let mut took = meanwhile?;
    let of = |sorted: &[Duration], share: f64| {
        quantiles::of_sorted(sorted, share).map_or(f64::NAN, |took| took.as_secs_f64() * 1e3)
    };
    took.sort_unstable();
    alone.sort_unstable();
    Ok(Seen {
        connections: counts.made.load(Ordering::Relaxed),
        sent_bytes: counts.sent_bytes.load(Ordering::Relaxed),
        before_mb,
        most_mb: most_mb?,
        writes: took.len(),
        p50_ms: of(&took, 0.5),
        p99_ms: of(&took, 0.99),
        max_ms: of(&took, 1.0),
        alone_p99_ms: of(&alone, 0.99),
    })
}

/// Modifies one entry repeatedly. Returns the duration of each write.
async fn writes(
    session: &mut Session,
    load: &Load,
    span: Duration,
    mut between: impl FnMut(),
) -> Result<Vec<Duration>, CtrlError> {
    let (until, mut took) = (Instant::now() + span, Vec::new());
    while Instant::now() < until {
        let update = Update { r#type: update::Type::Modify as i32, ..load.update(0) };
        let target = session.target();
        let request = WriteRequest {
            device_id: target.device_id,
            election_id: Some(target.election()),
            updates: vec![update],
            ..Default::default()
        };
        let asked = Instant::now();
        session.grpc.write(request).await.map_err(refused("writing beside hostile clients"))?;
        took.push(asked.elapsed());
        between();
        tokio::time::sleep(PAUSE).await;
    }
    Ok(took)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_as_http2_has_them() {
        let mut out = Vec::new();
        call(&mut out, 3, "/a", &[vec![7; 20_000]], true);
        assert_eq!(out[3..9], [1, 4, 0, 0, 0, 3], "headers that end with this frame");
        let head = usize::from(out[1]) << 8 | usize::from(out[2]);
        let data = &out[9 + head..];
        assert_eq!(data[..9], [0, 0x40, 0, 0, 0, 0, 0, 0, 3]);
        assert_eq!(data[9..14], [0, 0, 0, 0x4e, 0x20], "a message and its length");
        let last = &data[9 + (16 << 10)..];
        assert_eq!((last[4], last.len() - 9), (1, 20_005 - (16 << 10)), "the stream ends");
    }
}
