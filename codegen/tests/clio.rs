//! Clio in descriptions: accepted and refused ones, the words of errors, and the switch's program.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_codegen::rack::{Claim, Queueing, Run};
use p4rack_codegen::scheme::clio::Clio;
use p4rack_codegen::scheme::{Protocol, endpoint_config};
use p4rack_codegen::{Arch, Rack, Scheme, generate, render_p4};
use p4rack_fabric::Config;
use p4rack_fabric::clio::board::Index;
use p4rack_fabric::remote::Way;
use p4rack_wire::Nanos;
use p4rack_wire::clio::PageSize;
use proptest::prelude::*;

const RACK: &str = r#"
name = "r"
[switch]
port_rate = "1 Gb/s"
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
"#;
const BOARD: &str = "boards = [\"h1\"]\nmemory = \"64 MiB\"\n";
const PL2: &str = "[pl2]\nmode = \"clock\"\n";
const STORE: &str = "[workload]\nkind = \"store\"\nserver = \"h1\"\nclients = [\"h2\"]\n";

fn parse(rest: &str) -> Result<Rack, String> {
    Rack::parse(&format!("{RACK}{rest}"), "r.toml").map_err(|error| error.to_string())
}

fn rack(rest: &str) -> Rack {
    parse(rest).unwrap_or_else(|error| panic!("{error}"))
}

fn clio(keys: &str) -> Result<Clio, String> {
    let rack = parse(&format!("[clio]\n{keys}"))?;
    Ok(rack.protocol::<Clio>().unwrap().clone())
}

#[test]
fn boards_and_their_memory_are_enough() {
    let clio = clio(BOARD).unwrap();
    assert_eq!(clio, Clio::new(vec!["h1".to_owned()], 64 << 20));
    assert_eq!((clio.page_sizes.as_slice(), clio.slots, clio.spare_percent), (&[PageSize::K64][..], 16, 100));
    assert_eq!((clio.index, clio.tlb_entries, clio.free_pages), (Index::Salted, 64, 64));
    assert_eq!((clio.processes_max, clio.udp_port, clio.retries), (256, 1234, 12));
    assert_eq!(clio.store_bytes, 32 << 20, "half of the memory, beside it");
    assert_eq!((clio.timeout, clio.target_delay), (Nanos::from_millis(20), Nanos::from_millis(20)));
}

#[test]
fn each_key_reaches_the_board_or_its_clients() {
    let keys = "boards = [\"h2\"]\nmemory = \"32 MiB\"\npage_sizes = [\"64 KiB\", \"2 MiB\"]\nslots = 8\nspare_percent = 50\n\
        index = \"mixed\"\ntlb_entries = 0\nfree_pages = 8\nprocesses_max = 3\nudp_port = 7000\ntimeout_us = 1000\n\
        retries = 2\ntarget_delay_us = 7\n";
    let clio = clio(keys).unwrap();
    let board = clio.board(clio.memory_bytes);
    let pools: Vec<_> = board.pools.iter().map(|pool| (pool.size, pool.frames, pool.ready)).collect();
    assert_eq!(pools, [(PageSize::K64, 256, 8), (PageSize::M2, 8, 8)]);
    assert_eq!((board.bucket_slots, board.spare_percent, board.index), (8, 50, Index::Mixed));
    assert_eq!((board.tlb_entries, board.processes_max), (0, 4), "one process is offered to all");
    assert_eq!(board.retry_keep, Nanos::from_millis(30), "30 TIMEOUTs");
    assert_eq!(board.check(), Ok(()));
    assert_eq!((clio.udp_port, clio.timeout, clio.retries), (7_000, Nanos::from_millis(1), 2));
    assert_eq!(clio.target_delay, Nanos::from_micros(7));
    assert_eq!(clio.claims(), [("clio.udp_port", Claim::UdpPort(7_000))]);
}

