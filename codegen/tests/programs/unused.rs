//! Declarations that a program does not use, each looked for where it can be used.

use super::scopes::{Block, Program};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Headers of frames, or the same in other parts: a program need not read each of their fields, and frames that pass have them.
const FORMATS: [&str; 23] = [
    "packet_in_t",
    "packet_out_t",
    "ethernet_t",
    "vlan_t",
    "ipv4_t",
    "udp_t",
    "pl2_start_t",
    "pl2_control_t",
    "pl2_management_t",
    "edm_start_t",
    "edm_control_t",
    "edm_message_t",
    "edm_management_t",
    "roce_bth_t",
    "roce_aeth_t",
    "roce_reth_t",
    "cowbird_answer_t",
    "cowbird_block_t",
    "cowbird_entry_t",
    "cowbird_management_t",
    "cowbird_red_t",
    "cowbird_tail_t",
    "probe_t",
];

/// Names that are declared and not used, or assigned and not read.
pub fn unused(program: &Program<'_>) -> Vec<String> {
    let mut faults = of_blocks(program);
    faults.extend(of_statements(program));
    faults.extend(of_tables(program));
    faults.extend(of_fields(program));
    faults
}

/// Actions, tables, states, types and controls, with the parameters of actions.
fn of_blocks(program: &Program<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    for block in &program.blocks {
        let [kind, name, ..] = block.opener[..] else { continue };
        let Some(declared) = program.plain(block.head.clone()).find(|at| program.text(*at) == name) else {
            continue;
        };
        let around = program.range(block.around);
        let is_used = |is: &dyn Fn(usize) -> bool| program.uses(name, declared, around.clone()).any(is);
        let used = match kind {
            "action" | "struct" | "header" => is_used(&|_| true),
            "state" => name == "start" || is_used(&|_| true),
            "table" => is_used(&|at| program.text(at + 1) == "." && program.text(at + 2) == "apply"),
            "control" | "parser" => is_used(&|at| program.text(at + 1) == "("),
            _ => true,
        };
        if !used {
            faults.push(format!("{kind} {name} is not used"));
        }
        // Parameters of controls and parsers are the architecture's.
        if kind == "action" || block.opener.starts_with(&["void", "apply"]) {
            // A register action is named by the object around it.
            let object = block.around.map(|around| &program.blocks[around].opener[..]);
            let whose = match object {
                Some([.., object, "="]) if kind == "void" => (*object).to_owned(),
                _ => format!("{kind} {name}"),
            };
            for (_, at) in program.parameters(declared + 1) {
                let parameter = program.text(at);
                if program.uses(parameter, at, block.tokens.clone()).next().is_none() {
                    faults.push(format!("parameter {parameter} of {whose} is not used"));
                }
            }
        }
    }
    faults
}

/// Constants, types, objects and variables.
fn of_statements(program: &Program<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    // A register action is an object with a block.
    let opened = program.blocks.iter().map(|block| (block.head.clone(), block.around));
    let statements = program.statements.iter().map(|statement| (statement.tokens.clone(), statement.block));
    for (tokens, block) in statements.chain(opened) {
        let Some((kind, declared)) = declaration(program, tokens, block) else { continue };
        let name = program.text(declared);
        let mut uses = program.uses(name, declared, program.range(block));
        let used = match kind {
            "variable" => uses.any(|at| !program.is_assigned(at + 1)),
            _ => name == "main" || uses.next().is_some(),
        };
        if !used {
            faults.push(format!("{kind} {name} is not used"));
        }
    }
    faults
}

/// A statement's declaration, and the place of the name.
fn declaration(
    program: &Program<'_>,
    tokens: Range<usize>,
    block: Option<usize>,
) -> Option<(&'static str, usize)> {
    let around: &[&str] = block.map_or(&[], |block| &program.blocks[block].opener);
    let is_list = matches!(around, [.., "="]) && !around.contains(&")");
    if is_list || matches!(around.first(), Some(&("struct" | "header" | "table"))) {
        return None;
    }
    let places: Vec<usize> = program.plain(tokens).collect();
    let text = |n: usize| places.get(n).map_or("", |at| program.text(*at));
    let assigns = places.iter().position(|at| program.text(*at) == "=");
    let end = assigns.unwrap_or(places.len());
    let last = *places.get(end.checked_sub(1)?)?;
    let is_name = |at: usize| program.text(at).starts_with(|c: char| c.is_alphabetic() || c == '_');
    match text(0) {
        "const" => return Some(("constant", last)),
        "typedef" => return Some(("type", last)),
        "return" | "transition" | "if" | "else" | "exit" => return None,
        _ => {}
    }
    if !is_name(last) || end < 2 || program.tokens[last].is_part {
        return None;
    }
    let is_made = text(end - 2) == ")" && is_name(places[0]);
    let is_type =
        text(0) == "bool" || text(0).ends_with("_t") || ["bit", "int"].contains(&text(0)) && text(1) == "<";
    let is_variable = is_type && (end == 2 || text(end - 2) == ">");
    match (is_made, is_variable) {
        (true, _) => Some(("object", last)),
        (_, true) => Some(("variable", last)),
        _ => None,
    }
}

