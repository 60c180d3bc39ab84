//! Serialised messages handled as bytes.
//!
//! [`Fields`] reads a serialised message in place, without a struct for it. [`RawCodec`] carries such bytes
//! over gRPC unchanged.

/// A field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'a> {
    /// A varint of few bytes, after the field number.
    Number(u32, u64),
    /// Bytes, a string or a message, after the field number.
    Bytes(u32, &'a [u8]),
    /// The end of the message.
    End,
}

/// Reads the fields of a message in order, as far as P4Runtime's common messages use them.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Starts at the first field of a message.
    pub fn of(message: &'a [u8]) -> Fields<'a> {
        Fields { rest: message }
    }

    /// The bytes not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next field. `None` if it is malformed, or valid but left to a general decoder: fixed-width
    /// numbers, groups, field numbers above 15, and varints of more than five bytes.
    #[inline]
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<Field<'a>> {
        let Some((&key, rest)) = self.rest.split_first() else { return Some(Field::End) };
        self.rest = rest;
        let field = u32::from(key >> 3);
        if key >= 0x80 || field == 0 {
            return None;
        }
        let number = self.number()?;
        match key & 7 {
            0 => Some(Field::Number(field, number)),
            2 => {
                let (bytes, rest) = self.rest.split_at_checked(usize::try_from(number).ok()?)?;
                self.rest = rest;
                Some(Field::Bytes(field, bytes))
            }
            _ => None,
        }
    }

    #[inline]
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for (at, &byte) in self.rest.iter().take(5).enumerate() {
            number |= u64::from(byte & 0x7f) << (7 * at);
            if byte < 0x80 {
                self.rest = &self.rest[at + 1..];
                return Some(number);
            }
        }
        None
    }
}

#[cfg(feature = "services")]
mod codec {
    use prost::bytes::{Buf, BufMut, Bytes};
    use tonic::Status;
    use tonic::client::Grpc;
    use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
    use tonic::codegen::http::uri::PathAndQuery;
    use tonic::transport::Channel;
    use tonic::{Request, Response};

    /// Number of outgoing bytes after which they are flushed to the transport.
    const FLUSH: usize = 1 << 20;

    /// Sends bytes as a `WriteRequest`.
    pub async fn write(channel: &Channel, request: Bytes) -> Result<(), Status> {
        let mut grpc = Grpc::new(channel.clone());
        grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let path = PathAndQuery::from_static("/p4.v1.P4Runtime/Write");
        let codec = RawCodec { room: request.len() + 16 };
        let answer: Response<Bytes> = grpc.unary(Request::new(request), path, codec).await?;
        drop(answer);
        Ok(())
    }

    /// A codec that sends and receives serialised messages unchanged.
    #[derive(Clone, Copy, Debug)]
    pub struct RawCodec {
        /// Bytes of buffer to reserve in one step.
        pub room: usize,
    }

    impl Codec for RawCodec {
        type Encode = Bytes;
        type Decode = Bytes;
        type Encoder = RawCodec;
        type Decoder = RawCodec;

        fn encoder(&mut self) -> RawCodec {
            *self
        }

        fn decoder(&mut self) -> RawCodec {
            *self
        }
    }

    impl Encoder for RawCodec {
        type Item = Bytes;
        type Error = Status;

        fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
            buffer.put_slice(&item);
            Ok(())
        }

        fn buffer_settings(&self) -> BufferSettings {
            BufferSettings::new(self.room, FLUSH)
        }
    }

    impl Decoder for RawCodec {
        type Item = Bytes;
        type Error = Status;

        fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
            Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
        }

        fn buffer_settings(&self) -> BufferSettings {
            BufferSettings::new(self.room, FLUSH)
        }
    }
}

#[cfg(feature = "services")]
pub use codec::{RawCodec, write};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_in_order_and_odd_ones_are_left_to_others() {
        let mut fields = Fields::of(&[0x08, 0x96, 0x01, 0x12, 2, 7, 8]);
        assert_eq!(fields.next(), Some(Field::Number(1, 150)));
        assert_eq!(fields.next(), Some(Field::Bytes(2, &[7, 8])));
        assert_eq!(fields.next(), Some(Field::End));
        let odd: [&[u8]; 7] = [
            &[0x12, 3, 7, 8],                            // too short
            &[0x08],                                     // no value
            &[0x09, 0, 0, 0, 0, 0, 0, 0, 0],             // fixed
            &[0x0b, 0x0c],                               // a group
            &[0x00, 1],                                  // field 0
            &[0x80, 0x01, 1],                            // field 16
            &[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], // long
        ];
        for bytes in odd {
            assert_eq!(Fields::of(bytes).next(), None, "{bytes:?}");
        }
    }
}
