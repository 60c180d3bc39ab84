//! Faults of style that a reader of a generated program would remark on.

mod scopes;
mod unused;

use scopes::Program;

/// Keys of constant tables that count or are sets of bits: the control, the table, and the keys' places.
const NUMBERS: [(&str, &str, &[usize]); 8] = [
    ("Cowbird", "measure", &[1]),
    ("Edm", "begun", &[0]),
    ("Edm", "destination_ends", &[0]),
    ("Edm", "first", &[1]),
    ("Edm", "places", &[0]),
    ("Edm", "rings", &[1, 3]),
    ("Edm", "runs", &[0, 1, 2]),
    ("Edm", "source_ends", &[0]),
];

/// Lines at the wrong depth, declarations without a use and out of order, fields that nothing reads, numbers without a name in
/// keys, names that are places in a row, and registers without a sentence.
pub fn faults(p4: &str) -> Vec<String> {
    let lines: Vec<&str> = p4.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let program = Program::new(&lines);
    let mut faults = unused::unused(&program);
    for (kind, name) in lines.iter().filter_map(|line| declared(line)) {
        if is_place(name) {
            faults.push(format!("{kind} {name} is named by a place, not by what it decides"));
        }
    }
    faults.extend(unordered(&program));
    faults.extend(bare_numbers(&lines));
    faults.extend(undescribed(p4));
    faults.extend(misplaced(p4, &lines));
    faults
}

/// Finds declarations out of order. A control declares first counters, meters, the controls that it applies, and its
/// variables.
fn unordered(program: &Program<'_>) -> Vec<String> {
    const ORDER: [&str; 4] = ["counter", "meter", "control", "variable"];
    let controls = program.blocks.iter().filter(|block| block.opener[..1] == ["control"]);
    let names: Vec<&str> = controls.clone().map(|block| block.opener[1]).collect();
    let mut faults = Vec::new();
    for (number, block) in
        program.blocks.iter().enumerate().filter(|(_, block)| block.opener[..1] == ["control"])
    {
        let mut rank = 0;
        // Declarations with a block come behind all of these.
        let blocks = program.blocks.iter().filter(|inner| inner.around == Some(number));
        let first_block = blocks.map(|inner| inner.head.start).min().unwrap_or(block.tokens.end);
        for statement in program.statements.iter().filter(|statement| statement.block == Some(number)) {
            let kind = program.text(statement.tokens.start);
            // A variable's value follows its name.
            let named =
                statement.tokens.clone().find(|at| program.text(*at) == "=").unwrap_or(statement.tokens.end);
            let name = program.text(named - 1);
            let own = match kind.to_lowercase().as_str() {
                "counter" => 0,
                "meter" => 1,
                _ if names.contains(&kind) => 2,
                "bit" | "int" | "bool" => 3,
                _ => continue,
            };
            if own < rank || own < 2 && statement.tokens.start > first_block {
                faults.push(format!("{} {name} of {} is declared too late", ORDER[own], block.opener[1]));
            }
            rank = rank.max(own);
        }
    }
    faults
}

/// Statements with an indentation other than that of the braces around them, and empty lines at the edges of blocks.
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

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

/// The action or table that a line declares.
fn declared(line: &str) -> Option<(&'static str, &str)> {
    let line = line.trim_start().trim_start_matches("@hidden ");
    ["action", "table"].into_iter().find_map(|kind| {
        let rest = line.strip_prefix(kind)?.strip_prefix(' ')?;
        Some((kind, words(rest).next()?))
    })
}

/// Whether the last word of a name is an ordinal or a number. EDM's rings have numbers.
fn is_place(name: &str) -> bool {
    let number = name.strip_prefix("enter_").or(name.strip_prefix("leave_"));
    let is_ring = number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    const ORDINALS: [&str; 9] =
        ["third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh"];
    let last = name.rsplit('_').next().unwrap_or_default();
    !is_ring && (ORDINALS.contains(&last) || (last != name && last.bytes().all(|byte| byte.is_ascii_digit())))
}

/// Masks and hexadecimal numbers in the keys of constant entries.
fn bare_numbers(lines: &[&str]) -> Vec<String> {
    let mut faults = Vec::new();
    let (mut control, mut table, mut inside) = ("", "", false);
    for line in lines {
        if let Some(("table", name)) = declared(line) {
            table = name;
        }
        if let Some(rest) = line.strip_prefix("control ") {
            control = words(rest).next().unwrap_or_default();
        }
        inside = line.trim_end().ends_with("const entries = {") || inside && line.trim() != "}";
        let Some((key, _)) = line.rsplit_once(" : ").filter(|_| inside) else { continue };
        let counting = NUMBERS.iter().find(|(of, name, _)| (*of, *name) == (control, table));
        let counting = counting.map_or(&[][..], |(.., places)| places);
        let key = key.trim().trim_start_matches('(').trim_end_matches(')');
        let parts = key.split(", ").enumerate().filter(|(place, _)| !counting.contains(place));
        let is_bare =
            |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && !["0", "1"].contains(word);
        if let Some(number) = parts.flat_map(|(_, part)| words(part)).find(is_bare) {
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
