//! Kinds of switches, as far as a controller has to distinguish them.

use crate::bmv2;
use crate::error::CtrlError;
use p4rack_codegen::rack::Target;
use p4rack_codegen::{Artefacts, Rack};
use std::path::Path;
use std::str::FromStr;

/// A kind of switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Platform {
    /// p4rack's embedded switch, which takes P4_16 text.
    #[default]
    Embedded,
    /// `simple_switch_grpc`, which takes p4c's JSON.
    Bmv2,
}

impl FromStr for Platform {
    type Err = String;
    fn from_str(text: &str) -> Result<Platform, String> {
        match text {
            "embedded" => Ok(Platform::Embedded),
            "bmv2" => Ok(Platform::Bmv2),
            _ => Err(format!("`{text}` is not a kind of switch; the kinds are embedded and bmv2")),
        }
    }
}

impl From<Target> for Platform {
    fn from(target: Target) -> Platform {
        match target {
            Target::Embedded => Platform::Embedded,
            Target::Bmv2 => Platform::Bmv2,
        }
    }
}

impl Platform {
    /// Rejects a rack that such a switch cannot implement.
    pub fn check(self, rack: &Rack) -> Result<(), CtrlError> {
        match self {
            Platform::Embedded if rack.tells_times() && rack.switch.time_unit_ns != 1 => {
                Err(CtrlError::Program(format!(
                    "rack {}: the embedded switch counts nanoseconds, the description's unit is {} ns: write \
                     target = \"embedded\" and no time_unit_ns under [switch]",
                    rack.name, rack.switch.time_unit_ns
                )))
            }
            Platform::Embedded => Ok(()),
            Platform::Bmv2 => bmv2::check(rack),
        }
    }

    /// The `p4_device_config` for such a switch; `compiled` is a compiler's output for the program.
    pub fn device_config(self, artefacts: &Artefacts, compiled: Option<&Path>) -> Result<Vec<u8>, CtrlError> {
        let read = |path: &Path| {
            std::fs::read(path)
                .map_err(|error| CtrlError::Program(format!("reading {}: {error}", path.display())))
        };
        match (self, compiled) {
            (_, Some(path)) => read(path),
            (Platform::Embedded, None) => Ok(artefacts.p4.clone().into_bytes()),
            (Platform::Bmv2, None) => bmv2::compile(artefacts),
        }
    }
}
