//! Topologies: built, used and taken down; mistakes are named before anything starts.

mod common;

use common::{can_make_namespaces, have, one_at_a_time, p4rack, repo, stderr, stdout};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

/// A runtime folder of its own, and files; everything that runs ends with it.
struct Lab {
    folder: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Lab {
    fn new() -> Option<Lab> {
        let able = can_make_namespaces() && have("ping", "iputils-ping");
        able.then(|| Lab { _alone: one_at_a_time(), folder: tempfile::tempdir().expect("a scratch folder") })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        fs::write(self.path(name), text).expect("a file");
        self.path(name)
    }

    /// The example's program and entries, beside a description of two hosts at s1.
    fn pair(&self, links: &str) -> PathBuf {
        fs::copy(repo("examples/pod/route.p4"), self.path("route.p4")).expect("a copy");
        self.write(
            "s1.entries",
            "routes dst=10.0.1.0/24 --action to next_hop=02:00:00:00:00:01 port=1\n\
             routes dst=10.0.2.0/24 --action to next_hop=02:00:00:00:00:02 port=2\n",
        );
        let host = |n: u8| {
            format!(
                "[[host]]\nname = \"h{n}\"\nip = \"10.0.{n}.1/24\"\ngateway = \"10.0.{n}.254\"\n\
                 gateway_mac = \"02:00:00:00:01:00\"\n"
            )
        };
        let text = format!(
            "name = \"pair\"\n[[switch]]\nname = \"s1\"\nprogram = \"route.p4\"\nentries = \"s1.entries\"\n{}{}{links}",
            host(1),
            host(2)
        );
        self.write("pair.toml", &text)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = p4rack();
        command.args(words).env("XDG_RUNTIME_DIR", self.folder.path());
        command
    }

    /// Nothing is left in the runtime folder.
    fn is_empty(&self) {
        let left: Vec<_> = fs::read_dir(self.path("p4rack")).expect("the folder").flatten().collect();
        assert!(left.is_empty(), "{left:?}");
    }

    fn run(&self, words: &[&str], file: &Path) -> Output {
        self.command(words).arg(file).output().expect("p4rack starts")
    }

    /// `p4rack lab` with these lines as input.
    fn lab(&self, words: &[&str], lines: &str) -> Output {
        let mut command = self.command(&["lab", "--quiet"]);
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("p4rack starts");
        child.stdin.take().expect("a pipe").write_all(lines.as_bytes()).expect("it reads");
        child.wait_with_output().expect("ours")
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.command(&["down", "--all"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// Waits for a value.
fn eventually<T>(mut value: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        match value() {
            Some(value) => return value,
            None => assert!(Instant::now() < until, "nothing after a minute"),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until a process that was killed has been reaped.
fn gone(pid: &str) {
    eventually(|| (!Path::new("/proc").join(pid.trim()).exists()).then_some(()));
}

const LINKS: &str = "[[link]]\nends = [\"h1\", \"s1:1\"]\n[[link]]\nends = [\"s1:2\", \"h2\"]\n";

#[test]
fn a_pod_is_kept_used_and_taken_down() {
    let Some(lab) = Lab::new() else { return };
    let up = lab.run(&["up", "--keep"], &repo("examples/pod/pod.toml"));
    assert!(up.status.success(), "{}", stderr(&up));
    let said = stdout(&up);
    assert!(said.contains("s1 127.0.0.1:9559, s2 127.0.0.1:9560") && said.contains("h6 10.0.6.1"), "{said}");
    let run = |words: &[&str]| lab.command(words).output().expect("p4rack starts");
    let ping = run(&["exec", "h1", "--", "ping", "-c", "1", "-W", "5", "10.0.6.1"]);
    assert!(ping.status.success(), "{}{}", stdout(&ping), stderr(&ping));
    // By each switch's own address, and by name.
    let read = ["table", "read", "--grpc-addr", "127.0.0.1:9562"];
    let entries = run(&[&["exec", "s1", "--", env!("CARGO_BIN_EXE_p4rack")][..], &read].concat());
    assert!(stdout(&entries).contains("10.0.6.0/24"), "{}{}", stdout(&entries), stderr(&entries));
    let top = run(&["top", "--switch", "s4", "--json", "--every", "0.1"]);
    assert!(top.status.success(), "{}", stderr(&top));
    let _: Value = serde_json::from_str(&stdout(&top)).expect("JSON");
    // By the topology's file, too.
    let pod = repo("examples/pod/pod.toml").display().to_string();
    let top = run(&["top", &pod, "--switch", "s4", "--json", "--every", "0.1"]);
    let _: Value = serde_json::from_str(&stdout(&top)).unwrap_or_else(|_| panic!("{}", stderr(&top)));
    // Nothing to change, until a switch has lost an entry.
    let deploy = |more: &str| {
        let binary = env!("CARGO_BIN_EXE_p4rack");
        let pod = repo("examples/pod/pod.toml").display().to_string();
        run(&["exec", "s1", "--", "sh", "-c", &format!("{more} {binary} deploy --dry-run {pod}")])
    };
    let same = deploy("");
    assert!(same.status.success(), "{}{}", stdout(&same), stderr(&same));
    assert!(
        stdout(&same).contains("s4: compared") && stdout(&same).contains("nothing to change"),
        "{}",
        stdout(&same)
    );
    let delete = format!("{} table delete routes dst=10.0.6.0/24 &&", env!("CARGO_BIN_EXE_p4rack"));
    let differs = deploy(&delete);
    assert_eq!(differs.status.code(), Some(1), "{}{}", stdout(&differs), stderr(&differs));
    assert!(stdout(&differs).contains("1 to insert"), "{}", stdout(&differs));
    // Where the switches' addresses lead nowhere, the error says where they do.
    let binary = env!("CARGO_BIN_EXE_p4rack");
    let words = ["deploy", "--dry-run", &pod];
    let elsewhere = run(&[&["exec", "h1", "--", binary], &words[..]].concat());
    let (said, advice) = (stderr(&elsewhere), format!("p4rack exec switch -- p4rack deploy --dry-run {pod}"));
    assert_eq!(elsewhere.status.code(), Some(1), "{said}");
    assert!(
        said.contains("error: s1: no P4Runtime server answers") && said.matches(&advice).count() == 1,
        "{said}"
    );
    let there = run(&[&["exec", "switch", "--", binary], &words[..]].concat());
    assert!(stdout(&there).contains("1 to insert"), "{}{}", stdout(&there), stderr(&there));
    let unknown = run(&["top", "--switch", "s9"]);
    assert!(
        stderr(&unknown).contains("no switch is called `s9`; there are s1, s2, s3, s4"),
        "{}",
        stderr(&unknown)
    );
    let unknown = run(&["exec", "h9", "--", "true"]);
    assert!(stderr(&unknown).contains("h5, h6, s1"), "{}", stderr(&unknown));
    let again = lab.run(&["up", "--keep"], &repo("examples/pod/pod.toml"));
    assert!(stderr(&again).contains("already running"), "{}", stderr(&again));
    let down = run(&["down"]);
    assert!(down.status.success(), "{}", stderr(&down));
    lab.is_empty();
}

#[test]
fn a_prompt_takes_lines_as_mininets() {
    let Some(lab) = Lab::new() else { return };
    let pod = repo("examples/pod/pod.toml");
    let pod = pod.to_str().expect("a path in UTF-8");
    let lines = "pingall\nh1 ping -c 1 h6\nxterm h1\nnet\nh3 echo to h4\nsh echo at the switches\nh9 true\nexit\nh1 echo after\n";
    let output = lab.lab(&[pod], lines);
    let (said, refused) = (stdout(&output), stderr(&output));
    assert!(output.status.success(), "{said}{refused}");
    assert!(said.contains("Results: 0% dropped (30/30 received)"), "{said}{refused}");
    assert!(
        said.contains("1 received") && said.contains("to 10.0.4.1") && said.contains("at the switches"),
        "{said}"
    );
    assert!(said.contains("s1:4 <-> s3:1 1 Gb/s 100.000 µs"), "{said}");
    assert!(refused.contains("xterm is not supported") && refused.contains("`h9` is no node"), "{refused}");
    assert!(!said.contains("after"), "{said}");
}

#[test]
fn a_script_fails_at_the_line_that_fails() {
    let Some(lab) = Lab::new() else { return };
    let file = lab.pair(LINKS);
    let script = lab.write("good.txt", "# both ways\npingall\nh1 ping -c 1 h2\n");
    let good = lab.run(&["up", "--quiet", "--test", script.to_str().expect("UTF-8")], &file);
    assert!(good.status.success(), "{}{}", stdout(&good), stderr(&good));
    assert!(stdout(&good).contains("mininet> pingall"), "{}", stdout(&good));
    let json = lab.run(&["lab", "--json", "--test", script.to_str().expect("UTF-8")], &file);
    let outcome: Value = serde_json::from_str(&stdout(&json)).expect("JSON alone");
    assert_eq!((&outcome["failures"], json.status.code()), (&serde_json::json!([]), Some(0)));
    assert!(stderr(&json).contains("Results: 0% dropped"), "{}", stderr(&json));
    let script = lab.write("bad.txt", "h1 true\nh2 false\nh1 echo not reached\n");
    let bad = lab.run(&["up", "--quiet", "--test", script.to_str().expect("UTF-8")], &file);
    assert_eq!(bad.status.code(), Some(1));
    assert!(stderr(&bad).contains("bad.txt:2: h2 false: exit code 1"), "{}", stderr(&bad));
    assert!(!stdout(&bad).contains("not reached"), "{}", stdout(&bad));
}

#[test]
fn hosts_commands_run_and_one_that_fails_is_named() {
    let Some(lab) = Lab::new() else { return };
    let file = lab.pair(LINKS);
    let text = fs::read_to_string(&file).expect("our file");
    let with = |commands: &str| {
        let text = text.replacen("[[host]]", &format!("[[host]]\ncommands = [{commands}]"), 1);
        lab.run(&["up", "--quiet", "--json"], &lab.write("commands.toml", &text))
    };
    let good = with("\"ping -c 1 -W 5 10.0.2.1\", \"sleep 100 &\"");
    assert!(good.status.success(), "{}", stderr(&good));
    let outcome: Value = serde_json::from_str(&stdout(&good)).expect("JSON");
    assert_eq!((&outcome["commands"][0]["code"], &outcome["network"]["name"]), (&0.into(), &"pair".into()));
    // Names and addresses, and nothing of processes that have ended.
    let network = serde_json::json!({
        "name": "pair",
        "switches": [{ "name": "s1", "grpc_addr": "127.0.0.1:9559", "device_id": 1 }],
        "hosts": [{ "name": "h1", "ip": "10.0.1.1" }, { "name": "h2", "ip": "10.0.2.1" }],
    });
    assert_eq!(outcome["network"], network);
    let bad = with("\"true\", \"no-such-program\"");
    assert_eq!(bad.status.code(), Some(1));
    assert!(stderr(&bad).contains("h1: `no-such-program` failed, exit code 127"), "{}", stderr(&bad));
}

#[test]
fn a_command_that_does_not_end_is_ended_by_down() {
    let Some(lab) = Lab::new() else { return };
    let text = fs::read_to_string(lab.pair(LINKS)).expect("our file");
    let began = lab.path("began");
    let commands = format!("[[host]]\ncommands = [\"echo $$ > {}; sleep 1000\"]", began.display());
    let file = lab.write("endless.toml", &text.replacen("[[host]]", &commands, 1));
    let mut up = lab.command(&["up", "--keep", "--quiet"]);
    let up = up.arg(&file).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("p4rack starts");
    let pid = eventually(|| fs::read_to_string(&began).ok().filter(|text| text.ends_with('\n')));
    let down = lab.command(&["down", "pair"]).output().expect("p4rack starts");
    assert!(down.status.success(), "{}", stderr(&down));
    let up = up.wait_with_output().expect("ours");
    assert_eq!(up.status.code(), Some(1), "{}", stderr(&up));
    assert!(stderr(&up).contains("interrupted"), "{}", stderr(&up));
    gone(&pid);
    lab.is_empty();
}

#[test]
fn a_command_that_fails_leaves_no_process_of_an_earlier_one() {
    let Some(lab) = Lab::new() else { return };
    let text = fs::read_to_string(lab.pair(LINKS)).expect("our file");
    let began = lab.path("began");
    let line = format!("setsid sleep 1000 & echo $! > {}", began.display());
    let commands = format!("[[host]]\ncommands = [\"{line}\", \"false\"]");
    let file = lab.write("failing.toml", &text.replacen("[[host]]", &commands, 1));
    let up = lab.run(&["up", "--keep", "--quiet"], &file);
    assert_eq!(up.status.code(), Some(1));
    assert!(stderr(&up).contains("h1: `false` failed, exit code 1"), "{}", stderr(&up));
    let pid = fs::read_to_string(&began).expect("the first command ran");
    // `up` returns when the supervisor has ended, and with it everything in its namespaces.
    gone(&pid);
    lab.is_empty();
}

#[test]
fn links_delay_and_lose_frames_in_both_directions_and_count_them() {
    let Some(lab) = Lab::new() else { return };
    let slow = LINKS.replace("\"s1:1\"]\n", "\"s1:1\"]\ndelay = \"30 ms\"\n");
    let file = lab.pair(&slow);
    let output = lab.lab(&[file.to_str().expect("UTF-8")], "h1 ping -c 3 -i 0.2 h2\nexit\n");
    let said = stdout(&output);
    let min_ms = said.split("rtt min/avg/max/mdev = ").nth(1).and_then(|rest| rest.split('/').next());
    let min_ms: f64 = min_ms.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{said}"));
    assert!((60.0..1_000.0).contains(&min_ms), "{said}");
    let lossy = LINKS.replace("\"h2\"]\n", "\"h2\"]\nloss_percent = 100\n");
    let up = lab.run(&["up", "--keep", "--quiet"], &lab.pair(&lossy));
    assert!(up.status.success(), "{}", stderr(&up));
    let run = |words: &[&str]| lab.command(words).output().expect("p4rack starts");
    let ping = run(&["exec", "h1", "--", "ping", "-c", "2", "-i", "0.2", "-W", "1", "10.0.2.1"]);
    assert!(!ping.status.success(), "{}", stdout(&ping));
    let top = run(&["top", "--switch", "s1", "--json", "--every", "0.1"]);
    let top: Value = serde_json::from_str(&stdout(&top)).expect("JSON");
    assert_eq!(
        (&top["dropped"][0]["reason"], &top["dropped"][0]["frames"]),
        (&"link_loss".into(), &2.into())
    );
}

#[test]
fn a_topology_json_runs_its_entries_and_commands() {
    let Some(lab) = Lab::new() else { return };
    lab.pair(LINKS);
    lab.write(
        "s1-runtime.json",
        r#"{"target": "bmv2", "bmv2_json": "build/route.json", "table_entries": [
            {"table": "PodIngress.routes", "default_action": true, "action_name": "PodIngress.drop", "action_params": {}},
            {"table": "PodIngress.routes", "match": {"hdr.ipv4.dst": ["10.0.1.1", 32]},
             "action_name": "PodIngress.to", "action_params": {"next_hop": "08:00:00:00:01:11", "port": 1}},
            {"table": "PodIngress.routes", "match": {"hdr.ipv4.dst": ["10.0.2.2", 32]},
             "action_name": "PodIngress.to", "action_params": {"next_hop": "08:00:00:00:02:22", "port": 2}}]}"#,
    );
    let file = lab.write(
        "topology.json",
        r#"{"hosts": {
            "h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11", "commands":
                ["ip route add default via 10.0.1.10", "ip neigh add 10.0.1.10 lladdr 08:00:00:00:01:00 dev eth0"]},
            "h2": {"ip": "10.0.2.2/24", "mac": "08:00:00:00:02:22", "commands":
                ["ip route add default via 10.0.2.20", "ip neigh add 10.0.2.20 lladdr 08:00:00:00:02:00 dev eth0"]}},
            "switches": {"s1": {"runtime_json": "s1-runtime.json"}},
            "links": [["h1", "s1-p1"], ["s1-p2", "h2", "5ms", 10]]}"#,
    );
    if !have("ip", "iproute2") {
        return;
    }
    let output = lab.lab(&[file.to_str().expect("UTF-8")], "pingall\ndump\nexit\n");
    let said = stdout(&output);
    assert!(said.contains("Results: 0% dropped (2/2 received)"), "{said}{}", stderr(&output));
    assert!(said.contains("s1 P4Runtime 127.0.0.1:50051 device 0"), "{said}");
}

#[test]
fn a_switch_with_a_racks_program_has_its_protocol_and_agents() {
    let Some(lab) = Lab::new() else { return };
    fs::copy(repo("examples/two-hosts.toml"), lab.path("rack.toml")).expect("a copy");
    let mut text = "name = \"with-rack\"\n[[switch]]\nname = \"s1\"\nrack = \"rack.toml\"\n".to_owned();
    for n in [1, 2] {
        text += &format!("[[host]]\nname = \"h{n}\"\n[[link]]\nends = [\"h{n}\", \"s1:{n}\"]\n");
    }
    let script = lab.write("script.txt", "pingall\nh1 ip address show app0\n");
    let file = lab.write("with-rack.toml", &text);
    let output = lab.run(&["up", "--quiet", "--test", script.to_str().expect("UTF-8")], &file);
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
}

#[test]
fn a_workload_is_measured_between_hosts() {
    let Some(lab) = Lab::new() else { return };
    let workload = "[workload]\nduration_s = 1\n[[workload.udp]]\nsenders = [\"h1\"]\nreceiver = \"h2\"\nrate = \"4 Mb/s\"\n\
                    payload_bytes = 500\n[[workload.udp]]\nsenders = [\"h1\"]\nreceiver = \"h2\"\nrate = \"2 Mb/s\"\n\
                    [[workload.rpc]]\nclient = \"h2\"\nserver = \"h1\"\nvalue_bytes = [512, 4096]\n";
    let file = lab.pair(&format!("{LINKS}{workload}"));
    let output = lab.run(&["up", "--quiet", "--json"], &file);
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    let outcome: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let traffic = &outcome["traffic"];
    for (nth, payload) in [(0, 500), (1, 1_500)] {
        let flow = &traffic["udp"][nth];
        let count = |key: &str| flow[key].as_u64().expect("a count");
        assert_eq!((flow["from"].as_str(), flow["to"].as_str()), (Some("h1"), Some("h2")), "{flow}");
        assert!(count("arrived") > 0 && count("arrived") <= count("sent"), "{flow}");
        let bps = count("arrived") as f64 * f64::from(payload) * 8.0;
        let arrived_bps = flow["arrived_bps"].as_f64().expect("a rate");
        assert!(arrived_bps > 0.0 && arrived_bps < bps + 1.0 && count("repeated") == 0, "{flow}");
    }
    let sizes: Vec<u64> = traffic["rpc"][0]["values"]
        .as_array()
        .expect("values")
        .iter()
        .filter(|value| value["completed"].as_u64() > Some(0))
        .filter_map(|value| value["value_bytes"].as_u64())
        .collect();
    assert_eq!(sizes, [512, 4_096], "{traffic}");
    let text = lab.run(&["up", "--quiet"], &file);
    for shown in ["Mb/s offered", "h1–h2", "answered", "h2–h1"] {
        assert!(stdout(&text).contains(shown), "{}{}", stdout(&text), stderr(&text));
    }
}

#[test]
fn generate_writes_what_each_switch_gets() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let run = |words: &[&str]| {
        let mut command = p4rack();
        command.arg("generate").arg(repo("examples/leaf-spine/leaf-spine.toml")).args(words);
        command.arg("--output").arg(folder.path()).output().expect("p4rack starts")
    };
    let output = run(&["--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let made: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(made["switches"][2]["name"], "spine");
    for file in
        ["leaf1/leaf-1.p4", "leaf2/leaf-2.entries.txtpb", "spine/spine.p4", "spine/spine.p4info.txtpb"]
    {
        assert!(folder.path().join(file).is_file(), "{file}");
    }
    let entries = fs::read_to_string(folder.path().join("spine/spine.entries.txtpb")).expect("entries");
    assert_eq!(entries.matches("type: INSERT").count(), 6, "{entries}");
    let check = p4rack()
        .args(["p4", "check"])
        .arg(folder.path().join("spine/spine.p4"))
        .output()
        .expect("p4rack starts");
    assert!(check.status.success(), "{}", stderr(&check));
    let refused = run(&["--scheme", "l2"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("--scheme is for racks"), "{}", stderr(&refused));
}

#[test]
fn mistakes_in_programs_and_entries_are_named_before_anything_starts() {
    let Some(lab) = Lab::new() else { return };
    let file = lab.pair(LINKS);
    let of = |name: &str, text: &str| {
        let before = fs::read_to_string(lab.path(name)).expect("our file");
        lab.write(name, text);
        let output = lab.run(&["up"], &file);
        lab.write(name, &before);
        assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
        assert!(!stderr(&output).contains("namespaces"), "{}", stderr(&output));
        stderr(&output)
    };
    let said = of("s1.entries", "routes dts=10.0.1.0/24 --action to next_hop=1 port=1\n");
    assert!(
        said.contains("s1: ")
            && said.contains("s1.entries: line 1")
            && said.contains("did you mean `hdr.ipv4.dst`"),
        "{said}"
    );
    let said = of("route.p4", "control\n");
    assert!(said.contains("s1: expected a name") && said.contains("route.p4:2"), "{said}");
    let said = of("pair.toml", "name = \"pair\"\n[[switch]]\nname = \"s1\"\n");
    assert!(said.contains("pair.toml:2: switch[0]: runs nothing"), "{said}");
}

#[test]
fn a_check_shows_programs_entries_and_addresses() {
    let output =
        p4rack().args(["rack", "check"]).arg(repo("examples/pod/pod.toml")).output().expect("p4rack starts");
    let said = stdout(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(said.contains("v1model") && said.contains("127.0.0.1:9562") && said.contains("s2:3"), "{said}");
    let output = p4rack()
        .args(["rack", "check", "--json"])
        .arg(repo("examples/pod/pod.toml"))
        .output()
        .expect("p4rack starts");
    let pod: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!((&pod["switches"][0]["entries"], &pod["links"][9]["delay_ns"]), (&6.into(), &100_000.into()));
}

#[test]
fn top_of_a_topology_says_which_switches_there_are_and_how_to_start_them() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let pod = repo("examples/pod/pod.toml").display().to_string();
    for (words, said) in [
        (&[][..], "is a topology; while it runs (p4rack up "),
        (&["--switch", "s9"], "has no switch `s9`; while it runs"),
        (&["--switch", "s1"], "no rack is running: start one with `p4rack up --keep "),
    ] {
        let output = p4rack()
            .args(["top", &pod])
            .args(words)
            .env("XDG_RUNTIME_DIR", folder.path())
            .output()
            .expect("p4rack starts");
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(said) && stderr(&output).contains(&pod), "{}", stderr(&output));
    }
}

#[test]
fn a_terminated_lab_leaves_nothing_behind() {
    let Some(lab) = Lab::new() else { return };
    let file = lab.pair(LINKS);
    let mut command = lab.command(&["lab"]);
    command.arg(&file).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("p4rack starts");
    // A line is answered when everything runs.
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(b"h1 echo it runs; sleep 1000 &\n").expect("it reads");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert!(lines.any(|line| line.expect("a line") == "it runs"));
    let switches = || {
        let own = format!("/proc/{}/task/{0}/children", child.id());
        fs::read_to_string(own).unwrap_or_default().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let children = switches();
    assert!(!children.is_empty());
    let killed = Command::new("kill").arg(child.id().to_string()).status().expect("kill starts");
    assert!(killed.success());
    let output = child.wait_with_output().expect("ours");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("interrupted"), "{}", stderr(&output));
    assert!(children.iter().all(|pid| !Path::new("/proc").join(pid).exists()), "{children:?}");
}

#[test]
fn options_that_a_topology_has_no_use_for_are_refused() {
    let pod = repo("examples/pod/pod.toml");
    for (option, words) in [
        ("--compiler", &["--compiler", "p4c"][..]),
        ("--device-id", &["--device-id", "3"]),
        ("--scheme", &["--scheme", "l2"]),
    ] {
        let output = p4rack().arg("deploy").args(words).arg(&pod).output().expect("p4rack starts");
        assert!(!output.status.success() && stderr(&output).contains(option), "{}", stderr(&output));
    }
}

#[test]
fn a_rejected_entry_leaves_nothing_running() {
    let Some(lab) = Lab::new() else { return };
    let file = lab.pair(LINKS);
    let route = |n: usize| {
        format!("routes dst=10.9.{}.{}/32 --action to next_hop=02:00:00:00:00:01 port=1\n", n / 256, n % 256)
    };
    // The table has room for 1024, and a file with more is refused before anything starts.
    for (count, wanted) in
        [(1025, "line 1025: table PodIngress.routes has room for 1024 entries"), (1024, "is full")]
    {
        lab.write("s1.entries", &(0..count).map(route).collect::<String>());
        let output = lab.run(&["up", "--keep"], &file);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(wanted) && said.contains("namespaces") == (count == 1024), "{said}");
        // The program's own takes the place of the last one.
        let program = fs::read_to_string(lab.path("route.p4")).expect("readable");
        let own = "size = 1024;\n        entries = { 0x0a630000 &&& 0xffff0000 : drop(); }";
        lab.write("route.p4", &program.replacen("size = 1024;", own, 1));
    }
    let down = lab.command(&["down"]).output().expect("p4rack starts");
    assert!(stderr(&down).contains("no rack is running"), "{}", stderr(&down));
}

/// The programs are read before a switch or Mininet is asked for, so their mistakes show which were chosen.
#[test]
fn deploy_and_mininet_take_an_exercises_solution_and_programs() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    for name in ["basic.p4", "solution/basic.p4", "own.p4"] {
        write(name, "#include <core.p4>\n#include <v1model.p4>\nbit<8> x = ;\n");
    }
    let topology = write(
        "topology.json",
        r#"{"hosts": {"h1": {"ip": "10.0.1.1/24"}}, "switches": {"s1": {"program": "build/basic.json"}}, "links": [["h1", "s1-p1"]]}"#,
    );
    let own = format!("s1={}", folder.path().join("own.p4").display());
    for command in ["deploy", "mininet"] {
        let refused = |words: &[&str], file: &str| {
            let output = p4rack().arg(command).args(words).arg(file).output().expect("p4rack starts");
            assert!(!output.status.success(), "{command} {words:?}");
            stderr(&output)
        };
        for (words, program) in [
            (&[][..], "/basic.p4:3"),
            (&["--solution"], "/solution/basic.p4:3"),
            (&["--program", &own], "/own.p4:3"),
        ] {
            let said = refused(words, &topology);
            assert!(said.contains(program), "{command} {words:?}: {said}");
            assert_eq!(
                said.contains("/solution/"),
                program.contains("solution"),
                "{command} {words:?}: {said}"
            );
        }
        let pod = repo("examples/pod/pod.toml").display().to_string();
        let said = refused(&["--solution"], &pod);
        assert!(said.contains("--solution is for a topology.json"), "{command}: {said}");
    }
    let pod = repo("examples/pod/pod.toml").display().to_string();
    let output =
        p4rack().args(["mininet", &pod, "--test", "--duration", "9"]).output().expect("p4rack starts");
    assert!(stderr(&output).contains("--duration is for racks"), "{}", stderr(&output));
}
