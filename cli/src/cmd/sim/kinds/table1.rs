//! The table of latencies without load: its presentation.

use crate::cmd::sim::shown::{Page, Parts, RunOptions, Shown, figure};
use p4rack_lab::rows::Rows;
use p4rack_sim::{ExperimentKind, Table1, Table1Experiment};

/// How the report shows it.
const PAGE: Page = Page {
    about: "Latency of one operation on an idle rack, by stack: the simulator’s beside the paper’s.",
    columns: &[],
    drawn: &[],
    tail: None,
    series: None,
    tenths: None,
    parts: &[Parts {
        title: "Latency without load",
        path: "/rows",
        name: "figure",
        least: 1,
        figures: &[
            figure("here", "µs", "/ours_ns", 1e3),
            figure("paper", "µs", "/paper_ns", 1e3),
            figure("ratio", "", "/ours_ns / /paper_ns", 1.0),
        ],
    }],
    notes: &[],
};

impl Shown for Table1Experiment {
    const PAGE: Page = PAGE;

    fn check_options(&self, options: &RunOptions) -> Result<(), String> {
        match options.seed.is_some() || options.twice {
            true => Err("a table has no seed; leave out --seed and --twice".to_owned()),
            false => options.refuse_those_of_frames(Self::NAME),
        }
    }

    fn text(outcome: &Table1) -> String {
        table_text(outcome)
    }
}

fn table_text(table: &Table1) -> String {
    let us = |ns: f64| format!("{:.4}", ns / 1e3);
    let mut rows = Rows::new(&["figure", ">paper µs", ">here µs", ">ratio", "source"]);
    for row in &table.rows {
        let (paper, ratio) = match row.paper_ns {
            Some(paper) => (us(paper), format!("{:.3}", row.ours_ns / paper)),
            None => Default::default(),
        };
        let source = row.source.clone().unwrap_or_default();
        rows.push(vec![row.figure.clone(), paper, us(row.ours_ns), ratio, source]);
    }
    let whys = table.rows.iter().filter_map(|row| Some(format!("{}: {}\n", row.figure, row.why.as_ref()?)));
    format!("{}\n\n{}{}", table.name, rows.text(), whys.collect::<String>())
}
