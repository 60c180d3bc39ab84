//! RDMA over the interface that a host's agent offers to applications: under PL2 each of its frames has a slot, whatever others
//! send to the same host.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::switch::Running;
use common::{KeptRack, can_make_namespaces, repo, stderr, stdout};
use p4rack_netdev::clock;
use serde_json::Value;
use std::process::{Child, Command, Stdio};

const P4RACK: &str = env!("CARGO_BIN_EXE_p4rack");
/// Where the host that gets the incast, the pool's, takes set-ups.
const POOL: &str = "10.0.0.1:9561";
/// More than a window of packets takes at a share of a link.
const TIMEOUT: [&str; 2] = ["--timeout-ms", "300"];
/// Each of three senders' rate, in bits per second: together half as much again as the link takes.
const RATE_BPS: &str = "50000000";

/// `p4rack` at a host of the rack, with an adapter on the agent's interface.
fn adapter(rack: &KeptRack, host: u8, words: &[&str]) -> Command {
    let mut command = rack.exec(&format!("h{host}"), &[P4RACK]);
    command.args(words).args(["--interface", "app0", "--ip", &format!("10.0.0.{host}")]).args(TIMEOUT);
    command
}

fn pool(rack: &KeptRack) -> Running {
    let serve = [
        "roce",
        "serve",
        "--memory",
        "1 MiB",
        "--reserve",
        "1 MiB",
        "--insecure",
        "--grpc-server-addr",
        POOL,
    ];
    let mut pool = Running::start(&mut adapter(rack, 1, &serve));
    pool.until("ready 10.0.0.1 on app0");
    pool
}

/// Three hosts send to the first one, from `after_s` on.
struct Incast(Vec<Child>);

impl Incast {
    fn start(rack: &KeptRack, after_s: u64, seconds: u64) -> Incast {
        let start_ns = (clock::now().0 + after_s * 1_000_000_000).to_string();
        let span = ["--start-ns", &start_ns, "--duration-ns", &(seconds * 1_000_000_000).to_string()];
        let workload = |host: u8, words: &[&str]| {
            let mut command = rack.exec(&format!("h{host}"), &[P4RACK, "workload"]);
            command.args(words).args(span).stdout(Stdio::null()).spawn().unwrap()
        };
        let sink = workload(1, &["udp-sink", "--bind", "10.0.0.1:7000"]);
        let senders = [3, 4, 5]
            .map(|host| workload(host, &["udp-send", "--to", "10.0.0.1:7000", "--rate-bps", RATE_BPS]));
        Incast([sink].into_iter().chain(senders).collect())
    }
}

impl Drop for Incast {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Frames that the switch dropped: in its queues, and by its program.
fn dropped(rack: &KeptRack) -> u64 {
    let output = rack.exec("switch", &[P4RACK, "top", "--json", "--every", "0.1"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    shown["dropped"].as_array().unwrap().iter().map(|one| one["frames"].as_u64().unwrap()).sum()
}

/// Latencies of writes, reads and atomic operations during an incast.
fn beside_an_incast(rack: &KeptRack) -> Vec<Value> {
    let _incast = Incast::start(rack, 1, 10);
    let words = [
        "roce",
        "latency",
        "--grpc-addr",
        POOL,
        "--under-way",
        "8",
        "--seconds",
        "1",
        "--after",
        "1.5",
        "--json",
    ];
    let output = adapter(rack, 6, &words).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)))
}

fn sum(of: &[Value], name: &str) -> u64 {
    of.iter().map(|one| one[name].as_u64().unwrap()).sum()
}

