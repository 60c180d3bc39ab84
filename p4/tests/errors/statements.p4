// Mistakes in blocks.
typedef bit<8> T;
control C(inout bit<8> x) {
    action a(bit<8> v) {
        x = v
        x = = v;
        x + 1;
        f(x) = 3;
        if x == 1 { }
        else { }
        T = 3;
        x = T + 1;
        x = bit<8> 3;
        for (i in 0 .. 3) { }
        if (x = 1) { }
        for (bit<8> i = 0; i = 3; i = i + 1) { }
        action inner() { }
    }
    void function() { }
    apply {
        a(1)(2);
        a(§);
        # define LATE
        return 1
    }
    action after() { }
}
control NoApply() { }
control Compares(inout bit<8> a, inout bit<8> b) {
    apply {
        if (a == 1 && (b = 2)) { }
        a = (a = 1) ? 8w2 : 8w3;
        bool q = a = 3;
        const bool r = b = 4;
        a = f(1)[(b = 1):0];
        return a = 5;
    }
}
