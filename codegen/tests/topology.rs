//! Topologies are read, and mistakes are named by file, line or field.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_codegen::rack::End;
use p4rack_codegen::topology::{Exercise, Program, ProgramError, Runs, Topology};
use p4rack_codegen::{Arch, Rack};
use p4rack_wire::Nanos;
use std::fs;
use std::path::Path;

const TWO: &str = r#"name = "two"

[[switch]]
name = "s1"
program = "x.p4"

[[switch]]
name = "s2"
program = "none"
cpu_port = 64

[[host]]
name = "h1"
ip = "10.0.1.1/24"
gateway = "10.0.1.254"
commands = ["true"]

[[host]]
name = "h2"
ip = "10.0.2.1/31"
mac = "08:00:00:00:02:22"

[[link]]
ends = ["h1", "s1:1"]
rate = "10 Mb/s"
delay = "5 ms"
loss_percent = 0.5

[[link]]
ends = ["s2:7", "h2"]

[[link]]
ends = ["s1:2", "s2:2"]
"#;

/// Reads a text as the file `name` of a folder.
fn parse_in(folder: &Path, name: &str, text: &str) -> Result<Topology, String> {
    let file = folder.join(name);
    fs::write(&file, text).unwrap();
    fs::write(folder.join("x.p4"), "").unwrap();
    Topology::load(&file).map_err(|error| error.to_string())
}

fn parse(text: &str) -> Result<Topology, String> {
    parse_in(tempfile::tempdir().unwrap().path(), "two.toml", text)
}

fn broken(from: &str, to: &str) -> String {
    assert!(TWO.contains(from), "{from}");
    parse(&TWO.replacen(from, to, 1)).unwrap_err()
}

