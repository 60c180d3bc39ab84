//! `p4rack p4 stf`: runs a program against a file of the simple test framework.

use super::run::in_lines;
use super::source::{Source, USAGE};
use p4rack_codegen::text;
use p4rack_stf::{MAX_EVENTS, Outcome, Traced, run_with_drop_port};
use p4rack_switch::Pipeline;
use std::path::Path;
use std::process::ExitCode;

/// Packets whose way through the program is printed.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// All packets
    All,
    /// Those that something else was expected of
    Failed,
}

/// Runs it: 0 passed, 1 a deviation, 2 an unreadable file.
pub fn run(source: &Source, stf: &Path, drop_port: u16, trace: Option<Shown>) -> ExitCode {
    let unread = |error: String| {
        eprintln!("error: {}: {error}", stf.display());
        ExitCode::from(USAGE)
    };
    let wanted = "lines of the simple test framework, such as packet 0 0102 and expect 1 0102";
    let text = match text::read(stf) {
        Ok(text) => text,
        Err(error) => return unread(text::fault(&error, wanted)),
    };
    source.compiled(|_, name, compiled| {
        let pipeline = match trace {
            Some(_) => Pipeline::compile_traced(&compiled.program),
            None => Pipeline::compile(&compiled.program),
        };
        let pipeline = match pipeline {
            Ok(pipeline) => pipeline,
            Err(error) => {
                eprintln!("error: {name}: {error}");
                return ExitCode::FAILURE;
            }
        };
        let statements = match p4rack_stf::parse(&text) {
            Ok(statements) if statements.is_empty() => {
                return unread(format!("has no lines that test; write {wanted}"));
            }
            Ok(statements) => statements,
            Err(error) => return unread(error.to_string()),
        };
        match run_with_drop_port(&compiled.program, pipeline, &statements, drop_port) {
            Ok(outcome) => report(stf, &outcome, trace),
            Err(error) => unread(error.to_string()),
        }
    })
}

fn report(stf: &Path, outcome: &Outcome, trace: Option<Shown>) -> ExitCode {
    let file = stf.display();
    if trace == Some(Shown::All) {
        outcome.traces.iter().for_each(|traced| print!("{}", way(stf, traced)));
    }
    for (line, note) in &outcome.notes {
        let line = if *line == 0 { String::new() } else { format!(":{line}") };
        println!("{file}{line}: {note}");
    }
    let mut shown = None;
    for failure in &outcome.failures {
        println!("{file}:{}: {}", failure.line, failure.what);
        // Failures of one packet follow each other.
        if trace == Some(Shown::Failed) && failure.packet.is_some() && shown != failure.packet {
            let traces = outcome.traces.iter().filter(|traced| Some(traced.line) == failure.packet);
            traces.for_each(|traced| print!("{}", way(stf, traced)));
            shown = failure.packet;
        }
    }
    if outcome.untraced > 0 {
        println!(
            "{file}: {} packets are not traced: there were {MAX_EVENTS} events before",
            outcome.untraced
        );
    }
    let (packets, expected) = (outcome.packets, outcome.expected);
    if outcome.passed() {
        println!("{file}: passed: {packets} packets in, {expected} frames expected");
        return ExitCode::SUCCESS;
    }
    let hint = if trace.is_none() { "; --trace=failed shows how their packets passed" } else { "" };
    println!(
        "{file}: failed: {} differences, {packets} packets in, {expected} frames expected{hint}",
        outcome.failures.len()
    );
    ExitCode::FAILURE
}

/// A packet's way through the program.
fn way(stf: &Path, traced: &Traced) -> String {
    let Traced { line, port, bytes, fate } = traced;
    let what = match port {
        Some(port) => format!("packet at port {port}, {bytes} bytes"),
        None => "while waiting".to_owned(),
    };
    format!("{}:{line}: {what}\n{}", stf.display(), in_lines(fate))
}
