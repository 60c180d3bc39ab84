//! The service: a task owns the machine, one more for each memory node carries its commands.

use super::convert;
use super::key::Key;
use super::listing::{self, Driven};
use crate::roce::setup::{Server, draw_token};
use crate::roce::{Desk, SetupError};
use p4rack_fabric::Machine as _;
use p4rack_fabric::balloon::{self, Balloon, Command, Config, End, Place, Received, Reply, Sent, Term};
use p4rack_fabric::common::ConfigError;
use p4rack_netdev::clock;
use p4rack_p4rt::p4rack::balloon::v1::balloon_server::{Balloon as Rpc, BalloonServer};
use p4rack_p4rt::p4rack::balloon::v1::node_client::NodeClient;
use p4rack_p4rt::p4rack::balloon::v1::{
    AskRequest, AskResponse, LeaveRequest, LeaveResponse, ListRequest, ListResponse,
};
use p4rack_p4rt::transport::tls::ServerTls;
use p4rack_p4rt::transport::{Caller, Visitor};
use p4rack_wire::Nanos;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

/// Inputs that wait for the machine. Callers beyond wait for their turn.
const INPUTS_MAX: usize = 1_024;
/// Commands that wait for a memory node. Further ones are dropped: they are sent again.
const COMMANDS_MAX: usize = 256;
/// Time that a memory node has to answer a command.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest time that the machine is left alone.
const TURN: Nanos = Nanos::from_secs(1);

/// Memory nodes at most: a list of them is one message.
pub const NODES_MAX: usize = 1_024;
/// Characters of a failure that are kept.
const FAILURE_MAX: usize = 200;

/// Why a service can't start, or has ended.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The parameters are invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There are too many memory nodes.
    #[error("{0} memory nodes; expected at most {NODES_MAX}")]
    Nodes(usize),
    /// The system has no random numbers.
    #[error("drawing the identity of the service from /dev/urandom: {0}")]
    Random(std::io::Error),
    /// It can't be reached.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// It has ended, for this reason.
    #[error("{0}")]
    Ended(String),
}

enum Input {
    Request(balloon::Request, oneshot::Sender<Reply>),
    Answer(u16, balloon::Answer),
    /// Why a memory node has not answered, and how many commands are lost with that.
    Failed(u16, String, u64),
    List(Option<Place>, oneshot::Sender<ListResponse>),
    /// A memory node goes offline, or comes back. The result is whether there is one with this number.
    Leave(u16, bool, oneshot::Sender<bool>),
}

/// The service's gRPC side.
#[derive(Debug)]
pub struct Service {
    inputs: mpsc::Sender<Input>,
    addrs: Arc<[String]>,
    desk: Desk,
    /// Why it has ended.
    end: watch::Receiver<Option<String>>,
}

/// Drives the machine.
struct Driver {
    machine: Balloon,
    inputs: mpsc::Receiver<Input>,
    waiting: BTreeMap<u64, oneshot::Sender<Reply>>,
    callers: u64,
    nodes: Vec<mpsc::Sender<Command>>,
    addrs: Arc<[String]>,
    /// Why the last command of a memory node has had no answer; empty: it has.
    failures: Vec<String>,
    end: watch::Sender<Option<String>>,
    /// Commands that found no room on their way.
    dropped: u64,
    /// Commands that have had no answer.
    failed: u64,
    /// Replies whose callers were gone.
    unheard: u64,
}

impl Service {
    /// A service that lends extents of the memory nodes at these set-up services, which have its key. It has to be made inside of a
    /// runtime, where it runs until the service is dropped. Errors: the parameters are invalid.
    pub fn start(nodes: Vec<Server>, key: &Key, config: Config) -> Result<Service, ServiceError> {
        if nodes.len() > NODES_MAX {
            return Err(ServiceError::Nodes(nodes.len()));
        }
        // A later service has a larger number; of two with the same one, the random identity decides.
        let identity = draw_token().map_err(ServiceError::Random)?;
        let service = identity.bytes().iter().take(8).fold(0, |id, byte| id << 8 | u64::from(*byte));
        let term = Term { number: clock::wall_ns(), service };
        let machine = Balloon::new(config, term, clock::now())?;
        let (sender, inputs) = mpsc::channel(INPUTS_MAX);
        let addrs: Arc<[String]> = nodes.iter().map(|node| node.addr.clone()).collect();
        let mut ways = Vec::new();
        for (number, server) in nodes.into_iter().enumerate() {
            let (way, commands) = mpsc::channel(COMMANDS_MAX);
            ways.push(way);
            tokio::spawn(carry(number as u16, server, key.clone(), commands, sender.downgrade()));
        }
        let (told, end) = watch::channel(None);
        let driver = Driver {
            machine,
            inputs,
            waiting: BTreeMap::new(),
            callers: 0,
            nodes: ways,
            addrs: addrs.clone(),
            failures: vec![String::new(); addrs.len()],
            end: told,
            dropped: 0,
            failed: 0,
            unheard: 0,
        };
        tokio::spawn(driver.run());
        Ok(Service { inputs: sender, addrs, desk: Desk::default(), end })
    }

