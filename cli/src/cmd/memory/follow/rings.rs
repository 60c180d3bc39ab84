//! Requests of Cowbird's threads, put together from the RDMA operations of the engine that serves their rings.
//!
//! ```text
//!  compute node                  engine                       pool
//!    │ ◀──── READ entry ───────────┤
//!    │ ◀──── READ payload ─────────┤ a write ── WRITE ─────────▶│
//!    │                             │ a read ─── READ ──────────▶│
//!    │ ◀──── WRITE response ───────┤
//!    │ ◀──── WRITE red block ──────┘
//! ```
//!
//! Captures lack the set-up, which says where sets and regions are. A set is where its two blocks are: the green one is read, the
//! red one is written 64 bytes above. A region begins at the address that fits most requests for it.

use super::operation::{Operation, OperationKind, Seen, begin};
use super::rdma::{self, Transfers};
use p4rack_wire::MacAddr;
use p4rack_wire::cowbird::{
    BLOCK_BYTES, ENTRIES_AT, Entry, GREEN_AT, Green, Kind, RED_AT, Red, RequestId, Tail, WORD_BYTES,
};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Bytes of the longest READ of entries: an engine takes up to 64.
const ENTRIES_BYTES_MAX: u32 = 64 * Entry::BYTES as u32;
/// Bytes of the READs of a green block: of its first word, of all of it, of both blocks.
const PROBES: [u32; 3] = [Tail::BYTES as u32, Green::BYTES as u32, 2 * BLOCK_BYTES as u32];
/// Transfers from and to pools that decide where regions begin.
const VOTERS_MAX: usize = 4_096;

/// A set: its compute node, and the address of its green block.
type Set = (MacAddr, u64);
/// A region: its compute node, and its number.
type Region = (MacAddr, u16);

/// A transfer's role in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Entry,
    Payload,
    Pool,
    Response,
    RedBlock,
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Role::Entry => "entry",
            Role::Payload => "payload",
            Role::Pool => "pool",
            Role::Response => "response",
            Role::RedBlock => "red block",
        }
    }
}

/// A request of a thread.
#[derive(Debug)]
struct Request {
    set: Set,
    id: RequestId,
    /// Address in the region.
    remote: u64,
    /// Address of its data at the compute node.
    local: u64,
    bytes: u32,
    /// Bytes that have been read from the pool, or written to it.
    moved: u32,
    refused: Option<String>,
    /// Positions of its transfers.
    parts: Vec<(usize, Role)>,
}

impl Request {
    /// The request that an entry contains. `None`: the bytes are no entry.
    fn of(set: Set, bytes: &[u8]) -> Option<Request> {
        let entry = Entry::parse(bytes).ok()?;
        let (kind, id) = (Kind::of(entry.rw_type).ok()?, RequestId(entry.request_id));
        let (remote, local) = match kind {
            Kind::Read => (entry.req_addr, entry.resp_addr),
            Kind::Write => (entry.resp_addr, entry.req_addr),
        };
        let is_whole = id == RequestId::new(kind, entry.region_id, id.number()) && entry.length > 0;
        let local = set.1.checked_add(local).filter(|_| is_whole)?;
        let (moved, refused, parts) = (0, None, Vec::new());
        Some(Request { set, id, remote, local, bytes: entry.length, moved, refused, parts })
    }

    fn region(&self) -> Region {
        (self.set.0, self.id.region())
    }

    /// Whether a transfer at the compute node has bytes of its data.
    fn is_local(&self, (node, address, bytes): (MacAddr, u64, u32)) -> bool {
        let end = self.local.saturating_add(u64::from(self.bytes).next_multiple_of(WORD_BYTES));
        self.set.0 == node && address < end && self.local < address.saturating_add(bytes.into())
    }

    /// Takes a transfer of its next bytes, or of its first ones again. `start` is where its region begins.
    fn moves(&mut self, start: u64, address: u64, bytes: u32) -> bool {
        let first = start.wrapping_add(self.remote);
        let before = if address == first { 0 } else { self.moved };
        let is_next = address == first.wrapping_add(before.into()) && bytes <= self.bytes - before;
        let takes = is_next && self.moved < self.bytes;
        if takes {
            self.moved = before + bytes;
        }
        takes
    }
}

/// Walks through transfers in the order in which they begin.
struct Walk<'a> {
    transfers: &'a Transfers,
    sets: &'a BTreeSet<Set>,
    /// Where regions begin; while that is unknown, transfers vote.
    regions: Option<&'a HashMap<Region, u64>>,
    votes: HashMap<Region, HashMap<u64, usize>>,
    voters: usize,
    requests: Vec<Request>,
    /// Those that have not ended, in order.
    open: Vec<usize>,
    known: HashSet<(Set, RequestId)>,
    /// Reads and writes that are done, as the last red block has it.
    progress: HashMap<Set, (u64, u64)>,
}

