//! Developers' tool: compiles every P4 file of a folder and compares with what p4c's test suite expects.
//!
//! ```text
//! cargo run -p p4rack-p4 --example samples -- TESTDATA [accept|refuse|p4info] [-v] [FILE…]
//! ```
//! TESTDATA holds `p4_16_samples`, `p4_16_samples_outputs` and `p4_16_errors`. With a file instead of the
//! folder, that program is compiled and its diagnostics, `ir` or `p4info` printed.

use p4rack_p4::Options;
use p4rack_p4rt::p4::config::v1::P4Info;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

fn main() {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let verbose = args.iter().any(|a| a == "-v");
    args.retain(|a| a != "-v");
    let Some(root) = args.first().map(PathBuf::from) else {
        eprintln!("usage: samples TESTDATA [accept|refuse|p4info] [-v] [FILE…]");
        std::process::exit(2);
    };
    let what = args.get(1).cloned().unwrap_or_default();
    if root.is_file() {
        one(&root, &what);
        return;
    }
    let only = args.get(2..).unwrap_or_default().to_vec();
    std::panic::set_hook(Box::new(|_| {}));
    if what.is_empty() || what == "accept" {
        accept(&root, verbose, &only);
    }
    if what.is_empty() || what == "refuse" {
        refuse(&root, verbose, &only);
    }
    if what.is_empty() || what == "p4info" {
        p4info(&root, verbose, &only);
    }
}

/// Compiles one program and prints its diagnostics, and its `ir` or `p4info` if asked.
fn one(path: &Path, what: &str) {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    match p4rack_p4::compile(&text, &path.to_string_lossy(), &options(path)) {
        Err(diagnostics) => println!("{diagnostics}"),
        Ok(compiled) => {
            println!("{}", compiled.warnings);
            match what {
                "ir" => println!("{:#?}", compiled.program),
                "p4info" => println!("{}", p4rack_p4rt::text::print(&compiled.p4info)),
                _ => println!("accepted"),
            }
        }
    }
}

/// Programs of a folder with their text.
fn programs(folder: &Path, only: &[String]) -> Vec<(PathBuf, String)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "p4"));
    if !only.is_empty() {
        paths.retain(|p| {
            only.iter().any(|o| p.file_name().is_some_and(|n| n.to_string_lossy().contains(o.as_str())))
        });
    }
    paths.sort();
    paths.into_iter().filter_map(|p| Some((p.clone(), std::fs::read_to_string(&p).ok()?))).collect()
}

fn options(path: &Path) -> Options {
    let folder = path.parent().map(Path::to_path_buf).into_iter().collect();
    Options { include_dirs: folder, defines: Vec::new() }
}

/// First error, or the word for a fault of the compiler.
fn compile(path: &Path, text: &str) -> Result<p4rack_p4::Compiled, String> {
    let run = || p4rack_p4::compile(text, &path.to_string_lossy(), &options(path));
    match catch_unwind(AssertUnwindSafe(run)) {
        Err(_) => Err("PANIC".to_owned()),
        Ok(Ok(compiled)) => Ok(compiled),
        Ok(Err(diagnostics)) => {
            let first = diagnostics.items.iter().find(|d| d.severity == p4rack_p4::Severity::Error);
            let at = first.map(|d| diagnostics.sources().locate(d.span));
            let at = at.map(|a| format!("{}:{}", a.line, a.column)).unwrap_or_default();
            Err(format!("{at} {}", first.map_or("?", |d| d.message.as_str())))
        }
    }
}

fn summary(title: &str, failures: &[(String, String)]) {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for (_, why) in failures {
        let why: String = why.split_once(' ').map_or(why.as_str(), |w| w.1).to_owned();
        let mut generic = String::new();
        let mut quoted = false;
        for c in why.chars() {
            if c == '`' {
                quoted = !quoted;
                generic.push(c);
            } else if !quoted {
                generic.push(c);
            }
        }
        *kinds.entry(generic).or_insert(0) += 1;
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|k| std::cmp::Reverse(k.1));
    println!("== {title}");
    for (why, n) in kinds.iter().take(40) {
        println!("{n:5}  {why}");
    }
}

