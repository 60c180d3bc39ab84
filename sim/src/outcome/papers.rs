//! Figures of papers beside those of a run.

use crate::experiment::PaperSpec;
use serde::{Deserialize, Serialize};

/// A figure of a paper and the simulated one.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Compared {
    /// Path of the simulated figure in the results.
    pub figure: String,
    /// The paper's figure.
    pub paper: f64,
    /// Whether the paper gives it as a bound.
    pub at_most: bool,
    /// Whether the paper gives it as a bound from below.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// How far ours may be from it and still be the same, as a share, if that is not a tenth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
    /// The simulated figure; none if there is no such figure.
    pub ours: Option<f64>,
    /// The simulated figure divided by the paper's.
    pub ratio: Option<f64>,
    /// The paper's words.
    pub source: String,
    /// Why they differ.
    pub why: Option<String>,
}

fn pointer(path: &str) -> String {
    format!("/{}", path.replace('/', "~1").replace('.', "/"))
}

/// A figure of a run's results: a path such as `goodput_gbps`, or two whose quotient it is: `PATH / PATH`.
pub fn figure(outcome: &serde_json::Value, path: &str) -> Option<f64> {
    let one = |path: &str| outcome.pointer(&pointer(path.trim())).and_then(serde_json::Value::as_f64);
    match path.split_once(" / ") {
        None => one(path),
        Some((of, by)) => Some(one(of)? / one(by).filter(|by| *by != 0.0)?),
    }
}

/// Whether a paper's figure is one of an experiment with this scheme and these settings.
pub(crate) fn concerns(paper: &PaperSpec, scheme: &str, settings: &serde_json::Value) -> bool {
    let is_set = |(path, values): (&String, &Vec<toml::Value>)| {
        let set = settings.pointer(&pointer(path));
        values.iter().any(|value| serde_json::to_value(value).ok().as_ref() == set)
    };
    paper.scheme.as_ref().is_none_or(|name| scheme.starts_with(name.as_str())) && paper.at.iter().all(is_set)
}

/// The papers' figures beside those of an outcome.
pub(crate) fn compared<'a>(
    outcome: &impl Serialize,
    papers: impl Iterator<Item = &'a PaperSpec>,
) -> Vec<Compared> {
    let json = serde_json::to_value(outcome).unwrap_or_default();
    let compare = |paper: &PaperSpec| {
        let ours = figure(&json, &paper.figure);
        Compared {
            figure: paper.figure.clone(),
            paper: paper.says,
            at_most: paper.at_most,
            at_least: paper.at_least,
            within: paper.within,
            ours,
            ratio: ours.filter(|_| paper.says != 0.0).map(|ours| ours / paper.says),
            source: paper.source.clone(),
            why: paper.why.clone(),
        }
    };
    papers.map(compare).collect()
}
