//! Generated programs for chips fit into them.
#![allow(clippy::unwrap_used)]

use p4rack_codegen::rack::{Host, Rack};
use p4rack_codegen::scheme::edm::Edm;
use p4rack_codegen::{Arch, Scheme, generate};
use p4rack_p4::fit;
use p4rack_p4::{Options, compile};
use p4rack_wire::MacAddr;
use std::fmt::Write;
use std::sync::Arc;

/// A rack of this many hosts in one pipe, one per port but those by which frames come back, with a protocol's table.
/// The first generation's pipes have 64 channels of 25 Gb/s, of which a port of 100 Gb/s takes four.
fn rack(hosts: usize, table: &str) -> Rack {
    let rate = if hosts <= 16 { 100 } else { 25 };
    let mut text = format!("name = \"r\"\n[switch]\nport_rate = \"{rate} Gb/s\"\n{table}\n");
    for n in 1..=hosts {
        let port = if n <= 60 { n + 7 } else { n + 11 };
        let _ = write!(
            text,
            "[[host]]\nname = \"h{n}\"\nport = {port}\nmac = \"02:00:00:00:00:{n:02x}\"\nip = \"10.0.0.{n}/24\"\n"
        );
    }
    Rack::parse(&text, "r.toml").unwrap_or_else(|error| panic!("{error}"))
}

/// The estimate for a rack's program.
fn report(rack: &Rack, scheme: Scheme, arch: Arch) -> fit::Report {
    let generated = generate(rack, scheme, arch).unwrap_or_else(|error| panic!("{error}"));
    let compiled = compile(&generated.p4, "r.p4", &Options::default()).unwrap();
    fit::check(&compiled, fit::chip_of(&compiled.program).expect("a chip's program"))
}

/// The stages that the program takes, of those that there are.
fn stages(rack: &Rack, scheme: Scheme, arch: Arch) -> usize {
    let report = report(rack, scheme, arch);
    assert!(report.fits(), "{scheme} on {arch}, {} hosts:\n{}", rack.hosts.len(), report.diagnostics());
    assert!(report.warnings.is_empty(), "{scheme} on {arch}:\n{}", report.warnings());
    assert!((1..=report.chip.stages).contains(&report.stages()), "{}", report.text());
    report.stages()
}

#[test]
fn pl2_takes_the_stages_that_its_documents_name() {
    let expected = [("clock", "pair", 5), ("clock", "dst", 5), ("clock", "chain", 5), ("counter", "pair", 8)];
    for (mode, clocks, expected) in expected {
        for hosts in [6, 64] {
            let rack = rack(hosts, &format!("[pl2]\nmode = \"{mode}\"\nclocks = \"{clocks}\""));
            for arch in [Arch::Tna, Arch::T2na] {
                let taken = stages(&rack, rack.scheme(), arch);
                assert_eq!(taken, expected, "{mode}, {clocks} on {arch}, {hosts} hosts");
            }
        }
    }
}

/// Hosts that take turns in the pipes.
#[test]
fn pl2_for_hosts_on_all_pipes_takes_the_stages_that_its_documents_name() {
    for (clocks, expected) in [("pair", [5, 5, 7]), ("dst", [5, 5, 6]), ("chain", [6, 6, 7])] {
        for ((hosts, gbps), expected) in [(6, 100), (64, 100), (144, 25)].into_iter().zip(expected) {
            let mut rack = rack(1, &format!("[pl2]\nmode = \"clock\"\nclocks = \"{clocks}\""));
            let rate_bps = gbps * 1_000_000_000;
            let first = Host { rate_bps, port_rate_bps: rate_bps, ..rack.hosts[0].clone() };
            rack.hosts = (0..hosts).map(|n| on_pipe(&first, n)).collect();
            for arch in [Arch::Tna, Arch::T2na] {
                let taken = stages(&rack, rack.scheme(), arch);
                assert_eq!(taken, expected, "{clocks} on {arch}, {hosts} hosts");
            }
        }
    }
}

/// A host like this one in the pipe whose turn it is.
fn on_pipe(like: &Host, number: u16) -> Host {
    let port = 128 * (number % 4) + 8 + number / 4;
    let [a, b] = number.to_be_bytes();
    Host {
        name: format!("h{number}"),
        port,
        link: port,
        mac: MacAddr([2, 0, 0, 0, a, b]),
        ip: std::net::Ipv4Addr::new(10, 0, a, b),
        ..like.clone()
    }
}

#[test]
fn edm_for_all_ports_of_a_pipe_fits_into_both_generations() {
    for (scheme, expected) in [(Scheme::EDM_TIMED_DST, [9, 8]), (Scheme::EDM_TIMED, [10, 9])] {
        for hosts in [16, 32, 64] {
            let names: Vec<String> = (1..=hosts).map(|n| format!("\"h{n}\"")).collect();
            let rack = rack(hosts, &format!("[edm]\nmode = \"timed\"\nmemory = [{}]", names.join(", ")));
            for (arch, expected) in [Arch::Tna, Arch::T2na].into_iter().zip(expected) {
                assert_eq!(stages(&rack, scheme, arch), expected, "{scheme} on {arch}, {hosts} hosts");
            }
        }
    }
}

