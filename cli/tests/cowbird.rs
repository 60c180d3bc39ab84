//! `p4rack cowbird` as processes of their own: pool, engines and compute nodes in namespaces.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

#[path = "../../tests/certificates.rs"]
mod certificates;
mod common;

use certificates::{Certificates, VALID};
use common::cowbird::{operations, under_kills};
use common::switch::Running;
use common::{can_make_namespaces, have, one_at_a_time, p4rack, repo, stderr, stdout};
use p4rack_hosts::roce::star::Star;
use p4rack_netdev::NetNs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const POOL: &str = "192.168.9.1:9561";
/// Ways to remote memory without an engine in a switch.
const WITHOUT_SWITCH: [&str; 4] = ["local", "rdma-sync", "rdma", "cowbird-spot"];

fn command(ns: &NetNs, words: &[&str], host: u8) -> Command {
    let mut command = p4rack();
    command.args(words).args(["--interface", "roce0", "--ip", &Star::ip(host).to_string()]);
    ns.command(&mut command, true).unwrap();
    command
}

/// Starts a server at a host and waits until it can be reached. In plain text unless `words` configure
/// encryption.
fn server(star: &Star, host: u8, words: &[&str]) -> (Running, String) {
    let addr = format!("{}:{}", Star::setup_ip(host), 9_561 + u16::from(host));
    let mut command = command(star.host(host), words, host);
    let plain = if words.contains(&"--grpc-server-ssl") { None } else { Some("--insecure") };
    let mut running = Running::start(command.args(plain).args(["--grpc-server-addr", &addr]));
    running.until("ready");
    (running, addr)
}

fn pool(star: &Star, reserve: &str) -> Running {
    server(star, 0, &["roce", "serve", "--memory", "4 KiB", "--reserve", reserve]).0
}

fn engine(star: &Star, host: u8, more: &[&str]) -> (Running, String) {
    server(star, host, &[&["cowbird", "engine", "--pool", POOL], more].concat())
}

fn verify(star: &Star, host: u8, engines: &[&str], more: &[&str]) -> Command {
    let mut command = command(star.host(host), &["cowbird", "verify", "--pool", POOL], host);
    command.args(engines.iter().flat_map(|engine| ["--engine", *engine])).args(more);
    command
}

#[test]
fn threads_read_what_they_wrote_whatever_is_lost_on_the_way() {
    let _alone = one_at_a_time();
    if !can_make_namespaces() {
        return;
    }
    let star = Star::create(3).unwrap();
    let _pool = pool(&star, "1 MiB");
    let (mut engine, addr) = engine(&star, 1, &["--lose-per-mille", "3", "--json"]);
    for (bytes, more) in [("8", "0"), ("2048", "5")] {
        let words = ["--threads", "2", "--operations", "4000", "--bytes", bytes, "--lose-per-mille", more];
        let output = verify(&star, 2, &[&addr], &[&words[..], &["--json"]].concat()).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let said = stdout(&output);
        let mut events = said.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        assert_eq!(
            events.next().unwrap(),
            serde_json::json!({ "event": "ready", "state": "served", "engine": addr })
        );
        let report = events.next_back().unwrap();
        assert_eq!((&report["event"], &report["engines"]), (&"end".into(), &1.into()), "{report}");
        for thread in report["threads"].as_array().unwrap() {
            let of = |name: &str| thread[name].as_u64().unwrap();
            assert_eq!(of("reads") + of("writes"), 4_000 + (64 << 10) / bytes.parse::<u64>().unwrap());
        }
    }
    let told = Command::new("kill").args(["-TERM", &engine.0.id().to_string()]).status().unwrap();
    assert!(told.success());
    let end: serde_json::Value = serde_json::from_str(&engine.until("\"end\"")).unwrap();
    assert!(end["spot"]["tenants"] == 2 && end["engine"]["reads"].as_u64() > Some(4_000), "{end}");
}

