//! `p4rack p4 install` and `switch run --entries --watch`: programs on running switches, once and after saves.

mod common;

use common::install::{ENTRIES, Files, LIMIT, PROGRAM, entries, replace, report, with_a_forbidden_one};
use common::switch::{Running, fine, free_addr, run, switch, switch_with};
use common::{p4rack, repo, stderr, stdout, wait_until};
use p4rack_ctrl::{ConnectOptions, Session};
use p4rack_p4rt::bytes;
use p4rack_p4rt::p4::v1::{PacketMetadata, PacketOut};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[test]
fn entries_that_fit_survive_another_program_between_two_packets() {
    let (files, addr) = (Files::new(), free_addr());
    let _switch = switch(&addr, &[]);
    let first = report(&addr, &[&files.path("t.p4"), "--entries", &files.path("t.entries")]);
    assert_eq!((&first["installed"], &first["inserted"]), (&"first program".into(), &2.into()), "{first}");
    // What others write stays, too.
    fine(&addr, &["table", "insert", "forward", "dst=02:00:00:00:00:03", "--action", "to", "port=3"]);
    fine(&addr, &["group", "insert", "--profile", "ways", "--member", "7", "--action", "to", "port=4"]);
    fine(&addr, &["table", "insert", "spread", "src=02:00:00:00:00:09", "--member", "7"]);
    fine(&addr, &["group", "insert", "--multicast", "5", "1", "2"]);
    fine(&addr, &["group", "insert", "--clone", "6", "3"]);
    fine(&addr, &["counter", "write", "seen", "--index", "2", "--packets", "4711"]);
    let next = files.with("next.p4", "h.in_.mark = 1;", "h.in_.mark = 2;");
    let second = report(&addr, &[&next]);
    assert_eq!(
        (&second["installed"], &second["kept"]),
        (&"between two packets".into(), &7.into()),
        "{second}"
    );
    assert_eq!((&second["dropped"], &second["gap_ms"]), (&Value::Array(vec![]), &Value::Null), "{second}");
    assert_eq!(entries(&addr).len(), 4);
    let groups = fine(&addr, &["group", "read"]);
    assert!(groups.contains('5') && groups.contains('6') && groups.contains('7'), "{groups}");
    assert!(fine(&addr, &["counter", "read", "seen"]).contains("4711"));
    // Once more, the program is the same; a file says what else should be there.
    let fewer = files.write("more.entries", "forward dst=02:00:00:00:00:01 --action to port=9\n");
    let third = report(&addr, &[&next, "--entries", &fewer]);
    assert_eq!(
        (&third["installed"], &third["modified"], &third["deleted"]),
        (&"same program".into(), &1.into(), &0.into())
    );
    let said = fine(&addr, &["p4", "install", &next, "--entries", &fewer]);
    assert!(said.contains("runs already, nothing to change, 6 entries kept"), "{said}");
    let cleared = report(&addr, &[&next, "--entries", &fewer, "--clear"]);
    assert_eq!((&cleared["kept"], &cleared["deleted"]), (&0.into(), &6.into()), "{cleared}");
    assert_eq!(entries(&addr).len(), 1);
    // A default entry that the program has anyway, and one that it gets back.
    let default = files.write("default.entries", "forward --default --action lost\n");
    let same = report(&addr, &[&next, "--entries", &default]);
    assert_eq!((&same["modified"], &same["kept"]), (&0.into(), &1.into()), "{same}");
    fine(&addr, &["table", "modify", "forward", "--default", "--action", "to", "port=5"]);
    let back = report(&addr, &[&next, "--entries", &default]);
    assert_eq!((&back["modified"], &back["kept"]), (&1.into(), &1.into()), "{back}");
    assert_eq!(report(&addr, &[&next, "--entries", &default])["modified"], 0);
}

