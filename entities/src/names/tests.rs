//! Mappings of single types.

use super::*;
use p4rack_p4::ir::{ControllerValue, DataTy, Ty};

fn kind(width: u32, sdn_width: Option<u32>, mappings: &[(&str, u32)], is_port: bool) -> Arc<Kind> {
    let value = |(name, number): &(&str, u32)| (ControllerValue::Text((*name).into()), (*number).into());
    let new = NewType {
        name: "t_t".into(),
        ty: Ty::Bit(width),
        inner: DataTy::Scalar(Ty::Bit(width)),
        annotations: Vec::new(),
        translation: Some((String::new(), sdn_width)),
        mappings: mappings.iter().map(value).collect(),
    };
    Arc::new(Kind::new(&new, is_port))
}

fn take(kind: &Arc<Kind>, name: &[u8], held: &mut Vec<Held>) -> Checked<BigUint> {
    kind.number("key", name, &mut Look::Take(held))
}

fn find(kind: &Arc<Kind>, name: &[u8]) -> Checked<BigUint> {
    kind.number("key", name, &mut Look::Find)
}

#[test]
fn decimal_numbers_stand_for_themselves_and_names_are_numbered_from_below_all_ones() {
    let (kind, mut held) = (kind(10, None, &[], false), Vec::new());
    for (name, number) in
        [("7", 7u32), ("vrf-1", 1022), ("vrf-2", 1021), ("vrf-1", 1022), ("0", 0), ("007", 1020)]
    {
        assert_eq!(take(&kind, name.as_bytes(), &mut held).unwrap(), number.into(), "{name}");
        assert_eq!(kind.shown(&number.into()), name.as_bytes());
    }
    // 1021 has a name, so this string is another number.
    assert_eq!(take(&kind, b"1021", &mut held).unwrap(), 1019u32.into());
    assert_eq!(kind.shown(&1019u32.into()), b"1021");
    // A value from the data plane, without a controller's name.
    assert_eq!(kind.shown(&5u32.into()), b"5");
}

#[test]
fn a_name_is_forgotten_with_its_last_use() {
    let kind = kind(10, None, &[], false);
    let mut held = Vec::new();
    let number = take(&kind, b"red", &mut held).unwrap();
    let entry = kind.hold(&number);
    drop(held);
    assert_eq!(find(&kind, b"red").unwrap(), number);
    drop(entry);
    let error = find(&kind, b"red").unwrap_err();
    assert_eq!((error.code, &*error.message), (Code::NotFound, "key: there is no `t_t` \"red\""));
    assert_eq!(kind.shown(&number), b"1022");
}

#[test]
fn what_the_program_maps_is_fixed() {
    let kind = kind(10, None, &[("", 0), ("cpu", 3)], false);
    let mut held = Vec::new();
    assert_eq!(take(&kind, b"", &mut held).unwrap(), BigUint::ZERO);
    assert_eq!(take(&kind, b"0", &mut held).unwrap(), 1022u32.into(), "0 is the empty string");
    held.clear();
    assert_eq!(find(&kind, b"cpu").unwrap(), 3u32.into());
    assert_eq!((kind.shown(&3u32.into()), kind.shown(&0u32.into())), (b"cpu".to_vec(), Vec::new()));
    let unmapped = self::kind(10, None, &[], false);
    assert_eq!(find(&unmapped, b"").unwrap_err().message, "key: an empty string is no `t_t`");
}

#[test]
fn ports_are_numbers_or_mapped() {
    let (ports, mut held) = (kind(9, None, &[("Ethernet0", 1)], true), Vec::new());
    assert_eq!(take(&ports, b"Ethernet0", &mut held).unwrap(), 1u32.into());
    assert_eq!(take(&ports, b"17", &mut held).unwrap(), 17u32.into());
    for name in ["Ethernet4", "512", "1"] {
        let error = take(&ports, name.as_bytes(), &mut held).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument);
        assert!(error.message.starts_with(&format!("key: \"{name}\" is no port of type `t_t`: ")));
    }
    let wide = kind(9, Some(32), &[], true);
    assert_eq!(find(&wide, &[0, 0, 1, 2]).unwrap(), 0x102u32.into());
    let error = find(&wide, &[0xff, 0xff, 0xff, 0xfd]).unwrap_err();
    assert!(error.message.starts_with("key: 4294967293 is no port of type `t_t`"), "{}", error.message);
}

#[test]
fn wider_numbers_of_controllers_get_numbers_of_the_data_plane() {
    let (kind, mut held) = (kind(12, Some(32), &[], false), Vec::new());
    assert_eq!(take(&kind, &[0, 0x12], &mut held).unwrap(), 0x12u32.into());
    assert_eq!(take(&kind, &[0x01, 0, 0, 0], &mut held).unwrap(), 4094u32.into());
    assert_eq!((kind.shown(&4094u32.into()), kind.shown(&0x12u32.into())), (vec![1, 0, 0, 0], vec![0x12]));
    let error = take(&kind, &[1, 0, 0, 0, 0], &mut held).unwrap_err();
    assert_eq!(error.code, Code::OutOfRange);
    assert_eq!(
        error.message,
        "key: 4294967296 needs 33 bits, but the field has 32: `t_t` is translated to 32 bits"
    );
}

#[test]
fn there_are_as_many_names_as_numbers_and_a_limit() {
    let (small, mut held) = (kind(2, None, &[], false), Vec::new());
    let numbers: Vec<BigUint> =
        ["a", "b", "c", "d"].map(|name| take(&small, name.as_bytes(), &mut held).unwrap()).into();
    assert_eq!(numbers, [2u32, 1, 0, 3].map(BigUint::from));
    let error = take(&small, b"e", &mut held).unwrap_err();
    assert_eq!(error.code, Code::ResourceExhausted);
    held.remove(1);
    assert_eq!(take(&small, b"e", &mut held).unwrap(), 1u32.into());

    let (large, mut held) = (kind(256, None, &[], false), Vec::new());
    for number in 0..LIMIT {
        take(&large, format!("n{number}").as_bytes(), &mut held).unwrap();
    }
    assert_eq!(take(&large, b"one more", &mut held).unwrap_err().code, Code::ResourceExhausted);
    held.truncate(LIMIT - 1);
    take(&large, b"one more", &mut held).unwrap();
}

#[test]
fn a_string_is_short_and_utf_8() {
    let (kind, mut held) = (kind(16, None, &[], false), Vec::new());
    for name in [&[0xff][..], &[b'x'; MAX_NAME + 1]] {
        assert_eq!(take(&kind, name, &mut held).unwrap_err().code, Code::InvalidArgument);
    }
    take(&kind, &[b'x'; MAX_NAME], &mut held).unwrap();
}
