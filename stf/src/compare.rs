//! Compares frames with expectations and shows the differences.

use crate::command::{Command, Pattern, Statement};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Bytes per line of a hex dump.
const LINE: usize = 16;

/// A deviation from the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Line of the statement.
    pub line: u32,
    /// The difference.
    pub what: String,
    /// Line of the packet that it is about; `None` if that is not known.
    pub packet: Option<u32>,
}

/// A frame that the switch sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The frame, without FCS.
    pub frame: Vec<u8>,
    /// Line of the packet that caused it; 0 if unknown.
    pub line: u32,
}

/// Differences between the frames that each port sent and those that a file expects.
pub fn differences(statements: &[Statement], sent: &BTreeMap<u16, Vec<Output>>) -> Vec<Failure> {
    let mut wanted: BTreeMap<u16, Vec<(u32, Option<&Pattern>)>> = BTreeMap::new();
    for statement in statements {
        if let Command::Expect { port, pattern } = &statement.command {
            wanted.entry(*port).or_default().push((statement.line, pattern.as_ref()));
        }
    }
    let is_packet = |statement: &&Statement| matches!(statement.command, Command::Packet { .. });
    let packets: Vec<u32> = statements.iter().filter(is_packet).map(|statement| statement.line).collect();
    let mut failures = Vec::new();
    for (port, wanted) in &wanted {
        let sent = sent.get(port).map_or(&[][..], Vec::as_slice);
        for (at, (line, pattern)) in wanted.iter().enumerate() {
            let ordinal = format!("port {port}, frame {} of {}", at + 1, wanted.len());
            // Without a frame, the packet before the expectation is the likely one.
            let packet = match sent.get(at) {
                Some(found) => (found.line != 0).then_some(found.line),
                None => packets.iter().copied().rfind(|packet| packet < line),
            };
            let what = match (sent.get(at), pattern) {
                (None, _) => format!("{ordinal}: was not sent (the port sent {})", sent.len()),
                (Some(_), None) => continue,
                (Some(found), Some(pattern)) => match difference(pattern, &found.frame) {
                    None => continue,
                    Some(what) if found.line == 0 => format!("{ordinal} {what}"),
                    Some(what) => format!("{ordinal} (from the packet of line {}) {what}", found.line),
                },
            };
            failures.push(Failure { line: *line, what, packet });
        }
    }
    for (port, sent) in sent {
        let expected = wanted.get(port).map_or(0, Vec::len);
        failures.extend(sent.iter().skip(expected).map(|found| Failure {
            line: found.line,
            packet: (found.line != 0).then_some(found.line),
            what: format!("port {port} sent a frame that is not expected: {}", hex(&found.frame)),
        }));
    }
    failures
}

/// How a frame differs from the expectation; `None` if it does not.
fn difference(pattern: &Pattern, frame: &[u8]) -> Option<String> {
    let got = frame.len() * 2;
    let digit = |at: usize| if at.is_multiple_of(2) { frame[at / 2] >> 4 } else { frame[at / 2] & 15 };
    let wrong = |at: usize| match pattern.digits.get(at) {
        Some(Some(wanted)) => at >= got || *wanted != digit(at),
        Some(None) => at >= got,
        None => pattern.whole,
    };
    let first = (0..got.max(pattern.digits.len())).find(|&at| wrong(at))?;
    let wanted = pattern.digits.len();
    let mut text = match first {
        at if at >= got => {
            format!("is too short: {} bytes, at least {} were expected", frame.len(), wanted.div_ceil(2))
        }
        at if at >= wanted => format!("is too long: {} bytes, {} were expected", frame.len(), wanted / 2),
        at => format!("differs first at byte {}", at / 2),
    };
    let lines = wanted.max(if pattern.whole { got } else { wanted }).div_ceil(2 * LINE);
    for line in 0..lines {
        let places = line * 2 * LINE..(line + 1) * 2 * LINE;
        // Lines without a difference, far from the first one, are omitted.
        if !places.clone().any(wrong) && first / (2 * LINE) != line {
            continue;
        }
        let show = |digit: &dyn Fn(usize) -> char| -> String {
            let mut text = String::new();
            for at in places.clone() {
                text.push(digit(at));
                if at % 2 == 1 {
                    text.push(' ');
                }
            }
            text.trim_end().to_string()
        };
        let hex = |value: u8| char::from_digit(value.into(), 16).unwrap_or('?');
        let expected = show(&|at| match pattern.digits.get(at) {
            Some(Some(value)) => hex(*value),
            Some(None) => '*',
            None => ' ',
        });
        let received = show(&|at| if at < got { hex(digit(at)) } else { ' ' });
        let marks = show(&|at| if wrong(at) { '^' } else { ' ' });
        let offset = line * LINE;
        let _ = write!(text, "\n    {offset:04x}  expected  {expected}\n          got       {received}");
        if !marks.is_empty() {
            let _ = write!(text, "\n                    {marks}");
        }
    }
    Some(text)
}

/// A frame as a hex dump.
fn hex(frame: &[u8]) -> String {
    let mut text = String::new();
    for (index, byte) in frame.iter().enumerate() {
        if index > 0 && index % 4 == 0 {
            text.push(' ');
        }
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        let whole = text.ends_with('$');
        let digits = text.trim_end_matches('$').chars();
        Pattern { digits: digits.map(|c| c.to_digit(16).map(|digit| digit as u8)).collect(), whole }
    }

    #[test]
    fn a_prefix_is_enough_unless_the_end_is_marked() {
        assert_eq!(difference(&pattern("01*2"), &[0x01, 0x72, 0xff]), None);
        assert_eq!(difference(&pattern("01*2$"), &[0x01, 0x72]), None);
        let text = difference(&pattern("0102$"), &[1, 2, 3]).unwrap();
        assert!(text.starts_with("is too long: 3 bytes, 2 were expected"), "{text}");
        let text = difference(&pattern("010203"), &[1, 2]).unwrap();
        assert!(text.starts_with("is too short: 2 bytes, at least 3 were expected"), "{text}");
    }

    #[test]
    fn marks_stand_under_wrong_digits() {
        let text = difference(&pattern("0102ff04"), &[1, 2, 0xf3, 4]).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "differs first at byte 2");
        assert_eq!(lines[1], "    0000  expected  01 02 ff 04");
        assert_eq!(lines[2], "          got       01 02 f3 04");
        assert_eq!(lines[3], "                           ^");
    }
}
