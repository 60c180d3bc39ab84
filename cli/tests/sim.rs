//! `p4rack sim` from outside.

mod common;

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

const EXPERIMENT: &str = "name = \"small\"\nduration_us = 100\n[rack]\nhosts = 4\n[scheme]\nkind = \"pl2-clock\"\n\
    in_flight = 3\n[[traffic]]\nname = \"x\"\npattern = \"incast\"\nsize = 6000\narrivals = \"saturate\"\n";

fn sim(args: &[&str], dir: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_p4rack"))
        .arg("sim")
        .args(args)
        .current_dir(dir)
        .output()
        .expect("p4rack starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn an_experiment_runs_and_leaves_what_was_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.toml"), EXPERIMENT).unwrap();
    let args = ["run", "a.toml", "--json=a.json", "--twice", "--pcap", "h1", "--trace-message", "3"];
    let output = sim(&args, dir.path());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("RSV"), "the message's way");
    let results = std::fs::read_to_string(dir.path().join("a.json")).unwrap();
    let results: serde_json::Value = serde_json::from_str(&results).unwrap();
    assert!(results["goodput_gbps"].as_f64().unwrap() > 80.0 && results["frames_dropped"] == 0);
    assert!(std::fs::metadata(dir.path().join("h1.pcap")).unwrap().len() > 10_000);
    let trace = std::fs::read_to_string(dir.path().join("message-3.trace.json")).unwrap();
    let trace: serde_json::Value = serde_json::from_str(&trace).unwrap();
    assert!(trace["traceEvents"].as_array().unwrap().len() > 10);
}

#[test]
fn mistakes_are_named_with_their_lines() {
    let dir = tempfile::tempdir().unwrap();
    for (old, new, named) in [
        ("hosts = 4", "hosts = 1", "a.toml:4: [rack] hosts"),
        ("size = 6000", "size = 6000\ncolour = 1", "a.toml:12: unknown field `colour`"),
        (
            "\"saturate\"",
            "\"poisson\"\nload = 3",
            "a.toml:13: [traffic] load: 3 is more than the link carries",
        ),
        (
            "size = 6000",
            "size = [[0, 1], [0.9, 2]]",
            "a.toml:11: [traffic] size: goes from probability 0 to 0.9",
        ),
    ] {
        std::fs::write(dir.path().join("a.toml"), EXPERIMENT.replace(old, new)).unwrap();
        let output = sim(&["run", "a.toml"], dir.path());
        assert_eq!(output.status.code(), Some(2), "{new}");
        assert!(text(&output.stderr).contains(named), "{new}: {}", text(&output.stderr));
    }
}

#[test]
fn a_sweep_goes_on_where_it_stopped_and_reports() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.toml"), EXPERIMENT).unwrap();
    let sweep = "name = \"s\"\nbase = \"a.toml\"\nseeds = [1, 2]\n[vary]\n\"scheme.k\" = [4, 8]\n";
    std::fs::write(dir.path().join("s.toml"), sweep).unwrap();
    let list = sim(&["sweep", "s.toml", "--list"], dir.path());
    assert_eq!(text(&list.stdout).lines().count(), 4, "{}", text(&list.stderr));
    let nowhere = sim(&["sweep", "s.toml"], dir.path());
    assert!(text(&nowhere.stderr).contains("--out-dir"), "{}", text(&nowhere.stderr));
    for command in ["report", "merge"] {
        let said = text(&sim(&[command, "absent"], dir.path()).stderr);
        assert!(
            said.starts_with("error: absent: ") && !said.contains("--output") && !said.contains("--csv"),
            "{said}"
        );
    }
    let first = sim(&["sweep", "s.toml", "--out-dir", "out", "--task", "2"], dir.path());
    assert!(text(&first.stdout).contains("1 tasks run"), "{}", text(&first.stderr));
    let half_written = std::fs::read_dir(dir.path().join("out")).unwrap().next().unwrap().unwrap().path();
    let rest = sim(&["sweep", "s.toml", "--out-dir", "out"], dir.path());
    assert!(text(&rest.stdout).contains("3 tasks run, 1 were done before"), "{}", text(&rest.stdout));
    std::fs::write(&half_written, "{ \"id\": ").unwrap();
    let again = sim(&["sweep", "s.toml", "--out-dir", "out"], dir.path());
    assert!(text(&again.stdout).contains("1 tasks run, 3 were done before"), "{}", text(&again.stdout));
    let as_json = |more: &str| -> Value {
        let output = sim(&["sweep", "s.toml", "--out-dir", "out", "--json", more], dir.path());
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)))
    };
    let (tasks, done) = (&as_json("--list")["tasks"], as_json("--jobs=1"));
    assert_eq!((tasks.as_array().map(Vec::len), &tasks[0]["settings"]["scheme.k"]), (Some(4), &"4".into()));
    assert_eq!((&done["run"], &done["done_before"], &done["failed"]), (&0.into(), &4.into(), &0.into()));
    let results = done["results"].as_array().unwrap();
    assert!(results.len() == 4 && results[0]["outcome"]["goodput_gbps"].is_number(), "{done}");
    assert_eq!(sim(&["merge", "out"], dir.path()).status.code(), Some(0));
    let csv = std::fs::read_to_string(dir.path().join("out/results.csv")).unwrap();
    assert_eq!(csv.lines().count(), 5, "{csv}");
    assert_eq!(sim(&["report", "out"], dir.path()).status.code(), Some(0));
    let page = std::fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    assert!(page.contains("k 8") && page.matches("<svg").count() >= 4, "{page}");
    // Other settings are other tasks.
    let set = sim(&["sweep", "s.toml", "--out-dir", "out", "--set", "scheme.in_flight=2"], dir.path());
    assert!(text(&set.stdout).contains("4 tasks run, 0 were done before"), "{}", text(&set.stdout));
    let refused = sim(&["sweep", "s.toml", "--list", "--set", "scheme.k=2"], dir.path());
    assert!(
        text(&refused.stderr).contains("--set scheme.k=2: it varies that key"),
        "{}",
        text(&refused.stderr)
    );
}

