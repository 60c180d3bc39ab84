//! `p4rack memory read`, `write` and `modify`.

use super::{ModifyArgs, ReadArgs, WriteArgs, open};
use crate::cmd::values::{Bytes, dump, in_hex};
use crate::output::{self, OutputFile};
use p4rack_hosts::remote::{RemoteError, Status};
use p4rack_wire::edm::Opcode;
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// Looks for the bytes that were written.
const TRIES: usize = 10;
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// Reads bytes.
pub(super) fn read(args: &ReadArgs) -> Result<(), String> {
    let file = match &args.output {
        Some(path) if path != Path::new("-") => Some(OutputFile::open("--output", path)?),
        _ => None,
    };
    let there = &args.there;
    if args.bytes == 0 {
        return Err(there.failed("reading", 0, &RemoteError::Failed(Status::BadLength)));
    }
    let mut memory = open(there)?;
    let mut bytes = vec![0; args.bytes as usize];
    memory.read(there.address, &mut bytes).map_err(|error| there.failed("reading", bytes.len(), &error))?;
    match (file, &args.output) {
        (Some(file), _) => file.write(&bytes)?,
        (None, Some(_)) => output::write_bytes(&bytes),
        (None, None) if there.json => {
            let value = json!({ "address": there.address, "bytes": bytes.len(), "hex": in_hex(&bytes) });
            println!("{value}");
        }
        (None, None) => print!("{}", dump(there.address, &bytes)),
    }
    Ok(())
}

/// Writes bytes and reads them back.
pub(super) fn write(args: WriteArgs) -> Result<(), String> {
    let there = &args.there;
    let bytes = match (&args.text, args.hex, &args.file) {
        (Some(text), ..) => text.clone().into_bytes(),
        (_, Some(Bytes(bytes)), _) => bytes,
        (.., Some(path)) => {
            std::fs::read(path).map_err(|error| format!("--file: {}: {error}", path.display()))?
        }
        _ => Vec::new(),
    };
    if bytes.is_empty() {
        return Err(there.failed("writing", 0, &RemoteError::Failed(Status::BadLength)));
    }
    let mut memory = open(there)?;
    memory.write(there.address, &bytes).map_err(|error| there.failed("writing", bytes.len(), &error))?;
    let (mut back, mut tries, mut is_there) = (vec![0; bytes.len()], 0, args.unchecked);
    while !is_there {
        memory.read(there.address, &mut back).map_err(|error| there.not_read_back(bytes.len(), &error))?;
        is_there = back == bytes;
        // A read may overtake the write, so look again before giving up.
        tries += 1;
        if !is_there && tries == TRIES {
            let what = "the bytes there are others: the region may be read only, or someone else writes too";
            let (length, at) = (bytes.len(), there.address);
            return Err(format!("writing {length} bytes at {at:#x} of {}: {what}", there.at));
        }
        if !is_there {
            std::thread::sleep(PAUSE);
        }
    }
    if there.json {
        let value = json!({ "address": there.address, "bytes": bytes.len(), "read_back": !args.unchecked });
        println!("{value}");
    } else {
        let read_back = if args.unchecked { "" } else { ", and read them back" };
        println!("wrote {} bytes at {:#x} of {}{read_back}", bytes.len(), there.address, there.at);
    }
    Ok(())
}

/// Changes a word and prints the old one.
pub(super) fn modify(args: &ModifyArgs) -> Result<(), String> {
    let there = &args.there;
    if (args.operation == Opcode::Cas) != args.expected.is_some() {
        return Err("--expected belongs to --operation cas, and cas needs it".to_owned());
    }
    let mut memory = open(there)?;
    let done = match args.expected {
        Some(expected) => memory.cas(there.address, expected, args.operand),
        None => memory.modify(there.address, args.operation, [args.operand, 0]),
    };
    let old = done.map_err(|error| there.failed("changing", 8, &error))?;
    if there.json {
        println!("{}", json!({ "address": there.address, "old": old }));
    } else {
        println!("{old} ({old:#x}) was at {:#x} of {}", there.address, there.at);
    }
    Ok(())
}
