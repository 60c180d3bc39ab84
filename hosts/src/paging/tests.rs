//! Pages against plain memory: threads, their works and a region, one random step after the other. Two numbers
//! represent the bytes of a page, each one half of its pieces.

use super::pages::{BATCH, Bytes, Op, Pages, Step, Work};
use super::plant::Plant;
use super::statistics::PageCounters;
use super::twin::Changed;
use p4rack_wire::SplitMix;
use std::collections::HashSet;

const PAGES: u32 = 160;
/// Content of the region that no access may see.
const GARBAGE: Page = [u64::MAX; 2];
/// The pieces of each half.
const HALVES: [u8; 2] = [0x0f, 0xf0];

/// A page's bytes.
type Page = [u64; 2];

/// A thread's step.
#[derive(Clone, Debug)]
enum Doing {
    Nothing,
    /// Accesses a half of a page; a write has a value.
    Access(u32, usize, Option<u64>),
    /// Flushes, from this entry on.
    Flushes(u32),
    Discards(u32),
}

/// The works of a thread: the next one, and its next operation, with the bytes read so far.
#[derive(Clone, Debug, Default)]
struct Works {
    works: Vec<(Work, Changed)>,
    op: usize,
    at: usize,
    read: Option<Page>,
}

struct Thread {
    doing: Doing,
    works: Works,
    /// Whether the shelf was emptied for its works, which are to fill it next.
    then_shelves: bool,
}

/// All of it. Errors are broken promises.
struct World {
    pages: Pages,
    capacity: u32,
    /// Of each page in place: its content, and whether it is protected.
    places: Vec<Option<(Page, bool)>>,
    buffers: Vec<Option<Page>>,
    region: Vec<Page>,
    plain: Vec<Page>,
    threads: Vec<Thread>,
    fetching: HashSet<u32>,
    serial: u64,
    reads: u64,
}

impl World {
    fn new(capacity: u32, zeroed: bool, plant: Option<Plant>) -> World {
        let mut pages = Pages::new(PAGES, capacity, 32, if zeroed { 0 } else { 0xff });
        pages.plant = plant;
        let region: Vec<Page> =
            (0..PAGES).map(|page| if zeroed { GARBAGE } else { [page.into(); 2] }).collect();
        let thread = || Thread { doing: Doing::Nothing, works: Works::default(), then_shelves: false };
        World {
            pages,
            capacity,
            places: vec![None; PAGES as usize],
            buffers: vec![None; capacity as usize],
            plain: if zeroed { vec![[0; 2]; PAGES as usize] } else { region.clone() },
            region,
            threads: (0..6).map(|_| thread()).collect(),
            fetching: HashSet::new(),
            serial: 1 << 32,
            reads: 0,
        }
    }

    fn run(&mut self, random: &mut SplitMix, steps: u32) -> Result<(), String> {
        for step in 0..steps {
            self.step(random, true).map_err(|why| format!("step {step}: {why}"))?;
        }
        self.rest(random)?;
        self.threads[0].doing = Doing::Flushes(0);
        self.rest(random)?;
        for page in 0..PAGES {
            for half in 0..2 {
                let (plain, there) = (self.plain[page as usize][half], self.region[page as usize][half]);
                // The region never has halves that are zeros from the start.
                if plain != 0 && plain != there {
                    return Err(format!("after a flush, the region has an older page {page}"));
                }
                self.threads[0].doing = Doing::Access(page, half, None);
                self.rest(random)?;
            }
        }
        Ok(())
    }

    fn rest(&mut self, random: &mut SplitMix) -> Result<(), String> {
        for _ in 0..200_000 {
            let is_idle = |one: &Thread| matches!(one.doing, Doing::Nothing) && one.works.works.is_empty();
            if self.threads.iter().all(is_idle) {
                return Ok(());
            }
            self.step(random, false)?;
        }
        Err("it never comes to rest".to_owned())
    }

