//! Messages a second between two adapters over a veth.
//!
//! ```text
//! requester (a thread) ═ veth ═ responder (a thread), each in a namespace of its own
//! ```

use super::port::{Loss, RocePort, RocePortError};
use super::setup::{End, Station};
use p4rack_fabric::common::SplitMix;
use p4rack_fabric::roce::{Completion, Config, Outcome, Region, Regions, Request, Rights};
use p4rack_netdev::link::VethEnd;
use p4rack_netdev::{Links, NetNs, clock};
use p4rack_wire::Nanos;
use serde::Serialize;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

/// Kinds of messages that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// RDMA WRITE.
    Write,
    /// RDMA READ.
    Read,
    /// Fetch and add.
    Add,
}

impl Kind {
    /// All.
    pub const ALL: [Kind; 3] = [Kind::Write, Kind::Read, Kind::Add];
}

/// Measured values.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Rate {
    /// Kind of operation.
    pub kind: Kind,
    /// Bytes of a message.
    pub bytes: u32,
    /// Messages that ended.
    pub messages: u64,
    /// Messages a second.
    pub messages_per_s: f64,
    /// Processor time of the responder's thread for a message, kernel included.
    pub responder_cpu_ns: f64,
    /// Processor time of the requester's thread for a message, kernel included.
    pub requester_cpu_ns: f64,
    /// Messages a second that the responder's thread would execute with a core of its own.
    pub responder_messages_per_core_s: f64,
    /// Packets sent again.
    pub repeated: u64,
}

/// Why a bench failed.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A namespace or link could not be made.
    #[error(transparent)]
    Device(#[from] p4rack_netdev::Error),
    /// An adapter failed.
    #[error(transparent)]
    Port(#[from] RocePortError),
    /// A request failed.
    #[error("a request ended with {0:?}")]
    Failed(Outcome),
    /// A thread ended too early.
    #[error("a thread of the bench panicked")]
    Panicked,
}

/// Key of the region.
const KEY: u32 = 1;
/// Its address.
const START: u64 = 1 << 20;
/// Its bytes.
const BYTES: usize = 1 << 20;
/// Messages in flight: as many as a requester with several batches of work keeps.
const UNDER_WAY: usize = 256;
/// Interval at which a thread checks whether the bench is over.
const LOOK: Nanos = Nanos::from_millis(5);

fn config() -> Config {
    Config {
        requests_max: UNDER_WAY,
        in_flight_max: UNDER_WAY,
        reads_max: 128,
        timeout: Nanos::from_millis(20),
        ..Config::default()
    }
}

fn ip(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host)
}

/// Measures one kind of message for `seconds`.
pub fn run(kind: Kind, bytes: u32, seconds: f64, lost_per_mille: u16) -> Result<Rate, BenchError> {
    let (a, b) = (NetNs::create()?, NetNs::create()?);
    let end = |name, ns| VethEnd { name, ns, mac: None };
    Links::add_veth(end("roce0", &a), end("roce0", &b))?;
    let loss = |seed| Loss { per_mille: lost_per_mille, seed };
    let mut requester = a.run(|| RocePort::open("roce0", ip(1), config(), Regions::default(), loss(1)))??;
    let mut memory = Regions::default();
    let region = Region { domain: 0, key: KEY, start: START, bytes: vec![0; BYTES], rights: Rights::ALL };
    memory.register(region).expect("the only region fits");
    let mut responder = b.run(|| RocePort::open("roce0", ip(2), config(), memory, loss(2)))??;
    let mut random = SplitMix(1);
    let ends = [(requester.mac(), 1), (responder.mac(), 2)]
        .map(|(mac, host)| End::draw(Station { mac, ip: ip(host) }, &mut random));
    let [ours, theirs] = ends;
    requester.adapter().add_pair(ours.qpn, ours.connection(&theirs, 0)).expect("the only pair fits");
    responder.adapter().add_pair(theirs.qpn, theirs.connection(&ours, 0)).expect("the only pair fits");
    let (over, (told, cpu)) = (AtomicBool::new(false), mpsc::channel());
    let span = Nanos((seconds.clamp(0.01, 60.0) * 1e9) as u64);
    std::thread::scope(|scope| {
        let responding = scope.spawn(|| respond(responder, &over, told));
        let asked = ask(&mut requester, ours.qpn, kind, bytes, span);
        over.store(true, Ordering::Relaxed);
        let responder_cpu = cpu.recv().map_err(|_| BenchError::Panicked);
        responding.join().map_err(|_| BenchError::Panicked)??;
        let (messages, elapsed, requester_cpu) = asked?;
        let repeated = requester.adapter().requester(ours.qpn).map_or(0, |half| half.counters().repeated_out);
        let each = |time: Nanos| time.0 as f64 / messages.max(1) as f64;
        let responder_cpu_ns = each(responder_cpu?);
        Ok(Rate {
            kind,
            bytes,
            messages,
            messages_per_s: messages as f64 / elapsed.as_secs_f64(),
            responder_cpu_ns,
            requester_cpu_ns: each(requester_cpu),
            responder_messages_per_core_s: 1e9 / responder_cpu_ns,
            repeated,
        })
    })
}

fn respond(
    mut port: RocePort<Regions>,
    over: &AtomicBool,
    told: mpsc::Sender<Nanos>,
) -> Result<(), RocePortError> {
    let before = clock::thread_cpu();
    while !over.load(Ordering::Relaxed) {
        port.turn(Some(clock::now() + LOOK))?;
    }
    let _ = told.send(clock::thread_cpu() - before);
    Ok(())
}

/// Keeps requests in flight. Returns the number completed, the elapsed time, and the thread's processor time.
fn ask(
    port: &mut RocePort<Regions>,
    qpn: u32,
    kind: Kind,
    bytes: u32,
    span: Nanos,
) -> Result<(u64, Nanos, Nanos), BenchError> {
    let (start, before) = (clock::now(), clock::thread_cpu());
    let slots = BYTES as u64 / u64::from(bytes.max(8)).next_multiple_of(8);
    let (mut asked, mut ended) = (0u64, 0u64);
    while clock::now() < start + span {
        while asked - ended < UNDER_WAY as u64 {
            let address = START + asked % slots * u64::from(bytes.max(8)).next_multiple_of(8);
            let request = match kind {
                Kind::Write => Request::Write {
                    key: KEY,
                    address,
                    bytes: vec![asked as u8; bytes as usize],
                    immediate: None,
                },
                Kind::Read => Request::Read { key: KEY, address, bytes },
                Kind::Add => Request::FetchAdd { key: KEY, address, add: 1 },
            };
            if port.adapter().handle_request(qpn, request).is_err() {
                break;
            }
            asked += 1;
        }
        port.turn(Some(clock::now() + LOOK))?;
        while let Some((_, completion)) = port.adapter().poll_completion() {
            match completion {
                Completion::Request(_, outcome @ Outcome::Failed(_)) => {
                    return Err(BenchError::Failed(outcome));
                }
                _ => ended += 1,
            }
        }
    }
    Ok((ended, clock::now() - start, clock::thread_cpu() - before))
}
