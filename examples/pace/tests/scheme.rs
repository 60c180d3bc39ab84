//! The scheme works, and docs/protocol-author.md shows its current text.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_codegen::{Arch, Rack, Scheme, generate};
use p4rack_fabric::{HostMachine, Machine};
use p4rack_pace::{ASK, Definition, ETHER_TYPE, Frame, GRANT, Host, Outcome, Pace, incast};
use p4rack_wire::ethernet::Ethernet;
use p4rack_wire::{EtherType, MacAddr, Nanos};
use std::fs;
use std::path::{Path, PathBuf};

/// Frames of each sender.
const FRAMES: u64 = 200;

fn repo(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn described(change: impl FnOnce(String) -> String) -> Result<Rack, String> {
    let text = change(read(&repo("examples/pace/rack.toml")));
    Rack::parse_with(&text, "rack.toml", &[&Definition]).map_err(|error| error.to_string())
}

fn rack() -> Rack {
    described(|text| text).unwrap_or_else(|error| panic!("{error}"))
}

fn run(rack: &Rack, scheme: Scheme) -> Outcome {
    incast(rack, scheme, FRAMES).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn an_incast_waits_in_hosts_and_loses_nothing() {
    let rack = rack();
    let [plain, pace] = [Scheme::L2, rack.scheme()].map(|scheme| run(&rack, scheme));
    assert_eq!((plain.sent, plain.delivered + plain.lost), (5 * FRAMES, 5 * FRAMES));
    assert!(plain.lost > plain.sent / 2, "{plain:?}");
    assert_eq!((pace.sent, pace.delivered, pace.lost), (5 * FRAMES, 5 * FRAMES, 0));
    // Two full frames: one that leaves, and one whose sender is exact to its last bit.
    assert!(pace.queue_max_bytes <= 2 * 1_518, "{pace:?}");
    // No slot is left empty but those that each request's way takes.
    let slots = rack.wire_bytes() * 8 * 5 * FRAMES * 1_000_000_000 / rack.hosts[0].rate_bps;
    assert!(pace.last.0 < slots + slots / 100, "{pace:?}, {slots} ns of frames");
    assert_eq!(run(&rack, rack.scheme()), pace, "the same run gives the same outcome");
}

#[test]
fn the_generator_makes_every_artefact() {
    let rack = rack();
    let made = generate(&rack, rack.scheme(), Arch::V1model).unwrap();
    assert!(made.p4.contains("promised_until") && made.p4.contains("DROP_PACE_REQUEST"), "{}", made.p4);
    assert_eq!(made.constants["pace"]["frames"], 64);
    assert_eq!(made.constants["hosts"][0]["pace_slot_ns"], 1_230_400);
    let files: Vec<String> = made.files().into_iter().map(|(name, _)| name).collect();
    for ending in [".p4", ".entries.txtpb", ".p4info.txtpb", ".json", "_layers.py"] {
        assert!(files.iter().any(|name| name.ends_with(ending)), "{ending}: {files:?}");
    }
    let without = generate(&rack, Scheme::L2, Arch::V1model).unwrap();
    assert!(!without.p4.contains("pace_"), "{}", without.p4);
    let error = generate(&rack, rack.scheme(), Arch::Tna).unwrap_err().to_string();
    assert!(error.contains("it has no program for tna; write arch = \"v1model\""), "{error}");
}

#[test]
fn a_description_is_checked() {
    for (given, wanted) in [
        ("frames = 0", "rack.toml:9: pace.frames"),
        ("frame = 4", "rack.toml:9: pace.frame: is unknown; did you mean `frames`?"),
    ] {
        let error = described(|text| text.replace("frames = 64", given)).unwrap_err();
        assert!(error.starts_with(wanted), "wanted: {wanted}\n   got: {error}");
    }
    let slow = |text: String| text.replace("10 Mb/s", "1 Mb/s").replace("frames = 64", "frames = 255");
    let error = described(slow).unwrap_err();
    assert!(error.contains("pace.frames: 255 frames of 6 hosts take"), "{error}");
}

/// A frame of an EtherType between two hosts, with this behind the header.
fn frame(dst: MacAddr, src: MacAddr, ether_type: EtherType, rest: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; Ethernet::BYTES];
    Ethernet { dst, src, ether_type }.emit(&mut frame);
    frame.extend_from_slice(rest);
    frame.resize(frame.len().max(60), 0);
    frame
}

#[test]
fn a_host_waits_for_its_own_grant_and_asks_again() {
    let rack = rack();
    let [own, peer] = [rack.hosts[1].mac, rack.hosts[0].mac];
    let config = rack.protocol::<Pace>().map(|pace| pace.host(&rack, &rack.hosts[1])).unwrap();
    let patience = config.patience;
    let mut host = Host::new(config, Nanos::ZERO);
    let mut out = Vec::new();
    let request = |host: &mut Host, now, out: &mut Vec<u8>| {
        host.handle_timeout(now);
        assert!(host.poll_link(now, out).is_some(), "nothing at {now:?}");
        assert_eq!(Ethernet::parse(out), Ok(Ethernet { dst: peer, src: own, ether_type: ETHER_TYPE }));
        Frame::parse(&out[Ethernet::BYTES..]).unwrap()
    };
    let data = frame(peer, own, EtherType::IPV4, b"data");
    host.handle_app(&data, Nanos::ZERO);
    host.handle_app(&data, Nanos::ZERO);
    let first = request(&mut host, Nanos::ZERO, &mut out);
    assert_eq!((first.kind, first.frames), (ASK, 2), "frames that come together share a request");

    // Nothing leaves without a grant; after a while it repeats the request.
    host.handle_timeout(Nanos(patience.0 - 1));
    assert!(host.poll_link(Nanos(patience.0 - 1), &mut out).is_none());
    assert_eq!(host.next_timeout(), Some(patience));
    let second = request(&mut host, patience, &mut out);
    assert_ne!(first.id, second.id);

    // The grant of the first request comes late, and another for more frames: neither matches its request.
    let grant = |wanted: Frame| {
        let mut rest = [0; Frame::BYTES];
        Frame { kind: GRANT, wait_ns: 5_000_000, ..wanted }.emit(&mut rest);
        frame(own, peer, ETHER_TYPE, &rest)
    };
    let now = patience.saturating_add(Nanos(1_000_000));
    for wrong in [first, Frame { frames: 3, ..second }] {
        host.handle_link(&grant(wrong), now, now);
    }
    assert_ne!(host.next_timeout(), Some(now.saturating_add(Nanos(5_000_000))));
    host.handle_link(&grant(second), now, now);
    let from = now.saturating_add(Nanos(5_000_000));
    assert_eq!(host.next_timeout(), Some(from));
    host.handle_timeout(from);
    assert!(host.poll_link(from, &mut out).is_some());
    assert_eq!(out, data);
    let counters = host.counters();
    for (name, count) in [("pace_asked", 2), ("pace_asked_again", 1), ("pace_grants_unasked", 2)] {
        assert!(counters.contains(&(name, count)), "{name}: {counters:?}");
    }
}

/// Section 4 of the page for authors.
fn section() -> String {
    let page = read(&repo("docs/protocol-author.md"));
    let (_, rest) = page.split_once("\n## 4. ").unwrap();
    rest.split("\n## 5. ").next().unwrap_or_default().to_owned()
}

#[test]
fn the_page_shows_the_code_and_the_result() {
    let section = section();
    let mut files = Vec::new();
    for folder in ["", "src", "p4", "ptf"] {
        let entries = fs::read_dir(repo("examples/pace").join(folder)).unwrap();
        let found = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
        files.extend(found.map(|path| read(&path)));
    }
    let mut shown = 0;
    for (language, rest) in section.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'))
    {
        if ["toml", "rust", "p4", "python"].contains(&language) {
            assert!(files.iter().any(|file| file.contains(rest)), "no file of examples/pace has:\n{rest}");
            shown += 1;
        }
    }
    assert!(shown >= 6, "{shown} blocks");
    let rack = rack();
    for scheme in [Scheme::L2, rack.scheme()] {
        let line = run(&rack, scheme).line(scheme);
        assert!(section.contains(&line), "the page lacks the line\n{line}");
    }
}

/// Rows of the page's last table: a file, and code that has to be there for its instruction to make sense.
#[test]
fn the_places_that_the_page_names_exist() {
    let section = section();
    let rows: Vec<&str> =
        section.lines().skip_while(|line| !line.starts_with("| file | beside")).skip(2).collect();
    let rows: Vec<&&str> = rows.iter().take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() >= 6, "{rows:?}");
    for row in rows {
        let cells: Vec<&str> =
            row.trim_matches('|').split(" | ").map(|cell| cell.trim().trim_matches('`')).collect();
        let [file, beside, _] = cells.as_slice() else { panic!("not three cells: {row}") };
        assert!(read(&repo(file)).contains(beside), "{file} lacks `{beside}`");
    }
}
