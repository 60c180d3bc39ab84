//! The parser construct by construct, on whole programs, and on garbage.

use super::{MAX_HEIGHT, MAX_NESTING, parse, print};
use crate::ast::{DeclKind, ExprKind, Program, Span, StmtKind};
use crate::diag::Diagnostic;
use crate::diagnostics::Diagnostics;
use crate::lexer::KEYWORDS;
use crate::preprocess::{self, Options};
use crate::source::SourceMap;
use proptest::prelude::*;
use std::sync::Arc;

/// Surroundings of an expression or statement in a test.
const PRELUDE: &str = "struct S { bit<8> f; } typedef bit<8> T; typedef S G; enum E { A } \
    extern U f<U>(in U a, in U b); extern Box<B> { Box(B b); } control K() { apply { } } ";

fn accept(text: &str) -> Program {
    let (program, errors) = parse(&SourceMap::from_text("test.p4", text));
    if !errors.is_empty() {
        let sources = Arc::new(SourceMap::from_text("test.p4", text));
        panic!("{}", Diagnostics::new(sources, errors).render(false));
    }
    program
}

fn refuse(text: &str) -> Vec<Diagnostic> {
    let (_, errors) = parse(&SourceMap::from_text("test.p4", text));
    assert!(!errors.is_empty(), "accepted: {text}");
    errors
}

fn messages(text: &str) -> Vec<String> {
    refuse(text).into_iter().map(|e| e.message).collect()
}

/// How an expression is understood.
fn expr(text: &str) -> String {
    let program = accept(&format!("{PRELUDE} const bit<8> X = {text};"));
    match &program.decls.last().unwrap().kind {
        DeclKind::Const { value, .. } => print::expr(value),
        other => panic!("{other:?}"),
    }
}

/// How statements in a block are understood.
fn stmts(text: &str) -> String {
    let program = accept(&format!("{PRELUDE} control C() {{ apply {{ {text} }} }}"));
    match &program.decls.last().unwrap().kind {
        DeclKind::Control { apply, .. } => apply.stmts.iter().map(print::stmt).collect::<Vec<_>>().join(" "),
        other => panic!("{other:?}"),
    }
}

#[test]
fn operators_bind_as_the_language_says() {
    assert_eq!(expr("a + b * c - d"), "((a + (b * c)) - d)");
    assert_eq!(expr("a - b - c"), "((a - b) - c)");
    assert_eq!(
        expr("a || b && c == d < e | f ^ g & h << i + j * k"),
        "(a || (b && (c == (d < (e | (f ^ (g & (h << (i + (j * k))))))))))"
    );
    assert_eq!(expr("a & b == c"), "((a & b) == c)", "unlike in C");
    assert_eq!(expr("a ++ b |+| c |-| d"), "(((a ++ b) |+| c) |-| d)");
    assert_eq!(expr("-a.b[1:0] * !c"), "((-a.b[1:0]) * (!c))");
    assert_eq!(expr("a ? b : c ? d : e"), "(a ? b : (c ? d : e))");
    assert_eq!(expr("a || b ? c + 1 : d"), "((a || b) ? (c + 1) : d)");
    assert_eq!(expr("~ - + ! a"), "(~(-(+(!a))))");
}

#[test]
fn shifts_are_told_from_closing_brackets() {
    assert_eq!(expr("a >> b > c >= d"), "(((a >> b) > c) >= d)");
    assert_eq!(expr("f<Box<Box<T>>>(a, b) >> 1"), "(f<Box<Box<T>>>(a, b) >> 1)");
    assert_eq!(expr("(bit<(a >> b > c)>) d"), "((bit<((a >> b) > c)>) d)");
    assert_eq!(stmts("a >>= 2;"), "a >>= 2;");
    assert!(messages("const bit<8> x = a > > b;")[0].contains("expected an expression"));
}

