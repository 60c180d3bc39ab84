//! `p4rack sim report`: results as one HTML file that needs nothing else.

use super::sim::write;
use super::sim_sweep::results;
use std::path::PathBuf;

const PAGE: &str = include_str!("sim_report.html");
const PLACE: &str = "/*RESULTS*/[]";

/// Arguments of `p4rack sim report`.
#[derive(clap::Args, Debug)]
pub struct ReportArgs {
    /// Folder of results: of a sweep, or of `sim run --json=DIR/NAME.json`
    dir: PathBuf,
    /// The page to write; DIR/report.html if not given
    #[arg(long, short, value_name = "HTML")]
    output: Option<PathBuf>,
}

/// Writes the page.
pub fn report(args: &ReportArgs) -> Result<bool, String> {
    let results = results(&args.dir)?;
    let json = serde_json::to_string(&results).expect("JSON that was read can be written");
    // Within a script, only this ends it early.
    let page = PAGE.replace(PLACE, &json.replace("</", "<\\/"));
    let path = args.output.clone().unwrap_or_else(|| args.dir.join("report.html"));
    write(&path, page.as_bytes())?;
    println!("{}: {} runs", path.display(), results.len());
    Ok(true)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_has_a_place_for_results() {
        assert_eq!(super::PAGE.matches(super::PLACE).count(), 1);
    }
}
