//! Translation of each construct of the language into the IR.

use crate::common;

use common::{assert_lines, compile, ingress, program};
use p4rack_p4::ir::{HeaderRef, InstanceKind, Intrinsic, Matcher, Role, Stmt, Task, Ty};

#[test]
fn structs_are_flattened_and_swaps_go_through_temporaries() {
    assert_lines(
        &ingress("", "", "meta.inner = {meta.inner.y, meta.inner.x}; meta.inner = {1, ...};"),
        "I.$t1 = meta.inner.y
         I.$t2 = meta.inner.x
         meta.inner.x = I.$t1
         meta.inner.y = I.$t2
         meta.inner.x = 1
         meta.inner.y = 0",
    );
}

#[test]
fn headers_are_copied_whole_and_compared_with_their_validity() {
    assert_lines(
        &ingress("", "", "hdr.other = hdr.eth; hdr.eth.setInvalid(); hdr.other = {1, 2, 3}; hdr.eth = {#};"),
        "hdr.other := hdr.eth
         invalid hdr.eth
         valid hdr.other
         hdr.other.dst = 1
         hdr.other.src = 2
         hdr.other.type = 3
         invalid hdr.eth",
    );
    let text = ingress("", "", "meta.flag = hdr.eth == hdr.other && hdr.eth.isValid();");
    assert!(text.contains("(!hdr.eth.$valid$ && !hdr.other.$valid$) ||"), "{text}");
    assert!(text.contains("(hdr.eth.type == hdr.other.type)"), "{text}");
}

#[test]
fn constants_are_folded_with_arbitrary_precision() {
    assert_lines(
        &ingress(
            "const bit<16> N = (1 << 70) >> 66;",
            "",
            "meta.w = N * 2 + (16w0xF0[7:4] ++ 12w1); meta.s = -8s127 |-| 8s5;",
        ),
        "meta.w = 61473
         meta.s = 128",
    );
}

#[test]
fn expressions_keep_widths_and_signs() {
    assert_lines(
        &ingress(
            "",
            "",
            "meta.w = (bit<16>) meta.a + 1; meta.w = meta.a ++ meta.b; meta.a = meta.w[11:4]; meta.a[3:0] = 5;
             meta.s = (int<8>) meta.a >> 1; meta.a = meta.flag ? meta.a : 8w7; meta.a += 2; meta.flag = (bool) meta.a[0:0];",
        ),
        "meta.w = ((Bit(16))meta.a + 1)
         meta.w = (meta.a ++ meta.b)
         meta.a = meta.w[11:4]
         meta.a[3:0] = 5
         meta.s = ((Int(8))meta.a >> 1)
         meta.a = (meta.flag ? meta.a : 7)
         meta.a = (meta.a + 2)
         meta.flag = (Bool)meta.a[0:0]",
    );
}

#[test]
fn functions_are_inlined_with_a_place_for_the_result() {
    assert_lines(
        &ingress(
            "bit<8> twice(in bit<8> v) { return v + v; }
             bit<8> pick(bool first, in bit<8> a, in bit<8> b) { if (first) { return a; } return b; }",
            "",
            "meta.a = twice(meta.b); meta.b = pick(true, meta.a, 4);",
        ),
        "I.twice.v = meta.b
         scope
           I.$twice1 = (I.twice.v + I.twice.v)
           return
         meta.a = I.$twice1
         I.pick.a = meta.a
         scope
           I.$pick2 = I.pick.a
           return
           I.$pick2 = 4
           return
         meta.b = I.$pick2",
    );
}

#[test]
fn generic_functions_take_the_types_of_their_call() {
    let text = ingress(
        "T same<T>(in T v) { return v; }",
        "",
        "meta.w = same(meta.w); meta.inner = same(meta.inner);",
    );
    assert!(text.contains("meta.w = I.$same1"), "{text}");
    assert!(text.contains("meta.inner.y = I.$same2.y"), "{text}");
}

#[test]
fn calls_are_evaluated_left_to_right() {
    assert_lines(
        &ingress(
            "bit<8> bump(inout bit<8> v) { v = v + 1; return v; }",
            "",
            "meta.b = meta.a + bump(meta.a);",
        ),
        "I.$t1 = meta.a
         I.bump.v = meta.a
         scope
           I.bump.v = (I.bump.v + 1)
           I.$bump2 = I.bump.v
           return
         meta.a = I.bump.v
         meta.b = (I.$t1 + I.$bump2)",
    );
}

