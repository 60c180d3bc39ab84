//! Keys of a description or an experiment that are set beside its file, as `--set KEY=VALUE` on a command line.

use crate::shell::quoted;
use std::fmt;
use std::str::FromStr;
use toml::{Table, Value};

/// One key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Names and, for elements of arrays, indexes from 0, with dots between them: `switch.port_rate`, `host.0.rate`.
    pub key: String,
    /// The value, of a type of TOML.
    pub value: Value,
}

impl FromStr for Setting {
    type Err = String;

    /// Reads `KEY=VALUE`. The value is written as in TOML; text that is no TOML value is a string, so that quotes may be
    /// left out.
    fn from_str(text: &str) -> Result<Setting, String> {
        let Some((key, value)) = text.split_once('=') else {
            return Err("has no `=`; write KEY=VALUE, e.g. switch.port_rate=\"1 Gb/s\"".to_owned());
        };
        let key = key.trim();
        if key.split('.').any(|word| word.trim().is_empty()) {
            return Err(format!("`{key}` is no key; write names and indexes, e.g. host.0.rate"));
        }
        Ok(Setting { key: key.to_owned(), value: read_value(value.trim())? })
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--set {}", self.assignment())
    }
}

impl Setting {
    /// As `KEY=VALUE`, which [`Setting::from_str`] reads.
    pub fn assignment(&self) -> String {
        format!("{}={}", self.key, self.value)
    }

    /// As it is written in a shell.
    pub fn word(&self) -> String {
        format!("--set {}", quoted(&self.assignment()))
    }
}

fn read_value(text: &str) -> Result<Value, String> {
    if text.is_empty() {
        return Err("has no value; write \"\" for an empty string".to_owned());
    }
    match toml::from_str::<Table>(&format!("value = {text}")) {
        // More than one key: the text has several lines.
        Ok(mut table) if table.len() == 1 => {
            table.remove("value").ok_or_else(|| format!("`{text}` is no value"))
        }
        Err(_) if !text.contains(['"', '\'', '[', ']', '{', '}', '=', '#', '\n']) => {
            Ok(Value::String(text.to_owned()))
        }
        _ => Err(format!("`{text}` is no value of TOML; write e.g. 5, true, \"1 Gb/s\" or [1, 2]")),
    }
}

/// Settings as on a command line, separated by spaces.
pub fn words(settings: &[Setting]) -> String {
    settings.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// The text of a TOML file with these settings, without its comments. Errors: the text is no TOML, or a key leads to
/// nothing that can be set.
pub fn apply(text: &str, settings: &[Setting]) -> Result<String, String> {
    let mut table: Table = toml::from_str(text).map_err(|error| error.message().replace('\n', ", "))?;
    for setting in settings {
        set(&mut table, &setting.key, setting.value.clone())
            .map_err(|error| format!("{setting}: {error}"))?;
    }
    toml::to_string(&table).map_err(|error| error.to_string())
}

/// Sets a key: `traffic.0.flows`. Tables that are missing are made.
pub fn set(table: &mut Table, key: &str, value: Value) -> Result<(), String> {
    let Some((head, rest)) = key.split_once('.') else {
        table.insert(key.to_owned(), value);
        return Ok(());
    };
    set_within(table.entry(head).or_insert_with(|| Value::Table(Table::new())), head, rest, value)
}

fn set_within(of: &mut Value, name: &str, key: &str, value: Value) -> Result<(), String> {
    match of {
        Value::Table(table) => set(table, key, value),
        Value::Array(items) => {
            let (index, rest) = key.split_once('.').map_or((key, None), |(index, rest)| (index, Some(rest)));
            let count = items.len();
            let Some(item) = index.parse::<usize>().ok().and_then(|index| items.get_mut(index)) else {
                let indexes = match count {
                    0 => format!("set the whole of {name}"),
                    _ => format!("write {name}.0 to {name}.{}", count - 1),
                };
                return Err(format!("`{index}` is no element of {name}, which has {count}; {indexes}"));
            };
            match rest {
                None => *item = value,
                Some(rest) => set_within(item, &format!("{name}.{index}"), rest, value)?,
            }
            Ok(())
        }
        _ => Err(format!("{name} is a value, not a table; write {name}=VALUE")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_types_of_toml() {
        let value = |text: &str| format!("k={text}").parse::<Setting>().map(|setting| setting.value);
        assert_eq!(value("5"), Ok(Value::Integer(5)));
        assert_eq!(value("0.5"), Ok(Value::Float(0.5)));
        assert_eq!(value("true"), Ok(Value::Boolean(true)));
        assert_eq!(value("\"5\""), Ok(Value::String("5".into())));
        assert_eq!(value("10 Gb/s"), Ok(Value::String("10 Gb/s".into())));
        assert_eq!(value("[1, 2]"), Ok(Value::Array(vec![Value::Integer(1), Value::Integer(2)])));
        for wrong in ["[1", "\"x", "", "1\nother = 2", "{ a = }"] {
            assert!(value(wrong).is_err(), "{wrong}");
        }
        for wrong in ["k", "=1", "a..b=1", ".a=1"] {
            assert!(wrong.parse::<Setting>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn keys_reach_tables_and_elements() {
        let text = "name = \"x\"\nlist = [1, 2]\n[switch]\nrate = \"1 Gb/s\"\n[[host]]\nport = 1\n[[host]]\nport = 2\n";
        let applied = |setting: &str| apply(text, &[setting.parse().unwrap()]);
        let at = |setting: &str| toml::from_str::<Table>(&applied(setting).unwrap()).unwrap();
        assert_eq!(at("switch.rate=5")["switch"]["rate"], Value::Integer(5));
        assert_eq!(at("host.1.port=7")["host"][1]["port"], Value::Integer(7));
        assert_eq!(at("list.0=7")["list"][0], Value::Integer(7));
        assert_eq!(at("new.table.key=7")["new"]["table"]["key"], Value::Integer(7));
        for (wrong, says) in [
            (
                "host.2.port=1",
                "--set host.2.port=1: `2` is no element of host, which has 2; write host.0 to host.1",
            ),
            ("host.port=1", "`port` is no element of host"),
            ("name.x=1", "name is a value, not a table"),
        ] {
            let error = applied(wrong).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
