//! Rates and sizes in human-readable form: "100 Mb/s", "256 KiB".

use p4rack_wire::Nanos;

/// Parses a rate such as `100 Mb/s`, `25Gb/s`, `2.5 Gbit/s` or `10 Gbps` to bits per second. Errors say what
/// is wrong; zero is an error.
pub fn parse_rate(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let scale = match unit.strip_suffix("b/s").or(unit.strip_suffix("bit/s")).or(unit.strip_suffix("bps")) {
        Some("") => 1,
        Some("k") => 1_000,
        Some("M") => 1_000_000,
        Some("G") => 1_000_000_000,
        Some("T") => 1_000_000_000_000,
        _ => return Err(format!("`{text}` is not a rate: the unit is missing or unknown")),
    };
    match scaled(number, scale) {
        Some(0) => Err(format!("`{text}` is no rate: a port that sends nothing is no port")),
        Some(rate_bps) => Ok(rate_bps),
        None => {
            Err(format!("`{text}` is not a rate: `{number}` is no number, or more than {} b/s", u64::MAX))
        }
    }
}

/// Parses a time such as `5 ms`, `20us` or `1.5 s`.
pub fn parse_time(text: &str) -> Result<Nanos, String> {
    let (number, unit) = split(text);
    let scale = match unit {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err(format!("`{text}` is not a time: the unit is missing or unknown")),
    };
    scaled(number, scale)
        .map(Nanos)
        .ok_or_else(|| format!("`{text}` is not a time: `{number}` is no number of whole nanoseconds"))
}

/// Parses a size such as `256 KiB`, `2 MiB` or `64 kB` to bytes.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let scale = match unit {
        "B" => 1,
        "kB" => 1_000,
        "MB" => 1_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(format!("`{text}` is not a size: the unit is missing or unknown")),
    };
    scaled(number, scale).ok_or_else(|| {
        format!("`{text}` is not a size: `{number}` is no number, or more than {} bytes", u64::MAX)
    })
}

/// Parses a number: decimal, or with a prefix `0x`, `0o` or `0b`; `_` may separate digits. Errors say what is wrong.
pub fn parse_number(text: &str) -> Result<u64, String> {
    let lower = text.trim().to_lowercase();
    let bases = [("0x", 16), ("0o", 8), ("0b", 2)];
    let based = bases.iter().find_map(|(prefix, base)| Some((lower.strip_prefix(prefix)?, *base)));
    let (digits, base) = based.unwrap_or((&lower, 10));
    let digits: String = digits.chars().filter(|digit| *digit != '_').collect();
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(base)) {
        return Err(format!("`{text}` is no number: write it in decimal, or as 0x…"));
    }
    u64::from_str_radix(&digits, base).map_err(|_| format!("`{text}` is more than {}", u64::MAX))
}

/// Parses a size with a unit, as [`parse_size`] does, or a number of bytes.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    parse_number(text).or_else(|_| parse_size(text))
}

/// A rate in the largest unit that keeps it at 1 or more: `100 Mb/s`.
pub fn show_rate(rate_bps: u64) -> String {
    let (scale, unit) = match rate_bps {
        1_000_000_000.. => (1e9, "Gb/s"),
        1_000_000.. => (1e6, "Mb/s"),
        1_000.. => (1e3, "kb/s"),
        _ => (1.0, "b/s"),
    };
    let shown = format!("{:.2}", rate_bps as f64 / scale);
    format!("{} {unit}", shown.trim_end_matches('0').trim_end_matches('.'))
}

/// A size in KiB or MiB if that is exact, else in bytes.
pub fn show_size(bytes: u64) -> String {
    match bytes {
        0 => "0 B".to_owned(),
        b if b % (1 << 20) == 0 => format!("{} MiB", b >> 20),
        b if b % (1 << 10) == 0 => format!("{} KiB", b >> 10),
        b => format!("{b} B"),
    }
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// `number` times `scale`, exactly: decimals are not rounded through a float.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || (number.contains('.') && fraction.is_empty()) || fraction.len() > 9 {
        return None;
    }
    let mut value = whole.parse::<u64>().ok()?.checked_mul(scale)?;
    let mut unit = scale;
    for digit in fraction.bytes() {
        if !unit.is_multiple_of(10) && digit != b'0' {
            return None;
        }
        unit /= 10;
        value = value.checked_add(u64::from(digit.checked_sub(b'0')?) * unit)?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_in_the_spellings_people_use() {
        for (text, rate_bps) in [
            ("100 Mb/s", 100_000_000),
            ("25 Gb/s", 25_000_000_000),
            ("1Gb/s", 1_000_000_000),
            ("2.5 Gbit/s", 2_500_000_000),
            ("10 Gbps", 10_000_000_000),
            ("64 kb/s", 64_000),
            ("9600 b/s", 9600),
            ("1.6 Tb/s", 1_600_000_000_000),
        ] {
            assert_eq!(parse_rate(text), Ok(rate_bps), "{text}");
        }
        for text in [
            "",
            "100",
            "100 MB/s",
            "Mb/s",
            "-1 Gb/s",
            "0 Gb/s",
            "1. Gb/s",
            "1.2.3 Gb/s",
            "99999999999999 Tb/s",
        ] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_in_both_families_of_units() {
        assert_eq!(parse_size("256 KiB"), Ok(262_144));
        assert_eq!(parse_size("64kB"), Ok(64_000));
        assert_eq!(parse_size("2 MiB"), Ok(2_097_152));
        assert!(parse_size("12").is_err());
        assert!(parse_size("12 parsecs").is_err());
    }

    #[test]
    fn times_are_exact() {
        for (text, ns) in [("5 ms", 5_000_000), ("20us", 20_000), ("20 µs", 20_000), ("1.5 s", 1_500_000_000)]
        {
            assert_eq!(parse_time(text), Ok(Nanos(ns)), "{text}");
        }
        for text in ["", "5", "5 m", "-1 ms", "0.5 ns", "99999999999 s"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shown_as_read() {
        assert_eq!(show_rate(2_500_000_000), "2.5 Gb/s");
        assert_eq!(show_rate(100_000_000), "100 Mb/s");
        assert_eq!(show_size(262_144), "256 KiB");
        assert_eq!(show_size(1500), "1500 B");
    }
}
