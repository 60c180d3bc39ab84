//! Action profiles and parser value sets.

use crate::rig::*;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::{update::Type, *};
use p4rack_p4rt::schema::id_of;

fn action(name: &str, port: Option<u8>) -> Option<Action> {
    let info = schema().action(name).unwrap();
    let params = port
        .map(|port| action::Param { param_id: info.params[0].id, value: vec![port] })
        .into_iter()
        .collect();
    Some(Action { action_id: id_of(info.preamble.as_ref()), params })
}

fn profile() -> u32 {
    id_of(schema().info().action_profiles[0].preamble.as_ref())
}

pub fn member(member_id: u32, port: u8) -> EntityKind {
    let action = action("via", Some(port));
    EntityKind::ActionProfileMember(ActionProfileMember { action_profile_id: profile(), member_id, action })
}

pub fn group_of(members: &[(u32, i32)], max_size: i32) -> EntityKind {
    let member = |&(member_id, weight): &(u32, i32)| action_profile_group::Member {
        member_id,
        weight,
        watch_kind: None,
    };
    EntityKind::ActionProfileGroup(ActionProfileGroup {
        action_profile_id: profile(),
        group_id: 5,
        members: members.iter().map(member).collect(),
        max_size,
    })
}

pub fn hop(kind: table_action::Type) -> TableEntry {
    let info = schema().table("hops").unwrap();
    let exact = field_match::Exact { value: vec![1] };
    TableEntry {
        table_id: table_id("hops"),
        r#match: vec![FieldMatch {
            field_id: info.match_fields[0].id,
            field_match_type: Some(field_match::FieldMatchType::Exact(exact)),
        }],
        action: Some(TableAction { r#type: Some(kind) }),
        ..Default::default()
    }
}

pub fn tunnels(types: &[[u8; 2]]) -> EntityKind {
    let member = |value: &[u8; 2]| {
        let exact = field_match::Exact { value: value.to_vec() };
        let field_match_type = Some(field_match::FieldMatchType::Exact(exact));
        ValueSetMember { r#match: vec![FieldMatch { field_id: 1, field_match_type }] }
    };
    EntityKind::ValueSetEntry(ValueSetEntry {
        value_set_id: id_of(schema().info().value_sets[0].preamble.as_ref()),
        members: types.iter().map(member).collect(),
    })
}

/// A frame of a tunnel from the host with this number.
fn tunnelled(source: u8) -> Vec<u8> {
    let mut frame = frame(2, 0x6558);
    frame[11] = source;
    frame
}

#[tokio::test]
async fn a_value_set_decides_in_the_parser_and_reads_back() {
    let (rig, mut client) = Rig::ready().await;
    client.write(Type::Insert, member(1, 3)).await.unwrap();
    client.entry(Type::Insert, hop(table_action::Type::ActionProfileMemberId(1))).await.unwrap();
    rig.inject(1, &tunnelled(9)).await;
    client.write(Type::Modify, tunnels(&[[0x65, 0x58]])).await.unwrap();
    rig.inject(1, &tunnelled(9)).await;
    assert_eq!(rig.sent(1).await, [(3, tunnelled(9))], "only the second frame is a tunnel's");
    let everything = EntityKind::ValueSetEntry(ValueSetEntry::default());
    assert_eq!(client.read(everything).await.unwrap(), [tunnels(&[[0x65, 0x58]])]);
    client.write(Type::Modify, tunnels(&[])).await.unwrap();
    let error = client.write(Type::Insert, tunnels(&[])).await.unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument, "{error}");
    let five = [[0, 1], [0, 2], [0, 3], [0, 4], [0, 5]];
    let error = client.write(Type::Modify, tunnels(&five)).await.unwrap_err();
    assert_eq!(error.code, Code::ResourceExhausted, "{error}");
}

