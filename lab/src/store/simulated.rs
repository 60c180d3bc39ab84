//! The store's workload in virtual time: the same clients use memory on the same rack, with its generated program and the machines
//! of its hosts. Processors and drivers take no time.
//!
//! Each client is a thread that waits after every request. One thread runs at a time, in the order of virtual time, so a run is
//! repeatable.

use super::bulk::{self, BulkReport, Load};
use super::figures::{bulk_bps, together, values_bps, whole_ns};
use super::run::{bulk_start, check, region_bytes};
use super::slot::slot_bytes;
use super::slots::Slots;
use crate::edm::REGION_KEY;
use crate::error::LabError;
use crate::network::HOST_INTERFACE;
use crate::results::SchemeResult;
use crate::workload::{Span, seed};
use crate::ycsb::{self, Client, ClientConfig, ClientReport, Contents};
use p4rack_codegen::Rack;
use p4rack_codegen::rack::{Store, Workload};
use p4rack_fabric::edm::host::compute::Request;
use p4rack_fabric::edm::host::memory::{Region, Rights};
use p4rack_hosts::memory::{Error, result};
use p4rack_hosts::remote::{Abilities, Operation, Order, Outcome, Remote, RemoteError, Status};
use p4rack_hosts::remote::{Opcode, WordOrder, Written};
use p4rack_sim::{MemoryHost, MemoryRack};
use p4rack_wire::Nanos;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Operations of a client under way at most.
const UNDER_WAY_MAX: usize = 256;
/// Time from writing the records to the clients' operations.
const LEAD_NS: u64 = 1_000_000;

/// What a client asks for, and until when it waits for an answer.
struct Wish {
    asks: Vec<Asked>,
    until_ns: u64,
}

/// Reply to it: the time, and results of operations, by their tags.
type Told = (u64, Vec<(u64, Result<Vec<u8>, Error>)>);

/// What an operation ends with.
#[derive(Clone, Copy)]
enum Kind {
    Read,
    Write,
    Modify,
}

/// A client's end of remote memory.
struct Virtual {
    abilities: Abilities,
    now_ns: u64,
    /// Operations that are submitted with the next poll.
    asks: Vec<Asked>,
    /// Those under way, by tag.
    under_way: Vec<(u64, Kind)>,
    wishes: Sender<Wish>,
    told: Receiver<Told>,
}

struct Asked {
    tag: u64,
    address: u64,
    request: Request,
}

impl Remote for Virtual {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
        self.abilities.check(&operation)?;
        if self.under_way.len() >= self.abilities.under_way_max {
            return Err(Status::Full);
        }
        let (address, request, kind) = match operation {
            Operation::Read { at, bytes } => (at, Request::Read(bytes), Kind::Read),
            Operation::Write { at, bytes } => (at, Request::Write(bytes.to_vec()), Kind::Write),
            Operation::Gather { .. } | Operation::Scatter { .. } => return Err(Status::BadOperation),
            Operation::Modify { at, opcode, operands } => {
                (at, Request::Modify(opcode, operands), Kind::Modify)
            }
        };
        self.under_way.push((tag, kind));
        self.asks.push(Asked { tag, address, request });
        Ok(())
    }

    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        if self.under_way.is_empty() && until.0 <= self.now_ns {
            return Ok(());
        }
        let given_up = || RemoteError::Broken("the run in virtual time was given up".to_owned());
        let wish = Wish { asks: std::mem::take(&mut self.asks), until_ns: until.0.max(self.now_ns) };
        self.wishes.send(wish).map_err(|_| given_up())?;
        let (now_ns, done) = self.told.recv().map_err(|_| given_up())?;
        self.now_ns = now_ns;
        for (tag, result) in done {
            let Some(nth) = self.under_way.iter().position(|(open, _)| *open == tag) else { continue };
            let (_, kind) = self.under_way.swap_remove(nth);
            let outcome = match (&result, kind) {
                (Ok(bytes), Kind::Read) => Outcome::Read(bytes),
                (Ok(_), Kind::Write) => Outcome::Written,
                (Ok(bytes), Kind::Modify) => match bytes.first_chunk() {
                    Some(word) => Outcome::Word(u64::from_be_bytes(*word)),
                    None => Outcome::Failed(Status::Unknown),
                },
                (Err(error), _) => Outcome::Failed(Status::from(error)),
            };
            ended(tag, outcome);
        }
        Ok(())
    }

    fn now(&self) -> Nanos {
        Nanos(self.now_ns)
    }
}

