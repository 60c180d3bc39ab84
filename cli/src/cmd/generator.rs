//! `p4rack generator`.

use super::connect;
use p4rack_ctrl::bfrt::{GeneratedFrames, Timing};
use p4rack_ctrl::generator::Generators;
use p4rack_ctrl::{ConnectOptions, CtrlError, Protocol, Session, bfrt};
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
        #[arg(value_parser = crate::numbers::number::<u32>)]
        number: u32,
        /// The frame in hexadecimal, without FCS. Over BFRuntime the device puts its header of 6 bytes in front of it
        #[arg(long, value_name = "HEX", value_parser = hex)]
        frame: Frame,
        /// Port on which it arrives; not the CPU port
        #[arg(long, value_parser = crate::numbers::number::<u16>)]
        port: u16,
        /// Nanoseconds between frames
        #[arg(long, value_name = "NS", default_value_t = 0, value_parser = crate::numbers::number::<u64>)]
        period_ns: u64,
        /// Number of frames; 0 for endless
        #[arg(long, default_value_t = 1, value_parser = crate::numbers::number::<u64>)]
        count: u64,
        /// Nanoseconds before the first frame
        #[arg(long, value_name = "NS", default_value_t = 0, value_parser = crate::numbers::number::<u64>)]
        delay_ns: u64,
        #[command(flatten)]
        switch: connect::Either,
        /// Print the resulting generator as JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a generator; requires being primary of the default role
    Remove {
        /// Number of the generator
        #[arg(value_parser = crate::numbers::number::<u32>)]
        number: u32,
        /// Over BFRuntime: the generator's pipe
        #[arg(long, default_value_t = 0, requires = "bfrt_addr", value_parser = crate::numbers::number::<u32>)]
        pipe: u32,
        #[command(flatten)]
        switch: connect::Either,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List all generators with their statistics
    List {
        #[command(flatten)]
        switch: connect::Either,
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
        Command::Set { number, frame, port, period_ns, count, delay_ns, switch, json } => {
            let config =
                Config { number, frame: frame.0, ingress_port: port.into(), period_ns, count, delay_ns };
            let set = connect::block_on(set(config, switch.for_switch(None)));
            finish(set, json, |found| list(&found, json))
        }
        Command::Remove { number, pipe, switch, json } => {
            let removed = connect::block_on(remove(number, pipe, switch.for_switch(None)));
            finish(removed, json, |()| match json {
                true => println!("{:#}", json!({ "removed": number })),
                false => println!("removed generator {number}"),
            })
        }
        Command::List { switch, json } => {
            finish(connect::block_on(all(switch.for_switch(None))), json, |all| list(&all, json))
        }
    }
}

/// Sets a generator and returns its state then.
async fn set(config: Config, target: ConnectOptions) -> Result<Vec<Status>, CtrlError> {
    let (number, port) = (config.number, config.ingress_port);
    if target.protocol == Protocol::P4Runtime {
        Generators::of(&*Session::connect(target.clone()).await?).set(config).await?;
    } else {
        let timing = timing(&config)?;
        let mut link = bfrt::Link::connect(target.clone()).await?;
        link.schema().await?;
        link.generate(number, port, &config.frame, &timing).await?;
    }
    let is_it = |status: &Status| {
        status.config.as_ref().is_some_and(|config| config.number == number && config.ingress_port == port)
    };
    Ok(all(target).await?.into_iter().filter(is_it).collect())
}

/// The device's generator's timing for a configuration.
fn timing(config: &Config) -> Result<Timing, CtrlError> {
    let ns = |what: &str, ns: u64| {
        let long = || CtrlError::Input(format!("{what}: {ns} ns, and the device's timers have 32 bits"));
        u32::try_from(ns).map_err(|_| long())
    };
    let (period_ns, delay_ns) = (ns("--period-ns", config.period_ns)?, ns("--delay-ns", config.delay_ns)?);
    match config.count {
        0 if delay_ns > 0 => Err(CtrlError::Input(
            "over BFRuntime, frames without end begin after their first period: leave --delay-ns out".into(),
        )),
        0 => Ok(Timing::Endless { period_ns }),
        count => Ok(Timing::Once { after_ns: delay_ns, count, gap_ns: period_ns }),
    }
}

async fn remove(number: u32, pipe: u32, target: ConnectOptions) -> Result<(), CtrlError> {
    if target.protocol == Protocol::P4Runtime {
        return Generators::of(&*Session::connect(target).await?).remove(number).await;
    }
    let mut link = bfrt::Link::connect(target).await?;
    link.schema().await?;
    if !link.generated(pipe).await?.iter().any(|app| app.number == number) {
        return Err(CtrlError::Input(format!(
            "application {number} of pipe {pipe} is not in use; p4rack generator list shows which are"
        )));
    }
    link.stop_generating(pipe, number).await
}

async fn all(target: ConnectOptions) -> Result<Vec<Status>, CtrlError> {
    if target.protocol == Protocol::P4Runtime {
        return Generators::connect(&target).await?.list().await;
    }
    let mut link = bfrt::Link::to_read(target).await?;
    link.schema().await?;
    let mut all = Vec::new();
    for pipe in 0..link.pipes().await? {
        all.extend(link.generated(pipe).await?.iter().map(status));
    }
    Ok(all)
}

/// An application of the device as a generator of the embedded switch.
fn status(app: &GeneratedFrames) -> Status {
    let (period_ns, count, delay_ns) = match &app.timing {
        Timing::Once { after_ns, count, gap_ns } => (*gap_ns, *count, *after_ns),
        Timing::Endless { period_ns } => (*period_ns, 0, 0),
        Timing::Other(_) => (0, 0, 0),
    };
    let config = Config {
        number: app.number,
        // Only its length is known, and shown.
        frame: vec![0; app.bytes],
        ingress_port: app.port,
        period_ns: period_ns.into(),
        count,
        delay_ns: delay_ns.into(),
    };
    Status { config: Some(config), sent: app.sent, skipped: 0, active: count == 0 || app.sent < count }
}

fn finish<T>(result: Result<T, CtrlError>, as_json: bool, show: impl FnOnce(T)) -> ExitCode {
    match result {
        Ok(done) => {
            show(done);
            ExitCode::SUCCESS
        }
        Err(error) => connect::fail(&error, as_json),
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
