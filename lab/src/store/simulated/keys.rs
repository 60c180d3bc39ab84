//! Keys in the key-value offload of a board of Clio.

use super::conductor::{Line, Network, together};
use super::{Done, SimulatedRack, Task, config, perform};
use crate::error::LabError;
use crate::store::keys::{Answer, Ask, KeyStore, Keys, answer_of, request_of};
use crate::ycsb::Error;
use p4rack_codegen::Rack;
use p4rack_codegen::rack::StoreParameters;
use p4rack_codegen::scheme::clio::Clio;
use p4rack_fabric::clio::lib;
use p4rack_hosts::clio::server::with_offloads;
use p4rack_hosts::clio::{KvOutcome, results_bytes_max};
use p4rack_sim::{StoreBoard, StoreOutcome, StoreRack, SwitchCounts};
use p4rack_wire::Nanos;
use p4rack_wire::clio::Status;

/// A call of the offload.
pub(super) struct Call {
    function: u8,
    arguments: Vec<u8>,
}

/// A client's end of the offload.
struct Virtual {
    line: Line<Call, StoreOutcome>,
    /// Functions of the calls under way, by tag.
    under_way: Vec<(u64, u8)>,
}

impl Keys for Virtual {
    fn ask(&mut self, tag: u64, key: &[u8], ask: Ask<'_>) -> Result<(), Error> {
        let mut arguments = Vec::new();
        let function = request_of(key, ask).arguments(&mut arguments).map_err(Error::gone)?;
        self.under_way.push((tag, function));
        self.line.ask(tag, Call { function, arguments });
        Ok(())
    }

    fn poll(&mut self, until: Nanos, came: &mut dyn FnMut(u64, Answer<'_>)) -> Result<(), Error> {
        for (tag, outcome) in self.line.poll(until).map_err(Error::gone)? {
            let Some(nth) = self.under_way.iter().position(|(open, _)| *open == tag) else { continue };
            let (_, function) = self.under_way.swap_remove(nth);
            let outcome = match &outcome {
                StoreOutcome::Done(results) => lib::Outcome::Results(results),
                StoreOutcome::Refused(status) => lib::Outcome::Refused(*status),
                StoreOutcome::Unknown => lib::Outcome::Unknown,
            };
            came(tag, answer_of(KvOutcome::of(function, outcome)));
        }
        Ok(())
    }

    fn now(&self) -> Nanos {
        self.line.now()
    }
}

/// The rack with its clients.
pub(super) struct Board<'a> {
    rack: StoreRack,
    client: lib::Config,
    server: usize,
    store: &'a StoreParameters,
    /// Numbers of the clients that run.
    callers: Vec<usize>,
}

impl<'a> Board<'a> {
    /// The rack, whose server has a board. Errors: [`lacks`] has a reason, or the board refuses its parameters.
    pub fn new(
        rack: &Rack,
        server: &str,
        store: &'a StoreParameters,
        seed: u64,
    ) -> Result<Board<'a>, LabError> {
        if let Some(why) = lacks(rack, server, store) {
            return Err(LabError::Unfit(format!("not run in virtual time: {why}")));
        }
        let clio = rack.protocol::<Clio>();
        let clio = clio.ok_or_else(|| LabError::Unfit(format!("{} has no Clio", rack.scheme())))?;
        let host = usize::from(p4rack_memory::node(rack, server)?);
        let config = with_offloads(clio.board(clio.memory_bytes), clio.store_bytes);
        let patience = p4rack_memory::patience(rack);
        let client = lib::Config::on_host(patience, config.retry_keep, config.data_bytes_max);
        let spec = StoreBoard { host, udp_port: clio.udp_port, config, store_bytes: clio.store_bytes };
        let rack = StoreRack::new(rack, spec, seed).map_err(LabError::Unfit)?;
        Ok(Board { rack, client, server: host, store, callers: Vec::new() })
    }
}

/// Why a store in a board's offload is not run in virtual time; `None`: it is.
pub(super) fn lacks(rack: &Rack, server: &str, store: &StoreParameters) -> Option<String> {
    let Some(clio) = rack.protocol::<Clio>() else { return Some(format!("{server} has no board")) };
    if store.bulk.is_some() {
        return Some("no bulk traffic is, beside a board's store; remove workload.bulk".to_owned());
    }
    let config = with_offloads(clio.board(clio.memory_bytes), clio.store_bytes);
    if config.bytes() > StoreRack::BYTES_MAX {
        return Some(format!(
            "a board has at most {} bytes there, and this one {}; lower clio.memory or clio.store",
            StoreRack::BYTES_MAX,
            config.bytes()
        ));
    }
    let (value, mut arguments) = (vec![0; store.value_bytes as usize], Vec::new());
    let longest = request_of(&[0; 4], Ask::UpdateVersion(0, &value));
    if let Err(refused) = longest.arguments(&mut arguments) {
        return Some(refused.to_string());
    }
    let longest = config.data_bytes_max as usize;
    let fits = (longest + value.len()).saturating_sub(arguments.len()) / 8 * 8;
    (arguments.len() > longest).then(|| {
        format!(
            "values of {} bytes don't fit a packet, and clients there write no others; set workload.value_bytes to {fits} at most",
            value.len()
        )
    })
}

impl Network for Board<'_> {
    type Request = Call;
    type Ended = StoreOutcome;

    fn now(&self) -> Nanos {
        self.rack.now()
    }

    fn ask(
        &mut self,
        client: usize,
        tag: u64,
        Call { function, arguments }: Call,
    ) -> Result<(), StoreOutcome> {
        let results_bytes_max = results_bytes_max(function, self.store.value_bytes);
        let called = self.rack.call(self.callers[client], tag, function, &arguments, results_bytes_max);
        // The library has no room; a client keeps fewer operations under way.
        called.map_err(|_| StoreOutcome::Refused(Status::Busy))
    }

    fn next(&mut self, until: Nanos) -> Option<(usize, u64, StoreOutcome)> {
        loop {
            let (caller, tag, outcome) = self.rack.next(until)?;
            // Others are of clients that have ended.
            if let Some(client) = self.callers.iter().position(|own| *own == caller) {
                return Some((client, tag, outcome));
            }
        }
    }
}

impl SimulatedRack for Board<'_> {
    fn now(&self) -> Nanos {
        self.rack.now()
    }

    fn start_counting(&mut self) {
        self.rack.start_counting();
    }

    fn counts(&self) -> Option<SwitchCounts> {
        self.rack.counts(self.server)
    }

    fn perform(&mut self, tasks: &[Task]) -> Result<Vec<Done>, LabError> {
        self.callers.clear();
        for task in tasks {
            let begun = self.rack.begin(task.host, self.client.clone());
            self.callers.push(begun.map_err(LabError::Unfit)?);
        }
        let store = self.store;
        together(self, tasks.len(), |nth, line| {
            let task = &tasks[nth];
            let keys = Virtual { line, under_way: Vec::new() };
            let (value_bytes, own) = (store.value_bytes as usize, task.host as u16 + 1);
            let mut records = KeyStore::new(keys, value_bytes, own, store.records);
            perform(&mut records, &config(store, task.seed), task.job)
        })
    }
}
