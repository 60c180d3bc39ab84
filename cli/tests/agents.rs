//! Two agents and a switch as processes of their own, in namespaces: recovery from a silent sender, and the agents'
//! metrics.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::{can_make_namespaces, p4rack, stdout, wait_until};
use p4rack_netdev::link::VethEnd;
use p4rack_netdev::{Links, NetNs};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long anything here may take.
const LIMIT: Duration = Duration::from_secs(10);
/// Grants are copied to the receiver; reservations stay until they are used or taken back.
const RACK: &str = r#"
name = "pair"
[switch]
port_rate = "20 Mb/s"
[[host]]
name = "h1"
port = 1
mac = "02:00:00:00:00:01"
ip = "10.0.0.1/24"
[[host]]
name = "h2"
port = 2
mac = "02:00:00:00:00:02"
ip = "10.0.0.2/24"
[pl2]
mode = "counter"
notify_receiver = true
"#;
/// The switch's address in its controllers' network, which has h1, too.
const SWITCH: &str = "192.168.77.1:9559";
const METRICS: &str = "127.0.0.1:9561";

/// A process that is ended when dropped, and its output.
struct Process(Child, PathBuf, PathBuf);

impl Process {
    fn start(ns: &NetNs, folder: &Path, name: &str, words: &[&str]) -> Process {
        let (out, err) = (folder.join(format!("{name}.out")), folder.join(format!("{name}.err")));
        let mut command = p4rack();
        command.args(words).args(["--log-format", "json"]).env("P4RACK_LOG", "info").current_dir(folder);
        command.stdout(fs::File::create(&out).unwrap()).stderr(fs::File::create(&err).unwrap());
        ns.command(&mut command, true).unwrap();
        Process(command.spawn().unwrap(), out, err)
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.1).unwrap()
    }

    fn says(&self, line: &str) {
        let logged = || fs::read_to_string(&self.2).unwrap();
        assert!(wait_until(LIMIT, || self.said().contains(line)), "no `{line}`: {}{}", self.said(), logged());
    }

    /// Its log, a JSON object a line.
    fn logged(&self) -> Vec<serde_json::Value> {
        let text = fs::read_to_string(&self.2).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
    }

    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

struct Setup {
    middle: NetNs,
    hosts: [NetNs; 2],
    folder: tempfile::TempDir,
}

impl Setup {
    fn new() -> Setup {
        let setup = Setup {
            middle: NetNs::create().unwrap(),
            hosts: [NetNs::create().unwrap(), NetNs::create().unwrap()],
            folder: tempfile::tempdir().unwrap(),
        };
        fs::write(setup.folder.path().join("rack.toml"), RACK).unwrap();
        let [one, two] = &setup.hosts;
        for (port, ns, name) in [("p1", one, "eth0"), ("p2", two, "eth0"), ("control", one, "control")] {
            Links::add_veth(
                VethEnd { name: port, ns: &setup.middle, mac: None },
                VethEnd { name, ns, mac: None },
            )
            .unwrap();
        }
        for (ns, last) in [(&setup.middle, 1), (one, 2)] {
            let mut links = Links::open_in(ns).unwrap();
            links.set_up("lo").unwrap();
            links.set_up("control").unwrap();
            links.add_address("control", Ipv4Addr::new(192, 168, 77, last), 24).unwrap();
        }
        setup
    }

    fn start(&self, ns: &NetNs, name: &str, words: &[&str]) -> Process {
        Process::start(ns, self.folder.path(), name, words)
    }

    fn p4rack(&self, words: &[&str]) -> Output {
        let mut command: Command = p4rack();
        command.args(words).args(["--grpc-addr", SWITCH]).current_dir(self.folder.path());
        self.middle.command(&mut command, true).unwrap();
        command.stderr(Stdio::inherit()).output().unwrap()
    }

