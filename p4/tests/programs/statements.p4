// Statements, loops and blocks, in actions, functions and controls.
extern Counter { Counter(bit<32> size); void count(in bit<32> index); }
extern Register<T> { Register(bit<32> size); T read(in bit<32> i); }
extern Picker<T> { Picker(); abstract T pick(in T a, in T b); }
struct Meta { bit<32> value; bit<8>[4] bytes; }

control Inner(inout Meta meta)(bit<32> size) {
    apply { meta.value = size; }
}
control Generic<T>(inout T value) {
    apply { }
}
control Empty() { apply { } }

void helper(inout bit<32> x, out bool done) {
    done = false;
    if (x == 0) return;
    x = x - 1;
    done = true;
    return;
}

control C(inout Meta meta, in bit<8> selector) {
    const bit<32> LIMIT = 16;
    bit<32> tmp = 0;
    Counter(1024) counter;
    @name("reg") Register<bit<32>>(LIMIT) register;
    Inner(8) inner;
    Picker<bit<32>>() picker = {
        bit<32> pick(in bit<32> a, in bit<32> b) {
            return a < b ? a : b;
        }
    };

    action set(bit<32> value, in bit<8> index) {
        meta.value = value;
        meta.bytes[0] = index;
    }
    action noop() { }

    @hidden
    table t {
        key = { meta.value : exact; }
        actions = { set(1, 2); noop; }
        default_action = noop;
    }

    apply {
        ;
        tmp += 1; tmp -= 1; tmp *= 2; tmp /= 2; tmp %= 7;
        tmp |+|= 1; tmp |-|= 1; tmp <<= 1; tmp >>= 1; tmp &= 3; tmp |= 4; tmp ^= 5;
        meta.value[7:0] = 3;
        meta.bytes[1] = meta.bytes[tmp];
        counter.count(tmp);
        (meta).value = 7;
        inner.apply(meta);
        Empty.apply();
        Generic<Meta>.apply(meta);
        @atomic {
            bit<8> key = 1;
            bit<8> actions = key;
            const bit<8> state = 2;
            key = actions + state;
        }
        if (t.apply().hit) { tmp = 1; } else if (t.apply().miss) tmp = 2; else { tmp = 3; }
        if (tmp == 0)
            if (tmp == 1) tmp = 2; else tmp = 3;
        switch (t.apply().action_run) {
            set: { tmp = 1; }
            noop:
            default: { tmp = 2; }
        }
        switch (selector) {
            8w1: 8w2: { exit; }
            8w3 + 1: { }
        }
        for (bit<32> i = 0, bit<32> j = 9; i < j; i += 1, j = j - 1) {
            if (i == 3) continue;
            if (j == 4) break;
            tmp = tmp + i;
        }
        for (;tmp < 3;) tmp += 1;
        @unroll for (@fast bit<32> i in 0 .. 15) tmp += i;
        for (bit<8> byte in meta.bytes) { tmp += (bit<32>) byte; }
        bool done;
        helper(tmp, done);
        exit;
    }
}
