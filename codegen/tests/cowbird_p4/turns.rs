//! Turns of hosts, and of the sets of each.

use crate::rack::{Faults, Net, TICK_QPN, built, built_on};
use p4rack_codegen::Arch;
use p4rack_cowbird::Layout;
use p4rack_wire::cowbird::Phase;

const LAYOUT: Layout = Layout { entries: 16, request_bytes: 512, response_bytes: 512 };

/// Frames that a set's turns have become: probes, and guesses of entries.
fn turns_of(net: &Net, set: usize) -> u64 {
    [Phase::Probe, Phase::Entry].iter().map(|phase| net.sent(set, *phase as u8)).sum()
}

#[test]
fn a_host_with_three_sets_has_as_many_turns_as_one_with_a_single_set() {
    for arch in [Arch::V1model, Arch::Tna] {
        let built = if arch == Arch::V1model { built(4) } else { built_on(4, arch) };
        let mut net = Net::new(&built, 4, 0, LAYOUT, Faults::default(), 1);
        // The first queue pair gives all four of them turns; these are for a host with three and one with a single set.
        let [three, one] = [TICK_QPN + 1, TICK_QPN + 2];
        net.share_turns(three, 1..4);
        net.share_turns(one, 0..1);
        // A cell holds the number of an earlier run's instance, or 0, until its first turn has passed.
        net.turn(three);
        let before: Vec<u64> = (0..4).map(|set| turns_of(&net, set)).collect();
        for _ in 0..12 {
            net.turn(three);
            net.turn(one);
        }
        let turns: Vec<u64> = (0..4).map(|set| turns_of(&net, set) - before[set]).collect();
        assert_eq!(turns, [12, 4, 4, 4], "{arch:?}");
    }
}
