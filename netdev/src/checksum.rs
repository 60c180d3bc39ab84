//! Completes TCP and UDP checksums that the sending kernel left to the hardware.
//!
//! A veth has no hardware, so such a frame arrives with only the sum of the pseudo header.

use p4rack_wire::ipv4::{fold, sum};

const ETHERNET: usize = 14;
const TCP: u8 = 6;
const UDP: u8 = 17;

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// Start and end of the transport header, its protocol, and the sum of the pseudo header.
struct Transport {
    start: usize,
    end: usize,
    protocol: u8,
    pseudo: u64,
}

fn transport(frame: &[u8]) -> Option<Transport> {
    let mut start = ETHERNET;
    let mut ether_type = u16_at(frame, 12)?;
    // Customer and service tags.
    while matches!(ether_type, 0x8100 | 0x88a8) {
        ether_type = u16_at(frame, start + 2)?;
        start += 4;
    }
    let (header, length, protocol, addresses) = match ether_type {
        0x0800 => {
            let header = usize::from(frame.get(start)? & 0xf) * 4;
            let total = usize::from(u16_at(frame, start + 2)?);
            let fragment = u16_at(frame, start + 6)? & 0x3fff;
            // A fragment's checksum covers bytes that are not in this frame.
            if fragment != 0 || header < 20 {
                return None;
            }
            (header, total.checked_sub(header)?, *frame.get(start + 9)?, start + 12..start + 20)
        }
        0x86dd => (40, usize::from(u16_at(frame, start + 4)?), *frame.get(start + 6)?, start + 8..start + 40),
        _ => return None,
    };
    let pseudo = sum(frame.get(addresses)?) + u64::from(protocol) + length as u64;
    let start = start + header;
    let end = start.checked_add(length).filter(|end| *end <= frame.len())?;
    Some(Transport { start, end, protocol, pseudo })
}

/// Computes the TCP or UDP checksum of an Ethernet frame and writes it. Returns false and changes nothing if
/// the frame is neither, is a fragment, or is truncated.
pub fn finish(frame: &mut [u8]) -> bool {
    let Some(found) = transport(frame) else { return false };
    let field = match found.protocol {
        TCP => 16,
        UDP => 6,
        _ => return false,
    };
    let segment = &mut frame[found.start..found.end];
    if segment.len() < field + 2 {
        return false;
    }
    segment[field..field + 2].fill(0);
    let mut checksum = fold(found.pseudo + sum(segment));
    // UDP sends a zero sum as all ones, because zero means no checksum.
    if found.protocol == UDP && checksum == 0 {
        checksum = 0xffff;
    }
    segment[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
    true
}

/// Completes a checksum that was left to the hardware, which it recognises by the field: it holds the sum of
/// the pseudo header. If that happens to be the correct checksum, the frame is unchanged.
pub fn finish_if_left(frame: &mut [u8]) -> bool {
    let Some(found) = transport(frame) else { return false };
    let field = found.start + if found.protocol == TCP { 16 } else { 6 };
    matches!(found.protocol, TCP | UDP) && u16_at(frame, field) == Some(!fold(found.pseudo)) && finish(frame)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UDP 10.0.0.1:1 → 10.0.0.2:2 with the payload "ab".
    fn udp(tag: bool) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        if tag {
            frame.extend([0x81, 0, 0xb0, 5]);
        }
        frame.extend([8, 0, 0x45, 0, 0, 30, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0, 1, 0, 2, 0, 10, 0xde, 0xad, b'a', b'b']);
        // Ethernet padding is not part of the sum.
        frame.extend([0xff; 20]);
        frame
    }

    #[test]
    fn udp_is_summed_without_padding_tagged_or_not() {
        // 0x0a00+1+0x0a00+2 + 17+10 + 1+2+10 + 0x6162 = 0x758d; its complement.
        for tag in [false, true] {
            let mut frame = udp(tag);
            assert!(finish(&mut frame));
            let at = 14 + 20 + 6 + if tag { 4 } else { 0 };
            assert_eq!(u16_at(&frame, at), Some(!0x758d));
        }
    }

    #[test]
    fn what_was_left_is_told_from_the_frame() {
        let mut whole = udp(true);
        assert!(finish(&mut whole));
        let right = whole.clone();
        assert!(!finish_if_left(&mut whole), "finished twice");
        // As a kernel leaves it: the sum of addresses, protocol and length, not complemented.
        let at = 14 + 4 + 20 + 6;
        whole[at..at + 2].copy_from_slice(&0x141eu16.to_be_bytes());
        assert!(finish_if_left(&mut whole));
        assert_eq!(whole, right);
    }

    #[test]
    fn fragments_other_protocols_and_cut_frames_are_left_alone() {
        let mut fragment = udp(false);
        fragment[20] = 0x20;
        let mut arp = udp(false);
        arp[13] = 6;
        for frame in [fragment, arp, udp(false)[..40].to_vec(), vec![], vec![0; 13]] {
            let mut after = frame.clone();
            assert!(!finish(&mut after));
            assert_eq!(after, frame);
        }
    }
}
