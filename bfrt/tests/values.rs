//! Values of each type, in memory and in messages.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_bfrt::{Kind, Value, ValueError};
use p4rack_p4rt::bfrt_proto::data_field::{BoolArray, ContainerArray, IntArray, StrArray, Value as Sent};

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// A value of each type and its message.
fn pairs() -> Vec<(Kind, Value, Sent)> {
    vec![
        (Kind::Bits(12), Value::from(0xabcu16), Sent::Stream(vec![0x0a, 0xbc])),
        (Kind::Bool, Value::from(true), Sent::BoolVal(true)),
        (Kind::Float, Value::Float(0.5), Sent::FloatVal(0.5)),
        (Kind::Text(Vec::new()), Value::from("any"), Sent::StrVal("any".into())),
        (Kind::Numbers, Value::Numbers(vec![0x100, 7]), Sent::IntArrVal(IntArray { val: vec![0x100, 7] })),
        (Kind::Octets, Value::Numbers(vec![0xff, 0]), Sent::IntArrVal(IntArray { val: vec![0xff, 0] })),
        (
            Kind::Bools,
            Value::Bools(vec![true, false]),
            Sent::BoolArrVal(BoolArray { val: vec![true, false] }),
        ),
        (
            Kind::Texts,
            Value::Texts(texts(&["a", "b"])),
            Sent::StrArrVal(StrArray { val: texts(&["a", "b"]) }),
        ),
    ]
}

/// Errors' words for a value of this type.
fn words(kind: &Kind) -> &'static str {
    match kind {
        Kind::Bits(_) => "a number",
        Kind::Bool => "a truth value",
        Kind::Float => "a real number",
        Kind::Text(_) => "text",
        Kind::Numbers | Kind::Octets => "several numbers",
        Kind::Bools => "several truth values",
        Kind::Texts => "several texts",
        Kind::Groups => "groups of fields",
    }
}

/// Each type takes its own values and refuses all others, with words for both.
#[test]
fn a_field_takes_values_of_its_type_only() {
    let groups = (Kind::Groups, Value::Groups(Vec::new()), Sent::ContainerArrVal(ContainerArray::default()));
    for (kind, value, sent) in pairs() {
        assert_eq!(kind.encode(&value), Ok(sent.clone()), "{kind:?}");
        assert_eq!(kind.decode(&sent), Ok(value), "{kind:?}");
        for (other, value, sent) in pairs().into_iter().chain([groups.clone()]) {
            if words(&other) == words(&kind) {
                continue;
            }
            let error = ValueError::Kind { wanted: words(&kind), found: words(&other) };
            assert_eq!(kind.encode(&value), Err(error.clone()), "{kind:?} of {value:?}");
            // Bytes may also come as one string.
            if (&kind, &other) != (&Kind::Octets, &Kind::Bits(12)) {
                assert_eq!(kind.decode(&sent), Err(error), "{kind:?} of {sent:?}");
            }
        }
    }
    let error = Kind::Groups.encode(&Value::from(1u16)).unwrap_err();
    assert_eq!(error.to_string(), "the field holds groups of fields, not a number");
}

#[test]
fn bytes_come_as_a_string_or_as_small_numbers() {
    let bytes = |val: &[u32]| Sent::IntArrVal(IntArray { val: val.to_vec() });
    let larger = ValueError::Kind { wanted: "bytes", found: "larger numbers" };
    assert_eq!(Kind::Octets.decode(&Sent::Stream(vec![0, 0xff])), Ok(Value::Numbers(vec![0, 0xff])));
    assert_eq!(Kind::Octets.decode(&bytes(&[0xff])), Ok(Value::Numbers(vec![0xff])));
    assert_eq!(Kind::Octets.decode(&bytes(&[0, 0x100])), Err(larger.clone()));
    assert_eq!(Kind::Octets.encode(&Value::Numbers(vec![0, 0x100])), Err(larger));
    assert_eq!(Kind::Numbers.decode(&bytes(&[u32::MAX])), Ok(Value::Numbers(vec![u32::MAX])));
}

#[test]
fn choices_count_in_both_directions() {
    let speed = Kind::Text(texts(&["25G", "100G"]));
    let none = ValueError::Choice { value: "50G".into(), choices: texts(&["25G", "100G"]) };
    for (text, refused) in [("25G", None), ("100G", None), ("50G", Some(none))] {
        assert_eq!(speed.encode(&text.into()).err(), refused, "{text}");
        assert_eq!(speed.decode(&Sent::StrVal(text.into())).err(), refused, "{text}");
    }
}

#[test]
fn numbers_of_up_to_eight_bytes_are_numbers_of_rust() {
    assert_eq!(Value::from(u64::MAX).number(), Some(u64::MAX));
    assert_eq!(Value::from([0, 0, 1, 2]).number(), Some(0x102));
    assert_eq!(Value::from([1, 0, 0, 0, 0, 0, 0, 0, 0]).number(), None, "nine bytes");
    assert_eq!(Value::from(true).number(), None);
}

#[test]
fn numbers_and_truth_values_have_a_width() {
    assert_eq!([Kind::Bits(9), Kind::Bool].map(|kind| kind.width()), [Some(9), Some(1)]);
    assert_eq!([Kind::Float, Kind::Numbers, Kind::Groups].map(|kind| kind.width()), [None; 3]);
}

/// A field without bits holds nothing but zero.
#[test]
fn a_field_of_width_zero_holds_zero() {
    let nothing = Kind::Bits(0);
    assert_eq!(nothing.encode(&Value::from(0u16)), Ok(Sent::Stream(Vec::new())));
    assert!(matches!(
        nothing.encode(&Value::from(1u16)),
        Err(ValueError::TooWide { needed: 1, width: 0, .. })
    ));
    let long = nothing.decode(&Sent::Stream(vec![0])).unwrap_err();
    assert_eq!(long, ValueError::Length { found: 1, wanted: 0, width: 0 });
}
