//! The memory of a network before a run: nodes and boards with its first contents, and each flow's client.

use super::board::{BoardNode, Library};
use super::cells::ALIGNED;
use super::client::{Client, Reach};
use super::machines::Machines;
use super::node::EdmNode;
use super::operations::{Operations, Pace};
use super::reach::{Offer, offer, way};
use crate::clio::{Direct, End, KEPT_BYTES, SimMemory, secret};
use crate::memory::EdmHost;
use crate::random::{Distribution, Random};
use p4rack_codegen::rack::Rack;
use p4rack_codegen::scheme::clio::Clio;
use p4rack_codegen::scheme::edm::Edm;
use p4rack_codegen::topology::Topology;
use p4rack_fabric::clio::board::{Board, Quota, Quotas};
use p4rack_fabric::clio::lib::{self, Credentials};
use p4rack_fabric::edm::host::{compute, memory};
use p4rack_wire::Nanos;
use p4rack_wire::clio::PAGE_SIZES;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

/// The key of all memory.
const KEY: u32 = 1;
/// Bytes of a host's memory at most, as a board's in other racks.
const BYTES_MAX: u64 = KEPT_BYTES;

/// A flow that uses another host's memory.
#[derive(Clone, Debug)]
pub(in crate::topology) struct Wanted {
    /// Number of the flow, and name of its traffic.
    pub flow: u16,
    pub traffic: String,
    pub way: String,
    /// Hosts: the client, and the owner of the memory.
    pub from: usize,
    pub to: usize,
    /// Bytes of its part, and of operations.
    pub part_bytes: u64,
    pub sizes: Arc<Distribution>,
    pub pace: Pace,
    pub random: Random,
}

/// See the module.
#[derive(Debug, Default)]
pub(in crate::topology) struct Setup {
    /// By host.
    machines: BTreeMap<usize, Machines>,
    /// By flow.
    clients: BTreeMap<u16, Client>,
}

/// A host under EDM while its memory is made.
#[derive(Debug)]
struct Draft<'t> {
    rack: &'t Rack,
    edm: &'t Edm,
    bytes: Vec<u8>,
}

/// A board while processes begin.
#[derive(Debug)]
struct BoardDraft<'t> {
    clio: &'t Clio,
    board: Board<SimMemory, End>,
    direct: Direct,
}

impl Setup {
    /// The memory for these flows; `is_damaged` plants a wrong byte into each flow's part. Errors name the traffic whose memory has no
    /// room.
    pub fn new(
        topology: &Topology,
        wanted: Vec<Wanted>,
        seed: u64,
        is_damaged: bool,
    ) -> Result<Setup, String> {
        let mut setup = Setup::default();
        let (mut nodes, mut boards) = (BTreeMap::new(), BTreeMap::new());
        for one in wanted {
            let in_traffic = |error: String| format!("traffic `{}`: {error}", one.traffic);
            let (flow, from, to) = (one.flow, one.from, one.to);
            let (rack, _, offer) = offer(topology, to, way(&one.way)?).map_err(in_traffic)?;
            let rewrite = match offer {
                Offer::Node(edm) => edm.patience(rack),
                Offer::Board(_) => Nanos::MAX,
            };
            let operations =
                Operations::new(one.part_bytes, &one.sizes, one.pace.clone(), rewrite, one.random.clone());
            let mut part = vec![0; one.part_bytes as usize];
            operations.begin(&mut part);
            if let Some(byte) = part.first_mut().filter(|_| is_damaged) {
                *byte ^= 1;
            }
            let reach = match offer {
                Offer::Node(edm) => {
                    let draft = || Draft { rack, edm, bytes: Vec::new() };
                    nodes.entry(from).or_insert_with(draft);
                    let bytes = &mut nodes.entry(to).or_insert_with(draft).bytes;
                    let address = add(bytes, &part).map_err(in_traffic)?;
                    let node = position(topology, to).map_err(in_traffic)? as u16;
                    Reach::Node { node, key: KEY, address }
                }
                Offer::Board(clio) => {
                    let draft = match boards.entry(to) {
                        Entry::Occupied(known) => known.into_mut(),
                        Entry::Vacant(place) => {
                            let made = BoardDraft::new(clio, seed.wrapping_add(to as u64));
                            place.insert(made.map_err(in_traffic)?)
                        }
                    };
                    Reach::Board(Box::new(draft.process(flow, &part).map_err(in_traffic)?))
                }
            };
            setup.clients.insert(flow, Client::new(operations, reach));
        }
        for (host, draft) in nodes {
            let node = draft.finish(topology, host).map_err(|error| {
                let name = &topology.hosts[host].name;
                format!("{name}: {error}")
            })?;
            setup.machines.entry(host).or_default().node = Some(node);
        }
        for (host, draft) in boards {
            let board = BoardNode::new(draft.board, draft.direct.now);
            setup.machines.entry(host).or_default().board = Some(board);
        }
        Ok(setup)
    }

