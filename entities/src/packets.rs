//! Controller headers: packet-out metadata become a header before the frame, and the reverse for packet-in.

use super::names::{Kind, Look, Names};
use super::refuse;
use num_bigint::BigUint;
use p4rack_p4::ir;
use p4rack_p4rt::bytes;
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::config::v1::ControllerPacketMetadata;
use p4rack_p4rt::p4::v1::PacketMetadata;
use std::sync::Arc;

#[derive(Clone, Debug)]
struct Field {
    id: u32,
    name: String,
    width: u32,
    is_padding: bool,
    /// Controllers' names for its values, if its type is translated.
    kind: Option<Arc<Kind>>,
}

/// Layout of `packet_in` or `packet_out`. Without such a header in the program it has no fields.
#[derive(Clone, Debug, Default)]
pub struct ControllerHeader {
    fields: Vec<Field>,
    bytes: usize,
}

impl ControllerHeader {
    /// The layout that P4Info describes. `declared` is the program's header, whose fields may be translated.
    pub(crate) fn new(
        header: Option<&ControllerPacketMetadata>,
        declared: Option<&ir::ControllerHeader>,
        names: &Names,
    ) -> ControllerHeader {
        let metadata = header.map_or(&[][..], |header| &header.metadata);
        let mut own = declared.into_iter().flat_map(|header| &header.fields).filter(|field| !field.0.hidden);
        let fields: Vec<Field> = metadata
            .iter()
            .map(|field| {
                let own = own.next();
                Field {
                    id: field.id,
                    name: field.name.clone(),
                    // P4Info has the width that controllers see.
                    width: own.map_or(u32::try_from(field.bitwidth).unwrap_or(0), |own| own.1.width()),
                    is_padding: field.annotations.iter().any(|text| text.starts_with("@padding")),
                    kind: own.and_then(|own| names.of(own.2.as_deref())).cloned(),
                }
            })
            .collect();
        let bits: usize = fields.iter().map(|field| field.width as usize).sum();
        ControllerHeader { fields, bytes: bits.div_ceil(8) }
    }

    /// The frame for the program. Every field must be given once; padding is optional.
    pub fn prepend(&self, metadata: &[PacketMetadata], payload: &[u8]) -> Result<Vec<u8>, UpdateError> {
        for (position, given) in metadata.iter().enumerate() {
            if !self.fields.iter().any(|field| field.id == given.metadata_id) {
                let known: Vec<String> =
                    self.fields.iter().map(|field| format!("{} ({})", field.id, field.name)).collect();
                let known = if known.is_empty() { "none".into() } else { known.join(", ") };
                let message =
                    format!("packet_out has no metadata field {}; it has: {known}", given.metadata_id);
                return refuse(Code::InvalidArgument, message);
            }
            if metadata[..position].iter().any(|earlier| earlier.metadata_id == given.metadata_id) {
                let message = format!("packet_out metadata field {} is given twice", given.metadata_id);
                return refuse(Code::InvalidArgument, message);
            }
        }
        let mut header = BigUint::ZERO;
        let mut bits = 0;
        for field in &self.fields {
            let what = format_args!("packet_out metadata field `{}`", field.name);
            let value = match (metadata.iter().find(|given| given.metadata_id == field.id), &field.kind) {
                (Some(given), Some(kind)) => kind.number(what, &given.value, &mut Look::Find)?,
                (Some(given), None) => match bytes::check(&given.value, field.width) {
                    Ok(value) => BigUint::from_bytes_be(&value),
                    Err(error) => return refuse(Code::InvalidArgument, format!("{what}: {error}")),
                },
                (None, _) if field.is_padding => BigUint::ZERO,
                (None, _) => {
                    let message =
                        format!("packet_out metadata field {} (`{}`) is missing", field.id, field.name);
                    return refuse(Code::InvalidArgument, message);
                }
            };
            header = (header << field.width) | value;
            bits += field.width as usize;
        }
        header <<= self.bytes * 8 - bits;
        let digits = if self.bytes == 0 { Vec::new() } else { header.to_bytes_be() };
        let mut frame = vec![0; self.bytes - digits.len()];
        frame.extend(digits);
        frame.extend_from_slice(payload);
        Ok(frame)
    }

