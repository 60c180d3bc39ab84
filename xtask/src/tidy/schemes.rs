//! A protocol's names stay in its modules, and names of generated programs' objects in one place.
//!
//! In the generator a protocol may be named in its own folder, where protocols are listed, and where the crate exports it;
//! in the templates in its own folder alone. Tables, counters and registers of generated programs are named by the
//! generator's constants everywhere else, and schemes compared as values, not by how their names begin.
//!
//! In crates that run, simulate and measure racks, a protocol may be named in its own parts, which are listed with
//! their contents. All other code there calls the protocol's functions: the cost of a drop, its promises, its figures.

use super::Source;
use std::collections::BTreeSet;
use std::path::Path;

/// The folder of protocols, and the files beside it that may name them.
const PROTOCOLS: &str = "codegen/src/scheme";
const LISTED_IN: &[&str] = &["codegen/src/scheme/mod.rs", "codegen/src/lib.rs"];
/// Folders that know no protocol, beside a protocol's own.
const ROOMS: &[&str] = &["codegen/src", "p4src"];
/// Folders where protocols are named in their own parts alone, and these.
const RUNS: &[&str] = &["lab/src", "sim/src", "hosts/src", "cli/src"];
const PARTS: &[(&str, &str)] = &[
    ("lab/src/lib.rs", "lists modules"),
    ("lab/src/memory", "benchmarks of remote memory"),
    ("lab/src/store", "a store in remote memory"),
    ("lab/src/log_store", "a store over an offload engine"),
    ("lab/src/cached", "stores in cached regions of remote memory"),
    ("lab/src/ways.rs", "ways to remote memory"),
    ("lab/src/report/store.rs", "what the pages of stores say"),
    ("lab/src/hostile", "attacks on a protocol"),
    ("hosts/src/lib.rs", "lists modules"),
    ("hosts/src/memory", "nodes of remote memory"),
    ("hosts/src/remote", "ways to remote memory"),
    ("hosts/src/balloon", "memory nodes that lend extents"),
    ("hosts/src/clio", "boards and their clients"),
    ("hosts/src/cowbird", "an offload engine and its clients"),
    ("hosts/src/roce/port.rs", "which switches rewrite frames"),
    ("sim/src/lib.rs", "lists modules"),
    ("sim/src/kind.rs", "lists kinds of experiments"),
    ("sim/src/scheme", "watchers of schemes of frames"),
    ("sim/src/experiment", "parameters of schemes of frames"),
    ("sim/src/host.rs", "parameters that only experiments set"),
    ("sim/src/message.rs", "how a frame carries a message"),
    ("sim/src/record.rs", "steps of a traced message"),
    ("sim/src/traffic.rs", "loads in slots"),
    ("sim/src/sizes.rs", "published distributions"),
    ("sim/src/cache/rack/ways.rs", "ways to the pool of a rack"),
    ("sim/src/memory", "racks of remote memory"),
    ("sim/src/topology/memory", "remote memory in topologies"),
    ("sim/src/clio", "racks with boards"),
    ("sim/src/cowbird", "racks with an offload engine"),
    ("cli/src/main.rs", "lists commands"),
    ("cli/src/cmd/mod.rs", "lists commands"),
    ("cli/src/cmd/commands.rs", "pages of commands"),
    ("cli/src/cmd/pl2.rs", "a protocol's commands"),
    ("cli/src/cmd/clio", "a protocol's commands"),
    ("cli/src/cmd/cowbird", "a protocol's commands"),
    ("cli/src/cmd/memory", "remote memory's commands"),
    ("cli/src/cmd/values.rs", "operations on values"),
    ("cli/src/cmd/adapter.rs", "addresses of a rack's adapters, an engine in its switch among them"),
    ("cli/src/cmd/host.rs", "a protocol's options of an agent"),
    ("cli/src/cmd/hostile.rs", "attacks on a protocol"),
    ("cli/src/cmd/simulated.rs", "an experiment in the words of a description"),
    ("cli/src/cmd/bench.rs", "lists benchmarks"),
    ("cli/src/cmd/bench_edm.rs", "a protocol's benchmark"),
    ("cli/src/cmd/bench_programs.rs", "programs of each protocol"),
    ("cli/src/cmd/bench_sim.rs", "schemes of frames"),
    ("cli/src/cmd/sim/faults.rs", "remote memory under faults"),
    ("cli/src/cmd/sim/kinds", "lists kinds of experiments"),
    ("cli/src/cmd/sim/report/golden.rs", "a published table"),
];
/// The protocol that has a part in every room, by which the table of ARCHITECTURE.md is checked, and the table's heading.
const EVERYWHERE: &str = "edm";
const TABLE: &str = "## What to touch";
/// Where generated names are said.
const GENERATOR: &[&str] = &["codegen", "p4src", "xtask/src/tidy"];

