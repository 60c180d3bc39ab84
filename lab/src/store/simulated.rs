//! The store's workload in virtual time: the same clients use memory on the same rack, with its generated program and the machines
//! of its hosts. Processors and drivers take no time.
//!
//! Each client is a thread that waits after every request. One thread runs at a time, in the order of virtual time, so a run is
//! repeatable.

use super::bulk::{self, BulkReport};
use super::client::{self, ClientConfig, ClientReport, Contents};
use super::figures::{bulk_bps, together, values_bps};
use super::run::{bulk_place, check, region_bytes};
use super::slots::Slots;
use crate::edm::REGION_KEY;
use crate::error::LabError;
use crate::network::HOST_INTERFACE;
use crate::results::SchemeResult;
use crate::workload::{Span, seed};
use p4rack_codegen::Rack;
use p4rack_codegen::rack::{Store, Workload};
use p4rack_fabric::edm::host::compute::Request;
use p4rack_fabric::edm::host::memory::{Region, Rights};
use p4rack_hosts::memory::{Error, result};
use p4rack_hosts::remote::{Abilities, Operation, Order, Outcome, Remote, RemoteError, Status};
use p4rack_hosts::remote::{Opcode, WordOrder, Written};
use p4rack_sim::{MemoryHost, MemoryRack};
use p4rack_wire::Nanos;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Time from writing the records to the clients' operations.
const LEAD_NS: u64 = 1_000_000;

/// Event that a client waits for.
enum Wish {
    Done(u64, Request),
    Time(u64),
}

/// Reply to it: the time, and the results of its operations.
type Told = (u64, Option<Result<Vec<u8>, Error>>);

/// A client's end: remote memory with one operation in flight.
struct Virtual {
    abilities: Abilities,
    now_ns: u64,
    asked: Option<Asked>,
    wishes: Sender<Wish>,
    told: Receiver<Told>,
}

/// An operation that is submitted with the next poll.
struct Asked {
    tag: u64,
    address: u64,
    request: Request,
}

impl Virtual {
    fn wait(&mut self, wish: Wish) -> Result<Option<Result<Vec<u8>, Error>>, RemoteError> {
        let given_up = || RemoteError::Broken("the run in virtual time was given up".to_owned());
        self.wishes.send(wish).map_err(|_| given_up())?;
        let (now_ns, done) = self.told.recv().map_err(|_| given_up())?;
        self.now_ns = now_ns;
        Ok(done)
    }
}

impl Remote for Virtual {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
        self.abilities.check(&operation)?;
        if self.asked.is_some() {
            return Err(Status::Full);
        }
        let (address, request) = match operation {
            Operation::Read { at, bytes } => (at, Request::Read(bytes)),
            Operation::Write { at, bytes } => (at, Request::Write(bytes.to_vec())),
            Operation::Modify { at, opcode, operands } => (at, Request::Modify(opcode, operands)),
        };
        self.asked = Some(Asked { tag, address, request });
        Ok(())
    }

    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        let Some(Asked { tag, address, request }) = self.asked.take() else {
            return if until.0 > self.now_ns { self.wait(Wish::Time(until.0)).map(drop) } else { Ok(()) };
        };
        let (is_read, is_write) = (matches!(request, Request::Read(_)), matches!(request, Request::Write(_)));
        match self.wait(Wish::Done(address, request))? {
            Some(Ok(bytes)) if is_read => ended(tag, Outcome::Read(&bytes)),
            Some(Ok(_)) if is_write => ended(tag, Outcome::Written),
            Some(Ok(bytes)) => ended(
                tag,
                match bytes.first_chunk() {
                    Some(word) => Outcome::Word(u64::from_be_bytes(*word)),
                    None => Outcome::Failed(Status::Unknown),
                },
            ),
            Some(Err(error)) => ended(tag, Outcome::Failed(Status::from(&error))),
            None => ended(tag, Outcome::Failed(Status::Unknown)),
        }
        Ok(())
    }

    fn now(&self) -> Nanos {
        Nanos(self.now_ns)
    }
}

/// The simulator's end of a client: the event that the client waits for.
struct Waiting {
    host: usize,
    wishes: Receiver<Wish>,
    told: Sender<Told>,
    state: State,
}

enum State {
    Runs,
    /// The end of the operation with this number.
    Asks(u64),
    Sleeps(u64),
    Ended,
}

