//! Hosts are configured as the rack's description says.

use p4rack_codegen::scheme::pl2::Pl2;
use p4rack_codegen::{NoParameters, Rack, Scheme, endpoint_config};
use p4rack_fabric::Config;
use std::path::Path;

fn example(name: &str) -> Rack {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name);
    Rack::load(&path).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn machines_of_all_examples_work() {
    for name in ["two-hosts.toml", "pl2-incast.toml"] {
        let rack = example(name);
        for scheme in [Scheme::L2, Scheme::PL2_COUNTER, Scheme::PL2_CLOCK] {
            for host in &rack.hosts {
                let Ok(config) = endpoint_config(&rack, host, scheme) else {
                    assert!(rack.protocols.is_empty() && scheme != Scheme::L2, "{name} {scheme}");
                    continue;
                };
                assert_eq!(config.check(), Ok(()), "{name} {scheme} {}", host.name);
                let peers = match (&config, scheme) {
                    (Config::Ethernet(config), Scheme::L2) => config.peers.len(),
                    (Config::Pl2(config), Scheme::PL2_COUNTER | Scheme::PL2_CLOCK) => config.peers.len(),
                    _ => panic!("{name} {scheme}: {config:?}"),
                };
                assert_eq!(peers, rack.hosts.len() - 1);
                let station = config.station();
                let told = (station.mac, station.rate_bps, station.catch_up);
                assert_eq!(
                    told,
                    (host.mac, host.rate_bps, rack.protocol::<Pl2>().unwrap().slot(&rack, host))
                );
            }
        }
    }
}

#[test]
fn each_parameter_of_the_description_arrives() {
    let text = "name = \"r\"\n[switch]\nport_rate = \"10 Gb/s\"\ntime_unit_ns = 3\n[pl2]\nmode = \"clock\"\nk = 3\nt = 9\n\
                slot_parts = 2\nreservations_in_flight = 2\nlanes = 5\nvid = 7\n\
                [[host]]\nname = \"a\"\nport = 1\nmac = \"02:00:00:00:00:01\"\nip = \"10.0.0.1/24\"\nforeign_percent = 40\n\
                [[host]]\nname = \"b\"\nport = 2\nmac = \"02:00:00:00:00:02\"\nip = \"10.0.0.2/24\"\nrate = \"1 Gb/s\"\n";
    let rack = Rack::parse(text, "r.toml").unwrap();
    let (a, b) = (&rack.hosts[0], &rack.hosts[1]);
    let slot = |host| rack.protocol::<Pl2>().unwrap().slot(&rack, host);
    let pl2 = |host| match endpoint_config(&rack, host, Scheme::PL2_CLOCK) {
        Ok(Config::Pl2(config)) => config,
        other => panic!("{other:?}"),
    };
    let config = pl2(a);
    assert_eq!(
        (config.k, config.t_slots, config.slot_parts, config.in_flight, config.lanes, config.vid),
        (3, 9, 2, 2, 5, 7)
    );
    assert_eq!(
        (config.station.mac, config.station.rate_bps, config.slot, config.time_unit.0),
        (a.mac, a.rate_bps, slot(a), 3)
    );
    assert_eq!((config.peers[0].mac, config.peers[0].slot), (b.mac, slot(b)));
    assert!(!config.reserve && pl2(b).reserve);
    let plain = rack.under(Scheme::L2).unwrap();
    assert_eq!(endpoint_config(&plain, b, Scheme::PL2_CLOCK), Err(NoParameters(Scheme::PL2_CLOCK)));
}
