//! Remote memory by hand, between hosts of a rack with the embedded switch.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

#[path = "../../tests/certificates.rs"]
mod certificates;
mod common;

use certificates::{Certificates, VALID};
use common::{KeptRack, can_make_namespaces, have, one_at_a_time, p4rack, repo, stderr, stdout, wait_until};
use serde_json::Value;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Output};
use std::time::Duration;

const SCHEME: &str = "edm-timed-dst";
const LIMIT: Duration = Duration::from_secs(20);
const REGION_BYTES: u64 = 64 << 10;

/// A memory node that is ended when dropped.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A rack with a memory node on h1 and its file.
struct Rack {
    rack: KeptRack,
    path: String,
    folder: tempfile::TempDir,
}

impl Rack {
    fn up() -> Rack {
        let path = repo("examples/edm-kv.toml");
        let rack = KeptRack::up(&path, SCHEME);
        Rack { rack, path: path.display().to_string(), folder: tempfile::tempdir().unwrap() }
    }

    /// `p4rack memory WORDS… RACK --name HOST OPTIONS…` on a host.
    fn memory(&self, host: &str, what: &str, options: &[&str]) -> std::process::Command {
        let own = env!("CARGO_BIN_EXE_p4rack");
        let mut words = vec![own, "memory", what, &self.path, "--scheme", SCHEME, "--name", host];
        words.extend(options);
        self.rack.exec(host, &words)
    }

    fn file(&self) -> std::path::PathBuf {
        self.folder.path().join("region")
    }

    fn serve(&self, options: &[&str]) -> Serving {
        let said = self.folder.path().join("said");
        let region = self.file();
        let mut words = vec!["--json", "--file", region.to_str().unwrap()];
        words.extend(options);
        let mut command = self.memory("h1", "serve", &words);
        let child = command.stdout(File::create(&said).unwrap()).spawn().unwrap();
        let serving = Serving(child);
        let first = || fs::read_to_string(&said).unwrap();
        assert!(wait_until(LIMIT, || first().ends_with('\n')), "{}", first());
        let event: Value = serde_json::from_str(&first()).unwrap();
        assert_eq!((&event["event"], &event["host"]), (&"ready".into(), &"h1".into()), "{event}");
        assert_eq!(event["bytes"], fs::metadata(&region).unwrap().len(), "{event}");
        serving
    }

    /// Uses the memory from h2.
    fn use_it(&self, what: &str, options: &[&str]) -> Output {
        self.memory("h2", what, &[&["--at", "h1"], options].concat()).output().unwrap()
    }

    fn succeeds(&self, what: &str, options: &[&str]) -> String {
        let output = self.use_it(what, options);
        assert!(output.status.success(), "{what} {options:?}: {}", stderr(&output));
        stdout(&output)
    }

    fn fails(&self, what: &str, options: &[&str]) -> String {
        let output = self.use_it(what, options);
        assert_eq!(output.status.code(), Some(1), "{what} {options:?}: {}", stdout(&output));
        stderr(&output)
    }
}

