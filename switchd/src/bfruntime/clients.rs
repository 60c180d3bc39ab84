//! Clients, by the ids that they chose, and which of them is bound to the program.
//!
//! ```text
//!  stream opens ─ Subscribe ─▶ a client ─ BIND ─▶ bound to the program ─▶ may write, and read its tables
//!                   └─ its id is taken: refused       └─ another one is bound: refused
//! ```

use crate::p4runtime::{Outbox, status};
use p4rack_entities::Program;
use p4rack_p4rt::bfrt_proto::{
    SetForwardingPipelineConfigResponse, SetForwardingPipelineConfigResponseType, StreamMessageResponse,
    stream_message_response,
};
use p4rack_p4rt::google::rpc::Code;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tonic::Status;

/// Maximum concurrent clients.
const CLIENTS: usize = 64;

/// A client.
#[derive(Debug)]
struct Client {
    /// Number of its stream, because another client may use its id later.
    stream: u64,
    outbox: Outbox<StreamMessageResponse>,
}

#[derive(Debug, Default)]
struct State {
    clients: HashMap<u32, Client>,
    streams: u64,
    /// The bound client, and the program to which it is bound.
    bound: Option<(u32, Weak<Program>)>,
}

/// All clients of the device.
#[derive(Clone, Debug, Default)]
pub struct Clients(Arc<Mutex<State>>);

impl Clients {
    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is a single insertion or removal, so a panic elsewhere leaves it consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number for a new stream.
    pub fn open(&self) -> u64 {
        let mut state = self.state();
        state.streams += 1;
        state.streams
    }

    /// Subscribes a stream with a client id. It may do so again.
    pub fn subscribe(
        &self,
        stream: u64,
        id: u32,
        own: Option<u32>,
        outbox: &Outbox<StreamMessageResponse>,
    ) -> Result<(), Status> {
        let mut state = self.state();
        match own {
            Some(own) if own != id => {
                let message =
                    format!("this stream is client {own}'s and can't be client {id}'s; open another stream");
                return Err(status(Code::InvalidArgument, message));
            }
            Some(_) => return Ok(()),
            None => {}
        }
        if state.clients.contains_key(&id) {
            let message = format!("client {id} is connected; choose another client id");
            return Err(status(Code::InvalidArgument, message));
        }
        if state.clients.len() >= CLIENTS {
            let message = format!("{CLIENTS} clients are connected, which is the limit");
            return Err(status(Code::ResourceExhausted, message));
        }
        state.clients.insert(id, Client { stream, outbox: outbox.clone() });
        Ok(())
    }

    /// A stream has ended, so its client has left.
    pub fn close(&self, stream: u64) {
        let mut state = self.state();
        let id = state.clients.iter().find(|(_, client)| client.stream == stream).map(|(id, _)| *id);
        let Some(id) = id else { return };
        state.clients.remove(&id);
        if state.bound.as_ref().is_some_and(|(bound, _)| *bound == id) {
            state.bound = None;
        }
    }

    /// Refuses clients that have not subscribed.
    pub fn known(&self, id: u32) -> Result<(), Status> {
        if self.state().clients.contains_key(&id) {
            return Ok(());
        }
        let message = format!("there is no client {id}; open a stream and subscribe first");
        Err(status(Code::FailedPrecondition, message))
    }

    /// Binds a client to the running program.
    pub fn bind(&self, id: u32, program: &Arc<Program>) -> Result<(), Status> {
        self.known(id)?;
        let mut state = self.state();
        let to_this = |bound: &Weak<Program>| std::ptr::eq(bound.as_ptr(), Arc::as_ptr(program));
        match &state.bound {
            Some((other, to)) if *other != id && to_this(to) => {
                let message = format!("client {other} is bound to the program, and a program has one client");
                return Err(status(Code::AlreadyExists, message));
            }
            _ => state.bound = Some((id, Arc::downgrade(program))),
        }
        Ok(())
    }

    /// Refuses clients that are not bound to the running program.
    pub fn authorise(&self, id: u32, program: &Arc<Program>) -> Result<(), Status> {
        self.known(id)?;
        let is_bound = self
            .state()
            .bound
            .as_ref()
            .is_some_and(|(bound, to)| *bound == id && std::ptr::eq(to.as_ptr(), Arc::as_ptr(program)));
        if is_bound {
            return Ok(());
        }
        let message = format!(
            "client {id} is not bound to the program that runs; SetForwardingPipelineConfig with BIND first"
        );
        Err(status(Code::FailedPrecondition, message))
    }

    /// Notifies all clients of the progress of an installation.
    pub fn notify(&self, what: SetForwardingPipelineConfigResponseType) {
        let response =
            SetForwardingPipelineConfigResponse { set_forwarding_pipeline_config_response_type: what as i32 };
        let update = stream_message_response::Update::SetForwardingPipelineConfigResponse(response);
        for client in self.state().clients.values() {
            client.outbox.offer(StreamMessageResponse { update: Some(update.clone()) });
        }
    }

    /// Another program runs, so no client is bound any more. The one that was is notified, unless it installed the program.
    pub fn unbind(&self, installer: Option<u32>) {
        let mut state = self.state();
        let Some((bound, _)) = state.bound.take().filter(|(bound, _)| Some(*bound) != installer) else {
            return;
        };
        if let Some(client) = state.clients.remove(&bound) {
            client
                .outbox
                .send(Err(Status::cancelled("another program was installed; subscribe and bind anew")));
        }
    }
}
