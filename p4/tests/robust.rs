//! Programs with tokens exchanged, doubled or lost are accepted or refused, never a fault.

use crate::common;

use common::program;
use proptest::prelude::*;

/// A program with a little of everything.
fn rich() -> String {
    let globals =
        "enum bit<8> Op { Rsv = 1, Grt = 2 } type bit<16> Slot; header_union un_t { eth_t e; tag_t t; }
        struct note_t { bit<8> a; Slot s; }
        bit<8> twice(in bit<8> v) { return v + v; } T id<T>(in T v) { return v; }";
    let parser = "value_set<bit<16>>(4) vs; bit<8> n = 0;
        state start { pkt.extract(hdr.eth); transition select(hdr.eth.type, meta.a) { (0x8100, _) : tags; (vs, 1 .. 3) : reject; _ : accept; } }
        state tags { pkt.extract(hdr.tags.next); n = n + pkt.lookahead<bit<8>>(); verify(n != 9, error.NoMatch);
            transition select(hdr.tags.last.type) { 0x8100 &&& 0xFF00 : tags; default : accept; } }";
    let locals = "register<bit<32>>(16) r; counter(4, CounterType.bytes) c; direct_counter(CounterType.packets) dc; bit<32> v; un_t u; Slot s;
        action set(inout bit<8> x, bit<8> y) { x = y; dc.count(); if (y == 3) { exit; } }
        action rmw(bit<32> i) { r.read(v, i); v = v |+| 1; r.write(i, v); }
        table t { key = { hdr.eth.dst : exact; meta.w : lpm; meta.b : ternary @name(\"b\"); } actions = { set(meta.a); rmw; NoAction; }
            default_action = rmw(1); const entries = { (1, 0x1200 &&& 0xFF00, _) : set(7); } counters = dc; size = 64; }";
    let apply = "if (t.apply().hit && meta.flag) { meta.a = twice(meta.b)[7:0]; } else { set(meta.inner.x, 2); }
        switch (t.apply().action_run) { rmw: { c.count(v); } default: { mark_to_drop(sm); } }
        for (bit<8> i in 0 .. 3) { if (i == 2) { continue; } hdr.tags[i].vid = id(hdr.tags[0].vid); }
        meta.inner = {x = meta.a, y = (bit<8>) Op.Grt}; hdr.other = hdr.eth; meta.w = meta.a ++ meta.b; s = (Slot) meta.w;
        hash(v, HashAlgorithm.crc16, 32w0, {hdr.eth, meta.a}, 32w8); hdr.tags.pop_front(1); u.t.setValid(); digest<note_t>(1, {meta.a, s});
        meta.s = meta.flag ? -meta.s : meta.s << 1; sm.egress_spec = (bit<9>) (meta.w % 4);";
    program(globals, parser, locals, apply)
}

/// Words and signs.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut word = false;
    for c in text.chars() {
        let is_word = c.is_alphanumeric() || c == '_';
        match tokens.last_mut() {
            Some(last) if word && is_word => last.push(c),
            _ => tokens.push(c.to_string()),
        }
        word = is_word;
    }
    tokens
}

#[test]
fn the_program_itself_is_accepted() {
    common::compile(&rich());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_programs_never_fault(edits in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..3u8), 1..4)) {
        let text = rich();
        let (head, body) = text.split_at(text.find("header eth_t").unwrap_or(0));
        let mut body = tokens(body);
        for (from, to, how) in edits {
            let (from, to) = (from.index(body.len()), to.index(body.len()));
            match how {
                0 => body[to] = body[from].clone(),
                1 => body.insert(to, body[from].clone()),
                _ => { body.remove(to); }
            }
        }
        // Either answer will do.
        let _ = common::try_compile(&format!("{head}{}", body.concat()));
    }
}
