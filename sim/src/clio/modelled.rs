//! The baselines: RDMA as the paper describes it, modelled. Their packets have the lengths of RoCE's and cross the same links and
//! switch; at the memory node they take the time of caches, PCIe and cores.
//!
//! ```text
//!  operation ─ exchange ─▶ packets ─▶ adapter: queue pair, page, region cached? ─┬─ one-sided: PCIe ──▶ answer
//!      ▲          │ 2nd: Clover's pointer                                        └─ two-sided: PCIe, core, PCIe ─▶ answer
//!      └──────────┴───────────────────────────────────────────────────────────────────────────────────────┘
//! ```

use super::costs::RdmaCosts;
use super::rack::End;
use super::spec::ClioScheme;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

/// Bytes of a packet's contents: tag 8, kind 1, step 1, parts 2, bytes to read 4, page 4. As long as BTH, AETH and iCRC of an answer.
const SAYS: usize = 20;
/// Bytes of a request without data: BTH, RETH and iCRC.
const REQUEST_BYTES: usize = 32;
/// Data of a packet: RoCE's MTU.
const PART_BYTES: u64 = 1_024;
/// Bytes of a compare-and-swap: its operands, and its result.
const SWAP_BYTES: (u64, u64) = (16, 8);

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub write: bool,
    pub bytes: u64,
    pub page: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Says {
    tag: u64,
    is_answer: bool,
    step: u8,
    parts: u16,
    want: u32,
    page: u32,
}

impl Says {
    fn emit(&self, data: u64, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&self.tag.to_be_bytes());
        out.extend_from_slice(&[u8::from(self.is_answer), self.step]);
        out.extend_from_slice(&self.parts.to_be_bytes());
        out.extend_from_slice(&self.want.to_be_bytes());
        out.extend_from_slice(&self.page.to_be_bytes());
        let head = if self.is_answer { SAYS } else { REQUEST_BYTES };
        out.resize(head + data as usize, 0);
    }

    fn parse(bytes: &[u8]) -> Option<Says> {
        let number = |at: usize, len: usize| {
            bytes.get(at..at + len).map(|part| part.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
        };
        Some(Says {
            tag: number(0, 8)?,
            is_answer: number(8, 1)? == 1,
            step: number(9, 1)? as u8,
            parts: number(10, 2)? as u16,
            want: number(12, 4)? as u32,
            page: number(16, 4)? as u32,
        })
    }
}

/// Packets of a message, and the data of each but the last one.
fn parts_of(bytes: u64) -> u16 {
    bytes.div_ceil(PART_BYTES).clamp(1, u16::MAX.into()) as u16
}

/// Data of the packet with `left` bytes to go.
fn data_of(left: u64) -> u64 {
    left.min(PART_BYTES)
}

/// Bytes out and back of an exchange; `None`: the operation is over.
fn exchange(scheme: ClioScheme, ask: &Ask, step: u8) -> Option<(u64, u64)> {
    match (scheme, step) {
        (_, 0) => Some(if ask.write { (ask.bytes, 0) } else { (0, ask.bytes) }),
        (ClioScheme::TwoRoundTrips, 1) if ask.write => Some(SWAP_BYTES),
        _ => None,
    }
}

/// A message on its way out.
#[derive(Clone, Copy, Debug)]
struct Outgoing {
    to: u16,
    says: Says,
    /// Data of the message, and the bytes that have not left.
    bytes: u64,
    left: u64,
}

/// A packet's way out of a compute node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Posted {
    /// The memory node that it is for.
    pub to: u16,
    /// Data of its message.
    pub bytes: u64,
    /// Whether posting it takes time of its own: it is of a second exchange.
    pub is_posted_again: bool,
}

/// An operation under way.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    ask: Ask,
    node: u16,
    step: u8,
    /// Packets of the answer that have come.
    came: u16,
}

/// A process of a compute node.
#[derive(Debug, Default)]
pub(super) struct ModelClient {
    under_way: BTreeMap<u64, UnderWay>,
    outgoing: VecDeque<Outgoing>,
}

