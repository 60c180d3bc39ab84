//! Refusals show keys as reads do.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_entities::{Candidate, write};
use p4rack_p4::Options;
use p4rack_p4rt::entity::{Entry, table_update};
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::WriteRequest;
use p4rack_p4rt::p4::v1::update::Type;
use p4rack_p4rt::schema::Schema;
use p4rack_switch::{Config, PortConfig, Switch};
use p4rack_wire::Nanos;

const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>
header h_t { bit<48> dst; bit<16> type; bit<32> addr; bit<128> six; bit<48> stamp; }
struct headers_t { h_t h; }
struct meta_t {}
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply {} }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action none() {}
    table routes { key = { hdr.h.addr: lpm; } actions = { none; } size = 16; }
    table hosts { key = { hdr.h.dst: exact; sm.ingress_port: exact; } actions = { none; } size = 16; }
    table acl {
        key = {
            hdr.h.addr: ternary;
            hdr.h.type: ternary;
            hdr.h.six: optional;
            hdr.h.stamp: range;
            hdr.h.stamp: exact @name("as_mac") @format(MAC_ADDRESS);
        }
        actions = { none; }
        size = 16;
    }
    apply { routes.apply(); hosts.apply(); acl.apply(); }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply {} }
control C(inout headers_t hdr, inout meta_t meta) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

#[test]
fn keys_in_refusals_are_addresses_prefixes_and_numbers() {
    let ports = [PortConfig { port: 1, rate_bps: 1_000_000_000, queue_limit_bytes: None }];
    let mut switch = Switch::new(Config { ports: ports.into(), ..Config::default() });
    let candidate = Candidate::compile(PROGRAM, "shown.p4", &Options::default()).unwrap();
    let program = candidate.load(None, &mut switch);
    let schema = Schema::new(program.info.clone()).unwrap();
    let mut update = |kind: Type, entry: &Entry| {
        let updates = vec![table_update(kind, entry.build(&schema).unwrap())];
        let request = WriteRequest { updates, ..Default::default() };
        write(&program, &request, &mut switch, Nanos(0)).remove(0)
    };
    let mac = [2, 0, 0, 0, 0, 1];
    let acl = || Entry::of("acl").exact("as_mac", 9).priority(1);
    for (entry, key) in [
        (
            Entry::of("routes").lpm("hdr.h.addr", [10, 0, 2, 0], 24),
            "hdr.h.addr=10.0.2.0/24 of table I.routes",
        ),
        (
            Entry::of("hosts").exact("hdr.h.dst", mac).exact("sm.ingress_port", 3),
            "hdr.h.dst=02:00:00:00:00:01 sm.ingress_port=3 of table I.hosts",
        ),
        (
            acl().ternary("hdr.h.addr", [10, 0, 0, 0], [255, 0, 0, 0]).ternary("hdr.h.type", 0x0800, 0xffff),
            "hdr.h.addr=10.0.0.0&255.0.0.0 hdr.h.type=0x0800 hdr.h.six=* hdr.h.stamp=* \
             as_mac=00:00:00:00:00:09 of table I.acl",
        ),
        (
            acl().optional("hdr.h.six", 1).range("hdr.h.stamp", 5, 7),
            "hdr.h.addr=* hdr.h.type=* hdr.h.six=::1 hdr.h.stamp=5..7 as_mac=00:00:00:00:00:09 of table I.acl",
        ),
    ] {
        let entry = entry.action("none");
        let refusal = update(Type::Modify, &entry).unwrap_err();
        assert_eq!((refusal.code, refusal.message), (Code::NotFound, format!("entry {key} not found")));
        update(Type::Insert, &entry).unwrap();
        let refusal = update(Type::Insert, &entry).unwrap_err();
        assert_eq!(
            (refusal.code, refusal.message),
            (Code::AlreadyExists, format!("entry {key} already exists"))
        );
        update(Type::Delete, &entry).unwrap();
        let refusal = update(Type::Delete, &entry).unwrap_err();
        assert_eq!((refusal.code, refusal.message), (Code::NotFound, format!("entry {key} not found")));
    }
}
