//! Under any faults of links and any number of new engines, histories are in order and nothing is lost. The checker
//! sees mistakes that a program could have.

use crate::common::Built;
use crate::rack::{Faults, Net, built, built_beside, built_on, described};
use p4rack_codegen::Arch;
use p4rack_cowbird::Layout;
use p4rack_fabric::common::SplitMix;
use p4rack_wire::cowbird::Phase;
use std::sync::LazyLock;

/// Seeds of an ordinary run; `P4RACK_SEEDS` asks for more.
const SEEDS: u64 = 200;
const STEPS_MAX: usize = 200_000;
/// Requests of a thread.
const REQUESTS: usize = 60;

fn seeds() -> u64 {
    let asked = std::env::var("P4RACK_SEEDS");
    asked.map_or(SEEDS, |seeds| seeds.parse().expect("P4RACK_SEEDS is a number"))
}

/// Programs: by requests under way, and beside other protocols.
static BUILT: LazyLock<Vec<Built>> = LazyLock::new(|| {
    let alone = [1, 4, 16].map(built);
    let pl2 = built_beside(8, "[pl2]\nmode = \"clock\"", &["pl2-clock"]);
    let edm = built_beside(8, "[edm]\nmode = \"timed-dst\"\nmemory = [\"h3\"]", &["edm-timed-dst"]);
    let both = "[pl2]\nmode = \"clock\"\n[edm]\nmode = \"timed-dst\"\nmemory = [\"h3\"]";
    let both = built_beside(8, both, &["edm-timed-dst", "pl2-clock"]);
    alone.into_iter().chain([pl2, edm, both]).collect()
});

/// Events of a run.
#[derive(Clone, Copy, Debug, Default)]
struct Happened {
    requests: u64,
    restarts: u64,
    again: u64,
    waits: u64,
    gaps: u64,
    reads: u64,
    writes: u64,
}

/// Runs a seed. The error says what is out of order.
fn run(built: &Built, seed: u64) -> Result<Happened, String> {
    run_beside(built, &[], seed)
}

/// The same with twins of the switch.
fn run_beside(built: &Built, twins: &[Built], seed: u64) -> Result<Happened, String> {
    let mut random = SplitMix(seed);
    let mut draw = |below: u64| random.next() % below;
    let faults = match draw(4) {
        0 => Faults::default(),
        1 => Faults { lost: 1, ..Faults::default() },
        _ => Faults { lost: draw(40), copied: draw(40), delayed: draw(100) },
    };
    let layout =
        Layout { entries: 2 << draw(4), request_bytes: 256 << draw(4), response_bytes: 256 << draw(4) };
    let (restarts, often) = [(0, 0), (3, 2), (30, 10)][draw(3) as usize];
    let replaced = draw(8) == 0;
    let mut net = Net::beside(built, twins, 1 + draw(3) as usize, REQUESTS, layout, faults, seed);
    let mut restarted = 0;
    for _ in 0..STEPS_MAX {
        for nth in 0..net.threads.len() {
            if net.chance(300) {
                net.ask(nth)?;
            }
            if net.chance(100) {
                net.fetch(nth)?;
            }
        }
        if restarted < restarts && net.chance(often) {
            restarted += 1;
            if replaced && restarted % 3 == 1 {
                net.replace_switch();
            } else {
                let nth = net.random.next() as usize % net.threads.len();
                net.restart(nth);
            }
        }
        net.step();
        if net.is_done() {
            let requests = (net.threads.len() * REQUESTS) as u64;
            let mut happened = Happened { requests, restarts: restarted, ..Happened::default() };
            for nth in 0..net.threads.len() {
                net.threads[nth].history.end(net.span(nth))?;
                happened.again += net.sent(nth, 0);
                happened.reads += net.sent(nth, Phase::PoolRead as u8);
                happened.writes += net.threads[nth].history.writes();
            }
            let unexpected = ["bad_frame", "bad_opcode", "bad_data", "corrupt"];
            for reason in unexpected {
                if net.rig.drops(&format!("cowbird_{reason}")) > 0 {
                    return Err(format!("{:?}", net.rig.all_drops()));
                }
            }
            happened.waits += net.rig.drops("cowbird_waits");
            happened.gaps += net.rig.drops("cowbird_gap");
            if !net.to_controller.is_empty() {
                return Err("a request was refused".into());
            }
            return Ok(happened);
        }
    }
    Err(format!("not done: {:?}", net.rig.all_drops()))
}

