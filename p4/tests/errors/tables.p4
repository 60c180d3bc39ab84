// Mistakes in tables.
control C(in bit<8> x) {
    action a() { }
    table t {
        key = { x exact; x : ; x : exact }
        actions = { a, b; c }
        size 3;
        default_action = a()
        entries = { 1 : a(); 2 &&& : a(); 3 a; priority = 1 (1): a; }
        apply;
    }
    apply { t.apply(); }
}
