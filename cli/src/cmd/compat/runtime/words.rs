//! Names and values in commands, as BMv2 takes and shows them.

use super::{Done, Failure, mistake};
use p4rack_ctrl::values::{parse, parse_match};
use p4rack_p4rt::bytes;
use p4rack_p4rt::p4::config::v1::action as declared;
use p4rack_p4rt::p4::config::v1::match_field::MatchType;
use p4rack_p4rt::p4::config::v1::{Action, MatchField, Preamble, Table};
use p4rack_p4rt::p4::v1::field_match::FieldMatchType;
use p4rack_p4rt::p4::v1::{self, FieldMatch, action};
use p4rack_p4rt::schema::{hint, match_type, name_of};

/// The object with a name, or the only one whose name ends in it: `ipv4_lpm` for `MyIngress.ipv4_lpm`.
pub(super) fn find<'a, T>(
    kind: &str,
    wanted: &str,
    all: &'a [T],
    preamble: impl Fn(&T) -> Option<&Preamble>,
) -> Done<&'a T> {
    if let Some(found) = all.iter().find(|object| name_of(preamble(object)) == wanted) {
        return Ok(found);
    }
    let ending = format!(".{wanted}");
    let mut close = all.iter().filter(|object| name_of(preamble(object)).ends_with(&ending));
    match (close.next(), close.next()) {
        (Some(found), None) => Ok(found),
        _ => mistake(format!("Invalid {kind} name ({wanted}){}", meant(wanted, all, &preamble))),
    }
}

/// `; did you mean …?`, for a name that fits none of these objects, or several.
pub(super) fn meant<T>(wanted: &str, all: &[T], preamble: impl Fn(&T) -> Option<&Preamble>) -> String {
    let names: Vec<String> = all.iter().map(|object| name_of(preamble(object)).to_owned()).collect();
    hint(wanted, &names)
}

/// Another number of arguments than a command has.
pub(super) fn wrong_number<T>(expected: usize, got: usize) -> Done<T> {
    mistake(format!("Wrong number of args, expected {expected} but got {got}"))
}

