//! `p4rack generator`.

use super::connect;
use p4rack_ctrl::generator::Generators;
use p4rack_ctrl::{CtrlError, Session};
use p4rack_p4rt::p4rack::generator::v1::{Config, Status};
use serde_json::json;
use std::process::ExitCode;

/// Arguments of `p4rack generator`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Add a generator, or replace and restart it; requires being primary of the default role
    Set {
        /// Number of the generator
        number: u32,
        /// The frame in hexadecimal, without FCS
        #[arg(long, value_name = "HEX", value_parser = hex)]
        frame: Frame,
        /// Port on which it arrives; not the CPU port
        #[arg(long)]
        port: u16,
        /// Nanoseconds between frames
        #[arg(long, value_name = "NS", default_value_t = 0)]
        period_ns: u64,
        /// Number of frames; 0 for endless
        #[arg(long, default_value_t = 1)]
        count: u64,
        /// Nanoseconds before the first frame
        #[arg(long, value_name = "NS", default_value_t = 0)]
        delay_ns: u64,
        #[command(flatten)]
        switch: connect::Args,
    },
    /// Remove a generator; requires being primary of the default role
    Remove {
        /// Number of the generator
        number: u32,
        #[command(flatten)]
        switch: connect::Args,
    },
    /// List all generators with their statistics
    List {
        #[command(flatten)]
        switch: connect::Args,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// A frame from hex digits.
#[derive(Clone, Debug)]
struct Frame(Vec<u8>);

fn hex(text: &str) -> Result<Frame, String> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let value = |digit: u8| char::from(digit).to_digit(16).map(|digit| digit as u8);
    if digits.is_empty() || !digits.len().is_multiple_of(2) {
        return Err(format!("{} hex digits are not whole bytes", digits.len()));
    }
    let bytes = digits.chunks_exact(2).map(|pair| Some(value(pair[0])? << 4 | value(pair[1])?));
    bytes.collect::<Option<_>>().map(Frame).ok_or_else(|| "a frame is written in hex digits".into())
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    match args.command {
        Command::Set { number, frame, port, period_ns, count, delay_ns, switch } => {
            let config =
                Config { number, frame: frame.0, ingress_port: port.into(), period_ns, count, delay_ns };
            finish(connect::block_on(async {
                Generators::of(&*Session::connect(switch.for_switch(None)).await?).set(config).await
            }))
        }
        Command::Remove { number, switch } => finish(connect::block_on(async {
            Generators::of(&*Session::connect(switch.for_switch(None)).await?).remove(number).await
        })),
        Command::List { switch, json } => {
            let all = connect::block_on(async {
                Generators::connect(&switch.for_switch(None)).await?.list().await
            });
            match all {
                Ok(all) => {
                    list(&all, json);
                    ExitCode::SUCCESS
                }
                Err(error) => connect::fail(&error, json),
            }
        }
    }
}

fn finish(result: Result<(), CtrlError>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => connect::fail(&error, false),
    }
}

fn list(all: &[Status], as_json: bool) {
    let configured = all.iter().filter_map(|status| Some((status, status.config.as_ref()?)));
    if as_json {
        let all: Vec<_> = configured
            .map(|(status, config)| {
                json!({
                    "number": config.number, "port": config.ingress_port, "bytes": config.frame.len(),
                    "period_ns": config.period_ns, "count": config.count, "sent": status.sent,
                    "skipped": status.skipped, "active": status.active,
                })
            })
            .collect();
        println!("{:#}", json!(all));
        return;
    }
    for (status, config) in configured {
        let count = if config.count == 0 { "without end".into() } else { format!("{} frames", config.count) };
        println!(
            "generator {}: port {}, {} bytes every {} ns, {count}: {} sent, {} skipped, {}",
            config.number,
            config.ingress_port,
            config.frame.len(),
            config.period_ns,
            status.sent,
            status.skipped,
            if status.active { "active" } else { "done" }
        );
    }
}
