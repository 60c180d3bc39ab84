//! Formats figures for tables, reports and sentences.

/// Bits per second; whole numbers without a fraction.
pub fn rate(bps: f64) -> String {
    let scaled = |unit: f64, name: &str| {
        let value = bps / unit;
        if value.fract() == 0.0 { format!("{value:.0} {name}") } else { format!("{value:.1} {name}") }
    };
    match bps {
        b if b >= 1e9 => scaled(1e9, "Gb/s"),
        b if b >= 1e6 => scaled(1e6, "Mb/s"),
        b if b >= 1e3 => scaled(1e3, "kb/s"),
        b => format!("{b:.0} b/s"),
    }
}

/// A number of bytes.
pub fn bytes(bytes: u64) -> String {
    let scaled = |unit: f64, name: &str| {
        let value = bytes as f64 / unit;
        if value.fract() == 0.0 { format!("{value:.0} {name}") } else { format!("{value:.1} {name}") }
    };
    match bytes {
        b if b >= 1 << 20 => scaled(1_048_576.0, "MiB"),
        b if b >= 1 << 10 => scaled(1_024.0, "KiB"),
        b => format!("{b} B"),
    }
}

/// Depth of a queue, in frames of `frame_bytes`.
pub fn depth(bytes: u64, frame_bytes: u64) -> String {
    let frames = bytes as f64 / frame_bytes.max(1) as f64;
    if frames.fract() == 0.0 { format!("{frames:.0} frames") } else { format!("{frames:.1} frames") }
}

/// A time in microseconds.
pub fn micros(us: f64) -> String {
    match us {
        u if u >= 1e6 => format!("{:.2} s", u / 1e6),
        u if u >= 1e3 => format!("{:.2} ms", u / 1e3),
        u if u >= 10.0 || u == 0.0 => format!("{u:.0} µs"),
        u if u >= 1.0 => format!("{u:.1} µs"),
        u => format!("{:.0} ns", u * 1e3),
    }
}

/// A number with separated thousands.
pub fn count(number: u64) -> String {
    separated(&number.to_string())
}

/// A number with this many significant digits, or with all digits of its integer part, thousands separated.
pub fn number(value: f64, significant: usize) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "–"
        } else if value > 0.0 {
            "∞"
        } else {
            "−∞"
        }
        .to_owned();
    }
    let magnitude = value.abs().max(1e-9).log10().floor() as i32;
    let decimals = (significant as i32 - 1 - magnitude).clamp(0, 9) as usize;
    let text = format!("{:.decimals$}", value.abs());
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let sign = if value < 0.0 && text != "0" { "-" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{}{point}{fraction}", separated(whole))
}

/// A bare number, whole or with decimals, with separated thousands; other text as it is.
pub fn thousands(text: &str) -> String {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    match !whole.is_empty() && is_number(whole) && is_number(fraction) {
        true => format!("{}{}", separated(whole), &text[whole.len()..]),
        false => text.to_owned(),
    }
}

/// Digits with a narrow space before each third from the end.
fn separated(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        assert_eq!(rate(97_310_000.0), "97.3 Mb/s");
        assert_eq!(rate(1e9), "1 Gb/s");
        assert_eq!(rate(0.0), "0 b/s");
        assert_eq!(bytes(1_024), "1 KiB");
        assert_eq!(bytes(262_144), "256 KiB");
        assert_eq!(bytes(1_500), "1.5 KiB");
        assert_eq!(bytes(7), "7 B");
        assert_eq!(depth(3_060, 1_530), "2 frames");
        assert_eq!(depth(3_061, 1_530), "2.0 frames");
        assert_eq!(micros(6_000_000.0), "6.00 s");
        assert_eq!(micros(2_500.0), "2.50 ms");
        assert_eq!(micros(17.4), "17 µs");
        assert_eq!(
            (micros(1.24), micros(0.345), micros(0.0)),
            ("1.2 µs".into(), "345 ns".into(), "0 µs".into())
        );
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
    }

    #[test]
    fn only_bare_numbers_are_separated() {
        for same in ["", "999", "12.5", "10.0.0.1234", "1234 ns", "-1234", "–", ".5", "1\u{202f}234"] {
            assert_eq!(thousands(same), same);
        }
        assert_eq!(thousands("1234"), "1\u{202f}234");
        assert_eq!(thousands("1234567.125"), "1\u{202f}234\u{202f}567.125");
    }

    #[test]
    fn numbers_have_significant_digits() {
        let shown =
            |significant| [0.0, 0.1234, 1.0, 96.77, 120.4, 999.96].map(|value| number(value, significant));
        assert_eq!(shown(3), ["0", "0.123", "1", "96.8", "120", "1\u{202f}000"]);
        assert_eq!(shown(4), ["0", "0.1234", "1", "96.77", "120.4", "1\u{202f}000"]);
        assert_eq!(number(1_234_567.8, 4), "1\u{202f}234\u{202f}568");
        assert_eq!((number(-0.5, 3), number(-1e-12, 3)), ("-0.5".to_owned(), "0".to_owned()));
        assert_eq!([f64::INFINITY, f64::NAN].map(|value| number(value, 3)), ["∞", "–"]);
    }
}
