//! Boards before the run: processes, their memory, and the keys of a store. The time of this is not
//! measured.

use super::board::BoardNode;
use super::direct::{Direct, Failed};
use super::experiment::{ClioExperiment, KEY_BYTES};
use super::memory::SimMemory;
use super::offload::BoardStore;
use super::spec::Load;
use p4rack_fabric::clio::board::{Board, Config, Pool, Quota, Quotas};
use p4rack_fabric::clio::lib::Credentials;
use p4rack_fabric::clio::token::Secret;
use p4rack_offload::{Kv, KvArguments, KvFunction};
use p4rack_wire::clio::{Kind, PAGE_SIZES};
use p4rack_wire::{Nanos, SplitMix};

/// How long boards remember accesses, and calls of the slow path, which are fewer and take longer.
const MEMORY: [Nanos; 2] = [Nanos::from_micros(1_200), Nanos::from_secs(1)];
/// Calls of the store that wait or are being executed.
const CALLS_MAX: usize = 1 << 10;

/// A process at a board.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub credentials: Credentials,
    /// Address of its first page.
    pub address: u64,
}

/// A board with its processes, in the order of nodes and of their processes.
#[derive(Debug)]
pub(super) struct Ready {
    pub node: BoardNode,
    pub processes: Vec<At>,
    /// When all of this is done.
    pub at: Nanos,
}

/// The key with a number.
pub(super) fn key_of(number: u32) -> [u8; KEY_BYTES as usize] {
    u64::from(number).to_be_bytes()
}

/// Arguments of a call of the store. The value of a key is its number, again and again.
pub(super) fn arguments(key: u32, value_bytes: u32, out: &mut Vec<u8>) {
    out.clear();
    out.resize(KvArguments::BYTES, 0);
    KvArguments { value_address: 0, value_bytes, key_bytes: KEY_BYTES as u8, reserved: 0 }.emit(out);
    out.extend_from_slice(&key_of(key));
    let value = key_of(key);
    out.extend((0..value_bytes as usize).map(|at| value[at % value.len()]));
}

/// How long boards remember executed requests, and clients count on it.
pub(super) fn memory(experiment: &ClioExperiment) -> Nanos {
    MEMORY[usize::from(experiment.spec.load == Load::Allocations)]
}

/// Parameters of the boards.
pub(super) fn config(experiment: &ClioExperiment) -> Config {
    let spec = &experiment.spec;
    let size = experiment.page_size;
    let processes = u64::from(spec.compute_nodes) * u64::from(spec.processes);
    let frames = u32::try_from(experiment.frames()).unwrap_or(u32::MAX);
    let ready = spec.table.free_pages.min(frames);
    Config {
        index: experiment.index,
        bucket_slots: spec.table.bucket_slots,
        spare_percent: spec.table.spare_percent,
        tlb_entries: spec.table.tlb_entries,
        tlb_replacement: experiment.replacement,
        processes_max: processes as u32 + 1,
        data_bytes_max: spec.network.packet_bytes,
        calls_max: [if experiment.store_pages() > 0 { CALLS_MAX } else { 0 }; 2],
        retry_entries: 1 << 18,
        retry_keep: memory(experiment),
        step: Nanos(experiment.slow.step_ns),
        step_pages: experiment.slow.step_pages as u32,
        step_zero_bytes: experiment.slow.zero_bytes,
        ..Config::new(vec![Pool { size, frames, ready }])
    }
}

/// The token's secret: the hash of the page table depends on it.
pub(crate) fn secret(seed: u64) -> Secret {
    let mut random = SplitMix(seed);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&random.next().to_le_bytes());
    bytes[8..].copy_from_slice(&random.next().to_le_bytes());
    Secret::new(bytes)
}

/// A board with processes and memory. Fails if the board refuses the configuration or a request.
pub(super) fn board(experiment: &ClioExperiment, nth: u64) -> Result<Ready, String> {
    let (spec, size) = (&experiment.spec, experiment.page_size);
    let config = config(experiment);
    let memory = SimMemory::new(config.bytes());
    let secret = secret(spec.seed.wrapping_mul(0x9e37_79b9).wrapping_add(nth));
    let mut board = Board::new(config, secret, memory).map_err(|error| error.to_string())?;
    let mut direct = Direct::new();
    let failed = |error: Failed| error.to_string();
    let mut quotas: Quotas = [Quota::default(); PAGE_SIZES];
    quotas[size as usize].limit = u32::MAX;
    let mut processes = Vec::new();
    for _ in 0..u64::from(spec.compute_nodes) * u64::from(spec.processes) {
        let grant = board.begin(quotas).map_err(|error| error.to_string())?;
        let credentials = Credentials { pid: grant.space.pid, epoch: grant.space.epoch, token: grant.token };
        let pages = if spec.load == Load::Accesses { spec.pages } else { 0 };
        let address =
            if pages > 0 { direct.alloc(&mut board, &grant, size, pages).map_err(failed)? } else { 0 };
        if spec.touched {
            direct.touch(&mut board, &grant, (address, size, pages)).map_err(failed)?;
        }
        processes.push(At { credentials, address });
    }
    let pages = experiment.store_pages();
    let mut store = None;
    if pages > 0 {
        let own = board.begin(quotas).map_err(|error| error.to_string())?;
        let address = direct.alloc(&mut board, &own, size, pages).map_err(failed)?;
        direct.touch(&mut board, &own, (address, size, pages)).map_err(failed)?;
        let kv = Kv::new(own.space, address, pages * size.bytes(), experiment.buckets(), spec.seed);
        let mut kept = BoardStore::new(own.space, kv);
        let mut call = Vec::new();
        for key in 0..spec.keys {
            arguments(key, spec.bytes as u32, &mut call);
            let ends = (&mut board, Some(&mut kept));
            let create = (Kind::Call, KvFunction::Create as u8);
            direct.ask(ends, &own, create, (0, call.len() as u32), &call).map_err(failed)?;
        }
        store = Some(kept);
    }
    // Frames that faults will take are zeroed before.
    let usage = board.usage(size);
    while board.usage(size).ready < spec.table.free_pages.min(usage.frames - usage.taken) {
        direct.step(&mut board);
    }
    let mut node = BoardNode::new(board, experiment.board, experiment.slow);
    node.store = store;
    Ok(Ready { node, processes, at: direct.now })
}