/// The same commands by other ways, on the same rack: its agents carry TCP and RDMA.
#[test]
fn memory_is_used_by_the_way_that_is_named() {
    if !can_make_namespaces() {
        return;
    }
    let rack = Rack::up();
    let confirm = rack.memory("h1", "serve", &["--way", "tcp", "--bytes", "4096"]).output().unwrap();
    assert!(stderr(&confirm).contains("confirm with --insecure"), "{}", stderr(&confirm));
    for way in ["tcp", "rdma", "clio"] {
        let said = rack.folder.path().join(way);
        let mut serve = rack.memory("h1", "serve", &["--way", way, "--bytes", "0x1000", "--insecure"]);
        let _serving = Serving(serve.stdout(File::create(&said).unwrap()).spawn().unwrap());
        assert!(wait_until(LIMIT, || fs::read_to_string(&said).unwrap().starts_with("ready ")), "{way}");
        let by = |what: &str, options: &[&str]| rack.use_it(what, &[&["--way", way], options].concat());
        let succeeds = |what: &str, options: &[&str]| {
            let output = by(what, options);
            assert!(output.status.success(), "{way} {what}: {}", stderr(&output));
            stdout(&output)
        };
        let wrote = succeeds("write", &["--address", "0xff0", "--text", "remote memory"]);
        assert_eq!(wrote, "wrote 13 bytes at 0xff0 of h1, and read them back\n");
        assert!(succeeds("read", &["--address", "0xff0", "--bytes", "13"]).contains("remote memory"));
        assert_eq!(succeeds("cas", &["--address", "8", "0", "0x10"]), "0 (0x0) was at 0x8 of h1\n");
        let json: Value = serde_json::from_str(&succeeds("add", &["--address", "8", "1", "--json"])).unwrap();
        assert_eq!(json["old"], 16);
        let beyond = by("read", &["--address", "0xff8", "--bytes", "9"]);
        assert!(stderr(&beyond).contains("out of bounds"), "{way}: {}", stderr(&beyond));
        let wrong = by("read", &["--interface", "lo", "--bytes", "1"]);
        assert!(stderr(&wrong).contains("is not h2's link to the rack"), "{way}: {}", stderr(&wrong));
        // Neither on another host nor outside of the rack.
        let read = ["memory", "read", &rack.path, "--way", way, "--name", "h2", "--at", "h1", "--bytes", "1"];
        let own = env!("CARGO_BIN_EXE_p4rack");
        let mut outside = rack.rack.command();
        outside.args(read);
        for mut wrong in [rack.rack.exec("h3", &[&[own], &read[..]].concat()), outside] {
            let said = stderr(&wrong.output().unwrap());
            assert!(said.contains("is not h2's link to the rack"), "{way}: {said}");
            assert!(said.contains("p4rack exec h2 -- p4rack memory read"), "{way}: {said}");
        }
        let swap = by("modify", &["--operation", "swap", "--operand", "1"]);
        assert_eq!(swap.status.success(), way != "rdma", "{way}: {}", stderr(&swap));
    }
}

/// Without a rack, an address of the description leads to whatever network the machine is in. One that is given may be of loopback.
#[test]
fn memory_outside_of_a_rack_is_used_at_a_given_address_alone() {
    let _alone = one_at_a_time();
    let path = repo("examples/edm-kv.toml").display().to_string();
    let read = |way: &str, options: &[&str]| {
        let mut command = p4rack();
        command.args(["memory", "read", &path, "--way", way, "--name", "h2", "--at", "h1", "--bytes", "9"]);
        command.args(options).output().unwrap()
    };
    for way in ["tcp", "clio", "rdma", "cowbird-spot", SCHEME] {
        let refused = read(way, &["--interface", "lo"]);
        assert!(stderr(&refused).contains("`p4rack exec h2"), "{way}: {}", stderr(&refused));
        let refused = read(way, &[]);
        assert!(stderr(&refused).contains("`p4rack exec h2"), "{way}: {}", stderr(&refused));
    }
    let folder = tempfile::tempdir().unwrap();
    let address = "127.0.4.9";
    for (way, port) in [("tcp", 7004), ("clio", 9563)] {
        let said = folder.path().join(way);
        let mut serve = p4rack();
        serve.args(["memory", "serve", &path, "--name", "h1", "--way", way, "--bind", address]);
        serve.args(["--bytes", "64 KiB"]).stdout(File::create(&said).unwrap());
        let _serving = Serving(serve.spawn().unwrap());
        assert!(wait_until(LIMIT, || fs::read_to_string(&said).unwrap().starts_with("ready ")), "{way}");
        let given = read(way, &["--memory", &format!("{address}:{port}")]);
        assert!(given.status.success(), "{way}: {}", stderr(&given));
    }
}

