//! Files of the simulator: traces beside an experiment, results in a folder.

use crate::output::OutputFile;
use p4rack_sim::Experiment;
use std::path::{Path, PathBuf};

/// Reads the traces that an experiment refers to, relative to its file.
pub fn with_traces(experiment: Experiment, beside: &Path) -> Result<Experiment, String> {
    let folder = beside.parent().unwrap_or(Path::new(""));
    let read = |name: &str| {
        let path = folder.join(name);
        std::fs::read_to_string(&path).map_err(|error| {
            format!("{}: can't be read: {error}; the trace must be beside the experiment", path.display())
        })
    };
    experiment.read_traces(read).map_err(|error| error.to_string())
}

/// Writes a file of the folder that `--out-dir` names: all of it or nothing.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    OutputFile::open("--out-dir", path)?.write(bytes)
}

/// Result file of the task with this id.
pub fn result_path(dir: &Path, id: &str) -> PathBuf {
    dir.join(format!("{id}.json"))
}

/// Reads a JSON file.
pub fn read_json(path: &Path) -> Result<serde_json::Value, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Errors: there is no such folder.
pub fn check_folder(dir: &Path) -> Result<(), String> {
    let help = "give a folder of results, as p4rack sim sweep FILE --out-dir DIR makes it";
    std::fs::read_dir(dir).map(drop).map_err(|error| format!("{}: {error}; {help}", dir.display()))
}

/// All results in a folder and its subfolders, of sweeps and single runs, sorted by name.
pub fn results(dir: &Path) -> Result<Vec<serde_json::Value>, String> {
    let list = |dir: &Path| {
        let entries = std::fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        Ok::<Vec<PathBuf>, String>(entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
    };
    let mut paths = list(dir)?;
    for folder in paths.clone().iter().filter(|path| path.is_dir()) {
        paths.extend(list(folder)?);
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let mut value = read_json(&path)?;
        if value["outcome"].is_object() {
            all.push(value);
        } else if value["frame_hops"].is_number() || value["slowdown"].is_object() {
            let id = value["name"].clone();
            value = serde_json::json!({ "id": id, "settings": {}, "outcome": value });
            all.push(value);
        }
    }
    if all.is_empty() {
        return Err(format!(
            "{}: holds no results; make some with p4rack sim sweep FILE --out-dir {0}",
            dir.display()
        ));
    }
    Ok(all)
}
