//! Values of options that several commands take, and bytes as text.

use p4rack_wire::edm::Opcode;
use std::fmt::Write;
use std::net::SocketAddr;

/// Bytes of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bytes(pub Vec<u8>);

/// Bytes in hexadecimal.
pub(super) fn hex(text: &str) -> Result<Bytes, String> {
    let wrong = || "write two hexadecimal digits for each byte, e.g. 00ff10".to_owned();
    if !text.bytes().all(|digit| digit.is_ascii_hexdigit()) || !text.len().is_multiple_of(2) {
        return Err(wrong());
    }
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| wrong());
    (0..text.len()).step_by(2).map(byte).collect::<Result<_, _>>().map(Bytes)
}

/// Two hexadecimal digits for each byte.
pub(super) fn in_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// An address with a port.
pub(super) fn addr(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("`{text}` is no IP address with a port, such as 127.0.0.1:9559"))
}

/// An atomic operation.
pub(super) fn opcode(text: &str) -> Result<Opcode, String> {
    Ok(match text {
        "cas" => Opcode::Cas,
        "fetch-add" => Opcode::FetchAdd,
        "swap" => Opcode::Swap,
        "and" => Opcode::And,
        "or" => Opcode::Or,
        "xor" => Opcode::Xor,
        "min" => Opcode::Min,
        "max" => Opcode::Max,
        _ => return Err("there are cas, fetch-add, swap, and, or, xor, min and max".to_owned()),
    })
}

/// Sixteen bytes a line: address, bytes, characters.
pub(super) fn dump(address: u64, bytes: &[u8]) -> String {
    let mut out = String::new();
    for (nth, line) in bytes.chunks(16).enumerate() {
        let at = address.wrapping_add(16 * nth as u64);
        let pairs = line.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
        let shown = |byte: &u8| if (0x20..0x7f).contains(byte) { char::from(*byte) } else { '.' };
        let _ = writeln!(out, "{at:08x}  {pairs:<47}  {}", line.iter().map(shown).collect::<String>());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_refused() {
        assert_eq!(hex("00ff10"), Ok(Bytes(vec![0, 255, 16])));
        assert!(["0", "0x", "zz", "+1", "ä1"].iter().all(|text| hex(text).is_err()));
        assert!(opcode("add").is_err());
    }

    #[test]
    fn bytes_are_shown_with_their_addresses() {
        assert_eq!(
            dump(0x10, b"remote memory here\x00"),
            "00000010  72 65 6d 6f 74 65 20 6d 65 6d 6f 72 79 20 68 65  remote memory he\n\
             00000020  72 65 00                                         re.\n"
        );
    }
}
