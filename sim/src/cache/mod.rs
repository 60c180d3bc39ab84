//! Experiments of kind "cache": a policy of a cache of remote memory behind a CPU, on a synthetic load. A fetch has the
//! cost of a profile of latencies ([`p4rack_cache::simulate`]), or is a request of a simulated rack ([`rack`]).

mod load;
mod rack;

pub use load::Gathered;
pub use rack::{CachePlant, CacheRackSpec, RackOutcome};

use crate::experiment::{Check, ExperimentError, PaperSpec, parse_toml};
use crate::outcome::{Compared, compared, concerns};
use p4rack_cache::simulate::{Load, Local, Outcome, PROFILES, Profile, Setup, simulate};
use p4rack_cache::{Counting, Definition, simulated};
use p4rack_trace::formats::{self, Options};
use p4rack_trace::synth::Recipe;
use p4rack_trace::{Access, CpuCache, MODELS, Model};
use rack::{PROFILE, Rack};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The value of `kind` in such a file.
pub const KIND: &str = "cache";

/// Fields of the file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CacheSpec {
    /// Name of the experiment.
    pub name: String,
    kind: String,
    /// The load, a file beside the experiment: a recipe of a synthetic trace (`.toml`), or a recorded trace.
    pub load: String,
    /// The command that records the load, for the error if it is absent.
    pub recorded_by: Option<String>,
    /// Seed of a recipe. Default: its own.
    pub seed: Option<u64>,
    /// Use the first accesses only.
    pub first: Option<u64>,
    /// Model of the CPU's caches.
    #[serde(default = "small")]
    pub cpu: String,
    /// The policy.
    pub policy: String,
    /// Local memory in percent of the touched pages, tables included.
    pub local_percent: u32,
    /// Bytes of a block. Default: the policy's own.
    pub block_bytes: Option<u32>,
    /// Latencies.
    #[serde(default = "paper")]
    pub profile: String,
    /// Share of local memory that is the host's, for policies with two tiers.
    #[serde(default = "host_percent")]
    pub host_percent: u32,
    /// Whether host and device are one memory.
    #[serde(default)]
    pub one_memory: bool,
    /// Pairs of lists of UniMem's filter.
    #[serde(default = "pairs")]
    pub pairs: u32,
    /// The rack of profile `rack`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rack: Option<CacheRackSpec>,
    /// Figures of the paper.
    #[serde(default)]
    pub paper: Vec<PaperSpec>,
}

fn small() -> String {
    "small".into()
}

fn paper() -> String {
    "paper".into()
}

fn host_percent() -> u32 {
    30
}

fn pairs() -> u32 {
    1
}

/// A checked experiment.
#[derive(Clone, Debug)]
pub struct CacheExperiment {
    /// As read.
    pub spec: CacheSpec,
    policy: &'static Definition,
    remote: Remote,
    cpu: &'static Model,
    source: Option<Source>,
}

/// Where accesses come from.
#[derive(Clone, Debug)]
enum Source {
    Recipe(Recipe),
    Recorded(PathBuf),
}

