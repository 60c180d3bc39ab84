//! Bad input gets a clear error that names the place, and a non-zero exit code.

mod common;
use common::{p4rack, repo, stderr, stdout};
use std::fs;

/// The incast example with one line replaced.
fn rack_with(from: &str, to: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let text = fs::read_to_string(repo("examples/pl2-incast.toml")).expect("the example is there");
    assert!(text.contains(from), "the example has no `{from}`");
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = folder.path().join("rack.toml");
    fs::write(&path, text.replacen(from, to, 1)).expect("scratch is writable");
    (folder, path)
}

#[test]
fn an_unknown_key_is_refused_with_its_line() {
    let (_folder, path) = rack_with("[pl2]", "[pl2]\nspeed = 3");
    let output = p4rack().args(["rack", "check"]).arg(&path).output().expect("p4rack starts");
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.contains("rack.toml:") && text.contains("speed"), "{text}");
}

#[test]
fn an_impossible_rate_is_refused() {
    let (_folder, path) = rack_with("port_rate = \"100 Mb/s\"", "port_rate = \"0 Mb/s\"");
    let output = p4rack().args(["rack", "check"]).arg(&path).output().expect("p4rack starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("port_rate"), "{}", stderr(&output));
}

#[test]
fn a_missing_file_is_named() {
    for command in [&["up"][..], &["rack", "check"], &["p4", "check"]] {
        let output = p4rack().args(command).arg("no/such/file").output().expect("p4rack starts");
        assert!(!output.status.success(), "{command:?}");
        assert!(stderr(&output).contains("no/such/file"), "{command:?}: {}", stderr(&output));
    }
}

/// In place of two dozen syntax errors, the error names the file's kind and the command for it.
#[test]
fn a_file_of_another_kind_is_named_as_what_it_is() {
    let experiment = "examples/paper/pl2/fig9-incast.toml";
    for (command, file, says) in [
        (
            &["rack", "check"][..],
            "examples/forward.p4",
            "is a P4 program, not a rack description; p4rack p4 check",
        ),
        (
            &["up", "-q"],
            experiment,
            "is an experiment of the simulator, not a rack description; p4rack sim run",
        ),
        (
            &["p4", "check"],
            "examples/two-hosts.toml",
            "is a rack description, not a P4 program; p4rack rack check",
        ),
        (
            &["sim", "run"],
            "examples/two-hosts.toml",
            "is a rack description, not an experiment of the simulator; p4rack rack check",
        ),
        (
            &["sim", "sweep", "--list"],
            "examples/two-hosts.toml",
            "is a rack description, not a sweep of experiments; p4rack rack check",
        ),
        (
            &["generate", "-o", "no/such/folder"],
            "examples/paper/edm/golden-sweep.toml",
            "is a sweep of experiments, not a rack description; p4rack sim sweep",
        ),
        (
            &["deploy", "--dry-run"],
            "examples/paper/cowbird/fig8.toml",
            "is an experiment of the simulator, not a rack description; p4rack sim run",
        ),
        (
            &["sim", "run"],
            "examples/paper/pl2/fig9-sweep.toml",
            "is a sweep of experiments, not an experiment of the simulator; p4rack sim sweep",
        ),
        (
            &["sim", "sweep", "--list"],
            experiment,
            "is an experiment of the simulator, not a sweep of experiments; p4rack sim run",
        ),
    ] {
        let output = p4rack().args(command).arg(repo(file)).output().expect("p4rack starts");
        let said = stderr(&output);
        assert!(!output.status.success() && said.contains(says), "{command:?}: {said}");
        assert_eq!(said.lines().filter(|line| line.contains("is a")).count(), 1, "{command:?}: {said}");
    }
}

/// A key that is set counts instead of the file's, and its mistakes name it.
/// Whatever takes a program refuses other files, by name of their kind and with what they are for.
#[test]
fn what_is_no_program_is_named_as_what_it_is() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let forward = repo("examples/forward.p4").display().to_string();
    let run = |words: &[&str]| p4rack().args(words).current_dir(&folder).output().expect("p4rack starts");
    let made = run(&["compat", "p4c-bm2-ss", &forward, "-o", "good.json"]);
    assert!(made.status.success(), "{}", stderr(&made));
    let good = fs::read_to_string(folder.path().join("good.json")).expect("the JSON");
    let version = |major: &str| {
        let mut json: serde_json::Value = serde_json::from_str(&good).expect("JSON");
        json["__meta__"]["version"] = serde_json::from_str(major).expect("JSON");
        json.to_string()
    };
    let with = |change: fn(&mut serde_json::Value)| {
        let mut json: serde_json::Value = serde_json::from_str(&good).expect("JSON");
        change(&mut json);
        json.to_string()
    };
    let again = "compile the program for v1model, with p4c-bm2-ss";
    for (name, text, said) in [
        ("empty.json", String::new(), "empty.json: the file is empty; expected BMv2's JSON"),
        ("list.json", "[]".to_owned(), "this is not BMv2's JSON"),
        ("cut.json", good[..200].to_owned(), "expected BMv2's JSON, as p4c-bm2-ss writes it"),
        ("v1.json", version("[1, 5]"), "at `__meta__.version`: version 1 of the format; expected 2"),
        ("text.json", version("\"2.23\""), "at `__meta__.version`: expected a list such as [2, 23]"),
        (
            "psa.json",
            with(|json| json["parsers"] = serde_json::json!([json["parsers"][0], json["parsers"][0]])),
            "expected one parser, as simple_switch has; compile the program for v1model",
        ),
        ("pna.json", with(|json| json["pipelines"][0]["name"] = "main_control".into()), again),
        ("bf-rt.json", r#"{"schema_version": "1.0.0", "tables": []}"#.to_owned(), "is a BFRuntime schema"),
        (
            "s1-runtime.json",
            r#"{"table_entries": []}"#.to_owned(),
            "is a file with entries, not a P4 program",
        ),
        ("x.p4info.txtpb", "pkg_info {\n}\n".to_owned(), "is a P4Info, not a P4 program"),
        ("x.txtpb", "updates {\n}\n".to_owned(), "is a file with entries, not a P4 program"),
        ("x.entries", "t a=1 --action b\n".to_owned(), "is a file with entries, not a P4 program"),
        ("x.toml", "[[switch]]\nname = \"s1\"\n".to_owned(), "is a topology, not a P4 program"),
    ] {
        fs::write(folder.path().join(name), text).expect("a file");
        let topology = format!(
            "name = \"t\"\n[[switch]]\nname = \"s1\"\nprogram = \"{name}\"\n[[host]]\nname = \"h1\"\n\
             ip = \"10.0.0.1/24\"\n[[link]]\nends = [\"h1\", \"s1:1\"]\n"
        );
        fs::write(folder.path().join("pod.toml"), topology).expect("a file");
        for words in [
            &["p4", "check", name][..],
            &["p4", "info", name],
            &["p4", "install", name, "--grpc-addr", "127.0.0.1:1"],
            &["switch", "run", name],
            &["compat", "simple_switch", name],
            &["rack", "check", "pod.toml"],
            &["up", "pod.toml"],
            &["sim", "run", "pod.toml"],
            &["generate", "pod.toml", "--output", "made"],
        ] {
            let output = run(words);
            assert!(!output.status.success(), "{words:?} {name}: {}", stdout(&output));
            assert!(stderr(&output).contains(said), "{words:?} {name}: {}", stderr(&output));
        }
        assert!(!folder.path().join("made").exists(), "{name}: something is generated by half");
    }
}

/// The same of entries.
#[test]
fn what_has_no_entries_is_named_as_what_it_is() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let forward = repo("examples/forward.p4").display().to_string();
    for (name, text, said) in [
        (
            "x.p4",
            fs::read_to_string(&forward).expect("the example"),
            "is a P4 program, not a file with entries",
        ),
        ("x.p4info.txtpb", "pkg_info {\n}\n".to_owned(), "is a P4Info, not a file with entries"),
        ("x.json", String::new(), "is no JSON; expected a sN-runtime.json"),
        ("x.toml", "[[switch]]\nname = \"s1\"\n".to_owned(), "is a topology, not a file with entries"),
    ] {
        fs::write(folder.path().join(name), text).expect("a file");
        for words in [&["p4", "install", "--grpc-addr", "127.0.0.1:1"][..], &["switch", "run"]] {
            let output = p4rack()
                .args(words)
                .args([&forward, "--entries", name])
                .current_dir(&folder)
                .output()
                .expect("p4rack starts");
            assert!(!output.status.success(), "{words:?} {name}: {}", stdout(&output));
            assert!(stderr(&output).contains(said), "{words:?} {name}: {}", stderr(&output));
        }
    }
}

