//! A queue pair of the program's own as a way to remote memory. Those to extents over one interface are of one adapter.

use super::shared::Shared;
use super::{
    Abilities, Attachment, Held, Lease, Opened, Operation, Order, Outcome, Remote, RemoteError, Shape,
};
use super::{Opcode, Status, WordOrder, Written};
use crate::roce::SetupError;
use crate::roce::setup::{Connected, Offer, Reserved, Station, Token, numbers};
use crate::runtime::runtime;
use p4rack_fabric::roce::{Completion, Failure, Outcome as Done, Refused, Request};
use p4rack_wire::Nanos;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::runtime::Runtime;

struct Pair {
    adapter: Arc<Shared>,
    abilities: Abilities,
    qpn: u32,
    offer: Offer,
    /// What has ended in this poll.
    ended: VecDeque<Completion>,
    /// Tags of operations in flight: a queue pair completes requests in order.
    tags: VecDeque<u64>,
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.adapter.remove(self.qpn);
    }
}

impl Remote for Pair {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
        self.abilities.check(&operation)?;
        let (key, start) = (self.offer.key, self.offer.address);
        let request = match operation {
            Operation::Read { at, bytes } => Request::Read { key, address: start + at, bytes },
            Operation::Write { at, bytes } => {
                Request::Write { key, address: start + at, bytes: bytes.to_vec(), immediate: None }
            }
            Operation::Gather { .. } | Operation::Scatter { .. } => return Err(Status::BadOperation),
            Operation::Modify { at, opcode: Opcode::Cas, operands: [compare, swap] } => {
                Request::CompareSwap { key, address: start + at, compare, swap }
            }
            Operation::Modify { at, operands: [add, _], .. } => {
                Request::FetchAdd { key, address: start + at, add }
            }
        };
        let asked = self.adapter.with(|adapter| adapter.handle_request(self.qpn, request));
        asked.map_err(|refused| match refused {
            Refused::TooLong => Status::BadLength,
            Refused::Unaligned => Status::BadOperation,
            Refused::Full => Status::Full,
            Refused::UnknownPair | Refused::Broken => Status::Gone,
        })?;
        self.tags.push_back(tag);
        Ok(())
    }

    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        let polled = self.adapter.poll(self.qpn, until, &mut self.ended);
        while let Some(completion) = self.ended.pop_front() {
            let Completion::Request(_, done) = completion else {
                return Err(RemoteError::Broken(format!(
                    "the adapter has {completion:?}, which is not asked for"
                )));
            };
            let tag = self.tags.pop_front();
            let tag = tag.ok_or_else(|| RemoteError::Broken("the adapter ended a request twice".into()))?;
            match done {
                Done::Read(bytes) => ended(tag, Outcome::Read(&bytes)),
                Done::Done => ended(tag, Outcome::Written),
                Done::Word(word) => ended(tag, Outcome::Word(word)),
                Done::Failed(failure) => ended(tag, Outcome::Failed(status(failure))),
            }
        }
        Ok(polled?)
    }
}

fn status(failure: Failure) -> Status {
    match failure {
        Failure::InvalidRequest => Status::BadOperation,
        Failure::RemoteAccess => Status::NotPermitted,
        Failure::RemoteOperational => Status::Gone,
        Failure::RetriesExceeded | Failure::RnrRetriesExceeded | Failure::Flushed => Status::Unknown,
    }
}

/// Guard of a connected queue pair. The runtime keeps both calls open.
struct PairLease {
    _reserved: Option<Reserved>,
    _connected: Connected,
    _runtime: Runtime,
}

impl Lease for PairLease {}

/// Memory of a pool.
enum Wanted<'a> {
    /// The memory that is offered to all.
    Shared,
    /// A region of this many bytes, reserved for this end.
    Reserved(u64),
    /// The reservation of this token, which is another's.
    Granted(&'a Token),
}

/// Reserves memory of a pool and connects a queue pair to it.
pub(super) fn open(attachment: Attachment, shape: Shape) -> Result<Opened, RemoteError> {
    let bytes = shape.region_bytes;
    let wanted = if attachment.shared { Wanted::Shared } else { Wanted::Reserved(bytes) };
    connect(attachment, &wanted, |offer| offer.bytes >= bytes)
}

/// Connects a queue pair to a region whose rights were handed on, with this key, address and number of bytes.
pub(super) fn open_granted(
    attachment: Attachment,
    token: &Token,
    region: (u32, u64, u64),
) -> Result<Opened, RemoteError> {
    connect(attachment, &Wanted::Granted(token), |offer| (offer.key, offer.address, offer.bytes) == region)
}

/// Connects a queue pair to the first region that suits.
fn connect(
    attachment: Attachment,
    wanted: &Wanted<'_>,
    suits: impl Fn(&Offer) -> bool,
) -> Result<Opened, RemoteError> {
    let pool = attachment.memory("a pool")?.clone();
    let Attachment { interface, ip, adapter: config, .. } = attachment;
    // A process may hold many extents, and an adapter may need the interface for itself.
    let adapter = match wanted {
        Wanted::Granted(_) => Shared::of_process(&interface, ip, &config)?,
        Wanted::Shared | Wanted::Reserved(_) => Shared::alone(&interface, ip, &config)?,
    };
    let station = Station { mac: adapter.mac(), ip };
    // Its threads have to be in the namespace, as its connections are.
    let runtime = runtime()?;
    let (reserved, connected) = runtime.block_on(async {
        let reserved = match wanted {
            Wanted::Reserved(bytes) => Some(pool.reserve(vec![*bytes]).await?),
            Wanted::Shared | Wanted::Granted(_) => None,
        };
        let token = match wanted {
            Wanted::Granted(token) => Some(*token),
            Wanted::Shared | Wanted::Reserved(_) => reserved.as_ref().map(|reserved| &reserved.token),
        };
        let connected = pool.connect(station, &config, token, &mut numbers()).await?;
        Ok::<_, SetupError>((reserved, connected))
    })?;
    let offers = reserved.as_ref().map_or(&connected.offers, |reserved| &reserved.offers);
    let offer = offers.iter().find(|offer| suits(offer)).copied();
    let offer =
        offer.ok_or_else(|| RemoteError::Broken("the pool has no region, or a smaller one".into()))?;
    let abilities = Abilities {
        region_bytes: offer.bytes,
        read_bytes_max: config.message_bytes_max,
        write_bytes_max: config.message_bytes_max,
        whole_bytes: config.mtu.bytes(),
        edge_bytes: u64::MAX,
        pieces_max: 0,
        under_way_max: config.requests_max,
        atomics: &[Opcode::Cas, Opcode::FetchAdd],
        words: WordOrder::LittleEndian,
        writes: Written::There,
        order: Order::Program,
    };
    let qpn = connected.qpn;
    adapter.add(qpn, connected.connection)?;
    let pair = Pair { adapter, abilities, qpn, offer, ended: VecDeque::new(), tags: VecDeque::new() };
    let lease = PairLease { _reserved: reserved, _connected: connected, _runtime: runtime };
    Ok((Box::new(pair), Held(Some(Box::new(lease)))))
}
