//! The CPU's caches, synthetic traces, and summaries.

use p4rack_trace::synth::Recipe;
use p4rack_trace::{Access, CpuCache, MODELS, Memory, Model, Places, Watcher};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn model(name: &str) -> &'static Model {
    MODELS.iter().find(|model| model.name == name).expect("is listed")
}

fn line(line: u64, write: bool) -> Access {
    Access { address: line * 64, bytes: 8, write, thread: 0 }
}

fn fills(name: &str, lines: impl Iterator<Item = u64>) -> usize {
    let (mut cpu, mut fills) = (CpuCache::new(model(name)), 0);
    for one in lines {
        cpu.access(&line(one, false), &mut |memory| {
            fills += usize::from(matches!(memory, Memory::Fill { .. }))
        });
    }
    fills
}

#[test]
fn a_loop_over_a_megabyte_misses_once_a_line_with_three_levels() {
    let lines = || (0..20).flat_map(|_| 0..16_384u64);
    assert_eq!(fills("paper", lines()), 16_384);
    // The artifact's: the loop is longer than its only level, so nothing is ever found.
    assert_eq!(fills("fifo-48k", lines()), 20 * 16_384);
}

proptest! {
    #[test]
    fn memory_behind_the_caches_is_memory(
        accesses in prop::collection::vec((0u64..4_000, any::<bool>()), 1..3_000),
        name in prop::sample::select(vec!["small", "fifo-48k", "none"]),
    ) {
        let mut cpu = CpuCache::new(model(name));
        // Lines in the caches, and whether each is dirty.
        let mut cached = BTreeMap::new();
        for (number, write) in accesses {
            let mut seen = Vec::new();
            cpu.access(&line(number, write), &mut |memory| seen.push(memory));
            for memory in seen {
                match memory {
                    Memory::Fill { line, write: by_write } => {
                        prop_assert_eq!((line, by_write), (number, write));
                        cached.entry(line).or_insert(false);
                    }
                    Memory::WriteBack { line } => {
                        prop_assert_eq!(cached.remove(&line), Some(true), "{} was not dirty", line);
                    }
                }
            }
            if name != "none" {
                let dirty = cached.get_mut(&number);
                prop_assert!(dirty.is_some(), "line {} was never read", number);
                *dirty.expect("is here") |= write;
            }
        }
    }
}

const RECIPES: &[&str] = &[
    "kind = \"ycsb\"\nworkload = \"a\"\nlayout = \"scattered\"\nrecords = 500\noperations = 2000\nthreads = 2",
    "kind = \"ycsb\"\nworkload = \"b\"\nlayout = \"by-insertion\"\nrecords = 500\noperations = 2000",
    "kind = \"ycsb\"\nworkload = \"c\"\nlayout = \"by-popularity\"\nrecords = 500\noperations = 2000",
    "kind = \"uniform\"\nobjects = 500\noperations = 2000",
    "kind = \"etc\"\nkeys = 500\noperations = 2000",
    "kind = \"pagerank\"\nvertices = 300\nedges_per_vertex = 4\nrounds = 2",
    "kind = \"colouring\"\nvertices = 300\nedges_per_vertex = 4\nrounds = 2",
    "kind = \"regression\"\nrows = 1000\npasses = 2",
    "kind = \"mix\"\n[[parts]]\nkind = \"etc\"\nkeys = 50\noperations = 200\n[[parts]]\nkind = \"regression\"\nrows = 99",
];

fn made(text: &str) -> Vec<Access> {
    let mut accesses = Vec::new();
    Recipe::read(text, "recipe.toml").expect("is right").make(&mut |access| {
        accesses.push(access);
        true
    });
    accesses
}

#[test]
fn recipes_make_the_same_trace_each_time() {
    for text in RECIPES {
        let accesses = made(text);
        assert!(accesses.len() > 400, "{text}: {}", accesses.len());
        assert_eq!(accesses, made(text), "{text}");
        assert!(accesses.iter().all(|one| one.bytes > 0 && one.address + u64::from(one.bytes) < 1 << 48));
    }
    let seeded = RECIPES[0].to_owned() + "\nseed = 1";
    assert_ne!(made(RECIPES[0]), made(&seeded));
}

#[test]
fn a_seed_is_that_of_all_random_parts() {
    let recipe = |text: &str| Recipe::read(text, "recipe.toml").expect("is right");
    assert_eq!(recipe(&(RECIPES[0].to_owned() + "\nseed = 3")).seed(), Some(3));
    assert_eq!(recipe(RECIPES[7]).seed(), None, "nothing in a regression is random");
    let mix = RECIPES[8].replace("keys = 50", "keys = 50\nseed = 4");
    assert_eq!(recipe(&mix).seed(), Some(4));
    let mut two = recipe(&(mix + "\n[[parts]]\nkind = \"etc\"\nkeys = 50\noperations = 9\nseed = 5"));
    assert_eq!(two.seed(), None);
    two.set_seed(6);
    assert_eq!(two.seed(), Some(6));
}