#[test]
fn keys_are_set_on_the_command_line() {
    let check = |settings: &[&str]| {
        let words = settings.iter().flat_map(|setting| ["--set", setting]);
        let rack = repo("examples/two-hosts.toml");
        p4rack().args(["rack", "check"]).arg(rack).arg("--json").args(words).output().expect("p4rack starts")
    };
    let output = check(&["switch.port_rate=1 Gb/s", "host.0.rate=\"500 Mb/s\"", "name=other"]);
    let rack: serde_json::Value = serde_json::from_slice(&output.stdout).expect("the checked model");
    assert_eq!(rack["name"], "other", "{rack}");
    for (setting, says) in [
        ("swich.port_rate=1", "two-hosts.toml with --set swich.port_rate=1"),
        ("switch.port_rat=1", "did you mean `port_rate`?"),
        ("switch.port_rate=fast", "switch.port_rate"),
        ("switch.port_rate=5", "is an integer"),
        ("host.7.rate=1 Gb/s", "`7` is no element of host, which has 2; write host.0 to host.1"),
        ("name.x=1", "name is a value, not a table"),
        ("name", "has no `=`; write KEY=VALUE"),
        ("name=[1", "is no value of TOML"),
    ] {
        let output = check(&[setting]);
        let said = stdout(&output) + &stderr(&output);
        assert!(!output.status.success() && said.contains(says), "{setting}: {said}");
        assert!(!said.contains("\"line\": 1"), "{setting}: no line of the file is wrong: {said}");
    }
}

