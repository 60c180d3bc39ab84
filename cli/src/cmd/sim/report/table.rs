//! Tables of a group: runs, latencies by tenth of the sizes, parts of results.

use super::runs::{Group, Row};
use super::value::{find, mean, number as at, pick};
use crate::cmd::sim::shown::{Figure, Parts};
use p4rack_report::{Bar, Bars, Colour, attribute, escape, figure, put, text::number};
use serde_json::Value;

/// Rows whose plots are shown until a reader chooses others.
const DRAWN: usize = 6;
/// Figures of several seeds that differ by less of their mean have no range.
const SAME: f64 = 0.01;
/// Factor to the measure from which on a tenth is marked.
const MARKED: f64 = 1.25;
/// Bars of a plot.
const BARS_MAX: usize = 40;

/// A number with four digits; empty if there is none.
fn shown(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| number(value, 4))
}

/// The runs: boxes that choose the rows to draw, figures, checks.
pub fn runs(group: &Group<'_>) -> String {
    let is_used =
        |figure: &&Figure| group.rows.iter().any(|row| row.values(figure).iter().any(|v| *v != 0.0));
    let used: Vec<&Figure> = group.page.columns.iter().filter(is_used).collect();
    let mut out = String::from("<div class=scroll><table class=wide><thead><tr><td>case</td>");
    for figure in &used {
        let heading = escape(&figure.heading());
        put(&mut out, format_args!("<th scope=col><button title='sort by it'>{heading}</button></th>"));
    }
    out.push_str("<th scope=col class=text>checks</th></tr></thead><tbody>\n");
    for (nth, row) in group.rows.iter().enumerate() {
        let (checked, class) = (if nth < DRAWN { " checked" } else { "" }, Colour::Series(nth).class());
        put(
            &mut out,
            format_args!(
                "<tr><th scope=row><label><input type=checkbox value={nth}{checked}> <i class='key {class}' data-row={nth}></i>{}</label></th>",
                escape(&row.name)
            ),
        );
        used.iter().for_each(|figure| out += &cell(row, figure));
        out += &checks(group, row);
        out.push_str("</tr>\n");
    }
    out + "</tbody></table></div>"
}

/// The mean of a row's runs, with the least and the most where they differ; a pointer over it shows the figure of each seed.
fn cell(row: &Row<'_>, figure: &Figure) -> String {
    let values = row.values(figure);
    let Some(mean) = mean(&values) else {
        return format!("<td{}></td>", attribute("data-h", &figure.heading()));
    };
    let (low, high) =
        (values.iter().copied().fold(mean, f64::min), values.iter().copied().fold(mean, f64::max));
    let (mut range, mut seeds) = (String::new(), String::new());
    if high - low > SAME * mean.abs() {
        range = format!("<small class=range>{}–{}</small>", number(low, 4), number(high, 4));
        let of_seed =
            row.runs.iter().map(|run| format!("seed {}: {}", run.seed, shown(pick(run.outcome, figure))));
        seeds = of_seed.collect::<Vec<_>>().join("; ");
    }
    let (heading, seeds) = (attribute("data-h", &figure.heading()), attribute("title", &seeds));
    format!("<td{heading} data-v={mean}{seeds}>{}{range}</td>", number(mean, 4))
}

/// The first failed check of a row, or that all passed, and the notes of the kind.
fn checks(group: &Group<'_>, row: &Row<'_>) -> String {
    let problems = row.runs.iter().filter_map(|run| run.outcome["problems"].as_array());
    let problem = problems.flatten().find_map(Value::as_str);
    let is_set = |path: &str| {
        let of = |value: &Value| value.as_bool().unwrap_or(value.as_f64().is_some_and(|count| count != 0.0));
        row.runs.iter().any(|run| find(run.outcome, path).is_some_and(of))
    };
    let notes = group.page.notes.iter().filter(|(path, _)| is_set(path)).map(|(_, says)| *says);
    let notes = notes.collect::<Vec<_>>().join("; ");
    let notes = if notes.is_empty() { notes } else { format!("<small>; {}</small>", escape(&notes)) };
    let class = if problem.is_some() { "text off" } else { "text" };
    format!("<td data-h=checks class='{class}'>{}{notes}</td>", escape(problem.unwrap_or("passed")))
}

