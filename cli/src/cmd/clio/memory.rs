//! `p4rack clio alloc`, `free`, `read`, `write`, `share`, `lock`, `unlock` and `chase`.

use super::{Board, InProcess};
use crate::cmd::adapter::text;
use crate::cmd::values::{Bytes, dump, hex, in_hex};
use crate::output::{OutputFile, write_bytes};
use p4rack_codegen::rack::units::{parse_bytes, show_size};
use p4rack_fabric::clio::lib::Operation;
use p4rack_hosts::clio::{AskError, CHASE, Reply, at_board, of_board};
use p4rack_offload::Chase;
use p4rack_wire::clio::{Rights, Status, lock_thread};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Pause between two tries to take a lock.
const PAUSE: Duration = Duration::from_millis(1);

#[derive(clap::Args, Debug)]
pub(super) struct AllocArgs {
    #[command(flatten)]
    board: InProcess,
    /// How many bytes, e.g. "1 MiB"; whole pages are allocated
    #[arg(value_name = "SIZE", value_parser = parse_bytes)]
    bytes: u64,
    /// Permit reads only
    #[arg(long)]
    read_only: bool,
    /// Of several boards: on the one with this number, the first one has 0 [default: the first one that has room]
    #[arg(long, value_name = "N", value_parser = crate::numbers::number::<u16>)]
    on: Option<u16>,
}

#[derive(clap::Args, Debug)]
pub(super) struct FreeArgs {
    #[command(flatten)]
    board: InProcess,
    /// Address of the first page, as alloc printed it
    #[arg(value_parser = crate::numbers::number::<u64>)]
    address: u64,
    /// How many bytes, e.g. "1 MiB"
    #[arg(value_name = "SIZE", value_parser = parse_bytes)]
    bytes: u64,
}

#[derive(clap::Args, Debug)]
pub(super) struct ReadArgs {
    #[command(flatten)]
    board: InProcess,
    /// Address of the first byte
    #[arg(value_parser = crate::numbers::number::<u64>)]
    address: u64,
    /// How many bytes, e.g. "1 KiB"
    #[arg(value_name = "SIZE", value_parser = parse_bytes)]
    bytes: u64,
    /// Write the bytes to this file (`-` for standard output) instead of showing them
    #[arg(short, long, value_name = "FILE", conflicts_with = "json")]
    output: Option<PathBuf>,
}

#[derive(clap::Args, Debug)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub(super) struct WriteArgs {
    #[command(flatten)]
    board: InProcess,
    /// Address of the first byte
    #[arg(value_parser = crate::numbers::number::<u64>)]
    address: u64,
    /// Write these characters
    #[arg(long, group = "what")]
    text: Option<String>,
    /// Write these bytes, e.g. 00ff10
    #[arg(long, group = "what", value_parser = hex)]
    hex: Option<Bytes>,
    /// Write the contents of this file
    #[arg(long, group = "what", value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(clap::Args, Debug)]
pub(super) struct ShareArgs {
    #[command(flatten)]
    board: InProcess,
    /// Address of the first page
    #[arg(value_parser = crate::numbers::number::<u64>)]
    address: u64,
    /// How many bytes, e.g. "1 MiB"; whole pages are shared
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    bytes: u64,
    /// The other process, as ps lists it
    #[arg(long, value_name = "PID:EPOCH", value_parser = space)]
    with: (u32, u16),
    /// Its rights there
    #[arg(long, value_enum, default_value_t = Access::Read)]
    rights: Access,
}

/// Rights of a process to memory that is shared with it.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Access {
    /// Read
    Read,
    /// Read, write and lock
    All,
}

/// A process: its PID and its epoch.
fn space(text: &str) -> Result<(u32, u16), String> {
    let numbers = text
        .split_once(':')
        .and_then(|(pid, epoch)| crate::numbers::number(pid).ok().zip(crate::numbers::number(epoch).ok()));
    numbers.ok_or_else(|| "write a PID and an epoch, e.g. 5:1, as `p4rack clio ps` lists them".to_owned())
}

