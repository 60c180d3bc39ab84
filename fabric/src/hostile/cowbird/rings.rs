//! Rings that are always full: their content is computed from the address and from the engine's last red block.

use crate::common::SplitMix;
use crate::roce::{Access, Denied, Modify, RegisteredMemory, RemoteAddress};
use p4rack_wire::cowbird::{
    BLOCK_BYTES, ENTRIES_AT, Entry, GREEN_AT, Kind, Layout, RED_AT, Red, RequestId, WORD_BYTES,
};

/// Requests that the entries contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// The longest reads.
    Reads,
    /// The longest writes.
    Writes,
    /// Reads of a word.
    SmallReads,
    /// Invalid entries.
    Nonsense,
}

/// A set whose ring is full whenever the engine looks.
#[derive(Clone, Debug)]
pub struct EndlessSet {
    /// Key of its memory.
    pub key: u32,
    /// Address of its first byte.
    pub address: u64,
    /// Sizes of its rings.
    pub layout: Layout,
    /// Requests that its entries contain.
    pub contents: Contents,
    /// Bytes of its only region; at least the longest message.
    pub region_bytes: u64,
    /// Bytes of the longest message, a power of two and at most half of a ring.
    pub message_bytes: u32,
    red: Red,
}

impl EndlessSet {
    /// A set before the engine's first probe.
    pub const fn new(
        (key, address): (u32, u64),
        layout: Layout,
        contents: Contents,
        region_bytes: u64,
        message_bytes: u32,
    ) -> EndlessSet {
        let red = Red {
            request_head: 0,
            request_data_head: 0,
            response_data_tail: 0,
            write_progress: 0,
            read_progress: 0,
            refusal: 0,
        };
        EndlessSet { key, address, layout, contents, region_bytes, message_bytes, red }
    }

    /// Requests completed by the engine.
    pub const fn done(&self) -> u64 {
        self.red.request_head
    }

    /// Bytes of each request.
    fn length(&self) -> u64 {
        if self.contents == Contents::SmallReads { WORD_BYTES } else { self.message_bytes.into() }
    }

    /// The word at an offset, a multiple of 8.
    fn word(&self, at: u64) -> u64 {
        let tail = self.red.request_head + self.layout.entries;
        if at < GREEN_AT + BLOCK_BYTES {
            return match (at - GREEN_AT) / WORD_BYTES {
                0 => tail,
                1 | 2 => tail * self.length(),
                3 => self.red.response_data_tail,
                _ => 0,
            };
        }
        if !(ENTRIES_AT..self.layout.request_data_at()).contains(&at) {
            return 0;
        }
        let (slot, word) = ((at - ENTRIES_AT) / Entry::BYTES as u64, (at % Entry::BYTES as u64) / WORD_BYTES);
        let head = self.red.request_head;
        self.entry(head + (slot.wrapping_sub(head) & (self.layout.entries - 1)), word)
    }

    /// A word of the entry at a position. All requests are of one kind and length, so nothing straddles a ring's end.
    fn entry(&self, position: u64, word: u64) -> u64 {
        if self.contents == Contents::Nonsense {
            return SplitMix(position << 2 | word).next();
        }
        let (kind, ring_at, ring) = match self.contents {
            Contents::Writes => (Kind::Write, self.layout.request_data_at(), self.layout.request_bytes),
            _ => (Kind::Read, self.layout.response_data_at(), self.layout.response_bytes),
        };
        let length = self.length();
        let local = ring_at + ((position * length) & (ring - 1));
        let remote = position % (self.region_bytes / length).max(1) * length;
        match (word, kind) {
            (0, _) => RequestId::new(kind, 0, position + 1).0,
            (1, _) => (kind as u64) << 48 | length,
            (2, Kind::Read) | (3, Kind::Write) => remote,
            _ => local,
        }
    }
}

/// The rings of a hostile compute node, as memory of its adapter.
#[derive(Clone, Debug, Default)]
pub struct Rings(pub Vec<EndlessSet>);

impl Rings {
    /// The set of an access, and the offset in it.
    fn find(&self, place: RemoteAddress, bytes: u64) -> Result<(usize, u64), Denied> {
        let nth = self.0.iter().position(|set| set.key == place.key).ok_or(Denied::Key)?;
        let set = &self.0[nth];
        let at = place.address.checked_sub(set.address).ok_or(Denied::Bounds)?;
        let fits = at.checked_add(bytes).is_some_and(|end| end <= set.layout.bytes());
        if fits { Ok((nth, at)) } else { Err(Denied::Bounds) }
    }
}

impl RegisteredMemory for Rings {
    fn check(&self, place: RemoteAddress, _: Access, bytes: u32) -> Result<(), Denied> {
        self.find(place, bytes.into()).map(|_| ())
    }

    fn read(&self, place: RemoteAddress, into: &mut [u8]) -> Result<(), Denied> {
        let (nth, start) = self.find(place, into.len() as u64)?;
        let mut at = start;
        let mut rest = into;
        while !rest.is_empty() {
            let from = (at % WORD_BYTES) as usize;
            let word = self.0[nth].word(at - from as u64).to_be_bytes();
            let length = (word.len() - from).min(rest.len());
            let (now, later) = rest.split_at_mut(length);
            now.copy_from_slice(&word[from..from + length]);
            (rest, at) = (later, at + length as u64);
        }
        Ok(())
    }

    fn write(&mut self, place: RemoteAddress, bytes: &[u8]) -> Result<(), Denied> {
        let (nth, at) = self.find(place, bytes.len() as u64)?;
        if at == RED_AT
            && let Ok(red) = Red::parse(bytes)
        {
            self.0[nth].red = red;
        }
        Ok(())
    }

    fn modify(&mut self, _: RemoteAddress, _: Modify) -> Result<u64, Denied> {
        Err(Denied::Rights)
    }
}