    fn step(&mut self, random: &mut SplitMix, begins: bool) -> Result<(), String> {
        let number = random.between(0, self.threads.len() as u64 - 1) as usize;
        if !self.threads[number].works.works.is_empty() {
            self.work(number)?;
        } else if std::mem::take(&mut self.threads[number].then_shelves) {
            self.begin(number, Pages::shelve);
        } else {
            self.act(number, random, begins)?;
        }
        let page = random.between(0, u64::from(PAGES) - 1) as u32;
        if self.pages.is_in_place(page) && self.places[page as usize].is_none() {
            return Err(format!("page {page} is absent and should be in place"));
        }
        let backed = self.buffers.iter().flatten().count();
        let in_memory = (self.places.iter().flatten().count() + backed) as u32;
        match in_memory <= self.capacity && self.pages.in_memory().1 <= self.capacity {
            true => Ok(()),
            false => Err(format!("{in_memory} pages are in memory, of at most {}", self.capacity)),
        }
    }

    /// Begins works of one kind.
    fn begin(&mut self, number: usize, mut next: impl FnMut(&mut Pages) -> Option<Work>) {
        let works = std::iter::from_fn(|| next(&mut self.pages)).take(BATCH);
        let works = works.map(|work| (work, Changed::default())).collect();
        self.threads[number].works = Works { works, ..Works::default() };
    }

    fn act(&mut self, number: usize, random: &mut SplitMix, begins: bool) -> Result<(), String> {
        let step = match self.threads[number].doing {
            Doing::Nothing if !begins => return Ok(()),
            Doing::Nothing => {
                self.threads[number].doing = self.choose(random);
                return Ok(());
            }
            Doing::Access(page, half, value) => match (&mut self.places[page as usize], value) {
                (Some((now, _)), None) => {
                    self.reads += 1;
                    let (now, plain) = (now[half], self.plain[page as usize][half]);
                    self.threads[number].doing = Doing::Nothing;
                    return match now == plain {
                        true => Ok(()),
                        false => Err(format!("page {page} has {now}, not {plain}, its last write")),
                    };
                }
                (Some((now, false)), Some(value)) => {
                    (now[half], self.plain[page as usize][half]) = (value, value);
                    self.threads[number].doing = Doing::Nothing;
                    return Ok(());
                }
                _ => self.pages.fault(page, value.is_some()),
            },
            Doing::Flushes(entry) => match self.pages.clean(entry) {
                None => {
                    self.threads[number].doing = Doing::Nothing;
                    return Ok(());
                }
                Some(step) => {
                    if matches!(step, Step::Ready | Step::Work(_)) {
                        self.threads[number].doing = Doing::Flushes(entry + 1);
                    }
                    step
                }
            },
            Doing::Discards(page) => {
                let step = self.pages.discard(page);
                if matches!(step, Step::Ready | Step::Work(_)) {
                    self.plain[page as usize] = [0; 2];
                    self.threads[number].doing = Doing::Nothing;
                }
                step
            }
        };
        match step {
            Step::Ready | Step::Wait => {}
            Step::Room => {
                self.begin(number, Pages::evict);
                self.threads[number].then_shelves = true;
            }
            Step::Release(buffer) => {
                self.buffers[buffer as usize] = None;
                self.pages.released(buffer);
            }
            Step::Work(work) => self.begin(number, {
                let mut work = Some(work);
                move |_| work.take()
            }),
            Step::Lost => return Err("it is lost".to_owned()),
        }
        Ok(())
    }

