//! The desired state of a switch: a program and contents.

use crate::bmv2::{self, Compiler};
use crate::error::CtrlError;
use p4rack_codegen::rack::Target;
use p4rack_codegen::{Arch, Artefacts, GenerateError, Rack, Scheme, sde};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::p4::config::v1::P4Info;
use p4rack_p4rt::p4::v1::forwarding_pipeline_config::Cookie;
use p4rack_p4rt::p4::v1::{Entity, ForwardingPipelineConfig, Update, WriteRequest, update};
use p4rack_p4rt::schema::{NAMELESS, Schema, program_name};
use p4rack_p4rt::text;
use p4rack_wire::hash::fnv1a;
use prost::Message;
use std::fmt;
use std::path::Path;

/// How a port of Tofino should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DevicePort {
    /// Its number.
    pub number: u32,
    /// The driver's name of its speed.
    pub speed: String,
    /// The driver's name of its forward error correction.
    pub fec: String,
    /// Whether it is enabled.
    pub enabled: bool,
}

impl fmt::Display for DevicePort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.enabled { "enabled" } else { "disabled" };
        write!(f, "port {}: {}, {}, {state}", self.number, self.speed, self.fec)
    }
}

/// A change of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortChange {
    /// It was not added.
    Add(DevicePort),
    /// It has another speed, with which it has to be added again.
    Replace(DevicePort),
    /// It has to be enabled.
    Enable(DevicePort),
}

impl fmt::Display for PortChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortChange::Add(port) => write!(f, "+ {port}"),
            PortChange::Replace(port) | PortChange::Enable(port) => write!(f, "~ {port}"),
        }
    }
}

/// A program as BFRuntime defines it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BfrtProgram {
    /// Name of the program.
    pub name: String,
    /// Its schema, the text of bf-rt.json.
    pub bf_rt: String,
    /// The compiler's description beside the binary, context.json; empty for the embedded switch.
    pub context: Vec<u8>,
    /// Ports that have to be added.
    pub ports: Vec<DevicePort>,
    /// Ports whose rates the chip does not have: they can't be added.
    pub without: Vec<u16>,
}

impl BfrtProgram {
    /// Checks that context.json, if there is one, is for a device of this generation: a driver that can't read it has already
    /// removed the program before. Errors: it is no JSON, or names another chip.
    pub fn check_context(&self, is_second: bool) -> Result<(), CtrlError> {
        if self.context.is_empty() {
            return Ok(());
        }
        let context: serde_json::Value = serde_json::from_slice(&self.context).map_err(|error| {
            CtrlError::Program(format!("context.json: {error}; compile the program again"))
        })?;
        let wanted = if is_second { "tofino2" } else { "tofino" };
        match context["target"].as_str() {
            Some(target) if target != wanted => Err(CtrlError::Program(format!(
                "context.json was made for `{target}`, and the switch's chip is `{wanted}`; compile the program for that"
            ))),
            _ => Ok(()),
        }
    }

    /// With the ports of a rack, all of them enabled.
    pub fn with_ports_of(mut self, rack: &Rack) -> BfrtProgram {
        for host in rack.ports() {
            let Some(speed) = sde::speed(rack.switch.arch, host.port_rate_bps) else {
                self.without.push(host.port);
                continue;
            };
            let number = host.port.into();
            let fec = sde::fec(host.port_rate_bps).to_owned();
            self.ports.push(DevicePort { number, speed: speed.to_owned(), fec, enabled: true });
        }
        self
    }
}

/// Output of p4c's backend for Tofino with its assembler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledProgram {
    /// The schema, the text of bf-rt.json.
    pub bf_rt: String,
    /// The driver's description of tables and their places, context.json.
    pub context: Vec<u8>,
    /// The chip's binary.
    pub binary: Vec<u8>,
}

impl CompiledProgram {
    /// Reads an output folder.
    pub fn read(folder: &Path, arch: Arch) -> Result<CompiledProgram, CtrlError> {
        let text = String::from_utf8(read(&folder.join("bf-rt.json"))?);
        let binary = if arch == Arch::T2na { "pipe/tofino2.bin" } else { "pipe/tofino.bin" };
        Ok(CompiledProgram {
            bf_rt: text.map_err(|error| CtrlError::Program(format!("bf-rt.json: {error}")))?,
            context: read(&folder.join("pipe/context.json"))?,
            binary: read(&folder.join(binary))?,
        })
    }
}

/// The program and contents that a switch should have.
#[derive(Clone, Debug)]
pub struct Desired {
    /// The program. Its cookie identifies it.
    pub config: ForwardingPipelineConfig,
    /// The program as BFRuntime defines it, if it is for Tofino.
    pub bfrt: Option<BfrtProgram>,
    /// Names of the program.
    pub schema: Schema,
    /// Everything that the switch should hold.
    pub entities: Vec<Entity>,
    /// Whether changes are written in one transaction. It keeps a switch from its packets for longer than batches do.
    pub is_whole: bool,
}

impl Desired {
    /// What the switch of a rack should hold. `target` says what kind of switch it is; `compiled` is a compiler's output for
    /// the program, for switches that do not take P4 text. Without it, `compiler` makes it.
    pub fn of_rack(
        rack: &Rack,
        scheme: Scheme,
        target: Target,
        compiled: Option<&Path>,
        compiler: Compiler,
    ) -> Result<Desired, CtrlError> {
        check(target, &rack.under(scheme).map_err(GenerateError::from)?)?;
        let artefacts = p4rack_codegen::generate(rack, scheme, rack.switch.arch)?;
        let device_config = device_config(target, &artefacts, compiled, compiler)?;
        Desired::of_artefacts(&artefacts, device_config)
    }