#[test]
fn an_engine_that_is_killed_loses_nothing_that_was_done() {
    let _alone = one_at_a_time();
    if !can_make_namespaces() {
        return;
    }
    let star = Star::create(4).unwrap();
    let _pool = pool(&star, "1 MiB");
    let ((mut first, first_addr), (mut second, second_addr)) = (engine(&star, 1, &[]), engine(&star, 3, &[]));
    let words = ["--threads", "2", "--operations", "100000000"];
    let mut node = Running::start(&mut verify(&star, 2, &[&first_addr, &second_addr], &words));
    let a_while = || std::thread::sleep(Duration::from_millis(200));
    node.until(&format!("ready served by the engine at {first_addr}"));
    a_while();
    first.kill();
    node.until(&format!("served by the engine at {second_addr}"));
    let (_third, _) = engine(&star, 1, &[]);
    a_while();
    second.kill();
    node.until(&format!("served by the engine at {first_addr}"));
    a_while();
    let told = Command::new("kill").args(["-TERM", &node.0.id().to_string()]).status().unwrap();
    assert!(told.success());
    for thread in ["thread 0", "thread 1"] {
        assert!(node.until(thread).contains("all right"));
    }
    assert_eq!(node.until("engines"), "engines: 3");
    assert!(node.0.wait().unwrap().success());
}

#[test]
fn all_that_is_asked_for_is_done_and_right_while_frames_are_lost_and_engines_are_killed() {
    let _alone = one_at_a_time();
    if !can_make_namespaces() {
        return;
    }
    let (star, lossy, hosts) = (Star::create(4).unwrap(), ["--lose-per-mille", "1"], [1, 3]);
    let memory = ["roce", "serve", "--memory", "4 KiB", "--reserve", "1 MiB"];
    let _pool = server(&star, 0, &[&memory, &lossy[..]].concat());
    let mut engines = hosts.map(|host| engine(&star, host, &lossy));
    let addrs = engines.each_ref().map(|(_, addr)| addr.clone());
    let mut node = verify(&star, 2, &addrs.each_ref().map(String::as_str), &lossy);
    let period = Duration::from_millis(300);
    let (served, kills) = under_kills(&mut node, 2, operations(100_000), period, |nth| {
        // Whichever of them serves, it goes on with the other one.
        engines[nth % 2].0.kill();
        engines[nth % 2] = engine(&star, hosts[nth % 2], &lossy);
    });
    assert!(served > 1 && kills > 0, "{served} engines served, {kills} kills");
}

