//! Programs for TNA: tests that need more than a packet and its output.

use crate::common;

use p4rack_p4::ir::{ActionCall, InstanceId, InstanceKind, Program, TableId};
use p4rack_switch::{
    Config, CounterData, EntryRef, Pipeline, Pipes, PortConfig, Replica, SmootherConfig, Stats, Switch,
    TableEntry,
};
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

/// A switch with a port in each of four pipes: 1, 129, 257 and 385.
fn four_pipes(text: &str) -> (Switch, Program) {
    let ports =
        (0..4).map(|pipe| PortConfig::new(pipe * 128 + 1, 0)).chain([PortConfig::new(3, 0)]).collect();
    (switch(text, Config { ports, ..Config::default() }), common::compile(text))
}

fn instance(program: &Program, name: &str) -> InstanceId {
    InstanceId(program.instances.iter().position(|found| found.named.name == name).expect(name) as u32)
}

fn pass(switch: &mut Switch, port: u16, frame: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    switch.forward_frame(port, frame, Nanos(1), &mut out).map(|_| out)
}

#[test]
fn each_pipe_has_cells_of_its_own() {
    let (mut switch, program) = four_pipes(include_str!("../../tests/tna/counter.p4"));
    assert_eq!(switch.pipes(), 4);
    let cells = instance(&program, "I.cells");
    for (port, frames) in [(1, 1), (129, 2), (385, 3)] {
        for _ in 0..frames {
            pass(&mut switch, port, &[0, 1, 0, 0]).expect("is sent");
        }
    }
    let of = |switch: &mut Switch, pipes: &[usize]| {
        let read = |switch: &mut Switch| switch.counter_read(cells, 1).expect("a counter").packets;
        switch.within(Pipes::of(pipes.iter().copied()), read).expect("pipes")
    };
    assert_eq!([0, 1, 2, 3].map(|pipe| of(&mut switch, &[pipe])), [1, 2, 0, 3]);
    assert_eq!(of(&mut switch, &[1, 3]), 5);
    assert_eq!(switch.counter_read(cells, 1).expect("a counter").packets, 6, "the sum");
    // A value written to all is read from all.
    let nine = CounterData { packets: 9, bytes: 900 };
    switch.counter_write(cells, 1, nine).expect("a counter");
    assert_eq!(switch.counter_read(cells, 1), Ok(nine));
    assert_eq!(of(&mut switch, &[0]), 9);
    let missing = switch.within(Pipes::of([4]), |_| ());
    assert!(missing.is_err_and(|error| error.to_string().contains("0 to 3")));
}

#[test]
fn registers_are_written_in_all_pipes_and_read_in_one() {
    let (mut switch, program) = four_pipes(include_str!("../../tests/tna/two_results.p4"));
    let register = program.instances.iter().position(|i| matches!(i.kind, InstanceKind::Register { .. }));
    let register = InstanceId(register.expect("a register") as u32);
    let read = |switch: &mut Switch, pipe: usize| {
        let value = switch.within(Pipes::of([pipe]), |switch| switch.register_read(register, 0));
        value.expect("a pipe").expect("a cell")
    };
    switch.register_write(register, 0, &5u8.into()).expect("a cell");
    switch
        .within(Pipes::of([2]), |switch| switch.register_write(register, 0, &7u8.into()))
        .expect("a pipe")
        .expect("a cell");
    assert_eq!([0, 1, 2, 3].map(|pipe| read(&mut switch, pipe)), [5u8, 5, 7, 5].map(Into::into));
    assert_eq!(switch.register_read(register, 0), Ok(5u8.into()), "that of the first pipe");
    let first = Pipes::of([0, 1]);
    switch
        .within(first, |switch| switch.register_write(register, 0, &0u8.into()))
        .expect("a pipe")
        .expect("a cell");
    assert_eq!(switch.register_read(register, 0), Ok(7u8.into()), "that of the first pipe where it isn't 0");
}

