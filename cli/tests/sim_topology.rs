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

/// The topology is the file that was given, so its own lines are named.
#[test]
fn what_cannot_be_simulated_is_named_in_the_topology() {
    let folder =
        pod(&[("pod.toml", "program = \"route.p4\"\nentries = \"s1.entries\"", "program = \"none\"")]);
    let text = fs::read_to_string(folder.path().join("pod.toml")).expect("the topology");
    let line = text.lines().position(|line| line == "program = \"none\"").expect("a switch") + 1;
    let tried = sim(&["run", "pod.toml"], folder.path());
    assert_eq!(tried.status.code(), Some(2));
    let place = format!("pod.toml:{line}: switch[0].program: leaves s1's program to a controller");
    assert!(stderr(&tried).contains(&place), "{}", stderr(&tried));
    let folder = pod(&[("pod.toml", "delay = \"100 us\"", "delay = \"5 s\"")]);
    let says = "with a delay of 5 s; in virtual time write 4 s at most";
    for (file, place) in
        [("pod.toml", "error: pod.toml: has a link "), ("load.toml", "topology: has a link ")]
    {
        let tried = sim(&["run", file], folder.path());
        assert_eq!(tried.status.code(), Some(2));
        let said = stderr(&tried);
        assert!(said.contains(place) && said.contains(says), "{said}");
    }
}

#[test]
fn a_loop_ends_and_fails_the_run() {
    let round = "#include <core.p4>\n#include <v1model.p4>\nstruct headers { }\nstruct metadata { }\n\
        parser P(packet_in p, out headers h, inout metadata m, inout standard_metadata_t sm) { state start { transition accept; } }\n\
        control V(inout headers h, inout metadata m) { apply { } }\n\
        control I(inout headers h, inout metadata m, inout standard_metadata_t sm) { apply { sm.egress_spec = 2; } }\n\
        control E(inout headers h, inout metadata m, inout standard_metadata_t sm) { apply { } }\n\
        control D(packet_out p, in headers h) { apply { } }\n\
        V1Switch(P(), V(), I(), E(), V(), D()) main;\n";
    let topology = "name = \"round\"\n[[switch]]\nname = \"s1\"\nprogram = \"round.p4\"\n[[switch]]\nname = \"s2\"\n\
        program = \"round.p4\"\n[[host]]\nname = \"h1\"\nip = \"10.0.1.1/24\"\n[[host]]\nname = \"h2\"\nip = \"10.0.1.2/24\"\n\
        [[link]]\nends = [\"h1\", \"s1:1\"]\n[[link]]\nends = [\"h2\", \"s2:1\"]\n[[link]]\nends = [\"s1:2\", \"s2:2\"]\n";
    let folder = tempfile::tempdir().expect("a scratch folder");
    fs::write(folder.path().join("round.p4"), round).expect("our folder");
    fs::write(folder.path().join("round.toml"), topology).expect("our folder");
    let tried = sim(&["run", "round.toml"], folder.path());
    assert_eq!(tried.status.code(), Some(1), "{}{}", stdout(&tried), stderr(&tried));
    let says = "frames go round in a loop of switches, which they leave by s1:2, s2:2; ";
    assert!(stderr(&tried).contains(says), "{}", stderr(&tried));
    let outcome = json(&sim(&["run", "round.toml", "--json"], folder.path()));
    assert!(
        outcome["balance"]["looped"].as_u64() > Some(1) && outcome["balance"]["unaccounted"] == 0,
        "{outcome:#}"
    );
}

/// Wherever the sweep stands.
#[test]
fn a_sweep_reads_what_its_base_names_beside_the_base() {
    let folder = pod(&[]);
    fs::create_dir(folder.path().join("sweeps")).expect("our folder");
    let sweep = "name = \"one\"\nbase = \"../load.toml\"\nseeds = [1]\n";
    fs::write(folder.path().join("sweeps/one.toml"), sweep).expect("our folder");
    let swept =
        sim(&["sweep", "sweeps/one.toml", "--out-dir", "out", "--set", "duration_us=30000"], folder.path());
    assert_eq!(swept.status.code(), Some(0), "{}{}", stdout(&swept), stderr(&swept));
    assert!(stdout(&swept).contains("1 tasks run"), "{}", stdout(&swept));
}

#[test]
fn fields_of_other_kinds_are_refused_in_the_words_of_the_file() {
    let folder = pod(&[]);
    let of = |settings: &[&str]| {
        let words = settings.iter().flat_map(|setting| ["--set", setting]);
        let refused = sim(&["run", "load.toml"].into_iter().chain(words).collect::<Vec<_>>(), folder.path());
        assert_eq!(refused.status.code(), Some(2), "{settings:?}: {}", stdout(&refused));
        stderr(&refused)
    };
    let said = of(&["solution=true"]);
    assert!(said.contains("solution: is for a topology.json of the P4 tutorials"), "{said}");
    for setting in ["pipeline_ns=fast", "pipeline_ns=-1"] {
        let said = of(&[setting]);
        assert!(
            said.contains("is no delay; write nanoseconds from 0 to 10000000") && !said.contains("DelaySpec"),
            "{said}"
        );
    }
    assert!(of(&["traffic.0.size=-1"]).contains("is no size; write bytes"), "{}", of(&["traffic.0.size=-1"]));
    let said = of(&["duration_us=10", "warmup_us=0", "traffic.1.start_us=20"]);
    assert!(said.contains("[traffic.1] start_us: is not before the end"), "{said}");
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
