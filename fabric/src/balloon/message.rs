//! Messages among compute nodes, the service and memory nodes. How it is carried is the driver's business.

use super::{Epoch, Extent, Session, Term};
use p4rack_wire::Nanos;
use std::fmt;

/// Maximum bytes of an [`Access`].
pub const ACCESS_BYTES_MAX: usize = 512;

/// How the holder reaches an extent: addresses and keys, in a form that only the node's driver and the holder's know.
#[derive(Clone, PartialEq, Eq)]
pub struct Access(Box<[u8]>);

impl Access {
    /// `None` if it has more than [`ACCESS_BYTES_MAX`] bytes.
    pub fn new(bytes: &[u8]) -> Option<Access> {
        (bytes.len() <= ACCESS_BYTES_MAX).then(|| Access(bytes.into()))
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // It is a secret.
        f.write_str("Access")
    }
}

/// A compute node's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The session that asks.
    pub session: Session,
    /// The request.
    pub ask: Ask,
}

/// A compute node's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// To begin its session. It ends the session of an earlier instance.
    Open,
    /// To hold its extents for another lease.
    Renew,
    /// An extent of this many bytes. The number is the compute node's own, and the same in all copies of the request.
    Reserve {
        /// New for each extent, increasing.
        number: u64,
        /// Bytes of the extent.
        bytes: u64,
    },
    /// To use an extent: it can't be returned until it is offline.
    Online(Extent),
    /// To use an extent no more: its data has moved away.
    Offline(Extent),
    /// To give back an extent, which is offline.
    Return(Extent),
    /// To end the session, whatever it holds.
    Close,
}

/// An extent and its holder's way to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lent {
    /// The extent.
    pub extent: Extent,
    /// Number of the Reserve.
    pub number: u64,
    /// Whether it is in use.
    pub is_online: bool,
    /// Whether its memory node is to go offline: its holder should move it away.
    pub leaves: bool,
    /// How to reach it.
    pub access: Access,
}

/// The service's reply to a request. There is one to each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// To Open: how long the session lasts unless it is renewed.
    Opened(Nanos),
    /// To Renew: how long the session lasts now, and all that it holds. Extents that are missing are lost; others than the holder knows
    /// came of copies of its requests, and it returns them.
    Renewed(Nanos, Vec<Lent>),
    /// To Reserve.
    Reserved(Lent),
    /// To Online, Offline, Return and Close.
    Done,
    /// To any.
    Refused(Refusal),
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The service waits for the reports of the nodes.
    Starting,
    /// Another service has joined the nodes.
    Superseded,
    /// The service has ended: two of its nodes are the same.
    SameNode,
    /// It has too many extents or compute nodes.
    Full,
    /// The session has ended, or was never begun.
    NoSession,
    /// A later instance of the compute node has a session.
    OldInstance,
    /// No extent has that many bytes.
    Bytes,
    /// The number is that of a Reserve with other bytes, or of one whose extent has gone.
    Number,
    /// A later copy of the request gets the reply.
    Repeated,
    /// The quota is used up.
    Quota,
    /// No node has that many bytes in a row.
    NoRoom,
    /// The nodes with room do not answer, or refuse.
    NoNode,
    /// The session has no such extent.
    NotHeld,
    /// The extent is in use.
    Online,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Starting => "the service has just started and waits for its memory nodes: ask again",
            Refusal::Superseded => "another service has taken over the memory nodes: ask that one",
            Refusal::SameNode => {
                "the service has ended, since two of its memory nodes are the same: name each once"
            }
            Refusal::Full => {
                "the service or the compute node has as many extents as it may have, or the service as many \
                 compute nodes: return some first"
            }
            Refusal::NoSession => {
                "the session has ended: its lease was not renewed, or it was never opened; open another one"
            }
            Refusal::OldInstance => "a later instance of this compute node has opened a session",
            Refusal::Bytes => "an extent has 2 MiB to 1 GiB, a power of two",
            Refusal::Number => "this number was used for another extent: take a larger one",
            Refusal::Repeated => "a later copy of this request waits for the reply",
            Refusal::Quota => "the compute node's quota is used up: return some extents first",
            Refusal::NoRoom => {
                "no memory node has a free range of that many bytes that is not kept for others"
            }
            Refusal::NoNode => "the memory nodes that have room do not answer, or refuse: ask again later",
            Refusal::NotHeld => "the session holds no such extent",
            Refusal::Online => "the extent is online: take it offline first",
        })
    }
}

impl std::error::Error for Refusal {}

/// The service's command to a memory node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Of the service.
    pub term: Term,
    /// The node's instance that it is for; any for [`Join`](Order::Join).
    pub instance: u64,
    /// The command.
    pub order: Order,
}

/// A command to a memory node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Take commands of this term only, or a larger one, and report the lent extents.
    Join {
        /// Of this question. The answer has the same.
        nonce: u64,
        /// Number of the node at this service.
        node: u16,
    },
    /// Answer with [`Alive`](Told::Alive).
    Probe,
    /// Give a session access to an extent.
    Grant {
        /// The extent, with the epoch of the grant.
        extent: Extent,
        /// Its holder.
        session: Session,
        /// Number of the holder's request.
        number: u64,
    },
    /// Revoke all access to the bytes of an extent. Its epoch is the fence's.
    Fence(Extent),
    /// Fill the bytes of a fenced extent with zeros. Its epoch is the fence's.
    Zero(Extent),
}

/// A memory node's answer to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The node's instance.
    pub instance: u64,
    /// The answer.
    pub told: Told,
}

/// An answer of a memory node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// It has joined.
    Joined(Report),
    /// Its term is larger than the command's.
    Stale(Term),
    /// It has joined this service under another number.
    OtherNumber {
        /// Of the question.
        nonce: u64,
        /// The number under which it has joined.
        node: u16,
    },
    /// The command is for another instance, or of a service that the node has not joined.
    OtherInstance,
    /// The node is alive.
    Alive,
    /// Access to the extent has been given.
    Granted(Extent, Access),
    /// It has not been given, nor will it be.
    NotGranted(Extent, Why),
    /// No access is left.
    Fenced(Extent),
    /// The bytes are zeros.
    Zeroed(Extent),
    /// They will be: ask again.
    Zeroing(Extent),
    /// A fence or an order to zero was refused: its epoch is smaller than the extent's, or it has other bounds.
    Refused(Extent),
}

/// Why a node gives no access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The grant's epoch is too small.
    Late,
    /// Some of the bytes are another extent's.
    Taken,
    /// The node has no memory for it, or too many extents.
    Full,
}

/// A memory node's report when it joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Of the question.
    pub nonce: u64,
    /// Its bytes of the pool.
    pub bytes: u64,
    /// All extents that are not free, by increasing start.
    pub extents: Vec<Reported>,
}

/// An extent, as its node knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    /// Offset in the node's part of the pool.
    pub start: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Of the grant or the fence.
    pub epoch: Epoch,
    /// Its holder, the number of its request, and its access; `None` if it is fenced.
    pub lent: Option<(Session, u64, Access)>,
}
