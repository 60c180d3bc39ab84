//! Registers as data.
//!
//! A protocol declares registers in TOML: the content of a cell, the accesses to it, and which frame uses which access.
//! The template `register` of an architecture makes P4 of a declaration. The result is itself a partial, so a
//! declaration may use terms and values of its protocol; the protocol's templates place it by
//! `{{> PROTOCOL/FOLDER/REGISTER}}`, or `{{> PROTOCOL/REGISTER}}` where all architectures have the same one.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Comments are wrapped at this width, without their `// `.
const COMMENT_WIDTH: usize = 123;

/// A file of declarations.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Declarations {
    register: Vec<Register>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Register {
    /// Its name in P4.
    name: String,
    /// Its partial's, if that is another one: the name in P4 may depend on values of the protocol.
    partial: Option<String>,
    /// A list among these values: there is a register for each of its items.
    each: Option<String>,
    /// Content of a cell, as a sentence.
    holds: String,
    /// Which frames write it.
    writer: String,
    /// When it wraps: continues a sentence about the cell.
    wraps: String,
    /// Further comment for readers.
    #[serde(default)]
    doc: String,
    /// The type of a cell.
    cell: String,
    cells: Cells,
    /// The accesses to a cell, of which a frame uses one.
    #[serde(default)]
    access: Vec<Access>,
    /// Which frames do which.
    accesses: Option<Accesses>,
}

/// Which cells there are.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Cells {
    /// How many.
    size: String,
    /// The type of their numbers.
    #[serde(default)]
    index: String,
    /// The number of a frame's cell.
    #[serde(default)]
    at: String,
}

/// An access to a cell. Without `sets` and `body` it reads the cell.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Access {
    name: String,
    #[serde(default)]
    doc: String,
    /// Conditions on the protocol's values under which the access exists: names, or `!` and a name.
    #[serde(default)]
    only: Vec<String>,
    /// The type of its result, unless that is the cell's. Empty: it has no result.
    gives: Option<String>,
    /// Destination of the result, if any.
    #[serde(default)]
    into: String,
    /// The cell's new value, which is also the result.
    sets: Option<String>,
    /// Or statements on `value`, the cell, and `result`.
    body: Option<String>,
    /// Or the access that does the same with another destination.
    r#as: Option<String>,
    /// Or a statement that a frame executes in place of any access.
    instead: Option<String>,
}

/// A table with constant entries.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Accesses {
    #[serde(default)]
    doc: String,
    /// Ternary keys: an expression, or `name: expression`.
    key: Vec<String>,
    /// One per line: the match, ` : ` and an access or NoAction.
    entries: String,
    size: u32,
}

/// The registers that a file declares: names and values for the template `register`.
pub(super) fn declared(file: &str) -> Result<Vec<(String, Value)>, String> {
    let declarations: Declarations = toml::from_str(file).map_err(|error| error.to_string())?;
    let partial = |one: &Register| one.partial.as_ref().unwrap_or(&one.name).clone();
    declarations.register.iter().map(|one| Ok((partial(one), values(one)?))).collect()
}

fn values(register: &Register) -> Result<Value, String> {
    let access = register.access.iter().map(|access| {
        let gives = access.gives.as_ref().unwrap_or(&register.cell);
        json!({
            "name": access.name,
            "begin": access.only.iter().map(|condition| begin(condition)).collect::<Vec<_>>(),
            "end": access.only.iter().rev().map(|condition| end(condition)).collect::<Vec<_>>(),
            "doc": wrapped(&access.doc),
            "gives": if gives.is_empty() { &register.cell } else { gives },
            "result": !gives.is_empty(),
            "into": access.into,
            "alu": access.r#as.as_ref().unwrap_or(&access.name),
            "body": body(access),
            "instead": access.instead,
        })
    });
    let accesses = register.accesses.iter().map(|table| table_values(register, table));
    Ok(json!({
        "name": register.name,
        "begin": register.each.iter().map(|list| format!("{{{{#each {list}}}}}")).collect::<Vec<_>>(),
        "end": register.each.iter().map(|_| "{{/each}}").collect::<Vec<_>>(),
        "doc": wrapped(&register.doc),
        "holds": wrapped(&register.holds),
        "written": wrapped(&format!("Written by {}; it {}.", register.writer, register.wraps)),
        "cell": register.cell,
        "cells": register.cells,
        "access": access.collect::<Vec<_>>(),
        "accesses": accesses.collect::<Result<Vec<_>, String>>()?,
    }))
}

/// Opens the part of a template that depends on a condition.
fn begin(condition: &str) -> String {
    match condition.strip_prefix('!') {
        Some(name) => format!("{{{{#unless {name}}}}}"),
        None => format!("{{{{#if {condition}}}}}"),
    }
}

fn end(condition: &str) -> &'static str {
    if condition.starts_with('!') { "{{/unless}}" } else { "{{/if}}" }
}

