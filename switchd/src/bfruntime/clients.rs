//! Clients, by the ids that they chose, and which of them is bound to the program.
//!
//! ```text
//!  stream opens ─ Subscribe ─▶ a client ─ BIND ─▶ bound to the program ─▶ may write, and read its tables
//!                   └─ its id is taken: refused       └─ another one is bound: refused
//! ```

use crate::p4runtime::{Outbox, Watch, status};
use p4rack_entities::Program;
use p4rack_p4rt::bfrt_proto::subscribe::Notifications;
use p4rack_p4rt::bfrt_proto::{
    SetForwardingPipelineConfigResponse, SetForwardingPipelineConfigResponseType as Progress,
    StreamMessageResponse, stream_message_response,
};
use p4rack_p4rt::google::rpc::Code;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tonic::Status;

/// Maximum concurrent clients.
const CLIENTS: usize = 64;
/// Bits of an id by which a driver finds a client when it notifies it.
const FOUND_BY: u32 = 0xff_ffff;

/// A client.
#[derive(Debug)]
struct Client {
    /// Number of its stream, because another client may use its id later.
    stream: u64,
    outbox: Outbox<StreamMessageResponse>,
    /// Its subscriptions.
    wanted: Notifications,
}

#[derive(Debug, Default)]
struct State {
    clients: HashMap<u32, Client>,
    streams: u64,
    /// The client that is bound.
    bound: Option<Bound>,
    /// Whether clients were notified of the start of an installation, and not yet of its end.
    is_installing: bool,
    /// Clients with a Write that is made as a whole.
    transactions: HashSet<u32>,
}

/// A client's transaction; it ends when dropped.
#[derive(Debug)]
pub struct Transaction {
    clients: Clients,
    id: u32,
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.clients.state().transactions.remove(&self.id);
    }
}

#[derive(Debug)]
struct Bound {
    client: u32,
    stream: u64,
    program: Weak<Program>,
}

impl Bound {
    fn is_named(&self, name: &str) -> bool {
        self.program.upgrade().is_some_and(|program| program.name == name)
    }

    fn is_to(&self, program: &Arc<Program>) -> bool {
        std::ptr::eq(self.program.as_ptr(), Arc::as_ptr(program))
    }
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

    /// Subscribes a stream with a client id.
    pub fn subscribe(
        &self,
        stream: u64,
        id: u32,
        wanted: Notifications,
        outbox: &Outbox<StreamMessageResponse>,
    ) -> Result<(), Status> {
        let mut state = self.state();
        if state.clients.contains_key(&id) {
            let message = format!("client {id} is connected; choose another client id");
            return Err(status(Code::InvalidArgument, message));
        }
        if state.clients.len() >= CLIENTS {
            let message = format!("{CLIENTS} clients are connected, which is the limit");
            return Err(status(Code::ResourceExhausted, message));
        }
        state.clients.insert(id, Client { stream, outbox: outbox.clone(), wanted });
        Ok(())
    }

    /// Removes the client of a closed stream. Returns false, and does nothing, if the client is bound and may have requests
    /// in progress.
    pub fn close(&self, stream: u64, is_alone: bool) -> bool {
        let mut state = self.state();
        let is_bound = state.bound.as_ref().is_some_and(|bound| bound.stream == stream);
        if is_bound && !is_alone {
            return false;
        }
        state.clients.retain(|_, client| client.stream != stream);
        if is_bound {
            state.bound = None;
        }
        true
    }

    /// A client's stream. Errors: the client is unknown.
    pub fn known(&self, id: u32) -> Result<u64, Status> {
        self.state().known(id)
    }

    /// Binds a client to the running program. As with the driver, it may not do so again.
    pub fn bind(&self, id: u32, program: &Arc<Program>) -> Result<(), Status> {
        let mut state = self.state();
        let stream = state.known(id).map_err(|error| Status::unavailable(error.message()))?;
        match &state.bound {
            Some(bound) if bound.stream == stream && bound.is_to(program) => {
                let message = format!("client {id} is bound to the program already; BIND once");
                return Err(status(Code::AlreadyExists, message));
            }
            Some(bound) if bound.is_to(program) => {
                let other = bound.client;
                let message = format!("client {other} is bound to the program, and a program has one client");
                return Err(status(Code::AlreadyExists, message));
            }
            _ => state.bound = Some(Bound { client: id, stream, program: Arc::downgrade(program) }),
        }
        Ok(())
    }

    /// Begins a client's transaction. As with the driver, a client has one session, and that one transaction at a time.
    pub fn transaction(&self, id: u32) -> Result<Transaction, Status> {
        if !self.state().transactions.insert(id) {
            let message =
                format!("client {id} has a Write with ROLLBACK_ON_ERROR under way; wait for its end");
            return Err(status(Code::AlreadyExists, message));
        }
        Ok(Transaction { clients: self.clone(), id })
    }

    /// The stream of a client, if it has one.
    pub fn stream_of(&self, id: u32) -> Option<u64> {
        self.state().known(id).ok()
    }