/// The 99th percentile of latency by tenth of the sizes, each case beside one that is the measure: a table for each measure,
/// of which a script shows one.
pub fn tenths(group: &Group<'_>) -> String {
    let Some(path) = group.page.tenths else { return String::new() };
    let sized = |row: &&Row<'_>| !tenths_of(row.runs[0].outcome, path).is_empty();
    let rows: Vec<&Row<'_>> = group.rows.iter().filter(sized).collect();
    let mut cases: Vec<&str> = Vec::new();
    rows.iter().map(|row| row.runs[0].case).for_each(|case| {
        if !cases.contains(&case) {
            cases.push(case);
        }
    });
    let Some(first) =
        cases.iter().position(|case| case.contains("two hosts")).or((!cases.is_empty()).then_some(0))
    else {
        return String::new();
    };
    let mut out =
        String::from("<h3>99th percentile by tenth of the sizes, µs; how many times that of <select>");
    for (nth, case) in cases.iter().enumerate() {
        let selected = if nth == first { " selected" } else { "" };
        put(&mut out, format_args!("<option{selected}>{}</option>", escape(case)));
    }
    out.push_str("</select></h3>");
    for (nth, case) in cases.iter().enumerate() {
        let hidden = if nth == first { "" } else { " hidden" };
        put(
            &mut out,
            format_args!("<div class='scroll measure'{hidden}>{}</div>", tenths_beside(&rows, path, case)),
        );
    }
    out
}

fn tenths_of<'a>(outcome: &'a Value, path: &str) -> &'a [Value] {
    find(outcome, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The table with the rows of one case as the measure.
fn tenths_beside(rows: &[&Row<'_>], path: &str, measure: &str) -> String {
    let p99_us = |row: &Row<'_>, nth: usize| {
        let of =
            |outcome: &Value| at(tenths_of(outcome, path).get(nth)?, "/latency_ns/p99").map(|ns| ns / 1e3);
        mean(&row.runs.iter().filter_map(|run| of(run.outcome)).collect::<Vec<_>>())
    };
    let mut out = String::from("<table class=wide><thead><tr><td></td>");
    (1..=10).for_each(|nth| put(&mut out, format_args!("<th scope=col>{nth}</th>")));
    out.push_str("</tr></thead><tbody>\n");
    for row in rows {
        let is_measure = |other: &&&Row<'_>| other.runs[0].case == measure && others(other).eq(others(row));
        let base = rows.iter().find(is_measure).filter(|base| !std::ptr::eq(**base, *row));
        put(&mut out, format_args!("<tr><th scope=row>{}</th>", escape(&row.name)));
        for (nth, tenth) in tenths_of(row.runs[0].outcome, path).iter().enumerate() {
            let p99 = p99_us(row, nth);
            let ratio = base.and_then(|base| Some(p99? / p99_us(base, nth).filter(|base| *base > 0.0)?));
            let beside = ratio.map_or(String::new(), |ratio| {
                let class = if ratio > MARKED { " class=off" } else { "" };
                format!(" <small{class}>{ratio:.2}</small>")
            });
            let size = match tenth["up_to_bytes"].as_f64() {
                Some(bytes) => format!("to {} B", number(bytes, 4)),
                None => "larger".to_owned(),
            };
            put(&mut out, format_args!("<td data-h='{size}' title='{size}'>{}{beside}</td>", shown(p99)));
        }
        out.push_str("</tr>\n");
    }
    out + "</tbody></table>"
}

/// Its settings beside the case.
fn others<'r, 'a>(row: &'r Row<'a>) -> impl Iterator<Item = &'r (&'a str, &'a str)> {
    row.runs[0].settings.iter().filter(|(key, _)| *key != "case")
}