#[test]
fn the_right_side_of_and_happens_only_if_the_left_holds() {
    assert_lines(
        &ingress("", "table t { actions = { NoAction; } }", "meta.flag = meta.a == 1 && t.apply().hit;"),
        "I.$t1 = (meta.a == 1)
         if I.$t1
           apply I.t hit=I.$hit2
           I.$t1 = I.$hit2
         meta.flag = I.$t1",
    );
}

#[test]
fn direct_action_calls_copy_in_and_out_even_on_exit() {
    assert_lines(
        &ingress(
            "",
            "action act(inout bit<8> v, in bit<8> w) { v = v + w; if (v == 9) { exit; } }",
            "act(meta.a, meta.a);",
        ),
        "scope
           I.act.v = meta.a
           I.act.w = meta.a
           I.act.v = (I.act.v + I.act.w)
           if (I.act.v == 9)
             meta.a = I.act.v
             exit
           meta.a = I.act.v",
    );
}

#[test]
fn sub_controls_work_on_their_arguments_when_these_do_not_overlap() {
    let sub = "control Sub(inout bit<8> v, in bit<8> w)(bit<8> step) { apply { v = v + w + step; if (v == 0) { return; } v = 1; } }";
    assert_lines(
        &ingress(sub, "Sub(3) s;", "s.apply(meta.a, meta.b);"),
        "scope
           meta.a = ((meta.a + meta.b) + 3)
           if (meta.a == 0)
             return
           meta.a = 1",
    );
    assert_lines(
        &ingress(sub, "Sub(3) s;", "s.apply(meta.a, meta.a);"),
        "I.s.v = meta.a
         I.s.w = meta.a
         scope
           I.s.v = ((I.s.v + I.s.w) + 3)
           if (I.s.v == 0)
             return
           I.s.v = 1
         meta.a = I.s.v",
    );
}

#[test]
fn instances_of_a_control_have_tables_of_their_own() {
    let sub = "control Sub(inout meta_t m) { action set(bit<8> v) { m.a = v; } table t { key = { m.b : exact; } actions = { set; } } apply { t.apply(); } }";
    let text = program("", "", "Sub() one; Sub() two;", "one.apply(meta); two.apply(meta);")
        .replace("control V(", &format!("{sub}\ncontrol V("));
    let compiled = compile(&text);
    let names: Vec<&str> = compiled.program.tables.iter().map(|t| t.named.name.as_str()).collect();
    assert_eq!(names, ["I.one.t", "I.two.t"]);
    assert_lines(
        &common::ingress_text(&compiled.program),
        "apply I.one.t
         apply I.two.t",
    );
}

#[test]
fn switches_resolve_fall_through() {
    assert_lines(
        &ingress(
            "",
            "action a1() { } action a2() { } table t { actions = { a1; a2; NoAction; } }",
            "switch (t.apply().action_run) { a1: a2: { meta.a = 1; } default: { meta.a = 2; } }
             switch (meta.b) { 1: { meta.a = 3; } 2: 3: { meta.a = 4; } }",
        ),
        "apply I.t action_run=I.$action_run1
         switch I.$action_run1
         case 0, 1
           meta.a = 1
         default
           meta.a = 2
         switch meta.b
         case 1
           meta.a = 3
         case 2, 3
           meta.a = 4
         default",
    );
}

#[test]
fn loops_count_to_the_last_value_of_their_type() {
    assert_lines(
        &ingress("", "", "for (bit<8> i in 250 .. 255) { meta.a = meta.a + i; }"),
        "I.$hi1 = 255
         I.$at2 = 250
         I.$more3 = (I.$at2 <= I.$hi1)
         while I.$more3
           I.i = I.$at2
           meta.a = (meta.a + I.i)
         update
           I.$more3 = (I.$at2 < I.$hi1)
           I.$at2 = (I.$at2 + 1)",
    );
    assert_lines(
        &ingress("", "", "for (bit<8> i = 0; i < 4; i = i + 1) { if (i == 2) { continue; } meta.a = i; }"),
        "I.i = 0
         while (I.i < 4)
           if (I.i == 2)
             continue
           meta.a = I.i
         update
           I.i = (I.i + 1)",
    );
}

