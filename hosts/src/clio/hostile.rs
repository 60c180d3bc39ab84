//! Clients that take from a board what they can, and what an honest client keeps beside them.
//!
//! ```text
//!   honest client ─ reads and writes, N under way ─▶ ┐
//!                                                    ├ board
//!   a second honest client, or an attack ──────────▶ ┘
//! ```
//!
//! An attack has its own process, or none, and ignores windows, answers and errors. The measure is the honest client's rate beside it, and
//! beside a second honest client, in turns. Both are on one machine, and a board doesn't divide that machine's processors. So a second
//! client that stands in for an attack without sleep doesn't sleep either: it looks for answers all the time.
//!
//! Shares are equal, so a client that asks for more than its share keeps no more than that beside an attack. The promise is about one with
//! a [load](Load) below it.

use super::error::ClioError;
use super::session::{AskError, Session};
use super::setup::{Attached, Wanted, attach};
use super::{Patience, Reply};
use crate::roce::setup::Server;
use crate::runtime::runtime;
use p4rack_fabric::clio::lib::{Operation, Outcome};
use p4rack_netdev::clock;
use p4rack_wire::clio::{AllocBody, Header, Kind, Manage, Rights, packet};
use p4rack_wire::{Histogram, Nanos, SplitMix};
use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of an honest client's process, and of an attacker's.
const PROCESS_BYTES: u64 = 256 << 10;
/// Bytes of an honest access.
const ACCESS_BYTES: u32 = 64;
/// Operations that an honest client has under way.
const UNDER_WAY: usize = 16;
/// Time after which a client that waits looks whether it should end.
const TURN: Nanos = Nanos::from_millis(50);
/// Bytes of the reads whose answers are not read.
const LONG_BYTES: u32 = 64 << 10;

/// What a hostile client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    /// Allocations of a page each, as fast as packets leave.
    Allocations,
    /// Ranges of a byte: allocates until nothing is left, frees all, and again.
    Bytes,
    /// Processes that begin and end.
    Processes,
    /// Writes as fast as packets leave.
    Writes,
    /// Packets with a wrong CRC, of a process that is its own.
    Damaged,
    /// Packets of processes that are not its own.
    Forged,
    /// Long reads, whose answers it leaves in its socket.
    Deaf,
}

impl Attack {
    /// All, with their names.
    pub const ALL: [(Attack, &'static str); 7] = [
        (Attack::Allocations, "allocations"),
        (Attack::Bytes, "bytes"),
        (Attack::Processes, "processes"),
        (Attack::Writes, "writes"),
        (Attack::Damaged, "damaged"),
        (Attack::Forged, "forged"),
        (Attack::Deaf, "deaf"),
    ];
}

impl Attack {
    /// Whether it takes a core: it sends without waiting.
    fn is_sleepless(self) -> bool {
        !matches!(self, Attack::Bytes | Attack::Processes)
    }
}

/// What an honest client is measured beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// A second honest client, in place of this attack.
    Honest(Attack),
    /// An attack.
    Attack(Attack),
}

impl fmt::Display for Attack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Attack::ALL.iter().find(|(attack, _)| attack == self).map_or("", |(_, name)| name);
        f.pad(name)
    }
}

impl FromStr for Attack {
    type Err = String;

    fn from_str(text: &str) -> Result<Attack, String> {
        let found = Attack::ALL.iter().find(|(_, name)| *name == text).map(|(attack, _)| *attack);
        let names = Attack::ALL.map(|(_, name)| name).join(", ");
        found.ok_or_else(|| format!("`{text}` is none of {names}"))
    }
}

/// How much an honest client has to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// As many operations as end.
    All,
    /// As many per second. One that is due while the client has its limit under way begins later, and its time counts from when it was due.
    PerSecond(f64),
}

/// What an honest client has done.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Operations per second.
    pub per_s: f64,
    /// Operations without a known end, or that the board refused.
    pub failed: u64,
    /// How long each operation took, in nanoseconds.
    pub latency: Histogram,
}

