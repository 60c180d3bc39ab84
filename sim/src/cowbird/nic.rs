//! A host's adapter: the machine of `fabric::roce`, the time that packets take through it, and its link to the switch.

use super::costs::NicSpec;
use super::records::Records;
use crate::frames::{Frame, Frames};
use crate::kernel::Clock;
use p4rack_cowbird::Area;
use p4rack_fabric::Machine as _;
use p4rack_fabric::roce::{
    self, Access, Adapter, BadConfig, Denied, Modify, RegisteredMemory, RemoteAddress,
};
use p4rack_wire::Nanos;
use p4rack_wire::ethernet::overhead;
use p4rack_wire::roce::{Bth, Mtu, Opcode};
use p4rack_wire::{ethernet::Ethernet, ipv4};
use std::collections::VecDeque;

/// Maximum bytes of a message: more than any batch of responses.
pub(super) const MESSAGE_BYTES_MAX: u32 = 1 << 20;
/// Maximum requests of a queue pair that wait or are in flight.
pub(super) const REQUESTS_MAX: usize = 4_096;
/// The opcode's place in a frame, behind Ethernet, IPv4 and UDP.
const OPCODE_AT: usize = Ethernet::BYTES + ipv4::Ipv4::BYTES + ipv4::Udp::BYTES;
/// Headers of a request with payload, and the iCRC.
const REQUEST_BYTES: usize = OPCODE_AT + Bth::BYTES + 16 + 4;

/// The memory of a host.
#[derive(Debug)]
pub(super) enum HostMemory {
    /// Threads' rings.
    Rings(Area),
    /// The pool's records.
    Records(Records),
}

/// Calls the memory's own implementation.
macro_rules! each {
    ($self:ident, $memory:ident => $call:expr) => {
        match $self {
            HostMemory::Rings($memory) => $call,
            HostMemory::Records($memory) => $call,
        }
    };
}

impl RegisteredMemory for HostMemory {
    #[inline]
    fn check(&self, place: RemoteAddress, access: Access, bytes: u32) -> Result<(), Denied> {
        each!(self, memory => memory.check(place, access, bytes))
    }
    #[inline]
    fn read(&self, place: RemoteAddress, into: &mut [u8]) -> Result<(), Denied> {
        each!(self, memory => memory.read(place, into))
    }
    #[inline]
    fn write(&mut self, place: RemoteAddress, bytes: &[u8]) -> Result<(), Denied> {
        each!(self, memory => memory.write(place, bytes))
    }
    fn modify(&mut self, place: RemoteAddress, modify: Modify) -> Result<u64, Denied> {
        each!(self, memory => memory.modify(place, modify))
    }
}

/// Cause of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A doorbell was rung.
    Doorbell,
    /// A frame came, or time has passed.
    Frame,
}

/// An adapter and its link.
#[derive(Debug)]
pub(super) struct Nic {
    pub adapter: Adapter<HostMemory>,
    config: roce::Config,
    rate_bps: u64,
    times: NicSpec,
    /// When the adapter can take the next packet.
    in_ps: u64,
    /// Frames to send, and when each is ready. The windows of queue pairs bound them.
    queue: VecDeque<(u64, Frame)>,
    queue_bytes: usize,
    /// The adapter prepares no more frames while `queue` holds this many bytes.
    ahead_bytes: usize,
    /// When the last frame is ready: frames leave in order.
    ready_ps: u64,
    /// When the link is free.
    pub free_ps: u64,
    /// Whether its next frame is on the agenda.
    pub is_planned: bool,
    /// Bytes sent, with preamble, gap and FCS.
    pub sent_bytes: u64,
}

impl Nic {
    /// An adapter whose queue pairs have at most `reads_max` READs in flight.
    pub fn new(
        memory: HostMemory,
        times: &NicSpec,
        rate_bps: u64,
        reads_max: usize,
    ) -> Result<Nic, BadConfig> {
        let config = roce::Config {
            mtu: Mtu::B1024,
            message_bytes_max: MESSAGE_BYTES_MAX,
            requests_max: REQUESTS_MAX,
            in_flight_max: 128,
            reads_max,
            receives_max: REQUESTS_MAX,
            timeout: Nanos::from_micros(times.timeout_us.into()),
            // The switch rewrites packets and leaves the iCRC as it is.
            icrc_sent: false,
            icrc_verified: false,
            ..roce::Config::default()
        };
        let adapter = Adapter::new(config.clone(), memory)?;
        Ok(Nic {
            adapter,
            config,
            rate_bps,
            times: times.clone(),
            in_ps: 0,
            queue: VecDeque::new(),
            queue_bytes: 0,
            ahead_bytes: times.ahead_bytes.map_or(usize::MAX, |bytes| bytes as usize),
            ready_ps: 0,
            free_ps: 0,
            is_planned: false,
            sent_bytes: 0,
        })
    }

