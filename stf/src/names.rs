//! Finds the object that a statement names, like BMv2's test runner: by the full name, else by a suffix that
//! is unique.

use crate::command::{Call, KeyText, Number};
use num_bigint::BigUint;
use num_traits::One;
use p4rack_p4::ir::{ActionCall, InstanceId, Key, MatchKind, Matcher, Program, TableId, ValueSetId};

type Result<T> = std::result::Result<T, String>;

/// Position of the object with this name.
fn find<'a>(what: &str, name: &str, names: impl Iterator<Item = &'a str> + Clone) -> Result<usize> {
    let ways: [&dyn Fn(&str) -> bool; 3] = [
        &|full| full == name,
        &|full| full.strip_suffix(name).is_some_and(|head| head.ends_with('.')),
        &|full| full.ends_with(name),
    ];
    for is in ways {
        let mut found = names.clone().enumerate().filter(|(_, full)| is(full));
        if let Some((at, first)) = found.next() {
            return match found.next() {
                None => Ok(at),
                Some((_, second)) => {
                    Err(format!("{what} {name} may be {first} or {second}: write the whole name"))
                }
            };
        }
    }
    let all: Vec<&str> = names.take(8).collect();
    Err(match all.is_empty() {
        true => format!("the program has no {what} {name}, nor any other {what}"),
        false => format!("the program has no {what} {name}; there are {}", all.join(", ")),
    })
}

/// A table.
pub(crate) fn table(program: &Program, name: &str) -> Result<TableId> {
    let names = program.tables.iter().map(|table| table.named.name.as_str());
    Ok(TableId(find("table", name, names)? as u32))
}

/// A counter, meter, register, action profile …
pub(crate) fn instance(program: &Program, what: &str, name: &str) -> Result<InstanceId> {
    let names = program.instances.iter().map(|instance| instance.named.name.as_str());
    Ok(InstanceId(find(what, name, names)? as u32))
}

/// A parser value set.
pub(crate) fn value_set(program: &Program, name: &str) -> Result<ValueSetId> {
    let names = program.value_sets.iter().map(|set| set.named.name.as_str());
    Ok(ValueSetId(find("value set", name, names)? as u32))
}

/// An action of a table with its arguments.
pub(crate) fn call(program: &Program, table: TableId, call: &Call) -> Result<ActionCall> {
    let listed = &program.tables[table.0 as usize].actions;
    let names = listed.iter().map(|listed| program.actions[listed.action.0 as usize].named.name.as_str());
    // BMv2's compiler calls it `_NoAction`.
    let wanted = call.action.strip_prefix('_').filter(|name| *name == "NoAction").unwrap_or(&call.action);
    let at = find("action", wanted, names)?;
    let action = &program.actions[listed[at].action.0 as usize];
    let names = action.params.iter().map(|param| param.named.name.as_str());
    let mut args = vec![None; action.params.len()];
    for (name, value) in &call.args {
        let at = find("parameter", name, names.clone())
            .map_err(|what| format!("action {}: {what}", action.named.name))?;
        if args[at].replace(value.clone()).is_some() {
            return Err(format!("action {}: {name} is given twice", action.named.name));
        }
    }
    let missing = args.iter().zip(&action.params).find(|(arg, _)| arg.is_none());
    if let Some((_, param)) = missing {
        return Err(format!("action {}: {} is not given", action.named.name, param.named.name));
    }
    Ok(ActionCall { action: at as u32, args: args.into_iter().flatten().collect() })
}

/// Matchers for all keys of a table, except those of selectors. A key that is not named matches anything; an
/// exact one, 0.
pub(crate) fn keys(program: &Program, table: TableId, given: &[(String, KeyText)]) -> Result<Vec<Matcher>> {
    let keys: Vec<&Key> =
        program.tables[table.0 as usize].keys.iter().filter(|key| key.kind != MatchKind::Selector).collect();
    let nothing = |key: &&Key| match key.kind {
        MatchKind::Exact => Matcher::Exact(BigUint::ZERO),
        _ => Matcher::Any,
    };
    let mut matchers: Vec<Matcher> = keys.iter().map(nothing).collect();
    for (name, text) in given {
        // P4_14 wrote validity as a field, and stacks with a dollar sign.
        let valid =
            name.strip_suffix(".$valid$").or(name.strip_suffix(".$valid")).or(name.strip_suffix(".valid"));
        let name = match valid {
            Some(header) => format!("{header}.$valid$"),
            None => stack(name),
        };
        let at = find("key", &name, keys.iter().map(|key| key.named.name.as_str()))?;
        let width = keys[at].ty.width();
        matchers[at] = matcher(keys[at].kind, width, text)
            .map_err(|what| format!("key {}: {what}", keys[at].named.name))?;
    }
    Ok(matchers)
}