/// Code of a source without comments and its own tests: line numbers and lines.
fn code(source: &Source) -> impl Iterator<Item = (usize, &str)> {
    let is_test =
        |lines: &[&str]| lines[0] == "#[cfg(test)]" && lines[1].contains("mod ") && lines[1].ends_with('{');
    let lines: Vec<&str> = source.text.lines().collect();
    let end = lines.windows(2).position(is_test).unwrap_or(lines.len());
    let lines = lines.into_iter().take(end).enumerate().map(|(number, line)| (number + 1, line));
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// Whether a line names the protocol; names of files, behind a slash, don't count.
fn names(line: &str, protocol: &str) -> bool {
    let words = line.split(|c: char| !c.is_alphanumeric() && c != '/');
    words.flat_map(|word| word.split('/').take(1)).any(|word| word.eq_ignore_ascii_case(protocol))
}

/// Protocols named in `RUNS` elsewhere than in their parts, and parts that name none.
fn outside_of_parts(sources: &[Source], protocols: &BTreeSet<String>) -> Vec<String> {
    let mut problems = Vec::new();
    let mut used = BTreeSet::new();
    for source in sources.iter().filter(|source| source.ends_in(&["rs"]) && !source.is_test()) {
        let below = |folder: &str| source.path.starts_with(Path::new(folder));
        if !RUNS.iter().any(|room| below(room)) {
            continue;
        }
        let part = PARTS.iter().find(|(part, _)| below(part));
        for (number, line) in code(source) {
            let Some(name) = protocols.iter().find(|name| names(line, name)) else { continue };
            match part {
                Some((part, _)) => _ = used.insert(part),
                None => problems.push(format!(
                    "{}: `{name}` is one protocol's: ask `Protocol` or `Definition`, or list the part in tidy",
                    source.place(number)
                )),
            }
        }
    }
    let has = |part: &str| sources.iter().any(|source| source.path.starts_with(Path::new(part)));
    let idle = PARTS.iter().filter(|(part, _)| has(part) && !used.contains(part));
    problems
        .extend(idle.map(|(part, why)| format!("{part} ({why}) names no protocol: take it off the list")));
    problems
}

/// Differences between the table of ARCHITECTURE.md and the files of the protocol that has a part everywhere: files
/// that name it and are not in the table, and places of the table that don't exist.
pub(super) fn untold(sources: &[Source]) -> Vec<String> {
    let Some(page) = sources.iter().find(|source| source.path == Path::new("ARCHITECTURE.md")) else {
        return vec!["ARCHITECTURE.md is missing".to_owned()];
    };
    let rows =
        page.text.lines().skip_while(|line| *line != TABLE).skip(1).skip_while(|line| !line.starts_with('|'));
    let cells = rows.take_while(|line| line.starts_with('|')).filter_map(|row| row.split('|').nth(3));
    let places: Vec<&str> =
        cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).filter(|at| at.contains('/')).collect();
    if places.is_empty() {
        return vec![format!("ARCHITECTURE.md: \"{TABLE}\" has no table of places")];
    }
    let mut problems = Vec::new();
    for place in &places {
        // A place is one of some protocol's.
        let names = ["edm", "pl2", "cowbird", "clio"].map(|name| place.replace("NAME", name));
        let exists = |name: &String| sources.iter().any(|source| source.path.starts_with(Path::new(name)));
        if !names.iter().any(exists) {
            problems.push(format!(
                "ARCHITECTURE.md: \"{TABLE}\": `{place}` is no file or folder of any protocol"
            ));
        }
    }
    let is_told =
        |path: &Path| places.iter().any(|place| path.starts_with(place.replace("NAME", EVERYWHERE)));
    let sources = sources.iter().filter(|source| source.ends_in(&["rs"]) && !source.is_test());
    let is_crate = |path: &Path| path.iter().any(|folder| folder == "src") && !path.starts_with("xtask");
    let sources = sources.filter(|source| is_crate(&source.path));
    for source in sources.filter(|source| !is_told(&source.path)) {
        if let Some((number, _)) = code(source).find(|(_, line)| names(line, EVERYWHERE)) {
            problems.push(format!(
                "{}: `{EVERYWHERE}` is named, and ARCHITECTURE.md's \"{TABLE}\" does not have the place",
                source.place(number)
            ));
        }
    }
    problems
}

