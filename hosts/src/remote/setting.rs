//! Remote memory on this machine with its pool, its engine and its user, each in a namespace of its own.

use super::{Attachment, Held, Remote, RemoteError, Shape, open};
use crate::commands::Handle;
use crate::cowbird::rack::{Pool, Rack};
use crate::roce::setup::Server;
use crate::roce::star::{FRAMES, Star};
use crate::runtime::runtime;
use p4rack_fabric::cowbird;
pub use p4rack_fabric::remote::Way;
use p4rack_fabric::remote::{Engine, Link};
use p4rack_fabric::roce::{Adapter, Config, Regions};
use p4rack_netdev::clock;
use p4rack_wire::Nanos;
use std::net::Ipv4Addr;
use tokio::runtime::Runtime;

/// Processor time of the threads that serve a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Of the compute node's adapter, if it has a thread of its own.
    pub adapter: Option<Nanos>,
    /// Of the engine's thread.
    pub engine: Option<Nanos>,
    /// Of the pool's thread.
    pub pool: Option<Nanos>,
}

impl Used {
    /// The difference from an earlier reading.
    pub fn since(self, before: Used) -> Used {
        let since = |after: Option<Nanos>, before: Option<Nanos>| Some(after? - before?);
        Used {
            adapter: since(self.adapter, before.adapter),
            engine: since(self.engine, before.engine),
            pool: since(self.pool, before.pool),
        }
    }
}

/// Remote memory with its pool and engine.
pub struct Setting {
    end: Box<dyn Remote>,
    meter: Meter,
}

/// An engine in an externally started switch.
pub struct Switch {
    /// Hosts on it: the first is the pool, the second the compute node.
    pub star: Star,
    /// The engine's set-up service.
    pub engine: Server,
    /// Processor time that the switch has used. The switch ends when this is dropped.
    pub cpu: Box<dyn Fn() -> std::io::Result<Nanos>>,
}

/// Location of the pool and the engine.
enum Base {
    Rack(Rack),
    /// The switch ends before its links.
    Switch(Box<dyn Fn() -> std::io::Result<Nanos>>, Pool),
}

impl Base {
    fn pool(&self) -> &Handle<Adapter<Regions>> {
        match self {
            Base::Rack(rack) => &rack.pool,
            Base::Switch(_, pool) => &pool.pool,
        }
    }
}

/// Parties that serve a thread's end; they stop when this is dropped.
pub struct Meter {
    held: Held,
    runtime: Runtime,
    // Last, because its users have to stop first.
    base: Base,
}

impl Setting {
    /// Starts pool, engine and the thread's end, without a switch. Errors: this way needs a switch, or no remote memory.
    pub fn start(way: Way, shape: Shape) -> Result<Setting, RemoteError> {
        let definition = way.definition();
        if definition.link != Link::Adapter || definition.engine == Some(Engine::Switch) {
            return Err(RemoteError::Lacks(format!(
                "more than a pool and a spare host to be {way}: see `p4rack up`"
            )));
        }
        let rack = Rack::start(1, &config(), cowbird::Config::default(), 2 * shape.region_bytes)?;
        let (ns, ip) = rack.compute_node(0);
        let attachment = Attachment { engines: vec![Rack::engine_server()], ..attachment(ip, config()) };
        let (remote, held) = ns.run(|| open(way, attachment, shape))??;
        Ok(Setting { end: remote, meter: Meter { held, runtime: runtime()?, base: Base::Rack(rack) } })
    }

    /// Starts a pool and the thread's end beside an engine in a switch.
    pub fn in_switch(switch: Switch, shape: Shape) -> Result<Setting, RemoteError> {
        // The limits of a switch's engine with default parameters.
        let config = Config { reads_max: Config::default().reads_max, ..config() };
        let Switch { star, engine, cpu } = switch;
        let pool = Pool::start(star, &config, 2 * shape.region_bytes)?;
        let attachment = Attachment { engines: vec![engine], ..attachment(Star::ip(1), config) };
        let (remote, held) = pool.star.host(1).run(|| open(Way::COWBIRD_P4, attachment, shape))??;
        Ok(Setting { end: remote, meter: Meter { held, runtime: runtime()?, base: Base::Switch(cpu, pool) } })
    }

    /// Fills the region's first bytes directly.
    pub fn fill(&self, content: Vec<u8>) -> Result<(), RemoteError> {
        let filled = self.meter.base.pool().call(move |adapter| {
            let memory = adapter.memory_mut();
            let key = memory.keys().next();
            let bytes = key.and_then(|key| memory.bytes_mut(key));
            let bytes = bytes.and_then(|all| all.get_mut(..content.len()));
            bytes.map(|bytes| bytes.copy_from_slice(&content))
        });
        let filled = self.meter.runtime.block_on(filled)?;
        filled.ok_or_else(|| RemoteError::Broken("the pool has no region, or a smaller one".into()))
    }

    /// The thread's end, and the parties that serve it.
    pub fn split(self) -> (Box<dyn Remote>, Meter) {
        (self.end, self.meter)
    }
}

impl Meter {
    /// Processor time used so far.
    pub fn used(&self) -> Result<Used, RemoteError> {
        let pool = Some(self.runtime.block_on(self.base.pool().call(|_| clock::thread_cpu()))?);
        let Some(adapter) = self.held.adapter_cpu()? else { return Ok(Used { pool, ..Used::default() }) };
        let engine = match &self.base {
            Base::Rack(rack) => self.runtime.block_on(rack.spot.call(|_| clock::thread_cpu()))?,
            Base::Switch(cpu, _) => cpu()?,
        };
        Ok(Used { adapter: Some(adapter), engine: Some(engine), pool })
    }
}

/// Parameters of all adapters, for every way. The engine in a switch can't compute iCRCs, so no adapter checks them: otherwise
/// other ways would have more work for each frame.
fn config() -> Config {
    Config {
        icrc_verified: false,
        requests_max: 512,
        in_flight_max: 256,
        reads_max: 128,
        timeout: Nanos::from_millis(50),
        ..Config::default()
    }
}

/// An end's place in the racks of this machine.
fn attachment(ip: Ipv4Addr, adapter: Config) -> Attachment {
    Attachment::at(FRAMES, ip, adapter, Pool::server())
}
