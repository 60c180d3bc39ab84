//! Sources of the figures: no missing value counts as zero, and every loss is counted once.

use super::edges::*;
use super::losses::*;
use super::*;
use crate::ends::{End, LINK_IN, LINK_OUT};
use crate::network::InterfaceCounts;
use crate::running::parse_report;
use p4rack_codegen::scheme::{Cost, DropReason};
use p4rack_hosts::report::Report;
use serde_json::Value;

/// A report of an agent that has sent 100 frames and got 50, everything else being 0.
fn report() -> Value {
    let delay = serde_json::json!({
        "samples": 0, "min_ns": 0, "mean_ns": 0, "p50_ns": 0, "p99_ns": 0, "p999_ns": 0, "max_ns": 0,
    });
    let kernel = serde_json::json!({
        "index": 2, "mtu": 1500, "mac": "02:00:00:00:00:01", "up": true, "carries": true, "tx_queue_frames": 500,
        "rx_frames": 0, "tx_frames": 0, "rx_dropped": 0, "tx_dropped": 3,
    });
    serde_json::json!({
        "host": "h1", "mac": "02:00:00:00:00:01", "scheme": "pl2-clock", "running_ns": 1, "cpu_ns": 1, "wakeups": 1,
        "wake_late": delay, "scheduling": { "fifo_priority": null, "memory_locked": false },
        "congestion_control": "cubic", "read_errors": 0, "links_gone": 0,
        "endpoint": {
            "counters": { "link_in": 50, "link_out": 100 }, "drops": { "queue_full": 7 }, "app_frames_dropped": 7,
            "rsv_grt": delay, "lateness": delay, "queue_max_frames": 0, "backlog_frames": 0,
        },
        "link": {
            "interface": "eth0", "receive_buffer_bytes": 1, "kernel": kernel,
            "socket": {
                "received": 0, "kernel_drops": 0, "too_long": 0, "checksums_finished": 0, "sent": 0, "send_full": 0,
                "send_refused": 0,
            },
        },
        "tap": { "interface": "app0", "kernel": kernel, "refused": 2 },
    })
}

fn parsed(report: &Value) -> Result<Report, LabError> {
    parse_report("h1", &report.to_string())
}

/// Every field of an object, by the path that leads to it; not inside the maps of names.
fn paths(value: &Value, prefix: &str, out: &mut Vec<String>) {
    for (key, inner) in value.as_object().into_iter().flatten() {
        let path = format!("{prefix}/{key}");
        if !["counters", "drops"].contains(&key.as_str()) {
            paths(inner, &path, out);
        }
        out.push(path);
    }
}

#[test]
fn a_report_without_any_one_of_its_fields_is_refused_by_name() {
    let whole = report();
    assert!(parsed(&whole).is_ok(), "{:?}", parsed(&whole));
    let mut all = Vec::new();
    paths(&whole, "", &mut all);
    assert!(all.len() > 60, "{all:?}");
    for path in all {
        // An `Option` inside what the kernel granted is the kernel's answer and stays.
        if path == "/scheduling/fifo_priority" {
            continue;
        }
        let (parent, key) = path.rsplit_once('/').unwrap();
        let mut broken = whole.clone();
        broken.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(key);
        let error = parsed(&broken).expect_err(&path).to_string();
        assert!(error.contains("agent of h1") && error.contains(&format!("`{key}`")), "{path}: {error}");
    }
}

#[test]
fn a_counter_that_was_renamed_is_an_error_and_no_zero() {
    for name in ["link_in", "link_out"] {
        let mut renamed = report();
        let counters = renamed.pointer_mut("/endpoint/counters").unwrap().as_object_mut().unwrap();
        let value = counters.remove(name).unwrap();
        counters.insert(format!("{name}_frames"), value);
        let error = End::of_agent(0, &parsed(&renamed).unwrap(), 0).unwrap_err();
        assert!(error.to_string().contains(&format!("`{name}`")), "{error}");
    }
    let mut gone = report();
    gone["tap"]["kernel"] = Value::Null;
    let error = End::of_agent(0, &parsed(&gone).unwrap(), 0).unwrap_err();
    assert!(error.to_string().contains("tap.kernel"), "{error}");
}

#[test]
fn the_names_that_are_read_are_those_that_agents_write() {
    let counters = p4rack_fabric::common::Counters::default();
    for name in [LINK_IN, LINK_OUT] {
        assert!(counters.iter().any(|(known, _)| known == name), "{name}");
    }
}

