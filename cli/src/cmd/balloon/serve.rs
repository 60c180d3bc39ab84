//! `p4rack balloon serve`.

use super::{AT, ended};
use crate::cmd::adapter::{GrpcServer, Tls, runtime, text};
use crate::output::Events;
use p4rack_codegen::rack::units::parse_bytes;
use p4rack_fabric::balloon::{Config, Quota};
use p4rack_hosts::balloon::Key;
use p4rack_hosts::balloon::service::{NODES_MAX, Service, serve};
use p4rack_hosts::roce::pool;
use p4rack_hosts::roce::setup::Server;
use p4rack_wire::Nanos;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Set-up service of a board or a pool that lends, HOST:PORT; for several, the option is repeated, always in the same order
    #[arg(long = "node", value_name = "ADDR", required = true)]
    nodes: Vec<String>,
    /// Key file of the memory nodes: 16 to 1 024 bytes, the same as for their --lend
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Time after which a compute node that does not renew loses its extents
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = crate::numbers::within::<u64>(1..=86_400))]
    lease: u64,
    /// Quota of a compute node, e.g. "3=64 MiB:1 GiB": bytes that are kept for it, and bytes that it may hold
    #[arg(long = "quota", value_name = "HOLDER=KEPT:LIMIT", value_parser = quota)]
    quotas: Vec<(u32, Quota)>,
    /// Bytes that each other compute node may hold [default: all]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    limit: Option<u64>,
    #[command(flatten)]
    setup: GrpcServer,
    #[command(flatten)]
    boards: Tls,
    /// Print events as JSON, one object per line
    #[arg(long)]
    json: bool,
}

fn quota(text: &str) -> Result<(u32, Quota), String> {
    let parts = text.split_once('=').and_then(|(holder, of)| Some((holder, of.split_once(':')?)));
    let (holder, (kept, limit)) = parts.ok_or("write HOLDER=KEPT:LIMIT, for example \"3=64 MiB:1 GiB\"")?;
    let quota = Quota { reserved_bytes: parse_bytes(kept.trim())?, limit_bytes: parse_bytes(limit.trim())? };
    Ok((crate::numbers::number(holder.trim())?, quota))
}

/// Quotas by compute node. Errors: one has two.
fn by_holder(quotas: Vec<(u32, Quota)>) -> Result<BTreeMap<u32, Quota>, String> {
    let mut by_holder = BTreeMap::new();
    for (holder, quota) in quotas {
        if by_holder.insert(holder, quota).is_some() {
            return Err(format!("--quota: compute node {holder} has two; write one"));
        }
    }
    Ok(by_holder)
}

/// Runs the command.
pub(super) fn run(args: Args) -> Result<(), String> {
    let (at, tls) = args.setup.check(AT, "can take and give back extents in the name of any compute node")?;
    let nodes = u16::try_from(args.nodes.len()).ok().filter(|nodes| usize::from(*nodes) <= NODES_MAX);
    let nodes = nodes
        .ok_or_else(|| format!("--node: {} memory nodes; expected at most {NODES_MAX}", args.nodes.len()))?;
    let config = Config {
        lease: Nanos::from_secs(args.lease),
        grace: Nanos::from_secs(args.lease),
        quotas: by_holder(args.quotas)?,
        quota: Quota { reserved_bytes: 0, limit_bytes: args.limit.unwrap_or(u64::MAX) },
        ..Config::new(nodes)
    };
    let key = Key::read(&args.key).map_err(|error| format!("--key: {error}"))?;
    let servers = args.nodes.into_iter().map(|addr| Server { addr, tls: args.boards.files() }).collect();
    let events = Events::new(args.json);
    runtime()?.block_on(async {
        let listener = pool::bind(at).await.map_err(text)?;
        let bound = listener.local_addr().map_err(text)?;
        let service = Service::start(servers, &key, config).map_err(text)?;
        events.report(
            "ready",
            json!({ "listens": bound.to_string(), "nodes": nodes }),
            format_args!("ready at {bound}, {nodes} memory nodes"),
        );
        tokio::select! {
            served = serve(listener, service, tls.as_ref()) => served.map_err(text),
            ended = ended() => ended,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_read() {
        let wanted = Quota { reserved_bytes: 2 << 20, limit_bytes: 1 << 30 };
        assert_eq!(quota("3=2 MiB:1 GiB"), Ok((3, wanted)));
        for wrong in ["3", "3=1 MiB", "x=1 MiB:2 MiB", "3=1:2 parsecs"] {
            assert!(quota(wrong).is_err(), "{wrong}");
        }
        let twice = by_holder(vec![(3, wanted), (4, wanted), (3, wanted)]);
        assert!(twice.is_err_and(|wrong| wrong.contains("compute node 3 has two")));
    }
}