#[test]
fn casts_and_generics_depend_on_what_is_a_type() {
    assert_eq!(expr("(T) - b"), "((T) (-b))");
    assert_eq!(expr("(a) - b"), "(a - b)");
    assert_eq!(expr("(T) a + b"), "(((T) a) + b)");
    assert_eq!(expr("(bit<8>) a.b"), "((bit<8>) a.b)");
    assert_eq!(expr("(.S) { 1 }"), "((.S) {1})");
    assert_eq!(expr("(Unknown) x + 1"), "(((Unknown) x) + 1)");
    assert_eq!(expr("f<T>(a, b)"), "f<T>(a, b)");
    assert_eq!(expr("f < a > (b)"), "((f < a) > b)");
    assert_eq!(expr("f<bit<8>>(a, b) < c"), "(f<bit<8>>(a, b) < c)");
    assert_eq!(expr("f<_>(a, b)"), "f<_>(a, b)");
    assert_eq!(expr("a < (T) b"), "(a < ((T) b))");
    assert_eq!(expr("a < E.A"), "(a < E.A)");
    assert_eq!(expr("Box<T>(1).x<T>(2)"), "Box<T>(1).x<T>(2)");
}

#[test]
fn composite_values() {
    assert_eq!(expr("{}"), "{}");
    assert_eq!(expr("{1, {2, 3,},}"), "{1, {2, 3}}");
    assert_eq!(expr("{1, ...}"), "{1, ...}");
    assert_eq!(expr("{...}"), "{...}");
    assert_eq!(expr("{a = 1, key = {b = 2,}, ...}"), "{a = 1, key = {b = 2}, ...}");
    assert_eq!(expr("..."), "...");
    assert_eq!(expr("{#}"), "{#}");
    assert!(messages("const S s = {..., 1};")[0].contains("after `...`"));
}

#[test]
fn indexing() {
    assert_eq!(expr("a[1][2].b[3:4][5+:6]"), "a[1][2].b[3:4][5+:6]");
    assert_eq!(expr("a[b ? c : d : e]"), "a[(b ? c : d):e]");
    assert_eq!(expr("error.NoMatch"), "error.NoMatch");
    assert_eq!(expr("this.key.apply().list"), "this.key.apply().list");
}

#[test]
fn arguments() {
    assert_eq!(expr("g()"), "g()");
    assert_eq!(expr("g(a, b = 1, _, c = _)"), "g(a, b = 1, _, c = _)");
    assert!(messages("const bit<8> x = g(a,);")[0].contains("expected an expression, found `)`"));
    assert!(messages("const bit<8> x = g()();")[0].contains("cannot be called"));
}

