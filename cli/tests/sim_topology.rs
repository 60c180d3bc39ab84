//! Topologies in virtual time, from outside: runs, sweeps, reports, mistakes, and the same forwarding as real switches.

mod common;

use common::{can_make_namespaces, have, one_at_a_time, p4rack, repo, stderr, stdout};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

fn sim(words: &[&str], folder: &Path) -> Output {
    p4rack().arg("sim").args(words).current_dir(folder).output().expect("p4rack starts")
}

/// The pod in a folder of its own, with these files changed.
fn pod(edits: &[(&str, &str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a scratch folder");
    for file in fs::read_dir(repo("examples/pod")).expect("the example").flatten() {
        fs::copy(file.path(), folder.path().join(file.file_name())).expect("a copy");
    }
    for (file, old, new) in edits {
        let path = folder.path().join(file);
        let text = fs::read_to_string(&path).expect("a file of the example");
        assert!(text.contains(old), "{file} has no `{old}`");
        fs::write(path, text.replace(old, new)).expect("our folder");
    }
    folder
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}{}", stdout(output), stderr(output)))
}

#[test]
fn a_topology_is_loaded_captured_and_the_same_on_several_threads() {
    let folder = pod(&[]);
    let words = ["run", "load.toml", "--json", "--set", "duration_us=40000", "--twice"];
    let one = sim(&words, folder.path());
    assert_eq!(one.status.code(), Some(0), "{}", stderr(&one));
    let one = json(&one);
    assert_eq!(one["kind"], "topology");
    assert!(one["switch_hops"].as_u64() > Some(10_000), "{}", one["switch_hops"]);
    assert_eq!(one["traffic"][1]["of"], "request and answer");
    assert!(one["goodput_gbps"].as_f64() > Some(1.5), "{}", one["goodput_gbps"]);
    let two = sim(&[&words[..], &["--threads", "2", "--pcap", "h6"]].concat(), folder.path());
    assert_eq!(json(&two), one);
    assert!(fs::metadata(folder.path().join("h6.pcap")).expect("a capture").len() > 100_000);
    let replayed = "name = \"again\"\nkind = \"topology\"\ntopology = \"pod.toml\"\nduration_us = 40000\n[[traffic]]\n\
                    name = \"old\"\nsend = \"pcap\"\nfile = \"h6.pcap\"\nsenders = [\"h1\"]\n";
    fs::write(folder.path().join("again.toml"), replayed).expect("our folder");
    let again = json(&sim(&["run", "again.toml", "--json"], folder.path()));
    assert!(again["balance"]["received"].as_u64() > Some(100), "{again:#}");
    assert_eq!(
        again["balance"]["others"], again["balance"]["received"],
        "frames of an earlier run are of no flow"
    );
    let cut = fs::read(folder.path().join("h6.pcap")).expect("the capture");
    fs::write(folder.path().join("h6.pcap"), &cut[..cut.len() - 7]).expect("our folder");
    let refused = sim(&["run", "again.toml"], folder.path());
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("h6.pcap: frame "), "{}", stderr(&refused));
}

/// Two racks under PL2 behind a spine, with the machines of real agents: what docs/topology.md promises within a rack.
#[test]
fn racks_keep_their_promises_beside_frames_of_other_racks() {
    let run = |settings: &[&str]| {
        let settings = settings.iter().flat_map(|setting| ["--set", setting]);
        let words: Vec<&str> =
            ["run", "examples/leaf-spine/load.toml", "--json"].into_iter().chain(settings).collect();
        let output = sim(&words, &repo(""));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        json(&output)
    };
    let lost =
        |outcome: &Value, traffic: usize| outcome["traffic"][traffic]["lost"].as_u64().expect("a count");
    let below = run(&["traffic.1.rate=\"12 Mb/s\""]);
    assert!(below["traffic"][0]["sent"].as_u64() > Some(5_000), "{}", below["traffic"]);
    assert_eq!((lost(&below, 0), lost(&below, 1)), (0, 0), "{}", below["traffic"]);
    assert!(below["agents"]["link_out"].as_u64() > below["agents"]["app_in"].as_u64(), "{}", below["agents"]);
    let above = run(&["traffic.1.rate=\"60 Mb/s\""]);
    assert_eq!(lost(&above, 0), 0, "{}", above["traffic"]);
    let dropped = above["balance"]["dropped"].as_u64().expect("a count");
    assert!(lost(&above, 1) > 1_000 && lost(&above, 1) == dropped, "{}", above["traffic"]);
    assert_eq!(run(&["traffic.1.rate=\"60 Mb/s\""])["digest"], above["digest"]);
    let tcp = run(&["traffic.0.send=cubic", "traffic.0.size=100000", "traffic.0.rate=\"30 Mb/s\""]);
    assert_eq!(tcp["traffic"][0]["failed"], 0, "{}", tcp["traffic"]);
    assert!(tcp["traffic"][0]["goodput_gbps"].as_f64() > Some(0.05), "{}", tcp["traffic"]);
}

