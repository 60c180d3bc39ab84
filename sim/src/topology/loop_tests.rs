//! Frames that go round in a loop.
// The simulator has no threads; its tests have.
#![allow(clippy::disallowed_methods)]

use super::network::{Programs, SwitchProgram};
use super::outcome::TopologyOutcome;
use super::switch::HOPS_MAX;
use super::tests::{experiment, network_of, plain, run_with};
use crate::crew::{Alone, Crew};
use crate::crew_tests::Threads;
use p4rack_p4rt::p4::config::v1::P4Info;

/// Sends all frames to port 3, which leads to the other switch.
const ROUND: &str = "#include <core.p4>\n#include <v1model.p4>\nstruct headers { }\nstruct metadata { }\n\
    parser P(packet_in p, out headers h, inout metadata m, inout standard_metadata_t sm) { state start { transition accept; } }\n\
    control V(inout headers h, inout metadata m) { apply { } }\n\
    control I(inout headers h, inout metadata m, inout standard_metadata_t sm) { apply { sm.egress_spec = 3; } }\n\
    control E(inout headers h, inout metadata m, inout standard_metadata_t sm) { apply { } }\n\
    control D(packet_out p, in headers h) { apply { } }\n\
    V1Switch(P(), V(), I(), E(), V(), D()) main;\n";

fn looped(traffic: &str, duration_us: u64, crew: &dyn Crew) -> TopologyOutcome {
    let round = SwitchProgram { text: ROUND.to_owned(), p4info: P4Info::default(), updates: Vec::new() };
    let network = network_of(plain(), vec![round.clone(), round], &mut Programs::default());
    let traffic = format!(
        "drain_us = 20000\n[[traffic]]\nname = \"one\"\nsend = \"constant\"\nsenders = [\"h1\"]\nreceivers = [\"h2\"]\n{traffic}"
    );
    let mut experiment = experiment(&traffic, network);
    experiment.spec.duration_us = duration_us;
    run_with(&experiment, crew, None)
}

#[test]
fn a_frame_passes_a_bounded_number_of_switches_and_is_accounted_for() {
    let outcome = looped("interval_us = 100\nmessages = 2\n", 2_000, &Alone);
    let balance = &outcome.balance;
    assert_eq!((balance.sent, balance.looped, balance.dropped, balance.unaccounted), (2, 2, 0, 0));
    assert_eq!(outcome.switch_hops, 2 * u64::from(HOPS_MAX));
    // The last switch that it would have passed is the second one.
    assert_eq!(outcome.switches[1].drops.get("loop"), Some(&2), "{:?}", outcome.switches);
    let [problem] = &outcome.problems[..] else { panic!("{:?}", outcome.problems) };
    assert_eq!(
        problem,
        "frames go round in a loop of switches, which they leave by s1:3, s2:3; 2 of them were dropped after 255 switches: \
         mend the programs or entries there"
    );
}

/// Frames that wait for a port keep their number of hops. A run in which nearly all frames go round ends early.
#[test]
fn a_run_full_of_loops_ends_early_on_any_number_of_workers() {
    let traffic = "rate = \"10 Mb/s\"\nsize = 400\n";
    let outcome = looped(traffic, 5_000_000, &Alone);
    let balance = &outcome.balance;
    assert!(balance.queued > 10 && balance.looped > 100, "{balance:?}");
    assert_eq!(balance.unaccounted, 0, "{balance:?}");
    let [problem] = &outcome.problems[..] else { panic!("{:?}", outcome.problems) };
    assert!(problem.contains("loop of switches") && problem.contains("; the run ended after "), "{problem}");
    let alone = serde_json::to_value(outcome).unwrap();
    let together = looped(traffic, 5_000_000, &Threads::new(2));
    assert_eq!(serde_json::to_value(together).unwrap(), alone);
}
