//! Files of the simulator: traces beside an experiment, results in a folder.

use crate::output::OutputFile;
use p4rack_codegen::text;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Returns a reader of the files that an experiment or a sweep names, in the folder of its own
/// file.
pub fn beside(file: &Path) -> impl Fn(&str) -> Result<String, String> {
    let place = place(file);
    move |name| {
        let path = place(name);
        text::read(&path).map_err(|error| {
            format!("{}: can't be read: {error}; the trace must be beside the experiment", path.display())
        })
    }
}

/// Where these files are.
pub fn place(file: &Path) -> impl Fn(&str) -> PathBuf {
    let folder = file.parent().unwrap_or(Path::new("")).to_owned();
    move |name| folder.join(name)
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
    let text = text::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
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
        let value = read_json(&path)?;
        all.extend(result_of(value).map_err(|error| format!("{}: {error}", path.display()))?);
    }
    if all.is_empty() {
        return Err(format!(
            "{}: holds no results; make some with p4rack sim sweep FILE --out-dir {0}",
            dir.display()
        ));
    }
    Ok(all)
}

/// A task's result, or that of a single run in the same form; none if this is neither.
fn result_of(value: Value) -> Result<Option<Value>, String> {
    let is_task = value["outcome"].is_object();
    match value["kind"].as_str() {
        None if is_task => {
            Err("its result names no kind of experiment, as those of older versions; run it again".to_owned())
        }
        None => Ok(None),
        Some(_) if is_task => Ok(Some(value)),
        Some(kind) => {
            Ok(Some(json!({ "kind": kind, "id": value["name"], "settings": {}, "outcome": value })))
        }
    }
}
