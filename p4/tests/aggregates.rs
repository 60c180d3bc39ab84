//! Arrays, stacks of header unions, registers of structs and externs of the program's own in the IR.

use crate::common;

use common::{assert_lines, compile, errors, ingress, program};
use p4rack_p4::ir::{ExternCall, InstanceKind, Role, Stmt, Task, Ty};

const UNIONS: &str =
    "header b_t { bit<8> v; } header s_t { bit<16> v; } header_union u_t { b_t byte; s_t short; }";

#[test]
fn arrays_of_scalars_are_read_by_a_search_and_written_by_a_switch() {
    assert_lines(
        &ingress(
            "",
            "bit<8>[3] list;",
            "list = {1, 2, 3}; meta.a = list[1]; list[meta.a] = 9; meta.b = list[meta.b];",
        ),
        "I.list[0] = 1
         I.list[1] = 2
         I.list[2] = 3
         meta.a = I.list[1]
         I.$t1 = meta.a
         switch I.$t1
         case 0
           I.list[0] = 9
         case 1
           I.list[1] = 9
         case 2
           I.list[2] = 9
         default
         I.$t2 = meta.b
         meta.b = ((I.$t2 < 1) ? I.list[0] : ((I.$t2 < 2) ? I.list[1] : I.list[2]))",
    );
}

#[test]
fn arrays_in_headers_are_fields() {
    let globals = "header arr_t { bit<4>[3] nibbles; bit<4> last; }";
    let parser =
        "arr_t h; state start { pkt.extract(h); meta.a = (bit<8>) h.nibbles[2]; transition accept; }";
    let compiled = compile(&program(globals, parser, "", ""));
    let header = compiled.program.headers.iter().find(|h| h.type_name == "arr_t").expect("the header");
    let names: Vec<&str> = header.fields.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["nibbles[0]", "nibbles[1]", "nibbles[2]", "last"]);
}

#[test]
fn arrays_hold_no_varbits_and_have_no_next() {
    let message = errors(&program("header bad_t { varbit<8>[2] v; }", "", "", ""));
    assert_eq!(message, ["a header cannot have a field of type `varbit<8>[2]`"]);
    let parser = "bit<8>[2] list; state start { meta.a = list.next; transition accept; }";
    assert_eq!(errors(&program("", parser, "", "")), ["an array of `bit<8>` has no `next`"]);
    assert_eq!(
        errors(&program("", "", "bit<8>[2] list;", "list.push_front(1);")),
        ["`bit<8>[2]` has no method `push_front`"]
    );
}

#[test]
fn several_indices_known_at_run_time_only_have_a_limit() {
    let globals = "struct row_t { bit<8>[100] cells; }";
    let text = program(globals, "", "row_t[100] rows;", "rows[meta.a].cells[meta.b] = 1;");
    let found = errors(&text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].ends_with("10000, at most 4096"), "{found:?}");
}

#[test]
fn headers_are_padded_to_whole_bytes() {
    let globals = "header odd_t { bit<17> v; }";
    let parser = "odd_t h; state start { pkt.extract(h); transition accept; }";
    let compiled = compile(&program(globals, parser, "", ""));
    let header = compiled.program.headers.iter().find(|h| h.type_name == "odd_t").expect("the header");
    let padding = header.fields.last().expect("a field");
    assert_eq!(padding.name, "_padding");
    assert_eq!(compiled.program.vars[padding.var.0 as usize].ty, Ty::Bit(7));
}

#[test]
fn stacks_of_unions_share_one_next_index() {
    let parser = "u_t[2] us; state start { pkt.extract(us.next.byte); pkt.extract(us.next.short);
        meta.a = us[0].byte.v; transition accept; }";
    let compiled = compile(&program(UNIONS, parser, "", ""));
    assert_lines(
        &compiled.program.parser_text(),
        "state P.start
           invalid P.us[0].byte
           invalid P.us[1].byte
           P.us.$next$ = 0
           invalid P.us[0].short
           invalid P.us[1].short
           P.us.$next$ = 0
           extract P.us.byte.next
           extract P.us.short.next
           meta.a = P.us[0].byte.v
           accept",
    );
    let next: Vec<_> = compiled.program.stacks.iter().filter(|s| s.name.starts_with("P.us")).collect();
    assert_eq!(next[0].next, next[1].next);
}

#[test]
fn a_union_of_a_stack_may_be_chosen_at_run_time() {
    assert_lines(
        &ingress(
            UNIONS,
            "u_t[2] us;",
            "us[meta.a].byte.setValid(); us[meta.a].byte.v = 1; us.push_front(1);",
        ),
        "invalid I.us[0].byte
         invalid I.us[1].byte
         I.us.$next$ = 0
         invalid I.us[0].short
         invalid I.us[1].short
         I.us.$next$ = 0
         I.$t1 = meta.a
         valid I.us.byte[I.$t1]
         I.$t2 = meta.a
         I.us.byte[I.$t2].v = 1
         I.$next3 = I.us.$next$
         I.us.$next$ = I.$next3
         shift I.us.byte by 1
         I.us.$next$ = I.$next3
         shift I.us.short by 1",
    );
}

#[test]
fn reading_next_past_the_end_is_an_error_of_the_packet() {
    let parser = "state start { transition select(hdr.tags.next.vid) { 0 : start; default : accept; } }";
    let compiled = compile(&program("", parser, "", ""));
    let text = compiled.program.parser_text();
    assert!(text.contains("verify (hdr.tags.$next$ < 3) else"), "{text}");
    assert!(text.contains("select hdr.tags[hdr.tags.$next$].vid"), "{text}");
}