/// A board that the description has needs no options, its clients take its port and patience from there, and other hosts are none.
#[test]
fn a_described_board_is_served_and_used_as_described() {
    if !can_make_namespaces() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rack.toml");
    let example = fs::read_to_string(repo("examples/edm-kv.toml")).unwrap();
    let board = "[clio]\nboards = [\"h1\"]\nmemory = \"8 MiB\"\npage_sizes = [\"2 MiB\"]\nudp_port = 4000\nretries = 3\n";
    fs::write(&path, example.replace("[workload]", &format!("{board}[workload]"))).unwrap();
    let rack = KeptRack::up(&path, "clio");
    let (own, path) = (env!("CARGO_BIN_EXE_p4rack"), path.to_str().unwrap());
    let memory = |host: &str, what: &str, options: &[&str]| {
        let words = [&[own, "memory", what, path, "--way", "clio", "--name", host], options].concat();
        rack.exec(host, &words)
    };
    let elsewhere = memory("h2", "serve", &["--insecure"]).output().unwrap();
    assert!(stderr(&elsewhere).contains("h2 has no board: clio.boards has h1"), "{}", stderr(&elsewhere));
    let said = folder.path().join("said");
    let mut serve = memory("h1", "serve", &["--insecure", "--json"]);
    let _serving = Serving(serve.stdout(File::create(&said).unwrap()).spawn().unwrap());
    assert!(wait_until(LIMIT, || fs::read_to_string(&said).unwrap().ends_with('\n')));
    let event: Value = serde_json::from_str(&fs::read_to_string(&said).unwrap()).unwrap();
    assert_eq!(event["bytes"], 8 << 20, "{event}");
    let write = ["--at", "h1", "--address", "0x3ffff8", "--text", "across the edge of two pages"];
    let wrote = memory("h2", "write", &write).output().unwrap();
    assert!(wrote.status.success(), "{}", stderr(&wrote));
    let read =
        memory("h3", "read", &["--at", "h1", "--address", "0x400000", "--bytes", "8"]).output().unwrap();
    assert!(stdout(&read).contains("he edge"), "{}{}", stdout(&read), stderr(&read));
    let beyond =
        memory("h3", "read", &["--at", "h1", "--address", "0x800000", "--bytes", "1"]).output().unwrap();
    assert!(stderr(&beyond).contains("out of bounds"), "{}", stderr(&beyond));
    let no_board = memory("h3", "read", &["--at", "h2", "--bytes", "1"]).output().unwrap();
    assert!(stderr(&no_board).contains("h2 has no board: clio.boards has h1"), "{}", stderr(&no_board));
}

/// Boards and pools encrypt their set-ups; the other services have none.
#[test]
fn the_set_up_of_memory_is_encrypted_if_asked_for() {
    if !can_make_namespaces() {
        return;
    }
    let Some(certificates) = Certificates::new() else { return };
    certificates.sign("h1", "ca", "IP:10.0.0.1", VALID);
    certificates.sign("h2", "ca", "IP:10.0.0.2", VALID);
    let file = |name: &str| certificates.file(name).display().to_string();
    let (ca, cert, key) = (file("ca.pem"), file("h1.pem"), file("h1.key"));
    let of_server = ["--grpc-server-ssl", "--grpc-server-cert", &cert, "--grpc-server-key", &key];
    let trusted = ["--ssl", "--cacert", &ca];
    let (own_cert, own_key) = (file("h2.pem"), file("h2.key"));
    let known = ["--cert", &own_cert, "--private-key", &own_key];
    let rack = Rack::up();
    let open = rack.memory("h1", "serve", &["--way", "clio", "--bytes", "64 KiB"]).output().unwrap();
    assert!(stderr(&open).contains("with --grpc-server-cacert admit only"), "{}", stderr(&open));
    for (way, is_restricted) in [("clio", false), ("rdma", false), ("clio", true), ("rdma", true)] {
        let authority = ["--grpc-server-cacert", &ca];
        let authority = if is_restricted { &authority[..] } else { &[] };
        let serve = [&["--way", way, "--bytes", "64 KiB"], &of_server[..], authority].concat();
        let said = rack.folder.path().join(way);
        let mut serve = rack.memory("h1", "serve", &serve);
        let _serving = Serving(serve.stdout(File::create(&said).unwrap()).spawn().unwrap());
        assert!(wait_until(LIMIT, || fs::read_to_string(&said).unwrap().starts_with("ready ")), "{way}");
        let write = ["--way", way, "--address", "8", "--text", "sealed"];
        // Encryption alone admits every host.
        let wrote = rack.use_it("write", &[&write, &trusted[..]].concat());
        assert_eq!(wrote.status.success(), !is_restricted, "{way}: {}", stderr(&wrote));
        let wrote = rack.use_it("write", &[&write, &trusted[..], &known].concat());
        assert!(wrote.status.success(), "{way}: {}", stderr(&wrote));
        let plain = rack.use_it("write", &write);
        assert!(!plain.status.success(), "{way}: {}", stdout(&plain));
    }
    for way in ["tcp", SCHEME] {
        let serve = [&["--way", way, "--bytes", "64 KiB"], &of_server[..]].concat();
        let refused = stderr(&rack.memory("h1", "serve", &serve).output().unwrap());
        assert!(refused.contains("--grpc-server-ssl: --way") && refused.contains("no set-up"), "{refused}");
    }
}

