//! The applications of `memory/examples` with a board, as `p4rack clio serve` runs it.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;
#[allow(dead_code)]
#[path = "../../memory/examples/photos.rs"]
mod photos;
#[allow(dead_code)]
#[path = "../../memory/examples/radix.rs"]
mod radix;

use clap::Parser;
use common::clio::Board;
use common::have;
use radix::{By, LEVELS, Tree};
use std::path::Path;
use std::process::Command;

/// Difference of a colour that compression makes, on average: the noise of a photo is lost.
const DIFFERENCE_MAX: f64 = 6.0;

/// A photo as Debian's decoder finds it in a JPEG file.
fn decoded(file: &Path) -> Vec<u8> {
    let output = Command::new("djpeg").args(["-pnm"]).arg(file).output().unwrap();
    assert!(output.status.success(), "{}: {}", file.display(), common::stderr(&output));
    let header = format!("P6\n{0} {0}\n255\n", photos::SIDE);
    output.stdout.strip_prefix(header.as_bytes()).unwrap().to_vec()
}

/// Mean difference of two photos' bytes.
fn difference(one: &[u8], other: &[u8]) -> f64 {
    assert_eq!(one.len(), other.len());
    let sum: u64 = one.iter().zip(other).map(|(one, other)| u64::from(one.abs_diff(*other))).sum();
    sum as f64 / one.len() as f64
}

#[test]
fn every_stored_photo_is_a_jpeg_file_of_its_client() {
    if !have("djpeg", "libjpeg-turbo-progs") {
        return;
    }
    let board = Board::start(&["--bytes", "16 MiB", "--store", "0"]);
    let folder = tempfile::tempdir().unwrap();
    let args = ["photos", "--board", &board.addr, "--photos", "3", "--keep", folder.path().to_str().unwrap()];
    let report = photos::measure(&photos::Args::parse_from(args), 3).unwrap();
    for times in [report.turns, report.together] {
        assert!(times.memory.0 > 0 && times.cpu.0 > 0 && times.memory < times.wall, "{times:?}");
    }
    for (client, nth) in (0..3).flat_map(|client| (0..3).map(move |nth| (client, nth))) {
        let file = folder.path().join(format!("client-{client}-photo-{nth}.jpg"));
        let wrong = difference(&decoded(&file), &photos::photo(client, nth));
        assert!(wrong < DIFFERENCE_MAX, "{}: {wrong}", file.display());
        let other = difference(&decoded(&file), &photos::photo(client, nth + 1));
        assert!(other > 2.0 * DIFFERENCE_MAX, "{} is another photo: {other}", file.display());
    }
}

#[test]
fn photos_beyond_a_boards_memory_are_refused() {
    let board = Board::start(&["--bytes", "1 MiB", "--store", "0"]);
    let args = photos::Args::parse_from(["photos", "--board", &board.addr, "--photos", "8"]);
    let said = photos::measure(&args, 1).unwrap_err().to_string();
    assert!(said.contains("asks for 2621440 more"), "{said}");
}

#[test]
fn a_search_in_a_radix_tree_is_one_exchange_per_level() {
    let board = Board::start(&["--bytes", "4 MiB", "--store", "0"]);
    for entries in [1, 50, 2_000] {
        let mut tree = Tree::store(&board.addr, entries).unwrap();
        // Values are compared there.
        let chases = tree.measure(By::Chases, 100).unwrap();
        let levels = u64::from(LEVELS);
        assert_eq!((chases.exchanges.min(), chases.exchanges.max()), (levels, levels), "{entries} entries");
        let reads = tree.measure(By::Reads, 100).unwrap();
        assert!(reads.exchanges.min() >= levels, "{entries} entries: {:?}", reads.exchanges);
        if entries > 1 {
            assert!(reads.exchanges.mean() > 1.5 * levels as f64, "{entries} entries: {:?}", reads.exchanges);
        }
        let absent = (entries..entries + 50).map(radix::key);
        for key in absent {
            let before = tree.exchanges();
            assert_eq!(tree.search(By::Chases, key).unwrap(), None, "key {key:#x}");
            assert!(tree.exchanges() - before <= levels);
            assert_eq!(tree.search(By::Reads, key).unwrap(), None, "key {key:#x}");
        }
    }
    // The board has executed at least these: attempts that it answers again count, too.
    let listed = board.json(&["offload", "list"]);
    let chase = listed.as_array().unwrap().iter().find(|one| one["name"] == "chase").unwrap();
    assert!(chase["calls"].as_u64().unwrap() >= 3 * 100 * u64::from(LEVELS), "{listed}");
}
