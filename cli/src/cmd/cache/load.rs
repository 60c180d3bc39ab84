//! Where a command's accesses come from: a trace, or a recipe of a synthetic one.

use p4rack_cache::simulate::Load;
use p4rack_sim::Gathered;
use p4rack_trace::formats::{self, FORMATS, Options};
use p4rack_trace::synth::Recipe;
use p4rack_trace::{Access, CpuCache, MODELS};
use std::path::{Path, PathBuf};

/// Options of a trace that is read.
#[derive(clap::Args, Debug)]
pub struct Source {
    /// Trace, or recipe of a synthetic one (.toml)
    #[arg(value_name = "TRACE")]
    file: PathBuf,
    #[command(flatten)]
    front: Front,
}

/// CPU caches in front of memory.
#[derive(clap::Args, Debug)]
pub struct Front {
    #[command(flatten)]
    reading: Reading,
    /// Caches of the CPU in front
    #[arg(long, default_value = "small", value_parser = super::names(MODELS.iter().map(|model| model.name)))]
    cpu: String,
    /// Use the first N accesses only
    #[arg(long, value_name = "N", value_parser = crate::numbers::within::<u64>(1..))]
    first: Option<u64>,
}

/// Options of reading a trace.
#[derive(clap::Args, Debug)]
pub struct Reading {
    /// Format of the trace [default: by its first bytes]
    #[arg(long, value_parser = super::names(FORMATS.iter().map(|format| format.name)))]
    format: Option<String>,
    /// Bytes of an object, in formats that number objects
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
            recipe.make(take);
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
    /// The trace's accesses that reach memory, with addresses without gaps.
    pub fn load(&self) -> Result<Load, String> {
        self.front.load(&self.file)
    }
}

impl Front {
    /// A trace's accesses that reach memory, with addresses without gaps.
    pub fn load(&self, file: &Path) -> Result<Load, String> {
        let mut gathered = Gathered::new(cpu(&self.cpu)?);
        let mut left = self.first.unwrap_or(u64::MAX);
        self.reading.each(file, &mut |access| {
            left -= 1;
            gathered.access(&access) && left > 0
        })?;
        gathered.load().map_err(|error| format!("{}: {error}", file.display()))
    }
}
