//! A key-value store in EDM memory and over TCP, on real packets; and that what is wrong with one is seen.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::{KeptRack, can_make_namespaces, have, one_at_a_time, p4rack, repo, stderr, stdout, wait_until};
use p4rack_netdev::clock;
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const SCHEME: &str = "edm-timed-dst";
const RECORDS: u64 = 1_000;
/// A record of the example: a head of 24 bytes and a value of 960.
const RECORD_BYTES: u64 = 984;

#[test]
fn up_runs_a_store_over_tcp_and_in_memory_and_reports_both() {
    if !can_make_namespaces() {
        return;
    }
    let _alone = one_at_a_time();
    let folder = tempfile::tempdir().unwrap();
    let (json, html) = (folder.path().join("results.json"), folder.path().join("report.html"));
    let output = p4rack()
        .args(["up", "--simulate", "--duration", "2", "--scheme", "l2", "--scheme", SCHEME])
        .arg(repo("examples/edm-kv.toml"))
        .arg(format!("--json={}", json.display()))
        .arg(format!("--html={}", html.display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    let results: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert_eq!(results["setting"]["kind"], "store");
    let of_world = |world: &str| results[world].as_array().unwrap().clone();
    let (schemes, simulated) = (of_world("schemes"), of_world("simulated"));
    let names = |schemes: &[Value]| schemes.iter().map(|scheme| scheme["name"].clone()).collect::<Vec<_>>();
    assert_eq!((names(&schemes), names(&simulated)), (vec!["l2".into(), SCHEME.into()], vec![SCHEME.into()]));
    assert!(stderr(&output).contains("l2 is not run in virtual time"), "{}", stderr(&output));
    for scheme in schemes.iter().chain(&simulated) {
        let store = &scheme["store"];
        assert_eq!((&store["lost"], &store["wrong"]), (&0.into(), &0.into()), "{store}");
        // Plain switching promises no frame, and TCP sends again what a late burst has cost: single frames of thousands.
        let most = if scheme["name"] == "l2" { store["ops_per_s"].as_f64().unwrap() / 100.0 } else { 0.0 };
        let drops = scheme["fabric_drops"].as_f64().unwrap();
        assert!(drops <= most, "{}: {}", scheme["name"], scheme["drops"]);
        let mixes = store["mixes"].as_array().unwrap();
        assert_eq!(mixes.iter().map(|mix| &mix["mix"]).collect::<Vec<_>>(), ["A", "B", "C", "F"]);
        for figures in mixes.iter().chain([store]) {
            let number = |key: &str| figures[key].as_f64().unwrap();
            assert!(number("ops_per_s") > 50.0, "{figures}");
            let quantiles = ["p50_us", "p99_us", "p999_us"].map(number);
            assert!(quantiles[0] > 1.0 && quantiles.is_sorted(), "{figures}");
        }
    }
    let table = stdout(&output);
    assert!(table.contains("A: operations a second") && table.contains("wrong answers"), "{table}");
    let page = fs::read_to_string(&html).unwrap();
    // A latency plot for each mix, a queue of each scheme's own.
    assert_eq!(page.matches("<svg").count(), 4 + 2);
    let curves = |scheme: usize| page.matches(&format!("<g class='series-{scheme}'")).count();
    assert_eq!([0, 1].map(curves), [5, 5], "a curve in each");
    assert!(page.contains("Mix F") && !page.contains("NaN"));
}

/// The slots' clients know no network: a way that has atomic operations carries them, whatever the order of bytes in its words.
#[test]
fn slots_are_carried_by_any_way_with_atomic_operations() {
    if !can_make_namespaces() {
        return;
    }
    let _alone = one_at_a_time();
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("results.json");
    let output = p4rack()
        .args(["up", "--duration", "1", "--scheme", "tcp", "--scheme", "rdma", "--set", "workload.depth=4"])
        .arg(repo("examples/edm-kv.toml"))
        .arg(format!("--json={}", json.display()))
        .arg("--pcap")
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    for (way, answers) in [("tcp", "ANSWER"), ("rdma", "ACK")] {
        let follow = |options: &[&str]| {
            let output = p4rack()
                .args(["memory", "follow", "--way", way, "--from", "h2"])
                .args(options)
                .args([repo("examples/edm-kv.toml"), folder.path().join(way)])
                .output()
                .unwrap();
            assert!(output.status.success(), "{way}: {}", stderr(&output));
            stdout(&output)
        };
        let list = follow(&["--most", "5"]);
        assert_eq!(list.matches("asked by h2: complete").count(), 5, "{way}: {list}");
        // The first one writes or locks a record, and each of its frames is on two links.
        let timeline = follow(&["--operation", "1"]);
        let is_on = |link: &str| timeline.contains(link);
        assert!(is_on(answers) && is_on("port2_in") && is_on("port1_out"), "{way}: {timeline}");
    }
    let results: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    let schemes = results["schemes"].as_array().unwrap();
    assert_eq!(schemes.iter().map(|scheme| &scheme["name"]).collect::<Vec<_>>(), ["tcp", "rdma"]);
    for scheme in schemes {
        let store = &scheme["store"];
        assert_eq!((&store["lost"], &store["wrong"]), (&0.into(), &0.into()), "{store}");
        let mixes = store["mixes"].as_array().unwrap();
        assert!(mixes.iter().all(|mix| mix["ops_per_s"].as_f64() > Some(50.0)), "{store}");
    }
    let refused =
        p4rack().args(["up", "--scheme", "local"]).arg(repo("examples/edm-kv.toml")).output().unwrap();
    assert!(stderr(&refused).contains("no atomic operations that clients share"), "{}", stderr(&refused));
}

/// Redis and Memcached hold the records in place of p4rack's server. Three clients with several operations each lose none of the other
/// clients' writes.
#[test]
fn a_store_runs_on_servers_of_other_projects() {
    let installed = [("redis-server", "redis-server"), ("memcached", "memcached")];
    if !can_make_namespaces() || !installed.iter().all(|(program, package)| have(program, package)) {
        return;
    }
    let _alone = one_at_a_time();
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("results.json");
    let output = p4rack()
        .args(["up", "--duration", "2", "--scheme", "redis", "--scheme", "memcached"])
        .args(["--set", "workload.depth=4", "--set", "workload.records=50"])
        .arg(repo("examples/clio-kv.toml"))
        .arg(format!("--json={}", json.display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    let results: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    let schemes = results["schemes"].as_array().unwrap();
    assert_eq!(schemes.iter().map(|scheme| &scheme["name"]).collect::<Vec<_>>(), ["redis", "memcached"]);
    for scheme in schemes {
        let store = &scheme["store"];
        assert_eq!((&store["lost"], &store["wrong"]), (&0.into(), &0.into()), "{store}");
        let mixes = store["mixes"].as_array().unwrap();
        assert!(mixes.len() == 4 && mixes.iter().all(|mix| mix["ops_per_s"].as_f64() > Some(0.0)), "{store}");
        assert!(store["server_cpu_ns"].as_f64() > Some(100.0), "{store}");
        assert!(store["server_resident_bytes"][1].as_u64() > Some(1 << 20), "{store}");
    }
    assert!(results["skipped"].is_null(), "{results}");
}

/// Without the programs, their runs are skipped by name and counted; the others take place.
#[test]
fn runs_without_their_server_are_skipped() {
    // `up` looks there too, whatever PATH is.
    let is_in_sbin = |program: &str| Path::new("/usr/sbin").join(program).is_file();
    if !can_make_namespaces() || is_in_sbin("redis-server") || is_in_sbin("memcached") {
        return;
    }
    let _alone = one_at_a_time();
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("results.json");
    let up = |schemes: &[&str]| {
        let schemes = schemes.iter().flat_map(|scheme| ["--scheme", scheme]);
        let mut command = p4rack();
        command.args(["up", "--duration", "0.5"]).args(schemes).arg(repo("examples/clio-kv.toml"));
        command.env("PATH", folder.path()).arg(format!("--json={}", json.display()));
        command.output().unwrap()
    };
    let output = up(&["l2", "redis", "memcached"]);
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    let table = stdout(&output);
    for (name, package) in [("redis", "redis-server"), ("memcached", "memcached")] {
        let line = format!("{name} skipped: needs {package}, get it by: sudo apt-get install {package}\n");
        assert!(table.contains(&line), "{table}");
    }
    assert!(table.contains("2 of 3 runs skipped\n"), "{table}");
    let results: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert_eq!(results["schemes"].as_array().unwrap().len(), 1);
    assert_eq!(results["skipped"][1]["name"], "memcached");
    let output = up(&["redis"]);
    assert!(
        !output.status.success() && stderr(&output).contains("redis skipped: needs"),
        "{}",
        stderr(&output)
    );
}

/// Clio over plain switching and through PL2's agents, beside a server over TCP, on a rack that describes a board. The board's
/// process grows no more once its memory is full, and nothing is lost or wrong.
#[test]
fn a_store_runs_on_a_described_board_with_and_without_pl2() {
    if !can_make_namespaces() {
        return;
    }
    let _alone = one_at_a_time();
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("results.json");
    let both = ["--scheme", "l2", "--scheme", "clio", "--scheme", "pl2-clock+clio"];
    let output = p4rack()
        .args(["up", "--duration", "2"])
        .args(both)
        .arg(repo("examples/clio-kv.toml"))
        .arg(format!("--json={}", json.display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    let results: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    let schemes = results["schemes"].as_array().unwrap();
    let names: Vec<_> = schemes.iter().map(|scheme| &scheme["name"]).collect();
    assert_eq!(names, ["l2", "clio", "clio+pl2-clock"]);
    for scheme in schemes {
        let store = &scheme["store"];
        assert_eq!((&store["lost"], &store["wrong"]), (&0.into(), &0.into()), "{store}");
        assert!(store["mixes"].as_array().unwrap().iter().all(|mix| mix["ops_per_s"].as_f64() > Some(0.0)));
        assert!(store["server_cpu_ns"].as_f64() > Some(100.0), "{store}");
        assert!(store["server_resident_bytes"][1].as_u64() > Some(1 << 20), "{store}");
    }
    let of_board = |scheme: &str| {
        let promises = results["promises"].as_array().unwrap().iter();
        promises
            .filter(|one| one["scheme"] == scheme && one["what"] == "memory of the board's process")
            .count()
    };
    assert_eq!(["l2", "clio", "clio+pl2-clock"].map(of_board), [0, 1, 1]);
    // Each names the field.
    for (set, wanted) in [
        ("clio.store=\"1 MiB\"", "of a board's store, and it has 1048576: set clio.store to"),
        ("workload.value_bytes=100", "set workload.value_bytes to a multiple of 8"),
        ("workload.server=h2", "needs h2 among the hosts of clio.boards"),
        ("clio.boards=[\"h9\"]", "clio.boards[0]: `h9` is no host"),
    ] {
        let output = p4rack()
            .args(["up", "--scheme", "clio", "--set", set, "--set", "workload.clients=[\"h3\"]"])
            .arg(repo("examples/clio-kv.toml"))
            .output()
            .unwrap();
        assert!(!output.status.success() && stderr(&output).contains(wanted), "{set}: {}", stderr(&output));
    }
}

/// Bulk traffic of another host to the server's port: TCP fills the port's queue with it, EDM does not, however late
/// processes are. How long operations wait depends on the machine as well, so it is shown here and not asserted.
#[test]
fn bulk_traffic_fills_tcps_queue_and_not_edms() {
    if !can_make_namespaces() {
        return;
    }
    let _alone = one_at_a_time();
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("results.json");
    let output = p4rack()
        .args(["up", "--duration", "4"])
        .arg(repo("examples/edm-bulk.toml"))
        .arg(format!("--json={}", json.display()))
        .output()
        .unwrap();
    let results: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert_eq!(results["setting"]["bulk"]["host"], "h5");
    let (l2, edm) = (&results["schemes"][0], &results["schemes"][1]);
    for scheme in [l2, edm] {
        let store = &scheme["store"];
        assert_eq!((&store["lost"], &store["wrong"]), (&0.into(), &0.into()), "{store}");
        assert!(store["bulk_bps"].as_u64() > Some(5_000_000), "{store}");
        assert!(store["mixes"].as_array().unwrap().iter().all(|mix| mix["ops_per_s"].as_f64() > Some(1.0)));
    }
    let queue = |scheme: &Value| scheme["queue_max_bytes"].as_u64().unwrap();
    assert!(queue(l2) > 2 * queue(edm), "{} {}", queue(l2), queue(edm));
    let promises = results["promises"].as_array().unwrap();
    let of = |what: &str| {
        promises.iter().filter(|one| one["what"].as_str().unwrap().contains(what)).collect::<Vec<_>>()
    };
    let deepest = of("the server's queue at its deepest");
    assert!(deepest.len() == 1 && deepest[0]["holds"] == true, "{deepest:?}");
    assert_eq!(of("beside bulk traffic").len(), 2, "{promises:?}");
    assert!(stdout(&output).contains("h5 wrote beside them"), "{}", stdout(&output));
}

/// A run can't go on without what serves its clients: it ends, and says what happened.
#[test]
fn a_server_that_is_killed_ends_the_run_by_name() {
    if !can_make_namespaces() {
        return;
    }
    let _alone = one_at_a_time();
    for (rack, scheme, serves, name) in [
        ("edm-kv", SCHEME, "memory serve ", "the memory node on h1"),
        ("edm-kv", "l2", "workload store-server ", "store-server on h1"),
        ("cowbird-kv", "rdma", "roce serve ", "the pool on h1"),
        ("cowbird-kv", "cowbird-spot", "cowbird engine ", "the engine on h3"),
    ] {
        let example = repo(&format!("examples/{rack}.toml"));
        let mut up = p4rack();
        up.arg("up").arg(example).args(["--scheme", scheme, "--duration", "600"]);
        let mut up = up.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let children = format!("/proc/{0}/task/{0}/children", up.id());
        let server = || {
            let children = fs::read_to_string(&children).unwrap_or_default();
            let is_server = |pid: &&str| {
                let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                let line = String::from_utf8_lossy(&line).replace('\0', " ");
                line.contains(serves)
            };
            children.split_whitespace().find(is_server).map(str::to_owned)
        };
        assert!(wait_until(Duration::from_secs(60), || server().is_some()), "{name}");
        // In the middle of its work, or of its clients' start.
        std::thread::sleep(Duration::from_secs(3));
        let pid = server().unwrap();
        assert!(Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
        let ended = wait_until(Duration::from_secs(60), || up.try_wait().unwrap().is_some());
        let _ = up.kill();
        let output = up.wait_with_output().unwrap();
        let said = stderr(&output);
        assert!(ended && output.status.code() == Some(1), "{name}: {said}");
        assert!(said.contains(&format!("error: {name} ended in the middle of the run, signal 9")), "{said}");
    }
}

/// A memory node that is ended when dropped.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A client must notice when its records are changed behind its back.
#[test]
fn a_client_sees_that_records_are_corrupted() {
    if !can_make_namespaces() {
        return;
    }
    let rack = KeptRack::up(&repo("examples/edm-kv.toml"), SCHEME);
    let (folder, path) = (tempfile::tempdir().unwrap(), repo("examples/edm-kv.toml").display().to_string());
    let (region, said) = (folder.path().join("region"), folder.path().join("said"));
    let own = env!("CARGO_BIN_EXE_p4rack");
    let words = |words: &[&str], host: &str| {
        let options = [&path, "--name", host, "--scheme", SCHEME].map(str::to_owned);
        let words = words.iter().map(|word| (*word).to_owned());
        std::iter::once(own.to_owned()).chain(words).chain(options).collect::<Vec<_>>()
    };
    let client = |what: &str| {
        let mut line = words(&["workload", what], "h2");
        let way = ["--arch", "v1model", "--interface", "eth0", "--ip", "10.0.0.2", "--way", SCHEME];
        line.extend(way.map(str::to_owned));
        line
    };
    let on = |host: &str, line: Vec<String>| -> Command {
        rack.exec(host, &line.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let mut line = words(&["memory", "serve"], "h1");
    line.extend(["--file".to_owned(), region.display().to_string()]);
    line.extend(["--bytes".to_owned(), (RECORDS * RECORD_BYTES).to_string()]);
    let _serving = Serving(on("h1", line).stdout(File::create(&said).unwrap()).spawn().unwrap());
    assert!(wait_until(Duration::from_secs(20), || fs::read_to_string(&said).unwrap().starts_with("ready")));

    let succeeds = |line: Vec<String>| {
        let output = on("h2", line).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let contents = || -> Value { serde_json::from_str(&succeeds(client("store-contents"))).unwrap() };
    succeeds(client("store-load"));
    assert_eq!(contents(), serde_json::json!({ "versions": RECORDS, "lost": 0, "wrong": 0 }));

    let run = || {
        let mut line = client("store-client");
        line.extend(["--start-ns".to_owned(), clock::now().0.to_string()]);
        line.extend(["--duration-ns".to_owned(), 1_200_000_000u64.to_string()]);
        on("h2", line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let of = |child: Child, key: &str| {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let report = stdout(&output).lines().last().unwrap().to_owned();
        let report: Value = serde_json::from_str(&report).unwrap();
        report["mixes"].as_array().unwrap().iter().map(|mix| mix[key].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(of(run(), "wrong"), 0);
    let client = run();
    std::thread::sleep(Duration::from_millis(400));
    let file = File::options().write(true).open(&region).unwrap();
    for record in 0..RECORDS {
        // A byte of the value.
        file.write_all_at(b"!", record * RECORD_BYTES + 100).unwrap();
    }
    assert!(of(client, "wrong") > 0, "nobody noticed");
    assert!(contents()["wrong"].as_u64().unwrap() > 0);
}
