//! Code specific to one architecture stays in its folder of templates.
//!
//! The words of an architecture are the identifiers of its include file. The other templates use terms for
//! architecture-specific code, and each architecture supplies them.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Architectures with a folder of templates, where their declarations are, and the rooms of templates that they serve.
const ARCHITECTURES: &[(&str, &[&str], &[&str])] = &[
    (
        "v1model",
        &["v1model.p4"],
        &["shared", "l2", "pl2", "pl2/registers", "edm", "edm/registers", "cowbird", "cowbird/registers"],
    ),
    (
        "tna",
        &["tna/tofino1_base.p4", "tna/tofino_metadata.p4", "tna/tofino_externs.p4"],
        &["shared", "l2", "pl2", "pl2/alu", "edm", "edm/alu", "cowbird", "cowbird/alu"],
    ),
];
/// Words of their include files that are not one's alone: the language's, those of our own headers, and plain ones.
const COMMON: &[&str] = &[
    "_",
    "apply",
    "const",
    "control",
    "else",
    "inout",
    "name",
    "typedef",
    "checksum",
    "color",
    "data",
    "index",
    "key",
    "mask",
    "meta",
    "int",
    "op",
    "range",
    "result",
    "size",
    "value",
    "egress_port",
    "ingress_port",
    // Fields that protocols have.
    "base",
    "packets",
    "set",
    // Counters and registers. How another architecture changes a register is more than another word: see ARCHITECTURE.
    "count",
    "read",
    "register",
    "write",
];

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

/// Identifiers and keywords: numbers start with a digit.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let all = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    all.filter(|word| word.starts_with(|c: char| c.is_alphabetic() || c == '_'))
}

/// A line of P4 without its comment.
fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

/// Identifiers of an include file that are its own.
fn own_words(include: &str, core: &str) -> BTreeSet<String> {
    let language: BTreeSet<&str> = words(core).chain(COMMON.iter().copied()).collect();
    let unquoted = include.lines().flat_map(|line| code(line).split('"').step_by(2));
    let own = unquoted.flat_map(words);
    own.filter(|word| !language.contains(word)).map(str::to_owned).collect()
}

/// The P4 of a line of a template, and the expressions in it.
fn split(line: &str) -> (String, Vec<&str>) {
    let (mut p4, mut expressions, mut rest) = (String::new(), Vec::new(), line);
    while let Some((before, (expression, after))) =
        rest.split_once("{{").and_then(|(before, rest)| Some((before, rest.split_once("}}")?)))
    {
        p4 += before;
        p4.push(' ');
        expressions.push(expression.trim_start_matches('{'));
        rest = after;
    }
    (p4 + rest, expressions)
}

/// Words of `own` in a template: plain ones count in code, made-up ones (`mark_to_drop`) in comments as well.
fn strays<'a>(template: &str, own: &'a BTreeSet<String>) -> Vec<(usize, &'a str)> {
    let mut strays = Vec::new();
    for (number, line) in template.lines().enumerate() {
        let (p4, _) = split(line);
        let of_code: BTreeSet<&str> = words(code(&p4)).collect();
        let named = words(&p4).filter(|word| word.contains('_') || of_code.contains(word));
        let named: BTreeSet<&str> = named.collect();
        strays.extend(
            own.iter().filter(|word| named.contains(word.as_str())).map(|word| (number + 1, word.as_str())),
        );
    }
    strays
}

/// Templates and terms outside of the architectures' folders, with their paths.
fn neutral() -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    let mut rooms = vec![folder("p4src")];
    while let Some(room) = rooms.pop() {
        for path in std::fs::read_dir(room).unwrap().map(|entry| entry.unwrap().path()) {
            if !path.is_dir() {
                let text = std::fs::read_to_string(&path).unwrap();
                files.push((path.clone(), with_comments(&path, text)));
            } else if !ARCHITECTURES.iter().any(|(name, ..)| path.ends_with(name)) {
                rooms.push(path);
            }
        }
    }
    assert!(files.len() > 10, "the templates are elsewhere");
    files
}

