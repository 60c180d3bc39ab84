//! Writes whose bytes are there already: what is measured then is the switch and the transport.

use crate::error::{CtrlError, refused};
use p4rack_p4rt::p4::v1::WriteResponse;
use prost::bytes::BufMut;
use tonic::client::Grpc;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Request, Status};

/// Sends a serialised `WriteRequest`.
pub(super) async fn write(channel: Channel, request: Vec<u8>) -> Result<(), CtrlError> {
    const CALL: &str = "writing serialised entries";
    let mut grpc = Grpc::new(channel);
    grpc.ready().await.map_err(|error| CtrlError::Ended(error.to_string()))?;
    let path = PathAndQuery::from_static("/p4.v1.P4Runtime/Write");
    grpc.unary(Request::new(request), path, Serialised).await.map(|_| ()).map_err(refused(CALL))
}

struct Serialised;

impl Codec for Serialised {
    type Encode = Vec<u8>;
    type Decode = WriteResponse;
    type Encoder = Serialised;
    type Decoder = Serialised;

    fn encoder(&mut self) -> Serialised {
        Serialised
    }

    fn decoder(&mut self) -> Serialised {
        Serialised
    }
}

impl Encoder for Serialised {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(&item);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(128 << 10, 1 << 20)
    }
}

impl Decoder for Serialised {
    type Item = WriteResponse;
    type Error = Status;

    fn decode(&mut self, _: &mut DecodeBuf<'_>) -> Result<Option<WriteResponse>, Status> {
        Ok(Some(WriteResponse {}))
    }
}