#[tokio::test]
async fn members_and_groups_spread_traffic_and_read_back() {
    let (rig, mut client) = Rig::ready().await;
    client.write(Type::Modify, tunnels(&[[0x65, 0x58]])).await.unwrap();
    for (number, port) in [(1, 1), (2, 2), (3, 3)] {
        client.write(Type::Insert, member(number, port)).await.unwrap();
    }
    client.write(Type::Insert, group_of(&[(1, 1), (2, 2)], 8)).await.unwrap();
    client.entry(Type::Insert, hop(table_action::Type::ActionProfileGroupId(5))).await.unwrap();
    for source in 0..120 {
        rig.inject(4, &tunnelled(source)).await;
    }
    let ports: Vec<u16> = rig.sent(120).await.into_iter().map(|(port, _)| port).collect();
    let share = |port: u16| ports.iter().filter(|found| **found == port).count();
    assert_eq!((ports.len(), share(1) + share(2)), (120, 120));
    assert!(share(2) > share(1) && share(1) > 10, "1: {}, 2: {}", share(1), share(2));

    let read = client.read(EntityKind::ActionProfileGroup(Default::default())).await.unwrap();
    assert_eq!(read, [group_of(&[(1, 1), (2, 2)], 8)]);
    let read = client.read(EntityKind::ActionProfileMember(Default::default())).await.unwrap();
    assert_eq!(read, [member(1, 1), member(2, 2), member(3, 3)]);
    let read = client.table(wildcard("hops")).await;
    assert_eq!(read, [hop(table_action::Type::ActionProfileGroupId(5))]);

    // A member's new action takes effect immediately for all references to it.
    client.write(Type::Modify, group_of(&[(3, 1)], 8)).await.unwrap();
    client.write(Type::Modify, member(3, 2)).await.unwrap();
    rig.inject(4, &tunnelled(0)).await;
    assert_eq!(rig.sent(121).await.last().unwrap().0, 2);
}

#[tokio::test]
async fn what_is_referred_to_cannot_be_removed() {
    let (_rig, mut client) = Rig::ready().await;
    client.write(Type::Insert, member(1, 1)).await.unwrap();
    client.write(Type::Insert, group_of(&[(1, 1)], 0)).await.unwrap();
    client.entry(Type::Insert, hop(table_action::Type::ActionProfileGroupId(5))).await.unwrap();
    for entity in [member(1, 1), group_of(&[], 0)] {
        let error = client.write(Type::Delete, entity).await.unwrap_err();
        assert_eq!(error.code, Code::FailedPrecondition, "{error}");
    }
    client.entry(Type::Delete, hop(table_action::Type::ActionProfileGroupId(5))).await.unwrap();
    client.write(Type::Delete, group_of(&[], 0)).await.unwrap();
    client.write(Type::Delete, member(1, 1)).await.unwrap();
}

#[tokio::test]
async fn a_one_shot_set_spreads_traffic_and_reads_back() {
    let (rig, mut client) = Rig::ready().await;
    client.write(Type::Modify, tunnels(&[[0x65, 0x58]])).await.unwrap();
    let one =
        |port, weight| ActionProfileAction { action: action("via", Some(port)), weight, watch_kind: None };
    let set = |actions| {
        let set = ActionProfileActionSet { action_profile_actions: actions, ..Default::default() };
        hop(table_action::Type::ActionProfileActionSet(set))
    };
    let entry = set(vec![one(1, 1), one(3, 1)]);
    client.entry(Type::Insert, entry.clone()).await.unwrap();
    for source in 0..40 {
        rig.inject(4, &tunnelled(source)).await;
    }
    let sent = rig.sent(40).await;
    assert!(sent.iter().any(|(port, _)| *port == 1) && sent.iter().any(|(port, _)| *port == 3));
    assert_eq!(client.table(wildcard("hops")).await, [entry]);
    let error = client.entry(Type::Modify, set(vec![one(1, 0)])).await.unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument, "{error}");
}

fn set_of(
    weights: &[i32],
    mode: action_profile_action_set::ActionSelectionMode,
    size: action_profile_action_set::SizeSemantics,
) -> TableEntry {
    let one = |(port, weight): (u8, &i32)| ActionProfileAction {
        action: action("via", Some(port)),
        weight: *weight,
        watch_kind: None,
    };
    hop(table_action::Type::ActionProfileActionSet(ActionProfileActionSet {
        action_profile_actions: (1..).zip(weights).map(one).collect(),
        action_selection_mode: mode as i32,
        size_semantics: size as i32,
        group_action: None,
    }))
}

