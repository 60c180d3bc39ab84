//! The switch runs what the text says and knows nothing of PL2: with every identifier renamed and the
//! EtherTypes exchanged, the same frames have the same fate.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::*;
use p4rack_codegen::Scheme;
use p4rack_wire::pl2::{Control, Kind};
use p4rack_wire::{EtherType, MacAddr, Nanos};
use std::collections::HashMap;

const PL2_ETHER_TYPE: [u8; 2] = [0x88, 0xb5];
const OTHER_PL2_ETHER_TYPE: [u8; 2] = [0x9a, 0xbc];
const VLAN_ETHER_TYPE: [u8; 2] = [0x81, 0x00];
const OTHER_VLAN_ETHER_TYPE: [u8; 2] = [0x77, 0x07];

/// Words that are the language's or the architecture's, not the program's.
const LANGUAGE: &[&str] = &[
    "accept",
    "action",
    "actions",
    "apply",
    "bit",
    "bool",
    "bytes",
    "const",
    "control",
    "counter",
    "count",
    "CounterType",
    "default",
    "default_action",
    "defaultonly",
    "egress_port",
    "egress_rid",
    "egress_spec",
    "else",
    "emit",
    "error",
    "exact",
    "execute_meter",
    "exit",
    "extract",
    "false",
    "field_list",
    "header",
    "if",
    "in",
    "ingress_global_timestamp",
    "ingress_port",
    "inout",
    "isValid",
    "key",
    "lookahead",
    "main",
    "mark_to_drop",
    "mcast_grp",
    "meter",
    "MeterType",
    "miss",
    "name",
    "NoAction",
    "NoError",
    "out",
    "packet_in",
    "packet_length",
    "packet_out",
    "packets",
    "packets_and_bytes",
    "parser",
    "parser_error",
    "pkginfo",
    "priority",
    "controller_header",
    "read",
    "register",
    "resubmit_preserving_field_list",
    "return",
    "select",
    "setValid",
    "size",
    "standard_metadata_t",
    "state",
    "start",
    "struct",
    "table",
    "transition",
    "true",
    "typedef",
    "V1Switch",
    "V1MODEL_METER_COLOR_RED",
    "version",
    "write",
];

/// Gives every identifier of the program another name.
fn rename(p4: &str) -> String {
    let mut names: HashMap<&str, String> = HashMap::new();
    let mut text = String::new();
    for line in p4.lines() {
        let (code, comment) = line.split_at(line.find("//").unwrap_or(line.len()));
        if code.starts_with("#include") || code.starts_with("@pkginfo") {
            text.push_str(code);
        } else {
            for (i, part) in code.split('"').enumerate() {
                // Odd parts are string literals.
                if i % 2 == 1 {
                    text.extend(["\"", part, "\""]);
                } else {
                    rename_code(part, &mut names, &mut text);
                }
            }
        }
        text.push_str(comment);
        text.push('\n');
    }
    assert!(names.len() > 80, "only {} names", names.len());
    text
}

fn rename_code<'t>(code: &'t str, names: &mut HashMap<&'t str, String>, text: &mut String) {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = code;
    while !rest.is_empty() {
        let word_end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(word_end);
        if word.is_empty() {
            let other_end = rest.find(is_word).unwrap_or(rest.len());
            text.push_str(&rest[..other_end]);
            rest = &rest[other_end..];
            continue;
        }
        if word.starts_with(|c: char| c.is_ascii_digit()) || LANGUAGE.contains(&word) {
            text.push_str(word);
        } else {
            let fresh = format!("q{}", names.len());
            text.push_str(names.entry(word).or_insert(fresh));
        }
        rest = after;
    }
}

/// The program with other names and other EtherTypes.
fn disguised(built: &Built) -> Built {
    let p4 = built.p4().replace("0x8100", "0x7707").replace("0x88B5", "0x9ABC");
    let p4 = rename(&p4);
    for name in ["pl2", "reserv", "RSV", "vlan"] {
        let code: String = p4.lines().filter(|line| !line.starts_with("@pkginfo")).map(code_of).collect();
        let code = code.replace("resubmit_preserving_field_list", "");
        assert!(!code.contains(name), "{name} is left");
    }
    built.with_text(&p4)
}