    /// The same for Tofino, or the embedded switch with a program for it; `compiled` is the output folder of p4c's
    /// backend, which a driver needs.
    pub fn for_tofino(rack: &Rack, scheme: Scheme, compiled: Option<&Path>) -> Result<Desired, CtrlError> {
        check(Target::Embedded, &rack.under(scheme).map_err(GenerateError::from)?)?;
        let arch = if rack.switch.arch.is_tofino() { rack.switch.arch } else { Arch::Tna };
        let artefacts = p4rack_codegen::generate(rack, scheme, arch)?;
        let mut desired = match compiled {
            None => Desired::of_artefacts(&artefacts, artefacts.p4.clone().into_bytes())?,
            Some(folder) => {
                let compiled = CompiledProgram::read(folder, arch)?;
                let mut desired = Desired::of_artefacts(&artefacts, compiled.binary)?;
                if let Some(program) = &mut desired.bfrt {
                    program.bf_rt = compiled.bf_rt;
                    program.context = compiled.context;
                }
                desired
            }
        };
        desired.bfrt = desired.bfrt.map(|program| program.with_ports_of(&rack.on(arch)));
        Ok(desired)
    }

    /// The desired state for generated artefacts.
    pub fn of_artefacts(artefacts: &Artefacts, device_config: Vec<u8>) -> Result<Desired, CtrlError> {
        let fault = |what: &str, error: String| CtrlError::Program(format!("generated {what}:\n{error}"));
        let info: P4Info =
            text::parse(&artefacts.p4info).map_err(|error| fault("P4Info", error.to_string()))?;
        let entries: WriteRequest =
            text::parse(&artefacts.entries).map_err(|error| fault("entries", error.to_string()))?;
        let entities = entries.updates.into_iter().filter_map(|update| update.entity).collect();
        let bf_rt = artefacts.bf_rt.as_ref().map(|schema| schema.to_string());
        let name = program_name(&info).unwrap_or_else(|| NAMELESS.to_owned());
        let bfrt = bf_rt.map(|bf_rt| BfrtProgram { name, bf_rt, ..Default::default() });
        Ok(Desired { bfrt, ..Desired::new(info, device_config, entities)? })
    }

    /// The desired state from its parts.
    pub fn new(info: P4Info, device_config: Vec<u8>, entities: Vec<Entity>) -> Result<Desired, CtrlError> {
        let schema = Schema::new(info.clone()).map_err(|error| CtrlError::Program(error.to_string()))?;
        let cookie = Some(Cookie { cookie: fingerprint(&[&info.encode_to_vec(), &device_config]) });
        let config = ForwardingPipelineConfig { p4info: Some(info), p4_device_config: device_config, cookie };
        Ok(Desired { config, bfrt: None, schema, entities, is_whole: false })
    }

    /// Updates that set cells of counters and registers. They only make sense on a new program.
    pub(crate) fn initial_cells(&self) -> Vec<Update> {
        let lives = |entity: &&Entity| {
            matches!(
                &entity.entity,
                Some(
                    EntityKind::CounterEntry(_)
                        | EntityKind::RegisterEntry(_)
                        | EntityKind::DirectCounterEntry(_)
                )
            )
        };
        let modify =
            |entity: &Entity| Update { r#type: update::Type::Modify as i32, entity: Some(entity.clone()) };
        self.entities.iter().filter(lives).map(modify).collect()
    }
}

/// Rejects a rack that a switch of this kind cannot implement.
fn check(target: Target, rack: &Rack) -> Result<(), CtrlError> {
    match target {
        Target::Embedded if rack.exchanges_times() && rack.switch.time_unit_ns != 1 => {
            Err(CtrlError::Program(format!(
                "rack {}: the embedded switch counts nanoseconds, the description's unit is {} ns: write \
                 target = \"embedded\" and no time_unit_ns under [switch]",
                rack.name, rack.switch.time_unit_ns
            )))
        }
        Target::Embedded => Ok(()),
        Target::Bmv2 => bmv2::check(rack),
    }
}

/// The `p4_device_config` for a switch of this kind.
fn device_config(
    target: Target,
    artefacts: &Artefacts,
    compiled: Option<&Path>,
    compiler: Compiler,
) -> Result<Vec<u8>, CtrlError> {
    match (target, compiled) {
        (_, Some(path)) => read(path),
        (Target::Embedded, None) => Ok(artefacts.p4.clone().into_bytes()),
        (Target::Bmv2, None) => bmv2::compile(artefacts, compiler),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, CtrlError> {
    std::fs::read(path).map_err(|error| {
        CtrlError::Program(format!(
            "reading {}: {error}; --device-config takes a compiler's output: a file, or the folder that p4c's Tofino \
             backend writes",
            path.display()
        ))
    })
}

/// A hash that identifies a program. Never 0, which means no cookie.
fn fingerprint(parts: &[&[u8]]) -> u64 {
    fnv1a(parts.iter().copied().flatten().copied()).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_for_another_chip_is_refused() {
        let checked = |context: &str, is_second| {
            let program = BfrtProgram { context: context.into(), ..Default::default() };
            program.check_context(is_second).map_err(|error| error.to_string())
        };
        for context in ["", "{}", r#"{"target": "tofino"}"#] {
            assert_eq!(checked(context, false), Ok(()), "{context}");
        }
        assert_eq!(checked(r#"{"target": "tofino2"}"#, true), Ok(()));
        let other = checked(r#"{"target": "tofino"}"#, true);
        assert!(other.as_ref().is_err_and(|error| error.contains("made for `tofino`")), "{other:?}");
        assert!(checked("no JSON", false).is_err_and(|error| error.starts_with("context.json: ")));
    }
}
