//! Packets of the controller as frames of the CPU port: in front of them is the program's header.

use p4rack_p4rt::bytes;
use p4rack_p4rt::p4::config::v1::controller_packet_metadata::Metadata;
use p4rack_p4rt::p4::v1::{PacketIn, PacketMetadata, PacketOut};
use p4rack_p4rt::schema::Schema;

/// Bits of a controller header at most.
const BITS_MAX: u32 = 4096;

/// Fields of a controller header, first to last: id, name, width in bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout(Vec<(u32, String, u32)>);

impl Layout {
    /// The header of this name, `packet_in` or `packet_out`, without fields if there is none. Errors: it does not fill
    /// whole bytes, or is longer than any.
    fn of(names: &Schema, name: &str) -> Result<Layout, String> {
        let field = |field: &Metadata| {
            let width = u32::try_from(field.bitwidth).ok().filter(|width| (1..=BITS_MAX).contains(width));
            let wrong = || format!("`{}` of the header {name} has {} bits", field.name, field.bitwidth);
            Ok((field.id, field.name.clone(), width.ok_or_else(wrong)?))
        };
        let layout = Layout(names.header_fields(name).iter().map(field).collect::<Result<_, String>>()?);
        // Fields are many at most, and each of them is short.
        match layout.0.iter().map(|(_, _, width)| u64::from(*width)).sum::<u64>() {
            bits if bits > BITS_MAX.into() => {
                Err(format!("the header {name} has {bits} bits, of {BITS_MAX}"))
            }
            bits if bits % 8 != 0 => {
                Err(format!("the header {name} has {bits} bits, which are no whole bytes"))
            }
            _ => Ok(layout),
        }
    }

    fn bits(&self) -> u32 {
        self.0.iter().map(|(_, _, width)| width).sum()
    }

    /// The header with these values. Errors: they are not the header's.
    fn header(&self, metadata: &[PacketMetadata]) -> Result<Vec<u8>, String> {
        if let Some(other) =
            metadata.iter().find(|given| self.0.iter().all(|(id, _, _)| *id != given.metadata_id))
        {
            return Err(format!("packet_out has no metadata with id {}", other.metadata_id));
        }
        let mut bits = Vec::with_capacity(self.bits() as usize);
        for (id, name, width) in &self.0 {
            let mut given = metadata.iter().filter(|given| given.metadata_id == *id);
            let (Some(value), None) = (given.next(), given.next()) else {
                return Err(format!("packet_out needs `{name}` (id {id}) once"));
            };
            let value = bytes::check(&value.value, *width).map_err(|error| format!("`{name}`: {error}"))?;
            let given = value.iter().flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1));
            let given: Vec<u8> = given.collect();
            let width = *width as usize;
            bits.extend(std::iter::repeat_n(0, width.saturating_sub(given.len())));
            bits.extend(&given[given.len().saturating_sub(width)..]);
        }
        Ok(bits.chunks(8).map(|byte| byte.iter().fold(0, |value, bit| value << 1 | bit)).collect())
    }

    /// The values of a frame's header, and the rest of the frame; `None` if the frame is shorter.
    fn split<'a>(&self, frame: &'a [u8]) -> Option<(Vec<PacketMetadata>, &'a [u8])> {
        let (header, payload) = frame.split_at_checked(self.bits() as usize / 8)?;
        let mut bits = header.iter().flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1));
        let field = |(metadata_id, _, width): &(u32, String, u32)| {
            let mut value = vec![0; width.div_ceil(8) as usize];
            for at in (0..*width).rev() {
                let byte = value.len() - 1 - at as usize / 8;
                value[byte] |= bits.next().unwrap_or(0) << (at % 8);
            }
            PacketMetadata { metadata_id: *metadata_id, value: bytes::canonical(&value) }
        };
        Some((self.0.iter().map(field).collect(), payload))
    }
}

/// Both headers of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layouts {
    incoming: Layout,
    outgoing: Layout,
}

