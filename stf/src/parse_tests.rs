use super::*;

fn one(text: &str) -> Command {
    let mut found = parse(text).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0).command
}

fn error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn packets_are_hex_with_spaces() {
    assert_eq!(one("packet 3 0102 aB\t# text"), Command::Packet { port: 3, bytes: vec![1, 2, 0xab] });
    assert_eq!(one("  PACKET 0x3 00"), Command::Packet { port: 3, bytes: vec![0] });
    assert!(error("packet 1 012").contains("3 hex digits is not whole bytes"));
    assert!(error("packet 1 0*").contains("belong to expect"));
    assert!(error("\npacket x 00").starts_with("line 2: `x` is not a number"));
}

#[test]
fn expectations_have_stars_and_an_end() {
    let digits = vec![Some(0), None, Some(15), Some(1)];
    assert_eq!(
        one("expect 1 0* f1$"),
        Command::Expect { port: 1, pattern: Some(Pattern { digits, whole: true }) }
    );
    assert_eq!(one("expect 1"), Command::Expect { port: 1, pattern: None });
    assert!(error("expect 1 0g").contains("`g` is not a hex digit"));
}

#[test]
fn entries_have_priority_keys_and_an_action() {
    let Command::Add { table, priority, keys, target, handle } =
        one("add c.t 10 a.b:0x1* c:3/2 d:1..5 e:0b1&&&0x3 g:* c.a(x:1, y : 0x2) = $H")
    else {
        panic!("no entry")
    };
    assert_eq!((table.as_str(), priority, handle.as_deref()), ("c.t", Some(10), Some("H")));
    let number = |value: u32, bits| Number { value: value.into(), mask: None, bits };
    let star = Number { value: 0x10u32.into(), mask: Some(0xf0u32.into()), bits: Some(4) };
    let expected = [
        ("a.b", KeyText::Value(star)),
        ("c", KeyText::Prefix(number(3, None), 2)),
        ("d", KeyText::Range(number(1, None), number(5, None))),
        ("e", KeyText::Mask(number(1, Some(1)), number(3, Some(4)))),
        ("g", KeyText::Any),
    ];
    assert_eq!(keys, expected.map(|(name, key)| (name.to_string(), key)));
    let args = vec![("x".to_string(), 1u32.into()), ("y".to_string(), 2u32.into())];
    assert_eq!(target, EntryAction::Call(Call { action: "c.a".into(), args }));
    assert!(matches!(one("add t k:1 member(7)"), Command::Add { target: EntryAction::Member(7), .. }));
    assert!(error("add t k:1").contains("an action with its arguments"));
    assert!(error("add t k:1* a()").contains("needs a number that starts with 0x"));
}

#[test]
fn checks_compare() {
    let found = one("check_counter c(3) bytes >= 10");
    let expected = Command::CheckCounter {
        counter: "c".into(),
        index: Index::Number(3),
        bytes: true,
        compare: Compare::AtLeast,
        value: 10,
    };
    assert_eq!(found, expected);
    assert!(
        matches!(one("check_counter c($A)"), Command::CheckCounter { index: Index::Handle(a), .. } if a == "A")
    );
    assert!(matches!(
        one("check_register r(0) != 5"),
        Command::CheckRegister { compare: Compare::NotEqual, .. }
    ));
}

#[test]
fn rates_are_units_a_microsecond() {
    let Command::MeterSet { index, rates, .. } = one("meter_set_rates m 2 0.000005:4 2.5:5") else {
        panic!("no meter")
    };
    assert_eq!((index, rates), (Some(2), [(5, 4), (2_500_000, 5)]));
    assert!(error("meter_set_rates m 2 0.0000005:4 1:5").contains("at most six digits"));
}

#[test]
fn limits_are_named() {
    let many = "wait\n".repeat(MAX_STATEMENTS + 1);
    assert!(error(&many).contains("more than 100000 statements"));
    assert!(
        error(&format!("register_write r 0 {}", "1".repeat(MAX_DIGITS + 1)))
            .contains("more than 2048 digits")
    );
}
