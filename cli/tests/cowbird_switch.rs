//! Cowbird's engine in the embedded switch: pool, switch, its controller and compute nodes as processes in namespaces.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "../../tests/silent.rs"]
mod silent;

use common::cowbird::{operations, under_kills};
use common::switch::Running;
use common::{can_make_namespaces, one_at_a_time, p4rack, stderr, stdout, wait_until};
use p4rack_hosts::roce::setup::Server;
use p4rack_hosts::roce::star::Star;
use p4rack_netdev::NetNs;
use p4rack_p4rt::p4rack::cowbird::v1::cowbird_client::CowbirdClient;
use p4rack_p4rt::p4rack::cowbird::v1::{ServeRequest, Set};
use p4rack_p4rt::p4rack::roce::v1::End;
use p4rack_wire::cowbird::Layout;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const POOL: &str = "192.168.9.1:9561";
const ENGINE: &str = "192.168.9.254:9562";

/// A rack whose first host is the pool; the others are compute nodes. Fields that others depend on drop last.
struct Rack {
    switch: Running,
    engine: Running,
    pool: Running,
    folder: tempfile::TempDir,
    star: Star,
}

fn within(ns: &NetNs, words: &[&str]) -> Command {
    let mut command = p4rack();
    command.args(words);
    ns.command(&mut command, true).unwrap();
    command
}

/// A process of a host with an adapter.
fn adapter(star: &Star, host: u8, words: &[&str]) -> Command {
    let mut command = within(star.host(host), words);
    command.args(["--interface", "roce0", "--ip", &Star::ip(host).to_string(), "--ignore-icrc"]);
    command
}

impl Rack {
    fn start(compute_nodes: u8) -> Rack {
        Rack::start_on(compute_nodes, "v1model")
    }

    /// A rack whose switch has a program for this architecture.
    fn start_on(compute_nodes: u8, arch: &str) -> Rack {
        Rack::described(compute_nodes, arch, "", &[])
    }

    /// The same with more in its `[cowbird]`, and for the pool's adapter.
    fn described(compute_nodes: u8, arch: &str, more: &str, pool: &[&str]) -> Rack {
        let star = Star::without_bridge(1 + compute_nodes).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let compute: Vec<String> = (1..=compute_nodes).map(|host| format!("\"h{host}\"")).collect();
        let hosts: String = (0..=compute_nodes)
            .map(|host| {
                let (port, mac, ip) = (host + 1, Star::mac(host), Star::ip(host));
                format!("[[host]]\nname = \"h{host}\"\nport = {port}\nmac = \"{mac}\"\nip = \"{ip}/24\"\n")
            })
            .collect();
        let text = format!(
            "name = \"offload\"\n[switch]\narch = \"{arch}\"\nport_rate = \"10 Gb/s\"\n[cowbird]\nip = \"10.0.0.254\"\npool = [\"h0\"]\n\
             compute = [{}]\ntimeout_us = 5000\n{more}\n{hosts}",
            compute.join(", ")
        );
        std::fs::write(folder.path().join("rack.toml"), text).unwrap();
        let switch = Rack::switch(&star);
        let pool = Rack::pool(&star, pool);
        let engine = Rack::engine(&star, &folder, &[]);
        Rack { switch, engine, pool, folder, star }
    }

    fn pool(star: &Star, more: &[&str]) -> Running {
        let words = ["roce", "serve", "--memory", "4 KiB", "--reserve", "1 MiB", "--insecure"];
        let mut pool = Running::start(adapter(star, 0, &words).args(["--grpc-server-addr", POOL]).args(more));
        pool.until("ready");
        pool
    }

    fn switch(star: &Star) -> Running {
        let mut command = within(star.hub(), &["switch", "run", "--no-p4"]);
        for host in 0..star.hosts() {
            command.args(["-i", &format!("{}@{}", host + 1, Star::port(host))]);
        }
        let mut switch = Running::start(&mut command);
        switch.until("ready");
        switch
    }

    fn engine(star: &Star, folder: &tempfile::TempDir, more: &[&str]) -> Running {
        let [rack, stats] =
            ["rack.toml", "stats.json"].map(|name| folder.path().join(name).display().to_string());
        let words = ["cowbird", "switch", &rack, "--pool", POOL, "--grpc-server-addr", ENGINE, "--insecure"];
        let mut engine = Running::start(within(star.hub(), &words).args(["--stats", &stats]).args(more));
        engine.until("ready");
        engine
    }