    fn choose(&mut self, random: &mut SplitMix) -> Doing {
        // Two of three in a hot part.
        let pages = if random.next().is_multiple_of(3) { PAGES } else { PAGES / 16 };
        let page = random.between(0, u64::from(pages) - 1) as u32;
        // An access beside a discard may see either.
        let is_used = |other: &Thread| match other.doing {
            Doing::Access(used, ..) | Doing::Discards(used) => used == page,
            Doing::Nothing | Doing::Flushes(_) => false,
        };
        let is_discarded = |other: &Thread| matches!(other.doing, Doing::Discards(used) if used == page);
        match random.next() % 64 {
            0 => Doing::Flushes(0),
            1..4 if !self.threads.iter().any(is_used) && !self.moves(page) => Doing::Discards(page),
            _ if self.threads.iter().any(is_discarded) || self.moves(page) => Doing::Nothing,
            one => {
                self.serial += 1;
                Doing::Access(page, (one / 2 % 2) as usize, (one % 2 == 0).then_some(self.serial))
            }
        }
    }

    /// Whether a discard of the page is under way.
    fn moves(&self, page: u32) -> bool {
        let drops = |(work, _): &(Work, Changed)| work.page == page && work.ops[0] == Some(Op::Drop);
        self.threads.iter().flat_map(|thread| &thread.works.works).any(drops)
    }

    /// The next operation of a thread's works.
    fn work(&mut self, number: usize) -> Result<(), String> {
        let mut works = std::mem::take(&mut self.threads[number].works);
        if works.at == works.works.len() {
            (works.at, works.op) = (0, works.op + 1);
        }
        if works.op == 3 {
            works.works.drain(..).for_each(|(work, changed)| self.pages.done(&work, changed));
            return Ok(());
        }
        let (work, changed) = &mut works.works[works.at];
        let is_done = match work.ops[works.op] {
            Some(op) => self.operation(work, op, &mut works.read, changed)?,
            None => true,
        };
        if is_done {
            (works.read, works.at) = (None, works.at + 1);
        }
        self.threads[number].works = works;
        Ok(())
    }

    /// A step of an operation: those that read and write take two. Returns whether it is done.
    fn operation(
        &mut self,
        work: &Work,
        op: Op,
        read: &mut Option<Page>,
        changed: &mut Changed,
    ) -> Result<bool, String> {
        let page = work.page as usize;
        let absent = || format!("page {page} is not in place: {op:?}");
        match (op, *read) {
            (Op::Protect, _) => self.places[page].as_mut().ok_or_else(absent)?.1 = true,
            (Op::Unprotect, _) => self.places[page].as_mut().ok_or_else(absent)?.1 = false,
            (Op::Drop, _) => {
                self.pages.dropping(work);
                self.places[page].take().ok_or_else(absent)?;
            }
            (Op::Save(buffer), _) => {
                self.buffers[buffer as usize] = Some(self.places[page].ok_or_else(absent)?.0);
            }
            (Op::Fetch(_) | Op::FetchInPlace, None) => {
                if !self.fetching.insert(work.page) {
                    return Err(format!("two fetches of page {page}"));
                }
                let content =
                    |half: usize| if work.content & HALVES[half] == 0 { 0 } else { self.region[page][half] };
                *read = Some([content(0), content(1)]);
                return Ok(false);
            }
            (Op::Fetch(buffer), Some(value)) => {
                self.fetching.remove(&work.page);
                self.buffers[buffer as usize] = Some(value);
            }
            (Op::FetchInPlace, Some(value)) => {
                self.fetching.remove(&work.page);
                self.fill(page, value, true)?;
            }
            (Op::Fill { from, protected }, _) => {
                let value = self.bytes(page, from)?;
                self.fill(page, value, protected)?;
            }
            (Op::WriteBack { now, .. }, None) => {
                *read = Some(self.bytes(page, now)?);
                return Ok(false);
            }
            (Op::WriteBack { twin, .. }, Some(value)) => {
                let twin = self.bytes(page, twin)?;
                for half in (0..2).filter(|half| value[*half] != twin[*half]) {
                    self.region[page][half] = value[half];
                    *changed = Changed { pieces: changed.pieces | HALVES[half], lines: changed.lines + 32 };
                }
            }
        }
        Ok(true)
    }

