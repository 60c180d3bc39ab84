// Every way to declare a type.
#include <core.p4>

const bit<8> WIDTH_BYTES = 8w4;
const int MAX = 1_000;
const bit<(MAX + 1)> WIDE = 0;
const bool YES = true;
const string TITLE = "a \"quoted\" title";

typedef bit<48> MacAddr;
typedef bit<(8 * 4)> Ipv4Addr;
type bit<9> Port;
@p4runtime_translation("example.org/Vlan", 12)
type bit<12> Vlan;

header Ethernet {
    MacAddr dst;
    MacAddr src;
    bit<16> ether_type;
}

header Options {
    varbit<320> data;
    int<8> signed_value;
    bit one_bit;
}

header Empty { }

header Generic<T> {
    T value;
}

header_union Either {
    Ethernet ethernet;
    Options options;
}

struct Headers {
    @name("eth") @hidden Ethernet ethernet;
    Options[4] options;
    Generic<bit<32>> generic;
    tuple<bit<8>, tuple<bool, Generic<bit<8>>>> nested;
    Either[2] unions;
    error last_error;
    list<bit<8>> values;
}

struct Pair<T, U> {
    T first;
    U second;
}

struct Old_style {
    bit<8> counts[4];
}

enum Color { RED, GREEN, BLUE, }
enum bit<16> EtherType {
    VLAN = 0x8100,
    IPV4 = 0x0800,
    @deprecated("use IPV6") IPV6 = EtherType.IPV4 + 1,
}
enum Port SmallPorts { A = 1 }

error { BadHeader, BadLength }
match_kind { fuzzy, nearly, }

typedef struct Inner { bit<8> x; } InnerAlias;
typedef Pair<bit<8>, Pair<bool, InnerAlias>> Deep;
typedef Ethernet[3] EthernetStack;
typedef tuple<> Nothing;

extern Forward;
extern Checksum<O> {
    Checksum();
    Checksum(bit<32> seed);
    void clear();
    void update<D>(in D data, @optional in bool condition = true);
    O get();
    abstract bit<8> combine(in bit<8> a, in bit<8> b);
}
extern bit<32> random(in bit<32> lo, in bit<32> hi);
extern T identity<T>(in T value);
extern void log(string message);
extern Pair<T, U> swap<T, U>(in Pair<U, T> pair);

parser Parse<H>(packet_in packet, out H headers);
control Pipe<H, M>(inout H headers, inout M meta);
package Top<H, M>(Parse<H> p, Pipe<H, M> c, bool flag = false);
