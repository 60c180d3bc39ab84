//! From a program's accesses to those that reach memory.

use p4rack_cache::simulate::{Event, Load};
use p4rack_trace::{Access, CpuCache, Memory, Places};

/// Accesses behind the CPU's caches that are held at most: 4 GB.
const EVENTS_MAX: usize = 1 << 28;
/// Pages that they touch at most: 128 GB.
const PAGES_MAX: u32 = 1 << 25;

/// Gathers a program's accesses that reach memory behind a CPU's caches.
#[derive(Debug)]
pub struct Gathered {
    cpu: CpuCache,
    reached: Vec<Memory>,
    events_max: usize,
    pages_max: u32,
}

impl Gathered {
    /// Nothing behind these caches, which are empty.
    pub fn new(cpu: CpuCache) -> Gathered {
        Gathered { cpu, reached: Vec::new(), events_max: EVENTS_MAX, pages_max: PAGES_MAX }
    }

    /// The program's next access. Returns whether more accesses fit.
    pub fn access(&mut self, access: &Access) -> bool {
        let reached = &mut self.reached;
        self.cpu.access(access, &mut |memory| reached.push(memory));
        self.reached.len() <= self.events_max
    }

    /// All of it, in memory without gaps. Errors: none reached memory, or more than can be held.
    pub fn load(self) -> Result<Load, String> {
        let reached = self.reached;
        if reached.len() > self.events_max {
            return Err(format!(
                "more than {} accesses reach memory, which is all that is held: use fewer",
                self.events_max
            ));
        }
        if reached.is_empty() {
            return Err("has no accesses behind the CPU's caches; expected at least one: record it again, or check that the program ran".into());
        }
        let line_of = |memory: &Memory| match memory {
            Memory::Fill { line, .. } | Memory::WriteBack { line } => *line,
        };
        let places = Places::new(reached.iter().map(line_of));
        let pages = u32::try_from(places.pages()).ok().filter(|pages| *pages < self.pages_max);
        let pages = pages.ok_or("more than 128 GB of pages are touched: use fewer accesses")?;
        let event = |memory: Memory| {
            let line = places.of(line_of(&memory)).unwrap_or_default() as u32;
            match memory {
                Memory::Fill { write, .. } => Event { line, write, write_back: false },
                Memory::WriteBack { .. } => Event { line, write: true, write_back: true },
            }
        };
        Ok(Load::new(reached.into_iter().map(event).collect(), pages))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_trace::MODELS;

    fn gathered(events_max: usize, pages_max: u32) -> Gathered {
        Gathered { events_max, pages_max, ..Gathered::new(CpuCache::new(&MODELS[0])) }
    }

    #[test]
    fn more_than_can_be_held_is_refused() {
        let page = |at: u64| Access { address: at << 12, bytes: 8, write: false, thread: 0 };
        let mut few = gathered(3, 100);
        let taken = (0..100).take_while(|at| few.access(&page(*at))).count();
        assert_eq!((taken, few.reached.len()), (3, 4));
        let error = few.load().unwrap_err();
        assert!(error.contains("more than 3 accesses reach memory"), "{error}");
        let mut wide = gathered(100, 3);
        assert!((0..3).all(|at| wide.access(&page(at))));
        let error = wide.load().unwrap_err();
        assert!(error.contains("of pages are touched"), "{error}");
    }
}
