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
}

impl Gathered {
    /// Nothing behind these caches, which are empty.
    pub fn new(cpu: CpuCache) -> Gathered {
        Gathered { cpu, reached: Vec::new() }
    }

    /// The program's next access. Returns whether more accesses fit.
    pub fn access(&mut self, access: &Access) -> bool {
        let reached = &mut self.reached;
        self.cpu.access(access, &mut |memory| reached.push(memory));
        self.reached.len() <= EVENTS_MAX
    }

    /// All of it, in memory without gaps. Errors: none reached memory, or more than can be held.
    pub fn load(self) -> Result<Load, String> {
        let reached = self.reached;
        if reached.len() > EVENTS_MAX {
            return Err(format!(
                "more than {EVENTS_MAX} accesses reach memory, which is all that is held: use fewer"
            ));
        }
        if reached.is_empty() {
            return Err("has no accesses behind the CPU's caches; expected at least one: record it again, or check that the program ran".into());
        }
        let line_of = |memory: &Memory| match memory {
            Memory::Fill { line, .. } | Memory::WriteBack { line } => *line,
        };
        let places = Places::new(reached.iter().map(line_of));
        let pages = u32::try_from(places.pages()).ok().filter(|pages| *pages < PAGES_MAX);
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