/// The error comes before any request to a switch.
#[test]
fn reservations_of_a_rack_without_pl2_are_refused() {
    let output =
        p4rack().args(["pl2", "read"]).arg(repo("examples/edm-kv.toml")).output().expect("p4rack starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("rack edm-kv: has no [pl2] table"), "{}", stderr(&output));
}

#[test]
fn wrong_usage_exits_with_two() {
    let output = p4rack().arg("generate").output().expect("p4rack starts");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_wrong_program_is_shown_with_carets_several_at_once() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = folder.path().join("wrong.p4");
    let text = "#include <core.p4>\n#include <v1model.p4>\nheader h_t { bit<8> a; }\n\
                struct s { h_t h; }\nstruct m { }\n\
                control C(inout s hdr) { apply { hdr.h.b = 1; undefined_name = 2; } }\n";
    fs::write(&path, text).expect("scratch is writable");
    let output = p4rack().args(["p4", "check"]).arg(&path).output().expect("p4rack starts");
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let text = stderr(&output);
    assert!(text.contains("wrong.p4:6:") && text.contains("undefined_name") && text.contains('^'), "{text}");
}

#[test]
fn without_a_rack_exec_says_what_to_run() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let output = p4rack()
        .env("XDG_RUNTIME_DIR", folder.path())
        .args(["exec", "h1", "--", "true"])
        .output()
        .expect("p4rack starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("up --keep"), "{}", stderr(&output));
}

#[test]
fn without_root_or_user_namespaces_up_says_what_to_do() {
    // A user namespace without mapped users has no rights, not even to create another namespace.
    let confined = |words: &[&str]| {
        let mut command = std::process::Command::new("unshare");
        command.arg("--user").args(words);
        command
    };
    if !confined(&["true"]).status().is_ok_and(|status| status.success()) {
        return common::skip(
            "user namespaces, to take the right to make them away",
            "running the tests as root",
        );
    }
    let output = confined(&[env!("CARGO_BIN_EXE_p4rack"), "up"])
        .arg(repo("examples/pl2-incast.toml"))
        .output()
        .expect("unshare starts");
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.contains("neither root nor a user namespace"), "{text}");
    assert!(text.contains("run as root") && text.contains("sysctl"), "it says what to do: {text}");
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let binary = env!("CARGO_BIN_EXE_p4rack");
    let program = repo("codegen/tests/golden/pl2-clock/pl2-incast.p4");
    for command in ["completions bash".to_owned(), format!("p4 preprocess {}", program.display())] {
        let line = format!("{binary} {command} | head -c 1");
        let output = std::process::Command::new("sh").args(["-c", &line]).output().expect("sh starts");
        assert_eq!((stderr(&output).as_str(), output.stdout.len()), ("", 1), "{command}");
    }
}

