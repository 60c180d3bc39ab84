//! The packet generators of TNA's pipes: timers, ports that go down, frames that come back.

use crate::common;

use p4rack_switch::{
    Config, PacketApp, PacketCounts, PacketPort, PacketTrigger, Pipeline, Pipes, PortConfig, Switch,
};
use p4rack_wire::Nanos;

/// Sends frames that begin with anything but 2 to 5 unchanged to port 3; ports of two pipes.
const FORWARD: &str = include_str!("../../tests/tna/mirror_type.p4");
const FRAME: [u8; 4] = [0xf0, 0xf1, 0xf2, 0xf3];

fn switch(text: &str) -> Switch {
    let ports = [1, 3, 129].map(|port| PortConfig::new(port, 0)).to_vec();
    let mut switch = Switch::new(Config { ports, ..Config::default() });
    switch.load(Pipeline::compile(&common::compile(text)).expect("the switch takes it"));
    for port in [68, 68 + 128] {
        let port_config = PacketPort { generates: true, matches: true };
        switch.packet_port_set(port, port_config).expect("a port of a pipe");
    }
    switch.packet_buffer_write(64, &FRAME).expect("fits");
    switch
}

fn app(trigger: PacketTrigger) -> PacketApp {
    PacketApp {
        enabled: true,
        trigger,
        offset: 64,
        length: 4,
        batches: 2,
        packets: 2,
        batch_gap_ns: 1_000,
        packet_gap_ns: 100,
        source_port: 68,
        increments_port: false,
    }
}

/// Everything that is sent until `end`, with the times.
fn until(switch: &mut Switch, end: u64) -> Vec<(u64, Vec<u8>)> {
    let (mut sent, mut out) = (Vec::new(), Vec::new());
    while let Some(now) = switch.next_timeout().filter(|due| due.0 <= end) {
        while switch.poll_transmit(now, &mut out).is_some() {
            sent.push((now.0, out.clone()));
        }
    }
    sent
}

#[test]
fn a_timer_sends_batches_in_each_pipe() {
    let mut switch = switch(FORWARD);
    switch.packet_app_set(1, app(PacketTrigger::OneShot { after_ns: 5_000 })).expect("an application");
    let sent = until(&mut switch, 100_000);
    let expected =
        |pipe: u8, batch: u8, packet: u8| [&[pipe << 3 | 1, 0, 0, batch, 0, packet][..], &FRAME].concat();
    let mut times = Vec::new();
    for (batch, packet) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        for pipe in [0, 1] {
            times.push((
                5_000 + 1_000 * u64::from(batch) + 100 * u64::from(packet),
                expected(pipe, batch, packet),
            ));
        }
    }
    assert_eq!(sent, times);
    let (config, counts) = switch.packet_app(1).expect("an application");
    assert_eq!(counts, PacketCounts { triggers: 2, batches: 4, packets: 8 }, "the sum of both pipes");
    assert!(config.is_some_and(|config| config.enabled), "it stays enabled");
    // Enabled once more, in one pipe.
    let off = PacketApp { enabled: false, ..app(PacketTrigger::OneShot { after_ns: 5_000 }) };
    switch.packet_app_set(1, off.clone()).expect("an application");
    switch.packet_counts_set(1, PacketCounts::default()).expect("an application");
    let on = PacketApp { enabled: true, ..off };
    switch
        .within(Pipes::of([1]), |switch| switch.packet_app_set(1, on))
        .expect("a pipe")
        .expect("an application");
    assert_eq!(until(&mut switch, 200_000).len(), 4);
    assert_eq!(switch.packet_app(1).expect("an application").1.triggers, 1);
}

#[test]
fn a_periodic_timer_goes_on_until_it_is_disabled() {
    let mut switch = switch(FORWARD);
    let one = PacketApp { batches: 1, packets: 1, ..app(PacketTrigger::Periodic { period_ns: 1_000 }) };
    switch
        .within(Pipes::of([0]), |switch| switch.packet_app_set(0, one.clone()))
        .expect("a pipe")
        .expect("an application");
    let times: Vec<u64> = until(&mut switch, 3_500).into_iter().map(|(time, _)| time).collect();
    assert_eq!(times, [1_000, 2_000, 3_000]);
    switch.packet_app_set(0, PacketApp { enabled: false, ..one }).expect("an application");
    assert_eq!(until(&mut switch, 9_000), []);
    // Without a port that generates, timers end for nothing.
    switch.packet_port_set(68, PacketPort::default()).expect("a port");
    let late = PacketApp { batches: 1, ..app(PacketTrigger::OneShot { after_ns: 1 }) };
    switch
        .within(Pipes::of([0]), |switch| switch.packet_app_set(2, late))
        .expect("a pipe")
        .expect("an application");
    assert_eq!(until(&mut switch, 20_000), []);
    assert_eq!(switch.packet_app(2).expect("an application").1, PacketCounts::default());
}

