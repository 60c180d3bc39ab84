//! The chip's own compiler, where it is installed, and its report on a program's stages.

use p4rack_lab::process::on_path;
use p4rack_p4::fit::Chip;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Names under which it is installed.
const NAMES: [&str; 3] = ["bf-p4c", "p4c-barefoot", "p4c"];
/// How often a running compiler is looked at.
const POLL: Duration = Duration::from_millis(20);
/// Folders below the output folder that are searched for assembly.
const DEPTH: u32 = 4;

/// A compiler for the chips.
pub struct Compiler {
    program: PathBuf,
    timeout: Duration,
}

/// The compiler's placement of a program.
pub struct Placed {
    /// Tables of each stage, by pipeline, stage and half.
    pipelines: BTreeMap<String, BTreeMap<(usize, String), Vec<String>>>,
}

impl Compiler {
    /// The compiler that is given, or the one on PATH. The error says how to get one.
    pub fn find(given: Option<&Path>, timeout_s: u64) -> Result<Compiler, String> {
        let timeout = Duration::from_secs(timeout_s);
        if let Some(program) = given {
            if !program.is_file() {
                return Err(format!("{}: no such program", program.display()));
            }
            return Ok(Compiler { program: program.to_owned(), timeout });
        }
        let found = NAMES.iter().find_map(|name| {
            let program = on_path(name)?;
            // p4c has the backend only if it was built with it.
            (*name != "p4c" || targets(&program).contains("tofino")).then_some(program)
        });
        let missing =
            "skipped: needs p4c with its Tofino backend, get it by building p4lang's p4c with ENABLE_TOFINO";
        found.map(|program| Compiler { program, timeout }).ok_or_else(|| missing.to_owned())
    }

    /// Compiles a program and reads where its tables are.
    pub fn stages(
        &self,
        file: &Path,
        chip: &Chip,
        include_dirs: &[PathBuf],
        defines: &[(String, String)],
    ) -> Result<Placed, String> {
        let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
        let arch = if chip.name == p4rack_p4::fit::chip::FIRST.name { "tna" } else { "t2na" };
        let log = folder.path().join("messages");
        let messages = fs::File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let same = messages.try_clone().map_err(|error| format!("{}: {error}", log.display()))?;
        let out = folder.path().join("out");
        let mut command = Command::new(&self.program);
        command.args(["--std", "p4-16", "--target", chip.name, "--arch", arch]);
        for dir in include_dirs {
            command.arg("-I").arg(dir);
        }
        for (name, value) in defines {
            command.arg(format!("-D{name}={value}"));
        }
        command.arg("-o").arg(&out).arg(file).stdin(Stdio::null()).stdout(messages).stderr(same);
        let mut child = command.spawn().map_err(|error| format!("{}: {error}", self.program.display()))?;
        let begun = Instant::now();
        let status = loop {
            match child.try_wait().map_err(|error| error.to_string())? {
                Some(status) => break status,
                None if begun.elapsed() > self.timeout => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(format!("not done after {} s", self.timeout.as_secs()));
                }
                None => std::thread::sleep(POLL),
            }
        };
        let said = fs::read_to_string(&log).unwrap_or_default();
        if !status.success() {
            let first = said.lines().find(|line| line.contains("error") || line.contains("Bug"));
            return Err(format!("refused: {}", first.or(said.lines().last()).unwrap_or("without a message")));
        }
        let mut pipelines = BTreeMap::new();
        for path in assembly(&out, DEPTH) {
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let name = path.parent().and_then(Path::file_name).unwrap_or_default();
            pipelines.insert(name.to_string_lossy().into_owned(), read(&text));
        }
        if pipelines.is_empty() {
            return Err("it leaves no assembly (.bfa) in its output folder".to_owned());
        }
        Ok(Placed { pipelines })
    }
}

/// A compiler driver's list of its targets.
fn targets(program: &Path) -> String {
    let said = Command::new(program).arg("--target-help").stdin(Stdio::null()).output();
    said.map_or(String::new(), |said| String::from_utf8_lossy(&said.stdout).into_owned())
}

/// Assembly files below a folder.
fn assembly(folder: &Path, depth: u32) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut out = Vec::new();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() && depth > 0 {
            out.extend(assembly(&path, depth - 1));
        } else if path.extension().is_some_and(|extension| extension == "bfa") {
            out.push(path);
        }
    }
    out
}

/// Kinds of tables in assembly.
const TABLES: [&str; 7] =
    ["exact_match", "ternary_match", "hash_action", "atcam_match", "proxy_hash", "phase0_match", "gateway"];

/// The tables of each stage: `stage N HALF:`, and indented by two, `KIND NAME …:`.
fn read(text: &str) -> BTreeMap<(usize, String), Vec<String>> {
    let mut stages: BTreeMap<(usize, String), Vec<String>> = BTreeMap::new();
    let mut stage = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if !line.starts_with(' ') {
            stage = match &words[..] {
                ["stage", number, half, ..] => {
                    number.parse().ok().map(|number: usize| (number, half.trim_end_matches(':').to_owned()))
                }
                _ => None,
            };
        } else if let (Some(stage), [kind, name, ..]) = (&stage, &words[..])
            && line.starts_with("  ")
            && !line.starts_with("   ")
            && TABLES.contains(kind)
        {
            stages.entry(stage.clone()).or_default().push(name.trim_end_matches(':').to_owned());
        }
    }
    stages
}

impl Placed {
    /// Stages of the pipeline that takes most.
    pub fn stages(&self) -> usize {
        let last = |stages: &BTreeMap<(usize, String), Vec<String>>| {
            stages.keys().map(|(stage, _)| stage + 1).max().unwrap_or(0)
        };
        self.pipelines.values().map(last).max().unwrap_or(0)
    }

    /// Its report as text.
    pub fn text(&self) -> String {
        let mut out = format!("compiler: {} stages\n", self.stages());
        for (pipeline, stages) in &self.pipelines {
            for ((stage, half), tables) in stages {
                out.push_str(&format!("  {pipeline} stage {stage} {half}: {}\n", tables.join(", ")));
            }
        }
        out
    }

    /// Its report for machines.
    pub fn json(&self) -> Value {
        let all = self.pipelines.iter().flat_map(|(pipeline, stages)| {
            stages.iter().map(
                move |((stage, half), tables)| json!({ "pipeline": pipeline, "stage": stage, "half": half, "tables": tables }),
            )
        });
        json!({ "stages": self.stages(), "tables": all.collect::<Vec<_>>() })
    }
}
