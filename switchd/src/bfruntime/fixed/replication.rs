//! Replication: multicast nodes, ECMP groups, groups of both, link aggregation groups, pruned ports, and
//! replication's settings of ports. The switch keeps all of it.

use super::{NamedPage, Table, id, in_table, invalid, not_offered, page};
use p4rack_bfrt::{Entry, Value};
use p4rack_entities::{Change, Checked, refuse};
use p4rack_p4rt::bfrt_proto::{PreDeviceConfig, update::Type};
use p4rack_p4rt::google::rpc::Code;
use p4rack_switch::{
    REPLICATION_SET, ReplicationGroup, ReplicationLag, ReplicationMember, ReplicationNode, ReplicationPort,
    Switch,
};
use std::sync::Arc;

/// Numbers that name sets of ports without copies.
const PRUNES: u64 = 288;
/// Numbers of link aggregation groups.
const LAGS: u64 = 256;

const NODE: &str = "$MULTICAST_NODE_ID";
const ECMP: &str = "$MULTICAST_ECMP_ID";
const PORTS: &str = "$DEV_PORT";
const LAG: &str = "$MULTICAST_LAG_ID";
const RID: &str = "$MULTICAST_RID";
const ABOVE: &str = "$MULTICAST_LAG_REMOTE_MSB_COUNT";
const BELOW: &str = "$MULTICAST_LAG_REMOTE_LSB_COUNT";
const BACKUP: &str = "$MULTICAST_BACKUP_PORT";
const FORWARDS: &str = "$MULTICAST_FORWARD_STATE";
const FAILOVER: &str = "$MULTICAST_CLEAR_FAST_FAILOVER";
const COPIES: &str = "$COPY_TO_CPU_PORT_ENABLE";
/// Lists of a group: numbers, and for each whether it has an exclusion id, and which.
const NODES: [&str; 3] = [NODE, "$MULTICAST_NODE_L1_XID_VALID", "$MULTICAST_NODE_L1_XID"];
const SETS: [&str; 3] = [ECMP, "$MULTICAST_ECMP_L1_XID_VALID", "$MULTICAST_ECMP_L1_XID"];

/// The key field of a table.
fn key_of(table: &str) -> &'static str {
    match table {
        "$pre.node" => NODE,
        "$pre.ecmp" => ECMP,
        "$pre.mgid" => "$MGID",
        "$pre.lag" => LAG,
        "$pre.prune" => "$MULTICAST_L2_XID",
        _ => PORTS,
    }
}

fn list<'a>(entry: &'a Entry, field: &str) -> Option<&'a [u32]> {
    match entry.get(field) {
        Some(Value::Numbers(numbers)) => Some(numbers),
        _ => None,
    }
}

fn ports(entry: &Entry) -> Checked<Option<Vec<u16>>> {
    let Some(ports) = list(entry, PORTS) else { return Ok(None) };
    let all: Result<Vec<u16>, _> = ports.iter().map(|port| u16::try_from(*port)).collect();
    all.map(Some).or_else(|_| invalid(entry, format!("{PORTS} has a number that no port has")))
}

/// A number of 16 bits.
pub(super) fn small(entry: &Entry, field: &str) -> Checked<Option<u16>> {
    let Some(number) = entry.get(field).and_then(Value::number) else { return Ok(None) };
    u16::try_from(number).map(Some).or_else(|_| invalid(entry, format!("{field} {number} is not 0 to 65535")))
}

fn truth(entry: &Entry, field: &str) -> Option<bool> {
    match entry.get(field) {
        Some(Value::Bool(truth)) => Some(*truth),
        _ => None,
    }
}

