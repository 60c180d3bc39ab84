//! Where a command's accesses come from: a trace, or a recipe of a synthetic one.

use p4rack_cache::simulate::{Event, Load};
use p4rack_trace::formats::{self, FORMATS, Options};
use p4rack_trace::synth::Recipe;
use p4rack_trace::{Access, CpuCache, MODELS, Memory, Places};
use std::path::{Path, PathBuf};

/// Accesses behind the CPU's caches that are held at most: 4 GB.
const EVENTS_MAX: usize = 1 << 28;

/// Options of a trace that is read.
#[derive(clap::Args, Debug)]
pub struct Source {
    /// Trace, or recipe of a synthetic one (.toml)
    #[arg(value_name = "TRACE")]
    file: PathBuf,
    #[command(flatten)]
    reading: Reading,
    /// Caches of the CPU in front
    #[arg(long, default_value = "small", value_parser = super::names(MODELS.iter().map(|model| model.name)))]
    cpu: String,
    /// Use the first N accesses only
    #[arg(long, value_name = "N", value_parser = crate::numbers::within::<u64>(1..))]
    first: Option<u64>,
}

/// How a trace is read.
#[derive(clap::Args, Debug)]
pub struct Reading {
    /// Format of the trace [default: by its first bytes]
    #[arg(long, value_parser = super::names(FORMATS.iter().map(|format| format.name)))]
    format: Option<String>,
    /// Bytes that an object's number stands for in formats that number objects
    #[arg(long, value_name = "BYTES", default_value_t = 512, value_parser = crate::numbers::within::<u64>(1..=1 << 20))]
    unit: u64,
}

impl Default for Reading {
    fn default() -> Reading {
        Reading { format: None, unit: 512 }
    }
}

impl Reading {
    /// Bytes of an object.
    pub fn unit_bytes(&self) -> u64 {
        self.unit
    }

    /// Gives the accesses of a trace or a recipe to `take`, until it returns false.
    pub fn each(&self, file: &Path, take: &mut dyn FnMut(Access) -> bool) -> Result<(), String> {
        if file.extension().is_some_and(|extension| extension == "toml") {
            let text =
                std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
            let recipe =
                Recipe::read(&text, &file.display().to_string()).map_err(|error| error.to_string())?;
            let mut wanted = true;
            recipe.make(&mut |access| wanted = wanted && take(access));
            return Ok(());
        }
        let options = Options { unit_bytes: self.unit };
        let accesses =
            formats::open(file, self.format.as_deref(), options).map_err(|error| error.to_string())?;
        for access in accesses {
            if !take(access.map_err(|error| error.to_string())?) {
                break;
            }
        }
        Ok(())
    }
}

/// The empty caches of a model by its name.
pub fn cpu(name: &str) -> Result<CpuCache, String> {
    let model = MODELS.iter().find(|model| model.name == name);
    model.map(CpuCache::new).ok_or_else(|| format!("no model of a CPU is called {name}"))
}

impl Source {
    /// What of the trace reaches memory, in memory without gaps.
    pub fn load(&self) -> Result<Load, String> {
        let mut cpu = cpu(&self.cpu)?;
        let mut reached: Vec<Memory> = Vec::new();
        let mut left = self.first.unwrap_or(u64::MAX);
        let name = self.file.display();
        self.reading.each(&self.file, &mut |access| {
            cpu.access(&access, &mut |memory| reached.push(memory));
            left -= 1;
            left > 0 && reached.len() <= EVENTS_MAX
        })?;
        if reached.len() > EVENTS_MAX {
            return Err(format!(
                "{name}: more than {EVENTS_MAX} accesses reach memory, which is all that is held: use --first"
            ));
        }
        if reached.is_empty() {
            return Err(format!(
                "{name}: has no accesses; expected at least one: record it again, or check that the program ran"
            ));
        }
        let line_of = |memory: &Memory| match memory {
            Memory::Fill { line, .. } | Memory::WriteBack { line } => *line,
        };
        let places = Places::new(reached.iter().map(line_of));
        let too_large = || format!("{name}: touches more than 128 GB of pages: use --first");
        let pages =
            u32::try_from(places.pages()).ok().filter(|pages| *pages < 1 << 25).ok_or_else(too_large)?;
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
