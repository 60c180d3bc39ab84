//! `p4rack p4 fit` and `p4 samples FOLDER fit`: estimates, refusals, and the chip's compiler beside them.

mod common;

use common::{p4rack, repo, stderr, stdout};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

fn run(args: &[&str]) -> Output {
    // No compiler on PATH: installed software must not matter.
    p4rack().arg("p4").args(args).env("PATH", "/nowhere").output().expect("p4rack starts")
}

/// A compiler that answers with this script's lines.
fn compiler(folder: &Path, script: &str) -> PathBuf {
    let path = folder.join("compiler");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a writable folder");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("permissions");
    path
}

/// Writes assembly in which ingress has this many stages into the folder behind `-o`.
fn assembly(stages: usize) -> String {
    let text: String =
        (0..stages).map(|n| format!("stage {n} ingress:\n  exact_match t{n} 0:\n    p4: {{ }}\n")).collect();
    format!(
        "while [ \"$1\" != -o ]; do shift; done\n/bin/mkdir -p $2/pipe\n/bin/cat > $2/pipe/p.bfa <<'END'\nversion:\n{text}END"
    )
}

#[test]
fn an_estimate_names_stages_and_says_that_it_is_one() {
    let program = repo("examples/tna-forward.p4").display().to_string();
    let told = run(&["fit", &program]);
    let text = stdout(&told);
    assert_eq!(told.status.code(), Some(0), "{}", stderr(&told));
    for part in
        ["pipe: about 1 of 12 stages of tofino", "Ingress.hosts", "estimate", "compiler: skipped: needs p4c"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json = run(&["fit", &program, "--json", "--chip", "tofino2"]);
    let value: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!((&value["estimate"], &value["stages"]), (&true.into(), &1.into()), "{value}");
    assert_eq!(value["stages_of_chip"], 20);
}

#[test]
fn a_refusal_names_its_rule_and_line() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let text = std::fs::read_to_string(repo("examples/tna-forward.p4")).expect("readable");
    let broken = text.replace("value = value + 1; seen", "value = value * 3; seen");
    let path = folder.path().join("broken.p4");
    std::fs::write(&path, &broken).expect("writable");
    let line = 1 + broken.lines().position(|line| line.contains("value * 3")).expect("it is there");
    let refused = run(&["fit", &path.display().to_string()]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("error: stateful-expression: a product"), "{}", stderr(&refused));
    assert!(stderr(&refused).contains(&format!("broken.p4:{line}:")), "{}", stderr(&refused));
    let other = run(&["fit", &repo("examples/forward.p4").display().to_string()]);
    assert_eq!(other.status.code(), Some(2));
    assert!(stderr(&other).contains("a program for v1model is for no chip"), "{}", stderr(&other));
}

#[test]
fn the_compilers_stages_stand_beside() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let program = repo("examples/tna-forward.p4");
    std::fs::create_dir(folder.path().join("samples")).expect("writable");
    std::fs::copy(&program, folder.path().join("samples/forward.p4")).expect("writable");
    let samples = folder.path().join("samples").display().to_string();
    let with = |script: &str| {
        let compiler = compiler(folder.path(), script).display().to_string();
        let one = run(&["fit", &program.display().to_string(), "--compiler", &compiler]);
        let all = run(&["samples", &samples, "fit", "--compiler", &compiler]);
        (stdout(&one), all.status.code(), stdout(&all))
    };
    let (one, code, all) = with(&assembly(2));
    assert!(one.contains("compiler: 2 stages") && one.contains("pipe stage 1 ingress: t1"), "{one}");
    assert_eq!(code, Some(0), "{all}");
    assert!(all.contains("1 of 1 programs that the compiler takes are within 1 stage of it"), "{all}");
    let (_, code, all) = with(&assembly(4));
    assert_eq!(code, Some(1), "three stages off: {all}");
    assert!(all.contains("-3") && all.contains("0 of 1 programs"), "{all}");
    let (one, code, _) = with("echo 'x.p4(3): error: no such thing' >&2; exit 1");
    assert!(one.contains("compiler: refused: x.p4(3): error: no such thing"), "{one}");
    assert_eq!(code, Some(1), "nothing was compared");
    let (one, ..) = with("exit 0");
    assert!(one.contains("it leaves no assembly"), "{one}");
}

#[test]
fn without_a_compiler_samples_are_estimated_alone() {
    let told = run(&["samples", &repo("tests/tna").display().to_string(), "fit"]);
    let text = stdout(&told);
    assert_eq!(told.status.code(), Some(0), "{text}");
    assert!(text.contains("compiler: skipped: needs p4c") && text.contains("1 skipped"), "{text}");
    let missing =
        run(&["samples", &repo("tests/tna").display().to_string(), "fit", "--compiler", "/nowhere/p4c"]);
    assert!(stdout(&missing).contains("/nowhere/p4c: no such program"), "{}", stdout(&missing));
}
