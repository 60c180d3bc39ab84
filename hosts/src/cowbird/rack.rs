//! A pool, alone or with an engine, on this machine, each a thread in a namespace, for benches and tests.

use super::service::{Service, SpotConfig, serve};
use super::spot::Spot;
use crate::commands::Handle;
use crate::roce::pool::{self, PoolConfig};
use crate::roce::setup::{Server, Station};
use crate::roce::star::{FRAMES, Star};
use crate::roce::{Loss, RocePort, RocePortError, SetupError};
use p4rack_fabric::cowbird;
use p4rack_fabric::roce::{Adapter, Config, Regions};
use p4rack_netdev::{NetNs, clock};
use p4rack_wire::Nanos;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Hosts that the rack itself needs; those of compute nodes follow.
pub const HOSTS: u8 = 2;
/// Hosts of pool and engine.
const POOL: u8 = 0;
const ENGINE: u8 = 1;
/// Port of both set-up services.
const PORT: u16 = 9_561;
/// Interval at which a thread checks whether to stop.
const LOOK: Nanos = Nanos::from_millis(5);

/// Why a rack did not start.
#[derive(Debug, thiserror::Error)]
pub enum RackError {
    /// A namespace or link could not be made.
    #[error(transparent)]
    Device(#[from] p4rack_netdev::Error),
    /// An adapter did not start.
    #[error(transparent)]
    Port(#[from] RocePortError),
    /// A set-up service did not start.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A thread can't be started.
    #[error("starting a thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// A pool. It ends when this is dropped.
#[derive(Debug)]
pub struct Pool {
    /// Where it is: its first host. The hosts remain as long as others have them.
    pub star: Arc<Star>,
    /// The pool's adapter.
    pub pool: Handle<Adapter<Regions>>,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// A pool and an engine. They end when this is dropped.
#[derive(Debug)]
pub struct Rack {
    /// The pool, with room for compute nodes from [`HOSTS`] on.
    base: Pool,
    /// The engine.
    pub spot: Handle<Spot>,
}

impl Deref for Rack {
    type Target = Pool;
    fn deref(&self) -> &Pool {
        &self.base
    }
}

impl Rack {
    /// Starts both, with room for this many compute nodes. One of them may reserve a little more than half of `reserve_bytes_max`.
    pub fn start(
        compute_nodes: u8,
        adapter: &Config,
        engine: cowbird::Config,
        reserve_bytes_max: u64,
    ) -> Result<Rack, RackError> {
        let mut base = Pool::start(Star::create(HOSTS + compute_nodes)?, adapter, reserve_bytes_max)?;
        let open = || Spot::open(FRAMES, Star::ip(ENGINE), adapter.clone(), engine, Loss::default());
        let spot = base.star.host(ENGINE).run(open)??;
        let station = Station { mac: spot.mac(), ip: Star::ip(ENGINE) };
        let config = SpotConfig { station, adapter: adapter.clone(), pool: Pool::server(), members: None };
        let (engine, service) = (spot.handle(), Service::new(spot.handle(), config));
        base.spawn(
            ENGINE,
            |listener| async move {
                let _ = serve(listener, service, None).await;
            },
            spot,
            Spot::turn,
        )?;
        Ok(Rack { base, spot: engine })
    }

    /// The pool's set-up service.
    pub fn pool_server() -> Server {
        Pool::server()
    }

    /// The engine's set-up service.
    pub fn engine_server() -> Server {
        server(ENGINE)
    }

    /// The namespace of a compute node, and the address of its adapter.
    pub fn compute_node(&self, number: u8) -> (&NetNs, std::net::Ipv4Addr) {
        (self.star.host(HOSTS + number), Star::ip(HOSTS + number))
    }
}

/// The set-up service of a host.
fn server(host: u8) -> Server {
    Server { addr: SocketAddr::from((Star::setup_ip(host), PORT)).to_string(), tls: None }
}

impl Pool {
    /// Starts it at the first host. One compute node may reserve a little more than half of `reserve_bytes_max`.
    pub fn start(
        star: impl Into<Arc<Star>>,
        adapter: &Config,
        reserve_bytes_max: u64,
    ) -> Result<Pool, RackError> {
        let star = star.into();
        let open =
            || RocePort::open(FRAMES, Star::ip(POOL), adapter.clone(), Regions::default(), Loss::default());
        let port = star.host(POOL).run(open)??;
        let station = Station { mac: port.mac(), ip: Star::ip(POOL) };
        let config = PoolConfig {
            station,
            adapter: adapter.clone(),
            members: None,
            offers: Vec::new(),
            reserve_bytes_max,
            tenants: pool::TENANTS,
        };
        let (pool, service) = (port.handle(), pool::Service::new(port.handle(), config));
        let over = Arc::new(AtomicBool::new(false));
        let mut base = Pool { star, pool, over, threads: Vec::new() };
        base.spawn(
            POOL,
            |listener| async move {
                let _ = pool::serve(listener, service, None).await;
            },
            port,
            RocePort::turn,
        )?;
        Ok(base)
    }

    /// Its set-up service.
    pub fn server() -> Server {
        server(POOL)
    }

    /// Has a thread drive `machine`, and another one serve its set-up.
    fn spawn<M: Send + 'static, F: Future<Output = ()> + Send + 'static>(
        &mut self,
        host: u8,
        service: impl FnOnce(tokio::net::TcpListener) -> F,
        mut machine: M,
        turn: fn(&mut M, Option<Nanos>) -> Result<(), RocePortError>,
    ) -> Result<(), RackError> {
        let (runtime, listener) = self.star.host(host).run(|| {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
            runtime
                .block_on(async { tokio::net::TcpListener::bind((Star::setup_ip(host), PORT)).await })
                .map(|listener| (runtime, listener))
        })??;
        runtime.spawn(service(listener));
        let over = self.over.clone();
        let drive = move || {
            while !over.load(Ordering::Relaxed) {
                if let Err(error) = turn(&mut machine, Some(clock::now() + LOOK)) {
                    tracing::warn!(%error, "a rack's thread ended");
                    break;
                }
            }
            runtime.shutdown_timeout(Duration::from_millis(100));
        };
        self.threads.push(std::thread::Builder::new().name("rack".into()).spawn(drive)?);
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // No receiver is left.
            let _ = thread.join();
        }
    }
}
