//! Bytes of packets on a link in addition to their payload.

use p4rack_fabric::edm::blocks::{BLOCK_BYTES, Content, Framing};
use p4rack_wire::ethernet::overhead;

/// Headers and gaps of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headers {
    /// None: only payload takes time.
    None,
    /// Those of Ethernet, IP and a transport, with preamble and gap.
    Transport,
    /// Those of RoCEv2.
    Rocev2,
    /// Those of EDM's frames. Control packets are frames, too.
    Edm,
}

/// Ethernet's header and FCS, and the headers of IP and TCP.
const TRANSPORT_BYTES: u64 = 14 + 4 + 20 + 20;
/// Preamble and gap, in whole blocks.
const TRANSPORT_GAP_BLOCKS: u64 = 3;
/// Ethernet's header without FCS, IP, UDP, RDMA's base header and its checksum.
const ROCE_BYTES: u64 = 14 + 20 + 8 + 12 + 4;
/// Address, key and length, in requests and writes.
const RETH_BYTES: u64 = 16;
/// Acknowledgement, in answers.
const AETH_BYTES: u64 = 4;

impl Headers {
    /// Blocks of an acknowledgement or a credit. With other headers it is as short as in the authors' simulator.
    pub fn control_blocks(self) -> u64 {
        match self {
            Headers::None | Headers::Transport | Headers::Rocev2 => 1,
            Headers::Edm => Framing::Ethernet.short_blocks(),
        }
    }

    /// Blocks of a packet on a link.
    pub fn blocks(self, content: Content) -> u64 {
        let payload = match content {
            // Two blocks, as in the authors' simulator.
            Content::ReadRequest | Content::ModifyRequest(_) => {
                Framing::Payload.blocks(Content::ReadRequest) * BLOCK_BYTES
            }
            Content::Write(bytes) | Content::Response(bytes) => bytes.into(),
        };
        match self {
            Headers::None => payload.div_ceil(BLOCK_BYTES),
            Headers::Edm => Framing::Ethernet.blocks(content),
            Headers::Transport => {
                (payload + TRANSPORT_BYTES).max(overhead::MIN_FRAME + overhead::FCS).div_ceil(BLOCK_BYTES)
                    + TRANSPORT_GAP_BLOCKS
            }
            Headers::Rocev2 => {
                let bytes = match content {
                    Content::ReadRequest | Content::ModifyRequest(_) => RETH_BYTES,
                    Content::Write(bytes) => RETH_BYTES + u64::from(bytes),
                    Content::Response(bytes) => AETH_BYTES + u64::from(bytes),
                };
                overhead::wire_bytes(ROCE_BYTES + bytes).div_ceil(BLOCK_BYTES)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_edm_s_headers_all_packets_are_its_frames() {
        let all = [Content::ReadRequest, Content::Write(64), Content::Response(1_024)];
        assert_eq!(all.map(|content| Headers::Edm.blocks(content)), [11, 17, 137]);
        assert_eq!([Headers::Transport, Headers::Edm].map(Headers::control_blocks), [1, 11]);
    }

    #[test]
    fn packets_take_their_headers_and_a_frame_at_least() {
        let all = [Content::ReadRequest, Content::Write(100), Content::Response(1_024)];
        assert_eq!(all.map(|content| Headers::None.blocks(content)), [2, 13, 128]);
        assert_eq!(all.map(|content| Headers::Transport.blocks(content)), [13, 23, 139]);
        assert_eq!(Headers::Transport.blocks(Content::Write(1)), 8 + 3);
        // 98, 198 and 1110 bytes with preamble and gap.
        assert_eq!(all.map(|content| Headers::Rocev2.blocks(content)), [13, 25, 139]);
    }
}