/// Prose as the lines of a comment.
fn wrapped(prose: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in prose.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= COMMENT_WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The lines of an ALU's body; none if the access has no ALU.
fn body(access: &Access) -> Vec<String> {
    if access.r#as.is_some() || access.instead.is_some() {
        return Vec::new();
    }
    match (&access.body, &access.sets) {
        (Some(body), _) => body.lines().map(str::to_owned).collect(),
        (None, Some(value)) => vec![format!("value = {value};"), "result = value;".to_owned()],
        (None, None) => vec!["result = value;".to_owned()],
    }
}

fn table_values(register: &Register, table: &Accesses) -> Result<Value, String> {
    let key = table.key.iter().map(|key| match key.split_once(": ") {
        Some((name, expression)) => json!({ "of": expression, "name": name }),
        None => json!({ "of": key, "name": "" }),
    });
    let entries = table.entries.lines().map(|line| {
        let (matched, access) = line
            .rsplit_once(" : ")
            .ok_or_else(|| format!("register {}: no access in entry `{line}`", register.name))?;
        if access != "NoAction" && !register.access.iter().any(|one| one.name == access) {
            return Err(format!("register {}: entry `{line}` names no access", register.name));
        }
        Ok(json!({ "matched": matched, "access": access, "acts": access != "NoAction" }))
    });
    Ok(json!({
        "doc": wrapped(&table.doc),
        "key": key.collect::<Vec<_>>(),
        "entries": entries.collect::<Result<Vec<_>, String>>()?,
        "size": table.size,
    }))
}

#[cfg(test)]
mod tests {
    use super::{declared, wrapped};

    const COUNT: &str = "[[register]]\nname = \"c_done\"\nholds = \"What is done.\"\nwriter = \"answers\"\nwraps = \"never wraps\"\n\
        cell = \"bit<32>\"\ncells = { size = \"4\", index = \"bit<2>\", at = \"meta.host\" }\n\
        [[register.access]]\nname = \"look_at_done\"\ninto = \"meta.done\"\n\
        [[register.access]]\nname = \"put_done\"\nsets = \"meta.count\"\n\
        [register.accesses]\nkey = [\"meta.op\", \"late: meta.wait[31:31]\"]\nsize = 2\nentries = \"\"\"\n(OP_PUT, _) : put_done\n_ : NoAction\n\"\"\"\n";

    #[test]
    fn a_declaration_says_what_is_done_with_a_cell_and_by_which_frames() {
        let registers = declared(COUNT).unwrap_or_else(|error| panic!("{error}"));
        let [(name, values)] = registers.as_slice() else { panic!("{registers:?}") };
        assert_eq!(name, "c_done");
        assert_eq!(values["access"][0]["body"][0], "result = value;");
        assert_eq!(values["access"][1]["body"][0], "value = meta.count;");
        assert_eq!(values["accesses"][0]["key"][1]["name"], "late");
        assert_eq!(values["accesses"][0]["entries"][0]["access"], "put_done");
    }

    #[test]
    fn conditions_and_lists_stand_around_what_they_are_about() {
        let some = COUNT.replace(
            "[[register.access]]\nname = \"put",
            "[[register.access]]\nonly = [\"a\", \"!b\"]\ngives = \"\"\nname = \"put",
        );
        let registers = declared(&some.replace("holds", "partial = \"c\"\neach = \"sides\"\nholds"))
            .unwrap_or_else(|error| panic!("{error}"));
        let [(name, values)] = registers.as_slice() else { panic!("{registers:?}") };
        assert_eq!((name.as_str(), &values["name"]), ("c", &"c_done".into()));
        assert_eq!(
            (&values["begin"][0], &values["end"][0]),
            (&"{{#each sides}}".into(), &"{{/each}}".into())
        );
        let put = &values["access"][1];
        assert_eq!(put["begin"], serde_json::json!(["{{#if a}}", "{{#unless b}}"]));
        assert_eq!(put["end"], serde_json::json!(["{{/unless}}", "{{/if}}"]));
        assert_eq!((&put["gives"], &put["result"]), (&"bit<32>".into(), &false.into()));
    }

    #[test]
    fn prose_is_wrapped() {
        assert_eq!(wrapped(" a  b "), ["a b"]);
        let long = "word ".repeat(30);
        assert_eq!(wrapped(&long).iter().map(String::len).collect::<Vec<_>>(), [119, 29]);
        assert!(wrapped("").is_empty());
    }

    #[test]
    fn what_a_declaration_lacks_is_named() {
        for (right, wrong, expected) in [
            ("wraps = \"never wraps\"\n", "", "missing field `wraps`"),
            ("sets =", "set =", "unknown field `set`"),
            (": put_done", ": puts_done", "register c_done: entry `(OP_PUT, _) : puts_done` names no access"),
            (" : NoAction", "", "register c_done: no access in entry `_`"),
        ] {
            let error = declared(&COUNT.replace(right, wrong)).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