/// Actions of tables with constant entries that no entry names.
fn of_tables(program: &Program<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    let of = |table: usize, what: &str| -> Option<&Block<'_>> {
        program.blocks.iter().find(|block| block.around == Some(table) && block.opener.contains(&what))
    };
    for (number, table) in program.blocks.iter().enumerate() {
        let ["table", name] = table.opener[..] else { continue };
        let (Some(actions), Some(entries)) = (of(number, "actions"), of(number, "entries")) else { continue };
        for at in program.plain(actions.tokens.clone()).filter(|at| ![";", "}"].contains(&program.text(*at)))
        {
            let action = program.text(at);
            let is_default =
                |at: usize| program.text(at - 1) == "=" && program.text(at - 2) == "default_action";
            let mut uses = program.uses(action, at, table.tokens.clone());
            if !uses.any(|at| entries.tokens.contains(&at) || is_default(at)) {
                faults.push(format!("action {action} is in no entry of table {name}"));
            }
        }
    }
    faults
}

/// Fields of structs that nothing reads, headers that a frame never has, and fields of the program's own headers that it does
/// not name.
fn of_fields(program: &Program<'_>) -> Vec<String> {
    let structs = structs(program);
    let mut read: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut named = read.clone();
    let mut follow = |root: &str, name: &str, declared: usize, within: Range<usize>| {
        for at in program.uses(name, declared, within) {
            let (mut kind, mut at, mut last) = (root, at, None);
            while program.text(at + 1) == "."
                && let Some((key, fields)) = structs.get_key_value(kind)
                && let Some((field, of)) = fields.iter().find(|(field, _)| *field == program.text(at + 2))
            {
                last = Some((*key, *field));
                named.extend(last);
                read.extend(last.filter(|_| program.text(at + 3) == "."));
                (kind, at) = (of, at + 2);
            }
            // A header of the program's own has to be made somewhere, too.
            let is_emitted = program.text(at.saturating_sub(4)) == "emit" && !FORMATS.contains(&kind);
            read.extend(last.filter(|_| !program.is_assigned(at + 1) && !is_emitted));
        }
    };
    for block in &program.blocks {
        let opens = program.plain(block.head.clone()).find(|at| program.text(*at) == "(");
        let declares = matches!(block.opener.first(), Some(&("control" | "parser" | "void")));
        for (kind, at) in opens.filter(|_| declares).map(|at| program.parameters(at)).unwrap_or_default() {
            follow(kind, program.text(at), at, block.tokens.clone());
        }
    }
    // Variables of a header's or a struct's type.
    for statement in &program.statements {
        let declared = declaration(program, statement.tokens.clone(), statement.block);
        if let Some(("variable", at)) = declared {
            follow(program.text(at - 1), program.text(at), at, program.range(statement.block));
        }
    }
    // A header that is emitted by its type has all its fields in a row.
    let is_emitted = |name: &str| {
        let at = (0..program.tokens.len())
            .find(|at| program.text(*at) == name && *at > 1 && program.text(at - 2) == "emit");
        at.is_some()
    };
    let mut faults = Vec::new();
    for (name, fields) in structs.iter().filter(|(name, _)| !FORMATS.contains(name) && !is_emitted(name)) {
        let is_header = program.blocks.iter().any(|block| block.opener == ["header", *name]);
        let is_kept = is_header || !name.contains("metadata") && !name.contains("headers");
        for (field, _) in fields {
            let place = (*name, *field);
            if !is_kept && !read.contains(&place) {
                faults.push(format!("field {field} of {name} is not read"));
            } else if is_kept && !named.contains(&place) && !is_filler(field) {
                faults.push(format!("field {field} of {name} is not named"));
            }
        }
    }
    faults
}

/// Whether a field only fills a header, or the word of which another one is a part.
fn is_filler(field: &str) -> bool {
    ["padding", "unused"].contains(&field) || field.ends_with("_0")
}

/// Fields and their types of all structs and headers.
fn structs<'a>(program: &Program<'a>) -> BTreeMap<&'a str, Vec<(&'a str, &'a str)>> {
    let mut structs: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for (number, block) in program.blocks.iter().enumerate() {
        let ["struct" | "header", name] = block.opener[..] else { continue };
        let own = program.statements.iter().filter(|statement| statement.block == Some(number));
        let fields = own.filter_map(|statement| {
            let places: Vec<usize> = program.plain(statement.tokens.clone()).collect();
            Some((program.text(*places.last()?), program.text(*places.first()?)))
        });
        structs.insert(name, fields.collect());
    }
    structs
}
