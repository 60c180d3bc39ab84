//! Findings of the check, for people and machines.

use super::chip::{self, Chip};
use super::flow::Edge;
use super::memory::Need;
use super::place::{Placement, Thread};
use super::rules::Refusal;
use super::tree::Kind;
use crate::Diagnostics;
use crate::ast::Span;
use crate::diag::Diagnostic;
use crate::ir::Program;
use crate::source::SourceMap;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::Arc;

/// An estimate.
#[derive(Clone, Debug)]
pub struct Report {
    /// The chip.
    pub chip: &'static Chip,
    /// Each pipeline.
    pub pipelines: Vec<Pipeline>,
    /// Constructs that the chip can't run, in source order.
    pub refusals: Vec<Refusal>,
    /// Constructs that the chip runs, but perhaps with another result than the program says, in source order.
    pub warnings: Vec<Diagnostic>,
    pub(super) sources: Arc<SourceMap>,
}

/// An estimate of one pipeline.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// Its name.
    pub name: String,
    /// Its stages that are used, in order.
    pub stages: Vec<Stage>,
    /// Stages of ingress and egress alone.
    pub halves: [usize; 2],
    /// Bits of headers and metadata that tables reach.
    pub packet_bits: u64,
    /// Bits of the longest headers that parsers read, ingress and egress together.
    pub header_bits: u64,
    /// Tables of which each must come after the one before: the longest such chain, with the reasons.
    pub chain: Vec<(String, &'static str)>,
}

/// A stage.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Used resources.
    pub used: Need,
    /// Logical tables in it.
    pub tables: Vec<Table>,
}

/// A logical table.
#[derive(Clone, Debug)]
pub struct Table {
    /// A table's name; for other logical tables, their kind.
    pub name: String,
    /// Whether it is in ingress.
    pub ingress: bool,
    /// Source location.
    pub span: Span,
}