#[test]
fn refusals_name_the_field() {
    let with = |more: &str| clio(&format!("{BOARD}{more}")).expect_err(more);
    let instead = |memory: &str, more: &str| {
        clio(&format!("boards = [\"h1\"]\nmemory = \"{memory}\"\n{more}")).expect_err(memory)
    };
    for (error, wanted) in [
        (clio("memory = \"64 MiB\"").unwrap_err(), "clio.boards: is missing; add boards = [\"h1\"]"),
        (clio("boards = [\"h1\"]").unwrap_err(), "clio.memory: is missing; add memory = \"64 MiB\""),
        (
            clio("boards = []\nmemory = \"64 MiB\"").unwrap_err(),
            "clio.boards: is empty; name at least one host that has a board",
        ),
        (
            clio("boards = [\"h1\", \"h9\"]\nmemory = \"64 MiB\"").unwrap_err(),
            "clio.boards[1]: `h9` is no host; there are h1, h2",
        ),
        (
            clio("boards = [\"h1\", \"h1\"]\nmemory = \"64 MiB\"").unwrap_err(),
            "clio.boards[1]: `h1` is named twice",
        ),
        (instead("a lot", ""), "clio.memory: `a lot` is not a size"),
        (
            instead("65 KiB", "page_sizes = [\"64 KiB\"]"),
            "clio.memory: 65 KiB is no number of whole pages of 64 KiB; write \"128 KiB\", or smaller page_sizes",
        ),
        (instead("0 MiB", ""), "clio.memory: 0 B is no number of whole pages of 4 KiB"),
        (
            instead("3 MiB", "page_sizes = [\"4 KiB\", \"2 MiB\"]"),
            "clio.memory: 3 MiB is no number of whole pages of 2 MiB, of which 2 page sizes have equal shares; write \"4 MiB\"",
        ),
        (
            instead("17179869180 GiB", "page_sizes = [\"4 KiB\"]"),
            "clio.memory: has too many frames for a page table of fewer than 2^32 slots",
        ),
        (with("store = \"1025 GiB\""), "clio.store: 1049600 MiB are more than a board has; write at most"),
        (with("store = 7"), "clio.store: is an integer; write a size"),
        (with("page_sizes = []"), "clio.page_sizes: is empty; write at least one of 4 KiB, 64 KiB"),
        (
            with("page_sizes = [\"3 MiB\"]"),
            "clio.page_sizes[0]: 3 MiB is no power of two, and so no page size; write 4 KiB, 64 KiB",
        ),
        (with("page_sizes = [\"8 MiB\"]"), "clio.page_sizes[0]: 8 MiB is no page size; write 4 KiB, 64 KiB"),
        (with("page_sizes = [\"4\"]"), "clio.page_sizes[0]: `4` is not a size: the unit is missing"),
        (with("page_sizes = [\"4 KiB\", \"4096 B\"]"), "clio.page_sizes[1]: 4 KiB is there twice"),
        (with("page_sizes = \"4 KiB\""), "clio.page_sizes: is a string; write a list of page sizes"),
        (with("slots = 12"), "clio.slots: 12 is no power of two; write 4, 8 or 16"),
        (with("slots = 32"), "clio.slots: 32 is out of range; write an integer from 4 to 16"),
        (with("spare_percent = 101"), "clio.spare_percent: 101 is out of range"),
        (with("index = \"hash\""), "clio.index: `hash` is no index; write \"salted\" or \"mixed\""),
        (with("tlb_entries = 1048577"), "clio.tlb_entries: 1048577 is out of range"),
        (with("free_pages = 0"), "clio.free_pages: 0 is out of range"),
        (with("processes_max = 0"), "clio.processes_max: 0 is out of range"),
        (with("udp_port = 65536"), "clio.udp_port: 65536 is out of range"),
        (with("timeout_us = 99"), "clio.timeout_us: 99 is out of range"),
        (with("retries = 17"), "clio.retries: 17 is out of range"),
        (with("target_delay_us = 0"), "clio.target_delay_us: 0 is out of range"),
        (with("bords = 1"), "clio.bords: is unknown; did you mean `boards`?"),
        (parse("clio = 1").unwrap_err(), "host[1].clio: is unknown"),
    ] {
        assert!(error.contains(wanted), "wanted: {wanted}\n   got: {error}");
        assert!(error.starts_with("r.toml:"), "{error}");
    }
}

