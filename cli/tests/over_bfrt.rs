//! Commands over BFRuntime, each a process of its own, against the embedded switch.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "../../ctrl/tests/common/mod.rs"]
mod rig;

use common::switch::{free_addr, switch_with};
use common::{p4rack, repo, stderr, stdout};
use p4rack_codegen::scheme::pl2::{IN_RESERVATION, Pl2};
use p4rack_codegen::{Arch, Rack};
use p4rack_ctrl::ConnectOptions;
use p4rack_ctrl::items::{Item, RegisterItem};
use p4rack_p4rt::p4::v1::Entity;
use rig::{Running, start_both};
use std::io::{Read, Write};
use std::process::Output;
use tempfile::NamedTempFile;

/// A switch that speaks both protocols, and its description.
struct Switch {
    _running: Running,
    file: NamedTempFile,
    p4runtime: ConnectOptions,
    addr: String,
}

impl Switch {
    /// The incast's rack with the chip's port for the controller.
    async fn start() -> Switch {
        let text = std::fs::read_to_string(repo("examples/pl2-incast.toml")).unwrap();
        Switch::of(&text.replace("[switch]\n", "[switch]\ncpu_port = 64\n")).await
    }

    async fn of(text: &str) -> Switch {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let rack = Rack::load(file.path()).unwrap();
        let (running, p4runtime, target) = start_both(&rack).await;
        Switch { _running: running, file, p4runtime, addr: target.addr }
    }

    fn path(&self) -> String {
        self.file.path().display().to_string()
    }

