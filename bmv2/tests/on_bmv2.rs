//! The cases of `tests/stf`, written as JSON, on BMv2, where it is installed: it does what they expect, but for known differences.

#![expect(clippy::disallowed_methods, reason = "BMv2 says nowhere when it is ready")]

use p4rack_stf::{Command as Statement, Output, differences, parse};
use p4rack_wire::Nanos;
use p4rack_wire::pcap::{Reader, Writer};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The switch reads its captures so long after its start; entries are made before.
const START_SECS: u64 = 3;
/// How much longer its start and the frames may take.
const MARGIN_SECS: u64 = 2;
/// How often differences are checked again, a second apart: a busy machine is late.
const PATIENCE: usize = 8;
/// Link type of a capture.
const ETHERNET: u32 = 1;
/// Cases that run in parallel: they mostly wait.
const AT_ONCE: usize = 8;
/// Ports of the first of them; the next have the next.
const THRIFT_PORT: usize = 19_090;
const GRPC_PORT: usize = 19_559;

/// BMv2's switch.
const SWITCH: &str = "simple_switch_grpc";
/// Its command line, which cases with entries need.
const COMMAND_LINE: &str = "simple_switch_CLI";

/// Cases in which it differs, and how; `docs/bmv2.md` says so too.
const KNOWN: [(&str, &str); 1] =
    [("varbit_long", "it ends: a packet has room for 512 bytes of headers beyond those that came")];

fn installed(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}

/// Whether the switch was built with the feature of this argument.
fn understands(argument: &str) -> bool {
    let help = Command::new(SWITCH).arg("--help").output();
    help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains(argument))
}

/// Ends with its owner.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Commands of BMv2's command line for the statements before the first packet; `None` if the case needs others, or
/// changes something later.
fn commands(text: &str) -> Option<Vec<String>> {
    let mut commands = Vec::new();
    let mut packets = false;
    for line in text.lines().map(|line| line.split('#').next().unwrap_or("").trim()) {
        let word = line.split_whitespace().next().unwrap_or("");
        match word {
            "" | "expect" | "no_packet" => {}
            "packet" => packets = true,
            _ if packets => return None,
            "mirroring_add" | "mirroring_add_mc" | "mc_mgrp_create" | "mc_node_create"
            | "mc_node_associate" => {
                commands.push(line.to_string());
            }
            _ => return None,
        }
    }
    Some(commands)
}

fn case(folder: &Path, program: &Path, text: &str, place: usize) -> Result<Vec<String>, String> {
    let failed = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
    let json = folder.join("program.json");
    let source = std::fs::read_to_string(program).map_err(|error| failed("program", &error))?;
    let compiled = p4rack_p4::compile(&source, &program.to_string_lossy(), &p4rack_p4::Options::default());
    let written = p4rack_bmv2::write(&compiled.map_err(|error| error.to_string())?);
    let written = written.map_err(|error| error.to_string())?;
    std::fs::write(&json, written.to_string()).map_err(|error| failed("program.json", &error))?;
    let statements = parse(text).map_err(|error| error.to_string())?;
    let mut inputs: BTreeMap<u16, Writer> = BTreeMap::new();
    let mut ports = BTreeSet::new();
    for statement in &statements {
        match &statement.command {
            Statement::Packet { port, bytes } => {
                ports.insert(*port);
                inputs.entry(*port).or_default().add(Nanos(u64::from(statement.line) * 1_000_000), bytes);
            }
            Statement::Expect { port, .. } => drop(ports.insert(*port)),
            _ => {}
        }
    }
    let (thrift, grpc) = ((THRIFT_PORT + place).to_string(), format!("127.0.0.1:{}", GRPC_PORT + place));
    let mut switch = Command::new(SWITCH);
    switch.args(["--use-files", &START_SECS.to_string()]);
    if understands("--thrift-port") {
        switch.args(["--thrift-port", &thrift]);
    }
    if understands("--notifications-addr") {
        switch.args(["--notifications-addr", &format!("ipc://{}", folder.join("news.ipc").display())]);
    }
    for port in &ports {
        let input = inputs.remove(port).unwrap_or_default();
        std::fs::write(folder.join(format!("pcap{port}_in.pcap")), input.bytes())
            .map_err(|error| failed("capture", &error))?;
        switch.arg("-i").arg(format!("{port}@pcap{port}"));
    }
    switch.arg(&json).args(["--", "--grpc-server-addr", &grpc]).current_dir(folder);
    let switch = switch.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let _switch = Running(switch.map_err(|error| failed(SWITCH, &error))?);
    std::thread::sleep(Duration::from_secs(1));
    let entries = commands(text).unwrap_or_default();
    if !entries.is_empty() {
        let mut line = Command::new(COMMAND_LINE);
        line.args(["--thrift-port", &thrift]).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut line = Running(line.spawn().map_err(|error| failed(COMMAND_LINE, &error))?);
        if let Some(mut input) = line.0.stdin.take() {
            input
                .write_all((entries.join("\n") + "\n").as_bytes())
                .map_err(|error| failed(COMMAND_LINE, &error))?;
        }
        let _ = line.0.wait();
    }
    std::thread::sleep(Duration::from_secs(START_SECS + MARGIN_SECS));
    let mut found = differences(&statements, &captured(folder, &ports)?);
    for _ in 0..PATIENCE {
        if found.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_secs(1));
        found = differences(&statements, &captured(folder, &ports)?);
    }
    Ok(found.iter().map(|failure| format!("line {}: {}", failure.line, failure.what)).collect())
}

