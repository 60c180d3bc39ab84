//! Numbers of descriptions that are as large as may be: refused with a reason or accepted, and never computed with beyond
//! what a word holds.

// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_codegen::Rack;
use std::panic::catch_unwind;

/// Where numbers are in a line, behind its `=`.
fn numbers(line: &str) -> Vec<(usize, usize)> {
    let Some(start) = line.find('=') else { return Vec::new() };
    let bytes = line.as_bytes();
    let is_part = |at: usize| bytes[at].is_ascii_digit();
    let mut found = Vec::new();
    let mut at = start;
    while at < bytes.len() {
        let end = (at..bytes.len()).find(|at| !is_part(*at)).unwrap_or(bytes.len());
        // Not those within names and addresses.
        let is_free = |byte: Option<&u8>| {
            byte.is_none_or(|byte| !byte.is_ascii_alphanumeric() && !b".:-_".contains(byte))
        };
        if end > at && is_free(bytes.get(at - 1)) && is_free(bytes.get(end)) {
            found.push((at, end));
        }
        at = end.max(at + 1);
    }
    found
}

#[test]
fn numbers_are_found_where_they_stand() {
    assert_eq!(numbers("buffer = \"256 KiB\""), [(10, 13)]);
    assert!(numbers("ip = \"10.0.0.1/24\"").len() == 1 && numbers("[host]").is_empty());
}

#[test]
fn the_largest_numbers_are_refused_and_overflow_nothing() {
    let examples = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples")).unwrap();
    let paths = examples.map(|entry| entry.unwrap().path());
    let mut tried = 0;
    for path in paths.filter(|path| path.extension().is_some_and(|ending| ending == "toml")) {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut before = 0;
        for line in text.lines() {
            for (from, to) in numbers(line) {
                for huge in ["18446744073709551615", "9223372036854775807", "4294967295"] {
                    let changed = format!("{}{huge}{}", &text[..before + from], &text[before + to..]);
                    let read = catch_unwind(|| Rack::parse(&changed, "rack.toml").map(|_| ()));
                    assert!(read.is_ok(), "{}: {huge} in `{line}` overflows", path.display());
                    tried += 1;
                }
            }
            before += line.len() + 1;
        }
    }
    assert!(tried > 100, "{tried}");
}

#[test]
fn a_buffer_beyond_all_limits_is_refused_with_the_limit() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/pl2-incast.toml")).unwrap();
    let with = |buffer: &str| text.replace("\"256 KiB\"", &format!("\"{buffer}\""));
    let refused = Rack::parse(&with("18446744073709551615 B"), "rack.toml").unwrap_err().to_string();
    assert!(refused.contains("switch.buffer") && refused.contains("at most"), "{refused}");
    let refused = Rack::parse(&with("18446744073709551616 B"), "rack.toml").unwrap_err().to_string();
    assert!(refused.contains("more than 18446744073709551615 bytes"), "{refused}");
}
