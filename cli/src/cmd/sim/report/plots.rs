//! Plots of a group: figures over the varied setting, tails of latencies, series over time.

use super::runs::{Group, Row, Run, amount, is_hosts, last, words};
use super::table::bars;
use super::value::{find, mean, number as at};
use crate::cmd::sim::shown::Figure;
use p4rack_report::{
    Axis, Bar, Colour, Layer, Line, LineStyle, Plot, Point, Scale, WIDE, escape, figure as captioned, legend,
    text::number,
};
use serde_json::Value;
use std::collections::BTreeSet;

/// Lines of a plot over settings.
const LINES_MAX: usize = 16;

/// Figures over the setting with the most values, numbers or lists of hosts; a line for each combination of the others. Where these are
/// too many for a plot, one of them has plots of its own for each of its values. Without such a setting, bars.
pub fn over_settings(group: &Group<'_>) -> String {
    let Some(key) = axis_of(&group.rows) else {
        let bar = |figure: &Figure, (nth, row): (usize, &Row<'_>)| {
            let value = row.mean(figure)?;
            Some(Bar { name: row.name.clone(), colour: Colour::Series(nth), value, mark: None })
        };
        let of = |figure: &Figure| {
            let all = group.rows.iter().enumerate().filter_map(|row| bar(figure, row));
            bars(figure.title.to_owned(), figure.unit, all)
        };
        let all: String = group.page.drawn.iter().filter(|_| group.rows.len() > 1).map(of).collect();
        return if all.is_empty() { all } else { format!("<div class='plots two'>{all}</div>") };
    };
    let rows: Vec<&Row<'_>> = group.rows.iter().collect();
    let Some(other) = divided_by(&rows, key) else { return over(group, &rows, key, None) };
    let mut values: Vec<&str> = Vec::new();
    rows.iter().filter_map(|row| setting(row, other)).for_each(|value| {
        if !values.contains(&value) {
            values.push(value);
        }
    });
    let with = |value: &&str| {
        let rows: Vec<&Row<'_>> =
            rows.iter().copied().filter(|row| setting(row, other) == Some(*value)).collect();
        over(group, &rows, key, Some((other, value)))
    };
    values.iter().map(with).collect()
}

/// Plots of these rows over the setting `key`, all with the same value of another one if they are divided by it.
fn over(group: &Group<'_>, rows: &[&Row<'_>], key: &str, same: Option<(&str, &str)>) -> String {
    let mut lines = lines(rows, key, same.map(|(key, _)| key));
    let hosts = rows.iter().filter_map(|row| setting(row, key)).any(is_hosts);
    let unit = if hosts && last(key) != "hosts" { "hosts" } else { "" };
    let with = same.map_or_else(String::new, |same| format!(", {}", words(same)));
    let mut out = format!("<h3>Over {}{}</h3>", escape(last(key)), escape(&with));
    if lines.len() > LINES_MAX {
        out +=
            &format!("<p class=lead>The first {LINES_MAX} of {} lines; the table has all.</p>", lines.len());
        lines.truncate(LINES_MAX);
    }
    out +=
        &legend(lines.iter().enumerate().map(|(nth, (name, _))| (name.as_str(), Colour::Series(nth), None)));
    out.push_str("<div class='plots two'>");
    for figure in group.page.drawn {
        let line = |(nth, (name, rows)): (usize, &(String, Places<'_, '_>))| {
            let points = rows.iter().filter_map(|(x, row)| Some((*x, row.mean(figure)?))).collect();
            let (name, colour) = (name.clone(), Colour::Series(nth));
            Line { name, colour, style: LineStyle::Dots, points, row: None }
        };
        let lines: Vec<Line> = lines.iter().enumerate().map(line).collect();
        let points = || lines.iter().flat_map(|line| &line.points);
        let x = Axis::new(last(key), unit, Scale::linear_of(points().map(|point| point.0)));
        let y = Axis::new(figure.title, figure.unit, Scale::linear_of(points().map(|point| point.1)));
        let says: Vec<String> = lines.iter().map(in_words).collect();
        out += &plot(figure.title, &says.join("; "), x, y, lines);
    }
    out + "</div>"
}