/// Bytes from one host to the file of another, words changed there, refusals in words; everything on real packets.
#[test]
fn a_host_uses_a_file_of_another() {
    if !can_make_namespaces() {
        return;
    }
    let rack = Rack::up();
    let stats = rack.folder.path().join("stats.json");
    let size = REGION_BYTES.to_string();
    let mut serving = rack.serve(&[
        "--bytes",
        &size,
        "--key",
        "7",
        "--address",
        "0x1000",
        "--stats",
        stats.to_str().unwrap(),
    ]);

    let said = rack.succeeds("write", &["--key", "7", "--address", "0x1000", "--text", "remote memory"]);
    assert_eq!(said, "wrote 13 bytes at 0x1000 of h1, and read them back\n");
    assert!(fs::read(rack.file()).unwrap().starts_with(b"remote memory\0"), "it is in the file");
    let said = rack.succeeds("read", &["--key", "7", "--address", "0x1000", "--bytes", "13"]);
    assert!(said.contains("remote memory") && said.starts_with("00001000  72 65"), "{said}");

    // Many chunks there and back.
    let (from, to) = (rack.folder.path().join("from"), rack.folder.path().join("to"));
    let long: Vec<u8> = (0..60_000u32).map(|n| (n * 7 + n / 256) as u8).collect();
    fs::write(&from, &long).unwrap();
    rack.succeeds("write", &["--key", "7", "--address", "0x1000", "--file", from.to_str().unwrap()]);
    let output = ["--key", "7", "--address", "0x1000", "--bytes", "60000", "--output", to.to_str().unwrap()];
    rack.succeeds("read", &output);
    assert!(fs::read(&to).unwrap() == long && fs::read(rack.file()).unwrap()[..60_000] == long[..]);

    let word = |more: &[&str]| {
        let options = [&["--key", "7", "--address", "4096", "--json"], more].concat();
        let answer: Value = serde_json::from_str(&rack.succeeds("modify", &options)).unwrap();
        answer["old"].as_u64().unwrap()
    };
    word(&["--operation", "swap", "--operand", "40"]);
    assert_eq!(word(&["--operation", "fetch-add", "--operand", "2"]), 40);
    assert_eq!(word(&["--operation", "cas", "--expected", "42", "--operand", "0x7"]), 42);
    assert_eq!(word(&["--operation", "cas", "--expected", "42", "--operand", "8"]), 7);

    let at = ["--key", "7", "--address", "4096"];
    for (what, options, expected) in [
        ("read", &["--bytes", "8", "--address", "4096"][..], "another key; give it with --key"),
        ("read", &["--bytes", "8", "--key", "7"], "out of bounds"),
        ("read", &["--bytes", "65537", "--key", "7", "--address", "4096"], "out of bounds"),
        (
            "modify",
            &["--key", "7", "--address", "4097", "--operation", "swap", "--operand", "1"],
            "multiple of eight",
        ),
        ("modify", &[&at[..], &["--operation", "cas", "--operand", "1"]].concat(), "--expected"),
    ] {
        let said = rack.fails(what, options);
        assert!(said.starts_with("error: ") && said.contains(expected), "{what} {options:?}: {said}");
    }
    // In short, with the same words.
    assert_eq!(rack.succeeds("cas", &[&at[..], &["0x7", "9"]].concat()), "7 (0x7) was at 0x1000 of h1\n");
    assert_eq!(rack.succeeds("add", &[&at[..], &["0xa"]].concat()), "9 (0x9) was at 0x1000 of h1\n");

    // Wrong places are named, with the command for the right one.
    let read =
        ["memory", "read", &rack.path, "--name", "h2", "--at", "h1", "--bytes", "64 B", "--scheme", SCHEME];
    let outside = rack.rack.command().args(read).output().unwrap();
    let said = stderr(&outside);
    assert_eq!(outside.status.code(), Some(1), "{}", stdout(&outside));
    assert!(said.contains("is not h2's link to the rack"), "{said}");
    assert!(
        said.contains(": p4rack exec h2 -- p4rack memory read") && said.contains("--bytes '64 B'"),
        "{said}"
    );
    let own = env!("CARGO_BIN_EXE_p4rack");
    let elsewhere = rack.rack.exec("h3", &[&[own], &read[..]].concat()).output().unwrap();
    assert!(stderr(&elsewhere).contains("this is h3"), "{}", stderr(&elsewhere));

    let output = rack.memory("h2", "read", &["--at", "h3", "--bytes", "8"]).output().unwrap();
    assert!(stderr(&output).contains("h3 is no memory node: edm.memory has h1"), "{}", stderr(&output));

    // The file is in use by another process; at its end, the node writes its statistics.
    let second = rack.memory("h1", "serve", &["--file", rack.file().to_str().unwrap()]).output().unwrap();
    assert!(stderr(&second).contains("another process serves it"), "{}", stderr(&second));
    end(&mut serving);
    let report: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
    assert_eq!((&report["counters"]["writes"], &report["counters"]["modifies"]), (&2.into(), &6.into()));
    assert_eq!(report["refused"]["wrong_key"], 1, "{report}");

    // The memory node has ended: the outcome is unknown, and the client reports that within its time limit.
    let said = rack.fails("read", &["--bytes", "8", "--key", "7", "--address", "4096"]);
    assert!(said.contains("no answer in time") && said.contains("p4rack memory serve"), "{said}");

    // The file kept what was written, and is now served read only.
    let _again = rack.serve(&["--read-only"]);
    let said = rack.succeeds("read", &["--address", "8", "--bytes", "8", "--json"]);
    let read: Value = serde_json::from_str(&said).unwrap();
    let hex: String = long[8..16].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(read, serde_json::json!({ "address": 8, "bytes": 8, "hex": hex }));
    assert!(rack.fails("modify", &["--operation", "swap", "--operand", "1"]).contains("does not permit"));
    let said = rack.fails("write", &["--hex", "00ff"]);
    assert!(said.contains("read only"), "{said}");
    // A write has no answer.
    let said = rack.fails("write", &["--address", "0xffff0000", "--hex", "00ff"]);
    let refused = "writing 2 bytes at 0xffff0000 of h1 was refused, as reading back shows: out of bounds";
    assert!(said.contains(refused), "{said}");
}

