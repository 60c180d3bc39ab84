//! The switch's expected state, and writes with known outcomes.

use crate::resources;
use crate::rig::*;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::field_match::FieldMatchType;
use p4rack_p4rt::p4::v1::packet_replication_engine_entry::Type as Pre;
use p4rack_p4rt::p4::v1::update::Type;
use p4rack_p4rt::p4::v1::*;
use p4rack_p4rt::schema::id_of;
use p4rack_wire::SplitMix;
use std::collections::{BTreeMap, BTreeSet};

/// Numbers that a seed gives.
pub struct Random(SplitMix);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(SplitMix(seed))
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.0.below(end)
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }
}

/// An update, and why it must be refused whatever the switch holds.
pub struct Attempt {
    pub update: Update,
    fault: Option<Code>,
}

/// Identifies an entity.
type Key = (&'static str, u32, String);

#[derive(Clone, Default)]
pub struct Model {
    /// Entities that can be inserted and deleted, as they read back.
    held: BTreeMap<Key, EntityKind>,
    registers: BTreeMap<i64, u8>,
    pub accepted: usize,
    pub refused: usize,
    /// Reasons, by number, for which something was refused that is no fault of the update alone.
    pub reasons: BTreeSet<i32>,
}

fn exact(name: &str, value: Vec<u8>) -> FieldMatch {
    field(name, FieldMatchType::Exact(field_match::Exact { value }))
}

/// A key of the table with this field; names are unique in the test's program but for those asked for by table.
fn field(name: &str, value: FieldMatchType) -> FieldMatch {
    let (table, key) = name.split_once(' ').unwrap();
    let info = schema().table(table).unwrap();
    let field_id = info.match_fields.iter().find(|field| field.name == key).unwrap().id;
    FieldMatch { field_id, field_match_type: Some(value) }
}

fn call(name: &str, args: &[u8]) -> Option<TableAction> {
    Some(TableAction { r#type: Some(table_action::Type::Action(action(name, args))) })
}

fn action(name: &str, args: &[u8]) -> Action {
    let info = schema().action(name).unwrap();
    let params = info
        .params
        .iter()
        .zip(args)
        .map(|(param, value)| action::Param { param_id: param.id, value: vec![*value] });
    Action { action_id: id_of(info.preamble.as_ref()), params: params.collect() }
}

fn profile() -> u32 {
    id_of(schema().info().action_profiles[0].preamble.as_ref())
}

fn address(last: u64) -> Vec<u8> {
    vec![2, 0, 0, 0, 0, last as u8]
}

impl Model {
    /// Some update.
    pub fn attempt(&self, random: &mut Random) -> Attempt {
        let kind = [Type::Insert, Type::Insert, Type::Modify, Type::Delete][random.below(4) as usize];
        let (entity, mut fault) = match random.below(9) {
            0 | 1 => self.dmac(random, kind),
            2 => self.routes(random, kind),
            3 => self.acl(random, kind),
            4 => self.hops(random, kind),
            5 => self.member(random),
            6 => self.group(random, kind),
            7 => self.multicast(random, kind),
            _ => self.other(random, kind),
        };
        let mut update = Update { r#type: kind as i32, entity: Some(Entity { entity: Some(entity) }) };
        if random.chance(40) {
            update.r#type = 0;
            fault = Some(Code::InvalidArgument);
        } else if random.chance(40) {
            update.entity = Some(Entity { entity: None });
            fault = Some(Code::InvalidArgument);
        }
        Attempt { update, fault }
    }

    /// An exact table with room for four, a direct counter and scopes of actions.
    fn dmac(&self, random: &mut Random, kind: Type) -> (EntityKind, Option<Code>) {
        let mut entry = TableEntry {
            table_id: table_id("dmac"),
            r#match: vec![exact("dmac hdr.ethernet.dst", address(random.below(7)))],
            action: call("forward", &[random.below(5) as u8]),
            metadata: vec![b'a'; random.below(3) as usize],
            ..Default::default()
        };
        let keys = kind == Type::Delete;
        let fault = match random.below(30) {
            0 => {
                entry.r#match.clear();
                Some(Code::InvalidArgument)
            }
            1 => {
                entry.priority = 3;
                Some(Code::InvalidArgument)
            }
            2 => {
                entry.r#match = vec![exact("dmac hdr.ethernet.dst", vec![1; 7])];
                Some(Code::OutOfRange)
            }
            3 => {
                entry.r#match = vec![exact("dmac hdr.ethernet.dst", Vec::new())];
                Some(Code::OutOfRange)
            }
            4 => {
                entry.table_id = table_id("dmac") + 0x4321;
                Some(Code::NotFound)
            }
            5 => {
                entry.table_id = table_id("fixed");
                Some(Code::PermissionDenied)
            }
            6 if !keys => {
                entry.action = call("via", &[1]);
                Some(Code::InvalidArgument)
            }
            7 if !keys => {
                entry.action = call("forward", &[]);
                Some(Code::InvalidArgument)
            }
            8 if !keys => {
                entry.action = call("drop", &[]);
                Some(Code::PermissionDenied)
            }
            9 if !keys => {
                entry.idle_timeout_ns = 5;
                Some(Code::InvalidArgument)
            }
            10 if !keys => {
                entry.action = None;
                Some(Code::InvalidArgument)
            }
            _ => None,
        };
        (EntityKind::TableEntry(entry), fault)
    }

    fn routes(&self, random: &mut Random, kind: Type) -> (EntityKind, Option<Code>) {
        let (last, prefix_len) = (random.below(4) as u8, 46 + random.below(3) as i32);
        let value = vec![2, 0, 0, 0, 0, last << 2];
        let lpm = |value, prefix_len| {
            field("routes hdr.ethernet.src", FieldMatchType::Lpm(field_match::Lpm { value, prefix_len }))
        };
        let (key, fault) = match random.below(8) {
            0 => (lpm(value, 49), Some(Code::InvalidArgument)),
            1 => (lpm(vec![2, 0, 0, 0, 0, 1], 46), Some(Code::InvalidArgument)),
            2 => (exact("routes hdr.ethernet.src", value), Some(Code::InvalidArgument)),
            _ => (lpm(value, prefix_len), None),
        };
        let table_id = table_id("routes");
        let action = call("pass", &[]).filter(|_| kind != Type::Delete);
        (
            EntityKind::TableEntry(TableEntry { table_id, r#match: vec![key], action, ..Default::default() }),
            fault,
        )
    }

    fn acl(&self, random: &mut Random, kind: Type) -> (EntityKind, Option<Code>) {
        let ternary = |value: u8, mask: u8| {
            let ternary = field_match::Ternary { value: vec![value], mask: vec![mask] };
            field("acl hdr.ethernet.type", FieldMatchType::Ternary(ternary))
        };
        let range = |low: u8, high: u8| {
            let range = field_match::Range { low: vec![low], high: vec![high] };
            let key = schema().table("acl").unwrap().match_fields[2].name.clone();
            field(&format!("acl {key}"), FieldMatchType::Range(range))
        };
        let mut entry = TableEntry {
            table_id: table_id("acl"),
            priority: 1 + random.below(3) as i32,
            action: call(["pass", "drop"][random.below(2) as usize], &[]),
            ..Default::default()
        };
        // In the order of the keys: that is how they read back.
        if random.chance(2) {
            entry.r#match.push(ternary(1 + random.below(2) as u8, 3));
        }
        if random.chance(2) {
            entry.r#match.push(range(random.below(2) as u8, 7));
        }
        let fault = match random.below(10) {
            0 => {
                entry.priority = 0;
                Some(Code::InvalidArgument)
            }
            1 => {
                entry.r#match = vec![ternary(4, 3)];
                Some(Code::InvalidArgument)
            }
            2 => {
                entry.r#match = vec![range(9, 7)];
                Some(Code::InvalidArgument)
            }
            3 => {
                entry.r#match = vec![ternary(0, 0)];
                Some(Code::InvalidArgument)
            }
            4 if kind != Type::Delete => {
                entry.is_const = true;
                Some(Code::InvalidArgument)
            }
            _ => None,
        };
        (EntityKind::TableEntry(entry), fault)
    }

    fn hops(&self, random: &mut Random, kind: Type) -> (EntityKind, Option<Code>) {
        let doing = match random.below(3) {
            0 => table_action::Type::ActionProfileGroupId(1 + random.below(3) as u32),
            _ => table_action::Type::ActionProfileMemberId(1 + random.below(4) as u32),
        };
        let mut entry = crate::profiles::hop(doing);
        entry.r#match = vec![exact("hops meta.tunnel", vec![random.below(2) as u8])];
        let fault = (random.chance(8) && kind != Type::Delete).then(|| {
            entry.action = call("via", &[1]);
            Code::InvalidArgument
        });
        (EntityKind::TableEntry(entry), fault)
    }

    fn member(&self, random: &mut Random) -> (EntityKind, Option<Code>) {
        let number = random.below(5) as u32;
        let fault = (number == 0).then_some(Code::InvalidArgument);
        (crate::profiles::member(number, 1 + random.below(4) as u8), fault)
    }

    fn group(&self, random: &mut Random, kind: Type) -> (EntityKind, Option<Code>) {
        let member = |number: u64, weight| action_profile_group::Member {
            member_id: number as u32,
            weight,
            watch_kind: None,
        };
        let some = |number| random.chance(2).then(|| member(number, 1 + random.below(2) as i32));
        let mut members: Vec<_> = (1..=4).filter_map(some).collect();
        let mut fault = None;
        if random.chance(8) && kind != Type::Delete {
            members = vec![member(1, 0)];
            fault = Some(Code::InvalidArgument);
        }
        let group = ActionProfileGroup {
            action_profile_id: profile(),
            group_id: 1 + random.below(3) as u32,
            members,
            max_size: 8,
        };
        (EntityKind::ActionProfileGroup(group), fault)
    }

    fn multicast(&self, random: &mut Random, kind: Type) -> (EntityKind, Option<Code>) {
        let number = random.below(4) as u32;
        let fault = (number == 0).then_some(Code::InvalidArgument);
        if random.chance(2) {
            // On the replica's own port, or twice: never.
            let backups = [1 + random.below(4) as u8, 1 + random.below(4) as u8];
            let wrong = backups.contains(&1) || backups[0] == backups[1];
            let fault = fault.or(wrong.then_some(Code::InvalidArgument));
            let keys = kind == Type::Delete && number != 0;
            return (resources::backed_group(number, 1, &backups), fault.filter(|_| !keys));
        }
        (resources::group(number, &[1, 1 + random.below(3) as u8 + 1]), fault)
    }

    /// Registers, which can only be modified, and unsupported entities.
    fn other(&self, random: &mut Random, kind: Type) -> (EntityKind, Option<Code>) {
        if random.chance(6) {
            return (EntityKind::ExternEntry(ExternEntry::default()), Some(Code::Unimplemented));
        }
        let index = random.below(18) as i64;
        let fault = match kind {
            Type::Modify => (index >= 16).then_some(Code::OutOfRange),
            _ => Some(Code::InvalidArgument),
        };
        (resources::register(Some(index), Some(&[random.below(256) as u8])), fault)
    }

    /// Makes an attempt; the codes that may answer it.
    pub fn apply(&mut self, attempt: &Attempt) -> Vec<Code> {
        let answers = match attempt.fault {
            Some(fault) => vec![fault],
            None => self.change(&attempt.update),
        };
        *(if answers == [Code::Ok] { &mut self.accepted } else { &mut self.refused }) += 1;
        answers
    }

    fn change(&mut self, update: &Update) -> Vec<Code> {
        let kind = Type::try_from(update.r#type).unwrap();
        let entity = update.entity.clone().unwrap().entity.unwrap();
        if let EntityKind::RegisterEntry(register) = &entity {
            let Some(p4_data::Data::Bitstring(value)) = register.data.clone().unwrap().data else { panic!() };
            self.registers.insert(register.index.unwrap().index, value[0]);
            return vec![Code::Ok];
        }
        let key = key(&entity);
        let there = self.held.contains_key(&key);
        // Of several faults, any may be reported.
        let mut faults = Vec::new();
        match kind {
            Type::Insert if there => faults.push(Code::AlreadyExists),
            Type::Modify | Type::Delete if !there => faults.push(Code::NotFound),
            Type::Insert if self.is_full(&key) => faults.push(Code::ResourceExhausted),
            _ => {}
        }
        if kind == Type::Delete {
            if self.users(&key).next().is_some() {
                faults.push(Code::FailedPrecondition);
            }
        } else if references(&entity).iter().any(|wanted| !self.held.contains_key(wanted)) {
            faults.push(Code::NotFound);
        }
        if !faults.is_empty() {
            self.reasons.extend(faults.iter().map(|code| *code as i32));
            return faults;
        }
        match kind {
            Type::Delete => self.held.remove(&key),
            _ => self.held.insert(key, entity),
        };
        vec![Code::Ok]
    }

    fn is_full(&self, (kind, id, _): &Key) -> bool {
        let size = match *kind {
            "entry" if *id == table_id("dmac") => 4,
            "member" => 8,
            _ => return false,
        };
        self.held.keys().filter(|(other, number, _)| (other, number) == (kind, id)).count() >= size
    }

    /// Entities that refer to an entity.
    fn users<'a>(&'a self, key: &'a Key) -> impl Iterator<Item = &'a Key> {
        self.held.iter().filter(|(_, entity)| references(entity).contains(key)).map(|(user, _)| user)
    }

    /// Requests that read everything, with the expected results.
    pub fn everything(&self) -> Vec<(EntityKind, Vec<EntityKind>)> {
        let of = |wanted: &str| -> Vec<EntityKind> {
            self.held
                .iter()
                .filter(|((kind, ..), _)| *kind == wanted)
                .map(|(_, entity)| entity.clone())
                .collect()
        };
        let mut entries = of("entry");
        for ether_type in [0x0800u16, 0x0806] {
            entries.push(EntityKind::TableEntry(TableEntry {
                table_id: table_id("fixed"),
                r#match: vec![exact("fixed hdr.ethernet.type", ether_type.to_be_bytes().to_vec())],
                action: call("pass", &[]),
                is_const: true,
                ..Default::default()
            }));
        }
        let pre = PacketReplicationEngineEntry { r#type: Some(Pre::MulticastGroupEntry(Default::default())) };
        let registers = (0..16).map(|index| {
            resources::register(Some(index), Some(&[self.registers.get(&index).copied().unwrap_or(0)]))
        });
        vec![
            (EntityKind::TableEntry(TableEntry::default()), entries.into_iter().map(shortest).collect()),
            (EntityKind::ActionProfileMember(Default::default()), of("member")),
            (EntityKind::ActionProfileGroup(Default::default()), of("group")),
            (EntityKind::PacketReplicationEngineEntry(pre), of("multicast")),
            (resources::register(None, None), registers.collect()),
        ]
    }
}

/// Byte strings of an entry as they come back.
fn shortest(entity: EntityKind) -> EntityKind {
    let EntityKind::TableEntry(mut entry) = entity else { return entity };
    for key in &mut entry.r#match {
        if let Some(FieldMatchType::Exact(exact)) = &mut key.field_match_type {
            exact.value = p4rack_p4rt::bytes::canonical(&exact.value);
        }
    }
    EntityKind::TableEntry(entry)
}

fn key(entity: &EntityKind) -> Key {
    match entity {
        EntityKind::TableEntry(entry) => {
            ("entry", entry.table_id, format!("{:?} {}", entry.r#match, entry.priority))
        }
        EntityKind::ActionProfileMember(member) => {
            ("member", member.action_profile_id, member.member_id.to_string())
        }
        EntityKind::ActionProfileGroup(group) => {
            ("group", group.action_profile_id, group.group_id.to_string())
        }
        EntityKind::PacketReplicationEngineEntry(PacketReplicationEngineEntry {
            r#type: Some(Pre::MulticastGroupEntry(group)),
        }) => ("multicast", 0, group.multicast_group_id.to_string()),
        other => panic!("{other:?}"),
    }
}

/// Entities to which an entity refers.
fn references(entity: &EntityKind) -> Vec<Key> {
    let member = |number: u32| ("member", profile(), number.to_string());
    match entity {
        EntityKind::ActionProfileGroup(group) => {
            group.members.iter().map(|found| member(found.member_id)).collect()
        }
        EntityKind::TableEntry(TableEntry { action: Some(action), .. }) => match action.r#type {
            Some(table_action::Type::ActionProfileMemberId(number)) => vec![member(number)],
            Some(table_action::Type::ActionProfileGroupId(number)) => {
                vec![("group", profile(), number.to_string())]
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}