#[test]
fn stacks_have_constant_and_computed_elements() {
    assert_lines(
        &ingress(
            "",
            "",
            "hdr.tags[1].vid = 5; hdr.tags[meta.a].vid = hdr.tags[meta.b].vid; hdr.tags.push_front(2); hdr.tags.pop_front(1);",
        ),
        "hdr.tags[1].vid = 5
         I.$t1 = meta.a
         hdr.tags[I.$t1].vid = hdr.tags[meta.b].vid
         shift hdr.tags by 2
         shift hdr.tags by -1",
    );
}

#[test]
fn parsers_have_states_selects_and_sub_parsers() {
    let sub = "parser Tags(packet_in p, inout hdr_t h) {
        state start { p.extract(h.tags.next); transition select(h.tags.last.type) { 0x8100 : start; default : accept; } }
    }";
    let parser = "Tags() tags; value_set<bit<16>>(4) vs;
        state start {
            pkt.extract(hdr.eth);
            meta.a = pkt.lookahead<inner_t>().y;
            transition select(hdr.eth.type, meta.flag) {
                (0x8100 &&& 0xFF00, _) : tagged;
                (1 .. 5, true) : reject;
                (vs, _) : accept;
            }
        }
        state tagged { tags.apply(pkt, hdr); pkt.advance(8); verify(meta.a == 0, error.NoMatch); transition accept; }";
    let text = program("", parser, "", "").replace("parser P(", &format!("{sub}\nparser P("));
    let compiled = compile(&text);
    assert_lines(
        &compiled.program.parser_text(),
        "state P.start
           extract hdr.eth
           meta.a = lookahead(8 of 16, Bit(8))
           select hdr.eth.type, meta.flag
             0x8100 &&& 0xff00, _ -> P.tagged
             1..5, 1 -> reject
             P.vs, _ -> accept
         state P.tagged
           goto P.tags.start
         state P.tagged$
           advance 8
           verify (meta.a == 0) else 2
           accept
         state P.tags.start
           extract hdr.tags.next
           select hdr.tags.last.type
             33024 -> P.tags.start
             _ -> P.tagged$",
    );
}

#[test]
fn deparsers_emit_in_order() {
    let compiled = compile(&program("", "", "", ""));
    assert_lines(
        &compiled.program.text_of(compiled.program.control(Role::egress(Task::Deparse))),
        "emit hdr.eth
         emit hdr.other
         emit hdr.tags[0]
         emit hdr.tags[1]
         emit hdr.tags[2]",
    );
}

