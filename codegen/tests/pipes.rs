//! On a chip, registers belong to a pipe: racks whose hosts are in several are refused where a protocol keeps registers.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_codegen::{Arch, Rack, Scheme, generate};
use std::path::Path;

const CHIPS: [Arch; 2] = [Arch::Tna, Arch::T2na];

/// An example with its hosts at these ports.
fn example(name: &str, ports: &[u16]) -> Rack {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name);
    let mut rack = Rack::load(path).unwrap_or_else(|error| panic!("{error}"));
    assert!(ports.len() >= rack.hosts.len(), "{name} has {} hosts", rack.hosts.len());
    for (host, port) in rack.hosts.iter_mut().zip(ports) {
        (host.port, host.link) = (*port, *port);
    }
    rack
}

/// Examples, and the schemes that each is tried with: every one that keeps registers.
fn examples() -> [(&'static str, Vec<Scheme>); 3] {
    let edm = [Scheme::EDM_TIMED_DST, Scheme::EDM_TIMED, Scheme::EDM_CALENDAR, Scheme::EDM_MATCHED];
    [
        ("pl2-incast.toml", vec![Scheme::PL2_CLOCK, Scheme::PL2_COUNTER]),
        ("edm-kv.toml", edm.to_vec()),
        ("cowbird-switch.toml", vec![Scheme::COWBIRD]),
    ]
}

/// Why nothing is generated.
fn refused(rack: &Rack, scheme: Scheme, arch: Arch) -> String {
    generate(rack, scheme, arch).unwrap_err().to_string()
}

#[test]
fn schemes_with_registers_refuse_hosts_in_several_pipes_but_clocks() {
    // Two pipes, several of which the first one occurs again, and a host that alone is elsewhere.
    for ports in [[2, 131, 260, 389, 6, 7], [131, 2, 132, 3, 133, 4], [2, 3, 4, 5, 6, 128]] {
        for (name, schemes) in examples() {
            let hosts = example(name, &ports).hosts.len();
            let ports =
                if hosts < 6 { [&ports[6 - hosts..], &ports[..6 - hosts]].concat() } else { ports.to_vec() };
            let rack = example(name, &ports);
            let other = rack.hosts.iter().position(|host| host.port / 128 != ports[0] / 128).unwrap();
            for scheme in schemes {
                if [Scheme::PL2_CLOCK, Scheme::EDM_TIMED_DST].contains(&scheme) {
                    assert!(CHIPS.iter().all(|arch| generate(&rack, scheme, *arch).is_ok()), "{ports:?}");
                    continue;
                }
                for arch in CHIPS {
                    let error = refused(&rack, scheme, arch);
                    let start = format!("rack {}: {scheme} is not generated for {arch}: it keeps", rack.name);
                    assert!(error.starts_with(&start), "{error}");
                    for n in [0, other] {
                        let (host, pipe) = (&rack.hosts[n], ports[n] / 128);
                        let named = format!("{} (host[{n}].port = {}) in pipe {pipe}", host.name, host.port);
                        assert!(error.contains(&named), "{error}");
                    }
                    assert!(
                        error.ends_with("ports of one pipe, such as 1 to 127, or use arch = \"v1model\""),
                        "{error}"
                    );
                }
                assert!(generate(&rack, scheme, Arch::V1model).is_ok(), "{scheme}");
            }
            for arch in CHIPS {
                assert!(generate(&rack, Scheme::L2, arch).is_ok(), "plain switching keeps nothing of a link");
            }
        }
    }
}

/// Management frames, and those that set Cowbird's registers, come by the controller's port.
#[test]
fn hosts_have_to_be_in_the_pipe_of_the_controllers_port() {
    let first = |pipe: u16| [3, 4, 5, 8, 9, 10].map(|port| 128 * pipe + port);
    for (name, schemes) in examples() {
        for scheme in schemes {
            for arch in CHIPS {
                let outcome = |pipe, cpu_port| {
                    let mut rack = example(name, &first(pipe));
                    rack.switch.cpu_port = cpu_port;
                    generate(&rack, scheme, arch)
                };
                let chip = p4rack_codegen::sde::cpu_port(arch);
                for (pipe, cpu_port) in [(0, 510), (1, 510), (3, 510), (0, chip), (1, 128 + chip)] {
                    assert!(outcome(pipe, cpu_port).is_ok(), "{scheme}, {arch}, pipe {pipe}, {cpu_port}");
                }
                for (pipe, cpu_port) in [(1, chip), (2, 510), (3, chip)] {
                    let error = outcome(pipe, cpu_port).unwrap_err().to_string();
                    assert!(
                        error.contains(&format!("by frames of switch.cpu_port = {cpu_port},")),
                        "{error}"
                    );
                    assert!(
                        error.contains(&format!("port = {}) in pipe {pipe} is in another", first(pipe)[0])),
                        "{error}"
                    );
                    assert!(error.ends_with("give all hosts ports from 1 to 127"), "{error}");
                }
            }
        }
    }
}
