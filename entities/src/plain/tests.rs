//! Reading in place gives the same result as the general decoder.

use super::*;
use crate::{Candidate, Checked, Program, work, writing};
use p4rack_p4::Options;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::p4::v1::field_match::FieldMatchType;
use p4rack_p4rt::p4::v1::{
    self, Entity, FieldMatch, TableAction, TableEntry, Uint128, field_match, table_action,
};
use p4rack_p4rt::schema::id_of;
use p4rack_switch::Config;
use p4rack_wire::{Nanos, SplitMix};
use std::ops::ControlFlow;
use std::sync::Arc;

const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>
header h_t { bit<48> mac; bit<128> wide; bit<32> ip; bit<9> small; bit<7> rest; }
struct headers_t { h_t h; }
struct meta_t {}
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply {} }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    direct_counter(CounterType.packets) hits;
    action none() {}
    action port(bit<9> port) { sm.egress_spec = port; }
    action two(bit<7> rest, bit<128> wide) { hdr.h.rest = rest; hdr.h.wide = wide; }
    action counted(bit<9> port) { sm.egress_spec = port; hits.count(); }
    table macs {
        key = { hdr.h.mac: exact; }
        actions = { counted; @defaultonly none; }
        counters = hits;
        size = 12;
    }
    table wides { key = { hdr.h.wide: exact; hdr.h.small: exact; } actions = { port; two; } default_action = port(1); }
    table routes { key = { hdr.h.ip: lpm; hdr.h.small: exact; } actions = { port; two; @tableonly none; } default_action = port(1); }
    table acl { key = { hdr.h.wide: ternary; hdr.h.mac: optional; hdr.h.small: exact; } actions = { port; none; } default_action = none(); }
    table ranges { key = { hdr.h.small: range; } actions = { port; } default_action = port(1); }
    table fixed {
        key = { hdr.h.mac: exact; }
        actions = { port; }
        default_action = port(1);
        const entries = { 48w1: port(2); }
    }
    apply { macs.apply(); wides.apply(); routes.apply(); acl.apply(); ranges.apply(); fixed.apply(); }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply {} }
control C(inout headers_t hdr, inout meta_t meta) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