/// Measures an honest client with this load for `time`. Returns also how many packets or calls the attack has made, or the second client's operations.
/// Errors: the board can't be reached, or refuses the honest client.
pub fn measure(
    server: &Server,
    beside: Beside,
    load: Load,
    patience: Patience,
    time: Nanos,
) -> Result<(Kept, u64), AskError> {
    // Both are there before the measurement begins.
    let mut honest = Honest::open(server, patience)?;
    let (attack, mut second) = match beside {
        Beside::Honest(attack) => (attack, Some(Honest::open(server, patience)?)),
        Beside::Attack(attack) => (attack, None),
    };
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| match &mut second {
            Some(second) => {
                let turn = if attack.is_sleepless() { Nanos::ZERO } else { TURN };
                second.run(|| is_over.load(Ordering::Relaxed), Load::All, turn).map(|kept| kept.1)
            }
            None => Ok(run(server, attack, patience, &is_over)?),
        });
        // The attack is under way.
        std::thread::sleep(std::time::Duration::from_millis(200));
        let until = clock::now() + time;
        let kept = honest.run(|| clock::now() >= until, load, TURN);
        is_over.store(true, Ordering::Relaxed);
        let done = other.join().unwrap_or(Err(AskError::Unknown))?;
        Ok((kept?.0, done))
    })
}

/// A client that reads and writes its own memory.
struct Honest {
    session: Session,
    random: SplitMix,
}

impl Honest {
    fn open(server: &Server, patience: Patience) -> Result<Honest, ClioError> {
        Ok(Honest { session: Session::open(server, PROCESS_BYTES, patience)?, random: SplitMix(1) })
    }

    /// Half reads, half writes, until it is over. Sleeps for at most `turn` at a time. Returns what it kept, and its operations.
    fn run(
        &mut self,
        mut is_over: impl FnMut() -> bool,
        load: Load,
        turn: Nanos,
    ) -> Result<(Kept, u64), AskError> {
        let Honest { session, random } = self;
        let (address, bytes) = session.range();
        let (start, data) = (clock::now(), [7; ACCESS_BYTES as usize]);
        let mut since = [Nanos::ZERO; UNDER_WAY];
        let mut free: Vec<usize> = (0..UNDER_WAY).collect();
        let (mut failed, mut ends, mut latency) = (0, 0u64, Histogram::new());
        let mut begins = 0u64;
        loop {
            let ends_now = is_over();
            if ends_now && session.under_way() == 0 {
                break;
            }
            let now = clock::now();
            let due = |nth: u64| match load {
                Load::All => now,
                Load::PerSecond(per_s) => start + Nanos((nth as f64 * 1e9 / per_s) as u64),
            };
            while let Some(slot) = free.pop_if(|_| !ends_now && due(begins) <= now) {
                let at = random.between(0, bytes / u64::from(ACCESS_BYTES) - 1) * u64::from(ACCESS_BYTES);
                let address = address + at;
                let operation = match random.between(0, 1) {
                    0 => Operation::Read { address, bytes: ACCESS_BYTES },
                    _ => Operation::Write { address, bytes: &data },
                };
                since[slot] = due(begins);
                begins += 1;
                session.submit(slot as u64, operation)?;
            }
            let until = now + turn;
            let until = if free.is_empty() || ends_now { until } else { until.min(due(begins)) };
            session.poll(until, &mut |tag, outcome| {
                let slot = tag as usize;
                match outcome {
                    Outcome::Read(_) | Outcome::Done => {
                        ends += 1;
                        latency.record(clock::now().saturating_sub(since[slot]).0);
                    }
                    _ => failed += 1,
                }
                free.push(slot);
            })?;
        }
        let per_s = ends as f64 / (clock::now().saturating_sub(start).0 as f64 / 1e9);
        Ok((Kept { per_s, failed, latency }, ends))
    }
}

/// Attacks until it is over. Returns the packets sent, or calls made. Errors: the board can't be reached.
fn run(server: &Server, attack: Attack, patience: Patience, is_over: &AtomicBool) -> Result<u64, ClioError> {
    match attack {
        Attack::Bytes => bytes(server, patience, is_over),
        Attack::Processes => processes(server, patience, is_over),
        _ => Flood::open(server)?.run(attack, is_over),
    }
}