#[test]
fn objects_of_a_store_do_not_overlap() {
    for text in &RECIPES[..3] {
        // Every field of every record: reads of workload C touch all.
        let mut ranges = BTreeSet::new();
        for access in made(text).iter().filter(|access| access.bytes == 100) {
            ranges.insert((access.address, access.address + u64::from(access.bytes)));
        }
        let ranges: Vec<_> = ranges.into_iter().collect();
        assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{text}");
    }
}

#[test]
fn recipes_that_are_wrong_name_the_field() {
    for (text, said) in [
        (
            "kind = \"ycsb\"\nworkload = \"d\"\nlayout = \"scattered\"\nrecords = 5\noperations = 5",
            "unknown variant `d`",
        ),
        ("kind = \"uniform\"\nobjects = 0\noperations = 5", "objects: 0; expected 1 to"),
        ("kind = \"uniform\"\nobjects = 5\noperations = 5\nsizes = 3", "unknown field `sizes`"),
        ("kind = \"mix\"\nparts = []", "parts: 0; expected 1 to 64"),
        ("kind = \"nothing\"", "unknown variant `nothing`"),
    ] {
        let error = Recipe::read(text, "recipe.toml").expect_err("is wrong").to_string();
        assert!(error.starts_with("recipe.toml: ") && error.contains(said), "{error}");
    }
}

#[test]
fn a_summary_counts_what_a_plain_search_counts() {
    let accesses = made(RECIPES[5]);
    let mut watcher = Watcher::default();
    accesses.iter().for_each(|access| watcher.add(access));
    let summary = watcher.finish();
    let mut blocks: Vec<u64> = accesses.iter().flat_map(Access::lines).map(|line| line / 8).collect();
    blocks.dedup();
    let (mut stack, mut reuse, mut first) = (Vec::new(), [0u64; 40], 0);
    for block in blocks {
        match stack.iter().rposition(|one| *one == block) {
            Some(at) => {
                reuse[((stack.len() - at) as u64).ilog2() as usize] += 1;
                stack.remove(at);
            }
            None => first += 1,
        }
        stack.push(block);
    }
    assert_eq!(summary.first_touches, first);
    assert_eq!(summary.reuse, &reuse[..summary.reuse.len()]);
    assert_eq!(summary.accesses, accesses.len() as u64);
    assert_eq!(summary.blocks_bytes, first * 512);
}

#[test]
fn places_have_no_gaps_and_keep_the_order() {
    let lines = [1u64 << 40, 5, 70, 6, 1 << 40];
    let places = Places::new(lines.into_iter());
    assert_eq!(places.pages(), 3);
    assert_eq!(places.of(5), Some(5));
    assert_eq!(places.of(70), Some(70));
    assert_eq!(places.of(1 << 40), Some(128));
    assert_eq!(places.of(1 << 20), None);
}

#[test]
fn the_examples_recipes_make_accesses() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/traces");
    let mut recipes = 0;
    for entry in std::fs::read_dir(folder).expect("is there") {
        let path = entry.expect("is readable").path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        recipes += 1;
        let (name, text) = (path.display().to_string(), std::fs::read_to_string(&path).expect("is text"));
        let (mut taken, mut pages) = (0, BTreeSet::new());
        Recipe::read(&text, &name).unwrap_or_else(|error| panic!("{error}")).make(&mut |access| {
            taken += 1;
            pages.insert(access.address >> 12);
            taken < 20_000
        });
        assert!(taken == 20_000 && pages.len() > 30, "{name}: {taken} accesses to {} pages", pages.len());
    }
    assert!(recipes >= 12, "{recipes}");
}

/// Its parts run as far ahead as has room, and end when no more is wanted. All accesses of this one would take 300 GB.
#[test]
fn a_mix_of_any_length_needs_little_memory() {
    let part = "[[parts]]\nkind = \"uniform\"\nobjects = 1000\noperations = 4_000_000_000\n";
    let mix = format!("kind = \"mix\"\nturn = 3\n{}", part.repeat(3));
    let mut threads = Vec::new();
    Recipe::read(&mix, "mix.toml").expect("is right").make(&mut |access| {
        threads.push(access.thread);
        threads.len() < 100_000
    });
    assert_eq!(threads.len(), 100_000);
    assert_eq!(threads[..12], [0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 0, 0]);
}

#[test]
fn parts_of_a_mix_keep_their_order_and_their_ends() {
    let parts = [RECIPES[0], RECIPES[7]];
    let one = |text: &str| format!("[[parts]]\n{text}\n");
    let mix = made(&format!("kind = \"mix\"\nturn = 5\n{}{}", one(parts[0]), one(parts[1])));
    for (index, text) in parts.iter().enumerate() {
        let of: Vec<Access> = mix.iter().filter(|access| access.thread == index as u16).copied().collect();
        let alone = made(text);
        assert_eq!(of.len(), alone.len());
        let base = (index as u64) << 40;
        assert!(of.iter().zip(&alone).all(|(mixed, alone)| mixed.address == alone.address + base));
    }
}
