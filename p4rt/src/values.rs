//! Values in human-readable form: numbers, MAC and IP addresses, prefixes, masks, ranges. What is shown can be entered
//! again and gives the same bytes. Byte strings are handled by [`crate::bytes`].

use crate::bytes::{self, BytesError};
use crate::p4::config::v1::action::Param;
use crate::p4::config::v1::controller_packet_metadata::Metadata;
use crate::p4::config::v1::{MatchField, P4NamedType, match_field::MatchType};
use crate::p4::v1::field_match::{self, FieldMatchType};
use crate::schema::match_type;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Last words of names that 32-bit addresses have: `hdr.ipv4.dstAddr`, `next_ip`, `hdr.arp.spa`.
const ADDRESSES: &[&str] = &[
    "addr", "address", "daddr", "dip", "dst", "gateway", "ip", "ip4", "ipv4", "saddr", "sip", "spa", "src",
    "tpa",
];
/// Parts of names that 48-bit numbers have.
const NUMBERS: &[&str] = &["bytes", "count", "packets", "slot", "stamp", "threshold", "time"];

/// Display format of a field's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `02:00:00:00:00:01`
    Mac,
    /// `10.0.0.1`
    Ipv4,
    /// `fe80::1`
    Ipv6,
    /// `17`
    Decimal,
    /// `0x88b5`
    Hex,
    /// `front-panel-1`: the field is a string; `"a\\x20b"` where plain text could mean something else.
    Text,
}

/// What a program says of a value, as far as its format depends on it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Description<'a> {
    /// Name of the field, parameter or cell.
    pub name: &'a str,
    /// Its width; 0 is a string.
    pub bitwidth: i32,
    /// Its annotations, as text.
    pub annotations: &'a [String],
    /// Name of its type, if the program made that with `type`.
    pub type_name: Option<&'a P4NamedType>,
    /// Whether it is matched by prefix.
    pub is_prefix: bool,
}

impl<'a> From<&'a MatchField> for Description<'a> {
    fn from(field: &'a MatchField) -> Description<'a> {
        Description {
            name: &field.name,
            bitwidth: field.bitwidth,
            annotations: &field.annotations,
            type_name: field.type_name.as_ref(),
            is_prefix: match_type(field) == MatchType::Lpm,
        }
    }
}

impl<'a> From<&'a Param> for Description<'a> {
    fn from(param: &'a Param) -> Description<'a> {
        Description {
            name: &param.name,
            bitwidth: param.bitwidth,
            annotations: &param.annotations,
            type_name: param.type_name.as_ref(),
            is_prefix: false,
        }
    }
}

impl<'a> From<&'a Metadata> for Description<'a> {
    fn from(field: &'a Metadata) -> Description<'a> {
        Description {
            name: &field.name,
            bitwidth: field.bitwidth,
            annotations: &field.annotations,
            type_name: field.type_name.as_ref(),
            is_prefix: false,
        }
    }
}

