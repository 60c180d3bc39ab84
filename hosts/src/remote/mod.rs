//! Remote memory: one region, whatever the way to it.
//!
//! ```text
//!  program ─ Remote ─┬─ Local      bytes of this process
//!                    ├─ Tcp        ═ a server of bytes
//!                    ├─ Pair       ═ RDMA ═ a pool
//!                    ├─ Edm        ═ EDM ═ a memory node
//!                    ├─ Clio       ═ UDP ═ a board
//!                    └─ Rings      ═ Cowbird's engine ═ RDMA ═ a pool
//! ```
//!
//! Programs use [`Remote`]: they submit operations under tags of their own and poll for outcomes. [`open`] opens a way by name.
//! A new way is a module here with a line in [`OPENERS`], and a line in `p4rack_fabric::remote`, the list of names. A wrapper,
//! such as [`Certain`], is a [`Remote`] around another: [`Part`] has a part of one, [`Joined`] puts several together, and what
//! [`Movable`] has moves to another one while it is in use. [`open`] puts
//! [`Pieces`] around each way that can't gather and scatter.
//!
//! **Order.** [`Abilities::order`] defines which operations take effect in the order of submission. In any case, an operation that
//! is submitted after the end of another takes effect after it, provided that the end means that it is in the memory
//! ([`Abilities::writes`]).
//!
//! **No answer.** An operation without an answer ends as [`Status::Unknown`]: it was executed once, will be, or never is. Repeat
//! reads freely, and writes as long as no other program writes there. Do not repeat an atomic operation: read the word and decide.
//!
//! **A memory that starts again** has lost its content. TCP's connection ends with it, RDMA's queue pair is not known to its successor,
//! and a Clio board draws new tokens: none of these ways goes on, as tests with regions show. Cowbird's reservation is not known to the
//! successor either, but no test restarts its pool. EDM connects to the new memory. It also connects again if a full memory node has
//! dropped its quiet session. [`Remote::losses`] counts both.

mod certain;
mod clio;
mod cut;
mod delayed;
mod edm;
mod error;
mod granted;
pub mod hash;
mod joined;
mod local;
mod movable;
mod operation;
mod own;
mod pair;
mod part;
mod pieces;
mod region;
mod rings;
pub mod setting;
mod shared;
pub mod tcp;
mod window;

pub use certain::Certain;
pub use clio::Clio;
pub use delayed::Delayed;
pub use edm::{Edm, EdmAnswer};
pub use error::RemoteError;
pub use granted::Granted;
pub use joined::Joined;
pub use local::Local;
pub use movable::{Movable, Mover};
pub use operation::{
    Abilities, Operation, Order, Outcome, Piece, Shape, Status, UnderWay, WordOrder, Written,
};
pub use own::Own;
pub use p4rack_wire::edm::Opcode;
pub use part::Part;
pub use pieces::Pieces;
pub use region::Region;
pub use window::Window;

use crate::clio::Patience;
use crate::commands::Gone;
use crate::memory;
use crate::roce::setup::Server;
use p4rack_fabric::remote::Way;
use p4rack_fabric::roce::Config;
use p4rack_netdev::clock;
use p4rack_wire::Nanos;
use std::fmt;
use std::net::Ipv4Addr;

/// One region of remote memory, whose bytes count from 0. One thread at a time uses it.
pub trait Remote: Send {
    /// Its abilities.
    fn abilities(&self) -> &Abilities;

    /// Accepts an operation, which ends under this tag; bytes to write are copied. It leaves with the next [`poll`](Self::poll) at
    /// the latest, so the operations between two polls form a batch. Errors: the operation is refused and has no end.
    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status>;

    /// Delivers ended operations with their tags. If there are none, waits for one, at most until `until`; it may return earlier
    /// without one. Errors: the way is gone, and no more operations will end.
    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError>;

    /// The clock of [`poll`](Self::poll): the machine's, or a simulation's.
    fn now(&self) -> Nanos {
        clock::now()
    }

    /// How often the memory may have lost its content since the way was opened, as far as outcomes and their [`poll`](Self::poll) show:
    /// its host has started again or has dropped the session, and the way has connected to it again. 0 for ways that don't: their `poll` fails, or operations end
    /// as [`Status::Unknown`] or [`Status::Gone`]. An outcome of the new memory never comes before its loss counts.
    fn losses(&self) -> u64 {
        0
    }
}

