//! Extents of a pool that a client's process holds: a thread renews their lease, and reserves more on request.

use super::claim::Claim;
use crate::error::LabError;
use crate::sys;
use p4rack_fabric::balloon::Lent;
use p4rack_hosts::balloon::{LeaseError, Tenancy};
use p4rack_hosts::remote::{Attachment, Held, Remote};
use p4rack_hosts::roce::setup::Server;
use p4rack_wire::Nanos;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest time for the service to start, and for an extent to come.
const START: Duration = Duration::from_secs(60);
/// Time between two tries to get an extent, and two looks for orders.
const PAUSE: Duration = Duration::from_millis(10);

/// Orders to the thread.
const HOLDS: u8 = 0;
const TAKES: u8 = 1;
const ENDS: u8 = 2;

/// An extent that came.
struct Came {
    lent: Lent,
    /// Set-up service of its memory node.
    service: String,
    at_ns: u64,
}

/// An extent that is held, and its way.
pub(super) struct Extent {
    /// Whose it is since when.
    pub claim: Claim,
    /// Its bytes.
    pub way: Box<dyn Remote>,
    /// Keeps the way open.
    pub held: Held,
}

/// What the thread does, and what its owner reads.
struct Shared {
    does: AtomicU8,
    /// Until when the extents are held, on the monotonic clock.
    until_ns: AtomicU64,
}

/// A compute node's session at the pool's service.
pub(super) struct Holding {
    came: Receiver<Result<Came, LeaseError>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// This end of the way to an extent, but for the memory node's service.
    attachment: Attachment,
}

fn failed(error: impl std::fmt::Display) -> LabError {
    LabError::measurement("the pool", error)
}

impl Holding {
    /// Reserves `count` extents of `bytes` bytes for the compute node `holder` of the service at `addr`, and holds them.
    pub fn begin(
        addr: &str,
        holder: u32,
        (count, bytes): (u64, u64),
        attachment: Attachment,
    ) -> Result<(Holding, Vec<Extent>), LabError> {
        let server = Server { addr: addr.to_owned(), tls: None };
        let (tell, came) = channel();
        let shared = Arc::new(Shared { does: AtomicU8::new(HOLDS), until_ns: AtomicU64::new(0) });
        let told = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("extents".to_owned()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let held = match runtime {
                Ok(runtime) => runtime.block_on(hold(server, holder, (count, bytes), &told, &tell)),
                Err(_) => return,
            };
            if let Err(error) = held {
                // A client that is gone needs no reason.
                let _ = tell.send(Err(error));
            }
        });
        let thread = thread.map_err(LabError::system("starting a thread"))?;
        let holding = Holding { came, shared, thread: Some(thread), attachment };
        let extents = (0..count).map(|_| holding.wait()).collect::<Result<_, _>>()?;
        Ok((holding, extents))
    }

    fn wait(&self) -> Result<Extent, LabError> {
        match self.came.recv_timeout(START) {
            Ok(came) => self.open(came.map_err(failed)?),
            Err(RecvTimeoutError::Timeout) => Err(failed("no extent came within a minute")),
            Err(RecvTimeoutError::Disconnected) => Err(failed("its thread did not start")),
        }
    }

    fn open(&self, came: Came) -> Result<Extent, LabError> {
        let Came { lent, service, at_ns } = came;
        let (place, bytes) = (lent.extent.place, lent.extent.bytes);
        let claim = Claim { node: place.node, start: place.start, bytes, since_ns: at_ns };
        let memory = Some(Server { addr: service, tls: None });
        let opened = Tenancy::open_extent(&lent, Attachment { memory, ..self.attachment.clone() });
        let (way, held) = opened.map_err(failed)?;
        Ok(Extent { claim, way, held })
    }

    /// From now on, takes every extent that is free.
    pub fn take(&self) {
        self.shared.does.store(TAKES, Ordering::Relaxed);
    }

    /// Until when all extents are held at least, on the monotonic clock, if the process ends now.
    pub fn until(&self) -> Nanos {
        Nanos(self.shared.until_ns.load(Ordering::Relaxed))
    }

    /// Extents that came since the last call. Errors: the session has ended.
    pub fn taken(&self) -> Result<Vec<Extent>, LabError> {
        self.came.try_iter().map(|came| self.open(came.map_err(failed)?)).collect()
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.shared.does.store(ENDS, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A thread that has panicked has ended too.
            let _ = thread.join();
        }
    }
}

/// Holds extents until the request to end.
async fn hold(
    server: Server,
    holder: u32,
    (count, bytes): (u64, u64),
    shared: &Shared,
    tell: &Sender<Result<Came, LeaseError>>,
) -> Result<(), LeaseError> {
    let mut tenancy = Tenancy::open(server, holder, START).await?;
    let tell = |(lent, service): (Lent, String)| {
        let at_ns = sys::monotonic_ns();
        let _ = tell.send(Ok(Came { lent, service, at_ns }));
    };
    let held = |tenancy: &Tenancy| shared.until_ns.store(tenancy.until().0, Ordering::Relaxed);
    for _ in 0..count {
        let came = tenancy.reserve(bytes).await?;
        held(&tenancy);
        tell(came);
    }
    let third_ns = tenancy.lease().0 / 3;
    let mut renew_ns = sys::monotonic_ns() + third_ns;
    loop {
        match shared.does.load(Ordering::Relaxed) {
            ENDS => return tenancy.close().await,
            TAKES => match tenancy.reserve(bytes).await {
                Ok(came) => tell(came),
                Err(LeaseError::Full(_)) => {}
                Err(error) => return Err(error),
            },
            _ => {}
        }
        tokio::time::sleep(PAUSE).await;
        if sys::monotonic_ns() >= renew_ns {
            tenancy.renew().await?;
            held(&tenancy);
            renew_ns = sys::monotonic_ns() + third_ns;
        }
    }
}
