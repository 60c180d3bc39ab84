//! Forms of `p4_device_config`: a program, plain or wrapped as older controllers do.

use p4rack_p4rt::raw::{Field, Fields};

/// The `device_data` of a `p4.tmp.P4DeviceConfig`, in which p4lang's tutorials and older controllers send it; `None` for
/// anything else.
///
/// ```text
/// message P4DeviceConfig { bool reassign = 1; Extras extras = 2; bytes device_data = 3; }
/// message P4DeviceConfig { Extras extras = 1; bytes device_data = 2; }                     // other versions
/// ```
pub fn device_data(bytes: &[u8]) -> Option<&[u8]> {
    let mut fields = Fields::of(bytes);
    let (mut second, mut third, mut has_reassign) = (None, None, false);
    loop {
        match fields.next()? {
            Field::End => break,
            Field::Number(1, 0 | 1) => has_reassign = true,
            Field::Bytes(1, _) => {}
            Field::Bytes(2, bytes) => second = Some(bytes),
            Field::Bytes(3, bytes) => third = Some(bytes),
            _ => return None,
        }
    }
    third.or(second.filter(|_| !has_reassign))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field of bytes.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2];
        let mut length = bytes.len();
        while length >= 0x80 {
            out.push(length as u8 | 0x80);
            length >>= 7;
        }
        out.push(length as u8);
        [&out[..], bytes].concat()
    }

    #[test]
    fn device_data_is_taken_out_of_both_layouts_and_text_is_left_alone() {
        let text = b"#include <v1model.p4>\n".repeat(20);
        let extras = field(1, &[field(1, b"port"), field(2, b"9090")].concat());
        for wrapped in [
            field(3, &text),
            [vec![8, 1], field(3, &text)].concat(),
            [vec![8, 1], field(2, &extras), field(3, &text)].concat(),
            field(2, &text),
            [field(1, &extras), field(2, &text)].concat(),
        ] {
            assert_eq!(device_data(&wrapped), Some(&text[..]));
        }
        for other in [&text[..], b"", b"\n\n\n\n\n\n\n\n\n\n\n\n", b"/* c */", &[8, 1], &[0x1a, 9, 1]] {
            assert_eq!(device_data(other), None, "{other:?}");
        }
        assert_eq!(device_data(&[vec![8, 1], field(2, &text)].concat()), None, "extras only");
    }
}
