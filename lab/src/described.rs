//! A description as the rack's processes read it: its file, or one in memory if keys were set beside it.

use crate::error::LabError;
use crate::sys;
use p4rack_codegen::Rack;
use p4rack_codegen::setting::{self, Setting};
use p4rack_codegen::text;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// A checked description, with the path under which all processes of the rack find it.
#[derive(Debug)]
pub struct Described {
    /// The rack.
    pub rack: Rack,
    path: PathBuf,
    /// The file behind `path`, if it isn't the user's own.
    _file: Option<File>,
}

impl Described {
    /// Reads and checks the description at `path`, with these keys set.
    pub fn load(path: &Path, settings: &[Setting]) -> Result<Described, LabError> {
        let rack = Rack::load_set(path, settings)?;
        if settings.is_empty() {
            return Ok(Described { rack, path: path.to_owned(), _file: None });
        }
        let text = text::read(path).map_err(LabError::file(path))?;
        let text = setting::apply(&text, settings).map_err(LabError::Unfit)?;
        let in_memory = LabError::system("keeping the description with its settings");
        let written = sys::memory_file("p4rack-rack").and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            Ok(file)
        });
        let file = written.map_err(in_memory)?;
        let path = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
        Ok(Described { rack, path, _file: Some(file) })
    }

    /// Where other processes read the same, as long as this value lives.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_processes_read_what_was_set() {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/two-hosts.toml");
        let plain = Described::load(&example, &[]).unwrap();
        assert_eq!(plain.path(), example);
        let set = Described::load(&example, &["name=other".parse().unwrap()]).unwrap();
        for _ in 0..2 {
            assert_eq!(Rack::load(set.path()).unwrap().name, "other");
        }
        assert_eq!((set.rack.name.as_str(), plain.rack.name.as_str()), ("other", "two-hosts"));
    }
}
