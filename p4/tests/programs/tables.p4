// Tables with every property.
extern ActionProfile { ActionProfile(bit<32> size); }
struct Meta { bit<8> a; bit<16> b; bit<32> c; }
match_kind { exact, ternary, lpm, range, optional }

action global_drop() { }

control C(inout Meta meta) {
    action set(bit<8> value) { meta.a = value; }
    action mark(inout bit<8> field, bit<8> value) { field = value; }

    table plain {
        actions = { set; global_drop; }
        key = {
            meta.a : exact @name("a");
            meta.b : ternary;
            meta.c[15:0] & 0xFF : lpm;
        }
        size = 1024;
        const default_action = set(3);
    }

    @hidden table full {
        key = {
            meta.a : exact;
            meta.b : ternary @name("b") @tag[1, "two", x + 1];
            meta.c : range;
        }
        actions = {
            @defaultonly global_drop();
            @tableonly mark(meta.a);
            .global_drop;
            set;
        }
        default_action = .global_drop();
        const entries = {
            (1, _, 0 .. 9) : set(1);
            (2, 0x10 &&& 0xF0, _) : mark(2) @comment("why");
            const priority = 10 : (3, default, 5) : global_drop();
            priority = (4 + 5) : (4, 16w3, 6) : .global_drop;
        }
        implementation = ActionProfile(128);
        const support_timeout = true;
        counters = meta.c;
        largest_priority_wins = false;
        priority_delta = 10;
        @private custom = { 1, 2 };
    }

    table single {
        key = { meta.a : exact; }
        actions = { set; }
        entries = { 1 : set(1); 8w2 &&& 8w3 : set(2); (3) : set(3); (_) : set(4); }
    }

    apply {
        plain.apply();
        if (full.apply().hit) single.apply();
    }
}
