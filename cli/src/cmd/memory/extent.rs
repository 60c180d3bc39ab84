//! `--extent`: memory that `p4rack balloon reserve` holds.

use super::There;
use crate::cmd::values::hex;
use p4rack_codegen::Rack;
use p4rack_hosts::balloon::granted;
use p4rack_memory::{Access, Granted, Memory, OpenError};
use serde::Deserialize;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Bytes of a file that are read: events of a thousand extents have fewer.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// An extent in the output of `p4rack balloon reserve --json`.
#[derive(Deserialize)]
struct Reserved {
    board: String,
    bytes: u64,
    access: String,
}

/// The rights to the first extent of a file with the command's output, and the set-up service of its memory node.
fn read(path: &Path) -> Result<(Granted, String), String> {
    let wrong = |why: String| format!("--extent: {}: {why}", path.display());
    let mut text = String::new();
    let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(|error| wrong(error.to_string()))?;
    let line = text.lines().next().ok_or_else(|| {
        wrong("it is empty; write the output of `p4rack balloon reserve --json` to it".to_owned())
    })?;
    let Reserved { board, bytes, access } = serde_json::from_str(line).map_err(|error| {
        wrong(format!("line 1: {error}; expected the output of `p4rack balloon reserve --json`"))
    })?;
    let access = hex(&access).map_err(|why| wrong(format!("access: {why}")))?;
    Ok((granted(&access.0, bytes).map_err(wrong)?, board))
}

/// Opens an extent. A service that the options name has precedence over the one in the file.
pub(super) fn open(there: &There, rack: &Rack, path: &Path) -> Result<Memory, String> {
    let (granted, board) = read(path)?;
    let access = there.access();
    let access = Access { memory: Some(access.memory.unwrap_or(&board)), ..access };
    p4rack_memory::open_extent(rack, &access, &granted)
        .map_err(|error: OpenError| super::not_opened(&error, error.not_here()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_extent_is_named() {
        let file = tempfile::NamedTempFile::new().expect("a scratch file");
        let said = |text: &str| {
            std::fs::write(file.path(), text).expect("written");
            read(file.path()).expect_err("it is no extent")
        };
        assert!(said("").contains("it is empty"));
        assert!(said("reserved 8 MiB").contains("line 1"));
        assert!(said("{}").contains("missing field `board`"));
        let with =
            |access: &str| format!("{{\"board\":\"a:1\",\"bytes\":2097152,\"access\":\"{access}\"}}\n");
        assert!(said(&with("0g")).contains("access: write two"));
        assert!(said(&with("")).contains("neither process nor region"));
        assert!(read(Path::new("/no/such/file")).is_err_and(|why| why.contains("--extent: /no/such/file")));
    }
}
