// Names that are types in one place and values in another.
struct T { bit<8> f; }
typedef bit<8> N;
extern void use<X>(in X x);

control First(inout bit<8> a, in T t, in bit<8> b) {
    bit<8> N = 3;
    apply {
        // `N` is a value here: no cast, no type arguments.
        a = (N) - b;
        bool r = N < b && b > (a);
        use<T>(t);
        { bit<8> T = 4; a = (T) - b; }
        T again = t;
    }
}

control Second(inout bit<8> a, in bit<8> b) {
    apply {
        // And a type here.
        a = (N) - b;
        N x = (N) 1;
        use<N>(x);
    }
}

N function(in N n, in bit<8> First) {
    bit<8> x = First + n;
    return x;
}

control Third<T>(inout T t) {
    apply { T copy = t; t = (T) copy; }
}

control Fourth(inout bit<8> Second) {
    Third<bit<8>>() third;
    apply { third.apply(Second); First.apply(Second, { 1 }, 2); }
}
