//! Files of other compilers load.
//!
//! `BMV2_JSON=FOLDER` names a folder with BMv2 JSON; every file in it and below it that has parsers and BMv2's own pipelines is read and
//! loaded by the switch.

use p4rack_switch::Pipeline;
use std::io::Write;
use std::path::{Path, PathBuf};

fn files(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, out);
        } else if path.extension().is_some_and(|end| end == "json") {
            out.push(path);
        }
    }
}

/// Whether a refusal is of a program for simple_switch: not of another target's, of a part of one, or of other text.
fn is_program(refusal: &str) -> bool {
    let others = ["for another target", "is not BMv2's JSON", "is missing", "expected value at line 1"];
    !others.iter().any(|other| refusal.contains(other))
}

#[test]
fn files_of_other_compilers_load() {
    let Some(folder) = std::env::var_os("BMV2_JSON") else {
        let _ = writeln!(
            std::io::stderr(),
            "skipped: needs a folder of BMv2 JSON, get it by cloning https://github.com/p4lang/behavioral-model and setting \
             BMV2_JSON"
        );
        return;
    };
    let mut paths = Vec::new();
    files(Path::new(&folder), &mut paths);
    paths.sort();
    let mut refused = Vec::new();
    for path in &paths {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let name = path.display().to_string();
        let loaded = p4rack_bmv2::read(&text, &name, None).and_then(|compiled| {
            Pipeline::compile(&compiled.program).map_err(|error| format!("{name}: {error}"))
        });
        if let Err(why) = loaded {
            refused.push(why);
        }
    }
    println!("{} of {} load\n{}", paths.len() - refused.len(), paths.len(), refused.join("\n"));
    assert!(refused.len() < paths.len(), "none loads");
    // It uses a value set with keys of different widths, which the language has not.
    let names = ["parse_vset.json"];
    let is_known = |why: &&String| names.iter().any(|name| why.contains(name)) || !is_program(why);
    let unknown: Vec<&String> = refused.iter().filter(|why| !is_known(why)).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
}
