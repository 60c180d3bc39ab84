//! `p4rack sim report`: renders results as one self-contained HTML file.

mod golden;
mod papers;

use super::files::{check_folder, results};
use super::kinds;
use super::shown::Page;
use crate::output::OutputFile;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

const PAGE: &str = include_str!("page.html");
/// Placeholders of the page: the style of all reports with this one's additions, then the script. The results
/// come last, because they may contain anything.
const PLACES: [(&str, &[&str]); 2] = [
    ("/*STYLE*/", &[p4rack_lab::report::STYLE, include_str!("page.css")]),
    ("/*SCRIPT*/", &[include_str!("plot.js"), include_str!("page.js")]),
];
const RESULTS: &str = "/*RESULTS*/[]";
/// What is shown of each kind of experiments, by its name.
const KINDS: &str = "/*KINDS*/{}";
const VERDICT: &str = "<!--VERDICT-->";
const PAPERS: &str = "<!--PAPERS-->";

/// Arguments of `p4rack sim report`.
#[derive(clap::Args, Debug)]
pub struct ReportArgs {
    /// Folder of results: of a sweep, or of `sim run --json=DIR/NAME.json`
    dir: PathBuf,
    /// Output file [default: DIR/report.html]
    #[arg(long, short, value_name = "HTML")]
    output: Option<PathBuf>,
}

/// Writes the page, and prints how each figure of a paper compares.
pub fn report(args: &ReportArgs) -> Result<bool, String> {
    check_folder(&args.dir)?;
    let path = args.output.clone().unwrap_or_else(|| args.dir.join("report.html"));
    let output = OutputFile::open("--output", &path)?;
    let results = results(&args.dir)?;
    let mut pages = BTreeMap::new();
    for result in &results {
        let kind = kinds::of_result(result)?;
        pages.insert(kind.name, kind.page);
    }
    let comparisons = papers::comparisons(&results);
    let golden = golden::golden(&results);
    let tables: String = comparisons.iter().map(papers::Comparison::html).collect();
    let of_papers = comparisons.iter().map(papers::Comparison::reproduced);
    let headline = Headline::of(&results, of_papers.chain(golden.iter().map(golden::Golden::reproduced)));
    let text = page(&results, &pages, &headline, &(tables + &golden::html(&golden)));
    output.write(text.as_bytes())?;
    comparisons.iter().for_each(|comparison| print!("{}", comparison.text()));
    golden.iter().for_each(|figure| print!("{}", figure.text()));
    println!("{}: {headline}", path.display());
    Ok(true)
}

/// How many runs passed, and how many figures of papers were reproduced.
#[derive(Debug, Default, PartialEq)]
struct Headline {
    runs: usize,
    failed: usize,
    reproduced: usize,
    not_reproduced: usize,
    /// Figures of papers for which nothing was measured.
    absent: usize,
}

impl Headline {
    /// Of results and what became of each figure of a paper.
    fn of(results: &[Value], figures: impl Iterator<Item = Option<bool>>) -> Headline {
        let failed =
            |result: &&Value| result["outcome"]["problems"].as_array().is_some_and(|all| !all.is_empty());
        let failed = results.iter().filter(failed).count();
        let mut headline = Headline { runs: results.len(), failed, ..Headline::default() };
        for reproduced in figures {
            match reproduced {
                Some(true) => headline.reproduced += 1,
                Some(false) => headline.not_reproduced += 1,
                None => headline.absent += 1,
            }
        }
        headline
    }
}

impl fmt::Display for Headline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.failed {
            0 => write!(f, "{} runs, all checks passed", self.runs)?,
            failed => write!(f, "{} runs, {failed} failed a check", self.runs)?,
        }
        if self.reproduced + self.not_reproduced + self.absent == 0 {
            return Ok(());
        }
        write!(f, "; figures of papers: {} reproduced, {} not", self.reproduced, self.not_reproduced)?;
        if self.absent > 0 { write!(f, ", {} not measured", self.absent) } else { Ok(()) }
    }
}

/// The page that shows `results`, each kind by its own page, and tables of papers' figures.
fn page(results: &[Value], pages: &BTreeMap<&str, Page>, headline: &Headline, papers: &str) -> String {
    let none = "<p class=\"lead\">These experiments name no figures of a paper.</p>";
    let class = if headline.failed == 0 { "good" } else { "bad" };
    let mut page = PAGE.replace(PAPERS, if papers.is_empty() { none } else { papers });
    page = page.replace(VERDICT, &format!("<p class=\"verdict {class}\">{headline}</p>"));
    for (place, parts) in PLACES {
        page = page.replace(place, &parts.concat());
    }
    page = page.replace(KINDS, &json(pages));
    page.replace(RESULTS, &json(results))
}

/// JSON within a script, where only `</` ends it early.
fn json(value: impl Serialize) -> String {
    let text = serde_json::to_string(&value).expect("JSON that was read can be written");
    text.replace("</", "<\\/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_page_has_a_place_for_everything() {
        for place in PLACES.map(|(place, _)| place).into_iter().chain([RESULTS, KINDS, VERDICT, PAPERS]) {
            assert_eq!(PAGE.matches(place).count(), 1, "{place}");
        }
    }

    #[test]
    fn the_page_needs_nothing_from_outside_and_results_cannot_end_its_script() {
        let results = [json!({ "name": "</script><img src=x>" })];
        let page = page(&results, &BTreeMap::new(), &Headline::default(), "");
        for outside in ["http:", "https:", "src=\"", "@import", "url(", "<link"] {
            assert!(!page.contains(outside), "{outside} in the page");
        }
        assert_eq!(page.matches("</script>").count(), 1);
        assert!(page.contains(r"<\/script>"));
    }

    #[test]
    fn the_headline_counts_runs_and_figures() {
        let results = [json!({ "outcome": { "problems": [] } }), json!({ "outcome": { "problems": ["x"] } })];
        let of =
            |results, figures: &[Option<bool>]| Headline::of(results, figures.iter().copied()).to_string();
        assert_eq!(of(&results[..1], &[]), "1 runs, all checks passed");
        let figures = [Some(true), Some(false), None, Some(true)];
        assert_eq!(
            of(&results, &figures),
            "2 runs, 1 failed a check; figures of papers: 2 reproduced, 1 not, 1 not measured"
        );
    }
}