/// Frames that each port has sent so far.
fn captured(folder: &Path, ports: &BTreeSet<u16>) -> Result<BTreeMap<u16, Vec<Output>>, String> {
    let mut sent = BTreeMap::new();
    for &port in ports {
        let capture = format!("pcap{port}_out.pcap");
        let mut bytes =
            std::fs::read(folder.join(&capture)).map_err(|error| format!("{capture}: {error}"))?;
        // It names no link type. A capture without frames has not even a header.
        if let Some(link_type) = bytes.get_mut(20..24) {
            link_type.copy_from_slice(&ETHERNET.to_le_bytes());
        }
        let mut frames = Vec::new();
        if !bytes.is_empty() {
            for record in Reader::new(&bytes).map_err(|error| format!("{capture}: {error}"))? {
                let record = record.map_err(|error| format!("{capture}: {error}"))?;
                frames.push(Output { frame: record.frame.to_vec(), line: 0 });
            }
        }
        sent.insert(port, frames);
    }
    Ok(sent)
}

/// Findings of a case, compared with its known differences; `None` where that is the same.
fn surprise(name: &str, found: &[String]) -> Option<String> {
    match KNOWN.iter().find(|(case, _)| *case == name) {
        Some((_, how)) if found.is_empty() => Some(format!("{name} agrees, and is known to differ: {how}")),
        None if !found.is_empty() => Some(format!("{name} differs: {}", found.join("\n"))),
        _ => None,
    }
}

#[test]
fn cases_on_bmv2() {
    let mut out = std::io::stdout();
    if !installed(SWITCH) {
        let _ = writeln!(
            out,
            "skipped: needs {SWITCH}, get it by building https://github.com/p4lang/behavioral-model with its target simple_switch_grpc"
        );
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/stf");
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut programs: Vec<PathBuf> = files.filter_map(|file| Some(file.ok()?.path())).collect();
    programs.retain(|path| path.extension().is_some_and(|ending| ending == "p4"));
    programs.sort();
    let has_command_line = installed(COMMAND_LINE) && understands("--thrift-port");
    let text = |program: &PathBuf| std::fs::read_to_string(program.with_extension("stf")).unwrap_or_default();
    let all = programs.len();
    programs.retain(|program| {
        commands(&text(program)).is_some_and(|commands| has_command_line || commands.is_empty())
    });
    let (ran, left_out) = (programs.len(), all - programs.len());
    let name = |program: &Path| program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    for (known, _) in KNOWN {
        assert!(programs.iter().any(|program| name(program) == known), "{known} is no case that runs");
    }
    let mut surprises = Vec::new();
    for some in programs.chunks(AT_ONCE) {
        std::thread::scope(|scope| {
            let run = |(place, program): (usize, &PathBuf)| {
                let scratch = tempfile::tempdir().expect("a scratch folder");
                case(scratch.path(), program, &text(program), place).unwrap_or_else(|error| vec![error])
            };
            let started: Vec<_> = some
                .iter()
                .enumerate()
                .map(|numbered| (numbered.1, scope.spawn(move || run(numbered))))
                .collect();
            for (program, thread) in started {
                let found = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                surprises.extend(surprise(&name(program), &found));
            }
        });
    }
    let _ = writeln!(
        out,
        "bmv2: {ran} cases ran, {left_out} were left out: they need more than its command line"
    );
    assert!(surprises.is_empty(), "{}", surprises.join("\n"));
}
