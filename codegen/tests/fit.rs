//! Generated programs for chips fit into them.
#![allow(clippy::unwrap_used)]

use p4rack_codegen::rack::Rack;
use p4rack_codegen::{Arch, Scheme, generate};
use p4rack_p4::fit;
use p4rack_p4::{Options, compile};
use std::fmt::Write;

/// A rack of this many hosts, one per port, with PL2's usual parameters.
fn rack(hosts: usize) -> Rack {
    let mut text = "name = \"r\"\n[switch]\nport_rate = \"100 Mb/s\"\n[pl2]\nmode = \"clock\"\n".to_owned();
    for n in 1..=hosts {
        let _ = write!(
            text,
            "[[host]]\nname = \"h{n}\"\nport = {n}\nmac = \"02:00:00:00:00:{n:02x}\"\nip = \"10.0.0.{n}/24\"\n"
        );
    }
    Rack::parse(&text, "r.toml").unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn racks_of_32_and_64_ports_fit_into_both_generations() {
    let mut checked = 0;
    for hosts in [32, 64] {
        let rack = rack(hosts);
        for arch in [Arch::Tna, Arch::T2na] {
            for scheme in [Scheme::L2, Scheme::PL2_CLOCK] {
                // The generator says what an architecture can't have.
                let Ok(generated) = generate(&rack, scheme, arch) else {
                    assert_ne!(scheme, Scheme::L2, "{arch}");
                    continue;
                };
                let compiled = compile(&generated.p4, "r.p4", &Options::default()).unwrap();
                let chip = fit::chip_of(&compiled.program).expect("a chip's program");
                let report = fit::check(&compiled, chip);
                assert!(report.fits(), "{scheme} for {arch}, {hosts} hosts:\n{}", report.diagnostics());
                assert!((1..=chip.stages).contains(&report.stages()), "{}", report.text());
                checked += 1;
            }
        }
    }
    assert!(checked >= 4, "{checked}");
}