#[test]
fn faults_are_counted_by_scheme() {
    let dir = tempfile::tempdir().unwrap();
    for (scheme, options) in [("edm-matched", ["--scheme", "edm-matched"]), ("clio", ["--kind", "clio"])] {
        let output = sim(&[&["faults", "--seeds", "1", "--json"], &options[..]].concat(), dir.path());
        let sums: Value = serde_json::from_slice(&output.stdout).unwrap();
        let of = &sums["schemes"][0];
        assert_eq!((&sums["passed"], &of["scheme"], &of["seeds"]), (&true.into(), &scheme.into(), &1.into()));
        assert!(
            of["operations"].as_u64() > Some(0) && of["failed"].as_array().is_some_and(Vec::is_empty),
            "{sums}"
        );
    }
    let both = sim(&["faults", "--kind", "clio", "--no-shares"], dir.path());
    assert!(text(&both.stderr).contains("--no-shares are EDM's"), "{}", text(&both.stderr));
}

/// Results of all kinds side by side: one page, with the presentation of each.
#[test]
fn a_report_shows_every_kind_of_experiments() {
    let dir = tempfile::tempdir().unwrap();
    let table = "name = \"table\"\nkind = \"memory-table\"\nframe_bytes = 1518\n[[paper]]\nfigure = \"EDM read\"\n\
                 says = 300.0\nsource = \"its words\"\n";
    for (kind, experiment) in
        [("frames", EXPERIMENT), ("memory", MEMORY), ("memory-table", table), ("cowbird", COWBIRD)]
    {
        std::fs::write(dir.path().join("a.toml"), experiment).unwrap();
        let json = format!("--json=out/{kind}.json");
        std::fs::create_dir_all(dir.path().join("out")).unwrap();
        let output = sim(&["run", "a.toml", "--set", &format!("name={kind}-run"), &json], dir.path());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let result = std::fs::read_to_string(dir.path().join(format!("out/{kind}.json"))).unwrap();
        let result: serde_json::Value = serde_json::from_str(&result).unwrap();
        assert_eq!((&result["kind"], &result["name"]), (&kind.into(), &format!("{kind}-run").into()));
    }
    let output = sim(&["report", "out"], dir.path());
    let said = text(&output.stdout);
    let headline = "4 runs, all checks passed; figures of papers: 1 reproduced, 0 not";
    assert!(said.contains(headline), "{said}{}", text(&output.stderr));
    let page = std::fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    for shown in [
        headline,
        "The switch ran the generated P4 text",
        "Compute nodes read and write memory of other nodes",
        "Latency of one operation on an idle rack",
        "Threads of a compute node look records up",
        "frames-run",
    ] {
        assert!(page.contains(shown), "{shown}");
    }
    assert_eq!(sim(&["merge", "out"], dir.path()).status.code(), Some(0));
    let csv = std::fs::read_to_string(dir.path().join("out/results.csv")).unwrap();
    assert!(
        csv.contains("goodput_gbps") && csv.contains("slowdown") && csv.contains("communication_share"),
        "{csv}"
    );
    // Of an older version.
    std::fs::write(dir.path().join("out/old.json"), "{ \"id\": \"x\", \"outcome\": {} }").unwrap();
    let said = text(&sim(&["report", "out"], dir.path()).stderr);
    assert!(said.contains("old.json") && said.contains("names no kind of experiment"), "{said}");
}

/// A disk that fills up leaves no half of a result behind, and says so.
#[test]
fn a_full_disk_leaves_nothing_half_written() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.toml"), EXPERIMENT).unwrap();
    std::fs::write(dir.path().join("s.toml"), "name = \"s\"\nbase = \"a.toml\"\nseeds = [1, 2, 3]\n")
        .unwrap();
    std::fs::create_dir(dir.path().join("out")).unwrap();
    let script = "mount -t tmpfs -o size=4k none out || exit 77; \"$P4RACK\" sim sweep s.toml --out-dir out; \
                  code=$?; ls -A out; exit $code";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script])
        .env("P4RACK", env!("CARGO_BIN_EXE_p4rack"))
        .current_dir(dir.path())
        .output()
        .expect("unshare starts");
    if output.status.code() == Some(77) || text(&output.stderr).contains("Operation not permitted") {
        common::skip("root for a file system of its own", "running the tests as root");
        return;
    }
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    let said = text(&output.stderr);
    assert!(said.contains("No space left") && said.contains("run the same command again"), "{said}");
    assert_eq!(text(&output.stdout), "", "nothing is left that could be taken for a result");
}