/// Hosts that take turns in the pipes. All have memory, of 144 the first 16.
#[test]
fn edm_for_hosts_on_all_pipes_takes_the_stages_that_its_documents_name() {
    for (shares, expected) in [(false, [9, 8, 9, 8, 9, 8]), (true, [10; 6])] {
        let mut taken = Vec::new();
        for (hosts, gbps) in [(6, 100), (64, 25), (144, 10)] {
            let mut rack =
                rack(1, &format!("[edm]\nmode = \"timed-dst\"\nmemory = [\"h1\"]\nshares = {shares}"));
            let rate_bps = gbps * 1_000_000_000;
            let first = Host { rate_bps, port_rate_bps: rate_bps, ..rack.hosts[0].clone() };
            rack.hosts = (0..hosts).map(|n| on_pipe(&first, n)).collect();
            let memory = rack
                .hosts
                .iter()
                .take(if hosts == 144 { 16 } else { 64 })
                .map(|host| host.name.clone())
                .collect();
            let edm = rack.protocol::<Edm>().unwrap().clone();
            rack.protocols = vec![Arc::new(Edm { memory, ..edm })];
            taken.extend([Arch::Tna, Arch::T2na].map(|arch| stages(&rack, rack.scheme(), arch)));
        }
        assert_eq!(taken, expected, "shares: {shares}");
    }
}

/// Cells of time that are free at both links are found and taken by two passes, which have the same stages.
#[test]
fn edm_with_calendars_fits_into_both_generations() {
    for hosts in [16, 32, 64] {
        let names: Vec<String> = (1..=hosts).map(|n| format!("\"h{n}\"")).collect();
        let rack = rack(hosts, &format!("[edm]\nmode = \"calendar\"\nmemory = [{}]", names.join(", ")));
        for (arch, expected) in [Arch::Tna, Arch::T2na].into_iter().zip([10, 10]) {
            assert_eq!(stages(&rack, Scheme::EDM_CALENDAR, arch), expected, "{arch}, {hosts} hosts");
        }
    }
}

/// Windows of a chunk: a calendar's program also keeps when data is due. A pipe's memory has no room for rings of 64 hosts.
#[test]
fn edm_with_shares_in_all_modes_fits_into_both_generations() {
    let calendar = [16, 32, 64].map(|hosts| ("calendar", Scheme::EDM_CALENDAR, hosts));
    for (mode, scheme, hosts) in calendar.into_iter().chain([("matched", Scheme::EDM_MATCHED, 16)]) {
        let names: Vec<String> = (1..=hosts).map(|n| format!("\"h{n}\"")).collect();
        let table = format!("[edm]\nmode = \"{mode}\"\nwindow = 1\nmemory = [{}]", names.join(", "));
        let rack = rack(hosts, &table);
        for arch in [Arch::Tna, Arch::T2na] {
            assert_eq!(stages(&rack, scheme, arch), 11, "{scheme} on {arch}, {hosts} hosts");
        }
    }
}

/// Protocols whose frames are different ones share stages: together they take hardly more than one of them alone.
#[test]
fn pl2_beside_edm_takes_the_stages_that_its_documents_name() {
    for (pl2, clocks, edm, expected) in [
        ("clock", "pair", "timed-dst", [Some(10), Some(9)]),
        ("clock", "dst", "timed-dst", [Some(9), Some(9)]),
        ("clock", "chain", "timed-dst", [Some(9), Some(9)]),
        ("counter", "pair", "timed-dst", [Some(11), Some(11)]),
        ("clock", "pair", "timed", [Some(11), Some(10)]),
        ("clock", "dst", "timed", [Some(11), Some(10)]),
        ("clock", "chain", "timed", [Some(10), Some(11)]),
        ("counter", "pair", "timed", [Some(12), Some(10)]),
        ("clock", "pair", "calendar", [None, Some(15)]),
        ("clock", "dst", "calendar", [None, Some(14)]),
        ("clock", "chain", "calendar", [None, Some(14)]),
        ("counter", "pair", "calendar", [None, Some(15)]),
        ("clock", "pair", "matched", [None, Some(12)]),
        ("clock", "dst", "matched", [None, Some(12)]),
        ("clock", "chain", "matched", [None, Some(13)]),
        ("counter", "pair", "matched", [None, Some(12)]),
    ] {
        // Rings of more hosts take a stage's memory.
        let racks = if edm == "matched" { &[6][..] } else { &[6, 64] };
        for hosts in racks.iter().copied() {
            let names: Vec<String> = (1..=hosts).map(|n| format!("\"h{n}\"")).collect();
            let tables = format!(
                "[pl2]\nmode = \"{pl2}\"\nclocks = \"{clocks}\"\n[edm]\nmode = \"{edm}\"\nmemory = [{}]",
                names.join(", ")
            );
            let rack = rack(hosts, &tables);
            for (arch, expected) in [Arch::Tna, Arch::T2na].into_iter().zip(expected) {
                match expected {
                    Some(expected) => {
                        let taken = stages(&rack, rack.scheme(), arch);
                        assert_eq!(taken, expected, "{pl2}, {clocks}, {edm} on {arch}, {hosts} hosts");
                    }
                    None => assert!(generate(&rack, rack.scheme(), arch).is_err()),
                }
            }
        }
    }
}

