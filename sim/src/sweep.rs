//! Sweeps: parameters times seeds. A sweep is a list of independent tasks. Each has an id that depends only on its
//! experiment, so any machine may run any of them in any order.

use crate::experiment::{Experiment, ExperimentError, parse_file};
use crate::kind::ExperimentKind;
use p4rack_codegen::kind::Kind;
use p4rack_codegen::setting::{self, Setting};
use p4rack_wire::hash::fnv1a;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// Maximum tasks of a sweep.
const TASKS_MAX: usize = 100_000;

/// Fields of the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SweepSpec {
    name: String,
    /// Path of the experiment that is varied, relative to the sweep's folder.
    base: String,
    #[serde(default = "one_seed")]
    seeds: Vec<u64>,
    /// Values by key; every combination is run.
    #[serde(default)]
    vary: BTreeMap<String, Vec<Value>>,
    /// Named sets of values, each combined with the above.
    #[serde(default)]
    case: Vec<CaseSpec>,
    /// Ratios between two cases that a paper gives.
    #[serde(default)]
    ratio: Vec<Ratio>,
}

/// `[[ratio]]`: how a figure of one case compares with that of another, all else being equal, according to a
/// paper.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Ratio {
    /// The figure, as a path into the results, e.g. `goodput_gbps`.
    pub figure: String,
    /// The case in the numerator.
    pub of: String,
    /// The case in the denominator.
    pub by: String,
    /// The paper's ratio.
    pub says: f64,
    /// Whether that is a bound: less is as the paper says.
    #[serde(default)]
    pub at_most: bool,
    /// Whether that is the greatest of the paper's ratios, "up to": less is as the paper says, if one is as great.
    #[serde(default)]
    pub up_to: bool,
    /// Whether that is the mean of the paper's ratios, "on average".
    #[serde(default)]
    pub mean: bool,
    /// How far ours may be from it and still be the same, as a share of it. Default: 0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
    /// Settings that it speaks of: keys that vary, with one of several values; any if not given.
    #[serde(default, skip_serializing)]
    pub at: BTreeMap<String, Vec<Value>>,
    /// Settings of the denominator that differ: keys that vary. All others are those of the numerator.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", serialize_with = "shown")]
    pub by_at: BTreeMap<String, Value>,
    /// Place in the paper, quoted.
    pub source: String,
    /// Why our ratio differs, if it does.
    pub why: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseSpec {
    name: String,
    #[serde(default)]
    set: BTreeMap<String, Value>,
}

fn one_seed() -> Vec<u64> {
    vec![1]
}

impl SweepSpec {
    /// Errors: a key is set to one value that the sweep sets to others.
    fn check_settings(&self, settings: &[Setting]) -> Result<(), String> {
        for setting in settings {
            let key = setting.key.as_str();
            let place = match self.case.iter().find(|case| case.set.contains_key(key)) {
                Some(case) => format!("its case `{}` sets that key", case.name),
                None if self.vary.contains_key(key) => "it varies that key".to_owned(),
                None if key == "seed" => "its `seeds` set that key".to_owned(),
                None => continue,
            };
            return Err(format!("{setting}: {place}; change the sweep, or leave the setting out"));
        }
        Ok(())
    }
}

/// One run of a sweep.
#[derive(Clone, Debug)]
pub struct Task<E = Experiment> {
    /// Id, which names the result file. Equal settings give equal ids.
    pub id: String,
    /// Settings that distinguish it: case, seed, varied keys.
    pub settings: BTreeMap<String, String>,
    /// Experiment to run.
    pub experiment: E,
}

/// A task's result, as in its file.
#[derive(Clone, Debug, Serialize)]
pub struct TaskResult<'a, O> {
    /// Kind of the experiment.
    pub kind: &'static str,
    /// Id of the task.
    pub id: &'a str,
    /// Name of the sweep.
    pub sweep: &'a str,
    /// Settings that distinguish the task.
    pub settings: &'a BTreeMap<String, String>,
    /// A paper's ratios of its case to another.
    pub ratios: Vec<&'a Ratio>,
    /// Results of the run.
    pub outcome: &'a O,
}

