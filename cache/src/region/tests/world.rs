//! Threads, a driver and a remote memory around a residency, one random step after the other. A number represents a
//! block's bytes.
//!
//! ```text
//!  threads: access, claim, guard, prefetch, flush ─▶ Residency ─▶ requests in flight ─▶ effect ─▶ end
//!                                                                 (any order, any delay, lost and repeated, refused)
//! ```

use super::region::{Found, Frame, Mode, Request, Residency};

/// Chooses a number below a limit.
pub type Choose<'a> = &'a mut dyn FnMut(u64) -> u64;

/// How the world behaves.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Blocks of the region.
    pub blocks: u32,
    /// Threads.
    pub threads: usize,
    /// Random steps before everything comes to rest.
    pub steps: u32,
    /// How slow requests are: of ten chances to take effect or end, this many pass.
    pub slow: u64,
    /// Whether remote memory may die.
    pub dies: bool,
    /// Whether some writes are of whole blocks.
    pub overwrites: bool,
}

/// A thread's step.
#[derive(Clone, Copy, Debug)]
enum Doing {
    Nothing,
    /// Asks again after `Later`.
    Asks(Want),
    /// Has a claim.
    Claims(Want),
    /// Holds a guard for some steps more.
    Holds {
        block: u32,
        frame: Frame,
        mode: Mode,
        value: u64,
        left: u64,
    },
    Flushes,
}

#[derive(Clone, Copy, Debug)]
struct Want {
    block: u32,
    mode: Mode,
    /// Steps for which it is held; 0: no guard.
    held: u64,
}

/// A request in flight.
#[derive(Debug)]
struct UnderWay {
    request: Request,
    /// A write's value, or a read's result once it took effect.
    values: Option<Vec<u64>>,
    took_effect: bool,
}

/// All of it. Errors are broken promises.
pub struct World {
    pub residency: Residency,
    setting: Setting,
    /// Expected content of memory, and content of remote memory and of frames.
    plain: Vec<u64>,
    remote: Vec<u64>,
    local: Vec<u64>,
    threads: Vec<Doing>,
    /// Whether each thread's wait may be over: something has changed since it last asked.
    woken: Vec<bool>,
    under_way: Vec<UnderWay>,
    serial: u64,
    /// Each block's content before the running flush: remote memory must have it, or newer content, when the flush
    /// ends.
    flushing: Option<Vec<u64>>,
    /// Accesses to each block, as threads made them.
    pub accesses: Vec<u32>,
    pub reads: u64,
}

impl World {
    pub fn new(residency: Residency, setting: Setting) -> World {
        let blocks = setting.blocks as usize;
        World {
            local: vec![u64::MAX; residency.frame_count() as usize],
            residency,
            setting,
            plain: vec![0; blocks],
            remote: vec![0; blocks],
            threads: vec![Doing::Nothing; setting.threads],
            woken: vec![true; setting.threads],
            under_way: Vec::new(),
            serial: 0,
            flushing: None,
            accesses: vec![0; blocks],
            reads: 0,
        }
    }

    /// Runs random steps, comes to rest, and compares all memory.
    pub fn run(&mut self, choose: Choose<'_>) -> Result<(), String> {
        for step in 0..self.setting.steps {
            self.step(choose, true).map_err(|why| format!("step {step}: {why}"))?;
        }
        self.rest(choose)?;
        if self.residency.has_failed() {
            return Ok(());
        }
        self.begin_flush();
        self.threads[0] = Doing::Flushes;
        self.rest(choose)?;
        match self.remote == self.plain {
            true => Ok(()),
            false => Err("after a flush, remote memory differs from the last writes".into()),
        }
    }

    fn rest(&mut self, choose: Choose<'_>) -> Result<(), String> {
        let is_busy = |world: &World| {
            world.threads.iter().any(|doing| !matches!(doing, Doing::Nothing)) || !world.under_way.is_empty()
        };
        for _ in 0..20_000 {
            if !is_busy(self) {
                return Ok(());
            }
            self.step(choose, false)?;
        }
        Err(format!("it never comes to rest: {:?}", self.threads))
    }

    fn step(&mut self, choose: Choose<'_>, begins: bool) -> Result<(), String> {
        match choose(8) {
            0..4 => {
                let thread = choose(self.threads.len() as u64) as usize;
                self.take_turn(thread, choose, begins)?;
            }
            4 => self.submit(choose)?,
            5 if self.setting.dies && begins && choose(400) == 0 => {
                self.residency.fail();
                self.under_way.clear();
            }
            _ => self.deliver(choose)?,
        }
        if self.residency.take_changed() {
            self.woken.fill(true);
        }
        self.check()
    }

