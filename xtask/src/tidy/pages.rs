//! Markdown pages: their links lead somewhere. Pages and comments: their words are plain.

use super::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Words that hide a subject, a number or a time. A plain sentence names them: which host, how many, when.
const VAGUE: &[&str] = &[
    "anew",
    "at once",
    "by itself",
    "everybody",
    "likewise",
    "meanwhile",
    "nobody",
    "seldom",
    "so many",
    "somebody",
    "tells",
    "whoever",
    "whom",
];

/// Links to files or headings that don't exist.
pub fn dead_links(sources: &[Source]) -> Vec<String> {
    let pages = || sources.iter().filter(|source| source.ends_in(&["md"]));
    let headings: BTreeMap<&Path, BTreeSet<String>> =
        pages().map(|page| (page.path.as_path(), anchors(&page.text))).collect();
    let mut dead = Vec::new();
    for page in pages() {
        for (line, target) in links(&page.text) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = match file {
                "" => page.path.clone(),
                _ => joined(page.path.parent().unwrap_or(Path::new("")), file),
            };
            let there = sources.iter().any(|source| source.path.starts_with(&path));
            let known = anchor.is_empty()
                || headings.get(path.as_path()).is_some_and(|headings| headings.contains(anchor));
            if !there || !known {
                dead.push(format!("{}: the link `{target}` leads nowhere", page.place(line)));
            }
        }
    }
    dead
}

/// Files of which every line is read: their texts stand in comments at ends of lines and in strings, and their code has
/// none of the words.
const READ_WHOLE: &[&str] = &["h", "hbs", "proto", "py", "toml"];

/// Uses of [`VAGUE`] words on a page, in Rust's comments that have lines of their own, or anywhere in files of
/// [`READ_WHOLE`].
pub fn vague_words(source: &Source) -> Vec<String> {
    let lines: Vec<(usize, String)> = if source.ends_in(&["md"]) {
        prose(&source.text).collect()
    } else if source.ends_in(&["rs"]) {
        comments(&source.text).collect()
    } else if source.ends_in(READ_WHOLE) {
        source.text.lines().enumerate().map(|(n, line)| (n + 1, without_code(line))).collect()
    } else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (line, text) in lines {
        let text = format!(" {} ", text.to_lowercase().replace(|c: char| !c.is_alphanumeric(), " "));
        let words = VAGUE.iter().filter(|word| text.contains(&format!(" {word} ")));
        found.extend(words.map(|word| format!("{}: say it without \"{word}\"", source.place(line))));
    }
    found
}

/// Comment lines, with their numbers, and without code spans.
fn comments(text: &str) -> impl Iterator<Item = (usize, String)> {
    let lines = text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with("//"));
    lines.map(|(n, line)| (n + 1, without_code(line)))
}

/// Lines outside of code blocks, with their numbers, and without code spans.
fn prose(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut inside = false;
    text.lines().enumerate().filter_map(move |(n, line)| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        (!inside && !fence).then(|| (n + 1, without_code(line)))
    })
}

/// The line with empty code spans.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

/// Targets of links to this repository's files.
fn links(text: &str) -> Vec<(usize, &str)> {
    let wanted: BTreeSet<(usize, String)> = prose(text)
        .flat_map(|(line, shown)| {
            let targets = shown.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
            targets.map(|(target, _)| (line, target.to_owned())).collect::<Vec<_>>()
        })
        .collect();
    let of_line = |(line, target): &(usize, String)| {
        let text = text.lines().nth(line - 1)?;
        let at = text.find(&format!("]({target})"))? + 2;
        Some((*line, &text[at..at + target.len()]))
    };
    let elsewhere = |target: &str| target.contains("://") || target.starts_with("mailto:");
    wanted.iter().filter_map(of_line).filter(|(_, target)| !elsewhere(target)).collect()
}

/// Anchors of a page's headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut inside = false;
    for line in text.lines() {
        inside ^= line.trim_start().starts_with("```");
        let Some(heading) = line.strip_prefix('#').filter(|_| !inside) else { continue };
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor = kept.collect::<String>().replace(' ', "-");
        // A heading that occurs again gets a number.
        let again = (1..).map(|n| format!("{anchor}-{n}"));
        let free = std::iter::once(anchor.clone()).chain(again).find(|one| !anchors.contains(one));
        anchors.extend(free);
    }
    anchors
}

/// `folder/file` without `.` and `..`.
fn joined(folder: &Path, file: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in folder.join(file).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.into() }
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let there = page("docs/a.md", "# A\n## What's `up`?\n## Twice\n## Twice\n");
        let good = "[x](docs/a.md#whats-up) [y](docs/a.md#twice-1) [z](docs/) [w](https://x.y/z#q) `[v](u)`\n```text\n[t](s)\n```\n";
        assert!(dead_links(&[there, page("README.md", good)]).is_empty());
        let there = || page("docs/a.md", "# A\n[up](../README.md)\n[here](#a)\n");
        let dead = dead_links(&[there(), page("README.md", "\n[x](docs/b.md) [y](docs/a.md#b)\n")]);
        assert_eq!(
            dead,
            [
                "README.md:2: the link `docs/a.md#b` leads nowhere",
                "README.md:2: the link `docs/b.md` leads nowhere"
            ]
        );
    }

    #[test]
    fn vague_words_are_found() {
        assert_eq!(vague_words(&page("a.md", "x\nSo many, whoever asks\n")).len(), 2);
        assert!(vague_words(&page("a.md", "`nobody`\n```sh\nsu nobody\n```\n")).is_empty());
        assert!(vague_words(&page("a.css", "/* nobody */")).is_empty());
    }

    #[test]
    fn vague_words_are_found_in_comments() {
        let text = "//! So many.\nfn f() {\n    /// Whoever.\n    // It tells.\n}\n";
        assert_eq!(
            vague_words(&page("a.rs", text)),
            [
                "a.rs:1: say it without \"so many\"",
                "a.rs:3: say it without \"whoever\"",
                "a.rs:4: say it without \"tells\""
            ]
        );
        for (path, text) in [
            ("a.p4.hbs", "bit<8> x; // whose, seldom"),
            ("a.toml", "doc = \"Of somebody.\""),
            ("a.proto", "// anew"),
            ("a.h", "int x; /* so many */"),
            ("a.py", "\"\"\"Tells.\"\"\""),
        ] {
            assert_eq!(vague_words(&page(path, text)).len(), 1, "{path}");
        }
        let code = "/// `tells` what is told.\nlet nobody = \"// whom\";\nf(nobody); // nobody\n";
        assert!(vague_words(&page("a.rs", code)).is_empty());
    }
}