/// A board offers all of its memory as one range, so a table that has no room for that is none.
#[test]
fn a_table_that_cannot_hold_the_memory_is_refused() {
    let keys =
        |more: &str| format!("boards = [\"h1\"]\nmemory = \"256 MiB\"\npage_sizes = [\"4 KiB\"]\n{more}");
    let error = clio(&keys("index = \"mixed\"\nslots = 4")).unwrap_err();
    let wanted = "clio.slots: buckets of 4 slots with 100 % spare ones can't hold the memory's 65536 pages of 4 KiB as one range";
    assert!(error.contains(wanted) && error.contains("write index = \"salted\""), "{error}");
    let error = clio(&keys("index = \"mixed\"\nspare_percent = 0")).unwrap_err();
    assert!(error.contains("clio.spare_percent: buckets of 16 slots with 0 % spare ones"), "{error}");
    assert!(clio(&keys("slots = 4\nspare_percent = 0")).is_ok(), "salted");
    let large = "boards = [\"h1\"]\nmemory = \"7168 GiB\"\npage_sizes = [\"4 KiB\"]\nstore = ";
    assert!(clio(&format!("{large}\"0 B\"")).is_ok());
    let error = clio(&format!("{large}\"1024 GiB\"")).unwrap_err();
    assert!(error.contains("or a smaller store"), "{error}");
    assert!(
        clio("boards = [\"h1\"]\nmemory = \"4096 GiB\"").is_ok(),
        "the default store is no larger than one may be"
    );
    assert!(clio("boards = [\"h1\"]\nmemory = \"256 MiB\"\nindex = \"mixed\"").is_ok(), "128 pages of 2 MiB");
}

#[test]
fn ports_of_others_are_refused() {
    let cowbird = "[cowbird]\nip = \"10.0.0.254\"\npool = [\"h1\"]\ncompute = [\"h2\"]\n";
    let both = |port: u16| parse(&format!("{cowbird}[clio]\n{BOARD}udp_port = {port}\n"));
    let error = both(4791).unwrap_err();
    assert!(error.contains("clio.udp_port: UDP port 4791 belongs to cowbird.ip"), "{error}");
    assert_eq!(both(1234).unwrap().scheme().name(), "clio+cowbird");
}

/// Hosts share a board's port, and nothing is reserved there.
#[test]
fn ports_take_turns_and_hosts_need_no_agent() {
    let rack = rack(&format!("[clio]\n{BOARD}"));
    assert_eq!((rack.switch.queueing, rack.scheme()), (Queueing::Fair, Scheme::CLIO));
    assert!(!rack.protocol::<Clio>().unwrap().needs_agents());
    let machine = endpoint_config(&rack, &rack.hosts[0], Scheme::CLIO).unwrap();
    assert!(matches!(machine, Config::Ethernet(_)), "{machine:?}");
    let shown = rack.summary().rack;
    let wanted = "clio: boards h1 with 64 MiB each in pages of 64 KiB, a store of 32 MiB, page table of 3072 slots in buckets of 16 (49152 B, 0.05 % of the memory";
    assert!(shown.contains(wanted), "{shown}");
    let json = rack.to_json();
    assert_eq!((&json["clio"]["udp_port"], &json["clio"]["index"]), (&1234.into(), &"salted".into()));
}

/// The switch forwards Clio's packets like all others, so it runs the program of the other protocols.
#[test]
fn clio_adds_nothing_to_the_switch() {
    let rack = rack(&format!("{PL2}[clio]\n{BOARD}"));
    let both: Scheme = "pl2-clock+clio".parse().unwrap();
    assert_eq!(rack.scheme(), both);
    for arch in [Arch::V1model, Arch::Tna] {
        let text = |scheme| render_p4(&rack, scheme, arch).unwrap();
        assert_eq!(text(Scheme::CLIO).replace("clio", "l2"), text(Scheme::L2), "{arch}");
        assert_eq!(text(both).replace("clio_pl2", "pl2"), text(Scheme::PL2_CLOCK), "{arch}");
    }
    let machine = endpoint_config(&rack, &rack.hosts[1], both).unwrap();
    assert!(matches!(machine, Config::Pl2(_)), "{machine:?}");
    let made = generate(&rack, Scheme::CLIO, Arch::V1model).unwrap();
    assert!(made.dissectors.unwrap().contains("1234"));
    assert!(made.layers.unwrap().contains("bind_layers(UDP, Clio, dport=CLIO_UDP_PORT)"));
    let boards = &made.constants["clio"]["boards"];
    assert_eq!((boards[0]["ip"].as_str(), boards.as_array().map(Vec::len)), (Some("10.0.0.1"), Some(1)));
}

