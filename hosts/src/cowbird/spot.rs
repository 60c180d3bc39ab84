//! The engine at an interface: one thread owns both and calls [`Spot::turn`].

use super::tenant::{Engine as Serves, Pairs, Tenant};
use crate::commands::{Commands, Handle};
use crate::outlet::Counts;
use crate::roce::{Loss, RocePort, RocePortError};
use p4rack_fabric::Machine as _;
use p4rack_fabric::cowbird::{self, Engine, SetError, State};
use p4rack_fabric::roce::{BadConfig, Completion, Config, Outcome, PairError, Party, Regions};
use p4rack_netdev::clock;
use p4rack_p4rt::transport::{self, Full, Share, Shares};
use p4rack_wire::{MacAddr, Nanos};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::Arc;
use tokio::sync::oneshot;
use tonic::Status;

/// Why sets are not served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddError {
    /// The caller has as many sets as it may.
    #[error(transparent)]
    Share(#[from] Full),
    /// A queue pair can't be added.
    #[error(transparent)]
    Pair(#[from] PairError),
    /// The engine refuses a set.
    #[error("set {0}: {1}")]
    Set(usize, SetError),
    /// Two sets share bytes.
    #[error("set {0} has bytes of another one that is served: each thread needs its own")]
    Overlap(usize),
}

/// A compute node that is served.
#[derive(Debug)]
struct Served {
    ip: Ipv4Addr,
    compute: u32,
    pool: u32,
    instances: Vec<u32>,
    /// Key, first address and end of each set.
    ranges: Vec<(u32, u64, u64)>,
    failed: Option<oneshot::Sender<String>>,
    _share: Share<transport::Tenant>,
}

/// Tenants among which half of the sets is divided.
const TENANTS: u64 = 8;

/// Counters of a spot, in addition to those of its engine, adapter and port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpotCounters {
    /// Compute nodes that were served, or are.
    pub tenants: u64,
    /// Queue pairs that failed.
    pub failed_pairs: u64,
    /// Requests of the engine that the adapter refused: its queue pair was lost.
    pub refused_requests: u64,
    /// Compute nodes refused because of one of their sets, or of their number.
    pub refused_sets: u64,
}

/// An engine at an interface.
#[derive(Debug)]
pub struct Spot {
    port: RocePort<Regions>,
    engine: Engine,
    /// Maximum sets per caller.
    sets: Arc<Shares<transport::Tenant>>,
    commands: Commands<Spot>,
    commands_number: usize,
    tenants: BTreeMap<u32, Served>,
    /// Number of the next tenant.
    next: u32,
    counters: SpotCounters,
}

impl Spot {
    /// Opens an interface of the calling thread's network namespace, as [`RocePort::open`] does.
    pub fn open(
        interface: &str,
        ip: Ipv4Addr,
        adapter: Config,
        engine: cowbird::Config,
        loss: Loss,
    ) -> Result<Spot, RocePortError> {
        for (field, wanted, most) in [
            ("requests_max", engine.requests_max, adapter.requests_max),
            ("message_bytes_max", engine.message_bytes_max as usize, adapter.message_bytes_max as usize),
            ("batch_bytes", engine.batch_bytes, adapter.message_bytes_max as usize),
        ] {
            if wanted > most {
                return Err(BadConfig { field, expected: "at most what the adapter permits" }.into());
            }
        }
        let mut port = RocePort::open(interface, ip, adapter, Regions::default(), loss)?;
        let commands = Commands::new()?;
        let commands_number = port.watch(&commands)?;
        Ok(Spot {
            port,
            sets: Shares::new("sets", engine.instances_max as u64, TENANTS),
            engine: Engine::new(engine),
            commands,
            commands_number,
            tenants: BTreeMap::new(),
            next: 0,
            counters: SpotCounters::default(),
        })
    }

    /// Sends no faster than the link carries, as [`RocePort::pace`] says.
    pub fn pace(&mut self, rate_bps: u64) {
        self.port.pace(rate_bps);
    }

    /// Access from other threads.
    pub fn handle(&self) -> Handle<Spot> {
        self.commands.handle()
    }

    /// MAC address of the interface.
    pub fn mac(&self) -> MacAddr {
        self.port.mac()
    }

    /// Has [`turn`](Self::turn) also wait for input on a descriptor. Returns its number for [`ready`](Self::ready).
    pub fn watch(&mut self, fd: impl AsFd) -> std::io::Result<usize> {
        self.port.watch(fd)
    }

    /// Whether there was input on a descriptor when the spot last waited.
    pub fn ready(&self, number: usize) -> bool {
        self.port.ready(number)
    }

    /// Compute nodes that are served now.
    pub fn tenants(&self) -> usize {
        self.tenants.len()
    }

    /// States of all tenants' sets.
    pub fn states(&self) -> Vec<State> {
        let instances = self.tenants.values().flat_map(|tenant| &tenant.instances);
        instances.filter_map(|number| self.engine.state(*number)).collect()
    }

    /// Sets that the engine has.
    pub fn instances(&self) -> usize {
        self.engine.instances()
    }

    /// Its counters.
    pub fn counters(&self) -> SpotCounters {
        self.counters
    }

    /// Counters of the engine.
    pub fn engine_counters(&self) -> &cowbird::Counters {
        self.engine.counters()
    }

    /// Its counters and those of its engine, adapter and port, drops and refusals included.
    pub fn counts(&mut self) -> Counts {
        let SpotCounters { tenants, failed_pairs, refused_requests, refused_sets } = self.counters;
        let own = [
            ("tenants", tenants),
            ("failed_pairs", failed_pairs),
            ("refused_requests", refused_requests),
            ("refused_sets", refused_sets),
        ];
        self.port.counts().of("engine", self.engine.counters().iter()).of("spot", own)
    }