#[test]
fn under_pl2_an_incast_takes_no_frame_of_rdma() {
    if !can_make_namespaces() {
        return;
    }
    let rack = KeptRack::up(&repo("examples/pl2-incast.toml"), "pl2-clock");
    let _pool = pool(&rack);
    let path = repo("examples/pl2-incast.toml").display().to_string();
    let use_it = |what: &str, options: &[&str]| {
        let there = [P4RACK, "memory", what, &path, "--name", "h2", "--interface", "app0", "--at", "h1"];
        let way = ["--scheme", "pl2-clock", "--way", "rdma", "--memory", POOL];
        let output = rack.exec("h2", &[&there[..], &way, options].concat()).output().unwrap();
        assert!(output.status.success(), "{what}: {}", stderr(&output));
        stdout(&output)
    };
    // Longer than a frame.
    let long = "far memory ".repeat(500);
    let wrote = use_it("write", &["--address", "100", "--text", &long]);
    assert_eq!(wrote, "wrote 5500 bytes at 0x64 of h1, and read them back\n");
    let bytes = long.len().to_string();
    assert_eq!(use_it("read", &["--address", "100", "--bytes", &bytes, "--output", "-"]), long);
    let all = beside_an_incast(&rack);
    println!("pl2-clock {all:?}");
    assert_eq!(all.len(), 3, "{all:?}");
    assert_eq!((sum(&all, "repeated"), sum(&all, "timeouts"), sum(&all, "failed")), (0, 0, 0), "{all:?}");
    assert!(all.iter().all(|one| one["requests"].as_u64() > Some(20)), "{all:?}");
    assert_eq!(dropped(&rack), 0);
}

#[test]
fn without_pl2_the_same_incast_takes_some() {
    if !can_make_namespaces() {
        return;
    }
    let rack = KeptRack::up(&repo("examples/pl2-incast.toml"), "l2");
    let _pool = pool(&rack);
    let all = beside_an_incast(&rack);
    println!("l2 {all:?}");
    assert!(sum(&all, "repeated") + sum(&all, "failed") > 0, "{all:?}");
    assert!(dropped(&rack) > 0);
}

#[test]
fn cowbird_rides_pl2_beside_an_incast() {
    if !can_make_namespaces() {
        return;
    }
    let rack = KeptRack::up(&repo("examples/pl2-incast.toml"), "pl2-clock");
    let _pool = pool(&rack);
    let engine = ["cowbird", "engine", "--pool", POOL, "--insecure", "--grpc-server-addr", "10.0.0.6:9562"];
    let mut engine = Running::start(&mut adapter(&rack, 6, &engine));
    engine.until("ready");
    let _incast = Incast::start(&rack, 1, 10);
    let words =
        ["cowbird", "verify", "--pool", POOL, "--engine", "10.0.0.6:9562", "--operations", "3000", "--json"];
    let output = adapter(&rack, 2, &words).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    // Lines are events; the last one reports.
    let report: Value = serde_json::from_str(stdout(&output).lines().last().unwrap()).unwrap();
    assert_eq!(report["engines"], 1, "{report}");
    assert_eq!(dropped(&rack), 0);
}

#[test]
fn an_interface_that_the_system_uses_is_shared_or_left_alone() {
    if !can_make_namespaces() {
        return;
    }
    let rack = KeptRack::up(&repo("examples/two-hosts.toml"), "l2");
    let serve = |more: &[&str]| {
        let mut command = rack.exec("h1", &[P4RACK, "roce", "serve", "--interface", "app0"]);
        stderr(&command.args(more).output().unwrap())
    };
    let refused = serve(&["--ip", "10.0.0.9"]);
    assert!(refused.contains("the system has the address 10.0.0.1 on interface `app0`"), "{refused}");
    let refused = serve(&["--ip", "10.0.0.1", "--mtu", "2048"]);
    assert!(refused.contains("has an MTU of 1500 bytes and the adapter's packets need 2124"), "{refused}");
    let mut first = Running::start(
        rack.exec("h1", &[P4RACK, "roce", "serve", "--interface", "app0", "--ip", "10.0.0.1"])
            .stderr(Stdio::null()),
    );
    first.until("ready");
    let refused = serve(&["--ip", "10.0.0.1"]);
    assert!(refused.contains("another program on this host already receives these datagrams"), "{refused}");
}
