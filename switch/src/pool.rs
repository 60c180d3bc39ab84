//! Packets and their buffers, which are reused.

use crate::exec::Exit;
use crate::exec::bits::PADDING;
use p4rack_wire::Nanos;

/// Index of a packet in the pool.
pub(crate) type PacketId = u32;

/// Bytes kept free in front of a frame, for headers of the device.
pub(crate) const ROOM: usize = 64;

/// End of a list of packets.
pub(crate) const NONE: PacketId = u32::MAX;

/// How far a packet in a queue has got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Egress still has to run.
    #[default]
    Ingress,
    /// The frame is finished.
    Sent,
    /// Egress has run, ended like this, and dropped the packet or did not finish.
    Ended(Exit),
}

/// State of a packet besides its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meta {
    pub ingress_port: u16,
    pub egress_port: u16,
    /// How it got here, as a number of its architecture.
    pub origin: u32,
    pub rid: u16,
    /// Whether it is the first copy of a group.
    pub is_first: bool,
    pub priority: u8,
    /// Length to which it is truncated when sent.
    pub truncate: u32,
    /// Recirculations, resubmits and clones so far.
    pub passes: u32,
    /// Where the payload starts.
    pub cursor: usize,
    pub arrived: Nanos,
    pub enqueued: Nanos,
    pub enqueued_depth: u32,
    /// Bytes of the shared buffer that it holds.
    pub charged: u64,
    pub stage: Stage,
    /// Its number in a trace, shared by its copies; 0 if it is not traced.
    pub trace: u32,
}

impl Default for Meta {
    fn default() -> Meta {
        Meta {
            ingress_port: 0,
            egress_port: 0,
            origin: 0,
            rid: 0,
            is_first: false,
            priority: 0,
            truncate: u32::MAX,
            passes: 0,
            cursor: 0,
            arrived: Nanos::ZERO,
            enqueued: Nanos::ZERO,
            enqueued_depth: 0,
            charged: 0,
            stage: Stage::Ingress,
            trace: 0,
        }
    }
}

/// A packet in a reusable buffer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packet {
    /// Room in front, the frame, its padding, and remains of longer frames.
    bytes: Vec<u8>,
    /// Where the frame begins.
    start: usize,
    len: usize,
    /// Saved variables that egress needs.
    pub saved: Vec<u64>,
    pub meta: Meta,
    /// The next packet in its queue.
    pub next: PacketId,
    /// See [`Pool::tag`].
    tag: u16,
}

impl Packet {
    /// Length of the frame in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The frame with its padding.
    #[inline(always)]
    pub fn padded(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len + PADDING]
    }

    /// The frame from the payload on.
    #[inline(always)]
    pub fn payload(&self) -> &[u8] {
        self.bytes.get(self.start + self.meta.cursor..self.start + self.len).unwrap_or(&[])
    }

    /// The frame without padding.
    #[inline(always)]
    pub fn frame(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }

    /// Replaces the frame by one whose ownership is passed. The caller gets another buffer in exchange.
    #[inline(always)]
    pub fn take_frame(&mut self, frame: &mut Vec<u8>) {
        std::mem::swap(&mut self.bytes, frame);
        (self.start, self.len) = (0, self.bytes.len());
        self.bytes.resize(self.len + PADDING, 0);
    }

    /// Puts `headers` in front of the payload to form the final frame. With `given`, the frame was taken with its buffer,
    /// which may be overwritten, so nothing is moved if the headers have the length of the original ones.
    #[inline(always)]
    pub fn complete(&mut self, headers: &mut Vec<u8>, given: bool) {
        match self.bytes.get_mut(..self.meta.cursor) {
            Some(room) if given && room.len() == headers.len() && room.len() <= self.len => {
                room.copy_from_slice(headers);
                self.bytes.truncate(self.len);
                std::mem::swap(&mut self.bytes, headers);
            }
            _ => headers.extend_from_slice(self.payload()),
        }
    }

    /// Puts `count` bytes in front of the frame in place of its first `instead` bytes. Their content is
    /// arbitrary.
    #[inline(always)]
    pub fn prepend(&mut self, count: usize, instead: usize) {
        let instead = instead.min(self.len);
        let (kept, payload) = (self.len - instead, self.start + instead);
        if payload < count {
            return self.move_back(count, instead);
        }
        (self.start, self.len) = (payload - count, count + kept);
    }

    /// The same for a frame without room in front, which has some afterwards.
    #[cold]
    #[inline(never)]
    fn move_back(&mut self, count: usize, instead: usize) {
        let (kept, from, to) = (self.len - instead, self.start + instead, ROOM + count);
        let needed = to + kept + PADDING;
        if self.bytes.len() < needed {
            self.bytes.resize(needed, 0);
        }
        self.bytes.copy_within(from..from + kept + PADDING, to);
        (self.start, self.len) = (ROOM, count + kept);
    }

    /// The first bytes of the frame.
    #[inline(always)]
    pub fn head_mut(&mut self, count: usize) -> &mut [u8] {
        let count = count.min(self.len);
        &mut self.bytes[self.start..self.start + count]
    }

    /// Shortens the frame to a length.
    pub fn cut(&mut self, len: usize) {
        if len < self.len {
            self.len = len;
            self.bytes[self.start + len..][..PADDING].fill(0);
        }
    }

    /// Exchanges the frames of two packets.
    pub fn exchange(&mut self, other: &mut Packet) {
        std::mem::swap(&mut self.bytes, &mut other.bytes);
        std::mem::swap(&mut self.start, &mut other.start);
        std::mem::swap(&mut self.len, &mut other.len);
    }

    /// Replaces the frame.
    #[inline(always)]
    pub fn set_frame(&mut self, frame: &[u8]) {
        (self.start, self.len) = (ROOM, frame.len());
        let needed = ROOM + frame.len() + PADDING;
        if self.bytes.len() < needed {
            self.bytes.resize(needed, 0);
        }
        let (to, rest) = self.bytes[ROOM..].split_at_mut(frame.len());
        to.copy_from_slice(frame);
        rest[..PADDING].copy_from_slice(&[0; PADDING]);
    }
}

