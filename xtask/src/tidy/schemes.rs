//! What is one protocol's stays in its modules, and what a generated program calls its objects is said in one place.
//!
//! In the generator a protocol may be named in its own folder, where protocols are listed, and where the crate exports it;
//! in the templates in its own folder alone. Tables, counters and registers of generated programs are named by the
//! generator's constants everywhere else, and schemes compared as values, not by how their names begin.

use super::Source;
use std::collections::BTreeSet;
use std::path::Path;

/// The folder of protocols, and the files beside it that may name them.
const PROTOCOLS: &str = "codegen/src/scheme";
const LISTED_IN: &[&str] = &["codegen/src/scheme/mod.rs", "codegen/src/lib.rs"];
/// Folders that know no protocol, beside a protocol's own.
const ROOMS: &[&str] = &["codegen/src", "p4src"];
/// Where generated names are said.
const GENERATOR: &[&str] = &["codegen", "p4src", "xtask/src/tidy"];

/// Names that stand where they should not.
pub(super) fn strays(sources: &[Source]) -> Vec<String> {
    let in_folder = |source: &Source| {
        let mut below = source.path.strip_prefix(PROTOCOLS).ok()?.components();
        let first = below.next()?.as_os_str().to_str()?.to_owned();
        below.next().map(|_| first)
    };
    let protocols: BTreeSet<String> = sources.iter().filter_map(in_folder).collect();
    // Spelled apart, so that this file does not hold what it looks for.
    let objects = ["RackIngress", "RackEgress"].map(|control| format!("{control}."));
    let mut problems = Vec::new();
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
            ("lab/src/up.rs", "rack.protocol::<Some>()", 0),
            ("lab/src/up.rs", "name.starts_with(\"some\")", 1),
            ("lab/src/up.rs", "name.starts_with(\"other\")", 0),
            ("lab/tests/up.rs", &["\"Rack", "Ingress.drops\""].concat(), 1),
            ("tests/python/test_x.py", &["points[\"Rack", "Egress.seen\"]"].concat(), 1),
            ("codegen/tests/x.rs", &["\"Rack", "Ingress.drops\""].concat(), 0),
        ] {
            assert_eq!(with(path, text), found, "{path}: {text}");
        }
    }
}
