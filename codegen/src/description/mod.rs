//! The rack description: a TOML file in, a checked [`Rack`] out.
//!
//! [`Rack::load`] reports all mistakes that it can see, each with file, line, field, problem and what to do.
//! `docs/rack.md` documents the file; [`Rack::build`] takes the same from values.
//!
//! ```text
//!  rack.toml ─ load ─▶ drafts ─┬─▶ checks ─▶ Rack ─ topology ─▶ Topology
//!  Topology ─ build ─▶ drafts ─┘             one switch         any number of them
//! ```

mod check;
mod hosts;
pub mod import;
mod pool;
mod read;
mod summary;
mod tors;
mod values;
mod workload;

use crate::rack::{Definition, Rack, RackError};
use crate::scheme::PROTOCOLS;
use crate::setting::{self, Setting};
use crate::text;
use std::path::Path;

pub(crate) use check::{IP_HELP, MAC_HELP, NAME_HELP, RATE_HELP, check_ip, check_mac, check_name};
pub(crate) use hosts::known_host;
pub use summary::Summary;

/// Fields of a description with units, defaults and limits, as text.
pub const SCHEMA: &str = include_str!("../../../docs/rack.md");

impl Rack {
    /// Reads and checks the description at `path`. The error lists everything that is wrong with it.
    pub fn load(path: impl AsRef<Path>) -> Result<Rack, RackError> {
        Rack::load_set(path, &[])
    }

    /// Like [`Rack::load`], with these keys set.
    pub fn load_set(path: impl AsRef<Path>, settings: &[Setting]) -> Result<Rack, RackError> {
        let path = path.as_ref();
        let file = path.display().to_string();
        match text::read(path) {
            Ok(text) => Rack::parse_set(&text, &file, settings),
            Err(error) => Err(RackError::unreadable(file, &error)),
        }
    }

    /// Like [`Rack::parse`], with these keys set. Mistakes caused by the settings alone are reported without a
    /// line.
    pub fn parse_set(text: &str, file: &str, settings: &[Setting]) -> Result<Rack, RackError> {
        let as_written = || Rack::parse(text, file);
        if settings.is_empty() {
            return as_written();
        }
        let changed = match setting::apply(text, settings) {
            Ok(changed) => changed,
            // If the file itself is no TOML, that is the mistake.
            Err(error) => {
                let help = "look at the keys with p4rack rack schema".to_owned();
                return as_written().and(Err(RackError::of_file(file.to_owned(), error, help)));
            }
        };
        Rack::parse(&changed, file).map_err(|error| {
            let of_file = as_written().err();
            error.placed(of_file.as_ref(), &format!("{file} with {}", setting::words(settings)))
        })
    }

    /// Reads and checks a description. `file` names it in errors.
    pub fn parse(text: &str, file: &str) -> Result<Rack, RackError> {
        Rack::parse_with(text, file, PROTOCOLS)
    }

    /// Like [`Rack::parse`], with these protocols instead of the usual ones.
    pub fn parse_with(text: &str, file: &str, protocols: &[&dyn Definition]) -> Result<Rack, RackError> {
        read::parse(text, file, protocols)
    }

    /// Summary of the description and of derived values.
    pub fn summary(&self) -> Summary {
        summary::summary(self)
    }

    /// Summary as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        summary::to_json(self)
    }
}
