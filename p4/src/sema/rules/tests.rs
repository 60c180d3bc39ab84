//! Restrictions as text, and their parsed form.

use super::types::Names;
use super::{MatchKind, parse};
use crate::ir::{Comparison, KeyPart, Number, Test};
use num_bigint::BigInt;

fn keys() -> Names<'static> {
    Names::Keys(vec![
        ("vlan", 12, MatchKind::Exact),
        ("ttl", 8, MatchKind::Ternary),
        ("hdr.ipv4.dst", 32, MatchKind::Lpm),
        ("port", 16, MatchKind::Range),
        ("is_ip", 1, MatchKind::Optional),
        ("class", 8, MatchKind::Ternary),
    ])
}

/// The tests of a restriction on these keys.
fn tests(text: &str) -> Vec<Test> {
    match parse(text, &keys()) {
        Ok(clauses) => clauses.into_iter().map(|clause| clause.test).collect(),
        Err(fault) => panic!("{text}: {}", fault.message),
    }
}

fn equal(at: usize, part: KeyPart, value: i64) -> Test {
    Test::Compare(Comparison::Equal, Number::Key(at, part), Number::Const(value.into()))
}

fn both(left: Test, right: Test) -> Test {
    Test::All(vec![left, right])
}

/// The message of a restriction that is refused, and the text that it is about.
fn refused<'a>(text: &'a str, names: &Names<'_>) -> (String, &'a str) {
    match parse(text, names) {
        Ok(_) => panic!("{text}: accepted"),
        Err(fault) => (fault.message, text.get(fault.at).unwrap_or_default()),
    }
}

#[test]
fn a_number_stands_for_the_match_of_just_that_number() {
    assert_eq!(tests("vlan == 5"), [equal(0, KeyPart::Value, 5)]);
    assert_eq!(tests("ttl == 5"), [both(equal(1, KeyPart::Value, 5), equal(1, KeyPart::Mask, 255))]);
    assert_eq!(
        tests("hdr.ipv4.dst == ipv4('1.0.0.2')"),
        [both(equal(2, KeyPart::Value, 0x0100_0002), equal(2, KeyPart::PrefixLength, 32))]
    );
    assert_eq!(tests("9 == port"), [both(equal(3, KeyPart::Low, 9), equal(3, KeyPart::High, 9))]);
    assert_eq!(tests("is_ip == 1"), [both(equal(4, KeyPart::Value, 1), equal(4, KeyPart::Mask, 1))]);
    let parts = |part| Test::Compare(Comparison::Equal, Number::Key(1, part), Number::Key(5, part));
    assert_eq!(tests("ttl == class"), [both(parts(KeyPart::Value), parts(KeyPart::Mask))]);
}

#[test]
fn a_number_has_the_bits_of_what_it_is_compared_with() {
    assert_eq!(tests("ttl::mask == -1"), [equal(1, KeyPart::Mask, 255)]);
    assert_eq!(tests("ttl::value == 0x105"), [equal(1, KeyPart::Value, 5)]);
    assert_eq!(tests("hdr.ipv4.dst::prefix_length == -1"), [equal(2, KeyPart::PrefixLength, -1)]);
    assert_eq!(
        tests("::priority < 0x7fffffff"),
        [Test::Compare(Comparison::Less, Number::Priority, Number::Const(BigInt::from(i32::MAX)))]
    );
}

#[test]
fn operators_bind_as_the_language_says() {
    let (a, b, c) = (Test::Const(true), Test::Const(false), Test::Const(true));
    let or = |left: &Test, right: &Test| Test::Any(vec![left.clone(), right.clone()]);
    let not = |inner: &Test| Test::Not(Box::new(inner.clone()));
    // `!` before `==`, `&&` before `||`, both before `->`, and that before `;`.
    assert_eq!(tests("!true == false"), [Test::Same(Box::new(not(&a)), Box::new(b.clone()))]);
    assert_eq!(tests("true || false && true"), [or(&a, &both(b.clone(), c.clone()))]);
    assert_eq!(tests("true && false -> true"), [or(&not(&both(a.clone(), b.clone())), &c)]);
    assert_eq!(tests("true; false; true;"), [a.clone(), b.clone(), c.clone()]);
    assert_eq!(tests("(true; false;) || true"), [or(&both(a.clone(), b.clone()), &c)]);
    // Parts joined by `&&` become separate clauses.
    assert_eq!(tests("(true && false) && true"), [a, b, c]);
}