    /// Begins to serve a compute node. Returns its number. Errors: why not; nothing of it is left then.
    pub fn add(&mut self, tenant: Tenant) -> Result<u32, AddError> {
        let Tenant { caller, compute, pool, sets, failed, .. } = tenant;
        let taken = self.sets.take(&caller.tenant(), sets.len() as u64);
        let taken = taken.inspect_err(|_| self.counters.refused_sets += 1)?;
        let ip = compute.1.path.dst_ip;
        let mut served = Served {
            ip,
            compute: compute.0,
            pool: pool.0,
            instances: Vec::new(),
            ranges: Vec::new(),
            failed: Some(failed),
            _share: taken,
        };
        self.port.adapter().add_pair(compute.0, compute.1)?;
        // Requests to the pool leave in turns of their compute nodes.
        let party = Party::Served(ip.to_bits().into());
        if let Err(error) = self.port.adapter().add_pair_of(pool.0, pool.1, party) {
            self.port.adapter().remove_pair(compute.0);
            return Err(error.into());
        }
        let now = clock::now();
        for (nth, set) in sets.into_iter().enumerate() {
            let range = (set.key, set.address, set.address.saturating_add(set.layout.bytes()));
            let added = match self.is_served(ip, range) || served.ranges.iter().any(|one| share(*one, range))
            {
                true => Err(AddError::Overlap(nth)),
                false => self.engine.add(set, now).map_err(|error| AddError::Set(nth, error)),
            };
            match added {
                Ok(number) => {
                    served.instances.push(number);
                    served.ranges.push(range);
                }
                Err(error) => {
                    self.counters.refused_sets += 1;
                    self.free(&served);
                    return Err(error);
                }
            }
        }
        let number = self.next;
        self.next += 1;
        self.counters.tenants += 1;
        self.tenants.insert(number, served);
        Ok(number)
    }

    /// Whether a set of a compute node is served, or one that shares bytes with it.
    fn is_served(&self, ip: Ipv4Addr, range: (u32, u64, u64)) -> bool {
        let same = self.tenants.values().filter(|tenant| tenant.ip == ip);
        same.flat_map(|tenant| &tenant.ranges).any(|one| share(*one, range))
    }

    /// Stops serving a compute node.
    pub fn remove(&mut self, number: u32) {
        if let Some(tenant) = self.tenants.remove(&number) {
            self.free(&tenant);
        }
    }

    fn free(&mut self, tenant: &Served) {
        for number in &tenant.instances {
            self.engine.remove(*number);
        }
        for qpn in [tenant.compute, tenant.pool] {
            self.port.adapter().remove_pair(qpn);
            self.engine.forget_pair(qpn);
        }
    }

    /// Waits until something happens, at most until `until`, and handles it.
    ///
    /// Errors: the interface is gone.
    pub fn turn(&mut self, until: Option<Nanos>) -> Result<(), RocePortError> {
        self.request();
        self.port.turn(until.into_iter().chain(self.engine.next_call(Nanos::ZERO)).min())?;
        if self.port.ready(self.commands_number) {
            self.commands.clear();
        }
        while let Some(command) = self.commands.next() {
            command(self);
        }
        let now = clock::now();
        while let Some((qpn, completion)) = self.port.adapter().poll_completion() {
            if let Completion::Request(_, outcome) = completion {
                if let Outcome::Failed(failure) = &outcome {
                    self.fail(qpn, &failure.to_string());
                }
                self.engine.handle_link((qpn, outcome), now, now);
            }
        }
        self.request();
        Ok(())
    }

    /// Hands the engine's requests to the adapter.
    fn request(&mut self) {
        let now = clock::now();
        while let Some((qpn, request)) = self.engine.poll_link(now, &mut ()) {
            if let Err(refused) = self.port.adapter().handle_request(qpn, request) {
                self.counters.refused_requests += 1;
                self.fail(qpn, &refused.to_string());
                self.engine.forget_pair(qpn);
            }
        }
    }

    /// Handles a failed queue pair: informs its compute node.
    fn fail(&mut self, qpn: u32, why: &str) {
        for tenant in self.tenants.values_mut() {
            let peer = match qpn {
                qpn if qpn == tenant.compute => "compute node",
                qpn if qpn == tenant.pool => "pool",
                _ => continue,
            };
            if let Some(failed) = tenant.failed.take() {
                self.counters.failed_pairs += 1;
                // The receiver may be gone.
                let _ = failed.send(format!("the queue pair to the {peer} failed: {why}"));
            }
        }
    }
}

impl Serves for Handle<Spot> {
    fn pairs(&self, _sets: usize) -> Pairs {
        Pairs { compute: 1, pool: 1 }
    }

    async fn add(&self, tenant: Tenant) -> Result<u32, Status> {
        let added = self.call(move |spot| spot.add(tenant)).await;
        added.map_err(|gone| Status::unavailable(gone.to_string()))?.map_err(not_added)
    }

    async fn remove(&self, number: u32) {
        // An engine that is gone serves nothing.
        let _ = self.call(move |spot| spot.remove(number)).await;
    }
}

fn not_added(error: AddError) -> Status {
    match error {
        AddError::Pair(PairError::Taken(_)) => Status::unavailable(format!("{error}; try again")),
        AddError::Pair(PairError::Full) | AddError::Share(_) => Status::resource_exhausted(error.to_string()),
        AddError::Overlap(_) => Status::already_exists(error.to_string()),
        AddError::Pair(_) | AddError::Set(..) => Status::invalid_argument(error.to_string()),
    }
}

/// Whether two sets of a compute node share bytes.
fn share((key, start, end): (u32, u64, u64), (other_key, other_start, other_end): (u32, u64, u64)) -> bool {
    key == other_key && start < other_end && other_start < end
}
