//! The preprocessor directive by directive, and on garbage.

use super::{Options, run, run_with};
use crate::ast::Span;
use crate::diagnostics::Diagnostics;
use crate::source::SourceMap;
use proptest::prelude::*;
use std::collections::HashMap;
use std::io;
use std::path::Path;

/// Preprocesses `main.p4` with further files, none of them on disk.
fn with_files(text: &str, files: &[(&str, &str)]) -> Result<SourceMap, Diagnostics> {
    let files: HashMap<&str, &str> = files.iter().copied().collect();
    let loader = |path: &Path| -> io::Result<String> {
        let found = files.get(path.to_str().unwrap());
        found.map(|t| (*t).to_owned()).ok_or_else(|| io::ErrorKind::NotFound.into())
    };
    let options =
        Options { include_dirs: vec!["lib".into()], defines: vec![("FROM_OUTSIDE".into(), "7".into())] };
    run_with(text, "main.p4", &options, &loader)
}

/// The result without line structure.
fn words(text: &str) -> String {
    let map = with_files(text, &[]).unwrap_or_else(|e| panic!("{e}"));
    map.text().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn errors(text: &str) -> Vec<String> {
    match with_files(text, &[]) {
        Ok(map) => panic!("accepted: {}", map.text()),
        Err(errors) => errors.items.into_iter().map(|e| e.message).collect(),
    }
}

/// File, line and column of a piece of the result.
fn place(map: &SourceMap, piece: &str) -> (String, u32, u32) {
    let lo = map.text().find(piece).unwrap_or_else(|| panic!("no `{piece}` in {}", map.text())) as u32;
    let at = map.locate(Span { lo, hi: lo + piece.len() as u32 });
    (at.file.to_owned(), at.line, at.column)
}

#[test]
fn text_without_directives_is_not_touched() {
    let text = "control C() {\r\n  x = 8w1; // but comments\n  s = \"// not /* in */ strings\";\n}";
    let map = with_files(text, &[]).unwrap();
    assert_eq!(map.text(), text.replace("// but comments", ""));
}

#[test]
fn comments_become_spaces_and_keep_lines() {
    let map = with_files("a/*x*/b /* 1\n2\n3 */ c // d \\\n e\nf", &[]).unwrap();
    assert_eq!(map.text(), "a b  \n\n c \nf");
    assert_eq!(place(&map, "c"), ("main.p4".into(), 3, 6));
    assert_eq!(place(&map, "f"), ("main.p4".into(), 5, 1));
    assert_eq!(errors("a /* b"), ["this comment is never closed"]);
}

#[test]
fn a_string_of_several_lines_keeps_its_comments_until_it_is_closed() {
    let text = "@a(\"\n  // all\n  x /* y */ \\\" \\\\ z\n\") b // gone\n\"c\" /* gone */";
    let map = with_files(text, &[]).unwrap();
    assert_eq!(map.text(), text.replace("// gone", "").replace("/* gone */", " "));
    // Directives choose among its lines, macros are replaced, and any other `#` is text.
    let text =
        "#define W 3\n@a(\"\n#ifdef W\n  // W\n#else\n  // no \" quote\n#endif\n # of W\n\") // gone\n";
    assert_eq!(with_files(text, &[]).unwrap().text(), "\n@a(\"\n\n  // 3\n\n\n\n # of 3\n\") \n");
    // A quote in text that is left out opens none; one that nothing closes ends with its line.
    assert_eq!(words("#if 0\ndon\"t\n#endif\na // gone\n\"b\""), "a \"b\"");
    assert_eq!(words("a \"open\nb // gone\nc /* gone */ d"), "a \"open b c d");
}

#[test]
fn blanks_behind_a_backslash_are_part_of_the_line_end() {
    assert_eq!(words("#define A a \\  \n b \\\t\n c \\ \r\n d\nA e"), "a b c d e");
    assert_eq!(words("x \\ \ny"), "x y");
    assert_eq!(words("// x \\ \ny\nz"), "z");
    assert_eq!(words("\"x\\ y\" // z"), "\"x\\ y\"");
}

#[test]
fn object_like_macros() {
    assert_eq!(words("#define W 8\nbit<W> W2; 8wW \"W\" xW"), "bit<8> W2; 8wW \"W\" xW");
    assert_eq!(words("#define A B + A\n#define B A\nA B"), "A + A B + A");
    assert_eq!(words("#define E\na E b -E- +E+"), "a b -- + +");
    assert_eq!(words("#define W 1\n#undef W\n#undef W\nW"), "W");
    assert_eq!(words("#define LONG a \\\n  b /* c\n d */ e // f\nLONG g"), "a b e g");
    assert_eq!(words("FROM_OUTSIDE"), "7");
    assert_eq!(words("#define P +\nP+ +P -P &P&"), "+ + + + -+ &+&");
}

#[test]
fn function_like_macros() {
    assert_eq!(words("#define F(a, b) a-b\nF(1, (2, 3)) F F (x,y)"), "1-(2, 3) F x-y");
    assert_eq!(words("#define F() x\nF() F( )"), "x x");
    assert_eq!(words("#define F(a) [a]\nF() F(F(1)) F(\n1\n+ /* , */ 2)"), "[] [[1]] [1 + 2]");
    assert_eq!(words("#define S(x) #x\n#define W 1\nS(a \"b\\n\" + W)"), r#""a \"b\\n\" + W""#);
    assert_eq!(words("#define C(a, b) a ## b ## 1\n#define W 2\nC(x, y) C(W, W) C(, z)"), "xy1 WW1 z1");
    assert_eq!(words("#define V(a, ...) f(a, __VA_ARGS__)\nV(1, 2, 3) V(1)"), "f(1, 2, 3) f(1,)");
    assert_eq!(words("#define F(x) <x>\n#define G F\n#define H G(1)\nG(2) H"), "<2> <1>");
    assert_eq!(words("#define F (x)\nF"), "(x)", "a space makes it an object");
    assert_eq!(words("#define f(x) x f\n#define g f(1)\nf(f)(2) g(3)"), "f f(2) 1 f(3)");
}

#[test]
fn misused_macros_are_reported() {
    assert_eq!(errors("#define F(a) a\nF(1, 2)"), ["macro `F` takes 1 arguments, not 2"]);
    assert_eq!(errors("#define F(a) a\nF(1"), ["the arguments of macro `F` lack a `)`"]);
    assert!(errors("#define 1 2")[0].contains("needs a name"));
    assert!(errors("#define F(a a")[0].contains("lack a `)`"));
    assert!(errors("#define F(a, a) a")[0].contains("cannot be a parameter"));
    assert!(errors("#define F(a) ## a")[0].contains("both sides"));
    assert!(errors("#define __LINE__ 3")[0].contains("cannot be redefined"));
    let map = with_files("#define A 1\n#define A 1\n#define A 2\n", &[]).unwrap();
    assert_eq!(map.warnings().len(), 1);
    assert_eq!(map.warnings()[0].message, "macro `A` is redefined");
}

#[test]
fn conditions() {
    let pick = |condition: &str| {
        words(&format!("#define W 3\n#define F(x) x\n#if {condition}\nyes\n#else\nno\n#endif"))
    };
    for yes in [
        "1",
        "W == 3",
        "defined W",
        "defined(W) && !defined X",
        "W * 2 + 1 >= 7",
        "(1 ? 0 : 1) == 0",
        "0x10 == 16u",
        "1 || 1 / 0",
        "!(0 && 1 / 0)",
        "-1 < 0",
        "~0 == -1",
        "1 << 4 >> 2 == 4",
        "F(W) % 2",
        "UNKNOWN == 0",
        "true",
        "7 / 2 == 3 && 010 == 8 && 0b11 == W",
        "W /* three */ > 2 // x",
    ] {
        assert_eq!(pick(yes), "yes", "{yes}");
    }
    for no in ["0", "W != 3", "defined(X)", "false", "W < 3 || W > 3", "1 - 1", "X"] {
        assert_eq!(pick(no), "no", "{no}");
    }
    for wrong in ["", "1 +", "(1", "1 / 0", "1 2", "\"a\"", "1 ? 2", "12ab", "defined", "defined(", "@"] {
        assert_eq!(
            errors(&format!("#if {wrong}\n#endif")).len(),
            if wrong.starts_with("defined") { 2 } else { 1 },
            "{wrong}"
        );
    }
    assert!(errors(&format!("#if {}1\n#endif", "(".repeat(100_000)))[0].contains("nested"));
    assert_eq!(words(&format!("#if {}1\na\n#endif", "!".repeat(100_000))), "a");
}

#[test]
fn branches() {
    let text = |a: u8| {
        format!("#if {a} == 1\none\n#elif {a} == 2\ntwo\n#elif {a} == 3\nthree\n#else\nother\n#endif\nafter")
    };
    assert_eq!(
        [1, 2, 3, 4].map(|a| words(&text(a))),
        ["one after", "two after", "three after", "other after"]
    );
    assert_eq!(words("#ifdef X\n#if broken (\n#else\na\n#endif\n#elif 1\nb\n#endif"), "b");
    assert_eq!(words("#if 0\n#error no\n#include \"no\"\n'quote /* #endif */\n#endif\nc"), "c");
    assert_eq!(words("#ifndef X\na\n#else\nb\n#endif"), "a");
    assert_eq!(errors("#endif"), ["`#endif` without `#if`"]);
    assert_eq!(errors("#else"), ["`#else` without `#if`"]);
    assert_eq!(errors("#if 1\n#else\n#else\n#endif"), ["`#else` after `#else`"]);
    assert_eq!(errors("#if 1\n#else\n#elif 1\n#endif"), ["`#elif` after `#else`"]);
    assert_eq!(errors("a\n#if 1\nb"), ["this condition is never closed"]);
    assert!(errors("#ifdef\n#endif")[0].contains("needs the name"));
}

#[test]
fn messages_and_unknown_directives() {
    assert_eq!(errors("#error the sky \\\n falls"), ["#error the sky  falls"]);
    assert!(errors("#inclde <x>")[0].contains("unknown directive `#inclde`"));
    let map = with_files("a\n#TODO: b\n#enum c {\nd\n", &[]).unwrap();
    assert_eq!(map.text(), "a\n\n\nd\n");
    let warned: Vec<&str> = map.warnings().iter().map(|w| w.message.as_str()).collect();
    let ignored = |word: &str| format!("unknown directive `#{word}`: the line is ignored");
    assert_eq!(warned, [ignored("TODO"), ignored("enum")]);
    let map = with_files("#warning careful\n#\n#pragma x\na", &[]).unwrap();
    assert_eq!(map.warnings()[0].message, "#warning careful");
    assert_eq!(map.text().trim(), "a");
}

#[test]
fn file_and_line() {
    assert_eq!(
        words("a\n__LINE__ __FILE__\n#line 77 \"x\\\"y.p4\"\n__LINE__ __FILE__"),
        r#"a 2 "main.p4" 77 "x\"y.p4""#
    );
    assert_eq!(words("#define HERE __LINE__\n\nHERE"), "3");
}

#[test]
fn line_markers_give_lines_another_origin() {
    let map = with_files("a\n#line 10 \"other.p4\"\nb\nc\n# 3 \"third.p4\" 1 2\nd\n#line 9\ne", &[]).unwrap();
    assert_eq!(place(&map, "a"), ("main.p4".into(), 1, 1));
    assert_eq!(place(&map, "b"), ("other.p4".into(), 10, 1));
    assert_eq!(place(&map, "c"), ("other.p4".into(), 11, 1));
    assert_eq!(place(&map, "d"), ("third.p4".into(), 3, 1));
    assert_eq!(place(&map, "e"), ("third.p4".into(), 9, 1));
    assert!(errors("#line x")[0].contains("needs a line number"));
}

#[test]
fn includes_are_searched_beside_the_file_then_in_folders_then_built_in() {
    let files = [
        ("a.p4", "beside"),
        ("lib/a.p4", "library"),
        ("lib/sub/b.p4", "#include \"c.p4\""),
        ("lib/sub/c.p4", "cee"),
    ];
    let text = |include: &str| {
        with_files(include, &files).unwrap_or_else(|e| panic!("{e}")).text().trim().to_owned()
    };
    assert_eq!(text("#include \"a.p4\""), "beside");
    assert_eq!(text("#include <a.p4>"), "library");
    assert_eq!(text("#include \"sub/b.p4\""), "cee");
    assert_eq!(text("#define WHICH <a.p4>\n#include WHICH"), "library");
    assert!(with_files("#include <core.p4>", &files).is_ok());
    assert_eq!(errors("#include \"nowhere.p4\""), ["include file `nowhere.p4` is not found"]);
    assert!(errors("#include nothing")[0].contains("needs a file name"));
}

#[test]
fn errors_in_includes_show_the_included_line_and_the_way_there() {
    let files = [("a.p4", "\n#include <b.p4>\n"), ("lib/b.p4", "ok\n  #error \u{e4} broken\n")];
    let text = with_files("x\n#include \"a.p4\"\n", &files).unwrap_err().render(false);
    assert_eq!(
        text,
        "\
error: #error \u{e4} broken
 --> lib/b.p4:2:3
  |
2 |   #error \u{e4} broken
  |   ^^^^^^^^^^^^^^^
  |
  = note: included from a.p4:2
  = note: included from main.p4:2

"
    );
}

#[test]
fn guards_work_and_endless_inclusion_is_stopped() {
    let guarded = [("g.p4", "#ifndef G\n#define G\n#include \"g.p4\"\nonce\n#endif")];
    let map = with_files("#include \"g.p4\"\n#include \"g.p4\"", &guarded).unwrap();
    assert_eq!(map.text().trim(), "once");
    let pragma = [("g.p4", "#pragma once\nonce")];
    let map = with_files("#include \"g.p4\"\n#include \"g.p4\"", &pragma).unwrap();
    assert_eq!(map.text().trim(), "once");
    let endless = [("g.p4", "#include \"g.p4\"\n#include \"g.p4\"\n")];
    let errors = with_files("#include \"g.p4\"", &endless).unwrap_err();
    assert_eq!(errors.len(), 1);
    assert!(errors.items[0].message.contains("more than 64 deep"));
    let wide = [("g.p4", "x")];
    let errors = with_files(&"#include \"g.p4\"\n".repeat(5000), &wide).unwrap_err();
    assert!(errors.items[0].message.contains("files are included"));
}

#[test]
fn expansion_bombs_are_stopped() {
    let mut bomb = "#define A0 x x x x x x x x x x\n".to_owned();
    for n in 1..40 {
        bomb += &format!("#define A{n} {}\n", format!("A{} ", n - 1).repeat(10));
    }
    assert!(errors(&format!("{bomb}A39"))[0].contains("macros expand to more than"));
    let mut bomb = "#define F0(x) x x x x\n".to_owned();
    for n in 1..40 {
        bomb += &format!("#define F{n}(x) F{}(x x x x)\n", n - 1);
    }
    assert!(errors(&format!("{bomb}F39(a)"))[0].contains("macros expand to more than"));
    let mut chain = String::new();
    for n in 0..1000 {
        chain += &format!("#define C{n} C{}\n", n + 1);
    }
    assert!(errors(&format!("{chain}C0"))[0].contains("nested more than"));
    let nest = format!("#define F(x) x\n{}1{}", "F(".repeat(50_000), ")".repeat(50_000));
    assert!(errors(&nest)[0].contains("nested more than"));
}

#[test]
fn places_inside_macros_point_at_the_use() {
    let map = with_files("#define W 8 + 9\n\n  bit<W> x;", &[]).unwrap();
    assert_eq!(place(&map, "9"), ("main.p4".into(), 3, 7));
    assert_eq!(place(&map, "> x"), ("main.p4".into(), 3, 8));
    let lo = map.text().find('9').unwrap() as u32;
    assert_eq!(map.locate(Span { lo, hi: lo + 1 }).expansion_of, Some("W"));
}

#[test]
fn the_marked_text_says_the_same_when_preprocessed_again() {
    let files = [("inc.p4", "struct S {\n  bit<8> x;\n}\n")];
    let text = "#include \"inc.p4\"\n#define N 4\n\n\n\n\n\n\n\n\n\nconst bit<8> A = N; // four\n\nconst bit<8> B = 2;";
    let map = with_files(text, &files).unwrap();
    let marked = map.to_marked_text();
    assert_eq!(
        marked,
        "#line 1 \"inc.p4\"\nstruct S {\n  bit<8> x;\n}\n#line 12 \"main.p4\"\nconst bit<8> A = 4;\n\nconst bit<8> B = 2;\n"
    );
    let again = with_files(&marked, &[]).unwrap();
    assert_eq!(again.to_marked_text(), marked);
    assert_eq!(place(&again, "B"), ("main.p4".into(), 14, 14));
    assert_eq!(place(&again, "x;"), ("inc.p4".into(), 2, 10));
}

#[test]
fn a_file_that_is_no_file_is_not_read() {
    let options = Options { include_dirs: vec!["/".into()], defines: Vec::new() };
    let errors = run("#include <dev/zero>\n#include <dev>", "main.p4", &options).unwrap_err();
    assert_eq!(errors.len(), 2);
}

#[test]
fn wrong_definitions_from_outside_are_reported() {
    let options = Options { include_dirs: Vec::new(), defines: vec![("1x".into(), "2".into())] };
    let errors = run("", "main.p4", &options).unwrap_err();
    assert!(errors.items[0].message.starts_with("-D 1x=2"));
}

fn soup() -> impl Strategy<Value = String> {
    let words = "#define,#undef,#if,#ifdef,#ifndef,#elif,#else,#endif,#include,#line,#error,#pragma,#,##,A,B,F,A(,F(x),\
        F(,(,),defined,\"x\",\",<y>,\\\n,\n,\n,/*,*/,//,1,0,+,&&,?,:,...,__VA_ARGS__,__LINE__,__FILE__,{,},;,\u{e9},\u{feff}";
    let words: Vec<&str> = words.split(',').chain([",", ", "]).collect();
    proptest::collection::vec((proptest::sample::select(words), any::<bool>()), 0..100).prop_map(|words| {
        words.into_iter().map(|(w, space)| if space { format!("{w} ") } else { w.to_owned() }).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_soup_is_survived(main in soup(), included in soup()) {
        for text in [&main, &format!("#define A B A\n#define F(x) x A(x) #x\n{main}")] {
            match with_files(text, &[("x", &included), ("lib/y", &main)]) {
                Ok(map) => { map.to_marked_text(); }
                Err(errors) => {
                    prop_assert!(errors.has_errors());
                    errors.render(true);
                }
            }
        }
    }

    #[test]
    fn text_without_directives_and_comments_is_kept(text in "[a-z0-9 \\n{}();<>]*") {
        let map = with_files(&text, &[]).unwrap();
        prop_assert_eq!(map.text(), text);
    }
}