/// Parts of results, such as operations: a row each, and a table for each sort of parts.
pub fn parts(group: &Group<'_>) -> String {
    group.page.parts.iter().map(|parts| parts_of(group, parts)).collect()
}

/// The table of one sort. The first figure is drawn, with the paper's beside it if there is one.
fn parts_of(group: &Group<'_>, parts: &Parts) -> String {
    let names = |row: &Row<'_>| part_names(parts, row.runs[0].outcome);
    let shown_rows = group.rows.iter().enumerate().filter(|(_, row)| names(row).len() >= parts.least);
    let all: Vec<(usize, &Row<'_>, String)> =
        shown_rows.flat_map(|(nth, row)| names(row).into_iter().map(move |name| (nth, row, name))).collect();
    if all.is_empty() {
        return String::new();
    }
    let called = |row: &Row<'_>, name: &str| {
        if group.rows.len() > 1 { format!("{}: {name}", row.name) } else { name.to_owned() }
    };
    let value = |row: &Row<'_>, name: &str, figure: &Figure| {
        let of = |outcome: &Value| pick(part(parts, outcome, name)?, figure);
        mean(&row.runs.iter().filter_map(|run| of(run.outcome)).collect::<Vec<_>>())
    };
    let mut out = format!("<h3>{}</h3><div class=scroll><table><thead><tr><td></td>", escape(parts.title));
    for figure in parts.figures {
        put(&mut out, format_args!("<th scope=col>{}</th>", escape(&figure.heading())));
    }
    out.push_str("</tr></thead><tbody>\n");
    for (_, row, name) in &all {
        put(&mut out, format_args!("<tr><th scope=row>{}</th>", escape(&called(row, name))));
        for figure in parts.figures {
            let (heading, value) = (attribute("data-h", &figure.heading()), shown(value(row, name, figure)));
            put(&mut out, format_args!("<td{heading}>{value}</td>"));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>");
    let Some(first) = parts.figures.first() else { return out };
    let paper = parts.figures.iter().find(|figure| figure.title == "paper");
    let bar = |(nth, row, name): &(usize, &Row<'_>, String)| {
        let mark = paper.and_then(|paper| value(row, name, paper));
        let value = value(row, name, first)?;
        Some(Bar { name: called(row, name), colour: Colour::Series(*nth), value, mark })
    };
    let title = format!("{}: {}", parts.title, first.title);
    out + "<div class='plots two'>" + &bars(title, first.unit, all.iter().filter_map(bar)) + "</div>"
}

fn part_names(parts: &Parts, outcome: &Value) -> Vec<String> {
    match find(outcome, parts.path) {
        Some(Value::Object(all)) => all.keys().cloned().collect(),
        Some(Value::Array(all)) => {
            all.iter().filter_map(|one| one[parts.name].as_str().map(str::to_owned)).collect()
        }
        _ => Vec::new(),
    }
}

fn part<'a>(parts: &Parts, outcome: &'a Value, name: &str) -> Option<&'a Value> {
    match find(outcome, parts.path)? {
        Value::Array(all) => all.iter().find(|one| one[parts.name] == name),
        all => all.get(name),
    }
}

/// A plot of the first bars, which says so if there are more; nothing if there are none.
pub fn bars(mut title: String, unit: &str, all: impl Iterator<Item = Bar>) -> String {
    let mut bars: Vec<Bar> = all.collect();
    if bars.is_empty() {
        return String::new();
    }
    if bars.len() > BARS_MAX {
        title += &format!(" (the first {BARS_MAX} of {}; the table has all)", bars.len());
        bars.truncate(BARS_MAX);
    }
    let bars = Bars { title, unit: unit.to_owned(), source: "paper", bars };
    figure(&bars.caption(), &bars.svg())
}
