//! Programs that are too deep, too wide or grow without bound are refused at a named limit, in little time.

use crate::common;

use common::{errors, program};
use std::fmt::Write as _;

/// The first error, which has the limit in it.
fn first(text: &str) -> String {
    errors(text).into_iter().next().unwrap_or_else(|| "accepted".to_owned())
}

#[test]
fn calls_that_double_at_every_level_are_refused() {
    let mut globals = "bit<8> f0(in bit<8> v) { return v + 1; }\n".to_owned();
    for i in 1..100 {
        let _ = writeln!(globals, "bit<8> f{i}(in bit<8> v) {{ return f{p}(v) + f{p}(v); }}", p = i - 1);
    }
    let text = program(&globals, "", "", "meta.a = f99(meta.b);");
    assert_eq!(first(&text), "more than 1048576 statements and variables");
}

#[test]
fn instances_that_double_at_every_level_are_refused() {
    let mut globals =
        "control C0(inout bit<8> v) { register<bit<8>>(1) r; apply { r.write(0, v); } }\n".to_owned();
    for i in 1..60 {
        let _ = writeln!(
            globals,
            "control C{i}(inout bit<8> v) {{ C{p}() a; C{p}() b; apply {{ a.apply(v); b.apply(v); }} }}",
            p = i - 1
        );
    }
    let text = program(&globals, "", "C59() c;", "c.apply(meta.a);");
    assert_eq!(first(&text), "more than 1048576 statements and variables");
}

#[test]
fn calls_and_instances_have_a_depth() {
    let mut globals = "bit<8> f0(in bit<8> v) { return v; }\n".to_owned();
    for i in 1..1000 {
        let _ = writeln!(globals, "bit<8> f{i}(in bit<8> v) {{ return f{}(v); }}", i - 1);
    }
    let message = "more than 128 nested calls or instances";
    assert_eq!(first(&program(&globals, "", "", "meta.a = f999(meta.b);")), message);
    let mut globals = "control C0() { apply { } }\n".to_owned();
    for i in 1..1000 {
        let _ = writeln!(globals, "control C{i}() {{ C{}() c; apply {{ c.apply(); }} }}", i - 1);
    }
    assert_eq!(first(&program(&globals, "", "C999() c;", "c.apply();")), message);
}

#[test]
fn sub_parsers_that_double_at_every_level_are_refused() {
    let mut globals =
        "parser Q0(packet_in p) { state start { p.advance(8); transition accept; } }\n".to_owned();
    for i in 1..40 {
        let _ = writeln!(
            globals,
            "parser Q{i}(packet_in p) {{ Q{p}() a; Q{p}() b; state start {{ a.apply(p); b.apply(p); transition accept; }} }}",
            p = i - 1
        );
    }
    let parser = "Q39() q; state start { q.apply(pkt); transition accept; }";
    let found = first(&program(&globals, parser, "", ""));
    assert!(found == "more than 65536 parser states" || found.contains("1048576"), "{found}");
}

#[test]
fn types_that_double_at_every_level_are_refused() {
    let mut globals = "struct S0 { bit<8> a; bit<8> b; }\n".to_owned();
    for i in 1..60 {
        let _ = writeln!(globals, "struct S{i} {{ S{p} a; S{p} b; }}", p = i - 1);
    }
    assert!(first(&program(&globals, "", "", "")).contains("at most 16384 fit"));
    let mut globals = "typedef tuple<bit<8>, bit<8>> T0;\n".to_owned();
    for i in 1..60 {
        let _ = writeln!(globals, "typedef tuple<T{p}, T{p}> T{i};", p = i - 1);
    }
    assert!(first(&program(&globals, "", "", "")).contains("at most 16384 fit"));
    assert!(first(&program("", "", "bit<8>[4096][4096] big;", "")).contains("at most 16384 fit"));
}

#[test]
fn types_have_a_depth() {
    let mut structs = "struct S0 { bit<8> a; }\n".to_owned();
    let mut news = "type bit<8> N0;\n".to_owned();
    for i in 1..3000 {
        let _ = writeln!(structs, "struct S{i} {{ S{} a; }}", i - 1);
        let _ = writeln!(news, "type N{} N{i};", i - 1);
    }
    for globals in [structs, news] {
        let found = first(&program(&globals, "", "", ""));
        assert!(found.ends_with("has more than 100 levels of nested types"), "{found}");
    }
}

#[test]
fn constants_with_parts_cannot_be_used_without_end() {
    let mut globals = "typedef bit<8>[4000] big_t; const tuple<big_t> C = {{0".to_owned();
    globals += &", 0".repeat(3999);
    globals += "}};\n";
    let uses = "v = C;".repeat(400);
    let found = first(&program(&globals, "", "tuple<big_t> v;", &uses));
    assert_eq!(found, "constants with parts are used too often: at most 1048576 parts in total");
}

#[test]
fn widths_have_a_limit() {
    for (locals, width) in
        [("bit<2049> v;", "2049"), ("int<1000000000> v;", "1000000000"), ("varbit<16385> v;", "16385")]
    {
        let found = first(&program("", "", locals, ""));
        assert!(found.starts_with("a width is between") && found.ends_with(width), "{found}");
    }
    assert!(first(&program("", "", "", "meta.a = 1 << 100000;")).contains("65536"));
}

#[test]
fn headers_without_bits_are_fine() {
    let parser = "nil_t h; state start { pkt.extract(h); pkt.extract(hdr.eth); transition accept; }";
    assert_eq!(first(&program("header nil_t { }", parser, "", "")), "accepted");
}
