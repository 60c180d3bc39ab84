//! Generated programs for chips fit into them.
#![allow(clippy::unwrap_used)]

use p4rack_codegen::rack::Rack;
use p4rack_codegen::{Arch, Scheme, generate};
use p4rack_p4::fit;
use p4rack_p4::{Options, compile};
use std::fmt::Write;

/// A rack of this many hosts, one per port.
fn rack(hosts: usize) -> Rack {
    let mut text = "name = \"r\"\n[switch]\nport_rate = \"100 Mb/s\"\n".to_owned();
    for n in 1..=hosts {
        let _ = write!(
            text,
            "[[host]]\nname = \"h{n}\"\nport = {n}\nmac = \"02:00:00:00:00:{n:02x}\"\nip = \"10.0.0.{n}/24\"\n"
        );
    }
    Rack::parse(&text, "r.toml").unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn plain_switching_for_32_and_64_ports_fits_into_both_generations() {
    for hosts in [32, 64] {
        let rack = rack(hosts);
        for arch in [Arch::Tna, Arch::T2na] {
            let generated = generate(&rack, Scheme::L2, arch).unwrap();
            let compiled = compile(&generated.p4, "r.p4", &Options::default()).unwrap();
            let chip = fit::chip_of(&compiled.program).expect("a chip's program");
            let report = fit::check(&compiled, chip);
            assert!(report.fits(), "{arch}, {hosts} hosts:\n{}", report.diagnostics());
            assert!((1..=chip.stages).contains(&report.stages()), "{}", report.text());
        }
    }
}