#[test]
fn literals_in_expressions() {
    assert_eq!(expr("8w0xFF"), "8w255");
    assert_eq!(expr("4s-1"), "4s-1");
    assert_eq!(expr("1_000"), "1000");
    assert_eq!(expr(r#""a\"b""#), r#""a\"b""#);
    assert!(messages("const bit<8> x = 0b12;")[0].contains("`2` is not a binary digit"));
}

#[test]
fn declarations_and_expressions_in_blocks() {
    assert_eq!(stmts("T x; T[2] y; Unknown z = 1;"), "T x; T[2] y; Unknown z = 1;");
    assert_eq!(stmts("a = 1; a[1] = 2; a.b += 3; (a) = 4;"), "a = 1; a[1] = 2; a.b += 3; a = 4;");
    assert_eq!(
        stmts("K.apply(); Box<T>.apply(1); Box<T> b; K() k;"),
        "K.apply(); Box<T>.apply(1); Box<T> b; K() k;"
    );
    assert_eq!(stmts("f<unknown>(1, 2); x.f<T>(3);"), "f<unknown>(1, 2); x.f<T>(3);");
    assert_eq!(
        stmts("bit<8> type = 1; type = list; apply.apply();"),
        "bit<8> type = 1; type = list; apply.apply();"
    );
    assert_eq!(
        stmts("{ bit<8> T = 1; a = (T) - 1; } a = (T) - 1;"),
        "{ bit<8> T = 1; a = (T - 1); } a = ((T) (-1));"
    );
}

#[test]
fn dangling_else_belongs_to_the_inner_if() {
    assert_eq!(stmts("if (a) if (b) c(); else d();"), "if (a) { if (b) { c(); } else { d(); } }");
    assert_eq!(
        stmts("if (a) b(); else if (c) d(); else e();"),
        "if (a) { b(); } else { if (c) { d(); } else { e(); } }"
    );
}

#[test]
fn an_if_after_an_else_is_a_statement_of_its_own() {
    assert_eq!(
        stmts("if (a) b(); else c(); if (d) e(); else { } if (f) { }"),
        "if (a) { b(); } else { c(); } if (d) { e(); } else {  } if (f) {  }"
    );
    assert_eq!(
        stmts("if (a) { } else if (b) { } else { } if (c) { }"),
        "if (a) {  } else { if (b) {  } else {  } } if (c) {  }"
    );
}

#[test]
fn loops() {
    assert_eq!(
        stmts("for (bit<8> i = 0, j = 1; i < 9; i += 1, g(i)) a();"),
        "for (bit<8> i = 0, j = 1; (i < 9); i += 1, g(i)) { a(); }"
    );
    assert_eq!(
        stmts("for (T i in 1 .. n + 1) { break; continue; }"),
        "for (T i in 1 .. (n + 1)) { break; continue; }"
    );
    assert!(messages("control C() { apply { for (i in x) { } } }")[0].contains("needs a type"));
}

#[test]
fn select_and_entry_keysets() {
    let text = "parser P() { state start { transition select(a, b) { \
        (1, _): x; (1): x; (1) + 2: x; (1 &&& 2, 3 .. 4): x; (bit<8>) 1 .. 2: x; default: x; _: x; } } }";
    let printed = print::program(&accept(text));
    assert!(
        printed.contains(
            "{ (1, _) : x; (1) : x; ((1 + 2)) : x; (1 &&& 2, 3 .. 4) : x; (((bit<8>) 1) .. 2) : x; (default) : x; (_) : x; }"
        ),
        "{printed}"
    );
}

#[test]
fn extern_objects_and_functions_are_told_apart() {
    let text = "extern A; extern B { } extern C<T> { C(T t); abstract void m<U>(in U u); } \
        extern C<bit<8>> f(in bit<8> x); extern T g<T>(); extern void h();";
    let program = accept(text);
    let objects: Vec<bool> =
        program.decls.iter().map(|d| matches!(d.kind, DeclKind::ExternObject { .. })).collect();
    assert_eq!(objects, [true, true, true, false, false, false]);
    assert!(messages("extern E { m(in bit<8> x); }")[0].contains("has no return type"));
}

#[test]
fn several_errors_are_found_in_one_run() {
    let text = "const bit<8> a = ;\nheader H { bit<8> x bit<8> y; bool z; }\ncontrol C() {\n  action a() { x = = 1; y = 2; }\n  \
        table t { key = { x exact; y : ; } actions = { a } }\n  apply { if x { } t.apply(); z = 1\n }\n}\nconst bool ok = true;\n";
    let errors = refuse(text);
    let lines: Vec<u32> =
        errors.iter().map(|e| SourceMap::from_text("t", text).locate(e.span).line).collect();
    assert_eq!(
        lines,
        [1, 2, 4, 5, 5, 5, 6, 6],
        "{:#?}",
        errors.iter().map(|e| &e.message).collect::<Vec<_>>()
    );
    let (program, _) = parse(&SourceMap::from_text("t", text));
    assert!(matches!(program.decls.last().unwrap().kind, DeclKind::Const { .. }), "goes on after the errors");
    let control = program.decls.iter().find_map(|d| match &d.kind {
        DeclKind::Control { apply, .. } => Some(apply),
        _ => None,
    });
    assert_eq!(control.unwrap().stmts.len(), 2);
}

#[test]
fn a_missing_brace_costs_one_error() {
    let text = "control C() { apply { if (a) { b(); } }\ncontrol D() { apply { } }\n";
    assert_eq!(messages(text), ["expected `}`, found `control`"]);
    let (program, _) = parse(&SourceMap::from_text("t", text));
    assert_eq!(program.decls.len(), 2);
    assert_eq!(messages("control C() { apply { } } } const bit<8> x = 1;"), ["unmatched `}`"]);
}

#[test]
fn nesting_is_limited() {
    let deep = |n: usize, open: &str, inner: &str, close: &str| {
        format!("{}{inner}{}", open.repeat(n), close.repeat(n))
    };
    let many = 40_000;
    for (open, inner, close) in [
        ("(", "1", ")"),
        ("{", "1", "}"),
        ("-", "1", ""),
        ("(bit<8>)", "1", ""),
        ("f(", "1", ")"),
        ("f<T>(", "1", ")"),
        ("a[", "1", "]"),
        ("1 ? 2 : ", "3", ""),
        ("a < f<T[", "1", ""),
        ("(T[", "1", "])"),
    ] {
        let text = format!("{PRELUDE} const bit<8> X = {};", deep(many, open, inner, close));
        assert!(messages(&text)[0].contains("nested too deeply"), "{open}");
    }
    for (open, close) in
        [("{", "}"), ("if (a) ", ";"), ("for (;a;) ", ";"), ("switch (a) { 1: {", "} }"), ("@x {", "}")]
    {
        let text = format!("control C() {{ apply {{ {} }} }}", deep(many, open, "", close));
        assert!(messages(&text)[0].contains("nested too deeply"), "{open}");
    }
    assert!(messages(&format!("typedef {} X;", deep(many, "tuple<", "bool", ">")))[0].contains("nested"));
    // Well below the limit all of this is fine.
    let some = MAX_NESTING as usize / 4;
    expr(&deep(some, "(", "1", ")"));
    expr(&deep(some, "f<T>(", "1", ", 2)"));
    stmts(&deep(some, "if (a) {", "", "}"));
}

#[test]
fn chains_are_limited() {
    let many = 40_000;
    for link in [" + 1", ".x", "[1]", " |+| (1)"] {
        let text = format!("const bit<8> X = a{};", link.repeat(many));
        assert!(messages(&text)[0].contains("too long"), "{link}");
    }
    let text = format!("control C() {{ apply {{ {} ; }} }}", "if (a) { } else ".repeat(many));
    assert!(messages(&text)[0].contains("too long"));
    let some = MAX_HEIGHT as usize / 2;
    expr(&format!("a{}", " + 1".repeat(some)));
    stmts(&format!("{} ;", "if (a) { } else ".repeat(some)));
    // Wide is not high.
    expr(&format!("{{ {} }}", "1 + 2, ".repeat(20_000)));
    stmts(&"a = 1 + 2; ".repeat(20_000));
}

#[test]
fn long_chains_inside_one_another_are_limited_too() {
    let mut text = "1".to_owned();
    for _ in 0..20 {
        text = format!("({text}){}", " + 1".repeat(100));
    }
    assert!(messages(&format!("const bit<8> X = {text};"))[0].contains("too long"));
}

#[test]
fn retries_do_not_explode() {
    for open in ["a < f<T[(", "(T[", "(1, (", "f<T>(g<bit<(", "a<bit<(a<"] {
        let text = format!("{PRELUDE} const bit<8> X = {};", open.repeat(30));
        refuse(&text);
        let text =
            format!("parser P() {{ state s {{ transition select(x) {{ {} : a; }} }} }}", open.repeat(30));
        refuse(&text);
    }
}

#[test]
fn spans_cover_what_was_written() {
    let text = "control C() { apply { alpha = beta + gamma[1:0] * f(x); } }";
    let program = accept(text);
    let DeclKind::Control { apply, .. } = &program.decls[0].kind else { panic!() };
    let of = |span: Span| &text[span.lo as usize..span.hi as usize];
    assert_eq!(of(program.decls[0].span), text);
    assert_eq!(of(apply.stmts[0].span), "alpha = beta + gamma[1:0] * f(x);");
    let StmtKind::Assign { target, value, .. } = &apply.stmts[0].kind else { panic!() };
    assert_eq!((of(target.span), of(value.span)), ("alpha", "beta + gamma[1:0] * f(x)"));
    let ExprKind::Binary { right, .. } = &value.kind else { panic!() };
    assert_eq!(of(right.span), "gamma[1:0] * f(x)");
}

/// The sample programs.
fn samples() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs");
    let mut samples: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "p4"))
        .map(|path| (path.display().to_string(), std::fs::read_to_string(&path).unwrap()))
        .collect();
    samples.sort();
    samples
}

