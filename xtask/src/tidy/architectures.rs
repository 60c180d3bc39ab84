//! Names of a P4 architecture stay in its modules.
//!
//! The names of an architecture are the identifiers of its include file, except plain words. In the front end
//! and the switch they may occur only in the folders `arch/`, in the generator in two files. A test of the
//! generator checks the templates (`codegen/tests/templates.rs`).

use super::Source;
use std::collections::BTreeSet;
use std::path::Path;

/// Folders that are checked, and the places in them where such names are allowed.
const ROOMS: &[&str] = &["p4/src", "switch/src", "codegen/src"];
const MODULES: &[&str] = &[
    "p4/src/sema/lower/arch",
    "switch/src/arch",
    "switch/src/compile/arch",
    "switch/src/switch/arch",
    "codegen/src/arch.rs",
    "codegen/src/render/supply.rs",
];
const INCLUDES: &str = "p4/include";
/// The include file of the language itself.
const CORE: &str = "core.p4";
/// Identifiers that are not specific to one architecture: general terms, P4Runtime's, or shared by several.
const COMMON: &[&str] = &[
    "ingress_port",
    "egress_port",
    "action_profile",
    "ActionProfile",
    "ActionSelector",
    "DirectCounter",
    "DirectMeter",
    "DirectRegister",
    "is_negative",
    "is_zero",
    "max_group_size",
    "session_id",
    "HashAlgorithm",
    "VerifyChecksum",
    "crc16",
    "crc16_custom",
    "crc32",
    "crc32_custom",
    "csum16",
    "xor16",
];

/// Names of an architecture outside of its modules.
pub(super) fn strays(sources: &[Source]) -> Vec<String> {
    let includes = |source: &&Source| source.path.starts_with(INCLUDES) && source.ends_in(&["p4"]);
    let (core, others): (Vec<&Source>, Vec<&Source>) =
        sources.iter().filter(includes).partition(|source| source.path.ends_with(CORE));
    let language: BTreeSet<&str> = core.iter().flat_map(|source| words(&source.text)).collect();
    let mut own: BTreeSet<&str> = others.iter().flat_map(|source| code_words(&source.text)).collect();
    own.extend(others.iter().filter_map(|source| source.path.file_stem()?.to_str()));
    own.retain(|word| is_name(word) && !language.contains(word) && !COMMON.contains(word));
    let inside = |source: &&Source| {
        let under =
            |folders: &[&str]| folders.iter().any(|folder| source.path.starts_with(Path::new(folder)));
        source.ends_in(&["rs"]) && under(ROOMS) && !under(MODULES) && !source.is_test()
    };
    let mut problems = Vec::new();
    for source in sources.iter().filter(inside) {
        for (number, line) in source.text.lines().enumerate() {
            for word in words(line).filter(|word| own.contains(word)) {
                problems.push(format!("{}: `{word}` belongs to one architecture", source.place(number + 1)));
            }
        }
    }
    problems
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

/// Identifiers in P4 text, without comments.
fn code_words(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| words(line.split("//").next().unwrap_or("")))
}

/// Whether an identifier is a coined name rather than a plain word: `mark_to_drop`, `clone3`, `V1Switch`.
fn is_name(word: &str) -> bool {
    let mut pairs = word.chars().zip(word.chars().skip(1));
    let starts = word.starts_with(|c: char| c.is_alphabetic());
    let long = word.len() > 3;
    starts
        && long
        && (word.contains('_')
            || pairs.any(|(a, b)| a.is_lowercase() && (b.is_uppercase() || b.is_numeric())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.into() }
    }

    #[test]
    fn an_architectures_names_stay_in_its_modules() {
        let include =
            || source("p4/include/some.p4", "// plain_comment\nstruct some_metadata_t { bit<9> out_port; }");
        let core = || source("p4/include/core.p4", "extern packet_in {}");
        let with = |path: &str, text: &str| strays(&[core(), include(), source(path, text)]);
        assert_eq!(
            with("switch/src/tm.rs", "a\nb.out_port"),
            ["switch/src/tm.rs:2: `out_port` belongs to one architecture"]
        );
        assert_eq!(with("p4/src/lib.rs", "\"some_metadata_t\"").len(), 1);
        assert!(with("switch/src/arch/some.rs", "out_port").is_empty());
        assert!(with("switch/tests/a.rs", "out_port").is_empty());
        assert!(with("p4/src/lib.rs", "packet_in plain_comment out_ports").is_empty());
    }
}
