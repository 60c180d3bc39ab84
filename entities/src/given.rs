//! Forms of `p4_device_config`: P4 text, plain or wrapped as older controllers do, or something meant for
//! another switch.

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

/// If a text cannot be P4: its kind, and what to send instead. No P4 program begins with a brace.
pub fn other_than_p4(text: &str) -> Option<&'static str> {
    let json = text.trim_start_matches(|first: char| first == '\u{feff}' || first.is_whitespace());
    if !json.starts_with('{') {
        return None;
    }
    // p4c-bm2-ss always writes this.
    let is_bmv2 = ["\"header_types\"", "\"pipelines\""].iter().all(|key| json.contains(key));
    Some(if is_bmv2 {
        "BMv2 JSON, the output of p4c-bm2-ss for simple_switch; this switch runs P4_16 text: give the .p4 file that it \
         was compiled from, and the P4Info of `p4rack p4 info FILE.p4`"
    } else {
        "JSON; this switch runs P4_16 text: give the .p4 file, and the P4Info of `p4rack p4 info FILE.p4`"
    })
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

    #[test]
    fn json_is_told_from_text_and_bmv2s_from_other() {
        assert!(
            other_than_p4("{ \"header_types\" : [], \"pipelines\" : [] }").unwrap().starts_with("BMv2 JSON")
        );
        assert!(other_than_p4("\u{feff}\n {\"a\": 1}").unwrap().starts_with("JSON"));
        assert_eq!(other_than_p4("// {\n#include <core.p4>"), None);
    }
}
