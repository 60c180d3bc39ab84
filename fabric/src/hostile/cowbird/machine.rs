//! The machine of a hostile host.

use super::{Attack, Config, Rings};
use crate::Machine as _;
use crate::common::SplitMix;
use crate::roce::{Adapter, BadConfig, Request};
use p4rack_wire::ethernet::{Ethernet, overhead};
use p4rack_wire::roce::frame::{self, Extension};
use p4rack_wire::roce::{Aeth, AtomicEth, Bth, Nak, Opcode, Reth, Syndrome, WORD_BYTES, psn};
use p4rack_wire::{EtherType, Nanos, WireRate};
use std::fmt;

/// Requests in flight per queue pair in attacks that keep to the protocol: one is transferred while the next waits.
const UNDER_WAY: usize = 2;
/// Range around the known sequence number from which forged packets take theirs.
const PSN_SPREAD: u64 = 64;
/// A slow host takes one of this many frames of the engine.
const SLOW: u64 = 8;

/// Why an attack can't start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadMachine {
    /// A parameter of its adapter is out of range.
    Config(BadConfig),
    /// A queue pair is refused.
    Pair(crate::roce::PairError),
}

impl fmt::Display for BadMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadMachine::Config(error) => error.fmt(f),
            BadMachine::Pair(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BadMachine {}

/// Machine of a hostile host: takes frames from the link, yields frames to send.
#[derive(Clone, Debug)]
pub struct Machine {
    config: Config,
    adapter: Adapter<Rings>,
    /// The adapter may have frames to send.
    pending: bool,
    rate: WireRate,
    random: SplitMix,
    free_at: Nanos,
    made: u64,
    heard: u64,
    /// Next sequence numbers of its queue pairs with the pool, in attacks that send frames without an adapter.
    psns: Vec<u32>,
}

impl Machine {
    /// A machine that starts at `now`. Errors: its adapter refuses its parameters or queue pairs.
    pub fn new(mut config: Config, seed: u64, now: Nanos) -> Result<Machine, BadMachine> {
        let rings = std::mem::take(&mut config.rings);
        let mut adapter = Adapter::new(config.adapter.clone(), rings).map_err(BadMachine::Config)?;
        for (qpn, connection) in config.pool.iter().chain(&config.engine) {
            adapter.add_pair(*qpn, *connection).map_err(BadMachine::Pair)?;
        }
        Ok(Machine {
            adapter,
            pending: true,
            rate: WireRate::new(config.rate_bps),
            random: SplitMix(seed),
            free_at: now,
            made: 0,
            heard: 0,
            psns: config.pool.iter().map(|(_, connection)| connection.send_psn).collect(),
            config,
        })
    }

    /// Its rings.
    pub fn rings(&self) -> &Rings {
        self.adapter.memory()
    }

    /// Whether its frames are those of an adapter.
    const fn uses_adapter(&self) -> bool {
        self.config.attack.needs_engine()
            || matches!(self.config.attack, Attack::BulkRead | Attack::BulkWrite)
    }

    /// Time of its next frame, if none arrives before.
    fn due(&self) -> Nanos {
        if !self.uses_adapter() || self.pending {
            return self.free_at;
        }
        self.adapter.next_timeout().unwrap_or(Nanos::MAX).max(self.free_at)
    }

    /// A NAK says which sequence number the pool expects.
    fn note_gap(&mut self, frame: &[u8]) {
        let Ok(frame) = frame::parse(frame, false) else { return };
        let bth = &frame.packet.bth;
        let Some(nth) = self.config.pool.iter().position(|(qpn, _)| *qpn == bth.qpn) else { return };
        if let (Opcode::Acknowledge, Extension::Ack(Aeth { syndrome, .. })) =
            (frame.packet.opcode, frame.packet.extension)
            && Syndrome::of(syndrome) == Ok(Syndrome::Nak(Nak::Sequence))
        {
            self.psns[nth] = bth.psn;
        }
    }

    /// The adapter's next frame. Keeps all queue pairs with the pool busy.
    fn poll_adapter(&mut self, now: Nanos, out: &mut Vec<u8>) -> bool {
        self.adapter.handle_timeout(now);
        while self.adapter.poll_completion().is_some() {}
        let Config { attack, key, address, bytes, ref adapter, ref pool, .. } = self.config;
        let length = adapter.message_bytes_max.min(bytes.try_into().unwrap_or(u32::MAX));
        if !attack.needs_engine() {
            for (qpn, _) in pool {
                let outstanding = self.adapter.requester(*qpn).map_or(UNDER_WAY, |half| half.outstanding());
                for _ in outstanding..UNDER_WAY {
                    let request = match attack {
                        Attack::BulkRead => Request::Read { key, address, bytes: length },
                        _ => {
                            Request::Write { key, address, bytes: vec![0; length as usize], immediate: None }
                        }
                    };
                    // A failed queue pair makes no more requests.
                    if self.adapter.handle_request(*qpn, request).is_err() {
                        break;
                    }
                }
            }
        }
        self.pending = self.adapter.poll_link(now, out).is_some();
        self.pending
    }

    /// A frame made without an adapter.
    fn make(&mut self, out: &mut Vec<u8>) -> bool {
        match self.config.attack {
            Attack::Forged => self.forged(out),
            Attack::Garbage => self.garbage(out),
            Attack::BestEffortFlood => {
                let Some((_, connection)) = self.config.pool.first() else { return false };
                out.clear();
                out.resize(Ethernet::BYTES + overhead::MTU as usize, 0);
                let (dst, src) = (connection.path.dst_mac, self.config.mac);
                Ethernet { dst, src, ether_type: EtherType(0x88b7) }.emit(out);
                true
            }
            _ => self.single(out),
        }
    }

    /// A request of a single packet on the next queue pair with the pool.
    fn single(&mut self, out: &mut Vec<u8>) -> bool {
        let Config { attack, key, address, bytes, ref adapter, ref pool, .. } = self.config;
        if pool.is_empty() {
            return false;
        }
        let nth = self.made as usize % pool.len();
        let connection = &pool[nth].1;
        let at = self.psns[nth];
        let mtu = adapter.mtu.bytes();
        let longest = adapter.message_bytes_max.min(bytes.try_into().unwrap_or(u32::MAX));
        let reth = |bytes: u32, key: u32| Extension::Rdma(Reth { address, key, bytes }, None);
        let atomic = AtomicEth { address, key, swap_or_add: 1, compare: 0 };
        let (opcode, extension, payload, advance) = match attack {
            Attack::ReadFlood => (Opcode::ReadRequest, reth(WORD_BYTES, key), 0, 1),
            Attack::WrongKey => (Opcode::ReadRequest, reth(longest, !key), 0, 0),
            // The pool executes the first; all others are duplicates.
            Attack::Repeat => (Opcode::ReadRequest, reth(longest, key), 0, 0),
            Attack::AtomicFlood => (Opcode::FetchAdd, Extension::Atomic(atomic), 0, 1),
            _ => (Opcode::WriteOnly, reth(mtu, key), mtu as usize, 1),
        };
        let bth = Bth { ack_request: true, ..Bth::new(opcode, connection.peer_qpn, at) };
        frame::begin(&connection.path, bth, &extension, payload, out);
        self.end(out);
        self.psns[nth] = psn::add(at, advance);
        true
    }

    /// A request or an answer for another host's queue pair.
    fn forged(&mut self, out: &mut Vec<u8>) -> bool {
        let Config { mac, key, address, ref others, .. } = self.config;
        if others.is_empty() {
            return false;
        }
        let aim = others[(self.random.next() % others.len() as u64) as usize];
        let mut path = aim.path;
        // The switch checks MAC addresses by port; whether it checks IP addresses depends on its program.
        if !self.made.is_multiple_of(4) {
            path.src_mac = mac;
        }
        let at = psn::add(aim.psn, (self.random.next() % PSN_SPREAD) as u32);
        let aeth = Aeth { syndrome: Syndrome::Nak(Nak::RemoteAccess).code(), msn: 0 };
        let (opcode, extension, payload) = match self.made % 3 {
            0 => (Opcode::ReadRequest, Extension::Rdma(Reth { address, key: !key, bytes: 64 }, None), 0),
            1 => (Opcode::Acknowledge, Extension::Ack(aeth), 0),
            _ => (
                Opcode::ReadResponseOnly,
                Extension::Ack(Aeth { syndrome: Syndrome::Ack.code(), msn: 0 }),
                64,
            ),
        };
        frame::begin(&path, Bth::new(opcode, aim.qpn, at), &extension, payload, out);
        self.end(out);
        true
    }

    fn garbage(&mut self, out: &mut Vec<u8>) -> bool {
        let Config { mac, ref pool, ref others, .. } = self.config;
        let own = pool.first().map(|(_, connection)| (connection.path, connection.peer_qpn));
        let other = others.get((self.random.next() % others.len().max(1) as u64) as usize);
        let known = other.map(|aim| (aim.path, aim.qpn)).filter(|_| self.made % 2 == 1);
        let Some((mut path, qpn)) = known.or(own) else { return false };
        path.src_mac = mac;
        let length = (self.random.next() % 400) as usize;
        let bth = Bth::new(Opcode::SendOnly, qpn, self.random.next() as u32 & psn::MAX);
        frame::begin(&path, bth, &Extension::None, length, out);
        // Random from the transport's header on, from UDP's or IP's, or everything behind the addresses.
        let from = [frame::BTH_AT, frame::BTH_AT - 8, Ethernet::BYTES, 12][(self.made % 4) as usize];
        for byte in &mut out[from..] {
            *byte = self.random.next() as u8;
        }
        // Some of these address an existing queue pair.
        if self.made.is_multiple_of(4) {
            out[frame::BTH_AT + 5..frame::BTH_AT + 8].copy_from_slice(&qpn.to_be_bytes()[1..]);
            self.end(out);
        }
        true
    }

    /// Fills in the iCRC if adapters check it.
    fn end(&self, out: &mut [u8]) {
        if self.config.adapter.icrc_sent {
            frame::seal(out);
        }
    }
}

impl crate::Machine for Machine {
    type Received<'a> = &'a [u8];
    type Sent = ();
    type Buffer = Vec<u8>;

    fn handle_link(&mut self, frame: &[u8], _received_at: Nanos, now: Nanos) {
        self.heard += 1;
        match self.config.attack {
            Attack::Silent => {}
            Attack::Slow if !self.heard.is_multiple_of(SLOW) => {}
            _ if self.uses_adapter() => {
                self.adapter.handle_link(frame, now, now);
                self.pending = true;
            }
            _ => self.note_gap(frame),
        }
    }

    /// The frame (without FCS) that starts to leave now, if any.
    fn poll_link(&mut self, now: Nanos, out: &mut Vec<u8>) -> Option<()> {
        if self.due() > now {
            return None;
        }
        let made = if self.uses_adapter() { self.poll_adapter(now, out) } else { self.make(out) };
        if made {
            self.made += 1;
            let start = self.free_at.max(now.saturating_sub(self.config.catch_up));
            self.free_at = start + self.rate.time(overhead::wire_bytes(out.len() as u64));
        } else if !self.uses_adapter() {
            // It knows no queue pair to aim at, and will not learn of one.
            self.free_at = Nanos::MAX;
        }
        made.then_some(())
    }

    fn next_timeout(&self) -> Option<Nanos> {
        Some(self.due()).filter(|due| *due < Nanos::MAX)
    }
}
