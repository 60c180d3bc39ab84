//! `p4rack sim report`: renders results as one self-contained HTML file.

mod golden;
mod papers;
mod plots;
mod runs;
mod table;
mod value;

use super::files::{check_folder, results};
use super::kinds;
use super::shown::Page;
use crate::output::OutputFile;
use p4rack_report::{document, escape};
use runs::Group;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

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
    /// Status of a report, from its results and the verdict on each figure of a paper.
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
    let groups = runs::groups(results, pages);
    let class = if headline.failed == 0 { "good" } else { "bad" };
    let none = "<p class=lead>These experiments name no figures of a paper.</p>";
    let papers = if papers.is_empty() { none } else { papers };
    let link = |(nth, group): (usize, &Group<'_>)| format!("<a href='#g{nth}'>{}</a>", escape(group.name));
    let links: String = groups.iter().enumerate().map(link).collect();
    let sections: String = groups.iter().enumerate().map(|(nth, group)| section(nth, group)).collect();
    let body = format!(
        "<header><h1>Simulations</h1>\n<p class='verdict {class}'>{headline}</p>\n\
         <p>The papers’ figures beside those here, then the runs of each experiment.</p></header>\n\
         <nav aria-label=Experiments>{links}</nav>\n\
         <section><h2>Beside the papers</h2>\n<p class=lead>The paper’s figures beside those here: of the cases that are as in \
         the paper, if there are any, else of all that it speaks of. A figure within 10 %, or within what its experiment says, is the same. Each row opens to the \
         paper’s words and to all cases.</p>\n{papers}</section>\n{sections}"
    );
    document(&p4rack_report::Page {
        title: "p4rack: simulations",
        style: include_str!("page.css"),
        body: &body,
        script: include_str!("page.js"),
    })
}