#[derive(clap::Args, Debug)]
pub(super) struct LockArgs {
    #[command(flatten)]
    board: InProcess,
    /// Address of the word, a multiple of 8
    #[arg(value_parser = crate::numbers::number::<u64>)]
    address: u64,
    /// Thread number that is to own the lock: one that `lock` printed, to extend its lease, or one that you choose from 61440 to
    /// 65535; the board gives these to no client [default: a number that no other client has]
    #[arg(long, value_name = "N", value_parser = crate::numbers::within::<u16>(1..=65_535))]
    thread: Option<u16>,
    /// Seconds to wait while another thread has it [default: not at all]
    #[arg(long = "wait", value_name = "S", value_parser = crate::cmd::finite)]
    wait_s: Option<f64>,
}

#[derive(clap::Args, Debug)]
pub(super) struct UnlockArgs {
    #[command(flatten)]
    board: InProcess,
    /// Address of the word, a multiple of 8
    #[arg(value_parser = crate::numbers::number::<u64>)]
    address: u64,
    /// Number of the thread that owns the lock, as lock printed it
    #[arg(long, value_name = "N", value_parser = crate::numbers::within::<u16>(1..=65_535))]
    thread: u16,
}

#[derive(clap::Args, Debug)]
pub(super) struct ChaseArgs {
    #[command(flatten)]
    board: InProcess,
    /// Address of the first node
    #[arg(value_parser = crate::numbers::number::<u64>)]
    address: u64,
    /// Key to look for
    #[arg(value_parser = crate::numbers::number::<u64>)]
    key: u64,
    /// Offset of the key in a node: 8 bytes, little-endian
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = crate::numbers::number::<u16>)]
    key_offset: u16,
    /// Offset of the next node's address in a node; 0 ends the list
    #[arg(long, value_name = "BYTES", default_value_t = 8, value_parser = crate::numbers::number::<u16>)]
    next_offset: u16,
    /// Offset of the value in a node
    #[arg(long, value_name = "BYTES", default_value_t = 16, value_parser = crate::numbers::number::<u16>)]
    value_offset: u16,
    /// Bytes of the value
    #[arg(long, value_name = "BYTES", default_value_t = 8, value_parser = crate::numbers::number::<u16>)]
    value_bytes: u16,
    /// The value's place contains the address of the value
    #[arg(long)]
    value_is_pointer: bool,
    /// Maximum nodes to visit: a list may be a circle
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = crate::numbers::number::<u16>)]
    depth: u16,
}

/// Allocates.
pub(super) fn alloc(args: &AllocArgs) -> Result<(), String> {
    let mut session = args.board.session(None)?;
    let rights = Rights { read: true, write: !args.read_only };
    let bytes = args.bytes;
    let allocated = match args.on {
        Some(board) => session.alloc_at(board, bytes, rights),
        None => session.alloc(bytes, rights),
    };
    let address = allocated.map_err(|error| {
        let help = match error {
            AskError::Failed(Status::NoMemory | Status::NoAddressSpace) => {
                "; free some first, or start the board with more --bytes"
            }
            _ => "",
        };
        format!("allocating {bytes} bytes: {error}{help}")
    })?;
    let page = session.page_size_at(of_board(address).0).unwrap_or_else(|| session.page_size());
    let whole = page.pages(bytes).saturating_mul(page.bytes());
    if args.board.json {
        println!("{}", json!({ "address": address, "bytes": whole, "page_bytes": page.bytes() }));
    } else {
        println!("{address:#x} ({} in pages of {})", show_size(whole), show_size(page.bytes()));
    }
    Ok(())
}

