//! A short run of each way to a board's memory, with its results in tests/snapshots/clio_rack.snap.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_sim::{ClioExperiment, ClioOutcome, Sweep, run_clio};
use std::path::Path;

fn parse(more: &str) -> ClioExperiment {
    let text = format!("name = \"t\"\nkind = \"clio\"\n{more}\n");
    ClioExperiment::parse(&text, "t.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn run(more: &str) -> ClioOutcome {
    let experiment = parse(more);
    let (outcome, again) = (run_clio(&experiment).unwrap(), run_clio(&experiment).unwrap());
    assert_eq!(outcome.digest, again.digest, "a second run differs: {more}");
    assert_eq!(outcome.problems, Vec::<String>::new(), "{more}");
    outcome
}

fn mean(outcome: &ClioOutcome) -> f64 {
    outcome.mean_ns.unwrap_or_else(|| panic!("{}: nothing was measured", outcome.name))
}

/// A run of a thousand operations.
fn short(more: &str) -> ClioOutcome {
    run(&format!("warmup = 100\noperations = 1000\n{more}"))
}

#[test]
fn ways_show_what_they_showed() {
    let mut shown = String::new();
    for (name, more) in [
        ("reads", ""),
        ("writes, chip", "profile = \"asic\"\nwrite_percent = 100.0"),
        ("4 KB, both", "bytes = 4096\nwrite_percent = 50.0\nprocesses = 2\nwindow = 2"),
        (
            "first accesses",
            "touched = false\npages = 1200\nwalk = \"sequential\"\n[slow]\nzero_bytes = 100000000",
        ),
        ("over PL2", "compute_nodes = 3\nbytes = 2000\n[network]\nscheme = \"pl2-clock\""),
        ("lost frames", "compute_nodes = 2\nwrite_percent = 30.0\n[link]\nloss = 0.01"),
        ("allocations", "load = \"allocations\"\nbytes = 9000000\n[table]\nindex = \"mixed\""),
        ("Clio-KV", "load = \"kv\"\nkeys = 500\nbytes = 1000\nwrite_percent = 50.0\nprocesses = 3"),
        ("rdma", "scheme = \"rdma\"\nprocesses = 300\norder = \"random\""),
        ("rdma-two-sided", "scheme = \"rdma-two-sided\"\nbytes = 4000\nwrite_percent = 50.0"),
        ("two-round-trips", "scheme = \"two-round-trips\"\nwrite_percent = 50.0"),
    ] {
        let outcome = short(more);
        let latency = &outcome.latency_ns;
        shown += &format!("{name}: digest {}, {} frame-hops\n", outcome.digest, outcome.frame_hops);
        shown += &format!(
            "    {:.3} million/s, mean {:.1} ns, p50 {} ns, p99 {} ns\n",
            outcome.mops,
            mean(&outcome),
            latency.p50,
            latency.p99
        );
        shown += &format!(
            "    {:?}, {} misses, {} faults of the baseline; {} frames lost, {} packets sent again, {} unknown\n",
            outcome.translations,
            outcome.cache_misses,
            outcome.page_faults,
            outcome.lost_frames,
            outcome.retries,
            outcome.unknown
        );
    }
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("clio_rack", shown);
    });
}

/// Paper §4.3 and §7.1: a page fault is a TLB miss and three cycles.
#[test]
fn a_first_access_costs_three_cycles_more_than_a_miss() {
    let of = |more: &str| run(&format!("operations = 400\nwalk = \"sequential\"\n{more}"));
    let (hit, miss) = (mean(&of("warmup = 8")), mean(&of("warmup = 600\npages = 512")));
    assert!((miss - hit - 130.0).abs() < 1.0, "{miss} after {hit}");
    let first = of("warmup = 8\npages = 512\ntouched = false\n[table]\nfree_pages = 512");
    assert_eq!((first.translations.faults, first.translations.misses), (400, 0));
    assert!((mean(&first) - miss - 12.0).abs() < 1.0, "{} after {miss}", mean(&first));
}

/// Paper, Figure 4: a board's service for a process does not depend on the number of processes. Only the TLB sees more
/// pages in use.
#[test]
fn latency_does_not_grow_with_processes() {
    let of = |processes: u32| {
        run(&format!("processes = {processes}\norder = \"random\"\nwarmup = 3200\noperations = 12800"))
    };
    let one = mean(&of(1));
    for (processes, least, most) in [(60, 0.0, 0.0), (400, 0.8, 0.9), (4_096, 0.97, 1.0)] {
        let many = of(processes);
        let misses = many.translations.misses as f64 / many.operations as f64;
        assert!((least..=most).contains(&misses), "{processes}: {misses}");
        let grown = mean(&many) - one;
        assert!((grown - 130.0 * misses).abs() < 1.0, "{processes} processes, {misses}: {grown} ns");
    }
}