#[test]
fn a_port_that_goes_down_starts_them_once_until_it_is_cleared() {
    let mut switch = switch(FORWARD);
    let config = PacketApp { batches: 1, packets: 1, ..app(PacketTrigger::PortDown { ports: 1 << 1 }) };
    switch.packet_app_set(1, config).expect("an application");
    switch.set_port_up(3, false);
    switch.set_port_up(3, true);
    assert_eq!(until(&mut switch, 1_000), [], "not in the mask");
    switch.set_port_up(129, false);
    let header = |packet: u8| [&[1 << 3 | 1, 0, 0, 129, 0, packet][..], &FRAME].concat();
    assert_eq!(until(&mut switch, 1_000), [(0, header(0))]);
    switch.set_port_up(129, true);
    switch.set_port_up(129, false);
    assert_eq!(until(&mut switch, 2_000), []);
    switch.packet_port_clear(129);
    switch.set_port_up(129, true);
    switch.set_port_up(129, false);
    assert_eq!(until(&mut switch, 3_000).len(), 1);
}

#[test]
fn a_frame_that_comes_back_starts_them_if_it_matches() {
    let text = FORWARD.replace(
        "tm.ucast_egress_port = 3;",
        "tm.ucast_egress_port = hdr.h.a == 0xee && ig.ingress_port != 68 ? (PortId_t) 68 : 3;",
    );
    let mut switch = switch(&text);
    let trigger = PacketTrigger::Recirculated { value: 0xee00_0000, mask: 0xff00_ffff };
    switch.packet_app_set(1, PacketApp { batches: 1, ..app(trigger) }).expect("an application");
    switch.handle_frame(1, &[0xee, 0, 1, 1, 9], Nanos(10));
    let sent: Vec<_> = until(&mut switch, 1_000).into_iter().map(|(_, frame)| frame).collect();
    assert_eq!(sent, [[0xee, 0, 1, 1, 9]], "no match");
    switch.handle_frame(1, &[0xee, 0, 0, 0, 9], Nanos(2_000));
    let mut sent: Vec<Vec<u8>> = until(&mut switch, 9_000).into_iter().map(|(_, frame)| frame).collect();
    sent.sort();
    let header = |packet: u8| [&[1, 0, 0, 0, 0, packet][..], &FRAME].concat();
    assert_eq!(sent, [header(0), header(1), vec![0xee, 0, 0, 0, 9]]);
    assert_eq!(switch.packet_app(1).expect("an application").1.triggers, 1);
}

#[test]
fn what_no_generator_can_do_is_refused() {
    let mut switch = switch(FORWARD);
    let once = app(PacketTrigger::OneShot { after_ns: 1 });
    for (config, said) in [
        (PacketApp { offset: 16 * 1024 - 3, ..once.clone() }, "4 bytes at 16381"),
        (PacketApp { length: 0, ..once.clone() }, "0 bytes"),
        (PacketApp { batches: 0, ..once.clone() }, "0 batches"),
        (PacketApp { packets: 65_537, ..once.clone() }, "65537 packets a batch"),
        (PacketApp { source_port: 128, ..once.clone() }, "port 128"),
        (app(PacketTrigger::Periodic { period_ns: 0 }), "a period of 0 ns"),
    ] {
        let error = switch.packet_app_set(0, config).expect_err(said).to_string();
        assert!(error.contains(said), "{error}");
    }
    assert_eq!(switch.packet_apps(), 8);
    assert!(switch.packet_app_set(8, once).is_err());
    assert!(switch.packet_buffer_write(16 * 1024 - 3, &FRAME).is_err());
    assert!(switch.packet_port_set(68 + 256, PacketPort::default()).is_err());
    assert_eq!(switch.packet_buffer_read(64, 4), Ok(FRAME.to_vec()));
}
