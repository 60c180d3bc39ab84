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

/// Whether a file holds a program for simple_switch: a parser and the two pipelines, without the name of another target.
fn is_program(text: &str) -> bool {
    let Ok(json) = serde_json::from_str::<serde_json::Value>(text) else { return false };
    let names = |part: &str| -> Vec<&str> {
        json[part].as_array().into_iter().flatten().filter_map(|one| one["name"].as_str()).collect()
    };
    let is_other = json["program"].is_null() && json["__meta__"].is_null();
    let pipelines = names("pipelines");
    !is_other
        && !names("parsers").is_empty()
        && pipelines.contains(&"ingress")
        && pipelines.contains(&"egress")
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
    let (mut programs, mut refused) = (0, Vec::new());
    for path in &paths {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if !is_program(&text) {
            continue;
        }
        programs += 1;
        let name = path.display().to_string();
        let loaded = p4rack_bmv2::read(&text, &name, None).and_then(|compiled| {
            Pipeline::compile(&compiled.program).map_err(|error| format!("{name}: {error}"))
        });
        if let Err(why) = loaded {
            refused.push(why);
        }
    }
    println!(
        "{} of {programs} programs load, of {} files\n{}",
        programs - refused.len(),
        paths.len(),
        refused.join("\n")
    );
    assert!(refused.len() < programs, "none loads");
    // It uses a value set with keys of different widths, which the language has not.
    let names = ["parse_vset.json"];
    let unknown: Vec<&String> =
        refused.iter().filter(|why| !names.iter().any(|name| why.contains(name))).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
}
