// Mistakes in parsers.
parser NoStates() { }
parser P(in bit<8> x) {
    state start {
        switch (x) { }
        transition select(x) {
            1 : a
            2 . b;
            (1, ) : c;
            : d;
        }
        x = 1;
    }
    state next { transition 3; }
    bit<8> late;
    action a() { }
}
