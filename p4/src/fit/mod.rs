//! Whether a program fits into a chip: an estimate of its stages and their content, and refusals of constructs that
//! the chip surely can't run.
//!
//! ```text
//!  controls ─ tree (logical tables) ─ flow (what depends on what) ─ place (stages) ─→ report
//!      └─ rules: actions, conditions, stateful ALUs, parsers
//! ```
//!
//! It is no compiler: fields have no containers and keys no crossbars here. Compilers place more tightly (they
//! split tables and move fields) or less so (they run out of places that this check does not count).

mod access;
pub mod chip;
mod expr;
mod flow;
mod memory;
mod ops;
mod parser;
mod place;
mod registers;
mod report;
mod rules;
mod stateful;
mod tree;
mod view;

pub use chip::Chip;
pub use flow::Reason;
pub use memory::Need;
pub use report::{Pipeline, Report, Stage, Table};
pub use rules::{Refusal, Rule};

use crate::Compiled;
use crate::ast::Span;
use crate::ir::{Half, Intrinsic, Program, Role, Task, Ty};
use access::Bits;
use flow::Edge;
use ops::Reader;
use std::collections::{BTreeMap, BTreeSet};
use tree::{Builder, Tree};
use view::View;

/// The chip that a program is written for; `None` if its architecture is no chip's.
pub fn chip_of(program: &Program) -> Option<&'static Chip> {
    // Only chips have a second multicast group; their generations have queue numbers of different widths.
    program.intrinsic(Intrinsic::SecondGroup)?;
    let queue = program.intrinsic(Intrinsic::Priority).map(|var| program.vars[var.0 as usize].ty);
    Some(if queue == Some(Ty::Bit(7)) { &chip::SECOND } else { &chip::FIRST })
}

/// Estimates the resources of a chip that a program takes.
pub fn check(compiled: &Compiled, chip: &'static Chip) -> Report {
    let program = &View::of(&compiled.program);
    let mut reader = Reader::new(program, compiled.warnings.sources());
    registers::stateful(program, chip, &mut reader.findings);
    registers::misses(program, &mut reader.findings);
    let mut places = BTreeMap::new();
    let mut pipelines = Vec::new();
    for (number, name) in program.pipelines.iter().enumerate() {
        let number = number as u32;
        let halves = [Half::Ingress, Half::Egress];
        let threads: Vec<(Tree, Vec<Edge>)> =
            halves.iter().map(|half| thread(&mut reader, number, *half)).collect();
        for (at, (tree, _)) in threads.iter().enumerate() {
            registers::one_place(program, tree, (number, at), &mut places, &mut reader.findings);
        }
        let borrowed: Vec<place::Thread<'_>> =
            threads.iter().map(|(tree, edges)| place::Thread { tree, edges }).collect();
        let placement = place::place(program, chip, &borrowed);
        for (thread, node, what) in &placement.misfits {
            let node = &borrowed[*thread].tree.nodes[*node];
            let why = format!("`{}` needs more {what} than a stage has", node.name);
            reader.findings.refuse(Rule::KeyWidth, node.span, why);
        }
        let bits = packet_bits(program, chip, number, &threads, &mut reader);
        let pipeline = report::pipeline(program, name, &borrowed, &placement, bits);
        if pipeline.stages.len() > chip.stages {
            let at = pipeline.stages[chip.stages].tables.first();
            let why = format!(
                "pipeline `{name}` takes about {} stages: {chip} has {}",
                pipeline.stages.len(),
                chip.stages
            );
            reader.findings.refuse(Rule::Stages, at.map_or_else(Span::default, |table| table.span), why);
        }
        pipelines.push(pipeline);
    }
    let (refusals, warnings) = reader.findings.into_parts();
    Report { chip, pipelines, refusals, warnings, sources: compiled.warnings.sources().clone() }
}

/// The tables of a half and their dependencies.
fn thread(reader: &mut Reader<'_>, pipeline: u32, half: Half) -> (Tree, Vec<Edge>) {
    let program = reader.program;
    let stmts =
        program.block(pipeline, Role { half, task: Task::Process }).map_or(&[][..], |block| block.stmts());
    let deparser =
        program.block(pipeline, Role { half, task: Task::Deparse }).map_or(&[][..], |block| block.stmts());
    let mut tree = Builder::build(reader, stmts, deparser);
    registers::once(reader, &tree);
    let mut parsed = BTreeSet::new();
    for stmts in flow::stmts_of(program, pipeline, half, Task::Parse) {
        flow::parsed(program, stmts, &mut parsed);
    }
    parsed.extend(flow::intrinsics(program));
    flow::prune(program, &mut tree, parsed, flow::outputs(program, deparser));
    let edges = flow::edges(program, &tree);
    (tree, edges)
}

/// Bits of headers and metadata that actions and keys reach, and of headers that merely travel. Refuses more than the
/// chip has.
fn packet_bits(
    program: &View<'_>,
    chip: &Chip,
    pipeline: u32,
    threads: &[(Tree, Vec<Edge>)],
    reader: &mut Reader<'_>,
) -> (u64, u64) {
    let mut reached: BTreeSet<Bits> = BTreeSet::new();
    for node in threads.iter().flat_map(|(tree, _)| &tree.nodes) {
        let ops = node.ops().flat_map(|op| op.reads.iter().chain(&op.matched).chain(&op.writes));
        reached.extend(ops.chain(&node.key).map(|bits| access::whole(program, bits.var)));
    }
    let own = |bits: &&Bits| (bits.var.0 as usize) < program.shared_vars;
    let reached: u64 = reached.iter().filter(own).map(|bits| u64::from(bits.hi) + 1).sum();
    let (mut longest, mut parse) = (0, 0);
    for half in [Half::Ingress, Half::Egress] {
        let role = Role { half, task: Task::Parse };
        let Some(parser) = program.block(pipeline, role).and_then(|block| block.parser()) else { continue };
        parser::looks_back(program, parser, &mut reader.findings);
        if chip.parser_ors {
            parser::stores_twice(program, parser, &mut reader.findings);
        }
        let extent = parser::extent(program, parser);
        longest += extent.longest;
        if half == Half::Egress {
            parse = extent.shortest / 8;
        }
    }
    if longest > chip.phv_bits + chip.tagalong_bits {
        let why = format!(
            "a packet may have headers of {longest} bits in ingress and egress: {chip} has {}",
            chip.phv_bits + chip.tagalong_bits
        );
        reader.findings.refuse(Rule::PacketBits, Span::default(), why);
    }
    if let Some(limit) = chip.egress_parse_bytes.filter(|limit| parse > *limit) {
        let why = format!("the parser of egress reads at least {parse} bytes: {chip} reads at most {limit}");
        reader.findings.refuse(Rule::ParseDepth, Span::default(), why);
    }
    (reached, longest)
}