#[test]
fn a_description_is_read_with_defaults() {
    let topology = parse(TWO).unwrap();
    let [s1, s2] = topology.switches.as_slice() else { panic!("{topology:?}") };
    assert!(
        matches!(&s1.runs, Runs::Program(path) if path.ends_with("x.p4") && path.is_absolute()),
        "{s1:?}"
    );
    assert_eq!((&s2.runs, s2.cpu_port, s1.cpu_port), (&Runs::Nothing, 64, 510));
    assert_eq!(
        [s1, s2].map(|switch| switch.grpc_addr.to_string()),
        ["127.0.0.1:9559", "127.0.0.1:9560"].map(str::to_owned)
    );
    let h1 = &topology.hosts[0];
    assert_eq!((h1.mac.to_string().as_str(), h1.prefix), ("02:00:00:00:00:01", 24));
    let (link, switch, port) = topology.attachment(0).unwrap();
    assert_eq!((switch, port, link.rate_bps, link.loss_ppm), (0, 1, Some(10_000_000), 5_000));
    assert_eq!(link.delay, Nanos::from_millis(5));
    assert_eq!(topology.attachment(1).map(|(_, switch, port)| (switch, port)), Some((1, 7)));
    assert_eq!(topology.ports(0).map(|(port, _)| port).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(topology.end_name(End::Port(1, 7)), "s2:7");
}

#[test]
fn mistakes_are_named_by_line_and_field() {
    for (from, to, said) in [
        ("\"h1\", \"s1:1\"", "\"h9\", \"s1:1\"", "two.toml:24: link[0].ends[0]: `h9` is neither"),
        ("\"h1\", \"s1:1\"", "\"h1\", \"s1\"", "link[0].ends[1]: `s1` is a switch, and names no port"),
        ("\"h1\", \"s1:1\"", "\"h1:3\", \"s1:1\"", "link[0].ends[0]: `h1` is a host"),
        ("\"h1\", \"s1:1\"", "\"h1\", \"s1:600\"", "600 is no port number"),
        ("\"h1\", \"s1:1\"", "\"h1\", \"s1:x\"", "`x` is no port number"),
        ("\"h1\", \"s1:1\"", "\"h1\", \"s1:510\"", "510 is the CPU port of s1"),
        ("\"h1\", \"s1:1\"", "\"h1\", \"s1:511\"", "511 is the drop port of s1"),
        ("\"h1\", \"s1:1\"", "\"h1\", \"h2\"", "link[0]: connects two hosts"),
        ("\"h1\", \"s1:1\"", "\"h1\"", "link[0].ends: has not two ends"),
        ("\"h1\", \"s1:1\"", "\"h1\", \"s1:1\", \"s2:1\"", "link[0].ends: has 3 ends"),
        ("\"s1:2\", \"s2:2\"", "\"s1:2\", \"s1:3\"", "two.toml:32: link[2]: connects s1 with itself"),
        ("\"s1:2\", \"s2:2\"", "\"s1:1\", \"s2:2\"", "port 1 of s1 is link[0]'s already"),
        ("\"s1:2\", \"s2:2\"", "\"h1\", \"s2:2\"", "host h1 is link[0]'s already"),
        ("[[link]]\nends = [\"s2:7\", \"h2\"]\n", "", "host[1]: has no link"),
        ("program = \"x.p4\"", "", "switch[0]: runs nothing"),
        (
            "program = \"x.p4\"",
            "program = \"x.p4\"\nrack = \"r.toml\"",
            "switch[0].rack: is a second program",
        ),
        ("program = \"x.p4\"", "rack = \"x.p4\"", "switch[0].rack: is not a valid rack description"),
        ("program = \"x.p4\"", "program = \"y.p4\"", "two.toml:5: switch[0].program: "),
        (
            "program = \"x.p4\"",
            "program = \"y.p4\"",
            "y.p4: no such file; give its path from the topology's folder",
        ),
        ("program = \"x.p4\"", "program = \".\"", "is a folder, not a file"),
        ("program = \"x.p4\"", "rack = \"r.toml\"", "two.toml:5: switch[0].rack: "),
        ("program = \"x.p4\"", "program = \"x.p4\"\nentries = \"none\"", "two.toml:6: switch[0].entries: "),
        (
            "program = \"x.p4\"",
            "rack = \"r.toml\"\ncpu_port = 100",
            "switch[0].cpu_port: can't be set beside",
        ),
        (
            "program = \"x.p4\"",
            "rack = \"r.toml\"\nbuffer = \"1 MiB\"",
            "switch[0].buffer: can't be set beside",
        ),
        (
            "program = \"x.p4\"",
            "rack = \"r.toml\"\ntime_unit_ns = 10",
            "switch[0].time_unit_ns: can't be set",
        ),
        (
            "program = \"none\"",
            "program = \"none\"\nentries = \"e\"",
            "switch[1].entries: belong to no program",
        ),
        ("name = \"s2\"", "name = \"s1\"", "switch[1].name: `s1` is switch[0]'s already"),
        ("name = \"s2\"", "name = \"h1\"", "host[0].name: `h1` is switch[1]'s already"),
        ("name = \"s2\"", "name = \"switch-22\"", "longer than 8 characters"),
        ("name = \"s2\"", "name = \"s2\"\ngrpc_addr = \"0.0.0.0:9559\"", "grpc_addr: is switch[0]'s already"),
        (
            "name = \"s2\"",
            "name = \"s2\"\ngrpc_addr = \"127.0.0.1:0\"",
            "grpc_addr: has port 0, which is any",
        ),
        (
            "name = \"s2\"",
            "name = \"s2\"\ngrpc_addr = \"127.0.0.1:9559\"",
            "grpc_addr: is switch[0]'s already",
        ),
        ("name = \"s2\"", "name = \"s2\"\ntarget = \"asic\"", "`asic` is no target"),
        ("cpu_port = 64", "cpu_port = 511", "switch[1].cpu_port: 511 is also the drop port"),
        (
            "gateway = \"10.0.1.254\"",
            "gateway = \"10.0.2.254\"",
            "host[0].gateway: 10.0.2.254 is not in the subnet",
        ),
        ("gateway = \"10.0.1.254\"", "gateway = \"10.0.1.1\"", "is the host itself"),
        ("gateway = \"10.0.1.254\"", "gateway_mac = \"02:00:00:00:00:09\"", "gateway_mac: has no gateway"),
        ("ip = \"10.0.1.1/24\"", "", "host[0]: has no ip"),
        ("ip = \"10.0.1.1/24\"", "ip = \"10.0.1.1/40\"", "`/40` is no prefix length from 1 to 32"),
        ("ip = \"10.0.1.1/24\"", "ip = \"224.0.0.1/32\"", "`224.0.0.1/32` is no host's address"),
        ("ip = \"10.0.1.1/24\"", "ip = \"10.0.2.1/24\"", "10.0.2.1 is host[0]'s already"),
        ("08:00:00:00:02:22", "02:00:00:00:00:01", "02:00:00:00:00:01 is host[0]'s already"),
        ("delay = \"5 ms\"", "delay = \"5\"", "link[0].delay: `5` is not a time"),
        ("delay = \"5 ms\"", "delay = \"11 s\"", "more than 10 s"),
        ("loss_percent = 0.5", "loss_percent = 101", "out of range"),
        ("loss_percent = 0.5", "los_percent = 1", "did you mean `loss_percent`"),
    ] {
        let error = broken(from, to);
        assert!(error.contains(said), "{to}: {error}");
    }
    assert!(parse("name = \"x\"\n").unwrap_err().contains("switch: is missing"));
    assert!(parse("[[switch]\n").unwrap_err().contains("must be TOML"));
}

#[test]
fn all_mistakes_are_reported_together() {
    let text = TWO.replace("rate = \"10 Mb/s\"", "rate = \"fast\"").replace("\"h2\"]", "\"h3\"]");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("two.toml"), text).unwrap();
    fs::write(folder.path().join("x.p4"), "").unwrap();
    let error = Topology::load(&folder.path().join("two.toml")).unwrap_err();
    let fields: Vec<&str> = error.errors.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(fields, ["link[0].rate", "link[1].ends[1]"]);
}

