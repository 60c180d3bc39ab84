//! `p4rack clio hold`, and the file by which other commands act in the process that it keeps.

use super::Board;
use crate::cmd::adapter::text;
use crate::output::Events;
use p4rack_codegen::rack::units::{parse_bytes, show_size};
use p4rack_fabric::clio::lib::Credentials;
use p4rack_hosts::clio::{Patience, Session, Wanted};
use p4rack_netdev::signal::{Signal, Signals};
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often signals are looked at.
const LOOK: Duration = Duration::from_millis(50);

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    board: Board,
    /// Where to write what other commands need as --in; only its owner may read it, because it proves the right to the process
    file: PathBuf,
    /// Bytes of its range, which are kept for it, e.g. "1 MiB"
    #[arg(long, value_name = "SIZE", default_value = "1 MiB", value_parser = parse_bytes)]
    reserve: u64,
    /// Bytes that it may have allocated, the range included [default: twice as many as are reserved, or what the board has left]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    limit: Option<u64>,
    /// Bytes that other processes may share with it [default: none]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    share_limit: Option<u64>,
}

/// Writes a file that its owner alone may read, in place of one that is there. Returns it.
fn write(path: &Path, value: &Value) -> Result<File, String> {
    let said = |error: std::io::Error| format!("{}: {error}", path.display());
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(said(error)),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(said)?;
    writeln!(file, "{value}").map_err(said)?;
    Ok(file)
}

/// Removes a file, unless there is another one in its place by now.
fn remove(path: &Path, file: &File) -> std::io::Result<()> {
    let own = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(there) if (there.dev(), there.ino()) == (own.dev(), own.ino()) => fs::remove_file(path),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// The process of a file, and its range.
pub(super) fn read(path: &Path) -> Result<(Credentials, (u64, u64)), String> {
    let said = |why: &dyn std::fmt::Display| format!("--in: {}: {why}", path.display());
    let written = fs::read_to_string(path).map_err(|error| said(&error))?;
    let value: Value = serde_json::from_str(&written).map_err(|error| said(&error))?;
    let field = |name: &str| value[name].as_u64();
    let process = || {
        let (pid, epoch) = (u32::try_from(field("pid")?).ok()?, u16::try_from(field("epoch")?).ok()?);
        let credentials = Credentials { pid, epoch, token: field("token")? };
        Some((credentials, (field("address")?, field("bytes")?)))
    };
    process().ok_or_else(|| {
        said(&"expected pid, epoch, token, address and bytes, as `p4rack clio hold` writes them")
    })
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), String> {
    if args.reserve == 0 {
        return Err("--reserve: 0 bytes are no range; write at least \"1 B\"".to_owned());
    }
    let signals = Signals::take().map_err(text)?;
    let wanted =
        Wanted { reserve_bytes: args.reserve, limit_bytes: args.limit, share_limit_bytes: args.share_limit };
    let session = Session::open_as(&args.board.server(), wanted, None, Patience::default());
    let mut session = session.map_err(|error| args.board.said(error))?;
    let (Credentials { pid, epoch, token }, (address, bytes)) = (session.credentials(), session.range());
    let process = json!({ "pid": pid, "epoch": epoch, "token": token, "address": address, "bytes": bytes });
    let file = write(&args.file, &process)?;
    Events::new(args.board.json).report(
        "ready",
        json!({
            "pid": pid,
            "epoch": epoch,
            "address": address,
            "bytes": bytes,
            "limit_bytes": session.limit_bytes(),
            "share_limit_bytes": session.share_limit_bytes(),
        }),
        format_args!(
            "ready {pid}:{epoch} with {} at {address:#x}, at most {}",
            show_size(bytes),
            show_size(session.limit_bytes())
        ),
    );
    let ended = loop {
        if let Some(why) = session.ended(LOOK) {
            break Err(format!("the board has ended the process: {why}"));
        }
        if matches!(signals.next(), Some(Signal::End)) {
            break Ok(());
        }
    };
    // What it proves is void.
    let removed = remove(&args.file, &file).map_err(|error| format!("{}: {error}", args.file.display()));
    ended.and(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_another_command_stays() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let path = folder.path().join("process");
        let first = write(&path, &json!({ "pid": 1 })).expect("written");
        let second = write(&path, &json!({ "pid": 2 })).expect("written in its place");
        remove(&path, &first).expect("not its file");
        assert_eq!(fs::read_to_string(&path).expect("it is there"), "{\"pid\":2}\n");
        remove(&path, &second).expect("its file");
        assert!(!path.exists());
        remove(&path, &second).expect("gone already");
    }
}