/// Declarations of registers with their prose behind `//`, as it is rendered.
fn with_comments(path: &Path, text: String) -> String {
    if path.extension().is_none_or(|ending| ending != "toml") {
        return text;
    }
    let is_key = |line: &str| {
        ["holds", "writer", "wraps", "doc"].contains(&line.split(' ').next().unwrap_or_default())
    };
    // Prose of several lines ends with a line of quotes.
    let mut goes_on = false;
    let as_rendered = |line: &str| {
        let is_prose = goes_on || is_key(line);
        goes_on = if goes_on { line != "\"\"\"" } else { is_prose && line.ends_with("\"\"\"") };
        if is_prose { format!("// {line}\n") } else { format!("{line}\n") }
    };
    text.lines().map(as_rendered).collect()
}

fn terms_of(room: &str) -> BTreeMap<String, String> {
    let path = folder("p4src").join(room).join("terms.toml");
    toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn an_architectures_words_stay_in_its_folder() {
    let core = std::fs::read_to_string(folder("p4/include/core.p4")).unwrap();
    for (name, includes, _) in ARCHITECTURES {
        let read = |file: &&str| std::fs::read_to_string(folder("p4/include").join(file)).unwrap();
        let include: String = includes.iter().map(read).collect();
        let own = own_words(&include, &core);
        for (path, text) in neutral() {
            let strays = strays(&text, &own);
            assert!(strays.is_empty(), "{} names what is {name}'s, by line: {strays:?}", path.display());
        }
    }
}

#[test]
fn each_architecture_supplies_the_terms_that_templates_use_and_no_others() {
    let files = neutral();
    for (name, _, rooms) in ARCHITECTURES {
        let served =
            |path: &Path| rooms.iter().any(|room| path.parent() == Some(&*folder("p4src").join(room)));
        let served = files.iter().filter(|(path, _)| served(path));
        let expressions = served.flat_map(|(_, text)| text.lines().flat_map(|line| split(line).1));
        let partials = expressions.filter_map(partial);
        let used: BTreeSet<&str> = partials.filter(|name| !name.contains('/')).collect();
        let terms = terms_of(name);
        let supplied: BTreeSet<&str> = terms.keys().map(String::as_str).collect();
        assert_eq!(used, supplied, "terms of {name}");
    }
}

/// The partial that an expression names, if any.
fn partial(expression: &str) -> Option<&str> {
    expression.strip_prefix('>')?.split_whitespace().next()
}

/// Columns made by hand would be wrong as soon as a name or a condition changes.
#[test]
fn templates_leave_columns_to_the_generator() {
    for (path, text) in neutral() {
        // A declaration of registers has keys of its own, and P4 in its texts.
        let is_template = path.extension().is_some_and(|end| end == "hbs");
        let padded = |line: &str| is_template && code(line).contains("  = ") || code(line).contains("  : ");
        let lines: Vec<usize> =
            (1..).zip(text.lines()).filter(|(_, line)| padded(line)).map(|(n, _)| n).collect();
        assert!(lines.is_empty(), "{} has columns of its own in lines {lines:?}", path.display());
    }
}

#[test]
fn words_of_an_architecture_are_found() {
    let include = "// comment_word\n@note(\"quoted_word\") struct some_metadata_t { bit<9> out_port; } \
                   extern gauge { void read(); }";
    let own = own_words(include, "note bit struct extern void");
    let named = |template: &str| -> Vec<String> {
        strays(template, &own).into_iter().map(|(line, word)| format!("{line} {word}")).collect()
    };
    assert_eq!(named("a\nb.out_port = {{> out_port}};"), ["2 out_port"]);
    assert_eq!(named("x = 1; // some_metadata_t says so"), ["1 some_metadata_t"]);
    assert_eq!(named("gauge(8) g; // a gauge"), ["1 gauge"]);
    assert!(named("{{> out_port}} = 1; // a gauge, comment_word, quoted_word\nr.read();").is_empty());
}