/// Ends a memory node as its operator would.
fn end(serving: &mut Serving) {
    // `p4rack exec` has become the memory node.
    let told =
        std::process::Command::new("kill").args(["-TERM", &serving.0.id().to_string()]).status().unwrap();
    assert!(told.success() && serving.0.wait().unwrap().success());
}

/// The example in C, compiled and run on a host.
#[test]
fn a_c_program_uses_the_memory_of_another_host() {
    if !can_make_namespaces() || !have("cc", "gcc") {
        return;
    }
    let rack = Rack::up();
    let size = REGION_BYTES.to_string();
    let _serving = rack.serve(&["--bytes", &size, "--key", "9"]);
    let program = rack.folder.path().join("remote-memory").display().to_string();
    // The test's own folder has the library that was built with it.
    let libraries = std::env::current_exe().unwrap().parent().unwrap().display().to_string();
    let compiled = std::process::Command::new("cc")
        .arg(repo("examples/remote-memory.c"))
        .arg("-I")
        .arg(repo("include"))
        .args(["-L", &libraries, "-lp4rack_memory", "-o", &program])
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", stderr(&compiled));
    let path = format!("LD_LIBRARY_PATH={libraries}");
    let run = |host: &str, key: &str| {
        rack.rack.exec(host, &["env", &path, &program, &rack.path, host, "h1", key]).output().unwrap()
    };
    let said = |visitor: u32, sum: u32| {
        format!(
            "read back: written from C\nvisitor {visitor}\nthe lock was free\nsum of the counters {sum}\n\
             read later: written from C\na word at 4: there is no such operation or offload, it failed, or its address is no multiple of eight\n"
        )
    };
    for (host, visitor, sum) in [("h2", 1, 28), ("h3", 2, 56)] {
        let output = run(host, "9");
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(stdout(&output), said(visitor, sum));
    }
    let bytes = fs::read(rack.file()).unwrap();
    assert!(bytes[256..].starts_with(b"written from C\0"), "it is in the file");
    assert_eq!(bytes[..16], [0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0], "two visitors, no lock");
    let output = run("h2", "8");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("read: the region has another key"), "{}", stderr(&output));
}