#[test]
fn what_one_end_of_a_link_sent_and_the_other_never_saw_is_lost() {
    let (mut links, mut hosts) = (Counts::new(), Counts::new());
    let before = PortStats { rx_frames: 40, tx_frames: 30, ..PortStats::default() };
    let after = PortStats { rx_frames: 55, tx_frames: 21, ..PortStats::default() };
    for _ in 0..2 {
        let end = End::of_agent(0, &parsed(&report()).unwrap(), 0).unwrap();
        add_host(&end, [&before, &after], &mut links, &mut hosts);
    }
    // 100 sent, 95 seen; 51 sent, 50 seen; twice.
    assert_eq!(links, [("link.to_switch".to_owned(), 10), ("link.to_host".to_owned(), 2)].into());
    let expected = [("agent.queue_full", 14), ("tap.transmit_queue", 6), ("tap.refused", 4)];
    assert_eq!(hosts, expected.map(|(name, count)| (name.to_owned(), count)).into());
}

#[test]
fn what_the_program_drops_is_counted_once_and_by_its_own_reason() {
    let stats = |drops: &[(&str, u64)]| SwitchStats {
        drops: drops.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
        ..SwitchStats::default()
    };
    let early = stats(&[("ingress_drop", 4), ("buffer_full", 10)]);
    let late = stats(&[("ingress_drop", 8), ("buffer_full", 1), ("no_port", 0)]);
    let costs = |name, cost| DropReason::new(name, "").costs(cost);
    let again =
        [costs("again", Cost::SentAgain), costs("soon", Cost::SentAgain), costs("used", Cost::Nothing)];
    let program = [("binding", 5), ("again", 2), ("soon", 4), ("used", 0)];
    let program = program.map(|(name, count)| (name.to_owned(), count)).into();
    let counts = combined(program, [&early, &late], &again).unwrap();
    let lost = [("program.binding", 5), ("switch.buffer_full", 11), ("switch.ingress_drop", 1)];
    assert_eq!(counts.lost, lost.map(|(name, count)| (name.to_owned(), count)).into());
    assert_eq!((counts.unsolicited.values().sum::<u64>(), counts.fabric()), (6, 17));
    let program = || [("binding".to_owned(), 9)].into();
    let more = combined(program(), [&early, &late], &[]).unwrap();
    assert_eq!(more.since(&counts)["program.binding"], 4);
    let error = combined(program(), [&early, &late], &again).unwrap_err().to_string();
    assert!(error.contains("no `again`"), "{error}");
}

#[test]
fn counts_that_never_stand_still_are_no_result() {
    let mut read = 0;
    let mut until = |last: u64| {
        read = 0;
        unchanged(vec![(0, 0)], || {
            read += 1;
            Ok((vec![(read.min(last), 7)], read))
        })
    };
    assert_eq!(until(3).unwrap(), 4, "the reading that was the same as the third");
    let error = until(u64::MAX).unwrap_err().to_string();
    assert!(error.contains("still change"), "{error}");
}

#[test]
fn goodput_is_payload_over_the_time_between_the_readings() {
    let at = |at_ns, rx_frames, rx_bytes| Snapshot {
        at_ns,
        counts: InterfaceCounts { rx_frames, rx_bytes, tx_dropped: 0 },
    };
    // 1,001 frames of 1,500 bytes and their headers in 0.12 s: 100 Mb/s, the first one left out.
    let (before, after) = (at(5, 10, 7_000), at(120_000_005, 1_011, 7_000 + 1_001 * 1_514));
    assert_eq!(goodput_bps(&before, &after), 100_000_000);
    assert_eq!(goodput_bps(&before, &before), 0);
}

#[test]
fn of_the_readings_at_an_edge_the_one_that_is_least_behind_counts() {
    let at = |at_ns, frames: u64| Snapshot {
        at_ns,
        counts: InterfaceCounts { rx_frames: frames, rx_bytes: frames * 1_514, tx_dropped: 0 },
    };
    // At 100 Mb/s a frame takes 120 µs: the second reading is a frame behind, the third has caught up, the fourth
    // waits for a late agent.
    let readings = [at(1_000_000, 100), at(1_240_000, 101), at(1_360_000, 104), at(9_000_000, 110)];
    assert_eq!(least_behind(&readings, 100_000_000), Some(readings[2]));
    assert_eq!(least_behind(&[], 100_000_000), None);
}

#[test]
fn a_size_of_requests_without_figures_is_an_error() {
    let rack =
        p4rack_codegen::Rack::parse(include_str!("../../../examples/pl2-incast.toml"), "pl2-incast.toml")
            .unwrap();
    let workload = rack.workload.unwrap();
    let value = |value_bytes| crate::workload::rpc::ValueReport { value_bytes, ..Default::default() };
    let sizes = &workload.rpc.as_ref().unwrap().value_bytes;
    let mut client =
        ClientReport { values: sizes.iter().copied().map(value).collect(), ..Default::default() };
    assert!(check_sizes(&workload, &client).is_ok());
    let last = client.values.pop().unwrap().value_bytes;
    let error = check_sizes(&workload, &client).unwrap_err().to_string();
    assert!(error.contains(&format!("{last} bytes")), "{error}");
}
