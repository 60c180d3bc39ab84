//! `p4rack bench bfrt`.

use super::bench_p4runtime::{json_of, measured, on_one_thread, start_with, tell};
use super::{bmv2, connect};
use p4rack_ctrl::bench::Figure;
use p4rack_ctrl::bench::bfrt::{self, PROGRAM, Plan};
use p4rack_ctrl::deploy::{BfrtProgram, Desired};
use p4rack_ctrl::{ConnectOptions, Protocol};
use std::process::ExitCode;

/// Arguments of `p4rack bench bfrt`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Address of the BFRuntime server, HOST:PORT [default: a switch that this command starts]
    #[arg(long, value_name = "ADDR", help_heading = "Switch")]
    bfrt_addr: Option<String>,
    #[command(flatten)]
    identity: connect::Identity,
    /// Number of entries to write in batches
    #[arg(long, default_value_t = 500_000, value_parser = crate::numbers::within::<u64>(1..=1_000_000))]
    entries: u64,
    /// Only measurements whose name contains this: push, unary, batch
    #[arg(long)]
    only: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    match measure(args) {
        Ok(figures) => {
            if args.json {
                println!("{:#}", json_of(&figures));
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(args: &Args) -> Result<Vec<Figure>, String> {
    args.identity.refuse_p4runtimes();
    let at = |addr: &str| args.identity.at(addr.into(), None);
    let (own, addr) = match &args.bfrt_addr {
        Some(addr) => (None, addr.clone()),
        None => {
            let addr = bmv2::free_addr()?;
            (Some(start_with(&["--bfrt-addr", &addr])?), addr)
        }
    };
    let plan = Plan {
        target: ConnectOptions { protocol: Protocol::BfRuntime, ..at(&addr) },
        p4runtime: own.as_ref().map(|(_, p4runtime)| at(p4runtime)),
        desired: program()?,
        entries: args.entries as usize,
        only: args.only.clone(),
    };
    let figures = on_one_thread(bfrt::run(&plan, &mut |figure| tell(figure, args.json)))?;
    measured(&figures, args.only.as_deref())?;
    Ok(figures)
}

/// The benchmark's program, for the embedded switch.
fn program() -> Result<Desired, String> {
    let compiled = p4rack_p4::compile(PROGRAM, "bench_tna.p4", &p4rack_p4::Options::default())
        .map_err(|diagnostics| diagnostics.render(false))?;
    let bf_rt = compiled.bf_rt().map(|schema| schema.to_string()).ok_or("a program for TNA has a schema")?;
    let desired =
        Desired::new(compiled.p4info, PROGRAM.into(), Vec::new()).map_err(|error| error.to_string())?;
    let bfrt = Some(BfrtProgram { name: "bench".into(), bf_rt, ..Default::default() });
    Ok(Desired { bfrt, ..desired })
}