/// A line's points in words.
fn in_words(line: &Line) -> String {
    let points = line.points.iter().map(|(x, y)| format!("{} at {}", number(*y, 4), number(*x, 4)));
    format!("{}: {}", line.name, points.collect::<Vec<_>>().join(", "))
}

fn setting<'a>(row: &Row<'a>, key: &str) -> Option<&'a str> {
    row.runs[0].settings.iter().find(|(other, _)| *other == key).map(|(_, value)| *value)
}

/// The setting for the axis: the one with the most values, all of them numbers.
fn axis_of<'a>(rows: &[Row<'a>]) -> Option<&'a str> {
    let keys: BTreeSet<&str> =
        rows.iter().flat_map(|row| row.runs[0].settings.iter().map(|(key, _)| *key)).collect();
    let count = |key: &str| rows.iter().map(|row| setting(row, key)).collect::<BTreeSet<_>>().len();
    let is_amount =
        |key: &&str| rows.iter().filter_map(|row| setting(row, key)).all(|value| amount(value).is_some());
    let keys = keys.into_iter().filter(|key| *key != "case" && count(key) > 1).filter(is_amount);
    // Of several the first.
    keys.rev().max_by_key(|key| count(key))
}

/// Rows with their places on the axis.
type Places<'r, 'a> = Vec<(f64, &'r Row<'a>)>;

/// The setting beside the case and `key` that all rows have and that has the most values, if there are too many lines for a plot.
fn divided_by<'a>(rows: &[&Row<'a>], key: &str) -> Option<&'a str> {
    if lines(rows, key, None).len() <= LINES_MAX {
        return None;
    }
    let first = rows.first()?.runs[0].settings.iter().map(|(key, _)| *key);
    let others = first.filter(|other| *other != key && *other != "case");
    let count = |key: &str| {
        let values: Option<BTreeSet<&str>> = rows.iter().map(|row| setting(row, key)).collect();
        values.map_or(0, |values| values.len())
    };
    others.filter(|key| count(key) > 1).max_by_key(|key| count(key))
}

/// Rows by their settings beside `key` and one that is the same for all, each with its value of `key`.
fn lines<'r, 'a>(rows: &[&'r Row<'a>], key: &str, same: Option<&str>) -> Vec<(String, Places<'r, 'a>)> {
    let mut lines: Vec<(String, Places<'r, 'a>)> = Vec::new();
    for row in rows.iter().copied() {
        let Some(x) = setting(row, key).and_then(amount) else { continue };
        let others = row.runs[0].settings.iter().filter(|(other, _)| *other != key && Some(*other) != same);
        let mut name = others.map(|setting| words(*setting)).collect::<Vec<_>>().join(", ");
        if name.is_empty() {
            name = row.runs[0].outcome["scheme"].as_str().unwrap_or(&row.name).to_owned();
        }
        match lines.iter_mut().find(|(other, _)| *other == name) {
            Some((_, rows)) => rows.push((x, row)),
            None => lines.push((name, vec![(x, row)])),
        }
    }
    lines.iter_mut().for_each(|(_, rows)| rows.sort_by(|a, b| a.0.total_cmp(&b.0)));
    lines
}

/// Tails of latencies and series over time, a line for each run.
pub fn of_runs(group: &Group<'_>) -> String {
    let plots = tails(group) + &over_time(group);
    if plots.is_empty() {
        return plots;
    }
    let rows = group.rows.iter().enumerate();
    let legend = legend(rows.map(|(nth, row)| (row.name.as_str(), Colour::Series(nth), Some(nth))));
    format!("<h3>Runs</h3>{legend}<div class='plots two'>{plots}</div>")
}

/// A line for each run of which `points` gives any.
fn each_run(group: &Group<'_>, points: impl Fn(&Run<'_>) -> Vec<Point>) -> Vec<Line> {
    let line = |nth: usize, row: &Row<'_>, run: &Run<'_>| {
        let seed = if run.seed.is_empty() { String::new() } else { format!(", seed {}", run.seed) };
        let (name, colour, points) = (format!("{}{seed}", row.name), Colour::Series(nth), points(run));
        Line { name, colour, style: LineStyle::Thin, points, row: Some(nth) }
    };
    let rows = group.rows.iter().enumerate();
    let lines = rows.flat_map(|(nth, row)| row.runs.iter().map(move |run| (nth, row, run)));
    lines.map(|(nth, row, run)| line(nth, row, run)).filter(|line| !line.points.is_empty()).collect()
}

