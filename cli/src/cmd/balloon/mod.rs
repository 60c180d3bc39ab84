//! `p4rack balloon`.

mod hold;
mod list;
mod serve;

use super::adapter::{Tls, runtime};
use crate::output::plain;
use p4rack_hosts::balloon::{leave, release};
use p4rack_hosts::roce::setup::Server;
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;

/// Where the service is by default.
const AT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9564);

/// Arguments of `p4rack balloon`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Lend extents of the memory of boards and pools: those of `p4rack memory serve --lend`, `clio serve --lend` and `roce serve --lend`
    ///
    /// Prints a line "ready …" when compute nodes can reserve. Ends on SIGTERM or SIGINT; lent extents stay lent, and
    /// the next service learns them from the memory nodes. With --grpc-server-cacert, a caller is the compute node that
    /// its certificate names: compute node 3 has the subjectAltName DNS:holder-3.
    Serve(serve::Args),
    /// Show the pool: free, lent and fenced bytes of memory nodes, and extents of compute nodes
    Show(list::Args),
    /// List all extents that are not free, with their states and holders
    List(list::Args),
    /// Reserve an extent and hold it until SIGTERM or SIGINT
    ///
    /// Prints a line "reserved …". With --json it has the rights to the extent, too: `p4rack memory read --extent` and
    /// others take a file with it. While it runs, it renews the lease; when it ends, it returns the extent. Killed, it
    /// loses the extent when the lease ends.
    Reserve(hold::Args),
    /// End the session of a compute node: its extents are fenced, zeroed and freed
    Release(ReleaseArgs),
    /// Have a memory node go offline: it lends nothing more, and holders move its extents to others
    ///
    /// The holders learn it when they renew. The node may be stopped when `p4rack balloon show` lists nothing lent, fenced or zeroing
    /// there. A service that starts again does not know of it. With --grpc-server-cacert at the service, the caller's
    /// certificate needs the subjectAltName DNS:operator.
    Offline(OfflineArgs),
}

#[derive(clap::Args, Debug)]
struct OfflineArgs {
    /// Number of the memory node
    #[arg(value_parser = crate::numbers::number::<u16>)]
    node: u16,
    /// Have it come back
    #[arg(long)]
    end: bool,
    #[command(flatten)]
    service: Service,
}

#[derive(clap::Args, Debug)]
struct ReleaseArgs {
    /// Number of the compute node
    #[arg(value_parser = crate::numbers::number::<u32>)]
    holder: u32,
    #[command(flatten)]
    service: Service,
}

/// The service.
#[derive(clap::Args, Debug)]
struct Service {
    /// Address of the service, HOST:PORT
    #[arg(long, value_name = "ADDR", default_value_t = AT.to_string())]
    balloon: String,
    #[command(flatten)]
    tls: Tls,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Service {
    fn server(&self) -> Server {
        Server { addr: self.balloon.clone(), tls: self.tls.files() }
    }

    /// An error, with advice if there is no service.
    fn said(error: impl std::fmt::Display) -> String {
        let error = plain(&error.to_string());
        let help = match error.starts_with("can't reach") {
            true => "; start one with `p4rack balloon serve`, or name it with --balloon",
            false => "",
        };
        error + help
    }
}

fn run_release(args: &ReleaseArgs) -> Result<(), String> {
    let released = runtime()?.block_on(release(&args.service.server(), args.holder));
    let extents = released.map_err(Service::said)?;
    match args.service.json {
        true => println!("{:#}", json!({ "holder": args.holder, "extents": extents })),
        false => println!("ended the session of compute node {}, which held {extents} extents", args.holder),
    }
    Ok(())
}

fn run_offline(args: &OfflineArgs) -> Result<(), String> {
    let OfflineArgs { node, end, .. } = *args;
    runtime()?.block_on(leave(&args.service.server(), node, !end)).map_err(Service::said)?;
    match args.service.json {
        true => println!("{:#}", json!({ "node": node, "leaves": !end })),
        false if end => println!("memory node {node} lends again"),
        false => println!("memory node {node} lends nothing more, and holders of its extents move away"),
    }
    Ok(())
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    let done = match args.command {
        Command::Serve(args) => serve::run(args),
        Command::Show(args) => list::show(&args),
        Command::List(args) => list::list(&args),
        Command::Reserve(args) => hold::run(args),
        Command::Release(args) => run_release(&args),
        Command::Offline(args) => run_offline(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Resolves when SIGTERM or SIGINT comes. Errors: the system does not report signals.
async fn ended() -> Result<(), String> {
    let mut end = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .map_err(|error| format!("waiting for SIGTERM: {error}"))?;
    tokio::select! {
        _ = end.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    Ok(())
}
