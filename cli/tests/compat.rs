//! `p4rack compat`: p4c's and BMv2's commands, with their options and output.

mod common;

use common::compat::Installed;
use common::{can_make_namespaces, have, p4rack, repo, stderr, stdout};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};

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
        (&["-E"], "start `p4c` with them"),
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
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("bound").port().to_string();
    fs::write(installed.path("x.json"), "{\"a\": 1}").expect("a file");
    for (name, words, said) in [
        (
            "simple_switch",
            &["--no-p4", "--enable-swap"][..],
            "tip: --enable-swap is an option of the target: give it after `--`, as in `simple_switch FILE -- --enable-swap",
        ),
        (
            "simple_switch_grpc",
            &["x.json", "--grpc-server-addr", "127.0.0.1:1"],
            "as in `simple_switch_grpc FILE -- --grpc-server-addr",
        ),
        (
            "simple_switch_grpc",
            &["--no-p4", "--", "--log-console"],
            "--log-console is no option of the target",
        ),
        ("simple_switch", &["x.json", "--use-files", "1"], "--use-files is not supported: `p4rack p4 run"),
        ("simple_switch", &["x.json", "--packet-in", "ipc:///x"], "--packet-in is not supported"),
        ("simple_switch", &["--restore-state=x", "x.json"], "--restore-state is not supported"),
        ("simple_switch", &["x.json", "--debugger"], "--debugger is not supported"),
        ("simple_switch", &["x.json", "--", "--load-modules", "x.so"], "--load-modules is not supported"),
        ("simple_switch", &["x.json", "--", "--disable-swap"], "simple_switch_grpc has"),
        ("simple_switch_grpc", &["x.json", "--", "--grpc-server-ssl"], "--grpc-server-ssl is not supported"),
        (
            "simple_switch_grpc",
            &["x.json", "--", "--grpc-server-key", "k.pem"],
            "--grpc-server-ssl is not supported",
        ),
        (
            "p4c",
            &["--toJSON", "x", "y.p4"],
            "`p4c --help` lists the options that are there; leave --toJSON out",
        ),
        ("simple_switch", &["--no-p4", "--", "--grpc-server-addr", "127.0.0.1:1"], "simple_switch_grpc has"),
        ("simple_switch", &[], "please specify an input JSON configuration file"),
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
            !done.status.success() && stderr(&done).contains(said) && !stderr(&done).contains("as a value"),
            "{name} {words:?}: {}",
            stderr(&done)
        );
    }
    // Taken: these end by themselves, or because the program is none.
    let version = installed.run("simple_switch", &["--json-version"]);
    assert!(version.status.success() && stdout(&version) == "2.23\n", "{}", stdout(&version));
    assert!(installed.run("simple_switch_grpc", &["-v"]).status.success());
    let general =
        ["--max-port-count", "8", "--log-file-max-size", "1000", "--log-file-max-files", "2", "x.json"];
    let target =
        ["--", "--disable-swap", "--max-mc-groups", "1", "--max-l1-entries=1", "--max-l2-entries", "1"];
    let done = installed.run("simple_switch_grpc", &[&general[..], &target].concat());
    let said = stderr(&done);
    for word in ["--log-file-max-size", "--disable-swap", "--max-mc-groups", "x.json: at"] {
        assert!(said.contains(word), "{word}: {said}");
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
        ip route add 10.0.9.0/24 dev host1
        ip neighbour add 10.0.9.9 lladdr 02:00:00:00:00:09 dev host1
        ping -c 1 -W 1 10.0.9.9 || true
        for n in $(seq 600); do if grep -q \"routes': miss\" log; then break; fi; sleep 0.1; done
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
    logged(
        &said,
        "Table 'I.routes': hit",
        &[
            "[D] Processing packet received on port 1",
            "[D] Parser 'parser': start",
            "[D] Parser 'parser' entering state 'ipv4'",
            "[T] Bytes parsed: 34",
            "[D] Parser 'parser': end",
            "[D] Pipeline 'ingress': start",
            "[T] Updated counter 'I.seen' at index 1",
            "[T] Wrote register 'I.last' at index 1 with value 167772417",
            "[T] Applying table 'I.routes'",
            "[D] Looking up key:\n* hdr.ipv4.dst        : 0a000202\n\n",
            "[D] Dumping entry\nMatch key:\n* hdr.ipv4.dst        : LPM       0a000200/24\n\
             Action entry: I.to - 20000000002,2,\n\n",
            "[D] Action entry is I.to - 20000000002,2,",
            "[T] Action I.to",
            "[D] Table 'I.acl': miss",
            "[D] Pipeline 'ingress': end",
            "[D] Egress port is 2",
            "[D] Pipeline 'egress': start",
            "[D] Pipeline 'egress': end",
            "[D] Deparsing header 'ethernet'",
            "[D] Deparsing header 'ipv4'",
            "[D] Transmitting packet of size 98 out of port 2",
        ],
    );
    logged(
        &said,
        "Table 'I.routes': miss",
        &[
            "[D] Looking up key:\n* hdr.ipv4.dst        : 0a000909\n\n",
            "[D] Action entry is I.drop - \n",
            "[T] Primitive mark_to_drop",
            "[D] Pipeline 'ingress': end",
            "[D] Egress port is 511",
            "[D] Dropping packet at the end of ingress",
        ],
    );
}

/// The log of the first packet with a line says this, in this order.
fn logged(log: &str, line: &str, expected: &[&str]) {
    let at = log.lines().find(|found| found.ends_with(line)).unwrap_or_else(|| panic!("{line}: {log}"));
    let number = at.split("] [").nth(4).unwrap_or_default();
    // Every line of a packet begins with a time; those of others may be in between.
    let parts = log.split("\n[").filter(|part| part.contains(&format!("[{number}] [cxt 0]")));
    let said: String = parts
        .map(|part| {
            let sign = part.split("] [").nth(2).unwrap_or_default();
            format!("[{sign}] {}\n", part.split_once("[cxt 0] ").map_or("", |(_, what)| what))
        })
        .collect();
    let mut rest = said.as_str();
    for wanted in expected {
        let (_, after) =
            rest.split_once(wanted).unwrap_or_else(|| panic!("`{wanted}` in this order: {said}"));
        rest = after;
    }
}
