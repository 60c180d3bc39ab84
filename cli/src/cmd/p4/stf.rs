//! `p4rack p4 stf`: runs a program against a file of the simple test framework.

use super::source::{Source, USAGE};
use p4rack_stf::{Outcome, run_with_drop_port};
use p4rack_switch::Pipeline;
use std::path::Path;
use std::process::ExitCode;

/// Runs it: 0 passed, 1 a deviation, 2 an unreadable file.
pub fn run(source: &Source, stf: &Path, drop_port: u16) -> ExitCode {
    let text = match std::fs::read_to_string(stf) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("error: {}: {error}", stf.display());
            return ExitCode::from(USAGE);
        }
    };
    source.compiled(|_, name, compiled| {
        let pipeline = match Pipeline::compile(&compiled.program) {
            Ok(pipeline) => pipeline,
            Err(error) => {
                eprintln!("error: {name}: {error}");
                return ExitCode::FAILURE;
            }
        };
        let outcome = p4rack_stf::parse(&text)
            .and_then(|statements| run_with_drop_port(&compiled.program, pipeline, &statements, drop_port));
        match outcome {
            Ok(outcome) => report(stf, &outcome),
            Err(error) => {
                eprintln!("error: {}: {error}", stf.display());
                ExitCode::from(USAGE)
            }
        }
    })
}

fn report(stf: &Path, outcome: &Outcome) -> ExitCode {
    let file = stf.display();
    for (line, note) in &outcome.notes {
        let line = if *line == 0 { String::new() } else { format!(":{line}") };
        println!("{file}{line}: {note}");
    }
    for failure in &outcome.failures {
        println!("{file}:{}: {}", failure.line, failure.what);
    }
    let (packets, expected) = (outcome.packets, outcome.expected);
    if outcome.passed() {
        println!("{file}: passed: {packets} packets in, {expected} frames expected");
        return ExitCode::SUCCESS;
    }
    println!(
        "{file}: failed: {} differences, {packets} packets in, {expected} frames expected",
        outcome.failures.len()
    );
    ExitCode::FAILURE
}
