//! The switch's statistics for Prometheus.

use p4rack_netdev::exporter::Exposition;
use p4rack_p4rt::p4rack::telemetry::v1::{GetStatsResponse, PortStats};

/// Renders statistics in the text exposition format.
pub fn exposition(stats: &GetStatsResponse) -> String {
    let mut text = Exposition::default();
    let mut ports = |name, help, kind, value: fn(&PortStats) -> u64| {
        text.family(name, help, kind);
        for port in &stats.ports {
            text.sample(name, &[("port", &port.port.to_string())], value(port) as f64);
        }
    };
    ports("p4rack_switch_received_frames_total", "Frames received", "counter", |port| port.rx_frames);
    ports("p4rack_switch_received_bytes_total", "Bytes received, without FCS", "counter", |port| {
        port.rx_bytes
    });
    ports("p4rack_switch_sent_frames_total", "Frames sent", "counter", |port| port.tx_frames);
    ports("p4rack_switch_sent_bytes_total", "Bytes sent, without FCS", "counter", |port| port.tx_bytes);
    ports("p4rack_switch_queue_bytes", "Bytes queued at the port", "gauge", |port| port.queue_bytes);
    ports("p4rack_switch_queue_max_bytes", "Maximum bytes queued at the port", "gauge", |port| {
        port.queue_max_bytes
    });
    ports("p4rack_switch_rate_bps", "Rate of the port, 0 is no limit", "gauge", |port| port.rate_bps);
    const DROPS: &str = "p4rack_switch_dropped_frames_total";
    text.family(DROPS, "Frames dropped, by reason; port is empty for those of no port's queue", "counter");
    for (reason, total) in &stats.drops {
        let at_ports = stats
            .ports
            .iter()
            .filter_map(|port| port.drops.get(reason).map(|count| (port.port.to_string(), *count)));
        let mut elsewhere = *total;
        for (port, count) in at_ports {
            elsewhere = elsewhere.saturating_sub(count);
            text.sample(DROPS, &[("port", &port), ("reason", reason)], count as f64);
        }
        text.sample(DROPS, &[("port", ""), ("reason", reason)], elsewhere as f64);
    }
    let (buffer, most) = (stats.buffer_bytes as f64, stats.buffer_max_bytes as f64);
    text.single("p4rack_switch_buffer_bytes", "Bytes in the shared buffer", "gauge", buffer);
    text.single("p4rack_switch_buffer_max_bytes", "Maximum bytes in the shared buffer", "gauge", most);
    let lost = stats.packet_ins_lost as f64;
    text.single("p4rack_switch_packet_ins_lost_total", "Packets delivered to no controller", "counter", lost);
    let turned_away = stats.connections_turned_away as f64;
    const AWAY: &str = "p4rack_switch_connections_turned_away_total";
    text.single(AWAY, "Connections closed before they were let in", "counter", turned_away);
    const REFUSED: &str = "p4rack_switch_calls_refused_total";
    let refused = stats.calls_refused as f64;
    text.single(REFUSED, "Calls rejected because of limits per client", "counter", refused);
    text.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_counted_once_each() {
        let port = PortStats {
            port: 3,
            rx_frames: 7,
            drops: [("buffer".to_owned(), 2)].into(),
            ..Default::default()
        };
        let stats = GetStatsResponse {
            ports: vec![port],
            drops: [("buffer".to_owned(), 2), ("program".to_owned(), 5)].into(),
            ..Default::default()
        };
        let text = exposition(&stats);
        for line in [
            "p4rack_switch_received_frames_total{port=\"3\"} 7\n",
            "p4rack_switch_dropped_frames_total{port=\"3\",reason=\"buffer\"} 2\n",
            "p4rack_switch_dropped_frames_total{port=\"\",reason=\"buffer\"} 0\n",
            "p4rack_switch_dropped_frames_total{port=\"\",reason=\"program\"} 5\n",
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
    }
}
