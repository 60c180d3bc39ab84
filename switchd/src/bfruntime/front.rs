//! Charges the memory of all calls before their handlers run.

use super::service::Service;
use crate::p4runtime::{Connection, Counted, RECEIVE_LIMIT, STREAM_LIMIT};
use p4rack_p4rt::bfrt_proto::bf_runtime_server::BfRuntimeServer;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{Service as Tower, http};

/// The generated server behind the limits.
#[derive(Clone, Debug)]
pub struct Front {
    calls: BfRuntimeServer<Service>,
    streams: BfRuntimeServer<Service>,
}

impl Front {
    /// Around the handlers of all calls.
    pub fn new(service: Service) -> Front {
        let calls = BfRuntimeServer::new(service.clone())
            .max_decoding_message_size(RECEIVE_LIMIT)
            .max_encoding_message_size(usize::MAX);
        let streams = BfRuntimeServer::new(service).max_decoding_message_size(STREAM_LIMIT);
        Front { calls, streams }
    }
}

type Answering = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

impl Tower<http::Request<Body>> for Front {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let refused = |error: Status| -> Answering { Box::pin(std::future::ready(Ok(error.into_http()))) };
        let Some(connection) = request.extensions().get::<Arc<Connection>>().cloned() else {
            return refused(Status::internal("the request came over no connection"));
        };
        if let Err(error) = connection.check() {
            return refused(error);
        }
        if request.uri().path() == "/bfrt_proto.BfRuntime/StreamChannel" {
            return Box::pin(self.streams.call(request));
        }
        let charge = Arc::new(connection.charge());
        let charged = charge.clone();
        let mut request = request.map(|body| Body::new(Counted::new(body, charged)));
        request.extensions_mut().insert(charge.clone());
        let answering = self.calls.call(request);
        // The handler holds it too, because the body is dropped before the call ends.
        Box::pin(async move {
            let answer = answering.await;
            drop(charge);
            answer
        })
    }
}