    /// Parameters of its adapter.
    pub fn config(&self) -> &roce::Config {
        &self.config
    }

    /// When a frame that arrives now has reached the host's memory.
    pub fn arrive(&mut self, now_ps: u64) -> u64 {
        let start_ps = self.in_ps.max(now_ps);
        self.in_ps = start_ps + ps(self.times.gap_ns);
        start_ps + ps(self.times.packet_ns) + ps(self.times.pcie_ns)
    }

    /// Queues frames of the adapter, as far as its queue has room. Their cause was at `from_ps`.
    pub fn collect(&mut self, now_ps: u64, from_ps: u64, cause: Cause, frames: &mut Frames) {
        while self.queue_bytes < self.ahead_bytes {
            let mut frame = frames.take(true);
            if self.adapter.poll_link(Nanos(now_ps / 1_000), &mut frame).is_none() {
                return frames.release(frame);
            }
            let ready_ps = from_ps + self.out_ps(&frame, cause);
            self.push(ready_ps, frame);
        }
    }

    /// Queues a frame that is ready at a time.
    pub fn push(&mut self, ready_ps: u64, frame: Frame) {
        self.ready_ps = self.ready_ps.max(ready_ps);
        self.queue_bytes += frame.len();
        self.queue.push_back((self.ready_ps, frame));
    }

    /// When the next frame can leave.
    pub fn next_ps(&self) -> Option<u64> {
        self.queue.front().map(|(ready_ps, _)| self.free_ps.max(*ready_ps))
    }

    /// The next frame, if it is ready.
    pub fn take(&mut self, now_ps: u64) -> Option<Frame> {
        let (_, frame) = self.queue.pop_front_if(|(ready_ps, _)| *ready_ps <= now_ps)?;
        self.queue_bytes -= frame.len();
        Some(frame)
    }

    /// Whether it prepares frames only when its link has room.
    pub fn is_bounded(&self) -> bool {
        self.ahead_bytes < usize::MAX
    }

    /// Sends a frame of `bytes` bytes now. Returns when its last bit is on the wire.
    pub fn transmit(&mut self, now_ps: u64, bytes: usize) -> u64 {
        self.sent_bytes += overhead::wire_bytes(bytes as u64);
        let wire_ps = self.wire_ps(bytes);
        self.free_ps = now_ps + wire_ps.max(ps(self.times.gap_ns));
        now_ps + wire_ps
    }

    /// Time of a frame of `bytes` bytes on the link.
    pub fn wire_ps(&self, bytes: usize) -> u64 {
        Clock::PICOSECONDS.on_wire(bytes, self.rate_bps)
    }

    /// Time from the cause of a frame to the link.
    fn out_ps(&self, frame: &[u8], cause: Cause) -> u64 {
        let pcie_ps = ps(self.times.pcie_ns);
        let opcode = frame.get(OPCODE_AT).and_then(|code| Opcode::of(*code));
        let memory_ps = match opcode {
            // The request came across PCIe once; the data comes back.
            Some(Opcode::ReadResponseFirst | Opcode::ReadResponseMiddle) => pcie_ps,
            Some(Opcode::ReadResponseLast | Opcode::ReadResponseOnly) => pcie_ps,
            Some(opcode) if opcode.is_response() => 0,
            _ => {
                let inlined = frame.len() <= REQUEST_BYTES + self.times.inline_bytes as usize;
                let doorbell_ps = if cause == Cause::Doorbell { pcie_ps } else { 0 };
                doorbell_ps + if inlined { 0 } else { 2 * pcie_ps }
            }
        };
        memory_ps + ps(self.times.packet_ns)
    }
}

/// Picoseconds.
#[inline]
pub(super) fn ps(ns: u32) -> u64 {
    u64::from(ns) * 1_000
}