#[test]
fn clauses_are_quoted_on_one_line_and_without_comments() {
    let text = "\n // Why not.\n ttl::mask != 0 -> // see below\n   vlan == 0x0800;\n /* all of it */ true\n";
    let texts: Vec<String> =
        parse(text, &keys()).unwrap_or_default().into_iter().map(|clause| clause.text).collect();
    assert_eq!(texts, ["ttl::mask != 0 -> vlan == 0x0800", "true"]);
}

#[test]
fn mistakes_are_told_at_their_place() {
    let params = Names::Params(vec![("group", 16)]);
    for (text, names, message, at) in [
        ("vlan == 1 == 2", &keys(), "`==` can't follow another one like it; use brackets", "=="),
        ("true -> true -> true", &keys(), "`->` can't follow another one like it; use brackets", "->"),
        ("vlan", &keys(), "expected a condition, found a `bit<12>`", "vlan"),
        ("true && ttl", &keys(), "expected a condition, found the ternary match of a `bit<8>`", "ttl"),
        (
            "true; vid != 0",
            &keys(),
            "there is no key `vid`; there are: vlan, ttl, hdr.ipv4.dst, port, is_ip, class",
            "vid",
        ),
        (
            "ttl::prefix_length == 0",
            &keys(),
            "ternary key has no part `prefix_length`; it has: value, mask",
            "ttl::prefix_length",
        ),
        (
            "ttl < 5",
            &keys(),
            "the ternary match of a `bit<8>` has no order; compare one of its parts",
            "ttl < 5",
        ),
        (
            "vlan == ttl::value",
            &keys(),
            "a `bit<12>` can't be compared with a `bit<8>`",
            "vlan == ttl::value",
        ),
        ("true == 1", &keys(), "a condition can't be compared with a number", "true == 1"),
        ("(true", &keys(), "expected `)`, found the end", ""),
        ("true true", &keys(), "expected `;` or an operator, found `true`", "true"),
        ("", &keys(), "expected a key, number or condition, found the end", ""),
        ("vlan == 0xg", &keys(), "`0xg` is not a number", "0xg"),
        ("vlan == 1 & 2", &keys(), "`&` has no meaning here", "&"),
        ("::size > 1", &keys(), "there is no attribute `size`; there is `::priority`", "::size"),
        ("vlan == mac('1')", &keys(), "`1` is not an address of kind `mac`", "('1')"),
        ("vlan == ipv4('1", &keys(), "`ipv4('…')` is not closed", "("),
        ("::priority > 1", &params, "an action has no priority", "::priority"),
        ("group::value > 1", &params, "`group` has no parts: it is a parameter", "group::value"),
        ("port != 0", &params, "there is no parameter `port`; there are: group", "port"),
    ] {
        assert_eq!(refused(text, names), (message.to_owned(), at), "{text}");
    }
}

#[test]
fn what_is_too_deep_or_too_long_is_refused() {
    let deep = format!("{}true{}", "(".repeat(300), ")".repeat(300));
    assert_eq!(refused(&deep, &keys()).0, "nested deeper than 256");
    assert_eq!(refused(&"!".repeat(100_000), &keys()).0, "nested deeper than 256");
    assert_eq!(tests(&vec!["true"; 100_000].join(" && ")).len(), 100_000);
    let digits = format!("vlan == {}", "1".repeat(3_000));
    assert_eq!(refused(&digits, &keys()).0, "a number of 3000 characters, the limit is 2000");
}