#[test]
fn sample_programs_survive_printing_and_parsing() {
    assert!(samples().len() >= 8);
    for (name, text) in samples() {
        let sources = Arc::new(preprocess::run(&text, &name, &Options::default()).unwrap());
        let (program, errors) = parse(&sources);
        assert!(errors.is_empty(), "{}", Diagnostics::new(sources.clone(), errors).render(false));
        let printed = print::program(&program);
        assert_eq!(print::program(&accept(&printed)), printed, "{name}");

        let marked = sources.to_marked_text();
        let again = preprocess::run(&marked, "again", &Options::default()).unwrap();
        let (program_again, errors) = parse(&again);
        assert!(errors.is_empty(), "{name}");
        assert_eq!(print::program(&program_again), printed, "{name}");
        for (decl, decl_again) in program.decls.iter().zip(&program_again.decls) {
            let (at, at_again) = (sources.locate(decl.span), again.locate(decl_again.span));
            assert_eq!((at.file, at.line), (at_again.file, at_again.line));
        }
    }
}

/// Words from which soups are cooked.
fn soup() -> impl Strategy<Value = String> {
    let mut words: Vec<String> = KEYWORDS.iter().map(|w| (*w).to_owned()).collect();
    let signs = "( ) [ ] { } < > <= >= >> << = == != ; : , . .. ... ? @ + - * / % & && &&& | || |+| |-| ^ ~ ! ++ +: {#} += >>=";
    words.extend(signs.split(' ').map(str::to_owned));
    words.extend(
        "T S a b x main 1 8w2 4s-1 0x \"s\" \" ' # \n bit<8> T<S> apply{ }; control parser"
            .split(' ')
            .map(str::to_owned),
    );
    proptest::collection::vec(proptest::sample::select(words), 0..120).prop_map(|words| words.join(" "))
}