/// The simulator's end of a client: what the client waits for.
struct Waiting {
    host: usize,
    wishes: Receiver<Wish>,
    told: Sender<Told>,
    /// Its operations under way: their numbers, and tags.
    asked: Vec<(u64, u64)>,
    /// Until when it waits; `None` once it has ended.
    until_ns: Option<u64>,
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
        edge_bytes: u64::MAX,
        pieces_max: 0,
        under_way_max: UNDER_WAY_MAX,
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
    simulated.together(first, |_| from, |_, store, config| Client::new(store, config).load())?;
    simulated.rack.start_counting();
    let span = Span { start_ns: simulated.rack.now().0 + LEAD_NS, duration_ns: window_ns };
    // The bulk host's writers come after the clients.
    let clients = hosts.len();
    let mut all = hosts.clone();
    if let Some(bulk) = &store.bulk {
        all.extend([usize::from(p4rack_memory::node(rack, bulk)?); bulk::UNDER_WAY]);
    }
    let start = bulk_start(store);
    let load = Load { writes: 1, ..Load::writing(slot_bytes(store.value_bytes as usize)) };
    let done = simulated.together(
        &all,
        |nth| seed(from, nth + 1),
        |nth, store, config| match nth < clients {
            true => ycsb::run(store, config, span).map(|report| (Some(without_processor(report)), None)),
            false => Ok((None, Some(bulk::over(store.memory(), start, load, span)?))),
        },
    )?;
    let (reports, bulk): (Vec<Option<ClientReport>>, Vec<Option<BulkReport>>) = done.into_iter().unzip();
    let reports: Vec<ClientReport> = reports.into_iter().flatten().collect();
    let bulk: Vec<BulkReport> = bulk.into_iter().flatten().collect();
    let counts = simulated.rack.counts(server);
    let counts = counts.ok_or_else(|| LabError::Unfit("the server has no port at the switch".to_owned()))?;
    let contents: Vec<Contents> =
        simulated.together(first, |_| from, |_, store, config| Client::new(store, config).contents())?;
    let values_bps = values_bps(store, &reports, whole_ns(&reports));
    let contents = contents.first().copied();
    let contents = contents.ok_or_else(|| LabError::Unfit("the store has no clients".to_owned()))?;
    let mut figures = together(store, &reports, contents);
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

/// Clients in virtual time take no time of a processor.
fn without_processor(mut report: ClientReport) -> ClientReport {
    report.mixes.iter_mut().for_each(|mix| mix.thread_cpu_ns = None);
    report
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
        program: impl Fn(usize, &mut Slots<Virtual>, &ClientConfig) -> Result<T, ycsb::Error> + Sync,
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
                    depth: store.depth as usize,
                    seed: seed(nth),
                    tells: false,
                };
                let abilities = self.abilities.clone();
                let (asks, under_way) = (Vec::new(), Vec::new());
                let memory = Virtual { abilities, now_ns, asks, under_way, wishes: to_us, told: from_us };
                threads.push(scope.spawn(move || {
                    let slots = Slots::new(memory, value_bytes, host as u16 + 1, config.records);
                    program(nth, &mut slots.map_err(ycsb::Error::gone)?, &config)
                }));
                waiting.push(Waiting { host, wishes, told, asked: Vec::new(), until_ns: Some(now_ns) });
            }
            let conducted = self.conduct(&mut waiting);
            // Dropping the channels ends clients that still wait.
            drop(waiting);
            let ended = threads.into_iter().map(|thread| match thread.join() {
                Ok(done) => {
                    done.map_err(|error| LabError::measurement("using the store in virtual time", error))
                }
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
            let waits = |nth: usize| Some((clients[nth].until_ns?, nth));
            let Some((until_ns, first)) = (0..clients.len()).filter_map(waits).min() else { return Ok(()) };
            let (client, done) = match self.rack.next(Nanos(until_ns)) {
                Some((host, number, outcome)) => {
                    let place = |client: &Waiting| {
                        let asked = client.asked.iter().position(|(asked, _)| *asked == number);
                        asked.filter(|_| client.host == host && client.until_ns.is_some())
                    };
                    let Some((nth, place)) =
                        clients.iter().enumerate().find_map(|(nth, client)| Some((nth, place(client)?)))
                    else {
                        continue;
                    };
                    let (_, tag) = clients[nth].asked.swap_remove(place);
                    (&mut clients[nth], vec![(tag, result(outcome))])
                }
                None if until_ns == u64::MAX => {
                    let why = "clients wait, and nothing happens any more in virtual time";
                    return Err(LabError::Unfit(why.to_owned()));
                }
                None => (&mut clients[first], Vec::new()),
            };
            self.tell(client, done);
            self.listen(client);
        }
    }

    fn tell(&self, client: &Waiting, done: Vec<(u64, Result<Vec<u8>, Error>)>) {
        // The next receive reveals that a client has ended.
        let _ = client.told.send((self.rack.now().0, done));
    }

    /// Blocks until a client waits for an event.
    fn listen(&mut self, client: &mut Waiting) {
        client.until_ns = loop {
            let Ok(wish) = client.wishes.recv() else { break None };
            let mut refused = Vec::new();
            for Asked { tag, address, request } in wish.asks {
                match self.rack.ask(client.host, self.server, REGION_KEY, address, request) {
                    Ok(number) => client.asked.push((number, tag)),
                    Err(why) => refused.push((tag, Err(why.into()))),
                }
            }
            if refused.is_empty() {
                break Some(wish.until_ns);
            }
            self.tell(client, refused);
        };
    }
}

#[cfg(test)]
#[path = "simulated_tests.rs"]
mod tests;
