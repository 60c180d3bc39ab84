//! How often allocations meet full buckets while a board's memory fills (paper, Figure 13). There is no rack, and time is not measured.
//!
//! The artifact prints the sum of retries over all allocations within one percent of the table's slots; so does this.

use super::direct::{Direct, Failed};
use super::experiment::ClioExperiment;
use super::memory::SimMemory;
use super::setup::{config, secret};
use p4rack_fabric::clio::board::{Board, Config, Grant, Pool, Quota, Quotas};
use p4rack_wire::clio::{PAGE_SIZES, Status};
use p4rack_wire::{Nanos, SplitMix};
use serde::Serialize;

/// Results of filling one or more boards: means over the boards, unless they say otherwise.
#[derive(Clone, Debug, Serialize)]
pub struct FillOutcome {
    /// Pages of an allocation.
    pub pages: u32,
    /// Frames of the memory.
    pub frames: u32,
    /// Slots of the page table.
    pub slots: u64,
    /// Allocations of a board.
    pub allocations: f64,
    /// Retries in each percent of the slots, all allocations together.
    pub by_percent: Vec<f64>,
    /// Retries in all.
    pub retries: f64,
    /// Retries of an allocation.
    pub mean: f64,
    /// The most retries of one allocation at any board.
    pub most: u64,
    /// The first percent of the slots with a retry at any board.
    pub first_percent: Option<u64>,
    /// Allocations that found no addresses, at all boards.
    pub failed: u64,
    /// How much of the memory was allocated.
    pub filled_percent: f64,
    /// Ranges that were freed and allocated again, at all boards.
    pub churned: u64,
    /// Retries of one of these; none without them.
    pub churn_mean: Option<f64>,
    /// The most of one of these at any board.
    pub churn_most: Option<u64>,
}

impl FillOutcome {
    /// Checks that failed.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.allocations == 0.0 {
            problems.push("nothing was allocated".to_owned());
        }
        if self.failed > 0 {
            problems.push(format!("{} allocations found no addresses", self.failed));
        }
        problems
    }
}

/// A range that is allocated.
struct Allocated {
    grant: Grant,
    address: u64,
}

/// A board that is being filled.
struct Filling<'a> {
    experiment: &'a ClioExperiment,
    board: Board<SimMemory, super::rack::End>,
    direct: Direct,
    grants: Vec<Grant>,
    turn: usize,
}

impl Filling<'_> {
    /// Allocates a range of the next process. Returns it, unless there are no addresses, and how many retries it took.
    fn alloc(&mut self) -> Result<(Option<Allocated>, u64), String> {
        self.turn = (self.turn + 1) % self.grants.len();
        let grant = self.grants[self.turn];
        let (size, pages) = (self.experiment.page_size, self.experiment.spec.fill.pages);
        let before = self.board.counters().search_retries;
        let address = self.direct.alloc(&mut self.board, &grant, size, pages.into());
        let retries = self.board.counters().search_retries - before;
        match address {
            Ok(address) => Ok((Some(Allocated { grant, address }), retries)),
            Err(Failed::Refused(Status::NoAddressSpace)) => Ok((None, retries)),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Fills the boards of an experiment. Errors: a board refuses the configuration.
pub(super) fn fill(experiment: &ClioExperiment) -> Result<FillOutcome, String> {
    let spec = &experiment.spec.fill;
    let boards = f64::from(spec.boards);
    let mut sum = FillOutcome {
        pages: spec.pages,
        frames: spec.frames,
        slots: 0,
        allocations: 0.0,
        by_percent: vec![0.0; 101],
        retries: 0.0,
        mean: 0.0,
        most: 0,
        first_percent: None,
        failed: 0,
        filled_percent: 0.0,
        churned: 0,
        churn_mean: None,
        churn_most: None,
    };
    let mut churn_retries = 0;
    for nth in 0..spec.boards {
        churn_retries += one(experiment, u64::from(nth), &mut sum)?;
    }
    for value in &mut sum.by_percent {
        *value /= boards;
    }
    sum.retries = sum.by_percent.iter().sum();
    sum.mean = if sum.allocations > 0.0 { sum.retries * boards / sum.allocations } else { 0.0 };
    sum.allocations /= boards;
    sum.filled_percent /= boards;
    sum.churn_mean = (sum.churned > 0).then(|| churn_retries as f64 / sum.churned as f64);
    Ok(sum)
}

/// Fills a board. Returns the retries while ranges are freed and allocated again.
fn one(experiment: &ClioExperiment, nth: u64, sum: &mut FillOutcome) -> Result<u64, String> {
    let (spec, size) = (&experiment.spec.fill, experiment.page_size);
    let config = Config {
        pools: vec![Pool { size, frames: spec.frames, ready: 1 }],
        processes_max: spec.processes.into(),
        step_pages: 1 << 16,
        retry_keep: Nanos::ZERO,
        ..config(experiment)
    };
    let memory = SimMemory::bare(config.bytes());
    let seed = experiment.spec.seed.wrapping_mul(1_000_003).wrapping_add(nth);
    let mut board = Board::new(config, secret(seed), memory).map_err(|error| error.to_string())?;
    let mut quotas: Quotas = [Quota::default(); PAGE_SIZES];
    quotas[size as usize].limit = u32::MAX;
    let grants = (0..spec.processes).map(|_| board.begin(quotas).map_err(|error| error.to_string()));
    let grants = grants.collect::<Result<Vec<Grant>, String>>()?;
    let mut filling = Filling { experiment, board, direct: Direct::new(), grants, turn: 0 };
    let slots = filling.board.table().slots();
    let most = u64::from(spec.frames) * u64::from(spec.percent) / 100;
    let mut ranges = Vec::new();
    sum.slots = slots;
    while filling.board.table().taken() + u64::from(spec.pages) <= most {
        let at = filling.board.table().taken() * 100 / slots;
        let (range, retries) = filling.alloc()?;
        sum.by_percent[at as usize] += retries as f64;
        sum.most = sum.most.max(retries);
        if retries > 0 {
            sum.first_percent = Some(sum.first_percent.map_or(at, |first| first.min(at)));
        }
        let Some(range) = range else {
            sum.failed += 1;
            break;
        };
        sum.allocations += 1.0;
        ranges.push(range);
    }
    sum.filled_percent += filling.board.table().taken() as f64 * 100.0 / f64::from(spec.frames);
    churn(&mut filling, ranges, seed, sum)
}

/// Frees ranges and allocates others in their place. Returns the retries.
fn churn(
    filling: &mut Filling<'_>,
    mut ranges: Vec<Allocated>,
    seed: u64,
    sum: &mut FillOutcome,
) -> Result<u64, String> {
    let (spec, size) = (&filling.experiment.spec.fill, filling.experiment.page_size);
    let (mut random, mut all) = (SplitMix(seed), 0);
    for _ in 0..spec.churn {
        let Some(last) = ranges.len().checked_sub(1) else { break };
        let Allocated { grant, address } = ranges.swap_remove(random.between(0, last as u64) as usize);
        let bytes = u64::from(spec.pages) * size.bytes();
        let freed = filling.direct.free(&mut filling.board, &grant, address, bytes);
        freed.map_err(|error| error.to_string())?;
        let (range, retries) = filling.alloc()?;
        all += retries;
        sum.churned += 1;
        sum.churn_most = sum.churn_most.max(Some(retries));
        match range {
            Some(range) => ranges.push(range),
            None => sum.failed += 1,
        }
    }
    Ok(all)
}