impl<R: Remote + ?Sized> Remote for Box<R> {
    fn abilities(&self) -> &Abilities {
        (**self).abilities()
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
        (**self).submit(tag, operation)
    }

    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        (**self).poll(until, ended)
    }

    fn now(&self) -> Nanos {
        (**self).now()
    }

    fn losses(&self) -> u64 {
        (**self).losses()
    }
}

/// A program's end of a way, and the services of the other end. Each way uses its part of this.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// Interface to the rack.
    pub interface: String,
    /// Address of this end's adapter.
    pub ip: Ipv4Addr,
    /// Parameters of the adapter.
    pub adapter: Config,
    /// The set-up service of a pool or a board, or the server of bytes.
    pub memory: Option<Server>,
    /// Set-up services of further boards, on which the region goes on in this order.
    pub more_boards: Vec<Server>,
    /// Set-up services of engines.
    pub engines: Vec<Server>,
    /// EDM's node of this host, and the memory node.
    pub node: Option<(memory::ClientConfig, memory::Remote)>,
    /// Whether to use the memory that a pool offers to all, instead of a region reserved for this end.
    pub shared: bool,
    /// How long a client of a board waits.
    pub patience: Patience,
}

impl Attachment {
    /// That of an adapter, with a pool or a server of bytes.
    pub fn at(interface: &str, ip: Ipv4Addr, adapter: Config, memory: Server) -> Attachment {
        Attachment {
            interface: interface.to_owned(),
            ip,
            adapter,
            memory: Some(memory),
            ..Attachment::local()
        }
    }

    /// None: sufficient for the program's own memory.
    pub fn local() -> Attachment {
        let adapter = Config::default();
        let ip = Ipv4Addr::UNSPECIFIED;
        Attachment {
            interface: String::new(),
            ip,
            adapter,
            memory: None,
            more_boards: Vec::new(),
            engines: Vec::new(),
            node: None,
            shared: false,
            patience: Patience::default(),
        }
    }

    fn memory(&self, what: &str) -> Result<&Server, RemoteError> {
        self.memory.as_ref().ok_or_else(|| RemoteError::Lacks(format!("the address of {what}")))
    }
}

/// Guard of a connected end: dropping it frees the memory.
pub struct Held(Option<Box<dyn Lease>>);

/// A lease of remote memory.
trait Lease: Send {
    /// Processor time of a thread that works for the program's thread, if there is one.
    fn adapter_cpu(&self) -> Result<Option<Nanos>, Gone> {
        Ok(None)
    }
}

impl Held {
    /// Processor time of the adapter's thread, if it is not the program's.
    pub fn adapter_cpu(&self) -> Result<Option<Nanos>, Gone> {
        self.0.as_ref().map_or(Ok(None), |lease| lease.adapter_cpu())
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").finish_non_exhaustive()
    }
}

/// An open way, and its guard.
pub type Opened = (Box<dyn Remote>, Held);

/// Opens a way for a program's maximum load.
type Open = fn(Attachment, Shape) -> Result<Opened, RemoteError>;

/// The function that opens each way.
static OPENERS: &[(Way, Open)] = &[
    (Way::LOCAL, local::open),
    (Way::DELAYED, delayed::open),
    (Way::TCP, tcp::open),
    (Way::RDMA_SYNC, pair::open),
    (Way::RDMA, pair::open),
    (Way::EDM_TIMED_DST, edm::open),
    (Way::EDM_TIMED, edm::open),
    (Way::EDM_CALENDAR, edm::open),
    (Way::EDM_MATCHED, edm::open),
    (Way::CLIO, clio::open),
    (Way::COWBIRD_SPOT, rings::open),
    (Way::COWBIRD_P4, rings::open),
];

/// Opens a way, from the calling thread's network namespace. Errors: the place lacks a field, or a service does not answer.
pub fn open(way: Way, attachment: Attachment, shape: Shape) -> Result<Opened, RemoteError> {
    let opener = OPENERS.iter().find(|(known, _)| *known == way);
    let (_, open) = opener.ok_or_else(|| RemoteError::Lacks(format!("a module that opens {way}")))?;
    let (remote, held) = open(attachment, shape)?;
    Ok(if remote.abilities().pieces_max > 0 { (remote, held) } else { (Box::new(Pieces::new(remote)), held) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_has_one_module() {
        for way in Way::ALL {
            assert_eq!(OPENERS.iter().filter(|(known, _)| known == way).count(), 1, "{way}");
        }
    }
}