#[test]
fn a_benchmark_measures_memory_beside_udp() {
    if !can_make_namespaces() {
        return;
    }
    let _alone = one_at_a_time();
    let output = p4rack()
        .args(["memory", "bench", "--each", "0.3", "--bytes", "100", "--json", "--quiet"])
        .arg(repo("examples/edm-kv.toml"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let figures: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(
        (&figures["client"], &figures["server"], &figures["memory"]["bytes"]),
        (&"h2".into(), &"h1".into(), &100.into())
    );
    let all = figures["memory"]["latencies"]
        .as_array()
        .unwrap()
        .iter()
        .chain(figures["ping_pongs"].as_array().unwrap());
    let names: Vec<_> = all
        .map(|one| {
            let number = |key: &str| one[key].as_f64().unwrap();
            assert!(number("operations") > 10.0 && number("unknown") == 0.0, "{one}");
            let order = ["min_us", "p50_us", "p99_us", "p999_us"].map(number);
            assert!(order[0] > 0.0 && order.is_sorted(), "{one}");
            one["what"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(names, ["read", "write", "fetch-add", "UDP ping-pong", "UDP, forwarded"]);
    for rate in figures["memory"]["rates"].as_array().unwrap() {
        assert!(rate["per_s"].as_f64().unwrap() > 100.0 && rate["unknown"] == 0, "{rate}");
    }
}

/// Mistakes that are refused without a network.
#[test]
fn descriptions_without_memory_are_refused_in_words() {
    let with = repo("examples/edm-kv.toml").display().to_string();
    let without = repo("examples/two-hosts.toml").display().to_string();
    let read = ["--at", "h1", "--bytes", "8"];
    for (words, expected) in [
        (&["read", &without, "--name", "h2"][..], "has no way to remote memory"),
        (&["read", &with, "--name", "h9"], "no host is called `h9`; there are h1, h2, h3, h4"),
        (&["read", &with, "--name", "h2", "--scheme", "l2"], "has no way to remote memory under this scheme"),
        (&["read", &with, "--name", "h2", "--interface", "nowhere0"], "nowhere0"),
    ] {
        let output = p4rack().arg("memory").args(words).args(read).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        assert!(
            stderr(&output).starts_with("error: ") && stderr(&output).contains(expected),
            "{}",
            stderr(&output)
        );
    }
    let serve = |options: &[&str]| {
        let output =
            p4rack().args(["memory", "serve", &with, "--name", "h1"]).args(options).output().unwrap();
        (output.status.code(), stderr(&output))
    };
    let (code, said) = serve(&[]);
    assert!(code == Some(1) && said.contains("--bytes"), "{said}");
    let (code, said) = serve(&["--file", "/nonexistent/region"]);
    assert!(code == Some(1) && said.contains("/nonexistent/region"), "{said}");
    let (code, said) = serve(&["--bytes", "0"]);
    assert!(code == Some(1) && said.contains("0 bytes"), "{said}");
    let write = ["memory", "write", &with, "--name", "h2", "--at", "h1", "--text", ""];
    let output = p4rack().args(write).output().unwrap();
    assert!(output.status.code() == Some(1) && stderr(&output).contains("no bytes"), "{}", stderr(&output));
    let not_there = Path::new("/nonexistent/stats");
    let (code, said) = serve(&["--bytes", "8", "--stats", not_there.to_str().unwrap()]);
    assert!(code == Some(1) && said.contains("--stats: /nonexistent/stats"), "{said}");
}