    /// The machines of a host, if it has some.
    pub fn machines(&mut self, host: usize) -> Option<Machines> {
        self.machines.remove(&host)
    }

    /// The client of a flow. Errors: it uses no memory.
    pub fn client(&mut self, flow: u16) -> Result<Client, String> {
        self.clients.remove(&flow).ok_or_else(|| format!("flow {flow} uses no memory"))
    }
}

/// Number of a host as a node: its position in its rack.
fn position(topology: &Topology, host: usize) -> Result<usize, String> {
    let found = topology.in_rack(host).and_then(|(rack, own)| {
        let mut hosts = rack.hosts.iter();
        hosts.position(|other| other.port == own.port)
    });
    found.ok_or_else(|| format!("{} is in no rack", topology.hosts[host].name))
}

/// Adds a flow's part to a host's memory. Returns its address.
fn add(memory: &mut Vec<u8>, part: &[u8]) -> Result<u64, String> {
    let at = (memory.len() as u64).next_multiple_of(ALIGNED);
    if at + part.len() as u64 > BYTES_MAX {
        return Err(format!(
            "region: the flows' parts take more than {BYTES_MAX} bytes at one host; lower it, or name fewer senders"
        ));
    }
    memory.resize(at as usize, 0);
    memory.extend_from_slice(part);
    Ok(at)
}

impl Draft<'_> {
    fn finish(self, topology: &Topology, host: usize) -> Result<EdmNode, String> {
        let Draft { rack, edm, bytes } = self;
        let own = position(topology, host)?;
        let compute = compute::ComputeNode::new(edm.compute_node(rack, edm.patience(rack)), 1);
        let memory = match bytes.is_empty() {
            true => None,
            false => {
                let rights = memory::Rights { read: true, write: true };
                let region = memory::Region { start: 0, bytes, key: KEY, rights };
                Some(memory::MemoryNode::new(edm.memory_node(rack), vec![region])?)
            }
        };
        let nodes = rack.hosts.iter().map(|host| host.mac).collect();
        let machines = EdmHost { compute, memory };
        Ok(EdmNode::new(machines, edm.ether_type, (nodes, own), rack.hosts[own].rate_bps))
    }
}

impl<'t> BoardDraft<'t> {
    fn new(clio: &'t Clio, seed: u64) -> Result<BoardDraft<'t>, String> {
        let config = clio.board(clio.memory_bytes);
        let bytes = config.bytes();
        if bytes > BYTES_MAX {
            return Err(format!(
                "clio.memory: a board has at most {BYTES_MAX} bytes in virtual time, and this one {bytes}; lower it"
            ));
        }
        let board =
            Board::new(config, secret(seed), SimMemory::new(bytes)).map_err(|error| error.to_string())?;
        Ok(BoardDraft { clio, board, direct: Direct::new() })
    }

    /// Begins the process of a flow, whose memory has these bytes.
    fn process(&mut self, flow: u16, part: &[u8]) -> Result<Library, String> {
        let BoardDraft { clio, board, direct } = self;
        let (patience, config) = (clio.patience(), board.config());
        let config = lib::Config::on_host(patience, config.retry_keep, config.data_bytes_max);
        let size = clio.page_sizes.first().copied().ok_or("clio.page_sizes is empty")?;
        let pages = size.pages(part.len() as u64);
        let mut quotas: Quotas = [Quota::default(); PAGE_SIZES];
        quotas[size as usize].limit = pages as u32;
        let grant = board.begin(quotas).map_err(|error| {
            format!("{error}; raise clio.processes_max or clio.memory, or name fewer senders")
        })?;
        let room =
            |error| format!("region: {error}; lower it, raise clio.memory, or write smaller clio.page_sizes");
        let address = direct.alloc(board, &grant, size, pages).map_err(|failed| room(failed.to_string()))?;
        direct.write(board, &grant, address, part).map_err(|failed| room(failed.to_string()))?;
        let credentials = Credentials { pid: grant.space.pid, epoch: grant.space.epoch, token: grant.token };
        let client = lib::Client::new(config, &[credentials], flow.into());
        Ok(Library::new(client, address))
    }
}
