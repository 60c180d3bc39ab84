//! The data-plane thread.

use p4rack_netdev::clock;
use p4rack_switch::{Config, GeneratorConfig, PortConfig, Switch};
use p4rack_switchd::driver::{Driver, IoChoice};
use p4rack_switchd::plane::Plane;
use p4rack_wire::Nanos;

#[test]
fn a_generator_without_end_leaves_the_processor_to_others() {
    let config = Config { ports: vec![PortConfig::new(1, 0)], ..Config::default() };
    let mut switch = Switch::new(config);
    let (start, period) = (Nanos(0), Nanos(100));
    let endless = GeneratorConfig { frame: vec![0; 60], port: 1, start, period, count: 0 };
    switch.generator_set(1, endless).unwrap();
    let mut plane = Plane::new(switch, Driver::open(&[], IoChoice::default(), None).unwrap()).unwrap();
    // With real-time priority, where it may.
    plane.take_thread();
    plane.turn(None).unwrap();
    let (start, cpu_before) = (clock::now(), clock::thread_cpu());
    let end = start + Nanos::from_millis(200);
    while clock::now() < end {
        plane.turn(Some(end)).unwrap();
    }
    let (took, worked) = (clock::now() - start, clock::thread_cpu() - cpu_before);
    assert!(worked.0 * 100 < took.0 * 65, "{worked:?} of {took:?}");
    assert!(plane.shared().lock().generator_runs() > Some(0));
}