/// Paper §4.4: windows keep queues short; without them the switch drops frames.
#[test]
fn windows_prevent_loss_under_incast() {
    let text = |clib: &str| {
        format!(
            "boards = 8\nbytes = 1048576\nwindow = 16\npages = 16\nwalk = \"sequential\"\nwarmup = 16\noperations = 32\n\
             [network]\ncompute_rate = \"10 Gb/s\"\nbuffer = \"256 KiB\"\n[clib]\n{clib}"
        )
    };
    let with = run(&text(""));
    assert_eq!((with.lost_frames, with.unknown), (0, 0));
    assert!(with.goodput_share > 0.9, "{}", with.goodput_share);
    let without = run_clio(&parse(&text("incast = false\ncwnd_start = 4096\ntarget_us = 1000000"))).unwrap();
    assert!(without.lost_frames > 0);
    // Failed operations are no goodput.
    assert!(without.failed > 0 && without.operations + without.failed >= 32, "{without:?}");
    assert!(without.unknown >= without.failed && without.latency_ns.count <= without.operations);
    let gbps = without.operations as f64 * 1_048_576.0 * 8e-9 / without.measured_s;
    assert!((without.goodput_gbps - gbps).abs() < 1e-6, "{} {gbps}", without.goodput_gbps);
}

#[test]
fn a_board_that_fills_counts_retries() {
    let of = |index: &str, slots: u32| {
        let more = format!(
            "load = \"fill\"\n[table]\nindex = \"{index}\"\nbucket_slots = {slots}\n[fill]\nframes = 16384\npages = 10\nchurn = 100"
        );
        run_clio(&parse(&more)).unwrap()
    };
    let (mixed, salted) = (of("mixed", 16).fill.unwrap(), of("salted", 8).fill.unwrap());
    assert!(mixed.retries > 10.0 && mixed.first_percent > Some(25), "{mixed:?}");
    assert_eq!((salted.retries, salted.failed, salted.churned, salted.churn_most), (0.0, 0, 100, Some(0)));
    // Without free addresses the run reports a problem, and operations that did not run have no mean.
    let full = "load = \"fill\"\n[table]\nspare_percent = 0\nindex = \"mixed\"\nbucket_slots = 4\n[fill]\nframes = 16384\npages = 16384\nchurn = 9";
    let outcome = run_clio(&parse(full)).unwrap();
    assert_eq!(outcome.problems, ["nothing was allocated", "1 allocations found no addresses"]);
    let fill = outcome.fill.unwrap();
    assert_eq!((fill.failed, fill.churned, fill.churn_mean, fill.churn_most), (1, 0, None, None));
    let table = of("mixed", 16).table.unwrap();
    assert_eq!((table.bytes_per_page, table.page_bytes), (32.0, 4 << 20));
}

/// Paper §7.2: a value takes one exchange, and the board's accesses to memory.
#[test]
fn the_store_answers_with_the_values_of_its_keys() {
    let of = |more: &str| short(&format!("load = \"kv\"\nkeys = 1000\n{more}"));
    let (read, update) = (of("bytes = 64"), of("bytes = 64\nwrite_percent = 100.0"));
    assert_eq!((read.wrong, read.boards["offloads"]), (0, 1000 + 1100));
    assert!(read.stages_ns["board_offload"] > 4.0 * 110.0, "{:?}", read.stages_ns);
    assert!(update.stages_ns["board_offload"] > read.stages_ns["board_offload"]);
    assert!(mean(&of("bytes = 1024")) > mean(&read) + 1_000.0);
    // A unit takes one call after the other.
    let busy = |units: u32| of(&format!("bytes = 64\nprocesses = 8\n[board]\noffload_units = {units}")).mops;
    let (one, two, many) = (busy(1), busy(2), busy(128));
    let serial = 1e3 / of("bytes = 64").stages_ns["board_offload"];
    assert!((one / serial - 1.0).abs() < 0.05, "{one} {serial}");
    assert!(two > 1.3 * one && many > 1.1 * two, "{one} {two} {many}");
}

/// Each packet of a write has an address of its own; a read is translated once.
#[test]
fn every_packet_of_a_write_is_translated() {
    let of = |percent: u32| short(&format!("bytes = 4096\nwrite_percent = {percent}.0")).translations;
    let (reads, writes) = (of(0), of(100));
    assert_eq!((reads.hits + reads.misses, writes.hits + writes.misses), (1_000, 3_000));
}

/// Paper §7.1: an adapter has no room for more than 2^18 memory regions.
#[test]
fn too_many_regions_are_refused() {
    let outcome = run_clio(&parse("scheme = \"rdma\"\npages = 300000\nregions = 0")).unwrap();
    assert_eq!((outcome.operations, outcome.failed, outcome.refused), (0, 20_000, 20_000));
    assert_eq!(outcome.mean_ns, None);
}

#[test]
fn the_examples_are_experiments_and_sweeps() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/paper/clio");
    let read =
        |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| format!("{name}: {error}"));
    let mut files = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let text = read(&name).unwrap();
        if name.ends_with("-sweep.toml") {
            let base = |base: &str| Ok((read(base)?, base.to_owned()));
            let sweep = Sweep::<ClioExperiment>::parse(&text, &name, &[], base);
            sweep.unwrap_or_else(|error| panic!("{error}"));
        } else {
            ClioExperiment::parse(&text, &name).unwrap_or_else(|error| panic!("{error}"));
        }
        files += 1;
    }
    assert!(files >= 20, "{files}");
}