#[test]
fn benches_that_would_measure_nothing_are_refused() {
    let rack = repo("examples/two-hosts.toml").display().to_string();
    for (words, said) in [
        (&["p4runtime", "--only", "zebra"][..], "--only: no measurement has `zebra` in its name"),
        (&["bfrt", "--only", "zebra"], "--only: no measurement has `zebra` in its name"),
        (&["forward", "--rounds", "0"], "0 is not in 1..=100"),
        (&["sim", "--rounds", "0"], "0 is not in 1..=100"),
        (&["programs", &rack, "--rounds", "0"], "0 is not in 1..=100"),
        (&["programs", &rack, "--load", "zebra"], "error: nothing to measure"),
        (&["forward", "--seconds", "nan"], "write a number above 0"),
    ] {
        let output = p4rack().arg("bench").args(words).output().expect("p4rack starts");
        assert!(!output.status.success(), "{words:?}: {}", stdout(&output));
        assert!(stderr(&output).contains(said), "{words:?}: {}", stderr(&output));
    }
}

#[test]
fn switch_run_refuses_what_a_description_refuses() {
    for (options, named) in [
        (&["--buffer", "1"][..], &["--buffer", "1 bytes don't hold 8 full frames", "16 KiB"][..]),
        (
            &["--cpu-port", "400", "--drop-port", "400"],
            &["--cpu-port", "--drop-port", "400 is also the drop port"],
        ),
        (&["--drop-port", "510"], &["510 is also the drop port"]),
        (&["--like", "bmv2", "--cpu-port", "511"], &["511 is also the drop port"]),
        (&["--buffer", "16 KiB", "--reserve", "16 KiB"], &["--reserve", "leave nothing of the buffer"]),
        (&["--cpu-port", "0"], &["--cpu-port", "1..=511"]),
        (&["--drop-port", "512"], &["--drop-port", "1..=511"]),
        (&["--time-unit-ns", "0"], &["--time-unit-ns", "1..=1000000"]),
        (&["--port-rate", "1=1 Mb/s"], &["--port-rate names port 1, which no -i opens"]),
        (
            &["-i", "1@a", "--port-rate", "1=1 Mb/s", "--port-rate", "1=2 Mb/s"],
            &["--port-rate is given twice for port 1"],
        ),
        (&["-i", "77@a", "--drop-port", "77"], &["port 77 is the drop port", "--drop-port"]),
    ] {
        let output =
            p4rack().args(["switch", "run", "--no-p4"]).args(options).output().expect("p4rack starts");
        assert!(!output.status.success(), "{options:?}: {}", stdout(&output));
        for text in named {
            assert!(stderr(&output).contains(text), "{options:?}: {text}: {}", stderr(&output));
        }
    }
}

#[test]
fn a_switch_defines_macros_for_its_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("choice.p4");
    std::fs::write(&program, "#if LEVEL == 2\n#error is two\n#else\n#error is another\n#endif\n")
        .expect("a file");
    for (given, said) in [("LEVEL=2", "is two"), ("LEVEL", "is another")] {
        let output = p4rack()
            .args(["switch", "run", "--grpc-server-addr", "127.0.0.1:0", "-D", given])
            .arg(&program)
            .output()
            .expect("p4rack starts");
        assert!(!output.status.success() && stderr(&output).contains(said), "{given}: {}", stderr(&output));
    }
}

#[test]
fn options_of_p4runtime_are_refused_over_bfruntime() {
    for option in [["--role", "x"], ["--device-id", "3"]] {
        let output = p4rack()
            .args(["table", "list", "--bfrt-addr", "127.0.0.1:1"])
            .args(option)
            .output()
            .expect("p4rack starts");
        assert_eq!(output.status.code(), Some(2));
        let text = stderr(&output);
        assert!(text.contains(option[0]) && text.contains("BFRuntime"), "{text}");
    }
}