#[test]
fn entries_are_alike_in_all_pipes_unless_one_is_meant() {
    let (mut switch, program) = four_pipes(include_str!("../../tests/tna/direct_register.p4"));
    let table = TableId(program.tables.iter().position(|t| t.named.name == "I.t").expect("a table") as u32);
    let entry = |key: u64| TableEntry::new(vec![common::exact(key)], ActionCall { action: 0, args: vec![] });
    let note = |switch: &mut Switch, port: u16, key: u8, new: u8| {
        pass(switch, port, &[key, 0, 0, new]).expect("is sent")[1]
    };
    switch.insert(table, entry(1)).expect("has room");
    // Elements of an entry are each pipe's own: 3 at first.
    assert_eq!((note(&mut switch, 1, 1, 10), note(&mut switch, 129, 1, 20)), (3, 3));
    assert_eq!((note(&mut switch, 1, 1, 11), note(&mut switch, 129, 1, 21)), (10, 20));
    // An entry of pipe 1 alone: the others' packets miss it.
    let second = Pipes::of([1]);
    switch.within(second, |switch| switch.insert(table, entry(2))).expect("a pipe").expect("has room");
    assert_eq!((note(&mut switch, 1, 2, 30), note(&mut switch, 129, 2, 31)), (3, 3));
    assert_eq!((note(&mut switch, 1, 9, 0), note(&mut switch, 129, 9, 0)), (30, 3), "the default entry's");
    assert_eq!(switch.entries(table).expect("a table").len(), 1, "of the first pipe");
    // Now they differ: a change of all is refused if it would have another effect in one of them.
    let refused = switch.insert(table, entry(2)).expect_err("exists in pipe 1");
    assert!(refused.to_string().contains("the pipes differ in table I.t"), "{refused}");
    assert!(switch.delete(table, &[common::exact(2)], 0).is_err());
    let rest = Pipes::of([0, 2, 3]);
    switch.within(rest, |switch| switch.insert(table, entry(2))).expect("pipes").expect("has room");
    switch.delete(table, &[common::exact(2)], 0).expect("is in all");
    for pipe in 0..4 {
        let left = switch.within(Pipes::of([pipe]), |switch| switch.entries(table).expect("a table").len());
        assert_eq!(left, Ok(1));
    }
}

#[test]
fn an_entry_is_idle_if_no_pipe_uses_it() {
    let text = include_str!("../../tests/tna/counter.p4")
        .replace("counters = hits;", "counters = hits; idle_timeout = true;");
    let entry = |key: u64, idle_timeout_ns| TableEntry {
        idle_timeout_ns,
        ..TableEntry::new(vec![common::exact(key)], ActionCall { action: 0, args: vec![] })
    };
    let (all, two) = (Pipes::ALL, Pipes::of([0, 1]));
    for (pipes, other_first) in [(all, false), (two, false), (two, true)] {
        let (mut switch, program) = four_pipes(&text);
        let place = program.tables.iter().position(|t| t.named.name == "I.t").expect("a table");
        let table = TableId(place as u32);
        if other_first {
            // The entry has another row in pipe 1.
            let other = |switch: &mut Switch| switch.insert(table, entry(2, 0));
            switch.within(Pipes::of([1]), other).expect("a pipe").expect("has room");
        }
        let insert = |switch: &mut Switch| switch.insert(table, entry(1, 10_000_000));
        switch.within(pipes, insert).expect("pipes").expect("has room");
        let mut out = Vec::new();
        switch.forward_frame(129, &[1, 0, 0, 0], Nanos(8_000_000), &mut out);
        switch.poll_transmit(Nanos(12_000_000), &mut out);
        assert_eq!(switch.poll_idle(), None, "pipe 1 has used it");
        assert_eq!(switch.last_hit(table, &[common::exact(1)], 0), Ok(Nanos(8_000_000)));
        switch.poll_transmit(Nanos(18_000_000), &mut out);
        let idle = switch.poll_idle().expect("is idle");
        let found = (idle.table, idle.pipe, idle.pipes, idle.last_hit);
        assert_eq!(found, (table, 0, pipes, Nanos(8_000_000)));
        assert_eq!(switch.poll_idle(), None, "once");
    }
}

