//! Random packets and entries: repeatable, and they go where the program looks.

use p4rack_conformance::random::Case;
use p4rack_p4::{Compiled, Options};

/// Three states deep, behind values that chance alone would not meet.
const PROGRAM: &str = "#include <core.p4>
#include <v1model.p4>
header eth_t { bit<48> dst; bit<48> src; bit<16> kind; }
header options_t { bit<8> length; varbit<64> rest; }
header last_t { bit<32> magic; }
struct hdr_t { eth_t eth; options_t options; last_t last; } struct meta_t { }
parser P(packet_in pkt, out hdr_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { pkt.extract(hdr.eth); transition select(hdr.eth.src, hdr.eth.kind) { (0x0123456789ab, 0x88b5): more; } }
    state more {
        pkt.extract(hdr.options, (bit<32>)(pkt.lookahead<bit<8>>() & 7) * 8);
        transition select(pkt.lookahead<bit<32>>()) { 0xcafef00d: last; default: accept; }
    }
    state last { pkt.extract(hdr.last); transition accept; }
}
control V(inout hdr_t hdr, inout meta_t meta) { apply { } }
control I(inout hdr_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action to(bit<9> port) { sm.egress_spec = port; }
    table t { key = { hdr.eth.dst: ternary; hdr.last.magic: lpm; } actions = { to; } }
    apply { t.apply(); }
}
control E(inout hdr_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout hdr_t hdr, inout meta_t meta) { apply { } }
control D(packet_out pkt, in hdr_t hdr) { apply { pkt.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
";

fn compiled() -> Compiled {
    p4rack_p4::compile(PROGRAM, "t.p4", &Options::default()).unwrap_or_else(|_| panic!("refused"))
}

fn case(seed: u64) -> Case {
    let Compiled { program, p4info, .. } = compiled();
    Case::new(&program, &p4info, seed, 100)
}

#[test]
fn a_seed_gives_the_same_again_and_another_seed_does_not() {
    assert_eq!(case(1), case(1));
    assert_ne!(case(1).packets, case(2).packets);
    assert!((0..10).any(|seed| case(seed).updates != case(seed + 1).updates));
}

#[test]
fn packets_go_all_the_way_through_the_parser() {
    let case = case(3);
    let deep = case.packets.iter().filter(|packet| {
        let frame = &packet.frame;
        let is_ours = frame.get(6..14) == Some(&[0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0x88, 0xb5]);
        let options = frame.get(14).map_or(0, |length| usize::from(length & 7));
        is_ours && frame.get(15 + options..19 + options) == Some(&[0xca, 0xfe, 0xf0, 0x0d])
    });
    let deep = deep.count();
    assert!(deep >= 20, "{deep} of {}", case.packets.len());
    assert!(case.packets.iter().any(|packet| packet.frame.len() < 20), "some are cut off");
}
