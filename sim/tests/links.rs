//! Jitter and faults of links in racks with remote memory: losses are counted and repaired, and the seed determines the run.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_sim::{
    CowbirdExperiment, CowbirdOutcome, MemoryExperiment, MemoryOutcome, run_cowbird, run_memory,
};

/// Every kind of fault.
const FAULTY: &str = "[link]\nloss = 0.004\ncorruption = 0.002\nduplication = 0.002\nreordering = 0.002\nreorder_ns = 3000\n\
                      delay_ns = [[0, 60], [0.9, 70], [1, 2000]]\n";

fn rdma(more: &str) -> CowbirdOutcome {
    let text = format!(
        "name = \"t\"\nkind = \"cowbird\"\nscheme = \"rdma\"\nthreads = 4\nrecords = 100000\nwrite_percent = 20\nwarmup_us = 30\n\
         duration_us = 330\n{more}[nic]\ntimeout_us = 50\n"
    );
    run_cowbird(&CowbirdExperiment::parse(&text, "t.toml").unwrap()).unwrap()
}

fn edm(scheme: &str, more: &str) -> MemoryOutcome {
    let text = format!(
        "name = \"t\"\nkind = \"memory\"\nscheme = \"{scheme}\"\nnodes = 6\n[workload]\nsize = 2000\nload = 0.2\n\
         messages = 1500\nread_percent = 50\n{more}"
    );
    run_memory(&MemoryExperiment::parse(&text, "t.toml").unwrap())
}

#[test]
fn what_links_lose_is_sent_again_by_rdma() {
    let (clean, faulty) = (rdma(""), rdma(FAULTY));
    assert_eq!((clean.lost_frames, clean.repeated), (0, 0));
    assert!(faulty.lost_frames > 10 && faulty.repeated > 10, "{} {}", faulty.lost_frames, faulty.repeated);
    assert_eq!((&faulty.problems[..], faulty.wrong, faulty.lost, faulty.failed), (&[][..], 0, 0, 0));
    assert!(faulty.latency_ns.p99 > clean.latency_ns.p99);
    assert_eq!(rdma(FAULTY).digest, faulty.digest);
    assert_ne!(rdma(&format!("seed = 2\n{FAULTY}")).digest, faulty.digest);
    let of_one = rdma(&format!("{FAULTY}hosts = [\"spot\"]\n"));
    assert_eq!(of_one.lost_frames, 0, "the spare host carries nothing");
}

#[test]
fn what_links_lose_is_asked_for_again_under_edm() {
    for scheme in ["edm-timed-dst", "edm-matched"] {
        let (clean, faulty) = (edm(scheme, ""), edm(scheme, FAULTY));
        assert_eq!((clean.again, clean.counters.get("link_lost")), (0, None), "{scheme}");
        for counter in ["link_lost", "link_corrupted", "link_duplicated", "link_reordered"] {
            assert!(faulty.counters[counter] > 5, "{scheme} {counter}: {:?}", faulty.counters);
        }
        assert!(faulty.again > 10, "{scheme}: {}", faulty.again);
        assert_eq!((&faulty.problems[..], faulty.lost, faulty.measured), (&[][..], 0, 1_500), "{scheme}");
        assert!(faulty.latency_ns.mean.mean > clean.latency_ns.mean.mean, "{scheme}");
        let text = |outcome: &MemoryOutcome| format!("{outcome:?}");
        assert_eq!(text(&edm(scheme, FAULTY)), text(&faulty), "{scheme}");
    }
}

/// A network card's delay adds to that of the link, and nothing is lost by it.
#[test]
fn jitter_alone_loses_nothing() {
    let [clean, jitter, card] = [
        "",
        "[link]\ndelay_ns = [[0, 300], [0.5, 400], [1, 900]]\n",
        "[nic]\ndma_ns = [[0, 490], [1, 600]]\n",
    ]
    .map(|more| edm("edm-timed-dst", more));
    for outcome in [&jitter, &card] {
        assert_eq!((&outcome.problems[..], outcome.again, outcome.lost), (&[][..], 0, 0));
        assert!(outcome.latency_ns.mean.mean > clean.latency_ns.mean.mean);
    }
}

#[test]
fn mistakes_are_named() {
    for (scheme, more, named) in [
        ("edm-timed", "[link]\nloss = 0.5\n", "[link] loss: 0.5 is no probability; write 0 to 0.1"),
        ("edm-timed", "[link]\nhosts = [\"6\"]\n", "[link] hosts: `6` is no node; there are 0 to 5"),
        ("edm-timed", "[link]\ndown_us = [[5, 5]]\n", "[link] down_us: [5, 5] ends before it begins"),
        ("edm-timed", "[nic]\ndma_ns = [[0, 1]]\n", "[nic] dma_ns: "),
        ("edm", "[link]\nloss = 0.01\n", "[link] loss: edm has no frames"),
        ("dctcp", "[nic]\ndma_ns = [[0, 1], [1, 2]]\n", "[nic] dma_ns: dctcp has no frames"),
    ] {
        let text = format!(
            "name = \"t\"\nkind = \"memory\"\nscheme = \"{scheme}\"\nnodes = 6\n[workload]\nsize = 2000\nload = 0.2\n\
             messages = 10\n{more}"
        );
        let error = MemoryExperiment::parse(&text, "t.toml").unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
    for (more, named) in [
        ("loss = 0.01\n[link]\nloss = 0.01\n", "[link] loss: stands for loss, which is there too"),
        ("[link]\nhosts = [\"h1\"]\n", "[link] hosts: `h1` is no host; there are compute, pool, spot, sink"),
    ] {
        let text = format!("name = \"t\"\nkind = \"cowbird\"\nrecords = 10000\n{more}");
        let error = CowbirdExperiment::parse(&text, "t.toml").unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
}