struct Random(SplitMix);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0.below(end as u64) as usize
    }

    fn rarely(&mut self) -> bool {
        self.below(60) == 0
    }

    /// Few different values, so that entries meet; now and then one that is too wide, padded, or empty.
    fn value(&mut self, bits: i32) -> Vec<u8> {
        let bytes = (bits as usize).div_ceil(8);
        match self.below(60) {
            0 => Vec::new(),
            1 => vec![0xff; bytes + 1],
            2 => [vec![0; 20], vec![self.below(4) as u8]].concat(),
            3 => vec![0xff; bytes],
            _ => vec![self.below(4) as u8; 1 + self.below(bytes)].into_iter().map(|byte| byte & 1).collect(),
        }
    }

    fn key(&mut self, bits: i32, kind: i32) -> FieldMatchType {
        let kind = if self.rarely() { 2 + self.below(6) as i32 } else { kind };
        let value = self.value(bits);
        match kind {
            3 => {
                let mask = if self.rarely() { self.value(bits) } else { value.clone() };
                FieldMatchType::Ternary(field_match::Ternary { value, mask })
            }
            4 | 5 => {
                let prefix_len = [32, 32, 31, 8, 0, 33, -1][self.below(7)];
                let value = if self.below(3) == 0 { vec![0] } else { value };
                FieldMatchType::Lpm(field_match::Lpm { value, prefix_len })
            }
            6 => FieldMatchType::Range(field_match::Range { low: vec![0], high: value }),
            7 => FieldMatchType::Optional(field_match::Optional { value }),
            _ => FieldMatchType::Exact(field_match::Exact { value }),
        }
    }

    fn update(&mut self, program: &Program) -> Update {
        let table = &program.info.tables[self.below(program.info.tables.len())];
        let mut r#match = Vec::new();
        for field in &table.match_fields {
            let kind = match p4rack_p4rt::schema::match_type(field) {
                p4rack_p4rt::p4::config::v1::match_field::MatchType::Exact => 2,
                p4rack_p4rt::p4::config::v1::match_field::MatchType::Ternary => 3,
                p4rack_p4rt::p4::config::v1::match_field::MatchType::Lpm => 4,
                p4rack_p4rt::p4::config::v1::match_field::MatchType::Range => 6,
                _ => 7,
            };
            for _ in 0..if self.rarely() { self.below(3) } else { 1 } {
                let field_id = if self.rarely() { 9 } else { field.id };
                let given = (!self.rarely()).then(|| self.key(field.bitwidth, kind));
                r#match.push(FieldMatch { field_id, field_match_type: given });
            }
        }
        if self.rarely() {
            r#match.reverse();
        }
        let listed = &table.action_refs[self.below(table.action_refs.len())];
        let info = program.info.actions.iter().find(|action| id_of(action.preamble.as_ref()) == listed.id);
        let mut params = Vec::new();
        for param in &info.unwrap().params {
            for _ in 0..if self.rarely() { self.below(3) } else { 1 } {
                let value = self.value(param.bitwidth);
                params.push(v1::action::Param { param_id: param.id + u32::from(self.rarely()), value });
            }
        }
        let action = v1::Action { action_id: listed.id, params };
        let needs_priority = program.table(id_of(table.preamble.as_ref())).unwrap().needs_priority();
        let priority = if self.rarely() { -1 } else { i32::from(needs_priority != self.rarely()) };
        let mut entry = TableEntry {
            table_id: id_of(table.preamble.as_ref()),
            r#match,
            action: Some(TableAction { r#type: Some(table_action::Type::Action(action)) }),
            priority,
            ..Default::default()
        };
        match self.below(40) {
            0 => entry.action = None,
            1 => entry.is_default_action = true,
            2 => entry.metadata = vec![7],
            3 => entry.is_const = true,
            4 => entry.idle_timeout_ns = 5,
            5 => entry.counter_data = Some(v1::CounterData { byte_count: 0, packet_count: 3 }),
            6 => entry.table_id += 1,
            7 => entry.action = Some(TableAction { r#type: None }),
            _ => {}
        }
        let kind = if self.rarely() { self.below(6) } else { 1 + self.below(3) };
        let entity = Entity { entity: (!self.rarely()).then_some(EntityKind::TableEntry(entry)) };
        Update { r#type: kind as i32, entity: (!self.rarely()).then_some(entity) }
    }

    fn request(&mut self, program: &Program) -> WriteRequest {
        let updates = (0..self.below(12)).map(|_| self.update(program)).collect();
        let election_id = Some(Uint128 { high: 0, low: u64::MAX });
        let role = if self.rarely() { "role".into() } else { String::new() };
        let device_id = if self.rarely() { 1 << 40 } else { 7 };
        WriteRequest { device_id, role, election_id, updates, ..Default::default() }
    }

    fn spoil(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..self.below(3) {
            let at = self.below(bytes.len().max(1));
            match self.below(4) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at.min(bytes.len()), self.below(256) as u8),
                2 if !bytes.is_empty() => bytes[at] = self.below(256) as u8,
                3 if !bytes.is_empty() => bytes[at] ^= 1 << self.below(8),
                _ => {}
            }
        }
    }
}

/// All entries of a table, by way of messages.
fn generally(program: &Arc<Program>, switch: &Switch, table_id: u32) -> Vec<u8> {
    let table = program.table(table_id).unwrap();
    let entries = switch.entries_from(table.id, 0, 1000).unwrap().0;
    let entity = |found: p4rack_switch::TableEntry| {
        let action = table.action(&found.call).map(table_action::Type::Action);
        let entry = TableEntry {
            table_id,
            r#match: table.field_matches(&found.keys),
            action: Some(TableAction { r#type: action }),
            priority: found.priority,
            ..Default::default()
        };
        Entity { entity: Some(EntityKind::TableEntry(entry)) }
    };
    v1::ReadResponse { entities: entries.into_iter().map(entity).collect() }.encode_to_vec()
}

#[test]
fn what_is_read_in_place_means_what_the_general_decoder_says() {
    let Candidate { program, pipeline } = Candidate::compile(PROGRAM, "plain.p4", &Options::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let mut actions: Vec<_> =
        program.plans.tables.iter().map(|plan| (plan.table.0, plan.actions.len())).collect();
    actions.sort_unstable();
    assert_eq!(
        actions,
        [(0, 1), (1, 2), (2, 3), (3, 2)],
        "macs, wides, routes, acl, and all that entries may do"
    );
    let program = Arc::new(program);
    let (mut quick, mut slow) = (Switch::new(Config::default()), Switch::new(Config::default()));
    quick.load(pipeline.clone());
    slow.load(pipeline);
    let (mut plain, mut all_plain, mut done, mut malformed, mut read_bytes, mut general) = (0, 0, 0, 0, 0, 0);
    let mut of_tables = [[0; 3]; 4];
    for seed in 1..4000 {
        let mut random = Random(SplitMix(seed));
        let mut bytes = random.request(&program).encode_to_vec();
        if seed % 3 == 0 {
            random.spoil(&mut bytes);
        }
        let read =
            head(&bytes).and_then(|head| Ok((head, Request::decode(bytes.clone().into(), &program.plans)?)));
        let read_plain = Request::decode_plain(&bytes.clone().into(), &program.plans);
        let message = match (read, WriteRequest::decode(&bytes[..])) {
            (Err(quick), Err(slow)) => {
                assert_eq!(quick.to_string(), slow.to_string(), "seed {seed}");
                assert!(head(&bytes).is_err() || read_plain.is_none(), "seed {seed}");
                malformed += 1;
                continue;
            }
            (Ok(((head, count), request)), Ok(message)) => {
                assert_eq!(request.updates(), message.updates, "seed {seed}");
                assert_eq!(count, message.updates.len(), "seed {seed}");
                assert_eq!(head, WriteRequest { updates: Vec::new(), ..message.clone() }, "seed {seed}");
                let count = request.steps.iter().filter(|step| matches!(step, Step::Plain(_))).count();
                if count < request.steps.len() {
                    assert!(read_plain.is_none(), "seed {seed}");
                } else if count > 0 {
                    all_plain += 1;
                    assert_eq!(format!("{read_plain:?}"), format!("{:?}", Some(&request)), "seed {seed}");
                }
                plain += count;
                for step in &request.steps {
                    if let Step::Plain(one) = step {
                        of_tables[one.plan][one.verb as usize] += 1;
                    }
                }
                let mut job = writing::each(&program, request);
                let outcomes = loop {
                    if let ControlFlow::Break(outcomes) = job(&mut quick, Nanos(0)) {
                        break outcomes;
                    }
                };
                (outcomes, message)
            }
            (quick, slow) => panic!("seed {seed}: {quick:?} {slow:?}"),
        };
        let (outcomes, message) = message;
        let make = |update| work::change(&program, update).and_then(|change| change(&mut slow, Nanos(0)));
        let expected: Vec<Checked<()>> = message.updates.iter().map(make).collect();
        assert_eq!(outcomes, expected, "seed {seed}");
        done += outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        let plans = &program.plans;
        let ids = plans.tables.iter().map(|plan| plan.info_id);
        for id in ids.filter(|_| seed % 7 == 0) {
            let Some((entries, next)) = plans.read(id, &quick, 0, 1000) else {
                general += 1;
                continue;
            };
            assert_eq!(next, None);
            let mut found = Vec::new();
            plans.encode(&entries, &mut found);
            assert_eq!(found, generally(&program, &quick, id), "seed {seed}, table {id}");
            read_bytes += found.len();
        }
        for table in 0..6 {
            let all = |switch: &Switch| format!("{:?}", switch.entries(TableId(table)));
            assert_eq!(all(&quick), all(&slow), "seed {seed}, table {table}");
        }
    }
    println!(
        "{plain} plain updates, {done} made, {malformed} requests malformed, \
         {read_bytes} bytes read plainly, {general} tables had more to them"
    );
    assert!(all_plain > 50, "{all_plain} requests of plain updates alone");
    assert!(of_tables.iter().flatten().all(|count| *count > 20), "of each table, each verb: {of_tables:?}");
    assert!(plain > 1500 && done > 1500 && malformed > 300 && read_bytes > 10_000 && general > 10);
}

/// A field of messages that comes twice is both of them together: only the general decoder knows.
#[test]
fn an_entity_in_two_parts_is_not_plain() {
    let Candidate { program, .. } = Candidate::compile(PROGRAM, "plain.p4", &Options::default()).unwrap();
    let mut random = Random(SplitMix(1));
    let plain = loop {
        let request = WriteRequest { updates: vec![random.update(&program)], ..Default::default() };
        if Request::decode_plain(&request.encode_to_vec().into(), &program.plans).is_some() {
            break request.updates[0].clone();
        }
    };
    let entity = Update { r#type: 0, entity: plain.entity.clone() };
    let whole = [plain.encode_to_vec(), entity.encode_to_vec()].concat();
    let mut bytes = Vec::new();
    encoding::bytes::encode(UPDATES, &whole, &mut bytes);
    assert!(Request::decode_plain(&bytes.clone().into(), &program.plans).is_none());
    let request = Request::decode(bytes.into(), &program.plans).unwrap();
    assert!(matches!(&request.steps[..], [Step::Message(_)]));
}
