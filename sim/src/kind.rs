//! Kinds of experiments. A kind is a type that reads its files and runs them; results carry its name.
//!
//! To add one, implement [`ExperimentKind`] for it here, and its presentation in `cli/src/cmd/sim/kinds/`.

use crate::cache::{self, CacheExperiment, CacheOutcome};
use crate::clio::{self, ClioExperiment, ClioOutcome, run_clio};
use crate::cowbird::{self, CowbirdExperiment, CowbirdOutcome, run_cowbird};
use crate::experiment::{Experiment, ExperimentError, without_lines};
use crate::memory::{self, MemoryExperiment, MemoryOutcome, Table1, Table1Experiment, run_memory};
use crate::outcome::{Outcome, run};
use crate::topology::{self, TopologyExperiment, TopologyOutcome};
use p4rack_codegen::setting::{self, Setting};
use serde::Serialize;
use std::path::PathBuf;

/// A kind of experiments.
pub trait ExperimentKind: Clone + Sync {
    /// The value of `kind` in results, and in files of all kinds but racks of frames, which have no `kind`.
    const NAME: &'static str;
    /// The page that lists the fields of its files.
    const FIELDS: &'static str;
    /// Results of a run.
    type Outcome: Serialize;

    /// Reads and checks an experiment; `file` names it in errors.
    fn parse(text: &str, file: &str) -> Result<Self, ExperimentError>;

    /// Reads the files that the experiment names; `read` returns a file's text, and `place` is its path.
    fn read_files(
        self,
        _read: &dyn Fn(&str) -> Result<String, String>,
        _place: &dyn Fn(&str) -> PathBuf,
    ) -> Result<Self, String> {
        Ok(self)
    }

    /// Replaces the file's seed.
    fn set_seed(&mut self, seed: u64);

    /// Runs it. The same experiment gives the same results.
    fn run(&self) -> Result<Self::Outcome, String>;

    /// Checks that failed.
    fn problems(outcome: &mut Self::Outcome) -> &mut Vec<String>;

    /// Like [`ExperimentKind::parse`], with these keys set. Errors name the settings instead of lines.
    fn parse_set(text: &str, file: &str, settings: &[Setting]) -> Result<Self, ExperimentError> {
        parse_changed(text, file, settings)
    }
}

/// See [`ExperimentKind::parse_set`].
fn parse_changed<E: ExperimentKind>(
    text: &str,
    file: &str,
    settings: &[Setting],
) -> Result<E, ExperimentError> {
    if settings.is_empty() {
        return E::parse(text, file);
    }
    match setting::apply(text, settings) {
        Ok(changed) => {
            E::parse(&changed, file).map_err(|error| without_lines(error, &changed, file, settings))
        }
        // If the file itself is no TOML, that is the mistake.
        Err(error) => E::parse(text, file).and(Err(ExperimentError(vec![format!("{file}: {error}")]))),
    }
}

/// The name of the kind of experiments of which a file says that it is; none if it says nothing, or is no TOML.
pub fn kind_of(text: &str) -> Option<String> {
    let table: toml::Table = toml::from_str(text).ok()?;
    Some(table.get("kind")?.as_str()?.to_owned())
}

impl ExperimentKind for Experiment {
    const NAME: &'static str = "frames";
    const FIELDS: &'static str = "docs/sim.md";
    type Outcome = Outcome;

    fn parse(text: &str, file: &str) -> Result<Experiment, ExperimentError> {
        Experiment::parse(text, file)
    }

    fn read_files(
        self,
        read: &dyn Fn(&str) -> Result<String, String>,
        _place: &dyn Fn(&str) -> PathBuf,
    ) -> Result<Experiment, String> {
        self.read_traces(read).map_err(|error| error.to_string())
    }

    fn set_seed(&mut self, seed: u64) {
        self.spec.seed = seed;
    }

    fn run(&self) -> Result<Outcome, String> {
        run(self, None).map(|(outcome, _)| outcome).map_err(|error| error.to_string())
    }

    fn problems(outcome: &mut Outcome) -> &mut Vec<String> {
        &mut outcome.problems
    }
}

impl ExperimentKind for MemoryExperiment {
    const NAME: &'static str = memory::KIND;
    const FIELDS: &'static str = "docs/edm.md";
    type Outcome = MemoryOutcome;

    fn parse(text: &str, file: &str) -> Result<MemoryExperiment, ExperimentError> {
        MemoryExperiment::parse(text, file)
    }

    fn read_files(
        self,
        read: &dyn Fn(&str) -> Result<String, String>,
        _place: &dyn Fn(&str) -> PathBuf,
    ) -> Result<MemoryExperiment, String> {
        self.read_trace(read)
    }

    fn set_seed(&mut self, seed: u64) {
        self.spec.seed = seed;
    }

    fn run(&self) -> Result<MemoryOutcome, String> {
        Ok(run_memory(self))
    }

    fn problems(outcome: &mut MemoryOutcome) -> &mut Vec<String> {
        &mut outcome.problems
    }
}

impl ExperimentKind for Table1Experiment {
    const NAME: &'static str = memory::TABLE_KIND;
    const FIELDS: &'static str = "docs/edm.md";
    type Outcome = Table1;

    fn parse(text: &str, file: &str) -> Result<Table1Experiment, ExperimentError> {
        Table1Experiment::parse(text, file)
    }

    /// Nothing in the table is random.
    fn set_seed(&mut self, _seed: u64) {}

