//! Promises to nodes that share memory with a hostile one.

// A test that cannot go on should panic.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use p4rack_fabric::hostile::edm::Attack;
use p4rack_sim::{MemoryExperiment, NO_ATTACK, OthersOutcome, run_memory};

const MODES: [&str; 4] = ["edm-timed-dst", "edm-timed", "edm-calendar", "edm-matched"];
const SLOW: &str = "100 Mb/s";
const FAST: &str = "100 Gb/s";

/// Nodes that always have operations waiting, and nodes that wait for each answer before they ask again.
const BUSY: &str = "in_flight = 24\nread_percent = 50";
const ONE_READ: &str = "in_flight = 1\nread_percent = 100";

fn others(scheme: &str, rate: &str, edm: &str, workload: &str, attack: &str) -> OthersOutcome {
    let text = format!(
        "name = \"test\"\nkind = \"memory\"\nscheme = \"{scheme}\"\nnodes = 4\nrate = \"{rate}\"\n[edm]\nchunk = 1024\nheadroom_percent = 10\n{edm}\n\
         [workload]\ncompute_nodes = 3\n{workload}\nsize = 1024\nmessages = 900\n\
         [[hostile]]\nnode = 2\nattack = \"{attack}\"\nvictim = 3\n"
    );
    let experiment = MemoryExperiment::parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
    run_memory(&experiment).others.expect("a node may be hostile")
}

/// The promises that these attacks break.
fn broken(scheme: &str, rate: &str, edm: &str, attacks: &[Attack]) -> Vec<String> {
    broken_under(BUSY, scheme, rate, edm, attacks)
}

fn broken_under(workload: &str, scheme: &str, rate: &str, edm: &str, attacks: &[Attack]) -> Vec<String> {
    let honest = others(scheme, rate, edm, workload, NO_ATTACK);
    // Nothing was asked for again: all that honest nodes asked for was granted.
    assert_eq!((honest.goodput_gbps.len(), honest.frames_lost), (2, 0), "{honest:?}");
    let of = |attack: &Attack| {
        let fared = honest.compare(&others(scheme, rate, edm, workload, attack.name()));
        let broken = fared.broken();
        (!broken.is_empty()).then(|| format!("{scheme}, {rate}, {attack}: {}", broken.join(", ")))
    };
    attacks.iter().filter_map(of).collect()
}

#[test]
fn others_keep_their_shares_of_a_memory_nodes_links() {
    for scheme in MODES {
        assert_eq!(broken(scheme, SLOW, "", &Attack::ALL), [] as [String; 0]);
    }
}

/// A round trip takes as long as a dozen chunks: a host with more of them granted ahead has more of the link.
#[test]
fn they_keep_them_where_links_are_fast() {
    let attacks = [
        Attack::BulkRead,
        Attack::BulkWrite,
        Attack::WindowWrite,
        Attack::Early,
        Attack::Bytewise,
        Attack::Silent,
        Attack::WrongKeyRead,
    ];
    for scheme in MODES {
        assert_eq!(broken(scheme, FAST, "", &attacks), [] as [String; 0]);
    }
}

/// While a frame is between a program and its link, a lane of a short read is idle, and no lane of a long read is. Hosts with enough
/// lanes to fill the link in that time keep their shares.
#[test]
fn beside_long_reads_hosts_that_are_not_prompt_need_more_lanes() {
    let reads = [Attack::BulkRead, Attack::Silent];
    let late = |demands: u32, more: &str| {
        format!("x = {demands}\n{more}\n[nic]\ndma_ns = [[0.0, 150000.0], [1.0, 150000.0]]")
    };
    for scheme in MODES {
        for more in ["", "arch = \"tna\"\nwindow = 1"] {
            assert_eq!(broken(scheme, SLOW, &late(12, more), &reads), [] as [String; 0]);
        }
        assert_eq!(broken(scheme, SLOW, &late(3, ""), &reads).len(), reads.len(), "{scheme}");
    }
}

