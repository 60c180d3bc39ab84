//! Sample programs that the switch runs: random entries and packets, through machine code and the interpreter.

use crate::random::Case;
use crate::{Failure, Outcome, Sample, Suite, first_error, guarded};
use p4rack_entities::{Candidate, accepted, refusal, write};
use p4rack_p4::{Accepted, Compiled};
use p4rack_p4rt::p4::v1::{Update, WriteRequest};
use p4rack_stf::Player;
use p4rack_switch::{Config, Pipeline, PortConfig, Switch};
use p4rack_wire::Nanos;

/// Number of ports; 511 is the drop port.
const PORTS: u16 = 511;
/// Packets per program.
const PACKETS: usize = 200;
/// Seed of packets and entries.
const SEED: u64 = 7;
/// Time between two packets.
const GAP: Nanos = Nanos(10_000);

/// Output of a program: for each packet, the ports and frames.
type Sent = Vec<Vec<(Option<u16>, Vec<u8>)>>;

impl Suite {
    /// Runs programs of any architecture: those of `p4_16_samples`, or where that is missing, those of the folder itself
    /// and below that instantiate `main`.
    pub(crate) fn both(&self) -> Result<Outcome, String> {
        let mut outcome = Outcome::new("run");
        for sample in self.any_programs()? {
            let name = sample.path.to_string_lossy();
            let options = self.options(&sample.path);
            let compiled = match guarded(|| p4rack_p4::check(&sample.text, &name, &options)) {
                Ok(Ok(Accepted::Whole(compiled))) => compiled,
                Ok(Ok(Accepted::Types { .. })) => {
                    outcome.count("without a main for this switch");
                    continue;
                }
                Ok(Err(diagnostics)) => {
                    outcome.count("refused by the compiler");
                    outcome.notes.push(Failure { file: sample.name.clone(), why: first_error(&diagnostics) });
                    continue;
                }
                Err(fault) => {
                    outcome.enter(&sample.name, Err(fault));
                    continue;
                }
            };
            match guarded(|| Pipeline::compile(&compiled.program)) {
                Ok(Ok(_)) => {}
                Ok(Err(why)) => {
                    outcome.count("refused by the switch");
                    let why = refusal(&why, &compiled);
                    outcome.notes.push(Failure { file: sample.name.clone(), why });
                    continue;
                }
                Err(fault) => {
                    outcome.enter(&sample.name, Err(fault));
                    continue;
                }
            }
            let result = guarded(|| compare(&sample, &compiled)).and_then(|result| result);
            if let Ok(frames) = result {
                outcome.count(if frames > 0 { "that sent frames" } else { "that sent none" });
            }
            outcome.enter(&sample.name, result.map(|_| ()));
        }
        outcome.required = outcome.tried;
        Ok(outcome)
    }
}

/// Compares the output of machine code and the interpreter. Returns the number of frames.
fn compare(sample: &Sample, compiled: &Compiled) -> Result<usize, String> {
    let case = Case::new(&compiled.program, &compiled.p4info, SEED, PACKETS);
    let interpreted = Pipeline::compile_interpreted(&compiled.program).map_err(|error| error.to_string())?;
    let taken = taken(sample, compiled, &case)?;
    let native = play(sample, compiled, None, &taken, &case)?;
    let other = play(sample, compiled, Some(interpreted), &taken, &case)?;
    match native.iter().zip(&other).position(|(native, other)| native != other) {
        Some(at) => Err(format!(
            "packet {at}: machine code sends {:02x?}, the interpreter {:02x?}",
            native[at], other[at]
        )),
        None => Ok(native.iter().map(Vec::len).sum()),
    }
}

fn switch_for(candidate: &Candidate) -> Switch {
    let loops = candidate.pipeline.loop_ports();
    let ports = (0..PORTS).filter(|port| Some(*port) != Config::default().cpu_port && !loops.contains(port));
    let ports = ports.map(|port| PortConfig::new(port, 0)).collect();
    Switch::new(Config { ports, samples: 0, ..Config::default() })
}

/// The updates of the case that the switch accepts.
fn taken(sample: &Sample, compiled: &Compiled, case: &Case) -> Result<Vec<Update>, String> {
    let candidate = Candidate::new(&sample.text, compiled.clone())?;
    let mut switch = switch_for(&candidate);
    let program = candidate.load(None, &mut switch);
    let mut taken = Vec::new();
    for update in &case.updates {
        let request = WriteRequest { updates: vec![update.clone()], ..WriteRequest::default() };
        if accepted(write(&program, &request, &mut switch, Nanos::ZERO)).is_ok() {
            taken.push(update.clone());
        }
    }
    Ok(taken)
}

fn play(
    sample: &Sample,
    compiled: &Compiled,
    pipeline: Option<Pipeline>,
    updates: &[Update],
    case: &Case,
) -> Result<Sent, String> {
    let candidate = Candidate::new(&sample.text, compiled.clone())?;
    let mut switch = switch_for(&candidate);
    let skipped = candidate.pipeline.prefix_bytes();
    let program = candidate.load(pipeline, &mut switch);
    let request = WriteRequest { updates: updates.to_vec(), ..WriteRequest::default() };
    accepted(write(&program, &request, &mut switch, Nanos::ZERO))?;
    let mut player = Player::new(switch, Nanos::from_millis(1));
    let mut all = Vec::new();
    for packet in &case.packets {
        player.skip(GAP);
        // The first bytes that the parser reads are the device's.
        let frame = packet.frame.get(skipped..).filter(|frame| !frame.is_empty()).unwrap_or(&[0]);
        let fate = player.send(packet.port, frame, player.now()).map_err(|error| error.to_string())?;
        let mut sent: Vec<_> = fate.sent.into_iter().map(|sent| (sent.port, sent.frame)).collect();
        sent.sort();
        all.push(sent);
    }
    Ok(all)
}