fn accept(root: &Path, verbose: bool, only: &[String]) {
    let (mut total, mut accepted) = (0, 0);
    let mut failures = Vec::new();
    for (path, text) in programs(&root.join("p4_16_samples"), only) {
        if !text.contains("v1model.p4") || !text.contains("V1Switch") {
            continue;
        }
        total += 1;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match compile(&path, &text) {
            Ok(_) => accepted += 1,
            Err(why) => failures.push((name, why)),
        }
    }
    if verbose {
        failures.iter().for_each(|(name, why)| println!("{name}: {why}"));
    }
    summary("v1model programs refused", &failures);
    println!("accepted {accepted} of {total} v1model programs");
}

fn refuse(root: &Path, verbose: bool, only: &[String]) {
    let (mut total, mut refused) = (0, 0);
    let mut failures = Vec::new();
    for (path, text) in programs(&root.join("p4_16_errors"), only) {
        total += 1;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let run = || {
            let sources = p4rack_p4::preprocess::run(&text, &path.to_string_lossy(), &options(&path))?;
            let (tree, diagnostics) = p4rack_p4::parser::parse(&sources);
            let failed =
                |d: &[p4rack_p4::Diagnostic]| d.iter().any(|d| d.severity == p4rack_p4::Severity::Error);
            if failed(&diagnostics) {
                return Ok(true);
            }
            if tree.decls.iter().any(
                |d| matches!(&d.kind, p4rack_p4::ast::DeclKind::Instance { name, .. } if name.name == "main"),
            ) && text.contains("V1Switch")
            {
                return Ok(failed(&p4rack_p4::sema::analyse(&tree, "x").1));
            }
            Ok(failed(&p4rack_p4::sema::check_only(&tree)))
        };
        match catch_unwind(AssertUnwindSafe(run)) {
            Err(_) => failures.push((name, "- PANIC".to_owned())),
            Ok(Err::<bool, p4rack_p4::Diagnostics>(_)) | Ok(Ok(true)) => refused += 1,
            Ok(Ok(false)) => failures.push((name, "- accepted".to_owned())),
        }
    }
    if verbose {
        failures.iter().for_each(|(name, why)| println!("{name}: {why}"));
    }
    summary("error programs not refused", &failures);
    println!("refused {refused} of {total} error programs");
}

fn p4info(root: &Path, verbose: bool, only: &[String]) {
    let (mut total, mut equal) = (0, 0);
    let mut failures = Vec::new();
    for (path, text) in programs(&root.join("p4_16_samples"), only) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let expected = root.join("p4_16_samples_outputs").join(format!("{name}.p4info.txtpb"));
        let Ok(expected) = std::fs::read_to_string(&expected) else { continue };
        if !text.contains("V1Switch") {
            continue;
        }
        let Ok(expected) = p4rack_p4rt::text::parse::<P4Info>(&expected) else {
            println!("{name}: its P4Info does not parse");
            continue;
        };
        total += 1;
        match compile(&path, &text) {
            Err(why) => failures.push((name, format!("- refused: {why}"))),
            Ok(compiled) => match difference(&expected, &compiled.p4info) {
                None => equal += 1,
                Some(why) => failures.push((name, format!("- {why}"))),
            },
        }
    }
    if verbose {
        failures.iter().for_each(|(name, why)| println!("{name}: {why}"));
    }
    summary("P4Info different", &failures);
    println!("equal P4Info: {equal} of {total}");
}

/// The first field that differs, order within a kind of object not counted.
fn difference(expected: &P4Info, found: &P4Info) -> Option<String> {
    let (mut a, mut b) = (expected.clone(), found.clone());
    for info in [&mut a, &mut b] {
        macro_rules! sort {
            ($($field:ident),*) => {$( info.$field.sort_by_key(|o| o.preamble.as_ref().map_or(0, |p| p.id)); )*};
        }
        sort!(tables, actions, action_profiles, counters, direct_counters, meters, direct_meters);
        sort!(controller_packet_metadata, value_sets, registers, digests);
        // An empty message says as little as none.
        info.type_info.take_if(|t| *t == Default::default());
    }
    if a == b {
        return None;
    }
    let (a, b) = (p4rack_p4rt::text::print(&a), p4rack_p4rt::text::print(&b));
    let (mut left, mut right) = (a.lines(), b.lines());
    loop {
        match (left.next(), right.next()) {
            (None, None) => return Some("the same text?".to_owned()),
            (l, r) if l == r => {}
            (l, r) => {
                let trim = |t: Option<&str>| t.unwrap_or("(end)").trim().to_owned();
                return Some(format!("expected: {} found: {}", trim(l), trim(r)));
            }
        }
    }
}
