//! A call's results, which come in one or more packets, in any order.
//!
//! Each packet names its attempt. A retry of a call that returns bytes is executed again, and may find something else, so packets of
//! different attempts are never mixed: packets of a later attempt start over, those of an earlier one are dropped.

use p4rack_wire::clio::packet::Packet;

/// Effect of a packet of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gathered {
    /// More packets are missing.
    Part,
    /// Nothing is missing.
    Whole,
    /// Nothing: it is a copy, belongs to an earlier attempt, or doesn't fit the others.
    Stale,
    /// There are more bytes than the caller takes.
    TooLong,
}

/// The results of an attempt, as far as they have come.
#[derive(Clone, Debug, Default)]
pub(super) struct Gather {
    bytes: Vec<u8>,
    /// A bit for each packet that has come.
    came: Vec<u64>,
    attempt: u8,
    /// Packets in all, 0 before the first one; packets and bytes that have come.
    packets: u16,
    count: u16,
    sum: usize,
}

impl Gather {
    /// The results.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Forgets everything; a long buffer is returned to the allocator.
    pub fn clear(&mut self, kept_bytes: usize) {
        self.begin(0, 0);
        self.bytes.shrink_to(kept_bytes);
    }

    fn begin(&mut self, attempt: u8, packets: u16) {
        (self.attempt, self.packets, self.count, self.sum) = (attempt, packets, 0, 0);
        self.bytes.clear();
        self.came.clear();
        self.came.resize(usize::from(packets).div_ceil(64), 0);
    }

    /// Takes a packet of results, of which the caller wants at most `bytes_max` bytes. `header.address` is the packet's place in them.
    pub fn take(&mut self, packet: &Packet<'_>, bytes_max: u32) -> Gathered {
        let header = &packet.header;
        let is_begun = self.packets > 0;
        if is_begun && header.attempt < self.attempt {
            return Gathered::Stale;
        }
        if !is_begun || header.attempt > self.attempt {
            self.begin(header.attempt, header.packets);
        }
        let (word, bit) = (usize::from(header.index / 64), 1 << (header.index % 64));
        let Some(came) = self.came.get_mut(word).filter(|_| header.packets == self.packets) else {
            return Gathered::Stale;
        };
        if *came & bit != 0 {
            return Gathered::Stale;
        }
        // An answer without results names the offload.
        let at = if packet.data.is_empty() { Some(0) } else { usize::try_from(header.address).ok() };
        let place = at.and_then(|at| Some(at..at.checked_add(packet.data.len())?));
        let Some(place) = place.filter(|place| place.end as u64 <= u64::from(bytes_max)) else {
            return Gathered::TooLong;
        };
        *came |= bit;
        if self.bytes.len() < place.end {
            self.bytes.resize(place.end, 0);
        }
        self.bytes[place].copy_from_slice(packet.data);
        self.count += 1;
        self.sum += packet.data.len();
        if self.count < self.packets {
            return Gathered::Part;
        }
        // Packets that overlap, or leave a gap, are no answer of a board.
        if self.sum == self.bytes.len() {
            return Gathered::Whole;
        }
        self.begin(0, 0);
        Gathered::Stale
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_wire::clio::{Header, Kind, VERSION};

    fn take(
        gather: &mut Gather,
        attempt: u8,
        (index, packets): (u16, u16),
        address: u64,
        data: &[u8],
    ) -> Gathered {
        let header = Header {
            version: VERSION,
            kind: Kind::Answer as u8,
            code: 0,
            flags: 0,
            attempt,
            index,
            packets,
            id: 1,
            address,
            pid: 1,
            length: data.len() as u32,
            token: 1,
            epoch: 1,
            reserved: 0,
            crc: 0,
        };
        gather.take(&Packet { header, kind: Kind::Answer, data }, 10)
    }

    #[test]
    fn packets_come_in_any_order_and_more_than_once() {
        let mut gather = Gather::default();
        assert_eq!(take(&mut gather, 0, (2, 3), 8, b"ij"), Gathered::Part);
        assert_eq!(take(&mut gather, 0, (2, 3), 8, b"ij"), Gathered::Stale);
        assert_eq!(take(&mut gather, 0, (0, 3), 0, b"abcd"), Gathered::Part);
        assert_eq!(take(&mut gather, 0, (1, 3), 4, b"efgh"), Gathered::Whole);
        assert_eq!(gather.bytes(), b"abcdefghij");
        gather.clear(0);
        assert_eq!(take(&mut gather, 0, (0, 1), 77, b""), Gathered::Whole);
        assert_eq!(gather.bytes(), b"");
    }

    #[test]
    fn attempts_are_not_mixed() {
        let mut gather = Gather::default();
        assert_eq!(take(&mut gather, 0, (0, 2), 0, b"old "), Gathered::Part);
        assert_eq!(take(&mut gather, 1, (1, 2), 4, b"new"), Gathered::Part);
        assert_eq!(take(&mut gather, 0, (1, 2), 4, b"old"), Gathered::Stale, "of an earlier attempt");
        assert_eq!(take(&mut gather, 1, (0, 2), 0, b"very"), Gathered::Whole);
        assert_eq!(gather.bytes(), b"verynew");
    }

    #[test]
    fn what_does_not_fit_is_not_taken() {
        let mut gather = Gather::default();
        assert_eq!(take(&mut gather, 0, (0, 1), 8, b"abc"), Gathered::TooLong);
        assert_eq!(take(&mut gather, 0, (0, 1), u64::MAX, b"abc"), Gathered::TooLong);
        assert_eq!(take(&mut gather, 1, (0, 2), 0, b"abc"), Gathered::Part);
        assert_eq!(take(&mut gather, 1, (1, 3), 3, b"abc"), Gathered::Stale, "another number of packets");
        assert_eq!(take(&mut gather, 1, (1, 2), 4, b"abc"), Gathered::Stale, "a gap");
        assert_eq!(take(&mut gather, 1, (1, 2), 2, b"a"), Gathered::Part, "it begins anew");
        assert_eq!(take(&mut gather, 1, (0, 2), 0, b"ab"), Gathered::Whole);
    }
}
