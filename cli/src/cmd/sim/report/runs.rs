//! Runs grouped by experiment; in a group a row for the runs that differ in their seed alone.

use super::value::{mean, pick};
use crate::cmd::sim::shown::{Figure, Page};
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// A run.
#[derive(Clone)]
pub struct Run<'a> {
    /// Its results.
    pub outcome: &'a Value,
    /// Its seed; empty if it has none.
    pub seed: String,
    /// Its case; empty if the sweep has none.
    pub case: &'a str,
    /// The settings that distinguish it: the case, and those that vary within the case.
    pub settings: Vec<(&'a str, &'a str)>,
}

/// Runs that differ in their seed alone.
pub struct Row<'a> {
    /// Its settings in words, or its scheme.
    pub name: String,
    /// At least one.
    pub runs: Vec<Run<'a>>,
}

impl Row<'_> {
    /// A figure of all its runs that have it.
    pub fn values(&self, figure: &Figure) -> Vec<f64> {
        self.runs.iter().filter_map(|run| pick(run.outcome, figure)).collect()
    }

    /// The mean of a figure.
    pub fn mean(&self, figure: &Figure) -> Option<f64> {
        mean(&self.values(figure))
    }
}

/// An experiment or a sweep.
pub struct Group<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its presentation.
    pub page: &'a Page,
    /// Its rows, at least one, in the order of their settings.
    pub rows: Vec<Row<'a>>,
}

impl Group<'_> {
    /// All seeds, in order.
    pub fn seeds(&self) -> Vec<&str> {
        let runs = self.rows.iter().flat_map(|row| &row.runs);
        let mut seeds: Vec<&str> =
            runs.map(|run| run.seed.as_str()).filter(|seed| !seed.is_empty()).collect();
        seeds.sort_by(|a, b| compare(a, b));
        seeds.dedup();
        seeds
    }
}

/// The groups of results by name, each with the page of its kind; results of other kinds never share one.
pub fn groups<'a>(results: &'a [Value], pages: &'a BTreeMap<&str, Page>) -> Vec<Group<'a>> {
    let varied = varied(results);
    let mut all: BTreeMap<(&str, &str), Vec<Run<'a>>> = BTreeMap::new();
    for result in results {
        let kind = result["kind"].as_str().unwrap_or_default();
        all.entry((group(result), kind)).or_default().push(Run {
            outcome: &result["outcome"],
            seed: result["outcome"]["seed"].as_u64().map_or(String::new(), |seed| seed.to_string()),
            case: case(result),
            settings: settings(result)
                .filter(|(key, _)| {
                    let values = varied.get(&(group(result), case(result), *key));
                    *key == "case" || (*key != "seed" && values.is_some_and(|values| values.len() > 1))
                })
                .collect(),
        });
    }
    let of_kind = |((name, kind), mut runs): ((&'a str, &str), Vec<Run<'a>>)| {
        runs.sort_by(in_order);
        let page = pages.get(kind)?;
        Some(Group { name, page, rows: rows(runs) })
    };
    all.into_iter().filter_map(of_kind).collect()
}

fn rows(runs: Vec<Run<'_>>) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for run in runs {
        let words: Vec<String> = run.settings.iter().map(|setting| words(*setting)).collect();
        let said = |key: &str| run.outcome[key].as_str().unwrap_or_default().to_owned();
        let names = [words.join(", "), said("scheme"), said("name")];
        let name = names.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
        match rows.iter_mut().find(|row| row.name == name) {
            Some(row) => row.runs.push(run),
            None => rows.push(Row { name, runs: vec![run] }),
        }
    }
    rows
}

fn group(result: &Value) -> &str {
    let name = || result["outcome"]["name"].as_str().unwrap_or_default();
    result["sweep"].as_str().filter(|sweep| !sweep.is_empty()).unwrap_or_else(name)
}

fn case(result: &Value) -> &str {
    result["settings"]["case"].as_str().unwrap_or_default()
}

fn settings(result: &Value) -> impl Iterator<Item = (&str, &str)> {
    let all = result["settings"].as_object().into_iter().flatten();
    all.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}

/// The values of each setting, by group and case.
fn varied(results: &[Value]) -> BTreeMap<(&str, &str, &str), BTreeSet<&str>> {
    let mut varied: BTreeMap<_, BTreeSet<&str>> = BTreeMap::new();
    for result in results {
        for (key, value) in settings(result) {
            varied.entry((group(result), case(result), key)).or_default().insert(value);
        }
    }
    varied
}

