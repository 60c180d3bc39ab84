//! Files that command lines name: without an end, no text, empty, or written by a command.

mod common;

use common::{p4rack, repo, stderr, stdout};
use std::fs;
use std::io::Write as _;
use std::process::{Output, Stdio};

fn run(words: &[&str]) -> Output {
    p4rack().args(words).output().expect("p4rack starts")
}

/// What a command line says that is refused.
fn refused(words: &[&str]) -> String {
    let output = run(words);
    assert!(matches!(output.status.code(), Some(1 | 2)), "{words:?}: {}{}", stdout(&output), stderr(&output));
    stderr(&output)
}

#[test]
fn files_without_an_end_are_refused_wherever_a_text_is_named() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (pod, route) = (repo("examples/pod/pod.toml"), repo("examples/pod/route.p4"));
    let (pod, route) = (pod.display().to_string(), route.display().to_string());
    let sweep = path("sweep.toml");
    fs::write(&sweep, "name = \"s\"\nbase = \"/dev/zero\"\nseeds = [1]\n").expect("our folder");
    let capture = path("in.pcap");
    fs::write(&capture, p4rack_wire::pcap::Writer::default().bytes()).expect("our folder");
    let out = path("out");
    for words in [
        &["rack", "check", "/dev/zero"][..],
        &["generate", "/dev/zero", "-o", &out],
        &["up", "/dev/zero"],
        &["lab", "/dev/zero"],
        &["lab", &pod, "--test", "/dev/zero"],
        &["sim", "run", "/dev/zero"],
        &["sim", "sweep", "/dev/zero", "--list"],
        &["sim", "sweep", &sweep, "--list"],
        &["p4", "check", "/dev/zero"],
        &["p4", "stf", &route, "/dev/zero"],
        &["p4", "run", &route, "--in", &capture, "--out-dir", &out, "--entries", "/dev/zero"],
    ] {
        let said = refused(words);
        assert!(said.contains("/dev/zero: ") && said.contains("is no text; give "), "{words:?}: {said}");
    }
    let experiment = path("replay.toml");
    let text = format!(
        "name = \"r\"\nkind = \"topology\"\ntopology = \"{pod}\"\nduration_us = 10\n[[traffic]]\nname = \"old\"\n\
         send = \"pcap\"\nfile = \"/dev/zero\"\n"
    );
    fs::write(&experiment, text).expect("our folder");
    let said = refused(&["sim", "run", &experiment]);
    assert!(said.contains("/dev/zero: has more than 268435456 bytes"), "{said}");
}

#[test]
fn what_a_command_writes_is_read_once() {
    let route = repo("examples/pod/route.p4").display().to_string();
    let topology = format!(
        "name = \"piped\"\n[[switch]]\nname = \"s1\"\nprogram = \"{route}\"\n[[host]]\nname = \"h1\"\nip = \"10.0.1.1/24\"\n\
         [[host]]\nname = \"h2\"\nip = \"10.0.1.2/24\"\n[[link]]\nends = [\"h1\", \"s1:1\"]\n[[link]]\nends = [\"h2\", \"s1:2\"]\n"
    );
    for words in [&["rack", "check", "/dev/stdin"][..], &["sim", "run", "/dev/stdin", "--threads", "1"]] {
        let mut command = p4rack();
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut started = command.spawn().expect("p4rack starts");
        let mut input = started.stdin.take().expect("piped");
        input.write_all(topology.as_bytes()).expect("it reads");
        drop(input);
        let output = started.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}{}", stdout(&output), stderr(&output));
        assert!(stdout(&output).contains("piped"), "{words:?}: {}", stdout(&output));
    }
}

#[test]
fn tests_without_a_line_do_not_pass() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = folder.path().join("empty");
    fs::write(&path, "# nothing\n\n").expect("our folder");
    let path = path.display().to_string();
    let pod = repo("examples/pod/pod.toml").display().to_string();
    let route = repo("examples/pod/route.p4").display().to_string();
    let said = refused(&["p4", "stf", &route, &path]);
    assert!(said.contains("empty: has no lines that test; write "), "{said}");
    let said = refused(&["lab", &pod, "--test", &path]);
    assert!(
        said.contains("empty: has no lines to run; write ") && said.contains("h1 ping -c 1 h2"),
        "{said}"
    );
}

/// A reader that has seen enough doesn't turn a refusal into an internal error.
#[test]
fn a_closed_standard_error_changes_no_exit_code() {
    for words in [&["rack", "check", "no/such/file"][..], &["rack", "no-such-command"]] {
        let expected = run(words).status.code();
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let ended = p4rack().args(words).stderr(writer).output().expect("p4rack starts");
        // The parser of command lines ends as if its output were lost.
        let codes = [expected, Some(141)];
        let allowed = if words.len() == 3 { &codes[..1] } else { &codes[..] };
        assert!(allowed.contains(&ended.status.code()), "{words:?}: {:?}", ended.status);
    }
}
