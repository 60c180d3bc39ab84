//! `simple_switch_CLI`: its commands, and its connection to the switch.

mod common;

use common::compat::{Cli, Installed, port};
use common::switch::free_addr;
use common::{p4rack, repo, stderr, stdout, wait_until};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

/// How long something may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

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
        ("table_dump routes", &["Dumping default entry\nAction entry: I.to - 000000000001, 0002\n"]),
        ("table_reset_default routes", &[""]),
        ("table_dump routes", &["Dumping default entry\nAction entry: I.drop - \n"]),
        (
            "table_add acl refuse 10.0.0.0&&&0xff000000 1->17 => 5",
            &["range match table", "TERNARY-0a:00:00:00 &&& ff:00:00:00\tRANGE-01 -> 11", "handle 0"],
        ),
        ("table_dump acl", &["Priority: 5", "I.refuse"]),
        // An entry keeps the rates of its meter.
        ("meter_set_rates pace 0 0.5:100 1:200", &[""]),
        ("table_modify acl permit 0", &["Modifying entry 0"]),
        ("meter_get_rates pace 0", &["0: info rate = 0.5, burst size = 100"]),
        ("table_set_timeout acl 0 60000", &["Setting a 60000 ms timeout"]),
        ("meter_get_rates pace 0", &["1: info rate = 1.0, burst size = 200"]),
        ("table_dump_entry acl 0", &["I.permit", "timeout is 60000ms"]),
        ("table_add routes to 10.0.1.1 => 1 1", &["Invalid match key", "`/`"]),
        ("table_add routes to 10.0.1.2/32 => 1", &["Error: Action I.to needs 2 parameters"]),
        (
            "table_add routes refuse 10.0.1.2/32 =>",
            &["Error: Table I.routes has no action refuse; there are: "],
        ),
        (
            "table_add route to 10.0.1.2/32 => 1 1",
            &["Error: Invalid table name (route); did you mean I.routes?"],
        ),
        (
            "table_add spread to 10.0.2.2 => 1 1",
            &["(WRONG_TABLE_TYPE): entries of I.spread have members", "table_indirect_add"],
        ),
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
    for line in ["--nanolog has no effect", "--priority-queues has no effect", "ready"] {
        assert!(log.contains(line), "{log}");
    }
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
        ("counter_read hit 0", &["Invalid counter name (hit); did you mean I.hits?"]),
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
        ("mc_node_associate 7 1", &["Associating node 1 to multicast group 7"]),
        ("mc_dump", &["mgrp(7)", "-> (L1h=0, rid=0) -> (ports=[1, 2], lags=[])", "(L1h=1, rid=5)"]),
        ("mc_node_update 1 4", &["Updating node 1 with port map 10000"]),
        ("mc_node_dissociate 7 0", &["Dissociating node 0 from multicast group 7"]),
        ("mc_dump", &["mgrp(7)\n  -> (L1h=1, rid=5) -> (ports=[4], lags=[])\n======"]),
        ("mc_node_create 0 511", &["node was created with handle 2"]),
        ("mc_node_create 0 512", &["Error: '512' is not a valid port number"]),
        ("mc_node_create 0 4294967294", &["'4294967294' is not a valid port number"]),
        ("mc_node_update 1 4294967295", &["'4294967295' is not a valid port number"]),
        ("mc_node_associate 9 0", &["Invalid PRE operation (INVALID_MGRP_HANDLE)"]),
        ("mc_node_create 0 1 | 2", &["lags are not supported"]),
        ("mirroring_add 5 2", &[""]),
        ("mirroring_get 5", &["MirroringSessionConfig(port=2, mgid=None)"]),
        ("mirroring_add 5 512", &["'512' is not a valid port number"]),
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
        ("load_new_config_file nowhere.json", &["Error: Not a valid filename: nowhere.json"]),
        ("load_new_config_file build/compat.json", &["Loading new Json config"]),
        ("swap_configs", &["Swapping configs"]),
        ("swap_configs", &["NO_ONGOING_SWAP"]),
        ("write_config_to_file again.json", &[""]),
    ]);
    let (json, again) = (cli.installed.path("build/compat.json"), cli.installed.path("again.json"));
    assert_eq!(fs::read(json).expect("the JSON"), fs::read(again).expect("the JSON"));
    // A program that the switch refuses stays loaded.
    let text = fs::read_to_string(repo("cli/tests/compat.p4")).expect("the program");
    let large = text
        .replace(
            "register<bit<32>>(4) last",
            "register<bit<128>>(16777216) large;\n    register<bit<32>>(4) last",
        )
        .replace("last.write(1, hdr.ipv4.src);", "last.write(1, hdr.ipv4.src); large.write(0, 1);");
    fs::write(cli.installed.path("large.p4"), large).expect("a file");
    let done = cli.installed.run("p4c", &["-b", "bmv2", "large.p4"]);
    assert!(done.status.success(), "{}", stderr(&done));
    cli.expect(&[
        ("load_new_config_file large.json", &["Loading new Json config"]),
        ("swap_configs", &["33554432", "make it smaller"]),
        ("swap_configs", &["33554432", "make it smaller"]),
        ("table_num_entries routes", &["0\n"]),
    ]);
}

