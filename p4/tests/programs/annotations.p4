// Annotations anywhere, of every form; names that look like keywords.
@pragma once_upon a time
@free("form") @empty @parens(nested (deeply (so))) @odd(That's it: 5 % 3 => `x` ? § ${y})
@list[1, 2 + 3, "four", true] @kv[a = 1, b = "two", c = 3 * 4,] @none[]
@table @if(true) @bit
struct Annotated {
    @name("a") bit<8> a;
    @field_list(8w1, 2) @optional bit<8> b;
}

@noWarn("unused") const bit<8> C = 1;
@deprecated("long ago \\ far away\n") extern void old(@optional in bit<8> x);

@pkginfo[name = "annotations", version = "1"]
control K(inout bit<8> type, in bit<8> list, in bit<8> priority) {
    bit<8> key = 1;
    bit<8> apply = 2;
    bit<8> entries = 3;
    @name("t") table actions {
        key = { type : exact; list : exact; key : exact; priority : exact; }
        actions = { }
    }
    @tag apply @body {
        type = list + priority + key + apply + entries;
        actions.apply();
        @nested { type = 3; }
    }
}

control list2<list>(in list x) { apply { } }
@name("main") K() main;