/// Runs the workload on the rack, which runs a scheme with EDM.
pub fn run(
    rack: &Rack,
    workload: &Workload,
    store: &Store,
    from: u64,
    window_ns: u64,
) -> Result<SchemeResult, LabError> {
    let (server, clients) = workload.ends();
    let way = rack.scheme().way();
    let way = way.ok_or_else(|| LabError::Unfit(format!("{} has no EDM", rack.scheme())))?;
    check(rack, way, store, server)?;
    let server = usize::from(p4rack_memory::memory_node(rack, server)?);
    let edm = p4rack_memory::edm(rack)?;
    let abilities = Abilities {
        region_bytes: region_bytes(store),
        read_bytes_max: edm.message_bytes_max,
        write_bytes_max: edm.message_bytes_max,
        whole_bytes: edm.chunk_bytes,
        under_way_max: 1,
        atomics: &Opcode::ALL,
        words: WordOrder::BigEndian,
        writes: Written::Sent,
        order: Order::SameBytes,
    };
    let built = built(rack, server, store)?;
    let mut simulated = Simulated { rack: built, abilities, server: server as u16, store };
    let hosts: Vec<usize> = clients
        .iter()
        .map(|name| p4rack_memory::node(rack, name).map(usize::from))
        .collect::<Result<_, _>>()?;
    let first = &hosts[..hosts.len().min(1)];
    simulated.together(first, |_| from, |_, store, config| client::load(store, config))?;
    simulated.rack.start_counting();
    let span = Span { start_ns: simulated.rack.now().0 + LEAD_NS, duration_ns: window_ns };
    // The bulk host's writers come after the clients.
    let clients = hosts.len();
    let mut all = hosts.clone();
    if let Some(bulk) = &store.bulk {
        all.extend([usize::from(p4rack_memory::node(rack, bulk)?); bulk::UNDER_WAY]);
    }
    let place = bulk_place(store);
    let done = simulated.together(
        &all,
        |nth| seed(from, nth + 1),
        |nth, store, config| match nth < clients {
            true => client::run(store, config, span).map(|report| (Some(report), None)),
            false => bulk::over(store.memory().remote(), place, span, 1).map(|report| (None, Some(report))),
        },
    )?;
    let (reports, bulk): (Vec<Option<ClientReport>>, Vec<Option<BulkReport>>) = done.into_iter().unzip();
    let reports: Vec<ClientReport> = reports.into_iter().flatten().collect();
    let bulk: Vec<BulkReport> = bulk.into_iter().flatten().collect();
    let counts = simulated.rack.counts(server);
    let counts = counts.ok_or_else(|| LabError::Unfit("the server has no port at the switch".to_owned()))?;
    let contents: Vec<Contents> =
        simulated.together(first, |_| from, |_, store, config| client::contents(store, config.records))?;
    let values_bps = values_bps(store, &reports, window_ns);
    let spans_ns = vec![window_ns / store.mixes.len().max(1) as u64; store.mixes.len()];
    let contents = contents.first().copied();
    let contents = contents.ok_or_else(|| LabError::Unfit("the store has no clients".to_owned()))?;
    let mut figures = together(store, &reports, contents, &spans_ns);
    figures.bulk_bps = store.bulk.as_ref().map(|_| bulk_bps(&bulk, window_ns));
    Ok(SchemeResult {
        name: rack.scheme().name(),
        offered_bps: values_bps,
        goodput_bps: values_bps,
        goodput_ceiling_bps: rack.goodput_ceiling_bps(&rack.hosts[server]),
        fabric_drops: counts.drops.values().sum(),
        drops: counts.drops,
        queue_max_bytes: counts.queue_max_bytes,
        queue_p999_bytes: counts.queue_p999_bytes,
        store: Some(figures),
        ..SchemeResult::default()
    })
}

/// The rack, whose server has memory for all records.
fn built(rack: &Rack, server: usize, store: &Store) -> Result<MemoryRack, LabError> {
    let bytes = region_bytes(store) as usize;
    let mut hosts = Vec::new();
    for (nth, host) in rack.hosts.iter().enumerate() {
        let compute = p4rack_memory::client(rack, host, HOST_INTERFACE)?.node;
        let memory = match nth == server {
            true => {
                let rights = Rights { read: true, write: true };
                let region = Region { start: 0, bytes: vec![0; bytes], key: REGION_KEY, rights };
                Some((p4rack_memory::server(rack, host, HOST_INTERFACE)?.1, region))
            }
            false => None,
        };
        hosts.push(MemoryHost { compute, memory });
    }
    MemoryRack::new(rack, hosts).map_err(LabError::Unfit)
}

