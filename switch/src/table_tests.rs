//! Look-ups against a linear scan.

use super::*;
use crate::shape::{ActionShape, ParamShape};
use num_bigint::BigUint;
use p4rack_p4::ir::InstanceId;
use p4rack_p4::shown::Format;
use proptest::prelude::*;

fn key(kind: MatchKind, width: u32, offset: usize) -> KeyShape {
    KeyShape {
        name: "k".into(),
        kind,
        width,
        format: Format::Decimal,
        offset,
        limbs: (width as usize).div_ceil(64),
    }
}

fn shape(style: Style, keys: Vec<KeyShape>, size: u64) -> TableShape {
    TableShape {
        name: "table t".into(),
        words: keys.iter().map(|key| key.limbs).sum(),
        keys,
        style,
        actions: vec![ActionShape {
            name: "set".into(),
            params: vec![ParamShape { name: "value".into(), width: 32, format: Format::Decimal }],
            table_only: false,
            default_only: false,
        }],
        size,
        entries_const: false,
        default: None,
        default_is_const: false,
        counter: None,
        meter: None,
        meter_bytes: false,
        element: Vec::new(),
        smoother: None,
        on_call: false,
        idle_timeout: false,
        masked: false,
        implementation: None,
    }
}

fn entry(keys: Vec<Matcher>, priority: i32, value: u32) -> TableEntry {
    let call = ActionCall { action: 0, args: vec![value.into()] };
    TableEntry { priority, ..TableEntry::new(keys, call) }
}

fn masked(value: u64, mask: u64) -> Matcher {
    Matcher::Mask { value: (value & mask).into(), mask: mask.into() }
}

fn accepts(matcher: &Matcher, key: u64) -> bool {
    let key = BigUint::from(key);
    match matcher {
        Matcher::Any | Matcher::ValueSet(_) => true,
        Matcher::Exact(value) => *value == key,
        Matcher::Mask { value, mask } => &key & mask == *value,
        Matcher::Range { lo, hi } => *lo <= key && key <= *hi,
    }
}

/// Result of a look-up: the value of the entry.
fn found(state: &TableState, key: &[u64]) -> Option<u64> {
    state.lookup(key).map(|row| state.action(row).1[0])
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u64, u64, u32, i32),
    Delete(usize),
    Look(u64, u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let small = || 0u64..64;
    let step = prop_oneof![
        3 => (small(), small(), 0u32..=6, 1i32..5).prop_map(|(a, b, length, rank)| Step::Insert(a, b, length, rank)),
        1 => any::<usize>().prop_map(Step::Delete),
        4 => (small(), small()).prop_map(|(a, b)| Step::Look(a, b)),
    ];
    proptest::collection::vec(step, 1..200)
}

/// Runs the steps against a list; `make` returns the matchers of an entry, `better` chooses between two.
fn against_a_list(
    shape: &TableShape,
    steps: Vec<Step>,
    make: impl Fn(u64, u64, u32) -> Vec<Matcher>,
    rank: impl Fn(u32, i32) -> i32,
    priority: impl Fn(i32) -> i32,
) -> Result<(), TestCaseError> {
    let mut state = TableState::new(shape).expect("no default");
    let mut list: Vec<(Vec<Matcher>, i32, i32, u32)> = Vec::new();
    for (number, step) in steps.into_iter().enumerate() {
        match step {
            Step::Insert(a, b, length, order) => {
                let (keys, priority) = (make(a, b, length), priority(order));
                let taken = list.iter().any(|(other, level, _, _)| *other == keys && *level == priority);
                let full = list.len() as u64 >= shape.size;
                match state.insert(shape, entry(keys.clone(), priority, number as u32), false) {
                    Ok(_) => {
                        prop_assert!(!taken && !full);
                        list.push((keys, priority, rank(length, order), number as u32));
                    }
                    Err(ControlError::AlreadyExists(_)) => prop_assert!(taken),
                    Err(ControlError::ResourceExhausted { .. }) => prop_assert!(full),
                    Err(error) => return Err(TestCaseError::fail(error.to_string())),
                }
            }
            Step::Delete(at) if !list.is_empty() => {
                let (keys, priority, _, _) = list.remove(at % list.len());
                prop_assert!(state.delete(shape, &keys, priority).is_ok());
                prop_assert!(state.delete(shape, &keys, priority).is_err());
            }
            Step::Delete(_) => {}
            Step::Look(a, b) => {
                let fits = |keys: &[Matcher]| accepts(&keys[0], a) && accepts(&keys[1], b);
                let best = list
                    .iter()
                    .filter(|(keys, _, _, _)| fits(keys))
                    .max_by_key(|(_, _, rank, age)| (*rank, -i64::from(*age)));
                prop_assert_eq!(found(&state, &[a, b]), best.map(|(_, _, _, value)| u64::from(*value)));
            }
        }
        let mut rows: Vec<u32> = list.iter().map(|(_, _, _, number)| *number).collect();
        rows.sort_unstable();
        let stored: Vec<u32> = state.rows().iter().map(|&row| state.action(row).1[0] as u32).collect();
        prop_assert_eq!(stored, rows);
    }
    Ok(())
}

