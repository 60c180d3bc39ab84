//! Memory and time as the programs of UniMem's authors count them.

use super::used::Used;
use super::{LINE_BYTES, Load, Local, Outcome, Profile, Setup};
use crate::{Action, Actions, Definition, Refused, Served, Shape};

/// A page's part of a batch of 512, whose 1987 µs are added as ns.
const PROMOTE_NS: f64 = 3.88;

/// Runs a policy of theirs. `shape` makes its shape from the stated memory in blocks. The CPU's write-backs are not in their traces.
pub(super) fn simulate(
    definition: &Definition,
    load: &Load,
    setup: &Setup,
    profile: &Profile,
    shape: &dyn Fn(u32) -> Shape,
) -> Result<Outcome, Refused> {
    let lines_per_block = setup.block_bytes / LINE_BYTES;
    let touched = load.touched_blocks(lines_per_block);
    let stated = match setup.local {
        Local::Percent(percent) => (touched * u64::from(percent) / 100) as u32,
        Local::Blocks(blocks) => blocks,
    };
    let shape = shape(stated);
    let mut policy = definition.open(&shape, &[])?;
    let (mut served, mut promoted, mut written) = ([0u64; 3], 0u64, 0u64);
    let mut actions = Actions::default();
    let mut used = Used::new(load.footprint_bytes(), setup.block_bytes);
    for event in load.events.iter().filter(|event| !event.write_back) {
        let block = event.line / lines_per_block;
        let memory = policy.access(block, event.write, &mut actions);
        served[memory as usize] += 1;
        if memory == Served::Remote {
            used.fetched(block, 1);
        }
        used.access(event.line);
        for action in actions.as_slice() {
            promoted += u64::from(matches!(action, Action::Promote { .. }));
            written += u64::from(matches!(action, Action::Evict { dirty: true, .. }));
        }
    }
    let of = |memory: Served| served[memory as usize];
    let mut cost_ns = of(Served::Host) as f64 * profile.host_ns as f64
        + of(Served::Device) as f64 * profile.device_ns as f64
        + of(Served::Remote) as f64 * profile.read_ns(setup.block_bytes) as f64
        + promoted as f64 * PROMOTE_NS;
    let fills = served.iter().sum::<u64>();
    if definition.translates {
        cost_ns += fills as f64 * profile.translation_ns as f64;
    }
    let block_bytes = u64::from(setup.block_bytes);
    let written_bytes = written * block_bytes;
    let fetched_bytes = of(Served::Remote) * block_bytes;
    Ok(Outcome {
        capacity: shape.capacity,
        local_bytes: u64::from(shape.capacity) * block_bytes,
        tables_bytes: 0,
        from_host: of(Served::Host),
        from_device: of(Served::Device),
        from_remote: of(Served::Remote),
        amat_ns: cost_ns / fills as f64,
        fetched_bytes,
        written_bytes,
        amplification: of(Served::Remote) as f64 / touched as f64,
        write_amplification: load.write_amplification(written_bytes),
        used_share: Outcome::used_share(used.bytes(), fetched_bytes),
        promoted,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Event, PROFILES, simulate};
    use super::*;

    /// All lines of two pages, twice. A block is fetched by its first line and active from its second line on; the second line of a
    /// page's last block moves the page.
    #[test]
    fn unimem_has_eight_times_the_stated_memory() {
        let lines = (0..256).map(|at| Event { line: at % 128, write: false, write_back: false });
        let load = Load::new(lines.collect(), 2);
        let local = Local::Percent(50);
        let setup = Setup { block_bytes: 512, local, host_percent: 30, one_memory: false, pairs: 1 };
        let unimem = crate::ARTIFACT.iter().find(|one| one.name == "unimem-artifact").unwrap();
        let outcome = simulate(unimem, &load, &setup, &PROFILES[0]).unwrap();
        assert_eq!((outcome.capacity, outcome.promoted), (64, 2), "half of 16 touched blocks, eight times");
        assert_eq!((outcome.from_host, outcome.from_device, outcome.from_remote), (128 + 2 * 6, 100, 16));
        let cost_ns = 140.0 * 80.0 + 100.0 * 150.0 + 16.0 * 2_000.0 + 2.0 * 3.88;
        assert!((outcome.amat_ns - cost_ns / 256.0).abs() < 1e-9, "{}", outcome.amat_ns);
        assert_eq!((outcome.amplification, outcome.written_bytes, outcome.used_share), (1.0, 0, Some(1.0)));
    }
}
