//! Crossings that are lost.

use crate::common::Rig;
use crate::common::edm::{Net, edm_of, notification};
use crate::edm_crossing::rack::{SLOW_BPS, all, pass, runs, wrong};
use p4rack_codegen::Arch;
use p4rack_wire::Nanos;
use p4rack_wire::edm;

#[test]
fn a_lane_whose_demand_is_lost_is_free_after_its_expiry() {
    for (shares, right) in all() {
        let to = "ig_tm_md.ucast_egress_port = meta.edm.clock_way;";
        let mut net = Net::new(&wrong(&right, to, "ig_tm_md.ucast_egress_port = 300;"));
        assert_eq!(net.notify(1, 131, 0, 100), None);
        assert_eq!(net.notify(1, 131, 0, 100), None);
        assert_eq!(net.rig.drops("edm_lane_taken"), 1, "{shares}");
        net.wait(edm_of(&right).expiry(&right.rack).0 + 1);
        assert_eq!(net.notify(1, 131, 0, 100), None, "asked for again, and lost again");
        assert_eq!(net.rig.drops("edm_lane_taken"), 1, "{shares}");
    }
}

/// What crosses with the highest bit of its message's id is lost: on its way to its lane or clock, back, or as a head. A lane is free
/// after its expiry, and its next message comes through.
#[test]
fn after_a_lost_crossing_the_lanes_next_message_runs() {
    const LOST: &str = "meta.edm.id[15:15] == 1 ? 9w300 :";
    let sent = |pass: &str, way: &str| {
        format!(
            "hdr.again.pass = {pass};\nmeta.again = 1;\nhdr.packet_in.setInvalid();\nig_tm_md.bypass_egress = 1;\n\
             ig_tm_md.ucast_egress_port = {way};"
        )
    };
    let losing = |pass: &str, way: &str| (sent(pass, way), sent(pass, &format!("{LOST} {way}")));
    let head = "meta.head_session = meta.edm.head_way;";
    for (shares, right) in all() {
        let mut all = vec![
            ("a", true, losing("EDM_AT_LANE", "meta.edm.lane_way")),
            ("b", true, losing("EDM_AT_CLOCK", "meta.edm.clock_way")),
            ("b", false, losing("EDM_AT_CLOCK", "meta.edm.clock_way")),
            (
                "a head",
                false,
                (head.to_owned(), head.replace("= ", "= meta.edm.id[15:15] == 1 ? (MirrorId_t) 0 : ")),
            ),
        ];
        if shares {
            let back = losing("meta.edm.to_unclaimed | EDM_SETTLES", "meta.edm.lane_way");
            all.extend([("c", true, back.clone()), ("c", false, back)]);
        }
        for (step, reads, (from, to)) in all {
            let what = format!("{step}, reads: {reads}, shares: {shares}, {}", right.rack.switch.arch);
            let mut net = Net::new(&wrong(&right, &from, &to));
            assert!(!runs(&mut net, (1, 131), reads, 1 << 15), "{what} is lost");
            // A request that did not come to its lane left it free.
            assert_eq!(runs(&mut net, (1, 131), reads, 0), step == "a", "{what}");
            net.wait(edm_of(&right).expiry(&right.rack).0 + 1);
            assert!(runs(&mut net, (1, 131), reads, 0), "{what}");
        }
    }
}

/// The same of a port whose queue is full, which counts what it loses.
#[test]
fn after_a_full_port_between_pipes_lanes_run() {
    for (shares, right) in all() {
        let mut rig = Rig::with_config(&right, |config| {
            config.catch_up = Nanos::ZERO;
            config.buffer_bytes = 2_000;
        });
        let local = if right.rack.switch.arch == Arch::Tna { 68 } else { 7 };
        rig.switch.set_port_rate(128 + local, SLOW_BPS).unwrap();
        let mut net = Net { rig };
        for from in [1, 2, 6] {
            for id in 0..3 {
                // Longer than it has to be, so that few fill the buffer.
                let long = [notification(id, 100), vec![0; 500]].concat();
                let frame = net.frame(from, 131, edm::PCP_CONTROL, &long);
                net.rig.send(from, &frame);
            }
        }
        pass(&mut net, 5_000);
        let stats = net.rig.switch.stats(net.rig.now);
        let port = stats.ports.iter().find(|port| port.port == 128 + local).unwrap();
        let lost: u64 = port.queues.iter().map(|queue| queue.drops).sum();
        assert!((3..9).contains(&lost), "{shares}: {lost} of nine");
        net.rig.switch.set_port_rate(128 + local, 0).unwrap();
        net.wait(edm_of(&right).expiry(&right.rack).0 + 1);
        for id in 0..3 {
            assert!(runs(&mut net, (1, 131), false, id), "{shares}");
        }
    }
}
