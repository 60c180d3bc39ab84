//! The text of a dissector.

use super::{Carrier, Dissector, Message, Then};
use crate::{FieldDesc, HeaderDesc};
use std::fmt::Write;

/// The part that is the same for all protocols.
const ENGINE: &str = include_str!("engine.lua");

/// Text of a Lua script with these dissectors, for `wireshark -X lua_script:FILE`. `about` is its first line, without
/// comment signs.
pub fn script(about: &str, dissectors: &[Dissector]) -> String {
    let mut text = format!("-- {about}\n\n{ENGINE}");
    dissectors.iter().for_each(|dissector| protocol(&mut text, dissector));
    text
}

fn protocol(text: &mut String, dissector: &Dissector) {
    let Dissector { name, title, carrier, version, messages, lanes } = dissector;
    let carrier = match carrier {
        Carrier::EtherType(ether_type) => format!("ether_type = 0x{ether_type:04x}"),
        Carrier::Udp(port) => format!("udp_port = {port}"),
    };
    let _ = writeln!(
        text,
        "\nprotocol {{\n  name = {name:?}, title = {title:?}, {carrier}, version = {version},"
    );
    if let Some(lanes) = lanes {
        let _ = writeln!(text, "  lanes = {{ first = {}, cells = {} }},", lanes.first, lanes.cells);
    }
    text.push_str("  headers = {\n");
    let mut written: Vec<&str> = Vec::new();
    for message in messages {
        if !written.contains(&message.header.name) {
            written.push(message.header.name);
            header(text, &message.header);
        }
    }
    text.push_str("  },\n  messages = {\n");
    messages.iter().for_each(|message| kind(text, message));
    text.push_str("  },\n}\n");
}

fn header(text: &mut String, header: &HeaderDesc) {
    let _ =
        writeln!(text, "    {} = {{ bytes = {}, fields = {{", header.name.to_lowercase(), header.bits() / 8);
    let mut at = 0;
    for field in header.fields {
        line(text, field, at);
        at += field.bits;
    }
    text.push_str("    } },\n");
}

/// A field that starts at bit `at`. Its mask selects it from the whole bytes that contain it.
fn line(text: &mut String, field: &FieldDesc, at: usize) {
    let (first, last) = (at / 8, (at + field.bits - 1) / 8);
    let bytes = last - first + 1;
    let right = (last + 1) * 8 - at - field.bits;
    let _ = write!(text, "      {{ name = {:?}, at = {first}, bytes = {bytes}", field.name);
    if field.bits < bytes * 8 {
        let _ = write!(text, ", mask = 0x{:x}, shift = {right}", (u64::MAX >> (64 - field.bits)) << right);
    }
    let about: Vec<&str> = field.doc.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let _ = writeln!(text, ", about = {:?} }},", about.join(" "));
}

fn kind(text: &mut String, message: &Message) {
    let header = message.header.name.to_lowercase();
    let _ = write!(text, "    [{}] = {{ name = {:?}, header = {header:?}", message.kind, message.name);
    let _ = match message.then {
        Then::Padding => Ok(()),
        Then::Payload(field) => write!(text, ", payload = {field:?}"),
        Then::Bytes(field) => write!(text, ", count = {field:?}"),
    };
    let list = |names: &[&str]| names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    let fields: Vec<String> = message
        .values
        .iter()
        .map(|(field, values)| {
            let named: Vec<String> =
                values.iter().map(|(value, name)| format!("[{value}] = {name:?}")).collect();
            format!("{field} = {{ {} }}", named.join(", "))
        })
        .collect();
    if !fields.is_empty() {
        let _ = write!(text, ", values = {{ {} }}", fields.join(", "));
    }
    for (parts, limit) in message.at_most {
        let _ = write!(text, ", at_most = {{ parts = {{ {} }}, limit = {limit:?} }}", list(parts));
    }
    let _ = writeln!(text, ", summary = {{ {} }} }},", list(message.summary));
}
