//! The service: a task owns the machine, one more for each memory node carries its commands.

use super::convert;
use crate::roce::setup::Server;
use crate::roce::{Desk, SetupError};
use p4rack_fabric::Machine as _;
use p4rack_fabric::balloon::{self, Balloon, Command, Config, ExtentFacts, Received, Reply, Sent, State};
use p4rack_fabric::common::ConfigError;
use p4rack_netdev::clock;
use p4rack_p4rt::p4rack::balloon::v1::balloon_server::{Balloon as Rpc, BalloonServer};
use p4rack_p4rt::p4rack::balloon::v1::node_client::NodeClient;
use p4rack_p4rt::p4rack::balloon::v1::{
    AskRequest, AskResponse, Count, ExtentFacts as Extents, HolderFacts, ListRequest, ListResponse, NodeFacts,
};
use p4rack_p4rt::transport::tls::ServerTls;
use p4rack_wire::Nanos;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
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

enum Input {
    Request(balloon::Request, oneshot::Sender<Reply>),
    Answer(u16, balloon::Answer),
    List(oneshot::Sender<ListResponse>),
}

/// The service's gRPC side.
#[derive(Debug)]
pub struct Service {
    inputs: mpsc::Sender<Input>,
    addrs: Arc<[String]>,
    desk: Desk,
}

/// What drives the machine.
struct Driver {
    machine: Balloon,
    inputs: mpsc::Receiver<Input>,
    waiting: BTreeMap<u64, oneshot::Sender<Reply>>,
    callers: u64,
    nodes: Vec<mpsc::Sender<Command>>,
    addrs: Arc<[String]>,
    /// Commands that found no room on their way.
    dropped: u64,
}

