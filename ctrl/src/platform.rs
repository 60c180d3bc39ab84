//! Kinds of switches, as far as a controller has to know them apart.

use crate::error::CtrlError;
use p4rack_codegen::Artefacts;
use std::path::Path;
use std::str::FromStr;

/// A kind of switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Platform {
    /// p4rack's own, which takes P4_16 text.
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
            _ => Err(format!("`{text}` is no kind of switch; there are embedded and bmv2")),
        }
    }
}

impl Platform {
    /// What such a switch takes as `p4_device_config`; `compiled` is a compiler's output for the program.
    pub fn device_config(self, artefacts: &Artefacts, compiled: Option<&Path>) -> Result<Vec<u8>, CtrlError> {
        let read = |path: &Path| {
            std::fs::read(path)
                .map_err(|error| CtrlError::Program(format!("reading {}: {error}", path.display())))
        };
        match (self, compiled) {
            (_, Some(path)) => read(path),
            (Platform::Embedded, None) => Ok(artefacts.p4.clone().into_bytes()),
            (Platform::Bmv2, None) => Err(CtrlError::Program(
                "BMv2 takes p4c's JSON: write the program with `p4rack generate`, compile it with \
                 `p4c --target bmv2 --arch v1model`, and give the JSON with --device-config"
                    .into(),
            )),
        }
    }
}
