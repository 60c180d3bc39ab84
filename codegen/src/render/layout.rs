//! Indentation of the P4 text: templates do not know the depth of a slot.

const SPACES: usize = 4;

/// The text with each statement indented by the braces around it. A continued line keeps its distance to the line
/// before. Of several empty lines one is left, and none at the edges of a block.
pub(super) fn indented(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut braces, mut brackets, mut goes_on, mut moved) = (0usize, 0usize, false, 0isize);
    let (mut is_empty, mut opens) = (false, true);
    for line in text.lines() {
        let words = line.trim_start();
        if words.is_empty() {
            is_empty = true;
            continue;
        }
        if is_empty && !opens && !words.starts_with('}') {
            out.push('\n');
        }
        (is_empty, opens) = (false, code(words).ends_with('{'));
        let stood = line.len() - words.len();
        let code = code(words);
        let stands = if words.starts_with('#') {
            stood
        } else if brackets > 0 || goes_on {
            stood.saturating_add_signed(moved)
        } else {
            braces.saturating_sub(usize::from(code.starts_with('}'))) * SPACES
        };
        out.extend(std::iter::repeat_n(' ', stands));
        out.push_str(words);
        out.push('\n');
        if code.is_empty() || words.starts_with('#') {
            continue;
        }
        moved = stands as isize - stood as isize;
        for byte in code.bytes() {
            match byte {
                b'{' => braces += 1,
                b'}' => braces = braces.saturating_sub(1),
                b'(' | b'[' => brackets += 1,
                b')' | b']' => brackets = brackets.saturating_sub(1),
                _ => {}
            }
        }
        goes_on = !code.ends_with([';', '{', '}', ',']);
    }
    out
}

/// A line without its comment. No string of a program contains brackets or slashes.
pub(super) fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or_default().trim_end()
}

#[cfg(test)]
mod tests {
    use super::indented;

    #[test]
    fn statements_stand_as_deep_as_their_braces() {
        let text = "\ncontrol c() {\n\n// why\naction a(bit<8> x,\n         bit<8> y) {\n        if (x == 1 ||\n            y == 2) {\n    \
                    m = x // first\n        + y;\n}\n\n    }\n\n\n#define A {\n    table t { key = { m : exact; } }\n}\n";
        let expected = "control c() {\n    // why\n    action a(bit<8> x,\n             bit<8> y) {\n        if (x == 1 ||\n            y == 2) {\n            \
                        m = x // first\n                + y;\n        }\n    }\n\n#define A {\n    table t { key = { m : exact; } }\n}\n";
        assert_eq!(indented(text), expected);
        assert_eq!(indented(expected), expected);
    }
}
