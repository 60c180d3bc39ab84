//! Results of good runs, and the documented format.

use super::*;
use p4rack_codegen::rack::Pool;

/// A run that keeps every promise.
pub(crate) fn good_results() -> Results {
    let value = |bytes, us: f64| ValueReport {
        value_bytes: bytes,
        completed: 1_000,
        unfinished: 0,
        p50_us: us / 2.0,
        p99_us: us,
        p999_us: us * 1.5,
        cdf: vec![(us / 4.0, 0.1), (us / 2.0, 0.5), (us, 0.99), (us * 1.5, 1.0)],
    };
    let scheme = |name: &str, rpc_us: f64| {
        let mut result = SchemeResult {
            name: name.to_owned(),
            offered_bps: 400_000_000,
            goodput_bps: 92_000_000,
            goodput_ceiling_bps: 97_500_000,
            queue_max_bytes: 12_000,
            queue_p999_bytes: 9_000,
            rpc: vec![value(1_024, rpc_us), value(4_096, rpc_us * 1.5)],
            goodput_by_host_bps: ["h2", "h3", "h4", "h5"].map(|host| (host.to_owned(), 23_000_000)).into(),
            ..SchemeResult::default()
        };
        let mut line = Timeline::default();
        for bucket in 0..90 {
            line.add(bucket * crate::workload::BUCKET_NS, 280_000 + (bucket % 7) * 3_000);
        }
        result.series = Series {
            queue: (0..1_200).map(|i| (i * 5_000_000, 3_000 + (i * 977) % 9_000)).collect(),
            goodput: ["h2", "h3", "h4", "h5"].map(|host| (host.to_owned(), line.clone())).into(),
            window_ns: (1_000_000_000, 7_000_000_000),
            kill_ns: None,
            reset_ns: None,
        };
        result
    };
    let mut l2 = scheme("l2", 2_000_000.0);
    l2.fabric_drops = 100_000;
    l2.drops = [("tm.shared_buffer_full".to_owned(), 100_000)].into();
    l2.queue_max_bytes = 262_000;
    let kill = HostKill {
        host: "h5".to_owned(),
        others_before_bps: 69_000_000,
        others_after_bps: 80_000_000,
        others_min_bps: 66_000_000,
        ..HostKill::default()
    };
    let mut counter = scheme("pl2-counter", 5_000.0);
    counter.host_kill =
        Some(HostKill { reset_after_ms: Some(1_000), recovered_after_ms: Some(200), ..kill.clone() });
    counter.series.kill_ns = Some(7_000_000_000);
    counter.series.reset_ns = Some(8_000_000_000);
    let mut clock = scheme("pl2-clock", 4_500.0);
    clock.host_kill = Some(kill);
    clock.series.kill_ns = Some(7_000_000_000);
    Results {
        version: VERSION,
        rack: "pl2-incast".to_owned(),
        seed: 1,
        duration_s: 6.0,
        tcp: "cubic".to_owned(),
        schemes: vec![l2, counter, clock],
        skipped: Vec::new(),
        simulated: Vec::new(),
        failures: Vec::new(),
        promises: Vec::new(),
        setting: Setting {
            kind: WorkloadKind::Incast,
            port_rate_bps: 100_000_000,
            mtu_frame_bytes: 1_530,
            buffer_bytes: 262_144,
            arch: Arch::V1model,
            k: 4,
            one: "h1".to_owned(),
            many: ["h2", "h3", "h4", "h5"].map(str::to_owned).into(),
            bulk: None,
            client: Some("h1".to_owned()),
            load_percent: 400,
            warm_up_s: 1.0,
            icrc_ignored: false,
            depth: None,
            log: None,
            cache: None,
            tors: 1,
        },
        machine: Machine {
            kernel: "6.1.0".into(),
            cpus: 2,
            cpu_model: "some CPU".into(),
            load: [Some(0.5), Some(3.25)],
            profile: "release".into(),
        },
        command: "p4rack up examples/pl2-incast.toml --seed 1".to_owned(),
    }
}

/// A store under plain switching and in EDM memory, that keeps every promise.
pub(crate) fn good_store() -> Results {
    let mut results = good_results();
    results.setting.kind = WorkloadKind::Store;
    results.schemes.truncate(2);
    for (scheme, name) in results.schemes.iter_mut().zip(["l2", "edm-timed-dst"]) {
        let mix = |mix: &str| MixResult {
            mix: mix.to_owned(),
            ops_per_s: 5_000.0,
            p50_us: 100.0,
            p99_us: 200.0,
            p999_us: 300.0,
            cdf: vec![(90.0, 0.1), (100.0, 0.5), (300.0, 1.0)],
            ..MixResult::default()
        };
        scheme.store = Some(StoreResult { mixes: ["A", "C"].map(mix).into(), ..StoreResult::default() });
        (scheme.name, scheme.fabric_drops, scheme.host_kill) = (name.to_owned(), 0, None);
        (scheme.series.kill_ns, scheme.series.reset_ns) = (None, None);
    }
    results
}

