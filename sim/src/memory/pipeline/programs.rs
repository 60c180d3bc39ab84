//! Programs that ask from outside, over the generated program of EDM: one on each compute node, and a memory node for all of them.
//!
//! A write of EDM has no answer, and a read may overtake it. So a write ends here when it has been read back, as for the library's
//! programs (`p4rack_hosts::remote::Certain`).

use super::node::PipelineHost;
use super::rack::rack;
use super::{KEY, Params, inside_ps};
use crate::experiment::LinkSpec;
use crate::memory::host::EdmHost;
use crate::memory::latency::Modules;
use crate::memory::programs::{Delays, MemoryRack};
use crate::requests::{Ask, Ended, PoolLink, Requests, Sharing, Transfer};
use crate::switch::P4;
use p4rack_codegen::Arch;
use p4rack_codegen::scheme::edm::{Edm, Mode};
use p4rack_fabric::edm::host::compute::{Outcome, Request};
use p4rack_wire::edm::{Kind, parse_frame};
use p4rack_wire::{EtherType, Nanos};
use std::collections::BTreeMap;

/// An access to memory: DRAM beside the memory node's link (EDM, §4.3).
const MEMORY_PS: u64 = 82_000;
/// Messages that wait in a compute node.
const PENDING_MAX: usize = 1 << 12;

/// A rack whose compute nodes reach a memory node by EDM.
#[derive(Debug)]
pub(crate) struct EdmPrograms {
    rack: MemoryRack,
    sharing: Sharing,
    /// By host and the number there.
    under_way: BTreeMap<(usize, u64), UnderWay>,
}

/// A request, or the read that looks whether a write has arrived.
#[derive(Debug)]
struct UnderWay {
    tag: u64,
    address: u64,
    /// Data of a write.
    written: Option<Vec<u8>>,
}

/// From a host's link to its machines.
fn inside(frame: &[u8]) -> Nanos {
    let kind =
        parse_frame(frame, EtherType::EDM_DEFAULT).and_then(|(_, payload)| Kind::of(*payload.first()?).ok());
    Nanos(inside_ps(&Modules::PIPELINE, MEMORY_PS, kind) / 1_000)
}

impl EdmPrograms {
    /// The rack at time 0, with open sessions. Errors: no program has these parameters.
    pub fn new(mode: Mode, sharing: Sharing) -> Result<EdmPrograms, String> {
        let edm = Edm::new(mode, Vec::new());
        let params = Params {
            mode,
            nodes: sharing.nodes + 1,
            rate_bps: sharing.rate_bps,
            modules: Modules::PIPELINE,
            memory_ps: MEMORY_PS,
            chunk_bytes: edm.chunk_bytes,
            window: edm.window,
            demands: edm.demands,
            headroom_percent: edm.headroom_percent,
            classes: edm.classes,
            ahead: edm.ahead,
            arch: Arch::V1model,
            shares: edm.shares,
            attackers: Vec::new(),
            pass_ns: 0,
            pending_max: PENDING_MAX,
            link: LinkSpec::default(),
            dma_ns: None,
            seed: sharing.seed,
        };
        let of_edm = rack(&params)?;
        let edm = of_edm.protocol::<Edm>().ok_or("the rack lost its protocol")?;
        let timeout = edm.expiry(&of_edm) + Nanos::from_millis(1);
        let machines = |node: u16| -> Result<EdmHost, String> {
            let bytes = if node == sharing.nodes { sharing.pool_bytes() } else { 8 };
            let bytes =
                usize::try_from(bytes).map_err(|_| "the pool is larger than this machine's memory")?;
            Ok(PipelineHost::new(&params, timeout, bytes)?.machines)
        };
        let hosts = (0..params.nodes).map(machines).collect::<Result<_, String>>()?;
        let switch = P4::on(&of_edm, mode.scheme(), params.arch, |config| config.seed = params.seed)
            .map_err(|error| error.to_string())?;
        let (link_ns, forward_ns) = (Modules::PIPELINE.link_ps / 1_000, Modules::PIPELINE.forward_ps / 1_000);
        let delays = Delays { link: Nanos(link_ns), forward: Nanos(forward_ns), inside: Some(inside) };
        let rack = MemoryRack::of(&of_edm, switch, hosts, delays)?;
        Ok(EdmPrograms { rack, sharing, under_way: BTreeMap::new() })
    }
}

impl EdmPrograms {
    fn ask_of(&mut self, host: usize, request: Request, one: UnderWay) -> Result<(), String> {
        let asked = self.rack.ask(host, self.sharing.nodes, KEY, one.address, request);
        let number = asked.map_err(|refused| format!("EDM's compute node refuses a request: {refused:?}"))?;
        self.under_way.insert((host, number), one);
        Ok(())
    }
}

impl Requests for EdmPrograms {
    fn start_ps(&self) -> u64 {
        0
    }

    fn ask(&mut self, ask: Ask<'_>, now_ps: u64) -> Result<(), String> {
        let (request, written) = match ask.what {
            Transfer::Read(bytes) => (Request::Read(bytes), None),
            Transfer::Write(bytes) => (Request::Write(bytes.to_vec()), Some(bytes.to_vec())),
        };
        let address = self.sharing.place(ask.node, ask.address);
        // A machine's clock counts nanoseconds.
        self.rack.advance(Nanos(now_ps.div_ceil(1_000)));
        self.ask_of(ask.node.into(), request, UnderWay { tag: ask.tag, address, written })
    }

    fn next(&mut self, until_ps: u64) -> Option<Ended> {
        loop {
            let (host, number, outcome) = self.rack.next(Nanos(until_ps / 1_000))?;
            let Some(one) = self.under_way.remove(&(host, number)) else { continue };
            let tag = one.tag;
            let bytes = match (outcome, &one.written) {
                (Outcome::Answer(bytes), None) => Some(bytes),
                (Outcome::Answer(bytes), Some(written)) if bytes == *written => Some(Vec::new()),
                (Outcome::Answer(_) | Outcome::Sent, Some(written)) => {
                    let look = Request::Read(written.len() as u32);
                    if self.ask_of(host, look, one).is_ok() {
                        continue;
                    }
                    None
                }
                _ => None,
            };
            return Some(Ended { node: host as u16, tag, at_ps: self.rack.now().0 * 1_000, bytes });
        }
    }

    fn fresh(&self, _node: u16, _address: u64) -> u64 {
        0
    }

    fn pool(&self, now_ps: u64) -> PoolLink {
        self.rack.link(self.sharing.nodes.into(), Nanos(now_ps / 1_000))
    }
}
