//! Every command block of README.md and docs/ runs unchanged, in namespaces of its own that vanish with the test.
//!
//! A comment before a block, which Markdown does not show, marks exceptions: `<!-- not run: why -->`, or
//! `<!-- exits with: 1 124 -->` for the exit codes, other than 0, of its commands.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::{can_make_namespaces, have, one_at_a_time, repo};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Languages of code blocks whose text is commands.
const COMMANDS: &[&str] = &["sh", "bash", "console", "shell"];
/// Commands that would be missed outside of a fence.
const WORDS: &[&str] = &["p4rack", "cargo", "sudo", "python3", "simple_switch_grpc", "git"];
/// No document takes so long, in seconds.
const LIMIT_S: &str = "600";

#[derive(Debug, PartialEq, Eq)]
struct Block {
    line: usize,
    commands: String,
    not_run: Option<String>,
    exits: BTreeSet<i32>,
}

/// A document's command blocks, or an error about one.
fn blocks(text: &str) -> Result<Vec<Block>, String> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate().map(|(n, line)| (n + 1, line));
    let mut before = "";
    while let Some((line, found)) = lines.next() {
        if let Some(language) = found.trim_start().strip_prefix("```") {
            let inside = lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim_start() != "```");
            let inside: Vec<&str> = inside.collect();
            if COMMANDS.contains(&language) {
                let mark =
                    before.strip_prefix("<!-- ").and_then(|mark| mark.strip_suffix(" -->")).unwrap_or("");
                let exits = mark.strip_prefix("exits with: ").unwrap_or_default().split_whitespace();
                let exits =
                    exits.map(|code| code.parse().map_err(|_| format!("{line}: `{code}` is no exit code")));
                blocks.push(Block {
                    line,
                    commands: inside.join("\n"),
                    not_run: mark.strip_prefix("not run: ").map(str::to_owned),
                    exits: exits.collect::<Result<_, _>>()?,
                });
            }
        } else if found.starts_with("    ")
            && found.split_whitespace().next().is_some_and(|word| WORDS.contains(&word))
        {
            return Err(format!("{line}: put commands between ```sh and ```"));
        }
        before = found;
    }
    Ok(blocks)
}

#[test]
fn blocks_and_their_marks_are_read() {
    let text = "x\n```sh\na\nb\n```\n<!-- not run: long -->\n```sh\nc\n```\n```text\nd\n```\n<!-- exits with: 1 124 -->\n```sh\ne\n```\n";
    let found = blocks(text).unwrap();
    let block = |line, commands: &str, not_run: Option<&str>, exits: &[i32]| Block {
        line,
        commands: commands.into(),
        not_run: not_run.map(str::to_owned),
        exits: exits.iter().copied().collect(),
    };
    let wanted =
        [block(2, "a\nb", None, &[]), block(7, "c", Some("long"), &[]), block(14, "e", None, &[1, 124])];
    assert_eq!(found, wanted);
    assert_eq!(blocks("x\n\n    p4rack up\n").unwrap_err(), "3: put commands between ```sh and ```");
    assert!(blocks("<!-- exits with: one -->\n```sh\n```\n").is_err());
}

