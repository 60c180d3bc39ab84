//! Packet generators: a pure function of time.

use crate::common;

use common::*;
use p4rack_switch::{GeneratorConfig, GeneratorStats};
use p4rack_wire::Nanos;

const FORWARD: Parts<'static> = Parts {
    types: "",
    headers: "",
    meta: "",
    parser_locals: "",
    parser: "",
    verify: "",
    ingress_locals: "",
    ingress: "sm.egress_spec = sm.ingress_port + 1; hdr.eth.kind = (bit<16>)sm.ingress_global_timestamp;",
    egress_locals: "",
    egress: "",
    compute: "",
    deparser: "",
};

fn config(count: u64, period: u64) -> GeneratorConfig {
    GeneratorConfig { frame: vec![7; 20], port: 2, start: Nanos(5_000), period: Nanos(period), count }
}

/// Times of the frames that leave until `end`, if the switch is called at all its timeouts.
fn times(bench: &mut Bench, end: u64) -> Vec<u64> {
    let mut times = Vec::new();
    while let Some(time) = bench.switch.next_timeout().filter(|time| time.0 <= end) {
        bench.now = bench.now.max(time);
        times.extend(bench.collect().iter().map(|(port, frame)| {
            assert_eq!((*port, frame.len()), (3, 20));
            u64::from(u16::from_be_bytes([frame[12], frame[13]]))
        }));
    }
    times
}

#[test]
fn frames_come_at_their_times() {
    let mut bench = FORWARD.run();
    bench.switch.generator_set(1, config(4, 1_000)).unwrap();
    assert_eq!(times(&mut bench, 20_000), [5_000, 6_000, 7_000, 8_000]);
    let stats = bench.switch.generators().remove(0).2;
    assert_eq!(stats, GeneratorStats { sent: 4, skipped: 0, active: false });
    bench.switch.generator_remove(1).unwrap();
    assert!(bench.switch.generator_remove(1).is_err());
}

#[test]
fn one_shot_and_endless_generators_share_the_time() {
    let mut bench = FORWARD.run();
    bench.switch.generator_set(1, config(0, 3_000)).unwrap();
    bench.switch.generator_set(2, GeneratorConfig { start: Nanos(6_000), ..config(1, 0) }).unwrap();
    assert_eq!(times(&mut bench, 15_000), [5_000, 6_000, 8_000, 11_000, 14_000]);
    assert!(bench.switch.generators()[0].2.active);
}

#[test]
fn what_is_too_late_is_skipped_and_counted() {
    let mut bench = FORWARD.run();
    bench.switch.generator_set(1, config(0, 1_000_000)).unwrap();
    // The switch makes up for 10 ms; it is called 100 ms late.
    bench.now = Nanos(100_005_000);
    assert_eq!(bench.collect().len(), 11);
    let stats = bench.switch.generators().remove(0).2;
    assert_eq!(stats, GeneratorStats { sent: 11, skipped: 90, active: true });
}

#[test]
fn a_rest_delays_all_generators_and_has_endless_ones_skip() {
    let mut bench = FORWARD.run();
    bench.switch.generator_set(1, config(0, 1_000)).unwrap();
    bench.switch.generator_set(2, config(3, 1_500)).unwrap();
    bench.switch.generator_set(3, config(0, 40_000)).unwrap();
    bench.switch.rest_generators(Nanos(12_300));
    // One frame of the first in place of eight, and all of the second. The third waits no period for its next one.
    assert_eq!(times(&mut bench, 14_000), [12_300, 12_300, 12_300, 12_300, 12_300, 13_000, 14_000]);
    assert_eq!(bench.switch.generator_runs(), Some(3));
    let stats: Vec<_> = bench.switch.generators().into_iter().map(|(_, _, stats)| stats).collect();
    assert_eq!(stats[0], GeneratorStats { sent: 3, skipped: 7, active: true });
    assert_eq!(stats[1], GeneratorStats { sent: 3, skipped: 0, active: false });
    assert_eq!(stats[2], GeneratorStats { sent: 1, skipped: 0, active: true });
}

#[test]
fn bad_generators_are_refused() {
    let mut bench = FORWARD.run();
    let mut refused = |config: GeneratorConfig, why: &str| {
        let error = bench.switch.generator_set(1, config).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    };
    refused(config(2, 0), "period above 0");
    refused(GeneratorConfig { port: 99, ..config(1, 0) }, "port 99");
    refused(GeneratorConfig { frame: Vec::new(), ..config(1, 0) }, "1 to 9216 bytes");
}
