//! Figures of results, by their paths.

use crate::cmd::sim::shown::Figure;
use serde_json::Value;

/// The value at a path such as `/switch/queue_series`; `None` if it was neither measured nor counted.
pub fn find<'a>(of: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('/').skip(1).try_fold(of, child)
}

fn child<'a>(of: &'a Value, key: &str) -> Option<&'a Value> {
    match of {
        Value::Array(all) => all.get(key.parse::<usize>().ok()?),
        _ => of.get(key),
    }
}

/// The number at a path; `*` adds up the values of all elements, and `PATH / PATH` is a quotient. Without messages
/// there is no latency, and without elements no sum.
pub fn number(of: &Value, path: &str) -> Option<f64> {
    if let Some((over, under)) = path.split_once(" / ") {
        return Some(number(of, over)? / number(of, under).filter(|under| *under != 0.0)?);
    }
    let keys: Vec<&str> = path.split('/').skip(1).collect();
    walk(of, &keys)
}

fn walk(of: &Value, keys: &[&str]) -> Option<f64> {
    let Some((key, rest)) = keys.split_first() else { return of.as_f64() };
    let is_empty = (of["measured"] == 0 && !rest.is_empty()) || (of["count"] == 0 && *key != "count");
    match (is_empty, *key, of) {
        (true, ..) => None,
        (false, "*", Value::Array(all)) => sum(all.iter(), rest),
        (false, "*", Value::Object(all)) => sum(all.values(), rest),
        _ => walk(child(of, key)?, rest),
    }
}

/// The sum of the numbers; `None` if there are none.
fn sum<'a>(all: impl Iterator<Item = &'a Value>, keys: &[&str]) -> Option<f64> {
    all.filter_map(|one| walk(one, keys)).reduce(|sum, value| sum + value)
}

/// A figure in its unit.
pub fn pick(of: &Value, figure: &Figure) -> Option<f64> {
    number(of, figure.path).map(|value| value / figure.per)
}

/// The mean; none of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_lead_through_objects_and_arrays() {
        let of = json!({ "traffic": [{ "sent": 1 }, { "sent": 2.5 }], "links": { "h1": { "sent": 4 } }, "text": "x" });
        let numbers =
            ["/traffic/0/sent", "/traffic/*/sent", "/links/*/sent", "/traffic/1/sent / /traffic/0/sent"];
        assert_eq!(numbers.map(|path| number(&of, path)), [Some(1.0), Some(3.5), Some(4.0), Some(2.5)]);
        for absent in
            ["/traffic/2/sent", "/traffic/x", "/text", "/none / /text", "/links / /none", "/links/*/lost"]
        {
            assert_eq!(number(&of, absent), None, "{absent}");
        }
        assert_eq!(find(&of, "/links/h1/sent"), Some(&json!(4)));
    }

    #[test]
    fn nothing_measured_is_no_figure() {
        let none = json!({ "measured": 0, "latency_ns": { "count": 0, "p50": 0 }, "zero": 0, "traffic": [], "links": {} });
        for path in ["/latency_ns/p50", "/measured / /zero", "/traffic/*/sent", "/links/*/sent"] {
            assert_eq!(number(&none, path), None, "{path}");
        }
        assert_eq!(number(&none, "/measured"), Some(0.0), "a count of nothing is one");
        assert_eq!(number(&none["latency_ns"], "/count"), Some(0.0));
        assert_eq!(number(&none["latency_ns"], "/p50"), None);
    }
}