/// Where requesters take turns at the memory node, a node with one read at a time has its share beside long reads, however many of
/// them are under way. Clocks of memory nodes grant in the order of demands, and there it waits for all of them.
#[test]
fn one_read_at_a_time_has_its_share_where_requesters_take_turns() {
    for (scheme, breaks) in MODES.iter().zip([0, 1, 1, 0]) {
        for demands in [3, 12] {
            let edm = format!("x = {demands}");
            let found = broken_under(ONE_READ, scheme, SLOW, &edm, &[Attack::BulkRead]);
            assert_eq!(found.len(), breaks, "{demands}: {found:?}");
        }
    }
}

/// A link beside long reads is never idle, so an answer waits for the rest of the chunk that is leaving. A node with one read at a time
/// loses that part of its round trip: much of it where a chunk takes as long as messages do between program and link.
#[test]
fn one_read_at_a_time_waits_for_the_chunk_that_is_leaving() {
    let late = "[nic]\ndma_ns = [[0.0, 25000.0], [1.0, 25000.0]]";
    for scheme in ["edm-timed-dst", "edm-matched"] {
        for (rate, breaks) in [(SLOW, 1), ("1 Gb/s", 0)] {
            let found = broken_under(ONE_READ, scheme, rate, late, &[Attack::BulkRead]);
            assert_eq!(found.len(), breaks, "{rate}: {found:?}");
        }
    }
}

/// What the comparison would miss if it found nothing.
#[test]
fn without_shares_they_lose_them() {
    let writes = [Attack::BulkWrite, Attack::WindowWrite, Attack::Early];
    let cells = [Attack::BulkRead, Attack::WindowWrite, Attack::Early, Attack::Bytewise, Attack::Silent];
    let demands = [Attack::WindowWrite, Attack::Bytewise];
    for (scheme, attacks) in MODES.iter().zip([&writes[..], &writes, &cells, &demands]) {
        assert_eq!(broken(scheme, SLOW, "shares = false", attacks).len(), attacks.len(), "{scheme}");
    }
}

/// Tofino accesses a register once a pass: frames before their time are found last, and a second pass takes back the
/// first one's grant.
#[test]
fn on_tofino_they_keep_them() {
    let attacks = [
        Attack::BulkRead,
        Attack::BulkWrite,
        Attack::WindowWrite,
        Attack::Bytewise,
        Attack::Early,
        Attack::Silent,
    ];
    let needed = [Attack::BulkWrite, Attack::WindowWrite, Attack::Early];
    for scheme in &MODES[..2] {
        for rate in [SLOW, FAST] {
            assert_eq!(broken(scheme, rate, "arch = \"tna\"", &attacks), [] as [String; 0]);
        }
        let without = broken(scheme, SLOW, "arch = \"tna\"\nshares = false", &needed);
        assert_eq!(without.len(), needed.len(), "{scheme}");
    }
}

/// Where windows are granted in one access of the rights, a message has one chunk at a time if windows are chunks.
#[test]
fn on_tofino_windows_of_a_chunk_are_shares() {
    let attacks = [
        Attack::BulkRead,
        Attack::BulkWrite,
        Attack::WindowWrite,
        Attack::Bytewise,
        Attack::Early,
        Attack::Silent,
        Attack::NotifyFlood,
    ];
    let window = "arch = \"tna\"\nwindow = 1";
    for scheme in &MODES[2..] {
        for rate in [SLOW, FAST] {
            assert_eq!(broken(scheme, rate, window, &attacks), [] as [String; 0]);
        }
        let without = broken(scheme, SLOW, &format!("{window}\nshares = false"), &[Attack::Bytewise]);
        assert_eq!(without.len(), 1, "{scheme}: short chunks use up no more than their bytes");
    }
}

#[test]
fn mistakes_are_named() {
    for (hostile, named) in [
        ("node = 4\nattack = \"early\"\nvictim = 3", "4 is no node; there are 4"),
        ("node = 3\nattack = \"early\"\nvictim = 3", "is the node itself"),
        ("node = 2\nattack = \"erly\"\nvictim = 3", "`erly` is no attack on EDM; there are bulk-read"),
    ] {
        let text = format!(
            "name = \"test\"\nkind = \"memory\"\nscheme = \"edm-timed\"\nnodes = 4\n[workload]\nin_flight = 1\nsize = 64\n\
             messages = 100\n[[hostile]]\n{hostile}\n"
        );
        let error = MemoryExperiment::parse(&text, "test.toml").unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
}
