//! `p4rack p4 run`: runs a program on captures, in simulated time, optionally with a trace.

use super::source::{Source, USAGE};
use crate::output::{self, OutputFile};
use p4rack_codegen::text;
use p4rack_entities::{self as entities, Candidate};
use p4rack_p4rt::p4::v1::WriteRequest;
use p4rack_stf::{Fate, Player};
use p4rack_switch::{Config, Pipeline, PortConfig, Switch, TraceEvent, TracedKey, TracedValue};
use p4rack_wire::Nanos;
use p4rack_wire::pcap::{Reader, Writer};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Number of ports; 511 is the drop port.
const PORTS: u16 = 511;
/// Maximum size of a capture.
const MAX_CAPTURE: u64 = 1 << 30;
/// Time for busy ports to drain after the last packet.
const DRAIN: Nanos = Nanos::from_secs(1);

/// Inputs and outputs of the run.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Capture of arriving packets, at port 0 by default; may be repeated
    #[arg(long = "in", value_name = "[PORT=]PCAP", required = true)]
    inputs: Vec<String>,
    /// Folder for port_N.pcap of each port that sends, and controller.pcap
    #[arg(long, value_name = "DIR")]
    out_dir: PathBuf,
    /// Entries, groups and sessions: a text-format WriteRequest, the only one of the three formats of `p4 install` that fits here
    #[arg(long, value_name = "TXTPB")]
    entries: Option<PathBuf>,
    /// Print the program's events for each packet
    #[arg(long, value_enum, value_name = "FORM", num_args = 0..=1, default_missing_value = "text", require_equals = true)]
    trace: Option<Form>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Human-readable
    Text,
    /// One JSON object per packet, on one line
    Json,
}

/// An arriving packet.
struct Input {
    time: Nanos,
    port: u16,
    frame: Vec<u8>,
}

/// Runs it: 0 success, 1 the program was rejected, 2 an unreadable file.
pub fn run(source: &Source, options: &Options) -> ExitCode {
    if let Err(error) = output::folder("--out-dir", &options.out_dir) {
        eprintln!("error: {error}");
        return ExitCode::from(USAGE);
    }
    source.compiled(|text, name, compiled| {
        let traced = options.trace.map(|_| Pipeline::compile_traced(&compiled.program)).transpose();
        let loaded = traced
            .map_err(|error| entities::refusal(&error, &compiled))
            .and_then(|traced| Ok((traced, Candidate::new(text, compiled)?)));
        let (traced, candidate) = match loaded {
            Ok(loaded) => loaded,
            Err(error) => {
                eprintln!("error: {name}: {error}");
                return ExitCode::FAILURE;
            }
        };
        match play(candidate, traced, options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::from(USAGE)
            }
        }
    })
}