#[tokio::test]
async fn a_one_shot_set_picks_at_random_when_told_so_else_by_the_hash() {
    use action_profile_action_set::{ActionSelectionMode as Mode, SizeSemantics as Size};
    let (rig, mut client) = Rig::ready().await;
    client.write(Type::Modify, tunnels(&[[0x65, 0x58]])).await.unwrap();
    let set = |mode| set_of(&[1, 1], mode, Size::SumOfMembers);
    client.entry(Type::Insert, set(Mode::Hash)).await.unwrap();
    // Frames that are all alike.
    for (mode, ports) in [(Mode::Hash, 1), (Mode::Random, 2)] {
        client.entry(Type::Modify, set(mode)).await.unwrap();
        assert_eq!(client.table(wildcard("hops")).await, [set(mode)]);
        let before = rig.sent(0).await.len();
        for _ in 0..40 {
            rig.inject(4, &tunnelled(0)).await;
        }
        let sent = rig.sent(before + 40).await;
        let used: std::collections::BTreeSet<u16> = sent[before..].iter().map(|(port, _)| *port).collect();
        assert_eq!(used.len(), ports, "{mode:?}");
    }
    let mut unknown = set(Mode::Hash);
    let Some(table_action::Type::ActionProfileActionSet(actions)) =
        unknown.action.as_mut().and_then(|action| action.r#type.as_mut())
    else {
        panic!()
    };
    actions.action_selection_mode = 9;
    let error = client.entry(Type::Modify, unknown).await.unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument, "{error}");
}

#[tokio::test]
async fn sizes_are_sums_of_weights_or_of_members_as_the_selector_or_the_set_says() {
    use action_profile_action_set::{ActionSelectionMode as Mode, SizeSemantics as Size};
    let (_rig, mut client) = Rig::ready().await;
    let insert = |weights: &[i32], size| (Type::Insert, set_of(weights, Mode::Random, size));
    let default = Size::DefaultSizeDeterminedByActionSelector;
    // The program allows 16 in all.
    for (weights, size) in
        [(&[9, 8][..], default), (&[9, 8], Size::SumOfWeights), (&[1; 17], Size::SumOfMembers)]
    {
        let (kind, entry) = insert(weights, size);
        let error = client.entry(kind, entry).await.unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{error}");
        assert!(error.message.contains("size is 17, over max_group_size 16"), "{error}");
    }
    let (kind, entry) = insert(&[9, 8], Size::SumOfMembers);
    client.entry(kind, entry).await.unwrap();

    let by_members = "@max_group_size(2) @selector_size_semantics(\"sum_of_members\") @max_member_weight(20)";
    let program = crate::preserve::changed("@max_group_size(16)", by_members);
    client.set(set_forwarding_pipeline_config_request::Action::VerifyAndCommit, Some(program)).await.unwrap();
    for number in 1..=3 {
        client.write(Type::Insert, member(number, 1)).await.unwrap();
    }
    for (members, code) in
        [(&[(1, 1), (2, 1), (3, 1)][..], Code::ResourceExhausted), (&[(1, 21)], Code::InvalidArgument)]
    {
        let error = client.write(Type::Insert, group_of(members, 0)).await.unwrap_err();
        assert_eq!(error.code, code, "{error}");
    }
    client.write(Type::Insert, group_of(&[(1, 20), (2, 20)], 2)).await.unwrap();
}

#[tokio::test]
async fn a_selector_that_finds_weights_itself_is_given_none() {
    let (_rig, mut client) = Rig::ready().await;
    let program = crate::preserve::changed("@max_group_size(16)", "@max_group_size(16) @weights_disallowed");
    assert!(program.p4info.as_ref().unwrap().action_profiles[0].weights_disallowed);
    client.set(set_forwarding_pipeline_config_request::Action::VerifyAndCommit, Some(program)).await.unwrap();
    client.write(Type::Insert, member(1, 1)).await.unwrap();
    client.write(Type::Insert, member(2, 1)).await.unwrap();
    let error = client.write(Type::Insert, group_of(&[(1, 1), (2, 1)], 8)).await.unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument, "{error}");
    let group = group_of(&[(1, 0), (2, 0)], 8);
    client.write(Type::Insert, group.clone()).await.unwrap();
    let read = client.read(EntityKind::ActionProfileGroup(Default::default())).await.unwrap();
    assert_eq!(read, [group]);
    use action_profile_action_set::{ActionSelectionMode as Mode, SizeSemantics as Size};
    let set = |weights| set_of(weights, Mode::Hash, Size::SumOfWeights);
    let error = client.entry(Type::Insert, set(&[1, 1])).await.unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument, "{error}");
    client.entry(Type::Insert, set(&[0, 0])).await.unwrap();
    assert_eq!(client.table(wildcard("hops")).await, [set(&[0, 0])]);
}