fn code_of(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

/// Exchanges the EtherTypes of a frame of the original for the disguised program's, or back.
fn translate(frame: &mut [u8], at: usize, pairs: &[([u8; 2], [u8; 2])]) {
    let Some(ether_type) = frame.get(at..at + 2) else { return };
    let Some((from, to)) = pairs.iter().find(|(from, _)| from == ether_type) else { return };
    let is_vlan = [VLAN_ETHER_TYPE, OTHER_VLAN_ETHER_TYPE].contains(from);
    frame[at..at + 2].copy_from_slice(to);
    if is_vlan {
        translate(frame, at + 4, &pairs[1..]);
    }
}

#[test]
fn renamed_programs_behave_the_same() {
    for (scheme, mode) in [(Scheme::PL2_COUNTER, "counter"), (Scheme::PL2_CLOCK, "clock")] {
        let pl2 = format!("mode = \"{mode}\"\nt = 2\ndrop_threshold = 3\ncontrol_per_slot = 1");
        let built = Built::new(rack(&["100 Mb/s"; 4], &pl2), scheme);
        let (mut original, mut other) = (Rig::new(&built), Rig::new(&disguised(&built)));
        let there = [(VLAN_ETHER_TYPE, OTHER_VLAN_ETHER_TYPE), (PL2_ETHER_TYPE, OTHER_PL2_ETHER_TYPE)];
        let back = there.map(|(from, to)| (to, from));
        for (i, (port, frame)) in traffic(&built).into_iter().enumerate() {
            let step = Nanos(2_000 * (i as u64 % 5));
            original.now += step;
            other.now += step;
            let offset = if port == built.rack.switch.cpu_port { 2 } else { 0 };
            let mut translated = frame.clone();
            translate(&mut translated, offset + 12, &there);
            let mut expected = original.send(port, &frame);
            let mut sent = other.send(port, &translated);
            let mut replies = [Vec::new(), Vec::new()];
            assert_eq!(original.switch.poll_cpu(&mut replies[0]), other.switch.poll_cpu(&mut replies[1]));
            translate(&mut replies[1], 14, &back);
            for (_, frame) in &mut sent {
                translate(frame, 12, &back);
            }
            expected.sort();
            sent.sort();
            assert_eq!(sent, expected, "{scheme}: frame {i}");
            assert_eq!(replies[1], replies[0], "{scheme}: frame {i}");
        }
        assert_eq!(other.all_drops(), original.all_drops());
        assert_eq!((other.demoted(), other.refused()), (original.demoted(), original.refused()));
        for port in 0..=511 {
            for register in ["RackIngress.pl2.in_reservation", "RackIngress.pl2.out_reservation"] {
                assert_eq!(other.register(register, port), original.register(register, port));
            }
        }
        // The traffic covers everything: it meets every refusal.
        let met: Vec<&str> = original.all_drops().into_iter().map(|(reason, _)| reason).collect();
        let all: Vec<&str> = built.runs().drop_reasons().iter().map(|reason| reason.name).collect();
        assert_eq!(met, all, "{scheme}");
    }
}

/// Frames of all sorts, good and bad, by a small generator of pseudo-random numbers.
fn traffic(built: &Built) -> Vec<(u16, Vec<u8>)> {
    let rack = &built.rack;
    let mut seed = 1u32;
    let mut random = |n: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) % n
    };
    let mut frames = Vec::new();
    for _ in 0..6000 {
        let (from, to) = (1 + random(4) as u16, 1 + random(4) as u16);
        frames.push(match random(16) {
            0..=4 => {
                let what = request(random(6) as u8, random(24).saturating_sub(18) as u8);
                let what = Control { unsolicited: random(2) as u8, ..what };
                (from, control(rack, from, mac(rack, to), what))
            }
            5..=7 => (from, data(rack, from, to, random(2) as u8, random(2) == 0, 900)),
            8 => (from, plain(mac(rack, from), mac(rack, to), EtherType::IPV4, &[3; 1200])),
            9 => (from, plain(mac(rack, from), MacAddr::BROADCAST, EtherType::ARP, &[])),
            10 => (from, plain(mac(rack, from), MacAddr([2, 9, 9, 9, 9, 9]), EtherType::IPV6, &[])),
            11 => (from, rsv(rack, to, from, 1, 0)),
            12 => {
                let what = Control {
                    version: random(3) as u8,
                    kind: random(16) as u8,
                    ..request(random(6) as u8, 0)
                };
                (from, control(rack, from, mac(rack, to), what))
            }
            13 => {
                let mut frame = rsv(rack, from, to, 1, 0);
                frame.truncate(random(40) as usize);
                (from, frame)
            }
            14 => {
                let mut frame = management(rack, Kind::MgmtWrite as u8, 0, 1, 1);
                frame[6..12].copy_from_slice(&mac(rack, from).0);
                (from, frame)
            }
            _ => {
                let kind = [Kind::MgmtRead, Kind::MgmtWrite, Kind::MgmtReset, Kind::MgmtForget]
                    [random(4) as usize] as u8;
                let mut frame = vec![0, 0];
                frame.extend(management(rack, kind, random(3) as u8, random(1024) as u16, random(9)));
                (rack.switch.cpu_port, frame)
            }
        });
    }
    frames
}
