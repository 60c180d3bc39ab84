//! Values in human-readable form: numbers, MAC and IP addresses, prefixes, masks, ranges. Byte strings are
//! handled by [`p4rack_p4rt::bytes`].

use p4rack_p4rt::bytes;
use p4rack_p4rt::p4::config::v1::{MatchField, match_field::MatchType};
use p4rack_p4rt::p4::v1::field_match::{self, FieldMatchType};
use p4rack_p4rt::schema::match_type;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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
    /// Text: the field is a string.
    Text,
}

impl Format {
    /// The format from the annotation `@format`, else from width and name.
    pub fn of(name: &str, bitwidth: i32, annotations: &[String]) -> Format {
        for annotation in annotations {
            match annotation.trim_start_matches("@format(").trim_end_matches(')') {
                "MAC_ADDRESS" => return Format::Mac,
                "IPV4_ADDRESS" => return Format::Ipv4,
                "IPV6_ADDRESS" => return Format::Ipv6,
                "HEX_STR" => return Format::Hex,
                "STRING" => return Format::Text,
                _ => {}
            }
        }
        let last = name.rsplit('.').next().unwrap_or_default().to_lowercase();
        let address = ["addr", "ip", "src", "dst"].iter().any(|part| last.contains(part));
        match bitwidth {
            0 => Format::Text,
            48 if !last.contains("time") && !last.contains("slot") && !last.contains("threshold") => {
                Format::Mac
            }
            32 if address => Format::Ipv4,
            128 if address => Format::Ipv6,
            16 if last.contains("type") => Format::Hex,
            width if width <= 64 => Format::Decimal,
            _ => Format::Hex,
        }
    }

    /// A byte string as text.
    pub fn show(self, value: &[u8]) -> String {
        let number = || bytes::to_u128(value);
        let hex = || format!("0x{}", bytes::hex(&bytes::canonical(value)));
        match (self, number()) {
            (Format::Text, _) => String::from_utf8_lossy(value).into_owned(),
            (Format::Mac, Some(number)) if number < 1 << 48 => {
                let octets: Vec<String> =
                    number.to_be_bytes()[10..].iter().map(|octet| format!("{octet:02x}")).collect();
                octets.join(":")
            }
            (Format::Ipv4, Some(number)) if number < 1 << 32 => Ipv4Addr::from(number as u32).to_string(),
            (Format::Ipv6, Some(number)) => Ipv6Addr::from(number).to_string(),
            (Format::Decimal, Some(number)) => number.to_string(),
            _ => hex(),
        }
    }
}

/// Parses a value of `bitwidth` bits (0: a string): decimal, 0x, 0o, 0b, MAC or IP address, true, false.
pub fn parse(text: &str, bitwidth: i32) -> Result<Vec<u8>, String> {
    let text = text.trim();
    let width = match u32::try_from(bitwidth) {
        Ok(0) | Err(_) => return Ok(text.as_bytes().to_vec()),
        Ok(width) => width,
    };
    let value = number(text).ok_or_else(|| {
        format!("`{text}` is not a value: write 17, 0x11, 02:00:00:00:00:01, 10.0.0.1 or fe80::1")
    })?;
    bytes::check(&value, width).map_err(|error| format!("`{text}`: {error}"))
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
            let value = and(&value, &ones(width, length));
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
            let value = and(&value, &mask);
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
    let (width, length) = (width.max(0) as usize, length.max(0) as usize);
    let bytes = width.div_ceil(8);
    let lead = bytes * 8 - width;
    let mut mask = vec![0; bytes];
    for bit in lead..lead + length.min(width) {
        mask[bit / 8] |= 0x80 >> (bit % 8);
    }
    mask
}

/// Bitwise and of two numbers, aligned at their low ends.
fn and(left: &[u8], right: &[u8]) -> Vec<u8> {
    let length = left.len().min(right.len());
    let (left, right) = (&left[left.len() - length..], &right[right.len() - length..]);
    bytes::canonical(&left.iter().zip(right).map(|(a, b)| a & b).collect::<Vec<u8>>())
}

/// A key in the syntax of [`parse_match`].
pub fn show_match(key: Option<&FieldMatchType>, field: &MatchField) -> String {
    let format = Format::of(&field.name, field.bitwidth, &field.annotations);
    match key {
        None => "*".into(),
        Some(FieldMatchType::Exact(exact)) => format.show(&exact.value),
        Some(FieldMatchType::Optional(optional)) => format.show(&optional.value),
        Some(FieldMatchType::Lpm(lpm)) => format!("{}/{}", format.show(&lpm.value), lpm.prefix_len),
        Some(FieldMatchType::Ternary(ternary)) => {
            let mask = bytes::canonical(&ternary.mask);
            if mask == bytes::canonical(&ones(field.bitwidth, field.bitwidth)) {
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
    use p4rack_p4rt::p4::config::v1::match_field;
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
        assert_eq!(parse("512", 9).unwrap_err(), "`512`: 0x0200 needs 10 bits, but the field has 9");
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

    proptest! {
        #[test]
        fn what_is_shown_is_read_back(value: u128, width in 1i32..=128, name in "(dst|type|port|vid)") {
            let value = bytes::from_u128(if width < 128 { value % (1 << width) } else { value });
            let shown = Format::of(&name, width, &[]).show(&value);
            prop_assert_eq!(parse(&shown, width), Ok(value));
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
