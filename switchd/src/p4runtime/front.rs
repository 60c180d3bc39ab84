//! All services behind one entry. Writes and the responses to Reads stay serialised here, because decoding them
//! into messages, as the generated code does, takes longer. Both bypass the router, which costs more than a
//! small Write.

use super::limits::{Charge, Connection, SMALL_BYTES};
use super::service::{Answers, Service};
use http_body::{Body as HttpBody, Frame, SizeHint};
use p4rack_p4rt::p4::v1::p4_runtime_server::P4RuntimeServer;
use p4rack_p4rt::raw::RawCodec;
use prost::bytes::Bytes;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Sleep;
use tonic::body::Body;
use tonic::codegen::{Service as Tower, http};
use tonic::server::Grpc;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

/// Maximum size of a request message.
pub(crate) const RECEIVE_LIMIT: usize = 128 << 20;
/// Maximum size of a Read request, which names objects but has no values.
const READ_LIMIT: usize = 1 << 20;
/// Maximum size of a stream message: a packet, or a role's configuration.
pub(crate) const STREAM_LIMIT: usize = 1 << 20;
/// How long a request may take to arrive.
const ARRIVAL: Duration = Duration::from_secs(60);
/// Initial capacity of the buffers for a request and a response; enough for one update.
const ROOM: usize = 256;
/// The same for the responses of a Read.
const READ_ROOM: usize = 40 << 10;

/// P4Runtime and the other services.
#[derive(Clone, Debug)]
pub struct Front {
    service: Service,
    streams: P4RuntimeServer<Service>,
    routes: Routes,
}

impl Front {
    /// Serves P4Runtime by `service`, next to `others`.
    pub fn new(service: Service, others: Routes) -> Front {
        let all = P4RuntimeServer::new(service.clone())
            .max_decoding_message_size(RECEIVE_LIMIT)
            .max_encoding_message_size(usize::MAX);
        let streams = P4RuntimeServer::new(service.clone()).max_decoding_message_size(STREAM_LIMIT);
        Front { service, streams, routes: others.add_service(all).prepare() }
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
        let Some(connection) = request.extensions().get::<Arc<Connection>>().cloned() else {
            return refused(Status::internal("the connection of the request is unknown; please report it"));
        };
        if let Err(error) = connection.check() {
            return refused(error);
        }
        if request.uri().path() == "/p4.v1.P4Runtime/StreamChannel" {
            return Box::pin(self.streams.call(request));
        }
        let charge = Arc::new(connection.charge());
        let charged = charge.clone();
        let mut request = request.map(|body| Body::new(Counted::new(body, charged)));
        let handlers = Handlers { service: self.service.clone(), connection, charge };
        match request.uri().path() {
            "/p4.v1.P4Runtime/Write" => Box::pin(async move {
                let mut grpc = Grpc::new(RawCodec { room: ROOM }).max_decoding_message_size(RECEIVE_LIMIT);
                Ok(grpc.unary(Writes(handlers), request).await)
            }),
            "/p4.v1.P4Runtime/Read" => Box::pin(async move {
                let mut grpc = Grpc::new(RawCodec { room: READ_ROOM })
                    .max_decoding_message_size(READ_LIMIT)
                    .max_encoding_message_size(usize::MAX);
                Ok(grpc.server_streaming(Reads(handlers), request).await)
            }),
            _ => {
                request.extensions_mut().insert(handlers.charge.clone());
                let routed = self.routes.call(request);
                // The body is dropped before the call has ended, so the charge is held here until then.
                Box::pin(async move {
                    let answer = routed.await;
                    drop(handlers);
                    answer
                })
            }
        }
    }
}

fn refused(error: Status) -> Answering<http::Response<Body>, Infallible> {
    Box::pin(std::future::ready(Ok(error.into_http())))
}

/// A request's body. The announced length is charged before the message arrives, so that it can be refused unread.
pub(crate) struct Counted {
    body: Body,
    charge: Arc<Charge>,
    /// gRPC's prefix of the first message: a flag byte, then the length in four bytes.
    prefix: [u8; 5],
    /// Bytes of the prefix received so far.
    known: usize,
    /// Bytes received so far, prefix included.
    count: usize,
    /// Maximum bytes, prefix included.
    most: usize,
    alarm: Option<Pin<Box<Sleep>>>,
}

impl Counted {
    /// The body of a request whose memory is charged.
    pub(crate) fn new(body: Body, charge: Arc<Charge>) -> Counted {
        Counted { body, charge, prefix: [0; 5], known: 0, count: 0, most: SMALL_BYTES, alarm: None }
    }

    fn arrived(&mut self, data: &[u8]) -> Result<(), Status> {
        self.count += data.len();
        if self.known < self.prefix.len() {
            let part = data.get(..self.prefix.len() - self.known).unwrap_or(data);
            self.prefix[self.known..][..part.len()].copy_from_slice(part);
            self.known += part.len();
            let [_, length @ ..] = self.prefix;
            let length = u32::from_be_bytes(length) as usize;
            // A message above the limit is refused by the decoder.
            if self.known == self.prefix.len() && length > SMALL_BYTES && length <= RECEIVE_LIMIT {
                self.charge.add(length)?;
                self.most += length;
            } else if self.known == self.prefix.len() && length <= SMALL_BYTES {
                self.charge.add_small(length)?;
            }
        }
        if self.count > self.most {
            return Err(Status::out_of_range(
                "the request is longer than its prefix announces, or is more than one message",
            ));
        }
        Ok(())
    }
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) else {
            // Most requests arrive whole and need no timer.
            let alarm = this.alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep(ARRIVAL)));
            return match alarm.as_mut().poll(context).is_ready() {
                true => {
                    let seconds = ARRIVAL.as_secs();
                    let late =
                        format!("the request did not arrive within {seconds} s; split it into smaller ones");
                    Poll::Ready(Some(Err(Status::deadline_exceeded(late))))
                }
                false => Poll::Pending,
            };
        };
        Poll::Ready(frame.map(|frame| {
            let frame = frame?;
            if let Some(data) = frame.data_ref() {
                this.arrived(data)?;
            }
            Ok(frame)
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Context of a call: the service, its connection, its charge.
#[derive(Clone)]
struct Handlers {
    service: Service,
    connection: Arc<Connection>,
    charge: Arc<Charge>,
}

#[derive(Clone)]
struct Writes(Handlers);

#[derive(Clone)]
struct Reads(Handlers);

impl Tower<Request<Bytes>> for Writes {
    /// Always empty: a `WriteResponse` has no fields.
    type Response = Response<Bytes>;
    type Error = Status;
    type Future = Answering<Self::Response, Status>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let Handlers { service, connection, charge } = self.0.clone();
        Box::pin(async move {
            let written = service.write_bytes(request.into_inner(), &connection, charge).await;
            written.map(|()| Response::new(Bytes::new()))
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
        let Handlers { service, connection, charge } = self.0.clone();
        Box::pin(async move {
            service.read_bytes(request.into_inner(), &connection, charge).await.map(Response::new)
        })
    }
}