/// `extra$0.h` is `extra[0].h`.
fn stack(name: &str) -> String {
    let Some((head, rest)) = name.split_once('$') else {
        return name.into();
    };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    match digits {
        0 => name.into(),
        _ => format!("{head}[{}]{}", &rest[..digits], &rest[digits..]),
    }
}

fn ones(width: u32) -> BigUint {
    (BigUint::one() << width) - 1u8
}

fn masked(value: &BigUint, mask: BigUint) -> Matcher {
    if mask == BigUint::ZERO { Matcher::Any } else { Matcher::Mask { value: value & &mask, mask } }
}

fn prefix(value: &BigUint, length: u32, width: u32) -> Result<Matcher> {
    if length > width {
        return Err(format!("a prefix of {length} bits is longer than the key, {width} bits"));
    }
    Ok(masked(value, ones(width) ^ ones(width - length)))
}

/// Match of one key.
pub(crate) fn matcher(kind: MatchKind, width: u32, text: &KeyText) -> Result<Matcher> {
    let exact = |number: &Number| match number.mask {
        None => Ok(number.value.clone()),
        Some(_) => Err(format!("`*` has no place in a key that is matched as {kind:?}")),
    };
    Ok(match (kind, text) {
        (MatchKind::Exact, KeyText::Any) => return Err("an exact key needs a value".into()),
        (_, KeyText::Any) => Matcher::Any,
        (MatchKind::Exact | MatchKind::Optional, KeyText::Value(number)) => Matcher::Exact(exact(number)?),
        (MatchKind::Lpm, KeyText::Value(number)) => {
            prefix(&number.value, number.bits.map_or(width, |bits| bits.min(width)), width)?
        }
        (MatchKind::Lpm | MatchKind::Ternary, KeyText::Prefix(number, length)) => {
            prefix(&number.value, *length, width)?
        }
        (MatchKind::Ternary, KeyText::Value(number)) => match &number.mask {
            Some(mask) => masked(&number.value, mask & ones(width)),
            None => Matcher::Mask { value: number.value.clone(), mask: ones(width) },
        },
        (MatchKind::Ternary, KeyText::Mask(value, mask)) => masked(&exact(value)?, exact(mask)?),
        (MatchKind::Range, KeyText::Range(lo, hi)) => Matcher::Range { lo: exact(lo)?, hi: exact(hi)? },
        (MatchKind::Range, KeyText::Value(number)) => {
            Matcher::Range { lo: exact(number)?, hi: exact(number)? }
        }
        _ => return Err(format!("a key that is matched as {kind:?} can't be written like that")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_name_is_enough_if_it_is_the_only_one() {
        let names = ["MyIngress.t1", "MyIngress.t2", "MyEgress.t1", "t2"];
        let find = |name| find("table", name, names.iter().copied());
        assert_eq!(find("t2"), Ok(3));
        assert_eq!(find("MyEgress.t1"), Ok(2));
        assert_eq!(find("ress.t2"), Ok(1));
        assert!(find("t1").unwrap_err().contains("may be MyIngress.t1 or MyEgress.t1"));
        assert!(find("t3").unwrap_err().contains("there are MyIngress.t1"));
    }

    #[test]
    fn digits_of_a_prefix_give_its_length() {
        let number = Number { value: 0x0a00u32.into(), mask: Some(0xff00u32.into()), bits: Some(8) };
        let found = matcher(MatchKind::Lpm, 16, &KeyText::Value(number)).unwrap();
        assert_eq!(found, Matcher::Mask { value: 0x0a00u32.into(), mask: 0xff00u32.into() });
    }

    #[test]
    fn stacks_are_written_with_a_dollar() {
        assert_eq!(stack("extra$0.h"), "extra[0].h");
        assert_eq!(stack("a.$valid"), "a.$valid");
    }
}