    /// A thread that waits asks without need too, and must not be served: a real one sleeps until it is woken.
    fn take_turn(&mut self, thread: usize, choose: Choose<'_>, begins: bool) -> Result<(), String> {
        let doing = self.threads[thread];
        let served = |world: &World| {
            let flushed = matches!(doing, Doing::Flushes) && world.flushing.is_none();
            (world.reads, world.residency.counters().from_remote, flushed)
        };
        let (before, is_woken) = (served(self), std::mem::take(&mut self.woken[thread]));
        self.threads[thread] = self.turn(doing, choose, begins)?;
        let waits = matches!(doing, Doing::Asks(_) | Doing::Claims(_) | Doing::Flushes);
        match waits && !is_woken && served(self) != before {
            true => Err(format!("thread {thread} goes on, and nothing woke it: {doing:?}")),
            false => Ok(()),
        }
    }

    /// A thread's next step.
    fn turn(&mut self, doing: Doing, choose: Choose<'_>, begins: bool) -> Result<Doing, String> {
        match doing {
            Doing::Nothing if begins => self.begin(choose),
            Doing::Nothing => Ok(doing),
            Doing::Asks(want) => self.access(want),
            Doing::Claims(want) => match self.residency.claimed(want.block, want.mode) {
                Found::Here(frame) if want.held == 0 => {
                    self.touch(frame, want)?;
                    self.residency.unpin(frame, want.mode);
                    Ok(Doing::Nothing)
                }
                Found::Here(frame) => {
                    self.touch(frame, want)?;
                    let is_kept = self.residency.keep(frame, want.mode);
                    Ok(if is_kept { self.hold(frame, want) } else { Doing::Nothing })
                }
                Found::Wait if self.residency.has_failed() => Err("it waits for lost memory".into()),
                Found::Wait if choose(50) == 0 => {
                    self.residency.give_up(want.block);
                    Ok(Doing::Nothing)
                }
                Found::Wait => Ok(doing),
                Found::Later | Found::Held => Ok(Doing::Asks(want)),
                Found::Failed => self.failed(),
            },
            Doing::Holds { block, frame, mode, value, left } => {
                if self.residency.frame_of(block) != Some(frame) || self.local[frame as usize] != value {
                    return Err(format!("block {block} changes under a guard"));
                }
                if left == 0 {
                    self.residency.release(frame, mode);
                    return Ok(Doing::Nothing);
                }
                let want = Want { block, mode, held: left - 1 };
                if mode == Mode::Write {
                    self.touch(frame, want)?;
                }
                Ok(self.hold(frame, want))
            }
            Doing::Flushes => {
                if self.residency.has_failed() {
                    return self.failed();
                }
                if !self.residency.is_flushed() {
                    return Ok(doing);
                }
                let Some(before) = self.flushing.take() else { return Ok(Doing::Nothing) };
                match self.remote.iter().zip(&before).position(|(there, before)| there < before) {
                    Some(block) => {
                        Err(format!("a flush has ended, and remote memory has an older block {block}"))
                    }
                    None => Ok(Doing::Nothing),
                }
            }
        }
    }

    fn failed(&mut self) -> Result<Doing, String> {
        self.flushing = None;
        match self.residency.has_failed() {
            true => Ok(Doing::Nothing),
            false => Err("an access fails without a loss".into()),
        }
    }

    fn begin(&mut self, choose: Choose<'_>) -> Result<Doing, String> {
        // Two of three in a hot part.
        let blocks = u64::from(self.setting.blocks);
        let block = if choose(3) == 0 { choose(blocks) } else { choose(blocks.div_ceil(6)) } as u32;
        let mode = if choose(3) == 0 { Mode::Write } else { Mode::Read };
        match choose(32) {
            0 if self.flushing.is_none() && !self.residency.has_failed() => {
                self.begin_flush();
                Ok(Doing::Flushes)
            }
            1..3 => {
                self.residency.prefetch(block, 1 + choose(6) as u32);
                Ok(Doing::Nothing)
            }
            3..6 => self.access(Want { block, mode, held: 1 + choose(4) }),
            _ => self.access(Want { block, mode, held: 0 }),
        }
    }

    fn begin_flush(&mut self) {
        self.flushing = Some(self.plain.clone());
        self.residency.begin_flush();
        // It may have nothing to wait for.
        self.woken.fill(true);
    }

