//! Presentation of a kind of experiments: figures, and their form in the report.

use super::files::{beside, place};
use super::network::Shared;
use super::threads::THREADS_MAX;
use p4rack_sim::ExperimentKind;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// How `sim run` runs an experiment.
#[derive(clap::Args, Debug)]
pub struct RunOptions {
    /// Seed that overrides the file's
    #[arg(long, value_parser = crate::numbers::number::<u64>)]
    pub seed: Option<u64>,
    /// Run twice and compare all events
    #[arg(long)]
    pub twice: bool,
    /// Threads that share the work on this run; the results are the same for any number. Useful for large
    /// racks and topologies on an otherwise idle machine. Racks with rounds, captures or traces use one
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = crate::numbers::within::<u64>(1..=THREADS_MAX))]
    pub threads: u64,
    /// Capture a host's link in both directions as DIR/NAME.pcap; may be repeated
    #[arg(long, value_name = "HOST")]
    pub pcap: Vec<String>,
    /// Folder for captures and traces
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out_dir: PathBuf,
    /// Trace one message, counted from 0 in the order of creation; also written as DIR/message-ID.trace.json
    /// for chrome://tracing and Perfetto
    #[arg(long, value_name = "ID", value_parser = crate::numbers::number::<u64>)]
    pub trace_message: Option<u64>,
}

impl RunOptions {
    /// Errors: options that only racks of frames and topologies have.
    pub fn refuse_those_of_frames(&self, kind: &str) -> Result<(), String> {
        match self.trace_message.is_some() || !self.pcap.is_empty() || self.threads > 1 {
            true => Err(format!(
                "experiments of kind \"{kind}\" run on one thread and are not captured; leave out --threads, --pcap and \
                 --trace-message"
            )),
            false => Ok(()),
        }
    }
}

/// Presentation of a kind of experiments.
pub trait Shown: ExperimentKind {
    /// How the report shows its results.
    const PAGE: Page;
    /// Columns of a merged table: name, and path in a result.
    const MERGED: &'static [(&'static str, &'static str)] =
        &[("id", "/id"), ("name", "/outcome/name"), ("problems", "/outcome/problems")];
    /// Table that a sweep prints at its end, if any.
    const TABLE: Option<Table> = None;

    /// Reads the files that the experiment names; paths are relative to the folder of `file`, the experiment or its sweep. What
    /// other experiments of the sweep have read is in `shared`.
    fn complete(self, file: &Path, _shared: &mut Shared) -> Result<Self, String> {
        self.read_files(&beside(file), &place(file))
    }

    /// Checks the options of `sim run` and prepares for them. Errors: some don't go with this experiment.
    fn check_options(&self, options: &RunOptions) -> Result<(), String> {
        options.refuse_those_of_frames(Self::NAME)
    }

    /// Runs it for `sim run`, with its options; `file` names it in errors.
    fn run_for(&self, _options: &RunOptions, file: &str) -> Result<Self::Outcome, String> {
        self.run().map_err(|error| format!("{file}: {error}"))
    }

    /// Results as text.
    fn text(outcome: &Self::Outcome) -> String;
}

/// A table of a sweep's results.
#[derive(Clone, Copy)]
pub struct Table {
    /// Its columns; see [`p4rack_lab::rows::Rows::new`].
    pub header: &'static [&'static str],
    /// The row of a task: its settings, its outcome. Errors: the outcome is of an older version.
    pub row: fn(String, &Value) -> Result<Vec<String>, String>,
}

/// How the report shows results of a kind.
#[derive(Clone, Copy)]
pub struct Page {
    /// Subject of the figures.
    pub about: &'static str,
    /// Columns of the table of runs.
    pub columns: &'static [Figure],
    /// Plotted over the setting that a sweep varies, or side by side.
    pub drawn: &'static [Figure],
    /// Quantiles of a time, plotted as the share that took longer.
    pub tail: Option<Figure>,
    /// Pairs of microseconds and a value, plotted over time.
    pub series: Option<Figure>,
    /// Path of latencies by tenth of the messages' sizes.
    pub tenths: Option<&'static str>,
    /// Parts of a result with figures of their own: a table each.
    pub parts: &'static [Parts],
    /// Path of a flag or a count, and its meaning if it is set.
    pub notes: &'static [(&'static str, &'static str)],
}

/// A figure of a result.
#[derive(Clone, Copy)]
pub struct Figure {
    /// The quantity.
    pub title: &'static str,
    /// Its unit; empty if it has none.
    pub unit: &'static str,
    /// Its path in the outcome; `*` adds all elements up, and `PATH / PATH` is a quotient.
    pub path: &'static str,
    /// Outcome's units per one of `unit`.
    pub per: f64,
}

impl Figure {
    /// Title and unit.
    pub fn heading(&self) -> String {
        format!("{} {}", self.title, self.unit).trim_end().to_owned()
    }
}

/// A figure with a title and a unit, at a path of the outcome, and how much of the outcome's unit is one of this unit.
pub const fn figure(title: &'static str, unit: &'static str, path: &'static str, per: f64) -> Figure {
    Figure { title, unit, path, per }
}

/// Parts of a result: an object, or an array of objects with names.
#[derive(Clone, Copy)]
pub struct Parts {
    /// Their name.
    pub title: &'static str,
    /// Their path in the outcome.
    pub path: &'static str,
    /// The key of an element's name; empty for an object, whose keys are the names.
    pub name: &'static str,
    /// They are shown if a result has this many.
    pub least: usize,
    /// Figures, with paths in the part. The first is plotted; one called "paper" is marked beside it.
    pub figures: &'static [Figure],
}
