//! Positions in JSON, which the parser of its values does not keep.

use std::collections::BTreeMap;
use std::ops::Range;

/// Position of each member and element of a text that is JSON, by its path: `switches.s1.program`, `links[2]`. A member begins with
/// its key.
pub(super) fn positions(text: &str) -> BTreeMap<String, Range<usize>> {
    let mut walk = Walk { text, at: 0, found: BTreeMap::new() };
    walk.value("");
    walk.found
}

/// Where a line of a text begins, in bytes; lines count from 1.
pub(super) fn start_of_line(text: &str, line: usize) -> usize {
    text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum()
}

struct Walk<'t> {
    text: &'t str,
    at: usize,
    found: BTreeMap<String, Range<usize>>,
}

impl Walk<'_> {
    /// The next byte that is no blank.
    fn next(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.text.as_bytes().get(self.at).copied()
    }

    /// Passes a value and what is in it.
    fn value(&mut self, path: &str) {
        match self.next() {
            Some(b'{') => self.items(b'}', |walk, _| {
                let start = walk.at;
                let key = walk.string();
                if walk.next() == Some(b':') {
                    walk.at += 1;
                }
                let dot = if path.is_empty() { "" } else { "." };
                walk.item(start, &format!("{path}{dot}{key}"));
            }),
            Some(b'[') => self.items(b']', |walk, n| walk.item(walk.at, &format!("{path}[{n}]"))),
            Some(b'"') => drop(self.string()),
            _ => {
                let rest = &self.text.as_bytes()[self.at..];
                self.at += rest.iter().take_while(|byte| !b",]} \t\r\n".contains(byte)).count();
            }
        }
    }

    /// Passes what is between brackets.
    fn items(&mut self, end: u8, mut item: impl FnMut(&mut Self, usize)) {
        self.at += 1;
        let mut n = 0;
        while let Some(byte) = self.next() {
            let before = self.at;
            match byte {
                _ if byte == end => {
                    self.at += 1;
                    return;
                }
                b',' => self.at += 1,
                _ => {
                    item(self, n);
                    n += 1;
                }
            }
            // No progress: the text is no JSON after all.
            if self.at == before {
                return;
            }
        }
    }

    fn item(&mut self, start: usize, path: &str) {
        self.value(path);
        self.found.insert(path.to_owned(), start..self.at);
    }

    /// Passes a string, and returns what it means.
    fn string(&mut self) -> String {
        let (bytes, start) = (self.text.as_bytes(), self.at);
        self.at += 1;
        while let Some(byte) = bytes.get(self.at) {
            self.at += if *byte == b'\\' { 2 } else { 1 };
            if *byte == b'"' {
                break;
            }
        }
        self.at = self.at.min(bytes.len());
        let text = self.text.get(start..self.at).unwrap_or_default();
        serde_json::from_str(text).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    #[test]
    fn members_and_elements_are_found_by_their_paths() {
        let text = "{\n \"a\": {\"b c\": [1, {\"d\": \"x,]}\\\"\"}],\n \"\\u0065\": null }, \"f\": [],\n\"g\": -1.5e3}";
        let found = positions(text);
        let at = |path: &str| found.get(path).map(|span| &text[span.clone()]);
        assert_eq!(at("a.b c[0]"), Some("1"));
        assert_eq!(at("a.b c[1].d"), Some("\"d\": \"x,]}\\\"\""));
        assert_eq!(at("a.e"), Some("\"\\u0065\": null"));
        assert_eq!((at("f"), at("g")), (Some("\"f\": []"), Some("\"g\": -1.5e3")));
        assert_eq!(found.len(), 8, "{found:?}");
        assert_eq!((start_of_line(text, 1), start_of_line(text, 2)), (0, 2));
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("[a-z\\\\\" {\\[é]{0,3}", inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// Values by their paths, as far as no key has two meanings.
    fn values(value: &Value, path: &str, all: &mut Vec<(String, Value)>) {
        match value {
            Value::Object(members) => members.iter().for_each(|(key, value)| {
                let dot = if path.is_empty() { "" } else { "." };
                let path = format!("{path}{dot}{key}");
                all.push((path.clone(), value.clone()));
                values(value, &path, all);
            }),
            Value::Array(items) => items.iter().enumerate().for_each(|(n, value)| {
                let path = format!("{path}[{n}]");
                all.push((path.clone(), value.clone()));
                values(value, &path, all);
            }),
            _ => {}
        }
    }

    proptest! {
        #[test]
        fn every_value_is_at_its_position(value in json(), pretty in any::<bool>()) {
            let text = if pretty { format!("{value:#}") } else { value.to_string() };
            let (found, mut all) = (positions(&text), Vec::new());
            values(&value, "", &mut all);
            for (path, value) in &all {
                let span = found.get(path).cloned();
                prop_assert!(span.is_some(), "{path} of {text}");
                let own = &text[span.unwrap_or_default()];
                // An element, or a member with its key.
                let found = [own.to_owned(), format!("{{{own}}}")].map(|text| serde_json::from_str::<Value>(&text).ok());
                let member = || found[1].as_ref()?.as_object()?.values().next();
                // Paths that two values share have one place.
                if all.iter().filter(|(other, _)| other == path).count() == 1 {
                    prop_assert!(found[0].as_ref() == Some(value) || member() == Some(value), "{own}: {value}");
                }
            }
        }

        #[test]
        fn a_text_that_is_no_json_ends(text in "[\\[\\]{}\",:\\\\a1 é]{0,30}") {
            positions(&text);
        }
    }
}
