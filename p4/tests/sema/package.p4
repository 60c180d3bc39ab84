// The package: blocks must have the architecture's signatures.
#include <core.p4>
#include <v1model.p4>

struct hdr_t { }
struct meta_t { }
parser P(packet_in pkt, out hdr_t hdr, inout meta_t meta, inout standard_metadata_t sm) { state start { transition accept; } }
control V(inout hdr_t hdr, inout meta_t meta) { apply { } }
control I(inout hdr_t hdr, inout meta_t meta) { apply { } }
control E(inout hdr_t hdr, in meta_t meta, inout standard_metadata_t sm) { apply { } }
control D(packet_out pkt, in hdr_t hdr) { apply { } }
V1Switch(P(), V(), I(), // error: `I` does not fit `Ingress`
         E(), // error: `E` does not fit `Egress`
         V(), D()) main;
V1Switch(P(), V()) other; // error: `V1Switch` takes 6 arguments, 2 given
