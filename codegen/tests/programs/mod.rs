//! What a reader of a generated program would remark on.

use std::collections::{BTreeMap, BTreeSet};

/// Constant tables whose keys count or are sets of bits.
const NUMBERS: [&str; 8] =
    ["measure", "begun", "destination_ends", "first", "places", "rings", "runs", "source_ends"];

/// Lines at the wrong depth, declarations without a use, fields that nothing reads, numbers without a name in keys, names that are
/// places in a row, and registers without a sentence.
pub fn faults(p4: &str) -> Vec<String> {
    let lines: Vec<&str> = p4.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let code = lines.join("\n");
    let mut uses: BTreeMap<&str, usize> = BTreeMap::new();
    words(&code).for_each(|word| *uses.entry(word).or_default() += 1);
    let mut faults = Vec::new();
    for (kind, name) in lines.iter().filter_map(|line| declared(line)) {
        if uses[name] < 2 && !["start", "main"].contains(&name) {
            faults.push(format!("{kind} {name} is not used"));
        }
        if ["action", "table"].contains(&kind) && is_place(name) {
            faults.push(format!("{kind} {name} is named by a place, not by what it decides"));
        }
    }
    let unread = fields(&lines).into_iter().filter(|field| !is_read(&code, field));
    faults.extend(unread.map(|field| format!("field {field} is not read")));
    faults.extend(bare_numbers(&lines));
    faults.extend(undescribed(p4));
    faults.extend(misplaced(p4, &lines));
    faults.extend(unused_within(&lines));
    faults
}

/// Statements that do not stand as deep as the braces around them, and empty lines at the edges of blocks.
fn misplaced(p4: &str, lines: &[&str]) -> Vec<String> {
    let mut faults = Vec::new();
    let (mut braces, mut brackets, mut goes_on, mut opens, mut is_empty) = (0, 0, false, false, false);
    for (n, (line, code)) in p4.lines().zip(lines).enumerate() {
        let (words, code) = (line.trim(), code.trim());
        if words.is_empty() || words.starts_with('#') {
            is_empty = words.is_empty();
            continue;
        }
        let depth = 4 * (braces - i32::from(words.starts_with('}')));
        let stands = (line.len() - line.trim_start().len()) as i32;
        if stands != depth && brackets == 0 && !goes_on {
            faults.push(format!("line {} is indented by {stands} and not by {depth}", n + 1));
        }
        if is_empty && (opens || words.starts_with('}')) {
            faults.push(format!("line {} follows an empty line at the edge of a block", n + 1));
        }
        (is_empty, opens) = (false, code.ends_with('{'));
        if code.is_empty() {
            continue;
        }
        let count = |of: &[char]| code.matches(of).count() as i32;
        braces += count(&['{']) - count(&['}']);
        brackets += count(&['(', '[']) - count(&[')', ']']);
        goes_on = !code.ends_with([';', '{', '}', ',']);
    }
    faults
}

/// Parameters of actions and variables of blocks without a use.
fn unused_within(lines: &[&str]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut inside: Vec<&str> = Vec::new();
    for (n, line) in lines.iter().enumerate() {
        let code = line.trim();
        let parameters = declared(line).filter(|(kind, _)| *kind == "action").and_then(|(_, name)| {
            let (_, rest) = code.split_once('(')?;
            Some((name, rest.split_once(')')?.0))
        });
        if let Some((action, list)) = parameters {
            let names = list.split(',').filter_map(|one| words(one).last());
            let unused = names.filter(|name| !is_used(name, &lines[n + 1..]));
            faults.extend(unused.map(|name| format!("parameter {name} of action {action} is not used")));
        }
        let of_fields =
            inside.last().is_none_or(|block| block.starts_with("struct") || block.starts_with("header"));
        if let Some(variable) = variable(code).filter(|_| !of_fields)
            && !is_used(variable, &lines[n + 1..])
        {
            faults.push(format!("variable {variable} is not used"));
        }
        for byte in code.bytes() {
            match byte {
                b'{' => inside.push(code),
                b'}' => drop(inside.pop()),
                _ => {}
            }
        }
    }
    faults
}

/// The variable that a statement declares: `TYPE NAME;` or `TYPE NAME = …;`.
fn variable(code: &str) -> Option<&str> {
    let (kind, rest) = code.split_once(' ')?;
    let is_type =
        kind == "bool" || kind.starts_with("bit<") || kind.starts_with("int<") || kind.ends_with("_t");
    let name = words(rest).next().filter(|name| rest.starts_with(name))?;
    let after = rest[name.len()..].trim_start();
    (is_type && (after.starts_with(';') || after.starts_with('='))).then_some(name)
}

