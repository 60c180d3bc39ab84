//! A hit in a region allocates nothing.

#![allow(clippy::unwrap_used)]

#[path = "../../tests/allocations.rs"]
mod allocations;

use p4rack_hosts::region::{RegionConfig, RemoteRegion};
use p4rack_hosts::remote::{Local, Piece};

#[test]
fn hits_allocate_nothing() {
    let region = RemoteRegion::new(Box::new(Local::new(64 << 10)), &RegionConfig::new(256 << 10)).unwrap();
    let round = || {
        let mut bytes = [0; 3_000];
        for at in (0..60_000).step_by(97) {
            region.read(at, &mut bytes).unwrap();
            region.write(at, &[1; 100]).unwrap();
            region.gather(&[Piece { at, bytes: 8 }, Piece { at: 5, bytes: 9 }], &mut bytes[..17]).unwrap();
            drop(region.view(at, 8).unwrap());
            drop(region.view_mut(at, 8).unwrap());
        }
    };
    round();
    let before = allocations::count();
    round();
    assert_eq!(allocations::count(), before);
}