/// A list of tasks.
#[derive(Clone, Debug)]
pub struct Sweep<E = Experiment> {
    /// Name of the sweep.
    pub name: String,
    /// Tasks, in order.
    pub tasks: Vec<Task<E>>,
    /// A paper's ratios between two of its cases.
    pub ratios: Vec<Ratio>,
}

impl<E: ExperimentKind> Sweep<E> {
    /// Reads a sweep, with these keys of its base set. `read` returns the text of the base experiment's file and its name.
    pub fn parse(
        text: &str,
        file: &str,
        settings: &[Setting],
        read: impl FnOnce(&str) -> Result<(String, String), String>,
    ) -> Result<Sweep<E>, ExperimentError> {
        let refuse = |message: String| ExperimentError(vec![message]);
        let help = format!("{} shows a sweep", E::FIELDS);
        let spec: SweepSpec = parse_file(text, file, Kind::Sweep, &help)?;
        spec.check_settings(settings).map_err(|error| refuse(format!("{file}: {error}")))?;
        let (base_text, base_file) =
            read(&spec.base).map_err(|error| refuse(format!("{file}: base: {error}")))?;
        // The base is checked before anything varies, so that its mistakes are reported with their lines.
        E::parse_set(&base_text, &base_file, settings)?;
        let mut base: Table =
            toml::from_str(&base_text).map_err(|error| refuse(format!("{base_file}: {error}")))?;
        for Setting { key, value } in settings {
            setting::set(&mut base, key, value.clone()).map_err(refuse)?;
        }
        let cases = if spec.case.is_empty() { vec![CaseSpec::default()] } else { spec.case.clone() };
        let combinations =
            spec.vary.values().map(Vec::len).product::<usize>() * cases.len() * spec.seeds.len();
        for ratio in &spec.ratio {
            for name in [&ratio.of, &ratio.by] {
                if !cases.iter().any(|case| case.name == *name) {
                    return Err(refuse(format!(
                        "{file}: [[ratio]]: `{name}` is no case; write the name of one"
                    )));
                }
            }
            for (key, value) in &ratio.by_at {
                if !spec.vary.get(key).is_some_and(|values| values.contains(value)) {
                    return Err(refuse(format!(
                        "{file}: [[ratio]] of `{}`: by_at: `{key}` does not vary with {}; write a value of [vary]",
                        ratio.of,
                        show(value)
                    )));
                }
            }
            if [ratio.at_most, ratio.up_to, ratio.mean].iter().filter(|set| **set).count() > 1 {
                return Err(refuse(format!(
                    "{file}: [[ratio]] of `{}`: at_most, up_to and mean exclude each other; leave one in",
                    ratio.of
                )));
            }
        }
        if combinations == 0 || combinations > TASKS_MAX {
            return Err(refuse(format!(
                "{file}: makes {combinations} tasks; it has to be 1 to {TASKS_MAX}: look at seeds, vary and case"
            )));
        }
        let mut tasks = Vec::with_capacity(combinations);
        for case in &cases {
            for mut settings in product(&spec.vary) {
                settings.extend(case.set.iter().map(|(key, value)| (key.clone(), value.clone())));
                for seed in &spec.seeds {
                    let task = task(&spec.name, &base, &base_file, case, &settings, *seed);
                    tasks.push(task.map_err(|error| refuse(format!("{file}: {error}")))?);
                }
            }
        }
        Ok(Sweep { name: spec.name, tasks, ratios: spec.ratio })
    }

    /// A label that identifies a task: its case, and the settings that vary within the case.
    pub fn label(&self, task: &Task<E>) -> String {
        // A case's name replaces its own settings.
        let alike = self.tasks.iter().filter(|other| other.settings.get("case") == task.settings.get("case"));
        let values: BTreeSet<(&String, &String)> = alike.flat_map(|other| &other.settings).collect();
        let varies = |key: &str| values.iter().filter(|(other, _)| *other == key).count() > 1;
        let words = task.settings.iter().filter_map(|(key, value)| match key.as_str() {
            "case" => Some(value.clone()),
            key if varies(key) => Some(format!("{} {value}", key.rsplit('.').next().unwrap_or(key))),
            _ => None,
        });
        words.collect::<Vec<_>>().join(", ")
    }