    fn access(&mut self, want: Want) -> Result<Doing, String> {
        self.accesses[want.block as usize] += 1;
        let was_lost = self.residency.has_failed();
        // Some blocks are written as a whole: then the frame's content does not matter.
        let is_whole = self.setting.overwrites && want.mode == Mode::Write && want.block.is_multiple_of(3);
        let found = match is_whole {
            true => self.residency.overwrite(want.block),
            false => self.residency.access(want.block, want.mode),
        };
        if let (Found::Here(frame), true) = (found, is_whole) {
            self.local[frame as usize] = self.plain[want.block as usize];
        }
        match found {
            Found::Here(_) if was_lost => Err("an access to lost memory succeeds".into()),
            Found::Here(frame) => {
                self.touch(frame, want)?;
                let is_held = want.held > 0 && self.residency.pin(frame, want.mode);
                Ok(if is_held { self.hold(frame, want) } else { Doing::Nothing })
            }
            Found::Wait => Ok(Doing::Claims(want)),
            Found::Later | Found::Held => Ok(Doing::Asks(want)),
            Found::Failed => self.failed(),
        }
    }

    fn hold(&self, frame: Frame, want: Want) -> Doing {
        let value = self.local[frame as usize];
        Doing::Holds { block: want.block, frame, mode: want.mode, value, left: want.held }
    }

    /// Uses the bytes of a block.
    fn touch(&mut self, frame: Frame, want: Want) -> Result<(), String> {
        if self.residency.frame_of(want.block) != Some(frame) {
            return Err(format!("frame {frame} has another block than {}", want.block));
        }
        let (value, plain) = (&mut self.local[frame as usize], &mut self.plain[want.block as usize]);
        if value != plain {
            return Err(format!("a read of block {} does not return the last write", want.block));
        }
        self.reads += 1;
        if want.mode == Mode::Write {
            self.serial += 1;
            (*value, *plain) = (self.serial, self.serial);
        }
        Ok(())
    }

    fn submit(&mut self, choose: Choose<'_>) -> Result<(), String> {
        let Some(request) = self.residency.next_request() else { return Ok(()) };
        if choose(10) == 0 {
            self.residency.refuse(request);
            return Ok(());
        }
        let blocks = range(&request);
        let other = self.under_way.iter().find(|other| {
            let other = range(&other.request);
            other.start < blocks.end && blocks.start < other.end
        });
        if let Some(other) = other {
            return Err(format!("{request:?} leaves beside {:?}", other.request));
        }
        let values = match request {
            Request::WriteBack { frame, .. } => Some(vec![self.local[frame as usize]]),
            Request::Fetch { .. } => None,
        };
        self.under_way.push(UnderWay { request, values, took_effect: false });
        Ok(())
    }

    /// One request in flight takes effect, or ends. A lost one takes effect, or another time: it is repeated.
    fn deliver(&mut self, choose: Choose<'_>) -> Result<(), String> {
        if self.under_way.is_empty() || choose(10) < self.setting.slow {
            return Ok(());
        }
        let at = choose(self.under_way.len() as u64) as usize;
        let one = &mut self.under_way[at];
        let blocks = range(&one.request);
        let there = &mut self.remote[blocks.start as usize..blocks.end as usize];
        if !one.took_effect || choose(8) == 0 {
            one.took_effect = true;
            match (&one.request, &one.values) {
                (Request::WriteBack { .. }, Some(values)) => there.copy_from_slice(values),
                _ => one.values = Some(there.to_vec()),
            }
            return Ok(());
        }
        let one = self.under_way.swap_remove(at);
        match one.request {
            Request::WriteBack { frame, .. } => self.residency.written(frame),
            Request::Fetch { first, count } => {
                for (block, value) in blocks.zip(one.values.unwrap_or_default()) {
                    let frame = self.residency.frame_of(block);
                    let frame = frame.ok_or_else(|| format!("block {block} comes for no frame"))?;
                    self.local[frame as usize] = value;
                }
                self.residency.fetched(first, count);
            }
        }
        Ok(())
    }

    /// Checks the invariants.
    fn check(&self) -> Result<(), String> {
        self.residency.check()?;
        if self.residency.has_failed() {
            return Ok(());
        }
        for block in 0..self.setting.blocks {
            let at = block as usize;
            if self.residency.frame_of(block).is_none() && self.remote[at] != self.plain[at] {
                return Err(format!("block {block} is not local, and remote memory has another content"));
            }
        }
        Ok(())
    }
}

/// The blocks of a request.
fn range(request: &Request) -> std::ops::Range<u32> {
    match *request {
        Request::Fetch { first, count } => first..first + count,
        Request::WriteBack { block, .. } => block..block + 1,
    }
}
