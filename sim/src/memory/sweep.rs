//! Sweeps over experiments on memory racks.

use super::experiment::MemoryExperiment;
use super::spec::MemorySpec;
use crate::experiment::{ExperimentError, parse_toml};
use crate::sweep::{checksum, product, set, show};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// Maximum tasks of a sweep.
const TASKS_MAX: usize = 10_000;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SweepSpec {
    name: String,
    base: String,
    #[serde(default)]
    seeds: Vec<i64>,
    #[serde(default)]
    vary: BTreeMap<String, Vec<Value>>,
    #[serde(default)]
    case: Vec<CaseSpec>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseSpec {
    name: String,
    #[serde(default)]
    set: BTreeMap<String, Value>,
    #[serde(default)]
    golden: BTreeMap<String, f64>,
}

/// One run of a sweep.
#[derive(Clone, Debug)]
pub struct MemoryTask {
    /// Id, which names the result file. Equal settings give equal ids.
    pub id: String,
    /// Settings that distinguish it.
    pub settings: BTreeMap<String, String>,
    /// Experiment to run.
    pub experiment: MemoryExperiment,
}

/// A list of tasks.
#[derive(Clone, Debug)]
pub struct MemorySweep {
    /// Name of the sweep.
    pub name: String,
    /// Tasks, in order: cases, varied values, seeds.
    pub tasks: Vec<MemoryTask>,
}

impl MemorySweep {
    /// Reads a sweep. `read` returns text and name of the base experiment's file. Every combination of cases, varied values
    /// and seeds is a task.
    pub fn parse(
        text: &str,
        file: &str,
        read: impl FnOnce(&str) -> Result<(String, String), String>,
    ) -> Result<MemorySweep, ExperimentError> {
        let refuse = |message: String| ExperimentError(vec![message]);
        let spec: SweepSpec = parse_toml(text, file, "docs/edm.md shows a sweep")?;
        let base = read(&spec.base).map_err(|error| refuse(format!("{file}: base: {error}")))?;
        let (base_text, base_file) = (&base.0, base.1.as_str());
        // The base is checked unchanged first, so that its mistakes are reported with their lines.
        MemoryExperiment::parse(base_text, base_file)?;
        let base: Table =
            toml::from_str(base_text).map_err(|error| refuse(format!("{base_file}: {error}")))?;
        let cases = if spec.case.is_empty() { vec![CaseSpec::default()] } else { spec.case };
        let seeds = if spec.seeds.is_empty() { vec![1] } else { spec.seeds };
        let combinations = spec.vary.values().map(Vec::len).product::<usize>() * cases.len() * seeds.len();
        if combinations == 0 || combinations > TASKS_MAX {
            return Err(refuse(format!(
                "{file}: makes {combinations} tasks; it has to be 1 to {TASKS_MAX}: look at seeds, vary and case"
            )));
        }
        let mut tasks = Vec::with_capacity(combinations);
        for case in &cases {
            for mut settings in product(&spec.vary) {
                settings.extend(case.set.clone());
                for seed in &seeds {
                    let task = task(&spec.name, (&base, base_file), case, &settings, *seed);
                    tasks.push(task.map_err(|error| refuse(format!("{file}: {error}")))?);
                }
            }
        }
        Ok(MemorySweep { name: spec.name, tasks })
    }
}

fn task(
    sweep: &str,
    (base, base_file): (&Table, &str),
    case: &CaseSpec,
    settings: &BTreeMap<String, Value>,
    seed: i64,
) -> Result<MemoryTask, String> {
    let mut table = base.clone();
    for (key, value) in settings {
        set(&mut table, key, value.clone())?;
    }
    for (scheme, value) in &case.golden {
        set(&mut table, &format!("golden.{scheme}"), Value::Float(*value))?;
    }
    table.insert("seed".into(), Value::Integer(seed));
    let mut settings: BTreeMap<String, String> =
        settings.iter().map(|(key, value)| (key.clone(), show(value))).collect();
    settings.insert("seed".into(), seed.to_string());
    if !case.name.is_empty() {
        settings.insert("case".into(), case.name.clone());
    }
    let text = toml::to_string(&table).map_err(|error| error.to_string())?;
    let spec: MemorySpec = toml::from_str(&text)
        .map_err(|error| format!("{settings:?} on {base_file}: {}", error.message().replace('\n', ", ")))?;
    let experiment =
        MemoryExperiment::of(spec, &text, base_file).map_err(|error| format!("{settings:?}: {error}"))?;
    Ok(MemoryTask { id: format!("{sweep}-{:016x}", checksum(&text)), settings, experiment })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str =
        "name = \"b\"\nkind = \"memory\"\nnodes = 8\n[workload]\nsize = 64\nload = 0.5\nmessages = 1000\n";

    fn parse(text: &str) -> Result<MemorySweep, ExperimentError> {
        MemorySweep::parse(text, "s.toml", |_| Ok((BASE.into(), "b.toml".into())))
    }

    #[test]
    fn every_combination_is_a_task_with_an_id_of_its_own() {
        let text = "name = \"s\"\nbase = \"b.toml\"\nseeds = [1, 2]\n[vary]\n\"workload.load\" = [0.1, 0.2]\n\
                    [[case]]\nname = \"a\"\ngolden = { edm = 1.5 }\n[[case]]\nname = \"b\"\nset = { \"edm.policy\" = \"srpt\" }\n";
        let sweep = parse(text).unwrap();
        let ids: std::collections::BTreeSet<&str> = sweep.tasks.iter().map(|task| task.id.as_str()).collect();
        assert_eq!((sweep.tasks.len(), ids.len()), (8, 8));
        assert_eq!(sweep.tasks[0].experiment.spec.golden.get("edm"), Some(&1.5));
    }

    #[test]
    fn mistakes_are_named() {
        for (more, named) in [
            ("[vary]\n\"workload.load\" = [2.0]", "load: 2 is out of range"),
            ("[vary]\n\"workload.lode\" = [0.5]", "unknown field"),
            ("[vary]\n\"workload.load\" = []", "0 tasks"),
            ("nonsense = 1", "s.toml:3: unknown field"),
        ] {
            let error = parse(&format!("name = \"s\"\nbase = \"b.toml\"\n{more}\n")).unwrap_err().to_string();
            assert!(error.contains(named), "{more}: {error}");
        }
    }
}
