//! Lanes whose demands are on their way to another pipe.

use crate::common::Built;
use crate::common::edm::{Fate as Sent, Net, edm_of, message, notification};
use crate::edm_crossing::rack::{
    CHIPS, CHUNK, RATE_BPS, SLOW_BPS, WINDOW, all, built, crossings, pass, slow, wrong,
};
use p4rack_wire::edm::{self, Kind};

/// Demands in front of another one, so that it is still on its way.
fn on_its_way(net: &mut Net) {
    for from in [2, 6, 1] {
        let frame = net.frame(from, 131, edm::PCP_CONTROL, &notification(0, 100));
        net.rig.send(from, &frame);
    }
    assert_eq!(crossings(net), 2, "of six");
}

#[test]
fn until_its_grant_is_back_data_is_early() {
    for arch in CHIPS {
        let right = built(true, arch);
        let mut net = slow(&right, SLOW_BPS / 100);
        on_its_way(&mut net);
        assert_eq!(net.write(1, 131, 0, 100, 0, 100), Sent::Demoted("uncovered"));
        // Its lane is held.
        assert_eq!(net.notify(1, 131, 0, 100), None);
        assert_eq!(net.rig.drops("edm_lane_taken"), 1);
        // If it held a right that is due from when it left, data would be in time.
        let early = [
            ("EDM_RIGHT_PENDING = 0x80000000", "EDM_RIGHT_PENDING = 100"),
            ("EDM_PENDING = EDM_HORIZON - 1", "EDM_PENDING = 0"),
        ];
        let mut net = slow(&right.changed(&early), SLOW_BPS / 100);
        on_its_way(&mut net);
        assert_eq!(net.write(1, 131, 0, 100, 0, 100), Sent::Scheduled(None));
    }
}

/// How far ahead the clock of a link is after a host has asked for its time many times, with a byte of data between, as fast as its
/// link carries that. Passes that a chip resubmits a frame for take time.
fn claimed_by_asking_again(built: &Built, from: u16, to: u16, settles: u64) -> u64 {
    let mut net = slow(built, SLOW_BPS);
    let send = |net: &mut Net, bytes: &[u8], pcp| {
        let frame = net.frame(from, to, pcp, bytes);
        net.rig.send(from, &frame);
        net.wait(7);
    };
    let mut most = 0;
    for n in 0..500 {
        send(&mut net, &notification(0, 8 * WINDOW), edm::PCP_CONTROL);
        if n == 0 {
            pass(&mut net, settles);
        }
        send(&mut net, &message(Kind::Wreq, 0, 100, 0, 1), edm::PCP_DATA);
        let free = net.rig.register_in(usize::from(to / 128), "RackIngress.edm.destination_free", to);
        most = most.max(free.saturating_sub(net.rig.now.0));
    }
    most
}

#[test]
fn a_host_that_asks_again_before_its_data_is_due_has_one_grant() {
    // Second passes of early chunks that are on their way all the time.
    let on_their_way = [
        ("(1, 0, 1, _) : come_again();", "(1, 0, 1, _) : NoAction();"),
        ("grant_head;\n@defaultonly NoAction;", "grant_head;\nNoAction;"),
    ];
    // A demand that takes its lane whatever is due, and a right that a chunk can use while the grant is on its way.
    let unseen = ("meta.edm.op == EDM_OP_NOTIFY && meta.edm.amount[0:0] == 0", "meta.edm.op == EDM_OP_NONE");
    let usable = ("EDM_RIGHT_PENDING = 0x80000000", "EDM_RIGHT_PENDING = 1024");
    for arch in CHIPS {
        let right = built(true, arch);
        let [window, chunk] =
            [WINDOW, CHUNK].map(|bytes| edm_of(&right).grant_units(&right.rack, bytes.into(), RATE_BPS));
        // To another pipe before and after the first grant is back, and within the pipe.
        for (from, to, settles) in [(1, 131, 0), (1, 131, 600), (2, 1, 0)] {
            let ahead = |more: &[(&str, &str)]| {
                let built = right.changed(&[&on_their_way[..], more].concat());
                claimed_by_asking_again(&built, from, to, settles)
            };
            let (with, without) = (ahead(&[]), ahead(&[unseen, usable]));
            // Data may be early by a chunk, and so may the next demand.
            assert!(
                with <= window + chunk && without > 3 * window,
                "{from} {to}: {with} and {without} ns ahead"
            );
        }
    }
}

/// A request that came before a frame of its lane's message, but crosses until after it, does not find the lane abandoned.
#[test]
fn an_old_request_leaves_a_lane_to_its_message() {
    for (shares, right) in all() {
        let taken = |built: &Built| {
            let mut net = slow(built, SLOW_BPS / 100);
            let asks = |net: &mut Net, from: u16, id: u16| {
                let bytes = message(Kind::Rreq, id, 2 * WINDOW, 0, 0);
                let frame = net.frame(from, 131, edm::PCP_CONTROL, &bytes);
                net.rig.send(from, &frame);
            };
            asks(&mut net, 1, 0);
            pass(&mut net, 20_000);
            // Others are in front of the second one for the lane.
            asks(&mut net, 2, 0);
            asks(&mut net, 6, 0);
            asks(&mut net, 1, 0);
            net.wait(1);
            let bytes = message(Kind::Rres, 0, 2 * WINDOW, 0, CHUNK as u16);
            let frame = net.frame(131, 1, edm::PCP_DATA, &bytes);
            net.rig.send(131, &frame);
            // And what settles passes all of them.
            pass(&mut net, 60_000);
            net.rig.drops("edm_lane_taken")
        };
        assert_eq!(taken(&right), 1, "{shares}");
        let (now, before) = ("now = ig_prsr_md.global_tstamp[31:0]", "now = hdr.came.arrived");
        assert_eq!(taken(&wrong(&right, now, before)), 0, "{shares}");
    }
}
