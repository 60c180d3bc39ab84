//! Kinds of experiments, as the commands see them: one entry each in [`KINDS`].

mod cache;
mod clio;
mod cowbird;
mod frames;
mod memory;
mod table1;
mod topology;

pub use topology::pings;

use super::run::{RunArgs, run_kind};
use super::shown::{Page, Shown};
use super::sweep::{SweepArgs, sweep_kind};
use p4rack_lab::rows::Rows;
use p4rack_sim::{
    CacheExperiment, ClioExperiment, Compared, CowbirdExperiment, Experiment, ExperimentKind,
    MemoryExperiment, Table1Experiment, TopologyExperiment, kind_of,
};
use serde_json::Value;

/// A registered kind.
pub struct Registered {
    /// Its name in files and results.
    pub name: &'static str,
    /// Runs an experiment: arguments, text and name of the file.
    pub run: fn(&RunArgs, &str, &str) -> Result<bool, String>,
    /// Runs a sweep: arguments, text and name of the file.
    pub sweep: fn(&SweepArgs, &str, &str) -> Result<bool, String>,
    /// See [`Shown::MERGED`].
    pub merged: &'static [(&'static str, &'static str)],
    /// See [`Shown::PAGE`].
    pub page: Page,
}

const fn registered<E: Shown>() -> Registered {
    Registered { name: E::NAME, run: run_kind::<E>, sweep: sweep_kind::<E>, merged: E::MERGED, page: E::PAGE }
}

/// All kinds. The first is that of files that name none.
pub static KINDS: [Registered; 7] = [
    registered::<Experiment>(),
    registered::<MemoryExperiment>(),
    registered::<Table1Experiment>(),
    registered::<CowbirdExperiment>(),
    registered::<CacheExperiment>(),
    registered::<ClioExperiment>(),
    registered::<TopologyExperiment>(),
];

/// A figure of an outcome for a table; a dash if there is none.
fn cell(outcome: &Value, path: &str, scale: f64, decimals: usize) -> String {
    match outcome.pointer(path).and_then(Value::as_f64) {
        Some(value) => format!("{:.decimals$}", value * scale),
        None => "–".to_owned(),
    }
}

/// A latency in µs for a table; without requests there is none.
fn latency_cell(outcome: &Value, path: &str) -> String {
    match outcome.pointer("/latency_ns/count").and_then(Value::as_u64) {
        Some(0) | None => "–".to_owned(),
        _ => cell(outcome, path, 1e-3, 2),
    }
}

/// Figures beside those of the papers, behind an empty line; nothing if there are none.
fn beside_papers(all: &[Compared]) -> String {
    let mut rows = Rows::new(&["figure", ">paper", ">here", "source"]);
    for compared in all {
        let ours = compared.ours.map_or("none".to_owned(), |ours| format!("{ours:.3}"));
        rows.push(vec![compared.figure.clone(), compared.paper.to_string(), ours, compared.source.clone()]);
    }
    if rows.is_empty() { String::new() } else { format!("\n{}", rows.text()) }
}

fn named(name: &str) -> Option<&'static Registered> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// The kind of a result.
pub fn of_result(result: &Value) -> Result<&'static Registered, String> {
    let name = result["kind"].as_str().unwrap_or_default();
    named(name).ok_or_else(|| {
        format!(
            "a result called {} is of kind `{name}`, which is no kind of experiment; take it out",
            result["id"]
        )
    })
}

/// The kind of an experiment's text; `file` names it in the error.
pub fn of_file(text: &str, file: &str) -> Result<&'static Registered, String> {
    let frames = <Experiment as ExperimentKind>::NAME;
    let said = kind_of(text);
    match named(said.as_deref().unwrap_or(frames)) {
        Some(kind) if said.as_deref() != Some(frames) => Ok(kind),
        _ => {
            let others = KINDS.iter().map(|kind| kind.name).filter(|name| *name != frames);
            let others: Vec<String> = others.map(|name| format!("\"{name}\"")).collect();
            Err(format!(
                "{file}: kind: `{}` is no kind of experiment; write one of {}, or leave it out for a rack of frames",
                said.unwrap_or_default(),
                others.join(", ")
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page without a table or a plot would show nothing of a run.
    #[test]
    fn every_kind_has_a_table_and_a_plot() {
        for kind in &KINDS {
            let page = &kind.page;
            assert!(!page.columns.is_empty() || !page.parts.is_empty(), "{} has no table", kind.name);
            assert!(!page.drawn.is_empty() || !page.parts.is_empty(), "{} has no plot", kind.name);
            assert!(!page.about.is_empty() && !kind.merged.is_empty(), "{}", kind.name);
        }
    }

    #[test]
    fn kinds_are_found_by_their_files() {
        let name = |text: &str| of_file(text, "a.toml").map(|kind| kind.name);
        assert_eq!(name("kind = \"cowbird\"\n"), Ok("cowbird"));
        assert_eq!(name("[scheme]\nkind = \"pl2-clock\"\n"), Ok("frames"));
        let error = name("kind = \"cowbrid\"\n").unwrap_err();
        assert!(error.contains("`cowbrid` is no kind of experiment; write one of \"memory\", "), "{error}");
    }
}
