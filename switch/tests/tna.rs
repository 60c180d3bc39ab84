//! Programs for TNA: what needs more than a packet and what it becomes.

mod common;

use p4rack_switch::{Config, Pipeline, Replica, Stats, Switch};
use p4rack_wire::Nanos;

fn switch(text: &str, config: Config) -> Switch {
    let mut switch = Switch::new(config);
    switch.load(Pipeline::compile(&common::compile(text)).expect("the switch takes it"));
    switch
}

fn drops(stats: &Stats, name: &str) -> u64 {
    stats.drops.iter().filter(|(reason, _)| reason.name() == name).map(|(_, count)| *count).sum()
}

#[test]
fn what_comes_back_leaves_turns_to_others() {
    let text = include_str!("../../tests/tna/multicast.p4");
    let mut switch = switch(text, common::config());
    let twice = [1, 2].map(|instance| Replica { port: 68, instance }).to_vec();
    switch.multicast_group_set(7, twice).expect("a group");
    switch.handle_frame(1, &[1, 0, 0, 0], Nanos(1));
    assert_eq!(switch.poll_transmit(Nanos(1), &mut Vec::new()), None);
    let passes = switch.stats(Nanos(1)).recirculations;
    assert!((200..=256).contains(&passes), "{passes}");
    assert!(switch.next_timeout().is_some_and(|due| due <= Nanos(1)), "there is more to do");
}

#[test]
fn a_copy_for_a_controller_that_is_not_there_is_counted() {
    let text = include_str!("../../tests/tna/multicast.p4")
        .replace("tm.ucast_egress_port = 9;", "tm.ucast_egress_port = 2; tm.copy_to_cpu = 1;");
    for (cpu_port, lost) in [(None, 1), (common::config().cpu_port, 0)] {
        let mut switch = switch(&text, Config { cpu_port, ..common::config() });
        switch.handle_frame(1, &[4, 0, 0, 0], Nanos(1));
        assert_eq!(switch.poll_transmit(Nanos(1), &mut Vec::new()), Some(2));
        assert_eq!(drops(&switch.stats(Nanos(1)), "no_such_port"), lost);
        assert_eq!(switch.poll_cpu(&mut Vec::new()), lost == 0);
    }
}