    fn run(&self) -> Result<Table1, String> {
        Table1Experiment::run(self)
    }

    fn problems(outcome: &mut Table1) -> &mut Vec<String> {
        &mut outcome.problems
    }
}

impl ExperimentKind for CowbirdExperiment {
    const NAME: &'static str = cowbird::KIND;
    const FIELDS: &'static str = "docs/cowbird.md";
    type Outcome = CowbirdOutcome;

    fn parse(text: &str, file: &str) -> Result<CowbirdExperiment, ExperimentError> {
        CowbirdExperiment::parse(text, file)
    }

    fn set_seed(&mut self, seed: u64) {
        self.spec.seed = seed;
    }

    fn run(&self) -> Result<CowbirdOutcome, String> {
        run_cowbird(self)
    }

    fn problems(outcome: &mut CowbirdOutcome) -> &mut Vec<String> {
        &mut outcome.problems
    }
}

impl ExperimentKind for ClioExperiment {
    const NAME: &'static str = clio::KIND;
    const FIELDS: &'static str = "docs/clio.md";
    type Outcome = ClioOutcome;

    fn parse(text: &str, file: &str) -> Result<ClioExperiment, ExperimentError> {
        ClioExperiment::parse(text, file)
    }

    fn set_seed(&mut self, seed: u64) {
        self.spec.seed = seed;
    }

    fn run(&self) -> Result<ClioOutcome, String> {
        run_clio(self)
    }

    fn problems(outcome: &mut ClioOutcome) -> &mut Vec<String> {
        &mut outcome.problems
    }
}

impl ExperimentKind for CacheExperiment {
    const NAME: &'static str = cache::KIND;
    const FIELDS: &'static str = "docs/unimem.md";
    type Outcome = CacheOutcome;

    fn parse(text: &str, file: &str) -> Result<CacheExperiment, ExperimentError> {
        CacheExperiment::parse(text, file)
    }

    fn read_files(
        self,
        read: &dyn Fn(&str) -> Result<String, String>,
        place: &dyn Fn(&str) -> PathBuf,
    ) -> Result<CacheExperiment, String> {
        self.read_load(read, place)
    }

    fn set_seed(&mut self, seed: u64) {
        self.spec.seed = Some(seed);
    }

    fn run(&self) -> Result<CacheOutcome, String> {
        CacheExperiment::run(self)
    }

    fn problems(outcome: &mut CacheOutcome) -> &mut Vec<String> {
        &mut outcome.problems
    }
}

impl ExperimentKind for TopologyExperiment {
    const NAME: &'static str = topology::KIND;
    const FIELDS: &'static str = "docs/sim.md";
    type Outcome = TopologyOutcome;

    fn parse(text: &str, file: &str) -> Result<TopologyExperiment, ExperimentError> {
        TopologyExperiment::parse(text, file)
    }

    fn parse_set(
        text: &str,
        file: &str,
        settings: &[Setting],
    ) -> Result<TopologyExperiment, ExperimentError> {
        // Some mistakes show only once its topology has been read.
        parse_changed(text, file, settings).map(|made: TopologyExperiment| made.with_settings(settings))
    }

    fn read_files(
        self,
        _read: &dyn Fn(&str) -> Result<String, String>,
        place: &dyn Fn(&str) -> PathBuf,
    ) -> Result<TopologyExperiment, String> {
        self.read_captures(&mut |name| topology::read_capture(&place(name)))
    }

    fn set_seed(&mut self, seed: u64) {
        self.spec.seed = seed;
    }

    fn run(&self) -> Result<TopologyOutcome, String> {
        TopologyExperiment::run(self)
    }

    fn problems(outcome: &mut TopologyOutcome) -> &mut Vec<String> {
        &mut outcome.problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COWBIRD: &str = "name = \"b\"\nkind = \"cowbird\"\nthreads = 2\n[cpu]\naccess_ns = 100\n";

    fn set(settings: &[&str]) -> Result<CowbirdExperiment, String> {
        let settings: Vec<Setting> = settings.iter().map(|setting| setting.parse().unwrap()).collect();
        CowbirdExperiment::parse_set(COWBIRD, "b.toml", &settings).map_err(|error| error.to_string())
    }

    #[test]
    fn settings_replace_and_add_keys() {
        let experiment = set(&["threads=4", "cpu.access_ns=90", "nic.gap_ns=7", "rate=50 Gb/s"]).unwrap();
        assert_eq!((experiment.spec.threads, experiment.spec.cpu.access_ns), (4, 90));
        assert_eq!((experiment.spec.nic.gap_ns, experiment.rate_bps), (7, 50_000_000_000));
    }

    #[test]
    fn mistakes_of_settings_name_the_key_and_no_line() {
        for (setting, says) in [
            ("threads=0", "b.toml with --set threads=0: threads: 0 is out of range"),
            ("threads=many", "--set threads=\"many\": `threads = \"many\"`: invalid type: string"),
            ("cpu.thought_ns=1", "--set cpu.thought_ns=1: unknown field `thought_ns`, expected one of"),
            ("nothing.x=1", "unknown field `nothing`"),
            ("threads.x=1", "b.toml: --set threads.x=1: threads is a value, not a table"),
        ] {
            let error = set(&[setting]).map(|_| ()).unwrap_err();
            assert!(error.contains(says), "{setting}: {error}");
        }
    }
}