/// Members of a group as three lists of equal length; `None` if none of the lists is given.
fn members(entry: &Entry, [ids, valid, exclusions]: [&str; 3]) -> Checked<Option<Vec<ReplicationMember>>> {
    let flags = match entry.get(valid) {
        Some(Value::Bools(flags)) => Some(&flags[..]),
        _ => None,
    };
    let (given, numbers) = (list(entry, ids), list(entry, exclusions));
    if given.is_none() && flags.is_none() && numbers.is_none() {
        return Ok(None);
    }
    let given = given.unwrap_or(&[]);
    let unequal = |length: Option<usize>| length.is_some_and(|length| length != given.len());
    if unequal(flags.map(<[_]>::len)) || unequal(numbers.map(<[_]>::len)) {
        return invalid(
            entry,
            format!(
                "{} values of {ids}, but {} of {valid} and {} of {exclusions}; give one for each",
                given.len(),
                flags.map_or(0, <[_]>::len),
                numbers.map_or(0, <[_]>::len)
            ),
        );
    }
    let one = |(at, id): (usize, &u32)| {
        let number = numbers.map_or(0, |numbers| numbers[at]);
        let Ok(number) = u16::try_from(number) else {
            return invalid(entry, format!("{exclusions} {number} has more than 16 bits"));
        };
        let exclusion = flags.is_some_and(|flags| flags[at]).then_some(number);
        Ok(ReplicationMember { id: *id, exclusion })
    };
    given.iter().enumerate().map(one).collect::<Checked<Vec<_>>>().map(Some)
}

/// Members after an update: replaced, or with MODIFY_INC more or fewer.
fn changed(
    before: Vec<ReplicationMember>,
    given: Option<Vec<ReplicationMember>>,
    adds: Option<bool>,
) -> Vec<ReplicationMember> {
    match (given, adds) {
        (None, _) => before,
        (Some(given), None) => given,
        (Some(given), Some(true)) => before.into_iter().chain(given).collect(),
        (Some(given), Some(false)) => {
            before.into_iter().filter(|member| !given.iter().any(|gone| gone.id == member.id)).collect()
        }
    }
}

/// Refuses an update that contradicts existing entries.
fn expect(kind: Type, exists: bool, table: &str, id: u32) -> Checked<()> {
    match (kind, exists) {
        (Type::Insert, true) => refuse(Code::AlreadyExists, format!("table `{table}`: {id} already exists")),
        (Type::Modify | Type::ModifyInc | Type::Delete, false) => {
            refuse(Code::NotFound, format!("table `{table}`: there is no {id}"))
        }
        _ => Ok(()),
    }
}

/// Checks an update. `takes`: a MODIFY_INC that removes members.
pub fn step(kind: Type, entry: Entry, all: bool, takes: bool) -> Checked<Change> {
    if kind == Type::InsertOrModify {
        return not_offered(&entry, "INSERT_OR_MODIFY");
    }
    if all {
        return clear(&entry);
    }
    let number = id(&entry, key_of(entry.table()))?;
    let adds = (kind == Type::ModifyInc).then_some(!takes);
    match entry.table() {
        "$pre.node" => node(kind, entry, number, adds),
        "$pre.ecmp" => set(kind, entry, number, adds),
        "$pre.mgid" => group(kind, entry, number, adds),
        _ if adds.is_some() => not_offered(&entry, "MODIFY_INC"),
        "$pre.lag" => lag(kind, entry, number),
        "$pre.prune" => prune(kind, entry, number),
        _ => port(kind, entry, number),
    }
}

fn node(kind: Type, entry: Entry, id: u32, adds: Option<bool>) -> Checked<Change> {
    let (rid, ports) = (small(&entry, RID)?, ports(&entry)?);
    let lags: Option<Result<Vec<u8>, _>> =
        list(&entry, LAG).map(|lags| lags.iter().map(|lag| u8::try_from(*lag)).collect());
    let Ok(lags) = lags.transpose() else { return invalid(&entry, format!("{LAG} is 0 to 255")) };
    if kind == Type::Insert && rid.is_none() {
        return invalid(&entry, format!("{RID} is not set"));
    }
    let table = entry.table().to_owned();
    Ok(Box::new(move |switch, _| {
        let before = switch.replication_node(id).cloned();
        expect(kind, before.is_some(), &table, id)?;
        if kind == Type::Delete {
            return in_table(&table, switch.replication_node_set(id, None));
        }
        let before = before.unwrap_or_default();
        let node = ReplicationNode {
            rid: rid.unwrap_or(before.rid),
            ports: more(before.ports, ports, adds),
            lags: more(before.lags, lags, adds),
        };
        in_table(&table, switch.replication_node_set(id, Some(node)))
    }))
}

