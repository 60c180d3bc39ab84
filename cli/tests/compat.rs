//! `p4rack compat`: p4c's and BMv2's commands, with their options and output.

mod common;

use common::switch::{Running, free_addr};
use common::{can_make_namespaces, have, p4rack, repo, stderr, stdout};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder with the installed commands, and one for files.
struct Installed {
    folder: tempfile::TempDir,
}

impl Installed {
    fn new() -> Installed {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let done =
            p4rack().args(["compat", "install"]).arg(folder.path().join("bin")).output().expect("it starts");
        assert!(done.status.success(), "{}", stderr(&done));
        Installed { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// One of the commands, in the folder for files.
    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.path("bin").join(name));
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, name: &str, words: &[&str]) -> Output {
        self.command(name).args(words).output().expect("it starts")
    }

    /// The test's program as BMv2's JSON.
    fn compiled(&self) -> PathBuf {
        let program = repo("cli/tests/compat.p4");
        let words = ["--target", "bmv2", "--arch", "v1model", "--std", "p4-16", "-o", "build"];
        let info = ["--p4runtime-files", "info.txtpb,info.bin"];
        let done = self.command("p4c").args(words).args(info).arg(program).output().expect("it starts");
        assert!(done.status.success(), "{}", stderr(&done));
        self.path("build/compat.json")
    }
}

fn port(addr: &str) -> &str {
    addr.rsplit(':').next().expect("an address with a port")
}