impl Format {
    /// The format of a value. The first of these that applies:
    ///
    /// 1. a string is text;
    /// 2. `@format` says it;
    /// 3. the name of its type, made by `type`, says it: `mac` or `ethernet`, `ipv4`, `ipv6`. Any other such type is a number;
    /// 4. 48 bits are a MAC address, unless the name has a part of `NUMBERS`;
    /// 5. 32 bits are an IPv4 address if they are matched by prefix, or the last word of the name is in `ADDRESSES`;
    /// 6. 128 bits are an IPv6 address;
    /// 7. 16 bits with `type` in the name are hexadecimal;
    /// 8. up to 64 bits are decimal, more are hexadecimal.
    pub fn of<'a>(described: impl Into<Description<'a>>) -> Format {
        let Description { name, bitwidth, annotations, type_name, is_prefix } = described.into();
        if bitwidth <= 0 {
            return Format::Text;
        }
        let said = annotations.iter().find_map(|annotation| {
            let format = annotation.trim().strip_prefix("@format(")?.trim_end_matches(')').trim();
            Some(match format {
                "MAC_ADDRESS" => Format::Mac,
                "IPV4_ADDRESS" => Format::Ipv4,
                "IPV6_ADDRESS" => Format::Ipv6,
                "HEX_STR" | "STRING" => Format::Hex,
                _ => return None,
            })
        });
        if let Some(format) = said {
            return format;
        }
        let number = if bitwidth <= 64 { Format::Decimal } else { Format::Hex };
        if let Some(named) = type_name {
            let named = named.name.to_lowercase();
            let has = |part: &str| named.contains(part);
            return match bitwidth {
                48 if has("mac") || has("ethernet") => Format::Mac,
                32 if has("ipv4") || has("ip4") => Format::Ipv4,
                128 if has("ipv6") || has("ip6") => Format::Ipv6,
                _ => number,
            };
        }
        let last = name.rsplit('.').next().unwrap_or_default();
        let lower = last.to_lowercase();
        match bitwidth {
            48 if !NUMBERS.iter().any(|part| lower.contains(part)) => Format::Mac,
            32 if is_prefix || names_address(last) => Format::Ipv4,
            128 => Format::Ipv6,
            16 if lower.contains("type") => Format::Hex,
            _ => number,
        }
    }

    /// A byte string as text.
    pub fn show(self, value: &[u8]) -> String {
        let number = || bytes::to_u128(value);
        let hex = || format!("0x{}", bytes::hex(&bytes::canonical(value)));
        match (self, number()) {
            (Format::Text, _) => show_text(value),
            (Format::Mac, Some(number)) if number < 1 << 48 => {
                let octets: Vec<String> =
                    number.to_be_bytes()[10..].iter().map(|octet| format!("{octet:02x}")).collect();
                octets.join(":")
            }
            (Format::Ipv4, Some(number)) if number < 1 << 32 => Ipv4Addr::from(number as u32).to_string(),
            (Format::Ipv6, Some(number)) => Ipv6Addr::from(number).to_string(),
            (Format::Decimal, _) => bytes::number(value),
            _ => hex(),
        }
    }
}

/// A string as text: as it is if that is a word, otherwise in quotes, with `\xNN` for bytes that are not shown.
fn show_text(value: &[u8]) -> String {
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '"' | '\\' | '#');
    match std::str::from_utf8(value) {
        Ok(text) if !text.is_empty() && text != "*" && text.chars().all(is_plain) => return text.to_owned(),
        _ => {}
    }
    let byte = |byte: &u8| match byte {
        b'"' | b'\\' | b'#' => format!("\\x{byte:02x}"),
        byte if byte.is_ascii_graphic() => char::from(*byte).to_string(),
        byte => format!("\\x{byte:02x}"),
    };
    format!("\"{}\"", value.iter().map(byte).collect::<String>())
}

/// The string that [`show_text`] shows like this.
fn parse_text(text: &str) -> Result<Vec<u8>, String> {
    let quoted = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let Some(quoted) = quoted else { return Ok(text.as_bytes().to_vec()) };
    let mut parts = quoted.split("\\x");
    let mut value = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let byte = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let byte = byte.ok_or_else(|| format!("`{text}`: two hexadecimal digits follow \\x, as in \\x20"))?;
        value.push(byte);
        value.extend(&part.as_bytes()[2..]);
    }
    Ok(value)
}

/// Whether the last word of a name, such as `srcAddr`, `next_ip` or `addr2`, is one of `ADDRESSES`.
fn names_address(name: &str) -> bool {
    let name = name.trim_end_matches(|c: char| !c.is_ascii_alphabetic() && c != '4');
    let starts = |(at, c): (usize, char)| match c {
        '_' => Some(at + 1),
        _ if c.is_ascii_uppercase() && name[..at].ends_with(|c: char| c.is_ascii_lowercase()) => Some(at),
        _ => None,
    };
    let start = name.char_indices().filter_map(starts).next_back().unwrap_or(0);
    ADDRESSES.contains(&name[start..].to_lowercase().as_str())
}