    /// Reservations at the ports, both as sources and as destinations.
    fn reserved(&self) -> Vec<u64> {
        let output = self.p4rack(&["pl2", "read", "rack.toml", "--json", "--election-id", "0,9"]);
        let rows: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
        rows.as_array().unwrap().iter().map(|row| row["value"].as_u64().unwrap()).collect()
    }
}

fn page(ns: &NetNs) -> String {
    let mut connection = ns.run(|| TcpStream::connect(METRICS)).unwrap().unwrap();
    connection.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut page = String::new();
    connection.read_to_string(&mut page).unwrap();
    page
}

#[test]
fn an_agent_takes_no_interface_that_may_not_be_its_hosts_link() {
    if !can_make_namespaces() {
        return;
    }
    let setup = Setup::new();
    // Two interfaces have no address, one has an address that is not h1's.
    let mut command = p4rack();
    command.args(["host", "run", "rack.toml", "--name", "h1"]).current_dir(setup.folder.path());
    setup.middle.command(&mut command, true).unwrap();
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("p4rack exec h1") && said.contains("--interface"), "{said}");
}

#[test]
fn what_a_silent_sender_left_reserved_is_taken_back_by_the_command_that_its_receiver_runs() {
    if !can_make_namespaces() {
        return;
    }
    let setup = Setup::new();
    let [one, two] = &setup.hosts;
    let words =
        ["switch", "run", "--no-p4", "-i", "1@p1", "-i", "2@p2", "--insecure", "--grpc-server-addr", SWITCH];
    let switch = setup.start(&setup.middle, "switch", &words);
    switch.says("ready");
    assert!(setup.p4rack(&["deploy", "rack.toml"]).status.success());

    let binary = env!("CARGO_BIN_EXE_p4rack");
    let forget = format!(
        "{binary} pl2 forget rack.toml --host $SENDER --to $HOST --grpc-addr {SWITCH} --election-id 0,9 > forgot"
    );
    let words = ["host", "run", "rack.toml", "--name", "h1", "--metrics-addr", METRICS];
    let receiver = setup.start(one, "h1", &[&words[..], &["--when-silent", &forget]].concat());
    let mut sender = setup.start(two, "h2", &["host", "run", "rack.toml", "--name", "h2"]);
    receiver.says("ready h1");
    sender.says("ready h2");

    // Killed in the middle of sending: it holds grants that it does not use.
    let socket = two.run(|| UdpSocket::bind("10.0.0.2:0")).unwrap().unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for _ in 0..8 {
                    let _ = socket.send_to(&[7; 1400], "10.0.0.1:9");
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        let received = || {
            let page = page(one);
            let line = page.lines().find(|line| line.contains(r#"event="data_in""#));
            line.and_then(|line| line.rsplit(' ').next()?.parse().ok())
                .is_some_and(|count: f64| count > 100.0)
        };
        let flows = wait_until(LIMIT, received);
        sender.kill();
        stop.store(true, Ordering::Relaxed);
        assert!(flows, "{}", page(one));
    });
    receiver.says("silent h2");
    let forgot = || fs::read_to_string(setup.folder.path().join("forgot")).unwrap_or_default();
    assert!(wait_until(LIMIT, || forgot().ends_with("reserved towards h1\n")), "{}", forgot());
    assert!(!forgot().contains("had left 0 "), "{}", forgot());
    assert_eq!(setup.reserved(), [0; 4], "{}", forgot());

    // The agent's page and its log tell it too.
    let told = || page(one).contains("p4rack_host_events_total{host=\"h1\",event=\"senders_silent\"} 1\n");
    assert!(wait_until(LIMIT, told), "{}", page(one));
    let logged = receiver.logged();
    let silent = |line: &&serde_json::Value| line["fields"]["message"] == "fell silent with slots granted";
    let line = logged.iter().find(silent).unwrap_or_else(|| panic!("{logged:?}"));
    assert_eq!((&line["level"], &line["fields"]["sender"]), (&"WARN".into(), &"02:00:00:00:00:02".into()));
}
