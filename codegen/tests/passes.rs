//! Programs for Tofino whose frames make more passes than the one that a chip resubmits them for: the others are by a port that
//! comes back.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::edm::*;
use common::{Built, Rig, rack};
use p4rack_codegen::{Arch, Scheme, generate};
use p4rack_wire::Nanos;
use p4rack_wire::edm;

const FULL: u32 = WINDOW;

/// EDM's `matched` on Tofino's architectures.
fn matched() -> Vec<Net> {
    let on_chips = |built: &Built| built.rack.switch.arch.is_tofino();
    built(Scheme::EDM_MATCHED, "ahead = 2").iter().filter(|built| on_chips(built)).map(Net::new).collect()
}

/// The port that comes back.
fn loop_port(arch: Arch) -> u16 {
    if arch == Arch::Tna { 68 } else { 6 }
}

/// Passes so far: resubmissions, and those by the port that comes back.
fn passes(rig: &Rig) -> (u64, u64) {
    let stats = rig.switch.stats(rig.now);
    (stats.resubmits, stats.recirculations)
}

/// Two demands wait for host 3, whose link is then free.
fn two_wait(net: &mut Net) {
    net.notify(1, 3, 0, FULL).unwrap();
    net.notify(2, 3, 0, FULL).unwrap();
    assert_eq!(net.notify(4, 3, 0, FULL), None);
    assert_eq!(net.notify(4, 3, 1, FULL), None);
    net.wait(2 * net.time(FULL.into()));
}

/// A chunk for host 3, which looks for demands that wait for it.
fn looking(net: &Net, from: u16) -> Vec<u8> {
    net.frame(from, 3, edm::PCP_DATA, &message(edm::Kind::Wreq, 0, FULL, CHUNK, CHUNK as u16))
}

#[test]
fn a_frame_is_resubmitted_once_and_then_comes_back() {
    for mut net in matched() {
        two_wait(&mut net);
        let before = passes(&net.rig);
        let frame = looking(&net, 1);
        let seen = net.send(1, &frame);
        assert_eq!((seen.grants.len(), seen.arrived.len()), (2, 1));
        let after = passes(&net.rig);
        assert_eq!((after.0 - before.0, after.1 - before.1), (1, 3), "serve; settle, serve and settle");
    }
    for arch in [Arch::Tna, Arch::T2na] {
        let rack = rack(&["100 Mb/s"; 3], "mode = \"counter\"");
        let mut rig = Rig::new(&Built::on(rack, Scheme::PL2_COUNTER, arch));
        rig.reserve_cell(1, 2, 4, 0).unwrap();
        rig.now += Nanos(1_000_000_000);
        let before = passes(&rig);
        rig.reserve_cell(1, 2, 4, 1).unwrap();
        let after = passes(&rig);
        assert_eq!((after.0 - before.0, after.1 - before.1), (1, 1), "its lane's other half has ended");
    }
}

#[test]
fn what_a_host_sends_in_front_of_a_frame_is_no_pass() {
    for mut net in matched() {
        two_wait(&mut net);
        let frame = looking(&net, 1);
        let left = [3, 0, 0, 0, 0, 0, 0, 0];
        for port in [1u16, 2, net.rig.built.rack.switch.cpu_port] {
            let came = [&port.to_be_bytes()[..], &[0; 4]].concat();
            let before = passes(&net.rig);
            let forged = [&left[..], &came, &frame].concat();
            assert_eq!(net.send(1, &forged), Seen::default());
            assert_eq!(passes(&net.rig), before);
        }
        assert_eq!(net.rig.drops("spoofed"), 3);
        assert_eq!(net.send(1, &frame).grants.len(), 2, "they wait as before");
    }
}

/// Others come between the passes of a frame, which a slow port makes longer: waiting demands are granted once all the
/// same.
#[test]
fn frames_between_passes_change_nothing_but_the_order() {
    for mut net in matched() {
        let slow = loop_port(net.rig.built.rack.switch.arch);
        two_wait(&mut net);
        net.rig.switch.set_port_rate(slow, 1_000_000_000).unwrap();
        let (first, second) = (looking(&net, 1), looking(&net, 2));
        let mut grants = net.send(1, &first).grants;
        grants.extend(net.send(2, &second).grants);
        let mut arrived = 0;
        for _ in 0..100 {
            net.wait(1_000);
            let sent = net.rig.drain();
            arrived += sent.iter().filter(|(port, _)| *port == 3).count();
            grants.extend(sent.iter().filter(|(port, _)| *port != 3).map(|(port, frame)| {
                let grant = edm::Control::parse(&frame[18..]).unwrap();
                let (id, offset, bytes, wait) = (grant.id, grant.offset, grant.bytes, grant.wait);
                Grant { port: *port, peer: 3, answer: grant.answer == 1, id, offset, bytes, wait }
            }));
        }
        let mut granted: Vec<_> = grants.iter().map(|grant| (grant.port, grant.id, grant.bytes)).collect();
        granted.sort_unstable();
        assert_eq!((granted, arrived), (vec![(4, 0, FULL), (4, 1, FULL)], 2));
        assert_eq!(net.rig.register("RackIngress.edm.waiting", 3), 0, "nobody waits");
    }
}

#[test]
fn a_rack_needs_a_port_that_comes_back() {
    let rack_of = |ports: &[u16]| {
        let hosts: String = ports
            .iter()
            .map(|n| {
                format!(
                    "[[host]]\nname = \"h{n}\"\nport = {n}\nmac = \"02:00:00:00:00:{:02x}\"\nip = \"10.0.0.{}/24\"\n",
                    n % 251,
                    n % 251
                )
            })
            .collect();
        let pl2 = "name = \"r\"\n[switch]\nport_rate = \"100 Mb/s\"\n[pl2]\nmode = \"counter\"\n";
        p4rack_codegen::Rack::parse(&format!("{pl2}{hosts}"), "r.toml").unwrap()
    };
    // Columns depend on the other declarations.
    let words = |p4: String| {
        let line = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        p4.lines().map(line).collect::<Vec<_>>().join("\n")
    };
    let outcome =
        |ports: &[u16], scheme, arch| generate(&rack_of(ports), scheme, arch).map(|made| words(made.p4));
    let constant = |port: u16| format!("const port_t LOOP_PORT = {port};");
    let counter = Scheme::PL2_COUNTER;
    assert!(outcome(&[1, 68], counter, Arch::Tna).unwrap().contains(&constant(69)));
    assert!(outcome(&[129, 130], counter, Arch::Tna).unwrap().contains(&constant(196)));
    assert!(outcome(&[2, 6], counter, Arch::T2na).unwrap().contains(&constant(7)));
    let refused = |ports, arch| outcome(ports, counter, arch).unwrap_err().to_string();
    let all = refused(&[68, 69, 70, 71], Arch::Tna);
    assert!(all.contains("(68, 69, 70, 71), and all of these are hosts': free one"), "{all}");
}