/// EDM within a rack and Clio across the spine, beside other frames.
#[test]
fn remote_memory_is_used_in_racks_and_across_the_spine() {
    let words = ["run", "examples/leaf-spine/memory.toml", "--json", "--twice"];
    let output = sim(&words, &repo(""));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let one = json(&output);
    let operations = one["operations"].as_array().expect("a list");
    assert_eq!(operations.len(), 4);
    for of in operations {
        assert!(of["done"].as_u64() > Some(1_000) && of["wrong_bytes"] == 0 && of["unknown"] == 0, "{of:#}");
        assert_eq!(of["latency_ns"]["cdf"].as_array().map(Vec::len), Some(19));
    }
    assert_eq!(json(&sim(&[&words[..], &["--threads", "2"]].concat(), &repo(""))), one);
    let text = stdout(&sim(&words[..2], &repo("")));
    for shown in ["edm, reads", "clio, writes", "bytes checked", "checks: all passed"] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    let folder = tempfile::tempdir().expect("a scratch folder");
    for file in fs::read_dir(repo("examples/leaf-spine")).expect("the example").flatten() {
        fs::copy(file.path(), folder.path().join(file.file_name())).expect("a copy");
    }
    let sweep = "name = \"shares\"\nbase = \"memory.toml\"\n[vary]\n\"traffic.0.read_percent\" = [0, 100]\n";
    fs::write(folder.path().join("shares.toml"), sweep).expect("our folder");
    let swept =
        sim(&["sweep", "shares.toml", "--out-dir", "out", "--set", "duration_us=40000"], folder.path());
    assert_eq!(swept.status.code(), Some(0), "{}{}", stdout(&swept), stderr(&swept));
    assert_eq!(sim(&["report", "out"], folder.path()).status.code(), Some(0));
    let page = fs::read_to_string(folder.path().join("out/report.html")).expect("a page");
    for shown in ["Operations on remote memory", "edm, writes", "written again"] {
        assert!(page.contains(shown), "{shown}");
    }
    let refused = sim(&["run", "examples/leaf-spine/memory.toml", "--set", "traffic.0.way=clio"], &repo(""));
    assert_eq!(refused.status.code(), Some(2));
    let says = "receivers: h1's rack memory-1 has no clio; add [clio]";
    assert!(stderr(&refused).contains(says), "{}", stderr(&refused));
}

#[test]
fn a_sweep_of_a_topology_makes_a_table_and_a_page() {
    let folder = pod(&[]);
    let sweep = "name = \"rates\"\nbase = \"load.toml\"\n[vary]\n\"traffic.0.rate\" = [\"100 Mb/s\", \"500 Mb/s\"]\n\
         topology = [\"pod.toml\", \"other.toml\"]\n";
    fs::copy(folder.path().join("pod.toml"), folder.path().join("other.toml")).expect("our folder");
    fs::write(folder.path().join("rates.toml"), sweep).expect("our folder");
    let swept =
        sim(&["sweep", "rates.toml", "--out-dir", "out", "--set", "duration_us=30000"], folder.path());
    assert_eq!(swept.status.code(), Some(0), "{}{}", stdout(&swept), stderr(&swept));
    assert!(stdout(&swept).contains("4 tasks run"), "{}", stdout(&swept));
    assert_eq!(sim(&["merge", "out"], folder.path()).status.code(), Some(0));
    let report = sim(&["report", "out"], folder.path());
    assert!(stdout(&report).contains("4 runs, all checks passed"), "{}{}", stdout(&report), stderr(&report));
    let page = fs::read_to_string(folder.path().join("out/report.html")).expect("a page");
    for shown in ["By traffic", "By flow", "By link", "By switch", "h1–h6", "s1:4–s3:1"] {
        assert!(page.contains(shown), "{shown}");
    }
}

#[test]
fn mistakes_are_named_with_file_and_line() {
    for (file, old, new, says) in [
        (
            "load.toml",
            "\"h6\"",
            "\"h7\"",
            "load.toml:19: [traffic] receivers: `h7` is no host of the topology; did you mean",
        ),
        ("load.toml", "pod.toml", "pot.toml", "pot.toml: can't be read"),
        ("load.toml", "300 Mb/s", "fast", "load.toml:13: [traffic] rate: "),
        ("s2.entries", "port=4", "port=many", "s2.entries: line 2"),
    ] {
        let folder = pod(&[(file, old, new)]);
        let refused = sim(&["run", "load.toml"], folder.path());
        assert_eq!(refused.status.code(), Some(2), "{says}");
        let said = stderr(&refused);
        assert!(said.contains(says), "{says}: {said}");
    }
    let folder = pod(&[]);
    let refused = sim(&["run", "load.toml", "--set", "traffic.2.senders=[\"h8\"]"], folder.path());
    assert!(
        stderr(&refused).contains("load.toml with --set traffic.2.senders=[\"h8\"]: "),
        "{}",
        stderr(&refused)
    );
    let refused = sim(&["run", "load.toml", "--pcap", "h8"], folder.path());
    assert!(stderr(&refused).contains("`h8` is no host"), "{}", stderr(&refused));
}

