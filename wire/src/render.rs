//! Renders header descriptions for other languages: P4_16 header types and Scapy layers.

use crate::header::HeaderDesc;
use std::fmt::Write;

/// The P4_16 header type that `desc` describes, without indentation, ending in a newline:
///
/// ```text
/// header vlan_t {
///     bit<3>  pcp;        // priority code point
///     …
/// }
/// ```
pub fn p4_header(desc: &HeaderDesc) -> String {
    let types: Vec<String> = desc.fields.iter().map(|f| format!("bit<{}>", f.bits)).collect();
    let type_width = types.iter().map(String::len).max().unwrap_or(0);
    let name_width = desc.fields.iter().map(|f| f.p4_name.len() + 1).max().unwrap_or(0);
    let mut text = String::new();
    for line in doc_lines(desc.doc) {
        let _ = writeln!(text, "// {line}");
    }
    let _ = writeln!(text, "header {} {{", desc.p4_name);
    for (field, ty) in desc.fields.iter().zip(&types) {
        let name = format!("{};", field.p4_name);
        let _ = writeln!(text, "    {ty:type_width$} {name:name_width$} // {}", one_line(field.doc));
    }
    text.push_str("}\n");
    text
}

/// The Scapy layer (a Python class) that `desc` describes, ending in a newline. The text expects
/// `from scapy.fields import *` and `from scapy.packet import Packet`.
///
/// Byte-aligned fields of 8, 16, 32 and 64 bits become Scapy's integers, 48 bits a MAC address,
/// the rest bit fields. Every default is 0.
pub fn scapy_layer(desc: &HeaderDesc) -> String {
    let mut text = format!("class {}(Packet):\n", desc.name);
    let _ = writeln!(text, "    name = \"{}\"", desc.name);
    text.push_str("    fields_desc = [\n");
    let mut at = 0;
    for field in desc.fields {
        let name = field.name;
        let made = match (at % 8, field.bits) {
            (0, 8) => format!("ByteField(\"{name}\", 0)"),
            (0, 16) => format!("XShortField(\"{name}\", 0)"),
            (0, 32) => format!("IntField(\"{name}\", 0)"),
            (0, 48) => format!("MACField(\"{name}\", \"00:00:00:00:00:00\")"),
            (0, 64) => format!("LongField(\"{name}\", 0)"),
            (_, bits) => format!("BitField(\"{name}\", 0, {bits})"),
        };
        let _ = writeln!(text, "        {made},  # {}", one_line(field.doc));
        at += field.bits;
    }
    text.push_str("    ]\n");
    text
}

fn doc_lines(doc: &str) -> impl Iterator<Item = &str> {
    doc.lines().map(str::trim).filter(|line| !line.is_empty())
}

fn one_line(doc: &str) -> String {
    doc_lines(doc).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ethernet::Vlan, pl2::Control};

    #[test]
    fn p4_text_is_aligned_and_complete() {
        let text = p4_header(&Vlan::DESC);
        assert_eq!(
            text,
            "// 802.1Q tag. A data frame that belongs to a reservation carries one; DEI marks it unsolicited.\n\
             header vlan_t {\n\
             \x20   bit<3>  pcp;       // priority code point\n\
             \x20   bit<1>  dei;       // drop eligible: an unsolicited frame\n\
             \x20   bit<12> vid;       // VLAN identifier\n\
             \x20   bit<16> etherType; // what follows\n\
             }\n"
        );
    }

    #[test]
    fn scapy_text_uses_integers_where_aligned() {
        let text = scapy_layer(&Control::DESC);
        assert!(text.starts_with("class Control(Packet):\n    name = \"Control\"\n"), "{text}");
        assert!(text.contains("BitField(\"version\", 0, 4),  # 1\n"), "{text}");
        assert!(text.contains("ByteField(\"demand\", 0),"), "{text}");
        assert!(text.contains("IntField(\"send_wait\", 0),"), "{text}");
        assert_eq!(text.matches("Field(").count(), Control::DESC.fields.len());
    }
}