impl Layouts {
    /// Those of a program. Errors: one does not fill whole bytes.
    pub(super) fn of(names: &Schema) -> Result<Layouts, String> {
        Ok(Layouts { incoming: Layout::of(names, "packet_in")?, outgoing: Layout::of(names, "packet_out")? })
    }

    /// The frame of a packet-out. Errors: its metadata are not the program's.
    pub(super) fn frame(&self, packet: &PacketOut) -> Result<Vec<u8>, String> {
        let mut frame = self.outgoing.header(&packet.metadata)?;
        frame.extend(&packet.payload);
        Ok(frame)
    }

    /// The packet-in that a frame is; `None` if it is too short to be one.
    pub(super) fn packet(&self, frame: &[u8]) -> Option<PacketIn> {
        let (metadata, payload) = self.incoming.split(frame)?;
        Some(PacketIn { metadata, payload: payload.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_p4rt::p4::config::v1::{ControllerPacketMetadata, P4Info, Preamble};
    use proptest::prelude::*;

    fn layout(widths: &[u32]) -> Layout {
        Layout(widths.iter().zip(1..).map(|(width, id)| (id, format!("f{id}"), *width)).collect())
    }

    fn given(values: &[u64]) -> Vec<PacketMetadata> {
        let one = |(value, metadata_id): (&u64, u32)| PacketMetadata {
            metadata_id,
            value: bytes::from_u128((*value).into()),
        };
        values.iter().zip(1..).map(one).collect()
    }

    #[test]
    fn fields_follow_each_other_bit_by_bit() {
        let layout = layout(&[9, 7, 16]);
        assert_eq!(layout.header(&given(&[0x101, 0x7f, 2])), Ok(vec![0x80, 0xff, 0, 2]));
        assert_eq!(
            layout.split(&[0x80, 0xff, 0, 2, 0xaa]),
            Some((given(&[0x101, 0x7f, 2]), &[0xaa][..])),
            "canonical values"
        );
        assert_eq!(layout.split(&[0x80, 0xff, 0]), None);
    }

    #[test]
    fn other_metadata_are_refused() {
        let layout = layout(&[16]);
        assert!(layout.header(&[]).is_err());
        assert!(layout.header(&given(&[1, 2])).unwrap_err().contains("id 2"));
        assert!(layout.header(&[given(&[1]), given(&[1])].concat()).unwrap_err().contains("once"));
        assert!(layout.header(&given(&[0x1_0000])).unwrap_err().contains("f1"), "too wide");
    }

    #[test]
    fn headers_of_any_p4info_are_bounded() {
        let of = |widths: &[i32]| {
            let one =
                |(bitwidth, id): (&i32, u32)| Metadata { id, bitwidth: *bitwidth, ..Default::default() };
            let header = ControllerPacketMetadata {
                preamble: Some(Preamble { name: "packet_out".into(), ..Default::default() }),
                metadata: widths.iter().zip(1..).map(one).collect(),
            };
            let info = P4Info { controller_packet_metadata: vec![header], ..Default::default() };
            Layouts::of(&Schema::new(info).unwrap())
        };
        assert!(of(&[9, 7]).is_ok() && of(&[]).is_ok());
        for widths in [&[9][..], &[-8], &[0, 8], &[i32::MAX, 1], &[4096, 8], &[i32::MAX; 4]] {
            assert!(of(widths).is_err(), "{widths:?}");
        }
    }

    proptest! {
        #[test]
        fn what_was_put_together_comes_apart(values in prop::collection::vec((1u32..=64, any::<u64>()), 1..6)) {
            let mut widths: Vec<u32> = values.iter().map(|(width, _)| *width).collect();
            widths.push(8 - widths.iter().sum::<u32>() % 8);
            let mut numbers: Vec<u64> =
                values.iter().map(|(width, value)| value & (u64::MAX >> (64 - width))).collect();
            numbers.push(0);
            let layout = layout(&widths);
            let mut frame = layout.header(&given(&numbers)).unwrap();
            prop_assert_eq!(frame.len() * 8, widths.iter().sum::<u32>() as usize);
            frame.push(0x5a);
            prop_assert_eq!(layout.split(&frame), Some((given(&numbers), &[0x5a][..])));
        }
    }
}
