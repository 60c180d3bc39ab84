//! Profile `rack` of experiments of kind "cache": misses are requests of a simulated rack.

// A test that cannot go on should panic.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use p4rack_sim::{CacheExperiment, CacheOutcome, CachePlant};

/// Reads alone, and half of the operations writes.
const READS: &str =
    "kind = \"ycsb\"\nworkload = \"c\"\nlayout = \"scattered\"\nrecords = 600\noperations = 1500\nseed = 1\n";
const WRITES: &str = "kind = \"uniform\"\nobjects = 2000\nbytes = 300\noperations = 3000\nseed = 1\n";

fn parse(policy: &str, load: &str, rack: &str) -> Result<CacheExperiment, String> {
    let text = format!(
        "name = \"c\"\nkind = \"cache\"\nload = \"{load}.toml\"\npolicy = \"{policy}\"\nlocal_percent = 20\nprofile = \
         \"rack\"\n[rack]\n{rack}"
    );
    let read = |file: &str| match file {
        "reads.toml" => Ok(READS.to_owned()),
        "writes.toml" => Ok(WRITES.to_owned()),
        _ => Err(format!("{file}: no such file")),
    };
    let experiment = CacheExperiment::parse(&text, "c.toml").map_err(|error| error.to_string())?;
    experiment.read_load(&read, &|file| file.into())
}

fn planted(policy: &str, load: &str, rack: &str, plant: Option<CachePlant>) -> CacheOutcome {
    parse(policy, load, rack).unwrap().run_planted(plant).unwrap_or_else(|error| panic!("{rack}: {error}"))
}

fn run(policy: &str, load: &str, rack: &str) -> CacheOutcome {
    let outcome = planted(policy, load, rack, None);
    assert_eq!(outcome.problems, Vec::<String>::new(), "{policy}, {rack}");
    outcome
}

/// With one node that fetches one block at a time, nothing waits for anything, so latencies that do not depend on the load are right.
#[test]
fn without_queues_amat_is_that_of_fixed_latencies() {
    // The clocks of EDM's programs have nanoseconds.
    let edm = ["edm-timed-dst", "edm-timed", "edm-calendar", "edm-matched"].map(|way| (way, "300 Gb/s"));
    for (way, rate) in edm.into_iter().chain([("rdma", "1 Tb/s"), ("clio", "1 Tb/s")]) {
        let outcome =
            run("lru", "reads", &format!("way = \"{way}\"\ncompute_nodes = 1\nrate = \"{rate}\"\n"));
        let (rack, ours) = (outcome.rack.unwrap(), outcome.counts.amat_ns);
        assert!(outcome.miss_share > 0.1 && rack.misses_ns.count > 1_000, "{rack:?}");
        assert!(
            (ours / rack.fixed_amat_ns - 1.0).abs() < 0.01,
            "{way}: {ours} against {}",
            rack.fixed_amat_ns
        );
        // A miss is a block's fetch and nothing else.
        let alone = rack.unloaded_ns as f64;
        assert!(
            (rack.misses_ns.mean / alone - 1.0).abs() < 0.01,
            "{way}: {:?} against {alone}",
            rack.misses_ns
        );
    }
}

/// Cowbird's latency depends on the moment at which the engine looks.
#[test]
fn without_queues_a_polled_way_is_near_its_mean() {
    for way in ["cowbird-spot", "cowbird-p4"] {
        let outcome =
            run("lru", "reads", &format!("way = \"{way}\"\ncompute_nodes = 1\nrate = \"1 Tb/s\"\n"));
        let rack = outcome.rack.unwrap();
        let ratio = outcome.counts.amat_ns / rack.fixed_amat_ns;
        assert!((0.6..1.6).contains(&ratio), "{way}: {ratio}, {rack:?}");
    }
}

/// Ethernet, IPv4, UDP, BTH, iCRC, and FCS, preamble and gap; then RETH or AETH.
#[test]
fn the_link_carries_the_policys_bytes_and_roces_headers() {
    let outcome = run("lru", "reads", "compute_nodes = 2\n");
    let (rack, counts) = (outcome.rack.unwrap(), outcome.counts);
    let each = 14 + 20 + 8 + 12 + 4 + 24;
    assert_eq!((counts.fetched_bytes, counts.written_bytes), (rack.fetches * 512, 0));
    assert_eq!(rack.from_pool_bytes, rack.fetches * (each + 4) + counts.fetched_bytes);
    assert_eq!(rack.to_pool_bytes, rack.fetches * (each + 16));
    let outcome = run("lru", "writes", "compute_nodes = 2\n");
    let (rack, counts) = (outcome.rack.unwrap(), outcome.counts);
    assert_eq!((counts.fetched_bytes, counts.written_bytes), (rack.fetches * 512, rack.write_backs * 512));
    assert!(counts.written_bytes > 0);
    assert_eq!(rack.to_pool_bytes, (rack.fetches + rack.write_backs) * (each + 16) + counts.written_bytes);
}