    /// Another switch and another controller, which know nothing.
    fn replace_switch(&mut self) {
        self.engine.kill();
        self.switch.kill();
        self.switch = Rack::switch(&self.star);
        self.engine = Rack::engine(&self.star, &self.folder, &[]);
    }

    fn verify(&self, host: u8, more: &[&str]) -> Command {
        let mut command =
            adapter(&self.star, host, &["cowbird", "verify", "--pool", POOL, "--engine", ENGINE]);
        command.args(more);
        command
    }

    /// Sets that are served.
    fn installed(&self) -> usize {
        let output = within(self.star.hub(), &["table", "read", "instances"]).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output).matches("serve").count()
    }
}

fn end(running: &mut Running) {
    let told = Command::new("kill").args(["-TERM", &running.0.id().to_string()]).status().unwrap();
    assert!(told.success());
}

#[test]
fn a_program_for_tofino_serves_threads_too() {
    let _alone = one_at_a_time();
    if !can_make_namespaces() {
        return;
    }
    let rack = Rack::start_on(1, "tna");
    for (bytes, lose) in [("4096", "0"), ("64", "3")] {
        let words = ["--threads", "2", "--operations", "1500", "--memory", "16 KiB", "--bytes", bytes];
        let output = rack.verify(1, &[&words[..], &["--lose-per-mille", lose]].concat()).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
}

#[test]
fn threads_read_what_they_wrote_through_the_switch() {
    let _alone = one_at_a_time();
    if !can_make_namespaces() {
        return;
    }
    let mut rack = Rack::start(2);
    for (bytes, lose) in [("8", "0"), ("4096", "0"), ("64", "3")] {
        let words = ["--threads", "2", "--operations", "1500", "--memory", "16 KiB", "--bytes", bytes];
        let output =
            rack.verify(1, &[&words[..], &["--lose-per-mille", lose, "--json"]].concat()).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let said = stdout(&output);
        let report: serde_json::Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
        for thread in report["threads"].as_array().unwrap() {
            let of = |name: &str| thread[name].as_u64().unwrap();
            assert_eq!(of("reads") + of("writes"), 1_500 + (16 << 10) / bytes.parse::<u64>().unwrap());
        }
    }
    // A compute node that dies leaves nothing behind, and another one is served throughout.
    let long = ["--operations", "100000000", "--memory", "16 KiB"];
    let mut dies = Running::start(&mut rack.verify(1, &long));
    let mut lives = Running::start(&mut rack.verify(2, &long));
    dies.until("ready");
    lives.until("ready");
    assert_eq!(rack.installed(), 2);
    std::thread::sleep(Duration::from_millis(300));
    dies.kill();
    let until = Instant::now() + Duration::from_secs(8);
    while rack.installed() != 1 {
        assert!(Instant::now() < until, "what the dead one had is still served");
        std::thread::sleep(Duration::from_millis(100));
    }
    end(&mut lives);
    assert!(lives.until("thread 0").contains("all right"));
    assert!(lives.0.wait().unwrap().success());
    end(&mut rack.engine);
    assert!(rack.engine.until("compute nodes").starts_with("5 compute nodes"));
    assert!(rack.engine.0.wait().unwrap().success());
    let told = std::fs::read_to_string(rack.folder.path().join("stats.json")).unwrap();
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let [setup, engine] = ["setup", "engine"].map(|part| &told[part]);
    assert!(setup["served"] == 5 && setup["nodes_now"] == 0 && setup["sets_now"] == 0, "{told}");
    assert!(engine["reads"].as_u64() > Some(0) && engine["writes"].as_u64() > Some(0), "{told}");
}

/// More READs than adapters usually take, and turns that software can't give as often.
#[test]
fn adapters_that_take_more_reads_are_served_by_a_switch_that_asks_for_as_many() {
    let _alone = one_at_a_time();
    if !can_make_namespaces() {
        return;
    }
    let more = "in_flight = 64\nprobe_ns = 500";
    let rack = Rack::described(1, "v1model", more, &["--reads-max", "64"]);
    let words = ["--operations", "500", "--memory", "16 KiB", "--reads-max", "64"];
    let output = rack.verify(1, &words).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let refused = rack.verify(1, &words[..4]).output().unwrap();
    assert!(!refused.status.success() && stderr(&refused).contains("reads_max"), "{}", stderr(&refused));
}

#[test]
fn a_switch_without_packet_generator_gets_its_turns_by_packet_outs() {
    let _alone = one_at_a_time();
    if !can_make_namespaces() {
        return;
    }
    let mut rack = Rack::start(1);
    rack.engine.kill();
    rack.engine = Rack::engine(&rack.star, &rack.folder, &["--packet-outs"]);
    let words = ["--threads", "2", "--operations", "100", "--memory", "4 KiB"];
    let output = rack.verify(1, &words).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output).matches("all right").count(), 2, "{}", stdout(&output));
    let generators = within(rack.star.hub(), &["generator", "list"]).output().unwrap();
    assert!(generators.status.success() && !stdout(&generators).contains("49329"), "{}", stdout(&generators));
}

