//! The papers' figures beside the results: each figure with the paper's words, the cases that are as in the paper
//! first, and a verdict.

mod shown;

use super::runs::words;
use super::value::mean;
use p4rack_codegen::Scheme;
use p4rack_sim::figure;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How far a figure may be from the paper's and still be the same, unless an experiment says how far.
const WITHIN: f64 = 0.1;
/// Part of the names of cases that repeat the authors' own experiment.
const AS_IN_THE_PAPER: &str = "as in the paper";

/// How a paper gives a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// All figures are near it.
    Equal,
    /// None is above it.
    AtMost,
    /// None is below it.
    AtLeast,
    /// The greatest is near it ("up to").
    UpTo,
    /// Their mean is near it ("on average").
    Mean,
}

impl Kind {
    fn of(paper: &Value) -> Kind {
        let kinds = [
            ("at_most", Kind::AtMost),
            ("at_least", Kind::AtLeast),
            ("up_to", Kind::UpTo),
            ("mean", Kind::Mean),
        ];
        let is_set = |(key, _): &(&str, Kind)| paper[*key].as_bool() == Some(true);
        kinds.into_iter().find(is_set).map_or(Kind::Equal, |(_, kind)| kind)
    }
}

/// A paper's figure, with all that was measured for it.
pub struct Comparison {
    /// Name of the sweep or the experiment.
    experiment: String,
    /// The compared quantity, with its unit.
    title: String,
    says: f64,
    kind: Kind,
    within: f64,
    source: String,
    why: Option<String>,
    /// Settings that vary within cases, one column each.
    columns: Vec<String>,
    /// Cases: those as in the paper, PL2's, others.
    rows: Vec<Row>,
}

/// Figures of one case.
struct Row {
    case: String,
    /// For each column the figures of all seeds.
    cells: Vec<Vec<f64>>,
    /// For each column whether the paper speaks of it.
    judged: Vec<bool>,
}

/// The comparisons that results name, by experiment.
pub fn comparisons(results: &[Value]) -> Vec<Comparison> {
    let mut groups: BTreeMap<&str, Vec<Run<'_>>> = BTreeMap::new();
    for result in results.iter().filter(|result| result["outcome"]["paper"].is_array()) {
        let name = result["sweep"].as_str().or(result["outcome"]["name"].as_str()).unwrap_or_default();
        groups.entry(name).or_default().push(Run::of(result));
    }
    groups.into_iter().flat_map(|(name, runs)| of_group(name, &runs)).collect()
}

/// A run, with the settings that distinguish it.
struct Run<'a> {
    result: &'a Value,
    case: &'a str,
}

impl<'a> Run<'a> {
    fn of(result: &'a Value) -> Run<'a> {
        let case = result["settings"]["case"].as_str().or(result["outcome"]["scheme"].as_str());
        Run { result, case: case.unwrap_or_default() }
    }

    /// Settings other than case and seed.
    fn settings(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let settings = self.result["settings"].as_object().into_iter().flatten();
        let settings = settings.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
        settings.filter(|(key, _)| !["case", "seed"].contains(key))
    }

    /// Its column: the settings among `varied`, some of them with other values.
    fn column_with(&self, varied: &BTreeSet<&str>, others: &Value) -> String {
        let of = self.settings().filter(|(key, _)| varied.contains(key));
        let of = of.map(|(key, value)| (key, others[key].as_str().unwrap_or(value)));
        of.map(words).collect::<Vec<_>>().join(", ")
    }

    /// Its column: the settings among `varied`.
    fn column(&self, varied: &BTreeSet<&str>) -> String {
        self.column_with(varied, &Value::Null)
    }

    /// The authors' own experiment, another case of a protocol, or plain switching.
    fn class(&self) -> u8 {
        let scheme = self.result["outcome"]["scheme"].as_str().and_then(|name| name.parse::<Scheme>().ok());
        match (self.case.contains(AS_IN_THE_PAPER), scheme.is_some_and(|scheme| scheme != Scheme::L2)) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => 2,
        }
    }
}

/// Identifies a paper's figure among the results.
type Key = (String, String);