/// Frees.
pub(super) fn free(args: &FreeArgs) -> Result<(), String> {
    let mut session = args.board.session(None)?;
    session.free(args.address, args.bytes).map_err(|error| {
        let help = match error {
            AskError::Failed(Status::NoSuchAddress | Status::BadRequest | Status::BadLength) => {
                "; give the address and bytes as `p4rack clio alloc` printed them"
            }
            _ => "",
        };
        format!("freeing {} bytes at {:#x}: {error}{help}", args.bytes, args.address)
    })?;
    if args.board.json {
        println!("{}", json!({ "address": args.address, "bytes": args.bytes }));
    } else {
        println!("freed {} bytes at {:#x}", args.bytes, args.address);
    }
    Ok(())
}

/// Advice for bytes that can't be accessed.
fn access_help(error: &AskError) -> &'static str {
    match error {
        AskError::Failed(Status::NoSuchAddress) => "; `p4rack clio ps` lists what is allocated",
        AskError::Failed(Status::NotPermitted) => {
            "; the range was allocated with --read-only, or shared to be read"
        }
        _ => "",
    }
}

/// Reads bytes.
pub(super) fn read(args: &ReadArgs) -> Result<(), String> {
    let ReadArgs { board, address, bytes, output } = args;
    let file = match output {
        Some(path) if path != Path::new("-") => Some(OutputFile::open("--output", path)?),
        _ => None,
    };
    let mut session = board.session(None)?;
    let most = session.request_bytes_max();
    let count = u32::try_from(*bytes).ok().filter(|count| (1..=most).contains(count));
    let count = count.ok_or_else(|| format!("{bytes} bytes: read 1 to {most} at a time"))?;
    let found = session
        .read(*address, count)
        .map_err(|error| format!("reading {bytes} bytes at {address:#x}: {error}{}", access_help(&error)))?;
    match (file, output) {
        (Some(file), _) => file.write(&found)?,
        (None, Some(_)) => write_bytes(&found),
        (None, None) if board.json => {
            println!("{}", json!({ "address": address, "bytes": found.len(), "hex": in_hex(&found) }));
        }
        (None, None) => print!("{}", dump(*address, &found)),
    }
    Ok(())
}

/// Writes bytes.
pub(super) fn write(args: &WriteArgs) -> Result<(), String> {
    let WriteArgs { board, address, text, hex, file } = args;
    let bytes = match (text, hex, file) {
        (Some(text), ..) => text.clone().into_bytes(),
        (_, Some(Bytes(bytes)), _) => bytes.clone(),
        (.., Some(path)) => {
            std::fs::read(path).map_err(|error| format!("--file: {}: {error}", path.display()))?
        }
        _ => Vec::new(),
    };
    let mut session = board.session(None)?;
    let (count, most) = (bytes.len(), session.request_bytes_max());
    if !u32::try_from(count).is_ok_and(|count| (1..=most).contains(&count)) {
        return Err(format!("{count} bytes: write 1 to {most} at a time"));
    }
    session
        .write(*address, &bytes)
        .map_err(|error| format!("writing {count} bytes at {address:#x}: {error}{}", access_help(&error)))?;
    if board.json {
        println!("{}", json!({ "address": address, "bytes": count }));
    } else {
        println!("wrote {count} bytes at {address:#x}");
    }
    Ok(())
}

/// Shares pages.
pub(super) fn share(args: &ShareArgs) -> Result<(), String> {
    let mut session = args.board.session(None)?;
    let rights = Rights { read: true, write: matches!(args.rights, Access::All) };
    let (pid, epoch) = args.with;
    let shared = session.share(args.address, args.bytes, args.with, rights).map_err(|error| {
        let help = match error {
            AskError::Failed(Status::NoSuchProcess) => "; `p4rack clio ps` lists the processes",
            AskError::Failed(Status::NotPermitted) => {
                "; the process takes nothing from others, or the range itself does not have these rights"
            }
            AskError::Failed(Status::NoMemory) => "; it may take no more from others, see `p4rack clio ps`",
            AskError::Failed(Status::NoSuchAddress | Status::BadRequest | Status::BadLength) => {
                "; give the address and bytes as `p4rack clio alloc` printed them"
            }
            _ => "",
        };
        format!("sharing {} bytes at {:#x} with {pid}:{epoch}: {error}{help}", args.bytes, args.address)
    })?;
    if args.board.json {
        println!("{}", json!({ "address": shared, "bytes": args.bytes, "pid": pid, "epoch": epoch }));
    } else {
        println!("{shared:#x} in process {pid}:{epoch}");
    }
    Ok(())
}