/// The words are those of BMv2 1.15.5 and its simple_switch_CLI for the same lines.
#[test]
fn refusals_have_bmv2s_names() {
    let cli = Cli::new();
    let table = |name: &str| format!("Invalid table operation ({name}): ");
    let refusals = [
        ("table_set_default fixed drop", table("DEFAULT_ENTRY_IS_CONST")),
        ("table_add fixed drop 1 =>", table("IMMUTABLE_TABLE_ENTRIES")),
        ("table_delete fixed 0", table("IMMUTABLE_TABLE_ENTRIES")),
        ("table_add keyless drop =>", table("NO_TABLE_KEY")),
        ("table_add tiny drop 1 =>", "Entry has been added with handle 0".to_owned()),
        ("table_add tiny drop 1 =>", table("DUPLICATE_ENTRY")),
        ("table_add tiny drop 2 =>", table("TABLE_FULL")),
        ("table_dump_entry tiny 9", table("INVALID_HANDLE")),
        ("table_dump_entry_from_key tiny 9", table("BAD_MATCH_KEY")),
        ("table_modify spread to 0 1 2", table("WRONG_TABLE_TYPE")),
        ("table_delete spread 0", table("WRONG_TABLE_TYPE")),
        ("table_set_timeout tiny 0 100", "Error: Table tiny does not support entry timeouts".to_owned()),
        ("table_indirect_delete routes 0", "Error: Cannot run this command on non-indirect table".to_owned()),
        ("table_indirect_reset_default routes", table("WRONG_TABLE_TYPE")),
        ("table_indirect_add spread 1.1.1.1 => 7", table("INVALID_MBR_HANDLE")),
        ("table_indirect_add_with_group spread 1.1.1.1 => 7", table("INVALID_GRP_HANDLE")),
        ("table_indirect_add spread 1.1.1.1", "Error: Invalid arguments, could not find handle".to_owned()),
        ("act_prof_create_group paths", "Group has been created with handle 0".to_owned()),
        ("table_indirect_add_with_group spread 1.1.1.1 => 0", table("EMPTY_GRP")),
        ("act_prof_create_member paths to 1 1", "Member has been created with handle 0".to_owned()),
        ("act_prof_remove_member_from_group paths 0 0", table("MBR_NOT_IN_GRP")),
        ("act_prof_add_member_to_group paths 0 0", String::new()),
        ("act_prof_add_member_to_group paths 0 0", table("MBR_ALREADY_IN_GRP")),
        ("act_prof_delete_member paths 0", table("MBR_STILL_USED")),
        ("table_indirect_add_with_group spread 1.1.1.1 => 0", "added with handle 0".to_owned()),
        ("act_prof_delete_group paths 0", table("GRP_STILL_USED")),
        ("meter_set_rates rates 1 2:1 1:1", "Invalid meter operation (INVALID_INFO_RATE_VALUE): ".to_owned()),
        ("meter_set_rates rates 9 1:1 2:1", "Invalid meter operation (INVALID_INDEX): ".to_owned()),
        ("mc_mgrp_destroy 44", "Invalid PRE operation (INVALID_MGRP_HANDLE): ".to_owned()),
        ("mirroring_delete 44", "Invalid mirroring operation (SESSION_NOT_FOUND): ".to_owned()),
        ("register_write last 1 x", "Error: Bad format for value, must be an integer: ".to_owned()),
        ("help nope", "*** No help on nope".to_owned()),
        (
            "load_new_config_file bin/p4c",
            "Loading new Json config\nError: Not a valid JSON file: ".to_owned(),
        ),
    ];
    for (line, word) in &refusals {
        cli.expect(&[(line, &[word])]);
    }
}