impl ModelClient {
    /// Begins an operation. The caller limits how many are under way.
    pub fn submit(&mut self, scheme: ClioScheme, tag: u64, node: u16, ask: Ask) {
        self.under_way.insert(tag, UnderWay { ask, node, step: 0, came: 0 });
        self.ask(scheme, tag);
    }

    fn ask(&mut self, scheme: ClioScheme, tag: u64) -> bool {
        let Some(one) = self.under_way.get(&tag) else { return false };
        let Some((out, back)) = exchange(scheme, &one.ask, one.step) else { return false };
        let (parts, want, page) = (parts_of(out), back as u32, one.ask.page as u32);
        let says = Says { tag, is_answer: false, step: one.step, parts, want, page };
        self.outgoing.push_back(Outgoing { to: one.node, says, bytes: out, left: out });
        true
    }

    /// Writes the next packet over `out`.
    pub fn poll(&mut self, out: &mut Vec<u8>) -> Option<Posted> {
        let first = self.outgoing.front_mut()?;
        let (says, data) = (first.says, data_of(first.left));
        let posted = Posted { to: first.to, bytes: first.bytes, is_posted_again: says.step > 0 };
        first.left -= data;
        if first.left == 0 {
            self.outgoing.pop_front();
        }
        says.emit(data, out);
        Some(posted)
    }

    /// Handles a packet of an answer. Returns the tag of an operation that has ended.
    pub fn handle(&mut self, scheme: ClioScheme, bytes: &[u8]) -> Option<u64> {
        let says = Says::parse(bytes).filter(|says| says.is_answer)?;
        let one = self.under_way.get_mut(&says.tag).filter(|one| one.step == says.step)?;
        one.came += 1;
        if one.came < says.parts {
            return None;
        }
        (one.step, one.came) = (one.step + 1, 0);
        if self.ask(scheme, says.tag) {
            return None;
        }
        self.under_way.remove(&says.tag);
        Some(says.tag)
    }
}

/// Keys that were used last.
#[derive(Debug)]
struct Cached {
    most: u64,
    now: u64,
    used: BTreeMap<u64, u64>,
    by_time: BTreeMap<u64, u64>,
}

impl Cached {
    fn new(most: u64) -> Cached {
        Cached { most, now: 0, used: BTreeMap::new(), by_time: BTreeMap::new() }
    }

    /// Uses a key. Returns whether it was present.
    fn touch(&mut self, key: u64) -> bool {
        self.now += 1;
        let before = self.used.insert(key, self.now);
        if let Some(before) = before {
            self.by_time.remove(&before);
        } else if self.used.len() as u64 > self.most
            && let Some((_, oldest)) = self.by_time.pop_first()
        {
            self.used.remove(&oldest);
        }
        self.by_time.insert(self.now, key);
        before.is_some()
    }
}

/// Memory of a memory node, and its adapter's access to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Longest answer of a core that is sent inline.
    pub inline_bytes: u64,
    /// A read of memory by the adapter.
    pub fetch_ns: u64,
    /// Memory regions of a queue pair, or of all if they share the memory.
    pub regions: u64,
    /// Whether pages have memory.
    pub touched: bool,
    /// Whether all queue pairs use the same pages.
    pub is_shared: bool,
}

/// A memory node.
#[derive(Debug)]
pub(super) struct ModelNode {
    scheme: ClioScheme,
    costs: RdmaCosts,
    shape: Shape,
    pairs: Cached,
    pages: Cached,
    cached_regions: Cached,
    used: BTreeSet<u64>,
    /// When each core is free.
    cores: BinaryHeap<std::cmp::Reverse<u64>>,
    /// Packets of requests that have come, by sender, tag and step.
    came: BTreeMap<(u16, u16, u64, u8), (u16, u64)>,
    /// Misses of any cache, and page faults.
    pub misses: u64,
    pub faults: u64,
}

