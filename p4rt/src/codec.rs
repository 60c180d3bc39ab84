//! The codec of the stubs in `generated/`.
//!
//! It reads and writes a call's messages, with all that they contain, by code of this crate. With tonic's own codec, each crate
//! that calls a method or serves it compiles that code again.

use crate::bfrt_proto;
use crate::p4::v1 as p4runtime;
use crate::p4rack::balloon::v1 as balloon;
use crate::p4rack::clio::v1 as clio;
use crate::p4rack::cowbird::v1 as cowbird;
use crate::p4rack::generator::v1 as generator;
use crate::p4rack::roce::v1 as roce;
use crate::p4rack::telemetry::v1 as telemetry;
use crate::p4rack::trace::v1 as trace;
use prost::Message;
use std::marker::PhantomData;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// A message of a call.
pub trait Carried: Sized + Send + 'static {
    /// Appends it to a buffer.
    fn put(&self, out: &mut EncodeBuf<'_>) -> Result<(), Status>;

    /// Reads it. Errors: the bytes are none.
    fn take(from: &mut DecodeBuf<'_>) -> Result<Self, Status>;
}

macro_rules! carried {
    ($($message:ty,)*) => { $(
        impl Carried for $message {
            #[inline(never)]
            fn put(&self, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
                self.encode(out).map_err(|error| Status::internal(error.to_string()))
            }

            #[inline(never)]
            fn take(from: &mut DecodeBuf<'_>) -> Result<Self, Status> {
                Self::decode(from).map_err(|error| Status::internal(error.to_string()))
            }
        }
    )* };
}

carried! {
    bfrt_proto::GetForwardingPipelineConfigRequest,
    bfrt_proto::GetForwardingPipelineConfigResponse,
    bfrt_proto::SetForwardingPipelineConfigRequest,
    bfrt_proto::SetForwardingPipelineConfigResponse,
    bfrt_proto::ReadRequest,
    bfrt_proto::ReadResponse,
    bfrt_proto::StreamMessageRequest,
    bfrt_proto::StreamMessageResponse,
    bfrt_proto::WriteRequest,
    bfrt_proto::WriteResponse,
    p4runtime::CapabilitiesRequest,
    p4runtime::CapabilitiesResponse,
    p4runtime::GetForwardingPipelineConfigRequest,
    p4runtime::GetForwardingPipelineConfigResponse,
    p4runtime::SetForwardingPipelineConfigRequest,
    p4runtime::SetForwardingPipelineConfigResponse,
    p4runtime::ReadRequest,
    p4runtime::ReadResponse,
    p4runtime::StreamMessageRequest,
    p4runtime::StreamMessageResponse,
    p4runtime::WriteRequest,
    p4runtime::WriteResponse,
    balloon::Answer,
    balloon::AskRequest,
    balloon::AskResponse,
    balloon::Command,
    balloon::LeaveRequest,
    balloon::LeaveResponse,
    balloon::ListRequest,
    balloon::ListResponse,
    clio::AttachRequest,
    clio::AttachResponse,
    clio::ListOffloadsRequest,
    clio::ListOffloadsResponse,
    clio::ListRequest,
    clio::ListResponse,
    clio::LoadOffloadRequest,
    clio::LoadOffloadResponse,
    clio::RemoveOffloadRequest,
    clio::RemoveOffloadResponse,
    cowbird::ServeRequest,
    cowbird::ServeResponse,
    generator::ListRequest,
    generator::ListResponse,
    generator::RemoveRequest,
    generator::RemoveResponse,
    generator::SetRequest,
    generator::SetResponse,
    roce::AttachRequest,
    roce::AttachResponse,
    roce::ReserveRequest,
    roce::ReserveResponse,
    telemetry::GetStatsRequest,
    telemetry::GetStatsResponse,
    trace::WatchRequest,
    trace::WatchResponse,
}

/// A codec for the messages of a call, of which an end sends `E` and receives `D`.
#[derive(Clone, Copy, Debug)]
pub struct StubCodec<E, D>(PhantomData<(E, D)>);

impl<E, D> Default for StubCodec<E, D> {
    fn default() -> Self {
        StubCodec(PhantomData)
    }
}

impl<E: Carried, D: Carried> Codec for StubCodec<E, D> {
    type Encode = E;
    type Decode = D;
    type Encoder = OneWay<E>;
    type Decoder = OneWay<D>;

    fn encoder(&mut self) -> OneWay<E> {
        OneWay(PhantomData)
    }

    fn decoder(&mut self) -> OneWay<D> {
        OneWay(PhantomData)
    }
}

/// One direction of a [`StubCodec`].
#[derive(Clone, Copy, Debug)]
pub struct OneWay<T>(PhantomData<T>);

impl<T: Carried> Encoder for OneWay<T> {
    type Item = T;
    type Error = Status;

    fn encode(&mut self, item: T, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        item.put(out)
    }
}

impl<T: Carried> Decoder for OneWay<T> {
    type Item = T;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<T>, Status> {
        T::take(from).map(Some)
    }
}