    /// The stream of a client that is bound to a program; none of one that has no stream and names the program. Errors:
    /// it is not bound.
    pub fn authorise(&self, id: u32, program: &Arc<Program>, is_named: bool) -> Result<Option<u64>, Status> {
        let state = self.state();
        let stream = match state.known(id) {
            Ok(stream) => stream,
            Err(_) if is_named => return Ok(None),
            Err(error) => return Err(error),
        };
        let is_bound = |bound: &Bound| bound.stream == stream && bound.is_to(program);
        if state.bound.as_ref().is_some_and(is_bound) {
            return Ok(Some(stream));
        }
        let message = format!(
            "client {id} is not bound to the program that runs; SetForwardingPipelineConfig with BIND first"
        );
        Err(status(Code::FailedPrecondition, message))
    }

    /// Notifies all clients that an installation has begun, or ended.
    pub fn notify(&self, what: Progress) {
        self.state().notify(what);
    }

    /// Whether a client is bound.
    pub fn any_bound(&self) -> bool {
        self.state().bound.is_some()
    }

    /// Whether a client is bound and wants certain messages.
    pub fn wants(&self, wants: impl Fn(&Notifications) -> bool) -> bool {
        let state = self.state();
        let client = state.bound.as_ref().and_then(|bound| state.clients.get(&bound.client));
        client.is_some_and(|client| wants(&client.wanted))
    }

    /// Sends a message to the client that is bound to a program, if it wants such messages. Returns whether it was sent.
    pub fn notice(
        &self,
        program: &Arc<Program>,
        wants: impl Fn(&Notifications) -> bool,
        update: stream_message_response::Update,
    ) -> bool {
        let state = self.state();
        let bound = state.bound.as_ref().filter(|bound| bound.is_to(program));
        // A client with a larger id is not found, as with the driver.
        let client = bound.and_then(|bound| state.clients.get(&(bound.client & FOUND_BY)));
        let client = client.filter(|client| wants(&client.wanted));
        client.is_some_and(|client| client.outbox.offer(StreamMessageResponse { update: Some(update) }))
    }

    /// Whether a client has subscribed to ports.
    pub fn hears_of_ports(&self, id: u32) -> bool {
        let state = self.state();
        state.clients.get(&id).is_some_and(|client| client.wanted.enable_port_status_change_notifications)
    }

    /// Sends a message to the clients that have subscribed to ports, bound or not.
    pub fn tell_of_ports(&self, update: &stream_message_response::Update) {
        let state = self.state();
        let hears = |(id, client): &(&u32, &Client)| {
            **id <= FOUND_BY && client.wanted.enable_port_status_change_notifications
        };
        for (_, client) in state.clients.iter().filter(hears) {
            client.outbox.offer(StreamMessageResponse { update: Some(update.clone()) });
        }
    }

    /// A client is bound no longer: it installs a program with another name.
    pub fn release(&self, id: u32, name: &str) {
        let mut state = self.state();
        if state.bound.as_ref().is_some_and(|bound| bound.client == id && !bound.is_named(name)) {
            state.bound = None;
        }
    }

    /// Whether a stream ends if another program takes the place of the one that its client is bound to.
    pub fn loses(&self, stream: u64, new: &Program) -> bool {
        let state = self.state();
        state.bound.as_ref().is_some_and(|bound| bound.stream == stream && !bound.is_named(&new.name))
    }

    /// Requests for one program mean another one from now on. The client that is bound to it stays so if both have the
    /// same name; otherwise its stream ends.
    pub fn moved(&self, old: &Arc<Program>, new: &Arc<Program>) {
        self.state().moved(old, new);
    }
}

impl State {
    fn known(&self, id: u32) -> Result<u64, Status> {
        let missing = || format!("there is no client {id}; open a stream and subscribe first");
        let client = self.clients.get(&id);
        client.map(|client| client.stream).ok_or_else(|| status(Code::FailedPrecondition, missing()))
    }

    fn moved(&mut self, old: &Arc<Program>, new: &Arc<Program>) {
        if let Some(bound) = self.bound.as_mut().filter(|bound| bound.is_to(old) && old.name == new.name) {
            bound.program = Arc::downgrade(new);
            return;
        }
        let Some(bound) = self.bound.take_if(|bound| bound.is_to(old)) else { return };
        if let Some(client) = self.clients.remove(&bound.client) {
            client
                .outbox
                .send(Err(Status::cancelled("another program was installed; subscribe and bind anew")));
        }
    }

    fn notify(&mut self, what: Progress) {
        self.is_installing = what == Progress::WarmInitStarted;
        let response =
            SetForwardingPipelineConfigResponse { set_forwarding_pipeline_config_response_type: what as i32 };
        let update = stream_message_response::Update::SetForwardingPipelineConfigResponse(response);
        for client in self.clients.values() {
            client.outbox.offer(StreamMessageResponse { update: Some(update.clone()) });
        }
    }
}

impl Watch for Clients {
    /// Notifies all clients of an installation, including the requesting one. Clients bound to a program of another name have to
    /// bind again.
    fn replaced(&self, old: Option<&Arc<Program>>, new: &Arc<Program>) {
        let mut state = self.state();
        if !state.is_installing {
            state.notify(Progress::WarmInitStarted);
        }
        state.notify(Progress::WarmInitFinished);
        if let Some(old) = old {
            state.moved(old, new);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test that cannot go on should panic
mod tests {
    use super::*;

    #[test]
    fn a_client_has_one_transaction_at_a_time() {
        let clients = Clients::default();
        let first = clients.transaction(5).unwrap();
        assert_eq!(clients.transaction(5).unwrap_err().code(), tonic::Code::AlreadyExists);
        let _other = clients.transaction(6).unwrap();
        drop(first);
        clients.transaction(5).unwrap();
    }
}