impl ModelNode {
    pub fn new(scheme: ClioScheme, costs: RdmaCosts, shape: Shape) -> ModelNode {
        ModelNode {
            scheme,
            costs,
            shape,
            pairs: Cached::new(costs.cached_pairs),
            pages: Cached::new(costs.cached_pages),
            cached_regions: Cached::new(costs.cached_regions),
            used: BTreeSet::new(),
            cores: (0..costs.cores).map(|_| std::cmp::Reverse(0)).collect(),
            came: BTreeMap::new(),
            misses: 0,
            faults: 0,
        }
    }

    /// Handles a packet of a request. Calls `answer` with the packets of the answer and when they are at the link, when it is whole.
    pub fn take(&mut self, from: End, bytes: &[u8], now_ps: u64, mut answer: impl FnMut(u64, &[u8])) {
        let Some(says) = Says::parse(bytes).filter(|says| !says.is_answer) else { return };
        let key = (from.host, from.port, says.tag, says.step);
        let data = bytes.len().saturating_sub(REQUEST_BYTES) as u64;
        let came = self.came.entry(key).or_default();
        (came.0, came.1) = (came.0 + 1, came.1 + data);
        if came.0 < says.parts {
            return;
        }
        let (_, data) = self.came.remove(&key).unwrap_or_default();
        let mut at_ps = now_ps + self.serve_ns(from, &says) * 1_000;
        let want = u64::from(says.want);
        if self.scheme == ClioScheme::RdmaTwoSided {
            at_ps = self.core(at_ps, data.max(want)) + self.reply_ns(want) * 1_000;
        } else if want > 0 {
            at_ps += self.shape.fetch_ns * 1_000;
        }
        at_ps += self.costs.packet_ns * 1_000;
        let says = Says { is_answer: true, parts: parts_of(want), want: 0, ..says };
        let (mut left, mut out) = (want, Vec::new());
        for _ in 0..says.parts {
            says.emit(data_of(left), &mut out);
            left -= data_of(left);
            answer(at_ps, &out);
        }
    }

    /// The adapter's time for a request: its caches, and a page fault. Two-sided requests land in a ring that is always cached; a core
    /// accesses the pages.
    fn serve_ns(&mut self, from: End, says: &Says) -> u64 {
        let pair = u64::from(from.host) << 16 | u64::from(from.port);
        let mut misses = u64::from(!self.pairs.touch(pair));
        let mut is_fault = false;
        if self.scheme != ClioScheme::RdmaTwoSided {
            let space = if self.shape.is_shared { 0 } else { pair << 32 };
            let page = space | u64::from(says.page);
            let region = space | (u64::from(says.page) % self.shape.regions);
            misses += u64::from(!self.pages.touch(page)) + u64::from(!self.cached_regions.touch(region));
            is_fault = !self.shape.touched && self.used.insert(page);
        }
        self.misses += misses;
        self.faults += u64::from(is_fault);
        let fault_ns = if is_fault { self.costs.fault_ns } else { 0 };
        self.costs.packet_ns + misses * self.costs.miss_ns + fault_ns
    }

    /// When a core has served a request of `bytes` bytes that is in the adapter.
    fn core(&mut self, at_ps: u64, bytes: u64) -> u64 {
        let in_memory_ps = at_ps + self.costs.pcie_ns * 1_000;
        let free_ps = self.cores.pop().map_or(0, |free| free.0);
        let lines = bytes.div_ceil(64).saturating_sub(1);
        let work_ns =
            self.costs.serve_ns + self.costs.access_ns + lines * self.costs.line_ns + self.costs.post_ns;
        let done_ps = in_memory_ps.max(free_ps) + work_ns * 1_000;
        self.cores.push(std::cmp::Reverse(done_ps));
        done_ps
    }

