use super::*;
use p4rack_codegen::Scheme;
use p4rack_codegen::scheme::edm::Mode;
use std::path::Path;

/// The example's store under a scheme, for a tenth of a second.
fn ran(scheme: Scheme, from: u64) -> SchemeResult {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/edm-kv.toml");
    let rack = Rack::load(example).unwrap().under(scheme).unwrap();
    let workload = rack.workload.clone().unwrap();
    let store = Store { records: 50, ..workload.store.clone().unwrap() };
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
            // A record that is read takes 8.4 µs on the link of 1 Gb/s, and three clients have one operation at a time each.
            assert!((10_000.0..130_000.0).contains(&mix.ops_per_s), "{mode:?}: {mix:?}");
            assert!(mix.p50_us > 9.0 && mix.p50_us <= mix.p99_us, "{mode:?}: {mix:?}");
        }
        // Nobody writes in C: what waits is other clients' reads alone.
        assert!(store.mixes[2].p99_us < store.mixes[0].p99_us, "{mode:?}: {:?}", store.mixes);
        assert!(result.queue_p999_bytes <= result.queue_max_bytes);
    }
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