/// A setting in words: a case by its name, others with the last part of their key.
pub fn words((key, value): (&str, &str)) -> String {
    let hosts = value.split('+').count();
    match (key, hosts) {
        ("case", _) => value.to_owned(),
        (_, 2..) => format!("{} {hosts} hosts", last(key)),
        _ => format!("{} {value}", last(key)),
    }
}

/// The last part of a key.
pub fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// A value of a setting as a number: a number at its beginning, or how many hosts it lists.
pub fn amount(value: &str) -> Option<f64> {
    if is_hosts(value) || value.contains('+') {
        return Some(value.split('+').count() as f64);
    }
    let end = value.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-')).unwrap_or(value.len());
    (1..=end).rev().find_map(|end| value[..end].parse().ok())
}

/// Whether a value is a host or a list of hosts.
pub fn is_hosts(value: &str) -> bool {
    value.split('+').all(|host| {
        host.strip_prefix('h')
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
    })
}

/// The order of two values: numbers by size, then others by letters.
fn compare(a: &str, b: &str) -> Ordering {
    let by_amount = match (amount(a), amount(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    };
    by_amount.then_with(|| a.cmp(b))
}

fn in_order(a: &Run<'_>, b: &Run<'_>) -> Ordering {
    let settings = a.settings.iter().zip(&b.settings).map(|((_, a), (_, b))| compare(a, b));
    let by_settings = settings.fold(Ordering::Equal, Ordering::then);
    compare(a.case, b.case).then(by_settings).then_with(|| compare(&a.seed, &b.seed))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::cmd::sim::kinds;
    use serde_json::json;

    /// A result of a rack of frames.
    pub fn result(case: &str, k: &str, seed: u64, gbps: f64) -> Value {
        json!({
            "kind": "frames", "sweep": "fig", "settings": { "case": case, "seed": seed.to_string(), "scheme.k": k },
            "outcome": {
                "name": "fig", "scheme": "pl2-clock", "seed": seed, "goodput_gbps": gbps, "problems": [],
                "switch": { "queue_series": [[10.0, 1_000], [20.0, 3_000]] },
                "traffic": [{
                    "name": "bulk", "done": 7,
                    "latency_ns": { "count": 7, "p50": 2_000, "p99": 9_000, "cdf": [[1_000, 0.2], [9_000, 1.0]] },
                    "deciles": [{ "up_to_bytes": 100, "latency_ns": { "count": 3, "p99": 5_000 } }]
                }]
            }
        })
    }

    /// The pages of all kinds.
    pub fn pages() -> BTreeMap<&'static str, Page> {
        kinds::KINDS.iter().map(|kind| (kind.name, kind.page)).collect()
    }

    #[test]
    fn runs_that_differ_in_their_seed_share_a_row() {
        let results = [
            result("b", "16", 1, 3.0),
            result("a", "10", 2, 2.0),
            result("a", "2", 1, 1.0),
            result("a", "10", 1, 4.0),
        ];
        let pages = pages();
        let groups = groups(&results, &pages);
        let rows: Vec<(&str, usize)> =
            groups[0].rows.iter().map(|row| (row.name.as_str(), row.runs.len())).collect();
        // Numbers by size; settings that don't vary within a case aren't named.
        assert_eq!(rows, [("a, k 2", 1), ("a, k 10", 2), ("b", 1)]);
        assert_eq!(groups[0].seeds(), ["1", "2"]);
        let goodput = groups[0].page.columns[0];
        assert_eq!(groups[0].rows[1].mean(&goodput), Some(3.0));
    }

    #[test]
    fn results_of_other_kinds_have_a_group_of_their_own() {
        let mut results = [result("a", "1", 1, 1.0), result("a", "1", 1, 1.0)];
        results[1]["kind"] = json!("cowbird");
        let pages = pages();
        assert_eq!(groups(&results, &pages).len(), 2);
    }

    #[test]
    fn values_have_an_order() {
        assert_eq!(
            ["h3", "h1+h2+h3", "10us", "0.5", "2-3", "x", "-"].map(amount),
            [Some(1.0), Some(3.0), Some(10.0), Some(0.5), Some(2.0), None, None]
        );
        assert_eq!(words(("traffic.0.senders", "h1+h2+h3")), "senders 3 hosts");
        assert_eq!(
            (words(("case", "a+b+c")), words(("scheme.k", "4"))),
            ("a+b+c".to_owned(), "k 4".to_owned())
        );
        let mut values = ["b", "10", "9", "a"];
        values.sort_by(|a, b| compare(a, b));
        assert_eq!(values, ["9", "10", "a", "b"]);
    }
}
