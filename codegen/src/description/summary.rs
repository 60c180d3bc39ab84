//! Output of `p4rack rack check`.

use crate::rack::units::{show_rate, show_size};
use crate::rack::{Queueing, Rack};
use crate::scheme::PROTOCOLS;
use serde_json::{Value, json};
use std::fmt::Write;

/// Output of `p4rack rack check`, in this order.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The rack, its switch and its protocols: lines.
    pub rack: String,
    /// A table of the hosts: its header, and a row for each.
    pub hosts: (Vec<String>, Vec<Vec<String>>),
    /// Workload and warnings: lines.
    pub workload: String,
}

pub(super) fn summary(rack: &Rack) -> Summary {
    let mut out = String::new();
    let switch = &rack.switch;
    // Writing to a string cannot fail, so the results are ignored.
    let _ = writeln!(out, "rack {}: {}, scheme {}", rack.name, hosts(rack.hosts.len()), rack.scheme());
    let _ = writeln!(
        out,
        "switch: {}, device {}, buffer {}, CPU port {}, P4Runtime at {}",
        switch.target.name(),
        switch.device_id,
        show_size(switch.buffer_bytes),
        switch.cpu_port,
        switch.grpc_addr
    );
    if switch.tors > 1 {
        let addrs: Vec<String> = switch.grpc_addrs().map(|addr| addr.to_string()).collect();
        let (tors, addrs) = (switch.tors, addrs.join(" and "));
        let _ = writeln!(out, "{tors} such switches, P4Runtime at {addrs}; each host has a link to each");
    }
    if switch.queueing == Queueing::Fair {
        let _ = writeln!(out, "queueing: fair, by ingress port");
    }
    for protocol in &rack.protocols {
        let _ = writeln!(out, "{}: {}", protocol.definition().section(), protocol.describe(rack));
    }
    let columns = |host| rack.protocols.iter().filter_map(move |protocol| protocol.column(rack, host));
    let mut header = ["host", "port", "MAC", "IP", "rate"].map(str::to_owned).to_vec();
    header.extend(columns(&rack.hosts[0]).map(|(head, _)| head.to_owned()));
    header.extend(["goodput ceiling", "while sending"].map(str::to_owned));
    let mut rows = Vec::new();
    for host in &rack.hosts {
        let mut row = vec![
            host.name.clone(),
            host.port.to_string(),
            host.mac.to_string(),
            format!("{}/{}", host.ip, host.prefix),
            show_rate(host.rate_bps),
        ];
        row.extend(columns(host).map(|(_, cell)| cell));
        row.push(show_rate(rack.goodput_ceiling_bps(host)));
        row.push(show_rate(rack.send_ceiling_bps(host)));
        rows.push(row);
    }
    let head = std::mem::take(&mut out);
    if let Some(workload) = &rack.workload {
        let schemes: Vec<String> = workload.schemes.iter().map(|scheme| scheme.name()).collect();
        let load = match &workload.store {
            None => format!("at {} %", workload.load_percent),
            Some(store) => {
                let mixes = store.mixes.iter().map(|mix| mix.name()).collect::<Vec<_>>().join(" ");
                format!("with {} records of {} bytes, mixes {mixes},", store.records, store.value_bytes)
            }
        };
        let _ = writeln!(
            out,
            "workload: {} {} → {} {load} for {} s, schemes {}",
            workload.kind.name(),
            workload.senders.join(" "),
            workload.receivers.join(" "),
            workload.duration_s,
            schemes.join(" ")
        );
        if let Some(store) = &workload.store {
            let _ = writeln!(out, "  store: {} operations of each client under way", store.depth);
        }
        if let Some(log) = rack.log() {
            let engine = log.engine.as_deref().unwrap_or("–");
            let percent = log.memory_percent;
            let _ = writeln!(out, "  log: {percent} % of the records' room is local, spare host {engine}");
        }
        if let Some(cache) = rack.cache() {
            let engine = cache.engine.as_deref().unwrap_or("–");
            let percents: Vec<String> = cache.local_percent.iter().map(u32::to_string).collect();
            let (percents, policy) = (percents.join(", "), &cache.policy);
            let _ = writeln!(
                out,
                "  cache: {percents} % of each region are local, policy {policy}, spare host {engine}"
            );
            let (extent, lease) = (show_size(cache.pool.extent_bytes), cache.pool.lease_s);
            let _ = writeln!(
                out,
                "  pool: memory of {}, extents of {extent}, leases of {lease} s",
                cache.pool.memory.join(" ")
            );
        }
        if let Some(rpc) = &workload.rpc {
            let _ =
                writeln!(out, "  rpc: {} reads {:?} bytes from {}", rpc.client, rpc.value_bytes, rpc.server);
        }
        if let Some(kill) = &workload.kill {
            let _ = writeln!(out, "  kill: {} after the measured run", kill.host);
        }
        if let Some(tor) = workload.kill_tor {
            let _ = writeln!(out, "  kill: switch {tor} of {} during the run", switch.tors);
        }
    }
    for warning in rack.warnings() {
        let _ = writeln!(out, "warning: {warning}");
    }
    Summary { rack: head, hosts: (header, rows), workload: out }
}

pub(super) fn to_json(rack: &Rack) -> Value {
    let mut value = json!({
        "name": rack.name,
        "switch": rack.switch,
        "hosts": rack.hosts,
        "workload": rack.workload,
        "scheme": rack.scheme(),
        "warnings": rack.warnings(),
    });
    for protocol in PROTOCOLS {
        value[protocol.section()] = Value::Null;
    }
    for protocol in &rack.protocols {
        value[protocol.definition().section()] = protocol.parameters();
    }
    for (position, entry) in value["hosts"].as_array_mut().into_iter().flatten().enumerate() {
        let host = &rack.hosts[position];
        entry["goodput_ceiling_bps"] = json!(rack.goodput_ceiling_bps(host));
        entry["send_ceiling_bps"] = json!(rack.send_ceiling_bps(host));
        for protocol in &rack.protocols {
            protocol.host_constants(rack, position, entry);
        }
    }
    value
}

fn hosts(count: usize) -> String {
    if count == 1 { "1 host".to_owned() } else { format!("{count} hosts") }
}
