//! Under any input, nothing panics and no frame is lost.

use crate::common;

use common::*;
use p4rack_switch::{CloneSession, Config, PortConfig, Replica, Switch};
use p4rack_wire::Nanos;
use proptest::prelude::*;

/// All that makes a parser and a pipeline stumble, steered by the frame's own bytes.
const WILD: Parts<'static> = Parts {
    types: "
        header tlv_t { bit<8> kind; bit<8> len; varbit<256> data; }
        header tag_t { bit<4> a; bit<60> b; bit<65> c; bit<7> d; }
        header_union u_t { tag_t one; eth_t two; }",
    headers: "tlv_t[3] tlvs; tag_t[2] tags; u_t u;",
    meta: "@field_list(1) bit<100> kept; bit<32> i; int<33> j;",
    parser: "
        state parse { transition select(pkt.lookahead<bit<8>>()) {
            0 .. 99: tlv; 100 .. 199: tag; 200: union_one; 201: union_two; 202 &&& 0xfe: jump; default: accept;
        } }
        state tlv { pkt.extract(hdr.tlvs.next, (bit<32>)pkt.lookahead<bit<16>>()[7:0]); transition parse; }
        state tag { pkt.extract(hdr.tags.next); transition parse; }
        state union_one { pkt.extract(hdr.u.one); transition parse; }
        state union_two { pkt.extract(hdr.u.two); transition parse; }
        state jump { pkt.advance((bit<32>)pkt.lookahead<bit<16>>()[7:0]); transition parse; }",
    verify: "",
    parser_locals: "",
    ingress_locals: "
        register<bit<100>>(16) store;
        counter(16, CounterType.bytes) seen;
        meter(4, MeterType.bytes) rate;",
    ingress: "
        meta.i = (bit<32>)hdr.eth.src[7:0];
        seen.count(meta.i);
        store.read(meta.kept, meta.i);
        store.write(meta.i, meta.kept + (bit<100>)hdr.eth.dst);
        rate.execute_meter(meta.i, meta.i);
        hdr.tags[meta.i & 3].b = hdr.tags[(meta.i >> 1) & 3].b + 1;
        if (hdr.eth.src[8:8] == 1) { hdr.tlvs.push_front(2); }
        if (hdr.eth.src[9:9] == 1) { hdr.tlvs.pop_front(1); }
        if (hdr.eth.src[10:10] == 1) { hdr.tags[1] = hdr.tags[0]; }
        if (hdr.eth.src[11:11] == 1) { clone_preserving_field_list(CloneType.I2E, 1, 1); }
        if (hdr.eth.src[12:12] == 1) { sm.mcast_grp = 1; }
        if (hdr.eth.src[13:13] == 1 && sm.instance_type == 0) { resubmit_preserving_field_list(1); }
        if (hdr.eth.src[15:14] == 3) { truncate((bit<32>)hdr.eth.kind); }
        meta.j = (int<33>)(bit<33>)hdr.eth.kind >> (bit<8>)meta.i;
        sm.priority = hdr.eth.src[18:16];
        sm.egress_spec = hdr.eth.src[27:19];",
    egress_locals: "",
    egress: "
        if (hdr.eth.src[28:28] == 1) { clone_preserving_field_list(CloneType.E2E, 2, 1); }
        if (hdr.eth.src[29:29] == 1) { recirculate_preserving_field_list(1); }
        if (hdr.eth.src[31:30] == 3) { mark_to_drop(sm); }",
    compute: "
        update_checksum_with_payload(hdr.tags[0].isValid(), { hdr.eth.dst, hdr.tags[0].b, hdr.tlvs[0].data },
            hdr.eth.kind, HashAlgorithm.csum16);",
    deparser: "pkt.emit(hdr.u); pkt.emit(hdr.tags); pkt.emit(hdr.tlvs);",
};

fn wild() -> Switch {
    let ports =
        vec![PortConfig::new(0, 0), PortConfig::new(1, 1_000_000_000), PortConfig::new(255, 10_000_000)];
    let config = Config { ports, recirculation_limit: 4, buffer_bytes: 40_000, ..Config::default() };
    let mut switch = WILD.run_on(config).switch;
    let replica = |port| Replica { port, instance: port };
    let session = CloneSession { replicas: vec![replica(1), replica(510)].into(), ..CloneSession::default() };
    switch.clone_session_set(1, session.clone()).expect("valid");
    switch.clone_session_set(2, session).expect("valid");
    switch.multicast_group_set(1, vec![replica(0), replica(255), replica(300)]).expect("valid");
    switch
}

fn frame() -> impl Strategy<Value = Vec<u8>> {
    let byte = || prop_oneof![any::<u8>(), 0u8..4, 100u8..104, 198u8..206];
    prop_oneof![
        8 => proptest::collection::vec(byte(), 0..200),
        1 => proptest::collection::vec(byte(), 0..=9217),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_bytes_are_survived(frames in proptest::collection::vec((frame(), 0u16..3, 0u64..100_000), 1..30)) {
        let mut switch = wild();
        let (mut now, mut out) = (0, Vec::new());
        for (frame, port, wait) in frames {
            now += wait;
            switch.handle_frame([0, 1, 510][port as usize], &frame, Nanos(now));
            while switch.poll_transmit(Nanos(now), &mut out).is_some() {}
            while switch.poll_cpu(&mut out) {}
            let stats = switch.stats(Nanos(now));
            prop_assert!(stats.buffer_bytes <= 40_000);
        }
        while let Some(at) = switch.next_timeout() {
            now = now.max(at.0);
            while switch.poll_transmit(Nanos(now), &mut out).is_some() {}
            while switch.poll_cpu(&mut out) {}
        }
        prop_assert_eq!(switch.stats(Nanos(now)).buffer_bytes, 0);
    }

    #[test]
    fn every_frame_is_sent_dropped_or_queued(
        frames in proptest::collection::vec((0u64..8, 0usize..1500, 0u64..30_000, any::<bool>()), 1..300),
    ) {
        let ports = (1..=4).map(|port| PortConfig::new(port, 200_000_000)).collect();
        let mut bench = L2.run_on(Config { ports, buffer_bytes: 9_000, ..Config::default() });
        for port in 1..=6 {
            bench.add("dmac", vec![exact(mac(port))], 0, "forward", &[port.into()]);
        }
        let (mut sent, mut out) = (0, Vec::new());
        let total = frames.len() as u64;
        for (to, len, wait, poll) in frames {
            bench.now += Nanos(wait);
            bench.switch.handle_frame(1, &eth(mac(to as u16), 0, &vec![0; len]), bench.now);
            while poll && bench.switch.poll_transmit(bench.now, &mut out).is_some() {
                sent += 1;
            }
        }
        let stats = bench.switch.stats(bench.now);
        let queued: u64 = stats.ports.iter().flat_map(|port| port.queues).map(|queue| queue.frames).sum();
        let dropped: u64 = stats.drops.iter().map(|(_, count)| count).sum();
        prop_assert_eq!(total, sent + dropped + queued + stats.nowhere_frames);
    }
}
