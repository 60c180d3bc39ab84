// A closing brace is missing.
control First(inout bit<8> x) {
    apply {
        if (x == 1) {
            x = 2;
    }
}

control Second(inout bit<8> x) {
    apply { x = x ? ; }
}

control Third() {
    apply {
