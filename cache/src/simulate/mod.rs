//! A policy behind a CPU: what its accesses cost on average, and how many bytes move.
//!
//! All policies get the same bytes of local memory, their tables included. Time passes as accesses wait:
//!
//! - A hit costs the latency of host or device memory, and what is left of a fetch under way.
//! - A miss costs the latency of its fetch, which grows with the request's length, and the wait for the link.
//! - Fetches ahead and write-backs take the link's time. Nothing waits for them unless they pile up.
//! - Moving a page to the host waits for its blocks under way, and takes the time that the paper measured for a batch of 512, divided
//!   by 512. Accesses wait for it. A page's blocks return to the device without taking time.
//!
//! The variants of UniMem's authors are counted as their programs do instead ([`crate::artifact`]).

mod artifact;
mod profile;
mod program;
mod used;

pub use profile::{PROFILES, Profile};
pub use program::{Accessed, Program};

use crate::{Action, Actions, Counting, Definition, PAGE_BYTES, Refused, Served};
use serde::Serialize;

const LINE_BYTES: u32 = 64;
/// Write-backs that may wait for the link before accesses do.
const BACKLOG_BYTES: u64 = 64 << 10;

/// What reaches memory: a line of the footprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The line's number; pages without gaps.
    pub line: u32,
    /// Whether the access changes it.
    pub write: bool,
    /// Whether it is a write-back of the CPU, which no access waits for.
    pub write_back: bool,
}

/// The events of a trace, and what they touch.
#[derive(Clone, Debug)]
pub struct Load {
    events: Vec<Event>,
    pages: u32,
    lines: u64,
    dirtied: u64,
}

impl Load {
    /// Events that touch only lines of the first `pages` pages.
    pub fn new(events: Vec<Event>, pages: u32) -> Load {
        let lines = pages as usize * (PAGE_BYTES / LINE_BYTES) as usize;
        let (mut touched, mut dirty) = (vec![false; lines], vec![false; lines]);
        for event in &events {
            touched[event.line as usize] = true;
            dirty[event.line as usize] |= event.write || event.write_back;
        }
        let count = |marks: &[bool]| marks.iter().filter(|mark| **mark).count() as u64;
        Load { events, pages, lines: count(&touched), dirtied: count(&dirty) }
    }

    /// Bytes of the touched pages.
    pub fn footprint_bytes(&self) -> u64 {
        u64::from(self.pages) * u64::from(PAGE_BYTES)
    }

    /// Bytes of the touched lines.
    pub fn touched_bytes(&self) -> u64 {
        self.lines * u64::from(LINE_BYTES)
    }

    /// Bytes of the dirtied lines.
    pub fn dirtied_bytes(&self) -> u64 {
        self.dirtied * u64::from(LINE_BYTES)
    }

    /// Blocks of which a line is touched.
    fn touched_blocks(&self, lines_per_block: u32) -> u64 {
        let mut touched = vec![false; (self.pages * (PAGE_BYTES / LINE_BYTES) / lines_per_block) as usize];
        self.events.iter().for_each(|event| touched[(event.line / lines_per_block) as usize] = true);
        touched.iter().filter(|mark| **mark).count() as u64
    }

    /// Written bytes for each byte of the dirtied lines, if there are any.
    fn write_amplification(&self, written_bytes: u64) -> Option<f64> {
        let dirtied_bytes = self.dirtied_bytes();
        (dirtied_bytes > 0).then(|| written_bytes as f64 / dirtied_bytes as f64)
    }

    /// Accesses that the CPU waits for.
    pub fn fills(&self) -> u64 {
        self.events.iter().filter(|event| !event.write_back).count() as u64
    }
}

/// How much local memory there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Local {
    /// Percent of the touched pages' bytes, with room for the policy's tables in them.
    Percent(u32),
    /// Blocks; tables are not counted. This is how other simulators size caches.
    Blocks(u32),
}

