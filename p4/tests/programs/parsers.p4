// Parsers: locals, states, select with every kind of keyset, value sets.
#include <core.p4>
header Ethernet { bit<48> dst; bit<48> src; bit<16> type; }
header Vlan { bit<3> pcp; bit<1> dei; bit<12> vid; bit<16> type; }
struct Headers { Ethernet eth; Vlan[2] vlan; }
struct Match { @match(ternary) bit<16> type; bit<8> low; }

parser Sub(packet_in packet, out Ethernet eth) {
    state start { packet.extract(eth); transition accept; }
}

parser P(packet_in packet, out Headers headers, in bit<8> state)(bool strict) {
    const bit<16> TPID = 0x8100;
    bit<16> count = 0;
    Sub() sub;
    @size(4) value_set<bit<16>>(4) tpids;
    value_set<Match>(8) pairs;
    value_set<tuple<bit<16>, bit<8>>>(8) tuples;

    @name("first") state start {
        sub.apply(packet, headers.eth);
        count = count + 1;
        { bit<8> inner = state; count = count + (bit<16>) inner; }
        if (strict) { verify(count < 3, error.NoMatch); } else count = 0;
        transition select(headers.eth.type, headers.eth.src[7:0]) {
            (TPID, _) : vlan;
            (0x0800 &&& 0xFF00, 1 .. 9) : accept;
            (16w5, default) : vlan;
            (tpids, 8w3) : vlan;
            (_, _) : other;
        }
    }
    state vlan {
        packet.extract(headers.vlan.next);
        bit<8> ahead = packet.lookahead<bit<8>>();
        transition select(headers.vlan.last.type) {
            TPID : vlan;
            tpids : vlan;
            (TPID + 1) : accept;
            (16w1 + 2) &&& 16w3 : accept;
            (bit<16>) 8w3 .. 16w9 : accept;
            _ : other;
        }
    }
    state other {
        packet.advance(32w8 * 4);
        transition reject;
    }
    state dead { }
    state empty { transition select(count) { default : accept; } }
}
