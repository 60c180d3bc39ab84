//! Columns of the tables that `p4rack sim merge` makes.

use serde_json::Value;

/// Columns of results of racks of frames: name, and path in a result.
pub const OF_FRAMES: [(&str, &str); 17] = [
    ("id", "/id"),
    ("name", "/outcome/name"),
    ("scheme", "/outcome/scheme"),
    ("seed", "/outcome/seed"),
    ("goodput_gbps", "/outcome/goodput_gbps"),
    ("messages", "/outcome/traffic/0/done"),
    ("mean_ns", "/outcome/traffic/0/latency_ns/mean"),
    ("p50_ns", "/outcome/traffic/0/latency_ns/p50"),
    ("p99_ns", "/outcome/traffic/0/latency_ns/p99"),
    ("p999_ns", "/outcome/traffic/0/latency_ns/p999"),
    ("retransmissions", "/outcome/traffic/0/retransmissions"),
    ("frames_dropped", "/outcome/frames_dropped"),
    ("queue_max_bytes", "/outcome/switch/queue_max_bytes"),
    ("queue_p999_bytes", "/outcome/switch/queue_p999_bytes"),
    ("overlapping_grants", "/outcome/checks/overlapping_grants"),
    ("leaked_amount", "/outcome/checks/leaked_amount"),
    ("problems", "/outcome/problems"),
];

/// Columns of results of memory racks: name, and path in a result.
pub const OF_MEMORY: &[(&str, &str)] = &[
    ("id", "/id"),
    ("name", "/outcome/name"),
    ("scheme", "/outcome/scheme"),
    ("seed", "/outcome/seed"),
    ("measured", "/outcome/measured"),
    ("lost", "/outcome/lost"),
    ("offered_load", "/outcome/offered_load"),
    ("grows", "/outcome/grows"),
    ("published_slowdown", "/outcome/published_slowdown"),
    ("golden", "/outcome/golden"),
    ("slowdown", "/outcome/slowdown/mean"),
    ("slowdown_within", "/outcome/slowdown/within"),
    ("slowdown_p99", "/outcome/slowdown_p99"),
    ("latency_mean_ns", "/outcome/latency_ns/mean/mean"),
    ("latency_p99_ns", "/outcome/latency_ns/p99"),
    ("added_mean_ns", "/outcome/added_ns/mean/mean"),
    ("added_within_ns", "/outcome/added_ns/mean/within"),
    ("added_p99_ns", "/outcome/added_ns/p99"),
    ("queue_max_bytes", "/outcome/queue_max_bytes"),
    ("carried_load", "/outcome/carried_load"),
    ("mops", "/outcome/mops"),
    ("published_mops", "/outcome/published_mops"),
    ("problems", "/outcome/problems"),
];

/// Columns of results of Cowbird racks: name, and path in a result.
pub const OF_COWBIRD: &[(&str, &str)] = &[
    ("id", "/id"),
    ("name", "/outcome/name"),
    ("scheme", "/outcome/scheme"),
    ("seed", "/outcome/seed"),
    ("threads", "/outcome/threads"),
    ("record_bytes", "/outcome/record_bytes"),
    ("mops", "/outcome/mops"),
    ("p50_ns", "/outcome/latency_ns/p50"),
    ("p99_ns", "/outcome/latency_ns/p99"),
    ("communication_share", "/outcome/communication_share"),
    ("waiting_share", "/outcome/waiting_share"),
    ("communication_ns", "/outcome/communication_ns"),
    ("engine_share", "/outcome/engine_share"),
    ("remote_gbps", "/outcome/remote_gbps"),
    ("wrong", "/outcome/wrong"),
    ("lost", "/outcome/lost"),
    ("problems", "/outcome/problems"),
];

/// Whether a result is of a Cowbird rack.
pub fn is_of_cowbird(result: &Value) -> bool {
    result["outcome"]["communication_share"].is_number()
}

/// Whether a result is of a memory rack.
pub fn is_of_memory(result: &Value) -> bool {
    result["outcome"]["slowdown"].is_object()
}