/// A list after an update.
fn more<T: PartialEq>(before: Vec<T>, given: Option<Vec<T>>, adds: Option<bool>) -> Vec<T> {
    match (given, adds) {
        (None, _) => before,
        (Some(given), None) => given,
        (Some(given), Some(true)) => before.into_iter().chain(given).collect(),
        (Some(given), Some(false)) => before.into_iter().filter(|one| !given.contains(one)).collect(),
    }
}

fn set(kind: Type, entry: Entry, id: u32, adds: Option<bool>) -> Checked<Change> {
    let nodes = list(&entry, NODE).map(<[u32]>::to_vec);
    let table = entry.table().to_owned();
    Ok(Box::new(move |switch, _| {
        let before = switch.replication_set(id).copied();
        expect(kind, before.is_some(), &table, id)?;
        if kind == Type::Delete {
            return in_table(&table, switch.replication_set_set(id, None));
        }
        let mut places = [None; REPLICATION_SET];
        if let (Some(before), true) = (&before, nodes.is_none() || adds.is_some()) {
            places.copy_from_slice(before);
        }
        for node in nodes.into_iter().flatten() {
            if adds == Some(false) {
                places.iter_mut().filter(|place| **place == Some(node)).for_each(|place| *place = None);
                continue;
            }
            match places.iter_mut().find(|place| place.is_none()) {
                Some(place) => *place = Some(node),
                None => {
                    let message =
                        format!("table `{table}`: {REPLICATION_SET} nodes are the limit of a group");
                    return refuse(Code::ResourceExhausted, message);
                }
            }
        }
        in_table(&table, switch.replication_set_set(id, Some(places)))
    }))
}

fn group(kind: Type, entry: Entry, id: u32, adds: Option<bool>) -> Checked<Change> {
    let Ok(number) = u16::try_from(id) else { return invalid(&entry, format!("{id} has more than 16 bits")) };
    let (nodes, sets) = (members(&entry, NODES)?, members(&entry, SETS)?);
    let table = entry.table().to_owned();
    Ok(Box::new(move |switch, _| {
        let before = switch.replication_group(number).cloned();
        if before.is_none() && kind != Type::Delete && switch.multicast_group_get(id).is_some() {
            let message = format!("multicast group {id} was made over P4Runtime; delete it there first");
            return refuse(Code::AlreadyExists, message);
        }
        expect(kind, before.is_some(), &table, id)?;
        if kind == Type::Delete {
            return in_table(&table, switch.replication_group_set(number, None));
        }
        let before = before.unwrap_or_default();
        let group = ReplicationGroup {
            nodes: changed(before.nodes, nodes, adds),
            sets: changed(before.sets, sets, adds),
        };
        in_table(&table, switch.replication_group_set(number, Some(group)))
    }))
}

/// A link aggregation group, which is always there.
fn lag(kind: Type, entry: Entry, id: u32) -> Checked<Change> {
    let Ok(number) = u8::try_from(id) else { return invalid(&entry, format!("{LAG} is 0 to 255")) };
    let ports = ports(&entry)?;
    let count = |field: &str| entry.get(field).and_then(Value::number).and_then(|n| u32::try_from(n).ok());
    let (above, below, table) = (count(ABOVE), count(BELOW), entry.table().to_owned());
    Ok(Box::new(move |switch, _| {
        let before =
            if kind == Type::Delete { ReplicationLag::default() } else { switch.replication_lag(number) };
        let ports = ports.filter(|_| kind != Type::Delete);
        let lag = ReplicationLag {
            ports: ports.unwrap_or(before.ports),
            remote_above: above.unwrap_or(before.remote_above),
            remote_below: below.unwrap_or(before.remote_below),
        };
        in_table(&table, switch.replication_lag_set(number, lag))
    }))
}