#[test]
fn a_switch_that_is_replaced_loses_nothing_that_was_done() {
    let _alone = one_at_a_time();
    if !can_make_namespaces() {
        return;
    }
    let mut rack = Rack::start(1);
    let mut node = Running::start(&mut rack.verify(1, &["--operations", "100000000", "--memory", "16 KiB"]));
    node.until("ready");
    for _ in 0..2 {
        std::thread::sleep(Duration::from_millis(300));
        rack.replace_switch();
        node.until("served by the engine");
    }
    std::thread::sleep(Duration::from_millis(300));
    end(&mut node);
    assert!(node.until("thread 0").contains("all right"));
    assert_eq!(node.until("engines"), "engines: 3");
    assert!(node.0.wait().unwrap().success());
}

#[test]
fn a_pool_that_dies_behind_the_switch_is_lost_and_another_one_is_used() {
    let _alone = one_at_a_time();
    if !can_make_namespaces() {
        return;
    }
    let mut rack = Rack::start(1);
    // However patient it is: no more results can come.
    let mut node =
        rack.verify(1, &["--operations", "100000000", "--memory", "16 KiB", "--patience", "86400"]);
    let mut node = Running(node.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    node.until("ready");
    std::thread::sleep(Duration::from_millis(300));
    rack.pool.kill();
    assert!(wait_until(Duration::from_secs(60), || node.0.try_wait().unwrap().is_some()));
    let mut error = String::new();
    node.0.stderr.take().unwrap().read_to_string(&mut error).unwrap();
    assert!(error.contains("under way are not done; the remote memory is lost: the pool is gone"), "{error}");
    assert!(!node.0.wait().unwrap().success());
    rack.pool = Rack::pool(&rack.star, &[]);
    let anew = rack.verify(1, &["--operations", "500", "--memory", "16 KiB"]).output().unwrap();
    assert!(anew.status.success(), "{}", stderr(&anew));
    let said = stdout(&anew);
    assert!(
        said.contains(&format!("served by the engine at {ENGINE}")) && said.contains("all right"),
        "{said}"
    );
}

/// The switch rewrites frames and can't compute their iCRC.
#[test]
fn an_adapter_that_checks_icrcs_says_why_nothing_comes() {
    let _alone = one_at_a_time();
    if !can_make_namespaces() {
        return;
    }
    let rack = Rack::start(1);
    let mut node = rack.verify(1, &["--patience", "5"]);
    let words: Vec<_> =
        node.get_args().filter(|word| *word != "--ignore-icrc").map(ToOwned::to_owned).collect();
    node = within(rack.star.host(1), &[]);
    let output = node.args(words).output().unwrap();
    let said = stderr(&output);
    let (hint, end) = (said.find("wrong iCRC").unwrap_or_else(|| panic!("{said}")), said.find("no response"));
    assert!(!output.status.success() && said.contains("--ignore-icrc"), "{said}");
    assert!(end.is_some_and(|end| hint < end), "{said}");
}

/// A caller's request to the switch's engine that our own client never makes: rings at addresses without memory.
struct Caller {
    /// Whose addresses it says it has.
    mac_of: u8,
    ip_of: u8,
    sets: u64,
}

impl Caller {
    /// Sends a request from the namespace of a host, and holds its grant for a while. Errors: why it is refused, or how
    /// it ended.
    fn ask(&self, rack: &Rack, from: u8, hold: Duration) -> Result<(), String> {
        let asks = async {
            let pool = Server { addr: POOL.to_owned(), tls: None };
            let reserved = pool.reserve(vec![64]).await.unwrap();
            let end = End {
                mac: Star::mac(self.mac_of).0.to_vec(),
                ip: Star::ip(self.ip_of).octets().to_vec(),
                udp_port: 50_000,
                qpn: 0x100,
                psn: 5,
            };
            let rings =
                Set { key: 1, entries: 64, request_bytes: 4_096, response_bytes: 4_096, ..Set::default() };
            let request = ServeRequest {
                end: Some(end),
                mtu_bytes: 1_024,
                reads_max: 16,
                pairs_max: 1_000,
                token: reserved.token.bytes().to_vec(),
                sets: (0..self.sets).map(|nth| Set { address: nth << 20, ..rings }).collect(),
            };
            let mut client = CowbirdClient::connect(format!("http://{ENGINE}")).await.unwrap();
            let mut served =
                client.serve(request).await.map_err(|status| status.message().to_owned())?.into_inner();
            let ended = async {
                loop {
                    match served.message().await {
                        Ok(Some(_)) => {}
                        Ok(None) => return Ok(()),
                        Err(status) => return Err(status.message().to_owned()),
                    }
                }
            };
            tokio::time::timeout(hold, ended).await.unwrap_or(Ok(()))
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        rack.star.host(from).run(|| runtime.block_on(asks)).unwrap()
    }
}

#[test]
fn addresses_are_those_of_one_host_and_each_host_has_its_share_of_sets() {
    let _alone = one_at_a_time();
    if !can_make_namespaces() {
        return;
    }
    let rack = Rack::described(2, "v1model", "instances = 8\n", &[]);
    let moment = Duration::from_millis(1);
    let refused = |caller: Caller| caller.ask(&rack, 1, moment).unwrap_err();
    let stolen = refused(Caller { mac_of: 1, ip_of: 2, sets: 1 });
    assert!(stolen.contains("is h1, whose address is 10.0.0.2, not 10.0.0.3"), "{stolen}");
    // Of eight sets, two are kept for each host.
    let greedy = refused(Caller { mac_of: 1, ip_of: 1, sets: 7 });
    assert!(greedy.contains("h1 holds 0 of 8 sets and asks for 7 more, but may take 6"), "{greedy}");
    std::thread::scope(|scope| {
        let holds =
            scope.spawn(|| Caller { mac_of: 1, ip_of: 1, sets: 6 }.ask(&rack, 1, Duration::from_secs(3)));
        while rack.installed() < 6 {
            assert!(!holds.is_finished(), "it is not served");
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(Caller { mac_of: 2, ip_of: 2, sets: 2 }.ask(&rack, 2, moment), Ok(()));
        assert_eq!(holds.join().unwrap(), Ok(()));
    });
}

#[test]
fn rings_that_never_answer_are_served_no_more() {
    let _alone = one_at_a_time();
    if !can_make_namespaces() {
        return;
    }
    for arch in ["v1model", "tna"] {
        let rack = Rack::start_on(2, arch);
        let mut lives =
            Running::start(&mut rack.verify(2, &["--operations", "100000000", "--memory", "16 KiB"]));
        lives.until("ready");
        // Nothing is at its interface, which yet has a gRPC connection.
        let ended =
            Caller { mac_of: 1, ip_of: 1, sets: 3 }.ask(&rack, 1, Duration::from_secs(60)).unwrap_err();
        assert!(ended.contains("has given no answer"), "{arch}: {ended}");
        let until = Instant::now() + Duration::from_secs(8);
        while rack.installed() != 1 {
            assert!(Instant::now() < until, "{arch}: what the dead one had is still served");
            std::thread::sleep(Duration::from_millis(50));
        }
        // An idle node that answers stays.
        end(&mut lives);
        assert!(lives.until("thread 0").contains("all right"), "{arch}");
    }
}

#[test]
fn silent_connections_keep_no_compute_node_out() {
    let _alone = one_at_a_time();
    if !can_make_namespaces() {
        return;
    }
    let rack = Rack::start(2);
    let silent = rack.star.host(2).run(|| silent::connect(ENGINE)).unwrap();
    let output = rack.verify(1, &["--operations", "500", "--memory", "16 KiB"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    silent::until_surplus_is_closed(&silent);
}

/// A caller that makes up its own sets, as our own client never does.
#[test]
fn sets_that_share_bytes_are_refused_by_the_switch() {
    let _alone = one_at_a_time();
    if !can_make_namespaces() {
        return;
    }
    let rack = Rack::start(1);
    // Bytes from the first set to the second one. Returns why they are refused.
    let serve = |distance: u64| {
        let asks = async move {
            let pool = Server { addr: POOL.to_owned(), tls: None };
            let reserved = pool.reserve(vec![64]).await.unwrap();
            let end = End {
                mac: Star::mac(1).0.to_vec(),
                ip: Star::ip(1).octets().to_vec(),
                udp_port: 50_000,
                qpn: 0x100,
                psn: 5,
            };
            let rings =
                Set { key: 1, entries: 64, request_bytes: 4_096, response_bytes: 4_096, ..Set::default() };
            let sets = [1 << 16, (1 << 16) + distance].map(|address| Set { address, ..rings });
            let request = ServeRequest {
                end: Some(end),
                mtu_bytes: 1_024,
                reads_max: 16,
                pairs_max: 10,
                token: reserved.token.bytes().to_vec(),
                sets: sets.to_vec(),
            };
            let mut client = CowbirdClient::connect(format!("http://{ENGINE}")).await.unwrap();
            client.serve(request).await.err().map(|status| status.message().to_owned())
        };
        rack.star.host(1).run(|| tokio::runtime::Runtime::new().unwrap().block_on(asks)).unwrap()
    };
    let ends = || {
        let until = Instant::now() + Duration::from_secs(8);
        while rack.installed() > 0 {
            assert!(Instant::now() < until, "what a call had is served behind it");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    assert_eq!(serve(1 << 16), None);
    ends();
    let bytes = Layout { entries: 64, request_bytes: 4_096, response_bytes: 4_096 }.bytes();
    for distance in [0, 8, bytes - 8] {
        let refused = serve(distance).unwrap_or_default();
        assert!(refused.contains("set 1 has bytes of another one"), "{distance}: {refused}");
    }
    assert_eq!(serve(bytes), None);
}

#[test]
fn all_that_is_asked_for_is_done_and_right_while_frames_are_lost_and_switches_are_killed() {
    let _alone = one_at_a_time();
    if !can_make_namespaces() {
        return;
    }
    let mut rack = Rack::start(1);
    let period = Duration::from_millis(500);
    // A fast machine is done before a switch is killed: then it gets more to do.
    for count in [5_000, 50_000, 500_000] {
        let mut node = rack.verify(1, &["--lose-per-mille", "1"]);
        let (served, kills) = under_kills(&mut node, 2, operations(count), period, |_| rack.replace_switch());
        if served > 1 && kills > 0 {
            return;
        }
    }
    panic!("no switch was killed while half a million operations were under way");
}

#[test]
fn a_store_keeps_its_old_records_behind_the_switch() {
    let _alone = one_at_a_time();
    if !can_make_namespaces() {
        return;
    }
    let words = "cowbird store --switch --seconds 0.2 --records 5000 --value-bytes 56 --memory-percent 20 --mix A --mix C --json";
    let output = p4rack().args(words.split(' ')).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let all: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    let through: Vec<_> = all.iter().filter(|one| one["scheme"] == "cowbird-p4").collect();
    assert_eq!((all.len(), through.len()), (5 * 2, 2), "{all:?}");
    for one in through {
        assert!(one["operations"].as_u64().unwrap() > 20 && one["engine_cpu_ns"].is_number(), "{one}");
        assert_eq!((one["lost"].as_u64(), one["wrong"].as_u64()), (Some(0), Some(0)), "{one}");
        assert!(one["cold_share"].as_f64().unwrap() > 0.1, "{one}");
    }
}

#[test]
fn what_the_switch_can_not_serve_is_refused_by_its_name() {
    let _alone = one_at_a_time();
    if !can_make_namespaces() {
        return;
    }
    let rack = Rack::start(1);
    for (more, says) in [
        (&["--ring", "4 MiB"][..], "rings have at most twice the longest message"),
        (&["--mtu", "256"], "mtu_bytes is 256 there and 1024 here"),
        (&["--threads", "17", "--memory", "16 KiB"], "of 256 regions and asks for 289 more"),
    ] {
        let output = rack.verify(1, more).output().unwrap();
        assert!(!output.status.success() && stderr(&output).contains(says), "{more:?}: {}", stderr(&output));
    }
    let example = common::repo("examples/two-hosts.toml").display().to_string();
    let output = within(rack.star.hub(), &["cowbird", "switch", &example, "--pool", POOL]).output().unwrap();
    assert!(!output.status.success() && stderr(&output).contains("[cowbird]"), "{}", stderr(&output));
    assert_eq!(rack.installed(), 0);
}
