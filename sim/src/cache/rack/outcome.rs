//! A run, and its results.

use super::Rack;
use super::channel::{CachePlant, Channel, RequestCounts};
use super::conductor::{conduct, unloaded};
use super::node::{CachingNode, LocalTimes, Tally};
use crate::latency::Latency;
use crate::requests::{PoolLink, Requests};
use p4rack_cache::simulate::{Load, Outcome, PROFILES, Profile, Program, Setup, simulate};
use p4rack_cache::{Definition, Refused};
use p4rack_wire::Histogram;
use serde::Serialize;

/// Results that only a rack has.
#[derive(Clone, Debug, Serialize)]
pub struct RackOutcome {
    /// The way.
    pub way: &'static str,
    /// Compute nodes that share the pool.
    pub compute_nodes: u16,
    /// Rate of links.
    pub rate_gbps: f64,
    /// Times of the accesses that the CPU waited for.
    pub accesses_ns: Latency,
    /// Those that waited for a fetch.
    pub misses_ns: Latency,
    /// Of them, those whose block was on its way already, fetched ahead.
    pub late: u64,
    /// A read of one block, alone in the rack.
    pub unloaded_ns: u64,
    /// AMAT with fixed latencies: those of reads alone, at the link's rate.
    pub fixed_amat_ns: f64,
    /// Requests of all compute nodes.
    pub fetches: u64,
    /// Write-backs of all compute nodes.
    pub write_backs: u64,
    /// Share of its rate that the pool's link carried to the pool, headers included.
    pub to_pool: f64,
    /// The same from the pool.
    pub from_pool: f64,
    /// Bytes of the former.
    pub to_pool_bytes: u64,
    /// Bytes of the latter.
    pub from_pool_bytes: u64,
    /// Requests under way, of all compute nodes: mean over the run.
    pub under_way: f64,
    /// Most of one compute node.
    pub under_way_max: usize,
    /// Most requests that waited at one compute node.
    pub waiting_max: usize,
    /// How often a program waited for room in its queue.
    pub waits: u64,
    /// Most bytes that waited at the pool's port of the switch.
    pub queue_max_bytes: u64,
    /// Time from the first access to the end of the last request, seconds.
    pub took_s: f64,
}

/// Counts, the rack's results, and failed checks.
pub(in crate::cache) type Ran = (Outcome, RackOutcome, Vec<String>);

/// Runs a policy on a load for each compute node. Errors: the policy or the rack refuses it.
pub(in crate::cache) fn run(
    rack: &Rack,
    (definition, setup): (&Definition, &Setup),
    loads: &[Load],
    seed: u64,
    plant: Option<CachePlant>,
) -> Result<Ran, String> {
    let block_bytes = setup.block_bytes;
    let touched_bytes = loads.iter().map(Load::footprint_bytes).max().unwrap_or(0);
    let refused = |refused: Refused| format!("policy {}: {refused}", definition.name);
    let times = local_times(definition, setup);
    let sharing = rack.sharing(rack.nodes, (touched_bytes, block_bytes), seed)?;
    let programs = loads.iter().map(|load| Program::new(definition, load, setup));
    let programs = programs.collect::<Result<Vec<_>, Refused>>().map_err(refused)?;
    let mut nodes = Vec::new();
    for (nth, program) in programs.into_iter().enumerate() {
        let blocks = (loads[nth].footprint_bytes() / u64::from(block_bytes)) as usize;
        let channel = Channel::new(nth as u16, blocks, block_bytes, rack.limits, plant);
        nodes.push(CachingNode::new(program, times, 4_096 / block_bytes, channel));
    }
    let of_way = |error: String| format!("way {}: {error}", rack.way.way);
    let mut ran = None;
    let conducted = rack.way.with_rack(sharing, &mut |requests: &mut dyn Requests| {
        let (start_ps, end_ps) = (requests.start_ps(), conduct(&mut nodes, requests)?);
        ran = Some((end_ps - start_ps, requests.pool(end_ps)));
        Ok(())
    });
    conducted.map_err(of_way)?;
    let (took_ps, pool) = ran.ok_or("the rack was not used")?;
    let of_one = rack.sharing(1, (touched_bytes, block_bytes), seed)?;
    let sizes: Vec<u32> = (0..4).map(|doublings| block_bytes << doublings).collect();
    let mut alone = Vec::new();
    let measured = rack.way.with_rack(of_one, &mut |requests: &mut dyn Requests| {
        alone = unloaded(requests, &sizes)?;
        Ok(())
    });
    measured.map_err(of_way)?;
    let unloaded_ns = alone.first().map_or(0, |(_, ns)| *ns);
    let fixed = Profile::with_remote("rack", "reads alone in the rack", alone, rack.rate_bps);
    let mut fixed_ns = 0.0;
    for load in loads {
        let one = simulate(definition, load, setup, &fixed).map_err(refused)?;
        fixed_ns += one.amat_ns * load.fills() as f64;
    }
    let counts = counts(&nodes, loads, block_bytes);
    let sum = |of: fn(&RequestCounts) -> u64| nodes.iter().map(|node| of(&node.channel.asked)).sum::<u64>();
    let most =
        |of: fn(&RequestCounts) -> usize| nodes.iter().map(|node| of(&node.channel.asked)).max().unwrap_or(0);
    let merged = |of: fn(&Tally) -> &Histogram| {
        let mut all = Histogram::new();
        nodes.iter().for_each(|node| all.add(of(&node.tally)));
        Latency::of(&all, true)
    };
    let fills: u64 = loads.iter().map(Load::fills).sum();
    let took_s = took_ps as f64 / 1e12;
    let share = |bytes: u64| bytes as f64 * 8.0 / (took_s * rack.rate_bps as f64);
    let under_way_ps: u128 = nodes.iter().map(|node| node.channel.asked.under_way_ps).sum();
    let shown = RackOutcome {
        way: rack.way.way.name(),
        compute_nodes: rack.nodes,
        rate_gbps: rack.rate_bps as f64 / 1e9,
        accesses_ns: merged(|tally| &tally.accesses),
        misses_ns: merged(|tally| &tally.misses),
        late: nodes.iter().map(|node| node.tally.late).sum(),
        unloaded_ns,
        fixed_amat_ns: fixed_ns / fills as f64,
        fetches: sum(|asked| asked.fetches),
        write_backs: sum(|asked| asked.write_backs),
        to_pool: share(pool.to_bytes),
        from_pool: share(pool.from_bytes),
        to_pool_bytes: pool.to_bytes,
        from_pool_bytes: pool.from_bytes,
        under_way: under_way_ps as f64 / took_ps.max(1) as f64,
        under_way_max: most(|asked| asked.under_way_max),
        waiting_max: most(|asked| asked.waiting_max),
        waits: nodes.iter().map(|node| node.tally.waits).sum(),
        queue_max_bytes: pool.queue_max_bytes,
        took_s,
    };
    let problems = problems(&nodes, &counts, pool);
    Ok((counts, shown, problems))
}