#[test]
fn a_compute_node_that_dies_leaves_nothing_behind() {
    let _alone = one_at_a_time();
    if !can_make_namespaces() {
        return;
    }
    let star = Star::create(4).unwrap();
    let pool = pool(&star, "120 KiB");
    let (mut engine, addr) = engine(&star, 1, &[]);
    let long = ["--operations", "100000000"];
    let mut node = Running::start(&mut verify(&star, 2, &[&addr], &long));
    node.until("ready");
    let short = ["--operations", "100"];
    let refused = verify(&star, 3, &[&addr], &short).output().unwrap();
    assert!(!refused.status.success());
    assert!(stderr(&refused).contains("57344 bytes left to reserve"), "{}", stderr(&refused));
    node.kill();
    let until = Instant::now() + Duration::from_secs(5);
    while !verify(&star, 3, &[&addr], &short).output().unwrap().status.success() {
        assert!(Instant::now() < until, "the memory did not come back");
    }
    // The pool's end loses the memory, and the compute node reports that.
    let mut node = verify(&star, 2, &[&addr], &[&long[..], &["--patience", "1"]].concat());
    let mut node = Running(node.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    node.until("ready");
    drop(pool);
    let mut error = String::new();
    node.0.stderr.take().unwrap().read_to_string(&mut error).unwrap();
    assert!(error.contains("the remote memory is lost: the pool is gone"), "{error}");
    assert!(!node.0.wait().unwrap().success());
    // Another pool at the same address has nothing of that; the same engine serves who reserves memory there.
    let _pool = self::pool(&star, "120 KiB");
    let anew = verify(&star, 2, &[&addr], &short).output().unwrap();
    assert!(anew.status.success(), "{}", stderr(&anew));
    let said = stdout(&anew);
    assert!(
        said.contains(&format!("served by the engine at {addr}")) && said.contains("all right"),
        "{said}"
    );
    engine.kill();
}

#[test]
fn what_makes_no_sense_is_refused_by_its_name() {
    let _alone = one_at_a_time();
    if !can_make_namespaces() {
        return;
    }
    let star = Star::create(3).unwrap();
    let _pool = pool(&star, "1 MiB");
    let (_engine, addr) = engine(&star, 1, &[]);
    for (more, says) in [
        (&["--ring", "12 KiB"][..], "request_bytes has to be a power of two"),
        (&["--entries", "3"], "entries has to be a power of two"),
        (&["--entries", "65536"], "rings of at most 16384 entries"),
        (&["--ring", "4 MiB"], "at most twice the longest message"),
        (&["--mtu", "256"], "mtu_bytes is 256 there and 1024 here"),
        (&["--memory", "2 MiB"], "1048576 bytes left to reserve"),
        (&["--bytes", "12"], "multiple of 8"),
    ] {
        let output = verify(&star, 2, &[&addr], more).output().unwrap();
        assert!(!output.status.success() && stderr(&output).contains(says), "{more:?}: {}", stderr(&output));
    }
    let nobody = verify(&star, 2, &["192.168.9.2:1"], &[]).output().unwrap();
    assert!(!nobody.status.success() && stderr(&nobody).contains("can't reach"), "{}", stderr(&nobody));
    let open =
        command(star.host(1), &["cowbird", "engine", "--pool", POOL, "--grpc-server-addr", "0.0.0.0:0"], 1);
    let open = { open }.output().unwrap();
    assert!(!open.status.success() && stderr(&open).contains("--insecure"), "{}", stderr(&open));
}

/// The example in C, compiled into `folder`, at the third host.
fn remote_rings(star: &Star, folder: &Path, engine: &str) -> Command {
    let program = folder.join("remote-rings");
    // The test's own folder has the library that was built with it.
    let libraries = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let compiled = Command::new("cc")
        .arg(repo("examples/remote-rings.c"))
        .arg("-I")
        .arg(repo("include"))
        .arg("-L")
        .arg(&libraries)
        .args(["-lp4rack_memory", "-o"])
        .arg(&program)
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", stderr(&compiled));
    let mut command = Command::new(&program);
    command.args(["roce0", &Star::ip(2).to_string(), POOL, engine]).env("LD_LIBRARY_PATH", &libraries);
    star.host(2).command(&mut command, true).unwrap();
    command
}

#[test]
fn a_program_in_c_uses_rings() {
    let _alone = one_at_a_time();
    if !can_make_namespaces() || !have("cc", "gcc") {
        return;
    }
    let star = Star::create(3).unwrap();
    let _pool = pool(&star, "1 MiB");
    let (_engine, addr) = engine(&star, 1, &[]);
    let folder = tempfile::tempdir().unwrap();
    let mut command = remote_rings(&star, folder.path(), &addr);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let said = format!(
        "served by {addr}\n1000 records written and read, 0 words wrong\n\
         beyond the end: the bytes are not all in a region of the node, or nothing was found\n"
    );
    assert_eq!(stdout(&output), said);
}

#[test]
fn a_store_keeps_its_old_records_in_remote_memory() {
    let _alone = one_at_a_time();
    if !can_make_namespaces() {
        return;
    }
    let words = "cowbird store --seconds 0.1 --records 5000 --value-bytes 56 --memory-percent 20 --json";
    let output = p4rack().args(words.split(' ')).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let all: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    let expected: Vec<(&str, &str)> =
        WITHOUT_SWITCH.iter().flat_map(|scheme| ["A", "B", "C", "F"].map(|mix| (*scheme, mix))).collect();
    let found: Vec<(&str, &str)> =
        all.iter().map(|one| (one["scheme"].as_str().unwrap(), one["mix"].as_str().unwrap())).collect();
    assert_eq!(found, expected);
    for one in &all {
        assert!(one["operations"].as_u64().unwrap() > 100, "{one}");
        assert_eq!((one["lost"].as_u64(), one["wrong"].as_u64()), (Some(0), Some(0)), "{one}");
        assert_eq!(one["cold_share"].as_f64().unwrap() > 0.1, one["scheme"] != "local", "{one}");
    }
    let written = |one: &&serde_json::Value| one["mix"] == "A" && one["pages_written"].as_u64().unwrap() > 0;
    assert_eq!(all.iter().filter(written).count(), 3, "{all:?}");
}

#[test]
fn a_hash_table_is_looked_up_in_each_way() {
    let _alone = one_at_a_time();
    if !can_make_namespaces() {
        return;
    }
    let words = [
        "cowbird",
        "hash",
        "--seconds",
        "0.1",
        "--records",
        "2000",
        "--bytes",
        "8",
        "--bytes",
        "512",
        "--json",
    ];
    let output = p4rack().args(words).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let all: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    let schemes: Vec<&str> = all.iter().map(|one| one["scheme"].as_str().unwrap()).collect();
    assert_eq!(schemes, [WITHOUT_SWITCH; 2].concat());
    for one in &all {
        assert!(
            one["probes"].as_u64().unwrap() > 100 && one["thread_cpu_ns"].as_f64().unwrap() > 0.0,
            "{one}"
        );
        assert_eq!(one["engine_cpu_ns"].is_number(), one["scheme"] == "cowbird-spot");
    }
}

#[test]
fn both_set_ups_are_encrypted_if_asked_for_and_ask_for_certificates() {
    let _alone = one_at_a_time();
    if !can_make_namespaces() {
        return;
    }
    let Some(certificates) = Certificates::new() else { return };
    certificates.sign("rack", "ca", "IP:192.168.9.1,IP:192.168.9.2", VALID);
    let files = ["ca.pem", "other.pem", "other.key", "rack.pem", "rack.key"];
    let [ca, stranger, stranger_key, cert, key] =
        files.map(|name| certificates.file(name).display().to_string());
    let star = Star::create(3).unwrap();
    let ours = ["--ssl", "--cacert", &ca, "--cert", &cert, "--private-key", &key];
    let of_server = ["--grpc-server-ssl", "--grpc-server-cert", &cert, "--grpc-server-key", &key];
    let of_server = [&of_server[..], &["--grpc-server-cacert", &ca]].concat();
    let words = ["roce", "serve", "--memory", "4 KiB", "--reserve", "1 MiB"];
    let (_pool, _) = server(&star, 0, &[&words, &of_server[..]].concat());
    let (_engine, addr) = engine(&star, 1, &[&ours, &of_server[..]].concat());
    let run = |tls: &[&str]| {
        verify(&star, 2, &[&addr], &[&["--operations", "500"], tls].concat()).output().unwrap()
    };
    let output = run(&ours);
    assert!(output.status.success(), "{}", stderr(&output));
    let mut from_c = remote_rings(&star, certificates.path(), &addr);
    let output = from_c.args([&ca, &cert, &key]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    for tls in [
        &[][..],
        &["--ssl", "--cacert", &ca],
        &["--ssl", "--cacert", &stranger],
        &["--ssl", "--cacert", &ca, "--cert", &stranger, "--private-key", &stranger_key],
    ] {
        let refused = run(tls);
        assert!(!refused.status.success(), "{tls:?}: {}", stdout(&refused));
    }
}