/// Ports without copies, by a number that is always there.
fn prune(kind: Type, entry: Entry, id: u32) -> Checked<Change> {
    let Some(number) = u16::try_from(id).ok().filter(|number| u64::from(*number) < PRUNES) else {
        return invalid(&entry, format!("{} is 0 to {}", key_of(entry.table()), PRUNES - 1));
    };
    let ports = if kind == Type::Delete { Some(Vec::new()) } else { ports(&entry)? };
    let table = entry.table().to_owned();
    Ok(Box::new(move |switch, _| match ports {
        Some(ports) => in_table(&table, switch.replication_prune(number, &ports)),
        None => Ok(()),
    }))
}

/// Replication's settings of a port; the entry always exists.
fn port(kind: Type, entry: Entry, id: u32) -> Checked<Change> {
    let Ok(number) = u16::try_from(id) else { return invalid(&entry, format!("there is no port {id}")) };
    let backup = small(&entry, BACKUP)?;
    let (forwards, copies) = (truth(&entry, FORWARDS), truth(&entry, COPIES));
    let table = entry.table().to_owned();
    Ok(Box::new(move |switch, _| {
        if !switch.config().ports.iter().any(|own| own.port == number)
            && switch.config().cpu_port != Some(number)
        {
            return refuse(
                Code::InvalidArgument,
                format!("table `{table}`: the switch has no port {number}"),
            );
        }
        let mut port = switch.replication_port(number);
        let mut config = switch.replication_config();
        if kind == Type::Delete {
            port = ReplicationPort::default();
        }
        if let Some(backup) = backup {
            // Initially a port is its own backup.
            port.backup = Some(backup).filter(|backup| *backup != number);
        }
        port.forwards = forwards.unwrap_or(port.forwards);
        let is_copy_port = config.copy_port == Some(number);
        match copies {
            Some(true) => config.copy_port = Some(number),
            Some(false) if is_copy_port => config.copy_port = None,
            None if is_copy_port && kind == Type::Delete => config.copy_port = None,
            _ => {}
        }
        in_table(&table, switch.replication_port_set(number, port))?;
        in_table(&table, switch.replication_config_set(config))
    }))
}

/// Removes all entries of a table.
fn clear(entry: &Entry) -> Checked<Change> {
    let table: Arc<str> = entry.table().into();
    let change: Change = match &*table {
        "$pre.mgid" => Box::new(move |switch, _| {
            let ids: Vec<u16> = switch.replication_groups(0).map(|(id, _)| id).collect();
            ids.into_iter().try_for_each(|id| in_table(&table, switch.replication_group_set(id, None)))
        }),
        "$pre.ecmp" => Box::new(move |switch, _| {
            let ids: Vec<u32> = switch.replication_sets(0).map(|(id, _)| id).collect();
            ids.into_iter().try_for_each(|id| in_table(&table, switch.replication_set_set(id, None)))
        }),
        "$pre.node" => Box::new(move |switch, _| {
            let ids: Vec<u32> = switch.replication_nodes(0).map(|(id, _)| id).collect();
            ids.into_iter().try_for_each(|id| in_table(&table, switch.replication_node_set(id, None)))
        }),
        "$pre.lag" => Box::new(move |switch, _| {
            let lag = ReplicationLag::default;
            (0..=u8::MAX).try_for_each(|id| in_table(&table, switch.replication_lag_set(id, lag())))
        }),
        "$pre.prune" => Box::new(move |switch, _| {
            (0..PRUNES as u16).try_for_each(|id| in_table(&table, switch.replication_prune(id, &[])))
        }),
        _ => Box::new(move |switch, _| {
            switch.replication_ports_clear();
            Ok(())
        }),
    };
    Ok(change)
}

/// Checks a read of one entry, or of all from a number on.
pub fn lookup(entry: &Entry, all: bool, from: u64) -> Checked<Table> {
    let table = entry.table().to_owned();
    let only = if all { None } else { Some(u64::from(id(entry, key_of(&table))?)) };
    let first = only.unwrap_or(from);
    Ok(Box::new(move |_, switch, _| Ok(found(&table, switch, first, only))))
}

/// The numbers to read of a table whose entries are always there.
fn numbers(first: u64, only: Option<u64>, end: u64) -> impl Iterator<Item = (u64, ())> {
    let end = only.map_or(end, |only| (only + 1).min(end));
    (first..end).map(|id| (id, ()))
}