/// `simple_switch_CLI` with these lines; what it prints after each.
fn lines(installed: &Installed, thrift: &str, lines: &str) -> String {
    let mut command = installed.command("simple_switch_CLI");
    command
        .args(["--thrift-port", thrift])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    child.stdin.take().expect("a pipe").write_all(lines.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("ours");
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

#[test]
fn p4c_writes_what_bmv2_and_controllers_load() {
    let installed = Installed::new();
    let json = installed.compiled();
    let text = fs::read_to_string(&json).expect("the JSON");
    assert!(text.contains("\"program\"") && installed.path("build/compat.p4i").exists());
    let info = fs::read_to_string(installed.path("info.txtpb")).expect("the P4Info");
    assert!(
        info.contains("I.routes") && installed.path("info.bin").metadata().is_ok_and(|meta| meta.len() > 100)
    );
    // The compiler's own name: a file, and nothing beside it.
    let program = repo("cli/tests/compat.p4").display().to_string();
    let done = installed.run(
        "p4c-bm2-ss",
        &["--p4v", "16", "--p4runtime-files", "x.p4.p4info.txtpb", "-o", "x.json", &program],
    );
    assert!(done.status.success(), "{}", stderr(&done));
    assert_eq!(fs::read_to_string(installed.path("x.json")).expect("the JSON"), text);
    assert!(!installed.path("x.p4i").exists());
    // Preprocessed first, and compiled from that.
    for (step, made) in [("-E", "two/compat.p4i"), ("-e", "two/compat.json")] {
        let done = installed.run("p4c", &["--target", "bmv2", step, "-o", "two", &program]);
        assert!(done.status.success() && installed.path(made).exists(), "{}", stderr(&done));
    }
    for (words, said) in [
        (&["--p4v", "14"][..], "only P4_16"),
        (&["--target", "tofino"], "only bmv2"),
        (&["--arch", "psa"], "v1model"),
        (&["--p4runtime-format", "json", "--p4runtime-file", "i"], "isn't written as JSON"),
        (&["--p4runtime-files", "i.json"], "isn't written as JSON"),
        (&["--p4runtime-files", "i.info"], "name it .txtpb or .bin"),
        (&["--p4runtime-entries-files", "e.txtpb"], "--p4runtime-entries-files"),
        (&["-o", "no/such/folder/x.json"], "no/such/folder/x.json"),
    ] {
        let done = installed.run("p4c-bm2-ss", &[words, &[&program]].concat());
        assert!(!done.status.success() && stderr(&done).contains(said), "{words:?}: {}", stderr(&done));
    }
    fs::write(installed.path("bad.p4"), "#include <v1model.p4>\nheader h { bit<x> a; }\n").expect("a file");
    let done = installed.run("p4c", &["-b", "bmv2", "bad.p4"]);
    assert!(!done.status.success() && stderr(&done).contains("bad.p4:2"), "{}", stderr(&done));
}

#[test]
fn options_that_do_not_fit_are_named() {
    let installed = Installed::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("bound").port().to_string();
    fs::write(installed.path("x.json"), "{\"a\": 1}").expect("a file");
    for (name, words, said) in [
        ("simple_switch", &["--no-p4", "--enable-swap"][..], "--enable-swap"),
        ("simple_switch", &["--no-p4", "--", "--grpc-server-addr", "127.0.0.1:1"], "simple_switch_grpc has"),
        ("simple_switch", &[], "<FILE>"),
        ("simple_switch_grpc", &["--no-p4", "--", "--dp-grpc-server-addr", "x"], "--dp-grpc-server-addr"),
        ("simple_switch_grpc", &["--no-p4", "-i", "1"], "PORT@INTERFACE"),
        ("simple_switch_grpc", &["--no-p4", "-i", "1@nowhere0"], "nowhere0"),
        ("simple_switch_grpc", &["--no-p4", "--thrift-port", &taken], &taken),
        (
            "simple_switch_grpc",
            &["--no-p4", "--", "--cpu-port", "5", "--drop-port", "5"],
            "--cpu-port, --drop-port",
        ),
        ("simple_switch_grpc", &["--no-p4", "-L", "loud"], "expected trace"),
        ("simple_switch_grpc", &["--no-p4", "--log-file", "no/such/log"], "--log-file"),
        ("simple_switch", &["x.json"], "x.json"),
        ("simple_switch_CLI", &["--thrift-port", "1"], "no switch answers at 127.0.0.1:1"),
    ] {
        let done = installed.run(name, words);
        assert!(
            !done.status.success() && stderr(&done).contains(said),
            "{name} {words:?}: {}",
            stderr(&done)
        );
    }
    fs::write(installed.path("bin/p4c"), "mine").expect("a file");
    let again = p4rack().args(["compat", "install"]).arg(installed.path("bin")).output().expect("it starts");
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("p4c: not written by p4rack"), "{}", stderr(&again));
    let gone = p4rack()
        .args(["compat", "install", "--uninstall"])
        .arg(installed.path("bin"))
        .output()
        .expect("it starts");
    assert!(gone.status.success() && stdout(&gone).contains("kept "), "{}", stdout(&gone));
    assert_eq!(fs::read_dir(installed.path("bin")).expect("the folder").count(), 1);
}

/// A switch without ports and its commands.
struct Cli {
    installed: Installed,
    thrift: String,
    grpc: String,
    _switch: Running,
}

impl Cli {
    fn new() -> Cli {
        let installed = Installed::new();
        let json = installed.compiled();
        let (thrift, grpc) = (free_addr(), free_addr());
        let mut command = installed.command("simple_switch_grpc");
        command.arg(json).args([
            "--thrift-port",
            port(&thrift),
            "--log-file",
            "log",
            "--nanolog",
            "ipc:///x",
        ]);
        command.args(["--", "--grpc-server-addr", &grpc]);
        let mut switch = Running::start(&mut command);
        switch.until("ready");
        let thrift = port(&thrift).to_owned();
        Cli { installed, thrift, grpc, _switch: switch }
    }

    fn say(&self, text: &str) -> String {
        lines(&self.installed, &self.thrift, text)
    }

    /// Each command prints what stands behind it, among other things.
    fn expect(&self, all: &[(&str, &[&str])]) {
        let text: String = all.iter().map(|(line, _)| format!("{line}\n")).collect();
        let said = self.say(&text);
        let answers: Vec<&str> = said.split("RuntimeCmd: ").skip(1).collect();
        for ((line, wanted), answer) in all.iter().zip(&answers) {
            for wanted in *wanted {
                assert!(answer.contains(wanted), "{line}: `{wanted}` is not in: {answer}");
            }
        }
        assert_eq!(answers.len(), all.len() + 1, "{said}");
    }
}

#[test]
fn tables_are_filled_shown_and_emptied() {
    let cli = Cli::new();
    let said = cli.say("");
    assert!(said.starts_with("Obtaining JSON from switch...\nDone\nControl utility"), "{said}");
    cli.expect(&[
        (
            "show_tables",
            &["I.acl ", "[implementation=I.paths, mk=hdr.ipv4.dst(exact, 32)", "hdr.ipv4.dst(lpm, 32)"],
        ),
        ("show_actions", &["I.to ", "[dst(48),\tport(9)]"]),
        (
            "table_add routes to 10.0.1.1/32 => 08:00:00:00:01:11 1",
            &[
                "Adding entry to lpm match table routes",
                "match key:           LPM-0a:00:01:01/32",
                "action:              I.to",
                "runtime data:        08:00:00:00:01:11\t00:01",
                "Entry has been added with handle 0",
            ],
        ),
        ("table_add I.routes I.copy 10.0.2.0/24 => 7", &["Entry has been added with handle 1"]),
        (
            "table_add routes to 10.0.1.1/32 => 08:00:00:00:01:11 1",
            &["Invalid table operation (DUPLICATE_ENTRY)"],
        ),
        (
            "table_dump I.routes",
            &[
                "Dumping entry 0x1",
                "LPM       0a000200/24",
                "Action entry: I.copy - 0007",
                "Action entry: I.drop - ",
            ],
        ),
        ("table_modify routes drop 1", &["Modifying entry 1 for lpm match table routes"]),
        ("table_dump_entry routes 1", &["Action entry: I.drop - "]),
        ("table_dump_entry_from_key routes 10.0.1.1/32", &["Dumping entry 0x0"]),
        ("table_delete routes 1", &["Deleting entry 1 from routes"]),
        ("table_delete routes 1", &["INVALID_HANDLE"]),
        ("table_num_entries routes", &["1\n"]),
        (
            "table_set_default routes to 1 2",
            &["Setting default action of routes", "runtime data:        00:00:00:00:00:01\t00:02"],
        ),
        ("table_reset_default routes", &[""]),
        (
            "table_add acl refuse 10.0.0.0&&&0xff000000 1->17 => 5",
            &["range match table", "TERNARY-0a:00:00:00 &&& ff:00:00:00\tRANGE-01 -> 11", "handle 0"],
        ),
        ("table_dump acl", &["Priority: 5", "I.refuse"]),
        ("table_add routes to 10.0.1.1 => 1 1", &["Invalid match key", "`/`"]),
        ("table_add routes to 10.0.1.2/32 => 1", &["Error: Action I.to needs 2 parameters"]),
        ("table_add routes refuse 10.0.1.2/32 =>", &["Error: Table I.routes has no action refuse"]),
        ("table_add route to 10.0.1.2/32 => 1 1", &["Error: Invalid table name (route)"]),
        ("table_add routes to 10.0.1.2/32 1 1", &["`=>`"]),
        ("table_ad routes", &["Unknown syntax: table_ad", "did you mean table_add?"]),
        ("port_add veth9 9", &["port_add is not supported"]),
        ("table_clear acl", &[""]),
        ("table_num_entries acl", &["0\n"]),
    ]);
    // Handles outlive a client, and other clients' entries get one.
    let insert =
        ["table", "insert", "I.routes", "hdr.ipv4.dst=10.0.9.0/24", "--action", "I.drop", "--device-id", "0"];
    let done = p4rack().args(insert).args(["--grpc-addr", &cli.grpc]).output().expect("it starts");
    assert!(done.status.success(), "{}", stderr(&done));
    cli.expect(&[
        ("table_dump routes", &["Dumping entry 0x0", "Dumping entry 0x2", "0a000900/24"]),
        ("table_delete routes 2", &["Deleting entry 2 from routes\n"]),
        ("reset_state", &[""]),
        ("table_num_entries routes", &["0\n"]),
        ("table_add routes drop 10.0.1.1/32 =>", &["handle 0"]),
    ]);
    let log = fs::read_to_string(cli.installed.path("log.txt")).expect("the log");
    assert!(log.contains("--nanolog has no effect") && log.contains("ready"), "{log}");
}

#[test]
fn cells_groups_sessions_and_value_sets_are_changed() {
    let cli = Cli::new();
    cli.expect(&[
        ("counter_write seen 3 5 500", &["seen[3] has been updated"]),
        ("counter_read I.seen 3", &["I.seen[3]= (500 bytes, 5 packets)"]),
        ("counter_reset seen", &[""]),
        ("counter_read seen 3", &["seen[3]= (0 bytes, 0 packets)"]),
        ("counter_read seen 8", &["Invalid counter operation (INVALID_INDEX): ", "index 8"]),
        ("register_write last 2 77", &[""]),
        ("register_read last 2", &["last[2]= 77"]),
        ("register_read last", &["last= 0, 0, 77, 0"]),
        ("register_reset last", &[""]),
        ("register_read last 2", &["last[2]= 0"]),
        ("meter_set_rates rates 1 0.5:100 1:200", &[""]),
        (
            "meter_get_rates rates 1",
            &["0: info rate = 0.5, burst size = 100", "1: info rate = 1.0, burst size = 200"],
        ),
        ("meter_array_set_rates rates 2:1 3:1", &[""]),
        ("meter_get_rates rates 0", &["0: info rate = 2.0"]),
        ("meter_set_rates rates 1 0.5:100", &["Invalid number of rates"]),
        ("mc_mgrp_create 7", &["Creating multicast group 7"]),
        ("mc_node_create 0 1 2", &["port map 110", "node was created with handle 0"]),
        ("mc_node_create 5 3", &["handle 1"]),
        ("mc_node_associate 7 0", &["Associating node 0 to multicast group 7"]),
        ("mc_node_associate 7 1", &[""]),
        ("mc_dump", &["mgrp(7)", "-> (L1h=0, rid=0) -> (ports=[1, 2], lags=[])", "(L1h=1, rid=5)"]),
        ("mc_node_update 1 4", &[""]),
        ("mc_node_dissociate 7 0", &[""]),
        ("mc_dump", &["(L1h=1, rid=5) -> (ports=[4], lags=[])"]),
        ("mc_node_associate 9 0", &["Invalid PRE operation (INVALID_MGID)"]),
        ("mc_node_create 0 1 | 2", &["lags are not supported"]),
        ("mirroring_add 5 2", &[""]),
        ("mirroring_add 5 3", &[""]),
        ("mirroring_get 5", &["MirroringSessionConfig(port=3, mgid=None)"]),
        ("mirroring_delete 5", &[""]),
        ("mirroring_get 5", &["SESSION_NOT_FOUND"]),
        ("pvs_add ip_types 0x800", &[""]),
        ("pvs_add ip_types 0x801", &[""]),
        ("pvs_remove ip_types 0x801", &[""]),
        ("pvs_get ip_types", &["0800\n"]),
        ("act_prof_create_member paths to 1 2", &["Member has been created with handle 0"]),
        ("table_indirect_create_member spread to 1 3", &["Member has been created with handle 1"]),
        ("act_prof_create_group paths", &["Group has been created with handle 0"]),
        ("act_prof_add_member_to_group paths 0 0", &[""]),
        ("act_prof_add_member_to_group paths 1 0", &[""]),
        ("table_indirect_add_with_group spread 10.0.2.2 => 0", &["Entry has been added with handle 0"]),
        ("table_indirect_add spread 10.0.2.3 => 1", &["Entry has been added with handle 1"]),
        (
            "table_dump spread",
            &["Index: group(0)", "Index: member(1)", "Members: [0, 1]", "Dumping member 1"],
        ),
        ("act_prof_delete_member paths 7", &["INVALID_MBR_HANDLE"]),
        ("switch_info", &["device_id", ": 0"]),
        ("show_ports", &["port #"]),
        ("help table_add", &["table_add TABLE ACTION"]),
        ("# a comment", &[""]),
        ("shell echo from a shell", &["from a shell"]),
        ("load_new_config_file nowhere.json", &["Error: nowhere.json"]),
        ("load_new_config_file build/compat.json", &["Loading new Json config"]),
        ("swap_configs", &["Swapping configs"]),
        ("swap_configs", &["NO_ONGOING_SWAP"]),
        ("write_config_to_file again.json", &[""]),
    ]);
    let (json, again) = (cli.installed.path("build/compat.json"), cli.installed.path("again.json"));
    assert_eq!(fs::read(json).expect("the JSON"), fs::read(again).expect("the JSON"));
    // Neither a browser's request nor a line without a greeting is answered.
    let mut stream = std::net::TcpStream::connect(format!("127.0.0.1:{}", cli.thrift)).expect("it listens");
    let _ = stream.write_all(b"POST / HTTP/1.1\r\n\r\nreset_state\n");
    let mut answer = Vec::new();
    let _ = std::io::Read::read_to_end(&mut stream, &mut answer);
    assert!(answer.is_empty(), "{answer:?}");
}

/// Runs a shell's script where the commands come first on PATH, in a network of its own.
fn in_network(installed: &Installed, script: &str) -> Output {
    let path = format!("{}:{}", installed.path("bin").display(), std::env::var("PATH").unwrap_or_default());
    let root = Command::new("unshare").args(["--net", "true"]).status().is_ok_and(|status| status.success());
    let own: &[&str] = if root { &["--net"] } else { &["-Urn"] };
    let mut command = Command::new("unshare");
    command.args(own).args(["sh", "-ec", script]).env("PATH", path).current_dir(installed.folder.path());
    command.stdin(Stdio::null()).output().expect("unshare starts")
}

fn frames(capture: &Path) -> u64 {
    // A header of 24 bytes precedes the frames.
    fs::metadata(capture).map_or(0, |meta| meta.len().saturating_sub(24))
}

#[test]
fn a_script_for_bmv2_runs_unchanged() {
    if !can_make_namespaces()
        || !have("ip", "iproute2")
        || !have("ping", "iputils-ping")
        || !have("tc", "iproute2")
    {
        return;
    }
    let installed = Installed::new();
    fs::copy(repo("cli/tests/compat.p4"), installed.path("compat.p4")).expect("a copy");
    let commands = "pvs_add ip_types 0x0800\nset_queue_rate 1000 2\nset_queue_depth 64 2\nshow_ports\n\
        table_add routes to 10.0.2.0/24 => 02:00:00:00:00:02 2\n";
    fs::write(installed.path("commands.txt"), commands).expect("a file");
    let done = in_network(
        &installed,
        "
        ip link set lo up
        for n in 1 2; do ip link add veth$n type veth peer name host$n; ip link set host$n up; done
        tc qdisc add dev veth2 root handle 5:0 htb default 1
        tc class add dev veth2 parent 5:0 classid 5:1 htb rate 10Mbit burst 15k
        p4c --target bmv2 --arch v1model --std p4-16 compat.p4 -o build
        mkdir pcaps
        simple_switch -i 1@veth1 -i 2@veth2 --pcap=pcaps --log-console --thrift-port 9099 build/compat.json >log 2>&1 &
        switch=$!
        for n in $(seq 600); do if grep -q ready log; then break; fi; sleep 0.1; done
        simple_switch_CLI --thrift-port 9099 <commands.txt
        ip address add 10.0.1.1/24 dev host1
        ip route add 10.0.2.0/24 dev host1
        ip neighbour add 10.0.2.2 lladdr 02:00:00:00:00:09 dev host1
        ping -c 3 -i 0.2 -W 1 10.0.2.2 || true
        echo 'counter_read seen 1
        register_read last 1
        register_read last 2
        get_time_elapsed' | simple_switch_CLI --thrift-port 9099
        kill $switch; wait $switch
        cat log
        ",
    );
    let said = stdout(&done);
    assert!(done.status.success(), "{said}{}", stderr(&done));
    assert!(said.contains("Entry has been added with handle 0") && !said.contains("Error"), "{said}");
    assert!(said.contains("seen[1]= (294 bytes, 3 packets)"), "{said}");
    assert!(said.contains("last[1]= 167772417"), "{said}");
    // Timestamps begin with the switch.
    let times = said.split("last[2]= ").nth(1).unwrap_or_default();
    let mut times = times.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse::<u64>().ok());
    let (Some(arrived), Some(elapsed_us)) = (times.next(), times.next()) else { panic!("{said}") };
    assert!(arrived > 0 && arrived <= elapsed_us / 1024, "{arrived} * 1024 us, {elapsed_us} us");
    assert!(said.contains("veth1") && said.contains("UP"), "{said}");
    // tc's rate is the port's.
    assert!(said.contains("rate_bps=10000000"), "{said}");
    let captured = frames(&installed.path("pcaps/veth2_out.pcap"));
    assert_eq!(captured, 3 * (16 + 98), "three pings leave by port 2");
}
