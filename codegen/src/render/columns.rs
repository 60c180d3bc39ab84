//! Columns of the P4 text: templates do not know how long the names beside theirs are.
//!
//! Adjacent lines of one kind are a group, and their parts stand below each other:
//!
//! ```text
//! entries of tables, keys, cases of `select`   MATCHED : ACTION // why
//! assignments                                  PLACE = VALUE; // why
//! fields of structs and headers                TYPE NAME; // what it holds
//! constants                                    const TYPE NAME = VALUE; // what it stands for
//! ```
//!
//! A line that would become longer than [`LINE_MAX`] has its comment outside of the column; a group where that is not enough has
//! no columns.

use super::layout::code;

/// Characters of a line.
const LINE_MAX: usize = 130;

/// Content of a block, which decides how its lines are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    /// Keys of a table, constant entries, cases of a `select`.
    Entries,
    /// Fields of a struct or a header.
    Fields,
    /// Statements and declarations.
    Statements,
    /// Properties of a table, lists of actions.
    Other,
}

/// A line and its parts: the last one is its comment if it begins with slashes.
struct Row<'a> {
    block: Block,
    indent: usize,
    cells: Vec<&'a str>,
}

impl Row<'_> {
    /// Its parts without a comment.
    fn parts(&self) -> usize {
        self.cells.len() - self.cells.last().map_or(0, |last| usize::from(last.starts_with("//")))
    }
}

/// The text with each group in columns. Lines are indented already.
pub(super) fn aligned(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    let mut blocks: Vec<Block> = Vec::new();
    let mut group: Vec<(Option<Row<'_>>, &str)> = Vec::new();
    let (mut goes_on, mut brackets) = (false, 0usize);
    let mut opener = "";
    for line in text.lines() {
        let code = code(line);
        let words = code.trim_start();
        let block = blocks.last().copied();
        let row = if goes_on || brackets > 0 { None } else { row(line, block) };
        // Sentences between fields are about the fields behind them, and a statement may have several lines.
        let is_sentence = block == Some(Block::Fields) && words.is_empty() && !line.is_empty();
        let stays = is_sentence || goes_on || brackets > 0;
        let fits = |row: &Row<'_>| {
            group.iter().find_map(|(one, _)| one.as_ref()).is_none_or(|one| {
                one.block == row.block
                    && one.indent == row.indent
                    && one.cells[0].starts_with("const ") == row.cells[0].starts_with("const ")
            })
        };
        if !(stays || row.as_ref().is_some_and(fits)) {
            flush(&mut group, &mut out);
        }
        group.push((row, line));
        if words.is_empty() || words.starts_with('#') {
            continue;
        }
        if !goes_on && brackets == 0 {
            opener = words;
        }
        let last = code.rfind('{');
        for (at, byte) in code.bytes().enumerate() {
            match byte {
                b'{' if Some(at) == last && words.ends_with('{') => blocks.push(opened(opener, words)),
                b'{' => blocks.push(Block::Other),
                b'}' => drop(blocks.pop()),
                b'(' | b'[' => brackets += 1,
                b')' | b']' => brackets = brackets.saturating_sub(1),
                _ => {}
            }
        }
        goes_on = !words.ends_with([';', '{', '}', ',']);
    }
    flush(&mut group, &mut out);
    out
}

/// The block that a statement opens; `words` is its last line.
fn opened(opener: &str, words: &str) -> Block {
    let opener = opener.trim_start_matches("@hidden ");
    if words.ends_with("key = {") || words.ends_with("entries = {") || opener.starts_with("transition select")
    {
        Block::Entries
    } else if opener.starts_with("struct ") || opener.starts_with("header ") {
        Block::Fields
    } else if opener.starts_with("table ") || words.ends_with("= {") {
        Block::Other
    } else {
        Block::Statements
    }
}

/// The parts of a line, if it is of a kind that is set in columns.
fn row(line: &str, block: Option<Block>) -> Option<Row<'_>> {
    let code = code(line);
    let words = code.trim_start();
    let indent = code.len() - words.len();
    let goes_on = !words.ends_with([';', '{', '}', ',']) && block == Some(Block::Statements);
    if !words.ends_with(';') && !goes_on || words.starts_with('#') {
        return None;
    }
    let is_constant = words.starts_with("const ");
    let block = block.unwrap_or(Block::Statements);
    let mut cells = match block {
        Block::Entries => split(words, " : ")?.to_vec(),
        Block::Fields => words.rsplit_once(' ').map(|(kind, name)| vec![kind.trim_end(), name])?,
        Block::Statements if is_constant => {
            let [declared, value] = split(words, " = ")?;
            let (kind, name) = declared.rsplit_once(' ')?;
            vec![kind.trim_end(), name, value]
        }
        // Two statements in a line are not an assignment.
        Block::Statements if !words.trim_end_matches(';').contains(';') => split(words, " = ")?.to_vec(),
        Block::Statements | Block::Other => return None,
    };
    let comment = line[code.len()..].trim();
    cells.extend(Some(comment).filter(|comment| !comment.is_empty()));
    Some(Row { block, indent, cells })
}

/// A line at the first `mark` outside of brackets; the second part begins with the mark.
fn split<'a>(words: &'a str, mark: &str) -> Option<[&'a str; 2]> {
    let mut depth = 0usize;
    for (at, byte) in words.bytes().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b' ' if depth == 0 && words[at..].starts_with(mark) => {
                return Some([words[..at].trim_end(), words[at + 1..].trim_end()]);
            }
            _ => {}
        }
    }
    None
}

