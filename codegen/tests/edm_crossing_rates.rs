//! What the ports between pipes of a chip carry of EDM's requests: racks that ask for more are refused, or warned of.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_codegen::rack::Host;
use p4rack_codegen::{Arch, Rack, Scheme, generate};

const CHIPS: [Arch; 2] = [Arch::Tna, Arch::T2na];

/// A rack of hosts of 100 Gb/s, as many in each pipe.
fn full(hosts: u16, edm: &str) -> Rack {
    let mut text = format!(
        "name = \"r\"\n[switch]\nport_rate = \"100 Gb/s\"\n[edm]\nmode = \"timed-dst\"\nmemory = [\"h0\"]\n{edm}\n"
    );
    for n in 0..4 * hosts {
        let port = 128 * (n / hosts) + 4 * (n % hosts) + 4;
        text += &format!(
            "[[host]]\nname = \"h{n}\"\nport = {port}\nmac = \"02:00:00:00:00:{n:02x}\"\nip = \"10.0.0.{}/24\"\n",
            n + 1
        );
    }
    Rack::parse(&text, "r.toml").unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn requests_that_the_ports_between_pipes_do_not_carry_are_refused() {
    for arch in CHIPS {
        let (edm, port) = (Scheme::EDM_TIMED_DST, if arch == Arch::Tna { 452 } else { 390 });
        for (hosts, description) in [
            (4, ""),
            (6, "shares = false"),
            (7, "shares = false\nchunk_bytes = 1205"),
            (2, "chunk_bytes = 512"),
        ] {
            let rack = full(hosts, description);
            assert!(generate(&rack, edm, arch).is_ok(), "{hosts} hosts, {description}");
        }
        for (hosts, description, help) in [
            (3, "chunk_bytes = 256", "write edm.chunk_bytes = 1024 or more, or"),
            (7, "shares = false", "write edm.chunk_bytes = 1205 or more, or"),
            (7, "shares = false\nchunk_bytes = 1200", "write edm.chunk_bytes = 1205 or more, or"),
            (5, "", "carries 137.4 million of 91 bytes: spread fewer and slower ports"),
        ] {
            let error = generate(&full(hosts, description), edm, arch).unwrap_err().to_string();
            for part in [
                "rack r: edm-timed-dst is not generated for",
                &format!("million requests a second through port {port} of pipe 3, which carries"),
                help,
                "spread fewer and slower ports over the pipes",
            ] {
                assert!(error.contains(part), "{error}");
            }
            let warnings = full(hosts, description).on(arch).warnings();
            assert!(warnings.iter().any(|warning| warning.contains("million requests a second")));
        }
    }
}

/// The bound on chunks takes messages for full ones; shorter ones fill the ports between pipes at a lower load.
#[test]
fn the_load_at_which_short_reads_fill_the_ports_between_pipes_is_said() {
    let warned = |hosts: u16, edm: &str| {
        let warnings = full(hosts, edm).on(Arch::Tna).warnings();
        warnings.into_iter().find(|warning| warning.contains("reads of 64 bytes"))
    };
    // 137.4 of 3 · 4 · 93.3 million, of 2 · 6 · 93.3 million and of 2 · 93.3 million.
    for (hosts, edm, percent) in [(4, "", 12), (6, "shares = false", 12), (1, "shares = false", 73)] {
        let warning = warned(hosts, edm).unwrap();
        assert!(
            warning.contains(&format!("fill port 452 when they take {percent} % of the links")),
            "{warning}"
        );
    }
    let slow = Rack {
        hosts: full(4, "")
            .hosts
            .into_iter()
            .map(|host| Host { port_rate_bps: 1_000_000_000, ..host })
            .collect(),
        ..full(4, "")
    };
    assert!(!slow.on(Arch::Tna).warnings().iter().any(|warning| warning.contains("reads of 64 bytes")));
}