proptest! {
    #[test]
    fn exact_is_a_map(steps in steps()) {
        let shape = shape(Style::Exact, vec![key(MatchKind::Exact, 6, 0), key(MatchKind::Exact, 64, 1)], 40);
        let make = |a: u64, b: u64, _| vec![Matcher::Exact((a % 8).into()), Matcher::Exact((b % 8).into())];
        against_a_list(&shape, steps, make, |_, _| 0, |_| 0)?;
    }

    #[test]
    fn lpm_is_the_longest_match(steps in steps()) {
        let shape = shape(Style::Lpm, vec![key(MatchKind::Exact, 6, 0), key(MatchKind::Lpm, 6, 1)], 40);
        let make = |a: u64, b: u64, length: u32| {
            let mask = ((1u64 << length) - 1) << (6 - length);
            let prefix = if length == 0 { Matcher::Any } else { masked(b, mask) };
            vec![Matcher::Exact((a % 4).into()), prefix]
        };
        against_a_list(&shape, steps, make, |length, _| length as i32, |_| 0)?;
    }

    #[test]
    fn ternary_is_the_largest_priority(steps in steps()) {
        let shape = shape(Style::Ternary, vec![key(MatchKind::Ternary, 6, 0), key(MatchKind::Range, 6, 1)], 40);
        let make = |a: u64, b: u64, length: u32| {
            let mask = [0, 1, 0x3f, 0x20, 0x0c, 0x3e, 0x15][length as usize];
            let value = if mask == 0 { Matcher::Any } else { masked(a, mask) };
            let range = Matcher::Range { lo: (b / 2).into(), hi: (b / 2 + u64::from(length)).into() };
            vec![value, range]
        };
        against_a_list(&shape, steps, make, |_, order| order, |order| order)?;
    }
}

proptest! {
    #[test]
    fn many_masks_and_priorities(steps in steps()) {
        let keys = vec![key(MatchKind::Ternary, 6, 0), key(MatchKind::Range, 12, 1)];
        let shape = shape(Style::Ternary, keys, 40);
        let make = |a: u64, b: u64, length: u32| {
            let mask = [0, 1, 0x3f, 0x20, 0x0c, 0x3e, 0x15][length as usize];
            let value = if mask == 0 { Matcher::Any } else { masked(a, mask) };
            // Open in half of them; bounds differ in both bytes in others.
            let range = match b % 4 {
                0 | 1 => Matcher::Any,
                2 => Matcher::Range { lo: b.into(), hi: (b + 300).into() },
                _ => Matcher::Range { lo: (b / 2).into(), hi: b.into() },
            };
            vec![value, range]
        };
        against_a_list(&shape, steps, make, |_, order| order, |order| order)?;
    }
}