    /// A paper's ratios of `task`'s case to another.
    pub fn ratios_of(&self, task: &Task<E>) -> Vec<&Ratio> {
        let case = task.settings.get("case");
        let is_set = |(key, values): (&String, &Vec<Value>)| {
            values.iter().any(|value| task.settings.get(key) == Some(&show(value)))
        };
        let concerns = |ratio: &&Ratio| case == Some(&ratio.of) && ratio.at.iter().all(is_set);
        self.ratios.iter().filter(concerns).collect()
    }
}

/// The base that a sweep names, if the text is a sweep.
pub fn base_of(text: &str) -> Option<String> {
    let table: Table = toml::from_str(text).ok()?;
    Some(table.get("base")?.as_str()?.to_owned())
}

/// Every combination of values.
pub(crate) fn product(vary: &BTreeMap<String, Vec<Value>>) -> Vec<BTreeMap<String, Value>> {
    let mut all = vec![BTreeMap::new()];
    for (key, values) in vary {
        let with = |one: &BTreeMap<String, Value>, value: &Value| {
            let mut one = one.clone();
            one.insert(key.clone(), value.clone());
            one
        };
        all = all.iter().flat_map(|one| values.iter().map(move |value| with(one, value))).collect();
    }
    all
}

fn task<E: ExperimentKind>(
    sweep: &str,
    base: &Table,
    base_file: &str,
    case: &CaseSpec,
    settings: &BTreeMap<String, Value>,
    seed: u64,
) -> Result<Task<E>, String> {
    let mut table = base.clone();
    for (key, value) in settings {
        setting::set(&mut table, key, value.clone()).map_err(|error| format!("`{key}`: {error}"))?;
    }
    table.insert("seed".into(), Value::Integer(seed as i64));
    let text = toml::to_string(&table).map_err(|error| error.to_string())?;
    let mut names: BTreeMap<String, String> =
        settings.iter().map(|(key, value)| (key.clone(), show(value))).collect();
    names.insert("seed".into(), seed.to_string());
    if !case.name.is_empty() {
        names.insert("case".into(), case.name.clone());
    }
    let experiment = E::parse(&text, base_file).map_err(|error| format!("{names:?} on {error}"))?;
    let id = format!("{sweep}-{:016x}", fnv1a(text.bytes()));
    Ok(Task { id, settings: names, experiment })
}

pub(crate) fn show(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(show).collect::<Vec<_>>().join("+"),
        other => other.to_string(),
    }
}

