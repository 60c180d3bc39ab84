//! Reads the definitions, imports and names of a Rust file: just enough of the language to follow paths.

use std::collections::BTreeSet;

/// Keywords that precede a name being defined.
const DEFINES: &[&str] =
    &["fn", "struct", "enum", "union", "trait", "type", "const", "static", "macro_rules"];

/// A module and the names in it.
#[derive(Debug, Default)]
pub struct Module {
    /// Path from the workspace.
    pub file: String,
    /// Names of its items, including nested ones.
    pub defines: BTreeSet<String>,
    /// Names imported by `use`.
    pub imports: Vec<Import>,
    /// Paths of two or more names outside of `use`.
    paths: Vec<Vec<String>>,
    /// Single names outside of `use`.
    words: BTreeSet<String>,
}

/// A name imported by `use`.
#[derive(Debug, PartialEq, Eq)]
pub struct Import {
    /// Name within the module; `*` for a glob.
    pub name: String,
    /// Where it comes from, as written.
    pub path: Vec<String>,
    /// Whether it is re-exported.
    public: bool,
}

impl Module {
    /// Adds the contents of a file.
    pub fn read(&mut self, text: &str) {
        let tokens = without_tests(tokens(text));
        let mut at = 0;
        let mut public = false;
        // Inline modules around a token: the depth of braces at which each ends.
        let (mut depth, mut inline) = (0, Vec::new());
        while at < tokens.len() {
            let token = tokens[at].as_str();
            let next = tokens.get(at + 1).map_or("", String::as_str);
            match token {
                "use" => {
                    let end =
                        tokens[at..].iter().position(|token| token == ";").map_or(tokens.len(), |n| at + n);
                    import(&tokens[at + 1..end], &mut Vec::new(), public, &mut self.imports);
                    at = end;
                }
                "mod" if tokens.get(at + 2).is_some_and(|token| token == "{") => inline.push(depth),
                "{" => depth += 1,
                "}" => {
                    depth -= 1;
                    inline.pop_if(|end| *end >= depth);
                }
                "pub" if next == "(" => {
                    at += tokens[at..].iter().position(|token| token == ")").unwrap_or(1);
                    public = true;
                    at += 1;
                    continue;
                }
                _ if DEFINES.contains(&token) && is_name(next) => {
                    self.defines.insert(next.to_owned());
                    at += 1;
                }
                "macro_rules" => {
                    self.defines.extend(tokens.get(at + 2).cloned());
                }
                _ if is_name(token) => {
                    let mut path = vec![token.to_owned()];
                    while tokens.get(at + 1).is_some_and(|token| token == "::")
                        && let Some(name) = tokens.get(at + 2).filter(|name| is_name(name))
                    {
                        path.push(name.clone());
                        at += 2;
                    }
                    let own = path.iter().take_while(|name| *name == "super").count().min(inline.len());
                    path.drain(..own);
                    match path.len() {
                        1 => self.words.extend(path),
                        _ => self.paths.push(path),
                    }
                }
                _ => {}
            }
            public = token == "pub";
            at += 1;
        }
    }

    /// Paths of its dependencies: those it writes out, and those it imports. Mere re-exports are not among
    /// them.
    pub fn dependencies(&self) -> impl Iterator<Item = &[String]> {
        let needed = |import: &&Import| !import.public || self.words.contains(&import.name);
        let imports = self.imports.iter().filter(needed).map(|import| import.path.as_slice());
        self.paths.iter().map(Vec::as_slice).chain(imports)
    }
}