/// Takes a lock.
pub(super) fn lock(args: &LockArgs) -> Result<(), String> {
    let LockArgs { board, address, thread, wait_s } = args;
    let mut session = board.session(*thread)?;
    let until = Instant::now() + Duration::from_secs_f64(wait_s.unwrap_or(0.0).min(86_400.0));
    loop {
        let reply = session.ask(Operation::Lock { address: *address });
        match reply.map_err(|error| format!("locking {address:#x}: {error}"))? {
            Reply::Held(_) if Instant::now() < until => std::thread::sleep(PAUSE),
            Reply::Held(word) => {
                let (pid, owner) = (word >> 32, lock_thread(word));
                let what = format!("locking {address:#x}: thread {owner} of process {pid} has it");
                return Err(format!("{what}; wait for it with --wait"));
            }
            _ => break,
        }
    }
    // The lock is of that board's number of this client.
    let thread = session.thread_at(of_board(*address).0).unwrap_or(session.thread());
    told(board, *address, thread, "locked");
    Ok(())
}

/// Releases a lock.
pub(super) fn unlock(args: &UnlockArgs) -> Result<(), String> {
    let UnlockArgs { board, address, thread } = args;
    let mut session = board.session(Some(*thread))?;
    session.ask(Operation::Unlock { address: *address }).map_err(|error| {
        let help = match error {
            AskError::Failed(Status::NotOwner) => {
                "; name the thread that has locked it with --thread; its lease may have ended"
            }
            _ => "",
        };
        format!("unlocking {address:#x}: {error}{help}")
    })?;
    told(board, *address, *thread, "unlocked");
    Ok(())
}

fn told(board: &Board, address: u64, thread: u16, what: &str) {
    if board.json {
        println!("{}", json!({ "address": address, "thread": thread, "state": what }));
    } else {
        println!("{what} {address:#x} as thread {thread}");
    }
}

/// Follows pointers.
pub(super) fn chase(args: &ChaseArgs) -> Result<(), String> {
    let mut session = args.board.session(None)?;
    let (board, address) = of_board(args.address);
    let chase = Chase {
        address,
        key: args.key,
        key_offset: args.key_offset,
        next_offset: args.next_offset,
        value_offset: args.value_offset,
        value_bytes: args.value_bytes,
        depth: args.depth,
        value_is_pointer: args.value_is_pointer.into(),
        reserved: 0,
    };
    let mut arguments = [0; Chase::BYTES];
    chase.emit(&mut arguments);
    let found = session.call(at_board(board, CHASE), 0, &arguments).map_err(|error| {
        let help = match error {
            AskError::Failed(Status::NotFound) => "; the list ends without this key",
            AskError::Failed(Status::OffloadFailed) => {
                "; more nodes than --depth, or a circle, or more than a call may read"
            }
            AskError::Failed(Status::NoSuchAddress) => "; a pointer leads out of the process's memory",
            _ => "",
        };
        format!("looking for key {} from {:#x} on: {error}{help}", args.key, args.address)
    })?;
    let (node, value) = found.split_first_chunk().ok_or_else(|| text("the board's answer is too short"))?;
    let node = at_board(board, u64::from_le_bytes(*node));
    if args.board.json {
        println!("{}", json!({ "address": node, "value": in_hex(value) }));
    } else {
        println!("node at {node:#x}, value {}", in_hex(value));
    }
    Ok(())
}