impl Source {
    /// Gives all accesses to `take`, until it returns false.
    fn each(&self, take: &mut dyn FnMut(Access) -> bool) -> Result<(), String> {
        match self {
            Source::Recipe(recipe) => recipe.make(take),
            Source::Recorded(path) => {
                let accesses = formats::open(path, None, Options::default());
                for access in accesses.map_err(|error| error.to_string())? {
                    if !take(access.map_err(|error| error.to_string())?) {
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Parameters of remote memory.
#[derive(Clone, Copy, Debug)]
enum Remote {
    /// Latencies.
    Fixed(&'static Profile),
    /// The pool of a simulated rack.
    Rack(Rack),
}

/// Results of a run.
#[derive(Clone, Debug, Serialize)]
pub struct CacheOutcome {
    /// Name of the experiment.
    pub name: String,
    /// The load.
    pub load: String,
    /// Seed of the load; none if nothing in it is random, or if its parts have different ones.
    pub seed: Option<u64>,
    /// The policy.
    pub scheme: &'static str,
    /// Latencies.
    pub profile: &'static str,
    /// Local memory in percent of the touched pages.
    pub local_percent: u32,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Accesses that the CPU waited for.
    pub fills: u64,
    /// Bytes of the touched pages.
    pub footprint_bytes: u64,
    /// Share of `fills` that remote memory served.
    pub miss_share: f64,
    /// Share of `fills` that the host's memory served.
    pub host_share: f64,
    /// The policy's tables as a share of local memory.
    pub tables_share: f64,
    /// Times and bytes.
    #[serde(flatten)]
    pub counts: Outcome,
    /// With profile `rack`: results that only a rack has. Counts are then of all compute nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rack: Option<RackOutcome>,
    /// The paper's figures beside these.
    pub paper: Vec<Compared>,
    /// Checks that failed.
    pub problems: Vec<String>,
}

/// The entry of that name, or an error with the known names.
fn named<T>(
    all: impl Iterator<Item = &'static T> + Clone,
    name_of: fn(&T) -> &'static str,
    name: &str,
) -> Result<&'static T, String> {
    all.clone().find(|one| name_of(one) == name).ok_or_else(|| {
        let names: Vec<&str> = all.map(name_of).collect();
        format!("there is no `{name}`; write one of {}", names.join(", "))
    })
}

/// Reads the parameters of remote memory. Mistakes are noted in `check`; then the result is `None`.
fn remote(spec: &CacheSpec, check: &mut Check<'_>) -> Option<Remote> {
    if spec.profile == PROFILE {
        return Rack::checked(&spec.rack.clone().unwrap_or_default(), check).map(Remote::Rack);
    }
    if spec.rack.is_some() {
        let what = format!("{}: knows no rack; write \"{PROFILE}\", or leave [rack] out", spec.profile);
        check.problem("", 0, "profile", what);
    }
    let profile = named(PROFILES.iter(), |one| one.name, &spec.profile);
    profile
        .map(Remote::Fixed)
        .map_err(|error| check.problem("", 0, "profile", format!("{error}, {PROFILE}")))
        .ok()
}

impl CacheExperiment {
    /// Reads and checks a file; `file` names it in errors.
    pub fn parse(text: &str, file: &str) -> Result<CacheExperiment, ExperimentError> {
        let spec: CacheSpec = parse_toml(text, file, "docs/unimem.md lists the fields")?;
        let mut check = Check { text, file, problems: Vec::new() };
        if spec.kind != KIND {
            check.problem("", 0, "kind", format!("`{}`: write \"{KIND}\"", spec.kind));
        }
        let mut within = |key: &str, value: u64, least: u64, most: u64| {
            if !(least..=most).contains(&value) {
                check.problem("", 0, key, format!("{value} is out of range; write {least} to {most}"));
            }
        };
        within("local_percent", spec.local_percent.into(), 1, 100);
        within("host_percent", spec.host_percent.into(), 0, 90);
        within("pairs", spec.pairs.into(), 1, 64);
        within("first", spec.first.unwrap_or(1), 1, u64::MAX);
        if let Some(bytes) = spec.block_bytes
            && !(bytes.is_power_of_two() && (64..=4096).contains(&bytes))
        {
            check.problem("", 0, "block_bytes", format!("{bytes} is no size; write 64, 128, 256, … 4096"));
        }
        let policy = named(simulated(), |one| one.name, &spec.policy);
        let remote = remote(&spec, &mut check);
        let cpu = named(MODELS.iter(), |one| one.name, &spec.cpu);
        for (key, error) in [("policy", policy.as_ref().err()), ("cpu", cpu.as_ref().err())] {
            if let Some(error) = error {
                check.problem("", 0, key, error);
            }
        }
        if spec.profile == PROFILE && policy.as_ref().is_ok_and(|policy| policy.counting != Counting::Equal) {
            let what = format!(
                "{} counts time as its authors' programs do, without a rack; write another one, or another profile",
                spec.policy
            );
            check.problem("", 0, "policy", what);
        }
        match (policy, remote, cpu) {
            (Ok(policy), Some(remote), Ok(cpu)) if check.problems.is_empty() => {
                Ok(CacheExperiment { spec, policy, remote, cpu, source: None })
            }
            _ => Err(ExperimentError(check.problems)),
        }
    }

    /// Finds its load; `read` returns the text of a file beside the experiment, and `place` is its path. A recorded trace is read when the
    /// experiment runs.
    pub fn read_load(
        mut self,
        read: &dyn Fn(&str) -> Result<String, String>,
        place: &dyn Fn(&str) -> PathBuf,
    ) -> Result<Self, String> {
        let load = &self.spec.load;
        self.source = Some(if load.ends_with(".toml") {
            Source::Recipe(Recipe::read(&read(load)?, load).map_err(|error| error.to_string())?)
        } else {
            let path = place(load);
            let how = self.spec.recorded_by.as_deref().unwrap_or("p4rack trace record");
            std::fs::metadata(&path)
                .map_err(|error| format!("{}: {error}: record it first, by: {how}", path.display()))?;
            Source::Recorded(path)
        });
        Ok(self)
    }

    /// The load of a compute node, whose seed is this much higher than the first one's, and that seed.
    fn load(&self, nth: u16) -> Result<(Load, Option<u64>), String> {
        let spec = &self.spec;
        let mut source = self.source.clone().ok_or("load: was not read")?;
        let seed = match &mut source {
            Source::Recipe(recipe) => {
                spec.seed.iter().for_each(|seed| recipe.set_seed(*seed));
                if let Some(seed) = recipe.seed().filter(|_| nth > 0) {
                    recipe.set_seed(seed.wrapping_add(nth.into()));
                }
                recipe.seed()
            }
            // All compute nodes have the same one.
            Source::Recorded(_) => None,
        };
        let mut gathered = Gathered::new(CpuCache::new(self.cpu));
        let mut left = spec.first.unwrap_or(u64::MAX);
        source.each(&mut |access| {
            left -= 1;
            gathered.access(&access) && left > 0
        })?;
        let load = gathered.load().map_err(|error| format!("{}: {error}", spec.load))?;
        Ok((load, seed))
    }

    /// Runs it. Errors: its load was not read or has no accesses, or the policy refuses the size.
    pub fn run(&self) -> Result<CacheOutcome, String> {
        self.run_planted(None)
    }

    /// The same with a planted mistake, which the checks of a rack have to find.
    pub fn run_planted(&self, plant: Option<CachePlant>) -> Result<CacheOutcome, String> {
        let spec = &self.spec;
        let block_bytes = spec.block_bytes.unwrap_or(self.policy.block_bytes);
        let setup = Setup {
            block_bytes,
            local: Local::Percent(spec.local_percent),
            host_percent: spec.host_percent,
            one_memory: spec.one_memory,
            pairs: spec.pairs,
        };
        let (first, seed) = self.load(0)?;
        let footprint_bytes = first.footprint_bytes();
        let (counts, fills, shown, problems) = match &self.remote {
            Remote::Fixed(profile) => {
                let counts = simulate(self.policy, &first, &setup, profile)
                    .map_err(|refused| format!("policy {}: {refused}", self.policy.name))?;
                (counts, first.fills(), None, Vec::new())
            }
            Remote::Rack(rack) => {
                let mut loads = vec![first];
                for nth in 1..rack.nodes() {
                    loads.push(self.load(nth)?.0);
                }
                let fills = loads.iter().map(Load::fills).sum();
                let (counts, shown, problems) =
                    rack::run(rack, (self.policy, &setup), &loads, seed.unwrap_or(1), plant)?;
                (counts, fills, Some(shown), problems)
            }
        };
        let local_bytes = u64::from(counts.capacity) * u64::from(block_bytes) + counts.tables_bytes;
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let mut outcome = CacheOutcome {
            name: spec.name.clone(),
            load: spec.load.clone(),
            seed,
            scheme: self.policy.name,
            profile: match &self.remote {
                Remote::Fixed(profile) => profile.name,
                Remote::Rack(_) => PROFILE,
            },
            local_percent: spec.local_percent,
            block_bytes,
            fills,
            footprint_bytes,
            miss_share: share(counts.from_remote, fills),
            host_share: share(counts.from_host, fills),
            tables_share: share(counts.tables_bytes, local_bytes),
            counts,
            rack: shown,
            paper: Vec::new(),
            problems,
        };
        if outcome.counts.from_host + outcome.counts.from_device + outcome.counts.from_remote != fills {
            outcome.problems.push("not each access was served by one memory".into());
        }
        let settings = serde_json::to_value(spec).unwrap_or_default();
        let papers = spec.paper.iter().filter(|paper| concerns(paper, self.policy.name, &settings));
        outcome.paper = compared(&outcome, papers);
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECIPE: &str = "kind = \"uniform\"\nobjects = 2000\nbytes = 300\noperations = 4000\nseed = 1\n";

    fn text(lines: &str) -> String {
        format!(
            "name = \"c\"\nkind = \"cache\"\nload = \"uniform.toml\"\npolicy = \"lru\"\nlocal_percent = 50\n{lines}"
        )
    }

    fn run(lines: &str) -> Result<CacheOutcome, String> {
        let experiment = CacheExperiment::parse(&text(lines), "c.toml").map_err(|error| error.to_string())?;
        let read = |file: &str| match file {
            "uniform.toml" => Ok(RECIPE.to_owned()),
            _ => Err(format!("{file}: no such file")),
        };
        experiment.read_load(&read, &|file| std::env::temp_dir().join(file))?.run()
    }

    #[test]
    fn a_run_serves_each_access_and_is_the_same_again() {
        let first = run("").unwrap();
        assert_eq!((first.problems.len(), first.block_bytes, first.scheme), (0, 512, "lru"));
        assert!(first.miss_share > 0.1 && first.counts.amat_ns > 150.0, "{first:?}");
        let json = |outcome: &CacheOutcome| serde_json::to_string(outcome).unwrap();
        assert_eq!(json(&first), json(&run("").unwrap()));
        let second = run("seed = 2\n").unwrap();
        assert_ne!(json(&first), json(&second));
        assert_eq!((first.seed, second.seed), (Some(1), Some(2)), "the recipe's, and the experiment's");
        assert!(run("first = 100\n").unwrap().fills < first.fills);
    }

    #[test]
    fn figures_of_the_paper_stand_beside() {
        let outcome = run("[[paper]]\nfigure = \"miss_share\"\nsays = 0.5\nsource = \"§1\"\n").unwrap();
        assert_eq!((outcome.paper.len(), outcome.paper[0].ours), (1, Some(outcome.miss_share)));
    }

    #[test]
    fn mistakes_are_named() {
        for (from, to, says) in [
            (
                "policy = \"lru\"",
                "policy = \"lur\"",
                "c.toml:4: policy: there is no `lur`; write one of kona, ",
            ),
            ("percent = 50", "percent = 0", "c.toml:5: local_percent: 0 is out of range; write 1 to 100"),
            ("percent = 50", "percent = 50\nblock_bytes = 100", "c.toml:6: block_bytes: 100 is no size"),
            (
                "percent = 50",
                "percent = 50\nprofile = \"p\"",
                "profile: there is no `p`; write one of paper, kona",
            ),
            ("percent = 50", "percent = 50\nhosts_percent = 3", "unknown field `hosts_percent`"),
            ("kind = \"cache\"", "kind = \"cash\"", "kind: `cash`: write \"cache\""),
        ] {
            let error =
                CacheExperiment::parse(&text("").replace(from, to), "c.toml").unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        let experiment = CacheExperiment::parse(&text(""), "c.toml").unwrap();
        let wrong = experiment
            .read_load(&|_| Ok("kind = \"uniforn\"".into()), &|file| PathBuf::from(file))
            .unwrap_err();
        assert!(wrong.contains("uniform.toml"), "{wrong}");
    }

    #[test]
    fn a_recorded_load_is_that_of_its_recipe() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recorded.trace");
        let experiment = || {
            let text = text("recorded_by = \"sh record.sh\"\n").replace("uniform.toml", "recorded.trace");
            CacheExperiment::parse(&text, "c.toml")
                .unwrap()
                .read_load(&|_| Err("no text".into()), &|_| path.clone())
        };
        let absent = experiment().unwrap_err();
        assert!(
            absent.contains("recorded.trace: No such file")
                && absent.ends_with("record it first, by: sh record.sh"),
            "{absent}"
        );
        let mut writer = formats::own::Writer::new(std::fs::File::create(&path).unwrap()).unwrap();
        Recipe::read(RECIPE, "uniform.toml").unwrap().make(&mut |access| writer.add(access).is_ok());
        writer.finish().unwrap();
        let (recorded, made) = (experiment().unwrap().run().unwrap(), run("").unwrap());
        assert_eq!((recorded.seed, recorded.counts), (None, made.counts));
    }
}