/// Reads a tree of imports: `a::{b, c as d, e::*}`.
fn import(tree: &[String], before: &mut Vec<String>, public: bool, imports: &mut Vec<Import>) {
    let outer = before.len();
    let mut at = 0;
    while at < tree.len() {
        match tree[at].as_str() {
            "::" => {}
            "{" => {
                let mut depth = 0;
                let mut start = at + 1;
                for (n, token) in tree.iter().enumerate().skip(at) {
                    depth += i32::from(token == "{") - i32::from(token == "}");
                    if (token == "," && depth == 1) || depth == 0 {
                        import(&tree[start..n], before, public, imports);
                        start = n + 1;
                    }
                    if depth == 0 {
                        break;
                    }
                }
                before.truncate(outer);
                return;
            }
            name => before.push(name.to_owned()),
        }
        at += 1;
    }
    if before.len() > outer {
        let name = before[before.len() - 1].clone();
        if before.len() >= 2 && before[before.len() - 2] == "as" {
            before.truncate(before.len() - 2);
        }
        if before.last().is_some_and(|last| last == "self") && before.len() > 1 {
            before.pop();
        }
        let name = if name == "self" { before[before.len() - 1].clone() } else { name };
        imports.push(Import { name, path: before.clone(), public });
    }
    before.truncate(outer);
}

/// Drops tokens that are compiled for tests only.
fn without_tests(tokens: Vec<String>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let attribute = ["#", "[", "cfg", "(", "test", ")", "]"];
        if tokens[at..].iter().take(attribute.len()).eq(attribute) {
            // The following item ends with its braces, or with a semicolon before any.
            let mut depth = 0;
            at += attribute.len();
            while let Some(token) = tokens.get(at) {
                at += 1;
                depth += i32::from(token == "{") - i32::from(token == "}");
                if depth == 0 && (token == "}" || token == ";") {
                    break;
                }
            }
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Splits a text into names, `::` and single signs. Omits comments, strings and numbers.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if first == '"' {
            string(rest)
        } else if let Some(length) = raw_string(rest) {
            length
        } else if first == '\'' {
            quoted(rest)
        } else if first.is_numeric() {
            word
        } else if word > 0 {
            tokens.push(rest[..word].to_owned());
            word
        } else if rest.starts_with("::") {
            tokens.push("::".to_owned());
            2
        } else {
            if !first.is_whitespace() {
                tokens.push(first.to_string());
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    tokens
}

/// Length of a string in double quotes.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == '"' && !escaped {
            return at + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    text.len()
}

/// Length of `r"…"`, `br#"…"#` and the like.
fn raw_string(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('b').or(text.strip_prefix('c')).unwrap_or(text).strip_prefix('r')?;
    let hashes = inner.find(|c| c != '#')?;
    let body = inner[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", &inner[..hashes]);
    Some(text.len() - body.len() + body.find(&end).map_or(body.len(), |at| at + end.len()))
}

/// Length of a quoted character, or of the quote that starts a lifetime.
fn quoted(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), _) => text[3..].find('\'').map_or(text.len(), |at| at + 4),
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        let mut module = Module::default();
        module.read(text);
        let mut paths: Vec<String> = module.dependencies().map(|path| path.join("::")).collect();
        paths.sort();
        paths
    }

    #[test]
    fn trees_of_imports_are_read() {
        assert_eq!(
            paths("use a::{b, c as d, e::{f, *}, self}; use ::g::h;"),
            ["a", "a::b", "a::c", "a::e::*", "a::e::f", "g::h"]
        );
    }

    #[test]
    fn paths_in_code_are_read() {
        assert_eq!(
            paths("fn f<'a>(x: &'a crate::T) -> b'x' { c::<d>::e(); '\\'' ; m::n(1.0) }"),
            ["crate::T", "m::n"]
        );
        assert_eq!(
            paths("mod inner { fn f() { super::g::h(); } } fn k() { super::g::h() }"),
            ["g::h", "super::g::h"]
        );
    }

    #[test]
    fn what_is_only_handed_on_is_not_needed() {
        assert_eq!(paths("pub use a::B; pub(crate) use c::D; pub use e::F; fn f(_: F) {}"), ["e::F"]);
    }

    #[test]
    fn strings_and_tests_are_passed_over() {
        assert!(paths("const A: &str = \"a::b \\\" c::d\"; const B: &str = r#\"e::f \" g::h\"#;").is_empty());
        assert!(paths("#[cfg(test)] use a::b; #[cfg(test)] mod t { use c::d; mod u {} }").is_empty());
    }
}
