//! Mirror sessions: the switch's clone sessions.

use super::{Fixed, Table, id, invalid, not_offered, page, replication};
use p4rack_bfrt::{Entry, Value};
use p4rack_entities::{Change, Checked, control, refuse};
use p4rack_p4rt::bfrt_proto::update::Type;
use p4rack_p4rt::google::rpc::Code;
use p4rack_switch::{CloneSession, Replica, ReplicationSpread, Switch};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const SESSION: &str = "$sid";
/// The last session that copies single packets, by generation. Session 0 is the driver's own.
const MOST: [u32; 2] = [1015, 255];
/// The second generation truncates copies to multiples of this.
const WORD: u16 = 4;

/// Sessions as clients wrote them.
#[derive(Debug, Default)]
pub struct Sessions(Mutex<BTreeMap<u32, Entry>>);

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Entry>> {
        // Every change is a single insertion or removal.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The session that an entry describes; `None` if it is disabled.
fn session(entry: &Entry, second: bool) -> Checked<Option<CloneSession>> {
    let number = |field: &str| entry.get(field).and_then(Value::number).unwrap_or(0);
    let small = |field: &str| replication::small(entry, field).map(Option::unwrap_or_default);
    let is = |field: &str| entry.get(field) == Some(&Value::Bool(true));
    if entry.action_name() != Some("$normal") {
        return not_offered(entry, "an action other than $normal");
    }
    if !is("$session_enable") {
        return Ok(None);
    }
    let port = match u16::try_from(number("$ucast_egress_port")) {
        Ok(port) => port,
        Err(_) => return invalid(entry, format!("there is no port {}", number("$ucast_egress_port"))),
    };
    let rid = small("$mcast_rid")?;
    let to_port = is("$ucast_egress_port_valid").then_some(Replica { port, instance: rid });
    let group = |field: &str| if is(&format!("{field}_valid")) { small(field) } else { Ok(0) };
    let length = small("$max_pkt_len")?;
    let class = number("$ingress_cos");
    if class > 7 {
        return invalid(entry, format!("$ingress_cos {class} is not 0 to 7"));
    }
    let ignores = match entry.get("$direction") {
        Some(Value::Text(direction)) if direction == "INGRESS" => [false, true],
        Some(Value::Text(direction)) if direction == "EGRESS" => [true, false],
        _ => [false, false],
    };
    Ok(Some(CloneSession {
        replicas: to_port.into_iter().collect::<Vec<_>>().into(),
        class_of_service: class as u8,
        packet_length_bytes: if second { length - length % WORD } else { length },
        groups: [group("$mcast_grp_a")?, group("$mcast_grp_b")?],
        spread: ReplicationSpread {
            rid,
            exclusion: small("$mcast_l1_xid")?,
            prune: small("$mcast_l2_xid")?,
            set_hash: small("$level1_mcast_hash")?,
            lag_hash: small("$level2_mcast_hash")?,
        },
        to_controller: is("$copy_to_cpu"),
        ignores,
    }))
}

/// Gives the switch a session, or takes it away.
fn put(switch: &mut Switch, id: u32, session: Option<CloneSession>) -> Checked<()> {
    match session {
        Some(session) => control(switch.clone_session_set(id, session)),
        None if switch.clone_session_get(id).is_some() => control(switch.clone_session_remove(id)),
        None => Ok(()),
    }
}

impl Fixed {
    pub(super) fn session_step(self: &Arc<Fixed>, kind: Type, entry: Entry, all: bool) -> Checked<Change> {
        let fixed = self.clone();
        if all {
            return Ok(Box::new(move |switch, _| {
                let all = std::mem::take(&mut *fixed.sessions.lock());
                all.into_keys().try_for_each(|id| put(switch, id, None))
            }));
        }
        let (id, most) = (id(&entry, SESSION)?, MOST[usize::from(self.second)]);
        if id == 0 {
            return invalid(&entry, format!("{SESSION} 0 is the driver's own"));
        }
        if id > most {
            return refuse(
                Code::NotFound,
                format!("table `{}`: {SESSION} {id} is not 1 to {most}", entry.table()),
            );
        }
        let given = match kind {
            Type::Insert | Type::Modify => Some(session(&entry, self.second)?),
            Type::Delete => None,
            _ => return not_offered(&entry, kind.as_str_name()),
        };
        Ok(Box::new(move |switch, _| {
            let mut sessions = fixed.sessions.lock();
            // A driver calls what exists already, or does not, an invalid argument.
            match (kind, sessions.contains_key(&id)) {
                (Type::Insert, true) => return invalid(&entry, format!("session {id} already exists")),
                (Type::Insert, false) if switch.clone_session_get(id).is_some() => {
                    let message =
                        format!("mirror session {id} was made over P4Runtime; delete it there first");
                    return refuse(Code::AlreadyExists, message);
                }
                (Type::Insert, _) | (_, true) => {}
                (_, false) => return invalid(&entry, format!("there is no session {id}")),
            }
            match given {
                Some(given) => {
                    put(switch, id, given)?;
                    sessions.insert(id, entry);
                }
                None => {
                    put(switch, id, None)?;
                    sessions.remove(&id);
                }
            }
            Ok(())
        }))
    }

    pub(super) fn session_lookup(&self, entry: &Entry, all: bool, from: u64) -> Checked<Table> {
        let from = u32::try_from(from).unwrap_or(u32::MAX);
        let range = if all {
            from..=u32::MAX
        } else {
            let id = id(entry, SESSION)?;
            id..=id
        };
        Ok(Box::new(move |fixed, _, _| {
            let sessions = fixed.sessions.lock();
            let found = sessions.range(range).map(|(id, entry)| (u64::from(*id), entry.clone()));
            Ok(page(found, |_, entry| entry))
        }))
    }
}
