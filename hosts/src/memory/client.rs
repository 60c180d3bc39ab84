//! A compute node that runs in its user's thread.

use super::operation::{self, Error, Operation, Remote, operations, word};
use super::port::{EdmPort, EdmPortError, PortConfig, PortStats};
use p4rack_fabric::Machine as _;
use p4rack_fabric::edm::host::compute::{self, Config, Counters};
use p4rack_netdev::{Poller, clock};
use p4rack_wire::Nanos;
use p4rack_wire::edm::Opcode;
use std::collections::VecDeque;
use std::os::fd::AsFd;

/// Maximum accepted operations whose results are not collected.
const OPEN_MAX: usize = 65_536;

/// Parameters of a client.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Its link.
    pub port: PortConfig,
    /// Its node: chunks, limits, the timeout after which an operation is unknown.
    pub node: Config,
}

/// Identifies an accepted operation until its result is collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

impl Ticket {
    /// Its number: a client numbers accepted operations from 0.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// The result of an operation: the bytes of a read, the previous word of an atomic operation (big-endian), nothing for a write.
pub(super) type Done = Result<Vec<u8>, Error>;

/// A compute node without a thread of its own.
///
/// An operation is sent when it is submitted. Everything else happens within [`poll`](Self::poll), [`wait`](Self::wait) and the
/// blocking operations. Between calls, answers wait in the socket.
#[derive(Debug)]
pub struct Client {
    port: EdmPort,
    node: compute::ComputeNode,
    poller: Poller,
    /// Numbers of the port's links in the poller.
    links: Vec<usize>,
    config: Config,
    open: usize,
    /// Results not yet collected, in the order in which operations ended.
    done: VecDeque<(Ticket, Done)>,
}

impl Client {
    /// Opens the link in the calling thread's network namespace.
    ///
    /// Errors: there is no such interface, it is not this host's link, no permission, or another program on this host runs a
    /// node on it.
    pub fn open(config: ClientConfig) -> Result<Client, EdmPortError> {
        let port = EdmPort::open(config.port)?;
        let mut poller = Poller::new();
        let links = port.watch(&mut poller)?;
        // One program at a time opens the link, so no other started at this time.
        let node = compute::ComputeNode::new(config.node.clone(), clock::now().0);
        Ok(Client { port, node, poller, links, config: config.node, open: 0, done: VecDeque::new() })
    }

    /// Accepts an operation and sends as much of it as limits permit.
    ///
    /// Errors: no such node, a bad length, or too many waiting operations.
    pub fn submit(&mut self, operation: Operation) -> Result<Ticket, Error> {
        let ticket = self.accept(operation)?;
        self.drain(clock::now());
        Ok(ticket)
    }

    /// Accepts an operation. It leaves with the next call that sends or waits.
    pub(crate) fn accept(&mut self, operation: Operation) -> Result<Ticket, Error> {
        let Operation { remote: Remote { node, key }, address, request } = operation;
        let config = self.port.config();
        if usize::from(node) >= config.nodes.len() || node == config.own {
            return Err(Error::NoSuchNode(node));
        }
        if self.open >= OPEN_MAX {
            return Err(Error::Full);
        }
        let ticket = self.node.handle_request(node, key, address, request, clock::now())?;
        self.open += 1;
        Ok(Ticket(ticket))
    }

    /// The next result, in the order in which operations end. `None` when `until` has passed, or if no operation is open.
    ///
    /// Errors: the link is gone.
    pub fn poll(&mut self, until: Option<Nanos>) -> Result<Option<(Ticket, Done)>, Error> {
        loop {
            if let Some(done) = self.take_done() {
                return Ok(Some(done));
            }
            if self.open == 0 || until.is_some_and(|until| until <= clock::now()) {
                return Ok(None);
            }
            self.turn(until)?;
        }
    }

    /// Waits for the result of an operation.
    ///
    /// Errors: those of the operation; [`Error::Unknown`] too if its result was collected before.
    pub fn wait(&mut self, ticket: Ticket) -> Done {
        loop {
            // The oldest operation nearly always ends first.
            let place = self.done.iter().position(|(ended, _)| *ended == ticket);
            if let Some((_, done)) = place.and_then(|place| self.done.remove(place)) {
                self.open -= 1;
                return done;
            }
            if self.open == self.done.len() {
                return Err(Error::Unknown);
            }
            self.turn(None)?;
        }
    }

    /// Executes one operation and waits for it.
    pub fn run(&mut self, operation: Operation) -> Done {
        let ticket = self.submit(operation)?;
        self.wait(ticket)
    }

    /// Executes several operations at the same time and waits for all. Results are in the order of the operations.
    pub fn batch(&mut self, operations: impl IntoIterator<Item = Operation>) -> Vec<Done> {
        let tickets: Vec<_> = operations.into_iter().map(|operation| self.accept(operation)).collect();
        self.drain(clock::now());
        tickets.into_iter().map(|ticket| self.wait(ticket?)).collect()
    }

    /// Sends accepted operations. If there is no result, waits for an event, at most until `until`.
    pub(crate) fn look(&mut self, until: Nanos) -> Result<(), EdmPortError> {
        self.drain(clock::now());
        if self.done.is_empty() { self.turn(Some(until)) } else { Ok(()) }
    }

    /// Parameters of the node.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Waits for an event, at most until `until`, and handles it.
    pub(super) fn turn(&mut self, until: Option<Nanos>) -> Result<(), EdmPortError> {
        let due = self.node.next_call(self.port.free_at()).into_iter().chain(until).min();
        self.poller.wait(due).map_err(EdmPortError::Wait)?;
        // Answers first: one that arrived in time must not become a timeout because this thread is late.
        for (nth, link) in self.links.iter().enumerate() {
            if self.poller.ready(*link) {
                self.port.receive(nth, &mut self.node)?;
            }
        }
        let now = clock::now();
        if self.node.next_timeout().is_some_and(|due| due <= now) {
            self.node.handle_timeout(now);
        }
        self.drain(now);
        Ok(())
    }

    fn drain(&mut self, now: Nanos) {
        self.port.drain(&mut self.node, now);
        while let Some((ticket, outcome)) = self.node.poll_completion() {
            self.done.push_back((Ticket(ticket), operation::result(outcome)));
        }
    }

    /// A result that has already arrived.
    pub(crate) fn take_done(&mut self) -> Option<(Ticket, Done)> {
        let done = self.done.pop_front()?;
        self.open -= 1;
        Some(done)
    }

    /// Adds a descriptor whose input ends [`turn`](Self::turn).
    pub(super) fn also_wait_for(&mut self, fd: impl AsFd) -> Result<(), EdmPortError> {
        self.poller.add(fd).map(drop).map_err(EdmPortError::Wait)
    }

    /// Accepted operations whose results are not collected.
    pub fn open_operations(&self) -> usize {
        self.open
    }

    /// Counters of the node.
    pub fn counters(&self) -> &Counters {
        self.node.counters()
    }

    /// Counters of the link.
    pub fn port_stats(&mut self) -> PortStats {
        self.port.stats()
    }
}

operations!(Client: [] (self: &mut Self) |operation| self.run(operation));