    /// From a core's doorbell to the adapter, with the data if that is not inline.
    fn reply_ns(&self, bytes: u64) -> u64 {
        let is_fetched = bytes > self.shape.inline_bytes;
        self.costs.pcie_ns + if is_fetched { self.shape.fetch_ns } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::costs::{Profile, RdmaSpec};
    use super::*;

    const FROM: End = End { host: 0, port: 7 };

    /// The time of an operation in the memory node, and its exchanges.
    fn run(scheme: ClioScheme, node: &mut ModelNode, ask: Ask) -> (u64, u32) {
        let (mut client, mut out, mut now_ps, mut exchanges) = (ModelClient::default(), Vec::new(), 0, 0);
        client.submit(scheme, 5, 0, ask);
        loop {
            let mut answers = Vec::new();
            while client.poll(&mut out).is_some() {
                node.take(FROM, &out, now_ps, |at_ps, answer| answers.push((at_ps, answer.to_vec())));
            }
            exchanges += 1;
            now_ps = answers.last().unwrap().0;
            let ended = answers.iter().filter_map(|(_, answer)| client.handle(scheme, answer)).last();
            if ended.is_some() {
                return (now_ps / 1_000, exchanges);
            }
        }
    }

    fn shaped(scheme: ClioScheme, touched: bool, is_shared: bool) -> ModelNode {
        let shape = Shape { inline_bytes: 128, fetch_ns: 350, regions: 1, touched, is_shared };
        ModelNode::new(scheme, RdmaSpec::default().with(Profile::Fpga), shape)
    }

    fn node(scheme: ClioScheme, touched: bool) -> ModelNode {
        shaped(scheme, touched, false)
    }

    #[test]
    fn misses_and_faults_take_what_the_table_says() {
        let mut node = node(ClioScheme::Rdma, false);
        let ask = Ask { write: false, bytes: 16, page: 3 };
        // Packets 2 · 50, a fetch; three caches miss, and the page has no memory.
        let first = run(ClioScheme::Rdma, &mut node, ask).0;
        assert_eq!((first, node.misses, node.faults), (450 + 3 * 900 + 16_800_000, 3, 1));
        assert_eq!(run(ClioScheme::Rdma, &mut node, ask).0, 450);
        for page in 0..256 {
            run(ClioScheme::Rdma, &mut node, Ask { page: 1_000 + page, ..ask });
        }
        assert_eq!(run(ClioScheme::Rdma, &mut node, ask).0, 450 + 900, "256 pages are cached");
    }

    /// A core accesses the pages of two-sided requests, so these miss no page or region, and fetch only long answers.
    #[test]
    fn two_sided_requests_only_miss_their_queue_pair() {
        let scheme = ClioScheme::RdmaTwoSided;
        let mut node = node(scheme, false);
        // Packets 2 · 50, PCIe 2 · 250, a core 83 + 180 + 175 and 8 for each further line.
        let of = |bytes: u64| Ask { write: false, bytes, page: bytes };
        assert_eq!(run(scheme, &mut node, of(16)).0, 600 + 438 + 900);
        assert_eq!((node.misses, node.faults), (1, 0));
        assert_eq!(run(scheme, &mut node, of(128)).0, 600 + 438 + 8, "inline");
        assert_eq!(run(scheme, &mut node, of(129)).0, 600 + 438 + 16 + 350);
        assert_eq!((node.misses, node.faults), (1, 0));
    }

    /// Queue pairs that share a store find the pages in the cache that others have used.
    #[test]
    fn queue_pairs_of_a_store_share_its_pages() {
        let misses = |is_shared: bool| {
            let mut node = shaped(ClioScheme::Rdma, true, is_shared);
            for port in [7, 8] {
                let (mut client, mut out) = (ModelClient::default(), Vec::new());
                client.submit(ClioScheme::Rdma, 1, 0, Ask { write: false, bytes: 16, page: 3 });
                client.poll(&mut out).unwrap();
                node.take(End { host: 0, port }, &out, 0, |_, _| {});
            }
            node.misses
        };
        assert_eq!((misses(false), misses(true)), (6, 4));
    }

    #[test]
    fn writes_of_two_round_trips_have_two_exchanges() {
        for (scheme, write, exchanges) in [
            (ClioScheme::Rdma, true, 1),
            (ClioScheme::TwoRoundTrips, false, 1),
            (ClioScheme::TwoRoundTrips, true, 2),
            (ClioScheme::RdmaTwoSided, true, 1),
        ] {
            let ask = Ask { write, bytes: 5_000, page: 0 };
            assert_eq!(run(scheme, &mut node(scheme, true), ask).1, exchanges, "{scheme:?}");
        }
    }
}