#[test]
fn entries_that_do_not_fit_are_named_and_the_others_written_again() {
    let (files, addr) = (Files::new(), free_addr());
    let _switch = switch(&addr, &[]);
    report(&addr, &[&files.path("t.p4"), "--entries", &files.path("t.entries")]);
    fine(&addr, &["table", "insert", "forward", "dst=02:00:00:00:00:03", "--action", "lost"]);
    let next = files.with("next.p4", "to(bit<9> port) { s.egress_spec", "to(bit<9> way) { s.egress_spec");
    let next = files.write("next.p4", &fs::read_to_string(next).unwrap().replace("= port;", "= way;"));
    let dry = run(&addr, &["p4", "install", &next, "--dry-run"]);
    assert_eq!(dry.status.code(), Some(1));
    assert!(stdout(&dry).contains("would be installed, 1 entries stay"), "{}", stdout(&dry));
    assert!(stdout(&dry).contains("action I.to has a parameter way now"), "{}", stdout(&dry));
    assert_eq!(entries(&addr).len(), 3, "nothing has changed");
    let said = fine(&addr, &["p4", "install", &next]);
    assert!(said.contains("1 entries kept") && said.contains("2 dropped"), "{said}");
    assert!(
        said.contains(
            "dropped table I.forward key h.e.dst=02:00:00:00:00:02: action I.to has a parameter way now"
        ),
        "{said}"
    );
    assert!(said.contains("not between two packets") && said.contains("entries were missing for"), "{said}");
    assert_eq!(entries(&addr).len(), 1);
    // A smaller table: the entries of the file come first, and those that have no room are dropped.
    let small =
        files.with("small.p4", "default_action = lost(); size = 64;", "default_action = lost(); size = 2;");
    let smaller = report(&addr, &[&small, "--entries", &files.path("t.entries")]);
    assert_eq!((&smaller["inserted"], &smaller["kept"]), (&2.into(), &0.into()), "{smaller}");
    assert_eq!(smaller["dropped"].as_array().map(Vec::len), Some(1), "{smaller}");
}