#[tokio::test]
async fn references_are_checked() {
    let (_rig, mut client) = Rig::ready().await;
    let cases = [
        (Code::NotFound, hop(table_action::Type::ActionProfileMemberId(77))),
        (Code::NotFound, hop(table_action::Type::ActionProfileGroupId(77))),
        (Code::InvalidArgument, hop(table_action::Type::Action(action("via", Some(1)).unwrap()))),
        (Code::InvalidArgument, hop(table_action::Type::ActionProfileActionSet(Default::default()))),
    ];
    for (code, entry) in cases {
        let error = client.entry(Type::Insert, entry).await.unwrap_err();
        assert_eq!(error.code, code, "{error}");
    }
    for (code, kind, entity) in [
        (Code::NotFound, Type::Insert, group_of(&[(9, 1)], 0)),
        (Code::InvalidArgument, Type::Insert, group_of(&[], 99)),
        (Code::NotFound, Type::Modify, member(1, 1)),
        (Code::NotFound, Type::Delete, member(1, 1)),
        (Code::InvalidArgument, Type::Insert, member(0, 1)),
    ] {
        let error = client.write(kind, entity).await.unwrap_err();
        assert_eq!(error.code, code, "{error}");
    }
    client.write(Type::Insert, member(1, 1)).await.unwrap();
    let error = client.write(Type::Insert, member(1, 1)).await.unwrap_err();
    assert_eq!(error.code, Code::AlreadyExists, "{error}");
    let error = client.write(Type::Insert, group_of(&[(1, 9)], 8)).await.unwrap_err();
    assert_eq!(error.code, Code::ResourceExhausted, "{error}");
}

#[tokio::test]
async fn a_member_whose_watch_port_is_down_is_not_selected() {
    let (rig, mut client) = Rig::ready().await;
    client.write(Type::Modify, tunnels(&[[0x65, 0x58]])).await.unwrap();
    for (number, port) in [(1, 1), (2, 2)] {
        client.write(Type::Insert, member(number, port)).await.unwrap();
    }
    let watching = |ports: [&[u8]; 2]| {
        let EntityKind::ActionProfileGroup(mut group) = group_of(&[(1, 1), (2, 1)], 8) else { panic!() };
        for (member, port) in group.members.iter_mut().zip(ports) {
            member.watch_kind = Some(action_profile_group::member::WatchKind::WatchPort(port.to_vec()));
        }
        EntityKind::ActionProfileGroup(group)
    };
    let error = client.write(Type::Insert, watching([&[77], &[2]])).await.unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument, "{error}");
    client.write(Type::Insert, watching([&[1], &[2]])).await.unwrap();
    let read = client.read(EntityKind::ActionProfileGroup(Default::default())).await.unwrap();
    assert_eq!(read, [watching([&[1], &[2]])]);
    client.entry(Type::Insert, hop(table_action::Type::ActionProfileGroupId(5))).await.unwrap();
    for (down, up) in [(1, 2), (2, 1)] {
        let before = rig.sent(0).await.len();
        rig.handle.call(move |switch, _| switch.set_port_up(down, false)).await.unwrap();
        for source in 0..20 {
            rig.inject(4, &tunnelled(source)).await;
        }
        let sent = rig.sent(before + 20).await;
        assert!(sent[before..].iter().all(|(port, _)| *port == up), "{down} is down: {sent:?}");
        rig.handle.call(move |switch, _| switch.set_port_up(down, true)).await.unwrap();
    }
    for source in 0..40 {
        rig.inject(4, &tunnelled(source)).await;
    }
    let sent = rig.sent(80).await;
    assert!([1, 2].iter().all(|up| sent[40..].iter().any(|(port, _)| port == up)), "both are up again");
}