#[test]
fn arguments_are_counted_as_bmv2_counts_them() {
    let cli = Cli::new();
    let wrong = |expected: usize, got: usize| {
        format!("Error: Wrong number of args, expected {expected} but got {got}\n")
    };
    let few = || "Error: Insufficient number of args\n".to_owned();
    for (line, word) in [
        ("load_new_config_file", wrong(1, 0)),
        ("load_new_config_file a b", wrong(1, 2)),
        ("write_config_to_file", wrong(1, 0)),
        ("show_tables x", wrong(0, 1)),
        ("table_info", wrong(1, 0)),
        ("table_info routes x", wrong(1, 2)),
        ("table_clear", wrong(1, 0)),
        ("table_delete routes", wrong(2, 1)),
        ("table_delete routes 0 0", wrong(2, 3)),
        ("table_set_timeout acl 0", wrong(3, 2)),
        ("table_add routes to", few()),
        ("table_set_default routes", few()),
        ("table_modify routes to", few()),
        ("table_indirect_add spread", few()),
        ("table_indirect_create_group spread x", wrong(1, 2)),
        ("act_prof_create_member paths", few()),
        ("act_prof_add_member_to_group paths 0", wrong(3, 2)),
        ("counter_read seen", wrong(2, 1)),
        ("counter_write seen 1 2", wrong(4, 3)),
        ("register_read", few()),
        ("register_read last 1 2", wrong(2, 3)),
        ("meter_set_rates rates", few()),
        ("mc_node_create", few()),
        ("mc_node_update 0", few()),
        ("mc_node_associate 1", wrong(2, 1)),
        ("mirroring_add 5", wrong(2, 1)),
        ("pvs_add", wrong(2, 0)),
        ("set_queue_rate", few()),
    ] {
        cli.expect(&[(line, &[&word])]);
    }
}

/// Microseconds since 1970.
fn now_us() -> u128 {
    SystemTime::UNIX_EPOCH.elapsed().expect("a clock after 1970").as_micros()
}

#[test]
fn times_are_counted_from_the_start_and_from_1970() {
    let cli = Cli::new();
    let time_us = |command: &str| -> u128 {
        let said = cli.say(command);
        let answer = said.split("RuntimeCmd: ").nth(1).unwrap_or_default();
        answer.trim().parse().unwrap_or_else(|_| panic!("{said}"))
    };
    let before = now_us();
    let since_us = time_us("get_time_since_epoch");
    assert!((before..=now_us()).contains(&since_us), "{since_us}");
    assert!(time_us("get_time_elapsed") < before / 2);
}

/// A client that sends this as its first line; what it gets back before the switch waits or closes.
fn stranger(cli: &Cli, first: &[u8]) -> (TcpStream, String) {
    let mut stream =
        TcpStream::connect(("127.0.0.1", cli.thrift.parse::<u16>().expect("a port"))).expect("it listens");
    let _ = stream.write_all(first);
    let mut answer = String::new();
    let _ = BufReader::new(&stream).read_line(&mut answer);
    (stream, answer)
}

#[test]
fn only_clients_with_a_greeting_are_served_and_not_too_many() {
    let cli = Cli::new();
    // Neither a browser's request nor a line without a greeting is answered.
    for first in [&b"POST / HTTP/1.1\r\n\r\nreset_state\n"[..], &[b'x'; 65]] {
        let (_, answer) = stranger(&cli, first);
        assert!(answer.is_empty(), "{answer}");
    }
    let mut clients: Vec<TcpStream> = Vec::new();
    for _ in 0..16 {
        let (stream, answer) = stranger(&cli, b"p4rack simple_switch_CLI 1\n");
        assert!(answer.contains("\"output\":\"\""), "{answer}");
        clients.push(stream);
    }
    let thrift = ["--thrift-port", cli.thrift.as_str()];
    let done = cli.installed.run("simple_switch_CLI", &thrift);
    assert!(!done.status.success() && stderr(&done).contains("too many clients"), "{}", stderr(&done));
    // One leaves, and its place is free as soon as the switch sees that.
    drop(clients.pop());
    let is_served = || cli.installed.run("simple_switch_CLI", &thrift).status.success();
    assert!(wait_until(LIMIT, is_served));
}

#[test]
fn a_client_waits_for_a_switch_that_starts() {
    let installed = Installed::new();
    let addr = free_addr();
    let mut command = installed.command("simple_switch_CLI");
    command.args(["--thrift-port", port(&addr)]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut client = command.spawn().expect("it starts");
    let mut told = String::new();
    let _ = BufReader::new(client.stderr.take().expect("a pipe")).read_line(&mut told);
    assert!(told.contains(&format!("waiting up to 10 s for a switch at {addr}")), "{told}");
    let listener = TcpListener::bind(&addr).expect("its port is free");
    listener.set_nonblocking(true).expect("ours");
    let mut accepted = None;
    assert!(wait_until(LIMIT, || {
        accepted = listener.accept().ok();
        accepted.is_some()
    }));
    let (mut stream, _) = accepted.expect("it has come");
    writeln!(stream, "{{\"output\": \"\"}}").expect("it reads");
    let output = client.wait_with_output().expect("ours");
    assert!(output.status.success() && stdout(&output).contains("Obtaining JSON"), "{}", stdout(&output));
}