/// How a policy is run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Bytes of a block: a power of two from 64 to 4096.
    pub block_bytes: u32,
    /// Local memory.
    pub local: Local,
    /// The host's share, for policies with two tiers.
    pub host_percent: u32,
    /// Host and device are one memory with the host's latency. A policy that can choose the host's share does so.
    pub one_memory: bool,
    /// Pairs of lists, for UniMem's filter.
    pub pairs: u32,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Blocks of local memory.
    pub capacity: u32,
    /// Bytes of local memory, tables included.
    pub local_bytes: u64,
    /// Bytes of the policy's tables.
    pub tables_bytes: u64,
    /// Accesses that the CPU waited for, by what served them.
    pub from_host: u64,
    /// From the device.
    pub from_device: u64,
    /// From remote memory: misses.
    pub from_remote: u64,
    /// Mean time of these accesses.
    pub amat_ns: f64,
    /// Bytes that were fetched.
    pub fetched_bytes: u64,
    /// Bytes that were written back.
    pub written_bytes: u64,
    /// Fetched bytes for each byte of the touched lines; of the touched blocks for the artifact's variants.
    pub amplification: f64,
    /// Bytes written back for each byte of the dirtied lines; none if no line is dirtied.
    pub write_amplification: Option<f64>,
    /// Share of the fetched bytes whose line was accessed before its block left, or by the end; none if nothing was fetched.
    pub used_share: Option<f64>,
    /// Pages that moved to the host.
    pub promoted: u64,
}

impl Outcome {
    /// The share that was used of the fetched bytes; none if nothing was fetched.
    pub fn used_share(used_bytes: u64, fetched_bytes: u64) -> Option<f64> {
        (fetched_bytes > 0).then(|| used_bytes as f64 / fetched_bytes as f64)
    }
}

/// Runs a policy on a load. Errors: a load that no CPU waits for; local memory, its share or a block that the policy can't have.
pub fn simulate(
    definition: &Definition,
    load: &Load,
    setup: &Setup,
    profile: &Profile,
) -> Result<Outcome, Refused> {
    if let Counting::Artifact { times } = definition.counting {
        program::check(load, setup)?;
        return artifact::simulate(definition, load, setup, profile, &|stated| {
            program::shape(load, setup, stated.saturating_mul(times))
        });
    }
    let mut program = Program::new(definition, load, setup)?;
    let mut run = Run::new(definition, load, setup, profile);
    run.all(&mut program);
    Ok(run.outcome(load, &program))
}

struct Run<'a> {
    profile: &'a Profile,
    block_bytes: u32,
    device_ns: u64,
    translation_ns: u64,
    now_ns: u64,
    /// When the link is free again, to and from this node.
    in_free_ns: u64,
    out_free_ns: u64,
    /// When each block's last fetch arrives.
    arrives_ns: Vec<u64>,
    cost_ns: u64,
    served: [u64; 3],
    fetched_bytes: u64,
    written_bytes: u64,
    promoted: u64,
}

