//! What is promised to nodes that share memory with a hostile one.

// A test that cannot go on should panic.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use p4rack_fabric::hostile::edm::Attack;
use p4rack_sim::{MemoryExperiment, NO_ATTACK, OthersOutcome, run_memory};

fn others(scheme: &str, edm: &str, attack: &str) -> OthersOutcome {
    let text = format!(
        "name = \"test\"\nkind = \"memory\"\nscheme = \"{scheme}\"\nnodes = 4\nrate = \"100 Mb/s\"\n[edm]\nchunk = 1024\n{edm}\n\
         [workload]\ncompute_nodes = 3\nin_flight = 24\nsize = 1024\nread_percent = 50\nmessages = 900\n\
         [[hostile]]\nnode = 2\nattack = \"{attack}\"\nvictim = 3\n"
    );
    let experiment = MemoryExperiment::parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
    run_memory(&experiment).others.expect("a node may be hostile")
}

/// The promises that these attacks break.
fn broken(scheme: &str, edm: &str, attacks: &[Attack]) -> Vec<String> {
    let honest = others(scheme, edm, NO_ATTACK);
    assert_eq!((honest.goodput_gbps.len(), honest.frames_lost), (2, 0), "{honest:?}");
    let of = |attack: &Attack| {
        let fared = honest.compare(&others(scheme, edm, attack.name()));
        let broken = fared.broken();
        (!broken.is_empty()).then(|| format!("{attack}: {}", broken.join(", ")))
    };
    attacks.iter().filter_map(of).collect()
}

#[test]
fn others_keep_their_shares_of_a_memory_nodes_links() {
    assert_eq!(broken("edm-timed-dst", "", &Attack::ALL), [] as [String; 0]);
}

/// What the comparison would miss if it found nothing.
#[test]
fn without_shares_they_lose_them() {
    let attacks = [Attack::BulkWrite, Attack::WindowWrite, Attack::Early];
    assert_eq!(broken("edm-timed-dst", "shares = false", &attacks).len(), attacks.len());
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
