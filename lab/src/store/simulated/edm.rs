//! Slots in the memory of a node of EDM.

use super::conductor::{GivenUp, Line, Network, together};
use super::{Done, Job, SimulatedRack, Task, config, perform};
use crate::edm::REGION_KEY;
use crate::error::LabError;
use crate::network::HOST_INTERFACE;
use crate::store::bulk;
use crate::store::run::region_bytes;
use crate::store::slots::Slots;
use crate::ycsb;
use p4rack_codegen::Rack;
use p4rack_codegen::rack::StoreParameters;
use p4rack_fabric::edm::host::compute::Request;
use p4rack_fabric::edm::host::memory::{Region, Rights};
use p4rack_hosts::memory::{Error, result};
use p4rack_hosts::remote::{Abilities, EdmAnswer, Operation, Outcome, Remote, RemoteError, Status};
use p4rack_sim::{MemoryHost, MemoryRack, SwitchCounts};
use p4rack_wire::Nanos;

/// Operations of a client under way at most.
const UNDER_WAY_MAX: usize = 256;

/// A client's request, and its address.
pub(super) struct ClientRequest {
    address: u64,
    request: Request,
}

/// How it ends.
type Ended = Result<Vec<u8>, Error>;

/// A client's end of remote memory.
struct Virtual {
    abilities: Abilities,
    /// Operations under way by tag, with their expected answers.
    under_way: Vec<(u64, EdmAnswer)>,
    line: Line<ClientRequest, Ended>,
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
        let (address, request, answer) = EdmAnswer::ask(operation)?;
        self.under_way.push((tag, answer));
        self.line.ask(tag, ClientRequest { address, request });
        Ok(())
    }

    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        if self.under_way.is_empty() && until <= self.line.now() {
            return Ok(());
        }
        let done = self.line.poll(until).map_err(|error: GivenUp| RemoteError::Broken(error.to_string()))?;
        for (tag, result) in done {
            let Some(nth) = self.under_way.iter().position(|(open, _)| *open == tag) else { continue };
            let (_, answer) = self.under_way.swap_remove(nth);
            ended(tag, answer.outcome(&result));
        }
        Ok(())
    }

    fn now(&self) -> Nanos {
        self.line.now()
    }
}

/// The rack with its clients.
pub(super) struct Edm<'a> {
    rack: MemoryRack,
    abilities: Abilities,
    server: u16,
    store: &'a StoreParameters,
    /// Hosts of the clients that run.
    hosts: Vec<usize>,
    /// Their operations under way: host, number there, client, tag.
    asked: Vec<(usize, u64, usize, u64)>,
}

impl<'a> Edm<'a> {
    /// The rack, whose server has memory for all records. Errors: it runs no EDM.
    pub fn new(rack: &Rack, server: &str, store: &'a StoreParameters) -> Result<Edm<'a>, LabError> {
        let server = p4rack_memory::memory_node(rack, server)?;
        let edm = p4rack_memory::edm(rack)?;
        let (message, chunk) = (edm.message_bytes_max, edm.chunk_bytes);
        let abilities = Abilities::of_edm(region_bytes(store), message, chunk, UNDER_WAY_MAX);
        let bytes = region_bytes(store) as usize;
        let mut hosts = Vec::new();
        for (nth, host) in rack.hosts.iter().enumerate() {
            let compute = p4rack_memory::client(rack, host, HOST_INTERFACE)?.node;
            let memory = match nth == usize::from(server) {
                true => {
                    let rights = Rights { read: true, write: true };
                    let region = Region { start: 0, bytes: vec![0; bytes], key: REGION_KEY, rights };
                    Some((p4rack_memory::server(rack, host, HOST_INTERFACE)?.1, region))
                }
                false => None,
            };
            hosts.push(MemoryHost { compute, memory });
        }
        let rack = MemoryRack::new(rack, hosts).map_err(LabError::Unfit)?;
        Ok(Edm { rack, abilities, server, store, hosts: Vec::new(), asked: Vec::new() })
    }
}

impl Network for Edm<'_> {
    type Request = ClientRequest;
    type Ended = Ended;

    fn now(&self) -> Nanos {
        self.rack.now()
    }

    fn ask(
        &mut self,
        client: usize,
        tag: u64,
        ClientRequest { address, request }: ClientRequest,
    ) -> Result<(), Ended> {
        let host = self.hosts[client];
        let number = self.rack.ask(host, self.server, REGION_KEY, address, request);
        self.asked.push((host, number.map_err(|refused| Err(refused.into()))?, client, tag));
        Ok(())
    }

    fn next(&mut self, until: Nanos) -> Option<(usize, u64, Ended)> {
        loop {
            let (host, number, outcome) = self.rack.next(until)?;
            // Others are of clients that have ended.
            let found = self.asked.iter().position(|asked| (asked.0, asked.1) == (host, number));
            if let Some((_, _, client, tag)) = found.map(|nth| self.asked.swap_remove(nth)) {
                return Some((client, tag, result(outcome)));
            }
        }
    }
}

impl SimulatedRack for Edm<'_> {
    fn now(&self) -> Nanos {
        self.rack.now()
    }

    fn start_counting(&mut self) {
        self.rack.start_counting();
    }

    fn counts(&self) -> Option<SwitchCounts> {
        self.rack.counts(self.server.into())
    }

    fn perform(&mut self, tasks: &[Task]) -> Result<Vec<Done>, LabError> {
        self.hosts = tasks.iter().map(|task| task.host).collect();
        self.asked.clear();
        let (store, abilities) = (self.store, self.abilities.clone());
        together(self, tasks.len(), |nth, line| {
            let task = &tasks[nth];
            let memory = Virtual { abilities: abilities.clone(), under_way: Vec::new(), line };
            let (value_bytes, own) = (store.value_bytes as usize, task.host as u16 + 1);
            let slots = Slots::new(memory, value_bytes, own, store.records);
            let mut slots = slots.map_err(ycsb::Error::gone)?;
            match task.job {
                Job::Bulk { start, load, span } => {
                    Ok(Done::Bulk(bulk::over(slots.memory(), start, load, span)?))
                }
                job => perform(&mut slots, &config(store, task.seed), job),
            }
        })
    }
}
