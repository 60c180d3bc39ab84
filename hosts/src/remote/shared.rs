//! An adapter that ways of a process share. Each has a queue pair of its own.
//!
//! ```text
//!   way ─ requests ─▶ ┌─────────┐
//!                     │ adapter │ ◀─▶ frames, while one of the threads waits for them
//!   way ─ requests ─▶ └─────────┘
//!     ▲                    │
//!     └─ its completions ──┘
//! ```
//!
//! There is no thread for it. One that waits has the port, hands out what ends, and puts the port back when anything has come, or when
//! another one wants it. A way that is alone takes two uncontended locks more than one with an adapter of its own would.

use super::RemoteError;
use crate::commands::Handle;
use crate::roce::{Loss, RocePort, RocePortError};
use p4rack_fabric::roce::{Adapter, Completion, Config, Connection, PairError, Regions};
use p4rack_netdev::clock;
use p4rack_wire::{MacAddr, Nanos};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// Longest sleep of a thread that wants the port: it looks again then.
const PAUSE: Duration = Duration::from_millis(10);

/// What makes two ways share an adapter.
#[derive(Clone, Debug, PartialEq)]
struct At {
    /// The network namespace.
    namespace: u64,
    interface: String,
    ip: Ipv4Addr,
    config: Config,
}

/// Adapters of this process that are in use.
static ADAPTERS: Mutex<Vec<(At, Weak<Shared>)>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct State {
    /// `None` while a thread has it.
    port: Option<RocePort<Regions>>,
    /// By queue pair, what has ended and was not fetched.
    ended: BTreeMap<u32, VecDeque<Completion>>,
}

/// An adapter, and what has ended.
pub(super) struct Shared {
    state: Mutex<State>,
    /// The port is back.
    back: Condvar,
    handle: Handle<Adapter<Regions>>,
    mac: MacAddr,
}

/// The port, which returns to its place.
struct Taken<'a> {
    shared: &'a Shared,
    port: Option<RocePort<Regions>>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        let Some(mut port) = self.port.take() else { return };
        while let Some((qpn, completion)) = port.adapter().poll_completion() {
            // A way that is gone takes none.
            if let Some(ended) = state.ended.get_mut(&qpn) {
                ended.push_back(completion);
            }
        }
        state.port = Some(port);
        drop(state);
        self.shared.back.notify_all();
    }
}

impl Shared {
    /// An adapter of the caller's own at an interface of the calling thread's namespace. Errors: those of [`RocePort::open`].
    pub fn alone(interface: &str, ip: Ipv4Addr, config: &Config) -> Result<Arc<Shared>, RemoteError> {
        let port = RocePort::open(interface, ip, config.clone(), Regions::default(), Loss::default())?;
        let (handle, mac) = (port.handle(), port.mac());
        let state = Mutex::new(State { port: Some(port), ended: BTreeMap::new() });
        Ok(Arc::new(Shared { state, back: Condvar::new(), handle, mac }))
    }

    /// The adapter of this process at an interface of the calling thread's namespace. Errors: as those of [`alone`](Self::alone), and the
    /// system does not name the namespace.
    pub fn of_process(interface: &str, ip: Ipv4Addr, config: &Config) -> Result<Arc<Shared>, RemoteError> {
        let namespace = std::fs::metadata("/proc/thread-self/ns/net")?.ino();
        let at = At { namespace, interface: interface.to_owned(), ip, config: config.clone() };
        let mut all = lock(&ADAPTERS);
        all.retain(|(_, shared)| shared.strong_count() > 0);
        if let Some(shared) = all.iter().filter(|(other, _)| *other == at).find_map(|(_, one)| one.upgrade())
        {
            return Ok(shared);
        }
        let shared = Shared::alone(interface, ip, config)?;
        all.push((at, Arc::downgrade(&shared)));
        Ok(shared)
    }

    /// MAC address of the interface.
    pub fn mac(&self) -> MacAddr {
        self.mac
    }

    /// Adds a queue pair.
    pub fn add(&self, qpn: u32, connection: Connection) -> Result<(), PairError> {
        self.with(|adapter| adapter.add_pair(qpn, connection))?;
        lock(&self.state).ended.insert(qpn, VecDeque::new());
        Ok(())
    }

    /// Removes a queue pair.
    pub fn remove(&self, qpn: u32) {
        self.with(|adapter| adapter.remove_pair(qpn));
        lock(&self.state).ended.remove(&qpn);
    }

    /// Runs `f` on the adapter, of which a thread that waits lets go.
    pub fn with<T>(&self, f: impl FnOnce(&mut Adapter<Regions>) -> T) -> T {
        let mut state = lock(&self.state);
        loop {
            if let Some(port) = &mut state.port {
                return f(port.adapter());
            }
            // It wakes the thread that has the port, which does no more.
            _ = self.handle.post(|_| ());
            let waited = self.back.wait_timeout(state, PAUSE);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Fetches what has ended on a queue pair. If there is nothing, waits, at most until `until`. Errors: the interface is gone.
    pub fn poll(
        &self,
        qpn: u32,
        until: Nanos,
        ended: &mut VecDeque<Completion>,
    ) -> Result<(), RocePortError> {
        let fetch = |state: &mut State, ended: &mut VecDeque<Completion>| {
            ended.extend(state.ended.get_mut(&qpn).into_iter().flat_map(|own| own.drain(..)));
            !ended.is_empty()
        };
        let mut state = lock(&self.state);
        loop {
            let has_some = fetch(&mut state, ended);
            if let Some(port) = state.port.take() {
                drop(state);
                let mut taken = Taken { shared: self, port: Some(port) };
                // Requests leave in any case.
                let until = if has_some { Nanos::ZERO } else { until };
                let turned = taken.port.as_mut().map_or(Ok(()), |port| port.turn(Some(until)));
                drop(taken);
                fetch(&mut lock(&self.state), ended);
                return turned;
            }
            // The thread that has the port took it after the last request, which has left.
            if has_some {
                return Ok(());
            }
            let left = until.saturating_sub(clock::now());
            if left == Nanos::ZERO {
                return Ok(());
            }
            let waited = self.back.wait_timeout(state, Duration::from_nanos(left.0));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
