//! Kinds of files that commands read, so that a file of the wrong kind is named as what it is.

use std::fmt;

/// What a file looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A rack description.
    Rack,
    /// An experiment of the simulator.
    Experiment,
    /// A sweep of experiments.
    Sweep,
    /// A P4 program.
    P4,
    /// JSON, such as a topology of the P4 tutorials.
    Json,
}

impl Kind {
    /// The kind of a text, by the first line that only one kind has.
    pub fn of(text: &str) -> Option<Kind> {
        if text.trim_start().starts_with('{') {
            return Some(Kind::Json);
        }
        text.lines().find_map(|line| Kind::of_line(line.trim()))
    }

    fn of_line(line: &str) -> Option<Kind> {
        const P4: [&str; 5] = ["#include ", "control ", "parser ", "header ", "package "];
        let key = line.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        Some(match (line, key) {
            ("[switch]" | "[[host]]", _) => Kind::Rack,
            ("[rack]" | "[[traffic]]", _) => Kind::Experiment,
            (_, Some(("kind", "\"memory\"" | "\"cowbird\"" | "\"memory-table\""))) => Kind::Experiment,
            (_, Some(("base", _))) => Kind::Sweep,
            _ if P4.iter().any(|word| line.starts_with(word)) => Kind::P4,
            _ => return None,
        })
    }

    /// The command for such a file.
    pub fn command(self, file: &str) -> String {
        match self {
            Kind::Rack => format!("p4rack rack check {file}"),
            Kind::Experiment => format!("p4rack sim run {file}"),
            Kind::Sweep => format!("p4rack sim sweep {file} --out-dir DIR"),
            Kind::P4 => format!("p4rack p4 check {file}"),
            Kind::Json => format!("p4rack rack import {file} -o RACK.toml"),
        }
    }

    /// That a file is of this kind instead of what was `wanted`, such as "a rack description".
    pub fn instead_of(self, wanted: &str) -> String {
        format!("is {self}, not {wanted}")
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Rack => "a rack description",
            Kind::Experiment => "an experiment of the simulator",
            Kind::Sweep => "a sweep of experiments",
            Kind::P4 => "a P4 program",
            Kind::Json => "JSON",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Kind;
    use std::path::Path;

    /// All examples are what they are.
    #[test]
    fn examples_are_told_apart() {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
        let kind = |name: &str| Kind::of(&std::fs::read_to_string(examples.join(name)).expect(name));
        for rack in
            ["two-hosts.toml", "pl2-incast.toml", "edm-kv.toml", "cowbird-kv.toml", "cowbird-switch.toml"]
        {
            assert_eq!(kind(rack), Some(Kind::Rack), "{rack}");
        }
        for program in ["forward.p4", "tna-forward.p4"] {
            assert_eq!(kind(program), Some(Kind::P4), "{program}");
        }
        for paper in std::fs::read_dir(examples.join("paper")).expect("the papers").flatten() {
            for file in std::fs::read_dir(paper.path()).expect("their experiments").flatten() {
                let path = file.path();
                let name = path.display().to_string();
                let Some(name) = name.strip_suffix(".toml") else { continue };
                let text = std::fs::read_to_string(&path).expect("text");
                let expected = if name.ends_with("sweep") { Kind::Sweep } else { Kind::Experiment };
                assert_eq!(Kind::of(&text), Some(expected), "{name}");
            }
        }
        assert_eq!(Kind::of(" {\"hosts\": 1}"), Some(Kind::Json));
        assert_eq!(Kind::of("name = \"x\"\n"), None);
    }
}