/// The section of an experiment: tables and plots.
fn section(nth: usize, group: &Group<'_>) -> String {
    let seeds = match group.seeds().as_slice() {
        [] => String::new(),
        [seed] => format!(" Seed {}.", escape(seed)),
        seeds => format!(
            " Means of {} seeds, with the least and the most where they differ by over 1 %; a pointer over a figure shows \
             those of each seed. Plots of runs draw each seed.",
            seeds.len()
        ),
    };
    let (name, about) = (escape(group.name), escape(group.page.about));
    let head = format!(
        "<section id=g{nth}><h2>{name}</h2><p class=lead>{about}{seeds} Rows with a box ticked are drawn in the plots of runs.</p>\n"
    );
    let tables = table::runs(group) + &table::tenths(group);
    let plots = plots::over_settings(group) + &plots::of_runs(group);
    head + &tables + &plots + &table::parts(group) + "</section>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A page of four runs with all plots.
    fn whole() -> String {
        let results =
            [("a", "2", 1), ("a", "8", 1), ("a", "8", 2), ("two hosts", "2", 1)].map(|(case, k, seed)| {
                runs::tests::result(case, k, seed, k.parse::<f64>().unwrap() * 2.0 + seed as f64)
            });
        page(&results, &runs::tests::pages(), &Headline::default(), "")
    }

    #[test]
    fn the_page_needs_nothing_from_outside_and_its_elements_end() {
        let page = whole();
        for outside in ["http:", "https:", "src=", "@import", "url(", "<link", "NaN", "inf "] {
            assert!(!page.contains(outside), "{outside} in the page");
        }
        for element in [
            "section", "table", "svg", "figure", "div", "tr", "td", "th", "thead", "tbody", "p", "g",
            "select",
        ] {
            let opened =
                page.matches(&format!("<{element}>")).count() + page.matches(&format!("<{element} ")).count();
            assert_eq!(opened, page.matches(&format!("</{element}>")).count(), "<{element}>");
        }
    }

    #[test]
    fn the_page_has_every_table_and_plot() {
        let page = whole();
        for shown in [
            "<th scope=row><label><input type=checkbox value=1 checked> <i class='key series-1' data-row=1></i>a, k 8</label>",
            // Of two seeds.
            "title='seed 1: 17; seed 2: 18'>17.5<small class=range>17–18</small>",
            "<option selected>two hosts</option>",
            "<div class='scroll measure' hidden>",
            "<h3>Over k</h3>",
            "<title>a: 17.5 Gb/s at 8</title>",
            "<title>a, k 8, seed 2</title>",
            "a, k 8: p50 2 µs, p99 9 µs",
            "Fullest queue of the switch. a, k 2, seed 1: at most 3 KB",
        ] {
            assert!(page.contains(shown), "{shown}");
        }
        // Goodput and latency over k; tails and queues of runs.
        assert_eq!(page.matches("<svg").count(), 4);
    }

    #[test]
    fn cases_without_an_axis_have_bars_and_parts_a_table() {
        let mut results = ["a", "b"].map(|case| runs::tests::result(case, "2", 1, 5.0));
        for result in &mut results {
            let traffic = result["outcome"]["traffic"][0].clone();
            result["outcome"]["traffic"] = json!([traffic, { "name": "<other>", "goodput_gbps": 2.5 }]);
        }
        let page = page(&results, &runs::tests::pages(), &Headline::default(), "");
        assert!(page.contains("<title>b: 5 Gb/s</title>"), "bars of goodput");
        assert!(
            page.contains("<h3>By traffic</h3>")
                && page.contains("a: &lt;other&gt;")
                && !page.contains("<other>")
        );
    }

    #[test]
    fn plots_with_too_many_lines_are_divided_and_say_what_they_leave_out() {
        let of = |cases: usize, loads: usize| {
            let mut results = Vec::new();
            for (case, load, k) in
                (0..cases * loads * 2).map(|nth| (nth / loads / 2, nth / 2 % loads, nth % 2))
            {
                let mut result = runs::tests::result(&format!("case {case:02}"), &k.to_string(), 1, 1.0);
                result["settings"]["load"] = json!(format!("load-{load}"));
                results.push(result);
            }
            page(&results, &runs::tests::pages(), &Headline::default(), "")
        };
        let whole = of(8, 2);
        assert!(
            whole.contains("<h3>Over k</h3>") && !whole.contains("lines; the table"),
            "16 lines are shown"
        );
        let divided = of(9, 2);
        for load in 0..2 {
            let (_, plots) = divided.split_once(&format!("<h3>Over k, load load-{load}</h3>")).unwrap();
            let goodput = plots.split("</svg>").next().unwrap();
            assert_eq!(goodput.matches("class=line ").count(), 9, "{goodput}");
            assert!(goodput.contains("<title>case 08</title>"));
        }
        let cut = of(17, 2);
        assert_eq!(cut.matches("The first 16 of 17 lines; the table has all.").count(), 2);
        let plot = cut.split("<h3>Over k, load load-1</h3>").nth(1).unwrap().split("</svg>").next().unwrap();
        assert_eq!(plot.matches("class=line ").count(), 16);
        assert!(cut.contains("<option>case 16</option>") && !plot.contains("case 16"));
    }

    #[test]
    fn bars_that_are_left_out_are_counted() {
        let bars = |count: usize| {
            let results: Vec<Value> =
                (0..count).map(|nth| runs::tests::result(&format!("case {nth:02}"), "2", 1, 1.0)).collect();
            page(&results, &runs::tests::pages(), &Headline::default(), "")
        };
        assert!(!bars(40).contains("(the first"));
        let page = bars(41);
        assert!(page.contains("(the first 40 of 41; the table has all)"));
        assert!(
            page.contains("<title>case 39: 1 Gb/s</title>")
                && !page.contains("<title>case 40: 1 Gb/s</title>")
        );
    }

    #[test]
    fn names_cannot_break_out() {
        let mut result = runs::tests::result("</section><img src=x>", "1", 1, 1.0);
        result["sweep"] = json!("<b>");
        result["outcome"]["problems"] = json!(["<script>"]);
        let page = page(&[result], &runs::tests::pages(), &Headline::default(), "");
        assert!(!page.contains("<img") && !page.contains("<b>") && page.matches("<script>").count() == 1);
        assert!(page.contains("class='text off'>&lt;script&gt;"));
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
