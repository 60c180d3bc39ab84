// Two programs, one for each pair of pipes.
#include <tna.p4>

header small_h { bit<8> a; }
header large_h { bit<64> b; }
struct small_t { small_h h; }
struct large_t { large_h h; large_h more; }
struct none_t { }

parser ParseIn<H>(packet_in pkt, out H hdr, out none_t meta, out ingress_intrinsic_metadata_t md) {
    state start { pkt.extract(md); pkt.advance(PORT_METADATA_SIZE); transition accept; }
}
control Small(inout small_t hdr, inout none_t meta, in ingress_intrinsic_metadata_t md,
              in ingress_intrinsic_metadata_from_parser_t from_parser,
              inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
              inout ingress_intrinsic_metadata_for_tm_t for_tm) {
    action send(PortId_t port) { for_tm.ucast_egress_port = port; }
    table forward { key = { md.ingress_port: exact; } actions = { send; } }
    apply { forward.apply(); }
}
control Large(inout large_t hdr, inout none_t meta, in ingress_intrinsic_metadata_t md,
              in ingress_intrinsic_metadata_from_parser_t from_parser,
              inout ingress_intrinsic_metadata_for_deparser_t for_deparser,
              inout ingress_intrinsic_metadata_for_tm_t for_tm) {
    action send(PortId_t port) { for_tm.ucast_egress_port = port; }
    table forward { key = { hdr.h.b: ternary; } actions = { send; } }
    apply { forward.apply(); }
}
control DeparseIn<H>(packet_out pkt, inout H hdr, in none_t meta, in ingress_intrinsic_metadata_for_deparser_t md) {
    apply { pkt.emit(hdr); }
}
parser ParseOut<H>(packet_in pkt, out H hdr, out none_t meta, out egress_intrinsic_metadata_t md) {
    state start { pkt.extract(md); transition accept; }
}
control Out<H>(inout H hdr, inout none_t meta, in egress_intrinsic_metadata_t md,
               in egress_intrinsic_metadata_from_parser_t from_parser,
               inout egress_intrinsic_metadata_for_deparser_t for_deparser,
               inout egress_intrinsic_metadata_for_output_port_t for_port) {
    apply { }
}
control DeparseOut<H>(packet_out pkt, inout H hdr, in none_t meta, in egress_intrinsic_metadata_for_deparser_t md) {
    apply { pkt.emit(hdr); }
}

Pipeline(ParseIn<small_t>(), Small(), DeparseIn<small_t>(), ParseOut<small_t>(), Out<small_t>(), DeparseOut<small_t>()) small;
Pipeline<large_t, none_t, _, _>(ParseIn(), Large(), DeparseIn(), ParseOut<large_t>(), Out<large_t>(), DeparseOut()) large;
Switch(small, large) main;
