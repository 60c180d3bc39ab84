//! All services, with Writes taken and Reads answered as bytes: the generated code makes messages of them. These two
//! are also told from the rest before the router, which costs more than a small Write.

use super::service::{Answers, Service};
use p4rack_p4rt::p4::v1::ReadRequest;
use p4rack_p4rt::p4::v1::p4_runtime_server::P4RuntimeServer;
use p4rack_p4rt::raw::RawCodec;
use prost::bytes::Bytes;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::codec::Codec;
use tonic::codegen::{Service as Tower, http};
use tonic::server::Grpc;
use tonic::service::Routes;
use tonic::{Request, Response, Status};
use tonic_prost::ProstDecoder;

/// Largest message taken.
const RECEIVE_LIMIT: usize = 128 << 20;
/// Room for a request and for an answer that is set aside at once: those of one update have it.
const ROOM: usize = 256;
/// The same for the answers of a Read.
const READ_ROOM: usize = 40 << 10;

/// All of P4Runtime, and other services.
#[derive(Clone, Debug)]
pub struct Front {
    service: Service,
    routes: Routes,
}

impl Front {
    /// Around the handlers of P4Runtime's calls, beside other services.
    pub fn new(service: Service, others: Routes) -> Front {
        let all = P4RuntimeServer::new(service.clone())
            .max_decoding_message_size(RECEIVE_LIMIT)
            .max_encoding_message_size(usize::MAX);
        Front { service, routes: others.add_service(all).prepare() }
    }
}

type Answering<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

impl Tower<http::Request<Body>> for Front {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answering<Self::Response, Infallible>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Tower::<http::Request<Body>>::poll_ready(&mut self.routes, context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let handlers = Handlers(self.service.clone());
        match request.uri().path() {
            "/p4.v1.P4Runtime/Write" => Box::pin(async move {
                let mut grpc = Grpc::new(RawCodec { room: ROOM }).max_decoding_message_size(RECEIVE_LIMIT);
                Ok(grpc.unary(handlers, request).await)
            }),
            "/p4.v1.P4Runtime/Read" => Box::pin(async move {
                let mut grpc = Grpc::new(ReadCodec)
                    .max_decoding_message_size(RECEIVE_LIMIT)
                    .max_encoding_message_size(usize::MAX);
                Ok(grpc.server_streaming(handlers, request).await)
            }),
            _ => Box::pin(self.routes.call(request)),
        }
    }
}

#[derive(Clone)]
struct Handlers(Service);

impl Tower<Request<Bytes>> for Handlers {
    /// No `WriteResponse` has a field.
    type Response = Response<Bytes>;
    type Error = Status;
    type Future = Answering<Self::Response, Status>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let service = self.0.clone();
        Box::pin(async move {
            service.write_bytes(request.into_inner()).await.map(|()| Response::new(Bytes::new()))
        })
    }
}

impl Tower<Request<ReadRequest>> for Handlers {
    type Response = Response<Answers<Bytes>>;
    type Error = Status;
    type Future = Answering<Self::Response, Status>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ReadRequest>) -> Self::Future {
        let service = self.0.clone();
        Box::pin(async move { service.read_bytes(request.into_inner()).await.map(Response::new) })
    }
}

/// Requests as messages, answers as bytes.
struct ReadCodec;

impl Codec for ReadCodec {
    type Encode = Bytes;
    type Decode = ReadRequest;
    type Encoder = RawCodec;
    type Decoder = ProstDecoder<ReadRequest>;

    fn encoder(&mut self) -> RawCodec {
        RawCodec { room: READ_ROOM }
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstDecoder::default()
    }
}