#[test]
fn registers_of_structs_hold_the_concatenation() {
    let compiled = compile(&program(
        "",
        "",
        "register<inner_t>(8) r; inner_t v;",
        "r.read(v, 1); meta.a = v.y; r.write(2, {meta.b, 7});",
    ));
    assert!(
        compiled
            .program
            .instances
            .iter()
            .any(|i| matches!(i.kind, InstanceKind::Register { ty: Ty::Bit(16), .. }))
    );
    assert_lines(
        &common::ingress_text(&compiled.program),
        "I.$element1 = I.r[1]
         I.v.x = I.$element1[15:8]
         I.v.y = I.$element1[7:0]
         meta.a = I.v.y
         I.r[2] = (meta.b ++ 7)",
    );
    assert_eq!(
        errors(&program("", "", "register<eth_t>(8) r;", "")),
        ["a register cannot hold `eth_t`: only bits, integers and structs of these"]
    );
}

#[test]
fn externs_of_the_program_are_calls_with_what_goes_in_and_out() {
    let globals = "extern tally_t { tally_t(bit<8> base); bit<16> add<T>(in T data, inout bit<8> more, out bit<8> sum); }
        extern bit<8> spin(in bit<8> v);";
    let compiled = compile(&program(
        globals,
        "",
        "tally_t(3) tally;",
        "meta.w = tally.add(hdr.eth.type, meta.a, meta.b); meta.a = spin(meta.b);",
    ));
    let calls: Vec<_> = compiled
        .program
        .control(Role::ingress(Task::Process))
        .iter()
        .filter_map(|s| match s {
            Stmt::Extern { call: ExternCall::Foreign { name, object, args, results, .. }, .. } => {
                Some((name.as_str(), object.as_deref(), args.len(), results.len()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(calls, [("tally_t.add", Some("I.tally"), 2, 3), ("spin", None, 1, 1)]);
    let text = common::ingress_text(&compiled.program);
    assert!(text.contains("meta.a = I.$result1"), "{text}");
}

const ABSTRACT: &str = "extern calc_t { calc_t(); abstract bit<8> f(in bit<8> x); bit<8> run(in bit<8> x); }";

#[test]
fn abstract_methods_are_implemented_by_the_instance() {
    let fine = "calc_t() calc = { bit<8> f(in bit<8> x) { return x + 1; } };";
    assert_eq!(errors(&program(ABSTRACT, "", fine, "meta.a = calc.run(meta.b);")), Vec::<String>::new());
    let this = "calc_t() calc = { bit<8> f(in bit<8> x) { return this.run(x); } };";
    assert_eq!(errors(&program(ABSTRACT, "", this, "")), Vec::<String>::new());
    let refused = |locals: &str| errors(&program(ABSTRACT, "", locals, ""));
    assert_eq!(refused("calc_t() calc;"), ["`calc` does not implement `f`"]);
    assert_eq!(
        refused("calc_t() calc = { bit<8> g(in bit<8> x) { return x; } };"),
        ["`calc_t` has no abstract method `g` with this signature"]
    );
    assert_eq!(
        refused("calc_t() calc = { void f(in bit<8> x) { } };"),
        ["method `f` differs from the abstract one of `calc_t`"]
    );
    assert_eq!(refused("bit<8> v = this.f(1);"), ["`this` is for the methods that an instance implements"]);
}

/// The shape of TNA's `RegisterAction`: the stored value is passed in and out, a second value is
/// returned.
#[test]
fn bodies_of_abstract_methods_are_kept() {
    let globals = "extern update_t<T, U> { update_t(); abstract void apply(inout T value, out U seen);
            U execute(in bit<32> index); }
        extern calc_t { calc_t(); abstract bit<8> f(in bit<8> x); bit<8> run(in bit<8> x); }";
    let locals = "bit<8> step = 3;
        update_t<inner_t, bit<8>>() upd = {
            void apply(inout inner_t value, out bit<8> seen) {
                seen = value.x;
                if (value.y == 0) { value.y = step; } else { value.x = value.x + meta.a; }
            }
        };
        calc_t() calc = { bit<8> f(in bit<8> x) { if (x == 0) { return 1; } return x; } };";
    let compiled =
        compile(&program(globals, "", locals, "meta.b = upd.execute(0); meta.a = calc.run(step);"));
    assert_lines(
        &compiled.program.methods_text(),
        "method I.upd.apply(inout I.upd.apply.value.x I.upd.apply.value.y, out I.upd.apply.seen) -> {}
           I.upd.apply.seen = I.upd.apply.value.x
           if (I.upd.apply.value.y == 0)
             I.upd.apply.value.y = I.step
           else
             I.upd.apply.value.x = (I.upd.apply.value.x + meta.a)
         method I.calc.f(in I.calc.f.x) -> {I.calc.f.$result}
           scope
             if (I.calc.f.x == 0)
               I.calc.f.$result = 1
               return
             I.calc.f.$result = I.calc.f.x
             return",
    );
}

#[test]
fn match_kinds_are_values_for_constructors() {
    let globals = "extern look_t<M> { look_t(M kinds); } const tuple<match_kind> ONCE = {exact};";
    assert_eq!(errors(&program(globals, "", "look_t<tuple<match_kind>>(ONCE) l;", "")), Vec::<String>::new());
    assert_eq!(
        errors(&program("", "", "tuple<match_kind> v;", "")),
        ["a variable cannot hold `tuple<match_kind>`"]
    );
}
