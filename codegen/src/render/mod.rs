//! The artefacts of one rack under one scheme.

mod columns;
mod constants;
mod entries;
mod layers;
mod layout;
mod program;
mod registers;
pub mod sde;
mod slots;
mod supply;

pub use program::render_p4;

use crate::arch::Arch;
use crate::rack::{Rack, crossings, loops};
use crate::scheme::{Scheme, SchemeError};
use p4rack_p4::{Compiled, fit};
use p4rack_p4rt::p4::v1::Update;
use p4rack_p4rt::schema::Schema;
use p4rack_p4rt::text;

/// Group of all host ports, for broadcast and multicast.
pub const MULTICAST_GROUP: u16 = 1;
/// Queue of frames without a reservation.
pub const PRIORITY_BEST_EFFORT: u8 = 1;

/// The generated artefacts.
#[derive(Clone, Debug)]
pub struct Artefacts {
    /// Name of the files: the rack's name.
    pub name: String,
    /// The P4_16 program.
    pub p4: String,
    /// Table entries, meters and the multicast group: a text-format `p4.v1.WriteRequest`.
    pub entries: String,
    /// The program's P4Info, text format.
    pub p4info: String,
    /// The constants that programs and people need to talk to it.
    pub constants: serde_json::Value,
    /// The program's BFRuntime schema; only for Tofino.
    pub bf_rt: Option<serde_json::Value>,
    /// Scapy layers of the headers that Scapy lacks, a Python module; none under plain switching.
    pub layers: Option<String>,
    /// Wireshark's dissectors of the protocols' frames, a Lua script; none under plain switching.
    pub dissectors: Option<String>,
    /// Further files for Tofino's software, by the ending of the file's name; only for Tofino.
    pub sde: Vec<(&'static str, String)>,
}

/// Why nothing was generated.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// The rack can't run the scheme, or the scheme's templates don't serve the architecture.
    #[error(transparent)]
    Scheme(#[from] SchemeError),
    /// A template could not be rendered: a bug in p4rack.
    #[error("template: {0}")]
    Template(#[from] Box<handlebars::RenderError>),
    /// The front end refused the generated program: a bug in p4rack.
    #[error("generated program refused:\n{0}")]
    Program(String),
    /// An entry does not fit the generated program: a bug in p4rack.
    #[error("generated entry refused: {0}")]
    Entry(String),
}

/// A rack's program and entries, in the form in which this process runs them.
#[derive(Clone, Debug)]
pub struct Program {
    /// The P4_16 text.
    pub p4: String,
    /// The same, compiled.
    pub compiled: Compiled,
    /// Table entries, meters and the multicast group, each with its purpose.
    pub entries: Vec<(String, Update)>,
}

/// Generates the program of `rack` for a switch that runs `scheme`, and compiles it.
pub fn program(rack: &Rack, scheme: Scheme, arch: Arch) -> Result<Program, GenerateError> {
    program_of(&rack.on(arch).under(scheme)?)
}

/// The program of a rack where all of its protocols run.
fn program_of(rack: &Rack) -> Result<Program, GenerateError> {
    let arch = rack.switch.arch;
    let of_protocol = || rack.protocols.iter().find_map(|protocol| protocol.refuses_arch(rack));
    let of_passes = || {
        let (left, most) = (loops::left_bits(rack), arch.pass_bits());
        (arch.is_tofino() && left > most).then(|| {
            format!("leaves {left} bits for a frame's next pass, of {most} there: use fewer protocols")
        })
    };
    let refused = of_protocol()
        .or_else(|| crossings::refuses(rack))
        .or_else(|| loops::loop_port(rack).err())
        .or_else(of_passes);
    if let Some(problem) = refused {
        let problem = format!("is not generated for {arch}: it {problem}");
        return Err(SchemeError { rack: rack.name.clone(), scheme: rack.scheme(), problem }.into());
    }
    let p4 = program::render_rack(rack)?;
    let compiled = p4rack_p4::compile(&p4, &format!("{}.p4", rack.name), &p4rack_p4::Options::default())
        .map_err(|diagnostics| GenerateError::Program(diagnostics.render(false)))?;
    let schema =
        Schema::new(compiled.p4info.clone()).map_err(|error| GenerateError::Program(error.to_string()))?;
    let port_field = program::term(arch, "port_key")?;
    let entries = entries::updates(rack, &port_field, &schema)
        .map_err(|error| GenerateError::Entry(error.to_string()))?;
    if let Some(problem) = beyond_chip(rack, &compiled) {
        return Err(SchemeError { rack: rack.name.clone(), scheme: rack.scheme(), problem }.into());
    }
    Ok(Program { p4, compiled, entries })
}

/// Why protocols that fit into a chip alone do not fit together; continues a sentence that starts with the scheme's name.
fn beyond_chip(rack: &Rack, compiled: &Compiled) -> Option<String> {
    if rack.protocols.len() < 2 {
        return None;
    }
    let report = fit::check(compiled, fit::chip_of(&compiled.program)?);
    let (arch, taken, stages) = (rack.switch.arch, report.stages(), report.chip.stages);
    let why = if taken > stages {
        format!("it takes about {taken} stages, of {stages}")
    } else {
        report.refusals.first()?.diagnostic.message.clone()
    };
    (!report.fits()).then(|| {
        format!("is not generated for {arch}: {why}: use one of its protocols alone, or other modes")
    })
}

/// Generates all artefacts of `rack` for a switch that runs `scheme`.
pub fn generate(rack: &Rack, scheme: Scheme, arch: Arch) -> Result<Artefacts, GenerateError> {
    let rack = &rack.on(arch).under(scheme)?;
    let Program { p4, compiled, entries } = program_of(rack)?;
    let about = |what| {
        let version = env!("CARGO_PKG_VERSION");
        format!("# {what} of rack \"{}\" under {scheme}, generated by p4rack {version}.\n", rack.name)
    };
    Ok(Artefacts {
        name: rack.name.clone(),
        p4,
        entries: about("Entries") + &entries::text(rack, entries),
        p4info: about("P4Info") + &text::print(&compiled.p4info),
        constants: constants::constants(rack),
        bf_rt: compiled.bf_rt(),
        layers: layers::layers(rack),
        dissectors: dissectors(rack),
        sde: sde::files(rack),
    })
}

fn dissectors(rack: &Rack) -> Option<String> {
    let found: Vec<_> = rack.protocols.iter().filter_map(|protocol| protocol.dissector()).collect();
    let about = format!(
        "Wireshark dissectors of rack \"{}\" under {}, generated by p4rack {}",
        rack.name,
        rack.scheme(),
        env!("CARGO_PKG_VERSION")
    );
    (!found.is_empty()).then(|| p4rack_wire::dissector::script(&about, &found))
}

impl Artefacts {
    /// Names and contents of the files.
    pub fn files(&self) -> Vec<(String, String)> {
        let name = &self.name;
        let layers = self.layers.clone().map(|layers| (layers::file_name(name), layers));
        let bf_rt = self.bf_rt.as_ref().map(|schema| (format!("{name}.bf-rt.json"), format!("{schema:#}\n")));
        let texts = [
            (format!("{name}.p4"), self.p4.clone()),
            (format!("{name}.entries.txtpb"), self.entries.clone()),
            (format!("{name}.p4info.txtpb"), self.p4info.clone()),
            (format!("{name}.json"), format!("{:#}\n", self.constants)),
        ];
        let dissectors = self.dissectors.clone().map(|script| (format!("{name}.lua"), script));
        let sde = self.sde.iter().map(|(ending, contents)| (format!("{name}.{ending}"), contents.clone()));
        texts.into_iter().chain(bf_rt).chain(layers).chain(dissectors).chain(sde).collect()
    }
}
