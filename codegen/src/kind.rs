//! Kinds of files that commands read, so that an error can name the actual kind of a wrong file.

use std::fmt;
use std::path::Path;
use toml::{Table, Value};

/// Kind of a file by its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A rack description.
    Rack,
    /// A topology of several switches.
    Topology,
    /// An experiment of the simulator.
    Experiment,
    /// A sweep of experiments.
    Sweep,
    /// A P4 program.
    P4,
    /// A program in BMv2's JSON.
    Bmv2,
    /// A program's interface for P4Runtime, as text.
    P4Info,
    /// A program's interface for BFRuntime.
    BfRt,
    /// Entries of a program, in one of the formats that `p4rack p4 install` takes.
    Entries,
    /// Other JSON, such as a topology of the P4 tutorials.
    Json,
}

impl Kind {
    /// The kind of a text: by keys that only one kind of TOML has, else by such a line.
    pub fn of(text: &str) -> Option<Kind> {
        let lines = || text.lines().map(str::trim);
        if text.trim_start().starts_with('{') {
            return Some(Kind::of_json(text));
        }
        if let Ok(table) = toml::from_str::<Table>(text) {
            return Kind::of_table(&table);
        }
        if let Some(kind) =
            lines().find(|line| !line.is_empty() && !line.starts_with('#')).and_then(Kind::of_first)
        {
            return Some(kind);
        }
        if lines().any(|line| matches!(line, "[[switch]]" | "[[link]]")) {
            return Some(Kind::Topology);
        }
        // Parts of a description have kinds, too, and come in any order.
        if lines().any(|line| matches!(line, "[switch]" | "[[host]]")) {
            return Some(Kind::Rack);
        }
        lines().find_map(Kind::of_line)
    }

    /// The kind of a file: by its text, else by its name.
    pub fn of_file(text: &str, path: &Path) -> Option<Kind> {
        let is_called_json = path.extension().is_some_and(|ending| ending == "json");
        Kind::of(text).or(is_called_json.then_some(Kind::Json))
    }

    fn of_json(text: &str) -> Kind {
        // All of these are in every program, and in no topology.
        const PROGRAM: [&str; 3] = ["header_types", "parsers", "pipelines"];
        let json: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        let has = |key: &str| json.get(key).is_some();
        match () {
            () if PROGRAM.iter().all(|key| has(key)) => Kind::Bmv2,
            () if has("schema_version") && has("tables") => Kind::BfRt,
            () if has("table_entries") || has("multicast_group_entries") => Kind::Entries,
            () => Kind::Json,
        }
    }

    /// By the first line of a text: what protobuf's text format and lines of entries begin with.
    fn of_first(line: &str) -> Option<Kind> {
        let word = line.split([' ', ':', '{']).next().unwrap_or_default();
        let is_message = line[word.len()..].trim_start().starts_with(['{', ':']);
        match word {
            "pkg_info" | "tables" | "actions" | "type_info" if is_message => Some(Kind::P4Info),
            "updates" | "device_id" | "election_id" if is_message => Some(Kind::Entries),
            "--multicast" | "--clone" => Some(Kind::Entries),
            _ => {
                line.split(' ').any(|word| matches!(word, "--action" | "--default")).then_some(Kind::Entries)
            }
        }
    }

    fn of_table(table: &Table) -> Option<Kind> {
        // A rack has one switch, and its links are its hosts'.
        if table.get("switch").is_some_and(Value::is_array) || table.get("link").is_some_and(Value::is_array)
        {
            return Some(Kind::Topology);
        }
        let keys: [(&[&str], Kind); 3] = [
            (&["switch", "host"], Kind::Rack),
            (&["base", "vary", "case"], Kind::Sweep),
            (&["rack", "traffic", "kind", "duration_us"], Kind::Experiment),
        ];
        let has_one = |keys: &[&str]| keys.iter().any(|key| table.contains_key(*key));
        keys.into_iter().find(|(keys, _)| has_one(keys)).map(|(_, kind)| kind)
    }

    fn of_line(line: &str) -> Option<Kind> {
        const P4: [&str; 5] = ["#include ", "control ", "parser ", "header ", "package "];
        let key = line.split_once('=').map(|(key, _)| key.trim());
        match (line, key) {
            ("[rack]" | "[[traffic]]", _) | (_, Some("kind")) => Some(Kind::Experiment),
            (_, Some("base")) => Some(Kind::Sweep),
            _ => P4.iter().any(|word| line.starts_with(word)).then_some(Kind::P4),
        }
    }

    /// The command for such a file.
    pub fn command(self, file: &str) -> String {
        match self {
            Kind::Rack | Kind::Topology => format!("p4rack rack check {file}"),
            Kind::Experiment => format!("p4rack sim run {file}"),
            Kind::Sweep => format!("p4rack sim sweep {file} --out-dir DIR"),
            Kind::P4 => format!("p4rack p4 check {file}"),
            Kind::Bmv2 => format!("p4rack switch run {file}"),
            Kind::P4Info => format!("beside BMv2's JSON: p4rack p4 install PROGRAM.json --p4info {file}"),
            Kind::BfRt => "give the program's P4 text, from which p4rack makes the schema".to_owned(),
            Kind::Entries => format!("beside a program: p4rack p4 install PROGRAM --entries {file}"),
            Kind::Json => {
                format!("p4rack rack import {file} -o RACK.toml, or as a topology: p4rack lab {file}")
            }
        }
    }

