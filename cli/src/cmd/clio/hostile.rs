//! `p4rack clio hostile`.

use super::Board;
use crate::numbers::median;
use crate::output::{Events, event_line};
use p4rack_hosts::clio::Patience;
use p4rack_hosts::clio::hostile::{Attack, Beside, Kept, Load, measure};
use p4rack_lab::rows::Rows;
use p4rack_report::text::micros;
use p4rack_wire::Nanos;
use serde_json::json;
use std::net::ToSocketAddrs;

/// The part of its load that an honest client keeps.
const KEPT_PERCENT: f64 = 90.0;

#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  p4rack clio hostile
  p4rack clio hostile --attack writes --attack deaf --seconds 5 --json")]
pub(super) struct Args {
    #[command(flatten)]
    board: Board,
    /// allocations, bytes, processes, writes, damaged, forged or deaf; several times for several [default: all]
    #[arg(long, value_name = "ATTACK")]
    attack: Vec<Attack>,
    /// Seconds of a measurement
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = crate::cmd::finite)]
    seconds: f64,
    /// The honest client's load, in percent of the operations that it makes beside a second honest client if it makes as many as it can.
    /// Above 100 it asks for more than its share
    #[arg(long, value_name = "N", default_value_t = 50.0, value_parser = crate::cmd::finite)]
    load: f64,
    /// Measurements beside each attack, each in turn with one beside a second honest client; their medians count
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = crate::numbers::within::<u16>(1..=1_000))]
    rounds: u16,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), String> {
    let attacks = match args.attack.as_slice() {
        [] => Attack::ALL.map(|(attack, _)| attack).to_vec(),
        named => named.to_vec(),
    };
    let server = args.board.server();
    let found = server.addr.to_socket_addrs().map_err(|error| format!("--board {}: {error}", server.addr))?;
    if found.into_iter().any(|addr| !addr.ip().is_loopback()) {
        return Err(format!(
            "--board {}: a board elsewhere takes the attack and the honest client for one host; run this beside a board on \
             loopback, on the board's machine",
            server.addr
        ));
    }
    let time = Nanos((args.seconds.clamp(0.001, 86_400.0) * 1e9) as u64);
    let once = |beside, load| {
        let patience = Patience::default();
        measure(&server, beside, load, patience, time).map_err(|error| args.board.said(error))
    };
    Events::new(args.board.json).report(
        "ready",
        json!({ "board": args.board.board, "attacks": attacks.len() }),
        format_args!("measuring {} beside {} attacks", args.board.board, attacks.len()),
    );
    let mut rows = Rows::new(&[
        "attack",
        ">all it can, beside an honest client",
        ">beside the attack",
        ">load",
        ">kept of it",
        ">p99",
        ">p99 beside an honest client",
        ">failed",
        ">packets or calls",
    ]);
    let mut broken = Vec::new();
    for attack in attacks {
        let (honest, hostile) = (Beside::Honest(attack), Beside::Attack(attack));
        let (mut all, mut all_beside, mut calm, mut beside) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for _ in 0..args.rounds {
            all.push(once(honest, Load::All)?);
            all_beside.push(once(hostile, Load::All)?);
        }
        let of = |runs: &[(Kept, u64)], value: fn(&Kept) -> f64| {
            median(runs.iter().map(|(kept, _)| value(kept))).ok_or("nothing was measured".to_owned())
        };
        let rate = |runs: &[_]| of(runs, |kept| kept.per_s);
        let p99 = |runs: &[_]| of(runs, |kept| kept.latency.at(0.99) as f64);
        let load = rate(&all)? * args.load.max(0.0) / 100.0;
        if load <= 0.0 {
            return Err(format!(
                "{attack}: no operation ended beside an honest client, or --load is 0: give more --seconds"
            ));
        }
        for _ in 0..args.rounds {
            calm.push(once(honest, Load::PerSecond(load))?);
            beside.push(once(hostile, Load::PerSecond(load))?);
        }
        let failed = |runs: &[(Kept, u64)]| runs.iter().map(|(kept, _)| kept.failed).sum::<u64>();
        let undisturbed = failed(&all) + failed(&calm);
        if undisturbed > 0 {
            return Err(format!(
                "{attack}: {undisturbed} operations failed beside an honest client: nothing to compare with"
            ));
        }
        let failed = failed(&all_beside) + failed(&beside);
        let sent: u64 = all_beside.iter().chain(&beside).map(|(_, sent)| sent).sum();
        let (before, after) = (rate(&all)?, rate(&all_beside)?);
        let (calm_per_s, per_s) = (rate(&calm)?, rate(&beside)?);
        let (before_p99, after_p99) = (p99(&calm)?, p99(&beside)?);
        let percent = 100.0 * per_s / calm_per_s;
        if percent < KEPT_PERCENT || failed > 0 {
            broken.push(attack.to_string());
        }
        if args.board.json {
            let fields = json!({
                "attack": attack.to_string(),
                "all_honest_per_s": before,
                "all_per_s": after,
                "load_per_s": load,
                "honest_per_s": calm_per_s,
                "per_s": per_s,
                "kept_percent": percent,
                "honest_p99_us": before_p99 / 1e3,
                "p99_us": after_p99 / 1e3,
                "failed": failed,
                "sent": sent,
            });
            println!("{}", event_line("attack", fields));
        }
        rows.push(vec![
            attack.to_string(),
            format!("{before:.0}/s"),
            format!("{after:.0}/s"),
            format!("{load:.0}/s"),
            format!("{percent:.0} %"),
            micros(after_p99 / 1e3),
            micros(before_p99 / 1e3),
            failed.to_string(),
            sent.to_string(),
        ]);
    }
    if !args.board.json {
        print!("{}", rows.text());
    }
    match broken.as_slice() {
        [] => Ok(()),
        broken => Err(format!(
            "beside {} an honest client keeps less than {KEPT_PERCENT:.0} % of its load, or some operations fail",
            broken.join(", ")
        )),
    }
}