/// The estimate takes the program, and the SDE's compiler does not.
#[test]
fn shares_of_timed_beside_another_protocol_are_warned_of_on_the_first_generation() {
    let warned = |tables: &str, arch| {
        let rack = rack(6, &format!("{tables}\nmemory = [\"h1\"]")).on(arch);
        rack.warnings().join("\n").contains("PHV")
    };
    let beside = |rest: &str| format!("[pl2]\nmode = \"clock\"\n[edm]\n{rest}");
    assert!(warned(&beside("mode = \"timed\""), Arch::Tna));
    assert!(!warned(&beside("mode = \"timed\""), Arch::T2na));
    assert!(!warned(&beside("mode = \"timed\"\nshares = false"), Arch::Tna));
    assert!(!warned(&beside("mode = \"timed-dst\""), Arch::Tna));
    assert!(!warned("[edm]\nmode = \"timed\"", Arch::Tna));
}

/// Rings of demands that wait take a stage's memory: 64 ports have room for fewer of them.
#[test]
fn edm_with_demands_that_wait_fits_where_its_documents_say_so() {
    for (hosts, more, expected) in [
        (32, "", [Some(11), Some(11)]),
        (64, "", [None, None]),
        (64, "demands = 1", [Some(11), Some(11)]),
        (64, "classes = 1", [Some(11), Some(11)]),
        (64, "demands = 2", [Some(12), Some(12)]),
        (64, "classes = 3", [Some(12), Some(12)]),
    ] {
        let names: Vec<String> = (1..=hosts).map(|n| format!("\"h{n}\"")).collect();
        let rack =
            rack(hosts, &format!("[edm]\nmode = \"matched\"\nmemory = [{}]\n{more}", names.join(", ")));
        for (arch, expected) in [Arch::Tna, Arch::T2na].into_iter().zip(expected) {
            let report = report(&rack, Scheme::EDM_MATCHED, arch);
            let stages = report.fits().then(|| report.stages());
            assert_eq!(stages, expected, "{arch}, {hosts} hosts, {more}:\n{}", report.diagnostics());
        }
    }
}

#[test]
fn cowbird_fits_into_both_generations() {
    for more in ["", "in_flight = 64", "instances = 4\nmtu = 256"] {
        let rack =
            rack(8, &format!("[cowbird]\nip = \"10.0.0.254\"\ncompute = [\"h1\"]\npool = [\"h2\"]\n{more}"));
        for arch in [Arch::Tna, Arch::T2na] {
            assert_eq!(stages(&rack, Scheme::COWBIRD, arch), 12, "{arch}, {more}");
        }
    }
}

/// The second generation has stages for the engine beside all other protocols, the first one for the engine alone.
#[test]
fn cowbird_beside_other_protocols_takes_the_stages_that_its_documents_name() {
    const PL2: &str = "[pl2]\nmode = \"clock\"\n";
    const COUNTER: &str = "[pl2]\nmode = \"counter\"\n";
    for (pl2, edm, expected) in [
        (PL2, "", 12),
        ("", "matched", 14),
        (PL2, "timed-dst", 15),
        (PL2, "timed", 15),
        (PL2, "calendar", 18),
        (PL2, "matched", 16),
        (COUNTER, "matched", 16),
    ] {
        let edm = match edm {
            "" => String::new(),
            mode => format!(
                "[edm]\nmode = \"{mode}\"\nmemory = [\"h1\", \"h2\", \"h3\", \"h4\", \"h5\", \"h6\"]\n"
            ),
        };
        let engine = "[cowbird]\nip = \"10.0.0.254\"\ncompute = [\"h1\"]\npool = [\"h2\"]";
        let rack = rack(6, &format!("{pl2}{edm}{engine}"));
        assert_eq!(stages(&rack, rack.scheme(), Arch::T2na), expected, "{}", rack.scheme());
        let refused = generate(&rack, rack.scheme(), Arch::Tna).unwrap_err().to_string();
        assert!(refused.contains("use scheme cowbird, or arch t2na"), "{refused}");
    }
}

#[test]
fn plain_switching_for_all_ports_of_a_pipe_fits_into_both_generations() {
    for hosts in [16, 32, 64] {
        let rack = rack(hosts, "");
        for arch in [Arch::Tna, Arch::T2na] {
            assert_eq!(stages(&rack, Scheme::L2, arch), 4);
        }
    }
}