/// `clio` names a scheme and a way to a store's memory. The way needs no table; with one, it is the scheme's.
#[test]
fn a_store_by_clio_needs_no_table() {
    let run: Run = "clio".parse().unwrap();
    assert_eq!(run, Run::from(Scheme::CLIO));
    let without = rack(STORE);
    assert_eq!(without.meant(run), Run::by(Way::CLIO));
    assert_eq!(without.meant(run).name(), "clio");
    assert!(without.during(run).unwrap().protocols.is_empty());
    let with = rack(&format!("{PL2}[clio]\n{BOARD}{STORE}"));
    let described = Run { way: Some(Way::CLIO), ..Scheme::CLIO.into() };
    assert_eq!(
        (with.meant(run), with.by(Way::CLIO), with.meant(Run::by(Way::CLIO))),
        (described, described, described)
    );
    assert!(with.during(run).unwrap().protocol::<Clio>().is_some());
    let both: Run = "pl2-clock+clio".parse().unwrap();
    assert_eq!((with.meant(both).way, with.meant(both).scheme), (Some(Way::CLIO), both.scheme));
    let elsewhere = rack(&format!("[clio]\n{}{STORE}", BOARD.replace("h1", "h2")));
    assert_eq!(elsewhere.during(run).unwrap_err(), "needs h1 among the hosts of clio.boards");
    // Without a store there is nothing to reach, and the scheme needs its table.
    let error = rack("").during(run).unwrap_err();
    assert!(error.contains("needs CLIO's parameters: add a [clio] table with boards"), "{error}");
}

/// EDM's way comes first where a rack has both.
#[test]
fn a_schemes_way_is_that_of_its_first_protocol() {
    let rack = rack(&format!("[edm]\nmode = \"timed\"\nmemory = [\"h1\"]\n[clio]\n{BOARD}{STORE}"));
    assert_eq!(rack.scheme().way(), Some(Way::EDM_TIMED));
    assert_eq!(rack.by(Way::EDM_TIMED), Run { way: Some(Way::EDM_TIMED), ..Scheme::one("edm-timed").into() });
    assert_eq!(rack.by(Way::RDMA), Run::by(Way::RDMA));
}

proptest! {
    /// With any numbers, a board starts, or an error names a field of the table.
    #[test]
    fn a_table_makes_a_board_or_is_refused(
        (memory_kib, sizes) in (0u64..1 << 34, proptest::collection::vec(0usize..8, 0..4)),
        (slots, spare, tlb) in (0u64..40, 0u64..130, prop_oneof![0u64..200, 0u64..1 << 40]),
        (free, processes, port) in (0u64..70_000, 0u64..70_000, 0u64..70_000),
        (timeout, retries, delay) in (0u64..2_000_000, 0u64..20, 0u64..2_000_000),
        mixed: bool,
    ) {
        let names = ["4 KiB", "64 KiB", "2 MiB", "4 MiB", "16 MiB", "64 MiB", "1 GiB", "12 KiB"];
        let sizes: Vec<&str> = sizes.into_iter().map(|nth| names[nth]).collect();
        let index = if mixed { "mixed" } else { "salted" };
        let keys = format!(
            "boards = [\"h1\"]\nmemory = \"{memory_kib} KiB\"\npage_sizes = {sizes:?}\nslots = {slots}\nspare_percent = {spare}\n\
             index = \"{index}\"\ntlb_entries = {tlb}\nfree_pages = {free}\nprocesses_max = {processes}\nudp_port = {port}\n\
             timeout_us = {timeout}\nretries = {retries}\ntarget_delay_us = {delay}\n"
        );
        match clio(&keys) {
            Ok(clio) => prop_assert_eq!(clio.board(clio.memory_bytes).check(), Ok(())),
            Err(error) => prop_assert!(error.lines().all(|line| line.contains(": clio.")), "{}", error),
        }
    }
}