/// Writes a group, and empties it.
fn flush(group: &mut Vec<(Option<Row<'_>>, &str)>, out: &mut String) {
    let rows = || group.iter().filter_map(|(row, _)| row.as_ref());
    let most = rows().map(|row| row.cells.len()).max().unwrap_or(0);
    let widths: Vec<usize> =
        (0..most).map(|at| rows().map(|row| width(row, at)).max().unwrap_or(0)).collect();
    // All but the column of comments.
    let parts = rows().map(Row::parts).max().unwrap_or(1);
    let fewer = &widths[..parts - 1];
    let fits = |line: &str| line.chars().count() <= LINE_MAX;
    let is_narrow = rows().all(|row| fits(&written(row, fewer)));
    for (row, line) in group.iter() {
        match row {
            Some(row) => {
                let whole = Some(written(row, &widths)).filter(|whole| is_narrow && fits(whole));
                out.push_str(&whole.unwrap_or_else(|| written(row, if is_narrow { fewer } else { &[] })));
            }
            None => out.push_str(line),
        }
        out.push('\n');
    }
    group.clear();
}

/// Characters that a part takes of its column: none of the last part, and none of fields with an annotation.
fn width(row: &Row<'_>, at: usize) -> usize {
    let counts = at + 1 < row.cells.len() && !row.cells[0].starts_with('@');
    if counts { row.cells[at].chars().count() } else { 0 }
}

fn written(row: &Row<'_>, widths: &[usize]) -> String {
    let mut line = " ".repeat(row.indent);
    for (at, cell) in row.cells.iter().enumerate() {
        line.push_str(cell);
        if at + 1 < row.cells.len() {
            let width = widths.get(at).copied().filter(|_| !row.cells[0].starts_with('@')).unwrap_or(0);
            line.push_str(&" ".repeat(width.saturating_sub(cell.chars().count()) + 1));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::{LINE_MAX, aligned};

    fn shows(text: &str, expected: &str) {
        assert_eq!(aligned(text), expected);
        assert_eq!(aligned(expected), expected);
    }

    #[test]
    fn entries_keys_and_cases_stand_in_columns() {
        shows(
            "table t {\n    key = {\n        a.b   : exact;\n        a.long : ternary @name(\"x\");\n    }\n    const entries = {\n        \
             (A, 1) : x(); // why\n        (LONGER, _)   : y();\n        // Others.\n        _     : z(a, b);\n    }\n    size = 4;\n    \
             const default_action = NoAction();\n}\n",
            "table t {\n    key = {\n        a.b    : exact;\n        a.long : ternary @name(\"x\");\n    }\n    const entries = {\n        \
             (A, 1)      : x(); // why\n        (LONGER, _) : y();\n        // Others.\n        _ : z(a, b);\n    }\n    size = 4;\n    \
             const default_action = NoAction();\n}\n",
        );
        shows(
            "state s {\n    transition select(a,\n                      b) {\n        (0, 1) : x;\n        default    : accept;\n    }\n}\n",
            "state s {\n    transition select(a,\n                      b) {\n        (0, 1)  : x;\n        default : accept;\n    }\n}\n",
        );
    }

    #[test]
    fn assignments_stand_in_columns_until_something_else_follows() {
        shows(
            "apply {\n    a  = 1;\n    bbb = 2;\n    f();\n    bit<8> c = a == 1 ? 2 : 3;\n    if (a == 1) {\n        d    = 4; p = 1;\n    }\n    \
             e = 1 +\n        2;\n    ff  = 3;\n    g(h,\n      i);\n    j = 4;\n}\n",
            "apply {\n    a   = 1;\n    bbb = 2;\n    f();\n    bit<8> c = a == 1 ? 2 : 3;\n    if (a == 1) {\n        d    = 4; p = 1;\n    }\n    \
             e  = 1 +\n        2;\n    ff = 3;\n    g(h,\n      i);\n    j = 4;\n}\n",
        );
    }

    #[test]
    fn fields_and_constants_stand_in_columns() {
        shows(
            "const bit<8> A   = 1; // one\nconst port_t LONG = 23;\n\nstruct s_t {\n    bit<8> a; // one\n    // Two\n    port_t  bb;\n    \
             @x(C) bit<32> long_name;   // three\n    bit<16> ccc;  // four\n}\n",
            "const bit<8> A    = 1; // one\nconst port_t LONG = 23;\n\nstruct s_t {\n    bit<8>  a;   // one\n    // Two\n    port_t  bb;\n    \
             @x(C) bit<32> long_name; // three\n    bit<16> ccc; // four\n}\n",
        );
    }

    #[test]
    fn what_would_be_too_wide_has_fewer_columns() {
        let long = "x".repeat(LINE_MAX - 20);
        let half = "x".repeat(LINE_MAX / 2);
        shows(
            &format!("apply {{\n    a   = {half}; // short\n    bbb = 1; // one\n    c = 2; // {half}\n}}\n"),
            &format!(
                "apply {{\n    a   = {half}; // short\n    bbb = 1;{} // one\n    c   = 2; // {half}\n}}\n",
                " ".repeat(half.len() - 1)
            ),
        );
        shows(
            &format!("apply {{\n    a   = {long};\n    {long} = 1;\n}}\n"),
            &format!("apply {{\n    a = {long};\n    {long} = 1;\n}}\n"),
        );
    }
}
