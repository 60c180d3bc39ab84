//! What `p4rack rack check` prints.

use super::units::{show_rate, show_size};
use super::{Rack, Scheme};
use serde_json::{Value, json};
use std::fmt::Write;

pub(super) fn summary(rack: &Rack) -> String {
    let mut out = String::new();
    let switch = &rack.switch;
    // Writing to a string can't fail, so the results are of no interest.
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
    if let Some(pl2) = &rack.pl2 {
        let _ = writeln!(
            out,
            "pl2: K {} slots{}, t {}, T {}, VLANs {}–{}, EtherType {}, {}, {} reservation(s) in flight of {} lane(s), slot headroom {} %",
            pl2.k,
            if pl2.slot_parts > 1 { format!(" of {} parts", pl2.slot_parts) } else { String::new() },
            pl2.t_slots,
            pl2.drop_threshold_slots,
            pl2.vid,
            pl2.vid + u16::from(rack.cells_a_pair()) - 1,
            pl2.ether_type,
            if pl2.shim { "shim" } else { "no shim" },
            pl2.reservations_in_flight,
            pl2.lanes,
            pl2.slot_headroom_percent
        );
    }
    let scheme = rack.scheme();
    let slot_of =
        |i: usize| if scheme == Scheme::L2 { "-".to_owned() } else { rack.hosts[i].slot.to_string() };
    let header = ["host", "port", "MAC", "IP", "rate", "slot", "goodput ceiling", "while sending"];
    let mut rows = vec![header.map(str::to_owned)];
    for (i, host) in rack.hosts.iter().enumerate() {
        rows.push([
            host.name.clone(),
            host.port.to_string(),
            host.mac.to_string(),
            format!("{}/{}", host.ip, host.prefix),
            show_rate(host.rate_bps),
            slot_of(i),
            show_rate(rack.goodput_ceiling_bps(host, scheme)),
            show_rate(rack.send_ceiling_bps(host, scheme)),
        ]);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 8] = std::array::from_fn(width);
    for row in &rows {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        let _ = writeln!(out, "  {}", cells.join("  ").trim_end());
    }
    if let Some(workload) = &rack.workload {
        let schemes: Vec<&str> = workload.schemes.iter().map(|scheme| scheme.name()).collect();
        let _ = writeln!(
            out,
            "workload: incast {} → {} at {} % for {} s, schemes {}",
            workload.senders.join(" "),
            workload.receiver,
            workload.load_percent,
            workload.duration_s,
            schemes.join(" ")
        );
        if let Some(rpc) = &workload.rpc {
            let _ =
                writeln!(out, "  rpc: {} reads {:?} bytes from {}", rpc.client, rpc.value_bytes, rpc.server);
        }
        if let Some(kill) = &workload.kill {
            let _ = writeln!(out, "  kill: {} after the measured run", kill.host);
        }
    }
    for warning in rack.warnings() {
        let _ = writeln!(out, "warning: {warning}");
    }
    out
}

pub(super) fn to_json(rack: &Rack) -> Value {
    let scheme = rack.scheme();
    let mut value = serde_json::to_value(rack).unwrap_or_default();
    value["scheme"] = json!(scheme);
    value["warnings"] = json!(rack.warnings());
    for (host, entry) in rack.hosts.iter().zip(value["hosts"].as_array_mut().into_iter().flatten()) {
        entry["goodput_ceiling_bps"] = json!(rack.goodput_ceiling_bps(host, scheme));
        entry["send_ceiling_bps"] = json!(rack.send_ceiling_bps(host, scheme));
    }
    value
}

fn hosts(count: usize) -> String {
    if count == 1 { "1 host".to_owned() } else { format!("{count} hosts") }
}
