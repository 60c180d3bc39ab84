//! Names of numbers that are times or rates end in their unit; `Nanos` and `Duration` carry it in their type.

/// Words that make a name that of a time or rate.
const QUANTITIES: &[&str] =
    &["wait", "delay", "timeout", "interval", "rate", "period", "duration", "latency", "deadline", "elapsed"];
/// Endings of such names.
const UNITS: &[&str] =
    &["ps", "ns", "us", "ms", "s", "secs", "minutes", "bps", "mbps", "gbps", "percent", "slots", "units"];
/// Types without a unit.
const NUMBERS: &[&str] =
    &["u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32", "f64"];

/// Declarations in Rust text, except tests, whose name lacks the unit: line and name.
pub fn without(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (n, line) in text.lines().enumerate() {
        if line.starts_with("#[cfg(test)]") {
            break;
        }
        let code = line.split("//").next().unwrap_or_default();
        for (at, _) in code.match_indices(": ") {
            let name =
                code[..at].rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            if is_number(&code[at + 2..]) && lacks_unit(name) {
                found.push((n + 1, name.to_owned()));
            }
        }
    }
    found
}

/// Whether a plain number type starts here, or an option of one.
fn is_number(text: &str) -> bool {
    let inner = text.strip_prefix("Option<").unwrap_or(text);
    let word = inner.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    // `u64::MAX` is a value.
    NUMBERS.contains(&word) && !inner[word.len()..].starts_with("::")
}

fn lacks_unit(name: &str) -> bool {
    let name = name.to_lowercase();
    let words: Vec<&str> = name.split('_').collect();
    words.iter().any(|word| QUANTITIES.contains(word))
        && !words.last().is_some_and(|last| UNITS.contains(last))
}

#[cfg(test)]
mod tests {
    use super::without;

    fn names(text: &str) -> Vec<String> {
        without(text).into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn numbers_without_a_unit_are_found() {
        assert_eq!(
            names("pub wait: u64,\n    rate_bps: u64,\n    grt_timeout: Option<u32>,"),
            ["wait", "grt_timeout"]
        );
        assert_eq!(names("const POLL_INTERVAL: u64 = 5;"), ["POLL_INTERVAL"]);
        assert_eq!(names("fn f(rate: f64, delay_ns: u64, at: u64) {}"), ["rate"]);
    }

    #[test]
    fn types_that_say_it_and_values_are_left_alone() {
        assert!(names("wait: Nanos, timeout: Duration, rate: Rate").is_empty());
        assert!(names("Config { wait: u64::MAX }  // wait: u64").is_empty());
        assert!(names("timeouts: u64, generated: u32, SEND_WAIT_UNITS: u32").is_empty());
    }
}