fn survive(text: &str) {
    let (_, errors) = parse(&SourceMap::from_text("soup.p4", text));
    let sources = Arc::new(SourceMap::from_text("soup.p4", text));
    let all = Diagnostics::new(sources, errors);
    all.render(true);
    all.to_json();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        survive(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_soup_of_tokens_is_survived(soup in soup()) {
        survive(&soup);
        survive(&format!("{PRELUDE} control C() {{ {soup} }}"));
        survive(&format!("{PRELUDE} control C() {{ apply {{ {soup} }} }}"));
        survive(&format!("parser P() {{ state start {{ transition select(a) {{ {soup}"));
        survive(&format!("{PRELUDE} control C() {{ table t {{ {soup} }} }}"));
    }

    #[test]
    fn damaged_programs_are_survived(which in 0..8usize, from in 0.0..1.0f64, length in 0..60usize, soup in soup()) {
        let samples = samples();
        let (_, text) = &samples[which % samples.len()];
        let mut lo = (from * text.len() as f64) as usize;
        while !text.is_char_boundary(lo) { lo -= 1; }
        let mut hi = (lo + length).min(text.len());
        while !text.is_char_boundary(hi) { hi += 1; }
        survive(&format!("{}{}", &text[..lo], &text[hi..]));
        survive(&format!("{}{soup}{}", &text[..lo], &text[hi..]));
        if let Ok(sources) = preprocess::run(&text[..lo], "cut.p4", &Options::default()) {
            parse(&sources);
        }
    }
}