fn play(candidate: Candidate, traced: Option<Pipeline>, options: &Options) -> Result<(), String> {
    let inputs = inputs(&options.inputs)?;
    let start = inputs.first().map_or(Nanos::ZERO, |input| input.time);
    let loops = candidate.pipeline.loop_ports();
    let ports = (0..PORTS).filter(|port| Some(*port) != Config::default().cpu_port && !loops.contains(port));
    let ports = ports.map(|port| PortConfig::new(port, 0)).collect();
    let mut switch = Switch::new(Config { ports, samples: 0, log_messages: 1000, ..Config::default() });
    let program = candidate.load(traced, &mut switch);
    if let Some(path) = &options.entries {
        let wanted = "a P4Runtime WriteRequest in protobuf's text format";
        let text = text::read(path)
            .map_err(|error| format!("{}: {}", path.display(), text::fault(&error, wanted)))?;
        let request: WriteRequest =
            p4rack_p4rt::text::parse(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        entities::accepted(entities::write(&program, &request, &mut switch, Nanos::ZERO))
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let mut player = Player::new(switch, Nanos::ZERO);
    let mut outputs = BTreeMap::new();
    for (number, input) in inputs.iter().enumerate() {
        // The switch counts time from its start.
        let at = input.time.saturating_sub(start);
        let waited = player.until(at).map_err(|error| error.to_string())?;
        let mut fate = player.send(input.port, &input.frame, at).map_err(|error| error.to_string())?;
        fate.sent.splice(0..0, waited.sent);
        if number + 1 == inputs.len() {
            let rest = player.until(at.saturating_add(DRAIN)).map_err(|error| error.to_string())?;
            fate.sent.extend(rest.sent);
            fate.trace.extend(rest.trace);
        }
        for sent in &fate.sent {
            let writer: &mut Writer = outputs.entry(sent.port).or_default();
            writer.add(start.saturating_add(sent.time), &sent.frame);
        }
        match options.trace {
            Some(Form::Text) => print!("{}", in_text(number + 1, input, &fate)),
            Some(Form::Json) => println!("{}", in_json(number + 1, input, &fate)),
            None => {}
        }
    }
    write(&options.out_dir, &outputs)?;
    if options.trace.is_none() {
        summary(&player, inputs.len());
    }
    Ok(())
}

/// All packets of all captures, by time.
fn inputs(captures: &[String]) -> Result<Vec<Input>, String> {
    let mut all = Vec::new();
    for capture in captures {
        let (port, path) = match capture.split_once('=') {
            Some((port, path)) if port.bytes().all(|digit| digit.is_ascii_digit()) => (port, path),
            _ => ("0", capture.as_str()),
        };
        let port = port.parse().ok().filter(|port| *port < PORTS);
        let port =
            port.ok_or_else(|| format!("--in {capture}: the port is not within 0 to {}", PORTS - 1))?;
        let bytes = text::read_bytes(Path::new(path), MAX_CAPTURE).map_err(|error| match error.kind() {
            ErrorKind::FileTooLarge => {
                format!(
                    "{path}: has more than {MAX_CAPTURE} bytes, which are the most that are read: split it"
                )
            }
            _ => format!("{path}: {error}"),
        })?;
        let reader = Reader::new(&bytes).map_err(|error| format!("{path} {error}"))?;
        for record in reader {
            let record = record.map_err(|error| format!("{path}: {error}"))?;
            all.push(Input { time: record.time, port, frame: record.frame.to_vec() });
        }
    }
    all.sort_by_key(|input| input.time);
    Ok(all)
}

fn write(folder: &Path, outputs: &BTreeMap<Option<u16>, Writer>) -> Result<(), String> {
    for (port, writer) in outputs {
        let name = port.map_or("controller.pcap".into(), |port| format!("port_{port}.pcap"));
        OutputFile::open("--out-dir", &folder.join(name))?.write(writer.bytes())?;
    }
    Ok(())
}

fn summary(player: &Player, packets: usize) {
    let stats = player.switch.stats(player.now());
    println!("{packets} packets in");
    for port in stats.ports.iter().filter(|port| port.tx_frames > 0) {
        println!("port {}: {} frames out, {} bytes", port.port, port.tx_frames, port.tx_bytes);
    }
    for (reason, count) in &stats.drops {
        println!("dropped: {} {count}", reason.name());
    }
}

fn in_text(number: usize, input: &Input, fate: &Fate) -> String {
    format!("packet {number}: port {}, {} bytes\n{}", input.port, input.frame.len(), in_lines(fate))
}

/// What became of a packet, event by event.
pub(super) fn in_lines(fate: &Fate) -> String {
    let mut text = String::new();
    for event in &fate.trace {
        text.push_str(&format!("  {event}\n"));
    }
    for message in &fate.log {
        text.push_str(&format!("  log       {message}\n"));
    }
    for sent in &fate.sent {
        let port = sent.port.map_or("the controller".into(), |port| format!("port {port}"));
        text.push_str(&format!("  sent      {port}, {} bytes\n", sent.frame.len()));
    }
    text
}

fn in_json(number: usize, input: &Input, fate: &Fate) -> serde_json::Value {
    let values = |values: &[TracedValue]| -> Vec<serde_json::Value> {
        let value = |value: &TracedValue| serde_json::json!({ "name": value.name, "value": value.shown() });
        values.iter().map(value).collect()
    };
    let key = |key: &TracedKey| serde_json::json!({ "name": key.name, "value": key.shown() });
    let event = |event: &TraceEvent| match event {
        TraceEvent::Ingress { port, origin, bytes, clone } => serde_json::json!({
            "event": "ingress", "port": port, "instance_type": origin.number, "bytes": bytes, "parse_only": clone,
        }),
        TraceEvent::State { name } => serde_json::json!({ "event": "state", "name": name }),
        TraceEvent::Parsed { error, payload_at } => {
            serde_json::json!({ "event": "parsed", "error": error, "payload_at": payload_at })
        }
        TraceEvent::Table { table, keys, hit, action, args } => serde_json::json!({
            "event": "table", "table": table, "keys": keys.iter().map(key).collect::<Vec<_>>(), "hit": hit, "action": action, "args": values(args),
        }),
        TraceEvent::Extern { name } => serde_json::json!({ "event": "extern", "name": name }),
        TraceEvent::Egress { port, origin, rid } => {
            serde_json::json!({ "event": "egress", "port": port, "instance_type": origin.number, "rid": rid })
        }
        TraceEvent::Dropped { reason, port } => {
            serde_json::json!({ "event": "dropped", "reason": reason.name(), "port": port })
        }
        TraceEvent::Register { register, index, value, write } => serde_json::json!({
            "event": "register", "register": register, "index": index, "value": value.to_string(), "write": write,
        }),
        TraceEvent::Meter { meter, index, color } => {
            serde_json::json!({ "event": "meter", "meter": meter, "index": index, "color": color })
        }
        TraceEvent::Counter { counter, index } => {
            serde_json::json!({ "event": "counter", "counter": counter, "index": index })
        }
        TraceEvent::Number { what, value } => {
            serde_json::json!({ "event": "number", "what": what, "value": value.to_string() })
        }
        TraceEvent::Fields { changes } => serde_json::json!({
            "event": "fields",
            "changes": changes.iter().map(|change| {
                let (was, is) = change.shown();
                serde_json::json!({ "name": change.name, "was": was, "is": is })
            }).collect::<Vec<_>>(),
        }),
        TraceEvent::Headers { headers } => {
            let named = |(name, fields): &(String, Vec<TracedValue>)| serde_json::json!({ "header": name, "fields": values(fields) });
            serde_json::json!({ "event": "headers", "headers": headers.iter().map(named).collect::<Vec<_>>() })
        }
        TraceEvent::Sent { port, bytes } => {
            serde_json::json!({ "event": "sent", "port": port, "bytes": bytes })
        }
        TraceEvent::Lost { events } => serde_json::json!({ "event": "lost", "events": events }),
        TraceEvent::Skipped { frames } => serde_json::json!({ "event": "skipped", "frames": frames }),
    };
    let sent = |sent: &p4rack_stf::Sent| {
        let frame: String = sent.frame.iter().map(|byte| format!("{byte:02x}")).collect();
        serde_json::json!({ "port": sent.port, "time_ns": sent.time.0, "frame": frame })
    };
    serde_json::json!({
        "packet": number,
        "port": input.port,
        "bytes": input.frame.len(),
        "events": fate.trace.iter().map(event).collect::<Vec<_>>(),
        "log": fate.log,
        "sent": fate.sent.iter().map(sent).collect::<Vec<_>>(),
    })
}