impl<'a> Walk<'a> {
    fn run(
        transfers: &'a Transfers,
        sets: &'a BTreeSet<Set>,
        regions: Option<&'a HashMap<Region, u64>>,
    ) -> Walk<'a> {
        let (votes, voters, requests, open) = (HashMap::new(), 0, Vec::new(), Vec::new());
        let (known, progress) = (HashSet::new(), HashMap::new());
        let mut walk = Walk { transfers, sets, regions, votes, voters, requests, open, known, progress };
        for (nth, operation) in transfers.operations.iter().enumerate() {
            let place = (operation.address, operation.bytes, operation.what);
            let (Some(address), Some(bytes), Some(what @ (OperationKind::Read | OperationKind::Write))) =
                place
            else {
                continue;
            };
            let at = (operation.to, address, bytes);
            let is_local = walk.data(nth, what, at) || walk.ring(nth, what, at);
            if !is_local {
                walk.pool(nth, what, address, bytes);
            }
        }
        walk
    }

    /// A transfer of requests' data at a compute node.
    fn data(&mut self, nth: usize, what: OperationKind, at: (MacAddr, u64, u32)) -> bool {
        let (kind, role) = match what {
            OperationKind::Read => (Kind::Write, Role::Payload),
            _ => (Kind::Read, Role::Response),
        };
        let mut any = false;
        for open in &self.open {
            let request = &mut self.requests[*open];
            if request.id.kind() == kind && request.is_local(at) {
                request.parts.push((nth, role));
                any = true;
            }
        }
        any
    }

    /// A transfer of a block or of entries.
    fn ring(&mut self, nth: usize, what: OperationKind, (node, address, bytes): (MacAddr, u64, u32)) -> bool {
        let below = self.sets.range(..=(node, address)).next_back().copied();
        let Some(set) = below.filter(|(owner, _)| *owner == node) else { return false };
        match (what, address - set.1) {
            (OperationKind::Write, RED_AT) if bytes == Red::BYTES as u32 => self.red(nth, set, 0),
            (OperationKind::Read, GREEN_AT) if PROBES.contains(&bytes) => self.red(nth, set, RED_AT as usize),
            (OperationKind::Read, at)
                if at >= ENTRIES_AT && (at - ENTRIES_AT).is_multiple_of(Entry::BYTES as u64) =>
            {
                return self.entries(nth, set);
            }
            _ => return false,
        }
        true
    }

    /// Entries, also such that are known or that an earlier lap has left. Whether there are any.
    fn entries(&mut self, nth: usize, set: Set) -> bool {
        let mut any = false;
        for bytes in self.transfers.moved[nth].bytes.chunks_exact(Entry::BYTES) {
            let Some(mut request) = Request::of(set, bytes) else { continue };
            any = true;
            let is_new = self.known.insert((set, request.id));
            if is_new && !self.is_done(&request) {
                request.parts.push((nth, Role::Entry));
                self.open.push(self.requests.len());
                self.requests.push(request);
            }
        }
        any
    }

    fn is_done(&self, request: &Request) -> bool {
        let (reads, writes) = self.progress.get(&request.set).copied().unwrap_or_default();
        let done = if request.id.kind() == Kind::Read { reads } else { writes };
        // Without a request that is done there is none.
        done > 0 && request.id.is_done(done)
    }

    /// A transfer that has a red block from this place on, if it is that long.
    fn red(&mut self, nth: usize, set: Set, place: usize) {
        let bytes = self.transfers.moved[nth].bytes.get(place..).unwrap_or_default();
        let Ok(red) = Red::parse(bytes) else { return };
        self.progress.insert(set, (red.read_progress, red.write_progress));
        let mut open = std::mem::take(&mut self.open);
        open.retain(|open| {
            let is_done = self.requests[*open].set == set && self.is_done(&self.requests[*open]);
            let request = &mut self.requests[*open];
            if red.refusal != 0 && request.set == set && !is_done {
                request.refused =
                    Some("the engine has ended the set, whose entries make no sense".to_owned());
            }
            if is_done {
                request.parts.push((nth, Role::RedBlock));
            }
            !is_done
        });
        self.open = open;
    }

    /// A transfer from or to a pool: of the first request that waits for it.
    fn pool(&mut self, nth: usize, what: OperationKind, address: u64, bytes: u32) {
        let kind = if what == OperationKind::Read { Kind::Read } else { Kind::Write };
        let Some(regions) = self.regions else { return self.vote(kind, address, bytes) };
        for open in &self.open {
            let request = &mut self.requests[*open];
            let start = regions.get(&request.region()).filter(|_| request.id.kind() == kind);
            if start.is_some_and(|start| request.moves(*start, address, bytes)) {
                request.parts.push((nth, Role::Pool));
                break;
            }
        }
    }

    fn vote(&mut self, kind: Kind, address: u64, bytes: u32) {
        if self.voters == VOTERS_MAX {
            return;
        }
        self.voters += 1;
        let requests = self.open.iter().map(|open| &self.requests[*open]);
        // Each region has one vote for each address, whatever the number of requests.
        let fits: HashSet<(Region, u64)> = requests
            .filter(|one| one.id.kind() == kind && bytes <= one.bytes)
            .map(|one| (one.region(), address.wrapping_sub(one.remote)))
            .collect();
        for (region, start) in fits {
            *self.votes.entry(region).or_default().entry(start).or_default() += 1;
        }
    }
}