fn of_group(name: &str, runs: &[Run<'_>]) -> Vec<Comparison> {
    let varied = varied(runs);
    let columns: BTreeSet<(usize, String)> =
        runs.iter().map(|run| run.column(&varied)).map(|column| (place(&column), column)).collect();
    let columns: Vec<String> = columns.into_iter().map(|(_, column)| column).collect();
    let at = |run: &Run<'_>| columns.iter().position(|column| *column == run.column(&varied)).unwrap_or(0);
    let mut all: BTreeMap<Key, Comparison> = BTreeMap::new();
    let new = |paper: &Value, says: &Value, title: String| Comparison {
        experiment: name.to_owned(),
        title,
        says: says.as_f64().unwrap_or_default(),
        kind: Kind::of(paper),
        within: paper["within"].as_f64().unwrap_or(WITHIN),
        source: paper["source"].as_str().unwrap_or_default().to_owned(),
        why: paper["why"].as_str().map(str::to_owned),
        columns: columns.clone(),
        rows: Vec::new(),
    };
    for run in runs {
        for paper in run.result["outcome"]["paper"].as_array().into_iter().flatten() {
            let path = paper["figure"].as_str().unwrap_or_default();
            let (scale, title) = titled(path, run.result);
            let key = (path.to_owned(), format!("{} {}", paper["source"], paper["paper"]));
            let comparison = all.entry(key).or_insert_with(|| new(paper, &paper["paper"], title));
            if comparison.rows.is_empty() {
                comparison.rows = rows(runs, columns.len());
                for run in runs {
                    let value = measured(&run.result["outcome"], path).map(|value| value / scale);
                    comparison.row(run.case).cells[at(run)].extend(value);
                }
                comparison.says /= scale;
            }
            comparison.row(run.case).judged[at(run)] = true;
        }
        for ratio in run.result["ratios"].as_array().into_iter().flatten() {
            let [path, of, by] = ["figure", "of", "by"].map(|key| ratio[key].as_str().unwrap_or_default());
            let by_at = &ratio["by_at"];
            let there = by_at.as_object().into_iter().flatten();
            let there = there.filter_map(|(key, value)| Some(format!(", {}", words((key, value.as_str()?)))));
            let of_by = format!("{of} / {by}{}", there.collect::<String>());
            let title = format!("{}: {of_by}", titled(path, run.result).1);
            let key = (title.clone(), ratio["source"].to_string());
            let comparison = all.entry(key).or_insert_with(|| new(ratio, &ratio["says"], title));
            if comparison.rows.is_empty() {
                let width = columns.len();
                comparison.rows = vec![Row::new(of_by, width)];
            }
            let column = run.column_with(&varied, by_at);
            let same = |other: &&Run<'_>| {
                other.case == by && other.column(&varied) == column && seed(other) == seed(run)
            };
            let value = |run: &Run<'_>| measured(&run.result["outcome"], path);
            let other = runs.iter().find(same).and_then(value);
            let Some(row) = comparison.rows.first_mut() else { continue };
            // A division by zero is above any figure, and so is noticed; zero by zero is left out.
            let ratios = value(run).zip(other).map(|(ours, other)| ours / other);
            row.cells[at(run)].extend(ratios.filter(|ratio| !ratio.is_nan()));
            row.judged[at(run)] = true;
        }
    }
    // If cases are as in the paper, it speaks of them.
    for comparison in all.values_mut() {
        let theirs = |row: &Row| row.case.contains(AS_IN_THE_PAPER) && row.judged.contains(&true);
        if comparison.rows.iter().any(theirs) {
            for row in comparison.rows.iter_mut().filter(|row| !theirs(row)) {
                row.judged.fill(false);
            }
        }
    }
    let mut titles: BTreeMap<String, usize> = BTreeMap::new();
    all.values().for_each(|comparison| *titles.entry(comparison.title.clone()).or_default() += 1);
    for comparison in all.values_mut().filter(|comparison| titles[&comparison.title] > 1) {
        comparison.title.extend(comparison.place().map(|place| format!(", {place}")));
    }
    all.into_values().collect()
}

/// A figure of a run; none if nothing was measured, such as the latency of no message.
fn measured(outcome: &Value, path: &str) -> Option<f64> {
    let counts = |path: &str| {
        let of = path.trim().rsplit_once('.').map(|(of, _)| format!("/{}/count", of.replace('.', "/")));
        of.and_then(|of| outcome.pointer(&of)).and_then(Value::as_u64) != Some(0)
    };
    figure(outcome, path).filter(|_| path.split(" / ").all(counts))
}

/// The seed that the sweep gave a run.
fn seed<'a>(run: &Run<'a>) -> Option<&'a str> {
    run.result["settings"]["seed"].as_str()
}

/// Settings that have several values within a case.
fn varied<'a>(runs: &[Run<'a>]) -> BTreeSet<&'a str> {
    let mut values: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for run in runs {
        for (key, value) in run.settings() {
            values.entry((run.case, key)).or_default().insert(value);
        }
    }
    values.into_iter().filter(|(_, values)| values.len() > 1).map(|((_, key), _)| key).collect()
}