impl Service {
    /// A service that lends extents of the memory nodes at these set-up services. It has to be made inside of a runtime, where it runs
    /// until the service is dropped. Errors: the parameters are invalid.
    pub fn start(nodes: Vec<Server>, config: Config) -> Result<Service, ConfigError> {
        // A later service has a larger term.
        let machine = Balloon::new(config, clock::wall_ns(), clock::now())?;
        let (sender, inputs) = mpsc::channel(INPUTS_MAX);
        let addrs: Arc<[String]> = nodes.iter().map(|node| node.addr.clone()).collect();
        let mut ways = Vec::new();
        for (number, server) in nodes.into_iter().enumerate() {
            let (way, commands) = mpsc::channel(COMMANDS_MAX);
            ways.push(way);
            tokio::spawn(carry(number as u16, server, commands, sender.downgrade()));
        }
        let driver = Driver {
            machine,
            inputs,
            waiting: BTreeMap::new(),
            callers: 0,
            nodes: ways,
            addrs: addrs.clone(),
            dropped: 0,
        };
        tokio::spawn(driver.run());
        Ok(Service { inputs: sender, addrs, desk: Desk::default() })
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

/// Carries commands to a memory node, and its answers back. What fails is lost: the machine sends it again.
async fn carry(
    number: u16,
    server: Server,
    mut commands: mpsc::Receiver<Command>,
    inputs: mpsc::WeakSender<Input>,
) {
    let mut client: Option<NodeClient<Channel>> = None;
    while let Some(command) = commands.recv().await {
        let carried = tokio::time::timeout(PATIENCE, execute(&server, &mut client, &command)).await;
        let answer = match carried {
            Ok(Ok(answer)) => answer,
            failed => {
                let why =
                    failed.map_or_else(|_| "no answer".to_owned(), |failed| failed.err().unwrap_or_default());
                tracing::debug!(node = number, addr = server.addr, why, "a command is lost");
                client = None;
                // What waits is as old, and will be sent again.
                while commands.try_recv().is_ok() {}
                continue;
            }
        };
        let Some(inputs) = inputs.upgrade() else { return };
        if inputs.send(Input::Answer(number, answer)).await.is_err() {
            return;
        }
    }
}

async fn execute(
    server: &Server,
    client: &mut Option<NodeClient<Channel>>,
    command: &Command,
) -> Result<balloon::Answer, String> {
    let connected = match client.take() {
        Some(connected) => connected,
        None => NodeClient::new(server.channel().await.map_err(|error| error.to_string())?),
    };
    let connected = client.insert(connected);
    let answer = connected.execute(convert::command(command)).await.map_err(|status| status.to_string())?;
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
                self.waiting.insert(self.callers, told);
                self.machine.handle_link(Received::Request(self.callers, request), now, now);
                self.turn();
            }
            Input::Answer(node, answer) => {
                self.machine.handle_link(Received::Answer(node, answer), now, now);
            }
            // A dropped receiver discards the result.
            Input::List(told) => drop(told.send(self.listed())),
        }
    }

    fn turn(&mut self) {
        let now = clock::now();
        self.machine.handle_timeout(now);
        while let Some(sent) = self.machine.poll_link(now, &mut ()) {
            match sent {
                Sent::Reply(caller, reply) => {
                    // A dropped receiver discards the result.
                    if let Some(told) = self.waiting.remove(&caller) {
                        drop(told.send(reply));
                    }
                }
                Sent::Command(node, command) => {
                    let way = self.nodes.get(usize::from(node));
                    let sent = way.is_some_and(|way| way.try_send(command).is_ok());
                    self.dropped += u64::from(!sent);
                }
            }
        }
    }

    fn listed(&self) -> ListResponse {
        let node = |facts: balloon::NodeFacts| NodeFacts {
            number: facts.number.into(),
            addr: self.addrs.get(usize::from(facts.number)).cloned().unwrap_or_default(),
            is_there: facts.is_there,
            bytes: facts.bytes,
            free_bytes: facts.free_bytes,
            longest_bytes: facts.longest_bytes,
            ranges: facts.ranges as u64,
            lent_bytes: facts.lent_bytes,
            fencing_bytes: facts.fencing_bytes,
            zeroing_bytes: facts.zeroing_bytes,
        };
        let holder = |facts: balloon::HolderFacts| HolderFacts {
            session: Some(convert::session(facts.session)),
            left_ns: facts.left.0,
            held_bytes: facts.held_bytes,
            extents: facts.extents as u64,
            reserved_bytes: facts.quota.reserved_bytes,
            limit_bytes: facts.quota.limit_bytes,
        };
        let extent = |facts: ExtentFacts| Extents {
            extent: Some(convert::extent(facts.extent)),
            state: match facts.state {
                State::Found => "found",
                State::Granting => "granting",
                State::Lent => "lent",
                State::Fencing => "fencing",
                State::Zeroing => "zeroing",
            }
            .to_owned(),
            session: facts.session.map(convert::session),
            is_online: facts.is_online,
            sent: facts.sent,
        };
        let counters = self.machine.counters().iter().chain([("dropped", self.dropped)]);
        ListResponse {
            is_serving: self.machine.is_serving(),
            nodes: self.machine.nodes().into_iter().map(node).collect(),
            holders: self.machine.holders().into_iter().map(holder).collect(),
            extents: self.machine.extents().map(extent).collect(),
            counters: counters.map(|(name, value)| Count { name: name.to_owned(), value }).collect(),
        }
    }
}

#[tonic::async_trait]
impl Rpc for Service {
    async fn ask(&self, request: Request<AskRequest>) -> Result<Response<AskResponse>, Status> {
        let asked = async {
            let request = convert::request_of(request.into_inner()).map_err(Status::invalid_argument)?;
            let reply = self.put(|told| Input::Request(request, told)).await?;
            let addr = |node: u16| self.addrs.get(usize::from(node)).cloned().unwrap_or_default();
            convert::response(reply, addr).map_err(super::holder::status)
        };
        self.desk.note(asked.await).map(Response::new)
    }

    async fn list(&self, _: Request<ListRequest>) -> Result<Response<ListResponse>, Status> {
        self.desk.note(self.put(Input::List).await).map(Response::new)
    }
}

/// Serves until the future is dropped.
pub async fn serve(
    listener: TcpListener,
    service: Service,
    tls: Option<&ServerTls>,
) -> Result<(), SetupError> {
    let incoming = service.desk().incoming(listener, tls)?;
    let router = Desk::server().add_service(BalloonServer::new(service));
    Ok(router.serve_with_incoming(incoming).await?)
}