/// Where both blocks of sets are.
fn sets(transfers: &Transfers) -> BTreeSet<Set> {
    let (mut green, mut red) = (BTreeSet::new(), BTreeSet::new());
    for one in &transfers.operations {
        match (one.what, one.address, one.bytes) {
            (Some(OperationKind::Read), Some(at), Some(bytes)) if PROBES.contains(&bytes) => {
                green.insert((one.to, at));
            }
            (Some(OperationKind::Write), Some(at), Some(bytes))
                if bytes == Red::BYTES as u32 && at >= RED_AT =>
            {
                red.insert((one.to, at - RED_AT));
            }
            _ => {}
        }
    }
    green.intersection(&red).copied().collect()
}

/// Requests of all frames, which are in order of time, in the order in which the engine finds them.
pub fn operations(seen: &[Seen<'_>]) -> Vec<Operation> {
    let transfers = rdma::transfers(seen, ENTRIES_BYTES_MAX);
    let sets = sets(&transfers);
    // A request that is moved in pieces votes for several addresses, the first of which is right.
    let most = |votes: HashMap<u64, usize>| {
        let most = votes.into_iter().max_by_key(|(start, votes)| (*votes, Reverse(*start)));
        most.map_or(0, |(start, _)| start)
    };
    let votes = Walk::run(&transfers, &sets, None).votes;
    let regions = votes.into_iter().map(|(region, votes)| (region, most(votes))).collect();
    let requests = Walk::run(&transfers, &sets, Some(&regions)).requests;
    let mut all = Vec::new();
    for request in &requests {
        operation(&mut all, &transfers, request);
    }
    all
}

/// Adds a request with the frames of its transfers. It is complete once a red block that covers it is on its thread's link.
fn operation(all: &mut Vec<Operation>, transfers: &Transfers, request: &Request) {
    let part = |role: Role| request.parts.iter().find(|(_, of)| *of == role).map(|(nth, _)| *nth);
    let of = |nth: usize| &transfers.operations[nth];
    let engine = part(Role::Entry).map_or(request.set.0, |nth| of(nth).from);
    let to = part(Role::Pool).map_or(engine, |nth| of(nth).to);
    let nth = begin(all, request.set.0, to, request.id.number() as u32);
    let one = &mut all[nth];
    one.what = Some(if request.id.kind() == Kind::Read { OperationKind::Read } else { OperationKind::Write });
    (one.address, one.bytes) = (Some(request.remote), Some(request.bytes));
    one.refused = request.refused.clone();
    for (nth, role) in &request.parts {
        let (transfer, mut first) = (of(*nth), 0);
        if *role == Role::Entry {
            // The same READ may have read the entry before its thread wrote it.
            let before = &transfer.events[..transfers.moved[*nth].changed];
            first = before.iter().rposition(|event| event.kind != "READ REQUEST").map_or(0, |nth| nth + 1);
        }
        one.refused = one.refused.take().or_else(|| transfer.refused.clone());
        one.events.extend(transfer.events[first..].iter().cloned().map(|mut event| {
            event.says = format!("{}: {}", role.name(), event.says);
            event
        }));
        if *role == Role::RedBlock {
            one.last_at = transfer.events.first().map(|event| event.at.clone());
            one.complete =
                transfer.events.iter().any(|event| event.kind == "ACK" || event.at.ends_with("_out"));
        }
    }
    one.events.sort_by_key(|event| event.time_ns);
}

#[cfg(test)]
#[path = "rings_tests.rs"]
mod tests;
