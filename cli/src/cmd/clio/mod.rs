//! `p4rack clio`.

mod hold;
mod hostile;
mod kv;
mod memory;
mod offload;
mod processes;
pub(super) mod serve;
mod verify;

use super::adapter::Tls;
use p4rack_hosts::clio::{Patience, Session, Wanted};
use p4rack_hosts::roce::setup::Server;
use std::ops::Deref;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `p4rack clio`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Offer memory of this machine as a board: a UDP socket, without root and without RDMA
    ///
    /// Prints a line "ready …" when clients can join. Ends on SIGTERM or SIGINT. On a host of a rack,
    /// `p4rack memory serve --way clio` does the same with the description's settings.
    Serve(Box<serve::Args>),
    /// List a board's processes, with their pages, quotas, locks and calls, and the allocations of the one that these
    /// commands use
    Ps(processes::Args),
    /// Begin a process with memory of its own, and keep it until SIGTERM or SIGINT; other commands act in it with --in
    Hold(hold::Args),
    /// Allocate memory, which is zeros; prints its address
    ///
    /// These commands act in the process whose memory the board offers to all, or in the one of --in: memory that one
    /// allocates, the next can use. It stays until it is freed, or its process ends.
    Alloc(memory::AllocArgs),
    /// Free allocated memory
    Free(memory::FreeArgs),
    /// Read allocated bytes
    Read(memory::ReadArgs),
    /// Write bytes
    Write(memory::WriteArgs),
    /// Share allocated memory with another process of the board; prints its address there
    ///
    /// Both have the same memory then, until the last of them frees it or ends. A process takes what its own limit permits.
    Share(memory::ShareArgs),
    /// Take the lock in a word that is 0
    ///
    /// The owner is the process with a thread's number, which is printed: `unlock` needs it. The board releases the lock when its lease
    /// ends, after 10 seconds, unless it is taken again before under the same number.
    Lock(memory::LockArgs),
    /// Release a lock
    Unlock(memory::UnlockArgs),
    /// Keys and values in the board's store, Clio-KV
    #[command(subcommand)]
    Kv(kv::Command),
    /// Follow pointers in the board's memory until a node's key matches: one exchange for any number of nodes
    ///
    /// Prints the node's address and its value.
    Chase(memory::ChaseArgs),
    /// Your code at the board: load, call, list and remove WebAssembly modules
    #[command(subcommand)]
    Offload(offload::Command),
    /// Read, write and modify a board's memory and store at random, by several processes, and check everything that comes back
    Verify(verify::Args),
    /// Measure what an honest client keeps beside one that attacks the board
    ///
    /// The honest client reads and writes 64 bytes of its own memory, 16 operations at a time. It is measured beside a second honest client
    /// and beside each attack, in turns. Exits with 1 if it keeps less than 90 % beside one of them, or an operation fails. A board gives
    /// turns to hosts, and on loopback to sockets, so the board has to be on loopback.
    Hostile(hostile::Args),
}

/// The board.
#[derive(clap::Args, Debug)]
struct Board {
    /// Address of the board's set-up service, HOST:PORT. `alloc`, `free`, `read`, `write`, `share`, `lock`, `unlock` and `chase` take several
    /// with commas in between: then addresses name the board; the others use the first one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9563")]
    board: String,
    #[command(flatten)]
    tls: Tls,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The board, and a process on it.
#[derive(clap::Args, Debug)]
struct InProcess {
    #[command(flatten)]
    board: Board,
    /// Act in the process that `p4rack clio hold` keeps: the file that it has written [default: act in the process that
    /// is open to all]
    #[arg(long = "in", value_name = "FILE")]
    held: Option<PathBuf>,
}

impl Deref for InProcess {
    type Target = Board;

    fn deref(&self) -> &Board {
        &self.board
    }
}

impl InProcess {
    /// A client of the process, with this number in words of locks or one of the board's.
    fn session(&self, thread: Option<u16>) -> Result<Session, String> {
        let Some(file) = &self.held else { return self.board.session(thread) };
        if self.board.servers().len() > 1 {
            return Err("--in: a process that is held is on one board: give its --board alone".to_owned());
        }
        let (credentials, range) = hold::read(file)?;
        let opened =
            Session::open_granted_as(&self.server(), credentials, range, thread, Patience::default());
        opened.map_err(|error| self.said(error))
    }
}

impl Board {
    /// The boards, at least one.
    fn servers(&self) -> Vec<Server> {
        let server = |addr: &str| Server { addr: addr.trim().to_owned(), tls: self.tls.files() };
        self.board.split(',').map(server).collect()
    }

    /// The first board.
    fn server(&self) -> Server {
        let first = self.board.split(',').next().unwrap_or(&self.board);
        Server { addr: first.trim().to_owned(), tls: self.tls.files() }
    }

    /// A client of the processes whose memory the boards offer to all.
    fn session(&self, thread: Option<u16>) -> Result<Session, String> {
        Session::open_over(&self.servers(), Wanted::default(), thread, Patience::default())
            .map_err(|error| self.said(error))
    }

    /// An error, with advice if there is no board.
    fn said(&self, error: impl std::fmt::Display) -> String {
        let error = error.to_string();
        let help = match () {
            () if error.starts_with("can't reach") => {
                "; start one with `p4rack clio serve`, or name it with --board"
            }
            // A server that encrypts ends a connection in plain text.
            () if error.ends_with("transport error") => {
                "; if the board encrypts its set-up, give --ssl and --cacert"
            }
            () => "",
        };
        error + help
    }
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    let done = match args.command {
        Command::Serve(args) => serve::run(*args),
        Command::Ps(args) => processes::run(&args),
        Command::Hold(args) => hold::run(&args),
        Command::Alloc(args) => memory::alloc(&args),
        Command::Free(args) => memory::free(&args),
        Command::Read(args) => memory::read(&args),
        Command::Write(args) => memory::write(&args),
        Command::Share(args) => memory::share(&args),
        Command::Lock(args) => memory::lock(&args),
        Command::Unlock(args) => memory::unlock(&args),
        Command::Kv(command) => kv::run(command),
        Command::Chase(args) => memory::chase(&args),
        Command::Offload(command) => offload::run(command),
        Command::Verify(args) => verify::run(&args),
        Command::Hostile(args) => hostile::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