const MEMORY: &str =
    "name = \"small\"\nkind = \"memory\"\nnodes = 8\n[workload]\nsize = 64\nload = 0.5\nmessages = 2000\n";

#[test]
fn a_memory_rack_runs_and_is_swept_into_a_table() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.toml"), MEMORY).unwrap();
    let output = sim(&["run", "a.toml", "--twice", "--json"], dir.path());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(result["slowdown"]["mean"].as_f64().unwrap() > 1.0 && result["lost"] == 0, "{result}");

    let sweep = "name = \"s\"\nbase = \"a.toml\"\n[vary]\nscheme = [\"edm\", \"ird\", \"fastpass\"]\n";
    std::fs::write(dir.path().join("s.toml"), sweep).unwrap();
    let output = sim(&["sweep", "s.toml", "--out-dir", "out"], dir.path());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("fastpass"), "{}", text(&output.stdout));
    let output = sim(&["merge", "out"], dir.path());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let csv = std::fs::read_to_string(dir.path().join("out/results.csv")).unwrap();
    assert!(csv.lines().count() == 4 && csv.starts_with("id,name,scheme,seed,measured,lost"), "{csv}");
}

const COWBIRD: &str = "name = \"small\"\nkind = \"cowbird\"\nthreads = 2\nrecords = 10000\nwarmup_us = 100\nduration_us = 1100\n";

#[test]
fn a_cowbird_rack_runs_and_is_swept_into_a_table() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.toml"), COWBIRD).unwrap();
    let output = sim(&["run", "a.toml", "--twice", "--json"], dir.path());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(result["mops"].as_f64().unwrap() > 1.0 && result["lost"] == 0, "{result}");
    let output = sim(&["run", "a.toml", "--seed", "2"], dir.path());
    assert!(text(&output.stdout).contains("million/s"), "{}", text(&output.stdout));

    // A setting and a result with the same name are one column.
    let sweep = "name = \"s\"\nbase = \"a.toml\"\n[vary]\nthreads = [1, 2]\nscheme = [\"local\"]\n";
    std::fs::write(dir.path().join("v.toml"), sweep).unwrap();
    let output = sim(&["sweep", "v.toml", "--out-dir", "varied"], dir.path());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(sim(&["merge", "varied"], dir.path()).status.code(), Some(0));
    let csv = std::fs::read_to_string(dir.path().join("varied/results.csv")).unwrap();
    let mut names: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let columns = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), columns, "{csv}");

    let sweep = "name = \"s\"\nbase = \"a.toml\"\n[[case]]\nname = \"spot\"\n[[case]]\nname = \"local\"\n\
                 set = { scheme = \"local\" }\n[[ratio]]\nfigure = \"mops\"\nof = \"local\"\nby = \"spot\"\nsays = 1.2\n\
                 at_most = true\nsource = \"its words\"\n";
    std::fs::write(dir.path().join("s.toml"), sweep).unwrap();
    let output = sim(&["sweep", "s.toml", "--out-dir", "out"], dir.path());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("Mops"), "{}", text(&output.stdout));
    let output = sim(&["merge", "out"], dir.path());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let csv = std::fs::read_to_string(dir.path().join("out/results.csv")).unwrap();
    assert!(csv.lines().count() == 3 && csv.starts_with("id,name,scheme,seed,threads"), "{csv}");
    let output = sim(&["report", "out"], dir.path());
    let said = text(&output.stdout);
    assert!(said.contains("local / spot: the paper at most 1.2, here 1."), "{said}{}", text(&output.stderr));

    std::fs::write(dir.path().join("a.toml"), COWBIRD.replace("threads = 2", "threads = 0")).unwrap();
    let output = sim(&["run", "a.toml"], dir.path());
    let said = text(&output.stderr);
    assert!(
        output.status.code() == Some(2) && said.contains("a.toml:3: threads: 0 is out of range"),
        "{said}"
    );
}

#[test]
fn mistakes_in_a_memory_rack_are_named() {
    let dir = tempfile::tempdir().unwrap();
    for (old, new, named) in [
        ("nodes = 8", "nodes = 1", "a.toml:3: nodes: 1 is out of range"),
        ("load = 0.5", "load = 7", "a.toml:6: [workload] load: 7 is out of range"),
        ("size = 64\nload = 0.5\nmessages = 2000", "trace = \"missing.csv\"", "missing.csv: can't be read"),
    ] {
        std::fs::write(dir.path().join("a.toml"), MEMORY.replace(old, new)).unwrap();
        let output = sim(&["run", "a.toml"], dir.path());
        assert_eq!(output.status.code(), Some(2), "{new}");
        assert!(text(&output.stderr).contains(named), "{new}: {}", text(&output.stderr));
    }
}