#[test]
fn externs_become_calls() {
    let locals = "register<bit<32>>(8) r; counter(4, CounterType.bytes) c; meter(2, MeterType.packets) m; bit<32> v; bit<2> color;
        action rmw(bit<32> i) { r.read(v, i); v = v + 1; r.write(i, v); }
        table t { actions = { rmw; } }";
    let apply = "rmw(3); c.count(1); m.execute_meter(0, color);
        hash(v, HashAlgorithm.crc32, 32w0, {hdr.eth.dst, meta.a}, 32w16);
        random(v, 0, 7); clone_preserving_field_list(CloneType.I2E, 5, 1); mark_to_drop(sm); truncate(64);
        t.apply(); log_msg(\"v is {}\", {v}); assert(v != 0); digest<inner_t>(1, meta.inner); sm.egress_spec = 3;";
    assert_lines(
        &ingress("", locals, apply),
        "scope
           I.v = I.r[3]
           I.v = (I.v + 1)
           I.r[3] = I.v
         I.c.count(1)
         I.color = I.m.execute(0)
         I.v = 0 + Crc32{hdr.eth.dst, meta.a} % 16
         I.v = random(0, 7)
         clone of ingress 5 fields 1
         drop
         truncate 64
         apply I.t
         log \"v is {}\" {I.v}
         assert (I.v != 0)
         digest inner_t to 1 {meta.inner.x, meta.inner.y}
         sm.egress_spec = 3",
    );
}

#[test]
fn tables_have_keys_actions_entries_and_defaults() {
    let locals = "direct_counter(CounterType.packets) dc;
        action set(inout bit<8> where, bit<8> v) { where = v; dc.count(); }
        action drop() { mark_to_drop(sm); }
        table t {
            key = { hdr.eth.dst : exact; meta.w : lpm @name(\"width\"); meta.b : ternary; hdr.eth.isValid() : exact; }
            actions = { set(meta.a); drop; @defaultonly NoAction; }
            const default_action = NoAction();
            const entries = {
                (1, 0x1200 &&& 0xFF00, 3 &&& 1, true) : set(7);
                (2, _, _, false) : drop();
            }
            size = 64;
            counters = dc;
        }";
    let compiled = compile(&program("", "", locals, "t.apply();"));
    let table = &compiled.program.tables[0];
    let keys: Vec<&str> = table.keys.iter().map(|k| k.named.name.as_str()).collect();
    assert_eq!(keys, ["hdr.eth.dst", "width", "meta.b", "hdr.eth.$valid$"]);
    assert_eq!((table.size, table.default_is_const, table.entries_const), (64, true, true));
    assert_eq!(table.default_action.as_ref().map(|d| d.action), Some(2));
    let big = |n: u32| num_bigint::BigUint::from(n);
    assert_eq!(
        table.entries[0].keys,
        [
            Matcher::Exact(big(1)),
            Matcher::Mask { value: big(0x1200), mask: big(0xff00) },
            Matcher::Mask { value: big(1), mask: big(1) },
            Matcher::Exact(big(1)),
        ]
    );
    assert_eq!((table.entries[0].priority, table.entries[1].priority), (2, 1));
    assert_eq!(table.entries[0].call.args, [big(7)]);
    let action = &compiled.program.actions[table.actions[0].action.0 as usize];
    assert_eq!(action.params.len(), 1);
    assert_lines(
        &compiled.program.text_of(&action.body),
        "I.set.where = meta.a
         I.set.where = I.set.v
         I.dc.count()
         meta.a = I.set.where",
    );
    let counter = table.counter.expect("the property names it");
    assert!(
        matches!(compiled.program.instances[counter.0 as usize].kind, InstanceKind::DirectCounter { table: Some(t), .. } if t.0 == 0)
    );
}

#[test]
fn serializable_enums_and_types_are_their_numbers() {
    assert_lines(
        &ingress(
            "enum bit<8> Op { Rsv = 1, Grt = 2 } type bit<8> Slot; enum Kind { A, B }",
            "Kind k; Slot s;",
            "meta.flag = meta.a == Op.Grt; s = (Slot) meta.a; meta.b = (bit<8>) s; k = Kind.B;
             switch (meta.a) { Op.Rsv: { meta.b = 1; } default: { } }",
        ),
        "meta.flag = (meta.a == 2)
         I.s = meta.a
         meta.b = I.s
         I.k = 1
         switch meta.a
         case 1
           meta.b = 1
         default",
    );
}

#[test]
fn unions_keep_one_member_valid() {
    let globals = "header_union un_t { eth_t e; tag_t t; }";
    let compiled =
        compile(&program(globals, "", "un_t u; un_t w;", "u.t.setValid(); w = u; meta.flag = w.isValid();"));
    let member = compiled.program.headers.iter().find(|h| h.name == "I.u.t").expect("a member");
    let siblings: Vec<&str> =
        member.union_siblings.iter().map(|h| compiled.program.headers[h.0 as usize].name.as_str()).collect();
    assert_eq!(siblings, ["I.u.e"]);
    let text = common::ingress_text(&compiled.program);
    assert!(text.contains("meta.flag = (I.w.e.$valid$ || I.w.t.$valid$)"), "{text}");
}

#[test]
fn field_lists_and_standard_metadata_are_found() {
    let text = program("", "", "", "").replace("bit<8> a;", "@field_list(8w1, 2) bit<8> a;");
    let compiled = compile(&text);
    let names = |list: &[p4rack_p4::ir::VarId]| -> Vec<String> {
        list.iter().map(|v| compiled.program.vars[v.0 as usize].name.clone()).collect()
    };
    let lists: Vec<(u32, Vec<String>)> =
        compiled.program.field_lists.iter().map(|(id, vars)| (*id, names(vars))).collect();
    assert_eq!(lists, [(1, vec!["meta.a".to_owned()]), (2, vec!["meta.a".to_owned()])]);
    let fields: Vec<_> = compiled.program.intrinsics.iter().map(|field| (field.role, field.var)).collect();
    assert_eq!(fields[0].0, Intrinsic::IngressPort);
    assert_eq!(names(&[fields[0].1, fields[1].1]), ["sm.ingress_port", "sm.egress_spec"]);
    assert_eq!(fields.len(), 16, "all fields of the standard metadata");
}

#[test]
fn varbit_headers_are_extracted_with_a_length() {
    let globals = "header opt_t { bit<8> len; varbit<320> data; }";
    let parser = "opt_t opt; state start { pkt.extract(opt, (bit<32>) (pkt.lookahead<bit<8>>() << 3)); transition accept; }";
    let compiled = compile(&program(globals, parser, "", ""));
    let state = &compiled.program.parser().unwrap().states[0];
    let extract = state.stmts.iter().find_map(|s| match s {
        Stmt::Extract { header: HeaderRef::Fixed(h), varbit_bits } => Some((*h, varbit_bits.is_some())),
        _ => None,
    });
    let (header, has_length) = extract.expect("an extract");
    assert!(has_length);
    let data = compiled.program.headers[header.0 as usize].fields[1].var;
    assert_eq!(compiled.program.vars[data.0 as usize].ty, Ty::Varbit(320));
}

#[test]
fn tables_that_nothing_applies_are_left_out() {
    let locals = "action used() { } action unused() { } table t { actions = { used; } } table never { actions = { unused; } }";
    let compiled = compile(&program("", "", locals, "t.apply();"));
    let tables: Vec<&str> = compiled.program.tables.iter().map(|t| t.named.name.as_str()).collect();
    assert_eq!(tables, ["I.t"]);
    let actions: Vec<&str> = compiled.program.actions.iter().map(|a| a.named.name.as_str()).collect();
    assert_eq!(actions, ["NoAction", "I.used"]);
}

#[test]
fn variables_of_a_parser_are_initialised_once() {
    let parser = "bit<8> n = 0;
        state start { pkt.extract(hdr.tags.next); n = n + 1; transition select(n) { 3 : accept; default : start; } }";
    let compiled = compile(&program("", parser, "", ""));
    assert_lines(
        &compiled.program.parser_text(),
        "state P.$entry
           P.n = 0
           goto P.start
         state P.start
           extract hdr.tags.next
           P.n = (P.n + 1)
           select P.n
             3 -> accept
             _ -> P.start",
    );
}

#[test]
fn mark_to_drop_of_a_copy_takes_effect_when_it_is_copied_back() {
    let sub = "control Sub(inout standard_metadata_t m) { apply { mark_to_drop(m); } }";
    let once =
        program("", "", "Sub() s;", "s.apply(sm);").replace("control V(", &format!("{sub}\ncontrol V("));
    let compiled = compile(&once);
    assert_lines(&common::ingress_text(&compiled.program), "drop");
    let action = "action drop_it(inout standard_metadata_t m) { mark_to_drop(m); }";
    let text = ingress(action, "", "drop_it(sm);");
    assert!(text.contains("I.drop_it.m.egress_spec = drop port\n"), "{text}");
    assert!(text.contains("I.drop_it.m.mcast_grp = 0\n"), "{text}");
    assert!(text.contains("  sm.egress_spec = I.drop_it.m.egress_spec\n"), "{text}");
}

#[test]
fn sub_parsers_may_stand_in_an_if() {
    let globals = "parser Sub(packet_in p, inout bit<8> n) { state start { p.advance(8); n = n + 1; transition accept; } }";
    let parser =
        "Sub() s; state start { if (meta.a == 0) { s.apply(pkt, meta.b); } meta.w = 1; transition accept; }";
    let compiled = compile(&program(globals, parser, "", ""));
    assert_lines(
        &compiled.program.parser_text(),
        "state P.start
           select (meta.a == 0)
             1 -> P.start$then
             _ -> P.start$else
         state P.start$then
           goto P.s.start
         state P.start$else
           goto P.start$
         state P.start$
           meta.w = 1
           accept
         state P.start$then$
           goto P.start$
         state P.s.start
           advance 8
           meta.b = (meta.b + 1)
           goto P.start$then$",
    );
}

#[test]
fn generic_controls_are_made_for_the_types_of_the_instance() {
    let globals = "control Keep<T>(inout T v)(T first) { T old; apply { old = v; v = first; } }";
    let text =
        ingress(globals, "Keep<bit<8>>(7) k; Keep<bit<16>>(9) w;", "k.apply(meta.a); w.apply(meta.w);");
    assert_lines(
        &text,
        "I.k.old = meta.a
         meta.a = 7
         I.w.old = meta.w
         meta.w = 9",
    );
}

#[test]
fn what_cannot_be_reached_is_not_elaborated() {
    let locals = "action never() { } action ever() { }";
    let compiled = compile(&program("", "", locals, "if (true) { ever(); } else { never(); }"));
    let names: Vec<&str> = compiled.program.actions.iter().map(|a| a.named.name.as_str()).collect();
    assert_eq!(names, ["I.ever"]);
}
