//! A mapping, opened by a rack's description.

#![allow(clippy::unwrap_used)]

use p4rack_codegen::Rack;
use p4rack_fabric::remote::Way;
use p4rack_hosts::region::RegionConfig;
use p4rack_memory::mapping::{Faults, Mapped, MappingConfig, open, split};
use p4rack_memory::{Access, OpenError};
use std::path::Path;

fn opened((pages_bytes, region_bytes): (u64, u64)) -> Result<Mapped, OpenError> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("examples");
    let rack = Rack::load(examples.join("two-hosts.toml")).unwrap();
    let access = Access { way: Some(Way::LOCAL), reserve_bytes: 4 << 20, ..Access::new("h1", "h2") };
    // Needs no privileges.
    let config = MappingConfig { faults: Faults::InThread, ..MappingConfig::new(pages_bytes) };
    open(&rack, &access, &RegionConfig::new(region_bytes), &config)
}

#[test]
fn a_mapping_opens_by_rack_within_its_local_memory() {
    let mapping = opened(split(1 << 20)).unwrap();
    assert_eq!((mapping.bytes(), mapping.way()), (4 << 20, Way::LOCAL));
    let words = mapping.start().cast::<u64>();
    for page in 0..1_024 {
        // SAFETY: in bounds, and nothing else uses the range.
        unsafe { words.add(page * 512).write(page as u64) };
    }
    // SAFETY: as above.
    (0..1_024).for_each(|page| assert_eq!(unsafe { words.add(page * 512).read() }, page as u64));
    let statistics = mapping.statistics();
    assert!(statistics.local_bytes_max + statistics.region.local_bytes <= 1 << 20, "{statistics:?}");
    assert!(statistics.pages.evicted_dirty > 0, "{statistics:?}");
}

#[test]
fn too_little_memory_for_pages_is_an_error_that_names_the_setting() {
    let error = opened((100_000, 256 << 10)).unwrap_err();
    assert!(matches!(error, OpenError::Mapping(_)), "{error}");
    assert!(error.to_string().starts_with("pages_bytes: 100000; expected at least "), "{error}");
}
