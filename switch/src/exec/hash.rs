//! Hash and checksum algorithms.

use p4rack_p4::ir::HashAlgorithm;

const CRC32: [u32; 256] = table32();
const CRC16: [u16; 256] = table16();

const fn table32() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { value >> 1 ^ 0xEDB8_8320 } else { value >> 1 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
}

const fn table16() -> [u16; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = index as u16;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { value >> 1 ^ 0xA001 } else { value >> 1 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
}

/// Ethernet's CRC-32.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| crc >> 8 ^ CRC32[(crc as u8 ^ byte) as usize])
}

/// CRC-16 with polynomial 0x8005, reflected, initial value 0.
pub(crate) fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, byte| crc >> 8 ^ CRC16[(crc as u8 ^ byte) as usize])
}

/// The Internet checksum (RFC 1071).
pub(crate) fn csum16(bytes: &[u8]) -> u16 {
    let pairs = bytes.chunks_exact(2);
    let odd = pairs.remainder().first().map_or(0, |byte| u64::from(*byte) << 8);
    let mut sum = pairs.map(|pair| u64::from(u16::from_be_bytes([pair[0], pair[1]]))).sum::<u64>() + odd;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn xor16(bytes: &[u8]) -> u16 {
    bytes
        .chunks(2)
        .fold(0, |sum, pair| sum ^ u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]))
}

/// The first eight bytes as a number.
fn identity(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// Hash of bytes; `random` is the result of the random algorithm.
pub(crate) fn hash(algorithm: HashAlgorithm, bytes: &[u8], random: impl FnOnce() -> u64) -> u64 {
    match algorithm {
        // Without configured parameters, a custom CRC is the standard one.
        HashAlgorithm::Crc32 | HashAlgorithm::Crc32Custom => crc32(bytes).into(),
        HashAlgorithm::Crc16 | HashAlgorithm::Crc16Custom => crc16(bytes).into(),
        HashAlgorithm::Csum16 => csum16(bytes).into(),
        HashAlgorithm::Xor16 => xor16(bytes).into(),
        HashAlgorithm::Identity => identity(bytes),
        HashAlgorithm::Random => random(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_values() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc16(b"123456789"), 0xBB3D);
        // RFC 1071, section 3.
        assert_eq!(csum16(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        assert_eq!(csum16(&[0x01]), !0x0100);
        assert_eq!(xor16(&[0x12, 0x34, 0xff, 0x00, 0x01]), 0x1234 ^ 0xff00 ^ 0x0100);
        assert_eq!(identity(&[1, 2, 3]), 0x010203);
    }
}