struct Simulated<'a> {
    rack: MemoryRack,
    abilities: Abilities,
    server: u16,
    store: &'a Store,
}

impl Simulated<'_> {
    /// Runs a client on each of these hosts, to its end.
    fn together<T: Send>(
        &mut self,
        hosts: &[usize],
        seed: impl Fn(usize) -> u64,
        program: impl Fn(usize, &mut Slots<Virtual>, &ClientConfig) -> io::Result<T> + Sync,
    ) -> Result<Vec<T>, LabError> {
        let now_ns = self.rack.now().0;
        let (value_bytes, store, program) = (self.store.value_bytes as usize, self.store, &program);
        std::thread::scope(|scope| {
            let mut waiting = Vec::new();
            let mut threads = Vec::new();
            for (nth, host) in hosts.iter().copied().enumerate() {
                let (to_us, wishes) = channel();
                let (told, from_us) = channel();
                let config = ClientConfig {
                    mixes: store.mixes.clone(),
                    records: store.records,
                    value_bytes,
                    seed: seed(nth),
                    tells: false,
                };
                let abilities = self.abilities.clone();
                let memory = Virtual { abilities, now_ns, asked: None, wishes: to_us, told: from_us };
                threads.push(scope.spawn(move || {
                    let mut store = Slots::new(memory, value_bytes, host as u16 + 1, config.records);
                    program(nth, &mut store, &config)
                }));
                waiting.push(Waiting { host, wishes, told, state: State::Runs });
            }
            let conducted = self.conduct(&mut waiting);
            // Dropping the channels ends clients that still wait.
            drop(waiting);
            let ended = threads.into_iter().map(|thread| match thread.join() {
                Ok(done) => done.map_err(LabError::system("using the store in virtual time")),
                Err(_) => Err(LabError::Unfit("a client of the store in virtual time panicked".to_owned())),
            });
            let ended: Result<Vec<T>, LabError> = ended.collect();
            conducted.and(ended)
        })
    }

    /// Resumes clients, one at a time, until all have ended.
    fn conduct(&mut self, clients: &mut [Waiting]) -> Result<(), LabError> {
        for client in clients.iter_mut() {
            self.listen(client);
        }
        loop {
            if clients.iter().all(|client| matches!(client.state, State::Ended)) {
                return Ok(());
            }
            let sleeps = |client: &Waiting| match client.state {
                State::Sleeps(until_ns) => Some(until_ns),
                _ => None,
            };
            let first = (0..clients.len()).filter_map(|nth| Some((sleeps(&clients[nth])?, nth))).min();
            let until = first.map_or(Nanos::MAX, |(until_ns, _)| Nanos(until_ns));
            let (client, done) = match (self.rack.next(until), first) {
                (Some((host, number, outcome)), _) => {
                    let asks = |client: &&mut Waiting| {
                        client.host == host && matches!(client.state, State::Asks(asked) if asked == number)
                    };
                    let Some(client) = clients.iter_mut().find(asks) else { continue };
                    (client, Some(result(outcome)))
                }
                (None, Some((_, nth))) => (&mut clients[nth], None),
                (None, None) => {
                    let why = "clients wait, and nothing happens any more in virtual time";
                    return Err(LabError::Unfit(why.to_owned()));
                }
            };
            self.tell(client, done);
            self.listen(client);
        }
    }

    fn tell(&self, client: &Waiting, done: Option<Result<Vec<u8>, Error>>) {
        // The next receive reveals that a client has ended.
        let _ = client.told.send((self.rack.now().0, done));
    }

    /// Blocks until a client waits for an event.
    fn listen(&mut self, client: &mut Waiting) {
        client.state = loop {
            match client.wishes.recv() {
                Err(_) => break State::Ended,
                Ok(Wish::Time(until_ns)) => break State::Sleeps(until_ns),
                Ok(Wish::Done(address, request)) => {
                    match self.rack.ask(client.host, self.server, REGION_KEY, address, request) {
                        Ok(number) => break State::Asks(number),
                        Err(refused) => self.tell(client, Some(Err(refused.into()))),
                    }
                }
            }
        };
    }
}

#[cfg(test)]
#[path = "simulated_tests.rs"]
mod tests;