/// The share of messages that took longer: a tail is a slope here and not a line along the edge.
fn tails(group: &Group<'_>) -> String {
    let Some(figure) = &group.page.tail else { return String::new() };
    let lines = each_run(group, |run| tail(run.outcome, figure));
    let points = || lines.iter().flat_map(|line| &line.points);
    let x = Axis::new("latency", figure.unit, Scale::log_of(points().map(|point| point.0)));
    let y = Axis::new("share", "", Scale::log_of(points().map(|point| point.1))).marked(percent);
    let quantile = |row: &Row<'_>, key: &str| {
        let all = row.runs.iter().filter_map(|run| at(run.outcome, &format!("{}/{key}", figure.path)));
        mean(&all.collect::<Vec<_>>())
            .map_or("none".to_owned(), |value| format!("{} {}", number(value / figure.per, 4), figure.unit))
    };
    let says =
        |row: &Row<'_>| format!("{}: p50 {}, p99 {}", row.name, quantile(row, "p50"), quantile(row, "p99"));
    let says: Vec<String> = group.rows.iter().map(says).collect();
    plot(figure.title, &says.join("; "), x, y, lines)
}

fn percent(share: f64) -> String {
    format!("{} %", number(share * 100.0, 3))
}

/// Points of a tail: a distribution, or the quantiles that there are. The longest time has the share of one message.
fn tail(outcome: &Value, figure: &Figure) -> Vec<Point> {
    let Some(times) = find(outcome, figure.path) else { return Vec::new() };
    let count = times["count"].as_f64().or(outcome["measured"].as_f64()).filter(|count| *count > 0.0);
    let all: Vec<Point> = match times["cdf"].as_array() {
        Some(points) => points.iter().filter_map(pair).collect(),
        None if count.is_none() => Vec::new(),
        None => {
            let quantiles = [("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)];
            quantiles.into_iter().filter_map(|(key, share)| Some((times[key].as_f64()?, share))).collect()
        }
    };
    let longer = |(time, share): Point| {
        let longer = if share < 1.0 { Some(1.0 - share) } else { count.map(|count| 1.0 / count) };
        longer.map(|longer| (time / figure.per, longer))
    };
    all.into_iter().filter_map(longer).collect()
}

fn pair(value: &Value) -> Option<Point> {
    Some((value.get(0)?.as_f64()?, value.get(1)?.as_f64()?))
}

/// Values over the time since the first of them.
fn over_time(group: &Group<'_>) -> String {
    let Some(figure) = &group.page.series else { return String::new() };
    let points = |run: &Run<'_>| -> Vec<Point> {
        let all = find(run.outcome, figure.path).and_then(Value::as_array);
        all.into_iter().flatten().filter_map(pair).map(|(us, value)| (us, value / figure.per)).collect()
    };
    let mut lines = each_run(group, points);
    let start = lines.iter().map(|line| line.points[0].0).fold(f64::INFINITY, f64::min);
    lines.iter_mut().for_each(|line| line.points.iter_mut().for_each(|point| point.0 -= start));
    let points = || lines.iter().flat_map(|line| &line.points);
    let x = Axis::new("time since the warm-up", "µs", Scale::linear_of(points().map(|point| point.0)));
    let y = Axis::new("most", figure.unit, Scale::linear_of(points().map(|point| point.1)));
    let says = |line: &Line| {
        let most = line.points.iter().map(|point| point.1).fold(0.0, f64::max);
        format!("{}: at most {} {}", line.name, number(most, 4), figure.unit)
    };
    let says: Vec<String> = lines.iter().map(says).collect();
    plot(figure.title, &says.join("; "), x, y, lines)
}

/// A plot with its caption; nothing without points.
fn plot(title: &str, says: &str, x: Axis, y: Axis, lines: Vec<Line>) -> String {
    if lines.iter().all(|line| line.points.is_empty()) {
        return String::new();
    }
    let layers = lines.into_iter().map(Layer::Line).collect();
    captioned(title, &Plot { label: format!("{title}. {says}"), size: WIDE, x, y, layers }.svg())
}