/// Parses a value of `bitwidth` bits: decimal, 0x, 0o, 0b, MAC or IP address, true, false. Of 0 bits, it is a string: the text
/// itself, or `"…"` with `\xNN` for any byte.
pub fn parse(text: &str, bitwidth: i32) -> Result<Vec<u8>, String> {
    let text = text.trim();
    let width = match u32::try_from(bitwidth) {
        Ok(0) | Err(_) => return parse_text(text),
        Ok(width) => width,
    };
    let value = number(text).ok_or_else(|| {
        format!("`{text}` is not a value: write 17, 0x11, 02:00:00:00:00:01, 10.0.0.1 or fe80::1")
    })?;
    bytes::check(&value, width).map_err(|error| match error {
        BytesError::TooWide { needed, width, .. } => {
            format!("`{text}` needs {needed} bits, but the field has {width}")
        }
        BytesError::Empty => format!("`{text}`: {error}"),
    })
}

fn number(text: &str) -> Option<Vec<u8>> {
    let digits: String = text.chars().filter(|c| *c != '_').collect();
    let lower = digits.to_lowercase();
    if let Some(hex) = lower.strip_prefix("0x") {
        return hex_bytes(hex);
    }
    for (prefix, radix) in [("0b", 2), ("0o", 8)] {
        // A MAC address may begin like this as well.
        if let Some(rest) = lower.strip_prefix(prefix)
            && !rest.starts_with([':', '-'])
        {
            return u128::from_str_radix(rest, radix).ok().map(bytes::from_u128);
        }
    }
    match lower.as_str() {
        "true" => return Some(vec![1]),
        "false" => return Some(vec![0]),
        _ => {}
    }
    if let Some(mac) = mac(&lower) {
        return Some(mac);
    }
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => return Some(address.octets().to_vec()),
        Ok(IpAddr::V6(address)) => return Some(address.octets().to_vec()),
        Err(_) => {}
    }
    let decimal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    decimal.then(|| digits.parse::<u128>().ok().map(bytes::from_u128)).flatten()
}

fn hex_bytes(digits: &str) -> Option<Vec<u8>> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let even = if digits.len().is_multiple_of(2) { digits.to_owned() } else { format!("0{digits}") };
    (0..even.len()).step_by(2).map(|at| u8::from_str_radix(&even[at..at + 2], 16).ok()).collect()
}

fn mac(text: &str) -> Option<Vec<u8>> {
    let separator = if text.contains('-') { '-' } else { ':' };
    let octets: Vec<&str> = text.split(separator).collect();
    let right = octets.len() == 6 && octets.iter().all(|octet| (1..=2).contains(&octet.len()));
    right.then(|| octets.iter().map(|octet| u8::from_str_radix(octet, 16).ok()).collect()).flatten()
}

/// Parses a key for the match kind of its field: `V`, `V/PREFIX`, `V&MASK`, `LOW..HIGH`, or `*` for "don't
/// care", which is `None`.
pub fn parse_match(text: &str, field: &MatchField) -> Result<Option<FieldMatchType>, String> {
    let width = field.bitwidth;
    let kind = match_type(field);
    if text == "*" {
        return match kind {
            MatchType::Exact => Err("an exact key needs a value, not `*`".into()),
            _ => Ok(None),
        };
    }
    let all_ones = || ones(width, width);
    Ok(match kind {
        MatchType::Exact => Some(FieldMatchType::Exact(field_match::Exact { value: parse(text, width)? })),
        MatchType::Optional => {
            Some(FieldMatchType::Optional(field_match::Optional { value: parse(text, width)? }))
        }
        MatchType::Lpm => {
            let (value, length) = prefix(text, width)?;
            let value = bytes::and(&value, &ones(width, length));
            (length > 0).then_some(FieldMatchType::Lpm(field_match::Lpm { value, prefix_len: length }))
        }
        MatchType::Ternary => {
            let (value, mask) = match text.split_once('&') {
                Some((value, mask)) => (parse(value, width)?, parse(mask.trim_start_matches('&'), width)?),
                None => {
                    let (value, length) = prefix(text, width)?;
                    (value, if length == width { all_ones() } else { ones(width, length) })
                }
            };
            let value = bytes::and(&value, &mask);
            let mask = bytes::canonical(&mask);
            (mask != [0]).then_some(FieldMatchType::Ternary(field_match::Ternary { value, mask }))
        }
        MatchType::Range => {
            let (low, high) = text.split_once("..").unwrap_or((text, text));
            let (low, high) = (parse(low, width)?, parse(high, width)?);
            if (low.len(), &low) > (high.len(), &high) {
                return Err(format!("`{text}` ends before it begins"));
            }
            let all = low == [0] && high == bytes::canonical(&all_ones());
            (!all).then_some(FieldMatchType::Range(field_match::Range { low, high }))
        }
        MatchType::Unspecified => return Err("has a match kind that the standard does not define".into()),
    })
}