/// Exactly this many arguments.
pub(super) fn exactly<'w, 'l, const N: usize>(words: &'w [&'l str]) -> Done<[&'l str; N]> {
    <[&'l str; N]>::try_from(words).or_else(|_| wrong_number(N, words.len()))
}

/// At least this many arguments, and the rest.
pub(super) fn at_least<'w, 'l, const N: usize>(words: &'w [&'l str]) -> Done<([&'l str; N], &'w [&'l str])> {
    match words.split_first_chunk::<N>() {
        Some((first, rest)) => Ok((*first, rest)),
        None => mistake("Insufficient number of args"),
    }
}

/// A number; `what` is its name in errors.
pub(super) fn number<T: std::str::FromStr>(text: &str, what: &str) -> Done<T> {
    text.parse()
        .map_err(|_| Failure(format!("Error: Bad format for {what}: `{text}` is no number that fits")))
}

/// Bytes as wide as a field, as BMv2 shows them.
pub(super) fn padded(value: &[u8], width: i32) -> Vec<u8> {
    let length = usize::try_from(width).unwrap_or(0).div_ceil(8);
    let value = bytes::canonical(value);
    let mut all = vec![0; length.saturating_sub(value.len())];
    all.extend(value);
    all
}

/// `0a000101`
pub(super) fn hex(value: &[u8], width: i32) -> String {
    padded(value, width).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `0a:00:01:01`
pub(super) fn colons(value: &[u8], width: i32) -> String {
    let octets: Vec<String> = padded(value, width).iter().map(|byte| format!("{byte:02x}")).collect();
    octets.join(":")
}

/// The kind of match of a table: the most general one of its keys.
pub(super) fn kind_of(table: &Table) -> &'static str {
    let has = |kind| table.match_fields.iter().any(|field| match_type(field) == kind);
    match () {
        () if has(MatchType::Range) => "range",
        () if has(MatchType::Ternary) || has(MatchType::Optional) => "ternary",
        () if has(MatchType::Lpm) => "lpm",
        () => "exact",
    }
}

/// The kind of a key.
pub(super) fn key_kind(field: &MatchField) -> &'static str {
    match match_type(field) {
        MatchType::Range => "range",
        MatchType::Ternary | MatchType::Optional => "ternary",
        MatchType::Lpm => "lpm",
        _ => "exact",
    }
}

/// Whether entries have a priority.
pub(super) fn has_priority(table: &Table) -> bool {
    matches!(kind_of(table), "range" | "ternary")
}

/// P4Runtime's larger priority wins, and BMv2's smaller one.
pub(super) fn priority(bmv2: i32) -> i32 {
    i32::MAX - bmv2
}

/// A key of an entry: `V`, `V/LENGTH`, `V&&&MASK` or `LOW->HIGH`.
fn key(text: &str, field: &MatchField) -> Result<Option<FieldMatch>, String> {
    let needs = |sign: &str, what: &str| format!("`{text}` has no `{sign}` between {what}");
    let text = match match_type(field) {
        MatchType::Lpm if !text.contains('/') => return Err(needs("/", "prefix and length")),
        MatchType::Ternary if !text.contains("&&&") => return Err(needs("&&&", "value and mask")),
        MatchType::Range if !text.contains("->") => return Err(needs("->", "start and end")),
        MatchType::Range => text.replace("->", ".."),
        // BMv2 accepts a mask; only all bits or none make sense.
        MatchType::Optional => match text.split_once("&&&") {
            Some((_, mask)) if parse(mask, field.bitwidth)? == [0] => "*".to_owned(),
            Some((value, _)) => value.to_owned(),
            None => text.to_owned(),
        },
        _ => text.to_owned(),
    };
    let matched = parse_match(&text, field)?;
    Ok(matched.map(|kind| FieldMatch { field_id: field.id, field_match_type: Some(kind) }))
}

/// The keys of an entry, one word for each.
pub(super) fn keys(table: &Table, words: &[&str]) -> Done<Vec<FieldMatch>> {
    if words.len() != table.match_fields.len() {
        let name = name_of(table.preamble.as_ref());
        return mistake(format!("Table {name} needs {} key fields", table.match_fields.len()));
    }
    let mut keys = Vec::new();
    for (text, field) in words.iter().zip(&table.match_fields) {
        let wrong = |why| Failure(format!("Invalid match key: Error while parsing {text} - {why}"));
        keys.extend(key(text, field).map_err(wrong)?);
    }
    Ok(keys)
}

/// An action with a word for each parameter.
pub(super) fn call(action: &Action, words: &[&str]) -> Done<v1::Action> {
    let preamble = action.preamble.as_ref();
    if words.len() != action.params.len() {
        return mistake(format!("Action {} needs {} parameters", name_of(preamble), action.params.len()));
    }
    let param = |(text, param): (&&str, &declared::Param)| {
        let value = parse(text, param.bitwidth)
            .map_err(|why| Failure(format!("Invalid runtime data: Error while parsing {text} - {why}")))?;
        Ok(action::Param { param_id: param.id, value })
    };
    Ok(v1::Action {
        action_id: preamble.map_or(0, |preamble| preamble.id),
        params: words.iter().zip(&action.params).map(param).collect::<Done<_>>()?,
    })
}

/// A key as the line of `table_add` shows it: `LPM-0a:00:01:01/32`.
pub(super) fn shown(field: &MatchField, keys: &[FieldMatch]) -> String {
    format!("{}-{}", key_kind(field).to_uppercase(), value_of(field, keys, colons))
}

/// A key as `table_dump` shows it: `0a000101/32`.
pub(super) fn dumped(field: &MatchField, keys: &[FieldMatch]) -> String {
    value_of(field, keys, hex)
}

fn value_of(field: &MatchField, keys: &[FieldMatch], show: fn(&[u8], i32) -> String) -> String {
    let width = field.bitwidth;
    let show = |value: &[u8]| show(value, width);
    let all = vec![0xff; usize::try_from(width).unwrap_or(0).div_ceil(8)];
    let ones = || {
        let mut ones = all.clone();
        if let Some(first) = ones.first_mut() {
            *first >>= (8 - width % 8) % 8;
        }
        ones
    };
    let key = keys.iter().find(|key| key.field_id == field.id).and_then(|key| key.field_match_type.as_ref());
    match (key, match_type(field)) {
        (Some(FieldMatchType::Exact(exact)), _) => show(&exact.value),
        (Some(FieldMatchType::Lpm(lpm)), _) => format!("{}/{}", show(&lpm.value), lpm.prefix_len),
        (Some(FieldMatchType::Ternary(ternary)), _) => {
            format!("{} &&& {}", show(&ternary.value), show(&ternary.mask))
        }
        (Some(FieldMatchType::Optional(optional)), _) => {
            format!("{} &&& {}", show(&optional.value), show(&ones()))
        }
        (Some(FieldMatchType::Range(range)), _) => format!("{} -> {}", show(&range.low), show(&range.high)),
        (None, MatchType::Lpm) => format!("{}/0", show(&[])),
        (None, MatchType::Range) => format!("{} -> {}", show(&[]), show(&ones())),
        (None, _) => format!("{} &&& {}", show(&[]), show(&[])),
        (Some(FieldMatchType::Other(other)), _) => other.type_url.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_p4rt::p4::config::v1::match_field::Match;

    fn field(bitwidth: i32, kind: MatchType) -> MatchField {
        let r#match = Some(Match::MatchType(kind as i32));
        MatchField { id: 1, name: "f".into(), bitwidth, r#match, ..Default::default() }
    }

    fn both(text: &str, field: &MatchField) -> (String, String) {
        let keys: Vec<FieldMatch> = key(text, field).unwrap().into_iter().collect();
        (shown(field, &keys), dumped(field, &keys))
    }

    #[test]
    fn keys_are_taken_and_shown_as_bmv2s() {
        for (text, width, kind, line, dump) in [
            ("10.0.1.1/32", 32, MatchType::Lpm, "LPM-0a:00:01:01/32", "0a000101/32"),
            ("0/0", 32, MatchType::Lpm, "LPM-00:00:00:00/0", "00000000/0"),
            ("00:00:00:00:01:0a", 48, MatchType::Exact, "EXACT-00:00:00:00:01:0a", "00000000010a"),
            ("0x10&&&0xf0", 9, MatchType::Ternary, "TERNARY-00:10 &&& 00:f0", "0010 &&& 00f0"),
            ("5&&&0", 9, MatchType::Ternary, "TERNARY-00:00 &&& 00:00", "0000 &&& 0000"),
            ("5->9", 16, MatchType::Range, "RANGE-00:05 -> 00:09", "0005 -> 0009"),
            ("0->511", 9, MatchType::Range, "RANGE-00:00 -> 01:ff", "0000 -> 01ff"),
            ("5&&&0x1ff", 9, MatchType::Optional, "TERNARY-00:05 &&& 01:ff", "0005 &&& 01ff"),
            ("5&&&0", 9, MatchType::Optional, "TERNARY-00:00 &&& 00:00", "0000 &&& 0000"),
        ] {
            assert_eq!(both(text, &field(width, kind)), (line.to_owned(), dump.to_owned()), "{text}");
        }
        for (text, kind, said) in [
            ("10.0.1.1", MatchType::Lpm, "`/`"),
            ("1&2", MatchType::Ternary, "`&&&`"),
            ("9..10", MatchType::Range, "`->`"),
            ("zebra", MatchType::Exact, "zebra"),
        ] {
            assert!(key(text, &field(32, kind)).unwrap_err().contains(said), "{text}");
        }
    }

    #[test]
    fn names_may_be_cut_where_they_stay_unique() {
        let preamble = |name: &str| Preamble { name: name.into(), ..Default::default() };
        let all = [preamble("A.t"), preamble("B.t"), preamble("B.u")];
        let find =
            |wanted: &str| find("table", wanted, &all, |one| Some(one)).map(|found| found.name.clone());
        assert_eq!((find("A.t").unwrap(), find("u").unwrap()), ("A.t".into(), "B.u".into()));
        let error = |wanted: &str| find(wanted).unwrap_err().0;
        assert_eq!(error("t"), "Error: Invalid table name (t); did you mean A.t or B.t?");
        assert_eq!(error("zebra"), "Error: Invalid table name (zebra); there are: A.t, B.t, B.u");
    }
}
