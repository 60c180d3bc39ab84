//! `p4rack sim report`: renders results as one self-contained HTML file.

mod golden;
mod papers;

use super::columns::{is_of_cowbird, is_of_memory};
use super::files::{check_folder, results};
use crate::output::OutputFile;
use serde_json::Value;
use std::path::PathBuf;

const PAGE: &str = include_str!("page.html");
/// Placeholders of the page: the style of all reports with this one's additions, then the script. The results
/// come last, because they may contain anything.
const PLACES: [(&str, &[&str]); 2] = [
    ("/*STYLE*/", &[p4rack_lab::report::STYLE, include_str!("page.css")]),
    ("/*SCRIPT*/", &[include_str!("plot.js"), include_str!("page.js")]),
];
const RESULTS: &str = "/*RESULTS*/[]";
/// Number of runs, and of those that failed a check.
const COUNTS: &str = "/*COUNTS*/[0, 0]";
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
    let comparisons = papers::comparisons(&results);
    let golden = golden::golden(&results);
    let tables: String = comparisons.iter().map(papers::Comparison::html).collect();
    let tables = tables + &golden::html(&golden);
    // The page plots racks of frames; the others are in its tables.
    let is_plotted = |result: &&Value| !is_of_memory(result) && !is_of_cowbird(result);
    let plotted: Vec<_> = results.iter().filter(is_plotted).collect();
    let json = serde_json::to_string(&plotted).expect("JSON that was read can be written");
    let failed =
        |result: &&Value| result["outcome"]["problems"].as_array().is_some_and(|all| !all.is_empty());
    let counts = [results.len(), results.iter().filter(failed).count()];
    output.write(page(&json, counts, &tables).as_bytes())?;
    comparisons.iter().for_each(|comparison| print!("{}", comparison.text()));
    golden.iter().for_each(|figure| print!("{}", figure.text()));
    println!("{}: {} runs", path.display(), results.len());
    Ok(true)
}

/// The page that shows `results`, a JSON array, and tables of papers' figures.
fn page(results: &str, counts: [usize; 2], papers: &str) -> String {
    let none = "<p class=\"lead\">These experiments name no figures of a paper.</p>";
    let mut page = PAGE.replace(PAPERS, if papers.is_empty() { none } else { papers });
    for (place, parts) in PLACES {
        page = page.replace(place, &parts.concat());
    }
    page = page.replace(COUNTS, &format!("{counts:?}"));
    // Within a script, only `</` ends it early.
    page.replace(RESULTS, &results.replace("</", "<\\/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_place_for_everything() {
        for place in PLACES.map(|(place, _)| place).into_iter().chain([RESULTS, COUNTS, PAPERS]) {
            assert_eq!(PAGE.matches(place).count(), 1, "{place}");
        }
    }

    #[test]
    fn the_page_needs_nothing_from_outside_and_results_cannot_end_its_script() {
        let page = page(r#"[{"name":"</script><img src=x>"}]"#, [1, 0], "");
        for outside in ["http:", "https:", "src=\"", "@import", "url(", "<link"] {
            assert!(!page.contains(outside), "{outside} in the page");
        }
        assert_eq!(page.matches("</script>").count(), 1);
        assert!(page.contains(r"<\/script>"));
    }
}
