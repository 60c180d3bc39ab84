//! Memory messages as 66-bit blocks of the physical coding sublayer (§3.2).
//!
//! ```text
//! notification, grant   /N/, /G/                one block
//! up to 7 bytes         /MST/                   one block
//! longer                /MS/ /MD/ … /MD/ /MT/   7 bytes, 8 each, up to 7
//! ```
//!
//! A control block has 56 bits beside its type, a data block has 64. A message starts with the 33 bits of §3.1.4
//! (destination 9, message id 8, size 16), here 5 bytes. A read request adds the 8 bytes of its address, and so does
//! the first chunk of a write; a read's answer adds nothing.

use p4rack_wire::edm::Message;
use p4rack_wire::ethernet::{Ethernet, Vlan, overhead};

/// Bytes of a frame before its part of a message.
const FRAME_HEADERS: u64 = (Ethernet::BYTES + Vlan::BYTES + Message::BYTES) as u64;
/// Bytes of a block's payload, where it is a data block.
pub const BLOCK_BYTES: u64 = 8;
/// Bytes of a control block, without its type.
const CONTROL_BYTES: u64 = 7;
/// Destination, message id and size.
const MESSAGE_BYTES: u64 = 5;
/// A memory address.
const ADDRESS_BYTES: u64 = 8;

/// Block types that EDM adds (§3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// /N/: requests a grant.
    Notification,
    /// /G/: permits a source to send a chunk.
    Grant,
    /// /MS/: a message starts.
    Start,
    /// /MD/: eight of its bytes.
    Data,
    /// /MT/: it ends.
    End,
    /// /MST/: a message of one block.
    Single,
}

/// Contents of a memory message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A read request: an address.
    ReadRequest,
    /// An atomic operation on a word with this many bytes of operands.
    ModifyRequest(u32),
    /// Bytes to write, with the address.
    Write(u32),
    /// The bytes that were read.
    Response(u32),
}

/// Which parts of a message take time on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Whole messages, headers included.
    Blocks,
    /// Only payload, in blocks, and two blocks per request, as in the authors' simulator.
    Payload,
    /// Frames of Ethernet with p4rack's headers, in multiples of a block, as a P4 pipeline can read them.
    Ethernet,
}

impl Framing {
    /// Blocks of a message under this count.
    pub const fn blocks(self, content: Content) -> u64 {
        match (self, content) {
            (Framing::Ethernet, Content::ReadRequest | Content::ModifyRequest(_)) => self.short_blocks(),
            (Framing::Ethernet, Content::Write(bytes) | Content::Response(bytes)) => {
                overhead::wire_bytes(FRAME_HEADERS + bytes as u64).div_ceil(BLOCK_BYTES)
            }
            (Framing::Blocks, _) | (_, Content::ReadRequest | Content::ModifyRequest(_)) => content.blocks(),
            (_, Content::Write(bytes) | Content::Response(bytes)) => (bytes as u64).div_ceil(BLOCK_BYTES),
        }
    }
}

impl Framing {
    /// Blocks of a notification or a grant.
    pub const fn short_blocks(self) -> u64 {
        match self {
            Framing::Ethernet => overhead::wire_bytes(overhead::MIN_FRAME).div_ceil(BLOCK_BYTES),
            Framing::Blocks | Framing::Payload => 1,
        }
    }
}

impl Content {
    /// Bytes of the message with its header.
    pub const fn bytes(self) -> u64 {
        MESSAGE_BYTES
            + match self {
                Content::ReadRequest => ADDRESS_BYTES,
                Content::ModifyRequest(operands) => ADDRESS_BYTES + operands as u64,
                Content::Write(bytes) => ADDRESS_BYTES + bytes as u64,
                Content::Response(bytes) => bytes as u64,
            }
    }

    /// Number of its blocks.
    pub const fn blocks(self) -> u64 {
        let bytes = self.bytes();
        if bytes <= CONTROL_BYTES {
            return 1;
        }
        2 + bytes.saturating_sub(2 * CONTROL_BYTES).div_ceil(BLOCK_BYTES)
    }

    /// The types of its blocks, in order.
    pub fn sequence(self) -> impl Iterator<Item = Block> {
        let blocks = self.blocks();
        (0..blocks).map(move |nth| match nth {
            0 if blocks == 1 => Block::Single,
            0 => Block::Start,
            _ if nth + 1 == blocks => Block::End,
            _ => Block::Data,
        })
    }
}

/// Time of one block on a link, in picoseconds: 64 bits at its rate. The two bits of the sync header are in the
/// line's rate above that (103.125 Gb/s at 100 Gb/s). A rate of 0 is unlimited.
pub const fn block_ps(rate_bps: u64) -> u64 {
    match 64_000_000_000_000u64.checked_div(rate_bps) {
        Some(block_ps) => block_ps,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_take_the_blocks_that_the_paper_has() {
        assert_eq!(block_ps(25_000_000_000), 2_560, "§4.2's cycle");
        assert_eq!(block_ps(100_000_000_000), 640);
        // Two blocks, the sixteen bytes of the authors' simulator.
        assert_eq!(Content::ReadRequest.blocks(), 2);
        assert_eq!(Content::Response(2).blocks(), 1);
        // 5 + 64 = 7 + 7 × 8 + 6, and 5 + 8 + 64 = 7 + 8 × 8 + 6.
        assert_eq!(Content::Response(64).blocks(), 9);
        assert_eq!(Content::Write(64).blocks(), 10);
        assert_eq!(
            [Content::ReadRequest, Content::Write(64)].map(|content| Framing::Payload.blocks(content)),
            [2, 8]
        );
    }

    #[test]
    fn every_message_starts_and_ends_once_and_its_bytes_fit() {
        for bytes in 0..600 {
            for content in [Content::Write(bytes), Content::Response(bytes), Content::ModifyRequest(bytes)] {
                let blocks: Vec<Block> = content.sequence().collect();
                let count = |of: Block| blocks.iter().filter(|block| **block == of).count();
                let single = count(Block::Single);
                assert_eq!((count(Block::Start) + single, count(Block::End) + single), (1, 1), "{content:?}");
                let room = |data: usize| data as u64 * BLOCK_BYTES + if single == 1 { 7 } else { 14 };
                assert!(content.bytes() <= room(count(Block::Data)), "{content:?}");
                assert!(
                    count(Block::Data) == 0 || content.bytes() > room(count(Block::Data) - 1),
                    "{content:?}"
                );
            }
        }
    }
}
