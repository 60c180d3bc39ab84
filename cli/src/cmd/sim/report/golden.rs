//! Memory racks beside the table that EDM's authors publish (Figure 8): a line and a row for each of its figures.

use p4rack_report::{escape, put};
use p4rack_sim::{ExperimentKind, MemoryExperiment};
use serde_json::Value;

/// How far a figure may be from the published one and still be the same.
const WITHIN: f64 = 0.05;

/// A published figure with the measured one.
pub struct Golden {
    sweep: String,
    case: String,
    scheme: String,
    says: f64,
    here: Option<f64>,
    /// Mean of completion time divided by that of the message alone.
    alone: Option<f64>,
    mean_ns: Option<f64>,
}

/// Those that results name: by case, schemes in the order of their names.
pub fn golden(results: &[Value]) -> Vec<Golden> {
    let is_of_memory = |result: &&Value| result["kind"] == MemoryExperiment::NAME;
    let mut all: Vec<Golden> = results.iter().filter(is_of_memory).filter_map(Golden::of).collect();
    all.sort_by(|a, b| (&a.sweep, &a.case, &a.scheme).cmp(&(&b.sweep, &b.case, &b.scheme)));
    all
}

impl Golden {
    fn of(result: &Value) -> Option<Golden> {
        let outcome = &result["outcome"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name = || text(&outcome["name"]);
        Some(Golden {
            sweep: result["sweep"].as_str().map_or_else(name, str::to_owned),
            case: result["settings"]["case"].as_str().map_or_else(name, str::to_owned),
            scheme: text(&outcome["scheme"]),
            says: outcome["golden"].as_f64()?,
            here: outcome["published_slowdown"].as_f64(),
            alone: outcome["slowdown"]["mean"].as_f64(),
            mean_ns: outcome["latency_ns"]["mean"]["mean"].as_f64(),
        })
    }

    /// Whether the figure is near the published one; none if there is no figure.
    pub fn reproduced(&self) -> Option<bool> {
        self.here.map(|_| self.is_same())
    }

    fn is_same(&self) -> bool {
        self.here.is_some_and(|here| (here / self.says - 1.0).abs() <= WITHIN)
    }

    /// The figure of the paper that it is part of.
    fn figure(&self) -> &'static str {
        match self.case.split(' ').next() {
            Some("write" | "read" | "mix") => "Figure 8a",
            _ => "Figure 8b",
        }
    }

    /// Whether it was reproduced. Why not is never known from the figure alone.
    fn verdict(&self) -> &'static str {
        match self.here {
            None => "no figure",
            Some(_) if self.is_same() => "as published",
            Some(_) => "not reproduced; docs/edm.md has the known differences",
        }
    }

    /// As a line of text.
    pub fn text(&self) -> String {
        format!(
            "{}, {} ({}), {}: published {}, here {}: {}\n",
            self.sweep,
            self.case,
            self.figure(),
            self.scheme,
            self.says,
            or_dash(self.here, 3),
            self.verdict()
        )
    }
}

/// A figure, or that it is missing.
fn or_dash(figure: Option<f64>, digits: usize) -> String {
    figure.map_or("–".to_owned(), |figure| format!("{figure:.digits$}"))
}

/// All of them as part of a page; nothing if there are none.
pub fn html(all: &[Golden]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let same = all.iter().filter(|one| one.is_same()).count();
    let mut out = format!(
        "<details open><summary>EDM's published table: {same} of {} figures within 5 %</summary>\
         <p class=\"lead\">Slowdown by the authors' normalisation and stop rule, beside it over all messages.</p>\
         <div class=\"scroll\"><table><thead><tr><td>case</td><th scope=\"col\">figure</th><th scope=\"col\">scheme</th>\
         <th scope=\"col\">published</th><th scope=\"col\">here</th><th scope=\"col\">÷ alone</th><th scope=\"col\">mean, µs</th>\
         <th scope=\"col\">verdict</th></tr></thead><tbody>",
        all.len()
    );
    for one in all {
        let class = if one.is_same() { "" } else { "off" };
        put(
            &mut out,
            format_args!(
                "<tr><th scope=\"row\">{}</th><td data-h=\"figure\">{}</td><td data-h=\"scheme\">{}</td>\
             <td data-h=\"published\">{}</td><td data-h=\"here\" class=\"{class}\">{}</td><td data-h=\"÷ alone\">{}</td>\
             <td data-h=\"mean, µs\">{}</td><td data-h=\"verdict\">{}</td></tr>",
                escape(&one.case),
                one.figure(),
                escape(&one.scheme),
                one.says,
                or_dash(one.here, 3),
                or_dash(one.alone, 3),
                or_dash(one.mean_ns.map(|ns| ns / 1e3), 4),
                escape(one.verdict())
            ),
        );
    }
    out.push_str("</tbody></table></div></details>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_beside_the_table_have_verdicts() {
        let run = |case: &str, scheme: &str, here: Value| {
            json!({
                "kind": "memory", "sweep": "golden", "settings": { "case": case },
                "outcome": {
                    "name": "g", "scheme": scheme, "golden": 1.05, "published_slowdown": here,
                    "slowdown": { "mean": 1.1 }, "latency_ns": { "mean": { "mean": 300.0 } }, "alone_ns": 1.0
                }
            })
        };
        let results = [
            run("write 0.4", "edm-published", json!(1.051)),
            run("write 0.4", "edm-published", json!(1.2)),
            run("mix 0.5", "edm-published", json!(1.05)),
            run("Hadoop", "cxl", json!(3.0)),
            run("Hadoop", "cxl", Value::Null),
            json!({ "outcome": { "goodput_gbps": 1.0 } }),
        ];
        let all = golden(&results);
        let lines: Vec<String> = all.iter().map(Golden::text).collect();
        assert_eq!(all.len(), 5, "{lines:?}");
        let unlike = "not reproduced; docs/edm.md has the known differences\n";
        assert_eq!(
            lines[0],
            format!("golden, Hadoop (Figure 8b), cxl: published 1.05, here 3.000: {unlike}")
        );
        assert!(lines[1].ends_with("here –: no figure\n"));
        assert!(lines[2].starts_with("golden, mix 0.5 (Figure 8a), edm-published: "), "{}", lines[2]);
        assert_eq!(
            lines[3],
            "golden, write 0.4 (Figure 8a), edm-published: published 1.05, here 1.051: as published\n"
        );
        assert!(lines[4].ends_with(&format!("here 1.200: {unlike}")));
        assert!(html(&all).contains("2 of 5 figures within 5 %") && html(&[]).is_empty());
        let unmeasured =
            golden(&[json!({ "kind": "memory", "outcome": { "name": "g", "golden": 1.0, "slowdown": {} } })]);
        assert_eq!(html(&unmeasured).matches(">–</td>").count(), 3, "nothing is shown as 0");
    }
}