/// `V/PREFIX`, or `V` alone for the whole width.
fn prefix(text: &str, width: i32) -> Result<(Vec<u8>, i32), String> {
    let Some((value, length)) = text.split_once('/') else { return Ok((parse(text, width)?, width)) };
    let length = length.parse::<i32>().ok().filter(|length| (0..=width).contains(length));
    let length = length.ok_or_else(|| format!("`{text}`: the prefix length is not one of 0 to {width}"))?;
    Ok((parse(value, width)?, length))
}

/// `length` ones at the high end of `width` bits.
fn ones(width: i32, length: i32) -> Vec<u8> {
    bytes::leading_ones(width.max(0) as usize, length.max(0) as usize)
}

/// A key in the syntax of [`parse_match`].
pub fn show_match(key: Option<&FieldMatchType>, field: &MatchField) -> String {
    show_key(key, Format::of(field), field.bitwidth)
}

/// A key of `bitwidth` bits in the syntax of [`parse_match`].
pub fn show_key(key: Option<&FieldMatchType>, format: Format, bitwidth: i32) -> String {
    match key {
        None => "*".into(),
        Some(FieldMatchType::Exact(exact)) => format.show(&exact.value),
        Some(FieldMatchType::Optional(optional)) => format.show(&optional.value),
        Some(FieldMatchType::Lpm(lpm)) => format!("{}/{}", format.show(&lpm.value), lpm.prefix_len),
        Some(FieldMatchType::Ternary(ternary)) => {
            let mask = bytes::canonical(&ternary.mask);
            if mask == bytes::canonical(&ones(bitwidth, bitwidth)) {
                return format.show(&ternary.value);
            }
            let mask_format = if format == Format::Decimal { Format::Hex } else { format };
            format!("{}&{}", mask_format.show(&ternary.value), mask_format.show(&mask))
        }
        Some(FieldMatchType::Range(range)) => {
            format!("{}..{}", format.show(&range.low), format.show(&range.high))
        }
        Some(FieldMatchType::Other(other)) => format!("({})", other.type_url),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::p4::config::v1::match_field;
    use proptest::prelude::*;

    fn field(name: &str, bitwidth: i32, kind: MatchType) -> MatchField {
        let r#match = Some(match_field::Match::MatchType(kind as i32));
        MatchField { id: 1, name: name.into(), bitwidth, r#match, ..Default::default() }
    }

    #[test]
    fn values_are_read_in_every_way_people_write_them() {
        for (text, width, value) in [
            ("17", 9, vec![17]),
            ("0x11", 9, vec![17]),
            ("0b1_0001", 9, vec![17]),
            ("0o21", 9, vec![17]),
            ("true", 1, vec![1]),
            ("02:00:00:00:00:0a", 48, vec![2, 0, 0, 0, 0, 10]),
            ("02-00-00-00-00-0A", 48, vec![2, 0, 0, 0, 0, 10]),
            ("0b:00:00:00:00:01", 48, vec![11, 0, 0, 0, 0, 1]),
            ("10.0.0.1", 32, vec![10, 0, 0, 1]),
            ("::1", 128, vec![1]),
            ("0xabc", 128, vec![0xa, 0xbc]),
        ] {
            assert_eq!(parse(text, width), Ok(value), "{text}");
        }
        for wrong in ["", "x", "0x", "1.2.3", "-1", "02:00:00:00:00", "1e3"] {
            assert!(parse(wrong, 48).unwrap_err().contains("not a value"), "{wrong}");
        }
        assert_eq!(parse("front-1", 0), Ok(b"front-1".to_vec()));
        assert_eq!(parse(r#""a\x20b""#, 0), Ok(b"a b".to_vec()));
        assert!(parse(r#""a\xg""#, 0).unwrap_err().contains("two hexadecimal digits"));
        assert_eq!(parse("512", 9).unwrap_err(), "`512` needs 10 bits, but the field has 9");
    }

    #[test]
    fn keys_are_read_and_shown_as_they_are_matched() {
        for (name, width, kind, text, shown) in [
            ("hdr.dstAddr", 48, MatchType::Exact, "2:0:0:0:0:1", "02:00:00:00:00:01"),
            ("hdr.ip.dst", 32, MatchType::Lpm, "10.1.2.3/12", "10.0.0.0/12"),
            ("hdr.ip.dst", 32, MatchType::Lpm, "10.1.2.3", "10.1.2.3/32"),
            ("port", 9, MatchType::Ternary, "5", "5"),
            ("port", 9, MatchType::Ternary, "0x1ff&0xf", "0x0f&0x0f"),
            ("hdr.ip.src", 32, MatchType::Ternary, "10.1.2.3/8", "10.0.0.0&255.0.0.0"),
            ("sport", 16, MatchType::Range, "10..20", "10..20"),
            ("sport", 16, MatchType::Range, "7", "7..7"),
            ("sport", 16, MatchType::Range, "0..65535", "*"),
            ("vid", 12, MatchType::Optional, "*", "*"),
            ("ether_type", 16, MatchType::Optional, "34997", "0x88b5"),
        ] {
            let field = field(name, width, kind);
            let key = parse_match(text, &field).unwrap();
            assert_eq!(show_match(key.as_ref(), &field), shown, "{text}");
        }
        let fault = |text, kind| parse_match(text, &field("f", 9, kind)).unwrap_err();
        assert!(fault("*", MatchType::Exact).contains("needs a value"));
        assert!(fault("1/10", MatchType::Lpm).contains("0 to 9"));
        assert!(fault("9..8", MatchType::Range).contains("ends before"));
    }

    fn format(name: &str, bitwidth: i32, annotation: &str, type_name: &str) -> Format {
        let annotations: Vec<String> =
            [annotation.to_owned()].into_iter().filter(|a| !a.is_empty()).collect();
        let named = P4NamedType { name: type_name.into() };
        let type_name = (!type_name.is_empty()).then_some(&named);
        Format::of(Description { name, bitwidth, annotations: &annotations, type_name, is_prefix: false })
    }

    #[test]
    fn the_program_says_what_a_value_is() {
        for (name, bitwidth, annotation, type_name, expected) in [
            ("vrf", 0, "", "vrf_id_t", Format::Text),
            ("x", 32, "@format(IPV4_ADDRESS)", "", Format::Ipv4),
            ("hdr.ethernet.src", 48, "@format(HEX_STR)", "mac_addr_t", Format::Hex),
            ("x", 48, "", "mac_addr_t", Format::Mac),
            ("hdr.ipv4.dst", 32, "", "tunnel_id_t", Format::Decimal),
            ("x", 32, "", "ipv4_addr_t", Format::Ipv4),
            ("x", 32, "", "ip4Addr_t", Format::Ipv4),
            ("x", 128, "", "ipv6_addr_t", Format::Ipv6),
            ("hdr.ethernet.dstAddr", 48, "", "", Format::Mac),
            ("sm.ingress_global_timestamp", 48, "", "", Format::Decimal),
            ("hdr.ipv4.dstAddr", 32, "", "", Format::Ipv4),
            ("hdr.ipv4.src_addr", 32, "", "", Format::Ipv4),
            ("hdr.arp.spa", 32, "", "", Format::Ipv4),
            ("next_ip", 32, "", "", Format::Ipv4),
            ("nhop_ipv4", 32, "", "", Format::Ipv4),
            ("addr2", 32, "", "", Format::Ipv4),
            ("dst", 32, "", "", Format::Ipv4),
            ("meta.pipe_id", 32, "", "", Format::Decimal),
            ("skip_count", 32, "", "", Format::Decimal),
            ("srcPort", 32, "", "", Format::Decimal),
            ("hdr.ipv6.dst", 128, "", "", Format::Ipv6),
            ("etherType", 16, "", "", Format::Hex),
            ("port", 9, "", "", Format::Decimal),
            ("digest", 160, "", "", Format::Hex),
        ] {
            assert_eq!(
                format(name, bitwidth, annotation, type_name),
                expected,
                "{name} {annotation} {type_name}"
            );
        }
        assert_eq!(Format::of(&field("meta.next", 32, MatchType::Lpm)), Format::Ipv4, "prefixes");
        assert_eq!(Format::of(&field("meta.next", 32, MatchType::Exact)), Format::Decimal);
    }

    /// Any number of `width` bits.
    fn cut(value: u128, width: i32) -> Vec<u8> {
        bytes::from_u128(if width < 128 { value % (1 << width) } else { value })
    }

    const NAMES: &str = "(dst|etherType|port|vid|time|hdr.ipv4.srcAddr)";
    const ANNOTATIONS: &str =
        "(|@format\\((MAC|IPV4|IPV6)_ADDRESS\\)|@format\\(HEX_STR\\)|@format\\(STRING\\))";

    proptest! {
        #[test]
        fn strings_that_are_shown_are_read_back_even_from_a_line_of_a_file(
            value in prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..12),
                "[ -~\t\u{a0}é]{0,12}".prop_map(String::into_bytes),
                Just(b"*".to_vec()), Just(b"\"\"".to_vec()), Just(b"\\x20".to_vec()), Just(b"a/b".to_vec()),
            ],
            is_exact: bool,
        ) {
            let shown = Format::Text.show(&value);
            prop_assert_eq!(parse(&shown, 0), Ok(value.clone()), "{}", shown);
            let word: Vec<&str> = shown.split_whitespace().collect();
            prop_assert_eq!(word, [shown.as_str()], "one word");
            prop_assert!(!shown.contains('#'), "no comment: {}", shown);
            let field = field("name", 0, if is_exact { MatchType::Exact } else { MatchType::Optional });
            let key = match is_exact {
                true => FieldMatchType::Exact(field_match::Exact { value }),
                false => FieldMatchType::Optional(field_match::Optional { value }),
            };
            let shown = show_match(Some(&key), &field);
            prop_assert_eq!(parse_match(&shown, &field), Ok(Some(key)), "{}", shown);
        }

        #[test]
        fn what_is_shown_is_read_back(
            value: u128, width in prop_oneof![1i32..=128, Just(32), Just(48), Just(128)], name in NAMES,
            annotation in ANNOTATIONS, type_name in "(|mac_t|ipv4_t|ipv6_t|id_t)",
        ) {
            let value = cut(value, width);
            let shown = format(&name, width, &annotation, &type_name).show(&value);
            prop_assert_eq!(parse(&shown, width), Ok(value), "{}", shown);
        }

        #[test]
        fn keys_that_are_shown_are_read_back(
            one: u128, other: u128, length in 0i32..=128, width in prop_oneof![1i32..=128, Just(32), Just(48)], name in NAMES,
            annotation in ANNOTATIONS, kind in 0..5,
        ) {
            let kinds = [MatchType::Exact, MatchType::Lpm, MatchType::Ternary, MatchType::Range, MatchType::Optional];
            let field = MatchField {
                annotations: vec![annotation], ..field(&name, width, kinds[kind as usize])
            };
            let (one, other) = (cut(one, width), cut(other, width));
            let ordered = |a: &Vec<u8>, b: &Vec<u8>| (a.len(), a) <= (b.len(), b);
            let (low, high) = if ordered(&one, &other) { (&one, &other) } else { (&other, &one) };
            let hex = |value: &[u8]| format!("0x{}", bytes::hex(value));
            // The canonical form of a key, from text in hexadecimal.
            let written = match kinds[kind as usize] {
                MatchType::Lpm => format!("{}/{}", hex(&one), length.min(width)),
                MatchType::Ternary => format!("{}&{}", hex(&one), hex(&other)),
                MatchType::Range => format!("{}..{}", hex(low), hex(high)),
                _ => hex(&one),
            };
            let key = parse_match(&written, &field).unwrap();
            let shown = show_match(key.as_ref(), &field);
            prop_assert_eq!(parse_match(&shown, &field), Ok(key), "{}", shown);
        }

        #[test]
        fn no_text_panics(text in ".{0,24}", width in 0i32..=130) {
            let _ = parse(&text, width);
            for kind in [MatchType::Exact, MatchType::Lpm, MatchType::Ternary, MatchType::Range] {
                let _ = parse_match(&text, &field("x", width, kind));
            }
        }
    }
}