    /// Its entrance and counters.
    pub fn desk(&self) -> Desk {
        self.desk.clone()
    }

    async fn put<T>(&self, input: impl FnOnce(oneshot::Sender<T>) -> Input) -> Result<T, Status> {
        let gone = || Status::unavailable("the service ends, or has too much to do: ask again");
        let (told, result) = oneshot::channel();
        self.inputs.send(input(told)).await.map_err(|_| gone())?;
        result.await.map_err(|_| gone())
    }
}

/// Carries commands to a memory node, and its answers back. A failed call counts as lost: the machine sends it again.
async fn carry(
    number: u16,
    server: Server,
    key: Key,
    mut commands: mpsc::Receiver<Command>,
    inputs: mpsc::WeakSender<Input>,
) {
    let mut client: Option<NodeClient<Channel>> = None;
    while let Some(command) = commands.recv().await {
        let carried = tokio::time::timeout(PATIENCE, execute(&server, &key, &mut client, &command)).await;
        let input = match carried.unwrap_or_else(|_| Err(format!("no answer in {PATIENCE:?}"))) {
            Ok(answer) => Input::Answer(number, answer),
            Err(why) => {
                tracing::debug!(node = number, addr = server.addr, why, "a command is lost");
                client = None;
                let mut lost = 1;
                // Waiting commands are as old, and will be sent again.
                while commands.try_recv().is_ok() {
                    lost += 1;
                }
                Input::Failed(number, why.chars().take(FAILURE_MAX).collect(), lost)
            }
        };
        let Some(inputs) = inputs.upgrade() else { return };
        if inputs.send(input).await.is_err() {
            return;
        }
    }
}

async fn execute(
    server: &Server,
    key: &Key,
    client: &mut Option<NodeClient<Channel>>,
    command: &Command,
) -> Result<balloon::Answer, String> {
    let connected = match client.take() {
        Some(connected) => connected,
        None => NodeClient::new(server.channel().await.map_err(|error| error.to_string())?),
    };
    let connected = client.insert(connected);
    let mut request = Request::new(convert::command(command));
    key.prove(request.metadata_mut());
    let answer = connected.execute(request).await.map_err(|status| status.message().to_owned())?;
    convert::answer_of(answer.into_inner())
}

impl Driver {
    async fn run(mut self) {
        loop {
            self.turn();
            let now = clock::now();
            let due = self.machine.next_call(Nanos::ZERO).unwrap_or(now + TURN).min(now + TURN);
            let sleep = tokio::time::sleep(Duration::from_nanos(due.saturating_sub(now).0));
            tokio::select! {
                input = self.inputs.recv() => match input {
                    Some(input) => self.take(input),
                    None => return,
                },
                () = sleep => {}
            }
            while let Ok(input) = self.inputs.try_recv() {
                self.take(input);
            }
        }
    }

    fn take(&mut self, input: Input) {
        let now = clock::now();
        match input {
            Input::Request(request, told) => {
                self.callers += 1;
                let dropped = self.machine.counters().overflows;
                self.machine.handle_link(Received::Request(self.callers, request), now, now);
                // A request that is dropped has no reply. Its caller learns that from the end of its channel.
                if self.machine.counters().overflows == dropped {
                    self.waiting.insert(self.callers, told);
                }
                self.turn();
            }
            Input::Answer(node, answer) => {
                self.failures[usize::from(node)].clear();
                self.machine.handle_link(Received::Answer(node, answer), now, now);
            }
            Input::Failed(node, why, lost) => {
                self.failures[usize::from(node)] = why;
                self.failed += lost;
            }
            // A dropped receiver discards the result.
            Input::List(after, told) => drop(told.send(self.listed(after))),
            Input::Leave(node, leaves, told) => drop(told.send(self.machine.set_leaving(node, leaves))),
        }
    }

    fn turn(&mut self) {
        let now = clock::now();
        self.machine.handle_timeout(now);
        while let Some(sent) = self.machine.poll_link(now, &mut ()) {
            match sent {
                Sent::Reply(caller, reply) => {
                    let told = self.waiting.remove(&caller).map(|told| told.send(reply));
                    self.unheard += u64::from(told != Some(Ok(())));
                }
                Sent::Command(node, command) => {
                    let way = self.nodes.get(usize::from(node));
                    let sent = way.is_some_and(|way| way.try_send(command).is_ok());
                    self.dropped += u64::from(!sent);
                }
            }
        }
        if let Some(end) = self.machine.end().filter(|_| self.end.borrow().is_none()) {
            self.end.send_replace(Some(self.reason(end)));
        }
    }