/// Each node has what it had alone, and the others beside it. Where the pool's link is full, it carries no more for twice as many nodes,
/// each of which waits for one fetch at a time: a fetch takes twice as long.
#[test]
fn more_compute_nodes_never_lower_latency_and_double_it_on_a_full_link() {
    for (way, policy, fills_from) in
        [("rdma", "runs", None), ("edm-timed-dst", "lru", None), ("rdma", "kona", Some(4))]
    {
        let mut before = 0.0;
        for nodes in [1, 2, 4, 8, 16] {
            let rack = format!("way = \"{way}\"\nrate = \"10 Gb/s\"\ncompute_nodes = {nodes}\n");
            let rack = run(policy, "writes", &rack).rack.unwrap();
            let ratio = rack.misses_ns.mean / before;
            // Traces differ by their seeds: half a percent.
            assert!(ratio > 0.995, "{way}: {nodes} nodes, {before} before, {rack:?}");
            if fills_from.is_some_and(|full| nodes > full) {
                assert!(
                    rack.from_pool > 0.95 && (1.8..2.3).contains(&ratio),
                    "{way}: {nodes} nodes, {ratio}, {rack:?}"
                );
            }
            before = rack.misses_ns.mean;
        }
    }
}

#[test]
fn every_way_brings_what_was_written_and_is_the_same_again() {
    for way in [
        "rdma",
        "edm-timed-dst",
        "edm-timed",
        "edm-calendar",
        "edm-matched",
        "clio",
        "cowbird-spot",
        "cowbird-p4",
    ] {
        let rack = format!("way = \"{way}\"\ncompute_nodes = 3\n");
        let [first, again] = [(); 2].map(|()| run("runs", "writes", &rack));
        let json = |outcome: &CacheOutcome| serde_json::to_string(outcome).unwrap();
        assert_eq!(json(&first), json(&again), "{way}");
        let shown = first.rack.unwrap();
        assert!(shown.write_backs > 100 && shown.misses_ns.p999 >= shown.misses_ns.p99, "{shown:?}");
    }
    for policy in ["unimem", "kona", "belady"] {
        run(policy, "writes", "way = \"edm-timed\"\n");
    }
}

#[test]
fn a_short_queue_makes_programs_wait() {
    let long = run("runs", "writes", "rate = \"2 Gb/s\"\n");
    let short = run("runs", "writes", "rate = \"2 Gb/s\"\nunder_way = 1\nqueue = 1\n");
    let waits = |outcome: &CacheOutcome| outcome.rack.as_ref().unwrap().waits;
    assert!(waits(&short) > 100 && waits(&short) > waits(&long), "{short:?}");
    assert!(short.counts.amat_ns > long.counts.amat_ns);
    let rack = short.rack.unwrap();
    assert_eq!(rack.under_way_max, 1);
}

#[test]
fn planted_mistakes_are_seen() {
    for (plant, rack, says) in [
        (CachePlant::LostWriteBack, "", "fetches did not bring what was written last"),
        (CachePlant::LostWriteBack, "", "written back, the policies for"),
        (CachePlant::Overtaking, "under_way = 4\nrate = \"1 Gb/s\"\n", "fetches did not bring"),
        (CachePlant::LongFetch, "", "bytes fetched, the policies for"),
    ] {
        let problems = planted("lru", "writes", rack, Some(plant)).problems;
        assert!(problems.iter().any(|problem| problem.contains(says)), "{plant:?}: {problems:?}");
    }
}

#[test]
fn mistakes_of_the_file_are_named() {
    for (rack, says) in [
        (
            "way = \"tcp\"\n",
            "c.toml:8: [rack] way: there is no `tcp` in a simulated rack; write one of rdma, edm-timed-dst",
        ),
        ("way = \"rmda\"\n", "way: there is no `rmda`"),
        ("compute_nodes = 0\n", "compute_nodes: 0 is out of range; write 1 to 16"),
        ("compute_nodes = 17\n", "compute_nodes: 17 is out of range; write 1 to 16"),
        ("rate = \"0 Gb/s\"\n", "rate: `0 Gb/s` is no rate"),
        ("rate = \"10 Mb/s\"\n", "rate: 10 Mb/s is out of range; write 1 Gb/s to 1 Tb/s"),
        ("rate = \"fast\"\n", "rate: `fast` is not a rate"),
        ("under_way = 0\n", "under_way: 0 is out of range; write 1 to 64"),
        ("queue = 0\n", "queue: 0 is out of range; write 1 to 65536"),
        ("ways = \"rdma\"\n", "unknown field `ways`"),
    ] {
        let error = parse("lru", "reads", rack).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
    let error = parse("unimem-artifact", "reads", "").unwrap_err();
    assert!(error.contains("c.toml:4: policy: unimem-artifact counts time as"), "{error}");
    let text = "name = \"c\"\nkind = \"cache\"\nload = \"l\"\npolicy = \"lru\"\nlocal_percent = 20\n[rack]\n";
    let error = CacheExperiment::parse(text, "c.toml").unwrap_err().to_string();
    assert!(error.contains("profile: paper: knows no rack; write \"rack\", or leave [rack] out"), "{error}");
}