/// Values as in the settings of a task.
fn shown<S: serde::Serializer>(values: &BTreeMap<String, Value>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(values.iter().map(|(key, value)| (key, show(value))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "name = \"b\"\nduration_us = 100\n[rack]\nhosts = 4\n[scheme]\nkind = \"pl2-clock\"\n\
                        [[traffic]]\nname = \"x\"\npattern = \"incast\"\nsize = 6000\narrivals = \"saturate\"\n";

    fn parse(text: &str) -> Result<Sweep, ExperimentError> {
        parse_set(text, &[])
    }

    fn parse_set(text: &str, settings: &[&str]) -> Result<Sweep, ExperimentError> {
        let settings: Vec<Setting> = settings.iter().map(|setting| setting.parse().unwrap()).collect();
        Sweep::parse(text, "s.toml", &settings, |_| Ok((BASE.into(), "b.toml".into())))
    }

    #[test]
    fn every_combination_has_a_stable_id_of_its_own() {
        let text = "name = \"s\"\nbase = \"b.toml\"\nseeds = [1, 2]\n[vary]\n\"scheme.in_flight\" = [1, 2, 3]\n\
                    \"traffic.0.size\" = [100, \"W3\"]\n[[case]]\nname = \"a\"\n[[case]]\nname = \"b\"\nset = { \"scheme.k\" = 8 }\n";
        let (first, second) = (parse(text).unwrap(), parse(text).unwrap());
        assert_eq!(first.tasks.len(), 2 * 3 * 2 * 2);
        let ids: std::collections::BTreeSet<_> = first.tasks.iter().map(|task| task.id.clone()).collect();
        assert_eq!(ids.len(), first.tasks.len());
        assert!(first.tasks.iter().zip(&second.tasks).all(|(a, b)| a.id == b.id));
        assert!(first.tasks.iter().any(|task| task.experiment.spec.scheme.k_slots() == 8));
    }

    #[test]
    fn a_ratio_belongs_to_the_case_that_it_is_of() {
        let text = "name = \"s\"\nbase = \"b.toml\"\n[[case]]\nname = \"a\"\n[[case]]\nname = \"b\"\n[[ratio]]\n\
                    figure = \"goodput_gbps\"\nof = \"a\"\nby = \"b\"\nsays = 1.8\nsource = \"x\"\n";
        let sweep = parse(text).unwrap();
        let counts: Vec<usize> = sweep.tasks.iter().map(|task| sweep.ratios_of(task).len()).collect();
        assert_eq!(counts, [1, 0]);
        let at = "at = { \"scheme.k\" = [8] }\n[vary]\n\"scheme.k\" = [4, 8]\n";
        let sweep = parse(&format!("{text}{at}")).unwrap();
        let counts: Vec<usize> = sweep.tasks.iter().map(|task| sweep.ratios_of(task).len()).collect();
        assert_eq!(counts, [0, 1, 0, 0]);
    }

    #[test]
    fn settings_hold_in_all_tasks_unless_the_sweep_sets_the_same() {
        let text = "name = \"s\"\nbase = \"b.toml\"\n[vary]\n\"scheme.k\" = [4, 8]\n[[case]]\nname = \"a\"\n\
                    set = { \"scheme.t\" = 3 }\n";
        let sweep = parse_set(text, &["rack.hosts=6", "traffic.0.size=1000"]).unwrap();
        assert!(sweep.tasks.iter().all(|task| task.experiment.spec.rack.hosts == 6));
        let plain = parse(text).unwrap();
        assert!(plain.tasks.iter().all(|task| sweep.tasks.iter().all(|other| other.id != task.id)));
        for (setting, says) in [
            ("scheme.k=1", "s.toml: --set scheme.k=1: it varies that key"),
            ("scheme.t=1", "s.toml: --set scheme.t=1: its case `a` sets that key"),
            ("seed=1", "s.toml: --set seed=1: its `seeds` set that key"),
            ("scheme.kk=1", "b.toml with --set scheme.kk=1: unknown field `kk`"),
        ] {
            let error = parse_set(text, &[setting]).unwrap_err().to_string();
            assert!(error.contains(says), "{setting}: {error}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (more, named) in [
            ("[vary]\n\"scheme.k\" = [0]", "k: is 0"),
            ("[vary]\n\"scheme.kk\" = [1]", "unknown field"),
            ("[vary]\n\"traffic.3.size\" = [1]", "`3` is no element of traffic, which has 1"),
            ("[vary]\n\"scheme.k\" = []", "0 tasks"),
            (
                "[[case]]\nname = \"a\"\n[[ratio]]\nfigure = \"goodput_gbps\"\nof = \"a\"\nby = \"a\"\nsays = 2.0\nsource = \"\"\n\
                 at_most = true\nup_to = true",
                "s.toml: [[ratio]] of `a`: at_most, up_to and mean exclude each other; leave one in",
            ),
            (
                "[[case]]\nname = \"a\"\n[[ratio]]\nfigure = \"goodput_gbps\"\nof = \"a\"\nby = \"c\"\nsays = 2.0\nsource = \"\"",
                "`c` is no case",
            ),
            (
                "[[case]]\nname = \"a\"\n[[ratio]]\nfigure = \"goodput_gbps\"\nof = \"a\"\nby = \"a\"\nsays = 2.0\nsource = \"\"\n\
                 by_at = { \"scheme.k\" = 3 }\n[vary]\n\"scheme.k\" = [4, 8]",
                "s.toml: [[ratio]] of `a`: by_at: `scheme.k` does not vary with 3",
            ),
            ("nonsense = 1", "s.toml:3: unknown field"),
        ] {
            let error = parse(&format!("name = \"s\"\nbase = \"b.toml\"\n{more}\n")).unwrap_err().to_string();
            assert!(error.contains(named), "{more}: {error}");
        }
    }
}
