//! Counters, meters, registers, members and groups.

use crate::translation::{
    FLAG, PAIRS, PROFILE, RATE, SEEN, SELECTOR, entry, exact, invalid, number, translation, truth,
};
use p4rack_bfrt::p4runtime::Translation;
use p4rack_p4rt::bfrt_proto::data_field::{self, BoolArray, IntArray};
use p4rack_p4rt::bfrt_proto::key_field::{MatchType, Ternary};
use p4rack_p4rt::bfrt_proto::{DataField, KeyField, TableEntry, table_entry};
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::entity::Entity as Kind;
use p4rack_p4rt::p4::v1::{
    Action, ActionProfileGroup, ActionProfileMember, CounterData, CounterEntry, Entity, Index, MeterConfig,
    MeterEntry, P4Data, RegisterEntry, action, action_profile_group, p4_data,
};

const FOURTH: [u8; 4] = [0, 0, 0, 4];

/// Eight bytes, as counts, rates and bursts have.
fn long(field_id: u32, value: u64) -> DataField {
    number(field_id, &value.to_be_bytes())
}

fn cell(table_id: u32, fields: Vec<DataField>) -> TableEntry {
    entry(table_id, vec![exact(1, &FOURTH)], 0, fields)
}

fn kind(translation: &Translation, message: &TableEntry) -> Result<Kind, String> {
    translation.entity(message).map(|entity| entity.entity.unwrap()).map_err(|error| error.message)
}

fn back(kind: Kind) -> Result<TableEntry, (Code, String)> {
    translation().entry(&Entity { entity: Some(kind) }).map_err(|error| (error.code, error.message))
}

fn fields(message: TableEntry) -> Vec<DataField> {
    message.data.unwrap().fields
}

/// Cells, members and groups are named by a number of four bytes; a request without a key reads all of
/// them.
#[test]
fn cells_have_one_number() {
    let translation = translation();
    let of = |keys: Vec<KeyField>| translation.request(&entry(SEEN, keys, 0, Vec::new()));
    let index = |index: Option<Index>| Entity {
        entity: Some(Kind::CounterEntry(CounterEntry { counter_id: SEEN, index, data: None })),
    };
    assert_eq!(of(vec![exact(1, &[1, 2, 3, 4])]), Ok(index(Some(Index { index: 0x0102_0304 }))));
    assert_eq!(of(Vec::new()), Ok(index(None)));
    let masked = KeyField { field_id: 1, match_type: Some(MatchType::Ternary(Ternary::default())) };
    for keys in [vec![exact(2, &FOURTH)], vec![exact(1, &FOURTH), exact(1, &FOURTH)], vec![masked]] {
        let why = "table `pipe.I.seen`: its key is one field, id 1, matched exactly";
        assert_eq!(invalid(of(keys.clone())), why, "{keys:?}");
    }
    assert_eq!(invalid(of(vec![exact(1, &[1])])), "pipe.I.seen: 1 bytes, but a number of 32 bits takes 4");
    let handle = TableEntry { value: Some(table_entry::Value::HandleId(4)), ..cell(SEEN, Vec::new()) };
    assert_eq!(translation.entity(&handle).unwrap_err().code, Code::Unimplemented);

    let counter = |index: Option<i64>| {
        let index = index.map(|index| Index { index });
        back(Kind::CounterEntry(CounterEntry { counter_id: SEEN, index, data: None }))
    };
    assert_eq!(
        counter(Some(u32::MAX.into())).unwrap().value,
        entry(SEEN, vec![exact(1, &[0xff; 4])], 0, vec![]).value
    );
    let why = "table `pipe.I.seen`: a cell without a number of 32 bits";
    for index in [Some(-1), Some(1 << 32), None] {
        assert_eq!(counter(index), Err((Code::InvalidArgument, why.into())), "{index:?}");
    }
}

#[test]
fn counters_may_lack_one_of_their_counts() {
    let translation = translation();
    let data = |fields| match kind(&translation, &cell(SEEN, fields)) {
        Ok(Kind::CounterEntry(counter)) => counter.data.map(|data| (data.byte_count, data.packet_count)),
        other => panic!("{other:?}"),
    };
    assert_eq!(data(vec![long(1, 700), long(2, 3)]), Some((700, 3)));
    assert_eq!((data(vec![long(1, 700)]), data(vec![long(2, 3)])), (Some((700, 0)), Some((0, 3))));
    assert_eq!(data(vec![long(1, u64::MAX)]), Some((i64::MAX, 0)));
    assert_eq!(data(vec![]), None);
    let short = kind(&translation, &cell(SEEN, vec![number(1, &[1])])).unwrap_err();
    assert_eq!(
        short,
        "table `pipe.I.seen`: field `$COUNTER_SPEC_BYTES`: 1 bytes, but a field of 64 bits takes 8"
    );
    let none = DataField { field_id: 1, value: None };
    let none = kind(&translation, &cell(SEEN, vec![none])).unwrap_err();
    assert_eq!(none, "table `pipe.I.seen`: field `$COUNTER_SPEC_BYTES` has no value");
    let whole = |fields| translation.is_whole(&cell(SEEN, fields));
    assert!(whole(vec![long(2, 0), long(1, 0)]));
    assert!(!whole(vec![long(1, 0)]) && !whole(vec![long(2, 0)]) && !whole(vec![]));

    let data = Some(CounterData { byte_count: -1, packet_count: 9 });
    let index = Some(Index { index: 4 });
    let made = back(Kind::CounterEntry(CounterEntry { counter_id: SEEN, index, data })).unwrap();
    assert_eq!(fields(made), [long(1, 0), long(2, 9)]);
}

