//! Table 1 of the EDM paper: the latency of a 64-byte read and write without load, by stack.

use super::exact::{Exact, paper};
use super::latency::{CYCLE_PS, Modules, STACKS, edm_ps};
use super::message::{Message, Operation};
use super::mux::beside_frames;
use crate::experiment::{Check, ExperimentError, PaperSpec, parse_toml};
use crate::outcome::{Compared, compared};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The value of `kind` in such a file.
pub const KIND: &str = "memory-table";
/// Rate of the testbed's links.
const RATE_BPS: u64 = 25_000_000_000;
const BYTES: u32 = 64;

/// Fields of the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableSpec {
    name: String,
    kind: String,
    /// Frames, with FCS, that share every link in the last rows.
    frame_bytes: u64,
    #[serde(default)]
    paper: Vec<PaperSpec>,
}

/// A row of the table.
#[derive(Clone, Debug, Serialize)]
pub struct Table1Row {
    /// Stack and operation, e.g. `EDM read`.
    pub figure: String,
    /// The simulated latency.
    pub ours_ns: f64,
    /// The paper's figure, if there is one.
    pub paper_ns: Option<f64>,
    /// Place in the paper.
    pub source: Option<String>,
    /// Why the simulated one differs, if it does.
    pub why: Option<String>,
}

/// The table.
#[derive(Clone, Debug, Serialize)]
pub struct Table1 {
    /// Name of the file's experiment.
    pub name: String,
    /// The rows.
    pub rows: Vec<Table1Row>,
    /// The simulated latencies by row.
    pub ours_ns: BTreeMap<String, f64>,
    /// The paper's figures beside these.
    pub paper: Vec<Compared>,
    /// Figures of the file that the table lacks, and those that differ by more than 1 % without a reason.
    pub problems: Vec<String>,
}

/// A checked experiment.
#[derive(Clone, Debug)]
pub struct Table1Experiment(TableSpec);

impl Table1Experiment {
    /// Reads and checks a file; `file` names it in errors.
    pub fn parse(text: &str, file: &str) -> Result<Table1Experiment, ExperimentError> {
        let spec: TableSpec = parse_toml(text, file, "docs/edm.md lists the fields")?;
        let mut check = Check { text, file, problems: Vec::new() };
        if spec.kind != KIND {
            check.problem("", 0, "kind", format!("`{}`: write \"{KIND}\"", spec.kind));
        }
        if !(64..=9_022).contains(&spec.frame_bytes) {
            check.problem(
                "",
                0,
                "frame_bytes",
                format!("{} is no frame; write 64 to 9022", spec.frame_bytes),
            );
        }
        match check.problems.is_empty() {
            true => Ok(Table1Experiment(spec)),
            false => Err(ExperimentError(check.problems)),
        }
    }

    /// Computes the table.
    pub fn run(&self) -> Result<Table1, String> {
        let spec = &self.0;
        let mut rows: Vec<Table1Row> = Vec::new();
        let mut problems = Vec::new();
        for (figure, ours_ps) in figures(spec.frame_bytes)? {
            let paper = spec.paper.iter().find(|paper| paper.figure == figure);
            let (ours_ns, paper_ns) = (ours_ps as f64 / 1e3, paper.map(|paper| paper.says));
            let (source, why) =
                (paper.map(|paper| paper.source.clone()), paper.and_then(|paper| paper.why.clone()));
            if paper_ns.is_some_and(|paper_ns| (ours_ns / paper_ns - 1.0).abs() > 0.01) && why.is_none() {
                problems.push(format!("{figure}: {ours_ns} ns, more than 1 % off"));
            }
            rows.push(Table1Row { figure, ours_ns, paper_ns, source, why });
        }
        for paper in &spec.paper {
            if !rows.iter().any(|row| row.figure == paper.figure) {
                problems.push(format!("`{}` is no figure of the table", paper.figure));
            }
        }
        let ours_ns = rows.iter().map(|row| (row.figure.clone(), row.ours_ns)).collect();
        let mut table = Table1 { name: spec.name.clone(), rows, ours_ns, paper: Vec::new(), problems };
        // Figures are paths into the results.
        let papers = spec.paper.iter();
        let papers: Vec<PaperSpec> = papers
            .map(|paper| PaperSpec { figure: format!("ours_ns.{}", paper.figure), ..paper.clone() })
            .collect();
        table.paper = compared(&table, papers.iter());
        Ok(table)
    }
}

/// Time of one operation on an otherwise idle rack of two nodes, in the simulator of loaded racks.
fn simulated_ps(operation: Operation, rate_bps: u64) -> Result<u64, String> {
    let mut params = paper(2, rate_bps);
    params.scheduler.cycle_ps = CYCLE_PS;
    params.modules = Modules::testbed(CYCLE_PS);
    let messages = [Message { at_ps: 0, operation, compute: 0, memory: 1, bytes: BYTES }];
    let shown = Exact::new(&params, &messages, None)?.run();
    let done_ps = shown.times.first().and_then(|times| times.done_ps);
    done_ps.ok_or_else(|| "an operation alone on its rack is never complete".to_owned())
}

fn figures(frame_bytes: u64) -> Result<Vec<(String, u64)>, String> {
    let mut figures = Vec::new();
    let both = [("read", Operation::Read), ("write", Operation::Write)];
    for stack in &STACKS {
        for (name, operation) in both {
            figures.push((format!("{} {name}, stack", stack.name), stack.stack_ps(operation)));
            figures.push((format!("{} {name}", stack.name), stack.fabric_ps(operation)));
        }
    }
    for (name, operation) in both {
        figures.push((format!("EDM {name}, stack"), edm_ps(operation).0));
        // Links take no time to send, as in the paper's table.
        figures.push((format!("EDM {name}"), simulated_ps(operation, 0)?));
        figures.push((format!("EDM {name}, last block at 25 Gb/s"), simulated_ps(operation, RATE_BPS)?));
        // One block for each notification, grant and head of a request, and eight of data, each waiting beside frames.
        let first = beside_frames(1, frame_bytes).first;
        let late_ps = (4.0 * first * CYCLE_PS as f64) as u64;
        figures.push((format!("EDM {name} beside frames"), simulated_ps(operation, 0)? + late_ps));
    }
    let held = beside_frames(BYTES / 8, frame_bytes).held_max as u64;
    figures.push(("frame held until its end at the receiver".to_owned(), held * CYCLE_PS));
    Ok(figures)
}