const RACK: &str = r#"name = "r"
[switch]
port_rate = "100 Mb/s"
[[host]]
name = "h1"
port = 1
mac = "02:00:00:00:00:01"
ip = "10.0.0.1/24"
[[host]]
name = "up"
port = 2
mac = "02:00:00:00:00:02"
ip = "10.0.0.2/24"
foreign_percent = 20
"#;

#[test]
fn a_racks_hosts_are_where_it_says() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("r.toml"), RACK).unwrap();
    let text = TWO
        .replace("program = \"x.p4\"", "rack = \"r.toml\"")
        .replace("ip = \"10.0.1.1/24\"\ngateway = \"10.0.1.254\"\n", "");
    let parse = |text: &str| parse_in(folder.path(), "t.toml", text);
    let topology = parse(&text).unwrap();
    assert_eq!(topology.hosts[0].ip.to_string(), "10.0.0.1");
    assert!(matches!(&topology.switches[0].runs, Runs::Rack(_, rack) if rack.hosts.len() == 2));
    let error = parse(&text.replace("\"s1:1\"", "\"s1:3\"")).unwrap_err();
    assert!(
        error.contains("has h1 at port 1, and no link is there") && error.contains("knows no port 3"),
        "{error}"
    );
    let error = parse(&text.replace("commands", "mac = \"02:00:00:00:00:09\"\ncommands")).unwrap_err();
    assert!(error.contains("is not 02:00:00:00:00:01, its address in its rack"), "{error}");
    fs::write(folder.path().join("r.toml"), RACK.replace("foreign_percent = 20\n", "")).unwrap();
    let error = parse(&text).unwrap_err();
    assert!(error.contains("has up at port 2, and a switch is there"), "{error}");
}

/// An exercise's folder: programs, entries, and a topology below it.
fn exercise(topology: &str) -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("basic-").tempdir().unwrap();
    for sub in ["pod", "solution"] {
        fs::create_dir(folder.path().join(sub)).unwrap();
    }
    for program in ["basic.p4", "firewall.p4", "solution/firewall.p4"] {
        fs::write(folder.path().join(program), "").unwrap();
    }
    for entries in ["pod/s1.json", "solution/s1.json", "pod/s2.json"] {
        fs::write(folder.path().join(entries), r#"{"bmv2_json": "build/basic.json", "table_entries": []}"#)
            .unwrap();
    }
    fs::write(folder.path().join("pod/topology.json"), topology).unwrap();
    folder
}

const POD: &str = r#"{
    "hosts": {"h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11", "commands": ["route add default gw 10.0.1.10"]},
              "h2": {"ip": "10.0.2.2/31", "mac": "08:00:00:00:02:22"}},
    "switches": {"s10": {"cpu_port": "255"}, "s2": {"runtime_json": "pod/s2.json"},
                 "s1": {"runtime_json": "pod/s1.json", "program": "build/firewall.json"}},
    "links": [["h1", "s1-p1"], ["s2-p2", "h2-eth0", "5ms", 0.5], ["s1-p3", "s10-p1", 2], ["s2-p3", "s10-p2", "0"]]
}"#;