/// All packets. Grows to the largest number held at a time, which the shared buffer bounds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool {
    packets: Vec<Packet>,
    free: Vec<PacketId>,
    /// Packets copied since the counters were reset.
    pub copies: u64,
    /// The owner's number of the frame that is handled: that of the frame that has arrived or has left its queue. Packets made of it
    /// carry it.
    pub tag: u16,
}

impl Pool {
    /// A packet with a copy of this frame.
    pub fn alloc(&mut self, frame: &[u8], meta: Meta) -> PacketId {
        let id = self.take();
        let packet = &mut self.packets[id as usize];
        packet.set_frame(frame);
        packet.meta = meta;
        packet.next = NONE;
        id
    }

    /// Makes a packet of an existing frame, which gets another buffer in exchange.
    #[inline]
    pub fn adopt(&mut self, frame: &mut Packet, meta: Meta) -> PacketId {
        let id = self.take();
        let packet = &mut self.packets[id as usize];
        std::mem::swap(&mut packet.bytes, &mut frame.bytes);
        (packet.start, packet.len) = (frame.start, frame.len);
        packet.meta = meta;
        packet.next = NONE;
        id
    }

    /// Makes a packet of a finished frame, which only has to be sent. `frame` gets another buffer in
    /// exchange.
    #[inline(always)]
    pub fn adopt_sent(&mut self, frame: &mut Vec<u8>, meta: Meta) -> PacketId {
        let id = self.take();
        let packet = &mut self.packets[id as usize];
        (packet.start, packet.len) = (0, frame.len());
        std::mem::swap(&mut packet.bytes, frame);
        packet.meta = meta;
        packet.next = NONE;
        id
    }

    /// Makes a packet of a frame that is still to be processed. `frame` gets another buffer in exchange.
    pub fn adopt_frame(&mut self, frame: &mut Vec<u8>, meta: Meta) -> PacketId {
        let id = self.take();
        let packet = &mut self.packets[id as usize];
        packet.take_frame(frame);
        packet.meta = meta;
        packet.next = NONE;
        id
    }

    /// Takes the packet's frame back out.
    #[inline]
    pub fn hand_out(&mut self, id: PacketId, frame: &mut Vec<u8>) {
        debug_assert_eq!(self.packets[id as usize].start, 0, "it was adopted");
        std::mem::swap(&mut self.packets[id as usize].bytes, frame);
    }

    fn take(&mut self) -> PacketId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.packets.push(Packet::default());
            self.packets.len() as PacketId - 1
        });
        self.packets[id as usize].tag = self.tag;
        id
    }

    /// Goes on with a packet that has waited.
    #[inline]
    pub fn go_on(&mut self, id: PacketId) {
        self.tag = self.packets[id as usize].tag;
    }

    /// A copy of a packet: the frame and its metadata, without variables.
    pub fn copy(&mut self, id: PacketId) -> PacketId {
        self.copies += 1;
        let source = std::mem::take(&mut self.packets[id as usize]);
        let copy = self.alloc(source.frame(), source.meta);
        self.packets[id as usize] = source;
        copy
    }

    /// Returns a packet to the pool.
    #[inline]
    pub fn release(&mut self, id: PacketId) {
        self.free.push(id);
    }

    /// Number of packets in use.
    #[cfg(test)]
    pub fn used(&self) -> usize {
        self.packets.len() - self.free.len()
    }

    #[inline]
    pub fn get(&self, id: PacketId) -> &Packet {
        &self.packets[id as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.packets[id as usize]
    }
}
