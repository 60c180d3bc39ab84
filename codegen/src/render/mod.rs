//! The artefacts of one rack under one scheme.

#[allow(dead_code)]
mod constants;
#[allow(dead_code)]
mod entries;
mod program;

pub use program::render_p4;

use crate::rack::{Rack, Scheme};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Group of all host ports, for broadcast and multicast.
pub const MULTICAST_GROUP: u16 = 1;
/// Queue of frames that no reservation covers.
pub const PRIORITY_BEST_EFFORT: u8 = 1;
/// Queue of PL2's own frames.
const PRIORITY_CONTROL: u8 = p4rack_wire::pl2::PCP_CONTROL;
/// Queue of data that belongs to a reservation.
const PRIORITY_SCHEDULED: u8 = p4rack_wire::pl2::PCP_SCHEDULED;

/// P4 architectures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arch {
    /// The embedded switch's and BMv2's.
    V1model,
}

impl FromStr for Arch {
    type Err = String;
    fn from_str(s: &str) -> Result<Arch, String> {
        match s {
            "v1model" => Ok(Arch::V1model),
            _ => Err(format!("`{s}` is no architecture that programs are generated for; there is v1model")),
        }
    }
}

/// What is generated.
#[derive(Clone, Debug)]
pub struct Artefacts {
    /// Name of the files, the rack's.
    pub name: String,
    /// The P4_16 program.
    pub p4: String,
    /// Table entries, meters and the multicast group: a text-format `p4.v1.WriteRequest`.
    pub entries: String,
    /// The program's P4Info, text format.
    pub p4info: String,
    /// The constants that programs and people need to talk to it.
    pub constants: serde_json::Value,
}

/// Why nothing was generated.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// The scheme needs what the description doesn't have.
    #[error("rack {rack}: {scheme} {problem}")]
    Scheme {
        /// The rack.
        rack: String,
        /// The scheme.
        scheme: Scheme,
        /// What is missing, and what to do.
        problem: &'static str,
    },
    /// A template could not be rendered: a fault of p4rack's.
    #[error("template: {0}")]
    Template(#[from] Box<handlebars::RenderError>),
    /// The front end refused the generated program: a fault of p4rack's.
    #[error("generated program refused:\n{0}")]
    Program(String),
    /// An entry does not fit the generated program: a fault of p4rack's.
    #[error("generated entry refused: {0}")]
    Entry(String),
    /// A file could not be written.
    #[error("{path}: {error}; check that the folder exists and can be written to")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}

impl Artefacts {
    /// The files: name and contents.
    pub fn files(&self) -> [(String, String); 4] {
        let name = &self.name;
        [
            (format!("{name}.p4"), self.p4.clone()),
            (format!("{name}.entries.txtpb"), self.entries.clone()),
            (format!("{name}.p4info.txtpb"), self.p4info.clone()),
            (format!("{name}.json"), format!("{:#}\n", self.constants)),
        ]
    }

    /// Writes the files into `folder`, which is made if it isn't there. Returns their paths and sizes.
    pub fn write_to(&self, folder: &Path) -> Result<Vec<(PathBuf, usize)>, GenerateError> {
        let write_error = |path: &Path| {
            let path = path.to_owned();
            move |error| GenerateError::Write { path, error }
        };
        std::fs::create_dir_all(folder).map_err(write_error(folder))?;
        let mut written = Vec::new();
        for (name, contents) in self.files() {
            let path = folder.join(name);
            std::fs::write(&path, &contents).map_err(write_error(&path))?;
            written.push((path, contents.len()));
        }
        Ok(written)
    }
}

/// PL2's parameters for `scheme`; `None` for plain switching. Refuses what can't be generated.
fn pl2_of(rack: &Rack, scheme: Scheme) -> Result<Option<&crate::rack::Pl2>, GenerateError> {
    let refuse = |problem| Err(GenerateError::Scheme { rack: rack.name.clone(), scheme, problem });
    match (scheme, &rack.pl2) {
        (Scheme::L2, _) => Ok(None),
        (_, None) => refuse("needs PL2's parameters: add a [pl2] table with mode = \"clock\""),
        (Scheme::Pl2Counter, Some(_)) if rack.has_mixed_rates() => {
            refuse("counts one slot for all ports, but their rates differ: use pl2-clock")
        }
        (Scheme::Pl2Clock, Some(_)) if !rack.fits_clocks() => refuse(
            "can't tell so many reserved slots from the past: raise the rate or lower k or drop_threshold",
        ),
        (_, Some(pl2)) => Ok(Some(pl2)),
    }
}