#[test]
fn a_topology_of_the_tutorials_is_the_same_model() {
    let folder = exercise(POD);
    let file = folder.path().join("pod/topology.json");
    let topology = Topology::load(&file).unwrap();
    assert!(topology.name.starts_with("basic-"), "{}", topology.name);
    let names: Vec<(&str, u64, u16)> = topology
        .switches
        .iter()
        .map(|switch| (switch.name.as_str(), switch.device_id, switch.grpc_addr.port()))
        .collect();
    assert_eq!(names, [("s1", 0, 50_051), ("s2", 1, 50_052), ("s10", 2, 50_053)]);
    let run = |at: usize| match &topology.switches[at].runs {
        Runs::Program(path) => path.file_name().unwrap().to_str().unwrap(),
        _ => "nothing",
    };
    assert_eq!([run(0), run(1), run(2)], ["firewall.p4", "basic.p4", "nothing"]);
    assert_eq!(topology.switches[2].cpu_port, 255);
    let delays = topology.links.iter().map(|link| (link.delay, link.rate_bps)).collect::<Vec<_>>();
    assert_eq!(delays[1], (Nanos::from_millis(5), Some(500_000)));
    assert_eq!((delays[2].0, delays[3].0), (Nanos::from_millis(2), Nanos::ZERO));
    let solved = Exercise { solution: true, ..Exercise::default() };
    let topology = Topology::load_exercise(&file, &solved).unwrap();
    let Runs::Program(path) = &topology.switches[0].runs else { panic!("{topology:?}") };
    assert!(path.ends_with("solution/firewall.p4"), "{path:?}");
    assert!(topology.switches[0].entries.as_ref().unwrap().ends_with("solution/s1.json"));
    let one = Exercise { programs: vec![(Some("s10".into()), "own.p4".into())], ..Exercise::default() };
    assert_eq!(
        Topology::load_exercise(&file, &one).unwrap().switches[2].runs,
        Runs::Program("own.p4".into())
    );
}

#[test]
fn mistakes_of_a_topology_json_are_named_by_line_and_field() {
    let of = |text: &str| {
        let folder = exercise(text);
        Topology::load(&folder.path().join("pod/topology.json")).unwrap_err().to_string()
    };
    for (from, to, said) in [
        ("\"h1\", \"s1-p1\"", "\"h9\", \"s1-p1\"", "links[0]: `h9` is neither"),
        ("[\"h1\", \"s1-p1\"]", "7", "links[0]: is 7"),
        ("\"5ms\"", "\"soon\"", "links[1]: is \"soon\"; write the latency"),
        ("\"5ms\"", "\"11s\"", "links[1]: is \"11s\"; write the latency"),
        ("\"5ms\"", "\"20000000\"", "links[1]: is \"20000000\"; write the latency"),
        ("\"5ms\"", "10001", "links[1]: is 10001; write the latency"),
        ("0.5]", "\"fast\"]", "links[1]: is \"fast\"; write the bandwidth"),
        ("10.0.1.1/24", "10.0.1", "hosts.h1.ip: `10.0.1` has no prefix"),
        ("pod/s1.json", "pod/s9.json", "switches.s1.runtime_json: pod/s9.json: no such file"),
        (
            "build/firewall.json",
            "build/fire.json",
            "there is no fire.p4; name the program: --program s1=FILE.p4",
        ),
        ("\"cpu_port\": \"255\"", "\"cli_input\": \"x\"", "switches.s10.cli_input"),
        ("\"cpu_port\": \"255\"", "\"cpu_port\": 600", "switches.s10.cpu_port: is 600"),
        ("\"switches\"", "\"swtches\"", "switches: is missing"),
        ("\"commands\": [\"", "\"commands\": [1, \"", "hosts.h1.commands"),
        ("\"cpu_port\": \"255\"", "\"cpu_port\" \"255\"", "is no JSON: expected `:`"),
    ] {
        assert!(POD.contains(from), "{from}");
        let text = POD.replacen(from, to, 1);
        let error = of(&text);
        let changed = text.lines().zip(POD.lines()).position(|(now, before)| now != before);
        let line = changed.unwrap() + 1;
        // What is missing has no line.
        let place = if said.ends_with("is missing") {
            "topology.json: ".to_owned()
        } else {
            format!("topology.json:{line}: ")
        };
        assert!(error.contains(said) && error.contains(&place), "{to}: {place}: {error}");
    }
}