impl<'a> Run<'a> {
    fn new(definition: &Definition, load: &Load, setup: &Setup, profile: &'a Profile) -> Run<'a> {
        let block_bytes = setup.block_bytes;
        Run {
            profile,
            block_bytes,
            device_ns: if setup.one_memory { profile.host_ns } else { profile.device_ns },
            translation_ns: if definition.translates { profile.translation_ns } else { 0 },
            now_ns: 0,
            in_free_ns: 0,
            out_free_ns: 0,
            arrives_ns: vec![0; (load.footprint_bytes() / u64::from(block_bytes)) as usize],
            cost_ns: 0,
            served: [0; 3],
            fetched_bytes: 0,
            written_bytes: 0,
            promoted: 0,
        }
    }

    fn all(&mut self, program: &mut Program<'_>) {
        let mut actions = Actions::default();
        while let Some(Accessed { block, served, waits }) = program.next(&mut actions) {
            let began_ns = self.now_ns;
            for action in actions.as_slice() {
                self.act(*action);
            }
            if !waits {
                self.cost_ns += self.now_ns - began_ns;
                continue;
            }
            let memory_ns = match served {
                Served::Host => self.profile.host_ns,
                Served::Device => self.device_ns,
                Served::Remote => 0,
            };
            let arrived_ns = self.arrives_ns[block as usize].max(self.now_ns);
            self.now_ns = arrived_ns + memory_ns + self.translation_ns;
            self.cost_ns += self.now_ns - began_ns;
            self.served[served as usize] += 1;
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Fetch { first, count, .. } => {
                let bytes = count * self.block_bytes;
                let start_ns = self.in_free_ns.max(self.now_ns);
                self.in_free_ns = start_ns + self.profile.transfer_ns(u64::from(bytes));
                let arrives_ns = start_ns + self.profile.read_ns(bytes);
                self.arrives_ns[first as usize..(first + count) as usize].fill(arrives_ns);
                self.fetched_bytes += u64::from(bytes);
            }
            Action::Evict { dirty: true, .. } => {
                let bytes = u64::from(self.block_bytes);
                let start_ns = self.out_free_ns.max(self.now_ns);
                self.out_free_ns = start_ns + self.profile.transfer_ns(bytes);
                let backlog_ns = self.profile.transfer_ns(BACKLOG_BYTES);
                self.now_ns = self.now_ns.max(self.out_free_ns.saturating_sub(backlog_ns));
                self.written_bytes += bytes;
            }
            Action::Promote { page } => {
                let per_page = (PAGE_BYTES / self.block_bytes) as usize;
                let first = page as usize * per_page;
                let arrived_ns = self.arrives_ns[first..first + per_page].iter().copied().fold(0, u64::max);
                self.now_ns = self.now_ns.max(arrived_ns) + self.profile.promote_ns;
                self.promoted += 1;
            }
            Action::Evict { dirty: false, .. } | Action::Demote { .. } => {}
        }
    }

    fn outcome(&self, load: &Load, program: &Program<'_>) -> Outcome {
        let (capacity, tables_bytes) = (program.capacity(), program.tables_bytes());
        let fills = self.served.iter().sum::<u64>();
        Outcome {
            capacity,
            local_bytes: u64::from(capacity) * u64::from(self.block_bytes) + tables_bytes,
            tables_bytes,
            from_host: self.served[Served::Host as usize],
            from_device: self.served[Served::Device as usize],
            from_remote: self.served[Served::Remote as usize],
            amat_ns: self.cost_ns as f64 / fills as f64,
            fetched_bytes: self.fetched_bytes,
            written_bytes: self.written_bytes,
            // A load without accesses is refused, so lines are touched.
            amplification: self.fetched_bytes as f64 / load.touched_bytes() as f64,
            write_amplification: load.write_amplification(self.written_bytes),
            used_share: Outcome::used_share(program.used_bytes(), self.fetched_bytes),
            promoted: self.promoted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(lines: impl Iterator<Item = u32>, pages: u32) -> Load {
        Load::new(lines.map(|line| Event { line, write: false, write_back: false }).collect(), pages)
    }

    fn run(name: &str, load: &Load, block_bytes: u32, percent: u32) -> Outcome {
        let local = Local::Percent(percent);
        let setup = Setup { block_bytes, local, host_percent: 30, one_memory: false, pairs: 1 };
        simulate(crate::find(name).unwrap(), load, &setup, &PROFILES[0]).unwrap()
    }

    #[test]
    fn hits_cost_the_device_and_misses_their_fetch() {
        // One line of each of ten blocks, twice: the second time all are local.
        let load = load((0..20).map(|at| at % 10 * 8), 2);
        let outcome = run("lru", &load, 512, 800);
        assert_eq!((outcome.from_device, outcome.from_remote), (10, 10));
        assert_eq!(outcome.amat_ns, (10.0 * 2_000.0 + 10.0 * 150.0) / 20.0);
        assert_eq!(outcome.fetched_bytes, 10 * 512);
        assert_eq!((outcome.amplification, outcome.write_amplification), (8.0, None));
        assert_eq!(outcome.used_share, Some(1.0 / 8.0));
        let kona = run("kona", &load, 4096, 800);
        assert_eq!(kona.amat_ns, (2.0 * 4_000.0 + 18.0 * 150.0) / 20.0 + 14.0);
        assert_eq!(kona.used_share, Some(10.0 / 128.0));
    }

    /// Pages of two lines each, which are used in turn: a page that has left begins anew.
    #[test]
    fn a_block_is_used_from_its_fetch_to_the_next_one() {
        let lines = |page: u32| [page * 64, page * 64 + 9];
        let load = load((0..64).flat_map(|at| lines(at % 8)), 8);
        let [all, few] = [200, 70].map(|percent| run("kona", &load, 4096, percent));
        assert_eq!((all.from_remote, all.used_share), (8, Some(2.0 / 64.0)));
        assert_eq!((few.from_remote, few.used_share), (64, Some(2.0 / 64.0)));
        // One line before the page leaves, and the other one after it has come again.
        let apart = (0..64).map(|at| lines(at % 8)[(at / 8 % 2) as usize]);
        let [all, few] = [200, 70].map(|percent| run("kona", &self::load(apart.clone(), 8), 4096, percent));
        assert_eq!((all.used_share, few.used_share), (Some(2.0 / 64.0), Some(1.0 / 64.0)));
        assert_eq!(Outcome::used_share(0, 0), None);
    }

    const EIGHT_BLOCKS: Setup =
        Setup { block_bytes: 512, local: Local::Blocks(8), host_percent: 30, one_memory: false, pairs: 1 };

    #[test]
    fn means_of_nothing_are_refused() {
        let written = Event { line: 3, write: true, write_back: true };
        let outcome = |events| {
            simulate(crate::find("lru").unwrap(), &Load::new(events, 1), &EIGHT_BLOCKS, &PROFILES[0])
        };
        assert_eq!(outcome(vec![written]), Err(Refused::Load));
        let read = Event { line: 3, write: false, write_back: false };
        assert_eq!(outcome(vec![read, written]).unwrap().write_amplification, Some(0.0));
    }

    /// The steps of an access: fetches, and a page that moves.
    fn took(actions: &[Action]) -> u64 {
        let load = load([0].into_iter(), 2);
        let mut run = Run::new(crate::find("unimem").unwrap(), &load, &EIGHT_BLOCKS, &PROFILES[0]);
        actions.iter().for_each(|action| run.act(*action));
        run.now_ns
    }

    #[test]
    fn a_page_moves_once_its_blocks_are_here() {
        let fetch = |first, count| Action::Fetch { first, count, ahead: true };
        let promote = Action::Promote { page: 1 };
        assert_eq!(took(&[promote]), 3_900);
        assert_eq!(took(&[fetch(15, 1), promote]), 2_000 + 3_900);
        // The second request waits until the link has carried the first: 512 B at 100 Gb/s.
        assert_eq!(took(&[fetch(9, 1), fetch(12, 2), promote]), 40 + 2_500 + 3_900);
        assert_eq!(took(&[fetch(0, 8), promote]), 3_900, "blocks of another page");
    }

    #[test]
    fn tables_take_their_part_of_local_memory() {
        let pages = 64;
        let load = load((0..pages * 64).step_by(64), pages);
        let percents = (6..400).step_by(8);
        let sizes = percents.flat_map(|percent| [30, 50, 90].map(|host_percent| (percent, host_percent)));
        for (percent, host_percent) in sizes {
            let bytes = load.footprint_bytes() * u64::from(percent) / 100;
            for (definition, one_memory) in crate::POLICIES.iter().flat_map(|one| [(one, false), (one, true)])
            {
                let local = Local::Percent(percent);
                let setup = Setup { block_bytes: 128, local, host_percent, one_memory, pairs: 1 };
                let outcome = simulate(definition, &load, &setup, &PROFILES[0]).unwrap();
                let used = u64::from(outcome.capacity) * 128 + outcome.tables_bytes;
                assert!(used <= bytes, "{}, {setup:?}: {used}", definition.name);
                assert!(used + bytes / 8 > bytes, "{}, {setup:?}: no more than {used}", definition.name);
            }
        }
    }
}