/// Names in forbidden places.
pub(super) fn strays(sources: &[Source]) -> Vec<String> {
    let in_folder = |source: &Source| {
        let mut below = source.path.strip_prefix(PROTOCOLS).ok()?.components();
        let first = below.next()?.as_os_str().to_str()?.to_owned();
        below.next().map(|_| first)
    };
    let protocols: BTreeSet<String> = sources.iter().filter_map(in_folder).collect();
    // Spelled apart, so that this file does not contain the names that it searches for.
    let objects = ["RackIngress", "RackEgress"].map(|control| format!("{control}."));
    let mut problems = outside_of_parts(sources, &protocols);
    for source in sources.iter().filter(|source| source.ends_in(&["rs", "py", "hbs", "toml"])) {
        let below = |folder: &&str| source.path.starts_with(Path::new(folder));
        let foreign = protocols.iter().filter(|name| {
            let own = [format!("{PROTOCOLS}/{name}"), format!("p4src/{name}")];
            ROOMS.iter().any(&below) && !own.iter().any(|own| below(&own.as_str()))
        });
        let foreign: Vec<&String> = foreign.filter(|_| !LISTED_IN.iter().any(&below)).collect();
        for (number, line) in source.text.lines().enumerate() {
            let place = || source.place(number + 1);
            let words = || line.split(|c: char| !c.is_alphanumeric());
            for name in foreign.iter().filter(|name| words().any(|word| word.eq_ignore_ascii_case(name))) {
                problems.push(format!("{}: `{name}` is one protocol's", place()));
            }
            if GENERATOR.iter().any(&below) {
                continue;
            }
            if objects.iter().any(|control| line.contains(control)) {
                problems.push(format!("{}: take the object's name from the generator", place()));
            }
            if protocols.iter().any(|name| line.contains(&format!("starts_with(\"{name}"))) {
                problems.push(format!("{}: compare schemes, not their names", place()));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocols_names_stay_in_its_modules() {
        let own = || Source { path: "codegen/src/scheme/some/mod.rs".into(), text: "struct Some;".into() };
        let with =
            |path: &str, text: &str| strays(&[own(), Source { path: path.into(), text: text.into() }]).len();
        for (path, text, found) in [
            ("codegen/src/rack/mod.rs", "use super::some::Some;", 1),
            ("codegen/src/rack/mod.rs", "something(awesome)", 0),
            ("codegen/src/scheme/other/mod.rs", "some", 1),
            ("codegen/src/scheme/mod.rs", "pub mod some;", 0),
            ("codegen/src/lib.rs", "pub use scheme::some::Some;", 0),
            ("p4src/shared/parser.p4.hbs", "{{#if some}}", 1),
            ("p4src/shared/parser.p4.hbs", "hdr.some_header", 1),
            ("p4src/some/parser.p4.hbs", "{{#if some}}", 0),
            ("lab/src/measure.rs", "rack.protocol::<Some>()", 1),
            ("lab/src/measure.rs", "// Of Some.\nlet example = \"docs/some.md\";", 0),
            ("lab/src/measure.rs", "#[cfg(test)]\nmod tests {\n    Some;\n}", 0),
            ("lab/src/measure_tests.rs", "rack.protocol::<Some>()", 0),
            ("sim/src/switch/p4.rs", "let awesome = some::COUNTER;", 1),
            ("lab/src/store/run.rs", "rack.protocol::<Some>()", 0),
            ("lab/src/store/run.rs", "rack.protocols()", 1),
            ("lab/src/measure.rs", "name.starts_with(\"some\")", 2),
            ("lab/src/measure.rs", "name.starts_with(\"other\")", 0),
            ("lab/tests/up.rs", &["\"Rack", "Ingress.drops\""].concat(), 1),
            ("tests/python/test_x.py", &["points[\"Rack", "Egress.seen\"]"].concat(), 1),
            ("codegen/tests/x.rs", &["\"Rack", "Ingress.drops\""].concat(), 0),
        ] {
            assert_eq!(with(path, text), found, "{path}: {text}");
        }
    }
    #[test]
    fn the_table_names_what_a_protocol_touches() {
        let page = |place: &str| Source {
            path: "ARCHITECTURE.md".into(),
            text: format!(
                "{TABLE}\n\n| | left | right |\n|---|---|---|\n| hosts | `x/` | `fabric/src/NAME/`, {place} |\n"
            ),
        };
        let file = |path: &str| Source { path: path.into(), text: "use crate::edm::Node;".into() };
        let problems =
            |place: &str, path: &str| untold(&[page(place), file("fabric/src/edm/mod.rs"), file(path)]).len();
        assert_eq!(problems("`sim/src/memory/`", "sim/src/memory/mod.rs"), 0);
        assert_eq!(
            problems("`sim/src/memory/`", "sim/src/world/mod.rs"),
            2,
            "a stray file, and a place that is not there"
        );
        assert_eq!(untold(&[page("none")]).len(), 1, "no protocol has the folder");
        assert_eq!(untold(&[]).len(), 1);
    }
}