fn found(table: &str, switch: &Switch, first: u64, only: Option<u64>) -> NamedPage {
    let is_wanted = |id: u64| only.is_none_or(|only| only == id);
    let from = u32::try_from(first).unwrap_or(u32::MAX);
    let keyed = |id: u64| Entry::of(table).exact(key_of(table), id.into());
    match table {
        "$pre.node" => {
            let nodes = switch.replication_nodes(from).map(|(id, node)| (u64::from(id), node));
            page(nodes.take_while(|(id, _)| is_wanted(*id)), |id, node| {
                keyed(id)
                    .data(RID, node.rid)
                    .data(LAG, Value::Numbers(node.lags.iter().map(|lag| u32::from(*lag)).collect()))
                    .data(PORTS, wide(&node.ports))
            })
        }
        "$pre.ecmp" => {
            let sets = switch.replication_sets(from).map(|(id, set)| (u64::from(id), set));
            page(sets.take_while(|(id, _)| is_wanted(*id)), |id, set| {
                keyed(id).data(NODE, Value::Numbers(set.iter().flatten().copied().collect()))
            })
        }
        "$pre.mgid" => {
            let from = u16::try_from(first).ok();
            let groups = from.into_iter().flat_map(|from| switch.replication_groups(from));
            let groups = groups.map(|(id, group)| (u64::from(id), group));
            page(groups.take_while(|(id, _)| is_wanted(*id)), |id, group| {
                listed(listed(keyed(id), NODES, &group.nodes), SETS, &group.sets)
            })
        }
        "$pre.lag" => page(numbers(first, only, LAGS), |id, ()| {
            let lag = switch.replication_lag(id as u8);
            keyed(id)
                .data(PORTS, wide(&lag.ports))
                .data(ABOVE, lag.remote_above)
                .data(BELOW, lag.remote_below)
        }),
        "$pre.prune" => page(numbers(first, only, PRUNES), |id, ()| {
            keyed(id).data(PORTS, wide(&switch.replication_pruned(id as u16)))
        }),
        _ => {
            let own = switch.config().ports.iter().map(|port| port.port).chain(switch.config().cpu_port);
            let mut own: Vec<u64> = own.map(u64::from).collect();
            own.sort_unstable();
            own.dedup();
            let wanted = own.into_iter().filter(|id| *id >= first && is_wanted(*id));
            page(wanted.map(|id| (id, ())), |id, ()| {
                let port = switch.replication_port(id as u16);
                keyed(id)
                    .data(BACKUP, u32::from(port.backup.unwrap_or(id as u16)))
                    .data(FORWARDS, port.forwards)
                    .data(FAILOVER, false)
                    .data(COPIES, switch.replication_config().copy_port == Some(id as u16))
            })
        }
    }
}

fn wide(ports: &[u16]) -> Value {
    Value::Numbers(ports.iter().map(|port| u32::from(*port)).collect())
}

fn listed(entry: Entry, [ids, valid, exclusions]: [&str; 3], members: &[ReplicationMember]) -> Entry {
    let exclusion = |member: &ReplicationMember| member.exclusion.map_or(0, u32::from);
    entry
        .data(ids, Value::Numbers(members.iter().map(|member| member.id).collect()))
        .data(valid, Value::Bools(members.iter().map(|member| member.exclusion.is_some()).collect()))
        .data(exclusions, Value::Numbers(members.iter().map(exclusion).collect()))
}

/// Checks a change of the engine's settings. Limits of the driver's own work are of no use here.
pub fn configure(given: &PreDeviceConfig) -> Checked<Change> {
    let rid = given.pre_global_rid.as_ref().map(|rid| u16::try_from(rid.global_rid));
    let Ok(rid) = rid.transpose() else {
        return refuse(Code::InvalidArgument, "the global replication id has more than 16 bits");
    };
    let protects = given.pre_port_protection.as_ref().map(|protection| protection.enable);
    Ok(Box::new(move |switch, _| {
        let mut config = switch.replication_config();
        config.global_rid = rid.unwrap_or(config.global_rid);
        config.protects_ports = protects.unwrap_or(config.protects_ports);
        p4rack_entities::control(switch.replication_config_set(config))
    }))
}