/// Whether a name occurs before the block ends in which it is declared.
fn is_used(name: &str, lines: &[&str]) -> bool {
    let mut depth = 1;
    for line in lines {
        if words(line).any(|word| word == name) {
            return true;
        }
        depth += line.matches('{').count() as i32 - line.matches('}').count() as i32;
        if depth <= 0 {
            return false;
        }
    }
    false
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

/// What a line declares: its kind and name.
fn declared(line: &str) -> Option<(&'static str, &str)> {
    let line = line.trim_start().trim_start_matches("@hidden ");
    let last = |text: &'_ str| words(text).last().map(str::len);
    let tail = |text: &'_ str| last(text).map(|length| text.trim_end().len() - length);
    for kind in ["action", "table", "state", "struct", "header"] {
        if let Some(rest) = line.strip_prefix(kind).and_then(|rest| rest.strip_prefix(' ')) {
            return words(rest).next().map(|name| (kind, name));
        }
    }
    if let Some(rest) = line.strip_prefix("typedef ") {
        return words(rest).last().map(|name| ("type", name));
    }
    let constant = line.strip_prefix("const ").and_then(|rest| rest.split_once('=')).map(|(name, _)| name);
    if let Some(before) = constant.filter(|before| before.contains(' ') && !before.contains("entries")) {
        let before = before.trim_end();
        return tail(before).map(|at| ("constant", &before[at..]));
    }
    let instance = line.trim_end().trim_end_matches(" = {").trim_end_matches(';');
    let (made, name) = instance.rsplit_once(") ")?;
    let is_made = made.contains('(') && line.starts_with(|first: char| first.is_ascii_alphabetic());
    let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    (is_made && is_name && !line.starts_with("return") && !line.starts_with("if "))
        .then_some(("object", name))
}

/// Whether the last word of a name is an ordinal or a number. EDM's rings have numbers.
fn is_place(name: &str) -> bool {
    let is_ring = name.starts_with("enter_") || name.starts_with("leave_");
    const ORDINALS: [&str; 9] =
        ["third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh"];
    let last = name.rsplit('_').next().unwrap_or_default();
    !is_ring && (ORDINALS.contains(&last) || (last != name && last.bytes().all(|byte| byte.is_ascii_digit())))
}

/// The fields of structs of metadata.
fn fields<'a>(lines: &[&'a str]) -> BTreeSet<&'a str> {
    let mut fields = BTreeSet::new();
    let mut inside = false;
    for line in lines {
        match line.strip_prefix("struct ") {
            Some(name) => inside = name.contains("metadata") && !name.contains('}'),
            None if line.starts_with('}') => inside = false,
            None if inside => {
                fields.extend(line.trim_end().strip_suffix(';').and_then(|field| words(field).last()));
            }
            None => {}
        }
    }
    fields
}

/// Whether a program does more with a field than to assign it. A protocol may have its fields in a struct of its own.
fn is_read(code: &str, field: &str) -> bool {
    let name = format!(".{field}");
    code.match_indices(&name).any(|(at, _)| {
        let path = code[..at].rsplit(|c: char| !(c.is_alphanumeric() || "_.".contains(c))).next();
        if !path.is_some_and(|path| path == "meta" || path.starts_with("meta.")) {
            return false;
        }
        let after = &code[at + name.len()..];
        let is_longer = after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let after =
            after.strip_prefix('[').and_then(|slice| slice.split_once(']')).map_or(after, |(_, after)| after);
        let after = after.trim_start();
        !is_longer && (!after.starts_with('=') || after.starts_with("=="))
    })
}

/// Masks and hexadecimal numbers in the keys of constant entries.
fn bare_numbers(lines: &[&str]) -> Vec<String> {
    let mut faults = Vec::new();
    let (mut table, mut inside) = ("", false);
    for line in lines {
        if let Some(("table", name)) = declared(line) {
            table = name;
        }
        inside = line.trim_end().ends_with("const entries = {") || inside && line.trim() != "}";
        let Some((key, _)) = line.rsplit_once(" : ").filter(|_| inside && !NUMBERS.contains(&table)) else {
            continue;
        };
        let is_bare =
            |word: &str| word.starts_with(|c: char| c.is_ascii_digit()) && !["0", "1"].contains(&word);
        if let Some(number) = words(key).find(|word| is_bare(word)) {
            faults.push(format!("table {table} has the number {number} in a key: give it a name"));
        }
    }
    faults
}

/// Registers with neither a comment before them nor one behind.
fn undescribed(p4: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut described = false;
    for line in p4.lines() {
        let line = line.trim_start();
        let is_register = line.starts_with("Register<") || line.starts_with("register<");
        if is_register && !described && !line.contains("//") {
            faults.push(format!("no sentence says what `{line}` holds"));
        }
        // A sentence may be about several registers.
        described = line.starts_with("//") || described && is_register;
    }
    faults
}
