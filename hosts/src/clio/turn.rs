//! What a board on a host does in a turn.
//!
//! ```text
//!   ┌─▶ take what has come off the port ─▶ requests, by the cost of each host's ─▶ a step of the slow path ─┐
//!   └────────────────── answers, processes in turn ◀── calls of offloads ◀────────────────────────────────────┘
//! ```
//!
//! A turn is short, however much waits: what has just come waits for about as long as the board takes for sixteen requests.

use super::costs::{STEP, zeroing};
use super::port::Peer;
use super::server::{BoardError, CALLS, Host};
use p4rack_fabric::Machine as _;
use p4rack_fabric::clio::board::Space;
use p4rack_fabric::clio::lib::{Client, Config, Credentials, Operation, Outcome, Patience};
use p4rack_netdev::clock;
use p4rack_netdev::pages::prefetch;
use p4rack_offload::{Kv, Progress};
use p4rack_wire::clio::Rights;
use p4rack_wire::clio::packet::DATA_BYTES_MAX;
use p4rack_wire::{MacAddr, Nanos};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Requests that a turn begins, and answers that leave in it.
const BATCH: usize = 16;
/// Batches that are taken off the port in a row.
const DRAINED: usize = 16;
/// Time of a turn in which calls begin. A packet waits this long, and for the call or slice that began last.
const CALLS_TIME: Nanos = Nanos::from_micros(25);
/// Bytes of a store for each of its buckets.
const BUCKET_BYTES: u64 = 128;
/// Number of the server as a client. Those of others are larger.
const OWN_NUMBER: u32 = 0;
/// Where answers to the server itself go: no packet comes from port 0.
const OWN: Peer = Peer { addr: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0), mac: MacAddr([0; 6]) };

impl Host {
    /// When it has something to do if nothing comes.
    pub(super) fn next_call(&self) -> Option<Nanos> {
        let paused = self.board.has_paused_calls().then(|| self.long_calls.due());
        self.board.next_link().into_iter().chain(self.next_step()).chain(paused).min()
    }

    /// When due work of the slow path may go on.
    fn next_step(&self) -> Option<Nanos> {
        self.board.next_timeout().map(|at| at.max(self.slow_path.due()))
    }

    /// Takes what has come off the port, and begins a turn's work of it, of each host in its turn. Returns whether there may be more.
    pub(super) fn receive(&mut self) -> io::Result<bool> {
        let Host { port, arrivals, board, loss, random, lost, long_calls, slow_path, .. } = self;
        let mut more = true;
        for _ in 0..DRAINED {
            more = port.receive(|from, packet| match loss.strikes(random) {
                true => lost[0] += 1,
                false => {
                    board.ahead(packet).into_iter().flatten().for_each(prefetch);
                    arrivals.add(from, packet);
                }
            })?;
            if !more {
                break;
            }
        }
        if let Some(hosts) = arrivals.refused() {
            port.refuse(&hosts);
        }
        let now = clock::now();
        for _ in 0..BATCH {
            let next = arrivals.next(|asks| asks.may_come(board.answers_of(asks.pid)));
            let Some((from, packet)) = next else { break };
            let before = board.taken_bytes();
            board.handle_link((from, packet), now, now);
            let taken = board.taken_bytes() - before;
            if taken > 0 {
                arrivals.charge(&from, zeroing(taken));
            }
            long_calls.packets(now);
            slow_path.packets(now);
        }
        Ok(more || !arrivals.is_empty())
    }

    /// Runs due work of the slow path.
    pub(super) fn go_on(&mut self) {
        let now = clock::now();
        if self.next_step().is_some_and(|due| due <= now) {
            if let Some(peer) = self.board.next_caller() {
                self.arrivals.charge(&peer, STEP);
            }
            self.board.handle_timeout(now);
            self.slow_path.ran(now, clock::now());
        }
    }

    /// Executes calls of offloads, for as long as a turn has time for them.
    pub(super) fn execute(&mut self) {
        let mut now = clock::now();
        let until = now + CALLS_TIME;
        while now < until {
            let began = now;
            let progress = self.offloads.begin(&mut self.board, now);
            now = clock::now();
            match progress {
                Progress::Idle => break,
                Progress::Ended | Progress::Blocked => {}
                // One slice a turn: packets and short calls wait no longer.
                Progress::Paused => return self.long_calls.ran(began, now),
            }
        }
        if self.long_calls.due() > now {
            return;
        }
        // A call that waits for another one gives its turn away.
        for _ in 0..CALLS {
            match self.offloads.resume(&mut self.board, now) {
                Progress::Idle => return,
                Progress::Blocked => {}
                Progress::Ended | Progress::Paused => return self.long_calls.ran(now, clock::now()),
            }
        }
    }

    /// Sends some of what waits. Answers to the server itself go to `own`.
    pub(super) fn send(&mut self, mut own: Option<&mut Client>) {
        let now = clock::now();
        for _ in 0..BATCH {
            let Some(sent) = self.board.poll_link(now, &mut self.out) else { break };
            match &mut own {
                Some(client) if sent.to == OWN => client.handle_link((0, &self.out), now, now),
                _ if self.loss.strikes(&mut self.random) => self.lost[1] += 1,
                _ => self.unsent += u64::from(!self.port.send(sent.to, &self.out)),
            }
        }
        self.port.flush();
    }

    /// Allocates a range, as a client would. Others are served in the time that this takes.
    pub(super) fn allocate(&mut self, credentials: Credentials, bytes: u64) -> Result<u64, String> {
        let config = Config::on_host(Patience::default(), self.board.config().retry_keep, DATA_BYTES_MAX);
        let mut client = Client::new(config, &[credentials], OWN_NUMBER);
        let alloc = Operation::Alloc { bytes, page_size: self.page, rights: Rights::ALL };
        client.submit(0, 0, 0, alloc, clock::now()).map_err(|refused| refused.to_string())?;
        let mut request = Vec::new();
        // It ends: without an answer, the client gives up.
        loop {
            let now = clock::now();
            client.handle_timeout(now);
            while client.poll_link(now, &mut request).is_some() {
                self.board.handle_link((OWN, &request), now, now);
            }
            self.receive().map_err(|error| error.to_string())?;
            self.go_on();
            self.send(Some(&mut client));
            if let Some((_, outcome)) = client.poll_completion() {
                return match outcome {
                    Outcome::Address(address) => Ok(address),
                    Outcome::Refused(status) => Err(status.name().replace('_', " ")),
                    _ => Err("no answer".to_owned()),
                };
            }
        }
    }

    /// Adds the key-value store, whose frames are kept for it.
    pub(super) fn add_store(&mut self, bytes: u64, seed: u64) -> Result<(), BoardError> {
        let (credentials, range) = self.create(bytes, true)?;
        let Credentials { pid, epoch, .. } = credentials;
        let (space, buckets) = (Space { pid, epoch }, bytes / BUCKET_BYTES);
        let store = Kv::new(space, range.address, bytes, buckets, seed);
        let number = self.offloads.add(space, Box::new(store));
        self.names.add_own("kv", number, credentials, bytes);
        Ok(())
    }
}