/// Local memory as in the profile `paper`.
fn local_times(definition: &Definition, setup: &Setup) -> LocalTimes {
    let paper = &PROFILES[0];
    let device_ns = if setup.one_memory { paper.host_ns } else { paper.device_ns };
    let translation_ns = if definition.translates { paper.translation_ns } else { 0 };
    LocalTimes {
        host_ps: paper.host_ns * 1_000,
        device_ps: device_ns * 1_000,
        translation_ps: translation_ns * 1_000,
        promote_ps: paper.promote_ns * 1_000,
    }
}

/// Means and sums of all compute nodes, as one.
fn counts(nodes: &[CachingNode<'_>], loads: &[Load], block_bytes: u32) -> Outcome {
    let sum = |of: fn(&Tally) -> u64| nodes.iter().map(|node| of(&node.tally)).sum::<u64>();
    let block_bytes = u64::from(block_bytes);
    let fetched_bytes = sum(|tally| tally.fetched_blocks) * block_bytes;
    let written_bytes = sum(|tally| tally.written_blocks) * block_bytes;
    let dirtied_bytes: u64 = loads.iter().map(Load::dirtied_bytes).sum();
    let touched_bytes: u64 = loads.iter().map(Load::touched_bytes).sum();
    let [from_host, from_device, from_remote] =
        std::array::from_fn(|nth| nodes.iter().map(|node| node.tally.served[nth]).sum::<u64>());
    let capacity = nodes.iter().map(|node| node.program().capacity()).min().unwrap_or(0);
    let tables_bytes = nodes.iter().map(|node| node.program().tables_bytes()).max().unwrap_or(0);
    Outcome {
        capacity,
        local_bytes: u64::from(capacity) * block_bytes + tables_bytes,
        tables_bytes,
        from_host,
        from_device,
        from_remote,
        amat_ns: sum(|tally| tally.cost_ps) as f64 / 1e3 / (from_host + from_device + from_remote) as f64,
        fetched_bytes,
        written_bytes,
        amplification: fetched_bytes as f64 / touched_bytes as f64,
        write_amplification: (dirtied_bytes > 0).then(|| written_bytes as f64 / dirtied_bytes as f64),
        used_share: Outcome::used_share(
            nodes.iter().map(|node| node.program().used_bytes()).sum(),
            fetched_bytes,
        ),
        promoted: sum(|tally| tally.promoted),
    }
}

fn problems(nodes: &[CachingNode<'_>], counts: &Outcome, pool: PoolLink) -> Vec<String> {
    let sum = |of: fn(&RequestCounts) -> u64| nodes.iter().map(|node| of(&node.channel.asked)).sum::<u64>();
    let (wrong, fetched, written) =
        (sum(|asked| asked.wrong), sum(|asked| asked.fetched_bytes), sum(|asked| asked.written_bytes));
    let mut problems = Vec::new();
    let mut check = |bad: bool, what: String| problems.extend(bad.then_some(what));
    check(wrong > 0, format!("{wrong} fetches did not bring what was written last"));
    for (what, of_rack, of_policy, carried) in [
        ("fetched", fetched, counts.fetched_bytes, pool.from_bytes),
        ("written back", written, counts.written_bytes, pool.to_bytes),
    ] {
        check(
            of_rack != of_policy,
            format!("the rack was asked for {of_rack} bytes {what}, the policies for {of_policy}"),
        );
        check(
            carried < of_rack,
            format!("the pool's link carried {carried} bytes, of which {of_rack} were {what}"),
        );
    }
    problems
}