    /// Why the service has ended, with advice.
    fn reason(&self, end: End) -> String {
        match end {
            End::Superseded(term) => format!(
                "superseded: the service of term {term} has taken over the memory nodes; a pool has one service, so compute nodes \
                 ask that one"
            ),
            End::SameNode(first, second) => {
                let addr = |number: u16| self.addrs.get(usize::from(number)).map_or("?", String::as_str);
                let [one, other] = [first, second].map(addr);
                format!("{one} and {other} are the same memory node: name each node once")
            }
        }
    }

    fn listed(&self, after: Option<Place>) -> ListResponse {
        let driven = Driven {
            addrs: &self.addrs,
            failures: &self.failures,
            end: self.end.borrow().clone(),
            counts: [("dropped", self.dropped), ("failed", self.failed), ("unheard", self.unheard)],
        };
        listing::page(&self.machine, driven, after)
    }
}

/// Name of an operator in a certificate.
const OPERATOR: &str = "operator";

/// Name of a compute node in its certificate.
fn name_of(holder: u32) -> String {
    format!("holder-{holder}")
}

/// Whether a caller may ask as a compute node. Errors: it has a certificate, and that is for others.
fn check_holder(caller: &Caller, holder: u32) -> Result<(), Status> {
    let name = name_of(holder);
    match caller.is_named(&name) {
        Some(false) => Err(Status::permission_denied(format!(
            "the caller's certificate is not that of compute node {holder}: it needs the subjectAltName DNS:{name}"
        ))),
        // Without certificates, callers can't be identified.
        Some(true) | None => Ok(()),
    }
}

#[tonic::async_trait]
impl Rpc for Service {
    async fn ask(&self, request: Request<AskRequest>) -> Result<Response<AskResponse>, Status> {
        let asked = async {
            let visitor = Visitor::of(&request)?;
            let request = convert::request_of(request.into_inner()).map_err(Status::invalid_argument)?;
            check_holder(visitor.caller(), request.session.holder)?;
            let reply = self.put(|told| Input::Request(request, told)).await?;
            let addr = |node: u16| self.addrs.get(usize::from(node)).cloned().unwrap_or_default();
            convert::response(reply, addr).map_err(super::holder::status)
        };
        self.desk.note(asked.await).map(Response::new)
    }

    async fn list(&self, request: Request<ListRequest>) -> Result<Response<ListResponse>, Status> {
        let listed = async {
            let after = listing::after_of(request.into_inner()).map_err(Status::invalid_argument)?;
            self.put(|told| Input::List(after, told)).await
        };
        self.desk.note(listed.await).map(Response::new)
    }

    async fn leave(&self, request: Request<LeaveRequest>) -> Result<Response<LeaveResponse>, Status> {
        let left = async {
            let visitor = Visitor::of(&request)?;
            if visitor.caller().is_named(OPERATOR) == Some(false) {
                return Err(Status::permission_denied(format!(
                    "the caller's certificate is not an operator's: it needs the subjectAltName DNS:{OPERATOR}"
                )));
            }
            let LeaveRequest { node, leaves } = request.into_inner();
            let number = convert::node_of("node", node).map_err(Status::invalid_argument)?;
            match self.put(|told| Input::Leave(number, leaves, told)).await? {
                true => Ok(LeaveResponse {}),
                false => Err(Status::not_found(format!(
                    "memory node {node}; the last one is {}",
                    self.addrs.len().saturating_sub(1)
                ))),
            }
        };
        self.desk.note(left.await).map(Response::new)
    }
}

/// Serves until the future is dropped, or the service has ended. Errors: why it has ended.
pub async fn serve(
    listener: TcpListener,
    service: Service,
    tls: Option<&ServerTls>,
) -> Result<(), ServiceError> {
    let incoming = service.desk().incoming(listener, tls)?;
    let mut end = service.end.clone();
    let ended = async move {
        let told = end.wait_for(Option::is_some).await.ok().and_then(|end| end.clone());
        told.unwrap_or_else(|| {
            "a fault has ended the service: start it again; what is lent stays lent".to_owned()
        })
    };
    let router = Desk::server().add_service(BalloonServer::new(service));
    tokio::select! {
        served = router.serve_with_incoming(incoming) => Ok(served.map_err(SetupError::from)?),
        why = ended => Err(ServiceError::Ended(why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_whose_machine_is_gone_ends() {
        let (inputs, _) = mpsc::channel(1);
        let end = watch::channel(None).1;
        let service = Service { inputs, addrs: Arc::new([]), desk: Desk::default(), end };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let ended = runtime.expect("the system has threads").block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
            serve(listener, service, None).await.expect_err("nothing answers requests")
        });
        assert!(ended.to_string().contains("start it again"), "{ended}");
    }
}
