//! All calls. Their memory is charged before they are accepted. Requests stay serialised here: the service weighs them
//! before it decodes them.

use super::outcome::Options;
use super::service::{Answers, Service};
use crate::p4runtime::{Charge, Connection, Counted, RECEIVE_LIMIT, STREAM_LIMIT};
use p4rack_p4rt::bfrt_proto::bf_runtime_server::BfRuntimeServer;
use p4rack_p4rt::raw::RawCodec;
use prost::bytes::Bytes;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::codegen::{Service as Tower, http};
use tonic::server::Grpc;
use tonic::{Request, Response, Status};

/// Bytes of buffer that a call begins with.
const ROOM: usize = 512;
/// The same for the answers of a Read.
const READ_ROOM: usize = 40 << 10;

/// The generated server behind the limits.
#[derive(Clone, Debug)]
pub struct Front {
    service: Service,
    calls: BfRuntimeServer<Service>,
}

impl Front {
    /// Around the handlers of all calls.
    pub fn new(service: Service) -> Front {
        let calls = BfRuntimeServer::new(service.clone())
            .max_decoding_message_size(STREAM_LIMIT)
            .max_encoding_message_size(usize::MAX);
        Front { service, calls }
    }
}

type Answering<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

impl Tower<http::Request<Body>> for Front {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answering<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let refused = |error: Status| -> Self::Future { Box::pin(std::future::ready(Ok(error.into_http()))) };
        let Some(connection) = request.extensions().get::<Arc<Connection>>().cloned() else {
            return refused(Status::internal("the request came over no connection"));
        };
        if let Err(error) = connection.check() {
            return refused(error);
        }
        if request.uri().path() == "/bfrt_proto.BfRuntime/StreamChannel" {
            return Box::pin(self.calls.call(request));
        }
        let charge = Arc::new(connection.charge());
        let charged = charge.clone();
        let request = request.map(|body| Body::new(Counted::new(body, charged)));
        let handler = |call| Handler { call, service: self.service.clone(), connection, charge };
        let mut short = Grpc::new(RawCodec { room: ROOM }).max_decoding_message_size(RECEIVE_LIMIT);
        match request.uri().path() {
            "/bfrt_proto.BfRuntime/Write" => {
                let handler = handler(Call::Write);
                Box::pin(async move { Ok(short.unary(handler, request).await) })
            }
            "/bfrt_proto.BfRuntime/SetForwardingPipelineConfig" => {
                let handler = handler(Call::Set);
                Box::pin(async move { Ok(short.unary(handler, request).await) })
            }
            "/bfrt_proto.BfRuntime/Read" => {
                let Handler { service, connection, charge, .. } = handler(Call::Write);
                let reads = Reads { service, connection, charge };
                Box::pin(async move {
                    let mut grpc = Grpc::new(RawCodec { room: READ_ROOM })
                        .max_decoding_message_size(RECEIVE_LIMIT)
                        .max_encoding_message_size(usize::MAX);
                    Ok(grpc.server_streaming(reads, request).await)
                })
            }
            _ => Box::pin(self.calls.call(request)),
        }
    }
}

/// A call with one answer.
#[derive(Clone, Copy)]
enum Call {
    Write,
    Set,
}

struct Handler {
    call: Call,
    service: Service,
    connection: Arc<Connection>,
    charge: Arc<Charge>,
}

struct Reads {
    service: Service,
    connection: Arc<Connection>,
    charge: Arc<Charge>,
}

impl Tower<Request<Bytes>> for Handler {
    type Response = Response<Bytes>;
    type Error = Status;
    type Future = Answering<Self::Response, Status>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let (service, connection, charge) =
            (self.service.clone(), self.connection.clone(), self.charge.clone());
        let call = self.call;
        Box::pin(async move {
            let options = Options::of(&request);
            let request = request.into_inner();
            let answer = match call {
                Call::Write => service.write_bytes(request, options, &connection, charge).await?,
                Call::Set => service.set_bytes(request, charge).await?,
            };
            Ok(Response::new(answer))
        })
    }
}

impl Tower<Request<Bytes>> for Reads {
    type Response = Response<Answers>;
    type Error = Status;
    type Future = Answering<Self::Response, Status>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let (service, connection, charge) =
            (self.service.clone(), self.connection.clone(), self.charge.clone());
        Box::pin(async move {
            let options = Options::of(&request);
            let answers = service.read_bytes(request.into_inner(), options, &connection, charge).await?;
            Ok(Response::new(answers))
        })
    }
}