/// Stores in cached regions by two ways, with a takeover by the second one, that keep every promise.
pub(crate) fn good_cached() -> Results {
    let mut results = good_store();
    let pool = Pool { memory: ["m1", "m2"].map(str::to_owned).into(), extent_bytes: 2 << 20, lease_s: 2 };
    results.setting.cache = Some(Cache {
        local_percent: vec![100, 10],
        policy: "runs".to_owned(),
        block_bytes: None,
        engine: None,
        pool,
    });
    for (scheme, name) in results.schemes.iter_mut().zip(["rdma", "clio"]) {
        scheme.name = name.to_owned();
        for (mix, percent) in scheme.store.iter_mut().flat_map(|store| &mut store.mixes).zip([100, 10]) {
            mix.mix = "B".to_owned();
            mix.cache = Some(CacheResult {
                local_percent: percent,
                hit_share: 0.9,
                fetched_bytes: 1_000_000,
                written_back_bytes: 100_000,
                moved_bytes: 220.0,
                local_bytes: 40_000 * u64::from(percent),
                limit_bytes: 41_000 * u64::from(percent),
            });
        }
    }
    if let Some(store) = &mut results.schemes[1].store {
        store.takeover = Some(Takeover {
            host: "c1".to_owned(),
            by: "c2".to_owned(),
            extents: 3,
            taken: 3,
            after_ms: Some(1_900),
            lease_ms: 2_000,
            ..Takeover::default()
        });
    }
    results
}

#[test]
fn a_store_has_its_figures_in_json() {
    let json = serde_json::to_value(good_store()).unwrap();
    assert!(json["schemes"][1]["store"]["ops_per_s"].is_f64());
    for key in ["p50_us", "p99_us", "p999_us"] {
        assert!(json["schemes"][1]["store"][key].is_f64(), "{key}");
    }
    for key in ["lost", "wrong"] {
        assert!(json["schemes"][1]["store"][key].is_u64(), "{key}");
    }
    assert!(serde_json::to_value(good_results()).unwrap()["schemes"][0].get("store").is_none());
}

#[test]
fn json_has_exactly_the_documented_keys_and_types() {
    let json = serde_json::to_value(good_results()).unwrap();
    assert_eq!(json["version"], 1);
    for (key, is) in [
        ("rack", serde_json::Value::is_string as fn(&serde_json::Value) -> bool),
        ("seed", serde_json::Value::is_u64),
        ("duration_s", serde_json::Value::is_f64),
        ("tcp", serde_json::Value::is_string),
        ("schemes", serde_json::Value::is_array),
        ("failures", serde_json::Value::is_array),
    ] {
        assert!(is(&json[key]), "{key}: {}", json[key]);
    }
    for scheme in json["schemes"].as_array().unwrap() {
        assert!(["l2", "pl2-counter", "pl2-clock"].contains(&scheme["name"].as_str().unwrap()));
        for key in [
            "offered_bps",
            "goodput_bps",
            "goodput_ceiling_bps",
            "fabric_drops",
            "unsolicited_drops",
            "host_drops",
            "queue_max_bytes",
            "queue_p999_bytes",
        ] {
            assert!(scheme[key].is_u64(), "{key}: {}", scheme[key]);
        }
        assert!(scheme["drops"].as_object().unwrap().values().all(serde_json::Value::is_u64));
        for value in scheme["rpc"].as_array().unwrap() {
            assert!(value["value_bytes"].is_u64() && value["completed"].is_u64());
            for key in ["p50_us", "p99_us", "p999_us"] {
                assert!(value[key].is_f64(), "{key}");
            }
        }
    }
    assert!(json["schemes"][0].get("host_kill").is_none());
    assert_eq!(json["schemes"][1]["host_kill"]["host"], "h5");
}

#[test]
fn json_reads_back() {
    let text = serde_json::to_string(&good_results()).unwrap();
    let back: Results = serde_json::from_str(&text).unwrap();
    assert_eq!(back.schemes.len(), 3);
    assert_eq!(back.schemes[1].rpc_of(4_096).unwrap().completed, 1_000);
}