#[test]
fn other_kinds_of_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("r.toml");
    fs::write(&file, RACK).unwrap();
    let error = Topology::load(&file).unwrap_err().to_string();
    assert!(error.contains("is a rack description, not a topology"), "{error}");
    let error = Rack::parse(TWO, "two.toml").unwrap_err().to_string();
    assert!(error.contains("is a topology, not a rack description"), "{error}");
    assert!(Topology::load(Path::new("nowhere.toml")).unwrap_err().to_string().contains("can't be read"));
}

#[test]
fn the_example_is_a_topology_and_its_program_compiles() {
    let pod = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/pod");
    let topology = Topology::load(&pod.join("pod.toml")).unwrap();
    assert_eq!((topology.switches.len(), topology.hosts.len(), topology.links.len()), (4, 6, 10));
    let program = Program::load(&pod.join("route.p4")).unwrap();
    assert_eq!(program.arch, Arch::V1model);
    // BMv2 takes JSON, which is a program, too.
    let json = Program::load_for_bmv2(&pod.join("route.p4")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("route.json");
    fs::write(&file, &json.text).unwrap();
    for again in [Program::load(&file), Program::load_for_bmv2(&file)].map(Result::unwrap) {
        assert_eq!((again.text.as_str(), again.arch), (json.text.as_str(), Arch::V1model));
    }
    let error = Topology::load(&file).unwrap_err().to_string();
    assert!(error.contains("is a program in BMv2's JSON, not a topology"), "{error}");
}

#[test]
fn a_programs_own_includes_become_part_of_its_text() {
    let folder = tempfile::tempdir().unwrap();
    let forward =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/forward.p4")).unwrap();
    let (first, rest) = forward.split_once("parser P(").unwrap();
    fs::write(folder.path().join("headers.p4"), first).unwrap();
    let main = folder.path().join("main.p4");
    fs::write(&main, format!("#include \"headers.p4\"\nparser P({rest}")).unwrap();
    let program = Program::load(&main).unwrap();
    assert!(p4rack_p4::compile(&program.text, "elsewhere.p4", &p4rack_p4::Options::default()).is_ok());
    fs::write(&main, "control").unwrap();
    assert!(
        matches!(Program::load(&main), Err(ProgramError::Refused(why)) if why.starts_with("expected") && why.contains("main.p4:1"))
    );
}

#[test]
fn a_workload_names_hosts_and_rates() {
    let with = |workload: &str| parse(&format!("{TWO}\n[workload]\n{workload}"));
    let udp = "[[workload.udp]]\nsenders = [\"h1\"]\nreceiver = \"h2\"\nrate = \"5 Mb/s\"\n";
    let topology =
        with(&format!("duration_s = 0.5\n{udp}[[workload.rpc]]\nclient = \"h2\"\nserver = \"h1\"\n"))
            .unwrap();
    let workload = topology.workload.unwrap();
    assert_eq!((workload.duration_s, workload.seed), (0.5, 1));
    let (udp_group, rpc) = (&workload.udp[0], &workload.rpc[0]);
    assert_eq!((&udp_group.senders[..], udp_group.receiver, udp_group.payload_bytes), (&[0][..], 1, 1_500));
    assert_eq!(udp_group.rate_bps, 5_000_000);
    assert_eq!((rpc.client, rpc.server, &rpc.value_bytes[..]), (1, 0, &[1_024, 4_096][..]));
    for (workload, said) in [
        ("", "workload: sends nothing"),
        ("duration_s = 0\n", "workload.duration_s: 0 is out of range"),
        (&udp.replace("h1", "h3"), "there is no host `h3`; did you mean `h1`?"),
        (&udp.replace("[\"h1\"]", "[]"), "workload.udp[0].senders: is empty"),
        (&udp.replace("[\"h1\"]", "[\"h1\", \"h1\"]"), "`h1` is listed twice"),
        (&udp.replace("\"h2\"", "\"h1\""), "`h1` is the receiver"),
        (
            &udp.replace("5 Mb/s", "10 Tb/s"),
            "workload.udp[0].rate: is more than a sender can send: 2000000 frames a second",
        ),
        (
            &udp.replace("\"5 Mb/s\"", "\"2 Gb/s\"\npayload_bytes = 64"),
            "which are 1024 Mb/s of 64 bytes each",
        ),
        (&udp.replace("5 Mb/s", "5 b/s"), "workload.udp[0].rate: `5 b/s` is less than 1 kb/s"),
        ("[[workload.udp]]\nreceiver = \"h2\"\n", "workload.udp[0]"),
        (
            "[[workload.rpc]]\nclient = \"h1\"\nserver = \"h1\"\n",
            "workload.rpc[0].server: is the client itself",
        ),
        ("[[workload.rpc]]\nclient = \"h1\"\nserver = \"h2\"\nvalue_bytes = []\n", "value_bytes: is empty"),
        ("kind = \"incast\"\n", "workload.kind"),
    ] {
        let error = with(workload).unwrap_err();
        assert!(error.contains(said), "{workload}: {error}");
    }
}

/// No argument of a process has one.
#[test]
fn a_command_with_a_nul_is_refused() {
    let error = broken("[\"true\"]", "[\"true\", \"echo a\\u0000b\"]");
    assert!(error.contains("host[0].commands[1]: has a NUL character; take it out"), "{error}");
    let text = POD.replacen("\"commands\": [\"", "\"commands\": [\"\\u0000", 1);
    assert_ne!(text, POD);
    let folder = exercise(&text);
    let error = Topology::load(&folder.path().join("pod/topology.json")).unwrap_err().to_string();
    assert!(error.contains("hosts.h1.commands: has a NUL character"), "{error}");
}

/// A number is shown as one reads it.
#[test]
fn a_large_number_is_shown_with_its_exponent() {
    let error = broken("\"h2\"]", "\"h2\"]\nloss_percent = 1e308");
    assert!(
        error.contains("link[1].loss_percent: 1e308 is out of range; write a number from 0 to 100"),
        "{error}"
    );
}

/// What one machine can't run is a topology all the same, and is named by file, line and field.
#[test]
fn what_one_machine_cannot_run_is_named() {
    let text = TWO
        .replacen("cpu_port = 64", "target = \"bmv2\"\ngrpc_addr = \"10.0.0.9:9559\"", 1)
        .replacen("\"h2\"]", "\"h2\"]\nloss_percent = 1", 1)
        .replacen("program = \"x.p4\"", "program = \"x.p4\"\ntarget = \"tofino\"", 1);
    let topology = parse(&text).unwrap();
    let line = |key: &str| text.lines().position(|line| line.starts_with(key)).unwrap() + 1;
    let place = |error: &p4rack_codegen::rack::FieldError| {
        assert!(error.file.ends_with("two.toml"), "{error}");
        (error.line, error.field.clone())
    };
    let errors = topology.check_local().unwrap_err().errors;
    let lossy = text.lines().position(|line| line == "loss_percent = 1").unwrap() + 1;
    let wanted = [
        (line("target = \"tofino\""), "switch[0].target".to_owned()),
        (line("grpc_addr"), "switch[1].grpc_addr".to_owned()),
        (lossy, "link[1].loss_percent".to_owned()),
    ];
    assert_eq!(errors.iter().map(place).collect::<Vec<_>>(), wanted);
    let links = topology.check_bmv2_links().unwrap_err().errors;
    assert_eq!(links.iter().map(place).collect::<Vec<_>>(), wanted[2..]);
    let missing = topology.mistake_of_switch(1, "entries", "none".to_owned(), "add some").errors;
    // A table begins a line above its name.
    assert_eq!(
        missing.iter().map(place).collect::<Vec<_>>(),
        [(line("name = \"s2\"") - 1, "switch[1]".to_owned())]
    );
    assert!(parse(TWO).unwrap().check_local().is_ok());
    for (ip, is_there) in [("127.4.0.1", true), ("0.0.0.0", true), ("[::1]", false)] {
        let text = TWO.replacen("cpu_port = 64", &format!("grpc_addr = \"{ip}:9\""), 1);
        assert_eq!(parse(&text).unwrap().check_local().is_ok(), is_there, "{ip}");
    }
}