/// Kilobits there, bytes here. A rate as large as the device's largest has no limit.
#[test]
fn the_largest_rates_of_a_device_are_no_limit() {
    let rates = |translation: &Translation, values: [u64; 4]| {
        let fields = (1..).zip(values).map(|(id, value)| long(id, value)).collect();
        match kind(translation, &cell(RATE, fields)) {
            Ok(Kind::MeterEntry(meter)) => {
                meter.config.map(|config| [config.cir, config.pir, config.cburst, config.pburst])
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(rates(&translation(), [8, 16, 1, 2]), Some([1_000, 2_000, 125, 250]));
    assert_eq!(rates(&translation(), [u64::MAX; 4]), None);
    assert_eq!(rates(&translation(), [0; 4]), Some([0; 4]));
    let huge = rates(&translation(), [u64::MAX - 1, 0, 0, 0]);
    assert_eq!(huge, Some([i64::MAX, 0, 0, 0]), "as far as P4Runtime counts");
    for (is_second, rate) in [(false, 5_195_848_221u64), (true, 4_087_999_890)] {
        let burst = 4_380_866_642u64;
        let mut translation = translation();
        translation.set_device(is_second);
        assert_eq!(rates(&translation, [rate, rate, burst, burst]), None);
        let below = rates(&translation, [rate - 1, rate, burst, burst]).unwrap();
        assert_eq!(below, [125 * (rate as i64 - 1), i64::MAX, i64::MAX, i64::MAX]);
        let config = MeterConfig { cir: 1_000, pir: 124, cburst: i64::MAX, pburst: -1, ..Default::default() };
        let entry = MeterEntry {
            meter_id: RATE,
            index: Some(Index { index: 4 }),
            config: Some(config),
            ..Default::default()
        };
        let made = translation.entry(&Entity { entity: Some(Kind::MeterEntry(entry)) }).unwrap();
        assert_eq!(fields(made), [long(1, 8), long(2, 0), long(3, burst), long(4, 0)]);
    }
    let whole = |count: u32| translation().is_whole(&cell(RATE, (1..=count).map(|id| long(id, 1)).collect()));
    assert_eq!([0, 3, 4].map(whole), [false, false, true]);
}

#[test]
fn registers_hold_numbers_one_after_the_other() {
    let translation = translation();
    let value = |table, fields| -> Result<p4_data::Data, String> {
        match kind(&translation, &cell(table, fields))? {
            Kind::RegisterEntry(register) => Ok(register.data.unwrap().data.unwrap()),
            other => panic!("{other:?}"),
        }
    };
    use p4_data::Data::{Bitstring, Bool};
    assert_eq!(value(PAIRS, vec![number(2, &[0, 6]), number(1, &[5])]), Ok(Bitstring(vec![5, 0, 6])));
    assert_eq!(value(PAIRS, vec![number(1, &[5])]), Ok(Bitstring(vec![5, 0, 0])), "what is left out is zero");
    assert_eq!(value(PAIRS, vec![]), Ok(Bitstring(vec![0])));
    assert_eq!(
        value(PAIRS, vec![truth(1, true)]),
        Err("table `pipe.I.pairs`: field `I.pairs.low` holds a number".into())
    );
    assert_eq!(
        value(PAIRS, vec![number(9, &[1])]),
        Err("table `pipe.I.pairs` has no field with id 9".into())
    );
    assert!(value(PAIRS, vec![number(1, &[0, 5])]).is_err());
    assert_eq!(
        (value(FLAG, vec![truth(1, true)]), value(FLAG, vec![truth(1, false)])),
        (Ok(Bool(true)), Ok(Bool(false)))
    );
    assert_eq!(value(FLAG, vec![]), Ok(Bool(false)));

    let made = |register_id, data: Option<p4_data::Data>| {
        let data = Some(P4Data { data });
        back(Kind::RegisterEntry(RegisterEntry { register_id, index: Some(Index { index: 4 }), data }))
            .map(fields)
    };
    assert_eq!(made(PAIRS, Some(Bitstring(vec![5, 0, 6]))), Ok(vec![number(1, &[5]), number(2, &[0, 6])]));
    assert_eq!(made(PAIRS, None), Ok(vec![number(1, &[0]), number(2, &[0, 0])]));
    assert_eq!(made(FLAG, Some(Bool(true))), Ok(vec![truth(1, true)]));
    assert_eq!(made(FLAG, Some(Bool(false))), Ok(vec![truth(1, false)]));
    assert_eq!(made(PAIRS, Some(Bitstring(vec![1, 0, 0, 0]))).unwrap_err().0, Code::OutOfRange);
    let text = made(PAIRS, Some(p4_data::Data::Error("NoError".into()))).unwrap_err();
    assert_eq!(text, (Code::InvalidArgument, "table `pipe.I.pairs`: a value that is no number".into()));
    let whole = |fields| translation.is_whole(&cell(PAIRS, fields));
    assert!(whole(vec![]) && whole(vec![number(2, &[0, 0]), number(1, &[0])]));
    assert!(!whole(vec![number(1, &[0])]) && !whole(vec![number(2, &[0, 0])]));
}

#[test]
fn members_have_the_fields_of_their_action() {
    let translation = translation();
    let member = |action, fields| -> Result<ActionProfileMember, String> {
        match kind(&translation, &entry(PROFILE, vec![exact(1, &FOURTH)], action, fields))? {
            Kind::ActionProfileMember(member) => Ok(member),
            other => panic!("{other:?}"),
        }
    };
    let params =
        vec![action::Param { param_id: 1, value: vec![3] }, action::Param { param_id: 2, value: vec![0] }];
    let expected = ActionProfileMember {
        action_profile_id: SELECTOR,
        member_id: 4,
        action: Some(Action { action_id: 11, params }),
    };
    assert_eq!(member(11, vec![number(1, &[0, 3])]), Ok(expected));
    assert_eq!(member(0, vec![]).unwrap().action, None, "to be deleted or read");
    for (action, fields, why) in [
        (
            11,
            vec![number(9, &[1])],
            "table `pipe.I.profile`: a member with this action has no field with id 9",
        ),
        (
            0,
            vec![number(1, &[0, 3])],
            "table `pipe.I.profile`: a member with this action has no field with id 1",
        ),
        (99, vec![], "table `pipe.I.profile` has no action with id 99"),
    ] {
        assert_eq!(member(action, fields).err().as_deref(), Some(why));
    }
}

#[test]
fn groups_have_members_by_weight_and_a_size() {
    let translation = translation();
    let field = |field_id, value| DataField { field_id, value: Some(value) };
    let members = |val: &[u32]| field(1, data_field::Value::IntArrVal(IntArray { val: val.to_vec() }));
    let status = |val: &[bool]| field(2, data_field::Value::BoolArrVal(BoolArray { val: val.to_vec() }));
    let group = |fields| -> Result<(Vec<(u32, i32)>, i32), String> {
        match kind(&translation, &cell(SELECTOR, fields))? {
            Kind::ActionProfileGroup(group) => {
                let weight = |member: &action_profile_group::Member| (member.member_id, member.weight);
                Ok((group.members.iter().map(weight).collect(), group.max_size))
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(group(vec![members(&[5, 6, 5])]), Ok((vec![(5, 2), (6, 1)], 0)), "active without a status");
    assert_eq!(group(vec![status(&[false, true]), members(&[5, 6])]), Ok((vec![(6, 1)], 0)));
    assert_eq!(group(vec![number(3, &[0xff; 4])]), Ok((vec![], i32::MAX)));
    for (fields, why) in [
        (vec![number(3, &[1])], "pipe.I.selector: 1 bytes, but a number of 32 bits takes 4"),
        (vec![number(1, &[1])], "table `pipe.I.selector`: field 1 is none of a group's, or of another kind"),
        (
            vec![number(9, &[0; 4])],
            "table `pipe.I.selector`: field 9 is none of a group's, or of another kind",
        ),
        (
            vec![members(&[5]), status(&[true, true])],
            "table `pipe.I.selector`: 1 members, but 2 values of $ACTION_MEMBER_STATUS; give one for each",
        ),
    ] {
        assert_eq!(group(fields).err().as_deref(), Some(why));
    }
    let member = |member_id, weight| action_profile_group::Member { member_id, weight, ..Default::default() };
    let made = back(Kind::ActionProfileGroup(ActionProfileGroup {
        action_profile_id: SELECTOR,
        group_id: u32::MAX,
        members: vec![member(5, 2), member(u32::MAX, 1), member(7, 0), member(8, -1)],
        max_size: -1,
    }))
    .unwrap();
    assert_eq!(made.value, entry(SELECTOR, vec![exact(1, &[0; 4])], 0, vec![]).value);
    assert_eq!(fields(made), [members(&[5, 5, 0]), status(&[true; 3]), number(3, &[0; 4])]);
}
