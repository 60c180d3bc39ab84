//! What crosses, and which registers each pipe has.

use crate::common::edm::{Fate as Sent, Net, edm_of, notification};
use crate::edm_crossing::rack::{CHUNK, PORTS, WINDOW, all, crossings};
use p4rack_codegen::Arch;
use p4rack_wire::edm::{self, Kind, Target};

#[test]
fn demands_and_heads_that_ask_cross_and_other_data_does_not() {
    for (shares, built) in all() {
        let mut net = Net::new(&built);
        let more = u64::from(shares);
        let mut crossed = |what: &str, expected: u64, act: &mut dyn FnMut(&mut Net)| {
            let before = crossings(&net);
            act(&mut net);
            assert_eq!(crossings(&net) - before, expected, "{what}, shares: {shares}");
            net.wait(1_000);
        };
        crossed("a write within a pipe", 0, &mut |net| assert!(net.notify(2, 1, 0, 100).is_some()));
        crossed("its data", 0, &mut |net| assert_eq!(net.write(2, 1, 0, 100, 0, 100), Sent::Scheduled(None)));
        crossed("a read within a pipe", 0, &mut |net| assert!(net.request(2, 1, 0, 100).is_some()));
        crossed("a write to another pipe", 1 + more, &mut |net| {
            assert!(net.notify(1, 131, 0, 100).is_some())
        });
        crossed("its data", 0, &mut |net| {
            assert_eq!(net.write(1, 131, 0, 100, 0, 100), Sent::Scheduled(None))
        });
        crossed("a refused write", 0, &mut |net| assert!(net.notify(1, 389, 0, 100).is_none()));
        crossed("a read from another pipe", 2 + more, &mut |net| {
            assert!(net.request(1, 131, 1, 100).is_some())
        });
        crossed("another one in its lane", 1, &mut |net| assert!(net.request(1, 131, 1, 100).is_none()));
        // The first chunk of a message with two windows, or the last one of its first window.
        crossed("a longer write", 1 + more, &mut |net| {
            assert!(net.notify(389, 131, 2, 2 * WINDOW).is_some())
        });
        let mut asked = 0;
        for offset in (0..WINDOW).step_by(CHUNK as usize) {
            let before = crossings(&net);
            let fate = net.write(389, 131, 2, 2 * WINDOW, offset, CHUNK as u16);
            let Sent::Scheduled(grant) = fate else { panic!("{fate:?}") };
            assert_eq!(crossings(&net) - before, grant.as_ref().map_or(0, |_| 1 + more));
            asked += u32::from(grant.is_some());
            net.wait(30);
        }
        assert_eq!(asked, if shares { 1 } else { 4 }, "shares: {shares}");
    }
}

#[test]
fn each_pipe_has_the_registers_of_its_own_ports() {
    for (shares, built) in all() {
        let mut net = Net::new(&built);
        net.notify(1, 131, 0, 2 * WINDOW).unwrap();
        net.request(389, 260, 1, 100).unwrap();
        let mut clock = |port: u16| -> Vec<bool> {
            (0..4)
                .map(|pipe| net.rig.register_in(pipe, "RackIngress.edm.destination_free", port) != 0)
                .collect()
        };
        assert_eq!(clock(131), [false, true, false, false], "{shares}");
        assert_eq!(clock(389), [false, false, false, true], "{shares}");
        let lane = |asks: usize, asked: usize, answer: bool, id: u16| {
            edm_of(&built).cell(&built.rack, asks, asked, answer, id).unwrap() as u16
        };
        let (write, read) = (lane(0, 2, false, 0), lane(4, 3, true, 1));
        let mut rights = |cell: u16| -> Vec<u64> {
            (0..4).map(|pipe| net.rig.register_in(pipe, "RackIngress.edm.rights", cell)).collect()
        };
        assert_eq!(rights(write), [u64::from(WINDOW), 0, 0, 0], "{shares}");
        assert_eq!(rights(read), [0, 0, 100, 0], "{shares}");
    }
}

#[test]
fn the_controller_reads_and_sets_registers_of_all_pipes() {
    for (shares, built) in all() {
        let mut net = Net::new(&built);
        let mut check = |target: Target, index: u32| {
            let mut manage = |kind: Kind, value: u32| net.manage(kind, target as u8, index, value);
            assert_eq!(manage(Kind::MgmtRead, 0), Some(0), "{target:?} {index}, shares: {shares}");
            assert_eq!(manage(Kind::MgmtWrite, 500), Some(0));
            assert_eq!(manage(Kind::MgmtRead, 0), Some(500));
            assert_eq!(manage(Kind::MgmtReset, 0), Some(500));
            assert_eq!(manage(Kind::MgmtRead, 0), Some(0));
        };
        for port in PORTS {
            check(Target::Destination, port.into());
        }
        let edm = edm_of(&built);
        for (asks, asked) in [(0, 2), (4, 3), (3, 0), (5, 2)] {
            for answer in [false, true] {
                check(Target::Rights, edm.cell(&built.rack, asks, asked, answer, 2).unwrap());
            }
        }
        // What a host's lane holds, in the pipe where its data comes in.
        net.notify(389, 131, 1, 77).unwrap();
        net.request(389, 131, 2, 88).unwrap();
        for (answer, id, expected) in [(false, 1, 77), (true, 2, 88)] {
            let cell = edm.cell(&built.rack, 4, 2, answer, id).unwrap();
            assert_eq!(net.manage(Kind::MgmtRead, Target::Rights as u8, cell, 0), Some(expected));
        }
    }
}

/// A frame to a port between the pipes would come back as one that crossed, with a pass of the controller's choice.
#[test]
fn the_controller_sends_nothing_by_the_ports_between_pipes() {
    for (shares, built) in all() {
        let mut net = Net::new(&built);
        let local = if built.rack.switch.arch == Arch::Tna { 68 } else { 7 };
        for pipe in 0..4 {
            let port: u16 = 128 * pipe + local;
            let mut packet_out = port.to_be_bytes().to_vec();
            packet_out.extend(net.frame(1, 131, edm::PCP_CONTROL, &notification(0, 100)));
            assert_eq!(net.rig.send(built.rack.switch.cpu_port, &packet_out), [], "{shares}");
        }
        assert_eq!((crossings(&net), net.rig.drops("unknown_destination")), (0, 4), "{shares}");
    }
}
