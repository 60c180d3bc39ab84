//! BFRuntime without a network, for a client in the switch's process: limits and handlers are those of the server.

use super::forward::forward;
use crate::bfruntime::{Front, Service};
use crate::core::{Events, Gone, Handle};
use crate::p4runtime::{Connection, Device, Limits};
use p4rack_entities::Candidate;
use p4rack_p4rt::transport::Tenant;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tonic::body::Body;
use tonic::codegen::{Service as Tower, http};

/// BFRuntime's calls on a switch; streams end when it is dropped.
#[derive(Debug)]
pub struct Inside {
    front: Front,
    limits: Arc<Limits>,
    _stop: watch::Sender<bool>,
    forward: AbortHandle,
}

impl Inside {
    /// Serves a switch, with a program if there is one. Errors: the data plane has ended.
    pub async fn start(handle: Handle, events: Events, program: Option<Candidate>) -> Result<Inside, Gone> {
        let device = Arc::new(Device::new(handle.clone(), 0, None));
        if let Some(program) = program {
            device.install(program).await?;
        }
        let (stop, stopping) = watch::channel(false);
        let service = Service::new(device.clone(), stopping).await;
        let limits = Limits::new(handle.calls_refused().clone());
        let forward = tokio::spawn(forward(events, device, Some(service.clone()), handle)).abort_handle();
        Ok(Inside { front: Front::new(service), limits, _stop: stop, forward })
    }

    /// Opens a connection; `None` if there are too many.
    pub fn connect(&self) -> Option<InsideConnection> {
        Some(InsideConnection { front: self.front.clone(), connection: self.limits.connect(&Tenant::LOCAL)? })
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.forward.abort();
    }
}

/// A client's transport. An answer counts as sent once it has arrived.
#[derive(Clone, Debug)]
pub struct InsideConnection {
    front: Front,
    connection: Arc<Connection>,
}

impl Tower<http::Request<Body>> for InsideConnection {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        request.extensions_mut().insert(self.connection.clone());
        let (answer, connection) = (self.front.call(request), self.connection.clone());
        Box::pin(async move {
            let answer = answer.await;
            connection.written(usize::MAX);
            answer
        })
    }
}
