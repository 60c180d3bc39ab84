use super::*;
use p4rack_codegen::Scheme;
use p4rack_codegen::scheme::edm::Mode;
use std::path::Path;

/// The example's store under a scheme, for a tenth of a second.
fn ran(scheme: Scheme, from: u64) -> SchemeResult {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/edm-kv.toml");
    let rack = Rack::load(example).unwrap().under(scheme).unwrap();
    let workload = rack.workload.clone().unwrap();
    let store = StoreParameters { records: 50, ..workload.store.clone().unwrap() };
    run(&rack, &workload, &store, from, 100_000_000).unwrap()
}

#[test]
fn clients_lose_nothing_in_virtual_time_under_any_mode() {
    for mode in Mode::ALL {
        let result = ran(mode.scheme(), 1);
        let store = result.store.as_ref().unwrap();
        assert_eq!((store.lost, store.wrong, result.fabric_drops), (0, 0, 0), "{mode:?}: {:?}", result.drops);
        let names: Vec<&str> = store.mixes.iter().map(|mix| mix.mix.as_str()).collect();
        assert_eq!(names, ["A", "B", "C", "F"]);
        for mix in &store.mixes {
            // A record takes 8.4 µs on the link of 1 Gb/s, and each of three clients has one operation at a time.
            assert!((10_000.0..130_000.0).contains(&mix.ops_per_s), "{mode:?}: {mix:?}");
            assert!(mix.p50_us > 9.0 && mix.p50_us <= mix.p99_us, "{mode:?}: {mix:?}");
        }
        // C has no writes: only other clients' reads wait.
        assert!(store.mixes[2].p99_us < store.mixes[0].p99_us, "{mode:?}: {:?}", store.mixes);
        assert!(result.queue_p999_bytes <= result.queue_max_bytes);
    }
}

/// Clients with several operations in flight lose nothing either, and do more in the same time.
#[test]
fn operations_in_flight_are_checked_in_virtual_time_too() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/edm-kv.toml");
    let rack = Rack::load(example).unwrap().under(Scheme::EDM_TIMED_DST).unwrap();
    let mut workload = rack.workload.clone().unwrap();
    // One client alone leaves room on the server's link.
    workload.senders.truncate(1);
    let reads_per_s = [1, 8].map(|depth| {
        let store = StoreParameters { records: 50, depth, ..workload.store.clone().unwrap() };
        let result = run(&rack, &workload, &store, 1, 100_000_000).unwrap();
        let figures = result.store.unwrap();
        assert_eq!((figures.lost, figures.wrong), (0, 0), "depth {depth}: {figures:?}");
        figures.mixes[2].ops_per_s
    });
    assert!(reads_per_s[1] > 1.5 * reads_per_s[0], "{reads_per_s:?}");
}

#[test]
fn a_run_in_virtual_time_is_repeatable() {
    let figures = |from| {
        let result = ran(Scheme::EDM_TIMED_DST, from);
        serde_json::to_string(&result).unwrap()
    };
    assert_eq!(figures(3), figures(3));
    assert_ne!(figures(3), figures(4));
}

/// Another host's writes to the server's port delay an operation by a few chunks, and no queue grows.
#[test]
fn bulk_traffic_takes_little_of_the_clients_in_virtual_time() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/edm-bulk.toml");
    for mode in Mode::ALL {
        let rack = Rack::load(&example).unwrap().under(mode.scheme()).unwrap();
        let workload = rack.workload.clone().unwrap();
        let with = StoreParameters { records: 50, ..workload.store.clone().unwrap() };
        let result = run(&rack, &workload, &with, 1, 200_000_000).unwrap();
        let store = result.store.as_ref().unwrap();
        assert_eq!((store.lost, store.wrong, result.fabric_drops), (0, 0, 0), "{mode:?}: {:?}", result.drops);
        let bulk_bps = store.bulk_bps.unwrap();
        assert!(bulk_bps > 20_000_000, "{mode:?}: {bulk_bps}");
        // A record takes 84 µs on the link of 100 Mb/s, after up to 16 of the bulk host's.
        let c = store.mixes.iter().find(|mix| mix.mix == "C").unwrap();
        assert!(c.p99_us < 2_000.0, "{mode:?}: {c:?}");
        let frames = (workload.senders.len() + bulk::UNDER_WAY) as u64;
        assert!(result.queue_max_bytes <= frames * rack.wire_bytes(), "{mode:?}: {}", result.queue_max_bytes);
    }
}

/// Clio-KV over plain switching and over PL2: nothing is lost, and the same seed gives the same run.
#[test]
fn clients_of_a_boards_store_run_in_virtual_time() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/clio-kv.toml");
    let rack = Rack::load(example).unwrap();
    let ran = |scheme: &str| {
        let rack = rack.under(scheme.parse().unwrap()).unwrap();
        let workload = rack.workload.clone().unwrap();
        let store = StoreParameters { records: 50, ..workload.store.clone().unwrap() };
        assert_eq!(lacks(&rack, &workload, &store), None);
        run(&rack, &workload, &store, 1, 100_000_000).unwrap()
    };
    for scheme in ["clio", "pl2-clock+clio"] {
        let result = ran(scheme);
        let store = result.store.as_ref().unwrap();
        assert_eq!((store.lost, store.wrong), (0, 0), "{scheme}: {store:?}");
        assert!(store.mixes.iter().all(|mix| mix.ops_per_s > 10_000.0 && mix.p50_us > 9.0), "{store:?}");
    }
    let text = || serde_json::to_string(&ran("clio")).unwrap();
    assert_eq!(text(), text());
}

#[test]
fn stores_that_virtual_time_lacks_are_named() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/clio-kv.toml");
    let rack = Rack::load(example).unwrap();
    let workload = rack.workload.clone().unwrap();
    let of = |scheme: &str, store: StoreParameters| {
        lacks(&rack.under(scheme.parse().unwrap()).unwrap(), &workload, &store).unwrap()
    };
    let example = || workload.store.clone().unwrap();
    let why = of("clio", StoreParameters { value_bytes: 8_000, ..example() });
    assert!(why.contains("don't fit a packet") && why.contains("workload.value_bytes"), "{why}");
    let why = of("clio", StoreParameters { bulk: Some("h4".to_owned()), ..example() });
    assert!(why.contains("workload.bulk"), "{why}");
    assert!(of("l2", example()).contains("only stores"));
}