/// The report of a pipeline.
pub(super) fn pipeline(
    program: &Program,
    name: &str,
    threads: &[Thread<'_>],
    placement: &Placement,
    (packet_bits, header_bits): (u64, u64),
) -> Pipeline {
    let mut stages: Vec<Stage> =
        placement.used.iter().map(|used| Stage { used: *used, tables: Vec::new() }).collect();
    let mut halves = [0; 2];
    for (at, thread) in threads.iter().enumerate() {
        for (number, node) in thread.tree.nodes.iter().enumerate() {
            let Some((first, last)) = placement.stages[at][number] else { continue };
            halves[at.min(1)] = halves[at.min(1)].max(last + 1);
            for stage in stages.iter_mut().take(last + 1).skip(first) {
                let table = Table { name: node.name.clone(), ingress: at == 0, span: node.span };
                stage.tables.push(table);
            }
        }
    }
    while stages.last().is_some_and(|stage| stage.tables.is_empty()) {
        stages.pop();
    }
    let chain = chain(program, threads, placement);
    Pipeline { name: name.to_owned(), stages, halves, packet_bits, header_bits, chain }
}

/// The longest chain of tables.
fn chain(program: &Program, threads: &[Thread<'_>], placement: &Placement) -> Vec<(String, &'static str)> {
    let mut best = Vec::new();
    for (thread, stages) in threads.iter().zip(&placement.stages) {
        let count = thread.tree.nodes.len();
        let mut length = vec![0usize; count];
        let mut next: Vec<Option<&Edge>> = vec![None; count];
        let mut edges: Vec<&Edge> = thread
            .edges
            .iter()
            .filter(|edge| stages[edge.from].is_some() && stages[edge.to].is_some())
            .collect();
        edges.sort_by_key(|edge| std::cmp::Reverse(edge.from));
        for edge in edges {
            let behind = length[edge.to] + edge.reason.distance();
            if behind > length[edge.from] {
                length[edge.from] = behind;
                next[edge.from] = Some(edge);
            }
        }
        let Some(start) = (0..count)
            .filter(|at| stages[*at].is_some())
            .max_by_key(|at| (length[*at], std::cmp::Reverse(*at)))
        else {
            continue;
        };
        let mut found = vec![(thread.tree.nodes[start].name.clone(), "")];
        let mut at = start;
        while let Some(edge) = next[at] {
            at = edge.to;
            if edge.reason.distance() > 0 || thread.tree.nodes[at].kind != Kind::Gateway {
                let by = edge.var.map(|var| program.vars[var.0 as usize].name.as_str()).unwrap_or_default();
                let name = &thread.tree.nodes[at].name;
                let name = if by.is_empty() { name.clone() } else { format!("{name} ({by})") };
                found.push((name, edge.reason.name()));
            }
        }
        if found.len() > best.len() {
            best = found;
        }
    }
    best
}

impl Pipeline {
    /// Resources used in all stages together.
    pub fn used(&self) -> Need {
        self.stages.iter().fold(Need::default(), |sum, stage| sum.and(stage.used))
    }

    /// That, in words.
    fn totals(&self) -> String {
        let used = self.used();
        format!(
            "{} blocks of SRAM ({} KiB), {} of TCAM ({:.1} KiB), {} stateful ALUs and meters, {} counters",
            used.srams,
            sram_bytes(used) / 1024,
            used.tcams,
            tcam_bytes(used) as f64 / 1024.0,
            used.meter_alus,
            used.counter_alus
        )
    }
}

fn sram_bytes(used: Need) -> u64 {
    u64::from(used.srams) * chip::ROWS * chip::WORD_BITS / 8
}

fn tcam_bytes(used: Need) -> u64 {
    u64::from(used.tcams) * chip::TCAM_ROWS * chip::TCAM_BITS / 8
}

impl Report {
    /// Whether nothing was refused.
    pub fn fits(&self) -> bool {
        self.refusals.is_empty()
    }

    /// Stages of the pipeline that takes most.
    pub fn stages(&self) -> usize {
        self.pipelines.iter().map(|pipeline| pipeline.stages.len()).max().unwrap_or(0)
    }

    /// The refusals with their source lines.
    pub fn diagnostics(&self) -> Diagnostics {
        let items = self.refusals.iter().map(|refusal| refusal.diagnostic.clone()).collect();
        Diagnostics::new(self.sources.clone(), items)
    }

    /// The warnings with their source lines.
    pub fn warnings(&self) -> Diagnostics {
        Diagnostics::new(self.sources.clone(), self.warnings.clone())
    }

    /// The estimate as text.
    ///
    /// Bits of headers and metadata are those that tables reach, each once: containers are shared by fields that are never
    /// alive together, which the estimate doesn't see.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for pipeline in &self.pipelines {
            let _ = writeln!(
                out,
                "{}: about {} of {} stages of {} (ingress {}, egress {})",
                pipeline.name,
                pipeline.stages.len(),
                self.chip.stages,
                self.chip,
                pipeline.halves[0],
                pipeline.halves[1],
            );
            let _ = writeln!(out, "  in all stages: {}", pipeline.totals());
            let _ = writeln!(
                out,
                "  tables reach {} bits of headers and metadata; the chip's containers have {}",
                pipeline.packet_bits, self.chip.phv_bits,
            );
            if pipeline.packet_bits > self.chip.phv_bits {
                let _ = writeln!(
                    out,
                    "  that fits only where fields that are not used together share containers, which is not estimated"
                );
            }
            for (number, stage) in pipeline.stages.iter().enumerate() {
                let parts: Vec<String> = stage
                    .used
                    .parts()
                    .into_iter()
                    .filter(|(_, amount)| *amount > 0)
                    .map(|(name, amount)| format!("{amount} {}", name.replace('_', " ")))
                    .collect();
                let _ = writeln!(out, "  stage {number}: {}", parts.join(", "));
                for table in &stage.tables {
                    let half = if table.ingress { "ingress" } else { "egress" };
                    let _ = writeln!(out, "    {half} {}", table.name);
                }
            }
            if pipeline.chain.len() > 1 {
                let _ = writeln!(out, "  longest chain:");
                for (name, reason) in &pipeline.chain {
                    let _ = writeln!(out, "    {reason:8}{name}");
                }
            }
        }
        out.push_str("This is an estimate: what counts is the compiler's report.\n");
        out
    }

    /// The estimate for machines.
    pub fn json(&self) -> Value {
        let pipelines: Vec<Value> =
            self.pipelines.iter().map(|pipeline| self.pipeline_json(pipeline)).collect();
        let refusals: Vec<Value> = self
            .refusals
            .iter()
            .map(|refusal| {
                let at = self.sources.locate(refusal.diagnostic.span);
                json!({
                    "rule": refusal.rule.name(),
                    "message": refusal.diagnostic.message,
                    "file": at.file,
                    "line": at.line,
                    "column": at.column,
                })
            })
            .collect();
        let warnings: Vec<Value> = self
            .warnings
            .iter()
            .map(|warning| {
                let at = self.sources.locate(warning.span);
                json!({ "message": warning.message, "file": at.file, "line": at.line, "column": at.column })
            })
            .collect();
        json!({
            "estimate": true,
            "chip": self.chip.name,
            "stages_of_chip": self.chip.stages,
            "stages": self.stages(),
            "fits": self.fits(),
            "pipelines": pipelines,
            "refusals": refusals,
            "warnings": warnings,
        })
    }

    fn pipeline_json(&self, pipeline: &Pipeline) -> Value {
        let stages: Vec<Value> = pipeline
            .stages
            .iter()
            .map(|stage| {
                let used: serde_json::Map<String, Value> =
                    stage.used.parts().into_iter().map(|(name, amount)| (name.to_owned(), json!(amount))).collect();
                let tables: Vec<Value> = stage
                    .tables
                    .iter()
                    .map(|table| {
                        let half = if table.ingress { "ingress" } else { "egress" };
                        json!({ "name": table.name, "half": half, "line": self.sources.locate(table.span).line })
                    })
                    .collect();
                json!({ "used": used, "tables": tables })
            })
            .collect();
        let used = pipeline.used();
        let mut totals: serde_json::Map<String, Value> =
            used.parts().into_iter().map(|(name, amount)| (name.to_owned(), json!(amount))).collect();
        totals.insert("sram_bytes".to_owned(), json!(sram_bytes(used)));
        totals.insert("tcam_bytes".to_owned(), json!(tcam_bytes(used)));
        let chain: Vec<Value> =
            pipeline.chain.iter().map(|(name, reason)| json!({ "table": name, "reason": reason })).collect();
        json!({
            "name": pipeline.name,
            "stages": stages,
            "ingress_stages": pipeline.halves[0],
            "egress_stages": pipeline.halves[1],
            "totals": totals,
            "packet_bits": pipeline.packet_bits,
            "packet_bits_of_chip": self.chip.phv_bits,
            "header_bits": pipeline.header_bits,
            "longest_chain": chain,
        })
    }
}