    /// That a file is of this kind instead of the one that was wanted.
    pub fn instead_of(self, wanted: Kind) -> String {
        format!("is {self}, not {wanted}")
    }

    /// The error of a command that wants a program, if the text is of a file of another kind. What is called a program is one,
    /// whatever its lines look like, and what is JSON without a kind of its own is left to the reader of programs.
    pub fn no_program(text: &str, file: &str) -> Option<String> {
        let is_called_p4 = Path::new(file).extension().is_some_and(|ending| ending == "p4");
        let kind = Kind::of(text).filter(|_| !is_called_p4)?;
        match kind {
            Kind::P4 | Kind::Bmv2 | Kind::Json => None,
            kind => Some(format!("{file}: {}; {}", kind.instead_of(Kind::P4), kind.command(file))),
        }
    }

    /// The error of a command that wants entries, if the text is of a file of another kind.
    pub fn no_entries(text: &str, file: &str) -> Option<String> {
        match Kind::of(text)? {
            Kind::Entries | Kind::Json => None,
            kind => Some(format!("{file}: {}; {}", kind.instead_of(Kind::Entries), kind.command(file))),
        }
    }

    /// The error of a command that wants one kind of file, if the text is of another one: names the file's kind, and
    /// the command that takes it.
    pub fn mistaken(text: &str, file: &str, wanted: Kind) -> Option<String> {
        let kind = Kind::of(text).filter(|kind| *kind != wanted)?;
        Some(format!("{file}: {}; {}", kind.instead_of(wanted), kind.command(file)))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Rack => "a rack description",
            Kind::Topology => "a topology",
            Kind::Experiment => "an experiment of the simulator",
            Kind::Sweep => "a sweep of experiments",
            Kind::P4 => "a P4 program",
            Kind::Bmv2 => "a program in BMv2's JSON",
            Kind::P4Info => "a P4Info",
            Kind::BfRt => "a BFRuntime schema",
            Kind::Entries => "a file with entries",
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
        let files = |folder: &Path| -> Vec<(String, Option<Kind>)> {
            let paths = std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
            let read = |path: std::path::PathBuf| {
                let text = std::fs::read_to_string(&path).ok()?;
                Some((path.file_name()?.to_str()?.to_owned(), Kind::of(&text)))
            };
            paths.filter_map(read).collect()
        };
        for (name, kind) in files(&examples) {
            let expected = match name.rsplit_once('.') {
                // The one experiment among the descriptions.
                Some(("tcp-kernel", _)) => Kind::Experiment,
                Some((_, "toml")) => Kind::Rack,
                Some((_, "p4")) => Kind::P4,
                _ => continue,
            };
            assert_eq!(kind, Some(expected), "{name}");
        }
        for paper in std::fs::read_dir(examples.join("paper")).expect("the papers").flatten() {
            for (name, kind) in files(&paper.path()) {
                let Some(name) = name.strip_suffix(".toml") else { continue };
                let expected = if name.ends_with("sweep") { Kind::Sweep } else { Kind::Experiment };
                assert_eq!(kind, Some(expected), "{name}");
            }
        }
        assert_eq!(Kind::of(" {\"hosts\": 1}"), Some(Kind::Json));
        let program = "{\"header_types\": [], \"parsers\": [], \"pipelines\": []}";
        assert_eq!(Kind::of(program), Some(Kind::Bmv2));
        assert_eq!(Kind::of("{\"hosts\": {}, \"switches\": {}, \"links\": []}"), Some(Kind::Json));
        assert_eq!(Kind::of("name = \"x\"\n"), None);
        for (text, kind) in [
            ("# by p4c\npkg_info {\n  name: \"x\"\n}\n", Kind::P4Info),
            ("updates {\n  type: INSERT\n}\n", Kind::Entries),
            ("# routes\nroutes dst=10.0.0.0/8 --action drop\n", Kind::Entries),
            ("--multicast 1 1 2\n", Kind::Entries),
            ("{\"target\": \"bmv2\", \"table_entries\": []}", Kind::Entries),
            ("{\"schema_version\": \"1.0.0\", \"tables\": []}", Kind::BfRt),
        ] {
            assert_eq!(Kind::of(text), Some(kind), "{text}");
            assert!(
                Kind::no_program(text, "x").is_some() && Kind::no_program(text, "x.p4").is_none(),
                "{text}"
            );
            assert_eq!(Kind::no_entries(text, "x").is_none(), kind == Kind::Entries, "{text}");
        }
        // In any order and notation of tables.
        assert_eq!(
            Kind::of("workload = { kind = \"incast\" }\nswitch = { port_rate = \"1 Gb/s\" }\n"),
            Some(Kind::Rack)
        );
        assert_eq!(Kind::of("rack.hosts = 4\n[[case]]\nname = \"a\"\n"), Some(Kind::Sweep));
        assert_eq!(Kind::of("rack.hosts = 4\n"), Some(Kind::Experiment));
        assert_eq!(Kind::of("[[host]]\nname = \n"), Some(Kind::Rack), "broken TOML has lines");
        assert_eq!(Kind::of("[[switch]]\nname = \"s1\"\n"), Some(Kind::Topology));
        assert_eq!(Kind::of("[[link]]\nends = [\"h1\", \"s1:1\"]\n"), Some(Kind::Topology));
        assert_eq!(Kind::of("[[host]]\nname = \n[[link]]\n"), Some(Kind::Topology));
        assert_eq!(Kind::of("rack.hosts = 4\n[link]\njitter_ns = 1\n"), Some(Kind::Experiment));
    }
}