    fn fill(&mut self, page: usize, value: Page, protected: bool) -> Result<(), String> {
        match self.places[page].replace((value, protected)) {
            None => Ok(()),
            Some(_) => Err(format!("page {page} is filled twice")),
        }
    }

    fn bytes(&self, page: usize, from: Bytes) -> Result<Page, String> {
        match from {
            Bytes::Zeros => Ok([0; 2]),
            Bytes::Buffer(buffer) => {
                self.buffers[buffer as usize].ok_or_else(|| format!("buffer {buffer} has no memory"))
            }
            Bytes::Place => Ok(self.places[page].ok_or_else(|| format!("page {page} is not in place"))?.0),
        }
    }
}

fn run(seed: u64, plant: Option<Plant>) -> Result<World, String> {
    let mut random = SplitMix(seed);
    let capacity = 64 + random.between(0, u64::from(PAGES)) as u32;
    let mut world = World::new(capacity, seed.is_multiple_of(2), plant);
    world.run(&mut random, 20_000)?;
    Ok(world)
}

/// Seeds of a run; `P4RACK_SEEDS` sets another number.
fn seeds() -> u64 {
    std::env::var("P4RACK_SEEDS").map_or(60, |seeds| seeds.parse().expect("P4RACK_SEEDS is a number"))
}

#[test]
fn pages_are_memory_in_every_order() {
    let mut all = PageCounters::default();
    for seed in 0..seeds() {
        let world = run(seed, None).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        let counters = world.pages.counters;
        assert!(world.reads > 1_000 && counters.twins > 0 && counters.discarded > 0, "{counters:?}");
        all.restored += counters.restored;
        all.evicted_dirty += counters.evicted_dirty;
    }
    assert!(all.restored > 100 && all.evicted_dirty > 100, "{all:?}");
}

#[test]
fn planted_mistakes_are_seen() {
    for (plant, found) in [
        (Plant::TwinTooLate, "older page"),
        (Plant::ShelvedWritable, "its last write"),
        (Plant::WriteDuringWriteBackLost, "older page"),
        (Plant::TwoFetches, "two fetches"),
    ] {
        let whys: Vec<_> = (0..40).filter_map(|seed| run(seed, Some(plant)).err()).collect();
        assert!(whys.iter().any(|why| why.contains(found)), "{plant:?}: {:?}", whys.first());
    }
}

#[test]
fn after_a_loss_pages_in_place_stay_and_no_other_comes() {
    let mut pages = Pages::new(PAGES, 64, 32, 0xff);
    let begin = |pages: &mut Pages, page, writes| match pages.fault(page, writes) {
        Step::Work(work) => work,
        other => panic!("page {page}: {other:?}"),
    };
    for (page, writes) in [(0, false), (1, true)] {
        let work = begin(&mut pages, page, writes);
        pages.done(&work, Changed::default());
    }
    let (moving, failing) = (begin(&mut pages, 2, false), begin(&mut pages, 3, false));
    pages.failed(&failing);
    // In place: clean and dirty.
    assert!(matches!(pages.fault(0, false), Step::Ready) && matches!(pages.fault(1, true), Step::Ready));
    // The first write needs no twin, and so no room.
    let work = begin(&mut pages, 0, true);
    assert_eq!(work.ops, [Some(Op::Unprotect), None, None]);
    pages.done(&work, Changed::default());
    assert!(matches!(pages.fault(0, true), Step::Ready));
    // Pages that still move come to rest.
    assert!(matches!(pages.fault(2, false), Step::Wait));
    pages.done(&moving, Changed::default());
    assert!(matches!(pages.fault(2, false), Step::Ready));
    for page in [3, 4] {
        assert!(matches!(pages.fault(page, false), Step::Lost), "page {page}");
    }
    assert!(pages.shelve().is_none() && pages.evict().is_none());
    assert!(matches!(pages.clean(0), Some(Step::Lost)) && matches!(pages.discard(0), Step::Lost));
}