/// Runs the blocks of a document, one after the other in one shell, as if a reader pasted them.
fn paste(name: &str) {
    let text = std::fs::read_to_string(repo(name)).unwrap();
    let blocks = blocks(&text).unwrap_or_else(|error| panic!("{name}:{error}"));
    let (run, left): (Vec<&Block>, Vec<&Block>) = blocks.iter().partition(|block| block.not_run.is_none());
    for block in left {
        let why = block.not_run.as_deref().unwrap_or_default();
        let _ = writeln!(std::io::stderr(), "{name}:{}: not run: {why}", block.line);
    }
    let needed = [("ip", "iproute2"), ("curl", "curl"), ("iperf3", "iperf3"), ("python3", "python3")];
    let all: Vec<&str> = run.iter().flat_map(|block| block.commands.split_whitespace()).collect();
    let missing =
        |(word, package): &(&str, &str)| (*word == "ip" || all.contains(word)) && !have(word, package);
    if run.is_empty() || !can_make_namespaces() || needed.iter().any(missing) {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let failed = failures(&run, name, folder.path());
    let wanted: BTreeSet<(usize, i32)> =
        run.iter().flat_map(|block| block.exits.iter().map(|code| (block.line, *code))).collect();
    let found: BTreeSet<(usize, i32)> = failed.iter().map(|(line, code, _)| (*line, *code)).collect();
    let output = std::fs::read_to_string(folder.path().join("output")).unwrap();
    assert_eq!(
        found, wanted,
        "{name}: lines of blocks and their exit codes, against the marks; {failed:?}\n{output}"
    );
}

/// Line of the block, exit code and command of each command that ended with another code than 0.
fn failures(run: &[&Block], name: &str, folder: &Path) -> Vec<(usize, i32, String)> {
    copy(&repo("examples"), &folder.join("examples"));
    for sub in ["bin", "tmp", "run"] {
        std::fs::create_dir(folder.join(sub)).unwrap();
    }
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_p4rack"), folder.join("bin/p4rack")).unwrap();
    // A command that fails is noted, and the next one runs, as in a terminal.
    let mut script = String::from(
        "ip link set lo up || exit 99\n\
         trap 'code=$?; printf \"%s\\t%s\\t%s\\n\" \"$BLOCK\" \"$code\" \"${BASH_COMMAND//$'\"'\"'\\n'\"'\"'/ }\" >> failed' ERR\n",
    );
    for block in run {
        // A person's pause for typing: a started server listens by then.
        let pause = if block.commands.trim_end().ends_with('&') { "sleep 2" } else { "" };
        let commands = block.commands.replace("/tmp/", &format!("{}/tmp/", folder.display()));
        write!(script, "BLOCK={}; echo \"── {name}:$BLOCK\"\n{commands}\n{pause}\n", block.line).unwrap();
    }
    script += "touch ended\n";
    std::fs::write(folder.join("script"), script).unwrap();
    std::fs::write(folder.join("failed"), "").unwrap();
    let output = std::fs::File::create(folder.join("output")).unwrap();
    let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    let status = Command::new("unshare")
        .args(if root { &[][..] } else { &["--map-root-user"] })
        .args(["--net", "--pid", "--fork", "--mount-proc", "--kill-child"])
        .args(["timeout", LIMIT_S, "bash", "script"])
        .env("PATH", format!("{}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap()))
        .env("XDG_RUNTIME_DIR", folder.join("run"))
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(output.try_clone().unwrap())
        .stderr(output)
        .status()
        .unwrap();
    let said = || std::fs::read_to_string(folder.join("output")).unwrap();
    assert!(folder.join("ended").exists(), "{name} did not come to its end, {status}:\n{}", said());
    let failed = std::fs::read_to_string(folder.join("failed")).unwrap();
    let one = |line: &str| {
        let mut fields = line.splitn(3, '\t');
        let mut next = || fields.next().unwrap_or_default().to_owned();
        (next().parse().unwrap(), next().parse().unwrap(), next())
    };
    failed.lines().map(one).collect()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// It brings a rack up, whose schedule another rack beside it would disturb.
#[test]
fn readme() {
    let _alone = one_at_a_time();
    paste("README.md");
}

#[test]
fn the_control_plane() {
    paste("docs/control.md");
}

#[test]
fn all_other_documents() {
    for folder in ["docs", "docs/notes"] {
        let mut documents: Vec<PathBuf> =
            std::fs::read_dir(repo(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
        documents.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
        documents.sort();
        assert!(!documents.is_empty(), "{folder}");
        for path in documents {
            let name = format!("{folder}/{}", path.file_name().unwrap().to_string_lossy());
            if name != "docs/control.md" {
                paste(&name);
            }
        }
    }
}