/// Takes ranges of a byte, each of which is a page, and frees them.
fn bytes(server: &Server, patience: Patience, is_over: &AtomicBool) -> Result<u64, ClioError> {
    let mut session = Session::open(server, PROCESS_BYTES, patience)?;
    let (mut taken, mut calls) = (Vec::new(), 0);
    while !is_over.load(Ordering::Relaxed) {
        calls += 1;
        match session.alloc(1, Rights::ALL) {
            Ok(address) => taken.push(address),
            Err(_) => {
                for address in taken.drain(..) {
                    calls += 1;
                    // What fails is tried no more: the next round allocates less.
                    _ = session.ask(Operation::Free { address, bytes: 1 }).map(|reply| reply == Reply::Done);
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                }
            }
        }
    }
    Ok(calls)
}

/// Begins processes and ends them.
fn processes(server: &Server, patience: Patience, is_over: &AtomicBool) -> Result<u64, ClioError> {
    let mut calls = 0;
    while !is_over.load(Ordering::Relaxed) {
        calls += 1;
        // Refusals are what it is about.
        drop(Session::open(server, PROCESS_BYTES, patience));
    }
    Ok(calls)
}

/// A client that sends packets as fast as it can, and reads none.
struct Flood {
    socket: UdpSocket,
    attached: Attached,
    // Dropped last: the call of `attached` runs on it.
    _runtime: tokio::runtime::Runtime,
}

impl Flood {
    fn open(server: &Server) -> Result<Flood, ClioError> {
        let runtime = runtime()?;
        let attached = runtime.block_on(attach(server, Wanted::bytes(PROCESS_BYTES)))?;
        let found = server.addr.to_socket_addrs()?.next();
        let found = found.ok_or_else(|| ClioError::Broken(format!("{} has no address", server.addr)))?;
        let to = SocketAddr::new(found.ip(), attached.udp_port);
        let any = if to.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) };
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect(to)?;
        Ok(Flood { socket, attached, _runtime: runtime })
    }

    fn run(&self, attack: Attack, is_over: &AtomicBool) -> Result<u64, ClioError> {
        let (mut out, mut sent, mut random) = (Vec::new(), 0, SplitMix(3));
        while !is_over.load(Ordering::Relaxed) {
            self.compose(attack, sent, &mut random, &mut out);
            sent += 1;
            // A full queue, or a refusal that the board's host has reported, is no reason to stop.
            _ = self.socket.send(&out);
        }
        Ok(sent)
    }

    /// The packet of this number.
    fn compose(&self, attack: Attack, nth: u64, random: &mut SplitMix, out: &mut Vec<u8>) {
        let Attached { credentials, client, range, page_size, .. } = &self.attached;
        let (kind, length, code) = match attack {
            Attack::Allocations => (Kind::Manage, AllocBody::BYTES as u32, Manage::Alloc as u8),
            Attack::Deaf => (Kind::Read, LONG_BYTES.min(range.1 as u32), 0),
            Attack::Damaged | Attack::Forged => (Kind::Read, ACCESS_BYTES, 0),
            _ => (Kind::Write, ACCESS_BYTES, 0),
        };
        let header = Header {
            version: 0,
            kind: kind as u8,
            code,
            flags: 0,
            attempt: 0,
            index: 0,
            packets: 1,
            // As the client library numbers requests.
            id: u64::from(*client) << 36 | nth & ((1 << 36) - 1),
            address: if attack == Attack::Allocations { 0 } else { range.0 },
            pid: credentials.pid,
            length,
            token: credentials.token,
            epoch: credentials.epoch,
            reserved: 0,
            crc: 0,
        };
        let header = match attack {
            Attack::Forged => Header { pid: 1 + random.next() as u32 % 64, token: random.next(), ..header },
            _ => header,
        };
        let mut data = [0; ACCESS_BYTES as usize];
        let data = match kind {
            Kind::Manage => {
                let body = AllocBody {
                    bytes: page_size.bytes(),
                    page_size: *page_size as u8,
                    rights: Rights::ALL.code(),
                    reserved: 0,
                };
                body.emit(&mut data);
                &data[..AllocBody::BYTES]
            }
            Kind::Write => &data[..],
            _ => &[],
        };
        packet::compose(&header, data, out);
        if attack == Attack::Damaged
            && let Some(last) = out.last_mut()
        {
            *last ^= 1;
        }
    }
}