/// Order of a column: the first number in its name. A host by its name is one.
fn place(column: &str) -> usize {
    let mut words = column.split(' ');
    let number = |word: &str| match word.starts_with('h') && word[1..].parse::<usize>().is_ok() {
        true => Some(1),
        false => word.trim_end_matches(',').parse().ok(),
    };
    words.find_map(number).unwrap_or_default()
}

/// A row for each case.
fn rows(runs: &[Run<'_>], width: usize) -> Vec<Row> {
    let cases: BTreeSet<(u8, &str)> = runs.iter().map(|run| (run.class(), run.case)).collect();
    cases.into_iter().map(|(_, case)| Row::new(case.to_owned(), width)).collect()
}

/// Divisor and name of a figure.
fn titled(path: &str, result: &Value) -> (f64, String) {
    let words: Vec<&str> = path.split(" / ").next().unwrap_or_default().split('.').collect();
    let of = match words.as_slice() {
        ["traffic", number, ..] => {
            let name =
                number.parse().ok().and_then(|n: usize| result["outcome"]["traffic"][n]["name"].as_str());
            name.map_or(String::new(), |name| format!(" of {name}"))
        }
        _ => String::new(),
    };
    let last = words.last().copied().unwrap_or_default();
    if path.contains(" / ") {
        let by = path.rsplit('.').next().unwrap_or_default();
        return (1.0, format!("{last} / {by}{of}"));
    }
    match last {
        "goodput_gbps" => (1.0, format!("goodput{of}, Gb/s")),
        "queue_max_bytes" => (1e3, "longest queue, KB".to_owned()),
        "frames_dropped" => (1.0, "frames lost".to_owned()),
        _ if path == "slowdown.mean" => (1.0, "completion ÷ alone".to_owned()),
        _ if path.contains("_ns") => (1e3, format!("{}{of}, µs", last.trim_end_matches("_ns"))),
        _ => (1.0, format!("{last}{of}")),
    }
}

impl Row {
    fn new(case: String, width: usize) -> Row {
        Row { case, cells: vec![Vec::new(); width], judged: vec![false; width] }
    }

    /// Figures of which the paper speaks.
    fn judged(&self) -> impl Iterator<Item = f64> {
        self.cells
            .iter()
            .zip(&self.judged)
            .filter(|(_, judged)| **judged)
            .flat_map(|(cell, _)| cell.iter().copied())
    }
}

impl Comparison {
    fn row(&mut self, case: &str) -> &mut Row {
        let found = self.rows.iter().position(|row| row.case == case).unwrap_or(0);
        &mut self.rows[found]
    }

    /// The figures of which the paper speaks.
    fn judged(&self) -> Vec<f64> {
        self.rows.iter().flat_map(Row::judged).collect()
    }

    /// The cases that it judges, unless these are all, and the settings, if these are the same for all figures.
    fn place(&self) -> Option<String> {
        let judged = || self.rows.iter().filter(|row| row.judged.contains(&true));
        let cases: Vec<&str> = judged().map(|row| row.case.as_str()).collect();
        let is_judged = |at: &usize| judged().any(|row| row.judged[*at]);
        let mut columns = (0..self.columns.len()).filter(is_judged).map(|at| self.columns[at].as_str());
        let (column, others) = (columns.next(), columns.next().is_some());
        let cases = (cases.len() < self.rows.len() || cases.len() == 1).then(|| cases.join("; "));
        let words = [cases, column.filter(|_| !others).map(str::to_owned)];
        let words: Vec<String> = words.into_iter().flatten().filter(|word| !word.is_empty()).collect();
        (!words.is_empty()).then(|| words.join(", "))
    }

    fn is_near(&self, value: f64) -> bool {
        if self.says == 0.0 { value == 0.0 } else { (value / self.says - 1.0).abs() <= self.within }
    }

    /// Whether a single figure does not contradict the paper.
    fn agrees(&self, value: f64) -> bool {
        match self.kind {
            Kind::Equal => self.is_near(value),
            Kind::AtMost => value <= self.says,
            Kind::AtLeast => value >= self.says,
            Kind::UpTo => value <= self.says || self.is_near(value),
            Kind::Mean => true,
        }
    }

    /// Whether the figures are as the paper says; none if there are no figures.
    pub fn reproduced(&self) -> Option<bool> {
        let judged = self.judged();
        let greatest = judged.iter().copied().max_by(f64::total_cmp)?;
        let all = judged.iter().all(|value| self.agrees(*value));
        Some(match self.kind {
            Kind::Equal | Kind::AtMost | Kind::AtLeast => all,
            Kind::UpTo => all && self.is_near(greatest),
            Kind::Mean => mean(&judged).is_some_and(|mean| self.is_near(mean)),
        })
    }
}

#[cfg(test)]
mod tests;