#[test]
fn entries_are_given_back() {
    let keys = vec![
        key(MatchKind::Ternary, 128, 0),
        key(MatchKind::Range, 16, 2),
        key(MatchKind::Optional, 8, 3),
        key(MatchKind::Lpm, 32, 4),
    ];
    let mut wide = shape(Style::Ternary, keys, 10);
    let param = |name: &str, width| ParamShape { name: name.into(), width, format: Format::Decimal };
    wide.actions[0].params = vec![param("a", 9), param("b", 103)];
    let mut state = TableState::new(&wide).expect("no default");
    let big = (BigUint::from(7u8) << 100u32) + 5u8;
    let given = |keys: Vec<Matcher>, priority| TableEntry {
        priority,
        metadata: vec![1, 2],
        idle_timeout_ns: 5,
        ..TableEntry::new(keys, ActionCall { action: 0, args: vec![3u8.into(), big.clone()] })
    };
    let mask = Matcher::Mask { value: big.clone(), mask: big.clone() };
    let range = Matcher::Range { lo: 3u8.into(), hi: 700u32.into() };
    let all = [
        given(vec![mask, range, Matcher::Exact(4u8.into()), masked(0x0a00_0000, 0xff00_0000)], 3),
        given(vec![Matcher::Any, Matcher::Any, Matcher::Any, Matcher::Any], 1),
    ];
    let rows: Vec<u32> =
        all.iter().map(|entry| state.insert(&wide, entry.clone(), false).expect("new")).collect();
    let back: Vec<TableEntry> = rows.iter().filter_map(|&row| state.entry(&wide, row)).collect();
    assert_eq!(back, all);
    let prefix = shape(Style::Lpm, vec![key(MatchKind::Lpm, 32, 0)], 10);
    let mut state = TableState::new(&prefix).expect("no default");
    for keys in [masked(0x0a00_0000, 0xff00_0000), Matcher::Any] {
        let row = state.insert(&prefix, entry(vec![keys.clone()], 0, 1), false).expect("new");
        assert_eq!(state.entry(&prefix, row).expect("there").keys, [keys]);
    }
}

#[test]
fn wide_keys_and_wide_ranges() {
    let keys = vec![key(MatchKind::Ternary, 128, 0), key(MatchKind::Range, 100, 2)];
    let shape = shape(Style::Ternary, keys, 10);
    let mut state = TableState::new(&shape).expect("no default");
    let big = |high: u64, low: u64| (BigUint::from(high) << 64) + low;
    let mask = Matcher::Mask { value: big(7, 0), mask: big(u64::MAX, 0) };
    let range = Matcher::Range { lo: big(1, 5), hi: big(2, 3) };
    state.insert(&shape, entry(vec![mask, range], 1, 9), false).expect("valid");
    assert_eq!(found(&state, &[123, 7, 5, 1]), Some(9));
    assert_eq!(found(&state, &[123, 7, 4, 1]), None);
    assert_eq!(found(&state, &[123, 7, 3, 2]), Some(9));
    assert_eq!(found(&state, &[123, 7, 4, 2]), None);
    assert_eq!(found(&state, &[123, 8, 5, 1]), None);
}

#[test]
fn what_does_not_fit_is_refused() {
    let lpm = shape(Style::Lpm, vec![key(MatchKind::Lpm, 16, 0)], 10);
    let mut state = TableState::new(&lpm).expect("no default");
    let mut refuse = |keys: Vec<Matcher>, priority, value: u64| {
        let call = ActionCall { action: 0, args: vec![value.into()] };
        let entry = TableEntry { priority, ..TableEntry::new(keys, call) };
        let error = state.insert(&lpm, entry, false).expect_err("refused");
        assert!(matches!(error, ControlError::Invalid(_)), "{error}");
        error.to_string()
    };
    assert!(refuse(vec![masked(0xff00, 0xf0f0)], 0, 0).contains("not a prefix"));
    assert!(refuse(vec![masked(0x1_0000, 0x1_0000)], 0, 0).contains("16 bits"));
    assert!(refuse(vec![masked(1, 0xffff)], 3, 0).contains("priority 3"));
    assert!(refuse(vec![masked(1, 0xffff)], 0, 1 << 32).contains("32 bits"));
    assert!(refuse(vec![], 0, 0).contains("1 keys"));
    let outside = Matcher::Mask { value: 0xffu32.into(), mask: 0xff00u32.into() };
    assert!(refuse(vec![outside], 0, 0).contains("outside of the mask"));
    assert!(state.modify(&lpm, entry(vec![masked(1, 0xffff)], 0, 0)).is_err());
}

#[test]
fn modify_keeps_the_row_and_its_counter() {
    let mut exact = shape(Style::Exact, vec![key(MatchKind::Exact, 16, 0)], 10);
    exact.counter = Some(InstanceId(0));
    let mut state = TableState::new(&exact).expect("no default");
    let keys = || vec![Matcher::Exact(5u8.into())];
    state.insert(&exact, entry(keys(), 0, 1), false).expect("new");
    state.counters[1].packets = 3;
    state.modify(&exact, entry(keys(), 0, 2)).expect("there");
    assert_eq!((found(&state, &[5]), state.counters[1].packets), (Some(2), 3));
    state.delete(&exact, &keys(), 0).expect("there");
    state.insert(&exact, entry(keys(), 0, 3), false).expect("new");
    assert_eq!((found(&state, &[5]), state.counters[1].packets), (Some(3), 0));
}