#[test]
fn histories_are_in_order_whatever_happens() {
    let mut sum = Happened::default();
    for seed in 0..seeds() {
        let built = &BUILT[seed as usize % BUILT.len()];
        let happened = run(built, seed).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        sum.requests += happened.requests;
        sum.restarts += happened.restarts;
        sum.again += happened.again;
        sum.waits += happened.waits;
        sum.gaps += happened.gaps;
        sum.reads += happened.reads;
        sum.writes += happened.writes;
    }
    println!("{sum:?}");
    // Events that never happened were not tested.
    assert!(sum.again > 100 && sum.waits > 100 && sum.gaps > 100, "{sum:?}");
    assert!(sum.reads > 1_000 && sum.writes > 1_000, "{sum:?}");
}

/// The programs for Tofino send the frames that v1model's sends, and drop others for the same reasons.
#[test]
fn all_architectures_send_the_same_frames() {
    for (nth, in_flight) in [1, 4, 16].into_iter().enumerate() {
        let twins = [Arch::Tna, Arch::T2na].map(|arch| built_on(in_flight, arch));
        for seed in 0..seeds() / 4 {
            run_beside(&BUILT[nth], &twins, seed).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        }
    }
}

/// Beside both other protocols, which share its passes and its stages, the second generation's program does so, too.
#[test]
fn the_engine_sends_the_same_frames_beside_other_protocols() {
    for (mode, edm) in [("clock", "matched"), ("counter", "timed-dst")] {
        let tables = format!("[pl2]\nmode = \"{mode}\"\n[edm]\nmode = \"{edm}\"\nmemory = [\"h3\"]");
        let variants: [&'static str; 2] = match edm {
            "matched" => ["edm-matched", "pl2-clock"],
            _ => ["edm-timed-dst", "pl2-counter"],
        };
        let [model, twin] = [Arch::V1model, Arch::T2na].map(|arch| described(8, &tables, &variants, arch));
        for seed in 0..seeds() / 4 {
            run_beside(&model, std::slice::from_ref(&twin), seed)
                .unwrap_or_else(|wrong| panic!("{mode}, {edm}, seed {seed}: {wrong}"));
        }
    }
}

/// Mistakes in the program: the original text, and the wrong one.
const MISTAKES: [(&str, &str, &str); 9] = [
    (
        "an entry does not wait for those of the other kind",
        "kind_before == meta.cowbird.kind || meta.cowbird.position == meta.cowbird.ready",
        "kind_before != COWBIRD_NO_KIND",
    ),
    (
        "packets pass in any order",
        "passed_before == meta.cowbird.count && passed_before != asked_before;",
        "passed_before != 0xABCDEF;",
    ),
    ("a read is told done before it is", "= meta.cowbird.reads;\n", "= meta.cowbird.reads + 1;\n"),
    (
        "writes are counted when their data is there",
        "meta.cowbird.phase == COWBIRD_POOL_WRITE && (bit<64>) news <= COWBIRD_WINDOW ? news : 0",
        "meta.cowbird.phase == COWBIRD_PAYLOAD ? 24w1 : 0",
    ),
    (
        "entries are taken in any order",
        "meta.cowbird.position[23:0] == meta.cowbird.count &&",
        "meta.cowbird.position[23:0] <= meta.cowbird.count &&",
    ),
    (
        "nothing starts again",
        "meta.cowbird.late = {{now}} - stamp_before > COWBIRD_TIMEOUT",
        "meta.cowbird.late = false",
    ),
    (
        "an entry is taken whatever its number",
        "hdr.cowbird_entry.requestId[23:0] == meta.cowbird.number;",
        "hdr.cowbird_entry.requestId[23:0] != 0xABCDEF;",
    ),
    ("an entry that is not there ends the set", "if (guessed && !named) {", "if (guessed && false) {"),
    ("data goes eight bytes too far", "= meta.cowbird.address;", "= meta.cowbird.address + 8;"),
];

#[test]
fn mistakes_of_a_program_are_seen() {
    for (mistake, right, wrong) in MISTAKES {
        let right = right.replace("{{now}}", "standard_metadata.ingress_global_timestamp");
        let text = BUILT[2].p4();
        assert!(text.contains(&right), "{mistake}: the program has changed");
        let built = BUILT[2].with_text(&text.replace(&right, wrong));
        let seen = (0..12).filter(|seed| run(&built, *seed).is_err()).count();
        assert!(seen >= 3, "{mistake}: seen in {seen} of 12 seeds");
    }
}