    /// Metadata and payload of a frame from the program; `None` if it is shorter than the header.
    pub fn split<'a>(&self, frame: &'a [u8]) -> Option<(Vec<PacketMetadata>, &'a [u8])> {
        let (header, payload) = frame.split_at_checked(self.bytes)?;
        let header = BigUint::from_bytes_be(header);
        let mut left = self.bytes * 8;
        let mut metadata = Vec::with_capacity(self.fields.len());
        for field in &self.fields {
            left -= field.width as usize;
            let mask = (BigUint::from(1u8) << field.width) - 1u8;
            let value = (&header >> left) & mask;
            let value = field.kind.as_ref().map_or_else(|| value.to_bytes_be(), |kind| kind.shown(&value));
            metadata.push(PacketMetadata { metadata_id: field.id, value });
        }
        Some((metadata, payload))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_p4rt::p4::config::v1::controller_packet_metadata::Metadata;

    fn header() -> ControllerHeader {
        let field = |id, name: &str, bitwidth, annotations: &[&str]| Metadata {
            id,
            name: name.into(),
            bitwidth,
            annotations: annotations.iter().map(|text| text.to_string()).collect(),
            ..Default::default()
        };
        let header = ControllerPacketMetadata {
            metadata: vec![
                field(1, "egress_port", 9, &[]),
                field(2, "_pad", 7, &["@padding"]),
                field(4, "cookie", 16, &[]),
            ],
            ..Default::default()
        };
        ControllerHeader::new(Some(&header), None, &Names::default())
    }

    fn given(values: &[(u32, &[u8])]) -> Vec<PacketMetadata> {
        let one = |(id, value): &(u32, &[u8])| PacketMetadata { metadata_id: *id, value: value.to_vec() };
        values.iter().map(one).collect()
    }

    #[test]
    fn fields_are_packed_in_wire_order_whatever_order_they_come_in() {
        let frame = header().prepend(&given(&[(4, &[0xab]), (1, &[0, 1, 2])]), b"xy").unwrap();
        assert_eq!(frame, [0x81, 0x00, 0x00, 0xab, b'x', b'y']);
        let (metadata, payload) = header().split(&frame).unwrap();
        assert_eq!(metadata, given(&[(1, &[1, 2]), (2, &[0]), (4, &[0xab])]));
        assert_eq!(payload, b"xy");
    }

    #[test]
    fn packet_out_metadata_must_match_p4info_exactly() {
        let fault = |values: &[(u32, &[u8])]| header().prepend(&given(values), b"").unwrap_err().message;
        assert_eq!(fault(&[(1, &[3])]), "packet_out metadata field 4 (`cookie`) is missing");
        assert_eq!(
            fault(&[(1, &[3]), (7, &[1]), (4, &[1])]),
            "packet_out has no metadata field 7; it has: 1 (egress_port), 2 (_pad), 4 (cookie)"
        );
        assert_eq!(
            fault(&[(1, &[2, 0]), (4, &[1])]),
            "packet_out metadata field `egress_port`: 512 needs 10 bits, but the field has 9"
        );
        assert_eq!(fault(&[(1, &[3]), (1, &[3]), (4, &[1])]), "packet_out metadata field 1 is given twice");
        assert!(fault(&[(1, &[]), (4, &[1])]).contains("empty"));
    }

    #[test]
    fn without_a_header_the_frame_is_the_payload() {
        let header = ControllerHeader::default();
        assert_eq!(header.prepend(&[], b"abc").unwrap(), b"abc");
        assert!(header.prepend(&given(&[(1, &[1])]), b"abc").unwrap_err().message.ends_with("it has: none"));
        assert_eq!(header.split(b"abc"), Some((Vec::new(), &b"abc"[..])));
    }

    #[test]
    fn a_frame_shorter_than_the_header_is_no_packet_in() {
        assert_eq!(header().split(&[1, 2, 3]), None);
    }
}