    /// Runs a command. The switch notices the end of the one before a moment later.
    fn run(&self, words: &[&str]) -> Output {
        for _ in 0..100 {
            let output = p4rack().args(words).args(["--bfrt-addr", &self.addr]).output().unwrap();
            if !stderr(&output).contains("a program has one client") {
                return output;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("{words:?}: another client stays bound");
    }

    fn fine(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        stdout(&output)
    }

    fn refused(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert!(!output.status.success(), "{words:?}: {}", stdout(&output));
        stderr(&output)
    }

    fn deploy(&self, more: &[&str]) -> String {
        self.fine(&[&["deploy", &self.path(), "--to", "tofino"], more].concat())
    }

    fn over_bfrt(&self) -> ConnectOptions {
        let protocol = p4rack_ctrl::Protocol::BfRuntime;
        ConnectOptions { protocol, ..ConnectOptions::new(self.addr.clone(), 0) }
    }

    /// Whether generated frames may come in by pipe 0.
    async fn has_open_gate(&self) -> bool {
        let mut link = p4rack_ctrl::bfrt::Link::to_read(self.over_bfrt()).await.unwrap();
        link.schema().await.unwrap();
        link.has_open_gate(64).await.unwrap()
    }

    /// The values of a host's registers that a command shows, in and out.
    fn values(&self, words: &[&str], host: &str) -> [u64; 2] {
        let text = self.fine(&[words, &["--json"]].concat());
        let rows: serde_json::Value = serde_json::from_str(&text).unwrap();
        let of = |target: &str| {
            let mut rows = rows.as_array().unwrap().iter();
            rows.find(|row| row["host"] == host && row["target"] == target).unwrap()["value"].as_u64()
        };
        [of("in").unwrap(), of("out").unwrap()]
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reservations_are_read_changed_and_taken_back() {
    let switch = Switch::start().await;
    let path = switch.path();
    let text = std::fs::read_to_string(&path).unwrap().replace("\"clock\"", "\"counter\"");
    std::fs::write(&path, text).unwrap();
    switch.deploy(&[]);
    let read = ["pl2", "read", &*path];
    assert_eq!(switch.values(&read, "h2"), [0, 0]);
    let write = ["pl2", "write", &path, "--value", "77", "--host", "h2"];
    assert_eq!(switch.values(&write, "h2"), [0, 0], "what was there before");
    assert_eq!((switch.values(&read, "h2"), switch.values(&read, "h3")), ([77, 77], [0, 0]));
    assert!(!switch.has_open_gate().await, "as before");
    let over_p4runtime = p4rack().args(read).args(["--grpc-addr", &switch.p4runtime.addr, "--json"]).output();
    let over_p4runtime = stdout(&over_p4runtime.unwrap());
    assert_eq!(over_p4runtime, switch.fine(&[&read[..], &["--json"]].concat()), "both tell the same");
    assert!(switch.fine(&["pl2", "reset", &path, "--host", "h2", "--target", "in"]).contains(" 77"));
    assert_eq!(switch.values(&read, "h2"), [0, 77]);

    // As if h5 had reserved 3 slots towards h1, where others hold 4.
    let rack = Rack::load(&path).unwrap().on(Arch::Tna);
    let pl2 = rack.protocol::<Pl2>().unwrap();
    let cell = pl2.cell_index(&rack, pl2.cell_number(&rack, 4, 0, 1)).to_string();
    for (register, index, value) in
        [("rights", &*cell, "3"), ("in_reservation", "5", "3"), ("out_reservation", "1", "7")]
    {
        switch.fine(&["register", "write", register, value, "--index", index]);
    }
    let frame = "ff".repeat(60);
    switch.fine(&["generator", "set", "3", "--frame", &frame, "--port", "64"]);
    assert!(switch.has_open_gate().await);
    let forget = ["pl2", "forget", &path, "--host", "h5"];
    assert!(switch.fine(&forget).contains("h5 had left 3 slots reserved towards all"));
    assert_eq!((switch.values(&read, "h5"), switch.values(&read, "h1")), ([0, 0], [0, 4]));
    assert!(switch.fine(&forget).contains("h5 had left 0 slots"));
    assert!(switch.has_open_gate().await, "another application needs it");
}

#[tokio::test(flavor = "multi_thread")]
async fn reserved_time_is_told_from_now_on() {
    let switch = Switch::start().await;
    let slow = std::fs::read_to_string(switch.file.path()).unwrap().replace("100 Mb/s", "12 Mb/s");
    std::fs::write(switch.file.path(), slow).unwrap();
    switch.deploy(&["--scheme", "pl2-clock"]);
    let path = switch.path();
    // As far ahead as slots of this rate may be reserved; on a busy machine that may be over when it is read.
    let written = 130_000_000;
    let is_ahead = || {
        switch.fine(&["pl2", "write", &path, "--value", &written.to_string(), "--host", "h2"]);
        let values = switch.values(&["pl2", "read", &path], "h2");
        assert!(values.iter().all(|value| *value < written), "{values:?}");
        values.iter().all(|value| *value > 0)
    };
    let soon = std::time::Duration::from_secs(60);
    assert!(common::wait_until(soon, is_ahead));
    // Within the horizon before each multiple of 2^32 ns, a port that was never reserved looks reserved; and
    // reservations expire. So the test reads what was written from the registers.
    let is_free = |host| switch.values(&["pl2", "read", &path], host) == [0, 0];
    let cells = |index| {
        let cell = |register| {
            let text = switch.fine(&["register", "read", register, "--index", index, "--json"]);
            let value = &serde_json::from_str::<serde_json::Value>(&text).unwrap()[0]["value"];
            value.to_string().trim_matches('"').parse::<i64>().unwrap() as u32
        };
        ["in_reservation", "out_reservation"].map(cell)
    };
    assert_eq!(cells("3"), [0, 0], "never written");
    assert!(common::wait_until(soon, || is_free("h3")));
    let before = cells("2");
    switch.fine(&["pl2", "reset", &path]);
    let after = cells("2");
    assert!(before[0] != after[0] && before[1] != after[1], "reset: {before:?}, {after:?}");
    assert!(common::wait_until(soon, || is_free("h2")));
}

#[tokio::test(flavor = "multi_thread")]
async fn registers_are_changed_by_frames_that_reach_the_program() {
    let switch = Switch::start().await;
    switch.deploy(&["--scheme", "pl2-counter"]);
    let path = switch.path();
    // A description with another port for the controller than the program's.
    let text = std::fs::read_to_string(&path).unwrap();
    for (port, wanted) in [("66", "takes no management frames from port 66"), ("510", "cpu_port, 64 (tna)")] {
        std::fs::write(&path, text.replace("cpu_port = 64", &format!("cpu_port = {port}"))).unwrap();
        let refused = switch.refused(&["pl2", "reset", &path]);
        assert!(refused.contains(wanted), "{refused}");
    }
    switch.fine(&["pl2", "read", &path]);
    std::fs::write(&path, text).unwrap();
    switch.fine(&["pl2", "reset", &path]);
    let beyond = switch.refused(&["pl2", "read", &path, "--port", "600"]);
    assert!(beyond.contains("registers of 512 ports, none of port 600"), "{beyond}");
    switch.deploy(&["--scheme", "l2"]);
    let other = switch.refused(&["pl2", "read", &path]);
    assert!(other.contains("not one of PL2"), "{other}");
}

/// Each link's cells are in its own pipe, where its management frames go, too.
#[tokio::test(flavor = "multi_thread")]
async fn registers_of_several_pipes_are_read_and_changed_where_they_are() {
    let text = std::fs::read_to_string(repo("examples/pl2-pipes.toml")).unwrap();
    let switch = Switch::of(&text.replace("[switch]\n", "[switch]\ncpu_port = 64\n")).await;
    switch.deploy(&["--scheme", "pl2-clock"]);
    let path = switch.path();
    assert_eq!(
        switch.fine(&["pl2", "read", &path]).lines().count(),
        1 + 2 * 6,
        "a line for each link and side"
    );
    // A time ahead passes soon, so what the frame has written is looked at itself, in all pipes.
    switch.fine(&["pl2", "write", &path, "--host", "h4", "--target", "in", "--value", "1000"]);
    let mut link = bound(&switch).await;
    let schema = link.schema().await.unwrap();
    let item = RegisterItem { register: IN_RESERVATION.to_owned(), index: Some(260), ..Default::default() };
    let entity = Item::Register(item).entity(&schema).unwrap();
    let pipes = link.read_pipes(&entity).await.unwrap();
    drop(link);
    let is_zero = |entities: &Vec<Entity>| match Item::of(&schema, &entities[0]) {
        Ok(Item::Register(RegisterItem { value: Some(value), .. })) => value == "0",
        other => panic!("{other:?}"),
    };
    assert_eq!(pipes.iter().map(is_zero).collect::<Vec<_>>(), [true, true, false, true]);
    // What a host may still send is in its own pipe, and is gone there once it is forgotten.
    let rack = Rack::load(switch.file.path()).unwrap();
    let pl2 = rack.protocol::<Pl2>().unwrap();
    let cell = pl2.cell_index(&rack, pl2.cell_number(&rack, 3, 0, 0)).to_string();
    switch.fine(&["register", "write", "rights", "3", "--index", &cell]);
    for held in ["h4 had left 3 frames", "h4 had left 0 frames"] {
        let said = switch.fine(&["pl2", "forget", &path, "--host", "h4", "--to", "h1"]);
        assert!(said.contains(held), "{said}");
    }
}

/// The incast's rack at a rate that the chip's ports have.
async fn fast() -> Switch {
    let text = std::fs::read_to_string(repo("examples/pl2-incast.toml")).unwrap();
    let text = text.replace("100 Mb/s", "10 Gb/s").replace("256 KiB", "16 MiB");
    Switch::of(&text.replace(", \"pl2-counter\", \"pl2-clock\"", "")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_are_added_once_and_repaired() {
    let switch = fast().await;
    let dry = switch.run(&["deploy", &switch.path(), "--to", "tofino", "--dry-run"]);
    assert_eq!(dry.status.code(), Some(1));
    let row = "  + port 6: BF_SPEED_10G, BF_FEC_TYP_NONE, enabled\n";
    assert!(stdout(&dry).contains(row), "{}", stdout(&dry));
    assert!(switch.deploy(&[]).contains("ports: 6 to add or change"));
    let again = switch.deploy(&[]);
    assert!(again.contains("nothing to change") && again.contains("ports: nothing to change"), "{again}");
    switch.fine(&["deploy", &switch.path(), "--to", "tofino", "--dry-run"]);

    // One is faster now, which is in the program, too: all ports go with the program before, and are added again.
    let text = std::fs::read_to_string(switch.file.path()).unwrap();
    let faster = text.replace("port = 3\n", "port = 3\nrate = \"25 Gb/s\"\n");
    std::fs::write(switch.file.path(), faster).unwrap();
    let report = switch.deploy(&["--scheme", "l2", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let added = report["switches"][0]["ports"].as_array().unwrap();
    let faster = serde_json::json!("+ port 3: BF_SPEED_25G, BF_FEC_TYP_NONE, enabled");
    assert!(added.len() == 6 && added.contains(&faster), "{report:#}");
    assert!(switch.deploy(&["--scheme", "l2"]).contains("ports: nothing to change"));

    // Rates that the chip lacks.
    std::fs::write(switch.file.path(), text.replace("10 Gb/s", "100 Mb/s")).unwrap();
    let without = switch.deploy(&["--scheme", "l2"]);
    assert!(without.contains("6 without a row"), "{without}");
}

/// A client that is bound to the program. The switch may take a moment to notice that the client before it has gone.
async fn bound(switch: &Switch) -> p4rack_ctrl::bfrt::Link {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let mut link = p4rack_ctrl::bfrt::Link::connect(switch.over_bfrt()).await.unwrap();
        match link.schema().await {
            Err(error) if std::time::Instant::now() > until => panic!("{error}"),
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            Ok(_) => return link,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn top_and_tables_are_read_beside_a_client_that_is_bound() {
    let switch = Switch::start().await;
    switch.deploy(&["--scheme", "pl2-counter"]);
    let path = switch.path();
    switch.fine(&["pl2", "write", &path, "--value", "3", "--host", "h2"]);
    let _link = bound(&switch).await;
    let top = switch.fine(&["top", &path, "--once", "--every", "0.1"]);
    let row = top.lines().find(|line| line.contains(" h2 ")).unwrap_or_else(|| panic!("{top}"));
    assert!(row.matches("3 slots").count() == 2 && row.contains("0.00"), "{top}");
    assert!(top.contains("buffer 0 B"), "{top}");
    assert!(switch.fine(&["table", "read", "l2_forward"]).contains("02:00:00:00:00:06"));
    let words = ["table", "delete", "l2_forward", "dstAddr=02:00:00:00:00:06", "--bfrt-addr", &switch.addr];
    let bound = p4rack().args(words).output().unwrap();
    assert!(stderr(&bound).contains("a program has one client"), "{}", stderr(&bound));
}

/// Nothing changes in silence.
#[tokio::test(flavor = "multi_thread")]
async fn a_changed_queue_is_shown_as_it_is_then() {
    let switch = Switch::start().await;
    switch.deploy(&["--scheme", "l2"]);
    let set = ["queue", "set", "--port", "1", "--queue", "3", "--max-kbps", "8000", "--burst", "3000"];
    let said = switch.fine(&set);
    assert!(said.contains("at most 8000 kb/s, 3000 bytes at once"), "{said}");
    let rate = |words: &[&str]| -> serde_json::Value {
        let port: serde_json::Value = serde_json::from_str(&switch.fine(words)).unwrap();
        port["queues"][3]["rate"]["kbps"].clone()
    };
    assert_eq!(rate(&["queue", "set", "--port", "1", "--queue", "3", "--max-kbps", "9000", "--json"]), 9_000);
    assert_eq!(rate(&["queue", "reset", "--port", "1", "--json"]), serde_json::Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn packet_generators_send_what_they_are_told() {
    let switch = Switch::start().await;
    switch.deploy(&["--scheme", "l2"]);
    let frame = "ff".repeat(60);
    let first = ["generator", "set", "3", "--frame", &frame, "--port", "1"];
    let said = switch.fine(&[&first[..], &["--count", "5", "--period-ns", "1000"]].concat());
    assert!(said.starts_with("generator 3: port 1, 60 bytes every 1000 ns, 5 frames"), "{said}");
    let list = || -> serde_json::Value {
        serde_json::from_str(&switch.fine(&["generator", "list", "--json"])).unwrap()
    };
    let done = || list()[0]["active"] == false;
    assert!(common::wait_until(std::time::Duration::from_secs(10), done), "{:#}", list());
    let shown = &list()[0];
    assert_eq!((&shown["number"], &shown["port"], &shown["bytes"]), (&3.into(), &1.into(), &60.into()));
    assert_eq!((&shown["sent"], &shown["count"], &shown["period_ns"]), (&5.into(), &5.into(), &1000.into()));
    // An application that is set again counts from 0, and with a count of 0 sends without end.
    switch.fine(&[&first[..], &["--count", "0", "--period-ns", "1000000"]].concat());
    let sends = || list()[0]["sent"].as_u64().is_some_and(|sent| sent > 5);
    assert!(common::wait_until(std::time::Duration::from_secs(10), sends), "{:#}", list());
    for (more, wanted) in [
        (&["--count", "0"][..], "--period-ns"),
        (&["--count", "0", "--period-ns", "9", "--delay-ns", "9"], "leave --delay-ns out"),
        (&["--count", "70000"], "1 to 65536"),
        (&["--period-ns", "5000000000"], "32 bits"),
    ] {
        let refused = switch.refused(&[&first[..], more].concat());
        assert!(refused.contains(wanted), "{refused}");
    }
    let refused = switch.refused(&["generator", "set", "9", "--frame", &frame, "--port", "1"]);
    assert!(refused.contains("applications 0 to 7"), "{refused}");
    assert_eq!(switch.fine(&["generator", "remove", "3"]), "removed generator 3\n");
    assert_eq!(list(), serde_json::json!([]));
    assert!(switch.refused(&["generator", "remove", "3"]).contains("is not in use"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rack_is_watched_and_another_controller_stands_by() {
    let switch = Switch::start().await;
    let path = switch.path();
    let watch = || {
        let words = ["deploy", &path, "--to", "tofino", "--watch", "--every", "0.1", "--scheme", "l2"];
        common::switch::Running::start(p4rack().args(words).args(["--bfrt-addr", &switch.addr]))
    };
    let mut first = watch();
    first.until("the switch holds");
    let mut second = watch();
    second.until("standby: another client is bound");
    // A P4Runtime client deletes an entry.
    let entry = ["l2_forward", "dstAddr=02:00:00:00:00:06"];
    let over_p4runtime =
        |words: &[&str]| p4rack().args(words).args(["--grpc-addr", &switch.p4runtime.addr]).output().unwrap();
    let has = || stdout(&over_p4runtime(&["table", "read", "l2_forward"])).contains("02:00:00:00:00:06");
    let gone = over_p4runtime(&[&["table", "delete"], &entry[..]].concat());
    assert!(gone.status.success(), "{}", stderr(&gone));
    first.until("1 to insert");
    assert!(common::wait_until(std::time::Duration::from_secs(10), has));
    first.kill();
    second.until("no other client is bound");
    assert!(over_p4runtime(&[&["table", "delete"], &entry[..]].concat()).status.success());
    second.until("1 to insert");
    assert!(common::wait_until(std::time::Duration::from_secs(10), has));
    // The description changes.
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("02:00:00:00:00:06", "02:00:00:00:00:66")).unwrap();
    second.until("2 to insert, 0 to modify, 2 to delete");
}

#[test]
fn members_of_value_sets_are_replaced_read_and_removed() {
    let (grpc, bfrt) = (free_addr(), free_addr());
    let program = repo("switchd/tests/bfruntime/kinds.p4").display().to_string();
    let _switch = switch_with(&program, &grpc, &["--bfrt-addr", &bfrt]);
    let over_bfrt = |words: &[&str]| p4rack().args(words).args(["--bfrt-addr", &bfrt]).output().unwrap();
    let fine = |words: &[&str]| {
        let mut output = over_bfrt(words);
        // The switch notices the end of the command before a moment later.
        while stderr(&output).contains("a program has one client") {
            output = over_bfrt(words);
        }
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        stdout(&output)
    };
    let members = |text: String| {
        let line = text.lines().find(|line| line.contains("value set P.members")).map(str::to_owned);
        line.unwrap_or(text).split_whitespace().skip(3).map(str::to_owned).collect::<Vec<_>>()
    };
    let read = || members(fine(&["group", "read"]));
    let over_p4runtime = || members(common::switch::fine(&grpc, &["group", "read"]));
    assert!(read().is_empty());
    let write = ["group", "write", "--value-set", "members"];
    fine(&[&write[..], &["0x88", "5"]].concat());
    assert_eq!(over_p4runtime(), ["136", "5"]);
    fine(&[&write[..], &["5", "7", "9"]].concat());
    assert_eq!(over_p4runtime(), ["5", "7", "9"]);
    // Too many members are refused as a whole.
    let refused = over_bfrt(&[&write[..], &["1", "2", "3", "4", "6"]].concat());
    assert!(!refused.status.success(), "{}", stdout(&refused));
    common::switch::fine(&grpc, &[&write[..], &["7", "11"]].concat());
    assert_eq!(read(), ["7", "11"]);
    fine(&[&write[..], &["0x80&0xf0"]].concat());
    assert_eq!(read(), ["0x80&0xf0"]);
    fine(&["group", "delete", "--value-set", "members"]);
    assert!(read().is_empty() && over_p4runtime().is_empty());
    assert!(!over_bfrt(&["group", "insert", "--value-set", "members", "1"]).status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_watches_a_switch_that_refuses_entries_stays_bound() {
    let switch = Switch::start().await;
    switch.deploy(&["--scheme", "l2"]);
    let path = switch.path();
    // The same group over P4Runtime, which is refused over BFRuntime as long as it exists.
    let group = switch.fine(&["group", "read", "--json"]);
    let group: serde_json::Value = serde_json::from_str(&group).unwrap();
    let group = group[0]["group"].to_string();
    switch.fine(&["group", "delete", "--multicast", &group]);
    let over_p4runtime = |words: &[&str]| {
        let output = p4rack().args(words).args(["--grpc-addr", &switch.p4runtime.addr]).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    };
    over_p4runtime(&["group", "insert", "--multicast", &group, "1"]);
    let watch = || {
        let words = ["deploy", &path, "--to", "tofino", "--watch", "--every", "0.05", "--scheme", "l2"];
        common::switch::Running::start(p4rack().args(words).args(["--bfrt-addr", &switch.addr]))
    };
    let mut first = watch();
    first.until("failed, will retry");
    let mut second = watch();
    second.until("standby: another client is bound");
    std::thread::sleep(std::time::Duration::from_secs(3));
    let _ = second.0.kill();
    let mut said = String::new();
    second.0.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(!said.contains("no other client is bound"), "{said}");
    // Once nothing is in the way, it does what is left.
    over_p4runtime(&["group", "delete", "--multicast", &group]);
    first.until("the switch holds");
    assert!(switch.run(&["group", "read"]).status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_bfruntime_does_not_have_is_said() {
    let switch = Switch::start().await;
    let path = switch.path();
    let arch = switch.refused(&["deploy", &path, "--to", "tofino", "--arch", "v1model"]);
    assert!(arch.contains("--arch says v1model"), "{arch}");
    switch.deploy(&["--scheme", "pl2-clock"]);
    for words in [&["digest", "read"][..], &["digest", "write", "any"], &["digest", "delete", "any"]] {
        let refused = switch.refused(words);
        assert!(refused.contains("over BFRuntime digests are not configured"), "{refused}");
    }
    let idle = switch.refused(&["table", "watch", "l2_forward", "--idle"]);
    assert!(idle.contains("idle entries are told over P4Runtime alone"), "{idle}");
    let to = ["table", "insert", "l2_forward", "hdr.ethernet.dstAddr=02:00:00:00:00:99"];
    let aging = switch.refused(&[&to[..], &["--action", "NoAction", "--idle-timeout-ms", "500"]].concat());
    assert!(aging.contains("no idle timeouts"), "{aging}");
    let packets = switch.refused(&["packet", "list"]);
    assert!(packets.contains("BFRuntime carries no packets"), "{packets}");
    let counter = ["counter", "write", "refused", "--index", "1", "--packets", "4"];
    switch.fine(&counter);
    let bytes = switch.refused(&[&counter[..], &["--bytes", "9"]].concat());
    assert!(bytes.contains("counts packets, no bytes"), "{bytes}");
    let group = ["group", "insert", "--multicast", "7", "1"];
    let foreign = p4rack().args(group).args(["--grpc-addr", &switch.p4runtime.addr]).output().unwrap();
    assert!(foreign.status.success(), "{}", stderr(&foreign));
    let refused = switch.refused(&group);
    assert!(refused.trim_end().ends_with("over P4Runtime; delete it there first"), "{refused}");
}