#[test]
fn what_fails_leaves_the_old_program_and_its_entries() {
    let (files, addr) = (Files::new(), free_addr());
    let _switch = switch(&addr, &[]);
    report(&addr, &[&files.path("t.p4"), "--entries", &files.path("t.entries")]);
    let before = (entries(&addr), fine(&addr, &["table", "list"]));
    let same = |said: &str| assert_eq!((entries(&addr), fine(&addr, &["table", "list"])), before, "{said}");
    let refused = |words: &[&str], expected: &[&str]| {
        let output = run(&addr, &[&["p4", "install"], words].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
        expected
            .iter()
            .for_each(|expected| assert!(said.contains(expected), "{words:?}: {expected}: {said}"));
        same(&said);
    };
    let wrong = files.with("wrong.p4", "s.egress_spec = port;", "s.egress_spec = prot;");
    refused(&[&wrong], &["prot", "wrong.p4:"]);
    // The switch refuses a group with a number that it doesn't have: with another program, and with the same.
    let forbidden = files.write("forbidden.entries", &with_a_forbidden_one());
    let whole = files.with("whole.p4", "h.in_.mark = 1;", "h.in_.mark = 2;");
    refused(
        &[&whole, "--entries", &forbidden],
        &["group 70000 is not within 1 to 65535", "has its old program and entries"],
    );
    let other = files.with("other.p4", "h.e.src: exact;", "h.e.kind: exact;");
    fine(&addr, &["group", "insert", "--profile", "ways", "--member", "7", "--action", "to", "port=4"]);
    fine(&addr, &["table", "insert", "spread", "src=02:00:00:00:00:09", "--member", "7"]);
    let before = (entries(&addr), fine(&addr, &["group", "read"]));
    let output = run(&addr, &["p4", "install", &other, "--entries", &forbidden]);
    assert!(stderr(&output).contains("the old program and its entries are back"), "{}", stderr(&output));
    assert_eq!((entries(&addr), fine(&addr, &["group", "read"])), before);
}

#[test]
fn bad_input_is_named_with_its_file_and_what_to_do() {
    let (files, addr) = (Files::new(), free_addr());
    let _switch = switch(&addr, &[]);
    let program = files.path("t.p4");
    let refused = |words: &[&str], code: i32, expected: &[&str]| {
        let output = p4rack().args(["p4", "install"]).args(words).output().expect("p4rack starts");
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        expected
            .iter()
            .for_each(|expected| assert!(said.contains(expected), "{words:?}: {expected}: {said}"));
    };
    let at = ["--grpc-addr", addr.as_str()];
    let others = files.write(
        "others.entries",
        "forward dst=02:00:00:00:00:01 --action to port=1\nroutes a=1 --action to port=1\n",
    );
    refused(
        &[&[program.as_str(), "--entries", &others], &at[..]].concat(),
        1,
        &["others.entries: line 2: there is no table `routes`"],
    );
    let empty = files.write("empty.entries", "# nothing yet\n");
    refused(
        &[&[program.as_str(), "--entries", &empty], &at[..]].concat(),
        1,
        &["empty.entries: has no entries", "leave --entries out"],
    );
    let absent = files.path("absent.entries");
    refused(
        &[&[program.as_str(), "--entries", &absent], &at[..]].concat(),
        1,
        &["absent.entries: No such file"],
    );
    refused(&[&[files.path("absent.p4").as_str()], &at[..]].concat(), 2, &["absent.p4: No such file"]);
    let rack = repo("examples/two-hosts.toml").display().to_string();
    refused(&[&[rack.as_str()], &at[..]].concat(), 2, &["is a rack description, not a P4 program"]);
    let info = files.path("other.p4info.txtpb");
    let pod = repo("examples/pod/route.p4").display().to_string();
    let made = p4rack().args(["p4", "info", &pod, "-o", &info]).status().expect("p4rack starts");
    assert!(made.success());
    refused(
        &[&[program.as_str(), "--p4info", &info], &at[..]].concat(),
        1,
        &["the P4Info is not this program's", "p4rack p4 info"],
    );
    refused(&[&[program.as_str(), "--device-id", "7"], &at[..]].concat(), 1, &["device 1, not device 7"]);
    let nowhere = free_addr();
    refused(&[&program, "--grpc-addr", &nowhere], 1, &[&nowhere, "p4rack switch run"]);
    let mut large = PROGRAM.to_owned();
    while large.len() <= 4 << 20 {
        large += "// A line without meaning, of which there are many, so that this text is longer than a switch takes it.\n";
    }
    let large = files.write("large.p4", &large);
    refused(&[&[large.as_str()], &at[..]].concat(), 1, &["4", "MiB"]);
    // Another controller is primary.
    report(&addr, &[&program]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let other = ConnectOptions { election_id: 9, ..ConnectOptions::new(addr.clone(), 1) };
    let primary = runtime.block_on(Session::connect(other)).expect("primary");
    refused(
        &[&[program.as_str()], &at[..]].concat(),
        1,
        &["has another primary, with election id 0,9", "--election-id"],
    );
    drop(primary);
}

#[test]
fn bmv2s_json_is_installed_like_the_text() {
    let (files, addr) = (Files::new(), free_addr());
    let _switch = switch(&addr, &[]);
    let (json, info) = (files.path("t.json"), files.path("t.p4info.txtpb"));
    let words = ["p4", "compile", &files.path("t.p4"), "-o", &json, "--p4info", &info];
    assert!(p4rack().args(words).status().expect("p4rack starts").success());
    let first = report(&addr, &[&json, "--p4info", &info, "--entries", &files.path("t.entries")]);
    assert_eq!(first["inserted"], 2, "{first}");
    // The same program as text keeps the entries; for BMv2, it is the JSON again.
    let text = report(&addr, &[&files.path("t.p4")]);
    assert_eq!((&text["installed"], &text["kept"]), (&"between two packets".into(), &2.into()), "{text}");
    let again = report(&addr, &[&files.path("t.p4"), "--to", "bmv2"]);
    assert_eq!((&again["installed"], &again["kept"]), (&"between two packets".into(), &2.into()), "{again}");
}

/// Waits until a read has this many entries.
fn has(addr: &str, count: usize) {
    assert!(wait_until(LIMIT, || entries(addr).len() == count), "{:?}", entries(addr));
}

#[test]
fn saves_are_installed_and_mistakes_leave_the_old_program() {
    let (files, addr) = (Files::new(), free_addr());
    let _switch = switch(&addr, &[]);
    // The constant is in a file of its own.
    files.write("mark.p4", "const bit<16> MARK = 1;\n");
    let text = PROGRAM
        .replace("header e_t", "#include \"mark.p4\"\nheader e_t")
        .replace("mark = 1;", "mark = MARK;");
    let program = files.write("t.p4", &text);
    let entries_file = files.path("t.entries");
    let words = ["p4", "install", &program, "--entries", &entries_file, "--watch", "--grpc-addr", &addr];
    let mut watches = Running::start(p4rack().args(words));
    watches.until("installed, 2 inserted");
    fine(&addr, &["table", "insert", "forward", "dst=02:00:00:00:00:0a", "--action", "to", "port=7"]);
    // The entries: one line goes, another comes; what others have written stays.
    fs::write(&entries_file, ENTRIES.replace(":02 --action", ":04 --action")).expect("a file");
    watches.until("1 inserted, 1 deleted");
    assert!(fine(&addr, &["table", "read"]).contains("02:00:00:00:00:0a"));
    // An included file, replaced.
    replace(&files.path("mark.p4"), "const bit<16> MARK = 2;\n");
    watches.until("installed between two packets, 1 entries kept");
    watches.until("ms after the save");
    // A mistake; then the program is right again, with another table.
    replace(&program, &text.replace("mark = MARK;", "mark = MARC;"));
    watches.until("error: ");
    assert_eq!(entries(&addr).len(), 3);
    fs::write(&entries_file, "forward dst=nonsense --action lost\n").expect("a file");
    replace(&program, &text.replace("h.e.src: exact;", "h.e.kind: exact;"));
    watches.until("t.entries: line 1");
    fs::write(&entries_file, ENTRIES).expect("a file");
    watches.until("installed");
    has(&addr, 3);
    assert!(fine(&addr, &["table", "list"]).contains("h.e.kind:16 exact"));
    assert!(watches.0.try_wait().expect("it is known").is_none());
}

#[test]
fn a_switch_that_is_gone_for_a_while_is_served_when_it_is_back() {
    let (files, addr) = (Files::new(), free_addr());
    let mut first = switch(&addr, &[]);
    let (program, entries_file) = (files.path("t.p4"), files.path("t.entries"));
    let words = ["p4", "install", &program, "--entries", &entries_file, "--watch", "--grpc-addr", &addr];
    let mut watches = Running::start(p4rack().args(words));
    watches.until("installed, 2 inserted");
    fine(&addr, &["table", "insert", "forward", "dst=02:00:00:00:00:0a", "--action", "to", "port=7"]);
    first.kill();
    // A save while it is gone.
    replace(&program, &PROGRAM.replace("mark = 1;", "mark = 2;"));
    watches.until("no P4Runtime server answers");
    let mut second = switch(&addr, &[]);
    watches.until("installed, 2 inserted");
    watches.until("the switch had no program any more: what others had written is gone");
    assert_eq!(entries(&addr).len(), 2);
    // A save after it has come back unnoticed.
    second.kill();
    let _third = switch(&addr, &[]);
    replace(&program, &PROGRAM.replace("mark = 1;", "mark = 3;"));
    watches.until("installed, 2 inserted");
    watches.until("what others had written is gone");
    assert_eq!(entries(&addr).len(), 2);
    fine(&addr, &["table", "insert", "forward", "dst=02:00:00:00:00:0a", "--action", "to", "port=7"]);
    replace(&program, &PROGRAM.replace("mark = 1;", "mark = 4;"));
    watches.until("installed between two packets, 1 entries kept");
}

#[test]
fn a_switch_starts_with_entries_and_watches_its_own_files() {
    let (files, addr) = (Files::new(), free_addr());
    let (program, entries_file) = (files.path("t.p4"), files.path("t.entries"));
    let mut switch = switch_with(&program, &addr, &["--entries", &entries_file, "--watch"]);
    assert_eq!(entries(&addr).len(), 2, "when it is ready, they are there");
    replace(&program, &PROGRAM.replace("mark = 1;", "mark = 2;"));
    switch.until("installed between two packets");
    fs::write(&entries_file, "forward dst=02:00:00:00:00:01 --action to port=1\n").expect("a file");
    switch.until("1 deleted");
    assert_eq!(entries(&addr).len(), 1);
    // A controller that has been primary with a higher id is no obstacle once it has gone.
    fine(
        &addr,
        &["table", "insert", "forward", "dst=02:00:00:00:00:0a", "--action", "lost", "--election-id", "0,77"],
    );
    replace(&program, &PROGRAM.replace("mark = 1;", "mark = 3;"));
    switch.until("installed between two packets, 1 entries kept");
}

#[test]
fn a_switch_whose_entries_are_wrong_does_not_start() {
    let files = Files::new();
    let start = |entries: &str| {
        let (program, entries) = (files.path("t.p4"), files.write("x.entries", entries));
        let words = ["switch", "run", &program, "--entries", &entries, "--grpc-server-addr", &free_addr()];
        let output = p4rack().args(words).output().expect("p4rack starts");
        assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
        stderr(&output)
    };
    let said = start("forward dst=02:00:00:00:00:01 --action two port=1\n");
    assert!(said.contains("x.entries: line 1: there is no action `two`"), "{said}");
    let said = start("# none\n");
    assert!(said.contains("x.entries: has no entries"), "{said}");
    let said = start(&format!("{ENTRIES}{ENTRIES}"));
    assert!(said.contains("x.entries: line 3: line 1 has the same key"), "{said}");
    let said = start(&with_a_forbidden_one());
    assert!(said.contains("multicast group 70000 is not within 1 to 65535"), "{said}");
}

#[test]
fn watching_needs_a_program_and_a_port() {
    let files = Files::new();
    let (program, entries) = (files.path("t.p4"), files.path("t.entries"));
    let refused = |words: &[&str], expected: &[&str]| {
        let output = p4rack().args(["switch", "run"]).args(words).output().expect("p4rack starts");
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        expected.iter().for_each(|part| assert!(said.contains(part), "{words:?}: {part}: {said}"));
    };
    refused(&["--no-p4", "--watch"], &["--no-p4", "--watch", "cannot be used with"]);
    refused(&["--no-p4", "--entries", &entries], &["--no-p4", "--entries", "cannot be used with"]);
    refused(
        &[&program, "--watch", "--grpc-server-addr", "127.0.0.1:0"],
        &["--watch needs the port", "127.0.0.1:0", "give a port"],
    );
}

/// Answers a packet of the controller with the program's mark, or 0 if table forward has no entry for it.
fn marks(mark: u16) -> String {
    let from = "h.in_.mark = 1;";
    assert!(PROGRAM.contains(from));
    PROGRAM
        .replace(from, &format!("h.in_.mark = forward.apply().hit ? 16w{mark} : 16w0;"))
        .replace("{ forward.apply(); spread.apply(); }", "{ spread.apply(); }")
}

/// Packets are sent one after the other, all the time: each is answered, by the old program or the new one, and with its entry.
#[test]
fn every_packet_during_a_save_is_forwarded_by_the_old_program_or_the_new_one() {
    let (files, addr) = (Files::new(), free_addr());
    let program = PathBuf::from(files.write("t.p4", &marks(1)));
    let entries_file = files.path("t.entries");
    let mut switch = switch_with(&files.path("t.p4"), &addr, &["--entries", &entries_file, "--watch"]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut times_ms: Vec<f64> = runtime.block_on(async {
        let mut session =
            Session::beside(ConnectOptions::new(addr.clone(), 1)).await.expect("a role of its own");
        let mut times = Vec::new();
        for mark in 2..12u16 {
            times.push(first_packet(&mut session, &program, mark).await.as_secs_f64() * 1e3);
        }
        times
    });
    times_ms.sort_by(f64::total_cmp);
    println!(
        "from save to first packet: {:.0} to {:.0} ms, median {:.0} ms",
        times_ms[0], times_ms[9], times_ms[5]
    );
    assert_eq!(entries(&addr).len(), 2);
    for _ in 2..12u16 {
        switch.until("installed between two packets");
    }
}

/// Saves a program that answers with `mark`, and sends packets until its first answer.
async fn first_packet(session: &mut Session, program: &Path, mark: u16) -> Duration {
    let start = Instant::now();
    fs::write(program, marks(mark)).expect("a file");
    while start.elapsed() < LIMIT {
        let metadata = vec![PacketMetadata { metadata_id: 1, value: vec![7] }];
        let mut payload = vec![0; 60];
        payload[..6].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
        session.packet_out(PacketOut { payload, metadata }).await.expect("sent");
        let until = tokio::time::Instant::now() + LIMIT;
        let packet = session.packet_in(until).await.expect("a session").expect("each packet is answered");
        let found = packet.metadata.first().and_then(|field| bytes::to_u128(&field.value));
        match found {
            Some(found) if found == mark.into() => return start.elapsed(),
            found => assert_eq!(found, Some((mark - 1).into()), "the old program's, with its entry"),
        }
    }
    panic!("no packet with {mark} within {LIMIT:?}");
}