#[test]
fn filters_are_configured_by_cell_and_by_entry() {
    let (mut switch, program) = four_pipes(include_str!("../../tests/tna/filters.p4"));
    let (low, early) = (instance(&program, "I.low"), instance(&program, "I.early"));
    let table =
        |name: &str| TableId(program.tables.iter().position(|t| t.named.name == name).expect(name) as u32);
    let average = SmootherConfig::Average { sums: false, gain_ns: 0.0, decay_ns: 0.0, scale_down: 1 };
    let never = SmootherConfig::EarlyDrop { time_ns: 0.0, min: 1, max: 2, probability: 1.0 };
    // The bytes behind 9 show that all four of its filters work as without a configuration.
    let all_pass = |switch: &mut Switch| pass(switch, 1, &[1, 2, 0, 0]).expect("is sent") == [1, 2, 2, 4];
    assert!(all_pass(&mut switch));
    switch.smoother_config(low, 2, Some(average)).expect("a cell");
    assert_eq!(switch.smoother_read(low, 2), Ok(Some(average)));
    assert!(!all_pass(&mut switch));
    switch.smoother_config(low, 2, None).expect("a cell");
    assert!(all_pass(&mut switch));
    switch.smoother_config(early, 2, Some(never)).expect("a cell");
    assert!(!all_pass(&mut switch));
    switch.smoother_config(early, 2, None).expect("a cell");
    // An entry's own, which ends with it.
    let entry = || TableEntry::new(vec![common::exact(1)], ActionCall { action: 0, args: vec![] });
    let keys = [common::exact(1)];
    switch.insert(table("I.t"), entry()).expect("has room");
    assert!(all_pass(&mut switch));
    switch.direct_smoother_config(table("I.t"), EntryRef::Keys(&keys, 0), Some(average)).expect("an entry");
    assert!(!all_pass(&mut switch));
    switch.delete(table("I.t"), &keys, 0).expect("is there");
    switch.insert(table("I.t"), entry()).expect("has room");
    assert!(all_pass(&mut switch));
    switch.direct_smoother_config(table("I.u"), EntryRef::Default, Some(never)).expect("the default entry");
    assert_eq!(pass(&mut switch, 1, &[1, 2, 0, 0]), Some(vec![1, 2, 2, 5]));
    for (refused, said) in [
        (switch.smoother_config(low, 2, Some(never)), "gives an average"),
        (switch.smoother_config(early, 2, Some(average)), "decides on drops"),
        (switch.smoother_config(low, 4, Some(average)), "out of range"),
        (
            switch.smoother_config(
                early,
                0,
                Some(SmootherConfig::EarlyDrop { time_ns: 0.0, min: 3, max: 2, probability: 0.1 }),
            ),
            "above the second",
        ),
        (switch.direct_smoother_config(table("I.u"), EntryRef::Default, Some(average)), "decides on drops"),
    ] {
        assert!(refused.is_err_and(|error| error.to_string().contains(said)), "{said}");
    }
}

#[test]
fn a_port_has_metadata_of_its_own() {
    let text = include_str!("../../tests/tna/counter.p4")
        .replace("struct meta_t { }", "struct meta_t { bit<16> p; }")
        .replace("pkt.advance(PORT_METADATA_SIZE);", "meta.p = port_metadata_unpack<bit<16>>(pkt);")
        .replace("tm.bypass_egress = 1;", "tm.bypass_egress = 1; hdr.h.c = meta.p;");
    for (text, most) in [(text.clone(), 8), (text.replace("<tna.p4>", "<t2na.p4>"), 16)] {
        let (mut switch, _) = four_pipes(&text);
        switch.port_metadata_set(129, &[0xab, 0xcd, 1]).expect("fits");
        assert_eq!(pass(&mut switch, 129, &[1, 2, 0, 0, 9]), Some(vec![1, 2, 0xab, 0xcd, 9]));
        assert_eq!(pass(&mut switch, 1, &[1, 2, 7, 7, 9]), Some(vec![1, 2, 0, 0, 9]));
        let all = switch.port_metadata(129).expect("a program");
        assert_eq!((all.len(), &all[..4]), (most, &[0xab, 0xcd, 1, 0][..]));
        assert!(switch.port_metadata_set(129, &vec![0; most + 1]).is_err());
        assert!(switch.port_metadata_set(512, &[1]).is_err());
    }
}