/// A fat tree as small as there is one: 5 switches and 2 hosts; and the next one.
#[test]
fn fat_trees_are_written_and_reach_every_host() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    for (ports, hosts) in [("2", 2), ("4", 16)] {
        let written = p4rack().args(["rack", "fat-tree", ports, "--out-dir"]).arg(folder.path()).output();
        let written = written.expect("p4rack starts");
        assert!(written.status.success(), "{}", stderr(&written));
        let pings = json(&sim(&["run", "topology.toml", "--json"], folder.path()));
        let flows = pings["flows"].as_array().expect("a list");
        assert_eq!(flows.len(), hosts * (hosts - 1));
        assert!(flows.iter().all(|flow| flow["received"] == 3), "{flows:?}");
        let load = sim(&["run", "load.toml", "--set", "duration_us=5000"], folder.path());
        assert!(stdout(&load).contains("checks: all passed"), "{}{}", stdout(&load), stderr(&load));
        for says in
            ["s to read, ", "s to compile, ", "of processors' time in that; threads: 1", "million hops/s"]
        {
            assert!(stdout(&load).contains(says), "{says}: {}", stdout(&load));
        }
    }
}

#[test]
fn a_large_fat_tree_is_not_pinged_as_a_whole() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let written = p4rack().args(["rack", "fat-tree", "10", "--out-dir"]).arg(folder.path()).output();
    assert!(written.expect("p4rack starts").status.success());
    let refused = sim(&["run", "topology.toml"], folder.path());
    assert_eq!(refused.status.code(), Some(2));
    let said = stderr(&refused);
    assert!(
        said.contains("topology.toml: has 250 hosts, which are 62250 pairs; at most 60000 are tried"),
        "{said}"
    );
    let load = sim(&["run", "load.toml", "--set", "duration_us=1100"], folder.path());
    assert!(stdout(&load).contains("checks: all passed"), "{}{}", stdout(&load), stderr(&load));
}

/// BMv2's JSON of a program, without its P4Info, and the program on a switch that takes JSON, forward as the program does.
#[test]
fn bmv2s_json_forwards_as_the_program_that_it_was_made_from() {
    let plain = pod(&[]);
    let words = ["run", "load.toml", "--json", "--set", "duration_us=30000"];
    let expected = json(&sim(&words, plain.path()));
    let compiled =
        p4rack().args(["p4", "compile", "route.p4", "-o", "route.json"]).current_dir(plain.path()).output();
    let compiled = compiled.expect("p4rack starts");
    assert!(compiled.status.success(), "{}", stderr(&compiled));
    for (old, new) in
        [("\"route.p4\"", "\"route.json\""), ("\"route.p4\"", "\"route.p4\"\ntarget = \"bmv2\"")]
    {
        let folder = pod(&[("pod.toml", old, new)]);
        fs::copy(plain.path().join("route.json"), folder.path().join("route.json")).expect("our folder");
        let found = sim(&words, folder.path());
        assert_eq!(found.status.code(), Some(0), "{new}: {}", stderr(&found));
        assert_eq!(json(&found), expected, "{new}");
    }
    let folder = pod(&[("pod.toml", "\"route.p4\"", "\"route.json\"")]);
    fs::write(folder.path().join("route.json"), "{ \"actions\": 7 }").expect("our folder");
    let refused = sim(&words, folder.path());
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("s1: ") && stderr(&refused).contains("route.json: "),
        "{}",
        stderr(&refused)
    );
}

/// Without the routes to h5, real switches and simulated ones lose the same pings.
#[test]
fn forwarding_is_that_of_real_switches() {
    if !can_make_namespaces() || !have("ping", "iputils-ping") {
        return;
    }
    let _alone = one_at_a_time();
    let folder = pod(&[("s3.entries", "routes dst=10.0.5.0/24", "# routes dst=10.0.5.0/24")]);
    let outcome = json(&sim(&["run", "pod.toml", "--json"], folder.path()));
    let mut simulated: BTreeMap<String, bool> = BTreeMap::new();
    for flow in outcome["flows"].as_array().expect("a list") {
        simulated.insert(flow["name"].as_str().expect("a name").to_owned(), flow["received"] == 3);
    }
    let mut command = p4rack();
    command.args(["lab", "--quiet", "pod.toml"]).current_dir(folder.path());
    command.env("XDG_RUNTIME_DIR", folder.path()).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("p4rack starts");
    let mut input = child.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut input, b"pingall\nexit\n").expect("it reads");
    drop(input);
    let output = child.wait_with_output().expect("ours");
    let said = stdout(&output);
    let mut real: BTreeMap<String, bool> = BTreeMap::new();
    for line in said.lines().filter_map(|line| line.split_once(" -> ")) {
        let from = line.0.trim_start_matches("mininet> ");
        let others = (1..=6).map(|n| format!("h{n}")).filter(|name| name != from);
        for (other, answer) in others.zip(line.1.split_whitespace()) {
            real.insert(format!("{from}–{other}"), answer != "X");
        }
    }
    assert_eq!(real.len(), 30, "{said}{}", stderr(&output));
    assert_eq!(simulated, real);
    assert!(real.values().filter(|answered| !**answered).count() >= 3, "{real:?}");
}
