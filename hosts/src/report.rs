//! An agent's statistics as JSON.

use crate::agent::Agent;
use p4rack_fabric::pl2::{Delay, Scheme};
use p4rack_netdev::{clock, link};
use p4rack_wire::Nanos;
use serde_json::{Map, Value, json};

/// A delay's figures, nanoseconds.
fn delay(delay: &Delay) -> Value {
    json!({
        "samples": delay.samples(),
        "min_ns": delay.min().unwrap_or(Nanos::ZERO).0,
        "mean_ns": delay.mean().0,
        "p50_ns": delay.percentile(500).0,
        "p99_ns": delay.percentile(990).0,
        "p999_ns": delay.percentile(999).0,
        "max_ns": delay.max().0,
    })
}

fn names(pairs: impl Iterator<Item = (&'static str, u64)>) -> Value {
    Value::Object(pairs.map(|(name, count)| (name.to_owned(), count.into())).collect::<Map<_, _>>())
}

/// Everything that is known about a running agent.
pub(crate) fn of(agent: &mut Agent) -> Value {
    let stats = agent.endpoint.stats();
    let config = agent.endpoint.config();
    let scheme = match config.scheme {
        Scheme::Off => "l2",
        Scheme::Counter => "pl2-counter",
        Scheme::Clock => "pl2-clock",
    };
    let endpoint = json!({
        "counters": names(stats.counters.iter()),
        "drops": names(stats.drops()),
        "app_frames_dropped": stats.app_frames_dropped(),
        "rsv_grt": delay(&stats.rsv_grt),
        "lateness": delay(&stats.lateness),
        "queue_max_frames": stats.queue_max_frames,
        "backlog_frames": agent.endpoint.backlog_frames(),
    });
    let link_info = agent.links.get(&agent.config.interface).ok();
    let tap_info = agent.links.get(&agent.config.tap).ok();
    json!({
        "host": agent.config.name,
        "mac": config.mac.to_string(),
        "scheme": scheme,
        "running_ns": clock::now().saturating_sub(agent.started).0,
        "cpu_ns": clock::thread_cpu().0,
        "wakeups": agent.counters.wakeups,
        "wake_late": delay(&agent.wake_late),
        "scheduling": agent.granted,
        "congestion_control": link::sysctl("ipv4/tcp_congestion_control").ok(),
        "read_errors": agent.counters.read_errors,
        "endpoint": endpoint,
        "link": {
            "interface": agent.config.interface,
            "socket": agent.link.stats(),
            "receive_buffer_bytes": agent.link.receive_buffer_bytes(),
            "kernel": link_info,
        },
        "tap": {
            "interface": agent.config.tap,
            "kernel": tap_info,
            "refused": agent.counters.tap_refused,
        },
    })
}
